//! Interrupts: the caller can end work early.

use std::fmt;

/// Tells long work whether to stop. The work asks at least every few milliseconds.
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

    /// Asks whether the work shall stop.
    ///
    /// # Errors
    /// [`Interrupted`] if it shall.
    #[inline]
    pub fn check(&self) -> Result<(), Interrupted> {
        match self.is_set {
            Some(is_set) if is_set() => Err(Interrupted),
            _ => Ok(()),
        }
    }
}
