//! The logs that tell the story.

use evtx_samples::MtaWriter;
use evtx_writer::{Content, Element, Event, Fragment, Stream, Substitution, Template, Value};

use crate::machine::{DC, Machine, STORY, XMLNS, at, provider, required_data, sid, text};

const ATTACKER: &str = "203.0.113.45";
const STOLEN: &str = "svc-backup";

pub(crate) fn logs() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("DC01-Security.evtx", dc_log("DC01-Security", 88_201)),
        ("DC01-System.evtx", dc_system()),
        ("DC01-Sysmon.evtx", dc_log("DC01-Sysmon", 301_117)),
        ("WS07-Security.evtx", workstation_security()),
        ("ForwardedEvents.evtx", forwarded_events()),
    ]
}

/// The SID of an account of the domain.
pub(crate) fn account(rid: u32) -> String {
    format!("S-1-5-21-1004336348-1177238915-682003330-{rid}")
}

fn dc_log(name: &str, first_id: u64) -> Vec<u8> {
    let mut log = Machine::new(DC, first_id);
    log.tell(name);
    log.log.finish()
}

fn dc_system() -> Vec<u8> {
    let mut log = Machine::new(DC, 14_002);
    // A classic event: its strings are one array value, which repeats the element, and raw data follows.
    let uptime = |log: &mut Machine, time, seconds: &str| {
        let binary = Element::new("Binary").substitution(Substitution::new(1, 14).required());
        let data = Element::new("EventData")
            .child(Element::new("Data").substitution(Substitution::new(0, 0x81).required()))
            .child(binary.depends_on(1));
        let strings = ["", "", "", "", seconds, "60", "0 Coordinated Universal Time"].map(str::to_owned);
        let values = vec![
            Value::StringArray(strings.into()),
            Value::Binary(vec![0x31, 0, 0x2e, 0, 0x31, 0, 0, 0]),
        ];
        log.event_of("uptime", time, &[], "classic", data, values);
    };
    uptime(&mut log, at(6, 0, 0, 0), "518402");
    let state = |log: &mut Machine, time, service: &str, state: &str| {
        let data = Element::new("EventData")
            .child(required_data("param1", 0, 1))
            .child(required_data("param2", 1, 1))
            .child(Element::new("Binary").substitution(Substitution::new(2, 14).required()));
        let binary: Vec<u8> = service.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
        let values = vec![text(service), text(state), Value::Binary(binary)];
        log.event_of("service state", time, &[], "7036", data, values);
    };
    for (minute, service) in [
        (2, "Windows Update"),
        (7, "Software Protection"),
        (19, "Network Setup Service"),
    ] {
        state(&mut log, at(7, minute, 1, 2_000_000), service, "running");
        state(&mut log, at(7, minute + 31, 3, 17), service, "stopped");
    }
    let installed = [
        ("UserID", &*account(1203)),
        ("ServiceName", "WinUpdSvc"),
        ("ImagePath", r"C:\ProgramData\upd\wusvc.exe -k netsvcs"),
    ];
    log.event("service installed", at(8, 46, 3, 1_251_300), &installed);
    state(&mut log, at(8, 46, 5, 90_000), "WinUpdSvc", "running");
    uptime(&mut log, at(12, 0, 0, 0), "540002");
    log.log.finish()
}

/// The messages beside the System log, as Event Viewer saves them with display information. The last record has none.
pub(crate) fn system_messages() -> Vec<u8> {
    let publishers = ["service state", "uptime"].map(|event| provider(event, "name").unwrap_or_default());
    let mut messages = MtaWriter::new(&publishers);
    for (record, message) in STORY["messages"].as_object().expect("messages") {
        let record = record.parse().expect("a record ID");
        messages.message(record, message.as_str().expect("a text"));
    }
    messages.finish()
}

fn workstation_security() -> Vec<u8> {
    let mut log = Machine::new("WS07.northwind.example", 40_011);
    // The log was cleared: it starts with that.
    let field = |name: &str, index, value_type| {
        Element::new(name).substitution(Substitution::new(index, value_type).required())
    };
    let data = Element::new("UserData").child(
        Element::new("LogFileCleared")
            .attribute("xmlns", "http://manifests.microsoft.com/win/2004/08/windows/eventlog")
            .child(field("SubjectUserSid", 0, 19))
            .child(field("SubjectUserName", 1, 1))
            .child(field("SubjectDomainName", 2, 1))
            .child(field("SubjectLogonId", 3, 21)),
    );
    let values = vec![
        sid(&account(1203)),
        text(STOLEN),
        text("NORTHWIND"),
        Value::HexInt64(0x7a_44e0),
    ];
    log.event_of("log cleared", at(8, 58, 0, 4_410_000), &[], "1102", data, values);
    log.tell("WS07-Security");
    log.log.finish()
}

