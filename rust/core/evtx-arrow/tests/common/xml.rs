//! The XML of an event as a tree, and the names that values have in it.

use std::collections::{HashMap, HashSet};

use quick_xml::events::{BytesStart, Event};

/// An element of the XML of an event.
#[derive(Debug, Default)]
pub(crate) struct Element {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) content: Vec<Node>,
}

#[derive(Debug)]
pub(crate) enum Node {
    Element(Element),
    Text(String),
}

impl Element {
    fn new(start: &BytesStart<'_>) -> Self {
        let mut attributes = start.attributes();
        let attributes = attributes.with_checks(false).map(|attribute| {
            let attribute = attribute.expect("an attribute");
            let value = attribute.value.into_owned();
            let value = quick_xml::escape::unescape(&value).map_or(value.clone(), |value| value.into_owned());
            (attribute.key.0.to_owned(), value)
        });
        Element {
            name: start.name().0.to_owned(),
            attributes: attributes.collect(),
            content: Vec::new(),
        }
    }

    pub(crate) fn parse(xml: &str) -> Element {
        let mut reader = quick_xml::Reader::from_str(xml);
        reader.config_mut().check_end_names = false;
        let mut open = vec![Element::default()];
        let text =
            |open: &mut Vec<Element>, text: String| open.last_mut().expect("open").content.push(Node::Text(text));
        loop {
            match reader.read_event().unwrap_or_else(|error| panic!("{error} in {xml}")) {
                Event::Start(start) => open.push(Element::new(&start)),
                Event::Empty(start) => open
                    .last_mut()
                    .expect("open")
                    .content
                    .push(Node::Element(Element::new(&start))),
                Event::End(_) => {
                    let mut element = open.pop().expect("open");
                    element.read_payload();
                    open.last_mut().expect("balanced").content.push(Node::Element(element));
                }
                Event::Text(siblings) => text(&mut open, siblings.to_string()),
                Event::CData(siblings) => text(&mut open, siblings.to_string()),
                Event::GeneralRef(name) => {
                    let reference = format!("&{};", &*name);
                    let resolved = quick_xml::escape::unescape(&reference).map(|text| text.into_owned());
                    text(&mut open, resolved.unwrap_or(reference));
                }
                Event::Eof => break,
                _ => {}
            }
        }
        let document = open.pop().expect("the document");
        document.children().next().map(|_| ()).expect("a root");
        document
            .content
            .into_iter()
            .find_map(|node| match node {
                Node::Element(root) => Some(root),
                Node::Text(_) => None,
            })
            .expect("a root")
    }

    /// Columns show the texts of a payload, where XML shows its bytes.
    fn read_payload(&mut self) {
        let ([Node::Text(bytes)], "EventPayload" | "BinaryEventData") = (&mut self.content[..], &*self.name) else {
            return;
        };
        let unit = |at| {
            u16::from_str_radix(bytes.get(at..at + 4)?, 16)
                .ok()
                .map(u16::swap_bytes)
        };
        let units: Option<Vec<u16>> = (0..bytes.len()).step_by(4).map(unit).collect();
        let Some(text) = units.and_then(|units| String::from_utf16(&units).ok()) else {
            return;
        };
        let texts = text.trim_end_matches('\0');
        let is_text = |c: char| "\0\t\n\r".contains(c) || !c.is_control();
        if texts.len() < text.len() && texts.replace('\0', "").chars().count() > 3 && texts.chars().all(is_text) {
            *bytes = texts.replace('\0', "\n");
        }
    }

    /// `EventData`, or what an event has in its place.
    pub(crate) fn event_data(&self) -> Option<&Element> {
        let names = ["EventData", "DebugData", "BinaryEventData", "ProcessingErrorData"];
        self.children().find(|child| names.contains(&&*child.name))
    }

    pub(crate) fn children(&self) -> impl Iterator<Item = &Element> {
        self.content.iter().filter_map(|node| match node {
            Node::Element(element) => Some(element),
            Node::Text(_) => None,
        })
    }

    /// XPath's `string()`.
    pub(crate) fn text(&self) -> String {
        self.content
            .iter()
            .map(|node| match node {
                Node::Element(element) => element.text(),
                Node::Text(text) => text.clone(),
            })
            .collect()
    }

