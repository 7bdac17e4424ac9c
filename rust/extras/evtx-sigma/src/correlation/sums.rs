//! Numbers of a window: their sum, average, and percentiles.

use crate::number::Number;

/// A number of a field, in millionths. So sums are exact and do not depend on the order. `None` for texts that are not a
/// number, and for numbers beyond 10^24.
pub(super) fn millionths(text: &str) -> Option<i128> {
    const MOST: i128 = 1_000_000_000_000_000_000_000_000;
    let number = match Number::from_text(text)? {
        Number::Integer(number) if number.unsigned_abs() <= MOST.unsigned_abs() => number * 1_000_000,
        Number::Real(number, _) if number.abs() <= MOST as f64 => (number * 1e6).round() as i128,
        _ => return None,
    };
    Some(number)
}

/// The numbers of a window, as ranks among all numbers of a correlation (a Fenwick tree of their counts).
pub(super) struct Numbers {
    /// All numbers in millionths, sorted and distinct.
    all: Vec<i128>,
    tree: Vec<u32>,
    count: u64,
    sum: i128,
}

impl Numbers {
    pub(super) fn new(all: Vec<i128>) -> Self {
        let tree = vec![0; all.len() + 1];
        let (count, sum) = (0, 0);
        Numbers { all, tree, count, sum }
    }

    pub(super) fn add(&mut self, rank: u32) {
        self.count += 1;
        self.sum += self.all[rank as usize];
        self.change(rank, |count| count + 1);
    }

    pub(super) fn remove(&mut self, rank: u32) {
        self.count -= 1;
        self.sum -= self.all[rank as usize];
        self.change(rank, |count| count - 1);
    }

    fn change(&mut self, rank: u32, to: impl Fn(u32) -> u32) {
        let mut at = rank as usize + 1;
        while at < self.tree.len() {
            self.tree[at] = to(self.tree[at]);
            at += at & at.wrapping_neg();
        }
    }

    pub(super) fn sum(&self) -> Option<f64> {
        (self.count > 0).then(|| real(self.sum))
    }

    pub(super) fn average(&self) -> Option<f64> {
        self.sum().map(|sum| sum / self.count as f64)
    }

    /// The smallest number such that a percentage of the numbers is not larger. 0 is the smallest number of all.
    pub(super) fn percentile(&self, percent: f64) -> Option<f64> {
        let nearest = (percent / 100.0 * self.count as f64).ceil() as u64;
        let mut left = nearest.clamp(1, self.count.max(1));
        if self.count == 0 {
            return None;
        }
        let mut at = 0;
        let mut step = self.tree.len().next_power_of_two();
        while step > 0 {
            let next = at + step;
            if let Some(count) = self.tree.get(next)
                && u64::from(*count) < left
            {
                left -= u64::from(*count);
                at = next;
            }
            step /= 2;
        }
        self.all.get(at).map(|number| real(*number))
    }
}

fn real(millionths: i128) -> f64 {
    // Whole numbers stay exact up to 2^53.
    let (whole, rest) = (millionths / 1_000_000, millionths % 1_000_000);
    match rest {
        0 => whole as f64,
        _ => millionths as f64 / 1e6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers() {
        for (text, number) in [
            ("0x10", Some(16_000_000)),
            ("-1.5", Some(-1_500_000)),
            ("0.1", Some(100_000)),
            ("1e400", None),
            ("x", None),
            ("", None),
            ("999999999999999999999999999", None),
        ] {
            assert_eq!(millionths(text), number, "{text}");
        }
    }

    #[test]
    fn finds_percentiles() {
        let mut numbers = Numbers::new((1..=100).map(|number| number * 1_000_000).collect());
        assert_eq!((numbers.percentile(50.0), numbers.sum()), (None, None));
        (0..100).for_each(|rank| numbers.add(rank));
        for (percent, expected) in [(0.0, 1.0), (1.0, 1.0), (50.0, 50.0), (99.5, 100.0), (100.0, 100.0)] {
            assert_eq!(numbers.percentile(percent), Some(expected));
        }
        assert_eq!((numbers.sum(), numbers.average()), (Some(5050.0), Some(50.5)));
        (0..99).for_each(|rank| numbers.remove(rank));
        assert_eq!(numbers.percentile(0.0), Some(100.0));
    }
}
