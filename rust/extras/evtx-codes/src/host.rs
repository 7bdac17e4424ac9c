//! The other machine in an event: what each kind of value says, by what wrote it.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::named::named;

named! {
    /// What wrote the name of another machine into an event.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Writer {
        /// Windows or a service: the address of a connection, the path to a share, the name of a server.
        Windows = "windows",
        /// The other machine, which can claim any name.
        Client = "client",
        /// Windows, about the machine that wrote the event.
        Itself = "self",
    }
}

impl Writer {
    /// The writer that a user names.
    pub fn parsed(name: &str) -> Result<Self, String> {
        Writer::named(name).ok_or_else(|| format!("written_by: expected windows, client or self, found {name:?}"))
    }
}

/// What a value says about another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Machine<'a> {
    /// Nothing.
    Unknown,
    /// The machine that wrote the event.
    Own,
    /// Another machine, by address or name.
    Other(Cow<'a, str>),
}

/// The letters of a NetBIOS name (MS-NBTE, 2.2.1: 16 bytes with the suffix).
const NETBIOS: usize = 15;

/// Whether a name is that of the computer: in full, without its domain, or cut to a NetBIOS name.
pub fn is_own_name(name: &str, computer: &str) -> bool {
    let computer = computer.trim_end_matches('.');
    let short = computer.split('.').next().unwrap_or_default();
    let cut = short.char_indices().nth(NETBIOS).map(|(end, _)| &short[..end]);
    let is =
        |own: &str| own.eq_ignore_ascii_case(name) || !name.is_ascii() && own.to_lowercase() == name.to_lowercase();
    [Some(computer), Some(short), cut]
        .into_iter()
        .flatten()
        .any(|own| !own.is_empty() && is(own))
}

/// The server of a path: `\\SERVER\share`, `SERVER\IPC$`, `\\?\UNC\SERVER\share`, `\Device\Mup\SERVER\share`, `\\SERVER@SSL@8443\share` of
/// WebDAV.
fn server(path: &str) -> &str {
    // Another device of the kernel is a disk or a pipe.
    if let Some(device) = after(path, "\\Device\\") {
        // A redirector and a drive can come before the server: `;LanmanRedirector\;Z:000000000003e7c1\SERVER\share`.
        let mut parts = ["Mup\\", "LanmanRedirector\\"]
            .into_iter()
            .find_map(|of_shares| after(device, of_shares))
            .unwrap_or_default()
            .split('\\');
        return parts.find(|part| !part.starts_with(';')).unwrap_or_default();
    }
    let mut parts = path.trim_start_matches('\\').split('\\');
    let mut server = parts.next().unwrap_or_default();
    if let ("?" | "??" | ".", Some("UNC")) = (server, parts.next()) {
        server = parts.next().unwrap_or_default();
    }
    match server.split_once('@') {
        Some((name, "SSL" | "ssl")) => name,
        Some((name, port)) if port.starts_with("SSL@") || port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => server,
    }
}

/// The rest of a text that starts with a word in any case.
fn after<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    let (word, rest) = text.split_at_checked(start.len())?;
    word.eq_ignore_ascii_case(start).then_some(rest)
}

/// An address, with a port or a zone, in brackets or not.
fn address(text: &str) -> Option<(&str, IpAddr)> {
    let (host, is_whole) = match text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        Some((host, port)) => (host, port.is_empty() || port.starts_with(':')),
        None => (text, true),
    };
    let unmapped = after(host, "::ffff:").filter(|rest| rest.contains('.')).unwrap_or(host);
    let (v4, _) = unmapped.split_once(':').unwrap_or((unmapped, ""));
    if let Ok(address) = v4.parse::<Ipv4Addr>() {
        return is_whole.then_some((v4, address.into()));
    }
    let address = host.split('%').next()?.parse::<Ipv6Addr>().ok()?;
    is_whole.then_some((host, address.into()))
}

