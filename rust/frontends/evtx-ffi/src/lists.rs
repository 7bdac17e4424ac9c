//! The lists of columns in the SQL of macros, so that only the schema lists them.

use arrow_schema::FieldRef;
use evtx_arrow::ColumnReference;
use evtx_codes::{TOPICS, events_of_topics, logon_events};
use evtx_detect::event_fields;
use evtx_events::{NAME_EVENTS, NAME_PROVIDERS};
use evtx_query::reference;

use crate::boundary::literal;
use crate::report::duckdb_type;

/// The columns of events that `evtx_sigma_rows` does more with than to cast them: it has columns of its own for them.
const CONVERTED: [&str; 4] = ["time_created", "channel", "user_data", "event_data"];

/// The columns of `read_evtx` without an option.
fn columns() -> Vec<ColumnReference> {
    let columns = reference().into_iter();
    columns.filter(|column| column.option.is_none()).collect()
}

/// The lists, by what stands for them in the SQL.
pub(crate) fn lists() -> Vec<(&'static str, String)> {
    let columns = columns();
    let none = |column: &ColumnReference| format!("NULL AS {}", quoted(column.field.name()));
    let cast = |field: &FieldRef| match (quoted(field.name()), duckdb_type(field).as_str()) {
        (name, _) if CONVERTED.contains(&field.name().as_str()) => format!("{name}: evtx_sigma_{}", field.name()),
        (name, "VARCHAR") => format!("{name}: {name}::VARCHAR"),
        (name, sql_type) => format!("{name}: TRY_CAST({name} AS {sql_type})"),
    };
    let numbers = |numbers: &[u32]| list(numbers.iter().map(u32::to_string));
    let texts = |texts: &[&str]| list(texts.iter().map(|text| literal(text)));
    let (providers, ids) = logon_events();
    let (providers_of_topics, ids_of_topics) = events_of_topics();
    vec![
        ("{{logon providers}}", texts(&providers)),
        ("{{logon events}}", numbers(&ids)),
        ("{{no columns}}", list(columns.iter().map(none))),
        ("{{event columns}}", list(event_fields().iter().map(cast))),
        ("{{event ids of topics}}", numbers(&ids_of_topics)),
        ("{{providers of topics}}", texts(&providers_of_topics)),
        ("{{name providers}}", texts(&NAME_PROVIDERS)),
        ("{{name events}}", numbers(&NAME_EVENTS)),
        ("{{topics}}", texts(&TOPICS)),
    ]
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

/// A name in SQL. Some are words of SQL.
fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}
