//! The columns of a table of events: names, types and sources, in order. They are listed only here.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

use evtx_format::render::program::Language;

use super::options::Options;

/// A column of a table of events.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    /// Its name in the schema.
    pub(crate) name: Cow<'static, str>,
    /// A sentence that describes it, for the documentation. Empty for a field of an event.
    pub(crate) about: &'static str,
    /// Where its values come from, which also determines its type.
    pub(crate) source: ColumnSource,
}

/// Where a column's values come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ColumnSource {
    /// A value that is known before the BinXML of a record is read.
    Header(HeaderValue),
    /// The value at a path in the event's XML, as a type.
    Path(EventPath, FieldType),
    /// The leaves of `EventData`: a map from names to texts.
    EventData,
    /// A leaf of `EventData` or of `UserData`. With `event_id`.
    Entry(EntryKeys, ColumnType),
    /// The `UserData` element, as JSON.
    UserData,
    /// What is damaged, and where.
    Error,
    /// The whole event in a language. With the option of that name. [`Language::Fields`] is a list of structs of a name
    /// and a value.
    Event(Language),
    /// A column that this crate does not know.
    Extra(Extra),
}

/// A column that this crate does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Extra {
    /// Its index among the extra columns of the table.
    pub(crate) id: usize,
    /// Its Arrow field, with any name.
    pub(crate) field: Field,
    pub(crate) comparable: Option<Comparable>,
}

/// How predicates compare the values of an extra column, if the row source can decide them before it reads a record.
#[derive(Debug, Clone, Copy)]
pub enum Comparable {
    /// As texts.
    Text,
    /// As numbers. The function gives the number of a constant that is a name.
    Number(fn(&str) -> Option<u64>),
}

impl PartialEq for Comparable {
    fn eq(&self, other: &Self) -> bool {
        matches!(
            (self, other),
            (Comparable::Text, Comparable::Text) | (Comparable::Number(_), Comparable::Number(_))
        )
    }
}

impl Eq for Comparable {}

/// A value of a row that is known before the BinXML of its record is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderValue {
    /// The record ID in the record's header. UInt64.
    RecordId,
    /// The file's path.
    FileName,
    /// The index of the chunk in the file, from 0. UInt32. With `location`.
    ChunkIndex,
    /// The offset of the record in the file, in bytes. UInt64. With `location`.
    RecordOffset,
    /// Whether the record was recovered. If records are.
    Recovered,
}

impl HeaderValue {
    /// The type of the value.
    pub(crate) fn field_type(self) -> FieldType {
        match self {
            HeaderValue::RecordId | HeaderValue::RecordOffset => UInt64,
            HeaderValue::FileName => Name,
            HeaderValue::ChunkIndex => UInt32,
            HeaderValue::Recovered => Bool,
        }
    }
}

/// A value that a predicate can be about, because a scan reads it before it builds a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operand {
    Header(HeaderValue),
    /// The value at a path.
    Path(EventPath),
    /// A leaf of `EventData` or of `UserData`.
    Entry(EntryKeys),
    /// The value of `event_data` with a key.
    Key(Box<str>),
    /// All values of the event.
    Text,
    /// An extra column, whose value the row source knows before it reads a record.
    Extra(Extra),
}

