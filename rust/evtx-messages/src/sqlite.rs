//! Reads the tables of an SQLite database: no SQL, no indexes, no write-ahead log.
//!
//! Source: "Database File Format" of the SQLite project. Numbers are big endian. A page is a node of a B-tree or part of
//! a long row. Each page belongs to one tree, so a scan that sees more pages than the file has goes in a circle.

use std::collections::BTreeMap;

use evtx_format::Interrupt;

use crate::error::{Error, Result};

/// The longest row in bytes. Longer ones are skipped. *(choice)*
const MAX_ROW: usize = 4 << 20;
/// The columns of a row, at most: as SQLite's own default.
const MAX_COLUMNS: usize = 2000;
/// The depth of a tree, at most. SQLite's own limit.
const MAX_DEPTH: usize = 20;
/// The tables of a database, at most. *(choice)*
const MAX_TABLES: usize = 1000;

/// An open database.
#[derive(Debug)]
pub struct Database<'d> {
    file: &'d [u8],
    page_size: usize,
    /// The bytes of a page that hold data.
    usable: usize,
    encoding: Encoding,
    tables: BTreeMap<String, Table>,
    interrupt: Interrupt<'d>,
}

#[derive(Debug, Clone, Copy)]
enum Encoding {
    Utf8,
    Utf16Le,
    Utf16Be,
}

