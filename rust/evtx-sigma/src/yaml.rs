//! YAML texts as trees of values, with the position of each.
//!
//! Kinds of plain scalars are those of the core schema of YAML 1.2.2 (section 10.3.2). Anchors and aliases are
//! replaced; what a text can grow to by them is bounded.

use std::collections::{HashMap, HashSet};

use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, Tag};

use crate::error::{LoadError, Position, Problem};
use crate::limits::Limits;
use crate::number::Number;
use crate::stop::{Stop, Stopped};

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// Where it begins.
    pub(crate) at: Position,
    /// Whether it is a scalar on one line, so that places inside of it are known.
    is_line: bool,
    pub(crate) value: Value,
}

#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Boolean(bool),
    /// A number and its text.
    Number(Number, String),
    Text(String),
    List(Vec<Node>),
    /// In the order of the text. No key is there twice.
    Map(Vec<(Key, Node)>),
}

/// The key of a map.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) at: Position,
    pub(crate) text: String,
}

impl Node {
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

    /// An error that says what this node is in place of what was expected.
    pub(crate) fn wrong_kind(&self, what: &str, expected: &'static str) -> LoadError {
        self.error(Problem::Kind {
            what: what.to_string(),
            expected,
            found: self.value.kind(),
        })
    }

    /// The value of a key of a map, if it is there and not NULL.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        let Value::Map(entries) = &self.value else {
            return None;
        };
        let (_, value) = entries.iter().find(|(name, _)| name.text == key)?;
        (!matches!(value.value, Value::Null)).then_some(value)
    }

    /// The position of a key of a map, or that of the map.
    pub(crate) fn key_position(&self, key: &str) -> Position {
        match &self.value {
            Value::Map(entries) => entries
                .iter()
                .find(|(name, _)| name.text == key)
                .map_or(self.at, |(name, _)| name.at),
            _ => self.at,
        }
    }

    /// The entries of a map. `what` names it in the error if it is none.
    pub(crate) fn entries(&self, what: &str) -> Result<&[(Key, Node)], LoadError> {
        match &self.value {
            Value::Map(entries) => Ok(entries),
            _ => Err(self.wrong_kind(what, "a map")),
        }
    }

    /// The text of a scalar: Booleans are `true` and `false`, numbers decimal. `None` if it is NULL, a list or a map.
    pub(crate) fn text(&self) -> Option<String> {
        match &self.value {
            Value::Text(text) => Some(text.clone()),
            Value::Boolean(boolean) => Some(boolean.to_string()),
            Value::Number(_, text) => Some(text.clone()),
            Value::Null | Value::List(_) | Value::Map(_) => None,
        }
    }

    /// The text of a scalar, or an error that names it.
    pub(crate) fn need_text(&self, what: &str) -> Result<String, LoadError> {
        self.text().ok_or_else(|| self.wrong_kind(what, "a text"))
    }

    /// The nodes of a list, or a node that is none as a list of one.
    pub(crate) fn each(&self) -> &[Node] {
        match &self.value {
            Value::List(nodes) => nodes,
            _ => std::slice::from_ref(self),
        }
    }
}

impl Value {
    fn kind(&self) -> &'static str {
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

/// The documents of a text in order, without those that are empty. One that is no YAML is an error, and the others load.
/// So are too many.
///
/// # Errors
/// [`Stopped`].
pub(crate) fn documents(text: &str, stop: &Stop<'_>) -> Result<Vec<Result<Node, LoadError>>, Stopped> {
    let mut loader = Loader::default();
    let limit = |what, limit, line| Err(Problem::Limit { what, limit }.at(Position { line, column: 1 }));
    if text.len() > Limits::TEXT {
        return Ok(vec![limit("bytes of a text", Limits::TEXT, 1)]);
    }
    for piece in pieces(text) {
        if loader.documents.len() >= Limits::DOCUMENTS {
            let line = loader.lines + 1;
            loader
                .documents
                .push(limit("documents of a text", Limits::DOCUMENTS, line));
            break;
        }
        if let Err(error) = loader.load(piece, stop) {
            loader.documents.push(Err(error));
            loader.open.clear();
        }
        stop.result()?;
        loader.lines += piece.matches('\n').count() as u32;
    }
    Ok(loader.documents)
}

/// A text in pieces of mostly one document each. A line that begins with `---` begins a document, in whatever it stands,
/// unless only directives and comments are before it; `...` ends one (YAML 1.2.2, 9.1).
fn pieces(text: &str) -> impl Iterator<Item = &str> {
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
        let piece;
        (piece, left) = left.split_at(end);
        (!piece.is_empty()).then_some(piece)
    })
}

