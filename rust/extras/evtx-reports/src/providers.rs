//! The report on messages: reads provider binaries, registries and catalogs.
//!
//! The rows of catalogs come while they are read. The rows of binaries depend on several files: texts are beside
//! their binary, and the registry says which provider uses them. So all binaries are read before their first row. Only
//! their messages are kept, and at most [`MAX_KEPT`] bytes of them. No source keeps rows: a batch is made when it is asked
//! for.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use evtx_arrow::DecodeError;
use evtx_format::{Interrupt, Interrupted, free};
use evtx_messages::binary::Binary;
use evtx_messages::provider::{self, Known, ProviderFile};
use evtx_messages::registry::{FileLocation, HiveName, Registry, Root};
use evtx_messages::{CATALOG_ENDING, Catalog, Error, catalog};
use evtx_scan::{
    Call, FileKind, Holds, LastOpened, LogFile, OtherFiles, ScanError, ScanPath, Storage, StorageError, sort_by,
};

use crate::messages::{CatalogRow, message_batch};
use crate::scan::{ReportBatch, ReportRows, ReportThreads};

/// Files with the messages of providers: binaries, and hives of a registry. A catalog is one only if it is asked for.
pub const PROVIDER_FILES: FileKind = FileKind::Other(&OtherFiles {
    ends: &[".dll", ".exe", ".sys", ".mui", ".mun"],
    also: Some(|name| HiveName::of(name).is_some()),
    named: Some(CATALOG_ENDING),
    plural: "binaries of providers",
});

/// The most bytes of a file. Hives have some 100 MiB.
const MAX_FILE: u64 = 1 << 30;

/// The most bytes of messages of all binaries. They take at most as much as the files, and some MiB, unless they are crafted.
const MAX_KEPT: usize = 1 << 30;
const MAX_SMALL: usize = 32 << 20;

/// The most rows of a batch, and the bytes of texts after which it ends.
const BATCH_ROWS: usize = 2048;
const BATCH_BYTES: usize = 2 << 20;

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
    pub fn new(mut paths: Vec<ScanPath>, projection: &[usize]) -> Self {
        // A file that the caller named and a glob also found counts as named.
        paths.sort_by_key(|path| !path.explicitly_named);
        let mut seen = HashSet::new();
        paths.retain(|path| seen.insert(path.path.clone()));
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
    /// The work; only the first thread has it.
    work: Option<Work>,
    /// The index of the file that it reads.
    reading: Option<usize>,
    /// The index of the next batch.
    index: u64,
}

/// What is left to do.
#[derive(Default)]
struct Work {
    /// Rows on what cannot be read.
    problems: VecDeque<CatalogRow>,
    /// The source of the next rows.
    source: Option<Source>,
    /// The indexes of the next files. Hives come first, then files with names that these have.
    next_files: VecDeque<usize>,
    is_sorted: bool,
    /// The hives by their indexes, and the name of one that counts.
    hives: HashMap<usize, Option<HiveName>>,
    registry: Registry,
    binaries: Vec<ProviderFile>,
    /// What the binaries take, and what all files had, in bytes.
    kept: usize,
    read: usize,
    /// The binaries by the providers that they belong to, once all files were read.
    groups: Option<VecDeque<Vec<ProviderFile>>>,
}

/// Rows that are made when they are asked for.
enum Source {
    Catalog(Box<catalog::Rows>),
    Binaries(Box<provider::Rows>),
}

impl Drop for Thread {
    fn drop(&mut self) {
        free(self.work.take());
    }
}

impl ReportRows for Thread {
    fn reading(&self) -> Option<&str> {
        Some(self.shared.paths.get(self.reading?)?.storage_path())
    }

