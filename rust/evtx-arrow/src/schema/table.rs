//! The table that a call reads: its columns, and the events that it is restricted to.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use evtx_format::mta::Messages;
use evtx_messages::Catalog;

use super::columns::{
    self, COLUMNS, Column, ColumnSource, ColumnType, EntryKeys, FieldType, HeaderValue, RULE_COLUMNS,
};
use super::numbering::Numbering;
use super::options::Options;
use super::rules::Rules;

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
    pub(crate) name: Arc<str>,
    pub(crate) keys: EntryKeys,
    pub(crate) column_type: ColumnType,
}

/// An [`EventField`] in plain values, to send it to another process: its name, the two keys of its entries, the name of
/// the type of its values or items, and whether it is a list.
pub type EventFieldParts = (String, String, Option<String>, String, bool);

impl From<&EventField> for EventFieldParts {
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

impl TryFrom<EventFieldParts> for EventField {
    type Error = String;

    /// The field with these parts. Fails if there is no type of that name.
    fn try_from((name, key, in_both, item_type, list): EventFieldParts) -> Result<Self, String> {
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

/// The table that a call reads: the columns that its options ask for, and, if it is restricted to certain events, a
/// column for each of their fields.
#[derive(Debug, Clone)]
pub struct Table {
    pub(crate) options: Options,
    /// The columns, in the order of the schema.
    pub(crate) columns: Arc<[Column]>,
    /// The events that the table is restricted to; `None` for all events.
    pub(crate) events: Option<Arc<Events>>,
    pub(crate) rules: Option<Arc<Rules>>,
    pub(crate) catalog: Option<MessageCatalog>,
}

/// A file of messages beside a log, and its path.
#[derive(Debug)]
pub struct MessageFile {
    /// The path, which `message_source` shows.
    pub path: Arc<str>,
    /// What the file has.
    pub messages: Messages,
}

/// A catalog of messages, and the path of its file.
#[derive(Debug, Clone)]
pub struct MessageCatalog {
    /// The path, for errors.
    pub path: Arc<str>,
    /// What the file has.
    pub messages: Arc<Catalog>,
}

impl From<Options> for Table {
    fn from(options: Options) -> Self {
        Table {
            options,
            columns: columns::columns(&options).collect(),
            events: None,
            rules: None,
            catalog: None,
        }
    }
}

impl Table {
    /// The table of certain events, with the columns of the table of all events.
    pub fn of_all_fields(options: Options, events: Events) -> Self {
        Table {
            events: Some(events.into()),
            ..Table::from(options)
        }
    }

    /// The table of certain events, with a column for each of `fields` in place of `event_data`, which follows
    /// `filename`.
    ///
    /// Names are compared without regard to case. A field with the name of a column gets the prefix `data_`, even if only
    /// an option adds that column. Fields keep their own names first. Then those with a prefix, and those that differ from
    /// others in case only, get the next free number: `name_1`.
    pub fn of_events(options: Options, events: Events, fields: &[EventField]) -> Self {
        let mut taken = Numbering::new(str::to_lowercase);
        for column in COLUMNS {
            taken.take((*column.name).to_owned());
        }
        let is_own = |field: &EventField| *field.name.to_lowercase() == *field.keys.key && !is_in(COLUMNS, &field.name);
        let mut names = vec![String::new(); fields.len()];
        for own in [true, false] {
            for (field, name) in fields.iter().zip(&mut names).filter(|(field, _)| is_own(field) == own) {
                let prefix = if is_in(COLUMNS, &field.name) { "data_" } else { "" };
                *name = taken.take(format!("{prefix}{}", field.name)).0;
            }
        }
        let fields = fields.iter().zip(names).map(|(field, name)| Column {
            name: name.into(),
            about: "",
            source: ColumnSource::Entry(field.keys.clone(), field.column_type),
        });
        let (mut columns, mut event_data) = (Vec::new(), None);
        let mut fields = Some(fields);
        for column in columns::columns(&options) {
            match column.source {
                ColumnSource::EventData => {
                    columns.extend(fields.take().into_iter().flatten());
                    event_data = Some(column);
                }
                ColumnSource::Header(HeaderValue::FileName) => {
                    columns.push(column);
                    columns.extend(event_data.take());
                }
                _ => columns.push(column),
            }
        }
        Table {
            options,
            columns: columns.into(),
            events: Some(events.into()),
            rules: None,
            catalog: None,
        }
    }

    /// The table with the messages of a catalog, for events that have no message elsewhere.
    pub fn with_catalog(self, catalog: MessageCatalog) -> Self {
        Table {
            catalog: Some(catalog),
            ..self
        }
    }

    /// The table with a row for each match of an event and one of these rules. Columns about the rule come before the
    /// others. A field of an event with the name of one of them gets the prefix `data_`.
    pub fn of_matches(self, rules: Arc<Rules>) -> Self {
        let mut taken = Numbering::new(str::to_lowercase);
        for column in RULE_COLUMNS.iter().chain(&*self.columns) {
            taken.take((*column.name).to_owned());
        }
        let others = self.columns.iter().cloned().map(|column| {
            if is_in(RULE_COLUMNS, &column.name) {
                let name = taken.take(format!("data_{}", column.name)).0.into();
                Column { name, ..column }
            } else {
                column
            }
        });
        Table {
            columns: RULE_COLUMNS.iter().cloned().chain(others).collect(),
            rules: Some(rules),
            ..self
        }
    }

    /// The indexes of the columns with these names, for a projection.
    pub(crate) fn indices_of(&self, names: &[&str]) -> Vec<usize> {
        let index = |name: &&str| self.columns.iter().position(|column| *column.name == **name);
        names.iter().filter_map(index).collect()
    }

    /// The Arrow schema of the table.
    pub fn schema(&self) -> SchemaRef {
        columns::schema_of(self.columns.iter())
    }
}

/// The Arrow schema of the table of all events with these options.
pub fn schema(options: &Options) -> SchemaRef {
    Table::from(*options).schema()
}

fn is_in(columns: &[Column], name: &str) -> bool {
    columns.iter().any(|column| column.name.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str) -> EventField {
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

    #[test]
    fn a_field_is_the_same_after_it_was_sent() {
        for &(name, item) in FieldType::ALL {
            let mut field = field("User");
            field.keys.in_both = (item == FieldType::Text).then(|| "user_1".into());
            let list = item == FieldType::UInt8;
            field.column_type = ColumnType { item, list };
            let parts = EventFieldParts::from(&field);
            assert_eq!(parts.3, name);
            assert_eq!(EventField::try_from(parts), Ok(field));
        }
        let mut parts = EventFieldParts::from(&field("User"));
        parts.3 = "nothing".to_owned();
        assert!(EventField::try_from(parts).is_err());
    }

    #[test]
    fn fields_replace_event_data() {
        let fields = ["Task", "user", "USER", "xml", "data_task"].map(field);
        let table = Table::of_events(Options::default(), Events::default(), &fields);
        let names: Vec<_> = table.columns.iter().map(|column| &*column.name).collect();
        let expected = "computer data_Task_1 user USER_1 data_xml data_task user_data";
        assert_eq!(names[6..13].join(" "), expected);
        assert_eq!(names[names.len() - 2..], ["filename", "event_data"]);
    }

    #[test]
    fn columns_about_rules_come_first() {
        let fields = ["Tags", "Image", "data_matched", "matched"].map(field);
        let rules = Arc::new(Rules::none());
        let table = Table::of_events(Options::default(), Events::default(), &fields).of_matches(rules);
        let names: Vec<_> = table.columns.iter().map(|column| &*column.name).collect();
        assert_eq!(names[..3], ["rule_id", "rule_title", "rule_level"]);
        let expected = "computer data_Tags Image data_matched data_matched_1 user_data";
        assert_eq!(names[RULE_COLUMNS.len()..][6..12].join(" "), expected);
        assert_eq!(table.schema().fields().len(), names.len());
        let plain = Table::from(Options::default());
        let of_matches = plain.clone().of_matches(Arc::new(Rules::none())).schema();
        assert_eq!(of_matches.fields()[RULE_COLUMNS.len()..], plain.schema().fields()[..]);
    }
}
