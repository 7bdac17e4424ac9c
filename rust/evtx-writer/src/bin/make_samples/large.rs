//! Large logs for measurements, with any number of different chunks: days of events of the story's machines.

use crate::provider::{DC, Machine, at};
use crate::story::{self, Logon, USERS, account};
use crate::sysmon;

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

    fn user(&mut self) -> usize {
        self.below(USERS.len() as u64) as usize
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

/// A Security log of this many chunks: logons, failed ones, privileges, processes.
pub(crate) fn security(chunks: usize) -> Vec<u8> {
    let mut days = Days::new(0x5eed_0001);
    let mut log = Machine::new(DC, 1);
    while log.log.chunks() < chunks {
        let time = days.pass();
        let user = days.user();
        let (name, sid) = (USERS[user], account(1103 + user as u32));
        let id = 0x10_0000 + days.below(1 << 24);
        let port = 49_152 + days.below(16_000) as u16;
        let address = days.address();
        let workstation = format!("WS{:02}", days.below(60));
        match days.below(10) {
            0..3 => story::failed_logon(&mut log, time, name, 0xc000_006a, (&workstation, &address, port)),
            3..6 => {
                let mut guid = [0x5a; 16];
                guid[..8].copy_from_slice(&days.below(u64::MAX).to_le_bytes());
                let ntlm = days.below(3) == 0;
                let logon = Logon {
                    sid,
                    user: name,
                    id,
                    logon_type: 3,
                    package: if ntlm { "NTLM" } else { "Kerberos" },
                    workstation: &workstation,
                    address: &address,
                    port: &port.to_string(),
                    guid,
                };
                story::logon(&mut log, time, logon);
            }
            6..8 => story::special_privileges(&mut log, time, sid, name, id),
            _ => {
                let program = PROGRAMS[days.below(6) as usize];
                let image = format!(r"C:\Windows\System32\{program}.exe");
                let command = format!(r#""{image}" -k job{} -p {}"#, days.below(9999), days.below(99));
                story::process(
                    &mut log,
                    time,
                    (sid, name, id),
                    &image,
                    &command,
                    r"C:\Windows\System32\services.exe",
                );
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
            "{:02}:{:02}:{:02}.{:03}",
            days.below(24),
            days.below(60),
            days.below(60),
            days.below(1000)
        );
        let program = PROGRAMS[days.below(6) as usize];
        let image = format!(r"C:\Windows\System32\{program}.exe");
        if days.below(3) == 0 {
            let host = format!("host{}.example", days.below(500));
            sysmon::connection(&mut log, time, &clock, &image, &host, &days.address(), 443);
        } else {
            let command = format!("{program}.exe /c task{} {}", days.below(9999), days.address());
            sysmon::create(
                &mut log,
                time,
                &clock,
                1 + days.below(200) as u8,
                &image,
                &command,
                PARENT,
            );
        }
    }
    log.log.finish()
}

const PARENT: &str = r"C:\Windows\System32\services.exe";
