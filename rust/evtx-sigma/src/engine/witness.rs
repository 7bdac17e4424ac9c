//! Witnesses: atoms of which at least one is true whenever a rule matches.

use super::atoms::{AtomId, Atoms, Test};
use super::formula::Formula;
use crate::pattern::Place;

/// The rarest witnesses of a formula. `None` if there are none, because the formula may be true whatever the texts are.
/// `detections` are those that it names.
pub(super) fn witnesses(formula: &Formula, detections: &[Formula], atoms: &Atoms) -> Option<Vec<AtomId>> {
    let mut found = Vec::new();
    cost(formula, detections, atoms)?;
    collect(formula, detections, atoms, &mut found);
    found.sort_unstable();
    found.dedup();
    Some(found)
}

/// How often one of the witnesses of a formula may be true, as a number to compare.
fn cost(formula: &Formula, detections: &[Formula], atoms: &Atoms) -> Option<f32> {
    match formula {
        &Formula::Needle(id) => Some(frequency(id, atoms)),
        &Formula::Detection(index) => cost(&detections[index as usize], detections, atoms),
        Formula::All(parts) => {
            let costs = parts.iter().filter_map(|part| cost(part, detections, atoms));
            costs.min_by(f32::total_cmp)
        }
        Formula::Any(parts) => parts.iter().map(|part| cost(part, detections, atoms)).sum(),
        Formula::Known(_) | Formula::Costly(_) | Formula::Field(..) | Formula::Not(_) => None,
    }
}

/// Adds the witnesses of a formula that has some.
fn collect(formula: &Formula, detections: &[Formula], atoms: &Atoms, found: &mut Vec<AtomId>) {
    match formula {
        &Formula::Needle(id) => found.push(id),
        &Formula::Detection(index) => collect(&detections[index as usize], detections, atoms, found),
        Formula::All(parts) => {
            let with_cost = |part| Some((part, cost(part, detections, atoms)?));
            let costs = parts.iter().filter_map(with_cost);
            if let Some((part, _)) = costs.min_by(|(_, one), (_, other)| one.total_cmp(other)) {
                collect(part, detections, atoms, found);
            }
        }
        Formula::Any(parts) => parts.iter().for_each(|part| collect(part, detections, atoms, found)),
        Formula::Known(_) | Formula::Costly(_) | Formula::Field(..) | Formula::Not(_) => {}
    }
}

/// How often an atom may be true: short needles, and those that many rules ask for, are frequent.
fn frequency(id: AtomId, atoms: &Atoms) -> f32 {
    let atom = &atoms.all[id as usize];
    let Test::Needle(place, needle) = &atom.test else {
        return 1.0;
    };
    let length = needle.len().min(32) as f32;
    let place = match place {
        Place::Whole => 0.25,
        Place::Start | Place::End => 0.5,
        Place::Anywhere => 1.0,
    };
    place * (1.0 + atom.uses as f32) / (1.0 + length).powi(2)
}
