//! An open file, its reads, and the estimate of how many records files have.

use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use evtx_arrow::Doubt;
use evtx_format::container::chunk::{CHUNK_SIZE, is_zeros, slots_before_zeros};
use evtx_format::container::header::FILE_HEADER;
use evtx_format::container::layout::{previous_chunk, slot_offset, slots_of};
use evtx_format::container::records::PromisedIds;
use evtx_format::{Interrupt, Interrupted};

use crate::scan_path::{FileSplit, ScanPath};
use crate::storage::{Call, Modified, OpenFile, ScanError, Storage, StorageError, StorageFile};

// Bytes that are read at once: the size of a block of a local and of a remote file.
const LOCAL_BLOCK: u64 = 1 << 20;
const REMOTE_BLOCK: u64 = 8 << 20;

/// The most bytes of a small file: 16 chunks after the header, as Windows makes most logs. It has one block, unless it
/// has stray chunks.
pub(crate) const SMALL: u64 = LOCAL_BLOCK + FILE_HEADER as u64;

// The sizes in bytes that an estimate assumes: of a remote file, and of a record.
const USUAL_SIZE: u64 = 20 << 20;
const USUAL_RECORD: u64 = 800;

/// The most files that an estimate looks at.
const MAX_ASKED: usize = 64;

/// The bytes in a buffer start at a multiple of this address. An allocator returns large memory 16 bytes after one. There,
/// the system takes 1.6 times as long to copy the pages of a file.
const PAGE: usize = 4096;

/// Bytes of a file. The memory is kept for the next bytes, and is not set to zeros before.
#[derive(Default)]
pub struct Buffer {
    memory: Vec<u8>,
    bytes: Range<usize>,
}

impl Buffer {
    /// A slice of this length. Its bytes can be those of an earlier read.
    fn slice_mut(&mut self, len: usize) -> &mut [u8] {
        if self.memory.len() < len + PAGE {
            self.memory = vec![0; len + PAGE];
        }
        let start = self.memory.as_ptr().addr().wrapping_neg() % PAGE;
        self.bytes = start..start + len;
        &mut self.memory[start..start + len]
    }

    /// Like [`LogFile::read`], for a file that was read into the buffer from its start.
    pub(crate) fn show(&mut self, offset: u64, len: u64) -> Result<(), StorageError> {
        let start = self.memory.as_ptr().addr().wrapping_neg() % PAGE + offset as usize;
        self.bytes = start..start + len as usize;
        Ok(())
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.bytes.clone()]
    }
}

/// What of a file changes with its content: its size in bytes, and the stamp of its last modification.
pub(crate) type FileVersion = (u64, i64);

/// An open file.
pub struct LogFile {
    file: Arc<dyn StorageFile>,
    /// Whether it is not on this machine.
    pub is_remote: bool,
    /// The first bytes of a remote file, which were read when it was opened.
    head: Vec<u8>,
    /// Why the file has other bytes than it should, or fewer.
    pub failure: Option<StorageError>,
    /// The stamp of its last modification before it was read; [`i64::MIN`] if that is unknown, or it is known to have changed.
    stamp: AtomicI64,
    /// How many slots there are before the zeros at its end, once it is known.
    slots_before_zeros: OnceLock<u64>,
}

impl LogFile {
    /// Opens a file, and reads the first bytes of a remote one.
    ///
    /// # Errors
    /// Those of the storage.
    pub fn open(call: Call<'_>, path: &ScanPath) -> Result<Self, StorageError> {
        let OpenFile {
            file,
            is_remote,
            failure,
        } = path.open(call)?;
        let split = path.split.as_ref();
        if let Some(split) = split.filter(|split| file.size() < split.size) {
            let (name, planned, size) = (&path.path, split.size, file.size());
            let text = format!("{name}: the file had {planned} bytes when the scan was planned, and has {size} now");
            return Err(StorageError::Changed(text));
        }
        let stamp = file.modified().map_or(i64::MIN, |modified| modified.stamp);
        let mut head = Vec::new();
        if is_remote {
            // The first chunks are of no use to a split without them.
            let chunks = if split.is_none_or(FileSplit::is_first) {
                REMOTE_BLOCK
            } else {
                0
            };
            head.resize(file.size().min(FILE_HEADER as u64 + chunks) as usize, 0);
            if !head.is_empty() {
                file.read_at(&mut head, 0)?;
            }
        }
        Ok(LogFile {
            file,
            is_remote,
            head,
            failure,
            stamp: stamp.into(),
            slots_before_zeros: OnceLock::new(),
        })
    }

