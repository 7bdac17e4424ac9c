//! The SQL macros of the extension: the files `.sql` of the folder `sql`, one macro each.
//!
//! A file starts with a comment of three paragraphs: the signature, the description, and an example. The rest is the
//! body. A body that starts with `SELECT`, `FROM` or `WITH` makes a table macro. A default is a string literal or NULL.
//! In a string literal, `{{page.html}}` stands for the text of that file of the folder. Outside of one, the lists of
//! columns have names such as `{{event columns}}`: see `lists.rs`.
//! A macro over files, whose first parameter is `files`, calls the one over a table of events, which has `_of` after its
//! name. A table macro whose parameters are all tables (`table_…`), or in `PASSED_ON`, is parsed when it is used, by DuckDB's
//! `query`: to parse them all would take most of `LOAD`. In the SQL, such a parameter is always an
//! argument of a function.
//! Only parameters without a default go by position. DuckDB has no such macros, so each gets one more parameter before its
//! defaults, [`BY_NAME`], and a check of it in place of its first parameter: another value than the default is an error.
//!
//! ```sql
//! -- evtx_name(first, second := NULL, third := 'text')
//! --
//! -- What it returns.
//! --
//! -- SELECT evtx_name(1)
//!
//! first + 1
//! ```

use crate::boundary::{EvtxFunction, EvtxSlice, EvtxText, literal};
use crate::lists::lists;

/// The names and the texts of the files, sorted by name.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/macros.rs"));

/// Parameters that are no tables, and may be literals in a text of SQL.
const PASSED_ON: [&str; 2] = ["json_arguments", "all_accounts"];

/// The parameter that takes the first argument by position too many.
const BY_NAME: &str = "_";

/// Its default, which DuckDB shows if there are still more.
const ADVICE: &str = "write several values as a list, [a, b], and pass other arguments by name";

/// Why a function cannot take one more argument by position than its required ones: the text before the list to write
/// instead, and the text after it.
pub fn too_many(function: &str, required: &[&str]) -> [String; 2] {
    let count = match required.len() {
        1 => "one argument".to_owned(),
        count => format!("{count} arguments"),
    };
    let names = required.join(" and ");
    [
        format!("{function} takes {count} by position: {names}. Write several values as a list, such as ["),
        "], and pass other arguments by name".to_owned(),
    ]
}

/// A parameter of a macro.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// The text of its default value, `Some(None)` for NULL; `None` if it has none.
    pub default: Option<Option<String>>,
}

/// A macro.
#[derive(Debug)]
pub struct Macro {
    /// Its name.
    pub name: String,
    description: String,
    example: String,
    /// Whether it makes a table.
    pub is_table: bool,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// The expression or the query. DuckDB gets what [`Macro::definition`] makes of it.
    pub body: String,
}

impl Macro {
    /// The definition for DuckDB, by [`Macro::body`], or by the same text with schemas before the names of other macros.
    #[must_use]
    pub fn definition(&self, body: &str) -> String {
        if self.is_parsed_when_used() {
            let mut text = body.replace('\'', "''");
            for Parameter { name, .. } in &self.parameters {
                // An argument becomes a literal of its type. A user can have functions with DuckDB's names.
                let quoted = format!("'''' || system.main.replace({name}::VARCHAR, '''', '''''') || ''''");
                let value = format!("' || coalesce({quoted} || '::' || system.main.typeof({name}), 'NULL') || '");
                // Another macro can have a parameter of this name.
                let passed = format!("{name} := ");
                let parts = text.split(&passed).map(|part| part.replace(name, &value));
                text = parts.collect::<Vec<_>>().join(&passed);
            }
            return format!("FROM system.main.query({})", self.checked(&format!("'{text}'")));
        }
        match self.parameters.first() {
            Some(Parameter { name, .. }) if self.is_table => {
                // DuckDB evaluates the arguments of table functions when it binds them, even if there are no rows.
                body.replace(&format!("({name}"), &format!("({}", self.checked(name)))
            }
            _ => self.checked(body),
        }
    }

    /// Its parameters for DuckDB.
    fn declared(&self) -> Vec<Parameter> {
        let mut all = self.parameters.clone();
        if self.is_checked() {
            let by_name = Parameter {
                name: BY_NAME.to_owned(),
                default: Some(Some(ADVICE.to_owned())),
            };
            all.insert(self.required().len(), by_name);
        }
        all
    }

    /// The names of the parameters without a default, which come first.
    fn required(&self) -> Vec<&str> {
        let required = self.parameters.iter().filter(|parameter| parameter.default.is_none());
        required.map(|parameter| parameter.name.as_str()).collect()
    }

    /// Whether one more argument by position could be taken for a default, or be meant as another path or table.
    fn is_checked(&self) -> bool {
        let required = self.required().len();
        required > 0 && (self.is_table || required < self.parameters.len())
    }

