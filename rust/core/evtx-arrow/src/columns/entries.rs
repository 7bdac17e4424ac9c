//! The builder of a typed column of one entry of `event_data`.

use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::ArrowError;
use evtx_format::MAX_TEXT;

use super::value::ValueBuilder;
use crate::arrays::{MakeArrays, take};
use crate::plan::Resolved;
use crate::schema::ColumnType;

/// The builder of a column of the values of an entry, or of lists of their items.
#[derive(Debug)]
pub(crate) struct EntryBuilder {
    column_type: ColumnType,
    items: ValueBuilder,
    /// 0, then the end of each list in the items.
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
    len: i32,
}

impl EntryBuilder {
    pub(crate) fn new(column_type: ColumnType) -> Self {
        EntryBuilder {
            column_type,
            items: ValueBuilder::new(column_type.item),
            offsets: vec![0],
            nulls: NullBufferBuilder::new(0),
            len: 0,
        }
    }

    /// Appends the value of a record. In a column of lists, a single value is a list of one item, and an empty value is
    /// an empty list.
    #[inline(never)]
    pub(crate) fn push(&mut self, found: Option<&Resolved<'_, '_>>) -> Result<(), ArrowError> {
        if !self.column_type.list {
            return self.push_item(found);
        }
        match found {
            None => {}
            Some(Resolved::Value(value)) => {
                let value = value.single();
                if value.value_type.array {
                    for item in value.items() {
                        self.push_item(Some(&Resolved::Value(item)))?;
                    }
                } else if !value.is_empty() {
                    self.push_item(Some(&Resolved::Value(value)))?;
                }
            }
            Some(Resolved::Constant(constant)) if !constant.items.is_empty() => {
                for item in &constant.items {
                    self.push_item(Some(&Resolved::Constant(item)))?;
                }
            }
            Some(Resolved::Constant(constant)) if constant.text.is_empty() => {}
            Some(found) => self.push_item(Some(found))?,
        }
        self.offsets.push(self.len);
        self.nulls.append(found.is_some());
        Ok(())
    }

    fn push_item(&mut self, found: Option<&Resolved<'_, '_>>) -> Result<(), ArrowError> {
        self.len += 1;
        match (&mut self.items, found) {
            (ValueBuilder::Text(builder), Some(found)) => {
                builder.push_found(found, MAX_TEXT, |out| found.push_entry(out));
                Ok(())
            }
            (items, found) => items.push(found),
        }
    }

    /// About how many bytes the column takes, besides a fixed number for each row.
    pub(crate) fn bytes(&self) -> usize {
        let lists = if self.column_type.list {
            16 * self.len as usize
        } else {
            0
        };
        lists + self.items.bytes()
    }

    pub(crate) fn finish(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        self.len = 0;
        let items = self.items.finish(make)?;
        if !self.column_type.list {
            return Ok(items);
        }
        let offsets = OffsetBuffer::new(take(&mut self.offsets).into());
        self.offsets.push(0);
        let lists = ListArray::try_new(self.column_type.item_field(), offsets, items, self.nulls.finish())?;
        Ok(Arc::new(lists))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int8Type;
    use evtx_format::value::{Scalar, Value};

    use super::*;
    use crate::plan::Constant;
    use crate::schema::FieldType;

    type Case<'p, 'r> = (Option<Resolved<'p, 'r>>, Option<Vec<Option<i8>>>);

    #[test]
    fn a_list_has_the_items_of_an_array() {
        let array = |bytes| {
            let mut value = Value::new(Scalar::Int16, bytes);
            value.value_type.array = true;
            Resolved::Value(value)
        };
        let plain = |text: &str| Constant {
            text: text.into(),
            ..Constant::default()
        };
        let constant = |text: &str, items: &[&str]| Constant {
            items: items.iter().copied().map(plain).collect(),
            ..plain(text)
        };
        let constants = [constant("[1,x]", &["1", "x"]), constant("7", &[]), constant("", &[])];
        let table: [Case<'_, '_>; 9] = [
            (None, None),
            (Some(array(&[])), Some(vec![])),
            (Some(array(&[5, 0])), Some(vec![Some(5)])),
            (
                Some(array(&[0x80, 0xff, 0x80, 0, 0x7f, 0])),
                Some(vec![Some(-128), None, Some(127)]),
            ),
            (
                Some(Resolved::Value(Value::new(Scalar::UInt8, &[9]))),
                Some(vec![Some(9)]),
            ),
            (Some(Resolved::Value(Value::null())), Some(vec![])),
            (Some(Resolved::Constant(&constants[0])), Some(vec![Some(1), None])),
            (Some(Resolved::Constant(&constants[1])), Some(vec![Some(7)])),
            (Some(Resolved::Constant(&constants[2])), Some(vec![])),
        ];
        let mut builder = EntryBuilder::new(ColumnType {
            item: FieldType::Int8,
            list: true,
        });
        for _ in 0..2 {
            table
                .iter()
                .for_each(|(found, _)| builder.push(found.as_ref()).expect("a row"));
            assert_eq!(builder.bytes(), 16 * 8);
            let lists = builder.finish(MakeArrays::CHECKED).expect("an array");
            let lists = lists.as_list::<i32>();
            assert_eq!(lists.len(), table.len());
            for (list, (found, expected)) in lists.iter().zip(&table) {
                let items = list.map(|list| list.as_primitive::<Int8Type>().iter().collect::<Vec<_>>());
                assert_eq!(&items, expected, "{:?}", found.and_then(|found| found.text()));
            }
        }
    }
}
