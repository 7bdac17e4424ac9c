//! What can be wrong with a log, and where.

use std::fmt;

/// A result with the format's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Something that the format does not allow, and where in the chunk it stands.
///
/// `Display` gives the sentence without the place: whoever knows the file and the chunk's place in it says where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Error {
    /// Offset in the chunk, in bytes.
    pub offset: u32,
    /// What is wrong there.
    pub kind: ErrorKind,
}

impl Error {
    /// An error at a chunk offset. Chunks are 64 KiB, so larger offsets are crafted and saturate.
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

/// What is wrong, as a sentence to the person who reads the `error` column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A structure runs past the end of what holds it.
    #[error("{what} needs {need} bytes, but only {have} are left")]
    Truncated {
        /// The structure.
        what: &'static str,
        /// Bytes that it takes.
        need: usize,
        /// Bytes that are there.
        have: usize,
    },
    /// The chunk does not start with `ElfChnk`.
    #[error("the chunk starts with \"{}\" in place of \"ElfChnk\\0\"", .0.escape_ascii())]
    ChunkMagic([u8; 8]),
    /// The file ends inside of the chunk.
    #[error("the chunk is cut short: {have} of 65536 bytes are there")]
    ChunkCutShort {
        /// Bytes that are there.
        have: usize,
    },
    /// The chunk header's free space offset points outside of the chunk.
    #[error("the chunk header puts its free space at offset {0}, outside of the chunk")]
    FreeSpaceOffset(u32),
    /// A stored checksum does not match the bytes it covers.
    #[error("the {what} checksum is {stored:#010x}, but its bytes give {computed:#010x}")]
    Checksum {
        /// What the checksum covers.
        what: &'static str,
        /// As stored.
        stored: u32,
        /// As computed.
        computed: u32,
    },
    /// No record where one should start.
    #[error("no record starts here: found \"{}\" in place of \"**\\0\\0\"", .0.escape_ascii())]
    RecordMagic([u8; 4]),
    /// A record's size cannot be right.
    #[error("the record claims a size of {size} bytes, of which the chunk holds {room}")]
    RecordSize {
        /// As stored.
        size: u32,
        /// From the record to the end of the chunk.
        room: usize,
    },
    /// A record's size reaches past its end, or ends before it.
    #[error("the record claims a size of {claimed} bytes, but ends after {actual}")]
    RecordSpan {
        /// As stored.
        claimed: u32,
        /// From the record to the next, or to the free space.
        actual: u32,
    },
    /// The records end before the last one that the chunk's header knows.
    #[error("the records end here, but the chunk header says that the last one has ID {id}")]
    LastRecord {
        /// As the header has it.
        id: u64,
    },
    /// The chunk's header has other IDs than its records.
    #[error("the chunk header says that its records have the IDs {} to {}, but they have {} to {}", .stored.0, .stored.1, .found.0, .found.1)]
    RecordIds {
        /// The IDs of the first and the last record, as the header has them.
        stored: (u64, u64),
        /// Those of the first and the last record that there are.
        found: (u64, u64),
    },
    /// A record without anything in it.
    #[error("the record holds no event")]
    NoEvent,
    /// A byte that starts no BinXML token.
    #[error("{0:#04x} is no BinXML token")]
    Token(u8),
    /// A byte that names no value type.
    #[error("{0:#04x} is no BinXML value type")]
    ValueType(u8),
    /// A value type that has no text form.
    #[error("values of type {0:#04x} cannot be rendered")]
    UnsupportedValue(u8),
    /// A value's size does not fit its type.
    #[error("a value of type {value_type:#04x} has {size} bytes")]
    ValueSize {
        /// The type's byte.
        value_type: u8,
        /// The size in bytes, as its descriptor gives it.
        size: usize,
    },
    /// The value table's values do not fit the record.
    #[error("the value table claims {claimed} bytes of values, but the record has room for {room}")]
    ValueTable {
        /// The sum of the sizes of its descriptors, in bytes.
        claimed: usize,
        /// Bytes behind the descriptors.
        room: usize,
    },
    /// A name's hash does not match its units.
    #[error("a name is not what its hash says")]
    NameHash,
    /// An instance refers to the definition of another template than the one that it names.
    #[error(
        "the record is an instance of template {named:08x}, but where its definition should be is that of {found:08x}"
    )]
    TemplateId {
        /// The ID in the instance.
        named: u32,
        /// The ID of the template that is defined there.
        found: u32,
    },
    /// A substitution where there is no value table to fill it from.
    #[error("a substitution stands outside of a template")]
    SubstitutionOutsideTemplate,
    /// A template instance in a template definition.
    #[error("a template definition holds a template instance")]
    InstanceInDefinition,
    /// An element or a BinXML value in an attribute.
    #[error("an attribute holds an element")]
    ElementInAttribute,
    /// Tokens that do not add up to a tree.
    #[error("the BinXML tokens do not form a tree: {0}")]
    Structure(&'static str),
    /// A template definition without exactly one root element.
    #[error("the template definition has {0} root elements in place of one")]
    DefinitionRoots(usize),
    /// Streams nested past [`MAX_NESTING`](crate::limits::MAX_NESTING).
    #[error("BinXML is nested more than {} levels deep", crate::limits::MAX_NESTING)]
    Nesting,
    /// Elements nested past [`MAX_OPEN_ELEMENTS`](crate::limits::MAX_OPEN_ELEMENTS).
    #[error("elements are nested more than {} levels deep", crate::limits::MAX_OPEN_ELEMENTS)]
    OpenElements,
    /// A record that grows past [`MAX_NODES`](crate::limits::MAX_NODES).
    #[error("the record expands to more than {} nodes", crate::limits::MAX_NODES)]
    Nodes,
    /// Templates of one record that take more memory than those of any real log.
    #[error("the record's templates take too much memory")]
    Templates,
    /// Names that take more than [`MAX_NAMES`](crate::limits::MAX_NAMES).
    #[error("the record's names take more than {} MiB", crate::limits::MAX_NAMES >> 20)]
    Names,
    /// A record whose text grows past [`MAX_TEXT`](crate::limits::MAX_TEXT).
    #[error("the record's text exceeds {} MiB", crate::limits::MAX_TEXT >> 20)]
    Text,
}
