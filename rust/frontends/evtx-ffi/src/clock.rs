//! The function that places the records of a machine's logs in time.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{ListBuilder, TimestampNanosecondBuilder};
use arrow_schema::{DataType, Field, TimeUnit};
use evtx_events::{Stamp, log_times};
use evtx_scan::ScanError;

use crate::boundary::EvtxError;
use crate::scalar::{Caller, EvtxVector, Scalar, ScalarFunction};

/// The function.
pub(crate) fn function() -> ScalarFunction {
    let list = |name, item| Field::new(name, DataType::List(Field::new_list_field(item, true).into()), true);
    let times = |name| list(name, DataType::Timestamp(TimeUnit::Nanosecond, None));
    ScalarFunction {
        name: "evtx_log_times",
        description: "The times of a machine's records by its clock as it was set last. The lists have an item per record: a \
                      number for its log, the number of its event, its time, the times before and after if it says that the clock was set, and whether \
                      it is written long after its time. The \
                      records of each log follow each other in their order, in which the resulting times never fall, or, as their \
                      numbers then tell, in the opposite one.",
        example: "SELECT evtx_log_times([1, 1], [11, 12], [TIMESTAMP '2024-01-01 10:00:00', TIMESTAMP '2024-01-01 09:00:00'], \
                  [NULL, TIMESTAMP '2024-01-01 10:00:01'], [NULL, TIMESTAMP '2024-01-01 09:00:00'], [false, false])",
        parameters: vec![
            list("logs", DataType::UInt64),
            list("numbers", DataType::UInt64),
            times("times"),
            times("old_times"),
            times("new_times"),
            list("is_late", DataType::Boolean),
        ],
        result: times("log_times"),
        make: Box::new(|| Box::new(LogTimes)),
    }
}

struct LogTimes;

impl Scalar for LogTimes {
    /// As many times as there are logs. Items that the other lists lack are NULL.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let &[
            logs,
            log,
            numbers,
            number,
            times,
            time,
            old_times,
            old,
            new_times,
            new,
            lates,
            late,
        ] = vectors
        else {
            return Err("evtx_log_times has six arguments".into());
        };
        let mut lists = ListBuilder::new(TimestampNanosecondBuilder::new());
        for row in 0..logs.rows {
            // SAFETY: by the contract of this function.
            let at = |lists: EvtxVector, items: EvtxVector, index| unsafe {
                let item = lists.items(row).nth(index)?;
                // Infinity, as DuckDB writes it, is no time.
                items
                    .value::<i64>(item)
                    .filter(|&time| time.unsigned_abs() < i64::MAX as u64)
            };
            // SAFETY: as above.
            let items = unsafe { logs.items(row) };
            let stamps: Vec<_> = items
                .enumerate()
                .map(|(index, item)| Stamp {
                    // SAFETY: as above.
                    log: unsafe { log.value(item) }.unwrap_or_default(),
                    // SAFETY: as above.
                    number: unsafe { numbers.items(row).nth(index).and_then(|item| number.value(item)) },
                    time: at(times, time, index),
                    // SAFETY: as above.
                    is_late: unsafe { lates.items(row).nth(index).and_then(|item| late.value::<u8>(item)) } == Some(1),
                    change: at(old_times, old, index).zip(at(new_times, new, index)),
                })
                .collect();
            let placed = log_times(&stamps, caller.interrupt).map_err(ScanError::from)?;
            lists.values().extend(placed);
            lists.append(logs.is_valid(row));
        }
        Ok(Arc::new(lists.finish()))
    }
}
