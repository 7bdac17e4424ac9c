//! The column of whole records.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::BinaryBuilder;
use evtx_format::container::record::Record;
use evtx_writer::Cutter;

/// Builds Binary values: records that stand alone, as [`Cutter::cut`] makes them. NULL for one that is damaged.
#[derive(Debug, Default)]
pub(crate) struct RecordBuilder {
    records: BinaryBuilder,
    cutter: Cutter,
    bytes: usize,
}

impl RecordBuilder {
    /// Appends the records at some offsets of a chunk, NULL for `None`.
    pub(crate) fn extend(&mut self, chunk: &[u8], offsets: impl Iterator<Item = Option<u32>>) {
        self.cutter.begin_chunk();
        for offset in offsets {
            let record = offset.and_then(|offset| Record::read(chunk, offset as usize).ok());
            let cut = record.and_then(|record| {
                let cut = self.cutter.cut(chunk, record.id, record.written, record.binxml());
                cut.ok()
            });
            self.bytes += cut.map_or(0, <[u8]>::len);
            self.records.append_option(cut);
        }
    }

    pub(crate) fn push_null(&mut self) {
        self.records.append_null();
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn finish(&mut self) -> ArrayRef {
        self.bytes = 0;
        Arc::new(self.records.finish())
    }
}
