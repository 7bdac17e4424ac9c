//! The directory of a ZIP archive (APPNOTE 4.3.12 to 4.3.16): which entries there are, and where.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use evtx_format::Interrupt;

use crate::archive::codec::Method;
use crate::archive::input::Input;
use crate::storage::{StorageError, StorageFile};

/// Most entries of an archive, and most bytes of its directory.
const MAX_ENTRIES: usize = 1_000_000;
const MAX_DIRECTORY: u64 = 256 << 20;

/// Of how many others an entry can be inside before its size counts, and most bytes that entries for which it counts
/// may have together.
const MAX_DEPTH: usize = 8;
const MAX_OVERLAP: u64 = 1 << 30;

/// Bytes of a record of the directory's end, of a locator of its ZIP64 record, of that, of an entry's record, and of
/// the header of its data, without what follows each.
const END: usize = 22;
const LOCATOR: usize = 20;
const END64: usize = 56;
const RECORD: usize = 46;
const LOCAL: usize = 30;

/// Bytes at the end of the file where the directory's end is looked for: it, and its comment.
const TAIL: u64 = (END + LOCATOR + 0xFFFF) as u64;

const SAYS_UTF8: u16 = 1 << 11;
const UNIX: u16 = 3;
/// The kind of file in a Unix mode, and that of a link.
const KIND: u32 = 0o170_000;
const LINK: u32 = 0o120_000;

/// How an entry is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encryption {
    None,
    /// The old cipher, with the byte that tells most wrong passwords.
    Classic {
        check: u8,
    },
    /// AES of a strength, 1 to 3.
    Aes {
        strength: u8,
    },
    Unsupported,
}

/// What the directory says of an entry, beside its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    /// Where the header of its data is in the file.
    pub(crate) offset: u64,
    /// Bytes of that header, by the directory.
    pub(crate) header: u64,
    pub(crate) compressed: u64,
    /// Its size, if it is known.
    pub(crate) size: Option<u64>,
    /// Its CRC-32, if it has one.
    pub(crate) checksum: Option<u32>,
    pub(crate) method: Method,
    pub(crate) encryption: Encryption,
    pub(crate) is_link: bool,
    /// How many bytes of it are read at most.
    pub(crate) limit: u64,
}

/// The entries of an archive.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// Their names and heads, in the order of the directory. Folders are left out.
    pub(crate) entries: Vec<(String, Head)>,
    /// Why there may be more.
    pub(crate) failure: Option<String>,
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut le = [0; 8];
    le[..N].copy_from_slice(&bytes[at..at + N]);
    u64::from_le_bytes(le)
}

fn two(bytes: &[u8], at: usize) -> u16 {
    number::<2>(bytes, at) as u16
}

fn four(bytes: &[u8], at: usize) -> u32 {
    number::<4>(bytes, at) as u32
}

pub(crate) fn archive_error<T>(text: impl Into<String>) -> Result<T, StorageError> {
    Err(StorageError::Archive(text.into()))
}

/// Where the directory is.
struct End {
    /// Its range in the file.
    start: u64,
    end: u64,
    /// What is added to the offsets of entries: the bytes in front of the archive.
    base: u64,
}

impl Directory {
    /// Reads the directory of an archive.
    ///
    /// # Errors
    /// Those of the storage, and [`StorageError::Archive`] if there is no directory, or if it is too large.
    pub(crate) fn read(
        file: &dyn StorageFile,
        is_remote: bool,
        interrupt: Interrupt<'_>,
    ) -> Result<Directory, StorageError> {
        let end = find_end(file)?;
        let size = end.end - end.start;
        if size > MAX_DIRECTORY {
            return archive_error(format!(
                "its directory has {size} bytes, more than {} MiB",
                MAX_DIRECTORY >> 20
            ));
        }
        let failure = RefCell::new(None);
        let mut input = Input::new(file, end.start, end.end, is_remote, interrupt, &failure);
        let mut directory = Directory::default();
        let mut record = [0; RECORD];
        let mut rest = Vec::new();
        let mut count = 0_usize;
        while input.offset() < end.end {
            if count.is_multiple_of(1024) {
                interrupt.check()?;
            }
            let is_whole = input.fill(&mut record)? && record.starts_with(b"PK\x01\x02");
            rest.resize(
                [28, 30, 32]
                    .iter()
                    .map(|&at| usize::from(two(&record, at)))
                    .sum::<usize>(),
                0,
            );
            // A signature may follow the entries.
            if record.starts_with(b"PK\x05\x05") && count > 0 {
                break;
            }
            if !is_whole || !input.fill(&mut rest)? {
                directory.failure = Some(format!("its directory is damaged behind {count} entries"));
                break;
            }
            count += 1;
            if count > MAX_ENTRIES {
                directory.failure = Some(format!("it has more than {MAX_ENTRIES} entries"));
                break;
            }
            directory.entries.extend(entry(&record, &rest, end.base));
        }
        directory.limit_overlaps();
        Ok(directory)
    }

