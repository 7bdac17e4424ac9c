//! Values of Rust in the rows of vectors: how they are read, and the arrays that are made of them.
//!
//! `columns!` and `members!` list the members of a struct once. Their types are those of the Rust struct.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::types::{Int32Type, TimestampNanosecondType, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeBinaryArray, ListArray, MapArray, PrimitiveArray, StringViewArray,
    StructArray,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field};
use evtx_codes::{LogonAct, LogonKind};
use evtx_events::Evidence;
use evtx_format::Interrupt;

use crate::boundary::EvtxError;
use crate::scalar::{EvtxVector, Pairs};

/// A value of a column. An `i64` is a time in nanoseconds, and an `i128` a HUGEINT.
pub(crate) trait Value {
    /// An array of some values; `None` for NULL. Texts are views, as the writers of vectors need them.
    fn array(values: &[Option<&Self>]) -> ArrayRef;
}

/// A value that is read from vectors that live as long as `'a`.
pub(crate) trait Read<'a>: Sized {
    /// How many vectors it is read from: its own, and those of its items or members.
    fn vectors() -> usize {
        1
    }

    /// The value in a row; `None` for NULL.
    ///
    /// # Safety
    /// The vectors are those of a column of the type.
    unsafe fn read(from: Row<'_>) -> Result<Option<Self>, EvtxError>;

    /// The value that is read in place of NULL. If there is none, a struct with such a member is not read at all.
    fn for_null() -> Option<Self> {
        None
    }
}

/// A row of vectors that follow each other.
#[derive(Clone, Copy)]
pub(crate) struct Row<'v> {
    vectors: &'v [EvtxVector],
    row: usize,
    interrupt: Interrupt<'v>,
}

impl<'v> Row<'v> {
    /// The rows of vectors.
    pub(crate) fn all(vectors: &'v [EvtxVector], interrupt: Interrupt<'v>) -> impl Iterator<Item = Row<'v>> {
        let rows = 0..vectors.first().map_or(0, |first| first.rows);
        rows.map(move |row| Row {
            vectors,
            row,
            interrupt,
        })
    }

    /// The vectors of the members of a struct, which follow its own.
    pub(crate) fn members(self) -> Self {
        let vectors = self.vectors.get(1..).unwrap_or_default();
        Row { vectors, ..self }
    }

    /// Takes the next value; `None` if it is NULL, and nothing stands for it.
    ///
    /// # Safety
    /// As for [`Read::read`].
    pub(crate) unsafe fn next<'a, T: Read<'a>>(&mut self) -> Result<Option<T>, EvtxError> {
        let (vectors, rest) = self
            .vectors
            .split_at_checked(T::vectors())
            .ok_or("an argument is missing")?;
        self.vectors = rest;
        // SAFETY: by the contract of this function.
        Ok(unsafe { T::read(Row { vectors, ..*self }) }?.or_else(T::for_null))
    }
}

/// Reads values of a type that vectors hold as Rust does, with the value that is read in place of NULL.
macro_rules! plain {
    ($type:ty, $null:expr, $from:ident => $value:expr) => {
        impl Read<'_> for $type {
            unsafe fn read($from: Row<'_>) -> Result<Option<Self>, EvtxError> {
                // SAFETY: by the contract of this function.
                Ok(unsafe { $value })
            }

            fn for_null() -> Option<Self> {
                $null
            }
        }
    };
}

/// Numbers that DuckDB has as Arrow has them.
macro_rules! numbers {
    ($null:expr, $($type:ty: $arrow:ty),+) => {$(
        impl Value for $type {
            fn array(values: &[Option<&Self>]) -> ArrayRef {
                Arc::new(PrimitiveArray::<$arrow>::from_iter(values.iter().map(|value| value.copied())))
            }
        }
        plain!($type, $null, from => from.vectors[0].value(from.row));
    )+};
}

numbers!(Some(0), u8: UInt8Type, u32: UInt32Type, u64: UInt64Type, i32: Int32Type);
numbers!(None, i64: TimestampNanosecondType);
plain!(i128, Some(0), from => from.vectors[0].value(from.row));
plain!(bool, Some(false), from => from.vectors[0].value(from.row).map(|value: u8| value == 1));

impl Value for i128 {
    fn array(values: &[Option<&Self>]) -> ArrayRef {
        let numbers: Vec<i128> = values.iter().map(|value| value.copied().unwrap_or_default()).collect();
        Arc::new(FixedSizeBinaryArray::new(16, Buffer::from_vec(numbers), valid(values)))
    }
}

