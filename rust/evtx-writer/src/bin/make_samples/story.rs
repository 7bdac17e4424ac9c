//! The logs that tell the story.

use evtx_writer::{Content, Element, Event, Fragment, MtaWriter, Stream, Substitution, Template, Value};

use crate::provider::{DC, Field, Header, Machine, Provider, XMLNS, at, local_system, required_data, text};
use crate::sysmon;

const WORKSTATION: &str = "WS07.northwind.example";
const DOMAIN: &str = "NORTHWIND";
const ATTACKER: &str = "203.0.113.45";
const STOLEN: &str = "svc-backup";

const SECURITY: Provider = Provider {
    name: "Microsoft-Windows-Security-Auditing",
    guid: Some("54849625-5478-4994-a5ba-3e3b0328c30d"),
    source: None,
    channel: "Security",
};
const EVENTLOG: Provider = Provider {
    name: "Microsoft-Windows-Eventlog",
    guid: Some("fc65ddd8-d6ef-4962-83d5-6e5cfe9ce148"),
    source: None,
    channel: "Security",
};
pub(crate) const SERVICES: Provider = Provider {
    name: "Service Control Manager",
    guid: Some("555908d1-a6d7-4695-8e1e-26931d2012f4"),
    source: Some("Service Control Manager"),
    channel: "System",
};
/// A classic source: no GUID, data without names.
const CLASSIC: Provider = Provider {
    name: "EventLog",
    guid: None,
    source: None,
    channel: "System",
};

const AUDIT_SUCCESS: u64 = 0x8020_0000_0000_0000;
const AUDIT_FAILURE: u64 = 0x8010_0000_0000_0000;

pub(crate) fn logs() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("DC01-Security.evtx", dc_security()),
        ("DC01-System.evtx", dc_system()),
        ("DC01-Sysmon.evtx", sysmon::dc_sysmon()),
        ("WS07-Security.evtx", workstation_security()),
        ("ForwardedEvents.evtx", forwarded_events()),
    ]
}

/// A SID of the domain.
pub(crate) fn account(rid: u32) -> Value {
    Value::Sid(5, vec![21, 1_004_336_348, 1_177_238_915, 682_003_330, rid])
}

fn nobody() -> Value {
    Value::Sid(0, vec![0])
}

fn audit(event_id: u16, time: u64, task: u16, keywords: u64) -> Header {
    Header {
        version: 1,
        level: 0,
        task,
        keywords,
        process: 652,
        thread: 4012,
        ..Header::new(event_id, time)
    }
}

/// Who acted: SID, name, domain and logon ID, as most audit events start.
fn subject(sid: Value, name: &str, domain: &str, logon: u64) -> Vec<Field> {
    vec![
        ("SubjectUserSid", sid),
        ("SubjectUserName", text(name)),
        ("SubjectDomainName", text(domain)),
        ("SubjectLogonId", Value::HexInt64(logon)),
    ]
}

pub(crate) fn failed_logon(
    log: &mut Machine,
    time: u64,
    user: &str,
    sub_status: u32,
    (workstation, address, port): (&str, &str, u16),
) {
    let mut fields = subject(nobody(), "-", "-", 0);
    fields.extend([
        ("TargetUserSid", nobody()),
        ("TargetUserName", text(user)),
        ("TargetDomainName", text(DOMAIN)),
        ("Status", Value::HexInt32(0xc000_006d)),
        ("FailureReason", text("%%2313")),
        ("SubStatus", Value::HexInt32(sub_status)),
        ("LogonType", Value::UInt32(3)),
        ("LogonProcessName", text("NtLmSsp ")),
        ("AuthenticationPackageName", text("NTLM")),
        ("WorkstationName", text(workstation)),
        ("TransmittedServices", text("-")),
        ("LmPackageName", text("-")),
        ("KeyLength", Value::UInt32(0)),
        ("ProcessId", Value::HexInt64(0)),
        ("ProcessName", text("-")),
        ("IpAddress", text(address)),
        ("IpPort", text(&port.to_string())),
    ]);
    log.event(&SECURITY, &audit(4625, time, 12544, AUDIT_FAILURE), fields);
}

