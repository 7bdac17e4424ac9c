//! The table that a call reads: its columns, and which events it has.

use std::sync::Arc;

use arrow_schema::SchemaRef;

use super::columns::{self, COLUMNS, Column, ColumnSource, EntryKeys, EntryType, FieldType, RULE_COLUMNS};
use super::numbering::Numbering;
use super::options::Options;
use super::rules::Rules;

/// Which events a table has.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Events {
    /// Their IDs, if that matters. There are no events if there are no IDs.
    pub ids: Option<Box<[u32]>>,
    /// The names of their providers, if that matters. The case of ASCII letters does not matter.
    pub providers: Option<Box<[Box<str>]>>,
}

/// A field of events that becomes a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventField {
    /// Its name, as the first event that has it spells it.
    pub(crate) name: Arc<str>,
    pub(crate) keys: EntryKeys,
    pub(crate) column_type: EntryType,
}

/// An [`EventField`] in plain values, to send it to another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFieldParts {
    /// Its name, as the first event that has it spells it.
    pub name: String,
    /// The key of its entries, in small letters.
    pub key: String,
    /// The key of its entries in `UserData`, in small letters, if some event has it in `EventData` too.
    pub in_both: Option<String>,
    /// The name of the type of its values, or of the items if the type is a list.
    pub item_type: String,
    /// Whether the type is a list.
    pub is_list: bool,
}

impl From<&EventField> for EventFieldParts {
    fn from(field: &EventField) -> Self {
        EventFieldParts {
            name: field.name.to_string(),
            key: field.keys.key.to_string(),
            in_both: field.keys.in_both.as_ref().map(ToString::to_string),
            item_type: format!("{:?}", field.column_type.item),
            is_list: field.column_type.list,
        }
    }
}

impl TryFrom<EventFieldParts> for EventField {
    type Error = String;

    /// The field with these parts.
    ///
    /// # Errors
    /// A text if there is no type of that name.
    fn try_from(parts: EventFieldParts) -> Result<Self, String> {
        let of_name = |known: &FieldType| format!("{known:?}") == parts.item_type;
        let item = FieldType::ALL.into_iter().find(of_name);
        Ok(EventField {
            name: parts.name.into(),
            keys: EntryKeys {
                key: parts.key.into(),
                in_both: parts.in_both.map(Into::into),
            },
            column_type: EntryType {
                item: item.ok_or_else(|| format!("{} is no type of a field", parts.item_type))?,
                list: parts.is_list,
            },
        })
    }
}

/// The table that a call reads: the columns that its options ask for, and, if it is restricted to some events, a column
/// for each of their fields.
#[derive(Debug, Clone)]
pub struct Table {
    /// The options of the call.
    pub(crate) options: Options,
    /// The columns, in the order of the schema.
    pub(crate) columns: Arc<[Column]>,
    /// The events that the table is restricted to; `None` for all events.
    pub(crate) events: Option<Arc<Events>>,
    /// The rules that events of the table match; `None` if it has all events.
    pub(crate) rules: Option<Arc<Rules>>,
}

impl From<Options> for Table {
    /// The table of all events.
    fn from(options: Options) -> Self {
        Table {
            options,
            columns: columns::columns(&options).collect(),
            events: None,
            rules: None,
        }
    }
}

impl Table {
    /// The table of some events, with the columns of the table of all events.
    pub fn of_all_fields(options: Options, events: Events) -> Self {
        Table {
            events: Some(events.into()),
            ..Table::from(options)
        }
    }

    /// The table of some events, with a column for each of `fields` in place of `event_data`, which becomes the last of
    /// those that every table has.
    ///
    /// Names are compared without regard to case, as in SQL. A field with the name of a column gets the prefix `data_`,
    /// even if that column is one that only an option adds. A name that comes again gets a number: `name_1`.
    pub fn of_events(options: Options, events: Events, fields: &[EventField]) -> Self {
        let mut taken = Numbering::new(str::to_lowercase);
        for column in COLUMNS {
            taken.take((*column.name).to_owned());
        }
        let fields = fields.iter().map(|field| Column {
            name: free_name(&field.name, &mut taken).into(),
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
                ColumnSource::FileName => {
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
        }
    }

    /// The table with a row for each event and each of these rules that it matches, in place of a row for each event.
    /// Columns about the rule stand before the others. A field of an event with the name of one of them gets the prefix
    /// `data_`.
    pub fn of_matches(self, rules: Arc<Rules>) -> Self {
        let mut taken = Numbering::new(str::to_lowercase);
        for column in RULE_COLUMNS.iter().chain(&*self.columns) {
            taken.take((*column.name).to_owned());
        }
        let others = self.columns.iter().cloned().map(|column| {
            let is_taken = RULE_COLUMNS
                .iter()
                .any(|rule| rule.name.eq_ignore_ascii_case(&column.name));
            match is_taken {
                true => Column {
                    name: taken.take(format!("data_{}", column.name)).0.into(),
                    ..column
                },
                false => column,
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

/// The name for the column of a field, which no other column has.
fn free_name(name: &str, taken: &mut Numbering<String, impl Fn(&str) -> String>) -> String {
    let is_column = COLUMNS.iter().any(|column| column.name.eq_ignore_ascii_case(name));
    let name = if is_column {
        format!("data_{name}")
    } else {
        name.to_owned()
    };
    taken.take(name).0
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
            column_type: EntryType {
                item: FieldType::Text,
                list: false,
            },
        }
    }

    #[test]
    fn a_field_is_the_same_after_it_was_sent() {
        for item in FieldType::ALL {
            let field = EventField {
                name: "User".into(),
                keys: EntryKeys {
                    key: "user".into(),
                    in_both: (item == FieldType::Text).then(|| "user_1".into()),
                },
                column_type: EntryType {
                    item,
                    list: item == FieldType::UInt8,
                },
            };
            let parts = EventFieldParts::from(&field);
            assert_eq!(EventField::try_from(parts.clone()), Ok(field));
            let item_type = "Nothing".to_owned();
            assert!(EventField::try_from(EventFieldParts { item_type, ..parts }).is_err());
        }
    }

    #[test]
    fn fields_stand_in_place_of_event_data() {
        let fields = ["Task", "user", "USER", "xml", "data_task"].map(field);
        let table = Table::of_events(Options::default(), Events::default(), &fields);
        let names: Vec<_> = table.columns.iter().map(|column| &*column.name).collect();
        assert_eq!(
            names[6..13],
            [
                "computer",
                "data_Task",
                "user",
                "USER_1",
                "data_xml",
                "data_task_1",
                "user_data"
            ]
        );
        assert_eq!(names[names.len() - 2..], ["filename", "event_data"]);
    }

    #[test]
    fn columns_about_rules_stand_first() {
        let fields = ["Tags", "Image", "data_matched", "matched"].map(field);
        let rules = Arc::new(Rules::none());
        let table = Table::of_events(Options::default(), Events::default(), &fields).of_matches(rules);
        let names: Vec<_> = table.columns.iter().map(|column| &*column.name).collect();
        assert_eq!(names[..3], ["rule_id", "rule_title", "rule_level"]);
        assert_eq!(
            names[RULE_COLUMNS.len()..][6..12],
            [
                "computer",
                "data_Tags",
                "Image",
                "data_matched",
                "data_matched_1",
                "user_data"
            ]
        );
        assert_eq!(table.schema().fields().len(), names.len());
        let of_matches = Table::from(Options::default()).of_matches(Arc::new(Rules::none()));
        assert_eq!(of_matches.columns.len(), COLUMNS.len() - 7 + RULE_COLUMNS.len());
    }
}
