//! The meaning of rules, with a case for each sentence of `docs/sigma.md`.

use evtx_format::Interrupt;
use evtx_sigma::{Level, Matcher, Placeholders, Rule, Status, load_rules};

type Fields<'a> = &'a [(&'a str, Option<&'a str>)];

/// A rule with this detection, which is indented by two spaces in its text.
fn text_of(detection: &str) -> String {
    let lines = detection.lines().map(|line| format!("\n  {line}"));
    format!(
        "title: t\nlogsource: {{product: windows}}\ndetection:{}\n",
        lines.collect::<String>()
    )
}

fn rule_with(detection: &str, placeholders: &Placeholders) -> Rule {
    let mut rules = load_rules(&text_of(detection), placeholders);
    assert_eq!(rules.len(), 1);
    rules
        .remove(0)
        .unwrap_or_else(|refused| panic!("{refused}: {detection}"))
}

fn rule(detection: &str) -> Rule {
    rule_with(detection, &Placeholders::new())
}

/// Whether a detection of one item is true.
fn is_true(item: &str, event: Fields<'_>) -> bool {
    rule(&format!("s:\n  {item}\ncondition: s")).matches(&event).is_some()
}

fn error(detection: &str) -> String {
    load_rules(&text_of(detection), &Placeholders::new())
        .remove(0)
        .expect_err(detection)
        .to_string()
}

const COMMAND: Fields<'static> = &[("CommandLine", Some(r"C:\Windows\cmd.exe –enc ÄÖ"))];

#[test]
fn texts_compare_without_regard_to_case_unless_cased() {
    assert!(is_true(r"CommandLine: 'c:\windows\CMD.exe –ENC äö'", COMMAND));
    assert!(!is_true(r"CommandLine|cased: 'c:\windows\CMD.exe –ENC äö'", COMMAND));
    assert!(is_true(r"CommandLine|cased: 'C:\Windows\cmd.exe –enc ÄÖ'", COMMAND));
    assert!(is_true("CommandLine|contains|cased: Ä", COMMAND));
    assert!(!is_true("CommandLine|contains|cased: ä", COMMAND));
    assert!(!is_true("commandline|contains: a", COMMAND));
}

#[test]
fn places_and_wildcards() {
    assert!(is_true(r"CommandLine|startswith: 'c:\win'", COMMAND));
    assert!(is_true("CommandLine|endswith: ÄÖ", COMMAND));
    assert!(is_true(r"CommandLine: '*\cmd.exe*ö'", COMMAND));
    assert!(is_true(r"CommandLine|contains: '\w?ndows\\*.EXE'", COMMAND));
    assert!(!is_true(r"CommandLine|contains: '\w\?ndows'", COMMAND));
    assert!(is_true("F: 'a\\*b'", &[("F", Some("a*b"))]));
    assert!(!is_true("F: 'a\\*b'", &[("F", Some("axb"))]));
    assert!(is_true("F: 'a*b'", &[("F", Some("a\nb"))]));
    assert!(!is_true("F: a", &[("F", Some("a "))]));
}

#[test]
fn lists_are_alternatives_and_all_makes_them_needed() {
    assert!(is_true("F: [x, a]", &[("F", Some("A"))]));
    assert!(is_true("F|contains|all: [x, a]", &[("F", Some("-a-x-"))]));
    assert!(!is_true("F|contains|all: [x, a]", &[("F", Some("-a-"))]));
    let rule = rule("s:\n  - A: '1'\n    B: '2'\n  - C: '3'\n  - word\ncondition: s");
    assert!(rule.matches(&&[("A", Some("1")), ("B", Some("2"))][..]).is_some());
    assert!(rule.matches(&&[("A", Some("1")), ("B", Some("3"))][..]).is_none());
    assert!(rule.matches(&&[("C", Some("3"))][..]).is_some());
    assert!(rule.matches(&&[("D", Some("a Word!"))][..]).is_some());
}

