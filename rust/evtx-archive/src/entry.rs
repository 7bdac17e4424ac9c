//! The entries of archives, opened as files.

use std::cell::RefCell;
use std::io::{BufRead, ErrorKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use evtx_format::{Interrupt, Interrupted};
use evtx_scan::{Call, Holds, NestedFile, Nesting, OpenFile, Password, Storage, StorageError, StorageFile};

use crate::cipher::{CLASSIC_HEADER, Classic, Counter, Decrypted, Key, aes_header};
use crate::codec::{Method, damaged};
use crate::directory::{Encryption, Head, local_header};
use crate::held::{Budget, Held, SEGMENT, Share, unusable};
use crate::input::Input;
use crate::names::{Glob, plain};

/// Most bytes of an entry.
const MAX_SIZE: u64 = 64 << 30;
/// An entry that has more than `BOMB_SIZE` bytes and more than `BOMB_RATIO` times its compressed size is a bomb.
const BOMB_SIZE: u64 = 256 << 20;
const BOMB_RATIO: u64 = 200;

/// The most companions of a log that are compared.
const MAX_COMPANIONS: usize = 1000;

/// Which files are archives.
pub(crate) static NESTING: Nesting = Nesting {
    folders: &[".zip"],
    files: &[".gz", ".zst", ".bz2", ".xz"],
};

/// How files are compressed, by the ends of their names.
pub(crate) const COMPRESSED: [(&str, Method); 4] = [
    (".gz", Method::Gzip),
    (".zst", Method::Zstd),
    (".bz2", Method::Bzip2),
    (".xz", Method::Xz),
];

/// The limits that archives share, and their password.
#[derive(Debug, Clone)]
pub struct Archives {
    budget: Arc<Budget>,
    password: Option<Password>,
    /// Most bytes of an entry.
    max_size: u64,
}

impl Default for Archives {
    /// No password, 256 MiB of memory, and 64 GiB in the system's folder for temporary files.
    fn default() -> Self {
        Archives::new(256 << 20, 64 << 30, Some(std::env::temp_dir()))
    }
}

impl Archives {
    /// Open entries take at most `memory` bytes, and temporary files in `folder` at most `disk` bytes.
    pub fn new(memory: u64, disk: u64, folder: Option<PathBuf>) -> Self {
        Archives {
            budget: Arc::new(Budget::new(memory, disk, folder)),
            password: None,
            max_size: MAX_SIZE,
        }
    }

    /// The same with a password for encrypted entries.
    pub fn with_password(self, password: Option<&Password>) -> Self {
        let password = password.cloned();
        Archives { password, ..self }
    }

    #[cfg(test)]
    pub(crate) fn with_max_size(self, max_size: u64) -> Self {
        Archives { max_size, ..self }
    }
}

/// An archive that was listed.
#[derive(Debug)]
pub(crate) struct Archive {
    pub(crate) path: String,
    /// The size that it had then.
    pub(crate) size: u64,
    pub(crate) shared: Archives,
    /// Entries that can hold messages, each with its name as [`plain`] has it, in the order of these.
    pub(crate) companions: Vec<(String, String, Head)>,
}

/// An entry of an archive.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    archive: Arc<Archive>,
    head: Head,
}

impl NestedFile for Entry {
    fn outer(&self) -> &str {
        &self.archive.path
    }

    fn outer_holds(&self) -> Holds<'_> {
        NESTING.holds(&self.archive.path)
    }

    fn estimate(&self, storage: &dyn Storage) -> Result<u64, StorageError> {
        match self.head.size {
            Some(size) => Ok(size.min(self.head.compressed.saturating_mul(BOMB_RATIO))),
            None => Ok(storage.open(&self.archive.path)?.size().saturating_mul(8)),
        }
    }

    fn in_turn(&self, interrupt: Interrupt<'_>, open: &mut dyn FnMut()) -> Result<(), Interrupted> {
        self.archive.shared.budget.in_turn(interrupt, open)
    }

    fn beside(&self, glob: &str) -> Option<(String, Arc<dyn NestedFile>)> {
        let glob = Glob::new(glob).ok()?;
        let (all, start) = (&self.archive.companions, plain(glob.start()).collect::<String>());
        let from = all.partition_point(|(name, ..)| *name < start);
        let near = all[from..].iter().take_while(|(name, ..)| name.starts_with(&start));
        let (_, name, head) = near.take(MAX_COMPANIONS).find(|(_, name, _)| glob.matches(name))?;
        let path = format!("{}/{name}", self.archive.path);
        Some((path, Arc::new(Entry::new(&self.archive, *head))))
    }

    fn open(&self, call: Call<'_>) -> Result<OpenFile, StorageError> {
        let head = &self.head;
        if head.is_link {
            return unusable("it is a symbolic link, which is not followed");
        }
        if let Method::Other(_) = head.method {
            let text = format!(
                "it is compressed with {}, which is not supported",
                head.method.describe()
            );
            return unusable(text);
        }
        if head.encryption == Encryption::Unsupported {
            return unusable("it is encrypted in a way that is not supported");
        }
        let is_encrypted = head.encryption != Encryption::None;
        if is_encrypted && self.archive.shared.password.is_none() {
            return unusable("it is encrypted, and no password is given");
        }
        if head.limit == 0 && head.compressed > 0 {
            return unusable("it shares bytes with other entries, as in a bomb");
        }
        let is_remote = call.storage.is_remote(&self.archive.path);
        let file = call.open_outer(&self.archive.path)?;
        if head.size.is_some() && file.size() != self.archive.size {
            return unusable("the archive has changed since it was listed");
        }
        if head.size.is_none() && file.size() == 0 {
            return unusable("the file is empty");
        }
        let failure = RefCell::new(None);
        let mut input = Input::new(&*file, head.offset, file.size(), is_remote, call.interrupt, &failure);
        let mut end = file.size();
        let mut is_cut = false;
        let mut disagreement = None;
        if head.size.is_some() {
            // The first read takes the header and the data after it, and no more.
            input.set_end(head.offset.saturating_add(head.header).saturating_add(head.compressed));
            let mut header = [0; 30];
            let lengths = input.fill(&mut header)?.then(|| local_header(&header)).flatten();
            let Some((name_len, others)) = lengths else {
                return unusable("the archive has no entry where its directory says");
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
                let differs = self.other_size(size).or(disagreement.map(str::to_owned));
                let section = Section { file, start, size };
                return Ok(OpenFile {
                    file: Arc::new(section),
                    is_remote,
                    failure: differs.map(StorageError::Unusable),
                });
            }
        }
        let (held, why) = self.hold(input, end.min(file.size()), call)?;
        let failure = match (failure.into_inner(), why) {
            (Some(StorageError::Interrupted(interrupted)), _) => return Err(interrupted.into()),
            (Some(error), _) => Some(error),
            (None, Some(_)) if is_cut => Some(StorageError::Unusable("the archive is cut short".to_owned())),
            (None, why) => why.or(disagreement.map(str::to_owned)).map(StorageError::Unusable),
        };
        Ok(OpenFile {
            file: held.into_file(),
            is_remote: false,
            failure,
        })
    }
}

