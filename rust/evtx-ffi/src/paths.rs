//! The C ABI of a list of files.

use std::ffi::c_char;

use evtx_scan::{ScanPath, expand};

use crate::boundary::{entry, free, put, release, text};
use crate::storage::EvtxStorage;

/// The files that a call shall read.
#[derive(Default)]
pub struct EvtxPaths(pub(crate) Vec<ScanPath>);

/// Makes an empty list of files.
///
/// # Safety
/// `out` can be written. The caller frees the paths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_paths_new(out: *mut *mut EvtxPaths) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        unsafe { put(out, Box::into_raw(Box::default())) };
        Ok(())
    })
}

/// Frees a list of files.
///
/// # Safety
/// `paths` is null or came from [`evtx_paths_new`], and is freed once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_paths_free(paths: *mut EvtxPaths) {
    // SAFETY: the caller's promise.
    release(|| unsafe { free(paths) });
}

/// Adds the files that a path, a glob or a folder stands for. `function` is the name of the SQL function, for errors.
///
/// # Safety
/// `paths` is valid and not in use elsewhere, `storage` does what [`EvtxStorage`] says, `path` and `function` are text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_paths_expand(
    paths: *mut EvtxPaths,
    storage: EvtxStorage,
    path: *const c_char,
    path_len: usize,
    function: *const c_char,
    function_len: usize,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let (paths, path, function) = unsafe { (&mut *paths, text(path, path_len)?, text(function, function_len)?) };
        // SAFETY: the caller's promise.
        let found = unsafe { storage.during(|storage, interrupt| expand(storage, path, function, interrupt)) };
        paths.0.extend(found?);
        Ok(())
    })
}