    /// Whether the file was modified since it was opened, in the first call that finds it so.
    pub(crate) fn has_changed(&self) -> bool {
        let before = self.stamp.load(Ordering::Relaxed);
        let is_other = || self.modified().is_some_and(|now| now.stamp != before);
        before != i64::MIN && is_other() && self.stamp.swap(i64::MIN, Ordering::Relaxed) != i64::MIN
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.file.size()
    }

    /// The size, and the stamp of the last modification before the file was read; [`i64::MIN`] as in `stamp`.
    pub(crate) fn version(&self) -> FileVersion {
        (self.size(), self.stamp.load(Ordering::Relaxed))
    }

    /// What of another file could not become a part of this one: a text for a row each.
    pub(crate) fn damage(&self) -> &[String] {
        self.file.damage()
    }

    /// The records that may be no events.
    pub(crate) fn doubts(&self) -> Arc<[Doubt]> {
        self.file.doubts()
    }

    /// When it was last modified, if that is known.
    pub fn modified(&self) -> Option<Modified> {
        self.file.modified()
    }

    /// How many bytes to read at once.
    pub fn block_size(&self) -> u64 {
        if self.is_remote { REMOTE_BLOCK } else { LOCAL_BLOCK }
    }

    /// Replaces the content of a buffer with `len` bytes of the file from an offset on.
    pub fn read(&self, buffer: &mut Buffer, offset: u64, len: u64) -> Result<(), StorageError> {
        self.read_into(buffer.slice_mut(len as usize), offset)
    }

    fn read_into(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        let len = buffer.len() as u64;
        let end = offset.saturating_add(len);
        if len == 0 {
            return Ok(());
        }
        if end <= self.head.len() as u64 {
            buffer.copy_from_slice(&self.head[offset as usize..end as usize]);
            return Ok(());
        }
        self.file.read_at(buffer, offset)
    }

    /// The whole file, if it has at most `most` bytes and nothing is wrong with it.
    pub fn read_all(&self, call: Call<'_>, most: u64) -> Result<Vec<u8>, StorageError> {
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        let size = self.size();
        let mut bytes = Vec::new();
        if size > most || bytes.try_reserve_exact(size as usize).is_err() {
            let text = format!("it has {size} bytes; such a file has at most {most}");
            return Err(StorageError::Unusable(text));
        }
        bytes.resize(size as usize, 0);
        for (block, offset) in bytes
            .chunks_mut(self.block_size() as usize)
            .zip((0..).step_by(self.block_size() as usize))
        {
            call.interrupt.check()?;
            self.read_into(block, offset)?;
        }
        Ok(bytes)
    }

    /// The IDs that the log promises to a chunk. `bytes` start with the chunk, `slot` is its index, and `of_log` is
    /// what the file header promises. Reads the previous chunk if the records depend on it.
    pub fn promised(&self, bytes: &[u8], slot: u64, of_log: PromisedIds) -> Result<PromisedIds, Interrupted> {
        let chunk = &bytes[..bytes.len().min(CHUNK_SIZE)];
        let previous = previous_chunk(self.size(), slot).filter(|_| PromisedIds::matter_to(chunk));
        let Some(range) = previous else { return Ok(of_log) };
        let mut previous = Buffer::default();
        match self.read(&mut previous, range.start, range.end - range.start) {
            Ok(()) => Ok(of_log.after_chunk(&previous)),
            Err(StorageError::Interrupted(interrupted)) => Err(interrupted),
            // An unreadable chunk promises nothing.
            Err(_) => Ok(of_log),
        }
    }

