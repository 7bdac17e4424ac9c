//! Work that a call does on several threads before its rows are read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, TryRecvError};
use std::thread;

use evtx_format::Interrupt;

use crate::storage::{ScanError, WAIT};

/// The most threads that a call starts for such work.
pub const MAX_THREADS: usize = 16;

/// Runs `work` with each state at once: with the first on the calling thread, after `meanwhile`, and with every other on
/// a thread of its own. What a thread that cannot be started would do is left to the others.
///
/// # Errors
/// [`ScanError::Interrupted`], and those of `meanwhile` and of `work` on this thread.
///
/// # Panics
/// If a thread has panicked.
pub fn on_threads<S: Send>(
    states: &mut [S],
    interrupt: Interrupt<'_>,
    work: impl Fn(&mut S, Interrupt<'_>) -> Result<(), ScanError> + Sync,
    meanwhile: impl FnOnce() -> Result<(), ScanError>,
) -> Result<(), ScanError> {
    let Some((first, others)) = states.split_first_mut() else {
        return meanwhile();
    };
    let (work, stops) = (&work, &AtomicBool::new(false));
    thread::scope(|scope| {
        let (done, ended) = mpsc::channel::<()>();
        for state in others {
            let done = done.clone();
            let work = move || {
                let _done = done;
                let stopped = || stops.load(Ordering::Relaxed);
                // The calling thread knows of an interrupt, and sees a panic.
                _ = work(state, Interrupt::new(&stopped));
            };
            _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        drop(done);
        let result = meanwhile().and_then(|()| work(first, interrupt));
        stops.fetch_or(result.is_err(), Ordering::Relaxed);
        // Where no thread could be started, there may be no clock either, as in WebAssembly.
        while ended.try_recv() == Err(TryRecvError::Empty) && ended.recv_timeout(WAIT) == Err(RecvTimeoutError::Timeout)
        {
            stops.fetch_or(interrupt.check().is_err(), Ordering::Relaxed);
        }
        result
    })?;
    Ok(interrupt.check()?)
}
