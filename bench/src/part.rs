//! The items that are measured: small ones, the same on every run.

use setpoint_engine::{Configurator, OpCx, OpError};
use setpoint_graph::{Deps, Item, ItemRef, Kind, Name};

use crate::case::Case;

/// An item with a few dependencies and one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// What it is called.
    pub(crate) name: Name,
    /// The numbers of the items it depends on.
    pub(crate) needs: Needs,
    /// What can change.
    pub(crate) value: u32,
}

/// Which items an item depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// None.
    Nothing,
    /// One item.
    One(u32),
    /// Two items.
    Two(u32, u32),
    /// All items with a number below this.
    AllBelow(u32),
}

impl Needs {
    /// Calls a function with the number of each.
    pub(crate) fn each(&self, mut f: impl FnMut(u32)) {
        match *self {
            Self::Nothing => {}
            Self::One(one) => f(one),
            Self::Two(one, two) => {
                f(one);
                f(two);
            }
            Self::AllBelow(end) => (0..end).for_each(f),
        }
    }
}

/// What the item with a number is called.
pub(crate) fn name_of(number: u32) -> Name {
    Name::from(format!("part-{number:07}"))
}

impl Item for Part {
    const KIND: Kind = Kind::from_static("part");

    fn name(&self) -> Name {
        self.name.clone()
    }

    fn dependencies(&self, deps: &mut Deps) {
        self.needs.each(|number| {
            deps.requires(ItemRef::of::<Self>(name_of(number)));
        });
    }
}

/// Does nothing, at once.
#[derive(Debug)]
pub(crate) struct Nothing;

impl Configurator<Part> for Nothing {
    async fn create(&self, _: &OpCx, _: &Part) -> Result<(), OpError> {
        Ok(())
    }

    async fn delete(&self, _: &OpCx, _: &Part) -> Result<(), OpError> {
        Ok(())
    }

    async fn modify(&self, _: &OpCx, _: &Part, _: &Part) -> Result<(), OpError> {
        Ok(())
    }
}

/// The items of a case, in the order they are put.
pub(crate) fn parts(case: Case, n: u32) -> Vec<Part> {
    let part = |number: u32, needs: Needs| Part { name: name_of(number), needs, value: 0 };
    match case {
        Case::HubCreate | Case::HubDelete => {
            let hub = part(0, Needs::Nothing);
            std::iter::once(hub).chain((1..=n).map(|number| part(number, Needs::One(0)))).collect()
        }
        Case::FanInPut | Case::FanIn => {
            let all = part(n, Needs::AllBelow(n));
            (0..n).map(|number| part(number, Needs::Nothing)).chain([all]).collect()
        }
        _ => {
            let mut dice = Dice::new();
            let mut parts: Vec<Part> = (0..n).map(|number| part(number, dice.two_below(number))).collect();
            if case == Case::BuildRandom {
                dice.shuffle(&mut parts);
            }
            parts
        }
    }
}

/// A small random generator (splitmix64) that says the same on every run.
#[derive(Debug)]
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        Self(0x5E7_901D)
    }

    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        // The high half of the product of the high bits with the bound is evenly spread below the bound.
        u32::try_from(((z >> 32) * u64::from(bound)) >> 32).unwrap_or(0)
    }

    /// Two different items before this one, as far as there are.
    fn two_below(&mut self, number: u32) -> Needs {
        match number {
            0 => Needs::Nothing,
            1 => Needs::One(0),
            _ => {
                let one = self.below(number);
                let two = self.below(number - 1);
                Needs::Two(one, if two >= one { two + 1 } else { two })
            }
        }
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let bound = u32::try_from(last + 1).unwrap_or(u32::MAX);
            items.swap(last, self.below(bound) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_needs_two_different_earlier_ones() {
        for (number, part) in (0..).zip(parts(Case::CreateAll, 1000)).skip(2) {
            let Needs::Two(one, two) = part.needs else { panic!("{part:?}") };
            assert!(one != two && one < number && two < number, "{part:?}");
        }
    }

    #[test]
    fn random_order_is_the_same_items_in_another_order() {
        let sorted = parts(Case::BuildSorted, 1000);
        let mut random = parts(Case::BuildRandom, 1000);
        assert_ne!(random, sorted);
        random.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(random, sorted);
    }
}
