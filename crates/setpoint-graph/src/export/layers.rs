//! The layout of one level: boxes in rows, so that edges mostly lead down.
//!
//! After Sugiyama: break cycles, give every box a rank, thread long edges through the ranks between,
//! order each rank by where its neighbours are, and straighten. Rows that grow too wide are folded.
//!
//! Boxes stand in rows, edges bend only between rows, and within a row an edge is upright, with no box in its
//! way ([`routes`](super::routes)). So no edge runs behind a box.

use std::collections::BTreeMap;

use super::layout::PADDING;
use super::routes::{DISTANCE, Lane, Routes};
use super::threads::Threads;

/// Space between boxes in a row.
pub(super) const GAP: f64 = 28.0;
/// Space between rows of different ranks.
const RANK_GAP: f64 = 46.0;
/// Space between other rows that edges cross.
const CROSSED_GAP: f64 = 30.0;
/// Space between rows that no edge crosses.
const ROW_GAP: f64 = 20.0;

/// The order of the boxes of one level from top to bottom, which does not depend on their sizes.
pub(super) struct Ranking {
    /// The edges, all leading to greater ranks.
    forward: Vec<(usize, usize)>,
    ranks: Vec<usize>,
    /// Whether a box has edges in this level.
    connected: Vec<bool>,
}

/// Where an edge leaves or reaches a box.
#[derive(Clone, Copy, Debug)]
pub(super) struct Port {
    /// The position of the box.
    pub(super) of: usize,
    /// From the left side of the box.
    pub(super) x: f64,
}

/// The part of an edge in one level: from a box or the upper border down to a box or the lower border.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    pub(super) edge: usize,
    pub(super) upper: Option<Port>,
    pub(super) lower: Option<Port>,
}

/// Boxes to be placed, and the edges that go between them or through the level.
pub(super) struct Level<'a> {
    pub(super) sizes: &'a [(f64, f64)],
    pub(super) ranking: &'a Ranking,
    pub(super) passes: &'a [Pass],
}

/// Where everything went, from the top left corner of the level.
#[derive(Debug, Default)]
pub(super) struct Placed {
    /// The top left corners of the boxes.
    pub(super) corners: Vec<(f64, f64)>,
    /// The row of each box.
    pub(super) row_of: Vec<usize>,
    pub(super) rows: Vec<Row>,
    /// The lanes of each pass, from top to bottom.
    pub(super) lanes: Vec<Vec<Lane>>,
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Boxes side by side.
#[derive(Debug)]
pub(super) struct Row {
    /// The boxes from left to right.
    pub(super) boxes: Vec<usize>,
    /// None for boxes without edges in this level.
    pub(super) rank: Option<usize>,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Ranking {
    /// Ranks boxes by the edges between them, which are sorted and without duplicates.
    pub(super) fn new(count: usize, edges: &[(usize, usize)]) -> Self {
        let forward = without_cycles(count, edges);
        let mut connected = vec![false; count];
        for &(from, to) in &forward {
            (connected[from], connected[to]) = (true, true);
        }
        Self { ranks: ranks(count, &forward), forward, connected }
    }

    /// The rank of a box; less is higher.
    pub(super) fn rank(&self, at: usize) -> usize {
        self.ranks[at]
    }
}

impl Level<'_> {
    /// Places all boxes, of which no two overlap, and leads all passes around them.
    pub(super) fn place(&self) -> Placed {
        let Ranking { forward, ranks, connected } = self.ranking;
        let count = self.sizes.len();
        let widest = self.sizes.iter().map(|size| size.0).fold(0.0, f64::max);
        let area: f64 = self.sizes.iter().map(|(w, h)| (w + GAP) * (h + ROW_GAP)).sum();
        let limit = (area.sqrt() * 1.8).max(widest).max(480.0);

        let threads = Threads::new(self.sizes, forward, ranks, &self.shifts());
        let rows = threads.rows(connected, ranks, limit);
        let mut centres = threads.straighten(&rows);
        let left = (rows.iter().flat_map(|row| &row.members))
            .map(|&at| centres[at] - threads.widths[at] / 2.0)
            .fold(f64::INFINITY, f64::min);
        let mut placed =
            Placed { corners: vec![(0.0, 0.0); count], row_of: vec![0; count], ..Placed::default() };
        for row in &rows {
            let mut boxes = Vec::new();
            for &at in &row.members {
                centres[at] -= left;
                let x = (centres[at] - threads.widths[at] / 2.0).round();
                placed.width = placed.width.max(x + threads.widths[at]);
                if at < count {
                    placed.corners[at].0 = x;
                    boxes.push(at);
                }
            }
            placed.rows.push(Row { boxes, rank: Some(row.rank), top: 0.0, bottom: 0.0 });
        }
        self.fill(&mut placed, limit);
        for (i, row) in placed.rows.iter_mut().enumerate() {
            row.boxes.sort_by(|&a, &b| placed.corners[a].0.total_cmp(&placed.corners[b].0));
            for &at in &row.boxes {
                placed.row_of[at] = i;
            }
        }
        self.stack(&mut placed);
        let lane_of = |pass: &Pass, rank: usize| {
            let (upper, lower) = (pass.upper?.of, pass.lower?.of);
            let lanes = threads.lanes.get(&(upper, lower))?;
            lanes.get(rank.checked_sub(ranks[upper] + 1)?).map(|&lane| centres[lane])
        };
        let routes = Routes { sizes: self.sizes, passes: self.passes, placed: &placed };
        placed.lanes = routes.lanes(self.ranking, lane_of);
        placed.make_room();
        placed
    }

