//! Records that stand alone: cut out of their chunk, with the names and template definitions that they need.
//!
//! Such a record is `2a 2a 00 00`, its size u32, the ID u64, the time at which it was written (FILETIME, u64), BinXML,
//! and template definitions. It is like a record of a log, with three differences: offsets count from its start, those
//! in a definition from the start of the definition, and it has no copy of its size. So a definition has the same bytes
//! in each record that needs it.
//!
//! A **marked** record has pseudonyms. It begins with `2a 2a 01 00`, and ends with the marks of its pseudonyms (u64 each), the
//! entries of the user that allow other values (UTF-8), the number of the marks (u32), and the size of the entries (u32).

use std::ops::Range;

use evtx_format::bytes::u64_at;
use hashbrown::HashMap;

use crate::copy::{MAX_RECORD, copy_definition, copy_stream};
use crate::error::WriteError;
use crate::source::{Result, Source};
use crate::target::Own;

const MAGIC: &[u8; 4] = b"**\0\0";
const MARKED: &[u8; 4] = b"**\x01\0";
/// Bytes before the BinXML, as in a record of a log.
pub(crate) const HEADER: usize = 24;
/// The most bytes of definitions that are known before another record is cut out.
const MAX_KNOWN: usize = 1 << 20;

/// Cuts the records of a chunk out of it.
#[derive(Debug, Default)]
pub struct Cutter {
    /// By chunk offset, the definitions as records have them, and how many bytes they take.
    definitions: HashMap<usize, Box<[u8]>>,
    bytes: usize,
    record: Own,
    definition: Own,
}

/// What a log must not contain anything beside: the pseudonyms of a record, and what the user has allowed.
#[derive(Debug, Clone, Copy)]
pub struct Marks<'a> {
    pseudonyms: &'a [[u8; 8]],
    /// The user's entries, in lines.
    pub entries: &'a str,
}

/// A record that stands alone.
#[derive(Debug, Clone, Copy)]
pub struct CutRecord<'a> {
    pub(crate) bytes: &'a [u8],
    /// Its ID.
    pub id: u64,
    /// When it was written, a FILETIME.
    pub written: u64,
    /// What its pseudonyms are known by; `None` if it has none.
    pub marks: Option<Marks<'a>>,
}

impl Cutter {
    /// Begins another chunk.
    pub fn begin_chunk(&mut self) {
        self.definitions.clear();
        self.bytes = 0;
    }

    /// Cuts out a record with an ID, the time at which it was written (FILETIME), and its BinXML in a range of the chunk.
    /// The chunk must be that of the last call, unless [`begin_chunk`](Self::begin_chunk) was called.
    ///
    /// # Errors
    /// [`WriteError`] if the record is damaged, or needs too much room.
    pub fn cut(&mut self, chunk: &[u8], id: u64, written: u64, binxml: Range<usize>) -> Result<&[u8]> {
        // Those of a crafted chunk can overlap.
        if self.bytes > MAX_KNOWN {
            self.begin_chunk();
        }
        let Cutter {
            definitions,
            bytes: known_bytes,
            record,
            definition,
        } = self;
        let source = Source::chunk(chunk);
        begin(record, id, written);
        copy_stream(record, source, binxml)?;
        finish(record, |at, out| {
            let bytes = match definitions.get(&at) {
                Some(bytes) => bytes,
                None => {
                    definition.clear();
                    definition.out.extend([0; 4]);
                    copy_definition(definition, source, at)?;
                    *known_bytes += definition.out.len();
                    let bytes = definition.out.as_slice().into();
                    definitions.entry(at).or_insert(bytes)
                }
            };
            out.extend(bytes);
            Ok(false)
        })?;
        Ok(&record.out)
    }
}

/// Begins a record that stands alone.
pub(crate) fn begin(record: &mut Own, id: u64, written: u64) {
    record.clear();
    record.out.extend(MAGIC);
    record.out.extend([0; 4]);
    record.out.extend(id.to_le_bytes());
    record.out.extend(written.to_le_bytes());
}

