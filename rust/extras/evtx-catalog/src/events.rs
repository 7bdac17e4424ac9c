//! The events of the catalog.

use std::collections::HashSet;
use std::io::Read;
use std::sync::{Arc, LazyLock, OnceLock};

use evtx_format::value::ValueType;
use flate2::bufread::ZlibDecoder;

static CATALOG: &[u8] = include_bytes!("../data/events.bin");

/// The blocks of the catalog.
static BLOCKS: LazyLock<Vec<Block>> = LazyLock::new(|| blocks(CATALOG).unwrap_or_default());

/// Some providers and their events.
#[derive(Debug)]
struct Block {
    packed: &'static [u8],
    providers: Vec<String>,
    /// Unpacked at the first use and then kept. Unpacking all (3 MiB) takes longer than reading many logs.
    text: OnceLock<String>,
}

impl Block {
    fn text(&self) -> &str {
        // Tests read the whole catalog, so it is not damaged.
        let text = || unpack(&mut &*self.packed).unwrap_or_default();
        self.text.get_or_init(text)
    }
}

/// The blocks of a catalog; `None` if its directory is damaged.
fn blocks(mut catalog: &'static [u8]) -> Option<Vec<Block>> {
    let directory = unpack(&mut catalog)?;
    let block = |line: &str| {
        let (size, providers) = line.split_once('\t')?;
        Some(Block {
            packed: catalog.split_off(..size.parse().ok()?)?,
            providers: providers.split('\t').map(str::to_owned).collect(),
            text: OnceLock::new(),
        })
    };
    directory.lines().map(block).collect()
}

/// Unpacks the text at the start of some bytes, and moves past it.
fn unpack(bytes: &mut &[u8]) -> Option<String> {
    let mut text = String::new();
    ZlibDecoder::new(bytes).read_to_string(&mut text).ok()?;
    Some(text)
}

/// An event that a provider declares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredEvent {
    /// The provider's name, as its manifest spells it.
    pub provider: Arc<str>,
    /// The event's ID.
    pub id: u32,
    /// The event's version. The fields depend on it.
    pub version: u8,
    /// Whether the fields are in `UserData` rather than in `EventData`.
    pub in_user_data: bool,
    /// The name, as in the manifest, and type of each field, in order. Names can repeat. An unknown type is `Null`.
    pub fields: Arc<[(Arc<str>, ValueType)]>,
}

/// The names of all providers, as their manifests spell them.
pub(crate) fn providers() -> impl Iterator<Item = &'static str> {
    BLOCKS
        .iter()
        .flat_map(|block| block.providers.iter().map(String::as_str))
}

/// All events, by provider without regard to case, then by ID and version.
pub fn all_events() -> Events<'static> {
    Events::new(None, &[])
}

/// The events with one of `ids`, or with any ID if `ids` is empty, of some providers, in the order of [`all_events`].
/// `providers` are names in lower case of ASCII letters.
pub fn events_of<'q>(providers: &'q HashSet<String>, ids: &[u32]) -> Events<'q> {
    Events::new(Some(providers), ids)
}

/// Events of the catalog. It unpacks a block when it reaches the block's first event.
#[derive(Debug)]
pub struct Events<'q> {
    /// The names of the wanted providers; `None` for all.
    wanted: Option<&'q HashSet<String>>,
    /// Sorted.
    ids: Vec<u32>,
    blocks: std::slice::Iter<'static, Block>,
    /// The lines of the block that come next.
    lines: &'static str,
    /// The provider of the next events, if it is wanted.
    provider: Option<Arc<str>>,
}

impl<'q> Events<'q> {
    fn new(wanted: Option<&'q HashSet<String>>, ids: &[u32]) -> Self {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        Events {
            wanted,
            ids,
            blocks: BLOCKS.iter(),
            lines: "",
            provider: None,
        }
    }
}

