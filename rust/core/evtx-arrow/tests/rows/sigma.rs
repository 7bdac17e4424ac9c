//! The matches of a scan over the logs of rules, and in events that rules read in another way.
//!
//! The rules are those below the folder that `EVTX_SIGMA` names, such as SigmaHQ's, and the logs are those beside the rules.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::common::matches::{found, rules};
use evtx_detect::Rules;
use evtx_sigma::{LogSources, Placeholders, RuleForEvents, RuleSet, load_rules};
use evtx_writer::{Element, Fragment, LogWriter, Stream};

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
