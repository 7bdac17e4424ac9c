//! The commands of a worker.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, UInt8Type};
use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, RecordBatch, RecordBatchReader, StringArray};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use bytes::Bytes;
use evtx_detect::{ENUMS, enum_of};
use evtx_ffi::{EvtxArguments, EvtxCall, EvtxPaths, EvtxScan, EvtxWorker, Macro, about, macros, page};
use evtx_format::Interrupt;
use evtx_query::{Query, ScanTask};
use evtx_scan::FileSplit;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};

use crate::files::{DroppedFiles, Read};
use crate::functions;

/// What an instance keeps between two commands.
pub struct Session {
    files: DroppedFiles,
    scan: Option<OpenScan>,
    parquet: Option<ArrowWriter<Vec<u8>>>,
}

/// A scan whose rows are not all handed over.
struct OpenScan {
    worker: EvtxWorker,
    /// The schema of the rows.
    schema: SchemaRef,
    /// Whether a stream was handed over: the first one may have no rows.
    has_begun: bool,
}

/// What a scan may use of the memory, as DuckDB writes it. Archives and messages take a quarter of it each at most, and an entry
/// of an archive a sixteenth, compressed: 128 MiB, because there is no folder for temporary files.
const MEMORY: &str = "2 GiB";

/// The text of a field of a command; empty if there is none.
fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// The texts in a list of a command.
fn texts(value: &Value) -> impl Iterator<Item = String> {
    value.as_array().into_iter().flatten().map(plain)
}

/// A value as text, without the quotes of JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn shown(error: impl ToString) -> String {
    error.to_string()
}

/// The query of a table function.
fn query(function: &str) -> Result<Query, String> {
    let found = Query::ALL.into_iter().find(|&query| about(query)[0] == function);
    found.ok_or_else(|| format!("there is no function {function}"))
}

/// The arguments of the call of a command.
fn arguments(command: &Value) -> Result<EvtxArguments, String> {
    let function = text(command, "function");
    let values = command["arguments"].as_object().cloned().unwrap_or_default();
    EvtxArguments::of_json(query(function)?, function, values).map_err(shown)
}

fn task_to_json(task: ScanTask) -> Value {
    match task {
        ScanTask::File(path, is_named, FileSplit { size, slots }) => {
            // JavaScript has no such number as the end of the last split.
            let slots = slots.map(|slots| [Some(slots.start), Some(slots.end).filter(|&end| end < u64::MAX)]);
            json!({"file": path, "named": is_named, "size": size, "slots": slots})
        }
        ScanTask::Nested(path, files) => json!({"outer": path, "files": files}),
        ScanTask::Unreadable(path, why) => json!({"unreadable": path, "why": why}),
    }
}

fn task_of_json(task: &Value) -> ScanTask {
    if let Some(path) = task["unreadable"].as_str() {
        return ScanTask::Unreadable(path.to_owned(), text(task, "why").to_owned());
    }
    if let Some(path) = task["outer"].as_str() {
        let files = task["files"].as_array().into_iter().flatten();
        let files = files.map(|file| (plain(&file[0]), file[1].as_bool().unwrap_or_default()));
        return ScanTask::Nested(path.to_owned(), files.collect());
    }
    let slots = task["slots"].as_array().map(|slots| {
        let slot = |index: usize| slots.get(index).and_then(Value::as_u64);
        slot(0).unwrap_or_default()..slot(1).unwrap_or(u64::MAX)
    });
    let size = task["size"].as_u64().unwrap_or_default();
    ScanTask::File(
        text(task, "file").to_owned(),
        task["named"].as_bool().unwrap_or_default(),
        FileSplit { size, slots },
    )
}

impl Session {
    /// A session that reads files by `read`.
    pub fn new(read: Box<Read>) -> Self {
        Session {
            files: DroppedFiles::new(read),
            scan: None,
            parquet: None,
        }
    }

