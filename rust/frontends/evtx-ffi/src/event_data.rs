//! The function that makes a map such as `event_data`, for a vector of rows at a time.

use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field};
use evtx_exports::FieldMaps;
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
        let (mut maps, mut fields) = (FieldMaps::default(), 0);
        for row in 0..lists.rows {
            // SAFETY: by the contract of this function.
            let items = unsafe { lists.items(row) };
            for item in items.filter(|&item| pairs.is_valid(item)) {
                fields += 1;
                if fields % UNCHECKED == 0 {
                    caller.interrupt.check().map_err(ScanError::from)?;
                }
                // SAFETY: as above.
                let (key, value) = unsafe { (keys.text(item)?, values.text(item)?) };
                maps.push(key, value);
            }
            maps.end(lists.is_valid(row)).map_err(|error| error.to_string())?;
        }
        Ok(maps.finish())
    }
}