#[test]
fn any_element_of_a_field_may_match() {
    let data: Fields<'_> = &[("Data", Some("one")), ("Data", None), ("Data", Some("two"))];
    assert!(is_true("Data: two", data));
    assert!(is_true("Data|contains|all: [on, tw]", data));
    assert!(!is_true("Data|contains|all: [on, tx]", data));
    assert!(is_true("Data: null", data));
    assert!(!is_true("Data|neq: two", data));
    assert!(is_true("Data|neq: three", data));
}

#[test]
fn absent_null_and_empty() {
    let event: Fields<'_> = &[("Nil", None), ("Empty", Some(""))];
    for (item, [absent, null, empty]) in [
        ("null", [true, true, false]),
        ("''", [false, false, true]),
        ("'*'", [false, false, true]),
        ("x", [false, false, false]),
    ] {
        assert_eq!(is_true(&format!("Absent: {item}"), event), absent, "{item}");
        assert_eq!(is_true(&format!("Nil: {item}"), event), null, "{item}");
        assert_eq!(is_true(&format!("Empty: {item}"), event), empty, "{item}");
    }
    for (modifier, [absent, null, empty]) in [
        ("exists: true", [false, true, true]),
        ("exists: false", [true, false, false]),
        ("neq: x", [false, false, true]),
        ("neq: ''", [false, false, false]),
        ("neq: null", [false, false, true]),
        ("contains: ''", [false, false, true]),
        ("lt: 5", [false, false, false]),
        ("re: ''", [false, false, true]),
    ] {
        assert_eq!(is_true(&format!("Absent|{modifier}"), event), absent, "{modifier}");
        assert_eq!(is_true(&format!("Nil|{modifier}"), event), null, "{modifier}");
        assert_eq!(is_true(&format!("Empty|{modifier}"), event), empty, "{modifier}");
    }
    assert!(rule("s:\n  Absent: x\ncondition: not s").matches(&event).is_some());
}

#[test]
fn numbers_and_booleans_are_their_text() {
    assert!(is_true("EventID: 4688", &[("EventID", Some("4688"))]));
    assert!(is_true("EventID: '4688'", &[("EventID", Some("4688"))]));
    assert!(!is_true("EventID: 4688", &[("EventID", Some("04688"))]));
    assert!(is_true("F|contains: 12", &[("F", Some("0123"))]));
    assert!(is_true("F: true", &[("F", Some("true"))]));
    assert!(is_true("F: 'True'", &[("F", Some("true"))]));
    assert!(is_true("F: '0x17'", &[("F", Some("0x17"))]));
    assert!(is_true("F: 0x17", &[("F", Some("23"))]));
    assert!(is_true("F|contains: 00000429", &[("F", Some("00000429"))]));
    assert!(!is_true("F|contains: 00000429", &[("F", Some("50429"))]));
    assert!(is_true("F: [0, 00]", &[("F", Some("0"))]));
    assert!(is_true("F|gt: 08", &[("F", Some("9"))]));
    for (modifier, expected) in [
        ("lt: 10", false),
        ("lte: 10", true),
        ("gt: 10", false),
        ("gte: 10", true),
        ("gt: 9.5", true),
    ] {
        assert_eq!(
            is_true(&format!("F|{modifier}"), &[("F", Some("10"))]),
            expected,
            "{modifier}"
        );
        assert_eq!(
            is_true(&format!("F|{modifier}"), &[("F", Some("0xa"))]),
            expected,
            "{modifier}"
        );
    }
    assert!(!is_true("F|gt: 1", &[("F", Some("many"))]));
    assert!(is_true("Time|hour|gte: 22", &[("Time", Some("2024-01-02 23:00:01.5"))]));
    assert!(is_true("Time|year: 2024", &[("Time", Some("2024-01-02T23:00:01Z"))]));
    assert!(!is_true(
        "Time|year|neq: 2024",
        &[("Time", Some("2024-01-02T23:00:01Z"))]
    ));
}

