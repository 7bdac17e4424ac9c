//! Builders of the columns of a batch. Text goes from chunk bytes straight into a column's buffer.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, BooleanBuilder, FixedSizeBinaryBuilder, PrimitiveBuilder};
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampNanosecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, StringArray, StringViewArray};
use arrow_buffer::{Buffer, NullBuffer, NullBufferBuilder, ScalarBuffer};
use arrow_schema::ArrowError;
use evtx_format::binxml::instance::Values;
use evtx_format::value::time::filetime_to_unix_nanos;
use evtx_format::value::{Scalar, Value};
use evtx_format::{Error, MAX_TEXT};

use crate::dictionary::DictionaryBuilder;
use crate::entries::EntryBuilder;
use crate::maps::MapBuilder;
use crate::plan::{Found, MAX_FIELD};
use crate::record::Fields;
use crate::records::GROUP;
use crate::render::Rendering;
use crate::schema::FieldType;

/// Strings as a builder wrote them. Nothing outside of this crate can make such, so whoever is given some may rely on what
/// holds for them: every string is UTF-8, and every view that is not NULL is that of a string of the buffers.
#[derive(Debug)]
pub struct Strings {
    views: ScalarBuffer<u128>,
    buffers: Vec<Buffer>,
    nulls: Option<NullBuffer>,
}

impl Strings {
    /// The views, the buffers that they point into, and which are not NULL.
    pub fn into_parts(self) -> (ScalarBuffer<u128>, Vec<Buffer>, Option<NullBuffer>) {
        (self.views, self.buffers, self.nulls)
    }
}

/// Numbers of values as a builder wrote them. As of [`Strings`], it holds for all there are that every number which is not NULL
/// is that of one of the values.
#[derive(Debug)]
pub struct Numbers {
    numbers: Int32Array,
    values: ArrayRef,
}

impl Numbers {
    /// Only builders may, of what they have numbered.
    pub(crate) fn new(numbers: Int32Array, values: ArrayRef) -> Self {
        Numbers { numbers, values }
    }

    /// The numbers and the values.
    pub fn into_parts(self) -> (Int32Array, ArrayRef) {
        (self.numbers, self.values)
    }
}

/// What makes the arrays of a batch out of what the builders wrote.
///
/// [`MakeArrays::CHECKED`] looks through all of it once more. A caller that may use `unsafe` can do without. The functions are
/// safe to call as they take what only builders make; those of Arrow that skip the check are not:
///
/// ```compile_fail
/// let make = evtx_arrow::MakeArrays::CHECKED;
/// let strings = (make.strings)(vec![u128::MAX].into(), vec![], None);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct MakeArrays {
    /// Makes strings.
    pub strings: fn(Strings) -> Result<StringViewArray, ArrowError>,
    /// Makes a dictionary.
    pub dictionary: fn(Numbers) -> Result<DictionaryArray<Int32Type>, ArrowError>,
}

impl MakeArrays {
    /// With all checks.
    pub const CHECKED: MakeArrays = MakeArrays {
        strings: |strings| {
            let (views, buffers, nulls) = strings.into_parts();
            StringViewArray::try_new(views, buffers, nulls)
        },
        dictionary: |numbers| {
            let (numbers, values) = numbers.into_parts();
            DictionaryArray::try_new(numbers, values)
        },
    };
}

/// Longest string that lives in its view.
const INLINE: usize = 12;

/// Most bytes of a buffer that views point into, as they have 32 bits for a length and an offset, which Arrow takes for signed.
/// Few in this crate's unit tests, so that these have more than one buffer.
const MAX_BUFFER: usize = if cfg!(test) { 1 << 10 } else { i32::MAX as usize };

