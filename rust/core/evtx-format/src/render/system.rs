//! A cache of the text of `System`.
//!
//! Most of `System` repeats from event to event: provider, level, task, keywords, channel, computer. Their text is
//! cached by the values that it was written from, and copied for the next event with equal values.

use std::sync::atomic::{AtomicU64, Ordering};

use super::ops::{AttributeOp, Op, substitutions};
use crate::binxml::SubstitutionRanges;
use crate::binxml::instance::{SubstitutionSet, ValueTable};
use crate::binxml::tree::Element;

/// The elements of `System` that differ from event to event.
const VARYING: [&str; 4] = ["TimeCreated", "EventRecordID", "Correlation", "Execution"];

/// The size of the cache, a power of two.
const TEXTS: usize = 256;

/// The most bytes of values, and of text, of a cached event. Real events have a tenth.
const MAX_VALUES: usize = 1024;
const MAX_TEXT: usize = 4096;

/// The most sections of a program. Real programs have two: before and after the elements that vary.
const MAX_SECTIONS: usize = 4;

/// The cached sections of a program, and the values that determine their text.
#[derive(Debug)]
pub(super) struct SystemSections {
    /// A number unique to the program. Not 0.
    program: u64,
    /// The substitutions that the sections read.
    ranges: SubstitutionRanges,
    read: SubstitutionSet,
}

impl SystemSections {
    /// Finds the sections of a program, and inserts an [`Op::System`] before each; `None` if it has none.
    pub(super) fn mark(root: &Element<'_>, ops: &mut Vec<Op>) -> Option<Self> {
        let known = repeating(root)?;
        let (mut read, mut at, mut section) = (Vec::new(), 0, 0);
        while at < ops.len() && section < MAX_SECTIONS {
            let (start, before) = (at, read.len());
            while let Some(next) = after_repeating(ops, at, &known, &mut read) {
                at = next;
            }
            if read.len() > before {
                // No guard covers the section, so none has to skip the new operation.
                let len = at - start;
                ops.insert(start, Op::System { section, len });
                (section, at) = (section + 1, at + 1);
            }
            at = after(ops, at);
        }
        let mut set = SubstitutionSet::default();
        read.iter().for_each(|&substitution| set.insert(substitution.into()));
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        (section > 0).then(|| SystemSections {
            program: NUMBER.fetch_add(1, Ordering::Relaxed),
            ranges: SubstitutionRanges::new(read),
            read: set,
        })
    }
}

/// The substitutions in `System` that repeat from event to event, sorted; `None` if the root is not an `Event`.
fn repeating(root: &Element<'_>) -> Option<Vec<u16>> {
    fn collect(element: &Element<'_>, read: &mut Vec<u16>) {
        read.extend(element.dependency);
        let attributes = element.attributes.iter().map(|attribute| attribute.content);
        for content in attributes.chain([element.content]) {
            read.extend(substitutions(content));
        }
        element.elements().for_each(|child| collect(child, read));
    }
    let system = (root.name == "Event").then(|| root.elements().find(|child| child.name == "System"))??;
    let mut read = Vec::new();
    let repeating = system.elements().filter(|child| !VARYING.contains(&child.name));
    repeating.for_each(|child| collect(child, &mut read));
    read.sort_unstable();
    read.dedup();
    Some(read)
}

/// The index after an operation and those that it guards.
fn after(ops: &[Op], at: usize) -> usize {
    match ops.get(at) {
        Some(Op::Guard { skip, .. }) => at + 1 + skip,
        _ => at + 1,
    }
}

/// As [`after`], if the text depends only on `known` substitutions. Adds those that the operations read.
fn after_repeating(ops: &[Op], at: usize, known: &[u16], read: &mut Vec<u16>) -> Option<usize> {
    let (before, end) = (read.len(), after(ops, at));
    for op in ops.get(at..end)? {
        // A crafted guard can cover many thousand operations: check the substitutions of each once.
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
            // Their text depends on the text before it, or is not in `System`.
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

/// The cached texts of `System` of earlier events. Each thread has its own.
#[derive(Debug, Default)]
pub struct SystemTexts {
    /// By hash of the values. Empty before the first event.
    texts: Vec<CachedText>,
}

/// The text of a program's sections for some values.
#[derive(Debug, Default, Clone)]
pub(super) struct CachedText {
    /// The number of the program; 0 while the text is incomplete.
    program: u64,
    /// The descriptors and bytes of the values.
    values: Vec<u8>,
    text: Vec<u8>,
    /// The end of each section's text.
    ends: [u16; MAX_SECTIONS],
    /// Whether the text is too long to cache.
    is_too_long: bool,
}

impl SystemTexts {
    /// The text of an instance, which may be incomplete; `None` if it cannot be cached.
    pub(super) fn entry(&mut self, system: &SystemSections, values: ValueTable<'_>) -> Option<&mut CachedText> {
        let (hash, len) = system.ranges.hash(system.program, values)?;
        // The text of a stream also depends on the bytes that its offsets refer to.
        if len > MAX_VALUES || values.may_be_compound(system.read) {
            return None;
        }
        if self.texts.is_empty() {
            self.texts.resize(TEXTS, CachedText::default());
        }
        let kept = self.texts.get_mut((hash >> 32) as usize % TEXTS)?;
        if kept.program != system.program || kept.values.len() != len || !system.ranges.matches(values, &kept.values) {
            kept.program = 0;
            kept.is_too_long = false;
            kept.text.clear();
            kept.values.clear();
            system.ranges.keep(values, &mut kept.values);
        }
        Some(kept)
    }
}

impl CachedText {
    /// The text of a section, if that of all sections is cached.
    #[inline]
    pub(super) fn section(&self, section: usize) -> Option<&[u8]> {
        let start = section.checked_sub(1).map_or(0, |before| self.ends[before]);
        (self.program != 0).then(|| &self.text[usize::from(start)..usize::from(self.ends[section])])
    }

    /// Caches the text of the next section, unless it would be too long.
    pub(super) fn push(&mut self, section: usize, text: &[u8]) {
        self.is_too_long |= self.text.len() + text.len() > MAX_TEXT;
        if !self.is_too_long {
            self.text.extend_from_slice(text);
            self.ends[section] = self.text.len() as u16;
        }
    }

    /// Marks the text as complete.
    #[inline]
    pub(super) fn end(&mut self, system: &SystemSections) {
        if !self.is_too_long {
            self.program = system.program;
        }
    }
}