#[test]
fn regular_expressions_networks_and_references() {
    assert!(is_true(r"CommandLine|re: '\\cmd\.exe\s'", COMMAND));
    assert!(!is_true(r"CommandLine|re: '\\CMD\.exe'", COMMAND));
    assert!(is_true(r"CommandLine|re|i: '\\CMD\.exe'", COMMAND));
    assert!(is_true(
        "Ip|cidr: [192.168.0.0/16, '::1/128']",
        &[("Ip", Some("192.168.4.5"))]
    ));
    assert!(is_true("Ip|cidr: 192.168.4.5", &[("Ip", Some("192.168.4.5"))]));
    assert!(!is_true("Ip|cidr: 192.168.0.0/16", &[("Ip", Some("192.169.4.5"))]));
    let users: Fields<'_> = &[("A", Some("Domain\\Me")), ("B", Some("ME")), ("C", None)];
    assert!(!is_true("A|fieldref: B", users));
    assert!(is_true("A|fieldref|endswith: B", users));
    assert!(!is_true("A|fieldref|endswith|cased: B", users));
    assert!(is_true("A|fieldref|neq: B", users));
    assert!(!is_true("A|fieldref: C", users));
    assert!(!is_true("A|fieldref: D", users));
}

#[test]
fn encodings_and_dashes() {
    for dash in ["-", "/", "–", "—", "―"] {
        let text = format!("cmd {dash}ENC x");
        assert!(is_true("F|contains|windash: ' -enc '", &[("F", Some(&text))]), "{dash}");
        assert!(is_true("F|windash|contains: ' /enc '", &[("F", Some(&text))]), "{dash}");
    }
    for (value, text) in [("-a*-b?x/", "/a, –bcx―"), ("-a--b?x*/", "/a–―bcx -")] {
        assert!(
            is_true(&format!("F|windash: '{value}'"), &[("F", Some(text))]),
            "{value}"
        );
        assert!(
            !is_true(&format!("F|windash: '{value}'"), &[("F", Some("/a, -bx-"))]),
            "{value}"
        );
    }
    assert!(is_true("F|windash: ab", &[("F", Some("ab"))]));
    assert!(is_true("F|base64: cmd", &[("F", Some("Y21k"))]));
    assert!(is_true("F|base64offset|contains: http", &[("F", Some("eGh0dHBz"))]));
    assert!(is_true(
        "F|wide|base64offset|contains: cmd",
        &[("F", Some("YwBtAGQALgA="))]
    ));
    let rule = rule("s:\n  F|base64offset|contains: http\ncondition: s");
    let item = &rule.detections[0].any[0][0];
    assert_eq!(item.any.len(), 3);
    assert!(
        item.any
            .iter()
            .all(|matcher| matches!(matcher, Matcher::Text { cased: false, .. }))
    );
}

#[test]
fn keywords_are_in_any_value() {
    let event: Fields<'_> = &[("A", Some("one")), ("B", Some("two three")), ("C", None)];
    let words = |detection: &str| rule(&format!("{detection}\ncondition: k")).matches(&event).is_some();
    assert!(words("k: [nothing, TWO]"));
    assert!(words("k: 'two*e'"));
    assert!(!words("k: 'one*two'"));
    assert!(words("k:\n  '|all': [one, two]"));
    assert!(!words("k:\n  '|all': [one, four]"));
    assert!(words("k:\n  '|re': '^two'"));
    assert!(!words("k:\n  '|endswith': 'two'"));
}

