//! The lines of exports as JSON, by any number of threads.
//!
//! A thread takes an open file, reads its next piece up to the last line break, and gives the file back. While it checks the
//! lines, another thread can read on. A line that is too long is passed over piece by piece.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use encoding_rs::{Decoder, Encoding, UTF_8};
use evtx_arrow::DecodeError;
use evtx_format::Interrupt;
use evtx_reports::{
    JsonCheck, JsonTypes, LineRow, ReportBatch, ReportRows, ReportThreads, check_json, line_batch, line_schema,
    without_nuls,
};
use evtx_scan::{
    Call, FileKind, LastOpened, OpenFile, OtherFiles, ScanError, ScanPath, Storage, StorageError, WAIT, batch_index,
};
use memchr::{memchr, memchr_iter, memrchr};

use crate::encoding::{encoding, len_in_file};

/// The most bytes of a line as UTF-8. A record of a log has at most 64 KiB. DuckDB takes up to 150 bytes of memory for each
/// byte of a line, and does not look for an interrupt in between.
const MAX_LINE: usize = 2 << 20;

/// Bytes that are read at once of a local and of a remote file.
const LOCAL_PIECE: u64 = 1 << 20;
const REMOTE_PIECE: u64 = 8 << 20;

/// The most rows of a batch, and the bytes of lines after which it ends.
const BATCH_ROWS: usize = 2048;
const BATCH_BYTES: usize = 2 << 20;

/// Exports with JSON in each line.
pub const LINE_FILES: FileKind = FileKind::Other(&OtherFiles {
    ends: &[".json", ".jsonl", ".ndjson"],
    also: None,
    named: None,
    plural: "exports",
});

/// A report on the lines of files.
pub struct LineScan(Arc<Shared>);

struct Shared {
    paths: Vec<ScanPath>,
    types: JsonTypes,
    projection: Vec<usize>,
    wanted: Wanted,
    last: LastOpened,
    progress: Mutex<Progress>,
    changed: Condvar,
}

/// Which columns are wanted that need a look at the lines.
#[derive(Clone, Copy)]
struct Wanted {
    json: bool,
    error: bool,
}

#[derive(Default)]
struct Progress {
    /// The next file that no thread has opened.
    next: usize,
    /// The open files that no thread reads, by index.
    idle: BTreeMap<usize, Export>,
    /// Those that a thread reads, each with the share that was read before.
    busy: BTreeMap<usize, f64>,
}

impl LineScan {
    /// A report on files whose values should have these types, with the columns that have these indexes.
    pub fn new(paths: Vec<ScanPath>, types: JsonTypes, projection: &[usize]) -> Self {
        let schema = line_schema();
        let is_wanted = |name: &str| projection.iter().any(|&column| schema.field(column).name() == name);
        LineScan(Arc::new(Shared {
            paths,
            types,
            wanted: Wanted {
                json: is_wanted("json"),
                error: is_wanted("error"),
            },
            projection: projection.to_vec(),
            last: LastOpened::default(),
            progress: Mutex::default(),
            changed: Condvar::new(),
        }))
    }
}

impl Shared {
    // A poisoned lock stays usable: each change under the lock is one step, which no panic can interrupt.
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReportThreads for LineScan {
    fn thread(&self) -> Box<dyn ReportRows> {
        Box::new(Thread {
            shared: Arc::clone(&self.0),
            file: 0,
            block: None,
        })
    }

    fn progress(&self) -> f64 {
        let progress = self.0.lock();
        let shares = progress
            .busy
            .values()
            .copied()
            .chain(progress.idle.values().map(Export::share));
        let open = progress.busy.len() + progress.idle.len();
        let done = (progress.next - open) as f64 + shares.sum::<f64>();
        done / self.0.paths.len().max(1) as f64
    }
}

/// A file that a thread reads. Others must not wait for it after a failure.
struct Reading<'s> {
    shared: &'s Shared,
    index: usize,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.shared.lock().busy.remove(&self.index);
        self.shared.changed.notify_all();
    }
}

struct Thread {
    shared: Arc<Shared>,
    /// The index of the last file. The rows of a thread keep the order of the files.
    file: usize,
    /// The lines that are left of the last piece.
    block: Option<Block>,
}

