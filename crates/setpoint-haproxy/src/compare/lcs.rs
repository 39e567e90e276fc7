//! Longest common subsequences.

use std::ops::Range;

/// A stretch of two sequences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stretch {
    /// One element of each, which are equal.
    Same(usize, usize),
    /// What stands between two equal elements: either may be empty, not both.
    Gap(Range<usize>, Range<usize>),
}

/// Up to this many cells the longest subsequence is found exactly; beyond, one that is long.
const EXACT: usize = 4_000_000;

/// Aligns two sequences of identities: equal elements that keep their order, and the gaps between them.
pub(crate) fn align(a: &[u64], b: &[u64]) -> Vec<Stretch> {
    let prefix = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (inner_a, inner_b) = (a.get(prefix..).unwrap_or_default(), b.get(prefix..).unwrap_or_default());
    let suffix = inner_a.iter().rev().zip(inner_b.iter().rev()).take_while(|(a, b)| a == b).count();
    let mut pairs: Vec<(usize, usize)> = (0..prefix).map(|i| (i, i)).collect();
    let middle = common(
        inner_a.get(..inner_a.len() - suffix).unwrap_or_default(),
        inner_b.get(..inner_b.len() - suffix).unwrap_or_default(),
    );
    pairs.extend(middle.into_iter().map(|(i, j)| (i + prefix, j + prefix)));
    pairs.extend((0..suffix).rev().map(|i| (a.len() - 1 - i, b.len() - 1 - i)));

    let mut stretches = Vec::with_capacity(pairs.len() + 1);
    let (mut at_a, mut at_b) = (0, 0);
    for (i, j) in pairs.into_iter().chain([(a.len(), b.len())]) {
        if i > at_a || j > at_b {
            stretches.push(Stretch::Gap(at_a..i, at_b..j));
        }
        if i < a.len() {
            stretches.push(Stretch::Same(i, j));
        }
        (at_a, at_b) = (i + 1, j + 1);
    }
    stretches
}

/// Pairs of places with equal elements, ascending on both sides.
fn common(a: &[u64], b: &[u64]) -> Vec<(usize, usize)> {
    // What only one side has matches nothing: it is left out, which makes most lists short.
    let in_b: rustc_hash::FxHashSet<u64> = b.iter().copied().collect();
    let in_a: rustc_hash::FxHashSet<u64> = a.iter().copied().collect();
    let kept = |list: &[u64], other: &rustc_hash::FxHashSet<u64>| -> Vec<(usize, u64)> {
        list.iter().copied().enumerate().filter(|(_, id)| other.contains(id)).collect()
    };
    let (a, b) = (kept(a, &in_b), kept(b, &in_a));
    if a.len().saturating_mul(b.len()) <= EXACT { exact(&a, &b) } else { ascending(&a, &b) }
}