pub(crate) struct Logon<'a> {
    pub(crate) sid: Value,
    pub(crate) user: &'a str,
    pub(crate) id: u64,
    pub(crate) logon_type: u32,
    pub(crate) package: &'a str,
    pub(crate) workstation: &'a str,
    pub(crate) address: &'a str,
    pub(crate) port: &'a str,
    pub(crate) guid: [u8; 16],
}

pub(crate) fn logon(log: &mut Machine, time: u64, logon: Logon<'_>) {
    let (process, package, key_length) = match logon.package {
        "NTLM" => ("NtLmSsp ", "NTLM V2", 128),
        _ => ("Kerberos", "-", 0),
    };
    let mut fields = subject(nobody(), "-", "-", 0);
    fields.extend([
        ("TargetUserSid", logon.sid),
        ("TargetUserName", text(logon.user)),
        ("TargetDomainName", text(DOMAIN)),
        ("TargetLogonId", Value::HexInt64(logon.id)),
        ("LogonType", Value::UInt32(logon.logon_type)),
        ("LogonProcessName", text(process)),
        ("AuthenticationPackageName", text(logon.package)),
        ("WorkstationName", text(logon.workstation)),
        ("LogonGuid", Value::Guid(logon.guid)),
        ("TransmittedServices", text("-")),
        ("LmPackageName", text(package)),
        ("KeyLength", Value::UInt32(key_length)),
        ("ProcessId", Value::HexInt64(0)),
        ("ProcessName", text("-")),
        ("IpAddress", text(logon.address)),
        ("IpPort", text(logon.port)),
        ("ImpersonationLevel", text("%%1833")),
        ("RestrictedAdminMode", text("-")),
        ("TargetOutboundUserName", text("-")),
        ("TargetOutboundDomainName", text("-")),
        ("VirtualAccount", text("%%1843")),
        ("TargetLinkedLogonId", Value::HexInt64(0)),
        ("ElevatedToken", text("%%1842")),
    ]);
    let mut activity = 0x9c1d_2e3f_6e71_4a10_910e_003f_6e71_da01_u128.to_be_bytes();
    activity[10] = logon.id as u8;
    let header = Header {
        version: 2,
        activity: Some(activity),
        ..audit(4624, time, 12544, AUDIT_SUCCESS)
    };
    log.event(&SECURITY, &header, fields);
}

pub(crate) fn special_privileges(log: &mut Machine, time: u64, sid: Value, user: &str, id: u64) {
    let mut fields = subject(sid, user, DOMAIN, id);
    let privileges =
        "SeSecurityPrivilege\r\n\t\t\tSeBackupPrivilege\r\n\t\t\tSeRestorePrivilege\r\n\t\t\tSeDebugPrivilege";
    fields.push(("PrivilegeList", text(privileges)));
    log.event(&SECURITY, &audit(4672, time, 12548, AUDIT_SUCCESS), fields);
}

pub(crate) fn process(
    log: &mut Machine,
    time: u64,
    user: (Value, &str, u64),
    image: &str,
    command: &str,
    parent: &str,
) {
    let mut fields = subject(user.0, user.1, DOMAIN, user.2);
    fields.extend([
        ("NewProcessId", Value::HexInt64(0x1a34)),
        ("NewProcessName", text(image)),
        ("TokenElevationType", text("%%1936")),
        ("ProcessId", Value::HexInt64(0x2b8)),
        ("CommandLine", text(command)),
        ("TargetUserSid", nobody()),
        ("TargetUserName", text("-")),
        ("TargetDomainName", text("-")),
        ("TargetLogonId", Value::HexInt64(0)),
        ("ParentProcessName", text(parent)),
        ("MandatoryLabel", Value::Sid(16, vec![16384])),
    ]);
    let header = Header {
        version: 2,
        ..audit(4688, time, 13312, AUDIT_SUCCESS)
    };
    log.event(&SECURITY, &header, fields);
}

