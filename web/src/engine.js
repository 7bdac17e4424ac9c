// The engine of the page: workers that decode logs, and one with DuckDB.

import { Remote } from "./rpc.js";

/** Makes a worker; a Blob with a packed module (build.mjs). */
const { coreWorker, dbWorker, core, duckdb } = globalThis.evtxAssets;

/** About how many bytes of logs a worker decodes at once. Their rows are in memory until they are in the table. */
const PARTITION = 32 << 20;

/** How many bytes of logs fit into memory with all columns. Their table takes about as many. */
const FITS = 600 * 2 ** 20;

/** How many workers decode. DuckDB takes longer to insert what they decode, and archives take the memory of each. */
const DECODERS = Math.max(1, Math.min(2, (navigator.hardwareConcurrency ?? 2) - 1));

/** How long DuckDB may take to end a query, in milliseconds. */
const PATIENCE = 5000;

/** The shortest time between two events `progress`, in milliseconds. */
const PROGRESS = 100;

const isRule = (path) => /\.ya?ml$/i.test(path);

/** What a path names at the top: a folder, or the file itself. */
const top = (path) => path.split("/")[0];

/** Whether two files are one. Logs have checksums of their first records in the first bytes. */
async function isSame(a, b) {
  if (a.size !== b.size || a.lastModified !== b.lastModified) return false;
  const [one, other] = await Promise.all([a, b].map((file) => file.slice(0, 8192).text().catch(() => "")));
  return one === other;
}

/** The path of what a task reads. */
const pathOf = (task) => task.file ?? task.outer ?? task.unreadable;

/** The logs in a browser, and DuckDB with their events. */
export class Engine extends EventTarget {
  #db;
  #module;
  #planner;
  /** The files that were dropped, by path. */
  #files = new Map();
  /** The paths of files of which only a part is in the table. */
  #unfinished = new Set();
  /** How many queries run or wait. */
  #queries = 0;
  /** How many bytes of logs are in the table. */
  #bytes = 0;
  /** What is being loaded. */
  #load = null;
  /** The options of the events in the table; undefined if there are none. */
  #options;

  /** Starts DuckDB and the core. */
  static async start() {
    const engine = new Engine();
    engine.#planner = new Remote(coreWorker);
    engine.#module = await engine.#planner.call({ name: "compile", packed: core() });
    await engine.#startDatabase();
    return engine;
  }

