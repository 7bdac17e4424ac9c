//! Asks `evtx-sigma` and `rsigma` about the same rules and events, and prints where they differ.
//!
//! The arguments are folders of rules. Events are generated from the texts that each rule searches for.

use std::collections::BTreeMap;
use std::path::Path;

use evtx_sigma::{Item, Matcher, Placeholders, Rule, load_rules};
use rsigma_eval::Engine;
use rsigma_eval::event::JsonEvent;
use serde_json::Value;
use walkdir::WalkDir;

const EVENTS: usize = 40;

/// The fields of an event. `None` stands for NULL.
type Fields = BTreeMap<String, Option<String>>;

fn main() {
    let mut random = Random(7);
    let (mut rules, mut matches, mut differences) = (0, 0, 0);
    for folder in std::env::args().skip(1) {
        let files = WalkDir::new(folder)
            .sort_by_file_name()
            .into_iter()
            .filter_map(Result::ok);
        for file in files.filter(|file| file.path().extension().is_some_and(|extension| extension == "yml")) {
            let Some((rule, rsigma)) = load(file.path()) else {
                continue;
            };
            rules += 1;
            let mut first = None;
            for _ in 0..EVENTS {
                let fields = event(&rule, &mut random);
                let json = json(&fields);
                let pairs: Vec<_> = fields
                    .iter()
                    .map(|(name, text)| (name.as_str(), text.as_deref()))
                    .collect();
                let ours = rule.matches(&pairs.as_slice()).is_some();
                let theirs = !rsigma.evaluate(&JsonEvent::borrow(&json)).is_empty();
                matches += usize::from(ours);
                if ours != theirs {
                    differences += 1;
                    first.get_or_insert_with(|| format!("evtx-sigma {ours}, rsigma {theirs}: {json}"));
                }
            }
            if let Some(first) = first {
                println!("{}: {first}", file.path().display());
            }
        }
    }
    let asked = rules * EVENTS;
    println!("{rules} rules, {asked} events, {matches} matches of evtx-sigma, {differences} differences");
}

/// The rule of a file for both, if both load it. Reports it if only one does.
fn load(path: &Path) -> Option<(Rule, Engine)> {
    let text = std::fs::read_to_string(path).expect("a rule is a text file");
    let mut ours = load_rules(&text, &Placeholders::new());
    let ours = if ours.len() == 1 {
        ours.remove(0).map_err(|error| error.to_string())
    } else {
        Err(format!("{} documents", ours.len()))
    };
    let mut engine = Engine::new();
    let theirs = rsigma_parser::parse_sigma_yaml(&text)
        .map_err(|error| error.to_string())
        .and_then(|rules| engine.add_collection(&rules).map_err(|error| error.to_string()));
    let (loader, error) = match (ours, theirs) {
        (Ok(rule), Ok(())) => return Some((rule, engine)),
        (Err(error), Ok(())) => ("rsigma", error),
        (Ok(_), Err(error)) => ("evtx-sigma", error),
        (Err(_), Err(_)) => return None,
    };
    println!("{}: only {loader} loads it: {error}", path.display());
    None
}

/// An event with some of the texts that a rule searches for, at other places and with other case.
fn event(rule: &Rule, random: &mut Random) -> Fields {
    let mut fields = Fields::new();
    let of_four = 1 + random.below(4);
    for Item { field, any, .. } in rule.items() {
        if any.is_empty() || random.below(4) >= of_four {
            continue;
        }
        let name = field.as_deref().unwrap_or("Other");
        let Some(found) = text(&any[random.below(any.len())], random) else {
            if random.below(2) == 0 {
                fields.insert(name.to_string(), None);
            }
            continue;
        };
        match fields.get_mut(name) {
            Some(Some(before)) if random.below(2) == 0 => *before = format!("{before} {found}"),
            _ => _ = fields.insert(name.to_string(), Some(found)),
        }
    }
    fields
}

/// A text that a matcher may find. `None` stands for NULL or no field.
fn text(matcher: &Matcher, random: &mut Random) -> Option<String> {
    let text = match matcher {
        Matcher::Text { pattern, .. } => {
            let between = ["", "x", " y"][random.below(3)];
            let joined = pattern.needles().collect::<Vec<_>>().join(between);
            match random.below(4) {
                0 => joined,
                1 => format!("{joined}zz"),
                2 => format!(r"C:\zz{joined}"),
                _ => format!("q {joined} p"),
            }
        }
        Matcher::Number { number, .. } => number.to_string(),
        Matcher::Regex(expression) => expression.as_str().replace(|c: char| r"^$()[]{}|+*?\".contains(c), ""),
        Matcher::Exists(_) | Matcher::Null => return (random.below(2) == 0).then(|| "v".to_string()),
        Matcher::Network(_) | Matcher::FieldReference { .. } => "10.1.2.3".to_string(),
    };
    Some(match random.below(4) {
        0 => text.to_uppercase(),
        1 => text.to_lowercase(),
        _ => text,
    })
}

fn json(fields: &Fields) -> Value {
    let value = |text: &Option<String>| text.clone().map_or(Value::Null, Value::String);
    Value::Object(fields.iter().map(|(name, text)| (name.clone(), value(text))).collect())
}

/// A linear congruential generator: the same seed gives the same events.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % limit
    }
}
