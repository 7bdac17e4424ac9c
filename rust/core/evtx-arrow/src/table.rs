//! The table that a call reads: its columns, and the events that it is restricted to.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use evtx_format::Numbering;

use crate::extra::{ExtraColumn, RowSource};
use crate::recovery::Recovery;
use crate::schema::{self, COLUMNS, Column, ColumnSource, EventField, Events, Extra, HeaderValue, Options, schema_of};

/// The table that a call reads: the columns that its options ask for, and, if it is restricted to certain events, a
/// column for each of their fields.
#[derive(Debug, Clone, Default)]
pub struct Table {
    pub(crate) options: Options,
    /// The columns, in the order of the schema.
    pub(crate) columns: Arc<[Column]>,
    /// The events that the table is restricted to; `None` for all events.
    pub(crate) events: Option<Arc<Events>>,
    /// The extra columns, by their IDs.
    pub(crate) extras: Vec<Arc<dyn ExtraColumn>>,
    pub(crate) source: Option<Arc<dyn RowSource>>,
    /// Makes what recovers records, for each scan.
    pub(crate) recovery: Option<fn() -> Arc<dyn Recovery>>,
}

impl From<Options> for Table {
    fn from(options: Options) -> Self {
        Table {
            options,
            columns: schema::columns(&options).collect(),
            ..Table::default()
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
    /// Names are compared without regard to case. A field with the name of a column, or with that of one of the `extra` columns,
    /// gets the prefix `data_`, even if only an option adds that column. Fields keep their own names first. Then those with a
    /// prefix, and those that differ from others in case only, get the next free number: `name_1`.
    pub fn of_events(options: Options, events: Events, fields: &[EventField], extra: &[&str]) -> Self {
        let mut taken = Numbering::new(str::to_lowercase);
        for name in extra {
            taken.take((*name).to_owned());
        }
        for column in COLUMNS {
            taken.take((*column.name).to_owned());
        }
        let is_column = |field: &EventField| {
            is_in(COLUMNS, &field.name) || extra.iter().any(|name| name.eq_ignore_ascii_case(&field.name))
        };
        let is_own = |field: &EventField| *field.name.to_lowercase() == *field.keys.key && !is_column(field);
        let mut names = vec![String::new(); fields.len()];
        for own in [true, false] {
            for (field, name) in fields.iter().zip(&mut names).filter(|(field, _)| is_own(field) == own) {
                let prefix = if is_column(field) { "data_" } else { "" };
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
        for column in schema::columns(&options) {
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
            columns: columns.into(),
            events: Some(events.into()),
            ..Table::from(options)
        }
    }

    /// Adds an extra column, which is not in the schema yet.
    fn extra(&mut self, column: Arc<dyn ExtraColumn>) -> ColumnSource {
        let extra = Extra {
            id: self.extras.len(),
            field: column.field(""),
            comparable: column.comparable(),
        };
        self.extras.push(column);
        ColumnSource::Extra(extra)
    }

    /// The table with an extra column in place of the one with a name, if there is one.
    pub fn replacing(mut self, name: &str, column: Arc<dyn ExtraColumn>) -> Self {
        let source = self.extra(column);
        let replace = |known: &Column| Column {
            source: if is_own(known) && *known.name == *name {
                source.clone()
            } else {
                known.source.clone()
            },
            ..known.clone()
        };
        self.columns = self.columns.iter().map(replace).collect();
        self
    }

    /// The table with an extra column, which follows the column with the name `after`, or where that would be.
    pub fn with_column(mut self, after: &str, name: &'static str, column: Arc<dyn ExtraColumn>) -> Self {
        let source = self.extra(column);
        self.insert(
            after,
            Column {
                name: name.into(),
                about: "",
                source,
            },
        )
    }

    /// The table with records that would be lost otherwise, and with the column `recovered`, which marks them. Each scan makes
    /// a recovery.
    pub fn recovering(self, make: fn() -> Arc<dyn Recovery>) -> Self {
        Table {
            recovery: Some(make),
            ..self.with_recovered()
        }
    }

    /// The table with the column `recovered`.
    pub(crate) fn with_recovered(self) -> Self {
        let is_recovered = |column: &&Column| column.source == ColumnSource::Header(HeaderValue::Recovered);
        match COLUMNS.iter().find(is_recovered) {
            Some(column) => self.insert(&column.name, column.clone()),
            None => self,
        }
    }

    /// Inserts a column after the one with the name `after`, or where that would be.
    fn insert(self, after: &str, column: Column) -> Self {
        let rank = |name: &str| COLUMNS.iter().position(|known| *known.name == *name);
        let after = rank(after);
        let is_later = |known: &Column| is_own(known) && rank(&known.name) > after;
        let at = self.columns.iter().position(is_later).unwrap_or(self.columns.len());
        let mut columns = self.columns.to_vec();
        columns.insert(at, column);
        Table {
            columns: columns.into(),
            ..self
        }
    }

    /// The table with the rows of a source. Its extra columns, each with its name, come before the others. Another column with
    /// the name of one of them gets the prefix `data_`.
    pub fn of_rows(mut self, source: Arc<dyn RowSource>, extra: Vec<(&'static str, Arc<dyn ExtraColumn>)>) -> Self {
        let extra = extra.into_iter().map(|(name, column)| Column {
            name: name.into(),
            about: "",
            source: self.extra(column),
        });
        let extra: Vec<Column> = extra.collect();
        let mut taken = Numbering::new(str::to_lowercase);
        for column in extra.iter().chain(&*self.columns) {
            taken.take((*column.name).to_owned());
        }
        let others = self.columns.iter().cloned().map(|column| {
            if is_in(&extra, &column.name) {
                let name = taken.take(format!("data_{}", column.name)).0.into();
                Column { name, ..column }
            } else {
                column
            }
        });
        let columns = extra.iter().cloned().chain(others).collect();
        Table {
            columns,
            source: Some(source),
            ..self
        }
    }

    /// The Arrow schema of the table.
    pub fn schema(&self) -> SchemaRef {
        schema_of(self.columns.iter())
    }
}

/// The Arrow schema of the table of all events with these options.
pub fn schema(options: &Options) -> SchemaRef {
    Table::from(*options).schema()
}

/// Whether a column is not that of a field of events.
fn is_own(column: &Column) -> bool {
    !matches!(column.source, ColumnSource::Entry(..))
}

fn is_in(columns: &[Column], name: &str) -> bool {
    columns.iter().any(|column| column.name.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::FieldType;

    #[test]
    fn fields_replace_event_data() {
        let fields = ["Task", "user", "USER", "xml", "data_task"].map(|name| EventField::of(name, FieldType::Text));
        let table = Table::of_events(Options::default(), Events::default(), &fields, &[]);
        let names: Vec<_> = table.columns.iter().map(|column| &*column.name).collect();
        let expected = "computer data_Task_1 user USER_1 data_xml data_task user_data";
        assert_eq!(names[6..13].join(" "), expected);
        assert_eq!(names[names.len() - 2..], ["filename", "event_data"]);
    }
}
