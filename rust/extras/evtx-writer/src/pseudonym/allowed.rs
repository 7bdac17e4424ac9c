//! What may stay: fields whose values cannot name anybody, and words and names that every Windows has.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::LazyLock;

use evtx_catalog::all_events;
use evtx_codes::{Answer, Code, Lookup, Source, tables};
use evtx_format::value::{Scalar, ValueType};
use jiff::civil::DateTime;

use super::key::NUMBERS;
use super::names::{SERVICES, is_in, is_in_name, is_of_windows, is_share, names};
use super::text::{Part, only_part, parts};

/// Whether the bytes of values of a type are replaced together: binary ones, and arrays of numbers, which can be addresses or
/// texts.
pub(super) fn is_bytes(value_type: ValueType) -> bool {
    use Scalar::{HexInt32, HexInt64, Int8, Int16, Int32, Int64, SizeT, UInt8, UInt16, UInt32, UInt64};
    let scalar = value_type.scalar;
    let is_number = matches!(
        scalar,
        Int8 | UInt8 | Int16 | UInt16 | Int32 | UInt32 | Int64 | UInt64 | HexInt32 | HexInt64 | SizeT
    );
    scalar == Scalar::Binary || value_type.array && is_number
}

/// Fields: provider, event, name, form and reason.
const FIELDS: &str = include_str!("../../data/allowed.tsv");
/// Names of accounts and domains that every Windows has, one a line.
const ACCOUNTS: &str = include_str!("../../data/accounts.txt");
/// Words of Windows, one a line.
const WORDS: &str = include_str!("../../data/words.txt");
/// Words of Windows that also name accounts and machines, one a line.
const ROLES: &str = include_str!("../../data/roles.txt");
/// Names of providers, channels and elements that no manifest of the catalog declares, one a line.
const NAMES: &str = include_str!("../../data/names.txt");

/// The most bytes of the user's entries. Each record carries them, for the check of the log.
pub(super) const MAX_ENTRIES: usize = 1 << 14;

/// What replaces a FILETIME or SYSTEMTIME that is none: that of 0.
pub(super) const NO_TIME: &str = "1601-01-01T00:00:00.0000000Z";

/// Elements and attributes of `System` that hold numbers, GUIDs and times.
const SYSTEM: &str = "EventID Qualifiers Version Level Task Opcode Keywords SystemTime RawTime EventRecordID ActivityID \
                      RelatedActivityID ProcessID ThreadID ProcessorID SessionID KernelTime UserTime ProcessorTime Guid";
/// Those of them that have 64 bits.
const LONG: [&str; 3] = ["Keywords", "EventRecordID", "RawTime"];

/// Fields that name accounts, domains and machines, in lower case. `*` stands for any text.
const NAMING: &str = "*user *username *accountname *account *domain* computer* *computer *computername *workstation* \
                      *hostname *machinename *servername sharename *clientname *membername *principalname* displayname *owner \
                      usercontext";

/// Last labels of names of hosts, with spaces between them.
const LABELS: &str = include_str!("../../data/labels.txt");
/// Folders below `Users` that every Windows has.
const PROFILES: [&str; 5] = ["public", "default", "all users", "administrator", "guest"];
/// Names of Windows that look like those of hosts.
const NO_HOSTS: &str = "asp.net microsoft.net system.net system.io chcp.com format.com mode.com more.com tree.com";

/// What is shipped.
struct Shipped {
    /// In lower case, as all texts here.
    words: HashSet<String>,
    /// Those of the words that stay only in some places.
    roles: HashSet<String>,
    accounts: HashSet<String>,
    /// Last labels of names of hosts.
    labels: HashSet<&'static str>,
    /// SIDs and GUIDs.
    codes: HashSet<String>,
    names: HashSet<String>,
    providers: HashSet<String>,
    /// The table of status codes.
    status: Option<Source>,
}

static SHIPPED: LazyLock<Shipped> = LazyLock::new(|| {
    let lines = |text: &'static str| {
        text.lines()
            .filter(|line| !line.starts_with('#'))
            .map(str::to_lowercase)
    };
    let mut providers: HashSet<String> = lines(NAMES).collect();
    let mut names = providers.clone();
    for event in all_events() {
        _ = providers.insert(event.provider.to_lowercase());
        for (name, _) in event.fields.iter() {
            if !names.contains(&**name) {
                _ = names.insert(name.to_lowercase());
            }
        }
    }
    names.extend(SYSTEM.split(' ').map(str::to_lowercase));
    let codes = tables()
        .iter()
        .filter(|table| matches!(table.name, "sid_name" | "guid_name"));
    Shipped {
        words: lines(WORDS).chain(lines(ROLES)).collect(),
        roles: lines(ROLES).collect(),
        accounts: lines(ACCOUNTS).collect(),
        labels: LABELS.lines().skip(1).flat_map(str::split_whitespace).collect(),
        codes: codes.flat_map(|table| table.codes()).map(str::to_lowercase).collect(),
        names,
        providers,
        status: Lookup::Name.source("status").ok(),
    }
});

/// A name that no provider and no field has.
pub(super) const UNKNOWN: &str = "\0";

/// The event that a value belongs to, as far as it is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Event {
    pub(super) provider: String,
    pub(super) id: Option<u64>,
}

/// An element that is open: its name, and its attribute `Name`.
#[derive(Debug, Clone, Default)]
pub(super) struct Open {
    pub(super) name: String,
    pub(super) label: String,
}

