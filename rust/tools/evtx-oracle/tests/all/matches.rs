//! The matches of a scan against a slow and plain way to find them: every rule is asked about every event, with the
//! values that the `evtx` crate renders.
//!
//! The rules are those below the folder that `EVTX_SIGMA` names, such as SigmaHQ's, and the logs are the project's, those
//! of `EVTX_CORPUS` and `EVTX_VARIED`, and those beside the rules.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common;
use crate::common::matches::{Matches, found, rules};
use crate::oracle::sigma_values;
use evtx::{EvtxParser, ParserSettings};
use evtx_detect::Rules;
use evtx_sigma::{Alternative, Placeholders, Renamed, RuleForEvents, RuleSet, SYSTEM_CHANNEL, load_rules};

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
