//! Compares rendered messages with those that Windows wrote.
//!
//! Set `EVTX_JUDGE` to a file of JSON lines that `tools/judge_messages.py` wrote, and `EVTX_MESSAGE_CATALOG` to a
//! catalog of messages. Prints how many messages are equal byte for byte, and an example of each kind of
//! difference.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::sync::Arc;

use evtx_codes::{Answer, Code, Lookup, Source};
use evtx_format::Interrupt;
use evtx_format::value::{Scalar, ValueType};
use evtx_messages::render::{Declared, MAX_RENDERED, Parameters, render};
use evtx_messages::template::Template;
use evtx_messages::*;
use serde_json::{Map, Value};

/// Provider in lower case, event ID.
type Kind = (String, u16);

/// A version and its fields.
type Version = (u8, Arc<[Field]>);

#[derive(Default)]
struct Judge {
    /// The fields of each version.
    fields: HashMap<Kind, Vec<Version>>,
    /// All texts of an event, in any version.
    texts: HashMap<Kind, Vec<String>>,
    parameters: HashMap<(String, u32), String>,
    catalog: Option<Catalog>,
    results: BTreeMap<(String, &'static str), u64>,
    examples: BTreeMap<(Kind, String), (u64, String)>,
}

impl Judge {
    fn add_fields(&mut self) {
        for event in evtx_catalog::all_events() {
            let field = |(name, value_type): &(Arc<str>, evtx_format::value::ValueType)| Field {
                name: name.clone(),
                in_type: value_type.to_byte(),
                ..Field::default()
            };
            let Ok(id) = u16::try_from(event.id) else { continue };
            let kind = (event.provider.to_lowercase(), id);
            self.fields
                .entry(kind)
                .or_default()
                .push((event.version, event.fields.iter().map(field).collect()));
        }
    }

    fn add_catalog(&mut self, path: &str) {
        let open = || Catalog::open(std::fs::read(path).expect("a file")).expect("a catalog");
        let mut rows = catalog::Rows::new(open());
        while let Some((row, _)) = rows.next(Interrupt::NEVER).expect("a row") {
            match (row.kind, row.provider, row.event_id, row.text, row.message_id) {
                (MessageKind::Event, Some(provider), Some(id), Some(text), _) => {
                    let texts = self.texts.entry((provider.to_lowercase(), id)).or_default();
                    if !texts.iter().any(|known| **known == *text) {
                        texts.push(text.to_string());
                    }
                }
                (MessageKind::Parameter, Some(provider), _, Some(text), Some(id)) => {
                    self.parameters.insert((provider.to_lowercase(), id), text.to_string());
                }
                _ => {}
            }
        }
        self.catalog = Some(open());
    }

    /// The fields of the version of an event. Without a version, of the one whose fields the event has.
    fn fields(&self, kind: &Kind, event: &Event) -> Option<Version> {
        let versions = self.fields.get(kind)?;
        let has_all = |fields: &[Field]| fields.iter().all(|field| event.value(&field.name).is_some());
        let fitting = versions.iter().filter(|(version, fields)| match event.version {
            Some(wanted) => *version == wanted,
            None => has_all(fields),
        });
        fitting.max_by_key(|(_, fields)| fields.len()).cloned()
    }

    fn judge(&mut self, event: &Event) {
        let kind = (event.provider.to_lowercase(), event.event_id);
        let class = self.class(&kind, event);
        *self.results.entry((event.provider.clone(), class)).or_default() += 1;
    }

