//! Which source the rows of a file are from.

use crate::json::Json;
use crate::sources::{SOURCES, Source};

/// How many of the first rows are looked at.
const ROWS: usize = 20;

/// How many names of the first row an error lists, and how many characters of each.
const MAX_NAMES: usize = 12;
const MAX_NAME: usize = 40;

/// The source of rows, by the first of them; `None` if there are none.
///
/// # Errors
/// What was found and what was expected, if there is no such source, or if there are several.
pub(crate) fn recognize<'t>(rows: impl Iterator<Item = Json<'t>>) -> Result<Option<&'static Source>, String> {
    let rows: Vec<Json<'_>> = rows.take(ROWS).collect();
    let fits = |source: &&Source| rows.iter().any(|row| source.form_of(row).is_some());
    let found: Vec<&Source> = SOURCES.iter().filter(fits).collect();
    match found[..] {
        _ if rows.is_empty() => Ok(None),
        [source] => Ok(Some(source)),
        [] => {
            let members = rows.iter().map(Json::members).find(|members| !members.is_empty());
            let Some(members) = members else {
                return Err("the source is not known: its first rows are not objects of JSON".to_owned());
            };
            let names = members
                .iter()
                .map(|(name, _)| name.chars().take(MAX_NAME).collect::<String>());
            let more = if members.len() > MAX_NAMES { ", …" } else { "" };
            let expected: Vec<_> = SOURCES.iter().map(|source| &*source.expected).collect();
            Err(format!(
                "the source is not known: its first rows have {}{more}. Expected {}",
                names.take(MAX_NAMES).collect::<Vec<_>>().join(", "),
                expected.join("; ")
            ))
        }
        _ => Err(format!(
            "its rows fit several sources: {}. Pass one of them as source",
            found
                .iter()
                .map(|source| source.names[0])
                .collect::<Vec<_>>()
                .join(", ")
        )),
    }
}
