//! The matches of a scan against a slow and plain way to find them: every rule is asked about every event, with the
//! values that the `evtx` crate renders.
//!
//! The rules are those below the folder that `EVTX_SIGMA` names, such as SigmaHQ's, and the logs are the project's, those
//! of `EVTX_CORPUS` and `EVTX_VARIED`, and those beside the rules.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common;
use crate::common::oracle::sigma_values;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt64Type};
use arrow_array::{Array, ArrayAccessor, StringArray};
use evtx::{EvtxParser, ParserSettings};
use evtx_arrow::{Options, Rules, Scan, Table};
use evtx_sigma::{Alternative, LogSources, Placeholders, Renamed, RuleForEvents, RuleSet, SYSTEM_CHANNEL, load_rules};
use evtx_writer::{Element, Fragment, LogWriter, Stream};

/// The rules below a folder that load and that a log source is known for.
fn rules(folder: &Path) -> Vec<RuleForEvents> {
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

type Matches = BTreeMap<(u64, String), Vec<(String, Option<String>)>>;

/// What a scan finds in a log: by record ID and title of the rule, the fields that made it true.
fn found(log: &[u8], name: &str, rules: &Arc<Rules>, is_tree: bool) -> Matches {
    let table = Table::from(Options::default()).of_matches(Arc::clone(rules));
    let schema = table.schema();
    let columns = ["rule_title", "matched", "record_id", "error"].map(|name| schema.index_of(name).expect("a column"));
    let scan = Scan::new(table, &columns);
    let scan = if is_tree { scan.force_tree_path() } else { scan };
    let mut matches = Matches::new();
    common::scan(log, name, scan, |batch| {
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

/// What every rule says of every record.
fn expected(log: &[u8], rules: &[RuleForEvents], by_id: &HashMap<u32, Vec<usize>>, any_id: &[usize]) -> Matches {
    let settings = ParserSettings::new().num_threads(1).indent(false);
    let mut parser = EvtxParser::from_buffer(log.to_vec())
        .expect("a log")
        .with_configuration(settings);
    let mut matches = Matches::new();
    for record in parser.records().flatten() {
        let values = sigma_values(&record.data);
        let id = values.iter().find(|(name, _)| name == "EventID");
        let id = id.and_then(|(_, id)| id.as_deref()?.parse().ok());
        let of_id = id.and_then(|id| by_id.get(&id)).into_iter().flatten();
        for &index in of_id.chain(any_id) {
            let RuleForEvents { rule, alternatives } = &rules[index];
            let event = values.as_slice();
            let matched = alternatives
                .iter()
                .filter(|alternative| alternative.takes(&event))
                .find_map(|alternative| {
                    rule.matches(&Renamed {
                        event: &event,
                        alternative,
                    })
                });
            if let Some(matched) = matched {
                matches.insert((record.event_record_id, rule.about.title.clone()), matched.fields);
            }
        }
    }
    matches
}

fn compare(rules: Vec<RuleForEvents>, logs: &[PathBuf]) {
    let (mut by_id, mut any_id) = (HashMap::<u32, Vec<usize>>::new(), Vec::new());
    for (index, rule) in rules.iter().enumerate() {
        let alternatives = rule.alternatives.iter();
        if alternatives.clone().any(|alternative| alternative.event_ids.is_empty()) {
            any_id.push(index);
            continue;
        }
        for id in alternatives.flat_map(|alternative| &alternative.event_ids) {
            by_id.entry(*id).or_default().push(index);
        }
    }
    let set = Rules::new(RuleSet::new(rules.clone()), vec!["".into(); rules.len()]);
    let set = Arc::new(set);
    let (mut count, mut differences) = (0, 0);
    for path in logs {
        let log = std::fs::read(path).expect("a log");
        let name = path.to_string_lossy();
        let (found, trees) = (found(&log, &name, &set, false), found(&log, &name, &set, true));
        assert!(found == trees, "{name}: trees give other matches");
        let expected = expected(&log, &rules, &by_id, &any_id);
        count += expected.len();
        for key in expected.keys().chain(found.keys()) {
            let (one, other) = (expected.get(key), found.get(key));
            if one != other {
                differences += 1;
                println!("{name}: {key:?}: expected {one:?}, found {other:?}");
            }
        }
    }
    println!("{} logs, {count} matches", logs.len());
    assert_eq!(differences, 0);
}

/// The text `expected.tsv` names logs beside it (`logs/`), a rule for each, and how many events at least match it.
#[test]
fn logs_of_rules_raise_them() {
    let Some(folder) = std::env::var_os("EVTX_SIGMA") else {
        eprintln!("skipped: EVTX_SIGMA names no folder of rules");
        return;
    };
    let folder = Path::new(&folder);
    let Ok(expected) = std::fs::read_to_string(folder.join("expected.tsv")) else {
        eprintln!("skipped: there is no expected.tsv beside the rules");
        return;
    };
    let rules = rules(folder);
    let titles: HashMap<_, _> = rules
        .iter()
        .map(|known| (known.rule.about.id.clone(), known.rule.about.title.clone()))
        .collect();
    let set = Arc::new(Rules::new(RuleSet::new(rules.clone()), vec!["".into(); rules.len()]));
    let mut count = 0;
    for line in expected.lines().skip(1) {
        let fields: Vec<_> = line.split('\t').collect();
        let [log, id, least] = fields[..] else { panic!("{line}") };
        let bytes = std::fs::read(folder.join("logs").join(log)).expect("a log");
        let title = &titles[&Some(id.to_owned())];
        let raised = found(&bytes, log, &set, false);
        let raised = raised.keys().filter(|(_, of)| of == title).count();
        assert!(
            raised >= least.parse().expect("a number"),
            "{log}: {title} was raised {raised} times, not {least}"
        );
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn every_match_is_what_a_plain_evaluation_says() {
    let Some(folder) = std::env::var_os("EVTX_SIGMA") else {
        eprintln!("skipped: EVTX_SIGMA names no folder of rules");
        return;
    };
    let folder = Path::new(&folder);
    let mut logs = common::samples();
    logs.extend(common::corpus());
    logs.extend(common::logs(folder));
    compare(rules(folder), &logs);
}

/// A rule for some texts of each value that is neither a place of `System` nor an entry: as a keyword, and by its name.
/// In the events 104 and 1102 of the event log, a rule's `Channel` is the log that was cleared.
#[test]
fn a_cleared_log_is_the_channel_of_rules() {
    let text = |name: &str, text: &str| Element::new(name).text(text);
    let event = |provider: &str, id: &str, cleared: Option<&str>| {
        let system = Element::new("System")
            .child(Element::new("Provider").attribute("Name", provider))
            .child(text("EventID", id))
            .child(text("Channel", "System"));
        let cleared = cleared.map(|log| {
            let inner = Element::new("LogFileCleared").child(text("SubjectUserName", "eve"));
            Element::new("UserData").child(inner.child(text("Channel", log)))
        });
        let event = Element::new("Event").child(system);
        cleared.into_iter().fold(event, Element::child)
    };
    const EVENT_LOG: &str = "Microsoft-Windows-Eventlog";
    let mut log = LogWriter::new(1);
    for event in [
        event(EVENT_LOG, "104", Some("Application")),
        event(EVENT_LOG, "104", Some("System")),
        event(EVENT_LOG, "104", None),
        event("Another", "104", Some("Application")),
        event(EVENT_LOG, "105", Some("Application")),
    ] {
        log.write_stream(0, &Stream::new(vec![Fragment::Element(event)]))
            .expect("a record that fits");
    }
    let rule = |title: &str, detection: &str| {
        let text =
            format!("title: {title}\nlogsource: {{product: windows, service: system}}\ndetection: {{{detection}}}");
        let rule = load_rules(&text, &Placeholders::new()).remove(0).expect("a rule");
        let alternatives = LogSources::builtin().resolve(&rule.log_sources).expect("an entry");
        RuleForEvents { rule, alternatives }
    };
    let rules = vec![
        rule("core", "a: {Channel: System}, condition: a"),
        rule("other", "a: {Channel: Application}, condition: a"),
        // Hayabusa's own rules have a name of their own for the log that was cleared.
        rule(
            "named",
            "a: {Channel: System}, b: {LogFileClearedChannel: Application}, condition: a and b",
        ),
        rule(
            "named not",
            "a: {Channel: System}, b: {LogFileClearedChannel|startswith: App}, condition: a and not b",
        ),
        // It converts others so.
        rule(
            "converted",
            "system: {Channel: System}, a: {Channel: Application}, condition: system and a",
        ),
    ];
    let rules = Arc::new(Rules::new(RuleSet::new(rules), vec!["".into(); 5]));
    let file = log.finish();
    for is_tree in [false, true] {
        let found = found(&file, "x.evtx", &rules, is_tree);
        let found: Vec<_> = found.keys().map(|(id, title)| (*id, title.as_str())).collect();
        let expected = [
            (1, "converted"),
            (1, "named"),
            (1, "other"),
            (2, "core"),
            (2, "named not"),
            (3, "core"),
            (3, "named not"),
            (4, "converted"),
            (4, "core"),
            (4, "named"),
            (4, "other"),
            (5, "converted"),
            (5, "core"),
            (5, "named"),
            (5, "other"),
        ];
        assert_eq!(found, expected);
    }
}

#[test]
fn keywords_find_every_value() {
    let mut logs = common::samples();
    logs.extend(common::corpus());
    let mut texts = BTreeMap::new();
    for path in &logs {
        let log = std::fs::read(path).expect("a log");
        let settings = ParserSettings::new().num_threads(1).indent(false);
        let mut parser = EvtxParser::from_buffer(log)
            .expect("a log")
            .with_configuration(settings);
        for record in parser.records().flatten() {
            let values = sigma_values(&record.data);
            let is_other = |name: &str| name.contains('.') && name != SYSTEM_CHANNEL;
            for (name, value) in values.into_iter().filter(|(name, _)| is_other(name)) {
                if let Some(value) = value.filter(|value| (6..60).contains(&value.len())) {
                    // Two values for each name.
                    let known: &mut Vec<String> = texts.entry(name).or_default();
                    if known.len() < 2 && !known.contains(&value) {
                        known.push(value);
                    }
                }
            }
        }
    }
    let quoted = |text: &str| {
        let text = text.replace('\\', "\\\\").replace('*', "\\*").replace('?', "\\?");
        format!("'{}'", text.replace('\'', "''").replace(['\n', '\r', '\t'], "?"))
    };
    let alternative = Alternative {
        channels: Vec::new(),
        event_ids: Vec::new(),
        fields: Vec::new(),
        renames: BTreeMap::new(),
    };
    let mut rules = Vec::new();
    for (name, text) in texts
        .iter()
        .flat_map(|(name, texts)| texts.iter().map(move |text| (name, text)))
    {
        let keyword = format!("[{}]", quoted(text));
        let field = format!("{{{}: {}}}", quoted(name), quoted(text));
        for detection in [keyword, field] {
            let number = rules.len();
            let rule = format!(
                "title: '{number}'\nlogsource: {{product: windows}}\ndetection: {{a: {detection}, condition: a}}"
            );
            let loaded = load_rules(&rule, &Placeholders::new()).into_iter().flatten();
            rules.extend(loaded.map(|rule| RuleForEvents {
                rule,
                alternatives: vec![alternative.clone().into()],
            }));
        }
    }
    println!("{} rules", rules.len());
    compare(rules, &logs);
}
