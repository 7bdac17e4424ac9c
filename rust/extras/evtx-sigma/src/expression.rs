//! Regular expressions: from the PCRE of rules to the syntax of the crate `regex`.

use std::sync::{Arc, Mutex, OnceLock};

use evtx_format::{Interrupt, Interrupted};
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::meta::{self, BuildError, Regex};
use regex_automata::nfa::thompson::{self, Compiler, WhichCaptures};
use regex_automata::{Input, MatchKind};
use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{self, Ast, ClassSetBinaryOp, ClassSetItem};
use regex_syntax::hir::translate::TranslatorBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

use crate::error::Problem;
use crate::limits::Limits;

/// The flags of a regular expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Flags {
    /// `i`: without regard to case.
    pub(crate) ignore_case: bool,
    /// `m`: `^` and `$` match at every line.
    pub(crate) multi_line: bool,
    /// `s`: a dot matches line ends too.
    pub(crate) dot_all: bool,
}

/// A regular expression of a rule.
///
/// Its syntax is PCRE ("Regular Expression" in the specification) without look-around and backreferences. Characters
/// are those of Unicode, but `\w`, `\d`, `\s` and `\b` are about ASCII, as in PCRE.
#[derive(Debug, Clone)]
pub struct Expression {
    regex: Regex,
    /// The expression in the syntax of the crate `regex`.
    text: Box<str>,
    flags: Flags,
    /// For long texts, built for the first one. `None` if it cannot be built.
    stoppable: Arc<OnceLock<Option<Stoppable>>>,
}

/// An automaton that builds its states while it runs, at most one for each byte of text.
#[derive(Debug)]
struct Stoppable {
    automaton: DFA,
    /// The states of earlier searches.
    states: Mutex<Vec<Cache>>,
}

/// The longest text that `regex` searches, in bytes. It cannot be interrupted, and a byte can cost the program's size.
const SHORT: usize = 512;

/// Bytes of text between two checks for an interrupt. In the worst case, each builds a state.
const STEP: usize = 64;

impl Expression {
    /// Parses an expression, and refuses one that would take much work to compile. Short texts can ask for a lot:
    /// `\p{L}` has 677 ranges, and `(a{1000}){1000}` a million states.
    pub(crate) fn parse(text: &str, flags: Flags) -> Result<Parsed, Problem> {
        if text.len() > Limits::REGEX_TEXT {
            return Err(too_large("bytes", Limits::REGEX_TEXT));
        }
        Parsed::new(translated(text)?.into_boxed_str(), flags)
    }

    /// The bytes of memory that it takes, without those that it needs while it runs.
    pub fn bytes(&self) -> usize {
        self.regex.memory_usage() + self.text.len()
    }

    /// The expression in the syntax of the crate `regex`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a text contains a match.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// The same, but the search can be interrupted.
    pub(crate) fn find(&self, text: &str, interrupt: Interrupt<'_>) -> Result<bool, Interrupted> {
        interrupt.check()?;
        if text.len() > SHORT
            && let Some(is_match) = self.find_end(text, interrupt)?
        {
            return Ok(is_match.is_some());
        }
        Ok(self.is_match(text))
    }

    /// The byte offset at which the match that ends first does so, if there is one. `None` if it is not known.
    pub(crate) fn find_end(&self, text: &str, interrupt: Interrupt<'_>) -> Result<Option<Option<usize>>, Interrupted> {
        let stoppable = self.stoppable.get_or_init(|| self.stoppable());
        stoppable
            .as_ref()
            .map_or(Ok(None), |stoppable| stoppable.find_end(text, interrupt))
    }

    fn stoppable(&self) -> Option<Stoppable> {
        let program = Compiler::new()
            .configure(thompson::Config::new().which_captures(WhichCaptures::None))
            .build_from_hir(&Parsed::new(self.text.clone(), self.flags).ok()?.hir().ok()?)
            .ok()?;
        let config = DFA::config()
            .match_kind(MatchKind::All)
            .cache_capacity(Limits::REGEX)
            .skip_cache_capacity_check(true);
        Some(Stoppable {
            automaton: DFA::builder().configure(config).build_from_nfa(program).ok()?,
            states: Mutex::default(),
        })
    }
}

/// An expression whose classes are not expanded yet.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// In the syntax of the crate `regex`.
    text: Box<str>,
    flags: Flags,
    tree: Ast,
    class_characters: usize,
}

