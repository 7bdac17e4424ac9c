//! The tables of the folder `codes`.
//!
//! A table starts with lines that name its public source and the kind of its codes. Each other line has a code, its name
//! and, optionally, a sentence about it, separated by tabs.
//!
//! ```text
//! # source: MS-ERREF, 2.3.1
//! # codes: numbers
//! 0xc000006a  STATUS_WRONG_PASSWORD  The password is wrong.
//! ```
//!
//! - `# includes: name` adds the lines of another table.
//! - `# prefix: 0x8007` gives a number with this upper half the meaning of its lower half, unless it has its own line.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use crate::code::{Code, bare};
use crate::events::{Listed, SOURCE as SOURCE_OF_EVENTS, events, folded};

/// The most numbers of a SID after its authority (MS-DTYP, 2.4.2).
const SUB_AUTHORITIES: usize = 15;

/// The most bytes of a SID as text: an authority of 15 digits, and numbers of 10.
pub(crate) const LONGEST_SID: usize = "S-1-".len() + 15 + SUB_AUTHORITIES * "-4294967295".len();

/// The names and texts of the files, sorted by name.
const SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/codes.rs"));

/// What the codes of a table are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodeKind {
    /// Numbers of 32 bits.
    Numbers,
    /// SIDs. `*` matches the identifier of any domain, or any rest.
    Sids,
    Guids,
    /// Words in any case. Numbers among them are decimal.
    Words,
    /// Events, as PROVIDER/ID.
    Events,
}

/// A line of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) code: &'static str,
    pub(crate) name: &'static str,
    pub(crate) meaning: Option<&'static str>,
}

/// The names and meanings of codes of one kind.
#[derive(Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// The public source of its facts.
    pub source: &'static str,
    kind: CodeKind,
    /// The upper half of numbers that have the meaning of their lower half.
    prefix: Option<u32>,
    pub(crate) entries: Vec<Entry>,
    /// The indexes of entries by number, sorted.
    numbers: Vec<(u32, usize)>,
    /// The indexes of entries by other codes, in small letters.
    words: HashMap<String, usize>,
}

/// All tables, sorted by name.
pub fn tables() -> &'static [Table] {
    static TABLES: OnceLock<Vec<Table>> = OnceLock::new();
    TABLES.get_or_init(|| {
        let parsed = SOURCES.iter().filter_map(|(name, text)| Table::parse(name, text));
        let mut tables: Vec<_> = parsed.chain([Table::of_events()]).collect();
        tables.sort_unstable_by_key(|table| table.name);
        tables
    })
}

/// The table with this name.
pub(crate) fn table(name: &str) -> Option<&'static Table> {
    let position = tables().binary_search_by_key(&name, |table| table.name).ok()?;
    Some(&tables()[position])
}

/// What the names of the tables of access rights start with.
pub(crate) const RIGHTS: &str = "access_";

/// The table of access rights for a type of object as events name it. A GUID is a type of Active Directory.
pub(crate) fn table_of_rights(name: &str) -> Option<&'static Table> {
    let object_type = match name.strip_prefix(RIGHTS)? {
        guid if guid.contains('{') => "ds_object",
        name => name,
    };
    let fold = |byte: u8| if byte == b' ' { b'_' } else { byte.to_ascii_lowercase() };
    let is_of_type = |table: &&Table| {
        let known = table.name.strip_prefix(RIGHTS);
        known.is_some_and(|known| known.bytes().map(fold).eq(object_type.bytes().map(fold)))
    };
    tables().iter().find(is_of_type)
}