    fn class(&mut self, kind: &Kind, event: &Event) -> &'static str {
        let Some((version, fields)) = self.fields(kind, event) else {
            return "no fields of this version";
        };
        let Some(texts) = self.texts.get(kind) else {
            return "no text";
        };
        let declared: Vec<_> = fields.iter().map(|field| (field, event.value(&field.name))).collect();
        // Some writers of JSON leave out what is empty. Some builds of Windows lack fields of others of the same version.
        let present: Vec<_> = declared.iter().copied().filter(|(_, value)| value.is_some()).collect();
        let has_lines = |text: &String| text.contains("%n") || text.contains('\n');
        if event.message.contains('\n') && !texts.iter().any(has_lines) {
            return "text without its line breaks";
        }
        if texts
            .iter()
            .all(|text| Template::parse(text).insertions() > declared.len())
        {
            return "values missing in JSON";
        }
        let source = Lookup::Name.source("parameters").expect("the table");
        let parameters = |id: u32| {
            // The catalog has the parameters of the log under the name that its provider had before Vista.
            let name = if kind.0 == "microsoft-windows-security-auditing" {
                "security"
            } else {
                &kind.0
            };
            let own = self.parameters.get(&(name.to_owned(), id));
            own.map(|text| Cow::Borrowed(&**text)).or_else(|| code(source, id))
        };
        let mut nearest = (usize::MAX, String::new());
        for text in texts {
            // The values as they are, and as the writers of the datasets may have changed them, each a class of its own.
            for (values, change, result) in [
                (&declared, as_it_is as fn(&str) -> String, "equal"),
                (&declared, with_line_breaks, "equal with CR LF in values"),
                (&declared, without_escapes, "equal without escapes of XML"),
                (&present, as_it_is, "equal without absent fields"),
                (&present, with_line_breaks, "equal without absent fields, with CR LF"),
            ] {
                let values: Vec<_> = values
                    .iter()
                    .map(|(field, value)| (*field, change(value.map_or("", String::as_str))))
                    .collect();
                let rendered = |text: &str| rendered(text, &values, &parameters);
                let out = rendered(text);
                if out.trim_end() == event.message.trim_end() {
                    let key = EventKey {
                        provider: &event.provider,
                        guid: None,
                        event_id: event.event_id,
                        version,
                        qualifiers: None,
                        insertions: values.len(),
                        names: &[],
                    };
                    let found = self
                        .catalog
                        .as_ref()
                        .and_then(|catalog| catalog.find(&key).expect("no damage"));
                    let Some(message) = found else {
                        return "equal, but none is found";
                    };
                    let out = rendered(&message.text);
                    if out.trim_end() == event.message.trim_end() {
                        return result;
                    }
                    let key = (kind.clone(), "another is found".to_owned());
                    let example = self.examples.entry(key).or_default();
                    example.0 += 1;
                    example.1 = difference(&out, &event.message).1;
                    return "equal, but another is found";
                }
                nearest = nearest.min(difference(&out, &event.message));
            }
        }
        let of_field = declared.iter().filter(|(_, value)| value.is_none());
        let missing: Vec<_> = of_field.map(|(field, _)| &*field.name).collect();
        let example = self
            .examples
            .entry((kind.clone(), format!("missing in JSON: {missing:?}")))
            .or_default();
        example.0 += 1;
        if example.1.is_empty() {
            example.1 = nearest.1;
        }
        if !missing.is_empty() {
            return "values missing in JSON";
        }
        // Which part of the message differs? The rest of it must be equal.
        let fits = |is_open: fn(&Field) -> bool, parameters: &Parameters<'_>| {
            [with_line_breaks, without_escapes].iter().any(|change| {
                let values = declared.iter().map(|(field, value)| {
                    if is_open(field) {
                        (*field, OPEN.to_string())
                    } else {
                        (*field, change(value.map_or("", String::as_str)))
                    }
                });
                let values: Vec<_> = values.collect();
                let mut forms = texts.iter().map(|text| rendered(text, &values, parameters));
                forms.any(|form| has_form(&event.message, &form))
            })
        };
        let open = |_| Some(Cow::Owned(OPEN.to_string()));
        if !fits(|_| true, &parameters) {
            "text of another version"
        } else if fits(|_| false, &open) {
            "parameter of another text"
        } else if fits(|field| field.name.eq_ignore_ascii_case("ProcessId"), &parameters) {
            "process ID of the header in JSON"
        } else {
            "value differs"
        }
    }
}

/// Stands for any text.
const OPEN: char = '\u{1}';

/// Whether `message` is `form`, in which [`OPEN`] stands for any text.
fn has_form(message: &str, form: &str) -> bool {
    let mut parts = form.trim_end().split(OPEN);
    let Some(mut rest) = message.trim_end().strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

fn rendered(text: &str, values: &[(&Field, String)], parameters: &Parameters<'_>) -> String {
    let fields: Vec<_> = values.iter().map(|(field, _)| (*field).clone()).collect();
    let stored: Vec<_> = values.iter().map(|(field, value)| stored(field, value)).collect();
    let values: Vec<_> = stored
        .iter()
        .zip(values)
        .map(|(stored, (_, text))| match stored {
            Some((value_type, declared, bytes)) => {
                Insertion::Value(evtx_format::value::Value::new(*value_type, bytes)).declared_as(*declared)
            }
            None => Insertion::Text(text),
        })
        .collect();
    let declared = Declared {
        fields: &fields,
        maps: &[],
    };
    let (template, mut out) = (Template::parse(text), Vec::new());
    render(
        (text, &template),
        &values[..],
        declared,
        parameters,
        &mut out,
        MAX_RENDERED,
    );
    String::from_utf8(out).expect("UTF-8")
}

/// A hexadecimal number or a pointer as logs store it, with the type that the template declares.
fn stored(field: &Field, text: &str) -> Option<(Scalar, ValueType, [u8; 8])> {
    let declared = ValueType::from_byte(field.in_type)?;
    let number = u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()?;
    let is_hex = matches!(declared.scalar, Scalar::HexInt32 | Scalar::HexInt64 | Scalar::SizeT);
    is_hex.then(|| (Scalar::HexInt64, declared, number.to_le_bytes()))
}

fn code(source: Source, id: u32) -> Option<Cow<'static, str>> {
    match Lookup::Name.answer(source, Code::Text(&format!("{id}"))) {
        Answer::Text(text) => Some(text),
        _ => None,
    }
}

