//! Registry hives: lists of keys that repeat, keys that share values, values that overlap, and providers in a chain.

use super::{Kind, Made, Shape, list_messages};

/// Cells of a hive.
struct Cells(Vec<u8>);

impl Cells {
    fn cell(&mut self, mut data: Vec<u8>) -> u32 {
        let at = self.0.len() as u32;
        data.resize((data.len() + 4).next_multiple_of(8) - 4, 0);
        self.0.extend((-(data.len() as i32 + 4)).to_le_bytes());
        self.0.extend(data);
        at
    }

    fn list(&mut self, magic: &[u8; 2], items: &[u32]) -> u32 {
        let head = [*magic, (items.len() as u16).to_le_bytes()].concat();
        self.cell(head.into_iter().chain(numbers(items)).collect())
    }

    /// A value with the data at an offset, of which `size` bytes are its own.
    fn value(&mut self, name: &str, data: u32, size: usize) -> u32 {
        let mut cell = [*b"vk", (name.len() as u16).to_le_bytes()].concat();
        cell.extend(numbers(&[size as u32, data, 1, 1]));
        cell.extend(name.as_bytes());
        self.cell(cell)
    }

    fn key(&mut self, name: &str, values: &[u32], keys: Option<u32>) -> u32 {
        let values_at = self.cell(numbers(values));
        let mut cell = vec![0; 76];
        let mut put = |at: usize, bytes: &[u8]| cell[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"nk\x20\0");
        put(20, &u32::from(keys.is_some()).to_le_bytes());
        put(28, &keys.unwrap_or(u32::MAX).to_le_bytes());
        put(36, &(values.len() as u32).to_le_bytes());
        put(40, &values_at.to_le_bytes());
        put(72, &(name.len() as u16).to_le_bytes());
        cell.extend(name.as_bytes());
        self.cell(cell)
    }

    /// The file whose keys at a path are in a list.
    fn file(mut self, path: &[&str], keys: u32) -> Vec<u8> {
        let mut list = keys;
        for name in path.iter().rev() {
            let key = self.key(name, &[], Some(list));
            list = self.list(b"li", &[key]);
        }
        let root = self.key("ROOT", &[], Some(list));
        let mut file = vec![0; 4096];
        file[..4].copy_from_slice(b"regf");
        file[36..40].copy_from_slice(&root.to_le_bytes());
        file[40..44].copy_from_slice(&(self.0.len() as u32).to_le_bytes());
        file.extend(self.0);
        file
    }
}

fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect()
}

/// A binary with messages, which each provider uses.
fn binary() -> Vec<u8> {
    let messages: Vec<_> = (0..2000).map(|id| (id, "a text with %1")).collect();
    let table = super::provider::message_table(&messages);
    super::provider::Pe {
        is_64_bit: true,
        manifest: None,
        tables: &[(1033, &table), (1031, &table)],
    }
    .bytes()
}

/// `lists` times the same list of `sources`, which have `files` files of two names in a value that they share, or that starts `shift`
/// bytes after that of the one before.
fn sources([lists, sources, files, shift]: Shape) -> Made {
    let mut cells = Cells(vec![0; 32]);
    let names: String = (0..files)
        .map(|file| format!(r"{file}.dll;a\{file}\x.dll;x.dll;"))
        .collect();
    let value = utf16(&names);
    let room = vec![b';'; shift * sources];
    let data = cells.cell([&value[..], &room, &[0, 0]].concat());
    let keys: Vec<_> = (0..sources.clamp(1, 65_535))
        .map(|nth| {
            let at = data + (nth * shift) as u32 / 4 * 4;
            let value = cells.value("EventMessageFile", at, value.len().min(60_000));
            cells.key(&format!("source {nth}"), &[value], None)
        })
        .collect();
    let inner = cells.list(b"li", &keys);
    let list = cells.list(b"ri", &vec![inner; lists.clamp(1, 65_535)]);
    let hive = cells.file(&["ControlSet001", "Services", "EventLog", "Log"], list);
    vec![("SYSTEM", hive), ("x.dll", binary())]
}

pub(crate) const KIND: Kind = Kind {
    name: "sources of a hive",
    files: sources,
    fixed: &[
        [65_535, 30_000, 1, 0],
        [1, 3, 2, 0],
        [1, 20_000, 3000, 0],
        [1, 20_000, 3000, 16],
        [300, 300, 64, 4],
    ],
    most: [65_535, 30_000, 5000, 64],
    read: list_messages,
};

/// `publishers` in a chain: each shares a file with the next. Each has a file of its own besides, and a name of
/// `name` characters, which all share. Each is in the list `lists` times.
fn publishers([publishers, name, lists, step]: Shape) -> Made {
    let mut cells = Cells(vec![0; 32]);
    let name_data = utf16(&"n".repeat(name.min(30_000)));
    let name_at = cells.cell(name_data.clone());
    let keys: Vec<_> = (0..publishers.clamp(1, 60_000))
        .map(|nth| {
            let next = (nth * step.max(1) + 1) % publishers.max(1);
            let files = utf16(&format!("{nth}.dll;{next}.dll"));
            let at = cells.cell(files.clone());
            let values = [
                cells.value("", name_at, name_data.len()),
                cells.value("MessageFileName", at, files.len()),
            ];
            cells.key(&format!("{{54849625-5478-4994-a5ba-3e3b{nth:08x}}}"), &values, None)
        })
        .collect();
    let inner = cells.list(b"li", &keys);
    let list = cells.list(b"ri", &vec![inner; lists.clamp(1, 65_535)]);
    let path = ["Microsoft", "Windows", "CurrentVersion", "WINEVT", "Publishers"];
    let hive = cells.file(&path, list);
    let pe = binary();
    vec![("SOFTWARE", hive), ("0.dll", pe.clone()), ("1.dll", pe)]
}

pub(crate) const PUBLISHERS: Kind = Kind {
    name: "publishers of a hive",
    files: publishers,
    fixed: &[
        [2000, 10, 1, 1],
        [20_000, 10, 1, 1],
        [20_000, 30_000, 1, 7],
        [100, 10, 60_000, 1],
    ],
    most: [60_000, 30_000, 65_535, 60_000],
    read: list_messages,
};
