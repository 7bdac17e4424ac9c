//! Placeholders: what `expand` puts in place of `%name%`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::error::Problem;
use crate::limits::{Budget, Limits};

/// The values of placeholders, by their names without percent signs. Values can have wildcards.
pub type Placeholders = BTreeMap<String, Vec<String>>;

/// All texts that a value stands for, with each placeholder replaced by each of its values.
///
/// A name consists of letters, digits, `_` and `-`. `\%` is a plain percent sign, and so is one that begins no
/// placeholder ("Placeholders" in the specification).
pub(crate) fn expand(value: &str, known: &Placeholders, budget: &Budget) -> Result<Vec<String>, Problem> {
    let choices = choices(value, known)?;
    // The number of texts, and a bound for their bytes, before they are made.
    let texts = choices
        .iter()
        .fold(1, |texts: usize, any| texts.saturating_mul(any.len()));
    let longest = choices.iter().map(|any| any.iter().map(String::len).max().unwrap_or(0));
    budget.has_room(texts, longest.sum())?;
    let mut texts = vec![String::new()];
    for any in choices {
        let with = |text: String| {
            any.iter()
                .map(move |value| format!("{text}{value}"))
                .collect::<Vec<_>>()
        };
        texts = texts.into_iter().flat_map(with).collect();
    }
    Ok(texts)
}

/// The segments of a value, each with its alternatives: one plain text, or the values of a placeholder.
fn choices<'a>(value: &str, known: &'a Placeholders) -> Result<Vec<Cow<'a, [String]>>, Problem> {
    let mut choices = Vec::new();
    let mut plain = String::new();
    let mut rest = value;
    while let Some(character) = rest.chars().next() {
        if let Some(name) = name_of(rest) {
            let why = || Problem::text(format!("the placeholder %{name}% has no values"));
            let values = known.get(name).ok_or_else(why)?;
            if choices.len() == 2 * Limits::PLACEHOLDERS {
                return Err(Problem::limit("placeholders in a value", Limits::PLACEHOLDERS));
            }
            choices.push(Cow::Owned(vec![std::mem::take(&mut plain)]));
            choices.push(Cow::Borrowed(&values[..]));
            rest = &rest[name.len() + 2..];
            continue;
        }
        let is_escape = rest.starts_with(r"\%") || rest.starts_with(r"\\");
        let length = if is_escape { 2 } else { character.len_utf8() };
        plain.push_str(rest[..length].strip_prefix(r"\%").map_or(&rest[..length], |_| "%"));
        rest = &rest[length..];
    }
    choices.push(Cow::Owned(vec![plain]));
    Ok(choices)
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
        assert_eq!(texts("%c%"), Err(Problem::text("the placeholder %c% has no values")));
        assert!(texts(&"%a%".repeat(100)).is_err());
    }
}
