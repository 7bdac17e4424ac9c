//! How the caller ends a call early.

use std::ffi::c_void;

use evtx_format::Interrupt;

/// How a call asks whether to go on. It may ask up to a million times a second.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxInterrupt {
    /// Returns whether the call shall end, given `state`. Null if it never shall. What it calls must not throw through it.
    pub is_set: Option<unsafe extern "C" fn(state: *mut c_void) -> bool>,
    /// The caller's.
    pub state: *mut c_void,
}

impl EvtxInterrupt {
    /// Runs work that asks.
    ///
    /// # Safety
    /// `is_set` can be called with `state` from this thread while the work is run.
    pub(crate) unsafe fn during<T>(self, work: impl FnOnce(Interrupt<'_>) -> T) -> T {
        match self.is_set {
            // SAFETY: the caller's promise.
            Some(is_set) => work(Interrupt::new(&|| unsafe { is_set(self.state) })),
            None => work(Interrupt::NEVER),
        }
    }
}
