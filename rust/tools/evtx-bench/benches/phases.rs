//! What each phase of reading costs, for one block of a log (1 MiB). `EVTX_BENCH_LOG` names the log. Without it, the
//! block repeats the chunks of a sample.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use arrow_array::ffi::FFI_ArrowArray;
use arrow_array::{Array, StructArray};
use bumpalo::Bump;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use evtx_arrow::{Comparison, Decoder, Expression, Literal, Options, Predicate, Scan};
use evtx_bench::columns;
use evtx_format::Interrupt;
use evtx_format::binxml::instance::Definition;
use evtx_format::binxml::names::Names;
use evtx_format::binxml::{Fragment, Reader};
use evtx_format::container::chunk::CHUNK_SIZE;
use evtx_format::container::layout::{BLOCK_CHUNKS, Layout};
use evtx_format::container::record::Record;
use evtx_format::container::records::{PromisedIds, RecordWalk};
use evtx_format::render::program::{Language, Program};

const FILE_HEADER: usize = 4096;

/// The bytes of a block.
fn block() -> Vec<u8> {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../samples/DC01-Security.evtx");
    let log = std::env::var_os("EVTX_BENCH_LOG").map_or(sample, Into::into);
    let log = std::fs::read(log).expect("a log");
    let chunks = log[FILE_HEADER..].chunks_exact(CHUNK_SIZE);
    chunks.cycle().take(BLOCK_CHUNKS as usize).flatten().copied().collect()
}

/// The records of a chunk.
fn records(chunk: &[u8]) -> Vec<Record> {
    let (mut walk, _) = RecordWalk::new(chunk, PromisedIds::default(), false);
    let found = std::iter::from_fn(|| walk.next(chunk));
    found.filter_map(|found| Some(found.ok()?.record)).collect()
}

/// Decodes a block, and hands each batch on.
fn decode(decoder: &mut Decoder, bytes: &[u8], mut take: impl FnMut(arrow_array::RecordBatch)) {
    let layout = Layout::new((FILE_HEADER + bytes.len()) as u64, 0);
    let block = layout.block(0).expect("a block");
    decoder.start(&"log".into(), None, block);
    let mut left = bytes;
    loop {
        let consumed = decoder.decode(left, Interrupt::NEVER).expect("a log");
        left = &left[consumed..];
        match decoder.flush().expect("a batch") {
            Some(batch) => take(batch),
            None => return,
        }
    }
}

fn phases(criterion: &mut Criterion) {
    let block = block();
    let chunks: Vec<&[u8]> = block.chunks_exact(CHUNK_SIZE).collect();
    let mut group = criterion.benchmark_group("phases");
    group.throughput(Throughput::Bytes(block.len() as u64));

    group.bench_function("chunk and record walk", |bencher| {
        bencher.iter(|| {
            chunks
                .iter()
                .map(|chunk| records(black_box(chunk)).len())
                .sum::<usize>()
        });
    });

    let found: Vec<(&[u8], Vec<Record>)> = chunks.iter().map(|chunk| (*chunk, records(chunk))).collect();
    group.bench_function("value table", |bencher| {
        let mut arena = Bump::new();
        bencher.iter(|| {
            for (chunk, records) in &found {
                for record in records {
                    arena.reset();
                    let names = Names::new(chunk, &arena);
                    let reader = Reader::new(chunk, &names, &arena);
                    black_box(reader.next_fragment(&mut reader.fragments(record.binxml())).is_some());
                }
            }
        });
    });

    // Every definition that the block's records use, once per chunk.
    let mut definitions = Vec::new();
    for (chunk, records) in &found {
        let arena = Bump::new();
        let names = Names::new(chunk, &arena);
        let reader = Reader::new(chunk, &names, &arena);
        let mut used: Vec<u32> = records
            .iter()
            .filter_map(
                |record| match reader.next_fragment(&mut reader.fragments(record.binxml())) {
                    Some(Ok(Fragment::Instance(instance))) => Some(instance.definition),
                    _ => None,
                },
            )
            .collect();
        used.sort_unstable();
        used.dedup();
        definitions.extend(used.into_iter().map(|definition| (*chunk, definition)));
    }
    group.bench_function("template compile", |bencher| {
        let mut arena = Bump::new();
        bencher.iter(|| {
            for &(chunk, definition) in &definitions {
                arena.reset();
                let names = Names::new(chunk, &arena);
                let reader = Reader::new(chunk, &names, &arena);
                let definition = Definition::read(chunk, definition).expect("a definition");
                let template = reader.template(&definition).expect("a template");
                black_box(Program::new(Language::Xml, template.root));
            }
        });
    });

    let options = Options {
        xml: true,
        json: true,
        text: true,
        fields: true,
        ..Options::default()
    };
    let event = columns(&options, &["event_id"])[0];
    let none = Expression::compare(event, Comparison::Equal, Literal::Number(1));
    let none = Predicate::implied(&options.into(), &none);
    let scans = [
        (
            "predicate",
            Scan::filtered(options, &[0], &[none.expect("decided here")]),
        ),
        (
            "column append, numbers",
            Scan::new(options, &columns(&options, &["event_id", "task", "process_id"])),
        ),
        (
            "column append, names",
            Scan::new(options, &columns(&options, &["provider", "channel", "computer"])),
        ),
        (
            "column append, event_data",
            Scan::new(options, &columns(&options, &["event_data"])),
        ),
        ("text rendering, xml", Scan::new(options, &columns(&options, &["xml"]))),
        (
            "text rendering, json",
            Scan::new(options, &columns(&options, &["json"])),
        ),
    ];
    for (name, scan) in scans {
        let mut decoder = Decoder::new(Arc::new(scan));
        group.bench_function(name, |bencher| {
            bencher.iter(|| decode(&mut decoder, &block, |batch| drop(black_box(batch))));
        });
    }

    let every: Vec<usize> = (0..evtx_arrow::schema(&Options::default()).fields().len()).collect();
    let mut batches = Vec::new();
    let mut decoder = Decoder::new(Arc::new(Scan::new(Options::default(), &every)));
    decode(&mut decoder, &block, |batch| batches.push(batch));
    group.bench_function("Arrow hand-over", |bencher| {
        bencher.iter(|| {
            for batch in &batches {
                black_box(FFI_ArrowArray::new(&StructArray::from(batch.clone()).to_data()));
            }
        });
    });
    group.finish();
}

criterion_group!(benches, phases);
criterion_main!(benches);
