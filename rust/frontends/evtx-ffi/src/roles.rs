//! The functions that read who, from where, with which program and about what from the fields of events.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{BooleanBuilder, StringViewBuilder};
use arrow_schema::{DataType, Field, Fields};
use evtx_codes::{Event, Machine, Roles, RolesReader, UserData, Writer, remote_host};
use evtx_format::Interrupt;

use crate::boundary::EvtxError;
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
            parameters: vec![
                text("provider"), typed::<u32>("event_id"), map("event_data"), text("user_data"), text("computer"), text("user_sid"),
            ],
            result: Field::new("roles", DataType::Struct(roles_fields()), true),
            make: Box::new(|| Box::new(RolesOfRows::default())),
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

/// How many fields most events have.
const FIELDS: usize = 32;

#[derive(Default)]
struct RolesOfRows(RolesReader);

impl Scalar for RolesOfRows {
    /// Never NULL.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let &[providers, ids, lists, pairs, keys, values, documents, computers, sids] = vectors else {
            return Err("the roles of events have six arguments".into());
        };
        let own = Pairs::new([lists, pairs, keys, values]);
        let mut texts: [StringViewBuilder; 11] = Default::default();
        let mut truths: [BooleanBuilder; 2] = Default::default();
        let mut unchecked = Unchecked::default();
        for row in 0..providers.rows {
            // SAFETY: by the contract of this function.
            let (own, document) = unsafe { (own.row(row), documents.text(row)?) };
            unchecked.add(document.map_or(0, str::len), caller.interrupt)?;
            let document = document.map(UserData::new);
            let mut fields = Vec::with_capacity(FIELDS);
            fields.extend(document.iter().flat_map(UserData::shown));
            // A planted event can have both.
            for pair in own {
                if let (key, Some(value)) = pair? {
                    fields.push((key, value));
                    unchecked.add(key.len() + value.len(), caller.interrupt)?;
                }
            }
            let element = document.as_ref().and_then(|document| document.element.as_deref());
            // SAFETY: as above.
            let event = unsafe {
                Event {
                    provider: providers.text(row)?.unwrap_or_default(),
                    event_id: ids.value(row).unwrap_or_default(),
                    fields: &fields,
                    element: element.unwrap_or_default(),
                    computer: computers.text(row)?.unwrap_or_default(),
                    user_sid: sids.text(row)?,
                }
            };
            let roles = self.0.read(event);
            texts
                .iter_mut()
                .zip(roles.texts())
                .for_each(|(builder, (_, text))| builder.append_option(text));
            truths
                .iter_mut()
                .zip([roles.claims_own_name, roles.is_windows])
                .for_each(|(builder, is)| builder.append_value(is));
        }
        let texts = texts.iter_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef);
        let truths = truths.iter_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef);
        let columns: Vec<_> = texts.chain(truths).collect();
        Ok(structs(&roles_fields(), columns))
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
