//! A record as the sections from which its columns are read.
//!
//! A section is a template instance with the plan of its template, a spelled-out element with the plan of its implicit
//! template, or a tree with its own plan. Trees are for elements without an implicit template, and for what the plan of
//! a template does not support. The first section is the event. The others are the streams in its substitutions,
//! usually one: `EventData`.

use evtx_format::MAX_TEXT;
use evtx_format::binxml::instance::{Instance, ValueTable};
use evtx_format::binxml::tree::Element;

use super::templates::{ChunkTemplates, TemplateId};
use crate::plan::{
    Compiled, Entry, EntryId, EventData, KeyId, Keys, Lookup, PathId, Plan, Projection, Resolved, TreeRoot,
};

#[derive(Clone, Copy)]
pub(crate) struct RecordView<'p, 'r> {
    pub(super) own_plans: &'p [Plan],
    pub(super) projection: &'p Projection,
    pub(crate) sections: &'p [RecordSection<'r>],
    /// Whether the record is damaged. The sections before the damage were read.
    pub(crate) is_damaged: bool,
}

pub(crate) struct RecordSection<'r> {
    plan: PlanAt,
    pub(crate) values: ValueTable<'r>,
    pub(crate) root: TreeRoot,
    pub(crate) content: SectionContent<'r>,
}

impl<'r> RecordSection<'r> {
    #[inline]
    pub(crate) fn of_template(
        template: TemplateId,
        values: ValueTable<'r>,
        root: TreeRoot,
        content: SectionContent<'r>,
    ) -> Self {
        RecordSection {
            plan: PlanAt::Template(template),
            values,
            root,
            content,
        }
    }

    /// A section with its own plan, by its index among the own plans.
    pub(super) fn of_own_plan(at: usize, root: TreeRoot, content: SectionContent<'r>) -> Self {
        RecordSection {
            plan: PlanAt::Own(at),
            values: ValueTable::none(),
            root,
            content,
        }
    }

    /// Its template and its values, if it is an instance that the plan of its template supports.
    #[inline]
    pub(crate) fn instance(&self) -> Option<(TemplateId, ValueTable<'r>)> {
        match self.content {
            SectionContent::Instance(..) => Some((self.template()?, self.values)),
            _ => None,
        }
    }

    /// As [`instance`](Self::instance), and also of an instance whose tree cannot be read.
    #[inline]
    pub(crate) fn with_streams(&self) -> Option<(TemplateId, ValueTable<'r>)> {
        match self.content {
            SectionContent::Instance(..) | SectionContent::Damaged(..) => Some((self.template()?, self.values)),
            _ => None,
        }
    }

    /// Its entries, unless they are in a tree that cannot be read.
    #[inline]
    fn entries<'p>(&self, plan: &'p Plan, entries: Option<&'p EventData>) -> Option<&'p EventData> {
        entries.filter(|entries| !self.is_damaged() || plan.supports_entries(entries, self.values))
    }

    /// Its template, if it has the plan of one.
    #[inline]
    pub(crate) fn template(&self) -> Option<TemplateId> {
        match self.plan {
            PlanAt::Template(template) => Some(template),
            PlanAt::Own(_) => None,
        }
    }

    /// What it was read from, if that is an element with an implicit template.
    pub(crate) fn implicit_instance(&self) -> Option<ImplicitInstance<'r>> {
        match self.content {
            SectionContent::ImplicitInstance(element) => Some(ImplicitInstance {
                element,
                template: self.template()?,
                values: self.values,
            }),
            _ => None,
        }
    }

    pub(crate) fn is_damaged(&self) -> bool {
        matches!(self.content, SectionContent::Damaged(..))
    }
}

#[derive(Clone, Copy)]
enum PlanAt {
    Template(TemplateId),
    /// Among the own plans of the group, by index.
    Own(usize),
}

