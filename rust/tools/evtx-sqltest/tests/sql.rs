//! Runs each file `test/sql/*.test` as a test, in sqllogictest format, through a client of DuckDB.
//!
//! Each file has its own client process with the extension loaded, which runs in the project's folder and answers over a
//! pipe (`test/sql/client.py`, `test/sql/Client.java`). `EVTX_CLIENT` is its command, without spaces in arguments, and
//! `EVTX_EXTENSION` names the extension; `make test-sql` sets both. `EVTX_TESTS` names another folder of tests.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use libtest_mimic::{Arguments, Failed, Trial};
use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner};

/// A DuckDB client in its own process.
struct Client {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Client {
    fn start(root: &Path) -> io::Result<Self> {
        let variable = |name: &str| {
            std::env::var_os(name)
                .ok_or_else(|| io::Error::other(format!("{name} is not set: run make test-sql, which sets it")))
        };
        let client = variable("EVTX_CLIENT")?.to_string_lossy().into_owned();
        let mut words = client.split_whitespace();
        let mut process = Command::new(words.next().unwrap_or_default())
            .args(words)
            .arg(variable("EVTX_EXTENSION")?)
            .current_dir(root)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let requests = process.stdin.take().expect("it is piped");
        let answers = BufReader::new(process.stdout.take().expect("it is piped"));
        Ok(Client {
            process,
            requests,
            answers,
        })
    }
}

impl DB for Client {
    type Error = io::Error;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> io::Result<DBOutput<DefaultColumnType>> {
        writeln!(self.requests, "{}", serde_json::Value::from(sql))?;
        self.requests.flush()?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let answer: serde_json::Value =
            serde_json::from_str(&line).map_err(|error| io::Error::other(format!("{error} in the answer {line:?}")))?;
        if let Some(error) = answer["error"].as_str() {
            return Err(io::Error::other(error));
        }
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
        let rows: Vec<Vec<String>> = list(&answer["rows"])
            .iter()
            .map(|row| list(row).iter().map(text).collect())
            .collect();
        match answer["columns"].as_u64() {
            Some(columns) => Ok(DBOutput::Rows {
                types: vec![DefaultColumnType::Any; columns as usize],
                rows,
            }),
            None => Ok(DBOutput::StatementComplete(0)),
        }
    }

    fn engine_name(&self) -> &str {
        "duckdb"
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn run(root: &Path, file: &Path) -> Result<(), Failed> {
    let root = root.to_owned();
    let mut runner = Runner::new(move || std::future::ready(Client::start(&root)));
    runner.with_column_validator(|_, _| true);
    let labels = std::env::var("EVTX_LABELS").unwrap_or_default();
    labels.split_whitespace().for_each(|label| runner.add_label(label));
    runner.run_file(file).map_err(|error| error.to_string())?;
    Ok(())
}

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    // Tests can run commands there.
    std::env::set_current_dir(&root).expect("the project's folder");
    let tests = std::env::var("EVTX_TESTS").unwrap_or_else(|_| "test/sql".to_owned());
    let mut files: Vec<PathBuf> = std::fs::read_dir(root.join(&tests))
        .expect("the tests")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "test"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "there are tests under {tests}");
    let trials = files.into_iter().map(|file| {
        let root = root.clone();
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        Trial::test(name, move || run(&root, &file))
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
