//! The values that predicates compare.

use std::cmp::Ordering;
use std::sync::Arc;

use super::comparison::{Comparison, Test};
use super::search::Search;
use crate::plan::Resolved;
use crate::schema::FieldType;

/// A constant, with which a column is compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Literal {
    /// An unsigned number, for columns of unsigned numbers of any width.
    Number(u64),
    /// A signed number, for columns of signed numbers of up to 64 bits.
    Integer(i64),
    /// Nanoseconds since 1970-01-01 UTC.
    Instant(i64),
    /// The 16 bytes of a GUID, in the order of its text.
    Uuid([u8; 16]),
    /// UTF-8 text, compared byte by byte.
    Text(Box<str>),
    /// True or false.
    Bool(bool),
}

/// A value of a record that is not NULL, of one of the types of [`Literal`].
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
    /// Whether a comparison with a constant holds; false if the constant has another type.
    pub(super) fn compares(&self, comparison: Comparison, literal: &Literal) -> bool {
        match comparison.test() {
            Test::Order(holds) => self.order(literal).is_some_and(holds),
            Test::Text(holds) => match (self, literal) {
                (Value::Text(value), Literal::Text(literal)) => holds(value, literal.as_bytes()),
                _ => false,
            },
        }
    }

    /// Whether a search holds; true if the value is not a text.
    pub(super) fn holds(&self, search: &Search) -> bool {
        match self {
            Value::Text(value) => search.holds(value),
            _ => true,
        }
    }

    /// The order of the value relative to a constant; `None` if the constant has another type, which no term takes.
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

/// Constants of one type, sorted for a binary search.
#[derive(Debug, Clone)]
pub(super) struct Constants(Arc<[Literal]>);

impl Constants {
    /// The constants, given in any order.
    pub(super) fn new(mut literals: Vec<Literal>) -> Self {
        literals.sort_unstable();
        literals.dedup();
        Constants(literals.into())
    }

    /// Whether a value equals one of the constants.
    pub(super) fn have(&self, value: &Value<'_>) -> bool {
        let order = |literal: &Literal| value.order(literal).map_or(Ordering::Greater, Ordering::reverse);
        self.0.binary_search_by(order).is_ok()
    }
}

/// Names that are compared ignoring the case of ASCII letters, sorted for a binary search.
#[derive(Debug, Clone)]
pub(super) struct Names(Arc<[Box<str>]>);

impl Names {
    pub(super) fn new(names: &[Box<str>]) -> Self {
        let mut names: Vec<Box<str>> = names.iter().map(|name| name.to_ascii_lowercase().into()).collect();
        names.sort_unstable();
        names.dedup();
        Names(names.into())
    }

    /// Whether a value is one of them.
    pub(super) fn have(&self, value: &Value<'_>) -> bool {
        let Value::Text(text) = value else { return false };
        let found = self
            .0
            .binary_search_by(|name| name.bytes().cmp(text.iter().map(u8::to_ascii_lowercase)));
        found.is_ok()
    }
}

/// How a value is read to compare it, as its column holds it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Read {
    /// An unsigned number; NULL if it is greater than this, the greatest that the column holds.
    Number(u64),
    /// A signed number; NULL if it is greater than this, the greatest that the column holds, or below the least.
    Integer(i64),
    Time,
    Uuid,
    Bool,
    Text,
}

impl Read {
    /// How values of a type are read; `None` if predicates on such a column are not decided.
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
            // `Literal` has no constants of these types, and each engine orders floats in its own way.
            FieldType::Int128 | FieldType::Float32 | FieldType::Float64 | FieldType::Bytes => return None,
        })
    }

    /// The value that a plan found in a record; `None` for NULL, and for text, which needs a buffer.
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

#[cfg(test)]
mod tests {
    use evtx_format::value::Scalar;

    use super::*;

    /// The same comparison of two numbers in Rust.
    type Plain = fn(&u64, &u64) -> bool;

    const ORDERED: [(Comparison, Plain); 6] = [
        (Comparison::Equal, u64::eq),
        (Comparison::NotEqual, u64::ne),
        (Comparison::Less, u64::lt),
        (Comparison::LessOrEqual, u64::le),
        (Comparison::Greater, u64::gt),
        (Comparison::GreaterOrEqual, u64::ge),
    ];

