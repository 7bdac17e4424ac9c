//! The functions of codes, which answer for a vector of rows at a time.

use std::iter;
use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder, StringViewBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, ListArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field};
use evtx_codes::{Answer, Code, Lookup};
use evtx_format::Interrupt;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::boundary::EvtxError;
use crate::scalar::{Caller, EvtxVector, Scalar, ScalarFunction, Unchecked, text};

/// The functions of codes: what each looks up, its name, its description and an example.
const CODE_FUNCTIONS: &[(Lookup, &str, &str, &str)] = &[
    (
        Lookup::Name,
        "evtx_code_name",
        "The name of a code in a table of codes; NULL if it is unknown. evtx_codes() lists the tables.",
        "SELECT evtx_code_name('logon_type', '3')",
    ),
    (
        Lookup::Names,
        "evtx_code_names",
        "The names of the bits of a number, or of the codes in a list, in a table of codes. Bits without a name come \
         last, as one number. NULL if nothing is known. evtx_codes() lists the tables.",
        "SELECT evtx_code_names('ticket_options', '0x40810000')",
    ),
    (
        Lookup::Meaning,
        "evtx_code_meaning",
        "What a code means, as a sentence from a table of codes; NULL if it is unknown. evtx_codes() lists the tables.",
        "SELECT evtx_code_meaning('status', '0xc000006a')",
    ),
    (
        Lookup::Text,
        "evtx_code_text",
        "The text with each %%nnnn replaced by its name in a table of codes; unknown codes stay. With the table \
         'base64', the text within base64; NULL if there is none.",
        "SELECT evtx_code_text('parameters', '%%1541 %%4416')",
    ),
];

/// All functions of codes, each for text and for numbers.
pub(crate) fn functions() -> impl Iterator<Item = ScalarFunction> {
    let all = CODE_FUNCTIONS
        .iter()
        .flat_map(|function| [false, true].map(|takes_number| (function, takes_number)));
    all.map(|(&(lookup, name, description, example), takes_number)| {
        let number = Field::new("code", DataType::FixedSizeBinary(16), true);
        let list = Field::new("answer", DataType::List(text("item").into()), true);
        ScalarFunction {
            name,
            description,
            example,
            parameters: vec![text("table"), if takes_number { number } else { text("code") }],
            result: if lookup == Lookup::Names { list } else { text("answer") },
            make: Box::new(move || Box::new(CodeFunction { lookup, takes_number })),
        }
    })
}

/// A function of the name of a table and a code.
struct CodeFunction {
    lookup: Lookup,
    /// Whether the code is a HUGEINT. Otherwise it is VARCHAR.
    takes_number: bool,
}

impl Scalar for CodeFunction {
    /// The answer for a NULL table or code is NULL.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let &[tables, codes] = vectors else {
            return Err("a function of codes has two arguments".into());
        };
        // SAFETY: by the contract of this function.
        let answers = unsafe { Answers::of(self.lookup, tables, codes, self.takes_number, caller.interrupt)? };
        let array = answers.finish(self.lookup == Lookup::Names);
        array.map_err(|error| error.to_string().into())
    }
}

/// The code in a row; `None` for NULL.
///
/// # Safety
/// The elements are HUGEINT if the function takes numbers, and else VARCHAR.
unsafe fn code<'a>(codes: &EvtxVector, takes_number: bool, row: usize) -> Result<Option<Code<'a>>, EvtxError> {
    // SAFETY: by the contract of this function. A HUGEINT has its lower half first, as an i128 of these machines.
    unsafe {
        Ok(if takes_number {
            codes.value(row).map(Code::Number)
        } else {
            codes.text(row)?.map(Code::Text)
        })
    }
}

/// The answers for the codes of some rows.
#[derive(Default)]
struct Answers {
    /// The texts of all answers, each once for the first row with its code.
    texts: StringViewBuilder,
    /// The texts of all rows, by index; `None` for NULL.
    items: Vec<Option<i32>>,
    /// 0, then the end of each row in the items.
    ends: Vec<i32>,
    /// Whether each row has an answer.
    known: Vec<bool>,
}

impl Answers {
    fn push(&mut self, answer: Answer) {
        let mut push = |text: &str| {
            self.items.push(Some(self.texts.len() as i32));
            self.texts.append_value(text);
        };
        self.known.push(answer != Answer::Null);
        match answer {
            Answer::Null => self.items.push(None),
            Answer::Text(text) => push(&text),
            Answer::List(texts) => texts.iter().for_each(|text| push(text)),
        }
        self.ends.push(self.items.len() as i32);
    }

    /// Adds the answer of an earlier row.
    fn repeat(&mut self, row: usize) {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.items.extend_from_within(start as usize..self.ends[row] as usize);
        self.ends.push(self.items.len() as i32);
        self.known.push(self.known[row]);
    }

