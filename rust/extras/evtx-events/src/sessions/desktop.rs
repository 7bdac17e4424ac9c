//! Sessions that one can connect to again: of Remote Desktop, and at the console.

use std::borrow::Cow;
use std::collections::BTreeMap;

use evtx_codes::{LogonAct, LogonKind};
use evtx_format::{Interrupt, Interrupted};
use hashbrown::{HashMap, HashSet};

use super::event::{LogonEvent, Moment, workstation};
use super::logon::Logon;
use super::visit::{Key, Place, Role, Sign, Visit, best_name};
use crate::order::{last, least};

/// An event of a session with a number or a logon ID, and its key.
pub(super) struct Keyed<'e> {
    event: &'e LogonEvent<'e>,
    who: Option<Cow<'e, str>>,
    key: Key,
}

/// The events that name the number of a session. Windows uses the numbers again. Some name no account: theirs is that of the
/// event before.
pub(super) fn numbered<'e>(events: &[&'e LogonEvent<'e>]) -> Vec<Keyed<'e>> {
    let mut sessions: HashMap<Option<&str>, (Option<Cow<'e, str>>, usize)> = HashMap::new();
    let mut keys: HashMap<(Option<&str>, Cow<'e, str>, usize), usize> = HashMap::new();
    let mut found = Vec::new();
    for event in events {
        let step = &event.step;
        if !matches!(
            step.act,
            LogonAct::Open | LogonAct::Connect | LogonAct::Disconnect | LogonAct::Close
        ) {
            continue;
        }
        let session = step.session.as_deref();
        let (owner, number) = sessions.entry(session).or_default();
        *number += usize::from(step.act == LogonAct::Open);
        *owner = event.who().or(owner.take());
        if let Some(who) = owner {
            let next = keys.len();
            let key = *keys.entry((session, who.clone(), *number)).or_insert(next);
            found.push(Keyed {
                event,
                who: Some(who.clone()),
                key: Key::Terminal(key),
            });
        }
    }
    found
}

/// The events that name the ID of a logon, but no SID.
pub(super) fn identified<'e>(events: &[&'e LogonEvent<'e>], logons: &[Logon<'e>]) -> Vec<Keyed<'e>> {
    let mut known: HashMap<_, Vec<(Moment, usize)>> = HashMap::new();
    for (index, logon) in logons.iter().enumerate() {
        if let (Some(id), Some(start)) = (logon.id, logon.start) {
            known
                .entry((id, logon.who.as_deref()))
                .or_default()
                .push((start, index));
        }
    }
    known.values_mut().for_each(|of_id| of_id.sort_unstable());
    let mut unknown: HashMap<(Option<&str>, Option<Cow<'e, str>>), usize> = HashMap::new();
    let mut found = Vec::new();
    for event in events
        .iter()
        .filter(|event| matches!(event.step.act, LogonAct::Resume | LogonAct::Leave))
    {
        let (session, who) = (event.step.session.as_deref(), event.who());
        let of_id = session.and_then(|id| known.get(&(id, who.as_deref())));
        let latest = of_id.and_then(|of_id| {
            let (_, index) = of_id[..of_id.partition_point(|&(start, _)| start <= event.at())].last()?;
            Some(*index).filter(|&index| logons[index].end.is_none_or(|end| end >= event.at()))
        });
        let next = unknown.len();
        let key = match latest {
            Some(index) => Key::Logon(index),
            None => Key::Unknown(*unknown.entry((session, who.clone())).or_insert(next)),
        };
        found.push(Keyed { event, who, key });
    }
    found
}

impl<'e> Keyed<'e> {
    /// The ID of a logon that is not in the log.
    fn id(&self) -> Option<&'e str> {
        self.event
            .step
            .session
            .as_deref()
            .filter(|_| matches!(self.key, Key::Unknown(_)))
    }

    /// The sign of a connection; `None` if the event is of an end.
    pub(super) fn sign(&self) -> Option<Sign<'e>> {
        let role = match self.event.step.act {
            LogonAct::Open => Role::Open,
            LogonAct::Connect | LogonAct::Resume => Role::Return,
            _ => return None,
        };
        let is_numbered = matches!(self.key, Key::Terminal(_));
        Some(Sign {
            terminal: Some(self.key).filter(|_| is_numbered),
            logon: Some(self.key).filter(|_| !is_numbered),
            id: self.id(),
            ..Sign::of(self.event, role, self.who.clone())
        })
    }
}

/// What a logon of Windows is to a session of Remote Desktop or at the console.
fn role(logon: &Logon<'_>) -> Option<Role> {
    logon.start?;
    match logon.logon_type? {
        10 | 12 => Some(Role::Start),
        2 | 11 => Some(Role::Console),
        7 | 13 if logon.host.is_some() => Some(Role::Back),
        _ => None,
    }
}

