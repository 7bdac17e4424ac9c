//! The functions that the macros call, for many rows at a time.

use std::str::FromStr;

use evtx_codes::{
    Answer, Code, DecodedText, Event, LogonStep, Lookup, Machine, RolesReader, UserData, Writer, decoded_texts,
    remote_host,
};
use evtx_events::{
    AccountName, AccountNames, Columns, ComputerName, Evidence, LogRecord, LogonEvent, LogonSession, Moment, NameUse,
    Stamp, account_names, logon_sessions, machines, places,
};
use evtx_facts::{End, Fact, Logs, Starting, Told, facts, starts, told};
use evtx_format::Interrupt;

/// The length of NULL among packed texts.
const NULL: u32 = u32::MAX;

/// Packed texts: before each its length in bytes, in 4 bytes from the lowest; NULL is a length alone.
struct Packed<'b>(&'b [u8]);

impl<'b> Iterator for Packed<'b> {
    type Item = Option<&'b str>;

    fn next(&mut self) -> Option<Self::Item> {
        let (len, rest) = self.0.split_first_chunk()?;
        let len = u32::from_le_bytes(*len);
        let (text, rest) = if len == NULL {
            (None, rest)
        } else {
            let (bytes, rest) = rest.split_at_checked(len as usize)?;
            (Some(str::from_utf8(bytes).unwrap_or_default()), rest)
        };
        self.0 = rest;
        Some(text)
    }
}

/// Calls a function for rows of packed arguments, and returns its packed results.
///
/// - `code`, for a lookup (`name`, `names`, `meaning` or `text`), the name of a table and a code: what the table has for the
///   code. Names are a list as DuckDB writes it.
/// - `roles`, for a provider, an event ID, keys and values, a document of `user_data`, a computer and a SID: the struct of
///   `evtx_event_roles`. Keys and values are a text of [`items`].
/// - `user_data`, for a document: the struct of `evtx_user_data_fields`.
/// - `machine`, for a value, a computer and what wrote the value: as `evtx_other_machine`.
/// - `logon_step`, for a provider, an event ID, keys and values, and a SID: the struct of `evtx_logon_step`.
/// - `decoded`, for keys and values: the list of `evtx_decoded_texts`.
/// - `logon_sessions`, for events and 1 for all accounts: the list of `evtx_logon_sessions`, with times in nanoseconds. The events are a
///   text of [`items`]: of each its ID, its number, its time, its time by the clock as it was set last, its digest, 1 if another record claims
///   its place, its computer, and its step.
/// - `machines`, for names of computers: the list of `evtx_machines`. The names are a text of [`items`], of each the columns of that function.
/// - `account_names`, for uses of names: the list of `evtx_account_names`, with times in nanoseconds. The uses are a text of [`items`], of each
///   the columns of that function, the times with commas between.
/// - `record_stamp`, for the columns of a record, with its time in nanoseconds, and keys and values: the struct of `evtx_record_stamp`.
/// - `log_places`, for records: the list of `evtx_log_places`, with times in nanoseconds. They are a text of [`items`], of each the columns of that
///   function.
/// - `fact_row`, for a file, a record ID, a number for the log, and what `record_stamp` gets: the text of `evtx_fact_row`.
/// - `fact_list`, for rows, names of computers, ends of hours, uses of names, and files: the list of `evtx_fact_list`, with times in nanoseconds.
///   Each is a text of [`items`], of each the columns of that function.
/// - `start_list`, for events: the list of `evtx_start_list`. They are a text of [`items`], of each the columns of that function.
///
/// A struct is a text that DuckDB casts.
///
/// # Errors
/// A text if there is no such function or no such table.
pub(crate) fn call(name: &str, count: usize, input: &[u8]) -> Result<Vec<u8>, String> {
    let mut packed = Packed(input);
    let mut out = Vec::new();
    let mut row = Vec::new();
    let mut reader = RolesReader::default();
    loop {
        row.clear();
        row.extend(packed.by_ref().take(count));
        let result = match (name, &row[..]) {
            (_, []) => return Ok(out),
            ("code", &[Some(lookup), Some(table), Some(code)]) => code_of(lookup, table, code)?,
            ("roles", &[provider, event_id, fields, document, computer, user_sid]) => {
                let fields = items(fields.unwrap_or_default());
                let event = Event {
                    provider: provider.unwrap_or_default(),
                    event_id: event_id.and_then(|id| id.parse().ok()).unwrap_or_default(),
                    computer: computer.unwrap_or_default(),
                    user_sid,
                    ..Event::default()
                };
                Some(roles(&mut reader, event, &fields, document))
            }
            ("record_stamp", record) if record.len() == RECORD => record_stamp(record),
            ("log_places", &[records]) => log_places(&items(records.unwrap_or_default())),
            ("fact_row", &[file, record_id, log, ref record @ ..]) if record.len() == RECORD => {
                with_columns(record, |of| told(&mut reader, file, number(record_id), number(log), of))
            }
            ("logon_step", &[Some(provider), Some(event_id), fields, user_sid]) => {
                logon_step(provider, event_id, &items(fields.unwrap_or_default()), user_sid)
            }
            ("logon_sessions", &[Some(events), all_accounts]) => sessions_of(&items(events), all_accounts == Some("1")),
            ("machines", &[Some(names)]) => machines_of(&items(names)),
            ("account_names", &[Some(uses)]) => names_of(&items(uses)),
            ("fact_list", &[rows, computers, ends, uses, wrapped]) => {
                fact_list([rows, computers, ends, uses, wrapped].map(|rows| items(rows.unwrap_or_default())))
            }
            ("start_list", &[events]) => start_list(&items(events.unwrap_or_default())),
            ("decoded", &[fields]) => Some(decoded(&items(fields.unwrap_or_default()))),
            ("user_data", &[document]) => Some(user_data(&document.map(UserData::new).unwrap_or_default())),
            ("machine", &[Some(host), computer, Some(writer)]) => machine(host, computer, Writer::parsed(writer)?),
            ("account_names" | "code" | "logon_step" | "logon_sessions" | "machine" | "machines", _) => None,
            _ => return Err(format!("there is no function {name}")),
        };
        let len = result.as_ref().map_or(NULL, |text| text.len() as u32);
        out.extend(len.to_le_bytes());
        out.extend(result.unwrap_or_default().into_bytes());
    }
}

