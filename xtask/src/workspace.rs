//! The workspace this command belongs to: where it is, and which packages it has.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The folder that holds the workspace's `Cargo.toml`.
pub fn root() -> PathBuf {
    root_of(std::env::var_os("CARGO_MANIFEST_DIR").as_deref())
}

/// Two checkouts that share a target folder share this program too, so that the one it was built in may be the other:
/// what `cargo run` says counts.
fn root_of(started_for: Option<&OsStr>) -> PathBuf {
    let is_own = |folder: &&Path| folder.file_name() == Some(OsStr::new("xtask"));
    // The other package with development commands is in the folder of this one.
    let started_for = started_for.and_then(|package| Path::new(package).ancestors().take(2).find(is_own));
    let package = started_for.unwrap_or(Path::new(env!("CARGO_MANIFEST_DIR")));
    package.parent().unwrap_or(Path::new(".")).to_path_buf()
}

/// Variables by which a caller would change what the compiler warns of, and how tests are started.
const OF_THE_CALLER: &[&str] = &[
    "RUSTFLAGS",
    "RUSTDOCFLAGS",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_ENCODED_RUSTDOCFLAGS",
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_RUSTDOCFLAGS",
];

/// Returns whether a variable is one of those, or the same for one target.
fn is_of_the_caller(variable: &str) -> bool {
    let for_target = variable.strip_prefix("CARGO_TARGET_").is_some_and(|rest| {
        ["_RUNNER", "_RUSTFLAGS", "_RUSTDOCFLAGS"].iter().any(|ending| rest.ends_with(ending))
    });
    for_target || OF_THE_CALLER.contains(&variable)
}

/// The `cargo` that runs this command.
pub fn cargo_path() -> PathBuf {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()).into()
}

/// A `cargo` command that runs in the workspace, with the toolchain that runs this one.
pub fn cargo() -> Command {
    let mut command = Command::new(cargo_path());
    command.current_dir(root());
    for (variable, _) in std::env::vars_os() {
        if variable.to_str().is_some_and(is_of_the_caller) {
            command.env_remove(variable);
        }
    }
    command
}

/// A `git` command that runs in the workspace, whoever owns it.
pub fn git() -> Command {
    let mut command = Command::new("git");
    command.args(["-c", "safe.directory=*"]).current_dir(root());
    command
}

/// One package of the workspace.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Package {
    /// The parts and groups of parts that its tests need: none if it does not use `setpoint-testutils`, and all,
    /// which is `None`, unless `package.metadata.setpoint.parts` names them.
    pub parts: Option<Vec<String>>,
    /// How many of its tests run at a time for each processor: more than one where `package.metadata.setpoint.threads` says
    /// that they wait most of the time.
    pub threads: usize,
    /// Its features, but for the default ones.
    pub features: Vec<String>,
    /// Whether it has a library: only libraries have documentation tests.
    pub has_library: bool,
    /// Its folder.
    pub folder: PathBuf,
}

/// The workspace's packages by name.
pub fn packages() -> Result<BTreeMap<String, Package>> {
    let packages = metadata()?.packages;
    Ok(packages.into_iter().map(|package| (package.name.clone(), package.into())).collect())
}

/// The folder that cargo puts what it built into.
pub fn target_directory() -> Result<PathBuf> {
    Ok(metadata()?.target_directory)
}

/// The folder in which cargo keeps what it compiled on the way.
pub fn build_directory() -> Result<PathBuf> {
    let metadata = metadata()?;
    Ok(metadata.build_directory.unwrap_or(metadata.target_directory))
}

