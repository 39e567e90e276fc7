//! The command on real files, beside plain loops that write and read the same files.
//!
//! ```text
//!  apply    `setpoint apply` of 10,000 files        beside writing them one after the other
//!  plan     a second `setpoint plan`                beside reading them one after the other
//!  repair   `setpoint watch` putting a file right   beside writing that file
//! ```

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use serde::Serialize;

/// How many files there are.
const FILES: u32 = 10_000;
/// How often each is measured; the best counts, as something else may use the machine.
const SAMPLES: usize = 3;
/// How often a plan is: it takes little time, and so is easily disturbed.
const PLANS: usize = 10;
/// How many files are changed one after the other; the median counts.
const REPAIRS: u32 = 21;
/// How long a repair may take before it counts as none.
const PATIENCE: Duration = Duration::from_secs(10);

/// One thing that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HostCase {
    /// Applies a manifest of files where nothing is there yet.
    Apply,
    /// Plans again; nothing has changed.
    Plan,
    /// Puts right a file that something else changed.
    Repair,
}

/// What is reported of a case.
#[derive(Debug, Serialize)]
struct Figures {
    bench: &'static str,
    case: &'static str,
    n: u32,
    seconds: f64,
    floor_seconds: f64,
    ratio: f64,
    #[serde(skip)]
    at_most: Limit,
}

/// What must be reached.
#[derive(Clone, Copy, Debug)]
enum Limit {
    /// So many times the floor.
    Ratio(f64),
    /// So long.
    Seconds(f64),
}

impl Limit {
    fn is_reached(self, figures: &Figures) -> bool {
        match self {
            Self::Ratio(ratio) => figures.ratio <= ratio,
            Self::Seconds(seconds) => figures.seconds <= seconds,
        }
    }
}

/// Measures the cases and prints a line for each.
pub(crate) fn run(cases: &[HostCase], json: bool, scale: f64) -> Result<()> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "floats saturate")]
    let n = ((f64::from(FILES) * scale).round() as u32).max(REPAIRS);
    for case in cases {
        let figures = match case {
            HostCase::Apply => apply(n)?,
            HostCase::Plan => plan(n)?,
            HostCase::Repair => repair(n)?,
        };
        if json {
            println!("{}", serde_json::to_string(&figures)?);
        } else {
            println!("{}", line(&figures));
        }
    }
    Ok(())
}

fn line(figures: &Figures) -> String {
    let Figures { case, n, seconds, floor_seconds, ratio, at_most, .. } = figures;
    let limit = match at_most {
        Limit::Ratio(ratio) => format!("{ratio} times the floor"),
        Limit::Seconds(seconds) => format!("{:.0} ms", seconds * 1e3),
    };
    let (ms, floor) = (seconds * 1e3, floor_seconds * 1e3);
    let missed = if at_most.is_reached(figures) { "" } else { "  missed" };
    format!(
        "{case:<8}{n:>7} files  {ms:>8.1} ms  floor {floor:>8.2} ms  ratio {ratio:>6.2}  at most {limit}{missed}"
    )
}

/// A directory with a manifest of many files.
struct Site {
    dir: tempfile::TempDir,
    n: u32,
}

impl Site {
    fn new(n: u32) -> Result<Self> {
        let site = Self { dir: tempfile::tempdir().context("can't make a temporary directory")?, n };
        let mut manifest = String::from("name: bench\ndirectories:\n");
        for directory in 0..site.directories() {
            writeln!(manifest, "  d{directory}:")?;
        }
        manifest.push_str("files:\n");
        for file in 0..n {
            writeln!(manifest, "  f{file}: {{path: {}, content: {:?}}}", Self::path(file), content(file))?;
        }
        fs::write(site.dir.path().join("bench.yaml"), manifest)?;
        Ok(site)
    }

    fn directories(&self) -> u32 {
        self.n.div_ceil(100)
    }

    fn path(file: u32) -> String {
        format!("d{}/f{file}", file / 100)
    }

    fn command(&self, args: &[&str]) -> Result<Command> {
        let this = std::env::current_exe().context("can't find this program")?;
        let setpoint = this.with_file_name("setpoint");
        ensure!(setpoint.exists(), "{} is not built; run `cargo xtask bench host`", setpoint.display());
        let mut command = Command::new(setpoint);
        command.args(args).current_dir(self.dir.path()).stdin(Stdio::null()).stdout(Stdio::null());
        Ok(command)
    }

    fn run(&self, args: &[&str]) -> Result<Duration> {
        let start = Instant::now();
        let status = self.command(args)?.status().context("can't run setpoint")?;
        let took = start.elapsed();
        ensure!(status.success(), "setpoint {args:?} failed");
        Ok(took)
    }

    fn whole(&self, file: u32) -> PathBuf {
        self.dir.path().join(Self::path(file))
    }
}

fn content(file: u32) -> String {
    format!("this is file {file}\n").repeat(10)
}

