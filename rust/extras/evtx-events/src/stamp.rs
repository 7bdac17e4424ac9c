//! What a record says about its place: which record it is, and what it tells about the clock and the names of its machine.

use evtx_codes::UserData;
use evtx_format::value::parse;
use sha2::{Digest, Sha256};

/// The programs of virtual machines that set the clock when their machine goes on.
const GUEST_TOOLS: [&str; 3] = ["vmtoolsd.exe", "vboxservice.exe", "qemu-ga.exe"];

/// Whether a program has the name of one that sets the clock of a virtual machine. Any program can have it.
pub fn is_guest_tool(path: &str) -> bool {
    let name = path.rsplit('\\').next().unwrap_or(path);
    GUEST_TOOLS.iter().any(|tool| tool.eq_ignore_ascii_case(name))
}

/// How many fields most events have.
const FIELDS: usize = 32;

/// The columns of a record.
#[derive(Debug, Clone, Copy, Default)]
#[allow(missing_docs)] // the columns of read_evtx
pub struct Columns<'a> {
    pub computer: Option<&'a str>,
    pub channel: Option<&'a str>,
    pub provider: Option<&'a str>,
    pub event_record_id: Option<u64>,
    /// In nanoseconds.
    pub time_created: Option<i64>,
    pub event_id: Option<u32>,
    pub user_sid: Option<&'a str>,
    /// The keys and values.
    pub event_data: Option<&'a [(&'a str, Option<&'a str>)]>,
    pub user_data: Option<&'a str>,
}

impl<'a> Columns<'a> {
    /// The fields that have a value: those of `user_data`, which is the document, and those of `event_data`. A planted event can have both.
    pub fn fields<'f>(&self, document: Option<&'f UserData>) -> Vec<(&'f str, &'f str)>
    where
        'a: 'f,
    {
        let mut fields = Vec::with_capacity(FIELDS);
        fields.extend(document.into_iter().flat_map(UserData::shown));
        let pairs = self.event_data.unwrap_or_default().iter();
        fields.extend(pairs.filter_map(|&(key, value)| Some((key, value?))));
        fields
    }
}

/// What a record says about its place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stamp<'a> {
    /// A number for all that the record says. Copies of a record have the same.
    pub digest: i128,
    /// The times before and after, if it says that the clock was set, in nanoseconds.
    pub change: [Option<i64>; 2],
    /// When Windows woke, or the virtual machine that it runs in.
    pub wake_time: Option<i64>,
    /// Whether it is written long after its time, as what the kernel says of its start.
    pub is_late: bool,
    /// The host names before and after, in lower case, if the machine got a new one.
    pub renamed: [Option<String>; 2],
    /// The SID of the machine, with which those of its accounts begin.
    pub own_sid: Option<&'a str>,
}

impl<'a> Stamp<'a> {
    /// The events that tell about the clock or the names of their machine.
    pub const EVENTS: [u32; 6] = [1, 4616, 4624, 4720, 4738, 6011];

    /// Whether the record tells about the clock or the names of its machine.
    pub fn tells(&self) -> bool {
        let times = self.change.iter().chain([&self.wake_time]);
        times.flatten().next().is_some() || self.own_sid.is_some() || self.renamed.iter().any(Option::is_some)
    }

    /// What the record with these columns says.
    pub fn read(of: &Columns<'a>) -> Self {
        let value = |name: &str| {
            let mut fields = of.event_data.unwrap_or_default().iter();
            fields.find(|(key, _)| *key == name).and_then(|&(_, value)| value)
        };
        let time = |name| i64::try_from(parse::instant(value(name)?)?).ok();
        let is_from = |provider: &str| of.provider.is_some_and(|name| name.eq_ignore_ascii_case(provider));
        let mut stamp = Stamp {
            digest: digest(of),
            is_late: of.event_id == Some(12) && is_from("Microsoft-Windows-Kernel-General"),
            ..Stamp::default()
        };
        match of.event_id {
            Some(1) => {
                let woken = if value("Reason") == Some("2") {
                    "NewTime"
                } else {
                    "WakeTime"
                };
                stamp.wake_time = time(woken);
            }
            Some(4616) if value("ProcessName").is_some_and(is_guest_tool) => {
                stamp.wake_time = time("NewTime").filter(|&new| time("PreviousTime").is_some_and(|old| new > old));
            }
            Some(6011) if is_from("EventLog") => {
                stamp.renamed = ["param1", "param2"].map(|name| value(name).map(str::to_lowercase));
            }
            Some(4624 | 4720 | 4738) if is_from("Microsoft-Windows-Security-Auditing") => {
                stamp.own_sid = own_sid(of.computer.unwrap_or_default(), value);
            }
            _ => {}
        }
        if let Some(1 | 4616) = of.event_id {
            stamp.change = [time("PreviousTime").or_else(|| time("OldTime")), time("NewTime")];
        }
        stamp
    }
}

