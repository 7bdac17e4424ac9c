//! The arguments of a call: their one list, and what a call makes of them.

use std::fmt;
use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;

use evtx_arrow::{EventField, Events, Expression, Options, Predicate, Scan, Table};
use evtx_detect::{Rules, table_of_matches};
use evtx_extras::{EXTRAS, Extras, reference};
use evtx_format::Interrupt;
use evtx_reports::{JsonTypes, RuleRow};
use evtx_sigma::{Level, Placeholders, Status};

use crate::catalogs::{self, is_catalog};
use crate::file_kind::FileKind;
use crate::folders::{FolderColumn, FolderPredicate, folder_columns};
use crate::messages::MessageFinder;
use crate::rules::{RuleArguments, named};
use crate::sample::{SampleSize, read_sample};
use crate::scan::FileScan;
use crate::scan_path::ScanPath;
use crate::storage::{ScanError, Storage};

/// What a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// A row per record.
    Records,
    /// A row per record and rule that it matches.
    Matches,
    /// A row per rule.
    Rules,
    /// A row per field of each kind of events.
    Fields,
    /// A row per file.
    Files,
    /// A row per chunk.
    Chunks,
    /// A row per message of an event provider.
    Messages,
    /// A row per event of an export as XML.
    Exports,
    /// A row per line of an export as JSON.
    Lines,
    /// A row per field of each declared event. It reads no files.
    DeclaredEvents,
}

impl Query {
    /// All queries.
    pub const ALL: [Query; 10] = [
        Query::Records,
        Query::Matches,
        Query::Rules,
        Query::Fields,
        Query::Files,
        Query::Chunks,
        Query::Messages,
        Query::Exports,
        Query::Lines,
        Query::DeclaredEvents,
    ];

    /// What files it reads, if any.
    pub fn kind(self) -> Option<FileKind> {
        match self {
            Query::Rules => Some(FileKind::Rules),
            Query::Messages => Some(FileKind::Providers),
            Query::Exports => Some(FileKind::Exports),
            Query::Lines => Some(FileKind::Lines),
            Query::DeclaredEvents => None,
            Query::Files => Some(FileKind::Evidence),
            Query::Records | Query::Matches | Query::Fields | Query::Chunks => Some(FileKind::Logs),
        }
    }

    /// Its arguments besides the files, sorted by name.
    pub fn arguments(self) -> impl Iterator<Item = &'static Argument> {
        ARGUMENTS.iter().filter(move |argument| argument.of.contains(&self))
    }
}

// Which queries take an argument.
const OF_LOGS: &[Query] = &[Query::Records, Query::Matches];
const OF_EVENTS: &[Query] = &[Query::Records, Query::Matches, Query::Exports];
const OF_MATCHES: &[Query] = &[Query::Matches];
const OF_RULES: &[Query] = &[Query::Matches, Query::Rules];
// All but the last, which reads none.
const OF_FILES: &[Query] = Query::ALL.split_at(Query::ALL.len() - 1).0;
const OF_LINES: &[Query] = &[Query::Lines];

/// What an argument takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentKind {
    /// True or false.
    Flag,
    /// A whole number.
    Integer,
    /// Text.
    Text,
    /// A value, or a list of them, each by its text.
    List,
    /// A map from texts to a value or a list of them.
    Map,
}

/// A value for an argument.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // the names say it
pub enum ArgumentValue {
    Null,
    Flag(bool),
    Integer(i64),
    Text(String),
    List(Vec<String>),
    /// Each value with its key, which comes again for each value of a list.
    Map(Vec<(String, String)>),
}

/// An argument besides the files.
#[derive(Debug)]
pub struct Argument {
    /// Its name, in small letters.
    pub name: &'static str,
    /// The text of its value if it is not given; `None` for NULL, which then can be given, too.
    pub default: Option<&'static str>,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// What it takes.
    pub kind: ArgumentKind,
    of: &'static [Query],
    set: Set,
}

