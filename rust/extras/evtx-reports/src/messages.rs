//! The messages of event providers as a table, and rows of such a table as a catalog file.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, ListArray, PrimitiveArray, RecordBatch, StringArray, StructArray, downcast_integer, new_null_array,
};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use evtx_format::value::ValueType;
use evtx_format::{Interrupt, free, printable};
use evtx_messages::row::guid_of_text;
use evtx_messages::{CatalogWriter, Field, Guid, MessageKind, MessageRow, ValueMap};

use crate::table::{self, MapEntry, Row, columns};

/// A row of the table of messages: a message, or what of a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogRow {
    row: MessageRow,
    is_contested: Option<bool>,
    error: Option<String>,
}

impl CatalogRow {
    /// What of the file with a path cannot be read.
    pub fn unreadable(path: &str, why: String) -> Self {
        let row = MessageRow {
            file: path.into(),
            ..MessageRow::new(MessageKind::Text)
        };
        CatalogRow {
            error: Some(why),
            ..row.into()
        }
    }

    /// A row of a catalog, and whether it is contested there.
    pub fn of_catalog(row: MessageRow, is_contested: bool) -> Self {
        CatalogRow {
            is_contested: Some(is_contested),
            ..row.into()
        }
    }

    /// How many bytes its texts take.
    pub fn bytes(&self) -> usize {
        self.row.bytes() + self.error.as_ref().map_or(0, String::len)
    }
}

impl From<MessageRow> for CatalogRow {
    fn from(row: MessageRow) -> Self {
        CatalogRow {
            row,
            is_contested: None,
            error: None,
        }
    }
}