/// The place of a value in an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// A number of 32 bits, GUID or time of `System`.
    System,
    /// A number of 64 bits there.
    Long,
    /// The GUID of the provider.
    ProviderGuid,
    EventId,
    Provider,
    /// The older name of a provider.
    Source,
    Channel,
    /// An attribute that is the name of a value, or declares a namespace.
    Name,
    /// A field of an event, by its name.
    Field(String),
    /// In `RenderingInfo`: texts that Windows made of the others.
    Rendering,
    /// In several places, or in none.
    Unknown,
}

impl Event {
    /// Notes a value that says which event it is. If there are several, nobody knows.
    pub(super) fn note(&mut self, place: &Place, text: &str) {
        match place {
            Place::Provider if self.provider.is_empty() => self.provider = text.to_lowercase(),
            Place::Provider if !self.provider.eq_ignore_ascii_case(text) => self.provider = UNKNOWN.to_owned(),
            Place::EventId => self.id = text.parse().ok().filter(|id| self.id.is_none_or(|known| known == *id)),
            _ => {}
        }
    }
}

impl Place {
    /// Whether it names accounts, domains or machines in every event.
    fn is_naming(&self) -> bool {
        let Place::Field(name) = self else { return false };
        NAMING.split_whitespace().any(|pattern| {
            let (start, end) = (pattern.strip_prefix('*'), pattern.strip_suffix('*'));
            let inner = pattern.trim_matches('*');
            match (start, end) {
                (Some(_), Some(_)) => name.contains(inner),
                (Some(_), None) => name.ends_with(inner),
                (None, Some(_)) => name.starts_with(inner),
                (None, None) => name == inner,
            }
        })
    }

    fn is_named(&self) -> bool {
        matches!(self, Place::Field(name) if name.ends_with("name"))
    }

    /// The place of content of the innermost element, or of one of its attributes.
    pub(super) fn of(open: &[Open], attribute: Option<&str>) -> Self {
        let Some(last) = open.last() else { return Place::Unknown };
        let is = |at: usize, name| open.get(at).is_some_and(|open| open.name == name);
        if open.iter().any(|open| open.name == "RenderingInfo") {
            return Place::Rendering;
        }
        let in_system = is(0, "Event") && is(1, "System") && open.len() == 3;
        match attribute {
            Some("Name") if in_system && last.name == "Provider" => Place::Provider,
            Some("EventSourceName") if in_system && last.name == "Provider" => Place::Source,
            Some(name) if name == "Name" || name == "xmlns" || name.starts_with("xmlns:") => Place::Name,
            None if in_system && last.name == "EventID" => Place::EventId,
            None if in_system && last.name == "Channel" => Place::Channel,
            None if !last.label.is_empty() => Place::Field(last.label.to_lowercase()),
            _ => match attribute.unwrap_or(&last.name) {
                "Guid" if in_system => Place::ProviderGuid,
                name if in_system && LONG.contains(&name) => Place::Long,
                name if in_system && is_in(SYSTEM, name) => Place::System,
                name => Place::Field(name.to_lowercase()),
            },
        }
    }
}

/// What the values of a field that stays look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// 0 or 1, or the words or codes for them.
    Truth,
    /// A number of 16 bits.
    Port,
    /// A number of 16 bits, a status code that Windows defines, or codes such as `%%1833`.
    Code,
    /// A number of 32 bits, or such codes.
    Bits,
    /// A number, or such codes.
    Number,
    /// Up to four numbers of up to five digits, with dots between them, that are not an address.
    Version,
    Guid,
    /// A name as `HackTool:Win32/Mimikatz.D`.
    Threat,
    /// One of some texts, with `|` between them.
    OneOf(&'static str),
    /// The name of an account, a domain or a machine. It does not stay, and so do words of Windows in it.
    Name,
    Any,
}

/// Providers of a field.
#[derive(Debug)]
enum Providers {
    Any,
    /// Those that are shipped.
    Declared,
    /// One, in lower case.
    One(String),
}

#[derive(Debug)]
struct Field {
    providers: Providers,
    event: Option<u64>,
    form: Form,
}

/// What may stay.
#[derive(Debug)]
pub(super) struct Allowed {
    /// By name; those of `*` are any.
    fields: HashMap<String, Vec<Field>>,
    /// Words that the user has added.
    words: HashSet<String>,
    /// Names of providers that the user has added.
    providers: HashSet<String>,
    /// The user's entries, in lines.
    pub(super) entries: String,
}

