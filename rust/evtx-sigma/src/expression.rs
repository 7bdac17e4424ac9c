//! Regular expressions: the flavour of rules in that of the crate `regex`.

use regex::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;

use crate::error::Problem;
use crate::limits::Limits;

/// The flags of a regular expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Flags {
    /// `i`: without regard to case.
    pub(crate) ignore_case: bool,
    /// `m`: `^` and `$` are at every line.
    pub(crate) multi_line: bool,
    /// `s`: a dot is the end of a line too.
    pub(crate) dot_all: bool,
}

/// A regular expression of a rule.
///
/// Its flavour is PCRE ("Regular Expression" in the specification), here without look-around and references back, so
/// that the work is bounded by the length of the text. Characters are those of Unicode, but `\w`, `\d`, `\s` and `\b`
/// are about ASCII, as in PCRE.
#[derive(Debug, Clone)]
pub struct Expression {
    regex: Regex,
    flags: Flags,
}

impl Expression {
    /// Compiles an expression.
    pub(crate) fn new(text: &str, flags: Flags) -> Result<Expression, Problem> {
        let regex = RegexBuilder::new(&translated(text))
            .case_insensitive(flags.ignore_case)
            .multi_line(flags.multi_line)
            .dot_matches_new_line(flags.dot_all)
            .size_limit(Limits::REGEX)
            .dfa_size_limit(Limits::REGEX)
            .nest_limit(NESTING)
            .build();
        let regex = regex.map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => Problem::Regex(format!(
                "is too large: its program has more than {} bytes",
                Limits::REGEX
            )),
            // The last line of the message says what is wrong; those before it show where.
            error => {
                let text = error.to_string();
                let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
                Problem::Regex(format!("does not compile: {why}"))
            }
        })?;
        Ok(Expression { regex, flags })
    }

    /// Whether it is found in a text.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// What it says, as a tree.
    pub(crate) fn parsed(&self) -> Option<Hir> {
        let mut parser = ParserBuilder::new()
            .case_insensitive(self.flags.ignore_case)
            .multi_line(self.flags.multi_line)
            .dot_matches_new_line(self.flags.dot_all)
            .nest_limit(NESTING)
            .build();
        parser.parse(self.regex.as_str()).ok()
    }
}

/// How deep groups and repetitions may be in each other.
const NESTING: u32 = 64;

/// An expression of PCRE in the syntax of the crate `regex`, where the same characters mean something else in both:
///
/// - `\w`, `\d`, `\s`, their opposites, and `\b` are about Unicode in `regex`; `\B` stays so, it has no other form;
/// - `\<` and `\>` are the start and the end of a word in `regex`, and plain characters in PCRE;
/// - `[`, `&&` and `~~` in a class of characters make classes of classes in `regex`, and are plain characters in PCRE.
fn translated(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut is_class = false;
    while let Some(character) = rest.chars().next() {
        let mut taken = &rest[..character.len_utf8()];
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
                r"\<" => "<",
                r"\>" => ">",
                other => other,
            });
        } else if !is_class && character == '[' {
            is_class = true;
            // A bracket that closes is plain as the first character of a class.
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
        } else {
            is_class &= character != ']';
            out.push(character);
        }
        rest = &rest[taken.len()..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regex(text: &str, flags: Flags) -> Result<Expression, Problem> {
        Expression::new(text, flags)
    }

    fn is_match(expression: &str, text: &str) -> bool {
        regex(expression, Flags::default()).expect(expression).is_match(text)
    }

    #[test]
    fn means_what_pcre_means() {
        assert!(is_match(r"^\w+\d\s$", "ab_1 ") && !is_match(r"^\w$", "ä") && !is_match(r"^\d$", "٣"));
        assert!(is_match(r"^\W\D\S$", "äöü"));
        assert!(is_match(r"\ba", "äa") && !is_match(r"\ba", "ba"));
        assert!(is_match(r"\<a\>", "<a>") && !is_match(r"\<a\>", "a"));
        assert!(is_match(r"^[\w\-.]+$", "a-b.c") && is_match(r"^[^\w]$", "-") && !is_match(r"^[^\w]$", "a"));
        assert!(is_match(r"^[a[b]+$", "a[b") && is_match(r"^[]a]+$", "a]") && !is_match("^[^]a]+$", "]"));
        assert!(is_match(r"^[a&&b]+$", "a&b") && is_match(r"^[~~]+$", "~"));
        assert!(is_match(r"^[[:digit:]x]+$", "1x") && !is_match(r"^[[:digit:]x]+$", ":"));
        assert!(is_match(r"^.$", "ä") && is_match(r"\\w", r"\w") && !is_match(r"\\w", r"\a"));
    }

    #[test]
    fn finds_anywhere_with_regard_to_case_unless_told() {
        assert!(is_match("b", "abc") && !is_match("B", "abc"));
        let flags = |ignore_case, multi_line, dot_all| Flags {
            ignore_case,
            multi_line,
            dot_all,
        };
        assert!(
            regex("Σ", flags(true, false, false))
                .expect("an expression")
                .is_match("ς")
        );
        assert!(
            regex("^b$", flags(false, true, false))
                .expect("an expression")
                .is_match("a\nb\nc")
        );
        assert!(!is_match("^b$", "a\nb\nc") && !is_match("a.b", "a\nb"));
        assert!(
            regex("a.b", flags(false, false, true))
                .expect("an expression")
                .is_match("a\nb")
        );
    }

    #[test]
    fn says_what_is_wrong() {
        let why = |expression: &str| regex(expression, Flags::default()).expect_err("an error").to_string();
        assert_eq!(
            why("a(?!b)"),
            "this regular expression does not compile: look-around, including look-ahead and look-behind, is not supported"
        );
        assert_eq!(
            why(r"(a)\1"),
            "this regular expression does not compile: backreferences are not supported"
        );
        assert_eq!(why("(a"), "this regular expression does not compile: unclosed group");
        assert_eq!(
            why("a\\"),
            "this regular expression does not compile: incomplete escape sequence, reached end of pattern prematurely"
        );
        assert!(why("(.{500}){500}").contains("is too large: its program has more than 1048576 bytes"));
        let nested = "(".repeat(10_000) + &")".repeat(10_000);
        assert!(
            why(&nested).contains("exceed the maximum number of nested"),
            "{}",
            why(&nested)
        );
    }
}
