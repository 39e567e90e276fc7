//! The set of steps that may start, from which the first in order is always taken.
//!
//! A tree of bits: a word of one level says which words of the level below are not empty. A million steps take
//! four levels, and all but the lowest stay in the fastest cache.

/// A set of small numbers.
#[derive(Debug)]
pub(super) struct ReadySteps {
    /// From the single word at the top to one bit for each number.
    levels: Vec<Vec<u64>>,
}

const BITS: usize = 64;

impl ReadySteps {
    /// An empty set of numbers below a bound.
    pub(super) fn below(bound: usize) -> Self {
        let mut levels = Vec::new();
        let mut words = bound;
        loop {
            words = words.div_ceil(BITS).max(1);
            levels.push(vec![0; words]);
            if words == 1 {
                break;
            }
        }
        levels.reverse();
        Self { levels }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.levels[0][0] == 0
    }

    /// Adds a number.
    pub(super) fn insert(&mut self, number: u32) {
        let mut at = number as usize;
        for level in self.levels.iter_mut().rev() {
            let word = &mut level[at / BITS];
            let was_empty = *word == 0;
            *word |= 1 << (at % BITS);
            if !was_empty {
                return;
            }
            at /= BITS;
        }
    }

    /// Takes the smallest number out.
    pub(super) fn pop(&mut self) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        let first = self.levels.iter().fold(0, |at, level| at * BITS + level[at].trailing_zeros() as usize);
        let mut at = first;
        for level in self.levels.iter_mut().rev() {
            let word = &mut level[at / BITS];
            *word &= !(1 << (at % BITS));
            if *word != 0 {
                break;
            }
            at /= BITS;
        }
        u32::try_from(first).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_smallest_number_comes_out_first_whatever_the_order_of_their_coming() {
        for bound in [1_u32, 64, 65, 4096, 4097, 300_000] {
            let mut ready = ReadySteps::below(bound as usize);
            let mut model = BTreeSet::new();
            let mut random = 12345_u32;
            for round in 0..2000 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if round % 3 < 2 {
                    ready.insert(random % bound);
                    model.insert(random % bound);
                } else {
                    assert_eq!(ready.pop(), model.pop_first());
                }
                assert_eq!(ready.is_empty(), model.is_empty());
            }
            while let Some(first) = model.pop_first() {
                assert_eq!(ready.pop(), Some(first));
            }
            assert_eq!(ready.pop(), None);
        }
    }

    #[test]
    fn nothing_comes_out_of_a_set_for_no_numbers() {
        assert_eq!(ReadySteps::below(0).pop(), None);
    }
}
