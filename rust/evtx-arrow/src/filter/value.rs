//! The values that predicates compare: what a column holds, and constants.

use std::cmp::Ordering;
use std::sync::Arc;

use super::comparison::{Comparison, Test};
use crate::plan::Resolved;
use crate::schema::FieldType;

/// A constant that a column is compared with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Literal {
    /// Of a column of unsigned numbers, whatever their width.
    Number(u64),
    /// Of a column of signed numbers, whatever their width.
    Integer(i64),
    /// Nanoseconds since 1970-01-01 UTC.
    Instant(i64),
    /// The 16 bytes of a GUID, in the order of its text.
    Uuid([u8; 16]),
    /// UTF-8 text, compared byte by byte.
    Text(Box<str>),
    /// Of a column of truth values.
    Bool(bool),
}

/// A value of a record that is not NULL.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'v> {
    Number(u64),
    Integer(i64),
    Instant(i64),
    Uuid([u8; 16]),
    Text(&'v [u8]),
    Bool(bool),
}

impl Value<'_> {
    pub(super) fn compares(&self, comparison: Comparison, literal: &Literal) -> bool {
        match comparison.test() {
            Test::Order(holds) => self.order(literal).is_some_and(holds),
            Test::Text(holds) => match (self, literal) {
                (Value::Text(value), Literal::Text(literal)) => holds(value, literal.as_bytes()),
                _ => false,
            },
        }
    }

    /// `None` where the constant is of another type. No term takes such.
    fn order(&self, literal: &Literal) -> Option<Ordering> {
        Some(match (self, literal) {
            (Value::Number(value), Literal::Number(literal)) => value.cmp(literal),
            (Value::Integer(value), Literal::Integer(literal)) | (Value::Instant(value), Literal::Instant(literal)) => {
                value.cmp(literal)
            }
            (Value::Uuid(value), Literal::Uuid(literal)) => value.cmp(literal),
            (Value::Bool(value), Literal::Bool(literal)) => value.cmp(literal),
            (Value::Text(value), Literal::Text(literal)) => (*value).cmp(literal.as_bytes()),
            _ => return None,
        })
    }
}

/// Constants of one type, for a search by halves.
#[derive(Debug, Clone)]
pub(super) struct Constants(Arc<[Literal]>);

impl Constants {
    pub(super) fn new(mut literals: Vec<Literal>) -> Self {
        literals.sort_unstable();
        literals.dedup();
        Constants(literals.into())
    }

    /// Whether a value equals one of them.
    pub(super) fn have(&self, value: &Value<'_>) -> bool {
        let order = |literal: &Literal| value.order(literal).map_or(Ordering::Greater, Ordering::reverse);
        self.0.binary_search_by(order).is_ok()
    }
}

/// What is read of a value to compare it, as its column holds it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Read {
    /// With the greatest number that the column holds.
    Number(u64),
    /// With the greatest number that the column holds; the least is one less than its opposite.
    Integer(i64),
    Time,
    Uuid,
    Bool,
    Text,
}

impl Read {
    pub(super) fn of(field_type: FieldType) -> Option<Self> {
        Some(match field_type {
            FieldType::Time => Read::Time,
            FieldType::UInt8 => Read::Number(u8::MAX.into()),
            FieldType::UInt16 => Read::Number(u16::MAX.into()),
            FieldType::UInt32 => Read::Number(u32::MAX.into()),
            FieldType::UInt64 => Read::Number(u64::MAX),
            FieldType::Int8 => Read::Integer(i8::MAX.into()),
            FieldType::Int16 => Read::Integer(i16::MAX.into()),
            FieldType::Int32 => Read::Integer(i32::MAX.into()),
            FieldType::Int64 => Read::Integer(i64::MAX),
            FieldType::Bool => Read::Bool,
            FieldType::Text | FieldType::Name => Read::Text,
            FieldType::Uuid => Read::Uuid,
            // DuckDB compares them otherwise, or not with constants that the core has.
            FieldType::Int128 | FieldType::Float32 | FieldType::Float64 | FieldType::Bytes => return None,
        })
    }

    /// The value of what was found, but for text.
    pub(super) fn value(self, found: &Resolved<'_, '_>) -> Option<Value<'static>> {
        match self {
            Read::Number(greatest) => found.number().filter(|number| *number <= greatest).map(Value::Number),
            Read::Integer(greatest) => {
                let number = found.integer().and_then(|number| i64::try_from(number).ok());
                number
                    .filter(|number| (-1 - greatest..=greatest).contains(number))
                    .map(Value::Integer)
            }
            Read::Time => found.nanos().map(Value::Instant),
            Read::Uuid => found.uuid().map(Value::Uuid),
            Read::Bool => found.bool().map(Value::Bool),
            Read::Text => None,
        }
    }
}
