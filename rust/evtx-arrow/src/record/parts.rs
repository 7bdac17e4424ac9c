//! A record as the parts that its columns are read from.
//!
//! A part is a template instance with its plan, or a tree with a plan of its own: for elements that a record
//! spells out, and for instances that no plan of their template covers. The first part is the event; the
//! others are the streams that its substitutions hold (usually one: `EventData`).

use evtx_format::MAX_TEXT;
use evtx_format::binxml::instance::{Instance, ValueTable};
use evtx_format::binxml::tree::Element;

use super::templates::ChunkTemplates;
use crate::plan::{Entry, EventData, Plan, Projection, Resolved, SystemSubstitutions, TreeRoot};

/// The parts of a record.
#[derive(Clone, Copy)]
pub(crate) struct RecordView<'p, 'r> {
    pub(super) own_plans: &'p [Plan],
    pub(super) target: &'p Projection,
    pub(crate) parts: &'p [Part<'r>],
    /// Whether some of the record is damaged. Parts that come before it are there.
    pub(crate) is_damaged: bool,
}

pub(crate) struct Part<'r> {
    plan: PlanAt,
    pub(crate) values: ValueTable<'r>,
    pub(crate) content: PartContent<'r>,
}

impl<'r> Part<'r> {
    /// A part whose plan is that of a template of the chunk.
    #[inline]
    pub(crate) fn of_template(at: usize, values: ValueTable<'r>, content: PartContent<'r>) -> Self {
        Part {
            plan: PlanAt::Template(at),
            values,
            content,
        }
    }

    /// A part whose plan is its own, by its index.
    pub(super) fn of_own_plan(at: usize, content: PartContent<'r>) -> Self {
        Part {
            plan: PlanAt::Own(at),
            values: ValueTable::none(),
            content,
        }
    }

    /// The index of its template and its values, if it is an instance that a plan covers.
    #[inline]
    pub(crate) fn instance(&self) -> Option<(usize, ValueTable<'r>)> {
        match self.content {
            PartContent::Instance(..) => Some((self.template()?, self.values)),
            _ => None,
        }
    }

    /// The index of its template among those of the chunk, if it has its plan from one.
    #[inline]
    pub(crate) fn template(&self) -> Option<usize> {
        match self.plan {
            PlanAt::Template(at) => Some(at),
            PlanAt::Own(_) => None,
        }
    }

    pub(crate) fn is_damaged(&self) -> bool {
        matches!(self.content, PartContent::Damaged)
    }
}

/// Where a part's plan is.
#[derive(Clone, Copy)]
enum PlanAt {
    /// With the chunk's templates.
    Template(usize),
    /// With the record.
    Own(usize),
}

