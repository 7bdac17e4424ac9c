//! The function that says what is wrong with a text of JSON.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::StringViewBuilder;
use arrow_schema::{DataType, Field};
use evtx_reports::{JsonCheck, JsonTypes, check_json};
use evtx_scan::ScanError;

use crate::boundary::EvtxError;
use crate::scalar::{Caller, EvtxVector, Scalar, ScalarFunction, Unchecked};

/// The function.
pub(crate) fn function() -> ScalarFunction {
    let text = |name| Field::new(name, DataType::Utf8, true);
    ScalarFunction {
        name: "evtx_json_error",
        description: "What is wrong with a text of JSON: it is not JSON, a name occurs twice in an object, or a value has another \
                      type than that which the second argument names, as evtx_json_lines says it in error.",
        example: "SELECT evtx_json_error('{\"a\": 1, \"a\": 2}', '{\"a\": \"UBIGINT\"}')",
        parameters: vec![text("json"), text("types")],
        result: text("error"),
        make: Box::new(|| Box::new(JsonError::default())),
    }
}

/// The last types, with their text.
#[derive(Default)]
struct JsonError(String, JsonTypes);

impl Scalar for JsonError {
    /// NULL if nothing is wrong, and for NULL.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let &[texts, types] = vectors else {
            return Err("a check of JSON has two arguments".into());
        };
        let (mut errors, mut unchecked) = (StringViewBuilder::new(), Unchecked::default());
        for row in 0..texts.rows {
            // SAFETY: by the contract of this function.
            let (text, types) = unsafe { (texts.text(row)?, types.text(row)?.unwrap_or_default()) };
            if self.0 != types {
                let parsed = types
                    .parse()
                    .map_err(|why| format!("the types are not JSON with names of types: {why}"))?;
                *self = JsonError(types.to_owned(), parsed);
            }
            unchecked.add(text.map_or(0, str::len), caller.interrupt)?;
            let check = |text| check_json(text, Some(&self.1), caller.interrupt).map_err(ScanError::from);
            errors.append_option(match text.map(check).transpose()? {
                None | Some(JsonCheck::Valid) => None,
                Some(JsonCheck::Odd(why) | JsonCheck::NotJson(why)) => Some(why),
            });
        }
        Ok(Arc::new(errors.finish()))
    }
}
