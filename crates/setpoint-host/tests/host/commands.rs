//! Commands that are checked, applied and undone.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use setpoint_engine::{Configurator, Journal, JournalError, Operation, Record, testkit};
use setpoint_host::{Command, CommandTexts, Commands, Invocation, Process, Processes, Wait};
use tokio_util::sync::CancellationToken;

use crate::processes::soon;
use crate::world::{ALL, World};

const MARKER: &str = "commands: {c: {check: test -e marker, apply: 'echo x >> marker', undo: rm marker}}\n";

#[test]
fn the_configurator_of_commands_keeps_every_promise_that_can_be_checked() {
    let world = World::new();
    let sample = |apply: &str| Command {
        name: "c".into(),
        check: Some(Invocation::Shell("test -e marker".into())),
        apply: Invocation::Shell(apply.into()),
        undo: Some(Invocation::Program(vec!["rm".into(), "-f".into(), "marker".into()])),
        env: [("TEXT".to_owned(), "x".to_owned())].into(),
        sensitive: false,
        cwd: None,
        check_timeout: Wait::from_millis(60_000),
        apply_timeout: Wait::from_millis(60_000),
        undo_timeout: Wait::from_millis(60_000),
        written: CommandTexts::default(),
        needs: Vec::new(),
    };
    let samples = [sample("echo $TEXT > marker"), sample("touch marker")];
    assert_eq!(world.block_on(testkit::check(Commands::new(&world.host), &samples)).findings, []);
    assert_eq!(world.tree(), [""; 0]);
}

#[test]
fn an_operation_may_take_as_long_as_the_item_itself_allows() {
    let world = World::new();
    let manifest = world.load(
        "commands: {c: {check: test -e x, apply: x, undo: x, apply_timeout: 20m, undo_timeout: 30m, check_timeout: 1m}}
processes: {p: {command: x, stop_timeout: 5m, ready: {file: there, timeout: 15m}}}
",
    );
    let item = |kind: &str, name: &str| manifest.graph().item(&(kind, name).into()).unwrap().clone();
    let (c, p) = (item("command", "c"), item("process", "p"));
    let (c, p) = (c.get::<Command>().unwrap(), p.get::<Process>().unwrap());
    let minutes = |limit: Option<Duration>| limit.unwrap().as_secs() / 60;
    let of_command = |operation| minutes(Commands::new(&world.host).limit(operation, c));
    let of_process = |operation| minutes(Processes::new(&world.host).limit(operation, p));
    // A check before and one after.
    assert!(of_command(Some(Operation::Create)) >= 22);
    assert!(of_command(Some(Operation::Modify)) >= 22);
    assert!(of_command(Some(Operation::Delete)) >= 31);
    assert!(of_command(None) >= 31, "what was cut off is waited for");
    // One that runs is ended, and one that is not ready in time, with what that has started meanwhile.
    assert!(of_process(Some(Operation::Create)) >= 3 * 5 + 15);
    assert!(of_process(Some(Operation::Delete)) >= 5);
    assert!(of_process(None) >= 15);
}

#[test]
fn a_state_is_brought_about_once_and_taken_back() {
    let mut world = World::new();
    assert_eq!(world.apply(MARKER), ["create command/c"]);
    assert_eq!(world.apply(MARKER), [""; 0]);
    assert_eq!(world.text("marker"), "x\n");
    fs::remove_file(world.path("marker")).unwrap();
    assert_eq!(world.drifted(), [("command", "c").into()]);
    assert_eq!(world.apply(MARKER), ["create command/c"]);
    assert_eq!(world.destroy(), ["delete command/c"]);
    assert_eq!(world.tree(), [""; 0]);
}

#[test]
fn a_state_that_was_there_is_neither_applied_nor_undone() {
    let mut world = World::new();
    fs::write(world.path("marker"), "theirs").unwrap();
    assert_eq!(world.apply(MARKER), ["create command/c"]);
    world.destroy();
    assert_eq!(world.text("marker"), "theirs");
}

