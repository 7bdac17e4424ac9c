//! What bounds the work that a record can cause.

/// Most BinXML streams nested in each other (values that hold BinXML, instances in them). Windows nests one
/// or two; the cap bounds recursion on crafted input.
pub const MAX_NESTING: usize = 16;

/// Most elements open at once, over all the nested streams of a record.
pub const MAX_OPEN_ELEMENTS: usize = 96;

/// Most nodes (elements, attributes, pieces of content) that one record may expand to. A small one has fewer: 4096, and
/// eight for each of its bytes. A chunk has room for some ten thousand, but values are shared by the substitutions that
/// name them, so a small crafted record could otherwise grow exponentially.
pub const MAX_NODES: usize = 1 << 16;

/// Most bytes of rendered text that one record may give in one column.
pub const MAX_TEXT: usize = 16 << 20;

/// Most bytes of text that names may take: those of a chunk together, and the keys of one map. A chunk has room for 64
/// KiB of them, but the bytes of one name can be part of another, and a name can be referred to many times.
pub const MAX_NAMES: usize = 1 << 20;
