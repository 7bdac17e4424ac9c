//! What the engine says of single events, a case for each way that it decides a rule.

use std::sync::Arc;

use evtx_sigma::{Alternative, Found, Kind, Match, Matching, Placeholders, RuleForEvents, RuleSet, Values, load_rules};

/// What each slot of an event has.
struct Slots<'a>(&'a [(Found, &'a str)]);

impl Values for Slots<'_> {
    fn push_text(&self, slot: usize, out: &mut String) -> Found {
        out.push_str(self.0[slot].1);
        self.0[slot].0
    }
}

/// Every event.
fn any_event() -> Alternative {
    Alternative {
        channels: Vec::new(),
        event_ids: Vec::new(),
        fields: Vec::new(),
        renames: [].into(),
    }
}

/// Rules for every event, each with one of these detections.
fn rules(detections: &[&str]) -> Arc<RuleSet> {
    let rule = |detection: &&str| {
        let text = format!("title: t\nlogsource: {{product: windows}}\ndetection:\n  {detection}\n");
        let rule = load_rules(&text, &Placeholders::new()).remove(0);
        RuleForEvents {
            rule: rule.unwrap_or_else(|refused| panic!("{refused}: {text}")),
            alternatives: vec![any_event()],
        }
    };
    Arc::new(RuleSet::new(detections.iter().map(rule).collect()))
}

/// The indices of the rules that an event matches.
fn matches(rules: &Arc<RuleSet>, kind: &Kind, slots: &[(Found, &str)]) -> Vec<u32> {
    let mut found: Vec<Match> = Vec::new();
    Matching::new(rules.clone())
        .matches(kind, &Slots(slots), &|| false, &mut found)
        .expect("nobody stops");
    found.iter().map(|one| one.rule).collect()
}

#[test]
fn threads_share_rules_and_kinds() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<RuleSet>();
    is_shared::<Kind>();
}

#[test]
fn tells_null_from_absent() {
    let rules = rules(&[
        "s: {F: null}\n  condition: s",
        "s: {F|exists: false}\n  condition: s",
        "s: {F|exists: true}\n  condition: s",
        "s: {F: '*'}\n  condition: s",
    ]);
    let kind = rules.kind(&["F", "F"], &[None, None]);
    assert_eq!(
        matches(&rules, &kind, &[(Found::Absent, ""), (Found::Absent, "")]),
        [0, 1]
    );
    assert_eq!(
        matches(&rules, &kind, &[(Found::Absent, ""), (Found::Null, "")]),
        [0, 2]
    );
    assert_eq!(
        matches(&rules, &kind, &[(Found::Text, ""), (Found::Absent, "")]),
        [2, 3]
    );
    assert_eq!(
        matches(&rules, &kind, &[(Found::Text, ""), (Found::Null, "")]),
        [0, 2, 3]
    );
}