impl Parsed {
    fn new(text: Box<str>, flags: Flags) -> Result<Parsed, Problem> {
        let parsed = ParserBuilder::new().nest_limit(NESTING).build().parse(&text);
        let tree = parsed.map_err(|error| does_not_compile(&error))?;
        let class_characters = ast::visit(&tree, ClassCharacters(0))?;
        Ok(Parsed {
            text,
            flags,
            tree,
            class_characters,
        })
    }

    /// Expands the classes.
    fn hir(&self) -> Result<Hir, Problem> {
        let translated = TranslatorBuilder::new()
            .case_insensitive(self.flags.ignore_case)
            .multi_line(self.flags.multi_line)
            .dot_matches_new_line(self.flags.dot_all)
            .build()
            .translate(&self.text, &self.tree);
        let hir = translated.map_err(|error| does_not_compile(&error))?;
        if states(&hir) > Limits::REGEX_STATES {
            return Err(too_large(
                "characters and ranges after its repetitions are written out",
                Limits::REGEX_STATES,
            ));
        }
        Ok(hir)
    }

    /// Compiles the expression. Also returns the bytes of memory that this took.
    pub(crate) fn compile(self) -> (usize, Result<Expression, Problem>) {
        let expanded = self.class_characters * CLASS_CHARACTER;
        let hir = match self.hir() {
            Ok(hir) => hir,
            Err(problem) => return (expanded, Err(problem)),
        };
        let config = meta::Config::new()
            .nfa_size_limit(Some(Limits::REGEX))
            .hybrid_cache_capacity(Limits::REGEX)
            .which_captures(WhichCaptures::None);
        match Regex::builder().configure(config).build_from_hir(&hir) {
            Ok(regex) => {
                let (text, flags, stoppable) = (self.text, self.flags, Arc::default());
                let expression = Expression {
                    regex,
                    text,
                    flags,
                    stoppable,
                };
                (expression.bytes().max(expanded), Ok(expression))
            }
            Err(error) => (Limits::REGEX, Err(problem(&error))),
        }
    }
}

/// About how many bytes of memory a character of a class takes while the class is expanded.
const CLASS_CHARACTER: usize = 16;

/// Counts characters in the ranges of classes, which without regard to case are folded one by one.
struct ClassCharacters(usize);

impl ClassCharacters {
    /// The most that a range, a Unicode class or an operation on classes counts. About 3,000 characters have another case.
    const MOST: usize = 4096;

    fn add(&mut self, characters: usize) -> Result<(), Problem> {
        self.0 += characters.min(Self::MOST);
        if self.0 > Limits::REGEX_CLASS_CHARACTERS {
            return Err(too_large("characters in its classes", Limits::REGEX_CLASS_CHARACTERS));
        }
        Ok(())
    }
}

impl ast::Visitor for ClassCharacters {
    type Output = usize;
    type Err = Problem;

    fn finish(self) -> Result<usize, Problem> {
        Ok(self.0)
    }

    fn visit_pre(&mut self, tree: &Ast) -> Result<(), Problem> {
        match tree {
            Ast::ClassUnicode(_) | Ast::ClassPerl(_) => self.add(Self::MOST),
            _ => Ok(()),
        }
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Problem> {
        match item {
            ClassSetItem::Empty(_) | ClassSetItem::Literal(_) | ClassSetItem::Union(_) => Ok(()),
            ClassSetItem::Range(range) => self.add((range.start.c..=range.end.c).size_hint().0),
            ClassSetItem::Ascii(class) if !class.negated => self.add(128),
            ClassSetItem::Ascii(_) | ClassSetItem::Unicode(_) | ClassSetItem::Perl(_) | ClassSetItem::Bracketed(_) => {
                self.add(Self::MOST)
            }
        }
    }

    fn visit_class_set_binary_op_pre(&mut self, _: &ClassSetBinaryOp) -> Result<(), Problem> {
        self.add(Self::MOST)
    }
}

/// About how many states the program of an expression has.
fn states(hir: &Hir) -> usize {
    let sum = |parts: &[Hir]| parts.iter().map(states).fold(0, usize::saturating_add);
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len(),
        HirKind::Class(Class::Unicode(class)) => class.ranges().len(),
        HirKind::Class(Class::Bytes(class)) => class.ranges().len(),
        HirKind::Repetition(repetition) => {
            let times = repetition.max.unwrap_or(repetition.min.saturating_add(1));
            states(&repetition.sub).saturating_mul(times as usize)
        }
        HirKind::Capture(capture) => states(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => sum(parts),
    }
}

fn too_large(what: &str, limit: usize) -> Problem {
    Problem::Regex(format!("is too large: the limit is {limit} {what}"))
}

/// Why a program cannot be built.
fn problem(error: &BuildError) -> Problem {
    match error.size_limit() {
        Some(_) => too_large("bytes of its program", Limits::REGEX),
        None => does_not_compile(error),
    }
}

/// The last line of the message says why, those before it where.
fn does_not_compile(error: &dyn std::error::Error) -> Problem {
    let text = error.to_string();
    let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
    Problem::Regex(format!("does not compile: {why}"))
}

impl Stoppable {
    /// The number of searches whose states are kept, and the most bytes of each.
    const KEPT: usize = 2;
    const KEPT_BYTES: usize = 256 << 10;

