//! The function that decodes texts in the fields of events, for a vector of rows at a time.

use arrow_array::ArrayRef;
use arrow_schema::{DataType, Fields};
use evtx_codes::decoded_texts;

use crate::boundary::EvtxError;
use crate::scalar::{
    Caller, EvtxVector, Pairs, Scalar, ScalarFunction, Unchecked, columns_of, fields, list, list_array, map, structs,
};

fn decoded_fields() -> Fields {
    fields(["field", "encoding", "text"].map(|name| (name, DataType::Utf8)))
}

/// The function, of a map such as `event_data`.
pub(crate) fn function() -> ScalarFunction {
    ScalarFunction {
        name: "evtx_decoded_texts",
        description: "The texts in the values of a map that are encoded in Base64 or hexadecimal digits, also compressed: the key, the \
                      encodings from the outside in, and the text. For evtx_decoded_of.",
        example: "SELECT evtx_decoded_texts(MAP {'CommandLine': 'powershell -enc dwBoAG8AYQBtAGkA'})",
        parameters: vec![map("fields")],
        result: list("decoded", DataType::Struct(decoded_fields())),
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
        let (mut all, mut counts, mut unchecked) = (Vec::new(), Vec::new(), Unchecked::default());
        for row in 0..maps.rows {
            let before = all.len();
            // SAFETY: by the contract of this function.
            for pair in unsafe { fields.row(row) } {
                let (key, value) = pair?;
                for found in value.map(decoded_texts).into_iter().flatten() {
                    unchecked.add(found.text.len(), caller.interrupt)?;
                    all.push((key, found));
                }
                unchecked.add(value.map_or(0, str::len), caller.interrupt)?;
            }
            counts.push(all.len() - before);
        }
        let texts = all
            .iter()
            .map(|(key, found)| [Some(*key), Some(&*found.encoding), Some(&*found.text)]);
        Ok(list_array(
            structs(&decoded_fields(), columns_of(texts), None),
            counts,
            None,
        ))
    }
}
