//! The functions that tell which machine a name of a computer stands for, and which names a SID has.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringViewBuilder};
use arrow_array::{ArrayRef, BooleanArray, StringViewArray, TimestampNanosecondArray, UInt64Array};
use arrow_schema::{DataType, Field, Fields};
use evtx_codes::UserData;
use evtx_events::{AccountName, ComputerName, Evidence, NameUse, account_names, machines, record_names};
use evtx_scan::ScanError;

use crate::boundary::EvtxError;
use crate::places::time;
use crate::scalar::{
    Caller, EvtxVector, Pairs, Scalar, ScalarFunction, TIME, Unchecked, column, fields, items, list, list_array,
    list_of, map, structs, text,
};

/// The columns of [`ComputerName`].
pub(crate) fn computer_fields() -> Fields {
    fields([
        ("file", DataType::Utf8),
        ("computer", DataType::Utf8),
        ("channel", DataType::Utf8),
        ("records", DataType::UInt64),
        ("first_number", DataType::UInt64),
        ("last_number", DataType::UInt64),
        ("first", TIME),
        ("last", TIME),
        ("least", DataType::FixedSizeBinary(16)),
        ("most", DataType::FixedSizeBinary(16)),
        ("old_host", DataType::Utf8),
        ("new_host", DataType::Utf8),
        ("own_sid", DataType::Utf8),
    ])
}

/// The columns of [`NameUse`].
fn use_fields() -> Fields {
    fields([
        ("computer", DataType::Utf8),
        ("sid", DataType::Utf8),
        ("domain", DataType::Utf8),
        ("name", DataType::Utf8),
        ("evidence", DataType::Utf8),
        ("log", DataType::UInt64),
        ("last_log", DataType::UInt64),
        ("place", DataType::UInt64),
        ("times", list_of(TIME)),
    ])
}

/// The columns of [`RecordName`].
fn record_name_fields() -> Fields {
    fields([
        ("sid", DataType::Utf8),
        ("domain", DataType::Utf8),
        ("name", DataType::Utf8),
        ("evidence", DataType::Utf8),
        ("seen", TIME),
    ])
}

/// The columns of [`AccountName`].
fn name_fields() -> Fields {
    fields([
        ("computer", DataType::Utf8),
        ("user_sid", DataType::Utf8),
        ("user_name", DataType::Utf8),
        ("first_seen", TIME),
        ("last_seen", TIME),
        ("is_renamed", DataType::Boolean),
        ("name_source", DataType::Utf8),
        ("log", DataType::UInt64),
        ("place", DataType::UInt64),
    ])
}

/// The name of a computer in an item of a list; `None` without a file or a name.
///
/// # Safety
/// The vectors are those of [`computer_fields`], and live as long as `'a`.
pub(crate) unsafe fn computer_name<'a>(
    vectors: &[EvtxVector],
    item: usize,
) -> Result<Option<ComputerName<'a>>, EvtxError> {
    let &[
        file,
        computer,
        channel,
        records,
        first_number,
        last_number,
        first,
        last,
        least,
        most,
        old_host,
        new_host,
        own_sid,
    ] = vectors
    else {
        return Err("the names are not those of evtx_machines".into());
    };
    // SAFETY: by the contract of this function.
    unsafe {
        let Some((file, computer)) = file.text(item)?.zip(computer.text(item)?) else {
            return Ok(None);
        };
        Ok(Some(ComputerName {
            file,
            computer,
            channel: channel.text(item)?,
            records: records.value(item).unwrap_or_default(),
            numbers: [first_number.value(item), last_number.value(item)],
            times: [first.value(item), last.value(item)],
            shifts: [least.value(item), most.value(item)],
            renamed: [old_host.text(item)?, new_host.text(item)?],
            own_sid: own_sid.text(item)?,
        }))
    }
}

/// The use of a name in an item of a list; `None` without a SID or a name.
///
/// # Safety
/// The vectors are those of [`use_fields`], and live as long as `'a`.
unsafe fn name_use<'a>(vectors: &[EvtxVector], item: usize) -> Result<Option<NameUse<'a>>, EvtxError> {
    let &[computer, sid, domain, name, evidence, log, last_log, place, times, time] = vectors else {
        return Err("the uses are not those of evtx_account_names".into());
    };
    // SAFETY: by the contract of this function.
    unsafe {
        let Some((sid, name)) = sid.text(item)?.zip(name.text(item)?) else {
            return Ok(None);
        };
        Ok(Some(NameUse {
            computer: computer.text(item)?,
            sid,
            domain: domain.text(item)?,
            name,
            evidence: evidence.text(item)?.and_then(Evidence::named),
            logs: [log.value(item), last_log.value(item)],
            place: place.value(item),
            times: times.items(item).filter_map(|at| time.value(at)).collect(),
        }))
    }
}

