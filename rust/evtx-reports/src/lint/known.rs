//! The events whose fields are known well enough to call a field of a rule wrong.
//!
//! The catalog has the events of Windows 10 and 11. In logs of other versions, many providers have events and fields
//! that it lacks, or spell them differently. The providers below do not, in all logs that `test_lint.py` was run on. So only
//! these count.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use evtx_catalog::events_of;
use hashbrown::HashMap;

/// A channel to which only one provider writes the events that it declares.
struct Owner {
    channel: &'static str,
    provider: &'static str,
    /// Whether a field that no event declares is wrong, even if it resembles none that one declares.
    is_complete: bool,
    /// The IDs that newer versions can have. All others are known, unless this is `None`.
    newer: Option<(u32, u32)>,
    /// Fields that older versions have.
    older: &'static [&'static str],
}

const fn owner(channel: &'static str, provider: &'static str) -> Owner {
    Owner {
        channel,
        provider,
        is_complete: false,
        newer: None,
        older: &[],
    }
}

const OWNERS: [Owner; 10] = [
    Owner {
        is_complete: true,
        newer: Some((30, 254)),
        // Those of Sysmon 1 to 3.
        older: &["Hash", "HashType", "SequenceNumber"],
        ..owner("Microsoft-Windows-Sysmon/Operational", "Microsoft-Windows-Sysmon")
    },
    Owner {
        is_complete: true,
        ..owner("Security", "Microsoft-Windows-Security-Auditing")
    },
    Owner {
        is_complete: true,
        ..owner(
            "Microsoft-Windows-PowerShell/Operational",
            "Microsoft-Windows-PowerShell",
        )
    },
    // PowerShell 7 has the events of Windows PowerShell.
    Owner {
        is_complete: true,
        ..owner("PowerShellCore/Operational", "Microsoft-Windows-PowerShell")
    },
    owner(
        "Microsoft-Windows-Bits-Client/Operational",
        "Microsoft-Windows-Bits-Client",
    ),
    owner(
        "Microsoft-Windows-CodeIntegrity/Operational",
        "Microsoft-Windows-CodeIntegrity",
    ),
    owner(
        "Microsoft-Windows-DNS-Client/Operational",
        "Microsoft-Windows-DNS-Client",
    ),
    owner("Microsoft-Windows-NTLM/Operational", "Microsoft-Windows-NTLM"),
    owner(
        "Microsoft-Windows-TaskScheduler/Operational",
        "Microsoft-Windows-TaskScheduler",
    ),
    owner(
        "Microsoft-Windows-Windows Defender/Operational",
        "Microsoft-Windows-Windows Defender",
    ),
];

/// The fields of an event, in all of its versions.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    /// Their names without spaces, as rules have them.
    names: HashSet<String>,
    is_complete: bool,
}

/// What is known about the events of a channel.
pub(crate) struct Channel {
    events: HashMap<u32, Fields>,
    newer: Option<(u32, u32)>,
}

/// The channels that rules have named so far.
#[derive(Default)]
pub(crate) struct Channels(Mutex<HashMap<&'static str, Arc<Channel>>>);

impl Channels {
    /// What is known about a channel, if its events are.
    pub(crate) fn get(&self, channel: &str) -> Option<Arc<Channel>> {
        let owner = OWNERS
            .iter()
            .find(|owner| owner.channel.eq_ignore_ascii_case(channel))?;
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Channel::new(owner));
        Some(known.entry(owner.channel).or_insert_with(new).clone())
    }
}

impl Channel {
    fn new(owner: &Owner) -> Channel {
        let mut events: HashMap<u32, Fields> = HashMap::new();
        let providers = HashSet::from([owner.provider.to_ascii_lowercase()]);
        for event in events_of(&providers, &[]) {
            let fields = events.entry(event.id).or_default();
            // Elements of `UserData` can have more values than the catalog names.
            fields.is_complete = owner.is_complete && !event.in_user_data;
            let older = owner.older.iter().map(|name| (*name).to_owned());
            let declared = event.fields.iter().map(|(name, _)| name.replace(' ', ""));
            fields.names.extend(declared.chain(older));
        }
        Channel {
            events,
            newer: owner.newer,
        }
    }

    /// The fields of an event, if it is declared.
    pub(crate) fn event(&self, id: u32) -> Option<&Fields> {
        self.events.get(&id)
    }

    /// The IDs of the declared events, if there are no others but those of newer versions.
    pub(crate) fn all_ids(&self) -> Option<Vec<u32>> {
        self.newer?;
        let mut ids: Vec<u32> = self.events.keys().copied().collect();
        ids.sort_unstable();
        Some(ids)
    }

    /// Whether there can be an event with this ID.
    pub(crate) fn can_have(&self, id: u32) -> bool {
        let is_newer = |(first, last): (u32, u32)| (first..=last).contains(&id);
        self.events.contains_key(&id) || self.newer.is_none_or(is_newer)
    }
}

impl Fields {
    /// Whether the event has a field.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Whether the event has no other fields.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The name of a field that differs in case or punctuation only.
    pub(crate) fn similar(&self, name: &str) -> Option<&str> {
        let known = self.names.iter().map(String::as_str).chain(SYSTEM);
        let mut similar: Vec<_> = known.filter(|known| plain(known) == plain(name)).collect();
        similar.sort_unstable();
        similar.first().copied()
    }
}

/// The letters and digits of a name, in small letters.
pub(crate) fn plain(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

/// The fields of `System` that rules name.
const SYSTEM: [&str; 17] = [
    "Channel",
    "Computer",
    "Correlation_ActivityID",
    "Correlation_RelatedActivityID",
    "EventID",
    "EventRecordID",
    "Execution_ProcessID",
    "Execution_ThreadID",
    "Keywords",
    "Level",
    "Opcode",
    "Provider_Guid",
    "Provider_Name",
    "Security_UserID",
    "Task",
    "TimeCreated_SystemTime",
    "Version",
];

/// Whether any event can have a field: those of `System`, values without a name, what replaces damaged data, and
/// attributes.
pub(crate) fn is_of_any_event(name: &str) -> bool {
    const OTHERS: [&str; 8] = [
        "Binary",
        "Data",
        "DataItemName",
        "ErrorCode",
        "EventData",
        "EventPayload",
        "EventSourceName",
        "UserData",
    ];
    let is_number = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit());
    let elements = [
        "Correlation_",
        "EventID_",
        "Execution_",
        "Provider_",
        "Security_",
        "TimeCreated_",
    ];
    SYSTEM.contains(&name)
        || OTHERS.contains(&name)
        || name.contains('.')
        || elements
            .iter()
            .any(|element| name.starts_with(element) && !SYSTEM.iter().any(|one| plain(one) == plain(name)))
        || name.strip_prefix("param").is_some_and(is_number)
}
