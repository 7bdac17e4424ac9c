//! The types of values in exports.

use std::ops::Range;

use arrow_schema::{DataType, Field};

use crate::json::Json;
use crate::rows::Cell;
use crate::values::{ISO, Times, guid, hex, number, of_seconds, whole};

/// The times that fit a TIMESTAMP_NS, as seconds since 1970, and the time 0 of Windows, which means that there is none.
const SECONDS: Range<f64> = -9_214_560_000.0..9_214_646_400.0;
const NO_SECONDS: f64 = -11_644_473_600.0;

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Type {
    Null,
    Object,
    /// An object whose member `xml_name` names the element that it stands for.
    Element,
    Text,
    /// A text that is not a number. It has no column.
    Name,
    Guid,
    /// A whole number up to this one.
    Whole(u64),
    /// A whole number of 64 bits that can be hexadecimal, after `0x`.
    Hex,
    /// A whole number of 64 bits that can have a sign.
    Signed,
    /// Anything. If it is not a whole number, it has no column.
    Any,
    /// A time as Windows writes it in XML.
    Time,
    /// A number of seconds since 1970.
    Seconds,
    /// A time of the machine unless it has an offset.
    Local,
    /// A time in UTC unless it has an offset.
    Utc,
}

impl Type {
    /// The type with a name of `sources.tsv`. Other names are those of the column's type.
    pub(crate) fn of(word: &str, column: &Field) -> Self {
        match (word, column.data_type()) {
            ("null", _) => Type::Null,
            ("ELEMENT", _) => Type::Element,
            ("VARCHAR", _) => Type::Text,
            ("NAME", _) => Type::Name,
            ("HEX", _) => Type::Hex,
            ("SIGNED", _) => Type::Signed,
            ("SECONDS", _) => Type::Seconds,
            ("LOCAL", _) => Type::Local,
            ("UTC", _) => Type::Utc,
            ("JSON", DataType::UInt64) => Type::Any,
            (_, DataType::UInt8) => Type::Whole(u8::MAX.into()),
            (_, DataType::UInt16) => Type::Whole(u16::MAX.into()),
            (_, DataType::UInt32) => Type::Whole(u32::MAX.into()),
            (_, DataType::UInt64) => Type::Whole(u64::MAX),
            (_, DataType::Timestamp(..)) => Type::Time,
            (_, DataType::FixedSizeBinary(_)) => Type::Guid,
            _ if column.extension_type_name() == Some("arrow.json") => Type::Object,
            _ => Type::Text,
        }
    }

    /// Reads a value.
    ///
    /// # Errors
    /// What it is that it should not be.
    pub(crate) fn read(self, json: &Json<'_>, times: &Times) -> Result<Cell, String> {
        let (text, plain) = (json.as_text(), json.text().unwrap_or_default());
        let number_of_64_bits = || whole(json)?.try_into().ok().map(Cell::Number);
        let time = |nanos: Option<i64>| nanos.map_or(Cell::Null, Cell::Time);
        let (cell, otherwise) = match self {
            Type::Null if *json == Json::Null => (Some(Cell::Null), ""),
            Type::Null => (None, "not null"),
            _ if *json == Json::Null => (None, "null"),
            Type::Object | Type::Element if !matches!(json, Json::Object(_)) => (None, "not an object"),
            Type::Object => (Some(Cell::Text(plain.into_owned())), ""),
            Type::Element => (Some(element(json)), ""),
            Type::Text if matches!(json, Json::Object(_) | Json::List(_)) => (None, "not a text"),
            Type::Text => (Some(Cell::Text(plain.into_owned())), ""),
            Type::Name => {
                let is_name = |text: &&str| !text.trim().parse::<f64>().is_ok_and(f64::is_finite);
                (text.filter(is_name).map(|_| Cell::Null), "not a name")
            }
            Type::Guid => (text.and_then(guid).map(Cell::Guid), "not a GUID"),
            Type::Any => (Some(number_of_64_bits().unwrap_or_default()), ""),
            Type::Signed => {
                let signed = plain.parse().ok().map(i64::cast_unsigned).or_else(|| hex(&plain));
                (signed.map(Cell::Number).or_else(number_of_64_bits), "not a number")
            }
            Type::Hex | Type::Whole(_) => {
                let most = if let Type::Whole(most) = self { most } else { u64::MAX };
                let number = text.filter(|_| self == Type::Hex).and_then(hex);
                match number.map(u128::from).or_else(|| whole(json)) {
                    Some(number) if number > most.into() => return Err(format!("is larger than {most}")),
                    number => (number.map(|number| Cell::Number(number as u64)), "not a whole number"),
                }
            }
            Type::Time => {
                let read = |text| times.read(text, true).ok().filter(|_| ISO.is_match(text));
                (text.and_then(read).map(time), "not a time")
            }
            Type::Seconds => {
                let is_time = |seconds: &f64| SECONDS.contains(seconds) || *seconds == NO_SECONDS;
                let seconds = number(json).filter(is_time);
                (seconds.map(|seconds| time(of_seconds(seconds))), "not a time")
            }
            Type::Local | Type::Utc => return times.read(&plain, self == Type::Utc).map(time),
        };
        cell.ok_or_else(|| format!("is {otherwise}"))
    }
}

/// An object whose member `xml_name` names the element that it stands for, as JSON of this element.
fn element(json: &Json<'_>) -> Cell {
    let members = json.members().iter();
    let others = members.filter(|(name, _)| name != "xml_name").cloned().collect();
    let name = json.at("xml_name").and_then(Json::text).unwrap_or_default();
    Cell::Text(Json::Object(vec![(name, Json::Object(others))]).to_string())
}
