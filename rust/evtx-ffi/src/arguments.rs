//! The arguments of `read_evtx` and `COPY ... FROM` through the C ABI.

use std::ffi::c_char;

use evtx_scan::{Argument, ArgumentKind, ArgumentValue, Arguments, Function};

use crate::boundary::{Code, EvtxFunction, EvtxText, entry, free, put, put_entry, release, text};

/// The kind of values that an argument takes, and the kind of a value.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvtxValueKind {
    /// NULL. A kind of a value only.
    Nothing,
    /// True or false: a number that is not 0, or 0.
    Flag,
    /// A whole number.
    Integer,
    /// Text.
    Text,
    /// A list: the texts of its values.
    List,
    /// A map: for each value of each key the texts of both.
    Map,
}

impl Code for EvtxValueKind {
    const ALL: &[Self] = &[
        EvtxValueKind::Nothing,
        EvtxValueKind::Flag,
        EvtxValueKind::Integer,
        EvtxValueKind::Text,
        EvtxValueKind::List,
        EvtxValueKind::Map,
    ];
    const WHAT: &str = "kind of value";
}

/// An argument in the list of arguments. Its texts stay valid as long as the library is loaded.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxArgument {
    /// Its name.
    pub name: EvtxText,
    /// The text of its default value; null if the default is NULL.
    pub default_text: EvtxText,
    /// The kind of values that it takes, an `EvtxValueKind`.
    pub kind: u32,
}

/// A value for an argument.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxValue {
    /// An `EvtxValueKind`.
    pub kind: u32,
    /// The flag or the whole number, if the kind is one of these.
    pub number: i64,
    /// The text, or the texts of a list or a map, `count` of them.
    pub texts: *const EvtxText,
    /// How many texts there are.
    pub count: usize,
}

/// The texts of a value.
///
/// # Safety
/// `value.texts` points to `value.count` texts, or is null if there are none. All stay where they are for `'a`.
unsafe fn texts<'a>(value: &EvtxValue) -> Result<Vec<&'a str>, String> {
    if value.count == 0 {
        return Ok(Vec::new());
    }
    // SAFETY: the caller's promise.
    let texts = unsafe { std::slice::from_raw_parts(value.texts, value.count) };
    // SAFETY: the caller's promise.
    texts.iter().map(|it| unsafe { text(it.data, it.len) }).collect()
}

/// The arguments of a call, beside its files.
pub struct EvtxArguments(pub(crate) Arguments);

/// A table function over files: [`evtx_argument`] lists its arguments.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxScanFunction {
    /// Its name, description and example.
    pub function: EvtxFunction,
    /// The name of its first argument, the files; null if it reads none.
    pub files: EvtxText,
}

/// What each function does, in a sentence or two, and an example.
fn about(function: Function) -> (&'static str, &'static str) {
    match function {
        Function::ReadEvtx => (
            "Reads Windows event logs (EVTX), a row per record. Takes a path, a glob, a folder, or a list of them. With \
             event_id, the records of these events only, and a column for each of their fields.",
            "SELECT event_id, count(*) FROM read_evtx('logs/**/*.evtx') GROUP BY ALL ORDER BY 2 DESC",
        ),
        Function::Sigma => (
            "Asks Sigma rules about each event of Windows event logs (EVTX): a row per event and rule that it matches, \
             with the columns of read_evtx. Takes a path, a glob, a folder, or a list of them, and so does rules.",
            "SELECT rule_level, rule_title, count(*) FROM evtx_sigma('logs/**/*.evtx', rules := 'sigma/rules/windows') \
             GROUP BY ALL ORDER BY ALL DESC",
        ),
        Function::SigmaRules => (
            "Tells what became of Sigma rules: a row per rule, with the events that it is for, or why it is not used.",
            "SELECT rule_file, error FROM evtx_sigma_rules('sigma/rules/**/*.yml') WHERE error IS NOT NULL",
        ),
        Function::Schema => (
            "Tells which events Windows event logs (EVTX) hold: a row per field of each provider, event ID, version and \
             channel, with the type that its template declares, the type of its column in read_evtx(..., event_id := \
             ...), and how many records there are.",
            "SELECT DISTINCT field_name, column_type FROM evtx_schema('logs/**/*.evtx') WHERE event_id = 4624",
        ),
        Function::FileMetadata => (
            "Tells of each Windows event log (EVTX) what its header says and what is in it: flags, checksums as stored \
             and as computed, chunks, records, the span of record IDs and what is missing in it, the span of time, what \
             is damaged.",
            "SELECT filename, records, missing_records, is_dirty FROM evtx_file_metadata('logs/**/*.evtx')",
        ),
        Function::ChunkMetadata => (
            "Tells of each chunk of Windows event logs (EVTX) what its header says and what is in it: record numbers \
             and IDs, free space, checksums as stored and as computed, templates, the span of time, what is damaged.",
            "SELECT chunk_index, first_record_id, last_record_id, records, error FROM \
             evtx_chunk_metadata('Security.evtx')",
        ),
        Function::EventCatalog => (
            "Tells what Windows' providers and Sysmon declare for their events, whether a log has them or not: a row \
             per field of each provider, event ID and version, with its type in templates and that of its column in \
             read_evtx(..., event_id := ...).",
            "SELECT version, list(field_name ORDER BY field_position) FROM evtx_event_catalog() WHERE provider = \
             'Microsoft-Windows-Security-Auditing' AND event_id = 4624 GROUP BY ALL",
        ),
    }
}

