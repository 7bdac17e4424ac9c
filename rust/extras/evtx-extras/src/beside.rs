//! Finds and reads the message files (`.MTA`) next to logs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use evtx_arrow::Beside;
use evtx_messages::mta::{self, SavedMessages};
use evtx_scan::{BesideLogs, Call, Holds, Lease, LogFile, Pool, ScanPath, StorageError, has_glob, literal, separators};

/// Finds and reads the messages of the logs of a scan.
#[derive(Debug)]
pub struct MessageFiles {
    glob: String,
    /// How many more bytes of memory messages may take.
    memory: Pool,
    /// The last folder of messages, as a glob, and whether it is empty. Most logs have no messages next to them.
    last: Mutex<(String, bool)>,
}

/// The most files of one language beside a log. Of more, none is read. *(choice)*
const MAX_FILES: usize = 8;

/// Which files of messages are read: those of the first language of which any can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Language {
    /// The LCID 1033.
    UnitedStates,
    /// The primary language 9, with this LCID.
    English(u32),
    /// Another LCID.
    Other(u32),
    /// The LCID 0, which no language has, or a name without an LCID.
    None,
}

/// A file of messages beside a log, and its path.
#[derive(Debug)]
pub struct MessageFile {
    /// The path, which `message_source` shows.
    pub path: Arc<str>,
    /// What the file has.
    pub messages: SavedMessages,
}

/// The messages of one language that are beside a log, which the columns look for.
#[derive(Debug)]
pub struct SavedBeside {
    /// The messages.
    pub files: Vec<MessageFile>,
    /// The memory that is reserved for them.
    pub memory: Option<Lease>,
}

impl BesideLogs for MessageFiles {
    fn find(&self, call: Call<'_>, log: &ScanPath) -> Result<Option<Beside>, StorageError> {
        match self.read(call, log) {
            Err(StorageError::Failed(_) | StorageError::Unusable(_)) => Ok(None),
            found => Ok(found?.map(|found| Arc::new(found) as Beside)),
        }
    }
}

impl MessageFiles {
    /// A finder that looks for `glob`, which is relative to the log's folder, in which `{log}` is the log's name. A log
    /// whose messages would exceed `memory` bytes, with those of all open logs, is read without them.
    pub fn new(glob: &str, memory: u64) -> Self {
        MessageFiles {
            glob: glob.to_owned(),
            memory: Pool::new(memory),
            last: Mutex::default(),
        }
    }

    /// The files of the messages of a log, by language.
    fn paths(&self, call: Call<'_>, log: &ScanPath) -> Result<BTreeMap<Language, Vec<ScanPath>>, StorageError> {
        let (name, found): (_, Vec<_>) = match log.nested() {
            Some(file) if file.outer_holds() == Holds::Folder => {
                // The name of a nested file never leads out of the outer one.
                let name = log.path.get(file.outer().len() + 1..).unwrap_or_default();
                let found = pattern(name, &self.glob).map_or(Vec::new(), |pattern| file.beside(&pattern));
                (name, found.into_iter().map(|(path, file)| (path, Some(file))).collect())
            }
            nested => {
                let outer = nested.map_or(Holds::Bytes, |file| file.outer_holds());
                let name = if let Holds::File(name) = outer { name } else { &log.path };
                let found = match pattern(name, &self.glob) {
                    Some(pattern) if !self.is_empty(call, &pattern)? => call.storage.glob(&pattern, call.interrupt)?,
                    _ => Vec::new(),
                };
                let paths = found.into_iter().filter_map(|path| String::from_utf8(path).ok());
                (name, paths.map(|path| (path, None)).collect())
            }
        };
        let mut paths = BTreeMap::<_, Vec<_>>::new();
        for (path, nested) in found {
            if let Some(language) = Language::of(&path, name, has_glob(&self.glob)) {
                paths.entry(language).or_default().push(ScanPath::found(path, nested));
            }
        }
        // Anyone can give a file the language 0, and no log of Windows has one beside others.
        if paths.len() > 1 {
            paths.remove(&Language::None);
        }
        paths.values_mut().for_each(|of| of.sort_by(|a, b| a.path.cmp(&b.path)));
        Ok(paths)
    }

    /// Whether the folder of a glob is empty. Checks only folders that many logs share.
    fn is_empty(&self, call: Call<'_>, pattern: &str) -> Result<bool, StorageError> {
        let of_all = |(folder, name): &(&str, &str)| !folder.contains("{log}") && !name.contains("**");
        let separators = separators(call.storage.is_remote(pattern));
        if self.glob.rsplit_once(separators).filter(of_all).is_none() {
            return Ok(false);
        }
        let folder = pattern.rsplit_once(separators).map_or("", |(folder, _)| folder);
        let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last();
        if known.0 == folder {
            return Ok(known.1);
        }
        drop(known);
        let is_empty = call.storage.glob(&format!("{folder}/*"), call.interrupt)?.is_empty();
        *last() = (folder.to_owned(), is_empty);
        Ok(is_empty)
    }