/// The hashes are those of the taxonomy's example.
#[test]
fn hashes_of_the_taxonomy_are_parts_of_a_list() {
    const MD5: &str = "CCF1D1573F175299ADE01C07791A6541";
    let list =
        format!("SHA1=0AE1F9071C5E8FE4A69D3F671937935D242D8A6C,MD5={MD5},IMPHASH=E96A73C7BF33A464C510EDE582318BF2");
    for field in ["Hashes", "Hash"] {
        let event: Fields<'_> = &[(field, Some(&list))];
        assert!(is_true(&format!("md5: {}", MD5.to_lowercase()), event));
        assert!(is_true("sha1|startswith: 0AE1F9", event));
        assert!(is_true("imphash|re: '^E96A[0-9A-F]{28}$'", event));
        assert!(
            is_true("md5|neq: x", event) && is_true("sha256: null", event) && is_true("sha256|exists: false", event)
        );
        assert!(!is_true("MD5|contains: A", event) && !is_true("md5|contains: 'MD5='", event));
        // A keyword is searched for in the list alone.
        assert!(!is_true(&format!("'|startswith': {MD5}"), event));
        let matched = rule(&format!("s:\n  md5: {MD5}\ncondition: s"))
            .matches(&event)
            .expect("a match");
        assert_eq!(matched.fields, [("md5".to_owned(), Some(MD5.to_owned()))]);
    }
    let own: Fields<'_> = &[
        ("md5", Some("a")),
        ("Hashes", Some("MD5=b")),
        ("Hashes", Some("-")),
        ("Hashes", None),
    ];
    assert!(is_true("md5: a", own) && is_true("md5: b", own) && !is_true("md5: null", own));
    assert!(!is_true(
        "md5|exists: true",
        &[("Hashes", Some("-")), ("Other", Some("MD5=b"))]
    ));
}

#[test]
fn names_of_fields_lose_their_spaces() {
    assert!(is_true("Logon Type: 3", &[("LogonType", Some("3"))]));
    assert!(is_true(
        "A|fieldref: Logon Type",
        &[("LogonType", Some("3")), ("A", Some("3"))]
    ));
}

#[test]
fn placeholders_take_their_values() {
    let known = Placeholders::from([("dcs".to_string(), vec!["dc1".to_string(), "ad*".to_string()])]);
    let rule = rule_with("s:\n  Host|expand: '%dcs%.local'\ncondition: s", &known);
    assert!(rule.matches(&&[("Host", Some("ad99.local"))][..]).is_some());
    assert!(rule.matches(&&[("Host", Some("dc2.local"))][..]).is_none());
    assert!(is_true("F: '%dcs%'", &[("F", Some("%DCS%"))]));
}

#[test]
fn reports_the_fields_that_made_it_true() {
    let rule = rule(concat!(
        "a:\n  Image|endswith: [x.exe, cmd.exe]\n  CommandLine|contains|all: [one, two]\n",
        "b:\n  Parent: none\nc:\n  - other\n  - word\nd:\n  User: null\n  Path|neq: y\nf:\n  Image: no\n",
        "condition: (a or b or 1 of c*) and d and not f",
    ));
    let event: Fields<'_> = &[
        ("Image", Some(r"C:\CMD.exe")),
        ("CommandLine", Some("two one")),
        ("Note", Some("a word")),
        ("Path", Some("z")),
    ];
    let matched = rule.matches(&event).expect("a match");
    let expected = [
        ("Image", Some(r"C:\CMD.exe")),
        ("CommandLine", Some("two one")),
        ("Note", Some("a word")),
        ("User", None),
        ("Path", Some("z")),
    ];
    let fields: Vec<_> = matched
        .fields
        .iter()
        .map(|(field, value)| (field.as_str(), value.as_deref()))
        .collect();
    assert_eq!(fields, expected);
}

