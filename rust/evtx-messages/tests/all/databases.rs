//! Databases that others made: crafted ones with long rows, inner pages, circles and damage, and real ones.
//!
//! Set `EVTX_MESSAGE_DATABASES` to a folder with databases of plaso, WELM or ts-evtx.

use evtx_format::Interrupt;
use evtx_messages::sqlite::{Cell, Database};
use evtx_messages::*;

const PAGE: usize = 512;

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = vec![(number & 0x7f) as u8];
    while number > 0x7f {
        number >>= 7;
        bytes.insert(0, (number & 0x7f) as u8 | 0x80);
    }
    bytes
}

fn record(cells: &[Cell]) -> Vec<u8> {
    let (mut types, mut values) = (Vec::new(), Vec::new());
    for cell in cells {
        match cell {
            Cell::Null => types.extend(varint(0)),
            Cell::Integer(number) => {
                types.extend(varint(6));
                values.extend(number.to_be_bytes());
            }
            Cell::Real(number) => {
                types.extend(varint(7));
                values.extend(number.to_be_bytes());
            }
            Cell::Text(text) => {
                types.extend(varint(13 + 2 * text.len() as u64));
                values.extend(text.as_bytes());
            }
            Cell::Blob(bytes) => {
                types.extend(varint(12 + 2 * bytes.len() as u64));
                values.extend(bytes);
            }
        }
    }
    // The length of the header is one byte, so headers are short.
    [varint(types.len() as u64 + 1), types, values].concat()
}

/// The pages of a database. The first one is the list of tables.
struct Pages(Vec<Vec<u8>>);

impl Pages {
    fn page(&mut self, mut page: Vec<u8>) -> u32 {
        page.resize(PAGE, 0);
        self.0.push(page);
        self.0.len() as u32
    }

    /// The cell of a row on a leaf. What does not fit is in pages of its own.
    fn row(&mut self, id: u64, record: &[u8]) -> Vec<u8> {
        let mut cell = [varint(record.len() as u64), varint(id)].concat();
        let (most, least) = (PAGE - 35, (PAGE - 12) * 32 / 255 - 23);
        if record.len() <= most {
            cell.extend(record);
            return cell;
        }
        let local = least + (record.len() - least) % (PAGE - 4);
        let (local, rest) = record.split_at(if local <= most { local } else { least });
        let mut next = 0_u32;
        for part in rest.chunks(PAGE - 4).rev() {
            next = self.page([&next.to_be_bytes()[..], part].concat());
        }
        cell.extend(local);
        cell.extend(next.to_be_bytes());
        cell
    }

    /// A node with cells. The header of a database is before the node of the first page.
    fn node(kind: u8, cells: &[Vec<u8>], last: u32, before: &[u8]) -> Vec<u8> {
        let mut page = before.to_vec();
        page.extend([kind, 0, 0, 0, cells.len() as u8, 0, 0, 0]);
        if kind == 5 {
            page.extend(last.to_be_bytes());
        }
        let (mut pointers, mut content) = (Vec::new(), Vec::new());
        for cell in cells {
            content.splice(0..0, cell.iter().copied());
            pointers.push(PAGE - content.len());
        }
        page.extend(pointers.iter().flat_map(|at| (*at as u16).to_be_bytes()));
        assert!(page.len() + content.len() <= PAGE, "a page is full");
        page.resize(PAGE - content.len(), 0);
        page.extend(content);
        page
    }

    /// A table of rows, one leaf for each, below an inner node.
    fn table(&mut self, rows: &[Vec<Cell>]) -> u32 {
        let leaf = |pages: &mut Pages, (index, row): (usize, &Vec<Cell>)| {
            let cell = pages.row(index as u64 + 1, &record(row));
            pages.page(Self::node(13, &[cell], 0, &[]))
        };
        let leaves: Vec<_> = rows.iter().enumerate().map(|row| leaf(self, row)).collect();
        if leaves.is_empty() {
            return self.page(Self::node(13, &[], 0, &[]));
        }
        let (cells, last) = Self::children(&leaves);
        self.page(Self::node(5, &cells, last, &[]))
    }

    /// The cells of an inner node, and its last child.
    fn children(leaves: &[u32]) -> (Vec<Vec<u8>>, u32) {
        let (last, first) = leaves.split_last().expect("a leaf");
        let cell = |(index, page): (usize, &u32)| [&page.to_be_bytes()[..], &varint(index as u64 + 1)].concat();
        (first.iter().enumerate().map(cell).collect(), *last)
    }
}