#[test]
fn what_a_command_made_is_undone_also_after_how_it_is_run_has_changed() {
    let mut world = World::new();
    let with = |more: &str| {
        format!(
            "directories: {{d: }}\ncommands: {{c: {{check: 'test -e {0}/m', apply: 'echo x >> {0}/m', undo: 'rm {0}/m'{more}}}}}\n",
            world.path("d").display()
        )
    };
    let (plain, env, cwd) = (with(""), with(", env: {MORE: x}"), with(", env: {MORE: x}, cwd: d"));
    for yaml in [&plain, &env, &cwd] {
        world.apply(yaml);
        assert_eq!(world.text("d/m"), "x\n");
    }
    world.destroy();
    assert_eq!(world.tree(), [""; 0]);
}

#[test]
fn what_a_command_made_is_undone_also_after_what_it_refers_to_was_moved() {
    let mut world = World::new();
    let with = |path: &str| {
        format!(
            "directories: {{d: {{path: {path}}}}}\ncommands: {{c: {{check: 'test -e ${{directory.d.path}}/m', apply: 'touch ${{directory.d.path}}/m', undo: 'rm ${{directory.d.path}}/m'}}}}\n"
        )
    };
    world.apply(&with("a"));
    world.apply(&with("b"));
    assert_eq!(world.tree(), ["b", "b/m"]);
    assert_eq!(world.destroy(), ["delete command/c", "delete directory/d"]);
    assert_eq!(world.tree(), [""; 0]);
}

#[test]
fn what_was_there_is_not_undone_by_a_command_that_is_written_for_another_state() {
    let mut world = World::new();
    fs::write(world.path("theirs"), "").unwrap();
    let with = |marker: &str| {
        format!(
            "values: {{m: {marker}}}\ncommands: {{c: {{check: 'test -e ${{values.m}}', apply: 'touch ${{values.m}}', undo: 'rm ${{values.m}}'}}}}\n"
        )
    };
    world.apply(&with("ours"));
    world.apply(&with("theirs"));
    world.destroy();
    assert_eq!(world.tree(), ["ours", "theirs"]);
}

#[test]
fn a_command_is_applied_again_when_what_redo_on_names_changes() {
    let mut world = World::new();
    let with = |content: &str| {
        format!(
            "files: {{f: {{content: {content}}}}}\ncommands: {{c: {{apply: 'cat ${{file.f.path}} >> applied', redo_on: [file.f]}}}}\n"
        )
    };
    world.apply(&with("a"));
    world.apply(&with("b"));
    world.apply(&with("b"));
    assert_eq!(world.text("applied"), "ab");
}

#[test]
fn a_command_is_applied_again_also_where_its_check_would_be_content() {
    let mut world = World::new();
    let with = |content: &str| {
        format!(
            "files: {{f: {{content: {content}}}}}
commands: {{c: {{check: test -e applied, apply: 'cat ${{file.f.path}} >> applied', redo_on: [file.f]}}}}
"
        )
    };
    world.apply(&with("a"));
    world.apply(&with("b"));
    assert_eq!(world.text("applied"), "ab");
}

/// The shape of it: a changed template value must not take a database away.
#[test]
fn what_comes_after_something_is_neither_undone_nor_repeated_when_that_changes() {
    let mut world = World::new();
    let with = |content: &str, command: &str| {
        format!(
            "files: {{f: {{content: {content}}}}}
processes: {{p: {{command: '{command} ${{file.f.path}} -f', stop_timeout: 5s}}}}
commands:
  database:
    check: test -e db
    apply: echo made >> db
    undo: rm db
    after: [process.p, file.f]
  refers: {{apply: 'echo ${{file.f.path}} >> seen', undo: rm seen}}
"
        )
    };
    world.apply(&with("a", "exec tail"));
    // The file changes, and the process is made anew; then it is another process altogether.
    let log = world.apply(&with("b", "exec tail"));
    assert_eq!(log, ["modify file/f", "delete process/p", "create process/p"]);
    let log = world.apply(&with("b", "exec tail -q"));
    assert_eq!(log, ["delete process/p", "create process/p"]);
    assert_eq!((world.text("db"), world.text("seen").lines().count()), ("made\n".to_owned(), 1));
    // It waits all the same where the other is not there.
    world.destroy();
    let log = world.apply("commands: {a: {apply: 'false'}, b: {apply: touch b, after: [command.a]}}\n");
    assert_eq!(log.len(), 1, "{log:?}");
    assert_eq!(world.tree(), [""; 0]);
}

