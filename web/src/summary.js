// The case summary: a card per machine, from evtx_case_summary_of.

import { element, number, pause, quote, some, table, visible } from "./dom.js";

const MOST = 10, CARDS = 50;

// The lists of a machine, the most telling first, with the columns to show.
const LISTS = {
  cleared_logs: "*",
  failed_logons: `machine, account, source, failures, most_in_a_minute AS in_a_minute, array_to_string([concat(r.reason, ' (', r.failures, ')') FOR r IN reasons], ', ')
    AS reasons, date_trunc('second', first) AS first, date_trunc('second', last) AS last, concat_ws(' ', date_trunc('second', success.time), success.account) AS later_success`,
  remote_logons: "* REPLACE (array_to_string(kinds, ', ') AS kinds, date_trunc('second', first) AS first, date_trunc('second', last) AS last)",
  new_services: "*", new_tasks: "*", account_changes: "*", unexpected_shutdowns: "*", clock_changes: "*", time_zones: "*", gaps: "*", broken_times: "*",
  wrapped_logs: "*", unused_logs: "*", boots: "*", names: "*",
};
// Lists of plain values, and what these are.
const PLAIN = { boots: "time", unexpected_shutdowns: "time", wrapped_logs: "log", unused_logs: "log" };

const title = (name) => name[0].toUpperCase() + name.slice(1).replaceAll("_", " ");

// The column or columns with a row per entry of a list.
const rowsOf = (name) => `unnest(${name}${PLAIN[name] ? `) AS ${PLAIN[name]}` : ", max_depth := 2)"}`;

/** Makes the table `case_summary`, and draws it in `parent`. `query(sql)` shows a list as a result. Returns the number of machines. */
export async function showSummary(parent, engine, query) {
  parent.textContent = "Summing up…";
  await engine.all(`CREATE OR REPLACE TABLE case_summary AS FROM evtx_case_summary_of('events', table_of_files := 'files')
    ORDER BY events DESC, computer`);
  const names = Object.keys(LISTS);
  const machines = await engine.all(`SELECT computer, events::VARCHAR AS events, logs::VARCHAR AS logs, strftime(first_event::TIMESTAMP, '%Y-%m-%d %H:%M:%S') AS first,
    strftime(last_event::TIMESTAMP, '%Y-%m-%d %H:%M:%S') AS last, ${names.map((name) => `coalesce(len(${name}), 0)::VARCHAR AS ${name}`).join(", ")} FROM case_summary LIMIT ${CARDS}`);
  const lists = {};
  for (const name of names) {
    if (!machines.some((machine) => machine[name] !== "0")) continue;
    lists[name] = Map.groupBy(await engine.all(`SELECT machine::VARCHAR AS machine, COLUMNS(* EXCLUDE (machine))::VARCHAR
      FROM (SELECT ${LISTS[name]} FROM (SELECT rowid AS machine, ${rowsOf(name)} FROM (SELECT rowid, ${name}[:${MOST}] AS ${name} FROM case_summary LIMIT ${CARDS})))`),
    ({ machine }) => machine);
  }
  const card = (machine, i) => {
    const full = names.filter((name) => machine[name] !== "0"), empty = names.filter((name) => machine[name] === "0");
    return element("section", "", { className: "card" },
      element("h2", machine.computer),
      element("p", `${some(machine.events, "event")} in ${some(machine.logs, "log")}${machine.first ? `, ${machine.first} to ${machine.last} UTC` : ""}`, { className: "weak" }),
      ...full.map((name) => element("details", "", { open: names.indexOf(name) < 6 },
        element("summary", "", {}, `${title(name)} `, element("span", number(machine[name]), { className: "weak" })),
        table((lists[name].get(String(i)) ?? []).map(({ machine: _, ...row }) => row)),
        Number(machine[name]) > MOST || names.indexOf(name) < 6 ? element("button", Number(machine[name]) > MOST ? "Show all" : "Query", { type: "button",
          ariaLabel: `Query: ${title(name)} of ${visible(machine.computer)}`,
          onclick: () => query(`SELECT ${rowsOf(name)}\nFROM   case_summary\nWHERE  computer = ${quote(machine.computer)};`) }) : "")),
      empty.length ? element("p", `None found: ${empty.map((name) => title(name).toLowerCase()).join(", ")}.`, { className: "weak" }) : "");
  };
  parent.replaceChildren(machines.length ? "" : element("p", "There are no events.", { className: "weak" }));
  for (const [i, machine] of machines.entries()) {
    parent.append(card(machine, i));
    await pause();
  }
  const [{ count }] = await engine.all("SELECT count(*)::VARCHAR AS count FROM case_summary");
  if (count > CARDS) parent.append(element("button", `Show all ${number(count)} machines`, { type: "button",
    onclick: () => query("FROM case_summary;") }));
  return Number(count);
}
