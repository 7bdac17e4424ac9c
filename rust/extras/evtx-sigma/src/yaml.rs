//! YAML texts as trees of values with positions.
//!
//! Plain scalars have the types of the core schema of YAML 1.2.2 (section 10.3.2). Aliases are replaced by their values,
//! up to a limit.

use std::borrow::Cow;

use evtx_format::{Interrupt, Interrupted};
use granit_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput, Tag};
use hashbrown::{HashMap, HashSet};

use crate::error::{LoadError, Position, Problem};
use crate::limits::Limits;
use crate::number::Number;

/// A value and its position. Its texts borrow from the text of the file, where YAML writes them as they are.
#[derive(Debug, Clone)]
pub(crate) struct Node<'t> {
    pub(crate) at: Position,
    /// Whether it is a scalar on one line, so that positions inside it are known.
    is_line: bool,
    pub(crate) value: Value<'t>,
}

#[derive(Debug, Clone)]
pub(crate) enum Value<'t> {
    Null,
    Boolean(bool),
    /// A number and its text.
    Number(Number, Cow<'t, str>),
    Text(Cow<'t, str>),
    List(Vec<Node<'t>>),
    /// In the order of the text. Keys are distinct.
    Map(Vec<(Key<'t>, Node<'t>)>),
}

/// The key of a map.
#[derive(Debug, Clone)]
pub(crate) struct Key<'t> {
    pub(crate) at: Position,
    pub(crate) text: Cow<'t, str>,
}

impl<'t> Node<'t> {
    /// An error at this node.
    pub(crate) fn error(&self, problem: Problem) -> LoadError {
        problem.at(self.at)
    }

    /// An error at a character of this scalar, counted from 0.
    pub(crate) fn error_inside(&self, character: usize, problem: Problem) -> LoadError {
        let mut at = self.at;
        if self.is_line {
            at.column = at.column.saturating_add(u32::try_from(character).unwrap_or(u32::MAX));
        }
        problem.at(at)
    }

    /// An error for a value of another type than expected.
    pub(crate) fn wrong_type(&self, what: &str, expected: &'static str) -> LoadError {
        let found = self.value.type_name();
        self.error(Problem::text(format!("{what} must be {expected}, but this is {found}")))
    }

    /// The value of a key of a map, if there is one that is not NULL.
    pub(crate) fn get(&self, key: &str) -> Option<&Node<'t>> {
        let (_, value) = self.entry(key)?;
        (!matches!(value.value, Value::Null)).then_some(value)
    }

    fn entry(&self, key: &str) -> Option<&(Key<'t>, Node<'t>)> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|(name, _)| name.text == key),
            _ => None,
        }
    }

    /// The position of a key of a map, or that of the map.
    pub(crate) fn key_position(&self, key: &str) -> Position {
        self.entry(key).map_or(self.at, |(name, _)| name.at)
    }

    /// The entries of a map, or an error that calls it `what`.
    pub(crate) fn entries(&self, what: &str) -> Result<&[(Key<'t>, Node<'t>)], LoadError> {
        match &self.value {
            Value::Map(entries) => Ok(entries),
            _ => Err(self.wrong_type(what, "a map")),
        }
    }

    /// The text of a scalar: Booleans are `true` and `false`, numbers decimal. `None` for NULL, a list or a map.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) | Value::Number(_, text) => Some(text),
            Value::Boolean(true) => Some("true"),
            Value::Boolean(false) => Some("false"),
            Value::Null | Value::List(_) | Value::Map(_) => None,
        }
    }

    /// The text of a scalar, or an error that calls it `what`.
    pub(crate) fn need_text(&self, what: &str) -> Result<&str, LoadError> {
        self.text().ok_or_else(|| self.wrong_type(what, "a text"))
    }

    /// The nodes of a list, or this node if it is not a list.
    pub(crate) fn each(&self) -> &[Node<'t>] {
        match &self.value {
            Value::List(nodes) => nodes,
            _ => std::slice::from_ref(self),
        }
    }
}

impl Value<'_> {
    fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "NULL",
            Value::Boolean(_) => "a Boolean",
            Value::Number(..) => "a number",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }
}

/// Maps with fewer keys are searched for equal ones without a hash table.
const FEW_KEYS: usize = 16;

