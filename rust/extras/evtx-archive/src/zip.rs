//! The directory of a ZIP archive (APPNOTE 4.3.12 to 4.3.16): which entries there are, and where.

mod fields;

mod accounts;

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use evtx_format::{Interrupt, Interrupted};
use evtx_scan::{StorageError, StorageFile, ends_with, sort_by};

use crate::codec::Method;
use crate::findings::{NAMED, hidden};
use crate::head::{Directory, Encryption, Head, MAX_DIRECTORY, MAX_ENTRIES, Own, Place, SYMBOLIC_LINK, Wanted};
use crate::input::{Input, Source};
use crate::memory::unusable;
use crate::names::{MESSAGES, is_folder, wanted_name};
use accounts::{Accounts, Claim};
pub(crate) use fields::local_header;
use fields::{LOCAL, OTHER_NAME, OTHER_SIZE, ZIP64, extra_fields, four, names, number, two};

/// The most end records of an archive that are read.
const MAX_ENDS: usize = 4;

/// An entry inside more others than this counts as overlapping, and the most bytes of all such entries.
const MAX_DEPTH: usize = 8;
const MAX_OVERLAP: u64 = 1 << 30;

/// Sizes of the fixed fields: end record, ZIP64 locator, ZIP64 end record, directory record, local header.
const END: usize = 22;
const LOCATOR: usize = 20;
const END64: usize = 56;
const RECORD: usize = 46;
/// Bytes at the end of the file that can hold the end record: with its locator and its comment.
const TAIL: u64 = (END + LOCATOR + 0xFFFF) as u64;
/// If it is not there, so many bytes before that are searched for one that other bytes follow, in pieces.
const MAX_BEHIND: u64 = 64 << 20;
const PIECE: u64 = 8 << 20;

const UNIX: u16 = 3;
/// The kind of file in a Unix mode, and that of a link.
const KIND: u32 = 0o170_000;
const LINK: u32 = 0o120_000;

impl Own {
    /// How the local header of an entry differs, if it does. Bit 3 of the flags: the checksum follows the data.
    pub(crate) fn disagrees(self, header: &[u8; LOCAL], name: &[u8], compressed: u64) -> Option<&'static str> {
        let (is_known, size) = (two(header, 6) & 8 == 0, four(header, 18));
        match () {
            () if crc32fast::hash(name) != self.name => Some(OTHER_NAME),
            () if two(header, 8) != self.method => Some("the header of its data has another method"),
            () if is_known && four(header, 14) != self.checksum => Some("the header of its data has another checksum"),
            () if (is_known || size != 0) && size != u32::MAX && u64::from(size) != compressed => Some(OTHER_SIZE),
            () => None,
        }
    }
}

/// The directory according to an end record.
struct End {
    /// Where it ends in the file, its bytes, and where it starts in the archive.
    end: u64,
    /// Bytes between its parts, and after it, that are not part of it.
    others: [Range<u64>; 2],
    len: u64,
    offset: u64,
    /// Its entries.
    count: u64,
    is_zip64: bool,
}

impl End {
    /// Whether the count agrees with a directory of so many entries. Without ZIP64 it has 16 bits: writers of more
    /// entries store the lowest 16, or all ones.
    fn counts(&self, count: usize) -> bool {
        let count = count as u64;
        if self.is_zip64 {
            self.count == count
        } else {
            self.count == count & 0xFFFF || self.count == 0xFFFF && count >= 0xFFFF
        }
    }
}

/// Reads directories of a file.
struct Reader<'r> {
    file: &'r dyn StorageFile,
    is_remote: bool,
    interrupt: Interrupt<'r>,
    /// Bytes of the file that can hold its end record, and where they start in it.
    tail: Vec<u8>,
    start: u64,
}

