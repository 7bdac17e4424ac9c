//! Column plans: what a tree gives to each column that a query asks for.
//!
//! The plan of a template says, for each column, *constant*, *substitution*, *pieces of both*, or *absent*; a
//! record's values then fill it. A record that no plan of a template covers is read into a tree of its own,
//! whose substitutions are filled, and the plan of that tree has constants only. So there is one set of rules, and
//! one place that appends.

use evtx_format::MAX_TEXT;
use evtx_format::binxml::instance::{SubstitutionSet, ValueDescriptors, ValueTable};
use evtx_format::value::{Value, ValueType};

use super::keys::Key;
use super::source::{Content, Extractor};

/// What a tree's root is to the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TreeRoot {
    /// The `Event` element.
    Event,
    /// A child of it.
    Child,
}

/// What a tree gives to each column.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// By place, in the order of [`Projection::places`].
    pub(crate) fields: Box<[Option<Extractor>]>,
    /// The substitution of which a number, a time or a GUID at each place is the value, if it is no more than that.
    pub(crate) bare_substitution: Box<[Option<u16>]>,
    /// Whether the tree has any place outside of `System`.
    pub(crate) beyond_system: bool,
    /// The entries of `event_data`, if the tree has an `EventData` element and they are asked for.
    pub(super) event_data: Option<Conditional<EventData>>,
    /// The number of the entry that has each of [`Projection::keys`].
    pub(crate) keyed: Box<[Option<usize>]>,
    /// Set if the tree has a `UserData` element and it is asked for.
    pub(super) user_data: Option<Conditional<()>>,
    /// Whether the tree has a `System` element.
    pub(crate) system: bool,
    /// Whether the columns depend on a record's values in a way that no plan tells. Such a plan covers no
    /// record; what it has of the fields is for records whose tree cannot be read.
    pub(super) irregular: bool,
    /// Whether `event_data` ends before its last entry, as its names or its constants are too long.
    pub(super) overflows: bool,
    /// Whether a text can have a value of the record so often that it takes much more memory than the record.
    pub(crate) repeats_values: bool,
    /// The substitutions that stand for children of `Event`, in order.
    pub(crate) children: Box<[u16]>,
    /// The same, as a set.
    pub(crate) child_substitutions: SubstitutionSet,
    /// What the columns need of each substitution's value.
    pub(super) needs: Box<[RequiredShape]>,
    /// The substitutions that columns read.
    pub(super) read_substitutions: SubstitutionSet,
}

/// What an element gives that a record can leave out.
#[derive(Debug)]
pub(super) struct Conditional<T> {
    /// The substitution whose NULL leaves the element out.
    pub(super) guard: Option<u16>,
    pub(super) given: T,
}

impl<T> Conditional<T> {
    /// What the element gives; `None` where the values leave it out.
    #[inline]
    fn get(&self, values: ValueTable<'_>) -> Option<&T> {
        let left_out = self
            .guard
            .and_then(|guard| values.get(guard))
            .is_some_and(Value::is_null);
        (!left_out).then_some(&self.given)
    }
}

/// What `EventData` gives.
#[derive(Debug)]
pub(crate) struct EventData {
    pub(crate) entries: Box<[Entry]>,
    /// The entries as a run, if they are one.
    pub(crate) run: Option<Run>,
    /// Whether the text of the map can be longer than [`MAX_TEXT`].
    pub(crate) may_exceed: bool,
}

/// Entries that every record has, each the value of a substitution: what most templates have.
#[derive(Debug)]
pub(crate) struct Run {
    /// The numbers of their keys, and the highest of them.
    pub(crate) keys: Box<[i32]>,
    pub(crate) highest_key: i32,
    pub(crate) substitutions: Box<[u16]>,
    /// The first substitution, if the others follow it in order.
    first_of_consecutive: Option<u16>,
}

/// Values whose text together cannot be longer than the limit: each has 64 KiB, and no text takes six bytes for one.
pub(crate) const FEW_ENTRIES: usize = MAX_TEXT / (6 * 65_536);

impl Run {
    /// The slots of the values, if they follow each other.
    #[inline]
    pub(crate) fn consecutive<'r>(&self, values: ValueTable<'r>) -> Option<ValueDescriptors<'r>> {
        values.slots(self.first_of_consecutive?, self.substitutions.len())
    }
}

