//! The insertions of an event: the values that fill its message.

use bumpalo::Bump;
use bumpalo::collections::{String as BumpString, Vec as BumpVec};
use evtx_format::binxml::instance::ValueTable;
use evtx_format::value::{Scalar, Value, ValueType};
use evtx_messages::Insertion;

use super::parts::{PartContent, RecordView};
use super::templates::ChunkTemplates;
use crate::plan::Resolved;

/// The type of the first value of an event without a manifest.
const STRINGS: ValueType = ValueType {
    scalar: Scalar::String,
    array: true,
};

/// The insertions of an event, in order. `%1` in its message stands for the first.
///
/// If the content of `EventData` or `UserData` is a template instance, they are its values, in the order of its
/// substitutions: that is the order of the fields in the provider's manifest, wherever the XML has them. An event
/// without a manifest has an array of strings, each of which is an insertion, and bytes, which are not. In other events,
/// the leaves are the insertions, in the order of the XML and with the texts that they have there.
pub(crate) fn insertions<'a>(
    record: RecordView<'a, 'a>,
    templates: &'a ChunkTemplates,
    arena: &'a Bump,
) -> BumpVec<'a, Insertion<'a>> {
    let mut found = BumpVec::new_in(arena);
    if record.is_unread() {
        return found;
    }
    if let Some(values) = instance_in(record) {
        match values.get(0).filter(|first| first.value_type == STRINGS) {
            Some(strings) => found.extend(strings.items().map(Insertion::Value)),
            None => found.extend(all(values).map(Insertion::Value)),
        }
        return found;
    }
    let entries = record.event_data(templates).or_else(|| record.user_entries(templates));
    if let Some((entries, part)) = entries {
        for entry in &entries.entries {
            let value = entry.source.find(part.values);
            match value.filter(|_| entry.name_len == 0).and_then(Resolved::items) {
                Some(items) => found.extend(items.map(|item| insertion(Some(item), arena))),
                None => found.push(insertion(value, arena)),
            }
        }
    }
    found
}

/// The values of the instance that is the content of `EventData` or `UserData`. An event that is read as one tree has
/// none.
fn instance_in<'a>(record: RecordView<'a, 'a>) -> Option<ValueTable<'a>> {
    record.parts.iter().skip(1).find_map(|part| match part.content {
        PartContent::Instance(instance) | PartContent::Damaged(instance) => Some(instance.values),
        PartContent::Tree(_, values) => values,
        PartContent::Outlined(_) => None,
    })
}

fn all(values: ValueTable<'_>) -> impl Iterator<Item = Value<'_>> {
    (0..=u16::MAX).map_while(move |substitution| values.get(substitution))
}

fn insertion<'a>(found: Option<Resolved<'a, 'a>>, arena: &'a Bump) -> Insertion<'a> {
    match found {
        None => Insertion::Value(Value::null()),
        Some(Resolved::Value(value)) => Insertion::Value(value),
        Some(Resolved::Constant(constant)) => Insertion::Text(&constant.text),
        Some(pieces @ Resolved::Pieces(..)) => {
            let text = pieces.text().unwrap_or_default();
            Insertion::Text(BumpString::from_str_in(&text, arena).into_bump_str())
        }
    }
}
