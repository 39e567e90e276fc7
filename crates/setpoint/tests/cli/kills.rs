//! The command is killed at random instants, with every kind of item and much that is not Setpoint's. Whatever it was doing,
//! the next run goes on from there: nothing is lost, doubled or left behind, and nothing is deleted that was there before. Somebody
//! writes files meanwhile, and finds each of them again: where it was written, or beside the state.
//!
//! All tests run a sample; `cargo xtask soak host` runs thousands. `SETPOINT_KILLS` says how many, `SETPOINT_SEED` which.

mod declared;
mod root;
mod row;

use std::cell::{Cell, RefCell};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Stdio;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use setpoint_testutils::wait::LIMIT;

use crate::sandbox::{Sandbox, eventually};
use declared::{Declared, KEPT};
use root::kill_and_move_the_root;
use row::kill_a_row_again_and_again;

/// The next number of a simple random sequence.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }
}

/// A host with things of somebody else on it.
struct World {
    sandbox: Sandbox,
    id: String,
    /// What somebody wrote and nobody but Setpoint replaced, with where.
    edits: RefCell<Vec<(String, String)>>,
    /// Where the two that are taken over and change places are.
    pair: Cell<Pair>,
    /// Whether somebody's rows are in what the commands of [`STORES`] have made, and these were declared ever since.
    has_rows: Cell<bool>,
}

/// Directories that commands make under changing names, one with a `check` and one without, and in which somebody writes rows.
const STORES: [&str; 2] = ["stores/asked", "stores/bare"];

/// Two things that are taken over and change places: only together, as one that moves does not take over what is there.
#[derive(Clone, Copy, Default)]
struct Pair {
    is_swapped: bool,
    /// Both were taken over.
    is_whole: bool,
}

/// What a killed run was just starting holds its lock for a moment, until it is another program.
const APPLY: [&str; 4] = ["apply", "--yes", "--lock-timeout", "30s"];

/// What is there before Setpoint, and has to be in the end.
const THEIRS: [(&str, &str); 8] = [
    ("marks/held", "theirs"),
    ("shared/mine", "theirs"),
    ("theirs/a0", "first\n"),
    ("theirs/a1", "second\n"),
    ("theirs/a2", "third\n"),
    ("theirs/log", "logged before\n"),
    ("theirs/x", "of x\n"),
    ("theirs/y", "of y\n"),
];

/// Links of somebody else, with what they point to.
const THEIR_LINKS: [(&str, &str); 3] = [("theirs/link", "theirs"), ("theirs/lx", "x"), ("theirs/ly", "y")];

/// What somebody writes now and then.
const EDITED: [&str; 2] = ["theirs/e0", "theirs/e1"];

/// A file that is declared now and then. Somebody writes one there when there is none.
const SOLO: &str = "solo";

impl Drop for World {
    /// What it started ends with it, also where the test has failed.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.sandbox.declare("");
            for args in [&["state", "unprotect", "file.kept"][..], &["destroy", "--yes"]] {
                self.sandbox.run(args);
            }
        }
    }
}

impl World {
    fn new() -> Self {
        let sandbox = Sandbox::new("");
        for directory in ["marks", "shared", "stores", "theirs"] {
            fs::create_dir(sandbox.path(directory)).unwrap();
        }
        for (path, content) in THEIRS {
            sandbox.write(path, content);
        }
        for (path, target) in THEIR_LINKS {
            symlink(target, sandbox.path(path)).unwrap();
        }
        let edits = EDITED.map(|path| (path.to_owned(), format!("{path}, at first\n")));
        for (path, content) in &edits {
            sandbox.write(path, content);
        }
        fs::set_permissions(sandbox.path("theirs/a0"), fs::Permissions::from_mode(0o604)).unwrap();
        let id = sandbox.root().file_name().unwrap().to_string_lossy().into_owned();
        let edits = RefCell::new(edits.into());
        Self { sandbox, id, edits, pair: Cell::default(), has_rows: Cell::default() }
    }

