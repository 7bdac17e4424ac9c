//! The functions that tell which machine a name of a computer stands for, and which names a SID has.

use arrow_array::ArrayRef;
use evtx_codes::UserData;
use evtx_events::{AccountName, ComputerName, NameUse, RecordName, account_names, machines, record_names};
use evtx_format::{Interrupt, Interrupted};

use crate::boundary::EvtxError;
use crate::places::finite;
use crate::rows::{array, by_row, columns, members, typed};
use crate::scalar::{Caller, EvtxVector, Pairs, Scalar, ScalarFunction, Unchecked, map, text};

members!(ComputerName<'a> {
    file,
    computer,
    channel,
    records,
    numbers [first_number, last_number],
    times [first, last],
    shifts [least, most],
    renamed [old_host, new_host],
    own_sid,
});

members!(NameUse<'a> { computer, sid, domain, name, evidence, logs [log, last_log], place, times });

columns!(of: RecordName<'_> { sid, domain, name, evidence, seen });

columns!(name: AccountName<'_> {
    computer,
    user_sid = name.sid,
    user_name = &*name.name,
    first_seen,
    last_seen,
    is_renamed,
    name_source = name.source,
    log,
    place,
});

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
                typed::<u32>("event_id"),
                typed::<i64>("time_created"),
                text("user_sid"),
                map("event_data"),
                text("user_data"),
            ],
            result: typed::<Vec<RecordName<'_>>>("names"),
            make: Box::new(|| Box::new(NamesOfRecords)),
        },
        ScalarFunction {
            name: "evtx_machines",
            description: "The machine that each name of a computer stands for, by its last name: an item for each of the list, which has the \
                          names in the channels of each file, with their records, and what events tell of new names. For \
                          evtx_machines_of.",
            example: "FROM evtx_machines_of('events')",
            parameters: vec![typed::<Vec<ComputerName<'_>>>("names")],
            result: typed::<Vec<String>>("machines"),
            make: by_row!(machines_of),
        },
        ScalarFunction {
            name: "evtx_account_names",
            description: "The names of SIDs, since when each holds, and how that is known, from the times at which events have them. For \
                          evtx_names_of.",
            example: "FROM evtx_names_of('events')",
            parameters: vec![typed::<Vec<NameUse<'_>>>("uses")],
            result: typed::<Vec<AccountName<'_>>>("names"),
            make: by_row!(names_of),
        },
    ]
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
        let mut names = Vec::new();
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
                let of = record_names(provider, id, finite(at.value(row)), sids.text(row)?, &fields);
                names.push(of.collect::<Vec<_>>());
            }
        }
        Ok(array(&names))
    }
}

/// NULL for NULL, and for names without a file or a computer.
fn machines_of(
    names: Option<Vec<Option<ComputerName<'_>>>>,
    interrupt: Interrupt<'_>,
) -> Result<Option<Vec<Option<String>>>, Interrupted> {
    let Some(names) = names else { return Ok(None) };
    let known: Vec<_> = names.iter().copied().flatten().collect();
    let mut found = machines(&known, interrupt)?.into_iter();
    Ok(Some(names.iter().map(|name| name.and_then(|_| found.next())).collect()))
}

/// NULL for NULL. Uses without a SID or a name are left out.
fn names_of<'a>(
    uses: Option<Vec<NameUse<'a>>>,
    interrupt: Interrupt<'_>,
) -> Result<Option<Vec<AccountName<'a>>>, Interrupted> {
    uses.map(|uses| account_names(&uses, interrupt)).transpose()
}
