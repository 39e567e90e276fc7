//! `cargo xtask parts` when registries, disks and cache entries misbehave, and when it is cut off.
//!
//! All on the smallest part of each kind, in a cache folder of the test's own.
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "helpers of tests fail the test"))]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use setpoint_testutils::manifest::{Manifest, PartState};
use setpoint_testutils::{Backend, Missing, Port, Process, Workdir, need, part, wait};

const GO_PART: &str = "wireguard-go";
const DEBIAN_PART: &str = "iputils-ping";

/// `cargo xtask parts` for one part, with empty caches of its own.
fn xtask(part: &str, folder: &Workdir) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["parts", part, "--parts-dir"]).arg(folder.path().join("parts"));
    command
}

/// Points Go to another registry, and away from what it has already.
fn with_registry<'a>(command: &'a mut Command, folder: &Workdir, registry: &str) -> &'a mut Command {
    command
        .env("GOPROXY", registry)
        .env("GOFLAGS", "-modcacherw")
        .env("GOMODCACHE", folder.path().join("modules"))
        .env("GOCACHE", folder.path().join("builds"))
}

/// Fails, with words that name the part.
fn complaint(part: &str, output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{text}");
    let named = |line: &str| line.starts_with(&format!("parts: {part}: ")) && line.contains(';');
    assert!(text.lines().any(named), "nothing is said of {part}: {text}");
    text
}

fn can_build_with_go() -> Result<PathBuf, Missing> {
    part::program(GO_PART, "wireguard-go")
}

#[test]
fn a_registry_out_of_reach_is_named_with_what_to_do() {
    need!(can_build_with_go());
    let (folder, port) = (Workdir::new("parts"), Port::lease());
    let output = with_registry(&mut xtask(GO_PART, &folder), &folder, &port.http()).output().unwrap();
    let text = complaint(GO_PART, &output);
    assert!(text.contains("out of reach") && text.contains("GOPROXY"), "{text}");

    need!(part::program(DEBIAN_PART, "ping"));
    let settings = folder.write("apt.conf", format!("Acquire::http::Proxy \"{}\";\n", port.http()));
    let output = xtask(DEBIAN_PART, &folder).env("APT_CONFIG", settings).output().unwrap();
    let text = complaint(DEBIAN_PART, &output);
    assert!(text.contains("out of reach"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_that_refuses_or_sends_rubbish_is_named_with_what_to_do() {
    need!(can_build_with_go());
    let folder = Workdir::new("parts");
    let rubbish = Backend::start("this is no module").await;
    let registry = format!("http://{}", rubbish.address());
    let output = with_registry(&mut xtask(GO_PART, &folder), &folder, &registry).output().unwrap();
    let text = complaint(GO_PART, &output);
    assert!(text.contains("arrived broken"), "{text}");

    let refusing = Backend::start_refusing(403).await;
    let registry = format!("http://{}", refusing.address());
    let output = with_registry(&mut xtask(GO_PART, &folder), &folder, &registry).output().unwrap();
    let text = complaint(GO_PART, &output);
    assert!(text.contains("refuses it"), "{text}");
}

#[test]
fn a_full_disk_is_named_with_what_to_do() {
    need!(can_build_with_go());
    need!(part::root("a small disk"));
    let folder = Workdir::new("parts");
    // A small disk that only this command sees, and that is gone with it.
    let script = "mkdir -p \"$1\" && mount -t tmpfs -o size=256k none \"$1\" && exec \"$2\" parts \"$3\" --parts-dir \"$1\"";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .arg(folder.path().join("disk"))
        .args([env!("CARGO_BIN_EXE_xtask"), GO_PART])
        .output()
        .unwrap();
    let text = complaint(GO_PART, &output);
    assert!(text.contains("the disk is full") && text.contains("--parts-dir"), "{text}");
}

#[tokio::test]
async fn a_run_that_is_killed_leaves_no_entry_and_a_damaged_entry_is_made_anew() {
    need!(can_build_with_go());
    let folder = Workdir::new("parts");
    let entries = || -> Vec<_> {
        let entries = fs::read_dir(folder.path().join("parts").join(GO_PART)).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let making = || entries().iter().any(|name| name.starts_with(".making-"));
    let whole = || entries().into_iter().filter(|name| !name.starts_with('.')).collect::<Vec<_>>();

    // A registry that takes a request and never answers it.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let registry = format!("http://{}", silent.local_addr().unwrap());
    let mut command = xtask(GO_PART, &folder);
    with_registry(&mut command, &folder, &registry);
    let mut run = Process::start("xtask", &mut command, &folder.path().join("log"));
    run.until("it is making the part", async || making().then_some(())).await;
    run.kill();
    assert!(making() && whole().is_empty(), "{:?}", entries());

    let output = xtask(GO_PART, &folder).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(!making(), "what the killed run left is gone: {:?}", entries());
    let [entry] = <[_; 1]>::try_from(whole()).unwrap();

    let program = folder.path().join("parts").join(GO_PART).join(entry).join("bin/wireguard-go");
    fs::write(&program, "no program").unwrap();
    let output = xtask(GO_PART, &folder).args(["--dry-run", "--json"]).output().unwrap();
    let status = status(&folder, &output.stdout);
    assert_eq!(status.0, PartState::Missing);
    assert!(
        status.1.contains("damaged") && status.1.contains("`cargo xtask parts wireguard-go`"),
        "{}",
        status.1
    );

    let output = xtask(GO_PART, &folder).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && text.contains("making it anew"), "{text}");
    assert!(fs::metadata(&program).unwrap().len() > 100_000);
}

#[tokio::test]
async fn two_runs_at_once_make_a_part_once() {
    need!(can_build_with_go());
    let folder = Workdir::new("parts");
    let logs = ["one", "two"].map(|name| folder.path().join(name));
    let runs = logs.each_ref().map(|log| Process::start("xtask", &mut xtask(GO_PART, &folder), log));
    for run in &runs {
        let status = wait::until("a run to end", wait::READY * 3, async || run.exit_status()).await;
        assert!(status.success(), "{}", run.log());
    }
    let built = logs.iter().filter(|log| fs::read_to_string(log).unwrap().contains("building")).count();
    assert_eq!(built, 1);
}

/// The state of the Go part, and why, from what `--json` printed.
fn status(folder: &Workdir, json: &[u8]) -> (PartState, String) {
    let file: &Path = &folder.write("printed", json);
    let manifest = Manifest::read(file).unwrap();
    let part = manifest.get(GO_PART).unwrap();
    (part.state, part.why.clone().unwrap_or_default())
}
