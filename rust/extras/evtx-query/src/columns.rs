//! The columns that calls can have.

use evtx_arrow::ColumnReference;

/// Every column of a table of all events, in order, with those of the extras. The reference of a crate with columns of its own
/// belongs here, and nowhere else.
pub fn reference() -> Vec<ColumnReference> {
    evtx_extras::reference()
}

/// The names of the columns of extras. No field of an event takes one.
pub(crate) fn extras() -> Vec<String> {
    let core = evtx_arrow::reference();
    let is_extra = |name: &String| core.iter().all(|column| column.field.name() != name);
    let names = reference().into_iter().map(|column| column.field.name().clone());
    names.filter(is_extra).collect()
}
