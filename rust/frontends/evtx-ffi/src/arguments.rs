//! The table functions over files and their arguments, which `COPY ... FROM` takes too.

use std::convert::Infallible;

use evtx_query::{Arguments, Query};
use evtx_scan::{Argument, ArgumentKind, ArgumentValue, ScanError};
use serde_json::{Map, Value};

use crate::boundary::{
    EvtxError, EvtxErrorKind, EvtxFailure, EvtxFunction, EvtxOwned, EvtxSlice, EvtxText, entry, literal, produce,
    release, required,
};
use crate::macros::too_many;
use crate::values::{EvtxValue, SqlValue};

/// The format of logs in COPY, which is also the extension of its files.
pub const FORMAT: &str = "evtx";

/// An argument of a function.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxArgument {
    /// Its name.
    pub name: EvtxText<'static>,
    /// The text of its default value; null if the default is NULL.
    pub default_text: EvtxText<'static>,
    /// The name of their type in SQL; null if they can have any.
    pub type_name: EvtxText<'static>,
}

/// A table function over files.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxScanFunction {
    /// Its documentation.
    pub function: EvtxFunction,
    /// Its number, for [`evtx_arguments_new`].
    pub number: usize,
    /// The name of its first argument, the files; null if it reads none.
    pub files: EvtxText<'static>,
    /// Its other arguments, sorted by name.
    pub arguments: EvtxSlice<'static, EvtxArgument>,
}

/// The name of the SQL type of an argument; `None` if it can have any.
pub fn argument_type(kind: ArgumentKind) -> Option<&'static str> {
    match kind {
        ArgumentKind::Flag => Some("BOOLEAN"),
        ArgumentKind::Integer => Some("BIGINT"),
        ArgumentKind::Text => Some("VARCHAR"),
        // A value, or a list of them.
        ArgumentKind::List | ArgumentKind::Map => None,
    }
}

/// All table functions. The first reads logs.
pub(crate) fn scan_functions() -> EvtxSlice<'static, EvtxScanFunction> {
    let argument = |argument: &'static Argument| EvtxArgument {
        name: EvtxText::of(argument.name),
        default_text: EvtxText::of_option(argument.default),
        type_name: EvtxText::of_option(argument_type(argument.kind)),
    };
    let functions = Query::ALL.iter().enumerate().map(|(number, query)| {
        let [name, description, example] = about(*query);
        EvtxScanFunction {
            function: EvtxFunction::new(name, description, example),
            number,
            files: EvtxText::of_option(files_of(*query)),
            arguments: EvtxSlice::leaked(query.arguments().map(argument).collect::<Vec<_>>()),
        }
    });
    EvtxSlice::leaked(functions.collect::<Vec<_>>())
}

/// The name of the parameter for the files of a query, if it has files. It is the only one that goes by position.
fn files_of(query: Query) -> Option<&'static str> {
    let name = if query == Query::Rules { "rules" } else { "files" };
    query.files().map(|_| name)
}