/// The view of a string that starts at `offset` of a buffer with this number: its length, and then all of it, or four bytes of
/// it, the number and the offset. The buffer has no more than [`MAX_BUFFER`] bytes.
#[inline]
fn view(text: &[u8], buffer: u32, offset: u32) -> u128 {
    let le = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0_u128, |number, &byte| number << 8 | u128::from(byte))
    };
    let inline = if let (true, Some(head), Some(tail)) =
        (text.len() <= INLINE, text.first_chunk::<8>(), text.last_chunk::<8>())
    {
        // The two overlap.
        let (head, tail) = (u64::from_le_bytes(*head), u64::from_le_bytes(*tail));
        u128::from(head) | u128::from(tail) << (8 * (text.len() - 8))
    } else if let (Some(head), Some(tail)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        let head = u128::from(u32::from_le_bytes(*head));
        if text.len() > INLINE {
            head | u128::from(buffer) << 32 | u128::from(offset) << 64
        } else {
            let tail = u32::from_le_bytes(*tail);
            head | u128::from(tail) << (8 * (text.len() - 4))
        }
    } else {
        le(text)
    };
    text.len() as u128 | inline << 32
}

/// Takes a batch's values, and leaves room for as many.
pub(crate) fn take<T>(values: &mut Vec<T>) -> Vec<T> {
    let room = Vec::with_capacity(values.len());
    std::mem::replace(values, room)
}

/// Ends a batch's column, and leaves room for as many values.
fn finish_primitive<T: ArrowPrimitiveType>(builder: &mut PrimitiveBuilder<T>) -> ArrayRef {
    let array = builder.finish();
    *builder = PrimitiveBuilder::with_capacity(array.len());
    Arc::new(array)
}

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
        let number = at.hole(fields).and_then(|(hole, values)| values.unsigned(hole));
        number.or_else(|| at.number(fields))?.try_into().ok()
    });
}

/// A place that a column reads. What is no more than the usual value of a hole is read where the column is filled, all else here.
#[derive(Clone, Copy)]
struct At {
    place: usize,
    in_system: bool,
}

