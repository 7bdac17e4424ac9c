//! Correlations and aggregations: what loads, what they find, and what bad input does.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use cpu_time::ThreadTime;
use evtx_format::Interrupt;
use evtx_sigma::correlation::RecordLocation;
use evtx_sigma::{Burst, Correlations, Hits, Limits, Rule};

use super::common::{add, documents};

const SECOND: i64 = 1_000_000_000;

/// Loads rules and correlations, and resolves them. Returns the errors of correlations.
fn load(text: &str) -> (Arc<Correlations>, Vec<Option<String>>) {
    let (mut rules, mut correlations) = (Vec::new(), Vec::new());
    for document in documents(text) {
        add(document.expect("a document"), &mut rules, &mut correlations);
    }
    let rules: Vec<&Rule> = rules.iter().collect();
    let (resolved, errors) = Correlations::resolve(&rules, correlations);
    let errors = errors.into_iter().map(|error| error.map(|error| error.to_string()));
    (Arc::new(resolved), errors.collect())
}

fn rule(name: &str) -> String {
    format!(
        "---\ntitle: {name}\nname: {name}\nid: id-{name}\nlogsource: {{product: p}}\ndetection: {{s: {{F: x}}, condition: s}}\n"
    )
}

fn correlation(name: &str, lines: &[&str]) -> String {
    format!(
        "---\ntitle: {name}\nname: {name}\ncorrelation:\n  {}\n",
        lines.join("\n  ")
    )
}

fn refused(text: &str) -> String {
    documents(text).pop().expect("a document").expect_err(text).to_string()
}

/// A rule, a time in seconds, and the values of fields.
type Hit<'a> = (u32, i64, &'a [(&'a str, &'a str)]);

