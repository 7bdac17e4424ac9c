//! Names in archives. The case of ASCII letters does not matter, and `\` is the same as `/`.

use evtx_scan::{ends_with, single_stars};

/// How the names of entries end that have the messages of a log. They are listed with every log.
pub(crate) const MESSAGES: &str = ".mta";

/// A name in an archive as it is compared: ASCII letters in lower case, and `/` for `\`.
pub(crate) fn plain(name: &str) -> impl Iterator<Item = char> {
    let plain = |letter: char| {
        if letter == '\\' {
            '/'
        } else {
            letter.to_ascii_lowercase()
        }
    };
    name.chars().map(plain)
}

/// The name of the file that Windows makes of a name: without a stream (`a.evtx:b`), the dots and spaces at its end, and what
/// follows a NUL.
pub(crate) fn as_windows(name: &str) -> &str {
    // Most names are of this kind.
    if !name.ends_with(['.', ' ']) && !name.bytes().any(|byte| matches!(byte, 0 | b':')) {
        return name;
    }
    let name = name.split('\0').next().unwrap_or_default();
    let start = name.rfind(['/', '\\']).map_or(0, |slash| slash + 1);
    let end = name[start..].find(':').map_or(name.len(), |colon| start + colon);
    name[..end].trim_end_matches(['.', ' '])
}

/// Whether a name is that of a folder: nothing, or only dots and spaces, follows its last slash.
pub(crate) fn is_folder(name: &str) -> bool {
    as_windows(name).ends_with(['/', '\\'])
}

/// The name among those of an entry by which somebody asks for it as a file, if there is one: that of a log before that of
/// messages, which may never be opened.
pub(crate) fn wanted_name(names: &[String], is_wanted: &dyn Fn(&str) -> bool) -> Option<usize> {
    let is_file = |name: &String| !is_folder(name) && is_wanted(name);
    let is_log = |name: &String| !ends_with(name, MESSAGES) && is_file(name);
    names.iter().position(is_log).or_else(|| names.iter().position(is_file))
}

/// A name as text: UTF-8, whether the archive says so or not, or else code page 437.
pub(crate) fn text(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text) => text.to_owned(),
        Err(_) => name.iter().map(|&byte| character(byte)).collect(),
    }
}

fn character(byte: u8) -> char {
    const UPPER: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
                         αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{A0}";
    match byte {
        0..0x80 => char::from(byte),
        _ => UPPER
            .chars()
            .nth(usize::from(byte) - 0x80)
            .unwrap_or(char::REPLACEMENT_CHARACTER),
    }
}

/// Whether two names in an archive are the same one.
pub(crate) fn is_same(name: &str, other: &str) -> bool {
    name.len() == other.len() && plain(name).eq(plain(other))
}

/// A glob of names.
pub(crate) struct Glob {
    pattern: glob::Pattern,
    text: String,
}

impl Glob {
    pub(crate) fn new(pattern: &str) -> Result<Self, glob::PatternError> {
        // `**` beside other letters is the same as `*`.
        let parts = pattern.split(['/', '\\']).map(|part| match part {
            "**" => part.to_owned(),
            _ => single_stars(part),
        });
        let text = parts.collect::<Vec<_>>().join("/");
        let pattern = glob::Pattern::new(&text)?;
        Ok(Glob { pattern, text })
    }

    /// The start of every name that matches, in some case.
    pub(crate) fn start(&self) -> &str {
        let end = self.text.find(['*', '?', '[']).unwrap_or(self.text.len());
        &self.text[..end]
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        let options = glob::MatchOptions {
            case_sensitive: false,
            require_literal_separator: true,
            require_literal_leading_dot: false,
        };
        if name.contains('\\') {
            self.pattern.matches_with(&name.replace('\\', "/"), options)
        } else {
            self.pattern.matches_with(name, options)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_takes_the_end_off_a_name() {
        for (name, file) in [
            ("a.evtx", "a.evtx"),
            ("C:\\x\\a.evtx. . ", "C:\\x\\a.evtx"),
            ("x/a.evtx:stream", "x/a.evtx"),
            ("x/a.evtx .:stream:$DATA", "x/a.evtx"),
            ("x:y/a.evtx::$DATA", "x:y/a.evtx"),
            ("a.evtx\0.txt", "a.evtx"),
            ("..", ""),
            ("x.evtx:y/", "x.evtx:y/"),
        ] {
            assert_eq!(as_windows(name), file);
        }
    }

    #[test]
    fn nothing_follows_the_last_slash_of_a_folder() {
        for name in ["a/", "a\\", "a/.", "a/..", "a\\ . ", "a/:b", "a/\0b"] {
            assert!(is_folder(name), "{name:?}");
        }
        for name in ["a", "a/b", "a/.b", "a/b.", "..", ""] {
            assert!(!is_folder(name), "{name:?}");
        }
    }

    #[test]
    fn every_byte_of_a_name_is_a_character_of_its_own() {
        let all: std::collections::HashSet<char> = (0..=255).map(character).collect();
        assert_eq!(all.len(), 256);
        assert!(!all.contains(&char::REPLACEMENT_CHARACTER));
    }

    #[test]
    fn stars_that_follow_each_other_are_one() {
        for (pattern, is_match) in [
            ("**.evtx", false),
            ("a/**.evtx", true),
            ("a/***", true),
            ("a/b**", true),
            ("**/***.evtx", true),
            ("a/**", true),
            ("a**", false),
        ] {
            let glob = Glob::new(pattern).expect("a pattern");
            assert_eq!(glob.matches("A\\b.evtx"), is_match, "{pattern}");
        }
    }
}
