//! The builder of a column of few distinct strings, as a dictionary: providers, channels, computers.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int32Array, StringArray};
use arrow_buffer::NullBufferBuilder;
use arrow_schema::ArrowError;
use evtx_format::value::text::Escaping;
use evtx_format::value::{Scalar, Value};
use hashbrown::HashMap;

use crate::arrays::{Build, Indices, MakeArrays, take};
use crate::plan::{Constant, MAX_FIELD, Resolved};

// The most strings, and the most bytes of them, that a dictionary keeps from batch to batch.
const MAX_NAMES: usize = 4096;
const MAX_BYTES: usize = 1 << 20;

/// The builder of a column of few distinct strings. It keeps the dictionary from batch to batch.
#[derive(Debug)]
pub(crate) struct DictionaryBuilder {
    rows: Vec<i32>,
    nulls: NullBufferBuilder,
    names: Vec<Box<str>>,
    indices: HashMap<Box<str>, i32>,
    bytes: usize,
    array: Arc<StringArray>,
    last_constant: i32,
    /// The last UTF-16 string that was appended, and its index.
    last_value: (Vec<u8>, Option<i32>),
    scratch: Vec<u8>,
}

impl DictionaryBuilder {
    pub(crate) fn new() -> Self {
        DictionaryBuilder {
            rows: Vec::new(),
            nulls: NullBufferBuilder::new(0),
            names: Vec::new(),
            indices: HashMap::new(),
            bytes: 0,
            array: Arc::new(StringArray::new_null(0)),
            last_constant: 0,
            last_value: (Vec::new(), None),
            scratch: Vec::new(),
        }
    }

    /// Appends the value of a record, or NULL if it has none or one with more than [`MAX_FIELD`] bytes of text.
    #[inline(always)]
    pub(crate) fn push(&mut self, found: Option<&Resolved<'_, '_>>) {
        let index = match found {
            None => None,
            Some(Resolved::Constant(constant)) => self.constant(constant),
            Some(Resolved::Value(value)) => self.value(*value),
            Some(items) => self.text(|out| items.push_text(out)),
        };
        self.rows.push(index.unwrap_or_default());
        self.nulls.append(index.is_some());
    }

    #[inline]
    fn constant(&mut self, constant: &Constant) -> Option<i32> {
        if let Some(name) = self.names.get(self.last_constant as usize)
            && **name == *constant.text
        {
            return Some(self.last_constant);
        }
        let index = self.text(|out| out.extend_from_slice(constant.text.as_bytes()))?;
        self.last_constant = index;
        Some(index)
    }

    #[inline]
    fn value(&mut self, value: Value<'_>) -> Option<i32> {
        let is_string = value.scalar() == Some(Scalar::String);
        if is_string && self.last_value.1.is_some() && self.last_value.0 == value.bytes {
            return self.last_value.1;
        }
        let index = self.text(|out| value.push_text(out, Escaping::Plain));
        if is_string {
            self.last_value.0.clear();
            self.last_value.0.extend_from_slice(value.bytes);
            self.last_value.1 = index;
        }
        index
    }

    /// The index of the string that `push` writes. Adds the string if it is new; `None` if it is too long.
    fn text(&mut self, push: impl FnOnce(&mut Vec<u8>)) -> Option<i32> {
        self.scratch.clear();
        push(&mut self.scratch);
        if self.scratch.len() > MAX_FIELD {
            // Other texts of the record need as much memory.
            self.scratch = Vec::new();
            return None;
        }
        let name = std::str::from_utf8(&self.scratch).ok()?;
        if let Some(&index) = self.indices.get(name) {
            return Some(index);
        }
        let index = self.names.len() as i32;
        self.bytes += name.len();
        self.names.push(name.into());
        self.indices.insert(name.into(), index);
        Some(index)
    }

