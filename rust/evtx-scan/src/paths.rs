//! The paths of the files that a call reads.
//!
//! A path leads into a ZIP archive if a part of it, up to a slash, is the path of one: `case.zip/C/**/*.evtx`.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use evtx_format::Interrupt;
use evtx_format::mta::literal;

use crate::archive::{self, Archives, Entry, FileKind, Kind, ends_with, is_same};
use crate::local::{once, out_of_reach};
use crate::storage::{Call, LastOpened, ScanError, Storage, StorageError, sort_by};

/// The path of a file that a call reads.
#[derive(Debug, Clone)]
pub struct ScanPath {
    /// The path as text: of an entry that of its archive, a slash, and its name. U+FFFD replaces bytes that are not
    /// UTF-8.
    pub path: String,
    /// Whether the caller named the file. If it is not a log, that is an error. False if a glob found the file, or if
    /// it was found in a folder or an archive: then it becomes a row that says what is wrong.
    pub explicitly_named: bool,
    pub(crate) source: Source,
    /// Which part of the file is read; `None` for all of it.
    pub(crate) part: Option<Part>,
}

/// A part of a file, as it was planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The size of the file in bytes when the part was planned. A file that is smaller when it is read is an error.
    pub size: u64,
    /// The slots of 64 KiB that are read, from the file header on; `None` for the whole file. The part with slot 0 tells
    /// what is wrong with the file as a whole.
    pub slots: Option<Range<u64>>,
}

impl Part {
    /// Whether the part tells what is wrong with the file as a whole.
    pub(crate) fn is_first(&self) -> bool {
        self.slots.as_ref().is_none_or(|slots| slots.start == 0)
    }
}

/// Where the bytes of a file are.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// In the file of the storage with the path.
    File,
    /// In an archive.
    Entry(Entry),
    /// They cannot be read, for this reason.
    Unreadable(Arc<str>),
}

impl ScanPath {
    /// A file of the storage that the caller named.
    pub(crate) fn named(path: &str) -> Self {
        ScanPath {
            path: path.to_owned(),
            explicitly_named: true,
            source: Source::File,
            part: None,
        }
    }

    /// A part of a file of the storage.
    pub fn of_part(path: String, explicitly_named: bool, part: Part) -> Self {
        ScanPath {
            path,
            explicitly_named,
            source: Source::File,
            part: Some(part),
        }
    }

    /// A file that was found and cannot be read, for this reason.
    pub fn unreadable(path: String, why: &str) -> Self {
        ScanPath {
            path,
            explicitly_named: false,
            source: Source::Unreadable(why.into()),
            part: None,
        }
    }

    /// Why the file cannot be read, if that is known without a look at it.
    pub fn why_unreadable(&self) -> Option<&str> {
        match &self.source {
            Source::Unreadable(why) => Some(why),
            _ => None,
        }
    }

    /// Whether the file is an entry of an archive, or compressed.
    pub fn is_in_archive(&self) -> bool {
        matches!(self.source, Source::Entry(_))
    }

    /// The path of the file of the storage: of an entry that of its archive.
    pub fn storage_path(&self) -> &str {
        match &self.source {
            Source::Entry(entry) => entry.archive_path(),
            _ => &self.path,
        }
    }

    /// Does `open`, which opens the file, and waits for other entries of archives if it has to. The thread must have
    /// closed all others.
    pub(crate) fn patiently<T>(
        &self,
        call: Call<'_>,
        open: impl Fn() -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        match &self.source {
            Source::Entry(entry) => entry.patiently(call, open),
            _ => open(),
        }
    }

    /// What becomes of a failure to read the file: a text for its row.
    ///
    /// # Errors
    /// [`ScanError`] if the caller named the file, or has interrupted the work.
    pub(crate) fn failure(&self, error: StorageError) -> Result<String, ScanError> {
        match error {
            StorageError::Failed(why) | StorageError::Archive(why) if !self.explicitly_named => {
                Ok(format!("cannot be read: {why}"))
            }
            StorageError::Archive(why) => self.refusal(why),
            error => Err(error.into()),
        }
    }

