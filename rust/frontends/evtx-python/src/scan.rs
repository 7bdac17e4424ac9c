//! Scans for Python.

use std::sync::Arc;

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_schema::Schema;
use evtx_archive::{ArchiveStorage, Archives};
use evtx_arrow::Expression;
use evtx_events::{EventFieldTuple, from_tuple, to_tuple};
use evtx_format::Interrupt;
use evtx_query::{Arguments, Query, ScanCall, ScanTask, partitions};
use evtx_scan::{FileKind, FileSplit, ScanError, ScanPath, Storage, expand};
use pyo3::exceptions::{PyFileNotFoundError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::conditions::{Condition, Stated, column_index};
use crate::errors::{exception, warn};
use crate::signals::Signals;
use crate::storage::{Files, PythonFiles};
use crate::stream::{Output, ScanRows, Stream};
use crate::types::Types;
use crate::values::arguments;

/// The most bytes of memory for open entries of archives, and for a catalog of messages; and of temporary files.
const MEMORY: u64 = 1 << 30;
const DISK: u64 = 64 << 30;

/// The most bytes of memory for messages beside the logs.
const MESSAGES: u64 = 256 << 20;

/// The name of the call, for errors.
const SCAN: &str = "scan()";

/// A scan with its files, columns and conditions.
#[pyclass(frozen, module = "evtx_arrow._native")]
pub(crate) struct NativeScan {
    source: Arc<Source>,
    /// The indexes of columns in the schema of the table: the wanted ones, and then others for conditions.
    projection: Vec<usize>,
    /// The number of wanted columns.
    columns: usize,
    conditions: Vec<Condition>,
    /// The conditions that the core does not decide, each with the index of its column in the projection.
    undecided: Vec<(Condition, usize)>,
}

/// What all narrower scans share.
struct Source {
    call: ScanCall,
    files: Files,
    threads: usize,
    recovers: bool,
    types: Types,
}

/// A task of a partition as a tuple of Python.
#[derive(FromPyObject, IntoPyObject)]
pub(crate) enum TaskValue {
    /// The path of a file, whether the caller named it, its size, and its slots from the first to before the last.
    File(String, bool, u64, Option<(u64, u64)>),
    /// The path of a file that holds others, and these.
    Nested(String, Vec<(String, bool)>),
    /// The path of a file, and why it cannot be read.
    Unreadable(String, String),
}

impl From<ScanTask> for TaskValue {
    fn from(task: ScanTask) -> Self {
        match task {
            ScanTask::File(path, is_named, FileSplit { size, slots }) => {
                TaskValue::File(path, is_named, size, slots.map(|slots| (slots.start, slots.end)))
            }
            ScanTask::Nested(path, files) => TaskValue::Nested(path, files),
            ScanTask::Unreadable(path, why) => TaskValue::Unreadable(path, why),
        }
    }
}

impl From<TaskValue> for ScanTask {
    fn from(value: TaskValue) -> Self {
        match value {
            TaskValue::File(path, is_named, size, slots) => {
                let slots = slots.map(|(start, end)| start..end);
                ScanTask::File(path, is_named, FileSplit { size, slots })
            }
            TaskValue::Nested(path, files) => ScanTask::Nested(path, files),
            TaskValue::Unreadable(path, why) => ScanTask::Unreadable(path, why),
        }
    }
}

/// Makes a scan: finds the files, and the fields of events if they are columns.
///
/// - `files` are paths, globs, folders and archives.
/// - `tasks` are those of a partition.
/// - `values` are the arguments, by name.
/// - `columns` are the names of the columns; all if it is None.
/// - `conditions` are columns, keys, operators and values.
/// - `types` is `plain`, `native` or `spark`.
/// - `threads` is the number of threads that read local files.
/// - `filesystem` is a `Files` of the Python part; None for the files of this machine.
/// - `fields` are the fields of events, if they are known.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // Python passes them by position, once.
pub(crate) fn open(
    py: Python<'_>,
    files: Vec<String>,
    tasks: Vec<TaskValue>,
    values: &Bound<'_, PyDict>,
    columns: Option<Vec<String>>,
    conditions: Vec<Stated<'_>>,
    types: &str,
    threads: usize,
    filesystem: Option<Py<PyAny>>,
    fields: Option<Vec<EventFieldTuple>>,
) -> PyResult<NativeScan> {
    let types = Types::of(types)?;
    let mut arguments = arguments(Query::Records, SCAN, values)?;
    for column in columns.iter().flatten() {
        arguments.require(column);
    }
    for (column, ..) in &conditions {
        arguments.require(column);
    }
    if let Some(fields) = fields {
        let fields = fields.into_iter().map(from_tuple).collect::<Result<_, _>>();
        arguments.know_fields(fields.map_err(PyValueError::new_err)?);
    }
    let wanted = (files, tasks);
    let files = match filesystem {
        Some(files) => Files::Python(Arc::new(PythonFiles::new(files))),
        None => Files::Local,
    };
    let signals = Arc::new(Signals::new(py)?);
    let call = py.detach(|| {
        let is_set = || signals.is_set();
        let interrupt = Interrupt::new(&is_set);
        files.with(&signals, |storage| {
            call_of(&arguments, wanted, &files, storage, threads, interrupt)
        })
    });
    let call = call.map_err(|(path, error)| raised(path.as_deref(), error, &files, &signals))?;
    warn(py, call.warning.as_deref())?;
    let every = 0..call.table.schema().fields().len();
    let scan = NativeScan {
        columns: every.len(),
        projection: every.collect(),
        conditions: Vec::new(),
        undecided: Vec::new(),
        source: Arc::new(Source {
            recovers: arguments.recovers(),
            call,
            files,
            threads,
            types,
        }),
    };
    scan.narrow(columns, conditions)
}

/// The call of a scan. An error has the path that it is about, if that is known.
fn call_of(
    arguments: &Arguments,
    (wanted, tasks): (Vec<String>, Vec<TaskValue>),
    files: &Files,
    storage: &dyn Storage,
    threads: usize,
    interrupt: Interrupt<'_>,
) -> Result<ScanCall, (Option<String>, ScanError)> {
    let archives = Archives::new(MEMORY, DISK, Some(std::env::temp_dir())).with_password(arguments.password());
    let storage = &ArchiveStorage::new(storage, &archives);
    let mut paths: Vec<ScanPath> = Vec::new();
    for path in wanted {
        let found = expand(storage, &path, FileKind::Logs, SCAN, interrupt);
        paths.extend(found.map_err(|error| (Some(path), error))?);
    }
    let is_partition = !tasks.is_empty();
    for task in tasks {
        if let (TaskValue::File(path, _, size, _), Files::Python(files)) = (&task, files) {
            files.know_size(path.clone(), *size);
        }
        let found = ScanTask::from(task).paths(storage, SCAN, interrupt);
        paths.extend(found.map_err(|error| (None, error))?);
    }
    let mut call = arguments
        .call(paths, threads, MEMORY, storage, SCAN, interrupt)
        .map_err(|error| (None, error))?;
    if is_partition {
        // Other partitions can have records of the providers.
        call.providers = None;
    }
    Ok(call)
}

/// The exception for an error: that of Python's file system, if it has raised one.
fn raised(path: Option<&str>, error: ScanError, files: &Files, signals: &Signals) -> PyErr {
    if let (ScanError::Storage(text), Some(path)) = (&error, path) {
        let kind = || std::fs::metadata(path).err().map(|error| error.kind());
        match files {
            Files::Python(files) => return files.take_failure().unwrap_or_else(|| exception(error, signals)),
            Files::Local if kind() == Some(std::io::ErrorKind::NotFound) => {
                return PyFileNotFoundError::new_err(text.clone());
            }
            Files::Local => {}
        }
    }
    exception(error, signals)
}

impl NativeScan {
    fn output(&self) -> PyResult<Output> {
        let schema = self.source.call.table.schema();
        let schema = schema.project(&self.projection[..self.columns]);
        let schema = schema.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Output {
            types: self.source.types,
            conditions: self.undecided.clone(),
            columns: self.columns,
            schema: self.source.types.schema(&schema),
        })
    }
}

