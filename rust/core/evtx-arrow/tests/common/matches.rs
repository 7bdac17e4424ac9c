//! The rules of a folder, and what a scan finds by them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt64Type};
use arrow_array::{Array, ArrayAccessor, StringArray};
use evtx_arrow::{Options, Scan, Table};
use evtx_detect::{Rules, table_of_matches};
use evtx_sigma::{LogSources, Placeholders, RuleForEvents, load_rules};

/// The rules below a folder that load and that a log source is known for.
pub(crate) fn rules(folder: &Path) -> Vec<RuleForEvents> {
    let mut rules = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<PathBuf> = std::fs::read_dir(&folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").path())
            .collect();
        entries.sort();
        for entry in entries {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "yml") {
                let text = std::fs::read_to_string(&entry).expect("a text");
                for rule in load_rules(&text, &Placeholders::new()).into_iter().flatten() {
                    if let Ok(alternatives) = LogSources::builtin().resolve(&rule.log_sources) {
                        rules.push(RuleForEvents { rule, alternatives });
                    }
                }
            }
        }
    }
    rules
}

/// Matches by record ID and title of the rule.
pub(crate) type Matches = BTreeMap<(u64, String), Vec<(String, Option<String>)>>;

/// What a scan finds in a log: by record ID and title of the rule, the fields that made it true.
pub(crate) fn found(log: &[u8], name: &str, rules: &Arc<Rules>, is_tree: bool) -> Matches {
    let table = table_of_matches(Table::from(Options::default()), Arc::clone(rules));
    let schema = table.schema();
    let columns = ["rule_title", "matched", "record_id", "error"].map(|name| schema.index_of(name).expect("a column"));
    let scan = Scan::new(table, &columns);
    let scan = if is_tree { scan.force_tree_path() } else { scan };
    let mut matches = Matches::new();
    super::scan(log, name, scan, |batch| {
        let titles = batch.column(0).as_dictionary::<Int32Type>();
        let titles = titles.downcast_dict::<StringArray>().expect("titles");
        let ids = batch.column(2).as_primitive::<UInt64Type>();
        for row in 0..batch.num_rows() {
            if titles.is_null(row) {
                assert!(batch.column(3).is_valid(row), "a row has a rule or an error");
                continue;
            }
            let entries = batch.column(1).as_map().value(row);
            let (keys, values) = (
                entries.column(0).as_string::<i32>(),
                entries.column(1).as_string::<i32>(),
            );
            let pair = |i: usize| {
                let value = values.is_valid(i).then(|| values.value(i).to_owned());
                (keys.value(i).to_owned(), value)
            };
            let pairs = (0..entries.len()).map(pair).collect();
            matches.insert((ids.value(row), titles.value(row).to_owned()), pairs);
        }
    })
    .expect("a log");
    matches
}
