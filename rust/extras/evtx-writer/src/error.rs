//! The error of an event that a log cannot hold.

/// Why an event cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The record does not fit an empty chunk, together with its names and template definitions.
    #[error("the event does not fit a chunk of 64 KiB")]
    RecordSize,
    /// A value has more bytes than a value descriptor can give, whose size is a u16. Holds the size in bytes.
    #[error("a value of {0} bytes is longer than the 65535 that a value table can hold")]
    ValueSize(usize),
    /// A record that is copied is damaged. Holds an offset in the chunk or record it is copied from, in bytes.
    #[error("at offset {offset}: {what}")]
    Damaged {
        /// The offset.
        offset: usize,
        /// What is wrong, or what ends too early.
        what: &'static str,
    },
    /// A record has something that cannot be replaced, or cannot be read. Holds what it is, and why.
    #[error("{0}")]
    NotEdited(Box<str>),
}
