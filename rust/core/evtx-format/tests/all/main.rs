//! The integration tests of the crate in one program, so that it is linked once and runs them side by side.

mod elements;
mod walk;
