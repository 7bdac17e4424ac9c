//! The fields of an event as one line, with the names of codes.

use crate::base64;
use crate::code::Code;
use crate::table::{RIGHTS, Table, table, table_of_rights};
use crate::text::replace;

const SECURITY: &str = "Microsoft-Windows-Security-Auditing";

/// Fields of other providers that contain a status, without spaces and in small letters.
const STATUSES: [&str; 9] = [
    "error",
    "errorcode",
    "hr",
    "hresult",
    "hrerror",
    "result",
    "resultcode",
    "status",
    "statuscode",
];

/// The longest value that is read for codes, in bytes. A record of a log has no longer one.
const LONGEST: usize = 1 << 16;

/// An event, to write its details.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// Its provider.
    pub provider: &'a str,
    /// Its ID.
    pub event_id: u32,
    /// The name for a field `#text`, which is the text of the element that contains the fields; empty without one.
    pub root: &'a str,
    /// The keys and values.
    pub fields: &'a [(&'a str, &'a str)],
    /// Values that the reader sees elsewhere.
    pub shown: &'a [&'a str],
}

/// Whether a text is only `%%nnnn`.
fn is_parameter(text: &str) -> bool {
    let digits = text.trim_ascii().strip_prefix("%%").unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The text in hexadecimal bytes, if it has three visible letters of ASCII in a row.
fn text_of_hex(hex: &str) -> Option<String> {
    let (pairs, []) = hex.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let digit = |digit: u8| value(digit).filter(|_| !digit.is_ascii_lowercase());
    if pairs.len() < 6 {
        return None;
    }
    let byte = |[high, low]: &[u8; 2]| Some(digit(*high)? << 4 | digit(*low)?);
    let bytes: Vec<u8> = pairs.iter().map(byte).collect::<Option<_>>()?;
    let is_visible = |three: &[u8]| three.iter().all(u8::is_ascii_graphic);
    base64::text(&bytes).filter(|text| text.as_bytes().windows(3).any(is_visible))
}

/// The name of a code in a table.
fn name(of: &str, code: &str) -> Option<String> {
    Some(table(of)?.find(Code::Text(code))?.name.to_owned())
}

impl Event<'_> {
    fn value(&self, key: &str) -> Option<&str> {
        Some(self.fields.iter().find(|(known, _)| *known == key)?.1)
    }

    /// A value as the name of the code that it is, if the provider writes codes in this form.
    fn replaced(&self, value: &str) -> Option<String> {
        let parameters = match self.provider {
            SECURITY => {
                let start = value.trim_ascii_start();
                let has_codes = start.starts_with(['%', '{']) || start.starts_with("---");
                return has_codes.then(|| table("parameters").map(|table| replace(table, value)))?;
            }
            // These have numbers of their own in the same form, or Win32 errors.
            "Microsoft-Windows-Windows Defender" => "defender_parameter",
            "Microsoft-Windows-GroupPolicy" => "group_policy_parameter",
            "Service Control Manager" | "NETLOGON" => "status",
            _ => return None,
        };
        is_parameter(value).then(|| name(parameters, value).unwrap_or_else(|| value.to_owned()))
    }

    /// The names of the code in a field, whose rights may be those of a type of object. A value that somebody chose, such
    /// as the name of a file, has none.
    fn names(&self, key: &str, value: &str, object_type: Option<&str>) -> Option<String> {
        if ["Binary", "Payload"].contains(&key)
            && let Some(text) = text_of_hex(value)
        {
            return Some(text);
        }
        if self.provider != SECURITY {
            // Small numbers can be codes of the provider's own.
            let key = || {
                key.bytes()
                    .filter(|byte| *byte != b' ')
                    .map(|byte| byte.to_ascii_lowercase())
            };
            let is_status = value.chars().nth(9).is_some() && STATUSES.iter().any(|status| key().eq(status.bytes()));
            return is_status.then(|| name("status", value))?;
        }
        let bits = |table: Option<&Table>| Some(table?.find_all(Code::Text(value))?.join(", "));
        match key {
            "Status" | "SubStatus" | "ReturnCode" | "ErrorCode" => match self.event_id {
                4768..=4773 | 4820..=4821 => name("kerberos_failure", value),
                _ => name("status", value),
            },
            "LogonType" => name("logon_type", value),
            "AccessMask" => {
                let rights = format!("{RIGHTS}{}", object_type?);
                bits(table(&rights).or_else(|| table_of_rights(&rights)))
            }
            "TicketOptions" => bits(table("ticket_options")),
            "TicketEncryptionType" => name("encryption_type", value),
            "PreAuthType" => name("preauth_type", value),
            "OldUacValue" | "NewUacValue" => bits(table("account_control")),
            "ServiceType" => name("service_type", value),
            "ServiceStartType" => name("start_type", value),
            "Protocol" => name("protocol", value),
            "SubcategoryGuid" => name("audit_category", value),
            _ => None,
        }
    }

    /// The fields as one line, with the names of codes. It starts with the command line and ends with the IDs and the
    /// account that caused the event. Returns `None` if no field is left to show.
    pub fn details(&self) -> Option<String> {
        let mut line = String::with_capacity(self.fields.iter().map(|(key, value)| key.len() + value.len() + 8).sum());
        let mut push = |key: &str, value: &str, names: Option<String>| {
            let separator = if line.is_empty() { "" } else { " ¦ " };
            for text in [separator, key, ": ", value] {
                line.push_str(text);
            }
            if let Some(names) = names {
                for text in [" (", &names, ")"] {
                    line.push_str(text);
                }
            }
        };
        const COMMAND: &str = "CommandLine";
        if let Some(command) = self.value(COMMAND).filter(|command| !command.is_empty()) {
            push(COMMAND, command, None);
        }
        let object_type = self.value("ObjectType");
        for last in [false, true] {
            for (key, value) in self.fields {
                let is_last = ["Id", "id", "ID"].iter().any(|end| key.ends_with(end))
                    || key.starts_with("Subject")
                    || *key == "UtcTime";
                if is_last != last || [COMMAND, "#attributes"].contains(key) || self.shown.contains(value) {
                    continue;
                }
                let shown = match *key {
                    "#text" if self.root.is_empty() => continue,
                    "#text" => self.root,
                    key => key,
                };
                if value.len() > LONGEST {
                    push(shown, value, None);
                    continue;
                }
                match self.replaced(value) {
                    Some(replaced) => push(shown, &replaced, None),
                    None => push(shown, value, self.names(key, value, object_type)),
                }
            }
        }
        // Without an exit, the loop is compiled to vector instructions.
        if line
            .bytes()
            .fold(false, |found, byte| found | matches!(byte, b'\t' | b'\n' | b'\r'))
        {
            line = on_one_line(&line);
        }
        (!line.is_empty()).then_some(line)
    }
}

