//! A file whose records are read piece by piece.

use std::sync::Arc;

use encoding_rs::{Decoder, UTF_8};
use evtx_archive::{NESTING, decode, encoding, len_in_file};
use evtx_scan::{Call, OpenFile, ScanError, ScanPath, StorageError, ends_with};
use memchr::{memchr, memchr_iter};

use crate::block::{Block, Record};
use crate::json::Json;
use crate::recognize::recognize;
use crate::records::{Cutter, InRow, MAX_LINE, Shape, Table, cells, too_long};
use crate::settings::SourceSettings;
use crate::sources::Source;

/// Bytes that are read at once of a local and of a remote file.
const LOCAL_PIECE: u64 = 1 << 20;
const REMOTE_PIECE: u64 = 8 << 20;

/// Files of these names are JSON, whatever they start with.
const JSON_ENDS: [&str; 3] = [".json", ".jsonl", ".ndjson"];

/// A file, which the first read opens.
#[derive(Default)]
pub(crate) struct Export {
    filename: Arc<str>,
    file: Option<OpenFile>,
    decoder: Option<Decoder>,
    /// Where the next piece starts.
    next: u64,
    /// How many pieces were read.
    pub(crate) pieces: u64,
    /// The start of a record that was read, as UTF-8, and its place.
    rest: Vec<u8>,
    place: (u64, u64),
    /// Finds the ends of records. `None` until their shape is known.
    cutter: Option<Cutter>,
    /// The header, if the records are rows of CSV.
    table: Option<Arc<Table>>,
    /// Whose events they are. `None` until a row shows it.
    source: Option<&'static Source>,
    /// The place of a record that is too long. What was read of it is not kept.
    long: Option<(u64, u64)>,
}

/// The place after some text, as the number of its line and its offset in the file.
fn after((line, offset): (u64, u64), text: &[u8], decoder: Option<&Decoder>) -> (u64, u64) {
    let len = len_in_file(text, decoder.map(Decoder::encoding));
    (line + memchr_iter(b'\n', text).count() as u64, offset + len)
}

