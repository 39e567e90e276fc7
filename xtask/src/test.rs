//! `cargo xtask test [NAME…]`: everything that has to hold before a change lands.
//!
//! ```text
//! names ──▶ selection ─┬─▶ format ──▶ build, lints, documentation ──▶ tests without parts ─┬─▶ tests with parts
//!                      └─▶ parts, made meanwhile ──────────────────────────────────────────┘         │
//!                                            closing line ◀── summary ◀── tally, skips, started ◀────┘
//! ```
//!
//! A failing step does not stop the next one: a person sees all that is wrong in one run. The last line is always
//! `N passed, N failed, N skipped`, whatever went wrong before it. Tests count as what they are; any other failure (a format
//! difference, warnings, a compile error, an aborted test binary) counts as one. A test whose part can't be had says so in
//! a file and counts as skipped; where parts are required (`--require-parts`, or `CI` in the environment), as failed,
//! unless `parts.toml` says that tests may go without it. A test binary that hangs is ended after a while, and what it had
//! not finished counts as failed.

pub(crate) mod build;
pub(crate) mod compile;
mod environment;
mod fresh;
mod interrupt;
pub(crate) mod limited;
mod load;
mod selection;
mod tally;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use setpoint_testutils::manifest::{Manifest, PartState, PartStatus};
use setpoint_testutils::skips::{SKIPS_VARIABLE, Skip};

use crate::parts::{self, Effort, Table};
use crate::workspace::Package;
use crate::{console, workspace};
use build::{Binary, Built};
use compile::Program;
use environment::{Allowed, Environment};
use limited::Runner;
use load::Load;
use selection::Selection;
use tally::Tally;

/// The package of the command, whose features are its jobs.
const COMMAND: &str = "setpoint";

/// The job that brings most of what is compiled, and shows little when it is compiled once more.
const WITH_KUBERNETES: &str = "composite";

/// Arguments of `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Crates (`engine` is `setpoint-engine`), groups of tests (`etcd`) or parts of tests' names; everything if none is
    /// named.
    names: Vec<String>,
    /// Counts a test that is skipped for want of a part as failed; so does `CI` in the environment.
    #[arg(long)]
    require_parts: bool,
    /// Ends a test binary that runs longer than so many minutes; what it had not finished counts as failed.
    #[arg(long, value_name = "MINUTES", default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=1440))]
    test_timeout: u64,
    /// Runs the tests so many times in a row, with nothing rebuilt between.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Runs the tests beside so many busy processes.
    #[arg(long, value_name = "N", default_value_t = 0)]
    load: usize,
    /// Runs all of it, or the demo, in a root of its own that is made from base packages alone: what someone installed
    /// here is not there.
    #[arg(long, value_enum, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "tests")]
    fresh: Option<fresh::What>,
    /// With `--fresh`: leaves the root where it is.
    #[arg(long, requires = "fresh")]
    keep: bool,
    #[command(flatten)]
    folder: parts::Folder,
}

/// Runs the steps and prints the closing line.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if let Some(what) = args.fresh {
        return fresh::run(args, what);
    }
    let started = Instant::now();
    let mut summary = Summary::default();
    summary.show();
    // Whatever happens on the way, the summary is printed.
    match std::panic::catch_unwind(AssertUnwindSafe(|| run_steps(args, &mut summary))) {
        Ok(Ok(())) => {}
        Ok(Err(error)) => summary.fail(format!("{error:#}")),
        Err(_) => summary.fail("this command itself panicked: its message is above".to_owned()),
    }
    Ok(summary.close(started.elapsed(), args.repeat))
}

