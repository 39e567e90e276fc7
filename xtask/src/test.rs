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
//! unless `parts.toml` says that tests may go without it; and as failed as well where no table has an excuse for it. A test binary that hangs is ended after a while, and what it had
//! not finished counts as failed. Binaries run side by side, two for each processor, as most of them wait most of the time.

pub(crate) mod build;
pub(crate) mod compile;
mod durations;
mod environment;
mod excuses;
mod fresh;
mod interrupt;
pub(crate) mod limited;
mod load;
mod pool;
mod selection;
mod slow;
mod summary;
mod tally;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::num::NonZero;
use std::os::unix::process::CommandExt;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use setpoint_testutils::manifest::{Manifest, PartState, PartStatus};
use setpoint_testutils::skips::SKIPS_VARIABLE;

use crate::parts::{self, Effort, Table};
use crate::workspace::Package;
use crate::{console, workspace};
use build::{Binary, Built};
use compile::Program;
use durations::Durations;
use environment::{Allowed, Environment};
use excuses::Excuses;
use limited::{Runner, Watcher};
use load::Load;
use selection::Selection;
use summary::{Ran, Summary};

/// The package of the command, whose features are its jobs.
const COMMAND: &str = "setpoint";

/// The job that brings most of what is compiled: the command with it alone is built where that is asked for.
const LARGEST: &str = "composite";

/// How many test binaries run at a time for each processor: most of them wait most of the time.
const BINARIES: usize = 2;

/// By how many threads a test binary runs its tests, where the caller does not say.
const THREADS_VARIABLE: &str = "RUST_TEST_THREADS";

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
    /// Runs so many test binaries at a time; two for each processor if it is not given.
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Runs the tests beside so many busy processes.
    #[arg(long, value_name = "N", default_value_t = 0)]
    load: usize,
    /// Has tests run the command with each job alone also with the one that brings most of what is compiled; `--fresh` always does.
    #[arg(long)]
    every_job: bool,
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
pub(crate) fn run(args: &Args) -> ExitCode {
    let started = Instant::now();
    let mut summary = Summary::default();
    summary.show();
    // Whatever happens on the way, the summary is printed: in a root of its own by what runs there.
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| match args.fresh {
        Some(what) => fresh::run(args, what, &summary.shown).map(Some),
        None => run_steps(args, &mut summary).map(|()| None),
    }));
    match outcome {
        Ok(Ok(Some(told))) => return told,
        Ok(Ok(None)) => {}
        Ok(Err(error)) => summary.fail(format!("{error:#}")),
        Err(_) => summary.fail("this command itself panicked: its message is above".to_owned()),
    }
    summary.close(started.elapsed(), args.repeat)
}