/// Reads the directory of an archive: that of the last end record that has one. If an end record has another one in its
/// comment, either can be meant: the result then has the entries of both, and a failure.
///
/// # Errors
/// Those of the storage, and [`StorageError::Unusable`] if there is no directory, or if it is too large.
pub(crate) fn directory(
    file: &dyn StorageFile,
    is_remote: bool,
    wanted: &mut Wanted<'_>,
    interrupt: Interrupt<'_>,
) -> Result<Directory, StorageError> {
    if file.size() == 0 {
        return unusable("the file is empty");
    }
    let size = file.size();
    let mut reader = Reader {
        file,
        is_remote,
        interrupt,
        tail: Vec::new(),
        start: size,
    };
    let (mut found, mut why, mut in_comments): (Option<Directory>, _, _) = (None, None, 0);
    while found.is_none() && why.is_none() && reader.next_piece()? {
        for (at, end) in reader.ends() {
            in_comments += usize::from(end == size);
            // Only the comment of an end record can hold another one.
            if found.is_some() && end != size {
                continue;
            }
            match (
                reader.end(at).and_then(|end| reader.directory(&end, wanted)),
                &mut found,
            ) {
                (Ok(own), Some(all)) => all.entries.extend(own.entries),
                (Ok(mut own), none) => {
                    if end > size {
                        own.failures.push(format!("{NAMED}its comment is cut short"));
                    }
                    if let Some(what) = hidden(reader.comment(at, end)) {
                        own.failures.push(format!("{NAMED}its comment contains {what}"));
                    }
                    *none = Some(own);
                }
                // Bytes of other data can look like a record.
                (Err(StorageError::Unusable(own)), _) if reader.is_tail() => why = why.or(Some(own)),
                (Err(StorageError::Unusable(_)), _) => {}
                (Err(error), _) => return Err(error),
            }
        }
    }
    let Some(mut directory) = found else {
        return unusable(match (why, &reader.magic()?) {
            (Some(why), _) => why,
            (None, b"PK\x03\x04") => "the archive is cut short: it has no directory at its end".to_owned(),
            (None, b"PK\x07\x08") => "it is a part of an archive of several files".to_owned(),
            (None, _) => "it is not a ZIP archive".to_owned(),
        });
    };
    if in_comments > 1 {
        let text = "there is an end of another archive in its comment; the entries of both are read";
        directory.failures = vec![text.to_owned()];
    } else if let Some(why) = why {
        directory
            .failures
            .push(format!("its last end record cannot be used: {why}"));
    }
    directory.limit_overlaps(interrupt)?;
    Ok(directory)
}

impl Directory {
    /// Limits entries inside many others: a small archive of these can expand to any size.
    fn limit_overlaps(&mut self, interrupt: Interrupt<'_>) -> Result<(), Interrupted> {
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        let offset = |index: usize| self.entries[index].1.offset();
        sort_by(&mut order, |&a, &b| offset(a).cmp(&offset(b)), interrupt)?;
        let (mut ends, mut left) = (BinaryHeap::new(), MAX_OVERLAP);
        for index in order {
            interrupt.check()?;
            let head = &mut self.entries[index].1;
            while ends.peek().is_some_and(|&Reverse(end)| end <= head.offset()) {
                ends.pop();
            }
            if ends.len() >= MAX_DEPTH {
                head.limit = head.size.filter(|&size| size <= left).unwrap_or(0);
                left -= head.limit;
            }
            let end = head
                .offset()
                .saturating_add(LOCAL as u64)
                .saturating_add(head.compressed);
            ends.push(Reverse(end));
        }
        Ok(())
    }
}

