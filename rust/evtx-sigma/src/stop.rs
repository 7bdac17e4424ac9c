//! Stopping work before it is done.

use std::cell::Cell;

/// The caller stopped the work before it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the search for matching rules was stopped")]
pub struct Stopped;

/// Asks the caller whether to stop. After a yes, it is not asked again.
pub(crate) struct Stop<'a> {
    ask: &'a dyn Fn() -> bool,
    is_stopped: Cell<bool>,
}

impl<'a> Stop<'a> {
    /// Bytes of text that are searched between two questions.
    pub(crate) const BYTES: usize = 1 << 16;
    /// Bytes of a text that is read several times without a question.
    pub(crate) const SHORT: usize = 1 << 12;

    pub(crate) fn new(ask: &'a dyn Fn() -> bool) -> Self {
        Stop {
            ask,
            is_stopped: Cell::new(false),
        }
    }

    /// For work that nothing stops.
    pub(crate) fn never() -> Stop<'static> {
        Stop::new(&|| false)
    }

    /// Asks whether to stop.
    pub(crate) fn check(&self) -> Result<(), Stopped> {
        if !self.is_stopped.get() {
            self.is_stopped.set((self.ask)());
        }
        self.result()
    }

    /// The last answer, without asking.
    pub(crate) fn result(&self) -> Result<(), Stopped> {
        match self.is_stopped.get() {
            true => Err(Stopped),
            false => Ok(()),
        }
    }
}