    /// As [`Expression::find_end`].
    fn find_end(&self, text: &str, interrupt: Interrupt<'_>) -> Result<Option<Option<usize>>, Interrupted> {
        let states = self.states.lock().ok().and_then(|mut states| states.pop());
        let mut cache = states.unwrap_or_else(|| self.automaton.create_cache());
        let result = walk(&self.automaton, &mut cache, text, interrupt);
        if let Ok(mut states) = self.states.lock()
            && states.len() < Self::KEPT
            && cache.memory_usage() <= Self::KEPT_BYTES
        {
            states.push(cache);
        }
        result
    }
}

fn walk(
    automaton: &DFA,
    cache: &mut Cache,
    text: &str,
    interrupt: Interrupt<'_>,
) -> Result<Option<Option<usize>>, Interrupted> {
    let Ok(mut state) = automaton.start_state_forward(cache, &Input::new(text)) else {
        return Ok(None);
    };
    for (number, bytes) in text.as_bytes().chunks(STEP).enumerate() {
        interrupt.check()?;
        for (at, &byte) in (number * STEP..).zip(bytes) {
            let Ok(next) = automaton.next_state(cache, state, byte) else {
                return Ok(None);
            };
            state = next;
            // A match is reported one byte late. An empty match between the bytes of a character does not count.
            if state.is_match() && text.is_char_boundary(at) {
                return Ok(Some(Some(at)));
            } else if state.is_dead() {
                return Ok(Some(None));
            } else if state.is_quit() {
                return Ok(None);
            }
        }
    }
    let end = automaton.next_eoi_state(cache, state);
    Ok(end.ok().map(|state| state.is_match().then_some(text.len())))
}

/// How deep groups and repetitions may be nested.
const NESTING: u32 = 64;

/// Translates an expression from PCRE to the syntax of the crate `regex`. These differ:
///
/// - `\w`, `\d`, `\s`, their opposites, `\b` and `\B` are about Unicode in `regex`;
/// - `\<` and `\>` are the start and the end of a word in `regex`, and plain characters in PCRE;
/// - `[`, `&&` and `~~` in a class are operators in `regex`, and plain characters in PCRE;
/// - a quantifier with `+` after it is possessive in PCRE, and repeated in `regex`. This is refused, as are `(?>` and two
///   quantifiers in a row, which are an error in PCRE.
fn translated(text: &str) -> Result<String, Problem> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_class = false;
    let mut before = Before::Nothing;
    while let Some(character) = rest.chars().next() {
        let mut taken = &rest[..character.len_utf8()];
        let mut here = Before::Atom;
        if character == '\\' {
            taken = &rest[..1 + rest[1..].chars().next().map_or(0, char::len_utf8)];
            out.push_str(match taken {
                r"\w" => "[0-9A-Za-z_]",
                r"\W" => "[^0-9A-Za-z_]",
                r"\d" => "[0-9]",
                r"\D" => "[^0-9]",
                r"\s" => r"[\t\n\x0B\f\r ]",
                r"\S" => r"[^\t\n\x0B\f\r ]",
                r"\b" if is_class => r"\x08",
                r"\b" => r"(?-u:\b)",
                r"\B" if !is_class => r"(?-u:\B)",
                r"\<" => "<",
                r"\>" => ">",
                other => other,
            });
        } else if !is_class && character == '[' {
            is_class = true;
            // A closing bracket is plain as the first character of a class.
            taken = ["[^]", "[]", "[^"]
                .into_iter()
                .find(|start| rest.starts_with(start))
                .unwrap_or("[");
            out.push_str(&taken.replace(']', r"\]"));
        } else if is_class && rest.starts_with("[:") && rest.contains(":]") {
            taken = &rest[..rest.find(":]").unwrap_or(0) + 2];
            out.push_str(taken);
        } else if is_class && "[&~".contains(character) {
            out.push('\\');
            out.push(character);
        } else if let Some(quantifier) = quantifier(rest).filter(|_| !is_class) {
            taken = quantifier;
            here = match (before, quantifier) {
                (Before::Nothing, _) => Before::Atom,
                (Before::Atom, _) => Before::Quantifier,
                (Before::Quantifier, "?") => Before::LazyQuantifier,
                (Before::Quantifier, "+") => {
                    return Err(Problem::Regex(
                        "has a possessive quantifier, which is not supported".to_string(),
                    ));
                }
                _ => return Err(Problem::Regex("has a quantifier after a quantifier".to_string())),
            };
            out.push_str(taken);
        } else {
            if !is_class && rest.starts_with("(?>") {
                return Err(Problem::Regex(
                    "has an atomic group, which is not supported".to_string(),
                ));
            }
            is_class &= character != ']';
            if !is_class && "(|".contains(character) {
                here = Before::Nothing;
            }
            out.push(character);
        }
        before = here;
        rest = &rest[taken.len()..];
    }
    Ok(out)
}

