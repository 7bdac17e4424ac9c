// The functions that the macros need and that DuckDB-Wasm does not have: those of the extension, and of DuckDB's extension json,
// which is not among the files of DuckDB-Wasm. A function takes and returns texts.

import { ofTexts } from "./udf.js";

/** The value at a path such as `$.a."b c"[0]`, `/a/0` or `a`, of a text in JSON; undefined if there is none. */
function valueAt(json, path) {
  let value;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  const keys = path.startsWith("$")
    ? [...path.matchAll(/\."((?:[^"\\]|\\.)*)"|\.([^.[]+)|\[(\d+)\]/g)].map((part) => part[1] ?? part[2] ?? Number(part[3]))
    : path.startsWith("/")
      ? path.slice(1).split("/")
      : [path];
  for (const key of keys) {
    value = value !== null && typeof value === "object" && Object.hasOwn(value, key) ? value[key] : undefined;
  }
  return value;
}

function typeOf(value) {
  if (value === null) return "NULL";
  if (Array.isArray(value)) return "ARRAY";
  return { object: "OBJECT", string: "VARCHAR", boolean: "BOOLEAN", number: Number.isInteger(value) ? "BIGINT" : "DOUBLE" }[typeof value];
}

// Each item of a list is its length in bytes, a colon and its text; NULL is a hyphen.
const packed = (list, item) => `array_to_string(list_transform(${list}, lambda x: ${item}), '')`;
const packedText = (text) => `coalesce(strlen(${text}) || ':' || ${text}, '-')`;

// The texts of what an event says about a logon session, and of a session.
const STEP = ["kind", "act", "session", "account", "domain", "sid", "address", "workstation", "method", "process", "privileges"];
const SESSION = ["kind", "computer", "user_name", "user_sid", "remote_host", "workstation", "authentication", "process", "logon_id", "privileges"];
const texts = (names) => names.map((name) => `${name} VARCHAR`);
const EVENT = [
  ...["x.event_id", "x.number", "epoch_ns(x.time)", "epoch_ns(x.log_time)", "x.digest", "x.is_contested::INTEGER", "x.computer"],
  ...[...STEP, "step", "logon_type"].map((name) => `x.step.${name}`),
];
// What events tell of names of computers.
const COMPUTER = ["x.file", "x.computer", "x.channel", "epoch_ns(x.time)", "x.old_host", "x.new_host", "x.own_sid"];

// A record, and its place in a log.
const pairs = (map) => packed(`map_entries(${map})`, `${packedText("x.key")} || ${packedText("x.value")}`);
const RECORD = ["computer", "channel", "provider", "event_record_id", "time_created", "event_id", "user_sid", "event_data", "user_data"];
const recordTexts = `computer::VARCHAR, channel::VARCHAR, provider::VARCHAR, event_record_id::VARCHAR, epoch_ns(time_created)::VARCHAR,
  event_id::VARCHAR, user_sid::VARCHAR, ${pairs("event_data")}, user_data::VARCHAR`;
const PLACED = [
  ...["digest", "machine", "channel", "file", "record_id", "number"].map((name) => `x.${name}`),
  ...["time", "old_time", "new_time", "wake_time"].map((name) => `epoch_ns(x.${name})`), "x.is_late::INTEGER",
];
const FACT = ["computer", "topic", "level", "fact", "account", "account_sid", "source", "target", "detail"];
const START = ["x.computer", "x.number", "epoch_ns(x.log_time)", "x.event_id", "x.process"];
const packedRows = (list, columns) => packed(list, columns.map((value) => packedText(`(${value})::VARCHAR`)).join(" || "));

/** What people use in place of functions over files. */
const INSTEAD = {
  read_evtx: "the table events",
  evtx_file_metadata: "the table files",
  evtx_facts: "the table facts",
  evtx_case_summary: "the table case_summary",
  evtx_search: "the table events",
  evtx_case_report: "the button Save the report as HTML",
  evtx_sigma: "the table matches",
  evtx_sigma_of: "the table matches",
  evtx_sigma_rules: "the table rules",
};

/** What the core defines: statements, and the names of the functions that are not on the page, because they read files. */
let definitions;

/** An error of DuckDB, which may be that one of these functions does not exist, with what to use in its place. */
export const withAdvice = (error) => error.replace(/(?:\w+ )*?Function with name (\w+) does not exist!(\nDid you mean[^\n]*)?/i, (whole, called) => {
  const name = called.toLowerCase();
  if (!definitions.missing.includes(name)) return whole;
  const twin = definitions.statements.some((sql) => sql.startsWith(`CREATE MACRO IF NOT EXISTS ${name}_of(`))
    ? `${name}_of('${name.startsWith("evtx_sigma") ? "matches" : "events"}')` : null;
  const place = INSTEAD[name] ?? twin;
  return `There is no ${name} on this page${place ? `: files are read when you drop them. Use ${place}.` : ". The events are in the table events."}`;
});

