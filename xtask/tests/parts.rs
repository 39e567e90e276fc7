//! `cargo xtask parts` when registries, disks and cache entries misbehave, and when it is cut off; the Dataplane API,
//! which it only finds; and a test run that is killed.
//!
//! All on the smallest part of each kind, in a cache folder of the test's own.
#![cfg_attr(test, expect(clippy::unwrap_used, reason = "helpers of tests fail the test"))]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use setpoint_testutils::manifest::{Manifest, PartState, PartStatus};
use setpoint_testutils::{
    Backend, Dataplane, DataplaneProgram, Missing, Port, Process, Version, Workdir, http, need, part, wait,
};

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

    need!(part::program(DEBIAN_PART, "ping"));
    let settings = folder.write("apt.conf", format!("Acquire::http::Proxy \"{registry}\";\n"));
    let output = xtask(DEBIAN_PART, &folder).env("APT_CONFIG", settings).output().unwrap();
    let text = complaint(DEBIAN_PART, &output);
    assert!(text.contains("refuses it") && text.contains("403"), "{text}");
}

#[test]
fn a_machine_without_go_or_apt_is_told_what_to_install() {
    let folder = Workdir::new("parts");
    for (part, wanted) in [(GO_PART, "go"), (DEBIAN_PART, "apt-get")] {
        let output = xtask(part, &folder).env("PATH", folder.path()).arg("--json").output().unwrap();
        let text = complaint(part, &output);
        assert!(text.contains(&format!("there is no `{wanted}` on this machine; install it")), "{text}");
        assert_eq!(status(part, &folder, &output.stdout).0, PartState::Unavailable);
    }
}

#[test]
fn a_full_disk_is_named_with_what_to_do() {
    need!(can_build_with_go());
    need!(part::program(DEBIAN_PART, "ping"));
    need!(part::root("a small disk"));
    let folder = Workdir::new("parts");
    // A small disk that only this command sees, and that is gone with it.
    let script = "mkdir -p \"$1\" && mount -t tmpfs -o size=128k none \"$1\" && exec \"$2\" parts \"$3\" --parts-dir \"$1\"";
    for part in [GO_PART, DEBIAN_PART] {
        let output = Command::new("unshare")
            .args(["--mount", "sh", "-c", script, "sh"])
            .arg(folder.path().join("disk"))
            .args([env!("CARGO_BIN_EXE_xtask"), part])
            .output()
            .unwrap();
        let text = complaint(part, &output);
        assert!(text.contains("the disk is full") && text.contains("--parts-dir"), "{text}");
    }
}

