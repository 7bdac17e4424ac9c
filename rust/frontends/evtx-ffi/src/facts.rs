//! The functions that make facts, and the starts of Windows among them, of the rows of macros.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringViewBuilder, TimestampNanosecondBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, StructArray};
use arrow_schema::{DataType, Field, Fields};
use evtx_facts::{EventRow, Fact, LogonRow, Mark, Record, Starting, facts, starts};
use evtx_scan::ScanError;

use crate::boundary::EvtxError;
use crate::scalar::{Caller, EvtxVector, Scalar, ScalarFunction, TIME, fields, list, list_array, list_of, structs};

/// The columns of all rows: the record, and its time by the clock as it was set last.
const PLACE: [(&str, DataType); 5] = [
    ("filename", DataType::Utf8),
    ("record_id", DataType::UInt64),
    ("event_id", DataType::UInt32),
    ("time", TIME),
    ("log_time", TIME),
];

/// The other columns of [`EventRow`], besides truths and texts.
const OF_EVENT: [(&str, DataType); 4] = [
    ("number", DataType::UInt64),
    ("digest", DataType::UInt64),
    ("old_time", TIME),
    ("new_time", TIME),
];

/// The columns of [`Starting`].
const STARTING: [(&str, DataType); 5] = [
    ("computer", DataType::Utf8),
    ("number", DataType::UInt64),
    ("log_time", TIME),
    ("event_id", DataType::UInt32),
    ("process", DataType::Utf8),
];

/// A list of rows with these columns after [`PLACE`], then truths, and texts.
fn rows(name: &str, columns: &[(&str, DataType)], truths: &[&str], texts: &[&str]) -> Field {
    let truths = truths.iter().map(|truth| (*truth, DataType::Boolean));
    let texts = texts.iter().map(|text| (*text, DataType::Utf8));
    let columns = PLACE.into_iter().chain(columns.iter().cloned());
    list(name, DataType::Struct(fields(columns.chain(truths).chain(texts))))
}

/// The columns of [`Fact`].
fn fact_fields() -> Fields {
    let record = DataType::Struct(fields(PLACE.into_iter().take(4)));
    let texts = Fact::TEXTS.map(|name| (name, DataType::Utf8));
    let lists = [("evidence", list_of(record)), ("doubts", list_of(DataType::Utf8))];
    let others = [("first", TIME), ("last", TIME), ("events", DataType::UInt64)];
    fields(texts.into_iter().chain(others).chain(lists))
}

/// The columns of a start.
fn start_fields() -> Fields {
    fields([("computer", DataType::Utf8), ("first", DataType::UInt64)])
}

/// The functions.
pub(crate) fn functions() -> [ScalarFunction; 2] {
    [
        ScalarFunction {
            name: "evtx_fact_list",
            description: "The facts of evtx_facts: of the events that have a topic, the logons, the records that mark how time goes on, and \
                          the files of logs that overwrote their oldest records. For evtx_facts_of.",
            example: "FROM evtx_facts_of('events')",
            parameters: vec![
                rows("events", &OF_EVENT, &EventRow::TRUTHS, &EventRow::TEXTS),
                rows("logons", &[], &LogonRow::TRUTHS, &LogonRow::TEXTS),
                rows("marks", &[], &[], &Mark::TEXTS),
                list("wrapped", DataType::Utf8),
            ],
            result: list("facts", DataType::Struct(fact_fields())),
            make: Box::new(|| Box::new(Facts)),
        },
        ScalarFunction {
            name: "evtx_start_list",
            description: "The number of the first event of each start of Windows, from the events of starts and the programs that PID 4 \
                          started (4688), in their order. For evtx_process_tree_of.",
            example: "FROM evtx_process_tree_of('events')",
            parameters: vec![list("events", DataType::Struct(fields(STARTING)))],
            result: list("starts", DataType::Struct(start_fields())),
            make: Box::new(|| Box::new(Starts)),
        },
    ]
}

/// The texts in an item of a list, of as many vectors.
///
/// # Safety
/// The vectors are VARCHAR, and live as long as `'a`.
unsafe fn texts<'a, const N: usize>(vectors: &[EvtxVector], item: usize) -> Result<[Option<&'a str>; N], EvtxError> {
    let mut all = [None; N];
    for (text, vector) in all.iter_mut().zip(vectors) {
        // SAFETY: by the contract of this function.
        *text = unsafe { vector.text(item)? };
    }
    Ok(all)
}

