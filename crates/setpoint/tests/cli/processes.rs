//! Processes that are kept running, through the command.

use std::fs;
use std::net::TcpListener;
use std::ops::Deref;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::Value;
use setpoint_testutils::{Port, need, part};

use crate::replaced::exchange;
use crate::sandbox::{Sandbox, eventually};

/// A sandbox whose processes end with the test.
pub(crate) struct Processes(Sandbox);

impl Processes {
    pub(crate) fn new(manifest: &str) -> Self {
        Self(Sandbox::new(manifest))
    }

    /// The process ids that processes wrote, once there are so many: each writes its own some time after it was started.
    pub(crate) fn pids(&self, count: usize) -> Vec<i32> {
        eventually("it writes its process id", || self.written().len() >= count);
        let pids = self.written();
        assert_eq!(pids.len(), count, "{pids:?}");
        pids
    }

    /// The process ids that were written by now, whole lines only.
    pub(crate) fn written(&self) -> Vec<i32> {
        let text = fs::read_to_string(self.path("pids")).unwrap_or_default();
        text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')?.parse().ok()).collect()
    }
}

impl Deref for Processes {
    type Target = Sandbox;

    fn deref(&self) -> &Sandbox {
        &self.0
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.run(&["destroy", "--yes", "--lock-timeout", "20s"]);
    }
}

const SLEEPER: &str = "processes:\n  web: {command: 'echo $$ >> pids; exec sleep 600'}\n";

#[test]
fn the_state_shows_which_process_runs() {
    let sandbox = Processes::new(SLEEPER);
    sandbox.ok(&["apply", "--yes"]);
    let pid = sandbox.pids(1)[0];
    let shown = sandbox.ok(&["state", "show", "process.web"]);
    assert!(shown.contains(&format!("\n  pid: {pid}\n")), "{shown}");
    let json: Value = serde_json::from_str(&sandbox.ok(&["state", "show", "process.web", "--json"])).unwrap();
    assert_eq!(json["pid"], pid);
    kill(pid);
    eventually("it is known to have ended", || {
        sandbox.ok(&["state", "show", "process.web"]).contains(&format!("\n  pid: {pid} (it has ended)\n"))
    });
}

fn kill(pid: i32) {
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL).unwrap();
}

#[test]
fn watch_notices_at_once_that_a_process_ended_says_how_and_starts_it_again() {
    let sandbox = Processes::new(
        "processes:\n  web: {command: 'echo $$ >> pids; until test -e go; do sleep 0.01; done; rm go; echo no more memory; exit 7'}\n",
    );
    let mut watch = sandbox.start(&["watch", "--interval", "1h"]);
    watch.until("+ process/web created");
    sandbox.write("go", "");
    watch.until("! process/web ended: exit status 7; the last lines of its log: no more memory\n");
    eventually("it is started again", || watch.log().matches("process/web created").count() == 2);
    kill(sandbox.pids(2)[1]);
    watch.until("! process/web ended: signal 9\n");
    eventually("it is started again", || watch.log().matches("process/web created").count() == 3);
    assert!(!watch.log().contains("is gone"), "it is said once: {}", watch.log());
    watch.signal(Signal::SIGTERM);
    assert_eq!(watch.wait(), 0);
    // One that an earlier program started is followed as well.
    let watch = sandbox.start(&["watch", "--interval", "1h", "--json"]);
    watch.until("\"started\"");
    // It is not started twice.
    let pid = sandbox.pids(3)[2];
    kill(pid);
    watch.until("\"process_ended\"");
    let log = watch.log();
    let event = log.lines().find(|line| line.contains("process_ended")).unwrap();
    let event: Value = serde_json::from_str(event).unwrap();
    assert_eq!(
        (&event["kind"], &event["name"], &event["pid"]),
        (&"process".into(), &"web".into(), &pid.into())
    );
    assert_eq!((&event["exit_code"], &event["signal"]), (&Value::Null, &Value::Null), "it was no child");
}

#[test]
fn a_process_that_ends_again_and_again_is_backed_off_from() {
    // It runs for much longer than a new process is watched.
    let sandbox = Processes::new(
        "processes:\n  web: {command: 'echo $$ >> pids; sleep 1; exit 1'}\nfiles:\n  f: {content: ours}\n",
    );
    let watch = sandbox.start(&["watch", "--interval", "1h"]);
    watch.until("! process/web is gone; it is contested");
    let log = watch.log();
    let before = log.split("it is contested").next().unwrap();
    assert!(before.matches("process/web created").count() <= 3, "{log}");
    let last = fs::metadata(sandbox.path("pids")).unwrap().modified().unwrap();
    let started = sandbox.written().len();
    sandbox.write("f", "changed");
    eventually("something else is put right meanwhile", || sandbox.read("f") == "ours");
    let is_left = sandbox.written().len() == started;
    // The first pause is of ten seconds.
    assert!(is_left || last.elapsed().unwrap() >= Duration::from_secs(10), "{}", watch.log());
}

