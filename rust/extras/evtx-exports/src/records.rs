//! Where the records of an export end: lines, the rows of CSV, or the values in a document of JSON.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr_iter};

use crate::json::Json;

/// The most bytes of a record as UTF-8. One of a log has at most 64 KiB. DuckDB takes up to 150 bytes of memory for each byte
/// of a line, and does not look for an interrupt in between.
pub(crate) const MAX_LINE: usize = 2 << 20;

/// The lists of a document whose items are its events, by the names of the members that lead to them.
const LISTS: [&[&[u8]]; 2] = [&[b"hits", b"hits"], &[b"results"]];

/// The most bytes of a name that leads to a list.
const MAX_NAME: usize = 16;

/// The most values that are open at once. Deeper ones are not JSON for anybody.
const MAX_DEPTH: usize = 1 << 10;

/// How the records of a file follow each other.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    /// Each has a line of its own.
    Lines,
    /// They are rows of CSV: the separator, and the place in a row.
    Csv(u8, InRow),
    /// They are values in a document of JSON.
    Values(Document),
}

/// A place in a row of CSV.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum InRow {
    /// Where a value begins. Only here, a quote opens one.
    #[default]
    Start,
    Plain,
    Quoted,
    /// After a quote that closes a value, unless another one follows.
    Closed,
}

/// The values of a document that are its records: those in its lists of records, and those outside of any other value that
/// have no such list.
#[derive(Debug, Clone, Default)]
pub(crate) struct Document {
    walk: Walk,
    /// How many values are open around a record.
    depth: usize,
    /// Whether the list of records that was around the last one has ended, and the value around it has not.
    is_after: bool,
    is_record: bool,
}

/// What is open in a document.
#[derive(Debug, Clone, Default)]
struct Walk {
    /// Each open value: whether it is a list, and the name of the member that is read.
    open: Vec<(bool, Vec<u8>)>,
    is_text: bool,
    is_escape: bool,
    /// Whether a bracket closed what is not open.
    is_odd: bool,
    /// The start of the last text.
    text: Vec<u8>,
}

/// Finds the records in the bytes of a file, which come piece by piece.
#[derive(Debug, Clone)]
pub(crate) struct Cutter {
    shape: Shape,
    /// How many of the bytes were looked at.
    seen: usize,
    /// Where the record starts that has not ended.
    start: usize,
}

impl Cutter {
    pub(crate) fn new(shape: Shape) -> Self {
        let (seen, start) = (0, 0);
        Cutter { shape, seen, start }
    }

    /// The shape of a file of JSON that starts with these bytes.
    pub(crate) fn of_json(bytes: &[u8]) -> Self {
        let text = bytes.trim_ascii_start();
        let line = &text[..memchr(b'\n', text).unwrap_or(text.len())];
        let mut walk = Walk::default();
        // The list of records is in the first value, if there is one.
        let mut has_list = false;
        for &byte in text {
            walk.step(byte);
            has_list = walk.is_list_of_records();
            if has_list || walk.open.is_empty() {
                break;
            }
        }
        // Lists, or objects over several lines.
        Cutter::new(match has_list || line.trim_ascii_end() == b"{" {
            true => Shape::Values(Document::default()),
            false => Shape::Lines,
        })
    }