/// An option that adds a column: its name, and whether it is set.
type ColumnOption = (&'static str, fn(&Options) -> bool);

// A column that is added must be decided here, too.
#[warn(clippy::wildcard_enum_match_arm)]
impl ColumnSource {
    /// The option that adds the column; `None` if the column is always there.
    fn option(&self) -> Option<ColumnOption> {
        let option: ColumnOption = match self {
            ColumnSource::Event(Language::Xml) => ("xml", |options| options.xml),
            ColumnSource::Event(Language::Json) => ("json", |options| options.json),
            ColumnSource::Event(Language::Text) => ("text", |options| options.text),
            ColumnSource::Event(Language::Fields) => ("fields", |options| options.fields),
            ColumnSource::Header(HeaderValue::ChunkIndex | HeaderValue::RecordOffset) => {
                ("location", |options| options.location)
            }
            // `Table::recovering` adds it.
            ColumnSource::Header(HeaderValue::Recovered) => ("recover", |_| false),
            ColumnSource::Header(HeaderValue::RecordId | HeaderValue::FileName)
            | ColumnSource::Path(..)
            | ColumnSource::EventData
            | ColumnSource::Entry(..)
            | ColumnSource::UserData
            | ColumnSource::Error
            | ColumnSource::Extra(_) => return None,
        };
        Some(option)
    }

    /// What a predicate on the column reads, or one on the value of a map with a key. `None` if a scan cannot decide such
    /// predicates, so that the engine does.
    pub(crate) fn operand(&self, key: Option<&str>) -> Option<Operand> {
        if key.is_some() && *self != ColumnSource::EventData {
            return None;
        }
        match self {
            ColumnSource::Header(value) => Some(Operand::Header(*value)),
            ColumnSource::Path(path, _) => Some(Operand::Path(*path)),
            ColumnSource::Entry(keys, ColumnType { list, .. }) => (!list).then(|| Operand::Entry(keys.clone())),
            ColumnSource::EventData => key.map(|key| Operand::Key(key.into())),
            ColumnSource::Event(Language::Text) => Some(Operand::Text),
            ColumnSource::Extra(extra) => extra.comparable.map(|_| Operand::Extra(extra.clone())),
            ColumnSource::Event(Language::Xml | Language::Json | Language::Fields)
            | ColumnSource::UserData
            | ColumnSource::Error => None,
        }
    }

    /// The type of its values; `None` if they are maps or lists.
    pub(crate) fn field_type(&self) -> Option<FieldType> {
        Some(match self {
            ColumnSource::Header(value) => value.field_type(),
            ColumnSource::Path(_, field_type) => *field_type,
            ColumnSource::Entry(_, ColumnType { item, list: false }) => *item,
            ColumnSource::Extra(extra) => match extra.comparable? {
                Comparable::Text => Name,
                Comparable::Number(_) => UInt64,
            },
            ColumnSource::EventData | ColumnSource::Entry(..) | ColumnSource::Event(Language::Fields) => return None,
            ColumnSource::Error | ColumnSource::UserData | ColumnSource::Event(_) => Text,
        })
    }
}

/// A path in the event's XML, not of a file: the text of a grandchild of `Event`, or an attribute of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventPath {
    /// The names of the child of `Event` and of the grandchild.
    pub(crate) elements: [&'static str; 2],
    /// The attribute of the grandchild; `None` for its text.
    pub(crate) attribute: Option<&'static str>,
    /// Whether the child is `System`.
    pub(crate) in_system: bool,
}

/// A path in `System`.
const fn system(element: &'static str, attribute: Option<&'static str>) -> EventPath {
    EventPath {
        elements: ["System", element],
        attribute,
        in_system: true,
    }
}

const EXECUTION: EventPath = system("Execution", None);
const CORRELATION: EventPath = system("Correlation", None);

impl EventPath {
    /// When the event happened.
    pub const TIME_CREATED: EventPath = TIME_CREATED;
    /// The message that a forwarded event carries.
    pub const MESSAGE: EventPath = MESSAGE;
    /// The name of the event's provider.
    pub const PROVIDER: EventPath = PROVIDER;
    /// The provider's GUID.
    pub const PROVIDER_GUID: EventPath = system("Provider", Some("Guid"));
    /// The event's ID.
    pub const EVENT_ID: EventPath = EVENT_ID;
    /// The upper half of a classic event's ID.
    pub const QUALIFIERS: EventPath = system("EventID", Some("Qualifiers"));
    /// The log that it was written to.
    pub const CHANNEL: EventPath = system("Channel", None);
    /// The machine that it happened on.
    pub const COMPUTER: EventPath = system("Computer", None);
    /// The version of the event.
    pub const VERSION: EventPath = system("Version", None);
    /// The ID of the event's record in the log in which the event was first written.
    pub const EVENT_RECORD_ID: EventPath = EVENT_RECORD_ID;

    /// An attribute of the element.
    const fn at(self, attribute: &'static str) -> EventPath {
        EventPath {
            attribute: Some(attribute),
            ..self
        }
    }

    /// Whether the path is in `System`, and many records have the same value there.
    pub(crate) fn repeats(&self) -> bool {
        let varies = [TIME_CREATED, EVENT_RECORD_ID, EXECUTION, CORRELATION]
            .iter()
            .any(|path| path.elements == self.elements);
        self.in_system && !varies
    }

    /// Its path below `Event`, such as `System/Provider/@Name`.
    pub(crate) fn path(&self) -> String {
        let attribute = self.attribute.map(|name| format!("/@{name}")).unwrap_or_default();
        format!("{}{attribute}", self.elements.join("/"))
    }
}

/// Defines [`FieldType`]: for each type its name, to send it to another process, and its Arrow type.
macro_rules! field_types {
    ($($(#[doc = $about:literal])* $field_type:ident($name:literal): $data_type:expr;)+) => {
        /// The type that a value is read as. A value that does not fit is NULL.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs)] // the names say it
        pub enum FieldType { $($(#[doc = $about])* $field_type,)+ }

        impl FieldType {
            /// Every type with its name.
            pub const ALL: &[(&str, FieldType)] = &[$(($name, FieldType::$field_type)),+];

            fn data_type(self) -> DataType {
                match self { $(FieldType::$field_type => $data_type,)+ }
            }
        }
    };
}

field_types! {
    /// Nanoseconds since 1970-01-01 UTC, an i64.
    Time("time"): DataType::Timestamp(TimeUnit::Nanosecond, None);
    UInt8("uint8"): DataType::UInt8;
    UInt16("uint16"): DataType::UInt16;
    UInt32("uint32"): DataType::UInt32;
    UInt64("uint64"): DataType::UInt64;
    Int8("int8"): DataType::Int8;
    Int16("int16"): DataType::Int16;
    Int32("int32"): DataType::Int32;
    Int64("int64"): DataType::Int64;
    /// A signed number of 128 bits, for columns with values of `UInt64` and of `Int64`. Little-endian in the array.
    Int128("int128"): DataType::FixedSizeBinary(16);
    Float32("float32"): DataType::Float32;
    Float64("float64"): DataType::Float64;
    Bool("bool"): DataType::Boolean;
    Bytes("bytes"): DataType::Binary;
    /// UTF-8.
    Text("text"): DataType::Utf8View;
    /// UTF-8 with few different values in a log: a dictionary.
    Name("name"): name_type();
    /// The 16 bytes of a GUID, in the order of its text.
    Uuid("uuid"): DataType::FixedSizeBinary(16);
}

/// The keys of a field's column, in lower case, because engines compare the names of columns without regard to case. The keys
/// of an element's second field with such a name, and of one that both elements have, have upper-case letters: see
/// [`ColumnKeys`](super::column_keys::ColumnKeys).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryKeys {
    /// The key in `EventData`, or else in `UserData`.
    pub key: Arc<str>,
    /// The key that both elements have in some event: in records whose `EventData` has it, the column has the value of
    /// `UserData`.
    pub in_both: Option<Arc<str>>,
}

/// The type of a field's column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ColumnType {
    /// The type of the value, or of the items if it is a list.
    pub item: FieldType,
    /// Whether the value is a list of items.
    pub list: bool,
}

/// The message that a forwarded event carries.
const MESSAGE: EventPath = EventPath {
    elements: ["RenderingInfo", "Message"],
    attribute: None,
    in_system: false,
};

/// The name of the event's provider.
pub(crate) const PROVIDER: EventPath = system("Provider", Some("Name"));

/// The ID of the event.
const EVENT_ID: EventPath = system("EventID", None);

/// When the event happened.
pub(crate) const TIME_CREATED: EventPath = system("TimeCreated", Some("SystemTime"));

/// The ID of the event's record in the log in which the event was first written.
pub(crate) const EVENT_RECORD_ID: EventPath = system("EventRecordID", None);

use FieldType::{Bool, Int128, Name, Text, Time, UInt8, UInt16, UInt32, UInt64, Uuid};

/// Columns in order: the description of each, its name, and its source.
macro_rules! columns {
    ($($(#[doc = $about:literal])* $name:ident: $source:ident$(($($of:expr),+))?;)*) => {
        &[$(Column {
            name: Cow::Borrowed(stringify!($name)),
            about: concat!($($about),*).trim_ascii_start(),
            source: ColumnSource::$source$(($($of),+))?,
        }),*]
    };
}

/// Every column, in the order of a table of all events. The first is the cheapest, because engines ask for the first
/// column to count rows.
pub(crate) const COLUMNS: &[Column] = columns! {
    /// The ID of the record in this log. Windows counts them up without gaps.
    record_id: Header(HeaderValue::RecordId);
    /// When the event happened, UTC, to 100 ns. If the event cannot be read: when the record was written.
    time_created: Path(TIME_CREATED, Time);
    /// The kind of event. Each provider numbers its own.
    event_id: Path(EVENT_ID, UInt32);
    /// 1 critical, 2 error, 3 warning, 4 information, 5 verbose, 0 always; `evtx_level_name` names it.
    level: Path(system("Level", None), UInt8);
    /// Who raised the event.
    provider: Path(PROVIDER, Name);
    /// The log that it was written to.
    channel: Path(EventPath::CHANNEL, Name);
    /// The machine that it happened on.
    computer: Path(EventPath::COMPUTER, Name);
    /// The values of `EventData` by name, as text. With `event_id := ...`, each field has its own column here, and
    /// `event_data` follows `filename`.
    event_data: EventData;
    /// The `UserData` of the few events that have it, as JSON. With `event_id := ...`, its leaves have columns too.
    user_data: UserData;
    /// The message of the event, if the event, a file next to the log, or a catalog has it.
    message: Path(MESSAGE, Text);
    /// The task that the event belongs to. Each provider numbers its own.
    task: Path(system("Task", None), UInt16);
    /// The step of the task. Each provider numbers its own.
    opcode: Path(system("Opcode", None), UInt8);
    /// A set of bits; `evtx_keyword_names` names those that Windows defines.
    keywords: Path(system("Keywords", None), UInt64);
    /// The version of the event, on which its fields depend.
    version: Path(EventPath::VERSION, UInt8);
    /// The upper half of a classic event's ID.
    qualifiers: Path(EventPath::QUALIFIERS, UInt16);
    /// The provider's GUID.
    provider_guid: Path(EventPath::PROVIDER_GUID, Uuid);
    /// The name of a classic event's source.
    event_source_name: Path(system("Provider", Some("EventSourceName")), Name);
    /// The process that wrote the event.
    process_id: Path(EXECUTION.at("ProcessID"), UInt32);
    /// The thread that wrote the event.
    thread_id: Path(EXECUTION.at("ThreadID"), UInt32);
    /// The activity that the event is a part of.
    activity_id: Path(CORRELATION.at("ActivityID"), Uuid);
    /// A related activity, often the one that started the event's own.
    related_activity_id: Path(CORRELATION.at("RelatedActivityID"), Uuid);
    /// The SID of the account under which the event was raised.
    user_sid: Path(system("Security", Some("UserID")), Text);
    /// The ID of the record in the log where it was first written. Differs from `record_id` in forwarded events.
    event_record_id: Path(EVENT_RECORD_ID, UInt64);
    /// NULL, or what is damaged: file, chunk and offset.
    error: Error;
    /// The path of the log.
    filename: Header(HeaderValue::FileName);
    // The columns from here on are added by options.
    /// The whole event as XML, as the `evtx` crate renders it, but with all characters that are stored.
    xml: Event(Language::Xml);
    /// The whole event as JSON, as the `evtx` crate renders it.
    json: Event(Language::Json);
    /// All values of the event: a line `name: value` for each, unescaped.
    text: Event(Language::Text);
    /// The same values as a list.
    fields: Event(Language::Fields);
    /// The index of the record's chunk in the file, from 0. NULL in an image.
    chunk_index: Header(HeaderValue::ChunkIndex);
    /// Where the record starts in the file, in bytes.
    record_offset: Header(HeaderValue::RecordOffset);
    /// Whether the record was recovered, because the log no longer lists it.
    recovered: Header(HeaderValue::Recovered);
};

/// The paths in `System` without a column.
const WITHOUT_COLUMN: [EventPath; 4] = [
    system("Execution", Some("ProcessorID")),
    system("Execution", Some("SessionID")),
    system("Execution", Some("KernelTime")),
    system("Execution", Some("UserTime")),
];

/// The paths in `System` with their names, as Sigma rules have them: element and attribute with `_` between them, such
/// as `Provider_Name`.
pub fn system_names() -> impl Iterator<Item = (String, EventPath)> {
    let of_columns = COLUMNS.iter().filter_map(|column| match column.source {
        ColumnSource::Path(path, _) if path.in_system => Some(path),
        _ => None,
    });
    of_columns.chain(WITHOUT_COLUMN).map(|path| (system_name(&path), path))
}

fn system_name(path: &EventPath) -> String {
    let attribute = path.attribute.map(|name| format!("_{name}")).unwrap_or_default();
    format!("{}{attribute}", path.elements[1])
}

/// The columns of a table with these options, in order.
pub(crate) fn columns(options: &Options) -> impl Iterator<Item = Column> {
    let options = *options;
    let is_there = move |column: &&Column| column.source.option().is_none_or(|(_, is_set)| is_set(&options));
    COLUMNS.iter().filter(is_there).cloned()
}

/// A column as the documentation describes it.
#[derive(Debug, Clone)]
pub struct ColumnReference {
    /// Its name and type.
    pub field: Field,
    /// The path of its value in the event's XML, below `Event`, such as `System/Provider/@Name`. Empty if
    /// its value has no single path.
    pub path: String,
    /// A sentence that describes it.
    pub about: &'static str,
    /// The option that adds it; `None` if it is always there.
    pub option: Option<&'static str>,
}

/// Every column of a table of all events, in order.
pub fn reference() -> Vec<ColumnReference> {
    let path = |source: &ColumnSource| match source {
        ColumnSource::Path(path, _) => path.path(),
        ColumnSource::EventData => "EventData".to_owned(),
        ColumnSource::UserData => "UserData".to_owned(),
        _ => String::new(),
    };
    let columns = COLUMNS.iter().map(|column| ColumnReference {
        field: column.field(),
        path: path(&column.source),
        about: column.about,
        option: column.source.option().map(|(name, _)| name),
    });
    columns.collect()
}

/// The Arrow schema of some columns.
pub(crate) fn schema_of<'c>(columns: impl Iterator<Item = &'c Column>) -> SchemaRef {
    Arc::new(Schema::new(columns.map(Column::field).collect::<Fields>()))
}

impl Column {
    /// The column as a field of an Arrow schema. It can be NULL.
    pub(crate) fn field(&self) -> Field {
        let of_type = |data_type| Field::new(&*self.name, data_type, true);
        match &self.source {
            ColumnSource::EventData => of_type(map_type()),
            ColumnSource::Extra(extra) => extra.field.clone().with_name(&*self.name),
            ColumnSource::Event(Language::Fields) => of_type(DataType::List(list_field())),
            ColumnSource::UserData | ColumnSource::Event(Language::Json) => {
                let extension = ("ARROW:extension:name".to_owned(), "arrow.json".to_owned());
                Text.field(&self.name).with_metadata(HashMap::from([extension]))
            }
            ColumnSource::Entry(_, column_type) => column_type.field(&self.name),
            source => source.field_type().unwrap_or(Text).field(&self.name),
        }
    }
}

impl FieldType {
    /// An Arrow field of the type. It can be NULL.
    pub(crate) fn field(self, name: &str) -> Field {
        let metadata: &[(&str, &str)] = match self {
            Uuid => &[("ARROW:extension:name", "arrow.uuid")],
            // Arrow has no integer of 128 bits. This is the extension type of the one engine that reads such columns.
            Int128 => &[
                ("ARROW:extension:name", "arrow.opaque"),
                (
                    "ARROW:extension:metadata",
                    r#"{"type_name":"hugeint","vendor_name":"DuckDB"}"#,
                ),
            ],
            _ => &[],
        };
        let metadata = metadata
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        Field::new(name, self.data_type(), true).with_metadata(metadata.collect::<HashMap<_, _>>())
    }
}

/// An Arrow field of GUIDs: 16 bytes each, in the order of their text. It can be NULL.
pub fn uuid_field(name: &str) -> Field {
    Uuid.field(name)
}

impl ColumnType {
    /// An Arrow field of the type. It can be NULL.
    pub fn field(self, name: &str) -> Field {
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

/// The Arrow type of strings with few different values in a log, such as providers and keys.
pub(crate) fn name_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// The Arrow fields of an entry of `event_data`: its key and its value.
pub(crate) fn entry_fields() -> Fields {
    Fields::from(vec![
        Field::new("key", name_type(), false),
        Field::new("value", DataType::Utf8View, true),
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