fn code_of(lookup: &str, table: &str, code: &str) -> Result<Option<String>, String> {
    let lookup = Lookup::named(lookup);
    let source = lookup.source(table)?;
    Ok(match lookup.answer(source, Code::Text(code)) {
        Answer::Null => None,
        Answer::Text(text) => Some(text.into_owned()),
        Answer::List(texts) => Some(list(texts.iter().map(|text| quoted(text)))),
    })
}

/// The items of a list that SQL has made a text: the length of each in bytes, a colon and its text, and a hyphen for NULL.
fn items(mut text: &str) -> Vec<Option<&str>> {
    let mut items = Vec::new();
    while !text.is_empty() {
        let (item, rest) = match text.strip_prefix('-') {
            Some(rest) => (None, rest),
            None => {
                let found = text
                    .split_once(':')
                    .and_then(|(len, rest)| rest.split_at_checked(len.parse().ok()?));
                let Some((item, rest)) = found else { break };
                (Some(item), rest)
            }
        };
        items.push(item);
        text = rest;
    }
    items
}

/// A struct of texts as DuckDB casts it.
fn structs<'t>(columns: impl IntoIterator<Item = (&'t str, String)>) -> String {
    let columns: Vec<_> = columns
        .into_iter()
        .map(|(name, value)| format!("'{name}': {value}"))
        .collect();
    format!("{{{}}}", columns.join(", "))
}

