//! What may stay: fields whose values cannot name anybody, and words and names that every Windows has.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use evtx_catalog::all_events;
use evtx_codes::tables;
use jiff::civil::DateTime;

use super::key::NUMBERS;
use super::text::{Part, only_part, parts};

/// Fields: provider, event, name, form and reason.
const FIELDS: &str = include_str!("../../data/allowed.tsv");
/// Words of Windows, one a line.
const WORDS: &str = include_str!("../../data/words.txt");
/// Names of providers, channels and elements that no manifest of the catalog declares, one a line.
const NAMES: &str = include_str!("../../data/names.txt");

/// The most bytes of the user's entries. Each record carries them, for the check of the log.
pub(super) const MAX_ENTRIES: usize = 1 << 14;

/// What replaces a FILETIME or SYSTEMTIME that is none: that of 0.
pub(super) const NO_TIME: &str = "1601-01-01T00:00:00.0000000Z";

/// Elements and attributes of `System` that hold numbers, GUIDs and times.
const SYSTEM: &str = "EventID Qualifiers Version Level Task Opcode Keywords SystemTime RawTime EventRecordID ActivityID \
                      RelatedActivityID ProcessID ThreadID ProcessorID SessionID KernelTime UserTime ProcessorTime Guid";

/// What is shipped.
struct Shipped {
    /// In lower case, as all texts here.
    words: HashSet<String>,
    /// SIDs and GUIDs.
    codes: HashSet<String>,
    names: HashSet<String>,
    providers: HashSet<String>,
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
        if !providers.contains(&*event.provider.to_lowercase()) {
            _ = providers.insert(event.provider.to_lowercase());
        }
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
        words: lines(WORDS).collect(),
        codes: codes.flat_map(|table| table.codes()).map(str::to_lowercase).collect(),
        names,
        providers,
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
    /// A number, GUID or time of `System`.
    System,
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
                name if in_system && SYSTEM.split(' ').any(|known| known == name) => Place::System,
                name => Place::Field(name.to_lowercase()),
            },
        }
    }
}

/// What the values of a field that stays look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Numbers, codes such as `%%1833`, and `-`.
    Numbers,
    Any,
}

#[derive(Debug)]
struct Field {
    /// In lower case; empty for any.
    provider: String,
    event: Option<u64>,
    form: Form,
}