/// The record in an item of a list, and its time in the order of the logs.
///
/// # Safety
/// The vectors are those of [`PLACE`], and live as long as `'a`.
unsafe fn place<'a>(vectors: [EvtxVector; 5], item: usize) -> Result<(Record<'a>, Option<i64>), EvtxError> {
    let [file, record_id, event_id, time, log_time] = vectors;
    // SAFETY: by the contract of this function.
    unsafe {
        let record = Record {
            file: file.text(item)?,
            record_id: record_id.value(item),
            event_id: event_id.value(item),
            time: time.value(item),
        };
        Ok((record, log_time.value(item)))
    }
}

/// The truths in an item of a list, of as many vectors. What is not known is false.
///
/// # Safety
/// The vectors are BOOLEAN.
unsafe fn truths<const N: usize>(vectors: [EvtxVector; N], item: usize) -> [bool; N] {
    // SAFETY: by the contract of this function.
    vectors.map(|vector| unsafe { vector.value::<u8>(item) == Some(1) })
}

/// An event in an item of a list.
///
/// # Safety
/// The vectors are those of the columns of events, and live as long as `'a`.
unsafe fn event<'a>(vectors: &[EvtxVector], item: usize) -> Result<EventRow<'a>, EvtxError> {
    let &[a, b, c, d, e, number, digest, old, new, f, g, h, ref rest @ ..] = vectors else {
        return Err("the events are not those of evtx_fact_list".into());
    };
    // SAFETY: by the contract of this function.
    unsafe {
        let numbers = [number.value(item), digest.value(item)];
        let clock = [old.value(item), new.value(item)];
        Ok(EventRow::new(
            place([a, b, c, d, e], item)?,
            numbers,
            clock,
            truths([f, g, h], item),
            texts(rest, item)?,
        ))
    }
}

/// A logon in an item of a list.
///
/// # Safety
/// As for [`event`].
unsafe fn logon<'a>(vectors: &[EvtxVector], item: usize) -> Result<LogonRow<'a>, EvtxError> {
    let &[a, b, c, d, e, f, g, h, ref rest @ ..] = vectors else {
        return Err("the logons are not those of evtx_fact_list".into());
    };
    // SAFETY: by the contract of this function.
    unsafe {
        Ok(LogonRow::new(
            place([a, b, c, d, e], item)?,
            truths([f, g, h], item),
            texts(rest, item)?,
        ))
    }
}

/// A mark in an item of a list.
///
/// # Safety
/// As for [`event`].
unsafe fn mark<'a>(vectors: &[EvtxVector], item: usize) -> Result<Mark<'a>, EvtxError> {
    let &[a, b, c, d, e, ref rest @ ..] = vectors else {
        return Err("the marks are not those of evtx_fact_list".into());
    };
    // SAFETY: by the contract of this function.
    unsafe { Ok(Mark::new(place([a, b, c, d, e], item)?, texts(rest, item)?)) }
}

/// What `read` makes of the items of a list in a row. After the vector of the lists comes that of the structs, then those of their columns.
///
/// # Safety
/// The vectors are what `read` takes them for.
unsafe fn items<T>(
    vectors: &[EvtxVector],
    row: usize,
    caller: Caller<'_>,
    read: unsafe fn(&[EvtxVector], usize) -> Result<T, EvtxError>,
) -> Result<Vec<T>, EvtxError> {
    let [lists, _, columns @ ..] = vectors else {
        return Err("a list of rows has columns".into());
    };
    // SAFETY: by the contract of this function.
    let items = unsafe { lists.items(row) };
    let mut all = Vec::with_capacity(items.len());
    for (step, item) in items.enumerate() {
        caller.interrupt.check_step(step).map_err(ScanError::from)?;
        // SAFETY: as above.
        all.push(unsafe { read(columns, item)? });
    }
    Ok(all)
}

struct Facts;

