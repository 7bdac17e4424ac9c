//! Signals of Python, such as Ctrl-C, during a call or a stream.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Instant;

use pyo3::prelude::*;

/// The time between two checks for signals, in milliseconds.
const PAUSE: u64 = 20;

/// Python's main thread, once it was seen. A consumer can make a stream on another thread and read it on the main one.
static MAIN: OnceLock<ThreadId> = OnceLock::new();

/// The current thread, if Python has started it. `None` for a thread of a library, which usually reads without the lock
/// of the interpreter.
pub(crate) fn python_thread(py: Python<'_>) -> PyResult<Option<ThreadId>> {
    let threading = py.import("threading")?;
    let ident = threading.call_method0("get_ident")?;
    for thread in threading.call_method0("enumerate")?.try_iter()? {
        if thread?.getattr("ident")?.eq(&ident)? {
            return Ok(Some(thread::current().id()));
        }
    }
    Ok(None)
}

/// The signals that arrive during a call or a stream. Python handles them only on its main thread.
pub(crate) struct Signals {
    start: Instant,
    /// The time of the next check, in milliseconds since `start`.
    next: AtomicU64,
    is_set: AtomicBool,
    /// The exception of a signal handler.
    error: Mutex<Option<PyErr>>,
}

impl Signals {
    /// Watches for signals from now on.
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        let threading = py.import("threading")?;
        let main = threading.call_method0("main_thread")?.getattr("ident")?;
        if threading.call_method0("get_ident")?.eq(main)? {
            MAIN.get_or_init(|| thread::current().id());
        }
        Ok(Signals {
            start: Instant::now(),
            next: AtomicU64::new(0),
            is_set: AtomicBool::new(false),
            error: Mutex::new(None),
        })
    }

    /// Whether a handler has raised an exception. Checks every 20 ms, and only on Python's main thread: another thread
    /// could wait for one that holds the lock of the interpreter and waits for the stream.
    pub(crate) fn is_set(&self) -> bool {
        if self.is_set.load(Ordering::Relaxed) {
            return true;
        }
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        if now < self.next.load(Ordering::Relaxed) || MAIN.get() != Some(&thread::current().id()) {
            return false;
        }
        self.next.store(now.saturating_add(PAUSE), Ordering::Relaxed);
        if let Some(Err(error)) = Python::try_attach(|py| py.check_signals()) {
            self.set(error);
        }
        self.is_set.load(Ordering::Relaxed)
    }

    /// Ends the work with this exception.
    pub(crate) fn set(&self, error: PyErr) {
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        self.is_set.store(true, Ordering::Relaxed);
    }

    /// The exception that has ended the work. Returns it once.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
