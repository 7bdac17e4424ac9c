//! EVTX logs as Arrow streams in WebAssembly: the core of the page in the browser.
//!
//! An instance runs in a worker, is used by one thread, and imports one function, which reads a file that was dropped on
//! the page. The worker writes a command into the memory of the instance, calls [`evtx_command`], and reads the answer.
//! Commands and answers are JSON, but for rows, which are Arrow IPC streams: see [`Session::run`].
//!
//! A panic ends the instance with a trap. [`evtx_answer`] then has its message.

mod files;
mod columns;
mod functions;
mod session;

use std::cell::RefCell;

pub use files::{DroppedFiles, Read};
pub use session::Session;

thread_local! {
    static SESSION: RefCell<Session> = {
        std::panic::set_hook(Box::new(keep_message));
        RefCell::new(Session::new(Box::new(read)))
    };
    /// A command and the bytes that it takes, and how many bytes the command has.
    static COMMAND: RefCell<(Vec<u8>, usize)> = const { RefCell::new((Vec::new(), 0)) };
    static ANSWER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[cfg(target_family = "wasm")]
mod host {
    #[link(wasm_import_module = "evtx")]
    unsafe extern "C" {
        /// Writes `len` bytes of the file with this number to `to`, from `offset` bytes after its start on. Returns how many
        /// it has written.
        pub(super) fn read(file: u32, offset: f64, to: *mut u8, len: usize) -> usize;
    }
}

/// Reads from a file of the page. Returns the number of bytes.
#[cfg(target_family = "wasm")]
fn read(file: u32, offset: u64, to: &mut [u8]) -> usize {
    // SAFETY: the worker writes no more than these bytes.
    unsafe { host::read(file, offset as f64, to.as_mut_ptr(), to.len()) }
}

/// Only a worker of the page has files.
#[cfg(not(target_family = "wasm"))]
fn read(_: u32, _: u64, _: &mut [u8]) -> usize {
    0
}

/// Makes the message of a panic the answer.
fn keep_message(panic: &std::panic::PanicHookInfo<'_>) {
    ANSWER.with(|answer| {
        if let Ok(mut answer) = answer.try_borrow_mut() {
            *answer = panic.to_string().into_bytes();
        }
    });
}

/// Makes room for a command and for the bytes that it takes, of so many bytes each, and returns its address.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_room(command: usize, input: usize) -> *mut u8 {
    COMMAND.with_borrow_mut(|(bytes, len)| {
        *len = command;
        bytes.clear();
        bytes.resize(command + input, 0);
        bytes.as_mut_ptr()
    })
}

/// Runs the command that was written to [`evtx_room`]. Returns the number of bytes of the answer; a number below 0 of an
/// error's text.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_command() -> isize {
    let (bytes, len) = COMMAND.take();
    let (command, input) = bytes.split_at(len.min(bytes.len()));
    let outcome = SESSION.with_borrow_mut(|session| session.run(command, input));
    let (bytes, sign) = match outcome {
        Ok(bytes) => (bytes, 1),
        Err(text) => (text.into_bytes(), -1),
    };
    let len = bytes.len() as isize * sign;
    ANSWER.set(bytes);
    len
}

/// The address of the last answer.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_answer() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}

/// The number of bytes of the last answer, for the message of a panic.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_answer_len() -> usize {
    ANSWER.with_borrow(Vec::len)
}
