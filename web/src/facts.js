// The facts of the case: its machines, from evtx_case_machines, and what happened on them, by level, topic and text.

import { element, number, quote, some, table, visible } from "./dom.js";

const MACHINES = 50, FACTS = 500;
const LEVELS = ["info", "low", "medium", "high"], CHOICES = ["All levels", "Above info", "Medium and above", "High"];

/**
 * Makes the tables `facts` and `case_summary`, and draws them in `parent`. `query(sql)` shows rows as a result. Returns the number of
 * machines.
 */
export async function showFacts(parent, engine, query) {
  parent.textContent = "Looking for facts…";
  await engine.all(`CREATE OR REPLACE TABLE facts AS FROM evtx_facts_of('events', table_of_files := 'files', table_of_known := 'known')
    ORDER BY first, computer`);
  await engine.all("CREATE OR REPLACE TABLE case_names AS FROM evtx_machines_of('events')");
  await engine.all(`CREATE OR REPLACE TABLE case_summary AS
    SELECT machines.*, coalesce(facts, 0) AS facts, coalesce(high_facts, 0) AS high_facts
    FROM evtx_case_machines('events', 'case_names') AS machines
    LEFT JOIN (SELECT computer, count(*) AS facts, count(*) FILTER (level = 'high') AS high_facts FROM facts WHERE level <> 'info' GROUP BY computer) USING (computer)
    ORDER BY high_facts DESC, facts DESC, events DESC, computer; DROP TABLE case_names`);
  const seconds = (name) => `date_trunc('second', ${name}::TIMESTAMP)::VARCHAR AS ${name}`;
  const machines = await engine.all(`SELECT computer, array_to_string(names, ', ') AS names, ${seconds("first_event")}, ${seconds("last_event")}, events::VARCHAR AS events,
    logs::VARCHAR AS logs, facts::VARCHAR AS facts, high_facts::VARCHAR AS high_facts FROM case_summary LIMIT ${MACHINES}`);
  const [{ count }] = await engine.all("SELECT count(*)::VARCHAR AS count FROM case_summary");
  const topics = await engine.all("SELECT DISTINCT topic::VARCHAR AS topic FROM facts ORDER BY ALL");

  const button = (text, sql, ariaLabel = text) => element("button", text, { type: "button", ariaLabel, onclick: () => query(sql) });
  const cells = {
    facts: ({ computer, facts }) => button(number(facts), `FROM  facts\nWHERE computer = ${quote(computer)} AND level <> 'info'\nORDER BY first;`,
      `Query the facts of ${visible(computer)}`),
    level: ({ level }) => element("span", level, { className: `level level${LEVELS.indexOf(level) + 1}` }),
    fact: ({ fact }) => element("span", fact, { className: "fact" }),
    evidence: ({ evidence, fact }) => button("Records", `FROM   events\nSEMI JOIN (SELECT unnest(evidence, max_depth := 2) FROM facts WHERE rowid = ${evidence})\n`
      + "       USING (filename, record_id, event_id)\nORDER BY time_created;", `Query the records of ${visible(fact)}`),
  };
  const cell = (key, row) => cells[key]?.(row);

  const level = element("select", "", { ariaLabel: "Level" }, ...CHOICES.map((text, at) => new Option(text, LEVELS[at], at === 1, at === 1)));
  const topic = element("select", "", { ariaLabel: "Topic" }, new Option("All topics", ""), ...topics.map((found) => new Option(found.topic)));
  const text = element("input", "", { type: "search", placeholder: "Text", ariaLabel: "Text" });
  const heading = element("h2"), found = element("div"), all = element("span");
  let draws = 0;
  async function draw() {
    const mine = ++draws;
    const where = [`level >= '${level.value}'::evtx_fact_level`, topic.value && `topic = ${quote(topic.value)}`,
      text.value && `contains(lower(concat_ws(' ', computer, fact, account, source, target, detail)), lower(${quote(text.value)}))`].filter(Boolean).join("\n  AND ");
    const [{ count }] = await engine.all(`SELECT count(*)::VARCHAR AS count FROM facts WHERE ${where}`);
    const facts = await engine.all(`SELECT ${seconds("first")}, level::VARCHAR AS level, computer, topic::VARCHAR AS topic, fact, account, source, target, detail,
      events::VARCHAR AS events, array_to_string(doubts, ', ') AS doubts, rowid::VARCHAR AS evidence FROM facts WHERE ${where} ORDER BY rowid LIMIT ${FACTS}`);
    if (mine !== draws) return;
    if (!facts.some(({ doubts }) => doubts)) facts.forEach((fact) => delete fact.doubts);
    heading.textContent = `What happened: ${some(count, "fact")}${count > FACTS ? `, of which the first ${FACTS} are shown` : ""}`;
    found.replaceChildren(table(facts, cell));
    all.replaceChildren(button("Query these facts", `FROM  facts\nWHERE ${where}\nORDER BY first;`));
  }
  level.onchange = topic.onchange = text.oninput = () => draw().catch((error) => { found.replaceChildren(element("p", error.message, { className: "error lines" })); });
  await draw();
  parent.replaceChildren(
    machines.length ? table(machines, cell) : element("p", "There are no events.", { className: "weak" }),
    count > MACHINES ? button(`Show all ${some(count, "machine")}`, "FROM case_summary;") : "",
    heading, element("p", "", { className: "buttons" }, level, topic, text, all), found);
  return Number(count);
}
