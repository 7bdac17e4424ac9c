//! The questions that a table of codes answers.

use std::borrow::Cow;

use crate::base64;
use crate::code::Code;
use crate::events;
use crate::table::{RIGHTS, Table, table, table_of_rights, tables};
use crate::text::replace;

/// What to look up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// The name of a code.
    Name,
    /// The names of the bits of a number, or of the codes in a list.
    Names,
    /// The sentence about a code.
    Meaning,
    /// A text with the codes in it replaced by their names.
    Text,
}

/// Where a lookup finds its answers.
#[derive(Debug, Clone, Copy)]
pub enum Source {
    /// A table of codes.
    Table(&'static Table),
    /// The rights for a type of object that has no table. Every answer is null.
    UnknownRights,
    /// All lines of all tables, whatever the code.
    AllLines,
    /// All lines of the list of events, whatever the code.
    Events,
    /// The text within base64.
    Base64,
}

/// The answer for a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Nothing is known.
    Null,
    /// A text, of every lookup but [`Lookup::Names`].
    Text(Cow<'static, str>),
    /// The texts of [`Lookup::Names`].
    List(Vec<Cow<'static, str>>),
}

impl Lookup {
    /// The lookup that is named `names`, `meaning` or `text`; any other name is that of [`Lookup::Name`].
    pub fn named(name: &str) -> Self {
        match name {
            "names" => Lookup::Names,
            "meaning" => Lookup::Meaning,
            "text" => Lookup::Text,
            _ => Lookup::Name,
        }
    }

    /// The source with this name: that of a table; of [`Lookup::Names`] also `access_` with a type of object as events
    /// name it, known or not, `*` for all lines of all tables, and `*events` for
    /// those of the list of events; of [`Lookup::Text`] also `base64`.
    ///
    /// # Errors
    /// A text that lists the tables if there is none with this name.
    pub fn source(self, name: &str) -> Result<Source, String> {
        match (self, name) {
            (Lookup::Names, "*") => return Ok(Source::AllLines),
            (Lookup::Names, "*events") => return Ok(Source::Events),
            (Lookup::Text, "base64") => return Ok(Source::Base64),
            _ => {}
        }
        match table(name).or_else(|| table_of_rights(name)) {
            Some(table) => Ok(Source::Table(table)),
            None if self == Lookup::Names && name.starts_with(RIGHTS) => Ok(Source::UnknownRights),
            None => {
                let names: Vec<_> = tables().iter().map(|table| table.name).collect();
                let names = names.join(", ");
                Err(format!("unknown table of codes '{name}'; use one of {names}"))
            }
        }
    }

    /// The answer of a source for a code.
    pub fn answer(self, source: Source, code: Code<'_>) -> Answer {
        let text = |text: Option<&'static str>| text.map_or(Answer::Null, |text| Answer::Text(Cow::Borrowed(text)));
        let table = match source {
            Source::Table(table) => table,
            Source::UnknownRights => return Answer::Null,
            Source::AllLines => return Answer::List(lines()),
            Source::Events => return Answer::List(events::lines().map(Cow::Borrowed).collect()),
            Source::Base64 => {
                let decoded = match code {
                    Code::Text(text) => base64::decode(text),
                    Code::Number(number) => base64::decode(&number.to_string()),
                };
                return decoded.map_or(Answer::Null, |text| Answer::Text(Cow::Owned(text)));
            }
        };
        match self {
            Lookup::Name => text(table.find(code).map(|entry| entry.name)),
            Lookup::Meaning => text(table.find(code).and_then(|entry| entry.meaning)),
            Lookup::Names => table.find_all(code).map_or(Answer::Null, Answer::List),
            Lookup::Text => Answer::Text(Cow::Owned(match code {
                Code::Text(text) => replace(table, text),
                Code::Number(number) => number.to_string(),
            })),
        }
    }
}

/// The name of a code in a table; `None` if there is no such table, or no such code in it.
pub fn code_name(table_name: &str, code: Code<'_>) -> Option<&'static str> {
    Some(table(table_name)?.find(code)?.name)
}

/// All lines of all tables: the table, the code, the name, the meaning and the source, separated by tabs.
fn lines() -> Vec<Cow<'static, str>> {
    let mut lines = Vec::new();
    for Table {
        name, source, entries, ..
    } in tables()
    {
        for entry in entries {
            let meaning = entry.meaning.unwrap_or_default();
            lines.push(format!("{name}\t{}\t{}\t{meaning}\t{source}", entry.code, entry.name).into());
        }
    }
    lines
}