    fn next(&mut self, storage: &dyn Storage, interrupt: Interrupt<'_>) -> Result<Option<ReportBatch>, ScanError> {
        if !self.shared.is_taken.swap(true, Ordering::Relaxed) {
            let hives = hives(&self.shared.paths, storage)?;
            let (first, others): (Vec<_>, Vec<_>) =
                (0..self.shared.paths.len()).partition(|index| hives.contains_key(index));
            self.work = Some(Work {
                next_files: first.into_iter().chain(others).collect(),
                hives,
                ..Work::default()
            });
        }
        let last = LastOpened::default();
        let call = Call::new(storage, interrupt, &last);
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while rows.len() < BATCH_ROWS
            && bytes < BATCH_BYTES
            && let Some(row) = self.row(call)?
        {
            bytes += row.bytes();
            rows.push(row);
        }
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
    /// The next row. Reads files until there is one.
    fn row(&mut self, call: Call<'_>) -> Result<Option<CatalogRow>, ScanError> {
        let shared = Arc::clone(&self.shared);
        let Some(work) = &mut self.work else {
            return Ok(None);
        };
        loop {
            if let Some(row) = work.problems.pop_front() {
                return Ok(Some(row));
            }
            if let Some(source) = &mut work.source {
                let row = source.next(&work.registry, call.interrupt).map_err(storage_error);
                if let Ok(Some(row)) = row {
                    return Ok(Some(row));
                }
                work.source = None;
                if let (Err(error), Some(path)) = (row, self.reading.and_then(|index| shared.paths.get(index))) {
                    let why = path.failure(error)?;
                    work.problems.push_back(CatalogRow::unreadable(&path.path, why));
                }
                call.interrupt.check()?;
                continue;
            }
            if let Some(index) = work.next_file(&shared.paths, call.interrupt)? {
                call.interrupt.check()?;
                let path = &shared.paths[index];
                self.reading = Some(index);
                let read = LogFile::open(call, path).and_then(|file| file.read_all(call, MAX_FILE));
                let taken = read.and_then(|bytes| {
                    let taken = work.take(index, path, bytes, call.interrupt);
                    taken.map_err(storage_error)
                });
                if let Err(error) = taken {
                    let why = path.failure(error)?;
                    work.problems.push_back(CatalogRow::unreadable(&path.path, why));
                }
                shared.done.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            self.reading = None;
            let groups = match &mut work.groups {
                Some(groups) => groups,
                None => {
                    let binaries = std::mem::take(&mut work.binaries);
                    work.groups.insert(groups(binaries, &work.registry, call.interrupt)?)
                }
            };
            let Some(group) = groups.pop_front() else {
                return Ok(None);
            };
            let known = Known {
                registry: &work.registry,
                interrupt: call.interrupt,
            };
            let rows = provider::Rows::new(group, known).map_err(storage_error);
            work.source = Some(Source::Binaries(Box::new(rows.map_err(ScanError::from)?)));
        }
    }
}

impl Source {
    fn next(&mut self, registry: &Registry, interrupt: Interrupt<'_>) -> Result<Option<CatalogRow>, Error> {
        Ok(match self {
            Source::Catalog(rows) => {
                let row = rows.next(interrupt)?;
                row.map(|(row, is_contested)| CatalogRow::of_catalog(row, is_contested))
            }
            Source::Binaries(rows) => rows.next(Known { registry, interrupt })?.map(CatalogRow::from),
        })
    }
}

fn storage_error(error: Error) -> StorageError {
    match error {
        Error::Interrupted(interrupted) => StorageError::Interrupted(interrupted),
        other => StorageError::Unusable(other.to_string()),
    }
}

impl Work {
    /// The index of the file that is read next.
    fn next_file(&mut self, paths: &[ScanPath], interrupt: Interrupt<'_>) -> Result<Option<usize>, Interrupted> {
        let is_hive = |index: &usize| self.hives.contains_key(index);
        if !self.is_sorted && !self.next_files.front().is_some_and(is_hive) {
            self.is_sorted = true;
            let mut ranks = HashMap::new();
            for index in &self.next_files {
                interrupt.check()?;
                let location = FileLocation::of(&paths[*index].path);
                // A file that cannot be read has its place, too: no other stands in for it.
                self.registry.locate(&location);
                ranks.insert(*index, (!self.registry.has_file(location.name()), location.depth()));
            }
            let mut sorted: Vec<_> = self.next_files.drain(..).collect();
            sort_by(&mut sorted, |a, b| ranks[a].cmp(&ranks[b]), interrupt)?;
            self.next_files = sorted.into();
        }
        Ok(self.next_files.pop_front())
    }

    /// Takes what a file has, by its first bytes. The rows of a binary depend on other files.
    fn take(&mut self, index: usize, path: &ScanPath, bytes: Vec<u8>, interrupt: Interrupt<'_>) -> Result<(), Error> {
        self.read += bytes.len();
        let is_named = path.explicitly_named;
        let path = &*path.path;
        match &bytes[..] {
            [b'M', b'Z', ..] => {
                let mut binary = Binary::read(bytes, interrupt)?;
                let problems = std::mem::take(&mut binary.problems);
                let problems = problems
                    .iter()
                    .map(|problem| CatalogRow::unreadable(path, problem.to_string()));
                self.problems.extend(problems);
                if !binary.tables.is_empty() || !binary.manifests.is_empty() {
                    let file = ProviderFile::new(path, binary);
                    let (kept, most) = (self.kept + file.bytes(), MAX_KEPT.min(MAX_SMALL + 2 * self.read));
                    if kept > most {
                        return Err(Error::too_large(
                            "the messages of all files up to this one",
                            0,
                            kept,
                            most,
                        ));
                    }
                    self.kept = kept;
                    self.binaries.push(file);
                }
            }
            [b'r', b'e', b'g', b'f', ..] => match self.hives.get(&index) {
                Some(None) => {
                    let what = "a registry hive in another place than that of Windows";
                    return Err(Error::OnlyIfNamed(what));
                }
                None if !is_named => {
                    let what = "a registry hive that is not named SOFTWARE or SYSTEM";
                    return Err(Error::OnlyIfNamed(what));
                }
                name => self.registry.add_hive(&bytes, name.copied().flatten(), interrupt)?,
            },
            [b'S', b'Q', b'L', b'i', b't', b'e', ..] => return Err(Error::Database),
            _ if Catalog::is_catalog(&bytes) && !is_named => return Err(Error::OnlyIfNamed("a catalog of messages")),
            _ if Catalog::is_catalog(&bytes) => {
                let rows = catalog::Rows::new(Catalog::open(bytes)?);
                self.source = Some(Source::Catalog(Box::new(rows)));
            }
            _ => return Err(Error::NotABinary),
        }
        Ok(())
    }
}

/// The hives among files, by their indexes, and the name of each that counts: one that the caller named, or else the nearest
/// one, if it is where Windows has it, or beside the folders of Windows.
///
/// # Errors
/// [`ScanError::Input`] if several are as good: they can be of several machines, or made by somebody.
fn hives(paths: &[ScanPath], storage: &dyn Storage) -> Result<HashMap<usize, Option<HiveName>>, ScanError> {
    let root = paths.iter().filter_map(|path| Root::of(&path.path)).min();
    let mut hives = HashMap::new();
    for name in [HiveName::Software, HiveName::System] {
        let mut ranked = Vec::new();
        for (index, path) in paths.iter().enumerate() {
            let inner = match storage.nesting().holds(&path.path) {
                Holds::File(inner) => inner,
                Holds::Bytes | Holds::Folder => &path.path,
            };
            if HiveName::of(inner) == Some(name) {
                let place = (!path.explicitly_named).then(|| Root::of_hive(inner));
                ranked.push((place, index));
                hives.insert(index, None);
            }
        }
        ranked.sort_unstable();
        // A hive elsewhere can be beside the folders of Windows, but not below them, where users can write.
        let counts = |place: Option<(Root, bool)>| match (place, root) {
            (None, _) | (_, None) => true,
            (Some((own, true)), Some(root)) => own == root,
            (Some((own, false)), Some(root)) => own.is_above(root),
        };
        match ranked[..] {
            [(place, one), (next, two), ..] if place == next && counts(place) => {
                let [one, two] = [one, two].map(|index| &paths[index].path);
                let text = format!("two hives of the same name, {one} and {two}: pass only the path of the right one");
                return Err(ScanError::Input(text));
            }
            [(place, own), ..] if counts(place) => hives.extend([(own, Some(name))]),
            _ => {}
        }
    }
    Ok(hives)
}

/// The binaries in groups that belong together: those of one folder with the same name, as `x.dll` and
/// `en-US/x.dll.mui`, and those that the registry names for one provider.
fn groups(
    binaries: Vec<ProviderFile>,
    registry: &Registry,
    interrupt: Interrupt<'_>,
) -> Result<VecDeque<Vec<ProviderFile>>, Interrupted> {
    let mut names = Names::default();
    for registration in registry.registrations().filter(|registration| !registration.is_classic) {
        let files = registration.resource_files.iter().chain(&*registration.message_files);
        let mut first = None;
        for file in files {
            interrupt.check()?;
            let number = names.number(file.name());
            names.unite(*first.get_or_insert(number), number);
        }
    }
    let mut groups: BTreeMap<(Box<str>, usize), Vec<ProviderFile>> = BTreeMap::new();
    for file in binaries {
        interrupt.check()?;
        let number = names.number(file.location.name());
        let key = (file.location.folder().into(), names.leader(number));
        groups.entry(key).or_default().push(file);
    }
    Ok(groups.into_values().collect())
}

/// The names of files in disjoint sets.
#[derive(Default)]
struct Names {
    numbers: HashMap<Box<str>, usize>,
    /// For each name an earlier one of its set, or itself.
    earlier: Vec<usize>,
}

impl Names {
    fn number(&mut self, name: &str) -> usize {
        if let Some(known) = self.numbers.get(name) {
            return *known;
        }
        let number = self.earlier.len();
        self.earlier.push(number);
        self.numbers.insert(name.into(), number);
        number
    }

    /// The first name of the set of a name. Shortens the way to it.
    fn leader(&mut self, mut name: usize) -> usize {
        while self.earlier[name] != name {
            self.earlier[name] = self.earlier[self.earlier[name]];
            name = self.earlier[name];
        }
        name
    }

    fn unite(&mut self, a: usize, b: usize) {
        let (a, b) = (self.leader(a), self.leader(b));
        self.earlier[a.max(b)] = a.min(b);
    }
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
        let groups = groups(files.into(), &Registry::default(), Interrupt::NEVER).expect("no interrupt");
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