/// How a value is taken.
#[derive(Debug)]
enum Set {
    Flag(fn(&mut Arguments) -> &mut bool),
    Integer(Setter<i64>),
    Text(Setter<String>),
    List(Setter<Vec<String>>),
    Map(Setter<Vec<(String, String)>>),
}

type Setter<T> = fn(&mut Arguments, Option<T>) -> Result<(), String>;

/// Where Event Viewer saves the messages of a log, as in the list.
const MESSAGES: &str = "LocaleMetaData/{log}_*.[Mm][Tt][Aa]";

/// Declares [`ARGUMENTS`]: what an argument does, its name and default, the queries that take it, and how.
macro_rules! arguments {
    ($($(#[doc = $about:literal])* $name:ident = $default:expr, $of:ident: $kind:ident($set:expr);)*) => {
        /// Every argument, in the order of their names.
        pub const ARGUMENTS: &[Argument] = &[$(Argument {
            name: stringify!($name),
            default: $default,
            about: concat!($($about),*).trim_ascii_start(),
            kind: ArgumentKind::$kind,
            of: $of,
            set: Set::$kind($set),
        }),*];
    };
}

arguments! {
    /// Only the records of this event, or of a list of them, with a column for each of their fields.
    event_id = None, OF_EVENTS: List(|all, texts| put(&mut all.event_ids, texts.as_deref().map(event_ids).transpose()));
    /// The rules to leave out: an ID, the path of a text file with an ID in each line, or a list of these.
    exclude = None, OF_MATCHES: List(|all, ids| put(&mut all.of_rules.exclude, Ok(ids.unwrap_or_default())));
    /// Adds a column `fields`: all values of the event, each with its name.
    fields = Some("false"), OF_EVENTS: Flag(|all| &mut all.options.fields);
    /// Folders named `key=value` are columns.
    hive_partitioning = Some("false"), OF_EVENTS: Flag(|all| &mut all.hive_partitioning);
    /// Adds a column `insertions`: the values that fill the message, as a list.
    insertions = Some("false"), OF_EVENTS: Flag(|all| &mut all.extras.insertions);
    /// Adds a column `json`: the whole event as JSON.
    json = Some("false"), OF_EVENTS: Flag(|all| &mut all.options.json);
    /// The path of a text file with other levels for some rules: in each line an ID, a comma and a level.
    level_tuning = None, OF_RULES: Text(|all, path| put(&mut all.of_rules.level_tuning, Ok(path)));
    /// Adds `chunk_index` and `record_offset`: where in the file a record stands.
    location = Some("false"), OF_LOGS: Flag(|all| &mut all.options.location);
    /// The path of a table of log sources of your own. Its entries replace those of the same log sources in the built-in
    /// table.
    logsources = None, OF_RULES: Text(|all, path| put(&mut all.of_rules.log_sources, Ok(path)));
    /// Adds a column `message_source`: where the message is from.
    message_source = Some("false"), OF_EVENTS: Flag(|all| &mut all.extras.message_source);
    /// The path of a catalog of messages. Or where the messages that were saved with a log are: a glob relative to its
    /// folder, in which `{log}` is the log's name.
    messages = Some(MESSAGES), OF_EVENTS: Text(|all, text| put(&mut all.messages, place_of_messages(text)));
    /// The lowest level of the rules that are wanted.
    min_level = None, OF_MATCHES: Text(|all, name| {
        put(&mut all.of_rules.min_level, name.map(|name| named("min_level", &Level::ALL, &name)).transpose())
    });
    /// How to handle damage: return a row with `error` set (`report`), no row (`skip`), or fail the query (`fail`).
    on_error = Some("report"), OF_EVENTS: Text(|all, text| {
        put(&mut all.options.on_error, text.unwrap_or_default().parse())
    });
    /// The password of encrypted entries of ZIP and 7z archives.
    password = None, OF_FILES: Text(|all, text| put(&mut all.password, Ok(text.map(|text| Password(text.into())))));
    /// The values of placeholders in rules (`expand`): a map from each name to a value or a list of them.
    placeholders = None, OF_RULES: Map(|all, values| {
        let mut known = Placeholders::new();
        for (name, value) in values.unwrap_or_default() {
            known.entry(name).or_default().push(value);
        }
        put(&mut all.of_rules.placeholders, Ok(known))
    });
    /// Only the records of this provider, or of a list of them. The case of ASCII letters does not matter.
    provider = None, OF_EVENTS: List(|all, names| put(&mut all.providers, Ok(names)));
    /// Adds a column `record`: each record as it is stored, to write it to another log.
    record = Some("false"), OF_EVENTS: Flag(|all| &mut all.extras.record);
    /// Adds records in free space and in damaged chunks, stray chunks, and the chunks and records in files that are not logs.
    recover = Some("false"), OF_LOGS: Flag(|all| &mut all.options.recover);
    /// The rules: a path, a glob, a folder, an archive, or a list of them.
    rules = None, OF_MATCHES: List(|all, paths| put(&mut all.of_rules.rules, Ok(paths)));
    /// With `event_id`: how many files are read to find the fields, -1 for all. If it is not given, all local ones.
    sample_size = None, OF_EVENTS: Integer(|all, size| put(&mut all.sample_size, sample_size(size)));
    /// The status of the rules that are wanted, or a list of them.
    status = None, OF_MATCHES: List(|all, names| {
        let statuses = names.map(|names| names.iter().map(|name| named("status", &Status::ALL, name)).collect());
        put(&mut all.of_rules.statuses, statuses.transpose())
    });
    /// Adds a column `text`: all values of the event, a line for each, to search them at once.
    text = Some("false"), OF_EVENTS: Flag(|all| &mut all.options.text);
    /// The types that values should have, as `from_json` takes them. A value of another type is in `error`.
    types = None, OF_LINES: Text(|all, text| put(&mut all.types, json_types(text)));
    /// Compares checksums; one that does not match is damage.
    verify = Some("false"), OF_LOGS: Flag(|all| &mut all.options.verify);
    /// Adds a column `xml`: the whole event as XML.
    xml = Some("false"), OF_EVENTS: Flag(|all| &mut all.options.xml);
}

fn put<T>(place: &mut T, value: Result<T, String>) -> Result<(), String> {
    *place = value?;
    Ok(())
}

fn place_of_messages(text: Option<String>) -> Result<String, String> {
    let text = text.unwrap_or_default();
    if ["true", "false"].iter().any(|flag| text.eq_ignore_ascii_case(flag)) {
        return Err(format!(
            "messages takes the path of a catalog, not {text}. The column message is always there, and has the messages \
             that were saved with a log"
        ));
    }
    Ok(text)
}

fn json_types(text: Option<String>) -> Result<JsonTypes, String> {
    let types = text.map_or_else(|| Ok(JsonTypes::default()), |text| text.parse());
    types.map_err(|why| format!("types must be JSON with the names of types: {why}"))
}

fn sample_size(size: Option<i64>) -> Result<SampleSize, String> {
    match size {
        None => Ok(SampleSize::Local),
        Some(-1) => Ok(SampleSize::All),
        Some(size) => usize::try_from(size)
            .map(SampleSize::Files)
            .map_err(|_| format!("sample_size must be a number of files, or -1 for all, not {size}")),
    }
}

impl Argument {
    /// The argument of a name, whose case does not matter, if a query has it.
    pub fn find(query: Query, name: &str) -> Option<&'static Argument> {
        query
            .arguments()
            .find(|argument| argument.name.eq_ignore_ascii_case(name))
    }
}

/// The arguments of a call, besides its files.
#[derive(Debug, Clone)]
pub struct Arguments {
    query: Query,
    options: Options,
    extras: Extras,
    event_ids: Option<Vec<u32>>,
    providers: Option<Vec<String>>,
    sample_size: SampleSize,
    /// The fields of the events, if they were found before.
    known_fields: Option<Vec<EventField>>,
    messages: String,
    /// The same of the session, if the call has its default.
    session_messages: Option<String>,
    hive_partitioning: bool,
    password: Option<Password>,
    types: JsonTypes,
    of_rules: RuleArguments,
}

impl Arguments {
    /// The arguments of a query, with their defaults.
    pub fn new(query: Query) -> Self {
        Arguments {
            query,
            options: Options::default(),
            extras: Extras::default(),
            event_ids: None,
            providers: None,
            sample_size: SampleSize::Local,
            known_fields: None,
            messages: MESSAGES.to_owned(),
            session_messages: None,
            hive_partitioning: false,
            password: None,
            types: JsonTypes::default(),
            of_rules: RuleArguments::default(),
        }
    }
}

/// A password. It is not shown.
#[derive(Clone)]
pub struct Password(Arc<str>);

impl Password {
    /// Its text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("...")
    }
}

