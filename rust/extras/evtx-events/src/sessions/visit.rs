//! Visits: events of one connection, or of one session with a service, that follow each other.

use std::borrow::Cow;

use evtx_codes::LogonKind;
use evtx_format::{Interrupt, Interrupted};
use hashbrown::HashSet;

use super::event::{LogonEvent, Moment};

const SECOND: i64 = 1_000_000_000;
/// How far apart two events of one step can be, and of different steps.
const PAUSES: [i64; 2] = [5 * SECOND, 60 * SECOND];

/// What identifies a session of Remote Desktop or at the console. Of several keys, the lowest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Key {
    /// The session with a number.
    Terminal(usize),
    /// The logon of Windows with this index.
    Logon(usize),
    /// A logon that is not in the log.
    Unknown(usize),
    /// Nothing but the visit with this index.
    Visit(usize),
}

/// What an event says about a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Role {
    #[default]
    /// Somebody comes over Remote Desktop.
    Arrive,
    /// A logon, or the start of a session with a service.
    Start,
    /// A logon at the console.
    Console,
    /// A logon back to a session.
    Back,
    /// A session with a number starts.
    Open,
    /// Somebody connects to a session again.
    Return,
    /// A session with a service ends.
    End,
}

/// What the events of one visit have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Place<'e> {
    pub(super) kind: LogonKind,
    /// The account, or what identifies a session with a service.
    pub(super) part: Option<Cow<'e, str>>,
    pub(super) is_console: bool,
}

/// An event of a visit.
#[derive(Debug, Clone, Default)]
pub(super) struct Sign<'e> {
    pub(super) place: Place<'e>,
    pub(super) role: Role,
    /// The events of one visit come in the order of their steps, within seconds.
    pub(super) step: u8,
    pub(super) at: Moment,
    pub(super) who: Option<Cow<'e, str>>,
    /// The logon that it names.
    pub(super) logon: Option<Key>,
    /// The session with a number that it names.
    pub(super) terminal: Option<Key>,
    pub(super) host: Option<Cow<'e, str>>,
    pub(super) name: Option<Cow<'e, str>>,
    pub(super) client: Option<&'e str>,
    pub(super) id: Option<&'e str>,
    pub(super) sid: Option<&'e str>,
    pub(super) method: Option<&'e str>,
    pub(super) logoff: Option<Moment>,
    pub(super) computer: Option<&'e str>,
    pub(super) is_contested: bool,
}

impl<'e> Sign<'e> {
    /// The sign that an event is, of an account if it names none.
    pub(super) fn of(event: &'e LogonEvent<'e>, role: Role, who: Option<Cow<'e, str>>) -> Self {
        let is_desktop = event.step.kind == LogonKind::RemoteDesktop;
        let session = event.step.session.as_deref().map(Cow::Borrowed);
        Sign {
            place: Place {
                kind: event.step.kind,
                part: if is_desktop { who.clone() } else { session },
                is_console: is_desktop && role != Role::Arrive && !event.has_address(),
            },
            role,
            step: event.step.step,
            at: event.at(),
            who,
            host: event.host(),
            name: event.name(),
            client: event.step.workstation,
            sid: event.step.sid,
            method: event.step.method,
            computer: event.computer,
            is_contested: event.is_contested,
            ..Sign::default()
        }
    }

    /// Whether the event starts a visit, after one of the same place.
    fn is_new(&self, before: Option<&Self>) -> bool {
        let Some(before) = before else {
            return self.role != Role::End;
        };
        let pause = self
            .at
            .log_time
            .zip(before.at.log_time)
            .map(|(now, then)| now.saturating_sub(then));
        let jump = self
            .at
            .time
            .zip(before.at.time)
            .map(|(now, then)| now.saturating_sub(then).saturating_abs());
        let pause = pause.max(jump);
        let is_longer = |longest| pause.is_none_or(|pause| pause > longest);
        // Remote Desktop has events of one step twice.
        let repeats = before.step == self.step && (self.place.kind != LogonKind::RemoteDesktop || is_longer(PAUSES[0]));
        self.role != Role::End
            && (before.role == Role::End || before.step > self.step || repeats || is_longer(PAUSES[1]))
    }
}

