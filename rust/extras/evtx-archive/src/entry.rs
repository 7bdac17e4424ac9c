//! The entries of archives, opened as files.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::BufRead;
use std::ops::Range;
use std::sync::Arc;

use evtx_format::Interrupt;
use evtx_scan::{Call, Holds, NestedFile, OpenFile, Password, Storage, StorageError, StorageFile};

use crate::block::Block;
use crate::cipher::{CLASSIC_HEADER, Classic, Counter, Decrypted, Key, aes_header};
use crate::codec::Method;
use crate::formats::NESTING;
use crate::head::{Encryption, Head, Own, Place};
use crate::input::{Input, Source};
use crate::limits::{Archives, BOMB_RATIO};
use crate::memory::{EntryBytes, ListMemory, WindowLease, unusable};
use crate::names::{Glob, plain};
use crate::unpacked::Unpacked;
use crate::zip::local_header;

/// Why an entry is cut or refused that is inside many others.
const SHARED: &str = "it shares bytes with other entries, as in a bomb";

/// What else can cause damage to an entry whose cipher does not tell a wrong password.
const OR_PASSWORD: &str = "; or the password is wrong";

/// The most companions of a log that are compared.
const MAX_COMPANIONS: usize = 1000;

/// An archive that was listed.
#[derive(Debug)]
pub(crate) struct Archive {
    pub(crate) path: String,
    /// The size that it had then.
    pub(crate) size: u64,
    pub(crate) shared: Archives,
    /// The memory of the list of its entries.
    pub(crate) _memory: ListMemory,
    /// Entries that can hold messages, each with its name as [`plain`] has it, in the order of these.
    pub(crate) companions: Vec<(String, String, Head)>,
    /// Those of its entries that are decompressed together, by the numbers of their blocks.
    pub(crate) blocks: BTreeMap<u32, Block>,
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

    fn beside(&self, glob: &str) -> Vec<(String, Arc<dyn NestedFile>)> {
        let Ok(glob) = Glob::new(glob) else {
            return Vec::new();
        };
        let (all, start) = (&self.archive.companions, plain(glob.start()).collect::<String>());
        let from = all.partition_point(|(name, ..)| *name < start);
        let near = all[from..].iter().take_while(|(name, ..)| name.starts_with(&start));
        let near: Vec<_> = near.take(MAX_COMPANIONS + 1).collect();
        if near.len() > MAX_COMPANIONS {
            return Vec::new();
        }
        let files = near.into_iter().filter(|(_, name, _)| glob.matches(name));
        let file = |(_, name, head): &(String, String, Head)| -> (String, Arc<dyn NestedFile>) {
            let path = format!("{}/{name}", self.archive.path);
            (path, Arc::new(Entry::new(&self.archive, *head)))
        };
        files.map(file).collect()
    }