    /// Starts a command, and kills it after a while. Returns whether it was at work. What a command of the manifest had begun
    /// goes on, and is waited for.
    fn kill(&self, args: &[&str], after: Duration) -> bool {
        let was_at_work = killed(&self.sandbox, args, after);
        eventually("what a command had begun has ended", || self.marked("KILLS_COMMAND").is_empty());
        was_at_work
    }

    /// Somebody writes a file that may be taken over at this moment: in its place, or as editors do.
    fn edit(&self, random: &mut Random, round: u64) {
        let path = *random.pick(&EDITED);
        let content = format!("{path}, edited in round {round}\n");
        let found = fs::read_to_string(self.sandbox.path(path)).unwrap();
        let mut edits = self.edits.borrow_mut();
        // What they replace themselves is gone.
        edits.retain(|edit| *edit != (path.to_owned(), found.clone()));
        edits.push((path.to_owned(), content.clone()));
        if random.one_in(2) {
            self.sandbox.write(path, &content);
        } else {
            self.sandbox.write("theirs/.new", &content);
            fs::rename(self.sandbox.path("theirs/.new"), self.sandbox.path(path)).unwrap();
        }
    }

    /// Asserts that all that somebody wrote is where they wrote it, or kept beside the state.
    fn check_edits(&self, when: &str) {
        let kept = fs::read_dir(self.sandbox.path(".setpoint/run/kept")).into_iter().flatten().flatten();
        let kept: String = kept.map(|entry| fs::read_to_string(entry.path()).unwrap()).collect();
        for (path, content) in self.edits.borrow().iter() {
            let is_there = fs::read_to_string(self.sandbox.path(path)).is_ok_and(|found| found == *content);
            assert!(is_there || kept.contains(&STANDARD.encode(content)), "{when}: {content:?} is lost");
        }
    }

    /// Somebody writes a file where none is, and Setpoint may have had one: it stays whatever is declared.
    fn write_where_nothing_is(&self, declared: &Declared, when: &str) {
        if self.sandbox.path(SOLO).exists() {
            return;
        }
        self.fail(false);
        self.sandbox.write(SOLO, "somebody's");
        let ran = self.sandbox.run(&APPLY);
        let output = format!("{when}: {}{}\n{}", ran.out(), ran.err(), declared.text);
        assert_eq!(ran.code(), i32::from(declared.contents.contains_key(SOLO)), "{output}");
        assert_eq!(self.sandbox.read(SOLO), "somebody's", "{output}");
        fs::remove_file(self.sandbox.path(SOLO)).unwrap();
    }

    /// Asserts that what a run has made that was told to protect it is protected.
    fn check_protection(&self, declared: &Declared, when: &str) {
        let made = fs::read_to_string(self.sandbox.path(KEPT)).ok();
        if declared.protects && made.as_ref() == declared.contents.get(KEPT) {
            let list = self.sandbox.ok(&["state", "list"]);
            let kept = list.lines().find(|line| line.starts_with("file/kept "));
            assert!(kept.is_some_and(|line| line.contains("protected")), "{when}: {list}");
        }
    }