impl Reader<'_> {
    /// Reads the directory of an end record, which states its start twice: by its length, and by its offset.
    fn directory(&self, end: &End, wanted: &mut Wanted<'_>) -> Result<Directory, StorageError> {
        let by_length = match end.end.checked_sub(end.len) {
            None => unusable("its directory is larger than what is there of the file"),
            Some(_) if end.len > MAX_DIRECTORY => unusable(format!(
                "its directory has {} bytes, more than {} MiB",
                end.len,
                MAX_DIRECTORY >> 20
            )),
            Some(start) => match start.checked_sub(end.offset) {
                None => unusable("bytes are missing in front of its directory"),
                Some(base) => self.records(start, end.end, base, wanted),
            },
        };
        let by_length = match by_length {
            Ok((mut directory, count, accounts)) if directory.failures.is_empty() && end.counts(count) => {
                directory.failures = accounts.failures(end.end - end.len, &end.others, wanted.is_wanted)?;
                return Ok(directory);
            }
            Ok((directory, count, _)) => Ok((directory, count)),
            Err(StorageError::Unusable(why)) => Err(why),
            Err(error) => return Err(error),
        };
        let found = by_length.as_ref().map_or(0, |(_, count)| *count);
        let len = end.end.saturating_sub(end.offset);
        if end.offset < end.end && len != end.len && len <= MAX_DIRECTORY {
            let (mut directory, count, _) = self.records(end.offset, end.end, 0, wanted)?;
            if count > found {
                if directory.failures.is_empty() {
                    directory.failures.push(format!(
                        "its end says that its directory has {} bytes, and there are {len} with {count} entries",
                        end.len
                    ));
                }
                return Ok(directory);
            }
        }
        let (mut directory, count) = by_length.map_err(StorageError::Unusable)?;
        if directory.failures.is_empty() {
            directory.failures.push(format!(
                "its end says that it has {} entries, and its directory has {count}",
                end.count
            ));
        }
        match directory.failures.pop() {
            Some(why) if count == 0 => unusable(why),
            why => {
                directory.failures.extend(why);
                Ok(directory)
            }
        }
    }

    /// Reads and counts the records of a directory. `base` is how many bytes precede the archive.
    fn records(
        &self,
        start: u64,
        end: u64,
        base: u64,
        wanted: &mut Wanted<'_>,
    ) -> Result<(Directory, usize, Accounts<'_>), StorageError> {
        let failure = RefCell::new(None);
        let mut accounts = Accounts::new(self.file, self.is_remote, self.interrupt);
        let mut input = Input::new(self.file, start, end, self.is_remote, self.interrupt, &failure);
        let mut directory = Directory::default();
        let mut record = [0; RECORD];
        let mut rest = Vec::new();
        let mut count = 0_usize;
        while input.offset() < end {
            self.interrupt.check()?;
            let at = input.offset();
            let is_whole = input.fill(&mut record)? && record.starts_with(b"PK\x01\x02");
            let lengths = [28, 30, 32].map(|at| usize::from(two(&record, at)));
            rest.resize(lengths.iter().sum(), 0);
            // A signature may follow the entries.
            if record.starts_with(b"PK\x05\x05") && count > 0 {
                accounts.signature(at..end, two(&record, 4).into())?;
                break;
            }
            if !is_whole || !input.fill(&mut rest)? {
                directory
                    .failures
                    .push(format!("its directory is damaged behind {count} entries"));
                break;
            }
            count += 1;
            if count > MAX_ENTRIES {
                directory
                    .failures
                    .push(format!("it has more than {MAX_ENTRIES} entries"));
                break;
            }
            let (mut names, head, own) = entry(&record, &rest, base);
            // A log must not be lost by a second name.
            let chosen = wanted_name(&names, wanted.is_wanted);
            let name = names.swap_remove(chosen.unwrap_or(0));
            let is_folder = is_folder(&name);
            if chosen.is_some() {
                directory.push(&name, head, wanted)?;
            }
            let claim = Claim {
                offset: head.offset(),
                lengths: (lengths[0] as u64, lengths[1] as u64),
                compressed: head.compressed,
                size: head.size.unwrap_or(0),
                has_descriptor: two(&record, 8) & 8 != 0,
                is_stored: two(&record, 10) == 0,
                is_encrypted: two(&record, 8) & 1 != 0,
                // Messages are only opened if somebody asks for them.
                is_opened: chosen.is_some() && !ends_with(&name, MESSAGES),
                is_folder,
                own,
                name,
            };
            accounts.add(claim, &rest, wanted)?;
        }
        Ok((directory, count, accounts))
    }

    /// Reads the piece of the file that precedes the last one. Returns false if there is none, or enough was read.
    fn next_piece(&mut self) -> Result<bool, StorageError> {
        self.interrupt.check()?;
        let (size, is_first) = (self.file.size(), self.tail.is_empty());
        if !is_first && (self.start == 0 || size - self.start > MAX_BEHIND) {
            return Ok(false);
        }
        // A record needs the locator in front of it.
        let end = size.min(self.start.saturating_add((LOCATOR + END) as u64));
        self.start = end.saturating_sub(if is_first { TAIL } else { PIECE });
        self.tail.resize((end - self.start) as usize, 0);
        self.file.read_at(&mut self.tail, self.start)?;
        Ok(true)
    }

    /// Whether the piece is the end of the file.
    fn is_tail(&self) -> bool {
        self.start + self.tail.len() as u64 == self.file.size()
    }

    /// The last end records of the piece, each with the offset at which its comment ends. Those whose comment is cut short
    /// count if there are no other ones.
    fn ends(&self) -> Vec<(usize, u64)> {
        let size = self.file.size();
        let (mut ends, mut counts) = (Vec::new(), [0; 3]);
        for at in memchr::memmem::rfind_iter(&self.tail, b"PK\x05\x06") {
            let Some(record) = self.tail.get(at..at + END) else {
                continue;
            };
            let end = self.start + (at + END) as u64 + u64::from(two(record, 20));
            let count = &mut counts[(end.cmp(&size) as i8 + 1) as usize];
            let is_in_next = at < LOCATOR && self.start > 0;
            if *count < MAX_ENDS && !is_in_next {
                *count += 1;
                ends.push((at, end));
            }
        }
        if ends.iter().any(|&(_, end)| end <= size) {
            ends.retain(|&(_, end)| end <= size);
        }
        ends
    }

    /// The comment of an end record at a place, which ends at an offset, or what there is of it.
    fn comment(&self, at: usize, end: u64) -> &[u8] {
        let rest = &self.tail[at + END..];
        let len = (end - self.start) as usize - (at + END);
        &rest[..len.min(rest.len())]
    }

    /// The first bytes of the file.
    fn magic(&self) -> Result<[u8; 4], StorageError> {
        let mut magic = [0; 4];
        let len = self.file.size().min(4) as usize;
        self.file.read_at(&mut magic[..len], 0)?;
        Ok(magic)
    }

    /// The directory according to the end record at a place, or its ZIP64 record.
    fn end(&self, at: usize) -> Result<End, StorageError> {
        let record = &self.tail[at..];
        let (mut parts, mut own_part) = (u32::from(two(record, 6)), u32::from(two(record, 4)));
        let (after, size) = (
            self.start + (at + END) as u64 + u64::from(two(record, 20)),
            self.file.size(),
        );
        let mut end = End {
            end: self.start + at as u64,
            others: [0..0, after..size],
            len: u64::from(four(record, 12)),
            offset: u64::from(four(record, 16)),
            count: u64::from(two(record, 10)),
            is_zip64: false,
        };
        let locator = at.checked_sub(LOCATOR).map(|from| &self.tail[from..at]);
        if let Some(locator) = locator.filter(|locator| locator.starts_with(b"PK\x06\x07")) {
            if four(locator, 16) > 1 {
                return unusable("it is a part of an archive of several files");
            }
            // It precedes its locator. Its offset is wrong if other bytes precede the archive.
            let mut record = [0; END64];
            let locator_at = end.end - LOCATOR as u64;
            let places = [number::<8>(locator, 8), locator_at.saturating_sub(END64 as u64)];
            let mut found = None;
            for place in places {
                let end = place.checked_add(END64 as u64);
                if end.is_some_and(|end| end <= locator_at) {
                    self.file.read_at(&mut record, place)?;
                    if record.starts_with(b"PK\x06\x06") {
                        found = Some(place);
                        break;
                    }
                }
            }
            let Some(place) = found else {
                return unusable("the ZIP64 record of its directory is damaged");
            };
            (own_part, parts) = (four(&record, 16), four(&record, 20));
            end = End {
                end: place,
                others: [place + END64 as u64..locator_at, after..size],
                len: number::<8>(&record, 40),
                offset: number::<8>(&record, 48),
                count: number::<8>(&record, 32),
                is_zip64: true,
            };
        }
        if own_part != 0 || parts != 0 {
            return unusable("it is a part of an archive of several files");
        }
        Ok(end)
    }
}

