//! The events of the catalog, one after the other.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock, OnceLock};

use evtx_format::value::ValueType;

use crate::classic::CLASSIC_PROVIDERS;
use crate::packed::{Block, BlockEntry, directory};

static CATALOG: &[u8] = include_bytes!("../data/events.bin");

/// The blocks, each with what it unpacks to once it was asked for: 3 MiB for all. To unpack them takes longer than to read
/// many logs.
static BLOCKS: LazyLock<Vec<(BlockEntry, OnceLock<Block>)>> = LazyLock::new(|| {
    // The tests read all of it, so none of it is damaged.
    let blocks = directory(CATALOG).unwrap_or_default();
    blocks.into_iter().map(|entry| (entry, OnceLock::new())).collect()
});

/// An event that a provider declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogEvent {
    /// The provider's name, as its manifest spells it.
    pub provider: Arc<str>,
    /// The event's ID.
    pub id: u32,
    /// The event's version. Each version has fields of its own.
    pub version: u8,
    /// Whether the fields are in `UserData`, so that none is in `EventData`.
    pub in_user_data: bool,
    /// The name and type of each field, in order. The type of a field whose type is not known is `Null`. Names are
    /// those of manifests: a field that has the name of one before it is not numbered.
    pub fields: Arc<[(Arc<str>, ValueType)]>,
}

/// The events with one of `ids`, or all if there are none, of the provider with a name, or of all. The case of ASCII
/// letters in the name does not matter.
///
/// They are in the order of their providers' names without regard to case, their IDs and their versions.
pub fn events<'q>(provider: Option<&'q str>, ids: &[u32]) -> Events<'q> {
    match provider {
        Some(name) => Events::new(Wanted::Provider(name), ids),
        None => Events::new(Wanted::All, ids),
    }
}

/// The events with one of `ids`, or all if there are none, of the providers whose names, in small ASCII letters, are in
/// `providers`, in the order of [`events`].
pub fn events_of<'q>(providers: &'q HashSet<String>, ids: &[u32]) -> Events<'q> {
    Events::new(Wanted::Providers(providers), ids)
}

/// The names of [`CLASSIC_PROVIDERS`], in small ASCII letters.
pub fn classic_providers() -> HashSet<String> {
    CLASSIC_PROVIDERS.iter().map(|name| name.to_ascii_lowercase()).collect()
}

/// The events with one of `ids` of [`CLASSIC_PROVIDERS`], in the order of [`events`].
pub fn classic_events(ids: &[u32]) -> Events<'static> {
    Events::new(Wanted::Classic, ids)
}

/// Whose events are wanted.
#[derive(Debug, Clone, Copy)]
enum Wanted<'q> {
    All,
    Classic,
    Provider(&'q str),
    Providers(&'q HashSet<String>),
}

impl Wanted<'_> {
    fn has(self, provider: &str) -> bool {
        match self {
            Wanted::All => true,
            Wanted::Classic => CLASSIC_PROVIDERS.iter().any(|name| name.eq_ignore_ascii_case(provider)),
            Wanted::Provider(name) => name.eq_ignore_ascii_case(provider),
            Wanted::Providers(names) => names.contains(&provider.to_ascii_lowercase()),
        }
    }
}

/// Events of the catalog. A block of them is unpacked when its first event is asked for.
#[derive(Debug)]
pub struct Events<'q> {
    wanted: Wanted<'q>,
    /// In order.
    ids: Vec<u32>,
    blocks: std::slice::Iter<'static, (BlockEntry, OnceLock<Block>)>,
    /// Of the block at hand, which of its providers are wanted.
    providers: Vec<Option<Arc<str>>>,
    block: Option<&'static Block>,
    /// The place of the next event in the block.
    next: usize,
}

impl<'q> Events<'q> {
    fn new(wanted: Wanted<'q>, ids: &[u32]) -> Self {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        Events {
            wanted,
            ids,
            blocks: BLOCKS.iter(),
            providers: Vec::new(),
            block: None,
            next: 0,
        }
    }
}