/// The longest common subsequence, by the table of all lengths.
fn exact(a: &[(usize, u64)], b: &[(usize, u64)]) -> Vec<(usize, usize)> {
    let width = b.len() + 1;
    // lengths[i * width + j]: how long the longest is from a[i..] and b[j..].
    let mut lengths = vec![0_u32; (a.len() + 1) * width];
    let cell = |lengths: &[u32], i: usize, j: usize| lengths.get(i * width + j).copied().unwrap_or_default();
    for (i, (_, left)) in a.iter().enumerate().rev() {
        for (j, (_, right)) in b.iter().enumerate().rev() {
            let length = if left == right {
                cell(&lengths, i + 1, j + 1) + 1
            } else {
                cell(&lengths, i + 1, j).max(cell(&lengths, i, j + 1))
            };
            if let Some(place) = lengths.get_mut(i * width + j) {
                *place = length;
            }
        }
    }
    let mut pairs = Vec::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(&(at_a, left)), Some(&(at_b, right))) = (a.get(i), b.get(j)) {
        if left == right {
            pairs.push((at_a, at_b));
            (i, j) = (i + 1, j + 1);
        } else if cell(&lengths, i + 1, j) >= cell(&lengths, i, j + 1) {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

/// The n-th of each in one list stands for the n-th in the other; of these pairs, the longest run that ascends.
fn ascending(a: &[(usize, u64)], b: &[(usize, u64)]) -> Vec<(usize, usize)> {
    let mut places: rustc_hash::FxHashMap<u64, std::collections::VecDeque<usize>> =
        rustc_hash::FxHashMap::default();
    for &(at, id) in b {
        places.entry(id).or_default().push_back(at);
    }
    let pairs: Vec<(usize, usize)> =
        a.iter().filter_map(|&(at, id)| Some((at, places.get_mut(&id)?.pop_front()?))).collect();
    // tails[n]: the pair that ends the best run of length n + 1; before[i]: the pair before pair i.
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    let place = |index: usize| pairs.get(index).map_or(0, |pair| pair.1);
    for (index, &(_, at)) in pairs.iter().enumerate() {
        let length = tails.partition_point(|&tail| place(tail) < at);
        before.push(length.checked_sub(1).and_then(|shorter| tails.get(shorter)).copied());
        match tails.get_mut(length) {
            Some(tail) => *tail = index,
            None => tails.push(index),
        }
    }
    let mut run = Vec::with_capacity(tails.len());
    let mut next = tails.last().copied();
    while let Some(index) = next {
        run.extend(pairs.get(index).copied());
        next = before.get(index).copied().flatten();
    }
    run.reverse();
    run
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(a: &[u64], b: &[u64], pairs: &[(usize, usize)]) {
        assert!(pairs.iter().all(|&(i, j)| a[i] == b[j]));
        assert!(pairs.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1));
    }

    fn numbered(list: &[u64]) -> Vec<(usize, u64)> {
        list.iter().copied().enumerate().collect()
    }

    proptest! {
        #[test]
        fn an_alignment_covers_both_sequences_in_order(
            a in prop::collection::vec(0..6_u64, 0..20),
            b in prop::collection::vec(0..6_u64, 0..20),
        ) {
            let (mut at_a, mut at_b) = (0, 0);
            for stretch in align(&a, &b) {
                match stretch {
                    Stretch::Same(i, j) => {
                        prop_assert_eq!((i, j), (at_a, at_b));
                        prop_assert_eq!(a[i], b[j]);
                        (at_a, at_b) = (i + 1, j + 1);
                    }
                    Stretch::Gap(left, right) => {
                        prop_assert_eq!((left.start, right.start), (at_a, at_b));
                        (at_a, at_b) = (left.end, right.end);
                    }
                }
            }
            prop_assert_eq!((at_a, at_b), (a.len(), b.len()));
        }

        #[test]
        fn both_ways_find_common_subsequences_and_the_exact_one_is_never_shorter(
            a in prop::collection::vec(0..9_u64, 0..20),
            b in prop::collection::vec(0..9_u64, 0..20),
        ) {
            let (exact, quick) = (exact(&numbered(&a), &numbered(&b)), ascending(&numbered(&a), &numbered(&b)));
            check(&a, &b, &exact);
            check(&a, &b, &quick);
            prop_assert!(exact.len() >= quick.len());
        }
    }

    #[test]
    fn something_put_in_front_is_one_gap() {
        assert_eq!(
            align(&[1, 2], &[0, 1, 2]),
            [Stretch::Gap(0..0, 0..1), Stretch::Same(0, 1), Stretch::Same(1, 2)]
        );
    }

    #[test]
    fn long_lists_in_reverse_are_aligned_in_no_time() {
        let a: Vec<u64> = (0..20_000).collect();
        let b: Vec<u64> = (0..20_000).rev().collect();
        assert!(align(&a, &b).iter().any(|stretch| matches!(stretch, Stretch::Same(..))));
    }
}
