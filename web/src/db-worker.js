// The worker of DuckDB: the tables, the macros, and the functions that these need.

import { BROWSER_RUNTIME, createDuckDB, ResultStreamIterator, TokenType, VoidLogger } from "@duckdb/duckdb-wasm/blocking";
import { RecordBatchReader, Table, tableToIPC, Utf8 } from "apache-arrow";

import { Core, response } from "./core.js";
import { quote } from "./dom.js";
import { defineFunctions, withAdvice } from "./functions.js";
import { callScalarUDF } from "./udf.js";

/** The most memory that DuckDB takes; the decoders and the page need the rest of a gigabyte. */
const MEMORY = "640MB";

/** How long a query may run until the worker looks for messages, in milliseconds. */
const POLL = 50;

/** The rows of a part of a file. */
const ROWS = 122_880;

const SEMICOLON = 59;

/** The first words of statements that change nothing: those that can be a part of another one, and those that need parentheses there. */
const READING = ["SELECT", "FROM", "WITH", "VALUES", "TABLE", "PIVOT", "UNPIVOT"], NAMING = ["DESCRIBE", "SHOW", "SUMMARIZE"];

/** The first words of statements about extensions. */
const LOADING = ["INSTALL", "LOAD"];

/** The longest text of a field in a row of the grid, in characters. */
const SHOWN = 500;

let db, connection, core, module;
let cancelled = false;

/** The table with the rows of the last query, and its order if that was sorted. */
let result = { table: "evtx_result", order: null };

/** Starts DuckDB. `packed` is the packed module, `module` that of the core. */
async function start(message) {
  module = message.module;
  core = new Core(module);
  // DuckDB warns of each file that it makes.
  console.warn = () => {};
  BROWSER_RUNTIME.callScalarUDF = callScalarUDF;
  // The only thing that DuckDB fetches.
  globalThis.fetch = () => response(message.packed);
  const main = { mainModule: "data:," };
  db = await createDuckDB({ mvp: main, eh: main }, new VoidLogger(), BROWSER_RUNTIME);
  await db.instantiate();
  reset();
}

/** Opens an empty database. */
function reset() {
  connection?.close();
  db.reset();
  db.open({ query: { queryPollingInterval: POLL }, arrowLosslessConversion: true });
  connection = db.connect();
  const run = (sql) => connection.query(sql);
  run(`SET memory_limit = '${MEMORY}'; SET autoinstall_known_extensions = false; SET autoload_known_extensions = false`);
  defineFunctions((name, work) => connection.createScalarFunction(name, new Utf8(), work), ask, run);
  run("CREATE TABLE known (filename VARCHAR, topic VARCHAR, fact VARCHAR, account VARCHAR, source VARCHAR, target VARCHAR, detail VARCHAR)");
}

/** The answer of the core to a command, as bytes. After a trap there is a new core. */
function ask(command, input) {
  try {
    return core.bytes(command, input);
  } catch (error) {
    if (error.trapped) core = new Core(module);
    throw error;
  }
}

const inDoubleQuotes = (name) => `"${name.replaceAll('"', '""')}"`;

/** Lets messages arrive. */
const pause = () => new Promise((resolve) => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = resolve;
  port2.postMessage(null);
});

/** Runs a statement until it ends or is cancelled. Returns its record batches. */
async function run(sql) {
  const batches = [];
  for await (const batch of stream(sql)) batches.push(batch);
  return batches;
}

/** The record batches of a statement. */
async function* stream(sql) {
  yield* await connection.useUnsafe(async (bindings, id) => {
    let header = bindings.startPendingQuery(id, sql, true);
    while (header === null) {
      await pause();
      if (cancelled) {
        bindings.cancelPendingQuery(id);
        throw new Error("The query was cancelled.");
      }
      header = bindings.pollPendingQuery(id);
    }
    return RecordBatchReader.from(new ResultStreamIterator(bindings, id, header));
  });
}

/** The statements of a text, without parts that are only comments. */
function statements(sql) {
  const bytes = new TextEncoder().encode(sql);
  const { offsets, types } = db.tokenize(sql);
  const found = [];
  let [start, isEmpty] = [0, true];
  offsets.forEach((at, index) => {
    const isEnd = types[index] === TokenType.OPERATOR && bytes[at] === SEMICOLON;
    if (isEnd && !isEmpty) found.push([start, at]);
    if (isEnd) [start, isEmpty] = [at + 1, true];
    else isEmpty &&= types[index] === TokenType.COMMENT;
  });
  if (!isEmpty) found.push([start, bytes.length]);
  return found.map((range) => new TextDecoder().decode(bytes.subarray(...range)));
}

