//! The column of whole records.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::BinaryBuilder;
use arrow_schema::{ArrowError, DataType, Field};
use evtx_arrow::{ExtraBuilder, ExtraColumn, GroupRows, MakeArrays, Requirements, ScanLayout};
use evtx_format::container::record::Record;
use evtx_writer::Cutter;

/// The column `record`: the record itself, which stands alone.
#[derive(Debug)]
pub(crate) struct WholeRecord;

impl ExtraColumn for WholeRecord {
    fn field(&self, name: &str) -> Field {
        Field::new(name, DataType::Binary, true)
    }

    // A damaged event has no record.
    fn requirements(&self) -> Requirements {
        Requirements {
            whole: true,
            ..Requirements::default()
        }
    }

    fn builder(&self, _: &ScanLayout<'_>) -> Box<dyn ExtraBuilder> {
        Box::<RecordBuilder>::default()
    }
}

/// Builds Binary values: records that stand alone, as [`Cutter::cut`] makes them. NULL for one that is damaged.
#[derive(Debug, Default)]
struct RecordBuilder {
    records: BinaryBuilder,
    cutter: Cutter,
    bytes: usize,
}

impl ExtraBuilder for RecordBuilder {
    fn push(&mut self, rows: &GroupRows<'_>) -> Result<(), ArrowError> {
        let chunk = rows.chunk();
        self.cutter.begin_chunk();
        for row in 0..rows.len() {
            // A copy would hide the damage.
            let record = rows
                .valid_offset(row)
                .and_then(|offset| Record::read(chunk, offset as usize).ok());
            let cut = record.and_then(|record| {
                let cut = self.cutter.cut(chunk, record.id, record.written, record.binxml());
                cut.ok()
            });
            self.bytes += cut.map_or(0, <[u8]>::len);
            self.records.append_option(cut);
        }
        Ok(())
    }

    fn push_bare(&mut self) -> Result<(), ArrowError> {
        self.records.append_null();
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn finish(&mut self, _: MakeArrays) -> Result<ArrayRef, ArrowError> {
        self.bytes = 0;
        Ok(Arc::new(self.records.finish()))
    }
}
