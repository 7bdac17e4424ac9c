//! The list of files of a call.

use evtx_archive::{ArchiveStorage, Archives};
use evtx_scan::{FileKind, ScanPath, expand};

use crate::arguments::EvtxArguments;
use crate::boundary::{EvtxFailure, EvtxOwned, EvtxText, entry, produce, release, required, size};
use crate::storage::EvtxStorage;

/// The most bytes of temporary files if DuckDB has no limit in bytes.
const DISK: u64 = 64 << 30;

/// The files that a call reads.
pub struct EvtxPaths {
    pub(crate) paths: Vec<ScanPath>,
    /// What the archives among them share.
    pub(crate) archives: Archives,
}

/// Makes an empty list of files for a call with arguments.
///
/// - `memory` is DuckDB's `memory_limit`, such as `24.9 GiB`. Open entries of archives take at most a quarter of it.
/// - `folder` is DuckDB's `temp_directory`, for entries that need more memory; empty if there is none.
/// - `disk` is DuckDB's `max_temp_directory_size`. A share (`90% of available disk space`) means 64 GiB.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_paths_new(
    arguments: Option<&EvtxArguments>,
    memory: EvtxText<'_>,
    folder: EvtxText<'_>,
    disk: EvtxText<'_>,
    out: Option<&mut EvtxOwned<EvtxPaths>>,
) -> EvtxFailure {
    produce(out, || {
        let (folder, disk) = (folder.text()?, disk.text()?);
        let folder = (!folder.is_empty()).then(|| folder.into());
        let disk = if disk.contains('%') { DISK } else { size(disk) };
        let password = required(arguments)?.arguments.password();
        let archives = Archives::new(size(memory.text()?) / 4, disk, folder).with_password(password);
        Ok(Some(
            EvtxPaths {
                paths: Vec::new(),
                archives,
            }
            .into(),
        ))
    })
}

/// Frees a list of files.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_paths_free(paths: EvtxOwned<EvtxPaths>) {
    release(|| drop(paths));
}

/// Adds the files that a path, a glob or a folder names, to the list of a call with these arguments.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_paths_expand(
    paths: Option<&mut EvtxPaths>,
    arguments: Option<&EvtxArguments>,
    storage: EvtxStorage,
    path: EvtxText<'_>,
) -> EvtxFailure {
    entry(|| {
        let (EvtxPaths { paths, archives }, EvtxArguments { arguments, caller }) =
            (required(paths)?, required(arguments)?);
        let (path, kind) = (path.text()?, arguments.query().kind().unwrap_or(FileKind::Logs));
        let found = storage.during(|storage, interrupt| {
            let storage = ArchiveStorage::new(storage, archives);
            expand(&storage, path, kind, caller, interrupt)
        });
        paths.extend(found?);
        Ok(())
    })
}
