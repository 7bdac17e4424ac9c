//! The Arrow types of what is found.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, TimeUnit};
use evtx_sigma::Level;

/// The enums: the names of their types, and their values in order, from number 0 on.
pub const ENUMS: [(&str, &[&str]); 2] = [
    (
        "evtx_level",
        &[
            Level::ALL[0].1,
            Level::ALL[1].1,
            Level::ALL[2].1,
            Level::ALL[3].1,
            Level::ALL[4].1,
        ],
    ),
    ("evtx_fact_level", &evtx_codes::LEVELS),
];

/// The key of metadata that names the type of an enum.
const ENUM: &str = "evtx:enum";

/// An Arrow field of levels of rules: their indices in [`Level::ALL`]. It can be NULL.
pub fn level_field(name: &str) -> Field {
    let metadata = HashMap::from([(ENUM.to_owned(), ENUMS[0].0.to_owned())]);
    Field::new(name, DataType::UInt8, true).with_metadata(metadata)
}

/// The name of a field's type, if it is an enum. The field has the numbers of the values.
pub fn enum_of(field: &Field) -> Option<&str> {
    field.metadata().get(ENUM).map(String::as_str)
}

/// An Arrow field of times.
pub(crate) fn time(name: &str) -> Field {
    Field::new(name, DataType::Timestamp(TimeUnit::Nanosecond, None), true)
}

/// The Arrow type of texts with few different values.
pub(crate) fn name_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// The Arrow fields of `correlation`.
pub(crate) fn burst_fields() -> Fields {
    let texts = Arc::new(Field::new("item", DataType::Utf8, true));
    Fields::from(vec![
        time("first_time"),
        time("last_time"),
        Field::new("count", DataType::UInt64, true),
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
    Fields::from(vec![
        text("rule_title"),
        text("filename"),
        Field::new("record_id", DataType::UInt64, true),
    ])
}

/// The Arrow type of `matched`: a map from names to values, which can be NULL.
pub(crate) fn matched_type() -> DataType {
    let entries = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Utf8, true),
    ]);
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
}
