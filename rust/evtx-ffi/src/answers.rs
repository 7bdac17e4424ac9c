//! What the tables of codes say, for a vector of rows at a time.

use std::borrow::Cow;
use std::ffi::{c_char, c_void};

use evtx_codes::{Answer, Code, Lookup, Source};
use evtx_format::Interrupt;
use evtx_scan::ScanError;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::boundary::{EvtxFunction, EvtxText, Failure, entry, free, put, put_entry, release, text};
use crate::storage::EvtxStorage;

/// A function of a table and a code.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxCodeFunction {
    /// Its name, what it gives, and an example.
    pub function: EvtxFunction,
    /// Whether it gives a list of texts.
    pub is_list: bool,
    /// Whether the code is a HUGEINT. Otherwise it is VARCHAR.
    pub takes_number: bool,
    /// Its number, for [`evtx_answers_new`].
    pub number: usize,
}

const FUNCTIONS: &[(Lookup, &str, &str, &str)] = &[
    (
        Lookup::Name,
        "evtx_code_name",
        "The name that a table of codes has for a code; NULL for an unknown one. evtx_codes() has the tables.",
        "SELECT evtx_code_name('logon_type', '3')",
    ),
    (
        Lookup::Names,
        "evtx_code_names",
        "The names that a table of codes has for the bits of a number or for the words of a list. The last is the rest \
         of the number, if there is one; NULL if nothing of it is known. evtx_codes() has the tables.",
        "SELECT evtx_code_names('ticket_options', '0x40810000')",
    ),
    (
        Lookup::Meaning,
        "evtx_code_meaning",
        "The sentence in which a table of codes says what a code means; NULL for an unknown one. evtx_codes() has the \
         tables.",
        "SELECT evtx_code_meaning('status', '0xc000006a')",
    ),
    (
        Lookup::Text,
        "evtx_code_text",
        "A text in which the names of a table of codes stand for each %%nnnn that it has; what is unknown stays. Of the \
         table 'base64', the text that a base64 text holds; NULL if it holds none.",
        "SELECT evtx_code_text('parameters', '%%1541 %%4416')",
    ),
];

/// The function with this index. `known` receives whether there is one.
///
/// # Safety
/// `out` and `known` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_code_function(index: usize, out: *mut EvtxCodeFunction, known: *mut bool) -> *mut c_char {
    entry(|| {
        // Each is there twice, for text and for numbers.
        let found = FUNCTIONS.get(index / 2);
        let function = found.map(|(lookup, name, description, example)| EvtxCodeFunction {
            function: EvtxFunction::borrowed(name, description, example),
            is_list: *lookup == Lookup::Names,
            takes_number: index % 2 == 1,
            number: index / 2,
        });
        // SAFETY: the caller's promise.
        unsafe { put_entry(function, out, known) };
        Ok(())
    })
}

/// A vector of DuckDB, as it shows it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxVector {
    /// The elements: texts or numbers in DuckDB's form.
    pub data: *const c_void,
    /// A bit for each element that is not NULL; null if none is.
    pub validity: *const u64,
    /// The element of each row; null for that of the same index.
    pub selection: *const u32,
    /// Whether the elements are of type HUGEINT. Otherwise they are VARCHAR.
    pub is_number: bool,
}

impl EvtxVector {
    /// The element of a row.
    ///
    /// # Safety
    /// The vector is as its fields say, and has this row.
    unsafe fn element(&self, row: usize) -> usize {
        if self.selection.is_null() {
            return row;
        }
        // SAFETY: the caller's promise.
        unsafe { *self.selection.add(row) as usize }
    }

    /// What an element holds; `None` for NULL.
    ///
    /// # Safety
    /// The vector is as its fields say, has this element, and is not changed while the result is used.
    unsafe fn get<'a>(&self, element: usize) -> Result<Option<Code<'a>>, String> {
        // SAFETY: the caller's promise.
        if !self.validity.is_null() && unsafe { *self.validity.add(element / 64) } >> (element % 64) & 1 == 0 {
            return Ok(None);
        }
        if self.is_number {
            // SAFETY: the caller's promise. The lower half of a HUGEINT is first, as it is here.
            let number = unsafe { self.data.cast::<i128>().add(element).read_unaligned() };
            return Ok(Some(Code::Number(number)));
        }
        // SAFETY: the caller's promise. A text is its length, and up to 12 bytes of it, or 4 bytes and a pointer to all.
        let text = unsafe {
            let start = self.data.cast::<u8>().add(element * 16);
            let len = start.cast::<u32>().read_unaligned() as usize;
            let bytes = if len <= 12 {
                start.add(4)
            } else {
                start.add(8).cast::<*const u8>().read_unaligned()
            };
            text(bytes.cast(), len)?
        };
        Ok(Some(Code::Text(text)))
    }
}

