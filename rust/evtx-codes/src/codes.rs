//! What the codes in events mean: the tables of the folder `codes`.
//!
//! A table starts with lines that say where its facts are from and what its codes are. Each other line is a code, its
//! name, and what it means; the meaning may be missing. Tabs stand between them.
//!
//! ```text
//! # source: MS-ERREF, 2.3.1
//! # codes: numbers
//! 0xc000006a  STATUS_WRONG_PASSWORD  The password is wrong.
//! ```
//!
//! `# includes: name` adds the lines of another table. `# prefix: 0x8007` says that a number with this upper half, and no
//! line of its own, means what its lower half does.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::OnceLock;

/// The names and texts of the files, in the order of the names.
const SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/codes.rs"));

/// What the codes of a table are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Codes {
    /// Numbers of 32 bits. Text has them in decimal, hexadecimal, or as negative numbers.
    Numbers,
    /// SIDs. `*` stands for the identifier of a domain, or for all that follows.
    Sids,
    /// GUIDs.
    Guids,
    /// Words, whatever their case. Numbers among them are in decimal.
    Words,
}

/// What a table is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked<'a> {
    Number(i128),
    Text(&'a str),
}

/// A line of a table.
#[derive(Debug, Clone, Copy)]
pub struct Code {
    code: &'static str,
    pub name: &'static str,
    /// Empty for none.
    pub meaning: &'static str,
}

/// What a table says of some codes.
pub struct Table {
    name: &'static str,
    source: &'static str,
    codes: Codes,
    /// The upper half of numbers that stand for their lower half.
    prefix: Option<u32>,
    rows: Vec<Code>,
    /// The rows of codes that are numbers, in the order of the numbers.
    numbers: Vec<(u32, usize)>,
    /// The rows of other codes.
    words: HashMap<String, usize>,
}

/// Whether names are the same but for their case, and for `_` in place of a space.
fn are_alike(name: &str, other: &str) -> bool {
    let fold = |byte: u8| if byte == b' ' { b'_' } else { byte.to_ascii_lowercase() };
    name.len() == other.len() && name.bytes().zip(other.bytes()).all(|(a, b)| fold(a) == fold(b))
}

/// The table with this name.
pub fn table(name: &str) -> Option<&'static Table> {
    let tables = tables();
    let position = tables.binary_search_by_key(&name, |table| table.name).ok()?;
    Some(&tables[position])
}

/// The table of the access rights of a kind of object, from `access_` and the kind as an event names it. A GUID is that
/// of a class of Active Directory.
pub fn table_of_rights(name: &str) -> Option<&'static Table> {
    const RIGHTS: &str = "access_";
    let object_type = name.strip_prefix(RIGHTS)?;
    let object_type = if object_type.contains('{') {
        "ds_object"
    } else {
        object_type
    };
    let mut tables = tables().iter();
    tables.find(|table| {
        table
            .name
            .strip_prefix(RIGHTS)
            .is_some_and(|of| are_alike(of, object_type))
    })
}

/// All tables, in the order of their names.
fn tables() -> &'static [Table] {
    static TABLES: OnceLock<Vec<Table>> = OnceLock::new();
    TABLES.get_or_init(|| SOURCES.iter().filter_map(|(name, text)| parse(name, text)).collect())
}

/// `None` if the text is not as the module's docs have it.
fn parse(name: &'static str, text: &'static str) -> Option<Table> {
    let header = |what: &str| {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("# "));
        lines.find_map(|line| line.strip_prefix(what)?.strip_prefix(": "))
    };
    let codes = match header("codes")? {
        "numbers" => Codes::Numbers,
        "SIDs" => Codes::Sids,
        "GUIDs" => Codes::Guids,
        "words" => Codes::Words,
        _ => return None,
    };
    let mut table = Table {
        name,
        source: header("source")?,
        codes,
        prefix: match header("prefix") {
            None => None,
            Some(prefix) => Some(Asked::Text(prefix).number()?),
        },
        rows: Vec::new(),
        numbers: Vec::new(),
        words: HashMap::new(),
    };
    let included = match header("includes") {
        None => "",
        Some(other) => SOURCES.iter().find(|(name, _)| *name == other)?.1,
    };
    for line in text
        .lines()
        .chain(included.lines())
        .filter(|line| !line.starts_with('#'))
    {
        let mut columns = line.split('\t');
        let (code, name) = (columns.next()?, columns.next()?);
        let meaning = columns.next().unwrap_or_default();
        let row = table.rows.len();
        match codes {
            Codes::Numbers => table.numbers.push((Asked::Text(code).number()?, row)),
            _ => drop(table.words.insert(code.to_ascii_lowercase(), row)),
        }
        table.rows.push(Code { code, name, meaning });
    }
    table.numbers.sort_unstable();
    Some(table)
}

