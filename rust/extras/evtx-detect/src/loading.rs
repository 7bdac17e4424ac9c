//! Finds, reads and loads the files of Sigma rules, and chooses rules by the settings of a call.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use evtx_format::{Interrupt, Interrupted, free, named};
use evtx_scan::{
    Call, FileKind, LastOpened, LogFile, OtherFiles, ScanError, ScanPath, Storage, StorageError, expand, on_threads,
};
use evtx_sigma::{Level, Limits, LogSources, Placeholders, Status, load_documents};

use crate::collected::{Collected, Loaded, LoadedRules, Tuning, id_of};
use crate::settings::RuleSettings;

/// The files of Sigma rules.
pub const RULE_FILES: FileKind = FileKind::Other(&OtherFiles {
    ends: &[".yml", ".yaml"],
    also: None,
    named: None,
    plural: "rules",
});

/// The most rules of a call.
const MAX_RULES: usize = 1 << 20;

/// The most threads that load rules. Each holds the values of a text, of at most [`Limits::VALUES`] bytes.
const MAX_THREADS: usize = 4;

/// How many bytes or files of rules the threads load in a round.
const ROUND_BYTES: usize = 4 << 20;
const ROUND_FILES: usize = 256;

/// The most bytes of rules that are loaded before the set takes or refuses them. Each thread can exceed it by one file.
const ROUND_RULES: usize = 32 << 20;

/// The most bytes of texts, and of rules, that are kept for the next call.
const KEPT_TEXTS: usize = 16 << 20;
const KEPT_RULES: usize = 64 << 20;

/// The rules of the last call.
static KEPT: Mutex<Option<Arc<Kept>>> = Mutex::new(None);

/// Whether an entry of `exclude` is the path of a file, and not an ID.
fn is_path(entry: &str) -> bool {
    entry.contains(['/', '\\']) || entry.to_ascii_lowercase().ends_with(".txt")
}

/// The lines of a file with their numbers, without comments, which start with `#`, and without empty ones.
fn read_lines(call: Call<'_>, path: &str) -> Result<Vec<(usize, String)>, ScanError> {
    let path = &ScanPath::named(path);
    let text = read_text(call, path).or_else(|error| path.failure(error))?;
    let lines = (1..).zip(
        text.lines()
            .map(|line| line.split('#').next().unwrap_or_default().trim().to_owned()),
    );
    Ok(lines.filter(|(_, line)| !line.is_empty()).collect())
}

impl RuleSettings {
    /// Loads the rules that the arguments name.
    ///
    /// # Errors
    /// [`ScanError::Input`] if they name none, and those of [`load`](Self::load) and [`expand`].
    pub fn load_named(
        &self,
        function: &str,
        threads: usize,
        storage: &dyn Storage,
        interrupt: Interrupt<'_>,
    ) -> Result<LoadedRules, ScanError> {
        let named = self.rules.as_deref().unwrap_or_default();
        if named.is_empty() {
            let text = format!("{function} needs rules: a path, a glob, a folder, or a list of them");
            return Err(ScanError::Input(text));
        }
        let mut paths = Vec::new();
        for path in named {
            paths.extend(expand(storage, path, RULE_FILES, function, interrupt)?);
        }
        self.load(&paths, threads, storage, interrupt)
    }

