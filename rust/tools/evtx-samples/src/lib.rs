//! What the samples share with tests: the writer of `.MTA` files.

mod mta;

pub use mta::MtaWriter;