impl ReportRows for Thread {
    fn reading(&self) -> Option<&str> {
        self.shared.paths.get(self.file).map(ScanPath::storage_path)
    }

    fn next(&mut self, storage: &dyn Storage, interrupt: Interrupt<'_>) -> Result<Option<ReportBatch>, ScanError> {
        let shared = Arc::clone(&self.shared);
        loop {
            if let Some(block) = &mut self.block {
                let rows = block.rows(&shared.types, shared.wanted, interrupt)?;
                if !rows.is_empty() {
                    let batch = line_batch(&rows).and_then(|batch| batch.project(&shared.projection));
                    return Ok(Some(ReportBatch {
                        rows: batch.map_err(DecodeError::from)?,
                        index: block.index,
                    }));
                }
                self.block = None;
            }
            let Some(claimed) = self.claim(interrupt)? else {
                return Ok(None);
            };
            let (index, path) = (self.file, &shared.paths[self.file]);
            let reading = Reading { shared: &shared, index };
            let mut export = match claimed {
                Some(export) => export,
                None => {
                    let last = &shared.last;
                    let call = Call {
                        storage,
                        interrupt,
                        last,
                    };
                    Export::open(path, call)?
                }
            };
            let place = batch_index(shared.paths.len(), index, export.pieces)?;
            self.block = Some(export.read(path, place, interrupt)?);
            if !export.is_done() {
                let mut progress = shared.lock();
                progress.busy.remove(&index);
                progress.idle.insert(index, export);
            }
            drop(reading);
        }
    }
}

