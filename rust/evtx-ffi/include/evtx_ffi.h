#ifndef EVTX_FFI_H
#define EVTX_FFI_H

// Generated from rust/evtx-ffi by cbindgen. Do not edit.

#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <ostream>
#include <new>

struct ArrowArray;
struct ArrowSchema;


// What becomes of damage.
enum class EvtxOnError {
  // Rows with an error.
  REPORT,
  // No rows.
  SKIP,
  // The end of the scan.
  FAIL,
};

// What is told of files.
enum class EvtxReportKind {
  // The fields of each event, once all files were read.
  EVENTS,
  // The header of each file.
  FILES,
  // The header of each chunk.
  CHUNKS,
};

// What a node of a condition is. Its children are the nodes before it that no other has.
enum class EvtxNodeKind : uint32_t {
  // Whatever the core does not know. Without children.
  UNKNOWN,
  // The column `number`. Without children.
  COLUMN,
  // The value of a map for a key: a column and a text.
  MAP_VALUE,
  // The unsigned number `number`. Without children, as all constants.
  NUMBER,
  // A signed number: `number` is the bits of an i64.
  INTEGER,
  // A time: `number` is the bits of an i64, nanoseconds since 1970-01-01 UTC.
  INSTANT,
  // A GUID: its 16 bytes, in the order of its text.
  UUID,
  // A text: its UTF-8 bytes.
  TEXT,
  // A truth value: `number` is 0 or 1.
  BOOL,
  // All of the children.
  AND,
  // Any of the children.
  OR,
  // The opposite of the child.
  NOT,
  // The child is NULL.
  IS_NULL,
  // The child is not NULL.
  IS_NOT_NULL,
  // The first child equals the second.
  EQUAL,
  // The two differ.
  NOT_EQUAL,
  // The first is less.
  LESS,
  // The first is not greater.
  LESS_OR_EQUAL,
  // The first is greater.
  GREATER,
  // The first is not less.
  GREATER_OR_EQUAL,
  // The first starts with the second.
  PREFIX,
  // The first ends with the second.
  SUFFIX,
  // The second is in the first.
  CONTAINS,
  // The two differ, where NULL is a value like others.
  DISTINCT_FROM,
  // The opposite of that.
  NOT_DISTINCT_FROM,
  // The first lies from the second to the third; the bounds themselves may be left out.
  BETWEEN,
  // The first equals one of the others.
  ONE_OF,
  // The first equals none of the others.
  NONE_OF,
};

// Decodes blocks of files, for one thread.
struct EvtxDecoder;

// What a scan need not give of a table's rows, by the conditions of a query.
struct EvtxFilter;

// The file of the messages that stand beside a log, and once it was read the messages.
struct EvtxMessages;

// A report on files.
struct EvtxReport;

// What the threads of a query share.
struct EvtxScan;

// Finds out how a file is laid out.
struct EvtxSurvey;

// The columns of a call.
struct EvtxTable;

// A run of bytes of a file to read at once and decode.
struct EvtxBlock {
  // Number of its first chunk slot in the file.
  uint64_t first_chunk;
  // Offset in the file, in bytes.
  uint64_t offset;
  // Length in bytes.
  uint64_t len;
  // In an image, the bytes in which a chunk can start; else 0.
  uint64_t image;
};

// How a call asks whether to go on. It may ask up to a million times a second.
struct EvtxInterrupt {
  // Returns whether the call shall end, given `state`. Null if it never shall. What it calls must not throw through it.
  bool (*is_set)(void *state);
  // The caller's.
  void *state;
};

// A node of a condition.
struct EvtxNode {
  // An `EvtxNodeKind`.
  uint32_t kind;
  // How many children it has.
  uint32_t children;
  // A number.
  uint64_t number;
  // Where its bytes start among those of the condition.
  uint64_t start;
  // How many bytes there are.
  uint64_t len;
};

