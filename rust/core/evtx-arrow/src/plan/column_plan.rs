//! Column plans: where a tree has the value of each column of a query.
//!
//! The plan of a template says for each column *constant*, *substitution*, *concatenation of both*, or *absent*. A
//! record that the plan of its template does not support is read into a tree with filled substitutions, whose plan has
//! only constants. So one set of rules serves both.

use std::ops::Range;

use evtx_format::MAX_TEXT;
#[cfg(doc)]
use evtx_format::binxml::fields::FieldNamer;
use evtx_format::binxml::instance::{SubstitutionSet, ValueDescriptors, ValueTable};
use evtx_format::value::{Scalar, Value, ValueType};

use super::keys::Key;
use super::projection::PathId;
use super::source::{Content, Extractor, Resolved};

/// Where a tree has the value of each column.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// By [`PathId`].
    pub(super) paths: Box<[Option<Extractor>]>,
    /// By [`PathId`]: the substitution whose value alone is the number, time or GUID at the path.
    pub(crate) bare_substitution: Box<[Option<u16>]>,
    /// Whether the tree has a path outside of `System`.
    pub(crate) beyond_system: bool,
    /// The entries of `event_data`, if the tree has an `EventData` element and the scan reads them.
    pub(super) event_data: Option<Conditional<EventData>>,
    /// The leaves of `UserData`, as entries, if the tree has that element and the scan reads them.
    pub(super) user_entries: Option<Conditional<EventData>>,
    /// The values that are neither at a path of `System` nor entries, if there are any and the scan reads them.
    pub(crate) other_values: Option<EventData>,
    /// The substitution that is the content of `UserData`, if the scan reads the leaves. Its stream is a separate
    /// section.
    pub(super) user_stream: Option<Conditional<u16>>,
    /// Set if the tree has a `UserData` element and the scan reads it.
    pub(super) user_data: Option<Conditional<()>>,
    /// Whether the tree has a `System` element.
    pub(crate) system: bool,
    /// Whether the tree has an `EventData` element, or another one [with fields](FieldNamer::has_fields).
    pub(crate) has_fields: bool,
    /// Whether the columns depend on the values of a record in a way that a plan cannot express. Such a plan supports no
    /// record. Its paths are only used for records whose tree cannot be read.
    pub(super) irregular: bool,
    /// Whether `event_data` ends before its last entry, because its names or constants are too long.
    pub(crate) overflows: bool,
    /// Whether a text can have so many values that it takes much more memory than the record.
    pub(crate) repeats_values: bool,
    /// The substitutions that are children of `Event`, in order.
    pub(crate) children: Box<[u16]>,
    /// The substitutions whose streams are sections, as a set.
    pub(crate) section_substitutions: SubstitutionSet,
    /// By index of the substitution: which values the plan supports.
    pub(super) required_shapes: Box<[RequiredShape]>,
    /// The substitutions whose values must be single, or the content of a leaf. If entries are read, those of all entries.
    pub(super) shaped_substitutions: SubstitutionSet,
}

/// Something in an element that a record can leave out.
#[derive(Debug)]
pub(super) struct Conditional<T> {
    /// The substitution on which the element depends: if its value is NULL, the element is left out.
    pub(super) guard: Option<u16>,
    pub(super) given: T,
}

impl<T> Conditional<T> {
    /// What is in the element; `None` if the values leave the element out.
    #[inline]
    fn get(&self, values: ValueTable<'_>) -> Option<&T> {
        let left_out = self
            .guard
            .and_then(|guard| values.get(guard))
            .is_some_and(Value::is_null);
        (!left_out).then_some(&self.given)
    }
}

/// An entry: its index in [`EventData::entries`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EntryId(pub(crate) usize);

/// The entries of an `EventData` element, or of `UserData`, or other values with their names.
#[derive(Debug)]
pub(crate) struct EventData {
    pub(crate) entries: Box<[Entry]>,
    /// By index in [`Projection::keys`]: the entry with the key.
    pub(crate) keyed: Box<[Option<EntryId>]>,
    /// By index in [`Projection::columns`]: the entry of the column.
    pub(crate) columns: Box<[Option<EntryId>]>,
    /// The same entries, if all are bare substitutions.
    pub(crate) bare_entries: Option<BareEntries>,
    /// Whether the text of the map can be longer than [`MAX_TEXT`].
    pub(crate) may_exceed: bool,
    /// Whether each item of an unnamed array is a value with its own name, as Windows' XML has an element for each. If the
    /// log has names that look like those of the items, the array is one value: in the map a JSON array.
    pub(crate) splits: bool,
}