    /// Limits what is read of entries whose data starts inside of that of many others: such entries make a small archive
    /// expand to any size. Inside of a few is where an entry is if the sizes of others are wrong.
    fn limit_overlaps(&mut self) {
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        order.sort_by_key(|&index| self.entries[index].1.offset);
        let (mut ends, mut left) = (BinaryHeap::new(), MAX_OVERLAP);
        for index in order {
            let head = &mut self.entries[index].1;
            while ends.peek().is_some_and(|&Reverse(end)| end <= head.offset) {
                ends.pop();
            }
            if ends.len() >= MAX_DEPTH {
                head.limit = head.size.filter(|&size| size <= left).unwrap_or(0);
                left -= head.limit;
            }
            let end = head.offset.saturating_add(LOCAL as u64).saturating_add(head.compressed);
            ends.push(Reverse(end));
        }
    }
}

/// Finds the directory by the record at the end of the file.
fn find_end(file: &dyn StorageFile) -> Result<End, StorageError> {
    let size = file.size();
    if size == 0 {
        return archive_error("the file is empty");
    }
    let start = size.saturating_sub(TAIL);
    let mut tail = vec![0; (size - start) as usize];
    file.read_at(&mut tail, start)?;
    let is_end = |at: &usize| {
        tail[*at..].starts_with(b"PK\x05\x06") && at + END + usize::from(two(&tail, at + 20)) <= tail.len()
    };
    let Some(at) = (0..=tail.len().saturating_sub(END))
        .rev()
        .find(|at| at + END <= tail.len() && is_end(at))
    else {
        let mut head = [0; 4];
        let head = &mut head[..size.min(4) as usize];
        file.read_at(head, 0)?;
        return archive_error(match &*head {
            b"PK\x03\x04" => "the archive is cut short: it has no directory at its end",
            b"PK\x07\x08" => "it is a part of an archive of several files",
            _ => "it is not a ZIP archive",
        });
    };
    let record = &tail[at..];
    let (mut parts, mut own_part) = (u32::from(two(record, 6)), u32::from(two(record, 4)));
    let (mut len, mut offset) = (u64::from(four(record, 12)), u64::from(four(record, 16)));
    let mut end = start + at as u64;
    let locator = at.checked_sub(LOCATOR).map(|from| &tail[from..at]);
    if let Some(locator) = locator.filter(|locator| locator.starts_with(b"PK\x06\x07")) {
        if four(locator, 16) > 1 {
            return archive_error("it is a part of an archive of several files");
        }
        // It stands in front of its locator. Its offset is wrong if bytes were put in front of the archive.
        let mut record = [0; END64];
        let locator_at = end - LOCATOR as u64;
        let places = [number::<8>(locator, 8), locator_at.saturating_sub(END64 as u64)];
        let mut found = None;
        for place in places {
            if place
                .checked_add(END64 as u64)
                .is_some_and(|behind| behind <= locator_at)
            {
                file.read_at(&mut record, place)?;
                if record.starts_with(b"PK\x06\x06") {
                    found = Some(place);
                    break;
                }
            }
        }
        let Some(place) = found else {
            return archive_error("the ZIP64 record of its directory is damaged");
        };
        (own_part, parts) = (four(&record, 16), four(&record, 20));
        (len, offset) = (number::<8>(&record, 40), number::<8>(&record, 48));
        end = place;
    }
    if own_part != 0 || parts != 0 {
        return archive_error("it is a part of an archive of several files");
    }
    let Some(start) = end.checked_sub(len) else {
        return archive_error("its directory is larger than what is there of the file");
    };
    let Some(base) = start.checked_sub(offset) else {
        return archive_error("bytes are missing in front of its directory");
    };
    Ok(End { start, end, base })
}