/// The log of a collector, with events of another machine: `System` as text, and the rendering of each event there.
fn forwarded_events() -> Vec<u8> {
    let mut log = Machine::new(DC, 1);
    // The collector counts the records of its own log.
    log.origin_record = Some(88_244);
    let rendering = |message: &str| {
        Element::new("RenderingInfo")
            .attribute("Culture", "en-US")
            .child(Element::new("Message").text(message))
            .child(Element::new("Level").text("Information"))
            .child(Element::new("Task").text("Logon"))
            .child(Element::new("Opcode").text("Info"))
            .child(Element::new("Channel").text("Security"))
            .child(Element::new("Provider").text("Microsoft Windows security auditing."))
            .child(Element::new("Keywords").child(Element::new("Keyword").text("Audit Success")))
    };
    // As most collectors have them: the data is a stream of an instance and the rendering.
    let data = Element::new("EventData")
        .child(required_data("TargetUserName", 0, 1))
        .child(required_data("IpAddress", 1, 1));
    let template = Template::new(*b"forwarded 4624  ", data);
    for (minute, user) in [(44, STOLEN), (59, "jon.smith")] {
        let event = Event::new(&template, vec![text(user), text(ATTACKER)]);
        let message = format!("An account was successfully logged on.\r\n\r\nAccount Name:\t\t{user}");
        let info = rendering(&message);
        let stream = Stream::new(vec![Fragment::Instance(event), Fragment::Element(info)]);
        let time = at(8, minute, 53, 100);
        log.event_with("logon", time, &[("Version", "1")], Value::BinXml(stream));
        log.origin_record = log.origin_record.map(|record| record + 6);
    }
    // And spelled out without a template: every value is text, the time has nine digits.
    let spelled = |name: &str, content: &str| Element::new(name).text(content);
    let system = Element::new("System")
        .child(
            Element::new("Provider")
                .attribute("Name", "Service Control Manager")
                .attribute("Guid", "{555908D1-A6D7-4695-8E1E-26931D2012F4}")
                .attribute("EventSourceName", "Service Control Manager"),
        )
        .child(spelled("EventID", "7045").attribute("Qualifiers", "16384"))
        .child(spelled("Version", "0"))
        .child(spelled("Level", "4"))
        .child(spelled("Task", "0"))
        .child(spelled("Opcode", "0"))
        .child(spelled("Keywords", "0x8080000000000000"))
        .child(Element::new("TimeCreated").attribute("SystemTime", "2024-03-05T08:46:03.125130000Z"))
        .child(spelled("EventRecordID", "14009"))
        .child(Element::new("Correlation"))
        .child(
            Element::new("Execution")
                .attribute("ProcessID", "612")
                .attribute("ThreadID", "5120"),
        )
        .child(spelled("Channel", "System"))
        .child(spelled("Computer", DC))
        .child(Element::new("Security").attribute("UserID", "S-1-5-21-1004336348-1177238915-682003330-1203"));
    let data = [
        ("ServiceName", "WinUpdSvc"),
        ("ImagePath", r"C:\ProgramData\upd\wusvc.exe -k netsvcs"),
        ("ServiceType", "user mode service"),
        ("StartType", "auto start"),
        ("AccountName", "LocalSystem"),
    ]
    .into_iter()
    .fold(Element::new("EventData"), |data, (name, content)| {
        data.child(spelled("Data", content).attribute("Name", name))
    });
    let message = Element::new("Message")
        .text("A service was installed in the system.\r\n\r\nService Name:  WinUpdSvc ")
        .content(Content::EntityRef("lt".to_owned()))
        .text("auto start")
        .content(Content::EntityRef("gt".to_owned()));
    let info = Element::new("RenderingInfo")
        .attribute("Culture", "en-US")
        .child(message);
    let event = Element::new("Event")
        .attribute("xmlns", XMLNS)
        .child(system)
        .child(data)
        .child(info);
    log.write(at(8, 46, 9, 0), &Stream::new(vec![Fragment::Element(event)]));
    log.log.finish()
}
