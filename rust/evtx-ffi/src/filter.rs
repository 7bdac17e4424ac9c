//! Predicates through the C ABI: put on a stack, combined there, and accepted.

use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

use evtx_arrow::{Comparison, Literal, Predicate, Table};

use crate::table::EvtxTable;
use crate::{bytes, entry, free, put, text};

/// What is asked of a value.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // the names say it
pub enum EvtxTest {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// The text starts with the constant.
    Prefix,
    /// The text ends with the constant.
    Suffix,
    /// The constant is in the text.
    Contains,
    /// The value is equal to one of the constants.
    In,
    /// There is no value. Takes no constant.
    IsNull,
}

/// How predicates are combined.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
#[allow(missing_docs)] // the names say it
pub enum EvtxLogic {
    And,
    Or,
    Not,
}

/// What a constant is.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub enum EvtxLiteralKind {
    /// `number` is an unsigned number.
    Number,
    /// `number` is the bits of an i64.
    Integer,
    /// `number` is the bits of an i64: nanoseconds since 1970-01-01 UTC.
    Instant,
    /// `bytes` are the 16 of a GUID, in the order of its text.
    Uuid,
    /// `bytes` are UTF-8 text.
    Text,
    /// `number` is 0 or 1.
    Bool,
}

/// A constant.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxLiteral {
    /// Which of the others counts.
    pub kind: EvtxLiteralKind,
    /// A number.
    pub number: u64,
    /// Bytes, `len` of them.
    pub bytes: *const c_char,
    /// How many bytes there are.
    pub len: usize,
}

/// The predicates of a query.
pub struct EvtxFilter {
    table: Table,
    /// Those that are being put together.
    stack: Vec<Predicate>,
    pub(crate) accepted: Vec<Predicate>,
}

/// # Safety
/// The bytes are there if the kind has some.
unsafe fn literal(literal: &EvtxLiteral) -> Option<Literal> {
    Some(match literal.kind {
        EvtxLiteralKind::Number => Literal::Number(literal.number),
        EvtxLiteralKind::Integer => Literal::Integer(literal.number.cast_signed()),
        EvtxLiteralKind::Instant => Literal::Instant(literal.number.cast_signed()),
        EvtxLiteralKind::Bool => Literal::Bool(literal.number != 0),
        // SAFETY: the caller's promise.
        EvtxLiteralKind::Uuid => Literal::Uuid(unsafe { bytes(literal.bytes.cast(), literal.len) }.try_into().ok()?),
        // SAFETY: the caller's promise.
        EvtxLiteralKind::Text => Literal::Text(unsafe { text(literal.bytes, literal.len) }.ok()?.into()),
    })
}

/// Predicates for scans of a table; none yet.
///
/// # Safety
/// `table` is valid, `out` can be written. The caller frees the filter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_filter_new(table: *const EvtxTable, out: *mut *mut EvtxFilter) -> *mut c_char {
    entry(|| {
        let filter = EvtxFilter {
            // SAFETY: the caller's promise.
            table: unsafe { &*table }.0.clone(),
            stack: Vec::new(),
            accepted: Vec::new(),
        };
        // SAFETY: the caller's promise.
        unsafe { put(out, Box::into_raw(Box::new(filter))) };
        Ok(())
    })
}

/// Frees a filter. Scans keep what they need of it.
///
/// # Safety
/// `filter` is null or came from [`evtx_filter_new`], and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_filter_free(filter: *mut EvtxFilter) {
    // SAFETY: the caller's promise.
    unsafe { free(filter) }
}

