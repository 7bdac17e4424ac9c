//! Certain events, through the C ABI.

use std::ffi::c_char;

use evtx_arrow::Events;

use crate::boundary::text;

/// Certain events.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxEvents {
    /// Their IDs, `id_count` of them.
    pub ids: *const u32,
    /// How many there are.
    pub id_count: usize,
    /// The name of their provider, or null if it does not matter.
    pub provider: *const c_char,
    /// Bytes of that name.
    pub provider_len: usize,
}

/// # Safety
/// The pointers are valid for as long as their counts say.
pub(crate) unsafe fn events(events: &EvtxEvents) -> Result<Events, String> {
    let ids = match events.id_count {
        0 => &[],
        // SAFETY: the caller's promise.
        count => unsafe { std::slice::from_raw_parts(events.ids, count) },
    };
    let provider = match events.provider.is_null() {
        true => None,
        // SAFETY: the caller's promise.
        false => Some(unsafe { text(events.provider, events.provider_len) }?),
    };
    Ok(Events {
        ids: ids.into(),
        provider: provider.map(Into::into),
    })
}
