//! The modifiers of an item, and which of them go together.

use crate::encoding::Encoding;
use crate::error::Problem;
use crate::expression::Flags;
use crate::limits::Limits;
use crate::matcher::{Comparison, DatePart};
use crate::pattern::Anchor;

/// What the modifiers of an item ask for.
#[derive(Debug)]
pub(crate) struct Modifiers {
    /// Every value must match, not just one.
    pub(crate) all: bool,
    /// No value may match.
    pub(crate) neq: bool,
    /// Case matters.
    pub(crate) cased: bool,
    /// Placeholders are replaced by their values.
    pub(crate) expand: bool,
    /// How values are transformed, in this order.
    pub(crate) encodings: Vec<Encoding>,
    /// What the transformed values are.
    pub(crate) meaning: Meaning,
}

/// What the values of an item are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Texts with wildcards, and the anchor if a modifier names one.
    Text(Option<Anchor>),
    /// Regular expressions.
    Regex(Flags),
    /// Networks.
    Network,
    /// Names of other fields.
    FieldReference(Anchor),
    /// Numbers.
    Number(Option<DatePart>, Comparison),
    /// Whether the field exists.
    Exists,
}

/// One modifier.
enum Modifier {
    All,
    Neq,
    Cased,
    Expand,
    Encoding(Encoding),
    Anchor(Anchor),
    Regex,
    Flag(fn(&mut Flags) -> &mut bool),
    Network,
    FieldReference,
    Comparison(Comparison),
    Part(DatePart),
    Exists,
}

/// The modifiers of specification 2.1.0, "Sigma Modifiers".
fn modifier(name: &str) -> Option<Modifier> {
    use Modifier as M;
    Some(match name {
        "all" => M::All,
        "neq" => M::Neq,
        "cased" => M::Cased,
        "expand" => M::Expand,
        "contains" => M::Anchor(Anchor::Anywhere),
        "startswith" => M::Anchor(Anchor::Start),
        "endswith" => M::Anchor(Anchor::End),
        "base64" => M::Encoding(Encoding::Base64),
        "base64offset" => M::Encoding(Encoding::Base64Offset),
        "wide" | "utf16le" => M::Encoding(Encoding::Utf16Le),
        "utf16be" => M::Encoding(Encoding::Utf16Be),
        "utf16" => M::Encoding(Encoding::Utf16),
        "windash" => M::Encoding(Encoding::Windash),
        "re" => M::Regex,
        "i" => M::Flag(|flags| &mut flags.ignore_case),
        "m" => M::Flag(|flags| &mut flags.multi_line),
        "s" => M::Flag(|flags| &mut flags.dot_all),
        "cidr" => M::Network,
        "fieldref" => M::FieldReference,
        "exists" => M::Exists,
        "lt" => M::Comparison(Comparison::Less),
        "lte" => M::Comparison(Comparison::LessOrEqual),
        "gt" => M::Comparison(Comparison::Greater),
        "gte" => M::Comparison(Comparison::GreaterOrEqual),
        "minute" => M::Part(DatePart::Minute),
        "hour" => M::Part(DatePart::Hour),
        "day" => M::Part(DatePart::Day),
        "week" => M::Part(DatePart::Week),
        "month" => M::Part(DatePart::Month),
        "year" => M::Part(DatePart::Year),
        _ => return None,
    })
}

