//! The values of a few columns of each record, without batches.

use bumpalo::Bump;
use evtx_format::binxml::names::Names;
use evtx_format::container::records::{PromisedIds, RecordWalk};
use evtx_format::{Interrupt, Interrupted};

use super::collected::push_key;
use crate::plan::PlaceId;
use crate::read::RecordReader;
use crate::record::{ChunkTemplates, Places, RecordGroup};
use crate::scan::Scan;
use crate::schema::{Options, Table};

/// Reads a few columns of the records of chunks, one record at a time.
pub struct PlaceReader {
    scan: Scan,
    templates: ChunkTemplates,
    arenas: [Bump; 2],
}

/// The values of a record in the columns of a [`PlaceReader`].
pub struct PlaceValues<'p, 'r>(Places<'p, 'r>);

impl PlaceReader {
    /// A reader of the columns with these names. Each must have one place in the event, such as `channel`.
    pub fn new(columns: &[&str]) -> Self {
        let table = Table::from(Options::default());
        let projection = table.indices_of(columns);
        PlaceReader {
            scan: Scan::new(table, &projection),
            templates: ChunkTemplates::default(),
            arenas: Default::default(),
        }
    }

    /// Calls `take` for each record of a chunk. Records that cannot be read are left out.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub fn read(
        &mut self,
        chunk: &[u8],
        promised: PromisedIds,
        interrupt: Interrupt<'_>,
        mut take: impl FnMut(&PlaceValues<'_, '_>),
    ) -> Result<(), Interrupted> {
        self.templates.clear();
        let [names, arena] = &mut self.arenas;
        names.reset();
        let names = Names::new(chunk, names);
        let (mut walk, _) = RecordWalk::new(chunk, promised, false);
        while let Some(item) = walk.next(chunk) {
            interrupt.check()?;
            let Ok(found) = item else { continue };
            if self.templates.are_many() {
                self.templates.clear();
            }
            let reader = RecordReader::new(&self.scan, chunk, &names, arena, interrupt);
            let mut records = RecordGroup::new(&self.scan.projection, 1, arena);
            reader.read_event(&mut self.templates, &mut records, found.record.binxml());
            if !records.current().has_system(&self.templates) {
                reader.read_children(&mut self.templates, &mut records);
            }
            let parts = records.current();
            if !parts.is_unread() {
                take(&PlaceValues(parts.places(&self.templates)));
            }
            drop(records);
            arena.reset();
        }
        Ok(())
    }
}

impl PlaceValues<'_, '_> {
    /// Appends the text of the column with this index to a key that tells values apart.
    pub fn push_key(&self, column: usize, key: &mut Vec<u8>) {
        push_key(key, self.0.get(PlaceId(column)), |value, key| value.push_text(key));
    }

    /// The text of the column with this index. `None` if it is longer than 1 MiB.
    pub fn text(&self, column: usize) -> Option<Box<str>> {
        self.0.get(PlaceId(column))?.text().map(String::into_boxed_str)
    }

    /// The number of the column with this index.
    pub fn number(&self, column: usize) -> Option<u64> {
        self.0.get(PlaceId(column))?.number()
    }
}
