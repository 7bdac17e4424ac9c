//! The arguments of calls about rules.

use evtx_format::named;
use evtx_scan::{arguments, put};
use evtx_sigma::{Level, Placeholders, Status};

/// The settings of a call about rules.
#[derive(Debug, Clone, Default)]
pub struct RuleSettings {
    /// Where they are: paths, globs or folders.
    pub(crate) rules: Option<Vec<String>>,
    /// The path of the caller's own table of log sources.
    pub(crate) log_sources: Option<String>,
    pub(crate) placeholders: Placeholders,
    /// The lowest level that is wanted. Rules without a level are not wanted then.
    pub(crate) min_level: Option<Level>,
    /// The statuses that are wanted.
    pub(crate) statuses: Option<Vec<Status>>,
    /// The IDs of rules that are not wanted, and paths of files with such IDs.
    pub(crate) exclude: Vec<String>,
    /// The path of a file with levels of rules.
    pub(crate) level_tuning: Option<String>,
}

arguments! {
    /// Those of every call about rules.
    pub OF_RULES of RuleSettings:
    /// The path of a text file with other levels for some rules: in each line an ID, a comma and a level.
    level_tuning = None, Text(|all, path| put(&mut all.level_tuning, Ok(path)));
    /// The path of a table of log sources of your own. Its entries replace those of the same log sources in the built-in
    /// table.
    logsources = None, Text(|all, path| put(&mut all.log_sources, Ok(path)));
    /// The values of placeholders in rules (`expand`): a map from each name to a value or a list of them.
    placeholders = None, Map(|all, values| {
        let mut known = Placeholders::new();
        for (name, value) in values.unwrap_or_default() {
            known.entry(name).or_default().push(value);
        }
        put(&mut all.placeholders, Ok(known))
    });
}

arguments! {
    /// Those of calls that match rules, besides.
    pub OF_MATCHES of RuleSettings:
    /// The rules to leave out: an ID, the path of a text file with an ID in each line, or a list of these.
    exclude = None, List(|all, ids| put(&mut all.exclude, Ok(ids.unwrap_or_default())));
    /// The lowest level of the rules that are wanted.
    min_level = None, Text(|all, name| {
        put(&mut all.min_level, name.map(|name| named("min_level", Level::ALL, &name)).transpose())
    });
    /// The rules: a path, a glob, a folder, an archive, or a list of them.
    rules = None, List(|all, paths| put(&mut all.rules, Ok(paths)));
    /// The status of the rules that are wanted, or a list of them.
    status = None, List(|all, names| {
        let statuses = names.map(|names| names.iter().map(|name| named("status", Status::ALL, name)).collect());
        put(&mut all.statuses, statuses.transpose())
    });
}
