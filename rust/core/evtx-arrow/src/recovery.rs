//! The seam for recovery: where the chunks of a block come from, and which of their records count.
//!
//! Plain reading has the slots of a log as its source of chunks. It has a virtual call per chunk, and none per record.

use std::any::Any;
use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use evtx_format::container::layout::Block;
use evtx_format::container::record::Record;
use evtx_format::container::records::{PromisedIds, RecordWalk};
use evtx_format::container::survey::{FileSurvey, Search};
use evtx_format::{Error, Interrupt, Interrupted};

use crate::record::RecoveredRecord;

/// Finds chunks and records that plain reading does not, for all threads of a scan.
pub trait Recovery: Debug + Send + Sync + Any {
    /// The survey of a file of `size` bytes.
    fn survey(&self, size: u64, search: Search) -> Box<dyn FileSurvey>;

    /// The chunks of a block.
    fn chunks(self: Arc<Self>, block: Block) -> Box<dyn ChunkSource>;
}

/// The chunks of a block.
pub trait ChunkSource: Send {
    /// What the bytes of the block from a file offset on are. The answer stays the same until [`pass`](Self::pass).
    ///
    /// # Errors
    /// [`Interrupted`].
    fn next<'b>(&mut self, bytes: &'b [u8], offset: u64, interrupt: Interrupt<'_>) -> Result<Step<'b>, Interrupted>;

    /// Moves past a chunk. `last` is the ID of its last record, as its header has it.
    fn pass(&mut self, last: Option<u64>);
}

/// What the bytes of a block from an offset on are.
pub enum Step<'b> {
    /// A chunk.
    Chunk(NextChunk<'b>),
    /// So many bytes without a chunk.
    Gap(usize),
    /// The rest of the block has no chunk.
    End,
    /// Only the other logs of the scan tell. The caller lets recovery read them, and asks again.
    NeedsLogs,
}

/// A chunk to decode.
pub struct NextChunk<'b> {
    /// Its bytes.
    pub bytes: Cow<'b, [u8]>,
    /// Its file offset in bytes; if its first bytes are not in the file, that of its first byte, if it were there.
    pub offset: u64,
    /// The index of its slot, if it has one.
    pub slot: Option<u64>,
    /// The chunk offset of its first byte that is in the file.
    pub first: u32,
    /// The IDs that the log promises to it.
    pub promised: PromisedIds,
    /// What decides which of its records count; `None` if all that are live do.
    pub recovery: Option<Box<dyn ChunkRecovery>>,
    /// After it, so many bytes of the block are done.
    pub len: usize,
}

/// What happens to a record after it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It is kept.
    Keep,
    /// Only what needs no names is kept: the columns of `System` if they are its own, and the texts of the other values.
    KeepWithoutNames {
        /// Whether the columns of `System` are kept.
        system: bool,
    },
    /// It is dropped: it comes elsewhere, too.
    Drop,
    /// It only looked like a record. The walk goes on with its next byte.
    Noise,
}

/// Decides which records of a chunk count.
pub trait ChunkRecovery: Send {
    /// The walk over the records of the chunk, and what is wrong with the chunk as a whole.
    fn walk(&self, chunk: &[u8], promised: PromisedIds) -> (RecordWalk, Option<Error>);

    /// Decides what happens to a record after it was read.
    fn decide(&mut self, record: &mut RecoveredRecord<'_, '_>) -> Decision;

    /// What is wrong with a record, if reading it has found some damage, or none.
    fn damage(&self, record: &Record, damage: Option<Error>) -> Option<Error>;

    /// The text of the error of a record, which is `text` without recovery.
    fn describe(&self, record: &Record, error: Error, text: String) -> String;
}