    /// The first match of a path of element names, and an attribute after `@`.
    pub(crate) fn xpath(&self, path: &str) -> Option<String> {
        let Some((step, rest)) = path.split_once('/') else {
            return match path.strip_prefix('@') {
                Some(name) => self
                    .attributes
                    .iter()
                    .find(|(key, _)| key == name)
                    .map(|(_, value)| value.clone()),
                None => self.children().find(|child| child.name == path).map(Element::text),
            };
        };
        self.children()
            .filter(|child| child.name == step)
            .find_map(|child| child.xpath(rest))
    }

    /// The leaves below the element, and the texts beside elements: the name that each carries, `None` for `Data` without one, and
    /// the text.
    pub(crate) fn leaves<'e>(&'e self, leaves: &mut Vec<(Option<&'e str>, String)>) {
        leaves.extend(self.numbered().into_iter().map(|(name, _, text)| (name, text)));
    }

    /// The same, with the number of each `Data` without a name.
    pub(crate) fn numbered(&self) -> Vec<(Option<&str>, usize, String)> {
        let mut leaves = Vec::new();
        self.leaves_of(Some(&self.name), &mut 0, &mut leaves);
        leaves
    }

    fn leaves_of<'e>(
        &'e self,
        own: Option<&'e str>,
        unnamed: &mut usize,
        leaves: &mut Vec<(Option<&'e str>, usize, String)>,
    ) {
        let is_text = |node: &Node| matches!(node, Node::Text(_));
        let mut number = 0;
        let is_leaf = self.children().next().is_none();
        for siblings in self.content.chunk_by(|a, b| is_text(a) && is_text(b)) {
            if let [Node::Element(child)] = siblings {
                let given = child
                    .attributes
                    .iter()
                    .find(|(key, value)| key == "Name" && !value.is_empty());
                let given = given.filter(|_| is_called(child)).map(|(_, value)| value.as_str());
                let name = given.or((child.name != "Data").then_some(child.name.as_str()));
                if child.children().next().is_some() {
                    child.leaves_of(name, unnamed, leaves);
                } else {
                    *unnamed += usize::from(name.is_none());
                    leaves.push((name, *unnamed, child.text()));
                }
                continue;
            }
            let texts = siblings.iter().map(|node| match node {
                Node::Text(text) => text.as_str(),
                Node::Element(_) => "",
            });
            let text: String = texts.collect();
            if !is_leaf && !text.trim().is_empty() {
                if own.is_none() && number == 0 {
                    *unnamed += 1;
                    number = *unnamed;
                }
                leaves.push((own, number, text));
            }
        }
    }
}

/// Whether an element is called by its `Name`.
pub(crate) fn is_called(element: &Element) -> bool {
    ["Data", "ComplexData"].contains(&&*element.name)
}

/// The leaves of `UserData` in the XML of an event, and the attributes of its elements, by the names that their columns have.
pub(crate) fn user_leaves(xml: &str) -> Vec<(String, String)> {
    let event = Element::parse(xml);
    let Some(element) = event.children().find(|child| child.name == "UserData") else {
        return Vec::new();
    };
    let leaves = element.numbered();
    let roots = element.children();
    let attributes = roots.flat_map(|root| root.attributes.iter().map(move |(key, value)| (root, key, value)));
    let is_name = |root: &Element, key: &str| key == "Name" && is_called(root);
    let attributes =
        attributes.filter(|(root, key, value)| !(key.starts_with("xmlns") || value.is_empty() || is_name(root, key)));
    let attributes = attributes.map(|(root, key, value)| (format!("{}.{key}", root.name), value.clone()));
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut keys = HashSet::new();
    let leaves = leaves.into_iter().map(|(name, number, text)| {
        let name = name.map_or_else(|| format!("param{number}"), str::to_owned);
        (name, text)
    });
    let keyed = attributes.chain(leaves).map(|(base, text)| {
        let mut key = base.clone();
        while !keys.insert(key.clone()) {
            let count = seen.entry(base.clone()).or_insert(0);
            *count += 1;
            key = format!("{base}_{count}");
        }
        (key, text)
    });
    keyed.collect()
}