impl Allowed {
    /// What is shipped, and the user's entries: `provider/event/field`, in which `*` means any, or a word.
    ///
    /// # Errors
    /// A text that names the entry that is wrong.
    pub(super) fn new<'e>(entries: impl IntoIterator<Item = &'e str>) -> Result<Self, String> {
        let mut all = Allowed {
            fields: HashMap::new(),
            words: HashSet::new(),
            providers: HashSet::new(),
            entries: String::new(),
        };
        for line in FIELDS.lines().filter(|line| !line.starts_with('#')) {
            if let [provider, event, name, form, _] = line.split('\t').collect::<Vec<_>>()[..] {
                let form = Form::of(form).ok_or_else(|| line.to_owned())?;
                let providers = match provider {
                    "*" => Providers::Declared,
                    one => Providers::One(one.to_lowercase()),
                };
                all.add(providers, event, name, form).map_err(|()| line.to_owned())?;
            }
        }
        for entry in entries {
            let wrong = || format!("'{entry}' is neither provider/event/field nor a word");
            let mut from_end = entry.rsplitn(3, '/');
            match [from_end.next(), from_end.next(), from_end.next()] {
                [Some(name), Some(event), Some(provider)] if !name.is_empty() && !provider.is_empty() => {
                    let providers = match provider {
                        "*" => Providers::Any,
                        one => Providers::One(one.to_lowercase()),
                    };
                    all.add(providers, event, name, Form::Any).map_err(|()| wrong())?;
                    _ = all.providers.insert(provider.to_lowercase());
                }
                _ if only_part(entry).is_some_and(|part| part != Part::Between(entry)) => {
                    _ = all.words.insert(entry.to_lowercase());
                }
                _ => return Err(wrong()),
            }
            all.entries.extend([entry, "\n"]);
        }
        if all.entries.len() > MAX_ENTRIES {
            return Err(format!("the entries have more than {MAX_ENTRIES} bytes together"));
        }
        Ok(all)
    }

    fn add(&mut self, providers: Providers, event: &str, name: &str, form: Form) -> Result<(), ()> {
        let event = if event == "*" {
            None
        } else {
            Some(event.parse().map_err(drop)?)
        };
        self.fields
            .entry(name.to_lowercase())
            .or_default()
            .push(Field { providers, event, form });
        Ok(())
    }

    /// Whether an item of a value may stay as it is. In an array, only a time, or where any value may.
    pub(super) fn may_stay(&self, place: &Place, event: &Event, value_type: ValueType, text: &str) -> bool {
        match value_type.array {
            _ if is_bytes(value_type) => self.any(place, event),
            true => text.is_empty() || is_clock(text) || self.any(place, event),
            false if matches!(value_type.scalar, Scalar::Real32 | Scalar::Real64) => self.any(place, event),
            false if value_type.scalar == Scalar::Bool => Form::Truth.is_of(text) || self.any(place, event),
            false => self.whole(place, event, text),
        }
    }

    /// Whether any value may stay in a place.
    pub(super) fn any(&self, place: &Place, event: &Event) -> bool {
        self.forms(place, event).any(|form| form == Form::Any)
    }

    /// The forms of the values that may stay in a place.
    fn forms(&self, place: &Place, event: &Event) -> impl Iterator<Item = Form> {
        let any_field = match place {
            Place::Field(_) => self.fields.get("*"),
            _ => None,
        };
        let is_one = |field: &&Field| {
            let is_event = field.event.is_none_or(|id| event.id == Some(id));
            is_event
                && match &field.providers {
                    Providers::Any => true,
                    Providers::Declared => SHIPPED.providers.contains(&event.provider),
                    Providers::One(provider) => *provider == event.provider,
                }
        };
        let fields = self.fields_of(place).chain(any_field.into_iter().flatten());
        fields.filter(is_one).map(|field| field.form)
    }

    /// What is allowed for the name of a field.
    fn fields_of(&self, place: &Place) -> impl Iterator<Item = &Field> {
        let fields = match place {
            Place::Field(name) => self.fields.get(name),
            _ => None,
        };
        fields.into_iter().flatten()
    }

    /// Whether a place names accounts, domains or machines in an event, or in an event that may be this one.
    fn is_naming(&self, place: &Place, event: &Event) -> bool {
        let may_be = |field: &Field| match &field.providers {
            _ if field.form != Form::Name || field.event.is_some() && event.id.is_some() && field.event != event.id => {
                false
            }
            Providers::One(provider) => *provider == event.provider || ["", UNKNOWN].contains(&&*event.provider),
            Providers::Any | Providers::Declared => true,
        };
        place.is_naming() || self.fields_of(place).any(may_be)
    }

    /// Whether a single value may stay as it is in its place, by the text that Windows shows for it.
    pub(super) fn whole(&self, place: &Place, event: &Event, text: &str) -> bool {
        if text.is_empty() || is_clock(text) {
            return true;
        }
        match place {
            Place::System | Place::EventId => Form::Bits.is_of(text) || is_guid(text) || is_time(text),
            Place::Long => Form::Number.is_of(text),
            Place::ProviderGuid => is_guid(text) && self.is_provider(&event.provider),
            Place::Provider | Place::Source => self.is_provider(text),
            Place::Channel => {
                self.is_provider(text)
                    || text.split_once('/').is_some_and(|(provider, kind)| {
                        self.is_provider(provider) && self.parts(place, event, kind).all(|(_, _, may_stay)| may_stay)
                    })
            }
            Place::Name => self.is_name(text),
            Place::Field(_) => self.forms(place, event).any(|form| form.is_of(text)),
            Place::Rendering | Place::Unknown => false,
        }
    }

    /// The parts of a text in a place of an event, each with its text, and whether it may stay.
    pub(super) fn parts<'t>(
        &self,
        place: &Place,
        event: &Event,
        text: &'t str,
    ) -> impl Iterator<Item = (Part<'t>, &'t str, bool)> {
        let (words, mut at) = (words_of(self.is_naming(place, event), place.is_named(), text), 0);
        parts(text).map(move |(part, text)| {
            let words = &words[at..at + text.len()];
            at += text.len();
            let may_stay = match part {
                _ if words.iter().all(|words| *words == Words::All) => true,
                Part::Word(word) if words.contains(&Words::None) => self.words.contains(&word.to_lowercase()),
                _ => self.part(part),
            };
            (part, text, may_stay)
        })
    }

    /// Whether a part of a text may stay, if words of Windows may.
    fn part(&self, part: Part<'_>) -> bool {
        let is_code = |text: &str| SHIPPED.codes.contains(text) || self.words.contains(text);
        match part {
            Part::Between(_) => true,
            Part::Number(number) | Part::Hex(number) => {
                NUMBERS.contains(&number) || self.words.contains(&number.to_string())
            }
            Part::Run(text) => {
                let numbers = text.split(|digit: char| !digit.is_ascii_alphanumeric());
                let mut numbers = numbers.filter(|number| !number.is_empty());
                is_code(&text.to_lowercase())
                    || numbers.all(|number| number.parse().is_ok_and(|number| NUMBERS.contains(&number)))
            }
            Part::Sid(text) | Part::Guid(text) => {
                is_code(&text.to_lowercase()) || text.bytes().all(|byte| matches!(byte, b'0' | b'-'))
            }
            Part::Ipv4(address) => address.is_loopback() || address.is_unspecified() || is_code(&address.to_string()),
            Part::Ipv6(address) => match address.to_ipv4_mapped() {
                Some(address) => self.part(Part::Ipv4(address)),
                None => address.is_loopback() || address.is_unspecified() || is_code(&address.to_string()),
            },
            Part::Word(word) => {
                let word = word.to_lowercase();
                SHIPPED.words.contains(&word) || self.words.contains(&word)
            }
        }
    }

    /// Whether elements, attributes and values may have a name.
    pub(super) fn is_name(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        SHIPPED.names.contains(&name) || self.fields.contains_key(&name)
    }

    fn is_provider(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        SHIPPED.providers.contains(&name) || self.providers.contains(&name) || self.words.contains(&name)
    }
}

