//! Tests of modules together, with what callers do not see.

use std::sync::{Arc, RwLock};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt8Type, UInt16Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use evtx_format::Interrupt;
use evtx_format::container::layout::{Block, Layout};
use evtx_format::search::Pattern;
use evtx_writer::{Element, Event, LogWriter, Substitution, Template, Value};

use crate::decode::{DecodeError, Decoder};
use crate::filter::{Comparison, Expression, Literal, Predicate};
use crate::scan::Scan;
use crate::schema::{OnError, Options};
use crate::table::{Table, schema};
use crate::testing::{WRITTEN, data, leaf};

fn block() -> Block {
    Layout::new(4096 + 65_536, 0).block(0).expect("a block")
}

/// Panics in another thread while it holds a lock.
fn panic_with<T: Send + Sync>(lock: &RwLock<T>) {
    let panic = || {
        let _guard = lock.write();
        panic!("with the lock held");
    };
    std::thread::scope(|threads| assert!(threads.spawn(panic).join().is_err()));
}

#[test]
fn a_thread_that_panics_among_what_is_shared_fails_the_others() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../samples/oddities.evtx");
    let chunk = &std::fs::read(sample).expect("a sample")[4096..][..65_536];
    let all: Vec<_> = (0..25).collect();
    let panics: [fn(&Scan); 2] = [
        |scan| panic_with(scan.plans.keys.lock()),
        |scan| panic_with(scan.plans.lock()),
    ];
    for panics in panics {
        let scan = Arc::new(Scan::new(Options::default(), &all));
        let mut decoder = Decoder::new(Arc::clone(&scan));
        for is_poisoned in [false, true] {
            decoder.start(&"x".into(), None, block());
            let decoded = decoder.decode(chunk, Interrupt::NEVER);
            assert_eq!(
                matches!(decoded, Err(DecodeError::Poisoned)),
                is_poisoned,
                "{decoded:?}"
            );
            if !is_poisoned {
                panics(&scan);
            }
            // Its rows are from before, but may have keys that were added since.
            let batch = decoder.flush();
            assert!(matches!(batch, Err(DecodeError::Poisoned)), "{batch:?}");
        }
    }
}

/// The chunks of a log with these events, with IDs from 1 on.
fn chunks(events: impl IntoIterator<Item = Event>) -> Vec<u8> {
    let mut log = LogWriter::new(1);
    for (written, event) in (WRITTEN..).zip(events) {
        log.write(written, &event).expect("an event that fits");
    }
    log.finish().split_off(4096)
}

/// The batches of a block, from a decoder that is given all of it.
fn batches(scan: &Arc<Scan>, bytes: &[u8]) -> Vec<RecordBatch> {
    let block = Layout::new(4096 + bytes.len() as u64, 0)
        .in_blocks_of(1 << 20)
        .block(0)
        .expect("a block");
    let mut decoder = Decoder::new(Arc::clone(scan));
    decoder.start(&"x.evtx".into(), None, block);
    let (mut left, mut batches) = (bytes, Vec::new());
    loop {
        let consumed = decoder.decode(left, Interrupt::NEVER).expect("it goes on");
        left = &left[consumed..];
        match decoder.flush().expect("a batch") {
            Some(batch) => batches.push(batch),
            None => break,
        }
    }
    assert!(decoder.is_done() && left.is_empty());
    batches
}

fn columns(options: Options, names: &[&str]) -> Vec<usize> {
    let schema = schema(&options);
    names
        .iter()
        .map(|name| schema.index_of(name).expect("a column"))
        .collect()
}

fn ids(batches: &[RecordBatch]) -> Vec<u64> {
    let ids = batches
        .iter()
        .flat_map(|batch| batch.column(0).as_primitive::<UInt64Type>().values());
    ids.copied().collect()
}

/// A template of an event whose `EventData` is a child of its own template, as Windows writes it.
struct Templates {
    event: Arc<Template>,
    data: Arc<Template>,
}

impl Templates {
    fn new() -> Self {
        let system = [
            ("EventID", 0),
            ("Level", 1),
            ("Task", 2),
            ("Computer", 3),
            ("Channel", 4),
        ];
        let system = system
            .into_iter()
            .fold(Element::new("System"), |system, (name, index)| {
                system.child(leaf(name, index))
            });
        let event_data = ["a", "b", "c", "d"]
            .into_iter()
            .zip(0..)
            .fold(Element::new("EventData"), |element, (name, index)| {
                element.child(data(name, index))
            });
        Templates {
            event: Template::new(
                [1; 16],
                Element::new("Event")
                    .child(system)
                    .substitution(Substitution::new(5, 33)),
            ),
            data: Template::new([2; 16], event_data),
        }
    }

