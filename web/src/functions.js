// The functions that the macros need and that DuckDB-Wasm does not have: those of the extension, and of DuckDB's extensions
// json and icu, which are not among the files of DuckDB-Wasm. A function takes and returns texts.

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

/** How many seconds a time zone is ahead of UTC at a time, in seconds since 1970-01-01 UTC. */
function offset(zone, seconds) {
  const parts = new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longOffset" }).formatToParts(Number(seconds) * 1000);
  const found = /GMT(?:([+-])(\d+):(\d+)(?::(\d+))?)?/.exec(parts.find(({ type }) => type === "timeZoneName").value);
  const [, sign, ...numbers] = found;
  const [hours, minutes, rest] = numbers.map((text) => Number(text ?? 0));
  return (sign === "-" ? -1 : 1) * (hours * 3600 + minutes * 60 + rest);
}

// Each item of a list is its length in bytes, a colon and its text; NULL is a hyphen.
const packed = (list, item) => `array_to_string(list_transform(${list}, lambda x: ${item}), '')`;
const packedText = (text) => `coalesce(strlen(${text}) || ':' || ${text}, '-')`;

/** Macros in place of those of the extension, and of its functions. */
const MACROS = [
  '"->"(json, path) AS json_extract(json, path)',
  '"->>"(json, path) AS json_extract_string(json, path)',
  "evtx_code_name(source, code) AS evtx_web_code('name', source, code::VARCHAR)",
  "evtx_code_names(source, code) AS CAST(evtx_web_code('names', source, code::VARCHAR) AS VARCHAR[])",
  "evtx_code_meaning(source, code) AS evtx_web_code('meaning', source, code::VARCHAR)",
  "evtx_code_text(source, code) AS evtx_web_code('text', source, code::VARCHAR)",
  `evtx_event_details(provider, event_id, fields, root, shown) AS evtx_web_details(
     provider, event_id::VARCHAR, ${packed("fields", `${packedText("x.key")} || ${packedText("x.value")}`)},
     root, ${packed("shown", packedText("x"))})`,
  `evtx_data_rows(table_name) AS TABLE
   SELECT * EXCLUDE content, CASE WHEN user_data IS NULL THEN event_data ELSE content.fields END AS data,
     content.attributes AS attributes, content.element AS element
   FROM (SELECT *, CAST(evtx_web_user_data(user_data::VARCHAR) AS
           STRUCT(element VARCHAR, attributes MAP(VARCHAR, VARCHAR), fields MAP(VARCHAR, VARCHAR))) AS content
         FROM query_table(table_name))`,
  `evtx_offset_rows(table_name) AS TABLE
   SELECT *, evtx_web_offset(zone, epoch(time)::BIGINT::VARCHAR)::DOUBLE AS utc_offset_seconds FROM query_table(table_name)`,
];

/**
 * Defines the functions, the types and the macros. `define` takes the name of a function and what computes it from packed
 * rows, `ask` runs a command of the core, and `run` a statement.
 */
export function defineFunctions(define, ask, run) {
  for (const name of ["code", "details", "user_data"]) {
    define(`evtx_web_${name}`, (bytes, rows, count) => ask({ do: "function", name, count }, bytes));
  }
  define("evtx_web_offset", ofTexts((zone, seconds) => String(offset(zone, seconds))));
  define("json_extract", ofTexts((json, path) => JSON.stringify(valueAt(json, path))));
  define("json_extract_string", ofTexts((json, path) => {
    const value = valueAt(json, path) ?? null;
    return typeof value === "string" || value === null ? value : JSON.stringify(value);
  }));
  define("json_type", ofTexts((json) => typeOf(valueAt(json, "$"))));
  for (const macro of MACROS) run(`CREATE MACRO ${macro}`);
  JSON.parse(new TextDecoder().decode(ask({ do: "definitions" }))).forEach(run);
}
