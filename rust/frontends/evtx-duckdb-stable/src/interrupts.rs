//! Whether DuckDB was told to interrupt a statement.
//!
//! The C API has no function that tells. But it evaluates expressions in the connection of a statement, and some of
//! DuckDB's functions fail there if that connection was interrupted. So each database that loads the extension keeps
//! one such expression, and long work evaluates it every few milliseconds.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use evtx_ffi::EvtxError;
use evtx_format::Interrupt;

use crate::api::*;
use crate::call::{registered, with_connection};
use crate::storage::{Context, Failure};
use crate::types::{LogicalType, Value, c_text, id};

/// How often long work asks. Asking takes 10 to 20 µs.
const INTERVAL: Duration = Duration::from_millis(5);

/// Expressions that fail if their connection was interrupted. DuckDB evaluates them here only if it takes them for
/// constants.
const EXPRESSIONS: [&str; 2] = [
    // From 2.0 on, `list_reduce` checks for interrupts before each item.
    "list_reduce([0, 0], lambda a, b: 0)",
    // In 1.5.6, only `sleep_ms` checks for interrupts. It is volatile, but 1.5.6 overlooks that inside of nested lambdas.
    "list_transform([0], lambda a: list_transform([a], lambda b: sleep_ms(b)))",
];

/// The function whose bind takes the expression. Only DuckDB's binder makes expressions.
const FUNCTION: &str = "evtx_interrupt_probe";

/// An expression of a database that fails if the connection that evaluates it was interrupted.
pub(crate) struct Probe(duckdb_expression);

// SAFETY: evaluating an expression does not change it. DuckDB's threads share the expressions of a plan, too.
unsafe impl Send for Probe {}
// SAFETY: likewise.
unsafe impl Sync for Probe {}

impl Drop for Probe {
    fn drop(&mut self) {
        // SAFETY: it is an expression, which is destroyed once.
        unsafe { duckdb_destroy_expression(&mut self.0) };
    }
}

thread_local! {
    /// Whether this thread wants the expression of a bind.
    static WANTED: Cell<bool> = const { Cell::new(false) };
    /// The expression of the last bind that was wanted.
    static TAKEN: Cell<Option<Probe>> = const { Cell::new(None) };
}

unsafe extern "C" fn take(info: duckdb_bind_info) {
    // SAFETY: DuckDB passes the info of the bind, which has one argument. The expression is a copy.
    unsafe {
        if WANTED.get() {
            TAKEN.set(Some(Probe(duckdb_scalar_function_bind_get_argument(info, 0))));
        }
        let why = c_text(&format!("{FUNCTION} is for the extension itself"));
        duckdb_scalar_function_bind_set_error(info, why.as_ptr());
    }
}

/// Nothing calls the function, because its bind fails.
unsafe extern "C" fn exec(_: duckdb_function_info, _: duckdb_data_chunk, _: duckdb_vector) {}

/// Registers the function that takes an expression.
fn register(connection: duckdb_connection) -> Result<(), String> {
    // SAFETY: every object is what the function takes, and is destroyed once.
    let state = unsafe {
        let mut function = duckdb_create_scalar_function();
        duckdb_scalar_function_set_name(function, c_text(FUNCTION).as_ptr());
        duckdb_scalar_function_add_parameter(function, LogicalType::new(id::ANY).0);
        duckdb_scalar_function_set_return_type(function, LogicalType::new(id::BOOLEAN).0);
        // Otherwise DuckDB evaluates arguments before the bind, from 2.0 on.
        duckdb_scalar_function_set_special_handling(function);
        duckdb_scalar_function_set_bind(function, Some(take));
        duckdb_scalar_function_set_function(function, Some(exec));
        let state = duckdb_register_scalar_function(connection, function);
        duckdb_destroy_scalar_function(&mut function);
        state
    };
    registered(state, "function", FUNCTION)
}

impl Probe {
    /// The first expression that works in this version of DuckDB. None might in a future one; then interrupts wait until
    /// the work returns to DuckDB.
    pub(crate) fn find(database: duckdb_database) -> Result<Option<Arc<Self>>, String> {
        with_connection(database, |connection| {
            register(connection)?;
            let mut probes = EXPRESSIONS
                .iter()
                .filter_map(|expression| Probe::of(connection, expression));
            Ok(probes.find(|probe| probe.works(connection)).map(Arc::new))
        })
    }

    /// Lets DuckDB bind an expression.
    fn of(connection: duckdb_connection, expression: &str) -> Option<Self> {
        let mut result = no_result();
        WANTED.set(true);
        // SAFETY: the connection is open, and the result is destroyed once. The statement fails when it is bound.
        unsafe {
            duckdb_query(
                connection,
                c_text(&format!("SELECT {FUNCTION}({expression})")).as_ptr(),
                &mut result,
            );
            duckdb_destroy_result(&mut result);
        }
        WANTED.set(false);
        TAKEN.take()
    }

    /// Whether the expression fails only after an interrupt.
    fn works(&self, connection: duckdb_connection) -> bool {
        let context = Context::of_connection(connection);
        let before = self.failure(&context);
        // SAFETY: the connection is open.
        unsafe { duckdb_interrupt(connection) };
        before.is_none() && self.failure(&context).is_some()
    }

    /// Why the expression fails.
    fn failure(&self, context: &Context) -> Option<String> {
        let mut value = std::ptr::null_mut();
        // SAFETY: both are what the function takes. It returns a value or an error, or none if the expression is no
        // constant.
        let error = unsafe { duckdb_expression_fold(context.0, self.0, &mut value) };
        Value::owned(value);
        (!error.is_null()).then(|| message(&Failure::of(error).why).to_owned())
    }
}

/// The message in the text of an exception, which is JSON.
fn message(exception: &str) -> &str {
    let rest = exception.split_once(r#""exception_message":""#);
    let message = rest.and_then(|(_, rest)| rest.split_once('"'));
    message.map_or(exception, |(message, _)| message)
}

/// Asks whether a statement was interrupted.
pub(crate) struct Interrupts {
    /// The connection of the statement.
    context: Context,
    probe: Option<Arc<Probe>>,
}

impl Interrupts {
    /// The interrupts of a connection, with the expression of its database.
    pub(crate) fn new(context: Context, probe: Option<Arc<Probe>>) -> Self {
        Interrupts { context, probe }
    }

    /// Does work that DuckDB can interrupt. DuckDB's reason is then the error.
    pub(crate) fn during<T, E: Into<EvtxError>>(
        &self,
        work: impl FnOnce(Interrupt<'_>) -> Result<T, E>,
    ) -> Result<T, EvtxError> {
        // Most work ends before the first question.
        let (next, reason) = (Cell::new(Instant::now() + INTERVAL), OnceCell::new());
        let is_set = || {
            if reason.get().is_none() && Instant::now() >= next.get() {
                next.set(Instant::now() + INTERVAL);
                let failure = self.probe.as_ref().and_then(|probe| probe.failure(&self.context));
                failure.map(|why| reason.set(why));
            }
            reason.get().is_some()
        };
        let done = work(Interrupt::new(&is_set));
        done.map_err(|error| reason.into_inner().map_or_else(|| error.into(), Into::into))
    }
}
