//! The installed program at work: it says its version, and applies, repairs and removes a small manifest.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::expected::check_version;
use super::{Sources, ensure};
use crate::error::DistError;
use crate::image::ENTRY_POINT;
use crate::program;

/// A name that nothing but the root's own list of hosts knows.
const HOST: &str = "consul.setpoint.test";
const MANIFEST: &str = "name: trial
directories:
  conf:
files:
  greeting: {path: conf/greeting, content: \"hello\\n\", mode: \"0640\", owner: OWNER, group: OWNER}
symlinks:
  current: {target: conf/greeting}
";

/// A program below a root, and how it is run.
pub(super) struct Installed<'a> {
    /// The root.
    pub(super) root: &'a Path,
    pub(super) way: Way,
}

/// How a program below a root is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// In the root, as this user where we may choose.
    Inside(u32),
    /// By its path, with the libraries of this machine.
    Outside,
}

impl Installed<'_> {
    /// A command of the program.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = match self.way {
            Way::Inside(user) => {
                let mut command = program::as_root("chroot");
                command.env_clear().env("PATH", program::path());
                if program::is_root() {
                    command.arg(format!("--userspec=+{user}:+{user}"));
                }
                command.arg(self.root).arg(ENTRY_POINT);
                command
            }
            Way::Outside => {
                let mut command = Command::new(self.root.join(ENTRY_POINT.trim_start_matches('/')));
                command.env_clear();
                command
            }
        };
        command.args(arguments);
        command
    }

    /// Tries the program, and returns its version.
    pub(super) fn try_out(&self, sources: &Sources<'_>) -> Result<String, DistError> {
        let version = check_version(&program::run(&mut self.command(&["--version"]))?, sources)?;
        let site = self.make_site()?;
        let shown = match self.way {
            Way::Inside(_) => "/trial".to_owned(),
            Way::Outside => site.to_string_lossy().into_owned(),
        };
        let file = site.join("conf/greeting");
        let greeting = || fs::read_to_string(&file).unwrap_or_default();
        program::run(&mut self.command(&["apply", "--yes", "--file", &shown]))?;
        ensure(greeting() == "hello\n", || format!("`apply` did not write {}", file.display()))?;

        fs::write(&file, "changed\n").map_err(DistError::file("write", &file))?;
        let plan = program::output(&mut self.command(&["plan", "--detailed-exitcode", "--file", &shown]))?;
        ensure(plan.status.code() == Some(2), || {
            format!("`plan` missed a change: {}", program::printed(&plan))
        })?;
        program::run(&mut self.command(&["apply", "--yes", "--file", &shown]))?;
        ensure(greeting() == "hello\n", || format!("`apply` did not repair {}", file.display()))?;

        program::run(&mut self.command(&["destroy", "--yes", "--file", &shown]))?;
        ensure(!site.join("conf").exists(), || "`destroy` left something behind".to_owned())?;
        fs::remove_dir_all(&site).map_err(DistError::file("remove", &site))?;
        Ok(version)
    }

    /// Writes the manifest into a folder that the program may write to.
    fn make_site(&self) -> Result<PathBuf, DistError> {
        let site = self.root.join("trial");
        fs::create_dir(&site).map_err(DistError::file("make", &site))?;
        let mut owner = "root".to_owned();
        match self.way {
            Way::Inside(user) if program::is_root() => {
                chown(&site, Some(user), Some(user)).map_err(DistError::file("make", &site))?;
                // By name, which the root's own list of users knows.
                if user != 0 {
                    "setpoint".clone_into(&mut owner);
                }
            }
            Way::Outside if !program::is_root() => owner = rustix::process::geteuid().as_raw().to_string(),
            _ => {}
        }
        let path = site.join("site.yaml");
        fs::write(&path, MANIFEST.replace("OWNER", &owner)).map_err(DistError::file("write", &path))?;
        Ok(site)
    }

    /// Tries to reach Consul and a Dataplane API by a name that only the root's own `/etc/hosts` has: the name is found, and nobody
    /// answers.
    pub(super) fn try_names(&self) -> Result<(), DistError> {
        let hosts = self.root.join("etc/hosts");
        let before = fs::read(&hosts).ok();
        fs::write(&hosts, format!("127.0.0.1 {HOST}\n")).map_err(DistError::file("write", &hosts))?;
        // Nothing listens on the lowest port.
        let url = format!("http://{HOST}:1");
        let mut printed = Vec::new();
        for words in [
            &["composite", "show", "trial", "--consul-only", "--consul-url", &url][..],
            &["haproxy", "plan", "-", "--url", &url],
        ] {
            printed.push(program::printed(&program::output(&mut self.command(words))?));
        }
        let restored = match before {
            Some(bytes) => fs::write(&hosts, bytes),
            None => fs::remove_file(&hosts),
        };
        restored.map_err(DistError::file("restore", &hosts))?;
        let unfound = printed.iter().find(|printed| !printed.contains("onnection refused"));
        ensure(unfound.is_none(), || format!("{HOST} was not found: {}", unfound.map_or("", String::as_str)))
    }
}
