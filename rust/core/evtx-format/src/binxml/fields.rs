//! What the values of an event are called: the one decision that readers, searches and redactions share.
//!
//! They are called as the attribute `Name` says, if it [names them](FieldNamer::is_called) and is not empty. Otherwise, if
//! the element [is numbered](FieldNamer::is_numbered), they get the [next number](FieldNamer::next_param). All others are
//! called as the element.

use std::fmt;

/// Numbers the unnamed values of elements, one sibling after the other.
#[derive(Debug, Default)]
pub struct FieldNamer {
    unnamed: usize,
}

/// The name of the values of an unnamed `Data` element, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param(pub usize);

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "param{}", self.0)
    }
}

impl Param {
    /// The number in a name; `None` if it is another name.
    pub fn number(name: &str) -> Option<usize> {
        let number = name.strip_prefix("param")?.parse().ok()?;
        (number > 0 && Param(number).to_string() == name).then_some(number)
    }

    /// Whether a name looks like that of an unnamed value, in any case, as the names of columns have none.
    pub fn resembles(name: &str) -> bool {
        let start = name.as_bytes().get(..5);
        start.is_some_and(|start| start.eq_ignore_ascii_case(b"param"))
    }
}

impl FieldNamer {
    /// Whether the attribute `Name` of an element is nothing but the name of its values.
    pub fn is_called(element: &str) -> bool {
        matches!(element, "Data" | "ComplexData")
    }

    /// Whether an element without a `Name` is numbered among its siblings.
    pub fn is_numbered(element: &str) -> bool {
        element == "Data"
    }

    /// Whether a child of `Event` has fields by name. Windows writes one of these elements. The fields of several are those of
    /// one element. Source: the type `EventType` of Windows' schema of events.
    pub fn has_fields(element: &str) -> bool {
        matches!(
            element,
            "EventData" | "DebugData" | "BinaryEventData" | "ProcessingErrorData"
        )
    }

    /// The number of the next unnamed sibling, from 1.
    pub fn next_param(&mut self) -> usize {
        self.unnamed += 1;
        self.unnamed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_without_a_name_are_numbered() {
        let is_named = |element| (FieldNamer::is_called(element), FieldNamer::is_numbered(element));
        let named = ["Data", "ComplexData", "Other"].map(is_named);
        assert_eq!(named, [(true, true), (true, false), (false, false)]);
        let mut namer = FieldNamer::default();
        assert_eq!([namer.next_param(), namer.next_param()], [1, 2]);
        assert_eq!(Param::number(&Param(12).to_string()), Some(12));
        for other in ["param", "param0", "param01", "param+1", "param1_1", "Param1", "1"] {
            assert_eq!(Param::number(other), None, "{other}");
        }
        let resembles = ["param", "PARAM1", "Parameter", "para", "", "xparam1", "par\u{e4}m"].map(Param::resembles);
        assert_eq!(resembles, [true, true, true, false, false, false, false]);
    }
}