/** Runs statements. The rows of the last one become the result, whose `reads` is whether all statements only read. */
async function query({ sql }) {
  const started = performance.now();
  const word = (statement) => /^(?:\s|--.*|\(|\/\*[^]*?\*\/)*(\w*)/.exec(statement)[1].toUpperCase();
  const all = statements(sql).map((statement) => {
    if (!LOADING.includes(word(statement))) return statement;
    if (!/\bevtx\b/i.test(statement)) throw new Error("The page has no extensions of DuckDB.");
    return `SELECT '${word(statement)} does nothing here: the page already has the extension evtx.' AS message`;
  });
  if (all.length === 0) throw new Error("There is no statement.");
  const reads = all.every((statement) => [...READING, ...NAMING].includes(word(statement)));
  const last = all.pop();
  for (const statement of all) await run(statement);
  result = { table: "evtx_result", order: null };
  if (/^\s*FROM\s+events\s*$/i.test(last) && (await isWhole("events"))) {
    // Without a copy.
    result.table = "events";
  } else if (NAMING.includes(word(last))) {
    await make(last, "FROM (", ")");
  } else if (READING.includes(word(last))) {
    await make(last);
  } else {
    const batches = await run(last);
    await run("DROP TABLE IF EXISTS evtx_result");
    connection.insertArrowTable(new Table(batches), { name: "evtx_result", schema: "main", create: true });
  }
  const columns = rows(await run(`SELECT column_name AS name, column_type AS type FROM (DESCRIBE ${result.table})`));
  const [{ count }] = rows(await run(`SELECT count(*)::INTEGER AS count FROM ${result.table}`));
  result.columns = columns;
  return { columns, rows: count, seconds: (performance.now() - started) / 1000, reads };
}

/** Whether the IDs of a table's rows have no gaps, as after a deletion. */
async function isWhole(table) {
  const [{ whole }] = rows(await run(`SELECT count(*) = coalesce(max(rowid) + 1, 0) AS whole FROM ${table}`));
  return whole;
}

/** Makes the result of a query, between the parts of a statement. */
async function make(sql, start = "", end = "") {
  try {
    await run(`CREATE OR REPLACE TABLE evtx_result AS ${start}\n${sql}\n${end}`);
  } catch (error) {
    // The user's text starts in the second line.
    throw new Error(readable(error.message).replace(/^LINE (\d+):/m, (_, line) => `LINE ${line - 1}:`));
  }
  // The rows are told apart by their IDs.
  await run('ALTER TABLE evtx_result RENAME rowid TO rowid_1').catch(() => {});
}

/** An error of DuckDB, which is sometimes JSON, without advice that does not help here. */
function readable(message) {
  let text = message;
  // DuckDB then looked for an extension.
  if (/^(function signature mismatch|unreachable|null function)/.test(message)) text = `DuckDB failed (${message}). Time zones, and dates of now(), are not on this page.`;
  if (message.startsWith('{"exception_type"')) {
    const { exception_type, exception_message } = JSON.parse(message);
    text = `${exception_type} Error: ${exception_message}`;
  }
  return withAdvice(text).replace(/\n*Please try installing[^]*?autoload_known_extensions=1;/, " The page has no extensions of DuckDB.")
    .replace(/Table with name (matches|rules) does not exist!(\nDid you mean[^\n]*)?/, "There is no table $1 yet: drop Sigma rules (.yml).")
    .replace(/\n*Possible solutions:[^]*/, " Ask for fewer rows or columns.");
}

/** The rows of batches as objects. */
const rows = (batches) => batches.flatMap((batch) => batch.toArray().map((row) => row.toJSON()));

/** The rows of the result from one to before another one, as texts. */
async function page({ start, end, sort, whole }) {
  const { table, columns } = result;
  let source = `FROM ${table} WHERE rowid >= ${start} AND rowid < ${end} ORDER BY rowid`;
  if (sort) {
    const order = `${sort.column} ${sort.descending ? "DESC" : "ASC"}`;
    if (result.order !== order) {
      const name = inDoubleQuotes(columns[sort.column].name);
      await run(`CREATE OR REPLACE TABLE evtx_order AS SELECT rowid AS place FROM ${table}
                 ORDER BY ${name} ${sort.descending ? "DESC" : "ASC"} NULLS LAST, rowid`);
      result.order = order;
    }
    source = `FROM (SELECT rowid AS number, place FROM evtx_order WHERE rowid >= ${start} AND rowid < ${end}) AS wanted
              JOIN ${table} ON ${table}.rowid = wanted.place ORDER BY number`;
  }
  const shown = columns.map(({ name }) => {
    const text = `${table}.${inDoubleQuotes(name)}::VARCHAR`;
    return whole ? text : `left(${text}, ${SHOWN})`;
  });
  const batches = await run(`SELECT ${shown.join(", ")} ${source}`);
  const texts = batches.map((batch) => columns.map((_, index) => batch.getChildAt(index)));
  return texts.flatMap((vectors) => Array.from(vectors[0] ?? [], (_, row) => vectors.map((vector) => vector.get(row))));
}

/** Adds rows to tables, which are Arrow IPC streams. With `create`, it makes the tables. Returns the number of events. */
function insert({ parts, create }) {
  const made = new Set();
  for (const { table, bytes } of parts) {
    connection.insertArrowFromIPCStream(bytes, { name: table, schema: "main", create: create && !made.has(table) });
    made.add(table);
  }
  if (made.has("matches")) connection.query("ALTER TABLE matches ALTER rule_level TYPE evtx_level");
  return made.has("events") ? Number(connection.query("SELECT count(*) AS rows FROM events").get(0).rows) : 0;
}

/** Adds the facts in a file, CSV, JSON or Parquet, to the table `known`, in place of those that it has from this path. */
async function know({ path, file, columns }) {
  await run(`DELETE FROM known WHERE filename = ${quote(path)}`);
  let bytes = new Uint8Array(await file.arrayBuffer());
  let source = "evtx_known";
  try {
    if (/\.parquet$/i.test(path)) {
      connection.insertArrowFromIPCStream(ask({ do: "rows", columns }, bytes), { name: source, schema: "main", create: true });
    } else {
      const isJson = !/\.csv$/i.test(path);
      if (isJson) bytes = new TextEncoder().encode(asCsv(objects(new TextDecoder().decode(bytes)), columns));
      db.registerFileBuffer("known.csv", bytes);
      source = `read_csv('known.csv', header := true, all_varchar := true${isJson ? `, delim := ',', quote := '"', escape := '"'` : ""})`;
    }
    await run(`INSERT INTO known SELECT ${quote(path)}, ${columns.map((name) => `${name}::VARCHAR`).join(", ")} FROM ${source}`);
  } finally {
    db.dropFile("known.csv");
    await run("DROP TABLE IF EXISTS evtx_known");
  }
}

/** The objects in a text: a list of them in JSON, or one in each line. */
function objects(text) {
  try {
    return [JSON.parse(text)].flat();
  } catch {
    return text.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line));
  }
}

