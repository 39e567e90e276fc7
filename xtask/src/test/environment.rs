//! What tests see of the machine: a short list of programs and variables, and the parts.
//!
//! ```text
//! tests.toml ──▶ folder/base       links to the listed programs ─┐
//! parts      ──▶ folder/parts      links to the parts' programs ─┼─▶ PATH of the tests
//! PATH       ──▶ folder/forbidden  one script by every other name ┘
//!                folder/home       an empty home directory
//! ```
//!
//! A test that starts a program which is installed here, but neither listed nor a part, starts the script: it writes the
//! program's name down, prints it, and fails. Without it such a test would pass on the machine where someone once
//! installed that program, and nowhere else. The same script stands by the names that `tests.toml` suspects, which may be
//! installed nowhere: a test that starts one in a script of its own, and does not care, would pass as well.
//!
//! Parts are there for the tests of a package that declares them. All others see an empty list of parts, and not what an earlier
//! run left in the user's cache.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use setpoint_testutils::manifest::{MANIFEST_VARIABLE, Manifest, PartState};

use crate::workspace;

/// The script by the names of programs that tests may not start; `FILE` is where it writes them down.
const FORBIDDEN: &str = r#"#!/bin/sh
name=${0##*/}
echo "$name" >> 'FILE'
echo "$name: not for tests: neither a part in parts.toml nor a program in tests.toml" >&2
exit 127
"#;

/// Where Debian has its programs. What somebody installed below `/usr/local`, or has in PATH, may be anything.
const SYSTEM: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// `tests.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Allowed {
    /// Programs by the Debian package that has them.
    programs: BTreeMap<String, Vec<String>>,
    /// Programs by the toolchain that has them.
    toolchains: BTreeMap<String, Vec<String>>,
    /// Programs that other systems have, and that tests start by mistake.
    suspects: BTreeSet<String>,
    /// Variables of the caller's environment, or their beginnings, by purpose.
    environment: BTreeMap<String, Vec<String>>,
    /// What a machine may lack although all parts are there, and why.
    pub(crate) without: BTreeMap<String, String>,
    /// How a root for `--fresh` is made.
    pub(crate) fresh: Fresh,
}

/// How a root for `--fresh` is made.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fresh {
    /// Debian packages that it holds beside the smallest set.
    pub(crate) packages: Vec<String>,
}

impl Allowed {
    /// Reads the workspace's table.
    pub(crate) fn load() -> Result<Self> {
        let path = workspace::root().join("tests.toml");
        let text = fs::read_to_string(&path).context("can't read tests.toml")?;
        toml::from_str(&text).context("tests.toml is not understood")
    }

    /// Returns whether a variable of the caller's environment is kept.
    pub(crate) fn keeps(&self, variable: &OsStr) -> bool {
        let name = variable.to_string_lossy();
        self.environment.values().flatten().any(|known| match known.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == *known,
        })
    }
}

/// The environment of the tests of one run. It can be written to a file and read by another process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Environment {
    folder: PathBuf,
    variables: BTreeMap<String, String>,
}

