//! The functions that read who, from where, with which program and about what from the fields of events.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{BooleanBuilder, StringViewBuilder};
use arrow_schema::{DataType, Field, Fields};
use evtx_codes::{Event, Machine, NOBODY, Roles, RolesReader, UserData, Writer, remote_host};
use evtx_events::{Account, AccountNames, Columns};
use evtx_format::Interrupt;

use crate::boundary::{EvtxError, EvtxText};
use crate::places::text_len;
use crate::rows::{by_row, columns, typed};
use crate::scalar::{Caller, EvtxVector, Pairs, Scalar, ScalarFunction, Unchecked, map, structs, text};

/// The columns of the roles.
fn roles_fields() -> Fields {
    let texts = Roles::default().texts().map(|(name, _)| text(name)).into_iter();
    texts
        .chain(["claims_own_name", "is_windows"].map(|name| Field::new(name, DataType::Boolean, true)))
        .collect()
}

columns!(document: UserData { element, attributes, fields });

/// The functions.
pub(crate) fn functions() -> impl Iterator<Item = ScalarFunction> {
    [
        ScalarFunction {
            name: "evtx_event_roles",
            description: "What evtx_timeline says about an event: its name, the topic and level of the fact that it is, the \
                          account that logged on or caused it, with domain and SID, the other machine, the program, what \
                          the event is about, a detail, and the other fields in one line. claims_own_name tells that the \
                          other machine gave the name of this one, and is_windows that the account is one of Windows \
                          itself, which has other names on other machines.",
            example: "SELECT unnest(evtx_event_roles(provider, event_id, event_data, user_data, computer, user_sid)) FROM \
                      read_evtx('Security.evtx')",
            parameters: event_parameters().into(),
            result: Field::new("roles", DataType::Struct(roles_fields()), true),
            make: Box::new(|| Box::new(RolesOfRows::default())),
        },
        ScalarFunction {
            name: "evtx_event_row",
            description: "The columns of evtx_timeline that an event has by its roles, with the name of its SID at its place or time, which \
                          is in the index (evtx_account_index). log is a number for the log. For evtx_event_rows.",
            example: "FROM evtx_timeline_of('events')",
            parameters: [text("index"), typed::<u64>("log"), typed::<u64>("record_id"), typed::<i64>("time_created")]
                .into_iter()
                .chain(event_parameters())
                .collect(),
            result: Field::new("row", DataType::Struct(ROW.map(text).into_iter().collect()), true),
            make: Box::new(|| Box::new(RowsOfEvents::default())),
        },
        ScalarFunction {
            name: "evtx_user_data_fields",
            description: "The fields of user_data, the name of the element that contains them, and its attributes.",
            example: "SELECT evtx_user_data_fields('{\"LogFileCleared\":{\"SubjectUserName\":\"eve\"}}')",
            parameters: vec![text("user_data")],
            result: typed::<UserData>("user_data"),
            make: by_row!(user_data),
        },
        ScalarFunction {
            name: "evtx_other_machine",
            description: "The other machine that a value of an event of the computer names; NULL for this one. For \
                          evtx_remote_host.",
            example: "SELECT evtx_other_machine('[::ffff:10.0.0.1]:445', 'pc', 'windows')",
            parameters: vec![text("host"), text("computer"), text("written_by")],
            result: text("machine"),
            make: by_row!(other_machine),
        },
    ]
    .into_iter()
}

/// The parameters that roles are read from.
fn event_parameters() -> [Field; 6] {
    [
        text("provider"),
        typed::<u32>("event_id"),
        map("event_data"),
        text("user_data"),
        text("computer"),
        text("user_sid"),
    ]
}

/// The columns of a row of the time line.
const ROW: [&str; 7] = [
    "event",
    "user_name",
    "full_name",
    "user_sid",
    "remote_host",
    "process",
    "details",
];

/// Passes on the columns and the roles of the events in some rows.
///
/// # Safety
/// The vectors are those of [`event_parameters`].
unsafe fn read_events(
    reader: &mut RolesReader,
    vectors: &[EvtxVector],
    interrupt: Interrupt<'_>,
    mut take: impl FnMut(usize, &Columns<'_>, &Roles<'_>) -> Result<(), EvtxError>,
) -> Result<(), EvtxError> {
    let &[providers, ids, lists, entries, keys, values, documents, computers, sids] = vectors else {
        return Err("the roles of events have six arguments".into());
    };
    let own = Pairs::new([lists, entries, keys, values]);
    let (mut pairs, mut unchecked) = (Vec::new(), Unchecked::default());
    for row in 0..providers.rows {
        pairs.clear();
        // SAFETY: by the contract of this function.
        let columns = unsafe {
            for pair in own.row(row) {
                pairs.push(pair?);
            }
            Columns {
                provider: providers.text(row)?,
                event_id: ids.value(row),
                event_data: Some(&pairs),
                user_data: documents.text(row)?,
                computer: computers.text(row)?,
                user_sid: sids.text(row)?,
                ..Columns::default()
            }
        };
        unchecked.add(text_len(&columns), interrupt)?;
        let document = columns.user_data.map(UserData::new);
        let element = document.as_ref().and_then(|document| document.element.as_deref());
        let fields = columns.fields(document.as_ref());
        let roles = reader.read(Event {
            provider: columns.provider.unwrap_or_default(),
            event_id: columns.event_id.unwrap_or_default(),
            fields: &fields,
            element: element.unwrap_or_default(),
            computer: columns.computer.unwrap_or_default(),
            user_sid: columns.user_sid,
        });
        take(row, &columns, &roles)?;
    }
    Ok(())
}