/// A table: its root page and the names of its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    root: u32,
    /// The names of the columns, in lower case.
    pub columns: Vec<String>,
}

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // the names say it
pub enum Cell {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

impl Cell {
    /// The integer; `None` for other values.
    pub fn integer(&self) -> Option<i64> {
        match self {
            Cell::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// The text; `None` for other values.
    pub fn text(&self) -> Option<&str> {
        match self {
            Cell::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// A row: its ID, and its values in the order of the columns. A column that is the ID has NULL.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The ID.
    pub id: i64,
    /// The values. Columns that were added later may be missing.
    pub cells: Vec<Cell>,
}

impl<'d> Database<'d> {
    /// Opens the bytes of a database.
    ///
    /// # Errors
    /// [`Error::NotADatabase`] if they are not one, and other errors if the list of tables is damaged.
    pub fn open(file: &'d [u8], interrupt: Interrupt<'d>) -> Result<Self> {
        let header = file
            .first_chunk::<100>()
            .filter(|header| header.starts_with(b"SQLite format 3\0"));
        let header = header.ok_or(Error::NotADatabase)?;
        let page_size = match u16::from_be_bytes([header[16], header[17]]) {
            1 => 1 << 16,
            size if size >= 512 && size.is_power_of_two() => usize::from(size),
            _ => {
                return Err(damaged(
                    0,
                    "the size of its pages is not a power of two from 512 to 65536",
                ));
            }
        };
        let encoding = match header[59] {
            2 => Encoding::Utf16Le,
            3 => Encoding::Utf16Be,
            _ => Encoding::Utf8,
        };
        let usable = page_size - usize::from(header[20]);
        if usable < 480 {
            return Err(damaged(0, "its pages have no room"));
        }
        let mut database = Database {
            file,
            page_size,
            usable,
            encoding,
            tables: BTreeMap::new(),
            interrupt,
        };
        let mut tables = BTreeMap::new();
        let schema = Table {
            root: 1,
            columns: Vec::new(),
        };
        for row in database.scan(&schema).take(MAX_TABLES) {
            if let [kind, name, _, Cell::Integer(root), sql] = &row?.cells[..]
                && kind.text() == Some("table")
                && let (Some(name), Some(sql), Ok(root)) = (name.text(), sql.text(), u32::try_from(*root))
            {
                tables.insert(
                    name.to_lowercase(),
                    Table {
                        root,
                        columns: columns_of(sql),
                    },
                );
            }
        }
        database.tables = tables;
        Ok(database)
    }

    /// The table with a name in lower case.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.get(name)
    }

    /// The rows of a table, sorted by ID. An error ends them.
    pub fn scan(&self, table: &Table) -> Scan<'_, 'd> {
        let pages = self.file.len().div_ceil(self.page_size);
        let mut scan = Scan {
            database: self,
            stack: Vec::new(),
            pages,
            error: None,
        };
        scan.error = scan.enter(table.root).err();
        scan
    }

    /// The bytes of a page, and the offset of the node in it.
    fn page(&self, number: u32) -> Result<(&'d [u8], usize)> {
        let outside = || {
            damaged(
                u64::from(number) * self.page_size as u64,
                "it refers to a page outside of the file",
            )
        };
        let index = (number as usize).checked_sub(1).ok_or_else(outside)?;
        let start = index.checked_mul(self.page_size).ok_or_else(outside)?;
        let page = self
            .file
            .get(start..)
            .and_then(|rest| rest.get(..self.page_size))
            .ok_or_else(outside)?;
        Ok((&page[..self.usable], if number == 1 { 100 } else { 0 }))
    }

    fn text(&self, bytes: &[u8]) -> String {
        let units = |of: fn([u8; 2]) -> u16| {
            let units = bytes.as_chunks::<2>().0.iter().map(|unit| of(*unit));
            char::decode_utf16(units)
                .map(|unit| unit.unwrap_or('\u{fffd}'))
                .collect()
        };
        match self.encoding {
            Encoding::Utf8 => String::from_utf8_lossy(bytes).into_owned(),
            Encoding::Utf16Le => units(u16::from_le_bytes),
            Encoding::Utf16Be => units(u16::from_be_bytes),
        }
    }

    /// The values of a row: the length of its header, the type of each value, then the values.
    fn cells(&self, row: &[u8]) -> Option<Vec<Cell>> {
        let (header, mut at) = varint(row, 0)?;
        let header = usize::try_from(header).ok()?;
        let mut values = row.get(header..)?;
        let mut cells = Vec::new();
        while at < header && cells.len() < MAX_COLUMNS {
            let (kind, next) = varint(row, at)?;
            at = next;
            let size = match kind {
                0 | 8 | 9 => 0,
                1..=4 => kind as usize,
                5 => 6,
                6 | 7 => 8,
                12.. => usize::try_from((kind - 12) / 2).ok()?,
                _ => return None,
            };
            let (value, rest) = values.split_at_checked(size)?;
            values = rest;
            cells.push(match kind {
                0 => Cell::Null,
                8 | 9 => Cell::Integer(kind as i64 - 8),
                7 => Cell::Real(f64::from_be_bytes(value.try_into().ok()?)),
                1..=6 => {
                    let sign = if value[0] & 0x80 != 0 { -1 } else { 0 };
                    Cell::Integer(value.iter().fold(sign, |number, byte| number << 8 | i64::from(*byte)))
                }
                _ if kind % 2 == 0 => Cell::Blob(value.to_vec()),
                _ => Cell::Text(self.text(value)),
            });
        }
        Some(cells)
    }
}

fn damaged(offset: u64, why: &'static str) -> Error {
    Error::Damaged {
        what: "the SQLite database",
        offset,
        why,
    }
}

/// A number of one to nine bytes, and the position after it.
fn varint(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let mut number = 0;
    for (index, byte) in bytes.get(at..)?.iter().take(9).enumerate() {
        if index == 8 {
            return Some((number << 8 | u64::from(*byte), at + 9));
        }
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((number, at + index + 1));
        }
    }
    None
}

/// The names of the columns in a `CREATE TABLE`, in lower case.
fn columns_of(sql: &str) -> Vec<String> {
    let Some((_, list)) = sql.split_once('(') else {
        return Vec::new();
    };
    let mut depth = 0;
    let parts = list.split(|c| {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        c == ',' && depth == 0
    });
    let name = |part: &str| {
        let name = part.split_whitespace().next().unwrap_or_default();
        name.trim_matches(['"', '`', '[', ']', '\'']).to_lowercase()
    };
    parts
        .map(name)
        .filter(|name| !name.is_empty() && name != "foreign")
        .take(MAX_COLUMNS)
        .collect()
}

/// The rows of a table. Made by [`Database::scan`].
#[derive(Debug)]
pub struct Scan<'s, 'd> {
    database: &'s Database<'d>,
    /// The nodes on the way to the next row: the page, the offset of the node, and the next cell.
    stack: Vec<(&'d [u8], usize, usize)>,
    /// The pages that may still be read.
    pages: usize,
    error: Option<Error>,
}

impl<'d> Scan<'_, 'd> {
    fn take_page(&mut self, number: u32) -> Result<(&'d [u8], usize)> {
        let offset = u64::from(number) * self.database.page_size as u64;
        self.pages = self
            .pages
            .checked_sub(1)
            .ok_or(damaged(offset, "its pages refer to each other in a circle"))?;
        self.database.interrupt.check()?;
        self.database.page(number)
    }

    fn enter(&mut self, number: u32) -> Result<()> {
        let (page, at) = self.take_page(number)?;
        if self.stack.len() == MAX_DEPTH || !matches!(page[at], 5 | 13) {
            let offset = (u64::from(number) - 1) * self.database.page_size as u64;
            return Err(damaged(offset, "a page is not part of a table"));
        }
        self.stack.push((page, at, 0));
        Ok(())
    }

    /// The next row; `None` at the end. An inner row that cannot be read is `Ok(None)`.
    fn step(&mut self) -> Result<Option<Option<Row>>> {
        let short = || damaged(0, "a page is cut short");
        let number = |page: &[u8], at: usize| {
            let bytes = page.get(at..).and_then(|rest| rest.first_chunk::<4>());
            bytes.map(|bytes| u32::from_be_bytes(*bytes)).ok_or_else(short)
        };
        while let Some((page, at, index)) = self.stack.last_mut() {
            let (page, at) = (*page, *at);
            let count = usize::from(u16::from_be_bytes([page[at + 3], page[at + 4]]));
            let is_leaf = page[at] == 13;
            let cell = *index;
            *index += 1;
            if cell >= count {
                // An inner node has one more child after its cells.
                let last = (!is_leaf && cell == count).then(|| number(page, at + 8)).transpose()?;
                match last {
                    Some(child) => self.enter(child)?,
                    None => drop(self.stack.pop()),
                }
                continue;
            }
            let pointer = at + if is_leaf { 8 } else { 12 } + 2 * cell;
            let start = page.get(pointer..pointer + 2).ok_or_else(short)?;
            let start = usize::from(u16::from_be_bytes([start[0], start[1]]));
            if !is_leaf {
                let child = number(page, start)?;
                self.enter(child)?;
                continue;
            }
            return self.row(page, start).map(Some);
        }
        Ok(None)
    }

    /// The row at an offset of a leaf; `None` if it is too long or damaged.
    fn row(&mut self, page: &'d [u8], at: usize) -> Result<Option<Row>> {
        let Some(((size, at), id)) = varint(page, at).and_then(|found| Some((found, varint(page, found.1)?))) else {
            return Ok(None);
        };
        let (id, at) = (id.0 as i64, if at < id.1 { id.1 } else { at });
        let Some(size) = usize::try_from(size).ok().filter(|size| *size <= MAX_ROW) else {
            return Ok(None);
        };
        let usable = self.database.usable;
        let most = usable - 35;
        let least = (usable - 12) * 32 / 255 - 23;
        let local = match size {
            size if size <= most => size,
            _ => Some(least + (size - least) % (usable - 4))
                .filter(|local| *local <= most)
                .unwrap_or(least),
        };
        let Some(head) = page.get(at..).and_then(|rest| rest.get(..local)) else {
            return Ok(None);
        };
        if local == size {
            return Ok(self.database.cells(head).map(|cells| Row { id, cells }));
        }
        let mut row = head.to_vec();
        let mut next = page.get(at + local..).and_then(|rest| rest.first_chunk::<4>()).copied();
        while row.len() < size {
            let Some(number) = next.map(u32::from_be_bytes).filter(|number| *number != 0) else {
                return Ok(None);
            };
            let (page, _) = self.take_page(number)?;
            next = page.first_chunk::<4>().copied();
            let rest = &page[4..];
            row.extend_from_slice(&rest[..rest.len().min(size - row.len())]);
        }
        Ok(self.database.cells(&row).map(|cells| Row { id, cells }))
    }
}

impl Iterator for Scan<'_, '_> {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(error) = self.error.take() {
            self.stack.clear();
            return Some(Err(error));
        }
        loop {
            match self.step() {
                Ok(None) => return None,
                Ok(Some(Some(row))) => return Some(Ok(row)),
                // A row that cannot be read does not hide the others.
                Ok(Some(None)) => {}
                Err(error) => {
                    self.stack.clear();
                    return Some(Err(error));
                }
            }
        }
    }
}
