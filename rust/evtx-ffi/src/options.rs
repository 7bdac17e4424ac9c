//! The options of a scan through the C ABI.

use std::ffi::c_char;

use evtx_arrow::{OnError, Options};

use crate::boundary::{Code, entry, put, text};

/// What becomes of damage.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvtxOnError {
    /// Rows with an error.
    Report,
    /// No rows.
    Skip,
    /// The end of the scan.
    Fail,
}

impl Code for EvtxOnError {
    const ALL: &[Self] = &[EvtxOnError::Report, EvtxOnError::Skip, EvtxOnError::Fail];
    const WHAT: &str = "choice for on_error";
}

/// The options of a scan.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxOptions {
    /// What becomes of damage, an `EvtxOnError`.
    pub on_error: u32,
    /// Whether checksums are compared.
    pub verify: bool,
    /// Whether there is a column of each event's XML.
    pub xml: bool,
    /// Whether there is a column of each event's JSON.
    pub json: bool,
    /// Whether there are columns for where a record stands.
    pub location: bool,
    /// Whether there are also records that a chunk's bookkeeping does not reach, and chunks of files that are no logs.
    pub recover: bool,
}

impl TryFrom<EvtxOptions> for Options {
    type Error = String;

    fn try_from(options: EvtxOptions) -> Result<Self, String> {
        Ok(Options {
            on_error: match EvtxOnError::decode(options.on_error)? {
                EvtxOnError::Report => OnError::Report,
                EvtxOnError::Skip => OnError::Skip,
                EvtxOnError::Fail => OnError::Fail,
            },
            verify: options.verify,
            xml: options.xml,
            json: options.json,
            location: options.location,
            recover: options.recover,
        })
    }
}

/// The choice for `on_error` that a name stands for, an `EvtxOnError`. An error lists the choices.
///
/// # Safety
/// `name` is text, `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_on_error(name: *const c_char, name_len: usize, out: *mut u32) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, name_len) }?;
        let on_error = match name.parse()? {
            OnError::Report => EvtxOnError::Report,
            OnError::Skip => EvtxOnError::Skip,
            OnError::Fail => EvtxOnError::Fail,
        };
        // SAFETY: the caller's promise.
        unsafe { put(out, on_error as u32) };
        Ok(())
    })
}