fn run_steps(args: &Args, summary: &mut Summary) -> Result<()> {
    let program = Program::copy()?;
    let table = Table::load()?;
    let packages = workspace::packages()?;
    let selection = Selection::parse(&args.names, &packages, &table.groups())?;
    let scratch = tempfile::tempdir().context("can't make a temporary folder")?;
    interrupt::on_signal(scratch.path(), &summary.shown)?;
    let skips_file = scratch.path().join("skips");
    let allowed = Allowed::load()?;
    let mut environment = Environment::prepare(&allowed, &scratch.path().join("environment"))?;
    environment.set(SKIPS_VARIABLE, &skips_file);
    let limit = Duration::from_mins(args.test_timeout);
    let runner = Runner { environment: Some(environment.clone()), limit };
    let declared = declared_parts(&table, &packages)?;

    let mut parts = Making::start(table, args.folder.clone(), selection.parts(&packages));
    if args.repeat == 1 {
        summary.step("format", || succeeds(workspace::cargo().args(["fmt", "--all", "--check"])));
    }
    let mut built = Built::default();
    summary.step("build, lints, documentation", || {
        built = build::run(
            compiling(&program, workspace::cargo().arg("test"), &selection)?
                .args(["--no-run", "--no-fail-fast"]),
        )?;
        ensure!(built.succeeded, "not everything could be built");
        ensure!(
            built.warnings == 0,
            "{} of the compiler, of clippy and of rustdoc",
            console::count(built.warnings, "warning")
        );
        Ok(())
    });
    if built.binaries.is_empty() {
        bail!("there is no test to run");
    }
    if args.repeat == 1 && selection.has(COMMAND) {
        summary.step("each job alone", || jobs_alone(&packages));
    }
    if let Some(libraries) = selection.libraries(&packages).filter(|_| args.repeat == 1) {
        summary.documentation_tests(&program, &libraries, &runner.setting(&program.path())?)?;
    }
    let (with_parts, without): (Vec<_>, Vec<_>) =
        built.binaries.iter().partition(|binary| needs_parts(binary, &packages));
    let _load = (args.load > 0).then(|| Load::start(args.load)).transpose()?;
    let required = args.require_parts || std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    let mut made = None;
    for round in 1..=args.repeat {
        if args.repeat > 1 {
            console::heading(format_args!("round {round} of {}", args.repeat));
        }
        for binary in without.iter().chain(&with_parts) {
            let with_parts = needs_parts(binary, &packages);
            if with_parts && let Some(outcome) = parts.finish() {
                summary.step("parts", || {
                    made = Some(tell(outcome)?);
                    Ok(())
                });
            }
            let mut runner = Runner { environment: Some(environment.clone()), limit };
            if let (true, Some(made)) = (with_parts, &made) {
                let parts = only(made, declared.get(&binary.package), &binary.package);
                runner.environment = Some(environment.with_parts(&binary.package, &parts)?);
            }
            let before = summary.tally.passed;
            summary.run(&runner, binary, selection.filter());
            summary.take_skips(&skips_file, required, summary.tally.passed - before);
        }
    }
    for started in environment.started() {
        summary.fail(format!("a test started `{started}`, which is neither a part nor in tests.toml"));
    }
    if let (Some(filter), 0) = (selection.filter(), summary.tally.announced) {
        summary.fail(format!("no crate, group of tests or test is called `{filter}`"));
    }
    Ok(())
}

/// What a run came to.
#[derive(Debug, Default)]
struct Summary {
    tally: Tally,
    skips: BTreeSet<Skip>,
    /// Tests that the test runner found slow.
    slow: BTreeSet<String>,
    /// The closing line as it would be now, for a run that is interrupted.
    shown: Arc<Mutex<String>>,
}

impl Summary {
    /// Notes a failure that is not one of a test.
    fn fail(&mut self, what: String) {
        self.tally.note(what);
    }

    /// Does one step under its heading, and says how it ended.
    fn step(&mut self, name: &str, work: impl FnOnce() -> Result<()>) {
        console::heading(name);
        let started = Instant::now();
        let outcome = work();
        let elapsed = console::human(started.elapsed());
        match outcome {
            Ok(()) => println!("{name}: ok ({elapsed})"),
            Err(error) => {
                println!("{name}: FAILED ({elapsed}): {error:#}");
                self.fail(format!("{name}: {error:#}"));
            }
        }
    }

    /// Keeps the closing line of a run that would be interrupted now.
    fn show(&self) {
        let mut line = Tally::default();
        (line.passed, line.failed, line.skipped) =
            (self.tally.passed, self.tally.failed + 1, self.tally.skipped);
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = line.to_string();
    }

    /// Takes in one line of what tests print, and shows it.
    fn read_line(&mut self, line: &[u8], own: &mut Tally) -> std::io::Result<()> {
        let text = String::from_utf8_lossy(line);
        own.read_line(&text);
        let slow = text.strip_prefix("test ").and_then(|rest| rest.trim_end().strip_suffix(" seconds"));
        self.slow.extend(
            slow.and_then(|rest| rest.split_once(" has been running for")).map(|(name, _)| name.to_owned()),
        );
        print!("{text}");
        std::io::stdout().flush()
    }

