// The page: drop logs, watch them load, and query them.
//
// IDs that tests use: #drop, #files, #files-input, #folder, #folder-input, #options, #reset, #engine (the state of the database);
// #loading, #progress, #cancel, #loaded, #reading-list; #choose (the dialog), #choose-why, #choose-events, #choose-providers,
// #choose-password, #choose-columns, #choose-read; #forget (the dialog of #reset); #timeline, #time-all; #tabs with #tab-facts,
// #tab-events, #tab-matches and #tab-damage for #facts, #events, #matches and #damage; #sql (editable text), #run, #stop, #recipes,
// #status, #error, #grid, #detail, #save-parquet, #save-csv, #save-report. `document.body.dataset.state` is starting, ready, loading or loaded.

import { $, download, element, number, quote, size, some, table, visible } from "./dom.js";
import { chosen, dropped } from "./drop.js";
import { makeEditor } from "./editor.js";
import { Engine } from "./engine.js";
import { showFacts } from "./facts.js";
import { makeGrid } from "./grid.js";
import recipes from "./recipes.js";
import { makeTimeline, timeText } from "./timeline.js";

// The columns that most macros need.
const FEW = ["record_id", "time_created", "event_id", "level", "provider", "channel", "computer", "event_data", "user_data", "user_sid", "event_record_id", "error",
  "filename"];
// How many files the page lists, and how many rows its own tables have.
const LISTED = 100, ROWS = 500;

const START = "FROM events;";

let engine, editor, grid, timeline, files = [], words = [], runs = 0, running = false, stopped = false, isEarly = false;
// The query whose rows are shown, to be run again after a load; null if it changed something.
let shown = START;
// What was dropped while something else was done.
const later = [];
const options = { columns: null, event_id: null, provider: null, password: null };

const state = (name) => { document.body.dataset.state = name; };
function fail(error) {
  $("error").textContent = visible(error?.message ?? error, true);
  $("error").hidden = false;
}

/** Runs SQL and shows its rows. */
async function run(sql) {
  const mine = ++runs;
  running = true;
  stopped = false;
  $("stop").disabled = false;
  $("save-parquet").disabled = $("save-csv").disabled = true;
  $("error").hidden = true;
  $("status").textContent = "Running…";
  try {
    const result = await engine.query(sql);
    if (mine !== runs) return;
    $("status").textContent = `${some(result.rows, "row")} in ${result.seconds.toFixed(2)} s`;
    $("save-parquet").disabled = $("save-csv").disabled = false;
    shown = result.reads ? sql : null;
    await grid.show(result);
  } catch (error) {
    if (mine !== runs) return;
    $("status").textContent = stopped ? "Stopped." : "";
    if (!stopped) fail(error);
  } finally {
    if (mine === runs) {
      running = false;
      $("stop").disabled = true;
      loadNext();
    }
  }
}
function stop() {
  if (!running) return false;
  stopped = true;
  engine.cancelQuery();
  return true;
}

/** Puts SQL in the box, shows it and runs it. */
function query(sql) {
  select("events");
  editor.show(sql);
  return editor.run();
}

function select(name, focus = false) {
  for (const tab of $("tabs").children) {
    const isIt = tab.id === `tab-${name}`;
    tab.ariaSelected = isIt;
    tab.tabIndex = isIt ? 0 : -1;
    $(tab.getAttribute("aria-controls")).hidden = !isIt;
    if (isIt && focus) tab.focus();
  }
  if (name === "events") grid.draw();
}

/** Learns the names that the box completes. */
async function learn() {
  const found = await engine.all(`SELECT table_name AS label, 'type' AS type, 'table' AS detail FROM duckdb_tables()
    UNION ALL SELECT DISTINCT column_name, 'property', 'column' FROM duckdb_columns() WHERE NOT internal
    UNION ALL SELECT DISTINCT function_name, 'function', if(function_type LIKE '%macro', 'macro', function_type) FROM duckdb_functions()
    WHERE function_name SIMILAR TO '[a-z_0-9]+'`);
  words = found.map(({ label, type, detail }) => ({ label, type, detail, boost: type === "function" ? (label.startsWith("evtx_") ? 0 : -1) : 2 }));
}

