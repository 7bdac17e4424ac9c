//! Tactics and techniques of MITRE ATT&CK in tags ("Tags" appendix of the specification).
//!
//! The SQL macros `evtx_attack_tactics` and `evtx_attack_techniques` do the same for tags in tables. A test compares them.

/// The tactics, as ATT&CK writes them: `defense-evasion`. Each is there once.
pub fn tactics(tags: &[String]) -> Vec<String> {
    // Techniques, groups and software have digits.
    let is_tactic = |name: &&str| name.chars().all(|c| c.is_ascii_alphabetic() || "_-".contains(c));
    let names = tags.iter().filter_map(|tag| of_attack(tag)).filter(is_tactic);
    distinct(names.map(|name| name.to_ascii_lowercase().replace('_', "-")))
}

/// The techniques: `T1070.001`. Each is there once.
pub fn techniques(tags: &[String]) -> Vec<String> {
    let names = tags
        .iter()
        .filter_map(|tag| of_attack(tag))
        .filter(|name| is_technique(name));
    distinct(names.map(str::to_ascii_uppercase))
}

/// The names without those that were there before.
fn distinct(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut known = Vec::new();
    for name in names {
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known
}

/// What follows `attack.` in a tag, if that is not empty.
fn of_attack(tag: &str) -> Option<&str> {
    let (space, name) = tag.split_once('.')?;
    (space.eq_ignore_ascii_case("attack") && !name.is_empty()).then_some(name)
}

/// Whether a name is `t`, four digits, and perhaps a point and three digits.
fn is_technique(name: &str) -> bool {
    let is_number =
        |digits: &str, count: usize| digits.len() == count && digits.bytes().all(|byte| byte.is_ascii_digit());
    let Some(rest) = name.strip_prefix(['t', 'T']) else {
        return false;
    };
    match rest.split_once('.') {
        None => is_number(rest, 4),
        Some((main, sub)) => is_number(main, 4) && is_number(sub, 3),
    }
}