    /// The values of a variable in the environments of all processes of this world.
    fn marked(&self, variable: &str) -> Vec<String> {
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            if !entry.file_name().to_string_lossy().starts_with(|c: char| c.is_ascii_digit()) {
                continue;
            }
            let Ok(environment) = fs::read(entry.path().join("environ")) else { continue };
            let variables = environment.split(|&byte| byte == 0).map(String::from_utf8_lossy);
            let values = variables
                .filter_map(|text| text.strip_prefix(variable)?.strip_prefix('=').map(str::to_owned));
            found.extend(values.filter(|value| value.starts_with(&self.id)));
        }
        found.sort();
        found
    }

    /// Asserts that all is as it has to be.
    fn check(&self, declared: &Declared, when: &str) {
        let (mut tree, is_rows) = (self.sandbox.tree(), |path: &String| path.ends_with("/rows"));
        tree.retain(|path| !is_rows(path));
        assert_eq!(tree, declared.tree(), "{when}\n{}", declared.text);
        self.check_rows(when);
        for (path, content) in &declared.contents {
            assert_eq!(&self.sandbox.read(path), content, "{when}: {path}\n{}", declared.text);
        }
        for (path, target) in &declared.links {
            let found = fs::read_link(self.sandbox.path(path)).unwrap();
            assert_eq!(found.to_str(), Some(target.as_str()), "{when}: {path}\n{}", declared.text);
        }
        for (path, mode) in &declared.modes {
            let found = fs::metadata(self.sandbox.path(path)).unwrap().mode() & 0o7777;
            assert_eq!(found, *mode, "{when}: {path} has {found:o}\n{}", declared.text);
        }
        self.check_edits(when);
        let running =
            declared.processes.iter().map(|(name, version)| format!("{}/{name}/{version}", self.id));
        let running: Vec<String> = running.collect();
        assert_eq!(self.marked("KILLS_PROCESS"), running, "{when}\n{}", declared.text);
    }

    /// Lets the command that fails now and then do so, or not.
    fn fail(&self, fails: bool) {
        let path = self.sandbox.path(".fails");
        if fails {
            fs::write(path, "").unwrap();
        } else {
            let _ = fs::remove_file(path);
        }
    }

    /// Asserts that what the commands whose names change have made is there with what somebody wrote into it.
    fn check_rows(&self, when: &str) {
        if self.has_rows.get() {
            for store in STORES {
                assert_eq!(self.sandbox.read(&format!("{store}/rows")), "somebody's", "{when}");
            }
        }
    }

    /// Somebody mends what is remembered: gives an item another name, and looks after what was replaced. After a run that was cut
    /// off, some of it is refused.
    fn mend(&self, random: &mut Random, when: &str) {
        let (from, to) = (format!("file.n{}", random.below(3)), format!("file.n{}", random.below(3)));
        for args in [
            &["state", "mv", &from, &to, "--lock-timeout", "30s"][..],
            &["state", "accept", "--lock-timeout", "30s"],
        ] {
            let ran = self.sandbox.run(args);
            assert!([0, 1, 64].contains(&ran.code()), "{when}: {args:?}: {}{}", ran.out(), ran.err());
        }
    }

    fn apply(&self, declared: &Declared, when: &str) {
        self.fail(false);
        let ran = self.sandbox.run(&APPLY);
        assert_eq!(ran.code(), 0, "{when}: {}{}\n{}", ran.out(), ran.err(), declared.text);
        self.check(declared, &format!("{when}\n{}", ran.out()));
        if declared.text.contains("theirs-s0") {
            self.pair.set(Pair { is_whole: true, ..self.pair.get() });
        }
        assert_eq!(self.sandbox.ok(&["plan"]), "site: nothing to do.\n", "{when}\n{}", declared.text);
        for store in STORES {
            self.sandbox.write(&format!("{store}/rows"), "somebody's");
        }
        self.has_rows.set(true);
    }
}

/// For how many microseconds a run is let work, at most: on a machine where it takes a few milliseconds, and where it takes a
/// second.
pub(crate) const AT_WORK: [u64; 4] = [2_000, 10_000, 50_000, 200_000];

/// Starts a command, waits until it has become the writer of the state, and kills it after a while. Returns whether it had not
/// ended.
pub(crate) fn killed(sandbox: &Sandbox, args: &[&str], after: Duration) -> bool {
    let mut command = sandbox.command(args);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let id = child.id().to_string();
    let begun = Instant::now();
    let mut runs = true;
    let writes = || {
        let writer = fs::read_to_string(sandbox.path(".setpoint/lock")).unwrap_or_default();
        writer.split(' ').next() == Some(&id)
    };
    while runs && !writes() {
        assert!(begun.elapsed() < LIMIT, "it never became the writer of the state");
        std::thread::sleep(Duration::from_micros(100));
        runs = child.try_wait().unwrap().is_none();
    }
    std::thread::sleep(after);
    runs = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    runs
}

