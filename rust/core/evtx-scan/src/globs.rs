//! Globs of paths.

/// Splits off the start `\\?\` of a path, if it has one. Windows takes such a path as it is, even if it is long. The
/// `?` in it is not a wildcard.
pub(crate) fn split_verbatim(path: &str) -> (&str, &str) {
    const START: &str = r"\\?\";
    path.split_at(if path.starts_with(START) { START.len() } else { 0 })
}

/// A glob that matches only this path or name.
pub fn literal(text: &str) -> String {
    let (start, rest) = split_verbatim(text);
    let escaped = rest.chars().map(|c| match c {
        '*' | '?' | '[' => format!("[{c}]"),
        _ => c.to_string(),
    });
    start.to_owned() + &escaped.collect::<String>()
}
