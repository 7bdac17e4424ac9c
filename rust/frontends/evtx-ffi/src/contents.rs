//! The functions that read logs from values, for a vector of rows at a time: how many rows each has, and each row.
//!
//! A list of all rows of a log could be large. So the first function gives a number for each row, and the second, which DuckDB calls
//! with the numbers of a vector, reads on from batch to batch.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::sync::{Arc, LazyLock, OnceLock};

use arrow_array::{ArrayRef, FixedSizeBinaryArray, RecordBatch, UInt32Array, new_null_array};
use arrow_buffer::Buffer;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat;
use arrow_select::take::take;
use evtx_archive::ArchiveStorage;
use evtx_format::Interrupt;
use evtx_query::Query;
use evtx_scan::{LocalStorage, ScanError, ScanPath, Storage, StorageError, StorageFile, Worker};

use crate::arguments::EvtxArguments;
use crate::boundary::EvtxError;
use crate::paths::EvtxPaths;
use crate::rows::{list_array, typed};
use crate::scalar::{CONTENT_ROW, Caller, EvtxVector, Scalar, ScalarFunction, structs, text};
use crate::vectors::ARRAYS;

/// The macro that calls the functions.
const CALLER: &str = "evtx_records";

/// What entries of archives may take, as DuckDB writes its settings: half a GiB of memory together, and no disk.
const MEMORY: &str = "4.0 GiB";

/// How many bytes are copied or hashed between two checks for an interrupt.
const PIECE: usize = 1 << 20;

/// The columns of a log.
fn schema() -> &'static SchemaRef {
    static SCHEMA: OnceLock<SchemaRef> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let arguments = EvtxArguments::new(Query::Records, CALLER.to_owned()).arguments;
        let call = arguments.call(Vec::new(), 1, 0, &LocalStorage, CALLER, Interrupt::NEVER);
        call.map_or_else(|_| Schema::empty().into(), |call| call.table.schema())
    })
}

/// The functions.
pub(crate) fn functions() -> [ScalarFunction; 2] {
    let content = Field::new("content", DataType::Binary, true);
    let filename = text("filename");
    let number = typed::<i128>("number");
    // JSON is a type of an extension, which not every client has.
    let plain = |field: &Arc<Field>| match field.extension_type_name() {
        Some("arrow.json") => Field::new(field.name(), DataType::Utf8, true),
        _ => Field::clone(field),
    };
    let columns = schema().fields().iter().map(plain).collect();
    [
        ScalarFunction {
            name: "evtx_content_rows",
            description: "A number for each row of evtx_records, which calls it.",
            example: "SELECT len(evtx_content_rows(content, filename)) FROM read_blob('Security.evtx')",
            parameters: vec![content.clone(), filename.clone()],
            result: typed::<Vec<i128>>("numbers"),
            make: Box::new(|| Box::new(Numbers)),
        },
        ScalarFunction {
            name: CONTENT_ROW,
            description: "The row of evtx_records with a number of evtx_content_rows.",
            example: "SELECT evtx_content_row(content, filename, unnest(evtx_content_rows(content, filename))) FROM \
                      read_blob('Security.evtx')",
            parameters: vec![content, filename, number],
            result: Field::new("row", DataType::Struct(columns), true),
            make: Box::new(|| Box::new(Rows(None))),
        },
    ]
}

/// A file in memory, at a path.
#[derive(Clone)]
struct Content {
    path: String,
    bytes: Arc<Vec<u8>>,
}

impl Storage for Content {
    fn glob(&self, pattern: &str, _: Interrupt<'_>) -> Result<Vec<Vec<u8>>, StorageError> {
        let found = self.exists(pattern)?.then(|| pattern.into());
        Ok(found.into_iter().collect())
    }

    fn exists(&self, path: &str) -> Result<bool, StorageError> {
        Ok(path == self.path)
    }

    fn is_remote(&self, _: &str) -> bool {
        false
    }

    fn open(&self, _: &str) -> Result<Arc<dyn StorageFile>, StorageError> {
        Ok(Arc::new(self.clone()))
    }
}

impl StorageFile for Content {
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), StorageError> {
        let rest = usize::try_from(offset).ok().and_then(|start| self.bytes.get(start..));
        let bytes = rest.and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(bytes.ok_or_else(|| StorageError::Failed("the content has ended".to_owned()))?);
        Ok(())
    }
}

/// A log, or the logs in an archive, read from the first row on.
struct OpenLog {
    content: Content,
    /// A number for the bytes, by a key of this process: nobody can make another log with it.
    digest: u64,
    filename: Option<String>,
    worker: Worker,
    /// The last rows, and the number of the first.
    batch: Option<RecordBatch>,
    first: u64,
}

