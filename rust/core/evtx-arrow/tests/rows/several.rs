//! Events with several `EventData`, or other elements with fields, and several `UserData`: each way to ask for their
//! fields gives all of them, wherever the elements are.

use std::collections::{BTreeSet, HashSet};
use std::iter::once;
use std::sync::Arc;

use crate::common::matches::found;
use crate::common::{cell, cells, column, entries, read};
use evtx_arrow::Options;
use evtx_detect::Rules;
use evtx_sigma::{LogSources, Placeholders, RuleForEvents, RuleSet, load_rules};
use evtx_writer::{Content, Element, Event, Fragment, LogWriter, Stream, Substitution, Template, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// The type of a stream.
const BINXML: u8 = 0x21;

/// Where an element is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Encoding {
    /// In the template of the event. A value decides whether the record has it, if that is known.
    Inline(Option<bool>),
    /// In a stream, spelled out or with a template. Whether it is in that of the element before, if that is in one.
    Spelled(bool),
    Templated(bool),
}

/// A field: its name, if it has one, and its values.
type Leaf = (Option<&'static str>, Vec<&'static str>);

#[derive(Debug, Clone)]
struct Drawn {
    name: &'static str,
    encoding: Encoding,
    leaves: Vec<Leaf>,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let texts = || select(vec!["", "one", "two", "three", "0x10", "<&>"]);
    let several = select(vec!["one", "two", "three"]);
    let values = prop_oneof![5 => vec(texts(), 1), 1 => vec(several, 2..4)];
    let name = prop_oneof![3 => select(vec!["A", "B", "A_1", "b c"]).prop_map(Some), 1 => Just(None)];
    let encoding = prop_oneof![
        3 => Just(Encoding::Inline(None)),
        1 => any::<bool>().prop_map(|is_there| Encoding::Inline(Some(is_there))),
        2 => any::<bool>().prop_map(Encoding::Spelled),
        3 => any::<bool>().prop_map(Encoding::Templated),
    ];
    let element = select(vec![
        "EventData",
        "EventData",
        "EventData",
        "UserData",
        "DebugData",
        "ProcessingErrorData",
    ]);
    (element, encoding, vec((name, values), 0..4)).prop_map(|(name, encoding, leaves)| Drawn { name, encoding, leaves })
}

impl Drawn {
    fn is_there(&self) -> bool {
        self.encoding != Encoding::Inline(Some(false))
    }

    /// The element, whose values are substitutions from `values.len()` on, or are spelled out.
    fn element(&self, values: Option<&mut Vec<Value>>) -> Element {
        let mut values = values;
        let leaf = |(name, texts): &Leaf| {
            let leaf = match (*name, self.name) {
                // The leaves of `UserData` have elements of their own.
                (Some(name), "UserData") => Element::new(name.replace(' ', "-")),
                (name, _) => name
                    .iter()
                    .fold(Element::new("Data"), |leaf, name| leaf.attribute("Name", *name)),
            };
            match &mut values {
                None => vec![leaf.text(texts[0])],
                Some(values) => {
                    values.push(match &texts[..] {
                        [""] => Value::Null,
                        [text] => Value::string(*text),
                        texts => Value::StringArray(texts.iter().map(|&text| text.into()).collect()),
                    });
                    vec![leaf.substitution(Substitution::new(values.len() as u16 - 1, 1))]
                }
            }
        };
        let leaves: Vec<Element> = self.leaves().iter().flat_map(leaf).collect();
        let with = |element: Element| leaves.into_iter().fold(element, Element::child);
        match self.name {
            "UserData" => Element::new("UserData").child(with(Element::new("Inner"))),
            name => with(Element::new(name)),
        }
    }

    /// The fields as they are written: a spelled-out one has one value, and those of `UserData` have names.
    fn leaves(&self) -> Vec<Leaf> {
        let is_spelled = matches!(self.encoding, Encoding::Spelled(_));
        let leaves = self
            .leaves
            .iter()
            .filter(|(name, _)| self.name != "UserData" || name.is_some());
        let leaves = leaves.map(|(name, values)| match is_spelled {
            true => (*name, vec![values[0]]),
            false => (*name, values.clone()),
        });
        leaves.collect()
    }
}

