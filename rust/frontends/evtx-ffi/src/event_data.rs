//! The function that makes a map such as `event_data`, for a vector of rows at a time.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{MapBuilder, MapFieldNames, StringViewBuilder};
use arrow_schema::{DataType, Field};
use evtx_format::Numbering;
use evtx_scan::ScanError;

use crate::boundary::EvtxError;
use crate::scalar::{Caller, EvtxVector, Scalar, ScalarFunction};

/// How many fields are read between two checks for an interrupt.
const UNCHECKED: usize = 1 << 12;

/// The function, of a list of structs.
pub(crate) fn function() -> ScalarFunction {
    let text = |name| Field::new(name, DataType::Utf8, true);
    let pair = DataType::Struct(vec![text("key"), text("value")].into());
    let list = DataType::List(Field::new_list_field(pair.clone(), true).into());
    let map = DataType::Map(Field::new("entries", pair, false).into(), false);
    ScalarFunction {
        name: "evtx_event_data",
        description: "A map such as event_data from a list of structs `{key, value}`: unnamed values become param1, param2, …, \
                      and a name that occurs again gets a number: name_1. NULL in the list is left out.",
        example: "SELECT evtx_event_data([{key: NULL, value: 'a'}, {key: 'b', value: 'c'}, {key: 'b', value: 'd'}])",
        parameters: vec![Field::new("entries", list, true)],
        result: Field::new("event_data", map, true),
        make: Box::new(|| Box::new(EventData)),
    }
}

struct EventData;

impl Scalar for EventData {
    /// NULL for NULL.
    unsafe fn call(&mut self, vectors: &[EvtxVector], caller: Caller<'_>) -> Result<ArrayRef, EvtxError> {
        let &[lists, pairs, keys, values] = vectors else {
            return Err("evtx_event_data has one argument".into());
        };
        let names = MapFieldNames {
            entry: "entries".to_owned(),
            key: "key".to_owned(),
            value: "value".to_owned(),
        };
        let mut maps = MapBuilder::new(Some(names), StringViewBuilder::new(), StringViewBuilder::new());
        let mut fields = 0;
        for row in 0..lists.rows {
            // SAFETY: by the contract of this function.
            let items = unsafe { lists.items(row) };
            let (mut taken, mut unnamed) = (Numbering::new(str::to_owned), 0);
            for item in items.filter(|&item| pairs.is_valid(item)) {
                fields += 1;
                if fields % UNCHECKED == 0 {
                    caller.interrupt.check().map_err(ScanError::from)?;
                }
                // SAFETY: as above.
                let (key, value) = unsafe { (keys.text(item)?, values.text(item)?) };
                let name = key.map_or_else(
                    || {
                        unnamed += 1;
                        format!("param{unnamed}")
                    },
                    str::to_owned,
                );
                maps.keys().append_value(taken.take(name).0);
                maps.values().append_option(value);
            }
            maps.append(lists.is_valid(row)).map_err(|error| error.to_string())?;
        }
        Ok(Arc::new(maps.finish()))
    }
}