/// Events of one connection, or of one session with a service.
#[derive(Debug)]
pub(super) struct Visit<'e> {
    pub(super) kind: LogonKind,
    pub(super) is_console: bool,
    pub(super) who: Option<Cow<'e, str>>,
    /// The first and the last event, other than an end.
    pub(super) connected: Option<Moment>,
    pub(super) settled: Option<Moment>,
    pub(super) ended: Option<Moment>,
    /// The first event other than 1149, which can come before the password.
    pub(super) accepted: Option<Moment>,
    pub(super) terminal: Option<Key>,
    pub(super) logon: Option<Key>,
    /// The indexes of the logons of Windows.
    pub(super) logons: Vec<usize>,
    /// Whether its logons go back to a session.
    pub(super) is_back: bool,
    /// The logon of a type that only goes back.
    pub(super) back: Option<usize>,
    pub(super) back_time: Option<Moment>,
    pub(super) logoff: Option<Moment>,
    pub(super) host: Option<Cow<'e, str>>,
    pub(super) name: Option<Cow<'e, str>>,
    pub(super) client: Option<&'e str>,
    pub(super) id: Option<&'e str>,
    pub(super) sid: Option<&'e str>,
    pub(super) method: Option<&'e str>,
    pub(super) computer: Option<&'e str>,
    pub(super) is_remote: bool,
    pub(super) is_contested: bool,
}

impl<'e> Visit<'e> {
    /// `None` if the events are none of a visit: logons at the console count only if the log of sessions or 4778 has them, and an
    /// end counts if it names somebody.
    fn of(signs: &[Sign<'e>]) -> Option<Self> {
        let Place { kind, is_console, .. } = signs.first()?.place;
        let has = |role: Role| signs.iter().any(|sign| sign.role == role);
        let all = |roles: &'static [Role]| signs.iter().filter(move |sign| roles.contains(&sign.role));
        let starts = || signs.iter().filter(|sign| sign.role != Role::End);
        if signs.iter().all(|sign| sign.role == Role::Console)
            || starts().next().is_none() && signs.iter().all(|sign| sign.name.is_none())
        {
            return None;
        }
        let index = |sign: &Sign<'_>| match sign.logon {
            Some(Key::Logon(index)) => Some(index),
            _ => None,
        };
        let returned: Vec<_> = all(&[Role::Return]).filter_map(|sign| sign.logon).collect();
        let known: HashSet<_> = returned.iter().copied().collect();
        let is_same = all(&[Role::Start]).any(|sign| sign.logon.is_some_and(|logon| known.contains(&logon)));
        let is_back = has(Role::Return) && !has(Role::Open) && !is_same;
        // What Windows writes counts before what the client says in 4778.
        let is_known = |sign: &&Sign<'_>| sign.role != Role::Return || sign.terminal.is_some();
        let host = |sign: &Sign<'e>| sign.host.clone();
        Some(Visit {
            kind,
            is_console,
            who: signs.iter().filter_map(|sign| sign.who.clone()).min(),
            connected: starts().map(|sign| sign.at).min(),
            settled: starts().map(|sign| sign.at).max(),
            ended: all(&[Role::End]).map(|sign| sign.at).min(),
            accepted: starts()
                .filter(|sign| sign.role != Role::Arrive)
                .map(|sign| sign.at)
                .min(),
            terminal: signs.iter().find_map(|sign| sign.terminal),
            logon: returned.first().copied().or_else(|| {
                signs
                    .iter()
                    .filter(|sign| sign.role != Role::Back)
                    .find_map(|sign| sign.logon)
            }),
            logons: all(&[Role::Start, Role::Back]).filter_map(index).collect(),
            is_back,
            back: all(&[Role::Back]).filter_map(index).min(),
            back_time: all(&[Role::Start, Role::Back, Role::Arrive]).map(|sign| sign.at).min(),
            logoff: all(&[Role::Start])
                .filter_map(|sign| sign.logoff)
                .min()
                .filter(|_| !is_back),
            host: signs
                .iter()
                .filter(is_known)
                .filter_map(host)
                .min()
                .or_else(|| signs.iter().filter_map(host).min()),
            name: best_name(signs.iter().filter_map(|sign| sign.name.clone())),
            client: signs.iter().filter_map(|sign| sign.client).min(),
            id: signs.iter().filter_map(|sign| sign.id).min(),
            sid: signs.iter().filter_map(|sign| sign.sid).min(),
            method: signs.iter().filter_map(|sign| sign.method).min(),
            computer: signs.iter().find_map(|sign| sign.computer),
            is_remote: all(&[Role::Start, Role::Back, Role::Arrive]).next().is_some()
                || signs.iter().any(|sign| sign.host.is_some()),
            is_contested: signs.iter().any(|sign| sign.is_contested),
        })
    }
}

