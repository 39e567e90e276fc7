//! Builds the tests, and takes in what the compiler has to say.
//!
//! ```text
//! cargo test --no-run ──JSON messages──┬─▶ test binaries, by package
//!                                      └─▶ warnings of the compiler, clippy and rustdoc, each shown once
//! ```

use std::collections::BTreeSet;
use std::fmt;
use std::io::{BufRead, BufReader, IsTerminal};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::limited::Watcher;

/// What a build came to.
#[derive(Debug, Default)]
pub(crate) struct Built {
    /// The test binaries, in the order in which they were built.
    pub(crate) binaries: Vec<Binary>,
    /// How many different warnings there were.
    pub(crate) warnings: usize,
    /// Whether all could be built.
    pub(crate) succeeded: bool,
}

/// One test binary.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Binary {
    /// The package it belongs to.
    pub(crate) package: String,
    /// The folder of the package: tests run in it.
    pub(crate) folder: PathBuf,
    /// The library, program or integration test that it tests.
    pub(crate) target: String,
    /// Where it is.
    pub(crate) path: PathBuf,
}

impl fmt::Display for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.package, self.target)
    }
}

/// One line of what cargo prints for programs.
#[derive(Debug, Deserialize)]
#[serde(tag = "reason")]
enum Message {
    #[serde(rename = "compiler-artifact")]
    Artifact(Artifact),
    #[serde(rename = "compiler-message")]
    Diagnostic { message: Diagnostic },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct Artifact {
    package_id: String,
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

#[derive(Debug, Deserialize)]
struct Diagnostic {
    level: String,
    rendered: Option<String>,
    message: String,
}

/// Runs a cargo command that builds tests. It ends when this process does: nothing goes on that holds cargo's lock.
pub(crate) fn run(cargo: &mut Command) -> Result<Built> {
    let watcher = Watcher::start().context("can't start what ends cargo")?;
    let colour = if std::io::stderr().is_terminal() { "-diagnostic-rendered-ansi" } else { "" };
    let mut child = cargo
        .arg(format!("--message-format=json{colour}"))
        .process_group(watcher.group()?)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("can't start cargo")?;
    let mut seen = Seen::default();
    for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines) {
        if let Some(text) = seen.read_line(&line.context("lost what cargo says")?) {
            eprint!("{text}");
        }
    }
    seen.built.succeeded = child.wait().context("lost cargo")?.success();
    watcher.dismiss();
    Ok(seen.built)
}

#[derive(Debug, Default)]
struct Seen {
    built: Built,
    shown: BTreeSet<String>,
}

impl Seen {
    /// Takes in one line; the text is to be shown. What is no message, such as what a build script prints, is passed over.
    fn read_line(&mut self, line: &str) -> Option<String> {
        match serde_json::from_str(line).ok()? {
            Message::Artifact(artifact) => {
                self.built.binaries.extend(artifact.binary());
                None
            }
            Message::Diagnostic { message } => {
                let text = message.rendered.unwrap_or(message.message);
                // A library is compiled twice, with its tests and without. `2 warnings emitted` says nothing new.
                let news = !text.contains("warnings emitted")
                    && !text.contains("warning emitted")
                    && self.shown.insert(text.clone());
                self.built.warnings += usize::from(news && message.level == "warning");
                news.then_some(text)
            }
            Message::Other => None,
        }
    }
}

impl Artifact {
    fn binary(self) -> Option<Binary> {
        let path = self.executable.filter(|_| self.profile.test)?;
        let folder = self.manifest_path.parent().map(Path::to_path_buf)?;
        // `path+file:///folder/name#1.2.3`, or `path+file:///folder#name@1.2.3` where the folder is called otherwise.
        let (place, version) = self.package_id.rsplit_once('#')?;
        let package =
            version.rsplit_once('@').map_or_else(|| place.rsplit('/').next(), |(name, _)| Some(name))?;
        let package = package.to_owned();
        let kind = self.target.kind.into_iter().next().unwrap_or_default();
        let target = format!("{kind} {}", self.target.name);
        Some(Binary { package, folder, target, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> (Built, String) {
        let mut seen = Seen::default();
        let shown = lines.iter().filter_map(|line| seen.read_line(line)).collect();
        (seen.built, shown)
    }

    #[test]
    fn test_binaries_are_found_among_artifacts() {
        let artifact = |id: &str, test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","package_id":"{id}","manifest_path":"/s/crates/a/Cargo.toml",
                    "target":{{"name":"all","kind":["test"]}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
            .replace('\n', "")
        };
        let (built, _) = read(&[
            &artifact("path+file:///s/crates/a#0.1.0", true, r#""/t/all-1""#),
            &artifact("path+file:///s/crates/a#setpoint-a@0.1.0", true, r#""/t/all-2""#),
            &artifact("path+file:///s/crates/a#0.1.0", false, r#""/t/setpoint""#),
            &artifact("path+file:///s/crates/a#0.1.0", false, "null"),
            r#"{"reason":"build-finished","success":true}"#,
            "something that a build script printed",
        ]);
        let binary = |package: &str, path: &str| Binary {
            package: package.into(),
            folder: "/s/crates/a".into(),
            target: "test all".into(),
            path: path.into(),
        };
        assert_eq!(built.binaries, [binary("a", "/t/all-1"), binary("setpoint-a", "/t/all-2")]);
    }

    #[test]
    fn a_warning_counts_and_is_shown_once() {
        let message = |level: &str, text: &str| {
            let message =
                serde_json::json!({ "level": level, "message": text, "rendered": format!("{text}\n") });
            serde_json::json!({ "reason": "compiler-message", "message": message }).to_string()
        };
        let (built, shown) = read(&[
            &message("warning", "unused variable"),
            &message("warning", "unused variable"),
            &message("warning", "1 warning emitted"),
            &message("error", "mismatched types"),
        ]);
        assert_eq!(built.warnings, 1);
        assert_eq!(shown, "unused variable\nmismatched types\n");
    }
}