fn metadata() -> Result<Metadata> {
    let output = cargo()
        .args(["metadata", "--format-version=1", "--no-deps"])
        .output()
        .context("can't run `cargo metadata`")?;
    ensure!(output.status.success(), "`cargo metadata` failed: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("`cargo metadata` printed something unexpected")
}

#[derive(Deserialize)]
struct Metadata {
    target_directory: PathBuf,
    /// From cargo 1.91 on.
    build_directory: Option<PathBuf>,
    packages: Vec<MetadataPackage>,
}

#[derive(Deserialize)]
struct MetadataPackage {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
    #[serde(default)]
    features: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    targets: Vec<Target>,
    metadata: Option<Own>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// None where it is a normal one.
    #[cfg(test)]
    kind: Option<String>,
}

/// What a package says of itself in `package.metadata`.
#[derive(Deserialize)]
struct Own {
    setpoint: Option<OwnTests>,
}

#[derive(Deserialize)]
struct OwnTests {
    parts: Option<Vec<String>>,
    threads: Option<NonZero<usize>>,
}

impl From<MetadataPackage> for Package {
    fn from(package: MetadataPackage) -> Self {
        const TESTUTILS: &str = "setpoint-testutils";
        let own = package.metadata.and_then(|own| own.setpoint);
        let threads = own.as_ref().and_then(|own| own.threads).map_or(1, NonZero::get);
        let named = own.and_then(|own| own.parts);
        let uses_parts = package.name == TESTUTILS
            || package.dependencies.iter().any(|dependency| dependency.name == TESTUTILS);
        let features = package.features.into_keys().filter(|name| name != "default").collect();
        let has_library = package.targets.iter().any(|target| target.kind.iter().any(|kind| kind == "lib"));
        let folder = package.manifest_path.parent().map(Path::to_path_buf).unwrap_or_default();
        let parts = if uses_parts { named } else { Some(Vec::new()) };
        Self { parts, threads, features, has_library, folder }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_crate_says_which_parts_its_tests_need_but_the_one_that_tries_them_all() {
        let all = packages().unwrap();
        let silent: Vec<&str> = all
            .iter()
            .filter(|(_, package)| package.parts.is_none())
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(silent, ["setpoint-testutils"]);
    }

    /// It has to say what is wrong also where a crate of the product can't be compiled.
    #[test]
    fn the_command_that_runs_the_tests_is_made_of_no_crate_of_the_product() {
        let packages = metadata().unwrap().packages;
        let members: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
        // What is compiled for tests only does not count.
        let needs = |name: &str| {
            let package = packages.iter().find(|package| package.name == name).unwrap();
            let all =
                package.dependencies.iter().filter(|dependency| dependency.kind.as_deref() != Some("dev"));
            all.map(|dependency| dependency.name.as_str())
                .filter(|name| members.contains(name))
                .collect::<Vec<_>>()
        };
        assert_eq!(needs("xtask"), ["setpoint-testutils"]);
        assert_eq!(needs("setpoint-testutils"), [""; 0]);
        assert!(needs("xtask-product").contains(&"setpoint-haproxy"), "the search finds nothing");
    }

    /// Whether a crate can reach anything is a matter of what it depends on, and not of what its modules say of themselves.
    #[test]
    fn a_crate_without_io_by_the_table_of_crates_depends_on_nothing_that_could_do_any() {
        const THAT_DO: [&str; 10] = [
            "futures-util",
            "hyper",
            "kube-client",
            "mio",
            "notify",
            "reqwest",
            "rustix",
            "setpoint-loop",
            "socket2",
            "tokio",
        ];
        let reached = |package: &str| {
            let arguments =
                ["tree", "--frozen", "--edges", "normal", "--prefix", "none", "--package", package];
            let output = cargo().args(arguments).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let tree = String::from_utf8(output.stdout).unwrap();
            let names: Vec<_> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
            THAT_DO.into_iter().filter(|name| names.contains(name)).collect::<Vec<_>>()
        };
        let architecture = std::fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
        let rows = architecture.lines().filter_map(|line| line.strip_prefix("| [`")?.split_once("`]"));
        let without: Vec<_> =
            rows.filter(|(_, rest)| rest.ends_with("| no |")).map(|(package, _)| package).collect();
        for package in ["setpoint-kv", "setpoint-structure", "setpoint-plan"] {
            assert!(without.contains(&package), "{package} is not in {without:?}");
        }
        for package in without {
            assert_eq!(reached(package), [""; 0], "{package}");
        }
        assert!(reached("setpoint-consul").contains(&"tokio"), "the search finds nothing");
    }

    #[test]
    fn the_workspace_is_the_one_that_this_was_started_in() {
        for package in ["/other/checkout/xtask", "/other/checkout/xtask/product"] {
            assert_eq!(root_of(Some(OsStr::new(package))), Path::new("/other/checkout"));
        }
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        assert_eq!((root_of(None).as_path(), root_of(Some(OsStr::new("/a/crates/b"))).as_path()), (own, own));
    }

    #[test]
    fn what_changes_warnings_or_how_tests_are_started_is_not_taken_from_the_caller() {
        for taken in [
            "CARGO_TARGET_DIR",
            "CARGO_HOME",
            "CARGO_BUILD_JOBS",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER",
        ] {
            assert!(!is_of_the_caller(taken), "{taken}");
        }
        for kept_out in
            ["RUSTFLAGS", "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", "CARGO_ENCODED_RUSTDOCFLAGS"]
        {
            assert!(is_of_the_caller(kept_out), "{kept_out}");
        }
    }

    #[test]
    fn a_package_whose_tests_wait_says_how_many_run_at_a_time() {
        let threads =
            |json: &str| Package::from(serde_json::from_str::<MetadataPackage>(json).unwrap()).threads;
        let of = |metadata: &str| {
            format!(
                r#"{{"name": "a", "manifest_path": "/a/Cargo.toml", "dependencies": [], "metadata": {metadata}}}"#
            )
        };
        assert_eq!(threads(&of("null")), 1);
        assert_eq!(threads(&of(r#"{"setpoint": {"parts": []}}"#)), 1);
        assert_eq!(threads(&of(r#"{"setpoint": {"threads": 3}}"#)), 3);
        assert_eq!(packages().unwrap()["setpoint-composite"].threads, 6);
    }

    #[test]
    fn a_package_needs_the_parts_it_names_or_all_or_none() {
        let parts = |json: &str| Package::from(serde_json::from_str::<MetadataPackage>(json).unwrap()).parts;
        assert_eq!(
            parts(r#"{"name": "a", "manifest_path": "/a/Cargo.toml", "dependencies": [], "metadata": null}"#),
            Some(vec![])
        );
        assert_eq!(
            parts(
                r#"{"name": "a", "manifest_path": "/a/Cargo.toml", "dependencies": [{"name": "setpoint-testutils"}], "metadata": null}"#
            ),
            None
        );
        assert_eq!(
            parts(
                r#"{"name": "a", "manifest_path": "/a/Cargo.toml", "dependencies": [{"name": "setpoint-testutils"}],
                    "metadata": {"setpoint": {"parts": ["etcd"]}}}"#
            ),
            Some(vec!["etcd".to_owned()])
        );
    }
}