impl OpenLog {
    /// Opens a log to read the columns with these indexes.
    fn new(
        bytes: &[u8],
        filename: Option<&str>,
        columns: &[usize],
        interrupt: Interrupt<'_>,
    ) -> Result<Self, EvtxError> {
        static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        let (mut copy, mut hasher) = (Vec::new(), KEY.build_hasher());
        let no_memory = |error| format!("{CALLER}: {error}");
        copy.try_reserve_exact(bytes.len()).map_err(no_memory)?;
        for piece in bytes.chunks(PIECE) {
            interrupt.check().map_err(ScanError::from)?;
            copy.extend_from_slice(piece);
            hasher.write(piece);
        }
        let (path, bytes) = (filename.unwrap_or("content").to_owned(), copy.into());
        let content = Content { path, bytes };
        let of = EvtxArguments::new(Query::Records, CALLER.to_owned());
        let mut files = EvtxPaths::new(&of, MEMORY, "", "0 bytes");
        match files.expand(&of, &content.path, &content, interrupt) {
            Ok(()) => {}
            Err(ScanError::Interrupted(interrupted)) => return Err(ScanError::from(interrupted).into()),
            Err(error) => files.paths = vec![ScanPath::unreadable(content.path.clone(), &error.to_string())],
        }
        // What cannot be read is a row.
        files.paths.iter_mut().for_each(|path| path.explicitly_named = false);
        let storage = ArchiveStorage::new(&content, &files.archives);
        let arguments = of.arguments;
        let call = arguments.call(files.paths, 1, files.memory, &storage, CALLER, interrupt)?;
        let (scan, _) = call.scan(columns, &[], files.memory);
        Ok(OpenLog {
            content,
            digest: hasher.finish(),
            filename: filename.map(str::to_owned),
            worker: Worker::new(&Arc::new(scan), ARRAYS),
            batch: None,
            first: 0,
        })
    }

    /// The numbers of the rows in the batch.
    fn rows(&self) -> Range<u64> {
        self.first..self.first + self.batch.as_ref().map_or(0, RecordBatch::num_rows) as u64
    }

    /// Reads the next batch. Whether there is one.
    fn next(&mut self, interrupt: Interrupt<'_>) -> Result<bool, EvtxError> {
        self.first = self.rows().end;
        let batch = self.worker.next(&self.content, interrupt)?;
        self.batch = batch.map(|batch| batch.rows);
        Ok(self.batch.is_some())
    }

    /// Rows of the batch, as structs.
    fn take(&self, rows: Vec<u32>) -> Result<ArrayRef, EvtxError> {
        let (rows, fields) = (UInt32Array::from(rows), schema().fields());
        let columns = self.batch.as_ref().map_or(&[][..], RecordBatch::columns);
        let columns = columns.iter().zip(fields).map(|(column, field)| {
            if self.filename.is_none() && field.name() == "filename" {
                return Ok(new_null_array(column.data_type(), rows.len()));
            }
            take(column, &rows, None)
        });
        let columns = columns
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string())?;
        Ok(structs(fields, columns))
    }
}

struct Numbers;

impl Scalar for Numbers {
    /// Numbers from 0 on, with the digest of the content in their upper half. None for NULL.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let &[contents, filenames] = vectors else {
            return Err("evtx_content_rows has two arguments".into());
        };
        let (mut numbers, mut counts) = (Vec::new(), Vec::new());
        for row in 0..contents.rows {
            let start = numbers.len();
            // SAFETY: by the contract of this function.
            let (bytes, filename) = unsafe { (contents.bytes(row), filenames.text(row)?) };
            if let Some(bytes) = bytes {
                let mut log = OpenLog::new(bytes, filename, &[0], caller.interrupt)?;
                while log.next(caller.interrupt)? {
                    numbers.extend(log.rows().map(|number| [number, log.digest]));
                }
            }
            counts.push(numbers.len() - start);
        }
        let numbers = FixedSizeBinaryArray::try_new(16, Buffer::from_vec(numbers.into_flattened()), None);
        let numbers = numbers.map_err(|error| error.to_string())?;
        Ok(list_array(Arc::new(numbers), counts, None))
    }
}

/// The log that a thread reads.
struct Rows(Option<OpenLog>);

impl Scalar for Rows {
    /// NULL for a NULL content or number.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let &[contents, filenames, numbers] = vectors else {
            return Err("evtx_content_row has three arguments".into());
        };
        let columns: Vec<_> = (0..schema().fields().len()).collect();
        let (mut pieces, mut row) = (Vec::new(), 0);
        while row < numbers.rows {
            // SAFETY: by the contract of this function. A HUGEINT has its lower half first.
            let read = |row| unsafe { (contents.bytes(row), filenames.text(row), numbers.value::<[u64; 2]>(row)) };
            let (Some(bytes), filename, Some([number, digest])) = read(row) else {
                pieces.push(None);
                row += 1;
                continue;
            };
            let filename = filename?;
            let is_open =
                |log: &OpenLog| (log.digest, log.filename.as_deref()) == (digest, filename) && log.first <= number;
            let mut log = match self.0.take().filter(is_open) {
                Some(log) => log,
                None => OpenLog::new(bytes, filename, &columns, caller.interrupt)?,
            };
            while number >= log.rows().end {
                if log.digest != digest || !log.next(caller.interrupt)? {
                    return Err("evtx_content_row: there is no such row".into());
                }
            }
            // All rows that follow in the same batch.
            let mut taken = Vec::new();
            while row < numbers.rows
                && let (Some(_), Ok(name), Some([number, of])) = read(row)
                && (of, name) == (digest, filename)
                && log.rows().contains(&number)
            {
                taken.push((number - log.first) as u32);
                row += 1;
            }
            pieces.push(Some(log.take(taken)?));
            self.0 = Some(log);
        }
        let known = pieces.iter().flatten().next().map(|piece| piece.data_type().clone());
        let null = new_null_array(&known.unwrap_or_else(|| DataType::Struct(schema().fields().clone())), 1);
        let none = null.slice(0, 0);
        let pieces = pieces.iter().map(|piece| piece.as_ref().unwrap_or(&null));
        let pieces: Vec<_> = pieces.chain([&none]).map(AsRef::as_ref).collect();
        Ok(concat(&pieces).map_err(|error| error.to_string())?)
    }
}
