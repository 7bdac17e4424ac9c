//! A log: the file header and the chunks.

use uuid::Uuid;

use crate::binxml::{Element, Event, Fragment, Stream, Template};
use crate::chunk::{CHUNK_SIZE, Chunk};
use crate::error::WriteError;
use crate::record::CutRecord;

const HEADER_SIZE: usize = 4096;
const DIRTY: u32 = 1;
const FULL: u32 = 2;

/// Writes a log, record by record.
#[derive(Debug, Default)]
pub struct LogWriter {
    next_id: u64,
    /// How many records the finished chunks have.
    records: u64,
    /// How many chunks were taken.
    taken: usize,
    chunks: Vec<Vec<u8>>,
    chunk: Chunk,
}

impl LogWriter {
    /// A log whose first record gets the ID `first_id`.
    pub fn new(first_id: u64) -> Self {
        LogWriter {
            next_id: first_id,
            chunk: Chunk::new(),
            ..LogWriter::default()
        }
    }

    /// How many chunks are finished.
    pub fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// The ID that the next record gets.
    pub fn next_id(&self) -> u64 {
        self.next_id
    }

    /// Writes an event that was written at a FILETIME, and returns the ID of its record.
    ///
    /// # Errors
    /// If it does not fit a chunk.
    pub fn write(&mut self, written: u64, event: &Event) -> Result<u64, WriteError> {
        self.write_stream(written, &Stream::from(event.clone()))
    }

    /// Writes a record of any BinXML.
    ///
    /// # Errors
    /// If it does not fit a chunk.
    pub fn write_stream(&mut self, written: u64, stream: &Stream) -> Result<u64, WriteError> {
        let id = self.next_id;
        self.write_with(|chunk| chunk.write(id, written, stream))?;
        self.next_id += 1;
        Ok(id)
    }

    /// Writes an event that is spelled out, as a record with an ID, which must be above those of the records before. If it
    /// does not fit, it becomes an instance of a template of its own, in fewer bytes.
    ///
    /// # Errors
    /// If it does not fit a chunk.
    pub fn write_spelled(&mut self, id: u64, written: u64, event: Element) -> Result<(), WriteError> {
        let mut spelled = Stream::new(vec![Fragment::Element(event)]);
        let outcome = self.write_with(|chunk| chunk.write(id, written, &spelled));
        match (outcome, spelled.fragments.pop()) {
            (Err(WriteError::RecordSize), Some(Fragment::Element(mut event))) => {
                let mut values = Vec::new();
                event.narrow(&mut values);
                // Unlike that of all other events.
                let guid = Uuid::from_bytes_le(u128::from(id).to_le_bytes()).into_bytes();
                let event = Event::new(&Template::new(guid, event), values).into();
                self.write_with(|chunk| chunk.write(id, written, &event))?;
            }
            (outcome, _) => outcome?,
        }
        self.next_id = id.saturating_add(1);
        Ok(())
    }

    /// Writes a record that was cut out of another chunk, with the next ID in place of its own, and returns it.
    ///
    /// # Errors
    /// If it is damaged, or does not fit a chunk.
    pub fn write_cut(&mut self, record: CutRecord<'_>) -> Result<u64, WriteError> {
        let id = self.next_id;
        self.write_with(|chunk| chunk.write_cut(id, record))?;
        self.next_id += 1;
        Ok(id)
    }

    /// The same, but the record keeps its ID, which must be above those of the records before.
    ///
    /// # Errors
    /// Those of [`write_cut`](Self::write_cut).
    pub fn write_cut_with_id(&mut self, record: CutRecord<'_>) -> Result<(), WriteError> {
        self.write_with(|chunk| chunk.write_cut(record.id, record))?;
        self.next_id = self.next_id.max(record.id.saturating_add(1));
        Ok(())
    }

    /// Appends the finished chunks of another log. Their records keep their IDs, or if they have those from 1 on, they get
    /// the next ones.
    pub fn append(&mut self, other: LogWriter, keep_ids: bool) {
        if other.chunks.is_empty() {
            return;
        }
        self.end_chunk();
        let ids = if keep_ids { 0 } else { self.next_id - 1 };
        for mut chunk in other.chunks {
            let last_id = Chunk::renumber(&mut chunk, self.records, ids);
            self.next_id = last_id.saturating_add(1);
            self.chunks.push(chunk);
        }
        self.records += other.records;
    }

    fn write_with(&mut self, mut write: impl FnMut(&mut Chunk) -> Result<bool, WriteError>) -> Result<(), WriteError> {
        if write(&mut self.chunk)? {
            return Ok(());
        }
        self.end_chunk();
        if write(&mut self.chunk)? {
            Ok(())
        } else {
            Err(WriteError::RecordSize)
        }
    }

    /// Finishes the current chunk, so that the next record starts a new one.
    pub fn end_chunk(&mut self) {
        if !self.chunk.is_empty() {
            let chunk = std::mem::replace(&mut self.chunk, Chunk::new());
            let first_number = self.records + 1;
            self.records += chunk.records();
            self.chunks.push(chunk.finish(first_number));
        }
    }

    /// Finishes the last chunk. A log without records gets the chunk that Windows begins in a new log.
    pub fn end(&mut self) {
        self.end_chunk();
        if self.chunks.is_empty() && self.taken == 0 {
            let mut chunk = Chunk::new().finish(1);
            Chunk::begin_anew(&mut chunk);
            self.chunks.push(chunk);
        }
    }