#[derive(Clone, Copy)]
pub(crate) enum SectionContent<'r> {
    Instance(Instance<'r>),
    /// A tree. If it is the tree of an instance, with its template and the values that fill its substitutions.
    Tree(&'r Element<'r>, Option<(TemplateId, ValueTable<'r>)>),
    /// An element that the record spells out, whose texts are the values of its implicit template.
    ImplicitInstance(SpelledOut),
    /// An instance whose tree cannot be read. Only values at paths are read from it, and entries that need no tree.
    Damaged(Instance<'r>),
    /// The entries of several sections.
    Merged,
}

/// An element that a record spells out: the chunk offsets of its start and its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpelledOut {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// An element that a record spells out, with its implicit template and the values of its texts.
#[derive(Clone, Copy)]
pub(crate) struct ImplicitInstance<'r> {
    pub(crate) element: SpelledOut,
    pub(crate) template: TemplateId,
    pub(crate) values: ValueTable<'r>,
}

impl<'p, 'r> RecordView<'p, 'r> {
    /// Whether the record is so damaged that its event could not be read.
    #[inline]
    pub(crate) fn is_unread(self) -> bool {
        self.is_damaged && self.event().is_none_or(|event| event.root != TreeRoot::Event)
    }

    pub(crate) fn has_system(self, templates: &ChunkTemplates) -> bool {
        self.with_plans(templates).next().is_some_and(|(_, plan)| plan.system)
    }

    /// The template of the event and its values, if the event has the plan of a template.
    #[inline]
    pub(crate) fn event_template(self, templates: &'p ChunkTemplates) -> Option<(&'p Compiled, ValueTable<'r>)> {
        let event = self.event()?;
        Some((templates.get(event.template()?).ok()?, event.values))
    }

    pub(crate) fn event(self) -> Option<&'p RecordSection<'r>> {
        self.sections.first()
    }

    /// Whether an entry of `EventData` or a leaf of `UserData` may be an array.
    pub(super) fn may_have_arrays(self, templates: &ChunkTemplates) -> bool {
        self.with_plans(templates)
            .any(|(section, plan)| section.template().is_none() || plan.may_have_arrays(section.values))
    }

    pub(crate) fn with_plans(
        self,
        templates: &'p ChunkTemplates,
    ) -> impl DoubleEndedIterator<Item = (&'p RecordSection<'r>, &'p Plan)> {
        self.sections.iter().filter_map(move |section| match section.plan {
            PlanAt::Own(at) => Some((section, &self.own_plans[at])),
            PlanAt::Template(template) => Some((section, &templates.get(template).ok()?.plan)),
        })
    }

    #[inline]
    pub(crate) fn path_values(self, templates: &'p ChunkTemplates) -> PathValues<'p, 'r> {
        let event = self.with_plans(templates).next();
        PathValues {
            record: self,
            templates,
            system: event.and_then(|(section, plan)| plan.system.then_some((plan, section.values))),
        }
    }

    /// The entries of `EventData` and `UserData`, to look up by key.
    #[inline(never)]
    pub(crate) fn keyed_entries(self, templates: &'p ChunkTemplates) -> KeyedEntries<'p, 'r> {
        let keyed = |(entries, section): (&'p EventData, &'p RecordSection<'r>)| {
            let keyed = Keyed::new(entries, section.values);
            if self.projection.numbers && entries.has_split(section.values) {
                keyed.split()
            } else {
                keyed
            }
        };
        KeyedEntries {
            event_data: self.event_data(templates).map(keyed),
            user_data: if self.projection.user_entries {
                self.user_entries(templates).map(keyed)
            } else {
                None
            },
        }
    }

    /// The entries of `event_data`, and the section that has their values: the last, which has those of all others.
    #[inline]
    pub(crate) fn event_data(self, templates: &'p ChunkTemplates) -> Option<(&'p EventData, &'p RecordSection<'r>)> {
        self.with_plans(templates)
            .rev()
            .find_map(|(section, plan)| Some((section.entries(plan, plan.event_data(section.values))?, section)))
    }

    /// The leaves of `UserData`, as entries, and the section that has their values.
    #[inline]
    pub(crate) fn user_entries(self, templates: &'p ChunkTemplates) -> Option<(&'p EventData, &'p RecordSection<'r>)> {
        self.with_plans(templates)
            .rev()
            .find_map(|(section, plan)| Some((section.entries(plan, plan.user_entries(section.values))?, section)))
    }

    /// If several sections have entries of `EventData` or of `UserData`: the plan with those of all, in order.
    pub(super) fn merged_entries(self, templates: &'p ChunkTemplates, keys: &Keys) -> Option<Plan> {
        let filled = |entries: fn(&'p Plan, ValueTable<'r>) -> Option<&'p EventData>| -> Vec<_> {
            let sections = self.with_plans(templates);
            let filled = |(section, plan): (&'p RecordSection<'r>, &'p Plan)| {
                let entries = section.entries(plan, entries(plan, section.values))?;
                Some((entries, section.values))
            };
            sections.filter_map(filled).collect()
        };
        let (event_data, user_data) = (filled(Plan::event_data), filled(Plan::user_entries));
        let are_several = event_data.len() > 1 || user_data.len() > 1;
        are_several.then(|| Plan::merged(self.projection, keys, [&event_data, &user_data]))
    }

    /// The other values of each section that has some, in order.
    pub(super) fn other_values(
        self,
        templates: &'p ChunkTemplates,
    ) -> impl Iterator<Item = (&'p EventData, &'p RecordSection<'r>)> {
        let valid = self.with_plans(templates).filter(|(section, _)| !section.is_damaged());
        valid.filter_map(|(section, plan)| Some((plan.other_values.as_ref()?, section)))
    }

    /// Whether the text of `event_data` is longer than [`MAX_TEXT`] bytes, or its names or constants are too long.
    pub(crate) fn text_exceeds(self, templates: &ChunkTemplates) -> bool {
        if self.with_plans(templates).any(|(_, plan)| plan.overflows) {
            return true;
        }
        let Some((event_data, section)) = self.event_data(templates) else {
            return false;
        };
        event_data.may_exceed && text_of(&event_data.entries, section.values).any(|bytes| bytes > MAX_TEXT)
    }
}

/// The entries of a record, to look up by key.
pub(crate) struct KeyedEntries<'p, 'r> {
    event_data: Option<Keyed<'p, 'r>>,
    user_data: Option<Keyed<'p, 'r>>,
}

struct Keyed<'p, 'r> {
    of: &'p EventData,
    values: ValueTable<'r>,
    /// How many entries count. A map ends with the entry that makes its text too long.
    limit: usize,
    /// If unnamed arrays are split: by number, from 1, the values with a number in place of a name.
    numbered: Option<Vec<Option<Resolved<'p, 'r>>>>,
}

impl<'p, 'r> Keyed<'p, 'r> {
    #[inline]
    fn new(of: &'p EventData, values: ValueTable<'r>) -> Self {
        Keyed {
            of,
            values,
            limit: limit(of, values),
            numbered: None,
        }
    }

    /// The same, with a value for each item of an unnamed array.
    #[cold]
    fn split(self) -> Self {
        let mut numbered = Vec::new();
        for (number, _, found) in self.of.split(self.values) {
            if let Some(before) = number.and_then(|number| number.checked_sub(1)) {
                // An entry that the record leaves out has a number, too.
                numbered.resize(before, None);
                numbered.push(Some(found));
            }
        }
        Keyed {
            numbered: Some(numbered),
            ..self
        }
    }

    /// The value with a key; `None` if no entry has the key. `by_key` are the entries by the index of their key.
    #[inline]
    fn find(&self, key: KeyId, by_key: &[Option<EntryId>]) -> Option<Option<Resolved<'p, 'r>>> {
        match (&self.numbered, key.number) {
            (Some(numbered), Some(number)) => numbered.get(number.checked_sub(1)?).copied(),
            _ => Some(self.get((*by_key.get(key.index)?)?)),
        }
    }

    #[inline]
    fn get(&self, EntryId(entry): EntryId) -> Option<Resolved<'p, 'r>> {
        let entry = self.of.entries.get(entry).filter(|_| entry < self.limit)?;
        entry.source.find(self.values)
    }
}

impl<'p, 'r> KeyedEntries<'p, 'r> {
    #[inline]
    pub(crate) fn get(&self, lookup: Lookup) -> Option<Resolved<'p, 'r>> {
        let entries = self.event_data.as_ref();
        match lookup {
            Lookup::EventData(key) => entries
                .and_then(|entries| entries.find(key, &entries.of.keyed))
                .flatten(),
            Lookup::Column { key, in_both } => {
                let found =
                    |keyed: Option<&Keyed<'p, 'r>>, key| keyed.and_then(|keyed| keyed.find(key, &keyed.of.columns));
                if let Some(found) = found(entries, key) {
                    return found;
                }
                let of_user_data = in_both.filter(|&key| found(entries, key).is_some());
                found(self.user_data.as_ref(), of_user_data.unwrap_or(key)).flatten()
            }
        }
    }
}

/// The values of a record at paths in the event.
pub(crate) struct PathValues<'p, 'r> {
    pub(crate) record: RecordView<'p, 'r>,
    templates: &'p ChunkTemplates,
    /// The plan and the values of the first section, if it has the `System` element.
    system: Option<(&'p Plan, ValueTable<'r>)>,
}

impl<'p, 'r> PathValues<'p, 'r> {
    pub(crate) fn get(&self, path: PathId) -> Option<Resolved<'p, 'r>> {
        self.get_at(path, self.record.projection.is_in_system(path))
    }

    /// The substitution whose value alone is the number, time or GUID at a path in `System`, and the value table.
    #[inline(always)]
    pub(crate) fn substitution(&self, path: PathId) -> Option<(u16, ValueTable<'r>)> {
        let (plan, values) = self.system?;
        Some((plan.bare_substitution[path.0]?, values))
    }

    /// As [`get`](Self::get), given whether the path is in the `System` element.
    #[inline(always)]
    pub(crate) fn get_at(&self, path: PathId, in_system: bool) -> Option<Resolved<'p, 'r>> {
        // A `System` element in another section does not count, as that section may not be read.
        if let Some((plan, values)) = self.system
            && in_system
        {
            return plan.path(path)?.find(values);
        }
        let mut sections = self.record.with_plans(self.templates);
        sections.find_map(|(section, plan)| plan.path(path)?.find(section.values))
    }
}

/// How many entries count. A map ends with the entry that makes its text too long.
#[inline]
pub(super) fn limit(of: &EventData, values: ValueTable<'_>) -> usize {
    if of.may_exceed {
        let last = text_of(&of.entries, values).position(|bytes| bytes > MAX_TEXT);
        last.map_or(usize::MAX, |last| last + 1)
    } else {
        usize::MAX
    }
}

/// For each entry, the bytes of text in the map up to its end.
fn text_of(entries: &[Entry], values: ValueTable<'_>) -> impl Iterator<Item = usize> {
    let mut text = Vec::new();
    entries.iter().scan(0, move |bytes, entry| {
        text.clear();
        if let Some(found) = entry.source.find(values) {
            found.push_entry(&mut text);
        }
        *bytes += text.len();
        Some(*bytes)
    })
}
