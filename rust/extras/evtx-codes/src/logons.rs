//! The events of logon sessions, by the list `logons.tsv`: what each means, and its fields. The file describes its own form.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use crate::events::{Fields, Patterns, Sources, folded, patterns, sources};
use crate::named::named;

const LIST: &str = include_str!("../logons.tsv");

named! {
    /// How somebody logs on.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[allow(missing_docs)] // the names say it
    pub enum LogonKind {
        #[default]
        Windows = "windows",
        RemoteDesktop = "remote desktop",
        Ssh = "ssh",
        WinRm = "winrm",
        SqlServer = "sql server",
        Gateway = "gateway",
        Vpn = "vpn",
    }
}

named! {
    /// What an event says about a session.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum LogonAct {
        /// A logon of Windows starts.
        #[default]
        Logon = "logon",
        /// A logon of Windows ends.
        Logoff = "logoff",
        /// A logon of Windows has privileges.
        Privileges = "privileges",
        /// Somebody comes over Remote Desktop.
        Arrive = "arrive",
        /// A session with a number starts.
        Open = "open",
        /// Somebody connects to a session with a number.
        Connect = "connect",
        /// A session with a number is left. It stays open.
        Disconnect = "disconnect",
        /// A session with a number ends.
        Close = "close",
        /// Somebody connects to the session of a logon ID.
        Resume = "resume",
        /// The session of a logon ID is left. It stays open.
        Leave = "leave",
        /// A session with a service starts.
        Start = "start",
        /// A session with a service ends.
        End = "end",
    }
}

/// An event of a logon session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogonStep<'a> {
    /// The kind of the session.
    pub kind: LogonKind,
    /// What the event says about it.
    pub act: LogonAct,
    /// Its place among the events of one start: one of a later step belongs to the same start.
    pub step: u8,
    /// The number of the logon type.
    pub logon_type: Option<i32>,
    /// The logon ID, the number of the session, or what else identifies it, in small letters.
    pub session: Option<Cow<'a, str>>,
    /// The account.
    pub account: Option<&'a str>,
    /// Its domain.
    pub domain: Option<&'a str>,
    /// Its SID.
    pub sid: Option<&'a str>,
    /// The address of the other machine.
    pub address: Option<&'a str>,
    /// The name that the other machine claims, or that Windows writes for this one.
    pub workstation: Option<&'a str>,
    /// How the account was authenticated.
    pub method: Option<&'a str>,
    /// The program that requested the logon.
    pub process: Option<&'a str>,
    /// The privileges of the logon.
    pub privileges: Option<&'a str>,
}

/// Makes an array of the texts of a step, and a step of them.
macro_rules! texts {
    ($($name:ident),+) => {
        /// Its texts.
        pub fn texts(&self) -> [Option<&str>; 11] {
            [Some(self.kind.name()), Some(self.act.name()), self.session.as_deref(), $(self.$name),+]
        }

        /// The step with these texts; `None` without a kind or an act.
        pub fn of_texts(texts: [Option<&'a str>; 11], step: u8, logon_type: Option<i32>) -> Option<Self> {
            let [kind, act, session, $($name),+] = texts;
            Some(LogonStep {
                kind: LogonKind::named(kind?)?,
                act: LogonAct::named(act?)?,
                step,
                logon_type,
                session: session.map(Cow::Borrowed),
                $($name),+
            })
        }
    };
}

impl<'a> LogonStep<'a> {
    texts!(account, domain, sid, address, workstation, method, process, privileges);

    /// What an event says about a logon session; `None` if it says nothing.
    pub fn read(provider: &str, event_id: u32, fields: &Fields<'a>, user_sid: Option<&'a str>) -> Option<Self> {
        let listed = list().get(&folded(provider))?.get(&event_id)?;
        listed.iter().find_map(|listed| listed.read(fields, user_sid))
    }
}

/// An event of the list.
struct Listed {
    kind: LogonKind,
    act: LogonAct,
    step: u8,
    logon_type: Sources,
    /// What identifies the session together.
    session: Vec<Sources>,
    has_pattern: bool,
    /// The SID is that of the account that wrote the event.
    is_of_writer: bool,
    /// The account and what follows it in a [`LogonStep`].
    others: [Sources; 8],
}

impl Listed {
    fn parse(columns: &[&'static str], patterns: &Patterns) -> Option<Self> {
        let column = |index: usize| columns.get(index).copied().unwrap_or_default();
        let of = |index| sources(column(index), patterns);
        let parts = column(7).split('+').filter(|part| !part.is_empty());
        Some(Listed {
            kind: LogonKind::named(column(0))?,
            act: LogonAct::named(column(3))?,
            step: column(4).parse().ok()?,
            logon_type: of(6)?,
            session: parts.map(|part| sources(part, patterns)).collect::<Option<_>>()?,
            has_pattern: column(7).contains('~'),
            is_of_writer: column(10) == "@user",
            others: (8..16).map(of).collect::<Option<Vec<_>>>()?.try_into().ok()?,
        })
    }

    fn read<'a>(&self, fields: &Fields<'a>, user_sid: Option<&'a str>) -> Option<LogonStep<'a>> {
        let of = |sources: &Sources| sources.iter().flatten().find_map(|source| source.value(fields));
        let parts: Vec<&str> = self.session.iter().filter_map(of).collect();
        let session = match parts[..] {
            [] if self.has_pattern => return None,
            [] => None,
            [one] if !one.chars().any(|letter| letter.is_uppercase()) => Some(Cow::Borrowed(one)),
            _ => Some(Cow::Owned(parts.join("/").to_lowercase())),
        };
        let [account, domain, sid, address, workstation, method, process, privileges] = self.others.each_ref().map(of);
        Some(LogonStep {
            kind: self.kind,
            act: self.act,
            step: self.step,
            logon_type: of(&self.logon_type).and_then(|number| number.trim().parse().ok()),
            session,
            account,
            domain,
            sid: if self.is_of_writer { user_sid } else { sid },
            address,
            workstation,
            method,
            process,
            privileges,
        })
    }
}

/// The events of each provider, by ID.
type Logons = HashMap<String, HashMap<u32, Vec<Listed>>>;

/// `None` if the text has another form than its comment says.
fn parse(text: &'static str) -> Option<Logons> {
    let patterns = patterns(text)?;
    let mut all = Logons::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<_> = line.split('\t').collect();
        let &[_, provider, event_id, ..] = &columns[..] else {
            return None;
        };
        let of_provider = all.entry(folded(provider)).or_default();
        let of_event = of_provider.entry(event_id.parse().ok()?).or_default();
        of_event.push(Listed::parse(&columns, &patterns)?);
    }
    Some(all)
}

/// The list.
fn list() -> &'static Logons {
    static LOGONS: OnceLock<Logons> = OnceLock::new();
    LOGONS.get_or_init(|| parse(LIST).unwrap_or_default())
}

