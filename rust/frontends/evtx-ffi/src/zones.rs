//! The function that checks names of time zones.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::StringViewBuilder;
use evtx_exports::time_zone;

use crate::boundary::EvtxError;
use crate::scalar::{Caller, EvtxVector, Scalar, ScalarFunction, text};

/// The function.
pub(crate) fn function() -> ScalarFunction {
    ScalarFunction {
        name: "evtx_checked_time_zone",
        description: "The time zone, if the IANA knows its name or it is an offset. Another text is an error. For evtx_case_report_of.",
        example: "SELECT evtx_checked_time_zone('Europe/Berlin')",
        parameters: vec![text("time_zone")],
        result: text("time_zone"),
        make: Box::new(|| Box::new(Checked)),
    }
}

struct Checked;

impl Scalar for Checked {
    unsafe fn call(&mut self, vectors: &[EvtxVector], _: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let &[names] = vectors else {
            return Err("evtx_checked_time_zone has one argument".into());
        };
        let mut checked = StringViewBuilder::new();
        for row in 0..names.rows {
            // SAFETY: by the contract of this function.
            let name = unsafe { names.text(row)? };
            _ = name.map(time_zone).transpose()?;
            checked.append_option(name);
        }
        Ok(Arc::new(checked.finish()))
    }
}
