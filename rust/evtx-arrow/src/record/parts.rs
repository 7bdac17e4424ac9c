//! A record as the parts from which its columns are read.
//!
//! A part is a template instance with the plan of its template, an element that the record spells out with the plan of
//! its outline, or a tree with its own plan. Trees are for elements without an outline, and for what the plan of a
//! template does not support. The first part is the event; the others come from the streams in its substitutions
//! (usually one: `EventData`).

use evtx_format::MAX_TEXT;
use evtx_format::binxml::instance::{Instance, ValueTable};
use evtx_format::binxml::tree::Element;

use super::templates::ChunkTemplates;
use crate::plan::{Entry, EventData, Lookup, Plan, Projection, Resolved, SystemSubstitutions, TreeRoot};

/// The parts of a record.
#[derive(Clone, Copy)]
pub(crate) struct RecordView<'p, 'r> {
    pub(super) own_plans: &'p [Plan],
    pub(super) target: &'p Projection,
    pub(crate) parts: &'p [Part<'r>],
    /// Whether the record is damaged. The parts before the damage were read.
    pub(crate) is_damaged: bool,
}

pub(crate) struct Part<'r> {
    plan: PlanAt,
    pub(crate) values: ValueTable<'r>,
    pub(crate) content: PartContent<'r>,
}

impl<'r> Part<'r> {
    /// A part with the plan of a template, by its index among the templates of the chunk.
    #[inline]
    pub(crate) fn of_template(at: usize, values: ValueTable<'r>, content: PartContent<'r>) -> Self {
        Part {
            plan: PlanAt::Template(at),
            values,
            content,
        }
    }

    /// A part with its own plan, by its index among the own plans.
    pub(super) fn of_own_plan(at: usize, content: PartContent<'r>) -> Self {
        Part {
            plan: PlanAt::Own(at),
            values: ValueTable::none(),
            content,
        }
    }

    /// The index of its template, and its values, if it is an instance that the plan of its template supports.
    #[inline]
    pub(crate) fn instance(&self) -> Option<(usize, ValueTable<'r>)> {
        match self.content {
            PartContent::Instance(..) => Some((self.template()?, self.values)),
            _ => None,
        }
    }

    /// As [`instance`](Self::instance), and also of an instance whose tree cannot be read.
    #[inline]
    pub(crate) fn with_streams(&self) -> Option<(usize, ValueTable<'r>)> {
        match self.content {
            PartContent::Instance(..) | PartContent::Damaged(..) => Some((self.template()?, self.values)),
            _ => None,
        }
    }

    /// Its entries, unless they are in a tree that cannot be read: which columns need the tree does not matter to them.
    #[inline]
    fn entries<'p>(&self, plan: &'p Plan, entries: Option<&'p EventData>) -> Option<&'p EventData> {
        entries.filter(|entries| !self.is_damaged() || plan.supports_entries(entries, self.values))
    }

    /// The index of its template among the templates of the chunk, if it has the plan of one.
    #[inline]
    pub(crate) fn template(&self) -> Option<usize> {
        match self.plan {
            PlanAt::Template(at) => Some(at),
            PlanAt::Own(_) => None,
        }
    }

    /// What it was read from, if that is an element whose outline has a template.
    pub(crate) fn outlined(&self) -> Option<Outlined<'r>> {
        match self.content {
            PartContent::Outlined(element, _) => Some(Outlined {
                element,
                template: self.template()?,
                values: self.values,
            }),
            _ => None,
        }
    }

    pub(crate) fn is_damaged(&self) -> bool {
        matches!(self.content, PartContent::Damaged(..))
    }
}

/// Where the plan of a part is.
#[derive(Clone, Copy)]
enum PlanAt {
    /// Among the templates of the chunk, by index.
    Template(usize),
    /// Among the own plans of the group, by index.
    Own(usize),
}

