//! Files that `COPY ... TO` makes: catalogs of messages, and logs. Threads make rows ready at once, and a file takes them in
//! their order.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, StructArray};
use arrow_data::ffi::FFI_ArrowArray;
use arrow_schema::ffi::FFI_ArrowSchema;
use evtx_archive::NESTING;
use evtx_format::Interrupt;
use evtx_reports::{CatalogRows, LogMarks, LogOptions, LogRows, LogSegment};
use evtx_scan::{ScanError, Storage};
use evtx_writer::Check;

use crate::arguments::FORMAT;
use crate::boundary::{EvtxFailure, EvtxOwned, EvtxSlice, EvtxText, entry, produce, release, required, size, texts};
use crate::storage::EvtxStorage;
use crate::written::check_written;

/// Rows that follow each other in a file, made ready for it.
#[derive(Debug)]
pub struct EvtxRows {
    schema: FFI_ArrowSchema,
    rows: Rows,
}

#[derive(Debug)]
enum Rows {
    Catalog(Vec<RecordBatch>),
    Log(Box<LogSegment>),
}

/// A file that is being made of rows. Its parts can be written as soon as they are made.
#[derive(Debug)]
pub struct EvtxExport {
    file: File,
    place: Place,
    /// The last part that was returned.
    part: Vec<u8>,
    /// The marks of the records of a finished log.
    marks: LogMarks,
    copy: EvtxCopy,
}

/// What the files of a statement know of each other: the name of one whose records have pseudonyms, and of one whose have none.
#[derive(Debug, Clone, Default)]
pub struct EvtxCopy(Arc<Mutex<[Option<String>; 2]>>);

#[derive(Debug)]
enum File {
    Catalog(CatalogRows),
    Log(LogRows),
    /// The parts that are left, with their offsets.
    Finished(VecDeque<(u64, Vec<u8>)>),
}

/// A part of a file.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxPart<'a> {
    /// Where it belongs, in bytes from the start of the file.
    pub offset: u64,
    /// Its bytes; none if no part is ready.
    pub bytes: EvtxSlice<'a, u8>,
}

/// The options of a log, which are true or false.
const KEEP_IDS: &str = "keep_ids";

fn is_log(format: &str) -> bool {
    format == FORMAT
}

/// Whether a text is true. An option without a value is.
fn is_true(option: &str, value: &str) -> Result<bool, String> {
    let is = |known: &[&str]| known.iter().any(|known| known.eq_ignore_ascii_case(value));
    if is(&["", "true", "1"]) {
        Ok(true)
    } else if is(&["false", "0"]) {
        Ok(false)
    } else {
        Err(format!("{option} must be true or false, not '{value}'"))
    }
}

/// What the options of a format say.
fn log_options(format: &str, options: &[[&str; 2]]) -> Result<LogOptions, String> {
    let mut known = LogOptions::default();
    for [name, value] in options {
        match name.to_ascii_lowercase().as_str() {
            KEEP_IDS if is_log(format) => known.keep_ids = is_true(KEEP_IDS, value)?,
            _ => return Err(format!("COPY TO (FORMAT {format}): there is no option {name}")),
        }
    }
    Ok(known)
}

/// Names and values, which follow each other in turn.
fn pairs<'a>(options: EvtxSlice<'a, EvtxText<'a>>) -> Result<Vec<[&'a str; 2]>, String> {
    let pairs = options.get().as_chunks::<2>().0.iter();
    pairs.map(|[name, value]| Ok([name.text()?, value.text()?])).collect()
}

/// Begins a statement. Fails if a table with columns of these names cannot be a file of a format with this path and these
/// options. `options` are names and values in turn.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_export_check(
    format: EvtxText<'_>,
    path: EvtxText<'_>,
    names: EvtxSlice<'_, EvtxText<'_>>,
    options: EvtxSlice<'_, EvtxText<'_>>,
    out: Option<&mut EvtxOwned<EvtxCopy>>,
) -> EvtxFailure {
    produce(out, || {
        let (format, path) = (format.text()?, path.text()?);
        EvtxExport::check(format, path, &texts(names)?, &pairs(options)?)?;
        Ok(Some(EvtxCopy::default().into()))
    })
}

