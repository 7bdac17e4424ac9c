//! Fields of events in plain values, to send them to another process.

use evtx_arrow::{ColumnType, EntryKeys, EventField, FieldType};

/// An [`EventField`] in plain values: its name, the two keys of its entries, the name of the type of its values or items, and
/// whether it is a list.
pub type EventFieldTuple = (String, String, Option<String>, String, bool);

/// The plain values of a field.
pub fn to_tuple(field: &EventField) -> EventFieldTuple {
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

/// The field with these values.
///
/// # Errors
/// If the name of the type is unknown.
pub fn from_tuple((name, key, in_both, item_type, list): EventFieldTuple) -> Result<EventField, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_the_same_after_it_was_sent() {
        for &(name, item) in FieldType::ALL {
            let field = EventField {
                name: "User".into(),
                keys: EntryKeys {
                    key: "user".into(),
                    in_both: (item == FieldType::Text).then(|| "user_1".into()),
                },
                column_type: ColumnType {
                    item,
                    list: item == FieldType::UInt8,
                },
            };
            let mut parts = to_tuple(&field);
            assert_eq!(parts.3, name);
            assert_eq!(from_tuple(parts.clone()), Ok(field));
            parts.3 = "nothing".to_owned();
            assert!(from_tuple(parts).is_err());
        }
    }
}