/// Reads the modifiers of an item, in their order.
pub(crate) fn modifiers(names: &[&str]) -> Result<Modifiers, Problem> {
    if names.len() > Limits::MODIFIERS {
        return Err(Problem::limit("modifiers of a field", Limits::MODIFIERS));
    }
    let mut all = Modifiers {
        all: false,
        neq: false,
        cased: false,
        expand: false,
        encodings: Vec::new(),
        meaning: Meaning::Text(None),
    };
    for name in names {
        let modifier = modifier(name).ok_or_else(|| Problem::text(format!("there is no modifier \"{name}\"")))?;
        match modifier {
            Modifier::All => all.all = true,
            Modifier::Neq => all.neq = true,
            Modifier::Cased => all.cased = true,
            Modifier::Expand => all.expand = true,
            // `contains` adds wildcards, which only `windash` accepts.
            Modifier::Encoding(encoding) => match all.meaning {
                Meaning::Text(Some(_)) if encoding != Encoding::Windash => {
                    let text = format!("{name} must come before contains, startswith or endswith");
                    return Err(Problem::text(text));
                }
                Meaning::Text(_) => all.encodings.push(encoding),
                _ => return Err(clash(names, name)),
            },
            other => all.meaning = narrowed(all.meaning, &other).ok_or_else(|| clash(names, name))?,
        }
    }
    let is_text = matches!(all.meaning, Meaning::Text(_));
    if !is_text && !all.encodings.is_empty() {
        return Err(clash(names, all.encodings[0].name()));
    }
    if all.cased && !is_text && !matches!(all.meaning, Meaning::FieldReference(_)) {
        return Err(clash(names, "cased"));
    }
    if all.meaning == Meaning::Exists && names.len() > 1 {
        return Err(clash(names, "exists"));
    }
    Ok(all)
}

/// What values are after one more modifier. `None` if it does not fit those before it.
fn narrowed(meaning: Meaning, modifier: &Modifier) -> Option<Meaning> {
    use Meaning as M;
    Some(match (meaning, modifier) {
        (M::Text(None), Modifier::Anchor(anchor)) => M::Text(Some(*anchor)),
        (M::FieldReference(Anchor::Whole), Modifier::Anchor(anchor)) => M::FieldReference(*anchor),
        (M::Text(anchor), Modifier::FieldReference) => M::FieldReference(anchor.unwrap_or(Anchor::Whole)),
        (M::Text(None), Modifier::Regex) => M::Regex(Flags::default()),
        (M::Regex(mut flags), Modifier::Flag(flag)) => {
            *flag(&mut flags) = true;
            M::Regex(flags)
        }
        (M::Text(None), Modifier::Network) => M::Network,
        (M::Text(None), Modifier::Exists) => M::Exists,
        (M::Text(None), Modifier::Comparison(comparison)) => M::Number(None, *comparison),
        (M::Text(None), Modifier::Part(part)) => M::Number(Some(*part), Comparison::Equal),
        (M::Number(Some(part), Comparison::Equal), Modifier::Comparison(comparison)) => {
            M::Number(Some(part), *comparison)
        }
        (M::Number(None, comparison), Modifier::Part(part)) => M::Number(Some(*part), comparison),
        _ => return None,
    })
}

fn clash(names: &[&str], name: &str) -> Problem {
    match names {
        [_] => Problem::text(format!("the modifier {name} must follow re")),
        _ => Problem::text(format!(
            "{name} does not go with the other modifiers of {}",
            names.join("|")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(names: &str) -> Result<Modifiers, Problem> {
        modifiers(&names.split('|').collect::<Vec<_>>())
    }

    #[test]
    fn reads_what_goes_together() {
        let hour = Meaning::Number(Some(DatePart::Hour), Comparison::GreaterOrEqual);
        let mut flags = Flags::default();
        (flags.ignore_case, flags.dot_all) = (true, true);
        for (names, meaning) in [
            ("wide|base64offset|contains", Meaning::Text(Some(Anchor::Anywhere))),
            ("contains|windash|all", Meaning::Text(Some(Anchor::Anywhere))),
            ("fieldref|endswith|neq", Meaning::FieldReference(Anchor::End)),
            ("hour|gte", hour),
            ("gte|hour", hour),
            ("re|i|s", Meaning::Regex(flags)),
            ("cidr|expand|neq|all", Meaning::Network),
        ] {
            assert_eq!(read(names).expect(names).meaning, meaning, "{names}");
        }
    }

    #[test]
    fn refuses_what_does_not() {
        let refused = "contains|startswith re|contains contains|re i i|re cidr|windash windash|cidr lt|gt contains|base64 \
                       cased|re exists|neq lt|contains hour|day re|cidr cidr|cased";
        for names in refused.split(' ') {
            let problem = read(names).expect_err(names).to_string();
            assert!(!problem.starts_with("there is no modifier"), "{names}: {problem}");
        }
        for name in ["Contains", "", "near", "ignorecase"] {
            let unknown = format!("there is no modifier \"{name}\"");
            assert_eq!(read(name).err(), Some(Problem::text(unknown)));
        }
    }
}
