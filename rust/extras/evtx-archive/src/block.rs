//! A compressed archive: its entries come out of one stream, one after the other.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{BufRead, Read};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};

use evtx_format::Interrupt;
use evtx_scan::{Call, StorageError, StorageFile, WAIT};

use crate::codec::Method;
use crate::input::{Input, Source};
use crate::limits::Archives;
use crate::memory::{EntryBytes, WindowLease, unusable};
use crate::seven_zip::{Folder, Keys};
use crate::unpacked::Unpacked;

/// How a block is decompressed.
#[derive(Debug)]
pub(crate) enum Coding {
    /// All of the file, by one method.
    Whole(Method),
    /// A folder of a 7z archive.
    Folder(Folder, Arc<Keys>),
}

impl Coding {
    /// Where the compressed bytes are in a file of so many bytes.
    fn section(&self, size: u64) -> Range<u64> {
        match self {
            Coding::Whole(_) => 0..size,
            Coding::Folder(folder, _) => folder.section(),
        }
    }

    fn decoder<'r>(
        &self,
        input: Box<dyn BufRead + 'r>,
        archives: &Archives,
        interrupt: Interrupt<'r>,
    ) -> Result<Box<dyn Read + 'r>, StorageError> {
        match self {
            Coding::Whole(method) => Ok(method.decoder(input, WindowLease::new(&archives.budget), interrupt)),
            Coding::Folder(folder, keys) => folder.decoder(input, archives, keys, interrupt),
        }
    }
}

/// An entry in the stream of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Item {
    /// Where it is in the stream, and how many bytes it has there.
    pub(crate) offset: u64,
    pub(crate) len: u64,
    /// Its CRC-32, if it has one.
    pub(crate) checksum: Option<u32>,
}

/// Some entries of a compressed archive. The first that is opened decompresses all of them, and they are held together
/// until no entry is open and another archive is read.
#[derive(Debug)]
pub(crate) struct Block {
    coding: Coding,
    /// In the order of the stream, each with where it is in the bytes that are held.
    items: Vec<(Item, u64)>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_decoding: bool,
    /// The entries, one after the other, if they are held.
    held: Option<Weak<Opened>>,
}

/// The entries of a block, one after the other.
pub(crate) struct Opened {
    file: Arc<dyn StorageFile>,
    /// Why there are not all of them.
    pub(crate) failure: Option<StorageError>,
    /// Where those start whose checksums do not match.
    damaged: BTreeSet<u64>,
}

impl Opened {
    /// Whether the bytes of the entry at a position do not match its checksum.
    pub(crate) fn is_damaged(&self, position: u64) -> bool {
        self.damaged.contains(&position)
    }
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Opened({} bytes, {:?})", self.file.size(), self.failure)
    }
}

impl StorageFile for Opened {
    fn size(&self) -> u64 {
        self.file.size()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        self.file.read_at(buffer, offset)
    }
}

impl Block {
    /// `entries` are those that may be opened.
    pub(crate) fn new(coding: Coding, mut entries: Vec<Item>) -> Self {
        entries.sort_unstable();
        entries.dedup();
        let mut end = 0;
        let items = entries.into_iter().map(|item| {
            let at = end;
            end += item.len;
            (item, at)
        });
        Block {
            coding,
            items: items.collect(),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// Where the entry at an offset in the stream is in the bytes that are held.
    pub(crate) fn position(&self, offset: u64) -> Option<u64> {
        let index = self.items.binary_search_by_key(&offset, |(item, _)| item.offset).ok()?;
        Some(self.items[index].1)
    }

    // A poisoned lock stays usable: no change under the lock can panic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the entries of the archive at a path, which had so many bytes when it was listed.
    ///
    /// # Errors
    /// Those of the storage.
    pub(crate) fn open(
        &self,
        path: &str,
        size: u64,
        archives: &Archives,
        call: Call<'_>,
    ) -> Result<Arc<Opened>, StorageError> {
        let mut state = self.lock();
        loop {
            if let Some(opened) = state.held.as_ref().and_then(Weak::upgrade) {
                drop(state);
                // For its next entry.
                call.last.keep(Arc::clone(&opened) as _);
                return Ok(opened);
            }
            if !state.is_decoding {
                break;
            }
            let waited = self.changed.wait_timeout(state, WAIT);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            call.interrupt.check()?;
            state = self.lock();
        }
        state.is_decoding = true;
        drop(state);
        let decoding = Decoding(self);
        let opened = Arc::new(self.decode(path, size, archives, call)?);
        self.lock().held = Some(Arc::downgrade(&opened));
        drop(decoding);
        call.last.keep(Arc::clone(&opened) as _);
        Ok(opened)
    }

    fn decode(&self, path: &str, size: u64, archives: &Archives, call: Call<'_>) -> Result<Opened, StorageError> {
        let file = call.open_outer(path)?;
        if file.size() != size {
            return unusable("the archive has changed since it was listed");
        }
        let (failure, is_remote) = (RefCell::new(None), call.storage.is_remote(path));
        let section = self.coding.section(size);
        let input = Input::new(&*file, section.start, section.end, is_remote, call.interrupt, &failure);
        let decoder = self.coding.decoder(Box::new(input), archives, call.interrupt)?;
        let mut stream = Unpacked::new(decoder, &failure, section.end - section.start, archives, call.interrupt);
        let (mut held, mut damaged) = (EntryBytes::new(&archives.budget), BTreeSet::new());
        let ended = self.hold(&mut stream, &mut held, &mut damaged);
        let failure = match ended.and_then(|why| held.end().and(Ok(why))) {
            Err(why @ StorageError::Unusable(_)) => Some(why),
            ended => ended?,
        };
        Ok(Opened {
            file: held.into_file(),
            failure,
            damaged,
        })
    }

    /// Holds the entries. Adds those to `damaged` whose checksums do not match. Returns why there are not all.
    fn hold(
        &self,
        stream: &mut Unpacked<'_>,
        held: &mut EntryBytes,
        damaged: &mut BTreeSet<u64>,
    ) -> Result<Option<StorageError>, StorageError> {
        for (item, at) in &self.items {
            match stream.skip(item.offset.saturating_sub(stream.offset())) {
                Err(why @ (StorageError::Unusable(_) | StorageError::Failed(_))) => return Ok(Some(why)),
                skipped => _ = skipped?,
            }
            let mut digest = item.checksum.map(|_| crc32fast::Hasher::new());
            let failure = stream.hold(item.len, held, digest.as_mut())?;
            if failure.is_some() || held.size() < at + item.len {
                return Ok(failure);
            }
            // An entry without bytes has the position of the next one.
            if item.len > 0 && item.checksum != digest.map(crc32fast::Hasher::finalize) {
                damaged.insert(*at);
            }
        }
        Ok(None)
    }
}

/// A thread decompresses the block. Drop tells the others that it has ended.
struct Decoding<'b>(&'b Block);

impl Drop for Decoding<'_> {
    fn drop(&mut self) {
        self.0.lock().is_decoding = false;
        self.0.changed.notify_all();
    }
}
