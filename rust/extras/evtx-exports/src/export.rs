//! A file whose records are read piece by piece.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use encoding_rs::{Decoder, UTF_8};
use evtx_archive::{NESTING, encoding, len_in_file};
use evtx_format::Interrupt;
use evtx_reports::LineRow;
use evtx_scan::{Call, OpenFile, ScanError, ScanPath, StorageError, ends_with};
use memchr::{memchr, memchr_iter};

use crate::block::{Block, MAX_LINE, Rows, too_long};
use crate::recognize::recognize;
use crate::records::{Cutter, InRow, Shape, cells, row_as_json};
use crate::settings::SourceSettings;
use crate::sources::Source;

/// Bytes that are read at once of a local and of a remote file.
const LOCAL_PIECE: u64 = 1 << 20;
const REMOTE_PIECE: u64 = 8 << 20;

pub(crate) const LINE_ENDS: [&str; 3] = [".json", ".jsonl", ".ndjson"];

/// An open file, or why it cannot be opened.
pub(crate) struct Export {
    file: Option<OpenFile>,
    filename: Arc<str>,
    decoder: Option<Decoder>,
    /// Where the next piece starts.
    next: u64,
    /// How many pieces were read.
    pub(crate) pieces: u64,
    /// The start of a record that was read, as UTF-8, with the number of its line and its offset in the file.
    rest: Vec<u8>,
    line: u64,
    offset: u64,
    cutter: Cutter,
    /// The names of the columns of CSV.
    header: Arc<[String]>,
    /// Whether the shape of its records is known.
    has_begun: bool,
    /// Whether a row says that a bracket closes nothing.
    is_odd: bool,
    /// The source of the events.
    source: Option<&'static Source>,
    /// The place of a record that is too long. What was read of it is not kept.
    long: Option<(u64, u64)>,
    /// Rows for what cannot be read.
    problems: VecDeque<LineRow>,
}

