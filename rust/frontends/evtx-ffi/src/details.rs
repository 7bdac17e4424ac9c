//! The function that writes the fields of an event as one line.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::StringViewBuilder;
use arrow_schema::{DataType, Field};
use evtx_codes::Event;
use evtx_scan::ScanError;

use crate::boundary::EvtxError;
use crate::scalar::{Caller, EvtxVector, LONG, Pairs, Scalar, ScalarFunction};

/// The function.
pub(crate) fn function() -> ScalarFunction {
    let text = |name| Field::new(name, DataType::Utf8, true);
    let list = |name, item| Field::new(name, DataType::List(Field::new_list_field(item, true).into()), true);
    let pair = DataType::Struct(vec![text("key"), text("value")].into());
    ScalarFunction {
        name: "evtx_event_details",
        description: "The fields of an event as one line, with the names of codes, as in the column details of \
                      evtx_timeline. The fourth argument is the name for a field #text; values in the last list are \
                      left out.",
        example: "SELECT evtx_event_details(provider, event_id, map_entries(event_data), '', ['-']) FROM \
                  read_evtx('Security.evtx')",
        parameters: vec![
            text("provider"),
            Field::new("event_id", DataType::UInt32, true),
            list("fields", pair),
            text("root"),
            list("shown", DataType::Utf8),
        ],
        result: text("details"),
        make: Box::new(|| Box::new(Details)),
    }
}

struct Details;

impl Scalar for Details {
    /// NULL without fields.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let &[providers, ids, lists, pairs, keys, values, roots, lists_shown, texts] = vectors else {
            return Err("the details of events have five arguments".into());
        };
        let own = Pairs::new([lists, pairs, keys, values]);
        let mut lines = StringViewBuilder::new();
        let (mut fields, mut shown, mut bytes) = (Vec::new(), Vec::new(), 0);
        for row in 0..lists.rows {
            fields.clear();
            shown.clear();
            // SAFETY: by the contract of this function.
            let (own, items) = unsafe { (own.row(row), lists_shown.items(row)) };
            for pair in own {
                if let (key, Some(value)) = pair? {
                    fields.push((key, value));
                    bytes += key.len() + value.len();
                }
            }
            for text in items {
                // SAFETY: as above.
                shown.extend(unsafe { texts.text(text)? });
            }
            if bytes > LONG {
                bytes = 0;
                caller.interrupt.check().map_err(ScanError::from)?;
            }
            // SAFETY: as above.
            let event = unsafe {
                Event {
                    provider: providers.text(row)?.unwrap_or_default(),
                    event_id: ids.value(row).unwrap_or_default(),
                    root: roots.text(row)?.unwrap_or_default(),
                    fields: &fields,
                    shown: &shown,
                }
            };
            lines.append_option(event.details());
        }
        Ok(Arc::new(lines.finish()))
    }
}
