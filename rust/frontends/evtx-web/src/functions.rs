//! The functions that the macros call, for many rows at a time.

use evtx_codes::{Answer, Code, Event, Lookup};
use serde_json::Value;

/// The length of NULL among packed texts.
const NULL: u32 = u32::MAX;

/// Packed texts: before each its length in bytes, in 4 bytes from the lowest; NULL is a length alone.
struct Packed<'b>(&'b [u8]);

impl<'b> Iterator for Packed<'b> {
    type Item = Option<&'b str>;

    fn next(&mut self) -> Option<Self::Item> {
        let (len, rest) = self.0.split_first_chunk()?;
        let len = u32::from_le_bytes(*len);
        let (text, rest) = if len == NULL {
            (None, rest)
        } else {
            let (bytes, rest) = rest.split_at_checked(len as usize)?;
            (Some(str::from_utf8(bytes).unwrap_or_default()), rest)
        };
        self.0 = rest;
        Some(text)
    }
}

/// Calls a function for rows of packed arguments, and returns its packed results.
///
/// - `code`, for a lookup (`name`, `names`, `meaning` or `text`), the name of a table and a code: what the table has for the
///   code. Names are a list as DuckDB writes it.
/// - `details`, for a provider, an event ID, keys and values, the name for a field `#text`, and values that are left out: the
///   fields of an event as one line. Each of the lists is a text of [`items`].
/// - `user_data`, for a JSON document: what the macro `evtx_data_rows` makes of it, as DuckDB casts a struct.
///
/// # Errors
/// A text if there is no such function or no such table.
pub(crate) fn call(name: &str, count: usize, input: &[u8]) -> Result<Vec<u8>, String> {
    let mut packed = Packed(input);
    let mut out = Vec::new();
    let mut row = Vec::new();
    loop {
        row.clear();
        row.extend(packed.by_ref().take(count));
        let result = match (name, &row[..]) {
            (_, []) => return Ok(out),
            ("code", &[Some(lookup), Some(table), Some(code)]) => code_of(lookup, table, code)?,
            ("details", &[provider, event_id, Some(fields), root, shown]) => {
                details(provider, event_id, fields, root, shown)
            }
            ("user_data", &[Some(json)]) => user_data(json),
            ("code" | "details" | "user_data", _) => None,
            _ => return Err(format!("there is no function {name}")),
        };
        let len = result.as_ref().map_or(NULL, |text| text.len() as u32);
        out.extend(len.to_le_bytes());
        out.extend(result.unwrap_or_default().into_bytes());
    }
}

fn code_of(lookup: &str, table: &str, code: &str) -> Result<Option<String>, String> {
    let lookup = Lookup::named(lookup);
    let source = lookup.source(table)?;
    Ok(match lookup.answer(source, Code::Text(code)) {
        Answer::Null => None,
        Answer::Text(text) => Some(text.into_owned()),
        Answer::List(texts) => {
            let texts: Vec<_> = texts.iter().map(|text| quoted(text)).collect();
            Some(format!("[{}]", texts.join(", ")))
        }
    })
}

/// The items of a list that SQL has made a text: the length of each in bytes, a colon and its text, and a hyphen for NULL.
fn items(mut text: &str) -> Vec<Option<&str>> {
    let mut items = Vec::new();
    while !text.is_empty() {
        let (item, rest) = match text.strip_prefix('-') {
            Some(rest) => (None, rest),
            None => {
                let found = text
                    .split_once(':')
                    .and_then(|(len, rest)| rest.split_at_checked(len.parse().ok()?));
                let Some((item, rest)) = found else { break };
                (Some(item), rest)
            }
        };
        items.push(item);
        text = rest;
    }
    items
}

fn details(
    provider: Option<&str>,
    event_id: Option<&str>,
    fields: &str,
    root: Option<&str>,
    shown: Option<&str>,
) -> Option<String> {
    let fields: Vec<_> = items(fields)
        .chunks_exact(2)
        .filter_map(|pair| Some((pair[0]?, pair[1]?)))
        .collect();
    let shown: Vec<_> = items(shown.unwrap_or_default()).into_iter().flatten().collect();
    let event = Event {
        provider: provider.unwrap_or_default(),
        event_id: event_id.and_then(|id| id.parse().ok()).unwrap_or_default(),
        root: root.unwrap_or_default(),
        fields: &fields,
        shown: &shown,
    };
    event.details()
}

