//! Hostile bytes: every sample with random flips, cuts and zeroed runs. Nothing panics, hangs, or takes
//! memory out of proportion.

mod common;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::recovered::Recovering;
use common::{AsTable, column, corpus, every_column, samples};
use cpu_time::ThreadTime;
use evtx_arrow::{Events, OnError, Options, Scan, Table};
use evtx_events::EventCollector;
use evtx_format::Interrupt;
use evtx_reports::{ChunkReport, FileReport, Report, SchemaReport};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The memory that a thread may take besides the file.
const MAX_MEMORY: usize = 64 << 20;
/// How many bytes of memory scans may still hold after they end, at most.
const MAX_KEPT: usize = 1 << 20;
/// The most processor time that the thread may take for a case.
const MAX_TIME: Duration = Duration::from_secs(20);
const CASES: usize = 2000;
/// The longest time that a case took, in microseconds.
static SLOWEST: AtomicUsize = AtomicUsize::new(0);

/// Indices that look random, the same in every run (xorshift).
struct Indices(u64);

impl Indices {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    /// A position that matters more often than not: in a header, or among the first records of a chunk.
    fn position(&mut self, len: usize) -> usize {
        match self.below(4) {
            0 => self.below(len),
            1 => self.below(len.min(4096 + 512)),
            _ => (4096 + self.below(len / 65_536) * 65_536 + self.below(8192)).min(len - 1),
        }
    }
}

/// Damages a log.
fn damage(file: &mut Vec<u8>, numbers: &mut Indices) {
    for _ in 0..=numbers.below(8) {
        let at = numbers.position(file.len());
        match numbers.below(8) {
            0 => file.truncate(at.max(1)),
            1 => {
                let end = (at + numbers.below(4096)).min(file.len());
                file[at..end].fill(0);
            }
            2 => file[at] = 0xff,
            3 => {
                // A number where one may be: small, large, or an offset.
                let number = [
                    0,
                    1,
                    0x7f,
                    0xffff,
                    0xffff_ffff,
                    65_535,
                    512,
                    numbers.below(65_536) as u32,
                ][numbers.below(8)];
                let end = (at + 4).min(file.len());
                file[at..end].copy_from_slice(&number.to_le_bytes()[..end - at]);
            }
            4 => {
                let from = numbers.position(file.len());
                let len = numbers.below(512).min(file.len() - at.max(from));
                file.copy_within(from..from + len, at);
            }
            _ => file[at] ^= 1 << numbers.below(8),
        }
    }
}

/// Reads a log in every way, and checks what it takes.
fn survives(name: &str, file: &[u8]) {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let start = ThreadTime::now();
    let all = Options {
        verify: true,
        location: true,
        xml: true,
        json: true,
        text: true,
        fields: true,
        ..Options::default()
    };
    let skip = Options {
        on_error: OnError::Skip,
        ..Options::default()
    };
    // The columns without `error` are read without the checks that it asks for.
    let mut unchecked = every_column(&skip);
    unchecked.remove(column(&skip, "error"));
    let fail = Options {
        on_error: OnError::Fail,
        ..skip
    };
    let all = Recovering(all);
    for (table, projection) in [
        (all.table(), every_column(&all)),
        (Options::default().table(), unchecked),
        (skip.table(), vec![0]),
        (fail.table(), vec![0]),
    ] {
        // A caller lets go of a batch before it asks for the next.
        let scan = Scan::new(table, &projection);
        let _ = common::scan(file, name, scan, drop);
    }
    tell_of_events(file);
    let peak = MEMORY.peak_usage().saturating_sub(before);
    assert!(peak < MAX_MEMORY, "{name}: {peak} bytes");
    let took = start.elapsed();
    assert!(took < MAX_TIME, "{name}: {took:?}");
    SLOWEST.fetch_max(took.as_micros() as usize, Ordering::Relaxed);
}

/// Reads a log's events by their fields, and the reports on it.
fn tell_of_events(file: &[u8]) {
    let slots = common::slots(file);
    let mut all = EventCollector::new(None);
    let _ = all.push(slots, Interrupt::NEVER);
    let fields = all.fields();
    let events = all.take().into_sorted();
    let mut ids: Vec<u32> = events.iter().filter_map(|event| event.id).collect();
    drop(events);
    ids.sort_unstable();
    ids.dedup();
    let table = Table::of_events(Options::default(), Events::of_ids(ids), &fields, &[]);
    let every: Vec<usize> = (0..table.schema().fields().len()).collect();
    let _ = common::scan(file, "events", Scan::new(table, &every), drop);
    reports(&mut FileReport::default(), file);
    reports(&mut ChunkReport::default(), file);
    let mut events = SchemaReport::new(|field| field.data_type().to_string());
    _ = common::report(&mut events, file, Interrupt::NEVER, |_| ());
}

/// Makes a report on a file, which gives one batch.
fn reports<R: Report>(report: &mut R, file: &[u8]) {
    let rows = common::report(report, file, Interrupt::NEVER, |_| ());
    assert!(rows.is_some());
    assert!(report.batch(true).expect("no batch").is_none());
}

fn survive_damage(logs: &[PathBuf]) {
    for case in 0..if logs.is_empty() { 0 } else { CASES } {
        let log = &logs[case % logs.len()];
        let mut file = std::fs::read(log).expect("the log");
        damage(&mut file, &mut Indices(0x9e37_79b9_7f4a_7c15 ^ (case as u64 + 1)));
        survives(&format!("case {case} of {}", log.display()), &file);
    }
    // For `bench/promises.py`.
    let slowest = SLOWEST.load(Ordering::Relaxed) as f64 / 1e6;
    println!("promise: a damaged log: {slowest:.3} s of {} s", MAX_TIME.as_secs());
}

/// One test, as the memory is that of the process.
#[test]
fn hostile_logs_are_survived() {
    let before = MEMORY.current_usage();
    survive_damage(&samples());
    survive_damage(&corpus());
    let kept = MEMORY.current_usage().saturating_sub(before);
    assert!(kept < MAX_KEPT, "{kept} bytes are left");
}
