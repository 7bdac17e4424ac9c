//! Builders of the columns of a batch.

mod arrays;
mod text;
mod dictionary;
mod value;
mod entries;
mod key_dictionary;
mod maps;
mod fields;
mod rules;
mod bursts;
mod records;
mod files;
mod column;
mod gather;
mod system;

pub use arrays::{Indices, MakeArrays, Strings};
pub(crate) use bursts::BurstBuilder;
pub(crate) use column::{ColumnBuilder, Rendering};
pub(crate) use files::FileRows;
pub(crate) use maps::LONG;
pub(crate) use rules::MatchedBuilder;
pub(crate) use system::SystemRows;
pub(crate) use text::TextBuilder;
pub(crate) use value::ValueBuilder;
