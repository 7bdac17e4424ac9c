//! Where the texts come from that rules look at.

use std::ops::ControlFlow;

/// The field by which log sources choose events.
pub(crate) const CHANNEL: &str = "Channel";

/// The same, of an event whose field `Channel` means something else: in the events 104 and 1102 of the event log, a rule's
/// `Channel` is the log that was cleared, so that `win_system_eventlog_cleared.yml` of SigmaHQ and its like mean that.
pub const SYSTEM_CHANNEL: &str = "System.Channel";

/// An event: what text each of its fields has.
///
/// Names of fields are those that rules use, with regard to case and without spaces: `EventID`, `Channel`, `Computer`,
/// `Provider_Name` and the other attributes of `System` by the names of their elements and their own, and the names of
/// values of `EventData`. Values without a name are values of the field `Data`. If an event has [`SYSTEM_CHANNEL`], that
/// is its channel for log sources.
///
/// A text is as `event_data` shows the value, with nothing trimmed: Booleans are `true` and `false`, GUIDs have braces,
/// numbers are decimal, hexadecimal values have `0x`.
pub trait Event {
    /// Gives the values of a field in their order, as text or `None` for NULL, until `each` breaks. It gives none if
    /// the event does not have the field.
    fn values(&self, field: &str, each: &mut dyn FnMut(Option<&str>) -> ControlFlow<()>);

    /// Gives the name and text of every value of the event that is not NULL, those of `System` too, until `each`
    /// breaks. Keywords are looked for in them.
    fn every_value(&self, each: &mut dyn FnMut(&str, &str) -> ControlFlow<()>);
}

/// Names of fields with a value for each; several with the same name are the values of one field.
impl<N: AsRef<str>, V: AsRef<str>> Event for &[(N, Option<V>)] {
    fn values(&self, field: &str, each: &mut dyn FnMut(Option<&str>) -> ControlFlow<()>) {
        let values = self.iter().filter(|(name, _)| name.as_ref() == field);
        let _ = values
            .map(|(_, value)| value.as_ref().map(AsRef::as_ref))
            .try_for_each(each);
    }

    fn every_value(&self, each: &mut dyn FnMut(&str, &str) -> ControlFlow<()>) {
        let values = self
            .iter()
            .filter_map(|(name, value)| Some((name.as_ref(), value.as_ref()?.as_ref())));
        let _ = values.into_iter().try_for_each(|(name, value)| each(name, value));
    }
}

/// What `each` gives back: that it has seen enough, or not.
pub(crate) fn break_if(is_done: bool) -> ControlFlow<()> {
    match is_done {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}
