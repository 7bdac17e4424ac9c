//! The role of a tree in the event.

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TreeRoot {
    /// The root is the `Event` element.
    Event,
    /// The root is a child of the `Event` element.
    Child,
    /// The root is the one element in the stream that is the content of `UserData`.
    InUserData,
}

impl TreeRoot {
    pub(crate) const COUNT: usize = 3;
}
