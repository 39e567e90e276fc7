//! The binary as people install it: what `cargo xtask dist` makes of the one that these tests run.

use std::path::Path;

use setpoint_dist::verify::{self, Checker, Sources};
use setpoint_dist::{Bill, Compression, Documents, Packing, Release, Version, checksums};

use crate::sandbox::Sandbox;

/// The package is installed into a root of its own, the image's layers are unpacked, and the program is run in both.
#[test]
fn what_is_packed_of_the_binary_installs_and_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let (cargo, binary) = (Path::new(&cargo), Path::new(env!("CARGO_BIN_EXE_setpoint")));
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let version = Version::released(env!("CARGO_PKG_VERSION"));
    let release = Release { version, commit: None, epoch: 1_000_000_000 };
    let documents = Documents::of(binary).unwrap();
    let mut bill = Bill::read(cargo, &root, &target, &release).unwrap();
    bill.add_library("rust-std", env!("CARGO_PKG_RUST_VERSION"), "MIT OR Apache-2.0");
    let packing = Packing {
        binary,
        target: &target,
        release: &release,
        documents: &documents,
        bill: &bill,
        root: &root,
        compression: Compression::Fast,
    };
    let folder = tempfile::tempdir().unwrap();
    let artefacts = packing.pack(folder.path()).unwrap();
    checksums::write(folder.path()).unwrap();
    let checker = Checker::Nobody;
    let sources = Sources { cargo, root: &root, target: &target, release: &release, checker };
    let trials = verify::artefacts(folder.path(), &artefacts, &sources);
    let failed: Vec<String> = trials
        .iter()
        .filter_map(|trial| Some(format!("{}: {}", trial.what, trial.result.as_ref().err()?.with_causes())))
        .collect();
    assert_eq!(failed, [""; 0]);
    let tried: Vec<&str> = trials.iter().map(|trial| trial.what).collect();
    assert_eq!(tried, ["checksums", "binary", "package", "image", "archive", "bill"]);
}

#[test]
fn the_manual_names_the_files_that_are_there_after_a_run() {
    let sandbox = Sandbox::new("files:\n  a: {content: one}\nprocesses:\n  p: {command: sleep 600}\n");
    sandbox.ok(&["apply", "--yes"]);
    sandbox.ok(&["man", "pages"]);
    let page = sandbox.read("pages/setpoint-apply.1");
    for file in ["", "state.redb", "state.last", "lock", "run/"] {
        assert!(page.contains(&format!("\\fI\\&.setpoint/{file}\\fR")), "{file}");
        assert!(sandbox.path(".setpoint").join(file).exists(), "{file}");
    }
    let named = |name: String| page.contains(&format!("\\&.setpoint/{name}"));
    for entry in std::fs::read_dir(sandbox.path(".setpoint")).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(named(name.clone()), "{name} is in no FILES");
    }
    sandbox.ok(&["destroy", "--yes"]);
    let root = sandbox.read("pages/setpoint.1");
    assert!(root.contains("setpoint\\-plan(1)") && !root.contains("setpoint\\-help(1)"), "{root}");
}