columns! { CatalogRow:
    /// What the message is for: an event (`event`), `%%nnnn` in messages (`parameter`), or nothing known (`text`).
    kind: Text(|row| row.error.is_none().then(|| row.row.kind.name().into()));
    /// The name of the provider. NULL if no file says which provider uses the message.
    provider: Text(|row| row.row.provider.as_deref().map(Into::into));
    /// The GUID of the provider.
    provider_guid: Uuid(|row| row.row.guid);
    /// The ID of the event. Of a classic event, the lower half of the message ID.
    event_id: UInt32(|row| row.row.event_id.map(Into::into));
    /// The version of the event.
    version: UInt8(|row| row.row.version);
    /// The upper half of the message ID of a classic event.
    qualifiers: UInt16(|row| row.row.qualifiers);
    /// The ID of the message in its table. Of a parameter, the number after `%%`.
    message_id: UInt32(|row| row.row.message_id);
    /// The language of the text, such as `en-US`.
    language: Text(|row| row.row.language.as_deref().map(Into::into));
    /// The text with its insertions, as Windows stores it: `%1` stands for the first.
    text: Text(|row| row.row.text.as_deref().map(Into::into));
    /// The log that the event is written to.
    channel: Text(|row| row.row.channel.as_deref().map(Into::into));
    /// The name of the level.
    level: Text(|row| row.row.level.as_deref().map(Into::into));
    /// The name of the task.
    task: Text(|row| row.row.task.as_deref().map(Into::into));
    /// The name of the opcode.
    opcode: Text(|row| row.row.opcode.as_deref().map(Into::into));
    /// The names of the keywords.
    keywords: Names(|row| &row.row.keywords);
    /// The fields of the event in order, each the value of an insertion: its name, the BinXML type of its value, the number
    /// of the form in which Windows shows it, and the name of its map.
    fields: Fields(|row| &row.row.fields);
    /// The maps that the fields name: texts for the values, or for the bits, of a field.
    maps: Maps(|row| &row.row.maps);
    /// The path of the file that has the text. NULL if a catalog does not say it.
    filename: Text(|row| Some((*row.row.file).into()).filter(|file: &Cow<'_, str>| !file.is_empty()));
    /// Whether the text is not used, because another file of the catalog has another one for the same event or parameter,
    /// or because there are more than 4,096 of them. NULL if the row is not from a catalog.
    contested: Bool(|row| row.is_contested);
    /// NULL, or what of the file cannot be read.
    error: Text(|row| row.error.as_deref().map(printable));
}

columns! { Field:
    name: Text(|field| Some((*field.name).into()));
    binxml_type: Text(|field| Some(ValueType::from_byte(field.in_type)?.to_string().into()));
    out_type: UInt8(|field| Some(field.out_type));
    map: Text(|field| field.map.as_deref().map(Into::into));
}

columns! { Arc<ValueMap>:
    name: Text(|map| Some((*map.name).into()));
    is_bit_map: Bool(|map| Some(map.is_bit_map));
    texts: MapEntries(|map| &map.entries);
}

columns! { MapEntry:
    value: UInt32(|(value, _)| Some(*value));
    text: Text(|(_, text)| Some((**text).into()));
}

/// Makes a catalog file from rows of a table with the columns of the messages, or with some of them.
#[derive(Debug, Default)]
pub struct CatalogRows {
    writer: CatalogWriter,
    rows: u64,
}

impl CatalogRows {
    /// A catalog without rows, which may take so many bytes of memory.
    pub fn new(memory: u64) -> Self {
        CatalogRows {
            writer: CatalogWriter::new(memory),
            rows: 0,
        }
    }

    /// Checks that a table has the columns that a message needs.
    ///
    /// # Errors
    /// A text that names the column that is missing.
    pub fn check(names: &[&str]) -> Result<(), String> {
        let missing = ["provider", "event_id", "text"]
            .into_iter()
            .find(|needed| !names.iter().any(|name| name.eq_ignore_ascii_case(needed)));
        match missing {
            Some(column) => Err(format!(
                "a catalog needs a column \"{column}\", as in FROM evtx_message_catalog(...). PARTITION_BY leaves out \
                 its columns: add WRITE_PARTITION_COLUMNS"
            )),
            None => Ok(()),
        }
    }

    /// Adds the rows of a batch, without those that have an error.
    ///
    /// # Errors
    /// A text that names the row, counted from 1, and what is wrong with it; or that the work is interrupted.
    pub fn push(&mut self, batch: &RecordBatch, interrupt: Interrupt<'_>) -> Result<(), String> {
        let rows = Rows::of(batch).map_err(|error| error.to_string())?;
        for index in 0..batch.num_rows() {
            interrupt.check().map_err(|error| error.to_string())?;
            self.rows += 1;
            let at = self.rows;
            if rows.text("error", index).is_some() {
                continue;
            }
            let row = rows.row(index).map_err(|why| format!("row {at}: {why}"))?;
            self.writer.push(&row).map_err(|why| format!("row {at}: {why}"))?;
        }
        Ok(())
    }

    /// The bytes of the catalog file.
    ///
    /// # Errors
    /// A text that says why the rows cannot be a catalog.
    pub fn finish(mut self, interrupt: Interrupt<'_>) -> Result<Vec<u8>, String> {
        self.writer.finish(interrupt).map_err(|error| error.to_string())
    }
}

impl Drop for CatalogRows {
    /// Frees the rows in another thread: a million of them take longer than an interrupt may wait.
    fn drop(&mut self) {
        free(std::mem::take(&mut self.writer));
    }
}

/// The columns of a batch, each with its type in the table of messages; `None` for those that it lacks.
struct Rows(Vec<Option<ArrayRef>>);

impl Rows {
    fn of(batch: &RecordBatch) -> Result<Self, ArrowError> {
        let known: SchemaRef = table::schema::<CatalogRow>();
        let columns = known.fields().iter().map(|field| {
            let index = batch
                .schema()
                .fields()
                .iter()
                .position(|own| own.name().eq_ignore_ascii_case(field.name()));
            index
                .map(|index| typed(batch.column(index), field.data_type()))
                .transpose()
        });
        Ok(Rows(columns.collect::<Result<_, _>>()?))
    }

    fn column(&self, name: &str, row: usize) -> Option<&ArrayRef> {
        let index = CatalogRow::COLUMNS.iter().position(|column| column.name == name)?;
        self.0[index].as_ref().filter(|array| array.is_valid(row))
    }

    fn text(&self, name: &str, row: usize) -> Option<&str> {
        Some(self.column(name, row)?.as_string::<i32>().value(row))
    }

    fn shared(&self, name: &str, row: usize) -> Option<Arc<str>> {
        self.text(name, row).map(Into::into)
    }

    fn number(&self, name: &str, row: usize) -> Option<u32> {
        let array = self.column(name, row)?;
        Some(match array.data_type() {
            DataType::UInt8 => array.as_primitive::<UInt8Type>().value(row).into(),
            DataType::UInt16 => array.as_primitive::<UInt16Type>().value(row).into(),
            _ => array.as_primitive::<UInt32Type>().value(row),
        })
    }

    /// The GUID of the provider. Engines pass a UUID as bytes or as text.
    fn guid(&self, row: usize) -> Result<Option<Guid>, String> {
        let Some(array) = self.column("provider_guid", row) else {
            return Ok(None);
        };
        if let Some(bytes) = array.as_fixed_size_binary_opt() {
            return Ok(bytes.value(row).try_into().ok());
        }
        let text = array.as_string::<i32>().value(row);
        match guid_of_text(text) {
            Some(guid) => Ok(Some(guid)),
            None => Err(format!("'{text}' is not a GUID")),
        }
    }

    /// The items of a list; none of a list that is NULL.
    fn items(&self, name: &str, row: usize) -> Option<ArrayRef> {
        Some(self.column(name, row)?.as_list::<i32>().value(row))
    }

    fn row(&self, row: usize) -> Result<MessageRow, String> {
        let kind = match self.text("kind", row) {
            None => MessageKind::Event,
            Some(name) => MessageKind::named(name).ok_or_else(|| format!("unknown kind '{name}'"))?,
        };
        let guid = self.guid(row)?;
        let event_id = match self.number("event_id", row) {
            None => None,
            Some(id) => Some(u16::try_from(id).map_err(|_| format!("{id} is not an event ID"))?),
        };
        let names = |items: ArrayRef| items.as_string::<i32>().iter().flatten().map(Into::into).collect();
        let provider = self.shared("provider", row).filter(|name| !name.is_empty());
        let message_id = self.number("message_id", row);
        let missing = match kind {
            MessageKind::Event if event_id.is_none() => Some("event_id"),
            MessageKind::Parameter if message_id.is_none() => Some("message_id"),
            MessageKind::Event | MessageKind::Parameter if provider.is_none() && guid.is_none() => Some("provider"),
            _ => None,
        };
        if let Some(column) = missing {
            return Err(format!("\"{column}\" is NULL or empty"));
        }
        Ok(MessageRow {
            provider,
            guid,
            event_id,
            version: self
                .number("version", row)
                .and_then(|version| u8::try_from(version).ok()),
            qualifiers: self.number("qualifiers", row).and_then(|bits| u16::try_from(bits).ok()),
            message_id,
            language: self.shared("language", row),
            text: self.shared("text", row),
            channel: self.shared("channel", row),
            level: self.shared("level", row),
            task: self.shared("task", row),
            opcode: self.shared("opcode", row),
            keywords: self.items("keywords", row).map(names).unwrap_or_default(),
            fields: self
                .items("fields", row)
                .map(|items| fields(items.as_struct()))
                .unwrap_or_default(),
            maps: self
                .items("maps", row)
                .map(|items| maps(items.as_struct()))
                .unwrap_or_default(),
            file: self.shared("filename", row).unwrap_or_default(),
            ..MessageRow::new(kind)
        })
    }
}

/// An array as the type that the table of messages has. Texts and whole numbers may have any width. GUIDs can also be
/// text. (`arrow-cast` does this too, but takes 7 MB of the extension.)
fn typed(array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, ArrowError> {
    use DataType::{FixedSizeBinary, LargeUtf8, List, Null, Struct, UInt8, UInt16, UInt32, Utf8, Utf8View};
    Ok(match (array.data_type(), wanted) {
        (found, wanted) if found == wanted => Arc::clone(array),
        (Null, _) => new_null_array(wanted, array.len()),
        (Utf8, FixedSizeBinary(_)) => Arc::clone(array),
        (LargeUtf8, Utf8 | FixedSizeBinary(_)) => Arc::new(StringArray::from_iter(array.as_string::<i64>())),
        (Utf8View, Utf8 | FixedSizeBinary(_)) => Arc::new(StringArray::from_iter(array.as_string_view())),
        (List(_), List(item)) => {
            let list = array.as_list::<i32>();
            let items = typed(list.values(), item.data_type())?;
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Arc::new(ListArray::try_new(Arc::clone(item), offsets, items, nulls)?)
        }
        (Struct(found), Struct(fields)) if found.len() == fields.len() => {
            let of = array.as_struct();
            let columns = of.columns().iter().zip(fields);
            let columns = columns.map(|(column, field)| typed(column, field.data_type()));
            let columns = columns.collect::<Result<_, _>>()?;
            Arc::new(StructArray::try_new(fields.clone(), columns, of.nulls().cloned())?)
        }
        (_, UInt8) => Arc::new(numbers::<UInt8Type>(array)?),
        (_, UInt16) => Arc::new(numbers::<UInt16Type>(array)?),
        (_, UInt32) => Arc::new(numbers::<UInt32Type>(array)?),
        (found, wanted) => return Err(ArrowError::CastError(format!("{found} is not {wanted}"))),
    })
}

/// Whole numbers of any width. One that does not fit is an error, not NULL.
fn numbers<T: ArrowPrimitiveType>(array: &ArrayRef) -> Result<PrimitiveArray<T>, ArrowError>
where
    T::Native: TryFrom<i128>,
{
    let fit = |number: i128| {
        let fits = T::Native::try_from(number);
        fits.map_err(|_| ArrowError::CastError(format!("{number} does not fit {}", T::DATA_TYPE)))
    };
    macro_rules! fitting {
        ($of:ty) => {
            array.as_primitive::<$of>().try_unary(|number| fit(number.into()))
        };
    }
    downcast_integer! {
        array.data_type() => (fitting),
        found => Err(ArrowError::CastError(format!("{found} is not a type of whole numbers"))),
    }
}

fn fields(items: &StructArray) -> Arc<[Field]> {
    let [names, types, maps] = [0, 1, 3].map(|column| items.column(column).as_string::<i32>());
    let out_types = items.column(2).as_primitive::<UInt8Type>();
    let field = |row| Field {
        name: names.value(row).into(),
        in_type: type_byte(types.value(row)),
        out_type: out_types.value(row),
        map: maps.is_valid(row).then(|| maps.value(row).into()),
    };
    (0..items.len()).map(field).collect()
}

/// The byte of the type with a name; 0 if there is none.
fn type_byte(name: &str) -> u8 {
    let is_named = |byte: &u8| ValueType::from_byte(*byte).is_some_and(|known| known.to_string() == name);
    (0..=u8::MAX).find(is_named).unwrap_or_default()
}

fn maps(items: &StructArray) -> Arc<[Arc<ValueMap>]> {
    let (names, bits) = (items.column(0).as_string::<i32>(), items.column(1).as_boolean());
    let texts = items.column(2).as_list::<i32>();
    let map = |row| {
        let entries = texts.value(row);
        let entries = entries.as_struct();
        let values = entries.column(0).as_primitive::<UInt32Type>();
        let texts = entries.column(1).as_string::<i32>();
        Arc::new(ValueMap {
            name: names.value(row).into(),
            is_bit_map: bits.value(row),
            entries: (0..entries.len())
                .map(|row| (values.value(row), texts.value(row).into()))
                .collect(),
        })
    };
    (0..items.len()).map(map).collect()
}

/// The schema of the table of messages.
pub fn message_schema() -> SchemaRef {
    table::schema::<CatalogRow>()
}

/// Rows as a batch.
///
/// # Errors
/// The error of Arrow if it refuses an array of the batch.
pub fn message_batch(rows: &[CatalogRow]) -> Result<RecordBatch, ArrowError> {
    table::batch(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch() -> RecordBatch {
        let rows: Vec<CatalogRow> = rows().into_iter().map(Into::into).collect();
        message_batch(&rows).expect("a batch")
    }

    fn rows() -> Vec<MessageRow> {
        let maps: Arc<[Arc<ValueMap>]> = [Arc::new(ValueMap {
            name: "Kinds".into(),
            is_bit_map: true,
            entries: vec![(1, "one".into()), (4, "four".into())],
        })]
        .into();
        let field = Field {
            name: "Kind".into(),
            in_type: 0x08,
            out_type: 18,
            map: Some("Kinds".into()),
        };
        let event = MessageRow {
            provider: Some("A-Provider".into()),
            guid: guid_of_text("{54849625-5478-4994-a5ba-3e3b0328c30d}"),
            event_id: Some(7),
            version: Some(1),
            message_id: Some(0xB000_0007),
            language: Some("en-US".into()),
            text: Some("%1 happened".into()),
            keywords: ["Audit".into(), "Other, too".into()].into(),
            fields: [field].into(),
            maps,
            file: "a.dll".into(),
            ..MessageRow::new(MessageKind::Event)
        };
        let parameter = MessageRow {
            provider: Some("A-Provider".into()),
            message_id: Some(1833),
            text: Some("%%n".into()),
            ..MessageRow::new(MessageKind::Parameter)
        };
        vec![event, parameter]
    }

    #[test]
    fn rows_of_a_table_are_read_as_they_were() {
        let batch = batch();
        let read = Rows::of(&batch).expect("the same columns");
        assert_eq!(
            (0..2).map(|row| read.row(row).expect("a row")).collect::<Vec<_>>(),
            rows()
        );
        let mut catalog = CatalogRows::new(u64::MAX);
        catalog.push(&batch, Interrupt::NEVER).expect("rows");
        assert!(!catalog.finish(Interrupt::NEVER).expect("a file").is_empty());
    }

    #[test]
    fn errors_name_the_row() {
        let good = batch();
        let columns = ["kind", "provider", "provider_guid", "event_id", "text"];
        let of = |guid: &str| {
            let text = |text: &str| Arc::new(arrow_array::StringArray::from(vec![text])) as ArrayRef;
            let number = Arc::new(arrow_array::Int64Array::from(vec![70_000])) as ArrayRef;
            let arrays = [text("event"), text("P"), text(guid), number, text("t")];
            RecordBatch::try_from_iter(columns.into_iter().zip(arrays)).expect("a batch")
        };
        let mut catalog = CatalogRows::new(u64::MAX);
        catalog.push(&good, Interrupt::NEVER).expect("rows");
        assert_eq!(
            catalog.push(&of("x"), Interrupt::NEVER).unwrap_err(),
            "row 3: 'x' is not a GUID"
        );
        let guid = "54849625-5478-4994-a5ba-3e3b0328c30d";
        assert_eq!(
            catalog.push(&of(guid), Interrupt::NEVER).unwrap_err(),
            "row 4: 70000 is not an event ID"
        );
        let with = |kind: &str, provider: &str, event_id: Option<u16>| {
            let text = |text: &str| Arc::new(arrow_array::StringArray::from(vec![text])) as ArrayRef;
            let number = Arc::new(arrow_array::UInt16Array::from(vec![event_id])) as ArrayRef;
            let columns = ["kind", "provider", "event_id", "text"];
            let arrays = [text(kind), text(provider), number, text("t")];
            RecordBatch::try_from_iter(columns.into_iter().zip(arrays)).expect("a batch")
        };
        for (kind, provider, event_id, column) in [
            ("event", "P", None, "event_id"),
            ("parameter", "P", Some(1), "message_id"),
            ("event", "", Some(1), "provider"),
        ] {
            let error = CatalogRows::new(u64::MAX)
                .push(&with(kind, provider, event_id), Interrupt::NEVER)
                .unwrap_err();
            assert_eq!(error, format!("row 1: \"{column}\" is NULL or empty"));
        }
        assert_eq!(CatalogRows::check(&columns), Ok(()));
        assert!(CatalogRows::check(&columns[..4]).unwrap_err().contains("\"text\""));
    }
}