impl Entry {
    pub(crate) fn new(archive: &Arc<Archive>, head: Head) -> Self {
        let archive = Arc::clone(archive);
        Entry { archive, head }
    }

    /// Decompresses it. Returns the bytes, and what is wrong with them.
    fn hold(&self, mut input: Input<'_>, end: u64, call: Call<'_>) -> Result<(Held, Option<String>), StorageError> {
        let mut held = Held::new(&self.archive.shared.budget);
        let len = end.saturating_sub(input.offset());
        let password = self.archive.shared.password.as_ref().map_or("", Password::text);
        let nothing = |why: &str| Ok((Held::new(&self.archive.shared.budget), Some(why.to_owned())));
        let mut plain: Box<dyn BufRead + '_> = match self.head.encryption {
            Encryption::None | Encryption::Unsupported => Box::new(input),
            Encryption::Classic { check } => {
                let mut header = [0; CLASSIC_HEADER as usize];
                if !input.fill(&mut header)? {
                    return nothing("it ends inside of its header");
                }
                let mut keys = Classic::new(password.as_bytes());
                keys.decrypt(&mut header);
                if header[CLASSIC_HEADER as usize - 1] != check {
                    return nothing("the password is wrong");
                }
                Box::new(Decrypted::new(input, Key::Classic(keys), len - CLASSIC_HEADER))
            }
            Encryption::Aes { strength } => {
                let mut header = vec![0; aes_header(strength).unwrap_or(0)];
                if header.is_empty() || !input.fill(&mut header)? {
                    return nothing("it ends inside of its header");
                }
                let Some(counter) = Counter::new(password.as_bytes(), &header) else {
                    return nothing("the password is wrong");
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
            // The tag follows the last byte.
            why = std::io::copy(&mut plain, &mut std::io::sink())
                .err()
                .map(|error| error.to_string());
        }
        let why = why.or_else(|| self.other_size(held.size()));
        let checksum = self.head.checksum.filter(|&checksum| checksum != digest.finalize());
        let why = why.or_else(|| checksum.map(|_| "its checksum does not match".to_owned()));
        let why = why.map(|why| match self.head.encryption {
            Encryption::Classic { .. } => format!("{why}; or the password is wrong"),
            _ => why,
        });
        Ok((held, why))
    }

    /// Decompresses up to the limits. Returns why it ended early.
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
                .map_or(SEGMENT as u64, |size| size.saturating_sub(held.size()) + 1);
            let mut segment = vec![0; (expected as usize).clamp(1 << 12, SEGMENT)];
            let (mut len, mut why) = (0, None);
            while len < SEGMENT {
                if len == segment.len() {
                    segment.resize(SEGMENT, 0);
                }
                // A panic of a decoder means damage.
                let read = catch_unwind(AssertUnwindSafe(|| decoder.read(&mut segment[len..])));
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
            segment.truncate(len);
            digest.update(&segment);
            if held.size() + len as u64 > most {
                return Ok(Some(self.too_large(most, compressed)));
            }
            if len > 0 {
                match held.push(segment, call.interrupt) {
                    Ok(()) => {}
                    Err(StorageError::Unusable(why)) => return Ok(Some(why)),
                    Err(error) => return Err(error),
                }
            }
            if why.is_some() || len < SEGMENT {
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

    /// How its size differs from the one in the directory, if it does.
    fn other_size(&self, size: u64) -> Option<String> {
        let said = self.head.size.filter(|&said| said != size)?;
        Some(format!("it has {size} bytes, and the archive says {said}"))
    }
}

/// A section of a file, as a file.
struct Section {
    file: Arc<dyn StorageFile>,
    start: u64,
    size: u64,
}

impl StorageFile for Section {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        match offset.checked_add(buffer.len() as u64) {
            Some(end) if end <= self.size => self.file.read_at(buffer, self.start + offset),
            _ => unusable(format!("there are only {} bytes of it", self.size)),
        }
    }
}
