//! Names of accounts, domains and machines in texts, told by the signs around them.

use std::ops::Range;

/// Keys and namespaces that paths of two parts begin with.
const ROOTS: &str = "hkcr hkcu hkey_classes_root hkey_current_user hkey_local_machine hkey_users hklm hku machine \
                     registry root users";
/// Parts of paths of keys and folders that every Windows has.
const FOLDERS: &str = r"hkcr\ hkcu\ hkey_ hklm\ hku\ :\program :\windows\ \registry\ systemroot";
/// Parts of other paths that hold folders and files of Windows.
const PROFILES: &str = r"\users\ \appdata\ \programdata\ \windows\ microsoft\ system32\ %program %windir%";
/// Suffixes of files.
const FILES: &str = "bat cab cmd cpl dat dll dmp doc docx etl evtx exe hdmp hta inf ini js lnk log msc msi ocx ps1 psd1 psm1 sys tmp txt vbs xls xlsx xml zip";
/// Shares of every Windows, beside those of drives, and what else follows the name of a machine.
const SHARES: [&str; 6] = ["admin$", "davwwwroot", "ipc$", "netlogon", "pipe", "sysvol"];
/// Classes of services, which names of services begin with, as `ldap/DC01`.
pub(super) const SERVICES: &str = "cifs dns gc host http krbtgt ldap mssqlsvc restrictedkrbhost rpc termsrv wsman";
/// What precedes the sign `=` of a name in a directory.
const DIRECTORY: [&str; 4] = ["cn", "dc", "ou", "uid"];
/// Switches of commands that a name follows.
const SWITCHES: [&str; 5] = ["computername", "credential", "node", "user", "username"];

/// The bytes of names in a text in lower case: `name\name`, `\\name\`, `://name`, `name@name`, `name$`, `cn=name`, and
/// `-user name`.
pub(super) fn names(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut is_in_path) = (Vec::new(), false);
    let (mut last, mut end) = ("", 0);
    while let Some(length) = text[end..].find(is_inside) {
        let start = end + length;
        let before = &text[end..start];
        end = text[start..]
            .find(|char| !is_inside(char))
            .map_or(text.len(), |length| start + length);
        let token = &text[start..end];
        is_in_path &= !before.contains(is_other) && !token.starts_with(['-', '/']);
        let one = [
            in_directory(last, before, &text[start..]),
            after_switch(last, before, token),
            machine(token),
        ];
        let of_account = account(token).filter(|_| !is_in_path).into_iter().flatten();
        let one = one
            .into_iter()
            .chain(host_and_share(token, before.ends_with(':')))
            .flatten();
        let all = one.chain(of_account).chain(service(token)).chain(principals(token));
        found.extend(all.map(|name| {
            let at = name.as_ptr().addr() - text.as_ptr().addr();
            at..at + name.len()
        }));
        is_in_path |= token.starts_with('\\')
            || token.contains('\\') && (token.contains('%') || parts(token).next().is_some_and(is_root));
        // A path goes on after a space, unless it ends with the suffix of a file or a share, or an argument follows.
        let is_finished = parts(token)
            .last()
            .is_some_and(|name| name.contains('.') || name.ends_with('$'));
        is_in_path &= !is_finished;
        last = token;
    }
    found
}

/// Whether a word in a text in lower case is a switch, the name of a program, or a part of a path below a key or folder of Windows.
pub(super) fn is_of_windows(text: &str, word: &Range<usize>) -> bool {
    let (before, after) = (&text[..word.start], &text[word.end..]);
    let is_part = before.ends_with('\\') || after.starts_with('\\');
    is_program(after) || is_switch(before, after) || is_part && is_below(FOLDERS, text, word)
}

