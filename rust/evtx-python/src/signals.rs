//! Signals of Python, such as that of Ctrl-C, while a call or a stream works.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Instant;

use pyo3::prelude::*;

/// How long the work goes on before Python is asked for signals again, in milliseconds.
const PAUSE: u64 = 20;

/// The signals that arrive while a call or a stream works. Python handles them on its main thread only.
pub(crate) struct Signals {
    /// The main thread, if the signals were made there. No other thread asks: it could wait for one that holds the lock
    /// of the interpreter and waits for the stream.
    main: Option<ThreadId>,
    start: Instant,
    /// When Python is asked next, in milliseconds since `start`.
    next: AtomicU64,
    is_set: AtomicBool,
    /// What the handler of a signal has raised.
    error: Mutex<Option<PyErr>>,
}

impl Signals {
    /// The signals from now on.
    ///
    /// # Errors
    /// Those of Python's module `threading`.
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        let threading = py.import("threading")?;
        let main = threading.call_method0("main_thread")?.getattr("ident")?;
        let is_main = threading.call_method0("get_ident")?.eq(main)?;
        Ok(Signals {
            main: is_main.then(|| thread::current().id()),
            start: Instant::now(),
            next: AtomicU64::new(0),
            is_set: AtomicBool::new(false),
            error: Mutex::new(None),
        })
    }

    /// Whether a handler has raised an error. Asks Python every 20 ms, if this is its main thread.
    pub(crate) fn is_set(&self) -> bool {
        if self.is_set.load(Ordering::Relaxed) {
            return true;
        }
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        if now < self.next.load(Ordering::Relaxed) || self.main != Some(thread::current().id()) {
            return false;
        }
        self.next.store(now.saturating_add(PAUSE), Ordering::Relaxed);
        if let Some(Err(error)) = Python::try_attach(|py| py.check_signals()) {
            self.set(error);
        }
        self.is_set.load(Ordering::Relaxed)
    }

    /// Ends the work with this error.
    pub(crate) fn set(&self, error: PyErr) {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        self.is_set.store(true, Ordering::Relaxed);
    }

    /// What has ended the work, once.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
