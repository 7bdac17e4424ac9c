//! Sigma rules of files: found, read, loaded, and chosen by the arguments of a call.

use std::collections::HashMap;
use std::sync::Arc;

use evtx_arrow::{RuleRow, Rules};
use evtx_format::{Interrupt, Interrupted};
use evtx_sigma::{
    Level, Limits, LoadError, LogSources, Placeholders, Problem, Refused, Rule, RuleForEvents, RuleSet, Status,
    load_rules_until,
};

use crate::archive::{Archives, FileKind};
use crate::file::LogFile;
use crate::paths::{ScanPath, expand};
use crate::storage::{Call, LastOpened, ScanError, Storage, StorageError};

/// The most rules of a call.
const MAX_RULES: usize = 1 << 20;

/// What a call says about its rules.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleArguments {
    /// Where they are: paths, globs or folders.
    pub(crate) rules: Option<Vec<String>>,
    /// The path of the caller's own table of log sources.
    pub(crate) log_sources: Option<String>,
    pub(crate) placeholders: Placeholders,
    /// The lowest level that is wanted. Rules without a level are not wanted then.
    pub(crate) min_level: Option<Level>,
    /// The statuses that are wanted.
    pub(crate) statuses: Option<Vec<Status>>,
    /// The IDs of rules that are not wanted.
    pub(crate) exclude: Vec<String>,
}

/// The level with a name, whose case does not matter.
pub(crate) fn level(name: &str) -> Result<Level, String> {
    named("min_level", &Level::ALL, name)
}

/// The status with a name, whose case does not matter.
pub(crate) fn status(name: &str) -> Result<Status, String> {
    named("status", &Status::ALL, name)
}

fn named<T: Copy>(argument: &str, all: &[(T, &str)], name: &str) -> Result<T, String> {
    let found = all.iter().find(|(_, known)| known.eq_ignore_ascii_case(name));
    found.map(|(value, _)| *value).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|(_, name)| format!("'{name}'")).collect();
        format!("{argument} must be one of {}, not '{name}'", names.join(", "))
    })
}

/// A rule of a file, or a document that is none.
struct LoadedRule {
    row: RuleRow,
    /// The rule, unless there is an error.
    rule: Option<RuleForEvents>,
}

/// The rules of some files.
pub(crate) struct LoadedRules(Vec<LoadedRule>);

impl RuleArguments {
    /// Loads the rules that the arguments name.
    ///
    /// # Errors
    /// [`ScanError::Input`] if they name none, and those of [`load`](Self::load) and [`expand`].
    pub(crate) fn load_named(
        &self,
        function: &str,
        archives: &Archives,
        storage: &dyn Storage,
        interrupt: Interrupt<'_>,
    ) -> Result<LoadedRules, ScanError> {
        let named = self.rules.as_deref().unwrap_or_default();
        if named.is_empty() {
            let text =
                format!("{function} needs rules := '...': the path of rules, a glob, a folder, or a list of them");
            return Err(ScanError::Input(text));
        }
        let mut paths = Vec::new();
        for path in named {
            paths.extend(expand(storage, path, FileKind::Rules, archives, function, interrupt)?);
        }
        self.load(&paths, storage, interrupt)
    }

    /// Loads the rules of some files.
    ///
    /// # Errors
    /// Those of the storage for files that the caller named, a table of log sources that cannot be used, too many
    /// rules, and [`ScanError::Interrupted`].
    pub(crate) fn load(
        &self,
        paths: &[ScanPath],
        storage: &dyn Storage,
        interrupt: Interrupt<'_>,
    ) -> Result<LoadedRules, ScanError> {
        let call = Call {
            storage,
            interrupt,
            last: &LastOpened::default(),
        };
        let builtin = LogSources::builtin();
        let own = match &self.log_sources {
            Some(path) => Some(builtin.with(own_log_sources(call, path)?)),
            None => None,
        };
        let log_sources = own.as_ref().unwrap_or(builtin);
        let mut rules = LoadedRules(Vec::new());
        let mut regex_bytes = 0;
        for path in paths {
            interrupt.check()?;
            let file: Arc<str> = path.path.as_str().into();
            match read_text(call, path) {
                Ok(text) => {
                    let stop = || interrupt.check().is_err();
                    let loaded = load_rules_until(&text, &self.placeholders, &stop);
                    for loaded in loaded.map_err(|_| Interrupted)? {
                        let mut loaded = LoadedRule::new(&file, loaded, log_sources);
                        // A set refuses such rules, too, but here they are not kept until then.
                        let bytes = loaded.rule.as_ref().map_or(0, |known| known.rule.regex_bytes());
                        if regex_bytes + bytes > Limits::SET_REGEX_BYTES {
                            let (what, limit) = ("bytes of memory of regular expressions", Limits::SET_REGEX_BYTES);
                            loaded.refuse(Problem::SetLimit { what, limit }.to_string());
                        } else {
                            regex_bytes += bytes;
                        }
                        rules.0.push(loaded);
                    }
                }
                Err(error) => {
                    // What is wrong with a file of rules costs no other rules, also if the caller named it.
                    let error = Some(match error {
                        StorageError::Archive(why) => format!("cannot be read: {why}"),
                        error => path.failure(error)?,
                    });
                    let file = Arc::clone(&file);
                    let row = RuleRow {
                        file,
                        error,
                        ..RuleRow::default()
                    };
                    rules.0.push(LoadedRule { row, rule: None });
                }
            }
            if rules.0.len() > MAX_RULES {
                return Err(ScanError::Input(format!("a call takes at most {MAX_RULES} rules")));
            }
        }
        rules.refuse_same_ids();
        Ok(rules)
    }