    /// The next records in the bytes that are not forgotten. `is_last` says that there are no more.
    ///
    /// # Errors
    /// The place of the first bracket that closes what is not open, after which events can be missing.
    pub(crate) fn records(&mut self, bytes: &[u8], is_last: bool) -> Vec<Result<Range<usize>, usize>> {
        let mut found = Vec::new();
        let up_to = |start: &mut usize, end| Ok(std::mem::replace(start, end)..end);
        let new = bytes.iter().copied().enumerate().skip(self.seen);
        match &mut self.shape {
            Shape::Lines => {
                let ends = memchr_iter(b'\n', &bytes[self.seen..]).map(|at| self.seen + at + 1);
                found.extend(ends.map(|end| up_to(&mut self.start, end)));
            }
            Shape::Csv(separator, place) => {
                for (at, byte) in new {
                    *place = match (*place, byte) {
                        (InRow::Quoted, b'"') => InRow::Closed,
                        (InRow::Quoted, _) | (InRow::Start | InRow::Closed, b'"') => InRow::Quoted,
                        (_, b'\n') => {
                            found.push(up_to(&mut self.start, at + 1));
                            InRow::Start
                        }
                        (_, byte) if byte == *separator => InRow::Start,
                        _ => InRow::Plain,
                    };
                }
            }
            Shape::Values(document) => {
                for (at, byte) in new {
                    let (was_record, was_odd) = (document.is_record, document.walk.is_odd);
                    let is_end = document.step(byte);
                    if document.is_record && !was_record {
                        self.start = at;
                    }
                    found.extend(is_end.map(|len| up_to(&mut self.start, at + len)));
                    if document.walk.is_odd && !was_odd {
                        found.push(Err(at));
                    }
                }
            }
        }
        self.seen = bytes.len();
        if is_last && self.is_open() && self.start < bytes.len() {
            found.push(up_to(&mut self.start, bytes.len()));
        }
        found
    }

    /// Whether a record has begun, and has not ended.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(&self.shape, Shape::Values(document) if !document.is_record)
    }

    /// Whether a list of records has begun, and has not ended.
    pub(crate) fn is_in_list(&self) -> bool {
        matches!(&self.shape, Shape::Values(document) if !document.walk.open.is_empty())
    }

    /// How many bytes are not needed any more.
    pub(crate) fn passed(&self) -> usize {
        if self.is_open() { self.start } else { self.seen }
    }

    /// Forgets the first bytes.
    pub(crate) fn forget(&mut self, len: usize) {
        self.seen -= len;
        self.start = self.start.saturating_sub(len);
    }

    /// Gives up a record that is too long. One of CSV ends with its line: the end of its quotes can be lost.
    pub(crate) fn give_up(&mut self) {
        if let Shape::Csv(_, place) = &mut self.shape {
            *place = InRow::Plain;
        }
    }
}

impl Document {
    /// Takes the next byte. If a record ends, returns whether the byte is still of it, as 1 or 0.
    fn step(&mut self, byte: u8) -> Option<usize> {
        let was_open = self.walk.open.len();
        let is_around = was_open == self.depth && !self.walk.is_text && !self.is_after;
        self.walk.step(byte);
        let is_open = self.walk.open.len();
        if was_open < is_open && (self.depth == 0 || self.is_after) && self.walk.is_list_of_records() {
            // What began outside is not a record: it has a list of them.
            (self.depth, self.is_after, self.is_record) = (is_open, false, false);
            return None;
        }
        self.is_after |= is_open < self.depth;
        // A list or an object ends with its bracket, another value before what comes next.
        let is_between = matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',' | b']' | b'}');
        let is_end = self.is_record && was_open == self.depth + 1 && is_open == self.depth;
        let is_before = self.is_record && is_around && is_between;
        self.is_record = !is_end && (self.is_record && !is_before || is_around && !is_between);
        if is_open == 0 {
            (self.depth, self.is_after) = (0, false);
        }
        (is_end || is_before).then_some(usize::from(is_end))
    }
}

impl Walk {
    /// Whether the innermost open value is a list of records.
    fn is_list_of_records(&self) -> bool {
        let Some(((true, _), around)) = self.open.split_last() else {
            return false;
        };
        let names = || around.iter().map(|(_, name)| &name[..]);
        around.is_empty() || LISTS.iter().any(|path| names().eq(path.iter().copied()))
    }

    fn step(&mut self, byte: u8) {
        match byte {
            _ if self.is_escape => self.is_escape = false,
            b'\\' if self.is_text => self.is_escape = true,
            b'"' if self.is_text => self.is_text = false,
            _ if self.is_text && self.text.len() > MAX_NAME => {}
            _ if self.is_text => self.text.push(byte),
            b'"' => {
                self.is_text = true;
                self.text.clear();
            }
            b':' => {
                if let Some((false, name)) = self.open.last_mut() {
                    name.clone_from(&self.text);
                }
            }
            b'{' | b'[' if self.open.len() < MAX_DEPTH => self.open.push((byte == b'[', Vec::new())),
            b'}' | b']' => match self.open.last() {
                Some((is_list, _)) if *is_list == (byte == b']') => _ = self.open.pop(),
                _ => self.is_odd = true,
            },
            _ => {}
        }
    }
}

