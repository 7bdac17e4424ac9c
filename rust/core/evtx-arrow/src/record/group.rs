//! Groups of records: read one by one, appended to the columns together, a column at a time.

use bumpalo::Bump;
use bumpalo::collections::Vec as BumpVec;
use evtx_format::Error;
use evtx_format::container::records::FoundRecord;

use super::sections::{RecordSection, RecordView, SectionContent};
use super::templates::ChunkTemplates;
use crate::plan::{Keys, Plan, Projection, TreeRoot};

/// The most records of a group. They stay in the first-level cache.
pub(crate) const GROUP: usize = 32;

/// Records whose rows are not appended yet. The last is the current record, which is then kept or dropped.
pub(crate) struct RecordGroup<'r> {
    projection: &'r Projection,
    sections: BumpVec<'r, RecordSection<'r>>,
    own_plans: Vec<Plan>,
    kept: BumpVec<'r, KeptRecord>,
    /// The index in `sections` of the current record's first section.
    start: usize,
    /// The damage of the current record. The sections before the damage were read.
    pub(crate) error: Option<Error>,
    /// The error of the current record if it refers to a definition or a name that was overwritten.
    pub(crate) foreign_definition: Option<Error>,
    /// The error of a token of a template of the current record for which the grammar has no place.
    pub(crate) misplaced: Option<Error>,
    /// Whether a text of a record may have so many values that it exceeds the limit.
    pub(crate) repeat_values: bool,
    /// Whether a record may have a path outside of `System` that the scan reads.
    pub(crate) beyond_system: bool,
    /// Whether the current record may have a `UserData` element that the scan reads.
    pub(crate) may_have_user_data: bool,
    /// What is wrong with kept records, by their index among the kept ones.
    reports: Vec<(usize, String)>,
}

/// A record that is kept: the fields of its header, and the range of its sections.
pub(crate) struct KeptRecord {
    pub(crate) id: u64,
    /// The time at which it was written, a FILETIME.
    pub(crate) written: u64,
    /// Its chunk offset.
    pub(crate) offset: u32,
    start: u32,
    end: u32,
    pub(crate) recovered: bool,
    pub(crate) is_damaged: bool,
}

impl<'r> RecordGroup<'r> {
    /// An empty group with space for `count` records.
    pub(crate) fn new(projection: &'r Projection, count: usize, arena: &'r Bump) -> Self {
        RecordGroup {
            projection,
            sections: BumpVec::with_capacity_in(2 * count, arena),
            own_plans: Vec::new(),
            kept: BumpVec::with_capacity_in(count, arena),
            start: 0,
            error: None,
            foreign_definition: None,
            misplaced: None,
            repeat_values: false,
            beyond_system: false,
            may_have_user_data: false,
            reports: Vec::new(),
        }
    }

    /// Begins a record. Drops the sections of the last one if it was not kept.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.sections.truncate(self.start);
        self.error = None;
        self.foreign_definition = None;
        self.misplaced = None;
        self.may_have_user_data = false;
    }

    /// Whether some of the current record could not be read.
    #[inline]
    fn is_damaged(&self) -> bool {
        self.error.is_some_and(|error| !error.kind.is_readable())
    }

    /// Drops the sections of the current record but the first `count`, because they belong to another record, or are
    /// read in another way.
    #[cold]
    pub(crate) fn keep_sections(&mut self, count: usize) {
        self.sections.truncate(self.start + count);
    }

    /// Keeps of the current record's event only what needs no tree: the names in it are lost.
    #[cold]
    pub(crate) fn keep_paths(&mut self) {
        self.keep_sections(1);
        if let Some(event) = self.sections.get_mut(self.start)
            && let SectionContent::Instance(instance) = event.content
        {
            event.content = SectionContent::Damaged(instance);
        }
    }

    /// Notes what a section of the current record may have, by its plan.
    #[inline]
    pub(crate) fn observe_plan(&mut self, plan: &Plan) {
        self.repeat_values |= plan.repeats_values;
        self.beyond_system |= plan.beyond_system;
        self.may_have_user_data |= plan.may_have_user_data();
    }

    #[inline]
    pub(crate) fn push(&mut self, section: RecordSection<'r>) {
        self.sections.push(section);
    }

    /// Adds a section with its own plan to the current record.
    pub(crate) fn push_tree(&mut self, root: TreeRoot, content: SectionContent<'r>, plan: Plan) {
        self.observe_plan(&plan);
        self.sections
            .push(RecordSection::of_own_plan(self.own_plans.len(), root, content));
        self.own_plans.push(plan);
    }

    /// If several sections of the current record have entries, adds a section with those of all.
    #[cold]
    pub(crate) fn merge_entries(&mut self, templates: &ChunkTemplates, keys: &Keys) {
        if let Some(plan) = self.current().merged_entries(templates, keys) {
            self.push_tree(TreeRoot::Child, SectionContent::Merged, plan);
        }
    }

    /// The current record, as far as it was read.
    #[inline]
    pub(crate) fn current(&self) -> RecordView<'_, 'r> {
        RecordView {
            own_plans: &self.own_plans,
            projection: self.projection,
            sections: &self.sections[self.start..],
            is_damaged: self.is_damaged(),
        }
    }

    #[inline]
    pub(crate) fn keep(&mut self, found: &FoundRecord) {
        let end = self.sections.len();
        self.kept.push(KeptRecord {
            id: found.record.id,
            written: found.record.written,
            offset: found.record.offset,
            start: self.start as u32,
            end: end as u32,
            recovered: found.origin.is_recovered(),
            is_damaged: self.is_damaged(),
        });
        self.start = end;
    }

    /// Keeps the current record, which was kept before, for another row.
    pub(crate) fn keep_again(&mut self, found: &FoundRecord) {
        if let Some(last) = self.kept.last() {
            self.start = last.start as usize;
        }
        self.keep(found);
    }

    /// Sets what is wrong with the current record, which will be kept.
    #[cold]
    pub(crate) fn report(&mut self, error: String) {
        self.reports.push((self.kept.len(), error));
    }

    /// What is wrong with a kept record, by its index among the kept ones.
    #[inline]
    pub(crate) fn reported(&self, row: usize) -> Option<&str> {
        let report = self.reports.iter().find(|(of, _)| *of == row)?;
        Some(&report.1)
    }

    pub(crate) fn kept(&self) -> &[KeptRecord] {
        &self.kept
    }

    #[inline]
    pub(crate) fn sections(&self, record: &KeptRecord) -> RecordView<'_, 'r> {
        RecordView {
            own_plans: &self.own_plans,
            projection: self.projection,
            sections: &self.sections[record.start as usize..record.end as usize],
            is_damaged: record.is_damaged,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.kept.clear();
        self.sections.clear();
        self.own_plans.clear();
        self.reports.clear();
        self.start = 0;
    }
}
