//! Damaged rules load, or are refused with a position in them. Those that load can be evaluated.

use evtx_format::Interrupt;
use evtx_sigma::{LogSources, Placeholders, load_rules};
use proptest::prelude::*;

const RULE: &str = r"title: &t A rule
id: 0123
level: high
tags: [attack.t1059, *t]
logsource: {category: process_creation, product: windows}
detection:
  sel_a:
    - Image|endswith|windash: ['\-a.exe', 'b*?\*']
      F|re|i: '^[\w\[x]{1,3}(a|b)+\<$'
    - 'key*word'
  sel_b:
    F|base64offset|contains|all: [abc, 12]
    G|cidr: 10.0.0.0/8
    T|hour|gte: 1.5
    H|fieldref|neq: F
    N: null
    P|expand: '\%%p%%'
  condition:
    - 1 of sel_* and not (sel_b or all of them)
    - any of sel*b
";

const TABLE: &str =
    "logsources:\n- {category: c, channels: [x], event_ids: [1, 2], fields: {F|lt: 1}, renames: {A: B}}\n";

/// A text with some places removed or replaced.
fn damaged(text: &'static str) -> impl Strategy<Value = String> {
    let change = (
        0..text.len(),
        0..12_usize,
        "[-a-c0-2:|*?&\\[\\]{}()'\"%\\\\#>~! \n\u{e4}\u{0}]{0,3}",
    );
    prop::collection::vec(change, 0..4).prop_map(move |changes| {
        let mut text: Vec<char> = text.chars().collect();
        for (start, length, new) in changes {
            let start = start.min(text.len());
            let end = (start + length).min(text.len());
            text.splice(start..end, new.chars());
        }
        text.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000.max(ProptestConfig::default().cases), ..ProptestConfig::default() })]

    #[test]
    #[ignore = "slow"]
    fn damaged_rules_are_rules_or_errors_with_a_place(text in damaged(RULE)) {
        let placeholders = Placeholders::from([("p".to_string(), vec!["*".to_string(), String::new()])]);
        let event = [("F", Some("-a")), ("G", Some("10.1.1.1")), ("T", Some("2024-01-01 02:03:04")), ("N", None)];
        let lines = u32::try_from(text.split(['\n', '\r']).count()).expect("lines");
        for rule in load_rules(&text, &placeholders) {
            match rule {
                Ok(rule) => {
                    rule.matches(&&event[..]);
                    let _ = LogSources::builtin().resolve(&rule.log_sources);
                }
                Err(refused) => {
                    let at = refused.error.position;
                    prop_assert!(at.line >= 1 && at.line <= lines && at.column >= 1, "{}", refused);
                }
            }
        }
    }

    #[test]
    fn damaged_tables_are_tables_or_errors(text in damaged(TABLE)) {
        let lines = u32::try_from(text.split(['\n', '\r']).count()).expect("lines");
        if let Err(error) = LogSources::load(&text, Interrupt::NEVER).expect("nothing interrupts it") {
            prop_assert!(error.position.line <= lines && error.position.column >= 1, "{}", error);
        }
    }
}
