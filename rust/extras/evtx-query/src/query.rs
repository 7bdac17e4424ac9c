//! What calls ask for.

use evtx_archive::EXPORT_FILES;
use evtx_detect::{OF_MATCHES, OF_RULES, RULE_FILES};
use evtx_events::OF_CERTAIN_EVENTS;
use evtx_exports::{OF_SOURCES, SOURCE_FILES};
use evtx_extras::OF_EXTRAS;
use evtx_recovery::OF_RECOVERY;
use evtx_reports::PROVIDER_FILES;
use evtx_scan::{Argument, FileKind, OF_EVENTS, OF_FILES, OF_LOGS};

use crate::settings::List;

/// What a call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// A row per record.
    Records,
    /// A row per record and rule that it matches.
    Matches,
    /// A row per rule.
    Rules,
    /// A row per field of each kind of events.
    Fields,
    /// A row per file.
    Files,
    /// A row per chunk.
    Chunks,
    /// A row per message of an event provider.
    Messages,
    /// A row per event of an export as XML.
    Exports,
    /// A row per event of an export of another tool.
    Sources,
    /// A row per field of each declared event. It reads no files.
    DeclaredEvents,
}

impl Query {
    /// All queries.
    pub const ALL: [Query; 10] = [
        Query::Records,
        Query::Matches,
        Query::Rules,
        Query::Fields,
        Query::Files,
        Query::Chunks,
        Query::Messages,
        Query::Exports,
        Query::Sources,
        Query::DeclaredEvents,
    ];

    /// What files it reads, if any.
    pub fn files(self) -> Option<FileKind> {
        match self {
            Query::Rules => Some(RULE_FILES),
            Query::Messages => Some(PROVIDER_FILES),
            Query::Exports => Some(EXPORT_FILES),
            Query::Sources => Some(SOURCE_FILES),
            Query::DeclaredEvents => None,
            Query::Files => Some(FileKind::Evidence),
            Query::Records | Query::Matches | Query::Fields | Query::Chunks => Some(FileKind::Logs),
        }
    }

    /// The lists of its arguments besides the files.
    pub(crate) fn lists(self) -> &'static [List] {
        use List::{Events, Extras, Recovery, Rules, Scan, Sources};
        match self {
            Query::Records => &[
                Scan(OF_FILES),
                Scan(OF_EVENTS),
                Scan(OF_LOGS),
                Events(OF_CERTAIN_EVENTS),
                Recovery(OF_RECOVERY),
                Extras(OF_EXTRAS),
            ],
            Query::Matches => &[
                Scan(OF_FILES),
                Scan(OF_EVENTS),
                Scan(OF_LOGS),
                Events(OF_CERTAIN_EVENTS),
                Recovery(OF_RECOVERY),
                Extras(OF_EXTRAS),
                Rules(OF_RULES),
                Rules(OF_MATCHES),
            ],
            Query::Exports => &[
                Scan(OF_FILES),
                Scan(OF_EVENTS),
                Events(OF_CERTAIN_EVENTS),
                Extras(OF_EXTRAS),
            ],
            Query::Rules => &[Scan(OF_FILES), Rules(OF_RULES)],
            Query::Sources => &[Scan(OF_FILES), Sources(OF_SOURCES)],
            Query::Fields | Query::Files | Query::Chunks | Query::Messages => &[Scan(OF_FILES)],
            Query::DeclaredEvents => &[],
        }
    }

    /// Its arguments besides the files, sorted by name.
    pub fn arguments(self) -> impl Iterator<Item = &'static Argument> {
        let mut all: Vec<_> = self.lists().iter().flat_map(|list| list.arguments()).collect();
        all.sort_by_key(|argument| argument.name);
        all.into_iter()
    }

    /// Its argument of a name, whose case does not matter.
    pub fn argument(self, name: &str) -> Option<&'static Argument> {
        self.arguments()
            .find(|argument| argument.name.eq_ignore_ascii_case(name))
    }

    /// Whether its rows are events.
    pub(crate) fn reads_events(self) -> bool {
        matches!(self, Query::Records | Query::Matches | Query::Exports)
    }
}