/// The most event IDs of a call: as many as Windows has, whose IDs have 16 bits.
const MAX_EVENT_IDS: usize = 1 << 16;

fn event_ids(texts: &[String]) -> Result<Vec<u32>, String> {
    if texts.len() > MAX_EVENT_IDS {
        return Err(format!("event_id takes at most {MAX_EVENT_IDS} IDs"));
    }
    let parse = |text: &String| {
        let text = text.trim();
        // A number of a type with fractions can come as 4624.0.
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let is_whole = fraction.bytes().all(|digit| digit == b'0');
        let number = whole.parse().ok().filter(|_| is_whole);
        number.ok_or_else(|| {
            let most = u32::MAX;
            format!("event_id must be a whole number from 0 to {most}, or a list of them, not {text}")
        })
    };
    texts.iter().map(parse).collect()
}

impl Arguments {
    /// The query.
    pub fn query(&self) -> Query {
        self.query
    }

    /// Takes a value for an argument. Errors name `function` as the caller.
    ///
    /// # Errors
    /// [`ScanError::Input`] if the argument does not take it.
    pub fn set(&mut self, argument: &Argument, value: ArgumentValue, function: &str) -> Result<(), ScanError> {
        use ArgumentValue::{Flag, Integer, List, Map, Null, Text};
        let name = argument.name;
        let input = |text: String| Err(ScanError::Input(text));
        let taken = match (&argument.set, value) {
            (_, Null) if argument.default.is_some() => return input(format!("{function} cannot take NULL as {name}")),
            (Set::Flag(flag), Flag(value)) => put(flag(self), Ok(value)),
            (Set::Integer(set), Null) => set(self, None),
            (Set::Integer(set), Integer(number)) => set(self, Some(number)),
            (Set::Text(set), Null) => set(self, None),
            (Set::Text(set), Text(text)) => set(self, Some(text)),
            (Set::List(set), Null) => set(self, None),
            (Set::List(set), List(texts)) => set(self, Some(texts)),
            (Set::Map(set), Null) => set(self, None),
            (Set::Map(set), Map(values)) => set(self, Some(values)),
            _ => return input(format!("{function} cannot take this as {name}")),
        };
        taken.or_else(|why| input(format!("{function}: {why}")))
    }

