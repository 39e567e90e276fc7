//! HAProxy configurations: parsing, modelling and comparing, beside a floor and beside HAProxy itself.
//!
//! ```text
//!  lossless-…   bytes to a document            ┐
//!  typed-…      bytes to the typed model       ├─ beside the same bytes split into lines and words, and `haproxy -c`
//!  compare-…    two texts to operations        │
//!  check-…      bytes to all that is wrong     ┘
//!  edit-…       one change of a document of 1 MB, whatever its shape
//!  edits-50k    a change in each of 50,000 backends
//! ```

mod case;
mod sample;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;
use setpoint_testutils::manifest::{MANIFEST_FILE, MANIFEST_VARIABLE, Manifest, PartState};

pub(crate) use case::HaproxyCase;
use case::Limit;
pub(crate) use sample::{Sample, sample};

/// How many samples are taken; the best counts.
const SAMPLES: usize = 3;
/// Four times as much takes at most so many times as long as four times a quarter does: what is quadratic takes four.
const MOST_GROWTH: f64 = 2.0;

/// What is reported of a case.
#[derive(Debug, Serialize)]
struct Figures {
    bench: &'static str,
    case: String,
    n: u32,
    bytes: u64,
    seconds: f64,
    floor_seconds: f64,
    ratio: f64,
    growth: f64,
    peak_rss_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    haproxy_seconds: Option<f64>,
    missed: bool,
}

/// Measures the cases and prints a line for each.
pub(crate) fn run(cases: &[HaproxyCase], json: bool, scale: f64) -> Result<()> {
    let mut begun = false;
    let mut missed = Vec::new();
    for &case in cases {
        let figures = figures(case, scale)?;
        missed.extend(figures.missed.then(|| case.name()));
        if json {
            println!("{}", serde_json::to_string(&figures)?);
            continue;
        }
        if !std::mem::replace(&mut begun, true) {
            println!(
                "{}",
                row(["case", "n", "bytes", "time", "MB/s", "floor", "ratio", "growth", "peak", "haproxy -c"])
            );
        }
        println!("{}", line(&figures));
    }
    ensure!(missed.is_empty(), "missed: {}", missed.join(", "));
    Ok(())
}

fn figures(case: HaproxyCase, scale: f64) -> Result<Figures> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "floats saturate")]
    let n = ((f64::from(case.shape().0) * scale).round() as u32).max(8);
    let (whole, quarter) = (best(case, n)?, best(case, n / 4)?);
    #[expect(clippy::cast_precision_loss, reason = "sizes of files are exact")]
    let speed = whole.bytes as f64 / whole.seconds;
    let haproxy_seconds = if case.is_for_haproxy() { haproxy_seconds(&case.text(n))? } else { None };
    let reached = match case.limit() {
        Limit::Haproxy => haproxy_seconds.is_none_or(|most| whole.seconds <= most),
        Limit::Speed(least) => speed >= least,
        Limit::Seconds(most) => whole.seconds <= most,
        Limit::None => true,
    };
    let growth = whole.seconds / (4.0 * quarter.seconds);
    let small = case.memory().is_none_or(|most| whole.peak_rss_bytes <= most);
    Ok(Figures {
        bench: "haproxy",
        case: case.name(),
        n,
        bytes: whole.bytes,
        seconds: whole.seconds,
        floor_seconds: whole.floor_seconds,
        ratio: whole.seconds / whole.floor_seconds,
        growth,
        peak_rss_bytes: whole.peak_rss_bytes,
        haproxy_seconds,
        missed: !(reached && small && growth <= MOST_GROWTH),
    })
}

fn line(figures: &Figures) -> String {
    #[expect(clippy::cast_precision_loss, reason = "sizes of files are exact")]
    let speed = figures.bytes as f64 / figures.seconds / 1e6;
    let ms = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
    let row = row([
        &figures.case,
        &figures.n.to_string(),
        &figures.bytes.to_string(),
        &ms(figures.seconds),
        &format!("{speed:.0}"),
        &ms(figures.floor_seconds),
        &format!("{:.2}", figures.ratio),
        &format!("{:.2}", figures.growth),
        &format!("{:.1} MB", bytes_as_megabytes(figures.peak_rss_bytes)),
        &figures.haproxy_seconds.map_or_else(|| "–".to_owned(), ms),
    ]);
    if figures.missed { format!("{row}  missed") } else { row }
}