impl Export {
    /// Opens a file.
    ///
    /// # Errors
    /// Those of a file that the caller named, and [`ScanError::Interrupted`].
    pub(crate) fn open(path: &ScanPath, call: Call<'_>) -> Result<Self, ScanError> {
        let mut export = Export {
            file: None,
            filename: path.path.as_str().into(),
            decoder: None,
            next: 0,
            pieces: 0,
            rest: Vec::new(),
            line: 1,
            offset: 0,
            cutter: Cutter::new(Shape::Lines),
            header: Arc::default(),
            has_begun: false,
            is_odd: false,
            source: None,
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

    pub(crate) fn is_done(&self) -> bool {
        self.file.as_ref().is_none_or(|open| self.next >= open.file.size())
    }

    /// The share that was read, 0 to 1.
    pub(crate) fn share(&self) -> f64 {
        let size = self.file.as_ref().map_or(0, |open| open.file.size());
        if size == 0 { 1.0 } else { self.next as f64 / size as f64 }
    }

    /// Reads on up to the end of a record, or to the end of the file.
    pub(crate) fn read(
        &mut self,
        path: &ScanPath,
        rows: &Rows,
        index: u64,
        interrupt: Interrupt<'_>,
    ) -> Result<Block, ScanError> {
        let mut block = Block {
            index,
            filename: Arc::clone(&self.filename),
            encoding: None,
            shape: Shape::Lines,
            header: Arc::clone(&self.header),
            source: self.source,
            at: 0,
            line: self.line,
            offset: self.offset,
            problems: VecDeque::new(),
            bytes: Vec::new(),
            records: VecDeque::new(),
        };
        while block.records.is_empty() && !self.is_done() {
            interrupt.check()?;
            if let Err(error) = self.read_piece() {
                self.fail(path.failure(error)?);
            }
            if let Rows::Events(_) = rows
                && !self.has_begun
            {
                match self.begin() {
                    Ok(begun) => self.has_begun = begun,
                    Err(why) => {
                        self.fail(path.unusable(why)?);
                        self.rest.clear();
                        break;
                    }
                }
                if !self.has_begun {
                    continue;
                }
            }
            let mut records: VecDeque<_> = self.cutter.records(&self.rest, self.is_done()).into();
            if let Some(place) = self.long
                && (!records.is_empty() || self.is_done())
            {
                records.pop_front();
                self.problems.push_back(self.row(Some(place), Some(too_long())));
                self.long = None;
            }
            if let Some(at) = self.cutter.odd.filter(|_| !self.is_odd) {
                self.is_odd = true;
                let before = &self.rest[..at];
                let line = self.line + memchr_iter(b'\n', before).count() as u64;
                let place = (line, self.offset + self.len_in_file(before));
                let why = format!("a {} closes nothing: events can be missing", char::from(self.rest[at]));
                self.problems.push_back(self.row(Some(place), Some(why)));
            }
            if let Rows::Events(settings) = rows
                && self.source.is_none()
                && let Err(why) = self.find_source(settings, &records)
            {
                self.fail(path.unusable(why)?);
                self.rest.clear();
                break;
            }
            (block.line, block.offset, block.records) = (self.line, self.offset, records);
            let rest = self.rest.split_off(self.cutter.passed());
            block.bytes = std::mem::replace(&mut self.rest, rest);
            self.cutter.forget(block.bytes.len());
            self.pass(&block.bytes);
            if self.rest.len() > MAX_LINE && !self.is_done() {
                self.long = self.long.or(Some((self.line, self.offset)));
                let rest = std::mem::take(&mut self.rest);
                self.pass(&rest);
                self.cutter.forget(rest.len());
                self.cutter.give_up();
            }
        }
        self.pieces += 1;
        // A damaged file is read as far as it can be.
        if self.is_done()
            && let Some(failure) = self.file.as_mut().and_then(|open| open.failure.take())
        {
            self.fail(path.damage(failure)?);
        } else if self.is_done() && self.file.is_some() && self.cutter.is_in_list() {
            let why = "the file ends before its list of events does: events can be missing";
            self.problems.push_back(self.row(None, Some(why.to_owned())));
        }
        block.encoding = self.decoder.as_ref().map(Decoder::encoding);
        block.shape = self.cutter.shape.clone();
        (block.header, block.source) = (Arc::clone(&self.header), self.source);
        block.problems = std::mem::take(&mut self.problems);
        Ok(block)
    }

    /// Counts the lines and the bytes of some text.
    fn pass(&mut self, text: &[u8]) {
        self.line += memchr_iter(b'\n', text).count() as u64;
        self.offset += self.len_in_file(text);
    }

    /// Finds how the records of the file follow each other. Returns false if more of the file is needed.
    ///
    /// # Errors
    /// Why they cannot be found.
    fn begin(&mut self) -> Result<bool, String> {
        let space = self.rest.len() - self.rest.trim_ascii_start().len();
        let space: Vec<u8> = self.rest.drain(..space).collect();
        self.pass(&space);
        let Some(first) = self.rest.first() else {
            return Ok(self.is_done());
        };
        let name = &*self.filename;
        let packed = NESTING.files.iter().find(|end| ends_with(name, end));
        let name = &name[..name.len() - packed.map_or(0, |end| end.len())];
        if matches!(first, b'{' | b'[') || LINE_ENDS.iter().any(|end| ends_with(name, end)) {
            self.cutter = Cutter::of_json(&self.rest);
            return Ok(true);
        }
        // PowerShell begins with the type of its objects.
        let skipped = match self.rest.starts_with(b"#TYPE ") {
            true => memchr(b'\n', &self.rest).map_or(0, |at| at + 1),
            false => 0,
        };
        let end = memchr(b'\n', &self.rest[skipped..]).map(|at| skipped + at + 1);
        if end.is_none() && !self.is_done() {
            let is_long = self.rest.len() > MAX_LINE;
            return if is_long {
                Err(format!("its first line: {}", too_long()))
            } else {
                Ok(false)
            };
        }
        let end = end.unwrap_or(self.rest.len());
        let text = str::from_utf8(&self.rest[skipped..end]).map_err(|_| "its first line is not UTF-8".to_owned())?;
        if text.trim_ascii_end().contains('\r') {
            return Err("its lines end with \\r only: expected \\n or \\r\\n".to_owned());
        }
        let cells = |separator| cells(text, separator).map_err(|why| format!("its first line is not CSV: {why}"));
        let separator = [b',', b';', b'\t']
            .into_iter()
            .max_by_key(|&separator| (cells(separator).map_or(0, |cells| cells.len()), separator == b','));
        let separator = separator.unwrap_or(b',');
        self.header = cells(separator)?.into();
        if self.header.len() == 1 && end == self.rest.len() && self.is_done() {
            return Err("it is not JSON, and no CSV with more than a header".to_owned());
        }
        self.cutter = Cutter::new(Shape::Csv(separator, InRow::Start));
        let passed: Vec<u8> = self.rest.drain(..end).collect();
        self.pass(&passed);
        Ok(true)
    }

    /// Finds whose the records are, by the first of them.
    ///
    /// # Errors
    /// Why no source is found.
    fn find_source(&mut self, settings: &SourceSettings, records: &VecDeque<Range<usize>>) -> Result<(), String> {
        if let Some(source) = settings.source {
            self.source = Some(source);
            return Ok(());
        }
        let rows = records.iter().filter_map(|record| {
            let text = str::from_utf8(self.rest[record.clone()].trim_ascii());
            let text = text.ok().filter(|text| !text.is_empty())?;
            match self.cutter.shape {
                Shape::Csv(separator, _) => row_as_json(text, separator, &self.header).ok(),
                _ => Some(text.to_owned()),
            }
        });
        self.source = recognize(rows)?;
        Ok(())
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
