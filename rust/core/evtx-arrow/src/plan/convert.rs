//! Converts values to the type of a column. A value of another type is converted by its text: forwarded events have
//! numbers, times and GUIDs as strings.

use evtx_format::value::text::Escaping;
use evtx_format::value::{Scalar, Value, parse};

use super::source::{Constant, MAX_FIELD, Resolved};
use crate::schema::{COLUMNS, ColumnSource, FieldType};

/// Midnight at the start of 1601, which is the time 0 of Windows, in nanoseconds since 1970.
const NO_TIME: i128 = -11_644_473_600 * 1_000_000_000;

/// Whether an element of `System`, or an attribute of one, has a column, but not with this text: there, the column is NULL. A
/// time of 0 is no misfit.
pub fn is_misfit(element: &str, attribute: Option<&str>, text: &str) -> bool {
    let mut fields = system_fields();
    let field = fields.find(|&(own, own_attribute, _)| own == element && own_attribute == attribute);
    let is_number = |most: u64| parse::number(text).is_some_and(|number| number <= most);
    let fits = match field.map(|(.., field_type)| field_type) {
        Some(FieldType::UInt8) => is_number(u8::MAX.into()),
        Some(FieldType::UInt16) => is_number(u16::MAX.into()),
        Some(FieldType::UInt32) => is_number(u32::MAX.into()),
        Some(FieldType::UInt64) => is_number(u64::MAX),
        Some(FieldType::Uuid) => parse::uuid(text).is_some(),
        Some(FieldType::Time) => nanos_from_text(text).is_some() || parse::instant(text) == Some(NO_TIME),
        _ => return false,
    };
    !fits || text.len() > MAX_FIELD
}

/// The name of an element of `System` with a column.
pub fn system_element(name: &str) -> Option<&'static str> {
    system_fields()
        .map(|(element, ..)| element)
        .find(|element| *element == name)
}

/// The elements of `System` with columns, the attributes of these, and the types of the columns.
fn system_fields() -> impl Iterator<Item = (&'static str, Option<&'static str>, FieldType)> {
    COLUMNS.iter().filter_map(|column| match column.source {
        ColumnSource::Path(path, field_type) if path.in_system => Some((path.elements[1], path.attribute, field_type)),
        _ => None,
    })
}

impl<'r> Resolved<'_, 'r> {
    /// Converts the value, or else its text, if that has at most [`MAX_FIELD`] bytes.
    #[inline(always)]
    fn convert<T>(
        &self,
        binary: impl Fn(Value<'r>) -> Option<T>,
        from_text: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        match self {
            Resolved::Constant(Constant { text, .. }) if text.len() > MAX_FIELD => None,
            Resolved::Constant(constant) => from_text(&constant.text),
            Resolved::Value(value) => convert(value, binary, from_text),
            Resolved::Concat(..) => from_text(&self.text()?),
        }
    }

    /// An integer that is not negative.
    #[inline(always)]
    pub(crate) fn number(&self) -> Option<u64> {
        self.convert(Value::to_u64, parse::number)
    }

    /// An integer, which can be negative.
    pub(crate) fn integer(&self) -> Option<i128> {
        self.convert(Value::to_i128, parse::integer)
    }

    pub(crate) fn float(&self) -> Option<f64> {
        self.convert(Value::to_f64, parse::float)
    }

    /// A boolean. A bit mask is not one.
    pub(crate) fn bool(&self) -> Option<bool> {
        self.convert(|_| None, parse::boolean)
    }

    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        let binary = |value: Value<'r>| (value.scalar() == Some(Scalar::Binary)).then(|| value.bytes.to_vec());
        self.convert(binary, parse::bytes)
    }

    /// An instant, in nanoseconds since 1970-01-01 UTC.
    #[inline(always)]
    pub(crate) fn nanos(&self) -> Option<i64> {
        match self {
            Resolved::Constant(Constant { time: Some(nanos), .. }) => *nanos,
            Resolved::Value(value) => nanos(value),
            _ => self.convert(|_| None, nanos_from_text),
        }
    }

    /// The value as the plan of a record's tree has it.
    pub(super) fn constant(self) -> Constant {
        let time = match self {
            Resolved::Constant(constant) => return constant.clone(),
            Resolved::Value(value) => is_time(&value).then(|| nanos(&value)),
            Resolved::Concat(..) => None,
        };
        let mut text = Vec::new();
        self.push_entry(&mut text);
        Constant {
            time,
            items: self.items().into_iter().flatten().map(Self::constant).collect(),
            ..text.into()
        }
    }

    /// The 16 bytes of a GUID, in the order of its text.
    #[inline(always)]
    pub(crate) fn uuid(&self) -> Option<[u8; 16]> {
        self.convert(Value::to_uuid, parse::uuid)
    }
}