/// The SID of a machine, from one of its accounts, which have its NetBIOS name as their domain.
fn own_sid<'a>(computer: &str, value: impl Fn(&str) -> Option<&'a str>) -> Option<&'a str> {
    let host = computer.split('.').next().unwrap_or_default().to_lowercase();
    let host: String = host.chars().take(15).collect();
    let is_own = |domain| value(domain).is_some_and(|domain| domain.to_lowercase() == host);
    let sid = if is_own("TargetDomainName") {
        value("TargetUserSid").or_else(|| value("TargetSid"))
    } else {
        value("SubjectUserSid").filter(|_| is_own("SubjectDomainName"))
    }?;
    let (machine, number) = sid.rsplit_once('-')?;
    let is_account = machine.len() > "S-1-5-21-".len() && machine.starts_with("S-1-5-21-");
    (is_account && !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())).then_some(machine)
}

/// The first half of the SHA-256 of all columns, so that nobody can make two records that count as copies. Exports as XML have no
/// carriage returns, and quotes around the numbers of `user_data`: neither counts. Not negative.
fn digest(of: &Columns<'_>) -> i128 {
    let mut hash = Sha256::new();
    // No UTF-8 has these bytes.
    let mut add = |text: Option<&str>| {
        for part in text.unwrap_or("\0").split(['\r', '"']) {
            hash.update(part);
        }
        hash.update(if text.is_some() { [0xff] } else { [0xfe] });
    };
    for text in [of.computer, of.channel, of.provider, of.user_sid, of.user_data] {
        add(text);
    }
    for &(key, value) in of.event_data.unwrap_or_default() {
        add(Some(key));
        add(value);
    }
    let numbers = [
        of.event_record_id.map(i128::from),
        of.time_created.map(i128::from),
        of.event_id.map(i128::from),
    ];
    for number in numbers {
        hash.update(number.unwrap_or(i128::MAX).to_le_bytes());
    }
    hash.update([of.event_data.is_some().into()]);
    let all: [u8; 32] = hash.finalize().into();
    i128::from_le_bytes(std::array::from_fn(|at| all[at])) & i128::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_have_one_digest() {
        let data = [("a", Some("1\r\n")), ("b", None)];
        let of = Columns {
            computer: Some("pc"),
            event_record_id: Some(1),
            event_data: Some(&data),
            user_data: Some(r#"{"x":"1"}"#),
            ..Columns::default()
        };
        let exported = [("a", Some("1\n")), ("b", None)];
        let copy = Columns {
            event_data: Some(&exported),
            user_data: Some(r#"{"x":1}"#),
            ..of
        };
        assert_eq!(digest(&of), digest(&copy));
        let moved = [("a1", Some("\n")), ("b", None)];
        let (empty, null) = ([("a", Some("1\n")), ("b", Some(""))], [("a", Some("1\n"))]);
        let others = [
            Columns { computer: None, ..copy },
            Columns {
                channel: Some("pc"),
                computer: None,
                ..copy
            },
            Columns {
                event_record_id: None,
                ..copy
            },
            Columns {
                event_data: None,
                ..copy
            },
            Columns {
                event_data: Some(&moved),
                ..copy
            },
            Columns {
                event_data: Some(&empty),
                ..copy
            },
            Columns {
                event_data: Some(&null),
                ..copy
            },
        ];
        let mut digests: Vec<_> = others.iter().chain([&copy]).map(digest).collect();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), others.len() + 1);
    }

    #[test]
    fn accounts_of_a_machine_tell_its_sid() {
        let data = [
            ("TargetDomainName", Some("WORKSTATION-LON")),
            ("TargetUserSid", Some("S-1-5-21-1-2-3-1001")),
        ];
        let of = Columns {
            computer: Some("Workstation-London.corp"),
            provider: Some("Microsoft-Windows-Security-Auditing"),
            event_id: Some(4624),
            event_data: Some(&data),
            ..Columns::default()
        };
        assert_eq!(Stamp::read(&of).own_sid, Some("S-1-5-21-1-2-3"));
        assert_eq!(
            Stamp::read(&Columns {
                computer: Some("pc"),
                ..of
            })
            .own_sid,
            None
        );
    }

    #[test]
    fn tools_of_virtual_machines_wake_them() {
        let set = |program, old, new| {
            let data = [
                ("ProcessName", Some(program)),
                ("PreviousTime", Some(old)),
                ("NewTime", Some(new)),
            ];
            let of = Columns {
                event_id: Some(4616),
                event_data: Some(&data),
                ..Columns::default()
            };
            let stamp = Stamp::read(&of);
            (stamp.change.map(|time| time.is_some()), stamp.wake_time.is_some())
        };
        let (early, late) = ("2024-01-01T10:00:00.5Z", "2024-01-01 11:00:00.1234567");
        assert_eq!(set(r"C:\tools\VMToolsd.exe", early, late), ([true; 2], true));
        assert_eq!(set(r"C:\tools\VMToolsd.exe", late, early), ([true; 2], false));
        assert_eq!(set(r"C:\svchost.exe", early, "never"), ([true, false], false));
    }
}
