//! The recovery of a scan: its surveys, and the chunks of its blocks.

use std::any::Any;
use std::sync::Arc;

use evtx_arrow::{ChunkSource, Recovery, SlotChunks, Table};
use evtx_format::container::layout::{Block, Chunks};
use evtx_format::container::survey::{FileSurvey, Search};

use crate::definitions::SharedDefinitions;
use crate::image::ImageChunks;
use crate::stray_chunks::{RecoveredSlots, StrayChunks};
use crate::survey::{Found, RecoverySurvey};

/// Recovers records for all threads of a scan.
#[derive(Debug, Default)]
pub(crate) struct ScanRecovery {
    pub(crate) definitions: Arc<SharedDefinitions>,
}

/// The table with records that only recovery finds, and with the column `recovered`, which marks them.
pub fn recover(table: Table) -> Table {
    table.recovering(|| Arc::<ScanRecovery>::default())
}

impl Recovery for ScanRecovery {
    fn survey(&self, size: u64, search: Search) -> Box<dyn FileSurvey> {
        Box::new(RecoverySurvey::new(size, search))
    }

    fn chunks(self: Arc<Self>, block: Block) -> Box<dyn ChunkSource> {
        let found = block.found.as_deref().and_then(|found| {
            let found: &dyn Any = found;
            found.downcast_ref::<Found>()
        });
        match (block.chunks, found) {
            (Chunks::Slots(slot), found) => Box::new(RecoveredSlots {
                slots: SlotChunks::new(&block, slot),
                stray_chunks: found.map(Found::all_stray_chunks).unwrap_or_default(),
            }),
            (Chunks::Found(index), Some(Found::Image(size))) => {
                let definitions = Arc::clone(&self.definitions);
                Box::new(ImageChunks::new(&block, Found::covered(*size, index), definitions))
            }
            (Chunks::Found(index), Some(Found::StrayChunks(all, blocks))) => Box::new(StrayChunks {
                left: all[blocks[index as usize].clone()].iter().copied().collect(),
                promised: block.promised.after(None),
            }),
            (Chunks::Found(_), None) => Box::<StrayChunks>::default(),
        }
    }
}
