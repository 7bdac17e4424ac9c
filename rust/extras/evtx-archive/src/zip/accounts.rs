//! Which bytes of an archive belong to the entries of its directory, and what else is in it.
//!
//! Programs that read local headers one after the other see other entries than those that read the directory. A log that
//! only one of the two finds must not be silent.

use std::ops::Range;

use evtx_format::Interrupt;
use evtx_scan::{StorageError, StorageFile};

use super::fields::{
    LOCAL, OTHER_NAME, OTHER_SIZE, ZIP64, extra_fields, four, has_paths, local_header, names, number, two,
};
use crate::findings::{Findings, MAX_TOLD, NAMED, full_folder, gaps, hidden, quoted, unclaimed};
use crate::head::{Own, Wanted};
use crate::memory::ListMemory;
use crate::names::wanted_name;

/// Bytes that are read at once, at least and at most. Each piece that follows the last one is larger: headers of small entries
/// are near each other.
const PIECE: usize = 1 << 10;
const MAX_PIECE: usize = 1 << 20;

/// What precedes a digital signature: its own signature and its length.
const SIGNATURE: u64 = 6;

/// The largest descriptor after the data of an entry (APPNOTE 4.3.9): a signature, a checksum and two sizes of ZIP64.
const DESCRIPTOR: u64 = 24;

/// In a remote archive, a header is read only if more than so many bytes follow the data of its entry: each read takes a
/// request. A descriptor and a few extra fields are smaller.
const REMOTE_SLACK: u64 = 64;

/// How a local header starts, and how many bytes of data in an archive are searched for it.
const HEADER: &[u8] = b"PK\x03\x04";
const MAX_SEARCHED: u64 = 64 << 20;

/// Size of a compressed folder that has nothing in it, at most: its data is an empty stream, perhaps encrypted.
const EMPTY: u64 = 64;

/// What compression adds to the size of a small entry, at most.
const EXPANSION: u64 = 1024;

/// Data that stands at the start of a part of a split archive, or of what could have become one (APPNOTE 8.5.3, 8.5.4).
const MARKERS: [&[u8; 4]; 2] = [b"PK\x07\x08", b"PK00"];

/// What the directory says of an entry.
pub(super) struct Claim {
    pub(super) name: String,
    /// Where its local header is in the file.
    pub(super) offset: u64,
    /// The bytes of its name and of its extra fields.
    pub(super) lengths: (u64, u64),
    pub(super) compressed: u64,
    pub(super) size: u64,
    pub(super) has_descriptor: bool,
    pub(super) is_stored: bool,
    pub(super) is_encrypted: bool,
    /// Whether somebody asks for it. Its header is then compared when it is opened, and so is its data, unless it is stored.
    pub(super) is_opened: bool,
    pub(super) is_folder: bool,
    pub(super) own: Own,
}

impl Claim {
    /// The most bytes of compressed data that an entry of this size can need. Encryption adds a header and a checksum. Methods
    /// add less than a byte to each byte of what they cannot compress.
    fn most(&self) -> u64 {
        let header = if self.is_encrypted { 64 } else { 0 };
        match self.is_stored {
            true => self.size.saturating_add(header),
            false => self.size.saturating_mul(2).saturating_add(header + EXPANSION),
        }
    }
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
    findings: Findings,
    /// How many bytes of data were searched.
    searched: u64,
    /// How many bytes of extra fields may still be read, and whether there were more: those of local headers that overlap.
    extra: u64,
    is_shared: bool,
}

/// A local header.
struct Local {
    header: [u8; LOCAL],
    name: Vec<u8>,
    extra: Vec<u8>,
    /// Where the data of its entry starts.
    data: u64,
}

impl Local {
    /// Whether its compressed size is in a field of ZIP64.
    fn is_wide(&self) -> bool {
        four(&self.header, 18) == u32::MAX
    }

    /// Its compressed size; 0 if it is not known.
    fn compressed(&self) -> u64 {
        if !self.is_wide() {
            return four(&self.header, 18).into();
        }
        // After the size, if that is there, too (APPNOTE 4.5.3).
        let at = if four(&self.header, 22) == u32::MAX { 8 } else { 0 };
        let field = extra_fields(&self.extra).find(|(id, _)| *id == ZIP64);
        let field = field.filter(|(_, field)| field.len() >= at + 8);
        field.map_or(0, |(_, field)| number::<8>(field, at))
    }

