//! Builders of the columns of a batch.

mod text;
mod dictionary;
mod value;
mod entries;
mod key_dictionary;
mod maps;
mod fields;
mod files;
mod column;
mod gather;
mod system;
mod extra;

pub(crate) use column::{ColumnBuilder, ReadColumn, Rendering};
pub use extra::TextColumn;
pub(crate) use files::FileRows;
pub(crate) use maps::LONG;
pub(crate) use system::SystemRows;
pub(crate) use value::ValueBuilder;
