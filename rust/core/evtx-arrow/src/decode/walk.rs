//! The walk over the records of a chunk, as far as it must survive a full batch.

use evtx_format::Error;
use evtx_format::container::chunk::ChunkHeader;
use evtx_format::container::record::Record;
use evtx_format::container::records::{FoundRecord, PromisedIds, RecordWalk};

use super::location::ChunkLocation;
use crate::recovery::ChunkRecovery;

pub(super) struct ChunkWalk {
    pub(super) records: RecordWalk,
    /// What is wrong with the chunk as a whole. Reported after its records.
    pub(super) damage: Vec<Error>,
    /// A record with more rows than the last group had space for. The finder has those that are left.
    pub(super) again: Option<FoundRecord>,
    /// Decides which records count, if records are recovered.
    pub(super) recovery: Option<Box<dyn ChunkRecovery>>,
}

impl ChunkWalk {
    /// The walk over a chunk. If it `verifies` checksums, one that does not match is damage.
    pub(super) fn new(
        chunk: &[u8],
        promised: PromisedIds,
        verifies: bool,
        recovery: Option<Box<dyn ChunkRecovery>>,
    ) -> Self {
        let (records, damage) = match &recovery {
            Some(recovery) => recovery.walk(chunk, promised),
            None => RecordWalk::new(chunk, promised, false),
        };
        let mut damage = Vec::from_iter(damage);
        if verifies && damage.is_empty() {
            damage.extend(ChunkHeader::read(chunk).and_then(|header| header.verify(chunk)).err());
        }
        ChunkWalk {
            records,
            damage,
            again: None,
            recovery,
        }
    }

    /// The text of the error of a record.
    #[cold]
    pub(super) fn describe(&self, record: &Record, error: Error, location: &ChunkLocation) -> String {
        let text = location.describe_in(record, error);
        match &self.recovery {
            Some(recovery) => recovery.describe(record, error, text),
            None => text,
        }
    }
}