/// Of a long value, each kind of test shows where it matched.
#[test]
fn shows_where_a_long_value_matched() {
    let pad = "\u{130}x".repeat(200);
    let value = format!("START {pad} Needle -Enc {pad} END");
    for (item, expected) in [
        ("F|contains: nEEDLE", Some("Needle")),
        ("F|contains|cased: Needle", Some("Needle")),
        ("F|contains: [absent, nee?le]", Some("Needle")),
        ("F: '*-enc*end'", Some("-Enc")),
        ("F|endswith: ' end'", Some(" END")),
        ("F|startswith: start", None),
        ("F|re: 'N[e]{2}dle -E'", Some("edle -E")),
        ("'|all': [Needle, END]", Some("Needle")),
        ("F|neq: Needle", None),
    ] {
        let rule = rule(&format!("a:\n  {item}\ncondition: a"));
        let matched = rule.matches(&[("F", Some(value.as_str()))].as_slice()).expect(item);
        let [(_, Some(shown))] = matched.fields.as_slice() else {
            panic!("{item}: {:?}", matched.fields);
        };
        assert!(shown.chars().count() <= 202, "{item}");
        let place = shown.chars().take(40).collect::<String>();
        assert!(place.contains(expected.unwrap_or("START")), "{item}: {place}");
    }
}

#[test]
fn reads_the_metadata_of_a_rule() {
    let text = "title: T\nid: 1\nlevel: high\nstatus: test\ntags: [attack.t1059, attack.execution]\nauthor: {x: y}\n\
                logsource: {category: c, product: p, service: s}\ndetection: {a: {F: 1}, condition: [a, not a]}\n";
    let rule = load_rules(text, &Placeholders::new()).remove(0).expect("a rule");
    assert_eq!((rule.about.title.as_str(), rule.about.id.as_deref()), ("T", Some("1")));
    assert_eq!(
        (rule.about.level, rule.about.status),
        (Some(Level::High), Some(Status::Test))
    );
    assert_eq!(rule.about.tags, ["attack.t1059", "attack.execution"]);
    assert_eq!(rule.log_sources[0].category.as_deref(), Some("c"));
    assert!(Level::Informational < Level::Critical);
    let event: Fields<'_> = &[];
    assert!(rule.matches(&event).is_some());
}

#[test]
fn log_sources_can_be_lists() {
    let rule = |log_source: &str| {
        let text = format!("title: t\nlogsource: {log_source}\ndetection: {{a: {{F: 1}}, condition: a}}\n");
        load_rules(&text, &Placeholders::new()).remove(0)
    };
    let names = |log_source: &str| {
        let sources = rule(log_source).expect(log_source).log_sources;
        sources.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        names("{product: windows, service: [security, system]}"),
        ["product windows, service security", "product windows, service system"]
    );
    assert_eq!(
        names("[{category: c}, {product: [p, q], service: s}]"),
        ["category c", "product p, service s", "product q, service s"]
    );
    let many = format!("{{service: [{}]}}", vec!["s"; 65].join(", "));
    for (wrong, why) in [
        ("[]", "line 2, column 12: the list of log sources is empty"),
        (
            "[{service: s}, x]",
            "line 2, column 27: logsource must be a map, but this is a text",
        ),
        (
            "[{service: s}, {definition: d}]",
            "line 2, column 27: \"category, product or service\" is missing",
        ),
        ("{service: []}", "line 2, column 22: this list of names is empty"),
        (
            "{service: [s, {a: b}]}",
            "line 2, column 26: service must be a text, but this is a map",
        ),
        (
            many.as_str(),
            "line 2, column 12: the limit is 64 log sources of a rule",
        ),
    ] {
        assert_eq!(rule(wrong).expect_err(wrong).to_string(), why);
    }
}

