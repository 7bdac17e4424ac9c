//! The arguments of `read_evtx` and `COPY ... FROM` through the C ABI.

use std::ffi::c_char;

use evtx_scan::{ARGUMENTS, Argument, ArgumentKind, ArgumentValue, Arguments};

use crate::boundary::{Code, EvtxText, entry, free, put, put_entry, release, text};

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
    /// A list: the texts of its values, each with a NUL behind it.
    List,
}

impl Code for EvtxValueKind {
    const ALL: &[Self] = &[
        EvtxValueKind::Nothing,
        EvtxValueKind::Flag,
        EvtxValueKind::Integer,
        EvtxValueKind::Text,
        EvtxValueKind::List,
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
    /// A text of `len` bytes, or those of a list.
    pub text: *const c_char,
    /// How many bytes the text has.
    pub len: usize,
}

/// The arguments of a call, beside its files.
pub struct EvtxArguments(pub(crate) Arguments);

/// The argument with this index in the list of arguments, which is sorted by name. `known` receives whether there is
/// one; if not, `out` is not written.
///
/// # Safety
/// `out` and `known` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_argument(index: usize, out: *mut EvtxArgument, known: *mut bool) -> *mut c_char {
    entry(|| {
        let argument = ARGUMENTS.get(index).map(|argument| {
            let kind = match argument.kind() {
                ArgumentKind::Flag => EvtxValueKind::Flag,
                ArgumentKind::Integer => EvtxValueKind::Integer,
                ArgumentKind::Text => EvtxValueKind::Text,
                ArgumentKind::List => EvtxValueKind::List,
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

/// The arguments of a call, with their defaults.
///
/// # Safety
/// `out` can be written. The caller frees the arguments.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_arguments_new(out: *mut *mut EvtxArguments) -> *mut c_char {
    entry(|| {
        let arguments = Box::new(EvtxArguments(Arguments::default()));
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
/// `arguments` is valid and not in use elsewhere, `name` and `function` are text, and so is that of `value` if its kind
/// has one.
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
        let argument = Argument::find(name).ok_or_else(|| format!("{function} has no argument {name}"))?;
        let value = match EvtxValueKind::decode(value.kind)? {
            EvtxValueKind::Nothing => ArgumentValue::Null,
            EvtxValueKind::Flag => ArgumentValue::Flag(value.number != 0),
            EvtxValueKind::Integer => ArgumentValue::Integer(value.number),
            // SAFETY: the caller's promise.
            EvtxValueKind::Text => ArgumentValue::Text(unsafe { text(value.text, value.len) }?.to_owned()),
            EvtxValueKind::List => {
                // SAFETY: the caller's promise.
                let texts = unsafe { text(value.text, value.len) }?.split_terminator('\0');
                ArgumentValue::List(texts.map(str::to_owned).collect())
            }
        };
        arguments.0.set(argument, value, function)?;
        Ok(())
    })
}
