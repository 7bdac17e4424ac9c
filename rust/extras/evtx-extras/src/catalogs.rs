//! Opens catalogs of messages, and shares the last one among the scans of a process.

use std::sync::{Arc, Mutex, PoisonError};

use evtx_format::Interrupt;
use evtx_messages::{CATALOG_ENDING, Catalog};
use evtx_scan::{Call, LastOpened, LogFile, SETTLED, ScanError, ScanPath, Storage, StorageError, ends_with, has_glob};

use crate::finder::MessageCatalog;

/// The most bytes of a catalog file.
const MAX_FILE: u64 = 1 << 30;

/// What identifies the content of a local file: its path, its size in bytes, and the stamp of its last change.
type Identity = (String, u64, i64);

/// A catalog that was opened.
type Opened = (Identity, Arc<Catalog>);

/// The catalog that was opened last.
static LAST: Mutex<Option<Opened>> = Mutex::new(None);

/// Whether an argument names a catalog, and not the path of `.MTA` files: one that contains `{log}` or a wildcard, or
/// ends with `.mta`. A name that ends with `.messages` is that of a catalog, even with a wildcard.
pub(crate) fn is_catalog(messages: &str) -> bool {
    let is_place = has_glob(messages) || messages.contains("{log}") || ends_with(messages, ".mta");
    !messages.is_empty() && (!is_place || ends_with(messages, CATALOG_ENDING))
}

/// Opens the catalog with a path, whose messages may take so many bytes of memory.
///
/// # Errors
/// Those of the storage, [`ScanError::File`] if the file is not a catalog, or is too large, and [`ScanError::Interrupted`].
pub(crate) fn open(
    path: &str,
    memory: u64,
    storage: &dyn Storage,
    interrupt: Interrupt<'_>,
) -> Result<MessageCatalog, ScanError> {
    let last = LastOpened::default();
    let call = Call::new(storage, interrupt, &last);
    let messages = open_or_share(call, &ScanPath::named(path)).map_err(|error| match error {
        StorageError::Unusable(why) => ScanError::File(format!("{path}: {why}")),
        other => other.into(),
    })?;
    let size = messages.size() as u64;
    if size > memory {
        let text = format!("{path}: its messages can take {size} bytes, but memory_limit allows {memory} for them");
        return Err(ScanError::File(text));
    }
    Ok(MessageCatalog {
        path: path.into(),
        messages,
    })
}

fn open_or_share(call: Call<'_>, path: &ScanPath) -> Result<Arc<Catalog>, StorageError> {
    let file = LogFile::open(call, path)?;
    let modified = file.modified().filter(|modified| modified.age > SETTLED);
    let identity = modified.filter(|_| !file.is_remote);
    let identity = identity.map(|modified| (path.path.clone(), file.size(), modified.stamp));
    // Each change under the lock leaves it valid.
    let last = || LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, catalog)) = &*last()
        && Some(known) == identity.as_ref()
    {
        return Ok(Arc::clone(catalog));
    }
    let bytes = file.read_all(call, MAX_FILE)?;
    let catalog = Catalog::open(bytes).map_err(|error| StorageError::Unusable(error.to_string()))?;
    let catalog = Arc::new(catalog);
    if let Some(identity) = identity {
        *last() = Some((identity, Arc::clone(&catalog)));
    }
    Ok(catalog)
}
