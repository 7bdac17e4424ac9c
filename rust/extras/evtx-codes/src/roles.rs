//! Who, from where, with which program, and about what: the fields of an event by the list of events.

use std::borrow::Cow;

use crate::details::{Details, Kind};
use crate::events::{Event, Fields, Listed, OfProvider, Source, Sources, events};
use crate::host::{Machine, Writer, remote_host};

/// The roles of the fields of an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roles<'a> {
    /// The name of the event.
    pub event: Option<&'static str>,
    /// What the event is a fact about, one of [`TOPICS`](crate::TOPICS).
    pub topic: Option<&'static str>,
    /// How much it deserves a look, one of [`LEVELS`](crate::LEVELS).
    pub level: Option<&'static str>,
    /// The account that logged on, was locked, or caused the event.
    pub account: Option<&'a str>,
    /// Its domain.
    pub domain: Option<&'a str>,
    /// Its SID, or else that of the account that wrote the event.
    pub user_sid: Option<&'a str>,
    /// The other machine.
    pub remote_host: Option<Cow<'a, str>>,
    /// Whether the other machine claims to have the name of this one.
    pub claims_own_name: bool,
    /// Whether the account is one of Windows, such as S-1-5-18, under a name that differs between machines: the present or a former name
    /// of the machine, or one in the language of Windows, as in `NT-AUTORITÄT\SYSTEM`.
    pub is_windows: bool,
    /// Whether the SID is that of who wrote the event.
    pub is_of_writer: bool,
    /// The program.
    pub process: Option<&'a str>,
    /// The account, object or file that the event is about.
    pub target: Option<&'a str>,
    /// What else matters most.
    pub detail: Option<Cow<'a, str>>,
    /// The other fields in one line, with the names of codes.
    pub details: Option<String>,
}

/// The first of some sources with a value, and its position.
fn first<'a>(sources: &Sources, fields: &Fields<'a>) -> Option<(usize, &'a str)> {
    let mut found = sources.iter().enumerate();
    found.find_map(|(at, source)| Some((at, source.as_ref()?.value(fields)?)))
}

/// The value of the source at a position.
fn at<'a>(sources: &Sources, position: usize, fields: &Fields<'a>) -> Option<&'a str> {
    sources.get(position)?.as_ref()?.value(fields)
}

/// The detail of an event: the value of one source, or those of several in one line. A value that is only a code is its name.
fn detail<'a>(sources: &[Source], kind: Kind, event: &Event<'a>) -> Option<Cow<'a, str>> {
    let details = Details {
        kind,
        event,
        shown: &[],
        claim: None,
    };
    let [source] = sources else {
        return details.joined(sources).map(Cow::Owned);
    };
    let value = source.value(event.fields)?;
    Some(details.replaced(value).map_or(Cow::Borrowed(value), Cow::Owned))
}

/// The SID that Windows writes for nobody.
pub const NOBODY: &str = "S-1-0-0";

fn is_sid(text: &str) -> bool {
    text.strip_prefix("S-1-").is_some_and(|rest| !rest.is_empty())
}

