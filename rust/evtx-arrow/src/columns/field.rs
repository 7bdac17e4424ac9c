//! A column of the values at a place.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, BooleanBuilder, FixedSizeBinaryBuilder, PrimitiveBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampNanosecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::ArrowError;
use evtx_format::binxml::instance::ValueTable;
use evtx_format::value::Scalar;
use evtx_format::value::time::filetime_to_unix_nanos;

use super::arrays::{MakeArrays, finish_primitive};
use super::dictionary::DictionaryBuilder;
use super::text::TextBuilder;
use crate::plan::Resolved;
use crate::record::{Fields, GROUP};
use crate::schema::FieldType;

/// Appends what is read of each record, as far as may be in one go.
#[inline(always)]
fn append<'p, 'r: 'p, T: ArrowPrimitiveType>(
    builder: &mut PrimitiveBuilder<T>,
    records: &[Fields<'p, 'r>],
    read: impl Fn(usize, &Fields<'p, 'r>) -> Option<T::Native>,
) {
    for (group, records) in records.chunks(GROUP).enumerate() {
        let mut values = [T::default_value(); GROUP];
        let mut valid = [false; GROUP];
        let mut count = 0;
        for (i, fields) in records.iter().enumerate() {
            let value = read(GROUP * group + i, fields);
            valid[i] = value.is_some();
            values[i] = value.unwrap_or_default();
            count += usize::from(value.is_some());
        }
        let len = records.len();
        if count == len {
            builder.append_slice(&values[..len]);
        } else if count == 0 {
            builder.append_nulls(len);
        } else {
            builder.append_values(&values[..len], &valid[..len]);
        }
    }
}

/// Appends the number that each record has at a place.
#[inline(always)]
fn append_numbers<T: ArrowPrimitiveType>(builder: &mut PrimitiveBuilder<T>, records: &[Fields<'_, '_>], at: At)
where
    T::Native: TryFrom<u64>,
{
    append(builder, records, |_, fields| {
        let number = at
            .substitution(fields)
            .and_then(|(substitution, values)| values.unsigned(substitution));
        number.or_else(|| at.number(fields))?.try_into().ok()
    });
}

/// A place that a column reads. What is no more than the usual value of a substitution is read where the column is
/// filled, all else here.
#[derive(Clone, Copy)]
struct At {
    place: usize,
    in_system: bool,
}

impl At {
    #[inline(always)]
    fn substitution<'r>(self, fields: &Fields<'_, 'r>) -> Option<(u16, ValueTable<'r>)> {
        if self.in_system {
            fields.substitution(self.place)
        } else {
            None
        }
    }

    #[inline(always)]
    fn found<'p, 'r>(self, fields: &Fields<'p, 'r>) -> Option<Resolved<'p, 'r>> {
        fields.get_at(self.place, self.in_system)
    }

    #[inline(never)]
    fn number(self, fields: &Fields<'_, '_>) -> Option<u64> {
        self.found(fields).as_ref().and_then(Resolved::number)
    }

    #[inline(never)]
    fn nanos(self, fields: &Fields<'_, '_>) -> Option<i64> {
        self.found(fields).as_ref().and_then(Resolved::nanos)
    }

    #[inline(never)]
    fn uuid(self, fields: &Fields<'_, '_>) -> Option<[u8; 16]> {
        self.found(fields).as_ref().and_then(Resolved::uuid)
    }
}

/// A column of 16 bytes a row.
#[derive(Debug)]
pub(crate) struct FixedBuilder {
    rows: FixedSizeBinaryBuilder,
    /// NULLs at the end that are not in `rows` yet. Most columns of GUIDs have little else, and to count is cheaper.
    nulls: usize,
}

impl FixedBuilder {
    const SIZE: usize = 16;

    fn new() -> Self {
        FixedBuilder {
            rows: FixedSizeBinaryBuilder::new(Self::SIZE as i32),
            nulls: 0,
        }
    }

