//! The column `event_data` of events that are not records.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{MapBuilder, MapFieldNames, StringDictionaryBuilder, StringViewBuilder};
use arrow_array::types::Int32Type;
use arrow_schema::ArrowError;
use evtx_format::Numbering;

/// Builds maps of fields. An unnamed value is `param1`, `param2`, and so on. A name that occurs again gets a number: `name_1`.
pub struct FieldMaps {
    maps: MapBuilder<StringDictionaryBuilder<Int32Type>, StringViewBuilder>,
    /// The names of the map that is built.
    taken: Numbering<String, fn(&str) -> String>,
    unnamed: usize,
}

impl Default for FieldMaps {
    fn default() -> Self {
        let names = MapFieldNames {
            entry: "entries".to_owned(),
            key: "key".to_owned(),
            value: "value".to_owned(),
        };
        FieldMaps {
            maps: MapBuilder::new(Some(names), StringDictionaryBuilder::new(), StringViewBuilder::new()),
            taken: Numbering::new(str::to_owned),
            unnamed: 0,
        }
    }
}

impl FieldMaps {
    /// Adds a field to the map.
    pub fn push(&mut self, name: Option<&str>, value: Option<&str>) {
        self.unnamed += usize::from(name.is_none());
        let name = name.map_or_else(|| format!("param{}", self.unnamed), str::to_owned);
        self.maps.keys().append_value(self.taken.take(name).0);
        self.maps.values().append_option(value);
    }

    /// Ends the map, or makes it NULL.
    ///
    /// # Errors
    /// The error of Arrow if it refuses the map.
    pub fn end(&mut self, is_valid: bool) -> Result<(), ArrowError> {
        self.taken = Numbering::new(str::to_owned);
        self.unnamed = 0;
        self.maps.append(is_valid)
    }

    /// The maps as an array.
    pub fn finish(&mut self) -> ArrayRef {
        Arc::new(self.maps.finish())
    }
}
