// The recipes of the cookbook that the page can run: over its tables in place of files.

import { readFileSync } from "node:fs";

const FILES = String.raw`(?:'[^']*'|\[[^\]]*\])`, RULES = new RegExp(`, rules := ${FILES}`, "g");

/** Calls of functions over files, and what has their rows in the page. */
const TABLES = [
  [new RegExp(String.raw`\bread_evtx\(${FILES}\)`, "g"), "events"],
  [new RegExp(String.raw`\bevtx_file_metadata\(${FILES}\)`, "g"), "files"],
  [new RegExp(String.raw`\bevtx_sigma\(${FILES}, rules := ${FILES}\)`, "g"), "matches"],
  [new RegExp(String.raw`\bevtx_sigma_(summary|timeline)\(${FILES}, rules := ${FILES}\)`, "g"), "evtx_sigma_$1_of('matches')"],
  [new RegExp(String.raw`\bevtx_facts(?:\(${FILES}\)|_of\('events'\))`, "g"), "facts"],
  [new RegExp(String.raw`\bevtx_case_summary\(${FILES}\)`, "g"), "evtx_case_summary_of('events', table_of_files := 'files')"],
  [new RegExp(String.raw`\b(evtx_(?:accounts|logons|process_tree|script_blocks|timeline|metrics|decoded))\(${FILES}\)`, "g"), "$1_of('events')"],
  // DuckDB-Wasm compares an enum with a text as texts.
  [/\blevel ([<>]=?) ('\w+')/g, "level $1 $2::evtx_fact_level"],
];

/** What reads or writes other files, or needs columns or functions that the page does not have. */
const OTHER = /samples|COPY|CREATE|read_|\.(?:csv|parquet|json)|event_id :=|to_json|json_|evtx_sigma_of|redact|AT TIME ZONE/;

/** The recipes in the text of the cookbook: objects with a title and SQL. */
export function recipes(path) {
  const found = [];
  let title = "";
  for (const [, heading, sql] of readFileSync(path, "utf8").matchAll(/^##+ (.*)$|^```sql\n([^]*?)^```$/gm)) {
    if (heading) title = heading;
    else {
      // A recipe can name a part of it `events`.
      const name = (table) => (table === "events" && /\bevents AS \(/.test(sql) ? "main.events" : table);
      const text = TABLES.reduce((text, [call, table]) => text.replaceAll(call, name(table)), sql.trim());
      // A recipe that compares files has no meaning for a table of all.
      const compares = new Set(sql.replaceAll(RULES, "").match(/'samples[^']*'/g)).size > 1 && !sql.includes("[");
      if (!OTHER.test(text) && !compares) found.push({ title, sql: text });
    }
  }
  return found;
}
