//! What a call says if it finds nothing of the providers that the caller named.

use evtx_catalog::similar_providers;

/// Names the providers with similar names, if there are some: other names can be right in logs that have no such records.
/// `row` is what a row is, such as a record.
pub fn advice(providers: &[String], row: &str) -> Option<String> {
    let advice = providers.iter().filter_map(|name| {
        let similar = similar_providers(name);
        let names = similar.join(", ");
        (!similar.is_empty()).then(|| format!("no {row} was found for the provider '{name}', but there are {names}"))
    });
    let advice: Vec<_> = advice.collect();
    (!advice.is_empty()).then(|| format!("{}. The name of a log is its channel", advice.join("; ")))
}
