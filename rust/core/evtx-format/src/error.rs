//! The errors of the format: what is wrong in a chunk, and at which offset.

use std::fmt;

use crate::limits;

/// A result whose error is the format's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Something that the format does not allow, and its offset in the chunk.
///
/// `Display` writes the kind only. The caller adds the place, because it knows the file and the index of the chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error {
    /// Offset in the chunk, in bytes.
    pub offset: u32,
    /// What is wrong there.
    pub kind: ErrorKind,
}

impl Error {
    /// An error at a chunk offset. An offset past `u32::MAX`, as of a crafted file, becomes `u32::MAX`.
    pub fn new(offset: usize, kind: ErrorKind) -> Self {
        Error {
            offset: u32::try_from(offset).unwrap_or(u32::MAX),
            kind,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl std::error::Error for Error {}

/// What is wrong. `Display` writes a sentence for the `error` column. Sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say it
pub enum ErrorKind {
    #[error("{what} needs {need} bytes, but only {have} are left")]
    Truncated {
        what: &'static str,
        need: usize,
        have: usize,
    },
    #[error("the chunk starts with \"{}\" in place of \"ElfChnk\\0\"", .0.escape_ascii())]
    ChunkMagic([u8; 8]),
    #[error("the chunk is cut short: {have} of 65536 bytes are there")]
    ChunkCutShort { have: usize },
    #[error("the file header lists {listed} chunks, but the file ends after {have}: it was cut short")]
    FileCutShort { listed: u64, have: u64 },
    #[error("the chunk header says that its free space starts at offset {0}, but it has to be 512 to 65536")]
    FreeSpaceOffset(u32),
    /// A stored CRC32 does not match the bytes that it covers.
    #[error("the {what} checksum is {stored:#010x}, but its bytes give {computed:#010x}")]
    Checksum {
        what: &'static str,
        stored: u32,
        computed: u32,
    },
    #[error("no record starts here: found \"{}\" in place of \"**\\0\\0\"", .0.escape_ascii())]
    RecordMagic([u8; 4]),
    /// `available` is the distance to the end of the chunk, or to the next record if only the header of this one is
    /// left.
    #[error("the record claims a size of {size} bytes, which cannot be right: {available} bytes are left")]
    RecordSize { size: u32, available: usize },
    /// `actual` is the distance to the next record or to the free space.
    #[error("the record claims a size of {claimed} bytes, but ends after {actual}")]
    RecordSpan { claimed: u32, actual: u32 },
    #[error("the records end here, but the chunk header says that the last one has ID {id}")]
    LastRecord { id: u64 },
    /// Each pair is the ID of the first record and that of the last.
    #[error(
        "the chunk header says that its records have the IDs {} to {}, but they have {} to {}",
        .stored.0, .stored.1, .found.0, .found.1
    )]
    RecordIds { stored: (u64, u64), found: (u64, u64) },
    /// `what` has ended: the event of a record, or a nested stream.
    #[error("{unread} bytes come after the end of the {what}, and nothing reads them")]
    UnreadBytes { what: &'static str, unread: usize },
    #[error("the record holds no event")]
    NoEvent,
    #[error("{0:#04x} is no BinXML token")]
    Token(u8),
    #[error("{0:#04x} is no BinXML value type")]
    ValueType(u8),
    #[error("values of type {0:#04x} cannot be rendered")]
    UnsupportedValue(u8),
    #[error("a value of type {value_type:#04x} does not fit its size of {size} bytes")]
    ValueSize { value_type: u8, size: usize },
    /// `available` is the distance from the end of the value descriptors to the end of the record.
    #[error("the value table claims {claimed} bytes of values, but the record has room for {available}")]
    ValueTable { claimed: usize, available: usize },
    #[error("a name does not match its hash: it was damaged or overwritten")]
    NameHash,
    #[error("unexpected BinXML token, which is ignored")]
    Misplaced,
    #[error("the record is an instance of template {named:08x}, but refers to the definition of template {found:08x}")]
    TemplateId { named: u32, found: u32 },
    /// Of an orphan: no other chunk has the definition, or several have different ones.
    #[error("a template definition of the record is lost")]
    LostDefinition,
    /// Of an orphan.
    #[error("a template definition of the record is lost, and one with the same ID was used")]
    RestoredDefinition,
    /// Of an orphan, which can be two halves of records.
    #[error(
        "the event has another record ID or time than the record, as if it was forwarded, or another record overwritten"
    )]
    OtherEvent,
    /// Of a log that was made of another file.
    #[error("the event may be text, not an event")]
    Doubted,
    /// No value table fills the substitution.
    #[error("a substitution stands outside of a template")]
    SubstitutionOutsideTemplate,
    #[error("a template definition holds a template instance")]
    InstanceInDefinition,
    /// The element comes from a BinXML value or a template instance.
    #[error("an attribute holds an element")]
    ElementInAttribute,
    #[error("the BinXML tokens do not form a tree: {0}")]
    Structure(&'static str),
    #[error("a record of an earlier use of the chunk stands where the next record should start")]
    LeftoverRecord,
    #[error("the template definition has {0} root elements, but has to have one")]
    DefinitionRoots(usize),
    #[error("BinXML is nested more than {} levels deep", limits::MAX_NESTING)]
    Nesting,
    /// The elements of all nested streams count together.
    #[error("elements are nested more than {} levels deep", limits::MAX_OPEN_ELEMENTS)]
    OpenElements,
    /// The limit is [`MAX_NODES`](crate::MAX_NODES), lower if the record is small.
    #[error("the record expands to too many nodes")]
    Nodes,
    /// The templates of one record take more memory than those of any real log.
    #[error("the record's templates take too much memory")]
    Templates,
    #[error("the record's names take more than {} MiB", limits::MAX_NAMES >> 20)]
    Names,
    #[error("the record's text exceeds {} MiB", limits::MAX_TEXT >> 20)]
    Text,
}

impl ErrorKind {
    /// Whether all of the record could be read nevertheless.
    pub fn is_readable(self) -> bool {
        matches!(
            self,
            ErrorKind::Misplaced | ErrorKind::RestoredDefinition | ErrorKind::OtherEvent | ErrorKind::Doubted
        )
    }
}