/// The name of the table function of a query, its description and an example.
pub fn about(query: Query) -> [&'static str; 3] {
    match query {
        Query::Records => [
            "read_evtx",
            "Reads Windows event logs (EVTX), a row per record. Takes a path, a glob, a folder, or a list of them. With \
             event_id, it reads the records of these events only, and has a column for each of their fields.",
            "SELECT event_id, count(*) FROM read_evtx('logs/**/*.evtx') GROUP BY ALL ORDER BY 2 DESC",
        ],
        Query::Matches => [
            "evtx_sigma",
            "Matches Sigma rules against Windows event logs (EVTX): a row per event and matching rule, with the columns \
             of read_evtx. Both files and rules take a path, a glob, a folder, or a list of them.",
            "SELECT rule_level, rule_title, count(*) FROM evtx_sigma('logs/**/*.evtx', rules := 'sigma/rules/windows') \
             GROUP BY ALL ORDER BY ALL DESC",
        ],
        Query::Rules => [
            "evtx_sigma_rules",
            "Lists Sigma rules: a row per rule, with the events that it applies to, or the reason why it is not used.",
            "SELECT rule_file, error FROM evtx_sigma_rules('sigma/rules/**/*.yml') WHERE error IS NOT NULL",
        ],
        Query::Fields => [
            "evtx_schema",
            "Lists the events in Windows event logs (EVTX): a row per field of each provider, event ID, version and \
             channel, with its type in the template, the type of its column in read_evtx(..., event_id := ...), and the \
             number of records.",
            "SELECT DISTINCT field_name, column_type FROM evtx_schema('logs/**/*.evtx') WHERE event_id = 4624",
        ],
        Query::Files => [
            "evtx_file_metadata",
            "Describes each Windows event log (EVTX), from its header and its contents: flags, stored and computed \
             checksums, chunks, records, the range of record IDs and the IDs missing in it, the time range, damage.",
            "SELECT filename, records, missing_records, is_dirty FROM evtx_file_metadata('logs/**/*.evtx')",
        ],
        Query::Chunks => [
            "evtx_chunk_metadata",
            "Describes each chunk of Windows event logs (EVTX), from its header and its contents: record numbers and \
             IDs, free space, stored and computed checksums, templates, the time range, damage.",
            "SELECT chunk_index, first_record_id, last_record_id, records, error FROM \
             evtx_chunk_metadata('Security.evtx')",
        ],
        Query::Messages => [
            "evtx_message_catalog",
            "Lists the messages of event providers, a row per message: of their binaries (.dll, .exe, .sys, .mui, .mun) with the \
             hives SOFTWARE and SYSTEM of a registry, if there are any. COPY ... TO 'windows.messages' (FORMAT evtx_messages) \
             makes a catalog of them.",
            "COPY (FROM evtx_message_catalog('C:/Windows/System32')) TO 'windows.messages' (FORMAT evtx_messages)",
        ],
        Query::Exports => [
            "read_evtx_xml",
            "Reads events of Windows that were exported as XML, by Event Viewer, wevtutil, Get-WinEvent or evtx_dump, a row \
             per event, with the columns of read_evtx. Takes a path, a glob, a folder, or a list of them.",
            "SELECT time_created, provider, event_id, event_data FROM read_evtx_xml('exports/*.xml')",
        ],
        Query::Sources => [
            "evtx_from",
            "Reads events that other tools exported as JSON or CSV, a row per event, with the columns of read_evtx. The first \
             rows of a file show its source. Takes a path, a glob, a folder, or a list of them.",
            "SELECT * FROM evtx_from('winlogbeat-*.ndjson') WHERE event_id = 4624",
        ],
        Query::DeclaredEvents => [
            "evtx_event_catalog",
            "Lists the events that Sysmon and the providers of Windows declare, whether or not a log contains them: a \
             row per field of each provider, event ID and version, with its type in templates and the type of its \
             column in read_evtx(..., event_id := ...).",
            "SELECT version, list(field_name ORDER BY field_position) FROM evtx_event_catalog() WHERE provider = \
             'Microsoft-Windows-Security-Auditing' AND event_id = 4624 GROUP BY ALL",
        ],
    }
}

/// The arguments of a call, besides its files.
pub struct EvtxArguments {
    /// Their values.
    pub arguments: Arguments,
    /// The function as errors name it.
    pub caller: String,
    /// The texts of the values that were set.
    pub(crate) texts: String,
}

impl EvtxArguments {
    /// The arguments of a query, with their defaults. `caller` is the name of the function in errors.
    pub fn new(query: Query, caller: String) -> Self {
        EvtxArguments {
            arguments: Arguments::new(query),
            caller,
            texts: String::new(),
        }
    }

    /// The arguments of `COPY ... FROM`, with their defaults.
    pub fn of_copy() -> Self {
        EvtxArguments::new(Query::Records, format!("COPY FROM (FORMAT {FORMAT})"))
    }

    /// Sets the argument with a name.
    ///
    /// # Errors
    /// If there is no such argument, or if it does not take the value.
    pub fn set(&mut self, name: &str, value: &SqlValue) -> Result<(), EvtxError> {
        let EvtxArguments { arguments, caller, .. } = self;
        self.texts.extend(["\n", &value.text]);
        let argument = arguments.query().argument(name).ok_or_else(|| {
            let why = format!("{caller}: there is no option {name}");
            EvtxError::new(EvtxErrorKind::Binder, why)
        })?;
        Ok(arguments.set(argument, value.of(argument)?, caller)?)
    }

