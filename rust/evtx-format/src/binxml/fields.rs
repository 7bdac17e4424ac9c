//! What the values of an event are called: the one decision that readers, searches and redactions share.

use std::fmt;

/// What the values of an element are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldName<N> {
    /// As the element.
    Own,
    /// As its attribute `Name` says.
    Given(N),
    /// `param` and a number: its position among the unnamed `Data` siblings, from 1.
    Param(usize),
}

/// Names the values of elements, one sibling after the other.
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
        name.strip_prefix("param")?.parse().ok()
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

    /// The name of the values of the next sibling, by the name of the element and that in its attribute `Name`, if there
    /// is one that is not empty.
    pub fn name<N>(&mut self, element: &str, given: Option<N>) -> FieldName<N> {
        match given {
            Some(name) => FieldName::Given(name),
            None if !Self::is_numbered(element) => FieldName::Own,
            None => FieldName::Param(self.next_param()),
        }
    }

    /// The number of the next unnamed sibling.
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
        let mut namer = FieldNamer::default();
        assert_eq!(namer.name("Data", Some("User")), FieldName::Given("User"));
        assert_eq!(namer.name::<&str>("Data", None), FieldName::Param(1));
        assert_eq!(namer.name::<&str>("ComplexData", None), FieldName::Own);
        assert_eq!(namer.name::<&str>("Data", None), FieldName::Param(2));
        assert_eq!(Param::number(&Param(12).to_string()), Some(12));
    }
}
