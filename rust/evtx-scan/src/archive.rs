//! Archives: logs that are read in place, out of ZIP archives and compressed files.
//!
//! An [`Archive`] is a file that was listed. An [`Entry`] of it is opened as a [`StorageFile`]: one that is stored as it
//! is is read where it stands; one that is compressed or encrypted is decompressed once, by the thread that opens it,
//! into memory or a temporary file. Names in an archive are only compared and shown. No path is made of them.

mod held;
mod input;
mod cipher;
mod codec;
mod directory;

use std::cell::RefCell;
use std::fmt;
use std::io::{BufRead, ErrorKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use cipher::{CLASSIC_HEADER, Classic, Counter, Decrypted, Key, aes_header};
use codec::{Method, damaged};
use directory::{Directory, Encryption, Head, Own, local_header};
use held::{Budget, Held, PIECE, Share};
use input::Input;

use crate::storage::{Call, Storage, StorageError, StorageFile, archive_error, sort_by};

/// Most bytes of an entry.
const MAX_SIZE: u64 = 64 << 30;
/// An entry that has more than `BOMB_SIZE` bytes and more than `BOMB_RATIO` times its compressed size is a bomb.
const BOMB_SIZE: u64 = 256 << 20;
const BOMB_RATIO: u64 = 200;

/// Most companions of a log that are looked at.
const MAX_COMPANIONS: usize = 1000;

/// What the archives of a call share: the password, and how much they may hold.
#[derive(Debug, Clone)]
pub struct Archives {
    budget: Arc<Budget>,
    password: Option<Password>,
    /// Most bytes of an entry.
    max_size: u64,
}

/// A password. It is not shown.
#[derive(Clone)]
pub(crate) struct Password(Arc<str>);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("...")
    }
}

impl From<String> for Password {
    fn from(password: String) -> Self {
        Password(password.into())
    }
}

impl Default for Archives {
    /// No password, 256 MiB of memory, and 64 GiB in the system's folder for temporary files.
    fn default() -> Self {
        Archives::new(256 << 20, 64 << 30, Some(std::env::temp_dir()))
    }
}

impl Archives {
    /// `memory` is how many bytes of memory the entries that are open may take together. What takes more is in
    /// temporary files in `folder`, if there is one, which have up to `disk` bytes together.
    pub fn new(memory: u64, disk: u64, folder: Option<PathBuf>) -> Self {
        Archives {
            budget: Arc::new(Budget::new(memory, disk, folder)),
            password: None,
            max_size: MAX_SIZE,
        }
    }

    pub(crate) fn with_password(self, password: Option<Password>) -> Self {
        Archives { password, ..self }
    }
}

/// What kind of archive a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Zip,
    Gzip,
    Zstd,
}

impl Kind {
    /// The kind of the file with a path, by its extension.
    pub(crate) fn of(path: &str) -> Option<Kind> {
        let ends = |end: &str| ends_with(path, end);
        match () {
            () if ends(".zip") => Some(Kind::Zip),
            () if ends(".gz") => Some(Kind::Gzip),
            () if ends(".zst") => Some(Kind::Zstd),
            () => None,
        }
    }
}

/// Whether a path ends so, in any case. The query of a URL does not count.
pub(crate) fn ends_with(path: &str, end: &str) -> bool {
    let path = match path.split_once('?') {
        Some((start, _)) if start.contains("://") => start,
        _ => path,
    };
    let start = path.len().wrapping_sub(end.len());
    path.get(start..).is_some_and(|own| own.eq_ignore_ascii_case(end))
}

/// What files a call reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Event logs.
    Logs,
    /// Sigma rules.
    Rules,
}

impl FileKind {
    /// Whether a folder or an archive is read for files with this name: those of the kind, and archives of them.
    pub(crate) fn is_read(self, name: &str) -> bool {
        let ends: &[&str] = match self {
            FileKind::Logs => &[".evtx", ".zip", ".evtx.gz", ".evtx.zst"],
            FileKind::Rules => &[".yml", ".yaml", ".zip", ".yml.gz", ".yaml.gz", ".yml.zst", ".yaml.zst"],
        };
        ends.iter().any(|end| ends_with(name, end))
    }

