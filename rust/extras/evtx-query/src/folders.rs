//! Columns from folders named `key=value`, as in data that Hive has partitioned.

use std::collections::HashSet;

use arrow_schema::{DataType, TimeUnit};
use evtx_arrow::{Comparison, Expression, Literal};
use evtx_format::Interrupt;
use evtx_scan::{ScanError, ScanPath};
use jiff::civil::{Date, DateTime};

/// The folder name for NULL.
const NULL_PARTITION: &str = "__HIVE_DEFAULT_PARTITION__";

/// The type of times without a time zone, to microseconds.
const TIMES: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// A column of folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderColumn {
    /// The key.
    pub name: String,
    /// The first of these types that shows every value exactly as the folders write it: dates, as `2024-03-05`; times to
    /// microseconds, as `2024-03-05 08:44:52.9`; signed 64-bit integers, as `-42`; text.
    pub value_type: DataType,
    /// By index of the file: the value, `None` for NULL.
    pub values: Vec<Option<String>>,
}

/// A condition that the folders of a file decide: a column of folders equals one of some constants.
#[derive(Debug)]
pub(crate) struct FolderPredicate {
    /// The index of the column among those of folders.
    column: usize,
    /// The constants, as the column's type shows them.
    constants: HashSet<String>,
}

impl FolderPredicate {
    /// Converts a condition, if it is such a predicate. The columns of folders follow `columns` others.
    pub(crate) fn of(condition: &Expression, columns: usize) -> Option<Self> {
        let (column, constants) = match condition {
            Expression::Compare(Comparison::Equal, sides) => (&sides[0], std::slice::from_ref(&sides[1])),
            Expression::In(column, constants) => (&**column, &constants[..]),
            _ => return None,
        };
        let Expression::Column(column) = column else {
            return None;
        };
        let text = |constant: &Expression| match constant {
            Expression::Constant(Literal::Text(text)) => Some(text.to_string()),
            Expression::Constant(Literal::Integer(number)) => Some(number.to_string()),
            _ => None,
        };
        Some(FolderPredicate {
            column: column.checked_sub(columns)?,
            constants: constants.iter().map(text).collect::<Option<_>>()?,
        })
    }

    /// Whether the rows of a file may fulfil it. NULL equals nothing.
    pub(crate) fn keeps(&self, folders: &[FolderColumn], file: usize) -> bool {
        let Some(column) = folders.get(self.column) else {
            return true;
        };
        let value = column.values.get(file).and_then(Option::as_deref);
        value.is_some_and(|value| self.constants.contains(value))
    }
}

/// The columns of the folders of some files.
///
/// # Errors
/// [`ScanError::Input`] if the files do not all have the same keys in the same order, and [`ScanError::Interrupted`].
pub(crate) fn folder_columns(paths: &[ScanPath], interrupt: Interrupt<'_>) -> Result<Vec<FolderColumn>, ScanError> {
    let mut columns: Vec<FolderColumn> = Vec::new();
    for (i, path) in paths.iter().enumerate() {
        interrupt.check()?;
        let pairs = pairs(&path.path);
        if i == 0 {
            columns.extend(pairs.iter().map(|(key, _)| FolderColumn {
                name: key.clone(),
                value_type: DataType::Utf8,
                values: Vec::new(),
            }));
        }
        let keys = pairs.iter().map(|(key, _)| key);
        if !keys.eq(columns.iter().map(|column| &column.name)) {
            let (one, other) = (&paths[0].path, &path.path);
            let text = format!("The folders of \"{one}\" and \"{other}\" have different keys");
            return Err(ScanError::Input(text));
        }
        for (column, (_, value)) in columns.iter_mut().zip(pairs) {
            column.values.push((value != NULL_PARTITION).then_some(value));
        }
    }
    for column in &mut columns {
        let all = |wanted: &DataType| column.values.iter().flatten().all(|value| is_of(wanted, value));
        let found = [DataType::Date32, TIMES, DataType::Int64].into_iter().find(all);
        column.value_type = found.unwrap_or(DataType::Utf8);
    }
    Ok(columns)
}

/// Whether a type shows the value of a text exactly as the text.
fn is_of(wanted: &DataType, text: &str) -> bool {
    match wanted {
        // Engines show years before 1 in other ways, such as 0001 (BC).
        DataType::Date32 => text
            .parse::<Date>()
            .is_ok_and(|date| date.year() > 0 && date.to_string() == text),
        DataType::Timestamp(..) => text.parse::<DateTime>().is_ok_and(|time| {
            let shown = time.strftime("%Y-%m-%d %H:%M:%S%.f").to_string();
            shown == text && time.year() > 0 && time.subsec_nanosecond() % 1000 == 0
        }),
        DataType::Int64 => text.parse::<i64>().is_ok_and(|number| number.to_string() == text),
        _ => true,
    }
}

