//! `cargo xtask mutants haproxy`: changes rows of the table at random, and looks whether a test notices.
//!
//! ```text
//! rows/*.txt ──▶ every change of one row ──sample──▶ a folder with the changed file ──▶ tests ──▶ noticed by, or survived
//! ```
//!
//! The tests are built once, with a table that takes its rows from a folder; for each mutant they are run until one fails.
//! A mutant that survives is a row, or a part of one, that no test would miss: either it says nothing, or a test is missing.

mod mutate;

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};

use crate::test::build;
use crate::workspace;
use mutate::{Mutant, mutants};

/// The folder that changed files are taken from.
const ROWS_VARIABLE: &str = "SETPOINT_ROWS";

/// The package whose table is changed.
const PACKAGE: &str = "setpoint-haproxy";

/// The tests that notice most: they are run before all others, and none of them asks HAProxy.
const FIRST: [&str; 8] = [
    "conformance::",
    "schema::",
    "model::",
    "compare::",
    "differences::",
    "attributes::",
    "values::",
    "repetition::of_every",
];

/// Arguments of `cargo xtask mutants`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Whose rows are changed.
    #[arg(value_enum, default_value = "haproxy")]
    name: Table,
    /// How many changes are tried.
    #[arg(long, value_name = "N", default_value_t = 160)]
    count: usize,
    /// The seed of the choice.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Only changes of the file of this name, such as `servers.txt`.
    #[arg(long, value_name = "NAME")]
    file: Option<String>,
    /// How many are tried at once.
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs: usize,
    /// One object a line, for other programs.
    #[arg(long)]
    json: bool,
}

/// The tables that can be changed.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Table {
    /// The directives of HAProxy.
    Haproxy,
}

/// One change of one file.
#[derive(Debug)]
struct Candidate<'f> {
    file: &'f str,
    text: &'f str,
    mutant: Mutant,
}

/// Tries the changes; one that survives is a failure.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let Table::Haproxy = args.name;
    let folder = workspace::root().join("crates").join(PACKAGE).join("src/table/rows");
    let files = read_rows(&folder, args.file.as_deref())?;
    let mut candidates: Vec<Candidate<'_>> = files
        .iter()
        .flat_map(|(file, text)| {
            mutants(text).into_iter().map(move |mutant| Candidate { file, text, mutant })
        })
        .collect();
    let all = candidates.len();
    shuffle(&mut candidates, args.seed);
    candidates.truncate(args.count);
    let tests = build_tests()?;
    if let Some(test) = first_failure(&tests, None)? {
        anyhow::bail!("{test} fails without any change: nothing can be said of changes");
    }
    let next = AtomicUsize::new(0);
    let outcome = Mutex::new((0_usize, Vec::new()));
    std::thread::scope(|scope| -> Result<()> {
        let try_all = || -> Result<()> {
            while let Some(candidate) = candidates.get(next.fetch_add(1, Ordering::Relaxed)) {
                let noticed = try_one(&tests, candidate)?;
                show(candidate, noticed.as_deref(), args.json);
                let mut outcome = outcome.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                match noticed {
                    Some(_) => outcome.0 += 1,
                    None => outcome.1.push(describe(candidate)),
                }
            }
            Ok(())
        };
        let workers: Vec<_> = (0..args.jobs.max(1)).map(|_| scope.spawn(try_all)).collect();
        for worker in workers {
            worker.join().map_err(|_| anyhow::anyhow!("trying a change panicked"))??;
        }
        Ok(())
    })?;
    let (noticed, survived) = outcome.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    if args.json {
        let total = serde_json::json!({
            "mutants": "haproxy", "seed": args.seed, "possible": all, "tried": noticed + survived.len(),
            "noticed": noticed, "survived": survived.len(),
        });
        println!("{total}");
    } else {
        for survivor in &survived {
            println!("survived: {survivor}");
        }
        println!("{noticed} noticed, {} survived, of {all} possible changes", survived.len());
    }
    Ok(if survived.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reads the files of rows, by name.
fn read_rows(folder: &Path, only: Option<&str>) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("can't read {}", folder.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if only.is_none_or(|only| only == name) {
            let text = std::fs::read_to_string(folder.join(&name))?;
            files.push((name, text));
        }
    }
    files.sort();
    ensure!(!files.is_empty(), "{} has no file of this name", folder.display());
    Ok(files)
}

