// Calls of scalar functions by DuckDB-Wasm, in place of its own code, which returns no texts: it passes where in a buffer each text
// is, without the address of the buffer. And what it allocates is never freed.

const encoder = new TextEncoder();
const decoder = new TextDecoder();

const ROW = 8;
const NULL = 0xffffffff;

/** Memory of DuckDB that is used again in each call. */
const room = { address: 0, size: 0 };

function allocate(mod, size) {
  if (room.size < size) {
    mod._free(room.address);
    Object.assign(room, { address: mod._malloc(size) >>> 0, size });
    if (room.address === 0) throw new Error("out of memory");
  }
  return room.address;
}

/**
 * The arguments of a call as the core takes them: for each row and argument the length of its text in bytes, in 4 bytes from the
 * lowest, and the text; 2^32 - 1 for NULL.
 */
function packed(mod, { rows, args }, pointers) {
  const numbers = (index) => (index === undefined ? undefined : mod.HEAPF64.subarray(pointers[index] >>> 3));
  const columns = args.map(({ physicalType, validityBuffer, dataBuffer, lengthBuffer }) => {
    if (physicalType !== "VARCHAR") throw new Error(`the function takes no ${physicalType}`);
    return { valid: validityBuffer === undefined ? undefined : pointers[validityBuffer], texts: numbers(dataBuffer), lengths: numbers(lengthBuffer) };
  });
  const isNull = ({ valid }, row) => valid !== undefined && mod.HEAPU8[valid + row] === 0;
  let size = 0;
  for (const column of columns) {
    for (let row = 0; row < rows; row++) size += 4 + (isNull(column, row) ? 0 : column.lengths[row]);
  }
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (let row = 0; row < rows; row++) {
    for (const column of columns) {
      const length = isNull(column, row) ? NULL : column.lengths[row];
      view.setUint32(at, length, true);
      at += 4;
      if (length === NULL) continue;
      bytes.set(mod.HEAPU8.subarray(column.texts[row], column.texts[row] + length), at);
      at += length;
    }
  }
  return bytes;
}

/** Writes the results, which are packed as the arguments are. Returns where. */
function write(mod, rows, bytes) {
  // DuckDB frees these two.
  const answer = mod._malloc(3 * ROW) >>> 0;
  const validity = mod._malloc(rows) >>> 0;
  const texts = allocate(mod, 2 * rows * ROW + bytes.length);
  const [lengths, start] = [texts + rows * ROW, texts + 2 * rows * ROW];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  mod.HEAPU8.set(bytes, start);
  for (let row = 0, at = 0; row < rows; row++) {
    const length = view.getUint32(at, true);
    at += 4;
    mod.HEAPU8[validity + row] = Number(length !== NULL);
    mod.HEAPF64[(texts >>> 3) + row] = start + at;
    mod.HEAPF64[(lengths >>> 3) + row] = length === NULL ? 0 : length;
    if (length !== NULL) at += length;
  }
  mod.HEAPF64.set([texts, validity, lengths], answer >>> 3);
  return answer;
}

/** A function of texts in JavaScript as one of packed rows. It is not called for rows with NULL. */
export function ofTexts(run) {
  return (bytes, rows, count) => {
    const view = new DataView(bytes.buffer);
    const results = [];
    for (let row = 0, at = 0; row < rows; row++) {
      const values = [];
      for (let argument = 0; argument < count; argument++) {
        const length = view.getUint32(at, true);
        at += 4;
        values.push(length === NULL ? null : decoder.decode(bytes.subarray(at, at + length)));
        if (length !== NULL) at += length;
      }
      const result = values.includes(null) ? null : run(...values);
      results.push(result === null || result === undefined ? null : encoder.encode(result));
    }
    const packed = new Uint8Array(results.reduce((sum, text) => sum + 4 + (text?.length ?? 0), 0));
    const lengths = new DataView(packed.buffer);
    let at = 0;
    for (const text of results) {
      lengths.setUint32(at, text?.length ?? NULL, true);
      packed.set(text ?? [], at + 4);
      at += 4 + (text?.length ?? 0);
    }
    return packed;
  };
}

/** What DuckDB calls: the function of packed rows that was registered with this number. */
export function callScalarUDF(mod, response, number, description, length, pointers) {
  const answer = (status, address, size) => mod.HEAPF64.set([status, address, size], response >>> 3);
  try {
    const call = JSON.parse(decoder.decode(mod.HEAPU8.slice(description, description + length)));
    const { func: run } = globalThis.DUCKDB_RUNTIME._udfFunctions.get(number);
    const bytes = packed(mod, call, mod.HEAPF64.subarray(pointers >>> 3));
    answer(0, write(mod, call.rows, run(bytes, call.rows, call.args.length)), 0);
  } catch (error) {
    const text = encoder.encode(error.message);
    const address = mod._malloc(text.length) >>> 0;
    mod.HEAPU8.set(text, address);
    answer(1, address, text.length);
  }
}