#[test]
fn report_only_notices_that_a_process_ended_and_starts_nothing() {
    let sandbox = Processes::new(SLEEPER);
    sandbox.ok(&["apply", "--yes"]);
    let watch = sandbox.start(&["watch", "--report-only", "--interval", "1h"]);
    watch.until("nothing to do");
    kill(sandbox.pids(1)[0]);
    watch.until("! process/web ended; its exit status is not known, as another program had started it\n");
    watch.until("1 to create");
    assert_eq!(sandbox.written().len(), 1);
}

#[test]
fn watch_says_at_once_what_happens_while_a_command_is_applied() {
    let declared = |redo: &str| {
        format!(
            "processes:\n  web: {{command: 'echo $$ >> pids; exec sleep 600'}}\ncommands:\n  \
             slow: {{apply: 'touch begun{redo}; until test -e go{redo}; do sleep 0.01; done', after: [process.web]}}\n"
        )
    };
    let sandbox = Processes::new(&declared(""));
    let mut watch = sandbox.start(&["watch", "--interval", "1h"]);
    eventually("the command has begun", || sandbox.path("begun").exists());
    // A process that this very run has started.
    kill(sandbox.pids(1)[0]);
    watch.until("! process/web ended: signal 9\n");
    sandbox.write("go", "");
    eventually("it is started again", || watch.log().matches("process/web created").count() == 2);
    // One that runs since an earlier one.
    sandbox.declare(&declared("2"));
    eventually("the command has begun", || sandbox.path("begun2").exists());
    kill(sandbox.pids(2)[1]);
    eventually("it is said", || watch.log().matches("process/web ended: signal 9").count() == 2);
    sandbox.declare(&declared("3"));
    watch.until("manifests may have changed; they are read when what runs now has ended\n");
    assert!(!sandbox.path("begun3").exists());
    sandbox.write("go2", "");
    eventually("the manifest is read", || sandbox.path("begun3").exists());
    sandbox.write("go3", "");
    eventually("it is started again", || watch.log().matches("process/web created").count() == 3);
    assert_eq!(watch.log().matches("process/web ended").count(), 2, "each end once: {}", watch.log());
    assert!(!watch.log().contains("is gone"), "{}", watch.log());
    watch.signal(Signal::SIGTERM);
    assert_eq!(watch.wait(), 0);
}

#[test]
fn watch_does_not_report_the_end_of_a_process_that_it_stops_itself() {
    let declared = |command: &str| {
        format!(
            "processes:\n  web: {{command: 'echo $$ >> pids; exec sleep {command}'}}\ncommands:\n  \
             slow: {{apply: 'until test -e go{command}; do sleep 0.01; done', after: [process.web]}}\n"
        )
    };
    let sandbox = Processes::new(&declared("600"));
    let mut watch = sandbox.start(&["watch", "--interval", "1h"]);
    sandbox.write("go600", "");
    watch.until("command/slow created");
    sandbox.declare(&declared("601"));
    sandbox.pids(2);
    sandbox.write("go601", "");
    watch.until("command/slow modified");
    sandbox.declare("commands: {slow: {apply: 'until test -e go601; do sleep 0.01; done'}}\n");
    eventually("it is stopped", || watch.log().contains("process/web deleted"));
    watch.signal(Signal::SIGTERM);
    assert_eq!(watch.wait(), 0);
    assert!(!watch.log().contains("web ended"), "{}", watch.log());
}

#[test]
fn what_a_process_has_started_goes_with_it_also_if_it_has_ended_before() {
    const PARENT: &str = "processes:\n  p: {command: 'echo $$ >> pids; sleep 600 & echo $! >> pids; wait'}\n";
    let sandbox = Processes::new(PARENT);
    for is_destroyed in [true, false] {
        let _ = fs::remove_file(sandbox.path("pids"));
        sandbox.declare(PARENT);
        sandbox.ok(&["apply", "--yes"]);
        let [parent, child] = sandbox.pids(2)[..] else { panic!("{:?}", sandbox.written()) };
        kill(parent);
        eventually("it has ended", || is_running(parent) == Some(false));
        assert_eq!(is_running(child), Some(true));
        if is_destroyed {
            sandbox.ok(&["destroy", "--yes"]);
        } else {
            sandbox.declare("");
            sandbox.ok(&["apply", "--yes"]);
        }
        eventually("the other one is ended", || is_running(child) == Some(false));
        assert_eq!(sandbox.ok(&["state", "list"]), "");
    }
}

