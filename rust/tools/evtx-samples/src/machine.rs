//! Events as Windows' providers write them: `System` has the same substitutions, and `EventData` is its own instance.
//!
//! `story.json` has providers, their events with the types and usual texts of the values, and logs of such events.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use evtx_writer::{Element, Event, LogWriter, Stream, Substitution, Template, Value};
use uuid::Uuid;

pub(crate) static STORY: LazyLock<serde_json::Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("story.json")).expect("JSON"));

pub(crate) const DC: &str = "DC01.northwind.example";

/// FILETIME of 2024-03-05T00:00:00Z.
const DAY: u64 = 133_540_704_000_000_000;

/// The FILETIME of a time on that day, plus 100 ns ticks.
pub(crate) fn at(hour: u64, minute: u64, second: u64, ticks: u64) -> u64 {
    DAY + (hour * 3600 + minute * 60 + second) * 10_000_000 + ticks
}

/// The same of a text such as `08:46:03.1250018`, with seven digits after the point.
fn at_text(text: &str) -> u64 {
    let numbers: Vec<u64> = text.split([':', '.']).map(number).collect();
    at(numbers[0], numbers[1], numbers[2], numbers[3])
}

/// The names of types, in the order of their type bytes.
const TYPES: &str = "Null String AnsiString Int8 UInt8 Int16 UInt16 Int32 UInt32 Int64 UInt64 Real32 Real64 Boolean Binary \
    GUID SizeT FILETIME SYSTEMTIME SID HexInt32 HexInt64";

/// The values of `System` in order: name, type, and the text in events that do not give another. Without a text: NULL.
const SYSTEM: [(&str, &str, &str); 14] = [
    ("Level", "UInt8", "4"),
    ("Opcode", "UInt8", "0"),
    ("Task", "UInt16", "0"),
    ("EventID", "UInt16", ""),
    ("Qualifiers", "UInt16", ""),
    ("Keywords", "HexInt64", "0x8000000000000000"),
    ("SystemTime", "FILETIME", ""),
    ("ActivityID", "GUID", ""),
    ("ProcessID", "UInt32", "4"),
    ("ThreadID", "UInt32", "8"),
    ("EventRecordID", "UInt64", ""),
    ("Version", "UInt8", "0"),
    ("UserID", "SID", ""),
    ("RelatedActivityID", "GUID", ""),
];

pub(crate) const XMLNS: &str = "http://schemas.microsoft.com/win/2004/08/events/event";

/// What an event has in place of the texts in `story.json`: names of `System` or `EventData`, and texts.
pub(crate) type Changes<'t> = [(&'t str, &'t str)];

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

    /// Writes the events of a log in `story.json`.
    pub(crate) fn tell(&mut self, log: &str) {
        for event in STORY["logs"][log].as_array().expect("a log") {
            let [name, time, changes] = [0, 1, 2].map(|at| &event[at]);
            let changes = changes.as_object().expect("changes").iter();
            let changes: Vec<_> = changes
                .map(|(name, text)| (name.as_str(), text.as_str().expect("a text")))
                .collect();
            let time = at_text(time.as_str().expect("a time"));
            self.event(name.as_str().expect("a name"), time, &changes);
        }
    }

    /// Writes an event with the `EventData` that `story.json` lists.
    pub(crate) fn event(&mut self, event: &str, time: u64, changes: &Changes<'_>) {
        let data = STORY["events"][event]["data"].as_array().expect("data");
        let fields: Vec<_> = data
            .iter()
            .map(|field| {
                let [name, value_type, usual] = [0, 1, 2].map(|at| field[at].as_str());
                let (name, value_type) = (name.expect("a name"), value_type.expect("a type"));
                let text = changed(changes, name).or(usual);
                let text = text.unwrap_or_else(|| panic!("an event '{event}' without {name}"));
                (name, value(value_type, text))
            })
            .collect();
        for (changed, _) in changes {
            let is_known = fields.iter().any(|(name, _)| name == changed);
            assert!(
                is_known || SYSTEM.iter().any(|(name, ..)| name == changed),
                "'{event}' has no {changed}"
            );
        }
        self.fields(event, time, changes, fields);
    }

    /// Writes an event with `EventData` of named values.
    pub(crate) fn fields(&mut self, event: &str, time: u64, changes: &Changes<'_>, fields: Vec<(&str, Value)>) {
        let mut data = Element::new("EventData");
        for (i, (name, value)) in fields.iter().enumerate() {
            data = data.child(required_data(name, i as u16, value.value_type()));
        }
        let [id, version] = [
            system_text(event, changes, "EventID"),
            system_text(event, changes, "Version"),
        ];
        let key = format!("{} {id} {version}", provider(event, "name").expect("a name"));
        let values = fields.into_iter().map(|(_, value)| value).collect();
        self.event_of(event, time, changes, &key, data, values);
    }

    /// Writes an event whose data is an element with values. `key` identifies its template.
    pub(crate) fn event_of(
        &mut self,
        event: &str,
        time: u64,
        changes: &Changes<'_>,
        key: &str,
        data: Element,
        values: Vec<Value>,
    ) {
        let template = self.template(key, || data);
        let data = Value::BinXml(Event::new(&template, values).into());
        self.event_with(event, time, changes, data);
    }

    /// Writes an event whose data is a value.
    pub(crate) fn event_with(&mut self, event: &str, time: u64, changes: &Changes<'_>, data: Value) {
        let computer = self.computer;
        let name = provider(event, "name").expect("a name");
        let template = self.template(&format!("System {name} {computer}"), || root(event, computer));
        let record = self.origin_record.unwrap_or(self.log.next_id());
        let values = SYSTEM.iter().map(|&(name, value_type, _)| match name {
            "SystemTime" => Value::FileTime(time),
            "EventRecordID" => Value::UInt64(record),
            _ => match system_text(event, changes, name) {
                "" => Value::Null,
                text => value(value_type, text),
            },
        });
        let values = values.chain([data]).collect();
        self.write(time, &Event::new(&template, values).into());
    }

    /// Writes a record of any BinXML.
    pub(crate) fn write(&mut self, time: u64, stream: &Stream) {
        self.log.write_stream(time, stream).expect("an event that fits");
    }

    fn template(&mut self, key: &str, root: impl FnOnce() -> Element) -> Arc<Template> {
        let template = self.templates.entry(key.to_owned());
        Arc::clone(template.or_insert_with(|| Template::new(template_guid(key), root())))
    }
}

