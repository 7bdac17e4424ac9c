//! The functions that make logon sessions: of an event what it says about one, and of all events of a machine its sessions.

use arrow_array::ArrayRef;
use evtx_codes::LogonStep;
use evtx_events::{Connection, LogonEvent, LogonSession, logon_sessions};
use evtx_format::Interrupt;

use crate::boundary::EvtxError;
use crate::rows::{Map, Row, array, by_row, columns, members, typed};
use crate::scalar::{Caller, EvtxVector, Scalar, ScalarFunction, map, text};

members!(LogonStep<'a> {
    kind,
    act,
    session,
    account,
    domain,
    sid,
    address,
    workstation,
    method,
    process,
    privileges,
    step,
    logon_type,
});

members!(LogonEvent<'a> { event_id, number, time, log_time, digest, is_contested, computer, step });

columns!(connection: Connection<'_> { connected = connection.connected.and_then(|moment| moment.time), disconnected, remote_host });

columns!(session: LogonSession<'_> {
    kind,
    computer,
    user_name,
    user_sid,
    remote_host,
    workstation,
    authentication,
    process,
    logon_id,
    privileges,
    logon_time = session.logon_time.and_then(|moment| moment.time),
    logoff_time = session.logoff_time.and_then(|moment| moment.time),
    logon_log_time = session.logon_time.and_then(|moment| moment.log_time),
    logoff_log_time = session.logoff_time.and_then(|moment| moment.log_time),
    logon_number = session.logon_time.and_then(|moment| moment.number),
    logoff_number = session.logoff_time.and_then(|moment| moment.number),
    logon_type,
    claims_own_name,
    connections,
    other_logon_ids,
    is_accepted,
    is_contested,
});

/// The functions.
pub(crate) fn functions() -> impl Iterator<Item = ScalarFunction> {
    [
        ScalarFunction {
            name: "evtx_logon_step",
            description: "What an event says about a logon session, with its fields; NULL if it says nothing. For evtx_logons_of.",
            example: "SELECT evtx_logon_step(provider, event_id, event_data, user_sid) FROM read_evtx('Security.evtx')",
            parameters: vec![
                text("provider"),
                typed::<u32>("event_id"),
                map("data"),
                text("user_sid"),
            ],
            result: typed::<LogonStep<'_>>("step"),
            make: by_row!(step),
        },
        ScalarFunction {
            name: "evtx_logon_sessions",
            description: "The logon sessions of a machine, from its events: the ID of each, its number in the log, its time, \
                          its time by the clock as it was set last, a number for all that it says, whether another record claims its \
                          place, the computer, and its evtx_logon_step. Sessions of Windows itself are left out, unless \
                          all_accounts is true. For evtx_logons_of.",
            example: "FROM evtx_logons_of('events')",
            parameters: vec![
                typed::<Vec<LogonEvent<'_>>>("events"),
                typed::<bool>("all_accounts"),
            ],
            result: typed::<Vec<LogonSession<'_>>>("sessions"),
            make: Box::new(|| Box::new(Sessions)),
        },
    ]
    .into_iter()
}

type StepArguments<'a> = (Option<&'a str>, Option<u32>, Map<'a>, Option<&'a str>);

fn step<'a>(
    (provider, id, data, sid): StepArguments<'a>,
    _: Interrupt<'_>,
) -> Result<Option<LogonStep<'a>>, EvtxError> {
    let fields = data.0.into_iter().filter_map(|(key, value)| Some((key, value?)));
    let fields: Vec<_> = fields.collect();
    let event = provider.zip(id);
    Ok(event.and_then(|(provider, id)| LogonStep::read(provider, id, &fields, sid)))
}

struct Sessions;

impl Scalar for Sessions {
    /// NULL for NULL. Events that say nothing about a session are left out.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let interrupt = caller.interrupt;
        let mut rows: Vec<(Option<Vec<LogonEvent<'_>>>, bool)> = Vec::new();
        for mut row in Row::all(vectors, interrupt) {
            // SAFETY: by the contract of this function.
            rows.push(unsafe { row.next()? }.unwrap_or_default());
        }
        let sessions = rows.iter().map(|(events, all_accounts)| {
            let events = events.as_ref();
            let sessions = events.map(|events| logon_sessions(events, *all_accounts, interrupt));
            sessions.transpose()
        });
        Ok(array(&sessions.collect::<Result<Vec<_>, _>>()?))
    }
}
