//! The functions that read what records say about their places, and place them in their logs.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{BooleanBuilder, FixedSizeBinaryBuilder, StringViewBuilder, TimestampNanosecondBuilder};
use arrow_schema::{DataType, Field, Fields};
use evtx_events::{Columns, LogRecord, Stamp, places, sort};
use evtx_scan::ScanError;

use crate::boundary::EvtxError;
use crate::scalar::{
    Caller, EvtxVector, Pairs, Scalar, ScalarFunction, TIME, Unchecked, fields, list, list_array, structs,
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
    let text = |name| Field::new(name, DataType::Utf8, true);
    let pair = DataType::Struct(vec![text("key"), text("value")].into());
    let entries = Field::new("entries", pair, false);
    vec![
        text("computer"),
        text("channel"),
        text("provider"),
        Field::new("event_record_id", DataType::UInt64, true),
        Field::new("time_created", TIME, true),
        Field::new("event_id", DataType::UInt32, true),
        text("user_sid"),
        Field::new("event_data", DataType::Map(entries.into(), false), true),
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
unsafe fn time(vector: EvtxVector, row: usize) -> Option<i64> {
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
        Ok(Arc::new(structs(&stamp_fields(), columns, None)))
    }
}

struct Places;

impl Scalar for Places {
    /// A list for NULL, too: one without items.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let &[
            lists,
            _,
            digest,
            machine,
            channel,
            file,
            id,
            number,
            at,
            old,
            new,
            wake,
            late,
        ] = vectors
        else {
            return Err("evtx_log_places has one argument".into());
        };
        let (mut digests, mut machines) = (FixedSizeBinaryBuilder::new(16), StringViewBuilder::new());
        let (mut times, mut truths): (_, [BooleanBuilder; 2]) = (TimestampNanosecondBuilder::new(), Default::default());
        let mut lengths = Vec::new();
        for row in 0..lists.rows {
            let mut records = Vec::new();
            // SAFETY: by the contract of this function.
            for (step, item) in unsafe { lists.items(row) }.enumerate() {
                caller.interrupt.check_step(step).map_err(ScanError::from)?;
                // SAFETY: as above.
                records.push(unsafe {
                    LogRecord {
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
                    }
                });
            }
            let found = places(&records, caller.interrupt).map_err(ScanError::from)?;
            let mut found: Vec<_> = found.into_iter().collect();
            sort(&mut found, |(digest, _)| *digest, caller.interrupt).map_err(ScanError::from)?;
            lengths.push(found.len());
            for (digest, place) in found {
                digests
                    .append_value(digest.to_ne_bytes())
                    .map_err(|error| error.to_string())?;
                machines.append_option(place.machine);
                times.append_option(place.log_time);
                let of_truths = truths.iter_mut().zip([place.is_contested, place.is_woken]);
                of_truths.for_each(|(builder, is)| builder.append_value(is));
            }
        }
        let [contested, woken] = truths.each_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef);
        let columns: Vec<ArrayRef> = vec![
            Arc::new(digests.finish()),
            Arc::new(machines.finish()),
            Arc::new(times.finish()),
            contested,
            woken,
        ];
        Ok(list_array(structs(&place_fields(), columns, None), lengths, None))
    }
}
