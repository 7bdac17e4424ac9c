//! The Sysmon log of the domain controller in the story.

use evtx_writer::Value;

use crate::provider::{DC, Header, Machine, Provider, at, local_system, text};

const SYSMON: Provider = Provider {
    name: "Microsoft-Windows-Sysmon",
    guid: Some("5770385f-c22a-43e0-bf4c-06f5698ffbd9"),
    source: None,
    channel: "Microsoft-Windows-Sysmon/Operational",
};

fn header(event_id: u16, version: u8, time: u64) -> Header {
    Header {
        version,
        task: event_id,
        process: 2104,
        thread: 3312,
        user: Some(local_system()),
        ..Header::new(event_id, time)
    }
}

fn guid(n: u8) -> Value {
    Value::Guid([
        0x2a, 0x7f, 0x11, 0x4c, 0x05, 0x9b, 0x65, 0xe6, n, 0x01, 0, 0, 0, 0, 0x18, 0x00,
    ])
}

fn utc(text: &str) -> Value {
    Value::string(format!("2024-03-05 {text}"))
}

fn system() -> Value {
    text("NT AUTHORITY\\SYSTEM")
}

/// A process was created.
pub(crate) fn create(log: &mut Machine, time: u64, utc_time: &str, n: u8, image: &str, command: &str, parent: &str) {
    let fields = vec![
        ("RuleName", text("-")),
        ("UtcTime", utc(utc_time)),
        ("ProcessGuid", guid(n)),
        ("ProcessId", Value::UInt32(6000 + u32::from(n))),
        ("Image", text(image)),
        ("FileVersion", text("10.0.20348.1")),
        ("Description", text("-")),
        ("Product", text("-")),
        ("Company", text("-")),
        ("OriginalFileName", text("-")),
        ("CommandLine", text(command)),
        ("CurrentDirectory", text(r"C:\Windows\system32\")),
        ("User", system()),
        ("LogonGuid", guid(0xe7)),
        ("LogonId", Value::HexInt64(0x3e7)),
        ("TerminalSessionId", Value::UInt32(0)),
        ("IntegrityLevel", text("System")),
        (
            "Hashes",
            text("SHA256=5F1D7F5E0B1E6C0B6D0C29C6B1B7E1D2E6A4F1B7C8D9E0F1A2B3C4D5E6F70819"),
        ),
        ("ParentProcessGuid", guid(n - 1)),
        ("ParentProcessId", Value::UInt32(5999 + u32::from(n))),
        ("ParentImage", text(parent)),
        ("ParentCommandLine", text(parent)),
        ("ParentUser", system()),
    ];
    log.event(&SYSMON, &header(1, 5, time), fields);
}

/// A program connected to a host.
pub(crate) fn connection(
    log: &mut Machine,
    time: u64,
    utc_time: &str,
    image: &str,
    host: &str,
    address: &str,
    port: u16,
) {
    let fields = vec![
        ("RuleName", text("-")),
        ("UtcTime", utc(utc_time)),
        ("ProcessGuid", guid(1)),
        ("ProcessId", Value::UInt32(6001)),
        ("Image", text(image)),
        ("User", system()),
        ("Protocol", text("tcp")),
        ("Initiated", Value::Bool(true)),
        ("SourceIsIpv6", Value::Bool(false)),
        ("SourceIp", text("10.20.0.5")),
        ("SourceHostname", text(DC)),
        ("SourcePort", Value::UInt16(49877)),
        ("SourcePortName", text("-")),
        ("DestinationIsIpv6", Value::Bool(false)),
        ("DestinationIp", text(address)),
        ("DestinationHostname", text(host)),
        ("DestinationPort", Value::UInt16(port)),
        ("DestinationPortName", text("https")),
    ];
    log.event(&SYSMON, &header(3, 5, time), fields);
}

pub(crate) fn dc_sysmon() -> Vec<u8> {
    let mut log = Machine::new(DC, 301_117);
    let service = r"C:\ProgramData\upd\wusvc.exe";
    let query = vec![
        ("RuleName", text("-")),
        ("UtcTime", utc("08:45:40.118")),
        ("ProcessGuid", guid(1)),
        ("ProcessId", Value::UInt32(6001)),
        ("QueryName", text("cdn.update-check.example")),
        ("QueryStatus", text("0")),
        ("QueryResults", text("::ffff:198.51.100.23;")),
        ("Image", text(r"C:\Windows\System32\curl.exe")),
        ("User", text("NORTHWIND\\svc-backup")),
    ];
    log.event(&SYSMON, &header(22, 5, at(8, 45, 40, 1_190_000)), query);
    connection(
        &mut log,
        at(8, 45, 40, 2_004_000),
        "08:45:40.200",
        r"C:\Windows\System32\curl.exe",
        "cdn.update-check.example",
        "198.51.100.23",
        443,
    );
    let file = vec![
        ("RuleName", text("EXE")),
        ("UtcTime", utc("08:45:42.551")),
        ("ProcessGuid", guid(1)),
        ("ProcessId", Value::UInt32(6001)),
        ("Image", text(r"C:\Windows\System32\curl.exe")),
        ("TargetFilename", text(service)),
        ("CreationUtcTime", utc("08:45:42.550")),
        ("User", text("NORTHWIND\\svc-backup")),
    ];
    log.event(&SYSMON, &header(11, 2, at(8, 45, 42, 5_512_000)), file);
    let registry = vec![
        ("RuleName", text("T1031,T1050")),
        ("EventType", text("SetValue")),
        ("UtcTime", utc("08:46:03.126")),
        ("ProcessGuid", guid(2)),
        ("ProcessId", Value::UInt32(612)),
        ("Image", text(r"C:\Windows\system32\services.exe")),
        (
            "TargetObject",
            text(r"HKLM\System\CurrentControlSet\Services\WinUpdSvc\ImagePath"),
        ),
        ("Details", text(r"C:\ProgramData\upd\wusvc.exe -k netsvcs")),
        ("User", system()),
    ];
    log.event(&SYSMON, &header(13, 2, at(8, 46, 3, 1_262_000)), registry);
    create(
        &mut log,
        at(8, 46, 5, 90),
        "08:46:05.000",
        3,
        service,
        "C:\\ProgramData\\upd\\wusvc.exe -k netsvcs",
        r"C:\Windows\System32\services.exe",
    );
    create(
        &mut log,
        at(8, 46, 9, 41_200),
        "08:46:09.004",
        4,
        r"C:\Windows\System32\cmd.exe",
        "cmd.exe /c whoami /all & nltest /dclist:northwind",
        service,
    );
    create(
        &mut log,
        at(8, 46, 10, 52_300),
        "08:46:10.005",
        5,
        r"C:\Windows\System32\whoami.exe",
        "whoami  /all",
        r"C:\Windows\System32\cmd.exe",
    );
    for minute in 0..20 {
        let utc_time = format!("08:{:02}:30.000", 40 + minute);
        connection(
            &mut log,
            at(8, 40 + minute, 30, 0),
            &utc_time,
            service,
            "-",
            "198.51.100.23",
            443,
        );
    }
    log.log.finish()
}
