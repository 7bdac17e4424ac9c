// The engine of the page: workers that decode logs, and one with DuckDB.

import { CHUNK, HEADER, unpacked } from "./core.js";
import { quote } from "./dom.js";
import { Remote } from "./rpc.js";
import { isSame } from "./same.js";

/** Makes a worker; a Blob with a packed module (build.mjs). */
const { coreWorker, dbWorker, core, duckdb, sample } = globalThis.evtxAssets;

/** About how many bytes of logs a worker decodes at once. Their rows are in memory until they are in the table. */
const PARTITION = 32 << 20;

/** How many bytes of logs fit into memory with all columns. Their table takes about as many. */
const FITS = 600 * 2 ** 20;

/** How many workers decode. DuckDB takes longer to insert what they decode, and archives take the memory of each. */
const DECODERS = Math.max(1, Math.min(2, (navigator.hardwareConcurrency ?? 2) - 1));

/** How many partitions wait for DuckDB at most. */
const AHEAD = 2;

/** How long DuckDB may take to end a query, in milliseconds. */
const PATIENCE = 5000;

/** The shortest time between two events `progress`, in milliseconds. */
const PROGRESS = 100;

/** How often the sample is decoded and inserted before logs are dropped, and how many copies of it are a log. */
const ROUNDS = 40, COPIES = 8;

/** The tables with rows of each file. */
const TABLES = ["events", "files"];

/** The columns of facts to leave out, and how many bytes at both ends of a file are searched for their names. */
const COLUMNS = ["topic", "fact", "account", "source", "target", "detail"], END = 1 << 16;

const isRule = (path) => /\.ya?ml$/i.test(path);

/** Whether a file names all columns of facts to leave out, at its start or its end. */
async function namesColumns(file) {
  const ends = await new Blob([file.slice(0, END), file.slice(-END)]).text().catch(() => "");
  return COLUMNS.every((name) => new RegExp(`\\b${name}\\b`).test(ends));
}

/** What a file is: a `rule`, a `list` of facts to leave out, or a `log`, also in an archive. Other tools leave such files in folders. */
async function kindOf(path, file) {
  if (isRule(path)) return "rule";
  const isList = /\.(csv|jsonl?|ndjson|parquet)$/i.test(path) && (!path.includes("/") || await namesColumns(file));
  return isList ? "list" : "log";
}

