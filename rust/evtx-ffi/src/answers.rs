//! What the tables of codes say, for a vector of rows at a time.

use std::borrow::Cow;
use std::ffi::c_char;

use crate::boundary::{Code as Number, entry, free, put, release, text};
use crate::codes::{self, Table};
use crate::macros::{EvtxFunction, EvtxText};

/// What a function says of codes.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EvtxCodeKind {
    /// The name of a code.
    Name,
    /// The names of the bits of a number, or of the words of a list.
    Names,
    /// What a code means.
    Meaning,
    /// A text in which names stand for codes.
    Text,
}

impl Number for EvtxCodeKind {
    const ALL: &[Self] = &[
        EvtxCodeKind::Name,
        EvtxCodeKind::Names,
        EvtxCodeKind::Meaning,
        EvtxCodeKind::Text,
    ];
    const WHAT: &str = "function of codes";
}

/// A function of a table and a code, both text.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxCodeFunction {
    /// Its name, what it gives, and an example.
    pub function: EvtxFunction,
    /// Whether it gives a list of texts.
    pub is_list: bool,
    /// Its number, for [`evtx_answers_new`].
    pub kind: u32,
}

const FUNCTIONS: &[(EvtxCodeKind, &str, &str, &str)] = &[
    (
        EvtxCodeKind::Name,
        "evtx_code_name",
        "The name that a table of codes has for a code; NULL for an unknown one. evtx_codes() has the tables.",
        "SELECT evtx_code_name('logon_type', '3')",
    ),
    (
        EvtxCodeKind::Names,
        "evtx_code_names",
        "The names that a table of codes has for the bits of a number or for the words of a list. The last is the rest \
         of the number, if there is one; NULL if nothing of it is known. evtx_codes() has the tables.",
        "SELECT evtx_code_names('ticket_options', '0x40810000')",
    ),
    (
        EvtxCodeKind::Meaning,
        "evtx_code_meaning",
        "The sentence in which a table of codes says what a code means; NULL for an unknown one. evtx_codes() has the \
         tables.",
        "SELECT evtx_code_meaning('status', '0xc000006a')",
    ),
    (
        EvtxCodeKind::Text,
        "evtx_code_text",
        "A text in which the names of a table of codes stand for each %%nnnn that it has; what is unknown stays.",
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
        let found = FUNCTIONS.get(index);
        // SAFETY: the caller's promise.
        unsafe { put(known, found.is_some()) };
        if let Some((kind, name, description, example)) = found {
            let function = EvtxCodeFunction {
                function: EvtxFunction {
                    name: EvtxText::borrowed(name),
                    description: EvtxText::borrowed(description),
                    example: EvtxText::borrowed(example),
                },
                is_list: *kind == EvtxCodeKind::Names,
                kind: *kind as u32,
            };
            // SAFETY: the caller's promise.
            unsafe { put(out, function) };
        }
        Ok(())
    })
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
    /// Whether texts go with the answers. Otherwise they stay where they are.
    pub is_owned: bool,
}

/// What the tables say of the codes of some rows.
#[derive(Default)]
pub struct EvtxAnswers {
    texts: Vec<EvtxText>,
    lists: Vec<EvtxList>,
    /// What texts point to.
    owned: Vec<String>,
}

impl EvtxAnswers {
    fn push(&mut self, text: Cow<'static, str>) {
        let text = match text {
            Cow::Borrowed(text) => EvtxText::borrowed(text),
            Cow::Owned(text) => {
                // The bytes stay where they are when the vector grows.
                let view = EvtxText::borrowed(&text);
                self.owned.push(text);
                view
            }
        };
        self.texts.push(text);
    }

    fn push_list(&mut self, names: Option<Vec<Cow<'static, str>>>) {
        let (offset, is_null) = (self.texts.len() as u64, names.is_none());
        names.into_iter().flatten().for_each(|name| self.push(name));
        let len = self.texts.len() as u64 - offset;
        self.lists.push(EvtxList { offset, len, is_null });
    }

    /// What was said of the row before, for the same code.
    fn repeat(&mut self, kind: EvtxCodeKind) {
        if kind == EvtxCodeKind::Names {
            self.lists.extend(self.lists.last().copied());
        } else {
            self.texts.extend(self.texts.last().copied());
        }
    }

    fn answer(&mut self, kind: EvtxCodeKind, table: Option<&'static Table>, code: &str) {
        let name = |text: Option<&'static str>| text.map_or(EvtxText::NONE, EvtxText::borrowed);
        let row = || table.and_then(|table| table.find(code));
        match kind {
            EvtxCodeKind::Name => self.texts.push(name(row().map(|row| row.name))),
            EvtxCodeKind::Meaning => {
                let meaning = row().map(|row| row.meaning).filter(|meaning| !meaning.is_empty());
                self.texts.push(name(meaning));
            }
            EvtxCodeKind::Names => self.push_list(table.and_then(|table| table.find_all(code))),
            EvtxCodeKind::Text => match table {
                None => self.texts.push(EvtxText::NONE),
                Some(table) => self.push(Cow::Owned(codes::replace(table, code).into_owned())),
            },
        }
    }
}

/// The table that a row names. What kind of object there is comes from an event, so that it need not be known.
fn table(name: &str) -> Result<Option<&'static Table>, String> {
    let found = codes::table(name);
    if found.is_none() && !name.starts_with("access_") {
        let names: Vec<_> = codes::names().collect();
        return Err(format!(
            "no table of codes is named '{name}'; there are {}",
            names.join(", ")
        ));
    }
    Ok(found)
}

/// Asks the tables about the codes of some rows. The answer for a null table or code is NULL.
///
/// # Safety
/// `tables` and `asked` point to `count` texts, `out` can be written. The caller frees the answers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_answers_new(
    kind: u32,
    tables: *const EvtxText,
    asked: *const EvtxText,
    count: usize,
    out: *mut *mut EvtxAnswers,
) -> *mut c_char {
    entry(|| {
        let kind = EvtxCodeKind::decode(kind)?;
        let mut answers = EvtxAnswers::default();
        let (mut named, mut last) = (("", None), None);
        for row in 0..count {
            // SAFETY: the caller's promise.
            let (of, code) = unsafe { (*tables.add(row), *asked.add(row)) };
            if of.data.is_null() || code.data.is_null() {
                last = None;
                match kind {
                    EvtxCodeKind::Names => answers.push_list(None),
                    _ => answers.texts.push(EvtxText::NONE),
                }
                continue;
            }
            // SAFETY: the caller's promise.
            let (of, code) = unsafe { (text(of.data, of.len)?, text(code.data, code.len)?) };
            if last == Some((of, code)) {
                answers.repeat(kind);
                continue;
            }
            last = Some((of, code));
            if of == "*" && kind == EvtxCodeKind::Names {
                answers.push_list(Some(codes::lines()));
                continue;
            }
            if named.1.is_none() || named.0 != of {
                named = (of, table(of)?);
            }
            answers.answer(kind, named.1, code);
        }
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
            texts: answers.texts.as_ptr(),
            text_count: answers.texts.len(),
            lists: answers.lists.as_ptr(),
            is_owned: !answers.owned.is_empty(),
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