fn kill_again_and_again(seed: u64, kills: u64) {
    let mut random = Random(seed);
    let world = World::new();
    let (mut killed, mut round) = (0, 0);
    while killed < kills {
        round += 1;
        assert!(round < 100 + 20 * kills, "only {killed} of {round} runs were killed in time");
        let when = format!("seed {seed}, round {round}");
        let declared = world.declare(&mut random, round);
        world.fail(random.one_in(3));
        let args = match random.below(6) {
            0 if !declared.protects => {
                world.has_rows.set(false);
                &["destroy", "--yes"][..]
            }
            1 => &["watch"],
            2 => &["apply", "--yes", "--replace", "file.source"],
            _ => &["apply", "--yes"],
        };
        let most = *random.pick(&AT_WORK);
        killed += u64::from(world.kill(args, Duration::from_micros(random.below(most))));
        world.check_protection(&declared, &when);
        if random.one_in(3) {
            world.edit(&mut random, round);
        }
        if random.one_in(6) {
            world.write_where_nothing_is(&declared, &when);
        }
        if random.one_in(4) {
            world.mend(&mut random, &when);
        }
        world.check_edits(&when);
        world.check_rows(&when);
        // Not every time: several cut-off runs may follow each other.
        if random.one_in(3) {
            world.apply(&declared, &when);
        }
    }
    let declared = world.declare(&mut random, round);
    world.apply(&declared, "in the end");
    world.sandbox.declare("");
    world.sandbox.ok(&["state", "unprotect", "file.kept"]);
    world.has_rows.set(false);
    world.sandbox.ok(&["destroy", "--yes"]);
    world.check(&World::nothing(), "everything was destroyed");
    for path in EDITED {
        let found = world.sandbox.read(path);
        assert!(found.starts_with(path), "seed {seed}: {path} holds {found:?}, which nobody wrote there");
    }
    let done = format!(
        "soak host: {killed} runs killed, seed {seed}: nothing lost, nothing deleted that was not ours\n"
    );
    std::io::stdout().write_all(done.as_bytes()).unwrap();
}

/// How many runs one test kills.
const KILLS: u64 = 50;
/// How many all four do; the README says so.
pub(crate) const IN_ALL: u64 = 4 * KILLS;

/// The seed that was asked for, or another one for each test.
fn seed(number: u64) -> u64 {
    let asked = std::env::var("SETPOINT_SEED").ok().map(|seed| seed.parse().unwrap());
    asked.unwrap_or(88_172_645_463_325_252_u64) + number
}

#[test]
fn killed_fifty_times_nothing_is_lost() {
    kill_again_and_again(seed(0), KILLS);
}

#[test]
fn killed_fifty_other_times_nothing_is_lost() {
    kill_again_and_again(seed(1), KILLS);
}

#[test]
fn killed_fifty_more_times_nothing_is_lost() {
    kill_again_and_again(seed(2), KILLS);
}

#[test]
fn directories_that_move_in_a_row_are_found_however_often_runs_are_killed() {
    kill_a_row_again_and_again(seed(4), 7, 60);
}

#[test]
fn directories_that_take_each_others_places_are_found_however_often_runs_are_killed() {
    kill_a_row_again_and_again(seed(6), 3, 60);
}

#[test]
fn a_root_that_is_moved_by_hand_is_taken_over_however_often_runs_are_killed() {
    kill_and_move_the_root(seed(8), 30);
}

/// The long mode, run by `cargo xtask soak host`: as many kills as were asked for. All tests run a sample of it.
#[test]
fn killed_as_often_as_asked_nothing_is_lost() {
    let kills = std::env::var("SETPOINT_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    kill_again_and_again(seed(3), kills);
    kill_a_row_again_and_again(seed(5), 7, kills / 4);
    kill_a_row_again_and_again(seed(7), 3, kills / 4);
    kill_and_move_the_root(seed(9), kills / 8);
}
