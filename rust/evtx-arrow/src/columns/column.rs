//! The builder of a column, of any kind.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{BooleanBuilder, PrimitiveBuilder};
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_schema::ArrowError;
use evtx_format::render::program::Language;

use super::arrays::{Build, MakeArrays};
use super::bursts::BurstBuilder;
use super::entries::EntryBuilder;
use super::fields::FieldsBuilder;
use super::files::FileRows;
use super::maps::MapBuilder;
use super::records::RecordBuilder;
use super::rules::{MatchedBuilder, RuleBuilder};
use super::text::TextBuilder;
use super::value::ValueBuilder;
use crate::plan::{Keys, Lookup, PlaceId, Projection};
use crate::schema::{Column, ColumnSource, ColumnType, Rules};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rendering {
    Event(Language),
    /// The value of its `UserData` element, as JSON.
    UserData,
}

#[derive(Debug)]
pub(crate) enum ColumnBuilder {
    RecordId(PrimitiveBuilder<UInt64Type>),
    Place(PlaceId, ValueBuilder),
    EventData(MapBuilder),
    Entry(Lookup, EntryBuilder),
    Rendered(Rendering, TextBuilder),
    Fields(FieldsBuilder),
    Error(TextBuilder),
    FileName,
    ChunkIndex(PrimitiveBuilder<UInt32Type>),
    RecordOffset(PrimitiveBuilder<UInt64Type>),
    Insertions(EntryBuilder),
    MessageSource(TextBuilder),
    Record(Box<RecordBuilder>),
    Recovered(BooleanBuilder),
    Rule(RuleBuilder),
    Matched(MatchedBuilder),
    Correlation(Box<BurstBuilder>),
}

// A column that is added must be decided here, too.
#[warn(clippy::wildcard_enum_match_arm)]
impl ColumnBuilder {
    /// The builders of columns, which plans for `projection` read. `rules` are those of a table of matches.
    pub(crate) fn of(
        columns: &[Column],
        projection: &Projection,
        keys: &Arc<Keys>,
        rules: Option<&Rules>,
    ) -> Vec<Self> {
        let builder = |column: &Column| match &column.source {
            ColumnSource::RecordId => ColumnBuilder::RecordId(PrimitiveBuilder::new()),
            ColumnSource::Place(place, field_type) => {
                let place = projection.place_id(*place).unwrap_or(PlaceId(0));
                ColumnBuilder::Place(place, ValueBuilder::new(*field_type))
            }
            ColumnSource::Entry(keys, column_type) => {
                let index = |key: &str| projection.columns.get(key).copied();
                let lookup = Lookup::Column {
                    key: index(&keys.key).unwrap_or_default(),
                    in_both: keys.in_both.as_deref().and_then(index),
                };
                ColumnBuilder::Entry(lookup, EntryBuilder::new(*column_type))
            }
            ColumnSource::EventData => ColumnBuilder::EventData(MapBuilder::new(Arc::clone(keys))),
            ColumnSource::UserData => ColumnBuilder::Rendered(Rendering::UserData, TextBuilder::new()),
            ColumnSource::Event(Language::Fields) => ColumnBuilder::Fields(FieldsBuilder::new()),
            ColumnSource::Event(language) => ColumnBuilder::Rendered(Rendering::Event(*language), TextBuilder::new()),
            ColumnSource::Error => ColumnBuilder::Error(TextBuilder::new()),
            ColumnSource::FileName => ColumnBuilder::FileName,
            ColumnSource::ChunkIndex => ColumnBuilder::ChunkIndex(PrimitiveBuilder::new()),
            ColumnSource::RecordOffset => ColumnBuilder::RecordOffset(PrimitiveBuilder::new()),
            ColumnSource::Insertions => ColumnBuilder::Insertions(EntryBuilder::new(ColumnType::TEXTS)),
            ColumnSource::MessageSource => ColumnBuilder::MessageSource(TextBuilder::new()),
            ColumnSource::Record => ColumnBuilder::Record(Box::default()),
            ColumnSource::Recovered => ColumnBuilder::Recovered(BooleanBuilder::new()),
            ColumnSource::Rule(column) => ColumnBuilder::Rule(RuleBuilder::new(rules, *column)),
            ColumnSource::Matched => ColumnBuilder::Matched(MatchedBuilder::new()),
            ColumnSource::Correlation => ColumnBuilder::Correlation(BurstBuilder::new().into()),
        };
        columns.iter().map(builder).collect()
    }

    /// How many bytes the builder holds; 0 for columns with a fixed number of bytes a row.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            ColumnBuilder::Place(_, builder) => builder.bytes(),
            ColumnBuilder::EventData(builder) => builder.bytes(),
            ColumnBuilder::Entry(_, builder) | ColumnBuilder::Insertions(builder) => builder.bytes(),
            ColumnBuilder::Rendered(_, builder) => builder.bytes(),
            ColumnBuilder::Fields(builder) => builder.bytes(),
            ColumnBuilder::Error(builder) => builder.bytes(),
            ColumnBuilder::Record(builder) => builder.bytes(),
            ColumnBuilder::Matched(builder) => builder.bytes(),
            ColumnBuilder::Correlation(builder) => builder.bytes(),
            ColumnBuilder::RecordId(_)
            | ColumnBuilder::FileName
            | ColumnBuilder::ChunkIndex(_)
            | ColumnBuilder::RecordOffset(_)
            | ColumnBuilder::MessageSource(_)
            | ColumnBuilder::Recovered(_)
            | ColumnBuilder::Rule(_) => 0,
        }
    }

    pub(crate) fn finish(&mut self, rows: usize, files: &FileRows, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            ColumnBuilder::RecordId(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Place(_, builder) => builder.finish(make)?,
            ColumnBuilder::EventData(builder) => Arc::new(builder.finish(make)?),
            ColumnBuilder::Entry(_, builder) | ColumnBuilder::Insertions(builder) => builder.finish(make)?,
            ColumnBuilder::MessageSource(builder) => builder.finish(make)?,
            ColumnBuilder::Rendered(_, builder) => builder.finish(make)?,
            ColumnBuilder::Fields(builder) => builder.finish(make)?,
            ColumnBuilder::Error(builder) => builder.finish(make)?,
            ColumnBuilder::FileName => Arc::new((make.dictionary)(files.indices(rows))?),
            ColumnBuilder::ChunkIndex(builder) => Arc::new(builder.finish()),
            ColumnBuilder::RecordOffset(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Record(builder) => builder.finish(),
            ColumnBuilder::Recovered(builder) => Arc::new(builder.finish()),
            ColumnBuilder::Rule(builder) => builder.finish(make)?,
            ColumnBuilder::Matched(builder) => builder.finish(),
            ColumnBuilder::Correlation(builder) => builder.finish()?,
        })
    }
}