#[test]
fn explains_errors_with_positions() {
    let s = "\ncondition: s";
    for (detection, expected) in [
        (
            format!("s:\n  F|contain: x{s}"),
            "line 5, column 5: there is no modifier \"contain\"",
        ),
        (
            format!("s:\n  F|re|contains: x{s}"),
            "line 5, column 5: contains does not go with the other modifiers of re|contains",
        ),
        (
            format!("s:\n  F|re:\n  - 'a(?=b)'{s}"),
            "line 6, column 8: this regular expression does not compile: look-around, including look-ahead and look-behind, \
             is not supported",
        ),
        (
            format!("s:\n  F|cidr: 10.0.0/8{s}"),
            "line 5, column 13: \"10.0.0/8\" is not a network such as 10.0.0.0/8 or fe80::/10",
        ),
        (
            format!("s:\n  F|expand: '%x%'{s}"),
            "line 5, column 16: the placeholder %x% has no values",
        ),
        (
            format!("s:\n  F|gt: x{s}"),
            "line 5, column 11: the value must be a number, but this is a text",
        ),
        (
            format!("s:\n  F|exists: 1{s}"),
            "line 5, column 15: exists must be true or false, but this is a number",
        ),
        (
            format!("s:\n  F: [a, null]{s}"),
            "line 5, column 12: null cannot be in a list of values; give it a detection of its own",
        ),
        (
            format!("s:\n  F: []{s}"),
            "line 5, column 8: this list of values is empty",
        ),
        (
            format!("s:\n  F: {{a: b}}{s}"),
            "line 5, column 8: a value must be a text, but this is a map",
        ),
        (format!("s: []{s}"), "line 4, column 6: this detection is empty"),
        (format!("s: {{}}{s}"), "line 4, column 6: this map is empty"),
        (
            format!("s: [[a]]{s}"),
            "line 4, column 7: a member of a detection must be a map or a keyword, but this is a list",
        ),
        (
            format!("s:\n  '|exists': true{s}"),
            "line 5, column 16: keywords are texts, regular expressions or networks: other modifiers need a field name",
        ),
        (
            format!("s:\n  F|base64: 'a*'{s}"),
            "line 5, column 16: base64 takes a text without wildcards that is not encoded yet",
        ),
        (
            format!("s:\n  F|windash|base64: '--------'{s}"),
            "line 5, column 24: the limit is 20000 needles of a rule",
        ),
        (
            format!("s:\n  F: '{}?x'{s}", "a".repeat(512)),
            "line 5, column 9: the limit is 512 bytes of a value with wildcards between its texts",
        ),
        (
            format!("s:\n  F: '{}'{s}", "?x".repeat(129)),
            "line 5, column 9: the limit is 256 texts and wildcards in a value",
        ),
        (
            format!("s:\n  F|re: [{}]{s}", "x, ".repeat(33)),
            "line 5, column 108: the limit is 32 regular expressions of a rule",
        ),
        ("s:\n  F: x".to_string(), "line 4, column 3: \"condition\" is missing"),
        (
            "s:\n  F: x\ncondition: t".to_string(),
            "line 6, column 14: the condition names \"t\", but this rule has no such detection",
        ),
        (
            "s:\n  F: x\ntimeframe: 5m\ncondition: s".to_string(),
            "line 6, column 3: \"timeframe\" needs an aggregation in the condition, such as \"| count() > 5\"",
        ),
        (
            "s:\n  F: x\ncondition: s | count(F) by G > x".to_string(),
            "line 6, column 34: a number is expected here, not \"x\"",
        ),
    ] {
        assert_eq!(error(&detection), expected, "{detection}");
    }
}

#[test]
fn refuses_documents_that_are_not_rules() {
    let error = |text: &str| {
        load_rules(text, &Placeholders::new())
            .remove(0)
            .expect_err(text)
            .to_string()
    };
    assert_eq!(error(""), "line 1, column 1: this text contains no rule");
    assert_eq!(error("x"), "line 1, column 1: a rule must be a map, but this is a text");
    assert_eq!(error("a: b"), "line 1, column 1: \"title\" is missing");
    assert_eq!(
        error("title: t\ncorrelation:\n  type: event_count"),
        "line 3, column 3: \"rules\" is missing"
    );
    assert_eq!(
        error("title: t\nfilter: {rules: [x]}"),
        "line 2, column 9: \"condition\" is missing"
    );
    assert!(error("title: t\naction: global").starts_with("line 2, column 1: collections with \"action\""));
    let known = "; use informational, low, medium, high, critical";
    let rule = text_of("s:\n  F: x\ncondition: s");
    assert_eq!(
        error(&format!("{rule}level: severe")),
        format!("line 7, column 8: there is no level \"severe\"{known}")
    );
    assert_eq!(
        error("title: t\nlogsource: {definition: d}\ndetection: {s: [x], condition: s}"),
        "line 2, column 12: \"category, product or service\" is missing"
    );
}