/// The plain loop that writes.
fn write_all(n: u32, dir: &Path) -> Result<Duration> {
    let contents: Vec<String> = (0..n).map(content).collect();
    let start = Instant::now();
    for directory in 0..n.div_ceil(100) {
        fs::create_dir(dir.join(format!("d{directory}")))?;
    }
    for (file, content) in (0..n).zip(&contents) {
        fs::write(dir.join(Site::path(file)), content)?;
    }
    Ok(start.elapsed())
}

/// The plain loop that reads.
fn read_all(dir: &Path, n: u32) -> Result<Duration> {
    let start = Instant::now();
    let mut bytes = 0;
    for file in 0..n {
        bytes += fs::read(dir.join(Site::path(file)))?.len();
    }
    let took = start.elapsed();
    ensure!(bytes > 0, "there was nothing to read");
    Ok(took)
}

fn best(mut measure: impl FnMut() -> Result<Duration>) -> Result<f64> {
    let mut best = Duration::MAX;
    for _ in 0..SAMPLES {
        best = best.min(measure()?);
    }
    Ok(best.as_secs_f64())
}

fn figures(case: &'static str, n: u32, seconds: f64, floor_seconds: f64, at_most: Limit) -> Figures {
    Figures { bench: "host", case, n, seconds, floor_seconds, ratio: seconds / floor_seconds, at_most }
}

fn apply(n: u32) -> Result<Figures> {
    // Nothing is deleted before all is measured: a file system may be slow to use again what was just freed.
    let (mut plain, mut sites) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        plain.push(tempfile::tempdir().context("can't make a temporary directory")?);
        sites.push(Site::new(n)?);
    }
    let (mut loops, mut commands) = (plain.iter(), sites.iter());
    let floor = best(|| write_all(n, loops.next().context("no directory is left")?.path()))?;
    let seconds = best(|| commands.next().context("no site is left")?.run(&["apply", "--yes"]))?;
    Ok(figures("apply", n, seconds, floor, Limit::Ratio(5.0)))
}

fn plan(n: u32) -> Result<Figures> {
    let site = Site::new(n)?;
    site.run(&["apply", "--yes"])?;
    // In turn, so that a noisy hour is noisy for both.
    let (mut floor, mut seconds) = (f64::MAX, f64::MAX);
    for _ in 0..PLANS {
        floor = floor.min(read_all(site.dir.path(), n)?.as_secs_f64());
        seconds = seconds.min(site.run(&["plan"])?.as_secs_f64());
    }
    Ok(figures("plan", n, seconds, floor, Limit::Ratio(2.0)))
}

/// A command that is ended with the measurement.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn repair(n: u32) -> Result<Figures> {
    let site = Site::new(n)?;
    site.run(&["apply", "--yes"])?;
    let _watch =
        Running(site.command(&["watch", "--interval", "1h"])?.spawn().context("can't run setpoint")?);
    // The first one also waits for it to have begun.
    repaired(&site, 0)?;
    let mut times = Vec::new();
    let mut floors = Vec::new();
    for file in 1..REPAIRS {
        times.push(repaired(&site, file)?);
        let start = Instant::now();
        fs::write(site.dir.path().join("beside"), content(file))?;
        floors.push(start.elapsed());
    }
    times.sort_unstable();
    floors.sort_unstable();
    let median = |times: &[Duration]| times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64);
    Ok(figures("repair", n, median(&times), median(&floors), Limit::Seconds(0.05)))
}

/// Changes a file as something else could, and waits until it is right again.
fn repaired(site: &Site, file: u32) -> Result<Duration> {
    let path = site.whole(file);
    fs::write(&path, "changed\n")?;
    let start = Instant::now();
    while fs::read(&path).is_ok_and(|found| found != content(file).as_bytes()) {
        if start.elapsed() > PATIENCE {
            bail!("{} was not put right within {} s", path.display(), PATIENCE.as_secs());
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    Ok(start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_whether_the_figure_to_reach_was_missed() {
        let reached = figures("apply", 10_000, 0.4, 0.1, Limit::Ratio(5.0));
        assert!(line(&reached).ends_with("at most 5 times the floor"), "{}", line(&reached));
        assert!(line(&figures("repair", 1, 0.06, 0.1, Limit::Seconds(0.05))).ends_with("50 ms  missed"));
    }

    #[test]
    fn the_loops_write_and_read_what_the_manifest_declares() {
        let plain = tempfile::tempdir().unwrap();
        assert!(write_all(150, plain.path()).unwrap() > Duration::ZERO);
        assert!(read_all(plain.path(), 150).unwrap() > Duration::ZERO);
        let site = Site::new(150).unwrap();
        assert!(read_all(site.dir.path(), 150).is_err(), "nothing is there yet");
        let manifest = fs::read_to_string(site.dir.path().join("bench.yaml")).unwrap();
        assert_eq!(manifest.matches("path: ").count(), 150);
    }
}