/// What a part was read from.
#[derive(Clone, Copy)]
pub(crate) enum PartContent<'r> {
    Instance(Instance<'r>, TreeRoot),
    /// With what its substitutions were filled from, if it is that of an instance.
    Tree(&'r Element<'r>, TreeRoot, Option<ValueTable<'r>>),
    /// An instance whose tree cannot be read: only what its plan has of the fields counts.
    Damaged,
}

impl<'p, 'r> RecordView<'p, 'r> {
    /// Whether nothing of the record could be read, as it is damaged.
    #[inline]
    pub(crate) fn is_unread(self) -> bool {
        self.parts.is_empty() && self.is_damaged
    }

    /// Whether the event's own instance has the `System` element.
    pub(crate) fn has_system(self, templates: &ChunkTemplates) -> bool {
        self.with_plans(templates).next().is_some_and(|(_, plan)| plan.system)
    }

    /// The substitutions of the event's own template that its `System` is read from, and what fills them.
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

    /// The parts with their plans.
    pub(crate) fn with_plans(self, templates: &'p ChunkTemplates) -> impl Iterator<Item = (&'p Part<'r>, &'p Plan)> {
        self.parts.iter().filter_map(move |part| match part.plan {
            PlanAt::Own(at) => Some((part, &self.own_plans[at])),
            PlanAt::Template(at) => Some((part, &templates.get(at).ok()?.plan)),
        })
    }

    /// What the record has at a place.
    pub(crate) fn field(self, templates: &'p ChunkTemplates, place: usize) -> Option<Resolved<'p, 'r>> {
        self.fields(templates).get(place)
    }

    /// What the record has at each place.
    #[inline]
    pub(crate) fn fields(self, templates: &'p ChunkTemplates) -> Fields<'p, 'r> {
        let event = self.with_plans(templates).next();
        Fields {
            record: self,
            templates,
            system: event.and_then(|(part, plan)| plan.system.then_some((plan, part.values))),
        }
    }

    /// The entries of `event_data`, to be looked for by their keys.
    #[inline(never)]
    pub(crate) fn keyed_entries(self, templates: &'p ChunkTemplates) -> Option<KeyedEntries<'p, 'r>> {
        let mut parts = self.with_plans(templates).filter(|(part, _)| !part.is_damaged());
        parts.find_map(|(part, plan)| {
            Some(KeyedEntries {
                indices: &plan.keyed,
                event_data: plan.event_data(part.values)?,
                values: part.values,
            })
        })
    }

    /// The entries of `event_data`, and the part whose values fill them.
    #[inline]
    pub(crate) fn event_data(self, templates: &'p ChunkTemplates) -> Option<(&'p EventData, &'p Part<'r>)> {
        self.with_plans(templates)
            .filter(|(part, _)| !part.is_damaged())
            .find_map(|(part, plan)| Some((plan.event_data(part.values)?, part)))
    }

    /// Whether the text of `event_data` is longer than the limit.
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

/// The entries of a record's `event_data`, to be looked for by their keys.
#[derive(Clone, Copy)]
pub(crate) struct KeyedEntries<'p, 'r> {
    /// By the index of the key in the plan's target.
    indices: &'p [Option<usize>],
    event_data: &'p EventData,
    values: ValueTable<'r>,
}

impl<'p, 'r> KeyedEntries<'p, 'r> {
    /// How many entries there are at most: a map ends where its text becomes too long.
    pub(crate) fn limit(&self) -> usize {
        if !self.event_data.may_exceed {
            return usize::MAX;
        }
        let last = text_of(&self.event_data.entries, self.values).position(|bytes| bytes > MAX_TEXT);
        last.map_or(usize::MAX, |last| last + 1)
    }

    /// What the record has for a key, if its entry is before the limit.
    pub(crate) fn get(&self, key: usize, limit: usize) -> Option<Resolved<'p, 'r>> {
        let index = (*self.indices.get(key)?)?;
        let entry = self.event_data.entries.get(index).filter(|_| index < limit)?;
        entry.source.find(self.values)
    }
}

/// The fields of a record.
pub(crate) struct Fields<'p, 'r> {
    pub(crate) record: RecordView<'p, 'r>,
    templates: &'p ChunkTemplates,
    /// The event's own instance, if that has the `System` element.
    system: Option<(&'p Plan, ValueTable<'r>)>,
}

impl<'p, 'r> Fields<'p, 'r> {
    /// What the record has at a place.
    pub(crate) fn get(&self, place: usize) -> Option<Resolved<'p, 'r>> {
        self.get_at(place, self.record.target.places[place].in_system)
    }

    /// The substitution of which a number, a time or a GUID in the `System` element is the value, and what fills it, if
    /// that is so simple.
    #[inline(always)]
    pub(crate) fn substitution(&self, place: usize) -> Option<(u16, ValueTable<'r>)> {
        let (plan, values) = self.system?;
        Some((plan.bare_substitution[place]?, values))
    }

    /// What the record has at a place, of which it is known whether it is in the `System` element.
    #[inline(always)]
    pub(crate) fn get_at(&self, place: usize, in_system: bool) -> Option<Resolved<'p, 'r>> {
        // What an event's substitutions hold is no part of its System, whether or not it is read.
        if let Some((plan, values)) = self.system
            && in_system
        {
            return plan.fields[place].as_ref()?.find(values);
        }
        let mut parts = self.record.with_plans(self.templates);
        parts.find_map(|(part, plan)| plan.fields.get(place)?.as_ref()?.find(part.values))
    }
}

/// The bytes of text that a map has after each of its entries.
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