/// A name with a domain, if there is one.
pub(super) fn best_name<'e>(names: impl Iterator<Item = Cow<'e, str>>) -> Option<Cow<'e, str>> {
    names.min_by(|one, other| (!one.contains('\\'), one).cmp(&(!other.contains('\\'), other)))
}

/// The visits that events make, by place and order.
pub(super) fn visits<'e>(mut signs: Vec<Sign<'e>>, interrupt: Interrupt<'_>) -> Result<Vec<Visit<'e>>, Interrupted> {
    signs.sort_by(|one, other| (&one.place, one.at, one.step).cmp(&(&other.place, other.at, other.step)));
    let (mut found, mut start) = (Vec::new(), 0);
    for at in 0..signs.len() {
        interrupt.check_step(at)?;
        let before = at
            .checked_sub(1)
            .map(|before| &signs[before])
            .filter(|before| before.place == signs[at].place);
        if at > start && (before.is_none() || signs[at].is_new(before)) {
            found.extend(Visit::of(&signs[start..at]));
            start = at;
        }
    }
    found.extend(Visit::of(&signs[start..]));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(kind: LogonKind, role: Role, step: u8, seconds: i64) -> Sign<'static> {
        Sign {
            place: Place {
                kind,
                part: Some("anna".into()),
                is_console: false,
            },
            role,
            step,
            at: Moment {
                log_time: Some(seconds * SECOND),
                number: None,
                time: Some(seconds * SECOND),
            },
            ..Sign::default()
        }
    }

    #[test]
    fn events_of_one_visit_follow_each_other_by_steps() {
        use LogonKind::{RemoteDesktop, Ssh};
        use Role::{Arrive, Console, End, Open, Start};
        let spans = |kind, signs: &[(Role, u8, i64)]| {
            let signs = signs
                .iter()
                .map(|&(role, step, seconds)| sign(kind, role, step, seconds))
                .collect();
            let visits = visits(signs, Interrupt::NEVER).expect("visits");
            let seconds = |moment: Option<Moment>| moment.and_then(|moment| moment.time).map(|time| time / SECOND);
            let span = |visit: &Visit<'_>| (seconds(visit.connected), seconds(visit.settled), seconds(visit.ended));
            visits.iter().map(span).collect::<Vec<_>>()
        };
        let open = |from, to| (Some(from), Some(to), None);
        assert_eq!(
            spans(
                RemoteDesktop,
                &[(Arrive, 1, 0), (Start, 2, 1), (Start, 2, 2), (Open, 3, 3)]
            ),
            [open(0, 3)]
        );
        assert_eq!(
            spans(RemoteDesktop, &[(Arrive, 1, 0), (Open, 3, 61)]),
            [open(0, 0), open(61, 61)]
        );
        assert_eq!(
            spans(RemoteDesktop, &[(Start, 2, 0), (Start, 2, 6)]),
            [open(0, 0), open(6, 6)]
        );
        assert_eq!(
            spans(RemoteDesktop, &[(Open, 3, 0), (Arrive, 1, 1)]),
            [open(0, 0), open(1, 1)]
        );
        assert_eq!(spans(RemoteDesktop, &[(Console, 2, 0)]), []);
        assert_eq!(
            spans(Ssh, &[(Start, 1, 0), (Start, 1, 1), (End, 0, 9), (End, 0, 9)]),
            [open(0, 0), (Some(1), Some(1), Some(9))]
        );
        assert_eq!(spans(Ssh, &[(End, 0, 9)]), []);
    }
}
