//! Work that ends early because its caller wants it to.

use std::fmt;

/// How work asks whether to go on: often enough that no answer takes more than some milliseconds.
#[derive(Clone, Copy, Default)]
pub struct Interrupt<'i> {
    is_set: Option<&'i dyn Fn() -> bool>,
}

impl fmt::Debug for Interrupt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupt").finish_non_exhaustive()
    }
}

/// The caller wants no more of it. What was begun is not to be gone on with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

impl<'i> Interrupt<'i> {
    /// Nobody ends the work early.
    pub const NEVER: Interrupt<'static> = Interrupt { is_set: None };

    /// Work that ends early once `is_set` returns true. It is called up to a million times a second.
    pub fn new(is_set: &'i dyn Fn() -> bool) -> Self {
        Interrupt { is_set: Some(is_set) }
    }

    /// Asks.
    ///
    /// # Errors
    /// [`Interrupted`] if the work shall end.
    #[inline]
    pub fn check(&self) -> Result<(), Interrupted> {
        match self.is_set {
            Some(is_set) if is_set() => Err(Interrupted),
            _ => Ok(()),
        }
    }
}