/// Puts a test of a column on the stack, or of the entry of a map column that `key` names, if that is not null.
/// Returns false where the core does not decide it as SQL does.
///
/// # Safety
/// `filter` is valid and not in use elsewhere, `key` is null or text, `literals` points to `literal_count` constants.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_filter_test(
    filter: *mut EvtxFilter,
    column: usize,
    key: *const c_char,
    key_len: usize,
    test: EvtxTest,
    literals: *const EvtxLiteral,
    literal_count: usize,
) -> bool {
    let predicate = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the caller's promise.
        let filter = unsafe { &*filter };
        let key = match key.is_null() {
            true => None,
            // SAFETY: the caller's promise.
            false => Some(unsafe { text(key, key_len) }.ok()?),
        };
        let literals = match literal_count {
            0 => &[],
            // SAFETY: the caller's promise.
            _ => unsafe { std::slice::from_raw_parts(literals, literal_count) },
        };
        // SAFETY: the caller's promise.
        let mut constants = literals.iter().map(|constant| unsafe { literal(constant) });
        let table = &filter.table;
        let comparison = match test {
            EvtxTest::IsNull => return Predicate::is_null(table, column, key),
            EvtxTest::In => return Predicate::is_in(table, column, key, constants.collect::<Option<_>>()?),
            EvtxTest::Equal => Comparison::Equal,
            EvtxTest::NotEqual => Comparison::NotEqual,
            EvtxTest::Less => Comparison::Less,
            EvtxTest::LessOrEqual => Comparison::LessOrEqual,
            EvtxTest::Greater => Comparison::Greater,
            EvtxTest::GreaterOrEqual => Comparison::GreaterOrEqual,
            EvtxTest::Prefix => Comparison::Prefix,
            EvtxTest::Suffix => Comparison::Suffix,
            EvtxTest::Contains => Comparison::Contains,
        };
        Predicate::compare(table, column, key, comparison, constants.next()??)
    }));
    let Some(predicate) = predicate.ok().flatten() else {
        return false;
    };
    // SAFETY: the caller's promise.
    unsafe { &mut *filter }.stack.push(predicate);
    true
}

/// Puts what combines the last `count` predicates of the stack in their place; NOT combines one.
///
/// # Safety
/// `filter` is valid and not in use elsewhere, and has as many predicates on its stack.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_filter_combine(filter: *mut EvtxFilter, logic: EvtxLogic, count: usize) {
    // SAFETY: the caller's promise.
    let stack = &mut unsafe { &mut *filter }.stack;
    let mut predicates = stack.split_off(stack.len().saturating_sub(count));
    let combined = match logic {
        EvtxLogic::And => Some(Predicate::all(predicates)),
        EvtxLogic::Or => Some(Predicate::any(predicates)),
        EvtxLogic::Not => predicates.pop().map(Predicate::not),
    };
    stack.extend(combined);
}

/// Takes the predicates on the stack as such that the rows of a scan have to fulfil, or, if not `accept`, drops them.
///
/// # Safety
/// `filter` is valid and not in use elsewhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_filter_finish(filter: *mut EvtxFilter, accept: bool) {
    // SAFETY: the caller's promise.
    let EvtxFilter { stack, accepted, .. } = unsafe { &mut *filter };
    if accept {
        accepted.append(stack);
    }
    stack.clear();
}

/// Drops all predicates, the accepted ones too.
///
/// # Safety
/// `filter` is valid and not in use elsewhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_filter_clear(filter: *mut EvtxFilter) {
    // SAFETY: the caller's promise.
    let EvtxFilter { stack, accepted, .. } = unsafe { &mut *filter };
    stack.clear();
    accepted.clear();
}

/// Whether a file's path alone tells that none of its rows is kept.
///
/// # Safety
/// `filter` is valid, `filename` is text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_filter_drops_file(
    filter: *const EvtxFilter,
    filename: *const c_char,
    filename_len: usize,
) -> bool {
    let drops = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the caller's promise.
        let (filter, filename) = unsafe { (&*filter, text(filename, filename_len)) };
        filename.is_ok_and(|name| filter.accepted.iter().any(|predicate| predicate.drops_file(name)))
    }));
    drops.unwrap_or(false)
}
