//! Tests of modules together, with what callers do not see.

use std::sync::{Arc, RwLock};

use evtx_format::Interrupt;
use evtx_format::container::layout::{Block, Layout};

use crate::decode::{DecodeError, Decoder};
use crate::reports::{Catalog, ReportError};
use crate::scan::Scan;
use crate::schema::Options;

fn block() -> Block {
    Layout::new(4096 + 65_536, 0).block(0).expect("a block")
}

/// Panics in another thread, in the midst of a change.
fn panic_with<T: Send + Sync>(lock: &RwLock<T>) {
    let panic = || {
        let _guard = lock.write();
        panic!("in the midst of a change");
    };
    std::thread::scope(|threads| assert!(threads.spawn(panic).join().is_err()));
}

#[test]
fn a_thread_that_panics_among_what_is_shared_fails_the_others() {
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../samples/oddities.evtx");
    let chunk = &std::fs::read(sample).expect("a sample")[4096..][..65_536];
    let all: Vec<_> = (0..25).collect();
    let panics: [fn(&Scan); 2] = [
        |scan| panic_with(scan.keys.lock()),
        |scan| panic_with(scan.plans.lock()),
    ];
    for panics in panics {
        let scan = Arc::new(Scan::new(Options::default(), &all));
        let mut decoder = Decoder::new(Arc::clone(&scan));
        for is_poisoned in [false, true] {
            decoder.start(&"x".into(), None, block());
            let decoded = decoder.decode(chunk, Interrupt::NEVER);
            assert_eq!(
                matches!(decoded, Err(DecodeError::Poisoned(_))),
                is_poisoned,
                "{decoded:?}"
            );
            if !is_poisoned {
                panics(&scan);
            }
            // Its rows are those of before, and may have names that were added since.
            let batch = decoder.flush();
            assert!(matches!(batch, Err(DecodeError::Poisoned(_))), "{batch:?}");
        }

        let mut catalog = Catalog::new(None);
        catalog.push(chunk, Interrupt::NEVER).expect("the events");
        panics(catalog.scan());
        let pushed = catalog.push(chunk, Interrupt::NEVER);
        assert!(matches!(pushed, Err(ReportError::Poisoned(_))), "{pushed:?}");
    }
}