/// The texts of a row that is a list.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvtxList {
    /// The index of its first text.
    pub offset: u64,
    /// How many texts there are.
    pub len: u64,
    /// Whether it is NULL.
    pub is_null: bool,
}

/// What the tables say. The pointers are valid until the answers are freed.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxAnswersView {
    /// The texts: one for each row, null for NULL, or those of all lists.
    pub texts: *const EvtxText,
    /// How many texts there are.
    pub text_count: usize,
    /// A list for each row, of a function that gives lists.
    pub lists: *const EvtxList,
    /// What goes with the answers. Texts that do not point into it stay where they are.
    pub owned: EvtxText,
}

/// A text of an answer.
#[derive(Debug, Clone, Copy)]
enum Text {
    Null,
    Static(&'static str),
    /// A range of what the answers own.
    Owned(usize, usize),
}

/// What the tables say of the codes of some rows.
#[derive(Default)]
pub struct EvtxAnswers {
    texts: Vec<Text>,
    lists: Vec<EvtxList>,
    owned: String,
    /// The texts as the caller sees them.
    shown: Vec<EvtxText>,
}

impl EvtxAnswers {
    fn push(&mut self, text: Cow<'static, str>) {
        let text = match text {
            Cow::Borrowed(text) => Text::Static(text),
            Cow::Owned(text) => {
                let start = self.owned.len();
                self.owned.push_str(&text);
                Text::Owned(start, text.len())
            }
        };
        self.texts.push(text);
    }

    fn push_answer(&mut self, lookup: Lookup, answer: Answer) {
        let (offset, is_null) = (self.texts.len() as u64, answer == Answer::Null);
        match answer {
            Answer::Null if lookup != Lookup::Names => self.texts.push(Text::Null),
            Answer::Null => {}
            Answer::Text(text) => self.push(text),
            Answer::List(texts) => texts.into_iter().for_each(|text| self.push(text)),
        }
        if lookup == Lookup::Names {
            let len = self.texts.len() as u64 - offset;
            self.lists.push(EvtxList { offset, len, is_null });
        }
    }

    /// Adds the answer of an earlier row.
    fn repeat(&mut self, lookup: Lookup, row: usize) {
        match lookup {
            Lookup::Names => self.lists.push(self.lists[row]),
            _ => self.texts.push(self.texts[row]),
        }
    }

    /// Answers for the codes of some rows. The answer for a NULL table or code is NULL.
    ///
    /// # Safety
    /// The vectors are as their fields say and have `count` rows.
    unsafe fn of(
        lookup: Lookup,
        tables: EvtxVector,
        codes: EvtxVector,
        count: usize,
        interrupt: Interrupt<'_>,
    ) -> Result<Self, Failure> {
        let mut answers = EvtxAnswers::default();
        answers.texts.reserve(count);
        // Logs have few codes, over and over: the first row with each.
        let mut first_rows = HashMap::new();
        // The sources that rows have named, and the one that the last row named. There is none for NULL.
        let mut sources: Vec<(Option<Code<'_>>, Option<Source>)> = Vec::new();
        let (mut element, mut current, mut bytes) = (usize::MAX, 0, 0);
        for row in 0..count {
            // SAFETY: the caller's promise.
            let (of, code) = unsafe { (tables.element(row), codes.get(codes.element(row))?) };
            if of != element {
                element = of;
                // SAFETY: the caller's promise.
                let name = unsafe { tables.get(of)? };
                let known = sources.iter().position(|(known, _)| *known == name);
                current = known.unwrap_or(sources.len());
                if known.is_none() {
                    let source = match name {
                        Some(Code::Text(name)) => Some(lookup.source(name)?),
                        _ => None,
                    };
                    sources.push((name, source));
                }
            }
            let (Some(source), Some(code)) = (sources[current].1, code) else {
                answers.push_answer(lookup, Answer::Null);
                continue;
            };
            if let Code::Text(text) = code {
                bytes += text.len();
                if bytes > LONG {
                    bytes = 0;
                    interrupt.check().map_err(ScanError::from)?;
                }
            }
            match first_rows.entry((current, code)) {
                Entry::Occupied(first) => answers.repeat(lookup, *first.get()),
                Entry::Vacant(place) => {
                    place.insert(row);
                    answers.push_answer(lookup, lookup.answer(source, code));
                }
            }
        }
        let show = |text: &Text| match *text {
            Text::Null => EvtxText::NONE,
            Text::Static(text) => EvtxText::borrowed(text),
            Text::Owned(start, len) => EvtxText::borrowed(&answers.owned[start..start + len]),
        };
        answers.shown = answers.texts.iter().map(show).collect();
        Ok(answers)
    }
}

/// How many bytes of codes are read between two checks for an interrupt.
const LONG: usize = 1 << 16;

/// Asks the tables about the codes of some rows. The answer for a NULL table or code is NULL.
///
/// # Safety
/// The vectors are as their fields say and have `count` rows, the storage is that of [`EvtxStorage`], `out` can be
/// written. The caller frees the answers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_answers_new(
    function: usize,
    tables: EvtxVector,
    codes: EvtxVector,
    count: usize,
    storage: EvtxStorage,
    out: *mut *mut EvtxAnswers,
) -> *mut c_char {
    entry(|| {
        let (lookup, ..) = *FUNCTIONS.get(function).ok_or("there is no such function of codes")?;
        // SAFETY: the caller's promise.
        let answers =
            unsafe { storage.during(|_, interrupt| EvtxAnswers::of(lookup, tables, codes, count, interrupt)) }?;
        // SAFETY: the caller's promise.
        unsafe { put(out, Box::into_raw(Box::new(answers))) };
        Ok(())
    })
}

/// Shows answers.
///
/// # Safety
/// `answers` is valid, `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_answers_view(answers: *const EvtxAnswers, out: *mut EvtxAnswersView) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let answers = unsafe { &*answers };
        let view = EvtxAnswersView {
            texts: answers.shown.as_ptr(),
            text_count: answers.shown.len(),
            lists: answers.lists.as_ptr(),
            owned: EvtxText::borrowed(&answers.owned),
        };
        // SAFETY: the caller's promise.
        unsafe { put(out, view) };
        Ok(())
    })
}

