//! The arguments of calls that read events of other tools.

use evtx_format::named;
use evtx_scan::{arguments, put};

use crate::sources::{Source, named_sources};
use crate::values::{Times, time_zone};

/// The settings of a call.
#[derive(Debug, Clone, Default)]
pub struct SourceSettings {
    /// Whose events they are. By default, the first rows of each file show it.
    pub(crate) source: Option<&'static Source>,
    pub(crate) times: Times,
}

arguments! {
    /// The arguments.
    pub OF_SOURCES of SourceSettings:
    /// The order of day and month in dates such as `5/3/2024`: `dmy` or `mdy`.
    date_order = None, Text(|all, text| put(&mut all.times.is_day_first, text.as_deref().map(date_order).transpose()));
    /// The tool that wrote the files. By default, the first rows of each file show it.
    source = None, Text(|all, text| put(&mut all.source, text.as_deref().map(source).transpose()));
    /// The time zone of times without an offset, such as `Europe/Berlin` or `+01:00`.
    time_zone = None, Text(|all, text| put(&mut all.times.zone, text.as_deref().map(time_zone).transpose()));
}

/// Whether the day comes first.
fn date_order(text: &str) -> Result<bool, String> {
    named("date_order", &[(true, "dmy"), (false, "mdy")], text)
}

/// The source with a name.
fn source(name: &str) -> Result<&'static Source, String> {
    named("source", &named_sources(), name)
}
