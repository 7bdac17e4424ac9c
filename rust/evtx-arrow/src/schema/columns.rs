//! The columns of a table of events: their names, types and sources, in order. This is the one list of them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

use evtx_format::render::program::Language;
use evtx_sigma::Level;

use super::options::Options;

/// A column of a table of events.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// Its name in the schema.
    pub(crate) name: Cow<'static, str>,
    /// What it holds, in a sentence. Empty for a field of an event, which is documented nowhere.
    pub(crate) about: &'static str,
    /// Where its values come from, which also determines its type.
    pub(crate) source: ColumnSource,
}

/// Where a column's values come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ColumnSource {
    /// The record ID in the record's header. UInt64.
    RecordId,
    /// The value at a place in the event's XML, as a type.
    Field(Place, FieldType),
    /// The leaves of `EventData`: a map from their names to their texts.
    EventData,
    /// A leaf of `EventData` or of `UserData`. With `event_id`.
    Entry(EntryKeys, EntryType),
    /// The `UserData` element, as JSON.
    UserData,
    /// What is damaged, and where, as text.
    Error,
    /// The file's path.
    FileName,
    /// The whole event in a language. With the option of that name. [`Language::Fields`] is a list of structs of a name
    /// and a value.
    Event(Language),
    /// The index of the chunk in the file, from 0. UInt32. With `location`.
    ChunkIndex,
    /// The offset of the record in the file, in bytes. UInt64. With `location`.
    RecordOffset,
    /// Whether the record was recovered: the bookkeeping of its log no longer reaches it. With `recover`.
    Recovered,
    /// Something about the rule that the event matches. In a table of rules.
    Rule(RuleColumn),
    /// The fields that made the rule true: a map from their names to their texts. In a table of rules.
    Matched,
}

/// What a column tells of the rule that an event matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleColumn {
    /// Its ID, text.
    Id,
    /// Its title, text.
    Title,
    /// Its level, as an index in [`Level::ALL`](evtx_sigma::Level::ALL). UInt8.
    Level,
    /// Its status, text.
    Status,
    /// Its tags, a list of texts.
    Tags,
    /// The path of the file that it was read from.
    File,
}

/// An option that adds a column.
struct ColumnOption {
    /// The name of the option, as an argument of `read_evtx`.
    name: &'static str,
    is_set: fn(&Options) -> bool,
}

impl ColumnSource {
    /// The option that adds the column; `None` if it is always there.
    fn option(&self) -> Option<ColumnOption> {
        let option = |name, is_set| Some(ColumnOption { name, is_set });
        match self {
            ColumnSource::Event(Language::Xml) => option("xml", |options| options.xml),
            ColumnSource::Event(Language::Json) => option("json", |options| options.json),
            ColumnSource::Event(Language::Text) => option("text", |options| options.text),
            ColumnSource::Event(Language::Fields) => option("fields", |options| options.fields),
            ColumnSource::ChunkIndex | ColumnSource::RecordOffset => option("location", |options| options.location),
            ColumnSource::Recovered => option("recover", |options| options.recover),
            _ => None,
        }
    }
}

/// A place in the event's XML: the text of an element, or an attribute of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The names of the elements on the path to it, from the child of `Event` on.
    pub(crate) elements: &'static [&'static str],
    /// The attribute of the last element; `None` for the text of this element.
    pub(crate) attribute: Option<&'static str>,
    /// Whether the first of the elements is `System`.
    pub(crate) in_system: bool,
}

impl Place {
    const fn new(elements: &'static [&'static str], attribute: Option<&'static str>) -> Self {
        // A constant function cannot compare strings, but it can match bytes.
        let in_system = matches!(elements[0].as_bytes(), b"System");
        Place {
            elements,
            attribute,
            in_system,
        }
    }

    /// Whether the place is in `System` and many records have the same value there.
    pub(crate) fn repeats(&self) -> bool {
        let varies = matches!(
            self.elements.last(),
            Some(&("TimeCreated" | "EventRecordID" | "Execution" | "Correlation"))
        );
        self.in_system && !varies
    }
}