impl At {
    #[inline(always)]
    fn hole<'r>(self, fields: &Fields<'_, 'r>) -> Option<(u16, Values<'r>)> {
        if self.in_system { fields.hole(self.place) } else { None }
    }

    #[inline(always)]
    fn found<'p, 'r>(self, fields: &Fields<'p, 'r>) -> Option<Found<'p, 'r>> {
        fields.get_at(self.place, self.in_system)
    }

    #[inline(never)]
    fn number(self, fields: &Fields<'_, '_>) -> Option<u64> {
        self.found(fields).as_ref().and_then(Found::number)
    }

    #[inline(never)]
    fn nanos(self, fields: &Fields<'_, '_>) -> Option<i64> {
        self.found(fields).as_ref().and_then(Found::nanos)
    }

    #[inline(never)]
    fn uuid(self, fields: &Fields<'_, '_>) -> Option<[u8; 16]> {
        self.found(fields).as_ref().and_then(Found::uuid)
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

/// A column of text. Short strings live in their views, long ones in a buffer, or several if there is too much for one.
#[derive(Debug)]
pub(crate) struct TextBuilder {
    views: Vec<u128>,
    data: Vec<u8>,
    /// The buffers before `data`.
    full: Vec<Buffer>,
    validity: NullBufferBuilder,
    /// NULLs at the end that are not in `views` yet: some columns have little else, and to count is cheaper.
    nulls: usize,
}

impl TextBuilder {
    pub(crate) fn new() -> Self {
        TextBuilder {
            views: Vec::new(),
            data: Vec::new(),
            full: Vec::new(),
            validity: NullBufferBuilder::new(0),
            nulls: 0,
        }
    }

    /// Appends the string that `write` appends to the bytes it is given. One that is longer than `limit`
    /// becomes NULL. Returns its length.
    #[inline]
    pub(crate) fn push(&mut self, limit: usize, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        let start = self.data.len();
        write(&mut self.data);
        let len = self.data.len() - start;
        if len > limit {
            self.drop_long(start);
            self.push_null();
        } else {
            self.end_string(start);
        }
        len
    }

    /// Appends a value's text, as `push` appends it to the bytes it is given, or NULL if it is longer than `limit`. Returns its
    /// length.
    #[inline]
    pub(crate) fn push_found(&mut self, found: &Found<'_, '_>, limit: usize, push: impl FnOnce(&mut Vec<u8>)) -> usize {
        match found {
            Found::Value(value) => self.push_value(*value, push),
            _ => self.push(limit, push),
        }
    }

    /// Appends the text of what was found at a place, or NULL for nothing.
    #[inline(always)]
    pub(crate) fn push_text(&mut self, found: Option<&Found<'_, '_>>) {
        match found {
            Some(found) => _ = self.push_found(found, MAX_FIELD, |out| found.push_text(out)),
            None => self.push_null(),
        }
    }

    /// As [`push_found`](Self::push_found), for a value, which is no longer than any limit.
    #[inline(always)]
    pub(crate) fn push_value(&mut self, value: Value<'_>, push: impl FnOnce(&mut Vec<u8>)) -> usize {
        if let Some((bytes, len)) = value.short_text() {
            self.push_view(len as u128 | bytes << 32);
            return len;
        }
        self.push(MAX_TEXT, push)
    }

    /// Appends a string, or NULL for none.
    pub(crate) fn push_option(&mut self, text: Option<&str>) {
        match text {
            Some(text) => _ = self.push(MAX_TEXT, |out| out.extend_from_slice(text.as_bytes())),
            None => self.push_null(),
        }
    }

    /// Appends the string that `write` appends to the bytes it is given, or NULL where it returns false.
    ///
    /// # Errors
    /// That of `write`. NULL was appended then.
    pub(crate) fn try_push(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<bool, Error>) -> Result<(), Error> {
        let start = self.data.len();
        let written = write(&mut self.data);
        if let Ok(true) = written {
            self.end_string(start);
        } else {
            self.data.truncate(start);
            if self.data.capacity() > start + MAX_TEXT {
                self.drop_long(start);
            }
            self.push_null();
        }
        written.map(drop)
    }

    /// Takes back what was written from `start` on, and the room that only a text which is too long needs.
    // Apart, so that values which are not do not pay for it.
    #[cold]
    #[inline(never)]
    fn drop_long(&mut self, start: usize) {
        self.data.truncate(start);
        self.data.shrink_to(start);
    }

    #[inline]
    fn end_string(&mut self, mut start: usize) {
        if self.data.len() > MAX_BUFFER {
            if self.data.len() - start > MAX_BUFFER {
                self.drop_long(start);
                return self.push_null();
            }
            start = self.next_buffer(start);
        }
        let text = &self.data[start..];
        // Both are less than the length of a buffer.
        let (view, len) = (view(text, self.full.len() as u32, start as u32), text.len());
        self.push_view(view);
        if len <= INLINE {
            self.data.truncate(start);
        }
    }

    /// Moves the string that was written from `start` on to a buffer of its own. Returns where it starts there.
    #[cold]
    #[inline(never)]
    fn next_buffer(&mut self, start: usize) -> usize {
        let text = self.data.split_off(start);
        self.full.push(std::mem::replace(&mut self.data, text).into());
        0
    }

    #[inline(always)]
    fn push_view(&mut self, view: u128) {
        if self.nulls > 0 {
            self.end_nulls();
        }
        self.views.push(view);
        self.validity.append_non_null();
    }

    #[inline(never)]
    fn end_nulls(&mut self) {
        let nulls = std::mem::take(&mut self.nulls);
        self.views.resize(self.views.len() + nulls, 0);
        self.validity.append_n_nulls(nulls);
    }

    #[inline]
    pub(crate) fn push_null(&mut self) {
        self.nulls += 1;
    }

    /// The number of strings in this batch so far.
    pub(crate) fn len(&self) -> usize {
        self.views.len() + self.nulls
    }

    /// Bytes that the builder holds, NULLs at the end apart.
    pub(crate) fn bytes(&self) -> usize {
        let full = self.full.iter().map(Buffer::len).sum::<usize>();
        full + self.data.len() + size_of_val(&*self.views)
    }

    pub(crate) fn finish(&mut self, make: MakeArrays) -> Result<StringViewArray, ArrowError> {
        self.end_nulls();
        let mut buffers = std::mem::take(&mut self.full);
        buffers.push(take(&mut self.data).into());
        (make.strings)(Strings {
            views: take(&mut self.views).into(),
            buffers,
            nulls: self.validity.finish(),
        })
    }

    fn finish_cloned(&mut self, make: MakeArrays) -> Result<StringViewArray, ArrowError> {
        self.end_nulls();
        let mut buffers = self.full.clone();
        buffers.push(self.data.clone().into());
        (make.strings)(Strings {
            views: self.views.clone().into(),
            buffers,
            nulls: self.validity.finish_cloned(),
        })
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
    pub(crate) fn push(&mut self, found: Option<&Found<'_, '_>>) -> Result<(), ArrowError> {
        fn number<T: ArrowPrimitiveType>(builder: &mut PrimitiveBuilder<T>, found: Option<&Found<'_, '_>>)
        where
            T::Native: TryFrom<u64>,
        {
            let number = found.and_then(Found::number);
            builder.append_option(number.and_then(|number| number.try_into().ok()));
        }
        match self {
            FieldBuilder::Time(builder) => builder.append_option(found.and_then(Found::nanos)),
            FieldBuilder::UInt8(builder) => number(builder, found),
            FieldBuilder::UInt16(builder) => number(builder, found),
            FieldBuilder::UInt32(builder) => number(builder, found),
            FieldBuilder::UInt64(builder) => number(builder, found),
            FieldBuilder::Text(builder) => builder.push_text(found),
            FieldBuilder::Name(builder) => builder.push(found),
            FieldBuilder::Uuid(builder) => builder.push(found.and_then(Found::uuid))?,
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
    /// that stands in for the time of a record, by its number, if nothing of that can be read.
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
                let hole = at.hole(fields);
                match hole.and_then(|(hole, values)| values.fixed(hole, Scalar::FileTime)) {
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
                    builder.push(match at.hole(fields) {
                        Some((hole, values)) if values.is_null(hole) => None,
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

    /// As [`push`](Self::push), for the types that only fields of events have. Apart, as code that is not run slows that down which
    /// is.
    #[cold]
    fn push_field(&mut self, found: Option<&Found<'_, '_>>) -> Result<(), ArrowError> {
        fn integer<T: ArrowPrimitiveType>(builder: &mut PrimitiveBuilder<T>, found: Option<&Found<'_, '_>>)
        where
            T::Native: TryFrom<i128>,
        {
            let number = found.and_then(Found::integer);
            builder.append_option(number.and_then(|number| number.try_into().ok()));
        }
        match self {
            FieldBuilder::Int8(builder) => integer(builder, found),
            FieldBuilder::Int16(builder) => integer(builder, found),
            FieldBuilder::Int32(builder) => integer(builder, found),
            FieldBuilder::Int64(builder) => integer(builder, found),
            FieldBuilder::Int128(builder) => {
                builder.push(found.and_then(Found::integer).map(i128::to_le_bytes))?;
            }
            FieldBuilder::Float32(builder) => {
                builder.append_option(found.and_then(Found::float).map(|float| float as f32));
            }
            FieldBuilder::Float64(builder) => builder.append_option(found.and_then(Found::float)),
            FieldBuilder::Bool(builder) => builder.append_option(found.and_then(Found::bool)),
            FieldBuilder::Bytes(builder) => builder.append_option(found.and_then(Found::bytes)),
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

/// Any column.
#[derive(Debug)]
pub(crate) enum ColumnBuilder {
    RecordId(PrimitiveBuilder<UInt64Type>),
    /// With the number of its place in the plan's target.
    Field(usize, FieldBuilder),
    EventData(MapBuilder),
    /// With the number of its key in the plan's target.
    Entry(usize, EntryBuilder),
    /// The text of an event or of an element in it.
    Rendered(Rendering, TextBuilder),
    Error(TextBuilder),
    FileName,
    ChunkIndex(PrimitiveBuilder<UInt32Type>),
    RecordOffset(PrimitiveBuilder<UInt64Type>),
    Recovered(BooleanBuilder),
}

impl ColumnBuilder {
    /// Whether the column's rows take as many bytes as their text.
    pub(crate) fn is_text(&self) -> bool {
        matches!(
            self,
            ColumnBuilder::Field(_, FieldBuilder::Text(_) | FieldBuilder::Name(_))
                | ColumnBuilder::EventData(_)
                | ColumnBuilder::Entry(..)
                | ColumnBuilder::Rendered(..)
                | ColumnBuilder::Error(_)
        )
    }

    /// Bytes that the builder holds beside fixed ones for each row.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            ColumnBuilder::Field(_, builder) => builder.bytes(),
            ColumnBuilder::EventData(builder) => builder.bytes(),
            ColumnBuilder::Entry(_, builder) => builder.bytes(),
            ColumnBuilder::Rendered(_, builder) => builder.bytes(),
            ColumnBuilder::Error(builder) => builder.bytes(),
            _ => 0,
        }
    }

    /// Ends the batch of `rows` rows, all of one file.
    pub(crate) fn finish(&mut self, rows: usize, filename: &str, make: MakeArrays) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            ColumnBuilder::RecordId(builder) => finish_primitive(builder),
            ColumnBuilder::Field(_, builder) => builder.finish(make)?,
            ColumnBuilder::EventData(builder) => Arc::new(builder.finish(make)?),
            ColumnBuilder::Entry(_, builder) => builder.finish(make)?,
            ColumnBuilder::Rendered(_, builder) => Arc::new(builder.finish(make)?),
            ColumnBuilder::Error(builder) => Arc::new(builder.finish(make)?),
            ColumnBuilder::FileName => {
                let names = Arc::new(StringArray::from_iter_values([filename]));
                Arc::new((make.dictionary)(Numbers::new(vec![0; rows].into(), names))?)
            }
            ColumnBuilder::ChunkIndex(builder) => finish_primitive(builder),
            ColumnBuilder::RecordOffset(builder) => finish_primitive(builder),
            ColumnBuilder::Recovered(builder) => Arc::new(builder.finish()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::builder::make_view;

    #[test]
    fn views_are_those_that_arrow_makes() {
        let text: Vec<u8> = (b'a'..=b'z').collect();
        for len in 0..=text.len() {
            assert_eq!(view(&text[..len], 5, 77), make_view(&text[..len], 5, 77), "{len}");
        }
    }

    #[test]
    fn text_that_no_offset_reaches_goes_to_the_next_buffer() {
        let mut builder = TextBuilder::new();
        // Some that fill a buffer to its end, some that do not fit behind others, one that fits nowhere.
        let lens = [
            MAX_BUFFER - 20,
            20,
            20,
            3,
            MAX_BUFFER,
            13,
            0,
            MAX_BUFFER + 1,
            40,
            MAX_BUFFER - 40,
            13,
        ];
        for (number, len) in lens.into_iter().enumerate() {
            builder.push(MAX_TEXT, |out| out.resize(out.len() + len, b'a' + number as u8));
        }
        let (bytes, cloned) = (
            builder.bytes(),
            builder.finish_cloned(MakeArrays::CHECKED).expect("an array"),
        );
        let array = builder.finish(MakeArrays::CHECKED).expect("an array");
        assert_eq!(cloned, array);
        assert_eq!(array.data_buffers().len(), 5);
        assert!(array.data_buffers().iter().all(|buffer| buffer.len() <= MAX_BUFFER));
        let held: usize = array.data_buffers().iter().map(|buffer| buffer.len()).sum();
        assert_eq!(bytes, held + 16 * lens.len());
        for (number, len) in lens.into_iter().enumerate() {
            let text = array.is_valid(number).then(|| array.value(number));
            let pushed = String::from_utf8(vec![b'a' + number as u8; len]).expect("a text");
            assert_eq!(text, (len <= MAX_BUFFER).then_some(&*pushed), "{number}");
        }
        assert_eq!(builder.bytes(), 0);
    }
}
