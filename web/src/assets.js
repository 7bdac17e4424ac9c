// The parts of the page that workers use: scripts, and packed modules. The scripts beside this one add them.

globalThis.evtxAssets = (() => {
  const parts = new Map();
  const blob = (name, type) => new Blob(parts.get(name), { type });
  const worker = (name) => () => new Worker(URL.createObjectURL(blob(name, "text/javascript")));
  return {
    add: (name, text) => parts.set(name, [...(parts.get(name) ?? []), text]),
    core: () => blob("core"),
    duckdb: () => blob("duckdb"),
    sample: () => blob("sample"),
    coreWorker: worker("core-worker"),
    dbWorker: worker("db-worker"),
  };
})();
