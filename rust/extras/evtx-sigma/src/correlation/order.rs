//! Sorts long lists so that an interrupt can stop it.

use evtx_format::{Interrupt, Interrupted};

/// Elements that are sorted or compared between two checks for an interrupt.
const PART: usize = 1 << 16;

/// Sorts a list. Parts that are too long to be sorted at once are split by a middle element first.
pub(super) fn sort<T: Ord + Copy>(list: &mut [T], interrupt: Interrupt<'_>) -> Result<(), Interrupted> {
    let mut parts = vec![list];
    while let Some(part) = parts.pop() {
        interrupt.check()?;
        if part.len() <= PART {
            part.sort_unstable();
            continue;
        }
        let middle = middle(part);
        let less = partition(part, interrupt, |one| *one < middle)?;
        let (less, rest) = part.split_at_mut(less);
        // At least the middle element itself is in this part, so the rest gets shorter.
        let same = partition(rest, interrupt, |one| *one == middle)?;
        parts.push(less);
        parts.push(&mut rest[same..]);
    }
    Ok(())
}

/// An element that is close to the median: that of 1,023 elements from all over the list.
fn middle<T: Ord + Copy>(list: &[T]) -> T {
    const SAMPLE: usize = 1023;
    // A step with no simple relation to the length, so that patterns in the list do not matter.
    let step = (list.len() as f64 * 0.618_033_988_749) as usize | 1;
    let mut sample: Vec<T> = (0..SAMPLE).map(|n| list[n * step % list.len()]).collect();
    sample.sort_unstable();
    sample[SAMPLE / 2]
}

/// Moves the elements that pass to the front. Returns their number.
fn partition<T: Copy>(
    list: &mut [T],
    interrupt: Interrupt<'_>,
    passes: impl Fn(&T) -> bool,
) -> Result<usize, Interrupted> {
    let mut front = 0;
    for index in 0..list.len() {
        if index.is_multiple_of(PART) {
            interrupt.check()?;
        }
        if passes(&list[index]) {
            list.swap(front, index);
            front += 1;
        }
    }
    Ok(front)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_long_lists() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 40
        };
        let lists: [Vec<u64>; 4] = [
            (0..300_000).map(|_| random()).collect(),
            (0..300_000).rev().collect(),
            vec![7; 300_000],
            (0..300_000).map(|n| n % 3).collect(),
        ];
        for mut list in lists {
            let mut expected = list.clone();
            expected.sort_unstable();
            sort(&mut list, Interrupt::NEVER).expect("nothing interrupts it");
            assert!(list == expected);
        }
        let mut list = vec![0; 100];
        assert!(sort(&mut list, Interrupt::new(&|| true)).is_err());
    }
}
