//! The logons of Windows: from 4624 to 4634 or 4647, with the privileges of 4672.

use std::borrow::Cow;

use evtx_codes::{LogonAct, LogonKind, LogonStep, is_own_name};
use evtx_format::{Interrupt, Interrupted};
use hashbrown::HashMap;

use super::event::{LogonEvent, Moment, bare, host};

/// Privileges can be logged so long before their logon while the one before is open.
const EARLY: i64 = 1_000_000_000;

/// The IDs of the sessions of SYSTEM, LOCAL SERVICE and NETWORK SERVICE.
const OF_WINDOWS: [&str; 3] = ["0x3e7", "0x3e5", "0x3e4"];
/// Their SIDs.
const SYSTEM: [&str; 3] = ["S-1-5-18", "S-1-5-19", "S-1-5-20"];
/// How the SIDs of the window manager and the font driver start.
const OF_DISPLAYS: [&str; 2] = ["S-1-5-90-", "S-1-5-96-"];

/// A logon of Windows. Each value is the first that its events have.
#[derive(Debug, Default)]
pub(super) struct Logon<'e> {
    /// When its first event was.
    pub(super) first: Moment,
    pub(super) start: Option<Moment>,
    pub(super) end: Option<Moment>,
    pub(super) id: Option<&'e str>,
    pub(super) sid: Option<&'e str>,
    pub(super) computer: Option<&'e str>,
    pub(super) account: Option<&'e str>,
    pub(super) domain: Option<&'e str>,
    pub(super) logon_type: Option<i32>,
    address: Option<&'e str>,
    pub(super) workstation: Option<&'e str>,
    pub(super) method: Option<&'e str>,
    pub(super) process: Option<&'e str>,
    pub(super) privileges: Option<&'e str>,
    pub(super) is_contested: bool,
    /// The account as it compares.
    pub(super) who: Option<Cow<'e, str>>,
    /// The other machine.
    pub(super) host: Option<Cow<'e, str>>,
}

impl<'e> Logon<'e> {
    fn of(events: &[&'e LogonEvent<'e>]) -> Self {
        let mut logon = Logon::default();
        for event in events {
            let LogonEvent { computer, step, .. } = event;
            match step.act {
                LogonAct::Logon => logon.start = logon.start.or(Some(event.at())),
                LogonAct::Logoff => logon.end = logon.end.or(Some(event.at())),
                _ => {}
            }
            logon.computer = logon.computer.or(*computer);
            logon.account = logon.account.or(step.account);
            logon.domain = logon.domain.or(step.domain);
            logon.logon_type = logon.logon_type.or(step.logon_type);
            logon.address = logon.address.or(step.address);
            logon.workstation = logon.workstation.or(step.workstation);
            logon.method = logon.method.or(step.method);
            logon.process = logon.process.or(step.process);
            logon.privileges = logon.privileges.or(step.privileges);
            logon.is_contested |= event.is_contested;
        }
        if let Some(event) = events.first() {
            logon.first = event.at();
            logon.id = event.step.session.as_deref();
            logon.sid = event.step.sid;
        }
        logon.who = logon.account.and_then(bare);
        logon.host = logon.address.and_then(host);
        logon
    }

    /// Whether it is one of Windows itself. Network logons by which a machine reaches itself have the SID of SYSTEM and the
    /// machine's own name, but an ID of their own. With another machine's name, or from an address, it is not this machine.
    fn is_of_windows(&self) -> bool {
        let is_system = self.sid.is_some_and(|sid| SYSTEM.contains(&sid));
        let machine = self
            .account
            .and_then(|name| Some(name.strip_suffix('$')?.trim_end_matches('$')));
        is_system
            && match machine {
                Some(name) if self.account != Some("$") => is_own_name(name, self.computer.unwrap_or_default()),
                _ => self.host.is_none(),
            }
    }
}

/// Whether an event is of a session that Windows has after each start.
fn is_of_each_start(step: &LogonStep<'_>) -> bool {
    step.session.as_deref().is_some_and(|id| OF_WINDOWS.contains(&id))
        || step
            .sid
            .is_some_and(|sid| OF_DISPLAYS.iter().any(|start| sid.starts_with(start)))
}

/// The logons of a machine, in the order of their first events. A logon is that of one ID and one SID. An event without an ID
/// belongs to none, unless it starts one.
pub(super) fn logons<'e>(
    events: &[&'e LogonEvent<'e>],
    all_accounts: bool,
    interrupt: Interrupt<'_>,
) -> Result<Vec<Logon<'e>>, Interrupted> {
    let mut chains: HashMap<(Option<&str>, Option<&str>), Vec<&'e LogonEvent<'e>>> = HashMap::new();
    for (number, event) in events.iter().enumerate() {
        interrupt.check_step(number)?;
        let step = &event.step;
        if step.kind == LogonKind::Windows
            && (step.session.is_some() || step.act == LogonAct::Logon)
            && (all_accounts || !is_of_each_start(step))
        {
            chains
                .entry((step.session.as_deref(), step.sid))
                .or_default()
                .push(event);
        }
    }
    let mut found = Vec::new();
    for (number, chain) in chains.values().enumerate() {
        interrupt.check_step(number)?;
        found.extend(
            split(chain)
                .map(Logon::of)
                .filter(|logon| all_accounts || !logon.is_of_windows()),
        );
    }
    found.sort_unstable_by_key(|logon: &Logon<'_>| (logon.first, logon.id, logon.sid));
    Ok(found)
}

