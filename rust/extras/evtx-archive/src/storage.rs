//! The storage around a storage: what it lists of archives.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use evtx_format::{Interrupt, Interrupted};
use evtx_scan::{Holds, ListedFile, Listing, Nesting, Storage, StorageError, StorageFile, ends_with, sort_by};

use crate::block::{Block, Coding, Item};
use crate::codec::Method;
use crate::entry::{Archive, Entry};
use crate::formats::{Format, NESTING, format_of, method_of};
use crate::head::{Directory, ENTRY, Encryption, Head, Place, Wanted};
use crate::input::Input;
use crate::limits::Archives;
use crate::memory::{ListMemory, WindowLease, unusable};
use crate::names::{Glob, MESSAGES, as_windows, is_same, plain};
use crate::unpacked::Unpacked;
use crate::{seven_zip, tar, zip};

/// Bytes that are read at once to find the headers of an archive.
const HEADERS: u64 = 1 << 16;

/// A storage around another one, in which archives are folders and compressed files are the files in them.
pub struct ArchiveStorage<'s> {
    storage: &'s dyn Storage,
    archives: &'s Archives,
}

impl<'s> ArchiveStorage<'s> {
    /// A storage around another one. Its entries share the limits of `archives`.
    pub fn new(storage: &'s dyn Storage, archives: &'s Archives) -> Self {
        ArchiveStorage { storage, archives }
    }

    /// Reads the directory of an archive. Also returns how the blocks are decompressed that its entries come out of.
    fn directory(
        &self,
        outer: &str,
        file: &dyn StorageFile,
        wanted: &mut Wanted<'_>,
        interrupt: Interrupt<'_>,
    ) -> Result<(Directory, Vec<Coding>), StorageError> {
        let is_remote = self.storage.is_remote(outer);
        let method = match format_of(outer) {
            Some(Format::Tar(method)) => method,
            Some(Format::SevenZip) => {
                let (directory, folders, keys) =
                    seven_zip::directory(file, is_remote, self.archives, wanted, interrupt)?;
                let folders = folders
                    .into_iter()
                    .map(|folder| Coding::Folder(folder, Arc::clone(&keys)));
                return Ok((directory, folders.collect()));
            }
            Some(Format::Zip) | None => return Ok((zip::directory(file, is_remote, wanted, interrupt)?, Vec::new())),
        };
        let size = file.size();
        if size == 0 {
            return unusable("the file is empty");
        }
        let failure = RefCell::new(None);
        let input = Input::new(file, 0, size, is_remote, interrupt, &failure);
        if method == Method::Stored {
            let mut input = input.with_piece(HEADERS);
            let place = |offset| Place::File { offset };
            return Ok((tar::directory(&mut input, place, wanted, interrupt)?, Vec::new()));
        }
        let decoder = method.decoder(Box::new(input), WindowLease::new(&self.archives.budget), interrupt);
        let mut stream = Unpacked::new(decoder, &failure, size, self.archives, interrupt);
        let place = |offset| Place::Block { block: 0, offset };
        let mut listed = tar::directory(&mut stream, place, wanted, interrupt);
        // Damage to the stream explains damage to headers.
        if listed.as_ref().map_or(true, |directory| !directory.failures.is_empty()) {
            match (stream.pass_rest(), &mut listed) {
                (Err(StorageError::Unusable(why)), Ok(directory)) => directory.failures = vec![why],
                (passed, _) => passed?,
            }
        }
        Ok((listed?, vec![Coding::Whole(method)]))
    }

