//! The integration tests of the crate in one program, so that it is linked once and runs them side by side.

mod common;
mod corpus;
mod correlated;
mod correlations;
mod damaged;
mod engine;
mod generated;
mod plain;
mod reference;
mod semantics;
