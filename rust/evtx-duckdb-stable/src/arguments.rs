//! The arguments of a call, from values of DuckDB.

use evtx_ffi::{EvtxArguments, EvtxPaths};
use evtx_format::Interrupt;
use evtx_scan::{Argument, ArgumentKind, ArgumentValue, ScanError, Storage};

use crate::types::{Value, id};

fn input(text: String) -> ScanError {
    ScanError::Input(text)
}

/// The texts of a value or of the values in a list that are not NULL.
fn texts(value: &Value, argument: &str) -> Result<Vec<String>, ScanError> {
    let Some(items) = value.items() else {
        return one(value, argument).map(|text| text.into_iter().collect());
    };
    let texts = items.iter().map(|item| one(item, argument));
    Ok(texts.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

/// The text of a value; `None` for NULL.
fn one(value: &Value, argument: &str) -> Result<Option<String>, ScanError> {
    match value.type_id() {
        _ if value.is_null() => Ok(None),
        id::LIST | id::STRUCT | id::MAP | id::ARRAY => {
            let name = value.type_name();
            Err(input(format!(
                "{argument} takes a value or a list of values, not {name}"
            )))
        }
        _ => Ok(Some(value.text())),
    }
}

/// Sets an argument to a value of its type.
pub(crate) fn set(arguments: &mut EvtxArguments, argument: &Argument, value: &Value) -> Result<(), ScanError> {
    let taken = match argument.kind {
        _ if value.is_null() => ArgumentValue::Null,
        // The options of COPY come with any type.
        ArgumentKind::Flag => match value.text().to_ascii_lowercase().as_str() {
            "true" | "1" => ArgumentValue::Flag(true),
            "false" | "0" => ArgumentValue::Flag(false),
            other => return Err(input(format!("{} is true or false, not {other}", argument.name))),
        },
        ArgumentKind::Integer => {
            let text = value.text();
            let number = text.parse();
            ArgumentValue::Integer(
                number.map_err(|_| input(format!("{} is a whole number, not {text}", argument.name)))?,
            )
        }
        ArgumentKind::Text => ArgumentValue::Text(value.text()),
        ArgumentKind::List => ArgumentValue::List(texts(value, argument.name)?),
        ArgumentKind::Map => {
            if value.type_id() != id::MAP {
                return Err(input(format!(
                    "{} takes a MAP, not {}",
                    argument.name,
                    value.type_name()
                )));
            }
            let mut entries = Vec::new();
            for (key, value) in value.entries() {
                let values = texts(&value, argument.name)?;
                entries.extend(values.into_iter().map(|value| (key.text(), value)));
            }
            ArgumentValue::Map(entries)
        }
    };
    let EvtxArguments { arguments, caller } = arguments;
    arguments.set(argument, taken, caller)
}

/// Adds the files that a path, a glob, a folder, or a list of them names.
pub(crate) fn expand(
    paths: &mut EvtxPaths,
    arguments: &EvtxArguments,
    files: &Value,
    storage: &dyn Storage,
    interrupt: Interrupt<'_>,
) -> Result<(), ScanError> {
    let caller = &arguments.caller;
    if files.is_null() {
        return Err(input(format!("{caller} cannot take NULL as a path")));
    }
    match (files.type_id(), files.items()) {
        (id::VARCHAR, _) => paths.expand(arguments, &files.text(), storage, interrupt),
        (id::LIST, Some(items)) if items.is_empty() => Err(input(format!("{caller} needs at least one path"))),
        (id::LIST, Some(items)) => items
            .iter()
            .try_for_each(|item| expand(paths, arguments, item, storage, interrupt)),
        _ => {
            let name = files.type_name();
            Err(input(format!(
                "{caller} takes a path, a glob, or a list of them, not {name}"
            )))
        }
    }
}