    fn event(&self, system: [Value; 5], data: [Value; 4]) -> Event {
        let child = Value::BinXml(Event::new(&self.data, data.into()).into());
        Event::new(&self.event, system.into_iter().chain([child]).collect())
    }
}

/// The values of `System` of an event with an ID.
fn system(id: u16) -> [Value; 5] {
    [
        Value::UInt16(id),
        Value::UInt8(4),
        Value::UInt16(0),
        Value::string("pc"),
        Value::string("log"),
    ]
}

/// Numbers that look random, and are the same each time.
fn numbers() -> impl FnMut(usize) -> usize {
    let mut state = 7_u64;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    }
}

/// A value with few different contents, of several sizes and types, and its text.
fn value(number: usize) -> (Value, String) {
    match number {
        0 => (Value::Null, String::new()),
        1 => (Value::UInt16(7), "7".into()),
        2 => (Value::UInt32(7), "7".into()),
        3 => (Value::Int16(7), "7".into()),
        4 => (Value::UInt16(8), "8".into()),
        5 => (Value::string(""), String::new()),
        6 => (Value::string("twelve bytes"), "twelve bytes".into()),
        7 => (Value::string("twelve bytez"), "twelve bytez".into()),
        8 => (Value::string("thirteen byte"), "thirteen byte".into()),
        _ => (Value::HexInt32(7), "0x7".into()),
    }
}

#[test]
fn what_is_remembered_of_other_records_changes_no_row() {
    let (templates, mut number) = (Templates::new(), numbers());
    let mut rows = Vec::new();
    let events = (0..3000).map(|_| {
        let (level, task) = (number(3), number(4));
        let (computer, channel) = (value(5 + number(4)), value(5 + number(3)));
        let data: [_; 4] = std::array::from_fn(|_| value(number(if level == 0 { 2 } else { 10 })));
        rows.push((
            level as u8,
            task as u16,
            computer.1,
            channel.1,
            data.clone().map(|(_, text)| text),
        ));
        let system = [
            Value::UInt16(4624),
            Value::UInt8(level as u8),
            Value::UInt16(task as u16),
            computer.0,
            channel.0,
        ];
        templates.event(system, data.map(|(value, _)| value))
    });
    let bytes = chunks(events);
    let names = [
        "record_id",
        "level",
        "task",
        "computer",
        "channel",
        "event_id",
        "event_data",
    ];
    let projection = columns(Options::default(), &names);
    for force_tree_path in [false, true] {
        let scan = Scan::new(Options::default(), &projection);
        let scan = Arc::new(if force_tree_path { scan.force_tree_path() } else { scan });
        let batches = batches(&scan, &bytes);
        let lens: Vec<_> = batches.iter().map(RecordBatch::num_rows).collect();
        assert_eq!(lens, [2048, 952], "a batch ends in the midst of a chunk");
        assert_eq!(ids(&batches), (1..=3000).collect::<Vec<_>>());
        let mut expected = rows.iter();
        for batch in &batches {
            let name = |column: usize, row: usize| {
                let array = batch.column(column).as_dictionary::<Int32Type>();
                array
                    .values()
                    .as_string::<i32>()
                    .value(array.key(row).expect("a name"))
                    .to_owned()
            };
            let maps = batch.column(6).as_map();
            for row in 0..batch.num_rows() {
                let (level, task, computer, channel, data) = expected.next().expect("a row");
                assert_eq!(batch.column(1).as_primitive::<UInt8Type>().value(row), *level);
                assert_eq!(batch.column(2).as_primitive::<UInt16Type>().value(row), *task);
                assert_eq!((&name(3, row), &name(4, row)), (computer, channel), "row {row}");
                let map = maps.value(row);
                let (keys, values) = (
                    map.column(0).as_dictionary::<Int32Type>(),
                    map.column(1).as_string_view(),
                );
                let names = keys.values().as_string::<i32>();
                let keys: Vec<_> = keys.keys_iter().map(|key| names.value(key.expect("a key"))).collect();
                let values: Vec<_> = values.iter().map(|value| value.expect("a value")).collect();
                assert_eq!(
                    (keys, values),
                    (vec!["a", "b", "c", "d"], data.iter().map(|text| &**text).collect())
                );
            }
        }
    }
}

