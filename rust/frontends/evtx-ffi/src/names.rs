//! The functions that tell which machine a name of a computer stands for, and which names a SID has.

use std::collections::BTreeSet;

use arrow_array::ArrayRef;
use evtx_codes::UserData;
use evtx_events::{
    AccountName, AccountNames, Columns, ComputerName, LogHour, LogHours, RecordNames, ToldName, account_names, machines,
};
use evtx_format::Interrupt;

use crate::boundary::EvtxError;
use crate::places::{finite, record, record_parameters, text_len};
use crate::rows::{array, by_row, columns, members, typed};
use crate::scalar::{Caller, EvtxVector, Scalar, ScalarFunction, Unchecked, text};

members!(ToldComputer<'a> { file, computer, channel, time, renamed [old_host, new_host], own_sid });

columns!(machine: Machine { filename = &*machine.0, computer = &*machine.1, machine = &*machine.2 });

columns!(name: AccountName {
    computer,
    user_sid = &*name.sid,
    user_name = &*name.name,
    first_seen,
    last_seen,
    is_renamed,
    name_source = name.source,
});

/// What an event tells of the name of a computer.
struct ToldComputer<'a> {
    file: &'a str,
    computer: &'a str,
    channel: Option<&'a str>,
    time: Option<i64>,
    renamed: [Option<&'a str>; 2],
    own_sid: Option<&'a str>,
}

/// The file, the name of a computer in it, and the machine.
type Machine = (String, String, String);

/// The functions.
pub(crate) fn functions() -> [ScalarFunction; 5] {
    [
        ScalarFunction {
            name: "evtx_record_names",
            description: "The names that records have with SIDs, with what they say of the account and since when, as a text that has those of \
                          many records; NULL for the other records. log is a number for the log. For evtx_names_of.",
            example: "FROM evtx_names_of('events')",
            parameters: [typed::<u64>("log"), typed::<u64>("record_id")]
                .into_iter()
                .chain(record_parameters())
                .collect(),
            result: text("names"),
            make: Box::new(|| Box::new(NamesOfRecords)),
        },
        ScalarFunction {
            name: "evtx_log_hours",
            description: "What the records of each hour say of their log, and those at its ends, as a text that has those of many records; NULL \
                          for the other records. Without ends, what all records say. For evtx_machines_of and evtx_facts_of.",
            example: "FROM evtx_machines_of('events')",
            parameters: vec![
                text("filename"),
                typed::<u64>("record_id"),
                text("computer"),
                text("channel"),
                text("provider"),
                typed::<u64>("event_record_id"),
                typed::<i64>("time_created"),
                typed::<u32>("event_id"),
                typed::<bool>("ends"),
            ],
            result: text("hours"),
            make: Box::new(|| Box::new(HoursOfRecords)),
        },
        ScalarFunction {
            name: "evtx_machines",
            description: "The machine that each name of a computer in a file stands for, by its last name, from the hours of logs \
                          (evtx_log_hours) and what events tell of names. For evtx_machines_of.",
            example: "FROM evtx_machines_of('events')",
            parameters: vec![typed::<Vec<&str>>("hours"), typed::<Vec<ToldComputer<'_>>>("told")],
            result: typed::<Vec<Machine>>("machines"),
            make: by_row!(machines_of),
        },
        ScalarFunction {
            name: "evtx_account_names",
            description: "The names of SIDs, since when each holds, and how that is known, from the names in records (evtx_record_names). For \
                          evtx_accounts_of.",
            example: "FROM evtx_accounts_of('events')",
            parameters: vec![typed::<Vec<&str>>("names")],
            result: typed::<Vec<AccountName>>("accounts"),
            make: by_row!(accounts),
        },
        ScalarFunction {
            name: "evtx_account_index",
            description: "The same names as a text for evtx_event_row, which finds the name of a SID in it. For evtx_event_rows.",
            example: "FROM evtx_timeline_of('events')",
            parameters: vec![typed::<Vec<&str>>("names")],
            result: text("index"),
            make: by_row!(index),
        },
    ]
}

struct NamesOfRecords;

impl Scalar for NamesOfRecords {
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let Some((&[log, record_id], rest)) = vectors.split_first_chunk() else {
            return Err("evtx_record_names has eleven arguments".into());
        };
        let of: &[EvtxVector; 12] = rest.try_into().map_err(|_| "evtx_record_names has eleven arguments")?;
        let (mut names, mut pairs, mut unchecked) = (RecordNames::default(), Vec::new(), Unchecked::default());
        for row in 0..log.rows {
            // SAFETY: by the contract of this function.
            unsafe {
                let columns = record(of, row, &mut pairs)?;
                unchecked.add(text_len(&columns), caller.interrupt)?;
                let document = columns.user_data.map(UserData::new);
                names.add(
                    log.value(row),
                    record_id.value(row),
                    &columns,
                    &columns.fields(document.as_ref()),
                );
            }
        }
        Ok(in_last_row(names.into_lines(), log.rows))
    }
}

/// Lines as one text in the last of some rows, or NULL if there are none.
fn in_last_row(lines: impl Iterator<Item = String>, rows: usize) -> ArrayRef {
    let mut texts = vec![None; rows];
    if let Some(last) = texts.last_mut() {
        *last = lines.reduce(|lines, line| lines + "\n" + &line);
    }
    array(&texts)
}

struct HoursOfRecords;

impl Scalar for HoursOfRecords {
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let &[
            files,
            record_ids,
            computers,
            channels,
            providers,
            numbers,
            at,
            ids,
            ends,
        ] = vectors
        else {
            return Err("evtx_log_hours has nine arguments".into());
        };
        let mut hours = LogHours::default();
        let (mut last, mut texts) = ([const { None }; 3], [None; 3]);
        for row in 0..files.rows {
            caller.interrupt.check_step(row)?;
            let of_log = [files, computers, channels];
            // SAFETY: by the contract of this function.
            unsafe {
                // Most rows have the texts of the row before them.
                let places = of_log.map(|vector| vector.bytes(row).map(<[u8]>::as_ptr_range));
                if places != last || row == 0 {
                    last = places;
                    texts = [files.text(row)?, computers.text(row)?, channels.text(row)?];
                }
                let [filename, computer, channel] = texts;
                let of = Columns {
                    computer,
                    channel,
                    provider: providers.text(row)?,
                    event_record_id: numbers.value(row),
                    time_created: finite(at.value(row)),
                    event_id: ids.value(row),
                    ..Columns::default()
                };
                hours.add(filename, record_ids.value(row), &of, ends.value(row) == Some(1_u8));
            }
        }
        Ok(in_last_row(hours.into_lines(), files.rows))
    }
}

