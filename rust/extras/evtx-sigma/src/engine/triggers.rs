//! Triggers: atoms of which at least one is true whenever a rule matches.

use super::atoms::{AtomId, Atoms, Test};
use super::formula::Formula;
use crate::pattern::Anchor;

/// The rarest triggers of a formula, sorted. `None` if it may be true whatever the texts are.
pub(super) fn triggers(formula: &Formula, detections: &[Formula], atoms: &Atoms) -> Option<Vec<AtomId>> {
    let (_, mut found) = rarest(formula, detections, atoms)?;
    found.sort_unstable();
    found.dedup();
    Some(found)
}

/// The same, with how often one of them may be true, as a number to compare.
fn rarest(formula: &Formula, detections: &[Formula], atoms: &Atoms) -> Option<(f32, Vec<AtomId>)> {
    let parts = |parts: &[Formula]| {
        parts
            .iter()
            .map(|part| rarest(part, detections, atoms))
            .collect::<Vec<_>>()
    };
    match formula {
        &Formula::Needle(id) => Some((frequency(id, atoms), vec![id])),
        &Formula::Detection(index) => rarest(&detections[index as usize], detections, atoms),
        Formula::All(all) => parts(all)
            .into_iter()
            .flatten()
            .min_by(|(one, _), (other, _)| one.total_cmp(other)),
        Formula::Any(any) => {
            let parts: Vec<_> = parts(any).into_iter().collect::<Option<_>>()?;
            let (costs, atoms): (Vec<f32>, Vec<_>) = parts.into_iter().unzip();
            Some((costs.iter().sum(), atoms.concat()))
        }
        Formula::Known(_) | Formula::Costly(_) | Formula::Field(..) | Formula::Not(_) => None,
    }
}

/// How often an atom may be true: short needles, and those that many rules ask for, are frequent.
fn frequency(id: AtomId, atoms: &Atoms) -> f32 {
    let atom = &atoms.all[id as usize];
    let Test::Needle(anchor, needle) = &atom.test else {
        return 1.0;
    };
    let length = needle.len().min(32) as f32;
    let anchor = match anchor {
        Anchor::Whole => 0.25,
        Anchor::Start | Anchor::End => 0.5,
        Anchor::Anywhere => 1.0,
    };
    anchor * (1.0 + atom.uses as f32) / (1.0 + length).powi(2)
}
