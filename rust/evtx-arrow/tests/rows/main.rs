//! Tests of the rows of logs. One program, so that the libraries are linked once; tests that measure memory are their own.

#[path = "../common/mod.rs"]
mod common;

use proptest::test_runner::{Config, RngSeed};

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

/// How many cases are generated, the same in every run. `make test-long` draws `EVTX_TIMES` as many, by another seed.
fn generated(cases: u32) -> Config {
    let times = std::env::var("EVTX_TIMES").map_or(1, |times| times.parse().expect("a number"));
    let config = Config::default(); // reads PROPTEST_RNG_SEED
    let rng_seed = match config.rng_seed {
        RngSeed::Random => RngSeed::Fixed(1),
        seed => seed,
    };
    Config {
        cases: cases * times,
        rng_seed,
        failure_persistence: None,
        ..config
    }
}
