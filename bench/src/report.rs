//! Figures as people and programs read them.

use std::io::{self, Write};

use crate::measure::Figures;

/// Prints the figures of each case as soon as they are there.
#[derive(Debug)]
pub(crate) struct Report {
    json: bool,
    begun: bool,
}

impl Report {
    /// Starts a table, or lines of JSON.
    pub(crate) fn new(json: bool) -> Self {
        Self { json, begun: false }
    }

    /// Prints the figures of a case.
    pub(crate) fn add(&mut self, figures: &Figures) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.json {
            return writeln!(out, "{}", serde_json::to_string(figures)?);
        }
        if !std::mem::replace(&mut self.begun, true) {
            writeln!(out, "{}", row(["case", "n", "time", "at most", "floor", "ratio", "growth", "peak"]))?;
        }
        writeln!(out, "{}", line(figures))
    }
}

fn line(figures: &Figures) -> String {
    let at_most = figures.target.map_or_else(|| "–".to_owned(), seconds);
    let missed = figures.target.is_some_and(|target| figures.seconds > target);
    let row = row([
        &figures.case,
        &figures.n.to_string(),
        &seconds(figures.seconds),
        &at_most,
        &seconds(figures.floor_seconds),
        &format!("{:.2}", figures.ratio),
        &format!("{:.2}", figures.growth),
        &format!("{} MiB", figures.peak_rss_bytes >> 20),
    ]);
    if missed { format!("{row}  missed") } else { row }
}

fn row(cells: [&str; 8]) -> String {
    let [case, n, time, at_most, floor, ratio, growth, peak] = cells;
    format!("{case:<14}{n:>8}  {time:>10}  {at_most:>10}  {floor:>10}  {ratio:>8}  {growth:>6}  {peak:>8}")
}

/// Writes seconds the way a person reads them.
fn seconds(seconds: f64) -> String {
    if seconds >= 1.0 {
        format!("{seconds:.2} s")
    } else if seconds >= 0.01 {
        format!("{:.0} ms", seconds * 1e3)
    } else if seconds >= 1e-3 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{:.1} µs", seconds * 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(seconds: f64) -> Figures {
        Figures {
            bench: "engine",
            case: "create-all".into(),
            n: 300_000,
            seconds,
            floor_seconds: 0.05,
            ratio: seconds / 0.05,
            growth: 1.25,
            peak_rss_bytes: 300 << 20,
            target: Some(0.45),
        }
    }

    #[test]
    fn a_line_says_whether_the_figure_to_reach_was_missed() {
        let reached = line(&figures(0.4));
        assert!(reached.ends_with("300 MiB"), "{reached}");
        assert!(line(&figures(0.5)).ends_with("missed"));
    }

    #[test]
    fn times_are_written_for_people() {
        let written = [1.5, 0.42, 0.0013, 0.000_002].map(seconds);
        assert_eq!(written, ["1.50 s", "420 ms", "1.3 ms", "2.0 µs"]);
    }
}