impl Value for bool {
    fn array(values: &[Option<&Self>]) -> ArrayRef {
        Arc::new(BooleanArray::from_iter(values.iter().map(|value| value.copied())))
    }
}

/// Values that are texts.
macro_rules! texts {
    ($($type:ty: $text:expr),+) => {$(
        impl Value for $type {
            fn array(values: &[Option<&Self>]) -> ArrayRef {
                Arc::new(StringViewArray::from_iter(values.iter().map(|value| value.map($text))))
            }
        }
    )+};
}

texts!(&str: |text| *text, String: |text| &**text, Cow<'_, str>: |text| &**text);
texts!(LogonKind: |kind| kind.name(), LogonAct: |act| act.name(), Evidence: |evidence| evidence.name());

/// Values that are read from texts.
macro_rules! of_texts {
    ($($type:ty: $of:expr),+) => {$(
        impl<'a> Read<'a> for $type {
            unsafe fn read(from: Row<'_>) -> Result<Option<Self>, EvtxError> {
                // SAFETY: by the contract of this function.
                Ok(unsafe { from.vectors[0].text(from.row)? }.and_then($of))
            }
        }
    )+};
}

of_texts!(&'a str: Some, Cow<'a, str>: |text| Some(Cow::Borrowed(text)), String: |text| Some(text.to_owned()));
of_texts!(LogonKind: LogonKind::named, LogonAct: LogonAct::named, Evidence: Evidence::named);

impl<'a> Read<'a> for &'a [u8] {
    unsafe fn read(from: Row<'_>) -> Result<Option<Self>, EvtxError> {
        // SAFETY: by the contract of this function.
        Ok(unsafe { from.vectors[0].bytes(from.row) })
    }
}

impl<T: Value> Value for Option<T> {
    fn array(values: &[Option<&Self>]) -> ArrayRef {
        column(values, Option::as_ref)
    }
}

impl<'a, T: Read<'a>> Read<'a> for Option<T> {
    fn vectors() -> usize {
        T::vectors()
    }

    unsafe fn read(from: Row<'_>) -> Result<Option<Self>, EvtxError> {
        // SAFETY: by the contract of this function.
        Ok(unsafe { T::read(from) }?.map(Some))
    }

    fn for_null() -> Option<Self> {
        Some(None)
    }
}

impl<T: Value> Value for Vec<T> {
    fn array(values: &[Option<&Self>]) -> ArrayRef {
        let items: Vec<_> = values.iter().flatten().copied().flatten().map(Some).collect();
        let lengths = values.iter().map(|items| items.map_or(0, Vec::len));
        list_array(T::array(&items), lengths, valid(values))
    }
}

/// A list. NULL stands for one without items, and items that are `None` are left out.
impl<'a, T: Read<'a>> Read<'a> for Vec<T> {
    fn vectors() -> usize {
        1 + T::vectors()
    }

    unsafe fn read(from: Row<'_>) -> Result<Option<Self>, EvtxError> {
        let [lists, vectors @ ..] = from.vectors else {
            return Ok(None);
        };
        // SAFETY: by the contract of this function.
        let items = unsafe { lists.items(from.row) };
        let mut all = Vec::with_capacity(items.len());
        for (step, row) in items.enumerate() {
            from.interrupt.check_step(step)?;
            // SAFETY: as above.
            all.extend(unsafe { Row { vectors, row, ..from }.next::<T>()? });
        }
        Ok(lists.is_valid(from.row).then_some(all))
    }

    fn for_null() -> Option<Self> {
        Some(Vec::new())
    }
}

/// Several members of one type, in columns that follow each other.
impl<'a, T: Read<'a>, const N: usize> Read<'a> for [Option<T>; N] {
    fn vectors() -> usize {
        N * T::vectors()
    }

    unsafe fn read(mut from: Row<'_>) -> Result<Option<Self>, EvtxError> {
        let mut all = [const { None }; N];
        for value in &mut all {
            // SAFETY: by the contract of this function.
            *value = unsafe { from.next::<Option<T>>()? }.flatten();
        }
        Ok(Some(all))
    }
}

/// The pairs of a map that have a key. NULL stands for one without pairs.
pub(crate) struct Map<'a>(pub(crate) Vec<(&'a str, Option<&'a str>)>);

