//! Which program a test gets when it asks for a part, and what happens when there is none.

use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::manifest::{MANIFEST_FILE, MANIFEST_VARIABLE, Manifest, PartState, PartStatus};
use crate::skips::{SKIPS_VARIABLE, Skip};

/// A part that this machine does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The name of the part, or of what the machine lacks.
    pub part: String,
    /// By which name `parts.toml` or `tests.toml` says that tests may go without it.
    pub lacks: String,
    /// Why it is not there.
    pub why: String,
}

impl Missing {
    /// Something other than a part in `parts.toml` that the machine lacks, such as a device. Where `tests.toml` does not list
    /// it as `without`, the test has failed.
    pub fn new(part: impl Into<String>, why: impl Into<String>) -> Self {
        let part = part.into();
        Self { lacks: part.clone(), part, why: why.into() }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not to be had: {}", self.part, self.why)
    }
}

impl std::error::Error for Missing {}

/// Gives what a part's start returned, or skips the test that asked for it.
///
/// For tests that return nothing. The test's name and the reason go to the file that `SETPOINT_SKIPS` names, where
/// `cargo xtask test` finds them; without it they are printed.
#[macro_export]
macro_rules! need {
    ($part:expr) => {
        match $part {
            Ok(part) => part,
            Err(missing) => {
                fn here() {}
                $crate::part::skip(std::any::type_name_of_val(&here), &missing);
                return;
            }
        }
    };
}

/// Records that a test was skipped. `place` is the path of something inside of the test.
#[doc(hidden)]
pub fn skip(place: &str, missing: &Missing) {
    let test = test_name(place, std::thread::current().name());
    let (reason, lacks) = (missing.to_string(), missing.lacks.clone());
    let skip = Skip { test, reason, lacks };
    match std::env::var_os(SKIPS_VARIABLE) {
        Some(file) => {
            skip.append_to(Path::new(&file)).expect("the file in SETPOINT_SKIPS can be written");
        }
        None => eprintln!("skipped: {}: {}", skip.test, skip.reason),
    }
}

/// The path of the test that is running, its crate first.
///
/// The test runner names a test's thread after it. Where it runs tests on its main thread, the place tells:
/// `crate::module::test::{{closure}}::here` is in the test `crate::module::test`.
fn test_name(place: &str, thread: Option<&str>) -> String {
    let path: Vec<_> = place.split("::").filter(|step| !step.starts_with("{{")).collect();
    match (thread, path.first()) {
        (Some(thread), Some(this_crate)) if thread != "main" && !thread.starts_with("tokio-") => {
            format!("{this_crate}::{thread}")
        }
        _ => path.strip_suffix(&["here"]).unwrap_or(&path).join("::"),
    }
}

/// Finds a program of a part.
pub fn program(part: &str, program: &str) -> Result<PathBuf, Missing> {
    let manifest = manifest().as_ref().map_err(|why| Missing::new(part, why.clone()))?;
    program_in(manifest, part, program)
}

/// Whether this process may do what only root may: `what` says for what.
pub fn root(what: &str) -> Result<(), Missing> {
    // The owner of a process's folder is the user as whom it acts.
    let root = std::fs::metadata("/proc/self").is_ok_and(|data| data.uid() == 0);
    let missing = || Missing { lacks: "root".to_owned(), ..Missing::new(what, "it takes root") };
    if root { Ok(()) } else { Err(missing()) }
}

/// Why a part is not there.
#[cfg(feature = "start")]
pub(crate) fn missing(part: &str) -> Missing {
    program(part, part).err().unwrap_or_else(|| Missing::new(part, "it was not found"))
}

/// All parts whose name starts with `prefix` and that can be used: the versions of a part.
pub fn versions(prefix: &str) -> Vec<PartStatus> {
    let parts = manifest().as_ref().map(|manifest| manifest.parts.as_slice()).unwrap_or_default();
    parts
        .iter()
        .filter(|part| part.state == PartState::Ready && part.name.starts_with(prefix))
        .cloned()
        .collect()
}

fn program_in(manifest: &Manifest, part: &str, program: &str) -> Result<PathBuf, Missing> {
    let Some(status) = manifest.get(part) else {
        // A version of a part that is used where it is found, and was not.
        let family = part.rsplit_once('-').map_or(part, |(family, _)| family);
        let relative = manifest.parts.iter().find(|other| other.name.starts_with(family));
        let why = relative.and_then(|other| other.why.clone());
        let why = why.unwrap_or_else(|| "it was not found, nor is it made from parts.toml".to_owned());
        return Err(Missing::new(part, why));
    };
    let why = if let (Some(path), PartState::Ready) = (&status.path, status.state) {
        // A part that was found on the machine is the program itself.
        let program = if path.is_file() { path.clone() } else { path.join("bin").join(program) };
        if program.exists() {
            return Ok(program);
        }
        format!("{} is gone; run `cargo xtask parts {part}`", program.display())
    } else {
        status.why.clone().unwrap_or_else(|| format!("run `cargo xtask parts {part}`"))
    };
    Err(Missing::new(part, why))
}

