//! The values at a few paths of each record, without batches.

use evtx_format::container::records::PromisedIds;
use evtx_format::{Interrupt, Interrupted};

use super::collected::push_key;
use super::records::ChunkReader;
use crate::extra::Requirements;
use crate::plan::PathId;
use crate::record::PathValues;
use crate::scan::Scan;
use crate::schema::EventPath;

/// Reads a few paths of the records of chunks, one record at a time.
pub struct PathReader {
    scan: Scan,
    reader: ChunkReader,
}

/// The values of a record at the paths of a [`PathReader`].
pub struct ReadPaths<'p, 'r>(PathValues<'p, 'r>);

impl PathReader {
    /// A reader of different paths.
    pub fn new(paths: &[EventPath]) -> Self {
        PathReader {
            scan: Scan::with_requirements(Requirements {
                paths: paths.to_vec(),
                ..Requirements::default()
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
        mut take: impl FnMut(&ReadPaths<'_, '_>),
    ) -> Result<(), Interrupted> {
        let scan = &self.scan;
        self.reader
            .read(scan, chunk, promised, interrupt, |reader, templates, records| {
                if !records.current().has_system(templates) {
                    reader.read_children(templates, records);
                }
                let sections = records.current();
                if !sections.is_unread() {
                    take(&ReadPaths(sections.path_values(templates)));
                }
                Ok(())
            })
    }
}

impl ReadPaths<'_, '_> {
    /// Appends the text of the path with this index to a key that tells values apart.
    pub fn push_key(&self, path: usize, key: &mut Vec<u8>) {
        push_key(key, self.0.get(PathId(path)), |value, key| value.push_text(key));
    }

    /// The text of the path with this index. `None` if it is longer than 1 MiB.
    pub fn text(&self, path: usize) -> Option<Box<str>> {
        self.0.get(PathId(path))?.text().map(String::into_boxed_str)
    }

    /// The number of the path with this index.
    pub fn number(&self, path: usize) -> Option<u64> {
        self.0.get(PathId(path))?.number()
    }
}
