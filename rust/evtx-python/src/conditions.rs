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
use evtx_arrow::{Comparison, Expression, Literal, Pattern, Predicate, Table};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::types::is_text;
use crate::values::{Constant, constant};

/// What a condition says about a value.
#[derive(Debug, Clone)]
enum Test {
    /// The value is NULL.
    Null,
    /// The value is not NULL.
    NotNull,
    Compare(Comparison, Literal),
    /// The value equals one of these.
    In(Vec<Literal>),
    /// The value is not NULL and equals none of these.
    NotIn(Vec<Literal>),
    /// The text matches a pattern. The flag says whether case is ignored.
    Like(Box<str>, bool),
    /// The text does not match a pattern.
    NotLike(Box<str>, bool),
}

/// A condition on the values of a column, or of an entry of a map.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    /// The index of the column in the schema of the table.
    pub(crate) column: usize,
    key: Option<Box<str>>,
    test: Test,
}

/// A condition from Python: the column, perhaps the key of an entry, the operator and the values.
pub(crate) type Stated<'py> = (String, Option<String>, String, Vec<Bound<'py, PyAny>>);

/// Every operator.
const OPERATORS: &str = "= == != <> < <= > >= in, not in, between, is null, is not null, starts_with, ends_with, contains, like, \
                         not like, ilike, not ilike";

