//! Provider binaries: the resources of a PE file that have to do with messages.
//!
//! A provider compiles its messages into a `.dll`, `.exe` or `.sys`, and the texts of each language often into a file
//! `en-US/x.dll.mui` next to `x.dll`. Two kinds of resources matter: tables of messages (type 11, `RT_MESSAGETABLE`), one
//! for each language, and the compiled manifest (type `WEVT_TEMPLATE`). The crate `object` reads the PE file.

pub mod table;
pub mod manifest;

use evtx_format::Interrupt;
use object::LittleEndian as LE;
use object::read::pe::{
    ImageNtHeaders, PeFile, PeFile32, PeFile64, ResourceDirectory, ResourceDirectoryEntryData, ResourceDirectoryTable,
    ResourceNameOrId,
};

use crate::error::{Error, Result};
use manifest::Manifest;
use table::MessageTable;

/// The resources of one binary that are looked at, at most. *(choice)*
const MAX_RESOURCES: usize = 1024;

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
}

impl Binary {
    /// About how many bytes of memory its messages take.
    pub fn bytes(&self) -> usize {
        let manifests = self.manifests.iter().flat_map(|manifest| &manifest.providers);
        let events = manifests.map(|provider| provider.events.len()).sum::<usize>();
        self.tables.iter().map(MessageTable::bytes).sum::<usize>() + events * size_of::<manifest::DeclaredEvent>()
    }

    /// Reads the resources of a PE file. A binary without messages is empty.
    ///
    /// # Errors
    /// If the bytes are not a PE file, or if the work is interrupted.
    pub fn read(file: &[u8], interrupt: Interrupt<'_>) -> Result<Self> {
        if let Ok(pe) = PeFile64::parse(file) {
            return Self::of(&pe, interrupt);
        }
        match PeFile32::parse(file) {
            Ok(pe) => Self::of(&pe, interrupt),
            Err(_) => Err(Error::NotABinary),
        }
    }

    fn of<'f, P: ImageNtHeaders>(pe: &PeFile<'f, P, &'f [u8]>, interrupt: Interrupt<'_>) -> Result<Self> {
        let mut binary = Binary::default();
        let sections = pe.section_table();
        let directory = match pe.data_directories().resource_directory(pe.data(), &sections) {
            Ok(Some(directory)) => directory,
            Ok(None) => return Ok(binary),
            Err(_) => {
                let (what, why) = ("the directory of resources", "it is outside of the file");
                binary.problems.push(Error::Damaged { what, offset: 0, why });
                return Ok(binary);
            }
        };
        // Resources that overlap could take more memory than the file.
        let mut room = pe.data().len();
        for found in resources(directory) {
            interrupt.check()?;
            let offset = u64::from(found.address);
            let bytes = sections
                .pe_data_at(pe.data(), found.address)
                .and_then(|rest| rest.get(..found.size as usize))
                .filter(|bytes| bytes.len() <= room);
            let Some(bytes) = bytes else {
                let (what, why) = (
                    "a resource",
                    "its size or address is outside of its section, or it overlaps others",
                );
                binary.problems.push(Error::Damaged { what, offset, why });
                continue;
            };
            room -= bytes.len();
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
            if is_damaged {
                let why = "only a part of it can be read";
                binary.problems.push(Error::Damaged { what, offset, why });
            }
        }
        Ok(binary)
    }
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
    size: u32,
}

/// The resources of the two kinds. A directory has three levels: type, name, language.
fn resources(directory: ResourceDirectory<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    // Each entry is visited once per level, however the tables refer to each other.
    let mut visits = 0;
    let Ok(types) = directory.root() else {
        return found;
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
        for name in tables_of(directory, entry) {
            for entry in name.entries {
                visits += 1;
                if visits > MAX_RESOURCES {
                    return found;
                }
                let language = entry.name_or_id().id().unwrap_or(0);
                if let Ok(ResourceDirectoryEntryData::Data(data)) = entry.data(directory) {
                    let (address, size) = (data.offset_to_data.get(LE), data.size.get(LE));
                    found.push(Found {
                        kind,
                        language,
                        address,
                        size,
                    });
                }
            }
        }
    }
    found
}

/// The tables of languages below an entry of a type.
fn tables_of<'d>(
    directory: ResourceDirectory<'d>,
    entry: &object::pe::ImageResourceDirectoryEntry,
) -> impl Iterator<Item = ResourceDirectoryTable<'d>> {
    let names = entry.data(directory).ok().and_then(ResourceDirectoryEntryData::table);
    let entries = names.map_or(&[][..], |names| names.entries);
    let tables = entries.iter().take(MAX_RESOURCES);
    tables.filter_map(move |name| name.data(directory).ok().and_then(ResourceDirectoryEntryData::table))
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
