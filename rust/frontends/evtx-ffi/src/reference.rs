//! The generated tables and lists of `docs/`. `EVTX_DOCS=write` writes them; otherwise the tests compare them.

use std::fmt::Write;
use std::path::Path;

use evtx_detect::rule_reference;
use evtx_query::{Query, reference};
use evtx_reports::{ChunkReport, DeclaredEventReport, FileReport, Report, RuleReport, SchemaReport};
use evtx_scan::{Argument, ArgumentKind};

use crate::report::duckdb_type;

/// The list of the columns of a report.
fn report<R: Report>() -> String {
    let mut list = String::new();
    for (field, (name, about)) in R::schema().fields().iter().zip(R::reference()) {
        writeln!(list, "- `{name}` {}: {about}", duckdb_type(field)).expect("memory");
    }
    list
}

#[test]
fn the_reference_has_every_column() {
    let mut columns = String::new();
    for column in reference() {
        let (name, duckdb_type, about) = (column.field.name(), duckdb_type(&column.field), column.about);
        let path = Some(&*column.path).filter(|path| !path.is_empty());
        let path = path.map(|path| format!(" (`{path}`)")).unwrap_or_default();
        let option = column.option.map(|option| format!(" With `{option} := true`."));
        let option = option.unwrap_or_default();
        writeln!(columns, "- `{name}` {duckdb_type}{path}: {about}{option}").expect("memory");
    }
    let mut rules = String::new();
    for column in rule_reference() {
        let (field, about) = (&column.field, column.about);
        writeln!(rules, "- `{}` {}: {about}", field.name(), duckdb_type(field)).expect("memory");
    }
    let lists = [
        ("read_evtx", columns),
        ("evtx_sigma", rules),
        ("evtx_sigma_rules", report::<RuleReport>()),
        ("evtx_schema", report::<SchemaReport>()),
        ("evtx_file_metadata", report::<FileReport>()),
        ("evtx_chunk_metadata", report::<ChunkReport>()),
        ("evtx_event_catalog", report::<DeclaredEventReport>()),
    ];
    check("columns.md", |written| {
        let page = written.to_owned();
        lists
            .iter()
            .fold(page, |page, (mark, list)| replaced(&page, mark, list))
    });
}

#[test]
fn the_docs_have_every_argument() {
    let of_logs: Vec<&Argument> = Query::Records.arguments().collect();
    check("read_evtx.md", |written| {
        replaced(written, "arguments", &arguments_table(&of_logs))
    });
    let of_rules: Vec<&Argument> = Query::Matches
        .arguments()
        .filter(|argument| !of_logs.contains(argument))
        .collect();
    check("sigma.md", |written| {
        replaced(written, "arguments", &arguments_table(&of_rules))
    });
}

fn arguments_table(arguments: &[&Argument]) -> String {
    let mut table = "| argument | default | what it does |\n| --- | --- | --- |\n".to_owned();
    for argument in arguments {
        let default = match (argument.default, argument.kind) {
            (None, _) => String::new(),
            (Some(text), ArgumentKind::Text) => format!("`'{text}'`"),
            (Some(text), _) => format!("`{text}`"),
        };
        writeln!(table, "| `{}` | {default} | {} |", argument.name, argument.about).expect("memory");
    }
    table
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
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs").join(page);
    let read = || std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    if std::env::var("EVTX_DOCS").is_ok_and(|what| what == "write") {
        std::fs::write(&path, make(&read())).expect("a file that can be written");
    }
    let written = read();
    assert!(written == make(&written), "docs/{page} is out of date; run `make docs`");
}
