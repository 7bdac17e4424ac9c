// The core in WebAssembly: an instance, and its commands (rust/frontends/evtx-web/src/session.rs).

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The bytes before the first chunk of a log, and of each chunk. */
export const HEADER = 4096;
export const CHUNK = 65536;

/** The most bytes that are read before a partition is decoded, and at once while it is decoded. */
const FETCHED = 32 << 20, MOST = 8 << 20;

/** The size of the largest file that is read as a whole without being asked for, in bytes. */
const SMALL = 2 << 20;

/** The bytes of a file of the page, which is base64 of gzip, as a stream. */
export async function unpacked(blob) {
  const text = await blob.text();
  const bytes = Uint8Array.fromBase64?.(text) ?? Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
}

/** The response of a module, which the browser compiles while it is unpacked. */
export async function response(blob) {
  return new Response(await unpacked(blob), { headers: { "Content-Type": "application/wasm" } });
}

/** An instance of the core. After a trap it cannot be used. */
export class Core {
  #exports;
  #files = [];
  #numbers = new Map();
  #fetched = new Map();
  /** The file that was read last without being asked for before. */
  #last;
  #ballast;

  /** `module` is a compiled module. */
  constructor(module) {
    const read = (number, offset, to, length) => {
      try {
        const bytes = this.#bytes(number, offset, length);
        new Uint8Array(this.#exports.memory.buffer).set(bytes, to >>> 0);
        return bytes.length;
      } catch {
        return 0;
      }
    };
    this.#exports = new WebAssembly.Instance(module, { evtx: { read } }).exports;
  }

  /** Bytes of a file: those that were fetched, or what the browser reads now. A call takes as long as to copy a megabyte. */
  #bytes(number, offset, length) {
    const { start = 0, bytes } = this.#fetched.get(number) ?? {};
    const at = bytes ? offset - start : -1;
    if (at >= 0 && at + length <= bytes.length) return bytes.subarray(at, at + length);
    const { size } = this.#files[number];
    // Who goes on where the last read ended gets more and more at once: the browser frees half a megabyte per read only when a scan ends.
    const ahead = at >= 0 && at <= bytes.length ? Math.min(2 * bytes.length, MOST) : 0;
    const [from, to] = size <= SMALL ? [0, size] : [offset, offset + Math.max(length, ahead)];
    const read = new Uint8Array(new FileReaderSync().readAsArrayBuffer(this.#files[number].slice(from, to)));
    if (this.#last !== number) this.#fetched.delete(this.#last);
    this.#last = number;
    // During a scan the browser frees what was read only when objects of JavaScript take memory, too: 8 MiB of them per large read.
    if (ahead === MOST) this.#ballast = new Array(1 << 20).fill(0.5);
    this.#fetched.set(number, { start: from, bytes: read });
    return read.subarray(offset - from, offset - from + length);
  }

  /** Reads what the tasks of a partition will read, at once. */
  async fetch(tasks) {
    const parts = [];
    let left = FETCHED;
    for (const { file, slots } of tasks) {
      const number = this.#numbers.get(file);
      if (number === undefined) continue;
      const start = slots ? HEADER + slots[0] * CHUNK : 0;
      const part = this.#files[number].slice(start, slots ? HEADER + (slots[1] ?? slots[0]) * CHUNK : undefined);
      if ((left -= part.size) < 0) break;
      parts.push({ number, start, part });
    }
    const bytes = new Uint8Array(await new Blob(parts.map(({ part }) => part)).arrayBuffer().catch(() => new ArrayBuffer()));
    let at = 0;
    return new Map(parts.map(({ number, start, part }) => [number, { start, bytes: bytes.subarray(at, (at += part.size)) }]));
  }

  /** What the next commands read of files: the result of `fetch`. */
  use(fetched) {
    this.#fetched = fetched;
  }

  /** Sets the files that were dropped: objects with a path and a File. */
  setFiles(files) {
    this.#files = files.map(({ file }) => file);
    this.#numbers = new Map(files.map(({ path }, number) => [path, number]));
    this.run({ do: "files", files: files.map(({ path, file }) => [path, file.size]) });
  }

  /** Runs a command whose answer is JSON. */
  run(command) {
    return JSON.parse(decoder.decode(this.bytes(command)));
  }

  /** Runs a command whose answer is bytes. `input` are more bytes, after the command. */
  bytes(command, input = new Uint8Array()) {
    const text = encoder.encode(JSON.stringify(command));
    const { memory, evtx_room, evtx_command, evtx_answer, evtx_answer_len } = this.#exports;
    const room = evtx_room(text.length, input.length) >>> 0;
    new Uint8Array(memory.buffer).set(text, room);
    new Uint8Array(memory.buffer).set(input, room + text.length);
    const answer = (length) => new Uint8Array(memory.buffer, evtx_answer() >>> 0, length).slice();
    let length;
    try {
      length = evtx_command();
    } catch (trap) {
      throw Object.assign(new Error(decoder.decode(answer(evtx_answer_len())) || String(trap)), { trapped: true });
    }
    const bytes = answer(Math.abs(length));
    if (length < 0) throw new Error(decoder.decode(bytes));
    return bytes;
  }
}