#[test]
fn keeps_the_rules_around_a_wrong_one() {
    let good = text_of("s:\n  F: x\ncondition: s");
    let text = format!("{good}---\nid: bad\ntitle: no detection\n---\n{good}---\na: [\n");
    let rules = load_rules(&text, &Placeholders::new());
    let seen: Vec<_> = rules
        .iter()
        .map(|rule| rule.as_ref().map_err(|refused| refused.id.as_deref()).is_ok())
        .collect();
    assert_eq!(seen, [true, false, true, false]);
    let refused = rules[1].as_ref().expect_err("no detection");
    assert_eq!(
        (refused.id.as_deref(), refused.title.as_deref()),
        (Some("bad"), Some("no detection"))
    );
}

#[test]
fn bounds_the_memory_of_regular_expressions() {
    // Some 120 KB each, which takes a millisecond to compile.
    let large = |count: usize| {
        let each: Vec<_> = (0..count)
            .map(|number| format!("'{number}(?:[a-z]{{3}}x?){{300}}'"))
            .collect();
        text_of(&format!("s:\n  F|re: [{}]\ncondition: s", each.join(", ")))
    };
    let refused = |text: &str| {
        let rules = load_rules(text, &Placeholders::new()).into_iter();
        rules
            .map(|rule| rule.err().map(|refused| refused.to_string()))
            .collect::<Vec<_>>()
    };
    assert_eq!(refused(&large(2)), [None]);
    let [Some(error)] = &refused(&large(32))[..] else {
        panic!("32 are too large")
    };
    assert!(
        error.ends_with("the limit is 2097152 bytes of memory of the regular expressions of a rule"),
        "{error}"
    );
    // Refused expressions count too: they were compiled.
    for count in [8, 32] {
        let text = vec![large(count); 60].join("---\n");
        let (last, first) = (
            refused(&text).pop().flatten().expect("too many"),
            refused(&large(count)).remove(0),
        );
        assert!(last.contains("the limit for all rules of a text is 8 times "), "{last}");
        assert_eq!(first.is_some(), count == 32);
    }
    let text = large(1);
    let rules = load_rules(&text, &Placeholders::new()).into_iter().flatten();
    let bytes: Vec<_> = rules.map(|rule| rule.regex_bytes()).collect();
    assert!(bytes.len() == 1 && (50_000..500_000).contains(&bytes[0]), "{bytes:?}");
    assert!(evtx_sigma::load_documents(&text, &Placeholders::new(), Interrupt::new(&|| true)).is_err());
}

/// Values with few dashes become texts, those with many get wildcards.
#[test]
fn any_dash_is_any_other() {
    for dashes in 1..12 {
        let value: String = (0..dashes)
            .map(|at| ['-', '/', '–', '—', '―'][at % 5].to_string() + "a")
            .collect();
        for (at, dash) in "-/–—―".chars().enumerate() {
            let text: String = (0..dashes)
                .map(|of| if of == at % dashes { dash } else { '/' }.to_string() + "A")
                .collect();
            for (modifier, before, after) in [
                ("", "", ""),
                ("|contains", "x", "y"),
                ("|startswith", "", "y"),
                ("|endswith", "x", ""),
            ] {
                let rule = format!("F|windash{modifier}: '{value}'");
                assert!(
                    is_true(&rule, &[("F", Some(&format!("{before}{text}{after}")))]),
                    "{rule} {text}"
                );
                let other = text.replacen('/', "_", 1);
                assert_eq!(
                    is_true(&rule, &[("F", Some(&format!("{before}{other}{after}")))]),
                    other == text,
                    "{rule} {other}"
                );
            }
            let cased = format!("F|windash|cased: '{value}'");
            assert!(!is_true(&cased, &[("F", Some(&text))]) && is_true(&cased, &[("F", Some(&text.to_lowercase()))]));
        }
    }
}