/** Macros in place of those of the extension, and of its functions. */
const MACROS = [
  '"->"(json, path) AS json_extract(json, path)',
  '"->>"(json, path) AS json_extract_string(json, path)',
  "evtx_code_name(source, code) AS evtx_web_code_name(source, code::VARCHAR)",
  "evtx_code_names(source, code) AS CAST(evtx_web_code_names(source, code::VARCHAR) AS VARCHAR[])",
  "evtx_code_meaning(source, code) AS evtx_web_code_meaning(source, code::VARCHAR)",
  "evtx_code_text(source, code) AS evtx_web_code_text(source, code::VARCHAR)",
  `evtx_event_roles(provider, event_id, event_data, user_data, computer, user_sid) AS CAST(evtx_web_event_roles(
     provider, event_id::VARCHAR, ${pairs("event_data")},
     user_data::VARCHAR, computer, user_sid) AS STRUCT(
       event VARCHAR, topic VARCHAR, level VARCHAR, account VARCHAR, domain VARCHAR, user_sid VARCHAR, remote_host VARCHAR,
       process VARCHAR, target VARCHAR, detail VARCHAR, details VARCHAR, claims_own_name BOOLEAN, is_windows BOOLEAN))`,
  `evtx_event_row(index, log, record_id, time_created, provider, event_id, event_data, user_data, computer, user_sid) AS CAST(evtx_web_event_row(
     index, log::VARCHAR, record_id::VARCHAR, epoch_ns(time_created)::VARCHAR, provider, event_id::VARCHAR, ${pairs("event_data")},
     user_data::VARCHAR, computer, user_sid) AS STRUCT(${texts(["event", "user_name", "full_name", "user_sid", "remote_host", "process", "details"])}))`,
  `evtx_user_data_fields(user_data) AS CAST(evtx_web_user_data_fields(user_data::VARCHAR) AS
     STRUCT(element VARCHAR, attributes MAP(VARCHAR, VARCHAR), fields MAP(VARCHAR, VARCHAR)))`,
  `evtx_decoded_texts(fields) AS CAST(evtx_web_decoded_texts(
     ${pairs("fields")}) AS STRUCT(field VARCHAR, encoding VARCHAR, text VARCHAR)[])`,
  // The report itself says if the browser does not know the time zone.
  "evtx_checked_time_zone(time_zone) AS time_zone",
  "evtx_other_machine(host, computer, written_by) AS evtx_web_other_machine(host::VARCHAR, computer::VARCHAR, written_by::VARCHAR)",
  `evtx_record_stamp(${RECORD.join(", ")}) AS list_transform([CAST(evtx_web_record_stamp(${recordTexts}) AS STRUCT(
       digest HUGEINT, old_time BIGINT, new_time BIGINT, wake_time BIGINT, is_late BOOLEAN, old_host VARCHAR, new_host VARCHAR, own_sid VARCHAR))],
     lambda x: {digest: x.digest, old_time: make_timestamp_ns(x.old_time), new_time: make_timestamp_ns(x.new_time), wake_time: make_timestamp_ns(x.wake_time),
       is_late: x.is_late, old_host: x.old_host, new_host: x.new_host, own_sid: x.own_sid})[1]`,
  `evtx_log_places(records) AS list_transform(CAST(evtx_web_log_places(${packedRows("records", PLACED)}) AS STRUCT(
       digest HUGEINT, machine VARCHAR, log_time BIGINT, is_contested BOOLEAN, is_woken BOOLEAN)[]),
     lambda x: {digest: x.digest, machine: x.machine, log_time: make_timestamp_ns(x.log_time), is_contested: x.is_contested, is_woken: x.is_woken})`,
  `evtx_logon_step(provider, event_id, data, user_sid) AS CAST(evtx_web_logon_step(
     provider, event_id::VARCHAR, ${pairs("data")}, user_sid)
     AS STRUCT(${texts(STEP)}, step UTINYINT, logon_type INTEGER))`,
  `evtx_logon_sessions(events, all_accounts) AS list_transform(CAST(evtx_web_logon_sessions(
     ${packedRows("events", EVENT)}, all_accounts::INTEGER::VARCHAR)
     AS STRUCT(${texts(SESSION)}, logon_time BIGINT, logoff_time BIGINT, logon_log_time BIGINT, logoff_log_time BIGINT,
       logon_number UBIGINT, logoff_number UBIGINT, logon_type INTEGER, claims_own_name BOOLEAN,
       connections STRUCT(connected BIGINT, disconnected BIGINT, remote_host VARCHAR)[], other_logon_ids VARCHAR[], is_accepted BOOLEAN,
       is_contested BOOLEAN)[]),
     lambda x: {${SESSION.map((name) => `${name}: x.${name}`)}, logon_time: make_timestamp_ns(x.logon_time), logoff_time: make_timestamp_ns(x.logoff_time),
       logon_log_time: make_timestamp_ns(x.logon_log_time), logoff_log_time: make_timestamp_ns(x.logoff_log_time),
       logon_number: x.logon_number, logoff_number: x.logoff_number,
       logon_type: x.logon_type, claims_own_name: x.claims_own_name, connections: list_transform(x.connections, lambda y: {
         connected: make_timestamp_ns(y.connected), disconnected: make_timestamp_ns(y.disconnected), remote_host: y.remote_host}),
       other_logon_ids: x.other_logon_ids, is_accepted: x.is_accepted, is_contested: x.is_contested})`,
  `evtx_log_hours(filename, record_id, computer, channel, provider, event_record_id, time_created, event_id, ends) AS evtx_web_log_hours(
     filename::VARCHAR, record_id::VARCHAR, computer::VARCHAR, channel::VARCHAR, provider::VARCHAR, event_record_id::VARCHAR,
     epoch_ns(time_created)::VARCHAR, event_id::VARCHAR, ends::INTEGER::VARCHAR)`,
  `evtx_machines(hours, told) AS CAST(evtx_web_machines(${packedRows("hours", ["x"])}, ${packedRows("told", COMPUTER)}) AS STRUCT(
       filename VARCHAR, computer VARCHAR, machine VARCHAR)[])`,
  `evtx_record_names(log, record_id, ${RECORD.join(", ")}) AS evtx_web_record_names(log::VARCHAR, record_id::VARCHAR, ${recordTexts})`,
  `evtx_account_names(names) AS list_transform(CAST(evtx_web_account_names(
     ${packedRows("names", ["x"])}) AS STRUCT(
       computer VARCHAR, user_sid VARCHAR, user_name VARCHAR, first_seen BIGINT, last_seen BIGINT, is_renamed BOOLEAN, name_source VARCHAR)[]),
     lambda x: {computer: x.computer, user_sid: x.user_sid, user_name: x.user_name, first_seen: make_timestamp_ns(x.first_seen),
       last_seen: make_timestamp_ns(x.last_seen), is_renamed: x.is_renamed, name_source: x.name_source})`,
  `evtx_account_index(names) AS evtx_web_account_index(${packedRows("names", ["x"])})`,
  `evtx_fact_row(filename, record_id, log, ${RECORD.join(", ")}) AS evtx_web_fact_row(filename::VARCHAR, record_id::VARCHAR, log::VARCHAR, ${recordTexts})`,
  `evtx_fact_list(rows, hours, wrapped) AS list_transform(CAST(evtx_web_fact_list(${["rows", "hours", "wrapped"].map((list) => packedRows(list, ["x"]))}) AS STRUCT(
       ${texts(FACT)}, first BIGINT, last BIGINT, events UBIGINT,
       evidence STRUCT(filename VARCHAR, record_id UBIGINT, event_id UINTEGER, time BIGINT)[], doubts VARCHAR[])[]),
     lambda x: {${FACT.map((name) => `${name}: x.${name}`)}, first: make_timestamp_ns(x.first), last: make_timestamp_ns(x.last), events: x.events,
       evidence: list_transform(x.evidence, lambda y: {
         filename: y.filename, record_id: y.record_id, event_id: y.event_id, time: make_timestamp_ns(y.time)}), doubts: x.doubts})`,
  `evtx_start_list(events) AS CAST(evtx_web_start_list(${packedRows("events", START)}) AS STRUCT(computer VARCHAR, first UBIGINT)[])`,
];

/**
 * Defines the functions, the types and the macros. `define` takes the name of a function and what computes it from packed
 * rows, `ask` runs a command of the core, and `run` a statement.
 */
export function defineFunctions(define, ask, run) {
  // Errors name what the page has.
  definitions = JSON.parse(new TextDecoder().decode(ask({ do: "definitions" })));
  for (const name of ["code_name", "code_names", "code_meaning", "code_text", "event_roles", "event_row", "record_names", "record_stamp", "log_places", "logon_step", "logon_sessions", "log_hours", "machines", "account_names", "account_index", "fact_row", "fact_list", "start_list", "user_data_fields", "other_machine", "decoded_texts"]) {
    define(`evtx_web_${name}`, (bytes, rows, count) => ask({ do: "function", name, count }, bytes));
  }
  define("json_extract", ofTexts((json, path) => JSON.stringify(valueAt(json, path))));
  define("json_extract_string", ofTexts((json, path) => {
    const value = valueAt(json, path) ?? null;
    return typeof value === "string" || value === null ? value : JSON.stringify(value);
  }));
  define("json_type", ofTexts((json) => typeOf(valueAt(json, "$"))));
  for (const macro of MACROS) run(`CREATE MACRO ${macro}`);
  definitions.statements.forEach(run);
}
