//! Conditions on the rows of a scan. The core decides most of them before it builds a row. The others filter the rows.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeBinaryArray, Int64Array, RecordBatch, Scalar, StringArray,
    TimestampNanosecondArray, UInt64Array,
};
use arrow_buffer::BooleanBuffer;
use arrow_cast::cast;
use arrow_ord::cmp;
use arrow_schema::{ArrowError, DataType, Schema};
use arrow_select::filter::filter_record_batch;
use arrow_string::like;
use evtx_arrow::{Comparison, Expression, Literal, Predicate, Table};
use evtx_format::search::{Pattern, lower_case};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::types::{Types, is_text};
use crate::values::{Constant, constant};

/// A condition on the values of a column, or of an entry of a map.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    /// The index of the column in the schema of the table.
    pub(crate) column: usize,
    key: Option<Box<str>>,
    /// For the core: a comparison of the value with constants, IS NULL, IN or LIKE, or AND, OR or NOT with such.
    pub(crate) expression: Expression,
}

/// A condition from Python: the column, perhaps the key of an entry, the operator and the values.
pub(crate) type Stated<'py> = (String, Option<String>, String, Vec<Bound<'py, PyAny>>);

/// Every operator.
const OPERATORS: &str = "= == != <> < <= > >= in, not in, between, is null, is not null, starts_with, ends_with, contains, like, \
                         not like, ilike, not ilike";

impl Condition {
    /// The condition of Python on a column of a schema, as rows of these types show its values.
    ///
    /// # Errors
    /// `ValueError` for an unknown column or operator, or the wrong number of values; `TypeError` for values that the
    /// column cannot be compared with.
    pub(crate) fn of(types: Types, schema: &Schema, stated: &Stated<'_>) -> PyResult<Self> {
        use Comparison::{Contains, Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual, Prefix, Suffix};
        let (name, key, operator, values) = stated;
        let column = column_index(schema, name)?;
        let field = schema.field(column);
        let entry = match (field.data_type(), key) {
            (DataType::Map(..), Some(_)) => Some(field.clone().with_data_type(DataType::Utf8)),
            (_, Some(_)) => {
                return Err(PyTypeError::new_err(format!(
                    "{name} has no entries: only maps do, such as event_data"
                )));
            }
            (_, None) => None,
        };
        let field = entry.as_ref().unwrap_or(field);
        let key: Option<Box<str>> = key.as_deref().map(Into::into);
        let value = match &key {
            None => Expression::Column(column),
            Some(key) => Expression::Entry(column, key.clone()),
        };
        let boxed = || Box::new(value.clone());
        let not = |expression| Expression::Not(Box::new(expression));
        let compared = |comparison, literal| {
            Expression::Compare(comparison, Box::new([value.clone(), Expression::Constant(literal)]))
        };
        let count = |wanted: usize| {
            let found = values.len();
            if found == wanted {
                return Ok(());
            }
            let text = format!("the condition {operator} on {name} takes {wanted} values, not {found}");
            Err(PyValueError::new_err(text))
        };
        let compare = |comparison: Comparison, with: &Bound<'_, PyAny>| {
            Ok::<_, PyErr>(match constant(types, field, with)? {
                Constant::Number(numbers, last, first) => {
                    let (least, greatest) = numbers.shown;
                    let any = |range| any(&value, numbers.within(&value, range));
                    match comparison {
                        Less => any((least, first.saturating_sub(1))),
                        LessOrEqual => any((least, last)),
                        Greater => any((last.saturating_add(1), greatest)),
                        GreaterOrEqual => any((first, greatest)),
                        NotEqual => not(any((first, last))),
                        _ => any((first, last)),
                    }
                }
                Constant::Literal(literal) => compared(comparison, literal),
            })
        };
        let is_in = || {
            let each = values.iter().map(|value| compare(Equal, value));
            Ok::<_, PyErr>(any(&value, each.collect::<PyResult<_>>()?))
        };
        let of_text = || {
            count(1)?;
            match constant(types, field, &values[0])? {
                Constant::Literal(Literal::Text(text)) => Ok(text),
                _ => Err(PyTypeError::new_err(format!(
                    "{operator} compares texts, but {name} has none"
                ))),
            }
        };
        let like = |ignores_case| {
            let pattern = Pattern {
                text: of_text()?,
                escape: None,
                ignores_case,
            };
            Ok::<_, PyErr>(Expression::Matches(boxed(), pattern))
        };
        let ordered = |comparison| {
            count(1)?;
            compare(comparison, &values[0])
        };
        let expression = match operator.as_str() {
            "=" | "==" => ordered(Equal)?,
            "!=" | "<>" => ordered(NotEqual)?,
            "<" => ordered(Less)?,
            "<=" => ordered(LessOrEqual)?,
            ">" => ordered(Greater)?,
            ">=" => ordered(GreaterOrEqual)?,
            "is null" => {
                count(0)?;
                Expression::IsNull(boxed())
            }
            "is not null" => {
                count(0)?;
                not(Expression::IsNull(boxed()))
            }
            "in" => is_in()?,
            "not in" => not(is_in()?),
            "between" => {
                count(2)?;
                Expression::And(vec![
                    compare(GreaterOrEqual, &values[0])?,
                    compare(LessOrEqual, &values[1])?,
                ])
            }
            "starts_with" => compared(Prefix, Literal::Text(of_text()?)),
            "ends_with" => compared(Suffix, Literal::Text(of_text()?)),
            "contains" => compared(Contains, Literal::Text(of_text()?)),
            "like" => like(false)?,
            "ilike" => like(true)?,
            "not like" => not(like(false)?),
            "not ilike" => not(like(true)?),
            _ => {
                return Err(PyValueError::new_err(format!(
                    "unknown operator \"{operator}\" in a condition on {name}: use one of {OPERATORS}"
                )));
            }
        };
        Ok(Condition {
            column,
            key,
            expression,
        })
    }

    /// Whether the core decides the condition in full, so that rows need no filter.
    pub(crate) fn is_decided(&self, table: &Table) -> bool {
        // The core searches for a part of a pattern.
        !matches!(self.expression, Expression::Matches(..)) && Predicate::implied(table, &self.expression).is_some()
    }

    /// The rows that fulfil the condition. `at` is the index of its column in the rows.
    pub(crate) fn filter(&self, rows: &RecordBatch, at: usize) -> Result<RecordBatch, ArrowError> {
        let column = rows.column(at);
        let column: ArrayRef = match &self.key {
            Some(key) => Arc::new(entry(column, key)?),
            None if is_text(column.data_type()) => cast(column, &DataType::Utf8)?,
            None => Arc::clone(column),
        };
        filter_record_batch(rows, &truth(&self.expression, &column)?)
    }
}