#[pymethods]
impl NativeScan {
    /// The scan with other columns, if they are given, and more conditions. It does not list the files again.
    fn narrow(&self, columns: Option<Vec<String>>, conditions: Vec<Stated<'_>>) -> PyResult<NativeScan> {
        let table = &self.source.call.table;
        let schema = table.schema();
        let mut projection = match columns {
            Some(names) => {
                let indexes = names.iter().map(|name| column_index(&schema, name));
                indexes.collect::<PyResult<Vec<_>>>()?
            }
            None => self.projection[..self.columns].to_vec(),
        };
        let columns = projection.len();
        let mut all = self.conditions.clone();
        for stated in &conditions {
            all.push(Condition::of(self.source.types, &schema, stated)?);
        }
        let mut undecided = Vec::new();
        for condition in all.iter().filter(|condition| !condition.is_decided(table)) {
            let known = projection.iter().position(|&column| column == condition.column);
            undecided.push((condition.clone(), known.unwrap_or(projection.len())));
            if known.is_none() {
                projection.push(condition.column);
            }
        }
        if projection.is_empty() {
            // Without a column, a batch of the core has no rows.
            projection.push(0);
        }
        Ok(NativeScan {
            source: Arc::clone(&self.source),
            projection,
            columns,
            conditions: all,
            undecided,
        })
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        let schema = self.source.call.table.schema();
        let names = self.projection[..self.columns]
            .iter()
            .map(|&column| schema.field(column).name().clone());
        names.collect()
    }

