//! The type of the column of a field, made of the types that templates declare for the field.

use arrow_schema::Field;
use evtx_format::value::{Scalar, ValueType};

use super::columns::{EntryType, FieldType};

/// The type of the column for values of a BinXML type; `None` for the type of NULL, which fits any column.
pub(crate) fn column_type(value_type: ValueType) -> Option<EntryType> {
    let item = match value_type.scalar {
        Scalar::Null => return None,
        Scalar::Int8 => FieldType::Int8,
        Scalar::UInt8 => FieldType::UInt8,
        Scalar::Int16 => FieldType::Int16,
        Scalar::UInt16 => FieldType::UInt16,
        Scalar::Int32 => FieldType::Int32,
        Scalar::UInt32 | Scalar::HexInt32 => FieldType::UInt32,
        Scalar::Int64 => FieldType::Int64,
        Scalar::UInt64 | Scalar::HexInt64 | Scalar::SizeT => FieldType::UInt64,
        Scalar::Real32 => FieldType::Float32,
        Scalar::Real64 => FieldType::Float64,
        Scalar::Bool => FieldType::Bool,
        Scalar::Binary => FieldType::Bytes,
        Scalar::Guid => FieldType::Uuid,
        Scalar::FileTime | Scalar::SystemTime => FieldType::Time,
        Scalar::String | Scalar::AnsiString | Scalar::Sid | Scalar::EvtHandle | Scalar::BinXml | Scalar::EvtXml => {
            FieldType::Text
        }
    };
    let list = value_type.array;
    Some(EntryType { item, list })
}

/// The Arrow field of the column for values of a BinXML type, if no other type is in the column. It can be NULL.
pub fn column_field(name: &str, value_type: ValueType) -> Field {
    column_type(value_type).unwrap_or(TEXT).field(name)
}

/// The narrowest type that holds the values of both types, or text if no other type does. A list if one of them is.
pub(crate) fn unite(a: EntryType, b: EntryType) -> EntryType {
    EntryType {
        item: unite_items(a.item, b.item),
        list: a.list || b.list,
    }
}

/// The type of the column of a field that every template declares as NULL.
pub(crate) const TEXT: EntryType = EntryType {
    item: FieldType::Text,
    list: false,
};

/// As [`unite`], for single values.
fn unite_items(a: FieldType, b: FieldType) -> FieldType {
    use FieldType::{Float32, Float64, Int8, Int16, Int32, Int64, Int128, Text, UInt8, UInt16, UInt32, UInt64};
    if a == b {
        return a;
    }
    let (Some(a), Some(b)) = (Number::of(a), Number::of(b)) else {
        return Text;
    };
    let bits = a.bits.max(b.bits);
    if a.kind == Kind::Float || b.kind == Kind::Float {
        // A float holds every integer that fits its mantissa.
        return match bits {
            0..=24 => Float32,
            25..=53 => Float64,
            _ => Text,
        };
    }
    if a.kind == b.kind && a.kind == Kind::Unsigned {
        return match bits {
            0..=8 => UInt8,
            9..=16 => UInt16,
            17..=32 => UInt32,
            _ => UInt64,
        };
    }
    match bits {
        0..=7 => Int8,
        8..=15 => Int16,
        16..=31 => Int32,
        32..=63 => Int64,
        _ => Int128,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unsigned,
    Signed,
    Float,
}

/// A type of numbers, with the bits that it has for the magnitude of an integer: without the sign, and of a float the
/// mantissa alone.
struct Number {
    kind: Kind,
    bits: u32,
}

impl Number {
    /// `None` for a type that is not one of numbers.
    fn of(field_type: FieldType) -> Option<Self> {
        let (kind, bits) = match field_type {
            FieldType::UInt8 => (Kind::Unsigned, 8),
            FieldType::UInt16 => (Kind::Unsigned, 16),
            FieldType::UInt32 => (Kind::Unsigned, 32),
            FieldType::UInt64 => (Kind::Unsigned, 64),
            FieldType::Int8 => (Kind::Signed, 7),
            FieldType::Int16 => (Kind::Signed, 15),
            FieldType::Int32 => (Kind::Signed, 31),
            FieldType::Int64 => (Kind::Signed, 63),
            FieldType::Int128 => (Kind::Signed, 127),
            FieldType::Float32 => (Kind::Float, 24),
            FieldType::Float64 => (Kind::Float, 53),
            _ => return None,
        };
        Some(Number { kind, bits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FieldType::{
        Bool, Float32, Float64, Int8, Int16, Int32, Int64, Int128, Text, Time, UInt8, UInt16, UInt32, UInt64,
    };

    #[test]
    fn the_narrowest_type_holds_both() {
        for (a, b, both) in [
            (UInt8, UInt32, UInt32),
            (UInt8, Int8, Int16),
            (UInt32, Int32, Int64),
            (UInt32, Int64, Int64),
            (UInt64, Int8, Int128),
            (Int128, UInt64, Int128),
            (UInt16, Float32, Float32),
            (UInt32, Float32, Float64),
            (Float32, Float64, Float64),
            (Int64, Float64, Text),
            (Bool, UInt32, Text),
            (Time, UInt64, Text),
            (Text, UInt8, Text),
        ] {
            assert_eq!(unite_items(a, b), both, "{a:?}, {b:?}");
            assert_eq!(unite_items(b, a), both, "{b:?}, {a:?}");
        }
        let list = EntryType {
            item: UInt8,
            list: true,
        };
        let single = EntryType {
            item: Int16,
            list: false,
        };
        assert_eq!(
            unite(list, single),
            EntryType {
                item: Int16,
                list: true
            }
        );
    }
}
