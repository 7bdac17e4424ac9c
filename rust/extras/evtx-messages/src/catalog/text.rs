//! Compares the texts of messages.

use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashSet};

use crate::registry::FileLocation;

/// The paths of files whose folders are looked at have so many bytes, at most. *(choice)*
const MAX_PATH: usize = 4096;

/// The characters of a text without whitespace and its escapes, which some databases have lost, but with a space between
/// digits. `%0` ends a text.
pub(super) fn visible(text: &str) -> impl Iterator<Item = char> {
    let mut chars = text.chars().peekable();
    let (mut before, mut held) = (' ', None);
    std::iter::from_fn(move || {
        let mut was_space = false;
        loop {
            let char = held.take().or_else(|| chars.next())?;
            let is_space = match char {
                '%' if chars.next_if_eq(&'0').is_some() => return None,
                '%' if chars.next_if_eq(&'%').is_some() => {
                    held = Some('\0');
                    false
                }
                '%' => chars.next_if(|next| matches!(next, 'n' | 't' | 'r')).is_some(),
                '\\' => chars.next_if(|next| matches!(next, 'n' | 't' | 'r')).is_some(),
                _ => char.is_whitespace(),
            };
            if is_space {
                was_space = true;
                continue;
            }
            if was_space && before.is_ascii_digit() && char.is_ascii_digit() {
                held = Some(char);
                before = ' ';
                return Some(' ');
            }
            before = char;
            return Some(char);
        }
    })
}

/// A language: the lower, the better.
pub(super) type Language<'b> = (u8, &'b [u8]);

/// What a file says that a message is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim<'b> {
    pub(super) language: Language<'b>,
    /// The fingerprint of the text, if there is one.
    pub(super) text: Option<u64>,
    /// The fingerprints of the file with those that have its texts, and of its path.
    pub(super) file: [u64; 2],
}

/// Whether files disagree about a message in a language: they have several texts, or some have only texts in other languages
/// that differ from it. A file and its own resources have texts in several languages, but one in each. A file without a text
/// contests none.
pub(super) fn is_contested(language: Language<'_>, claims: &[Claim<'_>]) -> bool {
    let in_language = claims.iter().filter(|claim| claim.language == language);
    let (texts, paths): (HashSet<_>, HashSet<_>) = in_language
        .filter_map(|claim| Some((claim.text?, claim.file[1])))
        .unzip();
    let (mut files, mut agreed) = (HashSet::new(), HashSet::new());
    for claim in claims {
        let Some(text) = claim.text else { continue };
        files.insert(claim.file[0]);
        if texts.contains(&text) {
            agreed.insert(claim.file[0]);
        }
    }
    let are_several = files.len() > 1 || paths.len() > 1;
    are_several && (texts.len() > 1 || agreed.len() < files.len())
}

/// Makes fingerprints: texts that differ in whitespace only have the same, and so do a file and those with its texts.
#[derive(Debug, Clone, Default)]
pub(super) struct Fingerprints(DefaultHashBuilder);

impl Fingerprints {
    /// The fingerprint of a text; `None` of an empty one.
    pub(super) fn of(&self, text: &str) -> Option<u64> {
        let mut hasher = self.0.build_hasher();
        visible(text).for_each(|char| hasher.write_u32(char.into()));
        (!text.is_empty()).then(|| hasher.finish())
    }
    /// The fingerprints of the file with a path, and of the path. A file whose path is too long belongs to no other.
    pub(super) fn of_file(&self, path: &str) -> [u64; 2] {
        let own = self.0.hash_one(path);
        if path.len() > MAX_PATH {
            return [own; 2];
        }
        let location = FileLocation::of(path);
        [self.0.hash_one((location.folder(), location.name())), own]
    }
}
