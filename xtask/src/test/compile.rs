//! Compiles one crate of the workspace for `cargo xtask test`: cargo starts the compiler through this.
//!
//! ```text
//! cargo ──▶ compile RUSTC ARGUMENTS ─┬─▶ clippy-driver: compiles and lints
//!                                    └─▶ rustdoc: renders the documentation of a library or a program
//! ```
//!
//! Lints, documentation and tests then share one build of everything they depend on, which `cargo clippy` and
//! `cargo doc` would each make for themselves. What both tools have to say goes to cargo as JSON on the standard error
//! output, and cargo shows it, remembers it, and shows it again when nothing is built anew.
//!
//! `compile` is another name of this program. A script would not do: shells pass on no variable with a dash in its name,
//! such as `CARGO_BIN_EXE_setpoint-bench`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::{exit, workspace};

/// Where `rustdoc` renders to; set by `cargo xtask test`.
const DOCUMENTATION: &str = "SETPOINT_DOCUMENTATION";
/// The compiler driver that lints; set by `cargo xtask test`.
const LINTER: &str = "SETPOINT_LINTER";

/// The name by which this program is a compiler.
const NAME: &str = "compile";

/// A copy of this program that stays as it is while the workspace, and this program with it, is built anew.
#[derive(Debug)]
pub(crate) struct Program {
    folder: PathBuf,
}

impl Program {
    /// Makes the copy, or finds it.
    pub(crate) fn copy() -> Result<Self> {
        let folder = workspace::target_directory()?.join("xtask");
        let copied = || -> std::io::Result<()> {
            std::fs::create_dir_all(&folder)?;
            // Another run may be using the copy that is there: it is replaced, and not written to.
            let beside = folder.join(format!("xtask.{}", std::process::id()));
            std::fs::copy("/proc/self/exe", &beside)?;
            std::fs::rename(beside, folder.join("xtask"))?;
            let beside = folder.join(format!("{NAME}.{}", std::process::id()));
            std::os::unix::fs::symlink("xtask", &beside)?;
            std::fs::rename(beside, folder.join(NAME))
        };
        copied().with_context(|| format!("can't copy this program to {}", folder.display()))?;
        Ok(Self { folder })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join("xtask")
    }

    /// Makes a cargo command compile the workspace through it. Cargo compiles all anew when it is told another path.
    pub(crate) fn instrument(&self, cargo: &mut Command) -> Result<()> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = Command::new(&rustc)
            .args(["--print", "sysroot"])
            .output()
            .with_context(|| format!("can't run {}", rustc.display()))?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        let sysroot = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        let linter = sysroot.join("bin").join("clippy-driver");
        ensure!(
            linter.exists(),
            "{} is not there: install clippy (`rustup component add clippy`)",
            linter.display()
        );
        cargo.env("RUSTC_WORKSPACE_WRAPPER", self.folder.join(NAME));
        cargo.env(LINTER, linter).env(DOCUMENTATION, self.folder.join("documentation"));
        Ok(())
    }
}

/// Compiles, if this program was started as a compiler.
pub(crate) fn run() -> Option<Result<ExitCode>> {
    let mut arguments = std::env::args_os();
    let name = arguments.next()?;
    if Path::new(&name).file_name() != Some(OsStr::new(NAME)) {
        return None;
    }
    let rustc = PathBuf::from(arguments.next()?);
    Some(compile(&rustc, &arguments.collect::<Vec<_>>()))
}

/// Compiles and lints, and then renders the documentation.
fn compile(rustc: &Path, arguments: &[OsString]) -> Result<ExitCode> {
    let linter = std::env::var_os(LINTER).unwrap_or_else(|| "clippy-driver".into());
    let status = Command::new(&linter)
        .arg(rustc)
        .args(arguments)
        .status()
        .with_context(|| format!("can't run {}", linter.display()))?;
    if !status.success() {
        return Ok(exit::like(status));
    }
    let (Some(folder), Some(documented)) = (std::env::var_os(DOCUMENTATION), documented(arguments)) else {
        return Ok(ExitCode::SUCCESS);
    };
    let rustdoc = rustc.with_file_name("rustdoc");
    let status = Command::new(&rustdoc)
        .args(&documented.words)
        .arg("--out-dir")
        .arg(Path::new(&folder).join(documented.name))
        .status()
        .with_context(|| format!("can't run {}", rustdoc.display()))?;
    Ok(exit::like(status))
}

