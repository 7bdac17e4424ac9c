//! Provider binaries: the resources of a PE file that have to do with messages.
//!
//! A provider compiles its messages into a `.dll`, `.exe` or `.sys`, and the texts of each language often into a file
//! `en-US/x.dll.mui` next to `x.dll`. Two kinds of resources matter: tables of messages (type 11, `RT_MESSAGETABLE`), one
//! for each language, and the compiled manifest (type `WEVT_TEMPLATE`). The crate `object` reads the PE file.

mod resource;
pub mod table;
pub mod manifest;

use std::ops::Range;
use std::sync::Arc;

use evtx_format::Interrupt;
use object::LittleEndian as LE;
use object::pe::ImageResourceDirectoryEntry;
use object::read::pe::{
    ImageNtHeaders, PeFile, PeFile32, PeFile64, ResourceDirectory, ResourceDirectoryEntryData, ResourceNameOrId,
};

use crate::error::{Error, Result};
use manifest::Manifest;
use resource::Resource;
use table::MessageTable;

/// The resources of one binary that are looked at, at most. *(choice)*
const MAX_RESOURCES: usize = 1024;

/// The entries of directories that are looked at, at most. *(choice)*
const MAX_ENTRIES: usize = 1 << 17;

/// What the messages of a file may take besides twice its size, in bytes. *(choice)*
const MAX_MEMORY: usize = 16 << 20;

/// The bytes that are copied between two checks for an interrupt.
const PIECE: usize = 1 << 20;

/// The type of tables of messages.
const RT_MESSAGETABLE: u16 = 11;

/// The resources of a binary that have to do with messages. They do not borrow from the file.
#[derive(Debug, Default)]
pub struct Binary {
    /// The tables of messages.
    pub tables: Vec<MessageTable>,
    /// The compiled manifests. Most binaries have one or none.
    pub manifests: Vec<Manifest>,
    /// What could not be read.
    pub problems: Vec<Error>,
    /// The size of its resources in bytes.
    size: usize,
}

impl Binary {
    /// About how many bytes of memory its messages take.
    pub fn bytes(&self) -> usize {
        let tables = self.tables.iter().map(MessageTable::bytes).sum::<usize>();
        self.size + tables + self.manifests.iter().map(Manifest::bytes).sum::<usize>()
    }

    /// Reads the resources of a PE file. A binary without messages is empty.
    ///
    /// # Errors
    /// If the bytes are not a PE file, if their messages take more memory than twice the file and 16 MiB, or if the work is
    /// interrupted.
    pub fn read(file: Vec<u8>, interrupt: Interrupt<'_>) -> Result<Self> {
        let mut problems = Vec::new();
        let found = if let Ok(pe) = PeFile64::parse(&*file) {
            resources_of(&pe, &mut problems, interrupt)?
        } else if let Ok(pe) = PeFile32::parse(&*file) {
            resources_of(&pe, &mut problems, interrupt)?
        } else {
            return Err(Error::NotABinary);
        };
        let limit = MAX_MEMORY + 2 * file.len();
        let (all, starts) = only(&file, &found, interrupt)?;
        drop(file);
        let mut binary = Binary {
            size: all.len(),
            problems,
            ..Binary::default()
        };
        for (found, start) in found.into_iter().zip(starts) {
            interrupt.check()?;
            let bytes = Resource::new(&all, start..start + found.range.len());
            let (what, is_damaged) = match found.kind {
                Kind::Messages => {
                    let table = MessageTable::new(found.language, bytes, interrupt)?;
                    let is_damaged = table.is_damaged;
                    binary.tables.push(table);
                    ("a table of messages", is_damaged)
                }
                Kind::Manifest => {
                    let manifest = Manifest::new(bytes, interrupt)?;
                    let is_damaged = manifest.is_damaged;
                    binary.manifests.push(manifest);
                    ("a manifest", is_damaged)
                }
            };
            let offset = u64::from(found.address);
            if is_damaged {
                let why = "only a part of it can be read";
                binary.problems.push(Error::Damaged { what, offset, why });
            }
            if binary.bytes() > limit {
                return Err(Error::too_large(what, offset, binary.bytes(), limit));
            }
        }
        Ok(binary)
    }
}

