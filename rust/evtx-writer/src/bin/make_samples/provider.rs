//! Events as Windows' providers write them: a `System` element with the same substitutions for all, and `EventData`
//! as an instance of its own.

use std::collections::HashMap;
use std::sync::Arc;

use evtx_writer::{Element, Event, LogWriter, Stream, Substitution, Template, Value};

pub(crate) const DC: &str = "DC01.northwind.example";

/// FILETIME of 2024-03-05T00:00:00Z.
const DAY: u64 = 133_540_704_000_000_000;

/// The FILETIME of a time on that day, and 100 ns ticks behind it.
pub(crate) fn at(hour: u64, minute: u64, second: u64, ticks: u64) -> u64 {
    DAY + (hour * 3600 + minute * 60 + second) * 10_000_000 + ticks
}

/// The substitutions of `System`, in the order of their values.
const LEVEL: u16 = 0;
const OPCODE: u16 = 1;
const TASK: u16 = 2;
const EVENT_ID: u16 = 3;
const QUALIFIERS: u16 = 4;
const KEYWORDS: u16 = 5;
const TIME: u16 = 6;
const ACTIVITY: u16 = 7;
const PROCESS: u16 = 8;
const THREAD: u16 = 9;
const RECORD: u16 = 10;
const VERSION: u16 = 11;
const USER: u16 = 12;
const RELATED: u16 = 13;
const DATA: u16 = 14;

pub(crate) const XMLNS: &str = "http://schemas.microsoft.com/win/2004/08/events/event";

/// An event provider and its channel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Provider {
    pub(crate) name: &'static str,
    pub(crate) guid: Option<&'static str>,
    /// The name of a classic event source.
    pub(crate) source: Option<&'static str>,
    pub(crate) channel: &'static str,
}

/// The fields of `System` that differ between the events of a provider.
#[derive(Debug, Clone)]
pub(crate) struct Header {
    pub(crate) event_id: u16,
    pub(crate) version: u8,
    pub(crate) level: u8,
    pub(crate) task: u16,
    pub(crate) opcode: u8,
    pub(crate) keywords: u64,
    pub(crate) qualifiers: Option<u16>,
    pub(crate) time: u64,
    pub(crate) process: u32,
    pub(crate) thread: u32,
    pub(crate) user: Option<Value>,
    pub(crate) activity: Option<[u8; 16]>,
    pub(crate) related: Option<[u8; 16]>,
}

impl Header {
    pub(crate) fn new(event_id: u16, time: u64) -> Self {
        Header {
            event_id,
            version: 0,
            level: 4,
            task: 0,
            opcode: 0,
            keywords: 0x8000_0000_0000_0000,
            qualifiers: None,
            time,
            process: 4,
            thread: 8,
            user: None,
            activity: None,
            related: None,
        }
    }
}