    /// Loads the rules of some files, with at most `threads` threads. The calling thread reads the files.
    ///
    /// # Errors
    /// Those of the storage for files that the caller named, a table of log sources that cannot be used, too many
    /// rules, and [`ScanError::Interrupted`].
    pub fn load(
        &self,
        paths: &[ScanPath],
        threads: usize,
        storage: &dyn Storage,
        interrupt: Interrupt<'_>,
    ) -> Result<LoadedRules, ScanError> {
        let last = LastOpened::default();
        let call = Call::new(storage, interrupt, &last);
        let choice = self.choice(call)?;
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(kept) = kept
            && kept.choice == choice
            && kept.has(call, paths)?
        {
            return Ok(kept.loaded.clone());
        }
        let builtin = LogSources::builtin();
        let own = match self.log_sources.iter().zip(&choice.log_sources).next() {
            Some((path, text)) => Some(builtin.with(own_log_sources(call, path, text)?)),
            None => None,
        };
        let loading = Loading {
            placeholders: &self.placeholders,
            log_sources: own.as_ref().unwrap_or(builtin),
            threads: threads.clamp(1, MAX_THREADS),
        };
        let mut rules = Collected::new(choice.tuning.clone());
        let mut keeping = Some(Keeping::default());
        let (mut paths, mut texts, mut loaded) = (paths.iter(), Vec::new(), Vec::new());
        let mut load = || loop {
            let mut read = Vec::new();
            loading.round(&texts, interrupt, || {
                loading.take(&mut loaded, self, &mut rules, &mut keeping, interrupt)?;
                read = next_texts(call, &mut paths)?;
                Ok(())
            })?;
            loaded = std::mem::replace(&mut texts, read);
            if texts.is_empty() {
                return loading.take(&mut loaded, self, &mut rules, &mut keeping, interrupt);
            }
        };
        if let Err(error) = load() {
            free((rules, texts, loaded));
            return Err(error);
        }
        let loaded = rules.finish(interrupt)?;
        if let Some(Keeping { texts, .. }) = keeping {
            let new = Kept {
                choice,
                texts,
                loaded: loaded.clone(),
            };
            let old = KEPT.lock().unwrap_or_else(PoisonError::into_inner).replace(new.into());
            drop(old);
        }
        Ok(loaded)
    }

    /// What the rules depend on, besides their files.
    fn choice(&self, call: Call<'_>) -> Result<Choice, ScanError> {
        let log_sources = match &self.log_sources {
            Some(path) => {
                let path = &ScanPath::named(path);
                Some(read_text(call, path).or_else(|error| path.failure(error))?)
            }
            None => None,
        };
        Ok(Choice {
            log_sources,
            placeholders: self.placeholders.clone(),
            min_level: self.min_level,
            statuses: self.statuses.clone(),
            tuning: self.tuning(call)?,
        })
    }

    /// Reads the files that `exclude` and `level_tuning` name.
    fn tuning(&self, call: Call<'_>) -> Result<Tuning, ScanError> {
        let mut tuning = Tuning::default();
        for entry in &self.exclude {
            if is_path(entry) {
                let lines = read_lines(call, entry)?;
                tuning.excluded.extend(lines.iter().map(|(_, line)| id_of(line)));
            } else {
                _ = tuning.excluded.insert(id_of(entry))
            }
        }
        for (number, line) in self
            .level_tuning
            .iter()
            .map(|path| read_lines(call, path))
            .collect::<Result<Vec<_>, _>>()?
            .concat()
        {
            let Some((id, level)) = line.split_once(',') else {
                continue;
            };
            let (id, level) = (id_of(id), level.trim());
            if level == "new_level" {
                continue;
            }
            let path = self.level_tuning.as_deref().unwrap_or_default();
            let level = named("a level", Level::ALL, level)
                .map_err(|why| ScanError::File(format!("{path}: line {number}: {why}")))?;
            tuning.levels.insert(id, level);
        }
        Ok(tuning)
    }

    /// Whether a rule or a correlation is wanted, by its level and status.
    fn wants(&self, level: Option<Level>, status: Option<Status>) -> bool {
        let is_high = self
            .min_level
            .is_none_or(|least| level.is_some_and(|level| level >= least));
        let has_status = self
            .statuses
            .as_ref()
            .is_none_or(|wanted| status.is_some_and(|status| wanted.contains(&status)));
        is_high && has_status
    }
}

/// What the rules of a call depend on, besides their files.
#[derive(PartialEq)]
struct Choice {
    /// The text of the caller's own table.
    log_sources: Option<String>,
    placeholders: Placeholders,
    min_level: Option<Level>,
    statuses: Option<Vec<Status>>,
    tuning: Tuning,
}

/// The rules of a call, and the texts that they come from.
struct Kept {
    choice: Choice,
    texts: Vec<FileText>,
    loaded: LoadedRules,
}

/// The path of a file and its text, or why there is none.
type FileText = (Arc<str>, Result<String, String>);

/// The texts of the files so far, while they are few enough to be kept.
#[derive(Default)]
struct Keeping {
    texts: Vec<FileText>,
    bytes: usize,
    bytes_of_rules: usize,
}

