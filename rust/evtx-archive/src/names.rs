//! Names in archives. The case of ASCII letters does not matter, and `\` is the same as `/`.

use evtx_scan::single_stars;

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
        match name.contains('\\') {
            true => self.pattern.matches_with(&name.replace('\\', "/"), options),
            false => self.pattern.matches_with(name, options),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
