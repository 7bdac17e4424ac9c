//! The files of a header: their names, which have no bytes, and which are links.

use evtx_format::Interrupt;
use evtx_scan::StorageError;

use super::bytes::{Bytes, damaged};
use super::streams::{Streams, is_here};
use crate::codec::Method;
use crate::findings::{Findings, MAX_TOLD, NAMED, full_folder};
use crate::head::{Directory, Encryption, Head, MAX_ENTRIES, Place, SYMBOLIC_LINK, Wanted};
use crate::memory::ListMemory;
use crate::names::is_folder;

// IDs of properties.
const END: u64 = 0x00;
const NO_STREAMS: u64 = 0x0E;
const EMPTY_FILES: u64 = 0x0F;
const ANTI_ITEMS: u64 = 0x10;
const NAMES: u64 = 0x11;
const ATTRIBUTES: u64 = 0x15;

/// Attributes of Windows: a file with special data, such as a link. With the other bit, the upper half is a mode of Unix,
/// with the kind of file.
const REPARSE_POINT: u32 = 0x400;
const UNIX: u32 = 0x8000;
const KIND: u32 = 0o170_000;
const LINK: u32 = 0o120_000;
/// Bytes of the smallest log. What has fewer and is marked as special is a link. What has more can be a log whose volume
/// removes duplicates or keeps files in a cloud.
const LOG: u64 = 4096;

/// Most units of UTF-16 in a name. Windows has at most 32,767.
const MAX_NAME: usize = 0xFFFF;

/// What a header says of its files. Bits are by the number of the file among those that they count.
#[derive(Default)]
struct Files<'b> {
    count: usize,
    /// Whether a file has no bytes.
    no_stream: Vec<bool>,
    /// Of the files without bytes: whether it is a file, and not a folder; and whether it deletes one.
    is_file: Vec<bool>,
    is_anti: Vec<bool>,
    names: Bytes<'b>,
    attributes: Vec<u32>,
}

impl<'b> Files<'b> {
    fn read(bytes: &mut Bytes<'b>, memory: &mut ListMemory, interrupt: Interrupt<'_>) -> Result<Self, StorageError> {
        let mut files = Files {
            count: bytes.count(MAX_ENTRIES, "entries")?,
            ..Files::default()
        };
        // Three bits of each as bytes, attributes, and one more while these are read.
        memory.take(8 * files.count)?;
        // Files without bytes.
        let mut without = 0;
        loop {
            interrupt.check()?;
            let property = bytes.number()?;
            if property == END {
                return Ok(files);
            }
            let len = bytes.number()?;
            let mut own = Bytes(bytes.take(len)?);
            match property {
                NO_STREAMS => {
                    files.no_stream = own.bits(files.count)?;
                    without = files.no_stream.iter().filter(|&&is_set| is_set).count();
                }
                EMPTY_FILES => files.is_file = own.bits(without)?,
                ANTI_ITEMS => files.is_anti = own.bits(without)?,
                NAMES => {
                    is_here(&mut own)?;
                    files.names = own;
                }
                ATTRIBUTES => files.attributes = attributes(&mut own, files.count)?,
                // Times, a start in a volume, and padding.
                _ => {}
            }
        }
    }

    /// Takes the next name: UTF-16, little endian, up to a zero. U+FFFD replaces what is not UTF-16.
    fn name(&mut self) -> Result<String, StorageError> {
        let (units, _) = self.names.0.as_chunks::<2>();
        let mut units = units.iter().map(|&unit| u16::from_le_bytes(unit));
        let Some(len) = units.clone().take(MAX_NAME + 1).position(|unit| unit == 0) else {
            return damaged();
        };
        let name = char::decode_utf16(units.by_ref().take(len));
        let name = name
            .map(|letter| letter.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect();
        self.names.take(2 * (len as u64 + 1))?;
        Ok(name)
    }
}

/// Reads the attributes of so many files: 0 if there are none.
fn attributes(bytes: &mut Bytes<'_>, count: usize) -> Result<Vec<u32>, StorageError> {
    let is_there = bytes.bits_or_all(count)?;
    is_here(bytes)?;
    let attributes = is_there
        .into_iter()
        .map(|is_there| if is_there { bytes.four() } else { Ok(0) });
    attributes.collect()
}

/// The entries that a list of files names, out of these streams. Folders, and items that delete files, are left out.
///
/// # Errors
/// [`StorageError::Unusable`] and [`StorageError::Interrupted`].
pub(super) fn entries(
    bytes: &mut Bytes<'_>,
    streams: &Streams,
    wanted: &mut Wanted<'_>,
    interrupt: Interrupt<'_>,
) -> Result<Directory, StorageError> {
    let mut files = Files::read(bytes, &mut wanted.memory, interrupt)?;
    let (mut parts, mut empty) = (streams.parts.iter(), 0..);
    let (mut directory, mut findings) = (Directory::default(), Findings::new(MAX_TOLD));
    for nth in 0..files.count {
        interrupt.check()?;
        let name = files.name()?;
        let mut head = Head {
            place: Place::File { offset: 0 },
            compressed: 0,
            size: Some(0),
            checksum: None,
            method: Method::Stored,
            encryption: Encryption::None,
            refusal: None,
            limit: u64::MAX,
        };
        if files.no_stream.get(nth) == Some(&true) {
            let empty = empty.next().unwrap_or(0);
            let is = |bits: &[bool]| bits.get(empty) == Some(&true);
            if !is(&files.is_file) || is(&files.is_anti) {
                continue;
            }
        } else {
            let Some(part) = parts.next() else { return damaged() };
            let folder = &streams.folders[part.folder as usize];
            head.place = Place::Block {
                block: part.folder,
                offset: part.offset,
            };
            (head.compressed, head.size, head.checksum) = (part.size, Some(part.size), part.checksum);
            head.method = folder.unsupported().map_or(Method::Stored, Method::Coder);
            if folder.is_encrypted() {
                head.encryption = Encryption::Block;
            }
        }
        let attributes = files.attributes.get(nth).copied().unwrap_or(0);
        head.refusal = is_link(attributes, head.compressed).then_some(SYMBOLIC_LINK);
        if head.compressed > 0 && is_folder(&name) {
            findings.tell(&full_folder(&name, head.compressed));
        }
        directory.push(&name, head, wanted)?;
    }
    directory.failures = findings.into_texts(NAMED);
    let left = parts.count();
    if left > 0 {
        directory
            .failures
            .push(format!("its list of entries has no names for {left} of them"));
    }
    Ok(directory)
}

/// Whether an entry of so many bytes with these attributes is a link.
fn is_link(attributes: u32, size: u64) -> bool {
    match attributes & UNIX {
        0 => attributes & REPARSE_POINT != 0 && size < LOG,
        _ => attributes >> 16 & KIND == LINK,
    }
}
