//! Python's values for arguments and conditions.

use arrow_schema::{DataType, Field};
use evtx_arrow::Literal;
use evtx_scan::{Argument, ArgumentKind, ArgumentValue, Arguments, Query};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyString};

use crate::types::is_text;

/// A value and its type, for errors.
fn shown(value: &Bound<'_, PyAny>) -> String {
    let kind = value
        .get_type()
        .name()
        .map_or_else(|_| "?".to_owned(), |name| name.to_string());
    format!("{value:?} ({kind})")
}

fn is_bool(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyBool>()
}

/// An item of a list as text: a text or a whole number.
fn item(name: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyInt>() && !is_bool(value) {
        return Ok(value.str()?.to_string());
    }
    Err(PyTypeError::new_err(format!("{name} cannot be {}", shown(value))))
}

/// The texts of a value, or of the values of an iterable; `None` for other values.
fn items(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<Vec<String>>> {
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyInt>() {
        return Ok(Some(vec![item(name, value)?]));
    }
    let Ok(items) = value.try_iter() else { return Ok(None) };
    items.map(|each| item(name, &each?)).collect::<PyResult<_>>().map(Some)
}

/// A value for an argument of a call.
fn argument_value(argument: &Argument, value: &Bound<'_, PyAny>) -> PyResult<ArgumentValue> {
    let name = argument.name;
    let wrong = |wanted: &str| PyTypeError::new_err(format!("{name} must be {wanted}, not {}", shown(value)));
    Ok(match argument.kind {
        ArgumentKind::Flag if is_bool(value) => ArgumentValue::Flag(value.extract()?),
        ArgumentKind::Flag => return Err(wrong("True or False")),
        ArgumentKind::Integer if value.is_instance_of::<PyInt>() && !is_bool(value) => {
            let number = value.extract();
            ArgumentValue::Integer(
                number.map_err(|_| PyValueError::new_err(format!("{name} cannot be {}", shown(value))))?,
            )
        }
        ArgumentKind::Integer => return Err(wrong("a whole number")),
        ArgumentKind::Text if value.is_instance_of::<PyString>() => ArgumentValue::Text(value.extract()?),
        ArgumentKind::Text => return Err(wrong("text")),
        ArgumentKind::List => {
            ArgumentValue::List(items(name, value)?.ok_or_else(|| wrong("a value or a list of them"))?)
        }
        ArgumentKind::Map => {
            let entries = value
                .cast::<PyDict>()
                .map_err(|_| wrong("a dict of values or lists of them"))?;
            let mut pairs = Vec::new();
            for (key, values) in entries {
                let key = item(name, &key)?;
                let texts = items(name, &values)?.ok_or_else(|| wrong("a dict of values or lists of them"))?;
                pairs.extend(texts.into_iter().map(|text| (key.clone(), text)));
            }
            ArgumentValue::Map(pairs)
        }
    })
}

/// The arguments of a call of a function, by name. Those that are None keep their defaults.
pub(crate) fn arguments(query: Query, function: &str, values: &Bound<'_, PyDict>) -> PyResult<Arguments> {
    let mut arguments = Arguments::new(query);
    for (name, value) in values {
        let name: String = name.extract()?;
        let found = Argument::find(query, &name).filter(|found| found.name != "hive_partitioning");
        let Some(argument) = found else {
            return Err(PyTypeError::new_err(format!("{function} has no argument {name}")));
        };
        if !value.is_none() {
            let set = arguments.set(argument, argument_value(argument, &value)?, function);
            set.map_err(|error| PyValueError::new_err(error.to_string()))?;
        }
    }
    Ok(arguments)
}

/// A constant of a condition, as the type of the column.
#[derive(Debug)]
pub(crate) enum Constant {
    /// A value that the column can have.
    Literal(Literal),
    /// A number below all values of the column.
    Below,
    /// A number above all values of the column.
    Above,
}

/// The range of a column of integers.
fn bounds(data_type: &DataType) -> Option<(i128, i128)> {
    let bytes = data_type.primitive_width().filter(|_| data_type.is_integer())?;
    let count = 1_i128 << (8 * bytes);
    Some(if data_type.is_unsigned_integer() {
        (0, count - 1)
    } else {
        (-count / 2, count / 2 - 1)
    })
}

/// Nanoseconds since 1970-01-01 UTC of a time or date in ISO 8601. Without a zone it is UTC.
fn nanos(text: &str) -> Option<i128> {
    let utc = |time: DateTime| Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp());
    let time = text.parse::<Timestamp>().ok();
    let time = time.or_else(|| utc(text.parse::<DateTime>().ok()?));
    let time = time.or_else(|| utc(text.parse::<Date>().ok()?.to_datetime(jiff::civil::Time::midnight())));
    Some(time?.as_nanosecond())
}