    /// Lists the entries of an archive, sorted by name. Entries of the same name keep their order.
    fn entries(
        &self,
        outer: &str,
        inner: Option<&str>,
        is_wanted: &dyn Fn(&str) -> bool,
        interrupt: Interrupt<'_>,
    ) -> Result<Listing, StorageError> {
        let file = self.storage.open(outer)?;
        let asked = inner.map(Asked::new);
        let is_own = is_wanted;
        let is_wanted = |name: &str| is_own(name) || is_other(name, is_own);
        let rank = |name: &str| match &asked {
            Some(asked) => asked.rank(name, &is_wanted).or_else(|| {
                let is_asked = |name: &str| asked.rank(name, &is_wanted).is_some();
                is_other(name, &is_asked).then_some(LAST_RANK)
            }),
            None => is_wanted(name).then_some(0),
        };
        let is_listed = |name: &str| ends_with(name, MESSAGES) || rank(name).is_some();
        let memory = || ListMemory::new(&self.archives.budget, file.size());
        let mut listed = Wanted {
            memory: memory(),
            is_wanted: &is_listed,
        };
        let (directory, codings) = self.directory(outer, &*file, &mut listed, interrupt)?;
        let (mut wanted, mut companions, mut lowest) = (Vec::new(), Vec::new(), u8::MAX);
        for (name, head) in directory.entries {
            interrupt.check()?;
            if ends_with(&name, MESSAGES) {
                companions.push((plain(&name).collect::<String>(), name.clone(), head));
            }
            let Some(rank) = rank(&name).filter(|&rank| rank <= lowest) else {
                continue;
            };
            if rank < lowest {
                wanted.clear();
                lowest = rank;
            }
            wanted.push((name, head));
        }
        sort_by(&mut companions, |(a, ..), (b, ..)| a.cmp(b), interrupt)?;
        sort_by(&mut wanted, |(a, _), (b, _)| a.cmp(b), interrupt)?;
        drop(listed);
        let mut memory = memory();
        memory.take(ENTRY / 2 * (wanted.len() + companions.len()))?;
        let heads = companions.iter().map(|(.., head)| head);
        let blocks = blocks(codings, heads.chain(wanted.iter().map(|(_, head)| head)), interrupt)?;
        let archive = Arc::new(Archive {
            path: outer.to_owned(),
            size: file.size(),
            shared: self.archives.clone(),
            _memory: memory,
            companions,
            blocks,
        });
        let mut files = Vec::with_capacity(wanted.len());
        for (name, head) in wanted {
            interrupt.check()?;
            let kind = if is_own(&name) { &name } else { as_windows(&name) };
            let holds = NESTING.holds(kind);
            files.push(ListedFile {
                path: format!("{outer}/{name}"),
                is_named: inner.is_some_and(|inner| is_same(&name, inner)),
                file: match holds {
                    Holds::Bytes => Ok(Arc::new(Entry::new(&archive, head))),
                    _ => Err("it is an archive inside of an archive, which is not opened".to_owned()),
                },
            });
        }
        Ok(Listing {
            files,
            failures: directory.failures,
        })
    }

    /// The file in a compressed file, which is not read for that.
    fn compressed(&self, outer: &str, method: Method) -> Listing {
        let archive = Archive {
            path: outer.to_owned(),
            size: u64::MAX,
            shared: self.archives.clone(),
            _memory: ListMemory::new(&self.archives.budget, 0),
            companions: Vec::new(),
            blocks: BTreeMap::new(),
        };
        let head = Head {
            place: Place::Whole,
            compressed: u64::MAX,
            size: None,
            checksum: None,
            method,
            encryption: Encryption::None,
            refusal: None,
            limit: u64::MAX,
        };
        let file = ListedFile {
            path: outer.to_owned(),
            is_named: true,
            file: Ok(Arc::new(Entry::new(&Arc::new(archive), head))),
        };
        Listing {
            files: vec![file],
            failures: Vec::new(),
        }
    }
}

/// The blocks that some entries come out of, by their numbers.
///
/// # Errors
/// [`Interrupted`].
fn blocks<'h>(
    codings: Vec<Coding>,
    heads: impl Iterator<Item = &'h Head>,
    interrupt: Interrupt<'_>,
) -> Result<BTreeMap<u32, Block>, Interrupted> {
    let mut items: BTreeMap<u32, Vec<Item>> = BTreeMap::new();
    for head in heads.filter(|head| head.refusal.is_none()) {
        interrupt.check()?;
        if let Place::Block { block, offset } = head.place {
            let (len, checksum) = (head.compressed, head.checksum);
            items.entry(block).or_default().push(Item { offset, len, checksum });
        }
    }
    let mut blocks = BTreeMap::new();
    for (number, coding) in (0..).zip(codings) {
        interrupt.check()?;
        if let Some(items) = items.remove(&number) {
            blocks.insert(number, Block::new(coding, items));
        }
    }
    Ok(blocks)
}

