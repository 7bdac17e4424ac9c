//! The function that decodes texts in the fields of events, for a vector of rows at a time.

use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::{ArrayRef, ListArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields};
use evtx_codes::decoded_texts;

use crate::boundary::EvtxError;
use crate::scalar::{Caller, EvtxVector, Pairs, Scalar, ScalarFunction, Unchecked, structs};

fn decoded_fields() -> Fields {
    let text = |name| Field::new(name, DataType::Utf8, true);
    vec![text("field"), text("encoding"), text("text")].into()
}

/// The function, of a map such as `event_data`.
pub(crate) fn function() -> ScalarFunction {
    let text = |name| Field::new(name, DataType::Utf8, true);
    let pair = DataType::Struct(vec![text("key"), text("value")].into());
    let map = DataType::Map(Field::new("entries", pair, false).into(), false);
    let list = DataType::List(Field::new_list_field(DataType::Struct(decoded_fields()), true).into());
    ScalarFunction {
        name: "evtx_decoded_texts",
        description: "The texts in the values of a map that are encoded in Base64 or hexadecimal digits, also compressed: the key, the \
                      encodings from the outside in, and the text. For evtx_decoded_of.",
        example: "SELECT evtx_decoded_texts(MAP {'CommandLine': 'powershell -enc dwBoAG8AYQBtAGkA'})",
        parameters: vec![Field::new("fields", map, true)],
        result: Field::new("decoded", list, true),
        make: Box::new(|| Box::new(Decoded)),
    }
}

struct Decoded;

impl Scalar for Decoded {
    /// An empty list for NULL.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let &[maps, pairs, keys, values] = vectors else {
            return Err("evtx_decoded_texts has one argument".into());
        };
        let fields = Pairs::new([maps, pairs, keys, values]);
        let mut columns: [StringViewBuilder; 3] = Default::default();
        let (mut counts, mut unchecked) = (Vec::new(), Unchecked::default());
        for row in 0..maps.rows {
            let mut count = 0;
            // SAFETY: by the contract of this function.
            for pair in unsafe { fields.row(row) } {
                let (key, value) = pair?;
                for found in value.map(decoded_texts).into_iter().flatten() {
                    unchecked.add(found.text.len(), caller.interrupt)?;
                    let texts = [key, &found.encoding, &found.text];
                    columns
                        .iter_mut()
                        .zip(texts)
                        .for_each(|(column, text)| column.append_value(text));
                    count += 1;
                }
                unchecked.add(value.map_or(0, str::len), caller.interrupt)?;
            }
            counts.push(count);
        }
        let columns = columns.map(|mut column| Arc::new(column.finish()) as ArrayRef).into();
        let items = Arc::new(structs(&decoded_fields(), columns, None)) as ArrayRef;
        let item = Field::new_list_field(items.data_type().clone(), true);
        let lists = ListArray::try_new(item.into(), OffsetBuffer::from_lengths(counts), items, None);
        Ok(Arc::new(lists.map_err(|error| error.to_string())?))
    }
}