function drawProgress({ files: all, rows, done }) {
  const of = (...states) => all.filter((file) => states.includes(file.state));
  const failed = of("failed"), finished = of("done").length + failed.length;
  $("progress").value = done;
  $("loaded").textContent = `${number(finished)} of ${some(all.length, "file")}${rows ? `, ${some(rows, "row")}` : ""}${failed.length ? `, ${number(failed.length)} with errors` : ""}`;
  // Few elements, whatever the number of files: those with errors and those at work come first.
  const shown = $("reading").open ? [...failed, ...of("reading"), ...of("cancelled"), ...of("waiting"), ...of("done")].slice(0, LISTED) : [];
  $("reading-list").replaceChildren(...shown.map((file) => element("li", "", { className: file.state },
    element("span", file.path), element("progress", "", { max: file.bytes || 1, value: file.state === "done" ? file.bytes || 1 : file.done, ariaLabel: file.state }),
    element("span", file.error ?? file.state, { className: file.error ? "error" : "weak" }))),
  all.length > LISTED ? element("li", `and ${number(all.length - LISTED)} more`, { className: "weak" }) : "");
  if (done > 0 && !isEarly && editor.text().trim() === START) {
    // The first rows, while the others are on their way.
    isEarly = true;
    $("case").hidden = false;
    select("events");
    run(START);
  }
}

const list = (text, by) => text.split(by).map((part) => part.trim()).filter(Boolean);
const chosenEvents = () => list($("choose-events").value, /[\s,]+/).map(Number);

/** Shows a dialog. Returns the value of the button that closes it; otherwise an empty text. */
async function answer(dialog) {
  dialog.returnValue = "";
  dialog.showModal();
  await new Promise((resolve) => { dialog.addEventListener("close", resolve, { once: true }); });
  return dialog.returnValue;
}

/** Asks what to read. Returns whether to read it. */
async function choose(why = "") {
  $("choose-why").textContent = why;
  $("choose-why").hidden = !why;
  if (why && !options.columns) options.columns = FEW;
  for (const box of $("choose-columns").querySelectorAll("input")) box.checked = !options.columns || options.columns.includes(box.value);
  $("choose-events").value = options.event_id?.join(", ") ?? "";
  $("choose-providers").value = options.provider?.join("\n") ?? "";
  $("choose-password").value = options.password ?? "";
  if (await answer($("choose")) !== "read") return false;
  const columns = [...$("choose-columns").querySelectorAll("input:checked")].map((box) => box.value);
  const events = chosenEvents(), providers = list($("choose-providers").value, /\n/);
  Object.assign(options, { columns: columns.length && columns.length < engine.columns.length ? columns : null, event_id: events.length ? events : null,
    provider: providers.length ? providers : null, password: $("choose-password").value || null });
  return true;
}

const isBusy = () => running || !["ready", "loaded"].includes(document.body.dataset.state);

/** Reads what was dropped meanwhile. */
function loadNext() {
  if (later.length && !isBusy()) load(later.shift());
}

/** Reads files, and shows what is in them. */
async function load({ files: added, errors = [] }) {
  if (isBusy()) {
    later.push({ files: added, errors });
    if (running) $("engine").textContent = "The files are read once the query has ended. Esc stops it.";
    return;
  }
  if (!added.length && !errors.length) {
    $("engine").textContent = "No files were dropped.";
    return;
  }
  state("loading");
  let result = null;
  try {
    const plan = await engine.plan(added);
    if (plan.warning && !(await choose(plan.warning))) return;
    files = [...files, ...added];
    isEarly = false;
    $("engine").textContent = "";
    $("loading").hidden = $("progress-bar").hidden = false;
    $("drop").classList.add("small");
    $("progress").value = 0;
    $("loaded").textContent = `${some(plan.logs, "log")}, ${size(plan.bytes)}${plan.rules ? `, ${some(plan.rules, "rule")}` : ""}`;
    result = await engine.load(plan, { ...options, errors });
    const ends = { cancelled: "Cancelled: only what was read until then is here. ", memory: "Memory is full: only what was read until then is here. " };
    if (result) $("loaded").textContent = `${ends[result.stopped] ?? ""}${read(result)} in ${result.seconds.toFixed(1)} s`;
    else $("engine").textContent = "Cancelled: nothing was read.";
  } catch (error) {
    $("case").hidden = false;
    select("events");
    fail(error);
  } finally {
    $("loading").hidden = !result?.stopped;
    $("progress-bar").hidden = true;
    $("reset").hidden = !files.length;
    if (!result) {
      state(files.length ? "loaded" : "ready");
      queueMicrotask(loadNext);
    }
  }
  if (!result) return;
  await show(result);
  state("loaded");
  if (later.length) return loadNext();
  if (result.stopped === "memory" && await choose("Memory is full. Choose fewer columns, or only some events, and read the files again.")) await again();
}