impl Kept {
    /// Whether these files still have the same texts, byte by byte.
    fn has(&self, call: Call<'_>, paths: &[ScanPath]) -> Result<bool, ScanError> {
        let names = self.texts.iter().map(|(file, _)| &**file);
        if !names.eq(paths.iter().map(|path| path.path.as_str())) {
            return Ok(false);
        }
        for (path, (_, text)) in paths.iter().zip(&self.texts) {
            call.interrupt.check()?;
            if rule_text(call, path)? != *text {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Loads rules in rounds. While threads load some texts, the caller adds the rules of the last, and reads the next.
struct Loading<'a> {
    placeholders: &'a Placeholders,
    log_sources: &'a LogSources,
    threads: usize,
}

/// A file of rules, for a thread.
struct RuleText {
    file: Arc<str>,
    text: Result<String, String>,
    loaded: OnceLock<Vec<Loaded>>,
}

impl RuleText {
    fn load(&self, how: &Loading<'_>, interrupt: Interrupt<'_>) -> Result<Vec<Loaded>, Interrupted> {
        let text = match &self.text {
            Ok(text) => text,
            Err(why) => {
                return Ok(vec![Loaded::unusable(&self.file, why.clone())]);
            }
        };
        let loaded = load_documents(text, how.placeholders, interrupt)?;
        let loaded = loaded
            .into_iter()
            .map(|loaded| Loaded::new(&self.file, loaded, how.log_sources));
        Ok(loaded.collect())
    }
}

impl Loading<'_> {
    /// Loads the rules of files.
    fn round(
        &self,
        texts: &[RuleText],
        interrupt: Interrupt<'_>,
        meanwhile: impl FnOnce() -> Result<(), ScanError>,
    ) -> Result<(), ScanError> {
        let (next, bytes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let mut threads = vec![(); self.threads.min(texts.len())];
        let work = |(): &mut (), interrupt: Interrupt<'_>| {
            // The rest is loaded after the set has taken or refused these.
            while bytes.load(Ordering::Relaxed) <= ROUND_RULES
                && let Some(text) = texts.get(next.fetch_add(1, Ordering::Relaxed))
            {
                let loaded = text.load(self, interrupt)?;
                let rules = loaded.iter().flat_map(|loaded| &loaded.rules);
                bytes.fetch_add(rules.map(|known| known.rule.bytes()).sum(), Ordering::Relaxed);
                _ = text.loaded.set(loaded);
            }
            Ok(())
        };
        on_threads(&mut threads, interrupt, work, meanwhile)
    }

    /// Takes the rules of files, in their order.
    fn take(
        &self,
        texts: &mut Vec<RuleText>,
        arguments: &RuleSettings,
        rules: &mut Collected,
        keeping: &mut Option<Keeping>,
        interrupt: Interrupt<'_>,
    ) -> Result<(), ScanError> {
        for mut text in std::mem::take(texts) {
            interrupt.check()?;
            let loaded = match text.loaded.take() {
                Some(loaded) => loaded,
                None => text.load(self, interrupt)?,
            };
            if let Some(kept) = keeping {
                let of_text = loaded.iter().flat_map(|one| &one.rules);
                kept.bytes_of_rules += of_text.map(|known| known.rule.bytes()).sum::<usize>();
                kept.bytes += text.file.len() + text.text.as_ref().map_or_else(String::len, String::len);
                kept.texts.push((text.file, text.text));
                if kept.bytes > KEPT_TEXTS || kept.bytes_of_rules > KEPT_RULES {
                    *keeping = None;
                }
            }
            for one in loaded {
                interrupt.check()?;
                rules.add(one, |row| arguments.wants(row.about.level, row.about.status));
            }
            if rules.rows.len() > MAX_RULES {
                return Err(ScanError::Input(format!("a call takes at most {MAX_RULES} rules")));
            }
        }
        Ok(())
    }
}

/// The next files of a round.
fn next_texts<'p>(call: Call<'_>, paths: &mut impl Iterator<Item = &'p ScanPath>) -> Result<Vec<RuleText>, ScanError> {
    let (mut texts, mut bytes) = (Vec::new(), 0);
    while bytes < ROUND_BYTES
        && texts.len() < ROUND_FILES
        && let Some(path) = paths.next()
    {
        call.interrupt.check()?;
        let text = rule_text(call, path)?;
        bytes += text.as_ref().map_or(0, String::len);
        texts.push(RuleText {
            file: path.path.as_str().into(),
            text,
            loaded: OnceLock::new(),
        });
    }
    Ok(texts)
}

/// The text of a file of rules, or why it cannot be used.
fn rule_text(call: Call<'_>, path: &ScanPath) -> Result<Result<String, String>, ScanError> {
    match read_text(call, path) {
        Ok(text) => Ok(Ok(text)),
        // A damaged file does not affect other rules, even if the caller named it.
        Err(StorageError::Unusable(why)) => Ok(Err(format!("cannot be read: {why}"))),
        Err(error) => Ok(Err(path.failure(error)?)),
    }
}

/// The text of a file of rules.
fn read_text(call: Call<'_>, path: &ScanPath) -> Result<String, StorageError> {
    let bytes = LogFile::open(call, path)?.read_all(call, Limits::TEXT as u64)?;
    String::from_utf8(bytes).map_err(|_| StorageError::Unusable("it is not UTF-8".to_owned()))
}

/// The caller's own table of log sources.
fn own_log_sources(call: Call<'_>, path: &str, text: &str) -> Result<LogSources, ScanError> {
    let loaded = LogSources::load(text, call.interrupt)?;
    loaded.map_err(|error| ScanError::File(format!("{path}: {error}")))
}

#[cfg(test)]
mod tests {
    use evtx_scan::LocalStorage;