/// What must be done again is remembered until it was, whatever fails in between.
#[test]
fn a_command_that_could_not_be_applied_again_is_applied_by_the_next_run() {
    let mut world = World::new();
    let with = |content: &str| {
        format!(
            "files: {{f: {{content: {content}}}}}
commands:
  migrate: {{apply: 'test ! -e broken && echo {content} >> migrated', redo_on: [file.f]}}
  reload: {{check: test -e loaded, apply: 'echo {content} >> loaded', redo_on: [command.migrate]}}
"
        )
        .replace("echo a", "echo x")
        .replace("echo b", "echo x")
    };
    world.apply(&with("a"));
    fs::write(world.path("broken"), "").unwrap();
    let log = world.apply(&with("b"));
    assert!(log.iter().any(|line| line.starts_with("modify command/migrate, failed")), "{log:?}");
    assert_eq!(world.text("loaded"), "x\n");
    fs::remove_file(world.path("broken")).unwrap();
    let log = world.apply(&with("b"));
    assert!(log.iter().any(|line| line == "modify command/reload"), "{log:?}");
    assert_eq!((world.text("migrated"), world.text("loaded")), ("x\nx\n".to_owned(), "x\nx\n".to_owned()));
    assert_eq!(world.apply(&with("b")), [""; 0]);
    // It was made here, and is not taken for anyone else's.
    let states = world.current.as_ref().unwrap();
    assert!(!states.state(&("command", "reload").into()).unwrap().ownership().is_adopted());
}

#[test]
fn a_failure_says_what_the_command_said_last() {
    let mut world = World::new();
    let log = world.apply("commands: {c: {apply: 'echo one; echo two >&2; exit 3'}}\n");
    assert_eq!(log, ["create command/c, failed: `apply` failed, exit status: 3: one | two"]);
    let mut world = World::new();
    let log = world.apply("commands: {c: {apply: [/no/such/program]}}\n");
    assert!(log[0].contains("can't run [\"/no/such/program\"]: No such file"), "{log:?}");
    let mut world = World::new();
    let log = world.apply("commands: {c: {check: 'false', apply: 'true'}}\n");
    assert!(log[0].contains("`apply` succeeded, and `check` still fails"), "{log:?}");
    let mut world = World::new();
    let log = world.apply("commands: {c: {apply: 'true', cwd: nowhere}}\n");
    assert!(log[0].contains("can't run in nowhere"), "{log:?}");
}

#[test]
fn a_command_that_takes_too_long_is_killed_with_all_it_started() {
    let mut world = World::new();
    let started = Instant::now();
    let log =
        world.apply("commands: {c: {apply: '(sleep 900; touch late) & sleep 900', apply_timeout: 300ms}}\n");
    assert!(log[0].contains("took longer than 0.3s and was killed"), "{log:?}");
    assert!(started.elapsed() < Duration::from_mins(5));
    assert_eq!(world.tree(), [""; 0]);
}

#[test]
fn what_a_command_that_takes_too_long_has_started_in_another_session_is_killed_too() {
    // On a busy machine it takes longer until it has been started.
    let times = ["500ms", "5s", "60s"];
    assert!(times.into_iter().any(what_another_session_holds_is_killed_after), "it was never started");
}

