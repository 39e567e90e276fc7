//! `cargo xtask dist`: everything that people install, made from one command.
//!
//! ```text
//! targets ──▶ build: a static binary each ──▶ setpoint-dist packs ──▶ SHA256SUMS ──▶ --verify tries each ──▶ OUT
//! ```
//!
//! All of it happens in a folder beside `OUT`, which is as it was until everything has succeeded.
//!
//! What is packed how is told in `docs/release.md`. Progress goes to the standard error output, the table or the JSON to
//! the standard output.

mod build;
mod folder;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde_json::json;
use setpoint_dist::verify::{self, Checker, Sources, Trial};
use setpoint_dist::{
    Artefacts, Bill, Compression, Documents, Elf, Machine, Packing, Release, Staging, checksums,
};
use xtask::{console, optimised, workspace};

/// Where a release is put in the target folder. Cargo has folders there that are called like its profiles, such as `dist`: what it
/// compiles for the build itself goes there whatever the target is.
const FOLDER: &str = "packed";

/// Arguments of `cargo xtask dist`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Args {
    /// Builds for these targets; for that of this machine if none is named.
    #[arg(long, value_name = "TARGET")]
    target: Vec<String>,
    /// Packs this binary, which runs on this machine, and builds none.
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    binary: Option<PathBuf>,
    /// Where to put it [default: `packed` in the target folder].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Installs the package into a root of its own, unpacks the image, and runs both.
    #[arg(long)]
    verify: bool,
    /// Packs nothing: tries what is in the folder, which has to be of this commit.
    #[arg(long, requires = "verify", conflicts_with_all = ["binary", "fast"])]
    no_pack: bool,
    /// Compresses less, in less time.
    #[arg(long)]
    fast: bool,
    /// Prints one JSON object with all artefacts and what was tried.
    #[arg(long)]
    json: bool,
}

/// What was made for one target.
struct Made {
    target: String,
    artefacts: Artefacts,
    trials: Vec<Trial>,
}

/// Builds, packs, and tries what was packed.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let started = Instant::now();
    let root = workspace::root();
    let release = Release::read(&root, env!("CARGO_PKG_VERSION"), source_date_epoch()?)?;
    let host = build::host()?;
    let targets = if args.target.is_empty() { vec![host.clone()] } else { args.target.clone() };
    let out = match &args.out {
        Some(out) => std::path::absolute(out).context("can't use the folder")?,
        None => workspace::target_directory()?.join(FOLDER),
    };
    let job = Job { args, root, release, host };
    if args.no_pack {
        let mut made = Vec::new();
        for target in targets {
            let Some(machine) = Machine::of_target(&target) else { bail!("can't pack for {target}") };
            let artefacts = Artefacts::named(&out, &job.release, &target, machine);
            made.push(Made { target, artefacts, trials: Vec::new() });
        }
        job.verify(&out, &mut made);
        return job.finish(&out, &made, started);
    }
    for target in &targets {
        build::installed(target)?;
    }
    // Made first, so that a folder that can't be used is known before anything is built.
    let staging = Staging::beside(&out)?;
    let mut made = job.pack(targets, staging.path())?;
    if args.verify {
        job.verify(staging.path(), &mut made);
    }
    let folder = if has_failed(&made) {
        let kept = staging.keep();
        progress(format_args!("{} is as it was; what failed is in {}", out.display(), kept.display()));
        kept
    } else {
        staging.publish()?
    };
    for made in &mut made {
        made.artefacts = made.artefacts.moved_to(&folder);
    }
    job.finish(&folder, &made, started)
}

/// What is packed, and what it was asked for with.
struct Job<'a> {
    args: &'a Args,
    root: PathBuf,
    release: Release,
    host: String,
}

