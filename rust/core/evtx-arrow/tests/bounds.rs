//! What a crafted log may cost: the time between two looks for an interrupt, and memory. Each of these logs is small,
//! and would take minutes or gigabytes if its work were not bounded.

mod common;

use std::cell::Cell;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::RecordBatch;
use common::recovered::Recovering;
use common::{AsTable, column, every_column, logs, read};
use cpu_time::ThreadTime;
use evtx_arrow::{Comparison, DecodeError, Decoder, Events, Expression, Literal, Options, Predicate, Scan, Table};
use evtx_detect::{Rules, table_of_matches};
use evtx_events::EventCollector;
use evtx_format::container::survey::Search;
use evtx_format::{Interrupt, MAX_NESTING, MAX_OPEN_ELEMENTS};
use evtx_messages::mta::{self, SavedMessages};
use evtx_reports::{ChunkReport, FileReport, SchemaReport};
use evtx_sigma::{LogSources, Placeholders, RuleForEvents, RuleSet, load_rules};
use evtx_writer::{Element, Event, Fragment, LogWriter, Stream, Substitution, Template, Value};
use peak_alloc::PeakAlloc;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The memory that a thread may take besides the file and the largest batch.
const MAX_MEMORY: usize = 64 << 20;
/// The most bytes of a batch: a row can have several texts of 16 MiB.
const MAX_BATCH: usize = 64 << 20;
/// Bytes of stack that all of it does with.
const MAX_STACK: usize = 256 << 10;
/// The longest time of the CPU without a look for an interrupt. It is a tenth of this in a release build.
const MAX_GAP: Duration = Duration::from_secs(1);
/// After so many looks, work is interrupted: what is done by then is the same on every machine.
const MAX_LOOKS: usize = 1_000;

/// What was too much.
static FAILURES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// What some work costs.
struct Cost {
    start: ThreadTime,
    last_look: Cell<ThreadTime>,
    gap: Cell<Duration>,
    largest_batch: Cell<usize>,
    looks: Cell<usize>,
}

impl Cost {
    /// A look for an interrupt.
    fn is_late(&self) -> bool {
        let last_look = self.last_look.replace(ThreadTime::now());
        self.gap.set(self.gap.get().max(last_look.elapsed()));
        self.looks.set(self.looks.get() + 1);
        self.looks.get() > MAX_LOOKS
    }

    fn take(&self, batch: &RecordBatch) {
        self.largest_batch
            .set(self.largest_batch.get().max(batch.get_array_memory_size()));
        // The engine looks for one, too.
        self.is_late();
    }
}

