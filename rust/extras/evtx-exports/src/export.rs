//! A file whose records are read piece by piece.

use std::collections::VecDeque;
use std::sync::Arc;

use encoding_rs::{Decoder, UTF_8};
use evtx_archive::{NESTING, decode, encoding};
use evtx_format::Interrupt;
use evtx_reports::LineRow;
use evtx_scan::{Call, OpenFile, ScanError, ScanPath, StorageError, ends_with};
use memchr::memchr;

use crate::block::{Block, Place, Rows};
use crate::json::Json;
use crate::recognize::recognize;
use crate::records::{Cutter, InRow, MAX_LINE, Shape, Table, cells, read_record, too_long};

/// Bytes that are read at once of a local and of a remote file.
const LOCAL_PIECE: u64 = 1 << 20;
const REMOTE_PIECE: u64 = 8 << 20;

pub(crate) const LINE_ENDS: [&str; 3] = [".json", ".jsonl", ".ndjson"];

/// An open file, or why it cannot be opened.
pub(crate) struct Export {
    file: Option<OpenFile>,
    decoder: Option<Decoder>,
    /// Where the next piece starts.
    next: u64,
    /// How many pieces were read.
    pub(crate) pieces: u64,
    /// The start of a record that was read, as UTF-8, and its place.
    rest: Vec<u8>,
    place: Place,
    /// Finds the ends of records. `None` until their shape is known.
    cutter: Option<Cutter>,
    /// Whether its rows have to show whose events they are.
    needs_source: bool,
    /// The place of a record that is too long. What was read of it is not kept.
    long: Option<Place>,
    /// Rows for what cannot be read.
    problems: VecDeque<LineRow>,
}

