//! The builder of the column `correlation`: for each row that reports a burst, its times, count, values and records.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, ListBuilder, StringBuilder, TimestampNanosecondBuilder, UInt64Builder};
use arrow_array::{ArrayRef, ListArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::ArrowError;

use crate::builders::FindingBuilder;
use crate::fields::{burst_fields, burst_record_field, burst_record_fields};
use crate::findings::Finding;
use crate::rule_column::RuleColumn;
use crate::rules::Rules;

#[derive(Debug)]
pub(crate) struct BurstBuilder {
    rules: Arc<Rules>,
    first: TimestampNanosecondBuilder,
    last: TimestampNanosecondBuilder,
    count: UInt64Builder,
    value: Float64Builder,
    values: ListBuilder<StringBuilder>,
    /// The records of all rows: their rules, files and IDs.
    titles: StringBuilder,
    files: StringBuilder,
    ids: UInt64Builder,
    /// 0, then the end of the records of each row.
    ends: Vec<i32>,
    nulls: NullBufferBuilder,
    bytes: usize,
}

impl BurstBuilder {
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        BurstBuilder {
            rules,
            first: TimestampNanosecondBuilder::new(),
            last: TimestampNanosecondBuilder::new(),
            count: UInt64Builder::new(),
            value: Float64Builder::new(),
            values: ListBuilder::new(StringBuilder::new()),
            titles: StringBuilder::new(),
            files: StringBuilder::new(),
            ids: UInt64Builder::new(),
            ends: vec![0],
            nulls: NullBufferBuilder::new(0),
            bytes: 0,
        }
    }
}

impl FindingBuilder for BurstBuilder {
    fn push(&mut self, finding: Option<&Finding>) -> Result<(), ArrowError> {
        let found = finding.and_then(|finding| finding.burst.as_deref());
        let burst = found.map(|found| &found.burst);
        self.first.append_option(burst.map(|burst| burst.first));
        self.last.append_option(burst.map(|burst| burst.last));
        self.count.append_option(burst.map(|burst| burst.count));
        self.value.append_option(burst.and_then(|burst| burst.value));
        for value in burst.iter().flat_map(|burst| &burst.values) {
            self.bytes += value.len();
            self.values.values().append_value(value);
        }
        self.values.append(burst.is_some());
        if let Some(found) = found {
            for (&(rule, location), file) in found.burst.records.iter().zip(&found.files) {
                let title = self.rules.text(rule as usize, RuleColumn::Title);
                self.bytes += title.map_or(0, str::len) + file.len();
                self.titles.append_option(title);
                self.files.append_value(file);
                self.ids.append_value(location.record_id);
            }
        }
        self.ends.push(self.ids.values_slice().len() as i32);
        self.nulls.append(found.is_some());
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn finish(&mut self) -> Result<ArrayRef, ArrowError> {
        self.bytes = 0;
        let records: Vec<ArrayRef> = vec![
            Arc::new(self.titles.finish()),
            Arc::new(self.files.finish()),
            Arc::new(self.ids.finish()),
        ];
        let records = StructArray::try_new(burst_record_fields(), records, None)?;
        let nulls = self.nulls.finish();
        let ends = std::mem::replace(&mut self.ends, vec![0]);
        let ends = OffsetBuffer::new(ends.into());
        let records = ListArray::try_new(burst_record_field(), ends, Arc::new(records), nulls.clone())?;
        let parts: Vec<ArrayRef> = vec![
            Arc::new(self.first.finish()),
            Arc::new(self.last.finish()),
            Arc::new(self.count.finish()),
            Arc::new(self.value.finish()),
            Arc::new(self.values.finish()),
            Arc::new(records),
        ];
        Ok(Arc::new(StructArray::try_new(burst_fields(), parts, nulls)?))
    }
}
