//! The chunks that are read at once, and the errors of reading them.

use evtx_format::Interrupted;
use evtx_format::container::chunk::{CHUNK_SIZE, slots_before_zeros};
use evtx_format::container::records::PromisedIds;

/// The most bytes of memory for collected events. The tens of thousands that Windows has take a few MiB.
pub(crate) const MAX_EVENT_BYTES: usize = 32 << 20;

/// The files have more different events than a collector keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the files have more different events than fit into {} MiB; read fewer files at once", MAX_EVENT_BYTES >> 20)]
pub struct TooManyEvents;

/// Why slots were not read to their end.
#[derive(Debug, thiserror::Error)]
pub enum SlotsError {
    /// There are too many different events. Other files can still be read.
    #[error(transparent)]
    TooManyEvents(#[from] TooManyEvents),
    /// The caller has interrupted the call.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// Consecutive slots of a file, each with a chunk. The last may be cut short.
#[derive(Debug, Clone, Copy, Default)]
pub struct Slots<'b> {
    /// Their bytes.
    pub bytes: &'b [u8],
    /// The index of the first slot in the file.
    pub first: u64,
    /// The IDs that the log promises to the first chunk.
    pub promised: PromisedIds,
    /// The slots before this index were used, also if they are zeros: see [`Block::used_slots`].
    ///
    /// [`Block::used_slots`]: evtx_format::container::layout::Block::used_slots
    pub used_slots: u64,
}

impl<'b> Slots<'b> {
    /// The index in the file of the first of the slots from which on none was ever used.
    pub fn first_unused(&self) -> u64 {
        self.used_slots.max(self.first + slots_before_zeros(self.bytes) as u64)
    }

    /// Each chunk with its index in the file, and the IDs that the log promises to it.
    pub fn chunks(self) -> impl Iterator<Item = (u64, &'b [u8], PromisedIds)> {
        let chunks = self.bytes.chunks(CHUNK_SIZE);
        let previous = std::iter::once(None).chain(chunks.clone().map(Some));
        (self.first..)
            .zip(chunks)
            .zip(previous)
            .map(move |((index, chunk), previous)| {
                let promised = match previous {
                    Some(previous) if PromisedIds::matter_to(chunk) => self.promised.after_chunk(previous),
                    _ => self.promised,
                };
                (index, chunk, promised)
            })
    }
}
