//! Codes within a text, as in `%%1541 %{S-1-5-18}`.

use crate::code::{Code, bare};
use crate::table::{LONGEST_SID, Table, table};

/// The most bytes of a SID in braces.
const LONGEST_TOKEN: usize = LONGEST_SID + "%{}".len();

/// Whether `%%nnnn` is a Win32 code or an HRESULT, as the service control manager writes them, and not a parameter.
fn is_status(digits: &str) -> bool {
    let number = digits.parse();
    number.is_ok_and(|number: u32| !(1536..0x8000_0000).contains(&number))
}

/// The name of the `%%nnnn`, `{GUID}`, `%{GUID}` or `%{SID}` that a text starts with, or the code, and its length.
fn token<'a>(parameters: &Table, text: &'a str) -> Option<(&'a str, usize)> {
    let find = |name: &str, code| table(name)?.find(Code::Text(code));
    let (token, found) = if let Some(rest) = text.strip_prefix("%%") {
        let digits = &rest[..rest.bytes().take_while(u8::is_ascii_digit).count()];
        if digits.is_empty() {
            return None;
        }
        let status = || find("status", digits).filter(|_| is_status(digits));
        let found = parameters.find(Code::Text(digits)).or_else(status);
        (&text[..2 + digits.len()], found)
    } else {
        text.strip_prefix('%').unwrap_or(text).strip_prefix('{')?;
        let token = &text[..=text.bytes().take(LONGEST_TOKEN).position(|byte| byte == b'}')?];
        let of = match bare(token) {
            sid if sid.starts_with("S-1-") => "sid_name",
            guid if guid.len() == 36 => "guid_name",
            _ => return None,
        };
        (token, find(of, token))
    };
    Some((found.map_or(token, |entry| entry.name), token.len()))
}

/// Replaces each `%%nnnn` of the table, and each GUID and SID in braces, by its name. White space between two codes
/// becomes a comma. White space is dropped before a code at the start and after a code at the end.
pub(crate) fn replace(parameters: &Table, text: &str) -> String {
    if !text.contains(['%', '{']) {
        return text.to_owned();
    }
    let (mut out, mut rest) = (String::with_capacity(text.len() * 2), text);
    // White space at the start or after a code: what follows decides how it is written.
    let (mut space, mut is_after_token) = ("", true);
    while let Some(first) = rest.chars().next() {
        if let Some((shown, len)) = token(parameters, rest) {
            if !out.is_empty() {
                out.push_str(if is_after_token && !space.is_empty() {
                    ", "
                } else {
                    space
                });
            }
            out.push_str(shown);
            (space, is_after_token, rest) = ("", true, &rest[len..]);
            continue;
        }
        let len = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
        if len > 0 && is_after_token {
            (space, rest) = rest.split_at(len);
            continue;
        }
        out.push_str(std::mem::take(&mut space));
        out.push(first);
        (is_after_token, rest) = (false, &rest[first.len_utf8()..]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        replace(table("parameters").expect("the table"), text)
    }

    #[test]
    fn a_code_without_an_end_is_text() {
        for open in ["%{S-1-5-21-", "{1131f6aa-", "%%", "{", "%"] {
            let text = open.repeat(100_000);
            assert_eq!(shown(&text), text);
        }
        // The longest SID.
        let sid = format!("%{{S-1-5{}}}", "-4294967295".repeat(15));
        assert!(sid.len() <= LONGEST_TOKEN);
        assert_eq!(
            shown(&format!("{sid} %%2313")),
            format!("{sid}, Unknown user name or bad password")
        );
    }

    #[test]
    fn codes_are_replaced_in_place() {
        for (text, expected) in [
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
                "It failed:\tUnknown user name or bad password Then\nmore.  ",
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
            assert_eq!(shown(text), expected, "{text:?}");
        }
    }
}