impl Iterator for Events<'_> {
    type Item = CatalogEvent;

    fn next(&mut self) -> Option<CatalogEvent> {
        loop {
            while let Some((block, event)) = self.block.and_then(|block| Some((block, block.events.get(self.next)?))) {
                self.next += 1;
                if !self.ids.is_empty() && self.ids.binary_search(&event.id).is_err() {
                    continue;
                }
                let Some(provider) = &self.providers[event.provider] else {
                    continue;
                };
                let (fields, in_user_data) = block.fields(*event).ok()?;
                return Some(CatalogEvent {
                    provider: Arc::clone(provider),
                    id: event.id,
                    version: event.version,
                    in_user_data,
                    fields,
                });
            }
            (self.block, self.next) = (None, 0);
            let (entry, unpacked) = self.blocks.next()?;
            let wanted = self.wanted;
            let chosen = entry
                .providers
                .iter()
                .map(|name| wanted.has(name).then(|| Arc::clone(name)));
            self.providers = chosen.collect();
            if self.providers.iter().any(Option::is_some) {
                self.block = Some(unpacked.get_or_init(|| entry.read().unwrap_or_default()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::directory;

    /// What the catalog says of an event: "name type, name type".
    fn declared(provider: &str, id: u32, version: u8) -> String {
        let found: Vec<_> = events(Some(provider), &[id])
            .filter(|event| event.version == version)
            .collect();
        assert_eq!(found.len(), 1, "{provider} {id} {version}");
        let fields = found[0].fields.iter();
        let fields = fields.map(|(name, value_type)| format!("{name} {value_type}"));
        fields.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn the_catalog_is_small_and_whole() {
        assert!(CATALOG.len() < 1 << 20, "{}", CATALOG.len());
        let blocks = directory(CATALOG).expect("a directory");
        for block in &blocks {
            let block = block.read().expect("a block");
            assert!(block.events.iter().all(|event| block.fields(*event).is_ok()));
        }
        let mut providers: Vec<_> = blocks.iter().flat_map(|block| &block.providers).collect();
        assert_eq!(providers.len(), 899);
        assert!(providers.is_sorted_by_key(|name| name.to_lowercase()));
        providers.dedup();
        assert_eq!(providers.len(), 899);

        let all: Vec<_> = events(None, &[]).collect();
        assert_eq!(all.len(), 54_712 + 30);
        let fields: usize = all.iter().map(|event| event.fields.len()).sum();
        assert_eq!(fields, 155_320);
        let order = |event: &CatalogEvent| (event.provider.to_lowercase(), event.id, event.version);
        assert!(all.is_sorted_by_key(order));
        let names = all.iter().flat_map(|event| event.fields.iter());
        for (name, value_type) in names {
            assert!(!name.is_empty() && !value_type.array, "{name}");
        }
    }

    #[test]
    fn known_events_are_what_they_are() {
        assert_eq!(
            declared("Microsoft-Windows-Security-Auditing", 4740, 0),
            "TargetUserName String, TargetDomainName String, TargetSid SID, SubjectUserSid SID, \
             SubjectUserName String, SubjectDomainName String, SubjectLogonId HexInt64"
        );
        let logon = declared("Microsoft-Windows-Security-Auditing", 4624, 2);
        assert_eq!(logon.split(", ").count(), 27);
        assert!(logon.starts_with("SubjectUserSid SID, SubjectUserName String, SubjectDomainName String, "));
        assert!(logon.contains(", LogonType UInt32, "));
        assert!(logon.contains(", LogonGuid GUID, "));
        assert!(logon.contains(", ProcessId SizeT, "));
        assert_eq!(
            declared("Service Control Manager", 7045, 0),
            "ServiceName String, ImagePath String, ServiceType String, StartType String, AccountName String"
        );
        let process = declared("Microsoft-Windows-Sysmon", 1, 5);
        assert_eq!(process.split(", ").count(), 23);
        assert!(process.starts_with("RuleName String, UtcTime String, ProcessGuid GUID, ProcessId UInt32, "));
        assert!(process.contains(", LogonId HexInt64, TerminalSessionId UInt32, "));
    }

    /// What manifests and templates name differently has the templates' name.
    #[test]
    fn names_are_those_of_templates() {
        assert_eq!(
            declared("Service Control Manager", 7036, 0),
            "param1 String, param2 String, Binary Binary"
        );
        assert_eq!(
            declared("Microsoft-Windows-Windows Defender", 5007, 0),
            "Product Name String, Product Version String, Old Value String, New Value String"
        );
    }

    #[test]
    fn fields_of_user_data_are_told() {
        let mut cleared = events(Some("Microsoft-Windows-Eventlog"), &[1102]);
        assert!(cleared.all(|event| event.in_user_data && !event.fields.is_empty()));
        assert!(events(Some("Microsoft-Windows-Sysmon"), &[]).all(|event| !event.in_user_data));
    }

    #[test]
    fn the_case_of_a_provider_does_not_matter() {
        let count = |name| events(Some(name), &[]).count();
        assert_eq!(count("Microsoft-Windows-Sysmon"), 30);
        assert_eq!(count("microsoft-windows-SYSMON"), 30);
        assert_eq!(count("Microsoft-Windows-Sysmo"), 0);
    }

    #[test]
    fn several_providers_are_told_apart() {
        let names = ["microsoft-windows-sysmon", "service control manager", "no such"];
        let found: Vec<_> = events_of(&names.map(str::to_owned).into(), &[7045, 1]).collect();
        let found = found.iter().map(|event| (&*event.provider, event.id));
        let expected = [("Microsoft-Windows-Sysmon", 1), ("Service Control Manager", 7045)];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        let classic = classic_providers();
        assert!(events_of(&classic, &[4740]).eq(classic_events(&[4740])));
        assert_eq!(events_of(&HashSet::new(), &[]).count(), 0);
    }

    #[test]
    fn ids_of_all_providers() {
        let mut found = events(None, &[4740]).map(|event| event.provider);
        assert!(found.any(|provider| *provider == *"Microsoft-Windows-Security-Auditing"));
        assert_eq!(events(None, &[u32::MAX]).count(), 0);
        assert!(events(None, &[1, 7045]).all(|event| [1, 7045].contains(&event.id)));
    }

    #[test]
    fn classic_events_are_those_of_the_list() {
        let mut providers: Vec<_> = classic_events(&[4740]).map(|event| event.provider).collect();
        providers.dedup();
        assert!(
            providers
                .iter()
                .any(|name| **name == *"Microsoft-Windows-Security-Auditing")
        );
        for name in providers {
            assert!(CLASSIC_PROVIDERS.contains(&&*name), "{name}");
        }
    }
}
