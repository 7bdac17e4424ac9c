//! Conditions: which detections must be true together.

use evtx_format::Interrupt;

use crate::error::{LoadError, Problem};
use crate::limits::{Budget, Limits};
use crate::pattern::{Pattern, Segment};
use crate::yaml::Node;

/// A condition over detections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The detection of this index is true.
    Detection(usize),
    /// This is not true.
    Not(Box<Condition>),
    /// All of these are true. There is at least one.
    All(Vec<Condition>),
    /// One of these is true. There is at least one.
    Any(Vec<Condition>),
}

/// What follows `|` in a condition of Sigma 1: an aggregation.
pub(crate) struct Piped<'t> {
    /// The text after `|`.
    pub(crate) text: String,
    /// The condition.
    node: Node<'t>,
    /// The number of characters before the text.
    before: usize,
}

impl Piped<'_> {
    /// An error at a byte of the text.
    pub(crate) fn error(&self, at: usize, problem: Problem) -> LoadError {
        let before = self.before + self.text[..at].chars().count();
        self.node.error_inside(before, problem)
    }
}

/// Reads a condition and an aggregation after it. The condition is a text, or a list of alternatives. `names` are those of
/// the rule's detections, in order.
pub(crate) fn condition<'t>(
    node: &Node<'t>,
    names: &[&str],
    budget: &mut Budget,
) -> Result<(Condition, Option<Piped<'t>>), LoadError> {
    let all = node.each();
    let is_piped = |node: &Node| node.text().is_some_and(|text| text.contains('|'));
    match all {
        [] => return Err(node.error(Problem::Empty("the list of conditions"))),
        [only] => {
            let text = only.need_text("a condition")?;
            if let Some((left, right)) = text.split_once('|') {
                let condition = one_of(only, left, names, budget)?;
                let piped = Piped {
                    text: right.to_string(),
                    node: only.clone(),
                    before: left.chars().count() + 1,
                };
                return Ok((condition, Some(piped)));
            }
        }
        [..] => {
            if let Some(piped) = all.iter().find(|node| is_piped(node)) {
                let why = "a condition with an aggregation must be the only one";
                return Err(piped.error(Problem::text(why)));
            }
        }
    }
    let one = |node: &Node| one_of(node, node.need_text("a condition")?, names, budget);
    let conditions = all.iter().map(one).collect::<Result<_, _>>()?;
    Ok((flat(conditions, Condition::Any), None))
}

/// Reads a condition from a text at the beginning of a node.
fn one_of(node: &Node, text: &str, names: &[&str], budget: &mut Budget) -> Result<Condition, LoadError> {
    let mut parser = ConditionParser {
        text,
        at: 0,
        depth: 0,
        names,
        budget,
    };
    parser.read().map_err(|problem| {
        let before = text[..parser.at].chars().count();
        node.error_inside(before, problem)
    })
}

/// The only condition of a list, or the whole list.
fn flat(mut conditions: Vec<Condition>, list: fn(Vec<Condition>) -> Condition) -> Condition {
    match conditions.len() {
        1 => conditions.remove(0),
        _ => list(conditions),
    }
}

/// Reads a condition by recursive descent. Precedence, from the weakest: `or`, `and`, `not`, `1 of`, parentheses
/// ("Condition" in the specification).
struct ConditionParser<'a> {
    text: &'a str,
    /// The offset of the current word, in bytes.
    at: usize,
    depth: usize,
    names: &'a [&'a str],
    budget: &'a mut Budget,
}

impl<'a> ConditionParser<'a> {
    fn read(&mut self) -> Result<Condition, Problem> {
        let condition = self.any()?;
        match self.peek() {
            "" => Ok(condition),
            _ => Err(self.unexpected()),
        }
    }

    /// The error for a word that is not `and`, `or` or the end.
    fn unexpected(&mut self) -> Problem {
        let word = self.peek();
        self.back_to(word);
        match word {
            "" => Problem::text("a parenthesis is not closed"),
            _ => Problem::text(format!("\"and\", \"or\" or the end is expected here, not \"{word}\"")),
        }
    }