/// What a part was read from.
#[derive(Clone, Copy)]
pub(crate) enum PartContent<'r> {
    /// A template instance.
    Instance(Instance<'r>, TreeRoot),
    /// A tree. If it is the tree of an instance, with the values that fill its substitutions.
    Tree(&'r Element<'r>, TreeRoot, Option<ValueTable<'r>>),
    /// An element that the record spells out, whose texts are the values of the template of its outline.
    Outlined(SpelledOut, TreeRoot),
    /// An instance whose tree cannot be read. Only the fields of its plan are used, and the entries that need no tree.
    Damaged(Instance<'r>, TreeRoot),
}

impl PartContent<'_> {
    pub(crate) fn root(&self) -> TreeRoot {
        match *self {
            PartContent::Instance(_, root)
            | PartContent::Tree(_, root, _)
            | PartContent::Outlined(_, root)
            | PartContent::Damaged(_, root) => root,
        }
    }
}

/// An element that a record spells out: the chunk offsets of its start and its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpelledOut {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// An element that a record spells out, with the index of its outline's template, and the values of its texts.
#[derive(Clone, Copy)]
pub(crate) struct Outlined<'r> {
    pub(crate) element: SpelledOut,
    pub(crate) template: usize,
    pub(crate) values: ValueTable<'r>,
}

impl<'p, 'r> RecordView<'p, 'r> {
    /// Whether the record is so damaged that no part of it could be read.
    #[inline]
    pub(crate) fn is_unread(self) -> bool {
        self.parts.is_empty() && self.is_damaged
    }

    /// Whether the first part has the `System` element.
    pub(crate) fn has_system(self, templates: &ChunkTemplates) -> bool {
        self.with_plans(templates).next().is_some_and(|(_, plan)| plan.system)
    }

    /// The substitutions from which `System` is read, and their values, if rows of `System` are shared and the event
    /// has the plan of a template.
    #[inline]
    pub(crate) fn system(self, templates: &'p ChunkTemplates) -> Option<(&'p SystemSubstitutions, ValueTable<'r>)> {
        let event = self.event()?;
        let compiled = templates.get(event.template()?).ok()?;
        Some((compiled.system.as_ref()?, event.values))
    }

    /// The first part, which is the event.
    pub(crate) fn event(self) -> Option<&'p Part<'r>> {
        self.parts.first()
    }

    /// Whether a record of the same templates can have a value at the place with an index.
    pub(crate) fn may_have_field(self, templates: &ChunkTemplates, place: usize) -> bool {
        let has = |plan: &Plan| plan.fields.get(place).is_some_and(Option::is_some);
        self.with_plans(templates).any(|(_, plan)| has(plan))
    }

    /// Whether an entry of `EventData` or a leaf of `UserData` may be an array.
    pub(crate) fn may_have_arrays(self, templates: &ChunkTemplates) -> bool {
        self.with_plans(templates)
            .any(|(part, plan)| part.template().is_none() || plan.may_have_arrays(part.values))
    }

    /// The parts with their plans.
    pub(crate) fn with_plans(self, templates: &'p ChunkTemplates) -> impl Iterator<Item = (&'p Part<'r>, &'p Plan)> {
        self.parts.iter().filter_map(move |part| match part.plan {
            PlanAt::Own(at) => Some((part, &self.own_plans[at])),
            PlanAt::Template(at) => Some((part, &templates.get(at).ok()?.plan)),
        })
    }

    /// The value at the place with an index.
    pub(crate) fn field(self, templates: &'p ChunkTemplates, place: usize) -> Option<Resolved<'p, 'r>> {
        self.fields(templates).get(place)
    }

    /// The values at all places.
    #[inline]
    pub(crate) fn fields(self, templates: &'p ChunkTemplates) -> Fields<'p, 'r> {
        let event = self.with_plans(templates).next();
        Fields {
            record: self,
            templates,
            system: event.and_then(|(part, plan)| plan.system.then_some((plan, part.values))),
        }
    }