/// Where the resources of a file are.
fn resources_of<'f, P: ImageNtHeaders>(
    pe: &PeFile<'f, P, &'f [u8]>,
    problems: &mut Vec<Error>,
    interrupt: Interrupt<'_>,
) -> Result<Vec<Found>> {
    let sections = pe.section_table();
    let directory = match pe.data_directories().resource_directory(pe.data(), &sections) {
        Ok(Some(directory)) => directory,
        Ok(None) => return Ok(Vec::new()),
        Err(_) => {
            let (what, why) = ("the directory of resources", "it is outside of the file");
            problems.push(Error::Damaged { what, offset: 0, why });
            return Ok(Vec::new());
        }
    };
    // Resources that overlap could take more work than the file.
    let mut room = pe.data().len();
    let mut found = Vec::new();
    for mut resource in resources(directory, interrupt)? {
        let place = sections.pe_file_range_at(resource.address);
        let (start, size) = (place.map(|(start, _)| start as usize), resource.range.len());
        let range = start.map(|start| start..start + size);
        let range = range.filter(|range| {
            let is_inside = place.is_some_and(|(_, left)| size <= left as usize) && range.end <= pe.data().len();
            is_inside && size <= room
        });
        let Some(range) = range else {
            problems.push(Error::Damaged {
                what: "a resource",
                offset: resource.address.into(),
                why: "its size or address is outside of its section, or it overlaps others",
            });
            continue;
        };
        room -= size;
        resource.range = range;
        found.push(resource);
    }
    Ok(found)
}

/// The bytes of resources without the rest of the file, and where each starts in them.
fn only(file: &[u8], found: &[Found], interrupt: Interrupt<'_>) -> Result<(Arc<Vec<u8>>, Vec<usize>)> {
    let mut sorted: Vec<_> = (0..found.len()).collect();
    sorted.sort_unstable_by_key(|index| found[*index].range.start);
    // How many bytes are kept, and where they end in the file. Resources can overlap.
    let (mut size, mut end) = (0, 0);
    let (mut parts, mut starts) = (Vec::new(), vec![0; found.len()]);
    for index in sorted {
        let range = found[index].range.clone();
        let new = range.start.max(end)..range.end.max(end);
        starts[index] = size - (new.start - range.start);
        size += new.len();
        end = new.end;
        parts.push(new);
    }
    let mut kept = Vec::new();
    kept.try_reserve_exact(size)
        .map_err(|_| Error::too_large("the resources of the file", 0, size, 0))?;
    for piece in parts.into_iter().flat_map(|part| file[part].chunks(PIECE)) {
        interrupt.check()?;
        kept.extend_from_slice(piece);
    }
    Ok((Arc::new(kept), starts))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Messages,
    Manifest,
}

/// Where a resource is.
struct Found {
    kind: Kind,
    /// The LCID of the language, 0 if it has none.
    language: u16,
    /// The relative virtual address.
    address: u32,
    /// The bytes in the file.
    range: Range<usize>,
}

/// The resources of the two kinds, with their sizes as ranges. A directory has three levels: type, name, language.
fn resources(directory: ResourceDirectory<'_>, interrupt: Interrupt<'_>) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    // Tables can refer to each other in any way.
    let mut entries = 0;
    let mut take = || {
        entries += 1;
        interrupt.check()?;
        Ok::<_, Error>(entries <= MAX_ENTRIES)
    };
    let Ok(types) = directory.root() else {
        return Ok(found);
    };
    for entry in types.entries {
        let kind = match entry.name_or_id() {
            ResourceNameOrId::Id(RT_MESSAGETABLE) => Kind::Messages,
            ResourceNameOrId::Name(name)
                if name
                    .raw_data(directory)
                    .is_ok_and(|name| is_ascii_utf16(name, b"WEVT_TEMPLATE")) =>
            {
                Kind::Manifest
            }
            _ => continue,
        };
        for name in entries_of(directory, entry) {
            if !take()? {
                return Ok(found);
            }
            for entry in entries_of(directory, name) {
                if !take()? || found.len() == MAX_RESOURCES {
                    return Ok(found);
                }
                let language = entry.name_or_id().id().unwrap_or(0);
                if let Ok(ResourceDirectoryEntryData::Data(data)) = entry.data(directory) {
                    found.push(Found {
                        kind,
                        language,
                        address: data.offset_to_data.get(LE),
                        range: 0..data.size.get(LE) as usize,
                    });
                }
            }
        }
    }
    Ok(found)
}

/// The entries of the directory that an entry refers to.
fn entries_of<'d>(
    directory: ResourceDirectory<'d>,
    entry: &ImageResourceDirectoryEntry,
) -> &'d [ImageResourceDirectoryEntry] {
    let table = entry.data(directory).ok().and_then(ResourceDirectoryEntryData::table);
    table.map_or(&[][..], |table| table.entries)
}

fn is_ascii_utf16(utf16: &[u8], ascii: &[u8]) -> bool {
    utf16.len() == 2 * ascii.len()
        && utf16
            .as_chunks::<2>()
            .0
            .iter()
            .zip(ascii)
            .all(|(unit, byte)| *unit == [*byte, 0])
}
