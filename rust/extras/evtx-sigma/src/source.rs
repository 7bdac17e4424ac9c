//! What rules say about the events that they are for.

use std::fmt;

use crate::error::{LoadError, Problem};
use crate::limits::Limits;
use crate::yaml::Node;

/// Which events a rule is for. At least one of the three names is set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LogSource {
    /// A group of events of any product, such as `process_creation`.
    pub category: Option<String>,
    /// A product, such as `windows`.
    pub product: Option<String>,
    /// A log of a product, such as `security`.
    pub service: Option<String>,
}

impl LogSource {
    /// Reads the log source in a map.
    pub(crate) fn read(node: &Node) -> Result<LogSource, LoadError> {
        node.entries("logsource")?;
        let text = |key| text_of(node, key);
        LogSource {
            category: text("category")?,
            product: text("product")?,
            service: text("service")?,
        }
        .checked(node)
    }

    /// Reads the log sources of a rule: a map or a list of maps, in which each name can be a list.
    pub(crate) fn read_all(node: &Node) -> Result<Vec<LogSource>, LoadError> {
        let mut all = Vec::new();
        for map in node.each() {
            map.entries("logsource")?;
            let names = |key| names(map, key);
            let (categories, products, services) = (names("category")?, names("product")?, names("service")?);
            for category in &categories {
                for product in &products {
                    for service in &services {
                        if all.len() == Limits::LOG_SOURCES {
                            let problem = Problem::limit("log sources of a rule", Limits::LOG_SOURCES);
                            return Err(map.error(problem));
                        }
                        let source = LogSource {
                            category: category.clone(),
                            product: product.clone(),
                            service: service.clone(),
                        };
                        all.push(source.checked(map)?);
                    }
                }
            }
        }
        if all.is_empty() {
            Err(node.error(Problem::Empty("the list of log sources")))
        } else {
            Ok(all)
        }
    }

    /// Whether another log source has the names of this one, in any case, and perhaps more.
    pub(crate) fn includes(&self, other: &LogSource) -> bool {
        let is_one = |own: &Option<String>, other: &Option<String>| match (own, other) {
            (None, _) => true,
            (Some(own), Some(other)) => own.eq_ignore_ascii_case(other),
            (Some(_), None) => false,
        };
        is_one(&self.category, &other.category)
            && is_one(&self.product, &other.product)
            && is_one(&self.service, &other.service)
    }

    /// An error if it has no name.
    fn checked(self, node: &Node) -> Result<LogSource, LoadError> {
        match (&self.category, &self.product, &self.service) {
            (None, None, None) => Err(node.error(Problem::Missing("category, product or service"))),
            _ => Ok(self),
        }
    }
}

/// Its names, such as `category process_creation, product windows`.
impl fmt::Display for LogSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            ("category", &self.category),
            ("product", &self.product),
            ("service", &self.service),
        ];
        let given = names
            .iter()
            .filter_map(|(name, value)| Some(format!("{name} {}", value.as_ref()?)));
        f.write_str(&given.collect::<Vec<_>>().join(", "))
    }
}

/// The text of a key, if it has one.
pub(crate) fn text_of(node: &Node, key: &str) -> Result<Option<String>, LoadError> {
    node.get(key)
        .map(|value| value.need_text(key).map(str::to_owned))
        .transpose()
}

/// The texts of a key: several of a list, or `None` if it has no value.
fn names(node: &Node, key: &'static str) -> Result<Vec<Option<String>>, LoadError> {
    let Some(value) = node.get(key) else {
        return Ok(vec![None]);
    };
    match value.each() {
        [] => Err(value.error(Problem::Empty("this list of names"))),
        all => all
            .iter()
            .map(|one| one.need_text(key).map(|name| Some(name.to_owned())))
            .collect(),
    }
}
