//! Once a scan has met its templates, a record costs no allocation: only batches and chunks do.

mod common;

use std::sync::Arc;

use common::{column, samples};
use evtx_arrow::{Comparison, Decoder, Expression, Literal, Options, Predicate, Scan, schema};
use evtx_format::Interrupt;
use evtx_format::container::layout::{BLOCK_CHUNKS, Layout};

const CHUNK: usize = 65_536;
const FILE_HEADER: usize = 4096;

/// Most allocations per column and chunk. One for each record would be 25 at least.
const LIMIT: f64 = 10.0;

/// Decodes a block and drops its batches. Returns the rows.
fn decode(decoder: &mut Decoder, name: &Arc<str>, bytes: &[u8]) -> usize {
    let layout = Layout::new((FILE_HEADER + bytes.len()) as u64, 0);
    let block = layout.block(0).expect("a block");
    decoder.start(name, None, block);
    let (mut left, mut rows) = (bytes, 0);
    loop {
        let consumed = decoder.decode(left, Interrupt::NEVER).expect("a valid log");
        left = &left[consumed..];
        match decoder.flush().expect("a batch") {
            Some(batch) => rows += batch.num_rows(),
            None => return rows,
        }
    }
}

/// The allocations that a scan of a block makes once it has met the templates, per column and chunk.
fn allocations(sample: &str, scan: Scan) -> f64 {
    let log = samples()
        .into_iter()
        .find(|log| log.ends_with(sample))
        .expect("a sample");
    let log = std::fs::read(log).expect("a log");
    let block = log[FILE_HEADER..][..CHUNK].repeat(BLOCK_CHUNKS as usize);
    let columns = scan.schema().fields().len();
    let mut decoder = Decoder::new(Arc::new(scan));
    let name: Arc<str> = sample.into();
    for _ in 0..4 {
        decode(&mut decoder, &name, &block);
    }
    let mut rows = 0;
    let counted = allocation_counter::measure(|| rows = decode(&mut decoder, &name, &block));
    assert!(rows > 300, "{rows} rows");
    println!(
        "{sample}, {columns} columns: {} allocations for {rows} rows",
        counted.count_total
    );
    counted.count_total as f64 / (columns as f64 + BLOCK_CHUNKS as f64)
}

#[test]
fn a_record_costs_no_allocation() {
    let options = Options {
        xml: true,
        json: true,
        text: true,
        fields: true,
        ..Options::default()
    };
    let every: Vec<usize> = (0..schema(&options).fields().len()).collect();
    let named = |name| column(&options, name);
    let failed = Expression::compare(named("event_id"), Comparison::Equal, Literal::Number(4625));
    let failed = Predicate::implied(&options.into(), &failed);
    for sample in ["DC01-Security.evtx", "DC01-Sysmon.evtx"] {
        for columns in [
            &[0][..],
            &[named("event_id"), named("computer")],
            &[named("event_data")],
            &every,
        ] {
            let each = allocations(sample, Scan::new(options, columns));
            assert!(each < LIMIT, "{each} allocations per column and chunk of {sample}");
        }
    }
    let filtered = Scan::filtered(options, &every, &[failed.expect("decided here")]);
    assert!(allocations("DC01-Security.evtx", filtered) < LIMIT);
}
