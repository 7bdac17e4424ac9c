//! Which provider uses which files, from the hives of a registry.
//!
//! | hive | key | values |
//! | --- | --- | --- |
//! | SOFTWARE | `Microsoft\Windows\CurrentVersion\WINEVT\Publishers\{guid}` | the name of the provider, `ResourceFileName`, `MessageFileName`, `ParameterFileName` |
//! | SYSTEM | `ControlSet001\Services\EventLog\<log>\<source>` | `EventMessageFile`, `ParameterMessageFile`, `ProviderGuid` |
//!
//! A value can name several files, with semicolons between them. `%SystemRoot%\system32\x.dll` is a file `x.dll` in any
//! folder `system32`. Only if there is none, it is any file `x.dll`: what was copied out of an image may have lost its folders.

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

/// A file that a registry names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegisteredFile {
    /// Its path below a drive or below the folder that a variable names, in lower case: `system32/x.dll`.
    path: Box<str>,
}

impl RegisteredFile {
    /// The name without folders, in lower case.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// Where a file is that a registry may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlace {
    /// The path in lower case, with `/`. Texts are where their binary is, not in the folder of their language.
    path: Box<str>,
    name_at: usize,
    /// Whether it has the resources of a binary that may be in another folder.
    in_system_resources: bool,
}

impl FilePlace {
    /// The place of the file with a path.
    pub fn of(path: &str) -> Self {
        let path = path.to_lowercase().replace('\\', "/");
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let (above, last) = folder.rsplit_once('/').unwrap_or(("", folder));
        let folder = if name.ends_with(".mui") && is_language(last) {
            above
        } else {
            folder
        };
        let windows = folder
            .strip_suffix("systemresources")
            .filter(|_| name.ends_with(".mun"));
        let folder = windows.map_or(folder.to_owned(), |windows| format!("{windows}system32"));
        FilePlace {
            name_at: folder.len() + 1,
            path: format!("{folder}/{}", file_name(name)).into(),
            in_system_resources: windows.is_some(),
        }
    }

    /// The folder in which files belong together that have one name: drivers have their resources where `System32` has
    /// them.
    pub fn folder(&self) -> &str {
        let folder = &self.path[..self.name_at - 1];
        let system = folder
            .strip_suffix("/drivers")
            .filter(|folder| folder.ends_with("system32"));
        system.unwrap_or(folder)
    }

    /// The name without `.mui` and `.mun`, in lower case.
    pub fn name(&self) -> &str {
        &self.path[self.name_at..]
    }

    /// The ends of the path, each one or more folders and the name.
    fn ends(&self) -> impl Iterator<Item = &str> {
        let starts = self.path.match_indices('/').map(|(at, _)| at + 1);
        starts.chain([0]).map(|start| &self.path[start..])
    }
}

/// Whether a folder has texts of a language, as `en-us` and `sr-latn-rs`.
fn is_language(folder: &str) -> bool {
    let is_part = |part: &str| (2..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    folder.contains('-') && folder.split('-').all(is_part)
}

/// A provider and its files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Registration {
    /// The name.
    pub name: Arc<str>,
    /// The GUID, if it has one.
    pub guid: Option<Guid>,
    /// The files with its manifest.
    pub resource_files: Vec<RegisteredFile>,
    /// The files with the texts of its events.
    pub message_files: Vec<RegisteredFile>,
    /// The files with the texts of its parameters.
    pub parameter_files: Vec<RegisteredFile>,
    /// Whether it is a source of the classic log: the upper half of the ID of a message is its qualifiers.
    pub is_classic: bool,
}

/// The providers of one or more hives.
#[derive(Debug, Default)]
pub struct Registry {
    registrations: BTreeSet<Arc<Registration>>,
    /// In lower case.
    names: BTreeSet<Box<str>>,
    by_guid: BTreeMap<Guid, Arc<Registration>>,
    by_message_file: BTreeMap<Box<str>, Vec<Arc<Registration>>>,
    by_parameter_file: BTreeMap<Box<str>, Vec<Arc<Registration>>>,
    files: BTreeSet<RegisteredFile>,
    /// Those of the files whose paths were found.
    located: BTreeSet<RegisteredFile>,
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
        self.names.insert(registration.name.to_lowercase().into());
        let of_kinds = [
            &registration.resource_files,
            &registration.message_files,
            &registration.parameter_files,
        ];
        self.files.extend(of_kinds.into_iter().flatten().cloned());
        if let (Some(guid), false) = (registration.guid, registration.is_classic) {
            self.by_guid.entry(guid).or_insert_with(|| registration.clone());
        }
        let files = registration.message_files.iter().filter(|_| registration.is_classic);
        for file in files {
            self.by_message_file
                .entry(file.name().into())
                .or_default()
                .push(registration.clone());
        }
        for file in &registration.parameter_files {
            self.by_parameter_file
                .entry(file.name().into())
                .or_default()
                .push(registration.clone());
        }
    }

    /// All providers, sorted by name.
    pub fn registrations(&self) -> impl Iterator<Item = &Registration> {
        self.registrations.iter().map(|registration| &**registration)
    }

    /// Notes where a file is. Call it for all files before [`is_file_of`](Self::is_file_of).
    pub fn locate(&mut self, file: &FilePlace) {
        for path in file.ends().map(Into::into) {
            let file = RegisteredFile { path };
            if self.files.contains(&file) {
                self.located.insert(file);
            }
        }
    }

    /// Whether a file is one of these, which a provider uses: it has the path of one of them. If no file has that, its
    /// name is enough.
    pub fn is_file_of(&self, files: &[RegisteredFile], file: &FilePlace) -> bool {
        let is_at = |registered: &RegisteredFile| file.ends().any(|end| *end == *registered.path);
        let is_same = |registered: &RegisteredFile| {
            registered.name() == file.name()
                && (file.in_system_resources || !self.located.contains(registered) || is_at(registered))
        };
        files.iter().any(is_same)
    }

    /// Whether the registry has a provider with this name or this GUID.
    pub fn has(&self, name: Option<&str>, guid: Option<&Guid>) -> bool {
        name.is_some_and(|name| self.names.contains(&*name.to_lowercase()))
            || guid.is_some_and(|guid| self.by_guid.contains_key(guid))
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

fn files(key: &Key<'_>, value: &str) -> Vec<RegisteredFile> {
    key.text(value).map_or(Vec::new(), |text| files_of(&text))
}

/// The files that a value of the registry names.
pub fn files_of(value: &str) -> Vec<RegisteredFile> {
    let paths = value.split([';', ',']).map(|path| {
        let path = path.trim().to_lowercase().replace('\\', "/");
        // What stands for a folder of the system: `%SystemRoot%`, `\SystemRoot`, `\??\C:`, and `@` before them.
        let is_root = |part: &&str| {
            matches!(*part, "" | "??" | "?" | "." | "systemroot") || part.starts_with(['%', '@']) || part.ends_with(':')
        };
        let parts: Vec<_> = path.split('/').skip_while(is_root).collect();
        parts.join("/")
    });
    let named = paths.filter(|path| !path.is_empty()).take(MAX_FILES);
    named.map(|path| RegisteredFile { path: path.into() }).collect()
}

/// The name of a file in a path with `\` or `/`, in lower case and without `.mui` and `.mun`.
pub fn file_name(path: &str) -> String {
    let name = path.rsplit(['\\', '/']).next().unwrap_or_default();
    let name = name.trim().to_lowercase();
    let name = name.strip_suffix(".mui").unwrap_or(&name);
    name.strip_suffix(".mun").unwrap_or(name).to_owned()
}
