// Prints the records of an EVTX file as www.velocidex.com/golang/evtx reads them, a line of JSON for each.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/Velocidex/ordereddict"
	"www.velocidex.com/golang/evtx"
)

// JSON has no binary values: they become hexadecimal, as in the XML of Windows.
func readable(value interface{}) interface{} {
	switch value := value.(type) {
	case []byte:
		return fmt.Sprintf("%X", value)
	case bool, uint8, uint16, uint32, uint64:
		return fmt.Sprint(value)
	case float64:
		return fmt.Sprintf("%.7f", value)
	case []string:
		list := []interface{}{}
		for _, item := range value {
			list = append(list, item)
		}
		return list
	case []interface{}:
		list := []interface{}{}
		for _, item := range value {
			list = append(list, readable(item))
		}
		return list
	case *ordereddict.Dict:
		copied := ordereddict.NewDict()
		for _, key := range value.Keys() {
			item, _ := value.Get(key)
			copied.Set(key, readable(item))
		}
		return copied
	}
	return value
}

// A chunk that makes the parser panic ends there.
func printChunk(chunk *evtx.Chunk, out *json.Encoder) {
	defer func() {
		if problem := recover(); problem != nil {
			fmt.Fprintln(os.Stderr, problem)
		}
	}()
	records, _ := chunk.Parse(0)
	for _, record := range records {
		out.Encode(map[string]interface{}{"id": record.Header.RecordID, "event": readable(record.Event)})
	}
}

func main() {
	file, err := os.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	chunks, err := evtx.GetChunks(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	buffer := bufio.NewWriter(os.Stdout)
	defer buffer.Flush()
	out := json.NewEncoder(buffer)
	out.SetEscapeHTML(false)
	for _, chunk := range chunks {
		printChunk(chunk, out)
	}
}

