//! The functions that make logon sessions: of an event what it says about one, and of all events of a machine its sessions.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Int32Builder, ListBuilder, StringViewBuilder, TimestampNanosecondBuilder, UInt8Builder,
    UInt64Builder,
};
use arrow_array::{ArrayRef, StructArray};
use arrow_schema::{DataType, Field, Fields};
use evtx_codes::LogonStep;
use evtx_events::{Connection, LogonEvent, LogonSession, Moment, logon_sessions};
use evtx_scan::ScanError;

use crate::boundary::EvtxError;
use crate::scalar::{Caller, EvtxVector, Pairs, Scalar, ScalarFunction, TIME, Unchecked, list, list_array, structs};

fn text(name: &str) -> Field {
    Field::new(name, DataType::Utf8, true)
}

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
    let pair = DataType::Struct(vec![text("key"), text("value")].into());
    let entries = Field::new("entries", pair, false);
    [
        ScalarFunction {
            name: "evtx_logon_step",
            description: "What an event says about a logon session, with its fields; NULL if it says nothing. For evtx_logons_of.",
            example: "SELECT evtx_logon_step(provider, event_id, event_data, user_sid) FROM read_evtx('Security.evtx')",
            parameters: vec![
                text("provider"),
                Field::new("event_id", DataType::UInt32, true),
                Field::new("data", DataType::Map(entries.into(), false), true),
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
        let mut texts: [StringViewBuilder; 11] = Default::default();
        let (mut steps, mut types, mut known) = (UInt8Builder::new(), Int32Builder::new(), Vec::new());
        let (mut fields, mut unchecked) = (Vec::new(), Unchecked::default());
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
            let of_step = step.as_ref().map_or([None; 11], LogonStep::texts);
            texts
                .iter_mut()
                .zip(of_step)
                .for_each(|(builder, text)| builder.append_option(text));
            steps.append_option(step.as_ref().map(|step| step.step));
            types.append_option(step.as_ref().and_then(|step| step.logon_type));
            known.push(step.is_some());
        }
        let texts = texts.iter_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef);
        let numbers: [ArrayRef; 2] = [Arc::new(steps.finish()), Arc::new(types.finish())];
        let columns = texts.chain(numbers).collect();
        Ok(Arc::new(structs(&step_fields(), columns, Some(known.into()))))
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
        let (mut found, mut lengths, mut valid) = (Columns::default(), Vec::new(), Vec::new());
        for row in 0..lists.rows {
            let mut events = Vec::new();
            // SAFETY: by the contract of this function.
            for (step, item) in unsafe { lists.items(row) }.enumerate() {
                caller.interrupt.check_step(step).map_err(ScanError::from)?;
                // SAFETY: as above.
                events.extend(unsafe { event(items, item)? });
            }
            // SAFETY: as above.
            let all_accounts = unsafe { all_accounts.value::<u8>(row) } == Some(1);
            let sessions = logon_sessions(&events, all_accounts, caller.interrupt).map_err(ScanError::from)?;
            sessions.iter().for_each(|session| found.push(session));
            lengths.push(sessions.len());
            valid.push(lists.is_valid(row));
        }
        let sessions = found.finish();
        Ok(list_array(sessions, lengths, Some(valid.into())))
    }
}

/// The columns of sessions, in the order of [`session_fields`].
#[derive(Default)]
struct Columns {
    texts: [StringViewBuilder; 10],
    /// The time stamps, and the times in the order of the logs.
    times: [TimestampNanosecondBuilder; 4],
    numbers: [UInt64Builder; 2],
    types: Int32Builder,
    claims: BooleanBuilder,
    connected: [TimestampNanosecondBuilder; 2],
    hosts: StringViewBuilder,
    /// How many connections each session has, if it has any list of them.
    connections: Vec<Option<usize>>,
    other_ids: ListBuilder<StringViewBuilder>,
    accepted: BooleanBuilder,
    contested: BooleanBuilder,
}

impl Columns {
    fn push(&mut self, session: &LogonSession<'_>) {
        let texts = self.texts.iter_mut().zip(session.texts());
        texts.for_each(|(builder, text)| builder.append_option(text));
        let ends = [session.logon_time, session.logoff_time];
        let stamps = ends.iter().map(|end| end.and_then(|end| end.time));
        let times = stamps.chain(ends.iter().map(|end| end.and_then(|end| end.log_time)));
        let times = self.times.iter_mut().zip(times);
        times.for_each(|(builder, time)| builder.append_option(time));
        let numbers = self.numbers.iter_mut().zip(ends);
        numbers.for_each(|(builder, end)| builder.append_option(end.and_then(|end| end.number)));
        self.types.append_option(session.logon_type);
        self.claims.append_value(session.claims_own_name);
        self.connections.push(session.connections.as_ref().map(Vec::len));
        for Connection {
            connected,
            disconnected,
            remote_host,
        } in session.connections.iter().flatten()
        {
            self.connected[0].append_option(*connected);
            self.connected[1].append_option(*disconnected);
            self.hosts.append_option(remote_host.as_deref());
        }
        self.other_ids.append_value(session.other_logon_ids.iter().map(Some));
        self.accepted.append_value(session.is_accepted);
        self.contested.append_value(session.is_contested);
    }

    fn finish(mut self) -> StructArray {
        let mut columns: Vec<ArrayRef> = Vec::new();
        columns.extend(
            self.texts
                .iter_mut()
                .map(|builder| Arc::new(builder.finish()) as ArrayRef),
        );
        columns.extend(
            self.times
                .iter_mut()
                .map(|builder| Arc::new(builder.finish()) as ArrayRef),
        );
        columns.extend(
            self.numbers
                .iter_mut()
                .map(|builder| Arc::new(builder.finish()) as ArrayRef),
        );
        let [mut from, mut until] = self.connected;
        let connections: Vec<ArrayRef> = vec![
            Arc::new(from.finish()),
            Arc::new(until.finish()),
            Arc::new(self.hosts.finish()),
        ];
        let connections = structs(&connection_fields(), connections, None);
        let lengths = self.connections.iter().map(|count| count.unwrap_or_default());
        let valid: Vec<_> = self.connections.iter().map(Option::is_some).collect();
        let connections = list_array(connections, lengths, Some(valid.into()));
        let others: [ArrayRef; 6] = [
            Arc::new(self.types.finish()),
            Arc::new(self.claims.finish()),
            connections,
            Arc::new(self.other_ids.finish()),
            Arc::new(self.accepted.finish()),
            Arc::new(self.contested.finish()),
        ];
        columns.extend(others);
        structs(&session_fields(), columns, None)
    }
}