    /// Sets the option that adds a column, if the option does no more than that.
    pub fn need(&mut self, column: &str) {
        let mut columns = reference().into_iter();
        let found = columns.find(|known| known.field.name().eq_ignore_ascii_case(column));
        let option = found.and_then(|known| known.option).filter(|&name| name != "recover");
        if let Some(Set::Flag(flag)) = option
            .and_then(|name| Argument::find(self.query, name))
            .map(|argument| &argument.set)
        {
            *flag(self) = true;
        }
    }

    /// Sets the argument `messages`, if it has its default value and `setting` is not empty.
    pub fn default_messages(&mut self, setting: &str) {
        self.session_messages = Some(setting.to_owned()).filter(|path| self.messages == MESSAGES && !path.is_empty());
    }

    /// Sets the fields of the events: those of a [`ScanCall`] with the same arguments, perhaps of another process.
    pub fn know_fields(&mut self, fields: Vec<EventField>) {
        self.known_fields = Some(fields);
    }

    /// Whether records are recovered. Files are then read as a whole, not in parts.
    pub fn recovers(&self) -> bool {
        self.options.recover
    }

    /// The password of encrypted files.
    pub fn password(&self) -> Option<&Password> {
        self.password.as_ref()
    }

    /// Plans a call with these arguments. Loads rules, and reads some of the files if the columns depend on them, with
    /// at most so many threads. A catalog of messages may take `memory` bytes. Errors name `function` as the caller.
    ///
    /// # Errors
    /// [`ScanError::Input`] if the folders of the files have different keys, and [`ScanError::Interrupted`].
    pub fn call(
        &self,
        paths: Vec<ScanPath>,
        threads: usize,
        memory: u64,
        storage: &dyn Storage,
        function: &str,
        interrupt: Interrupt<'_>,
    ) -> Result<ScanCall, ScanError> {
        let mut call = ScanCall {
            table: Table::from(self.options),
            paths,
            folders: Vec::new(),
            fields: Vec::new(),
            messages: self.session_messages.as_ref().unwrap_or(&self.messages).clone(),
            options: self.options,
            warning: None,
            rules: Arc::default(),
            providers: None,
            types: self.types.clone(),
        };
        if self.query == Query::Rules {
            let rules = self.of_rules.load(&call.paths, threads, storage, interrupt)?;
            call.rules = rules.rows;
            call.paths.clear();
        }
        if !OF_EVENTS.contains(&self.query) {
            return Ok(call);
        }
        let providers = self.providers.as_ref();
        let providers = providers.map(|names| names.iter().map(|name| name.as_str().into()).collect());
        call.table = match (&self.event_ids, providers) {
            (None, None) => call.table,
            (None, providers) => Table::of_all_fields(self.options, Events { ids: None, providers }),
            (Some(ids), providers) => {
                let ids = Some(ids.as_slice().into());
                let events = Events { ids, providers };
                call.fields = match &self.known_fields {
                    Some(fields) => fields.clone(),
                    None => {
                        let (paths, size) = (&call.paths, self.sample_size);
                        let fields;
                        (fields, call.warning) = read_sample(events.clone(), storage, paths, size, threads, interrupt)?;
                        fields
                    }
                };
                Table::of_events_beside(self.options, events, &call.fields, &EXTRAS)
            }
        };
        let row = if self.query == Query::Matches {
            "match"
        } else {
            "record"
        };
        call.providers = self.providers.clone().map(|providers| (row, providers));
        let catalog = if is_catalog(&call.messages) {
            let catalog = catalogs::open(&call.messages, memory, storage, interrupt);
            let catalog = catalog.map_err(|error| match self.session_messages {
                Some(_) => error.within("the setting evtx_messages names no catalog that can be read"),
                None => error,
            });
            call.messages = MESSAGES.to_owned();
            Some(catalog?)
        } else {
            None
        };
        call.table = self.extras.of(call.table, catalog);
        if self.query == Query::Matches {
            let loaded = self.of_rules.load_named(function, threads, storage, interrupt)?;
            let (rules, failed) = loaded.into_rules(function)?;
            call.table = table_of_matches(call.table, rules);
            call.warning = match (call.warning, failed) {
                (Some(one), Some(other)) => Some(format!("{one}\n{other}")),
                (one, other) => one.or(other),
            };
        }
        if self.hive_partitioning {
            call.folders = folder_columns(&call.paths, interrupt)?;
        }
        Ok(call)
    }
}

