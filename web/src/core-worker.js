// A worker that decodes logs.

import { Core, response } from "./core.js";

/** About how many rows are handed over at once. */
const ROWS = 30_000;

let core, module, files = [];

/** What the browser has read for the last tasks: one after the other, as the rows are wanted in that order. */
let fetched = Promise.resolve();

/** The rows of a scan, as Arrow IPC streams. */
function* scan(command) {
  core.run({ ...command, do: "open" });
  for (;;) {
    const bytes = core.bytes({ do: "next", rows: ROWS });
    if (bytes.length === 0) return;
    yield bytes;
  }
}

const CALLS = {
  /** Compiles the core. */
  compile: async ({ packed }) => (module = await WebAssembly.compileStreaming(response(packed))),
  /** Sets the files that were dropped. */
  files: (message) => {
    module = message.module;
    files = message.files;
    core ??= new Core(module);
    core.setFiles(files);
  },
  run: ({ command }) => core.run(command),
  /** Posts the rows of scans of the same tasks. Meanwhile the browser can read for the next ones. */
  scan: async ({ id, scans, tasks }) => {
    fetched = fetched.then(() => core.fetch(tasks));
    const found = await fetched;
    core.use(found);
    for (const [table, command] of Object.entries(scans)) {
      for (const bytes of scan({ ...command, tasks })) postMessage({ id, table, bytes }, [bytes.buffer]);
    }
  },
};

onmessage = async ({ data: { id, name, ...message } }) => {
  try {
    postMessage({ id, result: (await CALLS[name]({ id, ...message })) ?? null });
  } catch (error) {
    if (error.trapped) {
      core = new Core(module);
      core.setFiles(files);
    }
    postMessage({ id, error: error.message });
  }
};
