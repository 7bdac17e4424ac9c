//! The columns of a table of events: names, types and sources, in order. They are listed only here.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

use evtx_format::render::program::Language;
use evtx_messages::Message;
use evtx_sigma::Level;

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
    /// The value at a place in the event's XML, as a type.
    Place(Place, FieldType),
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
    /// The values that fill the message, as a list of texts. With the option of that name.
    Insertions,
    /// Where the message is from, one of [`MessageSource`]. With the option of that name.
    MessageSource,
    /// The record itself, which stands alone. With the option of that name.
    Record,
    /// A property of the rule that the event matches. In a table of matches.
    Rule(RuleColumn),
    /// The fields that made the rule true: a map from names to texts. In a table of matches.
    Matched,
    /// The burst of a correlation.
    Correlation,
}

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
    /// Whether the record was recovered. With `recover`.
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
    /// The value at a place.
    Place(Place),
    /// A leaf of `EventData` or of `UserData`.
    Entry(EntryKeys),
    /// The value of `event_data` with a key.
    Key(Box<str>),
    /// All values of the event.
    Text,
    /// A property of the rule, which a scan knows before it reads a record.
    Rule(RuleColumn),
}

/// Where the message of an event is from.
#[derive(Debug, Clone)]
pub(crate) enum MessageSource {
    /// The event itself, which was forwarded.
    Event,
    /// A file of messages beside its log, with this path.
    File(Arc<str>),
    /// Files beside its log, with these paths, of which none is used because they disagree.
    Contested(Vec<Arc<str>>),
    /// A catalog of messages, which may say from which file it has the text.
    Catalog(Arc<Message>),
}

impl MessageSource {
    /// Its text in the column `message_source`.
    pub(crate) fn text(&self) -> Cow<'static, str> {
        match self {
            MessageSource::Event => "event".into(),
            MessageSource::File(path) => format!("file: {path}").into(),
            MessageSource::Contested(paths) => format!("contested: {}", paths.join(", ")).into(),
            MessageSource::Catalog(message) if message.file.is_empty() => "catalog".into(),
            MessageSource::Catalog(message) => format!("catalog: {}", message.file).into(),
        }
    }
}

/// A property of the rule that an event matches.
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
            ColumnSource::Insertions => ("insertions", |options| options.insertions),
            ColumnSource::MessageSource => ("message_source", |options| options.message_source),
            ColumnSource::Header(HeaderValue::ChunkIndex | HeaderValue::RecordOffset) => {
                ("location", |options| options.location)
            }
            ColumnSource::Record => ("record", |options| options.record),
            ColumnSource::Header(HeaderValue::Recovered) => ("recover", |options| options.recover),
            ColumnSource::Header(HeaderValue::RecordId | HeaderValue::FileName)
            | ColumnSource::Place(..)
            | ColumnSource::EventData
            | ColumnSource::Entry(..)
            | ColumnSource::UserData
            | ColumnSource::Error
            | ColumnSource::Rule(_)
            | ColumnSource::Matched
            | ColumnSource::Correlation => return None,
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
            // The message can be in a file beside the log or in a catalog, which are read only when the row is built.
            ColumnSource::Place(place, _) => (*place != MESSAGE).then_some(Operand::Place(*place)),
            ColumnSource::Entry(keys, ColumnType { list, .. }) => (!list).then(|| Operand::Entry(keys.clone())),
            ColumnSource::EventData => key.map(|key| Operand::Key(key.into())),
            ColumnSource::Event(Language::Text) => Some(Operand::Text),
            ColumnSource::Rule(RuleColumn::Tags) => None,
            ColumnSource::Rule(column) => Some(Operand::Rule(*column)),
            ColumnSource::Event(Language::Xml | Language::Json | Language::Fields)
            | ColumnSource::UserData
            | ColumnSource::Error
            | ColumnSource::Insertions
            | ColumnSource::MessageSource
            | ColumnSource::Record
            | ColumnSource::Matched
            | ColumnSource::Correlation => None,
        }
    }

    /// The type of its values; `None` if they are maps or lists.
    pub(crate) fn field_type(&self) -> Option<FieldType> {
        Some(match self {
            ColumnSource::Header(value) => value.field_type(),
            ColumnSource::Record => FieldType::Bytes,
            ColumnSource::Place(_, field_type) => *field_type,
            ColumnSource::Entry(_, ColumnType { item, list: false }) => *item,
            ColumnSource::Rule(RuleColumn::Level) => UInt8,
            ColumnSource::Rule(RuleColumn::Tags)
            | ColumnSource::EventData
            | ColumnSource::Entry(..)
            | ColumnSource::Matched
            | ColumnSource::Correlation
            | ColumnSource::Insertions
            | ColumnSource::Event(Language::Fields) => return None,
            ColumnSource::Rule(_) => Name,
            ColumnSource::Error | ColumnSource::UserData | ColumnSource::MessageSource | ColumnSource::Event(_) => Text,
        })
    }
}

