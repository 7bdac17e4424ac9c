//! The streams of a header: packed bytes, the folders that decode them, and what comes out of each.

use std::ops::Range;

use evtx_format::Interrupt;
use evtx_scan::StorageError;

use super::bytes::{Bytes, damaged};
use super::folder::{Chain, Folder};
use crate::head::MAX_ENTRIES;
use crate::memory::{ListMemory, unusable};

/// Bytes before the packed streams.
pub(super) const START: u64 = 32;

/// The most packed streams, and the most outputs of coders, of an archive.
const MAX_STREAMS: usize = 2 * MAX_ENTRIES;

// IDs of properties.
const END: u64 = 0x00;
const PACKED: u64 = 0x06;
const FOLDERS: u64 = 0x07;
const PARTS: u64 = 0x08;
const SIZES: u64 = 0x09;
const CHECKSUMS: u64 = 0x0A;
const CHAINS: u64 = 0x0B;
const OUTPUTS: u64 = 0x0C;
const COUNTS: u64 = 0x0D;

/// An entry in what a folder decompresses to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    /// The index of the folder.
    pub(super) folder: u32,
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) checksum: Option<u32>,
}

/// The streams of an archive.
#[derive(Default)]
pub(super) struct Streams {
    pub(super) folders: Vec<Folder>,
    /// In the order of the files that have bytes.
    pub(super) parts: Vec<Part>,
}

/// What a checksum takes while it is read: itself, and whether it is there.
const CHECKSUM: usize = size_of::<Option<u32>>() + 1;

/// Packed streams: where they start in the file, and their sizes.
#[derive(Default)]
struct Packed {
    start: u64,
    sizes: Vec<u64>,
}

impl Streams {
    /// Reads the streams up to their end.
    ///
    /// # Errors
    /// [`StorageError::Unusable`] and [`StorageError::Interrupted`].
    pub(super) fn read(
        bytes: &mut Bytes<'_>,
        memory: &mut ListMemory,
        interrupt: Interrupt<'_>,
    ) -> Result<Self, StorageError> {
        let (mut packed, mut streams, mut last) = (Packed::default(), Streams::default(), END);
        loop {
            let property = bytes.number()?;
            // Each comes once: the work for one depends on those before it, not only on its own bytes.
            if property != END && property <= last {
                return damaged();
            }
            match property {
                END => break,
                PACKED => packed = Packed::read(bytes, memory, interrupt)?,
                FOLDERS => streams.folders = folders(bytes, &packed, memory, interrupt)?,
                PARTS => streams.parts = parts(bytes, &streams.folders, memory, interrupt)?,
                _ => return damaged(),
            }
            last = property;
        }
        if last != PARTS {
            memory.take(streams.folders.len() * (size_of::<usize>() + size_of::<Part>()))?;
            streams.parts = split(&streams.folders, &vec![1; streams.folders.len()], &mut None, interrupt)?;
        }
        Ok(streams)
    }

    /// Adds where the packed bytes are of folders that entries come out of.
    ///
    /// # Errors
    /// [`StorageError::Unusable`] if the sections take too much memory.
    pub(super) fn claim(&self, spans: &mut Vec<Range<u64>>, memory: &mut ListMemory) -> Result<(), StorageError> {
        for parts in self.parts.chunk_by(|a, b| a.folder == b.folder) {
            let section = self.folders[parts[0].folder as usize].section();
            match spans.last_mut() {
                Some(last) if last.end == section.start => last.end = section.end,
                _ => {
                    memory.take(size_of_val(&section))?;
                    spans.push(section);
                }
            }
        }
        Ok(())
    }
}

impl Packed {
    fn read(bytes: &mut Bytes<'_>, memory: &mut ListMemory, interrupt: Interrupt<'_>) -> Result<Self, StorageError> {
        let Some(start) = bytes.size()?.checked_add(START) else {
            return damaged();
        };
        let count = bytes.count(MAX_STREAMS, "packed streams")?;
        memory.take(size_of::<u64>() * count)?;
        let mut sizes = Vec::with_capacity(count);
        loop {
            match bytes.number()? {
                END if sizes.len() == count => return Ok(Packed { start, sizes }),
                SIZES if sizes.is_empty() => {
                    for _ in 0..count {
                        interrupt.check()?;
                        sizes.push(bytes.size()?);
                    }
                }
                CHECKSUMS => {
                    memory.take(CHECKSUM * count)?;
                    drop(bytes.checksums(count)?);
                    memory.give_back(CHECKSUM * count);
                }
                _ => return damaged(),
            }
        }
    }
}