impl Iterator for Events<'_> {
    type Item = DeclaredEvent;

    fn next(&mut self) -> Option<DeclaredEvent> {
        let wanted = self.wanted;
        let is_wanted = |name: &str| wanted.is_none_or(|wanted| wanted.contains(&name.to_ascii_lowercase()));
        loop {
            // A search by character takes longer than all the rest.
            let Some(end) = memchr::memchr(b'\n', self.lines.as_bytes()) else {
                let is_wanted = |block: &&Block| block.providers.iter().any(|name| is_wanted(name));
                self.lines = self.blocks.find(is_wanted)?.text();
                continue;
            };
            let line = &self.lines[..end];
            self.lines = &self.lines[end + 1..];
            let Some((id, event)) = line.split_once('\t') else {
                self.provider = is_wanted(line).then(|| line.into());
                continue;
            };
            let Some(provider) = &self.provider else { continue };
            let id = id.parse().ok()?;
            if !self.ids.is_empty() && self.ids.binary_search(&id).is_err() {
                continue;
            }
            let mut columns = event.split('\t');
            let (version, in_user_data) = (columns.next()?, columns.next()?);
            let field = |column: &str| {
                let (letter, name) = column.split_at_checked(1)?;
                let value_type = letter.bytes().next()?.checked_sub(b'A')?;
                Some((name.into(), ValueType::from_byte(value_type)?))
            };
            return Some(DeclaredEvent {
                provider: Arc::clone(provider),
                id,
                version: version.parse().ok()?,
                in_user_data: in_user_data == "1",
                fields: columns.map(field).collect::<Option<_>>()?,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classic::{CLASSIC_PROVIDERS, classic_providers};

    fn events(provider: &str, ids: &[u32]) -> Vec<DeclaredEvent> {
        events_of(&[provider.to_ascii_lowercase()].into(), ids).collect()
    }

    /// The fields of an event: "name type, name type".
    fn declared(provider: &str, id: u32, version: u8) -> String {
        let mut events = events(provider, &[id]);
        events.retain(|event| event.version == version);
        assert_eq!(events.len(), 1, "{provider} {id} {version}");
        let fields = events[0].fields.iter();
        let fields = fields.map(|(name, value_type)| format!("{name} {value_type}"));
        fields.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn the_catalog_is_small_and_whole() {
        assert!(CATALOG.len() < 1 << 20, "{}", CATALOG.len());
        let blocks = blocks(CATALOG).expect("a directory");
        let sizes: Vec<usize> = BLOCKS.iter().map(|block| block.text().len()).collect();
        assert!(sizes.iter().all(|size| (1..=256 << 10).contains(size)), "{sizes:?}");
        assert!(sizes.iter().sum::<usize>() <= 4 << 20);
        let mut providers: Vec<_> = blocks.iter().flat_map(|block| &block.providers).collect();
        assert_eq!(providers.len(), 899);
        assert!(providers.is_sorted_by_key(|name| name.to_lowercase()));
        providers.dedup();
        assert_eq!(providers.len(), 899);

        let all: Vec<_> = all_events().collect();
        assert_eq!(all.len(), 54_712 + 30);
        let fields: usize = all.iter().map(|event| event.fields.len()).sum();
        assert_eq!(fields, 155_320);
        let order = |event: &DeclaredEvent| (event.provider.to_lowercase(), event.id, event.version);
        assert!(all.is_sorted_by_key(order));
        let names = all.iter().flat_map(|event| event.fields.iter());
        for (name, value_type) in names {
            assert!(!name.is_empty() && !value_type.array, "{name}");
        }
    }

    #[test]
    fn the_classic_providers_are_in_the_catalog() {
        assert!(CLASSIC_PROVIDERS.lines().is_sorted_by_key(str::to_lowercase));
        let known: HashSet<_> = all_events().map(|event| event.provider).collect();
        for name in CLASSIC_PROVIDERS.lines() {
            assert!(known.contains(name), "{name}");
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

    /// Where manifests and templates name a field differently, the catalog has the templates' name.
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
    fn fields_can_be_in_user_data() {
        let cleared = events("Microsoft-Windows-Eventlog", &[1102]);
        assert!(
            cleared
                .iter()
                .all(|event| event.in_user_data && !event.fields.is_empty())
        );
        let sysmon = events("Microsoft-Windows-Sysmon", &[]);
        assert!(sysmon.len() == 30 && sysmon.iter().all(|event| !event.in_user_data));
        assert!(events("Microsoft-Windows-Sysmo", &[]).is_empty());
    }

    #[test]
    fn events_of_several_providers() {
        let names = ["microsoft-windows-sysmon", "service control manager", "no such"];
        let found: Vec<_> = events_of(&names.map(str::to_owned).into(), &[7045, 1]).collect();
        let found = found.iter().map(|event| (&*event.provider, event.id));
        let expected = [("Microsoft-Windows-Sysmon", 1), ("Service Control Manager", 7045)];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert_eq!(events_of(&HashSet::new(), &[]).count(), 0);
        let classic = classic_providers();
        assert!(events_of(&classic, &[4740]).any(|event| *event.provider == *"Microsoft-Windows-Security-Auditing"));
        assert_eq!(events_of(&classic, &[u32::MAX]).count(), 0);
    }
}