/// The pairs of items that have a key and a value.
fn pairs<'t>(items: &[Option<&'t str>]) -> impl Iterator<Item = (&'t str, &'t str)> {
    items.chunks_exact(2).filter_map(|pair| Some((pair[0]?, pair[1]?)))
}

/// A value in a nested value.
fn shown(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "NULL".to_owned(), |value| value.to_string())
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// Texts with their names.
fn named<'t, const N: usize>(names: [&'t str; N], texts: [Option<&str>; N]) -> impl Iterator<Item = (&'t str, String)> {
    names.into_iter().zip(texts.map(|text| shown(text.map(quoted))))
}

fn logon_step(provider: &str, event_id: &str, fields: &[Option<&str>], user_sid: Option<&str>) -> Option<String> {
    let fields: Vec<_> = pairs(fields).collect();
    let step = LogonStep::read(provider, event_id.parse().ok()?, &fields, user_sid)?;
    let numbers = [("step", step.step.to_string()), ("logon_type", shown(step.logon_type))];
    Some(structs(named(LogonStep::TEXTS, step.texts()).chain(numbers)))
}

/// How many items an event of a session has.
const EVENT_ITEMS: usize = 7 + LogonStep::TEXTS.len() + 2;

fn logon_event<'t>(items: &[Option<&'t str>]) -> Option<LogonEvent<'t>> {
    let &[
        event_id,
        number,
        time,
        log_time,
        digest,
        is_contested,
        computer,
        ref texts @ ..,
        step,
        logon_type,
    ] = items
    else {
        return None;
    };
    let step = step?.parse().ok()?;
    Some(LogonEvent {
        at: Moment {
            log_time: log_time.and_then(|time| time.parse().ok()),
            number: number.and_then(|number| number.parse().ok()),
            time: time.and_then(|time| time.parse().ok()),
        },
        event_id: event_id?.parse().ok()?,
        digest: digest?.parse().ok()?,
        is_contested: is_contested == Some("1"),
        computer,
        step: LogonStep::of_texts(
            texts.try_into().ok()?,
            step,
            logon_type.and_then(|kind| kind.parse().ok()),
        )?,
    })
}

fn sessions_of(items: &[Option<&str>], all_accounts: bool) -> Option<String> {
    let events: Vec<_> = items.chunks_exact(EVENT_ITEMS).filter_map(logon_event).collect();
    let sessions = logon_sessions(&events, all_accounts, Interrupt::NEVER).ok()?;
    Some(list(sessions.iter().map(session)))
}

fn session(session: &LogonSession<'_>) -> String {
    let connections = session.connections.as_ref().map(|connections| {
        list(connections.iter().map(|connection| {
            structs([
                ("connected", shown(connection.connected)),
                ("disconnected", shown(connection.disconnected)),
                ("remote_host", shown(connection.remote_host.as_deref().map(quoted))),
            ])
        }))
    });
    let others = [
        ("logon_time", shown(session.logon_time.and_then(|at| at.time))),
        ("logoff_time", shown(session.logoff_time.and_then(|at| at.time))),
        ("logon_log_time", shown(session.logon_time.and_then(|at| at.log_time))),
        ("logoff_log_time", shown(session.logoff_time.and_then(|at| at.log_time))),
        ("logon_number", shown(session.logon_time.and_then(|at| at.number))),
        ("logoff_number", shown(session.logoff_time.and_then(|at| at.number))),
        ("logon_type", shown(session.logon_type)),
        ("claims_own_name", session.claims_own_name.to_string()),
        ("connections", shown(connections)),
        (
            "other_logon_ids",
            list(session.other_logon_ids.iter().map(|id| quoted(id))),
        ),
        ("is_accepted", session.is_accepted.to_string()),
        ("is_contested", session.is_contested.to_string()),
    ];
    structs(named(LogonSession::TEXTS, session.texts()).chain(others))
}

/// How many items the name of a computer has.
const COMPUTER_ITEMS: usize = 13;

/// A number, if it is one.
fn number<T: FromStr>(text: Option<&str>) -> Option<T> {
    text?.parse().ok()
}

