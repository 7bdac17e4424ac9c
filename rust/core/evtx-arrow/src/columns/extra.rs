//! Builders of texts for extra columns. Every text is UTF-8, whatever is written, because arrays may be made without checks.

use std::cell::RefCell;

use arrow_array::ArrayRef;
use arrow_schema::ArrowError;
use evtx_format::Error;

use super::entries::EntryBuilder;
use super::text::TextBuilder;
use crate::arrays::{Build, MakeArrays};
use crate::record::FoundValue;
use crate::schema::ColumnType;

/// The builder of a column of texts.
#[derive(Debug)]
pub struct TextColumn {
    texts: TextBuilder,
    scratch: Vec<u8>,
}

impl Default for TextColumn {
    fn default() -> Self {
        TextColumn {
            texts: TextBuilder::new(),
            scratch: Vec::new(),
        }
    }
}

impl TextColumn {
    /// Appends a text, or NULL.
    pub fn push(&mut self, text: Option<&str>) {
        self.texts.push_option(text);
    }

    /// Appends the text of a value.
    pub fn push_value(&mut self, value: &FoundValue<'_>) {
        self.texts.push_text(Some(&value.0));
    }

    /// Appends NULLs.
    pub fn push_nulls(&mut self, count: usize) {
        self.texts.nulls += count;
    }

    /// Appends the text that `write` appends to an empty buffer, or NULL if it returns false.
    ///
    /// # Errors
    /// The error of `write`.
    pub fn push_written<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<bool, E>) -> Result<(), E> {
        self.scratch.clear();
        if write(&mut self.scratch)? {
            let text = String::from_utf8_lossy(&self.scratch);
            let pushed: Result<(), Error> = self.texts.try_push(|out| {
                out.extend_from_slice(text.as_bytes());
                Ok(true)
            });
            debug_assert_eq!(pushed, Ok(()));
        } else {
            self.texts.push_null();
        }
        Ok(())
    }

    /// How many bytes the builder holds.
    pub fn bytes(&self) -> usize {
        self.texts.bytes()
    }

    /// Ends the batch.
    ///
    /// # Errors
    /// Those of Arrow.
    pub fn finish(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        self.texts.finish(make)
    }
}

/// The builder of a column of lists of texts.
#[derive(Debug)]
pub struct TextListColumn {
    lists: EntryBuilder,
    scratch: Vec<u8>,
}

impl Default for TextListColumn {
    fn default() -> Self {
        TextListColumn {
            lists: EntryBuilder::new(ColumnType::TEXTS),
            scratch: Vec::new(),
        }
    }
}

impl TextListColumn {
    /// The Arrow field of such a column.
    pub fn field(name: &str) -> arrow_schema::Field {
        ColumnType::TEXTS.field(name)
    }

    /// Appends a list with the text that each of `writes` appends.
    pub fn push<W: FnOnce(&mut Vec<u8>)>(&mut self, writes: impl Iterator<Item = W>) {
        let scratch = &RefCell::new(&mut self.scratch);
        self.lists.push_texts(writes.map(|write| {
            move |out: &mut Vec<u8>| {
                let mut scratch = scratch.borrow_mut();
                scratch.clear();
                write(&mut scratch);
                out.extend_from_slice(String::from_utf8_lossy(&scratch).as_bytes());
            }
        }));
    }

    /// Appends NULL.
    ///
    /// # Errors
    /// Those of Arrow.
    pub fn push_null(&mut self) -> Result<(), ArrowError> {
        self.lists.push(None)
    }

    /// How many bytes the builder holds.
    pub fn bytes(&self) -> usize {
        self.lists.bytes()
    }

    /// Ends the batch.
    ///
    /// # Errors
    /// Those of Arrow.
    pub fn finish(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        self.lists.finish(make)
    }
}
