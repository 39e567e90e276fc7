//! `cargo xtask test [NAME…]`: everything that has to hold before a change lands.
//!
//! ```text
//! names ──▶ selection ──┬─▶ format, clippy, documentation, build ─┬─▶ tests ──▶ tally ──▶ closing line
//!                       └─▶ parts, made meanwhile ────────────────┘     └─▶ skips ─┘
//! ```
//!
//! A failing step does not stop the next one: a person sees all that is wrong in one run. The last line is
//! always `N passed, N failed, N skipped`. Tests count as what they are; a failed step in which no test failed
//! (a format difference, a compile error, an aborted test binary) counts as one failure. A test whose part can't
//! be had says so in a file and counts as skipped; where parts are required (`--require-parts`, or `CI` in the
//! environment), as failed, unless the part is optional. A test binary that hangs is ended after a while, and what it
//! had not finished counts as failed.

pub(crate) mod limited;
mod selection;
mod step;
mod tally;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use setpoint_testutils::manifest::{MANIFEST_VARIABLE, Manifest, PartState, PartStatus};
use setpoint_testutils::skips::{SKIPS_VARIABLE, Skip};

use crate::parts::{self, Effort, Table};
use crate::{console, workspace};
use limited::Runner;
use selection::Selection;
use step::Kind;
use tally::Tally;

/// Arguments of `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Crates (`engine` is `setpoint-engine`) or groups of tests (`haproxy`) to run; everything if none is named.
    names: Vec<String>,
    /// Counts a test that is skipped for want of a part as failed; so does `CI` in the environment.
    #[arg(long)]
    require_parts: bool,
    /// Ends a test binary that runs longer than so many minutes; what it had not finished counts as failed.
    #[arg(long, value_name = "MINUTES", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=1440))]
    test_timeout: u64,
    #[command(flatten)]
    folder: parts::Folder,
}

/// Runs the steps and prints the closing line.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let started = Instant::now();
    // Before anything is built: where this program is is not to be found out when it has been replaced.
    let runner = Runner::new(Duration::from_mins(args.test_timeout))?;
    let required = args.require_parts || std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    let table = Table::load()?;
    let packages = workspace::packages()?;
    let selection = Selection::parse(&args.names, &packages, &table.groups())?;
    let scratch = tempfile::tempdir().context("can't make a temporary folder")?;
    let (manifest_file, skips_file) = (scratch.path().join("parts"), scratch.path().join("skips"));

    let mut parts = Some(make_parts(table, args.folder.clone(), selection.parts(&packages)));
    let mut tally = Tally::default();
    let mut failed_steps = Vec::new();
    let mut built = true;
    for mut step in step::steps(&selection, &runner) {
        if step.kind == Kind::Tests {
            if !std::mem::replace(&mut built, true) {
                println!("{}: not run, for they do not build", step.name);
                continue;
            }
            if let Some(parts) = parts.take()
                && let Err(error) = await_parts(parts, &manifest_file)
            {
                eprintln!("error: {error:#}");
                tally.failed += 1;
                failed_steps.push("parts".to_owned());
            }
            step.environment(MANIFEST_VARIABLE, &manifest_file);
            step.environment(SKIPS_VARIABLE, &skips_file);
        }
        let outcome = step.run()?;
        tally.add(&outcome.tally);
        built = outcome.succeeded || step.kind != Kind::Builds;
        if !outcome.succeeded {
            failed_steps.push(step.name);
        }
    }
    if let Some(parts) = parts {
        // No test was run: do not leave builds behind that nobody waits for.
        parts::cancel();
        let _ = parts.join();
    }
    let skips = Skip::read_all(&skips_file).context("can't read which tests were skipped")?;
    tally.skip(&skips, required);

    console::heading(format_args!("summary ({})", console::human(started.elapsed())));
    for skip in &skips {
        println!("skipped: {}: {}", skip.test, skip.reason.replace('\n', "\n  "));
    }
    for failure in failed_steps.iter().chain(&tally.failures) {
        println!("failed: {failure}");
    }
    println!("{tally}");
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes the parts aside, while other steps run.
fn make_parts(
    table: Table,
    folder: parts::Folder,
    names: Option<Vec<String>>,
) -> JoinHandle<Result<(Manifest, BTreeSet<String>)>> {
    std::thread::spawn(move || {
        let names = names.unwrap_or_else(|| table.parts.iter().map(|part| part.name.clone()).collect());
        let known = |name: &String| table.has(name);
        // A group of tests need not have parts, nor need anything be wanted at all.
        let names: Vec<_> = names.into_iter().filter(known).collect();
        let chosen = if names.is_empty() { BTreeSet::new() } else { parts::choose(&table, &names)? };
        Ok((parts::obtain(&table, &folder, &chosen, Effort::Make)?, chosen))
    })
}

/// Waits for the parts and writes down for the tests which there are.
fn await_parts(parts: JoinHandle<Result<(Manifest, BTreeSet<String>)>>, file: &Path) -> Result<()> {
    console::heading("parts");
    let started = Instant::now();
    let (manifest, chosen) = parts.join().map_err(|_| anyhow!("making the parts panicked"))??;
    std::fs::write(file, manifest.to_json_lines()?).context("can't write the manifest of parts")?;
    let wanting = |part: &&PartStatus| chosen.contains(&part.name) && part.state != PartState::Ready;
    for part in manifest.parts.iter().filter(wanting) {
        println!("not here: {}: {}", part.name, part.why.as_deref().unwrap_or("unknown"));
    }
    println!("{}", parts::found_summary(&manifest));
    println!("parts: waited for {}", console::human(started.elapsed()));
    Ok(())
}