/// The rules that the arguments of a call name, for rows of a table: all, and the correlations with the rules that they need.
/// Then a warning, if rules did not load.
///
/// # Errors
/// Those of [`Arguments::call`].
pub fn rules_of_rows(
    arguments: &Arguments,
    function: &str,
    storage: &dyn Storage,
    interrupt: Interrupt<'_>,
) -> Result<([Arc<Rules>; 2], Option<String>), ScanError> {
    let threads = available_parallelism().map_or(1, NonZero::get);
    let loaded = arguments.of_rules.load_named(function, threads, storage, interrupt)?;
    let (rules, warning) = loaded.into_rules("evtx_sigma")?;
    let correlations = rules.only(|index| rules.is_correlation(index));
    Ok(([rules, Arc::new(correlations)], warning))
}

/// A planned call.
#[derive(Debug, Clone)]
pub struct ScanCall {
    /// The columns.
    pub table: Table,
    /// The files.
    pub paths: Vec<ScanPath>,
    /// Where to look for the messages of a log: a glob relative to its folder.
    pub messages: String,
    /// The options of the scan.
    pub options: Options,
    /// The columns that the folders of the files make. They follow those of the table.
    pub folders: Vec<FolderColumn>,
    /// The fields of the events, if the call is for certain events.
    pub fields: Vec<EventField>,
    /// A warning: that only parts of the files were read to find the columns, or that rules did not load.
    pub warning: Option<String>,
    /// The rows on rules, if the call is for them.
    pub rules: Arc<[RuleRow]>,
    /// If the scan should say that it has no rows of the providers that the caller named: what a row is, and the providers.
    pub providers: Option<(&'static str, Vec<String>)>,
    /// The types that the values of lines should have.
    pub types: JsonTypes,
}

impl ScanCall {
    /// A scan of the columns with these indexes in the schema of the table, and the index of each of its files among
    /// those of the call. It may leave out files and records for which the conditions are not true. In these, the
    /// columns of folders follow those of the table. The messages beside the logs may take `memory` bytes.
    pub fn scan(&self, columns: &[usize], conditions: &[Expression], memory: u64) -> (FileScan, Arc<[usize]>) {
        let implied = |condition| Predicate::implied(&self.table, condition);
        let predicates: Vec<_> = conditions.iter().filter_map(implied).collect();
        let count = self.table.schema().fields().len();
        let of_folders = |condition| FolderPredicate::of(condition, count);
        let folder_predicates: Vec<_> = conditions.iter().filter_map(of_folders).collect();
        let is_kept = |index: usize| {
            let name = &self.paths[index].path;
            let is_in_folder = |predicate: &FolderPredicate| predicate.keeps(&self.folders, index);
            folder_predicates.iter().all(is_in_folder) && !predicates.iter().any(|predicate| predicate.drops_file(name))
        };
        let scan = Scan::filtered(self.table.clone(), columns, &predicates);
        // Correlations need the events of all files.
        let is_kept = |index: &usize| scan.sees_all() || is_kept(*index);
        let (kept, mut left_out): (Vec<_>, Vec<_>) = (0..self.paths.len()).partition(is_kept);
        if !self.options.recover {
            left_out.clear();
        }
        let paths = |indices: &[usize]| indices.iter().map(|&index| self.paths[index].clone()).collect();
        let finder = MessageFinder::new(&self.messages, memory);
        let files = FileScan::new(Arc::new(scan), paths(&kept), Some(finder)).leaving_out(paths(&left_out));
        // The columns of folders have one value for all rows of a batch.
        let files = if self.folders.is_empty() {
            files.joining_files()
        } else {
            files
        };
        let files = match &self.providers {
            // Conditions can have dropped their records.
            Some((row, providers)) if conditions.is_empty() => files.naming_providers(providers.clone(), row),
            _ => files,
        };
        (files, kept.into())
    }
}

#[cfg(test)]
mod tests {
    use evtx_arrow::OnError;