impl Export {
    pub(crate) fn new(path: &ScanPath, settings: &SourceSettings) -> Self {
        Export {
            filename: path.path.as_str().into(),
            place: (1, 0),
            source: settings.source,
            ..Export::default()
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
    ///
    /// # Errors
    /// Those of a file that the caller named, and [`ScanError::Interrupted`].
    pub(crate) fn read(&mut self, path: &ScanPath, index: u64, call: Call<'_>) -> Result<Block, ScanError> {
        let mut block = Block {
            index,
            filename: Arc::clone(&self.filename),
            ..Block::default()
        };
        let mut why = if self.pieces == 0 { self.open(path, call)? } else { None };
        while block.records.is_empty() && !self.is_done() {
            call.interrupt.check()?;
            if let Err(error) = self.read_piece() {
                self.file = None;
                why = Some(path.failure(error)?);
            }
            if let Err(unusable) = self.cut(&mut block) {
                self.file = None;
                block.records.clear();
                why = Some(path.unusable(unusable)?);
            }
        }
        self.pieces += 1;
        if let Some(open) = self.file.as_mut().filter(|open| self.next >= open.file.size()) {
            why = match open.failure.take() {
                // A damaged file is read as far as it can be.
                Some(failure) => Some(path.damage(failure)?),
                None if self.cutter.as_ref().is_some_and(Cutter::is_in_list) => {
                    Some("the file ends before its list of events does: events can be missing".to_owned())
                }
                None => None,
            };
        }
        block.records.extend(why.map(|why| Record::unread(None, why)));
        Ok(block)
    }

    /// Opens the file. Returns why it cannot be read.
    fn open(&mut self, path: &ScanPath, call: Call<'_>) -> Result<Option<String>, ScanError> {
        let why = match path.open(call) {
            Ok(mut open) => match open.failure.take_if(|_| open.file.size() == 0) {
                Some(why) => why,
                None => {
                    self.file = Some(open);
                    return Ok(None);
                }
            },
            Err(why) => why,
        };
        path.failure(why).map(Some)
    }

    /// Moves the records that were read into a block.
    ///
    /// # Errors
    /// Why the file is not one of records.
    fn cut(&mut self, block: &mut Block) -> Result<(), String> {
        if self.cutter.is_none() {
            self.cutter = self.begin()?;
        }
        let (is_done, decoder) = (self.is_done(), self.decoder.as_ref());
        let Some(cutter) = &mut self.cutter else { return Ok(()) };
        let mut passed = 0;
        for found in cutter.records(&self.rest, is_done) {
            let start = *found.as_ref().map_or_else(|odd| odd, |record| &record.start);
            let place = after(self.place, &self.rest[passed..start], decoder);
            let range = match found {
                Ok(range) => range,
                Err(odd) => {
                    let bracket = char::from(self.rest[odd]);
                    let why = format!("a {bracket} closes nothing: events can be missing");
                    block.records.push_back(Record::unread(Some(place), why));
                    continue;
                }
            };
            let text = &self.rest[range.clone()];
            passed = range.end;
            self.place = after(place, text, decoder);
            if let Some(place) = self.long.take() {
                block.records.push_back(Record::unread(Some(place), too_long()));
            } else if !text.trim_ascii().is_empty() {
                block.records.push_back(Record {
                    place: Some(place),
                    text: Ok(range),
                });
            }
        }
        let end = cutter.passed();
        self.place = after(self.place, &self.rest[passed..end], decoder);
        cutter.forget(end);
        let rest = self.rest.split_off(end);
        block.bytes = std::mem::replace(&mut self.rest, rest);
        if self.rest.len() > MAX_LINE && !is_done {
            self.long.get_or_insert(self.place);
            self.place = after(self.place, &self.rest, decoder);
            cutter.forget(self.rest.len());
            cutter.give_up();
            self.rest.clear();
        }
        if let Some(place) = self.long.take_if(|_| is_done) {
            block.records.push_back(Record::unread(Some(place), too_long()));
        }
        block.table = self.table.clone();
        if self.source.is_none() {
            let rows = block.records.iter().filter_map(|record| {
                str::from_utf8(&block.bytes[record.text.clone().ok()?]).ok()?;
                // What is not JSON is not an object of any source.
                let otherwise = block.table.is_none().then_some(Json::Null);
                block.read(record).ok().or(otherwise)
            });
            self.source = recognize(rows)?;
        }
        block.source = self.source;
        Ok(())
    }

    /// Finds how the records of the file follow each other; `None` if more of the file is needed.
    ///
    /// # Errors
    /// Why they cannot be found.
    fn begin(&mut self) -> Result<Option<Cutter>, String> {
        self.pass(self.rest.len() - self.rest.trim_ascii_start().len());
        let Some(first) = self.rest.first() else {
            return Ok(self.is_done().then(|| Cutter::new(Shape::Lines)));
        };
        let name = &*self.filename;
        let packed = NESTING.files.iter().find(|end| ends_with(name, end));
        let name = &name[..name.len() - packed.map_or(0, |end| end.len())];
        if matches!(first, b'{' | b'[') || JSON_ENDS.iter().any(|end| ends_with(name, end)) {
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
        // Of those with as many values, the last one counts.
        let count = |separator: &u8| cells(text, *separator).map_or(0, |cells| cells.len());
        let separator = [b';', b'\t', b','].into_iter().max_by_key(count).unwrap_or(b',');
        let header = cells(text, separator).map_err(|why| format!("its first line is not CSV: {why}"))?;
        if header.len() == 1 && end == self.rest.len() && self.is_done() {
            return Err("it is not JSON, and no CSV with more than a header".to_owned());
        }
        self.table = Some(Arc::new(Table { separator, header }));
        self.pass(end);
        Ok(Some(Cutter::new(Shape::Csv(separator, InRow::Start))))
    }

    /// Moves over bytes that are of no record.
    fn pass(&mut self, len: usize) {
        self.place = after(self.place, &self.rest[..len], self.decoder.as_ref());
        self.rest.drain(..len);
    }

    /// Adds the next piece of the file to the rest.
    fn read_piece(&mut self) -> Result<(), StorageError> {
        let Some(open) = &self.file else { return Ok(()) };
        let piece = if open.is_remote { REMOTE_PIECE } else { LOCAL_PIECE };
        let mut bytes = vec![0; piece.min(open.file.size() - self.next) as usize];
        open.file.read_at(&mut bytes, self.next)?;
        let mut mark = 0;
        if self.next == 0 {
            let (encoding, len) = encoding(&bytes);
            mark = len;
            self.place.1 = len as u64;
            self.decoder = (encoding != UTF_8).then(|| encoding.new_decoder_without_bom_handling());
        }
        self.next += bytes.len() as u64;
        let is_last = self.is_done();
        decode(self.decoder.as_mut(), &bytes[mark..], is_last, &mut self.rest);
        Ok(())
    }
}