fn computer_name<'t>(items: &[Option<&'t str>; COMPUTER_ITEMS]) -> ComputerName<'t> {
    let &[
        file,
        computer,
        channel,
        records,
        first_number,
        last_number,
        first,
        last,
        least,
        most,
        before,
        after,
        own_sid,
    ] = items;
    ComputerName {
        file: file.unwrap_or_default(),
        computer: computer.unwrap_or_default(),
        channel,
        records: number(records).unwrap_or_default(),
        numbers: [number(first_number), number(last_number)],
        times: [number(first), number(last)],
        shifts: [number(least), number(most)],
        renamed: [before, after],
        own_sid,
    }
}

fn machines_of(items: &[Option<&str>]) -> Option<String> {
    let (names, _) = items.as_chunks::<COMPUTER_ITEMS>();
    let said: Vec<_> = names.iter().map(computer_name).collect();
    let machines = machines(&said, Interrupt::NEVER).ok()?;
    Some(list(machines.iter().map(|name| quoted(name))))
}

/// How many items the use of a name has.
const USE_ITEMS: usize = 9;

fn name_use<'t>(items: &[Option<&'t str>; USE_ITEMS]) -> NameUse<'t> {
    let &[computer, sid, domain, name, evidence, log, last_log, place, times] = items;
    NameUse {
        computer,
        sid: sid.unwrap_or_default(),
        domain,
        name: name.unwrap_or_default(),
        evidence: evidence.and_then(Evidence::named),
        logs: [number(log), number(last_log)],
        place: number(place),
        times: times
            .unwrap_or_default()
            .split(',')
            .filter_map(|time| time.parse().ok())
            .collect(),
    }
}

fn names_of(items: &[Option<&str>]) -> Option<String> {
    let (uses, _) = items.as_chunks::<USE_ITEMS>();
    let uses: Vec<_> = uses.iter().map(name_use).collect();
    let name = |name: &AccountName<'_>| {
        structs([
            ("computer", shown(name.computer.map(quoted))),
            ("user_sid", quoted(name.sid)),
            ("user_name", quoted(&name.name)),
            ("first_seen", shown(name.first_seen)),
            ("last_seen", shown(name.last_seen)),
            ("is_renamed", name.is_renamed.to_string()),
            ("name_source", quoted(name.source)),
            ("log", shown(name.log)),
            ("place", shown(name.place)),
        ])
    };
    let names = account_names(&uses, Interrupt::NEVER).ok()?;
    Some(list(names.iter().map(name)))
}

/// How many columns a record has.
const RECORD: usize = 9;

/// What `read` makes of the columns of a record.
fn with_columns<T>(record: &[Option<&str>], read: impl FnOnce(&Columns<'_>) -> T) -> T {
    let [
        computer,
        channel,
        provider,
        id,
        time,
        event_id,
        user_sid,
        data,
        user_data,
    ] = std::array::from_fn(|at| record.get(at).copied().flatten());
    let data = data.map(items);
    let pairs = data.as_ref().map(|data| {
        let pairs = data.chunks_exact(2);
        pairs.filter_map(|pair| Some((pair[0]?, pair[1]))).collect::<Vec<_>>()
    });
    read(&Columns {
        computer,
        channel,
        provider,
        event_record_id: number(id),
        time_created: number(time),
        event_id: number(event_id),
        user_sid,
        event_data: pairs.as_deref(),
        user_data,
    })
}

fn record_stamp(record: &[Option<&str>]) -> Option<String> {
    Some(with_columns(record, |of| {
        let Stamp {
            digest,
            change: [old, new],
            wake_time,
            is_late,
            renamed,
            own_sid,
        } = Stamp::read(of);
        let [old_host, new_host] = renamed.each_ref().map(|host| shown(host.as_deref().map(quoted)));
        structs([
            ("digest", digest.to_string()),
            ("old_time", shown(old)),
            ("new_time", shown(new)),
            ("wake_time", shown(wake_time)),
            ("is_late", is_late.to_string()),
            ("old_host", old_host),
            ("new_host", new_host),
            ("own_sid", shown(own_sid.map(quoted))),
        ])
    }))
}

fn log_record<'t>(
    &[digest, machine, channel, file, id, of_log, time, old, new, wake, late]: &[Option<&'t str>; 11],
) -> Option<LogRecord<'t>> {
    Some(LogRecord {
        digest: number(digest)?,
        machine,
        channel,
        file,
        record_id: number(id),
        number: number(of_log),
        time: number(time),
        change: [number(old), number(new)],
        wake_time: number(wake),
        is_late: late == Some("1"),
    })
}

