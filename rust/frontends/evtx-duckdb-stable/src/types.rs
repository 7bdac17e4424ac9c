//! Types and values of DuckDB, which are freed when they are dropped.

use std::ffi::{CStr, CString, c_char};

use arrow_schema::{DataType, Field};
use evtx_detect::{ENUMS, enum_of};
use evtx_ffi::{EvtxValueKind, SqlValue, duckdb_type};

use crate::api::*;

/// Declares the numbers of types, from 0 on, and their names.
macro_rules! types {
    ($($name:ident)*) => {
        /// The numbers of types: `duckdb_type`.
        #[allow(dead_code, clippy::upper_case_acronyms, non_camel_case_types)]
        pub(crate) mod id {
            enum Type { $($name),* }
            $(pub(crate) const $name: u32 = Type::$name as u32;)*
            /// Their names.
            pub(crate) const NAMES: &[&str] = &[$(stringify!($name)),*];
        }
    };
}

types! {
    INVALID BOOLEAN TINYINT SMALLINT INTEGER BIGINT UTINYINT USMALLINT UINTEGER UBIGINT FLOAT DOUBLE
    TIMESTAMP DATE TIME INTERVAL HUGEINT VARCHAR BLOB DECIMAL TIMESTAMP_S TIMESTAMP_MS TIMESTAMP_NS
    ENUM LIST STRUCT MAP UUID UNION BIT TIME_TZ TIMESTAMP_TZ UHUGEINT ARRAY ANY
}

/// A text for DuckDB, which ends texts at the first NUL.
pub(crate) fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "\\0")).unwrap_or_default()
}

/// A text of DuckDB; U+FFFD replaces bytes that are not UTF-8.
///
/// # Safety
/// `text` is null or ends with a NUL.
pub(crate) unsafe fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: by the contract of this function.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// A text that belongs to the caller, and is freed.
///
/// # Safety
/// As for [`text_of`]. DuckDB returned it.
pub(crate) unsafe fn taken(text: *mut c_char) -> String {
    // SAFETY: by the contract of this function.
    unsafe {
        let owned = text_of(text);
        duckdb_free(text.cast());
        owned
    }
}

/// A type.
#[derive(Debug)]
pub(crate) struct LogicalType(pub(crate) duckdb_logical_type);

impl Drop for LogicalType {
    fn drop(&mut self) {
        // SAFETY: it is a type, which is destroyed once.
        unsafe { duckdb_destroy_logical_type(&mut self.0) };
    }
}

impl LogicalType {
    /// The type with a number. It has no parameters.
    pub(crate) fn new(id: u32) -> Self {
        // SAFETY: any number is allowed.
        LogicalType(unsafe { duckdb_create_logical_type(id) })
    }

    /// The type with one of the names of types. It has no parameters.
    pub(crate) fn with_name(name: &str) -> Self {
        let found = id::NAMES.iter().position(|known| *known == name);
        LogicalType::new(found.map_or(id::VARCHAR, |found| found as u32))
    }

    /// Lists of items.
    pub(crate) fn list(item: &LogicalType) -> Self {
        // SAFETY: it is a type.
        LogicalType(unsafe { duckdb_create_list_type(item.0) })
    }

    /// Maps from keys to values.
    pub(crate) fn map(key: &LogicalType, value: &LogicalType) -> Self {
        // SAFETY: they are types.
        LogicalType(unsafe { duckdb_create_map_type(key.0, value.0) })
    }

