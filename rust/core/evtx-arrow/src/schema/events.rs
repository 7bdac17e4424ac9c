//! The events and fields that a table can be restricted to.

use std::sync::Arc;

use super::columns::{ColumnType, EntryKeys, FieldType};

/// Which events a table has.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Events {
    /// Their IDs; `None` for any. An empty list means no events.
    pub ids: Option<Box<[u32]>>,
    /// The names of their providers, in any case of ASCII letters; `None` for any.
    pub providers: Option<Box<[Box<str>]>>,
}

/// A field of events with its column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventField {
    /// Its name, as the first event that has it spells it.
    pub name: Arc<str>,
    /// The keys of its entries.
    pub keys: EntryKeys,
    /// The type of its column.
    pub column_type: ColumnType,
}

/// An [`EventField`] in plain values, to send it to another process: its name, the two keys of its entries, the name of
/// the type of its values or items, and whether it is a list.
pub type EventFieldTuple = (String, String, Option<String>, String, bool);

impl From<&EventField> for EventFieldTuple {
    fn from(field: &EventField) -> Self {
        let ColumnType { item, list } = field.column_type;
        let item_type = FieldType::ALL.iter().find(|(_, known)| *known == item);
        (
            field.name.to_string(),
            field.keys.key.to_string(),
            field.keys.in_both.as_ref().map(ToString::to_string),
            item_type.map_or("", |(name, _)| name).to_owned(),
            list,
        )
    }
}

impl TryFrom<EventFieldTuple> for EventField {
    type Error = String;

    /// The field with these parts. Fails if there is no type of that name.
    fn try_from((name, key, in_both, item_type, list): EventFieldTuple) -> Result<Self, String> {
        let item = FieldType::ALL.iter().find(|(known, _)| *known == item_type);
        let (_, item) = *item.ok_or_else(|| format!("unknown type of a field: {item_type}"))?;
        Ok(EventField {
            name: name.into(),
            keys: EntryKeys {
                key: key.into(),
                in_both: in_both.map(Into::into),
            },
            column_type: ColumnType { item, list },
        })
    }
}

#[cfg(test)]
impl EventField {
    /// A field of texts.
    pub(crate) fn of_text(name: &str) -> Self {
        EventField {
            name: name.into(),
            keys: EntryKeys {
                key: name.to_lowercase().into(),
                in_both: None,
            },
            column_type: ColumnType {
                item: FieldType::Text,
                list: false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_the_same_after_it_was_sent() {
        for &(name, item) in FieldType::ALL {
            let mut field = EventField::of_text("User");
            field.keys.in_both = (item == FieldType::Text).then(|| "user_1".into());
            let list = item == FieldType::UInt8;
            field.column_type = ColumnType { item, list };
            let parts = EventFieldTuple::from(&field);
            assert_eq!(parts.3, name);
            assert_eq!(EventField::try_from(parts), Ok(field));
        }
        let mut parts = EventFieldTuple::from(&EventField::of_text("User"));
        parts.3 = "nothing".to_owned();
        assert!(EventField::try_from(parts).is_err());
    }
}
