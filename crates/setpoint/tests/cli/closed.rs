//! What the system does not let a command do: it says so, and takes nothing for gone.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Output};

use setpoint_testutils::part::Missing;
use setpoint_testutils::{need, part};

use crate::sandbox::Sandbox;

/// A user who may do no more than others.
const USER: u32 = 65534;

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), output.stderr.as_slice()].concat()).into_owned()
}

#[test]
fn a_state_that_may_not_be_read_is_not_taken_for_none() {
    need!(part::root("a user who may not read everything"));
    let sandbox = Sandbox::new("files: {f: {content: x}}\n");
    for path in ["", "site.yaml"] {
        chown(sandbox.path(path), Some(USER), Some(USER)).unwrap();
    }
    // Where the program itself is may be closed to others.
    let program = sandbox.path(".program");
    fs::copy(env!("CARGO_BIN_EXE_setpoint"), &program).unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new("setpriv");
        let user = USER.to_string();
        command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]).arg(&program).args(args);
        command.current_dir(sandbox.root()).output().unwrap()
    };
    let applied = run(&["apply", "--yes"]);
    assert!(applied.status.success(), "{}", text(&applied));
    for closed in [".setpoint/state.redb", ".setpoint"] {
        let permissions = |mode: u32| fs::Permissions::from_mode(mode);
        let was = fs::metadata(sandbox.path(closed)).unwrap().permissions();
        fs::set_permissions(sandbox.path(closed), permissions(0)).unwrap();
        for args in
            [&["plan"][..], &["apply", "--yes"], &["destroy", "--yes"], &["state", "list"], &["history"]]
        {
            let ran = run(args);
            assert_eq!(ran.status.code(), Some(1), "{closed}, {args:?}: {}", text(&ran));
            assert!(text(&ran).contains("Permission denied"), "{closed}, {args:?}: {}", text(&ran));
            assert!(ran.stdout.is_empty(), "{closed}, {args:?}: {}", text(&ran));
            let hint = "hint: run it as the user whose state that is";
            assert!(text(&ran).contains(hint), "{closed}, {args:?}: {}", text(&ran));
        }
        fs::set_permissions(sandbox.path(closed), was).unwrap();
        assert_eq!(sandbox.read("f"), "x");
    }
    let plan = run(&["plan"]);
    assert!(text(&plan).contains("nothing to do"), "{}", text(&plan));
}

/// Runs a program that the kernel says has no `openat2`, as an older one would.
const WITHOUT_OPENAT2: &str = r"
my ($call, @command) = @ARGV;
my $filter = pack('SCCL' x 4, 0x20, 0, 0, 0, 0x15, 0, 1, 437, 0x06, 0, 0, 0x00050000 | 38, 0x06, 0, 0, 0x7fff0000);
my $program = pack('Sx6P', 4, $filter);
syscall($call, 38, 1, 0, 0, 0) == 0 && syscall($call, 22, 2, $program) == 0 or exit 125;
exec @command or exit 126;
";

#[test]
fn a_kernel_without_openat2_is_an_error_that_names_it() {
    // The number of `prctl`.
    let call = need!(match std::env::consts::ARCH {
        "x86_64" => Ok("157"),
        "aarch64" => Ok("167"),
        other => Err(Missing::new("a seccomp filter", format!("there is none for {other}"))),
    });
    let perl = Path::new("/usr/bin/perl");
    need!(perl.exists().then_some(()).ok_or_else(|| Missing::new("a seccomp filter", "it takes perl")));
    let sandbox = Sandbox::new("files: {f: {content: x}}\n");
    for args in [&["plan"][..], &["apply", "--yes"], &["watch"], &["destroy", "--yes"]] {
        let mut command = Command::new(perl);
        command.args(["-e", WITHOUT_OPENAT2, call, env!("CARGO_BIN_EXE_setpoint")]).args(args);
        let ran = command.current_dir(sandbox.root()).output().unwrap();
        let is_filtered = ran.status.code() != Some(125);
        need!(
            is_filtered.then_some(()).ok_or_else(|| Missing::new("a seccomp filter", "nobody may set one"))
        );
        assert_eq!(ran.status.code(), Some(1), "{args:?}: {}", text(&ran));
        let message = text(&ran);
        assert!(message.contains("openat2") && message.contains("since 5.6"), "{args:?}: {message}");
        assert_eq!(sandbox.tree(), [""; 0], "{args:?}");
    }
}
