//! Formulas: rules as atoms with `and`, `or` and `not`.

use super::atoms::{AtomId, AtomsBuilder, EVERY_VALUE, FieldId};
use super::necessary::necessary_of_regex;
use crate::case::fold;
use crate::condition::Condition;
use crate::item::Item;
use crate::matcher::Matcher;
use crate::pattern::{Pattern, Piece};
use crate::rule::{Detection, Rule};

/// What has to be true.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Formula {
    /// This is known.
    Known(bool),
    /// An atom that the look at a text decides.
    Text(AtomId),
    /// An atom that is decided alone.
    Costly(AtomId),
    /// Something is known of a field as such.
    Field(State, FieldId),
    /// A detection of the rule that several parts of its condition name, by its index.
    Detection(u32),
    /// All are true.
    All(Vec<Formula>),
    /// One is true.
    Any(Vec<Formula>),
    /// It is not true.
    Not(Box<Formula>),
}

/// What can be known of a field as such.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// It has a value that is not NULL.
    HasText,
    /// A value of it is NULL.
    HasNull,
    /// The event has it.
    IsThere,
}

/// A rule as formulas.
#[derive(Debug, Default)]
pub(super) struct RuleFormula {
    /// Those of its detections.
    pub(super) detections: Vec<Formula>,
}

impl Formula {
    /// All of these are true. What does not cost much stands first.
    pub(super) fn all(parts: impl IntoIterator<Item = Formula>) -> Formula {
        Formula::joined(parts, false, Formula::All)
    }

    /// One of these is true. What does not cost much stands first.
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

    /// Joins parts, of which one that is `decides` decides the whole.
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
                left.sort_by_cached_key(Formula::has_costly);
                list(left)
            }
        }
    }

    /// Whether it can take an atom that is decided alone.
    fn has_costly(&self) -> bool {
        match self {
            Formula::Costly(_) | Formula::Detection(_) => true,
            Formula::Known(_) | Formula::Text(_) | Formula::Field(..) => false,
            // Costly parts stand last.
            Formula::All(parts) | Formula::Any(parts) => parts.last().is_some_and(Formula::has_costly),
            Formula::Not(inner) => inner.has_costly(),
        }
    }
}

impl RuleFormula {
    pub(super) fn new(rule: &Rule, atoms: &mut AtomsBuilder) -> RuleFormula {
        let detections = rule.detections.iter().map(|detection| of_detection(detection, atoms));
        RuleFormula {
            detections: detections.collect(),
        }
    }
}

/// Counts how often a condition names each detection.
pub(super) fn count_detections(condition: &Condition, times: &mut [u32]) {
    match condition {
        &Condition::Detection(index) => times[index] += 1,
        Condition::Not(inner) => count_detections(inner, times),
        Condition::All(parts) | Condition::Any(parts) => parts.iter().for_each(|part| count_detections(part, times)),
    }
}

fn of_detection(detection: &Detection, atoms: &mut AtomsBuilder) -> Formula {
    let alternatives = detection.any.iter();
    let formulas: Vec<_> = alternatives
        .map(|items| Formula::all(items.iter().map(|item| of_item(item, atoms)).collect::<Vec<_>>()))
        .collect();
    Formula::any(formulas)
}

fn of_item(item: &Item, atoms: &mut AtomsBuilder) -> Formula {
    let field = match &item.field {
        Some(name) => atoms.field(name),
        None => EVERY_VALUE,
    };
    let any: Vec<_> = item
        .any
        .iter()
        .map(|matcher| of_matcher(matcher, field, atoms))
        .collect();
    let any = Formula::any(any);
    match item.is_negated && item.field.is_some() {
        true => Formula::all([Formula::Field(State::HasText, field), any.not()]),
        false => any,
    }
}

