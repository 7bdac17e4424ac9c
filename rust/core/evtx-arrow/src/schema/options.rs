//! The options of a scan.

use std::str::FromStr;

use evtx_format::{named, named_enum};

named_enum! {
    /// What happens to damaged records, chunks and files.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum OnError {
        /// A row with `error` set, and with everything that could be read.
        #[default]
        Report = "report",
        /// No row.
        Skip = "skip",
        /// The scan fails, with an error that describes the first damage.
        Fail = "fail",
    }
}

impl FromStr for OnError {
    type Err = String;

    /// The variant with a name, in any case.
    ///
    /// # Errors
    /// A text that lists the names, if there is no such variant.
    fn from_str(name: &str) -> Result<Self, String> {
        named("on_error", OnError::ALL, name)
    }
}

/// The options of a scan. All flags are false by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What happens to damaged records, chunks and files.
    pub on_error: OnError,
    /// Whether checksums are verified. A mismatch is damage.
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
}

impl Options {
    /// No flag is set.
    pub const NONE: Options = Options::of(false);
    /// Every flag is set.
    pub const ALL: Options = Options::of(true);

    const fn of(flag: bool) -> Options {
        Options {
            on_error: OnError::Report,
            verify: flag,
            xml: flag,
            json: flag,
            text: flag,
            fields: flag,
            location: flag,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options::NONE
    }
}