    #[test]
    fn numbers_are_compared_as_they_are_ordered() {
        for (comparison, plain) in ORDERED {
            assert!(!comparison.is_of_text());
            let exchanged = comparison.exchanged().expect("the sides are alike");
            for (a, b) in [(0, 0), (0, 1), (1, 0), (u64::MAX, 0), (u64::MAX - 1, u64::MAX)] {
                let case = format!("{a} {comparison:?} {b}");
                let is_true = plain(&a, &b);
                assert_eq!(
                    Value::Number(a).compares(comparison, &Literal::Number(b)),
                    is_true,
                    "{case}"
                );
                assert_eq!(
                    Value::Number(b).compares(exchanged, &Literal::Number(a)),
                    is_true,
                    "{case}"
                );
            }
        }
        let signed = |a, b| Value::Integer(a).compares(Comparison::Less, &Literal::Integer(b));
        assert!(signed(i64::MIN, -1) && signed(-1, 0) && !signed(0, i64::MIN));
        let instant = |a, b| Value::Instant(a).compares(Comparison::Less, &Literal::Instant(b));
        assert!(instant(i64::MIN, i64::MAX) && !instant(0, -1));
        let uuid = |a, b| Value::Uuid([a; 16]).compares(Comparison::Less, &Literal::Uuid([b; 16]));
        assert!(uuid(1, 0x80) && !uuid(0x80, 1) && !uuid(1, 1));
        let bool = |a, b| Value::Bool(a).compares(Comparison::Less, &Literal::Bool(b));
        assert!(bool(false, true) && !bool(true, false));
    }

    #[test]
    fn texts_are_compared_byte_by_byte() {
        // The value, the constant, and whether the value starts with, ends with and contains the constant.
        let table = [
            ("abc", "ab", [true, false, true]),
            ("abc", "bc", [false, true, true]),
            ("abc", "b", [false, false, true]),
            ("abc", "", [true, true, true]),
            ("abc", "abc", [true, true, true]),
            ("abc", "abcd", [false, false, false]),
            ("abc", "B", [false, false, false]),
            ("", "a", [false, false, false]),
            ("a%b", "%", [false, false, true]),
            ("ab", "%", [false, false, false]),
            ("a_b", "_b", [false, true, true]),
            ("axb", "_b", [false, false, false]),
        ];
        for (value, literal, expected) in table {
            let (text, literal) = (Value::Text(value.as_bytes()), Literal::Text(literal.into()));
            let all = [Comparison::Prefix, Comparison::Suffix, Comparison::Contains];
            assert!(
                all.iter()
                    .all(|comparison| comparison.is_of_text() && comparison.exchanged().is_none())
            );
            assert_eq!(
                all.map(|comparison| text.compares(comparison, &literal)),
                expected,
                "{value} {literal:?}"
            );
        }
        let less = |a: &str, b: &str| Value::Text(a.as_bytes()).compares(Comparison::Less, &Literal::Text(b.into()));
        assert!(less("", "a") && less("Z", "a") && less("a", "aa") && less("z", "\u{e9}"));
        assert!(!less("a", "a"));
    }

    #[test]
    fn nothing_is_true_of_a_constant_of_another_type() {
        let (value, literal) = (Value::Number(1), Literal::Integer(1));
        for (comparison, _) in ORDERED {
            assert!(!value.compares(comparison, &literal), "{comparison:?}");
        }
        for comparison in [Comparison::Prefix, Comparison::Suffix, Comparison::Contains] {
            assert!(!value.compares(comparison, &Literal::Text("".into())), "{comparison:?}");
        }
        assert!(!Constants::new(vec![literal]).have(&value));
    }

    #[test]
    fn constants_are_found_in_any_order() {
        let constants = Constants::new([7, 3, u64::MAX, 3, 0].map(Literal::Number).into());
        for (number, expected) in [
            (0, true),
            (1, false),
            (3, true),
            (6, false),
            (7, true),
            (u64::MAX, true),
        ] {
            assert_eq!(constants.have(&Value::Number(number)), expected, "{number}");
        }
        let texts = Constants::new(["b", "", "ab"].map(|text| Literal::Text(text.into())).into());
        for (text, expected) in [("", true), ("a", false), ("ab", true), ("b", true), ("c", false)] {
            assert_eq!(texts.have(&Value::Text(text.as_bytes())), expected, "{text:?}");
        }
        assert!(!Constants::new(vec![]).have(&Value::Number(0)));
    }

