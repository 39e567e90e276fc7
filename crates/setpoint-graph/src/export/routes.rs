//! Where edges pass the rows of a level: upright, in the space that the boxes of the row leave free.

use super::layers::{GAP, Pass, Placed, Port, Ranking};

/// How far an edge stays away from boxes.
pub(super) const DISTANCE: f64 = 6.0;
/// How far edges are apart, if there is room.
const APART: f64 = 8.0;
/// With more lanes than this in one level, the longest passes go around all rows.
const MOST_LANES: usize = 20_000;
/// The most room beside all boxes.
const WIDEST_SIDE: f64 = 400.0;

/// An upright part of an edge, from the top left corner of its level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane {
    pub(super) x: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

/// Passes that are to be led through rows of boxes.
pub(super) struct Routes<'a> {
    pub(super) sizes: &'a [(f64, f64)],
    pub(super) passes: &'a [Pass],
    pub(super) placed: &'a Placed,
}

/// A pass that wants to be at a place in a row.
struct Wish {
    x: f64,
    pass: usize,
}

impl Routes<'_> {
    /// The lanes of every pass, one for each row that it goes through.
    ///
    /// `thread` is where a rank has room for a pass. Lanes may be left and right of all boxes.
    pub(super) fn lanes(
        &self,
        ranking: &Ranking,
        thread: impl Fn(&Pass, usize) -> Option<f64>,
    ) -> Vec<Vec<Lane>> {
        let mut lanes: Vec<Vec<Lane>> = vec![Vec::new(); self.passes.len()];
        self.bypass(&mut lanes);
        let mut wishes: Vec<Vec<Wish>> = Vec::new();
        wishes.resize_with(self.placed.rows.len(), Vec::new);
        for (number, pass) in self.passes.iter().enumerate() {
            if !lanes[number].is_empty() {
                continue;
            }
            let at = |port: Port| self.placed.corners[port.of].0 + port.x;
            for i in self.placed.passed(pass) {
                let rank = self.placed.rows[i].rank;
                let x = match (pass.upper, pass.lower) {
                    (Some(_), Some(lower)) if rank == Some(ranking.rank(lower.of)) => at(lower),
                    (Some(upper), _) => rank.and_then(|rank| thread(pass, rank)).unwrap_or_else(|| at(upper)),
                    (None, lower) => lower.map_or(0.0, at),
                };
                wishes[i].push(Wish { x, pass: number });
            }
        }
        for (row, wishes) in self.placed.rows.iter().zip(wishes) {
            for (x, pass) in self.grant(&row.boxes, wishes) {
                lanes[pass].push(Lane { x, top: row.top, bottom: row.bottom });
            }
        }
        lanes
    }

    /// Leads the longest passes around all rows if there are too many lanes.
    fn bypass(&self, lanes: &mut [Vec<Lane>]) {
        let length = |&number: &usize| self.placed.passed(&self.passes[number]).len();
        let mut order: Vec<usize> = (0..self.passes.len()).collect();
        order.sort_by_key(length);
        let mut sum = 0;
        let few = order.iter().take_while(|&number| {
            sum += length(number);
            sum <= MOST_LANES
        });
        let long = order.split_off(few.count());
        let mut x = self.placed.width;
        let mut apart = GAP;
        for &number in &long {
            let rows = &self.placed.rows[self.placed.passed(&self.passes[number])];
            if let [first, ..] = rows {
                x += apart;
                #[expect(clippy::cast_precision_loss, reason = "fewer than 2^52")]
                let share = WIDEST_SIDE / long.len() as f64;
                apart = APART.min(share);
                let bottom = rows.last().map_or(first.bottom, |last| last.bottom);
                lanes[number].push(Lane { x, top: first.top, bottom });
            }
        }
    }

    /// Gives each pass of a row a place between its boxes, near to where it wants to be.
    fn grant(&self, boxes: &[usize], wishes: Vec<Wish>) -> Vec<(f64, usize)> {
        let left = |at: usize| self.placed.corners[at].0;
        // The space before each box, and after the last.
        let space = |i: usize| {
            let start = i.checked_sub(1).map_or(-WIDEST_SIDE, |i| left(boxes[i]) + self.sizes[boxes[i]].0);
            let end = boxes.get(i).map_or(self.placed.width + WIDEST_SIDE, |&at| left(at));
            (start + DISTANCE, end - DISTANCE)
        };
        let mut by_space: Vec<(usize, Wish)> = wishes
            .into_iter()
            .map(|wish| {
                let i = boxes.partition_point(|&at| left(at) < wish.x);
                let distance = |i: usize| {
                    let (start, end) = space(i);
                    (start - wish.x).max(wish.x - end).max(0.0)
                };
                let nearest = if i > 0 && distance(i - 1) < distance(i) { i - 1 } else { i };
                (nearest, wish)
            })
            .collect();
        by_space.sort_by(|(i, a), (k, b)| i.cmp(k).then(a.x.total_cmp(&b.x)));
        let mut granted = Vec::with_capacity(by_space.len());
        for same in by_space.chunk_by(|(i, _), (k, _)| i == k) {
            let wanted: Vec<f64> = same.iter().map(|(_, wish)| wish.x).collect();
            let places = keep_apart(&wanted, space(same[0].0));
            granted.extend(places.into_iter().zip(same).map(|(x, (_, wish))| (x, wish.pass)));
        }
        granted
    }
}

/// Places for lanes in a space, near to where they are wanted, in the same order, and all as far apart as is possible.
fn keep_apart(wanted: &[f64], (start, end): (f64, f64)) -> Vec<f64> {
    let others = wanted.len().saturating_sub(1);
    #[expect(clippy::cast_precision_loss, reason = "fewer than 2^52")]
    let number = |count: usize| count as f64;
    let apart = APART.min((end - start) / number(others.max(1)));
    let mut right: Vec<f64> = (wanted.iter().enumerate())
        .map(|(i, &x)| x.min(end - number(others - i) * apart).max(start + number(i) * apart))
        .collect();
    let mut left = right.clone();
    for i in 0..others {
        right[i + 1] = right[i + 1].max(right[i] + apart);
    }
    for i in (0..others).rev() {
        left[i] = left[i].min(left[i + 1] - apart);
    }
    // Both keep all apart, so the middle of both does.
    left.into_iter().zip(right).map(|(a, b)| (f64::midpoint(a, b) * 10.0).round() / 10.0).collect()
}
