//! What an event can have that no log holds.

/// Why an event cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// A record must fit a chunk, with the names and definitions that it is the first to use.
    #[error("the event does not fit a chunk of 64 KiB")]
    RecordSize,
    /// A value's size is a u16.
    #[error("a value of {0} bytes is longer than the 65535 that a value table can hold")]
    ValueSize(usize),
}