#[test]
fn a_record_is_dropped_at_the_first_stage_that_can() {
    let templates = Templates::new();
    let events = (1..=100).map(|number: u16| {
        let data = [Value::UInt16(number % 7), Value::Null, Value::Null, Value::Null];
        templates.event(system(number % 10), data)
    });
    let bytes = chunks(events);
    let table = Table::from(Options::default());
    let [record_id, event_id, event_data] = columns(Options::default(), &["record_id", "event_id", "event_data"])[..]
    else {
        panic!("three columns");
    };
    let equals =
        |value, literal| Expression::Compare(Comparison::Equal, Box::new([value, Expression::Constant(literal)]));
    let id = |id| equals(Expression::Column(record_id), Literal::Number(id));
    let event = |id| equals(Expression::Column(event_id), Literal::Number(id));
    let entry = |text: &str| equals(Expression::Entry(event_data, "a".into()), Literal::Text(text.into()));
    let or = |a, b| Expression::Or(vec![a, b]);
    let not = |of| Expression::Not(Box::new(of));
    // The conditions, which records they are true for, and whether any record is read to its `EventData`.
    type Case = (Vec<Expression>, fn(u64) -> bool, bool);
    let cases: [Case; 10] = [
        (vec![], |_| true, true),
        (vec![id(50)], |id| id == 50, true),
        (vec![id(101)], |_| false, false),
        (vec![event(3)], |id| id % 10 == 3, true),
        (vec![event(11)], |_| false, false),
        (vec![id(50), event(3)], |_| false, false),
        (vec![or(id(50), event(3))], |id| id == 50 || id % 10 == 3, true),
        (vec![event(11), entry("3")], |_| false, false),
        (vec![event(3), entry("3")], |id| id % 10 == 3 && id % 7 == 3, true),
        (
            vec![not(entry("3")), not(event(3))],
            |id| id % 10 != 3 && id % 7 != 3,
            true,
        ),
    ];
    for (conditions, is_true, reads_data) in cases {
        let implied = conditions
            .iter()
            .map(|condition| Predicate::implied(&table, condition).expect("decided"));
        let predicates: Vec<_> = implied.collect();
        for projection in [&[record_id][..], &[record_id, event_data]] {
            let scan = Arc::new(Scan::filtered(Options::default(), projection, &predicates));
            let kept = ids(&batches(&scan, &bytes));
            assert_eq!(
                kept,
                (1..=100).filter(|&id| is_true(id)).collect::<Vec<_>>(),
                "{conditions:?}"
            );
            if projection.len() > 1 {
                // Its keys are known once the first is read.
                assert_eq!(!scan.plans.keys.names().is_empty(), reads_data, "{conditions:?}");
            }
        }
    }
}

#[test]
fn a_predicate_on_text_looks_at_all_values_of_its_own_record() {
    let templates = Templates::new();
    // The fifth is long.
    let long = "€".repeat(25_000) + "needle";
    let texts = ["a needle", "hay", "NEEDLE", "hay", long.as_str()];
    let events =
        texts.map(|text| templates.event(system(1), [Value::string(text), Value::Null, Value::Null, Value::Null]));
    let bytes = chunks(events);
    let options = Options {
        text: true,
        ..Options::default()
    };
    let [record_id, text, computer] = columns(options, &["record_id", "text", "computer"])[..] else {
        panic!("three columns");
    };
    let matches = |column, text: &str, ignores_case| {
        let pattern = Pattern {
            text: text.into(),
            escape: None,
            ignores_case,
        };
        Expression::Matches(Box::new(Expression::Column(column)), pattern)
    };
    let cases: [(Expression, &[u64]); 6] = [
        (matches(text, "%needle%", false), &[1, 5]),
        (matches(text, "%needle%", true), &[1, 3, 5]),
        // Each value follows its name.
        (matches(text, "%a: hay%", false), &[2, 4]),
        (matches(text, "%Computer: pc%", false), &[1, 2, 3, 4, 5]),
        (matches(text, "%nothing%", true), &[]),
        (matches(computer, "p%", false), &[1, 2, 3, 4, 5]),
    ];
    for (condition, kept) in cases {
        let predicate = Predicate::implied(&options.into(), &condition).expect("decided");
        // Two predicates on the text write it once.
        for predicates in [vec![predicate.clone()], vec![predicate.clone(), predicate]] {
            let scan = Arc::new(Scan::filtered(options, &[record_id], &predicates));
            assert_eq!(ids(&batches(&scan, &bytes)), kept, "{condition:?}");
        }
    }
}

