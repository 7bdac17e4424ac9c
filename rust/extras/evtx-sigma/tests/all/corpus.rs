//! Loads the rules in the folder that `EVTX_SIGMA` names, such as SigmaHQ's, and resolves their log sources. Without
//! `EVTX_SIGMA`, the test does nothing.
//!
//! Correlations find their rules, if those are in the folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use evtx_sigma::{Correlations, Document, LogSources, Rule};

use super::common::documents;

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
    let (mut rules, mut correlations): (Vec<Rule>, Vec<_>) = Default::default();
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
        for document in documents(&text) {
            match document {
                Ok(Document::Correlation(correlation)) => correlations.push((name, correlation)),
                Ok(Document::Aggregation(own, correlation)) => {
                    rules.extend(own);
                    correlations.push((name, correlation));
                }
                Ok(Document::Filter(_)) => {}
                Ok(Document::Rule(rule)) => {
                    *loaded.entry(root.clone()).or_default() += 1;
                    let sources = &rule.log_sources;
                    if let Err(problem) = LogSources::builtin().resolve(sources) {
                        eprintln!("{}: {}: {problem}", name.display(), rule.log_source_position);
                        // The table is for Windows.
                        if sources
                            .iter()
                            .any(|source| source.product.as_deref() == Some("windows"))
                        {
                            wrong.push(name);
                        }
                    }
                    rules.push(rule);
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
    let rules: Vec<&Rule> = rules.iter().collect();
    let (names, correlations): (Vec<_>, Vec<_>) = correlations.into_iter().unzip();
    let (correlations, errors) = Correlations::resolve(&rules, correlations);
    for (name, error) in names.iter().zip(errors) {
        if let Some(error) = error {
            eprintln!("{}: {error}", name.display());
            wrong.push(name);
        }
    }
    let count = correlations.all().len();
    eprintln!("{count} of {} correlations and aggregations", names.len());
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// The files in a folder and its subfolders that end with `.yml`.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
    {
        if entry.is_dir() {
            collect(&entry, files);
        } else if entry.extension().is_some_and(|ending| ending == "yml") {
            files.push(entry);
        }
    }
}
