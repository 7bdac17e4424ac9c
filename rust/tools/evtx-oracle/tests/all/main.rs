//! What the reader and the rules say of logs against what the crate `evtx` does: a program of its own, since that crate takes long to build.

#[path = "../../../../core/evtx-arrow/tests/common/mod.rs"]
mod common;

mod agreement;
mod columns;
mod differential;
mod logs;
mod matches;
mod messages;
mod oracle;
mod recovered;
