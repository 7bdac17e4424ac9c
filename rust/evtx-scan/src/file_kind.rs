//! What files a call reads of a folder or an archive, by their names.

use std::collections::BTreeSet;

use evtx_messages::registry::HiveName;

use crate::skipped::advice;
use crate::storage::{Holds, Storage, ends_with};

/// How the name of a catalog of messages ends.
pub(crate) const CATALOG: &str = ".messages";

/// What files a call reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Event logs.
    Logs,
    /// Exports of events as XML.
    Exports,
    /// Exports with JSON in each line.
    Lines,
    /// Event logs, and what looks like other evidence in a folder or an archive. That is only reported.
    Evidence,
    /// Sigma rules.
    Rules,
    /// Files with the messages of providers: binaries, and hives of a registry.
    Providers,
}

impl FileKind {
    /// How the names of its files end.
    pub(crate) fn ends(self) -> &'static [&'static str] {
        match self {
            FileKind::Logs | FileKind::Evidence => &[".evtx"],
            FileKind::Exports => &[".xml"],
            FileKind::Lines => &[".json", ".jsonl", ".ndjson"],
            FileKind::Rules => &[".yml", ".yaml"],
            FileKind::Providers => &[".dll", ".exe", ".sys", ".mui", ".mun"],
        }
    }

    /// Whether a folder is read for files with this name: those of the kind, and those that hold some.
    pub(crate) fn is_read(self, storage: &dyn Storage, name: &str) -> bool {
        let is_own = |name| {
            self.ends().iter().any(|end| ends_with(name, end))
                || self == FileKind::Providers && HiveName::of(name).is_some()
                || self == FileKind::Evidence && advice(name).is_some()
        };
        match storage.nesting().holds(name) {
            Holds::Bytes => is_own(name),
            Holds::File(inner) => is_own(inner),
            Holds::Folder => true,
        }
    }

    /// What to do about a file with this name that is only reported, if it is.
    pub(crate) fn skips(self, storage: &dyn Storage, name: &str) -> Option<&'static str> {
        let name = match storage.nesting().holds(name) {
            Holds::Bytes => name,
            Holds::File(inner) => inner,
            Holds::Folder => return None,
        };
        advice(name).filter(|_| self == FileKind::Evidence)
    }

    /// A glob that matches every name that is read. It matches others too, because it only looks at the first two letters
    /// of the extension.
    pub(crate) fn glob(self, storage: &dyn Storage) -> String {
        if matches!(self, FileKind::Providers | FileKind::Evidence) {
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

    /// What the files are called.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            FileKind::Logs | FileKind::Evidence => "logs",
            FileKind::Exports | FileKind::Lines => "exports",
            FileKind::Rules => "rules",
            FileKind::Providers => "binaries of providers",
        }
    }
}