/// A value of the map, and the number that names it if the key of its entry does not.
pub(crate) type MapValue<'p, 'r> = (Option<usize>, &'p Entry, Resolved<'p, 'r>);

/// Entries that every record has, each the value of a bare substitution. Most templates have only such entries.
#[derive(Debug)]
pub(crate) struct BareEntries {
    /// The indices of their keys.
    pub(crate) keys: Box<[i32]>,
    pub(crate) substitutions: Box<[u16]>,
    /// The first substitution, if the others follow it in order.
    first_of_consecutive: Option<u16>,
}

/// How many values have less than [`MAX_TEXT`] bytes of text together: a value has less than 64 KiB, and its text at
/// most six bytes for each.
pub(crate) const FEW_ENTRIES: usize = MAX_TEXT / (6 * 65_536);

impl BareEntries {
    /// The value descriptors of the entries, if their substitutions are consecutive.
    #[inline]
    pub(crate) fn consecutive<'r>(&self, values: ValueTable<'r>) -> Option<ValueDescriptors<'r>> {
        values.consecutive(self.first_of_consecutive?, self.substitutions.len())
    }
}

impl EventData {
    pub(super) fn new(entries: Box<[Entry]>, keyed: Box<[Option<EntryId>]>, columns: Box<[Option<EntryId>]>) -> Self {
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
        let bare = simple
            .collect::<Option<Vec<_>>>()
            .filter(|bare| bare.len() <= FEW_ENTRIES);
        let bare = bare.map(|bare| BareEntries {
            keys: bare.iter().map(|(key, _)| *key).collect(),
            substitutions: bare.iter().map(|(_, substitution)| *substitution).collect(),
            first_of_consecutive: bare
                .first()
                .map(|(_, first)| *first)
                .filter(|_| bare.windows(2).all(|pair| pair[0].1.checked_add(1) == Some(pair[1].1))),
        });
        let values = entries.iter().map(|entry| entry.source.values()).sum::<usize>();
        EventData {
            entries,
            keyed,
            columns,
            bare_entries: bare,
            may_exceed: values > FEW_ENTRIES,
            splits: false,
        }
    }

    /// The same, splitting unnamed arrays if `is_clear`: no name of an entry looks like `param1`.
    pub(super) fn splitting(self, is_clear: bool) -> Self {
        let has_unnamed = || self.entries.iter().any(|entry| entry.name_len == 0);
        EventData {
            splits: is_clear && has_unnamed(),
            ..self
        }
    }

    /// Whether a record has more values than entries.
    #[inline]
    pub(crate) fn has_split(&self, values: ValueTable<'_>) -> bool {
        let is_array = |entry: &Entry| {
            let found = entry.source.find(values).filter(|_| entry.name_len == 0);
            found.is_some_and(|found| found.items().is_some())
        };
        self.splits && self.entries.iter().any(is_array)
    }

    /// The values of a record in order. Unnamed ones have a number: their name is `param` and the number.
    pub(crate) fn split<'p, 'r>(&'p self, values: ValueTable<'r>) -> impl Iterator<Item = MapValue<'p, 'r>> {
        let mut number = 0;
        self.entries.iter().flat_map(move |entry| {
            let found = entry.source.find(values);
            let items = found.filter(|_| entry.name_len == 0).and_then(Resolved::items);
            let whole = if items.is_some() { None } else { found };
            let of_entry: Vec<_> = items.into_iter().flatten().chain(whole).collect();
            let first = number + 1;
            if entry.name_len == 0 {
                number += of_entry.len().max(1);
            }
            let numbered = of_entry.into_iter().enumerate();
            numbered.map(move |(i, found)| ((entry.name_len == 0).then_some(first + i), entry, found))
        })
    }
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    /// How many bytes of the key are its name in the log, 0 if it is unnamed. A number may follow.
    pub(crate) name_len: usize,
    pub(crate) source: Extractor,
    /// The type that the template declares for its value.
    pub(crate) declared: ValueType,
}

/// Which values of a substitution a plan supports. For others, the columns would differ from those of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RequiredShape {
    /// Any value, because no column reads it.
    Nothing,
    /// Any value, because the substitution is a child of `Event`, whose stream is a separate section.
    Child,
    /// A stream, because the substitution is the content of `UserData`, whose stream is a separate section.
    InUserData,
    /// A single value or an array, because the substitution is the whole content of a leaf of `EventData`.
    Leaf,
    /// A single value.
    Single,
}

