//! Sets of small numbers, cleared in proportion to what they contain.

#[derive(Debug, Default)]
pub(super) struct Bits {
    words: Vec<u64>,
    /// The indices of the words that are not zero.
    used: Vec<u32>,
}

impl Bits {
    pub(super) fn insert(&mut self, number: u32) {
        let word = number as usize / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        if self.words[word] == 0 {
            self.used.push(word as u32);
        }
        self.words[word] |= 1 << (number % 64);
    }

    pub(super) fn contains(&self, number: u32) -> bool {
        let word = self.words.get(number as usize / 64);
        word.is_some_and(|word| word & 1 << (number % 64) != 0)
    }

    /// The numbers, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.used.iter().flat_map(|&word| {
            let mut bits = self.words[word as usize];
            std::iter::from_fn(move || {
                let number = (bits != 0).then(|| word * 64 + bits.trailing_zeros());
                bits &= bits.wrapping_sub(1);
                number
            })
        })
    }

    pub(super) fn clear(&mut self) {
        for word in self.used.drain(..) {
            self.words[word as usize] = 0;
        }
    }
}
