//! Loads the rules in the folder that `EVTX_SIGMA` names, such as SigmaHQ's, and resolves their log sources. Without
//! `EVTX_SIGMA`, the test does nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use evtx_sigma::{LogSources, Placeholders, load_rules};

#[test]
fn loads_every_rule_or_says_why_not() {
    let Some(folder) = std::env::var_os("EVTX_SIGMA") else {
        eprintln!("EVTX_SIGMA names no folder of rules: nothing is tested");
        return;
    };
    let mut files = Vec::new();
    collect(Path::new(&folder), &mut files);
    files.sort();
    assert!(!files.is_empty(), "there is no rule below {}", folder.display());
    let mut loaded: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).expect("the text of a rule");
        let name = file.strip_prefix(&folder).expect("a file below the folder");
        let root = name
            .components()
            .next()
            .expect("a name")
            .as_os_str()
            .to_string_lossy()
            .into_owned();
        for rule in load_rules(&text, &Placeholders::new()) {
            match rule {
                Ok(rule) => {
                    *loaded.entry(root.clone()).or_default() += 1;
                    let source = &rule.log_source;
                    if let Err(problem) = LogSources::builtin().resolve(source) {
                        eprintln!("{}: {}: {problem}", name.display(), rule.log_source_position);
                        // The table is for Windows.
                        if source.product.as_deref() == Some("windows") {
                            wrong.push(name);
                        }
                    }
                }
                Err(refused) => {
                    eprintln!("{}: {refused}", name.display());
                    if !refused.to_string().contains("the placeholder %") {
                        wrong.push(name);
                    }
                }
            }
        }
    }
    eprintln!("{} files, rules that loaded: {loaded:?}", files.len());
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// The files in a folder and its subfolders that end with `.yml`.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
    {
        match entry.is_dir() {
            true => collect(&entry, files),
            false if entry.extension().is_some_and(|ending| ending == "yml") => files.push(entry),
            false => {}
        }
    }
}