impl Table {
    /// Its codes, as the table spells them.
    pub fn codes(&self) -> impl Iterator<Item = &'static str> {
        self.entries.iter().map(|entry| entry.code)
    }

    /// `None` if the text has another form than the module's docs describe.
    fn parse(name: &'static str, text: &'static str) -> Option<Table> {
        let header = |key: &str| {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix("# "));
            lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
        };
        let kind = match header("codes")? {
            "numbers" => CodeKind::Numbers,
            "SIDs" => CodeKind::Sids,
            "GUIDs" => CodeKind::Guids,
            "words" => CodeKind::Words,
            _ => return None,
        };
        let mut table = Table {
            name,
            source: header("source")?,
            kind,
            prefix: match header("prefix") {
                None => None,
                Some(prefix) => Some(Code::Text(prefix).number()?),
            },
            entries: Vec::new(),
            numbers: Vec::new(),
            words: HashMap::new(),
        };
        let included = match header("includes") {
            None => "",
            Some(other) => SOURCES.iter().find(|(name, _)| *name == other)?.1,
        };
        let lines = text.lines().chain(included.lines());
        for (index, line) in lines.filter(|line| !line.starts_with('#')).enumerate() {
            let mut columns = line.split('\t');
            let (code, name, meaning) = (columns.next()?, columns.next()?, columns.next());
            match kind {
                CodeKind::Numbers => table.numbers.push((Code::Text(code).number()?, index)),
                _ => drop(table.words.insert(code.to_ascii_lowercase(), index)),
            }
            table.entries.push(Entry { code, name, meaning });
        }
        table.numbers.sort_unstable();
        Some(table)
    }

    /// The names of the list of events.
    fn of_events() -> Table {
        let entry = |listed: &Listed| Entry {
            code: listed.code,
            name: listed.name,
            meaning: None,
        };
        let entries: Vec<_> = events().all.iter().map(entry).collect();
        Table {
            name: "event_name",
            source: SOURCE_OF_EVENTS,
            kind: CodeKind::Events,
            prefix: None,
            numbers: Vec::new(),
            words: entries
                .iter()
                .enumerate()
                .map(|(index, entry)| (folded(entry.code), index))
                .collect(),
            entries,
        }
    }

    /// The entry for a code.
    pub(crate) fn find(&self, code: Code<'_>) -> Option<&Entry> {
        let index = match (self.kind, code) {
            (CodeKind::Numbers, _) => self.find_number(code.number()?),
            (_, Code::Number(number)) => return self.find(Code::Text(&number.to_string())),
            (CodeKind::Sids, Code::Text(text)) => self.find_sid(bare(text)),
            (CodeKind::Guids | CodeKind::Words, Code::Text(text)) => {
                self.words.get(&bare(text).to_ascii_lowercase()).copied()
            }
            (CodeKind::Events, Code::Text(text)) => self.words.get(&folded(text)).copied(),
        };
        index.map(|index| &self.entries[index])
    }

    fn find_number(&self, number: u32) -> Option<usize> {
        let position = |number| self.numbers.binary_search_by_key(&number, |(number, _)| *number).ok();
        let without_prefix = || position(number & 0xffff).filter(|_| self.prefix == Some(number >> 16));
        let found = position(number).or_else(without_prefix)?;
        Some(self.numbers[found].1)
    }

    /// Finds a SID itself, in any domain, or by its longest start in the table. A number is relative to a domain. A longer
    /// text than a SID can be has no name.
    fn find_sid(&self, sid: &str) -> Option<usize> {
        const DOMAIN: &str = "s-1-5-21-";
        if sid.len() > LONGEST_SID || sid.split('-').count() > 3 + SUB_AUTHORITIES {
            return None;
        }
        let in_domain = |relative: &str| self.words.get(&format!("{DOMAIN}*-{relative}")).copied();
        if sid.bytes().all(|byte| byte.is_ascii_digit()) {
            return in_domain(sid);
        }
        let sid = sid.to_ascii_lowercase();
        if let Some(&index) = self.words.get(&sid) {
            return Some(index);
        }
        let numbers = sid.strip_prefix("s-1-")?.split('-');
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !numbers.clone().all(is_number) {
            return None;
        }
        let (mut start, relative) = sid.rsplit_once('-')?;
        if start.starts_with(DOMAIN) {
            // The authority, 21, three numbers of the domain, and the relative one.
            return in_domain(relative).filter(|_| numbers.count() == 6);
        }
        loop {
            if let Some(index) = self.words.get(&format!("{start}-*")) {
                return Some(*index);
            }
            start = start.rsplit_once('-')?.0;
        }
    }

    /// The names of a number's bits, from the lowest, then the bits without a name as one hexadecimal number. In tables
    /// of texts, the names of the codes in a list; unknown codes stay as they are. `None` if nothing is known.
    pub(crate) fn find_all(&self, code: Code<'_>) -> Option<Vec<Cow<'static, str>>> {
        match (self.kind, code) {
            (CodeKind::Sids | CodeKind::Guids | CodeKind::Words | CodeKind::Events, Code::Text(list)) => {
                self.find_list(list)
            }
            _ => self.find_bits(code),
        }
    }

    fn find_list(&self, list: &str) -> Option<Vec<Cow<'static, str>>> {
        let words = list.split(|c: char| c.is_whitespace() || c == ',');
        let mut is_known = false;
        let name = |word: &str| match self.find(Code::Text(word)) {
            Some(entry) => {
                is_known = true;
                Cow::Borrowed(entry.name)
            }
            None => Cow::Owned(word.to_owned()),
        };
        let names = words.filter(|word| !word.is_empty()).map(name).collect();
        is_known.then_some(names)
    }

    fn find_bits(&self, code: Code<'_>) -> Option<Vec<Cow<'static, str>>> {
        // `%%1537` names one right. It is not a mask.
        if matches!(code, Code::Text(text) if text.trim_start().starts_with("%%")) {
            return None;
        }
        let mut rest = code.number()?;
        let mut names = Vec::new();
        for (bit, index) in &self.numbers {
            if *bit != 0 && rest & bit == *bit {
                rest &= !bit;
                names.push(Cow::Borrowed(self.entries[*index].name));
            }
        }
        if rest != 0 {
            if names.is_empty() {
                return None;
            }
            names.push(Cow::Owned(format!("{rest:#x}")));
        }
        Some(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> &'static Table {
        table(name).unwrap_or_else(|| panic!("no table {name}"))
    }

    #[test]
    fn every_file_is_a_table_with_a_source() {
        assert_eq!(tables().len(), SOURCES.len() + 1);
        assert!(tables().is_sorted_by_key(|table| table.name));
        for table in tables() {
            let name = table.name;
            assert!(table.source.len() > 5 && !table.entries.is_empty(), "{name}");
            let twice = table.numbers.windows(2).find(|pair| pair[0].0 == pair[1].0);
            assert_eq!(twice, None, "{name}");
            assert_eq!(table.numbers.len() + table.words.len(), table.entries.len(), "{name}");
        }
        for (name, text) in SOURCES {
            for line in text.lines().filter(|line| !line.starts_with('#')) {
                let columns: Vec<_> = line.split('\t').collect();
                assert!((2..=3).contains(&columns.len()), "{name}: {line}");
                let is_trimmed = |text: &&str| !text.is_empty() && text.trim() == *text;
                assert!(columns.iter().all(is_trimmed), "{name}: {line}");
                let is_sentence = columns.get(2).is_none_or(|meaning| meaning.ends_with('.'));
                assert!(is_sentence, "{name}: {line}");
            }
        }
    }

    #[test]
    fn every_code_is_of_the_kind_that_its_table_names() {
        for table in tables() {
            for Entry { code, .. } in &table.entries {
                let all = |is_known: &dyn Fn(u8) -> bool| code.bytes().all(is_known);
                let is_of_kind = match table.kind {
                    CodeKind::Guids => code.len() == 36 && all(&|byte| byte.is_ascii_hexdigit() || byte == b'-'),
                    CodeKind::Sids => {
                        code.starts_with("S-1-") && all(&|byte| byte.is_ascii_digit() || b"-*S".contains(&byte))
                    }
                    CodeKind::Numbers | CodeKind::Words | CodeKind::Events => true,
                };
                assert!(is_of_kind, "{}: {code}", table.name);
            }
        }
    }

    #[test]
    fn numbers_are_found_by_their_low_bits_and_without_the_prefix() {
        let name = |number| named("status").find(Code::Number(number)).map(|entry| entry.name);
        assert_eq!(name(0xc000_006a), name(-0x3fff_ff96));
        assert_eq!(name(0xc000_006a), Some("STATUS_WRONG_PASSWORD"));
        assert_eq!(
            [name(0x8007_0005), name(-0x7ff8_fffb)],
            [Some("ERROR_ACCESS_DENIED"); 2]
        );
        assert_eq!([name(0x8007_fffe), name(0x8008_0005)], [None; 2]);
        assert_eq!([name(0x1_c000_006a), name(i128::MAX), name(i128::MIN)], [None; 3]);
        let group = named("sid_name").find(Code::Number(512));
        assert_eq!(group.map(|entry| entry.name), Some("Domain Admins"));
    }

    #[test]
    fn codes_are_found_however_they_are_written() {
        let name = |table: &str, code: &str| named(table).find(Code::Text(code)).map(|entry| entry.name);
        let guid = "%{BF967ABA-0DE6-11D0-A285-00AA003049E2}";
        assert_eq!(name("audit_category", "%%8273"), Some("Logon/Logoff"));
        assert_eq!(name("guid_name", guid), Some("user"));
        assert_eq!(name("privilege", "sedebugprivilege"), Some("Debug programs"));
        for (sid, known) in [
            ("S-1-5-21-1-2-3-512", Some("Domain Admins")),
            ("%{S-1-5-18}", Some("Local System")),
            ("512", Some("Domain Admins")),
            ("S-1-5-90-0-2", Some("Window Manager")),
            ("S-1-5-21-0-0-0-497", Some("Claims Valid")),
            ("S-1-5-21-1-2-3-529", Some("External Trust Accounts")),
            ("S-1-11-96-3623454863-58364-18864-2661722203", Some("Microsoft account")),
            ("S-1-12-1-1-2-3-4", Some("Entra ID account")),
            ("S-1-12-2-1", None),
            ("S-1-5-21-1-2-3-1104", None),
            ("S-1-5-99", None),
            ("-", None),
            ("", None),
        ] {
            assert_eq!(name("sid_name", sid), known, "{sid}");
        }
    }

    #[test]
    fn a_text_longer_than_a_sid_has_no_name() {
        let name = |sid: &str| named("sid_name").find(Code::Text(sid)).map(|entry| entry.name);
        let longest = format!("S-1-5-80{}", "-4294967295".repeat(14));
        assert_eq!(name(&longest), Some("NT Service account"));
        let of_zeros = format!("S-1-5-80-{}1", "0".repeat(LONGEST_SID));
        for sid in [longest + "-0", format!("S-1-5-80{}", "-1".repeat(15)), of_zeros] {
            assert_eq!(name(&sid), None, "{sid}");
        }
    }

    #[test]
    fn rights_are_found_by_the_type_of_the_object() {
        let rights = |name: &str| table_of_rights(name).map(|table| table.name);
        assert_eq!(rights("access_SERVICE OBJECT"), Some("access_service_object"));
        assert_eq!(
            rights("access_%{bf967aba-0de6-11d0-a285-00aa003049e2}"),
            Some("access_ds_object")
        );
        assert_eq!(
            ["File", "access_", "access_*", "access_access_file", "access_status"].map(rights),
            [None; 5]
        );
    }

    #[test]
    fn a_mask_has_names_and_a_rest() {
        let names = |code: &str| {
            let names = named("access_file").find_all(Code::Text(code));
            names.map(|names| names.join(" "))
        };
        assert_eq!(
            names("0x10003").as_deref(),
            Some("FILE_READ_DATA FILE_WRITE_DATA DELETE")
        );
        assert_eq!(names("0x801").as_deref(), Some("FILE_READ_DATA 0x800"));
        assert_eq!(names("0").as_deref(), Some(""));
        assert_eq!(names("0x800"), None);
        assert_eq!(names("-"), None);
        let words = named("privilege").find_all(Code::Text("SeTcbPrivilege\r\n\t\t\tSeNewPrivilege"));
        assert_eq!(words.expect("one is known")[1], "SeNewPrivilege");
    }
}
