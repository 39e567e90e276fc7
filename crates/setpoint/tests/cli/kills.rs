//! The command is killed at random instants, with every kind of item and much that is not Setpoint's. Whatever it was doing,
//! the next run goes on from there: nothing is lost, doubled or left behind, and nothing is deleted that was there before. Somebody
//! writes files meanwhile, and finds each of them again: where it was written, or beside the state.
//!
//! All tests run a sample; `cargo xtask soak host` runs thousands. `SETPOINT_KILLS` says how many, `SETPOINT_SEED` which.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Stdio;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use setpoint_testutils::wait::LIMIT;

use crate::sandbox::{Sandbox, eventually};

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

/// What a manifest declares, and what has to be there when it was applied.
#[derive(Default)]
struct Declared {
    text: String,
    /// Directories, files with what they hold, and links with what they point to.
    directories: BTreeSet<String>,
    contents: BTreeMap<String, String>,
    links: BTreeMap<String, String>,
    /// Files of which the permissions matter.
    modes: BTreeMap<String, u32>,
    /// Files of which only the existence matters.
    others: BTreeSet<String>,
    /// Processes by name, with what tells one definition from another.
    processes: BTreeMap<String, String>,
    /// Whether the file of [`KEPT`] may not be deleted.
    protects: bool,
}

/// A file whose content is the round in which it was declared, and which is protected in some of them.
const KEPT: &str = "top/kept";

impl Declared {
    fn file(&mut self, path: &str, content: &str) {
        self.parents(path);
        self.contents.insert(path.to_owned(), content.to_owned());
    }

    fn parents(&mut self, path: &str) {
        for (at, _) in path.match_indices('/') {
            self.directories.insert(path[..at].to_owned());
        }
    }

