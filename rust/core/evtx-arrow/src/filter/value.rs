//! The values that predicates compare.

use std::sync::Arc;

use super::comparison::Comparison;
use crate::plan::Resolved;
use crate::schema::FieldType;

/// A value that is not NULL, whose text has type `T`. Values of one type are ordered as DuckDB and Spark order them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Typed<T> {
    /// An unsigned number, for columns of unsigned numbers of any width.
    Number(u64),
    /// A signed number, for columns of signed numbers of up to 64 bits.
    Integer(i64),
    /// Nanoseconds since 1970-01-01 UTC.
    Instant(i64),
    /// The 16 bytes of a GUID, in the order of its text.
    Uuid([u8; 16]),
    /// UTF-8 text, compared byte by byte.
    Text(T),
    /// True or false.
    Bool(bool),
}

/// A constant, with which a column is compared.
pub type Literal = Typed<Box<str>>;

/// A value of a record.
pub(super) type Value<'v> = Typed<&'v [u8]>;

impl Literal {
    /// The constant as the value of a record.
    fn as_value(&self) -> Value<'_> {
        match self {
            Typed::Number(number) => Typed::Number(*number),
            Typed::Integer(number) => Typed::Integer(*number),
            Typed::Instant(nanos) => Typed::Instant(*nanos),
            Typed::Uuid(bytes) => Typed::Uuid(*bytes),
            Typed::Text(text) => Typed::Text(text.as_bytes()),
            Typed::Bool(truth) => Typed::Bool(*truth),
        }
    }
}

impl Value<'_> {
    /// Whether a comparison with a constant of the same type holds.
    pub(super) fn compares(&self, comparison: Comparison, literal: &Literal) -> bool {
        let literal = literal.as_value();
        let texts = |holds: fn(&[u8], &[u8]) -> bool| match (self, literal) {
            (Typed::Text(text), Typed::Text(literal)) => holds(text, literal),
            _ => false,
        };
        match comparison {
            Comparison::Equal => *self == literal,
            Comparison::NotEqual => *self != literal,
            Comparison::Less => *self < literal,
            Comparison::LessOrEqual => *self <= literal,
            Comparison::Greater => *self > literal,
            Comparison::GreaterOrEqual => *self >= literal,
            Comparison::Prefix => texts(|text, start| text.starts_with(start)),
            Comparison::Suffix => texts(|text, end| text.ends_with(end)),
            Comparison::Contains => texts(|text, part| memchr::memmem::find(text, part).is_some()),
        }
    }
}

/// How texts are compared with constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    Kept,
    /// The case of ASCII letters is ignored. The constants are in lower case.
    Ignored,
    /// The same, and a text with other letters equals each constant: one of them, `K`, is an ASCII letter in lower case.
    OnlyAscii,
}

/// Constants of one type, sorted for a binary search.
#[derive(Debug, Clone)]
pub(super) struct Constants {
    literals: Arc<[Literal]>,
    case: Case,
}

impl Constants {
    /// The constants, given in any order.
    pub(super) fn new(mut literals: Vec<Literal>) -> Self {
        literals.sort_unstable();
        literals.dedup();
        Constants {
            literals: literals.into(),
            case: Case::Kept,
        }
    }

    /// Names that are compared ignoring the case of ASCII letters.
    pub(super) fn names(names: &[Box<str>]) -> Self {
        let literals = names.iter().map(|name| Literal::Text(name.to_ascii_lowercase().into()));
        Constants {
            case: Case::Ignored,
            ..Constants::new(literals.collect())
        }
    }

    /// Constants for texts that are compared in lower case. They are a hint: all texts with other letters than ASCII's count as found.
    /// `None` if one of the constants has such a letter, or is not a text.
    pub(super) fn in_lower_case(literals: Vec<Literal>) -> Option<Self> {
        let is_ascii = |literal: &Literal| matches!(literal, Typed::Text(text) if text.is_ascii());
        literals.iter().all(is_ascii).then(|| Constants {
            case: Case::OnlyAscii,
            ..Constants::new(literals)
        })
    }

    /// Whether a value of the same type equals one of the constants.
    pub(super) fn have(&self, value: &Value<'_>) -> bool {
        if let (Case::OnlyAscii, Typed::Text(text)) = (self.case, value)
            && !text.is_ascii()
        {
            return true;
        }
        let found = self.literals.binary_search_by(|literal| match (literal, value) {
            (Typed::Text(name), Typed::Text(text)) if self.case != Case::Kept => {
                name.bytes().cmp(text.iter().map(u8::to_ascii_lowercase))
            }
            _ => literal.as_value().cmp(value),
        });
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

    #[test]
    fn texts_in_lower_case_are_found_among_constants() {
        let texts = |texts: &[&str]| texts.iter().map(|&text| Literal::Text(text.into())).collect();
        let constants = Constants::in_lower_case(texts(&["kernel", "mssql", "Never"])).expect("they are in ASCII");
        let known = [
            ("KERNEL", true),
            ("\u{212a}ernel", true),
            ("kernels", false),
            ("Never", false),
            ("", false),
        ];
        for (text, is_known) in known {
            assert_eq!(constants.have(&Value::Text(text.as_bytes())), is_known, "{text}");
        }
        assert!(Constants::in_lower_case(texts(&["kernel", "ä"])).is_none());
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
            let holds = all.map(|comparison| text.compares(comparison, &literal));
            assert_eq!(holds, expected, "{value} {literal:?}");
        }
    }

    #[test]
    fn constants_are_found_in_any_order() {
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
        for (field_type, least, greatest) in [
            (FieldType::UInt8, 0, u8::MAX.into()),
            (FieldType::UInt16, 0, u16::MAX.into()),
            (FieldType::UInt32, 0, u32::MAX.into()),
            (FieldType::Int8, i8::MIN.into(), i8::MAX.into()),
            (FieldType::Int16, i16::MIN.into(), i16::MAX.into()),
            (FieldType::Int32, i32::MIN.into(), i32::MAX.into()),
        ] {
            for fits in [least, 0, greatest] {
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
        use FieldType::{Bytes, Float32, Float64, Int128};
        assert!(
            [Int128, Float32, Float64, Bytes]
                .into_iter()
                .all(|it| Read::of(it).is_none())
        );
    }
}