/// What precedes a place in an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// Nothing that can be repeated. A `?` here begins the flags of a group.
    Nothing,
    /// Something that can be repeated.
    Atom,
    Quantifier,
    LazyQuantifier,
}

/// The quantifier at the start of a text: `*`, `+`, `?`, or numbers in braces.
fn quantifier(text: &str) -> Option<&str> {
    if text.starts_with(['*', '+', '?']) {
        return Some(&text[..1]);
    }
    let inner = text.strip_prefix('{')?;
    let end = inner.find('}')?;
    let is_count = inner.starts_with(|c: char| c.is_ascii_digit())
        && inner[..end].bytes().all(|byte| byte.is_ascii_digit() || byte == b',');
    is_count.then(|| &text[..end + 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regex(text: &str, flags: Flags) -> Result<Expression, Problem> {
        Expression::parse(text, flags)?.compile().1
    }

    fn is_match(expression: &str, text: &str) -> bool {
        regex(expression, Flags::default()).expect(expression).is_match(text)
    }

    #[test]
    fn means_what_pcre_means() {
        assert!(is_match(r"^\w+\d\s$", "ab_1 ") && !is_match(r"^\w$", "ä") && !is_match(r"^\d$", "٣"));
        assert!(is_match(r"^\W\D\S$", "äöü"));
        assert!(is_match(r"\ba", "äa") && !is_match(r"\ba", "ba"));
        assert!(is_match(r"b\Ba", "ba") && !is_match(r"ä\Ba", "äa") && is_match(r"\B", "ä") && !is_match(r"\B", "b"));
        assert!(is_match(r"\<a\>", "<a>") && !is_match(r"\<a\>", "a"));
        assert!(is_match(r"^[\w\-.]+$", "a-b.c") && is_match(r"^[^\w]$", "-") && !is_match(r"^[^\w]$", "a"));
        assert!(is_match(r"^[a[b]+$", "a[b") && is_match(r"^[]a]+$", "a]") && !is_match("^[^]a]+$", "]"));
        assert!(is_match(r"^[a&&b]+$", "a&b") && is_match(r"^[~~]+$", "~"));
        assert!(is_match(r"^[[:digit:]x]+$", "1x") && !is_match(r"^[[:digit:]x]+$", ":"));
        assert!(is_match(r"^.$", "ä") && is_match(r"\\w", r"\w") && !is_match(r"\\w", r"\a"));
    }

    #[test]
    fn finds_anywhere_and_knows_flags() {
        assert!(is_match("b", "abc") && !is_match("B", "abc"));
        let with = |name: &str, expression: &str, text: &str| {
            let flags = Flags {
                ignore_case: name == "i",
                multi_line: name == "m",
                dot_all: name == "s",
            };
            regex(expression, flags).expect(expression).is_match(text)
        };
        assert!(with("i", "Σ", "ς"));
        assert!(with("m", "^b$", "a\nb\nc") && !is_match("^b$", "a\nb\nc"));
        assert!(with("s", "a.b", "a\nb") && !is_match("a.b", "a\nb"));
    }

    #[test]
    fn explains_errors() {
        let why = |expression: &str| regex(expression, Flags::default()).expect_err("an error").to_string();
        let possessive = "has a possessive quantifier, which is not supported";
        for (expression, expected) in [
            (
                "a(?!b)",
                "does not compile: look-around, including look-ahead and look-behind, is not supported",
            ),
            (r"(a)\1", "does not compile: backreferences are not supported"),
            ("(a", "does not compile: unclosed group"),
            (
                "a\\",
                "does not compile: incomplete escape sequence, reached end of pattern prematurely",
            ),
            ("a++", possessive),
            ("a*+b", possessive),
            ("(a|b)?+", possessive),
            (r"\d{2,3}+", possessive),
            ("[a+]++", possessive),
            ("(?>a|b)", "has an atomic group, which is not supported"),
            ("a+?+", "has a quantifier after a quantifier"),
        ] {
            assert_eq!(why(expression), format!("this regular expression {expected}"));
        }
        for good in [
            "a+?",
            "(a+)+",
            "[+]+",
            r"\++",
            "[a]{2}?",
            "(?:a)?",
            "(?i)a",
            "a|(?P<n>b)+",
            "a{2}b+",
        ] {
            assert!(regex(good, Flags::default()).is_ok(), "{good}");
        }
        for (large, limit) in [
            ("a".repeat(4097), "4096 bytes"),
            (r"\p{L}".repeat(17), "65536 characters in its classes"),
            (r"[a\p{L}--b]".repeat(9), "65536 characters in its classes"),
            ("[!-\u{4fff}]".repeat(17), "65536 characters in its classes"),
            ("[[:x[^a]:]]".repeat(17), "65536 characters in its classes"),
            (
                "(.{500}){500}".into(),
                "65536 characters and ranges after its repetitions are written out",
            ),
            (
                r"\p{L}{100}".into(),
                "65536 characters and ranges after its repetitions are written out",
            ),
            (
                "(a{1000}){1000}".into(),
                "65536 characters and ranges after its repetitions are written out",
            ),
            (".{9000}".into(), "1048576 bytes of its program"),
        ] {
            assert_eq!(
                why(&large),
                format!("this regular expression is too large: the limit is {limit}")
            );
        }
        let nested = "(".repeat(2_000) + &")".repeat(2_000);
        assert!(why(&nested).contains("exceed the maximum number of nested"));
    }

    /// The automaton for long texts agrees with the crate `regex`.
    #[test]
    fn searches_long_texts_alike() {
        let interrupt = Interrupt::NEVER;
        let texts = ["", "a", "b\n", "ä", "aä", "ab ba\r\nab", "\u{212A}k", "aaaaaaab", "ß x"];
        for expression in [
            "a", "^a", "a$", "^$", r"\B", r"\bb", "(?i)K", "[^a]b", "a{3,7}b", "x*$", r"a\B", "(?m)^ab$", "", "ß|ä$",
            ".x", r"\B$",
        ] {
            let expression = regex(expression, Flags::default()).expect(expression);
            let stoppable = expression.stoppable().expect("an automaton");
            for text in texts {
                for long in [
                    text.to_string(),
                    format!("{}{text}", "yä".repeat(SHORT)),
                    format!("{text}{}", "ä\n".repeat(SHORT)),
                ] {
                    let is_match = expression.is_match(&long);
                    let end = stoppable.find_end(&long, interrupt);
                    let found = end.map(|end| end.map(|end| end.is_some()));
                    assert_eq!(found, Ok(Some(is_match)), "{expression:?} {text:?}");
                    // Without what follows it, the match is still there: it is the end of one, not some other place.
                    let end = end.ok().flatten().flatten();
                    assert!(
                        end.is_none_or(|end| expression.is_match(&long[..end]) || expression.as_str().contains('B'))
                    );
                    assert_eq!(expression.find(&long, interrupt), Ok(is_match));
                }
            }
        }
    }

    /// Each byte of this text builds another state of a large program.
    #[test]
    fn stops_a_search() {
        let expression = regex("(?:a|b)*a(?:a|b){200}c", Flags::default()).expect("an expression");
        let text: String = (0..1 << 20)
            .map(|n: u32| ['a', 'b'][(n.wrapping_mul(2_654_435_761) >> 31) as usize])
            .collect();
        let asked = std::cell::Cell::new(0);
        let ask = || {
            asked.set(asked.get() + 1);
            asked.get() > 3
        };
        assert_eq!(expression.find(&text, Interrupt::new(&ask)), Err(Interrupted));
    }
}
