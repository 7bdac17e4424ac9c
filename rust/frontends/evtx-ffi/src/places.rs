//! The functions that read what records say about their places, and place them in their logs.

use arrow_array::ArrayRef;
use arrow_schema::Field;
use evtx_events::{Columns, LogRecord, Place, Stamp, places, sort};
use evtx_format::{Interrupt, Interrupted};

use crate::boundary::EvtxError;
use crate::rows::{array, by_row, columns, members, typed};
use crate::scalar::{Caller, EvtxVector, Pairs, Scalar, ScalarFunction, Unchecked, map, text};

columns!(stamp: Stamp<'_> {
    digest,
    old_time = stamp.change[0],
    new_time = stamp.change[1],
    wake_time,
    is_late,
    old_host = stamp.renamed[0].clone(),
    new_host = stamp.renamed[1].clone(),
    own_sid,
});

members!(LogRecord<'a> {
    digest, machine, channel, file, record_id, number, time, change [old_time, new_time], wake_time, is_late,
});

/// The place of the records with a digest.
type Placed<'a> = (i128, Place<'a>);

columns!(of: Placed<'_> {
    digest = of.0,
    machine = of.1.machine,
    log_time = of.1.log_time,
    is_contested = of.1.is_contested,
    is_woken = of.1.is_woken,
});

/// The parameters of a function that reads records.
pub(crate) fn record_parameters() -> Vec<Field> {
    vec![
        text("computer"),
        text("channel"),
        text("provider"),
        typed::<u64>("event_record_id"),
        typed::<i64>("time_created"),
        typed::<u32>("event_id"),
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
            result: typed::<Stamp<'_>>("stamp"),
            make: Box::new(|| Box::new(Stamps)),
        },
        ScalarFunction {
            name: "evtx_log_places",
            description: "The places of the records of machines, an item for each digest: the machine, the time by its clock as it was set \
                          last, whether another record claims the place, and whether Windows woke then. For evtx_placed_records.",
            example: "FROM evtx_placed_records('records', 'records')",
            parameters: vec![typed::<Vec<LogRecord<'_>>>("records")],
            result: typed::<Vec<Placed<'_>>>("places"),
            make: by_row!(placed),
        },
    ]
}

/// A time. Infinity, as DuckDB writes it, is none.
pub(crate) fn finite(time: Option<i64>) -> Option<i64> {
    time.filter(|time| time.unsigned_abs() < i64::MAX as u64)
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
            time_created: finite(at.value(row)),
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
        let (mut stamps, mut unchecked) = (Vec::new(), Unchecked::default());
        let mut pairs = vec![Vec::new(); vectors[0].rows];
        for (row, pairs) in pairs.iter_mut().enumerate() {
            // SAFETY: by the contract of this function.
            let columns = unsafe { record(vectors, row, pairs)? };
            unchecked.add(text_len(&columns), caller.interrupt)?;
            stamps.push(Stamp::read(&columns));
        }
        Ok(array(&stamps))
    }
}

fn placed<'a>(mut records: Vec<LogRecord<'a>>, interrupt: Interrupt<'_>) -> Result<Vec<Placed<'a>>, Interrupted> {
    for record in &mut records {
        (record.time, record.wake_time) = (finite(record.time), finite(record.wake_time));
        record.change = record.change.map(finite);
    }
    let mut found: Vec<Placed<'a>> = places(&records, interrupt)?.into_iter().collect();
    sort(&mut found, |(digest, _)| *digest, interrupt)?;
    Ok(found)
}
