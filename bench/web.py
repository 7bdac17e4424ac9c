"""Times the page in the browser against the extension. usage: web.py EXTENSION PAGE LOGS [--rounds N] [--wait SECONDS] [--rival FOLDER]

LOGS is a folder of logs. Each round drops it on the page in a new browser, which was open for SECONDS, and then reads every column with the
extension and one thread. "Decoded" is one worker of the page alone, from the files to Arrow in memory, the third time; "first rows" and "in the table"
count from the drop, and the table of files counts too. A task of the main thread counts from 50 ms on. With --rival, Node.js renders every record with
the npm package @ts-evtx/core, which is installed in FOLDER.
"""

import argparse
import asyncio
import json
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "test/web"), str(ROOT / "test/python")]
import case  # noqa: E402
import client  # noqa: E402

WATCH = """
globalThis.took = {tasks: []};
new PerformanceObserver((list) => took.tasks.push(...list.getEntries().map((entry) => entry.duration))).observe({type: "longtask"});
addEventListener("drop", () => { took.drop = performance.now(); }, true);
const watch = () => {
  if (/row/.test(document.querySelector("#status").textContent)) took.first ??= performance.now() - took.drop;
  if (/ in /.test(document.querySelector("#loaded").textContent)) took.table ??= performance.now() - took.drop;
};
new MutationObserver(watch).observe(document.body, {subtree: true, childList: true, characterData: true});
1
"""

# Returns how long a decoder takes for all files, the third time. It has two partitions at a time, as in a load.
DECODE = """
(async () => {
  const files = [...took.files].map(({path, file}) => ({path, file}));
  const worker = evtxAssets.coreWorker();
  let id = 0;
  const call = (message) => new Promise((resolve, reject) => {
    const mine = ++id;
    worker.addEventListener("message", function listen({data}) {
      if (data.id !== mine || data.bytes) return;
      worker.removeEventListener("message", listen);
      data.error ? reject(new Error(data.error)) : resolve(data.result);
    });
    worker.postMessage({id: mine, ...message});
  });
  const module = await call({name: "compile", packed: evtxAssets.core()});
  await call({name: "files", module, files});
  const tasks = (await call({name: "run", command: {do: "plan", function: "read_evtx", files: [files[0].path.split("/")[0]], target: 32 << 20}}));
  let ms = 0;
  for (let round = 0; round < 3; round++) {
    const start = performance.now(), left = [...tasks];
    const decode = async () => { while (left.length) await call({name: "scan", scans: {events: {function: "read_evtx"}}, tasks: left.shift()}); };
    await Promise.all([decode(), decode()]);
    ms = performance.now() - start;
  }
  worker.terminate();
  return ms;
})()
"""

# Keeps the files that are dropped.
KEEP = """
addEventListener("drop", async (event) => {
  const handle = await event.dataTransfer.items[0].getAsFileSystemHandle();
  took.files = [];
  const walk = async (folder, path) => {
    for await (const [name, inside] of folder.entries()) {
      if (inside.kind === "directory") await walk(inside, `${path}/${name}`);
      else took.files.push({path: `${path}/${name}`, file: await inside.getFile()});
    }
  };
  await walk(handle, handle.name);
}, true);
1
"""


def in_page(logs, seconds):
    async def steps(page):
        await asyncio.sleep(seconds)
        await page.page.run(WATCH)
        await page.page.run(KEEP)
        await page.load(logs)
        took = await page.page.run("({...took, files: undefined})")
        return took, await page.page.run(DECODE)

    return case.visit(steps)


def in_duckdb(con, logs):
    start = time.perf_counter()
    con.execute(f"SELECT count(COLUMNS(*)) FROM read_evtx('{logs}')").fetchone()
    return 1000 * (time.perf_counter() - start)


RIVAL = """
import { EvtxFile } from "@ts-evtx/core";
let records = 0;
const start = performance.now();
for (const path of JSON.parse(process.argv[1])) {
  for (const record of EvtxFile.openSync(path).records()) { record.renderXml(); records++; }
}
console.log(JSON.stringify({ records, ms: performance.now() - start }));
"""


def main():
    parser = argparse.ArgumentParser()
    for name in ("extension", "page", "logs"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--wait", type=float, default=3)
    parser.add_argument("--rival", type=pathlib.Path)
    options = parser.parse_args()
    case.WEB = options.page.resolve()
    options.logs = options.logs.resolve()
    con = client.connect(options.extension, threads=1)
    rows = con.execute(f"SELECT count(*) FROM read_evtx('{options.logs}')").fetchone()[0]
    times = {"the extension": [], "decoded": [], "first rows": [], "in the table": [], "longest task": []}
    for _ in range(options.rounds):
        took, decoded = in_page(options.logs, options.wait)
        for name, ms in zip(times, [min(in_duckdb(con, options.logs) for _ in range(3)), decoded, took["first"], took["table"], max(took["tasks"], default=0)]):
            times[name].append(ms)
    print(f"{rows:,} rows")
    for name, all_ms in times.items():
        ms = statistics.median(all_ms)
        print(f"{name:>14} {ms:6.0f} ms  {ms / statistics.median(times['the extension']):5.2f}x  of {', '.join(f'{each:.0f}' for each in all_ms)}")
    if options.rival:
        paths = json.dumps([str(path) for path in sorted(options.logs.rglob("*.evtx"))])
        rival = subprocess.run(["node", "--input-type=module", "-e", RIVAL, paths], cwd=options.rival, capture_output=True, check=True, text=True)
        print("@ts-evtx/core:", rival.stdout.strip())


if __name__ == "__main__":
    main()
