//! Reads columns of a log over and over, for a profiler. usage: scan LOG TIMES COLUMN [COLUMN ...]
//!
//! The median time of a reading goes to standard output. `all` stands for every default column.

use std::sync::Arc;
use std::time::Instant;

use evtx_arrow::{Options, Scan};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [log, times, columns @ ..] = &arguments[..] else {
        eprintln!("usage: scan LOG TIMES COLUMN [COLUMN ...]");
        return;
    };
    let file = std::fs::read(log).expect("a log");
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let options = Options {
        xml: columns.contains(&"xml"),
        json: columns.contains(&"json"),
        text: columns.contains(&"text"),
        fields: columns.contains(&"fields"),
        ..Options::default()
    };
    let projection = match columns[..] {
        ["all"] => (0..evtx_arrow::schema(&options).fields().len()).collect(),
        _ => evtx_bench::columns(&options, &columns),
    };
    let layout = evtx_bench::layout(&file);
    let mut rows = 0;
    let mut took: Vec<_> = (0..times.parse().expect("a number"))
        .map(|_| {
            let start = Instant::now();
            let scan = Arc::new(Scan::new(options, &projection));
            rows = evtx_bench::read(&file, &layout, &scan).expect("rows");
            start.elapsed()
        })
        .collect();
    took.sort();
    println!("{rows} rows, median {:?}", took[took.len() / 2]);
}
