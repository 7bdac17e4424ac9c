//! The functions that make logon sessions: of an event what it says about one, and of all events of a machine its sessions.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringViewBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Int32Array, StringViewArray, TimestampNanosecondArray, UInt8Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Fields};
use evtx_codes::LogonStep;
use evtx_events::{LogonEvent, LogonSession, Moment, logon_sessions};
use evtx_scan::ScanError;

use crate::boundary::EvtxError;
use crate::scalar::{
    Caller, EvtxVector, Pairs, Scalar, ScalarFunction, TIME, Unchecked, column, columns_of, list, list_array, map,
    structs, text,
};

fn time(name: &str) -> Field {
    Field::new(name, TIME, true)
}

/// The columns of [`LogonStep`].
fn step_fields() -> Fields {
    let numbers = [
        Field::new("step", DataType::UInt8, true),
        Field::new("logon_type", DataType::Int32, true),
    ];
    LogonStep::TEXTS.map(text).into_iter().chain(numbers).collect()
}

/// The columns of [`LogonEvent`].
fn event_fields() -> Fields {
    Fields::from(vec![
        Field::new("event_id", DataType::UInt32, true),
        Field::new("number", DataType::UInt64, true),
        time("time"),
        time("log_time"),
        Field::new("digest", DataType::UInt64, true),
        Field::new("is_contested", DataType::Boolean, true),
        text("computer"),
        Field::new("step", DataType::Struct(step_fields()), true),
    ])
}

fn connection_fields() -> Fields {
    Fields::from(vec![time("connected"), time("disconnected"), text("remote_host")])
}

/// The columns of [`LogonSession`].
fn session_fields() -> Fields {
    let others = [
        time("logon_time"),
        time("logoff_time"),
        time("logon_log_time"),
        time("logoff_log_time"),
        Field::new("logon_number", DataType::UInt64, true),
        Field::new("logoff_number", DataType::UInt64, true),
        Field::new("logon_type", DataType::Int32, true),
        Field::new("claims_own_name", DataType::Boolean, true),
        list("connections", DataType::Struct(connection_fields())),
        list("other_logon_ids", DataType::Utf8),
        Field::new("is_accepted", DataType::Boolean, true),
        Field::new("is_contested", DataType::Boolean, true),
    ];
    LogonSession::TEXTS.map(text).into_iter().chain(others).collect()
}

/// The functions.
pub(crate) fn functions() -> impl Iterator<Item = ScalarFunction> {
    [
        ScalarFunction {
            name: "evtx_logon_step",
            description: "What an event says about a logon session, with its fields; NULL if it says nothing. For evtx_logons_of.",
            example: "SELECT evtx_logon_step(provider, event_id, event_data, user_sid) FROM read_evtx('Security.evtx')",
            parameters: vec![
                text("provider"),
                Field::new("event_id", DataType::UInt32, true),
                map("data"),
                text("user_sid"),
            ],
            result: Field::new("step", DataType::Struct(step_fields()), true),
            make: Box::new(|| Box::new(Steps)),
        },
        ScalarFunction {
            name: "evtx_logon_sessions",
            description: "The logon sessions of a machine, from its events: the ID of each, its number in the log, its time, \
                          its time by the clock as it was set last, a number for all that it says, whether another record claims its \
                          place, the computer, and its evtx_logon_step. Sessions of Windows itself are left out, unless \
                          all_accounts is true. For evtx_logons_of.",
            example: "FROM evtx_logons_of('events')",
            parameters: vec![
                list("events", DataType::Struct(event_fields())),
                Field::new("all_accounts", DataType::Boolean, true),
            ],
            result: list("sessions", DataType::Struct(session_fields())),
            make: Box::new(|| Box::new(Sessions)),
        },
    ]
    .into_iter()
}

struct Steps;

impl Scalar for Steps {
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let &[providers, ids, lists, pairs, keys, values, sids] = vectors else {
            return Err("evtx_logon_step has four arguments".into());
        };
        let data = Pairs::new([lists, pairs, keys, values]);
        let (mut steps, mut fields, mut unchecked) = (Vec::new(), Vec::new(), Unchecked::default());
        for row in 0..providers.rows {
            fields.clear();
            // SAFETY: by the contract of this function.
            for pair in unsafe { data.row(row) } {
                if let (key, Some(value)) = pair? {
                    fields.push((key, value));
                    unchecked.add(key.len() + value.len(), caller.interrupt)?;
                }
            }
            // SAFETY: as above.
            let (provider, id, sid) = unsafe { (providers.text(row)?, ids.value(row), sids.text(row)?) };
            let step = provider
                .zip(id)
                .and_then(|(provider, id)| LogonStep::read(provider, id, &fields, sid));
            steps.push(step);
        }
        let texts = steps
            .iter()
            .map(|step| step.as_ref().map_or([None; 11], LogonStep::texts));
        let mut columns = columns_of(texts);
        let known = || steps.iter().map(Option::as_ref);
        columns.push(column::<UInt8Array, _>(known().map(|step| Some(step?.step))));
        columns.push(column::<Int32Array, _>(known().map(|step| step?.logon_type)));
        let valid: Vec<_> = steps.iter().map(Option::is_some).collect();
        Ok(structs(&step_fields(), columns, Some(valid.into())))
    }
}