/// What `rustdoc` is told of a crate.
#[derive(Debug, PartialEq, Eq)]
struct Documented {
    /// A name of its own for the crate's pages: a library and a program may be called alike.
    name: String,
    words: Vec<OsString>,
}

/// The compiler's arguments as `rustdoc` takes them; none for what has no documentation: tests, examples, build
/// scripts, and what only asks the compiler something.
fn documented(arguments: &[OsString]) -> Option<Documented> {
    let mut words = Vec::new();
    let (mut crate_name, mut crate_type, mut source) = (None, None, None);
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let text = word.to_str()?;
        match text {
            "--test" | "-vV" => return None,
            // Of code generation: rustdoc makes none.
            "-C" | "--out-dir" => drop(rest.next()),
            "--crate-name" | "--crate-type" | "--cfg" | "--check-cfg" | "--extern" | "-L" | "--cap-lints" => {
                let value = rest.next()?;
                match text {
                    "--crate-name" => crate_name = value.to_str(),
                    "--crate-type" => crate_type = value.to_str(),
                    _ => {}
                }
                words.extend([word.clone(), value.clone()]);
            }
            _ if text.starts_with("--emit") || text.starts_with("--print") => {
                if !text.contains("link") {
                    return None;
                }
            }
            _ if text.starts_with('-') => words.push(word.clone()),
            _ => {
                source = Some(text);
                words.push(word.clone());
            }
        }
    }
    let source = Path::new(source?);
    let inside = source.components().any(|part| part.as_os_str() == OsStr::new("src"));
    let example = source.components().any(|part| part.as_os_str() == OsStr::new("examples"));
    if !inside || example {
        return None;
    }
    let crate_type = crate_type?;
    if crate_type == "bin" {
        // Nobody uses a program's public items; its documentation is for those who work on it.
        words.extend(["--document-private-items", "-Arustdoc::private-intra-doc-links"].map(OsString::from));
    }
    Some(Documented { name: format!("{}-{crate_type}", crate_name?), words })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn rustdoc_is_told_what_the_compiler_is_told_of_a_library() {
        let line = "--crate-name setpoint_plan --edition=2024 crates/setpoint-plan/src/lib.rs --error-format=json \
                    --json=diagnostic-rendered-ansi,artifacts --crate-type lib --emit=dep-info,metadata,link \
                    -C opt-level=1 --warn=missing_docs --cfg feature=\"x\" --out-dir /t/deps \
                    -C incremental=/t/incremental -L dependency=/t/deps --extern serde=/t/deps/libserde.rlib";
        let documented = documented(&words(line)).unwrap();
        assert_eq!(documented.name, "setpoint_plan-lib");
        let expected = "--crate-name setpoint_plan --edition=2024 crates/setpoint-plan/src/lib.rs \
                        --error-format=json --json=diagnostic-rendered-ansi,artifacts --crate-type lib \
                        --warn=missing_docs --cfg feature=\"x\" -L dependency=/t/deps \
                        --extern serde=/t/deps/libserde.rlib";
        assert_eq!(documented.words, words(expected));
    }

    #[test]
    fn a_programs_private_items_are_documented() {
        let line = "--crate-name xtask xtask/src/main.rs --crate-type bin --emit=dep-info,link";
        assert!(documented(&words(line)).unwrap().words.contains(&"--document-private-items".into()));
    }

    #[test]
    fn tests_examples_and_questions_have_no_documentation() {
        for line in [
            "--crate-name a crates/a/src/lib.rs --emit=dep-info,link --test",
            "--crate-name library crates/a/examples/library.rs --crate-type bin --emit=dep-info,link",
            "--crate-name build_script_build crates/a/build.rs --crate-type bin --emit=dep-info,link",
            "--crate-name a crates/a/src/lib.rs --crate-type lib --emit=dep-info,metadata",
            "- --crate-name ___ --print=file-names --crate-type bin",
            "-vV",
        ] {
            assert_eq!(documented(&words(line)), None, "{line}");
        }
    }
}
