//! The builder of a batch: it appends rows to the builders of the columns.

use std::any::Any;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::ArrowError;
use bumpalo::collections::Vec as BumpVec;
use evtx_format::render::program::{Language, SystemTexts};
use evtx_format::{Error, printable};

use super::location::ChunkLocation;
use crate::arrays::MakeArrays;
use crate::columns::{ColumnBuilder, FileRows, LONG, Rendering, SystemRows, ValueBuilder};
use crate::extra::{GroupRows, Shared};
use crate::filter::HeaderValues;
use crate::read::{RecordReader, render};
use crate::record::{ChunkTemplates, KeptRecord, RecordGroup, RecordView};
use crate::scan::Scan;
use crate::schema::HeaderValue;

/// The most rows in a batch, so that engines with vectors of this size take it as one.
const BATCH_ROWS: usize = 2048;

/// How many bytes of text, entries and keys end a batch early.
const BATCH_BYTES: usize = 8 << 20;

/// A row that says why no record could be read.
pub(crate) struct BareRow<'x> {
    pub(crate) header: HeaderValues<'x>,
    /// When the record was written, in nanoseconds since 1970-01-01 UTC, if its header can be read.
    pub(crate) written: Option<i64>,
    pub(crate) error: String,
}

#[derive(Debug)]
pub(crate) struct BatchBuilder {
    scan: Arc<Scan>,
    /// The columns that are not in `system`, in order.
    builders: Vec<ColumnBuilder>,
    system: SystemRows,
    rendered: Vec<usize>,
    system_texts: SystemTexts,
    files: FileRows,
    rows: usize,
    /// Whether one of them has a record without damage.
    has_records: bool,
    pub(crate) make_arrays: MakeArrays,
}