    fn open(&self, call: Call<'_>) -> Result<OpenFile, StorageError> {
        self.check()?;
        let (head, path) = (&self.head, &self.archive.path);
        if let Place::Block { block, offset } = head.place {
            return self.in_block(block, offset, call);
        }
        let (file, is_remote) = (call.open_outer(path)?, call.storage.is_remote(path));
        match head.place {
            Place::Whole if file.size() == 0 => return unusable("the file is empty"),
            Place::Whole => {}
            _ if file.size() != self.archive.size => {
                return unusable("the archive has changed since it was listed");
            }
            Place::File { offset } => return Ok(self.section(file, is_remote, offset, None)),
            Place::Local { .. } | Place::Block { .. } => {}
        }
        let failure = RefCell::new(None);
        let mut input = Input::new(&*file, head.offset(), file.size(), is_remote, call.interrupt, &failure);
        let (mut end, mut disagreement) = (file.size(), None);
        if let Place::Local { header, own, .. } = head.place {
            let data;
            (data, disagreement) = self.local(&mut input, header, own)?;
            if head.method == Method::Stored && head.encryption == Encryption::None && head.limit == u64::MAX {
                return Ok(self.section(file, is_remote, data.start, disagreement));
            }
            end = data.end;
        }
        let section = (end.min(file.size()), end > file.size());
        let (held, why) = self.hold(input, section, &failure, call.interrupt)?;
        let failure = why.or(disagreement.map(|why| StorageError::Unusable(why.to_owned())));
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

    /// Returns an error if the entry cannot be read, whatever its bytes are.
    fn check(&self) -> Result<(), StorageError> {
        let head = &self.head;
        let is_encrypted = head.encryption != Encryption::None;
        match head.method {
            _ if head.refusal.is_some() => return unusable(head.refusal.unwrap_or_default()),
            Method::Other(_) | Method::Coder(_) => {
                let method = head.method.describe();
                return unusable(format!("it is compressed with {method}, which is not supported"));
            }
            _ => {}
        }
        if head.encryption == Encryption::Unsupported {
            return unusable("it is encrypted in a way that is not supported");
        }
        if let Some(why) = self.archive.shared.no_password().filter(|_| is_encrypted) {
            return unusable(format!("it is encrypted, and {why}"));
        }
        if head.limit == 0 && head.compressed > 0 {
            unusable(SHARED)
        } else {
            Ok(())
        }
    }

    /// Reads its local header. Returns where its data is in the file, and how the header differs from the directory.
    fn local(
        &self,
        input: &mut Input<'_>,
        header: u64,
        own: Own,
    ) -> Result<(Range<u64>, Option<&'static str>), StorageError> {
        let offset = input.offset();
        // The first read takes the header and the data after it, and no more.
        input.set_end(offset.saturating_add(header).saturating_add(self.head.compressed));
        let mut header = [0; 30];
        let lengths = input.fill(&mut header)?.then(|| local_header(&header)).flatten();
        let Some((name_len, others)) = lengths else {
            return unusable("the archive has no entry where its directory says");
        };
        let mut name = vec![0; name_len];
        let mut disagreement = None;
        if input.fill(&mut name)? {
            disagreement = own.disagrees(&header, &name, self.head.compressed);
        }
        let start = offset + header.len() as u64 + name_len as u64 + others;
        let end = start.saturating_add(self.head.compressed);
        input.set_end(end);
        input.skip(others)?;
        Ok((start..end, disagreement))
    }

    /// Its bytes in a block, which is decompressed for that unless it is held.
    fn in_block(&self, block: u32, offset: u64, call: Call<'_>) -> Result<OpenFile, StorageError> {
        let archive = &*self.archive;
        let block = archive.blocks.get(&block);
        let Some((block, start)) = block.and_then(|block| Some((block, block.position(offset)?))) else {
            return unusable("the archive has no entry where its directory says");
        };
        let opened = block.open(&archive.path, archive.size, &archive.shared, call)?;
        let is_cut = opened.size() < start.saturating_add(self.head.compressed);
        let is_damaged = self.head.compressed > 0 && opened.is_damaged(start);
        let failure = opened.failure.clone().filter(|_| is_cut);
        let mut entry = self.section(
            opened,
            false,
            start,
            is_damaged.then_some("its checksum does not match"),
        );
        entry.failure = failure.or(entry.failure).map(|failure| match failure {
            StorageError::Unusable(why) if self.head.encryption == Encryption::Block => {
                StorageError::Unusable(format!("{why}{OR_PASSWORD}"))
            }
            other => other,
        });
        Ok(entry)
    }

    /// Its bytes as they are in a file.
    fn section(&self, file: Arc<dyn StorageFile>, is_remote: bool, start: u64, disagreement: Option<&str>) -> OpenFile {
        let size = self.head.compressed.min(file.size().saturating_sub(start));
        let why = self.other_size(size).or(disagreement.map(str::to_owned));
        OpenFile {
            file: Arc::new(Section { file, start, size }),
            is_remote,
            failure: why.map(StorageError::Unusable),
        }
    }

    /// Decompresses it. Returns the bytes, and what is wrong with them. `failure` is that of `input`.
    fn hold(
        &self,
        mut input: Input<'_>,
        (end, is_cut): (u64, bool),
        failure: &RefCell<Option<StorageError>>,
        interrupt: Interrupt<'_>,
    ) -> Result<(EntryBytes, Option<StorageError>), StorageError> {
        let shared = &self.archive.shared;
        let mut held = EntryBytes::new(&shared.budget);
        let len = end.saturating_sub(input.offset());
        let password = shared.password.as_ref().map_or("", Password::text);
        let nothing = |why: &str| {
            let why = StorageError::Unusable(why.to_owned());
            Ok((EntryBytes::new(&shared.budget), Some(why)))
        };
        let mut plain: Box<dyn BufRead + '_> = match self.head.encryption {
            Encryption::None | Encryption::Block | Encryption::Unsupported => Box::new(input),
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
        let mut digest = self.head.checksum.map(|_| crc32fast::Hasher::new());
        let windows = WindowLease::new(&shared.budget);
        let decoder = self.head.method.decoder(Box::new(&mut *plain), windows, interrupt);
        let mut stream = Unpacked::new(decoder, failure, len, shared, interrupt).with_limit(self.head.limit, SHARED);
        let ended = stream.hold(u64::MAX, &mut held, digest.as_mut());
        drop(stream);
        let mut why = match ended.and_then(|why| held.end().and(Ok(why))) {
            Err(why @ StorageError::Unusable(_)) => Some(why),
            ended => ended?,
        };
        let mut rest = 0;
        if why.is_none() {
            // What its stream does not use, and the tag of AES after that.
            match std::io::copy(&mut plain, &mut std::io::sink()) {
                Ok(len) => rest = len,
                Err(error) => why = failure.take().or(Some(StorageError::Unusable(error.to_string()))),
            }
        }
        if let Some(StorageError::Interrupted(interrupted)) = why {
            return Err(interrupted.into());
        }
        // Deflate64 takes up to three of them.
        let unused = || StorageError::Unusable(format!("{rest} bytes of it follow the end of its compressed data"));
        let why = why.or_else(|| (rest > 0).then(unused));
        let why = why.or_else(|| self.other_size(held.size()).map(StorageError::Unusable));
        let is_damaged = self.head.checksum != digest.map(crc32fast::Hasher::finalize);
        let damage = || is_damaged.then(|| StorageError::Unusable("its checksum does not match".to_owned()));
        let why = why.or_else(damage).map(|why| match (self.head.encryption, why) {
            (_, StorageError::Unusable(_)) if is_cut && rest == 0 => {
                StorageError::Unusable("the archive is cut short".to_owned())
            }
            (Encryption::Classic { .. }, StorageError::Unusable(why)) => {
                StorageError::Unusable(format!("{why}{OR_PASSWORD}"))
            }
            (_, why) => why,
        });
        Ok((held, why))
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
