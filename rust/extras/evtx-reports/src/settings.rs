//! The arguments of the report on lines.

use evtx_scan::{arguments, put};

use crate::json::JsonTypes;

/// The settings of the report on lines.
#[derive(Debug, Clone, Default)]
pub struct LineSettings {
    /// The types that the values should have.
    pub types: JsonTypes,
}

arguments! {
    /// The arguments.
    pub OF_LINES of LineSettings:
    /// The types that values should have, as `from_json` takes them. A value of another type is in `error`.
    types = None, Text(|all, text| put(&mut all.types, json_types(text)));
}

fn json_types(text: Option<String>) -> Result<JsonTypes, String> {
    let types = text.map_or_else(|| Ok(JsonTypes::default()), |text| text.parse());
    types.map_err(|why| format!("types must be JSON with the names of types: {why}"))
}