    /// Runs a command, which is an object in JSON. Its `do` is
    ///
    /// - `files`: sets the `files`, each a path and a size in bytes; their numbers are their places in the list.
    /// - `plan`: the files that the paths `files` name, in partitions of about `target` bytes, for the function
    ///   `function`. Each partition is a list of tasks. With `splits`, a large file is in several.
    /// - `open`: begins a scan of `function` over the paths `files` and the `tasks` of a plan, with the `arguments`, and
    ///   the columns named `columns`; all without these. Answers with the names of the columns.
    /// - `next`: the next rows of the scan, about `rows` of them, as an Arrow IPC stream; nothing at the end. There is a stream
    ///   at least, if only with an empty batch.
    /// - `parquet`: writes the rows of the Arrow IPC stream `input` to a Parquet file, a new one with `first`, and answers with
    ///   the bytes that are complete; without an input, with the rest of the file.
    /// - `rows`: the columns named `columns` of the Parquet file `input`, as an Arrow IPC stream.
    /// - `report`: the page of the macro `evtx_case_report_of` with the `data` in JSON.
    /// - `definitions`: the types and macros of SQL that need no files, as `statements`, and the names of the functions that do, as
    ///   `missing`.
    /// - `function`: calls the function `name` with `count` arguments for the rows in `input`: see `functions.rs`.
    ///
    /// # Errors
    /// A text for the user.
    pub fn run(&mut self, command: &[u8], input: &[u8]) -> Result<Vec<u8>, String> {
        let command: Value = serde_json::from_slice(command).map_err(shown)?;
        let answer = match text(&command, "do") {
            "files" => {
                let files = command["files"].as_array().into_iter().flatten();
                self.files
                    .set(files.map(|file| (plain(&file[0]), file[1].as_u64().unwrap_or_default())));
                Value::Null
            }
            "plan" => self.plan(&command)?,
            "open" => self.open(&command)?,
            "next" => return self.next(command["rows"].as_u64().unwrap_or(u64::MAX)),
            "parquet" => {
                let is_first = command["first"].as_bool().unwrap_or_default();
                return self.parquet(is_first, input).map_err(shown);
            }
            "rows" => return rows_of_parquet(&command["columns"], input).map_err(shown),
            "report" => return Ok(report(text(&command, "data")).into_bytes()),
            "function" => {
                let count = command["count"].as_u64().unwrap_or_default();
                return functions::call(text(&command, "name"), count as usize, input);
            }
            "definitions" => definitions(),
            other => return Err(format!("there is no command {other}")),
        };
        Ok(answer.to_string().into_bytes())
    }

    /// The files of a command.
    fn paths(&self, command: &Value, arguments: &EvtxArguments) -> Result<EvtxPaths, String> {
        let mut paths = EvtxPaths::new(arguments, MEMORY, "", "0 bytes");
        for path in texts(&command["files"]) {
            paths
                .expand(arguments, &path, &self.files, Interrupt::NEVER)
                .map_err(shown)?;
        }
        for task in command["tasks"].as_array().into_iter().flatten() {
            let added = paths.add(arguments, &task_of_json(task), &self.files, Interrupt::NEVER);
            added.map_err(shown)?;
        }
        Ok(paths)
    }

    fn plan(&self, command: &Value) -> Result<Value, String> {
        let arguments = arguments(command)?;
        let paths = self.paths(command, &arguments)?;
        let target = command["target"].as_u64().unwrap_or(u64::MAX);
        let splits = command["splits"].as_bool().unwrap_or_default();
        let partitions = paths.partitions(target, splits, &self.files, Interrupt::NEVER);
        let partitions = partitions.map_err(shown)?;
        let partitions = partitions.into_iter();
        Ok(partitions
            .map(|tasks| tasks.into_iter().map(task_to_json).collect::<Value>())
            .collect())
    }

    fn open(&mut self, command: &Value) -> Result<Value, String> {
        self.scan = None;
        let mut arguments = arguments(command)?;
        let wanted: Vec<String> = texts(&command["columns"]).collect();
        wanted.iter().for_each(|name| arguments.arguments.require(name));
        let paths = self.paths(command, &arguments)?;
        let call = EvtxCall::new(&arguments, paths, 1, &self.files, Interrupt::NEVER).map_err(shown)?;
        let is_wanted =
            |field: &FieldRef| wanted.is_empty() || wanted.iter().any(|name| name.eq_ignore_ascii_case(field.name()));
        let (columns, fields): (Vec<u64>, Vec<FieldRef>) = (0..)
            .zip(call.schema.fields().iter())
            .filter(|(_, field)| is_wanted(field))
            .map(|(column, field)| (column, Arc::clone(field)))
            .unzip();
        let names = fields.iter().map(|field| field.name().as_str()).collect();
        self.scan = Some(OpenScan {
            worker: EvtxScan::new(&call, &columns, MEMORY).worker(),
            schema: Schema::new(fields.iter().map(named).collect::<Fields>()).into(),
            has_begun: false,
        });
        Ok(names)
    }