impl Table {
    /// The row of a code.
    pub fn find(&self, asked: Asked<'_>) -> Option<&Code> {
        let row = match (self.codes, asked) {
            (Codes::Numbers, _) => self.row_of(asked.number()?),
            (_, Asked::Number(number)) => return self.find(Asked::Text(&number.to_string())),
            (Codes::Sids, Asked::Text(text)) => self.row_of_sid(bare(text)),
            (Codes::Guids | Codes::Words, Asked::Text(text)) => self.row_of_word(bare(text)),
        };
        row.map(|row| &self.rows[row])
    }

    /// The row of a number, or of the one that it has behind the table's prefix.
    fn row_of(&self, number: u32) -> Option<usize> {
        let position = |number| self.numbers.binary_search_by_key(&number, |(number, _)| *number).ok();
        let behind = || position(number & 0xffff).filter(|_| self.prefix == Some(number >> 16));
        position(number)
            .or_else(behind)
            .map(|position| self.numbers[position].1)
    }

    fn row_of_word(&self, word: &str) -> Option<usize> {
        let has_capitals = word.bytes().any(|byte| byte.is_ascii_uppercase());
        let word = if has_capitals {
            Cow::Owned(word.to_ascii_lowercase())
        } else {
            Cow::Borrowed(word)
        };
        self.words.get(&*word).copied()
    }

    /// A SID as it stands, as that of any domain, or as one of a kind. A number is relative to a domain.
    fn row_of_sid(&self, sid: &str) -> Option<usize> {
        const DOMAIN: &str = "s-1-5-21-";
        if sid.bytes().all(|byte| byte.is_ascii_digit()) {
            return self.words.get(&format!("{DOMAIN}*-{sid}")).copied();
        }
        let sid = sid.to_ascii_lowercase();
        if let Some(row) = self.words.get(&sid) {
            return Some(*row);
        }
        let parts = sid.strip_prefix("s-1-")?.split('-');
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !parts.clone().all(is_number) {
            return None;
        }
        let (mut kind, relative) = sid.rsplit_once('-')?;
        if kind.starts_with(DOMAIN) {
            // The authority, the 21, three numbers of the domain, and the relative one.
            return self
                .words
                .get(&format!("{DOMAIN}*-{relative}"))
                .copied()
                .filter(|_| parts.count() == 6);
        }
        loop {
            if let Some(row) = self.words.get(&format!("{kind}-*")) {
                return Some(*row);
            }
            kind = kind.rsplit_once('-')?.0;
        }
    }

