//! The list of files of a call.

use evtx_archive::{ArchiveStorage, Archives, XmlExport};
use evtx_format::Interrupt;
use evtx_query::{Query, ScanTask, partitions};
use evtx_scan::{FileKind, ScanError, ScanPath, Storage, expand};

use crate::arguments::EvtxArguments;
use crate::boundary::size;
use crate::values::{EvtxValueKind, SqlValue};

/// The most bytes of temporary files if DuckDB has no limit in bytes.
const DISK: u64 = 64 << 30;

/// The files that a call reads.
pub struct EvtxPaths {
    pub(crate) paths: Vec<ScanPath>,
    /// What the archives among them share.
    pub(crate) archives: Archives,
    /// What a catalog of messages may take of memory, in bytes.
    pub(crate) memory: u64,
}

impl EvtxPaths {
    /// An empty list of files for a call with arguments.
    ///
    /// - `memory` is DuckDB's `memory_limit`, such as `24.9 GiB`. Open entries of archives take at most a quarter of it,
    ///   and so does a catalog of messages.
    /// - `folder` is DuckDB's `temp_directory`, for entries that need more memory; empty if there is none.
    /// - `disk` is DuckDB's `max_temp_directory_size`. A share (`90% of available disk space`) means 64 GiB.
    pub fn new(arguments: &EvtxArguments, memory: &str, folder: &str, disk: &str) -> Self {
        let folder = (!folder.is_empty()).then(|| folder.into());
        let disk = if disk.contains('%') { DISK } else { size(disk) };
        let memory = size(memory) / 4;
        let archives = Archives::new(memory, disk, folder);
        EvtxPaths {
            paths: Vec::new(),
            archives: archives.with_password(arguments.arguments.password()),
            memory,
        }
    }

    /// Adds the files that a path, a glob or a folder names.
    ///
    /// # Errors
    /// Those of [`expand`].
    pub fn expand(
        &mut self,
        of: &EvtxArguments,
        path: &str,
        storage: &dyn Storage,
        interrupt: Interrupt<'_>,
    ) -> Result<(), ScanError> {
        let query = of.arguments.query();
        let kind = query.files().unwrap_or(FileKind::Logs);
        let storage = ArchiveStorage::new(storage, &self.archives);
        let found = expand(&storage, path, kind, &of.caller, interrupt)?;
        self.paths.extend(found.into_iter().map(|path| match query {
            Query::Exports => XmlExport::path(path, &self.archives),
            _ => path,
        }));
        Ok(())
    }

    /// Adds the files that a path, a glob, a folder, or a list of them names.
    pub(crate) fn expand_all(
        &mut self,
        of: &EvtxArguments,
        files: &SqlValue,
        storage: &dyn Storage,
        interrupt: Interrupt<'_>,
    ) -> Result<(), ScanError> {
        let caller = &of.caller;
        match files.kind {
            EvtxValueKind::Text => self.expand(of, &files.text, storage, interrupt),
            EvtxValueKind::Nothing => Err(ScanError::Input(format!("{caller} cannot take NULL as a path"))),
            EvtxValueKind::List if files.parts.is_empty() => {
                Err(ScanError::Input(format!("{caller} needs at least one path")))
            }
            EvtxValueKind::List => {
                let mut files = files.parts.iter();
                files.try_for_each(|file| self.expand_all(of, file, storage, interrupt))
            }
            _ => Err(files.refused(caller, "a path, a glob, or a list of them")),
        }
    }

    /// Adds the files of a task of [`partitions`](Self::partitions).
    ///
    /// # Errors
    /// Those of [`ScanTask::paths`].
    pub fn add(
        &mut self,
        of: &EvtxArguments,
        task: &ScanTask,
        storage: &dyn Storage,
        interrupt: Interrupt<'_>,
    ) -> Result<(), ScanError> {
        let storage = ArchiveStorage::new(storage, &self.archives);
        self.paths.extend(task.paths(&storage, &of.caller, interrupt)?);
        Ok(())
    }

    /// The files, in partitions of about `target` bytes. With `splits`, a large file is in several.
    ///
    /// # Errors
    /// Those of [`partitions`].
    pub fn partitions(
        &self,
        target: u64,
        splits: bool,
        storage: &dyn Storage,
        interrupt: Interrupt<'_>,
    ) -> Result<Vec<Vec<ScanTask>>, ScanError> {
        partitions(storage, &self.paths, target, splits, interrupt)
    }
}
