//! The list of entries of an archive: where it is, and how it is compressed.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use evtx_format::Interrupt;
use evtx_scan::{StorageError, StorageFile};

use super::bytes::{Bytes, damaged};
use super::files::entries;
use super::folder::Folder;
use super::keys::Keys;
use super::streams::{START, Streams};
use crate::codec::Method;
use crate::findings::{Findings, MAX_TOLD, NAMED, gaps, hidden, unclaimed};
use crate::head::{Directory, Wanted};
use crate::input::{Input, Source};
use crate::limits::Archives;
use crate::memory::{PIECE, unusable};
use crate::unpacked::Unpacked;

/// How an archive starts.
const SIGNATURE: &[u8] = b"7z\xBC\xAF\x27\x1C";

/// Most bytes of a list of entries, compressed or not. 7-Zip takes about 100 bytes for an entry.
const MAX_HEADER: u64 = 128 << 20;
/// Why an archive without its last bytes is not read.
const CUT: &str = "the archive is cut short";

/// How often a list can be compressed.
const MAX_LAYERS: usize = 4;

// IDs of properties.
const END: u64 = 0x00;
const HEADER: u64 = 0x01;
const ARCHIVE: u64 = 0x02;
const OTHER_STREAMS: u64 = 0x03;
const STREAMS: u64 = 0x04;
const FILES: u64 = 0x05;
const ENCODED: u64 = 0x17;

/// Reads the list of entries, and the folders that they come out of.
struct Reader<'r> {
    file: &'r dyn StorageFile,
    is_remote: bool,
    archives: &'r Archives,
    keys: &'r Keys,
    interrupt: Interrupt<'r>,
}

/// Reads the list of entries of an archive. Also returns the folders that they come out of, and the keys of these.
///
/// # Errors
/// Those of the storage, [`StorageError::Unusable`] if there is no list or it is damaged, too large, or encrypted without
/// a password.
pub(crate) fn directory(
    file: &dyn StorageFile,
    is_remote: bool,
    archives: &Archives,
    wanted: &mut Wanted<'_>,
    interrupt: Interrupt<'_>,
) -> Result<(Directory, Vec<Folder>, Arc<Keys>), StorageError> {
    let keys = Arc::new(Keys::default());
    let reader = Reader {
        file,
        is_remote,
        archives,
        keys: &keys,
        interrupt,
    };
    let (place, mut list) = reader.list(wanted)?;
    let (mut spans, mut advice) = (vec![0..START, place], "");
    // An archive without entries has no list.
    if list.is_empty() {
        let directory = Directory {
            failures: reader.others(spans)?,
            ..Directory::default()
        };
        return Ok((directory, Vec::new(), keys));
    }
    for _ in 0..MAX_LAYERS {
        match reader.layer(&list, wanted).map_err(|error| advised(error, advice))? {
            Layer::List(mut directory, streams) => {
                if let Some(what) = hidden(&list) {
                    directory
                        .failures
                        .push(format!("{NAMED}its list of entries contains {what}"));
                }
                streams.claim(&mut spans, &mut wanted.memory)?;
                directory.failures.extend(reader.others(spans)?);
                return Ok((directory, streams.folders, keys));
            }
            Layer::Packed(folder) => {
                spans.push(folder.section());
                if folder.is_encrypted() {
                    advice = "; or the password is wrong";
                }
                let unpacked = reader.unpack(&folder, wanted).map_err(|error| advised(error, advice))?;
                wanted.memory.give_back(list.len());
                list = unpacked;
            }
        }
    }
    damaged()
}

/// What a list of entries is.
enum Layer {
    /// Entries, and the streams that they come out of.
    List(Directory, Streams),
    /// A compressed list.
    Packed(Folder),
}

