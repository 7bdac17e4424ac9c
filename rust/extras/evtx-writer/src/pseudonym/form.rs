//! What the values of a field that stays look like.

use std::sync::LazyLock;

use evtx_codes::{Answer, Code, Lookup, Source};
use jiff::civil::DateTime;

use super::key::NUMBERS;
use super::text::{Part, only_part};

/// The time that replaces an invalid FILETIME or SYSTEMTIME: the one with the value 0.
pub(super) const NO_TIME: &str = "1601-01-01T00:00:00.0000000Z";

/// The table of status codes.
static STATUS: LazyLock<Option<Source>> = LazyLock::new(|| Lookup::Name.source("status").ok());

/// What the values of a field that stays look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
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

/// Whether a text is a GUID in braces.
pub(super) fn is_guid(text: &str) -> bool {
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    matches!(inner.and_then(only_part), Some(Part::Guid(_)))
}

impl Form {
    /// The form with a name in the table.
    pub(super) fn of(name: &'static str) -> Option<Self> {
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
    pub(super) fn is_of(self, text: &str) -> bool {
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
        let is_status = || is_number(32) && STATUS.map(name).is_some_and(|name| name != Answer::Null);
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

/// Whether a text is a time that a clock shows: not of midnight, as dates of birth have it.
pub(super) fn is_clock(text: &str) -> bool {
    is_time(text) && (text == NO_TIME || !text[10..].bytes().all(|byte| !byte.is_ascii_digit() || byte == b'0'))
}

/// Whether a text is a time since 1990, as Windows and Sysmon write them, or the time that FILETIME 0 is.
pub(super) fn is_time(text: &str) -> bool {
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
            (Form::Truth, "0|1|True|%%1843|-", "2|203|yes|%%1833|0 1"),
            (Form::Port, "0|443|65535|-", "65536|3413012745|true|%%1833|-65536"),
            (
                Form::Code,
                "1234|0x3e7|-1|%%1833|%%4416\n\t\t%%4417 |-|0xffffffffc0000022|0x80070005|4294967295",
                "3405803785|0xcb007109|-1062731775|65536|4915112345678|203.0.113.9|anna|1 2|007|\
                 %%4416 anna|+1|203,0,113,9|true",
            ),
            (Form::Bits, "0x1fffff|-1|%%1833", "4915112345678|203.0.113.9|anna"),
            (Form::Number, "4915112345678|-1", "203.0.113.9|1 2|1,2|"),
            (
                Form::Version,
                "10.0.19041.1|15.15",
                "10.0-anna|v1|203.0.113.9|491511234567|1.2.3.4.5|1..2",
            ),
            (
                Form::Threat,
                "HackTool:Win64/Mikatz!dha|HackTool:Win32/Mimikatz.D",
                "anna|a:b|a:b/c d",
            ),
            (Form::OneOf("auto start|disabled"), "Auto Start|disabled", "auto|anna|"),
            (Form::Guid, "{54849625-5478-4994-a5ba-3e3b0328c30d}", "{anna}|1"),
        ] {
            assert!(yes.split('|').all(|text| form.is_of(text)), "{form:?}");
            assert_eq!(no.split('|').find(|text| form.is_of(text)), None, "{form:?}");
        }
        assert!(!Form::Name.is_of("anna") && !Form::Name.is_of("backup"));
    }
}