    /// The name by which somebody asks for its entry, if there is one, or its first name.
    fn name(&self, is_wanted: &dyn Fn(&str) -> bool) -> (String, bool) {
        let mut names = names(&self.name, crc32fast::hash(&self.name), &self.extra);
        let wanted = wanted_name(&names, is_wanted);
        (names.swap_remove(wanted.unwrap_or(0)), wanted.is_some())
    }
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
            findings: Findings::new(MAX_TOLD),
            searched: 0,
            extra: file.size().saturating_mul(2),
            is_shared: false,
        }
    }

    /// Takes what the directory says of an entry, and its name, extra fields and comment there.
    ///
    /// # Errors
    /// Those of the storage, and [`StorageError::Unusable`] if the list takes too much memory.
    pub(super) fn add(&mut self, claim: Claim, record: &[u8], wanted: &mut Wanted<'_>) -> Result<(), StorageError> {
        self.interrupt.check()?;
        if claim.is_folder && (claim.size > 0 || claim.compressed > EMPTY) {
            let data = claim.size.max(claim.compressed);
            self.findings.tell(&full_folder(&claim.name, data));
        } else if !claim.is_opened && claim.compressed > claim.most() {
            let (data, size) = (claim.compressed, claim.size);
            self.disagrees(
                &claim,
                &format!("the data has {data} bytes, too many for a size of {size}"),
            );
        }
        if let Some(what) = hidden(record) {
            self.disagrees(&claim, &format!("the record in the directory contains {what}"));
        }
        let span = self.settle(claim.offset, wanted.is_wanted)?;
        self.last = Some(claim);
        self.push(span, Some(&mut wanted.memory))
    }

    /// Takes a digital signature with so many bytes (APPNOTE 4.3.13) at the start of a range, and reports what follows it.
    ///
    /// # Errors
    /// Those of the storage.
    pub(super) fn signature(&mut self, bytes: Range<u64>, len: u64) -> Result<(), StorageError> {
        let end = bytes.start.saturating_add(SIGNATURE + len).min(bytes.end);
        let signature = self.read(bytes.start, (end - bytes.start) as usize)?;
        if let Some(what) = signature.and_then(hidden) {
            self.findings
                .tell(&format!("the signature of its directory contains {what}"));
        }
        if end < bytes.end {
            self.findings.tell(&unclaimed(&(end..bytes.end)));
        }
        Ok(())
    }

    /// What the archive has besides its directory, which starts at an offset, and `others`, which its end does not claim.
    ///
    /// # Errors
    /// Those of the storage.
    pub(super) fn failures(
        mut self,
        directory: u64,
        others: &[Range<u64>],
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<String>, StorageError> {
        let span = self.settle(directory, is_wanted)?;
        self.push(span, None)?;
        let spans = std::mem::take(&mut self.spans);
        gaps(spans, directory, self.interrupt, |gap| self.unclaimed(gap, is_wanted))?;
        for others in others.iter().filter(|others| !others.is_empty()) {
            self.unclaimed(others.clone(), is_wanted)?;
        }
        if self.is_shared {
            self.findings.tell("the headers of its entries overlap");
        }
        Ok(self.findings.into_texts(NAMED))
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
    fn unclaimed(&mut self, bytes: Range<u64>, is_wanted: &dyn Fn(&str) -> bool) -> Result<(), StorageError> {
        let len = bytes.end - bytes.start;
        if self.findings.is_full() {
            self.findings.tell("");
            return Ok(());
        }
        let head = self.read(bytes.start, 4)?;
        if len == 4 && bytes.start == 0 && MARKERS.iter().any(|marker| head == Some(*marker)) {
            return Ok(());
        }
        let mut what = unclaimed(&bytes);
        if let Some(local) = self.local(bytes.start)?.filter(|_| len > LOCAL as u64) {
            what += &format!(", and start with the entry {}", quoted(&local.name(is_wanted).0));
        }
        self.findings.tell(&what);
        Ok(())
    }

    /// The bytes of the last entry, where something else starts at `next`.
    fn settle(&mut self, next: u64, is_wanted: &dyn Fn(&str) -> bool) -> Result<Option<Range<u64>>, StorageError> {
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
        let Some(local) = self.local(claim.offset)? else {
            if !claim.is_opened {
                self.disagrees(&claim, "it has no header where its directory says");
            }
            return Ok(Some(claim.offset..least));
        };
        if let Some(what) = hidden(&local.extra) {
            self.disagrees(
                &claim,
                &format!("the extra fields in the header of its data contain {what}"),
            );
        }
        let mut end = local.data.saturating_add(claim.compressed);
        let (said, stated) = (local.compressed(), claim.compressed);
        let why = if claim.is_opened {
            None
        } else {
            claim.own.disagrees(&local.header, &local.name, stated)
        };
        let why = why.or((said > 0 && local.is_wide() && said != stated).then_some(OTHER_SIZE));
        // Its names are those of the directory, if these two agree.
        if why.is_some() || !claim.is_opened && has_paths(&local.extra) {
            let (other, is_other) = local.name(is_wanted);
            let (is_same, other) = (other == claim.name, quoted(&other));
            match (why, is_same) {
                (Some(why), true) => self.disagrees(&claim, why),
                (Some(why), false) => self.disagrees(&claim, &format!("{why}: {other}")),
                (None, false) if is_other => self.disagrees(&claim, &format!("{OTHER_NAME}: {other}")),
                (None, _) => {}
            }
        }
        if claim.has_descriptor || two(&local.header, 6) & 8 != 0 {
            // Only the data itself says where it ends.
            let is_open = said == 0 && stated > 0;
            let mut hidden = None;
            if is_open && !claim.is_opened && !self.is_remote {
                hidden = self.search(local.data..end, is_wanted)?;
            }
            let descriptor = self.descriptor(end, &claim)?;
            if let Some(name) = hidden {
                self.disagrees(&claim, &format!("the data contains the entry {}", quoted(&name)));
            } else if is_open && descriptor == 0 && (!claim.is_opened || claim.is_stored) {
                self.disagrees(&claim, "no descriptor follows the data");
            }
            end = end.saturating_add(descriptor);
        }
        Ok(Some(claim.offset..end))
    }

    /// Reports how an entry contradicts the directory.
    fn disagrees(&mut self, claim: &Claim, why: &str) {
        self.findings
            .tell(&format!("of its entry {}, {why}", quoted(&claim.name)));
    }

    /// Searches the data of an entry for the header of another one that somebody asks for, and returns its name. A program that
    /// reads the archive as a stream sees that one, if the directory claims more data than there is.
    fn search(&mut self, data: Range<u64>, is_wanted: &dyn Fn(&str) -> bool) -> Result<Option<String>, StorageError> {
        let (mut at, end) = (data.start, data.end.min(self.file.size()));
        let mut hits = Vec::new();
        while at < end && self.searched < MAX_SEARCHED && !self.findings.is_full() {
            self.interrupt.check()?;
            let len = (end - at).min(MAX_PIECE as u64);
            let Some(bytes) = self.read(at, len as usize)? else {
                break;
            };
            hits.clear();
            hits.extend(memchr::memmem::find_iter(bytes, HEADER));
            self.searched += len;
            for &hit in &hits {
                self.interrupt.check()?;
                // What looks like a header here may be none, so it takes nothing of the limit of extra fields.
                let Some(local) = self.local_within(at + hit as u64, u64::MAX)? else {
                    continue;
                };
                if let (name, true) = local.name(is_wanted) {
                    return Ok(Some(name));
                }
                // Headers can overlap.
                self.searched += (local.name.len() + local.extra.len()) as u64;
                if self.searched >= MAX_SEARCHED {
                    break;
                }
            }
            // A signature can start in the last bytes.
            let overlap = HEADER.len() as u64 - 1;
            at += if at + len < end { len - overlap } else { len };
        }
        Ok(None)
    }

    /// The local header at an offset, if there is one. Its extra fields are read as long as the limit lasts.
    fn local(&mut self, offset: u64) -> Result<Option<Local>, StorageError> {
        let local = self.local_within(offset, self.extra)?;
        if let Some(local) = &local {
            let extra = local.data - offset - (LOCAL + local.name.len()) as u64;
            match self.extra.checked_sub(extra) {
                Some(left) => self.extra = left,
                None => self.is_shared = true,
            }
        }
        Ok(local)
    }

    /// The same, with its extra fields if they have at most so many bytes.
    fn local_within(&mut self, offset: u64, limit: u64) -> Result<Option<Local>, StorageError> {
        let header = self.read(offset, LOCAL)?.and_then(|bytes| bytes.first_chunk().copied());
        let lengths = header.and_then(|header| Some((header, local_header(&header)?)));
        let Some((header, (name, extra))) = lengths else {
            return Ok(None);
        };
        let start = offset + LOCAL as u64;
        let data = start + name as u64 + extra;
        let Some(name) = self.read(start, name)?.map(<[u8]>::to_vec) else {
            return Ok(None);
        };
        let mut fields = Vec::new();
        if extra <= limit {
            let read = self.read(start + name.len() as u64, extra as usize)?;
            fields.extend_from_slice(read.unwrap_or_default());
        }
        Ok(Some(Local {
            header,
            name,
            extra: fields,
            data,
        }))
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
