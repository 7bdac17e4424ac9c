//! The builder of the column `fields`: for each record a list of its values, each with its name.

use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::ArrowError;
use evtx_format::Error;
use evtx_format::render::lines::{END_OF_NAME, END_OF_VALUE};
use memchr::memchr;

use super::text::TextBuilder;
use crate::arrays::{Build, MakeArrays, take};
use crate::plan::MAX_FIELD;
use crate::schema::{list_field, list_fields};

/// The builder of a column of lists of names with their values, both text.
#[derive(Debug)]
pub(crate) struct FieldsBuilder {
    /// The names of all items, and their values.
    names: TextBuilder,
    values: TextBuilder,
    /// 0, then the end of each list.
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
    /// The fields of the current record, as a program writes them in `Language::Fields`.
    rendered: Vec<u8>,
}

impl FieldsBuilder {
    pub(crate) fn new() -> Self {
        FieldsBuilder {
            names: TextBuilder::new(),
            values: TextBuilder::new(),
            offsets: vec![0],
            nulls: NullBufferBuilder::new(0),
            rendered: Vec::new(),
        }
    }

    /// Appends the list of the fields that `write` appends to a buffer, or NULL if `write` returns false. In the
    /// buffer, each name ends with [`END_OF_NAME`], and each value with [`END_OF_VALUE`].
    ///
    /// # Errors
    /// The error of `write`. NULL is appended in this case too.
    pub(crate) fn try_push(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<bool, Error>) -> Result<(), Error> {
        self.rendered.clear();
        let written = write(&mut self.rendered);
        if written == Ok(true) {
            self.push_rendered();
        } else {
            self.push_null();
        }
        if self.rendered.capacity() > MAX_FIELD {
            // Other columns of the record can need as much memory.
            self.rendered = Vec::new();
        }
        written.map(drop)
    }

    fn push_rendered(&mut self) {
        let mut rest = &self.rendered[..];
        while let Some(name) = memchr(END_OF_NAME, rest)
            && let Some(value) = memchr(END_OF_VALUE, &rest[name + 1..])
        {
            let end = name + 1 + value;
            self.names.push(usize::MAX, |out| out.extend_from_slice(&rest[..name]));
            self.values
                .push(usize::MAX, |out| out.extend_from_slice(&rest[name + 1..end]));
            rest = &rest[end + 1..];
        }
        self.end_list();
        self.nulls.append_non_null();
    }

    pub(crate) fn push_last_again(&mut self) {
        let &[.., start, end] = &*self.offsets else { return };
        let items = start as usize..end as usize;
        self.names.push_again(items.clone());
        self.values.push_again(items);
        self.end_list();
        let is_valid = self.nulls.is_valid(self.nulls.len() - 1);
        self.nulls.append(is_valid);
    }

    pub(crate) fn push_null(&mut self) {
        self.end_list();
        self.nulls.append_null();
    }

    fn end_list(&mut self) {
        self.offsets.push(self.names.len() as i32);
    }

    /// How many bytes the names and values take, as [`TextBuilder::bytes`] counts them.
    pub(crate) fn bytes(&self) -> usize {
        self.names.bytes() + self.values.bytes()
    }

    pub(crate) fn finish(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        let columns = vec![self.names.finish(make)?, self.values.finish(make)?];
        let items = StructArray::try_new(list_fields(), columns, None)?;
        let offsets = OffsetBuffer::new(take(&mut self.offsets).into());
        self.offsets.push(0);
        let lists = ListArray::try_new(list_field(), offsets, Arc::new(items), self.nulls.finish())?;
        Ok(Arc::new(lists))
    }
}
