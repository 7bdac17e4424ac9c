//! Which bytes of an archive belong to the entries of its directory, and what else is in it.
//!
//! Programs that read local headers one after the other see other entries than those that read the directory. A log that
//! only one of the two finds must not be silent.

use std::ops::Range;

use evtx_format::Interrupt;
use evtx_scan::{ALL_READ, StorageError, StorageFile, sort_by};

use super::fields::{LOCAL, four, local_header, number, two};
use crate::head::Own;
use crate::memory::ListMemory;
use crate::names::text;

/// The most findings of an archive with a row each.
const MAX_TOLD: usize = 100;

/// The most characters of a name in a finding.
const MAX_NAME: usize = 200;

/// Bytes that are read at once, at least and at most. Each piece that follows the last one is larger: headers of small entries
/// are near each other.
const PIECE: usize = 1 << 10;
const MAX_PIECE: usize = 1 << 20;

/// The largest descriptor after the data of an entry (APPNOTE 4.3.9): a signature, a checksum and two sizes of ZIP64.
const DESCRIPTOR: u64 = 24;

/// In a remote archive, a header is read only if more than so many bytes follow the data of its entry: each read takes a
/// request. A descriptor and a few extra fields are smaller.
const REMOTE_SLACK: u64 = 64;

/// Size of a compressed folder that has nothing in it, at most: its data is an empty stream, perhaps encrypted.
const EMPTY: u64 = 64;

/// Data that stands at the start of a part of a split archive, or of what could have become one (APPNOTE 8.5.3, 8.5.4).
const MARKERS: [&[u8; 4]; 2] = [b"PK\x07\x08", b"PK00"];

/// What the directory says of an entry.
pub(super) struct Claim {
    /// Its name, if it is not opened.
    pub(super) name: Option<String>,
    /// Where its local header is in the file.
    pub(super) offset: u64,
    /// The bytes of its name and of its extra fields.
    pub(super) lengths: (u64, u64),
    pub(super) compressed: u64,
    pub(super) size: u64,
    pub(super) has_descriptor: bool,
    pub(super) is_folder: bool,
    pub(super) own: Own,
}

/// Compares a directory with the rest of its archive.
pub(super) struct Accounts<'a> {
    file: &'a dyn StorageFile,
    is_remote: bool,
    interrupt: Interrupt<'a>,
    /// Bytes that were read, and where they are.
    piece: Vec<u8>,
    start: u64,
    /// The last entry. The one after it shows where it can end.
    last: Option<Claim>,
    /// The bytes of entries. Those that follow each other are one range.
    spans: Vec<Range<u64>>,
    told: Vec<String>,
    untold: u64,
}

impl<'a> Accounts<'a> {
    pub(super) fn new(file: &'a dyn StorageFile, is_remote: bool, interrupt: Interrupt<'a>) -> Self {
        Accounts {
            file,
            is_remote,
            interrupt,
            piece: Vec::new(),
            start: 0,
            last: None,
            spans: Vec::new(),
            told: Vec::new(),
            untold: 0,
        }
    }

    /// Takes what the directory says of an entry.
    ///
    /// # Errors
    /// Those of the storage, and [`StorageError::Unusable`] if the list takes too much memory.
    pub(super) fn add(&mut self, claim: Claim, memory: &mut ListMemory) -> Result<(), StorageError> {
        self.interrupt.check()?;
        if let (true, Some(name)) = (claim.is_folder, &claim.name) {
            let data = claim.size.max(claim.compressed);
            if claim.size > 0 || claim.compressed > EMPTY {
                self.tell(&format!("its folder {} has {data} bytes of data", quoted(name)));
            }
        }
        let span = self.settle(claim.offset)?;
        self.last = Some(claim);
        self.push(span, Some(memory))
    }

    /// What the archive has besides its directory, which starts at an offset, and `others`, which its end does not claim.
    ///
    /// # Errors
    /// Those of the storage.
    pub(super) fn failures(mut self, directory: u64, others: &[Range<u64>]) -> Result<Vec<String>, StorageError> {
        let span = self.settle(directory)?;
        self.push(span, None)?;
        let mut spans = std::mem::take(&mut self.spans);
        sort_by(&mut spans, |a, b| a.start.cmp(&b.start), self.interrupt)?;
        let mut at = 0;
        for span in spans {
            self.interrupt.check()?;
            self.unclaimed(at..span.start)?;
            at = at.max(span.end);
        }
        self.unclaimed(at..directory)?;
        for others in others {
            self.unclaimed(others.clone())?;
        }
        if self.untold > 0 {
            let text = format!(
                "{ALL_READ} that its directory names, but it has {} more such places",
                self.untold
            );
            self.told.push(text);
        }
        Ok(self.told)
    }

    fn tell(&mut self, what: &str) {
        if self.told.len() < MAX_TOLD {
            self.told
                .push(format!("{ALL_READ} that its directory names, but {what}"));
        } else {
            self.untold += 1;
        }
    }

    fn push(&mut self, span: Option<Range<u64>>, memory: Option<&mut ListMemory>) -> Result<(), StorageError> {
        let Some(span) = span else {
            return Ok(());
        };
        match self.spans.last_mut() {
            Some(last) if last.end == span.start => last.end = span.end,
            _ => {
                memory.map_or(Ok(()), |memory| memory.take(size_of_val(&span)))?;
                self.spans.push(span);
            }
        }
        Ok(())
    }

