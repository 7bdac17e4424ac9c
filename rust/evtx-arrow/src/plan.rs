//! Column plans: what a tree gives to each column that a query asks for.
//!
//! The plan of a template says, for each column, *constant*, *hole*, *pieces of both*, or *absent*; a
//! record's values then fill it. A record that no plan of a template covers is read into a tree of its own,
//! whose holes are filled, and the plan of that tree has constants only. So there is one set of rules, and
//! one place that appends.

use evtx_format::MAX_TEXT;
use evtx_format::binxml::instance::{HoleSet, Slots, Values};
use evtx_format::render::json;
use evtx_format::value::text::Form;
use evtx_format::value::{Value, ValueType};
use hashbrown::HashMap;

use crate::convert;
use crate::keys::Key;
use crate::schema::Place;
use crate::system::MIN_COLUMNS;

mod planner;

/// What the plans of a scan are made for.
#[derive(Debug, Default)]
pub(crate) struct Target {
    /// The places that columns read.
    pub(crate) places: Vec<Place>,
    /// Whether `event_data` is read.
    pub(crate) event_data: bool,
    /// The numbers of the keys of `event_data` that are looked for by name.
    pub(crate) keys: HashMap<String, usize>,
    /// Whether `user_data` is read.
    pub(crate) user_data: bool,
    /// Whether `xml` is read.
    pub(crate) xml: bool,
    /// Whether `json` is read.
    pub(crate) json: bool,
}

impl Target {
    /// The number of a place, which is added if it is not there.
    pub(crate) fn place(&mut self, place: Place) -> usize {
        let known = self.places.iter().position(|known| *known == place);
        known.unwrap_or_else(|| {
            self.places.push(place);
            self.places.len() - 1
        })
    }

    /// Whether so many columns of `System` are read that it pays to share their rows.
    pub(crate) fn shares_system(&self) -> bool {
        self.places.iter().filter(|place| place.repeats()).count() >= MIN_COLUMNS
    }

    /// The number of a key of `event_data`, which is added if it is not there.
    pub(crate) fn key(&mut self, key: &str) -> usize {
        self.event_data = true;
        let next = self.keys.len();
        *self.keys.entry_ref(key).or_insert(next)
    }

    /// The number of a key, if it is looked for.
    pub(crate) fn key_number(&self, key: &str) -> Option<usize> {
        self.keys.get(key).copied()
    }
}

/// What a tree's root is to the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Root {
    /// The `Event` element.
    Event,
    /// A child of it.
    Child,
}

/// What a tree gives to each column.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// By place, in the order of [`Target::places`].
    pub(crate) fields: Box<[Option<Source>]>,
    /// The hole of which a number, a time or a GUID at each place is the value, if it is no more than that.
    pub(crate) direct: Box<[Option<u16>]>,
    /// Whether the tree has any place outside of `System`.
    pub(crate) beyond_system: bool,
    /// The entries of `event_data`, if the tree has an `EventData` element and they are asked for.
    event_data: Option<Guarded<EventData>>,
    /// The number of the entry that has each of [`Target::keys`].
    pub(crate) keyed: Box<[Option<usize>]>,
    /// Set if the tree has a `UserData` element and it is asked for.
    user_data: Option<Guarded<()>>,
    /// Whether the tree has a `System` element.
    pub(crate) system: bool,
    /// Whether the columns depend on a record's values in a way that no plan tells. Such a plan covers no
    /// record; what it has of the fields is for records whose tree cannot be read.
    irregular: bool,
    /// Whether `event_data` ends before its last entry, as its names or its constants are too long.
    overflows: bool,
    /// Whether a text can have a value of the record so often that it takes much more memory than the record.
    pub(crate) repeats_values: bool,
    /// The holes that stand for children of `Event`, in order.
    pub(crate) children: Box<[u16]>,
    /// The same, as a set.
    pub(crate) child_holes: HoleSet,
    /// What the columns need of each hole's value.
    needs: Box<[Need]>,
    /// The holes that columns read.
    read_holes: HoleSet,
}

/// What an element gives that a record can leave out.
#[derive(Debug)]
struct Guarded<T> {
    /// The hole whose NULL leaves the element out.
    guard: Option<u16>,
    given: T,
}