    fn structure<'a>(fields: impl Iterator<Item = &'a Field>) -> Self {
        let (names, types): (Vec<CString>, Vec<LogicalType>) = fields
            .map(|field| (c_text(field.name()), LogicalType::of(field)))
            .unzip();
        let mut names: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let mut types: Vec<duckdb_logical_type> = types.iter().map(|field| field.0).collect();
        // SAFETY: both have `len` elements.
        LogicalType(unsafe { duckdb_create_struct_type(types.as_mut_ptr(), names.as_mut_ptr(), names.len() as u64) })
    }

    /// An enum with a name.
    pub(crate) fn enumeration(name: &str, values: &[&str]) -> Self {
        let values: Vec<CString> = values.iter().map(|value| c_text(value)).collect();
        let mut values: Vec<*const c_char> = values.iter().map(|value| value.as_ptr()).collect();
        // SAFETY: it has `len` elements.
        let made = LogicalType(unsafe { duckdb_create_enum_type(values.as_mut_ptr(), values.len() as u64) });
        made.named(&c_text(name))
    }

    fn named(self, name: &CStr) -> Self {
        // SAFETY: it is a type.
        unsafe { duckdb_logical_type_set_alias(self.0, name.as_ptr()) };
        self
    }

    /// The type of a column with an Arrow field.
    pub(crate) fn of(field: &Field) -> Self {
        if let Some((name, values)) = enum_of(field).and_then(|name| ENUMS.iter().find(|known| known.0 == name)) {
            return LogicalType::enumeration(name, values);
        }
        match field.data_type() {
            DataType::List(item) => LogicalType::list(&LogicalType::of(item)),
            DataType::Struct(fields) => LogicalType::structure(fields.iter().map(AsRef::as_ref)),
            DataType::Map(entries, _) => {
                let DataType::Struct(entry) = entries.data_type() else {
                    return LogicalType::new(id::ANY);
                };
                LogicalType::map(&LogicalType::of(&entry[0]), &LogicalType::of(&entry[1]))
            }
            _ if field.extension_type_name() == Some("arrow.json") => LogicalType::new(id::VARCHAR).named(c"JSON"),
            _ => LogicalType::with_name(&duckdb_type(field)),
        }
    }

    /// Its number.
    pub(crate) fn id(&self) -> u32 {
        // SAFETY: it is a type.
        unsafe { duckdb_get_type_id(self.0) }
    }

    /// A text that only the same types have; `None` with an enum in it, because enums never are the same.
    fn text(&self) -> Option<String> {
        let of = |child| LogicalType(child).text();
        // SAFETY: each function gets a type of its kind, and an index of a child.
        unsafe {
            let inner = match self.id() {
                id::ENUM => return None,
                id::LIST => of(duckdb_list_type_child_type(self.0))?,
                id::MAP => of(duckdb_map_type_key_type(self.0))? + &of(duckdb_map_type_value_type(self.0))?,
                id::STRUCT => {
                    let fields = (0..duckdb_struct_type_child_count(self.0)).map(|index| {
                        let name = taken(duckdb_struct_type_child_name(self.0, index));
                        Some(format!("{name:?}{}", of(duckdb_struct_type_child_type(self.0, index))?))
                    });
                    fields.collect::<Option<String>>()?
                }
                _ => String::new(),
            };
            // The name, if it has one beside that of the type below, such as `JSON`.
            let alias = taken(duckdb_logical_type_get_alias(self.0));
            Some(format!("{}{alias:?}({inner})", self.id()))
        }
    }

    /// Whether both types are the same. Enums never are.
    pub(crate) fn is(&self, other: &LogicalType) -> bool {
        self.text().is_some_and(|text| other.text() == Some(text))
    }
}

/// A value.
#[derive(Debug)]
pub(crate) struct Value(pub(crate) duckdb_value);

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: it is a value, which is destroyed once.
        unsafe { duckdb_destroy_value(&mut self.0) };
    }
}

impl Value {
    /// The value of a pointer that DuckDB returned; `None` for null.
    pub(crate) fn owned(value: duckdb_value) -> Option<Self> {
        (!value.is_null()).then_some(Value(value))
    }

    /// A text.
    pub(crate) fn of(text: &str) -> Self {
        // SAFETY: the text has `len` bytes.
        Value(unsafe { duckdb_create_varchar_length(text.as_ptr().cast(), text.len() as u64) })
    }

    /// The number of its type.
    fn type_id(&self) -> u32 {
        // SAFETY: the type belongs to the value.
        unsafe { duckdb_get_type_id(duckdb_get_value_type(self.0)) }
    }

    pub(crate) fn is_null(&self) -> bool {
        // SAFETY: it is a value.
        unsafe { duckdb_is_null_value(self.0) }
    }