    #[inline(always)]
    fn push(&mut self, bytes: Option<[u8; Self::SIZE]>) -> Result<(), ArrowError> {
        let Some(bytes) = bytes else {
            self.nulls += 1;
            return Ok(());
        };
        self.end_nulls();
        self.rows.append_value(bytes)
    }

    #[inline]
    fn end_nulls(&mut self) {
        if self.nulls > 0 {
            self.rows.append_nulls(std::mem::take(&mut self.nulls));
        }
    }

    fn finish(&mut self) -> ArrayRef {
        self.end_nulls();
        let array = self.rows.finish();
        self.rows = FixedSizeBinaryBuilder::with_capacity(array.len(), Self::SIZE as i32);
        Arc::new(array)
    }

    fn finish_cloned(&mut self) -> ArrayRef {
        self.end_nulls();
        Arc::new(self.rows.finish_cloned())
    }
}

/// A column that is read from a place in the event, or the items of one.
#[derive(Debug)]
pub(crate) enum FieldBuilder {
    Time(PrimitiveBuilder<TimestampNanosecondType>),
    UInt8(PrimitiveBuilder<UInt8Type>),
    UInt16(PrimitiveBuilder<UInt16Type>),
    UInt32(PrimitiveBuilder<UInt32Type>),
    UInt64(PrimitiveBuilder<UInt64Type>),
    Int8(PrimitiveBuilder<Int8Type>),
    Int16(PrimitiveBuilder<Int16Type>),
    Int32(PrimitiveBuilder<Int32Type>),
    Int64(PrimitiveBuilder<Int64Type>),
    Int128(FixedBuilder),
    Float32(PrimitiveBuilder<Float32Type>),
    Float64(PrimitiveBuilder<Float64Type>),
    Bool(BooleanBuilder),
    Bytes(BinaryBuilder),
    Text(TextBuilder),
    Name(DictionaryBuilder),
    Uuid(FixedBuilder),
}

impl FieldBuilder {
    pub(crate) fn new(field_type: FieldType) -> Self {
        match field_type {
            FieldType::Time => FieldBuilder::Time(PrimitiveBuilder::new()),
            FieldType::UInt8 => FieldBuilder::UInt8(PrimitiveBuilder::new()),
            FieldType::UInt16 => FieldBuilder::UInt16(PrimitiveBuilder::new()),
            FieldType::UInt32 => FieldBuilder::UInt32(PrimitiveBuilder::new()),
            FieldType::UInt64 => FieldBuilder::UInt64(PrimitiveBuilder::new()),
            FieldType::Int8 => FieldBuilder::Int8(PrimitiveBuilder::new()),
            FieldType::Int16 => FieldBuilder::Int16(PrimitiveBuilder::new()),
            FieldType::Int32 => FieldBuilder::Int32(PrimitiveBuilder::new()),
            FieldType::Int64 => FieldBuilder::Int64(PrimitiveBuilder::new()),
            FieldType::Int128 => FieldBuilder::Int128(FixedBuilder::new()),
            FieldType::Float32 => FieldBuilder::Float32(PrimitiveBuilder::new()),
            FieldType::Float64 => FieldBuilder::Float64(PrimitiveBuilder::new()),
            FieldType::Bool => FieldBuilder::Bool(BooleanBuilder::new()),
            FieldType::Bytes => FieldBuilder::Bytes(BinaryBuilder::new()),
            FieldType::Text => FieldBuilder::Text(TextBuilder::new()),
            FieldType::Name => FieldBuilder::Name(DictionaryBuilder::new()),
            FieldType::Uuid => FieldBuilder::Uuid(FixedBuilder::new()),
        }
    }

