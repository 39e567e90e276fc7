//! Rows of boxes with lanes for the edges that pass them, ordered and straightened.

use std::collections::BTreeMap;

use super::layers::GAP;

/// The room that a passing edge takes in a row.
const LANE: f64 = 10.0;
/// With more passing edges than this, long edges take what room there is between the boxes.
const MOST_LANES: usize = 3_000;
/// How often the rows are ordered; the last rounds only straighten.
const ROUNDS: usize = 10;

/// The boxes, and behind them one lane for every rank that an edge passes.
pub(super) struct Threads {
    pub(super) widths: Vec<f64>,
    above: Vec<Vec<Neighbour>>,
    below: Vec<Vec<Neighbour>>,
    pub(super) lanes: BTreeMap<(usize, usize), Vec<usize>>,
    lane_ranks: Vec<usize>,
    boxes: usize,
}

/// What an edge leads to in the next row.
#[derive(Clone, Copy)]
struct Neighbour {
    at: usize,
    /// Where the centre would have to be, seen from the neighbour's, for the edge to be upright.
    shift: f64,
}

/// Boxes and lanes side by side. A rank that is too wide has several rows, and all its lanes are in the first.
#[derive(Debug)]
pub(super) struct ThreadedRow {
    pub(super) members: Vec<usize>,
    pub(super) rank: usize,
}

impl Threads {
    /// Threads edges through ranks. `shifts` tells how far off the middle of its two boxes an edge ends.
    pub(super) fn new(
        sizes: &[(f64, f64)],
        edges: &[(usize, usize)],
        ranks: &[usize],
        shifts: &BTreeMap<(usize, usize), (f64, f64)>,
    ) -> Self {
        let passed = |&(from, to): &(usize, usize)| ranks[to].saturating_sub(ranks[from] + 1);
        let threaded = edges.iter().map(passed).sum::<usize>() <= MOST_LANES;
        let mut this = Self {
            widths: sizes.iter().map(|size| size.0).collect(),
            above: vec![Vec::new(); sizes.len()],
            below: vec![Vec::new(); sizes.len()],
            lanes: BTreeMap::new(),
            lane_ranks: Vec::new(),
            boxes: sizes.len(),
        };
        for edge @ &(from, to) in edges {
            let (mut at, (mut shift, end)) = (from, shifts.get(edge).copied().unwrap_or_default());
            if threaded && passed(edge) > 0 {
                let mut lanes = Vec::new();
                for rank in ranks[from] + 1..ranks[to] {
                    let lane = this.widths.len();
                    this.widths.push(LANE);
                    this.lane_ranks.push(rank);
                    this.above.push(Vec::new());
                    this.below.push(Vec::new());
                    this.link(at, lane, shift);
                    lanes.push(lane);
                    (at, shift) = (lane, 0.0);
                }
                this.lanes.insert(*edge, lanes);
            }
            this.link(at, to, shift - end);
        }
        this
    }

    fn link(&mut self, upper: usize, lower: usize, shift: f64) {
        self.below[upper].push(Neighbour { at: lower, shift: -shift });
        self.above[lower].push(Neighbour { at: upper, shift });
    }

    /// One row for each rank, or several where it is too wide.
    pub(super) fn rows(&self, connected: &[bool], ranks: &[usize], limit: f64) -> Vec<ThreadedRow> {
        let mut by_rank: BTreeMap<usize, Vec<ThreadedRow>> = BTreeMap::new();
        let mut filled: BTreeMap<usize, f64> = BTreeMap::new();
        for at in (0..self.boxes).filter(|&at| connected[at]) {
            let rows = by_rank.entry(ranks[at]).or_default();
            let width = filled.entry(ranks[at]).or_insert(f64::INFINITY);
            if *width + self.widths[at] > limit {
                rows.push(ThreadedRow { members: Vec::new(), rank: ranks[at] });
                *width = 0.0;
            }
            *width += self.widths[at] + GAP;
            if let Some(row) = rows.last_mut() {
                row.members.push(at);
            }
        }
        for (lane, rank) in (self.boxes..).zip(&self.lane_ranks) {
            if let Some(row) = by_rank.get_mut(rank).and_then(|rows| rows.first_mut()) {
                row.members.push(lane);
            }
        }
        by_rank.into_values().flatten().collect()
    }

    /// Orders and moves the members of all rows towards their neighbours; returns their centres.
    pub(super) fn straighten(&self, rows: &[ThreadedRow]) -> Vec<f64> {
        let mut centres = vec![0.0; self.widths.len()];
        let mut rows: Vec<Vec<usize>> = rows.iter().map(|row| row.members.clone()).collect();
        for row in &rows {
            let start = vec![0.0; row.len()];
            self.spread(row, &start, &mut centres);
        }
        for round in 0..ROUNDS {
            let down = round % 2 == 0;
            let last = round + 2 >= ROUNDS;
            let order: Vec<usize> =
                if down { (0..rows.len()).collect() } else { (0..rows.len()).rev().collect() };
            for i in order {
                let mut wanted: Vec<(f64, usize)> =
                    rows[i].iter().map(|&at| (self.wanted(at, &centres, down, last), at)).collect();
                if !last {
                    wanted.sort_by(|a, b| a.0.total_cmp(&b.0));
                }
                rows[i] = wanted.iter().map(|&(_, at)| at).collect();
                let wanted: Vec<f64> = wanted.into_iter().map(|(x, _)| x).collect();
                self.spread(&rows[i], &wanted, &mut centres);
            }
        }
        centres
    }

    /// Where a member would like to be: in the middle of its neighbours.
    fn wanted(&self, at: usize, centres: &[f64], down: bool, both: bool) -> f64 {
        let (above, below) = (&self.above[at], &self.below[at]);
        let (above, below): (&[Neighbour], &[Neighbour]) = match (down, both) {
            (_, true) => (above, below),
            (true, _) => (above, &[]),
            (false, _) => (&[], below),
        };
        let mut sum = 0.0;
        let mut count = 0.0;
        for neighbour in above.iter().chain(below) {
            sum += centres[neighbour.at] + neighbour.shift;
            count += 1.0;
        }
        if count > 0.0 { sum / count } else { centres[at] }
    }

    /// Moves the members of a row to where they want to be, as far as their order and sizes allow.
    ///
    /// Pushed to the right and pushed to the left each keep all apart, so the middle of both does.
    fn spread(&self, row: &[usize], wanted: &[f64], centres: &mut [f64]) {
        let apart = |a: usize, b: usize| {
            let gap = if a >= self.boxes && b >= self.boxes { LANE } else { GAP };
            f64::midpoint(self.widths[a], self.widths[b]) + gap
        };
        let mut right = wanted.to_vec();
        for i in 1..row.len() {
            right[i] = right[i].max(right[i - 1] + apart(row[i - 1], row[i]));
        }
        let mut left = wanted.to_vec();
        for i in (1..row.len()).rev() {
            left[i - 1] = left[i - 1].min(left[i] - apart(row[i - 1], row[i]));
        }
        for (i, &at) in row.iter().enumerate() {
            centres[at] = f64::midpoint(left[i], right[i]);
        }
    }
}