    /// The paths of the files.
    #[getter]
    fn paths(&self) -> Vec<String> {
        self.source.call.paths.iter().map(|path| path.path.clone()).collect()
    }

    /// The types of the columns: `plain`, `native` or `spark`.
    #[getter]
    fn types(&self) -> &'static str {
        self.source.types.name()
    }

    /// The fields of events, to make the same scan in another process.
    #[getter]
    fn fields(&self) -> Vec<EventFieldTuple> {
        self.source.call.fields.iter().map(to_tuple).collect()
    }

    /// The schema, as the Arrow C data interface passes it.
    fn schema_capsule<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema: &Schema = &self.output()?.schema;
        let schema = FFI_ArrowSchema::try_from(schema).map_err(|error| PyValueError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// A stream of the rows, as the Arrow C stream interface passes it. Each stream reads the files again.
    fn stream_capsule<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let expressions = self.conditions.iter().map(|condition| condition.expression.clone());
        let expressions: Vec<Expression> = expressions.collect();
        let (scan, _) = self.source.call.scan(&self.projection, &expressions, MESSAGES);
        let waits_for_others = self.source.call.paths.iter().any(ScanPath::is_nested);
        let (files, threads) = (self.source.files.clone(), self.source.threads);
        let rows = ScanRows::new(scan, self.output()?, files, threads, waits_for_others);
        Stream::capsule(rows, py)
    }

    /// Partitions of about `target` bytes, each a list of tasks.
    fn partitions(&self, py: Python<'_>, target: u64) -> PyResult<Vec<Vec<TaskValue>>> {
        let signals = Arc::new(Signals::new(py)?);
        let planned = py.detach(|| {
            let is_set = || signals.is_set();
            let interrupt = Interrupt::new(&is_set);
            let splits = !self.source.recovers;
            let plan = |storage: &dyn Storage| partitions(storage, &self.source.call.paths, target, splits, interrupt);
            self.source.files.with(&signals, plan)
        });
        let planned = planned.map_err(|error| exception(error, &signals))?;
        let values = planned
            .into_iter()
            .map(|tasks| tasks.into_iter().map(TaskValue::from).collect());
        Ok(values.collect())
    }
}
