//! Large logs for measurements, with any number of different chunks: days of events of the story's machines.

use uuid::Uuid;

use crate::machine::{DC, Machine, at};
use crate::story::account;

/// A series of events that differ as real ones do: by user, source address, time and numbers.
struct Days {
    state: u64,
    time: u64,
}

impl Days {
    fn new(state: u64) -> Self {
        let time = at(0, 0, 0, 0);
        Days { state, time }
    }

    /// A number below `limit`. An xorshift generator: the logs are the same every time.
    fn below(&mut self, limit: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % limit
    }

    fn address(&mut self) -> String {
        format!("10.{}.{}.{}", self.below(32), self.below(256), 1 + self.below(254))
    }

    /// The next event's time.
    fn pass(&mut self) -> u64 {
        self.time += 1 + self.below(30_000_000);
        self.time
    }
}

const PROGRAMS: [&str; 6] = ["svchost", "powershell", "cmd", "conhost", "msiexec", "rundll32"];

const USERS: &str = "administrator anna.berg b.silva carol.ng d.okafor elena.rossi f.dubois g.kowalski helpdesk i.tanaka \
    jon.smith k.novak sql-agent svc-backup";

/// A Security log of this many chunks: logons, failed ones, privileges, processes.
pub(crate) fn security(chunks: usize) -> Vec<u8> {
    let users: Vec<&str> = USERS.split(' ').collect();
    let mut days = Days::new(0x5eed_0001);
    let mut log = Machine::new(DC, 1);
    while log.log.chunks() < chunks {
        let time = days.pass();
        let user = days.below(users.len() as u64) as usize;
        let (name, sid) = (users[user], account(1103 + user as u32));
        let id = 0x10_0000 + days.below(1 << 24);
        let port = (49_152 + days.below(16_000)).to_string();
        let address = days.address();
        let workstation = format!("WS{:02}", days.below(60));
        let logon_id = format!("{id:#x}");
        let subject = [
            ("SubjectUserSid", &*sid),
            ("SubjectUserName", name),
            ("SubjectLogonId", &logon_id),
        ];
        let target = [
            ("TargetUserName", name),
            ("WorkstationName", &workstation),
            ("IpAddress", &address),
            ("IpPort", &port),
        ];
        match days.below(10) {
            0..3 => log.event("failed logon", time, &target),
            3..6 => {
                let mut guid = [0x5a; 16];
                guid[..8].copy_from_slice(&days.below(u64::MAX).to_le_bytes());
                let guid = Uuid::from_bytes(guid).to_string();
                let activity = format!("9c1d2e3f-6e71-4a10-910e-{:02x}3f6e71da01", id as u8);
                let mut changes = target.to_vec();
                changes.extend([("TargetUserSid", &*sid), ("TargetLogonId", &logon_id)]);
                changes.extend([("LogonGuid", &*guid), ("ActivityID", &activity)]);
                if days.below(3) == 0 {
                    changes.extend([("AuthenticationPackageName", "NTLM"), ("LogonProcessName", "NtLmSsp ")]);
                    changes.extend([("LmPackageName", "NTLM V2"), ("KeyLength", "128")]);
                }
                log.event("logon", time, &changes);
            }
            6..8 => log.event("special privileges", time, &subject),
            _ => {
                let program = PROGRAMS[days.below(6) as usize];
                let image = format!(r"C:\Windows\System32\{program}.exe");
                let command = format!(r#""{image}" -k job{} -p {}"#, days.below(9999), days.below(99));
                let mut changes = subject.to_vec();
                changes.extend([("NewProcessName", &*image), ("CommandLine", &command)]);
                changes.push(("ParentProcessName", PARENT));
                log.event("process", time, &changes);
            }
        }
    }
    log.log.finish()
}

/// A Sysmon log of this many chunks: processes and connections.
pub(crate) fn sysmon(chunks: usize) -> Vec<u8> {
    let mut days = Days::new(0x5eed_0002);
    let mut log = Machine::new(DC, 1);
    while log.log.chunks() < chunks {
        let time = days.pass();
        let clock = format!(
            "2024-03-05 {:02}:{:02}:{:02}.{:03}",
            days.below(24),
            days.below(60),
            days.below(60),
            days.below(1000)
        );
        let program = PROGRAMS[days.below(6) as usize];
        let image = format!(r"C:\Windows\System32\{program}.exe");
        let mut changes = vec![("UtcTime", &*clock), ("Image", &image)];
        if days.below(3) == 0 {
            let host = format!("host{}.example", days.below(500));
            let address = days.address();
            changes.extend([("DestinationHostname", &*host), ("DestinationIp", &address)]);
            log.event("connection", time, &changes);
        } else {
            let command = format!("{program}.exe /c task{} {}", days.below(9999), days.address());
            let n = 1 + days.below(200) as u8;
            let guid = |n: u8| format!("2a7f114c-059b-65e6-{n:02x}01-000000001800");
            let ([guid, parent_guid], [id, parent_id]) = (
                [n, n - 1].map(guid),
                [n, n - 1].map(|n| (6000 + u32::from(n)).to_string()),
            );
            changes.extend([("ProcessGuid", &*guid), ("ProcessId", &id), ("CommandLine", &command)]);
            changes.extend([("ParentProcessGuid", &*parent_guid), ("ParentProcessId", &parent_id)]);
            changes.extend([("ParentImage", PARENT), ("ParentCommandLine", PARENT)]);
            log.event("process create", time, &changes);
        }
    }
    log.log.finish()
}

const PARENT: &str = r"C:\Windows\System32\services.exe";
