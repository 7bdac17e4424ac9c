//! The names that records have with the SIDs of accounts.

use crate::accounts::Evidence;

/// Logons, processes, and changes of accounts, which name everybody who has a SID in other events. In others, such as 4740, the field for
/// the domain has the name of a computer.
pub const NAME_EVENTS: [u32; 23] = [
    1074, 1102, 4624, 4634, 4647, 4648, 4672, 4688, 4720, 4722, 4723, 4724, 4725, 4726, 4738, 4741, 4742, 4768, 4781,
    4798, 4799, 5145, 5379,
];

/// The providers of [`NAME_EVENTS`], in lower case.
pub const NAME_PROVIDERS: [&str; 3] = [
    "microsoft-windows-eventlog",
    "microsoft-windows-security-auditing",
    "user32",
];

/// A name that a record has with a SID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordName<'a> {
    /// The SID.
    pub sid: &'a str,
    /// The domain.
    pub domain: Option<&'a str>,
    /// The name.
    pub name: &'a str,
    /// What the record says of the account.
    pub evidence: Option<Evidence>,
    /// When the SID has the name, in nanoseconds: at the time of the record, or just before it.
    pub seen: Option<i64>,
}

/// Whether a SID is that of an account with names of its own. The names of SIDs with one number, such as S-1-5-18, are fixed, but events
/// have the name of the computer with them. In a domain, 512 to 599 are the numbers of groups.
fn is_of_account(sid: &str) -> bool {
    let has_numbers = sid
        .strip_prefix("S-1-")
        .is_some_and(|rest| rest.matches('-').nth(1).is_some());
    let number = sid.strip_prefix("S-1-5-21-").and_then(|rest| rest.rsplit_once('-'));
    let is_group = number.is_some_and(|(_, number)| number.len() == 3 && number.starts_with('5') && number >= "512");
    has_numbers && !sid.starts_with("S-1-5-32-") && !is_group
}

/// The names in a record, which has these fields.
pub(crate) fn record_names<'a>(
    provider: &str,
    event_id: u32,
    time: Option<i64>,
    user_sid: Option<&'a str>,
    fields: &[(&'a str, &'a str)],
) -> impl Iterator<Item = RecordName<'a>> {
    let field = |name: &str| fields.iter().find(|(key, _)| *key == name).map(|&(_, value)| value);
    let of = |sid: Option<&'a str>, domain, name: Option<&'a str>, evidence, seen| {
        Some(RecordName {
            sid: sid.filter(|sid| is_of_account(sid))?,
            domain,
            name: name.filter(|name| !["", "-"].contains(name))?,
            evidence,
            seen,
        })
    };
    let target = |sid, name, evidence, seen| of(sid, field("TargetDomainName"), field(name), evidence, seen);
    let is_listed = || NAME_PROVIDERS.iter().any(|known| known.eq_ignore_ascii_case(provider));
    let names = match event_id {
        _ if !NAME_EVENTS.contains(&event_id) || !is_listed() => [None; 2],
        1074 => {
            let mut parts = field("param7").unwrap_or_default().rsplit('\\');
            let (name, domain) = (parts.next(), parts.next());
            [of(user_sid, domain, name, None, time), None]
        }
        // Before the change, the account had the old name.
        4781 => [("OldTargetUserName", 1_000), ("NewTargetUserName", 0)].map(|(name, before)| {
            let seen = time.map(|time| time.saturating_sub(before));
            target(field("TargetSid"), name, Some(Evidence::Renamed), seen)
        }),
        _ => {
            let evidence = match event_id {
                4720 | 4741 => Some(Evidence::Created),
                4738 | 4742 => Some(Evidence::Changed),
                _ => None,
            };
            let [sid, domain, name] = ["SubjectUserSid", "SubjectDomainName", "SubjectUserName"].map(field);
            let target_sid = field("TargetUserSid").or_else(|| field("TargetSid"));
            // The target of 4799 is a group.
            let target = target(target_sid, "TargetUserName", evidence, time).filter(|_| event_id != 4799);
            [of(sid, domain, name, None, time), target]
        }
    };
    names.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SID: &str = "S-1-5-21-1-2-3-1001";
    const SECURITY: &str = "Microsoft-Windows-Security-Auditing";

    fn names<'a>(provider: &str, id: u32, fields: &[(&'a str, &'a str)]) -> Vec<RecordName<'a>> {
        record_names(provider, id, Some(9_000), Some(SID), fields).collect()
    }

    #[test]
    fn an_event_names_who_did_it_and_whom() {
        let fields = [
            ("SubjectUserSid", "S-1-5-18"),
            ("SubjectUserName", "PC$"),
            ("TargetSid", SID),
            ("TargetDomainName", "PC"),
            ("TargetUserName", "anna"),
        ];
        let anna = RecordName {
            sid: SID,
            domain: Some("PC"),
            name: "anna",
            evidence: Some(Evidence::Created),
            seen: Some(9_000),
        };
        assert_eq!(names(SECURITY, 4720, &fields), [anna]);
        assert_eq!(names(SECURITY, 4799, &fields), []);
        assert_eq!(names(SECURITY, 4740, &fields), []);
        assert_eq!(names("x", 4720, &fields), []);
        let renamed = [
            ("TargetSid", SID),
            ("OldTargetUserName", "anna"),
            ("NewTargetUserName", "eve"),
        ];
        let seen = names(SECURITY, 4781, &renamed).into_iter().map(|of| (of.name, of.seen));
        assert_eq!(seen.collect::<Vec<_>>(), [("anna", Some(8_000)), ("eve", Some(9_000))]);
        let [restart] = names("USER32", 1074, &[("param7", r"CORP\eve")])[..] else {
            panic!("one name");
        };
        assert_eq!((restart.domain, restart.name), (Some("CORP"), "eve"));
    }

    #[test]
    fn groups_and_fixed_names_are_no_accounts() {
        for sid in [
            "",
            "S-1-0-0",
            "S-1-5-18",
            "S-1-5-32-544",
            "S-1-5-21-1-2-3-512",
            "s-1-5-21-1-2-3-500",
        ] {
            assert!(!is_of_account(sid), "{sid}");
        }
        for sid in [
            SID,
            "S-1-5-21-1-2-3-500",
            "S-1-5-21-1-2-3-5120",
            "S-1-5-21-1-2-3-+512",
            "S-1-5-90-0-1",
            "S-1-12-1-2",
        ] {
            assert!(is_of_account(sid), "{sid}");
        }
    }
}