/// Whether a word in a text in lower case, which is a name, cannot be one alone: in a path of Windows, in the name of a file, as the letter
/// of a drive, a device, a class of services, a scheme, or a key.
pub(super) fn is_in_name(text: &str, word: &Range<usize>) -> bool {
    let (before, name, after) = (&text[..word.start], &text[word.clone()], &text[word.end..]);
    let is_suffix = before.ends_with('.') && is_in(FILES, name) && !after.starts_with(is_inside);
    let is_class = before.is_empty() && after.starts_with('/') && is_in(SERVICES, name);
    let is_device = before == r"\device\" || before == r"\" && after.starts_with('\\') && name == "device";
    let is_root = name.len() == 1 && after.starts_with(':') || after.starts_with("://") || after.starts_with('=');
    let is_path = is_below(FOLDERS, text, word) || is_below(PROFILES, text, word);
    is_program(after) || is_suffix || is_class || is_device || is_root || is_path
}

/// Whether the suffix of a file follows a word.
fn is_program(after: &str) -> bool {
    let suffix = after.strip_prefix('.').unwrap_or_default();
    let length = suffix.find(|char| !is_inside(char)).unwrap_or(suffix.len());
    is_in(FILES, &suffix[..length])
}

/// Whether a word between two texts is a switch: after `-`, or between `/` and `:`, as no folder of Unix is.
fn is_switch(before: &str, after: &str) -> bool {
    let start = before.trim_end_matches('-');
    let start = match before.strip_suffix('/') {
        Some(start) if after.starts_with(':') => start,
        _ => start,
    };
    start.len() < before.len() && start.chars().next_back().is_none_or(char::is_whitespace)
}

/// Whether a word in a text in lower case is in a path below one of some folders, or ends the path of that folder.
fn is_below(folders: &str, text: &str, word: &Range<usize>) -> bool {
    let end = word.end + usize::from(text[word.end..].starts_with('%'));
    let path = text[..end]
        .rsplit(is_other_than_path)
        .next()
        .unwrap_or_default()
        .replace('/', r"\")
        + r"\";
    folders.split(' ').any(|folder| path.contains(folder))
}

/// Whether a character between two words ends a path.
fn is_other(char: char) -> bool {
    char.is_control() || "\"',;|<>=:".contains(char)
}

/// Whether a character ends a path, which can begin with the letter of a drive.
fn is_other_than_path(char: char) -> bool {
    is_other(char) && char != ':'
}

/// Whether a character is one of a name or path.
fn is_inside(char: char) -> bool {
    !char.is_ascii() || char.is_ascii_alphanumeric() || "\\/.-_$@%*?~#".contains(char)
}

/// Whether a list with spaces has a name.
pub(super) fn is_in(list: &str, name: &str) -> bool {
    list.split(' ').any(|known| known == name)
}

fn is_slash(char: char) -> bool {
    matches!(char, '\\' | '/')
}

fn is_name(text: &str) -> bool {
    text.contains(char::is_alphanumeric) && !text.contains(['%', '*', '?'])
}

fn is_root(name: &str) -> bool {
    is_in(ROOTS, name)
}

/// The parts of a path.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split(is_slash).filter(|part| !part.is_empty())
}

/// The value of an attribute of a distinguished name, at the start of a text that follows the last word and a sign.
fn in_directory<'t>(last: &str, sign: &str, text: &'t str) -> Option<&'t str> {
    let is_end = |char: char| char.is_control() || ",;+=/\"'<>|".contains(char);
    let is_value = sign == "=" && DIRECTORY.contains(&last);
    is_value.then(|| text.split(is_end).next())?
}

/// A word that follows a switch.
fn after_switch<'t>(last: &str, sign: &str, word: &'t str) -> Option<&'t str> {
    let switch = last.strip_prefix(['-', '/'])?;
    let is_argument = sign == ":" || sign.trim().is_empty();
    let is_one = SWITCHES.contains(&switch) && is_argument && is_name(word);
    (is_one && !word.contains(is_slash) && !word.starts_with('-')).then_some(word)
}