/// Does some work, and checks what it costs.
fn measure(what: &str, work: impl FnOnce(&Cost, Interrupt<'_>)) {
    let now = ThreadTime::now();
    let cost = Cost {
        start: now,
        last_look: Cell::new(now),
        gap: Cell::default(),
        largest_batch: Cell::default(),
        looks: Cell::default(),
    };
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    work(&cost, Interrupt::new(&|| cost.is_late()));
    cost.is_late();
    let peak = MEMORY.peak_usage().saturating_sub(before);
    let (gap, all) = (cost.gap.get(), cost.start.elapsed());
    if std::env::var_os("EVTX_BOUNDS").is_some() {
        println!(
            "{what}: {gap:.1?} of {all:.1?}, {} looks, {} KiB, batch {} KiB",
            cost.looks.get(),
            peak >> 10,
            cost.largest_batch.get() >> 10
        );
    }
    let mut failures = FAILURES.lock().expect("a lock");
    if gap > MAX_GAP {
        failures.push(format!("{what}: {gap:?} without a look for an interrupt"));
    }
    let largest = cost.largest_batch.get();
    if largest > MAX_BATCH {
        failures.push(format!("{what}: a batch of {largest} bytes"));
    }
    if peak > MAX_MEMORY + largest {
        failures.push(format!("{what}: {peak} bytes, {largest} of them for a batch"));
    }
}

/// Reads a log with a scan.
fn scan(file: &[u8], new: Scan, cost: &Cost, interrupt: Interrupt<'_>) {
    let mut survey = new.survey(file.len() as u64, Search::Every);
    while let Some(range) = survey.wants() {
        if survey.push(&file[range.start as usize..range.end as usize]).is_err() {
            return;
        }
    }
    let layout = survey.layout().expect("the survey is done");
    let mut decoder = Decoder::new(Arc::new(new));
    for number in 0..layout.blocks() {
        let block = layout.block(number).expect("a block");
        let mut bytes = &file[block.offset as usize..][..block.len as usize];
        decoder.start(&"x".into(), None, block);
        loop {
            match decoder.decode(bytes, interrupt) {
                Ok(consumed) => bytes = &bytes[consumed..],
                Err(DecodeError::Interrupted(_)) => return,
                Err(error) => panic!("{error}"),
            }
            match decoder.flush().expect("a batch") {
                Some(batch) => cost.take(&batch),
                None => break,
            }
        }
    }
}

/// Reads a log in every way, and checks what each costs.
fn costs(name: &str, file: &[u8]) {
    let all = Options {
        verify: true,
        location: true,
        xml: true,
        json: true,
        text: true,
        fields: true,
        ..Options::default()
    };
    let texts = Options {
        xml: true,
        json: true,
        text: true,
        fields: true,
        ..Options::default()
    };
    let plain = Options::default();
    let all = Recovering(all);
    let mut projections = vec![
        (all.table(), every_column(&all)),
        (plain.table(), every_column(&plain)),
        (plain.table(), vec![0]),
    ];
    for name in [
        "event_id",
        "computer",
        "event_data",
        "user_data",
        "xml",
        "json",
        "error",
    ] {
        projections.push((texts.table(), vec![column(&texts, name)]));
    }
    for (table, projection) in projections {
        let what = format!("{name}, {} columns from {:?}", projection.len(), projection.first());
        measure(&what, |cost, interrupt| {
            scan(file, Scan::new(table.clone(), &projection), cost, interrupt)
        });
    }
    let texts = |column: usize| {
        let terms = (0..50).map(|number| {
            let sides = [
                Expression::Entry(column, format!("D_{number}").into()),
                Expression::Constant(Literal::Text("nothing".into())),
            ];
            Expression::Compare(Comparison::Contains, Box::new(sides))
        });
        Expression::Or(terms.collect())
    };
    let condition = texts(column(&plain, "event_data"));
    let predicate = Predicate::implied(&plain.into(), &condition).expect("decided here");
    measure(&format!("{name}, a predicate"), |cost, interrupt| {
        scan(file, Scan::filtered(plain, &[0], &[predicate]), cost, interrupt);
    });
    let rules = table_of_matches(Table::from(Options::default()), many_rules());
    let every: Vec<usize> = (0..rules.schema().fields().len()).collect();
    measure(&format!("{name}, many rules"), |cost, interrupt| {
        // Each row takes long.
        cost.looks.set(MAX_LOOKS - 200);
        scan(file, Scan::new(rules, &every), cost, interrupt);
    });
    events(name, file);
}

/// Rules that match every event.
fn many_rules() -> Arc<Rules> {
    let text = "title: any\nlogsource: {product: windows}\ndetection: {a: {Nothing: x}, condition: not a}";
    let rule = load_rules(text, &Placeholders::new()).remove(0).expect("a rule");
    let alternatives = LogSources::builtin().resolve(&rule.log_sources).expect("an entry");
    let rules = vec![RuleForEvents { rule, alternatives }; 60];
    Arc::new(Rules::new(RuleSet::new(rules), vec!["".into(); 60]))
}

/// Reads a log's events by their fields, and the reports on it.
fn events(name: &str, file: &[u8]) {
    let slots = common::slots(file);
    let mut collector = EventCollector::new(None);
    measure(&format!("{name}, collector"), |_, interrupt| {
        _ = collector.push(slots, interrupt)
    });
    let mut fields = Vec::new();
    measure(&format!("{name}, fields"), |_, _| fields = collector.fields());
    drop(collector);
    let events = Events::of_ids(0..=u32::from(u16::MAX));
    let mut table = None;
    measure(&format!("{name}, table"), |_, _| {
        table = Some(Table::of_events(Options::default(), events, &fields, &[]));
    });
    let table = table.expect("a table");
    let every: Vec<usize> = (0..table.schema().fields().len()).collect();
    measure(
        &format!("{name}, {} columns of events", every.len()),
        |cost, interrupt| {
            scan(file, Scan::new(table, &every), cost, interrupt);
        },
    );
    measure(&format!("{name}, schema"), |cost, interrupt| {
        let mut report = SchemaReport::new(|field| field.data_type().to_string());
        common::report(&mut report, file, interrupt, |batch| cost.take(batch));
    });
    measure(&format!("{name}, files"), |cost, interrupt| {
        common::report(&mut FileReport::default(), file, interrupt, |batch| cost.take(batch));
    });
    measure(&format!("{name}, chunks"), |cost, interrupt| {
        common::report(&mut ChunkReport::default(), file, interrupt, |batch| cost.take(batch));
    });
}

/// One test, as the memory is that of the process. An engine's threads have larger stacks, but not all of that is ours.
#[test]
#[ignore = "slow"]
fn the_work_for_crafted_logs_is_bounded() {
    let thread = std::thread::Builder::new().stack_size(MAX_STACK);
    let work = thread.spawn(read_crafted_logs).expect("a thread");
    work.join().expect("what costs too much is printed above");
}

fn read_crafted_logs() {
    let only = std::env::var("EVTX_BOUNDS").unwrap_or_default();
    for (name, stream) in bombs() {
        if !name.contains(&only) {
            continue;
        }
        let mut log = LogWriter::new(1);
        // As many in a row as fit a chunk.
        for _ in 0..8 {
            log.write_stream(0, &stream)
                .unwrap_or_else(|error| panic!("{name}: {error:?}"));
        }
        let valid = Element::new("Event").child(Element::new("System").child(Element::new("EventID").text("7")));
        log.write_stream(0, &Stream::new(vec![Fragment::Element(valid)]))
            .expect("a record that fits");
        let file = log.finish();
        costs(name, &file);
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
    if "many templates".contains(&only) {
        costs("many templates", &many_templates());
    }
    for (name, file) in crafted_messages() {
        if name.contains(&only) {
            messages(name, file);
        }
    }
    let folder = std::env::var_os("EVTX_HOSTILE");
    for path in folder.map(|folder| logs(Path::new(&folder))).unwrap_or_default() {
        let name = path.display().to_string();
        if name.contains(&only) {
            costs(&name, &std::fs::read(&path).expect("the log"));
        }
    }
    let failures = FAILURES.lock().expect("a lock");
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Reads a file of messages, which may take more memory the larger it is.
fn messages(name: &str, file: Vec<u8>) {
    let size = file.len();
    measure(name, |cost, interrupt| {
        let read = SavedMessages::read(file, interrupt);
        let allowed = mta::memory(size) as usize - size;
        cost.largest_batch.set(allowed.saturating_sub(MAX_MEMORY));
        if let Ok(messages) = read {
            let mut out = Vec::new();
            messages.push("provider", 1, 1, &mut out);
            assert!(out.len() <= 2 << 20, "{name}: a message of {} bytes", out.len());
        }
    });
}

/// Files of messages whose work would not be linear in their size, or that take the most memory of their size.
fn crafted_messages() -> Vec<(&'static str, Vec<u8>)> {
    const PAGE: usize = 888;
    let section = |pages: usize, records: &[u8], slots: &dyn Fn(usize, usize) -> usize, last: usize| {
        let mut section = vec![0; pages * PAGE];
        for (number, page) in section.chunks_exact_mut(PAGE).enumerate() {
            let next = if number + 1 < pages { (number + 1) * PAGE } else { last };
            page[72..80].copy_from_slice(&(next as u64).to_le_bytes());
            for (slot, at) in page[88..].as_chunks_mut::<8>().0.iter_mut().enumerate() {
                *at = ((pages * PAGE + slots(number, slot)) as u64).to_le_bytes();
            }
        }
        section.extend_from_slice(records);
        section
    };
    let record = |index: usize, payload: &[u8]| {
        [
            &(index as u32).to_le_bytes()[..],
            &(payload.len() as u32).to_le_bytes(),
            payload,
        ]
        .concat()
    };
    let file = |sections: [Vec<u8>; 3]| {
        let names = ["EVT", "MSG", "PUB"];
        let mut at = 24 + names.len() * 26;
        let mut file = b"MTAFile\0".to_vec();
        file.extend([1_u32, 1, 78, 3].iter().flat_map(|number| number.to_le_bytes()));
        for (name, section) in names.iter().zip(&sections) {
            file.extend((at as u64).to_le_bytes());
            file.extend((section.len() as u64).to_le_bytes());
            file.extend(6_u32.to_le_bytes());
            file.extend(name.encode_utf16().flat_map(u16::to_le_bytes));
            at += section.len();
        }
        file.extend(sections.concat());
        file
    };
    let text = |size: usize| [&(size as u32).to_le_bytes()[..], &vec![b'a'; size]].concat();
    let provider: Vec<u8> = "provider".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let publisher = |name: &[u8]| [&[0; 16][..], &(name.len() as u32).to_le_bytes(), name].concat();
    let event = |id: usize, message: usize| [id.to_le_bytes(), message.to_le_bytes()].concat();
    let one = |payload: &[u8], index: usize| {
        let mut section = section(1, &record(index, payload), &|_, _| 0, 0);
        // One slot alone is used.
        section[88 + 8..PAGE].fill(0);
        section
    };
    let pages = 2000;
    let tiny = |payload: &dyn Fn(usize) -> Vec<u8>| {
        let size = 8 + payload(0).len();
        let records: Vec<u8> = (0..pages * 100).flat_map(|i| record(i, &payload(i))).collect();
        section(
            pages,
            &records,
            &|page, slot| (page * 100 + slot) * size,
            (pages - 1) * PAGE,
        )
    };
    let huge = vec![b'a'; 15 << 20];
    vec![
        (
            "messages: pages that come back to the first, all of one long name",
            file([
                one(&event(1, 0), 0),
                one(&text(8), 0),
                section(8000, &record(0, &publisher(&huge)), &|_, _| 0, 0),
            ]),
        ),
        (
            "messages: names in names",
            file([
                one(&event(1, 0), 0),
                one(&text(8), 0),
                section(
                    1000,
                    &vec![0; 8 << 20],
                    &|page, slot| 8 * (page * 100 + slot),
                    999 * PAGE,
                ),
            ]),
        ),
        (
            "messages: a long one",
            file([
                one(&event(1, 0), 0),
                one(&text(15 << 20), 0),
                one(&publisher(&provider), 0),
            ]),
        ),
        (
            "messages: as many as can be",
            file([
                tiny(&|i| event(usize::MAX - i * 7919, i)),
                tiny(&|_| text(0)),
                one(&publisher(&provider), 0),
            ]),
        ),
    ]
}

/// Small records that would grow without limit, or to just below it.
fn bombs() -> Vec<(&'static str, Stream)> {
    vec![
        ("values in values", nested_values(60)),
        ("values in values, few enough", nested_values(14)),
        ("deep elements", deep_value(&["X"], 0)),
        ("deep elements with text", deep_value(&["X"], 1)),
        ("deep data", deep_value(&["Data"], 2)),
        ("deep event data", deep_value(&["EventData", "Data"], 1)),
        ("deep template", deep_template(&["X", "Data"], false)),
        ("deep template with a substitution", deep_template(&["X"], true)),
        ("deep instances", deep_instances(MAX_NESTING, 1)),
        (
            "deep instances of deep templates",
            deep_instances(MAX_NESTING, MAX_OPEN_ELEMENTS / MAX_NESTING - 1),
        ),
        ("too deep instances", deep_instances(MAX_NESTING + 2, 1)),
        ("one value in many substitutions", shared_value()),
        ("one text in many substitutions", shared_text()),
        ("arrays of arrays", crossed_arrays(4, 1000)),
        ("arrays of arrays, few enough", crossed_arrays(2, 250)),
        ("arrays beside a long text", arrays_beside_text()),
        ("deep elements", deep_elements(1500)),
        ("deep elements, not too deep", deep_elements(MAX_OPEN_ELEMENTS - 5)),
        ("a short text in many substitutions", shared_short_text()),
        ("a long text in a field", long_field()),
        ("a long text in elements of arrays", long_text_in_tree()),
        ("long names, short enough", long_names(400)),
        ("long names", long_names(3_000)),
        ("long names of entries", long_entries(2_000)),
        ("many equal names", equal_names(5_000)),
        ("many equal names in substitutions", equal_substitutions(3_000)),
        ("many different names", different_names(700)),
        ("many substitutions in System", optional_substitutions(15_000)),
        (
            "many parts beside many elements",
            parts_beside_elements(2_500, 18, 1_200, 50),
        ),
        ("many children of the event", many_children()),
        ("many members", many_members()),
    ]
}

fn template(tag: u8, root: Element) -> std::sync::Arc<Template> {
    Template::new([tag; 16], root)
}

/// Each value holds the next in two substitutions: two to the power of `depth` elements.
fn nested_values(depth: usize) -> Stream {
    let twice = |name: &str| {
        Element::new(name)
            .substitution(Substitution::new(0, 33))
            .substitution(Substitution::new(0, 33))
    };
    let pair = template(1, twice("Data"));
    let mut value = Value::string("leaf");
    for _ in 0..depth {
        value = Value::BinXml(Event::new(&pair, vec![value]).into());
    }
    let data = template(2, twice("EventData"));
    let event = template(3, Element::new("Event").substitution(Substitution::new(0, 33)));
    Event::new(&event, vec![Value::BinXml(Event::new(&data, vec![value]).into())]).into()
}

/// An optional element of `System` with many substitutions.
fn optional_substitutions(count: u16) -> Stream {
    let optional = Element::new("X").depends_on(0).text("x");
    let optional = (0..count).fold(optional, |element, index| {
        element.substitution(Substitution::new(index, 1))
    });
    let event = template(4, Element::new("Event").child(Element::new("System").child(optional)));
    Event::new(&event, vec![Value::string("v")]).into()
}

/// A stream of elements, in some substitutions of the event, and a stream of instances, in some of `EventData`.
fn parts_beside_elements(elements: usize, events: u16, instances: usize, fields: u16) -> Stream {
    let spelled = Stream::new((0..elements).map(|_| Fragment::Element(Element::new("X"))).collect());
    let leaf = template(5, Element::new("Z"));
    let filled = Stream::new(
        (0..instances)
            .map(|_| Fragment::Instance(Event::new(&leaf, vec![])))
            .collect(),
    );
    let data = (0..fields).fold(Element::new("EventData"), |data, _| {
        data.child(Element::new("Y").substitution(Substitution::new(1, 33)))
    });
    let event = (0..events).fold(Element::new("Event").child(data), |event, _| {
        event.substitution(Substitution::new(0, 33))
    });
    let event = template(6, event);
    Event::new(&event, vec![Value::BinXml(spelled), Value::BinXml(filled)]).into()
}

/// Elements in elements, as deep as possible, each with texts and attributes next to the inner one.
fn deep(names: &[&str], texts: usize, levels: usize, innermost: Element) -> Element {
    (0..levels).fold(innermost, |inner, level| {
        let mut element = Element::new(names[level % names.len()]);
        if texts > 0 {
            element = element.text("x");
        }
        if texts > 1 {
            element = element.attribute("Name", "n");
        }
        element.child(inner)
    })
}

/// Such elements that a record spells out.
fn deep_value(names: &[&str], texts: usize) -> Stream {
    let element = deep(names, texts, MAX_OPEN_ELEMENTS - 3, Element::new("L").text("x"));
    let data = Element::new("UserData").substitution(Substitution::new(0, 33));
    event_of(data, vec![Value::BinXml(Stream::new(vec![Fragment::Element(element)]))])
}

/// Such elements of a template.
fn deep_template(names: &[&str], substitution: bool) -> Stream {
    let mut innermost = Element::new("L");
    if substitution {
        let value = Substitution::new(0, 1);
        innermost = innermost
            .attribute_substitution("a", value)
            .text("x")
            .substitution(value);
    }
    let data = deep(names, 1, MAX_OPEN_ELEMENTS - 3, innermost);
    event_of(Element::new("UserData").child(data), vec![Value::string("y")])
}

/// Instances in instances, each of some elements.
fn deep_instances(depth: usize, levels: usize) -> Stream {
    let level = template(
        1,
        deep(
            &["X"],
            1,
            levels,
            Element::new("L").substitution(Substitution::new(0, 33)),
        ),
    );
    let mut value = Value::string("leaf");
    for _ in 0..depth {
        value = Value::BinXml(Event::new(&level, vec![value]).into());
    }
    event_of(
        Element::new("UserData").substitution(Substitution::new(0, 33)),
        vec![value],
    )
}

fn shared_value() -> Stream {
    let leaves = (0..200).fold(Element::new("Data"), |element, _| {
        element.child(Element::new("L").text("x"))
    });
    let value = Stream::new(vec![Fragment::Element(leaves)]);
    let data = (0..2000).fold(Element::new("EventData"), |element, _| {
        element.substitution(Substitution::new(0, 33))
    });
    event_of(data, vec![Value::BinXml(value)])
}

fn shared_text() -> Stream {
    let data = (0..2000).fold(Element::new("EventData"), |element, _| {
        element.child(Element::new("D").substitution(Substitution::new(0, 1)))
    });
    event_of(data, vec![Value::string("日本".repeat(6000))])
}

fn shared_short_text() -> Stream {
    let text = (0..6000).fold(Element::new("D"), |element, _| {
        element.substitution(Substitution::new(0, 1))
    });
    event_of(
        Element::new("EventData").child(text),
        vec![Value::string("日本".repeat(50))],
    )
}

/// Spelled-out elements, each of a few bytes that become 10,000 bytes of text.
fn long_names(count: usize) -> Stream {
    let list = (0..count).fold(Element::new("List"), |list, _| {
        list.child(Element::new("n".repeat(10_000)))
    });
    let data = Element::new("UserData").substitution(Substitution::new(0, 33));
    event_of(data, vec![Value::BinXml(Stream::new(vec![Fragment::Element(list)]))])
}

fn array(count: usize) -> Value {
    Value::StringArray(vec!["x".to_owned(); count])
}

fn crossed_arrays(arrays: u16, count: usize) -> Stream {
    let substitutions = (0..arrays).fold(Element::new("Data"), |element, i| {
        element.substitution(Substitution::new(i, 0x81))
    });
    event_of(
        Element::new("EventData").child(substitutions),
        (0..arrays).map(|_| array(count)).collect(),
    )
}

/// Copies of an element that each have all of a text.
fn arrays_beside_text() -> Stream {
    let substitutions = [(0, 0x81), (1, 0x81), (2, 1)];
    let data = substitutions
        .iter()
        .fold(Element::new("Data"), |element, &(index, value_type)| {
            element.substitution(Substitution::new(index, value_type))
        });
    event_of(
        Element::new("EventData").child(data),
        vec![array(250), array(200), Value::string("日本".repeat(8000))],
    )
}

/// A field of `System` in pieces, each of them all of a text.
fn long_field() -> Stream {
    let id = (0..3000).fold(Element::new("EventID"), |element, _| {
        element.substitution(Substitution::new(0, 1))
    });
    let computer = (0..3000).fold(Element::new("Computer"), |element, _| {
        element.substitution(Substitution::new(0, 1))
    });
    let system = Element::new("System").child(id).child(computer);
    let event = template(4, Element::new("Event").child(system));
    Event::new(&event, vec![Value::string("7".repeat(20_000))]).into()
}

/// Text that only the tree of a record has, because an array is next to it.
fn long_text_in_tree() -> Stream {
    let text = (0..3000).fold(Element::new("Data"), |element, _| {
        element.substitution(Substitution::new(0, 1))
    });
    let level = (0..3000).fold(Element::new("Level"), |element, _| {
        element.substitution(Substitution::new(0, 1))
    });
    let data = Element::new("EventData").child(text).child(
        Element::new("Data")
            .substitution(Substitution::new(1, 0x81))
            .substitution(Substitution::new(0, 1)),
    );
    let event = template(
        4,
        Element::new("Event")
            .child(Element::new("System").child(level))
            .child(data),
    );
    Event::new(&event, vec![Value::string("x".repeat(15_000)), array(3)]).into()
}

fn deep_elements(depth: usize) -> Stream {
    let deep = (0..depth).fold(Element::new("X"), |inner, _| Element::new("X").child(inner));
    Stream::new(vec![Fragment::Element(
        Element::new("Event").child(Element::new("EventData").child(deep)),
    )])
}

/// Entries that are spelled out, each with a long name.
fn long_entries(count: usize) -> Stream {
    let data = (0..count).fold(Element::new("EventData"), |data, _| {
        data.child(Element::new("n".repeat(10_000)).text("x"))
    });
    Stream::new(vec![Fragment::Element(Element::new("Event").child(data))])
}

fn equal_names(count: usize) -> Stream {
    let data = (0..count).fold(Element::new("EventData"), |data, _| data.child(Element::new("D")));
    Stream::new(vec![Fragment::Element(Element::new("Event").child(data))])
}

fn equal_substitutions(count: u16) -> Stream {
    let data = (0..count).fold(Element::new("EventData"), |data, index| {
        data.child(Element::new("D").substitution(Substitution::new(index % 50, 1)))
    });
    event_of(data, (0..50).map(|_| Value::string("x")).collect())
}

fn different_names(count: usize) -> Stream {
    let data = (0..count).fold(Element::new("EventData"), |data, number| {
        data.child(Element::new(format!("D_{number}")).text("x"))
    });
    Stream::new(vec![Fragment::Element(Element::new("Event").child(data))])
}

/// A stream that is in many places of the event, and so is many of its parts.
fn many_children() -> Stream {
    let event = (0..4000).fold(Element::new("Event"), |event, _| {
        event.substitution(Substitution::new(0, 33))
    });
    let child = template(6, Element::new("Data").substitution(Substitution::new(0, 1)));
    let value = Event::new(&child, vec![Value::string("x")]);
    Event::new(&template(7, event), vec![Value::BinXml(value.into())]).into()
}

/// Elements of a stream that are members of one object of JSON.
fn many_members() -> Stream {
    let mut parts: Vec<Fragment> = (0..300)
        .map(|number| Fragment::Element(Element::new(format!("M{number}")).text("x")))
        .collect();
    parts.extend((0..1200).map(|_| Fragment::Element(Element::new("M").text("x"))));
    let data = (0..300).fold(Element::new("UserData"), |data, number| {
        data.child(Element::new(format!("B{number}")))
    });
    event_of(
        data.substitution(Substitution::new(0, 33)),
        vec![Value::BinXml(Stream::new(parts))],
    )
}

fn event_of(data: Element, values: Vec<Value>) -> Stream {
    let event = template(4, Element::new("Event").substitution(Substitution::new(0, 33)));
    let data = template(5, data);
    Event::new(&event, vec![Value::BinXml(Event::new(&data, values).into())]).into()
}

/// A log of many small templates, each used once.
fn many_templates() -> Vec<u8> {
    let mut log = LogWriter::new(1);
    for number in 0..60_000_u32 {
        let mut guid = [0; 16];
        guid[..4].copy_from_slice(&number.to_le_bytes());
        let template = Template::new(guid, Element::new("Event").substitution(Substitution::new(0, 1)));
        log.write(0, &Event::new(&template, vec![Value::string("x")]))
            .expect("a record that fits");
    }
    log.finish()
}
