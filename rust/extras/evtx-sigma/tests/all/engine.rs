//! The engine on single events, a case for each way to decide a rule.

use std::sync::Arc;

use evtx_format::Interrupt;
use evtx_sigma::{
    Alternative, EventClass, Match, Matching, Placeholders, Presence, RuleForEvents, RuleSet, Values, load_rules,
};

/// The slots of an event.
struct Slots<'a>(&'a [(Presence, &'a str)]);

impl Values for Slots<'_> {
    fn push_text(&self, slot: usize, out: &mut String) -> Presence {
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
            alternatives: vec![any_event().into()],
        }
    };
    Arc::new(RuleSet::new(detections.iter().map(rule).collect()))
}

/// The indices of the rules that an event matches.
fn matches(rules: &Arc<RuleSet>, class: &EventClass, slots: &[(Presence, &str)]) -> Vec<u32> {
    let mut found: Vec<Match> = Vec::new();
    Matching::new(rules.clone())
        .matches(class, &Slots(slots), Interrupt::NEVER, &mut found)
        .expect("nothing interrupts it");
    found.iter().map(|one| one.rule).collect()
}

#[test]
fn threads_share_rules_and_classes() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<RuleSet>();
    is_shared::<EventClass>();
}

#[test]
fn tells_null_from_absent() {
    let rules = rules(&[
        "s: {F: null}\n  condition: s",
        "s: {F|exists: false}\n  condition: s",
        "s: {F|exists: true}\n  condition: s",
        "s: {F: '*'}\n  condition: s",
    ]);
    let class = rules
        .class(&["F", "F"], &[None, None], Interrupt::NEVER)
        .expect("a class");
    assert_eq!(
        matches(&rules, &class, &[(Presence::Absent, ""), (Presence::Absent, "")]),
        [0, 1]
    );
    assert_eq!(
        matches(&rules, &class, &[(Presence::Absent, ""), (Presence::Null, "")]),
        [0, 2]
    );
    assert_eq!(
        matches(&rules, &class, &[(Presence::Text, ""), (Presence::Absent, "")]),
        [2, 3]
    );
    assert_eq!(
        matches(&rules, &class, &[(Presence::Text, ""), (Presence::Null, "")]),
        [0, 2, 3]
    );
}

/// Events with one text in the field F, and which of the rules they match.
fn check(detections: &[&str], expected: &[(&str, &[u32])]) {
    let rules = rules(detections);
    for (text, expected) in expected {
        // The text is the event's, then the class's, then one of two values.
        let class = rules.class(&["F"], &[None], Interrupt::NEVER).expect("a class");
        assert_eq!(
            matches(&rules, &class, &[(Presence::Text, text)]),
            *expected,
            "{text:?}"
        );
        let class = rules.class(&["F"], &[Some(text)], Interrupt::NEVER).expect("a class");
        assert_eq!(
            matches(&rules, &class, &[(Presence::Absent, "")]),
            *expected,
            "known {text:?}"
        );
        let class = rules
            .class(&["F", "F"], &[None, None], Interrupt::NEVER)
            .expect("a class");
        let slots = [(Presence::Null, ""), (Presence::Text, *text)];
        assert_eq!(matches(&rules, &class, &slots), *expected, "after NULL: {text:?}");
    }
}

/// A rule with one item.
fn item(item: &str) -> String {
    format!("s: {{{item}}}\n  condition: s")
}