    /// The entries of `EventData` and `UserData`, to look up by key.
    #[inline(never)]
    pub(crate) fn keyed_entries(self, templates: &'p ChunkTemplates) -> KeyedEntries<'p, 'r> {
        let keyed = |(entries, part): (&'p EventData, &'p Part<'r>)| Keyed::new(entries, part.values);
        KeyedEntries {
            event_data: self.event_data(templates).map(keyed),
            user_data: match self.target.user_entries {
                true => self.user_entries(templates).map(keyed),
                false => None,
            },
        }
    }

    /// The entries of `event_data`, and the part that has their values.
    #[inline]
    pub(crate) fn event_data(self, templates: &'p ChunkTemplates) -> Option<(&'p EventData, &'p Part<'r>)> {
        self.with_plans(templates)
            .find_map(|(part, plan)| Some((part.entries(plan, plan.event_data(part.values))?, part)))
    }

    /// The leaves of `UserData`, as entries, and the part that has their values.
    #[inline]
    pub(crate) fn user_entries(self, templates: &'p ChunkTemplates) -> Option<(&'p EventData, &'p Part<'r>)> {
        self.with_plans(templates)
            .find_map(|(part, plan)| Some((part.entries(plan, plan.user_entries(part.values))?, part)))
    }

    /// The other values of each part that has some, in order. Entries of a second `EventData` or `UserData` are among
    /// them.
    pub(crate) fn other_values(self, templates: &'p ChunkTemplates) -> Vec<Keyed<'p, 'r>> {
        let mut others = Vec::new();
        let (mut has_event_data, mut has_user_data) = (false, false);
        for (part, plan) in self.with_plans(templates).filter(|(part, _)| !part.is_damaged()) {
            let mut add = |entries| others.push(Keyed::new(entries, part.values));
            if let Some(entries) = plan.event_data(part.values)
                && std::mem::replace(&mut has_event_data, true)
            {
                add(entries);
            }
            if let Some(entries) = plan.user_entries(part.values)
                && std::mem::replace(&mut has_user_data, true)
            {
                add(entries);
            }
            plan.other_values.iter().for_each(add);
        }
        others
    }

    /// Whether the text of `event_data` is longer than [`MAX_TEXT`] bytes, or its names or constants are too long.
    pub(crate) fn text_exceeds(self, templates: &ChunkTemplates) -> bool {
        if self.with_plans(templates).any(|(_, plan)| plan.overflows()) {
            return true;
        }
        let Some((event_data, part)) = self.event_data(templates) else {
            return false;
        };
        event_data.may_exceed && text_of(&event_data.entries, part.values).any(|bytes| bytes > MAX_TEXT)
    }
}

/// The entries of a record, to look up by key.
#[derive(Clone, Copy)]
pub(crate) struct KeyedEntries<'p, 'r> {
    event_data: Option<Keyed<'p, 'r>>,
    user_data: Option<Keyed<'p, 'r>>,
}

/// The entries of an element.
#[derive(Clone, Copy)]
pub(crate) struct Keyed<'p, 'r> {
    pub(crate) of: &'p EventData,
    values: ValueTable<'r>,
    /// How many entries count: a map ends with the entry that makes its text too long.
    limit: usize,
}

impl<'p, 'r> Keyed<'p, 'r> {
    #[inline]
    fn new(of: &'p EventData, values: ValueTable<'r>) -> Self {
        let limit = if of.may_exceed {
            let last = text_of(&of.entries, values).position(|bytes| bytes > MAX_TEXT);
            last.map_or(usize::MAX, |last| last + 1)
        } else {
            usize::MAX
        };
        Keyed { of, values, limit }
    }

    /// The place of the entry with a key, by the key's index.
    #[inline]
    fn place(&self, key: usize) -> Option<usize> {
        *self.of.keyed.get(key)?
    }

    /// The value of the map with a number in place of a name.
    #[cold]
    fn numbered(&self, number: usize) -> Option<Resolved<'p, 'r>> {
        let mut values = self.of.split(self.values);
        values
            .find(|(found, ..)| *found == Some(number))
            .map(|(.., found)| found)
    }

