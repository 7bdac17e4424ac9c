//! Reads the tables of an SQLite database: no SQL, no indexes, no write-ahead log.
//!
//! SQLite itself would add 1 MB of C to the extension, to read whole tables of files that somebody may have crafted.
//!
//! Source: "Database File Format" of the SQLite project. Numbers are big endian. A page is a node of a B-tree or part of
//! a long row. Each page belongs to one tree, so a scan that sees more pages than the file has goes in a circle. The rows
//! of a page do not overlap, so a table has at most as many bytes as the file.

use std::collections::BTreeMap;

use evtx_format::Interrupt;
use hashbrown::HashMap;

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
pub struct Database {
    file: Vec<u8>,
    page_size: usize,
    /// The bytes of a page that hold data.
    usable: usize,
    encoding: Encoding,
    /// By their names in lower case: the root page, and the statement that creates the table.
    tables: BTreeMap<String, (u32, String)>,
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
    /// The indexes of the columns, by their names in lower case.
    pub columns: HashMap<String, usize>,
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

impl Database {
    /// Opens the bytes of a database.
    ///
    /// # Errors
    /// [`Error::NotADatabase`] if they are not one, and other errors if the list of tables is damaged.
    pub fn open(file: Vec<u8>, interrupt: Interrupt<'_>) -> Result<Self> {
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
        };
        let mut scan = database.scan(&Table {
            root: 1,
            columns: HashMap::new(),
        });
        for _ in 0..MAX_TABLES {
            let Some(mut row) = scan.next(&database, interrupt)? else {
                break;
            };
            if let [
                Cell::Text(kind),
                Cell::Text(name),
                _,
                Cell::Integer(root),
                Cell::Text(sql),
            ] = &mut row.cells[..]
                && kind == "table"
                && let Ok(root) = u32::try_from(*root)
            {
                let table = (root, std::mem::take(sql));
                database.tables.insert(name.to_lowercase(), table);
            }
        }
        Ok(database)
    }

    /// The table with a name in lower case.
    pub fn table(&self, name: &str) -> Option<Table> {
        let (root, sql) = self.tables.get(name)?;
        Some(Table {
            root: *root,
            columns: columns_of(sql),
        })
    }

    /// The rows of a table, sorted by ID.
    pub fn scan(&self, table: &Table) -> Scan {
        Scan {
            root: Some(table.root),
            stack: Vec::new(),
            pages: self.file.len().div_ceil(self.page_size),
        }
    }