impl Plan {
    /// Where the value at a path is, if the tree has the path.
    #[inline(always)]
    pub(crate) fn path(&self, path: PathId) -> Option<&Extractor> {
        self.paths.get(path.0)?.as_ref()
    }

    /// Whether the plan reads the same from these values as the plan of their tree.
    #[inline]
    pub(crate) fn supports(&self, values: ValueTable<'_>) -> bool {
        !self.irregular
            && (!values.may_be_compound(self.shaped_substitutions) || self.supports_compound(values))
            && self.user_stream.as_ref().is_none_or(|_| self.has_user_stream(values))
    }

    /// Whether the substitution that is the content of `UserData` has a stream, unless the values leave the element out.
    #[cold]
    fn has_user_stream(&self, values: ValueTable<'_>) -> bool {
        let substitution = self.user_stream.as_ref().and_then(|stream| stream.get(values));
        substitution.is_none_or(|substitution| values.stream(*substitution).is_some())
    }

    /// The range in the chunk of the stream that is the content of `UserData`, if there is one and the scan reads it.
    #[inline]
    pub(crate) fn user_stream(&self, values: ValueTable<'_>) -> Option<Range<usize>> {
        values.stream(*self.user_stream.as_ref()?.get(values)?)
    }

    #[cold]
    fn supports_compound(&self, values: ValueTable<'_>) -> bool {
        values
            .compound()
            .all(|(substitution, slot)| match self.required_shapes.get(substitution) {
                Some(shape) if *shape >= RequiredShape::Leaf => self.takes(*shape, values.value(slot)),
                _ => true,
            })
    }

    /// Whether the plan reads entries from these values, though it does not support all of them.
    #[cold]
    pub(crate) fn supports_entries(&self, entries: &EventData, values: ValueTable<'_>) -> bool {
        let mut read = entries.entries.iter().flat_map(|entry| entry.source.substitutions());
        let takes = |substitution| match (
            self.required_shapes.get(usize::from(substitution)),
            values.get(substitution),
        ) {
            (Some(shape), Some(value)) if value.value_type.array || value.value_type.scalar == Scalar::BinXml => {
                self.takes(*shape, value)
            }
            _ => true,
        };
        !self.irregular && read.all(takes)
    }

    fn takes(&self, shape: RequiredShape, value: Value<'_>) -> bool {
        if value.value_type.array {
            shape == RequiredShape::Leaf || !value.repeats()
        } else {
            value.is_null()
        }
    }

    /// The entries of `event_data`; `None` if a record with these values has no `EventData` element in this tree.
    #[inline]
    pub(crate) fn event_data(&self, values: ValueTable<'_>) -> Option<&EventData> {
        self.event_data.as_ref()?.get(values)
    }

    /// The leaves of `UserData`; `None` if a record with these values has no `UserData` element in this tree.
    #[inline]
    pub(crate) fn user_entries(&self, values: ValueTable<'_>) -> Option<&EventData> {
        self.user_entries.as_ref()?.get(values)
    }

    /// Whether the tree may have entries, apart from those of a stream.
    #[inline]
    pub(crate) fn may_have_entries(&self) -> bool {
        self.event_data.is_some() || self.user_entries.is_some()
    }

    /// Whether some of the values that must be single, or the content of a leaf, may be arrays.
    #[inline]
    pub(crate) fn may_have_arrays(&self, values: ValueTable<'_>) -> bool {
        values.may_be_compound(self.shaped_substitutions)
    }

    /// The entries of `EventData` and the leaves of `UserData`.
    fn both(&self) -> impl Iterator<Item = &EventData> {
        [&self.event_data, &self.user_entries]
            .into_iter()
            .flatten()
            .map(|it| &it.given)
    }

    fn all_entries(&self) -> impl Iterator<Item = &EventData> {
        self.both().chain(&self.other_values)
    }

    /// Whether the scan reads `UserData`, and a record with these values has that element in this tree.
    pub(crate) fn has_user_data(&self, values: ValueTable<'_>) -> bool {
        self.user_data
            .as_ref()
            .is_some_and(|user_data| user_data.get(values).is_some())
    }

    /// Whether the scan reads `UserData`, and the tree has that element.
    pub(crate) fn may_have_user_data(&self) -> bool {
        self.user_data.is_some()
    }

    /// Whether a column can have so many values that their text is much longer than the record.
    pub(super) fn texts_hold_many_values(&self) -> bool {
        let is_long = |source: &Extractor| source.values() > FEW_ENTRIES;
        self.both().any(|entries| entries.may_exceed) || self.paths.iter().flatten().any(is_long)
    }