fn text(text: &str) -> Cell {
    Cell::Text(text.into())
}

/// A database of tables: what creates them, and their rows.
fn database(tables: &[(&str, &str, Vec<Vec<Cell>>)]) -> Vec<u8> {
    let mut pages = Pages(vec![Vec::new()]);
    let mut leaves = Vec::new();
    for (index, (name, sql, rows)) in tables.iter().enumerate() {
        let root = pages.table(rows);
        let row = [
            text("table"),
            text(name),
            text(name),
            Cell::Integer(root.into()),
            text(sql),
        ];
        let cell = pages.row(index as u64 + 1, &record(&row));
        leaves.push(pages.page(Pages::node(13, &[cell], 0, &[])));
    }
    let (cells, last) = Pages::children(&leaves);
    let mut header = vec![0; 100];
    header[..16].copy_from_slice(b"SQLite format 3\0");
    header[16..18].copy_from_slice(&(PAGE as u16).to_be_bytes());
    header[59] = 1;
    pages.0[0] = Pages::node(5, &cells, last, &header);
    pages.0.concat()
}

fn welm(message: &str) -> Vec<u8> {
    database(&[
        (
            "Providers",
            "CREATE TABLE providers(id INTEGER PRIMARY KEY, name TEXT)",
            vec![vec![Cell::Null, text("First")], vec![Cell::Null, text("Second")]],
        ),
        (
            "messages",
            "CREATE TABLE messages (event_id INT, \"message\" VARCHAR(10, 2), provider_id, PRIMARY KEY(event_id))",
            vec![
                vec![Cell::Integer(7), text("One %1"), Cell::Integer(1)],
                vec![Cell::Integer(8), text(message), Cell::Integer(2)],
                vec![Cell::Integer(70_000), text("no event"), Cell::Integer(2)],
                vec![Cell::Integer(9), text("no provider"), Cell::Integer(3)],
                vec![Cell::Integer(10), Cell::Null, Cell::Integer(2)],
            ],
        ),
    ])
}

fn rows_of(file: &[u8]) -> Result<Vec<MessageRow>> {
    let database = Database::open(file.to_vec(), Interrupt::NEVER)?;
    let (mut next, mut rows) = (foreign::Rows::new(database, "x.db", Interrupt::NEVER)?, Vec::new());
    while let Some(row) = next.next(Interrupt::NEVER)? {
        rows.push(row);
    }
    Ok(rows)
}

#[test]
fn tables_of_welm_are_read() {
    let long = "long %1 ".repeat(1000);
    let rows = rows_of(&welm(&long)).expect("rows");
    let seen: Vec<_> = rows
        .iter()
        .map(|row| (row.provider.as_deref(), row.event_id, row.text.as_deref()))
        .collect();
    assert_eq!(
        seen,
        [
            (Some("First"), Some(7), Some("One %1")),
            (Some("Second"), Some(8), Some(&*long)),
            (Some("Second"), Some(10), None),
        ]
    );
    let huge = "x".repeat(catalog::MAX_MESSAGE + 1);
    assert_eq!(rows_of(&welm(&huge)).expect("rows")[1].text, None, "too long");
}