/// Returns whether a process runs; none if that can't be told.
fn is_running(pid: i32) -> Option<bool> {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return Some(false) };
    let (_, rest) = stat.rsplit_once(") ")?;
    Some(!rest.starts_with(['Z', 'X']))
}

#[test]
fn the_end_of_a_process_is_reported_once_by_who_only_reports() {
    let counted = "commands: {counted: {check: echo >> checks, apply: 'true'}}\n";
    let sandbox = Processes::new(&format!("{SLEEPER}{counted}"));
    sandbox.ok(&["apply", "--yes"]);
    let mut watch = sandbox.start(&["watch", "--report-only", "--interval", "100ms"]);
    watch.until("watching site");
    kill(sandbox.pids(1)[0]);
    watch.until("! process/web ended");
    let passes = || sandbox.read("checks").lines().count();
    let before = passes();
    eventually("everything is read again and again", || passes() > before + 5);
    watch.signal(Signal::SIGTERM);
    assert_eq!(watch.wait(), 0);
    assert_eq!(watch.log().matches("process/web ended").count(), 1, "{}", watch.log());
}

#[test]
fn what_an_apply_does_meanwhile_is_no_drift_for_who_only_reports() {
    // The check holds up a pass while somebody asks for that.
    let declared = |seconds: u32| {
        format!(
            "processes: {{web: {{command: 'echo $$ >> pids; exec sleep {seconds}'}}}}
files: {{f: {{content: '{seconds}'}}}}
commands: {{slow: {{check: 'echo >> checks; test ! -e hold || {{ touch held; until test -e go; do sleep 0.01; done; }}', apply: 'true'}}}}
"
        )
    };
    let sandbox = Processes::new(&declared(600));
    sandbox.ok(&["apply", "--yes"]);
    let mut watch = sandbox.start(&["watch", "--report-only", "--interval", "100ms"]);
    watch.until("nothing to do");
    sandbox.write("hold", "");
    eventually("a pass is made", || sandbox.path("held").exists());
    fs::remove_file(sandbox.path("hold")).unwrap();
    sandbox.declare(&declared(601));
    sandbox.ok(&["apply", "--yes"]);
    // The process was started again.
    sandbox.pids(2);
    sandbox.write("go", "");
    let checks = || sandbox.read("checks").lines().count();
    let before = checks();
    watch.until("the manifests have changed");
    eventually("everything is read again and again", || checks() > before + 5);
    watch.signal(Signal::SIGTERM);
    assert_eq!(watch.wait(), 0);
    assert!(!watch.log().contains("! "), "{}", watch.log());
}

#[test]
fn a_log_that_was_moved_is_said_where_its_process_is_to_be_started_again() {
    let sandbox = Processes::new("processes: {web: {command: 'exec sleep 600', log: web.log}}\n");
    sandbox.ok(&["apply", "--yes"]);
    fs::rename(sandbox.path("web.log"), sandbox.path("web.log.1")).unwrap();
    let plan = sandbox.ok(&["plan"]);
    let why = "      running: with a log that was moved or deleted\n";
    assert!(plan.contains(&format!("  ~ process/web is changed\n{why}")), "{plan}");
    assert!(plan.contains(&format!("  ± process/web  it can't be changed in place\n{why}")), "{plan}");
    sandbox.ok(&["apply", "--yes"]);
    assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n");
}

#[test]
fn the_end_of_a_process_is_reported_also_where_nothing_may_be_done() {
    let sandbox = Processes::new(
        "root: root\nfiles: {f: {content: x}}\nprocesses: {web: {command: 'echo $$ >> ../pids; exec sleep 600'}}\n",
    );
    for directory in ["root", "other"] {
        fs::create_dir(sandbox.path(directory)).unwrap();
    }
    sandbox.ok(&["apply", "--yes"]);
    let mut watch = sandbox.start(&["watch", "--interval", "1h"]);
    watch.until("watching site");
    // A pass that has begun goes on in the old root.
    sandbox.write("root/f", "changed");
    eventually("the first pass has ended", || sandbox.read("root/f") == "x");
    exchange(&sandbox.path("root"), &sandbox.path("other"));
    kill(sandbox.pids(1)[0]);
    watch.until("! process/web ended");
    watch.until("root is another directory than the one");
    exchange(&sandbox.path("root"), &sandbox.path("other"));
    watch.signal(Signal::SIGTERM);
    assert_eq!(watch.wait(), 0);
    assert_eq!(watch.log().matches("process/web ended").count(), 1, "{}", watch.log());
}