/// An entry of its record and what follows it; `None` for a folder.
fn entry(record: &[u8; RECORD], rest: &[u8], base: u64) -> Option<(String, Head)> {
    let (name, rest) = rest.split_at(usize::from(two(record, 28)));
    let extra = &rest[..usize::from(two(record, 30))];
    let flags = two(record, 8);
    let mut method = two(record, 10);
    let mut checksum = Some(four(record, 16));
    let mut sizes = [24, 20, 42].map(|at| u64::from(four(record, at)));
    let mut unicode = None;
    let mut aes = None;
    let mut fields = extra;
    while let Some((head, behind)) = fields.split_at_checked(4) {
        let len = usize::from(two(head, 2));
        let Some((field, next)) = behind.split_at_checked(len) else {
            break;
        };
        match two(head, 0) {
            // Those of the sizes and the offset that do not fit the record.
            0x0001 => {
                let mut wide = field.chunks_exact(8).map(|bytes| number::<8>(bytes, 0));
                for size in sizes.iter_mut().filter(|size| **size == u64::from(u32::MAX)) {
                    *size = wide.next().unwrap_or(*size);
                }
            }
            // The name as UTF-8, if the name of the record is still the one that it is for.
            0x7075 if len > 5 && four(field, 1) == crc32fast::hash(name) => {
                unicode = std::str::from_utf8(&field[5..]).ok();
            }
            0x9901 if len >= 7 => aes = Some((two(field, 0), field[4], two(field, 5))),
            _ => {}
        }
        fields = next;
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
    let name = unicode.map_or_else(|| text(name, flags & SAYS_UTF8 != 0), str::to_owned);
    let [size, compressed, offset] = sizes;
    let is_folder = name.ends_with(['/', '\\']) && size == 0;
    let head = Head {
        offset: base.saturating_add(offset),
        header: (LOCAL + usize::from(two(record, 28)) + extra.len() + 64) as u64,
        compressed,
        size: Some(size),
        checksum,
        method: Method::of_zip(method),
        encryption,
        is_link: is_unix && mode & KIND == LINK,
        limit: u64::MAX,
    };
    (!is_folder).then_some((name, head))
}

/// A name as text. Bytes that are not UTF-8 are code page 437, in which every byte is a character.
fn text(name: &[u8], says_utf8: bool) -> String {
    match std::str::from_utf8(name) {
        // Many writers do not set the flag.
        Ok(text) => text.to_owned(),
        Err(_) => {
            debug_assert!(says_utf8 || !name.is_ascii());
            name.iter().map(|&byte| character(byte)).collect()
        }
    }
}

fn character(byte: u8) -> char {
    const UPPER: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
                         αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{A0}";
    match byte {
        0..0x80 => char::from(byte),
        _ => UPPER
            .chars()
            .nth(usize::from(byte) - 0x80)
            .unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

/// How many bytes of an entry's header are in front of its name, and where the data is behind it. `None` if it is no
/// such header.
pub(crate) fn local_header(bytes: &[u8; LOCAL]) -> Option<u64> {
    let follows = u64::from(two(bytes, 26)) + u64::from(two(bytes, 28));
    bytes.starts_with(b"PK\x03\x04").then_some(follows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_name_is_a_character_of_its_own() {
        let all: std::collections::HashSet<char> = (0..=255).map(character).collect();
        assert_eq!(all.len(), 256);
        assert!(!all.contains(&char::REPLACEMENT_CHARACTER));
        assert_eq!(text(b"M\x81ller.evtx", false), "Müller.evtx");
        assert_eq!(text("Müller.evtx".as_bytes(), false), "Müller.evtx");
        assert_eq!(text(b"\xFF.evtx", true), "\u{A0}.evtx");
    }
}
