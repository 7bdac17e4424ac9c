//! Sigma rules over the events of any Arrow stream, for Python.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_array::types::UInt64Type;
use arrow_array::{
    Array, ArrayRef, ListArray, RecordBatch, RecordBatchOptions, RecordBatchReader, StructArray, UInt32Array,
    new_null_array,
};
use arrow_cast::{can_cast_types, cast};
use arrow_pyarrow::FromPyArrow;
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::interleave::interleave_record_batch;
use arrow_select::take::take_record_batch;
use arrow_select::zip::zip;
use evtx_archive::{ArchiveStorage, Archives};
use evtx_arrow::DecodeError;
use evtx_detect::{Findings, Hit, RowMatcher, Rules, finding_fields};
use evtx_format::Interrupt;
use evtx_query::{Query, rules_of_rows};
use evtx_scan::{LocalStorage, ScanError};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::errors::{exception, warn};
use crate::events::{EventArrays, EventColumns};
use crate::signals::Signals;
use crate::stream::{Rows, Stream};
use crate::types::{Types, is_text};

/// The name of the call, for errors.
const SIGMA: &str = "sigma()";

/// The most bytes of memory for archives of rules, and for the events that correlations keep; and of temporary files.
const MEMORY: usize = 1 << 30;
const DISK: u64 = 64 << 30;

/// How many events at most are matched before their matches are returned.
const EVENTS: usize = 1 << 14;

/// The rules of a call.
#[pyclass(frozen, module = "evtx_arrow._native")]
pub(crate) struct NativeRules {
    all: Arc<Rules>,
    /// The correlations with the rules that they need.
    correlations: Arc<Rules>,
}

/// Loads rules. `values` are the arguments, by name.
#[pyfunction]
pub(crate) fn load_rules(py: Python<'_>, values: &Bound<'_, PyDict>) -> PyResult<NativeRules> {
    let arguments = crate::values::arguments(Query::Matches, SIGMA, values)?;
    let signals = Signals::new(py)?;
    let loaded = py.detach(|| {
        let is_set = || signals.is_set();
        let disk = Some(std::env::temp_dir());
        let archives = Archives::new(MEMORY as u64, DISK, disk).with_password(arguments.password());
        let storage = ArchiveStorage::new(&LocalStorage, &archives);
        rules_of_rows(&arguments, SIGMA, &storage, Interrupt::new(&is_set))
    });
    let ([all, correlations], warning) = loaded.map_err(|error| match error {
        ScanError::Input(text) => PyValueError::new_err(text),
        error => exception(error, &signals),
    })?;
    warn(py, warning.as_deref())?;
    Ok(NativeRules { all, correlations })
}

#[pymethods]
impl NativeRules {
    /// Whether there are correlations.
    #[getter]
    fn correlates(&self) -> bool {
        !self.correlations.is_empty()
    }

    /// The matches of events, which have the Arrow C stream interface. `types` are those of the columns about rules.
    fn matches(&self, events: Bound<'_, PyAny>, types: &str) -> PyResult<NativeMatches> {
        let reader = reader(&events)?;
        let types = Types::of(types)?;
        Ok(NativeMatches {
            output: Arc::new(Output::of(&reader.schema(), types).map_err(PyValueError::new_err)?),
            all: Arc::clone(&self.all),
            correlations: Arc::clone(&self.correlations),
            events: events.unbind(),
            first: Mutex::new(Some(reader)),
        })
    }
}

fn reader(events: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    if !events.hasattr("__arrow_c_stream__")? {
        let kind = events.get_type().name()?;
        let text =
            format!("events must have the Arrow C stream interface, which an object of type {kind} does not have");
        return Err(PyTypeError::new_err(text));
    }
    RecordBatchStreamReader::from_pyarrow_bound(events).map_err(|error| {
        let py = events.py();
        // Others are from a library of Python, which knows more.
        if error.is_instance_of::<PyValueError>(py) && error.traceback(py).is_none() {
            return PyValueError::new_err(format!("events cannot be read: {}", error.value(py)));
        }
        error
    })
}