    /// The place of a column's entry, by the index of its key.
    #[inline]
    fn column(&self, key: usize) -> Option<usize> {
        *self.of.columns.get(key)?
    }

    /// The value of the entry with an index.
    #[inline]
    pub(crate) fn get(&self, place: usize) -> Option<Resolved<'p, 'r>> {
        let entry = self.of.entries.get(place).filter(|_| place < self.limit)?;
        entry.source.find(self.values)
    }
}

impl<'p, 'r> KeyedEntries<'p, 'r> {
    /// The arrays among the entries and leaves, each with its index: of `EventData`, or else of `UserData`.
    pub(crate) fn arrays(&self) -> impl Iterator<Item = (bool, usize, Resolved<'p, 'r>)> {
        let of = |keyed: Option<Keyed<'p, 'r>>, in_event_data: bool| {
            let all = keyed.into_iter().flat_map(move |keyed| {
                let found = move |index| Some((in_event_data, index, keyed.get(index)?));
                (0..keyed.of.entries.len()).filter_map(found)
            });
            all.filter(|(.., found)| found.items().is_some())
        };
        of(self.event_data, true).chain(of(self.user_data, false))
    }

    /// The value of the entry of `EventData` with an index.
    pub(crate) fn of_event_data(&self, index: usize) -> Option<Resolved<'p, 'r>> {
        self.event_data.as_ref()?.get(index)
    }

    /// The value of the leaf of `UserData` with an index.
    pub(crate) fn of_user_data(&self, index: usize) -> Option<Resolved<'p, 'r>> {
        self.user_data.as_ref()?.get(index)
    }

    /// The value of an entry.
    #[inline]
    pub(crate) fn get(&self, lookup: Lookup) -> Option<Resolved<'p, 'r>> {
        let entries = self.event_data.as_ref();
        match lookup {
            Lookup::EventData { key, number } => {
                let entries = entries?;
                match number.filter(|_| entries.of.has_split(entries.values)) {
                    Some(number) => entries.numbered(number),
                    None => entries.get(entries.place(key)?),
                }
            }
            Lookup::Column { key, in_both } => {
                if let Some(entries) = entries
                    && let Some(place) = entries.column(key)
                {
                    return entries.get(place);
                }
                let leaves = self.user_data.as_ref()?;
                let has = |key: &usize| entries.is_some_and(|entries| entries.column(*key).is_some());
                leaves.get(leaves.column(in_both.filter(has).unwrap_or(key))?)
            }
        }
    }
}

/// The fields of a record.
pub(crate) struct Fields<'p, 'r> {
    pub(crate) record: RecordView<'p, 'r>,
    templates: &'p ChunkTemplates,
    /// The plan and the values of the first part, if it has the `System` element.
    system: Option<(&'p Plan, ValueTable<'r>)>,
}

impl<'p, 'r> Fields<'p, 'r> {
    /// The value at the place with an index.
    pub(crate) fn get(&self, place: usize) -> Option<Resolved<'p, 'r>> {
        self.get_at(place, self.record.target.places[place].in_system)
    }

    /// The substitution whose value alone is the number, time or GUID at a place in `System`, and the value table.
    #[inline(always)]
    pub(crate) fn substitution(&self, place: usize) -> Option<(u16, ValueTable<'r>)> {
        let (plan, values) = self.system?;
        Some((plan.bare_substitution[place]?, values))
    }

    /// The value at the place with an index. `in_system` is whether the place is in the `System` element.
    #[inline(always)]
    pub(crate) fn get_at(&self, place: usize, in_system: bool) -> Option<Resolved<'p, 'r>> {
        // A `System` element in another part does not count, so that it does not matter whether that part is read.
        if let Some((plan, values)) = self.system
            && in_system
        {
            return plan.fields[place].as_ref()?.find(values);
        }
        let mut parts = self.record.with_plans(self.templates);
        parts.find_map(|(part, plan)| plan.fields.get(place)?.as_ref()?.find(part.values))
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