/// The type as which a value is read. A value that does not fit the type is NULL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum FieldType {
    /// Nanoseconds since 1970-01-01 UTC, an i64.
    Time,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Int8,
    Int16,
    Int32,
    Int64,
    /// A signed number of 128 bits, which holds those of `UInt64` and of `Int64`. Little-endian in the array.
    Int128,
    Float32,
    Float64,
    Bool,
    Bytes,
    /// UTF-8.
    Text,
    /// UTF-8, of which a log has few different values: a dictionary.
    Name,
    /// The 16 bytes of a GUID, in the order of its text.
    Uuid,
}

/// The keys of a field's column, in small letters: SQL does not tell names apart that differ only by case. Where an
/// element has two such names, the second counts as `name_1`, and so on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EntryKeys {
    /// The key in `EventData`, or, where that has no such key, in `UserData`.
    pub(crate) key: Arc<str>,
    /// A key that is in both in some event: where `EventData` has it, the column is that of `UserData`.
    pub(crate) in_both: Option<Arc<str>>,
}

/// What an entry of `event_data` is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct EntryType {
    /// The type of the value, or of the items if it is a list.
    pub(crate) item: FieldType,
    /// Whether the value is a list of items.
    pub(crate) list: bool,
}

/// The message that a forwarded event carries.
pub(crate) const MESSAGE: Place = Place::new(&["RenderingInfo", "Message"], None);

/// The name of the event's provider.
pub(crate) const PROVIDER: Place = Place::new(&["System", "Provider"], Some("Name"));

/// The ID of the event.
pub(crate) const EVENT_ID: Place = Place::new(&["System", "EventID"], None);

/// The ID of the event's record in the log in which it was first written.
pub(crate) const EVENT_RECORD_ID: Place = Place::new(&["System", "EventRecordID"], None);

const fn text(elements: &'static [&'static str], field_type: FieldType) -> ColumnSource {
    ColumnSource::Field(Place::new(elements, None), field_type)
}

const fn attribute(elements: &'static [&'static str], name: &'static str, field_type: FieldType) -> ColumnSource {
    ColumnSource::Field(Place::new(elements, Some(name)), field_type)
}

const fn column(name: &'static str, about: &'static str, source: ColumnSource) -> Column {
    Column {
        name: Cow::Borrowed(name),
        about,
        source,
    }
}

use FieldType::{
    Bool, Bytes, Float32, Float64, Int8, Int16, Int32, Int64, Int128, Name, Text, Time, UInt8, UInt16, UInt32, UInt64,
    Uuid,
};

