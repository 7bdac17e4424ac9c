//! BinXML: names, element trees, template instances, and the one walk over a stream (MS-EVEN6, section 2.2.12).

pub mod names;
pub mod fields;
pub mod tree;
pub mod instance;
pub(crate) mod sink;
mod walk;
mod builder;
mod reader;
mod implicit;
mod ranges;
pub mod template_content;

pub use implicit::ImplicitTemplate;
pub use ranges::SubstitutionRanges;
pub use reader::{Fragment, Template};
pub use walk::{Left, Reader};