impl Thread {
    /// Takes a file that no other thread reads, or `Some(None)` for one that is not open yet, whose index is then that of the
    /// thread's file; `None` if no more file is left for this thread.
    fn claim(&mut self, interrupt: Interrupt<'_>) -> Result<Option<Option<Export>>, ScanError> {
        let shared = Arc::clone(&self.shared);
        let mut progress = shared.lock();
        loop {
            interrupt.check()?;
            let index = progress.idle.range(self.file..).next().map(|(index, _)| *index);
            if let Some(index) = index {
                let export = progress.idle.remove(&index);
                progress.busy.insert(index, export.as_ref().map_or(0.0, Export::share));
                self.file = index;
                return Ok(Some(export));
            }
            if progress.next < shared.paths.len() {
                self.file = progress.next;
                progress.busy.insert(self.file, 0.0);
                progress.next += 1;
                return Ok(Some(None));
            }
            if progress.busy.range(self.file..).next().is_none() {
                return Ok(None);
            }
            let waited = shared.changed.wait_timeout(progress, WAIT);
            progress = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// An open file, or why it cannot be opened.
struct Export {
    file: Option<OpenFile>,
    filename: Arc<str>,
    decoder: Option<Decoder>,
    /// Where the next piece starts.
    next: u64,
    /// How many pieces were read.
    pieces: u64,
    /// The start of a line that was read, as UTF-8, with its number and its offset in the file.
    rest: Vec<u8>,
    line: u64,
    offset: u64,
    /// The same of a line that is too long. What was read of it is not kept.
    long: Option<(u64, u64)>,
    /// Rows for what cannot be read.
    problems: VecDeque<LineRow>,
}

impl Export {
    /// Opens a file.
    ///
    /// # Errors
    /// Those of a file that the caller named, and [`ScanError::Interrupted`].
    fn open(path: &ScanPath, call: Call<'_>) -> Result<Self, ScanError> {
        let mut export = Export {
            file: None,
            filename: path.path.as_str().into(),
            decoder: None,
            next: 0,
            pieces: 0,
            rest: Vec::new(),
            line: 1,
            offset: 0,
            long: None,
            problems: VecDeque::new(),
        };
        match path.open(call) {
            Ok(OpenFile {
                file,
                failure: Some(why),
                ..
            }) if file.size() == 0 => export.fail(path.failure(why)?),
            Ok(file) => export.file = Some(file),
            Err(error) => export.fail(path.failure(error)?),
        }
        Ok(export)
    }

    fn fail(&mut self, why: String) {
        self.file = None;
        self.problems.push_back(self.row(None, Some(why)));
    }

    fn row(&self, place: Option<(u64, u64)>, why: Option<String>) -> LineRow {
        let (json, filename) = (None, Arc::clone(&self.filename));
        LineRow {
            json,
            place,
            why,
            filename,
        }
    }

    fn is_done(&self) -> bool {
        self.file.as_ref().is_none_or(|open| self.next >= open.file.size())
    }

    /// The share that was read, 0 to 1.
    fn share(&self) -> f64 {
        let size = self.file.as_ref().map_or(0, |open| open.file.size());
        if size == 0 { 1.0 } else { self.next as f64 / size as f64 }
    }

    /// Reads on up to a line break, or to the end of the file.
    fn read(&mut self, path: &ScanPath, index: u64, interrupt: Interrupt<'_>) -> Result<Block, ScanError> {
        let mut lines = Vec::new();
        while lines.is_empty() && !self.is_done() {
            interrupt.check()?;
            let known = self.rest.len();
            if let Err(error) = self.read_piece() {
                self.fail(path.failure(error)?);
            }
            if let Some(place) = self.long {
                let end = memchr(b'\n', &self.rest).map(|at| at + 1);
                let passed = end.unwrap_or(self.rest.len());
                self.offset += self.len_in_file(&self.rest[..passed]);
                self.rest.drain(..passed);
                if end.is_some() || self.is_done() {
                    self.problems.push_back(self.row(Some(place), Some(too_long())));
                    self.long = None;
                    self.line += 1;
                }
            }
            // What was read before has no line break.
            lines = match memrchr(b'\n', self.rest.get(known..).unwrap_or_default()) {
                _ if self.is_done() => std::mem::take(&mut self.rest),
                Some(at) => {
                    let rest = self.rest.split_off(known + at + 1);
                    std::mem::replace(&mut self.rest, rest)
                }
                None => Vec::new(),
            };
            if self.rest.len() > MAX_LINE {
                self.long = Some((self.line, self.offset));
                self.offset += self.len_in_file(&self.rest);
                self.rest = Vec::new();
            }
        }
        let block = Block {
            index,
            filename: Arc::clone(&self.filename),
            encoding: self.decoder.as_ref().map(Decoder::encoding),
            at: 0,
            line: self.line,
            offset: self.offset,
            problems: VecDeque::new(),
            lines,
        };
        self.line += memchr_iter(b'\n', &block.lines).count() as u64;
        self.offset += self.len_in_file(&block.lines);
        self.pieces += 1;
        // A damaged file is read as far as it can be.
        if self.is_done()
            && let Some(failure) = self.file.as_mut().and_then(|open| open.failure.take())
        {
            self.fail(path.damage(failure)?);
        }
        let problems = std::mem::take(&mut self.problems);
        Ok(Block { problems, ..block })
    }

    /// Adds the next piece of the file to the rest.
    fn read_piece(&mut self) -> Result<(), StorageError> {
        let Some(open) = &self.file else { return Ok(()) };
        let piece = if open.is_remote { REMOTE_PIECE } else { LOCAL_PIECE };
        let len = piece.min(open.file.size() - self.next);
        let start = self.rest.len();
        let mut own = Vec::new();
        let bytes = if self.decoder.is_some() {
            own.resize(len as usize, 0);
            &mut own[..]
        } else {
            self.rest.resize(start + len as usize, 0);
            &mut self.rest[start..]
        };
        if let Err(error) = open.file.read_at(bytes, self.next) {
            self.rest.truncate(start);
            return Err(error);
        }
        let is_first = self.next == 0;
        self.next += len;
        let is_last = self.next >= open.file.size();
        if is_first {
            let (encoding, mark) = encoding(&self.rest);
            self.offset = mark as u64;
            self.rest.drain(..mark);
            if encoding == UTF_8 {
                return Ok(());
            }
            self.decoder = Some(encoding.new_decoder_without_bom_handling());
            own = std::mem::take(&mut self.rest);
        }
        let Some(decoder) = &mut self.decoder else {
            return Ok(());
        };
        let start = self.rest.len();
        let room = decoder.max_utf8_buffer_length(own.len());
        self.rest.resize(start + room.unwrap_or(4 * own.len() + 16), 0);
        let (_, _, written, _) = decoder.decode_to_utf8(&own, &mut self.rest[start..], is_last);
        self.rest.truncate(start + written);
        Ok(())
    }

    fn len_in_file(&self, text: &[u8]) -> u64 {
        len_in_file(text, self.decoder.as_ref().map(Decoder::encoding))
    }
}

fn too_long() -> String {
    format!("it has more than {} MiB", MAX_LINE >> 20)
}

/// Whole lines of a file, with their place in the order of all rows.
struct Block {
    index: u64,
    filename: Arc<str>,
    encoding: Option<&'static Encoding>,
    /// Rows that come before those of the lines.
    problems: VecDeque<LineRow>,
    lines: Vec<u8>,
    /// Where the next line starts, its number, and its offset in the file.
    at: usize,
    line: u64,
    offset: u64,
}

impl Block {
    /// The next rows; none at the end.
    fn rows(&mut self, types: &JsonTypes, wanted: Wanted, interrupt: Interrupt<'_>) -> Result<Vec<LineRow>, ScanError> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while rows.len() < BATCH_ROWS && bytes < BATCH_BYTES {
            if let Some(row) = self.problems.pop_front() {
                rows.push(row);
                continue;
            }
            let rest = &self.lines[self.at..];
            if rest.is_empty() {
                break;
            }
            let line = memchr(b'\n', rest).map_or(rest, |end| &rest[..=end]);
            let place = (self.line, self.offset);
            self.at += line.len();
            self.line += 1;
            self.offset += len_in_file(line, self.encoding);
            // The time for empty lines counts, too.
            bytes += line.len();
            let line = line.trim_ascii();
            if line.is_empty() {
                continue;
            }
            let (json, why) = if wanted.json || wanted.error {
                checked(line, wanted.error.then_some(types), interrupt)?
            } else {
                (None, None)
            };
            rows.push(LineRow {
                json: json.filter(|_| wanted.json).map(Cow::into_owned),
                place: Some(place),
                why,
                filename: Arc::clone(&self.filename),
            });
        }
        Ok(rows)
    }
}

/// A line without NULs if it is JSON, and what is wrong with it.
fn checked<'l>(
    line: &'l [u8],
    types: Option<&JsonTypes>,
    interrupt: Interrupt<'_>,
) -> Result<(Option<Cow<'l, str>>, Option<String>), ScanError> {
    if line.len() > MAX_LINE {
        return Ok((None, Some(too_long())));
    }
    let text = match str::from_utf8(line) {
        Ok(text) => text,
        Err(error) => {
            let at = error.valid_up_to();
            return Ok((None, Some(format!("it is not UTF-8 after {at} bytes"))));
        }
    };
    let json = without_nuls(text);
    // The escape of a NUL outside of a text is not JSON.
    if matches!(json, Cow::Owned(_))
        && let JsonCheck::NotJson(why) = check_json(text, None, interrupt)?
    {
        return Ok((None, Some(why)));
    }
    Ok(match check_json(&json, types, interrupt)? {
        JsonCheck::Valid => (Some(json), None),
        JsonCheck::Odd(why) => (Some(json), Some(why)),
        JsonCheck::NotJson(why) => (None, Some(why)),
    })
}

#[cfg(test)]
mod tests {
    use evtx_scan::{LocalStorage, expand};