fn of_matcher(matcher: &Matcher, field: FieldId, atoms: &mut AtomsBuilder) -> Formula {
    let is_there = Formula::Field(State::IsThere, field);
    match matcher {
        // Keywords are about texts.
        Matcher::Exists(_) | Matcher::Null if field == EVERY_VALUE => Formula::Known(false),
        Matcher::Exists(true) => is_there,
        Matcher::Exists(false) => is_there.not(),
        Matcher::Null => Formula::any([Formula::Field(State::HasNull, field), is_there.not()]),
        Matcher::Text { pattern, cased } => {
            let necessary = of_pattern(pattern, *cased, field, atoms);
            match *cased || matches!(pattern, Pattern::Wildcards(_)) || is_long(pattern) {
                true => Formula::all([necessary, Formula::Costly(atoms.costly(field, matcher))]),
                false => necessary,
            }
        }
        Matcher::Regex(expression) => {
            let needles = necessary_of_regex(expression);
            let necessary = match needles {
                Some(needles) => Formula::any(
                    needles
                        .iter()
                        .map(|needle| of_pattern(&Pattern::Contains(needle.as_str().into()), true, field, atoms))
                        .collect::<Vec<_>>(),
                ),
                None => Formula::Known(true),
            };
            Formula::all([necessary, Formula::Costly(atoms.costly(field, matcher))])
        }
        Matcher::FieldReference { field: other, .. } => {
            let other = atoms.field(other);
            let costly = Formula::Costly(atoms.costly(field, matcher));
            Formula::all([Formula::Field(State::HasText, other), costly])
        }
        Matcher::Network(_) | Matcher::Number { .. } => Formula::Costly(atoms.costly(field, matcher)),
    }
}

/// Needles that are longer than this are looked for by their first bytes, and then alone: so the size of an automaton
/// is bounded by the number of needles.
pub(super) const LONG: usize = 64;

fn is_long(pattern: &Pattern) -> bool {
    !matches!(pattern, Pattern::Exact(_)) && pattern.needles().any(|needle| needle.len() > LONG)
}

/// What a look at the folded text says of a pattern: that it is true, or, if it has wildcards, case or a long needle,
/// that it may be.
fn of_pattern(pattern: &Pattern, is_cased: bool, field: FieldId, atoms: &mut AtomsBuilder) -> Formula {
    let short = |text: &str| -> Box<str> {
        match is_cased {
            true => shortened(&fold(text)).into(),
            false => shortened(text).into(),
        }
    };
    let whole = |text: &str| -> Box<str> {
        match is_cased {
            true => fold(text).into(),
            false => text.into(),
        }
    };
    let simple = match pattern {
        Pattern::Exact(text) => Pattern::Exact(whole(text)),
        Pattern::StartsWith(text) | Pattern::EndsWith(text) | Pattern::Contains(text) if text.is_empty() => {
            return Formula::Field(State::HasText, field);
        }
        Pattern::StartsWith(text) => Pattern::StartsWith(short(text)),
        Pattern::EndsWith(text) if text.len() <= LONG => Pattern::EndsWith(whole(text)),
        Pattern::EndsWith(text) | Pattern::Contains(text) => Pattern::Contains(short(text)),
        Pattern::Wildcards(pieces) => {
            let texts = pieces.iter().enumerate().filter_map(|(at, piece)| match piece {
                Piece::Text(text) => Some((text, at)),
                Piece::One | Piece::Many | Piece::Dash => None,
            });
            match texts.max_by_key(|(text, _)| text.len()) {
                None => return Formula::Field(State::HasText, field),
                Some((text, 0)) => Pattern::StartsWith(short(text)),
                Some((text, at)) if at + 1 == pieces.len() && text.len() <= LONG => Pattern::EndsWith(whole(text)),
                Some((text, _)) => Pattern::Contains(short(text)),
            }
        }
    };
    Formula::Text(atoms.text(field, simple))
}

/// The start of a text, of at most [`LONG`] bytes.
fn shortened(text: &str) -> &str {
    let mut end = text.len().min(LONG);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