    /// The index before which all slots were used, also if they are zeros. `bytes` start with the slot with index `first`, and
    /// `listed` is how many chunks the file header lists. If the bytes end with zeros, the rest of the file is searched.
    pub fn used_slots(
        &self,
        bytes: &[u8],
        first: u64,
        listed: u64,
        interrupt: Interrupt<'_>,
    ) -> Result<u64, Interrupted> {
        let (end, all) = (first + bytes.len().div_ceil(CHUNK_SIZE) as u64, slots_of(self.size()));
        let is_clear =
            end <= listed || end >= all || bytes.chunks(CHUNK_SIZE).next_back().is_none_or(|last| !is_zeros(last));
        if is_clear {
            return Ok(listed);
        }
        if let Some(known) = self.slots_before_zeros.get() {
            return Ok(listed.max(*known));
        }
        let (mut slots, mut block) = (all, Buffer::default());
        while slots > 0 {
            interrupt.check()?;
            let start = slots.saturating_sub(self.block_size() / CHUNK_SIZE as u64);
            let range = slot_offset(start)..slot_offset(slots).min(self.size());
            match self.read(&mut block, range.start, range.end - range.start) {
                Ok(()) => {}
                Err(StorageError::Interrupted(interrupted)) => return Err(interrupted),
                // The scan reports where the file cannot be read.
                Err(_) => return Ok(listed),
            }
            slots = start + slots_before_zeros(&block) as u64;
            if slots > start {
                break;
            }
        }
        Ok(listed.max(*self.slots_before_zeros.get_or_init(|| slots)))
    }

    /// Like [`read`](Self::read), but after an error the buffer holds the chunks before the first unreadable one.
    pub(crate) fn read_chunks(&self, buffer: &mut Buffer, offset: u64, len: u64) -> Result<(), StorageError> {
        let why = match self.read(buffer, offset, len) {
            Err(StorageError::Interrupted(interrupted)) => return Err(interrupted.into()),
            Err(why) => why,
            Ok(()) => return Ok(()),
        };
        let mut done = 0;
        for chunk in buffer.slice_mut(len as usize).chunks_exact_mut(CHUNK_SIZE) {
            match self.file.read_at(chunk, offset + done as u64) {
                Ok(()) => done += CHUNK_SIZE,
                Err(StorageError::Interrupted(interrupted)) => return Err(interrupted.into()),
                Err(_) => break,
            }
        }
        buffer.slice_mut(done);
        Err(why)
    }
}

/// An estimate of how many records files have, by the sizes of at most 64 of them.
///
/// # Errors
/// [`ScanError::Interrupted`]. A file that cannot be opened counts as empty.
pub fn estimate_records(storage: &dyn Storage, paths: &[ScanPath], interrupt: Interrupt<'_>) -> Result<u64, ScanError> {
    let asked = paths.len().min(MAX_ASKED);
    let mut size = 0_u64;
    for i in 0..asked {
        interrupt.check()?;
        match paths[i * paths.len() / asked].size(storage, USUAL_SIZE) {
            Ok(own) => size = own.saturating_add(size),
            Err(StorageError::Interrupted(interrupted)) => return Err(interrupted.into()),
            // The scan reports it.
            Err(_) => {}
        }
    }
    Ok((size / asked.max(1) as u64).saturating_mul(paths.len() as u64) / USUAL_RECORD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_keeps_its_memory_and_starts_at_a_page() {
        let mut buffer = Buffer::default();
        buffer.slice_mut(1 << 20).fill(7);
        let start = buffer.as_ptr();
        assert!(start.addr().is_multiple_of(PAGE) && *buffer == [7; 1 << 20]);
        for len in [0, 5, 1 << 20] {
            buffer.slice_mut(len);
            assert_eq!((buffer.as_ptr(), buffer.len()), (start, len));
        }
    }
}
