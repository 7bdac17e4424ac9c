//! Hostile bytes: every sample with random flips, cuts and zeroed runs. Nothing panics, hangs, or takes
//! memory out of proportion.

mod common;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use common::{corpus, every_column, read, samples};
use evtx_arrow::{Catalog, ChunkReport, Events, FileReport, OnError, Options, Report, Scan, Table};
use evtx_format::Interrupt;
use evtx_writer::{Element, Event, Hole, LogWriter, Part, Stream, Template, Value};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What a thread may take beside the file.
const MAX_MEMORY: usize = 64 << 20;
/// What a case may take, with room for a slow machine.
const MAX_TIME: Duration = Duration::from_secs(20);
const CASES: usize = 2000;

/// Numbers that look random, the same in every run (xorshift).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    /// A place that matters more often than not: in a header, or among the first records of a chunk.
    fn place(&mut self, len: usize) -> usize {
        match self.below(4) {
            0 => self.below(len),
            1 => self.below(len.min(4096 + 512)),
            _ => (4096 + self.below(len / 65_536) * 65_536 + self.below(8192)).min(len - 1),
        }
    }
}

/// Damages a log.
fn damage(file: &mut Vec<u8>, numbers: &mut Numbers) {
    for _ in 0..=numbers.below(8) {
        let at = numbers.place(file.len());
        match numbers.below(8) {
            0 => file.truncate(at.max(1)),
            1 => {
                let end = (at + numbers.below(4096)).min(file.len());
                file[at..end].fill(0);
            }
            2 => file[at] = 0xff,
            3 => {
                // A number where one may stand: small, large, or an offset.
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
                let from = numbers.place(file.len());
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
    let start = Instant::now();
    let all = Options {
        verify: true,
        location: true,
        xml: true,
        json: true,
        recover: true,
        ..Options::default()
    };
    let skip = Options {
        on_error: OnError::Skip,
        ..Options::default()
    };
    // The columns without `error` are read without the checks that it asks for.
    let unchecked: Vec<usize> = every_column(&skip).into_iter().filter(|column| *column != 23).collect();
    for (options, projection) in [
        (all, every_column(&all)),
        (Options::default(), unchecked),
        (skip, vec![0]),
        (
            Options {
                on_error: OnError::Fail,
                ..skip
            },
            vec![0],
        ),
    ] {
        // A caller lets go of a batch before it asks for the next.
        let _ = common::read_with(file, name, options, &projection, drop);
    }
    tell_of_events(file);
    let peak = MEMORY.peak_usage().saturating_sub(before);
    assert!(peak < MAX_MEMORY, "{name}: {peak} bytes");
    assert!(start.elapsed() < MAX_TIME, "{name}: {:?}", start.elapsed());
}

/// Reads a log's events by their fields, and the reports on it.
fn tell_of_events(file: &[u8]) {
    let chunks = &file[4096.min(file.len())..];
    let mut all = Catalog::new(None);
    let _ = all.push(chunks, Interrupt::NEVER);
    let batch = all.batch(|field| field.data_type().to_string()).expect("a batch");
    let mut ids: Vec<u32> = batch.column(1).as_primitive::<UInt32Type>().iter().flatten().collect();
    ids.sort_unstable();
    ids.dedup();
    let events = Events {
        ids: ids.into(),
        provider: None,
    };
    let table = Table::of_events(Options::default(), events, &all.fields());
    let every: Vec<usize> = (0..table.schema().fields().len()).collect();
    let _ = common::scan(file, "events", Scan::new(table, &every), drop);
    for mut report in [
        Box::new(FileReport::default()) as Box<dyn Report>,
        Box::new(ChunkReport::default()),
    ] {
        report.start("x", file.len() as u64);
        let header = report.push(&file[..4096.min(file.len())], Interrupt::NEVER);
        let failure = header
            .and_then(|()| report.push(chunks, Interrupt::NEVER))
            .err()
            .map(|error| error.to_string());
        report.end(failure.as_deref());
        assert!(report.batch(true).expect("a batch").is_some());
        assert!(report.batch(true).expect("no batch").is_none());
    }
}

fn survive_damage(logs: &[PathBuf]) {
    for case in 0..if logs.is_empty() { 0 } else { CASES } {
        let log = &logs[case % logs.len()];
        let mut file = std::fs::read(log).expect("the log");
        damage(&mut file, &mut Numbers(0x9e37_79b9_7f4a_7c15 ^ (case as u64 + 1)));
        survives(&format!("case {case} of {}", log.display()), &file);
    }
}

/// One test, as the memory is that of the process.
#[test]
fn hostile_logs_are_survived() {
    bombs();
    survive_damage(&samples());
    survive_damage(&corpus());
}

/// Small records that would grow without limit.
fn bombs() {
    for (name, stream) in [
        ("values in values", nested_values()),
        ("one value in many holes", shared_value()),
        ("one text in many holes", shared_text()),
        ("arrays of arrays", crossed_arrays()),
        ("deep elements", deep_elements()),
        ("a short text in many holes", shared_short_text()),
        ("long names, short enough", long_names(400)),
        ("long names", long_names(3_000)),
    ] {
        let mut log = LogWriter::new(1);
        // As many as come in a row, of those of which a chunk has room for some.
        for _ in 0..16 {
            log.write_stream(0, &stream).expect("a bomb that fits a chunk");
        }
        let sound = Element::new("Event").child(Element::new("System").child(Element::new("EventID").text("7")));
        log.write_stream(0, &Stream::new(vec![Part::Element(sound)]))
            .expect("a record that fits");
        let file = log.finish();
        survives(name, &file);
        // The next record still comes.
        let options = Options::default();
        let batches = read(&file, name, options, &every_column(&options)).expect("a log");
        let rows: Vec<_> = batches
            .iter()
            .flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)))
            .collect();
        let (batch, row) = rows.last().expect("rows");
        assert_eq!(common::cell(batch, "event_id", *row).as_deref(), Some("7"), "{name}");
    }
}

