//! The logon sessions of a machine, from the events of [`evtx_codes::LogonStep`] in the order of its logs.
//!
//! 1. [`logon`]: events with one logon ID and SID are logons of Windows. IDs repeat after boots.
//! 2. [`visit`]: events that follow each other within seconds are one connection by Remote Desktop, or one session with a service.
//! 3. [`desktop`]: connections, logons and the other events of one session make one session, by the number of the session, the
//!    logon ID, or else the account.
//! 4. [`service`]: for some sessions with services, Windows has a logon just before.
//!
//! A logon, connection or visit that belongs to no other is a session of its own.

mod event;
mod logon;
mod visit;
mod desktop;
mod service;

use std::borrow::Cow;

use evtx_codes::{LogonAct, LogonKind};
use evtx_format::{Interrupt, Interrupted};

use desktop::{Desktop, desktops, identified, numbered, signs_of_logons};
use event::{full_name, workstation};
use logon::{Logon, logons};
use service::{Service, names, services};
use visit::{Role, Sign, Visit, visits};

pub use desktop::Connection;
pub use event::{LogonEvent, Moment};

/// A logon session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
#[derive(Default)]
pub struct LogonSession<'e> {
    pub kind: LogonKind,
    pub logon_time: Option<Moment>,
    pub logoff_time: Option<Moment>,
    pub computer: Option<&'e str>,
    pub user_name: Option<Cow<'e, str>>,
    pub user_sid: Option<&'e str>,
    pub logon_type: Option<i32>,
    pub remote_host: Option<Cow<'e, str>>,
    pub workstation: Option<&'e str>,
    /// Whether the other machine claims the name of this one.
    pub claims_own_name: bool,
    /// Of a session that one can connect to again.
    pub connections: Option<Vec<Connection<'e>>>,
    pub authentication: Option<&'e str>,
    pub process: Option<&'e str>,
    pub logon_id: Option<&'e str>,
    pub other_logon_ids: Vec<&'e str>,
    pub privileges: Option<&'e str>,
    /// Whether somebody logged on. A connection by Remote Desktop alone (1149) can come before the password.
    pub is_accepted: bool,
    pub is_contested: bool,
}

/// The sessions of a machine. Its events can have any order, and copies. Those of Windows itself are left out, unless
/// `all_accounts` is true.
///
/// # Errors
/// [`Interrupted`].
pub fn logon_sessions<'e>(
    events: &'e [LogonEvent<'e>],
    all_accounts: bool,
    interrupt: Interrupt<'_>,
) -> Result<Vec<LogonSession<'e>>, Interrupted> {
    // Records are in the order of events, even if the clock was set back between them. What those of one place say decides
    // between them, not their files, or how they come.
    let place = |event: &LogonEvent<'_>| (event.at(), event.event_id, event.digest);
    let mut events: Vec<&'e LogonEvent<'e>> = events.iter().collect();
    events.sort_unstable_by_key(|event| place(event));
    events.dedup_by_key(|event| place(event));

    let logons = logons(&events, all_accounts, interrupt)?;
    interrupt.check()?;
    let (numbered, identified) = (numbered(&events), identified(&events, &logons));
    let others = events.iter().filter_map(|&event| {
        let role = match event.step.act {
            LogonAct::Arrive => Role::Arrive,
            LogonAct::Start => Role::Start,
            LogonAct::End => Role::End,
            _ => return None,
        };
        Some(Sign::of(event, role, event.who()))
    });
    let signs = others
        .chain(signs_of_logons(&logons))
        .chain(numbered.iter().chain(&identified).filter_map(|keyed| keyed.sign()));
    let visits = visits(signs.collect(), interrupt)?;
    let desktops = desktops(&visits, &numbered, &identified, &logons, interrupt)?;
    let (services, other_visits) = services(&visits, &logons);

    let mut sessions = Vec::new();
    for (index, logon) in logons.iter().enumerate() {
        interrupt.check_step(index)?;
        let desktop = desktops.of_logons.get(&index).and_then(|key| desktops.all.get(key));
        // Another logon stands for the session.
        if desktop.is_none_or(|desktop| desktop.logon == Some(index)) {
            sessions.push(of_logon(logon, desktop, services.get(&index)));
        }
    }
    sessions.extend(
        desktops
            .all
            .values()
            .filter(|desktop| desktop.logon.is_none())
            .map(of_desktop),
    );
    let names = names(&other_visits, &logons);
    sessions.extend(
        other_visits
            .into_iter()
            .zip(names)
            .map(|(visit, name)| of_visit(visit, name)),
    );
    Ok(sessions)
}