pub(crate) const USERS: [&str; 14] = [
    "administrator",
    "anna.berg",
    "b.silva",
    "carol.ng",
    "d.okafor",
    "elena.rossi",
    "f.dubois",
    "g.kowalski",
    "helpdesk",
    "i.tanaka",
    "jon.smith",
    "k.novak",
    "sql-agent",
    STOLEN,
];

fn dc_security() -> Vec<u8> {
    let mut log = Machine::new(DC, 88_201);
    let employee = |rid: u32, user, minute: u64| Logon {
        sid: account(rid),
        user,
        id: 0x51_0000 + minute * 0x31,
        logon_type: 3,
        package: "Kerberos",
        workstation: "-",
        address: "10.20.0.17",
        port: "49733",
        guid: [minute as u8; 16],
    };
    // The morning before it.
    for (minute, rid, user) in [
        (1, 1104, "anna.berg"),
        (3, 1107, "elena.rossi"),
        (9, 1112, "jon.smith"),
        (14, 1105, "carol.ng"),
    ] {
        logon(
            &mut log,
            at(8, minute, 12, 3_417_000 + minute),
            employee(rid, user, minute),
        );
    }
    failed_logon(
        &mut log,
        at(8, 20, 4, 120_000),
        "carol.ng",
        0xc000_006a,
        ("WS03", "10.20.0.33", 50_112),
    );
    // One password, every account, a few seconds each, three rounds.
    for round in 0..3 {
        for (i, user) in USERS.iter().enumerate() {
            let seconds = i as u64 * 7 + round;
            let sub_status = if *user == "helpdesk" { 0xc000_0072 } else { 0xc000_006a };
            if round == 2 && *user == STOLEN {
                break;
            }
            failed_logon(
                &mut log,
                at(8, 31 + round * 6 + seconds / 60, seconds % 60, 5_000 * i as u64),
                user,
                sub_status,
                ("KALI", ATTACKER, 51_000 + i as u16),
            );
        }
    }
    let stolen = || account(1203);
    let id = 0x7a_11c3;
    logon(
        &mut log,
        at(8, 44, 52, 9_004_411),
        Logon {
            sid: stolen(),
            user: STOLEN,
            id,
            logon_type: 3,
            package: "NTLM",
            workstation: "KALI",
            address: ATTACKER,
            port: "51014",
            guid: [0; 16],
        },
    );
    special_privileges(&mut log, at(8, 44, 52, 9_004_977), stolen(), STOLEN, id);
    let mut fields = subject(stolen(), STOLEN, DOMAIN, id);
    fields.extend([
        ("ServiceName", text("WinUpdSvc")),
        ("ServiceFileName", text(r"C:\ProgramData\upd\wusvc.exe -k netsvcs")),
        ("ServiceType", Value::HexInt32(0x10)),
        ("ServiceStartType", Value::UInt32(2)),
        ("ServiceAccount", text("LocalSystem")),
    ]);
    log.event(
        &SECURITY,
        &audit(4697, at(8, 46, 3, 1_250_018), 12289, AUDIT_SUCCESS),
        fields,
    );
    let service = r"C:\ProgramData\upd\wusvc.exe";
    let cmd = r"C:\Windows\System32\cmd.exe";
    let export =
        r#"powershell -nop -w hidden -c "Get-ADUser -Filter * | Export-Csv 'C:\ProgramData\upd\u.csv'" # «все»"#;
    for (time, image, command, parent) in [
        (
            at(8, 46, 5, 77),
            service,
            r"C:\ProgramData\upd\wusvc.exe -k netsvcs",
            r"C:\Windows\System32\services.exe",
        ),
        (
            at(8, 46, 9, 41_000),
            cmd,
            "cmd.exe /c whoami /all & nltest /dclist:northwind",
            service,
        ),
        (
            at(8, 46, 10, 52_000),
            r"C:\Windows\System32\whoami.exe",
            "whoami  /all",
            cmd,
        ),
        (
            at(8, 47, 31, 3_000_000),
            r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe",
            export,
            cmd,
        ),
    ] {
        process(&mut log, time, (local_system(), "DC01$", 0x3e7), image, command, parent);
    }
    for (minute, rid, user) in [(2, 1109, "g.kowalski"), (30, 1104, "anna.berg")] {
        logon(
            &mut log,
            at(9, minute, 40, minute * 1001),
            employee(rid, user, 60 + minute),
        );
    }
    log.log.finish()
}

