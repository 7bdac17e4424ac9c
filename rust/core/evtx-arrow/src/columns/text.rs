//! The builder of a column of text. Text is written from the bytes of the chunk straight into the column's buffer.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::make_view;
use arrow_buffer::{Buffer, NullBufferBuilder};
use arrow_schema::ArrowError;
use evtx_format::value::Value;
use evtx_format::{Error, MAX_TEXT};

use crate::arrays::{Build, MakeArrays, Strings, take};
use crate::plan::{MAX_FIELD, Resolved};

/// The most bytes of a string that is stored in its view.
const INLINE: usize = 12;

/// The most bytes of a buffer: the offset of a view has 32 bits, and Arrow takes it for signed. A batch ends long before
/// a column has so much text, at some MiB and one group of records.
const MAX_BUFFER: usize = i32::MAX as usize;

/// The most bytes of a buffer that is kept to be used again. Those of real batches are far smaller.
const MAX_REUSED: usize = 32 << 20;

/// The builder of a column of text. Short strings are stored in their views, long ones in a buffer.
#[derive(Debug)]
pub(crate) struct TextBuilder {
    views: Vec<u128>,
    data: Vec<u8>,
    /// The buffers of the last two batches, to be used again.
    previous: [Buffer; 2],
    validity: NullBufferBuilder,
    /// How many NULLs at the end are not in `views` yet. Some columns are mostly NULL, and counting is cheaper.
    pub(super) nulls: usize,
}

impl TextBuilder {
    pub(crate) fn new() -> Self {
        TextBuilder {
            views: Vec::new(),
            data: Vec::new(),
            previous: Default::default(),
            validity: NullBufferBuilder::new(0),
            nulls: 0,
        }
    }

    /// Appends the string that `write` writes, or NULL if it is longer than `limit` bytes. Returns its length.
    #[inline]
    pub(crate) fn push(&mut self, limit: usize, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        let start = self.data.len();
        write(&mut self.data);
        let len = self.data.len() - start;
        if len > limit {
            self.drop_long(start);
            self.push_null();
        } else {
            self.end_string(start);
        }
        len
    }

    /// As [`push`](Self::push), for the text of a value.
    #[inline]
    pub(crate) fn push_found(
        &mut self,
        found: &Resolved<'_, '_>,
        limit: usize,
        push: impl FnOnce(&mut Vec<u8>),
    ) -> usize {
        match found {
            Resolved::Value(value) => self.push_value(*value, push),
            _ => self.push(limit, push),
        }
    }

    /// Appends the text of the value at a path, or NULL if there is none or it is longer than [`MAX_FIELD`] bytes.
    #[inline(always)]
    pub(crate) fn push_text(&mut self, found: Option<&Resolved<'_, '_>>) {
        match found {
            Some(found) => _ = self.push_found(found, MAX_FIELD, |out| found.push_text(out)),
            None => self.push_null(),
        }
    }

    /// As [`push_found`](Self::push_found), for a single value, whose text is shorter than every limit.
    #[inline(always)]
    pub(crate) fn push_value(&mut self, value: Value<'_>, push: impl FnOnce(&mut Vec<u8>)) -> usize {
        if let Some((bytes, len)) = value.short_text() {
            self.push_view(len as u128 | bytes << 32);
            return len;
        }
        self.push(MAX_TEXT, push)
    }

    pub(crate) fn push_option(&mut self, text: Option<&str>) {
        match text {
            Some(text) => _ = self.push(MAX_TEXT, |out| out.extend_from_slice(text.as_bytes())),
            None => self.push_null(),
        }
    }

    /// Appends the string that `write` appends to the buffer, or NULL if it returns false.
    ///
    /// # Errors
    /// The error of `write`. Appends NULL then.
    pub(crate) fn try_push(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<bool, Error>) -> Result<(), Error> {
        let start = self.data.len();
        let written = write(&mut self.data);
        if let Ok(true) = written {
            self.end_string(start);
        } else {
            self.data.truncate(start);
            if self.data.capacity() > start + MAX_TEXT {
                self.drop_long(start);
            }
            self.push_null();
        }
        written.map(drop)
    }

    /// Appends the strings, or NULLs, of earlier rows of the batch again, without copying their bytes.
    #[inline]
    pub(crate) fn push_again(&mut self, rows: Range<usize>) {
        self.end_nulls();
        self.views.extend_from_within(rows.clone());
        if self.validity.as_slice().is_none() {
            return self.validity.append_n_non_nulls(rows.len());
        }
        for row in rows {
            self.validity.append(self.validity.is_valid(row));
        }
    }

    /// Drops the bytes from `start` on, and frees the capacity that only a text that is too long needs.
    // Kept out of line, because nearly all values are short enough.
    #[cold]
    #[inline(never)]
    fn drop_long(&mut self, start: usize) {
        self.data.truncate(start);
        self.data.shrink_to(start);
    }

    #[inline]
    fn end_string(&mut self, start: usize) {
        if self.data.len() > MAX_BUFFER {
            self.drop_long(start);
            return self.push_null();
        }
        let text = &self.data[start..];
        let (view, len) = (make_view(text, 0, start as u32), text.len());
        self.push_view(view);
        if len <= INLINE {
            self.data.truncate(start);
        }
    }

