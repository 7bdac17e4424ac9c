//! Which source the rows of a file are from.

use evtx_reports::members;

use crate::sources::{SOURCES, Source};

/// How many of the first rows are looked at.
const ROWS: usize = 20;

/// How many names of the first row an error lists, and how many characters of each.
const MAX_NAMES: usize = 12;
const MAX_NAME: usize = 40;

/// The source of rows in JSON, by the first of them; `None` if there are none.
///
/// # Errors
/// What was found and what was expected, if there is no such source, or if there are several.
pub(crate) fn recognize(rows: impl Iterator<Item = String>) -> Result<Option<&'static Source>, String> {
    let rows: Vec<String> = rows.take(ROWS).collect();
    let fits = |source: &&Source| rows.iter().any(|row| source.form_of(row).is_some());
    let found: Vec<&Source> = SOURCES.iter().filter(fits).collect();
    let names = || found.iter().map(|source| source.names[0]).collect::<Vec<_>>();
    match (
        &found[..],
        rows.iter().find(|row| !members(row).is_empty()).or(rows.first()),
    ) {
        (_, None) => Ok(None),
        (&[source], _) => Ok(Some(source)),
        ([], Some(row)) => {
            let mut names: Vec<String> = members(row)
                .iter()
                .map(|(name, _)| name.chars().take(MAX_NAME).collect())
                .collect();
            if names.is_empty() {
                return Err("the source is not known: its first rows are not objects of JSON".to_owned());
            }
            let more = if names.len() > MAX_NAMES { ", …" } else { "" };
            names.truncate(MAX_NAMES);
            let expected: Vec<_> = SOURCES.iter().map(Source::expected).collect();
            Err(format!(
                "the source is not known: its first rows have {}{more}. Expected {}",
                names.join(", "),
                expected.join("; ")
            ))
        }
        (_, Some(_)) => Err(format!(
            "its rows fit several sources: {}. Pass one of them as source",
            names().join(", ")
        )),
    }
}