/// The matches of events.
#[pyclass(frozen, module = "evtx_arrow._native")]
pub(crate) struct NativeMatches {
    output: Arc<Output>,
    all: Arc<Rules>,
    correlations: Arc<Rules>,
    events: Py<PyAny>,
    /// The stream that told the schema, until it is read.
    first: Mutex<Option<RecordBatchStreamReader>>,
}

#[pymethods]
impl NativeMatches {
    /// The schema, as the Arrow C data interface passes it.
    fn schema_capsule<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema: &Schema = &self.output.schema;
        let schema = FFI_ArrowSchema::try_from(schema).map_err(|error| PyValueError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// A stream of the matches, as the Arrow C stream interface passes it. Each stream reads the events again.
    fn stream_capsule<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let events = match first {
            Some(first) => first,
            None => reader(self.events.bind(py))?,
        };
        if events.schema().fields() != &self.output.events {
            return Err(PyValueError::new_err("events have other columns than before"));
        }
        let rows = MatchRows {
            output: Arc::clone(&self.output),
            matcher: RowMatcher::new(Arc::clone(&self.all)),
            all: Arc::clone(&self.all),
            collected: (!self.correlations.is_empty()).then(|| Collected::new(&self.correlations, &self.output)),
            events: Some(events),
            batch: None,
        };
        Stream::capsule(rows, py)
    }
}

/// How a stream makes its rows.
struct Output {
    columns: EventColumns,
    /// The fields of the events.
    events: arrow_schema::Fields,
    /// The fields about rules.
    of_rules: SchemaRef,
    types: Types,
    /// Those about rules, those of the events, and `error` if the events do not have it.
    schema: SchemaRef,
}

/// The number of fields of a finding that are not about its rule: its row and its error.
const OTHERS: usize = 2;

impl Output {
    fn of(events: &Schema, types: Types) -> Result<Self, String> {
        let columns = EventColumns::of(events)?;
        let of_rules = finding_fields();
        let of_rules = types.schema(&Schema::new(&of_rules[..of_rules.len() - OTHERS]));
        for field in of_rules.fields() {
            if events
                .fields()
                .iter()
                .any(|other| other.name().eq_ignore_ascii_case(field.name()))
            {
                let name = field.name();
                return Err(format!(
                    "events must not have a column {name}, which sigma() adds: rename it"
                ));
            }
        }
        let mut fields: Vec<FieldRef> = of_rules.fields().to_vec();
        for (index, field) in events.fields().iter().enumerate() {
            let mut field = field.as_ref().clone().with_nullable(true);
            if columns.index("error") == Some(index) && !is_text(field.data_type()) {
                field = field.with_data_type(DataType::Utf8);
            }
            fields.push(Arc::new(field));
        }
        if columns.index("error").is_none() {
            fields.push(Arc::new(Field::new("error", DataType::Utf8, true)));
        }
        Ok(Output {
            columns,
            events: events.fields().clone(),
            of_rules,
            types,
            schema: Arc::new(Schema::new_with_metadata(fields, events.metadata().clone())),
        })
    }

