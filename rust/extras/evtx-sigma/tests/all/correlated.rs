//! 10,000 generated correlations on generated hits: the crate finds the bursts that a slow evaluator finds, which follows
//! the definition in docs/sigma.md word by word.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use evtx_format::Interrupt;
use evtx_sigma::correlation::RecordLocation;
use evtx_sigma::{Burst, Correlations, Hits, Rule};

use super::common::{Random, add, documents};
use super::reference::{Hit, Kind, Model, Reference, Target};

const CASES: u64 = 10_000;
const SECOND: i64 = 1_000_000_000;

const FIELDS: [&str; 3] = ["User", "Host", "Size"];
const VALUES: [&str; 8] = ["a", "b", "A", "1", "2", "0x10", "1.5", ""];
const OPERATORS: [&str; 6] = ["gte", "gt", "eq", "neq", "lt", "lte"];
const SIGNS: [&str; 6] = [">=", ">", "=", "!=", "<", "<="];

/// A text of rules, and what it means.
struct Case {
    text: String,
    rules: usize,
    models: Vec<Model>,
}

fn conditions(random: &mut Random, kind: Kind) -> Vec<(usize, f64)> {
    let limit = |random: &mut Random| match kind {
        Kind::Share => random.pick(&[10.0, 25.0, 50.0, 100.0]),
        Kind::Sum | Kind::Average | Kind::Percentile(_) | Kind::Min | Kind::Max => {
            random.pick(&[0.0, 1.0, 1.5, 2.0, 3.25, 16.0, 20.0])
        }
        _ => random.pick(&[1.0, 2.0, 2.0, 3.0, 4.0]),
    };
    // Most conditions ask for at least so many.
    let operator = if random.one_in(2) { 0 } else { random.below(6) };
    let mut all = vec![(operator, limit(random))];
    let other = random.below(6);
    if random.one_in(5) && other != operator {
        all.push((other, limit(random)));
    }
    all
}

fn kind(random: &mut Random) -> Kind {
    match random.below(9) {
        0 | 1 => Kind::Count,
        2 => Kind::Values,
        3 => Kind::Temporal,
        4 => Kind::Ordered,
        5 => Kind::Sum,
        6 => Kind::Average,
        7 => Kind::Percentile(random.pick(&[0.0, 30.0, 50.0, 99.0, 100.0])),
        _ => Kind::Share,
    }
}

fn fields(random: &mut Random) -> Vec<String> {
    let chosen = FIELDS.iter().chain(&["who"]).filter(|_| random.one_in(3));
    chosen.map(|field| (*field).to_string()).collect()
}

/// A correlation rule with the index `index`, which refers to rules, and to correlations before it.
fn correlation(random: &mut Random, index: usize, rules: usize, text: &mut String) -> Model {
    let kind = kind(random);
    let mut targets: Vec<_> = (0..rules).map(Target::Rule).collect();
    targets.extend((0..index).map(Target::Model));
    let mut references = Vec::new();
    for _ in 0..1 + random.below(3) {
        if !targets.is_empty() {
            references.push(targets.remove(random.below(targets.len())));
        }
    }
    let field = match kind {
        Kind::Values | Kind::Share if random.one_in(4) => vec!["User".to_string(), "Host".to_string()],
        Kind::Count | Kind::Temporal | Kind::Ordered => Vec::new(),
        _ => vec![random.pick(&["Size", "User", "who"]).to_string()],
    };
    let mut conditions = conditions(random, kind);
    let span = random.below(8) as i64;
    let mut model = Model {
        kind,
        group_by: fields(random),
        fields: field,
        span: Some(span * SECOND),
        generate: random.one_in(2),
        aliases: BTreeMap::new(),
        conditions: Vec::new(),
        absent: references.len(),
        references,
    };
    let name = [
        "event_count",
        "value_count",
        "temporal",
        "temporal_ordered",
        "value_sum",
        "value_avg",
        "value_percentile",
    ];
    let name = match kind {
        Kind::Count => name[0],
        Kind::Values => name[1],
        Kind::Temporal => name[2],
        Kind::Ordered => name[3],
        Kind::Sum => name[4],
        Kind::Average => name[5],
        _ => name[6],
    };
    let names: Vec<_> = model.references.iter().map(|target| target.name()).collect();
    _ = writeln!(
        text,
        "---\ntitle: c{index}\nname: c{index}\ncorrelation:\n  type: {name}\n  rules: [{}]",
        names.join(", ")
    );
    _ = writeln!(text, "  timespan: {span}s\n  group-by: [{}]", model.group_by.join(", "));
    _ = writeln!(text, "  generate: {}", model.generate);
    if random.one_in(2) {
        for target in &model.references {
            if !random.one_in(3) {
                model
                    .aliases
                    .insert(target.name(), random.pick(&["User", "Host", "who"]).to_string());
            }
        }
        let aliases: Vec<_> = model
            .aliases
            .iter()
            .map(|(rule, field)| format!("{rule}: {field}"))
            .collect();
        _ = writeln!(text, "  aliases: {{who: {{{}}}}}", aliases.join(", "));
    }
    if matches!(kind, Kind::Temporal | Kind::Ordered) && random.one_in(2) {
        model.conditions = vec![(0, model.references.len() as f64)];
        return model;
    }
    text.push_str("  condition:\n");
    for (operator, limit) in &conditions {
        _ = writeln!(text, "    {}: {limit}", OPERATORS[*operator]);
    }
    if !model.fields.is_empty() {
        _ = writeln!(text, "    field: [{}]", model.fields.join(", "));
    }
    if let Kind::Percentile(percent) = kind {
        _ = writeln!(text, "    percentile: {percent}");
    }
    model.conditions.append(&mut conditions);
    model
}