/// A table of CSV, whose rows are records.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) separator: u8,
    pub(crate) header: Vec<String>,
}

pub(crate) fn too_long() -> String {
    format!("it has more than {} MiB", MAX_LINE >> 20)
}

/// Reads a record, which is a row of a table or JSON.
///
/// # Errors
/// Why that is not possible.
pub(crate) fn read_record<'t>(record: &'t [u8], table: Option<&'t Table>) -> Result<Json<'t>, String> {
    let record = record.trim_ascii();
    if record.len() > MAX_LINE {
        return Err(too_long());
    }
    let text =
        str::from_utf8(record).map_err(|error| format!("it is not UTF-8 after {} bytes", error.valid_up_to()))?;
    match table {
        Some(table) => table.row(text),
        None => Json::read(text),
    }
}

impl Table {
    /// A row as an object. If it is of Event Viewer, whose header names five of six values, its names are numbers.
    fn row<'t>(&'t self, row: &str) -> Result<Json<'t>, String> {
        const NUMBERS: [&str; 6] = ["1", "2", "3", "4", "5", "6"];
        let (cells, known) = (cells(row, self.separator)?, self.header.len());
        let mut names: Vec<&str> = self.header.iter().map(String::as_str).collect();
        if known == 5 && cells.len() == 6 && has_date(&cells[1]) {
            names = NUMBERS.into();
        }
        if cells.len() != names.len() {
            return Err(format!("it has {} values, and the header has {known}", cells.len()));
        }
        let texts = cells.into_iter().map(|cell| Json::Text(cell.replace('\0', "").into()));
        Ok(Json::Object(names.into_iter().map(Cow::Borrowed).zip(texts).collect()))
    }
}

/// Whether a text starts with a date in digits.
fn has_date(text: &str) -> bool {
    let after = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    (1..=4).contains(&(text.len() - after.len())) && after.starts_with(['-', '/', '.'])
}