    fn read(&self, call: Call<'_>, log: &ScanPath) -> Result<Option<SavedBeside>, StorageError> {
        for paths in self.paths(call, log)?.into_values() {
            if paths.len() > MAX_FILES {
                return Ok(None);
            }
            let (mut memory, mut messages) = (self.memory.lease(), Vec::new());
            for path in paths {
                let file = match LogFile::open(call, &path) {
                    Ok(file) if file.failure.is_none() => file,
                    Ok(_) | Err(StorageError::Failed(_) | StorageError::Unusable(_)) => continue,
                    Err(error) => return Err(error),
                };
                let Some(size) = usize::try_from(file.size()).ok().filter(|&size| size <= mta::MAX_FILE) else {
                    continue;
                };
                // A large file must not keep another one from being compared with it.
                if !memory.try_take(mta::memory(size)) {
                    return Ok(None);
                }
                let bytes = match file.read_all(call, mta::MAX_FILE as u64) {
                    Ok(bytes) => bytes,
                    Err(StorageError::Failed(_) | StorageError::Unusable(_)) => continue,
                    Err(error) => return Err(error),
                };
                let read = SavedMessages::read(bytes, call.interrupt);
                call.interrupt.check()?;
                messages.extend(read.ok().map(|messages| MessageFile {
                    path: path.path.as_str().into(),
                    messages,
                }));
            }
            if !messages.is_empty() {
                return Ok(Some(SavedBeside {
                    files: messages,
                    memory: Some(memory),
                }));
            }
        }
        Ok(None)
    }
}

impl Language {
    /// The language of a file beside a log, by its name `<log>_<LCID>.MTA`. `None` if it is that of another log: to the
    /// pattern of `Security.evtx`, `Security_2_1033.MTA` looks like its own. `is_glob` is whether the glob has
    /// wildcards.
    fn of(path: &str, log: &str, is_glob: bool) -> Option<Language> {
        let stem = |path: &str| {
            let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
            name.rsplit_once('.').map_or(name, |(stem, _)| stem).to_lowercase()
        };
        let (name, log) = (stem(path), stem(log));
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse().unwrap_or(u32::MAX))
        };
        let (before, after) = name.rsplit_once('_').unwrap_or_default();
        let lcid = number(after);
        if is_glob && lcid.is_some() && before != log && name.starts_with(&format!("{log}_")) {
            return None;
        }
        Some(match lcid.unwrap_or(0) {
            0 => Language::None,
            1033 => Language::UnitedStates,
            lcid if lcid & 0x3FF == 9 => Language::English(lcid),
            lcid => Language::Other(lcid),
        })
    }
}

/// A glob for the files that may hold the messages of the log with a path. `glob` is absolute or relative
/// to the log's folder, in which `{log}` is the log's name without extension. `None` if either names nothing.
fn pattern(log: &str, glob: &str) -> Option<String> {
    let (folder, name) = log
        .rsplit_once(['/', '\\'])
        .map_or(("", log), |(folder, name)| (&log[..=folder.len()], name));
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let is_absolute = glob.starts_with(['/', '\\']) || glob.contains(":/") || glob.contains(":\\");
    let folder = if is_absolute { "" } else { folder };
    let named = !stem.is_empty() && !glob.is_empty();
    named.then(|| literal(folder) + &glob.replace("{log}", &literal(stem)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_in_the_name() {
        for (name, language) in [
            ("a/LocaleMetaData/Security_1033.MTA", Some(Language::UnitedStates)),
            (r"a\LocaleMetaData\security_01033.mta", Some(Language::UnitedStates)),
            ("Security_2057.MTA", Some(Language::English(2057))),
            ("Security_1031.MTA", Some(Language::Other(1031))),
            ("Security_99999999999.MTA", Some(Language::Other(u32::MAX))),
            ("Security_0.MTA", Some(Language::None)),
            ("Security_.MTA", Some(Language::None)),
            ("Security_x.MTA", Some(Language::None)),
            ("Security.MTA", Some(Language::None)),
            ("saved_1033.MTA", Some(Language::UnitedStates)),
            ("Security_2_1033.MTA", None),
        ] {
            assert_eq!(Language::of(name, "logs/Security.evtx", true), language, "{name}");
        }
        let named = Language::of("Security_2_1033.MTA", "Security.evtx", false);
        assert_eq!(named, Some(Language::UnitedStates));
        assert!(Language::UnitedStates < Language::English(2057) && Language::English(9) < Language::Other(1025));
    }

    #[test]
    fn the_pattern_names_only_the_files_of_the_log() {
        for (log, glob, expected) in [
            (
                "a/b/Security.evtx",
                "LocaleMetaData/{log}_*.MTA",
                Some("a/b/LocaleMetaData/Security_*.MTA"),
            ),
            (
                "x[1].evtx",
                "LocaleMetaData/{log}_*.MTA",
                Some("LocaleMetaData/x[[]1]_*.MTA"),
            ),
            ("a/b/System.evtx", "/case/{log}_1033.MTA", Some("/case/System_1033.MTA")),
            ("dir/", "{log}", None),
            ("System.evtx", "", None),
        ] {
            assert_eq!(pattern(log, glob).as_deref(), expected);
        }
    }
}