fn first_host<'e>(connections: &[Connection<'e>]) -> Option<Cow<'e, str>> {
    connections.iter().find_map(|connection| connection.remote_host.clone())
}

/// Whether Windows itself wrote the name of the workstation, for a logon that a program of this machine requests.
fn is_named_by_windows(logon: &Logon<'_>) -> bool {
    match logon.logon_type {
        Some(8) => logon.process.is_some(),
        Some(kind) => matches!(kind, 2 | 4 | 5 | 7 | 9..=13),
        None => true,
    }
}

/// The session of a logon of Windows, which may be of Remote Desktop or of a service.
fn of_logon<'e>(logon: &Logon<'e>, desktop: Option<&Desktop<'e>>, service: Option<&Service<'e>>) -> LogonSession<'e> {
    let connections = desktop.map(Desktop::connections);
    let client = desktop.and_then(Desktop::client);
    let (workstation, claims_own_name) = workstation(
        client.or(logon.workstation),
        logon.computer,
        client.is_none() && is_named_by_windows(logon),
    );
    let is_remote = desktop.map_or(matches!(logon.logon_type, Some(10 | 12)), |desktop| desktop.is_remote);
    let kind = if is_remote {
        LogonKind::RemoteDesktop
    } else {
        LogonKind::Windows
    };
    let end = service.and_then(|service| service.end).or(logon.end);
    let ids = desktop.map_or(&[][..], |desktop| &desktop.ids);
    LogonSession {
        kind: service.map_or(kind, |service| service.kind),
        logon_time: desktop.and_then(Desktop::start).or(logon.start),
        logoff_time: desktop.map_or(end, |desktop| desktop.end),
        computer: logon.computer,
        user_name: full_name(logon.domain, logon.account),
        user_sid: logon.sid,
        logon_type: logon.logon_type,
        remote_host: match &connections {
            Some(connections) => first_host(connections),
            None => service
                .and_then(|service| service.host.clone())
                .or_else(|| logon.host.clone()),
        },
        workstation,
        claims_own_name,
        connections,
        authentication: service.and_then(|service| service.method).or(logon.method),
        process: logon.process,
        logon_id: logon.id,
        other_logon_ids: ids
            .iter()
            .copied()
            .filter(|id| logon.id.is_some_and(|own| own != *id))
            .collect(),
        privileges: logon.privileges,
        is_accepted: true,
        is_contested: logon.is_contested
            || desktop.is_some_and(|desktop| desktop.is_contested)
            || service.is_some_and(|service| service.is_contested),
    }
}

/// A session that no logon of Windows tells of.
fn of_desktop<'e>(desktop: &Desktop<'e>) -> LogonSession<'e> {
    let connections = desktop.connections();
    let (workstation, claims_own_name) = workstation(desktop.client(), desktop.computer(), false);
    LogonSession {
        kind: if desktop.is_remote {
            LogonKind::RemoteDesktop
        } else {
            LogonKind::Windows
        },
        logon_time: desktop.start(),
        logoff_time: desktop.end,
        computer: desktop.computer(),
        user_name: desktop.name(),
        remote_host: first_host(&connections),
        workstation,
        claims_own_name,
        connections: Some(connections),
        logon_id: desktop.ids.first().copied(),
        other_logon_ids: desktop.ids.iter().skip(1).copied().collect(),
        is_accepted: desktop.is_accepted,
        is_contested: desktop.is_contested,
        ..LogonSession::default()
    }
}

/// A session with a service, which no logon of Windows tells of. `known_name` is that of its SID.
fn of_visit<'e>(visit: &Visit<'e>, known_name: Option<Cow<'e, str>>) -> LogonSession<'e> {
    LogonSession {
        kind: visit.kind,
        logon_time: visit.settled,
        logoff_time: visit.ended,
        computer: visit.computer,
        user_name: visit.name.clone().or(known_name).or(visit.sid.map(Cow::Borrowed)),
        user_sid: visit.sid,
        remote_host: visit.host.clone(),
        authentication: visit.method,
        is_accepted: true,
        is_contested: visit.is_contested,
        ..LogonSession::default()
    }
}

#[cfg(test)]
mod tests {
    use evtx_codes::LogonStep;

    use super::*;

    fn time(moment: Option<Moment>) -> Option<i64> {
        moment?.time
    }

    const SECOND: i64 = 1_000_000_000;