/// Whether a name is one of these as Windows has it, and only so.
fn is_other(name: &str, is_one: &dyn Fn(&str) -> bool) -> bool {
    let file = as_windows(name);
    file.len() < name.len() && is_one(file)
}

/// The rank of a name that is asked for by a pattern or a folder, or as Windows has it.
const LAST_RANK: u8 = 2;

/// A name, a pattern or a folder that is asked for in an archive.
struct Asked<'i> {
    inner: &'i str,
    folder: &'i str,
    glob: Option<Glob>,
}

impl<'i> Asked<'i> {
    fn new(inner: &'i str) -> Self {
        let is_glob = inner.contains(['*', '?', '[']);
        Asked {
            inner,
            folder: inner.trim_end_matches(['/', '\\']),
            glob: Glob::new(inner).ok().filter(|_| is_glob),
        }
    }

    /// The rank of a name, if it is asked for: as it is, in another case, or by a pattern or folder. The lowest counts.
    fn rank(&self, name: &str, is_wanted: &dyn Fn(&str) -> bool) -> Option<u8> {
        let len = self.folder.len();
        let is_inside = matches!(name.as_bytes().get(len), Some(b'/' | b'\\'))
            && name.get(..len).is_some_and(|start| is_same(start, self.folder));
        let is_match = self.glob.as_ref().is_some_and(|glob| glob.matches(name));
        match () {
            () if name == self.inner => Some(0),
            () if is_same(name, self.inner) => Some(1),
            () if is_match || is_inside && is_wanted(name) => Some(LAST_RANK),
            () => None,
        }
    }
}

impl Storage for ArchiveStorage<'_> {
    fn glob(&self, pattern: &str, interrupt: Interrupt<'_>) -> Result<Vec<Vec<u8>>, StorageError> {
        self.storage.glob(pattern, interrupt)
    }

    fn exists(&self, path: &str) -> Result<bool, StorageError> {
        self.storage.exists(path)
    }

    fn is_remote(&self, path: &str) -> bool {
        self.storage.is_remote(path)
    }

    fn open(&self, path: &str) -> Result<Arc<dyn StorageFile>, StorageError> {
        self.storage.open(path)
    }

    fn size(&self, path: &str) -> Result<u64, StorageError> {
        self.storage.size(path)
    }

    fn nesting(&self) -> &'static Nesting {
        &NESTING
    }

    fn list(
        &self,
        outer: &str,
        inner: Option<&str>,
        is_wanted: &dyn Fn(&str) -> bool,
        interrupt: Interrupt<'_>,
    ) -> Result<Listing, StorageError> {
        match NESTING.holds(outer) {
            Holds::Folder => self.entries(outer, inner, is_wanted, interrupt),
            Holds::File(_) => Ok(self.compressed(outer, method_of(outer).unwrap_or(Method::Stored))),
            Holds::Bytes => Ok(Listing::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use evtx_scan::{Call, LastOpened, LocalStorage};

    use super::*;

    #[test]
    fn an_entry_ends_at_the_largest_size() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.gz");
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&vec![7; (3 << 20) + 5]).expect("bytes");
        std::fs::write(&path, gzip.finish().expect("a member")).expect("a file");
        let call = Call {
            storage: &LocalStorage,
            interrupt: Interrupt::NEVER,
            last: &LastOpened::default(),
        };
        let open = |max_size| {
            let archives = Archives::default().with_max_size(max_size);
            let storage = ArchiveStorage::new(&LocalStorage, &archives);
            let entry = storage
                .compressed(path.to_str().expect("text"), Method::Gzip)
                .files
                .remove(0);
            let opened = entry.file.expect("an entry").open(call).expect("bytes");
            (opened.file.size(), opened.failure.map(|failure| failure.to_string()))
        };
        assert_eq!(open((3 << 20) + 5), ((3 << 20) + 5, None));
        let why = "it has more than 3145732 bytes, which is more than is read".to_owned();
        assert_eq!(open((3 << 20) + 4), ((3 << 20) + 4, Some(why)));
    }
}
