//! The function that decodes texts in the fields of events, for a vector of rows at a time.

use evtx_codes::{DecodedText, decoded_texts};
use evtx_format::{Interrupt, Interrupted};

use crate::rows::{Map, by_row, columns, typed};
use crate::scalar::{ScalarFunction, map};

/// A text, with the key of its value.
type OfField<'a> = (&'a str, DecodedText);

columns!(of: OfField<'_> { field = of.0, encoding = &*of.1.encoding, text = &*of.1.text });

/// The function, of a map such as `event_data`.
pub(crate) fn function() -> ScalarFunction {
    ScalarFunction {
        name: "evtx_decoded_texts",
        description: "The texts in the values of a map that are encoded in Base64 or hexadecimal digits, also compressed: the key, the \
                      encodings from the outside in, and the text. For evtx_decoded_of.",
        example: "SELECT evtx_decoded_texts(MAP {'CommandLine': 'powershell -enc dwBoAG8AYQBtAGkA'})",
        parameters: vec![map("fields")],
        result: typed::<Vec<OfField<'_>>>("decoded"),
        make: by_row!(decoded),
    }
}

/// An empty list for NULL.
fn decoded<'a>(fields: Map<'a>, interrupt: Interrupt<'_>) -> Result<Vec<OfField<'a>>, Interrupted> {
    let mut all = Vec::new();
    for (key, value) in fields.0 {
        interrupt.check()?;
        let texts = value.into_iter().flat_map(decoded_texts);
        all.extend(texts.map(|found| (key, found)));
    }
    Ok(all)
}
