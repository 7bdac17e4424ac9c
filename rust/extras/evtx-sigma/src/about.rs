//! What documents say about themselves.

use evtx_format::named_enum;

use crate::error::{LoadError, Problem};
use crate::limits::Limits;
use crate::source::text_of;
use crate::yaml::Node;

/// What a rule, a correlation or a filter says about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Its ID, mostly a UUID.
    pub id: Option<String>,
    /// Its name, by which correlations and filters can refer to it.
    pub name: Option<String>,
    /// Its title.
    pub title: String,
    /// How serious a match is.
    pub level: Option<Level>,
    /// How mature it is.
    pub status: Option<Status>,
    /// Its tags, such as `attack.t1059`.
    pub tags: Vec<String>,
    /// What it finds.
    pub description: Option<String>,
    /// Who wrote it.
    pub author: Option<String>,
    /// When it was written, as in the text.
    pub date: Option<String>,
    /// Where more is said, mostly URLs.
    pub references: Vec<String>,
    /// Which harmless events it matches.
    pub false_positives: Vec<String>,
}

named_enum! {
    /// How serious a match is, from the lowest.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Level {
        /// Marks the event. Nobody needs to look at it.
        Informational = "informational",
        /// Notable, but rarely an incident.
        Low = "low",
        /// Relevant: look at it from time to time.
        Medium = "medium",
        /// Relevant: look at it soon.
        High = "high",
        /// An incident.
        Critical = "critical",
    }
}

named_enum! {
    /// How mature a rule is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Status {
        /// Ready for production.
        Stable = "stable",
        /// May need adjustments.
        Test = "test",
        /// May report false positives.
        Experimental = "experimental",
        /// Replaced by another rule.
        Deprecated = "deprecated",
        /// Not usable as it is.
        Unsupported = "unsupported",
    }
}

impl About {
    /// Reads what a document says. A part that is only for people is left out if it has another type than it should,
    /// because no match depends on it.
    pub(crate) fn read(document: &Node) -> Result<About, LoadError> {
        let title = document.get("title");
        let title = title.ok_or_else(|| document.error(Problem::Missing("title")))?;
        let texts = |key| {
            let nodes = document.get(key).map_or(&[][..], Node::each);
            nodes
                .iter()
                .take(Limits::TAGS)
                .filter_map(|node| node.text().map(str::to_owned))
                .collect::<Vec<_>>()
        };
        let text = |key| Some(texts(key).join(", ")).filter(|text| !text.is_empty());
        Ok(About {
            id: text_of(document, "id")?.filter(|id| !id.is_empty()),
            name: document.get("name").and_then(Node::text).map(str::to_owned),
            title: title.need_text("title")?.to_owned(),
            level: named(document, "level", Level::ALL)?,
            status: named(document, "status", Status::ALL)?,
            tags: tags(document)?,
            description: text("description"),
            author: text("author"),
            date: text("date"),
            references: texts("references"),
            false_positives: texts("falsepositives"),
        })
    }

    /// Its ID and its name, as others refer to it: in small letters.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let names = [&self.id, &self.name].into_iter().flatten();
        names.map(|name| name.to_ascii_lowercase())
    }

    /// About how many bytes of memory it takes, besides itself.
    pub(crate) fn bytes(&self) -> usize {
        let one = [&self.id, &self.name, &self.description, &self.author, &self.date];
        let all = one.into_iter().flatten().chain([&self.title]);
        let all = all
            .chain(&self.tags)
            .chain(&self.references)
            .chain(&self.false_positives);
        all.map(|text| size_of::<String>() + text.len()).sum()
    }
}

fn tags(document: &Node) -> Result<Vec<String>, LoadError> {
    let tags = document.get("tags").map_or(&[][..], Node::each);
    if let Some(tag) = tags.get(Limits::TAGS) {
        return Err(tag.error(Problem::limit("tags of a rule", Limits::TAGS)));
    }
    tags.iter()
        .map(|tag| tag.need_text("a tag").map(str::to_owned))
        .collect()
}

/// The value of a key that takes one of some names.
fn named<T: Copy>(document: &Node, key: &'static str, all: &[(T, &str)]) -> Result<Option<T>, LoadError> {
    let Some(name) = text_of(document, key)? else {
        return Ok(None);
    };
    if let Some((value, _)) = all.iter().find(|(_, known)| known.eq_ignore_ascii_case(&name)) {
        return Ok(Some(*value));
    }
    let known = all.iter().map(|(_, name)| *name).collect::<Vec<_>>().join(", ");
    let at = document.get(key).map_or(document.at, |node| node.at);
    Err(Problem::Unknown { what: key, name, known }.at(at))
}
