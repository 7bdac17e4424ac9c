//! What files a call reads of a folder or an archive, by their names.

use std::collections::BTreeSet;

use crate::skipped::advice;
use crate::storage::{Holds, Storage, ends_with};

/// What files a call reads.
#[derive(Debug, Clone, Copy)]
pub enum FileKind {
    /// Event logs.
    Logs,
    /// Event logs, and what looks like other evidence in a folder or an archive. That is only reported.
    Evidence,
    /// Other files than logs.
    Other(&'static OtherFiles),
}

/// A kind of files that are not logs.
#[derive(Debug)]
pub struct OtherFiles {
    /// How their names end.
    pub ends: &'static [&'static str],
    /// Whether a file with another name is one of them, if some are.
    pub also: Option<fn(&str) -> bool>,
    /// A glob that ends so counts as if it named each file.
    pub named: Option<&'static str>,
    /// What they are called.
    pub plural: &'static str,
}

impl FileKind {
    fn ends(self) -> &'static [&'static str] {
        match self {
            FileKind::Logs | FileKind::Evidence => &[".evtx"],
            FileKind::Other(files) => files.ends,
        }
    }

    fn is_own(self, name: &str) -> bool {
        let is_other = match self {
            FileKind::Logs => false,
            FileKind::Evidence => advice(name).is_some(),
            FileKind::Other(files) => files.also.is_some_and(|is_also| is_also(name)),
        };
        is_other || self.ends().iter().any(|end| ends_with(name, end))
    }

    /// Whether a folder is read for files with this name: those of the kind, and those that hold some.
    pub(crate) fn is_read(self, storage: &dyn Storage, name: &str) -> bool {
        inner_name(storage, name).is_none_or(|name| self.is_own(name))
    }

    /// What to do about a file with this name that is only reported, if it is.
    pub(crate) fn skips(self, storage: &dyn Storage, name: &str) -> Option<&'static str> {
        advice(inner_name(storage, name)?).filter(|_| matches!(self, FileKind::Evidence))
    }

    /// A glob that matches every name that is read. It matches others too, because it only looks at the first two letters
    /// of the extension.
    pub(crate) fn glob(self, storage: &dyn Storage) -> String {
        if matches!(
            self,
            FileKind::Evidence | FileKind::Other(OtherFiles { also: Some(_), .. })
        ) {
            return "*".to_owned();
        }
        let letters = |nth| -> BTreeSet<char> {
            let ends = self.ends().iter().chain(storage.nesting().folders);
            let letters = ends.filter_map(|end| end.chars().nth(nth));
            letters
                .flat_map(|letter| [letter, letter.to_ascii_uppercase()])
                .collect()
        };
        let [first, second] = [1, 2].map(|nth| String::from_iter(letters(nth)));
        format!("*.[{first}][{second}]*")
    }

    /// Whether the files that a path matches count as named, though it is a glob.
    pub(crate) fn names(self, path: &str) -> bool {
        matches!(self, FileKind::Other(OtherFiles { named: Some(end), .. }) if ends_with(path, end))
    }

    /// What the files are called.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            FileKind::Logs | FileKind::Evidence => "logs",
            FileKind::Other(files) => files.plural,
        }
    }
}

/// The name of a file without that of its compression; `None` if the file holds others.
fn inner_name<'n>(storage: &dyn Storage, name: &'n str) -> Option<&'n str> {
    match storage.nesting().holds(name) {
        Holds::Bytes => Some(name),
        Holds::File(inner) => Some(inner),
        Holds::Folder => None,
    }
}
