//! The C ABI of `evtx-ffi` as a static library, which the C++ extension links.
//!
//! A crate of its own, because Cargo does not optimise a static library across crates if the same crate is also a
//! library for Rust, and `evtx-duckdb-stable` uses `evtx-ffi` as one.

pub use evtx_ffi::*;