/// The documents of a text in order, without empty ones. The others load even if one is invalid.
pub(crate) fn documents<'t>(
    text: &'t str,
    interrupt: Interrupt<'_>,
) -> Result<Vec<Result<Node<'t>, LoadError>>, Interrupted> {
    let mut loader = Loader {
        interrupt,
        ..Loader::default()
    };
    let limit = |what, limit, line| Err(Problem::limit(what, limit).at(Position { line, column: 1 }));
    if text.len() > Limits::TEXT {
        return Ok(vec![limit("bytes of a text", Limits::TEXT, 1)]);
    }
    for document in split(text) {
        if loader.documents.len() >= Limits::DOCUMENTS {
            let error = limit("documents of a text", Limits::DOCUMENTS, loader.lines + 1);
            loader.documents.push(error);
            break;
        }
        if let Err(error) = loader.load(document) {
            loader.documents.push(Err(error));
        }
        interrupt.check()?;
        loader.lines += document.bytes().filter(|&byte| byte == b'\n').count() as u32;
    }
    Ok(loader.documents)
}

/// Splits a text into its documents. A line that begins with `---` always begins a document, unless only directives and
/// comments precede it; `...` ends one (YAML 1.2.2, 9.1).
fn split(text: &str) -> impl Iterator<Item = &str> {
    let is_mark = |line: &str, mark: &str| {
        let rest = line.strip_prefix(mark);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
    };
    let mut left = text;
    std::iter::from_fn(move || {
        let (mut end, mut has_content) = (0, false);
        for line in left.split_inclusive('\n') {
            if has_content && is_mark(line, "---") {
                break;
            }
            end += line.len();
            if is_mark(line, "...") {
                break;
            }
            has_content |= !line.trim_start().is_empty() && !line.starts_with(['%', '#']);
        }
        let document;
        (document, left) = left.split_at(end);
        (!document.is_empty()).then_some(document)
    })
}

/// The events of a document.
type Events<'t> = Parser<'t, StrInput<'t>>;

/// Builds nodes from the events of the parser. Recursion is as deep as [`Limits::NESTING`] allows.
#[derive(Default)]
struct Loader<'i, 't> {
    documents: Vec<Result<Node<'t>, LoadError>>,
    /// The number of lines before the current document.
    lines: u32,
    /// The value of an anchor, and the bytes that it takes. `None` while it is open.
    anchors: HashMap<usize, Option<(Node<'t>, usize)>>,
    /// The bytes that the values of all documents take.
    bytes: usize,
    /// The number of parser events so far.
    events: usize,
    interrupt: Interrupt<'i>,
}

impl<'t> Loader<'_, 't> {
    /// Loads a document, incompletely after an interrupt.
    fn load(&mut self, document: &'t str) -> Result<(), LoadError> {
        let options = granit_parser::options! {
            emit_comments: false,
            flow_nesting_limit: Limits::NESTING,
            block_nesting_limit: Limits::NESTING,
        };
        let mut events = Parser::new_from_str_with_options(document, options);
        while let Some((event, _)) = self.next(&mut events)? {
            if let Event::DocumentStart(..) = event {
                self.anchors.clear();
                let node = self.node(&mut events)?;
                let node = node.filter(|node| !matches!(node.value, Value::Null));
                self.documents.extend(node.map(Ok));
            }
        }
        Ok(())
    }

    /// The next event. `None` at the end of the document, and after an interrupt.
    fn next(&mut self, events: &mut Events<'t>) -> Result<Option<(Event<'t>, Span)>, LoadError> {
        // After an interrupt, the number stays the same, so nothing follows.
        if self.events.is_multiple_of(256) && self.interrupt.check().is_err() {
            return Ok(None);
        }
        self.events += 1;
        let next = events.next().transpose();
        next.map_err(|error| {
            let why = format!("this is not valid YAML: {}", error.info());
            Problem::text(why).at(self.position(error.marker()))
        })
    }

    fn position(&self, marker: &Marker) -> Position {
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Position {
            line: number(marker.line()).saturating_add(self.lines),
            column: number(marker.col()).saturating_add(1),
        }
    }

    /// The next node, or `None` at the end of the list, map or document that it would belong to.
    fn node(&mut self, events: &mut Events<'t>) -> Result<Option<Node<'t>>, LoadError> {
        let Some((event, span)) = self.next(events)? else {
            return Ok(None);
        };
        let (at, before) = (self.position(&span.start), self.bytes);
        let (anchor, node) = match event {
            Event::Alias(anchor) => {
                let Some(Some((node, bytes))) = self.anchors.get(&anchor) else {
                    return Err(Problem::text("this alias is inside the value that it stands for").at(at));
                };
                // Counted before the copy is made.
                count(&mut self.bytes, *bytes, at)?;
                return Ok(Some(node.clone()));
            }
            Event::Scalar(text, style, anchor, tag) => {
                count(&mut self.bytes, size_of::<(Key, Node)>() + text.len(), at)?;
                let is_quoted = matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted);
                let node = Node {
                    at: Position {
                        column: at.column + u32::from(is_quoted),
                        ..at
                    },
                    is_line: span.start.line() == span.end.line(),
                    value: scalar(text, style, tag.as_deref()),
                };
                (anchor, node)
            }
            Event::SequenceStart(_, anchor, _) => {
                self.anchors.insert(anchor, None);
                let mut nodes = Vec::new();
                while let Some(node) = self.node(events)? {
                    nodes.push(node);
                }
                (anchor, self.collection(Value::List(nodes), at)?)
            }
            Event::MappingStart(_, anchor, _) => {
                self.anchors.insert(anchor, None);
                let entries = self.entries(events)?;
                (anchor, self.collection(Value::Map(entries), at)?)
            }
            _ => return Ok(None),
        };
        // 0 means that there is no anchor.
        if anchor != 0 {
            let bytes = self.bytes - before;
            count(&mut self.bytes, bytes, node.at)?;
            self.anchors.insert(anchor, Some((node.clone(), bytes)));
        }
        Ok(Some(node))
    }