impl<'a> Read<'a> for Map<'a> {
    fn vectors() -> usize {
        4
    }

    unsafe fn read(from: Row<'_>) -> Result<Option<Self>, EvtxError> {
        let maps = Pairs::new(from.vectors.try_into().map_err(|_| "an argument is not a map")?);
        // SAFETY: by the contract of this function.
        let pairs = unsafe { maps.row(from.row) };
        let mut all = Vec::with_capacity(pairs.size_hint().1.unwrap_or_default());
        for pair in pairs {
            all.push(pair?);
        }
        Ok(maps.lists.is_valid(from.row).then_some(Map(all)))
    }

    fn for_null() -> Option<Self> {
        Some(Map(Vec::new()))
    }
}

/// A map.
impl Value for Vec<(String, Option<String>)> {
    fn array(values: &[Option<&Self>]) -> ArrayRef {
        let pairs: Vec<_> = values.iter().flatten().copied().flatten().map(Some).collect();
        let keys = column(&pairs, |(key, _)| Some(key));
        let texts = column(&pairs, |(_, text)| Some(text));
        let field = |name, of: &ArrayRef, is_nullable| Arc::new(Field::new(name, of.data_type().clone(), is_nullable));
        let entries = StructArray::from(vec![
            (field("key", &keys, false), keys),
            (field("value", &texts, true), texts),
        ]);
        let offsets = OffsetBuffer::from_lengths(values.iter().map(|pairs| pairs.map_or(0, Vec::len)));
        let field = Field::new("entries", entries.data_type().clone(), false).into();
        Arc::new(MapArray::new(field, offsets, entries, valid(values), false))
    }
}

/// Whether values are not NULL; `None` if all are.
fn valid<T>(values: &[Option<T>]) -> Option<NullBuffer> {
    let valid = NullBuffer::from_iter(values.iter().map(Option::is_some));
    Some(valid).filter(|valid| valid.null_count() > 0)
}

/// Lists of items, with so many in each row.
pub(crate) fn list_array(
    items: ArrayRef,
    lengths: impl IntoIterator<Item = usize>,
    nulls: Option<NullBuffer>,
) -> ArrayRef {
    let item = Field::new_list_field(items.data_type().clone(), true);
    let offsets = OffsetBuffer::from_lengths(lengths);
    Arc::new(ListArray::new(item.into(), offsets, items, nulls))
}

/// Structs with these columns.
pub(crate) fn struct_array<T>(columns: Vec<(&str, ArrayRef)>, values: &[Option<&T>]) -> ArrayRef {
    let of = |(name, column): (&str, ArrayRef)| (Field::new(name, column.data_type().clone(), true), column);
    let (fields, columns): (Vec<_>, Vec<_>) = columns.into_iter().map(of).unzip();
    Arc::new(StructArray::new(fields.into(), columns, valid(values)))
}

/// A column of values in others.
pub(crate) fn column<T, V: Value>(values: &[Option<&T>], member: impl Fn(&T) -> Option<&V>) -> ArrayRef {
    let members: Vec<_> = values.iter().map(|value| member((*value)?)).collect();
    V::array(&members)
}

/// A column of the results of an expression.
pub(crate) fn computed<'v, T, V: Value>(values: &[Option<&'v T>], of: impl Fn(&'v T) -> V) -> ArrayRef {
    let results: Vec<_> = values.iter().map(|value| value.map(&of)).collect();
    array(&results)
}

/// An array of values.
pub(crate) fn array<V: Value>(values: &[V]) -> ArrayRef {
    V::array(&values.iter().map(Some).collect::<Vec<_>>())
}

/// Makes a struct a [`Value`]: its columns have the names of its members, or the values of expressions.
macro_rules! columns {
    ($value:ident: $type:ty { $($name:ident $(= $of:expr)?),+ $(,)? }) => {
        impl $crate::rows::Value for $type {
            fn array(values: &[Option<&Self>]) -> arrow_array::ArrayRef {
                let columns = vec![$((stringify!($name), columns!(@ values, $value, $name $(= $of)?))),+];
                $crate::rows::struct_array(columns, values)
            }
        }
    };
    (@ $values:ident, $value:ident, $name:ident) => {
        $crate::rows::column($values, |$value: &Self| Some(&$value.$name))
    };
    (@ $values:ident, $value:ident, $name:ident = $of:expr) => {
        $crate::rows::computed($values, |$value: &Self| $of)
    };
}

