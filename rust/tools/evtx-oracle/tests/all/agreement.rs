//! The engine finds in real logs what each rule alone finds. `EVTX_SIGMA` names a folder of rules, and of logs that match
//! them; `EVTX_CORPUS` a folder of other logs. Without `EVTX_SIGMA`, the test does nothing.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::Arc;

use evtx_format::Interrupt;
use evtx_sigma::{Match, Matching, Renamed, RuleForEvents, RuleSet};

use crate::logs::{Classes, LogEvent, files, rules};

/// One in this many pairs of an event and a rule that the engine does not find is judged.
const DRAWN: u64 = 50;

#[test]
fn finds_what_each_rule_alone_finds() {
    let Some(folder) = std::env::var_os("EVTX_SIGMA") else {
        eprintln!("EVTX_SIGMA names no folder of rules: nothing is tested");
        return;
    };
    let texts = files(Path::new(&folder), "yml");
    let texts: Vec<String> = texts
        .iter()
        .map(|file| std::fs::read_to_string(file).expect("a text"))
        .collect();
    let rules = rules(&texts);
    let count = rules.len();
    let set = Arc::new(RuleSet::new(rules));
    assert_eq!(set.rules().len(), count);
    let mut logs = files(Path::new(&folder), "evtx");
    if let Some(corpus) = std::env::var_os("EVTX_CORPUS") {
        logs.extend(files(Path::new(&corpus), "evtx"));
    }
    let mut classes = Classes::default();
    let mut matching = Matching::new(set.clone());
    let (mut events, mut matches, mut judged) = (0, 0, 0);
    for log in &logs {
        for (number, event) in LogEvent::all(log).iter().enumerate() {
            let class = classes.of(event, &set);
            let mut found: Vec<Match> = Vec::new();
            matching
                .matches(&class, event, Interrupt::NEVER, &mut found)
                .expect("nothing interrupts it");
            let fields = event.fields();
            let mut hits = found.iter().peekable();
            for (rule, one) in (0u32..).zip(set.rules()) {
                let hit = hits.next_if(|hit| hit.rule == rule);
                if hit.is_some() || is_drawn((log, number, rule)) {
                    let expected = judge(one, &fields);
                    let title = &one.rule.about.title;
                    assert_eq!(hit.map(|hit| &hit.matched), expected.as_ref(), "{title}: {fields:?}");
                    judged += 1;
                }
            }
            assert!(hits.next().is_none(), "rules are found in their order");
            events += 1;
            matches += found.len();
        }
    }
    let (count, bytes) = (classes.len(), classes.bytes());
    eprintln!("{events} events of {count} classes ({bytes} bytes), {matches} matches, {judged} pairs judged");
    assert!(matches > 0);
}

fn is_drawn(pair: impl Hash) -> bool {
    let mut hasher = DefaultHasher::new();
    pair.hash(&mut hasher);
    hasher.finish().is_multiple_of(DRAWN)
}

fn judge(one: &RuleForEvents, fields: &[(&str, Option<&str>)]) -> Option<evtx_sigma::Matched> {
    let event = &fields;
    let mut alternatives = one.alternatives.iter().filter(|alternative| alternative.takes(event));
    alternatives.find_map(|alternative| one.rule.matches(&Renamed { event, alternative }))
}