    /// An expression, or an error if there is an argument by position too many.
    fn checked(&self, expression: &str) -> String {
        let required = self.required();
        let Some(last) = required.last().filter(|_| self.is_checked()) else {
            return expression.to_owned();
        };
        let [before, after] = too_many(&self.name, &required);
        let (before, after) = (literal(&format!("{before}'")), literal(&format!("'{after}")));
        let advice = literal(ADVICE);
        // Short, because LOAD parses it for each macro. From DuckDB 2 on, concat_ws takes the items of lists.
        format!(
            "CASE WHEN {BY_NAME}::VARCHAR = {advice} THEN {expression}\n\
             ELSE error({before} || left(concat_ws(''', ''', {last}, {BY_NAME}), 100) || {after}) END"
        )
    }

    /// The statement that makes the macro in a place: nothing, or the names of a database and a schema with a dot after
    /// each. `body` is that of [`Macro::definition`].
    #[must_use]
    pub fn statement(&self, place: &str, body: &str) -> String {
        let body = self.definition(body);
        let parameters = self
            .declared()
            .into_iter()
            .map(|Parameter { name, default }| match default {
                None => name,
                Some(None) => format!("{name} := NULL"),
                Some(Some(text)) => format!("{name} := {}", literal(&text)),
            });
        let parameters = parameters.collect::<Vec<_>>().join(", ");
        // The body can end with a comment.
        let body = if self.is_table {
            format!("TABLE {body}\n")
        } else {
            format!("({body}\n)")
        };
        format!(
            "CREATE MACRO IF NOT EXISTS {place}{}({parameters}) AS {body};",
            self.name
        )
    }

    fn is_parsed_when_used(&self) -> bool {
        let is_literal = |name: &str| name.starts_with("table_") || PASSED_ON.contains(&name);
        self.is_table && self.parameters.iter().all(|parameter| is_literal(&parameter.name))
    }
}

/// A [`Parameter`].
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxParameter {
    /// Its name.
    pub name: EvtxText<'static>,
    /// Whether it has a default value.
    pub is_optional: bool,
    /// The text of its default value; null for NULL.
    pub default_text: EvtxText<'static>,
}

/// A [`Macro`].
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxMacro {
    /// Its documentation.
    pub function: EvtxFunction,
    /// Whether it makes a table.
    pub is_table: bool,
    /// Its parameters.
    pub parameters: EvtxSlice<'static, EvtxParameter>,
    /// The expression or the query.
    pub body: EvtxText<'static>,
}

impl EvtxMacro {
    pub(crate) fn leaked(found: &Macro) -> Self {
        let leaked = |text: &str| EvtxSlice::leaked(text.as_bytes());
        let declared = found.declared();
        let parameters = declared.iter().map(|parameter| EvtxParameter {
            name: leaked(&parameter.name),
            is_optional: parameter.default.is_some(),
            default_text: parameter
                .default
                .iter()
                .flatten()
                .map(|text| leaked(text))
                .next()
                .unwrap_or_default(),
        });
        EvtxMacro {
            function: EvtxFunction {
                name: leaked(&found.name),
                description: leaked(&found.description),
                example: leaked(&found.example),
            },
            is_table: found.is_table,
            parameters: EvtxSlice::leaked(parameters.collect::<Vec<_>>()),
            body: leaked(&found.definition(&found.body)),
        }
    }
}

