//! What an archive holds besides the entries that its directory names.

use std::ops::Range;

use evtx_format::{Interrupt, cut};
use evtx_scan::{StorageError, sort_by};

/// The most findings of an archive with a row each.
pub(crate) const MAX_TOLD: usize = 100;

/// The most characters of a name in a finding.
const MAX_NAME: usize = 200;

/// How findings start about an archive with a directory, and about one without. Both start with [`evtx_scan::ALL_READ`].
pub(crate) const NAMED: &str = "all was read that its directory names, but ";
pub(crate) const ALL: &str = "all was read, but ";

/// How logs and archives start that can hold logs.
const STARTS: [(&[u8], &str); 4] = [
    (b"ElfFile\0", "a log"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"7z\xBC\xAF\x27\x1C", "a 7z archive"),
    (b"\xFD7zXZ\0", "an XZ file"),
];

/// Fewer bytes hold no log, even if it is compressed.
const MIN_HIDDEN: usize = 256;

/// The log or archive in bytes that belong to no file, such as a comment, if there is one.
pub(crate) fn hidden(bytes: &[u8]) -> Option<&'static str> {
    if bytes.len() < MIN_HIDDEN {
        return None;
    }
    let is_here = |start: &[u8]| memchr::memmem::find(bytes, start).is_some();
    STARTS.iter().find(|(start, _)| is_here(start)).map(|&(_, what)| what)
}

/// What is wrong with a folder that has data: some programs make a file of it.
pub(crate) fn full_folder(name: &str, data: u64) -> String {
    format!("its folder {} has {data} bytes of data", quoted(name))
}

/// Texts for rows, and how many more there would be.
pub(crate) struct Findings {
    told: Vec<String>,
    untold: u64,
    most: usize,
}

impl Findings {
    /// Room for so many texts.
    pub(crate) fn new(most: usize) -> Self {
        let (told, untold) = (Vec::new(), 0);
        Findings { told, untold, most }
    }

    pub(crate) fn tell(&mut self, what: &str) {
        if self.is_full() {
            self.untold += 1;
        } else {
            self.told.push(what.to_owned());
        }
    }

    pub(crate) fn first(&self) -> Option<&String> {
        self.told.first()
    }

    /// Whether further findings are only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.told.len() >= self.most
    }

    /// The texts, each after the same start.
    pub(crate) fn into_texts(self, start: &str) -> Vec<String> {
        let texts = self.end(|more| format!("it has {more} more such places"));
        texts.into_iter().map(|what| format!("{start}{what}")).collect()
    }

    /// The texts, and one about how many more there would be.
    pub(crate) fn end(mut self, rest: impl FnOnce(u64) -> String) -> Vec<String> {
        if self.untold > 0 {
            self.told.push(rest(self.untold));
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
    let (name, dots) = cut(name, MAX_NAME);
    format!("{name:?}{dots}")
}