/// The event in an item of a list; `None` if it says nothing about a session.
///
/// # Safety
/// The vectors are those of a struct of [`event_fields`].
unsafe fn event<'a>(vectors: &[EvtxVector], item: usize) -> Result<Option<LogonEvent<'a>>, EvtxError> {
    let &[
        _,
        event_id,
        number,
        time,
        log_time,
        digest,
        is_contested,
        computer,
        _,
        ref texts @ ..,
        step,
        logon_type,
    ] = vectors
    else {
        return Err("the events are not those of evtx_logon_sessions".into());
    };
    // SAFETY: by the contract of this function.
    unsafe {
        let mut all = [None; 11];
        for (text, vector) in all.iter_mut().zip(texts) {
            *text = vector.text(item)?;
        }
        let step = LogonStep::of_texts(all, step.value(item).unwrap_or_default(), logon_type.value(item));
        let Some(step) = step else { return Ok(None) };
        Ok(Some(LogonEvent {
            at: Moment {
                log_time: log_time.value(item),
                number: number.value(item),
                time: time.value(item),
            },
            event_id: event_id.value(item).unwrap_or_default(),
            digest: digest.value(item).unwrap_or_default(),
            is_contested: is_contested.value::<u8>(item) == Some(1),
            computer: computer.text(item)?,
            step,
        }))
    }
}

struct Sessions;

impl Scalar for Sessions {
    /// NULL for NULL.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let &[lists, ref items @ .., all_accounts] = vectors else {
            return Err("evtx_logon_sessions has two arguments".into());
        };
        let (mut events, mut valid) = (Vec::new(), Vec::new());
        for row in 0..lists.rows {
            let mut of_row = Vec::new();
            // SAFETY: by the contract of this function.
            for (step, item) in unsafe { lists.items(row) }.enumerate() {
                caller.interrupt.check_step(step).map_err(ScanError::from)?;
                // SAFETY: as above.
                of_row.extend(unsafe { event(items, item)? });
            }
            // SAFETY: as above.
            events.push((of_row, unsafe { all_accounts.value::<u8>(row) } == Some(1)));
            valid.push(lists.is_valid(row));
        }
        let (mut sessions, mut lengths) = (Vec::new(), Vec::new());
        for (of_row, all_accounts) in &events {
            let found = logon_sessions(of_row, *all_accounts, caller.interrupt).map_err(ScanError::from)?;
            lengths.push(found.len());
            sessions.extend(found);
        }
        Ok(list_array(session_array(&sessions), lengths, Some(valid.into())))
    }
}

/// Sessions as structs of [`session_fields`].
fn session_array(sessions: &[LogonSession<'_>]) -> ArrayRef {
    type Session<'s, 'e> = &'s LogonSession<'e>;
    let times = |of: fn(Session<'_, '_>) -> Option<i64>| column::<TimestampNanosecondArray, _>(sessions.iter().map(of));
    let numbers = |of: fn(Session<'_, '_>) -> Option<u64>| column::<UInt64Array, _>(sessions.iter().map(of));
    let truths =
        |of: fn(Session<'_, '_>) -> bool| column::<BooleanArray, _>(sessions.iter().map(|session| Some(of(session))));
    let all = || sessions.iter().flat_map(|session| session.connections.iter().flatten());
    let connections = vec![
        column::<TimestampNanosecondArray, _>(all().map(|connection| connection.connected)),
        column::<TimestampNanosecondArray, _>(all().map(|connection| connection.disconnected)),
        column::<StringViewArray, _>(all().map(|connection| connection.remote_host.as_deref())),
    ];
    let lengths = sessions
        .iter()
        .map(|session| session.connections.as_ref().map_or(0, Vec::len));
    let valid: Vec<_> = sessions.iter().map(|session| session.connections.is_some()).collect();
    let connections = structs(&connection_fields(), connections, None);
    let mut other_ids = ListBuilder::new(StringViewBuilder::new());
    sessions
        .iter()
        .for_each(|session| other_ids.append_value(session.other_logon_ids.iter().map(Some)));
    let mut columns = columns_of(sessions.iter().map(LogonSession::texts));
    columns.extend([
        times(|session| session.logon_time?.time),
        times(|session| session.logoff_time?.time),
        times(|session| session.logon_time?.log_time),
        times(|session| session.logoff_time?.log_time),
        numbers(|session| session.logon_time?.number),
        numbers(|session| session.logoff_time?.number),
        column::<Int32Array, _>(sessions.iter().map(|session| session.logon_type)),
        truths(|session| session.claims_own_name),
        list_array(connections, lengths, Some(valid.into())),
        Arc::new(other_ids.finish()),
        truths(|session| session.is_accepted),
        truths(|session| session.is_contested),
    ]);
    structs(&session_fields(), columns, None)
}
