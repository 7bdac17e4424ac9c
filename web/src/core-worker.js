// A worker that decodes logs.

import { Core, response } from "./core.js";

/** About how many rows are handed over at once. */
const ROWS = 30_000;

let core, module, files = [];

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
  /** Posts the rows of a scan. Meanwhile the browser can read for the next one. */
  scan: async ({ id, command }) => {
    const fetched = await core.fetch(command.tasks ?? []);
    core.use(fetched);
    for (const bytes of scan(command)) postMessage({ id, bytes }, [bytes.buffer]);
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