/// Divides the events of one ID, which Windows uses again after a boot, and one SID. Each logon starts a part. Events before
/// the first belong to a logon from before the log.
fn split<'c, 'e>(chain: &'c [&'e LogonEvent<'e>]) -> impl Iterator<Item = &'c [&'e LogonEvent<'e>]> {
    let is_privileges = |event: &LogonEvent<'_>| event.step.act == LogonAct::Privileges;
    let mut starts = vec![0];
    // The last event other than of privileges, and where the privileges that come before the next logon begin.
    let (mut before, mut early): (Option<&LogonEvent<'_>>, Option<usize>) = (None, None);
    for (at, &event) in chain.iter().enumerate() {
        if !is_privileges(event) {
            if event.step.act == LogonAct::Logon {
                let own = early.unwrap_or(at)..at;
                let count = chain[own.clone()]
                    .iter()
                    .filter(|early| !comes_early(early, before, event))
                    .count();
                starts.push(own.start + count);
            }
            (before, early) = (Some(event), None);
        } else if early.is_none() {
            early = Some(at);
        }
    }
    let ends: Vec<_> = starts[1..].iter().copied().chain([chain.len()]).collect();
    starts
        .into_iter()
        .zip(ends)
        .filter(|(start, end)| start < end)
        .map(|(start, end)| &chain[start..end])
}

/// Whether privileges before a logon are those of it. They come after their logon, or up to a second before it. While no logon
/// is open, they belong to the next, however long that takes.
fn comes_early(event: &LogonEvent<'_>, before: Option<&LogonEvent<'_>>, logon: &LogonEvent<'_>) -> bool {
    let since =
        |later: &LogonEvent<'_>, earlier: &LogonEvent<'_>| Some(later.at().time?.saturating_sub(earlier.at().time?));
    match before.filter(|before| before.step.act == LogonAct::Logon) {
        None => true,
        Some(open) => since(logon, event)
            .zip(since(event, open))
            .is_some_and(|(until, since)| until <= EARLY && until < since),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn event(act: LogonAct, tenths: i64) -> LogonEvent<'static> {
        let texts = ["windows", act.name(), "0xa1", "anna", "D", "S-1-5-21-1"].map(Some);
        let mut all = [None; 11];
        all[..6].copy_from_slice(&texts);
        LogonEvent {
            log_time: Some(tenths * SECOND / 10),
            time: Some(tenths * SECOND / 10),
            computer: Some("pc"),
            step: LogonStep::of_texts(all, 0, None).expect("a step"),
            ..LogonEvent::default()
        }
    }

    #[test]
    fn privileges_belong_to_the_nearest_logon() {
        use LogonAct::{Logoff, Logon, Privileges};
        for (acts, expected) in [
            (&[(Logon, 0), (Privileges, 1), (Logoff, 9)][..], &[3][..]),
            // No logon is open: the next one has them, however late.
            (&[(Privileges, 0), (Logon, 900)], &[2]),
            (&[(Logon, 0), (Logoff, 5), (Privileges, 6), (Logon, 900)], &[2, 2]),
            // One is open: the nearer one has them, if it is the next within a second.
            (&[(Logon, 0), (Privileges, 40), (Logon, 45)], &[1, 2]),
            (&[(Logon, 0), (Privileges, 40), (Logon, 51)], &[2, 1]),
            (&[(Logon, 0), (Privileges, 4), (Logon, 9)], &[2, 1]),
            (&[(Logon, 0), (Privileges, 1), (Privileges, 40), (Logon, 41)], &[2, 2]),
            // From before the log.
            (&[(Logoff, 0), (Logon, 1)], &[1, 1]),
            (&[(Privileges, 0), (Logoff, 1), (Logon, 2)], &[2, 1]),
            (&[(Privileges, 0)], &[1]),
        ] {
            let events: Vec<_> = acts.iter().map(|&(act, tenths)| event(act, tenths)).collect();
            let chain: Vec<_> = events.iter().collect();
            assert_eq!(split(&chain).map(<[_]>::len).collect::<Vec<_>>(), expected, "{acts:?}");
        }
    }

    #[test]
    fn sessions_of_windows_itself_are_left_out() {
        let shown = |account: &'static str, sid: &'static str, address: &'static str| {
            let mut event = event(LogonAct::Logon, 0);
            event.step.account = Some(account);
            event.step.sid = Some(sid);
            event.step.address = Some(address);
            logons(&[&event], false, Interrupt::NEVER).expect("logons").len() == 1
        };
        assert!(shown("anna", "S-1-5-21-1", "127.0.0.1"));
        assert!(!shown("PC$", "S-1-5-18", "203.0.113.9") && shown("DC01$", "S-1-5-18", "127.0.0.1"));
        assert!(!shown("SYSTEM", "S-1-5-18", "-") && shown("eve", "S-1-5-18", "203.0.113.9"));
        assert!(!shown("$", "S-1-5-18", "-") && !shown("DWM-1", "S-1-5-90-0-1", "-"));
    }
}