    fn tree(&self) -> Vec<String> {
        let all = self.directories.iter().chain(self.contents.keys()).chain(self.links.keys());
        let all = all.chain(&self.others);
        all.cloned().collect::<BTreeSet<String>>().into_iter().collect()
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
}

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
const THEIRS: [(&str, &str); 7] = [
    ("marks/held", "theirs"),
    ("shared/mine", "theirs"),
    ("theirs/a0", "first\n"),
    ("theirs/a1", "second\n"),
    ("theirs/a2", "third\n"),
    ("theirs/x", "of x\n"),
    ("theirs/y", "of y\n"),
];

/// Links of somebody else, with what they point to.
const THEIR_LINKS: [(&str, &str); 3] = [("theirs/link", "theirs"), ("theirs/lx", "x"), ("theirs/ly", "y")];

/// What somebody writes now and then.
const EDITED: [&str; 2] = ["theirs/e0", "theirs/e1"];

/// A file that is declared now and then. Somebody writes one there when there is none.
const SOLO: &str = "solo";

impl World {
    fn new() -> Self {
        let sandbox = Sandbox::new("");
        for directory in ["marks", "shared", "theirs"] {
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
        Self { sandbox, id, edits: RefCell::new(edits.into()), pair: Cell::default() }
    }

    /// What is there when nothing is declared.
    fn nothing() -> Declared {
        let mut declared = Declared::default();
        for (path, content) in THEIRS {
            declared.file(path, content);
        }
        let links = THEIR_LINKS.map(|(path, target)| (path.to_owned(), target.to_owned()));
        declared.links.extend(links);
        declared.others.extend(EDITED.map(str::to_owned));
        declared.modes.insert("theirs/a0".to_owned(), 0o604);
        declared
    }

    /// Directories that move, files that move between them and lie in undeclared ones, links, files and a directory that are
    /// taken over, one with other permissions, files and links that take each other's places, a file that is called differently each time and one that is protected now and
    /// then, commands that take a moment and fail if they were applied already, one that follows a file, and processes with logs.
    fn declare(&self, random: &mut Random, round: u64) -> Declared {
        let mut declared = Self::nothing();
        let mut sections: BTreeMap<&str, String> = BTreeMap::new();
        let mut add = |section: &'static str, item: String| {
            let text = sections.entry(section).or_default();
            writeln!(text, "  {item}").unwrap();
        };
        let mut places = vec![format!("deep/{}", random.below(2)), "top".to_owned()];
        add("directories", "top:".to_owned());
        declared.directories.insert("top".to_owned());
        for name in ["one", "two"] {
            if !random.one_in(4) {
                let path = format!("top/{name}{}", random.below(2));
                add("directories", format!("{name}: {{path: {path}}}"));
                declared.directories.insert(path.clone());
                places.push(path);
            }
        }
        if random.one_in(2) {
            add("directories", "shared: {adopt: true}".to_owned());
            places.push("shared".to_owned());
        }
        for name in 0..6 {
            if !random.one_in(4) {
                let path = format!("{}/{}{name}", random.pick(&places), random.pick(&["f", "g"]));
                let content = format!("{name} {}\n", if random.one_in(2) { round } else { 0 }).repeat(200);
                add("files", format!("f{name}: {{path: {path}, content: {content:?}}}"));
                declared.file(&path, &content);
            }
        }
        // Directories in a row: each moves to where the next one is.
        let first = random.below(4);
        for name in 0..3 {
            let (path, file) = (format!("row/{}", first + name), random.pick(&["f", "g"]));
            add("directories", format!("r{name}: {{path: {path}}}"));
            add("files", format!("r{name}: {{path: {path}/{file}, content: '{name}'}}"));
            declared.file(&format!("{path}/{file}"), &name.to_string());
        }
        for name in 0..3 {
            if random.one_in(2) {
                let content = format!("ours {}\n", random.below(3));
                let path = format!("theirs/a{name}");
                let mode = random.one_in(2).then_some(0o640);
                let access = mode.map_or_else(String::new, |mode: u32| format!(", mode: '0{mode:o}'"));
                add("files", format!("a{name}: {{path: {path}, content: {content:?}, adopt: true{access}}}"));
                declared.file(&path, &content);
                // Permissions that are not declared any more stay as they are.
                declared.modes.remove(&path);
                declared.modes.extend(mode.map(|mode| (path, mode)));
            }
        }
        if random.one_in(2) {
            let target = format!("ours{}", random.below(2));
            add("symlinks", format!("theirs: {{path: theirs/link, target: {target}, adopt: true}}"));
            declared.links.insert("theirs/link".to_owned(), target);
        }
        let Pair { is_swapped, is_whole } = self.pair.get();
        let takes_over = random.one_in(2);
        let changes_places = takes_over && is_whole && random.one_in(2);
        let is_swapped = is_swapped != changes_places;
        self.pair.set(Pair { is_swapped, is_whole: is_whole && takes_over && !changes_places });
        let takes_over = takes_over.then_some(("theirs", ", adopt: true", is_swapped));
        let own = Some(("top", "", random.one_in(2)));
        for (around, adopt, is_swapped) in [own, takes_over].into_iter().flatten() {
            let (first, second) = if is_swapped { ("y", "x") } else { ("x", "y") };
            for (name, place) in [("s0", first), ("s1", second)] {
                let item = format!("{around}-{name}");
                add("files", format!("{item}: {{path: {around}/{place}, content: {item}{adopt}}}"));
                add("symlinks", format!("{item}: {{path: {around}/l{place}, target: {item}{adopt}}}"));
                declared.file(&format!("{around}/{place}"), &item);
                declared.links.insert(format!("{around}/l{place}"), item);
            }
        }
        for (name, path) in EDITED.iter().enumerate() {
            if random.one_in(2) {
                let content = format!("ours {}\n", random.below(3));
                add("files", format!("e{name}: {{path: {path}, content: {content:?}, adopt: true}}"));
                declared.file(path, &content);
            }
        }
        if random.one_in(2) {
            let content = format!("solo {}\n", random.below(2));
            add("files", format!("solo: {{path: {SOLO}, content: {content:?}}}"));
            declared.file(SOLO, &content);
        }
        add("files", format!("n{}: {{path: top/named, content: named}}", random.below(3)));
        declared.file("top/named", "named");
        declared.protects = random.one_in(2);
        add(
            "files",
            format!("kept: {{path: {KEPT}, content: '{round}', prevent_destroy: {}}}", declared.protects),
        );
        declared.file(KEPT, &round.to_string());
        for name in 0..2 {
            if random.one_in(2) {
                let target = format!("f{}", random.below(6));
                add("symlinks", format!("l{name}: {{path: top/l{name}, target: {target}}}"));
                declared.links.insert(format!("top/l{name}"), target);
            }
        }
        let id = &self.id;
        for name in ["c0", "c1", "held"] {
            if random.one_in(2) {
                let (slow, undo) = (random.below(20), random.below(20));
                add(
                    "commands",
                    format!(
                        "{name}: {{env: {{KILLS_COMMAND: {id}}}, check: test -e marks/{name}, \
                         apply: 'test ! -e marks/{name} || exit 9; sleep 0.0{slow:02}; touch marks/{name}', \
                         undo: 'sleep 0.0{undo:02}; rm marks/{name}'}}"
                    ),
                );
                declared.others.insert(format!("marks/{name}"));
            }
        }
        let version = random.below(3);
        add("files", format!("source: {{path: top/source, content: '{version}'}}"));
        declared.file("top/source", &version.to_string());
        add(
            "commands",
            format!(
                "copy: {{env: {{KILLS_COMMAND: {id}}}, check: test -e copied, apply: 'sleep 0.005; cp top/source copied', \
                 undo: rm -f copied, redo_on: [file.source]}}"
            ),
        );
        declared.contents.insert("copied".to_owned(), version.to_string());
        for name in ["p0", "p1"] {
            if random.one_in(2) {
                let version = random.below(2).to_string();
                add(
                    "processes",
                    format!(
                        "{name}: {{command: [sleep, '1000'], log: logs/{name}.log, \
                         env: {{KILLS_PROCESS: '{id}/{name}/{version}'}}}}"
                    ),
                );
                declared.processes.insert(name.to_owned(), version);
                declared.others.insert(format!("logs/{name}.log"));
                declared.directories.insert("logs".to_owned());
            }
        }
        declared.text =
            sections.iter().fold(String::new(), |text, (name, items)| text + name + ":\n" + items);
        self.sandbox.declare(&declared.text);
        declared
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
        assert_eq!(self.sandbox.tree(), declared.tree(), "{when}\n{}", declared.text);
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

    fn apply(&self, declared: &Declared, when: &str) {
        let ran = self.sandbox.run(&APPLY);
        assert_eq!(ran.code(), 0, "{when}: {}{}\n{}", ran.out(), ran.err(), declared.text);
        self.check(declared, &format!("{when}\n{}", ran.out()));
        if declared.text.contains("theirs-s0") {
            self.pair.set(Pair { is_whole: true, ..self.pair.get() });
        }
        assert_eq!(self.sandbox.ok(&["plan"]), "site: nothing to do.\n", "{when}\n{}", declared.text);
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
        let args = match random.below(6) {
            0 if !declared.protects => &["destroy", "--yes"][..],
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
        world.check_edits(&when);
        // Not every time: several cut-off runs may follow each other.
        if random.one_in(3) {
            world.apply(&declared, &when);
        }
    }
    let declared = world.declare(&mut random, round);
    world.apply(&declared, "in the end");
    world.sandbox.declare("");
    world.sandbox.ok(&["state", "unprotect", "file.kept"]);
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

/// Three directories in a row from this place on, each with a file, whose name changes with the place. After the last place
/// comes the first one: with as many places as directories, they take each other's.
fn row(first: u64, places: u64) -> String {
    let (mut directories, mut files) = (String::new(), String::new());
    for name in 0..3 {
        let place = (first + name) % places;
        writeln!(directories, "  d{name}: {{path: p{place}}}").unwrap();
        let file = if first.is_multiple_of(2) { "even" } else { "odd" };
        writeln!(files, "  f{name}: {{path: p{place}/{file}, content: ours {name}}}").unwrap();
    }
    format!("directories:\n{directories}files:\n{files}")
}

/// Directories with files of somebody else move in a row, one to where the next one was, and runs are killed one after the
/// other.
fn kill_a_row_again_and_again(seed: u64, places: u64, kills: u64) {
    let mut random = Random(seed);
    let sandbox = Sandbox::new(&row(0, places));
    sandbox.ok(&["apply", "--yes"]);
    for name in 0..3 {
        sandbox.write(&format!("p{name}/mine"), &name.to_string());
    }
    let (mut killed, mut rounds) = (0, 0);
    while killed < kills {
        rounds += 1;
        assert!(rounds < 100 + 20 * kills, "only {killed} of {rounds} runs were killed in time");
        let first = random.below(places);
        sandbox.declare(&row(first, places));
        for _ in 0..=random.below(3) {
            let most = *random.pick(&AT_WORK);
            let after = Duration::from_micros(random.below(most));
            killed += u64::from(self::killed(&sandbox, &["apply", "--yes"], after));
        }
        if random.one_in(2) {
            let when = format!("seed {seed}, round {rounds}");
            let ran = sandbox.run(&APPLY);
            assert_eq!(ran.code(), 0, "{when}: {}{}", ran.out(), ran.err());
            let mut wanted = Vec::new();
            for name in 0..3 {
                let place = (first + name) % places;
                let file = if first.is_multiple_of(2) { "even" } else { "odd" };
                wanted.extend([format!("p{place}"), format!("p{place}/{file}"), format!("p{place}/mine")]);
                assert_eq!(sandbox.read(&format!("p{place}/{file}")), format!("ours {name}"), "{when}");
                assert_eq!(sandbox.read(&format!("p{place}/mine")), name.to_string(), "{when}");
            }
            wanted.sort();
            assert_eq!(sandbox.tree(), wanted, "{when}: {}", ran.out());
            assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n", "{when}");
        }
    }
    let done = format!(
        "soak host: {killed} runs killed that moved directories in a row of {places}, seed {seed}: nothing lost\n"
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

/// The long mode, run by `cargo xtask soak host`: as many kills as were asked for. All tests run a sample of it.
#[test]
fn killed_as_often_as_asked_nothing_is_lost() {
    let kills = std::env::var("SETPOINT_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    kill_again_and_again(seed(3), kills);
    kill_a_row_again_and_again(seed(5), 7, kills / 4);
    kill_a_row_again_and_again(seed(7), 3, kills / 4);
}