/// A rule with an aggregation, whose own rules begin at the index `first`.
fn aggregation(random: &mut Random, first: usize, text: &mut String) -> Model {
    let (function, kind) = random.pick(&[
        ("count", Kind::Count),
        ("count", Kind::Values),
        ("sum", Kind::Sum),
        ("avg", Kind::Average),
        ("min", Kind::Min),
        ("max", Kind::Max),
        ("near", Kind::Temporal),
    ]);
    let span = (!random.one_in(3)).then(|| random.below(8) as i64);
    let mut model = Model {
        kind,
        group_by: Vec::new(),
        fields: Vec::new(),
        span: span.map(|span| span * SECOND),
        generate: false,
        aliases: BTreeMap::new(),
        conditions: Vec::new(),
        absent: 1,
        references: vec![Target::Rule(first)],
    };
    let rest = if function == "near" {
        let rest = random.pick(&["x", "x and y", "x and not y", "not y"]);
        let count = rest.matches(['x', 'y']).count();
        model
            .references
            .extend((1..=count).map(|other| Target::Rule(first + other)));
        model.absent = 1 + count - rest.matches("not").count();
        model.conditions = vec![(0, model.absent as f64)];
        format!("near {rest}")
    } else {
        if kind != Kind::Count {
            model.fields = vec![random.pick(&["Size", "User"]).to_string()];
        }
        model.group_by = fields(random);
        let (operator, limit) = conditions(random, kind)[0];
        model.conditions = vec![(operator, limit)];
        let by = if model.group_by.is_empty() {
            String::new()
        } else {
            format!("by {}", model.group_by.join(", "))
        };
        format!("{function}({}) {by} {} {limit}", model.fields.join(""), SIGNS[operator])
    };
    let timeframe = span.map_or(String::new(), |span| format!("timeframe: {span}s, "));
    _ = writeln!(
        text,
        "---\ntitle: a\nlogsource: {{product: p}}\ndetection: {{s: {{F: x}}, x: {{F: x}}, y: {{F: y}}, {timeframe}condition: 's | {rest}'}}"
    );
    model
}

fn case(random: &mut Random) -> Case {
    let mut text = String::new();
    let rules = 1 + random.below(3);
    for rule in 0..rules {
        _ = writeln!(
            text,
            "---\ntitle: r{rule}\nname: r{rule}\nlogsource: {{product: p}}\ndetection: {{s: {{F: x}}, condition: s}}"
        );
    }
    if random.one_in(4) {
        let model = aggregation(random, rules, &mut text);
        return Case {
            text,
            rules: rules + model.references.len(),
            models: vec![model],
        };
    }
    let count = 1 + random.below(3);
    let models = (0..count)
        .map(|index| correlation(random, index, rules, &mut text))
        .collect();
    Case { text, rules, models }
}

