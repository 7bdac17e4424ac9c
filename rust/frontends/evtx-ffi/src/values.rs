//! Values of DuckDB for the arguments of a call.

use evtx_scan::{Argument, ArgumentKind, ArgumentValue, ScanError};

use crate::boundary::EvtxText;

/// The kind of a value.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvtxValueKind {
    /// NULL.
    Nothing,
    /// Text.
    Text,
    /// A number, a time, or another value without parts.
    Other,
    /// A list.
    List,
    /// A tuple: a struct whose fields have no names.
    Tuple,
    /// A map. Its parts are each key and its value.
    Map,
    /// A struct. Its parts are left out.
    Struct,
}

/// A value of DuckDB.
#[derive(Debug)]
pub struct SqlValue {
    /// Its kind.
    pub kind: EvtxValueKind,
    /// The name of its type.
    pub type_name: String,
    /// Its text.
    pub text: String,
    /// The values in it.
    pub parts: Vec<SqlValue>,
}

/// A value of DuckDB. Its parts come after it.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct EvtxValue<'a> {
    /// Its kind.
    pub kind: EvtxValueKind,
    /// The name of its type.
    pub type_name: EvtxText<'a>,
    /// Its text.
    pub text: EvtxText<'a>,
    /// How many parts it has.
    pub parts: usize,
}

impl SqlValue {
    /// The next value with its parts; `None` if there is none.
    pub(crate) fn next(values: &mut std::slice::Iter<'_, EvtxValue<'_>>) -> Result<Option<Self>, String> {
        let Some(value) = values.next() else { return Ok(None) };
        let parts = (0..value.parts).filter_map(|_| SqlValue::next(values).transpose());
        Ok(Some(SqlValue {
            kind: value.kind,
            parts: parts.collect::<Result<_, _>>()?,
            type_name: value.type_name.text()?.to_owned(),
            text: value.text.text()?.to_owned(),
        }))
    }

    /// The error for a value that `what` cannot be.
    pub(crate) fn refused(&self, what: &str, takes: &str) -> ScanError {
        ScanError::Input(format!("{what} takes {takes}, not {}", self.type_name))
    }

    /// Its text, or those of the values in a list that are not NULL.
    pub(crate) fn texts(&self, what: &str) -> Result<Vec<String>, ScanError> {
        let items = match self.kind {
            EvtxValueKind::List | EvtxValueKind::Tuple => &self.parts,
            _ => std::slice::from_ref(self),
        };
        let texts = items.iter().filter_map(|item| match item.kind {
            EvtxValueKind::Nothing => None,
            EvtxValueKind::Text | EvtxValueKind::Other => Some(Ok(item.text.clone())),
            _ => Some(Err(item.refused(what, "a value or a list of values"))),
        });
        texts.collect()
    }

    /// The value for an argument. Options of COPY come with any type.
    pub(crate) fn of(&self, argument: &Argument) -> Result<ArgumentValue, ScanError> {
        let Argument { name, kind, .. } = argument;
        let wrong = |takes: &str| ScanError::Input(format!("{name} is {takes}, not {}", self.text));
        Ok(match (kind, self.kind) {
            (_, EvtxValueKind::Nothing) => ArgumentValue::Null,
            (ArgumentKind::List, _) => ArgumentValue::List(self.texts(name)?),
            (ArgumentKind::Map, EvtxValueKind::Map) => {
                let mut entries = Vec::new();
                for entry in self.parts.chunks_exact(2) {
                    let values = entry[1].texts(name)?.into_iter();
                    entries.extend(values.map(|value| (entry[0].text.clone(), value)));
                }
                ArgumentValue::Map(entries)
            }
            (ArgumentKind::Map, _) => return Err(self.refused(name, "a MAP")),
            (ArgumentKind::Flag, _) => match self.text.to_ascii_lowercase().as_str() {
                "true" | "1" => ArgumentValue::Flag(true),
                "false" | "0" => ArgumentValue::Flag(false),
                _ => return Err(wrong("true or false")),
            },
            (ArgumentKind::Integer, _) => {
                ArgumentValue::Integer(self.text.parse().map_err(|_| wrong("a whole number"))?)
            }
            (ArgumentKind::Text, _) => ArgumentValue::Text(self.text.clone()),
        })
    }
}