/// The values in JSON come from XML. Some writers keep its escapes, and parsers change its line breaks.
fn as_it_is(value: &str) -> String {
    value.to_owned()
}

fn with_line_breaks(value: &str) -> String {
    value.replace("\r\n", "\n").replace('\n', "\r\n")
}

fn without_escapes(value: &str) -> String {
    let value = value
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'");
    with_line_breaks(&value.replace("&amp;", "&"))
}

/// The number of words that differ, and where the first difference is.
fn difference(ours: &str, theirs: &str) -> (usize, String) {
    let (a, b): (Vec<_>, Vec<_>) = (ours.split_whitespace().collect(), theirs.split_whitespace().collect());
    let words = a.iter().zip(&b).filter(|(a, b)| a != b).count() + a.len().abs_diff(b.len());
    let same = ours.chars().zip(theirs.chars()).take_while(|(a, b)| a == b).count();
    let from = |text: &str| text.chars().skip(same.saturating_sub(40)).take(90).collect::<String>();
    (
        words,
        format!("{words} words; ours {:?} theirs {:?}", from(ours), from(theirs)),
    )
}

struct Event {
    provider: String,
    event_id: u16,
    version: Option<u8>,
    message: String,
    /// By names, and by names in lower case.
    fields: HashMap<String, String>,
}

impl Event {
    /// The value of a field. Some names differ from those of the provider only in case.
    fn value(&self, name: &str) -> Option<&String> {
        self.fields.get(name).or_else(|| self.fields.get(&name.to_lowercase()))
    }

    fn of(json: &Map<String, Value>) -> Option<Self> {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        Some(Event {
            provider: json.get("SourceName")?.as_str()?.to_owned(),
            event_id: json.get("EventID")?.as_u64()?.try_into().ok()?,
            version: json
                .get("Version")
                .and_then(Value::as_u64)
                .and_then(|version| version.try_into().ok()),
            message: json.get("Message")?.as_str()?.to_owned(),
            fields: json
                .iter()
                .map(|(name, value)| (name.to_lowercase(), text(value)))
                .collect(),
        })
    }
}

#[test]
fn messages_are_those_of_windows() {
    let (Ok(events), Ok(catalog)) = (std::env::var("EVTX_JUDGE"), std::env::var("EVTX_MESSAGE_CATALOG")) else {
        eprintln!("skipped: EVTX_JUDGE or EVTX_MESSAGE_CATALOG is not set");
        return;
    };
    let mut judge = Judge::default();
    judge.add_fields();
    judge.add_catalog(&catalog);
    for line in BufReader::new(std::fs::File::open(events).expect("a file")).lines() {
        if let Some(event) = serde_json::from_str(&line.expect("a line"))
            .ok()
            .as_ref()
            .and_then(Event::of)
        {
            judge.judge(&event);
        }
    }
    let mut totals = BTreeMap::<_, u64>::new();
    for ((provider, class), count) in &judge.results {
        println!("{count:>8} {class:<28} {provider}");
        *totals.entry(*class).or_default() += count;
    }
    println!("{totals:?}");
    let mut examples: Vec<_> = judge.examples.iter().collect();
    examples.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for ((kind, missing), (count, example)) in examples.into_iter().take(60) {
        println!("{count:>7} {kind:?} {missing}: {example}");
    }
    // Of the events for which the text, the fields, the values and the parameters are there.
    let count = |class: &str| totals.get(class).copied().unwrap_or_default();
    let (equal, other) = (
        count("equal"),
        count("value differs") + count("equal, but another is found"),
    );
    assert!(equal > 0 && other * 1000 <= equal, "{other} of {equal} differ");
}