/// Puts the candidates into an order that the seed alone decides.
fn shuffle(candidates: &mut [Candidate<'_>], seed: u64) {
    let mut state = seed;
    for last in (1..candidates.len()).rev() {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let other = (mixed >> 11) % (last as u64 + 1);
        candidates.swap(last, usize::try_from(other).unwrap_or_default());
    }
}

/// Builds the tests with a table that takes its rows from a folder.
fn build_tests() -> Result<Vec<build::Binary>> {
    let mut cargo = workspace::cargo();
    cargo.args(["test", "--no-run", "--package", PACKAGE, "--features", "mutants"]);
    let built = build::run(&mut cargo)?;
    ensure!(built.succeeded && !built.binaries.is_empty(), "the tests of {PACKAGE} can't be built");
    let mut binaries = built.binaries;
    // Those of the library itself are done in a moment.
    binaries.sort_by_key(|binary| !binary.target.starts_with("lib"));
    Ok(binaries)
}

/// Runs the tests on a changed table, and returns the test that notices.
fn try_one(tests: &[build::Binary], candidate: &Candidate<'_>) -> Result<Option<String>> {
    let folder = tempfile::tempdir().context("can't make a temporary folder")?;
    std::fs::write(folder.path().join(candidate.file), candidate.mutant.apply(candidate.text))?;
    first_failure(tests, Some(folder.path()))
}

/// Runs the tests until one fails, and returns its name.
fn first_failure(tests: &[build::Binary], rows: Option<&Path>) -> Result<Option<String>> {
    let skipped: Vec<&str> = FIRST.into_iter().flat_map(|name| ["--skip", name]).collect();
    for selection in [FIRST.as_slice(), &skipped] {
        for binary in tests {
            if let Some(test) = first_failure_of(binary, selection, rows)? {
                return Ok(Some(test));
            }
        }
    }
    Ok(None)
}

fn first_failure_of(
    binary: &build::Binary,
    selection: &[&str],
    rows: Option<&Path>,
) -> Result<Option<String>> {
    let mut command = Command::new(&binary.path);
    command.args(selection);
    command.current_dir(&binary.folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.env("CARGO_MANIFEST_DIR", &binary.folder).process_group(0);
    match rows {
        Some(rows) => command.env(ROWS_VARIABLE, rows),
        None => command.env_remove(ROWS_VARIABLE),
    };
    let mut child = command.spawn().with_context(|| format!("can't start {}", binary.path.display()))?;
    let mut failed = None;
    for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines) {
        let line = line.context("lost what a test says")?;
        let name = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"));
        if let Some(name) = name {
            failed = Some(name.to_owned());
            let _ = child.kill();
            break;
        }
    }
    let status = child.wait().context("lost a test")?;
    // A table that can't be used at all aborts before any test is named.
    let aborted = || (!status.success()).then(|| format!("{}: {status}", binary.target));
    Ok(failed.or_else(aborted))
}

fn describe(candidate: &Candidate<'_>) -> String {
    let Candidate { file, text, mutant } = candidate;
    let row = text.lines().nth(mutant.line).unwrap_or_default();
    format!("{file}:{}: {row}\n    {}", mutant.line + 1, mutant.change)
}

fn show(candidate: &Candidate<'_>, noticed: Option<&str>, json: bool) {
    let Candidate { file, text, mutant } = candidate;
    if json {
        let line = serde_json::json!({
            "mutants": "haproxy", "file": file, "line": mutant.line + 1,
            "row": text.lines().nth(mutant.line), "change": mutant.change.to_string(), "noticed": noticed,
        });
        println!("{line}");
    } else {
        let verdict = noticed.map_or_else(|| "SURVIVED".to_owned(), |test| format!("noticed by {test}"));
        println!("{file}:{}: {}: {verdict}", mutant.line + 1, mutant.change);
    }
}
