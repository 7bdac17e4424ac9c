//! The values at a few places of each record, without batches.

use evtx_format::container::records::PromisedIds;
use evtx_format::{Interrupt, Interrupted};

use super::collected::push_key;
use super::records::ChunkReader;
use crate::extra::Needs;
use crate::plan::PlaceId;
use crate::record::Places;
use crate::scan::Scan;
use crate::schema::Place;

/// Reads a few places of the records of chunks, one record at a time.
pub struct PlaceReader {
    scan: Scan,
    reader: ChunkReader,
}

/// The values of a record at the places of a [`PlaceReader`].
pub struct PlaceValues<'p, 'r>(Places<'p, 'r>);

impl PlaceReader {
    /// A reader of different places.
    pub fn new(places: &[Place]) -> Self {
        PlaceReader {
            scan: Scan::of_needs(Needs {
                places: places.to_vec(),
                ..Needs::default()
            }),
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
    /// Appends the text of the place with this index to a key that tells values apart.
    pub fn push_key(&self, place: usize, key: &mut Vec<u8>) {
        push_key(key, self.0.get(PlaceId(place)), |value, key| value.push_text(key));
    }

    /// The text of the place with this index. `None` if it is longer than 1 MiB.
    pub fn text(&self, place: usize) -> Option<Box<str>> {
        self.0.get(PlaceId(place))?.text().map(String::into_boxed_str)
    }

    /// The number of the place with this index.
    pub fn number(&self, place: usize) -> Option<u64> {
        self.0.get(PlaceId(place))?.number()
    }
}