    #[inline(always)]
    fn push_view(&mut self, view: u128) {
        if self.nulls > 0 {
            self.end_nulls();
        }
        self.views.push(view);
        self.validity.append_non_null();
    }

    #[inline(never)]
    fn end_nulls(&mut self) {
        let nulls = std::mem::take(&mut self.nulls);
        self.views.resize(self.views.len() + nulls, 0);
        self.validity.append_n_nulls(nulls);
    }

    #[inline]
    pub(crate) fn push_null(&mut self) {
        self.nulls += 1;
    }

    pub(crate) fn len(&self) -> usize {
        self.views.len() + self.nulls
    }

    /// Takes the bytes of the batch. The next ones go to the buffer of the batch before the last, if nothing holds it any
    /// more: a new one would cost a page fault for each page.
    fn take_data(&mut self) -> Buffer {
        let free = std::mem::take(&mut self.previous[0]).into_vec();
        let free = free.ok().filter(|free| free.capacity() > 0);
        let mut next = free.unwrap_or_else(|| Vec::with_capacity(self.data.len()));
        next.clear();
        let data = Buffer::from_vec(std::mem::replace(&mut self.data, next));
        let kept = if data.capacity() <= MAX_REUSED {
            data.clone()
        } else {
            Buffer::default()
        };
        self.previous = [std::mem::take(&mut self.previous[1]), kept];
        data
    }
}

impl Build for TextBuilder {
    /// How many bytes the builder holds, without NULLs at the end.
    fn bytes(&self) -> usize {
        self.data.len() + size_of_val(&*self.views)
    }

    fn finish(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        self.end_nulls();
        let strings = (make.strings)(Strings {
            views: take(&mut self.views).into(),
            buffers: vec![self.take_data()],
            nulls: self.validity.finish(),
        });
        Ok(Arc::new(strings?))
    }

    fn finish_cloned(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        self.end_nulls();
        let strings = (make.strings)(Strings {
            views: self.views.clone().into(),
            buffers: vec![self.data.clone().into()],
            nulls: self.validity.finish_cloned(),
        });
        Ok(Arc::new(strings?))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;

    use super::*;

    #[test]
    fn strings_of_any_length_come_back() {
        let mut builder = TextBuilder::new();
        let texts: Vec<_> = [0, 1, 3, 4, 5, 8, 11, 12, 13, 14, 40]
            .map(|len| "abcdefgh".repeat(5)[..len].to_owned())
            .into();
        for text in &texts {
            builder.push_null();
            let pushed = builder.push(40, |out| out.extend_from_slice(text.as_bytes()));
            assert_eq!(pushed, text.len());
        }
        let pushed = builder.push(40, |out| out.extend_from_slice(&[b'x'; 41]));
        assert_eq!(pushed, 41, "NULL, and yet its length");
        builder.push_option(None);
        builder.push_option(Some("last"));
        assert_eq!(builder.len(), 2 * texts.len() + 3);
        let array = builder.finish(MakeArrays::CHECKED).expect("an array");
        let array = array.as_string_view();
        let expected = texts.iter().flat_map(|text| [None, Some(&**text)]);
        assert!(array.iter().eq(expected.chain([None, None, Some("last")])));
        let held = texts.iter().map(String::len).filter(|&len| len > INLINE);
        let buffers = array.data_buffers().iter().map(|buffer| buffer.len());
        assert_eq!(buffers.sum::<usize>(), held.sum::<usize>());
        assert_eq!(builder.len(), 0);
    }

    #[test]
    fn a_buffer_is_used_again_once_it_is_free() {
        let mut builder = TextBuilder::new();
        let mut batch = |byte| {
            builder.push(100, |out| out.resize(100, byte));
            builder.finish(MakeArrays::CHECKED).expect("an array")
        };
        let address = |array: &ArrayRef| array.as_string_view().data_buffers()[0].as_ptr();
        let batches = [batch(b'1'), batch(b'2')];
        let free = address(&batches[0]);
        drop(batches);
        // The third batch was begun before.
        let (third, fourth, fifth) = (batch(b'3'), batch(b'4'), batch(b'5'));
        assert!([&third, &fourth, &fifth].map(address).contains(&free));
        for (array, byte) in [(&third, "3"), (&fourth, "4"), (&fifth, "5")] {
            assert_eq!(array.as_string_view().value(0), byte.repeat(100));
        }
    }

    #[test]
    fn what_was_not_written_in_full_is_null() {
        let mut builder = TextBuilder::new();
        let error = Error::new(7, evtx_format::ErrorKind::Text);
        let outcomes = [Ok(true), Ok(false), Err(error), Ok(true)];
        for outcome in outcomes {
            let pushed = builder.try_push(|out| {
                out.extend_from_slice(b"a text that is long");
                outcome
            });
            assert_eq!(pushed, outcome.map(drop));
        }
        let array = builder.finish(MakeArrays::CHECKED).expect("an array");
        let array = array.as_string_view();
        let long = Some("a text that is long");
        assert_eq!(array.iter().collect::<Vec<_>>(), [long, None, None, long]);
    }
}
