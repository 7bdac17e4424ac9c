//! Reads columns of a log over and over, for a profiler. usage: scan LOG TIMES COLUMN [COLUMN ...]
//!
//! Prints the median time of a reading. In place of columns, `all` reads every default column, `events` the result of
//! `evtx_schema`, `events=4624,4625` the fields of the events with these IDs, and `sigma=FOLDER` the matches of the Sigma
//! rules in a folder, which it loads each time.

use std::sync::Arc;
use std::time::Instant;

use evtx_arrow::{Events, Options, Scan};
use evtx_events::{EventCollector, Slots};
use evtx_format::Interrupt;
use evtx_format::container::header::FILE_HEADER;
use evtx_query::{Arguments, Query};
use evtx_scan::{ArgumentValue, LocalStorage};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [log, times, columns @ ..] = &arguments[..] else {
        eprintln!("usage: scan LOG TIMES COLUMN [COLUMN ...]");
        return;
    };
    let file = std::fs::read(log).expect("a log");
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let read: Box<dyn Fn() -> usize> = match columns[..] {
        [first] if first.starts_with("events") => {
            let ids = first.strip_prefix("events=");
            let events = ids.map(|ids| Events::of_ids(ids.split(',').map(|id| id.parse().expect("an event ID"))));
            Box::new(move || {
                let mut collector = EventCollector::new(events.clone());
                let slots = Slots {
                    bytes: &file[FILE_HEADER..],
                    ..Slots::default()
                };
                collector.push(slots, Interrupt::NEVER).expect("events");
                collector.fields().len()
            })
        }
        [first] if first.starts_with("sigma=") => {
            let folder = first.trim_start_matches("sigma=").to_owned();
            let layout = evtx_bench::layout(&file);
            Box::new(move || {
                let mut arguments = Arguments::new(Query::Matches);
                let rules = Query::Matches.argument("rules").expect("an argument");
                let value = ArgumentValue::List(vec![folder.clone()]);
                arguments.set(rules, value, "scan").expect("a folder");
                let call = arguments.call(Vec::new(), 1, u64::MAX, &LocalStorage, "scan", Interrupt::NEVER);
                let table = call.expect("rules").table;
                let columns = (0..table.schema().fields().len()).collect::<Vec<_>>();
                let scan = Arc::new(Scan::new(table, &columns));
                evtx_bench::read(&file, &layout, &scan).expect("rows")
            })
        }
        _ => {
            let options = Options {
                xml: columns.contains(&"xml"),
                json: columns.contains(&"json"),
                text: columns.contains(&"text"),
                fields: columns.contains(&"fields"),
                ..Options::default()
            };
            let projection = match columns[..] {
                ["all" | "all+"] => (0..evtx_arrow::schema(&options).fields().len()).collect(),
                _ => evtx_bench::columns(&options, &columns),
            };
            let layout = evtx_bench::layout(&file);
            let with_extras = columns == ["all+"];
            Box::new(move || {
                let mut table = evtx_arrow::Table::from(options);
                if with_extras {
                    table = evtx_extras::Extras::default().of(table, None);
                }
                let scan = Arc::new(Scan::new(table, &projection));
                evtx_bench::read(&file, &layout, &scan).expect("rows")
            })
        }
    };
    let mut rows = 0;
    let mut took: Vec<_> = (0..times.parse().expect("a number"))
        .map(|_| {
            let start = Instant::now();
            rows = read();
            start.elapsed()
        })
        .collect();
    took.sort();
    println!("{rows} rows or fields, median {:?}", took[took.len() / 2]);
}