/// Frees a statement.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_copy_free(copy: EvtxOwned<EvtxCopy>) {
    release(|| drop(copy));
}

/// Begins rows of a file of a format. `schema` is that of their batches, and is taken over.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_rows_new(
    format: EvtxText<'_>,
    options: EvtxSlice<'_, EvtxText<'_>>,
    schema: Option<&mut FFI_ArrowSchema>,
    out: Option<&mut EvtxOwned<EvtxRows>>,
) -> EvtxFailure {
    produce(out, || {
        let schema = std::mem::replace(required(schema)?, FFI_ArrowSchema::empty());
        let format = format.text()?;
        let rows = if is_log(format) {
            Rows::Log(LogSegment::new(log_options(format, &pairs(options)?)?).into())
        } else {
            Rows::Catalog(Vec::new())
        };
        Ok(Some(EvtxRows { schema, rows }.into()))
    })
}

/// Adds a batch, which is taken over.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_rows_push(rows: Option<&mut EvtxRows>, batch: Option<&mut FFI_ArrowArray>) -> EvtxFailure {
    entry(|| {
        let batch = std::mem::replace(required(batch)?, FFI_ArrowArray::empty());
        Ok(required(rows)?.push(batch)?)
    })
}

/// Frees rows that no file has taken.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_rows_free(rows: EvtxOwned<EvtxRows>) {
    release(|| drop(rows));
}

/// Makes a file of a statement without rows, as [`EvtxExport::new`] says. `options` are names and values in turn.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_export_new(
    copy: Option<&EvtxCopy>,
    format: EvtxText<'_>,
    options: EvtxSlice<'_, EvtxText<'_>>,
    path: EvtxText<'_>,
    memory: EvtxText<'_>,
    out: Option<&mut EvtxOwned<EvtxExport>>,
) -> EvtxFailure {
    produce(out, || {
        let copy = required(copy)?.clone();
        let export = EvtxExport::new(copy, format.text()?, &pairs(options)?, path.text()?, memory.text()?)?;
        Ok(Some(export.into()))
    })
}

/// The path to write the parts to, which lives as long as the file.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_export_path<'a>(export: Option<&'a EvtxExport>, out: Option<&mut EvtxText<'a>>) -> EvtxFailure {
    produce(out, || Ok(EvtxText::of(required(export)?.path())))
}

/// Adds rows of the same format and options, which are taken over.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_export_append(
    export: Option<&mut EvtxExport>,
    rows: EvtxOwned<EvtxRows>,
    storage: EvtxStorage,
) -> EvtxFailure {
    entry(|| {
        let (export, rows) = (required(export)?, required(rows)?.rows);
        Ok(storage.during(|_, interrupt| export.append(rows, interrupt))?)
    })
}

/// Returns a part of the file that is ready, until the next call with this file. Each part is returned once.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_export_take<'a>(
    export: Option<&'a mut EvtxExport>,
    out: Option<&mut EvtxPart<'a>>,
) -> EvtxFailure {
    produce(out, || {
        let (offset, bytes) = required(export)?.take();
        let bytes = EvtxSlice::borrowed(bytes);
        Ok(EvtxPart { offset, bytes })
    })
}

/// Makes the last parts of the file.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_export_finish(export: Option<&mut EvtxExport>, storage: EvtxStorage) -> EvtxFailure {
    entry(|| {
        let export = required(export)?;
        Ok(storage.during(|_, interrupt| export.finish(interrupt))?)
    })
}

/// Moves the file to its place. All parts were written, and the file is closed. Fails if its records have pseudonyms, and it
/// contains other values that are not allowed. A file that fails, or is freed before this, is removed.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_export_keep(export: Option<&mut EvtxExport>, storage: EvtxStorage) -> EvtxFailure {
    entry(|| {
        let export = required(export)?;
        Ok(storage.during(|storage, interrupt| export.keep(storage, interrupt))?)
    })
}

/// Frees a file that is made.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_export_free(export: EvtxOwned<EvtxExport>) {
    release(|| drop(export));
}