/// Returns whether the command had come so far that there was something to kill.
fn what_another_session_holds_is_killed_after(time: &str) -> bool {
    let mut world = World::new();
    // What an earlier command has left behind, such as a service, stays.
    let yaml = "commands:
  service: {apply: 'setsid sh -c \"echo \\$\\$ > service; exec sleep 600\" > /dev/null 2>&1 &'}
";
    world.apply(yaml);
    let root = world.root();
    let pid = |name: &str| -> Option<i32> { fs::read_to_string(root.join(name)).ok()?.trim().parse().ok() };
    let runs = |pid: i32| {
        fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
            !stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
        })
    };
    soon("the service is there", || pid("service").is_some());
    let service = pid("service").unwrap();
    let slow = format!(
        "check: 'setsid sh -c \"echo \\$\\$ > child; exec sleep 600\" & sleep 600', check_timeout: {time}, apply: 'true'"
    );
    let log = world.apply(&format!("{yaml}  slow: {{{slow}}}\n"));
    assert!(log.iter().any(|line| line.contains("took longer than")), "{log:?}");
    let child = pid("child");
    if let Some(child) = child {
        soon("what it has started is killed", || !runs(child));
        assert!(runs(service), "it was not started by what took too long");
    }
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(service).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    child.is_some()
}

#[test]
fn a_cancelled_command_is_killed_at_once() {
    let world = World::new();
    let manifest = world.load("commands: {c: {apply: 'touch began; sleep 900'}}\n");
    let cancel = CancellationToken::new();
    let (thread, began) = (cancel.clone(), world.path("began"));
    let canceller = std::thread::spawn(move || {
        let until = Instant::now() + Duration::from_mins(5);
        while !began.exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        thread.cancel();
    });
    let started = Instant::now();
    let mut current = None;
    let run = world.engine.reconcile_until(&mut current, Some(manifest.graph()), &ALL, &cancel);
    let status = world.block_on(run).unwrap();
    canceller.join().unwrap();
    assert!(status.log()[0].to_string().contains("cancelled"), "{}", status.log()[0]);
    assert!(started.elapsed() < Duration::from_mins(5));
}

#[test]
fn a_command_may_say_more_than_a_pipe_holds() {
    let mut world = World::new();
    let log =
        world.apply("commands: {c: {apply: 'head -c 1000000 /dev/zero; echo end', apply_timeout: 5m}}\n");
    assert_eq!(log, ["create command/c"]);
}

/// Waits in `check` while `slow` is there and its `apply` was run.
const SLOW_TO_CHECK: &str = "commands: {c: {
  check: 'if test -e done && test -e slow; then touch checking; sleep 900; fi; test -e done',
  check_timeout: TIMEOUT, apply: 'echo x >> applied; touch done', undo: rm done applied}}\n";

fn is_adopted(world: &World, name: &str) -> bool {
    let state = world.current.as_ref().unwrap().state(&("command", name).into());
    state.unwrap().ownership().is_adopted()
}

/// A command that was applied, and whose check was cut off then, with its manifest. On a busy machine, a shell needs more time to
/// come as far.
fn cut_off_while_checked() -> (World, String) {
    for time in ["2s", "20s", "200s"] {
        let mut world = World::new();
        let yaml = SLOW_TO_CHECK.replace("TIMEOUT", time);
        fs::write(world.path("slow"), "").unwrap();
        let log = world.apply(&yaml);
        if world.path("checking").exists() {
            assert!(log[0].contains("`apply` succeeded, but `check` took longer than"), "{log:?}");
            return (world, yaml);
        }
    }
    panic!("it was never asked after it had been applied");
}

