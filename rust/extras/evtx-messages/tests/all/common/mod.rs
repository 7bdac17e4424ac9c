//! Writes small PE files, tables of messages and manifests.

use evtx_messages::Guid;

/// A PE file with resources.
pub(crate) struct Pe<'p> {
    pub(crate) is_64_bit: bool,
    pub(crate) manifest: Option<&'p [u8]>,
    /// Tables of messages by LCID.
    pub(crate) tables: &'p [(u16, &'p [u8])],
}

/// Where the section with the resources is in memory and in the file.
const ADDRESS: u32 = 0x1000;
const OFFSET: usize = 0x400;

/// Resources by language.
type Leaves<'l> = Vec<(u16, &'l [u8])>;

impl Pe<'_> {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let section = self.section();
        let mut pe = vec![0; OFFSET];
        let optional = if self.is_64_bit { 240 } else { 224 };
        let mut put = |at: usize, bytes: &[u8]| pe[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"MZ");
        put(0x3c, &0x80_u32.to_le_bytes());
        put(0x80, b"PE\0\0");
        put(0x84, &(if self.is_64_bit { 0x8664_u16 } else { 0x14c }).to_le_bytes());
        put(0x86, &1_u16.to_le_bytes());
        put(0x94, &(optional as u16).to_le_bytes());
        put(0x98, &(if self.is_64_bit { 0x20b_u16 } else { 0x10b }).to_le_bytes());
        let directories = 0x98 + if self.is_64_bit { 112 } else { 96 };
        put(directories - 4, &16_u32.to_le_bytes());
        put(directories + 16, &ADDRESS.to_le_bytes());
        put(directories + 20, &(section.len() as u32).to_le_bytes());
        let header = 0x98 + optional;
        put(header, b".rsrc");
        for (at, number) in [
            (8, section.len() as u32),
            (12, ADDRESS),
            (16, section.len() as u32),
            (20, OFFSET as u32),
        ] {
            put(header + at, &number.to_le_bytes());
        }
        pe.extend(section);
        pe
    }

    /// Directories of three levels, then the entries of data, the name of the type, and the data.
    fn section(&self) -> Vec<u8> {
        let name: Vec<u8> = "WEVT_TEMPLATE".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let mut types: Vec<(u32, Leaves<'_>)> = Vec::new();
        types.extend(self.manifest.map(|manifest| (1 << 31, vec![(0, manifest)])));
        if !self.tables.is_empty() {
            types.push((11, self.tables.to_vec()));
        }
        let leaves: usize = types.iter().map(|(_, leaves)| leaves.len()).sum();
        let data_entries = 16 + 8 * types.len() + types.len() * (16 + 8 + 16) + 8 * leaves;
        let name_at = data_entries + 16 * leaves;
        let mut data_at = name_at + 2 + name.len();
        let mut section = directory(types.iter().filter(|(id, _)| *id > 11).count(), types.len());
        let mut at = 16 + 8 * types.len();
        let (mut tables, mut entries, mut data) = (Vec::new(), Vec::new(), Vec::new());
        let mut leaf = 0;
        for (id, leaves) in &types {
            let id = if *id > 11 { 1 << 31 | name_at as u32 } else { *id };
            section.extend(pair(id, 1 << 31 | at as u32));
            tables.extend(directory(0, 1));
            tables.extend(pair(1, 1 << 31 | (at + 24) as u32));
            tables.extend(directory(0, leaves.len()));
            for (language, bytes) in leaves {
                tables.extend(pair((*language).into(), (data_entries + 16 * leaf) as u32));
                entries.extend(pair(ADDRESS + data_at as u32, bytes.len() as u32));
                entries.extend([0; 8]);
                data.extend_from_slice(bytes);
                data_at += bytes.len();
                leaf += 1;
            }
            at += 24 + 16 + 8 * leaves.len();
        }
        section.extend(tables);
        section.extend(entries);
        section.extend((name.len() as u16 / 2).to_le_bytes());
        section.extend(name);
        section.extend(data);
        section
    }
}

fn directory(names: usize, entries: usize) -> Vec<u8> {
    let mut directory = vec![0; 12];
    directory.extend((names as u16).to_le_bytes());
    directory.extend(((entries - names) as u16).to_le_bytes());
    directory
}

fn pair(a: u32, b: u32) -> Vec<u8> {
    [a.to_le_bytes(), b.to_le_bytes()].concat()
}

