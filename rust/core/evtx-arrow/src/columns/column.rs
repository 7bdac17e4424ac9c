//! The builder of a column, of any kind.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::ArrowError;
use evtx_format::render::program::Language;

use super::entries::EntryBuilder;
use super::fields::FieldsBuilder;
use super::files::FileRows;
use super::maps::MapBuilder;
use super::text::TextBuilder;
use super::value::ValueBuilder;
use crate::arrays::{Build, MakeArrays};
use crate::extra::{ExtraBuilder, ExtraColumn, Requirements, ScanLayout};
use crate::plan::{Keys, Lookup, PathId};
use crate::schema::{ColumnType, FieldType, HeaderValue};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rendering {
    Event(Language),
    /// The value of its `UserData` element, as JSON.
    UserData,
}

/// A column of a scan, and what is read for it.
#[derive(Debug)]
pub(crate) enum ReadColumn {
    Header(HeaderValue),
    Path(PathId, FieldType),
    Entry(Lookup, ColumnType),
    EventData,
    UserData,
    Event(Language),
    Error,
    Extra(Arc<dyn ExtraColumn>),
}

impl ReadColumn {
    /// The builder of the column. `keys` are the keys of `event_data`.
    pub(crate) fn builder(&self, layout: &ScanLayout<'_>, keys: &Arc<Keys>) -> ColumnBuilder {
        match self {
            ReadColumn::Header(HeaderValue::FileName) => ColumnBuilder::FileName,
            ReadColumn::Header(value) => ColumnBuilder::Header(*value, ValueBuilder::new(value.field_type())),
            ReadColumn::Path(path, field_type) => ColumnBuilder::Path(*path, ValueBuilder::new(*field_type)),
            ReadColumn::Entry(lookup, column_type) => ColumnBuilder::Entry(*lookup, EntryBuilder::new(*column_type)),
            ReadColumn::EventData => ColumnBuilder::EventData(MapBuilder::new(Arc::clone(keys))),
            ReadColumn::UserData => ColumnBuilder::Rendered(Rendering::UserData, TextBuilder::new()),
            ReadColumn::Event(Language::Fields) => ColumnBuilder::Fields(FieldsBuilder::new()),
            ReadColumn::Event(language) => ColumnBuilder::Rendered(Rendering::Event(*language), TextBuilder::new()),
            ReadColumn::Error => ColumnBuilder::Error(TextBuilder::new()),
            ReadColumn::Extra(column) => ColumnBuilder::Extra(column.builder(layout), column.requirements()),
        }
    }
}

#[derive(Debug)]
pub(crate) enum ColumnBuilder {
    /// Not of [`HeaderValue::FileName`].
    Header(HeaderValue, ValueBuilder),
    Path(PathId, ValueBuilder),
    EventData(MapBuilder),
    Entry(Lookup, EntryBuilder),
    Rendered(Rendering, TextBuilder),
    Fields(FieldsBuilder),
    Error(TextBuilder),
    FileName,
    Extra(Box<dyn ExtraBuilder>, Requirements),
}

// A column that is added must be decided here, too.
#[warn(clippy::wildcard_enum_match_arm)]
impl ColumnBuilder {
    /// How many bytes the builder holds; 0 for columns with a fixed number of bytes a row.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            ColumnBuilder::Path(_, builder) => builder.bytes(),
            ColumnBuilder::EventData(builder) => builder.bytes(),
            ColumnBuilder::Entry(_, builder) => builder.bytes(),
            ColumnBuilder::Rendered(_, builder) => builder.bytes(),
            ColumnBuilder::Fields(builder) => builder.bytes(),
            ColumnBuilder::Error(builder) => builder.bytes(),
            ColumnBuilder::Extra(builder, _) => builder.bytes(),
            ColumnBuilder::Header(..) | ColumnBuilder::FileName => 0,
        }
    }

    pub(crate) fn finish(&mut self, rows: usize, files: &FileRows, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            ColumnBuilder::Header(_, builder) | ColumnBuilder::Path(_, builder) => builder.finish(make)?,
            ColumnBuilder::EventData(builder) => Arc::new(builder.finish(make)?),
            ColumnBuilder::Entry(_, builder) => builder.finish(make)?,
            ColumnBuilder::Rendered(_, builder) => builder.finish(make)?,
            ColumnBuilder::Fields(builder) => builder.finish(make)?,
            ColumnBuilder::Error(builder) => builder.finish(make)?,
            ColumnBuilder::FileName => Arc::new((make.dictionary)(files.indices(rows))?),
            ColumnBuilder::Extra(builder, _) => builder.finish(make)?,
        })
    }
}