/// A text with a space for each run of white space.
fn on_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for letter in text.chars() {
        if !letter.is_ascii_whitespace() {
            line.push(letter);
        } else if !line.ends_with(' ') {
            line.push(' ');
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn details(provider: &str, event_id: u32, fields: &[(&str, &str)]) -> Option<String> {
        let (root, shown) = ("Root", &["", "-"]);
        let event = Event {
            provider,
            event_id,
            root,
            fields,
            shown,
        };
        event.details()
    }

    #[test]
    fn the_command_line_comes_first_and_ids_last() {
        let fields = [
            ("SubjectUserName", "a"),
            ("ProcessId", "1"),
            ("#attributes", "x"),
            ("B", "two\r\n  lines"),
            ("Empty", "-"),
            ("#text", "t"),
            ("CommandLine", "c"),
        ];
        let expected = "CommandLine: c ¦ B: two lines ¦ Root: t ¦ SubjectUserName: a ¦ ProcessId: 1";
        assert_eq!(details("P", 1, &fields).as_deref(), Some(expected));
        assert_eq!(details("P", 1, &[("CommandLine", ""), ("Empty", "-")]), None);
        let event = Event {
            provider: "P",
            event_id: 1,
            root: "",
            fields: &[("#text", "t")],
            shown: &[],
        };
        assert_eq!(event.details(), None);
        let long = "%%1541 ".repeat(10_000);
        assert_eq!(details(SECURITY, 1, &[("A", &long)]), Some(format!("A: {long}")));
    }

    #[test]
    fn codes_get_names_where_a_provider_writes_them() {
        let (defender, policy) = ("Microsoft-Windows-Windows Defender", "Microsoft-Windows-GroupPolicy");
        let key = "AccessMask";
        for (provider, event_id, field, expected) in [
            (
                SECURITY,
                4625,
                ("Status", "0xc000006a"),
                "Status: 0xc000006a (STATUS_WRONG_PASSWORD)",
            ),
            (
                SECURITY,
                4768,
                ("Status", "0x6"),
                "Status: 0x6 (KDC_ERR_C_PRINCIPAL_UNKNOWN)",
            ),
            (
                SECURITY,
                4656,
                ("AccessList", " %%1541\n\t%%4416"),
                "AccessList: SYNCHRONIZE, ReadData (or ListDirectory)",
            ),
            (SECURITY, 4656, ("Name", "100%"), "Name: 100%"),
            (
                SECURITY,
                4656,
                (key, "0x3"),
                "AccessMask: 0x3 (FILE_READ_DATA, FILE_WRITE_DATA)",
            ),
            (SECURITY, 4656, (key, "0x0"), "AccessMask: 0x0 ()"),
            (defender, 1116, ("Action", "%%809"), "Action: Quarantine"),
            (defender, 1116, ("Action", "%%1 x"), "Action: %%1 x"),
            (policy, 1, ("Mode", "%%4113\n"), "Mode: fast"),
            ("NETLOGON", 1, ("E", "%%5"), "E: ERROR_ACCESS_DENIED"),
            (
                "P",
                1,
                ("Error Code", "0x80070005"),
                "Error Code: 0x80070005 (ERROR_ACCESS_DENIED)",
            ),
            ("P", 1, ("ErrorCode", "5"), "ErrorCode: 5"),
            (
                "P",
                1,
                ("Binary", "680065006C006C006F00"),
                "Binary: 680065006C006C006F00 (hello)",
            ),
            ("P", 1, ("Binary", "000102030405"), "Binary: 000102030405"),
            ("P", 1, ("Binary", "68656C6C6F2"), "Binary: 68656C6C6F2"),
        ] {
            let fields = [("ObjectType", ""), field];
            let fields = if field.0 == key {
                [("ObjectType", "file"), field]
            } else {
                fields
            };
            let found = details(provider, event_id, &fields);
            let found = found
                .as_deref()
                .map(|line| line.trim_start_matches("ObjectType: file ¦ "));
            assert_eq!(found, Some(expected));
        }
    }
}
