//! The fields of an event as one line, with the names of codes.

use crate::base64;
use crate::code::Code;
use crate::encoded::bytes_of_hex;
use crate::events::{Event, Source};
use crate::lookup::code_name;
use crate::table::{RIGHTS, Table, table, table_of_rights};
use crate::text::replace;

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

/// A provider whose events have codes of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Security,
    /// Its numbers are in the table with this name.
    Numbers(&'static str),
    /// The names of its codes depend on their fields.
    Firewall,
    /// Its own account did not cause its events.
    Sysmon,
    Other,
}

impl Kind {
    pub(crate) fn of(provider: &str) -> Self {
        match &*provider.to_ascii_lowercase() {
            "microsoft-windows-security-auditing" => Kind::Security,
            "microsoft-windows-windows defender" => Kind::Numbers("defender_parameter"),
            "microsoft-windows-grouppolicy" => Kind::Numbers("group_policy_parameter"),
            "service control manager" | "netlogon" => Kind::Numbers("status"),
            "microsoft-windows-windows firewall with advanced security" => Kind::Firewall,
            "microsoft-windows-sysmon" => Kind::Sysmon,
            _ => Kind::Other,
        }
    }
}

/// The fields of an event, to write them as one line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Details<'a> {
    pub(crate) kind: Kind,
    /// A field `#text` has the name of its element, whose text it is.
    pub(crate) event: &'a Event<'a>,
    /// Values that the reader sees elsewhere.
    pub(crate) shown: &'a [&'a str],
    /// The field in which another machine has the name of this one.
    pub(crate) claim: Option<&'a str>,
}