/** What is in the tables. */
function read({ rows, files: all, unread, known }) {
  const { columns, event_id, provider } = options;
  const only = [event_id && `event ${event_id.join(", ")}`, provider?.join(", "), columns && some(columns.length, "column")].filter(Boolean);
  return `${some(rows, "row")} from ${some(all - unread, "file")}${unread ? `, ${number(unread)} not read` : ""}${only.length ? `, only ${only.join(" and ")}` : ""}${known ? `, without ${some(known, "known fact")}` : ""}`;
}

async function again() {
  const all = files;
  files = [];
  await engine.reset();
  await load({ files: all });
}

/** Shows the tables. */
async function show(result) {
  $("about").textContent = `${read(result)}. Nothing leaves this machine.`;
  const isUntouched = editor.text().trim() === START;
  $("case").hidden = false;
  $("tab-matches").hidden = result.matches === null;
  if (isUntouched) select("facts");
  // One after the other: DuckDB has one worker.
  const steps = [
    () => shown && run(shown),
    () => timeline.show("(SELECT min(time_created) AS first, max(time_created) AS last FROM events)"),
    async () => {
      const machines = await showFacts($("facts-list"), engine, query).catch((error) => {
        $("facts-list").replaceChildren();
        throw error;
      });
      $("about").textContent = `${some(machines, "machine")}, ${read(result)}. Nothing leaves this machine.`;
      // Without broken times.
      await timeline.show("(SELECT first_event AS first, last_event AS last FROM case_summary)");
    },
    showFiles, () => (result.matches === null ? null : showMatches(result.matches)), learn,
  ];
  for (const step of steps) {
    await step()?.catch((error) => {
      const missing = FEW.filter((name) => options.columns && !options.columns.includes(name));
      const text = missing.length ? `Not shown without the columns ${missing.join(", ")}` : `Not shown: ${error.message}`;
      $("facts-list").append(element("p", text, { className: "error lines" }));
    });
  }
}

async function showFiles() {
  const rows = await engine.all(`SELECT filename AS file, error, file_size::VARCHAR AS bytes, records::VARCHAR AS records, is_wrapped::VARCHAR AS wrapped, is_dirty::VARCHAR AS left_open,
    damaged_chunks::VARCHAR AS damaged_chunks, missing_records::VARCHAR AS missing_records FROM files ORDER BY error IS NULL, filename LIMIT ${ROWS}`);
  const [{ files: all, damaged }] = await engine.all("SELECT count(*)::VARCHAR AS files, count(error)::VARCHAR AS damaged FROM files");
  $("tab-damage").textContent = `Files (${number(all)}${damaged > 0 ? `, ${number(damaged)} with errors` : ""})`;
  $("damage").replaceChildren(
    element("p", `The column error says what is damaged, and what was not read.${all > ROWS ? ` The first ${ROWS} of ${number(all)} files.` : ""}`, { className: "weak" }),
    element("p", "", { className: "buttons" }, element("button", "Query all files", { type: "button", onclick: () => query("FROM files ORDER BY error IS NULL, filename;") }),
      element("button", "Query damaged events", { type: "button", onclick: () => query("FROM events WHERE error IS NOT NULL;") })),
    table(rows, (key, row) => key === "error" && row.error && element("span", row.error, { className: "error" })));
}

async function showMatches(count) {
  const LEVELS = ["", "informational", "low", "medium", "high", "critical"];
  const rows = count === 0 ? [] : await engine.all(`SELECT level::VARCHAR AS level, title, computer, array_to_string(tactics, ', ') AS tactics, matches::VARCHAR AS matches,
    first_match::VARCHAR AS first_match, last_match::VARCHAR AS last_match FROM evtx_sigma_summary_of('matches') AS found ORDER BY found.level DESC, found.matches DESC LIMIT ${ROWS}`);
  $("tab-matches").textContent = `Sigma matches (${number(count)})`;
  const [{ unused }] = await engine.all("SELECT count(error)::VARCHAR AS unused FROM rules");
  const advice = element("p", "", {}, element("button", unused > 0 ? `${some(unused, "rule")} not used` : "Query the rules",
    { type: "button", onclick: () => query("SELECT rule_file, rule_title, error, * EXCLUDE (rule_file, rule_title, error)\nFROM  rules\nORDER BY error IS NULL;") }));
  $("matches-list").replaceChildren(advice, table(rows, (key, { level, title, computer, [key]: value }) => ({
    level: () => element("span", level, { className: `level level${Math.max(0, LEVELS.indexOf(level))}` }),
    matches: () => element("button", number(value), { type: "button", ariaLabel: `Query ${value} matches of ${visible(title)}`,
      onclick: () => query(`FROM  matches\nWHERE rule_title = ${quote(title)} AND computer = ${quote(computer)}\nORDER BY time_created;`) }),
  })[key]?.()));
}