impl<T> Guarded<T> {
    /// What the element gives; `None` where the values leave it out.
    #[inline]
    fn get(&self, values: Values<'_>) -> Option<&T> {
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

/// Entries that every record has, each the value of a hole: what most templates have.
#[derive(Debug)]
pub(crate) struct Run {
    /// The numbers of their keys, and the highest of them.
    pub(crate) keys: Box<[i32]>,
    pub(crate) highest_key: i32,
    pub(crate) holes: Box<[u16]>,
    /// The first hole, if the others follow it in order.
    first_of_consecutive: Option<u16>,
}

/// Most bytes of text in a field of `System` or another place. A value has 64 KiB, and a field of real logs is one.
pub(crate) const MAX_FIELD: usize = 1 << 20;

/// Values whose text together cannot be longer than the limit: each has 64 KiB, and no text takes six bytes for one.
pub(crate) const FEW_ENTRIES: usize = MAX_TEXT / (6 * 65_536);

impl Run {
    /// The slots of the values, if they follow each other.
    #[inline]
    pub(crate) fn consecutive<'r>(&self, values: Values<'r>) -> Option<Slots<'r>> {
        values.slots(self.first_of_consecutive?, self.holes.len())
    }
}

impl EventData {
    fn new(entries: Box<[Entry]>) -> Self {
        let simple = entries.iter().map(|entry| match (&entry.key, &entry.source) {
            (
                Key::Shared(key),
                Source {
                    guard: None,
                    attribute: false,
                    content: Content::Hole(hole),
                },
            ) => Some((*key, *hole)),
            _ => None,
        });
        let run = simple
            .collect::<Option<Vec<_>>>()
            .filter(|run| run.len() <= FEW_ENTRIES);
        let run = run.map(|run| Run {
            keys: run.iter().map(|(key, _)| *key).collect(),
            highest_key: run.iter().map(|(key, _)| *key).max().unwrap_or(-1),
            holes: run.iter().map(|(_, hole)| *hole).collect(),
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
    pub(crate) source: Source,
    /// The type that the template declares for its value.
    pub(crate) declared: ValueType,
}

/// Where a text comes from.
#[derive(Debug)]
pub(crate) struct Source {
    /// The hole whose NULL leaves the element out.
    guard: Option<u16>,
    /// An attribute is not there where its value is empty.
    attribute: bool,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Constant(Constant),
    Hole(u16),
    Pieces(Box<[Piece]>),
}

/// A piece of text.
#[derive(Debug)]
pub(crate) enum Piece {
    Text(Box<str>),
    Hole(u16),
}

/// A text that is the same for every record, and what it is read as.
#[derive(Debug)]
pub(crate) struct Constant {
    pub(crate) text: Box<str>,
    /// What the text is read as, if columns read it for every record.
    pub(crate) parsed: Option<Parsed>,
    /// The items, if the text is the JSON array of some.
    pub(crate) items: Box<[Constant]>,
}

impl Constant {
    fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.items) + self.items.iter().map(Constant::bytes).sum::<usize>()
    }
}

/// What a text is read as.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) number: Option<u64>,
    pub(crate) nanos: Option<i64>,
    pub(crate) uuid: Option<[u8; 16]>,
}

/// What was found for a record.
#[derive(Clone, Copy)]
pub(crate) enum Found<'p, 'r> {
    Constant(&'p Constant),
    Value(Value<'r>),
    Pieces(&'p [Piece], Values<'r>),
}

/// What a plan can take of a hole, so that the columns stay what the tree says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    /// Anything: no column looks at it.
    Nothing,
    /// The hole is a child of `Event`: anything, as a stream of its own.
    Child,
    /// A single value or an array: the only content of a leaf of `EventData`.
    Leaf,
    /// A single value.
    Single,
}

impl Plan {
    /// Whether the plan tells what the tree of these values has.
    #[inline]
    pub(crate) fn covers(&self, values: Values<'_>) -> bool {
        !self.irregular && (!values.may_be_compound(self.read_holes) || self.covers_compound(values))
    }