/// Whether a text is only `%%nnnn`.
fn is_parameter(text: &str) -> bool {
    let digits = text.trim_ascii().strip_prefix("%%").unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The text in hexadecimal bytes, if it has three visible letters of ASCII in a row.
fn text_of_hex(hex: &str) -> Option<String> {
    if hex.len() < 12 || hex.bytes().any(|digit| digit.is_ascii_lowercase()) {
        return None;
    }
    let bytes = bytes_of_hex(hex)?;
    let is_visible = |three: &[u8]| three.iter().all(u8::is_ascii_graphic);
    let (text, _) = base64::text(&bytes)?;
    text.as_bytes().windows(3).any(is_visible).then_some(text)
}

/// The name of a code in a table.
fn name(of: &str, code: &str) -> Option<String> {
    code_name(of, Code::Text(code)).map(str::to_owned)
}

impl Details<'_> {
    fn value(&self, key: &str) -> Option<&str> {
        Some(self.event.fields.iter().find(|(known, _)| *known == key)?.1)
    }

    /// A value as the name of the code that it is, if the provider writes codes in this form.
    pub(crate) fn replaced(&self, value: &str) -> Option<String> {
        let parameters = match self.kind {
            Kind::Security => {
                let start = value.trim_ascii_start();
                let has_codes = start.starts_with(['%', '{']) || start.starts_with("---");
                let replaced = has_codes.then(|| table("parameters").map(|table| replace(table, value)))?;
                return replaced.filter(|replaced| replaced != value);
            }
            // These have numbers of their own in the same form, or Win32 errors.
            Kind::Numbers(table) => table,
            Kind::Firewall | Kind::Sysmon | Kind::Other => return None,
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
        if self.kind == Kind::Firewall {
            // 2002 and 2083 are about settings of all profiles.
            let of_all = key == "SettingType" && matches!(self.event.event_id, 2002 | 2083);
            let code = format!("{}{key} {value}", if of_all { "Global " } else { "" });
            return name("firewall", &code).or_else(|| name("protocol", value).filter(|_| key == "Protocol"));
        }
        if self.kind != Kind::Security {
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
            "Status" | "SubStatus" | "ReturnCode" | "ErrorCode" => match self.event.event_id {
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
    pub(crate) fn line(&self) -> Option<String> {
        let (fields, element) = (self.event.fields, self.event.element);
        let mut line = String::with_capacity(fields.iter().map(|(key, value)| key.len() + value.len() + 8).sum());
        let mut push = |key: &str, value: &str, names: Option<String>| push(&mut line, key, value, names);
        const COMMAND: &str = "CommandLine";
        if let Some(command) = self.value(COMMAND).filter(|command| !command.is_empty()) {
            push(COMMAND, command, None);
        }
        let object_type = self.value("ObjectType");
        // Most values have another length than each that is shown.
        let length = |text: &str| 1 << (text.len() % 64);
        let lengths: u64 = self.shown.iter().fold(0, |lengths, text| lengths | length(text));
        for last in [false, true] {
            for (key, value) in fields {
                let ends_in_id = matches!(key.as_bytes(), [.., b'I', b'd' | b'D'] | [.., b'i', b'd']);
                // The first letter decides most calls of a comparison.
                let is_subject = key.starts_with('S') && key.starts_with("Subject");
                let is_last = ends_in_id || is_subject || *key == "UtcTime";
                let is_claim = self.claim == Some(*key);
                let is_elsewhere = lengths & length(value) != 0 && self.shown.contains(value) && !is_claim;
                if is_last != last || [COMMAND, "#attributes"].contains(key) || is_elsewhere {
                    continue;
                }
                if is_claim {
                    push(key, value, Some("claims to be this machine".to_owned()));
                    continue;
                }
                let shown = match *key {
                    "#text" if element.is_empty() => continue,
                    "#text" => element,
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
        finished(line)
    }

    /// The fields of some sources as one line, with the names of codes. What a pattern takes out of a field stands alone.
    /// Attributes that an account does not have are left out.
    pub(crate) fn joined(&self, sources: &[Source]) -> Option<String> {
        let mut line = String::new();
        for source in sources {
            const NOT_SET: &str = "%%1793";
            let Some(value) = source.value(self.event.fields).filter(|value| *value != NOT_SET) else {
                continue;
            };
            // Part of a task, whose field is XML.
            let is_of_xml = !source.takes_all() && self.value(source.field).is_some_and(is_xml);
            let unescaped = is_of_xml.then(|| unescaped(value));
            let value = unescaped.as_deref().unwrap_or(value);
            let replaced = self.replaced(value);
            let names = match replaced {
                Some(_) => None,
                None => self.names(source.field, value, self.value("ObjectType")),
            };
            let key = if source.takes_all() { source.field } else { "" };
            push(&mut line, key, replaced.as_deref().unwrap_or(value), names);
        }
        finished(line)
    }
}

fn is_xml(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_ascii_start().starts_with('<')
}

/// The text that stands in XML, whose five entities Windows writes by name.
fn unescaped(xml: &str) -> String {
    const ENTITIES: [(&str, &str); 5] = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&amp;", "&"),
    ];
    let replaced = |text: String, (entity, letter)| text.replace(entity, letter);
    ENTITIES.into_iter().fold(xml.to_owned(), replaced)
}

/// A line on one line, if it has any field.
fn finished(mut line: String) -> Option<String> {
    // Without an exit, the loop is compiled to vector instructions.
    if line
        .bytes()
        .fold(false, |found, byte| found | matches!(byte, b'\t' | b'\n' | b'\r'))
    {
        line = on_one_line(&line);
    }
    (!line.is_empty()).then_some(line)
}

/// Adds a field to a line. An empty key is left out.
fn push(line: &mut String, key: &str, value: &str, names: Option<String>) {
    let separator = if line.is_empty() { "" } else { " ¦ " };
    line.push_str(separator);
    if !key.is_empty() {
        push_escaped(line, key);
        line.push_str(": ");
    }
    push_escaped(line, value);
    if let Some(names) = names {
        line.push_str(" (");
        push_escaped(line, &names);
        line.push(')');
    }
}

/// Adds a text, with each ¦ twice: alone, it is the end of a field.
fn push_escaped(line: &mut String, text: &str) {
    match !text.is_ascii() && text.contains('¦') {
        true => line.push_str(&text.replace('¦', "¦¦")),
        false => line.push_str(text),
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

    const SECURITY: &str = "microsoft-windows-Security-Auditing";

    fn details(provider: &str, event_id: u32, fields: &[(&str, &str)]) -> Option<String> {
        let event = Event {
            provider,
            event_id,
            fields,
            element: "Root",
            ..Event::default()
        };
        let details = Details {
            kind: Kind::of(provider),
            event: &event,
            shown: &["", "-"],
            claim: Some("Claim"),
        };
        details.line()
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
        let fields = [("#text", "t")];
        let event = Details {
            kind: Kind::Other,
            event: &Event {
                fields: &fields,
                ..Event::default()
            },
            shown: &[],
            claim: None,
        };
        assert_eq!(event.line(), None);
        let long = "%%1541 ".repeat(10_000);
        assert_eq!(details(SECURITY, 1, &[("A", &long)]), Some(format!("A: {long}")));
    }

    #[test]
    fn values_cannot_look_like_other_fields() {
        let fields = [("A", "x ¦ B: y"), ("C¦", "¦"), ("Claim", "-")];
        let expected = "A: x ¦¦ B: y ¦ C¦¦: ¦¦ ¦ Claim: - (claims to be this machine)";
        assert_eq!(details("P", 1, &fields).as_deref(), Some(expected));
    }

    #[test]
    fn codes_get_names_where_a_provider_writes_them() {
        let (defender, policy) = ("Microsoft-Windows-Windows Defender", "Microsoft-Windows-GroupPolicy");
        let key = "AccessMask";
        let cases = r"
Security/4625/Status/0xc000006a => Status: 0xc000006a (STATUS_WRONG_PASSWORD)
Security/4768/Status/0x6 => Status: 0x6 (KDC_ERR_C_PRINCIPAL_UNKNOWN)
Security/4656/AccessList/ %%1541\n\t%%4416 => AccessList: SYNCHRONIZE, ReadData (or ListDirectory)
Security/4656/Name/100% => Name: 100%
Security/4719/SubcategoryGuid/{0cce922b-69ae-11d9-bed3-505054503030} => SubcategoryGuid: {0cce922b-69ae-11d9-bed3-505054503030} (Detailed Tracking: Process Creation)
Security/4656/AccessMask/0x3 => AccessMask: 0x3 (FILE_READ_DATA, FILE_WRITE_DATA)
Security/4656/AccessMask/0x0 => AccessMask: 0x0 ()
Defender/1116/Action/%%809 => Action: Quarantine
Defender/1116/Action/%%1 x => Action: %%1 x
GroupPolicy/1/Mode/%%4113\n => Mode: fast
NETLOGON/1/E/%%5 => E: ERROR_ACCESS_DENIED
P/1/Error Code/0x80070005 => Error Code: 0x80070005 (ERROR_ACCESS_DENIED)
P/1/ErrorCode/5 => ErrorCode: 5
P/1/Binary/680065006C006C006F00 => Binary: 680065006C006C006F00 (hello)
P/1/Binary/000102030405 => Binary: 000102030405
P/1/Binary/68656C6C6F2 => Binary: 68656C6C6F2
";
        for line in cases.trim().lines() {
            let (event, expected) = line.split_once(" => ").expect("an arrow");
            let [provider, event_id, name, value] = event.split('/').collect::<Vec<_>>()[..] else {
                panic!("not a provider, an ID, a name and a value: {event}");
            };
            let provider = match provider {
                "Security" => SECURITY,
                "Defender" => defender,
                "GroupPolicy" => policy,
                other => other,
            };
            let value = value.replace(r"\n", "\n").replace(r"\t", "\t");
            let object_type = if name == key { "file" } else { "" };
            let fields = [("ObjectType", object_type), (name, &*value)];
            let found = details(provider, event_id.parse().expect("a number"), &fields);
            let found = found.as_deref();
            assert_eq!(
                found.map(|line| line.trim_start_matches("ObjectType: file ¦ ")),
                Some(expected)
            );
        }
    }
}
