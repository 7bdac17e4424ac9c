//! Reads what follows `|` in conditions of Sigma 1: `count() by a, b > 5`, `sum(x) >= 3`, `near a and not b`.

use super::model::CorrelationKind;
use crate::error::Problem;
use crate::limits::Limits;
use crate::matcher::Comparison;

/// An aggregation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Aggregation {
    /// What is counted, compared with a number.
    Compared {
        kind: CorrelationKind,
        field: Option<String>,
        by: Vec<String>,
        condition: (Comparison, f64),
    },
    /// Other detections of the same rule, by their names, in the time before or after. Those of the second list may not be
    /// there.
    Near(Vec<String>, Vec<String>),
}

/// Reads an aggregation. An error has the byte offset in `text` where it is.
pub(crate) fn aggregation(text: &str) -> Result<Aggregation, (usize, Problem)> {
    let mut words = Words { text, at: 0 };
    let word = words.peek();
    if word.eq_ignore_ascii_case("near") {
        words.next();
        return near(words);
    }
    let kind = match word.to_ascii_lowercase().as_str() {
        "count" => CorrelationKind::EventCount,
        "min" => CorrelationKind::ValueMin,
        "max" => CorrelationKind::ValueMax,
        "sum" => CorrelationKind::ValueSum,
        "avg" => CorrelationKind::ValueAverage,
        _ => return Err(words.unexpected("count, min, max, sum, avg or near is expected after \"|\"")),
    };
    words.next();
    words.need("(")?;
    let at = words.start();
    let field = (words.peek() != ")").then(|| words.next().to_string());
    let kind = match (kind, &field) {
        (CorrelationKind::EventCount, Some(_)) => CorrelationKind::ValueCount,
        (CorrelationKind::EventCount, None) | (_, Some(_)) => kind,
        (_, None) => return Err(words.unexpected("the name of a field is expected here")),
    };
    if field.as_deref() == Some("*") {
        let why = "\"*\" is not the name of a field; to count events, write count()";
        return Err((at, Problem::text(why)));
    }
    words.need(")")?;
    let mut by = Vec::new();
    if words.peek().eq_ignore_ascii_case("by") {
        words.next();
        loop {
            by.push(words.name()?);
            if words.peek() != "," {
                break;
            }
            words.next();
        }
    }
    if by.len() > Limits::GROUP_FIELDS {
        let problem = Problem::limit("fields of a correlation", Limits::GROUP_FIELDS);
        return Err((words.at, problem));
    }
    let sign = words.peek();
    let known = Comparison::ALL.iter().find(|(_, _, known)| *known == sign);
    let comparison = match (known, sign) {
        (Some((comparison, ..)), _) => *comparison,
        (None, "==") => Comparison::Equal,
        _ => return Err(words.unexpected("<, <=, >, >=, = or != is expected here")),
    };
    words.next();
    let number = words.peek().parse::<f64>().ok().filter(|number| number.is_finite());
    let limit = number.ok_or_else(|| words.unexpected("a number is expected here"))?;
    words.next();
    words.end()?;
    Ok(Aggregation::Compared {
        kind,
        field,
        by,
        condition: (comparison, limit),
    })
}

fn near(mut words: Words<'_>) -> Result<Aggregation, (usize, Problem)> {
    let (mut present, mut absent) = (Vec::new(), Vec::new());
    loop {
        let is_absent = words.peek().eq_ignore_ascii_case("not");
        if is_absent {
            words.next();
        }
        let list = if is_absent { &mut absent } else { &mut present };
        list.push(words.name()?);
        if present.len() + absent.len() >= Limits::REFERENCES {
            let problem = Problem::limit("detections after near", Limits::REFERENCES - 1);
            return Err((words.at, problem));
        }
        if !words.peek().eq_ignore_ascii_case("and") {
            break;
        }
        words.next();
    }
    words.end()?;
    Ok(Aggregation::Near(present, absent))
}