    /// Appends what was found of a record; NULL for nothing, and for what the column cannot hold.
    pub(crate) fn push(&mut self, found: Option<&Resolved<'_, '_>>) -> Result<(), ArrowError> {
        fn number<T: ArrowPrimitiveType>(builder: &mut PrimitiveBuilder<T>, found: Option<&Resolved<'_, '_>>)
        where
            T::Native: TryFrom<u64>,
        {
            let number = found.and_then(Resolved::number);
            builder.append_option(number.and_then(|number| number.try_into().ok()));
        }
        match self {
            FieldBuilder::Time(builder) => builder.append_option(found.and_then(Resolved::nanos)),
            FieldBuilder::UInt8(builder) => number(builder, found),
            FieldBuilder::UInt16(builder) => number(builder, found),
            FieldBuilder::UInt32(builder) => number(builder, found),
            FieldBuilder::UInt64(builder) => number(builder, found),
            FieldBuilder::Text(builder) => builder.push_text(found),
            FieldBuilder::Name(builder) => builder.push(found),
            FieldBuilder::Uuid(builder) => builder.push(found.and_then(Resolved::uuid))?,
            other => other.push_field(found)?,
        }
        Ok(())
    }

    /// Appends NULLs.
    pub(crate) fn push_nulls(&mut self, count: usize) -> Result<(), ArrowError> {
        match self {
            FieldBuilder::Text(builder) => builder.nulls += count,
            other => (0..count).try_for_each(|_| other.push(None))?,
        }
        Ok(())
    }

    /// Appends what each of some records has at a place, as [`push`](Self::push) does. `written` is the FILETIME
    /// that stands in for the time of a record, by its index, if nothing of that can be read.
    pub(crate) fn extend(
        &mut self,
        records: &[Fields<'_, '_>],
        place: usize,
        in_system: bool,
        written: impl Fn(usize) -> Option<u64>,
    ) -> Result<(), ArrowError> {
        let at = At { place, in_system };
        match self {
            FieldBuilder::Time(builder) => append(builder, records, |row, fields| {
                let substitution = at.substitution(fields);
                match substitution.and_then(|(substitution, values)| values.fixed(substitution, Scalar::FileTime)) {
                    Some(ticks) => filetime_to_unix_nanos(u64::from_le_bytes(ticks)),
                    None => match written(row) {
                        None => at.nanos(fields),
                        Some(ticks) => filetime_to_unix_nanos(ticks),
                    },
                }
            }),
            FieldBuilder::UInt8(builder) => append_numbers(builder, records, at),
            FieldBuilder::UInt16(builder) => append_numbers(builder, records, at),
            FieldBuilder::UInt32(builder) => append_numbers(builder, records, at),
            FieldBuilder::UInt64(builder) => append_numbers(builder, records, at),
            FieldBuilder::Text(builder) => {
                records
                    .iter()
                    .for_each(|fields| builder.push_text(at.found(fields).as_ref()));
            }
            FieldBuilder::Name(builder) => records
                .iter()
                .for_each(|fields| builder.push(at.found(fields).as_ref())),
            FieldBuilder::Uuid(builder) => {
                for fields in records {
                    builder.push(match at.substitution(fields) {
                        Some((substitution, values)) if values.is_null(substitution) => None,
                        _ => at.uuid(fields),
                    })?;
                }
            }
            other => {
                for fields in records {
                    other.push_field(at.found(fields).as_ref())?;
                }
            }
        }
        Ok(())
    }

