//! `cargo xtask test` as a whole, on a small workspace in which much is wrong: each wrong thing is counted and named.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long something that has to come may take, on a machine that is busy with other things: a build, mostly.
const LIMIT: Duration = Duration::from_mins(10);

/// Tests of which two are wrong, one can't run, one has no excuse for that, one starts what someone installed by hand, and one sees the machine.
const TESTS: &str = r#"//! Tests.

#[test]
fn holds() {}

#[test]
fn breaks() {
    assert_eq!(1, 2);
}

#[test]
#[ignore]
fn is_passed_over() {}

#[test]
fn can_not_run() {
    skip("{\"test\":\"can_not_run\",\"reason\":\"no etcd\",\"lacks\":\"root\"}\n");
}

#[test]
fn does_not_want_to_run() {
    skip("{\"test\":\"does_not_want_to_run\",\"reason\":\"no luck\",\"lacks\":\"luck\"}\n");
}

fn skip(line: &str) {
    use std::io::Write;
    let file = std::env::var("SETPOINT_SKIPS").unwrap();
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(file).unwrap();
    file.write_all(line.as_bytes()).unwrap();
}

#[test]
fn starts_something_and_does_not_care() {
    let _ = std::process::Command::new("handmade").status();
}

#[test]
fn sees_only_what_is_listed() {
    assert!(std::env::var("LEAKED").is_err());
}
"#;

/// A library with a warning, a line that is not formatted, and an example that does not hold.
const LIBRARY: &str = "//! A library.

/// One.
///
/// ```
/// assert_eq!(wrong::one(), 2);
/// ```
pub fn one() -> u32 {
    let unused = 2;
  1
}
";

const RIGHT: &str = "//! A library.

/// One.
///
/// ```
/// assert_eq!(wrong::one(), 1);
/// ```
pub fn one() -> u32 {
    1
}
";

struct Workspace {
    folder: TempDir,
}

