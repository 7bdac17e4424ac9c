//! Arguments of calls: how each is declared, and those of a scan of records.
//!
//! Each argument is one entry of a list, made by [`arguments!`](crate::arguments!), beside the settings that it changes. Crates
//! above this one declare lists of their own.

use evtx_arrow::{EventField, Events, Options, Table};
use evtx_format::Interrupt;

use crate::sample::{SampleSize, read_sample};
use crate::scan_path::ScanPath;
use crate::storage::{Password, ScanError, Storage};

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
}

/// An argument, and how it changes settings of a type.
#[derive(Debug)]
pub struct Setting<T: 'static> {
    /// The argument.
    pub argument: Argument,
    /// How its value is taken.
    pub set: Set<T>,
}

/// How a value is taken.
#[derive(Debug)]
#[allow(missing_docs)] // the kinds of arguments
pub enum Set<T> {
    Flag(fn(&mut T) -> &mut bool),
    Integer(Setter<T, i64>),
    Text(Setter<T, String>),
    List(Setter<T, Vec<String>>),
    Map(Setter<T, Vec<(String, String)>>),
}

/// Takes a value, or NULL, for the settings. The error is a text without the name of the function.
pub type Setter<T, V> = fn(&mut T, Option<V>) -> Result<(), String>;

/// Declares a list of arguments, in the order of their names: what each does, its name and default, and how it changes the
/// settings.
#[macro_export]
macro_rules! arguments {
    ($(#[doc = $list:literal])* $vis:vis $LIST:ident of $settings:ty:
     $($(#[doc = $about:literal])* $name:ident = $default:expr, $kind:ident($set:expr);)*) => {
        $(#[doc = $list])*
        $vis const $LIST: &[$crate::arguments::Setting<$settings>] = &[$($crate::arguments::Setting {
            argument: $crate::arguments::Argument {
                name: stringify!($name),
                default: $default,
                about: concat!($($about),*).trim_ascii_start(),
                kind: $crate::arguments::ArgumentKind::$kind,
            },
            set: $crate::arguments::Set::$kind($set),
        }),*];
    };
}

/// Sets `target` to a value, unless it is an error.
///
/// # Errors
/// Why there is none.
pub fn put<T>(target: &mut T, value: Result<T, String>) -> Result<(), String> {
    *target = value?;
    Ok(())
}

impl<T> Setting<T> {
    /// Takes a value. Errors name `function` as the caller.
    ///
    /// # Errors
    /// [`ScanError::Input`] if the argument does not take it.
    pub fn take(&self, settings: &mut T, value: ArgumentValue, function: &str) -> Result<(), ScanError> {
        use ArgumentValue::{Flag, Integer, List, Map, Null, Text};
        let Argument { name, default, .. } = self.argument;
        let input = |text: String| Err(ScanError::Input(text));
        let taken = match (&self.set, value) {
            (_, Null) if default.is_some() => return input(format!("{function} cannot take NULL as {name}")),
            (Set::Flag(flag), Flag(value)) => put(flag(settings), Ok(value)),
            (Set::Integer(set), Null) => set(settings, None),
            (Set::Integer(set), Integer(number)) => set(settings, Some(number)),
            (Set::Text(set), Null) => set(settings, None),
            (Set::Text(set), Text(text)) => set(settings, Some(text)),
            (Set::List(set), Null) => set(settings, None),
            (Set::List(set), List(texts)) => set(settings, Some(texts)),
            (Set::Map(set), Null) => set(settings, None),
            (Set::Map(set), Map(values)) => set(settings, Some(values)),
            _ => return input(format!("{function} cannot take this as {name}")),
        };
        taken.or_else(|why| input(format!("{function}: {why}")))
    }
}

/// The settings of a scan of records.
#[derive(Debug, Clone, Default)]
pub struct ScanSettings {
    /// The options of the table.
    pub options: Options,
    /// The events that the caller named.
    pub event_ids: Option<Vec<u32>>,
    /// The providers that the caller named.
    pub providers: Option<Vec<String>>,
    /// How much is read to find the fields of the events.
    pub sample_size: SampleSize,
    /// The fields of the events, if they were found before.
    pub known_fields: Option<Vec<EventField>>,
    /// Whether folders are columns.
    pub hive_partitioning: bool,
    /// The password of encrypted files.
    pub password: Option<Password>,
}

arguments! {
    /// The arguments of every scan of events.
    pub OF_EVENTS of ScanSettings:
    /// Only the records of this event, or of a list of them, with a column for each of their fields.
    event_id = None, List(|all, texts| put(&mut all.event_ids, texts.as_deref().map(event_ids).transpose()));
    /// Adds a column `fields`: all values of the event, each with its name.
    fields = Some("false"), Flag(|all| &mut all.options.fields);
    /// Folders named `key=value` are columns.
    hive_partitioning = Some("false"), Flag(|all| &mut all.hive_partitioning);
    /// Adds a column `json`: the whole event as JSON.
    json = Some("false"), Flag(|all| &mut all.options.json);
    /// How to handle damage: return a row with `error` set (`report`), no row (`skip`), or fail the query (`fail`).
    on_error = Some("report"), Text(|all, text| put(&mut all.options.on_error, text.unwrap_or_default().parse()));
    /// Only the records of this provider, or of a list of them. The case of ASCII letters does not matter.
    provider = None, List(|all, names| put(&mut all.providers, Ok(names)));
    /// With `event_id`: how many files are read to find the fields, -1 for all. If it is not given, all local ones.
    sample_size = None, Integer(|all, size| put(&mut all.sample_size, sample_size(size)));
    /// Adds a column `text`: all values of the event, a line for each, to search them at once.
    text = Some("false"), Flag(|all| &mut all.options.text);
    /// Adds a column `xml`: the whole event as XML.
    xml = Some("false"), Flag(|all| &mut all.options.xml);
}

arguments! {
    /// Those of scans of logs, besides.
    pub OF_LOGS of ScanSettings:
    /// Adds `chunk_index` and `record_offset`: where in the file a record stands.
    location = Some("false"), Flag(|all| &mut all.options.location);
    /// Adds records in free space and in damaged chunks, stray chunks, and the chunks and records in files that are not logs.
    recover = Some("false"), Flag(|all| &mut all.options.recover);
    /// Compares checksums; one that does not match is damage.
    verify = Some("false"), Flag(|all| &mut all.options.verify);
}

arguments! {
    /// Those of all calls that read files.
    pub OF_FILES of ScanSettings:
    /// The password of encrypted entries of ZIP and 7z archives.
    password = None, Text(|all, text| put(&mut all.password, Ok(text.map(Password::from))));
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

fn sample_size(size: Option<i64>) -> Result<SampleSize, String> {
    match size {
        None => Ok(SampleSize::Local),
        Some(-1) => Ok(SampleSize::All),
        Some(size) => usize::try_from(size)
            .map(SampleSize::Files)
            .map_err(|_| format!("sample_size must be a number of files, or -1 for all, not {size}")),
    }
}

/// The columns that a call has, before extras add theirs.
#[derive(Debug)]
pub struct Planned {
    /// The columns.
    pub table: Table,
    /// The fields of the events, if the call is for certain events.
    pub fields: Vec<EventField>,
    /// A warning: that only parts of the files were read to find the fields.
    pub warning: Option<String>,
}

impl ScanSettings {
    /// Plans the columns of a call. Reads some of the files if the columns depend on them, with at most so many threads.
    /// No field is called like one of the `extras`.
    ///
    /// # Errors
    /// [`ScanError::Interrupted`], and [`ScanError::Decode`] if a thread has panicked.
    pub fn plan(
        &self,
        extras: &[&str],
        paths: &[ScanPath],
        threads: usize,
        storage: &dyn Storage,
        interrupt: Interrupt<'_>,
    ) -> Result<Planned, ScanError> {
        let providers = self.providers.as_ref();
        let providers = providers.map(|names| names.iter().map(|name| name.as_str().into()).collect());
        let mut planned = Planned {
            table: Table::from(self.options),
            fields: Vec::new(),
            warning: None,
        };
        planned.table = match (&self.event_ids, providers) {
            (None, None) => planned.table,
            (None, providers) => Table::of_all_fields(self.options, Events { ids: None, providers }),
            (Some(ids), providers) => {
                let ids = Some(ids.as_slice().into());
                let events = Events { ids, providers };
                (planned.fields, planned.warning) = match &self.known_fields {
                    Some(fields) => (fields.clone(), None),
                    None => read_sample(events.clone(), storage, paths, self.sample_size, threads, interrupt)?,
                };
                Table::of_events_beside(self.options, events, &planned.fields, extras)
            }
        };
        Ok(planned)
    }
}
