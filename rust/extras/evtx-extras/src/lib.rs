//! Columns of events from other sources than their log: messages of catalogs and of files beside the log, the insertions of
//! messages, and whole records that stand alone.

mod beside;
mod insertions;
mod finder;
mod text_lists;
mod messages;
mod record;
mod table;
mod catalogs;
mod settings;

pub use beside::{MessageFile, MessageFiles, SavedBeside};
pub use finder::MessageCatalog;
pub use settings::{ExtraSettings, OF_EXTRAS};
pub use table::{Extras, reference};