/// Puts the events of the parser together.
#[derive(Default)]
struct Loader {
    documents: Vec<Result<Node, LoadError>>,
    /// How many lines of the text are before the piece at hand.
    lines: u32,
    open: Vec<Open>,
    /// What an anchor stands for, and the bytes that it takes. `None` while it is open.
    anchors: HashMap<usize, Option<(Node, usize)>>,
    /// Bytes that the values of all documents take.
    bytes: usize,
    /// Events of the parser since the caller was asked whether to go on.
    events: usize,
}

/// A list or map that has not ended.
struct Open {
    at: Position,
    anchor: usize,
    /// What the values before it take, in bytes.
    bytes: usize,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Map {
        entries: Vec<(Key, Node)>,
        /// The keys, once there are many.
        names: HashSet<String>,
        /// A key whose value is to come.
        key: Option<Key>,
    },
}

impl Loader {
    /// Loads a piece, or a part of it if it is stopped.
    fn load(&mut self, piece: &str, stop: &Stop<'_>) -> Result<(), LoadError> {
        let options = granit_parser::options! {
            emit_comments: false,
            flow_nesting_limit: Limits::NESTING,
            block_nesting_limit: Limits::NESTING,
        };
        for event in Parser::new_from_str_with_options(piece, options) {
            let (event, span) = event.map_err(|error| self.no_yaml(&error))?;
            self.take(event, span)?;
            self.events += 1;
            if self.events.is_multiple_of(256) && stop.check().is_err() {
                break;
            }
        }
        Ok(())
    }

    fn position(&self, marker: &Marker) -> Position {
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Position {
            line: number(marker.line()).saturating_add(self.lines),
            column: number(marker.col()).saturating_add(1),
        }
    }

