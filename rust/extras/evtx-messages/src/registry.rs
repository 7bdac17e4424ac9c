//! Which provider uses which files, from the hives of a registry.
//!
//! | hive | key | values |
//! | --- | --- | --- |
//! | SOFTWARE | `Microsoft\Windows\CurrentVersion\WINEVT\Publishers\{guid}` | the name of the provider, `ResourceFileName`, `MessageFileName`, `ParameterFileName` |
//! | SYSTEM | `ControlSet001\Services\EventLog\<log>\<source>` | `EventMessageFile`, `ParameterMessageFile`, `ProviderGuid` |
//!
//! A value can name several files, with semicolons between them. `%SystemRoot%\system32\x.dll` is `Windows\system32\x.dll` on the
//! volume with `Windows`. Files that were copied out of an image may have lost their folders, so the folder with `System32` can have
//! any name, and files can be together in one folder. See [`Root`].

mod hive;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evtx_format::Interrupt;
use hashbrown::HashMap;

use crate::error::{Error, Result};
use crate::row::{Guid, guid_of_text};
pub use hive::{Hive, Key};

/// What the providers of a registry may take of memory, in bytes. Windows has about 3,000, which take 3 MiB. *(choice)*
const MAX_MEMORY: usize = 24 << 20;

/// The files of one value, at most. *(choice)*
const MAX_FILES: usize = 64;

/// A hive that says which provider uses which files, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HiveName {
    /// `SOFTWARE`, with the providers that have a manifest.
    Software,
    /// `SYSTEM`, with the sources of the classic logs.
    System,
}

impl HiveName {
    /// The name that a path ends with, in any case.
    pub fn of(path: &str) -> Option<Self> {
        match path.rsplit(['/', '\\']).next() {
            Some(name) if name.eq_ignore_ascii_case("SOFTWARE") => Some(HiveName::Software),
            Some(name) if name.eq_ignore_ascii_case("SYSTEM") => Some(HiveName::System),
            _ => None,
        }
    }
}

/// Where the folder of Windows is among files. Of several, the one with the fewest folders above is that of Windows: users
/// can have folders with these names below it, or elsewhere on its volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Root {
    /// How many folders are above it.
    above: usize,
    kind: RootKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RootKind {
    /// The folder with `Windows`, and other folders of its volume.
    Volume,
    /// The folder with `System32`, whatever it is called.
    Windows,
    /// The folder with files that lost their folders.
    Files,
}

impl Root {
    /// The root of a path with `System32`; `None` without it.
    pub fn of(path: &str) -> Option<Self> {
        FileLocation::of(path).root()
    }

    /// Whether it has no more folders above than another one.
    pub fn is_above(self, other: Self) -> bool {
        self.above <= other.above
    }

    /// The root of a hive with a path, and whether the hive is where Windows has it below that.
    pub fn of_hive(path: &str) -> (Self, bool) {
        let location = FileLocation::of(path);
        match location.root().filter(|root| {
            let path = format!("{SYSTEM}/config/{}", location.name());
            location.is_at(&path, *root)
        }) {
            Some(root) => (root, true),
            None => {
                let mut root = location.root_of_files();
                // Its folder can have been copied without those above.
                root.above -= usize::from(location.folder().ends_with("config"));
                (root, false)
            }
        }
    }
}

/// A file that a registry names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegisteredFile {
    /// Its path on the volume with Windows, in lower case: `windows/system32/x.dll`. That of a file elsewhere begins with its drive,
    /// its share, or a variable.
    path: Arc<str>,
}

impl RegisteredFile {
    /// The name without folders, in lower case.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// The folder with most files of Windows, and with the resources of files in other folders.
const SYSTEM: &str = "windows/system32";

/// Files that a registry names. Providers that have a value in common share them.
pub type Files = Arc<[RegisteredFile]>;

/// Where a file is that a registry may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLocation {
    /// The path in lower case, with `/`. Texts are where their binary is, not in the folder of their language.
    path: Box<str>,
    /// The length of its folder.
    folder: usize,
    /// Whether it has the resources of a binary that may be in another folder.
    in_system_resources: bool,
}