#[test]
fn each_process_that_is_followed_takes_one_descriptor_and_no_thread() {
    const MORE: usize = 20;
    let declared = |count: usize| {
        let processes = (0..count).map(|i| format!("  p{i}: {{command: 'exec sleep 600'}}\n"));
        format!("processes:\n{}", processes.collect::<String>())
    };
    let sandbox = Processes::new(&declared(1));
    let watch = sandbox.start(&["watch", "--interval", "1h"]);
    let count = |of: &str| fs::read_dir(format!("/proc/{}/{of}", watch.child.id())).unwrap().count();
    let created = |wanted: usize| {
        eventually("they run", || watch.log().matches(" created").count() == wanted);
        // The pass has ended, and what it needed is given back.
        eventually("it rests", || fs::metadata(sandbox.path(".setpoint/journal")).is_err());
    };
    // Following them comes after all else that a watch opens and keeps.
    let followed = |wanted: usize| {
        let descriptors = fs::read_dir(format!("/proc/{}/fd", watch.child.id())).unwrap().flatten();
        let links = descriptors.filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
        links.filter(|link| link.as_os_str() == "anon_inode:[pidfd]").count() == wanted
    };
    created(1);
    eventually("the first one is followed", || followed(1));
    let (descriptors, threads) = (count("fd"), count("task"));
    sandbox.declare(&declared(1 + MORE));
    created(1 + MORE);
    eventually("all are followed", || followed(1 + MORE));
    eventually("no more than one descriptor each", || count("fd") <= descriptors + MORE + 3);
    // The one for all of them runs already, and those of a pass end when nothing is left to do.
    eventually("no more threads than before", || count("task") <= threads + 1);
    let pid = |name: &str| -> i32 {
        let shown: Value = serde_json::from_str(&sandbox.ok(&["state", "show", name, "--json"])).unwrap();
        i32::try_from(shown["pid"].as_i64().unwrap()).unwrap()
    };
    kill(pid("process.p7"));
    watch.until("! process/p7 ended: signal 9\n");
}

/// What the name service switch says is for modules that a static program can't load. That something listens there already is
/// only known where the name is.
#[test]
fn the_host_of_a_port_is_found_by_the_hosts_file_whatever_the_name_service_switch_says() {
    need!(part::root("a namespace of mounts"));
    let port = Port::lease();
    let _listener = TcpListener::bind(port.address()).unwrap();
    let manifest = format!(
        "processes:\n  p: {{command: exec sleep 600, ready: {{port: 'db.setpoint.test:{}', timeout: 1s}}}}\n",
        port.number()
    );
    let sandbox = Processes::new(&manifest);
    sandbox.write("hosts", "127.0.0.1 localhost db.setpoint.test\n");
    sandbox.write("nsswitch.conf", "hosts: nobody\n");
    let script = "mount --bind hosts /etc/hosts && \
                  { ! test -e /etc/nsswitch.conf || mount --bind nsswitch.conf /etc/nsswitch.conf; } && \
                  exec \"$0\" apply --yes";
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_setpoint")])
        .current_dir(sandbox.root())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("something else accepts connections on the port of its `ready`"), "{printed}");
    // Without the list nobody knows the name.
    let unknown = sandbox.run(&["apply", "--yes"]);
    assert!(unknown.out().contains("/etc/hosts does not list \"db.setpoint.test\""), "{}", unknown.out());
}

#[test]
fn a_process_that_is_cancelled_while_it_gets_ready_is_ended_and_that_is_said() {
    let sandbox = Processes::new(
        "processes:\n  web: {command: 'echo $$ >> pids; exec sleep 600', ready: {file: never, timeout: 10m}}\n",
    );
    let mut apply = sandbox.start(&["apply", "--yes"]);
    let pid = sandbox.pids(1)[0];
    apply.signal(Signal::SIGINT);
    apply.until("Once more cancels it");
    apply.signal(Signal::SIGINT);
    assert_eq!(apply.wait(), 1);
    let said = "cancelled while the process was starting, and it was ended";
    assert!(apply.log().contains(said), "{}", apply.log());
    assert_eq!(is_running(pid), Some(false), "{}", apply.log());
}

#[test]
fn what_a_process_writes_is_not_added_to_other_names_of_its_log() {
    let sandbox = Processes::new(
        "processes:\n  web: {command: 'echo $$ >> pids; echo started; exec sleep 600', log: web.log}\n",
    );
    sandbox.ok(&["apply", "--yes"]);
    eventually("it writes", || sandbox.read("web.log") == "started\n");
    sandbox.write("mine", "mine\n");
    fs::remove_file(sandbox.path("web.log")).unwrap();
    fs::hard_link(sandbox.path("mine"), sandbox.path("web.log")).unwrap();
    let applied = sandbox.run(&["apply", "--yes"]);
    assert_eq!(applied.code(), 0, "{}{}", applied.out(), applied.err());
    eventually("it writes again", || sandbox.read("web.log") == "mine\nstarted\n");
    assert_eq!(sandbox.read("mine"), "mine\n");
    assert!(applied.err().contains("web.log has another name, a hard link"), "{}", applied.err());
}
