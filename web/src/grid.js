// The rows of a result. Only those that are seen are asked for and drawn.

import "regular-table";
import { $, element, number, quote, table, visible } from "./dom.js";

const PAGE = 200, PAGES = 8, SHORT = 200;

/** The grid #grid and the row beside it, #detail, over `rows(start, end, sort, whole)` and `all(sql)` of an engine. */
export function makeGrid(engine) {
  const grid = $("grid"), detail = $("detail");
  let columns = [], count = 0, sort = null, pages = new Map(), cursor = { x: 0, y: 0 }, shown = 0, whole = null, isMoving = false;

  // A page of rows. The last few are kept.
  function page(number) {
    const found = pages.get(number) ?? engine.rows(number * PAGE, Math.min(count, (number + 1) * PAGE), sort);
    pages.delete(number);
    pages.set(number, found);
    if (pages.size > PAGES) pages.delete(pages.keys().next().value);
    return found;
  }
  async function between(start, end) {
    const numbers = [];
    for (let at = Math.floor(start / PAGE); at * PAGE < end; at++) numbers.push(at);
    const rows = (await Promise.all(numbers.map(page))).flat();
    return rows.slice(start - numbers[0] * PAGE, end - numbers[0] * PAGE);
  }
  const arrow = (x) => (sort?.column !== x ? "" : sort.descending ? " ▼" : " ▲");
  const short = (value) => (value?.length > SHORT ? `${visible(value.slice(0, SHORT))}…` : visible(value));

  async function listener(x0, y0, x1, y1) {
    const wanted = columns.slice(x0, x1);
    // A result can be replaced while its rows are on the way.
    const rows = count ? await between(y0, Math.min(y1, count)).catch(() => []) : [];
    return { num_rows: count, num_columns: columns.length, column_headers: wanted.map(({ name }, i) => [visible(name) + arrow(x0 + i)]),
      data: wanted.map((_, i) => rows.map((row) => short(row[x0 + i]))) };
  }

  function style() {
    grid.querySelector("table").setAttribute("role", "presentation");
    for (const th of grid.querySelectorAll("thead th")) {
      const x = grid.getMeta(th)?.x;
      th.role = "columnheader";
      th.title = columns[x]?.type ?? "";
      th.ariaSort = sort?.column !== x ? "none" : sort.descending ? "descending" : "ascending";
    }
    for (const td of grid.querySelectorAll("tbody td")) {
      const { x, y } = grid.getMeta(td) ?? {};
      const isCursor = x === cursor.x && y === cursor.y;
      td.role = "gridcell";
      td.id = isCursor ? "cell" : "";
      td.className = /^(\w*INT\w*|DOUBLE|FLOAT|DECIMAL\(.*\))$/.test(columns[x]?.type) ? "number" : columns[x]?.name === "error" ? "error" : "";
      td.classList.toggle("cursor", isCursor);
      td.parentElement.role = "row";
      td.parentElement.ariaRowIndex = y + 2;
      td.parentElement.classList.toggle("current", y === cursor.y);
    }
  }

  // How many rows fit below the heading.
  const fits = () => Math.max(1, grid.clientHeight / (grid.querySelector("thead tr")?.offsetHeight || 28) - 1);

  // How far the cell of the cursor is beyond the right edge, in pixels.
  function hidden() {
    const cell = $("cell")?.getBoundingClientRect(), { left } = grid.getBoundingClientRect();
    return cell ? Math.min(cell.right - left - grid.clientWidth, cell.left - left) : grid.clientWidth;
  }

  async function follow() {
    const cells = [...grid.querySelectorAll("tbody tr:first-child td")].map((td) => grid.getMeta(td).x);
    // Of many rows, a pixel of the scroll bar is more than a pixel of them.
    const pixels = (grid.scrollHeight - grid.clientHeight) / Math.max(1, count - fits()), top = grid.scrollTop / pixels;
    const y = Math.ceil(pixels * (cursor.y < top ? cursor.y : Math.max(top, cursor.y + 1 - fits())));
    if (cursor.x < cells[0] || cursor.x >= cells.at(-1)) {
      const scrolled = grid.scrollToCell(cursor.x, 0);
      grid.scrollTop = y;
      await scrolled;
    } else if (pixels) grid.scrollTop = y;
    await grid.draw({ invalid_viewport: true });
    // The width of a column is known once it is drawn.
    for (let tries = 0, over; tries < 4 && (over = hidden()) > 0; tries++) {
      grid.scrollLeft += over;
      await grid.draw({ invalid_viewport: true });
    }
    if (!detail.hidden) await open();
  }
  async function move(x, y) {
    cursor = { x: Math.max(0, Math.min(columns.length - 1, x)), y: Math.max(0, Math.min(count - 1, y)) };
    // A key that is held down is faster than the rows.
    if (isMoving) return;
    isMoving = true;
    for (let at = null; at !== cursor;) {
      at = cursor;
      await follow();
    }
    read();
    isMoving = false;
  }

  // Reads the row of the cursor with its long values, to be shown or copied.
  async function read() {
    const at = cursor.y;
    const [row = null] = await engine.rows(at, at + 1, sort, true).catch(() => []);
    if (at === cursor.y) whole = row;
  }
  // A value of a row. Of a list, a struct or a map, a table: DuckDB reads its own text of them.
  async function value(text, type) {
    if (text === null) return element("span", "NULL", { className: "weak" });
    const isMap = /^MAP\(.*\)$/.test(type);
    const parts = isMap ? "unnest(map_entries(x), max_depth := 2)" : /^STRUCT\(.*\)\[\]$/.test(type) ? "unnest(x, max_depth := 2)"
      : type.endsWith("[]") ? "unnest(x) AS value" : type.startsWith("STRUCT(") ? "unnest(x)" : null;
    const rows = parts ? await engine.all(`SELECT COLUMNS(*)::VARCHAR FROM (SELECT ${parts} FROM (SELECT ${quote(text)}::${type} AS x))`).catch(() => []) : [];
    if (!rows.length) return element("span", text, { className: "lines" });
    return isMap ? element("table", "", {}, ...rows.map(({ key, value }) => element("tr", "", {}, element("th", key, { scope: "row" }),
      element("td", "", {}, element("span", value ?? "NULL", { className: value === null ? "weak" : "lines" }))))) : table(rows);
  }
  async function open() {
    const mine = ++shown, { y } = cursor;
    await read();
    if (mine !== shown || !whole) return;
    const values = await Promise.all(columns.map(({ type }, i) => value(whole[i], type)));
    if (mine !== shown) return;
    const step = (text, by, label) => element("button", text, { type: "button", ariaLabel: label, disabled: y + by < 0 || y + by >= count,
      onclick: () => move(cursor.x, y + by) });
    detail.replaceChildren(
      element("p", "", { className: "buttons" }, element("strong", `Row ${number(y + 1)}`), step("↑", -1, "Previous row"), step("↓", 1, "Next row"),
        element("button", "Close", { type: "button", className: "end", onclick: close })),
      element("dl", "", {}, ...columns.flatMap(({ name, type }, i) => [element("dt", name, { title: type }), element("dd", "", {}, values[i])])));
    detail.hidden = false;
  }
  function close() {
    shown++;
    if (!detail.hidden) grid.focus();
    detail.hidden = true;
  }
  function sortBy(x) {
    sort = sort?.column !== x ? { column: x, descending: false } : sort.descending ? null : { column: x, descending: true };
    pages = new Map();
    cursor.y = 0;
    close();
    grid.scrollTop = 0;
    return grid.draw({ invalid_viewport: true });
  }

  grid.setDataListener(listener);
  grid.addStyleListener(style);
  grid.addEventListener("click", async (event) => {
    const meta = grid.getMeta(event.target.closest("th, td"));
    if (meta?.type === "column_header" && !event.target.classList.contains("rt-column-resize")) await sortBy(meta.x);
    else if (meta?.type === "body" && getSelection().isCollapsed) {
      await move(meta.x, meta.y);
      await open();
    }
  });
  grid.addEventListener("keydown", (event) => {
    const { x, y } = cursor, fit = Math.floor(fits());
    const to = { ArrowUp: [x, y - 1], ArrowDown: [x, y + 1], ArrowLeft: [x - 1, y], ArrowRight: [x + 1, y], PageUp: [x, y - fit], PageDown: [x, y + fit],
      Home: event.ctrlKey ? [x, 0] : [0, y], End: event.ctrlKey ? [x, count - 1] : [columns.length - 1, y] }[event.key];
    if (!count || event.altKey) return;
    if (to) move(...to);
    else if (event.key === "Enter") open();
    else if (event.key === "Escape") close();
    else if (event.key.toLowerCase() === "s" && !event.ctrlKey && !event.metaKey) sortBy(x);
    else return;
    event.preventDefault();
  });
  detail.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
  const copy = (text) => (event) => {
    if (!getSelection().isCollapsed) return;
    event.clipboardData.setData("text/plain", visible(text(), true));
    event.preventDefault();
  };
  grid.addEventListener("copy", copy(() => whole?.[cursor.x]));
  detail.addEventListener("copy", copy(() => columns.map(({ name }, i) => `${name}: ${whole[i] ?? "NULL"}`).join("\n")));

  return {
    /** Shows the last result of the engine. */
    async show(result) {
      ({ columns, rows: count } = result);
      sort = null;
      pages = new Map();
      cursor = { x: 0, y: 0 };
      whole = null;
      close();
      grid.ariaRowCount = count + 1;
      grid.ariaColCount = columns.length;
      grid.setAttribute("aria-activedescendant", "cell");
      // Other columns have other widths.
      grid.setDataListener(listener);
      grid.scrollTop = grid.scrollLeft = 0;
      await grid.draw({ invalid_viewport: true });
    },
    /** Draws again, after the grid was hidden. */
    draw: () => grid.draw({ invalid_viewport: true }),
  };
}