/// The event of some elements.
fn event(id: u8, elements: &[Drawn]) -> Event {
    let mut values = Vec::new();
    let mut content: Vec<Content> = vec![Content::Element(
        Element::new("System").child(Element::new("Channel").text("Any")),
    )];
    let mut streams: Vec<(usize, Vec<Fragment>)> = Vec::new();
    let mut is_after_stream = false;
    for (number, drawn) in elements.iter().enumerate() {
        let (fragment, joins) = match drawn.encoding {
            Encoding::Inline(is_there) => {
                let element = drawn.element(Some(&mut values));
                let element = match is_there {
                    None => element,
                    Some(is_there) => {
                        values.push(if is_there { Value::UInt32(1) } else { Value::Null });
                        element.depends_on(values.len() as u16 - 1)
                    }
                };
                content.push(Content::Element(element));
                is_after_stream = false;
                continue;
            }
            Encoding::Spelled(joins) => (Fragment::Element(drawn.element(None)), joins),
            Encoding::Templated(joins) => {
                let mut own = Vec::new();
                let template = Template::new(
                    [id, 1, number as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                    drawn.element(Some(&mut own)),
                );
                (Fragment::Instance(Event::new(&template, own)), joins)
            }
        };
        if is_after_stream && joins {
            streams.last_mut().expect("a stream").1.push(fragment);
        } else {
            content.push(Content::Substitution(Substitution::new(values.len() as u16, BINXML)));
            streams.push((values.len(), vec![fragment]));
            values.push(Value::Null);
        }
        is_after_stream = true;
    }
    for (at, fragments) in streams {
        values[at] = Value::BinXml(Stream::new(fragments));
    }
    let root = content.into_iter().fold(Element::new("Event"), Element::content);
    Event::new(&Template::new([id; 16], root), values)
}

/// The names and values of fields in the order of the event.
fn leaves(elements: &[Drawn], of_user_data: bool) -> Vec<Leaf> {
    let wanted = elements
        .iter()
        .filter(|drawn| (drawn.name == "UserData") == of_user_data);
    wanted
        .filter(|drawn| drawn.is_there())
        .flat_map(Drawn::leaves)
        .collect()
}

/// What the column `event_data` has, as docs/read_evtx.md says.
fn expected_map(elements: &[Drawn]) -> Option<Vec<(String, String)>> {
    let has_fields = |drawn: &Drawn| drawn.name != "UserData" && drawn.is_there();
    if !elements.iter().any(has_fields) {
        return None;
    }
    let (mut map, mut number, mut taken) = (Vec::new(), 0, HashSet::new());
    for (name, values) in leaves(elements, false) {
        let Some(name) = name else {
            for value in values {
                number += 1;
                map.push((format!("param{number}"), value.to_owned()));
            }
            continue;
        };
        let numbered = (1..).map(|number| format!("{name}_{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        let name = names.find(|name| taken.insert(name.clone())).expect("a name");
        let value = match &values[..] {
            [value] => (*value).to_owned(),
            values => format!("[\"{}\"]", values.join("\",\"")),
        };
        map.push((name, value));
    }
    Some(map)
}

/// The fields of the rules.
const OF_RULES: [&str; 6] = ["A", "B", "A_1", "bc", "b-c", "Data"];

fn rules() -> Arc<Rules> {
    let rule = |name: &str, value: &str| {
        let text = format!(
            "title: '{name}={value}'\nlogsource: {{product: windows}}\ndetection: {{a: {{{name}: {value}}}, condition: a}}"
        );
        let rule = load_rules(&text, &Placeholders::new()).remove(0).expect("a rule");
        let alternatives = LogSources::builtin().resolve(&rule.log_sources).expect("an entry");
        RuleForEvents { rule, alternatives }
    };
    let rules: Vec<_> = OF_RULES
        .iter()
        .flat_map(|name| ["one", "two", "three"].map(|value| rule(name, value)))
        .collect();
    let files = vec!["".into(); rules.len()];
    Arc::new(Rules::new(RuleSet::new(rules), files))
}

/// The names by which rules find a field after those with the other keys of `event_data`: the second `A` has the key `A_1`, and a field
/// `A_1` looks like it.
fn names(name: Option<String>, keys: &mut BTreeSet<String>) -> BTreeSet<String> {
    let Some(name) = name else {
        return ["Data".to_owned()].into();
    };
    let second = (1..).map(|number| format!("{name}_{number}"));
    let key = once(name.clone())
        .chain(second)
        .find(|key| !keys.contains(key))
        .expect("a key");
    let first = name
        .strip_suffix("_1")
        .filter(|first| key == name && keys.contains(*first));
    let names = [first.unwrap_or(&name).to_owned(), key.clone()];
    keys.insert(key);
    names
        .into_iter()
        .filter(|name| OF_RULES.contains(&name.as_str()))
        .collect()
}

proptest! {
    #![proptest_config(crate::common::generated(150))]

    #[test]
    fn every_field_of_every_element_is_there(events in vec(vec(drawn(), 1..5), 1..6)) {
        let mut log = LogWriter::new(1);
        for (id, elements) in (1..).zip(&events) {
            log.write(132_223_104_000_000_000, &event(id, elements)).expect("it fits");
        }
        let file = log.finish();
        let options = Options { xml: true, json: true, text: true, fields: true, ..Options::default() };
        // How an event is read makes no difference.
        prop_assert_eq!(
            cells(&file, "several", options, false),
            cells(&file, "several", options, true)
        );
        for columns in [&["event_data", "error"][..], &["event_data"], &["event_data", "user_data", "fields"]] {
            let columns: Vec<_> = columns.iter().map(|name| column(&options, name)).collect();
            let batches = read(&file, "several", options, &columns).expect("a log");
            let maps: Vec<_> = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|row| entries(batch, row))).collect();
            let shown = |map: Option<Vec<(String, Option<String>)>>| {
                map.map(|map| map.into_iter().map(|(name, value)| (name, value.unwrap_or_default())).collect::<Vec<_>>())
            };
            let maps: Vec<_> = maps.into_iter().map(shown).collect();
            prop_assert_eq!(maps, events.iter().map(|elements| expected_map(elements)).collect::<Vec<_>>());
        }
        let rules = rules();
        let mut expected = BTreeSet::new();
        for (id, elements) in (1_u64..).zip(&events) {
            let mut keys = BTreeSet::new();
            for is_user in [false, true] {
                for (name, values) in leaves(elements, is_user) {
                    let names = names(name.map(|name| name.replace(' ', if is_user { "-" } else { "" })), &mut keys);
                    let there = values.into_iter().filter(|value| ["one", "two", "three"].contains(value));
                    expected.extend(there.flat_map(|value| names.iter().map(move |name| (id, format!("{name}={value}")))));
                }
            }
        }
        for is_tree in [false, true] {
            let found: BTreeSet<_> = found(&file, "several", &rules, is_tree).into_keys().collect();
            prop_assert_eq!(&found, &expected, "as a tree: {}", is_tree);
        }
    }
}

/// Texts beside elements are named as in one element: those of an unnamed `Data` share a number, wherever the element is.
#[test]
fn texts_beside_elements_are_numbered_on() {
    let leaf = |name: &str, text: &str| Element::new(name).text(text);
    let event_data = || {
        let inner = Element::new("Data").text("p").child(leaf("Data", "x")).text("q");
        let event_data = Element::new("EventData").text("beside").child(inner);
        event_data.child(leaf("Data", "y"))
    };
    // No event has this GUID.
    let template = Template::new([0xff; 16], event_data());
    let in_stream = |fragment| Value::BinXml(Stream::new(vec![fragment]));
    let encodings = [
        None,
        Some(in_stream(Fragment::Element(event_data()))),
        Some(in_stream(Fragment::Instance(Event::new(&template, vec![])))),
    ];
    let mut log = LogWriter::new(1);
    for (id, pair) in (1..).zip(
        encodings
            .iter()
            .flat_map(|first| encodings.iter().map(move |second| [first, second])),
    ) {
        let mut values = Vec::new();
        let mut root = Element::new("Event").child(Element::new("System"));
        for encoding in pair {
            root = match encoding {
                None => root.child(event_data()),
                Some(stream) => {
                    values.push(stream.clone());
                    root.substitution(Substitution::new(values.len() as u16 - 1, BINXML))
                }
            };
        }
        let event = Event::new(&Template::new([id; 16], root), values);
        log.write(132_223_104_000_000_000, &event).expect("it fits");
    }
    let file = log.finish();
    let options = Options::default();
    let batches = read(&file, "texts", options, &[column(&options, "event_data")]).expect("a log");
    let rows = batches
        .iter()
        .flat_map(|batch| (0..batch.num_rows()).map(|row| entries(batch, row)));
    let expected = [
        ("EventData", "beside"),
        ("param1", "p"),
        ("param2", "x"),
        ("param1_1", "q"),
        ("param3", "y"),
        ("EventData_1", "beside"),
        ("param4", "p"),
        ("param5", "x"),
        ("param4_1", "q"),
        ("param6", "y"),
    ];
    let expected: Vec<_> = expected
        .iter()
        .map(|&(name, value)| (name.to_owned(), Some(value.to_owned())))
        .collect();
    let found: Vec<_> = rows.collect();
    assert_eq!(found, vec![Some(expected); 9]);
}

/// What is read of a damaged event is merged, too.
#[test]
fn a_damaged_event_has_the_fields_of_its_valid_elements() {
    let data = |index| {
        Element::new("Data")
            .attribute("Name", "A")
            .substitution(Substitution::new(index, 1))
    };
    let inner = Template::new([8; 16], Element::new("EventData").child(data(0)));
    let valid = Fragment::Instance(Event::new(&inner, vec![Value::string("two")]));
    let streams = [1, 2].map(|index| Content::Substitution(Substitution::new(index, BINXML)));
    let root = Element::new("Event").child(Element::new("EventData").child(data(0)));
    let root = streams.into_iter().fold(root, Element::content);
    let values = vec![
        Value::string("one"),
        Value::BinXml(Stream::new(vec![valid])),
        // A token that does not exist.
        Value::Raw(BINXML, vec![0x0f, 1, 1, 0, 0x3f]),
    ];
    let mut log = LogWriter::new(1);
    log.write(
        132_223_104_000_000_000,
        &Event::new(&Template::new([7; 16], root), values),
    )
    .expect("it fits");
    let file = log.finish();
    let options = Options::default();
    let columns = ["event_data", "error"].map(|name| column(&options, name));
    let batch = read(&file, "damaged", options, &columns).expect("a log").remove(0);
    let pair = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
    assert_eq!(entries(&batch, 0), Some(vec![pair("A", "one"), pair("A_1", "two")]));
    assert!(cell(&batch, "error", 0).is_some());
    let found = found(&file, "damaged", &rules(), false);
    let titles: Vec<_> = found.keys().map(|(_, title)| title.as_str()).collect();
    assert_eq!(titles, ["A=one", "A=two", "A_1=two"]);
}
