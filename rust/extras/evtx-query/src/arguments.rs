//! The arguments of a call, and what a call makes of them.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::available_parallelism;

use evtx_arrow::EventField;
use evtx_detect::{Rules, table_of_matches};
use evtx_format::Interrupt;
use evtx_recovery::recover;
use evtx_scan::{Argument, ArgumentKind, ArgumentValue, Password, ScanError, ScanPath, Storage};

use crate::call::ScanCall;
use crate::columns::{extras, reference};
use crate::folders::folder_columns;
use crate::query::Query;
use crate::settings::CallSettings;

/// The arguments of a call, besides its files.
#[derive(Debug, Clone)]
pub struct Arguments {
    query: Query,
    settings: CallSettings,
}

impl Arguments {
    /// The arguments of a query, with their defaults.
    pub fn new(query: Query) -> Self {
        Arguments {
            query,
            settings: CallSettings::default(),
        }
    }

    /// The query.
    pub fn query(&self) -> Query {
        self.query
    }

    /// Takes a value for an argument of the query. Errors name `function` as the caller.
    ///
    /// # Errors
    /// [`ScanError::Input`] if the query has no such argument, or if the argument does not take the value.
    pub fn set(&mut self, argument: &Argument, value: ArgumentValue, function: &str) -> Result<(), ScanError> {
        let (name, mut value) = (argument.name, Some(value));
        let mut lists = self.query.lists().iter();
        let taken = lists.find_map(|list| list.take(name, &mut self.settings, &mut value, function));
        taken.unwrap_or_else(|| Err(ScanError::Input(format!("{function} has no argument {name}"))))
    }

    /// Sets the option that adds a column, if the option does no more than that.
    pub fn require(&mut self, column: &str) {
        let mut columns = reference().into_iter();
        let found = columns.find(|known| known.field.name().eq_ignore_ascii_case(column));
        let option = found.and_then(|known| known.option).filter(|&name| name != "recover");
        if let Some(argument) = option.and_then(|name| self.query.argument(name))
            && argument.kind == ArgumentKind::Flag
        {
            _ = self.set(argument, ArgumentValue::Flag(true), "");
        }
    }

    /// Sets the argument `messages`, if it has its default value and `setting` is not empty.
    pub fn default_messages(&mut self, setting: &str) {
        self.settings.extras.default_messages(setting);
    }

    /// Sets the fields of the events: those of a [`ScanCall`] with the same arguments, perhaps of another process.
    pub fn know_fields(&mut self, fields: Vec<EventField>) {
        self.settings.events.known_fields = Some(fields);
    }

    /// Whether records are recovered. Files are then read as a whole, not in parts.
    pub fn recovers(&self) -> bool {
        self.settings.recovery.recover
    }

    /// The password of encrypted files.
    pub fn password(&self) -> Option<&Password> {
        self.settings.scan.password.as_ref()
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
        let mut call = ScanCall::new(self.settings.scan.options, paths);
        call.sources = self.settings.sources.clone();
        if self.query == Query::Rules {
            let rules = self.settings.rules.load(&call.paths, threads, storage, interrupt)?;
            call.rules = rules.rows;
            call.paths.clear();
        }
        if !self.query.reads_events() {
            return Ok(call);
        }
        let options = self.settings.scan.options;
        let mut planned = self
            .settings
            .events
            .plan(options, &extras(), &call.paths, threads, storage, interrupt)?;
        if self.recovers() {
            planned.table = recover(planned.table);
        }
        (call.fields, call.warning) = (planned.fields, planned.warning);
        let row = if self.query == Query::Matches {
            "match"
        } else {
            "record"
        };
        call.providers = self.settings.events.providers.clone().map(|providers| (row, providers));
        (call.table, call.messages) = self.settings.extras.plan(planned.table, memory, storage, interrupt)?;
        if self.query == Query::Matches {
            let loaded = self.settings.rules.load_named(function, threads, storage, interrupt)?;
            let (rules, failed) = loaded.into_rules(function)?;
            call.table = table_of_matches(call.table, rules);
            call.warning = match (call.warning, failed) {
                (Some(one), Some(other)) => Some(format!("{one}\n{other}")),
                (one, other) => one.or(other),
            };
        }
        if self.settings.scan.hive_partitioning {
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
    let loaded = arguments
        .settings
        .rules
        .load_named(function, threads, storage, interrupt)?;
    let (rules, warning) = loaded.into_rules("evtx_sigma")?;
    let correlations = rules.only(|index| rules.is_correlation(index));
    Ok(([rules, Arc::new(correlations)], warning))
}

#[cfg(test)]
mod tests {
    use evtx_arrow::OnError;
    use evtx_events::SampleSize;

    use super::*;

    #[test]
    fn defaults_are_those_of_a_call_and_names_are_unique() {
        for query in Query::ALL {
            let mut arguments = Arguments::new(query);
            let before = format!("{arguments:?}");
            for argument in query.arguments() {
                let value = match (argument.default, argument.kind) {
                    (None, _) => ArgumentValue::Null,
                    (Some(text), ArgumentKind::Flag) => ArgumentValue::Flag(text == "true"),
                    (Some(text), ArgumentKind::Integer) => ArgumentValue::Integer(text.parse().expect("a number")),
                    (Some(text), _) => ArgumentValue::Text(text.to_owned()),
                };
                arguments.set(argument, value, "a test").expect("its default");
            }
            assert_eq!(format!("{arguments:?}"), before, "{query:?}");
            let mut names: Vec<_> = query.arguments().map(|argument| argument.name).collect();
            assert!(names.is_sorted());
            names.dedup();
            assert_eq!(names.len(), query.arguments().count(), "two arguments with one name");
        }
    }

    #[test]
    fn a_column_sets_the_option_that_only_adds_it() {
        let mut arguments = Arguments::new(Query::Records);
        for column in ["XML", "record_offset", "recovered", "level", "nothing"] {
            arguments.require(column);
        }
        let options = arguments.settings.scan.options;
        assert!(options.xml && options.location && !options.json && !arguments.recovers());
    }

    #[test]
    fn values_are_taken_by_their_kind() {
        let mut arguments = Arguments::new(Query::Records);
        let list = |texts: &[&str]| ArgumentValue::List(texts.iter().map(|&text| text.to_owned()).collect());
        let mut set = |name: &str, value| {
            let argument = Query::Records.argument(name).expect("an argument");
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
        assert!(Query::Records.argument("nothing").is_none());
        assert!(!format!("{arguments:?}").contains("s3cret"));
        assert!(arguments.settings.scan.options.verify && arguments.settings.scan.options.on_error == OnError::Skip);
        assert_eq!(arguments.settings.events.sample_size, SampleSize::All);
        assert_eq!(arguments.settings.events.event_ids, Some(vec![7, 8]));
        assert_eq!(
            arguments.settings.events.providers,
            Some(vec!["A, B".to_owned(), "c".to_owned()])
        );
    }
}