impl Scalar for Facts {
    /// A list for NULL, too: one without rows.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        const EVENTS: usize = 2 + PLACE.len() + OF_EVENT.len() + EventRow::TRUTHS.len() + EventRow::TEXTS.len();
        const LOGONS: usize = 2 + PLACE.len() + LogonRow::TRUTHS.len() + LogonRow::TEXTS.len();
        let Some((of_events, rest)) = vectors.split_at_checked(EVENTS) else {
            return Err("evtx_fact_list has four arguments".into());
        };
        let Some((of_logons, &[ref of_marks @ .., files, file])) = rest.split_at_checked(LOGONS) else {
            return Err("evtx_fact_list has four arguments".into());
        };
        let (mut found, mut lengths) = (Columns::default(), Vec::new());
        for row in 0..of_events[0].rows {
            // SAFETY: by the contract of this function.
            let all = unsafe {
                let wrapped = files.items(row).map(|item| file.text(item));
                let wrapped: Vec<_> = wrapped.filter_map(Result::transpose).collect::<Result<_, _>>()?;
                let events = items(of_events, row, caller, event)?;
                let (logons, marks) = (
                    items(of_logons, row, caller, logon)?,
                    items(of_marks, row, caller, mark)?,
                );
                let all = facts(events, logons, &marks, &wrapped, caller.interrupt).map_err(ScanError::from)?;
                all.iter().for_each(|fact| found.push(fact));
                all.len()
            };
            lengths.push(all);
        }
        Ok(list_array(found.finish(), lengths, None))
    }
}

/// The columns of facts, in the order of [`fact_fields`].
#[derive(Default)]
struct Columns {
    texts: [StringViewBuilder; 9],
    times: [TimestampNanosecondBuilder; 2],
    events: UInt64Builder,
    /// How many records each fact cites.
    cited: Vec<usize>,
    files: StringViewBuilder,
    record_ids: UInt64Builder,
    event_ids: UInt32Builder,
    times_of_records: TimestampNanosecondBuilder,
    doubts: ListBuilder<StringViewBuilder>,
}

impl Columns {
    fn push(&mut self, fact: &Fact<'_>) {
        let texts = self.texts.iter_mut().zip(fact.texts());
        texts.for_each(|(builder, text)| builder.append_option(text));
        let times = self.times.iter_mut().zip([fact.first, fact.last]);
        times.for_each(|(builder, time)| builder.append_option(time));
        self.events.append_value(fact.events);
        self.cited.push(fact.evidence.len());
        for record in &fact.evidence {
            self.files.append_option(record.file);
            self.record_ids.append_option(record.record_id);
            self.event_ids.append_option(record.event_id);
            self.times_of_records.append_option(record.time);
        }
        self.doubts.append_value(fact.doubts.iter().map(Some));
    }

    fn finish(mut self) -> StructArray {
        let text = |builder: &mut StringViewBuilder| Arc::new(builder.finish()) as ArrayRef;
        let records: Vec<ArrayRef> = vec![
            Arc::new(self.files.finish()),
            Arc::new(self.record_ids.finish()),
            Arc::new(self.event_ids.finish()),
            Arc::new(self.times_of_records.finish()),
        ];
        let records = structs(&fields(PLACE.into_iter().take(4)), records, None);
        let mut columns: Vec<_> = self.texts.iter_mut().map(text).collect();
        columns.extend(
            self.times
                .iter_mut()
                .map(|builder| Arc::new(builder.finish()) as ArrayRef),
        );
        columns.push(Arc::new(self.events.finish()));
        columns.extend([
            list_array(records, self.cited, None),
            Arc::new(self.doubts.finish()) as ArrayRef,
        ]);
        structs(&fact_fields(), columns, None)
    }
}

struct Starts;

impl Scalar for Starts {
    /// A list for NULL, too: one without rows.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        unsafe fn starting<'a>(vectors: &[EvtxVector], item: usize) -> Result<Starting<'a>, EvtxError> {
            let &[computer, number, log_time, event_id, process] = vectors else {
                return Err("the events are not those of evtx_start_list".into());
            };
            // SAFETY: by the contract of the caller.
            unsafe {
                Ok(Starting {
                    computer: computer.text(item)?,
                    number: number.value(item).unwrap_or_default(),
                    log_time: log_time.value(item),
                    event_id: event_id.value(item).unwrap_or_default(),
                    process: process.text(item)?,
                })
            }
        }
        let (mut computers, mut numbers, mut lengths) = (StringViewBuilder::new(), UInt64Builder::new(), Vec::new());
        for row in 0..vectors.first().map_or(0, |lists| lists.rows) {
            // SAFETY: by the contract of this function.
            let events = unsafe { items(vectors, row, caller, starting)? };
            let found = starts(events, caller.interrupt).map_err(ScanError::from)?;
            lengths.push(found.len());
            for (computer, number) in found {
                computers.append_option(computer);
                numbers.append_value(number);
            }
        }
        let columns: Vec<ArrayRef> = vec![Arc::new(computers.finish()), Arc::new(numbers.finish())];
        Ok(list_array(structs(&start_fields(), columns, None), lengths, None))
    }
}
