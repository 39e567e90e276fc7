//! Strongly connected components, found without recursion.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Tarjan's search, with a stack of its own: a chain of dependencies may be longer than the call stack.
///
/// A component holds all nodes that can be reached from each other. A node that is on no circle is alone in
/// its component.
///
/// ```
/// use setpoint_graph::Components;
///
/// let edges = |node: u32| [(1, 2), (2, 3), (3, 2)].into_iter().filter(move |&(from, _)| from == node);
/// let mut found = Vec::new();
/// Components::new(|node| edges(node).map(|(_, to)| to)).visit([1], |component| found.push(component.len()));
/// assert_eq!(found, [2, 1], "2 and 3 first, which 1 leads to");
/// ```
#[derive(Debug)]
pub struct Components<T, N, I> {
    /// Where the edges of a node lead.
    neighbours: N,
    visits: FxHashMap<T, Visit>,
    /// Visited nodes that are not yet in a component.
    open: Vec<T>,
    /// The way down from the root, with the edges that are still to be followed.
    way: Vec<(T, I)>,
}

#[derive(Clone, Copy, Debug)]
struct Visit {
    order: usize,
    low: usize,
    /// Whether the node is not yet in a component.
    open: bool,
}

impl<T: Copy + Eq + Hash, N: FnMut(T) -> I, I: Iterator<Item = T>> Components<T, N, I> {
    /// Prepares a search along these edges.
    pub fn new(neighbours: N) -> Self {
        Self { neighbours, visits: FxHashMap::default(), open: Vec::new(), way: Vec::new() }
    }

    /// Hands over all components reachable from the roots, each after those that its edges lead to.
    pub fn visit(mut self, roots: impl IntoIterator<Item = T>, mut component: impl FnMut(&[T])) {
        for root in roots {
            if !self.visits.contains_key(&root) {
                self.enter(root);
                self.walk(&mut component);
            }
        }
    }

    fn walk(&mut self, component: &mut impl FnMut(&[T])) {
        while let Some((node, edges)) = self.way.last_mut() {
            let node = *node;
            if let Some(target) = edges.next() {
                match self.visits.get(&target).copied() {
                    None => self.enter(target),
                    Some(visit) if visit.open => self.lower(node, visit.order),
                    Some(_) => {}
                }
                continue;
            }
            self.way.pop();
            let Some(visit) = self.visits.get(&node).copied() else { continue };
            if let Some(&(parent, _)) = self.way.last() {
                self.lower(parent, visit.low);
            }
            if visit.low == visit.order {
                let start = self.open.iter().rposition(|&open| open == node).unwrap_or(0);
                for member in &self.open[start..] {
                    if let Some(visit) = self.visits.get_mut(member) {
                        visit.open = false;
                    }
                }
                component(&self.open[start..]);
                self.open.truncate(start);
            }
        }
    }

    fn enter(&mut self, node: T) {
        let order = self.visits.len();
        self.visits.insert(node, Visit { order, low: order, open: true });
        self.open.push(node);
        self.way.push((node, (self.neighbours)(node)));
    }

    fn lower(&mut self, node: T, low: usize) {
        if let Some(visit) = self.visits.get_mut(&node) {
            visit.low = visit.low.min(low);
        }
    }
}