/// The keys and values of the folders in a path.
fn pairs(path: &str) -> Vec<(String, String)> {
    let folders = path.rsplit_once(['/', '\\']).map_or("", |(folders, _)| folders);
    let pairs = folders.split(['/', '\\']).filter_map(|folder| folder.split_once('='));
    let named = pairs.filter(|(key, _)| !key.is_empty());
    named.map(|(key, value)| (unescape(key), unescape(value))).collect()
}

/// Replaces each `%XX` by the byte with that hexadecimal number.
fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let digit = |at: usize| bytes.get(at).and_then(|&byte| char::from(byte).to_digit(16));
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while let Some(&byte) = bytes.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((16 * high + low) as u8);
                at += 3;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(paths: &[&str]) -> Result<Vec<FolderColumn>, ScanError> {
        let paths: Vec<_> = paths.iter().map(|path| ScanPath::named(path)).collect();
        folder_columns(&paths, Interrupt::NEVER)
    }

    #[test]
    fn equality_with_constants_keeps_the_folders_that_have_one() {
        let folders = columns(&["a/n=1/x", "a/n=2/x", "a/n=__HIVE_DEFAULT_PARTITION__/x"]).expect("columns");
        let (column, one) = (|index| Expression::Column(index), Literal::Integer(1));
        let kept = |condition: &Expression| {
            let predicate = FolderPredicate::of(condition, 25)?;
            Some([0, 1, 2].map(|file| predicate.keeps(&folders, file)))
        };
        let equal = |index, literal| Expression::compare(index, Comparison::Equal, literal);
        assert_eq!(kept(&equal(25, one.clone())), Some([true, false, false]));
        assert_eq!(kept(&equal(25, Literal::Text("2".into()))), Some([false, true, false]));
        let constants = [one.clone(), Literal::Integer(7)].map(Expression::Constant);
        let either = Expression::In(Box::new(column(25)), constants.into());
        assert_eq!(kept(&either), Some([true, false, false]));
        assert_eq!(kept(&equal(24, one.clone())), None, "a column of the log");
        assert_eq!(kept(&equal(26, one.clone())), Some([true; 3]), "no such column");
        assert_eq!(kept(&Expression::compare(25, Comparison::Less, one)), None);
        assert_eq!(kept(&Expression::In(Box::new(column(25)), vec![column(0)])), None);
    }

    fn type_of(values: &[&str]) -> DataType {
        let paths: Vec<_> = values.iter().map(|value| format!("a/k={value}/x.evtx")).collect();
        let paths: Vec<_> = paths.iter().map(String::as_str).collect();
        columns(&paths).expect("columns")[0].value_type.clone()
    }

    #[test]
    fn a_type_shows_all_values_as_they_are() {
        use DataType::{Date32, Int64, Utf8};
        assert_eq!(type_of(&["2024-01-01", "2024-02-29"]), Date32);
        assert_eq!(type_of(&["2024-02-30"]), Utf8);
        assert_eq!(type_of(&["2024-01-01 13:37:00", "2024-01-01 15:00:00.25"]), TIMES);
        assert_eq!(type_of(&["2024-01-01 13:37:00.2500"]), Utf8);
        assert_eq!(type_of(&["2024-01-01 13:37:00.1234567"]), Utf8);
        assert_eq!(type_of(&["1", "-2", "__HIVE_DEFAULT_PARTITION__"]), Int64);
        assert_eq!(type_of(&["0001-01-01"]), Date32);
        for text in ["0000-01-01", "-000001-01-01", "0000-01-01 10:00:00"] {
            assert_eq!(type_of(&[text]), Utf8, "{text}");
        }
        for value in ["1.5", "00042", "1e3", "1_000", "+1", "", "9223372036854775808"] {
            assert_eq!(type_of(&["1", value]), Utf8, "{value}");
        }
    }

    #[test]
    fn keys_and_values_are_those_of_the_folders() {
        let found = columns(&[
            "host=DC%2001/day=1/x=y.evtx",
            "host=b%zz\\day=__HIVE_DEFAULT_PARTITION__\\l.evtx",
        ]);
        let found = found.expect("columns");
        let names: Vec<_> = found.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["host", "day"]);
        assert_eq!(found[0].values, [Some("DC 01".to_owned()), Some("b%zz".to_owned())]);
        assert_eq!(found[1].values, [Some("1".to_owned()), None]);
        assert_eq!(columns(&["a/=b/log.evtx"]).expect("no columns"), []);
        let error = columns(&["host=a/1.evtx", "name=b/2.evtx"]).expect_err("other keys");
        assert!(
            error
                .to_string()
                .contains("\"host=a/1.evtx\" and \"name=b/2.evtx\" have different keys")
        );
    }
}
