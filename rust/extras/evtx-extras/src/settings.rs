//! The arguments that add these columns.

use evtx_arrow::Table;
use evtx_format::Interrupt;
use evtx_scan::{ScanError, Storage, arguments, put};

use crate::catalogs::{self, is_catalog};
use crate::table::Extras;

/// The settings of these columns.
#[derive(Debug, Clone)]
pub struct ExtraSettings {
    /// Which columns are added.
    pub extras: Extras,
    /// Where messages are.
    messages: String,
    /// The same of the session, if the call has its default.
    session_messages: Option<String>,
}

/// Where Event Viewer saves the messages of a log, as in the list.
const MESSAGES: &str = "LocaleMetaData/{log}_*.[Mm][Tt][Aa]";

arguments! {
    /// The arguments.
    pub OF_EXTRAS of ExtraSettings:
    /// Adds a column `insertions`: the values that fill the message, as a list.
    insertions = Some("false"), Flag(|all| &mut all.extras.insertions);
    /// Adds a column `message_source`: where the message is from.
    message_source = Some("false"), Flag(|all| &mut all.extras.message_source);
    /// The path of a catalog of messages. Or a glob for the messages that were saved with a log, relative to its
    /// folder; `{log}` stands for its name.
    messages = Some(MESSAGES), Text(|all, text| put(&mut all.messages, messages_path(text)));
    /// Adds a column `record`: each record as it is stored, to write it to another log.
    record = Some("false"), Flag(|all| &mut all.extras.record);
}

fn messages_path(text: Option<String>) -> Result<String, String> {
    let text = text.unwrap_or_default();
    if ["true", "false"].iter().any(|flag| text.eq_ignore_ascii_case(flag)) {
        return Err(format!(
            "messages takes the path of a catalog, not {text}. The column message is always there, and has the messages \
             that were saved with a log"
        ));
    }
    Ok(text)
}

impl Default for ExtraSettings {
    fn default() -> Self {
        ExtraSettings {
            extras: Extras::default(),
            messages: MESSAGES.to_owned(),
            session_messages: None,
        }
    }
}

impl ExtraSettings {
    /// Sets the argument `messages`, if it has its default value and `setting` is not empty.
    pub fn default_messages(&mut self, setting: &str) {
        self.session_messages = Some(setting.to_owned()).filter(|path| self.messages == MESSAGES && !path.is_empty());
    }

    /// A table with the columns, and where the messages of a log are: a glob relative to its folder. A catalog may take
    /// `memory` bytes.
    ///
    /// # Errors
    /// Why the catalog cannot be opened.
    pub fn plan(
        &self,
        table: Table,
        memory: u64,
        storage: &dyn Storage,
        interrupt: Interrupt<'_>,
    ) -> Result<(Table, String), ScanError> {
        let messages = self.session_messages.as_ref().unwrap_or(&self.messages);
        if !is_catalog(messages) {
            return Ok((self.extras.of(table, None), messages.clone()));
        }
        let catalog = catalogs::open(messages, memory, storage, interrupt);
        let catalog = catalog.map_err(|error| match self.session_messages {
            Some(_) => error.within("the setting evtx_messages names no catalog that can be read"),
            None => error,
        })?;
        Ok((self.extras.of(table, Some(catalog)), MESSAGES.to_owned()))
    }
}
