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
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail, ensure};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::environment::Allowed;
use super::interrupt;
use super::limited::Watcher;
use crate::parts::Apt;
use crate::{console, exit, optimised, workspace};

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

/// The names of roots begin so, and end with the number of the process that made them.
const PREFIX: &str = "setpoint-fresh-";

/// Makes the root, runs the command in it, and removes it. An error is what kept the command from telling itself how it ended.
pub(super) fn run(args: &super::Args, what: What, closing_line: &Arc<Mutex<String>>) -> Result<ExitCode> {
    // The owner of a process's folder is the user as whom it acts.
    let is_root = fs::metadata("/proc/self").is_ok_and(|data| data.uid() == 0);
    ensure!(is_root, "a root of its own takes root: run it with sudo, or without --fresh");
    let started = Instant::now();
    if !output_of(workspace::git().args(["status", "--porcelain"]))?.is_empty() {
        eprintln!("fresh: what is not committed is left out: the last commit is cloned");
    }
    sweep(&std::env::temp_dir());
    let folder = Folder::make(args.keep)?;
    interrupt::on_signal((!args.keep).then(|| folder.path()), closing_line)?;
    let (root, files, begun) =
        (folder.path().join("root"), folder.path().join("files"), folder.path().join("begun"));
    if args.keep {
        eprintln!("fresh: the root stays in {}", root.display());
    }
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

    // What runs in the root is ended when this process is, however that comes.
    let watcher = Watcher::start().context("can't start what ends the run")?;
    let status = Command::new("unshare")
        .args(["--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"])
        .args(["sh", "-c", SCRIPT, "fresh"])
        .args(command(args, what))
        .process_group(watcher.group()?)
        .stdin(Stdio::null())
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
        .env("BEGUN", &begun)
        .status()
        .context("can't run unshare")?;
    watcher.dismiss();
    // After the closing line of the tests nothing follows.
    if what == What::Demo {
        eprintln!("fresh: {status} after {}", console::human(started.elapsed()));
        if status.success() {
            optimised::judge(&root.join("setpoint/target/release/setpoint"))?;
        }
    }
    outcome(what, begun.exists(), status)
}

/// What a run in the root came to: what the command said itself, or why it could not.
fn outcome(what: What, begun: bool, status: ExitStatus) -> Result<ExitCode> {
    // What it ends with where it has printed its closing line: well, with failures, or asked to end by a signal.
    const TOLD: [i32; 5] = [0, 1, 128 + SIGHUP, 128 + SIGINT, 128 + SIGTERM];
    ensure!(begun, "no root could be made, which ended with {status}: why is above");
    let told = what == What::Demo || status.code().is_some_and(|code| TOLD.contains(&code));
    ensure!(told, "what ran in the root ended with {status}, and without a closing line");
    Ok(exit::like(status))
}

/// The folder that holds the root; removed when it is dropped, unless it is kept.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    kept: bool,
}

impl Folder {
    /// Makes it. One that is kept has a name that no later run takes for a rest.
    fn make(kept: bool) -> Result<Self> {
        let name = format!("{PREFIX}{}{}", std::process::id(), if kept { ".kept" } else { "" });
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).with_context(|| format!("can't make {}", path.display()))?;
        Ok(Self { path, kept })
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.kept
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            eprintln!("fresh: can't remove {}: {error}", self.path.display());
        }
    }
}

/// Removes what runs that were killed have left.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(PREFIX).filter(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// What is run inside.
fn command(args: &super::Args, what: What) -> Vec<String> {
    if what == What::Demo {
        return ["cargo", "run", "--release", "--", "demo"].map(str::to_owned).to_vec();
    }
    let mut command = vec!["cargo".to_owned(), "xtask".to_owned(), "test".to_owned()];
    command.extend([format!("--repeat={}", args.repeat), format!("--load={}", args.load)]);
    command.push(format!("--test-timeout={}", args.test_timeout));
    command.extend(args.jobs.map(|jobs| format!("--jobs={jobs}")));
    command.extend(["--require-parts", "--every-job"].map(str::to_owned));
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

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: crate::test::Args,
    }

    #[test]
    fn what_is_asked_for_is_asked_for_in_the_root_where_every_part_is_required() {
        let line =
            ["test", "--fresh", "--repeat=3", "--load", "8", "--jobs", "4", "--test-timeout=20", "host"];
        let Line { args } = Line::parse_from(line);
        assert_eq!(
            command(&args, What::Tests).join(" "),
            "cargo xtask test --repeat=3 --load=8 --test-timeout=20 --jobs=4 --require-parts --every-job host"
        );
        let plain = command(&Line::parse_from(["test", "--fresh"]).args, What::Tests).join(" ");
        assert!(!plain.contains("--jobs"), "{plain}");
        assert_eq!(command(&args, What::Demo).join(" "), "cargo run --release -- demo");
    }

    #[test]
    fn a_run_that_could_not_tell_how_it_ended_is_an_error() {
        let ended = |code: i32| ExitStatus::from_raw(code << 8);
        for what in [What::Tests, What::Demo] {
            let error = outcome(what, false, ended(1)).unwrap_err().to_string();
            assert_eq!(error, "no root could be made, which ended with exit status: 1: why is above");
        }
        for code in [0, 1, 129, 130, 143] {
            assert!(outcome(What::Tests, true, ended(code)).is_ok(), "{code}");
        }
        // As where nothing could be compiled, the program panicked, or it was killed.
        for status in [ended(2), ended(101), ended(137), ExitStatus::from_raw(9)] {
            let error = outcome(What::Tests, true, status).unwrap_err().to_string();
            assert!(error.ends_with(", and without a closing line"), "{error}");
            assert!(outcome(What::Demo, true, status).is_ok(), "{status}");
        }
    }

    #[test]
    fn what_a_killed_run_left_is_swept_and_what_runs_or_was_kept_is_not() {
        let folder = tempfile::tempdir().unwrap();
        // No process has this number: it is above the kernel's highest limit.
        let names = ["setpoint-fresh-99999999".to_owned(), format!("{PREFIX}{}", std::process::id())];
        let kept = "setpoint-fresh-99999998.kept".to_owned();
        for name in names.iter().chain([&kept]) {
            fs::create_dir_all(folder.path().join(name).join("root")).unwrap();
        }
        sweep(folder.path());
        assert!(!folder.path().join(&names[0]).exists());
        assert!(folder.path().join(&names[1]).exists() && folder.path().join(&kept).exists());
    }
}
