//! The values of a few columns of each record, without batches.

use evtx_format::container::records::PromisedIds;
use evtx_format::{Interrupt, Interrupted};

use super::collected::push_key;
use super::records::ChunkReader;
use crate::plan::PlaceId;
use crate::record::Places;
use crate::scan::Scan;
use crate::schema::Options;
use crate::table::Table;

/// Reads a few columns of the records of chunks, one record at a time.
pub struct PlaceReader {
    scan: Scan,
    reader: ChunkReader,
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
            reader: ChunkReader::default(),
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
        let scan = &self.scan;
        self.reader
            .read(scan, chunk, promised, interrupt, |reader, templates, records| {
                if !records.current().has_system(templates) {
                    reader.read_children(templates, records);
                }
                let parts = records.current();
                if !parts.is_unread() {
                    take(&PlaceValues(parts.places(templates)));
                }
                Ok(())
            })
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