/// Whether a SID is one of Windows, such as S-1-5-18, and not of a domain or a group.
fn is_of_windows(sid: &str) -> bool {
    sid.strip_prefix("S-1-5-")
        .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a domain has the word NT, as `NT AUTHORITY` has in most languages.
fn has_nt(domain: &str) -> bool {
    domain
        .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .any(|word| word == "NT")
}

impl<'a> Roles<'a> {
    /// The account with its domain, as Windows writes it.
    fn full_name(&self) -> Option<String> {
        Some(format!("{}\\{}", self.domain?, self.account?))
    }

    /// Returns the account as the event has it.
    fn read_account(&mut self, listed: &Listed, fields: &Fields<'a>) -> Option<&'a str> {
        match first(&listed.account, fields) {
            Some((_, sid)) if is_sid(sid) => {
                self.user_sid = Some(sid);
                Some(sid)
            }
            Some((position, account)) => {
                self.domain = at(&listed.domain, position, fields);
                // Some events repeat the domain after an @.
                let name = account.rsplit_once('@').filter(|(name, realm)| {
                    !name.is_empty() && self.domain.is_some_and(|domain| domain.eq_ignore_ascii_case(realm))
                });
                self.account = Some(name.map_or(account, |(name, _)| name));
                self.user_sid = at(&listed.sid, position, fields).filter(|sid| is_sid(sid));
                Some(account)
            }
            None => {
                let mut sids = listed.sid.iter().flatten().filter_map(|sid| sid.value(fields));
                self.user_sid = sids.find(|sid| is_sid(sid) && *sid != NOBODY);
                None
            }
        }
    }

    /// Returns the value that names the other machine, and the field in which it claims the name of this one.
    fn read_host(&mut self, listed: &Listed, event: &Event<'a>) -> (Option<&'a str>, Option<&'static str>) {
        let (mut named, mut claim) = (None, None);
        for source in listed.remote_host.iter().flatten() {
            let Some(value) = source.value(event.fields) else {
                continue;
            };
            match remote_host(value, event.computer, source.writer) {
                Machine::Own if source.writer == Writer::Client => claim = claim.or(Some(source.field)),
                // Windows knows that it is this machine, or that the name is its own.
                Machine::Own if named.is_none() || source.writer == Writer::Itself => return (named, None),
                Machine::Other(host) if named.is_none() => {
                    self.remote_host = Some(host);
                    named = Some(value);
                }
                Machine::Own | Machine::Other(_) | Machine::Unknown => {}
            }
        }
        self.claims_own_name = claim.is_some();
        (named, claim)
    }
}

impl Roles<'_> {
    /// The texts, with the names of their columns.
    pub fn texts(&self) -> [(&'static str, Option<&str>); 11] {
        [
            ("event", self.event),
            ("topic", self.topic),
            ("level", self.level),
            ("account", self.account),
            ("domain", self.domain),
            ("user_sid", self.user_sid),
            ("remote_host", self.remote_host.as_deref()),
            ("process", self.process),
            ("target", self.target),
            ("detail", self.detail.as_deref()),
            ("details", self.details.as_deref()),
        ]
    }

    /// The fields that add to the other columns as one line.
    fn details(
        &self,
        kind: Kind,
        event: &Event<'_>,
        account: Option<&str>,
        host: Option<&str>,
        claim: Option<&str>,
    ) -> Option<String> {
        const NO_GUID: &str = "{00000000-0000-0000-0000-000000000000}";
        let full_name = self.full_name();
        let mapped = |value: &&str| {
            value
                .get(..7)
                .is_some_and(|prefix| prefix.eq_ignore_ascii_case("::ffff:"))
        };
        let mapped = host.filter(mapped);
        // A SID of Windows has one name in the time line, and the event can have another one.
        let is_other = self.account.is_some() && self.user_sid.is_some_and(is_of_windows);
        let own = [full_name.as_deref(), account, self.account, self.domain].map(|name| name.filter(|_| !is_other));
        let [full_name, account, name, domain] = own;
        let shown = [
            Some(""),
            Some("-"),
            Some(NO_GUID),
            Some(event.computer),
            self.process,
            self.remote_host.as_deref(),
            full_name,
            account,
            name,
            domain,
            mapped,
        ];
        let details = Details {
            kind,
            event,
            shown: &shown.map(Option::unwrap_or_default),
            claim,
        };
        details.line()
    }
}

/// Reads the roles of events. It keeps the provider of the last event, because the next one usually has it, too.
#[derive(Debug, Default)]
pub struct RolesReader {
    last: Option<(String, Kind, Option<&'static OfProvider>)>,
}

impl RolesReader {
    /// The roles of the fields of an event.
    pub fn read<'a>(&mut self, event: Event<'a>) -> Roles<'a> {
        let (mut roles, [account, host, claim], kind) = self.without_details(&event);
        roles.details = roles.details(kind, &event, account, host, claim);
        roles
    }

    /// The same without details.
    pub fn read_roles<'a>(&mut self, event: &Event<'a>) -> Roles<'a> {
        self.without_details(event).0
    }

    /// The roles, and what details leave out: the account and the other machine as the event has them, and the field in which that
    /// machine claims the name of this one.
    fn without_details<'a>(&mut self, event: &Event<'a>) -> (Roles<'a>, [Option<&'a str>; 3], Kind) {
        let last = match self.last.take() {
            Some(last) if last.0 == event.provider => last,
            _ => (
                event.provider.to_owned(),
                Kind::of(event.provider),
                events().of(event.provider),
            ),
        };
        let (_, kind, of_provider) = *self.last.insert(last);
        let mut roles = Roles::default();
        let (mut account, mut host, mut claim) = (None, None, None);
        if let Some(listed) = of_provider.and_then(|events| events.get(&event.event_id)) {
            roles.event = Some(listed.name);
            account = roles.read_account(listed, event.fields);
            (host, claim) = roles.read_host(listed, event);
            let role = |sources| Some(first(sources, event.fields)?.1);
            (roles.process, roles.target) = (role(&listed.process), role(&listed.target));
            roles.detail = listed.detail.iter().find_map(|sources| detail(sources, kind, event));
            // Windows also logs on to itself. Such a topic is about another machine, or one that claims to be this one.
            let is_elsewhere = roles.remote_host.is_some() || roles.claims_own_name;
            let topic = listed.topic(event.fields);
            if let Some(topic) = topic.filter(|topic| is_elsewhere || !topic.name.ends_with(" elsewhere")) {
                // Windows Setup makes accounts and rights under a name that no machine has later.
                let is_setup = roles.user_sid == Some("S-1-5-18")
                    && roles.account == Some("MINWINPC$")
                    && ["accounts", "groups", "policies"].contains(&topic.name);
                (roles.topic, roles.level) = (Some(topic.name), Some(if is_setup { "info" } else { topic.level }));
            }
        }
        if roles.account.is_none() && roles.user_sid.is_none() && kind != Kind::Sysmon {
            roles.user_sid = event.user_sid.filter(|sid| is_sid(sid) && *sid != NOBODY);
            roles.is_of_writer = true;
        }
        roles.is_windows = roles.user_sid.is_some_and(is_of_windows)
            && (roles.domain.is_some_and(has_nt) || roles.account.is_some_and(|name| name.ends_with('$')));
        (roles, [account, host, claim], kind)
    }
}
