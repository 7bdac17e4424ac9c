//! The options of a scan, beside its columns and predicates.

use std::str::FromStr;

/// What becomes of damaged records, chunks and files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// A row says so in `error`, and has whatever could be read.
    #[default]
    Report,
    /// There is no row.
    Skip,
    /// The scan ends with an error that describes the first damage.
    Fail,
}

impl OnError {
    /// Every variant with its name.
    pub const ALL: [(&str, OnError); 3] = [
        ("report", OnError::Report),
        ("skip", OnError::Skip),
        ("fail", OnError::Fail),
    ];
}

impl FromStr for OnError {
    type Err = String;

    /// The variant with a name, whose case does not matter.
    ///
    /// # Errors
    /// A text that lists the names, if there is no such variant.
    fn from_str(name: &str) -> Result<Self, String> {
        let found = OnError::ALL.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
        found.map(|(_, on_error)| *on_error).ok_or_else(|| {
            let names = OnError::ALL.map(|(known, _)| format!("'{known}'"));
            format!("on_error must be one of {}, not '{name}'", names.join(", "))
        })
    }
}

/// The options of a scan. All flags are false by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// What becomes of damaged records, chunks and files.
    pub on_error: OnError,
    /// Whether checksums are compared. One that does not match is damage.
    pub verify: bool,
    /// Whether there is a column `xml`: each event as XML.
    pub xml: bool,
    /// Whether there is a column `json`: each event as JSON.
    pub json: bool,
    /// Whether there is a column `text`: all values of each event, a line `name: value` for each.
    pub text: bool,
    /// Whether there is a column `fields`: all values of each event, as a list of names and values.
    pub fields: bool,
    /// Whether there are columns `chunk_index` and `record_offset`: where in the file each record is.
    pub location: bool,
    /// Whether records are recovered: those in free space, in damaged chunks, in stray chunks, and in files that are no
    /// logs. Adds a column `recovered`, which tells them from the others.
    pub recover: bool,
}