/// Every column, in the order in which a table of all events has them. To count rows, DuckDB asks for the first column,
/// so the first has to be the cheapest.
pub(crate) const COLUMNS: &[Column] = &[
    column(
        "record_id",
        "The ID of the record in this log. Windows counts them up without gaps.",
        ColumnSource::RecordId,
    ),
    column(
        "time_created",
        "When the event happened, UTC, to 100 ns. For a record whose event cannot be read: when the record was written.",
        attribute(&["System", "TimeCreated"], "SystemTime", Time),
    ),
    column(
        "event_id",
        "What kind of event it is, for its provider.",
        ColumnSource::Field(EVENT_ID, UInt32),
    ),
    column(
        "level",
        "1 critical, 2 error, 3 warning, 4 information, 5 verbose, 0 always; `evtx_level_name` names it.",
        text(&["System", "Level"], UInt8),
    ),
    column("provider", "Who raised the event.", ColumnSource::Field(PROVIDER, Name)),
    column(
        "channel",
        "The log that it was written to.",
        text(&["System", "Channel"], Name),
    ),
    column(
        "computer",
        "The machine that it happened on.",
        text(&["System", "Computer"], Name),
    ),
    column(
        "event_data",
        "The values of `EventData` by name, as text. With `event_id := ...`, each field has a column of its own here, and `event_data` stands behind `filename`.",
        ColumnSource::EventData,
    ),
    column(
        "user_data",
        "The `UserData` of the few events that have it, as JSON. In a table of certain events its leaves have columns too.",
        ColumnSource::UserData,
    ),
    column(
        "message",
        "The rendered message, if the event carries it or it is found beside the log.",
        ColumnSource::Field(MESSAGE, Text),
    ),
    column(
        "task",
        "The task that the event belongs to, a number of the provider's.",
        text(&["System", "Task"], UInt16),
    ),
    column(
        "opcode",
        "The step of the task, a number of the provider's.",
        text(&["System", "Opcode"], UInt8),
    ),
    column(
        "keywords",
        "A set of bits; `evtx_keyword_names` names those that are Windows' own.",
        text(&["System", "Keywords"], UInt64),
    ),
    column(
        "version",
        "The version of the event, on which its fields depend.",
        text(&["System", "Version"], UInt8),
    ),
    column(
        "qualifiers",
        "The upper half of a classic event's ID.",
        attribute(&["System", "EventID"], "Qualifiers", UInt16),
    ),
    column(
        "provider_guid",
        "The provider's GUID.",
        attribute(&["System", "Provider"], "Guid", Uuid),
    ),
    column(
        "event_source_name",
        "The name of a classic event's source.",
        attribute(&["System", "Provider"], "EventSourceName", Name),
    ),
    column(
        "process_id",
        "The process that wrote the event.",
        attribute(&["System", "Execution"], "ProcessID", UInt32),
    ),
    column(
        "thread_id",
        "The thread that wrote the event.",
        attribute(&["System", "Execution"], "ThreadID", UInt32),
    ),
    column(
        "activity_id",
        "The activity that the event is a part of.",
        attribute(&["System", "Correlation"], "ActivityID", Uuid),
    ),
    column(
        "related_activity_id",
        "A related activity, often the one that started the event's own.",
        attribute(&["System", "Correlation"], "RelatedActivityID", Uuid),
    ),
    column(
        "user_sid",
        "The SID of the account under which the event was raised.",
        attribute(&["System", "Security"], "UserID", Text),
    ),
    column(
        "event_record_id",
        "The ID of the record in the log in which the event was first written. Differs from `record_id` in forwarded events.",
        ColumnSource::Field(EVENT_RECORD_ID, UInt64),
    ),
    column(
        "error",
        "NULL, or what is damaged: file, chunk and offset.",
        ColumnSource::Error,
    ),
    column("filename", "The path of the log.", ColumnSource::FileName),
    // The columns from here on are added by options.
    column(
        "xml",
        "The whole event as XML, byte for byte what the `evtx` crate renders.",
        ColumnSource::Event(Language::Xml),
    ),
    column(
        "json",
        "The whole event as JSON, byte for byte what the `evtx` crate renders.",
        ColumnSource::Event(Language::Json),
    ),
    column(
        "text",
        "All values of the event, of `System` and `UserData` too: a line `name: value` for each, unescaped.",
        ColumnSource::Event(Language::Text),
    ),
    column(
        "fields",
        "The same values as a list: the name and the value of each.",
        ColumnSource::Event(Language::Fields),
    ),
    column(
        "chunk_index",
        "The index of the record's chunk in the file, from 0. NULL in an image.",
        ColumnSource::ChunkIndex,
    ),
    column(
        "record_offset",
        "Where the record starts in the file, in bytes.",
        ColumnSource::RecordOffset,
    ),
    column(
        "recovered",
        "Whether the record was recovered: the bookkeeping of its log no longer reaches it.",
        ColumnSource::Recovered,
    ),
];

/// The columns about rules, which stand before the others in a table of rules.
pub(crate) const RULE_COLUMNS: &[Column] = &[
    column("rule_id", "The ID of the rule.", ColumnSource::Rule(RuleColumn::Id)),
    column("rule_title", "Its title.", ColumnSource::Rule(RuleColumn::Title)),
    column(
        "rule_level",
        "How much it matters: `informational`, `low`, `medium`, `high`, `critical`, which compare in this order.",
        ColumnSource::Rule(RuleColumn::Level),
    ),
    column(
        "rule_status",
        "How mature the rule is: `stable`, `test`, `experimental`, `deprecated`, `unsupported`.",
        ColumnSource::Rule(RuleColumn::Status),
    ),
    column(
        "tags",
        "Its tags, such as `attack.t1059.001`.",
        ColumnSource::Rule(RuleColumn::Tags),
    ),
    column(
        "rule_file",
        "The path of its file.",
        ColumnSource::Rule(RuleColumn::File),
    ),
    column(
        "matched",
        "The fields that made the rule true, with their values.",
        ColumnSource::Matched,
    ),
];