    /// Runs one test binary.
    ///
    /// What it prints is not believed for itself: a test, or what a test starts, may print anything. It has to tell once
    /// how its tests ended, and of as many as it announced.
    fn run(&mut self, runner: &Runner, binary: &Binary, filter: Option<&str>) {
        let Binary { package, folder, target, path } = binary;
        console::heading(format_args!("{package}: {target}"));
        let started = Instant::now();
        let mut own = Tally::default();
        let arguments: Vec<_> = filter.map(OsString::from).into_iter().collect();
        let status = runner.run(path, folder, &arguments, &mut |line| self.read_line(line, &mut own));
        let told = own.total();
        if own.failed == 0 {
            // What is named without being counted was aborted before the runner could count it.
            own.failed = own.failures.len();
        }
        let wrong = match status {
            Err(error) => Some(format!("{error:#}")),
            Ok(Some(status)) if !status.success() => Some(format!("ended with {status}")),
            Ok(Some(_)) if own.results == 0 => Some("ended without telling how its tests ended".to_owned()),
            Ok(Some(_)) if own.results > 1 => Some("told more than once how its tests ended".to_owned()),
            Ok(Some(_)) if own.announced != told => {
                Some(format!("announced {} and told of {told}", console::count(own.announced, "test")))
            }
            // Where it had to be ended, that is told in its place.
            Ok(_) => None,
        };
        if let Some(wrong) = wrong.filter(|_| own.failed == 0) {
            own.note(format!("{package}: {target}: {wrong}"));
        }
        own.refuse_ignored(&format!("{package}: {target}"));
        self.tally.absorb(own);
        self.show();
        println!("{package}: {target}: {}", console::human(started.elapsed()));
    }

    /// Runs the examples in the documentation.
    fn documentation_tests(&mut self, program: &Program, selection: &Selection, runner: &str) -> Result<()> {
        console::heading("documentation tests");
        let mut cargo = workspace::cargo();
        let cargo = compiling(
            program,
            cargo.args(["test", "--doc", "--no-fail-fast", "--config", runner]),
            selection,
        )?;
        let mut child =
            cargo.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("can't start cargo")?;
        let mut own = Tally::default();
        for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(|output| output.split(b'\n'))
        {
            let mut line = line.context("lost what cargo says")?;
            line.push(b'\n');
            self.read_line(&line, &mut own)?;
        }
        let status = child.wait().context("lost cargo")?;
        if !status.success() && own.failed == 0 {
            own.note(format!("documentation tests: ended with {status}"));
        } else if own.results == 0 {
            own.note("documentation tests: ended without telling how they ended".to_owned());
        }
        own.refuse_ignored("documentation tests");
        self.tally.absorb(own);
        Ok(())
    }

    /// Takes in which tests of a binary that counted so many as passed were skipped, and forgets the file.
    fn take_skips(&mut self, file: &Path, required: bool, passed: usize) {
        match Skip::read_all(file) {
            Ok(skips) => {
                self.tally.skip(&skips, required, passed);
                self.skips.extend(skips);
            }
            Err(error) => self.fail(format!("can't read which tests were skipped: {error}")),
        }
        let _ = std::fs::remove_file(file);
    }

    /// Prints the summary, the closing line last.
    fn close(self, elapsed: Duration, rounds: u32) -> ExitCode {
        console::heading(format_args!("summary ({})", console::human(elapsed)));
        for skip in &self.skips {
            println!("skipped: {}: {}", skip.test, skip.reason.replace('\n', "\n  "));
        }
        for slow in &self.slow {
            println!("slow: {slow}: more than 60 s; such a test belongs into `cargo xtask soak`");
        }
        let mut failures: BTreeMap<&str, usize> = BTreeMap::new();
        for failure in &self.tally.failures {
            *failures.entry(failure).or_default() += 1;
        }
        for (failure, times) in failures {
            match rounds {
                1 => println!("failed: {failure}"),
                _ => println!("failed: {failure} (in {times} of {rounds} rounds)"),
            }
        }
        println!("{}", self.tally);
        if self.tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// Has a cargo command compile what is selected, linted and documented.
fn compiling<'a>(
    program: &Program,
    cargo: &'a mut Command,
    selection: &Selection,
) -> Result<&'a mut Command> {
    program.instrument(cargo)?;
    Ok(cargo.args(selection.cargo_arguments()))
}