    fn entries(&mut self, events: &mut Events<'t>) -> Result<Vec<(Key<'t>, Node<'t>)>, LoadError> {
        let (mut entries, mut names) = (Vec::<(Key<'t>, Node<'t>)>::new(), HashSet::new());
        while let Some(key) = self.node(events)? {
            let text = match key.value {
                Value::Text(text) | Value::Number(_, text) => text,
                _ => {
                    let wrong = || key.error(Problem::text("a key must be a text or a number"));
                    key.text().ok_or_else(wrong)?.to_owned().into()
                }
            };
            let at = key.at;
            if text == "<<" {
                return Err(Problem::text("the merge key \"<<\" is not part of YAML 1.2").at(at));
            }
            // Few keys are compared with each other, more are looked up.
            let is_known = if entries.len() < FEW_KEYS {
                entries.iter().any(|(other, _)| other.text == text)
            } else {
                if names.is_empty() {
                    names.extend(entries.iter().map(|(other, _)| other.text.clone()));
                }
                !names.insert(text.clone())
            };
            if is_known {
                return Err(Problem::text(format!("the key \"{text}\" appears twice")).at(at));
            }
            if let Some(value) = self.node(events)? {
                entries.push((Key { at, text }, value));
            }
        }
        Ok(entries)
    }

