//! The columns: their names, types and sources, in order. Nothing else in the project knows them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

use crate::options::Options;

/// A column of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) source: ColumnSource,
}

/// Where a column's values come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnSource {
    /// The record's header.
    RecordId,
    /// A place in the event's XML.
    Field(Place, FieldType),
    /// The leaves of `EventData`, by name.
    EventData,
    /// The `UserData` element, as JSON.
    UserData,
    /// What is damaged, and where.
    Error,
    /// The file's path.
    FileName,
    /// The whole event as XML. With `xml`.
    Xml,
    /// The whole event as JSON. With `json`.
    Json,
    /// Number of the chunk in the file. With `location`.
    ChunkIndex,
    /// Offset of the record in the file, in bytes. With `location`.
    RecordOffset,
    /// Whether the chunk's bookkeeping does not reach the record. With `recover`.
    Recovered,
}

/// A place in the event's XML: element names below `Event`, and an attribute of the last or its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) elements: &'static [&'static str],
    pub(crate) attribute: Option<&'static str>,
    /// Whether it is in the `System` element.
    pub(crate) in_system: bool,
}

impl Place {
    const fn new(elements: &'static [&'static str], attribute: Option<&'static str>) -> Self {
        // A constant function cannot compare strings.
        let in_system = matches!(elements[0].as_bytes(), b"System");
        Place {
            elements,
            attribute,
            in_system,
        }
    }
}

/// What a field is read as. A value that does not fit is NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldType {
    /// Nanoseconds since 1970-01-01 UTC.
    Time,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Text,
    /// Text of which logs have few different ones.
    Name,
    Uuid,
}

/// Where a forwarded event has its message.
pub(crate) const MESSAGE: Place = Place::new(&["RenderingInfo", "Message"], None);

/// The name of the event's provider.
pub(crate) const PROVIDER: Place = Place::new(&["System", "Provider"], Some("Name"));

/// The event's ID in the log of origin.
pub(crate) const EVENT_RECORD_ID: Place = Place::new(&["System", "EventRecordID"], None);

const fn text(elements: &'static [&'static str], field_type: FieldType) -> ColumnSource {
    ColumnSource::Field(Place::new(elements, None), field_type)
}

const fn attribute(elements: &'static [&'static str], name: &'static str, field_type: FieldType) -> ColumnSource {
    ColumnSource::Field(Place::new(elements, Some(name)), field_type)
}

const fn column(name: &'static str, source: ColumnSource) -> Column {
    Column { name, source }
}

use FieldType::{Name, Text, Time, UInt8, UInt16, UInt32, UInt64, Uuid};

/// Every column, in the order in which the table has them. DuckDB asks for the first one to count rows, so
/// that has to be the cheapest.
const COLUMNS: [Column; 30] = [
    column("record_id", ColumnSource::RecordId),
    column(
        "time_created",
        attribute(&["System", "TimeCreated"], "SystemTime", Time),
    ),
    column("event_id", text(&["System", "EventID"], UInt32)),
    column("level", text(&["System", "Level"], UInt8)),
    column("provider", ColumnSource::Field(PROVIDER, Name)),
    column("channel", text(&["System", "Channel"], Name)),
    column("computer", text(&["System", "Computer"], Name)),
    column("event_data", ColumnSource::EventData),
    column("user_data", ColumnSource::UserData),
    column("message", ColumnSource::Field(MESSAGE, Text)),
    column("task", text(&["System", "Task"], UInt16)),
    column("opcode", text(&["System", "Opcode"], UInt8)),
    column("keywords", text(&["System", "Keywords"], UInt64)),
    column("version", text(&["System", "Version"], UInt8)),
    column("qualifiers", attribute(&["System", "EventID"], "Qualifiers", UInt16)),
    column("provider_guid", attribute(&["System", "Provider"], "Guid", Uuid)),
    column(
        "event_source_name",
        attribute(&["System", "Provider"], "EventSourceName", Name),
    ),
    column("process_id", attribute(&["System", "Execution"], "ProcessID", UInt32)),
    column("thread_id", attribute(&["System", "Execution"], "ThreadID", UInt32)),
    column("activity_id", attribute(&["System", "Correlation"], "ActivityID", Uuid)),
    column(
        "related_activity_id",
        attribute(&["System", "Correlation"], "RelatedActivityID", Uuid),
    ),
    column("user_sid", attribute(&["System", "Security"], "UserID", Text)),
    column("event_record_id", ColumnSource::Field(EVENT_RECORD_ID, UInt64)),
    column("error", ColumnSource::Error),
    column("filename", ColumnSource::FileName),
    // Then those that an option adds.
    column("xml", ColumnSource::Xml),
    column("json", ColumnSource::Json),
    column("chunk_index", ColumnSource::ChunkIndex),
    column("record_offset", ColumnSource::RecordOffset),
    column("recovered", ColumnSource::Recovered),
];