    /// An event of a provider, with the values of its fields.
    fn event<'a>(seconds: i64, provider: &str, id: u32, fields: &[(&'a str, &'a str)]) -> LogonEvent<'a> {
        let step = LogonStep::read(provider, id, fields, Some("S-1-5-21-1")).expect("a step");
        let time = Some(seconds * SECOND);
        LogonEvent {
            event_id: id,
            number: Some(seconds as u64),
            time,
            log_time: time,
            digest: id.into(),
            is_contested: false,
            computer: Some("pc"),
            step,
        }
    }

    fn security<'a>(seconds: i64, id: u32, logon_id: &'a str, account: &'a str, kind: &'a str) -> LogonEvent<'a> {
        let names = [
            ("TargetLogonId", logon_id),
            ("TargetUserName", account),
            ("TargetDomainName", "D"),
        ];
        let others = [
            ("TargetUserSid", "S-1-5-21-1"),
            ("LogonType", kind),
            ("IpAddress", "203.0.113.9"),
        ];
        event(
            seconds,
            "Microsoft-Windows-Security-Auditing",
            id,
            &[&names[..], &others].concat(),
        )
    }

    fn terminal(seconds: i64, id: u32, account: &'static str) -> LogonEvent<'static> {
        let fields = [("SessionID", "2"), ("User", account), ("Address", "203.0.113.9")];
        event(
            seconds,
            "Microsoft-Windows-TerminalServices-LocalSessionManager",
            id,
            &fields,
        )
    }

    fn sessions<'e>(events: &'e [LogonEvent<'e>]) -> Vec<LogonSession<'e>> {
        logon_sessions(events, false, Interrupt::NEVER).expect("sessions")
    }

    fn seconds(time: Option<i64>) -> Option<i64> {
        time.map(|time| time / SECOND)
    }

    #[test]
    fn copies_and_order_change_nothing() {
        let mut events = vec![
            security(1, 4624, "0xA1", "anna", "10"),
            terminal(2, 21, "D\\anna"),
            terminal(50, 24, "D\\anna"),
            security(199, 4624, "0xb1", "anna", "10"),
            terminal(200, 25, "D\\anna"),
            security(201, 4634, "0xb1", "anna", "10"),
            terminal(300, 23, "D\\anna"),
        ];
        let found = format!("{:?}", sessions(&events));
        events.reverse();
        events.extend(events.clone());
        let own = sessions(&events);
        assert_eq!(format!("{own:?}"), found);
        let [session] = &own[..] else { panic!("{own:?}") };
        assert_eq!(
            (seconds(time(session.logon_time)), seconds(time(session.logoff_time))),
            (Some(1), Some(300))
        );
        assert_eq!(
            (session.logon_id, &session.other_logon_ids[..]),
            (Some("0xa1"), &["0xb1"][..])
        );
        let visits = session.connections.iter().flatten();
        let visits: Vec<_> = visits
            .map(|one| (seconds(time(one.connected)), seconds(one.disconnected)))
            .collect();
        assert_eq!(visits, [(Some(1), Some(50)), (Some(199), Some(300))]);
    }

    #[test]
    fn a_sid_has_the_name_that_most_logons_have_until_then() {
        let winrm = |seconds| event(seconds, "microsoft-windows-winrm", 91, &[]);
        let events = [
            winrm(1),
            security(100, 4624, "0x1", "old", "2"),
            winrm(200),
            security(300, 4624, "0x2", "new", "2"),
            security(400, 4624, "0x3", "new", "2"),
            winrm(500),
        ];
        let own = sessions(&events);
        let winrm = own.iter().filter(|session| session.kind == LogonKind::WinRm);
        let names: Vec<_> = winrm.filter_map(|session| session.user_name.as_deref()).collect();
        assert_eq!(names, ["D\\new", "D\\old", "D\\new"]);
        assert_eq!(sessions(&events[..1])[0].user_name.as_deref(), Some("S-1-5-21-1"));
    }

    #[test]
    fn thousands_of_logons_of_one_visit_take_no_time() {
        let ids: Vec<_> = (0..30_000).map(|number| format!("{number:#x}")).collect();
        let logons = ids
            .iter()
            .zip(1..)
            .map(|(id, seconds)| security(seconds, 4624, id, "anna", "10"));
        let returns = ids.iter().zip(1..).map(|(id, seconds)| {
            event(
                seconds,
                "Microsoft-Windows-Security-Auditing",
                4778,
                &[
                    ("LogonID", id),
                    ("AccountName", "anna"),
                    ("ClientAddress", "203.0.113.9"),
                ],
            )
        });
        let events: Vec<_> = logons.chain(returns).collect();
        assert!(!sessions(&events).is_empty());
    }
}
