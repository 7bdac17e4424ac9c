//! Events in the columns of any Arrow data: the columns of `read_evtx`, in our types or in those of other libraries.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, TimestampNanosecondType, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, RecordBatch, StringViewArray, StructArray, TimestampNanosecondArray, UInt64Array,
};
use arrow_buffer::NullBuffer;
use arrow_cast::{can_cast_types, cast};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, TimeUnit};
use evtx_detect::{EventRow, EventValue, event_fields};
use uuid::Uuid;

use crate::types::is_text;

/// Which columns of a schema are which of [`event_fields`].
#[derive(Debug, Clone)]
pub(crate) struct EventColumns {
    fields: Vec<(FieldRef, Option<usize>)>,
}

impl EventColumns {
    /// The columns of events. Errors name the argument `events`.
    pub(crate) fn of(schema: &Schema) -> Result<Self, String> {
        let mut fields = Vec::new();
        for field in &event_fields() {
            let name = field.name();
            let named = |(_, other): &(usize, &FieldRef)| other.name().eq_ignore_ascii_case(name);
            let mut found = schema.fields().iter().enumerate().filter(named);
            let (first, second) = (found.next(), found.next());
            if second.is_some() {
                return Err(format!("events must not have two columns named {name}"));
            }
            if let Some((_, other)) = first
                && !is_usable(other.data_type(), field.data_type())
            {
                let wanted = match field.data_type() {
                    DataType::Map(..) => "a map of texts, or a list of structs with a key and a value",
                    DataType::Timestamp(..) => "a time",
                    DataType::FixedSizeBinary(_) => "a GUID",
                    DataType::Utf8 => "text",
                    _ => "a number",
                };
                let kind = other.data_type();
                return Err(format!(
                    "the column {name} of events must be {wanted}, but its type is {kind}"
                ));
            }
            fields.push((Arc::clone(field), first.map(|(index, _)| index)));
        }
        let columns = EventColumns { fields };
        if columns.index("channel").is_none() || columns.index("provider").is_none() {
            let text = "events must have the columns channel and provider: rules choose events by them";
            return Err(text.to_owned());
        }
        Ok(columns)
    }

    /// The index of a column in the schema.
    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.fields.iter().find(|(field, _)| field.name() == name)?.1
    }

    /// The events in rows of the schema.
    pub(crate) fn events(&self, rows: &RecordBatch) -> Result<EventArrays, ArrowError> {
        let (mut values, mut event_data) = (Vec::new(), None);
        for (field, index) in &self.fields {
            let column = index.map(|index| rows.column(index));
            match (field.data_type(), column) {
                (DataType::Map(..), Some(column)) => event_data = PairArrays::of(column)?,
                (DataType::Map(..), None) => {}
                (wanted, column) => values.push(column.map(|column| Values::of(column, wanted)).transpose()?),
            }
        }
        Ok(EventArrays { values, event_data })
    }
}

fn is_uuid_text(from: &DataType) -> bool {
    is_text(from) || *from == DataType::Null
}

/// Whether the values of a type can be those of a column.
fn is_usable(from: &DataType, wanted: &DataType) -> bool {
    let from = match from {
        DataType::Dictionary(_, values) => values,
        from => from,
    };
    match wanted {
        DataType::Map(..) => *from == DataType::Null || pair_fields(from).is_some(),
        DataType::FixedSizeBinary(_) if !is_uuid_text(from) => can_cast_types(from, &DataType::BinaryView),
        DataType::FixedSizeBinary(_) => true,
        _ if from.is_nested() => false,
        // The text of a time depends on its zone.
        DataType::Utf8 if from.is_temporal() => false,
        DataType::Utf8 => can_cast_types(from, &DataType::Utf8View),
        wanted if is_text(from) => can_cast_types(&DataType::Utf8View, wanted),
        wanted => can_cast_types(from, wanted),
    }
}

