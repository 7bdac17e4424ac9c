//! Texts as the vectors that a scalar function takes.

use std::str::FromStr;

use arrow_schema::DataType;
use evtx_ffi::EvtxVector;

/// The items of a list that SQL has made a text: the length of each in bytes, a colon and its text, and a hyphen for NULL.
pub(crate) fn items(mut text: &str) -> Vec<Option<&str>> {
    let mut items = Vec::new();
    while !text.is_empty() {
        let (item, rest) = match text.strip_prefix('-') {
            Some(rest) => (None, rest),
            None => {
                let found = text
                    .split_once(':')
                    .and_then(|(len, rest)| rest.split_at_checked(len.parse().ok()?));
                let Some((item, rest)) = found else { break };
                (Some(item), rest)
            }
        };
        items.push(item);
        text = rest;
    }
    items
}

/// Values of a type, as DuckDB has them in a vector.
pub(crate) struct Column<'f> {
    data_type: &'f DataType,
    data: Vec<u8>,
    validity: Vec<u64>,
    rows: usize,
    /// The items of lists, or the fields of structs.
    inner: Vec<Column<'f>>,
}

impl<'f> Column<'f> {
    pub(crate) fn new(data_type: &'f DataType) -> Self {
        let inner = match data_type {
            DataType::List(item) | DataType::Map(item, _) => vec![Column::new(item.data_type())],
            DataType::Struct(fields) => fields.iter().map(|field| Column::new(field.data_type())).collect(),
            _ => Vec::new(),
        };
        let (data, validity) = (Vec::new(), Vec::new());
        Column {
            data_type,
            data,
            validity,
            rows: 0,
            inner,
        }
    }

    /// Adds a value of the next texts: one for each field of a struct, and otherwise one. A list is a text of [`items`], but times have
    /// commas between. The texts live as long as the column.
    pub(crate) fn push(&mut self, texts: &mut dyn Iterator<Item = Option<&str>>) {
        let mut element = Some(Vec::new());
        match self.data_type {
            DataType::Struct(_) => self.inner.iter_mut().for_each(|field| field.push(texts)),
            DataType::List(_) | DataType::Map(..) => {
                let (text, item) = (texts.next().flatten(), &mut self.inner[0]);
                let first = item.rows;
                let mut all = match item.data_type {
                    DataType::Timestamp(..) => text.into_iter().flat_map(|text| text.split(',')).map(Some).collect(),
                    _ => items(text.unwrap_or_default()),
                }
                .into_iter()
                .peekable();
                while all.peek().is_some() {
                    item.push(&mut all);
                }
                let bounds = [first as u64, (item.rows - first) as u64];
                element = text.map(|_| bounds.map(u64::to_ne_bytes).concat());
            }
            leaf => element = texts.next().flatten().and_then(|text| bytes_of(leaf, text)),
        }
        if self.rows.is_multiple_of(64) {
            self.validity.push(0);
        }
        self.validity[self.rows / 64] |= u64::from(element.is_some()) << (self.rows % 64);
        self.data
            .extend(element.unwrap_or_else(|| vec![0; width(self.data_type)]));
        self.rows += 1;
    }

    /// The vector, and after it those of its items or fields.
    pub(crate) fn vectors(&self) -> Vec<EvtxVector> {
        let vector = EvtxVector {
            data: self.data.as_ptr().cast(),
            validity: self.validity.as_ptr(),
            selection: std::ptr::null(),
            rows: self.rows,
        };
        let inner = self.inner.iter().flat_map(Column::vectors);
        std::iter::once(vector).chain(inner).collect()
    }
}

/// The bytes of a value in a vector.
fn width(data_type: &DataType) -> usize {
    match data_type {
        DataType::Struct(_) => 0,
        // DuckDB's texts, lists and HUGEINT.
        _ => data_type.primitive_width().unwrap_or(16),
    }
}

/// A value as DuckDB has it in a vector; `None` if the text is not one.
fn bytes_of(data_type: &DataType, text: &str) -> Option<Vec<u8>> {
    fn number<T: FromStr, const N: usize>(text: &str, bytes: fn(T) -> [u8; N]) -> Option<Vec<u8>> {
        text.parse().ok().map(|number| bytes(number).to_vec())
    }
    match data_type {
        DataType::Boolean => Some(vec![u8::from(text == "1")]),
        DataType::UInt8 => number(text, u8::to_ne_bytes),
        DataType::Int32 => number(text, i32::to_ne_bytes),
        DataType::UInt32 => number(text, u32::to_ne_bytes),
        DataType::UInt64 => number(text, u64::to_ne_bytes),
        DataType::Timestamp(..) => number(text, i64::to_ne_bytes),
        DataType::FixedSizeBinary(_) => number(text, i128::to_le_bytes),
        _ => {
            let mut element = (text.len() as u32).to_ne_bytes().to_vec();
            if text.len() <= 12 {
                element.extend(text.as_bytes());
            } else {
                element.extend([0; 4]);
                element.extend(text.as_ptr().expose_provenance().to_ne_bytes());
            }
            element.resize(16, 0);
            Some(element)
        }
    }
}