/// What may stay.
#[derive(Debug)]
pub(super) struct Allowed {
    /// By name.
    fields: HashMap<String, Vec<Field>>,
    /// Words and names of providers that the user has added.
    words: HashSet<String>,
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
            entries: String::new(),
        };
        for line in FIELDS.lines().filter(|line| !line.starts_with('#')) {
            if let [provider, event, name, form, _] = line.split('\t').collect::<Vec<_>>()[..] {
                let form = if form == "any" { Form::Any } else { Form::Numbers };
                all.add(provider, event, name, form).map_err(|()| line.to_owned())?;
            }
        }
        for entry in entries {
            let wrong = || format!("'{entry}' is neither provider/event/field nor a word");
            let mut from_end = entry.rsplitn(3, '/');
            match [from_end.next(), from_end.next(), from_end.next()] {
                [Some(name), Some(event), Some(provider)] if !name.is_empty() && !provider.is_empty() => {
                    all.add(provider, event, name, Form::Any).map_err(|()| wrong())?;
                    all.words.extend([provider.to_lowercase(), name.to_lowercase()]);
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

    fn add(&mut self, provider: &str, event: &str, name: &str, form: Form) -> Result<(), ()> {
        let event = if event == "*" {
            None
        } else {
            Some(event.parse().map_err(drop)?)
        };
        let provider = if provider == "*" {
            String::new()
        } else {
            provider.to_lowercase()
        };
        self.fields
            .entry(name.to_lowercase())
            .or_default()
            .push(Field { provider, event, form });
        Ok(())
    }

    /// Whether a value may stay as it is in its place, by the text that Windows shows for it.
    pub(super) fn whole(&self, place: &Place, event: &Event, text: &str) -> bool {
        if text.is_empty() || is_time(text) {
            return true;
        }
        match place {
            Place::System | Place::EventId => is_numbers(text) || is_guid(text),
            Place::Provider | Place::Source => self.is_provider(text),
            Place::Channel => {
                self.is_provider(text)
                    || text.split_once('/').is_some_and(|(provider, kind)| {
                        self.is_provider(provider) && parts(kind).all(|(part, _)| self.part(part))
                    })
            }
            Place::Name => self.is_name(text),
            Place::Field(name) => self.fields.get(name).into_iter().flatten().any(|field| {
                let is_event = field.event.is_none_or(|id| event.id == Some(id));
                let is_provider = field.provider.is_empty() || field.provider.eq_ignore_ascii_case(&event.provider);
                is_event && is_provider && (field.form == Form::Any || is_numbers(text))
            }),
            Place::Rendering | Place::Unknown => false,
        }
    }

    /// Whether a part of a text may stay anywhere.
    pub(super) fn part(&self, part: Part<'_>) -> bool {
        let is_code = |text: &str| SHIPPED.codes.contains(text) || self.words.contains(text);
        match part {
            Part::Between(_) => true,
            Part::Number(number) | Part::Hex(number) => {
                NUMBERS.contains(&number) || self.words.contains(&number.to_string())
            }
            Part::Sid(text) | Part::Guid(text) => {
                is_code(&text.to_lowercase()) || text.bytes().all(|byte| matches!(byte, b'0' | b'-'))
            }
            Part::Ipv4(address) => address.is_loopback() || address.is_unspecified() || is_code(&address.to_string()),
            Part::Ipv6(address) => address.is_loopback() || address.is_unspecified() || is_code(&address.to_string()),
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
        SHIPPED.providers.contains(&name) || self.words.contains(&name)
    }
}

/// Whether a text is a GUID in braces.
fn is_guid(text: &str) -> bool {
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    matches!(inner.and_then(only_part), Some(Part::Guid(_)))
}

/// Whether a text is a number, a truth value, codes in which Windows lists rights and the like, or stands for nothing.
fn is_numbers(text: &str) -> bool {
    let text = text.trim();
    let is_number = |text: &str| {
        let digits = text.trim_start_matches("%%");
        let digits = digits.strip_prefix('-').unwrap_or(digits);
        matches!(only_part(digits), Some(Part::Number(_) | Part::Hex(_)))
    };
    let is_code = |text: &str| {
        text.strip_prefix("%%")
            .is_some_and(|digits| digits.len() < 6 && is_number(digits))
    };
    matches!(text, "-" | "true" | "false") || is_number(text) || text.split_whitespace().all(is_code)
}

/// Whether a text is a time since 1990, as Windows and Sysmon write them, or the time that FILETIME 0 is.
fn is_time(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b':' | b'.' | b'T' | b' ' | b'Z');
    let time = text.strip_suffix('Z').unwrap_or(text).parse::<DateTime>();
    text.len() > 18 && text.bytes().all(is_plain) && time.is_ok_and(|time| (1990..2100).contains(&time.year()))
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
            "1601-01-01T00:00:00.0000000Z",
        ] {
            assert!(is_time(text), "{text}");
        }
        for text in [
            "2024-03-05",
            "1601-03-05T10:00:00.1234567Z",
            "2024-03-05T10:00:00.anna",
            "2024-13-05 10:00:00",
        ] {
            assert!(!is_time(text), "{text}");
        }
        for text in ["1234", "0x3e7", "-1", "%%1833", "%%4416\n\t\t\t\t%%4417 ", "-", "true"] {
            assert!(is_numbers(text), "{text}");
        }
        for text in ["203.0.113.9", "anna", "1 2", "007", "%%4416 anna", "+1"] {
            assert!(!is_numbers(text), "{text}");
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
        assert!(allowed.part(Part::Word("Contoso")) && !allowed.part(Part::Word("fabrikam")));
        assert!(allowed.whole(&Place::Provider, &Event::default(), "My-Provider"));
        assert!(allowed.is_name("Company") && !allowed.is_name("Anna"));
        for wrong in ["", "a b", "x/y", "p/e/f", "/1/f"] {
            assert!(Allowed::new([wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_line_of_the_table_has_a_reason() {
        for line in FIELDS.lines().filter(|line| !line.starts_with('#')) {
            let columns: Vec<&str> = line.split('\t').collect();
            assert!(
                columns.len() == 5 && columns.iter().all(|column| !column.is_empty()),
                "{line}"
            );
            assert!(matches!(columns[3], "numbers" | "any"), "{line}");
        }
    }

    #[test]
    fn the_lists_are_sorted_and_without_repetition() {
        for list in [WORDS, NAMES] {
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
        // Single letters would spell names.
        let letters: Vec<&str> = WORDS.lines().filter(|word| word.len() == 1).collect();
        assert_eq!(letters, ["c"]);
    }
}
