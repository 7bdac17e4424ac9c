//! Tests of the rows of logs. One program, so that the libraries are linked once; tests that measure memory are their own.

#[path = "../common/mod.rs"]
mod common;

use proptest::test_runner::Config;

mod bad_input;
mod copied;
mod differential;
mod events;
mod frames;
mod golden;
mod messages;
mod oracle;
mod paths;
mod recovery;
mod redacted;
mod repeated_values;
mod sigma;
mod spelled_out;

/// How many events are generated, the same in every run. `make test-long` sets another seed, and `PROPTEST_CASES`: one of ten is an event,
/// as an event takes ten times as long as cases of other tests.
fn generated(cases: u32) -> Config {
    let config = Config::default();
    Config {
        cases: cases.max(config.cases / 10),
        failure_persistence: None,
        ..config
    }
}
