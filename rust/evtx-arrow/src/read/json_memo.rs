//! A memo of the JSON of elements that the current record spells out. One walk both checks and writes such an element,
//! so the JSON that the check has written is kept for the column.

use std::ops::Range;

use evtx_format::MAX_TEXT;
use evtx_format::binxml::{Reader, StreamCursor};

/// The most elements that are kept. Real records have one.
const MAX_ELEMENTS: usize = 8;

/// The most bytes of text that are kept.
const MAX_KEPT: usize = 1 << 20;

/// The initial capacity of the text, in bytes.
const ROOM: usize = 16 << 10;

/// The elements of the current record that were written.
#[derive(Default)]
pub(crate) struct JsonMemo<'r> {
    text: Vec<u8>,
    elements: Vec<Written<'r>>,
}

/// An element that was written: the positions before and after it in its stream, and the range of its text.
struct Written<'r> {
    before: StreamCursor<'r>,
    after: StreamCursor<'r>,
    text: Range<usize>,
}

impl<'r> JsonMemo<'r> {
    /// Begins a record: drops the elements of the last one.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.elements.clear();
        self.text.clear();
    }

    /// Moves behind the next element of a stream, and keeps its JSON. Returns false and does not move if the element is
    /// damaged or needs a tree.
    pub(crate) fn pass(&mut self, reader: &Reader<'r, '_>, parts: &mut StreamCursor<'r>) -> bool {
        let (before, start) = (*parts, self.text.len());
        if self.text.capacity() == 0 {
            self.text.reserve(ROOM);
        }
        let is_passed = reader.push_json(parts, &mut self.text, start + MAX_TEXT);
        let text = start..self.text.len();
        if is_passed && text.end <= MAX_KEPT && self.elements.len() < MAX_ELEMENTS {
            let after = *parts;
            self.elements.push(Written { before, after, text });
        } else {
            self.text.truncate(start);
            self.text.shrink_to(MAX_KEPT);
        }
        is_passed
    }

    /// Appends the JSON value of the next element of a stream, and moves behind it. Returns false and does not move if
    /// the element is damaged or needs a tree, or if `out` would be longer than `limit` bytes.
    pub(crate) fn push(
        &self,
        reader: &Reader<'r, '_>,
        parts: &mut StreamCursor<'r>,
        out: &mut Vec<u8>,
        limit: usize,
    ) -> bool {
        let Some(written) = self.elements.iter().find(|written| written.before == *parts) else {
            return reader.push_json(parts, out, limit);
        };
        out.extend_from_slice(&self.text[written.text.clone()]);
        *parts = written.after;
        true
    }
}