/// The places in `System` that have no column.
const WITHOUT_COLUMN: [Place; 4] = [
    Place::new(&["System", "Execution"], Some("ProcessorID")),
    Place::new(&["System", "Execution"], Some("SessionID")),
    Place::new(&["System", "Execution"], Some("KernelTime")),
    Place::new(&["System", "Execution"], Some("UserTime")),
];

/// The places in `System` with the names that they have in Sigma rules: those of the element and of the attribute, with
/// `_` between them, such as `Provider_Name`.
pub(crate) fn sigma_names() -> impl Iterator<Item = (String, Place)> {
    let of_columns = COLUMNS.iter().filter_map(|column| match column.source {
        ColumnSource::Field(place, _) if place.in_system => Some(place),
        _ => None,
    });
    of_columns.chain(WITHOUT_COLUMN).map(|place| {
        let names = place.elements.iter().skip(1).copied().chain(place.attribute);
        (names.collect::<Vec<_>>().join("_"), place)
    })
}

/// The columns that a table with these options has, in order.
pub(crate) fn columns(options: &Options) -> impl Iterator<Item = Column> {
    let options = *options;
    let is_there = move |column: &&Column| column.source.option().is_none_or(|option| (option.is_set)(&options));
    COLUMNS.iter().filter(is_there).cloned()
}

/// A column, as the documentation describes it.
#[derive(Debug, Clone)]
pub struct ColumnReference {
    /// Its name and type.
    pub field: Field,
    /// Where in the event's XML its value is, as a path below `Event` such as `System/Provider/@Name`. Empty if the
    /// value is at no single place.
    pub place: String,
    /// What it holds, in a sentence.
    pub about: &'static str,
    /// The option that adds it; `None` if it is always there.
    pub option: Option<&'static str>,
}

/// Every column that a table of all events can have, in order.
pub fn reference() -> Vec<ColumnReference> {
    reference_of(COLUMNS)
}

/// The columns about rules, which a table of matches has before those of all events.
pub fn rule_reference() -> Vec<ColumnReference> {
    reference_of(RULE_COLUMNS)
}

fn reference_of(columns: &[Column]) -> Vec<ColumnReference> {
    let place = |source: &ColumnSource| match source {
        ColumnSource::Field(place, _) => {
            let attribute = place.attribute.map(|name| format!("/@{name}")).unwrap_or_default();
            format!("{}{attribute}", place.elements.join("/"))
        }
        ColumnSource::EventData => "EventData".to_owned(),
        ColumnSource::UserData => "UserData".to_owned(),
        _ => String::new(),
    };
    let columns = columns.iter().map(|column| ColumnReference {
        field: column.field(),
        place: place(&column.source),
        about: column.about,
        option: column.source.option().map(|option| option.name),
    });
    columns.collect()
}

/// The Arrow schema of some columns.
pub(crate) fn schema_of<'c>(columns: impl Iterator<Item = &'c Column>) -> SchemaRef {
    Arc::new(Schema::new(columns.map(Column::field).collect::<Fields>()))
}

impl Column {
    /// The column as a field of an Arrow schema. It can be NULL.
    fn field(&self) -> Field {
        let (data_type, extension) = match &self.source {
            ColumnSource::RecordId | ColumnSource::RecordOffset => (DataType::UInt64, None),
            ColumnSource::ChunkIndex => (DataType::UInt32, None),
            ColumnSource::Recovered => (DataType::Boolean, None),
            ColumnSource::EventData => (map_type(), None),
            ColumnSource::UserData | ColumnSource::Event(Language::Json) => (DataType::Utf8View, Some("arrow.json")),
            ColumnSource::Event(Language::Fields) => (DataType::List(list_field()), None),
            ColumnSource::Error | ColumnSource::Event(_) => (DataType::Utf8View, None),
            ColumnSource::FileName => (name_type(), None),
            ColumnSource::Rule(RuleColumn::Level) => return level_field(&self.name),
            ColumnSource::Rule(RuleColumn::Tags) => {
                (DataType::List(Arc::new(Field::new("item", DataType::Utf8, true))), None)
            }
            ColumnSource::Rule(_) => (name_type(), None),
            ColumnSource::Matched => (matched_type(), None),
            ColumnSource::Entry(_, entry_type) => return entry_type.field(&self.name),
            ColumnSource::Field(_, field_type) => return field_type.field(&self.name),
        };
        let metadata = extension.map(|name| ("ARROW:extension:name".to_owned(), name.to_owned()));
        Field::new(&*self.name, data_type, true).with_metadata(HashMap::from_iter(metadata))
    }
}