    /// What becomes of a file that is not what it should be: a text for its row.
    ///
    /// # Errors
    /// [`ScanError::File`] if the caller named the file.
    pub(crate) fn refusal(&self, why: String) -> Result<String, ScanError> {
        match self.explicitly_named {
            true => Err(ScanError::File(format!("{}: {why}", self.path))),
            false => Ok(why),
        }
    }

    /// What becomes of damage to a file of which a part can be read: a text for its row, also if the caller named it.
    ///
    /// # Errors
    /// [`ScanError`] if the storage failed for a file that the caller named, or the caller has interrupted the work.
    pub(crate) fn damage(&self, error: StorageError) -> Result<String, ScanError> {
        match error {
            StorageError::Archive(why) => Ok(format!("cannot be read: {why}")),
            error => self.failure(error),
        }
    }
}

fn has_glob(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

/// A glob of names in an archive. The case of ASCII letters does not matter, and `\` is the same as `/`.
pub(crate) struct Glob {
    pattern: glob::Pattern,
    text: String,
}

impl Glob {
    pub(crate) fn new(pattern: &str) -> Result<Self, glob::PatternError> {
        // As in DuckDB's globs, `**` beside other letters is the same as `*`.
        let parts = pattern.split(['/', '\\']).map(|part| match part {
            "**" => part.to_owned(),
            _ => once(part),
        });
        let text = parts.collect::<Vec<_>>().join("/");
        let pattern = glob::Pattern::new(&text)?;
        Ok(Glob { pattern, text })
    }

    /// What every name that matches starts with, as far as case does not matter there.
    pub(crate) fn start(&self) -> &str {
        let end = self.text.find(['*', '?', '[']).unwrap_or(self.text.len());
        &self.text[..end]
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        let options = glob::MatchOptions {
            case_sensitive: false,
            require_literal_separator: true,
            require_literal_leading_dot: false,
        };
        match name.contains('\\') {
            true => self.pattern.matches_with(&name.replace('\\', "/"), options),
            false => self.pattern.matches_with(name, options),
        }
    }
}

/// A glob that finds files whatever the case of the letters of their names is. In a remote one this is so behind its
/// first wildcard: what stands before that bounds what the storage lists.
fn any_case(pattern: &str, is_remote: bool) -> String {
    let start = pattern.rfind('/').map_or(0, |slash| slash + 1);
    let (folders, name) = pattern.split_at(start);
    let mut out = folders.to_owned();
    let mut is_behind = !is_remote;
    let mut rest = name.chars();
    while let Some(letter) = rest.next() {
        is_behind |= matches!(letter, '*' | '?' | '[');
        match letter {
            '\\' => {
                out.push(letter);
                out.extend(rest.next());
            }
            '[' => match inside(rest.as_str()) {
                Some(inside) => {
                    out.extend(["[", inside, &other_case(inside), "]"]);
                    rest = rest.as_str()[inside.len() + 1..].chars();
                }
                None => out.push(letter),
            },
            letter if letter.is_ascii_alphabetic() && is_behind => {
                out.extend(['[', letter.to_ascii_lowercase(), letter.to_ascii_uppercase(), ']']);
            }
            _ => out.push(letter),
        }
    }
    out
}

/// What stands in brackets that are open at the start of a text. A `]` at their start is a part of it.
fn inside(text: &str) -> Option<&str> {
    let start = text.strip_prefix('!').unwrap_or(text);
    let end = start.get(1..)?.find(']')? + 1;
    Some(&text[..text.len() - start.len() + end])
}

/// The letters and ranges of letters in brackets, in the other case.
fn other_case(inside: &str) -> String {
    let letters: Vec<char> = inside.trim_start_matches('!').chars().collect();
    let (mut out, mut at) = (String::new(), 0);
    while let Some(&first) = letters.get(at) {
        let last = match letters.get(at + 1..at + 3) {
            Some(&['-', last]) => last,
            _ => first,
        };
        at += if letters.get(at + 1) == Some(&'-') && at + 2 < letters.len() {
            3
        } else {
            1
        };
        for (from, to) in [('a', 'z'), ('A', 'Z')] {
            let (from, to) = (from.max(first), to.min(last));
            let other = |letter: char| char::from(letter as u8 ^ 0x20);
            match from.cmp(&to) {
                std::cmp::Ordering::Less => out.extend([other(from), '-', other(to)]),
                std::cmp::Ordering::Equal => out.push(other(from)),
                std::cmp::Ordering::Greater => {}
            }
        }
    }
    out
}

/// The most names of folders in a path. A path of Linux has at most 4,096 bytes. DuckDB's globs take time that is
/// quadratic in their number: 3 s for 16,000, without a look for interrupts.
const MAX_FOLDERS: usize = 2048;

/// What an expansion finds.
struct Found<'c> {
    call: Call<'c>,
    kind: FileKind,
    archives: &'c Archives,
    paths: Vec<ScanPath>,
}

