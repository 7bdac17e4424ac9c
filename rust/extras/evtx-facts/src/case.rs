//! The rows that facts are made of, from what the records of logs tell: in the order of their logs, with the names of accounts and machines,
//! and the logons among them.

use std::borrow::Cow;

use evtx_codes::{Code, LogonKind, NOBODY, code_name};
use evtx_events::{
    Account, AccountNames, Columns, ComputerName, LogHour, LogRecord, LogonEvent, LogonSession, Moment, Place, Stamp,
    logon_sessions, machines, places, sid_name,
};
use evtx_format::{Interrupt, Interrupted};
use hashbrown::{HashMap, HashSet};

use crate::rows::{EventRow, LogonRow, Mark, Record};
use crate::told::{Roles, Said, Told};

/// What logs say.
#[derive(Debug, Clone, Copy)]
pub struct Logs<'a> {
    /// What records tell.
    pub said: &'a Said<'a>,
    /// What the records of each hour say.
    pub hours: &'a [LogHour<'a>],
    /// The files of logs that overwrote their oldest records.
    pub wrapped: &'a [&'a str],
}

impl Told<'_> {
    fn record(&self) -> Record<'_> {
        Record {
            file: self.file.as_deref(),
            record_id: self.record_id,
            event_id: self.event_id,
            time: self.time,
        }
    }

    /// The record for its place.
    fn in_log<'a>(&'a self, machine: Option<&'a str>) -> LogRecord<'a> {
        LogRecord {
            digest: self.digest,
            machine,
            channel: self.channel.as_deref().or(self.provider.as_deref()),
            file: self.file.as_deref(),
            record_id: self.record_id,
            number: self.number,
            time: self.time,
            change: self.change,
            wake_time: self.wake_time,
            is_late: self.is_late,
        }
    }

    /// The account of its event, by the name at its time.
    fn user_name<'a>(&'a self, roles: &'a Roles<'_>, names: &'a AccountNames) -> Option<Cow<'a, str>> {
        let account = Account {
            domain: roles.domain.as_deref(),
            name: roles.account.as_deref(),
            sid: roles.user_sid.as_deref(),
            is_windows: roles.is_windows,
        };
        names.user_name(
            &account,
            self.computer.as_deref(),
            (self.log, self.record_id),
            self.time,
        )
    }

    /// What matters most: the SID in it with the last name of its account.
    fn detail<'a>(&'a self, roles: &'a Roles<'_>, names: &'a AccountNames) -> Option<Cow<'a, str>> {
        let detail = roles.detail.as_deref();
        let told_sid = detail.filter(|detail| detail.starts_with("S-1-"));
        let member = roles
            .member_sid
            .as_deref()
            .filter(|_| roles.topic.as_deref() == Some("groups"));
        // The common name of a member in the directory is often not that of the account.
        let Some(sid) = member.or(told_sid) else {
            return detail.map(Cow::Borrowed);
        };
        match names.latest(sid) {
            None if told_sid.is_none() => detail.map(Cow::Borrowed),
            name => match name.or_else(|| sid_name(sid)) {
                Some(name) => Some(Cow::Owned(format!("{name} {sid}"))),
                None => Some(Cow::Borrowed(sid)),
            },
        }
    }
}

/// The machine that each name in a file stands for.
type Machines<'a> = HashMap<(&'a str, &'a str), String>;

/// The machine that a name in a file stands for, or else the name.
fn machine<'m>(machines: &'m Machines<'_>, file: Option<&'m str>, computer: Option<&'m str>) -> Option<&'m str> {
    let computer = computer?;
    let known = machines.get(&(file.unwrap_or_default(), computer));
    Some(known.map_or(computer, String::as_str))
}

/// Where records are, by their digests.
type Places<'a> = HashMap<i128, Place<'a>>;

/// The texts that no record has: the last names of machines, and for what each record tells, its account by the name at its time, and its detail.
#[derive(Debug, Default)]
pub(crate) struct Texts<'a> {
    machines: Machines<'a>,
    of_told: Vec<[Option<Cow<'a, str>>; 2]>,
}

impl<'a> Texts<'a> {
    /// The names of machines, and those of accounts.
    pub(crate) fn of(logs: &Logs<'a>, names: &'a AccountNames, interrupt: Interrupt<'_>) -> Result<Self, Interrupted> {
        let told = logs
            .said
            .told
            .iter()
            .filter(|told| told.own_sid.is_some() || told.renamed.iter().any(Option::is_some));
        let told = told.filter_map(|told| {
            Some(ComputerName {
                file: told.file.as_deref().unwrap_or_default(),
                computer: told.computer.as_deref()?,
                channel: told.channel.as_deref(),
                times: [None, told.time],
                renamed: told.renamed.each_ref().map(Option::as_deref),
                own_sid: told.own_sid.as_deref(),
                ..ComputerName::default()
            })
        });
        let said: Vec<_> = logs.hours.iter().filter_map(LogHour::name).chain(told).collect();
        let found = machines(&said, interrupt)?;
        let machines = said.iter().map(|said| (said.file, said.computer)).zip(found).collect();
        let mut of_told = Vec::with_capacity(logs.said.told.len());
        for (step, told) in logs.said.told.iter().enumerate() {
            interrupt.check_step(step)?;
            let of_roles = |roles| [told.user_name(roles, names), told.detail(roles, names)];
            of_told.push(told.roles.as_ref().map(of_roles).unwrap_or_default());
        }
        Ok(Texts { machines, of_told })
    }
}