impl Environment {
    /// Makes the folders of programs inside of `folder`.
    pub(crate) fn prepare(allowed: &Allowed, folder: &Path) -> Result<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let caller = std::env::vars_os().filter(|(name, _)| allowed.keeps(name));
        Self::of(allowed, folder, OsStr::new(SYSTEM), &path, caller.chain(of_toolchains()))
    }

    fn of(
        allowed: &Allowed,
        folder: &Path,
        system: &OsStr,
        caller_path: &OsStr,
        caller: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Self> {
        let this = |name: &str| folder.join(name);
        let (base, parts, forbidden, home) = (this("base"), this("parts"), this("forbidden"), this("home"));
        for made in [&base, &parts, &forbidden, &home] {
            fs::create_dir_all(made).with_context(|| format!("can't make {}", made.display()))?;
        }
        let (installed, of_system) = (installed(caller_path), installed(system));
        let mut listed = BTreeSet::new();
        let programs = allowed.programs.iter().map(|entry| (entry, &of_system));
        let toolchains = allowed.toolchains.iter().map(|entry| (entry, &installed));
        for ((package, programs), there) in programs.chain(toolchains) {
            for program in programs {
                if !listed.insert(OsString::from(program)) {
                    bail!("tests.toml lists `{program}` twice");
                }
                match there.get(OsStr::new(program)) {
                    Some(path) => link(path, &base.join(program))?,
                    None => println!("not here: {program}, which tests.toml lists as one of {package}"),
                }
            }
        }
        let script = this("forbidden.sh");
        let started = this("started").display().to_string().replace('\'', r"'\''");
        let text = FORBIDDEN.replace("FILE", &started);
        fs::write(&script, text)
            .and_then(|()| fs::set_permissions(&script, fs::Permissions::from_mode(0o755)))?;
        let suspects = allowed.suspects.iter().map(OsString::from);
        let mut others: BTreeSet<_> = installed.keys().cloned().chain(suspects).collect();
        others.retain(|name| !listed.contains(name));
        for program in others {
            link(&script, &forbidden.join(program))?;
        }
        let manifest = this("no-parts.json");
        fs::write(&manifest, Manifest::default().to_json_lines()?)
            .with_context(|| format!("can't write {}", manifest.display()))?;
        let path = std::env::join_paths([&parts, &base, &forbidden]).with_context(|| {
            format!("can't make a PATH in {}: set TMPDIR to a folder without a colon", folder.display())
        })?;
        let text = |value: OsString| value.to_string_lossy().into_owned();
        let mut variables: BTreeMap<_, _> = caller.map(|(name, value)| (text(name), text(value))).collect();
        variables.insert("PATH".to_owned(), text(path));
        variables.insert("LANG".to_owned(), "C.UTF-8".to_owned());
        variables.insert("HOME".to_owned(), text(home.into()));
        variables.insert(MANIFEST_VARIABLE.to_owned(), text(manifest.into()));
        variables.insert("INSTA_WORKSPACE_ROOT".to_owned(), workspace::root().display().to_string());
        Ok(Self { folder: folder.to_owned(), variables })
    }

    /// Sets a variable.
    pub(crate) fn set(&mut self, name: &str, value: &Path) {
        self.variables.insert(name.to_owned(), value.display().to_string());
    }

    /// The same with the parts that the tests of a package may use: their programs on the PATH, of several versions those
    /// of the newest.
    pub(crate) fn with_parts(&self, package: &str, manifest: &Manifest) -> Result<Self> {
        let mut own = self.clone();
        let folder = self.folder.join(format!("parts-of-{package}"));
        fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
        let file = folder.with_extension("json");
        fs::write(&file, manifest.to_json_lines()?)
            .with_context(|| format!("can't write {}", file.display()))?;
        own.set(MANIFEST_VARIABLE, &file);
        let path = self.variables.get("PATH").map(String::as_str).unwrap_or_default();
        let others = std::env::split_paths(path).filter(|entry| *entry != self.folder.join("parts"));
        let path = std::env::join_paths(std::iter::once(folder.clone()).chain(others))?;
        own.variables.insert("PATH".to_owned(), path.to_string_lossy().into_owned());
        let ready = manifest.parts.iter().rev().filter(|part| part.state == PartState::Ready);
        for path in ready.filter_map(|part| part.path.as_ref()) {
            let programs = if path.is_file() { vec![path.clone()] } else { files(&path.join("bin")) };
            for program in programs {
                let Some(name) = program.file_name() else { continue };
                let place = folder.join(name);
                if !place.is_symlink() {
                    link(&program, &place)?;
                }
            }
        }
        Ok(own)
    }

    /// Gives a command this environment and nothing else.
    pub(crate) fn apply(&self, command: &mut Command) {
        command.env_clear().envs(&self.variables);
    }

    /// The programs that tests started although they may not.
    pub(crate) fn started(&self) -> BTreeSet<String> {
        let text = fs::read_to_string(self.folder.join("started")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Writes it to a file, for tests that another program starts.
    pub(crate) fn save(&self) -> Result<PathBuf> {
        let file = self.folder.join("environment.json");
        fs::write(&file, serde_json::to_vec(self)?)
            .with_context(|| format!("can't write {}", file.display()))?;
        Ok(file)
    }

    /// Reads what was written.
    pub(crate) fn load(file: &Path) -> Result<Self> {
        let text = fs::read(file).with_context(|| format!("can't read {}", file.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is not understood", file.display()))
    }
}

/// Where the caller has toolchains and caches: tests have another home directory, and the same toolchains.
fn of_toolchains() -> Vec<(OsString, OsString)> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let places = [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup"), ("XDG_CACHE_HOME", ".cache")];
    let mut variables: Vec<(OsString, OsString)> = Vec::new();
    for (name, below) in places {
        let set = std::env::var_os(name).filter(|value| !value.is_empty());
        variables.push((name.into(), set.unwrap_or_else(|| home.join(below).into())));
    }
    // Where there is no Go, nothing asks for these.
    let names = ["GOPATH", "GOCACHE", "GOMODCACHE", "GOENV"];
    if let Ok(output) = Command::new("go").arg("env").args(names).output()
        && output.status.success()
    {
        let values = String::from_utf8_lossy(&output.stdout).into_owned();
        variables
            .extend(names.into_iter().zip(values.lines()).map(|(name, value)| (name.into(), value.into())));
    }
    variables
}

fn link(target: &Path, place: &Path) -> Result<()> {
    symlink(target, place).with_context(|| format!("can't link {}", place.display()))
}

/// The programs on a PATH, the first of each name. Folders that are named from where this process happens to be don't count.
fn installed(path: &OsStr) -> BTreeMap<OsString, PathBuf> {
    let mut programs = BTreeMap::new();
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    for program in folders.flat_map(|folder| files(&folder)).filter(|program| is_executable(program)) {
        if let Some(name) = program.file_name() {
            programs.entry(name.to_owned()).or_insert(program);
        }
    }
    programs
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| data.permissions().mode() & 0o111 != 0)
}

/// The files in a folder; none if there is no such folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::Table;
    use setpoint_testutils::manifest::PartStatus;

    fn allowed() -> Allowed {
        toml::from_str(
            r#"
            fresh.packages = []
            without.root = "anybody may run them"
            programs.dash = ["sh"]
            programs.coreutils = ["cat"]
            toolchains.go = ["go"]
            suspects = ["cat", "ps"]
            environment.user = ["USER"]
            environment.tests = ["SETPOINT_*"]
            "#,
        )
        .unwrap()
    }

    fn program(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// An environment on a machine with `sh`, `cat`, and a `dot` that someone installed by hand.
    fn environment(folder: &Path) -> Environment {
        let machine = folder.join("usr");
        program(&machine.join("dot"), "echo drawn");
        for name in ["sh", "cat"] {
            symlink(Path::new("/bin").join(name), machine.join(name)).unwrap();
        }
        let variables = [
            ("HOME", "/home/me"),
            ("USER", "me"),
            ("GVBINDIR", "/opt"),
            ("SETPOINT_SEED", "7"),
            ("SETPOINT_PARTS", "/cache/parts.json"),
        ];
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        let kept = variables.filter(|(name, _): &(OsString, OsString)| allowed().keeps(name));
        let system = machine.as_os_str();
        Environment::of(&allowed(), &folder.join("environment"), system, system, kept).unwrap()
    }

    fn run(environment: &Environment, script: &str) -> std::process::Output {
        let mut command = Command::new("sh");
        environment.apply(command.args(["-c", script]));
        command.output().unwrap()
    }

    #[test]
    fn a_program_that_was_installed_by_hand_fails_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let environment = environment(folder.path());
        let output = run(&environment, "dot -Tsvg");
        assert_eq!(output.status.code(), Some(127));
        assert_eq!(
            String::from_utf8_lossy(&output.stderr),
            "dot: not for tests: neither a part in parts.toml nor a program in tests.toml\n"
        );
        assert_eq!(environment.started(), std::iter::once("dot".to_owned()).collect());
    }

    #[test]
    fn listed_programs_and_parts_can_be_started() {
        let folder = tempfile::tempdir().unwrap();
        let environment = environment(folder.path());
        let entry = |name: &str| {
            let path = folder.path().join(name);
            program(&path.join("bin").join("dot"), &format!("echo {name} | cat"));
            let (version, state) = (None, PartState::Ready);
            PartStatus { name: name.into(), version, state, path: Some(path), why: None, optional: false }
        };
        let manifest = Manifest { parts: vec![entry("dot-2.0"), entry("dot-3.0")] };
        let own = environment.with_parts("setpoint-graph", &manifest).unwrap();
        let output = run(&own, "dot");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "dot-3.0\n", "{output:?}");
        assert!(environment.started().is_empty());
    }

    #[test]
    fn what_the_caller_has_by_the_name_of_a_listed_program_is_not_it() {
        let folder = tempfile::tempdir().unwrap();
        let (system, caller) = (folder.path().join("usr"), folder.path().join("opt"));
        for name in ["sh", "cat"] {
            fs::create_dir_all(&system).unwrap();
            symlink(Path::new("/bin").join(name), system.join(name)).unwrap();
        }
        program(&caller.join("sh"), "exit 9");
        program(&caller.join("cat"), "exit 9");
        program(&caller.join("go"), "echo go");
        let place = folder.path().join("environment");
        let caller = caller.as_os_str();
        let environment =
            Environment::of(&allowed(), &place, system.as_os_str(), caller, std::iter::empty()).unwrap();
        let output = run(&environment, "echo a | cat; go");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "a\ngo\n", "{output:?}");
    }

    #[test]
    fn only_what_can_be_started_and_has_a_place_of_its_own_is_a_program() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("text"), "no program").unwrap();
        program(&folder.path().join("tool"), "true");
        let names = |path: &OsStr| installed(path).into_keys().collect::<Vec<_>>();
        assert_eq!(names(folder.path().as_os_str()), ["tool"]);
        assert_eq!(names(OsStr::new("src")), [""; 0]);
    }

    #[test]
    fn of_the_callers_environment_only_what_is_listed_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let environment = environment(folder.path());
        let copy = Environment::load(&environment.save().unwrap()).unwrap();
        let output = run(&copy, "echo $USER:$GVBINDIR:$SETPOINT_SEED");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "me::7\n");
    }

    #[test]
    fn tests_have_an_empty_home_directory_and_the_callers_toolchains() {
        let folder = tempfile::tempdir().unwrap();
        let output = run(&environment(folder.path()), "cd; pwd; echo *");
        let home = folder.path().canonicalize().unwrap().join("environment/home");
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{}\n*\n", home.display()));
        let places: BTreeMap<_, _> = of_toolchains().into_iter().collect();
        for name in ["CARGO_HOME", "RUSTUP_HOME", "XDG_CACHE_HOME"] {
            assert!(Path::new(&places[OsStr::new(name)]).is_absolute(), "{name}: {places:?}");
        }
    }

    /// What an earlier run left in the user's cache would hide that a package does not declare its parts.
    #[test]
    fn tests_see_no_parts_but_those_that_are_made_for_them() {
        let folder = tempfile::tempdir().unwrap();
        let output = run(&environment(folder.path()), "cat \"$SETPOINT_PARTS\" && echo \"$SETPOINT_PARTS\"");
        let place = folder.path().join("environment/no-parts.json");
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{}\n", place.display()), "{output:?}");
    }

    #[test]
    fn a_program_that_is_suspected_fails_with_its_name_wherever_it_is_installed_and_one_that_is_listed_does_not()
     {
        let folder = tempfile::tempdir().unwrap();
        let environment = environment(folder.path());
        let output = run(&environment, "ps || echo there is none | cat");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "there is none\n");
        assert_eq!(environment.started(), std::iter::once("ps".to_owned()).collect());
    }

    #[test]
    fn the_workspaces_table_is_understood_and_names_no_program_twice() {
        let allowed = Allowed::load().unwrap();
        let mut seen = BTreeSet::new();
        for program in allowed.programs.values().chain(allowed.toolchains.values()).flatten() {
            assert!(seen.insert(program), "{program} is listed twice");
        }
        let suspected: Vec<_> = allowed.suspects.iter().filter(|name| seen.contains(name)).collect();
        assert_eq!(suspected, [""; 0], "they are listed");
        assert!(allowed.keeps(OsStr::new("USER")) && !allowed.keeps(OsStr::new("LD_PRELOAD")));
    }

    /// The programs that code starts, by their names: by `Command::new` and the like, and in tests by their whole paths wherever those are
    /// written.
    fn named<'a>(text: &'a str, path: &Path) -> BTreeSet<&'a str> {
        const FOLDERS: [&str; 4] = ["/usr/bin/", "/usr/sbin/", "/bin/", "/sbin/"];
        const STARTS: [&str; 2] = ["Command::new(\"", "as_root(\""];
        let literal = |rest: &'a str| rest.split('"').next();
        let calls = STARTS.into_iter().flat_map(|call| text.split(call).skip(1)).filter_map(literal);
        let is_test =
            |part: &OsStr| ["tests", "tests.rs", "setpoint-testutils"].iter().any(|name| part == *name);
        let tests = if path.iter().any(is_test) {
            text
        } else {
            text.split_once("#[cfg(test)]\nmod ").map_or("", |(_, tests)| tests)
        };
        let paths = FOLDERS.into_iter().flat_map(|folder| {
            let places = tests.match_indices(folder).filter(|(at, _)| tests[..*at].ends_with('"'));
            places
                .filter_map(move |(at, _)| literal(&tests[at..]))
                .filter(|path| !path.contains(char::is_whitespace))
        });
        calls.chain(paths).filter_map(|program| program.rsplit('/').next()).collect()
    }

    #[test]
    fn a_program_is_found_by_its_name_and_in_tests_by_its_whole_path() {
        let code =
            "const TOOL: &str = \"/usr/sbin/tool\";\nCommand::new(\"/bin/sh\").arg(\"/bin/true x\");\n";
        assert_eq!(named(code, Path::new("crates/a/src/lib.rs")), ["sh"].into());
        assert_eq!(named("as_root(\"chroot\")", Path::new("crates/a/src/lib.rs")), ["chroot"].into());
        let tests = format!("fn f() {{}}\n#[cfg(test)]\nmod tests {{\n{code}}}\n");
        assert_eq!(named(&tests, Path::new("crates/a/src/lib.rs")), ["sh", "tool"].into());
        for path in
            ["crates/a/tests/cli/power.rs", "crates/a/src/b/tests.rs", "crates/setpoint-testutils/src/a.rs"]
        {
            assert_eq!(named(code, Path::new(path)), ["sh", "tool"].into(), "{path}");
        }
    }

    /// Of a program that is installed nowhere, the system says only that there is no such file: here it has a name. One that
    /// is started by its whole path is held to the same list.
    #[test]
    fn every_program_that_code_starts_by_its_name_is_listed_or_a_part() {
        // These are about programs that are not there.
        let missing = ["handmade", "setpoint-no-such-program"];
        let mut known: BTreeSet<String> = missing.map(String::from).into();
        let allowed = Allowed::load().unwrap();
        known.extend(allowed.programs.into_values().chain(allowed.toolchains.into_values()).flatten());
        known.extend(Table::load().unwrap().programs());
        let mut started = BTreeSet::new();
        for folder in ["bench", "crates", "xtask"] {
            sources(&workspace::root().join(folder), &mut |path, text| {
                started.extend(named(text, path).into_iter().map(|name| (name.to_owned(), path.to_owned())));
            });
        }
        assert!(started.iter().any(|(name, _)| name == "sh"), "the search finds nothing: {started:?}");
        started.retain(|(name, _)| !known.contains(name));
        assert_eq!(started, BTreeSet::new(), "neither parts in parts.toml nor programs in tests.toml");
    }

    #[test]
    fn what_tests_are_skipped_for_is_a_part_or_listed_and_what_is_listed_is_asked_for() {
        let (mut parts, mut asked) = (Table::load().unwrap().groups(), BTreeSet::new());
        parts.extend(Table::load().unwrap().parts.into_iter().map(|part| part.name));
        for folder in ["bench", "crates", "xtask"] {
            sources(&workspace::root().join(folder), &mut |path, text| {
                if path.iter().any(|part| part == "tests" || part == "setpoint-testutils") {
                    let named = text.split("Missing::new(").skip(1);
                    let named =
                        named.filter_map(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
                    asked.extend(named.map(str::to_owned));
                    asked.extend(text.contains("part::root(").then(|| "root".to_owned()));
                }
            });
        }
        asked.retain(|name| !parts.contains(name));
        // A command with some jobs is built by this program, whatever machine it is on.
        asked.retain(|name| !name.starts_with("a command with "));
        let listed: BTreeSet<_> = Allowed::load().unwrap().without.into_keys().collect();
        assert_eq!(asked, listed);
    }

    /// Shows all Rust files below a folder.
    fn sources(folder: &Path, show: &mut dyn FnMut(&Path, &str)) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && path.file_name() != Some(OsStr::new("target")) {
                sources(&path, show);
            } else if path.extension() == Some(OsStr::new("rs")) && !path.ends_with("test/environment.rs") {
                show(&path, &fs::read_to_string(&path).unwrap());
            }
        }
    }
}
