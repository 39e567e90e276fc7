//! `cargo xtask test --fresh`: the same run in a root of its own, on a Debian that nobody prepared.
//!
//! ```text
//! apt ──packages──▶ root ◀──clone── the last commit
//!                    ▲ read-only: toolchains, how registries are reached
//!                    └─ cargo xtask test, with empty caches
//! ```
//!
//! The root holds the smallest set of Debian packages and those in `tests.toml`. It is in a mount namespace and a process
//! namespace of its own, so that nothing is left mounted or running, and is removed at the end.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::environment::Allowed;
use crate::parts::Apt;
use crate::{console, exit, workspace};

const SCRIPT: &str = include_str!("fresh.sh");
/// The smallest Debian: what every one has, and apt.
const BASE: [&str; 3] = ["?essential", "?priority(required)", "apt"];
/// How the machine's apt reaches its mirrors.
const APT: [&str; 8] = [
    "/etc/apt/sources.list",
    "/etc/apt/sources.list.d",
    "/etc/apt/apt.conf",
    "/etc/apt/apt.conf.d",
    "/etc/apt/auth.conf.d",
    "/etc/apt/keyrings",
    "/etc/apt/trusted.gpg.d",
    "/usr/share/keyrings",
];
/// Variables that name caches and toolchains of the caller, which a fresh machine has not.
const OF_THE_CALLER: [&str; 10] = [
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "CARGO_HOME",
    "GOPATH",
    "GOCACHE",
    "GOMODCACHE",
    "GOROOT",
];

/// What is run in the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum What {
    /// `cargo xtask test`, with the same arguments.
    Tests,
    /// `cargo run --release -- demo`.
    Demo,
}

/// Makes the root, runs the command in it, and removes it.
pub(super) fn run(args: &super::Args, what: What) -> Result<ExitCode> {
    ensure!(Path::new("/proc/self/root").exists(), "there is no /proc: a root of its own can't be made");
    let started = Instant::now();
    let folder =
        tempfile::Builder::new().prefix("setpoint-fresh-").tempdir().context("can't make a folder")?;
    let (root, files) = (folder.path().join("root"), folder.path().join("files"));
    let archives = root.join("archives");
    for made in [&archives, &files] {
        fs::create_dir_all(made).with_context(|| format!("can't make {}", made.display()))?;
    }
    let allowed = Allowed::load()?;
    download(&allowed, folder.path(), &archives)?;
    copy_settings(&files)?;

    let kept: Vec<_> = std::env::vars_os()
        .filter(|(name, _)| allowed.keeps(name))
        .filter(|(name, _)| !OF_THE_CALLER.iter().any(|other| name == other))
        .filter(|(name, _)| !name.to_string_lossy().starts_with("RUSTUP_"))
        .collect();
    // What a variable names by its path, such as certificates, is to be found there.
    let named =
        kept.iter().map(|(_, value)| PathBuf::from(value)).filter(|path| path.is_absolute() && path.exists());
    let mounts: Vec<_> = APT.iter().map(PathBuf::from).chain(named).collect();
    let list = folder.path().join("mounts");
    fs::write(&list, mounts.iter().fold(String::new(), |text, path| format!("{text}{}\n", path.display())))?;

    let status = Command::new("unshare")
        .args(["--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"])
        .args(["sh", "-c", SCRIPT, "fresh"])
        .args(command(args, what))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("LC_ALL", "C.UTF-8")
        .envs(kept)
        .env("ROOT", &root)
        .env("SOURCE", workspace::root())
        .env("RUST", output_of(Command::new("rustc").args(["--print", "sysroot"]))?)
        .env("GO", output_of(Command::new("go").args(["env", "GOROOT"]))?)
        .env("MOUNTS", &list)
        .env("FILES", &files)
        .status()
        .context("can't run unshare")?;
    eprintln!("fresh: {status} after {}", console::human(started.elapsed()));
    if args.keep {
        eprintln!("fresh: the root stays in {}", folder.keep().join("root").display());
    }
    Ok(exit::like(status))
}

/// What is run inside.
fn command(args: &super::Args, what: What) -> Vec<String> {
    if what == What::Demo {
        return ["cargo", "run", "--release", "--", "demo"].map(str::to_owned).to_vec();
    }
    let mut command = vec!["cargo".to_owned(), "xtask".to_owned(), "test".to_owned()];
    command.extend([format!("--repeat={}", args.repeat), format!("--load={}", args.load)]);
    command.push(format!("--test-timeout={}", args.test_timeout));
    command.push("--require-parts".to_owned());
    command.extend(args.names.iter().cloned());
    command
}

/// Downloads the packages of the root.
fn download(allowed: &Allowed, folder: &Path, archives: &Path) -> Result<()> {
    let release = fs::read_to_string("/etc/os-release").context("can't read /etc/os-release")?;
    let Some(suite) = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME=")) else {
        bail!("/etc/os-release names no suite of Debian: --fresh works on Debian only");
    };
    let problem = |problem: crate::parts::Problem| anyhow!(problem.why);
    eprintln!("fresh: reading the package lists of Debian {suite}");
    let apt = Apt::open(folder, &crate::parts::Suite::named(suite)).map_err(problem)?;
    let wanted: Vec<_> =
        BASE.iter().map(ToString::to_string).chain(allowed.fresh.packages.iter().cloned()).collect();
    let packages = apt.resolve(&wanted).map_err(problem)?;
    eprintln!("fresh: downloading {} packages", packages.len());
    apt.download(&packages, archives).map_err(problem)
}

/// Puts what says how registries and names are found into a folder, as it is to be in the root.
fn copy_settings(files: &Path) -> Result<()> {
    let copy = |from: &Path, to: &str| -> Result<()> {
        let to = files.join(to);
        if from.is_file() {
            fs::create_dir_all(to.parent().unwrap_or(files))?;
            fs::copy(from, &to).with_context(|| format!("can't copy {}", from.display()))?;
        }
        Ok(())
    };
    copy(Path::new("/etc/resolv.conf"), "etc/resolv.conf")?;
    copy(Path::new("/etc/hosts"), "etc/hosts")?;
    if let Ok(settings) = output_of(Command::new("go").args(["env", "GOENV"])) {
        copy(Path::new(&settings), "root/.config/go/env")?;
    }
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cargo = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    copy(&cargo.join("config.toml"), "root/.cargo/config.toml")
}

fn output_of(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("can't run {program}"))?;
    ensure!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