/// Whether a text is a GUID in braces.
fn is_guid(text: &str) -> bool {
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    matches!(inner.and_then(only_part), Some(Part::Guid(_)))
}

impl Form {
    /// The form with a name in the table.
    fn of(name: &'static str) -> Option<Self> {
        Some(match name {
            "truth" => Form::Truth,
            "port" => Form::Port,
            "code" => Form::Code,
            "bits" => Form::Bits,
            "number" => Form::Number,
            "version" => Form::Version,
            "guid" => Form::Guid,
            "threat" => Form::Threat,
            "name" => Form::Name,
            texts if texts.contains('|') => Form::OneOf(texts),
            _ => return None,
        })
    }

    /// Whether a text is a value of this form, or `-`, which stands for none.
    fn is_of(self, text: &str) -> bool {
        let text = text.trim();
        let number = |text: &str| match only_part(text)? {
            Part::Number(number) | Part::Hex(number) => Some(number),
            _ => None,
        };
        let is_code = |text: &str| {
            text.strip_prefix("%%")
                .is_some_and(|digits| digits.len() < 6 && number(digits).is_some())
        };
        let are_codes = || !text.is_empty() && text.split_whitespace().all(is_code);
        let is_number = |bits: u32| match text.strip_prefix('-') {
            Some(digits) => number(digits).is_some_and(|number| number <= 1 << (bits - 1)),
            // A code of 32 bits can be negative in 64.
            None => number(text).is_some_and(|number| {
                number <= u64::MAX >> (64 - bits) || bits == 32 && i32::try_from(number.cast_signed()).is_ok()
            }),
        };
        let name = |status| Lookup::Name.answer(status, Code::Text(text));
        let is_status = || is_number(32) && SHIPPED.status.map(name).is_some_and(|name| name != Answer::Null);
        text == "-"
            || match self {
                Form::Truth => ["0", "1", "true", "false", "%%1842", "%%1843"]
                    .iter()
                    .any(|known| text.eq_ignore_ascii_case(known)),
                Form::Port => is_number(16),
                Form::Code => {
                    let is_none = number(text).is_some_and(|number| NUMBERS.contains(&number));
                    is_number(16) || is_none || is_status() || are_codes()
                }
                Form::Bits => is_number(32) || are_codes(),
                Form::Number => is_number(64) || are_codes(),
                Form::Version => {
                    let is_short = |number: &str| {
                        (1..=5).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
                    };
                    text.split('.').count() <= 4
                        && text.split('.').all(is_short)
                        && !matches!(only_part(text), Some(Part::Ipv4(_)))
                }
                Form::Guid => is_guid(text),
                Form::Threat => {
                    let is_one = |part: &str| {
                        !part.is_empty()
                            && part
                                .bytes()
                                .all(|byte| byte.is_ascii_alphanumeric() || b"._!#-".contains(&byte))
                    };
                    let family = text.split_once(':').filter(|(kind, _)| is_one(kind));
                    let family = family.and_then(|(_, rest)| rest.split_once('/'));
                    family.is_some_and(|(platform, family)| is_one(platform) && is_one(family))
                }
                Form::OneOf(texts) => texts.split('|').any(|known| text.eq_ignore_ascii_case(known)),
                Form::Name => false,
                Form::Any => true,
            }
    }
}

/// The type of texts outside of values.
pub(super) const TEXT: ValueType = ValueType {
    scalar: Scalar::String,
    array: false,
};

/// Which words may stay at a byte of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    /// Those of Windows, and the user's.
    Usual,
    /// The user's alone.
    None,
    /// All: it is the name of an account that every Windows has.
    All,
}

