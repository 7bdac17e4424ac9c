//! The functions that make facts, and the starts of Windows among them, of the rows of macros.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringViewBuilder};
use arrow_array::{Array, ArrayRef, StringViewArray, TimestampNanosecondArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Fields};
use arrow_select::concat::concat;
use evtx_codes::RolesReader;
use evtx_events::Columns;
use evtx_facts::{End, Fact, Logs, Starting, Told, facts, starts, told};
use evtx_scan::ScanError;

use crate::boundary::EvtxError;
use crate::names::{computer_fields, computer_name};
use crate::places::{record, record_parameters, text_len};
use crate::scalar::{
    Caller, EvtxVector, Scalar, ScalarFunction, TIME, Unchecked, column, columns_of, fields, items, list, list_array,
    list_of, structs,
};

/// The columns of a record that a fact cites.
const RECORD: [(&str, DataType); 4] = [
    ("filename", DataType::Utf8),
    ("record_id", DataType::UInt64),
    ("event_id", DataType::UInt32),
    ("time", TIME),
];

/// The columns of [`End`].
fn end_fields() -> Fields {
    let place = [
        ("time", TIME),
        ("record_id", DataType::UInt64),
        ("event_record_id", DataType::UInt64),
        ("event_id", DataType::UInt32),
        ("provider", DataType::Utf8),
    ];
    fields([
        ("computer", DataType::Utf8),
        ("channel", DataType::Utf8),
        ("filename", DataType::Utf8),
        ("place", DataType::Struct(fields(place))),
    ])
}

/// The columns of [`Starting`].
const STARTING: [(&str, DataType); 5] = [
    ("computer", DataType::Utf8),
    ("number", DataType::UInt64),
    ("log_time", TIME),
    ("event_id", DataType::UInt32),
    ("process", DataType::Utf8),
];