fn dc_system() -> Vec<u8> {
    let mut log = Machine::new(DC, 14_002);
    // A classic event: its strings are one array value, which repeats the element, and raw data follows.
    let uptime = |log: &mut Machine, time, seconds: &str| {
        let data = Element::new("EventData")
            .child(Element::new("Data").substitution(Substitution::new(0, 0x81).required()))
            .child(
                Element::new("Binary")
                    .substitution(Substitution::new(1, 14).required())
                    .depends_on(1),
            );
        let strings = ["", "", "", "", seconds, "60", "0 Coordinated Universal Time"].map(str::to_owned);
        let values = vec![
            Value::StringArray(strings.into()),
            Value::Binary(vec![0x31, 0, 0x2e, 0, 0x31, 0, 0, 0]),
        ];
        let header = Header {
            qualifiers: Some(32768),
            keywords: 0x0080_0000_0000_0000,
            process: 0,
            thread: 0,
            ..Header::new(6013, time)
        };
        log.event_of(&CLASSIC, &header, "classic", data, values);
    };
    uptime(&mut log, at(6, 0, 0, 0), "518402");
    let state = |log: &mut Machine, time, service: &str, state: &str| {
        let data = Element::new("EventData")
            .child(required_data("param1", 0, 1))
            .child(required_data("param2", 1, 1))
            .child(Element::new("Binary").substitution(Substitution::new(2, 14).required()));
        let binary: Vec<u8> = service.encode_utf16().chain([0]).flat_map(u16::to_le_bytes).collect();
        let header = Header {
            qualifiers: Some(16384),
            keywords: 0x8080_0000_0000_0000,
            process: 612,
            thread: 7040,
            ..Header::new(7036, time)
        };
        log.event_of(
            &SERVICES,
            &header,
            "7036",
            data,
            vec![text(service), text(state), Value::Binary(binary)],
        );
    };
    for (minute, service) in [
        (2, "Windows Update"),
        (7, "Software Protection"),
        (19, "Network Setup Service"),
    ] {
        state(&mut log, at(7, minute, 1, 2_000_000), service, "running");
        state(&mut log, at(7, minute + 31, 3, 17), service, "stopped");
    }
    let header = Header {
        qualifiers: Some(16384),
        keywords: 0x8080_0000_0000_0000,
        process: 612,
        thread: 5120,
        user: Some(account(1203)),
        ..Header::new(7045, at(8, 46, 3, 1_251_300))
    };
    let fields = vec![
        ("ServiceName", text("WinUpdSvc")),
        ("ImagePath", text(r"C:\ProgramData\upd\wusvc.exe -k netsvcs")),
        ("ServiceType", text("user mode service")),
        ("StartType", text("auto start")),
        ("AccountName", text("LocalSystem")),
    ];
    log.event(&SERVICES, &header, fields);
    state(&mut log, at(8, 46, 5, 90_000), "WinUpdSvc", "running");
    uptime(&mut log, at(12, 0, 0, 0), "540002");
    log.log.finish()
}

/// The messages beside the System log, as Event Viewer saves them with display information. The last record has none.
pub(crate) fn system_messages() -> Vec<u8> {
    let mut messages = MtaWriter::new(&[SERVICES.name, CLASSIC.name]);
    let service = |name: &str, state: &str| format!("The {name} service entered the {state} state.");
    messages.message(14_002, "The system uptime is 518402 seconds.");
    for (i, name) in ["Windows Update", "Software Protection", "Network Setup Service"]
        .into_iter()
        .enumerate()
    {
        messages.message(14_003 + 2 * i as u64, service(name, "running"));
        messages.message(14_004 + 2 * i as u64, service(name, "stopped"));
    }
    messages.message(
        14_009,
        "A service was installed in the system.\r\n\r\nService Name:  WinUpdSvc",
    );
    messages.message(14_010, service("WinUpdSvc", "running"));
    messages.message(14_011, "");
    messages.finish()
}