/// The rows that facts are made of.
#[derive(Debug, Default)]
pub(crate) struct Rows<'a> {
    pub(crate) events: Vec<EventRow<'a>>,
    pub(crate) marks: Vec<Mark<'a>>,
    /// The events of logon sessions on each machine.
    pub(crate) steps: HashMap<&'a str, Vec<LogonEvent<'a>>>,
    /// The first record at each moment of a machine that has one.
    moments: HashMap<(&'a str, Moment), Record<'a>>,
}

impl<'a> Rows<'a> {
    pub(crate) fn of(logs: &Logs<'a>, texts: &'a Texts<'_>, interrupt: Interrupt<'_>) -> Result<Self, Interrupted> {
        let key = |record: Record<'a>, number| (record.file, record.record_id, number, record.time);
        let known: HashSet<_> = logs
            .said
            .told
            .iter()
            .map(|told| key(told.record(), told.number))
            .collect();
        let ends = logs
            .hours
            .iter()
            .flat_map(|hour| hour.ends.iter().map(move |end| (hour, end)));
        let ends = ends.map(|(hour, end)| {
            let record = Record {
                file: hour.filename.as_deref(),
                record_id: end.record_id,
                event_id: end.event_id,
                time: Some(end.time),
            };
            (hour, end, record)
        });
        let ends: Vec<_> = ends
            .filter(|(_, end, record)| !known.contains(&key(*record, end.event_record_id)))
            .collect();
        let mut records: Vec<_> = logs
            .said
            .told
            .iter()
            .map(|told| told.in_log(machine(&texts.machines, told.file.as_deref(), told.computer.as_deref())))
            .collect();
        for (step, (hour, end, record)) in ends.iter().enumerate() {
            interrupt.check_step(step)?;
            let of = Columns {
                computer: hour.computer.as_deref(),
                channel: hour.channel.as_deref(),
                provider: end.provider.as_deref(),
                event_record_id: end.event_record_id,
                time_created: record.time,
                event_id: end.event_id,
                ..Columns::default()
            };
            let Stamp { digest, is_late, .. } = Stamp::read(&of);
            records.push(LogRecord {
                digest,
                machine: machine(&texts.machines, record.file, of.computer),
                channel: of.channel.or(of.provider),
                file: record.file,
                record_id: end.record_id,
                number: end.event_record_id,
                time: record.time,
                is_late,
                ..LogRecord::default()
            });
        }
        let places = places(&records, interrupt)?;
        let mut rows = Rows::default();
        let digests = records.iter().map(|record| record.digest);
        let told = logs
            .said
            .told
            .iter()
            .map(|told| (told.record(), told.computer.as_deref(), told.channel.as_deref()));
        let of_ends = ends
            .iter()
            .map(|(hour, _, record)| (*record, hour.computer.as_deref(), hour.channel.as_deref()));
        for (step, (digest, (record, name, channel))) in digests.zip(told.chain(of_ends)).enumerate() {
            interrupt.check_step(step)?;
            let place = places.get(&digest).copied().unwrap_or_default();
            rows.marks.push(Mark {
                record,
                computer: place.machine,
                name,
                channel,
                log_time: place.log_time,
            });
        }
        for (step, (told, texts)) in logs.said.told.iter().zip(&texts.of_told).enumerate() {
            interrupt.check_step(step)?;
            rows.add(told, texts, &places);
        }
        Ok(rows)
    }