/// The names and the entry of a record and its variable fields, with what its local header should repeat.
fn entry(record: &[u8; RECORD], rest: &[u8], base: u64) -> (Vec<String>, Head, Own) {
    let (name, rest) = rest.split_at(usize::from(two(record, 28)));
    let extra = &rest[..usize::from(two(record, 30))];
    let own = Own {
        name: crc32fast::hash(name),
        method: two(record, 10),
        checksum: four(record, 16),
    };
    let flags = two(record, 8);
    let mut method = two(record, 10);
    let mut checksum = Some(four(record, 16));
    let mut sizes = [24, 20, 42].map(|at| u64::from(four(record, at)));
    let mut aes = None;
    for (id, field) in extra_fields(extra) {
        match id {
            // Those of the sizes and the offset that are all ones in the record.
            ZIP64 => {
                let mut wide = field.chunks_exact(8).map(|bytes| number::<8>(bytes, 0));
                for size in sizes.iter_mut().filter(|size| **size == u64::from(u32::MAX)) {
                    *size = wide.next().unwrap_or(*size);
                }
            }
            0x9901 if field.len() >= 7 => aes = Some((two(field, 0), field[4], two(field, 5))),
            _ => {}
        }
    }
    let encryption = match aes {
        _ if flags & 1 == 0 => Encryption::None,
        Some((version, strength, inner)) if method == 99 => {
            method = inner;
            if version == 2 {
                checksum = None;
            }
            Encryption::Aes { strength }
        }
        // Bit 6: strong encryption, bit 13: the directory is encrypted.
        _ if flags & (1 << 6 | 1 << 13) != 0 || method == 99 => Encryption::Unsupported,
        _ => Encryption::Classic {
            check: if flags & 8 == 0 { record[19] } else { record[13] },
        },
    };
    let mode = four(record, 38) >> 16;
    let is_unix = two(record, 4) >> 8 == UNIX;
    let [size, compressed, offset] = sizes;
    let head = Head {
        place: Place::Local {
            offset: base.saturating_add(offset),
            header: (LOCAL + usize::from(two(record, 28)) + extra.len() + 64) as u64,
            own,
        },
        compressed,
        size: Some(size),
        checksum,
        method: Method::of_zip(method),
        encryption,
        refusal: (is_unix && mode & KIND == LINK).then_some(SYMBOLIC_LINK),
        limit: u64::MAX,
    };
    (names(name, own.name, extra), head, own)
}