  async #startDatabase() {
    const db = new Remote(dbWorker);
    await db.call({ name: "start", packed: duckdb(), module: this.#module });
    this.#db = db;
  }

  /** The logs among files, their size in bytes, and how many rules there are; a warning if the events may not fit into memory. */
  async plan(files) {
    const { tasks } = await this.#tasks(await this.#fresh(files));
    const bytes = tasks.reduce((sum, task) => sum + bytesOf(task), 0);
    const all = this.#bytes + bytes;
    const rules = files.filter(({ path }) => isRule(path)).length;
    const fits = all <= FITS;
    const warning = fits ? null : `The logs have ${Math.round(all / 2 ** 20)} MiB, and about ${FITS / 2 ** 20} MiB fit into memory ` +
      "with all columns. Choose the columns or the events that you need.";
    return { logs: new Set(tasks.map(pathOf)).size, bytes, rules, warning };
  }

  /**
   * Loads files that were not loaded before into the table `events`. Then makes the tables `files` and, if there are rules,
   * `rules` and `matches` from all files. With other options than before, it reads all files again.
   * `errors` are files that could not even be listed; they become rows.
   */
  async load(files, { columns = null, event_id = null, provider = null, password = null, errors = [] } = {}) {
    const started = performance.now();
    this.#cancelRunning();
    const options = JSON.stringify([columns, event_id, provider]);
    if (this.#options !== undefined && this.#options !== options) {
      files = [...this.#list(), ...files];
      await this.reset();
    }
    const fresh = await this.#fresh(files);
    const { tasks, failures } = await this.#tasks(fresh);
    for (const { path, file } of fresh) this.#files.set(path, file);
    await this.#forget(fresh);
    const rules = [...this.#files.keys()].filter(isRule);
    const filter = { password, ...(event_id && { event_id, sample_size: 0 }), ...(provider && { provider }) };
    const load = new Load(tasks);
    this.#load = load;
    try {
      load.decoders = Array.from({ length: DECODERS }, () => new Remote(coreWorker));
      await Promise.all(load.decoders.map((decoder) => decoder.call({ name: "files", module: this.#module, files: this.#list() })));
      const [decoder] = load.decoders;
      // With certain events, there would be a column for each of their fields.
      columns ??= await decoder.call({ name: "run", command: { do: "open", function: "read_evtx" } });
      const command = { function: "read_evtx", arguments: filter, columns };
      if (this.#options === undefined) {
        await this.#insert(load, "events", await this.#scan(decoder, command), true);
        this.#options = options;
      }
      for (const { path, error } of [...failures, ...errors]) await this.#addError(path, error);
      // While a decoder works on a partition, the browser reads the next one.
      await Promise.all([...load.decoders, ...load.decoders].map((decoder) => this.#decode(load, decoder, command)));
      if (!load.stopped) await this.#makeOthers(load, rules, password);
    } catch (error) {
      if (!load.stopped) throw error;
    } finally {
      load.decoders.forEach((decoder) => decoder.end());
      this.#load = null;
      this.#bytes += [...load.files.values()].reduce((sum, { done }) => sum + done, 0);
      // What was not read whole can be dropped again.
      for (const path of load.unfinished()) {
        this.#files.delete(path);
        this.#unfinished.add(path);
      }
    }
    this.#progress(load, true);
    const count = async (table) => (await this.all(`SELECT count(*)::INTEGER AS rows FROM ${table}`))[0].rows;
    return {
      rows: await count("events"),
      files: load.files.size,
      seconds: (performance.now() - started) / 1000,
      stopped: load.stopped,
      matches: rules.length && !load.stopped ? await count("matches") : null,
    };
  }

  /** Ends the load. What was loaded stays. */
  cancelLoad() {
    this.#stop(this.#load, "cancelled");
  }

  /** Runs statements of SQL. The rows of the last one are the result. Cancels an earlier query. */
  async query(sql) {
    this.#cancelRunning();
    this.#queries++;
    try {
      return await this.#db.call({ name: "query", sql });
    } finally {
      this.#queries--;
    }
  }

  #cancelRunning() {
    if (this.#queries > 0) this.cancelQuery();
  }

  /** Rows of the result, as texts. With `whole`, also long ones whole. */
  rows(start, end, sort = null, whole = false) {
    return this.#db.call({ name: "page", start, end, sort, whole });
  }

  /** Ends the query that runs. If DuckDB does not end it, DuckDB is started anew; the event `lost` says that the tables are gone. */
  async cancelQuery() {
    const db = this.#db;
    db.send({ name: "cancel" });
    const answer = db.call({ name: "ping" }).catch(() => {});
    const patience = new Promise((resolve) => { setTimeout(resolve, PATIENCE, "late"); });
    if ((await Promise.race([answer, patience])) !== "late" || db !== this.#db) return;
    this.#stop(this.#load, "cancelled");
    db.end();
    await this.#startDatabase();
    this.#forgetAll();
    this.dispatchEvent(new Event("lost"));
  }

  /** The rows of a small query as objects. */
  all(sql) {
    return this.#db.call({ name: "all", sql });
  }

  /** The result as a Blob: `csv` or `parquet`; or the HTML `report` of the matches. */
  save(format) {
    return this.#db.call({ name: "save", format });
  }

  /** Forgets all files and tables. */
  async reset() {
    this.cancelLoad();
    this.#cancelRunning();
    this.#forgetAll();
    await this.#db.call({ name: "reset" });
  }

  #forgetAll() {
    this.#files.clear();
    this.#unfinished.clear();
    this.#options = undefined;
    this.#bytes = 0;
  }

  /** The files that were not loaded. Other files with the same path get a number before it. */
  async #fresh(files) {
    const known = new Map(this.#files);
    const fresh = [];
    for (const { path, file } of files) {
      let unique = path;
      // A rule that was changed replaces the one before.
      for (let number = 2; !isRule(path) && known.has(unique) && !(await isSame(known.get(unique), file)); number++) unique = `(${number}) ${path}`;
      if (known.has(unique) && (await isSame(known.get(unique), file))) continue;
      known.set(unique, file);
      fresh.push({ path: unique, file });
    }
    return fresh;
  }

  /** The list of all files, as a worker takes it. */
  #list(fresh = []) {
    return [...[...this.#files].map(([path, file]) => ({ path, file })), ...fresh];
  }

  /** The tasks that read files of a function, and the files that cannot be read. With `splits`, large files are several tasks. */
  async #tasks(fresh, name = "read_evtx", splits = true) {
    await this.#planner.call({ name: "files", module: this.#module, files: this.#list(fresh) });
    const sizes = new Map(this.#list(fresh).map(({ path, file }) => [path, file.size]));
    const paths = [...new Set(fresh.filter(({ path }) => !isRule(path)).map(({ path }) => top(path)))];
    const plan = (files) => this.#planner.call({ name: "run", command: { do: "plan", function: name, files, target: PARTITION, splits } });
    const failures = [];
    let partitions;
    try {
      partitions = await plan(paths);
    } catch {
      // One by one, to find those that cannot be read.
      partitions = [];
      for (const path of paths) {
        await plan([path]).then((found) => partitions.push(...found), (error) => failures.push({ path, error: error.message }));
      }
    }
    // A file that cannot be read is a row, also if it was dropped by itself.
    const wanted = new Set(fresh.map(({ path }) => path));
    const isWanted = (path) => wanted.has(path) || (path.includes("/") && isWanted(path.slice(0, path.lastIndexOf("/"))));
    const tasks = partitions.flatMap((tasks, partition) => tasks.map((task) =>
      ({ ...task, named: false, size: task.size ?? sizes.get(pathOf(task)), partition })));
    return { tasks: tasks.filter((task) => isWanted(pathOf(task))), failures };
  }

  /** Decodes partitions until none are left. */
  async #decode(load, decoder, command) {
    for (let partition; !load.stopped && (partition = load.next()); ) {
      partition.streams = await this.#read(load, decoder, command, partition.tasks);
      for (const task of partition.tasks) load.finish(task);
      load.insert(async ({ streams }) => {
        load.rows = await this.#insert(load, "events", streams.filter((stream) => stream instanceof Uint8Array)) ?? load.rows;
        for (const { path, error } of streams.filter((stream) => stream.error)) await this.#addError(path, error);
        this.#progress(load);
      });
      await load.room();
    }
    await load.inserted;
  }

  /** The rows of tasks, as Arrow streams. A task that ends the core is an error instead. */
  async #read(load, decoder, command, tasks) {
    try {
      return await this.#scan(decoder, { ...command, tasks });
    } catch (error) {
      if (load.stopped) return [];
      if (tasks.length === 1) {
        load.fail(tasks[0], error.message);
        return [{ path: pathOf(tasks[0]), error: `not read: ${error.message}` }];
      }
      const streams = [];
      for (const task of tasks) streams.push(...(await this.#read(load, decoder, command, [task])));
      return streams;
    }
  }

  async #scan(decoder, command) {
    const streams = [];
    await decoder.call({ name: "scan", command }, [], ({ bytes }) => streams.push(bytes));
    return streams;
  }

  /** Adds rows to a table. Returns how many it has; undefined if they do not fit into memory. */
  async #insert(load, table, streams, create = false) {
    try {
      return await this.#db.call({ name: "insert", table, create, streams }, streams.map(({ buffer }) => buffer));
    } catch (error) {
      if (!/out of memory|memory_limit|failed to allocate/i.test(error.message)) throw error;
      const text = "The memory for the table is full, so not all events were loaded. Choose the columns or the events that you need.";
      this.#stop(load, "memory");
      this.dispatchEvent(new CustomEvent("full", { detail: { text } }));
      return undefined;
    }
  }

  /** Removes the rows of files that are about to be read again. */
  async #forget(files) {
    for (const { path } of files.filter(({ path }) => this.#unfinished.delete(path))) {
      const text = `'${path.replaceAll("'", "''")}'`;
      await this.all(`DELETE FROM events WHERE filename = ${text} OR starts_with(filename, ${text} || '/')`);
    }
  }

  #addError(path, error) {
    const [filename, text] = [path, error].map((value) => `'${value.replaceAll("'", "''")}'`);
    return this.all(`INSERT INTO events BY NAME SELECT ${filename} AS filename, ${text} AS error`);
  }

  /** Makes the tables of all files, of the rules and of their matches. */
  async #makeOthers(load, rules, password) {
    const [decoder] = load.decoders;
    const make = async (table, streams) => {
      await this.all(`DROP TABLE IF EXISTS ${table}`);
      await this.#insert(load, table, streams, true);
    };
    const { tasks: all } = await this.#tasks(this.#list(), "evtx_file_metadata", false);
    const metadata = { function: "evtx_file_metadata", arguments: { password } };
    const streams = [];
    for (const tasks of partitions(all)) streams.push(...(await this.#read(load, decoder, metadata, tasks)));
    const tables = streams.filter((stream) => stream instanceof Uint8Array);
    await make("files", tables.length ? tables : await this.#scan(decoder, metadata));
    if (rules.length === 0) return;
    await make("rules", await this.#scan(decoder, { function: "evtx_sigma_rules", files: rules }));
    // Correlations need the events of all files.
    const { tasks: logs } = await this.#tasks(this.#list(), "read_evtx", false);
    await make("matches", await this.#scan(decoder, { function: "evtx_sigma", arguments: { password, rules }, tasks: logs }));
  }

  #stop(load, why) {
    if (!load || load.stopped) return;
    load.stopped = why;
    load.decoders.forEach((decoder) => decoder.end());
  }

  #progress(load, isLast = false) {
    const now = performance.now();
    if (!isLast && now - load.told < PROGRESS) return;
    load.told = now;
    this.dispatchEvent(new CustomEvent("progress", { detail: load.progress(isLast) }));
  }
}

/** The tasks of each partition. */
function partitions(tasks) {
  const found = [];
  for (const task of tasks) (found[task.partition] ??= []).push(task);
  return found.filter(Boolean);
}

/** What a load reads, and how far it is. */
class Load {
  stopped = null;
  decoders = [];
  told = 0;
  rows = 0;
  inserted = Promise.resolve();
  files = new Map();
  #partitions;
  #taken = 0;
  #handed = 0;

  constructor(tasks) {
    for (const task of tasks) {
      const path = pathOf(task);
      const file = this.files.get(path) ?? { path, bytes: 0, done: 0, inserted: 0, tasks: 0, state: "waiting", error: task.why ?? null };
      file.bytes += bytesOf(task);
      file.tasks++;
      this.files.set(path, file);
    }
    this.#partitions = partitions(tasks).map((tasks) => ({ tasks, streams: null }));
  }

  /** The next partition; undefined if all are taken. */
  next() {
    const partition = this.#partitions[this.#taken++];
    for (const task of partition?.tasks ?? []) this.files.get(pathOf(task)).state = "reading";
    return partition;
  }

  /** A task was read. */
  finish(task) {
    const file = this.files.get(pathOf(task));
    file.done += bytesOf(task);
    if (file.done >= file.bytes && file.state === "reading") file.state = file.error ? "failed" : "done";
  }

  /** A task cannot be read. */
  fail(task, error) {
    Object.assign(this.files.get(pathOf(task)), { state: "failed", error });
  }

  /** Inserts the partitions whose turn it is. */
  insert(work) {
    this.inserted = this.inserted.then(async () => {
      for (let partition; (partition = this.#partitions[this.#handed])?.streams && !this.stopped; this.#handed++) {
        await work(partition);
        for (const task of partition.tasks) this.files.get(pathOf(task)).inserted++;
        partition.streams = [];
      }
    });
  }

  /** The paths of the files that are not in the table as a whole. */
  unfinished() {
    return [...this.files.values()].filter((file) => file.inserted < file.tasks).map(({ path }) => path);
  }

  /** Waits while more partitions are decoded than the decoders should be ahead. */
  async room() {
    if (this.#taken - this.#handed > 2 * this.decoders.length) await this.inserted;
  }

  progress(isLast) {
    const files = [...this.files.values()];
    if (isLast && this.stopped) files.forEach((file) => file.state === "done" || (file.state = "cancelled"));
    const sum = (name) => files.reduce((sum, file) => sum + file[name], 0);
    return { files, rows: this.rows, done: isLast ? 1 : sum("done") / Math.max(1, sum("bytes")), stopped: this.stopped };
  }
}

/** How many bytes a task reads. */
function bytesOf({ slots, size = 0 }) {
  return slots ? Math.min((slots[1] ?? Infinity) * 65536, size) - Math.min(slots[0] * 65536, size) : size;
}