#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
fn bytes_as_megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn row(cells: [&str; 10]) -> String {
    let [case, n, bytes, time, speed, floor, ratio, growth, peak, haproxy] = cells;
    format!(
        "{case:<16}{n:>7}  {bytes:>9}  {time:>10}  {speed:>6}  {floor:>10}  {ratio:>6}  {growth:>6}  {peak:>9}  {haproxy:>12}"
    )
}

/// The best of a few samples, each of a process of its own.
fn best(case: HaproxyCase, n: u32) -> Result<Sample> {
    let this = std::env::current_exe().context("can't find this program to run it again")?;
    let (name, n) = (case.name(), n.to_string());
    let mut best: Option<Sample> = None;
    for _ in 0..SAMPLES {
        let output = Command::new(&this)
            .args(["--haproxy-case", &name, "--n", &n])
            .output()
            .context("can't run this program again")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{name} with {n} backends failed: {}", errors.trim());
        let sample: Sample =
            serde_json::from_slice(&output.stdout).with_context(|| format!("{name} printed no sample"))?;
        best = Some(best.map_or(sample, |best| Sample {
            bytes: sample.bytes,
            seconds: best.seconds.min(sample.seconds),
            floor_seconds: best.floor_seconds.min(sample.floor_seconds),
            peak_rss_bytes: best.peak_rss_bytes.min(sample.peak_rss_bytes),
        }));
    }
    best.context("no sample was taken")
}

/// How long `haproxy -c` takes on a text, where there is a HAProxy.
fn haproxy_seconds(text: &str) -> Result<Option<f64>> {
    let Some(program) = haproxy() else { return Ok(None) };
    let folder = tempfile::tempdir().context("can't make a temporary directory")?;
    let file = folder.path().join("haproxy.cfg");
    std::fs::write(&file, text)?;
    let mut best = Duration::MAX;
    for _ in 0..SAMPLES {
        let start = Instant::now();
        let output =
            Command::new(&program).arg("-c").arg("-f").arg(&file).output().context("can't run haproxy")?;
        best = best.min(start.elapsed());
        let errors = String::from_utf8_lossy(&output.stderr);
        // Without a frontend it would not start, and says so.
        ensure!(
            output.status.success() || errors.contains("no listener") || output.status.code() == Some(2),
            "{errors}"
        );
    }
    Ok(Some(best.as_secs_f64()))
}

/// The newest HAProxy among the parts.
pub(crate) fn haproxy() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let file = variable(MANIFEST_VARIABLE)
        .or_else(|| variable("SETPOINT_PARTS_DIR").map(|folder| folder.join(MANIFEST_FILE)))
        .or_else(|| {
            let cache =
                variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))?;
            Some(cache.join("setpoint").join("parts").join(MANIFEST_FILE))
        })?;
    let manifest = Manifest::read(&file).ok()?;
    let mut found: Vec<_> = manifest
        .parts
        .iter()
        .filter(|part| part.state == PartState::Ready && part.name.starts_with("haproxy-"))
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let program = found.last()?.path.as_ref()?.join("bin/haproxy");
    program.exists().then_some(program)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use setpoint_haproxy::model::{Context, model};
    use setpoint_haproxy::text::Document;

    use super::case::configuration;
    use super::*;

    #[test]
    fn every_case_gives_a_sample() {
        for case in HaproxyCase::value_variants() {
            let sample = sample(*case, 8).unwrap();
            assert!(
                sample.bytes > 0 && sample.seconds > 0.0 && sample.floor_seconds > 0.0,
                "{case:?}: {sample:?}"
            );
        }
    }

    #[test]
    fn what_is_measured_is_modelled_whole() {
        for mixed in [false, true] {
            let document = Document::parse(configuration(20, mixed).as_bytes());
            assert_eq!(document.diagnostics(), []);
            let unmodelled: Vec<_> = model(&document, &Context::default())
                .sections
                .iter()
                .filter(|section| !section.unmodelled.is_empty() || section.text_only.is_some())
                .map(|section| (section.name.clone(), section.unmodelled.clone()))
                .collect();
            assert_eq!(unmodelled, []);
        }
    }
}