impl EvtxRows {
    fn push(&mut self, batch: FFI_ArrowArray) -> Result<(), String> {
        // SAFETY: the caller passes a batch of the schema.
        let data = unsafe { arrow_array::ffi::from_ffi(batch, &self.schema) };
        let batch = RecordBatch::from(StructArray::from(data.map_err(|error| error.to_string())?));
        match &mut self.rows {
            Rows::Catalog(batches) => batches.push(batch),
            Rows::Log(part) => part.push(batch),
        }
        Ok(())
    }
}

impl EvtxExport {
    /// Checks the columns, the path and the options of a file, as [`evtx_export_check`] does.
    ///
    /// # Errors
    /// A text that says what is wrong.
    pub fn check(format: &str, path: &str, names: &[&str], options: &[[&str; 2]]) -> Result<(), String> {
        EvtxExport::check_options(format, options)?;
        let path = path.to_ascii_lowercase();
        if is_log(format) && NESTING.files.iter().any(|ending| path.ends_with(ending)) {
            return Err(format!("a log is not compressed: end its name in .evtx, not in {path}"));
        }
        if is_log(format) {
            LogRows::check(names)
        } else {
            CatalogRows::check(names)
        }
    }

    /// Checks the options of a file.
    ///
    /// # Errors
    /// A text that names an option that the format lacks.
    pub fn check_options(format: &str, options: &[[&str; 2]]) -> Result<(), String> {
        log_options(format, options).map(drop)
    }

    /// A file of a format without rows, whose place is a path. `memory` is DuckDB's `memory_limit`, such as
    /// `24.9 GiB`. The rows of a catalog take at most a quarter of it.
    ///
    /// # Errors
    /// A text that names an option that the format lacks.
    pub fn new(copy: EvtxCopy, format: &str, options: &[[&str; 2]], path: &str, memory: &str) -> Result<Self, String> {
        let options = log_options(format, options)?;
        let file = if is_log(format) {
            File::Log(LogRows::new(options))
        } else {
            File::Catalog(CatalogRows::new(size(memory) / 4))
        };
        Ok(EvtxExport {
            file,
            place: Place::new(path),
            part: Vec::new(),
            marks: LogMarks::default(),
            copy,
        })
    }

    /// Adds the rows of a batch.
    ///
    /// # Errors
    /// A text that names the file and the row, counted from 1, and what is wrong with it; or [`ScanError::Interrupted`].
    pub fn push(&mut self, batch: &RecordBatch, interrupt: Interrupt<'_>) -> Result<(), ScanError> {
        let pushed = match &mut self.file {
            File::Catalog(rows) => rows.push(batch, interrupt),
            File::Log(rows) => rows.push(batch),
            File::Finished(_) => Err("the file is finished".to_owned()),
        };
        self.named(pushed, interrupt)
    }

    fn append(&mut self, rows: Rows, interrupt: Interrupt<'_>) -> Result<(), ScanError> {
        let appended = match (&mut self.file, rows) {
            (File::Catalog(catalog), Rows::Catalog(batches)) => {
                batches.iter().try_for_each(|batch| catalog.push(batch, interrupt))
            }
            (File::Log(file), Rows::Log(part)) => file.append(*part),
            _ => Err("the file is finished, or of another format".to_owned()),
        };
        self.named(appended, interrupt)
    }

    /// The result of some work on the file, whose error names the file. The error of an interrupt is that of the query.
    fn named<T>(&self, result: Result<T, String>, interrupt: Interrupt<'_>) -> Result<T, ScanError> {
        interrupt.check()?;
        result.map_err(|why| ScanError::Input(format!("{}: {why}", self.place.named)))
    }

    /// Takes a part of the file that is ready: its offset in the file, and its bytes; none if no part is ready.
    pub fn take(&mut self) -> (u64, &[u8]) {
        let (offset, bytes) = match &mut self.file {
            File::Catalog(_) => (0, Vec::new()),
            File::Log(rows) => rows.take_chunks(),
            File::Finished(parts) => parts.pop_front().unwrap_or_default(),
        };
        self.part = bytes;
        self.place.is_begun |= !self.part.is_empty();
        (offset, &self.part)
    }

