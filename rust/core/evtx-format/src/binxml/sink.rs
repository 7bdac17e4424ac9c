//! Sinks, which receive what the walk over BinXML finds.

use std::ops::Range;

use super::instance::Instance;
use super::names::Name;
use super::tree::{Node, Substitution};
use crate::error::{Error, ErrorKind};

/// The error of a sink for an element that only a tree can represent. No user sees it: the caller builds the tree.
pub(crate) const NOT_PLAIN: ErrorKind = ErrorKind::Structure("an element is not plain");

/// The result of a sink, with the error if it refuses what the walk found. The walk adds the token's offset.
pub(crate) type Outcome = std::result::Result<(), ErrorKind>;

/// The error of a sink that reads elsewhere: `Ok` holds an error with its offset, `Err` an error at the token.
pub(crate) type Fault = std::result::Result<Error, ErrorKind>;

/// Receives what the walk finds in a stream, in order. The walk has checked that each token is allowed in its place.
///
/// By default, elements, attributes and text are ignored, and streams, instances and substitutions are refused.
pub(crate) trait Sink<'a> {
    /// The chunk offset of a reference to a name. Comes before the element, attribute or entity with that name.
    fn name_ref(&mut self, _at: usize) {}

    /// The start of an element and of its start tag. In a definition it can depend on the substitution with an index.
    fn start(&mut self, _name: &'a Name<'a>, _dependency: Option<u16>) -> Outcome {
        Ok(())
    }

    /// The start of an attribute of the innermost element.
    fn attribute(&mut self, _name: &'a Name<'a>) {}

    /// Content of the value of the last attribute.
    fn attribute_content(&mut self, _node: Node<'a>) -> Outcome {
        Ok(())
    }

    /// The end of the start tag.
    fn end_start(&mut self) {}

    /// Content of the innermost element.
    fn content(&mut self, _node: Node<'a>) -> Outcome {
        Ok(())
    }

    /// The end of the innermost element.
    fn end(&mut self, _self_closing: bool) -> Outcome {
        Ok(())
    }

    /// A BinXML value in content, at a range of the chunk. Returns whether the value has an element.
    fn stream(&mut self, _stream: Range<usize>) -> std::result::Result<bool, Fault> {
        Err(Err(NOT_PLAIN))
    }

    /// A template instance in content.
    fn instance(&mut self, _instance: &Instance<'a>) -> std::result::Result<(), Fault> {
        Err(Err(NOT_PLAIN))
    }

    /// A substitution, in the value of an attribute or in content. Only a definition may have substitutions.
    fn substitution(&mut self, _substitution: Substitution, _in_attribute: bool) -> std::result::Result<(), Fault> {
        Err(Err(NOT_PLAIN))
    }
}

/// A sink that does nothing, for a walk that only checks.
pub(super) struct Check;

impl Sink<'_> for Check {}

/// As [`Check`], but it also accepts streams and instances without a look inside.
pub(super) struct Pass;

impl<'a> Sink<'a> for Pass {
    fn stream(&mut self, _stream: Range<usize>) -> std::result::Result<bool, Fault> {
        Ok(true)
    }

    fn instance(&mut self, _instance: &Instance<'a>) -> std::result::Result<(), Fault> {
        Ok(())
    }
}