    /// Puts findings before their events.
    fn rows(&self, found: &StructArray, events: &RecordBatch) -> Result<RecordBatch, ArrowError> {
        let count = self.of_rules.fields().len();
        let own = RecordBatch::try_new(
            Arc::new(Schema::new(found.fields()[..count].to_vec())),
            found.columns()[..count].to_vec(),
        )?;
        let own = self.types.rows(&own, &self.of_rules)?;
        let why = found.column(count + 1);
        let mut columns = own.columns().to_vec();
        columns.extend_from_slice(events.columns());
        let error = self.columns.index("error");
        if error.is_none() {
            columns.push(new_null_array(&DataType::Utf8, found.len()));
        }
        let error = error.map_or(columns.len() - 1, |error| count + error);
        let data_type = self.schema.field(error).data_type();
        columns[error] = cast(&columns[error], data_type)?;
        if why.null_count() < why.len() {
            let has_error = arrow_array::BooleanArray::from_iter((0..why.len()).map(|row| Some(why.is_valid(row))));
            columns[error] = zip(&has_error, &cast(why, data_type)?, &columns[error])?;
        }
        let options = RecordBatchOptions::new().with_row_count(Some(found.len()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}

/// A type whose arrays share no texts with others, so that they keep only their own alive.
fn compact(data_type: &DataType) -> DataType {
    use DataType::{BinaryView, Dictionary, LargeBinary, LargeList, LargeUtf8, List, Map, Struct, Utf8View};
    let of_field = |field: &FieldRef| Arc::new(field.as_ref().clone().with_data_type(compact(field.data_type())));
    match data_type {
        Utf8View => LargeUtf8,
        BinaryView => LargeBinary,
        Dictionary(_, values) => compact(values),
        List(item) => List(of_field(item)),
        LargeList(item) => LargeList(of_field(item)),
        Map(entries, sorted) => Map(of_field(entries), *sorted),
        Struct(fields) => Struct(fields.iter().map(of_field).collect()),
        other => other.clone(),
    }
}

/// Converts the columns of rows to those of a schema.
fn convert(rows: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = rows.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| cast(column, field.data_type()));
    let options = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns.collect::<Result<_, _>>()?, &options)
}

/// The events that base rules match.
struct Collected {
    matcher: RowMatcher,
    rules: Arc<Rules>,
    /// The schema of the events that are kept.
    kept: SchemaRef,
    /// A hit for each event.
    hits: Vec<Hit<'static>>,
    batches: Vec<RecordBatch>,
    bytes: usize,
}

/// The items of lists, and the index of the list of each.
fn items(lists: &ArrayRef) -> (StructArray, UInt32Array) {
    let lists: &ListArray = lists.as_list();
    let rows = lists.value_offsets().windows(2).zip(0_u32..);
    let rows = rows.flat_map(|(ends, row)| std::iter::repeat_n(row, (ends[1] - ends[0]) as usize));
    (lists.values().as_struct().clone(), UInt32Array::from_iter_values(rows))
}

impl Collected {
    fn new(rules: &Arc<Rules>, output: &Output) -> Self {
        let kept = |field: &FieldRef| {
            let (from, to) = (field.data_type(), compact(field.data_type()));
            let is_possible = can_cast_types(from, &to) && can_cast_types(&to, from);
            let kept = if is_possible { to } else { from.clone() };
            field.as_ref().clone().with_data_type(kept).with_nullable(true)
        };
        Collected {
            matcher: RowMatcher::new(Arc::clone(rules)),
            rules: Arc::clone(rules),
            kept: Arc::new(Schema::new(output.events.iter().map(kept).collect::<Vec<_>>())),
            hits: Vec::new(),
            batches: Vec::new(),
            bytes: 0,
        }
    }

    fn add(
        &mut self,
        events: &EventArrays,
        range: Range<usize>,
        rows: &RecordBatch,
        interrupt: Interrupt<'_>,
    ) -> Result<(), ScanError> {
        let (mut rows_of, mut row) = (Vec::new(), 0_u32..);
        events.each(range, |event| {
            let (row, hit) = (row.next(), self.matcher.hit(event, interrupt)?);
            rows_of.extend(row.filter(|_| hit.is_some()));
            self.bytes += hit.as_ref().map_or(0, Hit::bytes);
            self.hits.extend(hit);
            Ok::<_, ScanError>(())
        })?;
        if rows_of.is_empty() {
            return Ok(());
        }
        let rows_of = UInt32Array::from(rows_of);
        let rows = take_record_batch(rows, &rows_of).and_then(|rows| convert(&rows, &self.kept));
        let rows = rows.map_err(DecodeError::from)?;
        self.bytes += rows.get_array_memory_size();
        if self.bytes > MEMORY {
            let text = "the events that correlations need take more than 1 GiB of memory: pass fewer columns or events, or \
                        exclude rules";
            return Err(ScanError::Input(format!("{SIGMA}: {text}")));
        }
        self.batches.push(rows);
        Ok(())
    }

