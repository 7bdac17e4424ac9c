//! The builder of a column of values at a path in the event.

use arrow_array::ArrayRef;
use arrow_array::builder::{ArrayBuilder, BinaryBuilder, BooleanBuilder, FixedSizeBinaryBuilder, PrimitiveBuilder};
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampNanosecondType, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_schema::ArrowError;
use evtx_format::binxml::instance::ValueTable;
use evtx_format::value::Scalar;
use evtx_format::value::time::filetime_to_unix_nanos;

use super::dictionary::DictionaryBuilder;
use super::text::TextBuilder;
use crate::arrays::{Build, MakeArrays};
use crate::filter::Typed;
use crate::plan::{PathId, Resolved};
use crate::record::PathValues;
use crate::schema::FieldType;

/// The path that a column reads. Columns read the usual value of a bare substitution in line. The functions here read
/// all other values, out of line.
#[derive(Clone, Copy)]
struct At {
    path: PathId,
    in_system: bool,
}

impl At {
    #[inline(always)]
    fn substitution<'r>(self, record: &PathValues<'_, 'r>) -> Option<(u16, ValueTable<'r>)> {
        if self.in_system {
            record.substitution(self.path)
        } else {
            None
        }
    }

    #[inline(always)]
    fn found<'p, 'r>(self, record: &PathValues<'p, 'r>) -> Option<Resolved<'p, 'r>> {
        record.get_at(self.path, self.in_system)
    }

    #[inline(always)]
    fn number<N: TryFrom<u64>>(self, record: &PathValues<'_, '_>) -> Option<N> {
        let usual = self.substitution(record);
        let usual = usual.and_then(|(substitution, values)| values.unsigned(substitution));
        usual.or_else(|| self.other_number(record))?.try_into().ok()
    }

    #[inline(never)]
    fn other_number(self, record: &PathValues<'_, '_>) -> Option<u64> {
        self.found(record).as_ref().and_then(Resolved::number)
    }

    #[inline(never)]
    fn nanos(self, record: &PathValues<'_, '_>) -> Option<i64> {
        self.found(record).as_ref().and_then(Resolved::nanos)
    }

    #[inline(never)]
    fn uuid(self, record: &PathValues<'_, '_>) -> Option<[u8; 16]> {
        self.found(record).as_ref().and_then(Resolved::uuid)
    }
}

/// The builder of a column of 16 bytes for each row.
#[derive(Debug)]
pub(crate) struct FixedBuilder {
    rows: FixedSizeBinaryBuilder,
    /// How many NULLs at the end are not in `rows` yet. Columns of GUIDs are mostly NULL, and counting is cheaper.
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
}

impl<B: ArrayBuilder> Build for B {
    fn bytes(&self) -> usize {
        let binary = self.as_any().downcast_ref::<BinaryBuilder>();
        binary.map_or(0, |binary| binary.values_slice().len())
    }

    fn finish(&mut self, _: MakeArrays) -> Result<ArrayRef, ArrowError> {
        Ok(ArrayBuilder::finish(self))
    }

    fn finish_cloned(&mut self, _: MakeArrays) -> Result<ArrayRef, ArrowError> {
        Ok(ArrayBuilder::finish_cloned(self))
    }
}

impl Build for FixedBuilder {
    fn finish(&mut self, _: MakeArrays) -> Result<ArrayRef, ArrowError> {
        self.end_nulls();
        Ok(ArrayBuilder::finish(&mut self.rows))
    }

    fn finish_cloned(&mut self, _: MakeArrays) -> Result<ArrayRef, ArrowError> {
        self.end_nulls();
        Ok(ArrayBuilder::finish_cloned(&self.rows))
    }
}

