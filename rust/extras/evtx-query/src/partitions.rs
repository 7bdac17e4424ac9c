//! Partitions: shares of a scan of about the same size, which other processes can read.

use evtx_format::Interrupt;
use evtx_format::container::chunk::CHUNK_SIZE;
use evtx_format::container::header::FILE_HEADER;

use evtx_scan::{FileKind, FileSplit, ScanError, ScanPath, Storage, StorageError, expand};

/// The cost of opening a file, in bytes that could be read in the same time.
const OPEN_COST: u64 = 1 << 20;

/// What a partition reads: a file, or several in the same outer file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScanTask {
    /// A file of the storage, or a split of it: its path, whether the caller named it, and what is read of it.
    File(String, bool, FileSplit),
    /// Files in another file, which are not split: the path of the outer file, and the paths of the files, each with
    /// whether the caller named it.
    Nested(String, Vec<(String, bool)>),
    /// The path of a file that was found and cannot be read, and the reason.
    Unreadable(String, String),
}

/// Partitions of the work of a scan of these files, in their order. Files are packed until a partition has `target`
/// bytes, where each file counts 1 MiB more than its size. With `splits`, larger files are cut between slots of 64 KiB.
/// No file is read: the sizes are those that the storage lists.
///
/// # Errors
/// [`ScanError::Interrupted`]. A file of unknown size counts as empty: the scan reports why.
pub fn partitions(
    storage: &dyn Storage,
    paths: &[ScanPath],
    target: u64,
    splits: bool,
    interrupt: Interrupt<'_>,
) -> Result<Vec<Vec<ScanTask>>, ScanError> {
    let mut partitions: Vec<Vec<ScanTask>> = Vec::new();
    let mut taken = 0_u64;
    let mut add = |task: ScanTask, size: u64| {
        let cost = size.saturating_add(OPEN_COST);
        match partitions.last_mut() {
            Some(last) if taken.saturating_add(cost) <= target => {
                taken += cost;
                last.push(task);
            }
            _ => {
                taken = cost;
                partitions.push(vec![task]);
            }
        }
    };
    let mut rest = paths;
    while let Some(path) = rest.first() {
        interrupt.check()?;
        if let Some(why) = path.why_unreadable() {
            add(ScanTask::Unreadable(path.path.clone(), why.to_owned()), 0);
            rest = &rest[1..];
            continue;
        }
        let storage_path = path.storage_path();
        let size = match storage.size(storage_path) {
            Err(StorageError::Interrupted(interrupted)) => return Err(interrupted.into()),
            size => size.unwrap_or(0),
        };
        if path.is_nested() {
            // Files in the same outer file follow each other, and are read in one pass.
            let is_beside = |path: &&ScanPath| path.is_nested() && path.storage_path() == storage_path;
            let count = rest.iter().take_while(is_beside).count();
            let files = rest[..count].iter();
            let files = files.map(|path| (path.path.clone(), path.explicitly_named));
            add(ScanTask::Nested(storage_path.to_owned(), files.collect()), size);
            rest = &rest[count..];
            continue;
        }
        let split = |slots| FileSplit { size, slots };
        let file = |slots| ScanTask::File(path.path.clone(), path.explicitly_named, split(slots));
        let slots = size.saturating_sub(FILE_HEADER as u64).div_ceil(CHUNK_SIZE as u64);
        let of_each = (target / CHUNK_SIZE as u64).max(1);
        if splits && size > target && slots > of_each {
            for start in (0..slots).step_by(usize::try_from(of_each).unwrap_or(usize::MAX)) {
                let end = start + of_each;
                let bytes = (end.min(slots) - start) * CHUNK_SIZE as u64;
                // Slots that the file gets meanwhile belong to its last split.
                let end = if end < slots { end } else { u64::MAX };
                add(file(Some(start..end)), bytes);
            }
        } else {
            add(file(None), size);
        }
        rest = &rest[1..];
    }
    Ok(partitions)
}

