//! Interrupts, by which the caller ends work early.

use std::fmt;
use std::thread;

/// Whether long work should stop. The work checks it at least every few milliseconds.
#[derive(Clone, Copy, Default)]
pub struct Interrupt<'i> {
    is_set: Option<&'i dyn Fn() -> bool>,
}

impl fmt::Debug for Interrupt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupt").finish_non_exhaustive()
    }
}

/// The caller has ended the work. The result so far is incomplete, and the work cannot be continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

impl<'i> Interrupt<'i> {
    /// Never stops the work.
    pub const NEVER: Interrupt<'static> = Interrupt { is_set: None };

    /// Stops the work once `is_set` returns true. The work calls it up to a million times a second.
    pub fn new(is_set: &'i dyn Fn() -> bool) -> Self {
        Interrupt { is_set: Some(is_set) }
    }

    /// # Errors
    /// [`Interrupted`] if the work should stop.
    #[inline]
    pub fn check(&self) -> Result<(), Interrupted> {
        match self.is_set {
            Some(is_set) if is_set() => Err(Interrupted),
            _ => Ok(()),
        }
    }

    /// As [`check`](Self::check), but at every 1024th step of long work only.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn check_step(&self, step: usize) -> Result<(), Interrupted> {
        if step.is_multiple_of(1024) {
            self.check()
        } else {
            Ok(())
        }
    }
}

/// Frees a large value on a thread of its own, because whoever interrupts a call waits for the call.
pub fn free<T: Send + 'static>(value: T) {
    // Without a thread, the closure is dropped here, and what it holds.
    _ = thread::Builder::new().spawn(move || drop(value));
}