fn log_places(items: &[Option<&str>]) -> Option<String> {
    let (records, _) = items.as_chunks::<11>();
    let records: Vec<_> = records.iter().filter_map(log_record).collect();
    let places = places(&records, Interrupt::NEVER).ok()?;
    Some(list(places.iter().map(|(digest, place)| {
        structs([
            ("digest", digest.to_string()),
            ("machine", shown(place.machine.map(quoted))),
            ("log_time", shown(place.log_time)),
            ("is_contested", place.is_contested.to_string()),
            ("is_woken", place.is_woken.to_string()),
        ])
    })))
}

fn hour_end<'t>(
    &[computer, channel, file, provider, record_id, of_log, event_id, time]: &[Option<&'t str>; 8],
) -> End<'t> {
    End {
        computer,
        channel,
        file,
        provider,
        record_id: number(record_id),
        event_record_id: number(of_log),
        event_id: number(event_id),
        time: number(time),
    }
}

fn fact_list([rows, computers, ends, uses, wrapped]: [Vec<Option<&str>>; 5]) -> Option<String> {
    let told: Vec<_> = rows
        .into_iter()
        .flatten()
        .filter_map(|row| Told::parse(row).ok())
        .collect();
    let (computers, _) = computers.as_chunks::<COMPUTER_ITEMS>();
    let computers: Vec<_> = computers.iter().map(computer_name).collect();
    let (ends, _) = ends.as_chunks::<8>();
    let ends: Vec<_> = ends.iter().map(hour_end).collect();
    let (uses, _) = uses.as_chunks::<USE_ITEMS>();
    let uses: Vec<_> = uses.iter().map(name_use).collect();
    let names = account_names(&uses, Interrupt::NEVER).ok()?;
    let wrapped: Vec<_> = wrapped.into_iter().flatten().collect();
    let logs = Logs {
        told: &told,
        computers: &computers,
        ends: &ends,
        names: &AccountNames::new(&names, Interrupt::NEVER).ok()?,
        wrapped: &wrapped,
    };
    let mut found = Vec::new();
    facts(&logs, |of| found.push(fact(of)), Interrupt::NEVER).ok()?;
    Some(list(found.into_iter()))
}

fn fact(fact: &Fact<'_>) -> String {
    let evidence = fact.evidence.iter().map(|record| {
        structs([
            ("filename", shown(record.file.map(quoted))),
            ("record_id", shown(record.record_id)),
            ("event_id", shown(record.event_id)),
            ("time", shown(record.time)),
        ])
    });
    let others = [
        ("first", shown(fact.first)),
        ("last", shown(fact.last)),
        ("events", fact.events.to_string()),
        ("evidence", list(evidence)),
        ("doubts", list(fact.doubts.iter().map(|doubt| quoted(doubt)))),
    ];
    structs(named(Fact::TEXTS, fact.texts()).chain(others))
}

fn start_list(items: &[Option<&str>]) -> Option<String> {
    let (events, _) = items.as_chunks::<5>();
    let events = events
        .iter()
        .map(|&[computer, place, log_time, event_id, process]| Starting {
            computer,
            number: number(place).unwrap_or_default(),
            log_time: number(log_time),
            event_id: number(event_id).unwrap_or_default(),
            process,
        });
    let starts = starts(events.collect(), Interrupt::NEVER).ok()?;
    let start = |&(computer, first): &(Option<&str>, u64)| {
        structs([("computer", shown(computer.map(quoted))), ("first", first.to_string())])
    };
    Some(list(starts.iter().map(start)))
}