/** What a path names at the top: a folder, or the file itself. */
const top = (path) => path.split("/")[0];

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
  /** Whether nothing was dropped yet. */
  #isIdle = true;
  /** What is being loaded. */
  #load = null;
  /** The tasks that read the files in the table, each file whole. */
  #tasks = [];
  /** The columns of `read_evtx`. */
  columns;
  /** The options of the events in the table; undefined if there are none. */
  #options;

  /** Starts DuckDB and the core. */
  static async start() {
    const engine = new Engine();
    engine.#planner = new Remote(coreWorker);
    engine.#module = await engine.#planner.call({ name: "compile", packed: core() });
    [engine.columns] = await Promise.all([engine.#namesOfColumns(), engine.#startDatabase()]);
    engine.#warmUp().catch(() => {});
    return engine;
  }

  /** Decodes and inserts a sample until files are dropped: a browser compiles well only what has run for a while, for all workers. */
  async #warmUp() {
    const bytes = await new Response(await unpacked(sample())).blob();
    const log = new File([bytes.slice(0, HEADER), ...Array(COPIES).fill(bytes.slice(HEADER))], "sample.evtx");
    const scans = { evtx_sample: { function: "read_evtx" }, evtx_sample_file: { function: "evtx_file_metadata" } };
    const decoder = new Remote(coreWorker);
    try {
      await decoder.call({ name: "files", module: this.#module, files: [{ path: log.name, file: log }] });
      for (let round = 0; round < ROUNDS && this.#isIdle; round++) {
        const parts = await this.#scan(decoder, scans, [{ file: log.name, size: log.size }]);
        await this.#db.call({ name: "insert", create: true, parts }, parts.map(({ bytes }) => bytes.buffer));
        for (const table of Object.keys(scans)) await this.all(`DROP TABLE ${table}`);
      }
    } finally {
      decoder.end();
    }
  }

  async #namesOfColumns() {
    await this.#planner.call({ name: "files", module: this.#module, files: [] });
    return this.#planner.call({ name: "run", command: { do: "open", function: "read_evtx" } });
  }

  async #startDatabase() {
    const db = new Remote(dbWorker);
    await db.call({ name: "start", packed: duckdb(), module: this.#module });
    this.#db = db;
  }

  /**
   * What `load` would read of files: the number of logs among them, their size in bytes, and the number of rules; a warning if the
   * events may not fit into memory.
   */
  async plan(files) {
    this.#isIdle = false;
    const fresh = await this.#fresh(files);
    const { tasks, failures, skipped } = await this.#planTasks(fresh);
    const bytes = tasks.reduce((sum, task) => sum + bytesOf(task), 0);
    const all = this.#bytes + bytes;
    const rules = files.filter(({ path }) => isRule(path)).length;
    const fits = all <= FITS;
    const warning = fits ? null : `The logs have ${Math.round(all / 2 ** 20)} MiB, and about ${FITS / 2 ** 20} MiB fit into memory ` +
      "with all columns. Choose the columns or the events that you need.";
    return { logs: new Set(tasks.map(pathOf)).size, bytes, rules, warning, files, fresh, tasks, failures, skipped };
  }

  /**
   * Loads the files of a plan that were not loaded before into the tables `events` and `files`, and facts to leave out into `known`.
   * Then, if there are rules, makes the tables `rules` and `matches` from all files. With other options than before, it reads all files
   * again.
   * `errors` are files that could not even be listed; they become rows. Returns null if there are no tables, as it was cancelled
   * before.
   */
  async load(plan, { columns = null, event_id = null, provider = null, password = null, errors = [] } = {}) {
    const started = performance.now();
    this.#cancelRunning();
    const options = JSON.stringify([columns, event_id, provider]);
    if (this.#options !== undefined && this.#options !== options) {
      const files = [...this.#list(), ...plan.files];
      await this.reset();
      plan = await this.plan(files);
    }
    const { fresh, tasks, failures, skipped } = plan;
    const load = new Load(tasks);
    this.#load = load;
    let matches = null;
    for (const { path, file } of fresh) this.#files.set(path, file);
    await this.#forget(fresh);
    this.#tasks.push(...whole(tasks));
    const rules = [...this.#files.keys()].filter(isRule);
    const filter = { password, ...(event_id && { event_id, sample_size: 0 }), ...(provider && { provider }) };
    try {
      if (load.stopped) throw new Error(load.stopped);
      load.decoders = Array.from({ length: DECODERS }, () => new Remote(coreWorker));
      await Promise.all(load.decoders.map((decoder) => decoder.call({ name: "files", module: this.#module, files: this.#list() })));
      const [decoder] = load.decoders;
      // With certain events, there would be a column for each of their fields.
      columns ??= this.columns;
      const scans = {
        events: { function: "read_evtx", arguments: filter, columns },
        files: { function: "evtx_file_metadata", arguments: { password } },
      };
      if (this.#options === undefined) {
        await this.#insert(load, await this.#scan(decoder, scans), true);
        this.#options = options;
      }
      await this.#addErrors("events", [...failures, ...errors]);
      await this.#addErrors("files", [...failures, ...errors, ...skipped]);
      for (const { path, file } of fresh.filter(({ kind }) => kind === "list")) await this.#know(path, file);
      // While a decoder works on a partition, the browser reads the next one.
      await Promise.all([...load.decoders, ...load.decoders].map((decoder) => this.#decode(load, decoder, scans)));
      if (rules.length > 0 && !load.stopped) matches = await this.#match(load, rules, password);
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
      this.#tasks = this.#tasks.filter((task) => !this.#unfinished.has(pathOf(task)));
    }
    if (this.#options === undefined) return null;
    const why = load.stopped === "memory" ? "the memory for the table was full" : "it was cancelled";
    await this.#addErrors("files", load.unfinished().map((path) => ({ path, error: `not read to its end: ${why}` })));
    this.#progress(load, true);
    const [counts] = await this.all(`SELECT (SELECT count(*) FROM events)::INTEGER AS rows, count(*)::INTEGER AS files,
      (count(*) FILTER (starts_with(error, 'not read')))::INTEGER AS unread, (SELECT count(*) FROM known)::INTEGER AS known FROM files`);
    return { ...counts, seconds: (performance.now() - started) / 1000, stopped: load.stopped, matches };
  }

  /** Ends the load. What was loaded stays. */
  cancelLoad() {
    this.#load?.stop("cancelled");
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
    this.#load?.stop("cancelled");
    db.end();
    await this.#startDatabase();
    this.#forgetAll();
    this.dispatchEvent(new Event("lost"));
  }

  /** The rows of a small query as objects. */
  all(sql) {
    return this.#db.call({ name: "all", sql });
  }

  /** The result as a Blob: `csv` or `parquet`; or the HTML `report` on the case. */
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
    this.#tasks = [];
    this.#options = undefined;
    this.#bytes = 0;
  }

  /** The files that were not loaded. Other files with the same path get a number before it. */
  async #fresh(files) {
    const known = new Map(this.#files);
    const fresh = [];
    for (const { path, file } of files) {
      const kind = await kindOf(path, file);
      let unique = path, isKnown = false;
      for (let number = 2; known.has(unique); number++) {
        isKnown = await isSame(known.get(unique), file);
        // A rule or a list that was changed replaces the one before.
        if (isKnown || kind !== "log") break;
        unique = `(${number}) ${path}`;
      }
      if (isKnown) continue;
      known.set(unique, file);
      fresh.push({ path: unique, file, kind });
    }
    return fresh;
  }

  /** The list of all files, as a worker takes it. */
  #list(fresh = []) {
    return [...[...this.#files].map(([path, file]) => ({ path, file })), ...fresh];
  }

  /** The tasks that read files, and the files that cannot be read. Large files are several tasks. */
  async #planTasks(fresh) {
    await this.#planner.call({ name: "files", module: this.#module, files: this.#list(fresh) });
    const sizes = new Map(this.#list(fresh).map(({ path, file }) => [path, file.size]));
    const paths = [...new Set(fresh.filter(({ kind }) => kind === "log").map(({ path }) => top(path)))];
    const failures = [];
    const partitions = await this.#partitions("read_evtx", paths, (path, error) => failures.push({ path, error: sizes.has(path) ? error : "not read: the folder has no logs" }));
    // A file that cannot be read is a row, also if it was dropped by itself.
    const wanted = new Set(fresh.map(({ path }) => path));
    const isWanted = (path) => wanted.has(path) || (path.includes("/") && isWanted(path.slice(0, path.lastIndexOf("/"))));
    const tasks = partitions.flatMap((tasks, partition) => tasks.map((task) =>
      ({ ...task, named: false, size: task.size ?? sizes.get(pathOf(task)), partition })));
    const all = await this.#partitions("evtx_file_metadata", paths, () => {});
    const planned = new Set(tasks.map(pathOf));
    const skipped = all.flat().filter(({ unreadable }) => unreadable && isWanted(unreadable) && !planned.has(unreadable))
      .map(({ unreadable, why }) => ({ path: unreadable, error: `not read: ${why}` }));
    const isSkipped = ({ path }) => skipped.some((file) => file.path.startsWith(`${path}/`));
    return { tasks: tasks.filter((task) => isWanted(pathOf(task))), failures: failures.filter((failure) => !isSkipped(failure)), skipped };
  }

  /** The partitions of what a function reads of paths. `fail` gets each path that it cannot read, and the reason. */
  async #partitions(name, paths, fail) {
    const plan = (files) => this.#planner.call({ name: "run", command: { do: "plan", function: name, files, target: PARTITION, splits: true } });
    // One by one, to find those that cannot be read.
    const each = async (path) => plan([path]).catch((error) => { fail(path, error.message); return []; });
    return plan(paths).catch(async () => (await Promise.all(paths.map(each))).flat());
  }

  /** Decodes partitions until none are left. */
  async #decode(load, decoder, scans) {
    for (let partition; !load.stopped && (partition = await load.next()); ) {
      const { tasks, tables } = partition;
      partition.parts = await this.#read(load, decoder, Object.fromEntries(tables.map((table) => [table, scans[table]])), tasks);
      if (load.stopped) break;
      if (tables.includes("events")) tasks.forEach((task) => load.finish(task));
      load.insert(async ({ parts }) => {
        load.rows = await this.#insert(load, parts.filter(({ bytes }) => bytes)) ?? load.rows;
        for (const part of parts.filter(({ error }) => error)) await this.#addErrors(part.table, [part]);
        this.#progress(load);
      });
    }
    await load.inserted;
  }

  /** The rows of tasks, as Arrow streams of tables. A task that ends the core is an error instead. */
  async #read(load, decoder, scans, tasks) {
    try {
      return await this.#scan(decoder, scans, tasks);
    } catch (error) {
      if (load.stopped) return [];
      const tables = Object.keys(scans);
      const parts = [];
      if (tasks.length > 1) {
        for (const task of tasks) parts.push(...(await this.#read(load, decoder, scans, [task])));
      } else if (tables.length > 1) {
        for (const table of tables) parts.push(...(await this.#read(load, decoder, { [table]: scans[table] }, tasks)));
      } else {
        load.fail(tasks[0], error.message);
        parts.push({ table: tables[0], path: pathOf(tasks[0]), error: `not read: ${error.message}` });
      }
      return parts;
    }
  }

  /** The rows of each scan, as Arrow streams of its table. */
  async #scan(decoder, scans, tasks = []) {
    const parts = [];
    await decoder.call({ name: "scan", scans, tasks }, [], (part) => parts.push(part));
    return parts;
  }

  /** Adds rows to tables. Returns how many events there are; undefined if they do not fit into memory. */
  async #insert(load, parts, create = false) {
    try {
      return await this.#db.call({ name: "insert", create, parts }, parts.map(({ bytes }) => bytes.buffer));
    } catch (error) {
      if (!/out of memory|memory_limit|failed to allocate/i.test(error.message)) throw error;
      const text = "The memory for the table is full, so not all events were loaded. Choose the columns or the events that you need.";
      load.stop("memory");
      this.dispatchEvent(new CustomEvent("full", { detail: { text } }));
      return undefined;
    }
  }

  /** Removes the rows of files that are about to be read again. */
  async #forget(files) {
    for (const { path } of files.filter(({ path }) => this.#unfinished.delete(path))) {
      for (const table of TABLES) await this.all(`DELETE FROM ${table} WHERE filename = ${quote(path)} OR starts_with(filename, ${quote(`${path}/`)})`);
    }
  }

  /** Adds a row per file that was not read. */
  async #addErrors(table, files) {
    if (files.length === 0) return;
    const rows = files.map(({ path, error }) => `(${quote(path)}, ${quote(error)})`);
    await this.all(`INSERT INTO ${table} BY NAME FROM (VALUES ${rows.join(", ")}) AS file(filename, error)`);
  }

  /**
   * Makes the tables of the rules and of their matches in all files: correlations need the events of all. Returns the number of
   * matches, without the rows about damage among them. Without a rule that can be used, there is no table of matches.
   */
  async #match(load, rules, password) {
    const make = async (table, command, tasks) => {
      await this.#insert(load, await this.#scan(load.decoders[0], { [table]: command }, tasks), true);
    };
    await this.all("DROP TABLE IF EXISTS rules; DROP TABLE IF EXISTS matches");
    await make("rules", { function: "evtx_sigma_rules", files: rules });
    const [{ used }] = await this.all("SELECT count(*) FILTER (error IS NULL) > 0 AS used FROM rules");
    if (!used) return 0;
    await make("matches", { function: "evtx_sigma", arguments: { password, rules } }, this.#tasks);
    return (await this.all("SELECT count(rule_file)::INTEGER AS rows FROM matches"))[0].rows;
  }

  /** Adds the facts of a list to the table `known`. A list that cannot be read can be dropped again. */
  async #know(path, file) {
    try {
      if (!await namesColumns(file)) throw new Error(`a list of known facts has the columns ${COLUMNS.join(", ")}`);
      await this.#db.call({ name: "know", path, file, columns: COLUMNS });
    } catch (error) {
      this.#files.delete(path);
      this.#unfinished.add(path);
      await this.#addErrors("files", [{ path, error: `not read: ${error.message}` }]);
    }
  }

  #progress(load, isLast = false) {
    const now = performance.now();
    if (!isLast && now - load.told < PROGRESS) return;
    load.told = now;
    this.dispatchEvent(new CustomEvent("progress", { detail: load.progress(isLast) }));
  }
}

/** Tasks that read the files of tasks whole. */
function whole(tasks) {
  const first = tasks.filter(({ slots, file }, index) => !slots || file !== tasks[index - 1]?.file);
  return first.map((task) => ({ ...task, slots: null }));
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
      const file = this.files.get(path) ?? { path, bytes: 0, done: 0, tasks: 0, state: "waiting", error: task.why ?? null };
      file.bytes += bytesOf(task);
      this.files.set(path, file);
    }
    const isPart = ({ slots }) => Boolean(slots);
    const partitions = Map.groupBy(tasks, (task) => `${task.partition} ${isPart(task)}`).values();
    this.#partitions = [
      ...Array.from(partitions, (tasks) => ({ tasks, tables: isPart(tasks[0]) ? ["events"] : TABLES })),
      ...whole(tasks.filter(isPart)).map((task) => ({ tasks: [task], tables: ["files"] })),
    ];
    for (const partition of this.#partitions) {
      partition.insertion = Promise.withResolvers();
      for (const task of partition.tasks) this.files.get(pathOf(task)).tasks++;
    }
  }

  /** The next partition, once few enough are decoded that are not in the tables; undefined if all are taken. */
  async next() {
    const number = this.#taken++;
    await this.#partitions[number - AHEAD - 2 * this.decoders.length]?.insertion.promise;
    const partition = this.#partitions[number];
    for (const task of partition?.tasks ?? []) {
      const file = this.files.get(pathOf(task));
      if (file.state === "waiting") file.state = "reading";
    }
    return partition;
  }

  /** The events of a task were read. */
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
      for (let partition; (partition = this.#partitions[this.#handed])?.parts && !this.stopped; this.#handed++) {
        await work(partition);
        for (const task of partition.tasks) this.files.get(pathOf(task)).tasks--;
        partition.parts = [];
        partition.insertion.resolve();
      }
    });
  }

  /** Ends the work of the decoders. */
  stop(why) {
    if (this.stopped) return;
    this.stopped = why;
    this.decoders.forEach((decoder) => decoder.end());
    for (const { insertion } of this.#partitions) insertion.resolve();
  }

  /** The paths of the files that are not in the tables as a whole. */
  unfinished() {
    return [...this.files.values()].filter((file) => file.tasks > 0).map(({ path }) => path);
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
  return slots ? Math.min((slots[1] ?? Infinity) * CHUNK, size) - Math.min(slots[0] * CHUNK, size) : size;
}