/// The text of a page that macros fill in, by the name of its file.
#[must_use]
pub fn page(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The texts of the macros, with their pages and lists.
fn sources() -> Vec<String> {
    let is = |ending: &'static str| FILES.iter().filter(move |(name, _)| name.ends_with(ending));
    let quoted = |text: &str| text.replace('\'', "''");
    let pages = is(".html").map(|(name, page)| (format!("{{{{{name}}}}}"), quoted(page)));
    let lists = lists().into_iter().map(|(mark, list)| (mark.to_owned(), list));
    let filled: Vec<_> = pages.chain(lists).collect();
    let fill = |sql: String, (mark, text): &(String, String)| sql.replace(mark, text);
    is(".sql")
        .map(|(_, sql)| filled.iter().fold((*sql).to_owned(), fill))
        .collect()
}

/// The macro in a file; `None` if the text has another form than the module's docs describe.
fn parse(source: &str) -> Option<Macro> {
    let is_comment = |line: &&str| line.starts_with("--");
    let header: Vec<&str> = source.lines().take_while(is_comment).collect();
    let paragraphs: Vec<String> = header
        .split(|line| *line == "--")
        .map(|lines| lines.iter().map(|line| line[2..].trim()).collect::<Vec<_>>().join(" "))
        .collect();
    let [signature, description, example] = <[String; 3]>::try_from(paragraphs).ok()?;
    let (name, parameters) = signature.strip_suffix(')')?.split_once('(')?;
    let parameters = parameters.split(", ").filter(|text| !text.is_empty());
    let parameters: Vec<_> = parameters.map(parameter).collect::<Option<_>>()?;
    let body = source[header.iter().map(|line| line.len() + 1).sum()..].trim();
    let first = body.lines().find(|line| !line.is_empty() && !is_comment(line))?;
    Some(Macro {
        name: name.to_owned(),
        description,
        example,
        is_table: ["SELECT", "FROM", "WITH"].contains(&first.split_whitespace().next()?),
        parameters,
        body: body.to_owned(),
    })
}

fn parameter(text: &str) -> Option<Parameter> {
    let (name, default) = match text.split_once(" := ") {
        None => (text, None),
        Some((name, "NULL")) => (name, Some(None)),
        Some((name, text)) => (
            name,
            Some(Some(text.strip_prefix('\'')?.strip_suffix('\'')?.to_owned())),
        ),
    };
    let name = name.to_owned();
    Some(Parameter { name, default })
}

/// Whether a macro is over files.
fn is_of_files(found: &Macro) -> bool {
    found
        .parameters
        .first()
        .is_some_and(|parameter| parameter.name == "files")
}

/// All macros. Tables that are parsed at once come after those that are not, and those over files last, because they call
/// others.
pub fn macros() -> Vec<Macro> {
    let mut macros: Vec<_> = sources().iter().filter_map(|source| parse(source)).collect();
    macros.sort_by_key(|found| (is_of_files(found), found.is_table && !found.is_parsed_when_used()));
    macros
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_macro() {
        let macros = macros();
        assert_eq!(macros.len(), sources().len());
        assert!(
            macros
                .iter()
                .all(|found| !found.body.replace("{{data}}", "").contains("{{"))
        );
        // A macro over files has no more SQL than the call of the one over a table, which comes before it.
        let (others, of_files) = macros.split_at(macros.iter().position(is_of_files).expect("a macro over files"));
        for found in of_files {
            let called = format!("{}_of", found.name);
            assert!(is_of_files(found) && others.iter().any(|other| other.name == called));
            assert!(found.body.contains(&format!("\nFROM {called}('")), "{called}");
        }
    }

    #[test]
    fn tables_are_arguments_of_functions() {
        let macros = macros();
        let late: Vec<_> = macros.iter().filter(|found| found.is_parsed_when_used()).collect();
        assert!(late.len() > 8);
        for found in late {
            for Parameter { name, .. } in &found.parameters {
                let body = found.body.replace(&format!("{name} := "), "");
                let parts: Vec<_> = body.split(name.as_str()).collect();
                assert!(parts.len() > 1, "{name} of {}", found.name);
                for pair in parts.windows(2) {
                    let is_argument = pair[0].ends_with(['(', ' ']) && pair[1].starts_with([')', ',']);
                    let line = pair[0].lines().last().unwrap_or_default();
                    assert!(is_argument && !line.contains("--"), "{name} of {}: {line}", found.name);
                }
            }
        }
    }

    #[test]
    fn arguments_by_position_are_checked_where_a_table_is_bound() {
        let checked: Vec<_> = macros().into_iter().filter(Macro::is_checked).collect();
        assert!(checked.len() > 25);
        for found in checked {
            let (required, definition) = (found.required(), found.definition(&found.body));
            assert!(definition.contains("CASE WHEN _::VARCHAR"), "{}", found.name);
            assert_eq!(found.declared()[required.len()].name, BY_NAME);
            if !found.is_table || found.is_parsed_when_used() {
                continue;
            }
            // Its first parameter is nothing but the first argument of functions.
            let is_letter =
                |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
            let parts: Vec<_> = found.body.split(required[0]).collect();
            for pair in parts.windows(2) {
                let (before, after) = (pair[0].chars().last(), pair[1].chars().next());
                let is_argument = before == Some('(') && matches!(after, Some(')' | ','));
                let is_other = before != Some('(') && (is_letter(before) || is_letter(after));
                assert!(
                    is_argument || is_other,
                    "{} of {}: {}",
                    required[0],
                    found.name,
                    pair[0]
                );
            }
        }
    }

    #[test]
    fn a_file_describes_its_macro() {
        let found = parse("-- f(a, b := NULL, c := 'x')\n--\n-- Two\n-- lines.\n--\n-- FROM f(1)\n\nSELECT a\n")
            .expect("a macro");
        assert_eq!(
            [found.name, found.description, found.example, found.body],
            ["f", "Two lines.", "FROM f(1)", "SELECT a"]
        );
        assert!(found.is_table);
        let parameters = found.parameters.into_iter().map(|it| (it.name, it.default));
        let expected = [("a", None), ("b", Some(None)), ("c", Some(Some("x".to_owned())))];
        assert!(parameters.eq(expected.map(|(name, default)| (name.to_owned(), default))));
        let scalar = parse("-- f()\n--\n-- A number.\n--\n-- SELECT f()\n\n1 -- one\n").expect("a macro");
        assert_eq!((scalar.body.as_str(), scalar.is_table), ("1 -- one", false));
        for source in ["SELECT 1", "-- f(a := 1)\n--\n-- A number.\n--\n-- FROM f()\n\na"] {
            assert!(parse(source).is_none(), "{source}");
        }
    }
}