// Certain events.
struct EvtxEvents {
  // Their IDs, `id_count` of them.
  const uint32_t *ids;
  // How many there are.
  uintptr_t id_count;
  // The name of their provider, or null if it does not matter.
  const char *provider;
  // Bytes of that name.
  uintptr_t provider_len;
};

// The options of a scan.
struct EvtxOptions {
  // What becomes of damage.
  EvtxOnError on_error;
  // Whether checksums are compared.
  bool verify;
  // Whether there is a column of each event's XML.
  bool xml;
  // Whether there is a column of each event's JSON.
  bool json;
  // Whether there are columns for where a record stands.
  bool location;
  // Whether there are also records that a chunk's bookkeeping does not reach, and chunks of files that are no logs.
  bool recover;
};

extern "C" {

// Frees an error text.
//
// # Safety
// `error` is null or came from a function of this library, and is freed once.
void evtx_error_free(char *error);

// The choice for `on_error` that a name stands for. An error lists the choices.
//
// # Safety
// `name` is text, `out` can be written.
char *evtx_on_error(const char *name, uintptr_t name_len, EvtxOnError *out);

// A scan of the columns with these indexes in the schema of the table, in this order, without the rows that `filter` drops,
// if that is not null.
//
// # Safety
// `table` is valid, `columns` points to `column_count` indexes, `filter` is null or valid and made for the same table,
// `out` can be written. The caller frees the scan.
char *evtx_scan_new(const EvtxTable *table,
                    const uintptr_t *columns,
                    uintptr_t column_count,
                    const EvtxFilter *filter,
                    EvtxScan **out);

// Frees a scan. Decoders keep what they need of it.
//
// # Safety
// `scan` is null or came from [`evtx_scan_new`], and is freed once.
void evtx_scan_free(EvtxScan *scan);

// The schema of the batches of a scan, but with maps as lists of their entries: the two are the same in memory.
//
// # Safety
// `scan` is valid, `out` can be written. The caller releases the schema.
char *evtx_scan_schema(const EvtxScan *scan,
                       ArrowSchema *out);

// Whether a scan reads messages, so that those beside a log are of use.
//
// # Safety
// `scan` is valid.
bool evtx_scan_reads_messages(const EvtxScan *scan);

// A decoder for a scan.
//
// # Safety
// `scan` is valid, `out` can be written. The caller frees the decoder.
char *evtx_decoder_new(const EvtxScan *scan, EvtxDecoder **out);

// Frees a decoder. Batches that it gave stay valid.
//
// # Safety
// `decoder` is null or came from [`evtx_decoder_new`], and is freed once.
void evtx_decoder_free(EvtxDecoder *decoder);

// Begins a block of a file, with the messages that stand beside it, or null.
//
// # Safety
// `decoder` is valid and not in use elsewhere, `filename` is text, `messages` is null or valid.
char *evtx_decoder_start(EvtxDecoder *decoder,
                         const char *filename,
                         uintptr_t filename_len,
                         const EvtxMessages *messages,
                         EvtxBlock block);

// Decodes until the batch is full or the block is done. `data` is what is left of the block; `consumed`
// receives how many of its bytes were. After an error, another block may be started.
//
// # Safety
// `decoder` is valid and not in use elsewhere, `data` points to `len` bytes, `interrupt` can be asked, `consumed` can be
// written.
char *evtx_decoder_decode(EvtxDecoder *decoder,
                          const uint8_t *data,
                          uintptr_t len,
                          EvtxInterrupt interrupt,
                          uintptr_t *consumed);

// Hands the batch out, as a struct array of the scan's schema. `rows` receives its length; if that is 0,
// `out` is left alone.
//
// # Safety
// `decoder` is valid and not in use elsewhere, `out` and `rows` can be written. The caller releases the
// array.
char *evtx_decoder_flush(EvtxDecoder *decoder,
                         ArrowArray *out,
                         uintptr_t *rows);

// Whether all of the block was decoded.
//
// # Safety
// `decoder` is valid.
bool evtx_decoder_is_done(const EvtxDecoder *decoder);

// Adds a row that says what is wrong with a file as a whole, or fails with that, or does nothing, as the
// scan was told.
//
// # Safety
// `decoder` is valid and not in use elsewhere, `filename` and `what` are text.
char *evtx_decoder_report_file(EvtxDecoder *decoder,
                               const char *filename,
                               uintptr_t filename_len,
                               const char *what,
                               uintptr_t what_len);

// A survey of a file of `size` bytes. Of one that is `remote` it asks for few ranges, of others for a small
// one in every chunk. With `recover`, a file that is no log may hold chunks.
//
// # Safety
// `out` can be written. The caller frees the survey.
char *evtx_survey_new(uint64_t size,
                      bool remote,
                      bool recover,
                      EvtxSurvey **out);

// Frees a survey.
//
// # Safety
// `survey` is null or came from [`evtx_survey_new`], and is freed once.
void evtx_survey_free(EvtxSurvey *survey);

// The range of the file to read and push next. Returns false once the survey is done.
//
// # Safety
// `survey` is valid, `offset` and `len` can be written.
bool evtx_survey_wants(const EvtxSurvey *survey, uint64_t *offset, uintptr_t *len);

// Takes the bytes of the range that the survey wants. The error says why the file is not a log.
//
// # Safety
// `survey` is valid and not in use elsewhere, `data` points to `len` bytes.
char *evtx_survey_push(EvtxSurvey *survey, const uint8_t *data, uintptr_t len);

// What the file header's checksum says is wrong, for scans that verify; null if it matches.
//
// # Safety
// `survey` is valid.
char *evtx_survey_verify(const EvtxSurvey *survey);

// How many blocks a file has that was surveyed.
//
// # Safety
// `survey` is valid and done.
uint64_t evtx_survey_blocks(const EvtxSurvey *survey);

// A block of a file that was surveyed, by its number in the order of the records. Returns false where there is none.
//
// # Safety
// `survey` is valid and done, `out` can be written.
bool evtx_survey_block(const EvtxSurvey *survey,
                       uint64_t number,
                       EvtxBlock *out);

// The position of a block in the order of all rows: the block with this number in the file with this number, of so many files.
//
// # Safety
// `out` can be written.
char *evtx_batch_index(uint64_t files,
                       uint64_t file,
                       uint64_t block,
                       uint64_t *out);

// Writes the glob of the files that may hold the messages of a log, with a NUL, if it fits in `capacity`
// bytes. `place` is that glob from the log's folder on, with `{log}` for the log's name. Returns its length; 0 for a
// path that names no file.
//
// # Safety
// `log` and `place` are text, `out` has room for `capacity` bytes.
uintptr_t evtx_messages_pattern(const char *log,
                                uintptr_t log_len,
                                const char *place,
                                uintptr_t place_len,
                                char *out,
                                uintptr_t capacity);

// Messages to be read from a file of `size` bytes. `memory` is how many bytes they may take, and then how many they may
// take of those. The error says why they are not read.
//
// # Safety
// `memory` can be read, it and `out` can be written. The caller frees the messages.
char *evtx_messages_new(uint64_t size,
                        uint64_t *memory,
                        EvtxMessages **out);

// Takes the next bytes of the file.
//
// # Safety
// `messages` is valid and not in use elsewhere, `data` points to `len` bytes.
char *evtx_messages_push(EvtxMessages *messages, const uint8_t *data, uintptr_t len);

// Reads the file, all of whose bytes were pushed. The error says why there are no messages.
//
// # Safety
// `messages` is valid and not in use elsewhere, `interrupt` can be asked.
char *evtx_messages_read(EvtxMessages *messages, EvtxInterrupt interrupt);

// Frees messages. Decoders keep those that they use.
//
// # Safety
// `messages` is null or came from [`evtx_messages_new`], and is freed once.
void evtx_messages_free(EvtxMessages *messages);

// What a scan of a table need not give, by conditions that all have to be true: `node_count` nodes in postfix order, whose texts are
// among `len` bytes.
//
// # Safety
// `table` is valid, `nodes` points to `node_count` nodes and `bytes` to `len` bytes, `out` can be written. The caller frees
// the filter.
char *evtx_filter_new(const EvtxTable *table,
                      const EvtxNode *nodes,
                      uintptr_t node_count,
                      const uint8_t *bytes,
                      uintptr_t len,
                      EvtxFilter **out);

// Frees a filter. Scans keep what they need of it.
//
// # Safety
// `filter` is null or came from [`evtx_filter_new`], and is freed once.
void evtx_filter_free(EvtxFilter *filter);

// Whether a file's path alone tells that none of its rows is wanted. False where there is no telling.
//
// # Safety
// `filter` is valid, `filename` is text, `out` can be written.
char *evtx_filter_drops_file(const EvtxFilter *filter,
                             const char *filename,
                             uintptr_t filename_len,
                             bool *out);

// A report of a kind; `events` limits one of events to these, if it is not null.
//
// # Safety
// `events` is null or valid, `out` can be written. The caller frees the report.
char *evtx_report_new(EvtxReportKind kind, const EvtxEvents *events, EvtxReport **out);

// Frees a report. Batches that it gave stay valid.
//
// # Safety
// `report` is null or came from [`evtx_report_new`], and is freed once.
void evtx_report_free(EvtxReport *report);

// The columns of a report.
//
// # Safety
// `report` is valid and not in use elsewhere, `out` can be written. The caller releases the schema.
char *evtx_report_schema(EvtxReport *report, ArrowSchema *out);

// Begins a file of `size` bytes.
//
// # Safety
// `report` is valid and not in use elsewhere, `filename` is text.
char *evtx_report_start(EvtxReport *report,
                        const char *filename,
                        uintptr_t filename_len,
                        uint64_t size);

// Takes the next bytes of the file: first its header alone, 4,096 bytes or as many as there are, then whole chunks, of
// which the last may be cut short. An error says why the rest of the file cannot be read.
//
// # Safety
// `report` is valid and not in use elsewhere, `data` points to `len` bytes, `interrupt` can be asked.
char *evtx_report_push(EvtxReport *report,
                       const uint8_t *data,
                       uintptr_t len,
                       EvtxInterrupt interrupt);

// Ends the file. `failure` says why the rest of it was not read; null if all was.
//
// # Safety
// `report` is valid and not in use elsewhere, `failure` is null or text.
char *evtx_report_end(EvtxReport *report, const char *failure, uintptr_t failure_len);

// Hands out the rows since the last time, as a struct array of the report's schema. `rows` receives their number; if that
// is 0, `out` is left alone. `last` says that no file follows.
//
// # Safety
// `report` is valid and not in use elsewhere, `out` and `rows` can be written. The caller releases the array.
char *evtx_report_flush(EvtxReport *report,
                        bool last,
                        ArrowArray *out,
                        uintptr_t *rows);

// The table of all events.
//
// # Safety
// `out` can be written. The caller frees the table.
char *evtx_table_new(EvtxOptions options, EvtxTable **out);

// The table of some events, with a column for each of their fields that a report of these events has found.
//
// # Safety
// `events` is valid, `report` is valid and one of events, `out` can be written. The caller frees the table.
char *evtx_table_of_events(EvtxOptions options,
                           const EvtxEvents *events,
                           const EvtxReport *report,
                           EvtxTable **out);

// Frees a table. Scans and filters keep what they need of it.
//
// # Safety
// `table` is null or came from a function of this library, and is freed once.
void evtx_table_free(EvtxTable *table);

// How many columns a table has.
//
// # Safety
// `table` is valid.
uint64_t evtx_table_columns(const EvtxTable *table);

// The columns of a table.
//
// # Safety
// `table` is valid, `out` can be written. The caller releases the schema.
char *evtx_table_schema(const EvtxTable *table, ArrowSchema *out);

}  // extern "C"

#endif  // EVTX_FFI_H