    /// How far off the middle of their boxes edges end, on the average of all between the same two boxes.
    fn shifts(&self) -> BTreeMap<(usize, usize), (f64, f64)> {
        let mut sums: BTreeMap<(usize, usize), (f64, f64, f64)> = BTreeMap::new();
        for pass in self.passes {
            if let (Some(upper), Some(lower)) = (pass.upper, pass.lower) {
                let sum = sums.entry((upper.of, lower.of)).or_default();
                sum.0 += upper.x - self.sizes[upper.of].0 / 2.0;
                sum.1 += lower.x - self.sizes[lower.of].0 / 2.0;
                sum.2 += 1.0;
            }
        }
        sums.into_iter().map(|(pair, (upper, lower, count))| (pair, (upper / count, lower / count))).collect()
    }

    /// Puts what has no edges here into rows below.
    fn fill(&self, placed: &mut Placed, limit: f64) {
        let limit = limit.max(placed.width);
        let mut right = f64::INFINITY;
        for at in (0..self.sizes.len()).filter(|&at| !self.ranking.connected[at]) {
            let width = self.sizes[at].0;
            if right + GAP + width > limit {
                placed.rows.push(Row { boxes: Vec::new(), rank: None, top: 0.0, bottom: 0.0 });
                right = -GAP;
            }
            placed.corners[at].0 = right + GAP;
            right += GAP + width;
            placed.width = placed.width.max(right);
            if let Some(row) = placed.rows.last_mut() {
                row.boxes.push(at);
            }
        }
    }

    /// Puts the rows below each other.
    fn stack(&self, placed: &mut Placed) {
        let mut crossed = vec![false; placed.rows.len() + 1];
        // How many passes begin and end to cross with each row.
        let mut begin = vec![0_usize; placed.rows.len() + 2];
        let mut end = begin.clone();
        for pass in self.passes {
            let rows = placed.passed(pass);
            begin[rows.start] += 1;
            end[rows.end + 1] += 1;
        }
        let mut open = 0;
        for (i, crossed) in crossed.iter_mut().enumerate() {
            open = open + begin[i] - end[i];
            *crossed = open > 0;
        }
        let mut rank = None;
        for (i, row) in placed.rows.iter_mut().enumerate() {
            if i > 0 {
                placed.height += match crossed[i] {
                    true if row.rank.is_some() && row.rank != rank => RANK_GAP,
                    true => CROSSED_GAP,
                    false => ROW_GAP,
                };
            }
            rank = row.rank;
            let height = row.boxes.iter().map(|&at| self.sizes[at].1).fold(0.0, f64::max);
            (row.top, row.bottom) = (placed.height, placed.height + height);
            for &at in &row.boxes {
                // What has no edges here stands at the top of its row.
                let space = if row.rank.is_some() { (height - self.sizes[at].1) / 2.0 } else { 0.0 };
                placed.corners[at].1 = (row.top + space).round();
            }
            placed.height = row.bottom;
        }
    }
}

impl Placed {
    /// The rows that a pass goes through between its ends.
    pub(super) fn passed(&self, pass: &Pass) -> std::ops::Range<usize> {
        let start = pass.upper.map_or(0, |port| self.row_of[port.of] + 1);
        start..pass.lower.map_or(self.rows.len(), |port| self.row_of[port.of])
    }

    /// Moves and widens the level so that all lanes are in it, or not far into the space around it.
    fn make_room(&mut self) {
        let outside = PADDING - DISTANCE;
        let mut left = -outside;
        for lane in self.lanes.iter().flatten() {
            left = left.min(lane.x);
            self.width = self.width.max(lane.x - outside);
        }
        let shift = (-outside - left).ceil();
        for lane in self.lanes.iter_mut().flatten() {
            lane.x += shift;
        }
        for corner in &mut self.corners {
            corner.0 += shift;
        }
        self.width = (self.width + shift).ceil();
    }
}

/// The edges with those turned round that close a cycle, and no loops.
fn without_cycles(count: usize, edges: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); count];
    for &(from, to) in edges.iter().filter(|(from, to)| from != to) {
        out[from].push(to);
    }
    // 0: not seen, 1: on the way, 2: done.
    let mut seen = vec![0_u8; count];
    let mut forward = Vec::with_capacity(edges.len());
    for root in 0..count {
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
            forward.push(if seen[to] == 1 { (to, at) } else { (at, to) });
            if seen[to] == 0 {
                seen[to] = 1;
                way.push((to, 0));
            }
        }
    }
    forward.sort_unstable();
    forward.dedup();
    forward
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