/// A text in a nested value, as DuckDB casts it back.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// An object as a map from its keys to the texts of its values, as DuckDB casts it; `NULL` for any other value.
fn map_of(value: Option<&Value>) -> String {
    let Some(entries) = value.and_then(Value::as_object) else {
        return "NULL".to_owned();
    };
    let shown = |value: &Value| match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => quoted(text),
        value => quoted(&value.to_string()),
    };
    let entries: Vec<_> = entries
        .iter()
        .map(|(key, value)| format!("{}={}", quoted(key), shown(value)))
        .collect();
    format!("{{{}}}", entries.join(", "))
}

fn user_data(json: &str) -> Option<String> {
    let document: Value = serde_json::from_str(json).ok()?;
    let (element, first) = document.as_object()?.iter().next()?;
    let content =
        Some(first).filter(|first| first.is_object() && document.as_object().is_some_and(|all| all.len() == 1));
    let attributes = map_of(content.and_then(|content| content.get("#attributes")));
    let fields = map_of(content.or(Some(&document)));
    let element = quoted(element);
    Some(format!(
        "{{'element': {element}, 'attributes': {attributes}, 'fields': {fields}}}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(texts: &[Option<&str>]) -> Vec<u8> {
        let mut out = Vec::new();
        for text in texts {
            out.extend(text.map_or(NULL, |text| text.len() as u32).to_le_bytes());
            out.extend(text.unwrap_or_default().as_bytes());
        }
        out
    }

    fn called(name: &str, count: usize, arguments: &[Option<&str>]) -> Vec<Option<String>> {
        let answer = call(name, count, &packed(arguments)).expect("a function");
        Packed(&answer).map(|text| text.map(str::to_owned)).collect()
    }

    #[test]
    fn a_row_has_a_result_each_and_null_has_none() {
        let rows = [
            Some("name"),
            Some("logon_type"),
            Some("3"),
            Some("name"),
            Some("logon_type"),
            None,
        ];
        assert_eq!(called("code", 3, &rows), [Some("Network".to_owned()), None]);
        let names = called(
            "code",
            3,
            &[Some("names"), Some("privilege"), Some("SeDebugPrivilege \"x\"")],
        );
        assert!(
            names[0].as_ref().is_none_or(|list| list.starts_with("[\"")),
            "{names:?}"
        );
        let error = call("code", 3, &packed(&[Some("name"), Some("nothing"), Some("3")])).unwrap_err();
        assert!(error.starts_with("unknown table of codes 'nothing'"), "{error}");
        assert_eq!(
            call("nothing", 1, &packed(&[None])).unwrap_err(),
            "there is no function nothing"
        );
        assert_eq!(call("code", 3, &[1, 2, 3]), Ok(Vec::new()));
    }

    #[test]
    fn lists_are_texts_with_lengths_in_bytes() {
        assert_eq!(items("3:a:b-1:-2:é"), [Some("a:b"), None, Some("-"), Some("é")]);
        for damaged in ["", "3:ab", "x", ":", "1:é"] {
            assert_eq!(items(damaged), [], "{damaged}");
        }
        let row = [Some("P"), Some("1"), Some("1:a2:=b1:c-"), None, Some("1:x")];
        assert_eq!(called("details", 5, &row), [Some("a: =b".to_owned())]);
    }

    #[test]
    fn user_data_is_one_element_with_attributes_or_all() {
        let json = r##"{"X": {"#attributes": {"xmlns": "u"}, "A": "q\"\\", "B": null, "C": {"d": 1}}}"##;
        let fields = r##"{"#attributes"="{\"xmlns\":\"u\"}", "A"="q\"\\", "B"=NULL, "C"="{\"d\":1}"}"##;
        let expected = format!(r#"{{'element': "X", 'attributes': {{"xmlns"="u"}}, 'fields': {fields}}}"#);
        assert_eq!(called("user_data", 1, &[Some(json)]), [Some(expected)]);
        let two = r#"{'element': "A", 'attributes': NULL, 'fields': {"A"="1", "B"="2"}}"#;
        let rows = [
            Some(r#"{"A": "1", "B": "2"}"#),
            Some("[1]"),
            Some("{"),
            Some("{}"),
            None,
        ];
        assert_eq!(
            called("user_data", 1, &rows),
            [Some(two.to_owned()), None, None, None, None]
        );
    }
}