/// A constant for a column. The Python part passes times as `("instant", nanoseconds)`, GUIDs as `("uuid", bytes)`.
pub(crate) fn constant(field: &Field, value: &Bound<'_, PyAny>) -> PyResult<Constant> {
    let (name, data_type) = (field.name(), field.data_type());
    let wrong = |wanted: &str| PyTypeError::new_err(format!("{name} is compared with {wanted}, not {}", shown(value)));
    let tagged: Option<(String, Bound<'_, PyAny>)> = value.extract().ok();
    let tagged = tagged.as_ref().map(|(tag, inner)| (tag.as_str(), inner));
    let text = || {
        value
            .extract::<String>()
            .ok()
            .filter(|_| value.is_instance_of::<PyString>())
    };
    if value.is_none() {
        let text = format!("{name} cannot be compared with None: use \"is null\" or \"is not null\"");
        return Err(PyValueError::new_err(text));
    }
    let clamped =
        |number: i128, (least, greatest): (i128, i128), literal: &dyn Fn(i128) -> Option<Literal>| match number {
            _ if number < least => Constant::Below,
            _ if number > greatest => Constant::Above,
            _ => literal(number).map_or(Constant::Above, Constant::Literal),
        };
    let of_i64 = (i64::MIN.into(), i64::MAX.into());
    Ok(match data_type {
        _ if bounds(data_type).is_some() => {
            if !value.is_instance_of::<PyInt>() || is_bool(value) {
                return Err(wrong("a whole number"));
            }
            let number = match value.extract::<i128>() {
                Ok(number) => number,
                Err(_) if value.lt(0)? => i128::MIN,
                Err(_) => i128::MAX,
            };
            let range = bounds(data_type).unwrap_or((0, 0));
            let literal = |number: i128| {
                if data_type.is_unsigned_integer() {
                    u64::try_from(number).ok().map(Literal::Number)
                } else {
                    i64::try_from(number).ok().map(Literal::Integer)
                }
            };
            clamped(number, range, &literal)
        }
        DataType::Boolean if is_bool(value) => Constant::Literal(Literal::Bool(value.extract()?)),
        DataType::Boolean => return Err(wrong("True or False")),
        DataType::Timestamp(..) => {
            let number = match (tagged, text()) {
                (Some(("instant", number)), _) => Some(number.extract::<i128>()?),
                (_, Some(text)) => nanos(&text),
                _ => None,
            };
            let number = number.ok_or_else(|| wrong("a time"))?;
            clamped(number, of_i64, &|number| {
                i64::try_from(number).ok().map(Literal::Instant)
            })
        }
        DataType::FixedSizeBinary(16) if field.extension_type_name() == Some("arrow.uuid") => {
            let bytes = match (tagged, text()) {
                (Some(("uuid", bytes)), _) => Some(bytes.extract::<[u8; 16]>()?),
                (_, Some(text)) => uuid::Uuid::parse_str(&text).ok().map(uuid::Uuid::into_bytes),
                _ => None,
            };
            Constant::Literal(Literal::Uuid(bytes.ok_or_else(|| wrong("a GUID"))?))
        }
        data_type if is_text(data_type) => {
            Constant::Literal(Literal::Text(text().ok_or_else(|| wrong("text"))?.into()))
        }
        _ => {
            let text = format!("{name} cannot be compared: its type is {data_type}");
            return Err(PyTypeError::new_err(text));
        }
    })
}