    /// The node of a list or a map.
    fn collection(&mut self, value: Value<'t>, at: Position) -> Result<Node<'t>, LoadError> {
        count(&mut self.bytes, size_of::<(Key, Node)>(), at)?;
        let is_line = false;
        Ok(Node { at, is_line, value })
    }
}

fn count(bytes: &mut usize, more: usize, at: Position) -> Result<(), LoadError> {
    *bytes = bytes.saturating_add(more);
    if *bytes > Limits::VALUES {
        let what = "bytes of the values of a text with its aliases replaced";
        return Err(Problem::limit(what, Limits::VALUES).at(at));
    }
    Ok(())
}

/// The value of a scalar. Quoted scalars, and those with a tag that YAML does not define, are texts.
fn scalar<'t>(text: Cow<'t, str>, style: ScalarStyle, tag: Option<&Tag>) -> Value<'t> {
    let is_plain = match tag {
        Some(tag) => tag.core_suffix().is_some_and(|suffix| suffix != "str"),
        None => style == ScalarStyle::Plain,
    };
    match &*text {
        _ if !is_plain => Value::Text(text),
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Boolean(true),
        "false" | "False" | "FALSE" => Value::Boolean(false),
        _ => match Number::from_yaml(&text) {
            Some(number) => {
                // Decimal digits keep their leading zeros.
                let is_decimal = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
                let is_kept = text.strip_prefix('0').is_some_and(is_decimal);
                let text = if is_kept { text } else { number.to_string().into() };
                Value::Number(number, text)
            }
            None => Value::Text(text),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(text: &str) -> Vec<Result<Node<'_>, LoadError>> {
        super::documents(text, Interrupt::NEVER).expect("nothing interrupts it")
    }

    fn error(text: &str) -> String {
        let error = documents(text).into_iter().find_map(Result::err);
        error.expect("an error").to_string()
    }

    fn sound(text: &str) -> Vec<Node<'_>> {
        let documents: Result<_, _> = documents(text).into_iter().collect();
        documents.expect("YAML")
    }

    #[test]
    fn the_documents_around_an_invalid_one_load() {
        for broken in [
            "a: 1\na: 2",
            "a: 'b",
            "a: [b",
            "a: *b",
            "a: b: c",
            "a: |\n  b\n c: 'x",
            "- a\nb: c",
        ] {
            for (before, mark) in [
                ("a: 1\n---\n", "---\n"),
                ("---\na: 1\n--- # x\n", "---\r\n"),
                ("a: 1\n...\n", "--- \n"),
            ] {
                let text = format!("{before}{broken}\n{mark}a: 3\n");
                let found = documents(&text);
                let line = |document: &Result<Node<'_>, LoadError>| match document {
                    Ok(node) => node.at.line as i64,
                    Err(error) => -i64::from(error.position.line),
                };
                let lines: Vec<i64> = found.iter().map(line).collect();
                let (first, last) = (i64::from(before.starts_with("---")) + 1, text.lines().count() as i64);
                assert!(
                    lines.len() == 3 && lines[0] == first && lines[1] < -first && lines[1] >= -last && lines[2] == last,
                    "{text:?}: {lines:?}"
                );
            }
        }
    }

    #[test]
    fn marks_begin_documents_anywhere() {
        for (text, lines) in [
            ("a: 1\n---\nb: 2\n", &[1, 3][..]),
            ("%YAML 1.2\n# x\n\n---\na: 1\n...\n%YAML 1.2\n---\nb: 2\n", &[5, 9]),
            ("---\n---\n---\na: 1", &[4]),
            ("--- {a: 1}\n--- [b]\n---c: 2", &[1, 2]),
            ("a: |\n  ---\n  ...\n  ---\nb: '\n --- '\n", &[1]),
            ("a: 1\n...\nb: 1\n...\n", &[1, 3]),
            ("", &[]),
            ("# a\n", &[]),
        ] {
            let documents = documents(text);
            let found: Vec<_> = documents.iter().flatten().map(|node| node.at.line).collect();
            assert_eq!(found, lines, "{text:?}: {documents:?}");
        }
    }

    #[test]
    fn knows_positions_and_types() {
        let documents = sound("a: 1\nb:\n  - 'x'\n  - ~\n  - true\n---\n---\nc: '1'\n");
        assert_eq!(documents.len(), 2);
        let list = documents[0].get("b").expect("b").each();
        let seen: Vec<_> = list
            .iter()
            .map(|node| (node.at.line, node.at.column, node.value.type_name()))
            .collect();
        assert_eq!(seen, [(3, 6, "a text"), (4, 5, "NULL"), (5, 5, "a Boolean")]);
        assert_eq!(documents[0].get("a").expect("a").value.type_name(), "a number");
        assert_eq!(documents[1].get("c").expect("c").value.type_name(), "a text");
        assert_eq!(documents[1].at, Position { line: 8, column: 1 });
    }

    #[test]
    fn replaces_aliases() {
        let documents = sound("a: &x [1, 2]\nb: *x\nc: &y z\nd: *y\n");
        assert_eq!(documents[0].get("b").expect("b").each().len(), 2);
        assert_eq!(documents[0].get("d").expect("d").text().expect("a text"), "z");
    }

    #[test]
    fn refuses_what_is_not_a_tree() {
        assert_eq!(error("a: 1\na: 2\n"), "line 2, column 1: the key \"a\" appears twice");
        let many: String = (0..2 * FEW_KEYS).map(|number| format!("k{number}: 1\n")).collect();
        assert_eq!(sound(&many).len(), 1);
        for again in [0, FEW_KEYS - 1, FEW_KEYS, 2 * FEW_KEYS - 1] {
            let expected = format!(
                "line {}, column 1: the key \"k{again}\" appears twice",
                2 * FEW_KEYS + 1
            );
            assert_eq!(error(&format!("{many}k{again}: 1\n")), expected);
        }
        assert_eq!(error("[a]: 1\n"), "line 1, column 1: a key must be a text or a number");
        assert_eq!(
            error("a: &x [*x]\n"),
            "line 1, column 8: this alias is inside the value that it stands for"
        );
        assert_eq!(
            error("a: &x {b: 1}\nc:\n  <<: *x\n"),
            "line 3, column 3: the merge key \"<<\" is not part of YAML 1.2"
        );
        for (text, why) in [
            ("a: [1, 2\nb: 3\n", "line 2, column "),
            ("a: *x\n", "line 1, column 4: this is not valid YAML: "),
        ] {
            assert!(error(text).starts_with(why), "{}", error(text));
        }
    }

    #[test]
    fn bounds_aliases_depth_and_length() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..30 {
            let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb += &format!("a{level}: &a{level} [{aliases}]\n");
        }
        let bounded = "bytes of the values of a text with its aliases replaced";
        assert!(error(&bomb).contains(bounded));
        let many = bomb.lines().take(4).collect::<Vec<_>>().join("\n") + "\n---\n";
        assert!(error(&many.repeat(1000)).contains(bounded));
        assert!(error(&"[".repeat(100_000)).contains("not valid YAML"));
        assert!(error(&"- ".repeat(100_000)).contains("not valid YAML"));
        assert!(error(&"x".repeat(Limits::TEXT + 1)).contains("the limit is 1048576 bytes of a text"));
    }
}
