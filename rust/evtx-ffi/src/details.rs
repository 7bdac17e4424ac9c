//! The function that writes the fields of an event as one line, for a vector of rows at a time.

use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use evtx_codes::Event;
use evtx_format::Interrupt;
use evtx_scan::ScanError;

use crate::answers::{EvtxPairs, EvtxVector, LONG};
use crate::boundary::{EvtxError, EvtxFailure, EvtxFunction, EvtxOwned, produce};
use crate::storage::EvtxStorage;
use crate::vectors::EvtxArrays;

/// The function: its name, its description and an example.
pub const DETAILS_FUNCTION: (&str, &str, &str) = (
    "evtx_event_details",
    "The fields of an event as one line, with the names of codes, as in the column details of evtx_timeline. The fourth \
     argument is the name for a field #text; values in the last list are left out.",
    "SELECT evtx_event_details(provider, event_id, map_entries(event_data), '', ['-']) FROM read_evtx('Security.evtx')",
);

/// The function as DuckDB registers it.
pub(crate) fn details_function() -> EvtxFunction {
    let (name, description, example) = DETAILS_FUNCTION;
    EvtxFunction::new(name, description, example)
}

/// The vectors of events.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxEvents {
    /// The providers: VARCHAR.
    pub providers: EvtxVector,
    /// The IDs: UINTEGER.
    pub ids: EvtxVector,
    /// The fields.
    pub fields: EvtxPairs,
    /// The names for fields without one: VARCHAR.
    pub roots: EvtxVector,
    /// The lists of values to leave out. Each has the index of its first value and their count, both u64.
    pub shown: EvtxVector,
    /// The values of all these lists: VARCHAR.
    pub texts: EvtxVector,
}

impl EvtxEvents {
    /// The lines: an array with a row for each row of the vectors. NULL without fields.
    ///
    /// # Errors
    /// A text that is not UTF-8, or [`Interrupted`](evtx_format::Interrupted).
    ///
    /// # Safety
    /// The vectors are what the fields say.
    pub unsafe fn details(&self, interrupt: Interrupt<'_>) -> Result<EvtxArrays, EvtxError> {
        let mut lines = StringViewBuilder::new();
        let (mut fields, mut shown, mut bytes) = (Vec::new(), Vec::new(), 0);
        for row in 0..self.fields.lists.rows {
            // SAFETY: by the contract of this function.
            let (own, [first, count]) = unsafe {
                let own = self.fields.lists.value(row).unwrap_or_default();
                (
                    self.fields.of(own),
                    self.shown.value::<[u64; 2]>(row).unwrap_or_default(),
                )
            };
            fields.clear();
            shown.clear();
            for pair in own {
                if let (key, Some(value)) = pair? {
                    fields.push((key, value));
                    bytes += key.len() + value.len();
                }
            }
            for text in first..first.saturating_add(count) {
                // SAFETY: as above.
                shown.extend(unsafe { self.texts.text(text as usize)? });
            }
            if bytes > LONG {
                bytes = 0;
                interrupt.check().map_err(ScanError::from)?;
            }
            // SAFETY: as above.
            let event = unsafe {
                Event {
                    provider: self.providers.text(row)?.unwrap_or_default(),
                    event_id: self.ids.value(row).unwrap_or_default(),
                    root: self.roots.text(row)?.unwrap_or_default(),
                    fields: &fields,
                    shown: &shown,
                }
            };
            lines.append_option(event.details());
        }
        Ok(EvtxArrays::of(Arc::new(lines.finish())))
    }
}

/// Writes the fields of events as lines, as one array.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_events_details(
    events: EvtxEvents,
    storage: EvtxStorage,
    out: Option<&mut EvtxOwned<EvtxArrays>>,
) -> EvtxFailure {
    produce(out, || {
        // SAFETY: the caller passes what the vectors are.
        let lines = storage.during(|_, interrupt| unsafe { events.details(interrupt) })?;
        Ok(Some(lines.into()))
    })
}