    /// About how many bytes of memory it takes besides `size_of::<Plan>()`.
    pub(crate) fn bytes(&self) -> usize {
        let of_entry = |entry: &Entry| {
            let own_name = if let Key::Own(name) = &entry.key { name.len() } else { 0 };
            // Bare entries have one more key and substitution for each entry.
            size_of::<Entry>() + size_of::<(i32, u16)>() + entry.source.bytes() + own_name
        };
        let of_entries = |it: &EventData| {
            let entries = it.entries.iter().map(of_entry).sum::<usize>();
            size_of_val(&*it.keyed) + size_of_val(&*it.columns) + entries
        };
        let own = size_of_val(&*self.paths)
            + size_of_val(&*self.bare_substitution)
            + size_of_val(&*self.required_shapes)
            + size_of_val(&*self.children);
        let paths = self.paths.iter().flatten().map(Extractor::bytes);
        own + paths.chain(self.all_entries().map(of_entries)).sum::<usize>()
    }

    /// Whether the stream in a substitution is a separate section, and no column reads the substitution.
    pub(crate) fn is_section(&self, substitution: usize) -> bool {
        let shape = self.required_shapes.get(substitution);
        matches!(shape, Some(RequiredShape::Child | RequiredShape::InUserData))
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::ConcatItem;
    use super::*;

    fn source(content: Content) -> Extractor {
        Extractor {
            guard: None,
            attribute: false,
            content,
        }
    }

    fn entry(key: Key, source: Extractor) -> Entry {
        let declared = Value::null().value_type;
        Entry {
            key,
            name_len: 0,
            source,
            declared,
        }
    }

    /// Entries of substitutions, with keys from 5 downwards.
    fn entries(substitutions: impl IntoIterator<Item = u16>) -> Box<[Entry]> {
        let entries = substitutions.into_iter().zip((0..=5).rev().cycle());
        entries
            .map(|(substitution, key)| entry(Key::Shared(key), source(Content::Substitution(substitution))))
            .collect()
    }

    #[test]
    fn bare_entries_are_few_substitutions() {
        let bare = EventData::new(entries([3, 4, 5]), [].into(), [].into())
            .bare_entries
            .expect("bare entries");
        assert_eq!((&*bare.keys, &*bare.substitutions), (&[5, 4, 3][..], &[3, 4, 5][..]));
        let first = |substitutions: &[u16]| {
            let bare = EventData::new(entries(substitutions.iter().copied()), [].into(), [].into()).bare_entries;
            bare.expect("bare entries").first_of_consecutive
        };
        assert_eq!(first(&[3, 4, 5]), Some(3));
        assert_eq!(first(&[7]), Some(7));
        for none in [&[][..], &[3, 5], &[4, 3], &[3, 3], &[u16::MAX, 0]] {
            assert_eq!(first(none), None, "{none:?}");
        }
        let guarded = Extractor {
            guard: Some(1),
            ..source(Content::Substitution(1))
        };
        let attribute = Extractor {
            attribute: true,
            ..source(Content::Substitution(1))
        };
        for other in [
            entry(Key::Own("x".into()), source(Content::Substitution(1))),
            entry(Key::Shared(0), guarded),
            entry(Key::Shared(0), attribute),
            entry(Key::Shared(0), source(Content::Concat([].into()))),
        ] {
            assert!(
                EventData::new([other].into(), [].into(), [].into())
                    .bare_entries
                    .is_none()
            );
        }
    }

    #[test]
    fn many_values_can_be_longer_than_the_limit() {
        // 16 MiB of values that take 6 * 64 KiB of text each.
        for (values, exceeds) in [(42, false), (43, true)] {
            let event_data = EventData::new(entries(0..values), [].into(), [].into());
            assert_eq!(
                (event_data.may_exceed, event_data.bare_entries.is_none()),
                (exceeds, exceeds)
            );
            let of_map = Plan {
                event_data: Some(Conditional {
                    guard: None,
                    given: event_data,
                }),
                ..Plan::default()
            };
            assert_eq!(of_map.texts_hold_many_values(), exceeds);
            let items: Vec<_> = (0..values).map(ConcatItem::Substitution).collect();
            let of_field = Plan {
                paths: [None, Some(source(Content::Concat(items.into())))].into(),
                ..Plan::default()
            };
            assert_eq!(of_field.texts_hold_many_values(), exceeds);
        }
    }
}
