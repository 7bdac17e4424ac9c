//! Tests of the rows of logs. One program, so that the libraries are linked once; tests that measure memory are their own.

#[path = "../common/mod.rs"]
mod common;

mod bad_input;
mod copied;
mod events;
mod extra;
mod frames;
mod golden;
mod messages;
mod paths;
mod recovery;
mod pseudonyms;
mod redacted;
mod repeated_values;
mod several;
mod sigma;
mod spelled_out;