impl Workspace {
    fn new(library: &str, tests: &str) -> Self {
        let this = Self { folder: tempfile::tempdir().unwrap() };
        let own = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        fs::create_dir_all(this.path("wrong/src")).unwrap();
        fs::create_dir_all(this.path("wrong/tests")).unwrap();
        fs::create_dir_all(this.path("setpoint/src")).unwrap();
        fs::create_dir_all(this.path("scratch")).unwrap();
        fs::create_dir_all(this.path("bin")).unwrap();
        fs::copy(own.parent().unwrap().join("tests.toml"), this.path("tests.toml")).unwrap();
        this.write("parts.toml", "part = []\n[debian]\nsuites = []\n");
        this.write("Cargo.toml", "[workspace]\nmembers = [\"wrong\", \"setpoint\"]\nresolver = \"3\"\n");
        let package =
            |name: &str| format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
        this.write("wrong/Cargo.toml", &package("wrong"));
        this.write("wrong/src/lib.rs", library);
        this.write("wrong/tests/all.rs", tests);
        // Of its two jobs one can't be built alone.
        let features = "[features]\ndefault = [\"host\", \"haproxy\"]\nhost = []\nhaproxy = []\n";
        this.write("setpoint/Cargo.toml", &(package("setpoint") + features));
        this.write("setpoint/src/lib.rs", "//! The command.\n");
        this.write("bin/handmade", "#!/bin/sh\n");
        fs::set_permissions(this.path("bin/handmade"), fs::Permissions::from_mode(0o755)).unwrap();
        this
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.path(path), text).unwrap();
    }

    /// `cargo xtask test`, as `cargo run` would start it.
    fn test(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.path("bin")).chain(std::env::split_paths(&path));
        command
            .arg("test")
            .args(arguments)
            .arg("--parts-dir")
            .arg(self.path("cache"))
            .current_dir(self.folder.path())
            .env("CARGO_MANIFEST_DIR", self.path("xtask"))
            .env("CARGO_TARGET_DIR", self.path("target"))
            .env("TMPDIR", self.path("scratch"))
            .env("PATH", std::env::join_paths(folders).unwrap())
            .env("LEAKED", "yes")
            .env("RUSTFLAGS", "-Awarnings")
            .env_remove("CI")
            .stdin(Stdio::null());
        command
    }

    /// Waits for a file that something in a run writes.
    fn await_file(&self, path: &str, run: &mut Child) {
        let begun = Instant::now();
        while !self.path(path).exists() {
            assert_eq!(run.try_wait().unwrap(), None, "it ended before {path} was written");
            assert!(begun.elapsed() < LIMIT, "{path} was not written within {LIMIT:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran(self.test(arguments).output().unwrap())
    }
}

fn terminate(child: &Child) {
    let sent = Command::new("sh").args(["-c", &format!("kill -TERM {}", child.id())]).status().unwrap();
    assert!(sent.success());
}

struct Ran(Output);

impl Ran {
    fn out(&self) -> String {
        String::from_utf8_lossy(&self.0.stdout).into_owned()
    }

    /// What failed, and the closing line.
    fn ended(&self) -> (Vec<String>, String) {
        let out = self.out();
        let failed = out.lines().filter_map(|line| line.strip_prefix("failed: "));
        (failed.map(str::to_owned).collect(), out.lines().last().unwrap_or_default().to_owned())
    }
}

#[test]
fn tests_start_the_command_with_every_job_although_one_with_a_single_job_is_built_too() {
    let workspace = Workspace::new(RIGHT, "//! Tests.\n\n#[test]\nfn holds() {}\n");
    workspace.write(
        "setpoint/src/main.rs",
        "//! The command.\n\nfn main() {\n    print!(\"{}\", cfg!(feature = \"host\"));\n}\n",
    );
    fs::create_dir_all(workspace.path("setpoint/tests/cli")).unwrap();
    workspace.write(
        "setpoint/tests/cli/main.rs",
        r#"//! Tests.

fn has_host(command: &str) -> String {
    let output = std::process::Command::new(command).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_command_has_every_job() {
    assert_eq!(has_host(env!("CARGO_BIN_EXE_setpoint")), "true");
}

#[test]
fn the_other_command_has_one_job() {
    let command = std::env::var("SETPOINT_HAPROXY_ALONE").unwrap();
    assert_eq!(has_host(&command), "false");
}

#[test]
fn the_third_command_has_the_other_job() {
    let command = std::env::var("SETPOINT_HOST_ALONE").unwrap();
    assert_eq!(has_host(&command), "true");
}
"#,
    );
    let ran = workspace.run(&[]);
    let (failed, last) = ran.ended();
    // The example, `holds`, and the three tests of the commands.
    assert_eq!(last, "5 passed, 0 failed, 0 skipped", "{failed:?}\n{}", ran.out());
    // It is there for each selection that may want it, and for no other.
    for (name, begun) in [("the_other_command_has_one_job", true), ("holds", false)] {
        let ran = workspace.run(&[name]);
        let (failed, last) = ran.ended();
        assert!(last.ends_with(" passed, 0 failed, 0 skipped"), "{name}: {failed:?}\n{}", ran.out());
        assert_eq!(ran.out().contains("each job alone"), begun, "{name}: {}", ran.out());
    }
}

#[test]
fn each_wrong_thing_is_counted_and_named_and_nothing_is_left_behind() {
    let workspace = Workspace::new(LIBRARY, TESTS);
    workspace.write(
        "setpoint/src/lib.rs",
        "//! The command.\n#[cfg(not(feature = \"host\"))]\ncompile_error!(\"no host\");\n",
    );
    let ran = workspace.run(&[]);
    let (failed, last) = ran.ended();
    assert_eq!(
        last,
        "3 passed, 8 failed, 1 skipped",
        "{}{}",
        ran.out(),
        String::from_utf8_lossy(&ran.0.stderr)
    );
    assert_eq!(ran.0.status.code(), Some(1));
    let said = failed.join("\n");
    for part in [
        "a test started `handmade`",
        "breaks",
        "does_not_want_to_run was skipped for want of luck, which tests.toml does not list",
        "build, lints, documentation: 1 warning",
        "documentation",
        "each job alone: `haproxy` alone can't be built",
        "format",
        "wrong: test all: 1 test marked `#[ignore]`",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(ran.out().contains("skipped: can_not_run: no etcd"), "{}", ran.out());
    assert_eq!(fs::read_dir(workspace.path("scratch")).unwrap().count(), 0, "nothing is left behind");

    // Where parts are required, what can't run has failed.
    for (arguments, ci) in [(&["wrong", "--require-parts"][..], ""), (&["wrong"], "yes")] {
        let ran = Ran(workspace.test(arguments).env("CI", ci).output().unwrap());
        let (failed, last) = ran.ended();
        assert!(last.ends_with("0 skipped"), "{}", ran.out());
        assert!(failed.iter().any(|line| line.contains("can_not_run was skipped, and parts are required")));
    }
    let ran = workspace.run(&["no_such_test"]);
    assert!(ran.ended().0.iter().any(|line| line.contains("is called `no_such_test`")), "{}", ran.out());
    assert_eq!(ran.0.status.code(), Some(1));
}

#[test]
fn all_is_well_where_nothing_is_wrong_again_and_again_and_beside_a_load() {
    let workspace =
        Workspace::new(RIGHT, "//! Tests.\n\n#[test]\nfn holds() {}\n\n#[test]\nfn holds_too() {}\n");
    let ran = workspace.run(&[]);
    assert_eq!(ran.ended(), (Vec::new(), "3 passed, 0 failed, 0 skipped".to_owned()), "{}", ran.out());
    assert_eq!(ran.0.status.code(), Some(0));
    let ran = workspace.run(&["--repeat", "3", "--load", "1", "holds_too"]);
    assert_eq!(ran.ended(), (Vec::new(), "3 passed, 0 failed, 0 skipped".to_owned()), "{}", ran.out());
    // The example is repeated, too.
    let ran = workspace.run(&["--repeat", "4", "wrong"]);
    assert_eq!(ran.ended(), (Vec::new(), "12 passed, 0 failed, 0 skipped".to_owned()), "{}", ran.out());

    // What can't be built is a failure, and the closing line is there all the same.
    workspace.write("wrong/src/lib.rs", "//! A library.\ncompile_error!(\"broken\");\n");
    let ran = workspace.run(&[]);
    let (failed, last) = ran.ended();
    assert!(failed.iter().any(|line| line.contains("not everything could be built")), "{failed:?}");
    assert!(last.contains(" failed, "), "{last}");
    assert_eq!(ran.0.status.code(), Some(1));
}

#[test]
fn an_interrupted_run_prints_its_closing_line_and_leaves_nothing_behind() {
    let slow = "//! Tests.\n\n#[test]\nfn takes_long() {\n    std::fs::write(\"began\", \"\").unwrap();\n    \
                std::thread::sleep(std::time::Duration::from_secs(600));\n}\n";
    let workspace = Workspace::new(RIGHT, slow);
    let mut child =
        workspace.test(&["takes_long"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    // What a binary prints beside others is shown when it has ended: the test itself says that it runs.
    workspace.await_file("wrong/began", &mut child);
    assert!(fs::read_dir(workspace.path("scratch")).unwrap().count() > 0);
    terminate(&child);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    let last: Vec<&str> = rest.lines().rev().take(2).collect();
    assert_eq!(last, ["0 passed, 1 failed, 0 skipped", "failed: the run was interrupted by SIGTERM"]);
    assert_eq!(fs::read_dir(workspace.path("scratch")).unwrap().count(), 0);
}

#[test]
fn an_interrupted_run_ends_what_builds() {
    let workspace = Workspace::new(RIGHT, "//! Tests.\n");
    let script = "fn main() {\n    std::fs::write(\"new\", std::process::id().to_string()).unwrap();\n    \
                  std::fs::rename(\"new\", \"builds\").unwrap();\n    \
                  std::thread::sleep(std::time::Duration::from_secs(600));\n}\n";
    workspace.write("wrong/build.rs", script);
    let mut child = workspace.test(&[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    workspace.await_file("wrong/builds", &mut child);
    terminate(&child);
    assert_eq!(child.wait().unwrap().code(), Some(128 + 15));
    let builds = fs::read_to_string(workspace.path("wrong/builds")).unwrap();
    let deadline = Instant::now() + Duration::from_mins(5);
    while fs::read(format!("/proc/{builds}/cmdline")).is_ok_and(|words| !words.is_empty()) {
        assert!(Instant::now() < deadline, "process {builds} still builds");
        std::thread::sleep(Duration::from_millis(20));
    }
}
