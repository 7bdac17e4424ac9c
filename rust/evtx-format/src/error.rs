//! The errors of the format: what is wrong in a chunk, and at which offset.

use std::fmt;

/// A result whose error is the format's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Something that the format does not allow, and its offset in the chunk.
///
/// `Display` writes what is wrong, without the offset. The caller adds the place, because only the caller knows the
/// file and the index of the chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error {
    /// Offset in the chunk, in bytes.
    pub offset: u32,
    /// What is wrong there.
    pub kind: ErrorKind,
}

impl Error {
    /// An error at a chunk offset, in bytes. A chunk has 64 KiB, so an offset past `u32::MAX` comes from a crafted
    /// file; it becomes `u32::MAX`.
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

/// What is wrong. `Display` writes a sentence for the person who reads the `error` column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A structure runs past the end of the bytes that hold it.
    #[error("{what} needs {need} bytes, but only {have} are left")]
    Truncated {
        /// The name of the structure.
        what: &'static str,
        /// Bytes that the structure takes.
        need: usize,
        /// Bytes that are left.
        have: usize,
    },
    /// The chunk does not start with `ElfChnk\0`. Holds the bytes that stand there.
    #[error("the chunk starts with \"{}\" in place of \"ElfChnk\\0\"", .0.escape_ascii())]
    ChunkMagic([u8; 8]),
    /// The file ends inside the chunk.
    #[error("the chunk is cut short: {have} of 65536 bytes are there")]
    ChunkCutShort {
        /// Bytes of the chunk that the file has.
        have: usize,
    },
    /// The file has fewer chunks than its header lists.
    #[error("the file header lists {listed} chunks, but the file ends after {have}: it was cut short")]
    FileCutShort {
        /// Chunks, by the file header.
        listed: u64,
        /// Chunks that the file has room for.
        have: u64,
    },
    /// The free space offset in the chunk header lies in the header or behind the chunk. Holds the offset.
    #[error("the chunk header says that its free space starts at offset {0}, but it has to be 512 to 65536")]
    FreeSpaceOffset(u32),
    /// A stored CRC32 does not match the bytes that it covers.
    #[error("the {what} checksum is {stored:#010x}, but its bytes give {computed:#010x}")]
    Checksum {
        /// What the checksum covers.
        what: &'static str,
        /// The checksum that the file stores.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// No record starts where one should. Holds the four bytes that stand there.
    #[error("no record starts here: found \"{}\" in place of \"**\\0\\0\"", .0.escape_ascii())]
    RecordMagic([u8; 4]),
    /// The size of a record is smaller than a record's frame, or runs past the room that there is.
    #[error("the record claims a size of {size} bytes, which cannot be right: {room} bytes are left")]
    RecordSize {
        /// The stored size in bytes.
        size: u32,
        /// Bytes from the record to the end of the chunk, or to the next record if only the header of this one is left.
        room: usize,
    },
    /// The stored size of a record does not lead to the place where the record ends.
    #[error("the record claims a size of {claimed} bytes, but ends after {actual}")]
    RecordSpan {
        /// The stored size in bytes.
        claimed: u32,
        /// Bytes from the record to the next record, or to the free space.
        actual: u32,
    },
    /// The records end before the last one that the chunk header lists.
    #[error("the records end here, but the chunk header says that the last one has ID {id}")]
    LastRecord {
        /// The ID of the last record, from the chunk header.
        id: u64,
    },
    /// The record IDs in the chunk header are not those of the records.
    #[error(
        "the chunk header says that its records have the IDs {} to {}, but they have {} to {}",
        .stored.0, .stored.1, .found.0, .found.1
    )]
    RecordIds {
        /// The IDs of the first and the last record, from the chunk header.
        stored: (u64, u64),
        /// The IDs of the first and the last record in the chunk.
        found: (u64, u64),
    },
    /// Bytes of a record or of a stream come after its end, and nothing reads them.
    #[error("{unread} bytes come after the end of the {what}, and nothing reads them")]
    UnreadBytes {
        /// What has ended: the event of a record, or a nested stream.
        what: &'static str,
        /// How many bytes follow.
        unread: usize,
    },
    /// A record holds no event.
    #[error("the record holds no event")]
    NoEvent,
    /// A byte is not a BinXML token. Holds the byte.
    #[error("{0:#04x} is no BinXML token")]
    Token(u8),
    /// A byte does not name a value type. Holds the byte.
    #[error("{0:#04x} is no BinXML value type")]
    ValueType(u8),
    /// A value has a type without a text form. Holds the byte of the type.
    #[error("values of type {0:#04x} cannot be rendered")]
    UnsupportedValue(u8),
    /// The size of a value does not fit its type.
    #[error("a value of type {value_type:#04x} does not fit its size of {size} bytes")]
    ValueSize {
        /// The byte of the type.
        value_type: u8,
        /// The size in bytes, from the value descriptor.
        size: usize,
    },
    /// The values of a value table run past the end of the record.
    #[error("the value table claims {claimed} bytes of values, but the record has room for {room}")]
    ValueTable {
        /// The sum of the sizes in the value descriptors, in bytes.
        claimed: usize,
        /// Bytes from the end of the value descriptors to the end of the record.
        room: usize,
    },
    /// The stored hash of a name is not the hash of its units.
    #[error("a name does not match its hash: it was damaged or overwritten")]
    NameHash,
    /// A template instance names one template, but refers to the definition of another.
    #[error("the record is an instance of template {named:08x}, but refers to the definition of template {found:08x}")]
    TemplateId {
        /// The template ID in the instance.
        named: u32,
        /// The template ID of the definition.
        found: u32,
    },
    /// A substitution stands where no value table fills it.
    #[error("a substitution stands outside of a template")]
    SubstitutionOutsideTemplate,
    /// A template definition holds a template instance.
    #[error("a template definition holds a template instance")]
    InstanceInDefinition,
    /// An attribute holds a BinXML value or a template instance.
    #[error("an attribute holds an element")]
    ElementInAttribute,
    /// The tokens do not form a tree. Holds the reason.
    #[error("the BinXML tokens do not form a tree: {0}")]
    Structure(&'static str),
    /// A record of an earlier use of the chunk stands where the next record should start.
    #[error("a record of an earlier use of the chunk stands where the next record should start")]
    LeftoverRecord,
    /// A template definition has no root element, or more than one. Holds how many it has.
    #[error("the template definition has {0} root elements, but has to have one")]
    DefinitionRoots(usize),
    /// Streams are nested more than [`MAX_NESTING`](crate::limits::MAX_NESTING) levels deep.
    #[error("BinXML is nested more than {} levels deep", crate::limits::MAX_NESTING)]
    Nesting,
    /// More than [`MAX_OPEN_ELEMENTS`](crate::limits::MAX_OPEN_ELEMENTS) elements are open at once.
    #[error("elements are nested more than {} levels deep", crate::limits::MAX_OPEN_ELEMENTS)]
    OpenElements,
    /// The record expands to more nodes than it may have: [`MAX_NODES`](crate::limits::MAX_NODES), fewer if it is
    /// small.
    #[error("the record expands to too many nodes")]
    Nodes,
    /// The templates of one record take more memory than those of any real log.
    #[error("the record's templates take too much memory")]
    Templates,
    /// The names take more than [`MAX_NAMES`](crate::limits::MAX_NAMES) bytes.
    #[error("the record's names take more than {} MiB", crate::limits::MAX_NAMES >> 20)]
    Names,
    /// The text of the record takes more than [`MAX_TEXT`](crate::limits::MAX_TEXT) bytes.
    #[error("the record's text exceeds {} MiB", crate::limits::MAX_TEXT >> 20)]
    Text,
}
