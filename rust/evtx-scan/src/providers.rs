//! The report on messages: reads provider binaries, registries and databases of messages.
//!
//! A row depends on several files: texts are beside their binary, and the registry says which provider uses them. So all
//! files are read before the first row. Only their messages are kept, and at most [`MAX_KEPT`] bytes of them.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use evtx_arrow::DecodeError;
use evtx_format::Interrupt;
use evtx_messages::binary::Binary;
use evtx_messages::provider::{Known, ProviderFile, rows};
use evtx_messages::registry::{RegisteredFile, Registry};
use evtx_messages::sqlite::Database;
use evtx_messages::{Catalog, Error, MessageKind, MessageRow, foreign};
use evtx_reports::{CatalogRow, message_batch};

use crate::file::LogFile;
use crate::reports::{ReportBatch, ReportRows, ReportThreads};
use crate::scan_path::ScanPath;
use crate::storage::{Call, LastOpened, ScanError, Storage, StorageError};

/// The most bytes of a file. Hives and databases have some 100 MiB.
const MAX_FILE: u64 = 1 << 30;

/// The most bytes of messages of all binaries.
const MAX_KEPT: usize = 1 << 30;

/// The most rows of a batch.
const BATCH_ROWS: usize = 2048;

/// A report on the messages in files. One thread reads them.
pub struct MessageScan(Arc<Shared>);

struct Shared {
    paths: Vec<ScanPath>,
    projection: Vec<usize>,
    /// How many files were read.
    done: AtomicUsize,
    is_taken: AtomicBool,
}

impl MessageScan {
    /// A report on files, with the columns that have these indexes.
    pub fn new(paths: Vec<ScanPath>, projection: &[usize]) -> Self {
        MessageScan(Arc::new(Shared {
            paths,
            projection: projection.to_vec(),
            done: AtomicUsize::new(0),
            is_taken: AtomicBool::new(false),
        }))
    }
}

impl ReportThreads for MessageScan {
    fn thread(&self) -> Box<dyn ReportRows> {
        Box::new(Thread {
            shared: Arc::clone(&self.0),
            work: None,
            reading: None,
            index: 0,
        })
    }

    fn progress(&self) -> f64 {
        let done = self.0.done.load(Ordering::Relaxed) as f64;
        done / self.0.paths.len().max(1) as f64
    }
}

struct Thread {
    shared: Arc<Shared>,
    /// What is left to do, of the thread that does all.
    work: Option<Work>,
    /// The index of the file that it reads.
    reading: Option<usize>,
    /// The index of the next batch.
    index: u64,
}

/// What files have: rows that are complete, and groups of binaries whose rows are not made yet.
#[derive(Default)]
struct Work {
    rows: VecDeque<CatalogRow>,
    /// Rows of databases that the caller did not name.
    found: Vec<MessageRow>,
    groups: VecDeque<Vec<ProviderFile>>,
    registry: Registry,
}

impl ReportRows for Thread {
    fn reading(&self) -> Option<&str> {
        Some(self.shared.paths.get(self.reading?)?.storage_path())
    }

    fn next(&mut self, storage: &dyn Storage, interrupt: Interrupt<'_>) -> Result<Option<ReportBatch>, ScanError> {
        if !self.shared.is_taken.swap(true, Ordering::Relaxed) {
            self.work = Some(self.read(storage, interrupt)?);
        }
        let Some(work) = &mut self.work else {
            return Ok(None);
        };
        while work.rows.is_empty()
            && let Some(group) = work.groups.pop_front()
        {
            let known = Known {
                registry: &work.registry,
                name_of: &|_| None,
                interrupt,
            };
            work.rows.extend(rows(&group, known).map(CatalogRow::from));
            interrupt.check()?;
        }
        let count = work.rows.len().min(BATCH_ROWS);
        let rows: Vec<_> = work.rows.drain(..count).collect();
        if rows.is_empty() {
            return Ok(None);
        }
        self.index += 1;
        let batch = message_batch(&rows).and_then(|batch| batch.project(&self.shared.projection));
        Ok(Some(ReportBatch {
            rows: batch.map_err(DecodeError::from)?,
            index: self.index - 1,
        }))
    }
}

impl Thread {
    /// Reads all files.
    fn read(&mut self, storage: &dyn Storage, interrupt: Interrupt<'_>) -> Result<Work, ScanError> {
        let call = Call {
            storage,
            interrupt,
            last: &LastOpened::default(),
        };
        let (mut work, mut binaries, mut kept) = (Work::default(), Vec::new(), 0);
        let shared = Arc::clone(&self.shared);
        let mut seen = HashSet::new();
        for (index, path) in shared.paths.iter().enumerate() {
            interrupt.check()?;
            if !seen.insert(&path.path) {
                continue;
            }
            self.reading = Some(index);
            let read = path.patiently(call, || LogFile::open(call, path)?.read_all(call, MAX_FILE));
            let taken = read.and_then(|bytes| work.take(path, &bytes, interrupt));
            match taken {
                Ok(None) => {}
                Ok(Some(binary)) => {
                    kept += binary.bytes();
                    binaries.push(ProviderFile::new(&path.path, binary));
                }
                Err(error) => {
                    let why = path.failure(error)?;
                    work.rows.push_back(CatalogRow::unreadable(&path.path, why));
                }
            }
            if kept > MAX_KEPT {
                let text = format!("the messages in these files have more than {MAX_KEPT} bytes: read fewer at once");
                return Err(ScanError::Input(text));
            }
            shared.done.store(index + 1, Ordering::Relaxed);
        }
        self.reading = None;
        binaries.iter().for_each(|file| work.registry.locate(&file.place));
        let found = work.found.drain(..);
        work.rows
            .extend(found.map(|row| unless_registered(row, &work.registry)));
        work.groups = groups(binaries, &work.registry).into();
        Ok(work)
    }
}