/// The other machine that a value names, for an event of this computer.
pub fn remote_host<'a>(value: &'a str, computer: &str, writer: Writer) -> Machine<'a> {
    let name = if writer == Writer::Client {
        value.trim_start_matches('\\')
    } else {
        let server = server(value);
        server.strip_suffix('.').unwrap_or(server)
    };
    let is = |known: &[&str]| known.iter().any(|known| name.eq_ignore_ascii_case(known));
    let starts = |start| after(name, start).is_some();
    let found = address(name).filter(|(text, _)| writer != Writer::Client || *text == name);
    match (writer, found) {
        (_, None) if is(&["", "-", "null"]) || starts("<") => Machine::Unknown,
        // A wildcard, a device, or a drive.
        (Writer::Windows | Writer::Itself, None) if is(&["*", "?", "??"]) || matches!(name.as_bytes(), [_, b':']) => {
            Machine::Unknown
        }
        (_, None) if is(&["local", "localhost", "localhost."]) || starts("localhost (") => Machine::Own,
        (_, None) if is_own_name(name.trim_end_matches('.'), computer) => Machine::Own,
        (_, Some((_, address))) if address.is_unspecified() => Machine::Unknown,
        (_, Some((_, address))) if address.is_loopback() => Machine::Own,
        // A claim is a text, even if it looks like an address and a port.
        (Writer::Client, _) => Machine::Other(name.into()),
        (_, Some((text, _))) => Machine::Other(text.into()),
        (_, None) => match name.rsplit_once(':') {
            // NAME:port
            Some((host, port))
                if !host.contains(':') && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                remote_host(host, computer, writer)
            }
            _ => Machine::Other(name.into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases: what wrote the value, the value, and what it says.
    #[test]
    fn a_value_is_read_by_what_wrote_it() {
        use Machine::{Own, Unknown};
        use Writer::{Client, Itself, Windows};
        let other = |name: &'static str| Machine::Other(name.into());
        for (writer, value, expected) in [
            (Windows, "203.0.113.9", other("203.0.113.9")),
            (Windows, "203.0.113.9:50122", other("203.0.113.9")),
            (Windows, "::ffff:203.0.113.9", other("203.0.113.9")),
            (Windows, "[::FFFF:203.0.113.9]:445", other("203.0.113.9")),
            (Windows, "fe80::1%5", other("fe80::1%5")),
            (Windows, "[fe80::1]:445", other("fe80::1")),
            (Windows, "fs01.corp.example:445", other("fs01.corp.example")),
            (Windows, "\\\\FS01\\share\\dir", other("FS01")),
            (Windows, "FS01\\IPC$", other("FS01")),
            (Windows, "\\\\[fe80::1]\\share", other("fe80::1")),
            (Windows, "\\\\?\\UNC\\FS01\\share", other("FS01")),
            (Windows, "\\??\\UNC\\FS01\\share", other("FS01")),
            (Windows, "\\Device\\Mup\\FS01\\share", other("FS01")),
            (
                Windows,
                "\\device\\mup\\;LanmanRedirector\\;Z:0000000003e7c1\\FS01\\share",
                other("FS01"),
            ),
            (Windows, "\\Device\\LanmanRedirector\\FS01\\share", other("FS01")),
            (Windows, "\\Device\\Mup\\127.0.0.1\\c$", Own),
            (Windows, "\\Device\\HarddiskVolume2\\x", Unknown),
            (Windows, "\\Device\\Mup", Unknown),
            (Windows, "\\\\Device\\share", other("Device")),
            (Windows, "\\\\FS01@80\\share", other("FS01")),
            (Windows, "\\\\FS01@SSL@8443\\share", other("FS01")),
            (Windows, "user@FS01", other("user@FS01")),
            (Windows, "fs01.corp.example.", other("fs01.corp.example")),
            (Windows, "fileserver-berlin1", Own),
            (Windows, "fileserver-berlin1.", Own),
            (Windows, "127.9.9.9:1", Own),
            (Windows, "::ffff:127.0.0.1", Own),
            (Windows, "[::1]:445", Own),
            (Windows, "LocalHost (Using LRPC)", Own),
            (Windows, "0.0.0.0:0", Unknown),
            (Windows, "0:0:0:0:0:0:0:0", Unknown),
            (Windows, "<named pipe>", Unknown),
            (Windows, "NULL", Unknown),
            (Windows, "C:\\x", Unknown),
            (Windows, "\\\\*\\SYSVOL", Unknown),
            (Windows, "\\\\?\\C:\\x", Unknown),
            (Windows, "\\\\.\\pipe\\x", Unknown),
            (Windows, "a.FILESERVER-BERL", other("a.FILESERVER-BERL")),
            (Client, "WIN7", other("WIN7")),
            (Client, "\\\\WIN7", other("WIN7")),
            (Client, "203.0.113.9:50122", other("203.0.113.9:50122")),
            (Client, "a\\b", other("a\\b")),
            (Client, "FILESERVER-BERL", Own),
            (Client, "FILESERVER-BER", other("FILESERVER-BER")),
            (Client, "FILESERVER-BERL.", Own),
            (Client, "*", other("*")),
            (Client, "localhost", Own),
            (Client, "-", Unknown),
            (Client, "0.0.0.0", Unknown),
            (Itself, "FILESERVER-BERLIN1", Own),
            (Itself, "THIN7", other("THIN7")),
        ] {
            assert_eq!(
                remote_host(value, "FILESERVER-BERLIN1.corp.example", writer),
                expected,
                "{value}"
            );
        }
        assert_eq!(remote_host("pc", "", Windows), other("pc"));
        assert_eq!(remote_host("äpc", "ÄPC.corp.example", Windows), Own);
        assert_eq!(remote_host("äöüäöüäöüäöüäöü", "ÄÖÜÄÖÜÄÖÜÄÖÜÄÖÜX", Client), Own);
        assert_eq!(remote_host("SRV-BERLIN-0001", "srv-berlin-0001", Client), Own);
    }
}
