//! Items: a field and the tests of its texts.

use std::borrow::Cow;
use std::net::IpAddr;

use evtx_format::Interrupt;
use evtx_format::case::fold;
use ipnet::IpNet;

use crate::encoding::encoded;
use crate::error::{LoadError, Problem};
use crate::event::{CHANNEL, SYSTEM_CHANNEL};
use crate::expression::Expression;
use crate::limits::{Budget, Limits};
use crate::matcher::Matcher;
use crate::modifiers::{Meaning, Modifiers, modifiers};
use crate::pattern::{Anchor, Pattern, Segment, fold_segments, is_plain};
use crate::placeholders::{Placeholders, expand};
use crate::yaml::{Key, Node, Value};

/// A field and its tests, of which one must be true.
///
/// With `|all`, each value becomes an item of its own. So one matcher always makes an item true.
#[derive(Debug, Clone)]
pub struct Item {
    /// The name of the field, without spaces. `None` for keywords, which are searched for in every value.
    pub field: Option<Box<str>>,
    /// The tests. If all values are placeholders with empty lists, there are none, and the item is false.
    pub any: Box<[Matcher]>,
    /// Whether no test may be true (`neq`). The field must still have a value.
    pub is_negated: bool,
}

/// What loading an item needs.
#[derive(Debug)]
pub(crate) struct Context<'a> {
    pub(crate) placeholders: &'a Placeholders,
    pub(crate) interrupt: Interrupt<'a>,
    pub(crate) budget: Budget,
    /// Whether the rule has [`CLEARED_CHANNEL`] for a log that was cleared, so that `Channel` is always that of `System`.
    pub(crate) names_cleared_channel: bool,
}

/// The name that Hayabusa's rules have for the log that was cleared. Other rules call it `Channel`.
pub(crate) const CLEARED_CHANNEL: &str = "LogFileClearedChannel";

/// Names that Hayabusa's rules have for fields, and those in the log.
const ALIASES: [(&str, &str); 3] = [
    ("ExecutionProcessID", "Execution_ProcessID"),
    ("SecurityUserID", "Security_UserID"),
    ("WindowsDefenderProcessName", "ProcessName"),
];

/// What other such names begin with. The rest is the name of the field in `UserData`.
const PREFIXES: [&str; 3] = ["LogFileCleared", "RdsGtw", "UserData"];

/// The name in the log of a field: its own, or that of an alias of Hayabusa. The source is `config/eventkey_alias.txt` of
/// hayabusa-rules; all other names there are those of the log, or names that other events have.
fn name_in_log(field: &str) -> &str {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == field).map(|(_, name)| *name);
    let prefixed = || {
        PREFIXES
            .iter()
            .find_map(|prefix| field.strip_prefix(prefix))
            .filter(|rest| !rest.is_empty())
    };
    alias.or_else(prefixed).unwrap_or(field)
}

/// The items of an entry in a map: one, or with `|all` one for each value.
pub(crate) fn items(key: &Key, value: &Node, context: &mut Context<'_>) -> Result<Vec<Item>, LoadError> {
    let mut names = key.text.split('|');
    let field: String = names.next().unwrap_or_default().split(' ').collect();
    let field = match field.as_str() {
        "" => None,
        CHANNEL if context.names_cleared_channel => Some(SYSTEM_CHANNEL.into()),
        field => Some(name_in_log(field).into()),
    };
    let mut modifiers = modifiers(&names.collect::<Vec<_>>()).map_err(|problem| problem.at(key.at))?;
    match modifiers.meaning {
        _ if field.is_some() => {}
        Meaning::Text(None) if !modifiers.neq => modifiers.meaning = KEYWORD,
        Meaning::Text(_) | Meaning::Regex(_) | Meaning::Network if !modifiers.neq => {}
        _ => {
            let text = "keywords are texts, regular expressions or networks: other modifiers need a field name";
            return Err(value.error(Problem::text(text)));
        }
    }
    let item = |any: Vec<Matcher>| Item {
        field: field.clone(),
        any: any.into(),
        is_negated: modifiers.neq,
    };
    let Value::List(values) = &value.value else {
        return Ok(vec![item(matchers(value, &modifiers, context)?)]);
    };
    if values.is_empty() {
        return Err(value.error(Problem::Empty("this list of values")));
    }
    if let Some(null) = values.iter().find(|value| matches!(value.value, Value::Null)) {
        let text = "null cannot be in a list of values; give it a detection of its own";
        return Err(null.error(Problem::text(text)));
    }
    if modifiers.meaning == Meaning::Exists {
        return Err(value.wrong_type("exists", "true or false"));
    }
    if modifiers.all {
        let each = values
            .iter()
            .map(|value| Ok(item(matchers(value, &modifiers, context)?)));
        return each.collect();
    }
    Ok(vec![item(matchers_of(values, &modifiers, context)?)])
}

/// What keywords without modifiers are.
const KEYWORD: Meaning = Meaning::Text(Some(Anchor::Anywhere));

/// The item of some keywords.
pub(crate) fn keywords(values: &[Node], context: &mut Context<'_>) -> Result<Item, LoadError> {
    let mut modifiers = modifiers(&[]).map_err(|problem| problem.at(values[0].at))?;
    modifiers.meaning = KEYWORD;
    Ok(Item {
        field: None,
        any: matchers_of(values, &modifiers, context)?.into(),
        is_negated: false,
    })
}