/// Sweeps hits.
fn bursts(correlations: &Arc<Correlations>, all: &[Hit<'_>]) -> Vec<Burst> {
    let mut hits = Hits::new(correlations.clone(), Arc::default());
    for (index, (rule, time, fields)) in all.iter().enumerate() {
        hits.push(*rule, time * SECOND, location(index as u64), &mut |field, text| {
            let value = fields.iter().find(|(name, _)| *name == field);
            text.push_str(value.map_or("", |(_, value)| value));
            value.is_some()
        });
    }
    let (bursts, problems) = correlations
        .sweep(vec![hits], Interrupt::NEVER)
        .expect("nothing interrupts it");
    assert!(problems.is_empty());
    bursts
}

fn location(record_id: u64) -> RecordLocation {
    RecordLocation {
        file: 0,
        offset: record_id,
        record_id,
    }
}

/// The first and last second of bursts, and the number of hits.
fn spans(bursts: &[Burst]) -> Vec<(i64, i64, u64)> {
    bursts
        .iter()
        .map(|burst| (burst.first / SECOND, burst.last / SECOND, burst.count))
        .collect()
}

#[test]
fn a_burst_is_the_first_window_that_meets_the_condition() {
    let counted = [
        "type: event_count",
        "rules: [a]",
        "group-by: [User]",
        "timespan: 10s",
        "condition: {gte: 3}",
    ];
    let (correlations, errors) = load(&(rule("a") + &correlation("c", &counted)));
    assert_eq!(errors, [None]);
    let at = |time| (0, time, &[("User", "x")][..]);
    // 0 to 10 s is a window, 11 to 21 s the next one; two hits are left.
    let all: Vec<_> = [0, 5, 10, 11, 12, 21, 22, 23].map(at).to_vec();
    let found = bursts(&correlations, &all);
    assert_eq!(spans(&found), [(0, 10, 3), (11, 21, 3)]);
    assert_eq!(found[0].group, [("User".to_string(), Some("x".to_string()))]);
    assert_eq!(found[0].records, [(0, location(0)), (0, location(1)), (0, location(2))]);
    assert_eq!((found[0].location, found[0].value), (location(2), None));
    // Another group, and hits without the field, which are a group too.
    let mixed: Vec<_> = [
        at(0),
        (0, 1, &[("User", "y")][..]),
        (0, 2, &[][..]),
        (0, 3, &[][..]),
        (0, 4, &[][..]),
        at(5),
    ]
    .to_vec();
    let found = bursts(&correlations, &mixed);
    assert_eq!(spans(&found), [(2, 4, 3)]);
    assert_eq!(found[0].group, [("User".to_string(), None)]);
}

#[test]
fn an_event_that_several_rules_match_counts_once() {
    let counted = [
        "type: event_count",
        "rules: [a, id-b]",
        "timespan: 10s",
        "condition: {eq: 2}",
    ];
    let (correlations, _) = load(&(rule("a") + &rule("b") + &correlation("c", &counted)));
    let mut hits = Hits::new(correlations.clone(), Arc::default());
    for (rule, record) in [(0, 1), (1, 1), (1, 2), (7, 3)] {
        hits.push(rule, 0, location(record), &mut |_, _| false);
    }
    let (found, _) = correlations
        .sweep(vec![hits], Interrupt::NEVER)
        .expect("nothing interrupts it");
    assert_eq!(found[0].records, [(0, location(1)), (1, location(2))]);
}

/// The rules of Hayabusa's issues 1446 (temporal) and 1447 (a spray of passwords, then a logon, in this order).
#[test]
fn finds_what_hayabusa_was_asked_for() {
    let temporal = [
        "type: temporal",
        "rules: [failed, success]",
        "group-by: [Computer]",
        "timespan: 1m",
        "generate: true",
    ];
    let (correlations, _) = load(&(rule("failed") + &rule("success") + &correlation("c", &temporal)));
    assert!(correlations.is_base(0) && !correlations.is_silent(0));
    let (a, b): (&[_], &[_]) = (&[("Computer", "A")], &[("Computer", "B")]);
    let all = [
        (1, 0, a),
        (0, 30, a),
        (0, 100, a),
        (1, 161, a),
        (0, 200, a),
        (1, 210, b),
    ];
    assert_eq!(spans(&bursts(&correlations, &all)), [(0, 30, 2), (161, 200, 2)]);

    let spray = [
        "type: value_count",
        "rules: [failed]",
        "group-by: [IpAddress, Computer]",
        "timespan: 5m",
        "condition: {gte: 3, field: TargetUserName}",
    ];
    let ordered = [
        "type: temporal_ordered",
        "rules: [spray, success]",
        "group-by: [Computer]",
        "timespan: 10m",
    ];
    let text = rule("failed") + &rule("success") + &correlation("c", &ordered) + &correlation("spray", &spray);
    let (correlations, errors) = load(&text);
    assert_eq!(errors, [None, None]);
    assert!(correlations.is_silent(0) && correlations.is_silent(1));
    assert!(correlations.is_silent_correlation(1) && !correlations.is_silent_correlation(0));
    let failed = |user| [("IpAddress", "1.2.3.4"), ("Computer", "A"), ("TargetUserName", user)];
    let (x, y, z) = (failed("x"), failed("y"), failed("z"));
    let before = bursts(&correlations, &[(1, 0, a), (0, 1, &x), (0, 2, &y), (0, 3, &z)]);
    assert_eq!(before, []);
    let other_computer = bursts(&correlations, &[(0, 1, &x), (0, 2, &y), (0, 3, &z), (1, 4, b)]);
    assert_eq!(other_computer, []);
    let late = bursts(&correlations, &[(0, 1, &x), (0, 2, &y), (0, 3, &z), (1, 602, a)]);
    assert_eq!(late, []);
    let found = bursts(&correlations, &[(0, 1, &x), (0, 2, &y), (0, 3, &z), (1, 4, a)]);
    assert_eq!(spans(&found), [(1, 4, 2)]);
    assert_eq!(found[0].records.len(), 4);
    assert_eq!((found[0].correlation, found[0].location), (0, location(3)));
}

/// Hayabusa's issue 1810: the order holds for all rules, not for the first alone.
#[test]
fn three_rules_match_in_their_order() {
    let ordered = ["type: temporal_ordered", "rules: [a, b, c]", "timespan: 10s"];
    let text = rule("a") + &rule("b") + &rule("c") + &correlation("d", &ordered);
    let (correlations, _) = load(&text);
    let none: &[_] = &[];
    assert_eq!(bursts(&correlations, &[(0, 0, none), (2, 1, none), (1, 2, none)]), []);
    assert_eq!(bursts(&correlations, &[(0, 0, none), (1, 5, none), (2, 11, none)]), []);
    // The first hit of `a` is too early, the second is not.
    let all = [(0, 0, none), (0, 3, none), (1, 5, none), (2, 11, none)];
    assert_eq!(spans(&bursts(&correlations, &all)), [(3, 11, 3)]);
}

#[test]
fn compares_numbers_and_percentages() {
    let numbers = |condition: &str, kind: &str| {
        let lines = [
            &format!("type: {kind}"),
            "rules: [a]",
            "timespan: 1h",
            &format!("condition: {{field: N, {condition}}}"),
        ];
        let (correlations, _) = load(&(rule("a") + &correlation("c", &lines)));
        let (one, two, huge): (&[_], &[_], &[_]) = (&[("N", "0.1")], &[("N", "0.2")], &[("N", "0x10")]);
        let all = [
            (0, 0, one),
            (0, 1, two),
            (0, 2, &[("N", "x")][..]),
            (0, 3, &[][..]),
            (0, 4, huge),
        ];
        bursts(&correlations, &all).first().and_then(|burst| burst.value)
    };
    assert_eq!(numbers("eq: 16.3", "value_sum"), Some(16.3));
    assert_eq!(numbers("gt: 5", "value_avg"), Some(16.3 / 3.0));
    assert_eq!(numbers("gt: 0, percentile: 50", "value_percentile"), Some(0.2));
    // Of four values, each is a quarter.
    assert_eq!(numbers("lte: 25", "value_percentile"), Some(25.0));
    assert_eq!(numbers("gte: 4", "value_count"), Some(4.0));
    assert_eq!(numbers("gt: 17", "value_sum"), None);
}

#[test]
fn aggregations_of_sigma_1_are_correlations() {
    let rule = |rest: &str, timeframe: &str| {
        format!(
            "title: t\nid: i\nlogsource: {{product: p}}\ndetection: {{s: {{F: x}}, b: {{G: y}}, {timeframe}condition: 's | {rest}'}}\n"
        )
    };
    let (correlations, errors) = load(&rule("count() by User, Host > 1", "timeframe: 5m, "));
    assert!(errors == [None] && correlations.is_silent(0) && correlations.is_base(0));
    let one = &correlations.all()[0];
    assert_eq!(
        (one.about.id.as_deref(), one.group_by.len(), one.timespan),
        (Some("i"), 2, Some(300 * SECOND))
    );
    let none: &[_] = &[];
    assert_eq!(
        spans(&bursts(&correlations, &[(0, 0, none), (0, 300, none), (0, 601, none)])),
        [(0, 300, 2)]
    );
    // Without a timeframe, the window has no end.
    let (correlations, _) = load(&rule("count(User) > 1", ""));
    let all: [(u32, i64, &[_]); 3] = [
        (0, 0, &[("User", "x")]),
        (0, 5, &[("User", "x")]),
        (0, 9_000_000, &[("User", "y")]),
    ];
    assert_eq!(spans(&bursts(&correlations, &all)), [(0, 9_000_000, 3)]);
    let (correlations, _) = load(&rule("near b", "timeframe: 5s, "));
    assert!(correlations.is_silent(1));
    assert_eq!(
        spans(&bursts(&correlations, &[(1, 0, none), (0, 5, none)])),
        [(0, 5, 2)]
    );
    assert_eq!(
        refused(&rule("near c", "")),
        "line 4, column 50: the condition names \"c\", but this rule has no such detection"
    );
    assert_eq!(
        refused(&rule("count() > 1", "timeframe: 5x, ")),
        "line 4, column 46: a timespan is a whole number and s, m, h or d, such as 90m, but this is \"5x\""
    );
    let list = "title: t\nlogsource: {product: p}\ndetection: {s: {F: x}, condition: [s, 's | count() > 1']}";
    assert!(refused(list).contains("a condition with an aggregation must be the only one"));
}

#[test]
fn says_why_a_correlation_cannot_be_used() {
    let count = |rules: &str| {
        [
            "type: event_count".to_string(),
            format!("rules: [{rules}]"),
            "timespan: 1s".to_string(),
            "condition: {gte: 1}".to_string(),
        ]
    };
    let counted = |name: &str, rules: &str| correlation(name, &count(rules).each_ref().map(String::as_str));
    let text = rule("a")
        + &counted("own", "own")
        + &counted("x", "y")
        + &counted("y", "x")
        + &counted("z", "a, x")
        + &counted("unknown", "a, nothing")
        + &counted("above", "unknown")
        + &counted("twice", "a, ID-A")
        + &counted("good", "a");
    let (correlations, errors) = load(&text);
    let cycle = |line: u32| {
        Some(format!(
            "line {line}, column 1: this correlation refers to itself by other correlations, or to one that does"
        ))
    };
    assert_eq!(
        errors[0].as_deref(),
        Some("line 12, column 11: this correlation refers to itself")
    );
    assert_eq!(errors[1..4], [cycle(18), cycle(26), cycle(34)]);
    assert_eq!(
        errors[4].as_deref(),
        Some("line 44, column 14: no rule with the ID or name \"nothing\" is used")
    );
    assert!(
        errors[5]
            .as_ref()
            .expect("an error")
            .contains("\"unknown\", which cannot be used")
    );
    assert!(
        errors[6]
            .as_ref()
            .expect("an error")
            .contains("refers to \"ID-A\" twice")
    );
    assert_eq!(
        (
            &errors[7],
            correlations.all().len(),
            &*correlations.all()[0].about.title
        ),
        (&None, 1, "good")
    );

    // A long chain ends somewhere.
    let chain: String = (0..100)
        .map(|link| counted(&format!("c{}", link + 1), &format!("c{link}")))
        .collect();
    let (correlations, errors) = load(&(rule("c0") + &chain));
    assert_eq!(correlations.all().len(), Limits::CORRELATIONS_OF_RULE);
    let error = errors[Limits::CORRELATIONS_OF_RULE].as_ref().expect("an error");
    assert!(error.contains("the limit is 64 correlations that use a rule"));
    // So do the correlations of a rule.
    let many: String = (0..100).map(|number| counted(&format!("d{number}"), "c0")).collect();
    assert_eq!(load(&(rule("c0") + &many)).0.all().len(), Limits::CORRELATIONS_OF_RULE);
}

#[test]
fn refuses_conditions_that_never_hold() {
    for (kind, rest, conditions) in [
        (
            "event_count",
            "",
            &[
                "gt: 5, lt: 3",
                "lt: 1",
                "lt: 0",
                "eq: 1.5",
                "gt: 1, lt: 2",
                "lte: 0",
                "eq: 2, neq: 2",
            ][..],
        ),
        ("value_count", "field: F, ", &["lt: 0", "gt: 2, lt: 3"]),
        ("value_sum", "field: F, ", &["gt: 5, lt: 5", "gte: 1, lte: 1, neq: 1"]),
        ("value_percentile", "field: F, ", &["gt: 100", "lt: 0"]),
        ("temporal", "", &["gte: 3", "lt: 0"]),
        ("temporal_ordered", "", &["gt: 2", "gt: 1, lt: 2"]),
    ] {
        for condition in conditions {
            let line = format!("condition: {{{rest}{condition}}}");
            let error = refused(&correlation(
                "c",
                &[&format!("type: {kind}"), "rules: [a, b]", "timespan: 1s", &line],
            ));
            assert!(
                error.contains("line 8, column 14: no number meets this condition"),
                "{kind} {condition}: {error}"
            );
        }
    }
    for (kind, condition) in [
        ("event_count", "neq: 2, gt: 0, lt: 4"),
        ("value_count", "field: F, lt: 1"),
        ("value_sum", "field: F, gt: 5, lt: 5.5, neq: 5.25"),
        ("value_sum", "field: F, lt: -1e300"),
        ("value_percentile", "field: F, percentile: 5, gt: 100"),
        ("temporal", "lt: 1"),
    ] {
        let line = format!("condition: {{{condition}}}");
        let text = correlation("c", &[&format!("type: {kind}"), "rules: [a, b]", "timespan: 1s", &line]);
        let documents = documents(&text);
        assert!(documents.iter().all(Result::is_ok), "{documents:?}");
    }
    let rule = |condition: &str, timeframe: &str| {
        format!(
            "title: t\nlogsource: {{product: p}}\n{timeframe}detection: {{s: {{F: x}}, condition: 's | {condition}'}}\n"
        )
    };
    assert!(refused(&rule("count() < 1", "")).ends_with("so the rule can never match"));
    assert!(refused(&rule("count(*) > 1", "")).ends_with("to count events, write count()"));
    assert!(refused(&rule("count() > 1", "timeframe: 5m\n")).contains("line 3, column 1: \"timeframe\" belongs in"));
    let both = correlation("c", &["type: temporal", "rules: [a]", "timespan: 1s"]) + "detection: {}\n";
    assert!(refused(&both).contains("a document with \"correlation\" has no \"detection\""));
}

#[test]
fn says_what_is_wrong_in_a_correlation_rule() {
    for (lines, why) in [
        (&["rules: [a]", "timespan: 1s"][..], "\"type\" is missing"),
        (
            &["type: count", "rules: [a]", "timespan: 1s"],
            "there is no type of correlation \"count\"",
        ),
        (&["type: temporal", "timespan: 1s"], "\"rules\" is missing"),
        (
            &["type: temporal", "rules: []", "timespan: 1s"],
            "the list of rules is empty",
        ),
        (&["type: temporal", "rules: [a]"], "\"timespan\" is missing"),
        (
            &["type: temporal", "rules: [a]", "timespan: 1w"],
            "a timespan is a whole number and s, m, h or d",
        ),
        (
            &["type: temporal", "rules: [a]", "timespan: 999999999d"],
            "a timespan is at most 106751 days",
        ),
        (
            &["type: event_count", "rules: [a]", "timespan: 1s"],
            "\"condition\" is missing",
        ),
        (
            &[
                "type: event_count",
                "rules: [a]",
                "timespan: 1s",
                "condition: {field: x}",
            ],
            "\"gt, gte, lt, lte, eq or neq\" is missing",
        ),
        (
            &["type: value_sum", "rules: [a]", "timespan: 1s", "condition: {gt: 1}"],
            "\"field\" is missing",
        ),
        (
            &[
                "type: value_sum",
                "rules: [a]",
                "timespan: 1s",
                "condition: {gt: 1, field: [a, b]}",
            ],
            "numbers are those of one field",
        ),
        (
            &["type: event_count", "rules: [a]", "timespan: 1s", "condition: {gt: x}"],
            "gt must be a number, but this is a text",
        ),
        (
            &["type: event_count", "rules: [a]", "timespan: 1s", "condition: {ge: 1}"],
            "there is no key \"ge\"",
        ),
        (
            &["type: temporal", "rules: [a]", "timespan: 1s", "groupby: x"],
            "there is no key \"groupby\"",
        ),
        (
            &["type: temporal", "rules: [a]", "timespan: 1s", "generate: maybe"],
            "generate must be true or false",
        ),
        (
            &["type: temporal", "rules: [a]", "timespan: 1s", "group-by: ['']"],
            "the name of this field is empty",
        ),
    ] {
        let error = refused(&correlation("c", lines));
        assert!(error.contains(why), "{error}");
    }
    let many = format!("rules: [{}]", vec!["a"; 65].join(", "));
    let error = refused(&correlation("c", &["type: temporal", &many, "timespan: 1s"]));
    assert!(
        error.contains("the limit is 64 rules that a correlation refers to"),
        "{error}"
    );
}

/// The longest processor time that a sweep does not ask whether to stop, and the bursts that it finds.
fn longest_silence(correlations: &Correlations, hits: Vec<Hits>) -> (Duration, Vec<Burst>) {
    let (asked, longest) = (Cell::new(ThreadTime::now()), Cell::new(Duration::ZERO));
    let stop = || {
        longest.set(longest.get().max(asked.replace(ThreadTime::now()).elapsed()));
        false
    };
    let (found, problems) = correlations
        .sweep(hits, Interrupt::new(&stop))
        .expect("nothing interrupts it");
    stop();
    assert!(problems.is_empty());
    (longest.get(), found)
}

/// A million hits in as many groups take at most 64 MB, apart from their texts; with an interrupt, a sweep ends at once.
#[test]
#[ignore = "slow"]
fn a_million_groups_take_bounded_time_and_memory() {
    let lines = [
        "type: value_count",
        "rules: [a]",
        "group-by: [G]",
        "timespan: 3650d",
        "condition: {gte: 2, field: V}",
    ];
    let (correlations, _) = load(&(rule("a") + &correlation("c", &lines)));
    let hits = |groups: u64| {
        let mut hits = Hits::new(correlations.clone(), Arc::default());
        for number in 0..1_000_000_u64 {
            let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let time = (mixed >> 1) as i64;
            hits.push(0, time, location(number), &mut |field, text| {
                text.push_str(&(if field == "G" { number % groups } else { number % 7 }).to_string());
                true
            });
        }
        hits
    };
    let few = hits(10);
    assert!(few.bytes() + 24_000_000 < 72_000_000, "{}", few.bytes());
    let (found, problems) = correlations
        .sweep(vec![few], Interrupt::NEVER)
        .expect("nothing interrupts it");
    assert!(problems.is_empty() && !found.is_empty());
    let (found, problems) = correlations
        .sweep(vec![hits(1_000_000)], Interrupt::NEVER)
        .expect("nothing interrupts it");
    assert!(problems.is_empty() && found.is_empty());

    let (silence, _) = longest_silence(&correlations, vec![hits(500_000), hits(1_000_000)]);
    println!(
        "promise: interrupts of a sweep: {:.3} s of 0.1 s",
        silence.as_secs_f64()
    );
    // It is a tenth of this in a release build.
    assert!(silence < Duration::from_secs(1), "{silence:?}");
    assert!(correlations.sweep(vec![hits(10)], Interrupt::new(&|| true)).is_err());
}

#[test]
fn too_many_hits_are_a_problem_of_the_correlations_that_need_them() {
    let counted = ["type: event_count", "rules: [a]", "timespan: 1s", "condition: {gte: 2}"];
    let above = ["type: event_count", "rules: [c]", "timespan: 1s", "condition: {gte: 1}"];
    let (a, b) = (rule("a"), rule("b"));
    let other = correlation(
        "d",
        &["type: event_count", "rules: [b]", "timespan: 1s", "condition: {gte: 1}"],
    );
    let text = a + &b + &correlation("c", &counted) + &correlation("above", &above) + &other;
    let (correlations, _) = load(&text);
    let mut threads = Vec::new();
    for _ in 0..2 {
        let mut hits = Hits::new(correlations.clone(), Arc::default());
        hits.push(1, 0, location(1), &mut |_, _| false);
        for number in 0..=Limits::HITS as u64 / 2 {
            hits.push(0, 0, location(number), &mut |_, _| false);
        }
        threads.push(hits);
    }
    let (found, problems) = correlations
        .sweep(threads, Interrupt::NEVER)
        .expect("nothing interrupts it");
    assert_eq!(found.iter().map(|burst| burst.correlation).collect::<Vec<_>>(), [2]);
    let problems: Vec<_> = problems.iter().map(|(index, why)| (*index, why.to_string())).collect();
    assert_eq!(problems.iter().map(|(index, _)| *index).collect::<Vec<_>>(), [0, 1]);
    assert!(
        problems[0].1.starts_with("the limit is 10000000 hits"),
        "{}",
        problems[0].1
    );
}

/// All hits at once, and a window of years: the longest sweep there is.
#[test]
#[ignore = "takes a gigabyte and some seconds"]
fn ten_million_hits_in_one_window() {
    for kind in [
        "event_count",
        "value_count",
        "value_sum",
        "value_percentile",
        "temporal_ordered",
    ] {
        let field = if kind.starts_with("value") { ", field: V" } else { "" };
        let lines = [
            &format!("type: {kind}"),
            "rules: [a]",
            "timespan: 36500d",
            &format!("condition: {{gte: 0{field}}}"),
        ];
        let (correlations, _) = load(&(rule("a") + &correlation("c", &lines)));
        let mut hits = Hits::new(correlations.clone(), Arc::default());
        for number in 0..Limits::HITS as u64 {
            let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            hits.push(0, (mixed >> 3) as i64, location(number), &mut |_, text| {
                text.push_str(&(mixed >> 50).to_string());
                true
            });
        }
        let bytes = hits.bytes();
        let (silence, found) = longest_silence(&correlations, vec![hits]);
        eprintln!(
            "{kind}: {bytes} bytes, longest without a question {silence:?}, {} bursts",
            found.len()
        );
        assert!(found[0].count == Limits::HITS as u64);
    }
}