/// Converts the single item of an array, or else the text of the value.
// Out of line, because most values do not need it. By reference, because moving a value right after it was written stalls
// the processor.
#[cold]
fn by_text<'v, T>(
    value: &Value<'v>,
    binary: impl FnOnce(Value<'v>) -> Option<T>,
    from_text: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    let value = value.single();
    binary(value).or_else(|| {
        let mut text = Vec::new();
        value.push_text(&mut text, Escaping::Plain);
        from_text(&String::from_utf8_lossy(&text))
    })
}

/// Converts a value itself, or else [by its text](by_text).
#[inline(always)]
fn convert<'v, T>(
    value: &Value<'v>,
    binary: impl Fn(Value<'v>) -> Option<T>,
    from_text: impl FnOnce(&str) -> Option<T>,
) -> Option<T> {
    match binary(*value) {
        None if !value.is_null() => by_text(value, binary, from_text),
        found => found,
    }
}

/// An instant, in nanoseconds since 1970-01-01 UTC.
#[inline(always)]
pub(super) fn nanos(value: &Value<'_>) -> Option<i64> {
    convert(value, Value::to_unix_nanos, |text| {
        // The text of a time past the year 9999 shows another year.
        nanos_from_text(text).filter(|_| !is_time(value))
    })
}

/// Whether the value is a time, or an array of times.
pub(super) fn is_time(value: &Value<'_>) -> bool {
    matches!(value.value_type.scalar, Scalar::FileTime | Scalar::SystemTime)
}