fn roles(reader: &mut RolesReader, event: Event<'_>, fields: &[Option<&str>], document: Option<&str>) -> String {
    let document = document.map(UserData::new);
    let fields: Vec<_> = document.iter().flat_map(UserData::shown).chain(pairs(fields)).collect();
    let element = document.as_ref().and_then(|document| document.element.as_deref());
    let roles = reader.read(Event {
        fields: &fields,
        element: element.unwrap_or_default(),
        ..event
    });
    let texts = roles.texts().map(|(name, text)| (name, shown(text.map(quoted))));
    structs(
        texts.into_iter().chain(
            [
                ("claims_own_name", roles.claims_own_name),
                ("is_windows", roles.is_windows),
            ]
            .map(|(name, is)| (name, is.to_string())),
        ),
    )
}

fn machine(host: &str, computer: Option<&str>, writer: Writer) -> Option<String> {
    match remote_host(host, computer.unwrap_or_default(), writer) {
        Machine::Other(host) => Some(host.into_owned()),
        Machine::Own | Machine::Unknown => None,
    }
}

/// A text in a nested value, as DuckDB casts it back.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Entries as a map, as DuckDB casts it.
fn map_of(entries: Option<&[(String, Option<String>)]>) -> String {
    let Some(entries) = entries else {
        return "NULL".to_owned();
    };
    let entries: Vec<_> = entries
        .iter()
        .map(|(key, value)| format!("{}={}", quoted(key), shown(value.as_deref().map(quoted))))
        .collect();
    format!("{{{}}}", entries.join(", "))
}

fn user_data(document: &UserData) -> String {
    structs([
        ("element", shown(document.element.as_deref().map(quoted))),
        ("attributes", map_of(document.attributes.as_deref())),
        ("fields", map_of(document.fields.as_deref())),
    ])
}