#[test]
fn tables_of_plaso_are_read() {
    let file = database(&[
        (
            "winevtrc_eventlog_provider",
            "CREATE TABLE x (_identifier INTEGER, event_message_files TEXT, parameter_message_files TEXT, identifier TEXT, log_sources TEXT, name TEXT)",
            vec![
                vec![
                    Cell::Null,
                    text(r#"["%SystemRoot%\\A.dll"]"#),
                    text("[]"),
                    Cell::Null,
                    text(r#"["Old"]"#),
                    Cell::Null,
                ],
                vec![
                    Cell::Null,
                    text("[]"),
                    text(r#"["a.DLL"]"#),
                    text("{54849625-5478-4994-a5ba-3e3b0328c30d}"),
                    text("[]"),
                    text("New"),
                ],
            ],
        ),
        (
            "winevtrc_message_file",
            "CREATE TABLE x (_identifier INTEGER, windows_path TEXT)",
            vec![vec![Cell::Null, text(r"C:\a.dll")]],
        ),
        (
            "winevtrc_message_table",
            "CREATE TABLE x (_identifier INTEGER, _message_file_identifier TEXT, language_identifier INTEGER)",
            vec![vec![Cell::Null, text("winevtrc_message_file.1"), Cell::Integer(1033)]],
        ),
        (
            "winevtrc_message_string",
            "CREATE TABLE x (_identifier INTEGER, _message_table_identifier TEXT, message_identifier INTEGER, text TEXT)",
            vec![
                vec![
                    Cell::Null,
                    text("winevtrc_message_table.1"),
                    Cell::Integer(0xc000_0007),
                    text("Error {0:s}"),
                ],
                vec![
                    Cell::Null,
                    text("winevtrc_message_table.1"),
                    Cell::Integer(0xb000_0001),
                    text("Declared"),
                ],
            ],
        ),
        (
            "winevtrc_message_string_mapping",
            "CREATE TABLE x (_message_file_identifier TEXT, event_identifier INTEGER, event_version INTEGER, message_identifier INTEGER, provider_identifier TEXT)",
            vec![vec![
                text("winevtrc_message_file.1"),
                Cell::Integer(1),
                Cell::Integer(2),
                Cell::Integer(0xb000_0001),
                text("{54849625-5478-4994-a5ba-3e3b0328c30d}"),
            ]],
        ),
    ]);
    let rows = rows_of(&file).expect("rows");
    let seen: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row.kind.name(),
                row.provider.as_deref(),
                row.event_id,
                row.version,
                row.qualifiers,
                row.text.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("event", Some("Old"), Some(7), None, Some(0xc000), Some("Error %1")),
            ("parameter", Some("New"), None, None, None, Some("Error %1")),
            ("event", Some("New"), Some(1), Some(2), None, Some("Declared")),
        ]
    );
    assert!(rows.iter().all(|row| row.language.as_deref() == Some("en-US")));
}

#[test]
fn circles_and_damage_end() {
    assert_eq!(rows_of(b"not a database"), Err(Error::NotADatabase));
    let other = database(&[("t", "CREATE TABLE t(a)", Vec::new())]);
    assert_eq!(rows_of(&other), Err(Error::UnknownDatabase));
    let file = welm(&"long ".repeat(300));
    for end in 0..file.len() {
        assert!(
            rows_of(&file[..end]).is_err() || end + PAGE > file.len(),
            "cut at {end}"
        );
    }
    for at in 0..file.len() {
        for byte in [0, 1, 5, 13, 0x7f, 0xff] {
            let mut damaged = file.clone();
            damaged[at] = byte;
            if let Ok(rows) = rows_of(&damaged) {
                assert!(rows.len() < 100, "byte {at}");
            }
        }
    }
    // Each child of an inner node is the node.
    let mut circle = file.clone();
    let root = (1..circle.len() / PAGE)
        .rfind(|page| circle[page * PAGE] == 5)
        .expect("an inner node");
    let node = root * PAGE;
    circle[node + 8..node + 12].copy_from_slice(&(root as u32 + 1).to_be_bytes());
    let error = rows_of(&circle).expect_err("a circle");
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    let stop = || true;
    assert!(matches!(
        Database::open(file.clone(), Interrupt::new(&stop)),
        Err(Error::Interrupted(_))
    ));
}

#[test]
fn real_databases_are_read() {
    let Some(folder) = std::env::var_os("EVTX_MESSAGE_DATABASES") else {
        eprintln!("skipped: EVTX_MESSAGE_DATABASES is not set");
        return;
    };
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let file = std::fs::read(&path).unwrap_or_default();
        let database = match Database::open(file, Interrupt::NEVER) {
            Ok(database) => database,
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                continue;
            }
        };
        let started = std::time::Instant::now();
        let mut writer = CatalogWriter::new(u64::MAX);
        let mut rows = 0;
        let done = || {
            let mut next = foreign::Rows::new(database, &path.to_string_lossy(), Interrupt::NEVER)?;
            while let Some(row) = next.next(Interrupt::NEVER)? {
                rows += 1;
                writer.push(&row)?;
            }
            Ok(())
        };
        let done: Result<()> = done();
        let read = started.elapsed();
        assert_eq!(done, Ok(()), "{}", path.display());
        let bytes = writer.finish(Interrupt::NEVER).expect("a catalog");
        let catalog = Catalog::open(bytes.clone()).expect("a catalog");
        eprintln!(
            "{}: {rows} rows, {} providers, {} bytes, read in {read:?}, all in {:?}",
            path.display(),
            catalog.providers().len(),
            bytes.len(),
            started.elapsed()
        );
    }
}