    /// Its text.
    pub(crate) fn text(&self) -> String {
        // SAFETY: it is a value.
        unsafe { taken(duckdb_get_varchar(self.0)) }
    }

    /// The name of its type; of a struct or a map without the types in it.
    fn type_name(&self) -> String {
        // SAFETY: the type belongs to the value.
        name(unsafe { duckdb_get_value_type(self.0) })
    }

    /// The value for the core.
    pub(crate) fn to_sql(&self) -> SqlValue {
        let (kind, parts) = match (self.type_id(), self.items()) {
            _ if self.is_null() => (EvtxValueKind::Nothing, Vec::new()),
            (id::LIST, Some(items)) => (EvtxValueKind::List, items),
            (_, Some(items)) => (EvtxValueKind::Tuple, items),
            (id::MAP, _) => (EvtxValueKind::Map, self.entries()),
            // The API has no items of an array.
            (id::STRUCT | id::ARRAY, _) => (EvtxValueKind::Struct, Vec::new()),
            (id::VARCHAR, _) => (EvtxValueKind::Text, Vec::new()),
            _ => (EvtxValueKind::Other, Vec::new()),
        };
        SqlValue {
            kind,
            type_name: self.type_name(),
            text: match kind {
                EvtxValueKind::Nothing => String::new(),
                _ => self.text(),
            },
            parts: parts.iter().map(Value::to_sql).collect(),
        }
    }

    /// The values in a list or a tuple, which is a struct without names; `None` for another value, such as NULL.
    fn items(&self) -> Option<Vec<Value>> {
        // SAFETY: each function gets a value or a type of its kind, and an index of a child.
        unsafe {
            let kind = duckdb_get_value_type(self.0);
            let (count, child) = match self.type_id() {
                _ if self.is_null() => return None,
                id::LIST => (
                    duckdb_get_list_size(self.0),
                    duckdb_get_list_child as unsafe fn(_, _) -> _,
                ),
                id::STRUCT if is_tuple(kind) => (
                    duckdb_struct_type_child_count(kind),
                    duckdb_get_struct_child as unsafe fn(_, _) -> _,
                ),
                _ => return None,
            };
            Some(
                (0..count)
                    .filter_map(|index| Value::owned(child(self.0, index)))
                    .collect(),
            )
        }
    }

    /// The names and values of a struct; none for another value.
    pub(crate) fn fields(&self) -> Vec<(String, Value)> {
        if self.is_null() || self.type_id() != id::STRUCT {
            return Vec::new();
        }
        // SAFETY: it is a struct, and the indexes are those of fields.
        unsafe {
            let kind = duckdb_get_value_type(self.0);
            (0..duckdb_struct_type_child_count(kind))
                .filter_map(|index| {
                    let name = taken(duckdb_struct_type_child_name(kind, index));
                    Some((name, Value::owned(duckdb_get_struct_child(self.0, index))?))
                })
                .collect()
        }
    }

    /// The keys and values of a map, in turn.
    fn entries(&self) -> Vec<Value> {
        // SAFETY: the indexes are those of entries.
        unsafe {
            (0..duckdb_get_map_size(self.0))
                .flat_map(|index| [duckdb_get_map_key(self.0, index), duckdb_get_map_value(self.0, index)])
                .filter_map(Value::owned)
                .collect()
        }
    }
}

fn name(of: duckdb_logical_type) -> String {
    // SAFETY: it is a type, and that of its items is destroyed once.
    unsafe {
        match duckdb_get_type_id(of) {
            id::LIST => format!("{}[]", name(LogicalType(duckdb_list_type_child_type(of)).0)),
            id => id::NAMES
                .get(id as usize)
                .map_or_else(|| id.to_string(), |&name| name.to_owned()),
        }
    }
}

/// Whether the fields of a struct have no names.
///
/// # Safety
/// It is the type of a struct.
unsafe fn is_tuple(structure: duckdb_logical_type) -> bool {
    // SAFETY: by the contract of this function. A struct has a first field.
    unsafe { taken(duckdb_struct_type_child_name(structure, 0)) }.is_empty()
}