/// The columns that a table with these options has, in order.
pub(crate) fn columns(options: &Options) -> impl Iterator<Item = Column> {
    let options = *options;
    COLUMNS.into_iter().filter(move |column| match column.source {
        ColumnSource::Xml => options.xml,
        ColumnSource::Json => options.json,
        ColumnSource::ChunkIndex | ColumnSource::RecordOffset => options.location,
        ColumnSource::Recovered => options.recover,
        _ => true,
    })
}

/// The schema of the table with these options.
pub fn schema(options: &Options) -> SchemaRef {
    schema_of(columns(options))
}

pub(crate) fn schema_of(columns: impl Iterator<Item = Column>) -> SchemaRef {
    Arc::new(Schema::new(columns.map(|column| column.field()).collect::<Fields>()))
}

impl Column {
    fn field(&self) -> Field {
        let (data_type, extension) = match self.source {
            ColumnSource::RecordId | ColumnSource::RecordOffset => (DataType::UInt64, None),
            ColumnSource::ChunkIndex => (DataType::UInt32, None),
            ColumnSource::Recovered => (DataType::Boolean, None),
            ColumnSource::EventData => (map_type(), None),
            ColumnSource::UserData | ColumnSource::Json => (DataType::Utf8View, Some("arrow.json")),
            ColumnSource::Error | ColumnSource::Xml => (DataType::Utf8View, None),
            ColumnSource::FileName => (name_type(), None),
            ColumnSource::Field(_, field_type) => match field_type {
                Time => (DataType::Timestamp(TimeUnit::Nanosecond, None), None),
                UInt8 => (DataType::UInt8, None),
                UInt16 => (DataType::UInt16, None),
                UInt32 => (DataType::UInt32, None),
                UInt64 => (DataType::UInt64, None),
                Text => (DataType::Utf8View, None),
                Name => (name_type(), None),
                Uuid => (DataType::FixedSizeBinary(16), Some("arrow.uuid")),
            },
        };
        let metadata = extension.map(|name| ("ARROW:extension:name".to_owned(), name.to_owned()));
        Field::new(self.name, data_type, true).with_metadata(HashMap::from_iter(metadata))
    }
}

/// Strings of which a batch has few different ones.
pub(crate) fn name_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// The entries of `event_data`.
pub(crate) fn entry_fields() -> Fields {
    Fields::from(vec![
        Field::new("key", name_type(), false),
        Field::new("value", DataType::Utf8View, true),
    ])
}

/// The entries of a map, as the field that holds them.
pub(crate) fn entries_field() -> Arc<Field> {
    Arc::new(Field::new("entries", DataType::Struct(entry_fields()), false))
}

fn map_type() -> DataType {
    DataType::Map(entries_field(), false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_add_columns_at_the_end() {
        let names = |options: &Options| -> Vec<_> { columns(options).map(|column| column.name).collect() };
        let default = names(&Options::default());
        assert_eq!(default.len(), 25);
        assert_eq!((default[0], default[24]), ("record_id", "filename"));
        let located = names(&Options {
            location: true,
            ..Options::default()
        });
        assert_eq!(located[..25], default);
        assert_eq!(located[25..], ["chunk_index", "record_offset"]);
        let all = names(&Options {
            xml: true,
            json: true,
            location: true,
            recover: true,
            ..Options::default()
        });
        assert_eq!(all[25..], ["xml", "json", "chunk_index", "record_offset", "recovered"]);
    }
}
