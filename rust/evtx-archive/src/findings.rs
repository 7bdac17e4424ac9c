//! What an archive holds besides the entries that its directory names.

use std::ops::Range;

use evtx_format::Interrupt;
use evtx_scan::{ALL_READ, StorageError, sort_by};

/// The most findings of an archive with a row each.
const MAX_TOLD: usize = 100;

/// The most characters of a name in a finding.
const MAX_NAME: usize = 200;

/// Texts for rows, and how many more there would be.
#[derive(Default)]
pub(crate) struct Findings {
    told: Vec<String>,
    untold: u64,
}

impl Findings {
    pub(crate) fn tell(&mut self, what: &str) {
        if self.is_full() {
            self.untold += 1;
        } else {
            self.told
                .push(format!("{ALL_READ} that its directory names, but {what}"));
        }
    }

    /// Whether further findings are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.told.len() >= MAX_TOLD
    }

    pub(crate) fn into_texts(mut self) -> Vec<String> {
        if self.untold > 0 {
            let text = format!(
                "{ALL_READ} that its directory names, but it has {} more such places",
                self.untold
            );
            self.told.push(text);
        }
        self.told
    }
}

/// How many bytes belong to no entry, and where, as a finding.
pub(crate) fn unclaimed(bytes: &Range<u64>) -> String {
    let len = bytes.end - bytes.start;
    format!("{len} bytes at offset {} belong to no entry", bytes.start)
}

/// Calls a function with each range before an end that no span covers.
///
/// # Errors
/// Those of the function, and [`StorageError::Interrupted`].
pub(crate) fn gaps(
    mut spans: Vec<Range<u64>>,
    end: u64,
    interrupt: Interrupt<'_>,
    mut each: impl FnMut(Range<u64>) -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    sort_by(&mut spans, |a, b| a.start.cmp(&b.start), interrupt)?;
    let mut at = 0;
    for span in spans.into_iter().chain(std::iter::once(end..end)) {
        interrupt.check()?;
        if at < span.start {
            each(at..span.start)?;
        }
        at = at.max(span.end);
    }
    Ok(())
}

/// A name in quotes, cut if it is long.
pub(crate) fn quoted(name: &str) -> String {
    match name.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{:?}…", &name[..end]),
        None => format!("{name:?}"),
    }
}
