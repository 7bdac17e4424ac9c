//! The SQL macros of the extension: the files of the folder `sql`, one macro each.
//!
//! A file starts with a comment of three paragraphs: the signature, the description, and an example. The rest is the
//! body. A body that starts with `SELECT`, `FROM` or `WITH` makes a table. A default is a VARCHAR, also NULL.
//!
//! ```sql
//! -- evtx_name(first, second := NULL, third := 'text')
//! --
//! -- What it gives.
//! --
//! -- SELECT evtx_name(1)
//!
//! first + 1
//! ```

use std::ffi::c_char;
use std::sync::OnceLock;

use crate::boundary::{EvtxFunction, EvtxText, entry, put_entry};

/// The texts of the files, in the order of their names.
const SOURCES: &[&str] = include!(concat!(env!("OUT_DIR"), "/macros.rs"));

/// A parameter of a macro.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvtxParameter {
    /// Its name.
    pub name: EvtxText,
    /// Whether it can be left out.
    pub is_optional: bool,
    /// Its value then, a text, or null for NULL.
    pub default_text: EvtxText,
}

/// A macro.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvtxMacro {
    /// Its name, what it gives, and an example.
    pub function: EvtxFunction,
    /// Whether it makes a table.
    pub is_table: bool,
    /// Its parameters, `parameter_count` of them.
    pub parameters: *const EvtxParameter,
    /// How many there are.
    pub parameter_count: usize,
    /// The expression or the query.
    pub body: EvtxText,
}

/// What the text of a file says; `None` where it is not as the module's docs have it.
fn parse(source: &str) -> Option<EvtxMacro> {
    let is_comment = |line: &&str| line.starts_with("--");
    let header: Vec<&str> = source.lines().take_while(is_comment).collect();
    let paragraphs: Vec<String> = header
        .split(|line| *line == "--")
        .map(|lines| lines.iter().map(|line| line[2..].trim()).collect::<Vec<_>>().join(" "))
        .collect();
    let [signature, description, example] = <[String; 3]>::try_from(paragraphs).ok()?;
    let (name, parameters) = signature.strip_suffix(')')?.split_once('(')?;
    let parameters: Option<Vec<_>> = parameters
        .split(", ")
        .filter(|text| !text.is_empty())
        .map(parameter)
        .collect();
    let parameters: &'static [EvtxParameter] = Box::leak(parameters?.into_boxed_slice());
    let body = source.lines().skip_while(is_comment).collect::<Vec<_>>().join("\n");
    let first = body.lines().find(|line| !line.is_empty() && !is_comment(line))?;
    let is_table = ["SELECT", "FROM", "WITH"].contains(&first.split_whitespace().next()?);
    Some(EvtxMacro {
        function: EvtxFunction {
            name: EvtxText::leaked(name.to_owned()),
            description: EvtxText::leaked(description),
            example: EvtxText::leaked(example),
        },
        is_table,
        parameters: parameters.as_ptr(),
        parameter_count: parameters.len(),
        body: EvtxText::leaked(body.trim().to_owned()),
    })
}

fn parameter(text: &str) -> Option<EvtxParameter> {
    let (name, default) = match text.split_once(" := ") {
        None => (text, None),
        Some((name, "NULL")) => (name, Some(EvtxText::NONE)),
        Some((name, text)) => {
            let text = text.strip_prefix('\'')?.strip_suffix('\'')?;
            (name, Some(EvtxText::leaked(text.to_owned())))
        }
    };
    Some(EvtxParameter {
        name: EvtxText::leaked(name.to_owned()),
        is_optional: default.is_some(),
        default_text: default.unwrap_or(EvtxText::NONE),
    })
}

/// The macros, whose pointers are those of texts that are never freed.
struct Macros(Vec<EvtxMacro>);

// SAFETY: what the pointers point to is never written and never freed.
unsafe impl Send for Macros {}
// SAFETY: likewise.
unsafe impl Sync for Macros {}

fn macros() -> &'static [EvtxMacro] {
    static MACROS: OnceLock<Macros> = OnceLock::new();
    &MACROS
        .get_or_init(|| Macros(SOURCES.iter().filter_map(|source| parse(source)).collect()))
        .0
}

/// The macro with this index in the order of the names. `known` receives whether there is one.
///
/// # Safety
/// `out` and `known` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn evtx_macro(index: usize, out: *mut EvtxMacro, known: *mut bool) -> *mut c_char {
    entry(|| {
        // SAFETY: the caller's promise.
        unsafe { put_entry(macros().get(index).copied(), out, known) };
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: EvtxText) -> &'static str {
        // SAFETY: texts of macros are never freed.
        unsafe { crate::boundary::text(text.data, text.len) }.expect("UTF-8")
    }

    #[test]
    fn every_file_is_a_macro_of_its_name() {
        assert_eq!(macros().len(), SOURCES.len());
        assert!(macros().is_sorted_by_key(|found| text(found.function.name)));
        let level = macros()
            .iter()
            .find(|found| text(found.function.name) == "evtx_level_name")
            .expect("it");
        assert!(!level.is_table && level.parameter_count == 1);
        assert!(text(level.body).ends_with("END"), "{}", text(level.body));
    }

    #[test]
    fn a_file_says_what_its_macro_is() {
        let found = parse("-- f(a, b := NULL, c := 'x')\n--\n-- Two\n-- lines.\n--\n-- FROM f(1)\n\nSELECT a\n")
            .expect("a macro");
        assert_eq!(
            (text(found.function.name), text(found.function.description)),
            ("f", "Two lines.")
        );
        assert_eq!(
            (text(found.function.example), text(found.body)),
            ("FROM f(1)", "SELECT a")
        );
        assert!(found.is_table);
        // SAFETY: as of texts.
        let parameters = unsafe { std::slice::from_raw_parts(found.parameters, found.parameter_count) };
        let parameters: Vec<_> = parameters
            .iter()
            .map(|it| (text(it.name), it.is_optional, it.default_text.len))
            .collect();
        assert_eq!(parameters, [("a", false, 0), ("b", true, 0), ("c", true, 1)]);
        assert_eq!(parse("SELECT 1"), None);
        assert_eq!(parse("-- f(a := 1)\n--\n-- A number.\n--\n-- FROM f()\n\na"), None);
    }
}