/// The names before and after each `@`.
fn principals(word: &str) -> impl Iterator<Item = &str> {
    let both = word.split('@').zip(word.split('@').skip(1));
    let names = both.map(|(left, right)| [left.rsplit(is_slash).next(), right.split(is_slash).next()]);
    let names = names.map(|[left, right]| {
        Some([
            left.filter(|left| is_name(left))?,
            right.filter(|right| is_name(right))?,
        ])
    });
    names.flatten().flatten()
}

/// The name of a machine before a `$`.
fn machine(path: &str) -> Option<&str> {
    let share = path.rsplit(is_slash).next()?;
    let name = share.strip_suffix('$')?;
    (is_name(name) && !is_share(share)).then_some(name)
}

/// The machine and the share of a path of the network, or the machine of a URL, whose scheme is before it.
fn host_and_share(path: &str, is_after_colon: bool) -> [Option<&str>; 2] {
    let slashes = path.len() - path.trim_start_matches('\\').len();
    let mut parts = parts(path);
    let first = parts.next();
    let [host, share] = match parts.next() {
        Some("unc" | "mup") => [parts.next(), parts.next()],
        _ if is_after_colon => [first.filter(|_| path.starts_with("//")), None],
        second
            if matches!(slashes, 2 | 4) && !first.is_some_and(|name| name == "." || name == "?" || is_root(name)) =>
        {
            [first, second]
        }
        _ => [None, None],
    };
    let share = share.filter(|share| !is_share(share) && !is_root(share));
    [host, share].map(|name| name.filter(|name| is_name(name)))
}

/// Whether every Windows has a share.
pub(super) fn is_share(name: &str) -> bool {
    SHARES.contains(&name) || name.len() == 2 && name.ends_with('$')
}

/// The parts of the name of a service after its class.
fn service(word: &str) -> impl Iterator<Item = &str> {
    let (class, rest) = word.split_once('/').unwrap_or_default();
    let names = rest.split('/').filter(|name| is_name(name));
    names.filter(move |_| is_in(SERVICES, class))
}

/// The domain and the account of a text of two parts that is no path.
fn account(text: &str) -> Option<[&str; 2]> {
    let (left, right) = text.split_once('\\')?;
    let (left, right) = (left.rsplit('/').next()?, right.trim_start_matches('\\'));
    let right = right.split('/').next()?.trim_end_matches('.');
    let is_file = right.rsplit_once('.').is_some_and(|(_, suffix)| is_in(FILES, suffix));
    let is_account = is_name(left) && is_name(right) && !right.contains('\\') && !is_root(left) && !is_file;
    is_account.then_some([left, right])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_tell_names() {
        let cases = r"
user = exchange\backup => exchange, backup
net use \\backup-server\c$ /user:exchange\backup => backup-server, exchange, backup
exchange\\backup. => exchange, backup
c:\windows\net.exe use exchange\backup => exchange, backup
<author>exchange\backup</author> => exchange, backup
mail backup@exchange.bank => backup, exchange.bank
backup-server$ \\server\admin$ => backup-server, server
cn=backup drive,ou=office,dc=exchange => backup drive, office, exchange
\??\unc\server\share \\?\c:\windows => server, share
\device\mup\server\share\a \\*\share\a => server, share, share
\\server\sysvol\share \\server\root\a \\root\share => server, server
ldap/server/exchange mssqlsvc/server:1433 a/server => server, exchange, server
https://server/exchange => server
enter-pssession -computername exchange-server => exchange-server
wmic /node:server process; -user -backup => server
c:\program files\internet explorer\iexplore.exe =>
c:\program files (x86)\common files\system =>
c:\\windows\\system32 =>
system32\cmd.exe hklm\sam %windir%\system32 .\server root\cimv2 =>
\\.\pipe\server @(1) @{a=1} a @server c$ $env a$b =>
\microsoft\windows\backup a\b\c =>
";
        for line in cases.trim().lines() {
            let (text, expected) = line.split_once(" =>").expect("an arrow");
            let found: Vec<&str> = names(text).into_iter().map(|range| &text[range]).collect();
            assert_eq!(found.join(", "), expected.trim_start(), "{text}");
        }
    }
}