/// A table of UTF-16 messages. Consecutive IDs share a block.
pub(crate) fn message_table(messages: &[(u32, &str)]) -> Vec<u8> {
    let mut blocks: Vec<(u32, u32, usize)> = Vec::new();
    let mut bytes = Vec::new();
    for (id, text) in messages {
        match blocks.last_mut() {
            Some((_, last, _)) if *last + 1 == *id => *last = *id,
            _ => blocks.push((*id, *id, bytes.len())),
        }
        let text: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        bytes.extend((text.len() as u16 + 6).to_le_bytes());
        bytes.extend([1, 0]);
        bytes.extend(text);
        bytes.extend([0, 0]);
    }
    let mut table = (blocks.len() as u32).to_le_bytes().to_vec();
    for (first, last, at) in &blocks {
        table.extend(pair(*first, *last));
        table.extend(((4 + 12 * blocks.len() + at) as u32).to_le_bytes());
    }
    table.extend(bytes);
    table
}

/// A manifest of one provider with one event: ID 1, version 2, the fields `Name` and `Kind`, the latter with a map.
pub(crate) fn manifest(guid: Guid) -> Vec<u8> {
    let [a, b, c, d, e, f, g, h, rest @ ..] = guid;
    let mut out = Out(b"CRIM\0\0\0\0\x03\0\x01\0\x01\0\0\0".to_vec());
    out.0.extend([d, c, b, a, f, e, h, g]);
    out.0.extend(rest);
    out.numbers(&[36]);
    out.0.extend(b"WEVT\0\0\0\0");
    let elements = 6;
    out.numbers(&[u32::MAX, elements, 0]);
    let list = out.0.len();
    out.numbers(&vec![0; 2 * elements as usize]);
    let mut element = 0;
    let mut start = |out: &mut Out| {
        let at = (out.0.len() as u32).to_le_bytes();
        out.0[list + 8 * element..][..4].copy_from_slice(&at);
        element += 1;
    };
    let names: Vec<u32> = [
        "Test/Operational",
        "win:Informational",
        "task",
        "win:Info",
        "key",
        "Name",
        "Kind",
        "Kinds",
    ]
    .iter()
    .map(|name| out.name(name))
    .collect();
    start(&mut out);
    out.0.extend(b"CHAN\0\0\0\0");
    out.numbers(&[1, 16, names[0], 0, u32::MAX]);
    start(&mut out);
    out.0.extend(b"LEVL\0\0\0\0");
    out.numbers(&[1, 4, 0x5000_0004, names[1]]);
    let level = out.0.len() as u32 - 12;
    start(&mut out);
    out.0.extend(b"TASK\0\0\0\0");
    out.numbers(&[1, 1, 0x7000_0001, 0, 0, 0, 0, names[2]]);
    let task = out.0.len() as u32 - 28;
    start(&mut out);
    out.0.extend(b"OPCO\0\0\0\0");
    out.numbers(&[1, 0, u32::MAX, names[3]]);
    let opcode = out.0.len() as u32 - 12;
    start(&mut out);
    out.0.extend(b"KEYW\0\0\0\0");
    out.numbers(&[1, 1, 0, 0x1000_0001, names[4]]);
    let map = out.0.len() as u32;
    out.0.extend(b"VMAP\0\0\0\0");
    out.numbers(&[names[7], 0, 1, 2, 0xd000_0001]);
    let template = out.0.len() as u32;
    out.0.extend(b"TEMP\0\0\0\0");
    out.numbers(&[2, 2, template + 40, 1, 0, 0, 0, 0]);
    out.numbers(&[0, 0x0101, 0, 0, names[5], 0, 0x0808, map, 0, names[6]]);
    start(&mut out);
    out.0.extend(b"EVNT\0\0\0\0");
    out.numbers(&[1, 0]);
    out.0.extend([1, 0, 2, 16, 4, 0, 1, 0]);
    out.numbers(&[1, 0x8000_0000, 0xb000_0001, template, opcode, level, task, 0, 0, 0]);
    out.0
}

struct Out(Vec<u8>);

impl Out {
    fn numbers(&mut self, numbers: &[u32]) {
        self.0.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    }

    fn name(&mut self, name: &str) -> u32 {
        let at = self.0.len() as u32;
        let text: Vec<u8> = name.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
        self.numbers(&[text.len() as u32 + 4]);
        self.0.extend(text);
        at
    }
}