    fn no_yaml(&self, error: &ScanError) -> LoadError {
        Problem::Yaml(error.info()).at(self.position(error.marker()))
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), LoadError> {
        let at = self.position(&span.start);
        match event {
            Event::DocumentStart(..) => self.anchors.clear(),
            Event::Alias(anchor) => {
                let (node, bytes) = match self.anchors.get(&anchor) {
                    Some(Some(known)) => known,
                    _ => return Err(Problem::EndlessAlias.at(at)),
                };
                // Counted before the copy is made.
                count(&mut self.bytes, *bytes, at)?;
                let node = node.clone();
                self.put(node)?;
            }
            Event::Scalar(text, style, anchor, tag) => {
                let bytes = size_of::<(Key, Node)>() + text.len();
                count(&mut self.bytes, bytes, at)?;
                let is_quoted = matches!(style, ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted);
                let node = Node {
                    at: Position {
                        column: at.column + u32::from(is_quoted),
                        ..at
                    },
                    is_line: span.start.line() == span.end.line(),
                    value: scalar(text.into_owned(), style, tag.as_deref()),
                };
                self.name(anchor, &node, bytes)?;
                self.put(node)?;
            }
            Event::SequenceStart(_, anchor, _) => self.open(at, anchor, Content::List(Vec::new())),
            Event::MappingStart(_, anchor, _) => {
                let (entries, names, key) = (Vec::new(), HashSet::new(), None);
                self.open(at, anchor, Content::Map { entries, names, key });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else { return Ok(()) };
                count(&mut self.bytes, size_of::<(Key, Node)>(), open.at)?;
                let node = Node {
                    at: open.at,
                    is_line: false,
                    value: match open.content {
                        Content::List(nodes) => Value::List(nodes),
                        Content::Map { entries, .. } => Value::Map(entries),
                    },
                };
                self.name(open.anchor, &node, self.bytes - open.bytes)?;
                self.put(node)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, at: Position, anchor: usize, content: Content) {
        if anchor != 0 {
            self.anchors.insert(anchor, None);
        }
        let bytes = self.bytes;
        self.open.push(Open {
            at,
            anchor,
            bytes,
            content,
        });
    }

    /// Keeps what an anchor stands for. Anchor 0 is none.
    fn name(&mut self, anchor: usize, node: &Node, bytes: usize) -> Result<(), LoadError> {
        if anchor != 0 {
            // Counted before the copy is made.
            count(&mut self.bytes, bytes, node.at)?;
            self.anchors.insert(anchor, Some((node.clone(), bytes)));
        }
        Ok(())
    }

    /// Puts a node where it belongs: as a key or value of a map, a member of a list, or a document.
    fn put(&mut self, node: Node) -> Result<(), LoadError> {
        match self.open.last_mut().map(|open| &mut open.content) {
            None if matches!(node.value, Value::Null) => {}
            None => self.documents.push(Ok(node)),
            Some(Content::List(nodes)) => nodes.push(node),
            Some(Content::Map { entries, names, key }) => match key.take() {
                Some(key) => entries.push((key, node)),
                None => {
                    let text = node.text().ok_or_else(|| node.error(Problem::KeyKind))?;
                    if text == "<<" {
                        return Err(node.error(Problem::MergeKey));
                    }
                    if !add_name(names, entries, &text) {
                        return Err(node.error(Problem::KeyTwice(text)));
                    }
                    *key = Some(Key { at: node.at, text });
                }
            },
        }
        Ok(())
    }
}

/// Adds the key of a map that has these entries. `false` if it is there.
fn add_name(names: &mut HashSet<String>, entries: &[(Key, Node)], text: &str) -> bool {
    /// So many keys are compared one by one.
    const FEW: usize = 16;
    if entries.len() < FEW {
        return entries.iter().all(|(key, _)| key.text != text);
    }
    if names.is_empty() {
        names.extend(entries.iter().map(|(key, _)| key.text.clone()));
    }
    names.insert(text.to_owned())
}

fn count(bytes: &mut usize, more: usize, at: Position) -> Result<(), LoadError> {
    *bytes = bytes.saturating_add(more);
    if *bytes > Limits::VALUES {
        let (what, limit) = (
            "bytes of the values of a text with its aliases replaced",
            Limits::VALUES,
        );
        return Err(Problem::Limit { what, limit }.at(at));
    }
    Ok(())
}

/// What a scalar is. Only plain scalars can be other than a text; a tag that is none of YAML's makes a text of it.
fn scalar(text: String, style: ScalarStyle, tag: Option<&Tag>) -> Value {
    let is_plain = match tag {
        Some(tag) => tag.core_suffix().is_some_and(|suffix| suffix != "str"),
        None => style == ScalarStyle::Plain,
    };
    match text.as_str() {
        _ if !is_plain => Value::Text(text),
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Boolean(true),
        "false" | "False" | "FALSE" => Value::Boolean(false),
        _ => match Number::from_yaml(&text) {
            Some(number) => {
                let text = number_text(&number, text);
                Value::Number(number, text)
            }
            None => Value::Text(text),
        },
    }
}

/// The text of a number: its decimal digits, with the zeros before them.
fn number_text(number: &Number, written: String) -> String {
    match written.strip_prefix('0') {
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => written,
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn documents(text: &str) -> Vec<Result<Node, LoadError>> {
        super::documents(text, &Stop::never()).expect("nothing stops it")
    }

    fn error(text: &str) -> String {
        let error = documents(text).into_iter().find_map(Result::err);
        error.expect("an error").to_string()
    }

    fn sound(text: &str) -> Vec<Node> {
        let documents: Result<_, _> = documents(text).into_iter().collect();
        documents.expect("YAML")
    }

    #[test]
    fn one_document_that_is_no_yaml_takes_no_other_with_it() {
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
                let line = |document: &Result<Node, LoadError>| match document {
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
    fn marks_begin_documents_wherever_they_stand() {
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
    fn says_where_and_what_values_are() {
        let documents = sound("a: 1\nb:\n  - 'x'\n  - ~\n  - true\n---\n---\nc: '1'\n");
        assert_eq!(documents.len(), 2);
        let list = documents[0].get("b").expect("b").each();
        let seen: Vec<_> = list
            .iter()
            .map(|node| (node.at.line, node.at.column, node.value.kind()))
            .collect();
        assert_eq!(seen, [(3, 6, "a text"), (4, 5, "NULL"), (5, 5, "a Boolean")]);
        assert_eq!(documents[0].get("a").expect("a").value.kind(), "a number");
        assert_eq!(documents[1].get("c").expect("c").value.kind(), "a text");
        assert_eq!(documents[1].at, Position { line: 8, column: 1 });
    }

    #[test]
    fn replaces_aliases() {
        let documents = sound("a: &x [1, 2]\nb: *x\nc: &y z\nd: *y\n");
        assert_eq!(documents[0].get("b").expect("b").each().len(), 2);
        assert_eq!(documents[0].get("d").expect("d").text().expect("a text"), "z");
    }

    #[test]
    fn refuses_what_is_no_tree() {
        assert_eq!(error("a: 1\na: 2\n"), "line 2, column 1: the key \"a\" is here twice");
        for count in [15, 16, 17, 40] {
            let mut many: String = (0..count).map(|key| format!("{key}: x\n")).collect();
            assert_eq!(sound(&many).len(), 1);
            many += &format!("{}: x\n", count / 2);
            let (line, key) = (count + 1, count / 2);
            assert_eq!(
                error(&many),
                format!("line {line}, column 1: the key \"{key}\" is here twice")
            );
        }
        assert_eq!(error("[a]: 1\n"), "line 1, column 1: a key is a text or a number");
        assert_eq!(
            error("a: &x [*x]\n"),
            "line 1, column 8: this alias is inside of the value that it stands for"
        );
        assert_eq!(
            error("a: &x {b: 1}\nc:\n  <<: *x\n"),
            "line 3, column 3: the merge key \"<<\" is no part of YAML 1.2"
        );
        assert!(
            error("a: [1, 2\nb: 3\n").starts_with("line 2, column "),
            "{}",
            error("a: [1, 2\nb: 3\n")
        );
        assert!(
            error("a: *x\n").starts_with("line 1, column 4: this is no YAML: "),
            "{}",
            error("a: *x\n")
        );
    }

    #[test]
    fn bounds_aliases_depth_and_length() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..30 {
            let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb += &format!("a{level}: &a{level} [{aliases}]\n");
        }
        assert!(
            error(&bomb).contains("bytes of the values of a text with its aliases replaced"),
            "{}",
            error(&bomb)
        );
        let many = bomb.lines().take(4).collect::<Vec<_>>().join("\n") + "\n---\n";
        assert!(error(&many.repeat(1000)).contains("bytes of the values of a text with its aliases replaced"));
        assert!(error(&"[".repeat(100_000)).contains("no YAML"));
        assert!(error(&"- ".repeat(100_000)).contains("no YAML"));
        assert!(error(&"x".repeat(Limits::TEXT + 1)).contains("the limit is 1048576 bytes of a text"));
    }
}
