//! Formulas: atoms with `and`, `or` and `not`.

use evtx_format::boundary;
use evtx_format::case::fold;

use super::atoms::{AtomId, Atoms, EVERY_VALUE, FieldId};
use crate::item::Item;
use crate::matcher::Matcher;
use crate::pattern::{Anchor, Pattern};
use crate::rule::Detection;

/// What must be true.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Formula {
    /// A constant.
    Known(bool),
    /// An atom with a needle.
    Needle(AtomId),
    /// An atom that is decided on its own.
    Costly(AtomId),
    /// A state of a field.
    Field(State, FieldId),
    /// A detection of more than one atom, by its index.
    Detection(u32),
    /// All are true.
    All(Vec<Formula>),
    /// One is true.
    Any(Vec<Formula>),
    /// It is not true.
    Not(Box<Formula>),
}

/// A state of a field, whatever its texts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It has a value that is not NULL.
    HasText,
    /// It has a value that is NULL.
    HasNull,
    /// The event has the field.
    IsThere,
}

impl Formula {
    /// All of these are true.
    pub(super) fn all(parts: impl IntoIterator<Item = Formula>) -> Formula {
        Formula::joined(parts, false, Formula::All)
    }

    /// One of these is true.
    pub(super) fn any(parts: impl IntoIterator<Item = Formula>) -> Formula {
        Formula::joined(parts, true, Formula::Any)
    }

    pub(super) fn not(self) -> Formula {
        match self {
            Formula::Known(is_true) => Formula::Known(!is_true),
            Formula::Not(inner) => *inner,
            other => Formula::Not(Box::new(other)),
        }
    }

    /// Joins parts. If one of them is `decides`, so is the whole.
    fn joined(parts: impl IntoIterator<Item = Formula>, decides: bool, list: fn(Vec<Formula>) -> Formula) -> Formula {
        let mut left = Vec::new();
        for part in parts {
            match part {
                Formula::Known(is_true) if is_true == decides => return part,
                Formula::Known(_) => {}
                Formula::All(inner) if !decides => left.extend(inner),
                Formula::Any(inner) if decides => left.extend(inner),
                other => left.push(other),
            }
        }
        match left.len() {
            0 => Formula::Known(!decides),
            1 => left.remove(0),
            _ => {
                // Kinds keep their formulas.
                left.shrink_to_fit();
                list(left)
            }
        }
    }

    /// How many bytes of memory its parts take.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Formula::All(parts) | Formula::Any(parts) => {
                parts.capacity() * size_of::<Formula>() + parts.iter().map(Formula::bytes).sum::<usize>()
            }
            Formula::Not(inner) => size_of::<Formula>() + inner.bytes(),
            _ => 0,
        }
    }
}

/// The formula of a detection.
pub(super) fn of_detection(detection: &Detection, atoms: &mut Atoms) -> Formula {
    let mut of_items = |items: &Vec<Item>| Formula::all(items.iter().map(|item| of_item(item, atoms)));
    Formula::any(detection.any.iter().map(&mut of_items))
}

fn of_item(item: &Item, atoms: &mut Atoms) -> Formula {
    let field = match &item.field {
        Some(name) => atoms.add_field(name),
        None => EVERY_VALUE,
    };
    let any = Formula::any(item.any.iter().map(|matcher| of_matcher(matcher, field, atoms)));
    if item.is_negated && item.field.is_some() {
        Formula::all([Formula::Field(State::HasText, field), any.not()])
    } else {
        any
    }
}

fn of_matcher(matcher: &Matcher, field: FieldId, atoms: &mut Atoms) -> Formula {
    let is_there = Formula::Field(State::IsThere, field);
    let necessary = match matcher {
        // Keywords are about texts.
        Matcher::Exists(_) | Matcher::Null if field == EVERY_VALUE => return Formula::Known(false),
        Matcher::Exists(true) => return is_there,
        Matcher::Exists(false) => return is_there.not(),
        Matcher::Null => return Formula::any([Formula::Field(State::HasNull, field), is_there.not()]),
        Matcher::Text { pattern, cased } => {
            let (necessary, is_enough) = of_pattern(pattern, field, atoms);
            if is_enough && !cased {
                return necessary;
            }
            necessary
        }
        Matcher::FieldReference { field: other, .. } => Formula::Field(State::HasText, atoms.add_field(other)),
        Matcher::Regex(_) | Matcher::Network(_) | Matcher::Number { .. } => Formula::Known(true),
    };
    Formula::all([necessary, Formula::Costly(atoms.costly(field, matcher))])
}

/// A longer needle is searched for by its first bytes, and then compared on its own. So the number of needles bounds the
/// size of an automaton. Building it takes longer with more bytes; with fewer, more needles are compared in vain.
const LONG: usize = 24;

/// What one search of the folded text says about a pattern: whether it can be true, and, unless it has wildcards or a
/// long needle, whether it is true without regard to case. Returns which of the two.
fn of_pattern(pattern: &Pattern, field: FieldId, atoms: &mut Atoms) -> (Formula, bool) {
    let (anchor, needle) = match pattern {
        Pattern::Needle(anchor, needle) => (*anchor, Some(&**needle)),
        Pattern::Wildcards(segments) => {
            let texts = segments.iter().enumerate();
            let texts = texts.filter_map(|(at, segment)| Some((at, segment.text()?)));
            match texts.max_by_key(|(_, text)| text.len()) {
                Some((0, text)) => (Anchor::Start, Some(text)),
                Some((at, text)) if at + 1 == segments.len() => (Anchor::End, Some(text)),
                other => (Anchor::Anywhere, other.map(|(_, text)| text)),
            }
        }
    };
    let needle = fold(needle.unwrap_or_default());
    if needle.is_empty() && anchor != Anchor::Whole {
        return (
            Formula::Field(State::HasText, field),
            matches!(pattern, Pattern::Needle(..)),
        );
    }
    let is_long = needle.len() > LONG && anchor != Anchor::Whole;
    let (anchor, needle) = match (is_long, anchor) {
        (true, Anchor::Start) => (Anchor::Start, &needle[..boundary(&needle, LONG)]),
        (true, _) => (Anchor::Anywhere, &needle[..boundary(&needle, LONG)]),
        (false, _) => (anchor, &*needle),
    };
    let is_enough = !is_long && matches!(pattern, Pattern::Needle(..));
    (Formula::Needle(atoms.needle(field, anchor, needle)), is_enough)
}
