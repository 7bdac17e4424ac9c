//! The ways in which entries are compressed.

mod feed;
mod deflate;
mod bzip2;
mod lzma;
mod zstd;
mod method;

pub(crate) use feed::fill;
pub(crate) use method::Method;
