//! `docs/columns.md`, out of the columns that there are. `EVTX_DOCS=write` writes it anew.

use std::fmt::Write;
use std::path::Path;

use evtx_arrow::{
    CHUNK_COLUMNS, Catalog, ChunkReport, EVENT_COLUMNS, EventReport, FILE_COLUMNS, FileReport, Report, reference,
};

use crate::report::duckdb_type;

const INTRODUCTION: &str = "# Columns

<!-- Written by `make docs`, out of the code. -->

Times are UTC. Any column can be NULL: where the event does not have it, where it does not fit, where the record is damaged.

## read_evtx(files)

| column | type | in the event | what it holds |
| --- | --- | --- | --- |
";

const FIELDS: &str = "
## read_evtx(files, event_id := ...)

The columns of `read_evtx(files)`, with one for each field in place of `event_data`, and `event_data` behind `filename`. A field's type is that which templates declare for it:

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

Where templates differ, the column is of the narrowest type that holds both: of numbers a wider one, HUGEINT at last, of a value and an array the list, else VARCHAR.
";

fn report(out: &mut String, call: &str, report: &dyn Report, columns: &[(&str, &str)]) {
    let schema = report.schema();
    let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(
        names,
        columns.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        "{call}"
    );
    writeln!(
        out,
        "\n## {call}\n\n| column | type | what it holds |\n| --- | --- | --- |"
    )
    .expect("memory");
    for (field, (name, about)) in schema.fields().iter().zip(columns) {
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
    let events = EventReport::new(Catalog::new(None), duckdb_type);
    report(&mut text, "evtx_schema(files)", &events, &EVENT_COLUMNS);
    report(
        &mut text,
        "evtx_file_metadata(files)",
        &FileReport::default(),
        &FILE_COLUMNS,
    );
    report(
        &mut text,
        "evtx_chunk_metadata(files)",
        &ChunkReport::default(),
        &CHUNK_COLUMNS,
    );

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/columns.md");
    if std::env::var("EVTX_DOCS").is_ok_and(|what| what == "write") {
        std::fs::write(&path, &text).expect("a file that can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    assert!(
        written == text,
        "docs/columns.md is not what the code says; `make docs` writes it"
    );
}
