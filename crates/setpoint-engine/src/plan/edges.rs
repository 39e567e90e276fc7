//! The edges of the subjects of a plan, on either side.

use setpoint_graph::{Dependency, Edge, SlotId};

use super::Planner;

/// Whose edges count for an item in the end: those of its current value or of its intended one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Cur,
    Int,
}

impl<'a> Planner<'a> {
    pub(super) fn side(&self, id: u32) -> Side {
        if self.subject(id).takes_intent() { Side::Int } else { Side::Cur }
    }

    /// The dependencies of an item's value on one side, each with its alternatives.
    pub(super) fn groups(
        &self,
        id: u32,
        side: Side,
    ) -> impl Iterator<Item = (&'a Dependency, &'a [Edge])> + Clone + use<'a> {
        let this = self.subject(id);
        let (cur, int) = (this.cur(), this.int());
        let of_cur = (side == Side::Cur).then_some(cur).flatten().map(|slot| self.cur.dependencies_at(slot));
        let of_int = (side == Side::Int).then_some(int).flatten().map(|slot| self.int.dependencies_at(slot));
        of_cur.into_iter().flatten().chain(of_int.into_iter().flatten())
    }

    /// The edges of an item's value on one side, where it only wants other items to exist.
    pub(super) fn plain_edges(&self, id: u32, side: Side) -> Option<&'a [Edge]> {
        let this = self.subject(id);
        match side {
            Side::Cur => {
                this.cur().filter(|&slot| self.cur.is_plain_at(slot)).map(|slot| self.cur.edges_at(slot))
            }
            Side::Int => {
                this.int().filter(|&slot| self.int.is_plain_at(slot)).map(|slot| self.int.edges_at(slot))
            }
        }
    }

    pub(super) fn target(&mut self, side: Side, slot: SlotId) -> u32 {
        match side {
            Side::Cur => self.at_cur(slot),
            Side::Int => self.at_int(slot),
        }
    }

    /// Returns whether a dependency is satisfied by what is there in the end, as far as that is known yet.
    pub(super) fn is_met(&mut self, side: Side, dependency: &Dependency, alternatives: &[Edge]) -> bool {
        alternatives.iter().any(|edge| {
            let target = self.target(side, edge.slot);
            if dependency.is_order() && self.subject(target).not_due {
                return false;
            }
            self.end_value(target).is_some_and(|value| dependency.is_satisfied_by(value))
        })
    }

    /// The dependents of an item by its slot in the current graph.
    pub(super) fn dependents_cur(&mut self, id: u32) -> impl Iterator<Item = Edge> + use<'a> {
        let edges = self.subject(id).cur.slot().map_or(&[][..], |slot| self.cur.incoming_at(slot));
        edges.iter().copied()
    }

    pub(super) fn dependents_int(&self, id: u32) -> impl Iterator<Item = Edge> + use<'a> {
        let edges = self.subject(id).int.slot().map_or(&[][..], |slot| self.int.incoming_at(slot));
        edges.iter().copied()
    }
}