/// Frees answers.
///
/// # Safety
/// `answers` is null or came from [`evtx_answers_new`], and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_answers_free(answers: *mut EvtxAnswers) {
    // SAFETY: the caller's promise.
    release(|| unsafe { free(answers) });
}

#[cfg(test)]
mod tests {
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
            is_number: size_of::<T>() == size_of::<i128>() && align_of::<T>() == align_of::<i128>(),
        }
    }

    /// The answers as text, with commas between the names of a list.
    fn answers(kind: Lookup, tables: EvtxVector, asked: EvtxVector, count: usize) -> Vec<Option<String>> {
        // SAFETY: the vectors are those of a test, which hold what they say.
        let answers = unsafe { EvtxAnswers::of(kind, tables, asked, count, Interrupt::NEVER) };
        let answers = answers.unwrap_or_else(|_| panic!("answers"));
        let shown = |view: &EvtxText| {
            // SAFETY: the texts are those of the answers.
            (!view.data.is_null()).then(|| unsafe { text(view.data, view.len) }.expect("UTF-8").to_owned())
        };
        let texts: Vec<_> = answers.shown.iter().map(shown).collect();
        if kind != Lookup::Names {
            return texts;
        }
        let list = |list: &EvtxList| {
            let range = list.offset as usize..(list.offset + list.len) as usize;
            (!list.is_null).then(|| texts[range].iter().flatten().cloned().collect::<Vec<_>>().join(","))
        };
        answers.lists.iter().map(list).collect()
    }

    #[test]
    fn each_row_has_its_answer() {
        let constant = [0; 6];
        let of = [element("status")];
        let status = vector(&of, &u64::MAX, Some(&constant));
        let codes = ["0xc000006a", "3221225578", "-", "0xc000006a", "0x00000000c000006a", "5"].map(element);
        let known = |text: &str| Some(text.to_owned());
        let wrong = known("STATUS_WRONG_PASSWORD");
        assert_eq!(
            answers(Lookup::Name, status, vector(&codes, &0b11_0111, None), 6),
            [
                wrong.clone(),
                wrong.clone(),
                None,
                None,
                wrong.clone(),
                known("ERROR_ACCESS_DENIED")
            ]
        );
        let selection = [1, 1, 0];
        let numbers: [i128; 2] = [5, -1_073_741_718];
        assert_eq!(
            answers(Lookup::Name, status, vector(&numbers, &u64::MAX, Some(&selection)), 3),
            [wrong.clone(), wrong, known("ERROR_ACCESS_DENIED")]
        );
    }

    #[test]
    fn lists_and_texts_have_their_own() {
        let of = ["access_File", "access_key", "access_FILE", "access_Nothing"].map(element);
        let masks: [i128; 4] = [0x801, 1, 1, 1];
        let known = |text: &str| Some(text.to_owned());
        assert_eq!(
            answers(
                Lookup::Names,
                vector(&of, &u64::MAX, None),
                vector(&masks, &u64::MAX, None),
                4
            ),
            [
                known("FILE_READ_DATA,0x800"),
                known("KEY_QUERY_VALUE"),
                known("FILE_READ_DATA"),
                None
            ]
        );
        let of = [element("parameters")];
        let texts = ["%%1841 or %%99999", "%%1842", "%%1842", ""].map(element);
        let constant = [0; 4];
        assert_eq!(
            answers(
                Lookup::Text,
                vector(&of, &u64::MAX, Some(&constant)),
                vector(&texts, &u64::MAX, None),
                4
            ),
            [
                known("Denied by process trust label ACE or %%99999"),
                known("Yes"),
                known("Yes"),
                known("")
            ]
        );
    }
}