/// Defines [`ValueBuilder`] from a list of entries: a [`FieldType`], its builder, and how the builder takes the value of
/// a record. Missing values, and values that the column cannot hold, are NULL.
macro_rules! value_builders {
    ($($field_type:ident($builder:ty): |$this:ident, $found:ident| $push:expr;)+) => {
        /// The builder of a column of single values, or of the items of lists.
        #[derive(Debug)]
        pub(crate) enum ValueBuilder {
            $($field_type($builder),)+
        }

        impl ValueBuilder {
            pub(crate) fn new(field_type: FieldType) -> Self {
                match field_type {
                    $(FieldType::$field_type => ValueBuilder::$field_type(<$builder>::new()),)+
                }
            }

            pub(crate) fn push(&mut self, found: Option<&Resolved<'_, '_>>) -> Result<(), ArrowError> {
                match self {
                    $(ValueBuilder::$field_type($this) => {
                        let $found = found;
                        $push;
                    })+
                }
                Ok(())
            }

            fn builder(&self) -> &dyn Build {
                match self {
                    $(ValueBuilder::$field_type(builder) => builder,)+
                }
            }

            fn builder_mut(&mut self) -> &mut dyn Build {
                match self {
                    $(ValueBuilder::$field_type(builder) => builder,)+
                }
            }
        }
    };
}

value_builders! {
    Time(PrimitiveBuilder<TimestampNanosecondType>): |to, found| to.append_option(found.and_then(Resolved::nanos));
    UInt8(PrimitiveBuilder<UInt8Type>): |to, found| to.append_option(unsigned(found));
    UInt16(PrimitiveBuilder<UInt16Type>): |to, found| to.append_option(unsigned(found));
    UInt32(PrimitiveBuilder<UInt32Type>): |to, found| to.append_option(unsigned(found));
    UInt64(PrimitiveBuilder<UInt64Type>): |to, found| to.append_option(unsigned(found));
    Int8(PrimitiveBuilder<Int8Type>): |to, found| to.append_option(signed(found));
    Int16(PrimitiveBuilder<Int16Type>): |to, found| to.append_option(signed(found));
    Int32(PrimitiveBuilder<Int32Type>): |to, found| to.append_option(signed(found));
    Int64(PrimitiveBuilder<Int64Type>): |to, found| to.append_option(signed(found));
    Int128(FixedBuilder): |to, found| to.push(found.and_then(Resolved::integer).map(i128::to_le_bytes))?;
    Float32(PrimitiveBuilder<Float32Type>): |to, found| {
        to.append_option(found.and_then(Resolved::float).map(|float| float as f32));
    };
    Float64(PrimitiveBuilder<Float64Type>): |to, found| to.append_option(found.and_then(Resolved::float));
    Bool(BooleanBuilder): |to, found| to.append_option(found.and_then(Resolved::bool));
    Bytes(BinaryBuilder): |to, found| to.append_option(found.and_then(Resolved::bytes));
    Text(TextBuilder): |to, found| to.push_text(found);
    Name(DictionaryBuilder): |to, found| to.push(found);
    Uuid(FixedBuilder): |to, found| to.push(found.and_then(Resolved::uuid))?;
}

fn unsigned<N: TryFrom<u64>>(found: Option<&Resolved<'_, '_>>) -> Option<N> {
    found?.number()?.try_into().ok()
}

fn signed<N: TryFrom<i128>>(found: Option<&Resolved<'_, '_>>) -> Option<N> {
    found?.integer()?.try_into().ok()
}

impl ValueBuilder {
    pub(crate) fn push_nulls(&mut self, count: usize) -> Result<(), ArrowError> {
        match self {
            ValueBuilder::Text(builder) => builder.nulls += count,
            other => (0..count).try_for_each(|_| other.push(None))?,
        }
        Ok(())
    }

    /// Appends a value of the type, or NULL.
    pub(crate) fn push_known(&mut self, value: Option<Typed<&[u8]>>) -> Result<(), ArrowError> {
        match (self, value) {
            (ValueBuilder::UInt64(builder), Some(Typed::Number(number))) => builder.append_value(number),
            (ValueBuilder::UInt32(builder), Some(Typed::Number(number))) => {
                builder.append_option(number.try_into().ok())
            }
            (ValueBuilder::Bool(builder), Some(Typed::Bool(truth))) => builder.append_value(truth),
            (builder, None) => builder.push(None)?,
            (builder, Some(value)) => {
                let what = format!("a column of {builder:?} cannot hold {value:?}");
                return Err(ArrowError::SchemaError(what));
            }
        }
        Ok(())
    }