    /// A glob of names, some of which are read.
    pub(crate) fn glob(self) -> &'static str {
        match self {
            FileKind::Logs => "*.[eEzZgG][vVzZiIsS]*",
            FileKind::Rules => "*.[yYzZ][mMaAiI]*",
        }
    }

    /// What the files are called.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            FileKind::Logs => "logs",
            FileKind::Rules => "rules",
        }
    }
}

/// A name in an archive as it is compared: ASCII letters in lower case, and `/` for `\`.
fn plain(name: &str) -> impl Iterator<Item = char> {
    let plain = |letter: char| {
        if letter == '\\' {
            '/'
        } else {
            letter.to_ascii_lowercase()
        }
    };
    name.chars().map(plain)
}

/// Whether two names in an archive are the same one.
pub(crate) fn is_same(name: &str, other: &str) -> bool {
    name.len() == other.len() && plain(name).eq(plain(other))
}

/// An archive that was listed.
#[derive(Debug)]
pub(crate) struct Archive {
    path: String,
    /// The size that it had then.
    size: u64,
    shared: Archives,
    /// Entries that can hold messages, in the order of their names as [`plain`] has them.
    companions: Vec<(String, String, Head)>,
}

/// An entry of an archive.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    archive: Arc<Archive>,
    head: Head,
}

/// The entries of an archive that were asked for.
pub(crate) struct Listed {
    /// Their names, and the entries, or why they are not read.
    pub(crate) entries: Vec<(String, Result<Entry, String>)>,
    /// Why there may be more.
    pub(crate) failure: Option<String>,
}

/// An entry as a file.
pub(crate) struct OpenEntry {
    pub(crate) file: Arc<dyn StorageFile>,
    pub(crate) is_remote: bool,
    /// Why it has fewer bytes than it should have, or others.
    pub(crate) failure: Option<StorageError>,
}

