//! Sigma rules: expressions with many or large classes and repetitions, chains of encodings, and lists of all of these.

use evtx_format::Interrupt;
use evtx_sigma::{Placeholders, load_documents};

use super::{Files, Kind, Made, Outcome, Shape};

/// Modifiers, and a value that is repeated. Without a value, the modifier is: YAML has keys of up to 1,024 characters.
const PIECES: [(&str, &str); 20] = [
    ("re|i", r"\p{L}"),
    ("re|i", r"\P{Lu}x"),
    ("re|i", "[!-\u{fffd}]"),
    ("re|i", "[\u{400}-\u{4ff}]"),
    ("re|i", r"[\p{L}--\p{N}]"),
    ("re|i", "[[:^alpha:]]"),
    ("re|i", "[[:x[^a]:]]"),
    ("re|i", r"\p{L}|"),
    ("re", r"\p{L}{100}"),
    ("re", "(?:(?:a{1000}){1000}){1000}"),
    ("re", ".{0,9}"),
    ("re", "(a*)*"),
    ("re", r"\s\W"),
    ("re|i", "aK"),
    ("re", "(?:"),
    ("base64", ""),
    ("wide", ""),
    ("base64offset", ""),
    ("windash", ""),
    ("expand", "%p%"),
];

/// A file of `rules`, each with `values` that consist of the same piece, repeated.
fn file([piece, times, values, rules]: Shape) -> Made {
    let (modifiers, value) = PIECES[piece % PIECES.len()];
    let (key, value) = match value {
        "" => (
            format!("F|{}", vec![modifiers; times.min(70)].join("|")),
            "a-".to_owned(),
        ),
        value => (format!("F|{modifiers}"), value.repeat(times)),
    };
    let values = vec![format!("'{value}'"); values.max(1)].join(", ");
    let rule = format!("title: t\nlogsource: {{service: s}}\ndetection:\n  s: {{{key}: [{values}]}}\n  condition: s\n");
    vec![("r.yml", vec![rule; rules.max(1)].join("---\n").into_bytes())]
}

fn load(files: &Files, interrupt: Interrupt<'_>) -> Outcome {
    let placeholders = Placeholders::from([("p".to_owned(), vec!["v".to_owned()])]);
    let text = str::from_utf8(&files.0["r.yml"]).expect("UTF-8");
    match load_documents(text, &placeholders, interrupt) {
        Ok(rules) => Outcome::Rows(rules.len(), false),
        Err(_) => Outcome::Rows(0, true),
    }
}

pub(super) const KIND: Kind = Kind {
    name: "rules",
    files: file,
    fixed: &[
        [0, 16, 1, 60],
        [0, 5000, 1, 1],
        [0, 60_000, 1, 1],
        [1, 16, 8, 8],
        [2, 16, 1, 60],
        [3, 200, 4, 4],
        [4, 16, 1, 60],
        [5, 300, 1, 20],
        [8, 1, 1, 60],
        [9, 1, 1, 400],
        [10, 600, 1, 60],
        [13, 2000, 32, 8],
        [14, 300_000, 1, 1],
        [15, 100_000, 1, 1],
        [16, 30, 1, 20],
        [17, 12, 1, 20],
        [18, 100_000, 1, 1],
        [19, 300_000, 1, 1],
    ],
    most: [20, 20_000, 40, 60],
    read: load,
};