    use super::*;

    #[test]
    fn the_list_is_in_order_and_its_defaults_are_those_of_a_call() {
        assert!(ARGUMENTS.is_sorted_by_key(|argument| argument.name));
        let mut arguments = Arguments::new(Query::Records);
        let before = format!("{arguments:?}");
        for argument in ARGUMENTS {
            let value = match (argument.default, argument.kind) {
                (None, _) => ArgumentValue::Null,
                (Some(text), ArgumentKind::Flag) => ArgumentValue::Flag(text == "true"),
                (Some(text), ArgumentKind::Integer) => ArgumentValue::Integer(text.parse().expect("a number")),
                (Some(text), _) => ArgumentValue::Text(text.to_owned()),
            };
            arguments.set(argument, value, "a test").expect("its default");
        }
        assert_eq!(format!("{arguments:?}"), before);
    }

    #[test]
    fn a_column_sets_the_option_that_only_adds_it() {
        let mut arguments = Arguments::new(Query::Records);
        for column in ["XML", "record_offset", "recovered", "level", "nothing"] {
            arguments.need(column);
        }
        let options = arguments.options;
        assert!(options.xml && options.location && !options.json && !options.recover);
    }

    #[test]
    fn values_are_taken_by_their_kind() {
        let mut arguments = Arguments::new(Query::Records);
        let list = |texts: &[&str]| ArgumentValue::List(texts.iter().map(|&text| text.to_owned()).collect());
        let mut set = |name: &str, value| {
            let argument = Argument::find(Query::Records, name).expect("an argument");
            arguments
                .set(argument, value, "read_evtx")
                .map_err(|error| error.to_string())
        };
        assert_eq!(set("VERIFY", ArgumentValue::Flag(true)), Ok(()));
        assert_eq!(set("on_error", ArgumentValue::Text("Skip".to_owned())), Ok(()));
        assert_eq!(set("sample_size", ArgumentValue::Integer(-1)), Ok(()));
        assert_eq!(set("event_id", list(&["7", "8.0"])), Ok(()));
        assert_eq!(set("provider", list(&["A, B", "c"])), Ok(()));
        assert_eq!(set("password", ArgumentValue::Text("s3cret".to_owned())), Ok(()));
        let null = set("verify", ArgumentValue::Null);
        assert_eq!(null.unwrap_err(), "read_evtx cannot take NULL as verify");
        assert!(set("verify", ArgumentValue::Integer(1)).is_err());
        assert!(
            set("on_error", ArgumentValue::Text("nonsense".to_owned()))
                .unwrap_err()
                .starts_with("read_evtx: on_error must be")
        );
        let flag = set("messages", ArgumentValue::Text("true".to_owned())).unwrap_err();
        assert!(
            flag.starts_with("read_evtx: messages takes the path of a catalog, not true"),
            "{flag}"
        );
        assert!(set("sample_size", ArgumentValue::Integer(-2)).is_err());
        for text in ["true", "1.5", "-1", "4294967296", "[1]", "", "7,8"] {
            assert!(set("event_id", list(&[text])).is_err(), "{text}");
        }
        assert!(set("event_id", ArgumentValue::Integer(7)).is_err(), "not by its text");
        assert!(Argument::find(Query::Records, "nothing").is_none());
        assert!(!format!("{arguments:?}").contains("s3cret"));
        assert!(arguments.options.verify && arguments.options.on_error == OnError::Skip);
        assert_eq!(arguments.sample_size, SampleSize::All);
        assert_eq!(arguments.event_ids, Some(vec![7, 8]));
        assert_eq!(arguments.providers, Some(vec!["A, B".to_owned(), "c".to_owned()]));
    }
}
