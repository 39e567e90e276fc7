//! Builds the binary that is packed: optimised, stripped and static.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use xtask::workspace;

/// Links the C library in.
const CRT_STATIC: &str = "-C target-feature=+crt-static";

/// Builds `setpoint` for a target, and returns where it is.
///
/// Paths of this machine are left out of it, so that another machine builds the same.
pub(crate) fn build(target: &str) -> Result<PathBuf> {
    let mut command = command(target);
    let output = command.stderr(Stdio::inherit()).output().context("can't run `cargo build`")?;
    ensure!(output.status.success(), "`cargo build` for {target} failed");
    let messages = String::from_utf8_lossy(&output.stdout);
    executable(&messages).with_context(|| format!("`cargo build` for {target} made no binary"))
}

/// The command that builds it, with flags that are the same whoever calls it.
fn command(target: &str) -> Command {
    let mut flags = vec![CRT_STATIC.to_owned()];
    for (from, to) in [(cargo_home(), "/cargo"), (Some(workspace::root()), "/setpoint")] {
        flags.extend(from.map(|from| format!("--remap-path-prefix={}={to}", from.display())));
    }
    let mut command = workspace::cargo();
    command.args(["build", "--locked", "--package", "setpoint", "--profile", "dist", "--target", target]);
    command.arg("--message-format=json-render-diagnostics").env("RUSTFLAGS", flags.join(" "));
    command
}

/// What cargo says of something that it built.
#[derive(Deserialize)]
struct Artifact {
    executable: Option<PathBuf>,
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

/// The binary among the messages of cargo, one a line.
fn executable(messages: &str) -> Option<PathBuf> {
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<Artifact>(line).ok());
    artifacts
        .filter(|artifact| artifact.target.as_ref().is_some_and(|target| target.name == "setpoint"))
        .find_map(|artifact| artifact.executable)
}

/// Where cargo keeps the sources of crates.
fn cargo_home() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("CARGO_HOME").or_else(|| set("HOME").map(|home| home.join(".cargo")))
}

/// The target of this machine.
pub(crate) fn host() -> Result<String> {
    let text = rustc(&["--version", "--verbose"])?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc --version --verbose` names no host")?.to_owned())
}

/// The version of the compiler, and so of its standard library.
pub(crate) fn rust_version() -> Result<String> {
    let text = rustc(&["--version"])?;
    Ok(text.split_whitespace().nth(1).context("`rustc --version` names no version")?.to_owned())
}

/// The version of this machine's C library.
pub(crate) fn glibc_version() -> Result<String> {
    let output = Command::new("ldd").arg("--version").output().context("can't run `ldd --version`")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.lines().next().and_then(|line| line.split_whitespace().next_back());
    Ok(version.context("`ldd --version` names no version")?.to_owned())
}

/// Fails, with what to do, where the standard library of a target is not installed.
pub(crate) fn installed(target: &str) -> Result<()> {
    let libraries = Path::new(rustc(&["--print", "sysroot"])?.trim()).join("lib/rustlib");
    if !target.contains("-linux-") {
        bail!("can't pack for {target}: only programs for Linux are packed");
    }
    if !libraries.join(target).join("lib").is_dir() {
        bail!("the target {target} is not installed; `rustup target add {target}` does so");
    }
    Ok(())
}

fn rustc(arguments: &[&str]) -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).args(arguments).current_dir(workspace::root()).output();
    let output = output.context("can't run `rustc`")?;
    ensure!(output.status.success(), "`rustc {}` failed", arguments.join(" "));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_is_found_among_all_that_cargo_built() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"build-script-build"},"executable":"/t/script"}
{"reason":"build-script-executed","package_id":"x"}
{"reason":"compiler-artifact","target":{"name":"setpoint_host"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"setpoint"},"executable":"/t/dist/setpoint"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executable(messages), Some(PathBuf::from("/t/dist/setpoint")));
        assert_eq!(executable("no json"), None);
    }

    #[test]
    fn a_release_is_built_with_the_same_flags_whatever_the_callers_are() {
        const STRANGE: &str = "-C target-cpu=native";
        let flags = |name: &str| {
            let command = command("x86_64-unknown-linux-gnu");
            let set = command.get_envs().find(|(known, _)| *known == name);
            set.and_then(|(_, value)| Some(value?.to_string_lossy().into_owned()))
        };
        let found = flags("RUSTFLAGS").unwrap();
        assert!(found.starts_with(CRT_STATIC) && !found.contains(STRANGE), "{found}");
        // A caller has flags of its own in a process of its own.
        if std::env::var_os("RUSTFLAGS").is_none() {
            let name = "dist::build::tests::a_release_is_built_with_the_same_flags_whatever_the_callers_are";
            let mut again = Command::new(std::env::current_exe().unwrap());
            again.args(["--exact", name]).env("RUSTFLAGS", STRANGE).env("CARGO_ENCODED_RUSTFLAGS", STRANGE);
            let output = again.output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
        } else {
            assert_eq!(flags("CARGO_ENCODED_RUSTFLAGS"), None, "it would count instead");
            assert!(
                workspace::cargo()
                    .get_envs()
                    .any(|(name, set)| name == "CARGO_ENCODED_RUSTFLAGS" && set.is_none())
            );
        }
    }

    #[test]
    fn a_target_that_is_not_installed_is_named_with_what_to_do() {
        let error = installed("s390x-unknown-linux-gnu").unwrap_err().to_string();
        assert!(error.contains("`rustup target add s390x-unknown-linux-gnu`"), "{error}");
        assert!(installed("x86_64-pc-windows-gnu").is_err());
        installed(&host().unwrap()).unwrap();
    }
}
