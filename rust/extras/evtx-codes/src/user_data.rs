//! The fields of `user_data`.

use serde_json::{Map, Value};

/// What a document in `user_data` has.
#[derive(Debug, Default)]
pub struct UserData {
    /// The name of its first element, which is usually the only one.
    pub element: Option<String>,
    /// The attributes of the only element.
    pub attributes: Option<Vec<(String, Option<String>)>>,
    /// The fields in the only element, or else the elements.
    pub fields: Option<Vec<(String, Option<String>)>>,
}

/// The entries of an object. Nested values are JSON.
fn entries(object: Map<String, Value>) -> Vec<(String, Option<String>)> {
    let text = |value| match value {
        Value::Null => None,
        Value::String(text) => Some(text),
        value => Some(value.to_string()),
    };
    object.into_iter().map(|(key, value)| (key, text(value))).collect()
}

impl UserData {
    /// Reads a document in JSON. Nothing if it is not an object.
    pub fn new(json: &str) -> Self {
        let Ok(mut document) = serde_json::from_str::<Map<String, Value>>(json) else {
            return UserData::default();
        };
        let element = document.keys().next().cloned();
        let mut attributes = None;
        if document.len() == 1
            && let Some(Value::Object(content)) = document.values_mut().next()
        {
            attributes = content
                .get("#attributes")
                .and_then(Value::as_object)
                .cloned()
                .map(entries);
            document = std::mem::take(content);
        }
        UserData {
            element,
            attributes,
            fields: Some(entries(document)),
        }
    }

    /// The fields that have a value, and the attributes without namespaces, as an event has them.
    pub fn shown(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_namespace = |key: &str| key == "xmlns" || key.starts_with("xmlns:");
        let attributes = self
            .attributes
            .iter()
            .flatten()
            .filter(move |(key, _)| !is_namespace(key));
        let all = self.fields.iter().flatten().chain(attributes);
        all.filter_map(|(key, value)| Some((key.as_str(), value.as_deref()?)))
    }
}
