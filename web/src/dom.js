// Elements of the page. Logs are hostile: their values get into the page as text only, never as HTML.

/** The element with an ID. */
export const $ = (id) => document.getElementById(id);

/**
 * A text with the characters that show nothing, or that turn the direction of the text, as numbers, as in the report.
 * `lines` keeps tabs and line breaks, which otherwise become spaces.
 */
export const visible = (value, lines = false) => String(value ?? "").replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
  (c) => (/[\t\n\r]/.test(c) ? (lines ? c : " ") : `<U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}>`));

/** An element with a text, properties, and children after the text. */
export function element(name, text = "", properties = {}, ...children) {
  const made = document.createElement(name);
  made.textContent = visible(text, /\blines\b/.test(properties.className));
  made.append(...children);
  return Object.assign(made, properties);
}

/** A number with separators. */
export const number = (value) => Number(value).toLocaleString("en");

/** A number with its noun. */
export const some = (count, one, many = `${one}s`) => `${number(count)} ${Number(count) === 1 ? one : many}`;

/** A size in bytes, for people. */
export const size = (bytes) => (bytes < 1e6 ? `${number(Math.ceil(bytes / 1e3))} kB` : bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB`
  : `${(bytes / 1e9).toFixed(2)} GB`);

/** A text as a string of SQL. */
export const quote = (text) => `'${String(text).replaceAll("'", "''")}'`;

/** Offers a blob as a file to save. */
export function download(blob, name) {
  const href = URL.createObjectURL(blob);
  element("a", "", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60000);
}

/** The nodes of a text that may break between the parts of names and paths, and in words of more than 12 letters. */
const breakable = (text) => (visible(text).match(/[^\s\\/._,=-]{1,12}[\s\\/._,=-]*|[\s\\/._,=-]+/gu) ?? []).flatMap((part) => [part, element("wbr")]);

/** A table of objects, whose keys are its headings; `cell(key, row)` may make the content of a cell. */
export function table(rows, cell = () => null) {
  const keys = Object.keys(rows[0] ?? {});
  return element("div", "", { className: "scroll" }, element("table", "", {},
    element("thead", "", {}, element("tr", "", {}, ...keys.map((key) => element("th", key.replaceAll("_", " "), { scope: "col" })))),
    element("tbody", "", {}, ...rows.map((row) => element("tr", "", {}, ...keys.map((key) => {
      const made = cell(key, row);
      if (/^\d{4}-\d\d-\d\d /.test(row[key])) return element("td", row[key], { className: "time" });
      return element("td", "", {}, ...(made ? [made] : breakable(row[key])));
    }))))));
}