/// The condition that one of some holds for a value. If all compare it with a constant, it is in a list.
fn any(value: &Expression, mut conditions: Vec<Expression>) -> Expression {
    let constant = |condition: &Expression| match condition {
        Expression::Compare(Comparison::Equal, sides) => Some(sides[1].clone()),
        _ => None,
    };
    if conditions.len() == 1 {
        return conditions.remove(0);
    }
    match conditions.iter().map(constant).collect() {
        Some(constants) => Expression::In(Box::new(value.clone()), constants),
        None => Expression::Or(conditions),
    }
}

/// For each row, whether an expression of a [`Condition`] is true of the value.
fn truth(expression: &Expression, values: &ArrayRef) -> Result<BooleanArray, ArrowError> {
    Ok(match expression {
        Expression::IsNull(_) => match values.logical_nulls() {
            Some(nulls) => BooleanArray::new(!nulls.inner(), None),
            None => BooleanArray::new(BooleanBuffer::new_unset(values.len()), None),
        },
        Expression::Not(inner) => {
            let (truth, nulls) = truth(inner, values)?.into_parts();
            BooleanArray::new(!&truth, nulls)
        }
        Expression::Compare(comparison, sides) => compared(values, *comparison, &sides[1])?,
        Expression::And(parts) | Expression::Or(parts) => {
            let mut masks = Vec::with_capacity(parts.len());
            for part in parts {
                masks.push(truth(part, values)?.into_parts().0);
            }
            let is_and = matches!(expression, Expression::And(_));
            let both = |one: BooleanBuffer, other| if is_and { &one & &other } else { &one | &other };
            let mask = masks.into_iter().reduce(both);
            // All parts are about this value, so they are NULL where it is.
            let mask = mask.unwrap_or_else(|| BooleanBuffer::new_unset(values.len()));
            BooleanArray::new(mask, values.logical_nulls())
        }
        Expression::In(_, constants) => {
            let mut mask = BooleanBuffer::new_unset(values.len());
            for constant in constants {
                mask = &mask | compared(values, Comparison::Equal, constant)?.values();
            }
            BooleanArray::new(mask, values.logical_nulls())
        }
        Expression::Matches(_, pattern) => {
            // To this function, a backslash is an escape. SQL has none without ESCAPE.
            let escaped = |text: &str| Scalar::new(StringArray::from(vec![text.replace('\\', "\\\\")]));
            if !pattern.ignores_case {
                return like::like(values, &escaped(&pattern.text));
            }
            let values = values.as_string::<i32>().iter();
            let values: StringArray = values.map(|text| text.map(lower_case)).collect();
            like::like(&values, &escaped(&lower_case(&pattern.text)))?
        }
        other => return Err(ArrowError::NotYetImplemented(format!("the condition {other:?}"))),
    })
}