    /// The bytes of a page, and the offset of the node in it.
    fn page(&self, number: u32) -> Result<(&[u8], usize)> {
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

/// The columns in a `CREATE TABLE`, with their names in lower case.
fn columns_of(sql: &str) -> HashMap<String, usize> {
    let mut columns = HashMap::new();
    let Some((_, list)) = sql.split_once('(') else {
        return columns;
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
    let names = parts.map(name).filter(|name| !name.is_empty() && name != "foreign");
    for (index, name) in names.take(MAX_COLUMNS).enumerate() {
        columns.entry(name).or_insert(index);
    }
    columns
}

/// The rows of a table. Made by [`Database::scan`]. It does not borrow from the database.
#[derive(Debug)]
pub struct Scan {
    /// The page to start at.
    root: Option<u32>,
    /// The nodes on the way to the next row.
    stack: Vec<Node>,
    /// The pages that may still be read.
    pages: usize,
}

/// A node of a table's tree.
#[derive(Debug)]
struct Node {
    page: u32,
    /// The next cell.
    cell: usize,
    /// The bytes of cells that may still be read, because pointers can name one cell several times.
    room: usize,
}

impl Scan {
    /// The next row; `None` at the end, and after an error. Rows that cannot be read are left out.
    ///
    /// # Errors
    /// [`Error::Damaged`] and [`Error::Interrupted`].
    pub fn next(&mut self, database: &Database, interrupt: Interrupt<'_>) -> Result<Option<Row>> {
        let row = loop {
            if let Err(interrupted) = interrupt.check() {
                break Err(interrupted.into());
            }
            match self.step(database) {
                Ok(Step::Row(row)) => return Ok(Some(row)),
                Ok(Step::Nothing) => {}
                Ok(Step::End) => break Ok(None),
                Err(error) => break Err(error),
            }
        };
        self.stack.clear();
        row
    }

    fn take_page<'d>(&mut self, database: &'d Database, number: u32) -> Result<(&'d [u8], usize)> {
        let offset = u64::from(number) * database.page_size as u64;
        self.pages = self
            .pages
            .checked_sub(1)
            .ok_or(damaged(offset, "its pages refer to each other in a circle"))?;
        database.page(number)
    }

    fn enter(&mut self, database: &Database, number: u32) -> Result<()> {
        let (page, at) = self.take_page(database, number)?;
        if self.stack.len() == MAX_DEPTH || !matches!(page[at], 5 | 13) {
            let offset = (u64::from(number) - 1) * database.page_size as u64;
            return Err(damaged(offset, "a page is not part of a table"));
        }
        self.stack.push(Node {
            page: number,
            cell: 0,
            room: page.len(),
        });
        Ok(())
    }

    /// Looks at the next cell.
    fn step(&mut self, database: &Database) -> Result<Step> {
        if let Some(root) = self.root.take() {
            self.enter(database, root)?;
        }
        let Some(node) = self.stack.last_mut() else {
            return Ok(Step::End);
        };
        let number = node.page;
        let (page, at) = database.page(number)?;
        let short = || {
            damaged(
                (u64::from(number) - 1) * database.page_size as u64,
                "a page is cut short",
            )
        };
        let u32_be = |at: usize| {
            let bytes = page.get(at..).and_then(|rest| rest.first_chunk::<4>());
            bytes.map(|bytes| u32::from_be_bytes(*bytes)).ok_or_else(short)
        };
        let count = usize::from(u16::from_be_bytes([page[at + 3], page[at + 4]]));
        let is_leaf = page[at] == 13;
        let cell = node.cell;
        node.cell += 1;
        if cell >= count {
            // An inner node has one more child after its cells.
            if !is_leaf && cell == count {
                self.enter(database, u32_be(at + 8)?)?;
            } else {
                self.stack.pop();
            }
            return Ok(Step::Nothing);
        }
        let pointer = at + if is_leaf { 8 } else { 12 } + 2 * cell;
        let start = page.get(pointer..pointer + 2).ok_or_else(short)?;
        let start = usize::from(u16::from_be_bytes([start[0], start[1]]));
        if !is_leaf {
            self.enter(database, u32_be(start)?)?;
            return Ok(Step::Nothing);
        }
        Ok(self.row(database, page, start)?.map_or(Step::Nothing, Step::Row))
    }

    /// The row at an offset of a leaf; `None` if it is too long or damaged.
    fn row(&mut self, database: &Database, page: &[u8], start: usize) -> Result<Option<Row>> {
        let Some(((size, at), id)) = varint(page, start).and_then(|found| Some((found, varint(page, found.1)?))) else {
            return Ok(None);
        };
        let (id, at) = (id.0 as i64, if at < id.1 { id.1 } else { at });
        let Some(size) = usize::try_from(size).ok().filter(|size| *size <= MAX_ROW) else {
            return Ok(None);
        };
        let usable = database.usable;
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
        if let Some(node) = self.stack.last_mut() {
            let offset = (u64::from(node.page) - 1) * database.page_size as u64;
            let room = node.room.checked_sub(at + local - start);
            node.room = room.ok_or(damaged(offset, "the rows of a page overlap"))?;
        }
        if local == size {
            return Ok(database.cells(head).map(|cells| Row { id, cells }));
        }
        let mut row = head.to_vec();
        let mut next = page.get(at + local..).and_then(|rest| rest.first_chunk::<4>()).copied();
        while row.len() < size {
            let Some(number) = next.map(u32::from_be_bytes).filter(|number| *number != 0) else {
                return Ok(None);
            };
            let (page, _) = self.take_page(database, number)?;
            next = page.first_chunk::<4>().copied();
            let rest = &page[4..];
            row.extend_from_slice(&rest[..rest.len().min(size - row.len())]);
        }
        Ok(database.cells(&row).map(|cells| Row { id, cells }))
    }
}

/// What a cell of a node is.
enum Step {
    Row(Row),
    /// The way to others, or a row that cannot be read.
    Nothing,
    End,
}
