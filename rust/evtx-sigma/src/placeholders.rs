//! Placeholders: what `expand` puts in place of `%name%`.

use std::collections::BTreeMap;

use crate::error::Problem;
use crate::limits::Budget;

/// The values of placeholders by their names, without the percent signs. A value can have wildcards, as values of
/// rules.
pub type Placeholders = BTreeMap<String, Vec<String>>;

/// The texts that a value is with any value of each placeholder in place of it.
///
/// A name consists of letters, digits, `_` and `-`. `\%` is a plain percent sign, and so is one that begins no
/// placeholder ("Placeholders" in the specification).
pub(crate) fn expand(value: &str, known: &Placeholders, budget: &Budget) -> Result<Vec<String>, Problem> {
    let parts = parts(value, known)?;
    // How much it is, before it is made.
    let (texts, bytes) = parts
        .iter()
        .fold((1_usize, 0_usize), |(texts, bytes), part| match part {
            Part::Plain(plain) => (texts, bytes + plain.len()),
            Part::Values(values) => {
                let longest = values.iter().map(String::len).max().unwrap_or(0);
                (texts.saturating_mul(values.len()), bytes.saturating_add(longest))
            }
        });
    budget.has_room(texts, bytes)?;
    let mut texts = vec![String::new()];
    for part in parts {
        match part {
            Part::Plain(plain) => texts.iter_mut().for_each(|text| text.push_str(&plain)),
            Part::Values(values) => {
                texts = texts
                    .iter()
                    .flat_map(|text| values.iter().map(move |value| format!("{text}{value}")))
                    .collect();
            }
        }
    }
    Ok(texts)
}

/// A part of a value: what stands there, or the values of a placeholder.
enum Part<'a> {
    Plain(String),
    Values(&'a [String]),
}

fn parts<'a>(value: &str, known: &'a Placeholders) -> Result<Vec<Part<'a>>, Problem> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = value;
    while let Some(character) = rest.chars().next() {
        if let Some(name) = name_of(rest) {
            let values = known.get(name).ok_or_else(|| Problem::Placeholder(name.to_string()))?;
            parts.push(Part::Plain(std::mem::take(&mut plain)));
            parts.push(Part::Values(values));
            rest = &rest[name.len() + 2..];
            continue;
        }
        let length = match () {
            () if rest.starts_with(r"\%") || rest.starts_with(r"\\") => 2,
            () => character.len_utf8(),
        };
        plain.push_str(rest[..length].strip_prefix(r"\%").map_or(&rest[..length], |_| "%"));
        rest = &rest[length..];
    }
    parts.push(Part::Plain(plain));
    Ok(parts)
}

/// The name of the placeholder that a text begins with.
fn name_of(text: &str) -> Option<&str> {
    let (name, _) = text.strip_prefix('%')?.split_once('%')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn puts_values_in_place_of_names() {
        let known = [("a", vec!["1", "2*"]), ("b", vec!["x", "y"]), ("none", vec![])];
        let known = known.map(|(name, values)| (name.to_string(), values.into_iter().map(String::from).collect()));
        let known = Placeholders::from(known);
        let texts = |value: &str| expand(value, &known, &Budget::default());
        assert_eq!(texts("-%a%-%b%").expect("texts"), ["-1-x", "-1-y", "-2*-x", "-2*-y"]);
        assert_eq!(texts(r"\%a%b%").expect("texts"), ["%ax", "%ay"]);
        assert_eq!(texts(r"\\%a%").expect("texts"), [r"\\1", r"\\2*"]);
        assert_eq!(texts("100% of 5%").expect("texts"), ["100% of 5%"]);
        assert_eq!(texts("%none%x").expect("texts"), [""; 0]);
        assert_eq!(texts("%c%"), Err(Problem::Placeholder("c".to_string())));
        assert!(texts(&"%a%".repeat(100)).is_err());
    }
}