fn workstation_security() -> Vec<u8> {
    let mut log = Machine::new(WORKSTATION, 40_011);
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
    let header = Header {
        level: 4,
        task: 104,
        keywords: 0x4020_0000_0000_0000,
        process: 1020,
        thread: 2816,
        ..Header::new(1102, at(8, 58, 0, 4_410_000))
    };
    log.event_of(
        &EVENTLOG,
        &header,
        "1102",
        data,
        vec![account(1203), text(STOLEN), text(DOMAIN), Value::HexInt64(0x7a_44e0)],
    );
    let user = || (account(1203), STOLEN, 0x7a_44e0);
    process(
        &mut log,
        at(8, 58, 1, 11),
        user(),
        r"C:\Windows\System32\wevtutil.exe",
        "wevtutil  cl System",
        r"C:\Windows\System32\cmd.exe",
    );
    process(
        &mut log,
        at(8, 58, 4, 902),
        user(),
        r"C:\Windows\System32\cmd.exe",
        "cmd /c del /q C:\\ProgramData\\upd\\u.csv",
        r"C:\Windows\System32\cmd.exe",
    );
    logon(
        &mut log,
        at(9, 12, 40, 77_001),
        Logon {
            sid: account(1112),
            user: "jon.smith",
            id: 0x81_0a2b,
            logon_type: 2,
            package: "Negotiate",
            workstation: "WS07",
            address: "127.0.0.1",
            port: "0",
            guid: [9; 16],
        },
    );
    log.log.finish()
}

/// The log of a collector, with events of another machine: `System` as text, and the rendering of each event there.
fn forwarded_events() -> Vec<u8> {
    let mut log = Machine::new(DC, 1);
    // The collector counts the records of its own log.
    log.origin_record = Some(88_244);
    let rendering = |message: &str, task: &str, keyword: &str| {
        Element::new("RenderingInfo")
            .attribute("Culture", "en-US")
            .child(Element::new("Message").text(message))
            .child(Element::new("Level").text("Information"))
            .child(Element::new("Task").text(task))
            .child(Element::new("Opcode").text("Info"))
            .child(Element::new("Channel").text("Security"))
            .child(Element::new("Provider").text("Microsoft Windows security auditing."))
            .child(Element::new("Keywords").child(Element::new("Keyword").text(keyword)))
    };
    // As most collectors have them: the data is a stream of an instance and the rendering.
    let data = Element::new("EventData")
        .child(required_data("TargetUserName", 0, 1))
        .child(required_data("IpAddress", 1, 1));
    let template = Template::new(*b"forwarded 4624  ", data);
    for (minute, user) in [(44, STOLEN), (59, "jon.smith")] {
        let event = Event::new(&template, vec![text(user), text(ATTACKER)]);
        let info = rendering(
            &format!("An account was successfully logged on.\r\n\r\nAccount Name:\t\t{user}"),
            "Logon",
            "Audit Success",
        );
        let stream = Stream::new(vec![Fragment::Instance(event), Fragment::Element(info)]);
        let header = audit(4624, at(8, minute, 53, 100), 12544, AUDIT_SUCCESS);
        log.event_with(&SECURITY, &header, Value::BinXml(stream));
        log.origin_record = log.origin_record.map(|record| record + 6);
    }
    // And spelled out without a template: every value is text, the time has nine digits.
    let spelled = |name: &str, content: &str| Element::new(name).text(content);
    let system = Element::new("System")
        .child(
            Element::new("Provider")
                .attribute("Name", SERVICES.name)
                .attribute("Guid", "{555908D1-A6D7-4695-8E1E-26931D2012F4}"),
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
    let data = Element::new("EventData")
        .child(spelled("Data", "WinUpdSvc").attribute("Name", "ServiceName"))
        .child(spelled("Data", r"C:\ProgramData\upd\wusvc.exe -k netsvcs").attribute("Name", "ImagePath"));
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