/// A named value of `EventData`.
pub(crate) type Field = (&'static str, Value);

/// Writes the events of a machine into a log.
pub(crate) struct Machine {
    computer: &'static str,
    pub(crate) log: LogWriter,
    templates: HashMap<String, Arc<Template>>,
    /// The record ID in the log of origin, for an event that was forwarded.
    pub(crate) origin_record: Option<u64>,
}

impl Machine {
    pub(crate) fn new(computer: &'static str, first_id: u64) -> Self {
        Machine {
            computer,
            log: LogWriter::new(first_id),
            templates: HashMap::new(),
            origin_record: None,
        }
    }

    /// Writes an event with `EventData` of named values.
    pub(crate) fn event(&mut self, provider: &Provider, header: &Header, fields: Vec<Field>) {
        let mut data = Element::new("EventData");
        for (i, (name, value)) in fields.iter().enumerate() {
            data = data.child(
                Element::new("Data")
                    .attribute("Name", *name)
                    .substitution(substitution(i as u16, value)),
            );
        }
        let key = format!("{} {} {}", provider.name, header.event_id, header.version);
        let values = fields.into_iter().map(|(_, value)| value).collect();
        self.event_of(provider, header, &key, data, values);
    }

    /// Writes an event whose data is an element with values. `key` identifies its template.
    pub(crate) fn event_of(
        &mut self,
        provider: &Provider,
        header: &Header,
        key: &str,
        data: Element,
        values: Vec<Value>,
    ) {
        let template = self.template(key, || data);
        let data = Value::BinXml(Event::new(&template, values).into());
        self.event_with(provider, header, data);
    }

    /// Writes an event whose data is a value.
    pub(crate) fn event_with(&mut self, provider: &Provider, header: &Header, data: Value) {
        let stream = self.stream(provider, header, data);
        self.log.write_stream(header.time, &stream).expect("an event that fits");
    }

    /// The BinXML of an event.
    pub(crate) fn stream(&mut self, provider: &Provider, header: &Header, data: Value) -> Stream {
        let computer = self.computer;
        let system = self.template(&format!("System {} {computer}", provider.name), || {
            event(provider, computer)
        });
        let option = |value: Option<Value>| value.unwrap_or(Value::Null);
        let record = self.origin_record.unwrap_or(self.log.next_id());
        let values = vec![
            Value::UInt8(header.level),
            Value::UInt8(header.opcode),
            Value::UInt16(header.task),
            Value::UInt16(header.event_id),
            option(header.qualifiers.map(Value::UInt16)),
            Value::HexInt64(header.keywords),
            Value::FileTime(header.time),
            option(header.activity.map(Value::Guid)),
            Value::UInt32(header.process),
            Value::UInt32(header.thread),
            Value::UInt64(record),
            Value::UInt8(header.version),
            option(header.user.clone()),
            option(header.related.map(Value::Guid)),
            data,
        ];
        Event::new(&system, values).into()
    }

    fn template(&mut self, key: &str, root: impl FnOnce() -> Element) -> Arc<Template> {
        let template = self.templates.entry(key.to_owned());
        Arc::clone(template.or_insert_with(|| Template::new(template_guid(key), root())))
    }
}

/// A substitution for a value, of its type.
fn substitution(index: u16, value: &Value) -> Substitution {
    Substitution::new(index, value.value_type()).required()
}

/// A GUID for a template: from its key, the same in every run.
fn template_guid(key: &str) -> [u8; 16] {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    let mut guid = [0; 16];
    for (i, slot) in guid.iter_mut().enumerate() {
        for byte in key.bytes().chain([i as u8]) {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        *slot = (state >> 32) as u8;
    }
    guid
}

/// The `Event` of a provider on a machine.
fn event(provider: &Provider, computer: &str) -> Element {
    let substitution = |index, value_type: Value| Substitution::new(index, value_type.value_type());
    let number = |name: &str, index, value: Value| {
        Element::new(name)
            .substitution(substitution(index, value).required())
            .depends_on(index)
    };
    let mut source = Element::new("Provider").attribute("Name", provider.name);
    if let Some(guid) = provider.guid {
        source = source.attribute("Guid", format!("{{{guid}}}"));
    }
    if let Some(name) = provider.source {
        source = source.attribute("EventSourceName", name);
    }
    let event_id = Element::new("EventID")
        .attribute_substitution("Qualifiers", substitution(QUALIFIERS, Value::UInt16(0)))
        .substitution(substitution(EVENT_ID, Value::UInt16(0)).required());
    let guid = || Value::Guid([0; 16]);
    let system = Element::new("System")
        .child(source)
        .child(event_id)
        .child(number("Version", VERSION, Value::UInt8(0)))
        .child(number("Level", LEVEL, Value::UInt8(0)))
        .child(number("Task", TASK, Value::UInt16(0)))
        .child(number("Opcode", OPCODE, Value::UInt8(0)))
        .child(number("Keywords", KEYWORDS, Value::HexInt64(0)))
        .child(Element::new("TimeCreated").attribute_substitution("SystemTime", substitution(TIME, Value::FileTime(0))))
        .child(number("EventRecordID", RECORD, Value::UInt64(0)))
        .child(
            Element::new("Correlation")
                .attribute_substitution("ActivityID", substitution(ACTIVITY, guid()))
                .attribute_substitution("RelatedActivityID", substitution(RELATED, guid())),
        )
        .child(
            Element::new("Execution")
                .attribute_substitution("ProcessID", substitution(PROCESS, Value::UInt32(0)))
                .attribute_substitution("ThreadID", substitution(THREAD, Value::UInt32(0))),
        )
        .child(Element::new("Channel").text(provider.channel))
        .child(Element::new("Computer").text(computer))
        .child(Element::new("Security").attribute_substitution("UserID", substitution(USER, Value::Sid(5, vec![]))));
    Element::new("Event")
        .attribute("xmlns", XMLNS)
        .child(system)
        .substitution(Substitution::new(DATA, 33))
}

pub(crate) fn local_system() -> Value {
    Value::Sid(5, vec![18])
}

pub(crate) fn text(text: &str) -> Value {
    Value::string(text)
}
