//! What codes mean, for Python.

use std::borrow::Cow;

use evtx_codes::{Answer, Code, Lookup};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The texts that a table of codes has for a code: one, but for the lookup `names`. None if nothing is known.
#[pyfunction]
pub(crate) fn look_up(lookup: &str, table: &str, code: &str) -> PyResult<Option<Vec<Cow<'static, str>>>> {
    let lookup = Lookup::named(lookup);
    let source = lookup.source(table).map_err(PyValueError::new_err)?;
    Ok(match lookup.answer(source, Code::Text(code)) {
        Answer::Null => None,
        Answer::Text(text) => Some(vec![text]),
        Answer::List(texts) => Some(texts),
    })
}