/// The signs of connections that logons of Windows are.
pub(super) fn signs_of_logons<'e>(logons: &[Logon<'e>]) -> impl Iterator<Item = Sign<'e>> {
    logons.iter().enumerate().filter_map(|(index, logon)| {
        let role = role(logon)?;
        Some(Sign {
            place: Place {
                kind: LogonKind::RemoteDesktop,
                part: logon.who.clone(),
                is_console: role == Role::Console,
            },
            role,
            step: 2,
            at: logon.start?,
            who: logon.who.clone(),
            logon: Some(Key::Logon(index)),
            host: logon.host.clone(),
            logoff: logon.end,
            computer: logon.computer,
            is_contested: logon.is_contested,
            ..Sign::default()
        })
    })
}

/// The logon and the session of each visit: those that its events name, in the log of sessions or by the ID of a logon. A logon
/// of type 7 that no other event explains goes back to the last session of its account, if that is open.
fn keys(visits: &[&Visit<'_>], named: &HashSet<Key>) -> Vec<(Key, Key)> {
    // 4778 can name the other half of a logon.
    let mut firsts: HashMap<Key, Key> = HashMap::new();
    for visit in visits {
        for (&half, logon) in visit
            .logons
            .iter()
            .flat_map(|half| visit.logon.map(|logon| (half, logon)))
        {
            firsts
                .entry(Key::Logon(half))
                .and_modify(|first| *first = logon.min(*first))
                .or_insert(logon);
        }
    }
    let mut logons: Vec<Option<Key>> = visits
        .iter()
        .map(|visit| visit.logon.map(|key| *firsts.get(&key).unwrap_or(&key)))
        .collect();
    let mut order: Vec<usize> = (0..visits.len()).collect();
    order.sort_by_key(|&at| {
        let visit = visits[at];
        (
            &visit.who,
            visit.is_console,
            visit.connected,
            visit.settled,
            last(logons[at]),
        )
    });
    // The last session of an account that events name, and when it was logged off.
    let mut open: Option<(Key, Option<Moment>)> = None;
    for (place, &at) in order.iter().enumerate() {
        let visit = visits[at];
        let before = place.checked_sub(1).map(|before| visits[order[before]]);
        if before.is_none_or(|before| (&before.who, before.is_console) != (&visit.who, visit.is_console)) {
            open = None;
        }
        if let Some(key) = logons[at].or(visit.terminal) {
            open = Some((key, visit.logoff));
            continue;
        }
        let is_open = |logoff: Option<Moment>| logoff.is_none_or(|logoff| Some(logoff) >= visit.connected);
        logons[at] = Some(match (visit.back.map(Key::Logon), open) {
            (Some(back), Some((key, logoff))) if is_open(logoff) && !named.contains(&back) => key,
            (Some(back), _) => back,
            (None, _) => Key::Visit(at),
        });
    }
    let mut terminals: HashMap<Key, Key> = HashMap::new();
    for (visit, logon) in visits.iter().zip(&logons) {
        if let (Some(terminal), Some(logon)) = (visit.terminal, *logon) {
            terminals
                .entry(logon)
                .and_modify(|first| *first = terminal.min(*first))
                .or_insert(terminal);
        }
    }
    let of = |(at, (visit, logon)): (usize, (&&Visit<'_>, Option<Key>))| {
        let of_logon = logon.and_then(|logon| terminals.get(&logon).copied());
        let key = visit.terminal.or(of_logon).or(logon).unwrap_or(Key::Visit(at));
        (logon.unwrap_or(key), key)
    };
    visits.iter().zip(logons).enumerate().map(of).collect()
}

/// Something that happens in a session.
#[derive(Debug, Default)]
struct Act<'e> {
    at: Moment,
    /// When somebody connected, if it is a connection.
    connected: Option<Moment>,
    /// When the password was right, if it is a connection.
    accepted: Option<Moment>,
    is_console: bool,
    method: Option<&'e str>,
    /// Whether it ends a connection.
    is_end: bool,
    host: Option<Cow<'e, str>>,
    client: Option<&'e str>,
    computer: Option<&'e str>,
}

/// A connection to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // the names say it
pub struct Connection<'e> {
    pub connected: Option<Moment>,
    pub disconnected: Option<i64>,
    pub remote_host: Option<Cow<'e, str>>,
    /// When somebody logged on. A connection alone (1149) can come before the password.
    pub accepted: Option<Moment>,
    pub is_console: bool,
    pub workstation: Option<&'e str>,
    /// Whether the other machine claims the name of this one.
    pub claims_own_name: bool,
    pub authentication: Option<&'e str>,
}

