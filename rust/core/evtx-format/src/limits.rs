//! Limits on the work and memory that a record can cause.

/// The most BinXML streams that may be nested: values that hold BinXML, and instances in those. Windows nests one or two.
/// The limit bounds the recursion on crafted input.
pub const MAX_NESTING: usize = 16;

/// The most elements that may be open at once, over all nested streams of a record.
pub const MAX_OPEN_ELEMENTS: usize = 96;

/// The most nodes (elements, attributes, pieces of content) that one record may expand to. The limit of a small record
/// is lower: 4,096 nodes, plus eight for each byte of its BinXML. A chunk has space for some ten thousand nodes, but
/// several substitutions can name one value, so a small crafted record could otherwise grow exponentially.
pub const MAX_NODES: usize = 1 << 16;

/// The most bytes of text that one record may give in one column.
pub const MAX_TEXT: usize = 16 << 20;

/// The most bytes of text that names may take: all names of a chunk together, or the keys of one map. A chunk has space
/// for 64 KiB of names, but names can overlap, and many references can name one name.
pub const MAX_NAMES: usize = 1 << 20;