/** Columns of objects as CSV. */
function asCsv(objects, columns) {
  const cell = (value) => (value === null || value === undefined ? "" : `"${String(value).replaceAll('"', '""')}"`);
  return [columns, ...objects.map((object) => columns.map((name) => cell(object[name])))].join("\n");
}

/** The rows of the result as a CSV file. */
async function csv() {
  const parts = [];
  const [{ count }] = rows(await run(`SELECT count(*)::INTEGER AS count FROM ${result.table}`));
  for (let start = 0; start === 0 || start < count; start += ROWS) {
    await run(`COPY (FROM ${result.table} WHERE rowid >= ${start} AND rowid < ${start + ROWS} ORDER BY rowid)
               TO 'part.csv' (HEADER ${start === 0})`);
    parts.push(db.copyFileToBuffer("part.csv"));
    db.dropFile("part.csv");
  }
  return new Blob(parts, { type: "text/csv" });
}

/** The rows of the result as a Parquet file. */
async function parquet() {
  const parts = [];
  // The libraries between DuckDB and the core have no enums and no intervals. Parquet has no integers of 128 bits: DuckDB writes doubles.
  const cast = (type) => (/\b(ENUM|INTERVAL)\b/.test(type) ? "::VARCHAR" : /^U?HUGEINT$/.test(type) ? "::DOUBLE" : "");
  const columns = result.columns.map(({ name, type }) => `${inDoubleQuotes(name)}${cast(type)} AS ${inDoubleQuotes(name)}`);
  for await (const batch of stream(`SELECT ${columns.join(", ")} FROM ${result.table}`)) {
    parts.push(ask({ do: "parquet", first: parts.length === 0 }, tableToIPC(new Table([batch]), "stream")));
  }
  parts.push(ask({ do: "parquet" }));
  return new Blob(parts, { type: "application/vnd.apache.parquet" });
}

/** A value for JSON. DuckDB-Wasm has bytes in place of booleans in structs. */
const plain = (key, value) => (key.startsWith("has_") ? Boolean(value) : typeof value === "bigint" ? Number(value) : value);

/** The report on the case: the page of the macro evtx_case_report_of. */
async function report() {
  const hasMatches = rows(await run("FROM duckdb_tables() WHERE table_name = 'matches'")).length > 0;
  const items = rows(await run(`FROM evtx_case_report_rows('events', ${hasMatches ? "'matches'" : "NULL"}, 'files', 'known')`));
  const data = JSON.stringify({ zone: null, items: items.map((item) => Object.values(item).find((value) => value !== null)) }, plain);
  return new Blob([ask({ do: "report", data })], { type: "text/html" });
}

const CALLS = {
  start,
  reset,
  query,
  page,
  insert,
  know,
  ping: () => null,
  all: async ({ sql }) => rows(await run(sql)),
  save: ({ format }) => ({ csv, parquet, report })[format](),
};

let last = Promise.resolve();

onmessage = ({ data: { id, name, ...message } }) => {
  if (name === "cancel") {
    cancelled = true;
    return;
  }
  last = last.then(async () => {
    cancelled = false;
    try {
      postMessage({ id, result: (await CALLS[name](message)) ?? null });
      // A transaction ends with its query.
      if (name === "query") await run("COMMIT").catch(() => {});
    } catch (error) {
      if (name === "query") await run("ROLLBACK").catch(() => {});
      postMessage({ id, error: readable(error.message) });
    }
  });
};