/// The hours in texts that `evtx_log_hours` returned.
///
/// # Errors
/// If a text is none.
pub(crate) fn hours_of(texts: &[&str], interrupt: Interrupt<'_>) -> Result<Vec<LogHour<'static>>, EvtxError> {
    let (mut hours, mut unchecked) = (LogHours::default(), Unchecked::default());
    for line in texts.iter().flat_map(|text| text.split('\n')) {
        unchecked.add(line.len(), interrupt)?;
        hours.read(line)?;
    }
    Ok(hours.into_hours())
}

/// Sorted, each name in a file once.
fn machines_of(
    (texts, told): (Vec<&str>, Vec<ToldComputer<'_>>),
    interrupt: Interrupt<'_>,
) -> Result<Vec<Machine>, EvtxError> {
    let hours = hours_of(&texts, interrupt)?;
    let told = told.iter().map(|told| ComputerName {
        file: told.file,
        computer: told.computer,
        channel: told.channel,
        times: [None, told.time],
        renamed: told.renamed,
        own_sid: told.own_sid,
        ..ComputerName::default()
    });
    let said: Vec<_> = hours.iter().filter_map(LogHour::name).chain(told).collect();
    let found = machines(&said, interrupt)?;
    let names = said.iter().map(|said| (said.file.to_owned(), said.computer.to_owned()));
    let all: BTreeSet<_> = names
        .zip(found)
        .map(|((file, computer), machine)| (file, computer, machine))
        .collect();
    Ok(all.into_iter().collect())
}

/// The names of accounts from texts that `evtx_record_names` returned.
///
/// # Errors
/// If a text is none.
fn accounts(texts: Vec<&str>, interrupt: Interrupt<'_>) -> Result<Vec<AccountName>, EvtxError> {
    let (mut names, mut unchecked) = (Vec::new(), Unchecked::default());
    for line in texts.iter().flat_map(|text| text.split('\n')) {
        unchecked.add(line.len(), interrupt)?;
        let name = ToldName::read(line).ok_or("not of evtx_record_names")?;
        names.push(name.map_err(|error| format!("not of evtx_record_names: {error}"))?);
    }
    let uses: Vec<_> = names.iter().map(ToldName::name_use).collect();
    Ok(account_names(&uses, interrupt)?)
}

fn index(texts: Vec<&str>, interrupt: Interrupt<'_>) -> Result<String, EvtxError> {
    let names = accounts(texts, interrupt)?;
    Ok(AccountNames::new(&names, interrupt)?.to_lines(interrupt)?)
}
