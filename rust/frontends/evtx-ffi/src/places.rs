//! The functions that read what records say about their places, and place them in their logs.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, FixedSizeBinaryBuilder, StringViewBuilder, TimestampNanosecondBuilder};
use arrow_array::{ArrayRef, BooleanArray, StringViewArray, TimestampNanosecondArray};
use arrow_schema::{DataType, Field, Fields};
use evtx_events::{Columns, LogRecord, Stamp, places, sort};
use evtx_scan::ScanError;

use crate::boundary::EvtxError;
use crate::scalar::{
    Caller, EvtxVector, Pairs, Scalar, ScalarFunction, TIME, Unchecked, column, fields, items, list, list_array, map,
    structs, text,
};

/// The type of digests, HUGEINT.
const DIGEST: DataType = DataType::FixedSizeBinary(16);

/// The columns of [`Stamp`].
fn stamp_fields() -> Fields {
    fields([
        ("digest", DIGEST),
        ("old_time", TIME),
        ("new_time", TIME),
        ("wake_time", TIME),
        ("is_late", DataType::Boolean),
        ("old_host", DataType::Utf8),
        ("new_host", DataType::Utf8),
        ("own_sid", DataType::Utf8),
    ])
}

/// The columns of [`LogRecord`].
fn record_fields() -> Fields {
    fields([
        ("digest", DIGEST),
        ("machine", DataType::Utf8),
        ("channel", DataType::Utf8),
        ("file", DataType::Utf8),
        ("record_id", DataType::UInt64),
        ("number", DataType::UInt64),
        ("time", TIME),
        ("old_time", TIME),
        ("new_time", TIME),
        ("wake_time", TIME),
        ("is_late", DataType::Boolean),
    ])
}

/// The columns of a place.
fn place_fields() -> Fields {
    fields([
        ("digest", DIGEST),
        ("machine", DataType::Utf8),
        ("log_time", TIME),
        ("is_contested", DataType::Boolean),
        ("is_woken", DataType::Boolean),
    ])
}

/// The parameters of a function that reads records.
pub(crate) fn record_parameters() -> Vec<Field> {
    vec![
        text("computer"),
        text("channel"),
        text("provider"),
        Field::new("event_record_id", DataType::UInt64, true),
        Field::new("time_created", TIME, true),
        Field::new("event_id", DataType::UInt32, true),
        text("user_sid"),
        map("event_data"),
        text("user_data"),
    ]
}

/// The functions.
pub(crate) fn functions() -> [ScalarFunction; 2] {
    [
        ScalarFunction {
            name: "evtx_record_stamp",
            description: "What a record says about its place: a number for all that it says, the times before and after if the clock was \
                          set, when Windows woke, whether the record is written long after its time, the old and new host name of its \
                          machine, and the SID of the machine. For evtx_placed_records.",
            example: "SELECT evtx_record_stamp(computer, channel, provider, event_record_id, time_created, event_id, user_sid, event_data, \
                      user_data) FROM read_evtx('System.evtx')",
            parameters: record_parameters(),
            result: Field::new("stamp", DataType::Struct(stamp_fields()), true),
            make: Box::new(|| Box::new(Stamps)),
        },
        ScalarFunction {
            name: "evtx_log_places",
            description: "The places of the records of machines, an item for each digest: the machine, the time by its clock as it was set \
                          last, whether another record claims the place, and whether Windows woke then. For evtx_placed_records.",
            example: "FROM evtx_placed_records('records', 'records')",
            parameters: vec![list("records", DataType::Struct(record_fields()))],
            result: list("places", DataType::Struct(place_fields())),
            make: Box::new(|| Box::new(Places)),
        },
    ]
}

/// A time in a row. Infinity, as DuckDB writes it, is none.
///
/// # Safety
/// The vector has times.
pub(crate) unsafe fn time(vector: EvtxVector, row: usize) -> Option<i64> {
    // SAFETY: by the contract of this function.
    unsafe { vector.value::<i64>(row) }.filter(|time| time.unsigned_abs() < i64::MAX as u64)
}

/// The columns of the record in a row. `pairs` is for those of `event_data`.
///
/// # Errors
/// If a text is not UTF-8.
///
/// # Safety
/// The vectors are those of [`record_parameters`], and live as long as `'a`.
pub(crate) unsafe fn record<'a, 'p>(
    vectors: &[EvtxVector; 12],
    row: usize,
    pairs: &'p mut Vec<(&'a str, Option<&'a str>)>,
) -> Result<Columns<'p>, EvtxError>
where
    'a: 'p,
{
    let &[
        computer,
        channel,
        provider,
        number,
        at,
        id,
        sid,
        lists,
        entries,
        keys,
        values,
        document,
    ] = vectors;
    pairs.clear();
    // SAFETY: by the contract of this function.
    unsafe {
        for pair in Pairs::new([lists, entries, keys, values]).row(row) {
            pairs.push(pair?);
        }
        Ok(Columns {
            computer: computer.text(row)?,
            channel: channel.text(row)?,
            provider: provider.text(row)?,
            event_record_id: number.value(row),
            time_created: time(at, row),
            event_id: id.value(row),
            user_sid: sid.text(row)?,
            event_data: lists.is_valid(row).then_some(pairs),
            user_data: document.text(row)?,
        })
    }
}