/// Which words may stay, by the byte of a text.
fn words_of(is_naming: bool, is_named: bool, text: &str) -> Vec<Words> {
    let lower = text.to_ascii_lowercase();
    let mut words = vec![Words::Usual; text.len()];
    let of_account = |name: &str| {
        if is_account(name.trim()) {
            Words::All
        } else {
            Words::None
        }
    };
    if is_naming {
        for (at, name) in pieces(&lower, |char| matches!(char, '\\' | '/' | '@') || char.is_control()) {
            let end = at + name.len();
            let is_first = lower[..at].chars().next_back().is_none_or(char::is_control);
            let is_class = is_first && lower[end..].starts_with('/') && is_in(SERVICES, name);
            let is_share = lower[..at].ends_with(r"\\*\") && is_share(name);
            words[at..end].fill(if is_class || is_share {
                Words::All
            } else {
                of_account(name)
            });
        }
        return words;
    }
    let is_bare = is_named || !text.trim().contains(char::is_whitespace);
    if is_bare && is_account(lower.trim_matches(|char: char| !char.is_alphanumeric())) {
        words.fill(Words::All);
        return words;
    }
    for (at, word) in pieces(&lower, |char| char.is_ascii() && !char.is_alphanumeric() && char != '_') {
        let range = at..at + word.len();
        let goes = match is_bare {
            true => !is_in_name(&lower, &range),
            false => SHIPPED.roles.contains(word) && !is_of_windows(&lower, &range),
        };
        if goes && !is_in_account(&lower, &range) {
            words[range].fill(Words::None);
        }
    }
    for name in names(&lower) {
        if !is_in_account(&lower, &name) {
            words[name.clone()].fill(of_account(&lower[name]));
        }
    }
    let is_no_host = |char: char| char.is_ascii() && !char.is_alphanumeric() && !matches!(char, '.' | '-' | '_' | '@');
    for (at, host) in pieces(&lower, is_no_host) {
        let name = host.trim_matches(|char| matches!(char, '.' | '-' | '@'));
        let is_host = name
            .rsplit_once('.')
            .is_some_and(|(_, last)| SHIPPED.labels.contains(last))
            || name.contains(".ipv6-literal.");
        if is_host && !NO_HOSTS.split_whitespace().any(|known| known == name) {
            words[at..at + host.len()].fill(Words::None);
        }
    }
    // Rules exclude these.
    for (at, end) in lower.match_indices(".com") {
        if !lower[at + end.len()..].starts_with(|char: char| char.is_alphanumeric() || "-_.".contains(char)) {
            words[at..at + end.len()].fill(Words::Usual);
        }
    }
    for (at, scheme) in lower.match_indices("x-windowsupdate") {
        words[at..at + scheme.len()].fill(Words::All);
    }
    // The name of a profile can have spaces. At the end of a path, arguments can follow it.
    let is_end = |char: char| char.is_control() || "\\/\"'<>|,;:*".contains(char);
    for (at, users) in lower.match_indices("users") {
        let after = &lower[at + users.len()..];
        let start = after.trim_start_matches(['\\', '/']);
        let is_folder = lower[..at].ends_with(['\\', '/']) || at == 0;
        if is_folder && start.len() < after.len() {
            let mut name = start.split(is_end).next().unwrap_or_default();
            if !start[name.len()..].starts_with('\\') {
                name = name.split(" -").next().unwrap_or_default();
            }
            if !PROFILES.contains(&name.trim_end()) {
                let at = text.len() - start.len();
                words[at..at + name.len()].fill(Words::None);
            }
        }
    }
    words
}

/// The pieces of a text between some characters, each with its offset.
fn pieces(text: &str, is_between: fn(char) -> bool) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive(is_between).map(move |piece| {
        let start = at;
        at += piece.len();
        (start, piece.strip_suffix(is_between).unwrap_or(piece))
    })
}

/// Whether a name in a text in lower case is one end of that of an account with spaces, as in `nt authority\system`.
fn is_in_account(text: &str, name: &Range<usize>) -> bool {
    let is_end = |text: &str| !text.starts_with(char::is_alphanumeric);
    let is_start = |text: &str| !text.ends_with(char::is_alphanumeric);
    SHIPPED
        .accounts
        .iter()
        .filter(|account| account.contains(' '))
        .any(|account| {
            text[name.start..].strip_prefix(&**account).is_some_and(is_end)
                || text[..name.end].strip_suffix(&**account).is_some_and(is_start)
        })
}