    /// As [`push`](Self::push), for the types that only fields of events have. Apart, as code that is not run slows
    /// that down which is.
    #[cold]
    fn push_field(&mut self, found: Option<&Resolved<'_, '_>>) -> Result<(), ArrowError> {
        fn integer<T: ArrowPrimitiveType>(builder: &mut PrimitiveBuilder<T>, found: Option<&Resolved<'_, '_>>)
        where
            T::Native: TryFrom<i128>,
        {
            let number = found.and_then(Resolved::integer);
            builder.append_option(number.and_then(|number| number.try_into().ok()));
        }
        match self {
            FieldBuilder::Int8(builder) => integer(builder, found),
            FieldBuilder::Int16(builder) => integer(builder, found),
            FieldBuilder::Int32(builder) => integer(builder, found),
            FieldBuilder::Int64(builder) => integer(builder, found),
            FieldBuilder::Int128(builder) => {
                builder.push(found.and_then(Resolved::integer).map(i128::to_le_bytes))?;
            }
            FieldBuilder::Float32(builder) => {
                builder.append_option(found.and_then(Resolved::float).map(|float| float as f32));
            }
            FieldBuilder::Float64(builder) => builder.append_option(found.and_then(Resolved::float)),
            FieldBuilder::Bool(builder) => builder.append_option(found.and_then(Resolved::bool)),
            FieldBuilder::Bytes(builder) => builder.append_option(found.and_then(Resolved::bytes)),
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            FieldBuilder::Text(builder) => builder.bytes(),
            FieldBuilder::Name(builder) => builder.bytes(),
            FieldBuilder::Bytes(builder) => builder.values_slice().len(),
            _ => 0,
        }
    }

    pub(crate) fn finish(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            FieldBuilder::Time(builder) => finish_primitive(builder),
            FieldBuilder::UInt8(builder) => finish_primitive(builder),
            FieldBuilder::UInt16(builder) => finish_primitive(builder),
            FieldBuilder::UInt32(builder) => finish_primitive(builder),
            FieldBuilder::UInt64(builder) => finish_primitive(builder),
            FieldBuilder::Int8(builder) => finish_primitive(builder),
            FieldBuilder::Int16(builder) => finish_primitive(builder),
            FieldBuilder::Int32(builder) => finish_primitive(builder),
            FieldBuilder::Int64(builder) => finish_primitive(builder),
            FieldBuilder::Int128(builder) => builder.finish(),
            FieldBuilder::Float32(builder) => finish_primitive(builder),
            FieldBuilder::Float64(builder) => finish_primitive(builder),
            FieldBuilder::Bool(builder) => Arc::new(builder.finish()),
            FieldBuilder::Bytes(builder) => Arc::new(builder.finish()),
            FieldBuilder::Text(builder) => Arc::new(builder.finish(make)?),
            FieldBuilder::Name(builder) => builder.finish(make)?,
            FieldBuilder::Uuid(builder) => builder.finish(),
        })
    }

    /// What is in the builder so far, which stays there.
    pub(crate) fn finish_cloned(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            FieldBuilder::Time(builder) => Arc::new(builder.finish_cloned()),
            FieldBuilder::UInt8(builder) => Arc::new(builder.finish_cloned()),
            FieldBuilder::UInt16(builder) => Arc::new(builder.finish_cloned()),
            FieldBuilder::UInt32(builder) => Arc::new(builder.finish_cloned()),
            FieldBuilder::UInt64(builder) => Arc::new(builder.finish_cloned()),
            FieldBuilder::Int8(builder) => Arc::new(builder.finish_cloned()),
            FieldBuilder::Int16(builder) => Arc::new(builder.finish_cloned()),
            FieldBuilder::Int32(builder) => Arc::new(builder.finish_cloned()),
            FieldBuilder::Int64(builder) => Arc::new(builder.finish_cloned()),
            FieldBuilder::Int128(builder) => builder.finish_cloned(),
            FieldBuilder::Float32(builder) => Arc::new(builder.finish_cloned()),
            FieldBuilder::Float64(builder) => Arc::new(builder.finish_cloned()),
            FieldBuilder::Bool(builder) => Arc::new(builder.finish_cloned()),
            FieldBuilder::Bytes(builder) => Arc::new(builder.finish_cloned()),
            FieldBuilder::Text(builder) => Arc::new(builder.finish_cloned(make)?),
            FieldBuilder::Name(builder) => builder.finish_cloned(make)?,
            FieldBuilder::Uuid(builder) => builder.finish_cloned(),
        })
    }
}
