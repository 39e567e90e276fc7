//! The layout of one level: boxes in rows, so that edges mostly lead down.
//!
//! After Sugiyama: break cycles, give every box a rank, thread long edges through the ranks between,
//! order each rank by where its neighbours are, and straighten. Rows that grow too wide are folded.

use std::collections::BTreeMap;

use super::threads::{Row, Threads};

/// Space between boxes in a row.
pub(super) const GAP: f64 = 28.0;
/// Space between rows that edges cross.
const RANK_GAP: f64 = 46.0;
/// Space between rows that no edge crosses.
const ROW_GAP: f64 = 20.0;

/// Boxes to be placed, and edges between them by position, sorted and without duplicates.
pub(super) struct Level<'a> {
    pub(super) sizes: &'a [(f64, f64)],
    pub(super) edges: &'a [(usize, usize)],
}

/// Where everything went, from the top left corner of the level.
#[derive(Debug, Default)]
pub(super) struct Placed {
    /// The top left corners of the boxes.
    pub(super) corners: Vec<(f64, f64)>,
    /// The points that long edges pass between their ends.
    pub(super) bends: BTreeMap<(usize, usize), Vec<(f64, f64)>>,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Level<'_> {
    /// Places all boxes; no two overlap.
    pub(super) fn place(&self) -> Placed {
        let count = self.sizes.len();
        let forward = self.without_cycles();
        let mut connected = vec![false; count];
        for &(from, to) in &forward {
            (connected[from], connected[to]) = (true, true);
        }
        let widest = self.sizes.iter().map(|size| size.0).fold(0.0, f64::max);
        let area: f64 = self.sizes.iter().map(|(w, h)| (w + GAP) * (h + ROW_GAP)).sum();
        let limit = (area.sqrt() * 1.8).max(widest).max(480.0);

        let ranks = ranks(count, &forward);
        let threads = Threads::new(self.sizes, &forward, &ranks);
        let rows = threads.rows(&connected, &ranks, limit);
        let centres = threads.straighten(&rows);
        self.assemble(&threads, &rows, &centres, &connected, limit)
    }

    /// The edges with those turned round that close a cycle, and no loops.
    fn without_cycles(&self) -> Vec<(usize, usize)> {
        let mut out: Vec<Vec<usize>> = vec![Vec::new(); self.sizes.len()];
        for &(from, to) in self.edges.iter().filter(|(from, to)| from != to) {
            out[from].push(to);
        }
        // 0: not seen, 1: on the way, 2: done.
        let mut seen = vec![0_u8; self.sizes.len()];
        let mut edges = Vec::with_capacity(self.edges.len());
        for root in 0..self.sizes.len() {
            if seen[root] != 0 {
                continue;
            }
            seen[root] = 1;
            let mut way = vec![(root, 0)];
            while let Some((at, next)) = way.last_mut() {
                let at = *at;
                let Some(&to) = out[at].get(*next) else {
                    seen[at] = 2;
                    way.pop();
                    continue;
                };
                *next += 1;
                edges.push(if seen[to] == 1 { (to, at) } else { (at, to) });
                if seen[to] == 0 {
                    seen[to] = 1;
                    way.push((to, 0));
                }
            }
        }
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    fn assemble(
        &self,
        threads: &Threads,
        rows: &[Row],
        centres: &[f64],
        connected: &[bool],
        limit: f64,
    ) -> Placed {
        let count = self.sizes.len();
        let mut placed = Placed { corners: vec![(0.0, 0.0); count], ..Placed::default() };
        let left = rows
            .iter()
            .flat_map(|row| &row.members)
            .map(|&at| centres[at] - threads.widths[at] / 2.0)
            .fold(f64::INFINITY, f64::min);
        let mut middles = vec![0.0; threads.widths.len()];
        let mut y = 0.0;
        for (i, row) in rows.iter().enumerate() {
            if i > 0 {
                y += if row.folded { ROW_GAP } else { RANK_GAP };
            }
            let reals = row.members.iter().filter(|&&at| at < count);
            let height = reals.map(|&at| self.sizes[at].1).fold(0.0, f64::max);
            for &at in &row.members {
                let x = (centres[at] - threads.widths[at] / 2.0 - left).round();
                middles[at] = y + height / 2.0;
                if at < count {
                    placed.corners[at] = (x, (y + (height - self.sizes[at].1) / 2.0).round());
                }
                placed.width = placed.width.max(x + threads.widths[at]);
            }
            y += height;
        }
        for (&(from, to), lanes) in &threads.lanes {
            let mut bends: Vec<_> =
                lanes.iter().map(|&at| ((centres[at] - left).round(), middles[at].round())).collect();
            placed.bends.insert((from, to), bends.clone());
            bends.reverse();
            placed.bends.insert((to, from), bends);
        }
        // What has no edges here fills rows below.
        let limit = limit.max(placed.width);
        let (mut x, mut height) = (0.0, 0.0_f64);
        let mut top = if rows.is_empty() { 0.0 } else { y + ROW_GAP };
        for at in (0..count).filter(|&at| !connected[at]) {
            let (w, h) = self.sizes[at];
            if x > 0.0 && x + w > limit {
                (x, top, height) = (0.0, top + height + ROW_GAP, 0.0);
            }
            placed.corners[at] = (x, top);
            placed.width = placed.width.max(x + w);
            (x, height) = (x + w + GAP, height.max(h));
            y = top + height;
        }
        placed.height = y;
        placed
    }
}

/// The longest way to each box from where no edge leads, with starts pulled down to what they lead to.
fn ranks(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut waits = vec![0_usize; count];
    for &(from, to) in edges {
        out[from].push(to);
        waits[to] += 1;
    }
    let starts: Vec<usize> = (0..count).filter(|&at| waits[at] == 0).collect();
    let mut rank = vec![0; count];
    let mut todo = starts.clone();
    while let Some(at) = todo.pop() {
        for &to in &out[at] {
            rank[to] = rank[to].max(rank[at] + 1);
            waits[to] -= 1;
            if waits[to] == 0 {
                todo.push(to);
            }
        }
    }
    for at in starts {
        if let Some(lowest) = out[at].iter().map(|&to| rank[to]).min() {
            rank[at] = lowest - 1;
        }
    }
    rank
}
