//! The columns: their names, types and sources, in order. Nothing else in the project knows them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

use crate::options::Options;
use crate::table::Table;

/// A column of the table.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    pub(crate) name: Cow<'static, str>,
    pub(crate) source: ColumnSource,
}

/// Where a column's values come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ColumnSource {
    /// The record's header.
    RecordId,
    /// A place in the event's XML.
    Field(Place, FieldType),
    /// The leaves of `EventData`, by name.
    EventData,
    /// The leaf of `EventData` with a name. With `event_id`.
    Entry(Arc<str>, EntryType),
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FieldType {
    /// Nanoseconds since 1970-01-01 UTC.
    Time,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Int8,
    Int16,
    Int32,
    Int64,
    /// What holds the numbers of both 64-bit types.
    Int128,
    Float32,
    Float64,
    Bool,
    Bytes,
    Text,
    /// Text of which logs have few different ones.
    Name,
    Uuid,
}

/// What an entry of `event_data` is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct EntryType {
    /// Its type, or that of its items.
    pub(crate) item: FieldType,
    /// Whether it is a list.
    pub(crate) list: bool,
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
    Column {
        name: Cow::Borrowed(name),
        source,
    }
}

use FieldType::{
    Bool, Bytes, Float32, Float64, Int8, Int16, Int32, Int64, Int128, Name, Text, Time, UInt8, UInt16, UInt32, UInt64,
    Uuid,
};

/// Every column, in the order in which a table of all events has them. DuckDB asks for the first one to count rows, so
/// that has to be the cheapest.
pub(crate) const COLUMNS: [Column; 30] = [
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
    COLUMNS.into_iter().filter(move |column| match &column.source {
        ColumnSource::Xml => options.xml,
        ColumnSource::Json => options.json,
        ColumnSource::ChunkIndex | ColumnSource::RecordOffset => options.location,
        ColumnSource::Recovered => options.recover,
        _ => true,
    })
}

/// The schema of the table of all events with these options.
pub fn schema(options: &Options) -> SchemaRef {
    Table::from(*options).schema()
}

pub(crate) fn schema_of<'c>(columns: impl Iterator<Item = &'c Column>) -> SchemaRef {
    Arc::new(Schema::new(columns.map(Column::field).collect::<Fields>()))
}

impl Column {
    fn field(&self) -> Field {
        let (data_type, extension) = match &self.source {
            ColumnSource::RecordId | ColumnSource::RecordOffset => (DataType::UInt64, None),
            ColumnSource::ChunkIndex => (DataType::UInt32, None),
            ColumnSource::Recovered => (DataType::Boolean, None),
            ColumnSource::EventData => (map_type(), None),
            ColumnSource::UserData | ColumnSource::Json => (DataType::Utf8View, Some("arrow.json")),
            ColumnSource::Error | ColumnSource::Xml => (DataType::Utf8View, None),
            ColumnSource::FileName => (name_type(), None),
            ColumnSource::Entry(_, entry_type) => return entry_type.field(&self.name),
            ColumnSource::Field(_, field_type) => return field_type.field(&self.name),
        };
        let metadata = extension.map(|name| ("ARROW:extension:name".to_owned(), name.to_owned()));
        Field::new(&*self.name, data_type, true).with_metadata(HashMap::from_iter(metadata))
    }
}

impl FieldType {
    /// A field of the type. It can be NULL.
    pub(crate) fn field(self, name: &str) -> Field {
        let mut metadata = HashMap::new();
        let mut extension = |name: &str| {
            metadata.insert("ARROW:extension:name".to_owned(), name.to_owned());
            DataType::FixedSizeBinary(16)
        };
        let data_type = match self {
            Time => DataType::Timestamp(TimeUnit::Nanosecond, None),
            UInt8 => DataType::UInt8,
            UInt16 => DataType::UInt16,
            UInt32 => DataType::UInt32,
            UInt64 => DataType::UInt64,
            Int8 => DataType::Int8,
            Int16 => DataType::Int16,
            Int32 => DataType::Int32,
            Int64 => DataType::Int64,
            Float32 => DataType::Float32,
            Float64 => DataType::Float64,
            Bool => DataType::Boolean,
            Bytes => DataType::Binary,
            Text => DataType::Utf8View,
            Name => name_type(),
            Uuid => extension("arrow.uuid"),
            // Arrow has no such type; this is how the reader of these batches calls its own.
            Int128 => {
                let data_type = extension("arrow.opaque");
                let hugeint = r#"{"type_name":"hugeint","vendor_name":"DuckDB"}"#;
                metadata.insert("ARROW:extension:metadata".to_owned(), hugeint.to_owned());
                data_type
            }
        };
        Field::new(name, data_type, true).with_metadata(metadata)
    }
}

impl EntryType {
    /// A field of the type. It can be NULL.
    pub(crate) fn field(self, name: &str) -> Field {
        if self.list {
            Field::new(name, DataType::List(self.item_field()), true)
        } else {
            self.item.field(name)
        }
    }

    /// The field of a list's items.
    pub(crate) fn item_field(self) -> Arc<Field> {
        Arc::new(self.item.field("item"))
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
        let names = |options: &Options| -> Vec<_> { columns(options).map(|column| column.name.into_owned()).collect() };
        let default = names(&Options::default());
        assert_eq!(default.len(), 25);
        assert_eq!((&*default[0], &*default[24]), ("record_id", "filename"));
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
