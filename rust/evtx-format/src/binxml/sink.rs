//! What takes the things that the walk finds.

use std::ops::Range;

use super::instance::Instance;
use super::names::Name;
use super::tree::{Node, Substitution};
use crate::error::{Error, ErrorKind};

/// Why a sink does not take what only a tree tells.
pub(crate) const NOT_PLAIN: ErrorKind = ErrorKind::Structure("an element is not plain");

/// What a sink says: the kind of an error at the token, if it cannot take it.
pub(crate) type Outcome = std::result::Result<(), ErrorKind>;

/// An error elsewhere, or the kind of one at the token.
pub(crate) type Fault = std::result::Result<Error, ErrorKind>;

/// Takes what the walk finds in a stream, in order. The walk has seen to it that it can stand there. If nothing else is
/// said, plain elements are taken to see whether they are sound, and what has to be looked into further is not taken.
pub(crate) trait Sink<'a> {
    /// The chunk offset of a reference to a name, before what it is the name of.
    fn name_ref(&mut self, _at: usize) {}

    /// An element, whose start tag is open from here on. In a definition it can depend on a substitution.
    fn start(&mut self, _name: &'a Name<'a>, _dependency: Option<u16>) -> Outcome {
        Ok(())
    }

    /// An attribute.
    fn attribute(&mut self, _name: &'a Name<'a>) {}

    /// A piece of what stands in a start tag: of the attribute's value, if there is one.
    fn attribute_content(&mut self, _node: Node<'a>) -> Outcome {
        Ok(())
    }

    /// The end of the start tag.
    fn end_start(&mut self) {}

    /// A piece of the innermost element's content.
    fn content(&mut self, _node: Node<'a>) -> Outcome {
        Ok(())
    }

    /// The end of the innermost element.
    fn end(&mut self, _self_closing: bool) -> Outcome {
        Ok(())
    }

    /// A BinXML value in content, at a range of the chunk. Says whether it has any element.
    fn stream(&mut self, _stream: Range<usize>) -> std::result::Result<bool, Fault> {
        Err(Err(NOT_PLAIN))
    }

    /// A template instance in content.
    fn instance(&mut self, _instance: &Instance<'a>) -> std::result::Result<(), Fault> {
        Err(Err(NOT_PLAIN))
    }

    /// A substitution. Only a definition has any.
    fn substitution(&mut self, _substitution: Substitution, _in_start: bool) -> std::result::Result<(), Fault> {
        Err(Err(NOT_PLAIN))
    }
}

/// Takes what is sound.
pub(super) struct Check;

impl Sink<'_> for Check {}

/// Passes what is there, whatever the streams and instances in it hold.
pub(super) struct Pass;

impl<'a> Sink<'a> for Pass {
    fn stream(&mut self, _stream: Range<usize>) -> std::result::Result<bool, Fault> {
        Ok(true)
    }

    fn instance(&mut self, _instance: &Instance<'a>) -> std::result::Result<(), Fault> {
        Ok(())
    }
}