    /// Reports bytes that belong to nothing.
    fn unclaimed(&mut self, bytes: Range<u64>) -> Result<(), StorageError> {
        let len = bytes.end.saturating_sub(bytes.start);
        if len == 0 || self.untold > 0 {
            self.untold += u64::from(len > 0);
            return Ok(());
        }
        let head = self.read(bytes.start, 4)?;
        if len == 4 && bytes.start == 0 && MARKERS.iter().any(|marker| head == Some(*marker)) {
            return Ok(());
        }
        let mut what = format!("{len} bytes at offset {} belong to no entry", bytes.start);
        if let Some((_, name, _)) = self.local(bytes.start)?.filter(|_| len > LOCAL as u64) {
            what += &format!(", and start with the entry {}", quoted(&text(&name)));
        }
        self.tell(&what);
        Ok(())
    }

    /// The bytes of the last entry, where something else starts at `next`.
    fn settle(&mut self, next: u64) -> Result<Option<Range<u64>>, StorageError> {
        let Some(claim) = self.last.take() else {
            return Ok(None);
        };
        let (name, extra) = claim.lengths;
        let least = claim
            .offset
            .saturating_add(LOCAL as u64 + name)
            .saturating_add(claim.compressed);
        if self.is_remote && next.checked_sub(least).is_some_and(|rest| rest <= extra + REMOTE_SLACK) {
            return Ok(Some(claim.offset..next));
        }
        let local = self.local(claim.offset)?;
        let (end, disagreement) = match &local {
            None => (least, Some("it has no header where its directory says")),
            Some((header, name, start)) => {
                let end = start.saturating_add(claim.compressed);
                let has_descriptor = claim.has_descriptor || two(header, 6) & 8 != 0;
                let descriptor = if has_descriptor {
                    self.descriptor(end, &claim)?
                } else {
                    0
                };
                (
                    end.saturating_add(descriptor),
                    claim.own.disagrees(header, name, claim.compressed),
                )
            }
        };
        if let (Some(why), Some(name)) = (disagreement, claim.name) {
            let other = local.filter(|(_, own, _)| text(own) != name);
            let other = other.map_or(String::new(), |(_, own, _)| format!(": {}", quoted(&text(&own))));
            self.tell(&format!("of its entry {}, {why}{other}", quoted(&name)));
        }
        Ok(Some(claim.offset..end))
    }

    /// A local header, the name after it, and where its data starts; `None` if there is none.
    #[expect(clippy::type_complexity)]
    fn local(&mut self, offset: u64) -> Result<Option<([u8; LOCAL], Vec<u8>, u64)>, StorageError> {
        let header = self.read(offset, LOCAL)?.and_then(|bytes| bytes.first_chunk().copied());
        let lengths = header.and_then(|header| Some((header, local_header(&header)?)));
        let Some((header, (len, extra))) = lengths else {
            return Ok(None);
        };
        let name = self.read(offset + LOCAL as u64, len)?.map(<[u8]>::to_vec);
        Ok(name.map(|name| (header, name, offset + LOCAL as u64 + len as u64 + extra)))
    }

    /// How many bytes the descriptor of an entry takes whose data ends at an offset. Its signature may be left out, and its
    /// sizes have 32 or 64 bits.
    fn descriptor(&mut self, at: u64, claim: &Claim) -> Result<u64, StorageError> {
        let len = self.file.size().saturating_sub(at).min(DESCRIPTOR);
        let mut bytes = [0; DESCRIPTOR as usize];
        let Some(read) = self.read(at, len as usize)? else {
            return Ok(0);
        };
        bytes[..read.len()].copy_from_slice(read);
        for skipped in [if bytes.starts_with(MARKERS[0]) { 4 } else { 0 }, 0] {
            let fields = &bytes[skipped..];
            if four(fields, 0) != claim.own.checksum {
                continue;
            }
            let is_wide = [claim.compressed, claim.size] == [number::<8>(fields, 4), number::<8>(fields, 12)];
            let is_narrow = [claim.compressed as u32, claim.size as u32] == [four(fields, 4), four(fields, 8)];
            let size = match (is_wide, is_narrow) {
                (true, _) => 20,
                (false, true) => 12,
                (false, false) => continue,
            };
            return Ok((skipped + size) as u64);
        }
        Ok(0)
    }

    /// Bytes of the file; `None` if it is shorter.
    fn read(&mut self, offset: u64, len: usize) -> Result<Option<&[u8]>, StorageError> {
        let size = self.file.size();
        let Some(end) = offset.checked_add(len as u64).filter(|&end| end <= size) else {
            return Ok(None);
        };
        if offset < self.start || end > self.start + self.piece.len() as u64 {
            let last = self.piece.len();
            let is_next = offset.checked_sub(self.start).is_some_and(|hop| hop <= 2 * last as u64);
            let wanted = if is_next {
                (2 * last).clamp(PIECE, MAX_PIECE)
            } else {
                PIECE
            };
            self.piece
                .resize((size - offset).min(len.max(wanted) as u64) as usize, 0);
            self.start = offset;
            self.file.read_at(&mut self.piece, offset)?;
        }
        let from = (offset - self.start) as usize;
        Ok(self.piece.get(from..from + len))
    }
}

/// A name in quotes, cut if it is long.
fn quoted(name: &str) -> String {
    match name.char_indices().nth(MAX_NAME) {
        Some((end, _)) => format!("{:?}…", &name[..end]),
        None => format!("{name:?}"),
    }
}
