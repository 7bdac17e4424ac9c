//! A file that is read.

use std::sync::Arc;

use evtx_format::Interrupt;
use evtx_format::container::chunk::CHUNK_SIZE;
use evtx_format::container::header::FILE_HEADER;

use crate::paths::ScanPath;
use crate::storage::{ScanError, Storage, StorageError, StorageFile};

/// Bytes to read at once: the blocks of a layout are as large.
const LOCAL_PIECE: u64 = 1 << 20;
const REMOTE_PIECE: u64 = 8 << 20;

/// What an estimate takes for the size of a file that it does not ask for, and for that of a record, in bytes.
const USUAL_SIZE: u64 = 20 << 20;
const USUAL_RECORD: u64 = 800;

/// How many files an estimate asks for their size at most.
const MAX_ASKED: usize = 64;

/// A file that was opened.
pub(crate) struct LogFile {
    file: Arc<dyn StorageFile>,
    is_remote: bool,
    /// Its first bytes, if a read takes long.
    head: Vec<u8>,
}

impl LogFile {
    pub(crate) fn open(storage: &dyn Storage, path: &ScanPath) -> Result<Self, StorageError> {
        if !path.is_text {
            return Err(StorageError::Failed("its name is not UTF-8".to_owned()));
        }
        let is_remote = storage.is_remote(&path.path);
        let file = storage.open(&path.path)?;
        let mut head = Vec::new();
        if is_remote {
            head.resize(file.size().min(FILE_HEADER as u64 + REMOTE_PIECE) as usize, 0);
            if !head.is_empty() {
                file.read_at(&mut head, 0)?;
            }
        }
        Ok(LogFile { file, is_remote, head })
    }

    pub(crate) fn size(&self) -> u64 {
        self.file.size()
    }

    pub(crate) fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// Bytes to read at once.
    pub(crate) fn piece(&self) -> u64 {
        if self.is_remote { REMOTE_PIECE } else { LOCAL_PIECE }
    }

    /// Puts so many bytes from an offset on into a buffer, in place of what it has.
    pub(crate) fn read(&self, buffer: &mut Vec<u8>, offset: u64, len: u64) -> Result<(), StorageError> {
        buffer.resize(len as usize, 0);
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

    /// As [`read`](Self::read), but where it fails the buffer has the chunks before.
    pub(crate) fn read_chunks(&self, buffer: &mut Vec<u8>, offset: u64, len: u64) -> Result<(), StorageError> {
        let why = match self.read(buffer, offset, len) {
            Err(StorageError::Failed(why)) => why,
            other => return other,
        };
        let mut done = 0;
        while let Some(chunk) = buffer.get_mut(done..).and_then(|rest| rest.get_mut(..CHUNK_SIZE)) {
            match self.file.read_at(chunk, offset + done as u64) {
                Ok(()) => done += CHUNK_SIZE,
                Err(StorageError::Failed(_)) => break,
                Err(interrupted) => return Err(interrupted),
            }
        }
        buffer.truncate(done);
        Err(StorageError::Failed(why))
    }
}

/// A failure of the storage as the row of its file has it.
pub(crate) fn describe_failure(text: &str) -> String {
    format!("cannot be read: {text}")
}

/// About how many records files have, by their sizes. Of many files, some are asked.
///
/// # Errors
/// [`ScanError::Interrupted`].
pub fn estimate_records(storage: &dyn Storage, paths: &[ScanPath], interrupt: Interrupt<'_>) -> Result<u64, ScanError> {
    let asked = paths.len().min(MAX_ASKED);
    let mut size = 0;
    for i in 0..asked {
        interrupt.check()?;
        let path = &paths[i * paths.len() / asked];
        if storage.is_remote(&path.path) {
            size += USUAL_SIZE;
        } else if path.is_text {
            match storage.open(&path.path) {
                Ok(file) => size += file.size(),
                Err(StorageError::Interrupted(interrupted)) => return Err(interrupted.into()),
                // The scan tells of it.
                Err(StorageError::Failed(_)) => {}
            }
        }
    }
    Ok(size / asked.max(1) as u64 * paths.len() as u64 / USUAL_RECORD)
}
