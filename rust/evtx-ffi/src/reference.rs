//! The generated parts of `docs/`: `columns.md`, the tables of arguments in `read_evtx.md` and `sigma.md`, and the sources
//! in `codes.md`. `EVTX_DOCS=write` writes them; otherwise the tests compare them.

use std::fmt::Write;
use std::path::Path;

use evtx_arrow::{reference, rule_reference};
use evtx_reports::{ChunkReport, DeclaredEventReport, FileReport, Report, RuleReport, SchemaReport};
use evtx_scan::{Argument, ArgumentKind, Query};

use crate::report::duckdb_type;
use evtx_codes::tables;

const INTRODUCTION: &str = "# Columns

<!-- Written by `make docs`, out of the code. -->

Times are UTC. Any column can be NULL: where the event does not have it, where it does not fit, where the record is
damaged.

## read_evtx(files)

| column | type | in the event | what it holds |
| --- | --- | --- | --- |
";

const FIELDS: &str = "
## read_evtx(files, event_id := ...)

The columns of `read_evtx(files)`, with one for each field in place of `event_data`, and `event_data` behind
`filename`. The type of a field is the one that its template declares:

| BinXML | column |
| --- | --- |
| `Int8`, `Int16`, `Int32`, `Int64` | TINYINT, SMALLINT, INTEGER, BIGINT |
| `UInt8`, `UInt16`, `UInt32`, `UInt64` | UTINYINT, USMALLINT, UINTEGER, UBIGINT |
| `HexInt32`, `HexInt64`, `SizeT` | UINTEGER, UBIGINT, UBIGINT |
| `Real32`, `Real64` | FLOAT, DOUBLE |
| `Boolean` | BOOLEAN; NULL for a value other than 0 and 1, of which Windows makes bit masks |
| `FILETIME`, `SYSTEMTIME` | TIMESTAMP_NS |
| `GUID` | UUID |
| `Binary` | BLOB |
| `String`, `AnsiString`, `SID`, and all others | VARCHAR, as in `event_data` |
| an array of these | a list; an empty value is an empty list |

Where templates differ, the column has the narrowest type that holds both: of two numbers a wider one (at most
HUGEINT), of a value and an array the list, of all others VARCHAR.
";

fn report<R: Report>(out: &mut String, call: &str) {
    writeln!(
        out,
        "\n## {call}\n\n| column | type | what it holds |\n| --- | --- | --- |"
    )
    .expect("memory");
    for (field, (name, about)) in R::schema().fields().iter().zip(R::reference()) {
        writeln!(out, "| `{name}` | {} | {about} |", duckdb_type(field)).expect("memory");
    }
}

#[test]
fn the_reference_has_every_column() {
    let mut text = INTRODUCTION.to_owned();
    for column in reference() {
        let name = column.field.name();
        let place = match &*column.place {
            "" => String::new(),
            place => format!("`{place}`"),
        };
        let option = column
            .option
            .map(|option| format!(" With `{option} := true`."))
            .unwrap_or_default();
        let about = column.about;
        writeln!(
            text,
            "| `{name}` | {} | {place} | {about}{option} |",
            duckdb_type(&column.field)
        )
        .expect("memory");
    }
    text.push_str(FIELDS);
    text.push_str("\n## evtx_sigma(files, rules := ...)\n\nThese columns stand before those of `read_evtx`. They are NULL in rows of damage that no rule matches.\n\n");
    text.push_str("| column | type | what it holds |\n| --- | --- | --- |\n");
    for column in rule_reference() {
        let (field, about) = (&column.field, column.about);
        writeln!(text, "| `{}` | {} | {about} |", field.name(), duckdb_type(field)).expect("memory");
    }
    report::<RuleReport>(&mut text, "evtx_sigma_rules(rules)");
    report::<SchemaReport>(&mut text, "evtx_schema(files)");
    report::<FileReport>(&mut text, "evtx_file_metadata(files)");
    report::<ChunkReport>(&mut text, "evtx_chunk_metadata(files)");
    report::<DeclaredEventReport>(&mut text, "evtx_event_catalog()");

    check("columns.md", |_| text.clone());
}

#[test]
fn the_docs_have_every_argument() {
    let of_logs: Vec<&Argument> = Query::Records.arguments().collect();
    check("read_evtx.md", |written| {
        replaced(written, "arguments", &arguments_table(&of_logs))
    });
    let of_rules: Vec<&Argument> = Query::Matches
        .arguments()
        .filter(|argument| of_logs.iter().all(|known| known.name != argument.name))
        .collect();
    check("sigma.md", |written| {
        replaced(written, "arguments", &arguments_table(&of_rules))
    });
}

fn arguments_table(arguments: &[&Argument]) -> String {
    let mut table = "| argument | default | what it does |\n| --- | --- | --- |\n".to_owned();
    for argument in arguments {
        let default = match (argument.default, argument.kind()) {
            (None, _) => String::new(),
            (Some(text), ArgumentKind::Text) => format!("`'{text}'`"),
            (Some(text), _) => format!("`{text}`"),
        };
        writeln!(table, "| `{}` | {default} | {} |", argument.name, argument.about).expect("memory");
    }
    table
}

#[test]
fn the_docs_have_the_source_of_every_table_of_codes() {
    let lines = tables()
        .iter()
        .map(|table| format!("- `{}`: {}.\n", table.name, table.source));
    let list = format!("\n{}\n", lines.collect::<String>());
    check("codes.md", |written| replaced(written, "sources", &list));
}

/// A page with another text between the marks of this name.
fn replaced(page: &str, mark: &str, text: &str) -> String {
    let (start, end) = (format!("<!-- {mark} -->\n"), format!("<!-- /{mark} -->"));
    let (before, rest) = page.split_once(&start).expect("the start");
    let (_, after) = rest.split_once(&end).expect("the end");
    format!("{before}{start}{text}{end}{after}")
}

/// Compares a page with what the code makes of it, or writes it.
fn check(page: &str, make: impl Fn(&str) -> String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let read = || std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    if std::env::var("EVTX_DOCS").is_ok_and(|what| what == "write") {
        std::fs::write(&path, make(&read())).expect("a file that can be written");
    }
    let written = read();
    assert!(written == make(&written), "docs/{page} is out of date; run `make docs`");
}