fn decoded(fields: &[Option<&str>]) -> String {
    let found = pairs(fields).flat_map(|(field, value)| {
        let texts = decoded_texts(value).into_iter();
        texts.map(move |DecodedText { encoding, text }| {
            structs(named(
                ["field", "encoding", "text"],
                [Some(field), Some(&encoding), Some(&text)],
            ))
        })
    });
    list(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(texts: &[Option<&str>]) -> Vec<u8> {
        let mut out = Vec::new();
        for text in texts {
            out.extend(text.map_or(NULL, |text| text.len() as u32).to_le_bytes());
            out.extend(text.unwrap_or_default().as_bytes());
        }
        out
    }

    fn called(name: &str, count: usize, arguments: &[Option<&str>]) -> Vec<Option<String>> {
        let answer = call(name, count, &packed(arguments)).expect("a function");
        Packed(&answer).map(|text| text.map(str::to_owned)).collect()
    }

    #[test]
    fn a_row_has_a_result_each_and_null_has_none() {
        let rows = [
            Some("name"),
            Some("logon_type"),
            Some("3"),
            Some("name"),
            Some("logon_type"),
            None,
        ];
        assert_eq!(called("code", 3, &rows), [Some("Network".to_owned()), None]);
        let names = called(
            "code",
            3,
            &[Some("names"), Some("privilege"), Some("SeDebugPrivilege \"x\"")],
        );
        assert!(
            names[0].as_ref().is_none_or(|list| list.starts_with("[\"")),
            "{names:?}"
        );
        let error = call("code", 3, &packed(&[Some("name"), Some("nothing"), Some("3")])).unwrap_err();
        assert!(error.starts_with("unknown table of codes 'nothing'"), "{error}");
        assert_eq!(
            call("nothing", 1, &packed(&[None])).unwrap_err(),
            "there is no function nothing"
        );
        assert_eq!(call("code", 3, &[1, 2, 3]), Ok(Vec::new()));
    }

    #[test]
    fn lists_are_texts_with_lengths_in_bytes() {
        assert_eq!(items("3:a:b-1:-2:é"), [Some("a:b"), None, Some("-"), Some("é")]);
        for damaged in ["", "3:ab", "x", ":", "1:é"] {
            assert_eq!(items(damaged), [], "{damaged}");
        }
        let row = [Some("P"), Some("1"), Some("1:a2:=b1:c-"), None, None, Some("S-1-5-18")];
        let roles = called("roles", 6, &row).remove(0).expect("a struct");
        assert!(
            roles.contains("'user_sid': \"S-1-5-18\", 'remote_host': NULL"),
            "{roles}"
        );
        assert!(
            roles.ends_with("'details': \"a: =b\", 'claims_own_name': false, 'is_windows': false}"),
            "{roles}"
        );
    }

    #[test]
    fn encoded_texts_are_a_list() {
        let row = Some("1:a16:dwBoAG8AYQBtAGkA1:b1:x1:c-");
        let expected = r#"[{'field': "a", 'encoding': "base64", 'text': "whoami"}]"#;
        assert_eq!(called("decoded", 1, &[row]), [Some(expected.to_owned())]);
        assert_eq!(called("decoded", 1, &[None]), [Some("[]".to_owned())]);
    }

    #[test]
    fn records_are_placed_in_time() {
        let item = |text: &str| {
            if text.is_empty() {
                "-".to_owned()
            } else {
                format!("{}:{text}", text.len())
            }
        };
        let record = |digest, id, time, old, new| {
            [digest, "pc", "System", "x", id, id, time, old, new, "", "0"]
                .map(item)
                .concat()
        };
        let hour = 3_600_000_000_000_i64;
        let [one, two] = [hour, 2 * hour].map(|time| time.to_string());
        let records = record("7", "1", &two, "", "") + &record("8", "2", &one, &two, &one);
        let places = called("log_places", 1, &[Some(&records), None]);
        let place = |digest| {
            format!(
                "{{'digest': {digest}, 'machine': \"pc\", 'log_time': {hour}, 'is_contested': false, 'is_woken': false}}"
            )
        };
        let found = places[0].as_deref().unwrap_or_default();
        assert!(found.contains(&place(7)) && found.contains(&place(8)), "{found}");
        assert_eq!(places[1].as_deref(), Some("[]"));
        let data = ["OldTime", "2024-01-01T10:00:00Z", "NewTime", "2024-01-01T09:00:00Z"]
            .map(item)
            .concat();
        let row = [
            None,
            None,
            None,
            Some("1"),
            Some("5"),
            Some("1"),
            None,
            Some(&*data),
            None,
        ];
        let stamp = called("record_stamp", 9, &row).remove(0).expect("a struct");
        assert!(
            stamp.contains("'old_time': 1704103200000000000, 'new_time': 1704099600000000000"),
            "{stamp}"
        );
        let rows = [&[Some("x"), Some("1"), None], &row[..]].concat();
        let told = called("fact_row", 12, &rows).remove(0).expect("a row");
        let facts = called("fact_list", 5, &[Some(&*item(&told)), None, None, None, None]);
        assert_eq!(facts, [Some("[]".to_owned())]);
    }

    #[test]
    fn events_become_sessions() {
        let pairs = "13:TargetLogonId4:0xA114:TargetUserName4:anna9:LogonType2:10";
        let step = called(
            "logon_step",
            4,
            &[
                Some("Microsoft-Windows-Security-Auditing"),
                Some("4624"),
                Some(pairs),
                None,
            ],
        );
        assert!(
            step[0]
                .as_ref()
                .is_some_and(|step| step.contains("'session': \"0xa1\", 'account': \"anna\"")),
            "{step:?}"
        );
        assert_eq!(
            called("logon_step", 4, &[Some("x"), Some("4624"), Some(pairs), None]),
            [None]
        );
        let item = |text: &str| {
            if text.is_empty() {
                "-".to_owned()
            } else {
                format!("{}:{text}", text.len())
            }
        };
        let event = |event_id, time, act| {
            let items = [
                event_id, "1", time, time, "7", "0", "pc", "windows", act, "0xa1", "anna", "D", "", "", "", "", "", "",
                "2", "10",
            ];
            items.map(item).concat()
        };
        let events = event("4624", "5", "logon") + &event("4634", "9", "logoff") + &event("4634", "9", "logoff");
        let sessions = called("logon_sessions", 2, &[Some(&events), None])
            .remove(0)
            .expect("a list");
        let connections = "'connections': [{'connected': 5, 'disconnected': 9, 'remote_host': NULL}]";
        for part in [
            "[{'kind': \"remote desktop\", 'computer': \"pc\", 'user_name': \"D\\\\anna\"",
            "'logon_time': 5, 'logoff_time': 9",
            connections,
        ] {
            assert!(sessions.contains(part), "{sessions}");
        }
        assert_eq!(sessions.matches("'kind'").count(), 1);
        assert_eq!(
            called("logon_sessions", 2, &[Some("1:x"), None]),
            [Some("[]".to_owned())]
        );
    }

    #[test]
    fn names_of_computers_and_accounts_have_lists() {
        let item = |text: &str| {
            if text.is_empty() {
                "-".to_owned()
            } else {
                format!("{}:{text}", text.len())
            }
        };
        let log = |computer, first, last| {
            [
                "x/1", computer, "System", "2", first, last, first, last, "0", "0", "", "", "",
            ]
            .map(item)
            .concat()
        };
        let names = log("a", "1", "2") + &log("b", "3", "4");
        assert_eq!(
            called("machines", 1, &[Some(&names), None]),
            [Some("[\"b\", \"b\"]".to_owned()), None]
        );
        let uses = ["pc", "S-1-5-21-1", "D", "anna", "created", "7", "7", "3", "9,5"]
            .map(item)
            .concat();
        let expected = r#"[{'computer': "pc", 'user_sid': "S-1-5-21-1", 'user_name': "D\\anna", 'first_seen': 5, 'last_seen': 9, 'is_renamed': false, 'name_source': "created", 'log': 7, 'place': 3}]"#;
        assert_eq!(
            called("account_names", 1, &[Some(&uses), None]),
            [Some(expected.to_owned()), None]
        );
    }

    #[test]
    fn user_data_is_one_element_with_attributes_or_all() {
        let json = r##"{"X": {"#attributes": {"xmlns": "u"}, "A": "q\"\\", "B": null, "C": {"d": 1}}}"##;
        let fields = r##"{"#attributes"="{\"xmlns\":\"u\"}", "A"="q\"\\", "B"=NULL, "C"="{\"d\":1}"}"##;
        let expected = format!(r#"{{'element': "X", 'attributes': {{"xmlns"="u"}}, 'fields': {fields}}}"#);
        assert_eq!(called("user_data", 1, &[Some(json)]), [Some(expected)]);
        let two = r#"{'element': "A", 'attributes': NULL, 'fields': {"A"="1", "B"="2"}}"#;
        let rows = [Some(r#"{"A": "1", "B": "2"}"#), Some("[1]"), Some("{"), None];
        let nothing = "{'element': NULL, 'attributes': NULL, 'fields': NULL}";
        let expected = [two, nothing, nothing, nothing].map(|text| Some(text.to_owned()));
        assert_eq!(called("user_data", 1, &rows), expected);
        let machine = |row: &[Option<&str>]| called("machine", 3, row).remove(0);
        assert_eq!(
            machine(&[Some("FS01\\IPC$"), None, Some("windows")]).as_deref(),
            Some("FS01")
        );
        assert_eq!(machine(&[Some("PC"), Some("pc"), Some("windows")]), None);
    }
}
