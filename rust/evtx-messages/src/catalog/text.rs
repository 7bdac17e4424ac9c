//! Compares the texts of messages.

use std::hash::{BuildHasher, Hasher};

use hashbrown::DefaultHashBuilder;

/// The characters of a text without whitespace and its escapes, which some databases have lost.
pub(super) fn visible(text: &str) -> impl Iterator<Item = char> {
    let mut chars = text.chars().peekable();
    std::iter::from_fn(move || {
        loop {
            let char = chars.next()?;
            let is_space = match char {
                '%' => chars.next_if(|next| matches!(next, 'n' | 't' | 'r' | '0')).is_some(),
                '\\' => chars.next_if(|next| matches!(next, 'n' | 't' | 'r')).is_some(),
                _ => char.is_whitespace(),
            };
            if !is_space {
                return Some(char);
            }
        }
    })
}

/// The texts of one message, and whether files disagree about it: neither is there one text, nor one file that has all.
#[derive(Debug, Clone, Default)]
pub(super) struct Contest<'t> {
    first: Option<(u64, &'t str)>,
    texts_differ: bool,
    files_differ: bool,
}

impl<'t> Contest<'t> {
    /// Adds a text by its fingerprint, and the file that it is from. A message without a text contests none.
    pub(super) fn add(&mut self, text: Option<u64>, file: &'t str) {
        if let Some(text) = text {
            let (first, first_file) = *self.first.get_or_insert((text, file));
            self.texts_differ |= text != first;
            self.files_differ |= file != first_file;
        }
    }

    pub(super) fn is_contested(&self) -> bool {
        self.texts_differ && self.files_differ
    }
}

/// Makes fingerprints: texts that differ in whitespace only have the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Fingerprints(DefaultHashBuilder);

impl Fingerprints {
    /// The fingerprint of a text; `None` of an empty one.
    pub(super) fn of(&self, text: &str) -> Option<u64> {
        let mut hasher = self.0.build_hasher();
        visible(text).for_each(|char| hasher.write_u32(char.into()));
        (!text.is_empty()).then(|| hasher.finish())
    }
}
