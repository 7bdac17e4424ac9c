//! Calls as parts of plans: whether what a call was told of a query's predicates still holds when it is run.
//!
//! After the predicates were told, DuckDB can make one scan of two with the same arguments, whatever each was told: the
//! rows of the one that stays are then the other's too. Nothing is said to either, and nothing that a call can see
//! names the statement that it is part of. But the scan that goes is destroyed before anything of the statement is run.
//! So a call does without its hints if another with the same arguments was destroyed unrun, with other hints, since
//! they were told. That can be another statement's too, which costs time and no rows.

use std::collections::HashMap;
use std::ffi::c_char;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::boundary::{entry, free, put, release, text};
use crate::filter::{EvtxHints, Hints};

/// A call that was bound.
pub struct EvtxPlanned {
    /// All that makes it another one, as text.
    arguments: String,
    number: u64,
}

/// What is known of a call.
#[derive(Default)]
struct State {
    hints: Hints,
    has_run: bool,
    may_be_shared: bool,
}

/// The calls that are alive, by their arguments and number.
#[derive(Default)]
struct Registry {
    calls: HashMap<String, HashMap<u64, State>>,
    next: u64,
}

fn registry() -> MutexGuard<'static, Registry> {
    static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);
    // Each change is one step, so that a panic leaves none undone.
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl EvtxPlanned {
    fn new(arguments: &str) -> Self {
        let mut registry = registry();
        let number = registry.next;
        registry.next += 1;
        let calls = registry.calls.entry(arguments.to_owned()).or_default();
        calls.insert(number, State::default());
        EvtxPlanned {
            arguments: arguments.to_owned(),
            number,
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> Option<T> {
        let mut registry = registry();
        let state = registry.calls.get_mut(&self.arguments)?.get_mut(&self.number)?;
        Some(change(state))
    }

    /// Takes the hints of a query, in the place of those before.
    fn tell(&self, hints: Hints) {
        self.with(|state| {
            state.hints = hints;
            state.may_be_shared = false;
        });
    }

    /// Tells that the call is run. Returns the hints that hold.
    pub(crate) fn run(&self) -> Hints {
        let run = |state: &mut State| {
            state.has_run = true;
            (!state.may_be_shared).then(|| state.hints.clone())
        };
        self.with(run).flatten().unwrap_or_default()
    }
}

impl Drop for EvtxPlanned {
    fn drop(&mut self) {
        let mut registry = registry();
        let Some(calls) = registry.calls.get_mut(&self.arguments) else {
            return;
        };
        if let Some(gone) = calls.remove(&self.number) {
            for other in calls.values_mut() {
                other.may_be_shared |= !gone.has_run && !other.has_run && other.hints != gone.hints;
            }
        }
        if calls.is_empty() {
            registry.calls.remove(&self.arguments);
        }
    }
}

/// A call that was bound, with its arguments as text: all that makes it another one.
///
/// # Safety
/// `arguments` is text, `out` can be written. The caller frees the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_planned_new(
    arguments: *const c_char,
    len: usize,
    out: *mut *mut EvtxPlanned,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let planned = EvtxPlanned::new(unsafe { text(arguments, len) }?);
        // SAFETY: the caller's promise.
        unsafe { put(out, Box::into_raw(Box::new(planned))) };
        Ok(())
    })
}

/// Frees a call.
///
/// # Safety
/// `planned` is null or came from [`evtx_planned_new`], and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_planned_free(planned: *mut EvtxPlanned) {
    // SAFETY: the caller's promise.
    release(|| unsafe { free(planned) });
}

/// Takes the hints of a query, in the place of those before.
///
/// # Safety
/// `planned` is valid, the pointers of `hints` are valid as far as is said of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_planned_tell(planned: *const EvtxPlanned, hints: EvtxHints) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let (planned, hints) = unsafe { (&*planned, hints.to_owned()) };
        planned.tell(hints);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(byte: u8) -> Hints {
        Hints {
            bytes: vec![byte],
            ..Hints::default()
        }
    }

    #[test]
    fn hints_hold_unless_another_call_went_unrun_with_others() {
        let (one, two) = (EvtxPlanned::new("a"), EvtxPlanned::new("a"));
        one.tell(hints(1));
        two.tell(hints(2));
        // Both are alive, so they are two scans.
        assert_eq!(two.run().bytes, [2]);
        assert_eq!(one.run().bytes, [1]);
        drop(two);
        assert_eq!(one.run().bytes, [1], "it was run");
        let (three, four) = (EvtxPlanned::new("a"), EvtxPlanned::new("a"));
        three.tell(hints(3));
        four.tell(hints(4));
        drop(four);
        assert_eq!(three.run(), Hints::default(), "its rows may be those of the other, too");
        let (five, six, other) = (EvtxPlanned::new("b"), EvtxPlanned::new("b"), EvtxPlanned::new("c"));
        five.tell(hints(5));
        six.tell(hints(5));
        other.tell(hints(6));
        drop((six, other));
        assert_eq!(five.run().bytes, [5]);
        // What is told later holds.
        let (seven, eight) = (EvtxPlanned::new("d"), EvtxPlanned::new("d"));
        eight.tell(hints(8));
        drop(eight);
        seven.tell(hints(7));
        assert_eq!(seven.run().bytes, [7]);
    }

    #[test]
    fn nothing_stays_of_calls_that_are_gone() {
        let (one, two) = (EvtxPlanned::new("gone"), EvtxPlanned::new("gone"));
        drop((one, two));
        assert!(!registry().calls.contains_key("gone"));
    }
}