#[test]
fn a_command_whose_check_is_cut_off_after_it_was_applied_is_still_ours() {
    for goes_on in [true, false] {
        let (mut world, yaml) = cut_off_while_checked();
        fs::remove_file(world.path("slow")).unwrap();
        fs::remove_file(world.path("checking")).unwrap();
        if goes_on {
            // It is asked again, and neither undone nor repeated.
            assert_eq!(world.apply(&yaml), [""; 0]);
            assert_eq!(world.text("applied"), "x\n");
            assert!(!is_adopted(&world, "c"));
        }
        let log = world.destroy();
        assert!(log.len() == 1 && log[0].starts_with("delete command/c"), "{log:?}");
        assert_eq!(world.tree(), [""; 0]);
    }
}

#[test]
fn a_command_that_is_cancelled_while_it_is_checked_after_it_was_applied_is_still_ours() {
    let mut world = World::new();
    let yaml = SLOW_TO_CHECK.replace("TIMEOUT", "5m");
    fs::write(world.path("slow"), "").unwrap();
    let manifest = world.load(&yaml);
    let cancel = CancellationToken::new();
    let (thread, checking) = (cancel.clone(), world.path("checking"));
    let canceller = std::thread::spawn(move || {
        let until = Instant::now() + Duration::from_mins(5);
        while !checking.exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        thread.cancel();
    });
    let mut current = None;
    let run = world.engine.reconcile_until(&mut current, Some(manifest.graph()), &ALL, &cancel);
    let status = world.block_on(run).unwrap();
    world.current = current;
    canceller.join().unwrap();
    assert!(status.log()[0].to_string().contains("`check` was cancelled"), "{}", status.log()[0]);
    fs::remove_file(world.path("slow")).unwrap();
    fs::remove_file(world.path("checking")).unwrap();
    // Nobody wants it any more: it is undone all the same.
    assert!(world.destroy()[0].starts_with("delete command/c (before that: `apply` succeeded"));
    assert_eq!(world.tree(), [""; 0]);
}

/// What `check` could not say at first, and says in the end: nothing of it is there.
#[test]
fn a_command_whose_check_was_cut_off_is_applied_again_where_its_state_is_not_there() {
    let (mut world, yaml) = cut_off_while_checked();
    for gone in ["slow", "checking", "done"] {
        fs::remove_file(world.path(gone)).unwrap();
    }
    assert_eq!(world.apply(&yaml), ["create command/c"]);
    assert!(!is_adopted(&world, "c"));
    world.destroy();
    assert_eq!(world.tree(), [""; 0]);
}

/// A journal on a disk that is full when what has this in its text is to be noted, and there is this file, if any: it is waited for.
pub(crate) struct FullFor(pub(crate) &'static str, pub(crate) Option<PathBuf>);

impl Journal for FullFor {
    fn record<'a>(&'a self, records: &'a [Record]) -> BoxFuture<'a, Result<(), JournalError>> {
        let is_full = records.iter().any(|record| match record {
            Record::Noted { metadata, .. } => {
                metadata.note.as_ref().is_some_and(|note| note.to_string().contains(self.0))
            }
            _ => false,
        });
        if let Some(file) = self.1.as_ref().filter(|_| is_full) {
            soon("there is a file", || file.exists());
        }
        let written = if is_full { Err(JournalError("no space left on device".to_owned())) } else { Ok(()) };
        Box::pin(async move { written })
    }
}

#[test]
fn a_command_that_was_begun_and_could_not_be_noted_is_cleaned_up() {
    let mut world = World::new();
    let engine = world.engine.clone();
    world.engine = engine.clone().with_journal(Arc::new(FullFor("running", Some(world.path("begun")))));
    let yaml = "commands: {c: {check: test -e begun, apply: 'touch begun; sleep 900; touch done', undo: rm begun}}\n";
    let log = world.apply(yaml);
    assert!(log[0].contains("can't be written down") && log[0].contains("no space left"), "{log:?}");
    assert!(!world.path("done").exists(), "it was ended");
    world.engine = engine;
    assert!(world.destroy()[0].starts_with("delete command/c (before that: "));
    assert_eq!(world.tree(), [""; 0]);
}
