//! The function that checks names of time zones.

use evtx_exports::time_zone;
use evtx_format::Interrupt;

use crate::rows::by_row;
use crate::scalar::{ScalarFunction, text};

/// The function.
pub(crate) fn function() -> ScalarFunction {
    ScalarFunction {
        name: "evtx_checked_time_zone",
        description: "The time zone, if the IANA knows its name or it is an offset. Another text is an error. For evtx_case_report_of.",
        example: "SELECT evtx_checked_time_zone('Europe/Berlin')",
        parameters: vec![text("time_zone")],
        result: text("time_zone"),
        make: by_row!(checked),
    }
}

fn checked<'a>(name: Option<&'a str>, _: Interrupt<'_>) -> Result<Option<&'a str>, String> {
    name.map(time_zone).transpose()?;
    Ok(name)
}
