//! Recovery: records in free space and in damaged chunks, stray chunks, and the chunks and records of files that are not logs.
//!
//! A scan of a [recovering](recover) table surveys files, finds chunks and chooses records otherwise than plain reading does. See
//! `docs/architecture/live-slack-damage.md`.
#![forbid(unsafe_code)]

mod find_chunk;
mod orphans;
mod stray_search;
mod survey;
mod definitions;
mod state;
mod stray_chunks;
mod image;
mod recovery;
mod logs;
mod settings;

pub use logs::read_logs;
pub use recovery::recover;
pub use settings::{OF_RECOVERY, RecoverySettings};