fn changed<'t>(changes: &Changes<'t>, name: &str) -> Option<&'t str> {
    let change = changes.iter().find(|(changed, _)| *changed == name)?;
    Some(change.1)
}

/// The text of a value in the `System` of an event.
fn system_text<'t>(event: &str, changes: &Changes<'t>, name: &str) -> &'t str {
    let usual = SYSTEM.iter().find(|(known, ..)| *known == name).map(|system| system.2);
    let of_event = STORY["events"][event][name].as_str();
    changed(changes, name).or(of_event).or(usual).unwrap_or_default()
}

/// The `name`, `guid`, `source` or `channel` of an event's provider. A classic event source has a `source`.
pub(crate) fn provider(event: &str, key: &str) -> Option<&'static str> {
    let provider = STORY["events"][event]["provider"].as_str().expect("a provider");
    STORY["providers"][provider][key].as_str()
}

fn number<T: FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("a number: {text}"))
}

/// The value of a type with a text, which is written as Windows shows it.
fn value(value_type: &str, text: &str) -> Value {
    let hex = || u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("hexadecimal digits");
    match value_type {
        "String" => Value::string(text),
        "UInt8" => Value::UInt8(number(text)),
        "UInt16" => Value::UInt16(number(text)),
        "UInt32" => Value::UInt32(number(text)),
        "Boolean" => Value::Bool(text == "true"),
        "GUID" => Value::Guid(text.parse::<Uuid>().expect("a GUID").into_bytes()),
        "SID" => sid(text),
        "HexInt32" => Value::HexInt32(hex() as u32),
        "HexInt64" => Value::HexInt64(hex()),
        _ => panic!("a type: {value_type}"),
    }
}

pub(crate) fn sid(text: &str) -> Value {
    let mut numbers = text.split('-').skip(2);
    Value::Sid(numbers.next().map_or(0, number), numbers.map(number).collect())
}

pub(crate) fn text(text: &str) -> Value {
    Value::string(text)
}

/// A `Data` element with a name and an optional substitution of a type.
pub(crate) fn data(name: &str, index: u16, value_type: u8) -> Element {
    data_of(name, Substitution::new(index, value_type))
}

/// The same with a required substitution.
pub(crate) fn required_data(name: &str, index: u16, value_type: u8) -> Element {
    data_of(name, Substitution::new(index, value_type).required())
}

fn data_of(name: &str, substitution: Substitution) -> Element {
    Element::new("Data").attribute("Name", name).substitution(substitution)
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

/// The root of the template for the events of a provider on a machine.
fn root(event: &str, computer: &str) -> Element {
    let substitution = |name: &str| {
        let index = SYSTEM.iter().position(|(known, ..)| *known == name).expect("a name");
        let value_type = TYPES.split(' ').position(|known| known == SYSTEM[index].1);
        let value_type = value_type.expect("a type");
        (index as u16, Substitution::new(index as u16, value_type as u8))
    };
    let number = |name: &str| {
        let (index, substitution) = substitution(name);
        Element::new(name)
            .substitution(substitution.required())
            .depends_on(index)
    };
    // An element with optional attributes.
    let optional = |name: &str, attributes: &[&str]| {
        attributes.iter().fold(Element::new(name), |element, name| {
            element.attribute_substitution(name, substitution(name).1)
        })
    };
    let mut source = Element::new("Provider").attribute("Name", provider(event, "name").unwrap_or_default());
    if let Some(guid) = provider(event, "guid") {
        source = source.attribute("Guid", format!("{{{guid}}}"));
    }
    if let Some(name) = provider(event, "source") {
        source = source.attribute("EventSourceName", name);
    }
    let event_id = optional("EventID", &["Qualifiers"]);
    let system = Element::new("System")
        .child(source)
        .child(event_id.substitution(substitution("EventID").1.required()))
        .child(number("Version"))
        .child(number("Level"))
        .child(number("Task"))
        .child(number("Opcode"))
        .child(number("Keywords"))
        .child(optional("TimeCreated", &["SystemTime"]))
        .child(number("EventRecordID"))
        .child(optional("Correlation", &["ActivityID", "RelatedActivityID"]))
        .child(optional("Execution", &["ProcessID", "ThreadID"]))
        .child(Element::new("Channel").text(provider(event, "channel").unwrap_or_default()))
        .child(Element::new("Computer").text(computer))
        .child(optional("Security", &["UserID"]));
    Element::new("Event")
        .attribute("xmlns", XMLNS)
        .child(system)
        .substitution(Substitution::new(SYSTEM.len() as u16, 33))
}
