//! Finds and reads the message files (`.MTA`) next to logs.

use std::sync::{Arc, Mutex, PoisonError};

use evtx_format::mta::{self, Messages};

use crate::file::LogFile;
use crate::pool::{Lease, Pool};
use crate::scan_path::{ScanPath, Source};
use crate::storage::{Call, Holds, StorageError, separators};

/// Finds and reads the messages of the logs of a scan.
#[derive(Debug)]
pub struct MessageFinder {
    place: String,
    /// How many more bytes of memory messages may take.
    memory: Pool,
    /// The last folder of messages, as a glob, and whether it is empty. Most logs have no messages next to them.
    last: Mutex<(String, bool)>,
}

/// Messages, and the memory that is reserved for them.
#[derive(Debug)]
pub(crate) struct HeldMessages {
    pub(crate) messages: Arc<Messages>,
    _memory: Lease,
}

impl MessageFinder {
    /// A finder that looks at `place`: a glob relative to the log's folder, in which `{log}` is the log's name. A log
    /// whose messages would exceed `memory` bytes, with those of all open logs, is read without them.
    pub fn new(place: &str, memory: u64) -> Self {
        MessageFinder {
            place: place.to_owned(),
            memory: Pool::new(memory),
            last: Mutex::default(),
        }
    }

    /// The messages of a log; `None` if there are none that can be read.
    pub(crate) fn find(&self, call: Call<'_>, log: &ScanPath) -> Result<Option<HeldMessages>, StorageError> {
        match self.read(call, log) {
            Err(StorageError::Failed(_) | StorageError::Unusable(_)) => Ok(None),
            other => other,
        }
    }

    /// The file of the messages of a log: the first, if there is one for each of several languages.
    fn path(&self, call: Call<'_>, log: &ScanPath) -> Result<Option<ScanPath>, StorageError> {
        let (path, source) = match &log.source {
            Source::Nested(file) if file.outer_holds() == Holds::Folder => {
                // The name of a nested file never leads out of the outer one.
                let name = log.path.get(file.outer().len() + 1..).unwrap_or_default();
                let pattern = Messages::pattern(name, &self.place);
                let Some((path, file)) = pattern.and_then(|pattern| file.beside(&pattern)) else {
                    return Ok(None);
                };
                (path, Source::Nested(file))
            }
            source => {
                let outer = match source {
                    Source::Nested(file) => file.outer_holds(),
                    _ => Holds::Bytes,
                };
                let name = if let Holds::File(name) = outer { name } else { &log.path };
                let Some(pattern) = Messages::pattern(name, &self.place) else {
                    return Ok(None);
                };
                if self.is_empty(call, &pattern)? {
                    return Ok(None);
                }
                let found = call.storage.glob(&pattern)?.into_iter().min();
                let Some(path) = found.and_then(|path| String::from_utf8(path).ok()) else {
                    return Ok(None);
                };
                (path, Source::File)
            }
        };
        Ok(Some(ScanPath::new(path, false, source)))
    }

    /// Whether the folder of a glob is empty. Checks only folders that many logs share.
    fn is_empty(&self, call: Call<'_>, pattern: &str) -> Result<bool, StorageError> {
        let of_all = |(folder, name): &(&str, &str)| !folder.contains("{log}") && !name.contains("**");
        let separators = separators(call.storage.is_remote(pattern));
        if self.place.rsplit_once(separators).filter(of_all).is_none() {
            return Ok(false);
        }
        let folder = pattern.rsplit_once(separators).map_or("", |(folder, _)| folder);
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last();
        if known.0 == folder {
            return Ok(known.1);
        }
        drop(known);
        let is_empty = call.storage.glob(&format!("{folder}/*"))?.is_empty();
        *last() = (folder.to_owned(), is_empty);
        Ok(is_empty)
    }

    fn read(&self, call: Call<'_>, log: &ScanPath) -> Result<Option<HeldMessages>, StorageError> {
        let Some(path) = self.path(call, log)? else {
            return Ok(None);
        };
        let file = LogFile::open(call, &path)?;
        if file.failure.is_some() {
            return Ok(None);
        }
        let size = usize::try_from(file.size()).ok().filter(|&size| size <= mta::MAX_FILE);
        let Some(size) = size else { return Ok(None) };
        let mut memory = self.memory.lease();
        if !memory.try_take(mta::memory(size)) {
            return Ok(None);
        }
        let bytes = file.read_all(call, mta::MAX_FILE as u64)?;
        let messages = Messages::read(bytes, call.interrupt);
        call.interrupt.check()?;
        Ok(messages.ok().map(|messages| HeldMessages {
            messages: Arc::new(messages),
            _memory: memory,
        }))
    }
}