    /// Takes the finished chunks, and where they belong in the file, in bytes from its start.
    pub fn take_chunks(&mut self) -> (u64, Vec<u8>) {
        let offset = HEADER_SIZE + self.taken * CHUNK_SIZE;
        self.taken += self.chunks.len();
        (offset as u64, std::mem::take(&mut self.chunks).concat())
    }

    /// The header of a log that was closed, whose chunks were taken: the first 4 KiB of the file.
    pub fn header(&self) -> Vec<u8> {
        let mut header = vec![0; HEADER_SIZE];
        let newest = self.taken.saturating_sub(1) as u64;
        put_header(&mut header, 0, newest, self.next_id, self.taken, 0);
        header
    }

    /// The bytes of a log that was closed.
    pub fn finish(mut self) -> Vec<u8> {
        self.end_chunk();
        self.file(0, 0)
    }

    /// The bytes of a log that was copied while it was open. Its header is dirty and stale: it names chunk
    /// `stale_chunks - 1` as the last chunk, and 1 as the next record ID.
    pub fn finish_dirty(mut self, stale_chunks: usize) -> Vec<u8> {
        self.end_chunk();
        let mut file = self.file(0, DIRTY);
        let newest = stale_chunks.saturating_sub(1) as u64;
        put_header(&mut file, 0, newest, 1, self.chunks.len(), DIRTY);
        file
    }

    /// The bytes of a log in which Windows has only begun the chunk with index `begun`: its header lists no records, though
    /// it has some. `next_id` is the next record ID by the file header.
    ///
    /// With chunk 0 and ID 1 the log was never written, and its clusters hold records of another one.
    pub fn finish_begun(mut self, begun: usize, next_id: u64) -> Vec<u8> {
        self.end_chunk();
        self.next_id = next_id;
        if let Some(chunk) = self.chunks.get_mut(begun) {
            Chunk::begin_anew(chunk);
        }
        self.file(0, 0)
    }

    /// The bytes of a full log that has wrapped. It has only the newest `keep` chunks. The oldest of them is in the slot
    /// with index `turn`, the newest right before it.
    pub fn finish_wrapped(mut self, keep: usize, turn: usize) -> Vec<u8> {
        self.end_chunk();
        let dropped = self.chunks.len().saturating_sub(keep);
        self.chunks.drain(..dropped);
        self.chunks.rotate_right(turn);
        self.file(turn, FULL)
    }

    fn file(&self, oldest: usize, flags: u32) -> Vec<u8> {
        let count = self.chunks.len();
        let mut file = vec![0; HEADER_SIZE];
        let newest = (oldest + count.max(1) - 1) % count.max(1);
        put_header(&mut file, oldest as u64, newest as u64, self.next_id, count, flags);
        self.chunks.iter().for_each(|chunk| file.extend(chunk));
        file
    }
}

fn put_header(file: &mut [u8], oldest: u64, newest: u64, next_id: u64, chunks: usize, flags: u32) {
    let mut header = b"ElfFile\0".to_vec();
    for number in [oldest, newest, next_id] {
        header.extend(number.to_le_bytes());
    }
    header.extend(128_u32.to_le_bytes());
    // Version 3.1, minor first; the size of this block; the chunks.
    for number in [1, 3, HEADER_SIZE as u16, chunks as u16] {
        header.extend(number.to_le_bytes());
    }
    header.resize(120, 0);
    let checksum = crc32fast::hash(&header);
    header.extend(flags.to_le_bytes());
    header.extend(checksum.to_le_bytes());
    file[..128].copy_from_slice(&header);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finishes a chunk after each `size` records.
    fn write(log: &mut LogWriter, times: std::ops::Range<u64>, size: u64) {
        for time in times {
            let text = "x".repeat(time as usize * 7_919 % 9_000);
            let stream = Stream::new(vec![Fragment::Element(Element::new("Event").text(text))]);
            log.write_stream(time, &stream).expect("it fits");
            if (time + 1).is_multiple_of(size) {
                log.end_chunk();
            }
        }
    }

    #[test]
    fn chunks_of_another_log_are_as_if_they_were_written_here() {
        for (first_id, keep_ids) in [(1, false), (1_000, true)] {
            let mut whole = LogWriter::new(first_id);
            write(&mut whole, 0..100, 3);
            let mut log = LogWriter::new(first_id);
            for part in [0..30, 30..31, 31..33, 33..60, 60..100] {
                if part.start % 3 != 0 || part.end % 3 != 0 {
                    write(&mut log, part, 3);
                    continue;
                }
                let mut other = LogWriter::new(if keep_ids { log.next_id() } else { 1 });
                write(&mut other, part, 3);
                log.append(other, keep_ids);
            }
            assert!(log.finish() == whole.finish());
        }
    }

    #[test]
    fn an_event_that_is_too_long_leaves_the_log_as_it_was() {
        let mut log = LogWriter::new(1);
        for (text, len, fits) in [
            ("x", 10, true),
            ("x", 32_000, true),
            ("x", 64_000, true),
            ("x", 66_000, false),
            ("\u{e9}", 64_000, true),
            ("\u{e9}", 66_000, false),
            ("\u{20ac}", 32_000, true),
            ("\u{20ac}", 40_000, false),
            ("x", 10, true),
        ] {
            let event = Element::new("Event").text(text.repeat(len));
            let id = log.next_id();
            assert_eq!(log.write_spelled(id, 7, event).is_ok(), fits, "{len} {text}");
        }
        assert_eq!(log.next_id(), 7);
    }
}