    fn array_of(&mut self, rows: Int32Array, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        if self.array.len() != self.names.len() {
            self.array = Arc::new(StringArray::from_iter_values(self.names.iter()));
        }
        let array = (make.dictionary)(Indices::new(rows, Arc::clone(&self.array) as ArrayRef))?;
        Ok(Arc::new(array))
    }
}

impl Build for DictionaryBuilder {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn finish(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        let rows = Int32Array::new(take(&mut self.rows).into(), self.nulls.finish());
        let array = self.array_of(rows, make)?;
        if self.names.len() > MAX_NAMES || self.bytes > MAX_BYTES {
            *self = DictionaryBuilder::new();
        }
        Ok(array)
    }

    fn finish_cloned(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        let rows = Int32Array::new(self.rows.clone().into(), self.nulls.finish_cloned());
        self.array_of(rows, make)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;

    use super::*;

    fn finish(builder: &mut DictionaryBuilder) -> (Vec<Option<String>>, usize) {
        let cloned = builder.finish_cloned(MakeArrays::CHECKED).expect("an array");
        let array = builder.finish(MakeArrays::CHECKED).expect("an array");
        assert_eq!(cloned.to_data(), array.to_data());
        let array = array.as_dictionary::<Int32Type>();
        let names = array.values().as_string::<i32>();
        let text = |key: Option<usize>| key.map(|key| names.value(key).to_owned());
        (array.keys_iter().map(text).collect(), names.len())
    }

    fn push_text(builder: &mut DictionaryBuilder, text: &str) {
        let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        builder.push(Some(&Resolved::Value(Value::new(Scalar::String, &units))));
    }

    fn push_constant(builder: &mut DictionaryBuilder, text: &str) {
        let constant = Constant {
            text: text.into(),
            ..Constant::default()
        };
        builder.push(Some(&Resolved::Constant(&constant)));
    }

    #[test]
    fn a_string_is_kept_once_however_it_was_read() {
        let mut builder = DictionaryBuilder::new();
        let mut known = 0;
        for batch in [&["a", "a", "", "b", "a"][..], &["b", "c", "a"], &["", "", "c"]] {
            let mut expected = Vec::new();
            for &text in batch {
                push_text(&mut builder, text);
                push_constant(&mut builder, text);
                builder.push(None);
                // The bytes are those of another string as another type.
                builder.push(Some(&Resolved::Value(Value::new(Scalar::AnsiString, text.as_bytes()))));
                expected.extend([Some(text), Some(text), None, Some(text)].map(|text| text.map(str::to_owned)));
            }
            known = known.max(if batch.contains(&"c") { 4 } else { 3 });
            assert_eq!(finish(&mut builder), (expected, known));
            assert_eq!(builder.bytes(), known - 1, "bytes of `a`, `b` and `c`");
        }
    }

    #[test]
    fn a_string_that_is_too_long_is_null() {
        let mut builder = DictionaryBuilder::new();
        for len in [MAX_FIELD, MAX_FIELD + 1] {
            let bytes = vec![b'x'; len];
            builder.push(Some(&Resolved::Value(Value::new(Scalar::AnsiString, &bytes))));
        }
        let lens = finish(&mut builder)
            .0
            .into_iter()
            .map(|text| text.map(|text| text.len()));
        assert_eq!(lens.collect::<Vec<_>>(), [Some(MAX_FIELD), None]);
    }

    #[test]
    fn a_dictionary_that_is_too_large_is_begun_anew() {
        let mut builder = DictionaryBuilder::new();
        for (strings, left) in [(MAX_NAMES, MAX_NAMES), (MAX_NAMES + 1, 0)] {
            for number in 0..strings {
                push_constant(&mut builder, &number.to_string());
            }
            assert_eq!(finish(&mut builder).1, strings);
            assert_eq!(builder.names.len(), left);
        }
        for (len, left) in [(MAX_BYTES, 1), (MAX_BYTES - 1, 0)] {
            push_constant(&mut builder, &"x".repeat(len));
            finish(&mut builder);
            assert_eq!(builder.names.len(), left);
        }
    }
}
