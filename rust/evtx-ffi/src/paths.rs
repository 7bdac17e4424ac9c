//! The C ABI of a list of files.

use std::ffi::c_char;

use evtx_archive::{ArchiveStorage, Archives};
use evtx_scan::{FileKind, ScanPath, expand};

use crate::arguments::EvtxArguments;
use crate::boundary::{entry, free, put, release, size, text};
use crate::storage::EvtxStorage;

/// Most bytes of temporary files if DuckDB has no limit.
const DISK: u64 = 64 << 30;

/// The files that a call shall read, and what their archives share.
pub struct EvtxPaths(pub(crate) Vec<ScanPath>, FileKind, pub(crate) Archives);

/// Makes an empty list of files for a call with arguments.
///
/// - `memory` is DuckDB's `memory_limit` as text, as `24.9 GiB`. The entries of archives that are open may take a
///   quarter of it together.
/// - `folder` is DuckDB's `temp_directory`, where an entry that takes more is held; empty if there is none.
/// - `disk` is DuckDB's `max_temp_directory_size` as text: how much entries may take there together; 64 GiB if it is a
///   share, as by default (`90% of available disk space`).
///
/// # Safety
/// `arguments` is valid, `memory`, `folder` and `disk` are text, `out` can be written. The caller frees the paths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_paths_new(
    arguments: *const EvtxArguments,
    memory: *const c_char,
    memory_len: usize,
    folder: *const c_char,
    folder_len: usize,
    disk: *const c_char,
    disk_len: usize,
    out: *mut *mut EvtxPaths,
) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        let (arguments, memory) = unsafe { (&*arguments, text(memory, memory_len)?) };
        // SAFETY: the caller's promise.
        let (folder, disk) = unsafe { (text(folder, folder_len)?, text(disk, disk_len)?) };
        let folder = (!folder.is_empty()).then(|| folder.into());
        let disk = if disk.contains('%') { DISK } else { size(disk) };
        let archives = Archives::new(size(memory) / 4, disk, folder).with_password(arguments.0.password());
        // SAFETY: the caller's promise.
        unsafe {
            put(
                out,
                Box::into_raw(Box::new(EvtxPaths(Vec::new(), arguments.0.function().kind(), archives))),
            )
        };
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
        let found = unsafe {
            storage.during(|storage, interrupt| {
                let storage = ArchiveStorage::new(storage, &paths.2);
                expand(&storage, path, paths.1, function, interrupt)
            })
        };
        paths.0.extend(found?);
        Ok(())
    })
}
