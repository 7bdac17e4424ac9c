//! The bytes that BinXML is copied from.

use std::ops::Range;

use crate::error::WriteError;

/// Bytes of a template definition before its body: the next definition u32, a GUID, the size of the body u32.
pub(crate) const DEFINITION_HEADER: usize = 24;
/// Bytes of a name before its units: the next name u32, the hash u16, the number of units u16.
pub(crate) const NAME_HEADER: usize = 8;

pub(crate) type Result<T> = std::result::Result<T, WriteError>;

/// The bytes that BinXML is copied from.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) bytes: &'a [u8],
    /// From where offsets count.
    pub(crate) base: usize,
    /// Whether the bytes are a record that stands alone. The offsets in its definitions count from each definition.
    is_record: bool,
}

impl<'a> Source<'a> {
    pub(crate) fn chunk(bytes: &'a [u8]) -> Self {
        let is_record = false;
        Source {
            bytes,
            base: 0,
            is_record,
        }
    }

    pub(crate) fn record(bytes: &'a [u8]) -> Self {
        let is_record = true;
        Source {
            bytes,
            base: 0,
            is_record,
        }
    }

    pub(crate) fn damaged(at: usize, what: &'static str) -> WriteError {
        WriteError::Damaged { offset: at, what }
    }

    pub(crate) fn take(&self, at: usize, count: usize, what: &'static str) -> Result<&'a [u8]> {
        let bytes = at.checked_add(count).and_then(|end| self.bytes.get(at..end));
        bytes.ok_or_else(|| Source::damaged(at, what))
    }

    pub(crate) fn byte(&self, at: usize, what: &'static str) -> Result<u8> {
        self.take(at, 1, what).map(|bytes| bytes[0])
    }

    pub(crate) fn u16(&self, at: usize, what: &'static str) -> Result<usize> {
        self.take(at, 2, what)
            .map(|bytes| usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))
    }

    pub(crate) fn u32(&self, at: usize, what: &'static str) -> Result<usize> {
        let bytes = self.take(at, 4, what)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize)
    }

    /// The bytes of a definition without the link to the next one, and the range of its body.
    pub(crate) fn definition(&self, at: usize) -> Result<(&'a [u8], Range<usize>)> {
        const WHAT: &str = "a template definition";
        let size = self.u32(at + DEFINITION_HEADER - 4, WHAT)?;
        let all = self.take(at, DEFINITION_HEADER.saturating_add(size), WHAT)?;
        let body = at + DEFINITION_HEADER..at + all.len();
        Ok((&all[4..], body))
    }

    /// The same bytes, with offsets as the definition at `at` has them.
    pub(crate) fn inside(self, at: usize) -> Self {
        let base = if self.is_record { at } else { self.base };
        Source { base, ..self }
    }
}