/// The index of a column of a schema, by its name in any case.
///
/// # Errors
/// `ValueError`, with the names of the columns.
pub(crate) fn column_index(schema: &Schema, name: &str) -> PyResult<usize> {
    let fields = schema.fields();
    let exact = fields.iter().position(|field| field.name() == name);
    let found = exact.or_else(|| fields.iter().position(|field| field.name().eq_ignore_ascii_case(name)));
    found.ok_or_else(|| {
        let names: Vec<_> = fields.iter().map(|field| field.name().as_str()).collect();
        PyValueError::new_err(format!(
            "there is no column \"{name}\": the columns are {}",
            names.join(", ")
        ))
    })
}

/// The values of an entry of a map.
fn entry(column: &ArrayRef, key: &str) -> Result<StringArray, ArrowError> {
    let map = column.as_map();
    let (keys, values) = (cast(map.keys(), &DataType::Utf8)?, cast(map.values(), &DataType::Utf8)?);
    let (keys, values) = (keys.as_string::<i32>(), values.as_string::<i32>());
    let offsets = map.offsets();
    let of_row = |row: usize| {
        let mut entries = offsets[row] as usize..offsets[row + 1] as usize;
        let found = entries.find(|&entry| keys.value(entry) == key)?;
        (values.is_valid(found) && map.is_valid(row)).then(|| values.value(found))
    };
    Ok((0..map.len()).map(of_row).collect())
}

/// Values compared with a constant of their type.
fn compared(values: &ArrayRef, comparison: Comparison, constant: &Expression) -> Result<BooleanArray, ArrowError> {
    use Comparison::{Contains, Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual, Prefix, Suffix};
    let Expression::Constant(literal) = constant else {
        return Err(ArrowError::NotYetImplemented(format!("a comparison with {constant:?}")));
    };
    let constant: ArrayRef = match literal {
        Literal::Number(number) => Arc::new(UInt64Array::from(vec![*number])),
        Literal::Integer(number) => Arc::new(Int64Array::from(vec![*number])),
        Literal::Instant(nanos) => Arc::new(TimestampNanosecondArray::from(vec![*nanos])),
        Literal::Uuid(bytes) => Arc::new(FixedSizeBinaryArray::try_from_iter([bytes].into_iter())?),
        Literal::Text(text) => Arc::new(StringArray::from(vec![&**text])),
        Literal::Bool(truth) => Arc::new(BooleanArray::from(vec![*truth])),
    };
    let constant = Scalar::new(cast(&constant, values.data_type())?);
    match comparison {
        Equal => cmp::eq(values, &constant),
        NotEqual => cmp::neq(values, &constant),
        Less => cmp::lt(values, &constant),
        LessOrEqual => cmp::lt_eq(values, &constant),
        Greater => cmp::gt(values, &constant),
        GreaterOrEqual => cmp::gt_eq(values, &constant),
        Prefix => like::starts_with(values, &constant),
        Suffix => like::ends_with(values, &constant),
        Contains => like::contains(values, &constant),
    }
}