#[tokio::test]
async fn a_run_that_is_killed_leaves_no_entry_and_a_damaged_entry_is_made_anew() {
    need!(can_build_with_go());
    let folder = Workdir::new("parts");
    let entries = || -> Vec<_> {
        let entries = fs::read_dir(folder.path().join("parts").join(GO_PART)).into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let making = || entries().iter().any(|name| name == ".building");
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
    let status = status(GO_PART, &folder, &output.stdout);
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

#[test]
fn a_dry_run_leaves_nothing_behind() {
    let folder = Workdir::new("parts");
    let output = xtask(DEBIAN_PART, &folder).args(["--dry-run", "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(status(DEBIAN_PART, &folder, &output.stdout).0, PartState::Missing);
    assert!(!folder.path().join("parts").exists());
}

#[tokio::test]
async fn two_runs_at_once_make_a_part_once() {
    need!(can_build_with_go());
    let folder = Workdir::new("parts");
    let logs = ["one", "two"].map(|name| folder.path().join(name));
    let runs = logs.each_ref().map(|log| Process::start("xtask", &mut xtask(GO_PART, &folder), log));
    for run in &runs {
        let status = wait::until("a run to end", wait::LIMIT * 3, async || run.exit_status()).await;
        assert!(status.success(), "{}", run.log());
    }
    let built = logs.iter().filter(|log| fs::read_to_string(log).unwrap().contains("building")).count();
    assert_eq!(built, 1);
}

#[tokio::test]
async fn a_test_binary_is_gone_when_the_run_that_started_it_is_killed() {
    let folder = Workdir::new("limited");
    let file = folder.path().join("process");
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(["run-test", "--limit", "600", "/bin/sh", "-c", "echo $$ > \"$1\"; exec sleep 600", "sh"]);
    let mut run = Process::start("xtask", command.arg(&file), &folder.path().join("log"));
    let written = async || fs::read_to_string(&file).ok().filter(|text| text.ends_with('\n'));
    let process = run.until("the binary has started", written).await;
    let there = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", process.trim())).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    assert!(there());
    run.kill();
    wait::until("the binary to be gone", wait::LIMIT, async || (!there()).then_some(())).await;
}

/// What answers instead of a Dataplane API: `$haproxy`, which reads port, users and configuration from the file that
/// it is given, as the real one does, and checks the configuration at its start.
const STAND_IN: &str = r#"#!/bin/sh
[ "$1" = --version ] && { echo "HAProxy Data Plane API v3.4.2 0123abc"; exit; }
[ "$1" = -f ] || { echo "no configuration file" >&2; exit 1; }
value() { sed -n "s/^ *\"$1\": \"*\([^\",{]*\)\"*,*\$/\1/p" "$file"; }
file=$2
"$(value haproxy_bin)" -c -f "$(value config_file)" || exit 1
for key in transaction_dir maps_dir ssl_certs_dir general_storage_dir spoe_dir; do
    [ -d "$(value $key)" ] || { echo "$key is no folder" >&2; exit 1; }
done
[ -S "$(value master_runtime)" ] || { echo "no master socket" >&2; exit 1; }
cat > api.cfg <<END
defaults
  mode http
  timeout client 5s
frontend api
  bind $(value host):$(value port)
  http-request auth unless { http_auth($(value userlist)) }
  http-request return status 200 content-type application/json string {\"api\":{\"version\":\"v3.4.2\"}} if { path /v3/info }
END
exec "$(value haproxy_bin)" -db -f "$(value userlist_file)" -f api.cfg
"#;

#[tokio::test]
async fn dataplaneapi_is_found_where_the_variable_lists_it_started_and_gone_afterwards() {
    need!(Version::V3_4.program());
    let folder = Workdir::new("parts");
    let program = folder.write("stand-in", STAND_IN);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = xtask("dataplaneapi", &folder);
    let output = command.arg("--json").env("SETPOINT_DATAPLANEAPI", &program).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let found = part_in("dataplaneapi-3.4", &folder, &output.stdout);
    assert_eq!((found.state, found.version.as_deref()), (PartState::Ready, Some("3.4.2")));

    let program = DataplaneProgram { version: found.version.unwrap(), path: found.path.unwrap() };
    let mut api = need!(Dataplane::start(&program).await);
    assert_eq!(api.info().await.unwrap()["api"]["version"], "v3.4.2");
    let nobody = http::client().get(format!("{}/info", api.url())).send().await.unwrap();
    assert_eq!(nobody.status(), 401, "it asks for a name and a password");
    assert_eq!(http::get(&api.haproxy().url()).await.as_deref(), Some("haproxy"));

    api.process().pause();
    let paused = tokio::time::timeout(std::time::Duration::from_millis(500), api.info()).await;
    assert!(paused.is_err(), "a paused one answers nothing");
    api.process().resume();
    api.info().await.unwrap();
    let (before, url) = (api.process().id(), api.url());
    api.process().kill();
    assert!(api.info().await.is_err());
    assert_eq!(http::get(&api.haproxy().url()).await.as_deref(), Some("haproxy"), "HAProxy goes on");
    api.restart().await;
    assert_eq!(api.url(), url);
    assert_ne!(api.process().id(), before);

    let (folders, ids) = (
        [api.folder().to_path_buf(), api.haproxy().folder().to_path_buf()],
        [api.process().id(), api.haproxy().process().id()],
    );
    drop(api);
    assert!(folders.iter().all(|folder| !folder.exists()), "{folders:?}");
    assert!(ids.iter().all(|id| !Path::new("/proc").join(id.to_string()).exists()), "{ids:?}");
}

#[test]
fn dataplaneapi_that_tells_no_version_is_not_used() {
    let folder = Workdir::new("parts");
    let program = folder.write("stand-in", "#!/bin/sh\necho I am not telling\n");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = xtask("dataplaneapi", &folder);
    let output = command.arg("--json").env("SETPOINT_DATAPLANEAPI", &program).output().unwrap();
    assert!(output.status.success(), "the part is optional: {output:?}");
    let (state, why) = status("dataplaneapi", &folder, &output.stdout);
    assert_eq!(state, PartState::Unavailable);
    assert!(why.contains("no version") && why.contains("stand-in"), "{why}");
}

/// The state of a part, and why, from what `--json` printed.
fn status(part: &str, folder: &Workdir, json: &[u8]) -> (PartState, String) {
    let part = part_in(part, folder, json);
    (part.state, part.why.unwrap_or_default())
}

/// What `--json` printed of a part.
fn part_in(part: &str, folder: &Workdir, json: &[u8]) -> PartStatus {
    let file: &Path = &folder.write("printed", json);
    Manifest::read(file).unwrap().get(part).unwrap().clone()
}