    /// The rows of the bits of a number, from the lowest, and the bits that have none. `None` if no bit has one.
    /// Words are a list in which white space stands between them.
    pub fn find_all(&self, asked: Asked<'_>) -> Option<Vec<Cow<'static, str>>> {
        if let (Codes::Sids | Codes::Guids | Codes::Words, Asked::Text(list)) = (self.codes, asked) {
            let words = list
                .split(|c: char| c.is_whitespace() || c == ',')
                .filter(|word| !word.is_empty());
            let found: Vec<_> = words.map(|word| (word, self.find(Asked::Text(word)))).collect();
            found.iter().find(|(_, row)| row.is_some())?;
            let name = |(word, row): (&str, Option<&Code>)| match row {
                Some(row) => Cow::Borrowed(row.name),
                None => Cow::Owned(word.to_owned()),
            };
            return Some(found.into_iter().map(name).collect());
        }
        // A parameter names one right, by a number that is no mask.
        if matches!(asked, Asked::Text(text) if text.trim_start().starts_with("%%")) {
            return None;
        }
        let mut rest = asked.number()?;
        let mut names = Vec::new();
        for (bit, row) in &self.numbers {
            if *bit != 0 && rest & bit == *bit {
                rest &= !bit;
                names.push(Cow::Borrowed(self.rows[*row].name));
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

/// The names of the tables.
pub fn names() -> impl Iterator<Item = &'static str> {
    tables().iter().map(|table| table.name)
}

/// The names and the sources of the tables.
pub fn sources() -> impl Iterator<Item = (&'static str, &'static str)> {
    tables().iter().map(|table| (table.name, table.source))
}

/// All lines of all tables: the table, the code, the name, the meaning and the source, with tabs between.
pub fn lines() -> Vec<Cow<'static, str>> {
    let row = |table: &Table, row: &Code| {
        let (name, source) = (table.name, table.source);
        format!("{name}\t{}\t{}\t{}\t{source}", row.code, row.name, row.meaning)
    };
    let of = |table: &'static Table| table.rows.iter().map(move |code| Cow::Owned(row(table, code)));
    tables().iter().flat_map(of).collect()
}

impl Asked<'_> {
    /// A number that different codes mostly differ in.
    pub fn mix(self) -> u64 {
        let part = |bytes: &[u8]| match bytes.try_into() {
            Ok(bytes) => u64::from_le_bytes(bytes),
            Err(_) => bytes.iter().fold(0, |mixed: u64, byte| mixed << 8 | u64::from(*byte)),
        };
        match self {
            Asked::Number(number) => (number ^ (number >> 64)) as u64,
            Asked::Text(text) => {
                let bytes = text.as_bytes();
                let len = bytes.len();
                let (start, end) = (&bytes[..len.min(8)], &bytes[len - len.min(8)..]);
                part(start).rotate_left(29) ^ part(end) ^ len as u64
            }
        }
    }

    /// The number of 32 bits that is meant. One of 64 bits may have the same sign.
    fn number(self) -> Option<u32> {
        let wide = match self {
            Asked::Number(number) => number,
            Asked::Text(text) => i128::from(number(text)?),
        };
        let low = u32::try_from(wide & i128::from(u32::MAX)).ok()?;
        match wide >> 32 {
            0 => Some(low),
            // Of a negative number, the upper bits are set.
            -1 | 0xffff_ffff if low.cast_signed() < 0 => Some(low),
            _ => None,
        }
    }
}

/// The number in a text: `0xc000006a`, `3221225578`, `-1073741718`, `%%2313`.
fn number(text: &str) -> Option<i64> {
    let text = text.trim().trim_start_matches("%%");
    match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => u64::from_str_radix(&text[2..], 16).ok().map(u64::cast_signed),
        [b'-', ..] => text.parse().ok(),
        _ => text.parse().ok().map(u64::cast_signed),
    }
}

/// What is in `{...}` or `%{...}`, or behind `%%`.
fn bare(code: &str) -> &str {
    let code = code.trim().trim_start_matches("%%");
    let inner = code.strip_prefix('%').unwrap_or(code).strip_prefix('{');
    inner.and_then(|inner| inner.strip_suffix('}')).unwrap_or(code)
}

/// Something in a text that stands for another text.
struct Token<'a> {
    /// What it stands for, or itself.
    shown: &'a str,
    len: usize,
}

/// Whether `%%nnnn` is a Win32 code or an HRESULT, as the service control manager writes them, rather than a parameter
/// of the Security log.
fn is_of_windows(digits: &str) -> bool {
    digits
        .parse()
        .is_ok_and(|number: u32| !(1536..0x8000_0000).contains(&number))
}

/// The most bytes of a SID in braces: 15 numbers of 10 digits behind an authority of 15.
const LONGEST_TOKEN: usize = 192;

/// The `%%nnnn`, `{GUID}`, `%{GUID}` or `%{SID}` that a text starts with. What is not known is shown as it is.
fn token<'a>(parameters: &Table, text: &'a str) -> Option<Token<'a>> {
    if let Some(digits) = text.strip_prefix("%%") {
        let len = digits.bytes().take_while(u8::is_ascii_digit).count();
        let token = &text[..2 + len];
        let of_windows = || {
            table("status")?
                .find(Asked::Text(&digits[..len]))
                .filter(|_| is_of_windows(&digits[..len]))
        };
        let found = parameters.find(Asked::Text(&digits[..len])).or_else(of_windows);
        let len = token.len();
        return (len > 2).then(|| Token {
            shown: found.map_or(token, |row| row.name),
            len,
        });
    }
    text.strip_prefix('%').unwrap_or(text).strip_prefix('{')?;
    let token = &text[..=text.bytes().take(LONGEST_TOKEN).position(|byte| byte == b'}')?];
    let is_sid = bare(token).starts_with("S-1-");
    let is_guid = bare(token).len() == 36;
    let found = is_guid.then(|| table("guid_name")?.find(Asked::Text(token))).flatten();
    let found = found.or_else(|| is_sid.then(|| table("sid_name")?.find(Asked::Text(token))).flatten());
    (is_sid || is_guid).then(|| Token {
        shown: found.map_or(token, |row| row.name),
        len: token.len(),
    })
}