/// A place in the event's XML: the text of a grandchild of `Event`, or an attribute of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The names of the child of `Event` and of the grandchild.
    pub(crate) elements: [&'static str; 2],
    /// The attribute of the grandchild; `None` for its text.
    pub(crate) attribute: Option<&'static str>,
    /// Whether the child is `System`.
    pub(crate) in_system: bool,
}

/// A place in `System`.
const fn system(element: &'static str, attribute: Option<&'static str>) -> Place {
    Place {
        elements: ["System", element],
        attribute,
        in_system: true,
    }
}

impl Place {
    /// Whether the place is in `System`, and many records have the same value there.
    pub(crate) fn repeats(&self) -> bool {
        let varies = ["TimeCreated", "EventRecordID", "Execution", "Correlation"].contains(&self.elements[1]);
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
        pub(crate) enum FieldType { $($(#[doc = $about])* $field_type,)+ }

        impl FieldType {
            /// Every type with its name.
            pub(crate) const ALL: &[(&str, FieldType)] = &[$(($name, FieldType::$field_type)),+];

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
/// [`ColumnKeys`](super::numbering::ColumnKeys).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EntryKeys {
    /// The key in `EventData`, or else in `UserData`.
    pub(crate) key: Arc<str>,
    /// The key that both elements have in some event: in records whose `EventData` has it, the column has the value of
    /// `UserData`.
    pub(crate) in_both: Option<Arc<str>>,
}

/// The type of a field's column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ColumnType {
    /// The type of the value, or of the items if it is a list.
    pub(crate) item: FieldType,
    /// Whether the value is a list of items.
    pub(crate) list: bool,
}

impl ColumnType {
    /// A list of texts.
    pub(crate) const TEXTS: ColumnType = ColumnType { item: Text, list: true };
}

/// The message that a forwarded event carries.
pub(crate) const MESSAGE: Place = Place {
    elements: ["RenderingInfo", "Message"],
    attribute: None,
    in_system: false,
};

/// The name of the event's provider.
pub(crate) const PROVIDER: Place = system("Provider", Some("Name"));

/// What finds the message of an event in a catalog, besides its provider.
pub(crate) const EVENT_ID: Place = system("EventID", None);
pub(crate) const QUALIFIERS: Place = system("EventID", Some("Qualifiers"));
pub(crate) const VERSION: Place = system("Version", None);
pub(crate) const PROVIDER_GUID: Place = system("Provider", Some("Guid"));

/// When the event happened.
pub(crate) const TIME_CREATED: Place = system("TimeCreated", Some("SystemTime"));

/// The ID of the event's record in the log in which the event was first written.
pub(crate) const EVENT_RECORD_ID: Place = system("EventRecordID", None);

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
    time_created: Place(TIME_CREATED, Time);
    /// The kind of event. Each provider numbers its own.
    event_id: Place(EVENT_ID, UInt32);
    /// 1 critical, 2 error, 3 warning, 4 information, 5 verbose, 0 always; `evtx_level_name` names it.
    level: Place(system("Level", None), UInt8);
    /// Who raised the event.
    provider: Place(PROVIDER, Name);
    /// The log that it was written to.
    channel: Place(system("Channel", None), Name);
    /// The machine that it happened on.
    computer: Place(system("Computer", None), Name);
    /// The values of `EventData` by name, as text. With `event_id := ...`, each field has its own column here, and
    /// `event_data` follows `filename`.
    event_data: EventData;
    /// The `UserData` of the few events that have it, as JSON. With `event_id := ...`, its leaves have columns too.
    user_data: UserData;
    /// The message of the event, if the event, a file next to the log, or a catalog has it.
    message: Place(MESSAGE, Text);
    /// The task that the event belongs to. Each provider numbers its own.
    task: Place(system("Task", None), UInt16);
    /// The step of the task. Each provider numbers its own.
    opcode: Place(system("Opcode", None), UInt8);
    /// A set of bits; `evtx_keyword_names` names those that Windows defines.
    keywords: Place(system("Keywords", None), UInt64);
    /// The version of the event, on which its fields depend.
    version: Place(VERSION, UInt8);
    /// The upper half of a classic event's ID.
    qualifiers: Place(QUALIFIERS, UInt16);
    /// The provider's GUID.
    provider_guid: Place(PROVIDER_GUID, Uuid);
    /// The name of a classic event's source.
    event_source_name: Place(system("Provider", Some("EventSourceName")), Name);
    /// The process that wrote the event.
    process_id: Place(system("Execution", Some("ProcessID")), UInt32);
    /// The thread that wrote the event.
    thread_id: Place(system("Execution", Some("ThreadID")), UInt32);
    /// The activity that the event is a part of.
    activity_id: Place(system("Correlation", Some("ActivityID")), Uuid);
    /// A related activity, often the one that started the event's own.
    related_activity_id: Place(system("Correlation", Some("RelatedActivityID")), Uuid);
    /// The SID of the account under which the event was raised.
    user_sid: Place(system("Security", Some("UserID")), Text);
    /// The ID of the record in the log where it was first written. Differs from `record_id` in forwarded events.
    event_record_id: Place(EVENT_RECORD_ID, UInt64);
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
    /// The values that fill the message: `%1` in its text stands for the first.
    insertions: Insertions;
    /// Where the message is from: `event`, `catalog: ` and the file that the catalog took it from, if known, or `file: `
    /// and the file that was saved with the log. `contested: ` and such files if they disagree, so that there is none.
    message_source: MessageSource;
    /// The index of the record's chunk in the file, from 0. NULL in an image.
    chunk_index: Header(HeaderValue::ChunkIndex);
    /// Where the record starts in the file, in bytes.
    record_offset: Header(HeaderValue::RecordOffset);
    /// The record as it is stored, with the definitions that it needs. NULL if it is damaged.
    record: Record;
    /// Whether the record was recovered, because the log no longer lists it.
    recovered: Header(HeaderValue::Recovered);
};

/// The columns about rules, which come before the others in a table of matches.
pub(crate) const RULE_COLUMNS: &[Column] = columns! {
    /// The ID of the rule.
    rule_id: Rule(RuleColumn::Id);
    /// Its title.
    rule_title: Rule(RuleColumn::Title);
    /// How much it matters: `informational`, `low`, `medium`, `high` or `critical`, which compare in this order.
    rule_level: Rule(RuleColumn::Level);
    /// How mature the rule is: `stable`, `test`, `experimental`, `deprecated` or `unsupported`.
    rule_status: Rule(RuleColumn::Status);
    /// Its tags, such as `attack.t1059.001`.
    tags: Rule(RuleColumn::Tags);
    /// The path of its file.
    rule_file: Rule(RuleColumn::File);
    /// The fields that made the rule true, with their values, or the part of a long value around what matched; of a
    /// correlation the fields that it groups by.
    matched: Matched;
    /// Of a correlation: the times of its first and last event, their number, the value that met its condition, and the
    /// values and records that it counted. The other columns are those of the last event.
    correlation: Correlation;
};

/// The places in `System` without a column.
const WITHOUT_COLUMN: [Place; 4] = [
    system("Execution", Some("ProcessorID")),
    system("Execution", Some("SessionID")),
    system("Execution", Some("KernelTime")),
    system("Execution", Some("UserTime")),
];

/// The places in `System` with their names in Sigma rules: element and attribute with `_` between them, such as
/// `Provider_Name`.
pub(crate) fn sigma_names() -> impl Iterator<Item = (String, Place)> {
    let of_columns = COLUMNS.iter().filter_map(|column| match column.source {
        ColumnSource::Place(place, _) if place.in_system => Some(place),
        _ => None,
    });
    of_columns
        .chain(WITHOUT_COLUMN)
        .map(|place| (sigma_name(&place), place))
}

pub(crate) fn sigma_name(place: &Place) -> String {
    let attribute = place.attribute.map(|name| format!("_{name}")).unwrap_or_default();
    format!("{}{attribute}", place.elements[1])
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
    /// The place of its value in the event's XML, as a path below `Event` such as `System/Provider/@Name`. Empty if
    /// there is no single place.
    pub place: String,
    /// A sentence that describes it.
    pub about: &'static str,
    /// The option that adds it; `None` if it is always there.
    pub option: Option<&'static str>,
}

/// Every column of a table of all events, in order.
pub fn reference() -> Vec<ColumnReference> {
    reference_of(COLUMNS)
}

/// The columns about rules, which a table of matches has before the others.
pub fn rule_reference() -> Vec<ColumnReference> {
    reference_of(RULE_COLUMNS)
}

fn reference_of(columns: &[Column]) -> Vec<ColumnReference> {
    let place = |source: &ColumnSource| match source {
        ColumnSource::Place(place, _) => place.path(),
        ColumnSource::EventData => "EventData".to_owned(),
        ColumnSource::UserData => "UserData".to_owned(),
        _ => String::new(),
    };
    let columns = columns.iter().map(|column| ColumnReference {
        field: column.field(),
        place: place(&column.source),
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
            ColumnSource::Matched => of_type(matched_type()),
            ColumnSource::Correlation => of_type(DataType::Struct(burst_fields())),
            ColumnSource::Event(Language::Fields) => of_type(DataType::List(list_field())),
            ColumnSource::Rule(RuleColumn::Tags) => {
                of_type(DataType::List(Arc::new(Field::new("item", DataType::Utf8, true))))
            }
            ColumnSource::Rule(RuleColumn::Level) => level_field(&self.name),
            ColumnSource::UserData | ColumnSource::Event(Language::Json) => {
                let extension = ("ARROW:extension:name".to_owned(), "arrow.json".to_owned());
                Text.field(&self.name).with_metadata(HashMap::from([extension]))
            }
            ColumnSource::Entry(_, column_type) => column_type.field(&self.name),
            ColumnSource::Insertions => ColumnType::TEXTS.field(&self.name),
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

/// The key of metadata that names the type of an enum.
const ENUM: &str = "evtx:enum";

/// The enums: the names of their types, and their values in order, from number 0 on.
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

/// An Arrow field of levels of rules: their indices in [`Level::ALL`]. It can be NULL.
pub fn level_field(name: &str) -> Field {
    let metadata = HashMap::from([(ENUM.to_owned(), ENUMS[0].0.to_owned())]);
    Field::new(name, DataType::UInt8, true).with_metadata(metadata)
}

/// The name of a field's type in [`ENUMS`], if it is an enum. The field has the numbers of the values.
pub fn enum_of(field: &Field) -> Option<&str> {
    field.metadata().get(ENUM).map(String::as_str)
}

/// The Arrow fields of `correlation`.
pub(crate) fn burst_fields() -> Fields {
    let texts = Arc::new(Field::new("item", DataType::Utf8, true));
    Fields::from(vec![
        Time.field("first_time"),
        Time.field("last_time"),
        UInt64.field("count"),
        Field::new("value", DataType::Float64, true),
        Field::new("values", DataType::List(texts), true),
        Field::new("records", DataType::List(burst_record_field()), true),
    ])
}

/// The Arrow field of a record of `correlation`: a struct of [`burst_record_fields`].
pub(crate) fn burst_record_field() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Struct(burst_record_fields()), false))
}

/// The Arrow fields of a record of `correlation`.
pub(crate) fn burst_record_fields() -> Fields {
    let text = |name| Field::new(name, DataType::Utf8, true);
    Fields::from(vec![text("rule_title"), text("filename"), UInt64.field("record_id")])
}

/// The Arrow type of `matched`: a map from names to values, which can be NULL.
fn matched_type() -> DataType {
    let entries = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Utf8, true),
    ]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
}
