//! Planned calls: whether the hints of a call still hold when the call is run. Hints are the predicates of a query.
//!
//! After DuckDB has told calls their hints, it can merge two scans with the same arguments, whatever their hints are
//! (`common_subplan`). The rows of the scan that stays are then also the rows of the other, which may need more. DuckDB
//! tells neither of them, and a call cannot find out which statement it belongs to. But the scan that goes is destroyed
//! before DuckDB runs anything of the statement.
//!
//! So a call drops its hints if another call with the same arguments and other hints was destroyed, without having been
//! run, after the call was told its hints. That other call can belong to another statement. Then the lost hints cost
//! time, but no rows.

use std::collections::HashMap;
use std::ffi::c_char;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::boundary::{entry, free, put, release, text};
use crate::filter::{EvtxHints, Hints};

/// A call that was bound.
pub struct EvtxPlanned {
    /// The arguments as text. Calls with the same text can be merged.
    arguments: String,
    /// Tells it from other calls with the same arguments.
    number: u64,
}

/// The state of a call.
#[derive(Default)]
struct State {
    hints: Hints,
    has_run: bool,
    /// Whether another call with other hints may have been merged into this one.
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
    // A poisoned lock is used all the same: each change under the lock is one step, which a panic cannot interrupt.
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

    /// Replaces the hints.
    fn tell(&self, hints: Hints) {
        self.with(|state| {
            state.hints = hints;
            state.may_be_shared = false;
        });
    }

    /// Marks the call as run. Returns its hints, or none if they may not hold.
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

/// Registers a call that was bound. `arguments` is a text of everything that tells it from other calls.
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

/// Replaces the hints of a call.
///
/// # Safety
/// `planned` is valid, and so are the pointers of `hints`, as [`EvtxHints`] says.
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
