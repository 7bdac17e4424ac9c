//! Reads the events of a chunk one at a time, without batches.

use bumpalo::Bump;
use evtx_format::binxml::names::Names;
use evtx_format::container::records::{PromisedIds, RecordWalk};
use evtx_format::{Interrupt, Interrupted};

use crate::read::RecordReader;
use crate::record::{ChunkTemplates, GROUP, RecordGroup};
use crate::scan::Scan;

/// Reads the records of chunks. Its templates and arenas are used again.
#[derive(Default)]
pub(super) struct ChunkReader {
    templates: ChunkTemplates,
    arenas: [Bump; 2],
}

impl ChunkReader {
    /// Reads the event of each record of a chunk, and passes it to `take`, in a group of its own. Leaves out records whose
    /// frames are damaged.
    ///
    /// # Errors
    /// [`Interrupted`], and the errors of `take`.
    pub(super) fn read<E: From<Interrupted>>(
        &mut self,
        scan: &Scan,
        chunk: &[u8],
        promised: PromisedIds,
        interrupt: Interrupt<'_>,
        mut take: impl for<'r, 'c> FnMut(&RecordReader<'r, 'c>, &mut ChunkTemplates, &mut RecordGroup<'r>) -> Result<(), E>,
    ) -> Result<(), E> {
        let ChunkReader { templates, arenas } = self;
        let [names, arena] = arenas;
        names.reset();
        templates.clear();
        let names = Names::new(chunk, names);
        let (mut walk, _) = RecordWalk::new(chunk, promised, false);
        let mut is_end = false;
        while !is_end {
            interrupt.check()?;
            if templates.are_many() {
                templates.clear();
            }
            arena.reset();
            let reader = RecordReader::new(scan, chunk, &names, arena, interrupt);
            let mut records = RecordGroup::new(&scan.projection, 1, arena);
            for _ in 0..GROUP {
                let Some(item) = walk.next(chunk) else {
                    is_end = true;
                    break;
                };
                if let Ok(found) = item {
                    reader.read_event(templates, &mut records, found.record.binxml());
                    take(&reader, templates, &mut records)?;
                }
                if reader.takes_much() {
                    break;
                }
            }
        }
        Ok(())
    }
}
