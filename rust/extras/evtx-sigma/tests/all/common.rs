//! What several tests need.

use evtx_format::Interrupt;
use evtx_sigma::{Correlation, Document, Placeholders, Refused, Rule, load_documents};

/// The generator `splitmix64`: the same seed gives the same numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }
}

/// The documents of a file.
pub(crate) fn documents(text: &str) -> Vec<Result<Document, Box<Refused>>> {
    load_documents(text, &Placeholders::new(), Interrupt::NEVER).expect("nothing interrupts it")
}

/// Adds what a document has to the rules and correlations of a file without filters.
pub(crate) fn add(document: Document, rules: &mut Vec<Rule>, correlations: &mut Vec<Correlation>) {
    match document {
        Document::Rule(rule) => rules.push(rule),
        Document::Correlation(correlation) => correlations.push(correlation),
        Document::Aggregation(own, correlation) => {
            rules.extend(own);
            correlations.push(correlation);
        }
        Document::Filter(filter) => panic!("{}", filter.about.title),
    }
}