    fn next(&mut self, rows: u64) -> Result<Vec<u8>, String> {
        let scan = self.scan.as_mut().ok_or("no scan is open")?;
        let mut writer = StreamWriter::try_new(Vec::new(), &scan.schema).map_err(shown)?;
        let mut count = 0;
        while count < rows {
            let next = scan.worker.next_batch(&self.files, Interrupt::NEVER).map_err(shown)?;
            let Some(batch) = next else { break };
            count += batch.num_rows() as u64;
            let columns = batch.columns().iter().zip(batch.schema_ref().fields());
            let columns = columns.map(|(column, field)| with_names(column, field)).collect();
            let batch = RecordBatch::try_new(Arc::clone(&scan.schema), columns).map_err(shown)?;
            writer.write(&batch).map_err(shown)?;
        }
        let has_begun = std::mem::replace(&mut scan.has_begun, true);
        if count == 0 {
            if has_begun {
                return Ok(Vec::new());
            }
            let empty = RecordBatch::new_empty(Arc::clone(&scan.schema));
            writer.write(&empty).map_err(shown)?;
        }
        writer.into_inner().map_err(shown)
    }

    fn parquet(&mut self, is_first: bool, input: &[u8]) -> Result<Vec<u8>, ParquetError> {
        let writer = self.parquet.take().filter(|_| !is_first);
        if input.is_empty() {
            let no_rows = || ParquetError::General("there are no rows".to_owned());
            return writer.ok_or_else(no_rows)?.into_inner();
        }
        let reader = StreamReader::try_new(input, None)?;
        let fields = reader.schema().fields().iter().map(with_booleans).collect::<Fields>();
        let schema = Arc::new(Schema::new(fields));
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut writer = match writer {
            Some(writer) => writer,
            None => ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties))?,
        };
        for batch in reader {
            let columns = batch?.columns().iter().zip(schema.fields()).map(as_booleans).collect();
            writer.write(&RecordBatch::try_new(Arc::clone(&schema), columns)?)?;
        }
        let complete = std::mem::take(writer.inner_mut());
        self.parquet = Some(writer);
        Ok(complete)
    }
}

/// Columns of a Parquet file as an Arrow IPC stream.
fn rows_of_parquet(columns: &Value, file: &[u8]) -> Result<Vec<u8>, ParquetError> {
    let rows = ParquetRecordBatchReaderBuilder::try_new(Bytes::copy_from_slice(file))?;
    let names: Vec<String> = texts(columns).collect();
    let names = ProjectionMask::columns(rows.parquet_schema(), names.iter().map(String::as_str));
    let rows = rows.with_projection(names).build()?;
    let mut writer = StreamWriter::try_new(Vec::new(), &rows.schema())?;
    for batch in rows {
        writer.write(&batch?)?;
    }
    Ok(writer.into_inner()?)
}

/// The field of a column of DuckDB, whose booleans are bytes in Arrow.
fn with_booleans(field: &FieldRef) -> FieldRef {
    match field.extension_type_name() {
        Some("arrow.bool8") => Arc::new(Field::new(field.name(), DataType::Boolean, true)),
        _ => Arc::clone(field),
    }
}

/// A column as the type of its field.
fn as_booleans((column, field): (&ArrayRef, &FieldRef)) -> ArrayRef {
    match column.as_primitive_opt::<Int8Type>() {
        Some(bytes) if field.data_type() == &DataType::Boolean => Arc::new(
            bytes
                .iter()
                .map(|byte| byte.map(|byte| byte != 0))
                .collect::<BooleanArray>(),
        ),
        _ => Arc::clone(column),
    }
}