    fn any(&mut self) -> Result<Condition, Problem> {
        self.list("or", Self::all, Condition::Any)
    }

    fn all(&mut self) -> Result<Condition, Problem> {
        self.list("and", Self::term, Condition::All)
    }

    fn list(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Result<Condition, Problem>,
        list: fn(Vec<Condition>) -> Condition,
    ) -> Result<Condition, Problem> {
        let mut parts = vec![part(self)?];
        while self.peek().eq_ignore_ascii_case(word) {
            self.next();
            parts.push(part(self)?);
        }
        Ok(flat(parts, list))
    }

    fn term(&mut self) -> Result<Condition, Problem> {
        if self.depth == Limits::CONDITION_NESTING {
            let what = "levels of parentheses and not";
            return Err(Problem::limit(what, Limits::CONDITION_NESTING));
        }
        self.depth += 1;
        let word = self.peek();
        self.next();
        let term = match word.to_ascii_lowercase().as_str() {
            "not" => Condition::Not(Box::new(self.term()?)),
            "(" => {
                let condition = self.any()?;
                match self.peek() {
                    ")" => self.next(),
                    _ => return Err(self.unexpected()),
                }
                condition
            }
            "1" | "any" if self.next_is("of") => self.several(Condition::Any)?,
            "all" if self.next_is("of") => self.several(Condition::All)?,
            count if count.bytes().all(|byte| byte.is_ascii_digit()) && !count.is_empty() && self.next_is("of") => {
                self.back_to(word);
                return Err(Problem::text(format!(
                    "there is \"1 of\", \"any of\" and \"all of\", but no \"{word} of\""
                )));
            }
            "" => {
                return Err(Problem::text("the condition ends where a detection is expected"));
            }
            ")" | "and" | "or" | "|" => {
                self.back_to(word);
                return Err(Problem::text(format!("a detection is expected here, not \"{word}\"")));
            }
            _ => match self.names.iter().position(|name| *name == word) {
                Some(index) => {
                    self.budget.take_term()?;
                    Condition::Detection(index)
                }
                None => {
                    self.back_to(word);
                    return Err(Problem::UnknownDetection(word.to_string()));
                }
            },
        };
        self.depth -= 1;
        Ok(term)
    }

    /// Reads what follows `1 of` or `all of`: `them`, or a name with `*` for any characters. Names that begin with `_` are
    /// hidden, unless the pattern begins with `_` too.
    fn several(&mut self, list: fn(Vec<Condition>) -> Condition) -> Result<Condition, Problem> {
        self.next();
        let word = self.peek();
        self.next();
        if ["", "(", ")", "|"].contains(&word) {
            return Err(Problem::text("\"of\" is followed by \"them\" or by a name with *"));
        }
        let parts = if word.eq_ignore_ascii_case("them") {
            vec![Segment::Many]
        } else {
            // The only wildcard is `*`, and there are no escapes.
            word.split('*')
                .flat_map(|text| [Segment::Many, Segment::Text(text.into())])
                .skip(1)
                .collect()
        };
        let pattern = Pattern::new(parts);
        let mut conditions = Vec::new();
        for (index, name) in self.names.iter().enumerate() {
            if pattern.matches(name, Interrupt::NEVER) && (word.starts_with('_') || !name.starts_with('_')) {
                self.budget.take_term()?;
                conditions.push(Condition::Detection(index));
            }
        }
        if conditions.is_empty() {
            self.back_to(word);
            let why = format!("this rule has no detection with a name like \"{word}\"");
            return Err(Problem::text(why));
        }
        Ok(flat(conditions, list))
    }

