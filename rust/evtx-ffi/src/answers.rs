//! The functions of codes, which answer for a vector of rows at a time.

use std::ffi::c_void;
use std::iter;
use std::sync::Arc;

use arrow_array::builder::{ArrayBuilder, StringViewBuilder};
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, ListArray};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, Field};
use evtx_codes::{Answer, Code, Lookup};
use evtx_format::Interrupt;
use evtx_scan::ScanError;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::boundary::{EvtxError, EvtxFailure, EvtxFunction, EvtxOwned, EvtxSlice, EvtxText, produce};
use crate::storage::EvtxStorage;
use crate::vectors::EvtxArrays;

/// A function of the name of a table and a code.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxCodeFunction {
    /// Its documentation.
    pub function: EvtxFunction,
    /// Its number, for [`evtx_answers_new`].
    pub number: usize,
    /// Whether the code is a HUGEINT. Otherwise it is VARCHAR.
    pub takes_number: bool,
    /// Whether it returns a list of texts.
    pub is_list: bool,
}

/// The functions of codes, by number: what each looks up, its name, its description and an example.
pub const CODE_FUNCTIONS: &[(Lookup, &str, &str, &str)] = &[
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
pub(crate) fn code_functions() -> EvtxSlice<'static, EvtxCodeFunction> {
    let functions = CODE_FUNCTIONS
        .iter()
        .enumerate()
        .flat_map(|(number, (lookup, name, description, example))| {
            [false, true].map(|takes_number| EvtxCodeFunction {
                function: EvtxFunction::new(name, description, example),
                number,
                takes_number,
                is_list: *lookup == Lookup::Names,
            })
        });
    EvtxSlice::leaked(functions.collect::<Vec<_>>())
}

/// Vectors of lists of pairs of texts: MAP(VARCHAR, VARCHAR), or a list of its entries.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxPairs {
    /// The lists. Each has the index of its first pair and their count, both u64.
    pub lists: EvtxVector,
    /// The keys of all pairs: VARCHAR.
    pub keys: EvtxVector,
    /// The values of all pairs: VARCHAR.
    pub values: EvtxVector,
}

impl EvtxPairs {
    /// The pairs of a list that have a key.
    ///
    /// # Safety
    /// The vectors are what the fields say, and live as long as `'a`.
    pub(crate) unsafe fn of<'a>(
        &self,
        [first, count]: [u64; 2],
    ) -> impl Iterator<Item = Result<(&'a str, Option<&'a str>), EvtxError>> {
        (first..first.saturating_add(count)).filter_map(|pair| {
            // SAFETY: by the contract of this function.
            let (key, value) = unsafe { (self.keys.text(pair as usize), self.values.text(pair as usize)) };
            key.transpose().map(|key| Ok((key?, value?)))
        })
    }
}

/// A vector of DuckDB.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxVector {
    /// The elements: texts or numbers in DuckDB's form.
    pub data: *const c_void,
    /// A bit per element, 0 for NULL; null if no element is NULL.
    pub validity: *const u64,
    /// The index of the element of each row; null if it is that of the row.
    pub selection: *const u32,
    /// How many rows there are.
    pub rows: usize,
    /// Whether the elements are HUGEINT. Otherwise they are VARCHAR.
    pub is_number: bool,
}

impl EvtxVector {
    /// The index of the element of a row; `None` for NULL.
    fn element(&self, row: usize) -> Option<usize> {
        assert!(row < self.rows, "a vector has too few rows");
        let element = if self.selection.is_null() {
            row
        } else {
            // SAFETY: the selection has an index for each row.
            unsafe { *self.selection.add(row) as usize }
        };
        // SAFETY: `element` is the index of an element, so the validity has a bit for it.
        let is_valid =
            self.validity.is_null() || unsafe { *self.validity.add(element / 64) } >> (element % 64) & 1 != 0;
        is_valid.then_some(element)
    }

    /// The value in a row; `None` for NULL.
    ///
    /// # Safety
    /// The elements are values of the type, and each row has one.
    pub unsafe fn value<T: Copy>(&self, row: usize) -> Option<T> {
        let element = self.element(row)?;
        // SAFETY: by the contract of this function.
        Some(unsafe { self.data.cast::<T>().add(element).read_unaligned() })
    }