/// Compiles the command with each of its jobs alone, as packagers do who leave Kubernetes out.
fn jobs_alone(packages: &BTreeMap<String, Package>) -> Result<()> {
    let jobs = packages.get(COMMAND).into_iter().flat_map(|package| &package.features);
    for job in jobs.filter(|job| *job != WITH_KUBERNETES) {
        let mut cargo = workspace::cargo();
        cargo.args(["check", "--package", COMMAND, "--no-default-features", "--features", job]);
        let built = build::run(&mut cargo)?;
        ensure!(built.succeeded, "`{job}` alone can't be built");
        ensure!(built.warnings == 0, "{} with `{job}` alone", console::count(built.warnings, "warning"));
    }
    Ok(())
}

/// Runs a command that has to succeed.
fn succeeds(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status().context("can't start it")?;
    ensure!(status.success(), "it ended with {status}");
    Ok(())
}

/// Returns whether the tests of a binary may ask for parts.
fn needs_parts(binary: &Binary, packages: &BTreeMap<String, Package>) -> bool {
    packages
        .get(&binary.package)
        .is_none_or(|package| package.parts.as_ref().is_none_or(|parts| !parts.is_empty()))
}

/// The parts that were made, and the names of those that are needed.
type Made = Result<(Manifest, BTreeSet<String>)>;

/// Parts that are made aside, while other steps run. Nothing goes on being built when this is dropped.
#[derive(Debug)]
struct Making(Option<JoinHandle<Made>>);

impl Making {
    fn start(table: Table, folder: parts::Folder, names: Option<Vec<String>>) -> Self {
        Self(Some(std::thread::spawn(move || {
            let names = names.unwrap_or_else(|| table.parts.iter().map(|part| part.name.clone()).collect());
            let known = |name: &String| table.has(name);
            // A group of tests need not have parts, nor need anything be wanted at all.
            let names: Vec<_> = names.into_iter().filter(known).collect();
            let chosen = if names.is_empty() { BTreeSet::new() } else { parts::choose(&table, &names)? };
            Ok((parts::obtain(&table, &folder, &chosen, Effort::Make)?, chosen))
        })))
    }

    /// Waits for them; none if that was done already.
    fn finish(&mut self) -> Option<Made> {
        let made = self.0.take()?.join();
        Some(made.unwrap_or_else(|_| Err(anyhow!("making the parts panicked"))))
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            parts::cancel();
            drop(thread.join());
        }
    }
}

/// The parts that the tests of each package may use, by package; all where none are named.
fn declared_parts(
    table: &Table,
    packages: &BTreeMap<String, Package>,
) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut declared = BTreeMap::new();
    for (name, package) in packages {
        if let Some(parts) = package.parts.as_ref().filter(|parts| !parts.is_empty()) {
            declared.insert(name.clone(), parts::choose(table, parts)?);
        }
    }
    Ok(declared)
}

/// What there is of the parts that a package declares. What another one brought is not there for it: alone it would fail.
fn only(made: &Manifest, declared: Option<&BTreeSet<String>>, package: &str) -> Manifest {
    let Some(declared) = declared else { return made.clone() };
    let parts = made.parts.iter().map(|part| {
        if declared.contains(&part.name) {
            return part.clone();
        }
        let why = format!("{package} does not name it in `package.metadata.setpoint.parts`");
        PartStatus {
            state: PartState::Unavailable,
            path: None,
            why: Some(why),
            optional: false,
            ..part.clone()
        }
    });
    Manifest { parts: parts.collect() }
}

