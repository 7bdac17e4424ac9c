//! The paths of the files that a call reads.
//!
//! A path can lead into a file that holds others, whose path comes first: `case.zip/C/**/*.evtx`.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use evtx_format::Interrupt;

use crate::file_kind::FileKind;
use crate::globs::{literal, split_verbatim};
use crate::local::out_of_reach;
use crate::scan_path::{ScanPath, Source};
use crate::storage::{Holds, ScanError, Storage, StorageError, separator, separators, sort_by};

/// Whether a path has wildcards, and so is a pattern.
pub fn has_glob(path: &str) -> bool {
    split_verbatim(path).1.contains(['*', '?', '['])
}

/// A glob that ignores the case of file names, and that of folders where `\` separates them, as in Windows. In a remote
/// one, the text before the first wildcard limits the listing.
fn any_case(pattern: &str, is_remote: bool, separators: &[char]) -> String {
    let (start, rest) = split_verbatim(pattern);
    let (folders, name) = rest.split_at(rest.rfind(separators).map_or(0, |slash| slash + 1));
    let mut out = start.to_owned();
    for folder in folders.split_inclusive(separators) {
        // Windows itself ignores the case of a name without wildcards.
        if separators.contains(&'\\') && has_glob(folder) {
            out += &any_case_name(folder, true)
        } else {
            out += folder
        }
    }
    out + &any_case_name(name, !is_remote)
}

