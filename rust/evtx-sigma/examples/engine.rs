//! Measures the engine: the time to load rules, and to match an event.
//!
//! usage: engine RULES LOGS ...
//!
//! RULES is a folder of rules, LOGS are folders of logs. Events are read into memory first.

#[path = "../tests/logs/mod.rs"]
mod logs;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use evtx_sigma::{Matching, RuleSet};
use logs::{Kinds, LogEvent, files, rules};

/// The number of further passes over the events. The best is printed.
const PASSES: usize = 10;

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let folder = arguments.next().expect("usage: engine RULES LOGS ...");
    let texts = files(&folder, "yml");
    let texts: Vec<String> = texts
        .iter()
        .map(|file| std::fs::read_to_string(file).expect("a text"))
        .collect();
    let start = Instant::now();
    let rules = rules(&texts);
    let loaded = start.elapsed();
    let set = Arc::new(RuleSet::new(rules));
    println!(
        "{} rules loaded in {loaded:.3?}, with the set in {:.3?}; memory now {} MiB",
        set.rules().len(),
        start.elapsed(),
        resident()
    );
    for folder in arguments {
        let events: Vec<LogEvent> = files(&folder, "evtx")
            .iter()
            .flat_map(|log| LogEvent::all(log))
            .collect();
        let mut kinds = Kinds::default();
        let before = resident();
        let start = Instant::now();
        let of_event: Vec<_> = events.iter().map(|event| kinds.of(event, &set)).collect();
        let (made, count) = (start.elapsed(), kinds.len());
        let mut matching = Matching::new(set.clone());
        let mut found = Vec::new();
        let mut pass = || {
            found.clear();
            let start = Instant::now();
            for (event, kind) in events.iter().zip(&of_event) {
                matching
                    .matches(kind, event, &|| false, &mut found)
                    .expect("nobody stops");
            }
            start.elapsed().as_secs_f64() * 1e6 / events.len() as f64
        };
        let first = pass();
        let best = (0..PASSES).map(|_| pass()).fold(f64::MAX, f64::min);
        let asked = of_event.iter().filter(|kind| !kind.is_empty()).count();
        println!(
            "{}: {} events ({asked} of kinds that can match), {} matches, first {first:.2} us an event, then \
             {best:.2}; {count} kinds of {} KiB in {made:.3?}; memory {before} -> {} MiB",
            folder.display(),
            events.len(),
            found.len(),
            kinds.bytes() >> 10,
            resident(),
        );
    }
}

/// The memory of the process in MiB, or 0 if unknown.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<usize>().ok());
    kib.unwrap_or(0) >> 10
}