    use super::*;

    /// The number of a line, its offset, the line, and why it cannot be read.
    type Found = (Option<u64>, Option<u64>, Option<String>, Option<String>);

    /// The rows of a file with these bytes, in the order of their places, by so many threads that take turns.
    fn rows(bytes: &[u8], threads: usize) -> Vec<Found> {
        use arrow_array::cast::AsArray;
        use arrow_array::types::UInt64Type;

        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), bytes).expect("a file that can be written");
        let path = file.path().to_str().expect("a path");
        let paths = expand(&LocalStorage, path, LINE_FILES, "a test", Interrupt::NEVER).expect("a file");
        let scan = LineScan::new(paths, JsonTypes::default(), &[0, 1, 3, 4, 5]);
        let mut workers: Vec<_> = (0..threads).map(|_| scan.thread()).collect();
        let mut batches = Vec::new();
        while !workers.is_empty() {
            workers.retain_mut(|worker| {
                let batch = worker.next(&LocalStorage, Interrupt::NEVER).expect("no error");
                let is_left = batch.is_some();
                batches.extend(batch);
                is_left
            });
        }
        assert_eq!(scan.progress(), 1.0);
        batches.sort_by_key(|batch| batch.index);
        let mut rows = Vec::new();
        for batch in batches {
            let (numbers, offsets) = (batch.rows.column(0), batch.rows.column(1));
            let (numbers, offsets) = (
                numbers.as_primitive::<UInt64Type>(),
                offsets.as_primitive::<UInt64Type>(),
            );
            let (lines, errors) = (
                batch.rows.column(2).as_string::<i32>(),
                batch.rows.column(3).as_string::<i32>(),
            );
            let columns = numbers.iter().zip(offsets).zip(lines.iter().zip(errors));
            rows.extend(columns.map(|((number, offset), (line, error))| {
                let why = error.map(|error| error.rsplit(": ").next().unwrap_or_default().to_owned());
                (number, offset, line.map(str::to_owned), why)
            }));
        }
        rows
    }

    #[test]
    fn lines_have_their_numbers_and_offsets_in_every_encoding() {
        let lines: Vec<String> = (0..20_000)
            .map(|nth| format!("{{\"ä€😀\": \"{}\"}}", "é".repeat(nth % 90)))
            .collect();
        let text: String = lines.iter().map(|line| format!(" {line}\r\n\n")).collect();
        let wide = |bytes: fn(u16) -> [u8; 2]| -> Vec<u8> { text.encode_utf16().flat_map(bytes).collect() };
        let (little, big) = (wide(u16::to_le_bytes), wide(u16::to_be_bytes));
        let utf8 = text.as_bytes().to_vec();
        for (mark, bytes, is_wide) in [
            (&b""[..], &utf8, false),
            (b"\xEF\xBB\xBF", &utf8, false),
            (b"\xFF\xFE", &little, true),
            (b"", &big, true),
        ] {
            let found = rows(&[mark, bytes].concat(), 3);
            assert_eq!(found.len(), lines.len());
            let (mut number, mut offset) = (1, mark.len() as u64);
            for (line, row) in lines.iter().zip(found) {
                assert_eq!(row, (Some(number), Some(offset), Some(line.clone()), None));
                number += 2;
                let len = if is_wide {
                    2 * line.encode_utf16().count()
                } else {
                    line.len()
                };
                offset += (len + if is_wide { 8 } else { 4 }) as u64;
            }
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_a_row_and_hides_no_other() {
        let long = |len: usize| format!("\"{}\"", "a".repeat(len - 2));
        for (lines, errors) in [
            (vec!["1".to_owned(), long(MAX_LINE + 1), "2".to_owned()], vec![1]),
            (
                vec![long(MAX_LINE), "1".to_owned(), long(MAX_LINE + (5 << 20))],
                vec![2],
            ),
            (vec![long(2 * MAX_LINE), long(MAX_LINE + 1), "1".to_owned()], vec![0, 1]),
        ] {
            for end in ["", "\n"] {
                let found = rows((lines.join("\n") + end).as_bytes(), 2);
                assert_eq!(found.len(), lines.len());
                let mut offset = 0;
                for (nth, (line, mut row)) in lines.iter().zip(sorted(found)).enumerate() {
                    let is_long = errors.contains(&nth);
                    assert_eq!(row.2.take().as_ref(), (!is_long).then_some(line), "line {nth}");
                    let why = is_long.then(|| "it has more than 2 MiB".to_owned());
                    assert_eq!(row, (Some(nth as u64 + 1), Some(offset), None, why));
                    offset += line.len() as u64 + 1;
                }
            }
        }
    }

    fn sorted<T: Ord>(mut rows: Vec<T>) -> Vec<T> {
        rows.sort();
        rows
    }
}