fn run_steps(args: &Args, summary: &mut Summary) -> Result<()> {
    let scratch = tempfile::tempdir().context("can't make a temporary folder")?;
    interrupt::on_signal(Some(scratch.path()), &summary.shown)?;
    let program = Program::copy()?;
    let table = Table::load()?;
    let packages = workspace::packages()?;
    let selection = Selection::parse(&args.names, &packages, &table.groups())?;
    let skips_file = scratch.path().join("skips");
    let allowed = Allowed::load()?;
    let mut environment = Environment::prepare(&allowed, &scratch.path().join("environment"))?;
    environment.set(SKIPS_VARIABLE, &skips_file);
    let limit = Duration::from_mins(args.test_timeout);
    let required = args.require_parts || std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    let declared = declared_parts(&table, &packages)?;
    let mut excuses = Excuses::new(&table, allowed.without.keys().cloned().collect(), required);

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
    let mut wanted = Vec::new();
    for job in packages.get(COMMAND).into_iter().flat_map(|package| &package.features) {
        let variable = names_alone(job);
        if (args.every_job || job != LARGEST) && selection.may_read(COMMAND, &variable, &packages)? {
            wanted.push((job, variable));
        }
    }
    if !wanted.is_empty() {
        summary.step("each job alone", || {
            for (job, variable) in wanted {
                environment.set(&variable, &command_of(job)?);
            }
            Ok(())
        });
    }
    let _load = (args.load > 0).then(|| Load::start(args.load)).transpose()?;
    if let Some(libraries) = selection.libraries(&packages) {
        let runner = Runner { environment: Some(environment.clone()), limit };
        let runner = runner.setting(&program.path(), args.repeat)?;
        let ran = documentation_tests(&program, &libraries, &runner, &skips_file)?;
        summary.take(ran, &excuses, Some(&BTreeSet::new()));
    }
    let (with_parts, without): (Vec<_>, Vec<_>) =
        built.binaries.iter().partition(|binary| needs_parts(binary, &packages));
    let tests = Tests {
        environment: &environment,
        scratch: scratch.path(),
        limit,
        declared: &declared,
        filter: selection.filter(),
        workers: args.jobs.map_or_else(|| BINARIES * cores(), usize::from),
        packages: &packages,
    };
    let mut slow = BTreeMap::new();
    let mut durations = Durations::load(&workspace::target_directory()?);
    let without: Vec<_> = without.into_iter().map(|binary| (binary, None)).collect();
    // While parts are being made, what needs none runs; otherwise all run together, and no processor rests in between.
    let ahead = args.repeat == 1 && !parts.is_finished();
    if ahead {
        tests.run(&durations.longest_first(without.clone()), &excuses, &mut durations, &mut slow, summary)?;
    }
    let mut made = None;
    if !with_parts.is_empty()
        && let Some(outcome) = parts.finish()
    {
        summary.step("parts", || {
            let manifest = tell(outcome)?;
            excuses.note(&manifest);
            made = Some(manifest);
            Ok(())
        });
    }
    let with_parts: Vec<_> = with_parts.into_iter().map(|binary| (binary, made.as_ref())).collect();
    let round = durations.longest_first(if ahead { with_parts } else { [without, with_parts].concat() });
    // A round begins while the last tests of the one before still run: no processor waits for the slowest.
    let rounds: Vec<_> = (0..args.repeat).flat_map(|_| &round).copied().collect();
    tests.run(&rounds, &excuses, &mut durations, &mut slow, summary)?;
    if args.load == 0 {
        for (binary, (runner, tests)) in &slow {
            slow::judge(runner, binary, tests, slow::ALONE, summary);
        }
    }
    if let Err(error) = durations.save() {
        println!("the order of the next run is that of the build: {error:#}");
    }
    for started in environment.started() {
        summary.fail(format!("a test started `{started}`, which is neither a part nor in tests.toml"));
    }
    if let (Some(filter), 0) = (selection.filter(), summary.tally.announced) {
        summary.fail(format!("no crate, group of tests or test is called `{filter}`"));
    }
    Ok(())
}

/// The tests of each binary that were slow, and how it is run.
type Slow<'a> = BTreeMap<&'a Binary, (Runner, BTreeSet<String>)>;

/// How the test binaries of a run are run.
#[derive(Clone, Copy)]
struct Tests<'a> {
    environment: &'a Environment,
    scratch: &'a Path,
    limit: Duration,
    /// The parts that the tests of each package may use.
    declared: &'a BTreeMap<String, BTreeSet<String>>,
    filter: Option<&'a str>,
    /// How many binaries run at a time.
    workers: usize,
    packages: &'a BTreeMap<String, Package>,
}

