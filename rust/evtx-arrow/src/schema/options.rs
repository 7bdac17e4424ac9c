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

impl FromStr for OnError {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name.to_ascii_lowercase().as_str() {
            "report" => Ok(OnError::Report),
            "skip" => Ok(OnError::Skip),
            "fail" => Ok(OnError::Fail),
            _ => Err(format!(
                "on_error must be one of 'report', 'skip', 'fail', not '{name}'"
            )),
        }
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
    /// Whether there are columns for where a record stands.
    pub location: bool,
    /// Whether there are also the records that a chunk's bookkeeping no longer reaches, a column that says
    /// which these are, and the chunks of files that are no logs.
    pub recover: bool,
}