impl Export {
    /// Opens a file.
    ///
    /// # Errors
    /// Those of a file that the caller named, and [`ScanError::Interrupted`].
    pub(crate) fn open(path: &ScanPath, rows: &Rows, call: Call<'_>) -> Result<Self, ScanError> {
        let mut export = Export {
            file: None,
            decoder: None,
            next: 0,
            pieces: 0,
            rest: Vec::new(),
            place: Place {
                filename: path.path.as_str().into(),
                encoding: None,
                line: 1,
                offset: 0,
                table: None,
                source: None,
            },
            cutter: None,
            needs_source: false,
            long: None,
            problems: VecDeque::new(),
        };
        match rows {
            Rows::Lines(_) => export.cutter = Some(Cutter::new(Shape::Lines)),
            Rows::Events(settings) => {
                (export.place.source, export.needs_source) = (settings.source, settings.source.is_none());
            }
        }
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

    /// Ends the file with a row that says why.
    fn fail(&mut self, why: String) {
        self.file = None;
        self.problems.push_back(self.place.row(false, Some(why)));
    }

    pub(crate) fn is_done(&self) -> bool {
        self.file.as_ref().is_none_or(|open| self.next >= open.file.size())
    }

    /// The share that was read, 0 to 1.
    pub(crate) fn share(&self) -> f64 {
        let size = self.file.as_ref().map_or(0, |open| open.file.size());
        if size == 0 { 1.0 } else { self.next as f64 / size as f64 }
    }

    /// Reads on up to the end of a record, or to the end of the file.
    pub(crate) fn read(&mut self, path: &ScanPath, index: u64, interrupt: Interrupt<'_>) -> Result<Block, ScanError> {
        let mut block = Block {
            index,
            place: self.place.clone(),
            at: 0,
            bytes: Vec::new(),
            records: VecDeque::new(),
            problems: VecDeque::new(),
        };
        while block.records.is_empty() && !self.is_done() {
            interrupt.check()?;
            if let Err(error) = self.read_piece() {
                self.fail(path.failure(error)?);
            }
            if let Err(why) = self.cut(&mut block, interrupt) {
                self.rest.clear();
                self.fail(path.unusable(why)?);
            }
        }
        self.pieces += 1;
        let failure = self
            .file
            .as_mut()
            .filter(|open| self.next >= open.file.size())
            .map(|open| open.failure.take());
        match failure {
            // A damaged file is read as far as it can be.
            Some(Some(failure)) => self.fail(path.damage(failure)?),
            Some(None) if self.cutter.as_ref().is_some_and(Cutter::is_in_list) => {
                let why = "the file ends before its list of events does: events can be missing";
                self.problems.push_back(self.place.row(false, Some(why.to_owned())));
            }
            _ => {}
        }
        block.problems = std::mem::take(&mut self.problems);
        Ok(block)
    }

    /// Moves the records that were read into a block.
    ///
    /// # Errors
    /// Why the file is not one of records.
    fn cut(&mut self, block: &mut Block, interrupt: Interrupt<'_>) -> Result<(), String> {
        if self.cutter.is_none() {
            self.cutter = self.begin()?;
        }
        let is_done = self.is_done();
        let Some(cutter) = &mut self.cutter else { return Ok(()) };
        let mut records: VecDeque<_> = cutter.records(&self.rest, is_done).into();
        if let Some(long) = self.long.take_if(|_| !records.is_empty() || is_done) {
            records.pop_front();
            self.problems.push_back(long.row(true, Some(too_long())));
        }
        if let Some(at) = cutter.odd.take() {
            let mut place = self.place.clone();
            place.pass(&self.rest[..at]);
            let why = format!("a {} closes nothing: events can be missing", char::from(self.rest[at]));
            self.problems.push_back(place.row(true, Some(why)));
        }
        if self.needs_source {
            let table = self.place.table.as_deref();
            let rows = records.iter().filter_map(|record| {
                let record = self.rest[record.clone()].trim_ascii();
                str::from_utf8(record).ok().filter(|text| !text.is_empty())?;
                match read_record(record, table, interrupt) {
                    Ok(Ok(json)) => Some(json),
                    _ => table.is_none().then_some(Json::Null),
                }
            });
            let source = recognize(rows)?;
            (self.place.source, self.needs_source) = (source, source.is_none());
        }
        (block.place, block.records) = (self.place.clone(), records);
        let rest = self.rest.split_off(cutter.passed());
        block.bytes = std::mem::replace(&mut self.rest, rest);
        cutter.forget(block.bytes.len());
        self.place.pass(&block.bytes);
        if self.rest.len() > MAX_LINE && !is_done {
            self.long.get_or_insert_with(|| self.place.clone());
            let rest = std::mem::take(&mut self.rest);
            self.place.pass(&rest);
            cutter.forget(rest.len());
            cutter.give_up();
        }
        Ok(())
    }

    /// Finds how the records of the file follow each other; `None` if more of the file is needed.
    ///
    /// # Errors
    /// Why they cannot be found.
    fn begin(&mut self) -> Result<Option<Cutter>, String> {
        let space = self.rest.len() - self.rest.trim_ascii_start().len();
        let space: Vec<u8> = self.rest.drain(..space).collect();
        self.place.pass(&space);
        let Some(first) = self.rest.first() else {
            return Ok(self.is_done().then(|| Cutter::new(Shape::Lines)));
        };
        let name = &*self.place.filename;
        let packed = NESTING.files.iter().find(|end| ends_with(name, end));
        let name = &name[..name.len() - packed.map_or(0, |end| end.len())];
        if matches!(first, b'{' | b'[') || LINE_ENDS.iter().any(|end| ends_with(name, end)) {
            return Ok(Some(Cutter::of_json(&self.rest)));
        }
        // PowerShell begins with the type of its objects.
        let skipped = match self.rest.starts_with(b"#TYPE ") {
            true => memchr(b'\n', &self.rest).map_or(0, |at| at + 1),
            false => 0,
        };
        let end = match memchr(b'\n', &self.rest[skipped..]) {
            Some(at) => skipped + at + 1,
            None if self.is_done() => self.rest.len(),
            None if self.rest.len() > MAX_LINE => return Err(format!("its first line: {}", too_long())),
            None => return Ok(None),
        };
        let text = str::from_utf8(&self.rest[skipped..end]).map_err(|_| "its first line is not UTF-8".to_owned())?;
        if text.trim_ascii_end().contains('\r') {
            return Err("its lines end with \\r only: expected \\n or \\r\\n".to_owned());
        }
        let count = |separator| cells(text, separator).map_or(0, |cells| cells.len());
        // Of those with as many values, the last one counts.
        let separator = [b';', b'\t', b',']
            .into_iter()
            .max_by_key(|&separator| count(separator))
            .unwrap_or(b',');
        let header = cells(text, separator).map_err(|why| format!("its first line is not CSV: {why}"))?;
        if header.len() == 1 && end == self.rest.len() && self.is_done() {
            return Err("it is not JSON, and no CSV with more than a header".to_owned());
        }
        self.place.table = Some(Arc::new(Table { separator, header }));
        let passed: Vec<u8> = self.rest.drain(..end).collect();
        self.place.pass(&passed);
        Ok(Some(Cutter::new(Shape::Csv(separator, InRow::Start))))
    }

    /// Adds the next piece of the file to the rest.
    fn read_piece(&mut self) -> Result<(), StorageError> {
        let Some(open) = &self.file else { return Ok(()) };
        let piece = if open.is_remote { REMOTE_PIECE } else { LOCAL_PIECE };
        let mut bytes = vec![0; piece.min(open.file.size() - self.next) as usize];
        open.file.read_at(&mut bytes, self.next)?;
        let mut mark = 0;
        if self.next == 0 {
            let known = encoding(&bytes);
            mark = known.1;
            self.place.offset = mark as u64;
            self.decoder = (known.0 != UTF_8).then(|| known.0.new_decoder_without_bom_handling());
            self.place.encoding = self.decoder.as_ref().map(Decoder::encoding);
        }
        self.next += bytes.len() as u64;
        let is_last = self.is_done();
        decode(self.decoder.as_mut(), &bytes[mark..], is_last, &mut self.rest);
        Ok(())
    }
}
