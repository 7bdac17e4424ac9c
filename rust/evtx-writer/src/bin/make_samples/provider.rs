//! Events as Windows' providers write them: `System` has the same substitutions in all of them, and `EventData` is an
//! instance of its own.

use std::collections::HashMap;
use std::sync::Arc;

use evtx_writer::{Element, Event, LogWriter, Stream, Substitution, Template, Value};

pub(crate) const DC: &str = "DC01.northwind.example";

/// FILETIME of 2024-03-05T00:00:00Z.
const DAY: u64 = 133_540_704_000_000_000;

/// The FILETIME of a time on that day, plus 100 ns ticks.
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

// Type bytes.
const U8: u8 = 4;
const U16: u8 = 6;
const U32: u8 = 8;
const U64: u8 = 10;
const GUID: u8 = 15;
const FILE_TIME: u8 = 17;
const SID: u8 = 19;
const HEX_64: u8 = 21;

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
            data = data.child(required_data(name, i as u16, value.value_type()));
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
        self.write(header.time, &stream);
    }

    /// Writes a record of any BinXML.
    pub(crate) fn write(&mut self, time: u64, stream: &Stream) {
        self.log.write_stream(time, stream).expect("an event that fits");
    }

    /// The BinXML of an event.
    fn stream(&mut self, provider: &Provider, header: &Header, data: Value) -> Stream {
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

/// A `Data` element with a name and an optional substitution of a type.
pub(crate) fn data(name: &str, index: u16, value_type: u8) -> Element {
    Element::new("Data")
        .attribute("Name", name)
        .substitution(Substitution::new(index, value_type))
}

/// The same with a required substitution.
pub(crate) fn required_data(name: &str, index: u16, value_type: u8) -> Element {
    Element::new("Data")
        .attribute("Name", name)
        .substitution(Substitution::new(index, value_type).required())
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
    let number = |name: &str, index, value_type| {
        Element::new(name)
            .substitution(Substitution::new(index, value_type).required())
            .depends_on(index)
    };
    // An element with optional attributes.
    let optional = |name: &str, attributes: &[(&str, u16, u8)]| {
        attributes
            .iter()
            .fold(Element::new(name), |element, &(name, index, value_type)| {
                element.attribute_substitution(name, Substitution::new(index, value_type))
            })
    };
    let mut source = Element::new("Provider").attribute("Name", provider.name);
    if let Some(guid) = provider.guid {
        source = source.attribute("Guid", format!("{{{guid}}}"));
    }
    if let Some(name) = provider.source {
        source = source.attribute("EventSourceName", name);
    }
    let event_id = optional("EventID", &[("Qualifiers", QUALIFIERS, U16)]);
    let correlation = [("ActivityID", ACTIVITY, GUID), ("RelatedActivityID", RELATED, GUID)];
    let execution = [("ProcessID", PROCESS, U32), ("ThreadID", THREAD, U32)];
    let system = Element::new("System")
        .child(source)
        .child(event_id.substitution(Substitution::new(EVENT_ID, U16).required()))
        .child(number("Version", VERSION, U8))
        .child(number("Level", LEVEL, U8))
        .child(number("Task", TASK, U16))
        .child(number("Opcode", OPCODE, U8))
        .child(number("Keywords", KEYWORDS, HEX_64))
        .child(optional("TimeCreated", &[("SystemTime", TIME, FILE_TIME)]))
        .child(number("EventRecordID", RECORD, U64))
        .child(optional("Correlation", &correlation))
        .child(optional("Execution", &execution))
        .child(Element::new("Channel").text(provider.channel))
        .child(Element::new("Computer").text(computer))
        .child(optional("Security", &[("UserID", USER, SID)]));
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