/// The manifest that `cargo xtask test` names, or the one that `cargo xtask parts` left in the user's cache.
fn manifest() -> &'static Result<Manifest, String> {
    static MANIFEST: OnceLock<Result<Manifest, String>> = OnceLock::new();
    MANIFEST.get_or_init(|| {
        let variable =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let file = variable(MANIFEST_VARIABLE)
            .or_else(|| variable("SETPOINT_PARTS_DIR").map(|folder| folder.join(MANIFEST_FILE)))
            .or_else(|| {
                let cache = variable("XDG_CACHE_HOME")
                    .or_else(|| variable("HOME").map(|home| home.join(".cache")))?;
                Some(cache.join("setpoint").join("parts").join(MANIFEST_FILE))
            })
            .ok_or("there is no home directory to look for parts in")?;
        Manifest::read(&file)
            .map_err(|error| format!("{} can't be read ({error}); run `cargo xtask parts`", file.display()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: PartState, path: Option<&Path>) -> PartStatus {
        PartStatus {
            name: "tool".into(),
            version: None,
            state,
            path: path.map(Path::to_path_buf),
            why: (state != PartState::Ready).then(|| "no Go here".to_owned()),
            optional: true,
        }
    }

    #[test]
    fn a_test_is_named_by_its_thread_or_by_a_place_inside_of_it() {
        let place = "all::haproxy::helper::{{closure}}::here";
        assert_eq!(test_name(place, Some("haproxy::v3_2::it_serves")), "all::haproxy::v3_2::it_serves");
        for thread in [None, Some("main"), Some("tokio-rt-worker")] {
            assert_eq!(test_name(place, thread), "all::haproxy::helper");
        }
    }

    #[test]
    fn a_part_gives_its_program_or_the_reason_why_not() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = |status| Manifest { parts: vec![status] };
        let ready = manifest(status(PartState::Ready, Some(folder.path())));

        let missing = program_in(&ready, "tool", "tool").unwrap_err();
        assert!(missing.why.contains("`cargo xtask parts tool`"), "{missing}");

        std::fs::create_dir(folder.path().join("bin")).unwrap();
        std::fs::write(folder.path().join("bin/tool"), "").unwrap();
        assert_eq!(program_in(&ready, "tool", "tool").unwrap(), folder.path().join("bin/tool"));

        let unavailable = manifest(status(PartState::Unavailable, None));
        let missing = program_in(&unavailable, "tool", "tool").unwrap_err();
        assert_eq!(missing.why, "no Go here");
        let version = program_in(&unavailable, "tool-3.2", "tool").unwrap_err();
        assert_eq!(version.why, "no Go here");
    }

    /// Tests with a `return` that skips nothing.
    const RETURNS: &[&str] = &[
        // It is the process that the test starts, or in a process of its own.
        "a_process_that_takes_the_port_of_another_begins_when_that_has_ended",
        "everyone_may_read_what_is_packed_whatever_the_mask_of_the_process",
        // One seed was asked for.
        "random_schedules_reach_the_intent_and_never_break_a_rule",
        "random_schedules_with_things_that_only_come_after_others_repeat_what_they_must",
        // The list is written instead.
        "the_listed_actions_and_options_are_those_that_each_haproxy_knows",
        "the_listed_keywords_are_those_that_each_haproxy_knows",
        "the_listed_options_are_those_that_each_haproxy_has_registered",
        // A part of the test ends.
        "killed_at_random_instants_the_old_or_the_new_configuration_is_there_and_haproxy_serves",
        "two_runs_at_once_make_an_entry_once",
    ];

    /// The names of the tests in a Rust file, and whether they can end early without a word.
    fn tests_in(text: &str) -> Vec<(String, bool)> {
        let lines: Vec<&str> = text.lines().collect();
        let is_test = |line: &str| line == "#[test]" || line.starts_with("#[tokio::test");
        let mut tests = Vec::new();
        for (number, line) in lines.iter().enumerate().filter(|(_, line)| is_test(line.trim_start())) {
            let indent = line.len() - line.trim_start().len();
            let is_end =
                |line: &str| line.get(indent..) == Some("}") || line.contains("fn ") && line.ends_with(" {}");
            let body: Vec<&str> =
                lines[number + 1..].iter().copied().take_while(|line| !is_end(line)).collect();
            let name = body.iter().find_map(|line| line.split_once("fn ")?.1.split('(').next());
            let mut code = body.iter().map(|line| line.split("//").next().unwrap_or_default());
            let ends_early =
                |line: &str| ["return;", "return,", "return }"].iter().any(|text| line.contains(text));
            if let Some(name) = name {
                tests.push((name.to_owned(), code.any(ends_early)));
            }
        }
        tests
    }

    /// Shows all Rust files below a folder but this one.
    fn sources(folder: &Path, show: &mut dyn FnMut(&Path, &str)) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                sources(&path, show);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && !path.ends_with("setpoint-testutils/src/part.rs")
            {
                show(&path, &std::fs::read_to_string(&path).unwrap());
            }
        }
    }

    #[test]
    fn a_test_that_skips_itself_without_a_word_is_noticed() {
        let tests = "\
#[test]
fn holds() {}

#[tokio::test(start_paused = true)]
async fn skips() {
    let Some(part) = part() else { return };
}

mod inner {
    #[test]
    fn skips_too() {
        if !is_root() {
            return;
        }
    }

    #[test]
    fn asks() {
        need!(root()); // or return;
    }
}
";
        let found = [("skips", true), ("skips_too", true), ("asks", false)];
        assert_eq!(tests_in(tests), found.map(|(name, early)| (name.to_owned(), early)));
    }

    #[test]
    fn need_is_the_only_way_to_skip_a_test() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let (mut all, mut early) = (0, Vec::new());
        for folder in ["bench", "crates", "xtask"] {
            sources(&root.join(folder), &mut |path, text| {
                let tests = tests_in(text);
                all += tests.len();
                let ended =
                    tests.into_iter().filter(|(name, ends)| *ends && !RETURNS.contains(&name.as_str()));
                early.extend(ended.map(|(name, _)| format!("{}: {name}", path.display())));
            });
        }
        assert!(all > 1000, "the search finds only {all} tests");
        assert_eq!(early, [""; 0], "they end early, and are counted as passed");
    }
}