/// The matchers of some values.
fn matchers_of(values: &[Node], modifiers: &Modifiers, context: &mut Context<'_>) -> Result<Vec<Matcher>, LoadError> {
    let mut matchers = Vec::with_capacity(values.len());
    for value in values {
        add_matchers(value, modifiers, context, &mut matchers)?;
    }
    Ok(matchers)
}

/// The matchers of one value.
fn matchers(value: &Node, modifiers: &Modifiers, context: &mut Context<'_>) -> Result<Vec<Matcher>, LoadError> {
    matchers_of(std::slice::from_ref(value), modifiers, context)
}

fn add_matchers(
    value: &Node,
    modifiers: &Modifiers,
    context: &mut Context<'_>,
    matchers: &mut Vec<Matcher>,
) -> Result<(), LoadError> {
    let at = |problem: Problem| value.error(problem);
    match (&modifiers.meaning, &value.value) {
        (Meaning::Exists, Value::Boolean(exists)) => {
            matchers.push(Matcher::Exists(*exists));
            return Ok(());
        }
        (Meaning::Exists, _) => return Err(value.wrong_type("exists", "true or false")),
        (&Meaning::Number(part, comparison), Value::Number(number, _)) => {
            let number = number.clone();
            matchers.push(Matcher::Number {
                part,
                comparison,
                number,
            });
            return Ok(());
        }
        (Meaning::Number(..), _) => return Err(value.wrong_type("the value", "a number")),
        (Meaning::Text(None), Value::Null) if modifiers.encodings.is_empty() && !modifiers.expand => {
            matchers.push(Matcher::Null);
            return Ok(());
        }
        _ => {}
    }
    let text = value.need_text("a value")?;
    if !modifiers.expand {
        return add_text_matchers(value, text, modifiers, context, matchers);
    }
    for text in expand(text, context.placeholders, &context.budget).map_err(at)? {
        add_text_matchers(value, &text, modifiers, context, matchers)?;
    }
    Ok(())
}

/// The matchers of a text of a value.
fn add_text_matchers(
    value: &Node,
    text: &str,
    modifiers: &Modifiers,
    context: &mut Context<'_>,
    matchers: &mut Vec<Matcher>,
) -> Result<(), LoadError> {
    let at = |problem: Problem| value.error(problem);
    // Encoding a text, or compiling an expression, takes up to some 10 ms.
    context.interrupt.check().map_err(|_| at(Problem::Interrupted))?;
    match modifiers.meaning {
        Meaning::Text(anchor) => {
            let anchor = anchor.unwrap_or(Anchor::Whole);
            text_matchers(text, anchor, modifiers, &mut context.budget, matchers).map_err(at)?;
        }
        Meaning::Regex(flags) => {
            context.budget.take_needle(text.len()).map_err(at)?;
            let parsed = Expression::parse(text, flags).map_err(at)?;
            let expression = context.budget.take_regex(|| parsed.compile()).map_err(at)?;
            matchers.push(Matcher::Regex(expression));
        }
        Meaning::Network => {
            let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
            let no_network = |_| Problem::text(format!("\"{text}\" is not a network such as 10.0.0.0/8 or fe80::/10"));
            context.budget.take_needle(text.len()).map_err(at)?;
            matchers.push(Matcher::Network(network.map_err(no_network).map_err(at)?));
        }
        Meaning::FieldReference(anchor) => {
            context.budget.take_needle(text.len()).map_err(at)?;
            let field = text.split(' ').collect::<String>().into();
            matchers.push(Matcher::FieldReference {
                field,
                anchor,
                cased: modifiers.cased,
            });
        }
        Meaning::Number(..) | Meaning::Exists => {}
    }
    Ok(())
}

/// The matchers of a text with wildcards: one for each text that its encodings make.
fn text_matchers(
    text: &str,
    anchor: Anchor,
    modifiers: &Modifiers,
    budget: &mut Budget,
    matchers: &mut Vec<Matcher>,
) -> Result<(), Problem> {
    if modifiers.encodings.is_empty() && is_plain(text) {
        let needle = if modifiers.cased {
            Cow::Borrowed(text)
        } else {
            fold(text)
        };
        budget.take_needle(needle.len())?;
        matchers.push(Matcher::Text {
            pattern: Pattern::Needle(anchor, needle.into()),
            cased: modifiers.cased,
        });
        return Ok(());
    }
    for draft in encoded(text, &modifiers.encodings, budget)? {
        let mut segments = draft.into_segments()?;
        if !modifiers.cased {
            fold_segments(&mut segments);
        }
        let before = matches!(anchor, Anchor::End | Anchor::Anywhere).then_some(Segment::Many);
        let after = matches!(anchor, Anchor::Start | Anchor::Anywhere).then_some(Segment::Many);
        let pattern = Pattern::new(before.into_iter().chain(segments).chain(after));
        let bytes = pattern.needles().map(str::len).sum();
        if let Pattern::Wildcards(segments) = &pattern {
            limited(segments.len(), Limits::SEGMENTS, "texts and wildcards in a value")?;
            limited(
                bytes,
                Limits::WILDCARD_BYTES,
                "bytes of a value with wildcards between its texts",
            )?;
        }
        budget.take_needle(bytes)?;
        matchers.push(Matcher::Text {
            pattern,
            cased: modifiers.cased,
        });
    }
    Ok(())
}

fn limited(amount: usize, limit: usize, what: &'static str) -> Result<(), Problem> {
    if amount <= limit {
        Ok(())
    } else {
        Err(Problem::limit(what, limit))
    }
}
