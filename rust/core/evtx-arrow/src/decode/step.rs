//! What a source of chunks says of the bytes of a block.

use std::borrow::Cow;

use evtx_format::container::records::PromisedIds;

use super::recovery::Recovery;

/// What the bytes of a block from an offset on are.
pub(super) enum Step<'b> {
    Chunk(NextChunk<'b>),
    /// So many bytes without a chunk.
    Gap(usize),
    /// The rest of the block has no chunk.
    End,
    /// Orphans that have lost definitions: the caller may have them.
    Ask,
}

/// A chunk to decode.
pub(super) struct NextChunk<'b> {
    pub(super) bytes: Cow<'b, [u8]>,
    /// Its file offset in bytes; of a chunk of orphans that of its first byte, if it were there.
    pub(super) offset: u64,
    /// The index of its slot, if it has one.
    pub(super) slot: Option<u64>,
    /// The chunk offset of its first byte that is in the file.
    pub(super) first: u32,
    /// The IDs that the log promises to it.
    pub(super) promised: PromisedIds,
    pub(super) recovery: Option<Box<Recovery>>,
    /// After it, so many bytes of the block are done.
    pub(super) len: usize,
}