    /// The error for a call with more than one argument by position, which have these values.
    fn too_many(&self, values: EvtxSlice<'_, EvtxValue<'_>>) -> Result<Infallible, EvtxError> {
        let files = files_of(self.arguments.query()).unwrap_or_default();
        let [before, after] = too_many(&self.caller, &[files]);
        let (mut values, mut texts) = (values.get().iter(), Vec::new());
        while let Some(value) = SqlValue::next(&mut values)? {
            texts.extend(value.texts(&self.caller)?.iter().map(|text| literal(text)));
        }
        Err(format!("{before}{}{after}", texts.join(", ")).into())
    }

    /// The arguments of a query with these values. Those that are null keep their defaults.
    ///
    /// # Errors
    /// [`ScanError::Input`] if there is no such argument, or if it does not take its value.
    pub fn of_json(query: Query, caller: &str, values: Map<String, Value>) -> Result<Self, ScanError> {
        let mut call = EvtxArguments::new(query, caller.to_owned());
        for (name, value) in values.into_iter().filter(|(_, value)| !value.is_null()) {
            let argument = query.argument(&name);
            let argument = argument.ok_or_else(|| ScanError::Input(format!("{caller} has no argument {name}")))?;
            let wrong = || ScanError::Input(format!("{} cannot be {value}", argument.name));
            let value = match argument.kind {
                ArgumentKind::Flag => ArgumentValue::Flag(value.as_bool().ok_or_else(wrong)?),
                ArgumentKind::Integer => ArgumentValue::Integer(value.as_i64().ok_or_else(wrong)?),
                ArgumentKind::Text => ArgumentValue::Text(texts(&value).concat()),
                ArgumentKind::List => ArgumentValue::List(texts(&value)),
                ArgumentKind::Map => {
                    let no_map = || format!("{caller} cannot take this as {name}: it needs a map");
                    let pairs = value.as_object().ok_or_else(|| ScanError::Input(no_map()))?.iter();
                    let pairs =
                        pairs.flat_map(|(key, value)| texts(value).into_iter().map(move |text| (key.clone(), text)));
                    ArgumentValue::Map(pairs.collect())
                }
            };
            call.arguments.set(argument, value, caller)?;
        }
        Ok(call)
    }
}

/// The texts of a value, or of the values in a list.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.clone()],
        other => vec![other.to_string()],
    }
}

/// Makes the arguments of the function with this number, with their defaults. `caller` is its name in errors.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_arguments_new(
    function: usize,
    caller: EvtxText<'_>,
    out: Option<&mut EvtxOwned<EvtxArguments>>,
) -> EvtxFailure {
    produce(out, || {
        let query = Query::ALL.get(function).ok_or("there is no such function")?;
        Ok(Some(EvtxArguments::new(*query, caller.text()?.to_owned()).into()))
    })
}

/// Makes the arguments of `COPY ... FROM`, with their defaults.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_arguments_of_copy(out: Option<&mut EvtxOwned<EvtxArguments>>) -> EvtxFailure {
    produce(out, || Ok(Some(EvtxArguments::of_copy().into())))
}

/// Sets the argument with this name to a value. Fails if there is no such argument, or if it does not take the value.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_arguments_set(
    arguments: Option<&mut EvtxArguments>,
    name: EvtxText<'_>,
    value: EvtxSlice<'_, EvtxValue<'_>>,
) -> EvtxFailure {
    entry(|| {
        let value = SqlValue::next(&mut value.get().iter())?;
        required(arguments)?.set(name.text()?, &required(value)?)
    })
}

/// Fails, because a call has more than one argument by position. Their texts are in the error.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_arguments_too_many(
    arguments: Option<&EvtxArguments>,
    values: EvtxSlice<'_, EvtxValue<'_>>,
) -> EvtxFailure {
    entry(|| match required(arguments)?.too_many(values)? {})
}

/// Frees arguments.
#[unsafe(no_mangle)]
pub extern "C" fn evtx_arguments_free(arguments: EvtxOwned<EvtxArguments>) {
    release(|| drop(arguments));
}
