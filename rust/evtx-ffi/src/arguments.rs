//! The arguments of a call through the C ABI.

use std::ffi::c_char;

use evtx_scan::{ARGUMENTS, Argument, ArgumentKind, ArgumentValue, Arguments};

use crate::boundary::{Code, EvtxText, entry, free, put, put_entry, release, text};

/// What an argument takes.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvtxValueKind {
    /// NULL.
    Nothing,
    /// True or false, as a number.
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

/// An argument as the list has it. Its texts are there for good.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxArgument {
    /// Its name.
    pub name: EvtxText,
    /// The text of its value if it is not given; null for NULL.
    pub default_text: EvtxText,
    /// What it takes, an `EvtxValueKind`.
    pub kind: u32,
}

/// A value for an argument.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxValue {
    /// An `EvtxValueKind`.
    pub kind: u32,
    /// A flag, or a whole number.
    pub number: i64,
    /// A text of `len` bytes, or those of a list.
    pub text: *const c_char,
    /// How many bytes there are.
    pub len: usize,
}

/// What a call says beside its files.
pub struct EvtxArguments(pub(crate) Arguments);

/// The argument with this index in the list. `known` receives whether there is one.
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

/// The arguments of a call that has given none so far.
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

/// Sets the option that adds the column with a name, if there is one that does no more than that.
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

/// Takes the value for the argument of a name. `function` is who asks.
///
/// # Safety
/// `arguments` is valid and not in use elsewhere, `name` and `function` are text, the pointers of `value` are valid as
/// far as its kind has them.
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