/// The values of a row of CSV.
///
/// # Errors
/// What is wrong with its quotes.
pub(crate) fn cells(row: &str, separator: u8) -> Result<Vec<String>, String> {
    let row = row.strip_suffix('\n').unwrap_or(row);
    let mut rest = row.strip_suffix('\r').unwrap_or(row);
    let mut found = Vec::new();
    loop {
        let mut cell = String::new();
        if let Some(quoted) = rest.strip_prefix('"') {
            rest = quoted;
            loop {
                let (text, after) = rest.split_once('"').ok_or("the quotes of a value do not end")?;
                cell += text;
                rest = after;
                // Two quotes in quotes are one.
                let Some(after) = rest.strip_prefix('"') else { break };
                cell.push('"');
                rest = after;
            }
        } else {
            let end = memchr(separator, rest.as_bytes()).unwrap_or(rest.len());
            cell += &rest[..end];
            rest = &rest[end..];
        }
        found.push(cell);
        match rest.as_bytes().first() {
            None => return Ok(found),
            Some(&byte) if byte == separator => rest = &rest[1..],
            Some(_) => return Err(format!("text follows the quotes of value {}", found.len())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The records of a text that comes in pieces of so many bytes.
    fn records(text: &str, cutter: &Cutter, piece: usize) -> Vec<String> {
        let (mut cutter, mut rest, mut found) = (cutter.clone(), Vec::new(), Vec::new());
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(piece).collect();
        for (nth, bytes) in pieces.iter().enumerate() {
            rest.extend_from_slice(bytes);
            let records = cutter.records(&rest, nth + 1 == pieces.len());
            for record in records.into_iter().flatten() {
                found.push(String::from_utf8_lossy(&rest[record]).trim().to_owned());
            }
            let passed = cutter.passed();
            rest.drain(..passed);
            cutter.forget(passed);
        }
        found.retain(|record| !record.is_empty());
        found
    }

    #[test]
    fn records_are_the_same_in_pieces_of_any_size() {
        let csv = Cutter::new(Shape::Csv(b',', InRow::Start));
        let of_json = |text: &str| Cutter::of_json(text.as_bytes());
        for (text, cutter, expected) in [
            ("{\"a\": 1}\n\n[2]\nx\n{", None, vec!["{\"a\": 1}", "[2]", "x", "{"]),
            (
                " [{\"a\": [1, {}]}, 2,\"]\\\"\" , {}]\n",
                None,
                vec!["{\"a\": [1, {}]}", "2", "\"]\\\"\"", "{}"],
            ),
            (
                "{\n \"a\": {\"b\": 1}\n}\n{\n}",
                None,
                vec!["{\n \"a\": {\"b\": 1}\n}", "{\n}"],
            ),
            (
                "{\"x\": [{\"y\": 1}], \"hits\": {\"hits\": [{\"z\": {\"hits\": []}},{}], \"a\": [3]}, \"b\": [4]}",
                None,
                vec!["{\"z\": {\"hits\": []}}", "{}"],
            ),
            ("{\"results\": []}\n{\"results\": [5]}", None, vec!["5"]),
            ("[]\n{\"a\": 1}\n{\"b\": [2]}", None, vec!["{\"a\": 1}", "{\"b\": [2]}"]),
            ("{\"hits\": {\"hits\": []}}\n{\"a\": 1}", None, vec!["{\"a\": 1}"]),
            (
                "[{\"a\": 1}]garbage {}\n[3]",
                None,
                vec!["{\"a\": 1}", "garbage", "{}", "3"],
            ),
            ("[{}}, {\"a\": 1}, 2]", None, vec!["{}", "{\"a\": 1}", "2"]),
            (
                "1,5\" a\n2,\"x\"y\"\n3,x",
                Some(&csv),
                vec!["1,5\" a", "2,\"x\"y\"", "3,x"],
            ),
            ("a,\"b\nc\"\"\n\"\r\nd\n", Some(&csv), vec!["a,\"b\nc\"\"\n\"", "d"]),
            ("[{\"a\": 1}, {\"b\": ", None, vec!["{\"a\": 1}", "{\"b\":"]),
        ] {
            let cutter = cutter.cloned().unwrap_or_else(|| of_json(text));
            for piece in 1..=text.len() {
                assert_eq!(records(text, &cutter, piece), expected, "{text} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn cells_of_csv_can_be_quoted() {
        let texts = |row: &[&str]| Ok(row.iter().map(|&text| text.to_owned()).collect());
        let quoted = cells("a,\"b,\"\"c\"\"\",,\"\"\r\n", b',');
        assert_eq!(quoted, texts(&["a", "b,\"c\"", "", ""]));
        assert_eq!(cells("a;\"b\nc\"", b';'), texts(&["a", "b\nc"]));
        assert_eq!(cells("5\" disk,\"\"\"\"", b','), texts(&["5\" disk", "\""]));
        for row in ["\"x\"y\"", "1,\"x"] {
            assert!(cells(row, b',').is_err(), "{row}");
        }
        let table = |header: &[&str]| Table {
            separator: b',',
            header: header.iter().map(|&name| name.to_owned()).collect(),
        };
        let row = |table: &Table, text| table.row(text).map(|row| row.to_string());
        assert_eq!(
            row(&table(&["x", "y"]), "1,\"\0\"").as_deref(),
            Ok("{\"x\":\"1\",\"y\":\"\"}")
        );
        let table = table(&["a", "b", "c", "d", "e"]);
        let of_viewer = row(&table, "1,5/3/2024 8:58,3,4,5,6");
        assert!(of_viewer.is_ok_and(|json| json.contains("\"6\":\"6\"")));
        for text in ["1,2,3,4,5,6", "1", "1,2,3,4,5,6,7"] {
            assert!(row(&table, text).is_err(), "{text}");
        }
    }
}