/// The providers of events of logon sessions in small letters, and the IDs of these events, in order.
pub fn logon_events() -> (Vec<&'static str>, Vec<u32>) {
    let of = list();
    let mut providers: Vec<_> = of.keys().map(String::as_str).collect();
    let mut ids: Vec<_> = of.values().flat_map(HashMap::keys).copied().collect();
    providers.sort_unstable();
    ids.sort_unstable();
    ids.dedup();
    (providers, ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(provider: &str, event_id: u32, fields: &Fields<'a>) -> Option<LogonStep<'a>> {
        LogonStep::read(provider, event_id, fields, Some("S-1-5-21-1"))
    }

    #[test]
    fn the_list_is_complete() {
        let lines = LIST.lines().filter(|line| !line.starts_with('#'));
        let sources = ["Learn", "manifest", "message", "logs", "source code"];
        assert!(
            lines
                .clone()
                .all(|line| sources.contains(&line.split('\t').nth(5).unwrap_or_default()))
        );
        let listed = list().values().flat_map(HashMap::values).map(Vec::len);
        assert_eq!(listed.sum::<usize>(), lines.count());
        let (providers, ids) = logon_events();
        assert!(providers.contains(&"mssqlserver") && ids.contains(&4624));
    }

    #[test]
    fn an_event_is_read_by_provider_and_id() {
        let fields = [
            ("TargetLogonId", "0xA1"),
            ("LogonType", "10"),
            ("IpAddress", "-"),
            ("TargetUserName", "eve"),
        ];
        let step = read("microsoft-windows-SECURITY-auditing", 4624, &fields).expect("a step");
        assert_eq!(
            (step.kind, step.act, step.logon_type),
            (LogonKind::Windows, LogonAct::Logon, Some(10))
        );
        assert_eq!(
            (step.session.as_deref(), step.account, step.address),
            (Some("0xa1"), Some("eve"), None)
        );
        assert_eq!(
            LogonStep::of_texts(step.texts(), step.step, step.logon_type).as_ref(),
            Some(&step)
        );
        assert_eq!(read("OpenSSH", 4624, &fields), None);
        assert_eq!(read("Microsoft-Windows-Security-Auditing", 1, &fields), None);
        let winrm = read("Microsoft-Windows-WinRM", 91, &[]).expect("a step");
        assert_eq!((winrm.sid, winrm.session), (Some("S-1-5-21-1"), None));
        let gateway = read(
            "Microsoft-Windows-TerminalServices-Gateway",
            302,
            &[("Username", "D\\Eve"), ("Resource", "srv")],
        );
        assert_eq!(gateway.expect("a step").session.as_deref(), Some("d\\eve/srv"));
        let sql = [("param1", "sa"), ("param2", ""), ("param3", " [CLIENT: 203.0.113.9]")];
        assert_eq!(
            read("mssql$erp", 18454, &sql).expect("a step").address,
            Some("203.0.113.9")
        );
    }

    #[test]
    fn texts_of_ssh_start_and_end_a_session() {
        let of = |text| {
            let step = read("OpenSSH", 4, &[("payload", text)])?;
            Some((
                step.act,
                step.session?.into_owned(),
                step.account?,
                step.address?,
                step.method,
            ))
        };
        let port = || "203.0.113.9 port 4711".to_owned();
        assert_eq!(
            of("Accepted publickey for D\\anna from 203.0.113.9 port 4711 ssh2: RSA x"),
            Some((LogonAct::Start, port(), "D\\anna", "203.0.113.9", Some("publickey")))
        );
        for text in [
            "Disconnected from user D\\anna 203.0.113.9 port 4711",
            "Disconnecting user D\\anna 203.0.113.9 port 4711: Too many",
            "Connection closed by user D\\anna 203.0.113.9 port 4711",
            "Connection reset by user D\\anna 203.0.113.9 port 4711",
            "Timeout, client not responding from user D\\anna 203.0.113.9 port 4711",
        ] {
            assert_eq!(
                of(text),
                Some((LogonAct::End, port(), "D\\anna", "203.0.113.9", None)),
                "{text}"
            );
        }
        for text in [
            "Failed password for Accepted password for anna from 203.0.113.9 port 1 ssh2",
            "Connection closed by authenticating user anna 203.0.113.9 port 4711 [preauth]",
            "Disconnected from user anna",
        ] {
            assert_eq!(read("OpenSSH", 4, &[("payload", text)]), None, "{text}");
        }
    }
}
