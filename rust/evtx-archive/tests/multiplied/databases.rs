//! SQLite databases: cells that overlap, tables that share pages, and owners times texts.

use super::{Kind, Made, Shape, list_messages};

const PAGE: usize = 65_536;

fn varint(number: usize) -> Vec<u8> {
    let (high, low) = ((number >> 7) as u8 & 0x7f, number as u8 & 0x7f);
    let highest = (number >> 14) as u8 & 0x7f;
    vec![highest | 0x80, high | 0x80, low]
}

/// A value: a text, or a number.
enum Value<'v> {
    Text(&'v str),
    Number(u64),
}

fn row(id: usize, values: &[Value<'_>]) -> Vec<u8> {
    let (mut types, mut bytes) = (Vec::new(), Vec::new());
    for value in values {
        match value {
            Value::Text(text) => {
                types.extend(varint(13 + 2 * text.len()));
                bytes.extend(text.as_bytes());
            }
            Value::Number(number) => {
                types.push(6);
                bytes.extend(number.to_be_bytes());
            }
        }
    }
    let record = [varint(types.len() + 3), types, bytes].concat();
    [varint(record.len()), varint(id), record].concat()
}

/// A leaf whose rows are these cells. Each of them is named `times` times, if there is room for that.
fn leaf(cells: &[Vec<u8>], times: usize, before: &[u8]) -> Vec<u8> {
    let mut page = vec![0; PAGE];
    let mut end = PAGE;
    let mut starts = Vec::new();
    for cell in cells {
        end -= cell.len();
        page[end..][..cell.len()].copy_from_slice(cell);
        // A page has room for so many at most.
        starts.extend(std::iter::repeat_n(
            end as u16,
            times.min(PAGE / 2 - starts.len().min(PAGE / 2)),
        ));
    }
    starts.truncate((end - before.len() - 8) / 2);
    page[..before.len()].copy_from_slice(before);
    page[before.len()..][..5].copy_from_slice(&[13, 0, 0, (starts.len() >> 8) as u8, starts.len() as u8]);
    for (nth, start) in starts.iter().enumerate() {
        page[before.len() + 8 + 2 * nth..][..2].copy_from_slice(&start.to_be_bytes());
    }
    page
}

/// An inner node with these children.
fn node(children: &[u32]) -> Vec<u8> {
    let mut page = vec![0; PAGE];
    let (last, first) = children.split_last().expect("a child");
    page[..5].copy_from_slice(&[5, 0, 0, (first.len() >> 8) as u8, first.len() as u8]);
    page[8..12].copy_from_slice(&last.to_be_bytes());
    for (nth, child) in first.iter().enumerate() {
        let at = PAGE - 5 * (nth + 1);
        page[at..][..4].copy_from_slice(&child.to_be_bytes());
        page[12 + 2 * nth..][..2].copy_from_slice(&(at as u16).to_be_bytes());
    }
    page
}

/// A database of plaso or of WELM. Its texts have `length` characters, `owners` sources use each, each cell of a page is
/// named `times` times, and there are `pages` of them.
fn database([length, owners, times, pages]: Shape) -> Made {
    let (length, pages) = (length.clamp(1, 30_000), pages.clamp(1, 1000));
    let text = "t".repeat(length);
    let fill = |cell: &dyn Fn(usize) -> Vec<u8>, times: usize| {
        let (mut cells, mut room) = (Vec::new(), PAGE - 200);
        for id in 1.. {
            let cell = cell(id);
            let Some(left) = room.checked_sub(cell.len() + 2 * times) else {
                break;
            };
            room = left;
            cells.push(cell);
        }
        cells
    };
    let message = |id: usize| row(id, &[Value::Text("t.1"), Value::Number(id as u64), Value::Text(&text)]);
    let mut messages = fill(&message, 1);
    if messages.is_empty() {
        messages.push(message(1));
    }
    let provider = |id: usize| {
        let name = format!("source {id}");
        row(id, &[Value::Text("[\"a.dll\"]"), Value::Text(&name)])
    };
    let mut providers = fill(&provider, 1);
    providers.truncate(owners.max(1));
    let welm_message = |id: usize| {
        row(
            id,
            &[Value::Number(1), Value::Number(id as u64 % 60_000), Value::Text(&text)],
        )
    };
    let mut welm_messages = fill(&welm_message, 1);
    if welm_messages.is_empty() {
        welm_messages.push(welm_message(1));
    }
    let file = [row(1, &[Value::Text("a.dll")])];
    let table = [row(1, &[Value::Text("f.1"), Value::Number(1033)])];
    let build = |tables: &[(&str, &str, &[Vec<u8>], usize)]| {
        let mut all: Vec<Vec<u8>> = Vec::new();
        let mut schema = Vec::new();
        for (nth, (name, columns, cells, count)) in tables.iter().enumerate() {
            let mut children = Vec::new();
            for _ in 0..*count {
                all.push(leaf(cells, times.clamp(1, 30_000), &[]));
                children.push(all.len() as u32 + 1);
            }
            all.push(node(&children));
            let (root, sql) = (all.len() as u64 + 1, format!("CREATE TABLE x ({columns})"));
            let values = [
                Value::Text("table"),
                Value::Text(name),
                Value::Text(name),
                Value::Number(root),
                Value::Text(&sql),
            ];
            schema.push(row(nth + 1, &values));
        }
        let mut header = vec![0; 100];
        header[..16].copy_from_slice(b"SQLite format 3\0");
        header[16..18].copy_from_slice(&1_u16.to_be_bytes());
        let first = leaf(&schema, 1, &header);
        [&first[..], &all.concat()].concat()
    };
    let plaso = build(&[
        ("winevtrc_eventlog_provider", "event_message_files, name", &providers, 1),
        ("winevtrc_message_file", "windows_path", &file, 1),
        (
            "winevtrc_message_table",
            "_message_file_identifier, language_identifier",
            &table,
            1,
        ),
        (
            "winevtrc_message_string",
            "_message_table_identifier, message_identifier, text",
            &messages,
            pages,
        ),
    ]);
    let names: Vec<_> = fill(&|id| row(id, &[Value::Text(&format!("n{id}"))]), 1);
    let welm = build(&[
        ("providers", "name", &names, if owners > 1000 { pages } else { 1 }),
        ("messages", "provider_id, event_id, message", &welm_messages, pages),
    ]);
    vec![("plaso.db", plaso), ("welm.db", welm)]
}

pub(crate) const KIND: Kind = Kind {
    name: "a database",
    files: database,
    fixed: &[
        [10, 2, 1, 1],
        [30_000, 1, 30_000, 1],
        [1, 10_000, 1, 20],
        [100, 256, 1, 10],
        [1, 1, 16_000, 100],
    ],
    most: [30_000, 10_000, 30_000, 100],
    read: list_messages_of_each,
};

/// Reads each file by itself: an error ends a call.
fn list_messages_of_each(files: &super::Files, interrupt: evtx_format::Interrupt<'_>) -> super::Outcome {
    let mut rows = 0;
    for (path, bytes) in &files.0 {
        let one = super::Files([(path.clone(), bytes.clone())].into());
        match list_messages(&one, interrupt) {
            super::Outcome::Rows(more, false) => rows += more,
            super::Outcome::Rows(more, true) => return super::Outcome::Rows(rows + more, true),
            super::Outcome::Error(error) => assert!(error.contains(path), "{error}"),
        }
    }
    super::Outcome::Rows(rows, false)
}
