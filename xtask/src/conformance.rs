//! `cargo xtask conformance haproxy`: holds the model to recordings of the original Dataplane API.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use flate2::read::GzDecoder;
use setpoint_haproxy::conformance::{Count, Difference, REASONS, Report};
use setpoint_haproxy::model::Version;

use crate::workspace;

/// Arguments of `cargo xtask conformance`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What is held to its recordings.
    #[arg(value_enum)]
    subject: Subject,
    /// The folder of the recordings; those committed with the tests if it is not given.
    #[arg(long, value_name = "DIR")]
    recordings: Option<PathBuf>,
    /// One object a line, for other programs.
    #[arg(long)]
    json: bool,
    /// Shows each disagreement.
    #[arg(long)]
    show: bool,
    /// Shows each difference that is there for a reason, by the reason's name.
    #[arg(long, value_name = "NAME")]
    reason: Option<String>,
}

/// What there are recordings of.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Subject {
    /// HAProxy configuration, against the Dataplane API 3.0 to 3.4.
    Haproxy,
}

/// Replays the recordings; a disagreement without a reason is a failure.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let Subject::Haproxy = args.subject;
    let folder = match &args.recordings {
        Some(folder) => folder.clone(),
        None => workspace::root().join("crates/setpoint-haproxy/tests/data/recordings"),
    };
    let mut report = Report::default();
    let mut found = 0;
    for version in Version::ALL {
        let model = recording(&folder, version, "model")?;
        let text = recording(&folder, version, "text")?;
        found += usize::from(model.is_some()) + usize::from(text.is_some());
        let replayed = report.replay(version, &model.unwrap_or_default(), &text.unwrap_or_default());
        replayed.with_context(|| format!("the recordings of {version} in {}", folder.display()))?;
    }
    if found == 0 {
        bail!("no recordings in {}", folder.display());
    }
    if args.show {
        for difference in &report.differences {
            show(difference);
        }
    }
    if let Some(reason) = &args.reason {
        report.reasoned.get(reason.as_str()).into_iter().flatten().for_each(show);
    }
    if args.json {
        print_json(&report);
    } else {
        print_table(&report);
    }
    Ok(if report.differences.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads a recording, compressed or not; `None` if there is none.
fn recording(folder: &Path, version: Version, kind: &str) -> Result<Option<String>> {
    let plain = folder.join(format!("{version}.{kind}.jsonl"));
    let compressed = folder.join(format!("{version}.{kind}.jsonl.gz"));
    let mut text = String::new();
    if plain.exists() {
        File::open(&plain)
            .and_then(|mut file| file.read_to_string(&mut text))
            .with_context(|| plain.display().to_string())?;
    } else if compressed.exists() {
        let file = File::open(&compressed).with_context(|| compressed.display().to_string())?;
        GzDecoder::new(file).read_to_string(&mut text).with_context(|| compressed.display().to_string())?;
    } else {
        return Ok(None);
    }
    Ok(Some(text))
}

fn print_json(report: &Report) {
    for ((kind, version, section), count) in &report.counts {
        let line = serde_json::json!({
            "conformance": "haproxy",
            "kind": kind.to_string(),
            "version": version.as_str(),
            "section": section,
            "cases": count.cases,
            "agree": count.agree,
            "reasoned": count.reasoned,
        });
        println!("{line}");
    }
}

fn print_table(report: &Report) {
    println!(
        "{:<6} {:<8} {:<22} {:>7} {:>7} {:>9} {:>8}",
        "kind", "version", "section", "cases", "agree", "reasoned", "differ"
    );
    let row = |kind: &str, version: &str, section: &str, count: &Count| {
        let differ = count.cases - count.agree - count.reasoned;
        println!(
            "{kind:<6} {version:<8} {section:<22} {:>7} {:>7} {:>9} {differ:>8}",
            count.cases, count.agree, count.reasoned
        );
    };
    for ((kind, version, section), count) in &report.counts {
        row(&kind.to_string(), version.as_str(), section, count);
    }
    row("all", "", "", &report.total());
    println!();
    for reason in REASONS {
        let count = report.reasoned.get(reason.name).map_or(0, Vec::len);
        println!("{count:>6}  {}: {}", reason.name, reason.why);
    }
}

/// Shows what differs in one case.
fn show(difference: &Difference) {
    println!("{} {} {}", difference.kind, difference.version, difference.case);
    if let Some((theirs, ours)) = &difference.text {
        println!("  sent        {}", difference.sent);
        println!("  text        {theirs:?}");
        match ours {
            Ok(ours) => println!("  ours        {ours:?}"),
            Err(error) => println!("  ours        refused: {error}"),
        }
    }
    if let Some((theirs, ours)) = &difference.read {
        println!("  from        {:?}", difference.recorded);
        println!("  read        {theirs}");
        println!("  ours        {ours}");
    }
    println!();
}