impl Found<'_> {
    fn add(&mut self, path: String, explicitly_named: bool, source: Source) {
        self.paths.push(ScanPath {
            path,
            explicitly_named,
            source,
            part: None,
        });
    }

    /// Adds what a glob of local files has left out, of which it has found some.
    fn add_out_of_reach(
        &mut self,
        glob: &str,
        is_wanted: &dyn Fn(&str) -> bool,
        found: &[Vec<u8>],
    ) -> Result<(), ScanError> {
        if !self.call.storage.is_remote(glob) {
            let mut known = None;
            for (path, why) in out_of_reach(glob, is_wanted, self.call.interrupt)? {
                // The walk follows links to folders, and may leave those to which the storage allows access.
                if self.call.storage.exists(&path).is_err() {
                    continue;
                }
                match why {
                    Some(why) => self.add(path, false, Source::Unreadable(why.into())),
                    None => {
                        let known =
                            known.get_or_insert_with(|| found.iter().map(Vec::as_slice).collect::<HashSet<_>>());
                        if !known.contains(path.as_bytes()) {
                            self.add_file(path.into_bytes(), false)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether the path is that of a folder, in a file system of Python: those find folders, too. A path that ends as
    /// that of a log does is not looked at.
    fn is_folder(&self, path: &[u8]) -> bool {
        let Ok(path) = std::str::from_utf8(path) else {
            return false;
        };
        let storage = self.call.storage;
        let has_files = || storage.glob(&format!("{}/*", literal(path)));
        storage.is_remote(path)
            && Kind::of(path).is_none()
            && !self.kind.is_read(path)
            && has_files().is_ok_and(|files| !files.is_empty())
            && storage.open(path).is_err()
    }

    /// Adds a file of the storage, or the logs in it if it is an archive.
    fn add_file(&mut self, bytes: Vec<u8>, is_named: bool) -> Result<(), ScanError> {
        self.call.interrupt.check()?;
        let path = match String::from_utf8(bytes) {
            Ok(path) => path,
            Err(error) => {
                // A query is UTF-8, so it cannot have named such a path. A storage opens files by their text.
                let path = String::from_utf8_lossy(error.as_bytes()).into_owned();
                self.add(path, false, Source::Unreadable("its name is not UTF-8".into()));
                return Ok(());
            }
        };
        match Kind::of(&path) {
            None => self.add(path, is_named, Source::File),
            Some(Kind::Zip) => self.add_entries(path, is_named, None)?,
            Some(kind) => {
                let entry = archive::compressed(&path, kind, self.archives);
                self.add(path, is_named, Source::Entry(entry));
            }
        }
        Ok(())
    }

    /// Adds the entries of a ZIP archive that a name or a glob stands for, or all logs in it. A damaged directory is an
    /// error only if nothing was found for a caller that named the archive.
    fn add_entries(&mut self, path: String, is_named: bool, inner: Option<&str>) -> Result<(), ScanError> {
        let of_archive = ScanPath {
            path,
            explicitly_named: is_named,
            source: Source::File,
            part: None,
        };
        let listed = match inner {
            None => {
                let rank = |name: &str| self.kind.is_read(name).then_some(0);
                archive::list(self.call, &of_archive.path, self.archives, &rank)
            }
            Some(inner) => {
                let folder = inner.trim_end_matches(['/', '\\']);
                let glob = Glob::new(inner).ok().filter(|_| has_glob(inner));
                // A name as it is comes before names that differ in case, and those before a pattern and a folder.
                let rank = |name: &str| {
                    let is_inside = matches!(name.as_bytes().get(folder.len()), Some(b'/' | b'\\'))
                        && name.get(..folder.len()).is_some_and(|start| is_same(start, folder));
                    let is_match = glob.as_ref().is_some_and(|glob| glob.matches(name));
                    match () {
                        () if name == inner => Some(0),
                        () if is_same(name, inner) => Some(1),
                        () if is_match || is_inside && self.kind.is_read(name) => Some(2),
                        () => None,
                    }
                };
                archive::list(self.call, &of_archive.path, self.archives, &rank)
            }
        };
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) => {
                let reason: Arc<str> = error.to_string().into();
                of_archive.failure(error)?;
                self.add(of_archive.path, false, Source::Unreadable(reason));
                return Ok(());
            }
        };
        let is_empty = listed.entries.is_empty();
        for (nth, (name, entry)) in listed.entries.into_iter().enumerate() {
            if nth.is_multiple_of(1024) {
                self.call.interrupt.check()?;
            }
            let source = match entry {
                Ok(entry) => Source::Entry(entry),
                Err(why) => Source::Unreadable(why.into()),
            };
            let is_named = is_named && inner.is_some_and(|inner| is_same(&name, inner));
            self.add(format!("{}/{name}", of_archive.path), is_named, source);
        }
        if let Some(failure) = listed.failure {
            if is_empty {
                of_archive.failure(StorageError::Archive(failure.clone()))?;
            }
            self.add(of_archive.path, false, Source::Unreadable(failure.into()));
        }
        Ok(())
    }

    /// Adds what a path stands for if it leads into ZIP archives. Returns whether it does.
    fn add_inside(&mut self, path: &str) -> Result<bool, ScanError> {
        let storage = self.call.storage;
        for (slash, _) in path.match_indices(['/', '\\']) {
            let (outer, inner) = (&path[..slash], &path[slash + 1..]);
            if !ends_with(outer, ".zip") {
                continue;
            }
            let inner = Some(inner).filter(|inner| !inner.is_empty());
            if storage.exists(outer)? {
                self.add_entries(outer.to_owned(), true, inner)?;
                return Ok(true);
            }
            let archives = if has_glob(outer) {
                storage.glob(&any_case(outer, storage.is_remote(outer)))?
            } else {
                Vec::new()
            };
            if archives.is_empty() {
                continue;
            }
            self.add_out_of_reach(outer, &|name| ends_with(name, ".zip"), &archives)?;
            for archive in archives {
                match String::from_utf8(archive) {
                    Ok(archive) => self.add_entries(archive, false, inner)?,
                    Err(error) => self.add_file(error.into_bytes(), false)?,
                }
            }
            // Folders can have such names, too.
            for file in storage.glob(path)? {
                self.add_file(file, false)?;
            }
            return Ok(true);
        }
        Ok(false)
    }
}

/// The files of a kind that a path, a glob, or a folder stands for, sorted by path. Archives stand for those in them.
/// `function` is the name of the SQL function, for errors.
///
/// # Errors
/// [`ScanError::NoFiles`] if there are none, [`ScanError::Input`] if the path is empty or too deep, [`ScanError::Interrupted`],
/// and the errors of the storage and of archives that the caller named.
pub fn expand(
    storage: &dyn Storage,
    path: &str,
    kind: FileKind,
    archives: &Archives,
    function: &str,
    interrupt: Interrupt<'_>,
) -> Result<Vec<ScanPath>, ScanError> {
    interrupt.check()?;
    if path.is_empty() {
        return Err(ScanError::Input(format!("{function} cannot take an empty path")));
    }
    if path.split(['/', '\\']).nth(MAX_FOLDERS + 1).is_some() {
        let text = format!("{function} cannot take a path of more than {MAX_FOLDERS} folders");
        return Err(ScanError::Input(text));
    }
    let call = Call {
        storage,
        interrupt,
        last: &LastOpened::default(),
    };
    let mut found = Found {
        call,
        kind,
        archives,
        paths: Vec::new(),
    };
    let (is_glob, is_remote) = (has_glob(path), storage.is_remote(path));
    // A path with wildcards is that of a file first, and then a pattern.
    if is_glob && !is_remote && storage.exists(path)? {
        found.add_file(path.into(), true)?;
    } else if !found.add_inside(path)? {
        let mut files = match is_glob {
            true if is_remote && storage.exists(path)? => vec![path.into()],
            true => Vec::new(),
            // DuckDB can refuse a folder, but allow what is in it.
            false => storage.glob(path).or_else(|error| match Path::new(path).is_dir() {
                true => Ok(Vec::new()),
                false => Err(error),
            })?,
        };
        files.retain(|file| !found.is_folder(file));
        let is_named = !files.is_empty();
        // Names of folders can have brackets, too.
        if files.is_empty() && (!is_glob || !is_remote && !path.contains(['*', '?'])) {
            // A folder stands for all files of the kind in it and in its subfolders, as in DuckDB's own readers. One walk finds logs
            // and archives.
            files = storage.glob(&format!("{}/**/{}", literal(path), kind.glob()))?;
            files.retain(|file| kind.is_read(&String::from_utf8_lossy(file)));
            let all = format!("{}/**/*", literal(path.trim_end_matches('/')));
            found.add_out_of_reach(&all, &|name| kind.is_read(name), &files)?;
            // The path itself is an error.
            found.paths.retain(|found| found.path != path.trim_end_matches('/'));
        }
        if files.is_empty() && is_glob {
            files = storage.glob(&any_case(path, is_remote))?;
            found.add_out_of_reach(path, &|_| true, &files)?;
            files.retain(|file| !found.is_folder(file));
        } else if files.is_empty() && found.paths.is_empty() && (is_remote || !Path::new(path).is_dir()) {
            // If the path cannot be read, this fails with the reason.
            storage.open(path)?;
        }
        for file in files {
            found.add_file(file, is_named)?;
        }
    }
    if found.paths.is_empty() {
        let text = match has_glob(path) {
            true => format!("No files found that match the pattern \"{path}\""),
            false => format!("No {} found in \"{path}\"", kind.plural()),
        };
        return Err(ScanError::NoFiles(text));
    }
    sort_by(&mut found.paths, |a, b| a.path.cmp(&b.path), interrupt)?;
    Ok(found.paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_of_files_match_in_any_case() {
        let options = glob::MatchOptions::new();
        for (pattern, is_match) in [
            ("s*.evtx", true),
            ("[s]*.evtx", true),
            ("[a-z]*.evtx", true),
            ("[!s]*.evtx", false),
            ("[!]a-r]*", true),
            ("[0-9A-s]*", true),
            ("[]s]*", true),
            ("[S-]*", true),
            ("[a-rt-z]*", false),
            ("\u{E4}*", false),
        ] {
            for name in ["SECURITY.EVTX", "security.evtx", "Security.Evtx"] {
                let any = any_case(pattern, false);
                let found = glob::Pattern::new(&any).expect("a pattern").matches_with(name, options);
                assert_eq!(found, is_match, "{pattern} as {any} for {name}");
            }
        }
        assert_eq!(any_case("a/b*c", true), "a/b*[cC]");
        assert_eq!(any_case("a/\\b[", false), "a/\\b[");
        assert_eq!(any_case("[x]/b", false), "[x]/[bB]");
    }

    #[test]
    #[cfg(unix)]
    fn links_to_nothing_and_closed_folders_are_found() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let place = tempfile::tempdir().expect("a folder");
        let root = place.path().join("case [1]");
        std::fs::create_dir_all(root.join("a/b")).expect("folders");
        for name in ["a/b/x.evtx", "a/y.ZIP", "a/notes.txt"] {
            symlink("/nowhere/at/all", root.join(name)).expect("a link");
        }
        std::fs::write(root.join("a/z.evtx"), b"").expect("a file");
        symlink(root.join("a/z.evtx"), root.join("a/w.evtx")).expect("a link");
        symlink(root.join("a"), root.join("loop")).expect("a link");
        let root = root.to_str().expect("text");
        let found = |glob: &str| -> Vec<String> {
            let glob = format!("{}/{glob}", literal(root));
            let found =
                out_of_reach(&glob, &|name| FileKind::Logs.is_read(name), Interrupt::NEVER).expect("no interrupt");
            found
                .into_iter()
                .filter(|(_, why)| why.is_some())
                .map(|(path, _)| path)
                .map(|path| path[root.len() + 1..].to_owned())
                .collect()
        };
        assert_eq!(found("**/*"), ["a/b/x.evtx", "a/y.ZIP"]);
        assert_eq!(found("**/*.zip"), ["a/y.ZIP"]);
        assert_eq!(found("*/*/*.evtx"), ["a/b/x.evtx", "loop/b/x.evtx"]);
        assert_eq!(
            found("a/x.evtx").len() + found("none/*").len() + found("a/z.evtx/*").len(),
            0
        );
        let storage = crate::local::LocalStorage;
        let rows = |path: &str| {
            let paths = expand(
                &storage,
                path,
                FileKind::Logs,
                &Archives::default(),
                "a test",
                Interrupt::NEVER,
            )
            .expect("paths");
            let is_told = |path: &ScanPath| matches!(&path.source, Source::Unreadable(why) if why.contains("a link"));
            (paths.len(), paths.iter().filter(|path| is_told(path)).count())
        };
        assert_eq!(rows(root), (4, 2));
        assert_eq!(rows(&format!("{}/a/*.evtx", literal(root))), (2, 0));
        assert_eq!(rows(&format!("{}/a/b/*.evtx", literal(root))), (1, 1));
        // Root opens any folder.
        let closed = std::path::Path::new(root).join("a/b");
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).expect("to close it");
        if std::fs::read_dir(&closed).is_err() {
            assert_eq!(found("**/*"), ["a/b", "a/y.ZIP"]);
        }
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).expect("to open it");
    }

    #[test]
    #[cfg(unix)]
    fn names_that_are_no_text_are_told() {
        use std::os::unix::ffi::OsStrExt;
        let place = tempfile::tempdir().expect("a folder");
        let named = |bytes: &[u8]| place.path().join(std::ffi::OsStr::from_bytes(bytes));
        std::fs::create_dir_all(named(b"b\xE4")).expect("folders");
        for name in [&b"x\xE4.evtx"[..], b"b\xE4/y.evtx", b"z.evtx"] {
            std::fs::write(named(name), b"").expect("a file");
        }
        let root = place.path().to_str().expect("text");
        for (path, count) in [("", 2), ("/*.evtx", 1), ("/*/*.EVTX", 1), ("/**/*.evtx", 2)] {
            let (archives, path) = (Archives::default(), format!("{root}{path}"));
            let paths = expand(
                &crate::local::LocalStorage,
                &path,
                FileKind::Logs,
                &archives,
                "a test",
                Interrupt::NEVER,
            )
            .expect("paths");
            let is_told =
                |path: &&ScanPath| matches!(&path.source, Source::Unreadable(why) if &**why == "its name is not UTF-8");
            assert_eq!(paths.iter().filter(is_told).count(), count, "{path}: {paths:?}");
        }
    }

    #[test]
    fn stars_that_follow_each_other_are_one() {
        for (pattern, is_match) in [
            ("**.evtx", false),
            ("a/**.evtx", true),
            ("a/***", true),
            ("a/b**", true),
            ("**/***.evtx", true),
            ("a/**", true),
            ("a**", false),
        ] {
            let glob = Glob::new(pattern).expect("a pattern");
            assert_eq!(glob.matches("A\\b.evtx"), is_match, "{pattern}");
        }
    }
}
