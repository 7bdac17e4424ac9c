// The SQL box: CodeMirror with DuckDB's words, and the keys of DuckDB's shell.

import { acceptCompletion, autocompletion, closeCompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { SQLDialect, sql } from "@codemirror/lang-sql";
import { HighlightStyle, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { Prec } from "@codemirror/state";
import { EditorView, drawSelection, highlightSpecialChars, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const DIALECT = SQLDialect.define({
  keywords: "all alter and any as asc asof attach between by case cast copy create cross cube current delete desc describe distinct drop else end"
    + " escape except exclude exists explain false filter first following for from full group grouping having if ilike in inner insert intersect"
    + " interval into is join last lateral left like limit macro materialized natural not null nulls offset on or order outer over partition"
    + " pivot positional preceding qualify range recursive rename replace returning right rollup row rows sample select semi set sets similar"
    + " show summarize table tablesample temp then to true try_cast unbounded union unnest unpivot update using values view when where window with",
  types: "bigint blob boolean date decimal double enum float hugeint integer interval json list map real smallint struct text time timestamp"
    + " timestamp_ns timestamptz tinyint ubigint uinteger usmallint utinyint uuid varchar",
  builtin: "",
  operatorChars: "*+-%<>!=&|~^/:",
  identifierQuotes: '"',
  doubleDollarQuotedStrings: true,
  caseInsensitiveIdentifiers: true,
});

const COLOURS = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword], color: "var(--level2)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--level3)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--level5)" },
  { tag: tags.typeName, color: "var(--level4)" },
  { tag: tags.comment, color: "var(--weak)" },
]);

/**
 * The SQL box in `parent`. `run(sql)` is called for Ctrl+Enter, and for Enter after a semicolon, `stop()` for Esc; `words()` returns
 * the completions. Up in the first line and Down in the last one bring back earlier statements.
 */
export function makeEditor(parent, { run, stop, words }) {
  const past = [];
  let at = 0;
  const text = () => view.state.doc.toString();
  const show = (value) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: value }, selection: { anchor: value.length }, scrollIntoView: true });
  const start = () => {
    if (past.at(-1) !== text()) past.push(text());
    at = past.length - 1;
    closeCompletion(view);
    run(text());
    return true;
  };
  const go = (by, isEdge) => ({ state }) => {
    const { main } = state.selection;
    // A statement that was changed since gives way to the one that it was.
    const next = text() === past[at] ? at + by : at;
    if (!main.empty || !isEdge(state.doc.lineAt(main.head).number, state.doc.lines) || past[next] === undefined) return false;
    at = next;
    show(past[at]);
    return true;
  };
  const complete = (context) => {
    const word = context.matchBefore(/\w+/);
    return word || context.explicit ? { from: word?.from ?? context.pos, options: words(), validFor: /^\w*$/ } : null;
  };
  const view = new EditorView({
    parent,
    doc: "FROM events;",
    extensions: [
      Prec.high(keymap.of([
        { key: "Mod-Enter", run: start },
        { key: "Enter", run: ({ state }) => state.selection.main.head === state.doc.length && /;\s*$/.test(text()) && start() },
        { key: "Tab", run: acceptCompletion },
      ])),
      keymap.of([...completionKeymap, { key: "Escape", run: stop }, { key: "ArrowUp", run: go(-1, (line) => line === 1) },
        { key: "ArrowDown", run: go(1, (line, lines) => line === lines) }, ...defaultKeymap, ...historyKeymap]),
      history(), drawSelection(), highlightSpecialChars(), bracketMatching(), autocompletion({ icons: false }),
      sql({ dialect: DIALECT, upperCaseKeywords: true }), DIALECT.language.data.of({ autocomplete: complete }),
      syntaxHighlighting(COLOURS), EditorView.lineWrapping,
      EditorView.contentAttributes.of({ id: "sql", "aria-label": "SQL" }),
    ],
  });
  return { text, show, run: start, focus: () => view.focus() };
}