    /// The next word, or an empty one at the end. Parentheses and `|` are words.
    fn peek(&self) -> &'a str {
        let rest = self.text[self.at..].trim_start();
        let is_mark = |c: char| "()|".contains(c);
        let end = if rest.starts_with(is_mark) {
            1
        } else {
            rest.find(|c: char| is_mark(c) || c.is_whitespace())
                .unwrap_or(rest.len())
        };
        &rest[..end]
    }

    fn next_is(&self, word: &str) -> bool {
        self.peek().eq_ignore_ascii_case(word)
    }

    fn next(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len() + self.peek().len();
    }

    /// Goes back to a word of the text, for an error.
    fn back_to(&mut self, word: &str) {
        self.at = word.as_ptr() as usize - self.text.as_ptr() as usize;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::documents;

    const NAMES: [&str; 5] = ["sel_a", "sel_b", "filter", "_hidden", "_hid_b"];

    fn read(text: &str) -> Result<String, String> {
        let quoted = format!("'{text}'");
        let node = documents(&quoted, Interrupt::NEVER)
            .expect("nothing interrupts it")
            .remove(0)
            .expect("a text");
        let condition = condition(&node, &NAMES, &mut Budget::default());
        condition
            .map(|(condition, _)| shown(&condition))
            .map_err(|error| error.to_string())
    }

    fn shown(condition: &Condition) -> String {
        let list = |word: &str, parts: &[Condition]| {
            let parts: Vec<_> = parts.iter().map(shown).collect();
            format!("({})", parts.join(word))
        };
        match condition {
            Condition::Detection(index) => NAMES[*index].to_string(),
            Condition::Not(inner) => format!("!{}", shown(inner)),
            Condition::All(parts) => list(" & ", parts),
            Condition::Any(parts) => list(" | ", parts),
        }
    }

    #[test]
    fn reads_precedence_and_lists() {
        for (text, expected) in [
            ("sel_a", "sel_a"),
            ("sel_a or sel_b and not filter", "(sel_a | (sel_b & !filter))"),
            ("(sel_a or sel_b) and not filter", "((sel_a | sel_b) & !filter)"),
            ("not not filter and(sel_a)", "(!!filter & sel_a)"),
            ("1 of sel_* and not 1 of filter*", "((sel_a | sel_b) & !filter)"),
            ("any of *_b", "sel_b"),
            ("all of them", "(sel_a & sel_b & filter)"),
            ("1 of *", "(sel_a | sel_b | filter)"),
            ("1 of _h*", "(_hidden | _hid_b)"),
            ("all of s*l*b", "sel_b"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(expected));
        }
        assert!(read("_hidden AND 1 OF s*_?").is_err());
    }

    #[test]
    fn says_where_a_condition_is_wrong() {
        for (text, expected) in [
            ("", "column 2: the condition ends where a detection is expected"),
            (
                "sel_a and",
                "column 11: the condition ends where a detection is expected",
            ),
            (
                "sel_a sel_b",
                "column 8: \"and\", \"or\" or the end is expected here, not \"sel_b\"",
            ),
            ("sel_a and or", "column 12: a detection is expected here, not \"or\""),
            ("(sel_a", "column 8: a parenthesis is not closed"),
            (
                "sel_a)",
                "column 7: \"and\", \"or\" or the end is expected here, not \")\"",
            ),
            (
                "1 of nothing*",
                "column 7: this rule has no detection with a name like \"nothing*\"",
            ),
            (
                "2 of them",
                "column 2: there is \"1 of\", \"any of\" and \"all of\", but no \"2 of\"",
            ),
            ("1 of", "column 6: \"of\" is followed by \"them\" or by a name with *"),
        ] {
            assert_eq!(read(text), Err(format!("line 1, {expected}")), "{text}");
        }
    }

    #[test]
    fn bounds_nesting_and_length() {
        assert!(read(&("(".repeat(60) + "sel_a" + &")".repeat(60))).is_ok());
        for (text, why) in [
            ("(".repeat(100_000), "levels of parentheses and not"),
            ("not ".repeat(100_000), "levels of parentheses and not"),
            (
                "1 of them or ".repeat(20_000),
                "the limit is 10000 names in a condition",
            ),
        ] {
            assert!(read(&text).expect_err("an error").contains(why));
        }
    }
}