/// Lists the entries of a ZIP archive whose names are wanted: those with the lowest rank that a name has. A name without
/// a rank is not wanted.
pub(crate) fn list(
    call: Call<'_>,
    path: &str,
    shared: &Archives,
    rank: &dyn Fn(&str) -> Option<u8>,
) -> Result<Listed, StorageError> {
    let file = call.storage.open(path)?;
    let directory = Directory::read(&*file, call.storage.is_remote(path), call.interrupt)?;
    let (mut wanted, mut companions, mut lowest) = (Vec::new(), Vec::new(), u8::MAX);
    for (index, (name, head)) in directory.entries.into_iter().enumerate() {
        if index.is_multiple_of(1024) {
            call.interrupt.check()?;
        }
        if ends_with(&name, ".mta") {
            let plain = plain(&name).collect::<String>();
            companions.push((plain, name.clone(), head));
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
    sort_by(&mut companions, |(a, ..), (b, ..)| a.cmp(b), call.interrupt)?;
    // Entries of the same name stay in their order.
    sort_by(&mut wanted, |(a, _), (b, _)| a.cmp(b), call.interrupt)?;
    let archive = Arc::new(Archive {
        path: path.to_owned(),
        size: file.size(),
        shared: shared.clone(),
        companions,
    });
    let mut entries = Vec::with_capacity(wanted.len());
    for (nth, (name, head)) in wanted.into_iter().enumerate() {
        if nth.is_multiple_of(1024) {
            call.interrupt.check()?;
        }
        let entry = match Kind::of(&name) {
            Some(_) => Err("it is an archive inside of an archive, which is not opened".to_owned()),
            None => Ok(Entry {
                archive: Arc::clone(&archive),
                head,
            }),
        };
        entries.push((name, entry));
    }
    Ok(Listed {
        entries,
        failure: directory.failure,
    })
}

/// The one entry of a compressed file. The file is not looked at.
pub(crate) fn compressed(path: &str, kind: Kind, shared: &Archives) -> Entry {
    let archive = Archive {
        path: path.to_owned(),
        size: u64::MAX,
        shared: shared.clone(),
        companions: Vec::new(),
    };
    let head = Head {
        offset: 0,
        header: 0,
        compressed: u64::MAX,
        size: None,
        checksum: None,
        method: if kind == Kind::Gzip { Method::Gzip } else { Method::Zstd },
        encryption: Encryption::None,
        is_link: false,
        limit: u64::MAX,
        own: Own::NONE,
    };
    Entry {
        archive: Arc::new(archive),
        head,
    }
}

impl Entry {
    /// As [`Budget::patiently`], with the budget of its archive.
    pub(crate) fn patiently<T>(
        &self,
        call: Call<'_>,
        open: impl Fn() -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        self.archive.shared.budget.patiently(call.interrupt, open)
    }

    /// The path of its archive.
    pub(crate) fn archive_path(&self) -> &str {
        &self.archive.path
    }

    /// Its name in its archive, of the path that both make. `None` for the one entry of a compressed file.
    pub(crate) fn name<'p>(&self, path: &'p str) -> Option<&'p str> {
        path.get(self.archive.path.len() + 1..)
    }

    /// An estimate of its size.
    pub(crate) fn estimate(&self, storage: &dyn Storage) -> Result<u64, StorageError> {
        match self.head.size {
            Some(size) => Ok(size.min(self.head.compressed.saturating_mul(BOMB_RATIO))),
            None => Ok(storage.open(&self.archive.path)?.size().saturating_mul(8)),
        }
    }

    /// The first entry beside it whose name starts so and matches.
    pub(crate) fn companion(&self, start: &str, is_match: &dyn Fn(&str) -> bool) -> Option<(String, Entry)> {
        let (all, start) = (&self.archive.companions, plain(start).collect::<String>());
        let from = all.partition_point(|(name, ..)| *name < start);
        let near = all[from..].iter().take_while(|(name, ..)| name.starts_with(&start));
        let (_, name, head) = near.take(MAX_COMPANIONS).find(|(_, name, _)| is_match(name))?;
        let entry = Entry {
            archive: Arc::clone(&self.archive),
            head: *head,
        };
        Some((format!("{}/{name}", self.archive.path), entry))
    }

    /// Opens it. What can be read of a damaged one is there, with the reason.
    pub(crate) fn open(&self, call: Call<'_>) -> Result<OpenEntry, StorageError> {
        let head = &self.head;
        if head.is_link {
            return archive_error("it is a symbolic link, which is not followed");
        }
        if let Method::Other(_) = head.method {
            let text = format!(
                "it is compressed with {}, which is not supported",
                head.method.describe()
            );
            return archive_error(text);
        }
        if head.encryption == Encryption::Unsupported {
            return archive_error("it is encrypted in a way that is not supported");
        }
        let is_encrypted = head.encryption != Encryption::None;
        if is_encrypted && self.archive.shared.password.is_none() {
            return archive_error("it is encrypted, and no password := '...' is given");
        }
        if head.limit == 0 && head.compressed > 0 {
            return archive_error("it shares bytes with other entries, as in a bomb");
        }
        let is_remote = call.storage.is_remote(&self.archive.path);
        let file = call.last.open(call.storage, &self.archive.path)?;
        if head.size.is_some() && file.size() != self.archive.size {
            return archive_error("the archive has changed since it was listed");
        }
        if head.size.is_none() && file.size() == 0 {
            return archive_error("the file is empty");
        }
        let failure = RefCell::new(None);
        let mut input = Input::new(&*file, head.offset, file.size(), is_remote, call.interrupt, &failure);
        let mut end = file.size();
        let mut is_cut = false;
        let mut disagreement = None;
        if head.size.is_some() {
            // The first read takes the header and what is behind it, and no more.
            input.set_end(head.offset.saturating_add(head.header).saturating_add(head.compressed));
            let mut header = [0; 30];
            let lengths = input.fill(&mut header)?.then(|| local_header(&header)).flatten();
            let Some((name_len, others)) = lengths else {
                return archive_error("the archive has no entry where its directory says");
            };
            let mut name = vec![0; name_len];
            if input.fill(&mut name)? {
                disagreement = head.own.disagrees(&header, &name);
            }
            let start = head.offset + header.len() as u64 + name_len as u64 + others;
            end = start.saturating_add(head.compressed);
            is_cut = end > file.size();
            input.set_end(end);
            input.skip(others);
            if head.method == Method::Stored && !is_encrypted && head.limit == u64::MAX {
                let size = head.compressed.min(file.size().saturating_sub(start));
                let differs = head
                    .size
                    .filter(|&said| said != size)
                    .map(|said| other_size(size, said));
                let differs = differs.or(disagreement.map(str::to_owned));
                let part = Part { file, start, size };
                return Ok(OpenEntry {
                    file: Arc::new(part),
                    is_remote,
                    failure: differs.map(StorageError::Archive),
                });
            }
        }
        let (held, why) = self.hold(input, end.min(file.size()), call)?;
        let failure = match (failure.into_inner(), why) {
            (Some(StorageError::Interrupted(interrupted)), _) => return Err(interrupted.into()),
            (Some(error), _) => Some(error),
            (None, Some(_)) if is_cut => Some(StorageError::Archive("the archive is cut short".to_owned())),
            (None, why) => why.or(disagreement.map(str::to_owned)).map(StorageError::Archive),
        };
        Ok(OpenEntry {
            file: held.into_file(),
            is_remote: false,
            failure,
        })
    }

    /// Decompresses it. Returns what it holds, and what is wrong with that.
    fn hold(&self, mut input: Input<'_>, end: u64, call: Call<'_>) -> Result<(Held, Option<String>), StorageError> {
        let mut held = Held::new(&self.archive.shared.budget);
        let len = end.saturating_sub(input.offset());
        let password = self.archive.shared.password.as_ref().map_or("", |password| &password.0);
        let wrong = || {
            Ok((
                Held::new(&self.archive.shared.budget),
                Some("the password is wrong".to_owned()),
            ))
        };
        let mut plain: Box<dyn BufRead + '_> = match self.head.encryption {
            Encryption::None | Encryption::Unsupported => Box::new(input),
            Encryption::Classic { check } => {
                let mut header = [0; CLASSIC_HEADER as usize];
                if !input.fill(&mut header)? {
                    return Ok((held, Some("it ends inside of its header".to_owned())));
                }
                let mut keys = Classic::new(password.as_bytes());
                keys.decrypt(&mut header);
                if header[CLASSIC_HEADER as usize - 1] != check {
                    return wrong();
                }
                Box::new(Decrypted::new(input, Key::Classic(keys), len - CLASSIC_HEADER))
            }
            Encryption::Aes { strength } => {
                let mut header = vec![0; aes_header(strength).unwrap_or(0)];
                if header.is_empty() || !input.fill(&mut header)? {
                    return Ok((held, Some("it ends inside of its header".to_owned())));
                }
                let Some(counter) = Counter::new(password.as_bytes(), &header) else {
                    return wrong();
                };
                let len = len - header.len() as u64;
                Box::new(Decrypted::new(input, Key::Aes(Box::new(counter), len), len))
            }
        };
        let mut digest = crc32fast::Hasher::new();
        let share = Share::new(&self.archive.shared.budget);
        let mut decoder = self.head.method.decoder(&mut *plain, share, call.interrupt);
        let mut why = self.copy(&mut *decoder, len, &mut held, &mut digest, call)?;
        drop(decoder);
        if why.is_none() && matches!(self.head.encryption, Encryption::Aes { .. }) {
            // The tag is behind the last byte.
            why = std::io::copy(&mut plain, &mut std::io::sink())
                .err()
                .map(|error| error.to_string());
        }
        let size = held.size();
        let why = why.or_else(|| {
            self.head
                .size
                .filter(|&said| said != size)
                .map(|said| other_size(size, said))
        });
        let checksum = self.head.checksum.filter(|&checksum| checksum != digest.finalize());
        let why = why.or_else(|| checksum.map(|_| "its checksum does not match".to_owned()));
        let is_classic = matches!(self.head.encryption, Encryption::Classic { .. });
        let why = why.map(|why| {
            if is_classic {
                format!("{why}; or the password is wrong")
            } else {
                why
            }
        });
        Ok((held, why))
    }

    /// Decompresses all that may be. Returns why it has ended early.
    fn copy(
        &self,
        decoder: &mut dyn Read,
        compressed: u64,
        held: &mut Held,
        digest: &mut crc32fast::Hasher,
        call: Call<'_>,
    ) -> Result<Option<String>, StorageError> {
        let most = self
            .head
            .limit
            .min(self.archive.shared.max_size)
            .min(BOMB_SIZE.max(compressed.saturating_mul(BOMB_RATIO)));
        loop {
            call.interrupt.check()?;
            let expected = self
                .head
                .size
                .map_or(PIECE as u64, |size| size.saturating_sub(held.size()) + 1);
            let mut piece = vec![0; (expected as usize).clamp(1 << 12, PIECE)];
            let (mut len, mut why) = (0, None);
            while len < PIECE {
                if len == piece.len() {
                    piece.resize(PIECE, 0);
                }
                // A decoder that panics has met damage.
                let read = catch_unwind(AssertUnwindSafe(|| decoder.read(&mut piece[len..])));
                match read.unwrap_or_else(|_| Err(damaged())) {
                    Ok(0) => break,
                    Ok(more) => len += more,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                        why = Some("its compressed bytes are cut short".to_owned());
                        break;
                    }
                    Err(error) if error.kind() == ErrorKind::ResourceBusy => return Err(StorageError::Busy),
                    Err(error) => {
                        call.interrupt.check()?;
                        why = Some(error.to_string());
                        break;
                    }
                }
            }
            piece.truncate(len);
            digest.update(&piece);
            if held.size() + len as u64 > most {
                return Ok(Some(self.too_large(most, compressed)));
            }
            if len > 0 {
                match held.push(piece, call.interrupt) {
                    Ok(()) => {}
                    Err(StorageError::Archive(why)) => return Ok(Some(why)),
                    Err(error) => return Err(error),
                }
            }
            if why.is_some() || len < PIECE {
                return Ok(why);
            }
        }
    }

    fn too_large(&self, most: u64, compressed: u64) -> String {
        if most == self.head.limit {
            "it shares bytes with other entries, as in a bomb".to_owned()
        } else if most == self.archive.shared.max_size {
            format!("it has more than {most} bytes, which is more than is read")
        } else {
            format!("it expands to more than {most} bytes from {compressed}, as a bomb does")
        }
    }
}

fn other_size(size: u64, said: u64) -> String {
    format!("it has {size} bytes, and the archive says {said}")
}

/// A part of a file, as a file.
struct Part {
    file: Arc<dyn StorageFile>,
    start: u64,
    size: u64,
}

impl StorageFile for Part {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        match offset.checked_add(buffer.len() as u64) {
            Some(end) if end <= self.size => self.file.read_at(buffer, self.start + offset),
            _ => archive_error(format!("there are only {} bytes of it", self.size)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use evtx_format::Interrupt;

    use super::*;
    use crate::local::LocalStorage;
    use crate::storage::LastOpened;

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
            let shared = Archives {
                max_size,
                ..Archives::default()
            };
            let entry = compressed(path.to_str().expect("text"), Kind::Gzip, &shared);
            let opened = entry.open(call).expect("bytes");
            (opened.file.size(), opened.failure.map(|failure| failure.to_string()))
        };
        assert_eq!(open((3 << 20) + 5), ((3 << 20) + 5, None));
        let why = "it has more than 3145732 bytes, which is more than is read".to_owned();
        assert_eq!(open((3 << 20) + 4), (3 << 20, Some(why)));
    }
}
