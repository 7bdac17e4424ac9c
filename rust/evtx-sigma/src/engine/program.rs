//! Programs: formulas as numbers, to be evaluated quickly.

use super::formula::{Formula, State};

/// What a step asks for. The upper four bits of a step are this, the others a number: an atom, a field, the place of a
/// detection, or how many steps belong to a list.
#[derive(Debug)]
pub(super) struct Step;

impl Step {
    pub(super) const TEXT: u32 = 0;
    pub(super) const COSTLY: u32 = 1;
    pub(super) const HAS_TEXT: u32 = 2;
    pub(super) const HAS_NULL: u32 = 3;
    pub(super) const IS_THERE: u32 = 4;
    pub(super) const ALL: u32 = 5;
    pub(super) const ANY: u32 = 6;
    pub(super) const NOT: u32 = 7;
    pub(super) const DETECTION: u32 = 8;
    pub(super) const TRUE: u32 = 9;
}

/// The bits of the number in a step.
pub(super) const NUMBER_BITS: u32 = 28;

/// Adds the steps of a rule, and gives back the place of the first to be evaluated. `detections` are those that the
/// formula names.
pub(super) fn add_rule(formula: &Formula, detections: &[Formula], steps: &mut Vec<u32>) -> u32 {
    let mut named = vec![false; detections.len()];
    find_named(formula, &mut named);
    let places: Vec<u32> = named
        .iter()
        .zip(detections)
        .map(|(is_named, detection)| {
            let place = steps.len() as u32;
            if *is_named {
                add(detection, &[], steps);
            }
            place
        })
        .collect();
    let place = steps.len() as u32;
    add(formula, &places, steps);
    place
}

fn find_named(formula: &Formula, named: &mut [bool]) {
    match formula {
        &Formula::Detection(index) => named[index as usize] = true,
        Formula::All(parts) | Formula::Any(parts) => parts.iter().for_each(|part| find_named(part, named)),
        Formula::Not(inner) => find_named(inner, named),
        Formula::Known(_) | Formula::Text(_) | Formula::Costly(_) | Formula::Field(..) => {}
    }
}

fn add(formula: &Formula, places: &[u32], steps: &mut Vec<u32>) {
    let (kind, number) = match formula {
        // A rule that cannot be true has no program.
        Formula::Known(true) => (Step::TRUE, 0),
        Formula::Known(false) => (Step::ANY, 0),
        &Formula::Text(id) => (Step::TEXT, id),
        &Formula::Costly(id) => (Step::COSTLY, id),
        &Formula::Field(State::HasText, field) => (Step::HAS_TEXT, field),
        &Formula::Field(State::HasNull, field) => (Step::HAS_NULL, field),
        &Formula::Field(State::IsThere, field) => (Step::IS_THERE, field),
        &Formula::Detection(index) => (Step::DETECTION, places[index as usize]),
        Formula::All(parts) => return add_list(Step::ALL, parts, places, steps),
        Formula::Any(parts) => return add_list(Step::ANY, parts, places, steps),
        Formula::Not(inner) => return add_list(Step::NOT, std::slice::from_ref(inner), places, steps),
    };
    steps.push(kind << NUMBER_BITS | number);
}

fn add_list(kind: u32, parts: &[Formula], places: &[u32], steps: &mut Vec<u32>) {
    let place = steps.len();
    steps.push(0);
    for part in parts {
        add(part, places, steps);
    }
    steps[place] = kind << NUMBER_BITS | (steps.len() - place - 1) as u32;
}