/// The columns of [`Fact`].
fn fact_fields() -> Fields {
    let record = DataType::Struct(fields(RECORD));
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
pub(crate) fn functions() -> [ScalarFunction; 3] {
    let number = |name| Field::new(name, DataType::UInt64, true);
    let place = [
        Field::new("filename", DataType::Utf8, true),
        number("record_id"),
        number("log"),
    ];
    [
        ScalarFunction {
            name: "evtx_fact_row",
            description: "What a record tells for facts, as a text for evtx_fact_list; NULL if it tells nothing. log is a number for its log. \
                          For evtx_facts_of.",
            example: "FROM evtx_facts_of('events')",
            parameters: place.into_iter().chain(record_parameters()).collect(),
            result: Field::new("row", DataType::Utf8, true),
            make: Box::new(|| Box::new(FactRows::default())),
        },
        ScalarFunction {
            name: "evtx_fact_list",
            description: "The facts of evtx_facts: of what records tell (evtx_fact_row), the names of computers as evtx_machines has them, the \
                          records at the ends of hours, and the files of logs that overwrote their oldest records. For evtx_facts_of.",
            example: "FROM evtx_facts_of('events')",
            parameters: vec![
                list("rows", DataType::Utf8),
                list("computers", DataType::Struct(computer_fields())),
                list("ends", DataType::Struct(end_fields())),
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

#[derive(Default)]
struct FactRows(RolesReader);

impl Scalar for FactRows {
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let Some((&[file, record_id, log], rest)) = vectors.split_first_chunk() else {
            return Err("evtx_fact_row has twelve arguments".into());
        };
        let of: &[EvtxVector; 12] = rest.try_into().map_err(|_| "evtx_fact_row has twelve arguments")?;
        let (mut rows, mut pairs, mut unchecked) = (StringViewBuilder::new(), Vec::new(), Unchecked::default());
        for row in 0..file.rows {
            // SAFETY: by the contract of this function.
            unsafe {
                let columns = record(of, row, &mut pairs)?;
                unchecked.add(text_len(&columns), caller.interrupt)?;
                let (file, record_id, log) = (file.text(row)?, record_id.value(row), log.value(row));
                rows.append_option(told(&mut self.0, file, record_id, log, &columns));
            }
        }
        Ok(Arc::new(rows.finish()))
    }
}

/// What the records of a list in a row tell.
///
/// # Errors
/// If an item is not a text that `evtx_fact_row` returned.
///
/// # Safety
/// The vectors are a list of VARCHAR, and its items.
unsafe fn told_rows<'t>(
    lists: EvtxVector,
    texts: EvtxVector,
    row: usize,
    caller: Caller<'_>,
) -> Result<Vec<Told<'t>>, EvtxError> {
    let (mut all, mut unchecked) = (Vec::new(), Unchecked::default());
    // SAFETY: by the contract of this function.
    for item in unsafe { lists.items(row) } {
        // SAFETY: as above.
        let Some(text) = (unsafe { texts.text(item)? }) else {
            continue;
        };
        unchecked.add(text.len(), caller.interrupt)?;
        all.push(Told::parse(text)?);
    }
    Ok(all)
}

/// The end of an hour in an item of a list.
///
/// # Safety
/// The vectors are those of [`end_fields`], and live as long as `'a`.
unsafe fn end<'a>(vectors: &[EvtxVector], item: usize) -> Result<End<'a>, EvtxError> {
    let &[computer, channel, file, _, time, record_id, number, event_id, provider] = vectors else {
        return Err("the ends are not those of evtx_fact_list".into());
    };
    // SAFETY: by the contract of this function.
    unsafe {
        let columns = Columns {
            computer: computer.text(item)?,
            channel: channel.text(item)?,
            provider: provider.text(item)?,
            event_record_id: number.value(item),
            time_created: time.value(item),
            event_id: event_id.value(item),
            ..Columns::default()
        };
        Ok(End {
            file: file.text(item)?,
            record_id: record_id.value(item),
            columns,
        })
    }
}

struct Facts;

impl Scalar for Facts {
    /// A list for NULL, too: one without rows.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let computers_until = 2 + 2 + computer_fields().len();
        let (Some(&[lists, texts]), Some(of_computers), Some(&[ref of_ends @ .., files, file])) = (
            vectors.first_chunk(),
            vectors.get(2..computers_until),
            vectors.get(computers_until..),
        ) else {
            return Err("evtx_fact_list has four arguments".into());
        };
        let (mut found, mut lengths) = (vec![fact_array(&[])], Vec::new());
        for row in 0..files.rows {
            // SAFETY: by the contract of this function.
            let (rows, computers, ends, wrapped) = unsafe {
                let wrapped = files.items(row).map(|item| file.text(item));
                (
                    told_rows(lists, texts, row, caller)?,
                    items(of_computers, row, caller, computer_name)?,
                    items(of_ends, row, caller, end)?,
                    wrapped.filter_map(Result::transpose).collect::<Result<Vec<_>, _>>()?,
                )
            };
            let computers: Vec<_> = computers.into_iter().flatten().collect();
            let logs = Logs {
                told: &rows,
                computers: &computers,
                ends: &ends,
                wrapped: &wrapped,
            };
            let of_row = facts(&logs, fact_array, caller.interrupt).map_err(ScanError::from)?;
            lengths.push(of_row.len());
            found.push(of_row);
        }
        let found: Vec<&dyn Array> = found.iter().map(AsRef::as_ref).collect();
        let all = concat(&found).map_err(|error| error.to_string())?;
        Ok(list_array(all, lengths, None))
    }
}

/// Facts as structs of [`fact_fields`].
fn fact_array(facts: &[Fact<'_>]) -> ArrayRef {
    let all = || facts.iter().flat_map(|fact| &fact.evidence);
    let records = vec![
        column::<StringViewArray, _>(all().map(|record| record.file)),
        column::<UInt64Array, _>(all().map(|record| record.record_id)),
        column::<UInt32Array, _>(all().map(|record| record.event_id)),
        column::<TimestampNanosecondArray, _>(all().map(|record| record.time)),
    ];
    let records = structs(&fields(RECORD), records, None);
    let mut doubts = ListBuilder::new(StringViewBuilder::new());
    facts
        .iter()
        .for_each(|fact| doubts.append_value(fact.doubts.iter().map(Some)));
    let mut columns = columns_of(facts.iter().map(Fact::texts));
    columns.extend([
        column::<TimestampNanosecondArray, _>(facts.iter().map(|fact| fact.first)),
        column::<TimestampNanosecondArray, _>(facts.iter().map(|fact| fact.last)),
        column::<UInt64Array, _>(facts.iter().map(|fact| Some(fact.events))),
        list_array(records, facts.iter().map(|fact| fact.evidence.len()), None),
        Arc::new(doubts.finish()),
    ]);
    structs(&fact_fields(), columns, None)
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
        let (mut found, mut lengths) = (Vec::new(), Vec::new());
        for row in 0..vectors.first().map_or(0, |lists| lists.rows) {
            // SAFETY: by the contract of this function.
            let events = unsafe { items(vectors, row, caller, starting)? };
            let all = starts(events, caller.interrupt).map_err(ScanError::from)?;
            lengths.push(all.len());
            found.extend(all);
        }
        let columns = vec![
            column::<StringViewArray, _>(found.iter().map(|(computer, _)| *computer)),
            column::<UInt64Array, _>(found.iter().map(|(_, number)| Some(*number))),
        ];
        Ok(list_array(structs(&start_fields(), columns, None), lengths, None))
    }
}