impl BatchBuilder {
    pub(crate) fn new(scan: Arc<Scan>) -> Self {
        let shared = Shared::default();
        let layout = scan.layout(&shared);
        let columns = scan.columns.iter();
        let mut builders: Vec<_> = columns
            .map(|column| column.builder(&layout, &scan.plans.keys))
            .collect();
        let system = SystemRows::take(&scan.projection, &mut builders);
        let rendered = builders
            .iter()
            .enumerate()
            .filter(|(_, builder)| matches!(builder, ColumnBuilder::Rendered(..) | ColumnBuilder::Fields(_)));
        BatchBuilder {
            rendered: rendered.map(|(i, _)| i).collect(),
            builders,
            system,
            system_texts: SystemTexts::default(),
            scan,
            files: FileRows::default(),
            rows: 0,
            has_records: false,
            make_arrays: MakeArrays::CHECKED,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Whether a row has a record without damage.
    pub(crate) fn has_records(&self) -> bool {
        self.has_records
    }

    #[inline]
    pub(crate) fn remaining_capacity(&self) -> usize {
        BATCH_ROWS.saturating_sub(self.rows)
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        let texts = self.builders.iter().map(ColumnBuilder::bytes);
        self.remaining_capacity() == 0 || texts.sum::<usize>() + self.system.text() >= BATCH_BYTES
    }

    /// Whether a column of rendered texts alone has enough bytes to end the batch.
    #[inline]
    pub(crate) fn has_long_texts(&self) -> bool {
        let mut rendered = self.rendered.iter();
        rendered.any(|&text| self.builders[text].bytes() >= BATCH_BYTES)
    }

    pub(crate) fn start_file(&mut self, filename: &Arc<str>) {
        self.files.begin(filename, self.rows);
    }

    /// Begins a chunk, or new templates of the same chunk. The indices of templates mean other templates from here on.
    pub(crate) fn start_chunk(&mut self) {
        for builder in &mut self.builders {
            if let ColumnBuilder::EventData(builder) = builder {
                builder.start_chunk();
            }
        }
    }

    pub(crate) fn finish(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let rows = std::mem::take(&mut self.rows);
        self.has_records = false;
        if rows == 0 {
            return Ok(None);
        }
        let columns = self
            .builders
            .iter_mut()
            .map(|builder| builder.finish(rows, &self.files, self.make_arrays));
        let mut columns = columns.collect::<Result<Vec<_>, _>>()?;
        self.files.end();
        for (index, array) in self.system.finish(self.make_arrays)? {
            columns.insert(index, array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(Some(RecordBatch::try_new_with_options(
            self.scan.schema(),
            columns,
            &options,
        )?))
    }

    /// Renders the current record into the columns of rendered texts.
    ///
    /// # Errors
    /// The error of the first text that cannot be rendered. Such a text is NULL.
    #[inline]
    pub(crate) fn push_texts<'r, 'c: 'r>(
        &mut self,
        reader: &RecordReader<'r, 'c>,
        templates: &ChunkTemplates,
        group: &RecordGroup<'r>,
    ) -> Result<(), Error> {
        let (mut outcome, mut is_interrupted) = (Ok(()), false);
        for &index in &self.rendered {
            let builder = &mut self.builders[index];
            let rendering = match builder {
                ColumnBuilder::Rendered(rendering, _) => *rendering,
                _ => Rendering::Event(Language::Fields),
            };
            let is_left_out = is_interrupted || rendering == Rendering::UserData && !group.may_have_user_data;
            let mut written = 0;
            let write = |out: &mut Vec<u8>| {
                if is_left_out {
                    return Ok(false);
                }
                let start = out.len();
                let system = Some(&mut self.system_texts);
                let pushed = render(reader, templates, system, group.current(), rendering, out);
                written = out.len() - start;
                pushed
            };
            let pushed = match builder {
                ColumnBuilder::Rendered(_, builder) if is_left_out => {
                    builder.push_null();
                    continue;
                }
                ColumnBuilder::Rendered(_, builder) => builder.try_push(write),
                ColumnBuilder::Fields(builder) => builder.try_push(write),
                _ => Ok(()),
            };
            // A text can take long. After an interrupt the rows are not used, so the other texts can be NULL.
            is_interrupted |= written > LONG && reader.interrupt.check().is_err();
            if pushed.is_err() {
                outcome = outcome.and(pushed);
            }
        }
        outcome
    }

    /// Appends the last texts again, for another row of the same record.
    pub(crate) fn push_texts_again(&mut self) {
        for &index in &self.rendered {
            match &mut self.builders[index] {
                ColumnBuilder::Rendered(_, builder) => builder.push_again(builder.len() - 1..builder.len()),
                ColumnBuilder::Fields(builder) => builder.push_last_again(),
                _ => {}
            }
        }
    }

    /// Appends a group of records to the other columns, a column at a time. `beside` is what is beside the log, and
    /// `found` is what the row source has for the rows.
    pub(crate) fn push_rows(
        &mut self,
        reader: &RecordReader<'_, '_>,
        templates: &ChunkTemplates,
        group: &RecordGroup<'_>,
        at: &ChunkLocation,
        beside: Option<&(dyn Any + Send + Sync)>,
        found: Option<&dyn Any>,
    ) -> Result<(), ArrowError> {
        let kept = group.kept();
        if kept.is_empty() {
            return Ok(());
        }
        self.has_records |= kept.iter().any(|record| !record.is_damaged);
        let BatchBuilder {
            scan, builders, system, ..
        } = self;
        let read = if scan.reads_binxml { kept } else { &[] };
        let rows = read.iter().map(|record| group.sections(record).path_values(templates));
        let rows = BumpVec::from_iter_in(rows, reader.arena);
        if !system.is_empty() {
            for row in &rows {
                system.push(row.record.event_template(templates), row)?;
            }
        }
        for builder in &mut *builders {
            match builder {
                ColumnBuilder::Header(HeaderValue::RecordId, ValueBuilder::UInt64(builder)) => {
                    kept.iter().for_each(|record| builder.append_value(record.id));
                }
                ColumnBuilder::Header(value, builder) => {
                    let header = |record: &KeptRecord| at.header(record.id, record.offset, record.recovered);
                    kept.iter()
                        .try_for_each(|record| builder.push_known(header(record).get(*value)))?;
                }
                ColumnBuilder::Path(path, builder) => {
                    let in_system = scan.projection.is_in_system(*path);
                    if group.beyond_system || in_system {
                        builder.extend(&rows, *path, in_system, |row| {
                            rows[row].record.is_unread().then_some(kept[row].written)
                        })?;
                    } else {
                        builder.push_nulls(kept.len())?;
                    }
                }
                ColumnBuilder::EventData(builder) => {
                    for row in &rows {
                        match row.record.event_data(templates) {
                            Some((event_data, section)) if event_data.has_split(section.values) => {
                                builder.push_bounded(event_data.split(section.values), reader.interrupt);
                            }
                            Some((event_data, section)) => match (&event_data.bare_entries, section.template()) {
                                (Some(bare), Some(template)) => {
                                    builder.push_bare_entries(bare, section.values, template)
                                }
                                _ => builder.push_entries(&event_data.entries, section.values, reader.interrupt),
                            },
                            None => builder.push_null(),
                        }
                    }
                }
                ColumnBuilder::Entry(..)
                | ColumnBuilder::Rendered(..)
                | ColumnBuilder::Fields(_)
                | ColumnBuilder::FileName => {}
                ColumnBuilder::Error(builder) => {
                    let texts = (0..kept.len()).map(|row| group.reported(row).map(printable));
                    texts.for_each(|text| builder.push_option(text.as_deref()));
                }
                ColumnBuilder::Extra(builder, requirements) => builder.push(&GroupRows {
                    kept,
                    rows: if requirements.reads_event() { &rows } else { &[] },
                    group,
                    templates,
                    keys: &scan.plans.keys,
                    arena: reader.arena,
                    chunk: reader.chunk,
                    beside,
                    found,
                })?,
            }
        }
        if !scan.projection.columns.is_empty() {
            for row in &rows {
                push_entries(builders, row.record, templates)?;
            }
        }
        self.rows += kept.len();
        Ok(())
    }

    pub(crate) fn push_bare(&mut self, row: &BareRow<'_>) -> Result<(), ArrowError> {
        if !self.system.is_empty() {
            self.system.push_new(None)?;
        }
        for builder in &mut self.builders {
            match builder {
                ColumnBuilder::Header(value, builder) => builder.push_known(row.header.get(*value))?,
                ColumnBuilder::Path(_, ValueBuilder::Time(builder)) => builder.append_option(row.written),
                ColumnBuilder::Path(_, builder) => builder.push(None)?,
                ColumnBuilder::EventData(builder) => builder.push_null(),
                ColumnBuilder::Entry(_, builder) => builder.push(None)?,
                ColumnBuilder::Rendered(_, builder) => builder.push_null(),
                ColumnBuilder::Fields(builder) => builder.push_null(),
                ColumnBuilder::Error(builder) => builder.push_option(Some(&printable(&row.error))),
                ColumnBuilder::FileName => {}
                ColumnBuilder::Extra(builder, _) => builder.push_bare()?,
            }
        }
        self.rows += 1;
        Ok(())
    }
}

/// Appends the columns of entries. Kept out of line, so that the loop over the other columns stays fast.
#[inline(never)]
fn push_entries(
    builders: &mut [ColumnBuilder],
    record: RecordView<'_, '_>,
    templates: &ChunkTemplates,
) -> Result<(), ArrowError> {
    let entries = record.keyed_entries(templates);
    for builder in builders {
        if let ColumnBuilder::Entry(lookup, builder) = builder {
            builder.push(entries.get(*lookup).as_ref())?;
        }
    }
    Ok(())
}
