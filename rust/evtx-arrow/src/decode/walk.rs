//! The walk over the records of a chunk, as far as it must survive a full batch.

use std::ops::Range;

use evtx_format::Error;
use evtx_format::container::chunk::ChunkHeader;
use evtx_format::container::records::{FoundRecord, PromisedIds, RecordWalk};
use hashbrown::{HashMap, HashSet};

use super::definitions::Lent;
use crate::schema::Options;

/// What to read in a chunk of orphans.
pub(super) struct OrphanChunk {
    /// The chunk offset of the first orphan.
    pub(super) first: u32,
    /// The records that start in this range of chunk offsets.
    pub(super) starts: Range<usize>,
    /// The records that have lost definitions, by chunk offset.
    pub(super) lent: HashMap<u32, Lent>,
}

pub(super) struct ChunkWalk {
    pub(super) records: RecordWalk,
    /// What is wrong with the chunk as a whole. Reported after its records.
    pub(super) damage: Vec<Error>,
    /// A record with more rows than the last group had room for. The finder has those that are left.
    pub(super) again: Option<FoundRecord>,
    /// With `recover`: the IDs and times of the records that were read. The free space can have copies of them.
    pub(super) seen: HashSet<(u64, u64)>,
    /// The orphans that have lost definitions, by chunk offset.
    pub(super) lent: HashMap<u32, Lent>,
    /// Whether the chunk is one of orphans.
    pub(super) is_of_orphans: bool,
}

impl ChunkWalk {
    pub(super) fn new(chunk: &[u8], promised: PromisedIds, options: &Options) -> Self {
        let (records, damage) = RecordWalk::new(chunk, promised, options.recover);
        let mut damage = Vec::from_iter(damage);
        if options.verify && damage.is_empty() {
            damage.extend(ChunkHeader::read(chunk).and_then(|header| header.verify(chunk)).err());
        }
        ChunkWalk::of(records, damage)
    }

    pub(super) fn of_orphans(chunk: &[u8], OrphanChunk { starts, lent, .. }: OrphanChunk) -> Self {
        ChunkWalk {
            lent,
            is_of_orphans: true,
            ..ChunkWalk::of(RecordWalk::of_orphans(chunk, starts), Vec::new())
        }
    }

    fn of(records: RecordWalk, damage: Vec<Error>) -> Self {
        ChunkWalk {
            records,
            damage,
            again: None,
            seen: HashSet::new(),
            lent: HashMap::new(),
            is_of_orphans: false,
        }
    }
}