#[test]
fn bounds_what_the_rules_of_a_text_take() {
    let rule = text_of("s:\n  F|windash|base64: '------'\ncondition: s");
    let rules = load_rules(&[rule.as_str(); 20].join("---\n"), &Placeholders::new());
    let loaded = rules.iter().filter(|rule| rule.is_ok()).count();
    assert_eq!((rules.len(), loaded), (20, 10));
    let refused = rules[19].as_ref().expect_err("too many needles");
    assert!(
        refused
            .to_string()
            .ends_with("the limit for all rules of a text is 8 times 20000 needles of a rule"),
        "{refused}"
    );
}

/// Whatever is too much is an error of its rule, and the others load.
#[test]
fn refuses_what_would_take_much_work_before_it_is_done() {
    let named = |name: &str, item: &str| text_of(&format!("{name}:\n  {item}\ncondition: {name}"));
    let mut texts: Vec<_> = [
        r"\p{L}",
        "[!-\u{fffd}]",
        "(?:a{1000}){1000}",
        r"\p{L}{100}",
        "ab",
        "(?:",
    ]
    .iter()
    .map(|piece| named("s", &format!("F|re|i: '{}'", piece.repeat(60_000 / piece.len()))))
    .collect();
    texts.push(named("s", r"F|re: '\p{L}{100}'"));
    texts.push(named("s", "F|re: '(?:(?:a{1000}){1000}){1000}'"));
    for modifier in ["base64", "wide", "base64offset", "windash"] {
        texts.push(named("s", &format!("F{}: 'a-'", format!("|{modifier}").repeat(70))));
    }
    for modifier in ["wide", "base64offset", "windash"] {
        let key = format!("F{}", format!("|{modifier}").repeat(16));
        texts.push(named("s", &format!("{key}: '{}'", "a-".repeat(100))));
    }
    texts.push(named("s", &format!("F|expand: '{}'", "%p%".repeat(1000))));
    let detections: String = (0..2000).map(|number| format!("s{number}:\n  F: x\n")).collect();
    texts.push(text_of(&format!("{detections}condition: all of them")));
    let good = named("s", "F|re: 'a+'");
    let text = texts
        .iter()
        .flat_map(|text| [text, &good])
        .cloned()
        .collect::<Vec<_>>()
        .join("---\n");
    let placeholders = Placeholders::from([("p".to_owned(), vec!["v".to_owned()])]);
    let rules = load_rules(&text, &placeholders);
    assert_eq!(rules.len(), 2 * texts.len());
    for (index, rule) in rules.iter().enumerate() {
        match rule {
            Ok(_) => assert!(index % 2 == 1, "{:.200}", texts[index / 2]),
            Err(refused) => {
                let why = refused.to_string();
                assert!(
                    index % 2 == 0 && why.contains("the limit"),
                    "{why}: {:.200}",
                    texts[index / 2]
                );
            }
        }
    }
}

/// An interrupt ends the work between two expressions of a rule.
#[test]
fn stops_between_the_expressions_of_a_rule() {
    let values = vec!["'[a-z]{100}'"; 32].join(", ");
    let text = text_of(&format!("s:\n  F|re: [{values}]\ncondition: s"));
    for wanted in [8, 16, 32] {
        let asked = std::cell::Cell::new(0);
        let ask = || asked.replace(asked.get() + 1) >= wanted;
        let loaded = evtx_sigma::load_documents(&text, &Placeholders::new(), Interrupt::new(&ask));
        assert!(loaded.is_err());
        // One more after each of the loops that an interrupt ends.
        assert!(asked.get() < wanted + 4, "{}", asked.get());
    }
}