/// The functions.
pub(crate) fn functions() -> [ScalarFunction; 3] {
    [
        ScalarFunction {
            name: "evtx_record_names",
            description: "The names that a record has with SIDs: with what it says of the account (created, changed, renamed), and since when. \
                          For evtx_names_of.",
            example: "SELECT unnest(evtx_record_names(provider, event_id, time_created, user_sid, event_data, user_data)) FROM \
                      read_evtx('Security.evtx')",
            parameters: vec![
                text("provider"),
                Field::new("event_id", DataType::UInt32, true),
                Field::new("time_created", TIME, true),
                text("user_sid"),
                map("event_data"),
                text("user_data"),
            ],
            result: list("names", DataType::Struct(record_name_fields())),
            make: Box::new(|| Box::new(NamesOfRecords)),
        },
        ScalarFunction {
            name: "evtx_machines",
            description: "The machine that each name of a computer stands for, by its last name: an item for each of the list, which has the \
                          names in the channels of each file, with their records, and what events tell of new names. For \
                          evtx_machines_of.",
            example: "FROM evtx_machines_of('events')",
            parameters: vec![list("names", DataType::Struct(computer_fields()))],
            result: list("machines", DataType::Utf8),
            make: Box::new(|| Box::new(Machines)),
        },
        ScalarFunction {
            name: "evtx_account_names",
            description: "The names of SIDs, since when each holds, and how that is known, from the times at which events have them. For \
                          evtx_names_of.",
            example: "FROM evtx_names_of('events')",
            parameters: vec![list("uses", DataType::Struct(use_fields()))],
            result: list("names", DataType::Struct(name_fields())),
            make: Box::new(|| Box::new(Names)),
        },
    ]
}

struct Machines;

impl Scalar for Machines {
    /// NULL for NULL, and for names without a file or a computer.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let mut found = ListBuilder::new(StringViewBuilder::new());
        for row in 0..vectors[0].rows {
            // SAFETY: by the contract of this function.
            let said = unsafe { items(vectors, row, caller, computer_name)? };
            let known: Vec<_> = said.iter().copied().flatten().collect();
            let mut of = machines(&known, caller.interrupt).map_err(ScanError::from)?.into_iter();
            for said in said {
                found.values().append_option(said.and_then(|_| of.next()));
            }
            found.append(vectors[0].is_valid(row));
        }
        Ok(Arc::new(found.finish()))
    }
}

struct NamesOfRecords;

impl Scalar for NamesOfRecords {
    /// Never NULL.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let &[providers, ids, at, sids, lists, entries, keys, values, documents] = vectors else {
            return Err("evtx_record_names has six arguments".into());
        };
        let pairs = Pairs::new([lists, entries, keys, values]);
        let (mut read, mut unchecked) = (Vec::new(), Unchecked::default());
        for row in 0..providers.rows {
            // SAFETY: by the contract of this function.
            let document = unsafe { documents.text(row)? };
            unchecked.add(document.map_or(0, str::len), caller.interrupt)?;
            read.push(document.map(UserData::new));
        }
        let (mut found, mut lengths) = (Vec::new(), Vec::new());
        for (row, document) in read.iter().enumerate() {
            let mut fields: Vec<_> = document.iter().flat_map(UserData::shown).collect();
            // SAFETY: by the contract of this function.
            unsafe {
                for pair in pairs.row(row) {
                    let (key, value) = pair?;
                    unchecked.add(key.len() + value.map_or(0, str::len), caller.interrupt)?;
                    fields.extend(value.map(|value| (key, value)));
                }
                let provider = providers.text(row)?.unwrap_or_default();
                let id = ids.value(row).unwrap_or_default();
                let before = found.len();
                found.extend(record_names(provider, id, time(at, row), sids.text(row)?, &fields));
                lengths.push(found.len() - before);
            }
        }
        let columns = vec![
            column::<StringViewArray, _>(found.iter().map(|of| Some(of.sid))),
            column::<StringViewArray, _>(found.iter().map(|of| of.domain)),
            column::<StringViewArray, _>(found.iter().map(|of| Some(of.name))),
            column::<StringViewArray, _>(found.iter().map(|of| of.evidence.map(Evidence::name))),
            column::<TimestampNanosecondArray, _>(found.iter().map(|of| of.seen)),
        ];
        Ok(list_array(structs(&record_name_fields(), columns, None), lengths, None))
    }
}

struct Names;

impl Scalar for Names {
    /// NULL for NULL. Uses without a SID or a name are left out.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let (mut found, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
        for row in 0..vectors[0].rows {
            // SAFETY: by the contract of this function.
            let uses = unsafe { items(vectors, row, caller, name_use)? };
            let uses: Vec<_> = uses.into_iter().flatten().collect();
            let names = account_names(&uses, caller.interrupt).map_err(ScanError::from)?;
            lengths.push(names.len());
            valid.push(vectors[0].is_valid(row));
            found.extend(names);
        }
        Ok(list_array(name_array(&found), lengths, Some(valid.into())))
    }
}

/// Names as structs of [`name_fields`].
fn name_array(names: &[AccountName<'_>]) -> ArrayRef {
    let columns = vec![
        column::<StringViewArray, _>(names.iter().map(|of| of.computer)),
        column::<StringViewArray, _>(names.iter().map(|of| Some(of.sid))),
        column::<StringViewArray, _>(names.iter().map(|of| Some(&of.name))),
        column::<TimestampNanosecondArray, _>(names.iter().map(|of| of.first_seen)),
        column::<TimestampNanosecondArray, _>(names.iter().map(|of| of.last_seen)),
        column::<BooleanArray, _>(names.iter().map(|of| Some(of.is_renamed))),
        column::<StringViewArray, _>(names.iter().map(|of| Some(of.source))),
        column::<UInt64Array, _>(names.iter().map(|of| of.log)),
        column::<UInt64Array, _>(names.iter().map(|of| of.place)),
    ];
    structs(&name_fields(), columns, None)
}