async function save(format, name) {
  const button = $(`save-${format}`);
  button.disabled = true;
  try {
    download(await engine.save(format), name);
  } catch (error) {
    select("events");
    fail(error);
  } finally {
    button.disabled = false;
  }
}

/** Lets people drop and choose files. */
function listen() {
  for (const kind of ["dragover", "dragleave", "drop"]) {
    addEventListener(kind, async (event) => {
      event.preventDefault();
      $("drop").classList.toggle("over", kind === "dragover");
      if (kind === "drop") await load(await dropped(event.dataTransfer));
    });
  }
  for (const id of ["files", "folder"]) {
    const input = $(`${id}-input`);
    $(id).onclick = () => input.click();
    input.onchange = async () => {
      const list = chosen(input);
      // The same files can be chosen again.
      input.value = "";
      await load(list);
    };
  }
  $("choose-events").oninput = ({ target }) => target.setCustomValidity(chosenEvents().some((id) => id > 0xffffffff) ? "The largest event ID is 4294967295." : "");
  $("options").onclick = async () => { if (await choose() && files.length) await again(); };
  // The browser then asks whether to leave the page.
  addEventListener("beforeunload", (event) => { if (files.length) event.preventDefault(); });
  $("reset").onclick = async () => {
    if (await answer($("forget")) !== "forget") return;
    files = [];
    location.reload();
  };
  $("cancel").onclick = () => engine.cancelLoad();
  $("run").onclick = () => editor.run();
  $("stop").onclick = stop;
  $("recipes").append(...recipes.map(({ title }, i) => new Option(title, i)));
  $("recipes").onchange = ({ target }) => {
    const recipe = recipes[target.value];
    target.value = "";
    if (recipe) query(recipe.sql);
  };
  $("save-parquet").onclick = () => save("parquet", "events.parquet");
  $("save-csv").onclick = () => save("csv", "events.csv");
  $("save-report").onclick = () => save("report", "report.html");
  $("tabs").onclick = ({ target }) => target.id.startsWith("tab-") && select(target.id.slice(4));
  $("tabs").onkeydown = (event) => {
    const tabs = [...$("tabs").children].filter((tab) => !tab.hidden), at = tabs.indexOf(event.target);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    select(tabs.at(to % tabs.length).id.slice(4), true);
    event.preventDefault();
  };
  addEventListener("keydown", (event) => { if (event.key === "Escape" && !event.defaultPrevented && !document.querySelector("dialog[open]")) stop(); });
}

async function start() {
  state("starting");
  listen();
  try {
    engine = await Engine.start();
  } catch (error) {
    $("engine").textContent = `The database does not start: ${visible(error.message)}`;
    state("failed");
    return;
  }
  $("choose-columns").append(...engine.columns.map((name) => element("label", "", {}, element("input", "", { type: "checkbox", value: name }), ` ${name}`)));
  editor = makeEditor($("editor"), { run, stop, words: () => words });
  grid = makeGrid(engine);
  timeline = makeTimeline(engine, (range) => query(range
    ? `FROM  events\nWHERE time_created >= '${timeText(range[0])}' AND time_created < '${timeText(range[1])}'\nORDER BY time_created;` : "FROM events;"));
  engine.addEventListener("progress", ({ detail }) => {
    drawProgress(detail);
    $("reading").ontoggle = () => drawProgress(detail);
  });
  engine.addEventListener("full", ({ detail }) => { $("loaded").textContent = visible(detail.text); });
  engine.addEventListener("lost", async () => {
    shown = START;
    await again();
    fail("DuckDB did not end the query, so it was started again, and the files were read again. Tables that you made are gone.");
  });
  $("engine").textContent = "Ready.";
  state("ready");
  loadNext();
}
start();
