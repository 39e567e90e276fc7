//! From single samples, each taken in a process of its own, to the figures of a case.

use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::case::{Case, Size};
use crate::part::parts;
use crate::{engine, floor};

/// How many samples are taken; the best counts.
const SAMPLES: usize = 3;

/// What one process measured.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    seconds: f64,
    floor_seconds: f64,
    peak_rss_bytes: u64,
}

/// What is reported of a case at one size.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    /// The set of cases.
    pub(crate) bench: &'static str,
    /// The case.
    pub(crate) case: String,
    /// The number of items.
    pub(crate) n: u32,
    /// How long it took.
    pub(crate) seconds: f64,
    /// How long the floor took.
    pub(crate) floor_seconds: f64,
    /// How many times the floor it took.
    pub(crate) ratio: f64,
    /// How many times as long an item took as at a quarter of the size: 1 is linear.
    pub(crate) growth: f64,
    /// The most memory that was in use until the floor ran.
    pub(crate) peak_rss_bytes: u64,
    /// The seconds that it may take at most; none at any other size than the one it was set for.
    #[serde(skip)]
    pub(crate) target: Option<f64>,
}

/// Measures a case in this process.
pub(crate) fn sample(case: Case, n: u32) -> Result<Sample> {
    let parts = parts(case, n);
    let seconds = engine::time(case, &parts)?.as_secs_f64();
    let peak_rss_bytes = peak_rss_bytes()?;
    let floor_seconds = floor::time(case, &parts)?.as_secs_f64();
    Ok(Sample { seconds, floor_seconds, peak_rss_bytes })
}

/// Measures a case at a size and at a quarter of it.
pub(crate) fn figures(case: Case, size: Size, scale: f64) -> Result<Figures> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "floats saturate")]
    let n = ((f64::from(size.n) * scale).round() as u32).max(8);
    let (whole, quarter) = (best(case, n)?, best(case, n / 4)?);
    Ok(Figures {
        bench: "engine",
        case: case.name(),
        n,
        seconds: whole.seconds,
        floor_seconds: whole.floor_seconds,
        ratio: whole.seconds / whole.floor_seconds,
        growth: whole.seconds / (4.0 * quarter.seconds),
        peak_rss_bytes: whole.peak_rss_bytes,
        target: size.target.filter(|_| n == size.n),
    })
}

/// The best of a few samples, each of a process of its own.
fn best(case: Case, n: u32) -> Result<Sample> {
    let mut best: Option<Sample> = None;
    for _ in 0..SAMPLES {
        let sample = sample_apart(case, n)?;
        best = Some(best.map_or(sample, |best| Sample {
            seconds: best.seconds.min(sample.seconds),
            floor_seconds: best.floor_seconds.min(sample.floor_seconds),
            peak_rss_bytes: best.peak_rss_bytes.min(sample.peak_rss_bytes),
        }));
    }
    best.context("no sample was taken")
}

fn sample_apart(case: Case, n: u32) -> Result<Sample> {
    let this = std::env::current_exe().context("can't find this program to run it again")?;
    let (name, n) = (case.name(), n.to_string());
    let output = Command::new(this)
        .args(["--case", &name, "--n", &n])
        .output()
        .context("can't run this program again")?;
    ensure!(
        output.status.success(),
        "{name} with {n} items failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    serde_json::from_slice(&output.stdout).with_context(|| format!("{name} printed no sample"))
}

/// The most memory this process has had in use so far.
pub(crate) fn peak_rss_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("can't read /proc/self/status")?;
    parse_peak(&status)
}

fn parse_peak(status: &str) -> Result<u64> {
    let Some(line) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) else {
        bail!("/proc/self/status has no VmHWM");
    };
    let kibibytes = line.trim().trim_end_matches("kB").trim();
    Ok(kibibytes.parse::<u64>().with_context(|| format!("VmHWM is {kibibytes:?}"))? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_from_the_kernels_words() {
        assert_eq!(parse_peak("Name:\tx\nVmHWM:\t    1234 kB\nVmRSS:\t 5 kB\n").unwrap(), 1234 * 1024);
        assert!(parse_peak("Name:\tx\n").is_err());
    }

    #[test]
    fn a_sample_has_seconds_a_floor_and_a_peak() {
        let sample = sample(Case::CreateAll, 1000).unwrap();
        assert!(
            sample.seconds > 0.0 && sample.floor_seconds > 0.0 && sample.peak_rss_bytes > 0,
            "{sample:?}"
        );
    }
}
