//! Where rules get the texts of an event.

use std::ops::ControlFlow;

/// The channel of an event, or another channel that the event names. In the events 104 and 1102 of the event log, it is
/// the log that was cleared, which rules such as SigmaHQ's `win_system_eventlog_cleared.yml` ask for.
pub(crate) const CHANNEL: &str = "Channel";

/// The fields by which log sources choose events. Their values are those of `System`, whatever other fields the event has.
pub const SYSTEM_CHANNEL: &str = "System.Channel";
pub(crate) const SYSTEM_EVENT_ID: &str = "System.EventID";

/// The fields of Sigma's taxonomy for the hashes of a file. Sysmon has them in one text: `MD5=…,SHA256=…`.
const HASHES: [&str; 4] = ["imphash", "md5", "sha1", "sha256"];

/// An event: the texts of its fields.
///
/// Field names are those that rules use. They have no spaces, and their case matters: `EventID`, `Channel`, `Computer`,
/// `Provider_Name` and other attributes of `System` with the name of their element before their own, and the names of
/// values of `EventData`. Values without a name belong to the field `Data`. [`SYSTEM_CHANNEL`] has one value: that of
/// `System`, which comes first of those called so or `Channel`. The same holds for the event ID. Hashes such as `md5` are
/// also parts of the values of `Hashes` and `Hash`. Keywords are searched for in the whole values only.
///
/// A text is the value as `event_data` shows it: Booleans are `true` and `false`, GUIDs have braces, numbers are decimal,
/// hexadecimal values have `0x`, and nothing is trimmed.
pub trait Event {
    /// Gives the values of a field in order, as text or `None` for NULL, until `each` breaks.
    fn values(&self, field: &str, each: &mut dyn FnMut(Option<&str>) -> ControlFlow<()>);

    /// Gives every value that keywords are searched for in: all that are not NULL, including those of `System`.
    fn every_value(&self, each: &mut dyn FnMut(&str, &str) -> ControlFlow<()>);
}

/// Field names, each with a value. Pairs with the same name are the values of one field.
impl<N: AsRef<str>, V: AsRef<str>> Event for &[(N, Option<V>)] {
    fn values(&self, field: &str, each: &mut dyn FnMut(Option<&str>) -> ControlFlow<()>) {
        let values = self.iter();
        let values = values.map(|(name, value)| (name.as_ref(), value.as_ref().map(AsRef::as_ref)));
        let (of_system, most) = in_system(field);
        let own = values.clone().filter(|(name, _)| *name == field || *name == of_system);
        let own = own.map(|(_, value)| value).take(most);
        let lists = values.filter(|(name, _)| hashes_in(name).contains(&field));
        let hashes = lists.filter_map(|(_, list)| hash(list?, field).map(Some));
        let _ = own.chain(hashes).try_for_each(each);
    }

    fn every_value(&self, each: &mut dyn FnMut(&str, &str) -> ControlFlow<()>) {
        let values = self
            .iter()
            .filter_map(|(name, value)| Some((name.as_ref(), value.as_ref()?.as_ref())));
        let _ = values.into_iter().try_for_each(|(name, value)| each(name, value));
    }
}

/// The fields that are parts of the values of another.
pub(crate) fn hashes_in(list: &str) -> &'static [&'static str] {
    match list {
        "Hashes" | "Hash" => &HASHES,
        _ => &[],
    }
}

/// The hash with a name in a list.
pub(crate) fn hash<'l>(list: &'l str, name: &str) -> Option<&'l str> {
    let mut hashes = list.split(',').filter_map(|hash| hash.split_once('='));
    hashes.find_map(|(known, hash)| known.eq_ignore_ascii_case(name).then_some(hash))
}

/// Another name of a field in `System`, and how many values the field has at most.
pub(crate) fn in_system(field: &str) -> (&str, usize) {
    match field {
        SYSTEM_CHANNEL => (CHANNEL, 1),
        SYSTEM_EVENT_ID => ("EventID", 1),
        _ => (field, usize::MAX),
    }
}

/// Whether a value of a field passes: its text, or `None` for NULL.
pub(crate) fn has_value(event: &dyn Event, field: &str, passes: impl Fn(Option<&str>) -> bool) -> bool {
    let mut has_one = false;
    event.values(field, &mut |value| {
        has_one = passes(value);
        break_if(has_one)
    });
    has_one
}

/// The answer of `each`: whether it has seen enough.
pub(crate) fn break_if(is_done: bool) -> ControlFlow<()> {
    if is_done {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}
