//! The entries of a record as those see them that do not know plans: names, declared types and values.

use std::sync::Arc;

use evtx_format::binxml::instance::ValueTable;
use evtx_format::value::ValueType;

use super::read_record::{FoundValue, ReadRecord};
use super::sections::{RecordSection, SectionContent, limit};
use crate::plan::{Compiled, Entry, EventData, Keys};

/// The entries of an element of a record: of `EventData`, or the leaves of `UserData`.
#[derive(Clone, Copy)]
pub struct Entries<'a> {
    of: &'a EventData,
    section: &'a RecordSection<'a>,
    /// The template that has the entries; `None` if a tree has them.
    template: Option<&'a Compiled>,
    values: ValueTable<'a>,
    keys: &'a Keys,
}

/// An entry of a record.
#[derive(Clone, Copy)]
pub struct RecordEntry<'a> {
    of: &'a Entry,
    values: ValueTable<'a>,
    keys: &'a Keys,
}

/// The template instance that is the content of `EventData` or `UserData`.
#[derive(Clone, Copy)]
pub struct ContentInstance<'a> {
    /// Its values.
    pub values: ValueTable<'a>,
    /// The entries of `EventData` that its template has.
    pub event_data: Option<Entries<'a>>,
    /// The leaves of `UserData` that its template has.
    pub user_data: Option<Entries<'a>>,
}

impl<'a> ReadRecord<'a> {
    /// Whether the record is so damaged that its event could not be read.
    pub fn is_unread(self) -> bool {
        self.view.is_unread()
    }

    /// The entries of `EventData`.
    pub fn event_data(self) -> Option<Entries<'a>> {
        self.view.event_data(self.templates).map(|found| self.entries(found))
    }

    /// The leaves of `UserData`.
    pub fn user_data(self) -> Option<Entries<'a>> {
        self.view.user_entries(self.templates).map(|found| self.entries(found))
    }

    /// The other values of each section that has some, in order.
    pub fn other_values(self) -> impl Iterator<Item = Entries<'a>> {
        self.view
            .other_values(self.templates)
            .map(move |found| self.entries(found))
    }

    /// Whether an entry of `EventData` or a leaf of `UserData` may be an array.
    pub fn may_have_arrays(self) -> bool {
        self.view.may_have_arrays(self.templates)
    }

    fn entries(self, (of, section): (&'a EventData, &'a RecordSection<'a>)) -> Entries<'a> {
        Entries {
            of,
            section,
            template: section.template().and_then(|at| self.templates.get(at).ok()),
            values: section.values,
            keys: self.keys,
        }
    }

    /// The instance that is the content of `EventData` or `UserData`. A record that is read as one tree has none.
    pub fn content(self) -> Option<ContentInstance<'a>> {
        let instance = |section: &'a RecordSection<'a>| match section.content {
            SectionContent::Instance(instance) | SectionContent::Damaged(instance) => {
                Some((section, section.template()?, instance.values))
            }
            SectionContent::Tree(_, filled) => filled.map(|(template, values)| (section, template, values)),
            SectionContent::ImplicitInstance(_) | SectionContent::Merged => None,
        };
        let (section, template, values) = self.view.sections.iter().skip(1).find_map(instance)?;
        let template = self.templates.get(template).ok();
        let entries = |of: &'a EventData| Entries {
            of,
            section,
            template,
            values,
            keys: self.keys,
        };
        let plan = template.map(|compiled| &compiled.plan);
        Some(ContentInstance {
            values,
            event_data: plan.and_then(|plan| plan.event_data(values)).map(entries),
            user_data: plan.and_then(|plan| plan.user_entries(values)).map(entries),
        })
    }
}

impl<'a> Entries<'a> {
    /// The number of the template that has the entries; `None` if the record has them outside of one.
    pub fn template(self) -> Option<u64> {
        Some(self.template?.number)
    }

    /// The GUID of the template, if the element is an instance of it.
    pub fn guid(self) -> Option<[u8; 16]> {
        self.section.instance()?;
        Some(self.template?.guid)
    }

    /// Whether the record spells the element out, with or without an implicit template.
    pub fn is_spelled_out(self) -> bool {
        matches!(
            self.section.content,
            SectionContent::Tree(_, None) | SectionContent::ImplicitInstance(..)
        )
    }

    /// Whether each item of an unnamed array is a value with a name of its own.
    pub fn splits(self) -> bool {
        self.of.splits
    }

    /// How many entries count. A map ends with the entry that makes its text too long.
    pub fn count(self) -> usize {
        limit(self.of, self.values)
    }

    /// The entries, in order.
    pub fn iter(self) -> impl Iterator<Item = RecordEntry<'a>> {
        self.of.entries.iter().map(move |of| self.entry(of))
    }

    /// The entry with this index.
    pub fn get(self, index: usize) -> Option<RecordEntry<'a>> {
        Some(self.entry(self.of.entries.get(index)?))
    }

    fn entry(self, of: &'a Entry) -> RecordEntry<'a> {
        let Entries { values, keys, .. } = self;
        RecordEntry { of, values, keys }
    }
}

impl<'a> RecordEntry<'a> {
    /// Its key: the name, and perhaps a number.
    pub fn key(self) -> Arc<str> {
        self.keys.name(&self.of.key)
    }

    /// Its name, empty if it has none.
    pub fn name(self) -> Arc<str> {
        self.key().get(..self.of.name_len).unwrap_or_default().into()
    }

    /// Whether it has no name.
    pub fn is_unnamed(self) -> bool {
        self.of.name_len == 0
    }

    /// The type that the template declares, or that the record spells out.
    pub fn declared(self) -> ValueType {
        self.of.declared
    }

    /// The substitution whose value alone is the entry.
    pub fn substitution(self) -> Option<u16> {
        self.of.source.bare_substitution()
    }

    /// Its value; `None` if the record leaves it out.
    pub fn value(self) -> Option<FoundValue<'a>> {
        self.of.source.find(self.values).map(FoundValue)
    }
}
