//! Archives with random damage to their structure, in which checksums match again: nothing panics or hangs, and what is
//! found is a row.

use super::*;
use crate::packed::*;
use crate::tars::{member, sign, tar};

/// How many archives of each kind are damaged.
const CASES: u64 = 3000;
/// The longest time that a case took, in microseconds.
static SLOWEST: AtomicUsize = AtomicUsize::new(0);

/// Numbers that look random, the same in every run (xorshift).
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    /// Damages bytes in a few places.
    fn damage(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(4) {
            let at = self.below(bytes.len());
            match self.below(7) {
                0 => bytes[at] = 0,
                1 => bytes[at] = 0xFF,
                2 => bytes[at] ^= 1 << self.below(8),
                3 => drop(bytes.remove(at)),
                4 => bytes.insert(at, self.below(256) as u8),
                5 => {
                    let large = [u64::MAX, 1 << 63, i64::MAX as u64, 1 << 32, 1 << 20][self.below(5)];
                    bytes.splice(at..at + 1, number(large));
                }
                _ => {
                    let end = (at + self.below(16)).min(bytes.len());
                    let piece = bytes[at..end].to_vec();
                    let to = self.below(bytes.len());
                    bytes.splice(to..to, piece);
                }
            }
        }
    }
}

/// Reads an archive in a folder, without an error, in bounded time. Returns how many records there are.
fn found(end: &str, bytes: &[u8], case: u64) -> usize {
    let started = ThreadTime::now();
    let storage = Memory::default().with(&format!("l/a{end}"), bytes);
    let folder = read(&storage, "l", &Archives::new(64 << 20, 0, None), 1);
    let took = started.elapsed();
    assert!(took < MAX_TIME, "{end} {case}: {took:?}");
    SLOWEST.fetch_max(took.as_micros() as usize, Ordering::Relaxed);
    match folder {
        Ok(rows) => rows.iter().map(|row| row.1).sum(),
        Err(ScanError::NoFiles(_)) => 0,
        Err(error) => panic!("{end} {case}: {error:?}"),
    }
}

/// Checks that damage cost records of some archives, and not of all. Prints how long the slowest took.
fn some_are_whole(whole: usize) {
    println!("{whole} of {CASES} archives gave all records");
    promised(
        "a damaged archive",
        Duration::from_micros(SLOWEST.load(Ordering::Relaxed) as u64),
        10,
    );
    assert!(whole > 0 && whole < CASES as usize);
}

#[test]
#[ignore = "slow"]
fn damaged_lists_of_7z_archives_are_told() {
    let log = &sample("WS07-Security.evtx")[..];
    let folders = [
        solid(&[log, b"nothing", log]),
        Folder {
            coders: vec![
                coder(&[0x21], &[16], log.len() as u64),
                coder(&[3], &[1], log.len() as u64),
                coder(&[4], &[], log.len() as u64),
            ],
            packed: lzma2(log),
            parts: vec![(log.len() as u64, None)],
        },
        copied(&[&log[..5000]]),
    ];
    let names = ["a.evtx", "b.txt", "c.evtx", "d.evtx", "e.evtx", "empty.evtx", "folder"];
    let kinds = [[Kind::Stream; 5].as_slice(), &[Kind::Empty, Kind::Folder]].concat();
    let list: Vec<_> = names.iter().zip(kinds).map(|(name, kind)| named(name, kind)).collect();
    let packed: Vec<u8> = folders.iter().flat_map(|folder| folder.packed.clone()).collect();
    let sound = header(&streams(&folders), &files(&list));
    assert_eq!(found(".7z", &sealed(&packed, &sound), 0), 8);
    let mut whole = 0;
    for case in 1..=CASES {
        let (mut bytes, mut numbers) = (sound.clone(), Numbers(case * 0x9E37_79B9));
        numbers.damage(&mut bytes);
        // Every other list is compressed itself.
        let archive = match case % 2 {
            0 => sealed(&packed, &bytes),
            _ => {
                let mut folder = solid(&[&bytes]);
                let start = packed.len() as u64;
                let list = std::mem::take(&mut folder.packed);
                folder.packed = list.clone();
                let mut outer = streams(std::slice::from_ref(&folder));
                outer.splice(1..2, number(start));
                sealed(&[&packed[..], &list].concat(), &[&[0x17][..], &outer].concat())
            }
        };
        whole += usize::from(found(".7z", &archive, case) == 8);
    }
    some_are_whole(whole);
}

#[test]
fn damaged_headers_of_tar_archives_are_told() {
    let log = &sample("WS07-Security.evtx")[..];
    let archive = tar(&[
        member(b"x", b'x', b"16 path=aa.evtx\n"),
        member(b"a.evtx", b'0', log),
        member(b"././@LongLink", b'L', b"folder/b.evtx\0"),
        member(b"b.evtx", b'0', &log[..5000]),
        member(b"link.evtx", b'2', b""),
    ]);
    let sound = found(".tar", &archive, 0);
    let headers: Vec<_> = (0..archive.len())
        .step_by(512)
        .filter(|at| &archive[at + 257..][..5] == b"ustar")
        .collect();
    let mut whole = 0;
    for case in 1..=CASES {
        let (mut bytes, mut numbers) = (archive.clone(), Numbers(case * 0x9E37_79B9));
        let at = headers[numbers.below(headers.len())];
        let mut header = bytes[at..at + 512].to_vec();
        numbers.damage(&mut header);
        header.resize(512, 0);
        sign(&mut header);
        bytes[at..at + 512].copy_from_slice(&header);
        if case % 7 == 0 {
            bytes.truncate(numbers.below(bytes.len()));
        }
        whole += usize::from(found(".tar", &bytes, case) >= sound);
    }
    some_are_whole(whole);
}

/// Streams in which any byte can be wrong: the records before the damage come, and a row.
#[test]
fn damaged_streams_are_told() {
    let log = &sample("WS07-Security.evtx")[..];
    let tar = tar(&[member(b"a.evtx", b'0', log), member(b"b.evtx", b'0', log)]);
    let mut archives = crate::tars::compressed(&tar);
    archives.push((".7z", seven_of(&[("a.evtx", log), ("b.evtx", log)])));
    for (end, archive) in archives {
        for case in 1..=CASES / 20 {
            let (mut bytes, mut numbers) = (archive.clone(), Numbers(case * 0x9E37_79B9));
            numbers.damage(&mut bytes);
            found(end, &bytes, case);
        }
    }
}