    /// An integer, read as for a column of a type.
    fn read(field_type: FieldType, number: i64) -> Option<i128> {
        let bytes = number.to_le_bytes();
        let found = Resolved::Value(evtx_format::value::Value::new(Scalar::Int64, &bytes));
        match Read::of(field_type)?.value(&found)? {
            Value::Number(number) => Some(number.into()),
            Value::Integer(number) => Some(number.into()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_number_that_its_column_cannot_hold_is_null() {
        let unsigned = [
            (FieldType::UInt8, u8::MAX.into()),
            (FieldType::UInt16, u16::MAX.into()),
            (FieldType::UInt32, i64::from(u32::MAX)),
        ];
        for (field_type, greatest) in unsigned {
            assert_eq!(read(field_type, 0), Some(0), "{field_type:?}");
            assert_eq!(read(field_type, greatest), Some(greatest.into()), "{field_type:?}");
            assert_eq!(read(field_type, greatest + 1), None, "{field_type:?}");
            assert_eq!(read(field_type, -1), None, "{field_type:?}");
        }
        let signed = [
            (FieldType::Int8, i8::MIN.into(), i8::MAX.into()),
            (FieldType::Int16, i16::MIN.into(), i16::MAX.into()),
            (FieldType::Int32, i64::from(i32::MIN), i64::from(i32::MAX)),
        ];
        for (field_type, least, greatest) in signed {
            for fits in [least, -1, 0, greatest] {
                assert_eq!(read(field_type, fits), Some(fits.into()), "{field_type:?}");
            }
            for too_much in [least - 1, greatest + 1] {
                assert_eq!(read(field_type, too_much), None, "{field_type:?}");
            }
        }
        assert_eq!(read(FieldType::Int64, i64::MIN), Some(i64::MIN.into()));
        assert_eq!(read(FieldType::Int64, i64::MAX), Some(i64::MAX.into()));
        let bytes = u64::MAX.to_le_bytes();
        let greatest = Resolved::Value(evtx_format::value::Value::new(Scalar::UInt64, &bytes));
        let whole = Read::of(FieldType::UInt64).expect("compared").value(&greatest);
        assert!(matches!(whole, Some(Value::Number(u64::MAX))), "{whole:?}");
        assert!(Read::of(FieldType::Int64).expect("compared").value(&greatest).is_none());
    }

    #[test]
    fn every_type_is_read_as_its_column_holds_it() {
        let value = |scalar, bytes| Resolved::Value(evtx_format::value::Value::new(scalar, bytes));
        let read = |field_type, found: Resolved<'_, '_>| Read::of(field_type).and_then(|read| read.value(&found));
        let time = 116_444_736_000_000_010_u64.to_le_bytes();
        let time = read(FieldType::Time, value(Scalar::FileTime, &time));
        assert!(matches!(time, Some(Value::Instant(1000))), "{time:?}");
        let uuid = read(FieldType::Uuid, value(Scalar::Guid, &[7; 16]));
        assert!(matches!(uuid, Some(Value::Uuid(bytes)) if bytes == [7; 16]), "{uuid:?}");
        let truth = read(FieldType::Bool, value(Scalar::Bool, &[1, 0, 0, 0]));
        assert!(matches!(truth, Some(Value::Bool(true))), "{truth:?}");
        // A text needs a buffer, so it is not read here.
        for text in [FieldType::Text, FieldType::Name] {
            assert!(matches!(Read::of(text), Some(Read::Text)));
            assert!(read(text, value(Scalar::String, b"a\0")).is_none());
        }
        for not_compared in [
            FieldType::Int128,
            FieldType::Float32,
            FieldType::Float64,
            FieldType::Bytes,
        ] {
            assert!(Read::of(not_compared).is_none(), "{not_compared:?}");
        }
    }
}