impl Reader<'_> {
    /// Reads the start of the archive: the version, a checksum, and where the list of entries is, its size and its
    /// checksum.
    fn start(&self) -> Result<(u64, u64, u32), StorageError> {
        let size = self.file.size();
        let mut start = [0; START as usize];
        let there = &mut start[..size.min(START) as usize];
        self.file.read_at(there, 0)?;
        if !there.starts_with(SIGNATURE) {
            return unusable(match &*there {
                [] => "the file is empty",
                [b'M', b'Z', ..] | [0x7F, b'E', b'L', b'F', ..] => {
                    "it is a program that extracts itself, not a 7z archive: extract it first"
                }
                _ => "it is not a 7z archive",
            });
        }
        let (mut bytes, major) = (Bytes(&start[8..]), start[SIGNATURE.len()]);
        let stored = bytes.four()?;
        match bytes.0 {
            _ if size < START => unusable(CUT),
            // An archive without entries is only this, with a checksum.
            fields if *fields == [0; 20] && (size > START || crc32fast::hash(fields) != stored) => {
                unusable("the archive was not finished: it has no list of entries")
            }
            _ if major != 0 => unusable(format!("its format has the version {major}, which is not known")),
            fields if crc32fast::hash(fields) != stored => {
                unusable("its first bytes are damaged: their checksum does not match")
            }
            _ => {
                let [offset, len] = [bytes.array()?, bytes.array()?].map(u64::from_le_bytes);
                Ok((offset.saturating_add(START), len, bytes.four()?))
            }
        }
    }

    /// What the archive has besides these sections: bytes after its end, or between its parts.
    fn others(&self, spans: Vec<Range<u64>>) -> Result<Vec<String>, StorageError> {
        let mut findings = Findings::new(MAX_TOLD);
        gaps(spans, self.file.size(), self.interrupt, |gap| {
            let mut start = [0; SIGNATURE.len()];
            let mut what = unclaimed(&gap);
            if gap.end - gap.start >= START && !findings.is_full() {
                self.file.read_at(&mut start, gap.start)?;
                if start == SIGNATURE {
                    what += ", and start with another 7z archive";
                }
            }
            findings.tell(&what);
            Ok(())
        })?;
        Ok(findings.into_texts(NAMED))
    }

    /// The list of entries as it is in the file, and where it is.
    fn list(&self, wanted: &mut Wanted<'_>) -> Result<(Range<u64>, Vec<u8>), StorageError> {
        let (at, len, checksum) = self.start()?;
        let end = at.saturating_add(len);
        if end > self.file.size() {
            return unusable(format!("{CUT}: its list of entries is missing"));
        }
        too_large(len)?;
        wanted.memory.take(len as usize)?;
        let failure = RefCell::new(None);
        let mut input = Input::new(self.file, at, end, self.is_remote, self.interrupt, &failure);
        // The file has these bytes.
        let mut list = vec![0; len as usize];
        if !input.fill(&mut list)? {
            return unusable(CUT);
        }
        check(&list, Some(checksum).filter(|_| len > 0))?;
        Ok((at..end, list))
    }

    fn layer(&self, list: &[u8], wanted: &mut Wanted<'_>) -> Result<Layer, StorageError> {
        let mut bytes = Bytes(list);
        match bytes.number()? {
            HEADER => {
                let (directory, streams) = self.header(&mut bytes, wanted)?;
                Ok(Layer::List(directory, streams))
            }
            ENCODED => {
                let mut folders = Streams::read(&mut bytes, &mut wanted.memory, self.interrupt)?.folders;
                match (folders.pop(), &folders[..]) {
                    (Some(folder), []) => Ok(Layer::Packed(folder)),
                    _ => damaged(),
                }
            }
            _ => damaged(),
        }
    }

    /// Decompresses a list.
    fn unpack(&self, folder: &Folder, wanted: &mut Wanted<'_>) -> Result<Vec<u8>, StorageError> {
        too_large(folder.size)?;
        if let Some(id) = folder.unsupported() {
            let method = Method::Coder(id).describe();
            return unusable(format!(
                "its list of entries is compressed with {method}, which is not supported"
            ));
        }
        if let Some(why) = self.archives.no_password().filter(|_| folder.is_encrypted()) {
            return unusable(format!("its list of entries is encrypted, and {why}"));
        }
        let (size, window) = (folder.size as usize, folder.windows() as usize);
        wanted.memory.take(size + window)?;
        let (failure, interrupt) = (RefCell::new(None), self.interrupt);
        let packed = folder.section();
        let input = Input::new(self.file, packed.start, packed.end, self.is_remote, interrupt, &failure);
        let decoder = folder.decoder(Box::new(input), self.archives, self.keys, interrupt)?;
        let mut stream = Unpacked::new(decoder, &failure, folder.packed, self.archives, interrupt);
        let mut list = Vec::with_capacity(size);
        while (list.len() as u64) < folder.size {
            let start = list.len();
            list.resize(start + (folder.size - start as u64).min(PIECE as u64) as usize, 0);
            match stream.fill(&mut list[start..]) {
                Ok(true) => {}
                Ok(false) => return damaged(),
                Err(StorageError::Unusable(why)) => {
                    return unusable(format!("its list of entries cannot be decompressed: {why}"));
                }
                Err(error) => return Err(error),
            }
        }
        check(&list, folder.checksum)?;
        wanted.memory.give_back(window);
        Ok(list)
    }

    /// Reads a list: properties of the archive, streams, and files.
    fn header(&self, bytes: &mut Bytes<'_>, wanted: &mut Wanted<'_>) -> Result<(Directory, Streams), StorageError> {
        let (mut streams, mut directory, mut last) = (Streams::default(), Directory::default(), END);
        loop {
            let property = bytes.number()?;
            if property != END && property <= last {
                return damaged();
            }
            last = property;
            match property {
                END => return Ok((directory, streams)),
                ARCHIVE => {
                    while bytes.number()? != END {
                        self.interrupt.check()?;
                        bytes.pass()?;
                    }
                }
                OTHER_STREAMS => drop(Streams::read(bytes, &mut wanted.memory, self.interrupt)?),
                STREAMS => streams = Streams::read(bytes, &mut wanted.memory, self.interrupt)?,
                FILES => directory = entries(bytes, &streams, wanted, self.interrupt)?,
                _ => return damaged(),
            }
        }
    }
}

fn too_large(len: u64) -> Result<(), StorageError> {
    if len > MAX_HEADER {
        unusable(format!(
            "its list of entries has {len} bytes, more than {} MiB",
            MAX_HEADER >> 20
        ))
    } else {
        Ok(())
    }
}

fn check(list: &[u8], checksum: Option<u32>) -> Result<(), StorageError> {
    match checksum {
        Some(checksum) if crc32fast::hash(list) != checksum => damaged(),
        _ => Ok(()),
    }
}

fn advised(error: StorageError, advice: &str) -> StorageError {
    match error {
        StorageError::Unusable(why) if !why.contains("password") => StorageError::Unusable(why + advice),
        other => other,
    }
}