/// A glob of a name that ignores the case, of letters before the first wildcard only if `is_behind`.
fn any_case_name(name: &str, mut is_behind: bool) -> String {
    let mut out = String::new();
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

/// The content of brackets whose opening bracket precedes the text. A `]` at its start belongs to it.
fn inside(text: &str) -> Option<&str> {
    let start = text.strip_prefix('!').unwrap_or(text);
    let end = start.get(1..)?.find(']')? + 1;
    Some(&text[..text.len() - start.len() + end])
}

/// The letters and ranges of letters in brackets, in the opposite case.
fn other_case(inside: &str) -> String {
    let letters: Vec<char> = inside.trim_start_matches('!').chars().collect();
    let (mut out, mut at) = (String::new(), 0);
    while let Some(&first) = letters.get(at) {
        let (last, len) = match letters.get(at + 1..at + 3) {
            Some(&['-', last]) => (last, 3),
            _ => (first, 1),
        };
        at += len;
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

/// The most folders in a path. The time of an engine's globs can be quadratic in them, such as 3 s for 16,000.
const MAX_FOLDERS: usize = 2048;

/// An expansion, and what it has found.
struct Expansion<'c> {
    storage: &'c dyn Storage,
    interrupt: Interrupt<'c>,
    kind: FileKind,
    /// Whether the files are those of a folder, and not those that a path or a glob names.
    is_folder: bool,
    paths: Vec<ScanPath>,
}

impl Expansion<'_> {
    fn is_read(&self, name: &str) -> bool {
        self.kind.is_read(self.storage, name)
    }

    fn add(&mut self, path: String, explicitly_named: bool, source: Source) {
        self.paths.push(ScanPath::new(path, explicitly_named, source));
    }

    /// Adds what a glob of local files omitted. `found` is what it found.
    fn add_out_of_reach(
        &mut self,
        glob: &str,
        is_wanted: &dyn Fn(&str) -> bool,
        found: &[Vec<u8>],
    ) -> Result<(), ScanError> {
        if self.storage.is_remote(glob) {
            return Ok(());
        }
        let missed = out_of_reach(glob, is_wanted, self.interrupt)?;
        let found = if missed.is_empty() { &[] } else { found };
        let known: HashSet<&[u8]> = found.iter().map(Vec::as_slice).collect();
        for (path, why) in missed {
            // The walk follows links to folders, also to where the storage forbids access.
            if self.storage.exists(&path).is_err() {
                continue;
            }
            match why {
                Some(why) => self.add(path, false, Source::Unreadable(why.into())),
                None if known.contains(path.as_bytes()) => {}
                None => self.add_file(path.into_bytes(), false)?,
            }
        }
        Ok(())
    }

    /// Removes the folders from the paths of a remote glob, as some file systems list these. Keeps paths that end like logs.
    fn remove_folders(&self, paths: &mut Vec<Vec<u8>>) {
        if paths
            .first()
            .is_some_and(|first| self.storage.is_remote(&String::from_utf8_lossy(first)))
        {
            paths.retain(|path| !self.is_folder(path));
        }
    }

    fn is_folder(&self, path: &[u8]) -> bool {
        let Ok(path) = std::str::from_utf8(path) else {
            return false;
        };
        let storage = self.storage;
        let has_files = || storage.glob(&format!("{}/*", literal(path)), self.interrupt);
        storage.nesting().holds(path) == Holds::Bytes
            && !self.is_read(path)
            && has_files().is_ok_and(|files| !files.is_empty())
            && storage.open(path).is_err()
    }

    /// Adds a file of the storage, or the files in it if it holds others.
    fn add_file(&mut self, bytes: Vec<u8>, is_named: bool) -> Result<(), ScanError> {
        self.interrupt.check()?;
        let path = match String::from_utf8(bytes) {
            Ok(path) => path,
            Err(error) => {
                // The caller's paths are UTF-8, and a storage opens files by their text.
                let path = String::from_utf8_lossy(error.as_bytes()).into_owned();
                self.add(path, false, Source::Unreadable("its name is not UTF-8".into()));
                return Ok(());
            }
        };
        if let Some(advice) = self.kind.skips(self.storage, &path).filter(|_| self.is_folder) {
            self.add(path, is_named, Source::Skipped(Box::new(Source::File), advice));
            return Ok(());
        }
        match self.storage.nesting().holds(&path) {
            Holds::Bytes => self.add(path, is_named, Source::File),
            Holds::File(_) | Holds::Folder => self.add_nested(path, is_named, None)?,
        }
        Ok(())
    }

    /// Adds the nested files that `inner` names, or all wanted ones. An incomplete listing is an error only if the
    /// caller named the outer file and nothing was found.
    fn add_nested(&mut self, outer: String, is_named: bool, inner: Option<&str>) -> Result<(), ScanError> {
        let listed = self
            .storage
            .list(&outer, inner, &|name| self.is_read(name), self.interrupt);
        let outer = ScanPath::new(outer, is_named, Source::File);
        let listed = match listed {
            Ok(listed) => listed,
            Err(error) => {
                let reason: Arc<str> = error.to_string().into();
                outer.failure(error)?;
                self.add(outer.path, false, Source::Unreadable(reason));
                return Ok(());
            }
        };
        let (is_empty, is_glob) = (listed.files.is_empty(), inner.is_some_and(has_glob));
        for file in listed.files {
            self.interrupt.check()?;
            let is_named = is_named && file.is_named;
            let advice = self.kind.skips(self.storage, &file.path);
            let source = match (file.file, advice.filter(|_| !is_named && !is_glob)) {
                (Ok(nested), Some(advice)) => Source::Skipped(Box::new(Source::Nested(nested)), advice),
                (Ok(nested), None) => Source::Nested(nested),
                (Err(why), _) => Source::Unreadable(why.into()),
            };
            self.add(file.path, is_named, source);
        }
        for failure in listed.failures {
            if is_empty {
                outer.failure(StorageError::Unusable(failure.clone()))?;
            }
            self.add(outer.path.clone(), false, Source::Unreadable(failure.into()));
        }
        Ok(())
    }

    /// Adds the nested files of a path that leads into files that hold others. Returns whether it does.
    fn add_inside(&mut self, path: &str) -> Result<bool, ScanError> {
        let storage = self.storage;
        let is_outer = |path: &str| storage.nesting().holds(path) == Holds::Folder;
        for (slash, _) in path.match_indices(['/', '\\']) {
            let (outer, inner) = (&path[..slash], &path[slash + 1..]);
            if !is_outer(outer) {
                continue;
            }
            let inner = Some(inner).filter(|inner| !inner.is_empty());
            if storage.exists(outer)? {
                self.add_nested(outer.to_owned(), true, inner)?;
                return Ok(true);
            }
            let found = if has_glob(outer) {
                let is_remote = storage.is_remote(outer);
                storage.glob(&any_case(outer, is_remote, separators(is_remote)), self.interrupt)?
            } else {
                Vec::new()
            };
            if found.is_empty() {
                continue;
            }
            self.add_out_of_reach(outer, &is_outer, &found)?;
            for file in found {
                match String::from_utf8(file) {
                    Ok(outer) => self.add_nested(outer, false, inner)?,
                    Err(error) => self.add_file(error.into_bytes(), false)?,
                }
            }
            // Folders can have such names, too.
            for file in storage.glob(path, self.interrupt)? {
                self.add_file(file, false)?;
            }
            return Ok(true);
        }
        Ok(false)
    }
}

/// Expands a path, a glob or a folder to files of a kind, sorted by path. A file that holds others is replaced by
/// those. Errors name `function` as the caller.
///
/// # Errors
/// [`ScanError::NoFiles`] if there are none, [`ScanError::Input`] if the path is empty or too deep,
/// [`ScanError::Interrupted`], and the errors of the storage.
pub fn expand(
    storage: &dyn Storage,
    path: &str,
    kind: FileKind,
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
    let mut found = Expansion {
        storage,
        interrupt,
        kind,
        is_folder: false,
        paths: Vec::new(),
    };
    let (is_glob, is_remote) = (has_glob(path), storage.is_remote(path));
    let mut is_refused = false;
    let separators = separators(is_remote);
    // A path with wildcards is the name of a file first, and a pattern otherwise.
    if is_glob && !is_remote && storage.exists(path)? {
        found.add_file(path.into(), true)?;
    } else if !found.add_inside(path)? {
        // An engine can see a wildcard in the start of a path, and then find the folder itself.
        let is_one = if is_glob {
            is_remote
        } else {
            !split_verbatim(path).0.is_empty()
        };
        let mut files = if is_one && storage.exists(path)? {
            vec![path.into()]
        } else if is_one || is_glob {
            Vec::new()
        } else {
            // An engine can refuse a folder, but allow what is in it. If it refuses both, nobody may learn what it is.
            match storage.glob(path, interrupt) {
                Err(StorageError::Failed(_)) => {
                    is_refused = true;
                    Vec::new()
                }
                files => files?,
            }
        };
        found.remove_folders(&mut files);
        let is_named = !files.is_empty();
        // Names of folders can have brackets, too.
        if files.is_empty() && (!is_glob || !is_remote && !split_verbatim(path).1.contains(['*', '?'])) {
            // A folder stands for all files of the kind in it and in its subfolders.
            found.is_folder = true;
            let (folder, slash) = (path.trim_end_matches(separators), separator(path, separators));
            let start = if is_remote { path } else { folder };
            let inside = storage.glob(
                &format!("{}{slash}**{slash}{}", literal(start), kind.glob(storage)),
                interrupt,
            );
            files = match inside {
                // The error of the path itself.
                Err(StorageError::Failed(_)) if is_refused => storage.glob(path, interrupt)?,
                files => files?,
            };
            let mut read = Vec::new();
            for file in files {
                interrupt.check()?;
                if kind.is_read(storage, &String::from_utf8_lossy(&file)) {
                    read.push(file);
                }
            }
            files = read;
            let all = format!("{}{slash}**{slash}*", literal(folder));
            found.add_out_of_reach(&all, &|name| kind.is_read(storage, name), &files)?;
            // The path itself is an error.
            found.paths.retain(|found| found.path != folder);
        }
        if files.is_empty() && is_glob {
            found.is_folder = false;
            files = storage.glob(&any_case(path, is_remote, separators), interrupt)?;
            found.add_out_of_reach(path, &|_| true, &files)?;
            found.remove_folders(&mut files);
        } else if files.is_empty() && found.paths.is_empty() && (is_remote || !Path::new(path).is_dir()) {
            // If the path cannot be read, this fails with the reason.
            storage.open(path)?;
        }
        for file in files {
            found.add_file(file, is_named)?;
        }
    }
    if found.paths.is_empty() {
        let text = if has_glob(path) {
            format!("No files found that match the pattern \"{path}\"")
        } else {
            let has_evidence = matches!(kind, FileKind::Logs)
                && expand(storage, path, FileKind::Evidence, function, interrupt).is_ok();
            interrupt.check()?;
            let advice = if has_evidence {
                "; evtx_file_metadata lists what was not read"
            } else {
                ""
            };
            format!("No {} found in \"{path}\"{advice}", kind.plural())
        };
        return Err(ScanError::NoFiles(text));
    }
    if kind.names(path) {
        found.paths.iter_mut().for_each(|path| path.explicitly_named = true);
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
                let any = any_case(pattern, false, &['/']);
                let found = glob::Pattern::new(&any).expect("a pattern").matches_with(name, options);
                assert_eq!(found, is_match, "{pattern} as {any} for {name}");
            }
        }
        assert_eq!(any_case("a/b*c", true, &['/']), "a/b*[cC]");
        assert_eq!(any_case("a/\\b[", false, &['/']), "a/\\b[");
        assert_eq!(any_case("[x]/b", false, &['/']), "[x]/[bB]");
    }

    #[test]
    fn windows_separates_folders_by_both_slashes() {
        for (pattern, any) in [
            (r"C:\case\*.x", r"C:\case\*.[xX]"),
            (r"C:\case\**\*.x", r"C:\case\**\*.[xX]"),
            (r"C:/case\a.x", r"C:/case\[aA].[xX]"),
            (r"c:\e*\b\*", r"c:\[eE]*\b\*"),
            (r"\\?\C:\case\?.x", r"\\?\C:\case\?.[xX]"),
            (r"\\pc\share\*.x", r"\\pc\share\*.[xX]"),
        ] {
            assert_eq!(any_case(pattern, false, &['/', '\\']), any);
        }
        assert!(!has_glob(r"\\?\C:\case") && has_glob(r"\\?\C:\?"));
        assert_eq!(literal(r"\\?\C:\a [1]?"), r"\\?\C:\a [[]1][?]");
    }

    #[test]
    fn a_folder_of_many_files_can_be_interrupted_at_each_of_them() {
        let directory = tempfile::tempdir().expect("a folder");
        for number in 0..2000 {
            std::fs::write(directory.path().join(format!("{number}.evtx")), b"").expect("a file");
        }
        let folder = directory.path().to_str().expect("a path");
        for path in [folder.to_owned(), format!("{folder}/*.evtx"), format!("{folder}/**")] {
            // How often the expansion asks whether to go on, if it is interrupted the last time.
            let asked = |last: usize| {
                let count = std::cell::Cell::new(0);
                let is_set = || {
                    count.set(count.get() + 1);
                    count.get() >= last
                };
                let storage = &crate::local::LocalStorage;
                let found = expand(storage, &path, FileKind::Logs, "a test", Interrupt::new(&is_set));
                (count.get(), found.map(|found| found.len()))
            };
            let (all, found) = asked(usize::MAX);
            assert_eq!(found.expect("files"), 2000);
            // Each file is listed twice, and added.
            assert!(all > 6000, "{path}: {all}");
            for last in [1, 2, 100, 1999, 2001, 4100, 5900, 6000] {
                let (count, found) = asked(last);
                assert!(matches!(found, Err(ScanError::Interrupted(_))), "{path}: {last}");
                assert_eq!(count, last, "{path}");
            }
        }
    }

    #[test]
    fn files_are_found_and_named_by_the_slash_of_the_machine() {
        let directory = tempfile::tempdir().expect("a folder");
        let slash = std::path::MAIN_SEPARATOR;
        let root = directory.path().join("case [1]");
        std::fs::create_dir_all(root.join("Sub")).expect("folders");
        std::fs::write(root.join("Sub").join("X.EVTX"), b"").expect("a file");
        let root = root.to_str().expect("text");
        let storage = crate::local::LocalStorage;
        let found = |path: String| {
            let paths = expand(&storage, &path, FileKind::Logs, "a test", Interrupt::NEVER).expect("paths");
            paths.into_iter().map(|path| path.path).collect::<Vec<_>>()
        };
        let expected = format!("{root}{slash}Sub{slash}X.EVTX");
        let folder = literal(root);
        for path in [
            root.to_owned(),
            format!("{root}{slash}"),
            format!("{folder}{slash}**{slash}*.evtx"),
            format!("{folder}{slash}S*{slash}x*"),
            format!("{folder}{slash}Sub{slash}X.EVTX"),
        ] {
            assert_eq!(found(path.clone()), [expected.as_str()], "{path}");
        }
        if cfg!(windows) {
            assert_eq!(found(format!("{folder}\\s*\\x*")), [expected.as_str()]);
            assert_eq!(found(format!(r"\\?\{root}")), [format!(r"\\?\{expected}")]);
            assert_eq!(found(format!(r"\\?\{folder}\**\*.evtx")), [format!(r"\\?\{expected}")]);
        }
    }

    #[test]
    #[cfg(unix)]
    fn links_to_nothing_and_closed_folders_are_found() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().expect("a folder");
        let root = directory.path().join("case [1]");
        std::fs::create_dir_all(root.join("a/b")).expect("folders");
        for name in ["a/b/x.evtx", "a/y.EVTX", "a/notes.txt"] {
            symlink("/nowhere/at/all", root.join(name)).expect("a link");
        }
        std::fs::write(root.join("a/z.evtx"), b"").expect("a file");
        symlink(root.join("a/z.evtx"), root.join("a/w.evtx")).expect("a link");
        symlink(root.join("a"), root.join("loop")).expect("a link");
        let root = root.to_str().expect("text");
        let found = |glob: &str| -> Vec<String> {
            let glob = format!("{}/{glob}", literal(root));
            let found = out_of_reach(
                &glob,
                &|name| FileKind::Logs.is_read(&crate::local::LocalStorage, name),
                Interrupt::NEVER,
            )
            .expect("no interrupt");
            found
                .into_iter()
                .filter(|(_, why)| why.is_some())
                .map(|(path, _)| path)
                .map(|path| path[root.len() + 1..].to_owned())
                .collect()
        };
        assert_eq!(found("**/*"), ["a/b/x.evtx", "a/y.EVTX"]);
        assert_eq!(found("**/y*.evtx"), ["a/y.EVTX"]);
        assert_eq!(found("*/*/*.evtx"), ["a/b/x.evtx", "loop/b/x.evtx"]);
        assert_eq!(
            found("a/x.evtx").len() + found("none/*").len() + found("a/z.evtx/*").len(),
            0
        );
        let storage = crate::local::LocalStorage;
        let rows = |path: &str| {
            let paths = expand(&storage, path, FileKind::Logs, "a test", Interrupt::NEVER).expect("paths");
            let is_reported =
                |path: &ScanPath| matches!(&path.source, Source::Unreadable(why) if why.contains("a link"));
            (paths.len(), paths.iter().filter(|path| is_reported(path)).count())
        };
        assert_eq!(rows(root), (4, 2));
        assert_eq!(rows(&format!("{}/a/*.evtx", literal(root))), (3, 1));
        assert_eq!(rows(&format!("{}/a/b/*.evtx", literal(root))), (1, 1));
        // Root opens any folder.
        let closed = std::path::Path::new(root).join("a/b");
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).expect("to close it");
        if std::fs::read_dir(&closed).is_err() {
            assert_eq!(found("**/*"), ["a/b", "a/y.EVTX"]);
        }
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).expect("to open it");
    }
}
