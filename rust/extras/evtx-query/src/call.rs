//! A planned call.

use std::sync::Arc;

use evtx_arrow::{EventField, Expression, Options, Predicate, Scan, Table};
use evtx_detect::RuleRow;
use evtx_events::advice;
use evtx_exports::SourceSettings;
use evtx_extras::MessageFiles;
use evtx_recovery::read_logs;
use evtx_scan::{FileScan, ScanPath};

use crate::folders::{FolderColumn, FolderPredicate};

/// A planned call.
#[derive(Debug, Clone, Default)]
pub struct ScanCall {
    /// The columns.
    pub table: Table,
    /// The files.
    pub paths: Vec<ScanPath>,
    /// Where to look for the messages of a log: a glob relative to its folder.
    pub messages: String,
    /// The options of the scan.
    pub options: Options,
    /// The columns that the folders of the files make. They follow those of the table.
    pub folders: Vec<FolderColumn>,
    /// The fields of the events, if the call is for certain events.
    pub fields: Vec<EventField>,
    /// A warning: that only parts of the files were read to find the columns, or that rules did not load.
    pub warning: Option<String>,
    /// The rows on rules, if the call is for them.
    pub rules: Arc<[RuleRow]>,
    /// If the scan should say that it has no rows of the providers that the caller named: what a row is, and the providers.
    pub providers: Option<(&'static str, Vec<String>)>,
    /// How events of other tools are read.
    pub sources: SourceSettings,
}

impl ScanCall {
    pub(crate) fn new(options: Options, paths: Vec<ScanPath>) -> Self {
        ScanCall {
            table: Table::from(options),
            paths,
            options,
            ..ScanCall::default()
        }
    }

    /// A scan of the columns with these indexes in the schema of the table, and the index of each of its files among
    /// those of the call. It may leave out files and records for which the conditions are not true. In these, the
    /// columns of folders follow those of the table. The messages beside the logs may take `memory` bytes.
    pub fn scan(&self, columns: &[usize], conditions: &[Expression], memory: u64) -> (FileScan, Arc<[usize]>) {
        let implied = |condition| Predicate::implied(&self.table, condition);
        let predicates: Vec<_> = conditions.iter().filter_map(implied).collect();
        let count = self.table.schema().fields().len();
        let of_folders = |condition| FolderPredicate::of(condition, count);
        let folder_predicates: Vec<_> = conditions.iter().filter_map(of_folders).collect();
        let is_kept = |index: usize| {
            let name = &self.paths[index].path;
            let is_in_folder = |predicate: &FolderPredicate| predicate.keeps(&self.folders, index);
            folder_predicates.iter().all(is_in_folder) && !predicates.iter().any(|predicate| predicate.drops_file(name))
        };
        let scan = Scan::filtered(self.table.clone(), columns, &predicates);
        // Correlations need the events of all files.
        let is_kept = |index: &usize| scan.sees_all() || is_kept(*index);
        let (kept, left_out): (Vec<_>, Vec<_>) = (0..self.paths.len()).partition(is_kept);
        let paths = |indices: &[usize]| indices.iter().map(|&index| self.paths[index].clone()).collect();
        let finder = Box::new(MessageFiles::new(&self.messages, memory));
        let logs = scan.recovers().then(|| read_logs(&scan, paths(&left_out))).flatten();
        let files = FileScan::new(Arc::new(scan), paths(&kept), Some(finder)).reading_logs(logs);
        // The columns of folders have one value for all rows of a batch.
        let files = if self.folders.is_empty() {
            files.joining_files()
        } else {
            files
        };
        let files = match &self.providers {
            // Conditions can have dropped their records.
            Some((row, providers)) if conditions.is_empty() => {
                let (row, providers) = (*row, providers.clone());
                files.advising(Box::new(move || advice(&providers, row)))
            }
            _ => files,
        };
        (files, kept.into())
    }
}
