//! What a caller can ask of a scan.

use std::str::FromStr;

/// What becomes of records and chunks that are damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// They are rows with `error` set and whatever could be read of them.
    #[default]
    Report,
    /// There are no rows for them.
    Skip,
    /// The first one ends the scan with its text.
    Fail,
}

impl OnError {
    /// All there are, by their names.
    pub const ALL: [(&str, OnError); 3] = [
        ("report", OnError::Report),
        ("skip", OnError::Skip),
        ("fail", OnError::Fail),
    ];
}

impl FromStr for OnError {
    type Err = String;

    /// The one of a name, without regard to case.
    fn from_str(name: &str) -> Result<Self, String> {
        let found = OnError::ALL.iter().find(|(known, _)| name.eq_ignore_ascii_case(known));
        found.map(|(_, on_error)| *on_error).ok_or_else(|| {
            let names = OnError::ALL.map(|(known, _)| format!("'{known}'"));
            format!("on_error must be one of {}, not '{name}'", names.join(", "))
        })
    }
}

/// A scan's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// What becomes of damage.
    pub on_error: OnError,
    /// Whether checksums are compared, and one that does not match is damage.
    pub verify: bool,
    /// Whether there is a column of each event's XML.
    pub xml: bool,
    /// Whether there is a column of each event's JSON.
    pub json: bool,
    /// Whether there is a column of each event's values, a line for each.
    pub text: bool,
    /// Whether there is a column of each event's values, a name and a value for each.
    pub fields: bool,
    /// Whether there are columns for where a record stands.
    pub location: bool,
    /// Whether there are also the records that a chunk's bookkeeping no longer reaches, a column that says
    /// which these are, and the chunks of files that are no logs.
    pub recover: bool,
}