/// The same for a struct that is also read. A member can be an array with a column for each item, whose names are in brackets.
macro_rules! members {
    ($type:ident<$a:lifetime> { $($member:ident $([$($name:ident),+])?),+ $(,)? }) => {
        impl $crate::rows::Value for $type<'_> {
            fn array(values: &[Option<&Self>]) -> arrow_array::ArrayRef {
                let mut columns = Vec::new();
                $(members!(@ columns, values, $member $([$($name),+])?);)+
                $crate::rows::struct_array(columns, values)
            }
        }

        impl<$a> $crate::rows::Read<$a> for $type<$a> {
            fn vectors() -> usize {
                fn of<'a, T, M: $crate::rows::Read<'a>>(_: impl Fn(&T) -> &M) -> usize {
                    M::vectors()
                }
                1 $(+ of(|value: &Self| &value.$member))+
            }

            unsafe fn read(from: $crate::rows::Row<'_>) -> Result<Option<Self>, $crate::boundary::EvtxError> {
                let mut members = from.members();
                $(
                    // SAFETY: by the contract of this function.
                    let Some($member) = (unsafe { members.next()? }) else { return Ok(None) };
                )+
                Ok(Some($type { $($member),+ }))
            }
        }
    };
    (@ $columns:ident, $values:ident, $member:ident) => {
        let column = $crate::rows::column($values, |value: &Self| Some(&value.$member));
        $columns.push((stringify!($member), column));
    };
    (@ $columns:ident, $values:ident, $member:ident [$($name:ident),+]) => {
        for (at, name) in [$(stringify!($name)),+].into_iter().enumerate() {
            $columns.push((name, $crate::rows::column($values, |value: &Self| Some(&value.$member[at]))));
        }
    };
}

/// Arguments that follow each other.
macro_rules! arguments {
    ($($name:ident),+) => {
        impl<'a, $($name: Read<'a>),+> Read<'a> for ($($name,)+) {
            fn vectors() -> usize {
                0 $(+ $name::vectors())+
            }

            #[allow(non_snake_case)] // the names are those of the types
            unsafe fn read(mut from: Row<'_>) -> Result<Option<Self>, EvtxError> {
                $(
                    // SAFETY: by the contract of this function.
                    let Some($name) = (unsafe { from.next()? }) else { return Ok(None) };
                )+
                Ok(Some(($($name,)+)))
            }
        }
    };
}

arguments!(A, B);
arguments!(A, B, C);
arguments!(A, B, C, D);

/// A parameter or a result of a type.
pub(crate) fn typed<T: Value>(name: &str) -> Field {
    Field::new(name, declared(T::array(&[]).data_type()), true)
}

/// A type without views, which only arrays have.
fn declared(of: &DataType) -> DataType {
    let field = |field: &Field| field.clone().with_data_type(declared(field.data_type()));
    match of {
        DataType::Utf8View => DataType::Utf8,
        DataType::List(item) => DataType::List(field(item).into()),
        DataType::Map(entries, is_sorted) => DataType::Map(field(entries).into(), *is_sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|of| field(of)).collect()),
        other => other.clone(),
    }
}

/// The answers of a function for the arguments in each row.
///
/// # Safety
/// The vectors are those of the parameters.
pub(crate) unsafe fn answers<'a, A: Read<'a>, T: Value, E: Into<EvtxError>>(
    vectors: &[EvtxVector],
    interrupt: Interrupt<'_>,
    mut answer: impl FnMut(A) -> Result<T, E>,
) -> Result<ArrayRef, EvtxError> {
    let mut answers = Vec::new();
    for (step, mut row) in Row::all(vectors, interrupt).enumerate() {
        interrupt.check_step(step)?;
        // SAFETY: by the contract of this function.
        let arguments = unsafe { row.next()? };
        answers.push(arguments.map(&mut answer).transpose().map_err(Into::into)?);
    }
    Ok(array(&answers))
}

/// Makes a function of the arguments in a row one of vectors.
macro_rules! by_row {
    ($of:path) => {{
        struct ByRow;
        impl $crate::scalar::Scalar for ByRow {
            unsafe fn call(
                &mut self,
                vectors: &[$crate::scalar::EvtxVector],
                caller: $crate::scalar::Caller<'_>,
            ) -> Result<arrow_array::ArrayRef, $crate::boundary::EvtxError> {
                // SAFETY: by the contract of this function.
                unsafe { $crate::rows::answers(vectors, caller.interrupt, |of| $of(of, caller.interrupt)) }
            }
        }
        Box::new(|| Box::new(ByRow))
    }};
}

pub(crate) use {by_row, columns, members};
