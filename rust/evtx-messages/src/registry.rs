//! Which provider uses which files, from the hives of a registry.
//!
//! | hive | key | values |
//! | --- | --- | --- |
//! | SOFTWARE | `Microsoft\Windows\CurrentVersion\WINEVT\Publishers\{guid}` | the name of the provider, `ResourceFileName`, `MessageFileName`, `ParameterFileName` |
//! | SYSTEM | `ControlSet001\Services\EventLog\<log>\<source>` | `EventMessageFile`, `ParameterMessageFile`, `ProviderGuid` |
//!
//! A value can name several files, with semicolons between them. Files are compared by their names without folders, so
//! `%SystemRoot%\system32\x.dll` is any file `x.dll`.

mod hive;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evtx_format::Interrupt;

use crate::error::Result;
use crate::row::{Guid, guid_of_text};
pub use hive::{Hive, Key};

/// The providers of a registry, at most. Windows has about 3,000. *(choice)*
const MAX_PROVIDERS: usize = 1 << 16;

/// The files of one value, at most. *(choice)*
const MAX_FILES: usize = 64;

/// A provider and its files, without folders and in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Registration {
    /// The name.
    pub name: Arc<str>,
    /// The GUID, if it has one.
    pub guid: Option<Guid>,
    /// The files with its manifest.
    pub resource_files: Vec<Box<str>>,
    /// The files with the texts of its events.
    pub message_files: Vec<Box<str>>,
    /// The files with the texts of its parameters.
    pub parameter_files: Vec<Box<str>>,
    /// Whether it is a source of the classic log: the upper half of the ID of a message is its qualifiers.
    pub is_classic: bool,
}

/// The providers of one or more hives.
#[derive(Debug, Default)]
pub struct Registry {
    registrations: BTreeSet<Arc<Registration>>,
    by_guid: BTreeMap<Guid, Arc<Registration>>,
    by_message_file: BTreeMap<Box<str>, Vec<Arc<Registration>>>,
    by_parameter_file: BTreeMap<Box<str>, Vec<Arc<Registration>>>,
}

impl Registry {
    /// Adds the providers of a hive: SOFTWARE, SYSTEM, or any other, which has none.
    ///
    /// # Errors
    /// If the bytes are not a hive, or fewer than its header says, or if the work is interrupted. What could be read is
    /// added nevertheless. Damaged keys are left out.
    pub fn add_hive(&mut self, file: &[u8], interrupt: Interrupt<'_>) -> Result<()> {
        let hive = Hive::open(file, interrupt)?;
        let root = hive.root();
        if let Some(publishers) = root.path(r"Microsoft\Windows\CurrentVersion\WINEVT\Publishers") {
            publishers
                .subkeys()
                .try_for_each(|key| self.add_key(&key, publisher).map_or(Ok(()), Err))?;
        }
        for control_set in root
            .subkeys()
            .filter(|key| key.name().to_lowercase().starts_with("controlset"))
        {
            let Some(logs) = control_set.path(r"Services\EventLog") else {
                continue;
            };
            for log in logs.subkeys() {
                log.subkeys()
                    .try_for_each(|key| self.add_key(&key, source).map_or(Ok(()), Err))?;
            }
        }
        hive.interrupted()?;
        hive.cut().map_or(Ok(()), Err)
    }

    fn add_key(&mut self, key: &Key<'_>, read: fn(&Key<'_>) -> Option<Registration>) -> Option<crate::error::Error> {
        if self.registrations.len() < MAX_PROVIDERS
            && let Some(registration) = read(key)
        {
            self.add(registration);
        }
        key.hive().interrupted().err()
    }

    /// Adds a provider. Use this for sources other than hives.
    pub fn add(&mut self, registration: Registration) {
        let registration = Arc::new(registration);
        if !self.registrations.insert(registration.clone()) {
            return;
        }
        if let (Some(guid), false) = (registration.guid, registration.is_classic) {
            self.by_guid.entry(guid).or_insert_with(|| registration.clone());
        }
        let files = registration.message_files.iter().filter(|_| registration.is_classic);
        for file in files {
            self.by_message_file
                .entry(file.clone())
                .or_default()
                .push(registration.clone());
        }
        for file in &registration.parameter_files {
            self.by_parameter_file
                .entry(file.clone())
                .or_default()
                .push(registration.clone());
        }
    }

    /// All providers, sorted by name.
    pub fn registrations(&self) -> impl Iterator<Item = &Registration> {
        self.registrations.iter().map(|registration| &**registration)
    }

    /// The provider with a manifest and a GUID.
    pub fn by_guid(&self, guid: &Guid) -> Option<&Registration> {
        self.by_guid.get(guid).map(|registration| &**registration)
    }

    /// The classic sources with texts in a file. The name has no folders and is in lower case.
    pub fn by_message_file(&self, file: &str) -> &[Arc<Registration>] {
        self.by_message_file.get(file).map_or(&[], Vec::as_slice)
    }

    /// The providers with parameters in a file. The name has no folders and is in lower case.
    pub fn by_parameter_file(&self, file: &str) -> &[Arc<Registration>] {
        self.by_parameter_file.get(file).map_or(&[], Vec::as_slice)
    }
}

/// A provider with a manifest, from its key in `Publishers`.
fn publisher(key: &Key<'_>) -> Option<Registration> {
    Some(Registration {
        guid: Some(guid_of_text(&key.name())?),
        name: key.text("")?.into(),
        resource_files: files(key, "ResourceFileName"),
        message_files: files(key, "MessageFileName"),
        parameter_files: files(key, "ParameterFileName"),
        is_classic: false,
    })
}

/// A classic source, from its key below a log.
fn source(key: &Key<'_>) -> Option<Registration> {
    Some(Registration {
        name: key.name().into(),
        guid: key.text("ProviderGuid").and_then(|text| guid_of_text(text.trim())),
        resource_files: Vec::new(),
        message_files: files(key, "EventMessageFile"),
        parameter_files: files(key, "ParameterMessageFile"),
        is_classic: true,
    })
    .filter(|registration| !registration.message_files.is_empty() || !registration.parameter_files.is_empty())
}

fn files(key: &Key<'_>, value: &str) -> Vec<Box<str>> {
    key.text(value).map_or(Vec::new(), |text| files_of(&text))
}

/// The files that a value of the registry names, without folders and in lower case.
pub fn files_of(value: &str) -> Vec<Box<str>> {
    let names = value.split([';', ',']).map(file_name).filter(|name| !name.is_empty());
    names.take(MAX_FILES).map(Box::from).collect()
}

/// The name of a file in a path with `\` or `/`, in lower case and without `.mui`.
pub fn file_name(path: &str) -> String {
    let name = path
        .rsplit(['\\', '/'])
        .next()
        .unwrap_or_default()
        .trim()
        .to_lowercase();
    match name.strip_suffix(".mui") {
        Some(name) => name.to_owned(),
        None => name,
    }
}
