//! A group of records that were read, and wait for their rows to be appended.

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use evtx_format::Error;
use evtx_format::container::records::FoundRecord;

use super::parts::{Part, PartContent, RecordView};
use crate::plan::{Plan, Projection};

/// Most records of a group. They fit the first-level cache.
pub(crate) const GROUP: usize = 32;

/// Records that were read, and wait for their rows to be appended, a column at a time.
pub(crate) struct RecordGroup<'r> {
    target: &'r Projection,
    parts: BumpVec<'r, Part<'r>>,
    own_plans: Vec<Plan>,
    kept: BumpVec<'r, KeptRecord>,
    /// Where the parts of the record at hand start.
    start: usize,
    /// What is damaged of the record at hand. Parts that come before it are there.
    pub(crate) error: Option<Error>,
    /// How the record at hand refers to a definition or a name that is not its own, if it does.
    pub(crate) not_its_own: Option<Error>,
    /// Whether any record may have texts with many values, which may be longer than the limit.
    pub(crate) repeat_values: bool,
    /// Whether any record may have a field outside of `System` that is asked for.
    pub(crate) beyond_system: bool,
    /// Whether the record at hand may have a `UserData` element that is asked for.
    pub(crate) may_have_user_data: bool,
    /// What is wrong with records that are kept, by their index among those.
    reports: Vec<(usize, String)>,
}

/// A record that is kept: what columns have of its header, and where its parts are.
pub(crate) struct KeptRecord {
    pub(crate) id: u64,
    /// When it was written, a FILETIME.
    pub(crate) written: u64,
    /// Its offset in the chunk.
    pub(crate) offset: u32,
    start: u32,
    end: u32,
    pub(crate) recovered: bool,
    is_damaged: bool,
}

impl<'r> RecordGroup<'r> {
    /// Room for `count` records, none of which was read so far.
    pub(crate) fn new(target: &'r Projection, count: usize, arena: &'r Bump) -> Self {
        RecordGroup {
            target,
            parts: BumpVec::with_capacity_in(2 * count, arena),
            own_plans: Vec::new(),
            kept: BumpVec::with_capacity_in(count, arena),
            start: 0,
            error: None,
            not_its_own: None,
            repeat_values: false,
            beyond_system: false,
            may_have_user_data: false,
            reports: Vec::new(),
        }
    }

    /// Begins a record. What was read of the last one is dropped if it was not kept.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.parts.truncate(self.start);
        self.error = None;
        self.not_its_own = None;
        self.may_have_user_data = false;
    }

    /// Drops what was read of the record at hand, as it is not the record's.
    #[cold]
    pub(crate) fn drop_parts(&mut self) {
        self.parts.truncate(self.start);
    }

    /// Takes notice of what a part of the record at hand may have.
    #[inline]
    pub(crate) fn observe_plan(&mut self, plan: &Plan) {
        self.repeat_values |= plan.repeats_values;
        self.beyond_system |= plan.beyond_system;
        self.may_have_user_data |= plan.may_have_user_data();
    }

    /// Adds a part to the record at hand.
    #[inline]
    pub(crate) fn push(&mut self, part: Part<'r>) {
        self.parts.push(part);
    }

    /// Adds a part with a plan of its own.
    pub(crate) fn push_tree(&mut self, content: PartContent<'r>, plan: Plan) {
        self.observe_plan(&plan);
        self.parts.push(Part::of_own_plan(self.own_plans.len(), content));
        self.own_plans.push(plan);
    }

    /// The record at hand, as far as it was read.
    #[inline]
    pub(crate) fn current(&self) -> RecordView<'_, 'r> {
        RecordView {
            own_plans: &self.own_plans,
            target: self.target,
            parts: &self.parts[self.start..],
            is_damaged: self.error.is_some(),
        }
    }

    /// Keeps the record at hand.
    #[inline]
    pub(crate) fn keep(&mut self, found: &FoundRecord) {
        let end = self.parts.len();
        self.kept.push(KeptRecord {
            id: found.record.id,
            written: found.record.written,
            offset: found.record.offset,
            start: self.start as u32,
            end: end as u32,
            recovered: found.recovered,
            is_damaged: self.error.is_some(),
        });
        self.start = end;
    }

    /// Says what is wrong with the record at hand, which will be kept.
    #[cold]
    pub(crate) fn report(&mut self, error: String) {
        self.reports.push((self.kept.len(), error));
    }

    /// What is wrong with a record, by its index among those that are kept.
    #[inline]
    pub(crate) fn reported(&self, row: usize) -> Option<&str> {
        let report = self.reports.iter().find(|(of, _)| *of == row)?;
        Some(&report.1)
    }

    /// The records that are kept.
    pub(crate) fn kept(&self) -> &[KeptRecord] {
        &self.kept
    }

    /// The parts of a record that is kept.
    #[inline]
    pub(crate) fn parts(&self, record: &KeptRecord) -> RecordView<'_, 'r> {
        RecordView {
            own_plans: &self.own_plans,
            target: self.target,
            parts: &self.parts[record.start as usize..record.end as usize],
            is_damaged: record.is_damaged,
        }
    }

    /// Forgets the records that are kept.
    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.parts.clear();
        self.own_plans.clear();
        self.reports.clear();
        self.start = 0;
    }
}