fn check_items(items: &[&str], expected: &[(&str, &[u32])]) {
    let detections: Vec<String> = items.iter().map(|one| item(one)).collect();
    check(&detections.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

#[test]
fn folds_characters() {
    check_items(
        &[
            "F: straẞe",
            "F|contains: K",
            "F|endswith: İ",
            "F|contains: i",
            "F|contains|cased: K",
            "F|startswith: Σ",
        ],
        &[
            ("Straße", &[0]),
            ("strasse", &[]),
            ("\u{212A}elvin", &[1, 3]),
            ("Kelvin", &[1, 3, 4]),
            ("İ", &[2]),
            ("i", &[3]),
            ("ς", &[5]),
        ],
    );
}

#[test]
fn finds_needles_in_each_other() {
    check_items(
        &[
            "F|contains: ab",
            "F|contains: abc",
            "F|contains: bc",
            "F|contains: b",
            "F|contains: abab",
            "F|endswith: bab",
            "F|startswith: aba",
            "F: ab",
            "F: 'ab*'",
            "F|contains: ''",
            "F: ''",
            "F|endswith: ''",
            "F|contains|all: [aba, bab]",
        ],
        &[
            ("", &[9, 10, 11]),
            ("ab", &[0, 3, 7, 8, 9, 11]),
            ("xABC", &[0, 1, 2, 3, 9, 11]),
            ("ababab", &[0, 3, 4, 5, 6, 8, 9, 11, 12]),
            ("xabax", &[0, 3, 9, 11]),
        ],
    );
}

/// More needles that are ends of each other than an automaton takes.
#[test]
fn finds_needles_that_are_ends_of_many() {
    let items: Vec<String> = (1..30)
        .map(|length| format!("F|contains: '{}'", "a".repeat(length)))
        .collect();
    let ends: Vec<String> = (1..30)
        .map(|length| format!("F|endswith: 'b{}'", "a".repeat(length)))
        .collect();
    let items: Vec<&str> = items.iter().chain(&ends).map(String::as_str).collect();
    let all: Vec<u32> = (0..29).collect();
    check_items(
        &items,
        &[
            ("b", &[]),
            ("xaaay", &all[..3]),
            (&"A".repeat(40), &all),
            ("baaa", &[0, 1, 2, 31]),
        ],
    );
}

#[test]
fn finds_wildcards_and_long_needles() {
    let long = "x".repeat(100);
    let items = [
        "F: '*a?b*'".to_string(),
        "F: 'a*b'".to_string(),
        "F: '?'".to_string(),
        r"F: '*\*a*'".to_string(),
        format!("F|contains: '{long}'"),
        format!("F|endswith: 'y{long}'"),
        format!("F|startswith: '{long}'"),
        format!("F: '{long}'"),
        r"F|endswith: '\a.exe'".to_string(),
        r"F|endswith: '\b\a.exe'".to_string(),
    ];
    check_items(
        &items.each_ref().map(String::as_str),
        &[
            ("aXb", &[0, 1]),
            ("ab", &[1]),
            ("-a\nb-", &[0]),
            ("*", &[2]),
            ("*A", &[3]),
            (&long.to_uppercase(), &[4, 6, 7]),
            (&long[1..], &[]),
            (&format!("y{long}"), &[4, 5]),
            (&format!("{long}y"), &[4, 6]),
            (r"c:\B\A.EXE", &[8, 9]),
            (r"\a.exe", &[8]),
            ("a.exe", &[]),
            (r"\a.exe\", &[]),
        ],
    );
}

#[test]
fn decides_what_is_no_needle() {
    check_items(
        &[
            "F|neq: a",
            "F|re: '^[ab]+$'",
            "F|re|i: 'k(l|m)'",
            "F|cidr: 10.0.0.0/8",
            "F|gt: 5",
            "F|fieldref: F",
            "F|fieldref: G",
            "F|cased: A",
            "F|contains|neq: [a, b]",
            "G: null",
            "G|exists: false",
            "F|exists: false",
        ],
        &[
            ("a", &[1, 5, 9, 10]),
            ("A", &[5, 7, 9, 10]),
            ("ab", &[0, 1, 5, 9, 10]),
            ("\u{212A}L", &[0, 2, 5, 8, 9, 10]),
            ("10.2.3.4", &[0, 3, 5, 8, 9, 10]),
            ("0x10", &[0, 4, 5, 8, 9, 10]),
        ],
    );
}

#[test]
fn looks_for_keywords_in_every_value() {
    let rules = rules(&[
        "s: [one, 't?o']\n  condition: s",
        "s: {'|all': [one, two]}\n  condition: s",
        "s: {'|re': 'o$'}\n  f: {F: two}\n  condition: s and not f",
    ]);
    let class = rules
        .class(&["F", "G", "H"], &[None, Some("a ONE b"), None], Interrupt::NEVER)
        .expect("a class");
    let matches = |f, h| {
        matches(
            &rules,
            &class,
            &[(Presence::Text, f), (Presence::Absent, ""), (Presence::Text, h)],
        )
    };
    assert_eq!(matches("", ""), [0]);
    assert_eq!(matches("two", ""), [0, 1]);
    assert_eq!(matches("", "two"), [0, 1, 2]);
    let class = rules.class(&["F"], &[None], Interrupt::NEVER).expect("a class");
    assert!(self::matches(&rules, &class, &[(Presence::Null, "")]).is_empty());
}

#[test]
fn a_kind_that_can_match_nothing_is_empty() {
    let rules = rules(&[&item("F: a, G: b"), &item("EventID: 4, F: a")]);
    assert!(
        rules
            .class(&["F"], &[None], Interrupt::NEVER)
            .expect("a class")
            .is_empty()
    );
    assert!(
        rules
            .class(&["F", "G"], &[Some("b"), None], Interrupt::NEVER)
            .expect("a class")
            .is_empty()
    );
    assert!(
        rules
            .class(&["EventID", "F"], &[Some("5"), None], Interrupt::NEVER)
            .expect("a class")
            .is_empty()
    );
    assert!(
        !rules
            .class(&["EventID", "F"], &[Some("4"), None], Interrupt::NEVER)
            .expect("a class")
            .is_empty()
    );
    let certain = rules
        .class(&["F", "G"], &[Some("A"), Some("B")], Interrupt::NEVER)
        .expect("a class");
    assert_eq!(
        matches(&rules, &certain, &[(Presence::Absent, ""), (Presence::Absent, "")]),
        [0]
    );
}

/// Counts how often each slot is asked for.
struct Counted<'a> {
    slots: Slots<'a>,
    asked: std::cell::RefCell<Vec<u32>>,
}

impl Values for Counted<'_> {
    fn push_text(&self, slot: usize, out: &mut String) -> Presence {
        self.asked.borrow_mut()[slot] += 1;
        self.slots.push_text(slot, out)
    }
}

#[test]
fn decodes_what_rules_look_at_and_only_once() {
    let rules = rules(&[r"s: {F|contains: aaaa, G|contains: b}
  n: {F: x, H: y}
  condition: s and not n"]);
    let class = rules
        .class(&["F", "G", "H", "I"], &[None; 4], Interrupt::NEVER)
        .expect("a class");
    let asked = |f| {
        let slots = [
            (Presence::Text, f),
            (Presence::Text, "b"),
            (Presence::Text, "y"),
            (Presence::Text, "z"),
        ];
        let values = Counted {
            slots: Slots(&slots),
            asked: vec![0; 4].into(),
        };
        let mut found = Vec::new();
        let mut matching = Matching::new(rules.clone());
        matching
            .matches(&class, &values, Interrupt::NEVER, &mut found)
            .expect("nothing interrupts it");
        (found.len(), values.asked.into_inner())
    };
    assert_eq!(asked("b"), (0, vec![1, 0, 0, 0]));
    assert_eq!(asked("aaaa"), (1, vec![1, 1, 0, 0]));
}

#[test]
fn stops_in_the_middle_of_a_text() {
    let rules = rules(&[&item("F|contains: b"), &item("F: 'a*?c*d'")]);
    let class = rules.class(&["F"], &[None], Interrupt::NEVER).expect("a class");
    let text = "a".repeat(1 << 20);
    let mut matching = Matching::new(rules.clone());
    for stop_after in 0..5 {
        let asked = std::cell::Cell::new(0);
        let stop = || {
            asked.set(asked.get() + 1);
            asked.get() > stop_after
        };
        let mut found = Vec::new();
        let slots = [(Presence::Text, text.as_str())];
        assert!(
            matching
                .matches(&class, &Slots(&slots), Interrupt::new(&stop), &mut found)
                .is_err()
        );
        assert_eq!((asked.get(), found), (stop_after + 1, Vec::new()));
    }
    // What the stopped work left behind does no harm.
    let slots = [(Presence::Text, "ab")];
    let mut found = Vec::new();
    matching
        .matches(&class, &Slots(&slots), Interrupt::NEVER, &mut found)
        .expect("nothing interrupts it");
    assert_eq!(found.len(), 1);
}

/// Many short values and many short tests.
#[test]
fn stops_between_short_values() {
    let values: Vec<String> = (0..500).map(|number| format!("'{number}*x?y'")).collect();
    let rules = rules(&[
        &item(&format!("Data: [{}]", values.join(", "))),
        &item("Data|neq: x, Data|cased|neq: Y"),
    ]);
    let names = vec!["Data"; 500];
    let class = rules
        .class(&names, &vec![None; names.len()], Interrupt::NEVER)
        .expect("a class");
    let texts: Vec<String> = (0..500).map(|number| format!("{number}x")).collect();
    let slots: Vec<(Presence, &str)> = texts.iter().map(|text| (Presence::Text, text.as_str())).collect();
    let asked = std::cell::Cell::new(0);
    let count = || {
        asked.set(asked.get() + 1);
        false
    };
    let mut found = Vec::new();
    let mut matching = Matching::new(rules.clone());
    matching
        .matches(&class, &Slots(&slots), Interrupt::new(&count), &mut found)
        .expect("nothing interrupts it");
    assert_eq!(found.len(), 1);
    assert!(asked.get() > 500, "{}", asked.get());
}