    /// Makes the last parts of the file.
    ///
    /// # Errors
    /// Why the rows cannot be such a file, or [`ScanError::Interrupted`].
    pub fn finish(&mut self, interrupt: Interrupt<'_>) -> Result<(), ScanError> {
        let parts = match &mut self.file {
            File::Catalog(rows) => std::mem::take(rows).finish(interrupt).map(|bytes| vec![(0, bytes)]),
            File::Log(rows) => {
                self.marks = rows.take_marks();
                Ok(rows.finish())
            }
            File::Finished(_) => return Ok(()),
        };
        let mut parts = VecDeque::from(self.named(parts, interrupt)?);
        // No bytes mean that no part is ready.
        parts.retain(|(_, bytes)| !bytes.is_empty());
        self.file = File::Finished(parts);
        Ok(())
    }

    /// The path to write the parts to.
    pub fn path(&self) -> &str {
        self.place.part.as_ref().unwrap_or(&self.place.path)
    }

    /// Checks the file that was written of all parts, if a record has pseudonyms, and moves it to its place. The file must be
    /// closed.
    ///
    /// # Errors
    /// Files of the statement with pseudonyms, and others without; a value that is neither allowed nor a pseudonym; a file that cannot be read or moved, or [`ScanError::Interrupted`].
    /// The file is removed.
    pub fn keep(&mut self, storage: &dyn Storage, interrupt: Interrupt<'_>) -> Result<(), ScanError> {
        let kept = self.checked(storage, interrupt).and_then(|()| self.place.keep());
        kept.inspect_err(|_| self.abandon())
    }

    fn checked(&mut self, storage: &dyn Storage, interrupt: Interrupt<'_>) -> Result<(), ScanError> {
        let marks = std::mem::take(&mut self.marks);
        let entries = marks.entries;
        if !entries.is_empty() || marks.has_others {
            let mut files = self.copy.0.lock().unwrap_or_else(PoisonError::into_inner);
            files[usize::from(entries.is_empty())] = Some(self.place.named.clone());
            if let [Some(_), Some(other)] = &*files {
                return Err(ScanError::Input(format!(
                    "\"{other}\": the log has no pseudonyms, but other files of the same COPY have. Remove it, and pass each \
                     record through evtx_pseudonymize, last of all functions"
                )));
            }
        }
        if entries.is_empty() {
            return Ok(());
        }
        let check = Check::new(entries.iter().map(|entries| &**entries), marks.pseudonyms).map_err(ScanError::Input)?;
        check_written(storage, self.path(), &self.place.named, &check, interrupt)
    }

    /// Removes the file if it is not at its place yet. It must be closed.
    pub fn abandon(&mut self) {
        self.place.abandon();
    }
}

/// Where a file is written.
#[derive(Debug)]
struct Place {
    /// The path as the caller has named it.
    named: String,
    path: String,
    /// The path until the file is whole, beside its place, which no other file has. `None` if the file is written in place:
    /// by an address with a scheme, or to a device or a pipe.
    part: Option<String>,
    is_begun: bool,
}

impl Place {
    fn new(named: &str) -> Self {
        // The file that a link leads to is replaced, not the link.
        let linked = std::fs::read_link(named).and_then(|_| std::fs::canonicalize(named));
        let path = linked.ok().and_then(|path| path.into_os_string().into_string().ok());
        let path = path.unwrap_or_else(|| named.to_owned());
        let is_file = std::fs::metadata(&path).map_or(true, |known| known.is_file());
        let folder = path.rfind(std::path::is_separator).map_or(0, |at| at + 1);
        let number = RandomState::new().hash_one(&path);
        let part = (is_file && !path.contains("://")).then(|| format!("{}evtx-{number:016x}.part", &path[..folder]));
        Place {
            named: named.to_owned(),
            path,
            part,
            is_begun: false,
        }
    }

    fn keep(&mut self) -> Result<(), ScanError> {
        if let Some(part) = &self.part {
            let problem = |error| ScanError::Input(format!("Cannot move \"{part}\" to \"{}\": {error}", self.path));
            std::fs::rename(part, &self.path).map_err(problem)?;
        }
        self.is_begun = false;
        Ok(())
    }

    fn abandon(&mut self) {
        if let Some(part) = self.part.as_ref().filter(|_| self.is_begun) {
            std::fs::remove_file(part).ok();
        }
        self.is_begun = false;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.abandon();
    }
}