    /// Appends the value that each record has at a path, as [`push`](Self::push) does. `written` returns the FILETIME
    /// that replaces the time of a record, by its index, if nothing of the record can be read.
    pub(crate) fn extend(
        &mut self,
        records: &[PathValues<'_, '_>],
        path: PathId,
        in_system: bool,
        written: impl Fn(usize) -> Option<u64>,
    ) -> Result<(), ArrowError> {
        let at = At { path, in_system };
        match self {
            ValueBuilder::Time(builder) => {
                for (row, record) in records.iter().enumerate() {
                    let usual = at.substitution(record);
                    let usual = usual.and_then(|(substitution, values)| values.fixed(substitution, Scalar::FileTime));
                    let ticks = usual.map(u64::from_le_bytes).or_else(|| written(row));
                    builder.append_option(match ticks {
                        Some(ticks) => filetime_to_unix_nanos(ticks),
                        None => at.nanos(record),
                    });
                }
            }
            ValueBuilder::UInt8(builder) => builder.extend(records.iter().map(|record| at.number(record))),
            ValueBuilder::UInt16(builder) => builder.extend(records.iter().map(|record| at.number(record))),
            ValueBuilder::UInt32(builder) => builder.extend(records.iter().map(|record| at.number(record))),
            ValueBuilder::UInt64(builder) => builder.extend(records.iter().map(|record| at.number(record))),
            ValueBuilder::Uuid(builder) => {
                for record in records {
                    builder.push(match at.substitution(record) {
                        Some((substitution, values)) if values.is_null(substitution) => None,
                        _ => at.uuid(record),
                    })?;
                }
            }
            other => {
                for record in records {
                    other.push(at.found(record).as_ref())?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn bytes(&self) -> usize {
        self.builder().bytes()
    }

    pub(crate) fn finish(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        self.builder_mut().finish(make)
    }

    pub(crate) fn finish_cloned(&mut self, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        self.builder_mut().finish_cloned(make)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::ArrowPrimitiveType;
    use evtx_format::value::Value;

    use super::*;

    fn number<T: ArrowPrimitiveType>(field_type: FieldType, number: i128) -> Option<i128>
    where
        T::Native: Into<i128>,
    {
        let text = number.to_string();
        let mut builder = ValueBuilder::new(field_type);
        let found = Resolved::Value(Value::new(Scalar::AnsiString, text.as_bytes()));
        builder.push(Some(&found)).expect("a row");
        builder.push_nulls(1).expect("a row");
        let array = builder.finish(MakeArrays::CHECKED).expect("an array");
        let array = array.as_primitive::<T>();
        assert!(array.len() == 2 && array.is_null(1));
        array.is_valid(0).then(|| array.value(0).into())
    }

    #[test]
    fn numbers_fit_or_are_null() {
        fn check<T: ArrowPrimitiveType>(field_type: FieldType, least: impl Into<i128>, greatest: impl Into<i128>)
        where
            T::Native: Into<i128>,
        {
            let (least, greatest) = (least.into(), greatest.into());
            for fits in [least, 0, 1, greatest] {
                assert_eq!(number::<T>(field_type, fits), Some(fits), "{field_type:?}");
            }
            for none in [least - 1, greatest + 1] {
                assert_eq!(number::<T>(field_type, none), None, "{field_type:?}");
            }
        }
        check::<UInt8Type>(FieldType::UInt8, u8::MIN, u8::MAX);
        check::<UInt16Type>(FieldType::UInt16, u16::MIN, u16::MAX);
        check::<UInt32Type>(FieldType::UInt32, u32::MIN, u32::MAX);
        check::<UInt64Type>(FieldType::UInt64, u64::MIN, u64::MAX);
        check::<Int8Type>(FieldType::Int8, i8::MIN, i8::MAX);
        check::<Int16Type>(FieldType::Int16, i16::MIN, i16::MAX);
        check::<Int32Type>(FieldType::Int32, i32::MIN, i32::MAX);
        check::<Int64Type>(FieldType::Int64, i64::MIN, i64::MAX);
    }
}
