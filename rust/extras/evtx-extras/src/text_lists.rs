//! The builder of a column of lists of texts.

use std::convert::Infallible;
use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field};
use evtx_arrow::{MakeArrays, TextColumn};

/// A column of lists of texts.
#[derive(Debug)]
pub(crate) struct TextLists {
    texts: TextColumn,
    /// 0, then the end of each list in the texts.
    ends: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl Default for TextLists {
    fn default() -> Self {
        TextLists {
            texts: TextColumn::default(),
            ends: vec![0],
            nulls: NullBufferBuilder::new(0),
        }
    }
}

impl TextLists {
    /// The Arrow field of such a column.
    pub(crate) fn field(name: &str) -> Field {
        Field::new(name, DataType::List(item()), true)
    }

    /// Appends a list with the text that each of `writes` appends.
    pub(crate) fn push<W: FnOnce(&mut Vec<u8>)>(&mut self, writes: impl Iterator<Item = W>) {
        let mut end = self.len();
        for write in writes {
            let Ok(()) = self.texts.push_written(|out| {
                write(out);
                Ok::<_, Infallible>(true)
            });
            end += 1;
        }
        self.ends.push(end);
        self.nulls.append_non_null();
    }

    /// Appends NULL.
    pub(crate) fn push_null(&mut self) {
        self.ends.push(self.len());
        self.nulls.append_null();
    }

    /// How many texts there are.
    fn len(&self) -> i32 {
        self.ends.last().copied().unwrap_or_default()
    }

    /// How many bytes the builder holds, besides a fixed number for each row.
    pub(crate) fn bytes(&self) -> usize {
        16 * self.len() as usize + self.texts.bytes()
    }

    /// Ends the batch.
    ///
    /// # Errors
    /// Those of Arrow.
    pub(crate) fn finish(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        let ends = std::mem::replace(&mut self.ends, vec![0]);
        let texts = self.texts.finish(make)?;
        let lists = ListArray::try_new(item(), OffsetBuffer::new(ends.into()), texts, self.nulls.finish())?;
        Ok(Arc::new(lists))
    }
}

fn item() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Utf8View, true))
}