    #[cold]
    fn covers_compound(&self, values: Values<'_>) -> bool {
        values.compound_slots().all(|(hole, slot)| match self.needs.get(hole) {
            Some(need) if *need >= Need::Leaf => self.takes(*need, values.value(slot)),
            _ => true,
        })
    }

    fn takes(&self, need: Need, value: Value<'_>) -> bool {
        if value.value_type.array {
            need == Need::Leaf || !value.repeats()
        } else {
            value.is_null()
        }
    }

    /// The entries of `event_data` that a record with these values can have.
    #[inline]
    pub(crate) fn event_data(&self, values: Values<'_>) -> Option<&EventData> {
        self.event_data.as_ref()?.get(values)
    }

    /// Whether a record with these values has the `UserData` element of the tree, if that is asked for.
    pub(crate) fn has_user_data(&self, values: Values<'_>) -> bool {
        self.user_data
            .as_ref()
            .is_some_and(|user_data| user_data.get(values).is_some())
    }

    /// Whether the tree has a `UserData` element and it is asked for.
    pub(crate) fn may_have_user_data(&self) -> bool {
        self.user_data.is_some()
    }

    /// Whether a column has so many values of a record that they can be longer together than a few times the record.
    fn texts_hold_many_values(&self) -> bool {
        let entries = self.event_data.as_ref().map_or(&[][..], |it| &it.given.entries);
        let is_long = |source: &Source| source.values() > FEW_ENTRIES;
        entries.iter().map(|entry| entry.source.values()).sum::<usize>() > FEW_ENTRIES
            || self.fields.iter().flatten().any(is_long)
    }

    /// About how many bytes it takes beside its own.
    pub(crate) fn bytes(&self) -> usize {
        let entries = self.event_data.as_ref().map_or(&[][..], |it| &it.given.entries);
        let of_entry = |entry: &Entry| {
            // Runs have a key and a hole of each.
            let own = size_of::<Entry>() + size_of::<(i32, u16)>();
            own + entry.source.bytes() + if let Key::Own(name) = &entry.key { name.len() } else { 0 }
        };
        let fields = self.fields.iter().flatten().map(Source::bytes);
        size_of_val(&*self.fields)
            + size_of_val(&*self.direct)
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

    /// Whether a hole stands for a child of `Event`.
    pub(crate) fn is_child(&self, hole: usize) -> bool {
        self.needs.get(hole) == Some(&Need::Child)
    }
}

impl Source {
    /// The holes whose values decide what it gives.
    pub(crate) fn holes(&self) -> impl Iterator<Item = u16> {
        let (hole, pieces) = match &self.content {
            Content::Constant(_) => (None, &[][..]),
            Content::Hole(hole) => (Some(*hole), &[][..]),
            Content::Pieces(pieces) => (None, &pieces[..]),
        };
        let pieces = pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Hole(hole) => Some(*hole),
        });
        self.guard.into_iter().chain(hole).chain(pieces)
    }

    /// How many values and texts it is made of.
    fn values(&self) -> usize {
        match &self.content {
            Content::Constant(_) | Content::Hole(_) => 1,
            Content::Pieces(pieces) => pieces.len(),
        }
    }

    fn bytes(&self) -> usize {
        match &self.content {
            Content::Constant(constant) => constant.bytes(),
            Content::Hole(_) => 0,
            Content::Pieces(pieces) => {
                let of_piece = |piece: &Piece| match piece {
                    Piece::Text(text) => text.len(),
                    Piece::Hole(_) => 0,
                };
                size_of_val(&**pieces) + pieces.iter().map(of_piece).sum::<usize>()
            }
        }
    }

    /// The hole that a number, a time or a GUID is the value of. NULL stands for none and for what cannot be read as one, so it does
    /// not matter whether the element or the attribute is there.
    fn direct(&self) -> Option<u16> {
        match (self.guard, &self.content) {
            (None, Content::Hole(hole)) => Some(*hole),
            (Some(guard), Content::Hole(hole)) if guard == *hole => Some(*hole),
            _ => None,
        }
    }