/// An instant from [its text](parse::instant). `None` for the last nanosecond at either end, which DuckDB takes for infinity.
fn nanos_from_text(text: &str) -> Option<i64> {
    let nanos = i64::try_from(parse::instant(text)?).ok()?;
    (nanos.unsigned_abs() < i64::MAX.unsigned_abs()).then_some(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FILETIME of 1970-01-01.
    const EPOCH: u64 = 116_444_736_000_000_000;

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    /// What is made of the value of a type.
    fn of<'v, T>(convert: impl Fn(&Resolved<'v, 'v>) -> T, scalar: Scalar, bytes: &'v [u8]) -> T {
        convert(&Resolved::Value(Value::new(scalar, bytes)))
    }

    /// What is made of an array of a type.
    fn of_array<'v, T>(convert: impl Fn(&Resolved<'v, 'v>) -> T, scalar: Scalar, bytes: &'v [u8]) -> T {
        let mut value = Value::new(scalar, bytes);
        value.value_type.array = true;
        convert(&Resolved::Value(value))
    }

    #[test]
    fn texts_that_no_column_takes() {
        for (element, attribute, text, expected) in [
            ("EventID", None, "4624", false),
            ("EventID", None, " 0x10 ", false),
            ("EventID", None, "4624.5", true),
            ("EventID", None, "4294967296", true),
            ("EventID", Some("Qualifiers"), "65536", true),
            ("Level", None, "255", false),
            ("Level", None, "256", true),
            ("Keywords", None, "0xFFFFFFFFFFFFFFFF", false),
            ("Keywords", None, "0x1FFFFFFFFFFFFFFFF", true),
            ("TimeCreated", Some("SystemTime"), "2024-03-05T08:00:00Z", false),
            ("TimeCreated", Some("SystemTime"), "1601-01-01T00:00:00Z", false),
            ("TimeCreated", Some("SystemTime"), "2300-01-01T00:00:00Z", true),
            ("TimeCreated", Some("SystemTime"), "2262-04-11T23:47:16.854775807", true),
            ("TimeCreated", Some("RawTime"), "x", false),
            ("Correlation", Some("ActivityID"), "{1}", true),
            ("Channel", None, "x", false),
            ("Other", None, "x", false),
        ] {
            assert_eq!(
                is_misfit(element, attribute, text),
                expected,
                "{element} {attribute:?} {text}"
            );
        }
        assert!(is_misfit("EventID", None, &("0".repeat(MAX_FIELD) + "7")));
        assert_eq!(
            [system_element("EventID"), system_element("Other")],
            [Some("EventID"), None]
        );
    }

    #[test]
    fn numbers_are_decimal_or_hexadecimal_text() {
        let greatest = i128::from(u64::MAX);
        let table = [
            ("0", Some(0)),
            (" 4624\t", Some(4624)),
            ("007", Some(7)),
            ("18446744073709551615", Some(greatest)),
            ("0x8020000000000000", Some(0x8020_0000_0000_0000)),
            ("0Xff", Some(255)),
            (" 0xFFFFFFFFFFFFFFFF ", Some(greatest)),
        ];
        for (text, expected) in table {
            assert_eq!(parse::number(text).map(i128::from), expected, "{text:?}");
            assert_eq!(parse::integer(text), expected, "{text:?}");
        }
        let none = ["", " ", "+1", "0x", "0x+1", "+0x1", "0x-1", "ff", "1.5", "1 2"];
        let too_large = ["18446744073709551616", "0x10000000000000000"];
        for none in none.into_iter().chain(too_large) {
            assert_eq!(parse::number(none), None, "{none:?}");
            assert_eq!(parse::integer(none), None, "{none:?}");
        }
        let negative = [
            ("-1", Some(-1)),
            (" -0 ", Some(0)),
            ("-9223372036854775808", Some(i64::MIN.into())),
            ("-170141183460469231731687303715884105727", Some(-i128::MAX)),
            ("-170141183460469231731687303715884105729", None),
            ("-", None),
            ("--1", None),
            ("-+1", None),
            ("- 1", None),
            ("-0x1", None),
        ];
        for (text, expected) in negative {
            assert_eq!(parse::number(text), None, "{text:?}");
            assert_eq!(parse::integer(text), expected, "{text:?}");
        }
    }

    #[test]
    fn integers_keep_their_sign_at_the_limits_of_their_types() {
        use Scalar::{Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
        let (least, greatest) = (i64::MIN.to_le_bytes(), [0xff; 8]);
        let table: [(Scalar, &[u8], i128); 11] = [
            (Int8, &[0x80], i8::MIN.into()),
            (Int8, &[0x7f], i8::MAX.into()),
            (Int16, &[0, 0x80], i16::MIN.into()),
            (Int32, &[0, 0, 0, 0x80], i32::MIN.into()),
            (Int64, &least, i64::MIN.into()),
            (Int64, &greatest, -1),
            (UInt8, &[0xff], u8::MAX.into()),
            (UInt16, &[0xff; 2], u16::MAX.into()),
            (UInt32, &[0xff; 4], u32::MAX.into()),
            (UInt64, &greatest, u64::MAX.into()),
            (UInt64, &[0; 8], 0),
        ];
        for (scalar, bytes, expected) in table {
            assert_eq!(of(Resolved::integer, scalar, bytes), Some(expected), "{scalar:?}");
            assert_eq!(
                of(Resolved::number, scalar, bytes),
                u64::try_from(expected).ok(),
                "{scalar:?}"
            );
            assert_eq!(of(Resolved::float, scalar, bytes), Some(expected as f64), "{scalar:?}");
        }
    }

    #[test]
    fn values_go_by_way_of_their_text() {
        let text = utf16(" -7 ");
        assert_eq!(of(Resolved::integer, Scalar::String, &text), Some(-7));
        assert_eq!(of(Resolved::number, Scalar::String, &text), None);
        assert_eq!(of(Resolved::float, Scalar::String, &text), Some(-7.0));
        assert_eq!(of(Resolved::number, Scalar::AnsiString, b"0x10"), Some(16));
        assert_eq!(
            of(Resolved::nanos, Scalar::String, &utf16("1970-01-01T00:00:01Z")),
            Some(1_000_000_000)
        );
        assert_eq!(of(Resolved::bool, Scalar::String, &utf16("true")), Some(true));
        assert_eq!(
            of(Resolved::bytes, Scalar::String, &utf16("0aFf")),
            Some(vec![0x0a, 0xff])
        );
        assert_eq!(of(Resolved::nanos, Scalar::UInt64, &[0; 8]), None);
        // An array of one item is that item.
        let seven = utf16("7\0");
        assert_eq!(of_array(Resolved::number, Scalar::UInt16, &[7, 0]), Some(7));
        assert_eq!(of_array(Resolved::number, Scalar::String, &seven), Some(7));
        assert_eq!(of_array(Resolved::number, Scalar::UInt16, &[7, 0, 8, 0]), None);
        assert_eq!(of_array(Resolved::integer, Scalar::Int8, &[0xff]), Some(-1));
        assert_eq!(
            of_array(Resolved::float, Scalar::Real32, &1.5_f32.to_le_bytes()),
            Some(1.5)
        );
        assert_eq!(
            of_array(Resolved::nanos, Scalar::FileTime, &EPOCH.to_le_bytes()),
            Some(0)
        );
        assert_eq!(of_array(Resolved::uuid, Scalar::Guid, &[9; 16]), Some([9; 16]));
    }

    #[test]
    fn null_and_sizes_that_do_not_fit_are_nothing() {
        let null = Resolved::Value(Value::null());
        assert_eq!((null.number(), null.integer(), null.float()), (None, None, None));
        assert_eq!(
            (null.nanos(), null.uuid(), null.bytes(), null.bool()),
            (None, None, None, None)
        );
        for (scalar, short) in [
            (Scalar::UInt32, 3),
            (Scalar::Int64, 7),
            (Scalar::HexInt32, 0),
            (Scalar::Int8, 0),
        ] {
            assert_eq!(of(Resolved::number, scalar, &[1; 8][..short]), None, "{scalar:?}");
            assert_eq!(of(Resolved::integer, scalar, &[1; 8][..short]), None, "{scalar:?}");
        }
        assert_eq!(of(Resolved::float, Scalar::Real64, &[0; 7]), None);
        assert_eq!(of(Resolved::nanos, Scalar::FileTime, &[0; 7]), None);
        assert_eq!(of(Resolved::uuid, Scalar::Guid, &[0; 15]), None);
        // Bytes after the value are ignored.
        assert_eq!(of(Resolved::number, Scalar::UInt16, &[1, 2, 3, 4]), Some(0x0201));
    }

    #[test]
    fn floats_are_decimal_text() {
        let table = [("1.5", 1.5), (" -2e3 ", -2000.0), ("1e400", f64::INFINITY), ("0", 0.0)];
        for (text, expected) in table {
            assert_eq!(parse::float(text), Some(expected), "{text:?}");
        }
        assert!(parse::float("NaN").is_some_and(f64::is_nan));
        for none in ["", "0x10", "1,5"] {
            assert_eq!(parse::float(none), None, "{none:?}");
        }
        assert_eq!(
            of(Resolved::float, Scalar::Real64, &f64::MIN.to_le_bytes()),
            Some(f64::MIN)
        );
        assert_eq!(of(Resolved::float, Scalar::Bool, &[1, 0, 0, 0]), None);
    }

    #[test]
    fn truth_is_neither_a_number_nor_a_mask() {
        let table = [
            (0, Some(false), None),
            (1, Some(true), None),
            (2, None, Some(2)),
            (-1, None, None),
        ];
        for (stored, truth, mask) in table {
            let stored = i32::to_le_bytes(stored);
            assert_eq!(of(Resolved::bool, Scalar::Bool, &stored), truth, "{stored:?}");
            assert_eq!(of(Resolved::number, Scalar::Bool, &stored), mask, "{stored:?}");
        }
        for none in ["True", " true", "1", ""] {
            assert_eq!(parse::boolean(none), None, "{none:?}");
        }
        assert_eq!(parse::boolean("false"), Some(false));
    }

    #[test]
    fn bytes_are_pairs_of_digits() {
        let table: [(&str, Option<&[u8]>); 7] = [
            ("", Some(&[])),
            ("00ffA5", Some(&[0, 0xff, 0xa5])),
            ("f0", Some(&[0xf0])),
            ("0", None),
            ("0g", None),
            ("g0", None),
            ("+1", None),
        ];
        for (text, expected) in table {
            assert_eq!(parse::bytes(text).as_deref(), expected, "{text:?}");
        }
        assert_eq!(
            of(Resolved::bytes, Scalar::Binary, b"0a"),
            Some(b"0a".to_vec()),
            "not their text"
        );
        assert_eq!(of(Resolved::bytes, Scalar::Binary, &[]), Some(vec![]));
        assert_eq!(
            of(Resolved::bytes, Scalar::UInt8, &[16]),
            Some(vec![0x16]),
            "by way of the text"
        );
    }

    #[test]
    fn times_fit_or_are_nothing() {
        let last = i64::MAX as u64 / 100;
        let table = [
            (0, None),
            (EPOCH, Some(0)),
            (EPOCH - 1, Some(-100)),
            (EPOCH + last, Some(9_223_372_036_854_775_800)),
            (EPOCH + last + 1, None),
            (EPOCH - last, Some(-9_223_372_036_854_775_800)),
            (EPOCH - last - 1, None),
            (u64::MAX, None),
            // Its text shows 1677.
            (3_179_906_215_631_452_242, None),
        ];
        for (ticks, expected) in table {
            assert_eq!(
                of(Resolved::nanos, Scalar::FileTime, &ticks.to_le_bytes()),
                expected,
                "{ticks}"
            );
        }
        let texts = [
            ("1970-01-01T00:00:01.123456789Z", Some(1_123_456_789)),
            (" 1970-01-01T01:00:00+01:00 ", Some(0)),
            // DuckDB takes the last nanosecond for infinity.
            ("1677-09-21T00:12:43.145224194Z", Some(1 - i64::MAX)),
            ("1677-09-21T00:12:43.145224193Z", None),
            ("1677-09-21T00:12:43.145224191Z", None),
            ("2262-04-11T23:47:16.854775806Z", Some(i64::MAX - 1)),
            ("2262-04-11T23:47:16.854775807Z", None),
            ("2262-04-11T23:47:16.854775808Z", None),
            ("1601-01-01T00:00:00Z", None),
            ("1970-01-01T00:00:00", Some(0)),
            ("1970-01-01 00:00:01.5 UTC", Some(1_500_000_000)),
            ("1970-01-01", None),
            ("yesterday", None),
        ];
        for (text, expected) in texts {
            assert_eq!(nanos_from_text(text), expected, "{text:?}");
        }
        let time = [2024, 2, 0, 29, 0, 0, 0, 1].map(u16::to_le_bytes);
        assert_eq!(
            of(Resolved::nanos, Scalar::SystemTime, time.as_flattened()),
            Some(1_709_164_800_001_000_000)
        );
        let no_time = [2023, 2, 0, 29, 0, 0, 0, 1].map(u16::to_le_bytes);
        // Windows shows 1601-01-01 for it.
        assert_eq!(of(Resolved::nanos, Scalar::SystemTime, no_time.as_flattened()), None);
    }

    #[test]
    fn guids_have_braces_or_not() {
        let guid = *b"\x54\x84\x96\x25\x54\x78\x49\x94\xa5\xba\x3e\x3b\x03\x28\xc3\x0d";
        for text in [
            "{54849625-5478-4994-A5BA-3E3B0328C30D}",
            " 54849625-5478-4994-a5ba-3e3b0328c30d ",
        ] {
            assert_eq!(parse::uuid(text), Some(guid), "{text:?}");
            assert_eq!(of(Resolved::uuid, Scalar::String, &utf16(text)), Some(guid), "{text:?}");
        }
        let stored = *b"\x25\x96\x84\x54\x78\x54\x94\x49\xa5\xba\x3e\x3b\x03\x28\xc3\x0d";
        assert_eq!(of(Resolved::uuid, Scalar::Guid, &stored), Some(guid));
        for none in ["54849625", "", "{54849625-5478-4994-A5BA-3E3B0328C30D"] {
            assert_eq!(parse::uuid(none), None, "{none:?}");
        }
    }
}