    /// Adds the rows of a record.
    fn add(&mut self, told: &'a Told<'_>, [user_name, detail]: &'a [Option<Cow<'a, str>>; 2], places: &Places<'a>) {
        let place = places.get(&told.digest).copied().unwrap_or_default();
        let digest = (told.digest >> 64) as u64;
        let at = Moment {
            log_time: place.log_time,
            // Some exports have no numbers of events.
            number: told.number.or(told.record_id),
            time: told.time,
        };
        if let Some((machine, step)) = place.machine.zip(told.step()) {
            let first = self.moments.entry((machine, at)).or_insert(told.record());
            *first = told.record().min(*first);
            self.steps.entry(machine).or_default().push(LogonEvent {
                event_id: told.event_id.unwrap_or_default(),
                number: at.number,
                time: at.time,
                log_time: at.log_time,
                digest,
                is_contested: place.is_contested,
                computer: told.computer.as_deref(),
                step,
            });
        }
        let Some(roles) = &told.roles else { return };
        let topic = roles.topic.as_deref().unwrap_or_default();
        let is_outgoing = topic == "logons to elsewhere";
        let (host, target) = (roles.remote_host.as_deref(), roles.target.as_deref());
        let [old, new] = told.change;
        self.events.push(EventRow {
            record: told.record(),
            computer: place.machine,
            log_time: place.log_time,
            number: told.number,
            digest: Some(digest),
            provider: told.provider.as_deref().unwrap_or_default(),
            event: roles.event.as_deref(),
            topic,
            level: roles.level.as_deref().unwrap_or_default(),
            account: user_name.as_deref(),
            account_sid: roles.user_sid.as_deref().filter(|sid| *sid != NOBODY),
            source: host.filter(|_| !is_outgoing),
            target: match told.event_id {
                _ if is_outgoing => host,
                Some(1102) => target.or(told.channel.as_deref()),
                _ => target,
            },
            detail: detail.as_deref().or(target.filter(|_| is_outgoing)),
            process: roles.process.as_deref(),
            logon_type: roles.logon_type.as_deref(),
            clock: old.zip(new).map(Into::into).filter(|_| topic == "clock"),
            is_woken: place.is_woken,
            zone: roles.zone.as_deref(),
            version: roles.version.as_deref(),
            is_contested: place.is_contested,
            claims_own_name: roles.claims_own_name,
        });
    }

    /// The logons among the sessions of a machine that have a record: the start of each session, and each connection to it.
    pub(crate) fn logons(
        &self,
        machine: &'a str,
        sessions: &'a [LogonSession<'a>],
    ) -> impl Iterator<Item = LogonRow<'a>> {
        sessions
            .iter()
            .flat_map(move |session| logons_of(session))
            .filter_map(move |(at, logon)| {
                Some(LogonRow {
                    record: *self.moments.get(&(machine, at))?,
                    computer: Some(machine),
                    log_time: at.log_time,
                    ..logon
                })
            })
    }
}

/// The logons of a session, with their moments.
fn logons_of<'a>(session: &'a LogonSession<'a>) -> Vec<(Moment, LogonRow<'a>)> {
    let row = |host: Option<&'a str>, workstation: Option<&'a str>, claims_own_name: bool| LogonRow {
        account: session.user_name.as_deref(),
        account_sid: session.user_sid,
        // NTLM often knows the name that the other machine gives, but not its address.
        source: host.or(workstation.filter(|_| !claims_own_name)),
        kind: session.kind.name(),
        logon_type: session
            .logon_type
            .and_then(|number| code_name("logon_type", Code::Number(number.into()))),
        method: session.authentication,
        is_accepted: session.is_accepted,
        is_contested: session.is_contested,
        claims_own_name,
        ..LogonRow::default()
    };
    let of_console = LogonKind::Windows.name();
    let connections = session.connections.iter().flatten();
    let mut connections = connections.filter_map(|of| Some((of.connected?, of))).peekable();
    let first = connections.peek().map(|(connected, _)| *connected);
    let (host, workstation, claims_own_name) = (
        session.remote_host.as_deref(),
        session.workstation,
        session.claims_own_name,
    );
    let mut found = Vec::new();
    match (session.logon_time, first) {
        (Some(start), None) => found.push((start, row(host, workstation, claims_own_name))),
        // Somebody connects later to a session at the console.
        (Some(start), Some(first)) if start < first => {
            found.push((
                start,
                LogonRow {
                    kind: of_console,
                    ..row(None, None, false)
                },
            ));
        }
        _ => {}
    }
    for (connected, of) in connections {
        let (workstation, claims_own_name) = if found.is_empty() {
            (workstation, claims_own_name)
        } else {
            (of.workstation, of.claims_own_name)
        };
        let logon = row(of.remote_host.as_deref(), workstation, claims_own_name);
        found.push((
            of.accepted.unwrap_or(connected),
            LogonRow {
                kind: if of.is_console { of_console } else { logon.kind },
                method: of.authentication,
                is_accepted: of.accepted.is_some(),
                ..logon
            },
        ));
    }
    found
}

/// The sessions of each machine.
pub(crate) fn sessions<'s>(
    steps: &'s HashMap<&'s str, Vec<LogonEvent<'s>>>,
    interrupt: Interrupt<'_>,
) -> Result<Vec<(&'s str, Vec<LogonSession<'s>>)>, Interrupted> {
    let mut all: Vec<_> = steps.iter().collect();
    all.sort_unstable_by_key(|(machine, _)| **machine);
    let of = |(machine, events): (&&'s str, &'s Vec<_>)| Ok((*machine, logon_sessions(events, false, interrupt)?));
    all.into_iter().map(of).collect()
}
