//! The text of `System` that events have in common.
//!
//! Most of `System` is the same from event to event: provider, level, task, keywords, channel, computer. The texts of
//! these elements are kept by the values that they were written from, and copied for the next event with equal values.

use std::sync::atomic::{AtomicU64, Ordering};

use super::ops::{AttributeOp, Op, substitutions};
use crate::binxml::SubstitutionRuns;
use crate::binxml::instance::{SubstitutionSet, ValueTable};
use crate::binxml::tree::Element;

/// The elements of `System` whose values differ from event to event.
const VARYING: [&str; 4] = ["TimeCreated", "EventRecordID", "Correlation", "Execution"];

/// How many texts are kept: a power of two.
const TEXTS: usize = 256;

/// The most bytes of values, and of text, of an event that are kept. Real events have a tenth.
const MAX_VALUES: usize = 1024;
const MAX_KEPT: usize = 4096;

/// The most parts of a program. Real programs have two: before and behind the elements that vary.
const MAX_PARTS: usize = 4;

/// What the parts of an event's program read that write the same text for the same values in `System`.
#[derive(Debug)]
pub(super) struct SystemParts {
    /// A number that only this program has. Not 0.
    program: u64,
    /// The substitutions that the parts read.
    runs: SubstitutionRuns,
    read: SubstitutionSet,
}

impl SystemParts {
    /// Finds the parts of the program of a template, and puts an [`Op::System`] before each; `None` if it has none.
    /// `runs` makes the runs of substitutions.
    pub(super) fn mark(root: &Element<'_>, ops: &mut Vec<Op>, runs: fn(Vec<u16>) -> SubstitutionRuns) -> Option<Self> {
        let known = repeating(root)?;
        let (mut read, mut at, mut part) = (Vec::new(), 0, 0);
        while at < ops.len() && part < MAX_PARTS {
            let (start, before) = (at, read.len());
            while let Some(next) = behind_same(ops, at, &known, &mut read) {
                at = next;
            }
            if read.len() > before {
                // No operation guards those of a part, so none has to skip one more.
                let len = at - start;
                ops.insert(start, Op::System { part, len });
                (part, at) = (part + 1, at + 1);
            }
            at = behind(ops, at);
        }
        let mut set = SubstitutionSet::default();
        read.iter().for_each(|&substitution| set.insert(substitution.into()));
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        (part > 0).then(|| SystemParts {
            program: NUMBER.fetch_add(1, Ordering::Relaxed),
            runs: runs(read),
            read: set,
        })
    }
}

/// The substitutions in `System` whose values are the same for most events, in order, each once; `None` for other
/// elements than events.
fn repeating(root: &Element<'_>) -> Option<Vec<u16>> {
    fn collect(element: &Element<'_>, found: &mut Vec<u16>) {
        found.extend(element.dependency);
        let attributes = element.attributes.iter().map(|attribute| attribute.content);
        for content in attributes.chain([element.content]) {
            found.extend(substitutions(content));
        }
        element.elements().for_each(|child| collect(child, found));
    }
    let system = (root.name == "Event").then(|| root.elements().find(|child| child.name == "System"))??;
    let mut found = Vec::new();
    let repeating = system.elements().filter(|child| !VARYING.contains(&child.name));
    repeating.for_each(|child| collect(child, &mut found));
    found.sort_unstable();
    found.dedup();
    Some(found)
}

/// The index behind an operation and those that it guards.
fn behind(ops: &[Op], at: usize) -> usize {
    match ops.get(at) {
        Some(Op::Guard { skip, .. }) => at + 1 + skip,
        _ => at + 1,
    }
}

/// The index behind the operation `at` and those that it guards, if their text depends on `known` substitutions alone.
/// Adds the substitutions that they read.
fn behind_same(ops: &[Op], at: usize, known: &[u16], read: &mut Vec<u16>) -> Option<usize> {
    let (before, end) = (read.len(), behind(ops, at));
    for op in ops.get(at..end)? {
        // A crafted guard can have many thousand operations, each of which is checked once.
        let before_op = read.len();
        let is_same = match op {
            Op::Literal(_) => true,
            Op::Guard { substitution, .. }
            | Op::Text { substitution, .. }
            | Op::Attribute { substitution, .. }
            | Op::Content { substitution }
            | Op::Repeat { substitution, .. }
            | Op::Leaf { substitution, .. }
            | Op::Line { substitution, .. } => {
                read.push(*substitution);
                true
            }
            Op::Element { attributes, content } => {
                read.extend(content);
                read.extend(attributes.iter().filter_map(|attribute| match attribute {
                    AttributeOp::Literal(_) => None,
                    AttributeOp::Substitution { substitution, .. } => Some(*substitution),
                }));
                true
            }
            // Their text depends on what stands before it, or is not that of `System`.
            Op::Comma
            | Op::CloseOrNull
            | Op::Data { .. }
            | Op::Members { .. }
            | Op::Elements { .. }
            | Op::Attributes(_)
            | Op::System { .. } => false,
        };
        let is_known = |substitution| known.binary_search(substitution).is_ok();
        if !is_same || !read[before_op..].iter().all(is_known) {
            read.truncate(before);
            return None;
        }
    }
    Some(end)
}

/// The texts of `System` of earlier events. Each thread has its own.
#[derive(Debug, Default)]
pub struct SystemTexts {
    /// By hash of the values; none before the first event.
    texts: Vec<KeptText>,
}

/// The texts that the parts of a program have written.
#[derive(Debug, Default, Clone)]
pub(super) struct KeptText {
    /// The number of the program; 0 if the texts are not complete.
    program: u64,
    /// The descriptors and bytes of the values.
    values: Vec<u8>,
    text: Vec<u8>,
    /// The end of each part's text.
    ends: [u16; MAX_PARTS],
    /// Whether the texts are longer than what is kept.
    is_too_long: bool,
}

impl SystemTexts {
    /// The place of the texts of an instance; `None` if they are not kept.
    pub(super) fn place(&mut self, system: &SystemParts, values: ValueTable<'_>) -> Option<&mut KeptText> {
        let (hash, len) = system.runs.hash(system.program, values)?;
        // The text of a stream depends on what its offsets refer to.
        if len > MAX_VALUES || values.may_be_compound(system.read) {
            return None;
        }
        if self.texts.is_empty() {
            self.texts.resize(TEXTS, KeptText::default());
        }
        let kept = self.texts.get_mut((hash >> 32) as usize % TEXTS)?;
        if kept.program != system.program || kept.values.len() != len || !system.runs.matches(values, &kept.values) {
            kept.program = 0;
            kept.is_too_long = false;
            kept.text.clear();
            kept.values.clear();
            system.runs.keep(values, &mut kept.values);
        }
        Some(kept)
    }
}

impl KeptText {
    /// The text of a part, if the texts of all parts are known.
    #[inline]
    pub(super) fn part(&self, part: usize) -> Option<&[u8]> {
        let start = part.checked_sub(1).map_or(0, |before| self.ends[before]);
        (self.program != 0).then(|| &self.text[usize::from(start)..usize::from(self.ends[part])])
    }

    /// Appends the text of the next part, unless the texts would be too long.
    pub(super) fn push(&mut self, part: usize, text: &[u8]) {
        self.is_too_long |= self.text.len() + text.len() > MAX_KEPT;
        if !self.is_too_long {
            self.text.extend_from_slice(text);
            self.ends[part] = self.text.len() as u16;
        }
    }

    /// Notes that all parts have written their texts.
    #[inline]
    pub(super) fn end(&mut self, system: &SystemParts) {
        if !self.is_too_long {
            self.program = system.program;
        }
    }
}