/// Whether every Windows has an account or a domain with a name, whose ASCII letters are in lower case.
fn is_account(name: &str) -> bool {
    let number = name.strip_prefix("dwm-").or_else(|| name.strip_prefix("umfd-"));
    SHIPPED.accounts.contains(&name.to_lowercase())
        || number.is_some_and(|number| number.len() < 3 && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a text is a time that a clock shows: not of midnight, as dates of birth have it.
fn is_clock(text: &str) -> bool {
    is_time(text) && (text == NO_TIME || !text[10..].bytes().all(|byte| !byte.is_ascii_digit() || byte == b'0'))
}

/// Whether a text is a time since 1990, as Windows and Sysmon write them, or the time that FILETIME 0 is.
fn is_time(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b':' | b'.' | b'T' | b' ' | b'Z');
    let time = text.strip_suffix('Z').unwrap_or(text).parse::<DateTime>();
    // A clock of Windows has seven digits of the second. Forwarded events have two zeros after these.
    let has_digits = text
        .get(27..)
        .is_none_or(|rest| rest.bytes().all(|byte| matches!(byte, b'0' | b'Z')));
    (19..=30).contains(&text.len())
        && has_digits
        && text.bytes().all(is_plain)
        && time.is_ok_and(|time| (1990..2100).contains(&time.year()))
        || text == NO_TIME
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_numbers_are_told_from_other_texts() {
        for text in [
            "2024-03-05 10:00:00.123",
            "2024-03-05T10:00:00.1234567Z",
            "2024-03-05T10:00:00.123456700Z",
            "1601-01-01T00:00:00.0000000Z",
        ] {
            assert!(is_time(text), "{text}");
        }
        for text in [
            "2024-03-05",
            "1601-03-05T10:00:00.1234567Z",
            "2024-03-05T10:00:00.491511234",
            "2024-03-05T10:00:00.anna",
            "2024-13-05 10:00:00",
        ] {
            assert!(!is_time(text), "{text}");
        }
        assert!(is_clock("2024-03-05 10:00:00") && is_clock(NO_TIME));
        assert!(!is_clock("1990-05-17 00:00:00") && !is_clock("1990-05-17T00:00:00.0000000Z"));
        for (form, yes, no) in [
            (
                Form::Truth,
                &["0", "1", "True", "%%1843", "-"][..],
                &["2", "203", "yes", "%%1833", "0 1"][..],
            ),
            (
                Form::Port,
                &["0", "443", "65535", "-"],
                &["65536", "3413012745", "true", "%%1833", "-65536"],
            ),
            (
                Form::Code,
                &[
                    "1234",
                    "0x3e7",
                    "-1",
                    "%%1833",
                    "%%4416\n\t\t%%4417 ",
                    "-",
                    "0xffffffffc0000022",
                    "0x80070005",
                    "4294967295",
                ],
                &[
                    "3405803785",
                    "0xcb007109",
                    "-1062731775",
                    "65536",
                    "4915112345678",
                    "203.0.113.9",
                    "anna",
                    "1 2",
                    "007",
                    "%%4416 anna",
                    "+1",
                    "203,0,113,9",
                    "true",
                ],
            ),
            (
                Form::Bits,
                &["0x1fffff", "-1", "%%1833"],
                &["4915112345678", "203.0.113.9", "anna"],
            ),
            (
                Form::Number,
                &["4915112345678", "-1"],
                &["203.0.113.9", "1 2", "1,2", ""],
            ),
            (
                Form::Version,
                &["10.0.19041.1", "15.15"],
                &["10.0-anna", "v1", "203.0.113.9", "491511234567", "1.2.3.4.5", "1..2"],
            ),
            (
                Form::Threat,
                &["HackTool:Win64/Mikatz!dha", "HackTool:Win32/Mimikatz.D"],
                &["anna", "a:b", "a:b/c d"],
            ),
            (
                Form::OneOf("auto start|disabled"),
                &["Auto Start", "disabled"],
                &["auto", "anna", ""],
            ),
            (Form::Name, &[], &["anna", "backup"]),
            (
                Form::Guid,
                &["{54849625-5478-4994-a5ba-3e3b0328c30d}"],
                &["{anna}", "1"],
            ),
        ] {
            assert!(yes.iter().all(|text| form.is_of(text)), "{form:?}");
            assert_eq!(no.iter().find(|text| form.is_of(text)), None, "{form:?}");
        }
    }

    #[test]
    fn entries_are_fields_or_words() {
        let allowed = Allowed::new(["My-Provider/7/Image", "*/*/Company", "contoso"]).expect("entries");
        let event = |provider: &str, id| Event {
            provider: provider.to_owned(),
            id: Some(id),
        };
        let image = Place::Field("image".to_owned());
        assert!(allowed.whole(&image, &event("my-provider", 7), "anna"));
        assert!(!allowed.whole(&image, &event("my-provider", 8), "anna"));
        assert!(allowed.whole(&Place::Field("company".to_owned()), &Event::default(), "anna"));
        let words = ["Contoso", "fabrikam", "my-provider", "Company"];
        let may_stay = |text| {
            allowed
                .parts(&Place::Unknown, &Event::default(), text)
                .all(|(_, _, may_stay)| may_stay)
        };
        assert_eq!(words.map(may_stay), [true, false, false, false]);
        // The name of a provider or field is no word.
        let allowed = Allowed::new(["Fabrikam/1/Anna"]).expect("entries");
        let may_stay = |place| {
            allowed
                .parts(&place, &Event::default(), "fabrikam")
                .all(|(_, _, may_stay)| may_stay)
        };
        assert!(!may_stay(Place::Unknown) && !may_stay(Place::Field("computer".to_owned())));
        assert!(allowed.whole(&Place::Provider, &Event::default(), "Fabrikam"));
        assert!(allowed.whole(&Place::Name, &Event::default(), "Anna") && !allowed.is_name("Fabrikam"));
        let allowed = Allowed::new(["My-Provider/7/Image", "*/*/Company"]).expect("entries");
        assert!(allowed.whole(&Place::Provider, &Event::default(), "My-Provider"));
        assert!(allowed.is_name("Company") && !allowed.is_name("Anna"));
        for wrong in ["", "a b", "x/y", "p/e/f", "/1/f"] {
            assert!(Allowed::new([wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn entries_of_all_fields_are_those_of_each() {
        let may_stay = |entry, id| {
            let allowed = Allowed::new([entry]).expect("an entry");
            let event = Event {
                provider: "fabrikam".to_owned(),
                id: Some(id),
            };
            allowed.whole(&Place::Field("computer".to_owned()), &event, "anna")
                && allowed.any(&Place::Field("address".to_owned()), &event)
                && !allowed.whole(&Place::Unknown, &event, "anna")
        };
        assert!(may_stay("*/*/*", 7) && may_stay("Fabrikam/7/*", 7) && may_stay("Fabrikam/*/*", 7));
        assert!(!may_stay("Fabrikam/7/*", 8) && !may_stay("Contoso/*/*", 7));
    }

    #[test]
    fn a_field_of_any_provider_is_one_of_those_that_are_shipped() {
        let allowed = Allowed::new([]).expect("no entries");
        let may_stay = |provider: &str, place, text| {
            let provider = provider.to_owned();
            allowed.whole(&place, &Event { provider, id: None }, text)
        };
        let (declared, size) = ("microsoft-windows-sysmon", || Place::Field("size".to_owned()));
        assert!(may_stay(declared, size(), "4915") && !may_stay("contoso", size(), "4915"));
        assert!(!may_stay(declared, size(), "491511234567"));
        let guid = "{54849625-5478-4994-a5ba-3e3b0328c30d}";
        assert!(may_stay(declared, Place::ProviderGuid, guid) && !may_stay("contoso", Place::ProviderGuid, guid));
        assert!(may_stay("contoso", Place::System, guid));
        assert!(!may_stay("", Place::System, "491511234567") && may_stay("", Place::System, "491511234"));
        assert!(may_stay("", Place::Long, "0x8020000000000000"));
    }

    #[test]
    fn numbers_of_system_have_their_width() {
        let open = |name: &str| Open {
            name: name.to_owned(),
            label: String::new(),
        };
        for (element, attribute, expected) in [
            ("Execution", Some("ProcessID"), Place::System),
            ("EventRecordID", None, Place::Long),
            ("Keywords", None, Place::Long),
            ("Provider", Some("Guid"), Place::ProviderGuid),
            ("Correlation", Some("ActivityID"), Place::System),
        ] {
            let path = ["Event", "System", element].map(open);
            assert_eq!(Place::of(&path, attribute), expected, "{element}");
        }
    }

    #[test]
    fn fields_of_some_events_name_accounts() {
        let allowed = Allowed::new([]).expect("no entries");
        let is_naming = |provider: &str, id, name: &str| {
            let provider = provider.to_owned();
            allowed.is_naming(&Place::Field(name.to_owned()), &Event { provider, id })
        };
        let auditing = "microsoft-windows-security-auditing";
        assert!(is_naming(auditing, Some(4769), "servicename") && !is_naming(auditing, Some(4697), "servicename"));
        assert!(is_naming("contoso", Some(1), "requester") && !is_naming("contoso", Some(4769), "servicename"));
        // What a definition has may belong to any event.
        assert!(is_naming(auditing, None, "servicename") && is_naming("", Some(4769), "servicename"));
    }

    #[test]
    fn every_line_of_the_table_has_a_reason() {
        for line in FIELDS.lines().filter(|line| !line.starts_with('#')) {
            let columns: Vec<&str> = line.split('\t').collect();
            assert!(
                columns.len() == 5 && columns.iter().all(|column| !column.is_empty()),
                "{line}"
            );
            let form = Form::of(columns[3]);
            assert!(form.is_some(), "{line}");
            // In a field of any provider, an address could be such a number.
            assert!(
                columns[0] != "*" || matches!(form, Some(Form::Truth | Form::Code | Form::Name)),
                "{line}"
            );
        }
    }

    #[test]
    fn the_lists_are_sorted_and_without_repetition() {
        for list in [WORDS, ROLES, NAMES, ACCOUNTS] {
            let lines: Vec<String> = list
                .lines()
                .filter(|line| !line.starts_with('#'))
                .map(str::to_lowercase)
                .collect();
            assert!(
                lines.is_sorted_by(|a, b| a < b),
                "{:?}",
                lines.windows(2).find(|pair| pair[0] >= pair[1])
            );
        }
        let words: Vec<&str> = WORDS.lines().collect();
        let persons = [
            "anna",
            "david",
            "john",
            "dell",
            "katz",
            "kit",
            "maria",
            "sam",
            "simon",
            "simontatham",
            "smith",
            "thomas",
            "urbanbishop",
        ];
        assert!(persons.iter().all(|person| !words.contains(person)));
        // Single letters would spell names.
        let letters: Vec<&str> = WORDS.lines().filter(|word| word.len() == 1).collect();
        assert_eq!(letters, ["c"]);
    }

    #[test]
    fn a_truth_value_stays_in_every_field() {
        let allowed = Allowed::new([]).expect("no entries");
        let bool = ValueType {
            scalar: Scalar::Bool,
            array: false,
        };
        let may_stay = |text| {
            allowed.may_stay(
                &Place::Field("isdomainjoined".to_owned()),
                &Event::default(),
                bool,
                text,
            )
        };
        assert!(may_stay("false") && !may_stay("3413012745"));
        let numbers = ValueType {
            scalar: Scalar::UInt8,
            array: true,
        };
        assert!(!allowed.may_stay(&Place::Field("status".to_owned()), &Event::default(), numbers, "203"));
    }

    #[test]
    fn words_of_windows_name_nobody() {
        let allowed = Allowed::new([]).expect("no entries");
        let event = Event::default();
        let left = |place: &Place, text: &str| {
            let parts = allowed
                .parts(place, &event, text)
                .filter(|(part, _, may_stay)| *may_stay && !matches!(part, Part::Between(_)));
            parts.map(|(_, text, _)| text.to_owned()).collect::<Vec<_>>().join(" ")
        };
        let field = |name: &str| Place::Field(name.to_owned());
        for (name, text, expected) in [
            ("targetusername", "backup", ""),
            ("targetusername", "SYSTEM", "SYSTEM"),
            ("samaccountname", "Sam.Katz", ""),
            ("user", r"NT AUTHORITY\LOCAL SERVICE", "NT AUTHORITY LOCAL SERVICE"),
            ("user", r"NT-AUTORITÄT\Lokaler Dienst", "NT AUTORITÄT Lokaler Dienst"),
            ("user", r"BUILTIN\АДМИНИСТРАТОРЫ", "BUILTIN АДМИНИСТРАТОРЫ"),
            ("user", "Gaston, Gast", ""),
            ("targetusername", "Administratör", "Administratör"),
            ("targetusername", "Invité", ""),
            (
                "serviceprincipalnames",
                "\r\n\t\tGC/dc.corp/host\r\n\t\tldap/host/gc",
                "GC ldap",
            ),
            ("f0", "host", ""),
            ("servicename", "host", ""),
            ("user", "host", ""),
            ("user", r"Exchange\Administrator", "Administrator"),
            ("user", "backup@Exchange.com", ""),
            ("f0", "kernel@Exchange.com", "com"),
            ("targetusername", "UMFD-0", "UMFD 0"),
            ("targetusername", r"UMFD-2\0\113\9", "UMFD"),
            ("computer", "APP-SERVER-4.cloud.com", "4"),
            ("workstationname", "exchange", ""),
            ("subjectdomainname", "WORKGROUP", "WORKGROUP"),
            ("targetdomainname", "Window Manager", "Window Manager"),
            (
                "f0",
                "backup exchange SRV-BACKUP server:445 server.sql.intern net user admin",
                "net user",
            ),
            (
                "f0",
                r"backup.exe -Server HKLM\Software\Backup C:\Windows\Print, C:\a\Print",
                "backup exe Server HKLM Software Backup C Windows Print C",
            ),
            (
                "f0",
                r"\\server\kernel$\config \\*\IPC$ \\.\root\SecurityCenter",
                "config IPC root",
            ),
            ("f0", "MSSQLSvc/kernel.corp.internal:1433 cifs/kernel", "MSSQLSvc cifs"),
            ("sharename", r"\\*\kernel", ""),
            ("sharename", r"\\*\ADMIN$", "ADMIN"),
            ("targetusername", "ADMIN$", ""),
            ("f0", r"C:\Users\backup\AppData", "C Users AppData"),
            ("f0", r"C:\Users\Simple Backup\AppData", "C Users AppData"),
            ("f0", r"C:\Users\Public\AppData", "C Users Public AppData"),
            ("f0", "c:/users/backup", "c users"),
            ("f0", r"C:\\Users\\exchange\\AppData", "C Users AppData"),
            ("f0", "https://mail.oracle.com/client", "https com"),
            ("f0", "kernel@exchange.de, kernel", "kernel"),
            (
                "f0",
                r"C:\Windows\Microsoft.NET\Framework64\csc.exe",
                "C Windows Microsoft NET Framework64 csc exe",
            ),
            ("f0", "new [System.Net.WebClient]", "new System Net WebClient"),
            ("f0", r"C:\Users\Administrator Backup\AppData", "C Users AppData"),
            ("f0", r"C:\Users\Public -kernel", "C Users Public kernel"),
            ("f0", r"User = EXCHANGE\backup, kernel", "User kernel"),
            (
                "f0",
                r"NT AUTHORITY\LOCAL SERVICE Exchange\Administrator",
                "NT AUTHORITY LOCAL SERVICE Administrator",
            ),
            (
                "f0",
                r"net use \\backup-server\c$ /user:exchange\backup",
                "net use c user",
            ),
            ("f0", "CN=Backup,CN=Users,DC=exchange", "Users"),
            ("f0", "BACKUP-SERVER$ exchange.bank", ""),
            (
                "f0",
                r"C:\Program Files\Internet Explorer\iexplore.exe",
                "C Program Files Internet Explorer iexplore exe",
            ),
            ("f0", "::ffff:127.0.0.1 ::ffff:203.0.113.9", "::ffff:127.0.0.1"),
            // A text of one word is a name, and so is a field that is called one.
            ("f0", "kernel", ""),
            ("f0", "kernel-audio.core", ""),
            ("f0", "/kernel", ""),
            ("f0", "/home/kernel/core", ""),
            ("f0", r"D:\kernel\core", ""),
            ("f0", "SYSTEM", "SYSTEM"),
            ("f0", "(NULL)", "NULL"),
            ("f0", "a kernel", "kernel"),
            ("taskname", "kernel core", ""),
            ("taskname", r"\Microsoft\Windows\Defrag", "Microsoft Windows Defrag"),
            ("f0", r"C:\Windows\System32\kernel32.dll", "C Windows System32 kernel32 dll"),
            ("f0", r"\Device\Mup\kernel\config", "Device"),
            ("f0", r"%SystemRoot%\cmd.exe", "SystemRoot cmd exe"),
            ("f0", "kernel.exe", "kernel exe"),
            ("f0", "termsrv/kernel", "termsrv"),
            ("f0", "MD5=kernel", "MD5"),
            // A switch, and a folder of Unix.
            ("f0", "wmic /server:a -backup /backup mount /server /server/a", "wmic server backup mount"),
        ] {
            assert_eq!(left(&field(name), text), expected, "{name}: {text}");
        }
    }
}
