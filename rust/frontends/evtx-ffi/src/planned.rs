//! Planned calls: whether the hints of a call still hold when the call is run. Hints are the predicates of a query.
//!
//! After DuckDB has passed the hints of each call, it can merge two scans with the same arguments, whatever their hints
//! (`common_subplan`). The scan that remains then also provides the rows of the other, which may need more of them.
//! DuckDB notifies neither, but it destroys the other scan before it runs anything of the statement. Its API (2.0.1) has
//! no callback that would tell the two apart: it compares the arguments, and serializes no data of the bind.
//!
//! So a call drops its hints if, after it received them, another call with the same arguments and other hints was
//! destroyed without having been run. If that was a call of another statement, the lost hints cost time, but no rows.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use evtx_arrow::Expression;

use crate::filter::{Conditions, EvtxNode};

/// A call that was bound, by its number in the registry.
pub(crate) struct Planned(u64);

/// The state of a call.
#[derive(Default)]
struct Call {
    /// The arguments as text. Calls with the same text can be merged.
    arguments: String,
    hints: Conditions,
    has_run: bool,
    /// Whether another call with other hints may have been merged into this one.
    may_be_shared: bool,
}

impl Call {
    fn clear_hints(&mut self) {
        self.hints = Conditions::default();
        self.may_be_shared = false;
    }
}

/// The calls that are alive, by number.
#[derive(Default)]
struct Registry {
    calls: HashMap<u64, Call>,
    next: u64,
}

fn registry() -> MutexGuard<'static, Registry> {
    static REGISTRY: LazyLock<Mutex<Registry>> = LazyLock::new(Mutex::default);
    // A poisoned lock is used all the same: each change under the lock is one step, which a panic cannot interrupt.
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Planned {
    /// Registers a call that was bound. `arguments` is a text of everything that distinguishes it from other calls.
    pub(crate) fn new(arguments: String) -> Self {
        let mut registry = registry();
        let number = registry.next;
        registry.next += 1;
        registry.calls.insert(
            number,
            Call {
                arguments,
                ..Call::default()
            },
        );
        Planned(number)
    }

    fn with<T>(&self, change: impl FnOnce(&mut Call) -> T) -> Option<T> {
        registry().calls.get_mut(&self.0).map(change)
    }

    /// Removes its hints.
    pub(crate) fn clear_hints(&self) {
        self.with(Call::clear_hints);
    }

    /// Adds a node to its hints.
    ///
    /// # Errors
    /// Those of [`Conditions::push`].
    pub(crate) fn hint(&self, node: &EvtxNode<'_>) -> Result<(), String> {
        self.with(|state| state.hints.push(node)).unwrap_or(Ok(()))
    }

    /// Marks the call as run. Returns its hints, or none if they may not hold.
    pub(crate) fn run(&self) -> Vec<Expression> {
        let run = |state: &mut Call| {
            state.has_run = true;
            (!state.may_be_shared).then(|| state.hints.expressions())
        };
        self.with(run).flatten().unwrap_or_default()
    }
}

impl Drop for Planned {
    fn drop(&mut self) {
        let mut registry = registry();
        let Some(gone) = registry.calls.remove(&self.0) else {
            return;
        };
        let others = registry.calls.values_mut();
        for other in others.filter(|other| other.arguments == gone.arguments) {
            other.may_be_shared |= !gone.has_run && !other.has_run && other.hints != gone.hints;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::EvtxNodeKind;

    fn hints(column: usize) -> Vec<Expression> {
        vec![Expression::Column(column)]
    }

    /// Replaces the hints of a call.
    fn hint(planned: &Planned, column: u64) {
        let node = EvtxNode {
            kind: EvtxNodeKind::Column,
            number: column,
            ..EvtxNode::default()
        };
        let replace = |state: &mut Call| {
            state.clear_hints();
            state.hints.push(&node)
        };
        assert_eq!(planned.with(replace), Some(Ok(())));
    }

    #[test]
    fn hints_hold_unless_another_call_went_unrun_with_others() {
        let (one, two) = (Planned::new("a".to_owned()), Planned::new("a".to_owned()));
        hint(&one, 1);
        hint(&two, 2);
        // Both are alive, so they are two scans.
        assert_eq!(two.run(), hints(2));
        assert_eq!(one.run(), hints(1));
        drop(two);
        assert_eq!(one.run(), hints(1), "it was run");
        let (three, four) = (Planned::new("a".to_owned()), Planned::new("a".to_owned()));
        hint(&three, 3);
        hint(&four, 4);
        drop(four);
        assert_eq!(three.run(), [], "its rows may be those of the other, too");
        let (five, six, other) = (
            Planned::new("b".to_owned()),
            Planned::new("b".to_owned()),
            Planned::new("c".to_owned()),
        );
        hint(&five, 5);
        hint(&six, 5);
        hint(&other, 6);
        drop((six, other));
        assert_eq!(five.run(), hints(5));
        // Later hints hold.
        let (seven, eight) = (Planned::new("d".to_owned()), Planned::new("d".to_owned()));
        hint(&eight, 8);
        drop(eight);
        hint(&seven, 7);
        assert_eq!(seven.run(), hints(7));
    }

    #[test]
    fn nothing_remains_of_calls_that_are_gone() {
        let (one, two) = (Planned::new("gone".to_owned()), Planned::new("gone".to_owned()));
        drop((one, two));
        assert!(registry().calls.values().all(|call| call.arguments != "gone"));
    }
}
