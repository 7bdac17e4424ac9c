//! The JSON of elements that the record at hand spells out: to check one and to write it is the same walk, so what was
//! written for the check is kept for the column.

use std::ops::Range;

use evtx_format::MAX_TEXT;
use evtx_format::binxml::{Reader, StreamCursor};

/// Most elements that are kept. Real records have one.
const MAX_ELEMENTS: usize = 8;

/// Most bytes of text that are kept.
const MAX_KEPT: usize = 1 << 20;

/// Bytes of text that there is room for at first.
const ROOM: usize = 16 << 10;

/// Elements that were written.
#[derive(Default)]
pub(crate) struct JsonMemo<'r> {
    text: Vec<u8>,
    elements: Vec<Written<'r>>,
}

/// An element that was written: where it comes next, where it was passed, and its text.
struct Written<'r> {
    before: StreamCursor<'r>,
    after: StreamCursor<'r>,
    text: Range<usize>,
}

impl<'r> JsonMemo<'r> {
    /// Begins a record.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.elements.clear();
        self.text.clear();
    }

    /// Passes the element that comes next in a stream, if it can be written, and keeps what was.
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

    /// Appends the JSON value of the element that comes next in a stream, if it can be written and `out` becomes no
    /// longer than `limit`.
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