impl FieldType {
    /// All types.
    pub(crate) const ALL: [FieldType; 17] = [
        Time, UInt8, UInt16, UInt32, UInt64, Int8, Int16, Int32, Int64, Int128, Float32, Float64, Bool, Bytes, Text,
        Name, Uuid,
    ];

    /// An Arrow field of the type. It can be NULL.
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
            // Arrow has no integer of 128 bits. DuckDB exports and imports its HUGEINT under this extension type.
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

/// An Arrow field of GUIDs: 16 bytes each, in the order of their text. It can be NULL.
pub fn uuid_field(name: &str) -> Field {
    Uuid.field(name)
}

impl EntryType {
    /// An Arrow field of the type. It can be NULL.
    pub(crate) fn field(self, name: &str) -> Field {
        if self.list {
            Field::new(name, DataType::List(self.item_field()), true)
        } else {
            self.item.field(name)
        }
    }

    /// The Arrow field of the items, if the type is a list.
    pub(crate) fn item_field(self) -> Arc<Field> {
        Arc::new(self.item.field("item"))
    }
}

/// The Arrow type of strings of which a log has few different ones, such as providers and keys.
pub(crate) fn name_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// The Arrow type of the values of `event_data`. Many of them are equal. A value that is not known to be equal to an
/// earlier one is stored again.
fn text_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8View))
}

/// The Arrow fields of an entry of `event_data`: its key and its value.
pub(crate) fn entry_fields() -> Fields {
    Fields::from(vec![
        Field::new("key", name_type(), false),
        Field::new("value", text_type(), true),
    ])
}

/// The Arrow field of the entries of `event_data`: a struct of [`entry_fields`].
pub(crate) fn entries_field() -> Arc<Field> {
    Arc::new(Field::new("entries", DataType::Struct(entry_fields()), false))
}

/// The Arrow field of an item of the column `fields`: a struct of [`list_fields`].
pub(crate) fn list_field() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Struct(list_fields()), false))
}

/// The Arrow fields of an item of the column `fields`: its name and its value.
pub(crate) fn list_fields() -> Fields {
    let text = |name| Field::new(name, DataType::Utf8View, true);
    Fields::from(vec![text("name"), text("value")])
}

/// The Arrow type of `event_data`.
fn map_type() -> DataType {
    DataType::Map(entries_field(), false)
}

/// The key of the metadata of a field that is an enum: the name of its type.
const ENUM: &str = "evtx:enum";

/// The types that are enums: their names, and their values in order, from number 0 on.
pub const ENUMS: [(&str, [&str; 5]); 1] = [(
    "evtx_level",
    [
        Level::ALL[0].1,
        Level::ALL[1].1,
        Level::ALL[2].1,
        Level::ALL[3].1,
        Level::ALL[4].1,
    ],
)];

/// The Arrow field of levels of rules: their indices in [`Level::ALL`]. It can be NULL.
pub fn level_field(name: &str) -> Field {
    let metadata = HashMap::from([(ENUM.to_owned(), ENUMS[0].0.to_owned())]);
    Field::new(name, DataType::UInt8, true).with_metadata(metadata)
}

/// The name of the type of a field that is an enum: one of [`ENUMS`]. The field has the numbers of the values.
pub fn enum_of(field: &Field) -> Option<&str> {
    field.metadata().get(ENUM).map(String::as_str)
}

/// The Arrow type of `matched`: a map from names to values, of which each can be NULL.
fn matched_type() -> DataType {
    let entries = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Utf8, true),
    ]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
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
            text: true,
            fields: true,
            location: true,
            recover: true,
            ..Options::default()
        });
        assert_eq!(
            all[25..],
            [
                "xml",
                "json",
                "text",
                "fields",
                "chunk_index",
                "record_offset",
                "recovered"
            ]
        );
    }
}