impl FileLocation {
    /// The location of the file with a path.
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
        FileLocation {
            folder: folder.trim_start_matches('/').len(),
            path: format!("{folder}/{}", file_name(name)).trim_start_matches('/').into(),
            in_system_resources: windows.is_some(),
        }
    }

    /// The folder in which files belong together that have one name: drivers have their resources where `System32` has
    /// them.
    pub fn folder(&self) -> &str {
        let folder = &self.path[..self.folder];
        let system = folder
            .strip_suffix("/drivers")
            .filter(|folder| folder.ends_with("system32"));
        system.unwrap_or(folder)
    }

    /// The name without `.mui` and `.mun`, in lower case.
    pub fn name(&self) -> &str {
        self.path[self.folder..].trim_start_matches('/')
    }

    /// How many folders it is in.
    pub fn depth(&self) -> usize {
        self.path.matches('/').count()
    }

    /// How many bytes of memory its path takes.
    pub fn bytes(&self) -> usize {
        self.path.len()
    }

    /// The root of its path, if that has the folder `System32`.
    fn root(&self) -> Option<Root> {
        let folders: Vec<_> = self.path[..self.folder].split('/').collect();
        let at = folders.iter().position(|folder| *folder == "system32")?;
        Some(match at.checked_sub(1).filter(|before| folders[*before] == "windows") {
            Some(above) => Root {
                above,
                kind: RootKind::Volume,
            },
            None => Root {
                above: at,
                kind: RootKind::Windows,
            },
        })
    }

    /// The root, if it lost its folders.
    fn root_of_files(&self) -> Root {
        Root {
            above: self.depth(),
            kind: RootKind::Files,
        }
    }

    /// Whether it is the file that a registry names by a path.
    fn is_at(&self, path: &str, root: Root) -> bool {
        let path = match root.kind {
            RootKind::Volume => Some(path),
            RootKind::Windows => path.strip_prefix("windows/"),
            RootKind::Files => path.rsplit('/').next(),
        };
        let above = path.and_then(|path| self.path.strip_suffix(path));
        above
            .is_some_and(|above| above.matches('/').count() == root.above && (above.is_empty() || above.ends_with('/')))
    }
}

