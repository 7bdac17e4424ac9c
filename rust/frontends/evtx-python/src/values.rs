//! Python's values for arguments and conditions.

use arrow_schema::{DataType, Field};
use evtx_arrow::{Comparison, Expression, Literal};
use evtx_query::{Arguments, Query};
use evtx_scan::{Argument, ArgumentKind, ArgumentValue};
use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyString};
use uuid::Uuid;

use crate::types::{NANOS_OF_SPARK, Types, is_text};

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

/// An argument for Python: its name, its kind, its default as text, and what it does.
type Described = (&'static str, &'static str, Option<&'static str>, &'static str);

/// The arguments of a query that Python takes: folders are no columns there.
fn arguments_of(query: Query) -> impl Iterator<Item = &'static Argument> {
    query
        .arguments()
        .filter(|argument| argument.name != "hive_partitioning")
}

/// The arguments of a scan.
#[pyfunction]
pub(crate) fn scan_arguments() -> Vec<Described> {
    let describe = |argument: &Argument| (argument.name, argument.kind.name(), argument.default, argument.about);
    arguments_of(Query::Records).map(describe).collect()
}

/// The arguments of a call of a function, by name. Those that are None keep their defaults.
pub(crate) fn arguments(query: Query, function: &str, values: &Bound<'_, PyDict>) -> PyResult<Arguments> {
    let mut arguments = Arguments::new(query);
    for (name, value) in values {
        let name: String = name.extract()?;
        let Some(argument) = arguments_of(query).find(|argument| argument.name == name) else {
            return Err(PyTypeError::new_err(format!("{function} has no argument {name}")));
        };
        if !value.is_none() {
            let set = arguments.set(argument, argument_value(argument, &value)?, function);
            set.map_err(|error| PyValueError::new_err(error.to_string()))?;
        }
    }
    Ok(arguments)
}

/// A constant of a condition.
#[derive(Debug)]
pub(crate) enum Constant {
    /// A value that the column can have.
    Literal(Literal),
    /// A number or a time, as the last number of the column that is not greater, and the first that is not less. These
    /// differ for a time between two of them.
    Number(Numbers, i128, i128),
}

/// The numbers or times of a column, as its rows show them and as the core has them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Numbers {
    /// The least and the greatest that rows show.
    pub(crate) shown: (i128, i128),
    /// The same of the core.
    stored: (i128, i128),
    /// How many numbers of the core show as one.
    unit: i128,
    is_time: bool,
}

impl Numbers {
    /// The numbers of a column of the core in rows of these types; `None` if it has none.
    fn of(types: Types, data_type: &DataType) -> Option<Self> {
        let range = |bits: usize, is_signed: bool| {
            let count = 1_i128 << bits;
            let least = if is_signed { -count / 2 } else { 0 };
            (least, least + count - 1)
        };
        let (is_time, is_spark) = (matches!(data_type, DataType::Timestamp(..)), types == Types::Spark);
        let stored = match data_type {
            DataType::Timestamp(..) => range(64, true),
            integer if integer.is_integer() => range(8 * integer.primitive_width()?, integer.is_signed_integer()),
            _ => return None,
        };
        let unit = if is_time && is_spark { NANOS_OF_SPARK } else { 1 };
        let shown = match data_type {
            // Spark has only signed ones.
            DataType::UInt64 if is_spark => range(64, true),
            _ => (stored.0.div_euclid(unit), stored.1.div_euclid(unit)),
        };
        Some(Numbers {
            shown,
            stored,
            unit,
            is_time,
        })
    }

    /// The conditions that the core's number is one of those that show as a number from the least to the greatest.
    pub(crate) fn within(self, value: &Expression, (least, greatest): (i128, i128)) -> Vec<Expression> {
        let (least, greatest) = (least.max(self.shown.0), greatest.min(self.shown.1));
        // A number that shows as a negative one is above all others.
        let (below, above) = match self.stored.0 {
            0 if least < 0 => ((least, greatest.min(-1)), (0, greatest)),
            _ => ((1, 0), (least, greatest)),
        };
        let shifted = (below.0 + self.stored.1 + 1, below.1 + self.stored.1 + 1);
        let stored = |(least, greatest): (i128, i128)| {
            let range = (least * self.unit, greatest * self.unit + self.unit - 1);
            (least <= greatest).then(|| self.range(value, range))
        };
        [stored(above), stored(shifted)].into_iter().flatten().collect()
    }