impl Condition {
    /// The conditions on the columns of a schema that a condition from Python stands for.
    ///
    /// # Errors
    /// `ValueError` for an unknown column or operator, or the wrong number of values; `TypeError` for values that the
    /// column cannot be compared with.
    pub(crate) fn of(schema: &Schema, stated: &Stated<'_>) -> PyResult<Vec<Self>> {
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
        let one = |test| {
            Ok(vec![Condition {
                column,
                key: key.as_deref().map(Into::into),
                test,
            }])
        };
        let count = |wanted: usize| match values.len() == wanted {
            true => Ok(()),
            false => {
                let found = values.len();
                let text = format!("the condition {operator} on {name} takes {wanted} values, not {found}");
                Err(PyValueError::new_err(text))
            }
        };
        let compare = |comparison: Comparison, value: &Bound<'_, PyAny>| {
            Ok::<_, PyErr>(match (constant(field, value)?, comparison) {
                (Constant::Literal(literal), _) => Test::Compare(comparison, literal),
                // Every value of the column compares in the same way.
                (Constant::Below, NotEqual | Greater | GreaterOrEqual)
                | (Constant::Above, NotEqual | Less | LessOrEqual) => Test::NotNull,
                (Constant::Below | Constant::Above, _) => Test::In(Vec::new()),
            })
        };
        let literals = || {
            let constants = values
                .iter()
                .map(|value| constant(field, value))
                .collect::<PyResult<Vec<_>>>()?;
            let literals = constants.into_iter().filter_map(|constant| match constant {
                Constant::Literal(literal) => Some(literal),
                Constant::Below | Constant::Above => None,
            });
            Ok::<Vec<_>, PyErr>(literals.collect())
        };
        let of_text = || {
            count(1)?;
            match constant(field, &values[0])? {
                Constant::Literal(Literal::Text(text)) => Ok(text),
                _ => Err(PyTypeError::new_err(format!(
                    "{operator} compares texts, but {name} has none"
                ))),
            }
        };
        let ordered = match operator.as_str() {
            "=" | "==" => Some(Equal),
            "!=" | "<>" => Some(NotEqual),
            "<" => Some(Less),
            "<=" => Some(LessOrEqual),
            ">" => Some(Greater),
            ">=" => Some(GreaterOrEqual),
            _ => None,
        };
        if let Some(comparison) = ordered {
            count(1)?;
            return one(compare(comparison, &values[0])?);
        }
        match operator.as_str() {
            "is null" => {
                count(0)?;
                one(Test::Null)
            }
            "is not null" => {
                count(0)?;
                one(Test::NotNull)
            }
            "in" => one(Test::In(literals()?)),
            "not in" => one(Test::NotIn(literals()?)),
            "between" => {
                count(2)?;
                let lower = one(compare(GreaterOrEqual, &values[0])?)?;
                Ok([lower, one(compare(LessOrEqual, &values[1])?)?].concat())
            }
            "starts_with" => one(Test::Compare(Prefix, Literal::Text(of_text()?))),
            "ends_with" => one(Test::Compare(Suffix, Literal::Text(of_text()?))),
            "contains" => one(Test::Compare(Contains, Literal::Text(of_text()?))),
            "like" => one(Test::Like(of_text()?, false)),
            "ilike" => one(Test::Like(of_text()?, true)),
            "not like" => one(Test::NotLike(of_text()?, false)),
            "not ilike" => one(Test::NotLike(of_text()?, true)),
            _ => Err(PyValueError::new_err(format!(
                "unknown operator \"{operator}\" in a condition on {name}: use one of {OPERATORS}"
            ))),
        }
    }

    /// The condition for the core: true wherever the condition is true.
    pub(crate) fn expression(&self) -> Expression {
        let value = || match &self.key {
            None => Expression::Column(self.column),
            Some(key) => Expression::Entry(self.column, key.clone()),
        };
        let not = |expression| Expression::Not(Box::new(expression));
        let constants = |literals: &[Literal]| literals.iter().cloned().map(Expression::Constant).collect();
        match &self.test {
            Test::Null => Expression::IsNull(Box::new(value())),
            Test::NotNull => not(Expression::IsNull(Box::new(value()))),
            Test::Compare(comparison, literal) => {
                Expression::Compare(*comparison, Box::new([value(), Expression::Constant(literal.clone())]))
            }
            Test::In(literals) => Expression::In(Box::new(value()), constants(literals)),
            Test::NotIn(literals) => not(Expression::In(Box::new(value()), constants(literals))),
            Test::Like(pattern, ignores_case) => Expression::Matches(
                Box::new(value()),
                Pattern {
                    text: pattern.clone(),
                    escape: Some('\\'),
                    ignores_case: *ignores_case,
                },
            ),
            Test::NotLike(..) => Expression::Unknown,
        }
    }

    /// Whether the core decides the condition in full, so that rows need no filter.
    pub(crate) fn is_decided(&self, table: &Table) -> bool {
        let is_pattern = matches!(self.test, Test::Like(..) | Test::NotLike(..));
        !is_pattern && Predicate::implied(table, &self.expression()).is_some()
    }

    /// The rows that fulfil the condition. `at` is the index of its column in the rows.
    ///
    /// # Errors
    /// [`ArrowError`] if a kernel of Arrow fails.
    pub(crate) fn filter(&self, rows: &RecordBatch, at: usize) -> Result<RecordBatch, ArrowError> {
        let column = rows.column(at);
        let column: ArrayRef = match &self.key {
            Some(key) => Arc::new(entry(column, key)?),
            None if is_text(column.data_type()) => cast(column, &DataType::Utf8)?,
            None => Arc::clone(column),
        };
        filter_record_batch(rows, &self.mask(&column)?)
    }

    /// For each row, whether the value fulfils the condition. NULL counts as false.
    fn mask(&self, values: &ArrayRef) -> Result<BooleanArray, ArrowError> {
        let any = |literals: &[Literal]| -> Result<BooleanBuffer, ArrowError> {
            let mut mask = BooleanBuffer::new_unset(values.len());
            for literal in literals {
                mask = &mask | &truths(&compared(values, Comparison::Equal, literal)?);
            }
            Ok(mask)
        };
        let nulls = || match values.logical_nulls() {
            Some(nulls) => nulls.into_inner(),
            None => BooleanBuffer::new_set(values.len()),
        };
        let matching = |pattern: &str, ignores_case: bool| {
            let pattern = Scalar::new(StringArray::from(vec![pattern]));
            match ignores_case {
                true => like::ilike(values, &pattern),
                false => like::like(values, &pattern),
            }
        };
        let mask = match &self.test {
            Test::Null => !&nulls(),
            Test::NotNull => nulls(),
            Test::Compare(comparison, literal) => truths(&compared(values, *comparison, literal)?),
            Test::In(literals) => any(literals)?,
            Test::NotIn(literals) => &nulls() & &!&any(literals)?,
            Test::Like(pattern, ignores_case) => truths(&matching(pattern, *ignores_case)?),
            Test::NotLike(pattern, ignores_case) => &nulls() & &!&truths(&matching(pattern, *ignores_case)?),
        };
        Ok(BooleanArray::new(mask, None))
    }
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

/// The truth of each row. NULL counts as false.
fn truths(array: &BooleanArray) -> BooleanBuffer {
    match array.nulls() {
        Some(nulls) => array.values() & nulls.inner(),
        None => array.values().clone(),
    }
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
fn compared(values: &ArrayRef, comparison: Comparison, literal: &Literal) -> Result<BooleanArray, ArrowError> {
    use Comparison::{Contains, Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual, Prefix, Suffix};
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