impl Tests<'_> {
    /// Runs some binaries, each with the parts that were made for it, and notes how long each took, and which tests were slow. What
    /// one prints is shown as it comes where it runs alone, and in one piece otherwise.
    fn run<'b>(
        &self,
        binaries: &[(&'b Binary, Option<&Manifest>)],
        excuses: &Excuses,
        durations: &mut Durations,
        slow: &mut Slow<'b>,
        summary: &mut Summary,
    ) -> Result<()> {
        let jobs: Vec<_> = (0..)
            .zip(binaries)
            .map(|(number, (binary, made))| self.prepare(number, binary, *made))
            .collect::<Result<_>>()?;
        let alone = self.workers == 1 || jobs.len() == 1;
        let work = |(binary, runner, skips): &(&Binary, Runner, PathBuf)| {
            let mut output = Vec::new();
            if alone {
                console::heading(binary);
            } else {
                println!("{binary}: begun");
            }
            let ran = Ran::binary(runner, binary, self.filter, skips, &mut |line| {
                if alone { summary::show(line) } else { output.write_all(line) }
            });
            (ran, output)
        };
        pool::run(&jobs, self.workers, work, |(binary, runner, _), (ran, output)| {
            if !alone {
                console::heading(binary);
                // Where nobody sees it, it is counted all the same.
                let _ = summary::show(&output);
            }
            println!("{binary}: {}", console::human(ran.elapsed));
            if self.filter.is_none() {
                durations.note(binary.to_string(), ran.elapsed);
            }
            if !ran.slow.is_empty() {
                let (_, tests) = slow.entry(*binary).or_insert_with(|| (runner.clone(), BTreeSet::new()));
                tests.extend(ran.slow.iter().cloned());
            }
            summary.take(ran, excuses, self.declared.get(&binary.package));
        });
        Ok(())
    }

    /// What one binary is run with: an environment with the parts of its package, and a file for what it skips.
    fn prepare<'b>(
        &self,
        number: usize,
        binary: &'b Binary,
        made: Option<&Manifest>,
    ) -> Result<(&'b Binary, Runner, PathBuf)> {
        let skips = self.scratch.join(format!("skips-{number}"));
        let mut environment = self.environment.clone();
        if let Some(made) = made {
            let parts = only(made, self.declared.get(&binary.package), &binary.package);
            environment = environment.with_parts(&binary.package, &parts)?;
        }
        environment.set(SKIPS_VARIABLE, &skips);
        let threads = self.packages.get(&binary.package).map_or(1, |package| package.threads);
        if threads > 1 && std::env::var_os(THREADS_VARIABLE).is_none() {
            environment.set(THREADS_VARIABLE, Path::new(&(threads * cores()).to_string()));
        }
        Ok((binary, Runner { environment: Some(environment), limit: self.limit }, skips))
    }
}

/// How many processors there are.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

/// Runs the examples in the documentation.
fn documentation_tests(program: &Program, selection: &Selection, runner: &str, skips: &Path) -> Result<Ran> {
    console::heading("documentation tests");
    let mut cargo = workspace::cargo();
    let cargo =
        compiling(program, cargo.args(["test", "--doc", "--no-fail-fast", "--config", runner]), selection)?;
    let watcher = Watcher::start().context("can't start what ends cargo")?;
    let cargo = cargo.process_group(watcher.group()?).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = cargo.spawn().context("can't start cargo")?;
    let output = child.stdout.take().map(BufReader::new);
    let lines = output.into_iter().flat_map(|output| output.split(b'\n'));
    let ran = Ran::documentation(lines, || child.wait(), skips).context("lost what cargo says")?;
    watcher.dismiss();
    Ok(ran)
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

/// The environment variable by which tests find the command with one job alone: they see what it does, and what it says of the jobs
/// that are left out.
fn names_alone(job: &str) -> String {
    format!("SETPOINT_{}_ALONE", job.to_uppercase())
}

/// Builds the command with one job alone, and returns where it is: in a folder of its own, as all other tests start the one
/// with every job, which would be overwritten.
fn command_of(job: &str) -> Result<PathBuf> {
    let folder = workspace::target_directory()?.join(job);
    let mut cargo = workspace::cargo();
    cargo.arg("build").env("CARGO_BUILD_BUILD_DIR", workspace::build_directory()?);
    cargo.args(["--package", COMMAND, "--no-default-features", "--features", job]);
    let built = build::run(cargo.arg("--target-dir").arg(&folder))?;
    ensure!(built.succeeded, "`{job}` alone can't be built");
    ensure!(built.warnings == 0, "{} with `{job}` alone", console::count(built.warnings, "warning"));
    Ok(folder.join("debug").join(COMMAND))
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

    /// Returns whether they are made, so that nobody waits for them.
    fn is_finished(&self) -> bool {
        self.0.as_ref().is_none_or(JoinHandle::is_finished)
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

/// The parts that the tests of each package may use, by package; all of those that are not here.
fn declared_parts(
    table: &Table,
    packages: &BTreeMap<String, Package>,
) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut declared = BTreeMap::new();
    for (name, package) in packages {
        if let Some(parts) = &package.parts {
            let chosen = if parts.is_empty() { BTreeSet::new() } else { parts::choose(table, parts)? };
            declared.insert(name.clone(), chosen);
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
}