    /// The condition that the core's number is in a range.
    fn range(self, value: &Expression, (least, greatest): (i128, i128)) -> Expression {
        let compare = |comparison, number: i128| {
            let literal = if self.is_time {
                Literal::Instant(number as i64)
            } else if self.stored.0 < 0 {
                Literal::Integer(number as i64)
            } else {
                Literal::Number(number as u64)
            };
            Expression::Compare(comparison, Box::new([value.clone(), Expression::Constant(literal)]))
        };
        match (least <= self.stored.0, greatest >= self.stored.1) {
            _ if least == greatest => compare(Comparison::Equal, least),
            (true, true) => Expression::Not(Box::new(Expression::IsNull(Box::new(value.clone())))),
            (true, false) => compare(Comparison::LessOrEqual, greatest),
            (false, true) => compare(Comparison::GreaterOrEqual, least),
            (false, false) => Expression::And(vec![
                compare(Comparison::GreaterOrEqual, least),
                compare(Comparison::LessOrEqual, greatest),
            ]),
        }
    }
}

/// Nanoseconds since 1970-01-01 UTC of a time or date in ISO 8601. Without a zone it is UTC.
fn nanos(text: &str) -> Option<i128> {
    let utc = |time: DateTime| Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp());
    let time = text.parse::<Timestamp>().ok();
    let time = time.or_else(|| utc(text.parse::<DateTime>().ok()?));
    let time = time.or_else(|| utc(text.parse::<Date>().ok()?.to_datetime(jiff::civil::Time::midnight())));
    Some(time?.as_nanosecond())
}

/// A constant for a column of the core in rows of these types. The Python part passes times as `("instant", nanoseconds)`,
/// GUIDs as `("uuid", bytes)`.
pub(crate) fn constant(types: Types, field: &Field, value: &Bound<'_, PyAny>) -> PyResult<Constant> {
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
    if let Some(numbers) = Numbers::of(types, data_type) {
        let Numbers { is_time, unit, .. } = numbers;
        let number = match (tagged, text()) {
            (Some(("instant", number)), _) if is_time => Some(number.extract::<i128>()?),
            (_, Some(text)) if is_time => nanos(&text),
            _ if !is_time && value.is_instance_of::<PyInt>() && !is_bool(value) => match value.extract::<i128>() {
                Ok(number) => Some(number),
                Err(_) if value.lt(0)? => Some(i128::MIN),
                Err(_) => Some(i128::MAX),
            },
            _ => None,
        };
        let number = number.ok_or_else(|| wrong(if is_time { "a time" } else { "a whole number" }))?;
        let last = number.div_euclid(unit);
        let first = last + i128::from(number.rem_euclid(unit) > 0);
        return Ok(Constant::Number(numbers, last, first));
    }
    Ok(Constant::Literal(match data_type {
        DataType::Boolean if is_bool(value) => Literal::Bool(value.extract()?),
        DataType::Boolean => return Err(wrong("True or False")),
        DataType::FixedSizeBinary(16) if field.extension_type_name() == Some("arrow.uuid") => {
            let guid = match (tagged, text()) {
                (Some(("uuid", bytes)), _) => Some(Uuid::from_bytes(bytes.extract()?)),
                (_, Some(text)) => Uuid::parse_str(&text).ok(),
                _ => None,
            };
            let guid = guid.ok_or_else(|| wrong("a GUID"))?;
            // To Spark, they are texts.
            if types == Types::Spark && text().is_some_and(|text| text != guid.to_string()) {
                let why = format!(
                    "{name} is compared with a GUID as Spark shows it, such as {guid}, not {}",
                    shown(value)
                );
                return Err(PyValueError::new_err(why));
            }
            Literal::Uuid(guid.into_bytes())
        }
        data_type if is_text(data_type) => Literal::Text(text().ok_or_else(|| wrong("text"))?.into()),
        _ => {
            let text = format!("{name} cannot be compared: its type is {data_type}");
            return Err(PyTypeError::new_err(text));
        }
    }))
}