impl Work {
    /// Takes what a file has, by its first bytes. Returns a binary with messages, whose rows depend on other files.
    fn take(
        &mut self,
        path: &ScanPath,
        bytes: &[u8],
        interrupt: Interrupt<'_>,
    ) -> Result<Option<Binary>, StorageError> {
        let is_named = path.explicitly_named;
        let path = &*path.path;
        let outcome = match bytes {
            [b'M', b'Z', ..] => match Binary::read(bytes, interrupt) {
                Ok(binary) => {
                    for problem in &binary.problems {
                        let row = CatalogRow::unreadable(path, problem.to_string());
                        self.rows.push_back(row);
                    }
                    let has_messages = !binary.tables.is_empty() || !binary.manifests.is_empty();
                    return Ok(has_messages.then_some(binary));
                }
                Err(error) => Err(error),
            },
            _ if Catalog::is_catalog(bytes) => Catalog::open(bytes).and_then(|catalog| {
                for provider in 0..catalog.providers().len() {
                    interrupt.check()?;
                    let rows = catalog.rows(provider, interrupt)?;
                    self.rows
                        .extend(rows.map(|(row, is_contested)| CatalogRow::of_catalog(row, is_contested)));
                }
                Ok(())
            }),
            [b'r', b'e', b'g', b'f', ..] => self.registry.add_hive(bytes, interrupt),
            [b'S', b'Q', b'L', b'i', b't', b'e', ..] => Database::open(bytes, interrupt).and_then(|database| {
                foreign::rows(&database, path, &mut |row| {
                    if is_named {
                        self.rows.push_back(row.into());
                    } else {
                        self.found.push(row);
                    }
                    Ok(())
                })
            }),
            _ => Err(Error::NotABinary),
        };
        outcome.map(|()| None).map_err(|error| match error {
            Error::Interrupted(interrupted) => StorageError::Interrupted(interrupted),
            other => StorageError::Unusable(other.to_string()),
        })
    }
}

/// A row of a database that was found. Anyone can put one into an image, so it does not speak for a provider that the
/// registry has.
fn unless_registered(row: MessageRow, registry: &Registry) -> CatalogRow {
    if registry.has(row.provider.as_deref(), row.guid.as_ref()) {
        let kind = MessageKind::Text;
        return MessageRow { kind, ..row }.into();
    }
    row.into()
}

/// The binaries in groups that belong together: those of one folder with the same name, as `x.dll` and
/// `en-US/x.dll.mui`, and those that the registry names for one provider.
fn groups(binaries: Vec<ProviderFile>, registry: &Registry) -> Vec<Vec<ProviderFile>> {
    let mut leaders: BTreeMap<Box<str>, Box<str>> = BTreeMap::new();
    for registration in registry.registrations().filter(|registration| !registration.is_classic) {
        let files = registration.resource_files.iter().chain(&*registration.message_files);
        let mut names = files.map(RegisteredFile::name);
        if let Some(first) = names.next() {
            let first: Box<str> = leader(&leaders, first).into();
            for name in names {
                let name: Box<str> = leader(&leaders, name).into();
                if name != first {
                    leaders.insert(name, Box::clone(&first));
                }
            }
        }
    }
    let mut groups: BTreeMap<(Box<str>, Box<str>), Vec<ProviderFile>> = BTreeMap::new();
    for file in binaries {
        let key = (file.place.folder().into(), leader(&leaders, file.place.name()).into());
        groups.entry(key).or_default().push(file);
    }
    groups.into_values().collect()
}

/// The name that stands for the group of a file, by its name.
fn leader<'n>(leaders: &'n BTreeMap<Box<str>, Box<str>>, name: &'n str) -> &'n str {
    let mut name = name;
    while let Some(next) = leaders.get(name) {
        name = next;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_in_other_folders_are_groups_of_their_own() {
        let file = |path: &str| ProviderFile::new(path, Binary::default());
        let files = [
            "a/x.dll",
            "a/en-US/x.dll.mui",
            "b/x.dll",
            "b/y.dll",
            "System32/en-US/z.dll.mui",
            "SystemResources/z.dll.mun",
        ]
        .map(file);
        let groups = groups(files.into(), &Registry::default());
        let paths: Vec<Vec<_>> = groups
            .iter()
            .map(|group| group.iter().map(|file| &*file.path).collect())
            .collect();
        assert_eq!(
            paths,
            [
                vec!["a/x.dll", "a/en-US/x.dll.mui"],
                vec!["b/x.dll"],
                vec!["b/y.dll"],
                vec!["System32/en-US/z.dll.mui", "SystemResources/z.dll.mun"]
            ]
        );
    }
}