/// About how many bytes of text a record has.
pub(crate) fn text_len(of: &Columns<'_>) -> usize {
    let fields = of.event_data.unwrap_or_default().iter();
    let fields = fields.map(|(key, value)| key.len() + value.map_or(0, str::len));
    64 + fields.sum::<usize>() + of.user_data.map_or(0, str::len)
}

struct Stamps;

impl Scalar for Stamps {
    /// Never NULL.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let vectors: &[EvtxVector; 12] = vectors.try_into().map_err(|_| "evtx_record_stamp has nine arguments")?;
        let mut digests = FixedSizeBinaryBuilder::new(16);
        let mut times: [TimestampNanosecondBuilder; 3] = Default::default();
        let mut texts: [StringViewBuilder; 3] = Default::default();
        let (mut late, mut pairs, mut unchecked) = (BooleanBuilder::new(), Vec::new(), Unchecked::default());
        for row in 0..vectors[0].rows {
            // SAFETY: by the contract of this function.
            let columns = unsafe { record(vectors, row, &mut pairs)? };
            unchecked.add(text_len(&columns), caller.interrupt)?;
            let Stamp {
                digest,
                change: [old, new],
                wake_time,
                is_late,
                renamed,
                own_sid,
            } = Stamp::read(&columns);
            digests
                .append_value(digest.to_ne_bytes())
                .map_err(|error| error.to_string())?;
            let of_times = times.iter_mut().zip([old, new, wake_time]);
            of_times.for_each(|(builder, time)| builder.append_option(time));
            late.append_value(is_late);
            let of_texts = [renamed[0].as_deref(), renamed[1].as_deref(), own_sid];
            let of_texts = texts.iter_mut().zip(of_texts);
            of_texts.for_each(|(builder, text)| builder.append_option(text));
        }
        let mut columns: Vec<ArrayRef> = vec![Arc::new(digests.finish())];
        columns.extend(times.iter_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef));
        columns.push(Arc::new(late.finish()));
        columns.extend(texts.iter_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef));
        Ok(structs(&stamp_fields(), columns, None))
    }
}

/// A record in an item of a list.
///
/// # Safety
/// The vectors are those of [`record_fields`], and live as long as `'a`.
unsafe fn log_record<'a>(vectors: &[EvtxVector], item: usize) -> Result<LogRecord<'a>, EvtxError> {
    let &[digest, machine, channel, file, id, number, at, old, new, wake, late] = vectors else {
        return Err("the records are not those of evtx_log_places".into());
    };
    // SAFETY: by the contract of this function.
    unsafe {
        Ok(LogRecord {
            digest: digest.value(item).unwrap_or_default(),
            machine: machine.text(item)?,
            channel: channel.text(item)?,
            file: file.text(item)?,
            record_id: id.value(item),
            number: number.value(item),
            time: time(at, item),
            change: [time(old, item), time(new, item)],
            wake_time: time(wake, item),
            is_late: late.value::<u8>(item) == Some(1),
        })
    }
}

struct Places;

impl Scalar for Places {
    /// A list for NULL, too: one without items.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let (mut all, mut lengths) = (Vec::new(), Vec::new());
        for row in 0..vectors.first().map_or(0, |lists| lists.rows) {
            // SAFETY: by the contract of this function.
            let records = unsafe { items(vectors, row, caller, log_record)? };
            let found = places(&records, caller.interrupt).map_err(ScanError::from)?;
            let mut found: Vec<_> = found.into_iter().collect();
            sort(&mut found, |(digest, _)| *digest, caller.interrupt).map_err(ScanError::from)?;
            lengths.push(found.len());
            all.extend(found);
        }
        let mut digests = FixedSizeBinaryBuilder::new(16);
        for (digest, _) in &all {
            digests
                .append_value(digest.to_ne_bytes())
                .map_err(|error| error.to_string())?;
        }
        let columns = vec![
            Arc::new(digests.finish()),
            column::<StringViewArray, _>(all.iter().map(|(_, place)| place.machine)),
            column::<TimestampNanosecondArray, _>(all.iter().map(|(_, place)| place.log_time)),
            column::<BooleanArray, _>(all.iter().map(|(_, place)| Some(place.is_contested))),
            column::<BooleanArray, _>(all.iter().map(|(_, place)| Some(place.is_woken))),
        ];
        Ok(list_array(structs(&place_fields(), columns, None), lengths, None))
    }
}
