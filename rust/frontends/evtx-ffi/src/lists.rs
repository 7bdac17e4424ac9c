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
    let (providers, ids) = logon_events();
    let (providers_of_topics, ids_of_topics) = events_of_topics();
    vec![
        ("{{logon providers}}", list(providers.iter().map(|name| literal(name)))),
        ("{{logon events}}", list(ids.iter().map(u32::to_string))),
        ("{{no columns}}", list(columns.iter().map(none))),
        ("{{event columns}}", list(event_fields().iter().map(cast))),
        (
            "{{event ids of topics}}",
            list(ids_of_topics.iter().map(u32::to_string)),
        ),
        (
            "{{providers of topics}}",
            list(providers_of_topics.iter().map(|name| literal(name))),
        ),
        (
            "{{name providers}}",
            list(NAME_PROVIDERS.iter().map(|name| literal(name))),
        ),
        ("{{name events}}", list(NAME_EVENTS.iter().map(u32::to_string))),
        ("{{topics}}", list(TOPICS.iter().map(|topic| literal(topic)))),
    ]
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

/// A name in SQL. Some are words of SQL.
fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}
