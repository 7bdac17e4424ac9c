//! Writes `.MTA` files: the messages beside a log that was saved with display information.

const PAGE_HEADER: usize = 888;
const PAGE_SLOTS: usize = 100;

/// Collects the messages of a log, in the order of its records, and writes the file.
#[derive(Debug, Default)]
pub struct MtaWriter {
    publishers: Vec<String>,
    events: Vec<(u64, String)>,
}

impl MtaWriter {
    /// A writer for messages of events of these publishers.
    pub fn new(publishers: &[&str]) -> Self {
        MtaWriter {
            publishers: publishers.iter().map(|&name| name.to_owned()).collect(),
            events: Vec::new(),
        }
    }

    /// Adds the message of the next record, empty if it has none. `event_record` is its `EventRecordID`.
    pub fn message(&mut self, event_record: u64, message: impl Into<String>) {
        self.events.push((event_record, message.into()));
    }

    /// The bytes of the file.
    pub fn finish(&self) -> Vec<u8> {
        let event = |(index, (record, _)): (usize, &(u64, String))| {
            [record.to_le_bytes(), (index as u64).to_le_bytes()].concat()
        };
        let text = |text: &str, nul: bool| {
            let text: Vec<u8> = utf16(text).chain([0, 0].into_iter().filter(|_| nul)).collect();
            [&(text.len() as u32).to_le_bytes()[..], &text].concat()
        };
        let message = |(_, message): &(u64, String)| {
            if message.is_empty() {
                vec![0; 4]
            } else {
                text(message, true)
            }
        };
        // Without names for levels, tasks, opcodes and keywords.
        let publisher = |name: &String| [vec![0; 16], text(name, false)].concat();
        let sections = [
            ("EVT", section(self.events.iter().enumerate().map(event).collect())),
            ("MSG", section(self.events.iter().map(message).collect())),
            ("PUB", section(self.publishers.iter().map(publisher).collect())),
        ];
        let table: usize = sections.iter().map(|(name, _)| 20 + 2 * name.len()).sum();
        let mut file = b"MTAFile\0".to_vec();
        for number in [1, 1, table as u32, sections.len() as u32] {
            file.extend(number.to_le_bytes());
        }
        let mut start = file.len() + table;
        for (name, section) in &sections {
            file.extend((start as u64).to_le_bytes());
            file.extend((section.len() as u64).to_le_bytes());
            file.extend((2 * name.len() as u32).to_le_bytes());
            file.extend(utf16(name));
            start += section.len();
        }
        sections.iter().for_each(|(_, section)| file.extend(section));
        file
    }
}

fn utf16(text: &str) -> impl Iterator<Item = u8> + use<'_> {
    text.encode_utf16().flat_map(u16::to_le_bytes)
}

/// A section of records, as a chain of pages.
fn section(records: Vec<Vec<u8>>) -> Vec<u8> {
    let mut section = Vec::new();
    let pages: Vec<&[Vec<u8>]> = if records.is_empty() {
        vec![&[]]
    } else {
        records.chunks(PAGE_SLOTS).collect()
    };
    for (number, page) in pages.iter().enumerate() {
        let start = section.len();
        let mut header = vec![0; PAGE_HEADER];
        let mark = if page.is_empty() { 0 } else { u32::MAX };
        let highest = (number * PAGE_SLOTS + page.len()).saturating_sub(1) as u32;
        header[..4].copy_from_slice(&mark.to_le_bytes());
        header[4..60]
            .chunks_exact_mut(4)
            .for_each(|copy| copy.copy_from_slice(&highest.to_le_bytes()));
        header[60..64].copy_from_slice(&u32::MAX.to_le_bytes());
        header[64..72].copy_from_slice(&(number as u64).to_le_bytes());
        let mut body = Vec::new();
        for (slot, payload) in page.iter().enumerate() {
            let offset = (start + PAGE_HEADER + body.len()) as u64;
            header[88 + 8 * slot..][..8].copy_from_slice(&offset.to_le_bytes());
            body.extend(((number * PAGE_SLOTS + slot) as u32).to_le_bytes());
            body.extend((payload.len() as u32).to_le_bytes());
            body.extend(payload);
        }
        let next = if number + 1 < pages.len() {
            start + PAGE_HEADER + body.len()
        } else {
            start
        };
        header[72..80].copy_from_slice(&(next as u64).to_le_bytes());
        header[80..88].copy_from_slice(&(start as u64).to_le_bytes());
        section.extend(header);
        section.extend(body);
    }
    section
}