/// Hits of records. Some match several rules, and some have the same time.
fn hits(random: &mut Random, rules: usize) -> Vec<Hit> {
    let mut hits = Vec::new();
    for record in 0..random.below(30) as u64 {
        let time = match random.below(40) {
            0 => random.pick(&[i64::MIN, i64::MAX, i64::MAX - SECOND]),
            _ => random.below(20) as i64 * SECOND + random.below(2) as i64,
        };
        let location = RecordLocation {
            file: random.below(2) as u32,
            offset: 100 - record,
            record_id: record,
        };
        let fields = FIELDS.iter().filter_map(|field| {
            let value = VALUES[random.below(VALUES.len())].to_string();
            (!random.one_in(5)).then(|| ((*field).to_string(), value))
        });
        let fields: BTreeMap<_, _> = fields.collect();
        let rule = random.below(rules);
        for rule in (0..rules).filter(|other| *other == rule || random.one_in(6)) {
            let fields = fields.clone();
            hits.push(Hit {
                rule,
                time,
                location,
                fields,
            });
        }
    }
    hits
}

/// The bursts that the crate finds, with the hits on several threads in any order; or the index of a correlation whose
/// condition can never hold, as the crate says.
fn found(case: &Case, hits: &[Hit], random: &mut Random) -> Result<Vec<Burst>, u32> {
    let (mut rules, mut correlations) = (Vec::new(), Vec::new());
    for document in documents(&case.text) {
        let document = match document {
            Ok(document) => document,
            Err(refused) if refused.to_string().contains("no number meets") => return Err(correlations.len() as u32),
            Err(refused) => panic!("{refused}: {}", case.text),
        };
        add(document, &mut rules, &mut correlations);
    }
    let rules: Vec<&Rule> = rules.iter().collect();
    assert_eq!(rules.len(), case.rules, "{}", case.text);
    let (resolved, errors) = Correlations::resolve(&rules, correlations);
    assert!(errors.iter().all(Option::is_none), "{errors:?}");
    let resolved = Arc::new(resolved);
    let mut threads: Vec<_> = (0..3).map(|_| Hits::new(resolved.clone(), Arc::default())).collect();
    let mut left: Vec<&Hit> = hits.iter().collect();
    while !left.is_empty() {
        let hit = left.remove(random.below(left.len()));
        let text = &mut |field: &str, text: &mut String| match hit.fields.get(field) {
            Some(value) => {
                text.push_str(value);
                true
            }
            None => false,
        };
        threads[random.below(3)].push(hit.rule as u32, hit.time, hit.location, text);
    }
    let (bursts, problems) = resolved
        .sweep(threads, Interrupt::NEVER)
        .expect("nothing interrupts it");
    assert!(problems.is_empty(), "{problems:?}");
    let is_sorted = |pair: &[Burst]| (pair[0].location, pair[0].correlation) <= (pair[1].location, pair[1].correlation);
    assert!(bursts.windows(2).all(is_sorted));
    Ok(bursts)
}

#[test]
fn finds_what_the_definition_says() {
    let (mut bursts, mut refused) = (0, 0);
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 0..CASES {
        let random = &mut Random(seed);
        let case = case(random);
        let hits = hits(random, case.rules);
        let key = |burst: &Burst| {
            (
                burst.correlation,
                burst.group.clone(),
                burst.first,
                burst.last,
                burst.count,
            )
        };
        let found = found(&case, &hits, random);
        let mut expected = Reference {
            models: &case.models,
            hits: &hits,
        }
        .bursts();
        let mut found = match found {
            Ok(found) => found,
            Err(never) => {
                refused += 1;
                let is_one = |burst: &Burst| burst.correlation == never;
                assert!(!expected.iter().any(is_one), "seed {seed}: {}\n{hits:#?}", case.text);
                continue;
            }
        };
        found.sort_by_key(key);
        expected.sort_by_key(key);
        assert_eq!(found, expected, "seed {seed}: {}\n{hits:#?}", case.text);
        for burst in &found {
            *kinds
                .entry(format!("{:?}", case.models[burst.correlation as usize].kind))
                .or_default() += 1;
        }
        bursts += found.len();
    }
    // Each kind is found often enough for an error to show.
    assert!(bursts > 10_000 && kinds.values().all(|count| *count > 50), "{kinds:?}");
    assert_eq!(kinds.len(), 14, "{kinds:?}");
    assert!((100..2000).contains(&refused), "{refused}");
}