/// The field of a column, in which an enum has the names of its values.
fn named(field: &FieldRef) -> FieldRef {
    if enum_of(field).is_none() {
        return Arc::clone(field);
    }
    let names = DataType::Dictionary(DataType::UInt8.into(), DataType::Utf8.into());
    Arc::new(Field::new(field.name(), names, true))
}

/// A column with the names of an enum in place of their numbers.
fn with_names(column: &ArrayRef, field: &FieldRef) -> ArrayRef {
    let values = enum_of(field).and_then(|name| ENUMS.iter().find(|(known, _)| *known == name));
    match (values, column.as_primitive_opt::<UInt8Type>()) {
        (Some((_, values)), Some(numbers)) => {
            let values = StringArray::from(values.to_vec());
            Arc::new(DictionaryArray::new(numbers.clone(), Arc::new(values)))
        }
        _ => Arc::clone(column),
    }
}

/// The page of a report. Without `<`, no text can end the element that it is in.
fn report(data: &str) -> String {
    let page = page("evtx_case_report.html").unwrap_or_default();
    page.replace("{{data}}", &data.replace('<', "\\u003c"))
}

/// The statements of SQL that define types and macros, and the names of other functions. Macros over files or records need the
/// functions of the extension.
fn definitions() -> Value {
    let types = ENUMS.iter().map(|(name, values)| {
        let values: Vec<String> = values.iter().map(|value| format!("'{value}'")).collect();
        format!("CREATE TYPE {name} AS ENUM ({})", values.join(", "))
    });
    let needs_files = |found: &Macro| {
        let first = found.parameters.first().map_or("", |parameter| parameter.name.as_str());
        ["files", "exports", "record", "content"].contains(&first)
            || found
                .parameters
                .iter()
                .any(|it| it.name.ends_with("rules") || it.name == "json_arguments")
    };
    let (missing, macros): (Vec<Macro>, Vec<Macro>) = macros().into_iter().partition(needs_files);
    let statements = types.chain(macros.iter().map(|found| found.statement("", &found.body)));
    let missing = missing.into_iter().map(|found| found.name);
    let functions = Query::ALL.into_iter().filter(|query| query.files().is_some());
    let functions = functions.map(|query| about(query)[0].to_owned());
    json!({
        "statements": statements.collect::<Value>(),
        "missing": missing.chain(functions).collect::<Value>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "case/DC01-Security.evtx";

    /// A session with a log of three chunks, and its size in bytes.
    fn session() -> (Session, u64) {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../samples/DC01-Security.evtx");
        let log = std::fs::read(path).expect("a sample");
        let (header, chunk) = (&log[..4096], &log[4096..4096 + 65536]);
        let log = [header, chunk, chunk, chunk].concat();
        let size = log.len() as u64;
        let read = move |number: u32, offset: u64, to: &mut [u8]| {
            assert_eq!(number, 0);
            let Some(left) = log.get(offset as usize..) else {
                return 0;
            };
            let count = to.len().min(left.len());
            to[..count].copy_from_slice(&left[..count]);
            count
        };
        let mut session = Session::new(Box::new(read));
        ask(&mut session, json!({"do": "files", "files": [[NAME, size]]}));
        (session, size)
    }

    fn ask(session: &mut Session, command: Value) -> Value {
        let answer = session.run(command.to_string().as_bytes(), &[]).expect("an answer");
        serde_json::from_slice(&answer).expect("JSON")
    }

    fn rows(session: &mut Session, command: Value) -> (usize, usize) {
        ask(session, command);
        let (mut streams, mut count) = (0, 0);
        loop {
            let stream = session.run(br#"{"do": "next", "rows": 10}"#, &[]).expect("rows");
            if stream.is_empty() {
                return (streams, count);
            }
            streams += 1;
            let batches = StreamReader::try_new(&stream[..], None).expect("a stream");
            count += batches.map(|batch| batch.expect("a batch").num_rows()).sum::<usize>();
        }
    }

    #[test]
    fn the_tasks_of_a_plan_have_the_rows_of_the_files() {
        let (mut session, size) = session();
        let files = json!(["case"]);
        let (_, all) = rows(
            &mut session,
            json!({"do": "open", "function": "read_evtx", "files": files}),
        );
        assert!(all > 100, "{all}");
        let plan = json!({"do": "plan", "function": "read_evtx", "files": files, "target": 65536, "splits": true});
        let partitions = ask(&mut session, plan);
        let partitions = partitions.as_array().expect("a list");
        assert_eq!((partitions.len(), &partitions[0][0]["size"]), (3, &json!(size)));
        let mut sum = 0;
        for tasks in partitions {
            let command =
                json!({"do": "open", "function": "read_evtx", "tasks": tasks, "columns": ["Record_ID", "error"]});
            sum += rows(&mut session, command).1;
        }
        assert_eq!(sum, all, "{partitions:?}");
        // Without a file there is a stream with the schema.
        assert_eq!(
            rows(&mut session, json!({"do": "open", "function": "evtx_file_metadata"})),
            (1, 0)
        );
    }

    #[test]
    fn what_is_wrong_is_an_error() {
        let (mut session, _) = session();
        for (command, text) in [
            ("", "EOF"),
            (r#"{"do": "x"}"#, "there is no command x"),
            (r#"{"do": "next"}"#, "no scan is open"),
            (r#"{"do": "parquet"}"#, "there are no rows"),
            (r#"{"do": "open", "function": "x"}"#, "there is no function x"),
            (r#"{"do": "open", "function": "read_evtx", "files": ["y"]}"#, "y"),
            (
                r#"{"do": "open", "function": "read_evtx", "arguments": {"z": 1}}"#,
                "has no argument z",
            ),
            (
                r#"{"do": "open", "function": "read_evtx", "arguments": {"json": 1}}"#,
                "json cannot be 1",
            ),
        ] {
            let error = session.run(command.as_bytes(), &[]).unwrap_err();
            assert!(error.contains(text), "{command}: {error}");
        }
    }

    #[test]
    fn rows_become_parquet_and_return() {
        let (mut session, _) = session();
        ask(
            &mut session,
            json!({"do": "open", "function": "read_evtx", "files": ["case"]}),
        );
        let stream = session.run(br#"{"do": "next"}"#, &[]).expect("rows");
        let mut file = session
            .run(br#"{"do": "parquet", "first": true}"#, &stream)
            .expect("a part");
        file.extend(session.run(br#"{"do": "parquet"}"#, &[]).expect("the rest"));
        assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
        let stream = session
            .run(br#"{"do": "rows", "columns": ["channel"]}"#, &file)
            .expect("rows");
        let batches = StreamReader::try_new(&stream[..], None).expect("a stream");
        assert_eq!(batches.schema().fields().len(), 1);
        assert!(batches.map(|batch| batch.expect("a batch").num_rows()).sum::<usize>() > 100);
    }

    #[test]
    fn definitions_need_no_files() {
        let (mut session, _) = session();
        let all = ask(&mut session, json!({"do": "definitions"}));
        let missing: Vec<String> = texts(&all["missing"]).collect();
        let all: Vec<String> = texts(&all["statements"]).collect();
        let has = |name: &str| {
            all.iter()
                .any(|sql| sql.starts_with(&format!("CREATE MACRO IF NOT EXISTS {name}(")))
        };
        assert!(has("evtx_timeline_of") && !has("evtx_timeline") && !has("evtx_sigma_of"));
        for name in ["evtx_timeline", "evtx_sigma_of", "read_evtx"] {
            assert!(missing.iter().any(|found| found == name), "{name}");
        }
        assert!(all[0].starts_with("CREATE TYPE evtx_level AS ENUM"));
        // Each function that DuckDB looks for at once is another macro, or among those of the page.
        let page = include_str!("../../../../web/src/functions.js");
        for sql in all.iter().filter(|sql| !sql.contains("system.main.query")) {
            let without_comments: String = sql.lines().filter_map(|line| line.split("--").next()).collect();
            let calls = without_comments
                .match_indices("evtx_")
                .map(|(at, _)| &without_comments[at..]);
            let calls = calls.filter_map(|text| text.split_once('(').map(|(name, _)| name));
            for name in calls.filter(|name| name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())) {
                assert!(
                    has(name) || page.contains(&format!("{name}(")),
                    "{name} is not in the page: {sql}"
                );
            }
        }
    }
}
