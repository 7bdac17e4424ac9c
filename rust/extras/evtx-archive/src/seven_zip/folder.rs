//! Folders: what a chain of coders makes of packed bytes.

use std::io::{self, BufRead, BufReader, Read};
use std::ops::Range;

use evtx_format::Interrupt;
use evtx_scan::StorageError;

use super::bytes::{Bytes, damaged};
use super::coder::Coder;
use super::keys::Keys;
use crate::limits::Archives;
use crate::memory::{WindowLease, unusable};

/// The most coders in a folder, and the most streams that go into one. 7-Zip writes at most 9 coders, and has the same
/// limits.
const MAX_CODERS: usize = 32;

/// Bytes that a coder gives to the next one at once.
const PIECE: usize = 1 << 16;

/// The coders of a folder, in the order in which they decode.
#[derive(Debug)]
pub(super) struct Chain {
    /// Each with the index of its output; or the ID of a coder that is not supported.
    coders: Result<Vec<(Coder, usize)>, u64>,
    /// How many outputs there are, and which one is that of the folder.
    pub(super) outputs: usize,
    last: usize,
    /// How many packed streams it reads.
    pub(super) inputs: usize,
}

/// A folder.
#[derive(Debug)]
pub(crate) struct Folder {
    /// Where its packed bytes are in the file, and how many.
    pub(crate) start: u64,
    pub(crate) packed: u64,
    /// What it decompresses to.
    pub(super) size: u64,
    pub(super) checksum: Option<u32>,
    /// Each with the size of what it gives; or the ID of a coder that is not supported.
    coders: Result<Vec<(Coder, u64)>, u64>,
}

impl Chain {
    /// Reads the description of a folder: its coders, the outputs that inputs of other coders are bound to, and the inputs
    /// that are packed streams.
    pub(super) fn read(bytes: &mut Bytes<'_>) -> Result<Self, StorageError> {
        let count = bytes.count(MAX_CODERS, "coders in a folder")?;
        let (mut coders, mut unsupported) = (Vec::new(), None);
        let (mut inputs, mut outputs) = (0, 0);
        for _ in 0..count {
            let coder = Description::read(bytes)?;
            let known = Coder::of(coder.id, coder.properties)?.filter(|_| coder.inputs == 1 && coder.outputs == 1);
            unsupported = unsupported.or(known.is_none().then_some(coder.id));
            coders.extend(known);
            inputs += coder.inputs;
            outputs += coder.outputs;
        }
        if outputs == 0 || inputs + 1 < outputs {
            return damaged();
        }
        let (mut source, mut is_bound) = (vec![None; inputs], vec![false; outputs]);
        for _ in 1..outputs {
            let [input, output] = [bytes.index(inputs)?, bytes.index(outputs)?];
            if source[input].replace(output).is_some() || std::mem::replace(&mut is_bound[output], true) {
                return damaged();
            }
        }
        let packed = inputs + 1 - outputs;
        if packed > 1 {
            for _ in 0..packed {
                bytes.index(inputs)?;
            }
        }
        let last = is_bound.iter().position(|is_bound| !is_bound).unwrap_or_default();
        let coders = match unsupported {
            Some(id) => Err(id),
            None => Ok(in_order(coders, &source, last)?),
        };
        Ok(Chain {
            coders,
            outputs,
            last,
            inputs: packed,
        })
    }

    /// What it takes besides itself, and what its folder does, in bytes.
    pub(super) fn memory(&self) -> usize {
        let coder = |(coder, _): &(Coder, usize)| 2 * size_of::<(Coder, usize)>() + 32 + coder.memory();
        let coders = self.coders.as_ref().map_or(0, |coders| coders.iter().map(coder).sum());
        // A list of one coder has room for four.
        2 * (coders + 3 * size_of::<(Coder, usize)>()) + size_of::<u64>() * self.outputs
    }

    /// The folder of these coders, whose outputs have these sizes.
    pub(super) fn folder(self, sizes: &[u64], (start, packed): (u64, u64), checksum: Option<u32>) -> Folder {
        let size = |output: usize| sizes.get(output).copied().unwrap_or_default();
        let with_size = |(coder, output)| (coder, size(output));
        Folder {
            start,
            packed,
            size: size(self.last),
            checksum,
            coders: self.coders.map(|coders| coders.into_iter().map(with_size).collect()),
        }
    }
}

