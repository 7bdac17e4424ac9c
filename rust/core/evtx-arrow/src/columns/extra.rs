//! The builder of texts for extra columns. Every text is UTF-8, whatever is written, because arrays may be made without checks.

use arrow_array::ArrayRef;
use arrow_schema::ArrowError;
use evtx_format::Error;

use super::text::TextBuilder;
use crate::arrays::{Build, MakeArrays};
use crate::record::FoundValue;

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
