//! The type of a field's column, from the types that templates declare for the field.

use arrow_schema::Field;
use evtx_arrow::{ColumnType, FieldType};
use evtx_format::value::{Scalar, ValueType};

/// The column type for values of a BinXML type. `None` for `Null`, whose values fit any column.
pub(crate) fn column_type(value_type: ValueType) -> Option<ColumnType> {
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
    Some(ColumnType { item, list })
}

/// The Arrow field of the column for values of a BinXML type, if no other type is in the column. It can be NULL.
pub fn column_field(name: &str, value_type: ValueType) -> Field {
    column_type(value_type).unwrap_or(TEXT).field(name)
}

/// The narrowest type that holds the values of both types; text if no other type does. A list if one of them is a list.
pub(crate) fn unite(a: ColumnType, b: ColumnType) -> ColumnType {
    ColumnType {
        item: unite_items(a.item, b.item),
        list: a.list || b.list,
    }
}

/// The type of the column of a field whose type is not known.
pub(crate) const TEXT: ColumnType = ColumnType {
    item: FieldType::Text,
    list: false,
};

/// The types of unsigned numbers, narrowest first, each with the bits that it has for the magnitude of an integer.
const UNSIGNED: &[(u32, FieldType)] = &[
    (8, FieldType::UInt8),
    (16, FieldType::UInt16),
    (32, FieldType::UInt32),
    (64, FieldType::UInt64),
];

/// The same for signed numbers.
const SIGNED: &[(u32, FieldType)] = &[
    (7, FieldType::Int8),
    (15, FieldType::Int16),
    (31, FieldType::Int32),
    (63, FieldType::Int64),
    (127, FieldType::Int128),
];

/// The same for floats. They hold integers that fit into their mantissa.
const FLOATS: &[(u32, FieldType)] = &[(24, FieldType::Float32), (53, FieldType::Float64)];

fn bits_in(types: &[(u32, FieldType)], of: FieldType) -> Option<u32> {
    types.iter().find(|(_, known)| *known == of).map(|(bits, _)| *bits)
}

fn unite_items(a: FieldType, b: FieldType) -> FieldType {
    if a == b {
        return a;
    }
    let bits = |of| [UNSIGNED, SIGNED, FLOATS].iter().find_map(|types| bits_in(types, of));
    let (Some(a_bits), Some(b_bits)) = (bits(a), bits(b)) else {
        return FieldType::Text;
    };
    let [a_in, b_in] = [a, b].map(|of| move |types| bits_in(types, of).is_some());
    let types = if a_in(FLOATS) || b_in(FLOATS) {
        FLOATS
    } else if a_in(UNSIGNED) && b_in(UNSIGNED) {
        UNSIGNED
    } else {
        SIGNED
    };
    let fitting = types.iter().find(|(bits, _)| *bits >= a_bits.max(b_bits));
    fitting.map_or(FieldType::Text, |(_, fitting)| *fitting)
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
        let [list, single, both] = [(UInt8, true), (Int16, false), (Int16, true)];
        let of = |(item, list)| ColumnType { item, list };
        assert_eq!(unite(of(list), of(single)), of(both));
    }
}