fn template(tag: u8, root: Element) -> std::sync::Arc<Template> {
    Template::new([tag; 16], root)
}

/// Each value holds the next in two holes: two to the power of sixty elements.
fn nested_values() -> Stream {
    let twice = |name: &str| Element::new(name).hole(Hole::new(0, 33)).hole(Hole::new(0, 33));
    let pair = template(1, twice("Data"));
    let mut value = Value::string("leaf");
    for _ in 0..60 {
        value = Value::BinXml(Event::new(&pair, vec![value]).into());
    }
    let data = template(2, twice("EventData"));
    let event = template(3, Element::new("Event").hole(Hole::new(0, 33)));
    Event::new(&event, vec![Value::BinXml(Event::new(&data, vec![value]).into())]).into()
}

fn shared_value() -> Stream {
    let leaves = (0..200).fold(Element::new("Data"), |element, _| {
        element.child(Element::new("L").text("x"))
    });
    let value = Stream::new(vec![Part::Element(leaves)]);
    let data = (0..2000).fold(Element::new("EventData"), |element, _| element.hole(Hole::new(0, 33)));
    event_of(data, vec![Value::BinXml(value)])
}

fn shared_text() -> Stream {
    let data = (0..2000).fold(Element::new("EventData"), |element, _| {
        element.child(Element::new("D").hole(Hole::new(0, 1)))
    });
    event_of(data, vec![Value::string("日本".repeat(6000))])
}

fn shared_short_text() -> Stream {
    let text = (0..6000).fold(Element::new("D"), |element, _| element.hole(Hole::new(0, 1)));
    event_of(
        Element::new("EventData").child(text),
        vec![Value::string("日本".repeat(50))],
    )
}

/// Elements that are spelled out, each of a few bytes that stand for 10,000 of text.
fn long_names(count: usize) -> Stream {
    let list = (0..count).fold(Element::new("List"), |list, _| {
        list.child(Element::new("n".repeat(10_000)))
    });
    let data = Element::new("UserData").hole(Hole::new(0, 33));
    event_of(data, vec![Value::BinXml(Stream::new(vec![Part::Element(list)]))])
}

fn crossed_arrays() -> Stream {
    let items = || Value::StringArray(vec!["x".to_owned(); 1000]);
    let holes = (0..4).fold(Element::new("Data"), |element, i| element.hole(Hole::new(i, 0x81)));
    event_of(
        Element::new("EventData").child(holes),
        vec![items(), items(), items(), items()],
    )
}

fn deep_elements() -> Stream {
    let deep = (0..1500).fold(Element::new("X"), |inner, _| Element::new("X").child(inner));
    Stream::new(vec![Part::Element(
        Element::new("Event").child(Element::new("EventData").child(deep)),
    )])
}

fn event_of(data: Element, values: Vec<Value>) -> Stream {
    let event = template(4, Element::new("Event").hole(Hole::new(0, 33)));
    let data = template(5, data);
    Event::new(&event, vec![Value::BinXml(Event::new(&data, values).into())]).into()
}
