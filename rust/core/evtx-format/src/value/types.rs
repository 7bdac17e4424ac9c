//! The types of values: their type bytes (MS-EVEN6, section 2.2.12), names and sizes.

/// The type of a single value. Its discriminant is the type byte of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[allow(missing_docs)] // the names say it
pub enum Scalar {
    Null = 0,
    /// UTF-16LE text, up to its size. NULs in it are left out.
    String = 1,
    /// Text in an unnamed 8-bit code page.
    AnsiString = 2,
    Int8 = 3,
    UInt8 = 4,
    Int16 = 5,
    UInt16 = 6,
    Int32 = 7,
    UInt32 = 8,
    Int64 = 9,
    UInt64 = 10,
    Real32 = 11,
    Real64 = 12,
    /// 4 bytes. Windows stores bit masks in some booleans. A value that is neither 0 nor 1 is shown as a number.
    Bool = 13,
    Binary = 14,
    Guid = 15,
    /// A pointer-sized number of 4 or 8 bytes, shown in hexadecimal.
    SizeT = 16,
    /// A u64: 100 ns ticks since 1601-01-01 UTC.
    FileTime = 17,
    /// Eight u16: year, month, day of week, day, hour, minute, second, millisecond.
    SystemTime = 18,
    Sid = 19,
    HexInt32 = 20,
    HexInt64 = 21,
    EvtHandle = 32,
    /// A BinXML stream.
    BinXml = 33,
    EvtXml = 35,
}

/// The type of a value: a single value, or an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueType {
    /// The type of the value, or of the items of the array.
    pub scalar: Scalar,
    /// Whether the value is an array (bit 0x80 of the type byte).
    pub array: bool,
}

impl std::fmt::Display for ValueType {
    /// Writes the name of the type, as `UInt32` or `GUID`. `[]` follows the name of an array's items.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.scalar {
            Scalar::Bool => f.write_str("Boolean")?,
            Scalar::Guid => f.write_str("GUID")?,
            Scalar::FileTime => f.write_str("FILETIME")?,
            Scalar::SystemTime => f.write_str("SYSTEMTIME")?,
            Scalar::Sid => f.write_str("SID")?,
            other => write!(f, "{other:?}")?,
        }
        f.write_str(if self.array { "[]" } else { "" })
    }
}

impl ValueType {
    /// The type that a type byte names; `None` if it names none.
    #[inline]
    pub fn from_byte(byte: u8) -> Option<Self> {
        TYPES[usize::from(byte)]
    }

    /// The type byte.
    pub fn to_byte(self) -> u8 {
        self.scalar as u8 | if self.array { 0x80 } else { 0 }
    }
}

/// The types by type byte.
pub(crate) const TYPES: [Option<ValueType>; 256] = {
    use Scalar::*;
    let scalars = [
        Null, String, AnsiString, Int8, UInt8, Int16, UInt16, Int32, UInt32, Int64, UInt64, Real32, Real64, Bool,
        Binary, Guid, SizeT, FileTime, SystemTime, Sid, HexInt32, HexInt64, EvtHandle, BinXml, EvtXml,
    ];
    let mut types = [None; 256];
    let mut i = 0;
    while i < scalars.len() {
        let scalar = scalars[i];
        types[scalar as usize] = Some(ValueType { scalar, array: false });
        if !matches!(scalar, Null | EvtHandle | BinXml | EvtXml) {
            types[scalar as usize | 0x80] = Some(ValueType { scalar, array: true });
        }
        i += 1;
    }
    types
};

/// The usual sizes of a type. Their values pass [`Value::check`](crate::value::Value::check). Other sizes may pass too.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    size: u16,
    /// The bits of a size that must equal those of `size`.
    mask: u16,
}

impl Sizes {
    const ANY: Sizes = Sizes { size: 0, mask: 0 };

    /// By type byte. A type whose values must all be checked has all sizes here.
    pub(crate) const OF_TYPES: [Sizes; 256] = {
        let mut sizes = [Sizes::ANY; 256];
        let mut byte = 0;
        while byte < 256 {
            if let Some(value_type) = TYPES[byte]
                && let Some(usual) = usual_sizes(value_type)
            {
                sizes[byte] = usual;
            }
            byte += 1;
        }
        sizes
    };

    /// Not 0 if a size is not one of the usual sizes.
    #[inline]
    pub(crate) fn mismatch_bits(self, size: u16) -> u16 {
        (size ^ self.size) & self.mask
    }
}

/// The usual sizes of a type; `None` if every value of the type must be checked.
pub(crate) const fn usual_sizes(value_type: ValueType) -> Option<Sizes> {
    use Scalar::*;
    match (value_type.scalar, value_type.scalar.fixed_size()) {
        _ if value_type.array => None,
        (EvtHandle | EvtXml | Sid | SizeT, _) => None,
        (String, _) => Some(Sizes { size: 0, mask: 1 }),
        (_, Some(fixed)) => Some(Sizes {
            size: fixed as u16,
            mask: u16::MAX,
        }),
        (_, None) => Some(Sizes::ANY),
    }
}

impl Scalar {
    /// The size in bytes; `None` if values of the type have different sizes.
    #[inline]
    pub const fn fixed_size(self) -> Option<usize> {
        use Scalar::*;
        match self {
            Int8 | UInt8 => Some(1),
            Int16 | UInt16 => Some(2),
            Int32 | UInt32 | Real32 | Bool | HexInt32 => Some(4),
            Int64 | UInt64 | Real64 | FileTime | HexInt64 => Some(8),
            Guid | SystemTime => Some(16),
            _ => None,
        }
    }
}