/// A session of Remote Desktop or at the console.
#[derive(Debug, Default)]
pub(super) struct Desktop<'e> {
    acts: Vec<Act<'e>>,
    start: Option<Moment>,
    back_time: Option<Moment>,
    pub(super) end: Option<Moment>,
    /// The index of the logon of Windows that tells most.
    pub(super) logon: Option<usize>,
    names: Vec<Cow<'e, str>>,
    /// The logon IDs, in order.
    pub(super) ids: Vec<&'e str>,
    pub(super) is_remote: bool,
    /// Whether anything but 1149 tells of it, which can come before the password.
    pub(super) is_accepted: bool,
    pub(super) is_contested: bool,
}

/// The sessions, and the session of each logon of Windows that is of one.
#[derive(Debug, Default)]
pub(super) struct Desktops<'e> {
    pub(super) all: BTreeMap<Key, Desktop<'e>>,
    pub(super) of_logons: HashMap<usize, Key>,
}

/// The session that a logon is of, and whether it only goes back to it.
#[derive(Clone, Copy)]
struct Member {
    key: Option<Key>,
    is_back: Option<bool>,
}

fn members(visits: &[&Visit<'_>], keys: &[(Key, Key)], identified: &[Keyed<'_>]) -> HashMap<Key, Member> {
    let mut members: HashMap<Key, Member> = HashMap::new();
    let mut add = |logon: Key, key: Option<Key>, is_back: Option<bool>| {
        let member = members.entry(logon).or_insert(Member { key, is_back });
        member.key = least(member.key, key);
        member.is_back = least(member.is_back, is_back);
    };
    for (visit, &(own, key)) in visits.iter().zip(keys) {
        for &logon in &visit.logons {
            add(Key::Logon(logon), Some(key), Some(visit.is_back));
        }
        add(own, Some(key), None);
    }
    for keyed in identified
        .iter()
        .filter(|keyed| keyed.event.step.act == LogonAct::Leave)
    {
        add(keyed.key, None, None);
    }
    members
}

impl<'e> Desktop<'e> {
    fn push_visit(&mut self, visit: &Visit<'e>, logons: &[Logon<'e>]) {
        let (Some(at), Some(connected)) = (visit.settled, visit.connected) else {
            return;
        };
        self.back_time = least(self.back_time, visit.back_time);
        self.names.extend(visit.name.clone());
        self.ids.extend(visit.id);
        self.is_remote |= visit.is_remote;
        self.is_accepted |= visit.accepted.is_some();
        self.is_contested |= visit.is_contested;
        self.acts.push(Act {
            at,
            connected: Some(connected),
            accepted: visit.accepted,
            is_console: visit.is_console,
            method: visit.logons.iter().find_map(|&logon| logons[logon].method),
            is_end: false,
            host: visit.host.clone(),
            client: visit.client,
            computer: visit.computer,
        });
    }

    fn push_event(&mut self, keyed: &Keyed<'e>) {
        let (event, host) = (keyed.event, keyed.event.host());
        match event.step.act {
            LogonAct::Open => self.start = least(self.start, Some(event.at())),
            LogonAct::Close => self.end = least(self.end, Some(event.at())),
            _ => {}
        }
        self.names.extend(event.name());
        self.ids.extend(keyed.id());
        self.is_remote |= host.is_some();
        self.is_accepted = true;
        self.is_contested |= event.is_contested;
        self.acts.push(Act {
            at: event.at(),
            is_end: matches!(event.step.act, LogonAct::Disconnect | LogonAct::Close | LogonAct::Leave),
            host,
            client: event.step.workstation,
            computer: event.computer,
            ..Act::default()
        });
    }

    /// A logon that goes back to a session neither starts nor ends it, unless nothing else is known of it.
    fn push_logon(&mut self, logon: &Logon<'e>, role: Option<Role>, is_all: bool) {
        if role != Some(Role::Back) {
            self.start = least(self.start, logon.start);
        }
        if role != Some(Role::Back) || is_all {
            self.end = least(self.end, logon.end);
        }
        self.ids.extend(logon.id);
        self.is_remote |= matches!(role, Some(Role::Start | Role::Back));
        self.is_accepted = true;
        self.is_contested |= logon.is_contested;
        if let Some(at) = logon.end.or(logon.start) {
            self.acts.push(Act {
                at,
                is_end: logon.end.is_some() && role != Some(Role::Back),
                ..Act::default()
            });
        }
    }

    fn finish(&mut self) {
        self.acts.sort_by(|one, other| {
            let key = |act: &Act<'e>| (act.at, act.connected.is_some(), !act.is_end, last(act.connected));
            key(one)
                .cmp(&key(other))
                .then_with(|| last(one.host.as_ref()).cmp(&last(other.host.as_ref())))
        });
        self.ids.sort_unstable();
        self.ids.dedup();
    }

    /// When it started, as far as is known.
    pub(super) fn start(&self) -> Option<Moment> {
        self.start.or(self.back_time)
    }

    pub(super) fn computer(&self) -> Option<&'e str> {
        self.acts.iter().find_map(|act| act.computer)
    }

    pub(super) fn name(&self) -> Option<Cow<'e, str>> {
        best_name(self.names.iter().cloned())
    }

    /// The name of the other machine, by the first connection.
    pub(super) fn client(&self) -> Option<&'e str> {
        let mut connections = 0;
        let of_first = self.acts.iter().take_while(|act| {
            connections += usize::from(act.connected.is_some());
            connections <= 1
        });
        of_first.filter_map(|act| act.client).next()
    }

    /// The connections. The first thing that ends one counts. What comes before a new one is complete ends the one before.
    pub(super) fn connections(&self) -> Vec<Connection<'e>> {
        let mut found = Vec::new();
        let (mut next_end, mut next_connection): (Option<Moment>, Option<Moment>) = (None, None);
        for act in self.acts.iter().rev() {
            if act.connected.is_some() {
                let is_before = next_end.zip(next_connection).is_none_or(|(end, next)| end <= next);
                let disconnected = next_end.filter(|_| is_before).and_then(|end| end.time);
                found.push((act, disconnected));
                next_connection = Some(act.at);
            }
            if act.is_end {
                next_end = Some(act.at);
            }
        }
        // Something that ends a connection from before the log.
        let first = self.acts.iter().find(|act| act.is_end || act.connected.is_some());
        if let Some(act) = first.filter(|act| act.connected.is_none()) {
            found.push((act, act.at.time));
        }
        found.sort_by(|one, other| {
            let key = |&(act, end): &(&Act<'e>, _)| (act.at, last(act.connected.and_then(|of| of.time)), last(end));
            key(one)
                .cmp(&key(other))
                .then_with(|| last(one.0.host.as_ref()).cmp(&last(other.0.host.as_ref())))
        });
        let of = |(act, disconnected): (&Act<'e>, _)| {
            let (workstation, claims_own_name) = workstation(act.client, act.computer, false);
            Connection {
                connected: act.connected,
                disconnected,
                remote_host: act.host.clone(),
                accepted: act.accepted,
                is_console: act.is_console,
                workstation,
                claims_own_name,
                authentication: act.method,
            }
        };
        found.into_iter().map(of).collect()
    }
}