impl ScanTask {
    /// The files of the task. Lists nested files anew. Errors name `function` as the caller.
    ///
    /// # Errors
    /// As [`expand`], and [`ScanError::Storage`] if a nested file is no longer there.
    pub fn paths(
        &self,
        storage: &dyn Storage,
        function: &str,
        interrupt: Interrupt<'_>,
    ) -> Result<Vec<ScanPath>, ScanError> {
        match self {
            ScanTask::File(path, is_named, split) => {
                Ok(vec![ScanPath::of_split(path.clone(), *is_named, split.clone())])
            }
            ScanTask::Unreadable(path, why) => Ok(vec![ScanPath::unreadable(path.clone(), why)]),
            ScanTask::Nested(path, files) => {
                let mut listed = match expand(storage, path, FileKind::Logs, function, interrupt) {
                    // The caller may have named files whose names are not those of logs.
                    Err(ScanError::NoFiles(_)) => Vec::new(),
                    listed => listed?,
                };
                let mut paths = Vec::with_capacity(files.len());
                for (name, explicitly_named) in files {
                    interrupt.check()?;
                    let at = listed.iter().position(|path| path.path == *name);
                    let mut found = match at {
                        Some(at) => listed.remove(at),
                        None => {
                            let named = expand(storage, name, FileKind::Logs, function, interrupt)?;
                            let found = named.into_iter().find(|path| path.path == *name);
                            found.ok_or_else(|| ScanError::Storage(format!("{name}: it is no longer there")))?
                        }
                    };
                    found.explicitly_named = *explicitly_named;
                    paths.push(found);
                }
                Ok(paths)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use evtx_scan::StorageFile;

    use super::*;

    /// A storage that knows sizes only.
    struct Sizes(HashMap<String, u64>);

    impl Storage for Sizes {
        fn glob(&self, _pattern: &str, _interrupt: Interrupt<'_>) -> Result<Vec<Vec<u8>>, StorageError> {
            Ok(Vec::new())
        }

        fn exists(&self, path: &str) -> Result<bool, StorageError> {
            Ok(self.0.contains_key(path))
        }

        fn is_remote(&self, _path: &str) -> bool {
            true
        }

        fn open(&self, path: &str) -> Result<Arc<dyn StorageFile>, StorageError> {
            Err(StorageError::Failed(format!("{path} is not opened to plan")))
        }

        fn size(&self, path: &str) -> Result<u64, StorageError> {
            let size = self.0.get(path).copied();
            size.ok_or_else(|| StorageError::Failed("it is not there".to_owned()))
        }
    }

    fn plan(sizes: &[u64], target: u64, splits: bool) -> Vec<Vec<(String, Option<std::ops::Range<u64>>)>> {
        let name = |index: usize| format!("{index}.evtx");
        let storage = Sizes(
            sizes
                .iter()
                .enumerate()
                .map(|(index, &size)| (name(index), size))
                .collect(),
        );
        let paths: Vec<_> = (0..sizes.len()).map(|index| ScanPath::named(&name(index))).collect();
        let planned = partitions(&storage, &paths, target, splits, Interrupt::NEVER).expect("a plan");
        let position = |task: ScanTask| match task {
            ScanTask::File(path, _, split) => (path, split.slots),
            other => panic!("{other:?}"),
        };
        planned
            .into_iter()
            .map(|tasks| tasks.into_iter().map(position).collect())
            .collect()
    }

    #[test]
    fn small_files_are_packed_and_large_ones_are_cut() {
        const MIB: u64 = 1 << 20;
        let counts = |sizes: &[u64]| -> Vec<usize> { plan(sizes, 8 * MIB, true).iter().map(Vec::len).collect() };
        assert!(counts(&[]).is_empty());
        assert_eq!(counts(&[0; 9]), [8, 1], "each costs 1 MiB");
        assert_eq!(counts(&[3 * MIB, 3 * MIB, MIB]), [2, 1]);
        let large = 20 * MIB + FILE_HEADER as u64;
        let cut = plan(&[large], 8 * MIB, true);
        let ranges: Vec<_> = cut.into_iter().flatten().map(|(_, slots)| slots).collect();
        assert_eq!(ranges, [Some(0..128), Some(128..256), Some(256..u64::MAX)]);
        assert_eq!(plan(&[large], 8 * MIB, false), [[("0.evtx".to_owned(), None)]]);
        assert_eq!(plan(&[3 * CHUNK_SIZE as u64], 1, true).len(), 3, "a slot at least");
    }

    #[test]
    fn a_file_that_is_gone_is_left_to_the_scan() {
        let paths = [
            ScanPath::named("gone.evtx"),
            ScanPath::unreadable("link.evtx".to_owned(), "broken"),
        ];
        let storage = Sizes(HashMap::new());
        let planned = partitions(&storage, &paths, 1 << 26, true, Interrupt::NEVER).expect("a plan");
        assert_eq!(planned.len(), 1);
        assert_eq!(planned[0].len(), 2);
        let read = |task: &ScanTask| task.paths(&storage, "a test", Interrupt::NEVER).expect("a path");
        assert_eq!(read(&planned[0][1])[0].why_unreadable(), Some("broken"));
        assert_eq!(read(&planned[0][0])[0].path, "gone.evtx");
    }
}