    /// Whether a rule is wanted.
    fn wants(&self, rule: &Rule) -> bool {
        let is_high = self
            .min_level
            .is_none_or(|least| rule.level.is_some_and(|level| level >= least));
        let has_status = self
            .statuses
            .as_ref()
            .is_none_or(|wanted| rule.status.is_some_and(|status| wanted.contains(&status)));
        let is_excluded = |id: &str| {
            let mut excluded = self.exclude.iter().map(|excluded| excluded.trim_matches(['{', '}']));
            excluded.any(|excluded| excluded.eq_ignore_ascii_case(id))
        };
        is_high && has_status && !rule.id.as_deref().is_some_and(is_excluded)
    }
}

impl LoadedRule {
    fn new(file: &Arc<str>, loaded: Result<Rule, Box<Refused>>, log_sources: &LogSources) -> Self {
        let rule = match loaded {
            Ok(rule) => rule,
            Err(refused) => {
                let row = RuleRow {
                    id: refused.id,
                    title: refused.title,
                    file: Arc::clone(file),
                    error: Some(refused.error.to_string()),
                    ..RuleRow::default()
                };
                return LoadedRule { row, rule: None };
            }
        };
        let position = rule.log_source_position;
        let (alternatives, error) = match log_sources.resolve(&rule.log_source) {
            Ok(alternatives) => (alternatives, None),
            Err(problem) => (Vec::new(), Some(LoadError { position, problem }.to_string())),
        };
        let row = RuleRow::new(file, &rule, &alternatives, error);
        let rule = row.error.is_none().then_some(RuleForEvents { rule, alternatives });
        LoadedRule { row, rule }
    }

    fn refuse(&mut self, why: String) {
        self.rule = None;
        self.row.error = Some(why);
    }
}

impl LoadedRules {
    /// Refuses rules whose ID another rule before them has.
    fn refuse_same_ids(&mut self) {
        let mut known: HashMap<String, Arc<str>> = HashMap::new();
        for loaded in &mut self.0 {
            let Some(id) = loaded.rule.as_ref().and_then(|known| known.rule.id.as_ref()) else {
                continue;
            };
            let id = id.to_ascii_lowercase();
            match known.get(&id) {
                Some(file) => loaded.refuse(format!("a rule of {file} has the same ID")),
                None => _ = known.insert(id, Arc::clone(&loaded.row.file)),
            }
        }
    }

    /// What became of each rule.
    ///
    /// # Errors
    /// [`ScanError::Interrupted`].
    pub(crate) fn into_rows(mut self, interrupt: Interrupt<'_>) -> Result<Vec<RuleRow>, ScanError> {
        // A set says which rules it has no room for.
        self.make_set(|_| true, interrupt)?;
        Ok(self.0.into_iter().map(|loaded| loaded.row).collect())
    }

    /// The rules that the arguments want, and a warning if others did not load.
    ///
    /// # Errors
    /// [`ScanError::Input`] if none can be used because none loads, and [`ScanError::Interrupted`].
    pub(crate) fn into_rules(
        mut self,
        arguments: &RuleArguments,
        interrupt: Interrupt<'_>,
    ) -> Result<(Rules, Option<String>), ScanError> {
        let rules = self.make_set(|rule| arguments.wants(rule), interrupt)?;
        let mut failed = self.0.iter().filter(|loaded| loaded.row.error.is_some());
        let Some(first) = failed.next() else {
            return Ok((rules, None));
        };
        let (count, all) = (1 + failed.count(), self.0.len());
        let warning = format!(
            "{count} of {all} rules did not load; evtx_sigma_rules tells of each. The first is that of {}: {}",
            first.row.file,
            first.row.error.as_deref().unwrap_or_default()
        );
        match count < all {
            true => Ok((rules, Some(warning))),
            false => Err(ScanError::Input(warning)),
        }
    }

    /// The set of the rules that are wanted. Rules for which it has no room are refused.
    fn make_set(&mut self, is_wanted: impl Fn(&Rule) -> bool, interrupt: Interrupt<'_>) -> Result<Rules, Interrupted> {
        let (mut rules, mut files, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (place, loaded) in self.0.iter_mut().enumerate() {
            if let Some(rule) = loaded.rule.take_if(|known| is_wanted(&known.rule)) {
                rules.push(rule);
                files.push(Arc::clone(&loaded.row.file));
                places.push(place);
            }
        }
        let set = RuleSet::until(rules, &|| interrupt.check().is_err()).map_err(|_| Interrupted)?;
        for (refused, problem) in set.refused() {
            if let Some(loaded) = places.get(*refused as usize).and_then(|&place| self.0.get_mut(place)) {
                loaded.refuse(problem.to_string());
            }
        }
        Ok(Rules::new(set, files))
    }
}

/// The text of a file of rules.
fn read_text(call: Call<'_>, path: &ScanPath) -> Result<String, StorageError> {
    let read = || {
        let file = LogFile::open(call, path)?;
        if let Some(failure) = file.failure {
            return Err(failure);
        }
        if file.size() > Limits::TEXT as u64 {
            return Err(StorageError::Archive(format!(
                "it has {} bytes; a file of rules or log sources has at most {}",
                file.size(),
                Limits::TEXT
            )));
        }
        let mut bytes = Vec::new();
        file.read(&mut bytes, 0, file.size())?;
        String::from_utf8(bytes).map_err(|_| StorageError::Archive("it is not UTF-8".to_owned()))
    };
    path.patiently(call, read)
}

/// The caller's own table of log sources.
fn own_log_sources(call: Call<'_>, path: &str) -> Result<LogSources, ScanError> {
    let path = &ScanPath::named(path);
    let text = read_text(call, path).or_else(|error| path.failure(error))?;
    LogSources::load(&text).map_err(|error| ScanError::File(format!("{}: {error}", path.path)))
}