/// The array of a builder.
fn finished(builder: &mut StringViewBuilder) -> ArrayRef {
    Arc::new(builder.finish())
}

#[derive(Default)]
struct RolesOfRows(RolesReader);

impl Scalar for RolesOfRows {
    /// Never NULL.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let mut texts: [StringViewBuilder; 11] = Default::default();
        let mut truths: [BooleanBuilder; 2] = Default::default();
        let add = |_, _: &Columns<'_>, roles: &Roles<'_>| {
            for (builder, (_, text)) in texts.iter_mut().zip(roles.texts()) {
                builder.append_option(text);
            }
            for (builder, is) in truths.iter_mut().zip([roles.claims_own_name, roles.is_windows]) {
                builder.append_value(is);
            }
            Ok(())
        };
        // SAFETY: by the contract of this function.
        unsafe { read_events(&mut self.0, vectors, caller.interrupt, add)? };
        let truths = truths.iter_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef);
        let columns = texts.iter_mut().map(finished).chain(truths).collect();
        Ok(structs(&roles_fields(), columns))
    }
}

/// Most rows have the same index.
#[derive(Default)]
struct RowsOfEvents {
    reader: RolesReader,
    index: String,
    names: AccountNames,
}

impl Scalar for RowsOfEvents {
    /// Never NULL.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let Some((&[indexes, logs, record_ids, at], events)) = vectors.split_first_chunk() else {
            return Err("evtx_event_row has ten arguments".into());
        };
        let (mut texts, mut last): ([StringViewBuilder; ROW.len()], &[u8]) = Default::default();
        let RowsOfEvents { reader, index, names } = self;
        let add = |row, of: &Columns<'_>, roles: &Roles<'_>| {
            // SAFETY: by the contract of this function.
            let (text, place, time) = unsafe {
                (
                    indexes.bytes(row),
                    (logs.value(row), record_ids.value(row)),
                    at.value(row),
                )
            };
            let text = text.unwrap_or_default();
            if !std::ptr::eq(text, last) && text != index.as_bytes() {
                let text = EvtxText::borrowed(text).text()?;
                *names = AccountNames::default();
                index.clear();
                let mut unchecked = Unchecked::default();
                for line in text.lines() {
                    unchecked.add(line.len(), caller.interrupt)?;
                    names.read(line)?;
                }
                index.push_str(text);
            }
            last = text;
            let account = Account {
                domain: roles.domain,
                name: roles.account,
                sid: roles.user_sid,
                is_windows: roles.is_windows,
            };
            let user_name = names.user_name(&account, of.computer, place, time);
            let full_name = account.full_name();
            let row = [
                roles.event,
                user_name.as_deref(),
                full_name.as_deref(),
                roles.user_sid.filter(|sid| *sid != NOBODY),
                roles.remote_host.as_deref(),
                roles.process,
                roles.details.as_deref(),
            ];
            for (builder, text) in texts.iter_mut().zip(row) {
                builder.append_option(text);
            }
            Ok(())
        };
        // SAFETY: by the contract of this function.
        unsafe { read_events(reader, events, caller.interrupt, add)? };
        Ok(structs(
            &ROW.map(text).into_iter().collect(),
            texts.iter_mut().map(finished).collect(),
        ))
    }
}

/// NULL in all columns if the text is not an object.
fn user_data(document: Option<&str>, _: Interrupt<'_>) -> Result<UserData, EvtxError> {
    Ok(document.map(UserData::new).unwrap_or_default())
}

/// NULL for NULL. Fails for an unknown writer.
fn other_machine<'a>(
    (host, computer, writer): (Option<&'a str>, Option<&'a str>, Option<&'a str>),
    _: Interrupt<'_>,
) -> Result<Option<Cow<'a, str>>, String> {
    let Some((host, writer)) = host.zip(writer.map(Writer::parsed).transpose()?) else {
        return Ok(None);
    };
    Ok(match remote_host(host, computer.unwrap_or_default(), writer) {
        Machine::Other(host) => Some(host),
        Machine::Own | Machine::Unknown => None,
    })
}