    /// Answers for the codes of some rows. The answer for a NULL table or code is NULL.
    ///
    /// # Safety
    /// The tables are VARCHAR, and the codes what [`code`] says.
    unsafe fn of(
        lookup: Lookup,
        tables: EvtxVector,
        codes: EvtxVector,
        takes_number: bool,
        interrupt: Interrupt<'_>,
    ) -> Result<Self, EvtxError> {
        let mut answers = Answers::default();
        // Logs have few codes, over and over: the first row with each.
        let mut first_rows = HashMap::new();
        let (mut last, mut unchecked) = (None, Unchecked::default());
        for row in 0..codes.rows {
            // SAFETY: by the contract of this function.
            let (table, code) = unsafe { (tables.text(row)?, code(&codes, takes_number, row)?) };
            let (Some(name), Some(code)) = (table, code) else {
                answers.push(Answer::Null);
                continue;
            };
            let source = match last {
                Some((known, source)) if name == known => source,
                _ => lookup.source(name)?,
            };
            last = Some((name, source));
            if let Code::Text(text) = code {
                unchecked.add(text.len(), interrupt)?;
            }
            match first_rows.entry((name, code)) {
                Entry::Occupied(first) => answers.repeat(*first.get()),
                Entry::Vacant(place) => {
                    place.insert(row);
                    answers.push(lookup.answer(source, code));
                }
            }
        }
        Ok(answers)
    }

    /// The answers as an array: texts, or lists of them.
    fn finish(mut self, is_list: bool) -> Result<ArrayRef, ArrowError> {
        let texts = DictionaryArray::<Int32Type>::try_new(self.items.into(), Arc::new(self.texts.finish()))?;
        if !is_list {
            return Ok(Arc::new(texts));
        }
        let (item, ends) = (
            Field::new_list_field(texts.data_type().clone(), true),
            iter::once(0).chain(self.ends),
        );
        let offsets = OffsetBuffer::new(ends.collect());
        Ok(Arc::new(ListArray::try_new(
            item.into(),
            offsets,
            Arc::new(texts),
            Some(self.known.into()),
        )?))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::StringViewArray;
    use arrow_array::cast::AsArray;

    use super::*;

    /// A text as DuckDB has it in a vector.
    fn element(text: &'static str) -> [u8; 16] {
        let mut element = [0; 16];
        element[..4].copy_from_slice(&u32::try_from(text.len()).expect("a short one").to_ne_bytes());
        if text.len() <= 12 {
            element[4..4 + text.len()].copy_from_slice(text.as_bytes());
        } else {
            element[8..].copy_from_slice(&text.as_ptr().addr().to_ne_bytes());
        }
        element
    }

    fn vector<T>(data: &[T], validity: &u64, selection: Option<&[u32]>) -> EvtxVector {
        EvtxVector {
            data: data.as_ptr().cast(),
            validity,
            selection: selection.map_or(std::ptr::null(), <[u32]>::as_ptr),
            rows: selection.map_or(data.len(), <[u32]>::len),
        }
    }

    /// The answers as texts.
    fn texts(lookup: Lookup, tables: EvtxVector, codes: EvtxVector, takes_number: bool) -> Vec<Option<String>> {
        // SAFETY: the vectors are what the function takes.
        let answers = unsafe { Answers::of(lookup, tables, codes, takes_number, Interrupt::NEVER) };
        let answers = answers.expect("answers");
        let array = answers.finish(false).expect("an array");
        let texts = array.as_dictionary::<Int32Type>().downcast_dict::<StringViewArray>();
        let texts = texts.expect("texts").into_iter();
        texts.map(|text| text.map(str::to_owned)).collect()
    }

    #[test]
    fn each_row_has_its_answer() {
        let of = [element("status")];
        let status = |selection| vector(&of, &u64::MAX, Some(selection));
        let codes = ["0xc000006a", "3221225578", "-", "0xc000006a", "0x00000000c000006a", "5"].map(element);
        let known = |text: &str| Some(text.to_owned());
        let (wrong, denied) = (known("STATUS_WRONG_PASSWORD"), known("ERROR_ACCESS_DENIED"));
        assert_eq!(
            texts(Lookup::Name, status(&[0; 6]), vector(&codes, &0b11_0111, None), false),
            [wrong.clone(), wrong.clone(), None, None, wrong.clone(), denied.clone()]
        );
        let numbers: [i128; 2] = [5, -1_073_741_718];
        let numbers = vector(&numbers, &u64::MAX, Some(&[1, 1, 0]));
        assert_eq!(
            texts(Lookup::Name, status(&[0; 3]), numbers, true),
            [wrong.clone(), wrong, denied]
        );
    }
}