impl EventData {
    pub(super) fn new(entries: Box<[Entry]>) -> Self {
        let simple = entries.iter().map(|entry| match (&entry.key, &entry.source) {
            (
                Key::Shared(key),
                Extractor {
                    guard: None,
                    attribute: false,
                    content: Content::Substitution(substitution),
                },
            ) => Some((*key, *substitution)),
            _ => None,
        });
        let run = simple
            .collect::<Option<Vec<_>>>()
            .filter(|run| run.len() <= FEW_ENTRIES);
        let run = run.map(|run| Run {
            keys: run.iter().map(|(key, _)| *key).collect(),
            highest_key: run.iter().map(|(key, _)| *key).max().unwrap_or(-1),
            substitutions: run.iter().map(|(_, substitution)| *substitution).collect(),
            first_of_consecutive: run
                .first()
                .map(|(_, first)| *first)
                .filter(|_| run.windows(2).all(|pair| pair[0].1.checked_add(1) == Some(pair[1].1))),
        });
        let values = entries.iter().map(|entry| entry.source.values()).sum::<usize>();
        EventData {
            entries,
            run,
            may_exceed: values > FEW_ENTRIES,
        }
    }
}

/// An entry of `event_data`.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) source: Extractor,
    /// The type that the template declares for its value.
    pub(crate) declared: ValueType,
}

/// What a plan can take of a substitution, so that the columns stay what the tree says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RequiredShape {
    /// Anything: no column looks at it.
    Nothing,
    /// The substitution is a child of `Event`: anything, as a stream of its own.
    Child,
    /// A single value or an array: the only content of a leaf of `EventData`.
    Leaf,
    /// A single value.
    Single,
}

impl Plan {
    /// Whether the plan tells what the tree of these values has.
    #[inline]
    pub(crate) fn supports(&self, values: ValueTable<'_>) -> bool {
        !self.irregular && (!values.may_be_compound(self.read_substitutions) || self.supports_compound(values))
    }

    #[cold]
    fn supports_compound(&self, values: ValueTable<'_>) -> bool {
        values
            .compound_slots()
            .all(|(substitution, slot)| match self.needs.get(substitution) {
                Some(need) if *need >= RequiredShape::Leaf => self.takes(*need, values.value(slot)),
                _ => true,
            })
    }

    fn takes(&self, need: RequiredShape, value: Value<'_>) -> bool {
        if value.value_type.array {
            need == RequiredShape::Leaf || !value.repeats()
        } else {
            value.is_null()
        }
    }

    /// The entries of `event_data` that a record with these values can have.
    #[inline]
    pub(crate) fn event_data(&self, values: ValueTable<'_>) -> Option<&EventData> {
        self.event_data.as_ref()?.get(values)
    }

    /// Whether a record with these values has the `UserData` element of the tree, if that is asked for.
    pub(crate) fn has_user_data(&self, values: ValueTable<'_>) -> bool {
        self.user_data
            .as_ref()
            .is_some_and(|user_data| user_data.get(values).is_some())
    }

    /// Whether the tree has a `UserData` element and it is asked for.
    pub(crate) fn may_have_user_data(&self) -> bool {
        self.user_data.is_some()
    }

    /// Whether a column has so many values of a record that they can be longer together than a few times the record.
    pub(super) fn texts_hold_many_values(&self) -> bool {
        let entries = self.event_data.as_ref().map_or(&[][..], |it| &it.given.entries);
        let is_long = |source: &Extractor| source.values() > FEW_ENTRIES;
        entries.iter().map(|entry| entry.source.values()).sum::<usize>() > FEW_ENTRIES
            || self.fields.iter().flatten().any(is_long)
    }

    /// About how many bytes it takes beside its own.
    pub(crate) fn bytes(&self) -> usize {
        let entries = self.event_data.as_ref().map_or(&[][..], |it| &it.given.entries);
        let of_entry = |entry: &Entry| {
            // Runs have a key and a substitution of each.
            let own = size_of::<Entry>() + size_of::<(i32, u16)>();
            own + entry.source.bytes() + if let Key::Own(name) = &entry.key { name.len() } else { 0 }
        };
        let fields = self.fields.iter().flatten().map(Extractor::bytes);
        size_of_val(&*self.fields)
            + size_of_val(&*self.bare_substitution)
            + size_of_val(&*self.keyed)
            + size_of_val(&*self.needs)
            + size_of_val(&*self.children)
            + fields.sum::<usize>()
            + entries.iter().map(of_entry).sum::<usize>()
    }

    /// Whether `event_data` ends before its last entry.
    pub(crate) fn overflows(&self) -> bool {
        self.overflows
    }

    /// Whether a substitution stands for a child of `Event`.
    pub(crate) fn is_child(&self, substitution: usize) -> bool {
        self.needs.get(substitution) == Some(&RequiredShape::Child)
    }
}