/// Reads folders: the chains of their coders, the sizes of all outputs, and checksums.
fn folders(
    bytes: &mut Bytes<'_>,
    packed: &Packed,
    memory: &mut ListMemory,
    interrupt: Interrupt<'_>,
) -> Result<Vec<Folder>, StorageError> {
    if bytes.number()? != CHAINS {
        return damaged();
    }
    let count = bytes.count(MAX_ENTRIES, "folders")?;
    is_here(bytes)?;
    memory.take(count * (size_of::<Chain>() + size_of::<Folder>() + CHECKSUM))?;
    let (mut chains, mut outputs) = (Vec::with_capacity(count), 0);
    for _ in 0..count {
        interrupt.check()?;
        let chain = Chain::read(bytes)?;
        memory.take(chain.memory())?;
        outputs += chain.outputs;
        if outputs > MAX_STREAMS {
            return unusable(format!("its folders have more than {MAX_STREAMS} coders"));
        }
        chains.push(chain);
    }
    if bytes.number()? != OUTPUTS {
        return damaged();
    }
    let mut sizes = Vec::with_capacity(outputs);
    for _ in 0..outputs {
        interrupt.check()?;
        sizes.push(bytes.size()?);
    }
    let mut checksums = vec![None; count];
    loop {
        match bytes.number()? {
            END => break,
            CHECKSUMS => checksums = bytes.checksums(count)?,
            _ => return damaged(),
        }
    }
    place(chains, &sizes, &checksums, packed, interrupt)
}

/// Gives each chain its packed streams, which follow each other, and the sizes of its outputs.
fn place(
    chains: Vec<Chain>,
    mut sizes: &[u64],
    checksums: &[Option<u32>],
    packed: &Packed,
    interrupt: Interrupt<'_>,
) -> Result<Vec<Folder>, StorageError> {
    let (mut start, mut streams) = (packed.start, packed.sizes.iter());
    let mut folders = Vec::with_capacity(chains.len());
    for (chain, &checksum) in chains.into_iter().zip(checksums) {
        interrupt.check()?;
        let mut len = 0_u64;
        for _ in 0..chain.inputs {
            let Some(sum) = streams.next().and_then(|&size| len.checked_add(size)) else {
                return damaged();
            };
            len = sum;
        }
        let (own, rest) = sizes.split_at(chain.outputs);
        folders.push(chain.folder(own, (start, len), checksum));
        sizes = rest;
        let Some(end) = start.checked_add(len) else {
            return damaged();
        };
        start = end;
    }
    Ok(folders)
}

/// Reads what comes out of the folders: how many entries there are in each, and their sizes and checksums.
fn parts(
    bytes: &mut Bytes<'_>,
    folders: &[Folder],
    memory: &mut ListMemory,
    interrupt: Interrupt<'_>,
) -> Result<Vec<Part>, StorageError> {
    let mut next = bytes.number()?;
    memory.take(size_of::<usize>() * folders.len())?;
    let mut counts = vec![1; folders.len()];
    if next == COUNTS {
        let mut left = MAX_ENTRIES;
        for count in &mut counts {
            interrupt.check()?;
            *count = bytes.count(left, "entries")?;
            left -= *count;
        }
        next = bytes.number()?;
    }
    // An entry, and while checksums are read also where it is.
    let count = counts.iter().sum::<usize>();
    memory.take(count * (size_of::<Part>() + size_of::<usize>() + CHECKSUM))?;
    let mut sizes = (next == SIZES).then_some(&mut *bytes);
    let mut parts = split(folders, &counts, &mut sizes, interrupt)?;
    if next == SIZES {
        next = bytes.number()?;
    }
    if next == CHECKSUMS {
        // The only entry of a folder has the checksum of the folder.
        let unknown = parts.iter_mut().filter(|part| part.checksum.is_none());
        let mut places = Vec::with_capacity(count);
        places.extend(unknown);
        let unknown = places;
        let checksums = bytes.checksums(unknown.len())?;
        for (part, checksum) in unknown.into_iter().zip(checksums) {
            part.checksum = checksum;
        }
        next = bytes.number()?;
    }
    match next {
        END => Ok(parts),
        _ => damaged(),
    }
}

/// Splits what the folders give into so many entries each. All sizes but the last one of a folder are in `sizes`.
fn split(
    folders: &[Folder],
    counts: &[usize],
    sizes: &mut Option<&mut Bytes<'_>>,
    interrupt: Interrupt<'_>,
) -> Result<Vec<Part>, StorageError> {
    let mut parts = Vec::with_capacity(counts.iter().sum());
    for (index, (folder, &count)) in folders.iter().zip(counts).enumerate() {
        interrupt.check()?;
        let mut offset = 0;
        for nth in 0..count {
            let left = folder.size - offset;
            let size = match sizes {
                _ if nth + 1 == count => left,
                Some(sizes) => sizes.size()?,
                None => return damaged(),
            };
            if size > left {
                return damaged();
            }
            parts.push(Part {
                folder: index as u32,
                offset,
                size,
                checksum: folder.checksum.filter(|_| count == 1),
            });
            offset += size;
        }
    }
    Ok(parts)
}

/// Checks that what follows is in the header itself, and not in a stream of its own, which no program writes.
pub(super) fn is_here(bytes: &mut Bytes<'_>) -> Result<(), StorageError> {
    match bytes.byte()? {
        0 => Ok(()),
        _ => unusable("parts of its list of entries are in streams of their own, which is not supported"),
    }
}