/// Says which parts there are, and which of those that are needed are not.
fn tell(made: Made) -> Result<Manifest> {
    let (manifest, chosen) = made?;
    let wanting = |part: &&PartStatus| chosen.contains(&part.name) && part.state != PartState::Ready;
    for part in manifest.parts.iter().filter(wanting) {
        println!("not here: {}: {}", part.name, part.why.as_deref().unwrap_or("unknown"));
    }
    println!("{}", parts::found_summary(&manifest));
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_skips_that_is_not_understood_is_a_failure_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("skips");
        std::fs::write(&file, "every_name_is_drawn: graphviz not installed\n").unwrap();
        let mut summary = Summary::default();
        run(&mut summary, "echo 'running 3 tests'; echo 'test result: ok. 3 passed; 0 failed; 0 ignored'");
        summary.take_skips(&file, true, 3);
        assert_eq!(summary.tally.to_string(), "3 passed, 1 failed, 0 skipped");
        assert!(summary.tally.failures[0].starts_with("can't read which tests were skipped"), "{summary:?}");
        assert!(!file.exists(), "the next round starts anew");
    }

    #[test]
    fn a_step_that_fails_does_not_stop_the_next_and_counts_once() {
        let mut summary = Summary::default();
        summary.step("format", || bail!("it ended with exit status: 1"));
        summary.step("build", || Ok(()));
        assert_eq!(summary.tally.to_string(), "0 passed, 1 failed, 0 skipped");
        assert_eq!(summary.tally.failures, ["format: it ended with exit status: 1"]);
    }

    fn run(summary: &mut Summary, script: &str) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tests");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let binary =
            Binary { package: "p".into(), folder: folder.path().into(), target: "test all".into(), path };
        let runner = Runner { environment: None, limit: Duration::from_mins(1) };
        summary.run(&runner, &binary, None);
    }

    #[test]
    fn a_binary_that_ends_well_without_a_result_is_a_failure() {
        let mut summary = Summary::default();
        run(&mut summary, "echo 'running 3 tests'; exit 0");
        assert_eq!(summary.tally.to_string(), "0 passed, 1 failed, 0 skipped");
        assert!(summary.tally.failures[0].contains("without telling how"), "{summary:?}");
    }

    #[test]
    fn a_binary_that_is_aborted_counts_as_one_failure() {
        let mut summary = Summary::default();
        run(&mut summary, "echo 'test a ... ok'; kill -ABRT $$");
        assert_eq!(summary.tally.failed, 1, "{summary:?}");
        assert!(summary.tally.failures[0].starts_with("p: test all: ended with signal: 6"), "{summary:?}");
    }

    #[test]
    fn a_failed_test_counts_once() {
        let mut summary = Summary::default();
        run(
            &mut summary,
            "echo 'running 3 tests'; echo 'test a ... FAILED'; echo 'test result: FAILED. 2 passed; 1 failed; 0 ignored'; exit 101",
        );
        assert_eq!(summary.tally.to_string(), "2 passed, 1 failed, 0 skipped");
        assert_eq!(summary.tally.failures, ["a"]);
    }

    /// A test, or what it starts, may print anything.
    #[test]
    fn results_that_something_else_printed_are_not_believed() {
        for (script, said) in [
            (
                "echo 'running 2 tests'; echo 'test result: ok. 999 passed; 0 failed; 0 ignored'
                 echo 'test result: ok. 2 passed; 0 failed; 0 ignored'",
                "told more than once",
            ),
            (
                "echo 'running 3 tests'; echo 'test result: ok. 1 passed; 0 failed; 0 ignored'",
                "announced 3 tests and told of 1",
            ),
        ] {
            let mut summary = Summary::default();
            run(&mut summary, script);
            assert_eq!(summary.tally.failed, 1, "{script}");
            assert!(summary.tally.failures[0].contains(said), "{summary:?}");
        }
    }

    #[test]
    fn a_test_that_is_marked_as_ignored_is_a_failure() {
        let mut summary = Summary::default();
        run(&mut summary, "echo 'running 2 tests'; echo 'test result: ok. 1 passed; 0 failed; 1 ignored'");
        assert_eq!(summary.tally.to_string(), "1 passed, 1 failed, 0 skipped");
        assert!(summary.tally.failures[0].contains("#[ignore]"), "{summary:?}");
    }

    #[test]
    fn a_part_that_a_package_does_not_declare_is_not_there_for_it() {
        let part = |name: &str| PartStatus {
            name: name.into(),
            version: None,
            state: PartState::Ready,
            path: Some("/cache".into()),
            why: None,
            optional: false,
        };
        let made = Manifest { parts: vec![part("etcd"), part("consul")] };
        let declared: BTreeSet<String> = ["etcd".to_owned()].into();
        let own = only(&made, Some(&declared), "setpoint-x");
        assert_eq!(own.get("etcd"), made.get("etcd"));
        let consul = own.get("consul").unwrap();
        assert_eq!((consul.state, consul.path.is_none()), (PartState::Unavailable, true));
        assert!(consul.why.as_deref().unwrap().contains("setpoint-x does not name it"));
        assert_eq!(only(&made, None, "setpoint-x"), made);
    }

    #[test]
    fn a_slow_test_is_named() {
        let mut summary = Summary::default();
        let line = b"test a::b has been running for over 60 seconds\n";
        summary.read_line(line, &mut Tally::default()).unwrap();
        assert_eq!(summary.slow.iter().collect::<Vec<_>>(), ["a::b"]);
    }
}
