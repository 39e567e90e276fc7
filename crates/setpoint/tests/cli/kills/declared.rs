//! What manifests declare in each round, and what has to be there when they were applied.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::{EDITED, Pair, Random, SOLO, STORES, THEIR_LINKS, THEIRS, World};

/// What a manifest declares, and what has to be there when it was applied.
#[derive(Default)]
pub(super) struct Declared {
    pub(super) text: String,
    /// Directories, files with what they hold, and links with what they point to.
    pub(super) directories: BTreeSet<String>,
    pub(super) contents: BTreeMap<String, String>,
    pub(super) links: BTreeMap<String, String>,
    /// Files of which the permissions matter.
    pub(super) modes: BTreeMap<String, u32>,
    /// Files of which only the existence matters.
    pub(super) others: BTreeSet<String>,
    /// Processes by name, with what tells one definition from another.
    pub(super) processes: BTreeMap<String, String>,
    /// Whether the file of [`KEPT`] may not be deleted.
    pub(super) protects: bool,
}

/// A file whose content is the round in which it was declared, and which is protected in some of them.
pub(super) const KEPT: &str = "top/kept";

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

    pub(super) fn tree(&self) -> Vec<String> {
        let all = self.directories.iter().chain(self.contents.keys()).chain(self.links.keys());
        let all = all.chain(&self.others);
        all.cloned().collect::<BTreeSet<String>>().into_iter().collect()
    }
}

impl World {
    /// What is there when nothing is declared.
    pub(super) fn nothing() -> Declared {
        let mut declared = Declared::default();
        for (path, content) in THEIRS {
            declared.file(path, content);
        }
        let links = THEIR_LINKS.map(|(path, target)| (path.to_owned(), target.to_owned()));
        declared.links.extend(links);
        declared.others.extend(EDITED.map(str::to_owned));
        declared.modes.insert("theirs/a0".to_owned(), 0o604);
        declared.directories.insert("stores".to_owned());
        declared
    }

    /// Directories that move, files that move between them and lie in undeclared ones, links, files and a directory that are
    /// taken over, one with other permissions, files and links that take each other's places, a file that is called differently each time and one that is protected now and
    /// then, commands that take a moment and fail if they were applied already, one that follows a file, one that fails now and then,
    /// two whose names change, processes with logs, a log and a file that take each other's places, and a file that is taken over and
    /// becomes a log.
    pub(super) fn declare(&self, random: &mut Random, round: u64) -> Declared {
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
        add(
            "commands",
            format!(
                "flaky: {{env: {{KILLS_COMMAND: {id}}}, check: test -e marks/flaky, \
                 apply: 'test ! -e .fails || exit 7; test ! -e marks/flaky || exit 9; touch marks/flaky', \
                 undo: 'test ! -e .fails || exit 8; rm marks/flaky'}}"
            ),
        );
        declared.others.insert("marks/flaky".to_owned());
        for store in STORES {
            let name = random.below(3);
            let check =
                if store.ends_with("asked") { format!("check: test -d {store}, ") } else { String::new() };
            let kind = &store["stores/".len()..];
            add(
                "commands",
                format!(
                    "{kind}{name}: {{env: {{KILLS_COMMAND: {id}}}, {check}apply: 'sleep 0.005; mkdir -p {store}', \
                     undo: rm -r {store}, redo_on: [file.source]}}"
                ),
            );
            declared.directories.insert(store.to_owned());
        }
        let (log, file) = if random.one_in(2) { ("x", "y") } else { ("y", "x") };
        add(
            "processes",
            format!(
                "log: {{command: [sleep, '1000'], log: swap/{log}, env: {{KILLS_PROCESS: '{id}/log/0'}}}}"
            ),
        );
        add("files", format!("beside: {{path: swap/{file}, content: beside}}"));
        declared.processes.insert("log".to_owned(), "0".to_owned());
        declared.file(&format!("swap/{file}"), "beside");
        declared.others.insert(format!("swap/{log}"));
        match random.below(3) {
            0 => {
                add("files", "logged: {path: theirs/log, content: ours, adopt: true}".to_owned());
                declared.file("theirs/log", "ours");
            }
            1 => {
                add(
                    "processes",
                    format!(
                        "to: {{command: [sleep, '1000'], log: theirs/log, adopt: true, env: {{KILLS_PROCESS: '{id}/to/0'}}}}"
                    ),
                );
                declared.processes.insert("to".to_owned(), "0".to_owned());
            }
            _ => {}
        }
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
}
