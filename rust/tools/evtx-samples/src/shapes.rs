//! Logs of unusual shapes: wrapped, dirty, damaged.

use crate::machine::{DC, Machine, at};

const FILE_HEADER: usize = 4096;
const CHUNK: usize = 65_536;
const RECORDS: usize = 512;

pub(crate) fn logs() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        // The oldest record is in the third of four chunks; the first ones of the log are gone.
        ("wrapped.evtx", services(6, 40).finish_wrapped(4, 2)),
        // A copy of a live log: its header knows of one chunk of two.
        ("dirty.evtx", services(2, 40).finish_dirty(1)),
        // A log that was created and never written, on a disk that still holds five records of another log.
        ("never-written.evtx", services(1, 5).finish_begun(0, 1)),
        // A chunk that was overwritten: the rest of the old records follows its four new ones.
        ("overwritten.evtx", overwritten()),
        // A record that is hidden in another one, as tools that remove traces do.
        ("hidden-record.evtx", hidden_record()),
        ("damaged-chunk.evtx", damaged_chunk()),
        ("damaged-records.evtx", damaged_records()),
        ("damaged-cut-short.evtx", damaged_cut_short()),
        ("damaged-checksums.evtx", damaged_checksums()),
    ]
}

/// A System log of `chunks` chunks with `per_chunk` service events each.
fn services(chunks: u64, per_chunk: u64) -> evtx_writer::LogWriter {
    services_from(1, 0..chunks, per_chunk)
}

/// The chunks of such a log with these indices. The first record of the log has the ID `first_id`.
fn services_from(first_id: u64, chunks: std::ops::Range<u64>, per_chunk: u64) -> evtx_writer::LogWriter {
    let mut log = Machine::new(DC, first_id);
    for chunk in chunks {
        for i in 0..per_chunk {
            let state = if i % 2 == 0 { "running" } else { "stopped" };
            log.event("plain service state", at(1 + chunk, i, 0, i), &[("param2", state)]);
        }
        log.log.end_chunk();
    }
    log.log
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("four bytes")) as usize
}

/// The file offsets of the records of a chunk, by their size fields.
fn record_offsets(file: &[u8], chunk: usize) -> Vec<usize> {
    let start = FILE_HEADER + chunk * CHUNK;
    let end = start + u32_at(file, start + 48);
    let next = |at: &usize| Some(at + u32_at(file, at + 4));
    let offsets = std::iter::successors(Some(start + RECORDS), next);
    offsets.take_while(|&at| at < end).collect()
}

/// The third of six records claims the bytes of the fourth too. The other IDs hide that, and all checksums match.
fn hidden_record() -> Vec<u8> {
    let mut file = services(1, 6).finish();
    let offsets = record_offsets(&file, 0);
    let claimed = ((offsets[4] - offsets[2]) as u32).to_le_bytes();
    for size in [offsets[2] + 4, offsets[4] - 4] {
        file[size..size + 4].copy_from_slice(&claimed);
    }
    for (id, at) in [(4_u64, offsets[4]), (5, offsets[5])] {
        file[at + 8..at + 16].copy_from_slice(&id.to_le_bytes());
    }
    let chunk = &mut file[FILE_HEADER..];
    for last in [16, 32] {
        chunk[last..last + 8].copy_from_slice(&5_u64.to_le_bytes());
    }
    update_checksums(chunk);
    file
}

/// Updates the checksums of a chunk.
fn update_checksums(chunk: &mut [u8]) {
    let free_space = u32_at(chunk, 48);
    let records = crc32fast::hash(&chunk[RECORDS..free_space]);
    chunk[52..56].copy_from_slice(&records.to_le_bytes());
    let header = crc32fast::hash(&[&chunk[..120], &chunk[128..RECORDS]].concat());
    chunk[124..128].copy_from_slice(&header.to_le_bytes());
}

/// A chunk of four records, followed by the last six of the ten records that it had before. All checksums match.
fn overwritten() -> Vec<u8> {
    let before = services_from(1, 0..1, 10).finish();
    let mut file = services_from(11, 1..2, 4).finish();
    let free_space = record_offsets(&before, 0)[4];
    file[free_space..].copy_from_slice(&before[free_space..]);
    file
}

/// The second of three chunks has lost its magic.
fn damaged_chunk() -> Vec<u8> {
    let mut file = services(3, 5).finish();
    file[FILE_HEADER + CHUNK..][..8].copy_from_slice(b"LOSTCHNK");
    file
}

/// Records 3, 5 and 7 of ten are damaged: in the frame, in the BinXML, and in a value.
fn damaged_records() -> Vec<u8> {
    let mut file = services(1, 10).finish();
    let offsets = record_offsets(&file, 0);
    // A size that runs past the chunk. The rest of the header is sound.
    file[offsets[2] + 4..][..4].copy_from_slice(&0x00ff_fff0_u32.to_le_bytes());
    // The token of the instance.
    file[offsets[4] + 24 + 4] = 0x7f;
    // The type of the first value in the table, which follows count, definition offset and ID.
    file[offsets[6] + 24 + 4 + 10 + 4 + 2] = 0x6e;
    file
}

/// The file ends in its second chunk, after two of its records and a half.
fn damaged_cut_short() -> Vec<u8> {
    let mut file = services(2, 5).finish();
    let offsets = record_offsets(&file, 1);
    file.truncate(offsets[2] + 60);
    file
}

/// A bit of a record and one of the second chunk's header were changed. The checksums do not match; both still read.
fn damaged_checksums() -> Vec<u8> {
    let mut file = services(3, 5).finish();
    let offsets = record_offsets(&file, 0);
    // The time at which the record was written.
    file[offsets[1] + 16] ^= 1;
    // Among the bytes of the header that nothing reads.
    file[FILE_HEADER + CHUNK + 60] ^= 1;
    file
}
