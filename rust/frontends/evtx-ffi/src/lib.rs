//! The C ABI of `evtx-scan` and `evtx-arrow`, for the DuckDB extension.
//!
//! - A function that can fail returns null or an [`EvtxError`], which the caller frees with [`evtx_error_free`]. It
//!   writes its result to `out` only if it succeeds.
//! - Every function catches panics (by `entry`, `produce` or `release`). A panic becomes an error if the function can
//!   return one.
//! - Only functions that take an [`EvtxStorage`] call back into the caller.
//!
//! Calls from Rust, by the other extension, use no text or slice of the C ABI ([`EvtxText`], [`EvtxSlice`]).
//!
//! The signatures say what the caller must pass: `Option<&T>` is a pointer to a valid `T` or null, `Option<&mut T>`
//! also one that nobody else uses during the call, [`EvtxOwned`] an object that the function takes over,
//! [`EvtxSlice`] the readable elements of a range. What `out` points to is initialised; the caller sets it to zero. A
//! null pointer becomes an error if the object is required.

mod boundary;
mod values;
mod storage;
mod vectors;
mod report;
mod lists;
mod macros;
mod arguments;
mod paths;
mod scalar;
mod rows;
mod casts;
mod answers;
mod places;
mod zones;
mod logons;
mod names;
mod facts;
mod roles;
mod decoded;
mod records;
mod contents;
mod matching;
mod scalars;
mod filter;
mod planned;
mod call;
mod scan;
mod definitions;
mod written;
mod export;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

pub use arguments::*;
pub use boundary::*;
pub use call::*;
pub use casts::*;
pub use definitions::*;
pub use export::*;
pub use filter::*;
pub use macros::*;
pub use paths::*;
pub use report::duckdb_type;
pub use scalar::*;
pub use scalars::*;
pub use scan::*;
pub use storage::*;
pub use values::*;
pub use vectors::*;
