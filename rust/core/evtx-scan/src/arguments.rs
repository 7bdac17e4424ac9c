//! Arguments of calls: how each is declared, and those of a scan of records.
//!
//! Each argument is one entry of a list, made by [`arguments!`](crate::arguments!), beside the settings that it changes. Crates
//! above this one declare lists of their own.

use evtx_arrow::Options;
use evtx_format::named_enum;

use crate::storage::{Password, ScanError};

named_enum! {
    /// What an argument takes.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ArgumentKind {
        /// True or false.
        Flag = "flag",
        /// A whole number.
        Integer = "integer",
        /// Text.
        Text = "text",
        /// A value, or a list of them, each by its text.
        List = "list",
        /// A map from texts to a value or a list of them.
        Map = "map",
    }
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
#[derive(Debug, PartialEq, Eq)]
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
    /// Whether folders are columns.
    pub hive_partitioning: bool,
    /// The password of encrypted files.
    pub password: Option<Password>,
}

arguments! {
    /// The arguments of every scan of events.
    pub OF_EVENTS of ScanSettings:
    /// Adds a column `fields`: all values of the event, each with its name.
    fields = Some("false"), Flag(|all| &mut all.options.fields);
    /// Folders named `key=value` are columns.
    hive_partitioning = Some("false"), Flag(|all| &mut all.hive_partitioning);
    /// Adds a column `json`: the whole event as JSON.
    json = Some("false"), Flag(|all| &mut all.options.json);
    /// How to handle damage: return a row with `error` set (`report`), no row (`skip`), or fail the query (`fail`).
    on_error = Some("report"), Text(|all, text| put(&mut all.options.on_error, text.unwrap_or_default().parse()));
    /// Adds a column `text`: all values of the event, a line for each, to search them at once.
    text = Some("false"), Flag(|all| &mut all.options.text);
    /// Adds a column `xml`: the whole event as XML.
    xml = Some("false"), Flag(|all| &mut all.options.xml);
}

arguments! {
    /// Those of scans of logs, besides.
    pub OF_LOGS of ScanSettings:
    /// Adds `chunk_index` and `record_offset`: where in the file the record is.
    location = Some("false"), Flag(|all| &mut all.options.location);
    /// Compares checksums; one that does not match is damage.
    verify = Some("false"), Flag(|all| &mut all.options.verify);
}

arguments! {
    /// Those of all calls that read files.
    pub OF_FILES of ScanSettings:
    /// The password of encrypted entries of ZIP and 7z archives.
    password = None, Text(|all, text| put(&mut all.password, Ok(text.map(Password::from))));
}