    /// The bursts, each with its last event.
    fn finish(self, output: &Output, interrupt: Interrupt<'_>) -> Result<Option<RecordBatch>, ScanError> {
        let rows = |(batch, rows): (usize, &RecordBatch)| (0..rows.num_rows()).map(move |row| (batch, row));
        let places: Vec<_> = self.batches.iter().enumerate().flat_map(rows).collect();
        let mut findings = Findings::new(&self.rules);
        findings.push_bursts(&self.hits, interrupt)?;
        findings.end_row();
        let make = || {
            let (found, _) = items(&findings.finish()?);
            if found.is_empty() {
                return Ok(None);
            }
            let last = found.column(found.num_columns() - OTHERS).as_primitive::<UInt64Type>();
            let mut batches: Vec<&RecordBatch> = self.batches.iter().collect();
            let nulls = self.kept.fields().iter();
            let nulls = nulls.map(|field| new_null_array(field.data_type(), 1)).collect();
            let options = RecordBatchOptions::new().with_row_count(Some(1));
            let nulls = RecordBatch::try_new_with_options(Arc::clone(&self.kept), nulls, &options)?;
            let none = (batches.len(), 0);
            batches.push(&nulls);
            let place = |last: Option<u64>| last.and_then(|last| places.get(last as usize)).copied();
            let places: Vec<_> = last.iter().map(|last| place(last).unwrap_or(none)).collect();
            let fields = output
                .events
                .iter()
                .map(|field| field.as_ref().clone().with_nullable(true));
            let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
            let events = convert(&interleave_record_batch(&batches, &places)?, &schema)?;
            output.rows(&found, &events).map(Some)
        };
        make().map_err(|error: ArrowError| DecodeError::from(error).into())
    }
}

/// The matches, then the bursts.
struct MatchRows {
    output: Arc<Output>,
    all: Arc<Rules>,
    matcher: RowMatcher,
    /// `None` without correlations, and at the end.
    collected: Option<Collected>,
    /// `None` at their end.
    events: Option<RecordBatchStreamReader>,
    /// The batch of events, and the first row that was not matched.
    batch: Option<(RecordBatch, EventArrays, usize)>,
}

impl Rows for MatchRows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.output.schema)
    }

    fn next(&mut self, signals: &Arc<Signals>) -> Result<Option<RecordBatch>, ScanError> {
        let is_set = || signals.is_set();
        let interrupt = Interrupt::new(&is_set);
        loop {
            interrupt.check()?;
            if let Some((rows, arrays, start)) = &mut self.batch {
                let end = rows.num_rows().min(*start + EVENTS);
                let range = std::mem::replace(start, end)..end;
                if range.is_empty() {
                    self.batch = None;
                    continue;
                }
                let slice = rows.slice(range.start, range.len());
                let mut findings = Findings::new(&self.all);
                arrays.each(range.clone(), |row| self.matcher.find(row, &mut findings, interrupt))?;
                let (found, rows_of) = items(&findings.finish().map_err(DecodeError::from)?);
                if let Some(collected) = &mut self.collected {
                    collected.add(arrays, range, &slice, interrupt)?;
                }
                if !found.is_empty() {
                    let events = take_record_batch(&slice, &rows_of).map_err(DecodeError::from)?;
                    return Ok(Some(self.output.rows(&found, &events).map_err(DecodeError::from)?));
                }
                continue;
            }
            let Some(events) = &mut self.events else {
                let Some(collected) = self.collected.take() else {
                    return Ok(None);
                };
                return collected.finish(&self.output, interrupt);
            };
            match events.next() {
                Some(rows) => {
                    let events = |error: ArrowError| ScanError::Input(format!("events cannot be read: {error}"));
                    let rows = rows.map_err(events)?;
                    self.batch = Some((rows.clone(), self.output.columns.events(&rows).map_err(events)?, 0));
                }
                None => self.events = None,
            }
        }
    }
}