    /// The bytes in a row; `None` for NULL.
    ///
    /// # Safety
    /// The elements are VARCHAR or BLOB, and each row has one, which lives as long as `'a`.
    pub unsafe fn bytes<'a>(&self, row: usize) -> Option<&'a [u8]> {
        let element = self.element(row)?;
        // SAFETY: by the contract of this function. A value has its length in 4 bytes, then up to 12 bytes, or 4 bytes and a
        // pointer to all.
        unsafe {
            let start = self.data.cast::<u8>().add(element * 16);
            let len = start.cast::<u32>().read_unaligned() as usize;
            let bytes = if len <= 12 {
                start.add(4)
            } else {
                start.add(8).cast::<*const u8>().read_unaligned()
            };
            Some(std::slice::from_raw_parts(bytes, len))
        }
    }

    /// The text in a row; `None` for NULL.
    ///
    /// # Errors
    /// If the text is not UTF-8.
    ///
    /// # Safety
    /// As for [`bytes`](Self::bytes).
    pub unsafe fn text<'a>(&self, row: usize) -> Result<Option<&'a str>, EvtxError> {
        // SAFETY: by the contract of this function.
        let bytes = unsafe { self.bytes(row) };
        Ok(bytes.map(|bytes| EvtxText::borrowed(bytes).text()).transpose()?)
    }

    /// The code in a row; `None` for NULL.
    fn code<'a>(&self, row: usize) -> Result<Option<Code<'a>>, EvtxError> {
        if self.is_number {
            // SAFETY: a HUGEINT has its lower half first, as an i128 of these machines.
            return Ok(unsafe { self.value(row) }.map(Code::Number));
        }
        // SAFETY: the caller passes texts otherwise.
        Ok(unsafe { self.text(row)? }.map(Code::Text))
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

/// How many bytes of codes are read between two checks for an interrupt.
pub(crate) const LONG: usize = 1 << 16;

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
    fn of(lookup: Lookup, tables: EvtxVector, codes: EvtxVector, interrupt: Interrupt<'_>) -> Result<Self, EvtxError> {
        let mut answers = Answers::default();
        // Logs have few codes, over and over: the first row with each.
        let mut first_rows = HashMap::new();
        let (mut last, mut bytes) = (None, 0);
        for row in 0..codes.rows {
            let (name, source) = match (tables.code(row)?, last) {
                (Some(Code::Text(name)), Some((known, source))) if name == known => (name, source),
                (Some(Code::Text(name)), _) => (name, lookup.source(name)?),
                _ => {
                    answers.push(Answer::Null);
                    continue;
                }
            };
            last = Some((name, source));
            let Some(code) = codes.code(row)? else {
                answers.push(Answer::Null);
                continue;
            };
            if let Code::Text(text) = code {
                bytes += text.len();
                if bytes > LONG {
                    bytes = 0;
                    interrupt.check().map_err(ScanError::from)?;
                }
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

/// The answers of the function with this number: an array with a row for each row of the vectors of tables and codes.
///
/// # Errors
/// An unknown table, a text that is not UTF-8, or [`Interrupted`](evtx_format::Interrupted).
pub fn answers(
    function: usize,
    tables: EvtxVector,
    codes: EvtxVector,
    interrupt: Interrupt<'_>,
) -> Result<EvtxArrays, EvtxError> {
    let (lookup, ..) = CODE_FUNCTIONS
        .get(function)
        .ok_or("there is no such function of codes")?;
    let array = Answers::of(*lookup, tables, codes, interrupt)?.finish(*lookup == Lookup::Names);
    Ok(EvtxArrays::of(array.map_err(|error| error.to_string())?))
}

/// Makes the answers for the codes of some rows by the function with this number, as one array. The answer for a NULL
/// table or code is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_answers_new(
    function: usize,
    tables: EvtxVector,
    codes: EvtxVector,
    storage: EvtxStorage,
    out: Option<&mut EvtxOwned<EvtxArrays>>,
) -> EvtxFailure {
    produce(out, || {
        let answered = storage.during(|_, interrupt| answers(function, tables, codes, interrupt))?;
        Ok(Some(answered.into()))
    })
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
            is_number: size_of::<T>() == size_of::<i128>() && align_of::<T>() == align_of::<i128>(),
        }
    }

    /// The answers as texts.
    fn texts(lookup: Lookup, tables: EvtxVector, codes: EvtxVector) -> Vec<Option<String>> {
        let answers = Answers::of(lookup, tables, codes, Interrupt::NEVER).expect("answers");
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
            texts(Lookup::Name, status(&[0; 6]), vector(&codes, &0b11_0111, None)),
            [wrong.clone(), wrong.clone(), None, None, wrong.clone(), denied.clone()]
        );
        let numbers: [i128; 2] = [5, -1_073_741_718];
        let numbers = vector(&numbers, &u64::MAX, Some(&[1, 1, 0]));
        assert_eq!(
            texts(Lookup::Name, status(&[0; 3]), numbers),
            [wrong.clone(), wrong, denied]
        );
    }
}