/// The values of a column.
enum Values {
    Texts(StringViewArray),
    Numbers(UInt64Array),
    Times(TimestampNanosecondArray),
    UuidTexts(StringViewArray),
    Uuids(BinaryViewArray),
}

impl Values {
    /// Converts a column. Values that do not fit become NULL.
    fn of(array: &ArrayRef, wanted: &DataType) -> Result<Self, ArrowError> {
        use DataType::{BinaryView, FixedSizeBinary, Int64, Timestamp, UInt64, Utf8};
        let text = |array| Ok::<_, ArrowError>(texts(array)?.as_string_view().clone());
        if *wanted == Utf8 {
            return Ok(Values::Texts(text(array)?));
        }
        if matches!(wanted, FixedSizeBinary(_)) {
            return Ok(match array.data_type() {
                from if is_uuid_text(from) => Values::UuidTexts(text(array)?),
                _ => Values::Uuids(cast(array, &BinaryView)?.as_binary_view().clone()),
            });
        }
        let array = match array.data_type() {
            from if is_text(from) => texts(array)?,
            DataType::Dictionary(_, values) => cast(array, values)?,
            _ => Arc::clone(array),
        };
        if matches!(wanted, Timestamp(..)) {
            // A time is the same in all zones.
            let zone = match array.data_type() {
                Timestamp(_, zone) => zone.clone(),
                _ => None,
            };
            let nanos = cast(&array, &Timestamp(TimeUnit::Nanosecond, zone))?;
            let nanos = nanos.as_primitive::<TimestampNanosecondType>();
            return Ok(Values::Times(nanos.clone()));
        }
        // As our types for Spark have them.
        let numbers = match (array.data_type(), wanted) {
            (Int64, UInt64) => {
                let signed = array.as_primitive::<Int64Type>();
                Arc::new(signed.unary::<_, UInt64Type>(i64::cast_unsigned))
            }
            _ => cast(&cast(&array, wanted)?, &UInt64)?,
        };
        Ok(Values::Numbers(numbers.as_primitive::<UInt64Type>().clone()))
    }

    fn get(&self, row: usize) -> Option<EventValue<'_>> {
        let array: &dyn Array = match self {
            Values::Texts(array) | Values::UuidTexts(array) => array,
            Values::Numbers(array) => array,
            Values::Times(array) => array,
            Values::Uuids(array) => array,
        };
        if array.is_null(row) {
            return None;
        }
        match self {
            Values::Texts(texts) => Some(EventValue::Text(texts.value(row))),
            Values::Numbers(numbers) => Some(EventValue::Number(numbers.value(row))),
            Values::Times(times) => Some(EventValue::Time(times.value(row))),
            Values::UuidTexts(texts) => {
                let uuid = Uuid::try_parse(texts.value(row)).ok()?;
                Some(EventValue::Uuid(uuid.into_bytes()))
            }
            Values::Uuids(uuids) => uuids.value(row).try_into().ok().map(EventValue::Uuid),
        }
    }
}

/// Converts an array to texts. Other libraries do not always check texts: those that are not UTF-8 become NULL.
fn texts(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let texts = cast(array, &DataType::Utf8View)?;
    if texts.to_data().validate_full().is_ok() {
        return Ok(texts);
    }
    let bytes = cast(&texts, &DataType::BinaryView)?;
    let texts = cast(&cast(&bytes, &DataType::LargeBinary)?, &DataType::LargeUtf8)?;
    cast(&texts, &DataType::Utf8View)
}

/// The indexes of the key and the value in the entries of a map or list.
fn pair_fields(data_type: &DataType) -> Option<(usize, usize)> {
    use DataType::{FixedSizeList, LargeList, LargeListView, List, ListView, Map, Struct};
    let (List(item) | LargeList(item) | FixedSizeList(item, _) | ListView(item) | LargeListView(item) | Map(item, _)) =
        data_type
    else {
        return None;
    };
    let Struct(fields) = item.data_type() else { return None };
    let at = |name: &str| fields.find(name).map(|(index, _)| index);
    let (key, value) = match data_type {
        Map(..) => (0, 1),
        _ => (at("key")?, at("value")?),
    };
    let is_usable = |index: usize| {
        let kind = fields.get(index).map(|field: &Arc<Field>| field.data_type());
        kind.is_some_and(|kind| is_text(kind) || *kind == DataType::Null)
    };
    (is_usable(key) && is_usable(value)).then_some((key, value))
}