/// Words, signs of comparison, and single marks.
struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    fn peek(&self) -> &'a str {
        let rest = self.text[self.at..].trim_start();
        let is_sign = |c: char| "<>=!".contains(c);
        let is_mark = |c: char| "(),|".contains(c);
        let end = |is_part: &dyn Fn(char) -> bool| rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let end = match rest.chars().next() {
            Some(first) if is_mark(first) => 1,
            Some(first) if is_sign(first) => end(&is_sign),
            _ => end(&|c| !is_mark(c) && !is_sign(c) && !c.is_whitespace()),
        };
        &rest[..end]
    }

    fn next(&mut self) -> &'a str {
        let word = self.peek();
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len() + word.len();
        word
    }

    fn name(&mut self) -> Result<String, (usize, Problem)> {
        let is_mark = |c: char| "(),|<>=!".contains(c);
        if self.peek().starts_with(is_mark) || self.peek().is_empty() {
            Err(self.unexpected("a name is expected here"))
        } else {
            Ok(self.next().to_string())
        }
    }

    fn need(&mut self, word: &str) -> Result<(), (usize, Problem)> {
        if self.peek() == word {
            self.next();
            Ok(())
        } else {
            Err(self.unexpected(&format!("\"{word}\" is expected here")))
        }
    }

    fn end(&self) -> Result<(), (usize, Problem)> {
        match self.peek() {
            "" => Ok(()),
            _ => Err(self.unexpected("the end is expected here")),
        }
    }

    /// Where the next word begins.
    fn start(&self) -> usize {
        let rest = &self.text[self.at..];
        self.at + rest.len() - rest.trim_start().len()
    }

    fn unexpected(&self, expected: &str) -> (usize, Problem) {
        let at = self.start();
        let problem = match self.peek() {
            "" => format!("{expected}, but the condition ends"),
            word => format!("{expected}, not \"{word}\""),
        };
        (at, Problem::text(problem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_functions() {
        let read = aggregation("count(TargetUserName) by IpAddress,Computer >= 5").expect("an aggregation");
        let expected = Aggregation::Compared {
            kind: CorrelationKind::ValueCount,
            field: Some("TargetUserName".to_string()),
            by: vec!["IpAddress".to_string(), "Computer".to_string()],
            condition: (Comparison::GreaterOrEqual, 5.0),
        };
        assert_eq!(read, expected);
        for text in [
            "count()<5",
            " COUNT ( ) BY a > 5 ",
            "sum(x) = 1.5",
            "avg(x) == 1",
            "min(x) != 1",
            "max(x)<=-1",
        ] {
            assert!(aggregation(text).is_ok(), "{text}");
        }
        let lists = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let near = Aggregation::Near(lists(&["a", "b"]), lists(&["c"]));
        assert_eq!(aggregation("near a and b and not c"), Ok(near));
    }

    #[test]
    fn says_where_it_is_wrong() {
        for (text, at, why) in [
            (
                "",
                0,
                "count, min, max, sum, avg or near is expected after \"|\", but the condition ends",
            ),
            (
                "median(x) > 1",
                0,
                "count, min, max, sum, avg or near is expected after \"|\", not \"median\"",
            ),
            ("count > 1", 6, "\"(\" is expected here, not \">\""),
            ("sum() > 1", 4, "the name of a field is expected here, not \")\""),
            ("count() by > 1", 11, "a name is expected here, not \">\""),
            (
                "count( * ) > 5",
                7,
                "\"*\" is not the name of a field; to count events, write count()",
            ),
            ("count() 5", 8, "<, <=, >, >=, = or != is expected here, not \"5\""),
            ("count() > x", 10, "a number is expected here, not \"x\""),
            ("count() > 5 | near x", 12, "the end is expected here, not \"|\""),
            ("near", 4, "a name is expected here, but the condition ends"),
            ("near a or b", 7, "the end is expected here, not \"or\""),
        ] {
            let (found, problem) = aggregation(text).expect_err(text);
            assert_eq!((found, problem.to_string().as_str()), (at, why), "{text}");
        }
    }
}