    use super::*;

    /// A call that could take the rules of the last one does so only if nothing has changed that they depend on.
    #[test]
    fn rules_are_kept_for_calls_with_the_same_texts() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("a file");
            path.to_str().expect("UTF-8").to_owned()
        };
        let rule = |title: &str| {
            let detection = "detection: {s: {'F|expand': '%p%'}, condition: s}";
            write(
                "a.yml",
                &format!("title: {title}\nid: x\nlevel: low\nlogsource: {{service: s}}\n{detection}"),
            )
        };
        let table = |id: u32| write("t.txt", &format!("logsources:\n- {{service: s, event_ids: {id}}}\n"));
        let tuning = |level: &str| write("l.txt", &format!("x,{level}\n"));
        let mut arguments = RuleSettings {
            rules: Some(vec![rule("One")]),
            log_sources: Some(table(1)),
            level_tuning: Some(tuning("high")),
            ..RuleSettings::default()
        };
        let load = |arguments: &RuleSettings| {
            let loaded = arguments.load_named("f", 2, &LocalStorage, Interrupt::NEVER);
            loaded.expect("rules").rows
        };
        let seen = |rows: &[crate::rule_row::RuleRow]| {
            let row = &rows[0];
            let error = row.error.as_ref().map(|_| "refused");
            (row.about.title.clone(), row.about.level, row.event_ids.clone(), error)
        };
        let of = |title: &str, level, id, error| (title.to_string(), Some(level), id, error);
        let refused = load(&arguments);
        assert!(refused[0].error.is_some());
        let again = load(&arguments);
        assert!(Arc::ptr_eq(&refused, &again));
        arguments.placeholders.insert("p".to_owned(), vec!["a".to_owned()]);
        assert!(!Arc::ptr_eq(&again, &load(&arguments)));
        let first = load(&arguments);
        assert_eq!(seen(&first), of("One", Level::High, vec![1], None));
        assert!(Arc::ptr_eq(&first, &load(&arguments)));
        rule("Two");
        assert_eq!(seen(&load(&arguments)), of("Two", Level::High, vec![1], None));
        table(2);
        assert_eq!(seen(&load(&arguments)), of("Two", Level::High, vec![2], None));
        tuning("medium");
        let last = load(&arguments);
        assert_eq!(seen(&last), of("Two", Level::Medium, vec![2], None));
        arguments.min_level = Some(Level::Critical);
        assert!(!Arc::ptr_eq(&last, &load(&arguments)));
        arguments.min_level = None;
        arguments.exclude = vec!["x".to_owned()];
        assert!(!Arc::ptr_eq(&last, &load(&arguments)));
        std::fs::write(folder.path().join("a.yml"), [0xFF]).expect("a file");
        assert_eq!(
            load(&arguments)[0].error.as_deref(),
            Some("cannot be read: it is not UTF-8")
        );
    }
}