/// `event_data`: for each row a range of pairs.
struct PairArrays {
    /// The start of each row, and the end of the last.
    starts: Vec<usize>,
    nulls: Option<NullBuffer>,
    keys: StringViewArray,
    values: StringViewArray,
}

impl PairArrays {
    fn of(array: &ArrayRef) -> Result<Option<Self>, ArrowError> {
        let Some((key, value)) = pair_fields(array.data_type()) else {
            return Ok(None);
        };
        let array = match array.data_type() {
            DataType::FixedSizeList(item, _) | DataType::ListView(item) | DataType::LargeListView(item) => {
                cast(array, &DataType::LargeList(Arc::clone(item)))?
            }
            _ => Arc::clone(array),
        };
        let (starts, entries): (Vec<usize>, StructArray) = if let Some(maps) = array.as_map_opt() {
            (of_i32(maps.value_offsets()), maps.entries().clone())
        } else if let Some(lists) = array.as_list_opt::<i32>() {
            (of_i32(lists.value_offsets()), lists.values().as_struct().clone())
        } else {
            let lists = array.as_list::<i64>();
            let starts = lists.value_offsets().iter().map(|&start| start as usize);
            (starts.collect(), lists.values().as_struct().clone())
        };
        // An array can be a small part of one with many more entries.
        let (first, end) = (starts.first().copied(), starts.last().copied());
        let (first, end) = (first.unwrap_or_default(), end.unwrap_or_default());
        let entries = entries.slice(first, end - first);
        let part = |index: usize| Ok::<_, ArrowError>(texts(entries.column(index))?.as_string_view().clone());
        let mut keys = part(key)?;
        if entries.nulls().is_some() {
            // A pair that is NULL has no key.
            let nulls = NullBuffer::union(keys.nulls(), entries.nulls());
            keys = StringViewArray::try_new(keys.views().clone(), keys.data_buffers().to_vec(), nulls)?;
        }
        Ok(Some(PairArrays {
            starts: starts.into_iter().map(|start| start - first).collect(),
            nulls: array.nulls().cloned(),
            keys,
            values: part(value)?,
        }))
    }

    fn get<'a>(&'a self, row: usize, pairs: &mut Vec<(&'a str, Option<&'a str>)>) {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return;
        }
        for index in self.starts[row]..self.starts[row + 1] {
            if self.keys.is_valid(index) {
                let value = self.values.is_valid(index).then(|| self.values.value(index));
                pairs.push((self.keys.value(index), value));
            }
        }
    }
}

fn of_i32(starts: &[i32]) -> Vec<usize> {
    starts.iter().map(|&start| start as usize).collect()
}

/// The events in some rows.
pub(crate) struct EventArrays {
    values: Vec<Option<Values>>,
    event_data: Option<PairArrays>,
}

impl EventArrays {
    /// Gives `each` the events of a range of rows.
    pub(crate) fn each<E>(
        &self,
        rows: std::ops::Range<usize>,
        mut each: impl FnMut(&EventRow<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut values, mut event_data) = (Vec::with_capacity(self.values.len()), Vec::new());
        for row in rows {
            values.clear();
            event_data.clear();
            values.extend(self.values.iter().map(|values| values.as_ref()?.get(row)));
            if let Some(pairs) = &self.event_data {
                pairs.get(row, &mut event_data);
            }
            each(&EventRow {
                values: &values,
                event_data: &event_data,
            })?;
        }
        Ok(())
    }
}