/// Whether a folder has texts of a language, as `en-us` and `ca-es-valencia`.
fn is_language(folder: &str) -> bool {
    let is_part = |part: &str| (2..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
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
    pub resource_files: Files,
    /// The files with the texts of its events.
    pub message_files: Files,
    /// The files with the texts of its parameters.
    pub parameter_files: Files,
    /// Whether it is a source of the classic log: the upper half of the ID of a message is its qualifiers.
    pub is_classic: bool,
}

/// The providers of one or more hives.
#[derive(Debug, Default)]
pub struct Registry {
    registrations: BTreeSet<Arc<Registration>>,
    by_guid: BTreeMap<Guid, Arc<Registration>>,
    by_message_file: Users,
    by_parameter_file: Users,
    /// The names of all files, in lower case.
    files: BTreeSet<Box<str>>,
    /// Where the files are that were found.
    root: Option<Root>,
    /// What all of it takes, in bytes.
    memory: usize,
}

/// Providers by the names of their files. It is a table of lists, as many providers may share one list of many files.
#[derive(Debug, Default)]
struct Users {
    /// The providers with a list of files, by its address.
    providers: HashMap<usize, Vec<Arc<Registration>>>,
    /// The addresses of the lists with files of a name.
    lists: BTreeMap<Box<str>, Vec<usize>>,
}

impl Users {
    fn add(&mut self, files: &Files, registration: &Arc<Registration>) {
        if files.is_empty() {
            return;
        }
        let address = Arc::as_ptr(files).addr();
        let providers = self.providers.entry(address).or_default();
        // The files of a list are known after its first provider.
        for file in files.iter().filter(|_| providers.is_empty()) {
            let lists = self.lists.entry(file.name().into()).or_default();
            if lists.last() != Some(&address) {
                lists.push(address);
            }
        }
        providers.push(Arc::clone(registration));
    }

    fn of(&self, name: &str) -> impl Iterator<Item = &Arc<Registration>> {
        let lists = self.lists.get(name).into_iter().flatten();
        lists.flat_map(|address| &self.providers[address])
    }
}

/// The lists of files that were read from a hive.
#[derive(Default)]
struct Lists {
    /// Whether the hive names a provider.
    has_provider: bool,
    /// By the addresses of their texts.
    known: HashMap<usize, (Arc<str>, Files)>,
    /// What those take that were read last, in bytes.
    memory: usize,
}

impl Registry {
    /// Adds the providers that a hive of a name has. Without a name, it may have any.
    ///
    /// # Errors
    /// If the bytes are not a hive, fewer than its header says, or if they multiply what they contain; and if the work is
    /// interrupted. What could be read is added nevertheless. Damaged keys are left out.
    pub fn add_hive(&mut self, file: &[u8], name: Option<HiveName>, interrupt: Interrupt<'_>) -> Result<()> {
        let hive = Hive::open(file, interrupt)?;
        let (root, mut lists) = (hive.root(), Lists::default());
        if name != Some(HiveName::System)
            && let Some(publishers) = root.path(r"Microsoft\Windows\CurrentVersion\WINEVT\Publishers")
        {
            for key in publishers.subkeys() {
                let registration = publisher(&key, &mut lists);
                self.add_key(registration, &mut lists, &hive)?;
            }
        }
        let control_sets = root
            .subkeys()
            .filter(|key| name != Some(HiveName::Software) && key.name().to_lowercase().starts_with("controlset"));
        for control_set in control_sets {
            let Some(logs) = control_set.path(r"Services\EventLog") else {
                continue;
            };
            for key in logs.subkeys().flat_map(|log| log.subkeys()) {
                let registration = source(&key, &mut lists);
                self.add_key(registration, &mut lists, &hive)?;
            }
        }
        hive.check()?;
        hive.cut().map_or(Ok(()), Err)?;
        if name.is_some() && !lists.has_provider {
            return Err(Error::Damaged {
                what: "the hive",
                offset: 0,
                why: "it names no provider, as each one of Windows does",
            });
        }
        Ok(())
    }

    fn add_key(&mut self, registration: Option<Registration>, lists: &mut Lists, hive: &Hive<'_>) -> Result<()> {
        self.take(std::mem::take(&mut lists.memory))?;
        if let Some(registration) = registration {
            lists.has_provider = true;
            self.add(registration)?;
        }
        hive.check()
    }

    /// Adds a provider. Use this for sources other than hives.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if there is no memory left for it.
    pub fn add(&mut self, registration: Registration) -> Result<()> {
        // Long names are texts of a hive, which are counted there and shared.
        let memory = 4 * size_of::<Registration>() + registration.name.len().min(512);
        self.take(memory)?;
        let of_kinds = [
            &registration.resource_files,
            &registration.message_files,
            &registration.parameter_files,
        ];
        for file in of_kinds.into_iter().flat_map(|files| &**files) {
            if !self.files.contains(file.name()) {
                self.take(file.name().len() + 64)?;
                self.files.insert(file.name().into());
            }
        }
        let registration = Arc::new(registration);
        if !self.registrations.insert(registration.clone()) {
            self.memory -= memory;
            return Ok(());
        }
        if let (Some(guid), false) = (registration.guid, registration.is_classic) {
            self.by_guid.entry(guid).or_insert_with(|| registration.clone());
        }
        if registration.is_classic {
            self.by_message_file.add(&registration.message_files, &registration);
        }
        self.by_parameter_file.add(&registration.parameter_files, &registration);
        Ok(())
    }

    /// Takes memory for providers, before they are there.
    fn take(&mut self, bytes: usize) -> Result<()> {
        self.memory += bytes;
        if self.memory <= MAX_MEMORY {
            return Ok(());
        }
        Err(Error::too_large(
            "the providers of the registry",
            0,
            self.memory,
            MAX_MEMORY,
        ))
    }

    /// All providers, sorted by name.
    pub fn registrations(&self) -> impl Iterator<Item = &Registration> {
        self.registrations.iter().map(|registration| &**registration)
    }

    /// Notes where a file is. Call it for all files before [`is_file_of`](Self::is_file_of).
    pub fn locate(&mut self, file: &FileLocation) {
        let lost = Some(file.root_of_files()).filter(|_| self.files.contains(file.name()));
        let root = file.root().into_iter().chain(lost).chain(self.root).min();
        self.root = root;
    }

    /// Whether a file is one of these, which a provider uses: it is where the registry says, below the root of all files, or
    /// it has the resources of one of them.
    pub fn is_file_of(&self, files: &[RegisteredFile], file: &FileLocation) -> bool {
        let Some(root) = self.root else { return false };
        let is_own = |registered: &RegisteredFile| {
            let resources = file.in_system_resources && file.is_at(&format!("{SYSTEM}/{}", file.name()), root);
            registered.name() == file.name() && (resources || file.is_at(&registered.path, root))
        };
        files.iter().any(is_own)
    }

    /// Whether a provider uses a file with a name, in lower case.
    pub fn has_file(&self, name: &str) -> bool {
        self.files.contains(name)
    }

    /// Whether it has the providers with manifests, so that any other one is not of this system.
    pub fn has_publishers(&self) -> bool {
        !self.by_guid.is_empty()
    }

    /// The provider with a manifest and a GUID.
    pub fn by_guid(&self, guid: &Guid) -> Option<&Registration> {
        self.by_guid.get(guid).map(|registration| &**registration)
    }

    /// The classic sources with texts in a file. The name has no folders and is in lower case.
    pub fn by_message_file(&self, file: &str) -> impl Iterator<Item = &Arc<Registration>> {
        self.by_message_file.of(file)
    }

    /// The providers with parameters in a file. The name has no folders and is in lower case.
    pub fn by_parameter_file(&self, file: &str) -> impl Iterator<Item = &Arc<Registration>> {
        self.by_parameter_file.of(file)
    }
}

/// A provider with a manifest, from its key in `Publishers`.
fn publisher(key: &Key<'_>, lists: &mut Lists) -> Option<Registration> {
    Some(Registration {
        guid: Some(guid_of_text(&key.name())?),
        name: key.text("")?,
        resource_files: files(key, "ResourceFileName", lists),
        message_files: files(key, "MessageFileName", lists),
        parameter_files: files(key, "ParameterFileName", lists),
        is_classic: false,
    })
}

/// A classic source, from its key below a log.
fn source(key: &Key<'_>, lists: &mut Lists) -> Option<Registration> {
    Some(Registration {
        name: key.name().into(),
        guid: key.text("ProviderGuid").and_then(|text| guid_of_text(text.trim())),
        resource_files: Files::default(),
        message_files: files(key, "EventMessageFile", lists),
        parameter_files: files(key, "ParameterMessageFile", lists),
        is_classic: true,
    })
    .filter(|registration| !registration.message_files.is_empty() || !registration.parameter_files.is_empty())
}

fn files(key: &Key<'_>, value: &str, lists: &mut Lists) -> Files {
    let Some(text) = key.text(value) else {
        return Files::default();
    };
    let address = Arc::as_ptr(&text).addr();
    let (_, files) = lists.known.entry(address).or_insert_with(|| {
        let files = files_of(&text);
        lists.memory += 128 + files.iter().map(|file| file.path.len() + 96).sum::<usize>();
        (Arc::clone(&text), files)
    });
    Arc::clone(files)
}

/// The files that a value of the registry names.
pub fn files_of(value: &str) -> Files {
    let named = value.split(';').map(path_of).filter(|path| !path.is_empty());
    let named = named.take(MAX_FILES);
    named.map(|path| RegisteredFile { path: path.into() }).collect()
}

/// The path below a volume of a file in a value, as `@%SystemRoot%\System32\x.dll,-1001`. A drive that is not `C:`, a share, and
/// a variable that is not known stay, so that no file is there.
fn path_of(value: &str) -> String {
    let value = value.trim().trim_start_matches('@').trim_matches('"').to_lowercase();
    let path = match value.rsplit_once(",-") {
        Some((path, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => path,
        _ => &value,
    };
    let path = path.replace('\\', "/");
    let path = path.trim_start_matches("/??/").trim_start_matches("//?/");
    if path.starts_with("//") {
        return path.to_owned();
    }
    let mut parts = path
        .split('/')
        .filter(|part| !matches!(*part, "" | "."))
        .map(|part| if part == "sysnative" { "system32" } else { part })
        .peekable();
    let first = parts.peek().copied().unwrap_or_default();
    let root = folder_of(first);
    let is_full = root.is_some() || path.starts_with('/') || first.starts_with('%') || first.ends_with(':');
    parts.next_if(|first| (root.is_some() && *first != "system32") || matches!(*first, "c:" | "%systemdrive%"));
    // Windows looks in System32 for a file without a drive.
    let root = root.or((!is_full && !first.is_empty()).then_some(SYSTEM));
    root.into_iter().chain(parts).collect::<Vec<_>>().join("/")
}

/// The folder that is the start of a path: that of a variable, or that of Windows.
fn folder_of(start: &str) -> Option<&'static str> {
    Some(match start {
        "%systemroot%" | "%windir%" | "systemroot" | "system32" => "windows",
        "%programfiles%" | "%programw6432%" => "program files",
        "%programfiles(x86)%" => "program files (x86)",
        "%commonprogramfiles%" | "%commonprogramw6432%" => "program files/common files",
        "%commonprogramfiles(x86)%" => "program files (x86)/common files",
        "%programdata%" | "%allusersprofile%" => "programdata",
        _ => return None,
    })
}

/// The name of a file in a path with `\` or `/`, in lower case and without `.mui` and `.mun`.
pub fn file_name(path: &str) -> String {
    let name = path.rsplit(['\\', '/']).next().unwrap_or_default();
    let name = name.trim().to_lowercase();
    let name = name.strip_suffix(".mui").unwrap_or(&name);
    name.strip_suffix(".mun").unwrap_or(name).to_owned()
}
