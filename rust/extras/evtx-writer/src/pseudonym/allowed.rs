//! What may stay: fields whose values cannot name anybody, names that every Windows has, and the user's entries.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use evtx_catalog::all_events;
use evtx_codes::{providers as listed_providers, tables};
use evtx_format::value::{Scalar, ValueType};

use super::form::{Form, is_clock, is_guid, is_time};
use super::key::NUMBERS;
use super::place::{Event, Place, SYSTEM, UNKNOWN};
use super::text::{Part, only_part, parts};
use super::words::{NAMES, Words, is_word, lines, words_of};

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

/// The most bytes of the user's entries. Each record carries them, for the check of the log.
pub(super) const MAX_ENTRIES: usize = 1 << 14;

/// What is shipped, in lower case.
struct Shipped {
    /// SIDs and GUIDs.
    codes: HashSet<String>,
    names: HashSet<String>,
    providers: HashSet<String>,
}

static SHIPPED: LazyLock<Shipped> = LazyLock::new(|| {
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
    // The list of events has providers without a manifest, such as EventLog, whose events tell renames and starts.
    providers.extend(listed_providers().map(str::to_owned));
    let codes = tables()
        .iter()
        .filter(|table| matches!(table.name, "sid_name" | "guid_name"));
    Shipped {
        codes: codes.flat_map(|table| table.codes()).map(str::to_lowercase).collect(),
        names,
        providers,
    }
});

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
#[derive(Debug, Default)]
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
        let mut all = Allowed::default();
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
            // The check of the log reads the entries line by line.
            if entry.contains(char::is_control) {
                return Err(wrong());
            }
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
            Place::System => Form::Bits.is_of(text) || is_guid(text) || is_time(text),
            Place::Long => Form::Number.is_of(text),
            Place::ProviderGuid => is_guid(text) && self.is_provider(&event.provider),
            Place::Provider => self.is_provider(text),
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
                is_word(&word) || self.words.contains(&word)
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

/// The type of texts outside of values.
pub(super) const TEXT: ValueType = ValueType {
    scalar: Scalar::String,
    array: false,
};

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(Allowed::new(["zz/1/a\n*/*/*"]).is_err());
        assert!(allowed.whole(&Place::Provider, &Event::default(), "EventLog"));
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
        let cases = r#"
targetusername: backup =>
targetusername: SYSTEM => SYSTEM
samaccountname: Sam.Katz =>
user: NT AUTHORITY\LOCAL SERVICE => NT AUTHORITY LOCAL SERVICE
user: NT-AUTORITÄT\Lokaler Dienst => NT AUTORITÄT Lokaler Dienst
user: BUILTIN\АДМИНИСТРАТОРЫ => BUILTIN АДМИНИСТРАТОРЫ
user: Gaston, Gast =>
targetusername: Administratör => Administratör
targetusername: Invité =>
f0: host =>
servicename: host =>
user: host =>
user: Exchange\Administrator => Administrator
user: backup@Exchange.com =>
f0: kernel@Exchange.com => com
targetusername: UMFD-0 => UMFD 0
targetusername: UMFD-2\0\113\9 => UMFD
computer: APP-SERVER-4.cloud.com => 4
workstationname: exchange =>
subjectdomainname: WORKGROUP => WORKGROUP
targetdomainname: Window Manager => Window Manager
f0: backup exchange SRV-BACKUP server:445 server.sql.intern net user admin => net user
f0: backup.exe -Server HKLM\Software\Backup C:\Windows\Print, C:\a\Print => backup exe Server HKLM Software Backup C Windows Print C
f0: \\server\kernel$\config \\*\IPC$ \\.\root\SecurityCenter => config IPC root
f0: MSSQLSvc/kernel.corp.internal:1433 cifs/kernel => MSSQLSvc cifs
sharename: \\*\kernel =>
sharename: \\*\ADMIN$ => ADMIN
targetusername: ADMIN$ =>
f0: C:\Users\backup\AppData => C Users AppData
f0: C:\Users\Simple Backup\AppData => C Users AppData
f0: C:\Users\Public\AppData => C Users Public AppData
f0: c:/users/backup => c users
f0: C:\\Users\\exchange\\AppData => C Users AppData
f0: https://mail.oracle.com/client => https com
f0: kernel@exchange.de, kernel => kernel
f0: C:\Windows\Microsoft.NET\Framework64\csc.exe => C Windows Microsoft NET Framework64 csc exe
f0: new [System.Net.WebClient] => new System Net WebClient
f0: C:\Users\Administrator Backup\AppData => C Users AppData
f0: C:\Users\Public -kernel => C Users Public kernel
f0: User = EXCHANGE\backup, kernel => User kernel
f0: NT AUTHORITY\LOCAL SERVICE Exchange\Administrator => NT AUTHORITY LOCAL SERVICE Administrator
f0: net use \\backup-server\c$ /user:exchange\backup => net use c user
f0: CN=Backup,CN=Users,DC=exchange => Users
f0: BACKUP-SERVER$ exchange.bank =>
f0: C:\Program Files\Internet Explorer\iexplore.exe => C Program Files Internet Explorer iexplore exe
f0: ::ffff:127.0.0.1 ::ffff:203.0.113.9 => ::ffff:127.0.0.1
# A text of one word is a name, and so is a field that is called one.
f0: kernel =>
f0: kernel-audio.core =>
f0: /kernel =>
f0: /home/kernel/core =>
f0: D:\kernel\core =>
f0: SYSTEM => SYSTEM
f0: (NULL) => NULL
f0: a kernel => kernel
taskname: kernel core =>
taskname: \Microsoft\Windows\Defrag => Microsoft Windows Defrag
f0: C:\Windows\System32\kernel32.dll => C Windows System32 kernel32 dll
f0: \Device\Mup\kernel\config => Device
f0: %SystemRoot%\cmd.exe => SystemRoot cmd exe
f0: kernel.exe => kernel exe
f0: termsrv/kernel => termsrv
f0: MD5=kernel => MD5
# A switch, and a folder of Unix.
f0: wmic /server:a -backup /backup mount /server /server/a => wmic server backup mount
"#;
        for line in cases.trim().lines().filter(|line| !line.starts_with('#')) {
            let (name, rest) = line.split_once(": ").expect("a field");
            let (text, expected) = rest.split_once(" =>").expect("an arrow");
            assert_eq!(left(&field(name), text), expected.trim_start(), "{line}");
        }
        let names = "\r\n\t\tGC/dc.corp/host\r\n\t\tldap/host/gc";
        assert_eq!(left(&field("serviceprincipalnames"), names), "GC ldap");
    }
}