#[test]
fn an_event_happened_when_it_says() {
    let created = Element::new("TimeCreated").attribute_substitution("SystemTime", Substitution::new(0, 17));
    let template = Template::new(
        [3; 16],
        Element::new("Event").child(Element::new("System").child(created)),
    );
    let epoch = 116_444_736_000_000_000;
    let bytes = chunks((0..5).map(|ticks| Event::new(&template, vec![Value::FileTime(epoch + ticks)])));
    let [record_id, time] = columns(Options::default(), &["record_id", "time_created"])[..] else {
        panic!("two columns");
    };
    let later = Expression::compare(time, Comparison::GreaterOrEqual, Literal::Instant(200));
    let earlier = Expression::compare(time, Comparison::Less, Literal::Instant(400));
    let table = Table::from(Options::default());
    let predicates = [later, earlier].map(|condition| Predicate::implied(&table, &condition).expect("decided"));
    let scan = Arc::new(Scan::filtered(Options::default(), &[record_id], &predicates));
    assert_eq!(ids(&batches(&scan, &bytes)), [3, 4], "not when it was written");
}

#[test]
fn a_batch_ends_at_its_rows_or_at_its_bytes() {
    let template = Template::new(
        [3; 16],
        Element::new("Event").child(Element::new("EventData").child(data("a", 0))),
    );
    let small = chunks((0..2500).map(|_| Event::new(&template, vec![Value::Null])));
    for names in [&["record_id"][..], &["record_id", "event_data"]] {
        let scan = Arc::new(Scan::new(Options::default(), &columns(Options::default(), names)));
        let batches = batches(&scan, &small);
        let lens: Vec<_> = batches.iter().map(RecordBatch::num_rows).collect();
        assert_eq!(lens, [2048, 452], "{names:?}");
        assert_eq!(ids(&batches), (1..=2500).collect::<Vec<_>>());
    }
    // Texts of three bytes for each unit, as long as a buffer of this crate's unit tests allows.
    let template = Template::new(
        [3; 16],
        Element::new("Event").child((0..8).fold(Element::new("EventData"), |element, i| element.child(data("a", i)))),
    );
    let tail = "\u{4e00}".repeat(330);
    let values = |number: usize| (0..8).map(|i| Value::string(format!("{i}{number:4}{tail}"))).collect();
    let large = chunks((0..1200).map(|number| Event::new(&template, values(number))));
    let scan = Arc::new(Scan::new(
        Options::default(),
        &columns(Options::default(), &["record_id", "event_data"]),
    ));
    let lens: Vec<_> = batches(&scan, &large).iter().map(RecordBatch::num_rows).collect();
    // Each value has its text, its view, its index and that of its key.
    let row = 8 * (5 + tail.len() + 16 + 4 + 4);
    let rows = (8_usize << 20).div_ceil(row);
    assert_eq!(lens.iter().sum::<usize>(), 1200);
    // The bytes are checked after each group.
    assert!((rows..rows + 32).contains(&lens[0]), "{lens:?}, {rows} expected");
}

#[test]
fn damage_is_a_row_or_none_or_the_end() {
    let templates = Templates::new();
    let valid = || templates.event(system(1), [Value::Null, Value::Null, Value::Null, Value::Null]);
    let mut bytes = chunks((0..3).map(|_| valid()));
    // The values of the second record have an unknown type.
    let second = memchr::memmem::find_iter(&bytes, b"**\0\0").nth(1).expect("a record");
    let types = second + 24 + 18 + 2;
    bytes[types] = 0x77;
    let options = |on_error| Options {
        on_error,
        ..Options::default()
    };
    let names = ["record_id", "event_id", "time_created", "error"];
    let scan = |on_error| Arc::new(Scan::new(options(on_error), &columns(Options::default(), &names)));
    let batch = &batches(&scan(OnError::Report), &bytes)[0];
    assert_eq!(ids(std::slice::from_ref(batch)), [1, 2, 3]);
    let nulls = |column: usize| (0..3).map(|row| batch.column(column).is_null(row)).collect::<Vec<_>>();
    assert_eq!(
        (nulls(1), nulls(3)),
        (vec![false, true, false], vec![true, false, true])
    );
    assert!(!nulls(2)[1], "when it was written");
    let text = batch.column(3).as_string_view().value(1);
    assert!(
        text.starts_with("x.evtx: chunk 0, offset 0x") && text.contains("0x77"),
        "{text}"
    );
    assert_eq!(ids(&batches(&scan(OnError::Skip), &bytes)), [1, 3]);
    let mut decoder = Decoder::new(scan(OnError::Fail));
    decoder.start(&"x.evtx".into(), None, block());
    let failed = decoder.decode(&bytes, Interrupt::NEVER);
    assert!(
        matches!(&failed, Err(DecodeError::Damaged(error)) if error == text),
        "{failed:?}"
    );
    // Without `error`, the damaged record is a row too.
    let few = Arc::new(Scan::new(
        Options::default(),
        &columns(Options::default(), &["record_id", "event_id"]),
    ));
    assert_eq!(ids(&batches(&few, &bytes)), [1, 2, 3]);
}