/// The sessions that the visits, the other events and the logons make together.
pub(super) fn desktops<'e>(
    visits: &[Visit<'e>],
    numbered: &[Keyed<'e>],
    identified: &[Keyed<'e>],
    logons: &[Logon<'e>],
    interrupt: Interrupt<'_>,
) -> Result<Desktops<'e>, Interrupted> {
    let visits: Vec<_> = visits
        .iter()
        .filter(|visit| visit.kind == LogonKind::RemoteDesktop)
        .collect();
    let keys = keys(&visits, &identified.iter().map(|keyed| keyed.key).collect());
    let members = members(&visits, &keys, identified);
    let mut found = Desktops::default();
    for (visit, &(_, key)) in visits.iter().zip(&keys) {
        found.all.entry(key).or_default().push_visit(visit, logons);
    }
    for keyed in numbered {
        found.all.entry(keyed.key).or_default().push_event(keyed);
    }
    for keyed in identified
        .iter()
        .filter(|keyed| keyed.event.step.act == LogonAct::Leave)
    {
        let member = members.get(&keyed.key).and_then(|member| member.key);
        found
            .all
            .entry(member.unwrap_or(keyed.key))
            .or_default()
            .push_event(keyed);
    }
    // Of the logons of a session, one that goes back comes last, and one with privileges first, as of both halves of a token.
    let mut places: HashMap<Key, (bool, bool, Moment)> = HashMap::new();
    for (index, logon) in logons.iter().enumerate() {
        interrupt.check_step(index)?;
        let (own, Some(start)) = (Key::Logon(index), logon.start) else {
            continue;
        };
        let Some(member) = members.get(&own) else { continue };
        let role = match member.is_back {
            Some(true) => Some(Role::Back),
            _ => role(logon),
        };
        let key = member.key.unwrap_or(own);
        let desktop = found.all.entry(key).or_default();
        desktop.push_logon(logon, role, key == own);
        let place = (role == Some(Role::Back), logon.privileges.is_none(), start);
        if places.get(&key).is_none_or(|best| place < *best) {
            places.insert(key, place);
            desktop.logon = Some(index);
        }
        found.of_logons.insert(index, key);
    }
    found.all.values_mut().for_each(Desktop::finish);
    Ok(found)
}