    /// What a record's values give; `None` where the element or attribute is not there.
    #[inline(always)]
    pub(crate) fn find<'p, 'r>(&'p self, values: Values<'r>) -> Option<Found<'p, 'r>> {
        if let Some(guard) = self.guard
            && values.get(guard).is_some_and(Value::is_null)
        {
            return None;
        }
        match &self.content {
            Content::Constant(constant) => Some(Found::Constant(constant)),
            Content::Hole(hole) => {
                let value = values.get(*hole).unwrap_or(Value::null());
                (!self.attribute || !value.is_empty()).then_some(Found::Value(value))
            }
            Content::Pieces(pieces) => {
                let there = !self.attribute
                    || pieces.iter().any(|piece| match piece {
                        Piece::Text(_) => true,
                        Piece::Hole(hole) => values.get(*hole).is_some_and(|value| !value.is_empty()),
                    });
                there.then_some(Found::Pieces(pieces, values))
            }
        }
    }
}

// Inlined, so that what was found stays in registers on its way.
impl Found<'_, '_> {
    /// Appends the text. One that is longer than [`MAX_TEXT`] can end anywhere behind it.
    #[inline]
    pub(crate) fn push_text(&self, out: &mut Vec<u8>) {
        match self {
            Found::Constant(constant) => out.extend_from_slice(constant.text.as_bytes()),
            Found::Value(value) => value.push_text(out, Form::Plain),
            Found::Pieces(pieces, values) => {
                let limit = out.len() + MAX_TEXT;
                for piece in *pieces {
                    if out.len() > limit {
                        break;
                    }
                    match piece {
                        Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                        Piece::Hole(hole) => {
                            if let Some(value) = values.get(*hole) {
                                value.push_text(out, Form::Plain);
                            }
                        }
                    }
                }
            }
        }
    }

    /// Appends the text of an entry of `event_data`: an array that repeats its element is the JSON array of its items.
    #[inline]
    pub(crate) fn push_entry(&self, out: &mut Vec<u8>) {
        match self {
            Found::Value(value) if value.value_type.array && value.repeats() => json::push_array(out, value.items()),
            _ => self.push_text(out),
        }
    }

    /// The text, if it is no longer than a number or a name can be.
    pub(crate) fn text(&self) -> Option<String> {
        let mut text = Vec::new();
        self.push_text(&mut text);
        (text.len() <= MAX_FIELD).then(|| String::from_utf8_lossy(&text).into_owned())
    }

    #[inline(always)]
    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Found::Constant(Constant {
                parsed: Some(parsed), ..
            }) => parsed.number,
            Found::Constant(constant) => convert::number_from_text(&constant.text),
            Found::Value(value) => convert::number(value),
            Found::Pieces(..) => convert::number_from_text(&self.text()?),
        }
    }

    /// A number, negative ones too.
    pub(crate) fn integer(&self) -> Option<i128> {
        match self {
            Found::Value(value) => convert::integer(value),
            found => convert::integer_from_text(&found.text()?),
        }
    }

    pub(crate) fn float(&self) -> Option<f64> {
        match self {
            Found::Value(value) => convert::float(value),
            found => convert::float_from_text(&found.text()?),
        }
    }

    pub(crate) fn bool(&self) -> Option<bool> {
        match self {
            Found::Value(value) => convert::bool(value),
            found => convert::bool_from_text(&found.text()?),
        }
    }

    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Found::Value(value) => convert::bytes(value),
            found => convert::bytes_from_text(&found.text()?),
        }
    }

    #[inline(always)]
    pub(crate) fn nanos(&self) -> Option<i64> {
        match self {
            Found::Constant(Constant {
                parsed: Some(parsed), ..
            }) => parsed.nanos,
            Found::Constant(constant) => convert::nanos_from_text(&constant.text),
            Found::Value(value) => convert::nanos(value),
            Found::Pieces(..) => convert::nanos_from_text(&self.text()?),
        }
    }

    #[inline(always)]
    pub(crate) fn uuid(&self) -> Option<[u8; 16]> {
        match self {
            Found::Constant(Constant {
                parsed: Some(parsed), ..
            }) => parsed.uuid,
            Found::Constant(constant) => convert::uuid_from_text(&constant.text),
            Found::Value(value) => convert::uuid(value),
            Found::Pieces(..) => convert::uuid_from_text(&self.text()?),
        }
    }
}
