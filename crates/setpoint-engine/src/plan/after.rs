//! Dependencies of order alone, as a schedule keeps them.
//!
//! An item that goes and comes back is not touched before what it comes after, or needs from then on, is as intended: where that
//! fails, the item stays as it was. What goes for good does so after what came after it.
//!
//! Such a dependency never makes an order impossible. Edges that would close a circle are soft.

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_graph::Components;

use super::edges::Side;
use super::schedule::{Draft, Step, StepKind};
use super::{NONE, Outcome, Planner};

/// An edge between steps that is hard, unless it closes a circle.
struct Wanted {
    edge: (u32, u32),
    /// The soft edge in its place.
    otherwise: Option<(u32, u32)>,
}

impl Planner<'_> {
    /// Orders the deletions and modifications of items that come after others, beside all other edges.
    pub(super) fn order_after(&mut self, draft: &mut Draft) {
        let mut wanted: Vec<Wanted> = Vec::new();
        for i in 0..draft.steps.len() {
            let Step { subject, kind } = draft.steps[i];
            let deletes = match kind {
                StepKind::Delete => true,
                StepKind::Modify => false,
                StepKind::Create | StepKind::Switch | StepKind::Gate => continue,
            };
            let this = draft.down(subject);
            let mut seen: FxHashSet<u32> = FxHashSet::default();
            if deletes && self.subject(subject).outcome == Outcome::Recreate {
                for target in self.will_need(subject) {
                    let (first, up) = (draft.first(target), draft.up(target));
                    if matches!(draft.kind(up), Some(StepKind::Create | StepKind::Modify))
                        && seen.insert(target)
                    {
                        wanted.push(Wanted { edge: (up, this), otherwise: Some((this, first)) });
                    }
                }
            }
            for target in self.comes_after(subject, Side::Cur) {
                let first = draft.first(target);
                if first == NONE || !seen.insert(target) {
                    continue;
                }
                let otherwise = deletes.then_some((this, first));
                if self.subject(target).outcome == Outcome::Delete {
                    wanted.push(Wanted { edge: (this, first), otherwise });
                } else if let Some((from, to)) = otherwise {
                    draft.edge(from, to, false);
                }
            }
        }
        if wanted.is_empty() {
            return;
        }
        let mut next: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        let hard = draft.edges.iter().filter(|(_, _, hard)| *hard).map(|&(from, to, _)| (from, to));
        for (from, to) in hard.chain(wanted.iter().map(|wanted| wanted.edge)) {
            next.entry(from).or_default().push(to);
        }
        let mut circle_of: FxHashMap<u32, u32> = FxHashMap::default();
        let roots = wanted.iter().map(|wanted| wanted.edge.0);
        Components::new(|step| next.get(&step).into_iter().flatten().copied()).visit(roots, |circle| {
            if let [first, _, ..] = circle {
                circle_of.extend(circle.iter().map(|&step| (step, *first)));
            }
        });
        for Wanted { edge: (from, to), otherwise } in wanted {
            let circle = circle_of.get(&from);
            if circle.is_none() || circle != circle_of.get(&to) {
                draft.edge(from, to, true);
            } else if let Some((from, to)) = otherwise {
                draft.edge(from, to, false);
            }
        }
    }

    /// What the intended value of an item comes after, and what it needs that its present value does not.
    fn will_need(&mut self, id: u32) -> Vec<u32> {
        let of_cur = self.groups(id, Side::Cur).flat_map(|(_, alternatives)| alternatives);
        let needed: FxHashSet<u32> = of_cur.map(|edge| self.at_cur(edge.slot)).collect();
        let mut will_need = Vec::new();
        for (dependency, alternatives) in self.groups(id, Side::Int) {
            let targets = alternatives.iter().map(|edge| self.at_int(edge.slot));
            will_need.extend(targets.filter(|target| dependency.is_order() || !needed.contains(target)));
        }
        will_need
    }

    /// What the value of an item on one side comes after, by order alone.
    fn comes_after(&mut self, id: u32, side: Side) -> Vec<u32> {
        if self.plain_edges(id, side).is_some() {
            return Vec::new();
        }
        let order = self.groups(id, side).filter(|(dependency, _)| dependency.is_order());
        order.flat_map(|(_, alternatives)| alternatives).map(|edge| self.target(side, edge.slot)).collect()
    }
}