/// A text in which each `%%nnnn` of the table, and each GUID and SID in braces, is replaced by its name. White space
/// between two of them becomes a comma, and goes where there is nothing else at the start and at the end.
pub fn replace<'a>(parameters: &Table, text: &'a str) -> Cow<'a, str> {
    if !text.contains(['%', '{']) {
        return Cow::Borrowed(text);
    }
    let (mut out, mut rest) = (String::with_capacity(text.len() * 2), text);
    // White space behind a token, or at the start, which is written when it is known what follows.
    let (mut space, mut is_behind_token) = ("", true);
    while let Some(first) = rest.chars().next() {
        if let Some(Token { shown, len }) = token(parameters, rest) {
            let between = if out.is_empty() {
                ""
            } else if is_behind_token && !space.is_empty() {
                ", "
            } else {
                space
            };
            write!(out, "{between}{shown}").expect("memory");
            (space, is_behind_token, rest) = ("", true, &rest[len..]);
            continue;
        }
        let len = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
        if len > 0 && is_behind_token {
            (space, rest) = rest.split_at(len);
            continue;
        }
        out.push_str(std::mem::take(&mut space));
        out.push(first);
        (is_behind_token, rest) = (false, &rest[first.len_utf8()..]);
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> &'static Table {
        table(name).unwrap_or_else(|| panic!("no table {name}"))
    }

    #[test]
    fn every_file_is_a_table_with_a_source() {
        assert_eq!(tables().len(), SOURCES.len());
        assert!(tables().is_sorted_by_key(|table| table.name));
        for ((name, text), table) in SOURCES.iter().zip(tables()) {
            assert!(table.source.len() > 5 && !table.rows.is_empty(), "{name}");
            for line in text.lines().filter(|line| !line.starts_with('#')) {
                let columns: Vec<_> = line.split('\t').collect();
                assert!((2..=3).contains(&columns.len()), "{name}: {line}");
                assert!(
                    columns.iter().all(|text| !text.is_empty() && text.trim() == *text),
                    "{name}: {line}"
                );
                assert!(
                    columns.get(2).is_none_or(|meaning| meaning.ends_with('.')),
                    "{name}: {line}"
                );
            }
        }
    }

    #[test]
    fn every_code_is_there_once() {
        for table in tables() {
            let twice = table.numbers.windows(2).find(|pair| pair[0].0 == pair[1].0);
            assert_eq!(twice.map(|pair| table.rows[pair[0].1].code), None, "{}", table.name);
            assert_eq!(
                table.numbers.len() + table.words.len(),
                table.rows.len(),
                "{}",
                table.name
            );
        }
    }

    #[test]
    fn every_code_of_guids_and_sids_is_one() {
        for table in tables() {
            for row in &table.rows {
                let of =
                    |digits: &dyn Fn(u8) -> bool| row.code.bytes().all(|byte| digits(byte) || b"-*S".contains(&byte));
                match table.codes {
                    Codes::Guids => assert!(
                        row.code.len() == 36 && of(&|byte| byte.is_ascii_hexdigit()),
                        "{}",
                        row.code
                    ),
                    Codes::Sids => assert!(
                        row.code.starts_with("S-1-") && of(&|byte| byte.is_ascii_digit()),
                        "{}",
                        row.code
                    ),
                    Codes::Numbers | Codes::Words => {}
                }
            }
        }
    }

    #[test]
    fn numbers_are_read_however_they_are_written() {
        for text in [
            "3221225578",
            "0xc000006a",
            "0XC000006A",
            "-1073741718",
            "0xffffffffc000006a",
            "18446744072635809898",
        ] {
            assert_eq!(Asked::Text(text).number(), Some(0xc000_006a), "{text}");
        }
        for text in [
            "",
            "0x",
            "-",
            "c000006a",
            "4294967296",
            "-2147483649",
            "1.0",
            "0xfffffffff",
            "99999999999999999999",
        ] {
            assert_eq!(Asked::Text(text).number(), None, "{text}");
        }
        let name = |number| named("status").find(Asked::Number(number)).map(|row| row.name);
        assert_eq!(name(0xc000_006a), name(-0x3fff_ff96));
        assert_eq!(name(0xc000_006a), Some("STATUS_WRONG_PASSWORD"));
        assert_eq!(
            [name(0x8007_0005), name(-0x7ff8_fffb)],
            [Some("ERROR_ACCESS_DENIED"); 2]
        );
        assert_eq!([name(0x8007_fffe), name(0x8008_0005)], [None; 2]);
        assert_eq!([name(0x1_c000_006a), name(i128::MAX), name(i128::MIN)], [None; 3]);
        assert_eq!(
            named("sid_name").find(Asked::Number(512)).map(|row| row.name),
            Some("Domain Admins")
        );
    }

    #[test]
    fn codes_are_found_however_they_are_written() {
        let name = |table: &str, code: &str| named(table).find(Asked::Text(code)).map(|row| row.name);
        assert_eq!(name("audit_category", "%%8273"), Some("Logon/Logoff"));
        assert_eq!(
            name("guid_name", "%{BF967ABA-0DE6-11D0-A285-00AA003049E2}"),
            Some("user")
        );
        assert_eq!(name("privilege", "sedebugprivilege"), Some("Debug programs"));
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
        for (sid, is) in [
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
            assert_eq!(name("sid_name", sid), is, "{sid}");
        }
    }

    #[test]
    fn a_mask_has_names_and_a_rest() {
        let names = |code: &str| {
            named("access_file")
                .find_all(Asked::Text(code))
                .map(|names| names.join(" "))
        };
        assert_eq!(
            names("0x10003").as_deref(),
            Some("FILE_READ_DATA FILE_WRITE_DATA DELETE")
        );
        assert_eq!(names("0x801").as_deref(), Some("FILE_READ_DATA 0x800"));
        assert_eq!(names("0").as_deref(), Some(""));
        assert_eq!(names("0x800"), None);
        assert_eq!(names("-"), None);
        let words = named("privilege").find_all(Asked::Text("SeTcbPrivilege\r\n\t\t\tSeNewPrivilege"));
        assert_eq!(words.expect("one")[1], "SeNewPrivilege");
    }

    #[test]
    fn what_no_brace_ends_is_text() {
        for open in ["%{S-1-5-21-", "{1131f6aa-", "%%", "{", "%"] {
            let text = open.repeat(100_000);
            assert_eq!(replace(named("parameters"), &text), text);
        }
        // The longest SID.
        let sid = format!("%{{S-1-5{}}}", "-4294967295".repeat(15));
        assert!(sid.len() <= LONGEST_TOKEN);
        let text = format!("{sid} %%2313");
        assert_eq!(
            replace(named("parameters"), &text),
            format!("{sid}, Unknown user name or wrong password")
        );
    }

    #[test]
    fn parameters_are_replaced_where_they_stand() {
        let shown = |text| replace(named("parameters"), text).into_owned();
        for (text, is) in [
            (
                "%%1541\r\n\t\t\t\t%%4416\r\n\t\t\t\t",
                "SYNCHRONIZE, ReadData (or ListDirectory)",
            ),
            (
                "\r\n\t\t%%2080\r\n\t\t%%2082",
                "Account Disabled, Password Not Required - Enabled",
            ),
            ("%%1541\r\n%%99999", "SYNCHRONIZE, %%99999"),
            (
                "%%1539\r\n\t{bf967aba-0de6-11d0-a285-00aa003049e2}\r\n",
                "WRITE_DAC, user",
            ),
            (
                "---\r\n\t{00000000-0000-0000-0000-000000000000}",
                "---\r\n\t{00000000-0000-0000-0000-000000000000}",
            ),
            (
                "It failed:\t%%2313 Then\nmore.  ",
                "It failed:\tUnknown user name or wrong password Then\nmore.  ",
            ),
            ("%%1058", "ERROR_SERVICE_DISABLED"),
            (
                "%%577 %%2147942414 %%2147549471",
                "ERROR_INVALID_IMAGE_HASH, ERROR_OUTOFMEMORY, RPC_E_TIMEOUT",
            ),
            ("100%% of {it} %{S-1-5-18} %", "100%% of {it} Local System %"),
            ("%%99999999999999999999 \u{e9}{", "%%99999999999999999999 \u{e9}{"),
            ("-", "-"),
            (" \t ", " \t "),
            ("", ""),
        ] {
            assert_eq!(shown(text), is, "{text:?}");
        }
    }
}