/// Ends a record after its BinXML: appends each definition that it refers to once, which `append` does by its offset in
/// the source. It returns whether the definition has another GUID, which begins with its ID.
pub(crate) fn finish(record: &mut Own, mut append: impl FnMut(usize, &mut Vec<u8>) -> Result<bool>) -> Result<()> {
    let mut known: Vec<(usize, usize, bool)> = Vec::new();
    for (place, at) in std::mem::take(&mut record.pending) {
        let (offset, is_renamed) = match known.iter().find(|(known, ..)| *known == at) {
            Some((_, offset, is_renamed)) => (*offset, *is_renamed),
            None => {
                let offset = record.out.len();
                let is_renamed = append(at, &mut record.out)?;
                if record.out.len() > MAX_RECORD {
                    return Err(WriteError::RecordSize);
                }
                known.push((at, offset, is_renamed));
                (offset, is_renamed)
            }
        };
        if is_renamed {
            record.out.copy_within(offset + 4..offset + 8, place - 4);
        }
        record.out[place..place + 4].copy_from_slice(&(offset as u32).to_le_bytes());
    }
    let size = record.out.len() as u32;
    record.out[4..8].copy_from_slice(&size.to_le_bytes());
    Ok(())
}

/// Marks a record: see the description of this module.
pub(crate) fn mark(record: &mut Vec<u8>, pseudonyms: &[u64], entries: &str) -> Result<()> {
    pseudonyms.iter().for_each(|mark| record.extend(mark.to_le_bytes()));
    record.extend(entries.as_bytes());
    record.extend((pseudonyms.len() as u32).to_le_bytes());
    record.extend((entries.len() as u32).to_le_bytes());
    if record.len() > MAX_RECORD {
        return Err(WriteError::RecordSize);
    }
    let size = (record.len() as u32).to_le_bytes();
    record[..8].copy_from_slice(&[*MARKED, size].concat());
    Ok(())
}

impl<'a> Marks<'a> {
    fn of(record: &'a [u8]) -> Option<Self> {
        let (rest, sizes) = record.get(HEADER..)?.split_last_chunk::<8>()?;
        let size = |at: usize| u32::from_le_bytes([sizes[at], sizes[at + 1], sizes[at + 2], sizes[at + 3]]) as usize;
        let (rest, entries) = rest.split_at_checked(rest.len().checked_sub(size(4))?)?;
        let (_, marks) = rest.split_at_checked(rest.len().checked_sub(size(0).checked_mul(8)?)?)?;
        Some(Marks {
            pseudonyms: marks.as_chunks().0,
            entries: str::from_utf8(entries).ok()?,
        })
    }

    /// A number for each pseudonym.
    pub fn pseudonyms(self) -> impl Iterator<Item = u64> + use<'a> {
        self.pseudonyms.iter().map(|mark| u64::from_le_bytes(*mark))
    }
}

impl<'a> CutRecord<'a> {
    /// The record that some bytes are. Its BinXML is checked when it is written.
    ///
    /// # Errors
    /// [`WriteError::Damaged`].
    pub fn new(bytes: &'a [u8]) -> Result<Self> {
        let damaged = || Source::damaged(0, "it is not a record");
        let (magic, size) = bytes.first_chunk::<8>().ok_or_else(damaged)?.split_at(4);
        let is_whole = size == (bytes.len() as u32).to_le_bytes() && bytes.len() <= MAX_RECORD;
        match (u64_at(bytes, 8), u64_at(bytes, 16)) {
            (Some(id), Some(written)) if is_whole && (magic == MAGIC || magic == MARKED) => {
                let marks = (magic == MARKED)
                    .then(|| Marks::of(bytes).ok_or_else(damaged))
                    .transpose()?;
                Ok(CutRecord {
                    bytes,
                    id,
                    written,
                    marks,
                })
            }
            _ => Err(damaged()),
        }
    }

    pub(crate) fn binxml(&self) -> Range<usize> {
        HEADER..self.bytes.len()
    }
}