fn function(index: usize) -> Result<Function, &'static str> {
    Function::ALL.get(index).copied().ok_or("there is no such function")
}

/// The table function over files with this index. `known` receives whether there is one; if not, `out` is not written.
/// The first is `read_evtx`.
///
/// # Safety
/// `out` and `known` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_scan_function(index: usize, out: *mut EvtxScanFunction, known: *mut bool) -> *mut c_char {
    entry(|| {
        let function = Function::ALL.get(index).map(|&function| {
            let (description, example) = about(function);
            EvtxScanFunction {
                function: EvtxFunction::borrowed(function.name(), description, example),
                files: function.files().map_or(EvtxText::NONE, EvtxText::borrowed),
            }
        });
        // SAFETY: the caller's promise.
        unsafe { put_entry(function, out, known) };
        Ok(())
    })
}

/// The argument with this index in the list of a function's arguments, which is sorted by name. `known` receives whether
/// there is one; if not, `out` is not written.
///
/// # Safety
/// `out` and `known` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_argument(
    of: usize,
    index: usize,
    out: *mut EvtxArgument,
    known: *mut bool,
) -> *mut c_char {
    entry(|| {
        let argument = function(of)?.arguments().nth(index).map(|argument| {
            let kind = match argument.kind() {
                ArgumentKind::Flag => EvtxValueKind::Flag,
                ArgumentKind::Integer => EvtxValueKind::Integer,
                ArgumentKind::Text => EvtxValueKind::Text,
                ArgumentKind::List => EvtxValueKind::List,
                ArgumentKind::Map => EvtxValueKind::Map,
            };
            EvtxArgument {
                name: EvtxText::borrowed(argument.name),
                default_text: argument.default.map_or(EvtxText::NONE, EvtxText::borrowed),
                kind: kind as u32,
            }
        });
        // SAFETY: the caller's promise.
        unsafe { put_entry(argument, out, known) };
        Ok(())
    })
}

/// The arguments of a call of the function with an index, with their defaults.
///
/// # Safety
/// `out` can be written. The caller frees the arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_arguments_new(of: usize, out: *mut *mut EvtxArguments) -> *mut c_char {
    entry(|| {
        let arguments = Box::new(EvtxArguments(Arguments::new(function(of)?)));
        // SAFETY: the caller's promise.
        unsafe { put(out, Box::into_raw(arguments)) };
        Ok(())
    })
}

/// Sets the option that adds the column with this name. Does nothing if there is no such option, or if it does more
/// than to add columns.
///
/// # Safety
/// `arguments` is valid and not in use elsewhere, `column` is text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_arguments_need(
    arguments: *mut EvtxArguments,
    column: *const c_char,
    column_len: usize,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let (arguments, column) = unsafe { (&mut *arguments, text(column, column_len)?) };
        arguments.0.need(column);
        Ok(())
    })
}

/// Frees arguments.
///
/// # Safety
/// `arguments` is null or came from [`evtx_arguments_new`], and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_arguments_free(arguments: *mut EvtxArguments) {
    // SAFETY: the caller's promise.
    release(|| unsafe { free(arguments) });
}

/// Sets the argument with this name to a value. `function` is the name of the function in errors. Fails if there is no
/// such argument, or if it does not take the value.
///
/// # Safety
/// `arguments` is valid and not in use elsewhere, `name` and `function` are text, and so are those of `value`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_arguments_set(
    arguments: *mut EvtxArguments,
    name: *const c_char,
    name_len: usize,
    value: EvtxValue,
    function: *const c_char,
    function_len: usize,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let (arguments, name, function) =
            unsafe { (&mut *arguments, text(name, name_len)?, text(function, function_len)?) };
        let argument =
            Argument::find(arguments.0.function(), name).ok_or_else(|| format!("{function} has no argument {name}"))?;
        // SAFETY: the caller's promise.
        let texts = unsafe { texts(&value) }?;
        let value = match EvtxValueKind::decode(value.kind)? {
            EvtxValueKind::Nothing => ArgumentValue::Null,
            EvtxValueKind::Flag => ArgumentValue::Flag(value.number != 0),
            EvtxValueKind::Integer => ArgumentValue::Integer(value.number),
            EvtxValueKind::Text => ArgumentValue::Text(texts.concat()),
            EvtxValueKind::List => ArgumentValue::List(texts.into_iter().map(str::to_owned).collect()),
            EvtxValueKind::Map => {
                let pair = |pair: &[&str]| (pair[0].to_owned(), pair[1].to_owned());
                ArgumentValue::Map(texts.chunks_exact(2).map(pair).collect())
            }
        };
        arguments.0.set(argument, value, function)?;
        Ok(())
    })
}