/// A coder as a header describes it.
struct Description<'b> {
    id: u64,
    inputs: usize,
    outputs: usize,
    properties: &'b [u8],
}

impl<'b> Description<'b> {
    fn read(bytes: &mut Bytes<'b>) -> Result<Self, StorageError> {
        let flags = bytes.byte()?;
        // The other bits: alternatives, which no program writes.
        if flags & 0xC0 != 0 || flags & 0xF > 8 {
            return damaged();
        }
        let id = bytes.take(u64::from(flags & 0xF))?;
        let id = id.iter().fold(0, |id, &byte| id << 8 | u64::from(byte));
        let (inputs, outputs) = match flags & 0x10 {
            0 => (1, 1),
            _ => {
                let mut count = || bytes.count(MAX_CODERS, "streams of a coder");
                (count()?, count()?)
            }
        };
        let properties = match flags & 0x20 {
            0 => &[],
            _ => {
                let len = bytes.number()?;
                bytes.take(len)?
            }
        };
        Ok(Description {
            id,
            inputs,
            outputs,
            properties,
        })
    }
}

/// Coders of one input and one output each, in the order in which they decode: from the one that reads the packed stream
/// to the one with the output `last`.
fn in_order(coders: Vec<Coder>, source: &[Option<usize>], last: usize) -> Result<Vec<(Coder, usize)>, StorageError> {
    let mut coders: Vec<_> = coders.into_iter().map(Some).collect();
    let (mut ordered, mut next) = (Vec::new(), Some(last));
    while let Some(output) = next {
        // A coder that is met again, or one that is not there.
        let Some(coder) = coders.get_mut(output).and_then(Option::take) else {
            return damaged();
        };
        ordered.push((coder, output));
        next = source.get(output).copied().flatten();
    }
    if coders.iter().any(Option::is_some) {
        return damaged();
    }
    ordered.reverse();
    Ok(ordered)
}

impl Folder {
    /// Where its packed bytes are in the file.
    pub(crate) fn section(&self) -> Range<u64> {
        self.start..self.start.saturating_add(self.packed)
    }

    /// The ID of a coder that is not supported.
    pub(super) fn unsupported(&self) -> Option<u64> {
        self.coders.as_ref().err().copied()
    }

    /// The windows of its decoders, in bytes.
    pub(super) fn windows(&self) -> u64 {
        let coders = self.coders.as_deref().unwrap_or_default();
        coders.iter().map(|(coder, size)| u64::from(coder.window(*size))).sum()
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        let coders = self.coders.as_deref().unwrap_or_default();
        coders.iter().any(|(coder, _)| matches!(coder, Coder::Aes(_)))
    }

    /// Decodes its packed bytes.
    ///
    /// # Errors
    /// [`StorageError::Unusable`] if it is encrypted and there is no key, and [`StorageError::Interrupted`].
    pub(crate) fn decoder<'r>(
        &self,
        mut input: Box<dyn BufRead + 'r>,
        archives: &Archives,
        keys: &Keys,
        interrupt: Interrupt<'r>,
    ) -> Result<Box<dyn Read + 'r>, StorageError> {
        let Ok(coders) = &self.coders else {
            return unusable("it is compressed with a method that is not supported");
        };
        let windows = WindowLease::new(&archives.budget);
        for (coder, size) in coders {
            let step = Step {
                decoder: coder.decoder(input, *size, (archives, keys), windows.beside(), interrupt)?,
                left: (*size).min(archives.most(self.packed).saturating_add(1)),
                interrupt,
            };
            input = Box::new(BufReader::with_capacity(PIECE, step));
        }
        Ok(Box::new(input))
    }
}

/// What a coder gives, up to its size. It checks for interrupts: a coder may take any number of bytes from the one before
/// it, and give none.
struct Step<'r> {
    decoder: Box<dyn Read + 'r>,
    left: u64,
    interrupt: Interrupt<'r>,
}

impl Read for Step<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.interrupt.check().map_err(io::Error::other)?;
        let most = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let len = self.decoder.read(&mut buffer[..most])?;
        self.left -= len as u64;
        Ok(len)
    }
}