impl Job<'_> {
    /// Builds and packs for all targets.
    fn pack(&self, targets: Vec<String>, folder: &Path) -> Result<Vec<Made>> {
        let mut binaries = Vec::new();
        for target in targets {
            let binary = match &self.args.binary {
                Some(binary) => std::path::absolute(binary).context("can't use the binary")?,
                None => build_static(&target)?,
            };
            binaries.push((target, binary));
        }
        let documents = documents(&self.host, &binaries)?;
        let mut made = Vec::new();
        for (target, binary) in binaries {
            progress(format_args!("packing {} for {target}", self.release.version));
            let bill = bill(&binary, &self.root, &target, &self.host, &self.release)?;
            let compression = if self.args.fast { Compression::Fast } else { Compression::Small };
            let packing = Packing {
                binary: &binary,
                target: &target,
                release: &self.release,
                documents: &documents,
                bill: &bill,
                root: &self.root,
                compression,
            };
            made.push(Made { artefacts: packing.pack(folder)?, target, trials: Vec::new() });
        }
        checksums::write(folder)?;
        Ok(made)
    }

    /// Tries what is in a folder, as far as it runs on this machine.
    fn verify(&self, folder: &Path, made: &mut [Made]) {
        for made in made {
            if !runs_here(&made.target, &self.host) {
                progress(format_args!("{} does not run on this machine, and was not tried", made.target));
                continue;
            }
            progress(format_args!("trying what was packed for {}", made.target));
            let cargo = workspace::cargo_path();
            let sources = Sources {
                cargo: &cargo,
                root: &self.root,
                target: &made.target,
                release: &self.release,
                checker: Checker::Systemd,
            };
            made.trials = verify::artefacts(folder, &made.artefacts, &sources);
        }
    }

    /// Prints what is in the folder, and what was tried.
    fn finish(&self, folder: &Path, made: &[Made], started: Instant) -> Result<ExitCode> {
        progress(format_args!("done in {}", console::human(started.elapsed())));
        if self.args.json {
            println!("{}", report(folder, &self.release, made)?);
        } else {
            print_table(folder, made)?;
        }
        Ok(if has_failed(made) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn has_failed(made: &[Made]) -> bool {
    made.iter().flat_map(|made| &made.trials).any(|trial| trial.result.is_err())
}

/// Builds the optimised binary, and holds it to be static.
fn build_static(target: &str) -> Result<PathBuf> {
    progress(format_args!("building for {target}"));
    let started = Instant::now();
    let binary = build::build(target)?;
    let elf = Elf::read(&binary)?;
    if !elf.is_static() {
        bail!("{} is not static: it needs {}", binary.display(), elf.needed.join(", "));
    }
    optimised::judge(&binary)?;
    progress(format_args!("built for {target} in {}", console::human(started.elapsed())));
    Ok(binary)
}

/// Lets a binary that runs here write the documents, which are the same for all targets.
fn documents(host: &str, binaries: &[(String, PathBuf)]) -> Result<Documents> {
    let here = binaries.iter().find(|(target, _)| runs_here(target, host));
    let binary = match here {
        Some((_, binary)) => binary.clone(),
        None => build_static(host)?,
    };
    Ok(Documents::of(&binary)?)
}

/// What the binary is made of: its crates, and of a static one the libraries below them.
fn bill(binary: &Path, root: &Path, target: &str, host: &str, release: &Release) -> Result<Bill> {
    let mut bill = Bill::read(&workspace::cargo_path(), root, target, release)?;
    bill.add_library("rust-std", &build::rust_version()?, "MIT OR Apache-2.0");
    if Elf::read(binary)?.is_static() && target.ends_with("-gnu") {
        let version = if target == host { build::glibc_version()? } else { "unspecified".to_owned() };
        bill.add_library("glibc", &version, "LGPL-2.1-or-later");
    }
    Ok(bill)
}

/// Returns whether programs for a target run on a machine: another C library makes no difference to a static one.
fn runs_here(target: &str, host: &str) -> bool {
    let processor = |target: &str| target.split('-').next().unwrap_or_default().to_owned();
    processor(target) == processor(host) && target.contains("-linux-")
}

/// The time that all files are to have, where the caller says so: <https://reproducible-builds.org/specs/source-date-epoch>.
fn source_date_epoch() -> Result<Option<u64>> {
    let Some(text) = std::env::var_os("SOURCE_DATE_EPOCH").filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let text = text.to_string_lossy();
    let epoch = text.parse();
    epoch.map(Some).with_context(|| format!("SOURCE_DATE_EPOCH is `{text}`, which are no seconds since 1970"))
}

fn progress(text: std::fmt::Arguments<'_>) {
    eprintln!("dist: {text}");
}

/// The name of an artefact in the folder, what it is, and its size.
fn artefacts(made: &Made) -> Result<Vec<(String, &'static str, u64)>> {
    let Artefacts { binary, package, image, archive, bill } = &made.artefacts;
    let all =
        [(binary, "binary"), (package, "package"), (image, "image"), (archive, "archive"), (bill, "bill")];
    let described = all.map(|(path, what)| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let size = folder::size(path).with_context(|| format!("can't read {}", path.display()))?;
        Ok((name, what, size))
    });
    described.into_iter().collect()
}

fn print_table(out: &Path, made: &[Made]) -> Result<()> {
    println!("In {}:", out.display());
    for made in made {
        for (name, what, size) in artefacts(made)? {
            println!("  {what:<9}{:>10}  {name}", folder::human_size(size));
        }
    }
    println!("  {:<9}{:>10}  {}", "checksums", "", checksums::NAME);
    for trial in made.iter().flat_map(|made| &made.trials) {
        match &trial.result {
            Ok(found) => println!("ok: {}: {found}", trial.what),
            Err(error) => println!("failed: {}: {}", trial.what, error.with_causes()),
        }
    }
    Ok(())
}

fn report(out: &Path, release: &Release, made: &[Made]) -> Result<serde_json::Value> {
    let mut targets = Vec::new();
    for made in made {
        let artefacts: Vec<_> = artefacts(made)?
            .into_iter()
            .map(|(name, kind, size)| json!({"kind": kind, "name": name, "size": size}))
            .collect();
        let trial = |trial: &Trial| match &trial.result {
            Ok(found) => json!({"what": trial.what, "ok": true, "message": found}),
            Err(error) => json!({"what": trial.what, "ok": false, "message": error.with_causes()}),
        };
        let trials: Vec<_> = made.trials.iter().map(trial).collect();
        targets.push(json!({"target": made.target, "artefacts": artefacts, "trials": trials}));
    }
    Ok(json!({
        "folder": out,
        "version": release.version.to_string(),
        "commit": release.commit,
        "epoch": release.epoch,
        "targets": targets,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_of_the_same_processor_runs_here() {
        let host = "x86_64-unknown-linux-gnu";
        assert!(runs_here(host, host));
        assert!(runs_here("x86_64-unknown-linux-musl", host));
        assert!(!runs_here("aarch64-unknown-linux-gnu", host));
        assert!(!runs_here("x86_64-apple-darwin", host));
    }

    /// What cargo has put there would be refused, after everything has been built.
    #[test]
    fn a_release_is_put_where_cargo_puts_nothing() {
        let text = std::fs::read_to_string(workspace::root().join("Cargo.toml")).unwrap();
        let profiles =
            text.lines().filter_map(|line| line.strip_prefix("[profile.")?.split([']', '.']).next());
        let profiles: Vec<&str> = profiles.collect();
        assert!(profiles.contains(&"dist"), "{profiles:?}");
        let of_cargo = ["debug", "doc", "package", "tmp"];
        assert!(!profiles.iter().chain(&of_cargo).any(|name| *name == FOLDER), "{profiles:?}");
    }

    /// Runs the command with arguments.
    fn dist(arguments: &[&std::ffi::OsStr]) -> Result<ExitCode> {
        #[derive(clap::Parser)]
        struct Command {
            #[command(flatten)]
            args: Args,
        }
        let words = std::iter::once("dist".as_ref()).chain(arguments.iter().copied());
        run(&<Command as clap::Parser>::parse_from(words).args)
    }

    #[test]
    fn whatever_fails_the_release_before_and_files_of_others_are_there_afterwards() {
        let scratch = tempfile::tempdir().unwrap();
        let out = scratch.path().join("out");
        std::fs::create_dir(&out).unwrap();
        std::fs::write(out.join("setpoint_0.0.1_amd64.deb"), "the release before").unwrap();
        checksums::write(&out).unwrap();
        for (binary, why) in
            [("/nonexistent", "can't run `/nonexistent`"), ("/bin/true", "it is not Setpoint")]
        {
            let error = dist(&["--binary".as_ref(), binary.as_ref(), "--out".as_ref(), out.as_os_str()]);
            let error = format!("{:#}", error.unwrap_err());
            assert!(error.contains(why), "{error}");
            assert_eq!(checksums::check(&out).unwrap(), 1);
        }
        let mine = out.join("setpoint-mine");
        std::fs::write(&mine, "precious").unwrap();
        let error = dist(&["--binary".as_ref(), mine.as_os_str(), "--out".as_ref(), out.as_os_str()]);
        assert!(error.unwrap_err().to_string().contains("setpoint-mine"));
        assert_eq!(std::fs::read_to_string(&mine).unwrap(), "precious");
        assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}
