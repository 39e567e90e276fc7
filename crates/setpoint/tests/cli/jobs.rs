//! Which jobs are in the binary, and what becomes of the commands of those that are not.

use std::path::PathBuf;
use std::process::{Command, Output};

use setpoint_testutils::need;
use setpoint_testutils::part::Missing;

#[cfg(all(feature = "host", feature = "haproxy", feature = "composite"))]
use crate::run;
use crate::text;

/// The environment variables that name commands with one job alone; set by `cargo xtask test`.
const ALONE: [(&str, &str); 5] = [
    ("host", "SETPOINT_HOST_ALONE"),
    ("haproxy", "SETPOINT_HAPROXY_ALONE"),
    ("dataplane", "SETPOINT_DATAPLANE_ALONE"),
    ("sync", "SETPOINT_SYNC_ALONE"),
    (LARGEST, "SETPOINT_COMPOSITE_ALONE"),
];

/// The job that brings most of what is compiled: it is built alone where every job is asked for (`--every-job`).
const LARGEST: &str = "composite";

/// What is done without a cluster, a HAProxy or an API, by the job that does it.
const DONE: [(&str, &[&str]); 5] = [
    ("host", &["schema", "--markdown"]),
    ("haproxy", &["haproxy", "check", "--for", "3.4", "docs/examples/wrong.cfg"]),
    ("haproxy", &["haproxy", "diff", "docs/examples/current.cfg", "docs/examples/desired.cfg"]),
    ("composite", &["composite", "crd"]),
    ("composite", &["composite", "render", "docs/examples/shop.json"]),
];

/// Each job with its feature and one of its commands, and whether it is in the command that these tests are built with.
const JOBS: [(&str, &str, bool); 5] = [
    ("host", "plan", cfg!(feature = "host")),
    ("haproxy", "haproxy", cfg!(feature = "haproxy")),
    ("dataplane", "haproxy serve", cfg!(feature = "dataplane")),
    ("sync", "haproxy sync", cfg!(feature = "sync")),
    ("composite", "composite", cfg!(feature = "composite")),
];

/// A command, and which jobs are in it.
struct Binary {
    path: PathBuf,
    jobs: [(&'static str, &'static str, bool); 5],
}

impl Binary {
    /// The one that these tests are built with.
    fn own() -> Self {
        Self { path: env!("CARGO_BIN_EXE_setpoint").into(), jobs: JOBS }
    }

    /// The one with a job alone, and with what that needs.
    fn alone(name: &str) -> Result<Self, Missing> {
        let (_, variable) = ALONE.into_iter().find(|(job, _)| *job == name).unwrap();
        let missing = || Missing::new("a command with one job alone", "`cargo xtask test` builds it");
        let path = std::env::var_os(variable).ok_or_else(missing)?;
        let needed = if ["dataplane", "sync"].contains(&name) { "haproxy" } else { name };
        Ok(Self {
            path: path.into(),
            jobs: JOBS.map(|(job, command, _)| (job, command, job == name || job == needed)),
        })
    }

    /// The one that these tests are built with, and each with a job alone.
    fn all() -> Result<Vec<Self>, Missing> {
        let is_built =
            |(name, variable): &(&str, &str)| *name != LARGEST || std::env::var_os(variable).is_some();
        let alone = ALONE.into_iter().filter(is_built).map(|(name, _)| Self::alone(name));
        [Ok(Self::own())].into_iter().chain(alone).collect()
    }

    fn has(&self, job: &str) -> bool {
        self.jobs.iter().any(|(other, _, present)| *other == job && *present)
    }

    /// The job that is absent, and without which there is no such command.
    fn lacks(&self, command: &str) -> Option<&str> {
        let is_above = |other: &str| {
            command.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        };
        let (job, ..) = self.jobs.iter().find(|(_, other, present)| !present && is_above(other))?;
        Some(job)
    }

    fn run(&self, args: &[&str]) -> Output {
        Command::new(&self.path).args(args).output().unwrap()
    }

    fn run_in_the_workspace(&self, args: &[&str]) -> Output {
        Command::new(&self.path).args(args).current_dir(crate::shared::workspace()).output().unwrap()
    }

    fn names(&self, present: bool) -> String {
        let names: Vec<&str> = self.jobs.iter().filter(|job| job.2 == present).map(|job| job.0).collect();
        names.join(", ")
    }

    fn assert_its_version_says_which_jobs_are_in(&self) {
        let number = env!("CARGO_PKG_VERSION");
        assert_eq!(text(&self.run(&["-V"]).stdout), format!("setpoint {number}\n"));
        let without = match self.names(false) {
            absent if absent.is_empty() => String::new(),
            absent => format!("without: {absent}\n"),
        };
        let version = self.run(&["--version"]);
        let expected = format!("setpoint {number}\nwith:    {}\n{without}", self.names(true));
        assert_eq!(text(&version.stdout), expected);
    }

    fn assert_its_help_lists_each_job_as_a_command_or_with_its_feature(&self) {
        let root = self.run(&["--help"]);
        let all = text(&root.stdout);
        for (job, command, present) in self.jobs {
            assert_eq!(all.contains(&format!("[feature: {job}]")), !present, "{job} is absent:\n{all}");
            let (above, name) = command.rsplit_once(' ').unwrap_or(("", command));
            if self.lacks(above).is_some() {
                continue;
            }
            let words = above.split_whitespace().chain(["--help"]);
            let output = self.run(&words.collect::<Vec<_>>());
            let help = text(&output.stdout);
            let commands = help.split("\nOptions:").next().unwrap();
            let is_command = commands.contains(&format!("\n  {name} "));
            assert_eq!(is_command, present, "{command} is a command:\n{help}");
            assert_eq!(help.contains(&format!("[feature: {job}]")), !present, "{job} is absent:\n{help}");
        }
    }

    fn assert_a_command_of_an_absent_job_is_a_usage_error_that_says_how_to_get_it(&self) {
        for (_, command, _) in self.jobs {
            let words: Vec<&str> = command.split(' ').collect();
            for args in [words.clone(), [&words[..], &["--help"]].concat(), [&["help"], &words[..]].concat()]
            {
                let output = self.run(&args);
                let message = text(&output.stderr);
                let Some(job) = self.lacks(command) else {
                    assert!(!message.contains("was built without"), "{args:?}: {message}");
                    continue;
                };
                let expected =
                    format!("error: this binary was built without the feature `{job}`\nhint: `cargo build");
                assert!(message.starts_with(&expected), "{args:?}: {message}");
                assert_eq!(output.status.code(), Some(64), "{args:?}: {:?}", output.status);
            }
        }
    }

    /// The command lines that its manual has for examples, as a person copies them.
    fn examples(&self) -> Vec<String> {
        let pages = tempfile::tempdir().unwrap();
        let written = self.run(&["man", pages.path().to_str().unwrap()]);
        assert!(written.status.success(), "{}", text(&written.stderr));
        let pages = std::fs::read_dir(pages.path()).unwrap();
        let pages = pages.map(|page| std::fs::read_to_string(page.unwrap().path()).unwrap());
        let pages: String = pages.collect();
        let bold = pages.lines().filter_map(|line| line.strip_prefix("\\fB")?.strip_suffix("\\fR"));
        bold.map(|line| line.replace("\\-", "-").replace("\\&", "")).collect()
    }

    fn assert_the_examples_of_its_manual_are_understood(&self) {
        let mut count = 0;
        for line in self.examples() {
            let own = line.split(" | ").find_map(|part| part.strip_prefix("setpoint "));
            let Some(own) = own.and_then(|own| own.split(" > ").next()) else { continue };
            let words: Vec<&str> = own.split_whitespace().chain(["--help"]).collect();
            let output = self.run(&words);
            assert!(output.status.success(), "{line}: {}", text(&output.stderr));
            count += 1;
        }
        assert!(count > 5, "the search finds only {count} examples");
    }
}

#[test]
fn the_version_says_which_jobs_are_in() {
    need!(Binary::all()).iter().for_each(Binary::assert_its_version_says_which_jobs_are_in);
}

#[test]
fn the_help_lists_each_job_as_a_command_or_with_its_feature() {
    need!(Binary::all())
        .iter()
        .for_each(Binary::assert_its_help_lists_each_job_as_a_command_or_with_its_feature);
}

#[test]
fn a_command_of_an_absent_job_is_a_usage_error_that_says_how_to_get_it() {
    need!(Binary::all())
        .iter()
        .for_each(Binary::assert_a_command_of_an_absent_job_is_a_usage_error_that_says_how_to_get_it);
}

#[test]
fn the_manual_shows_no_example_of_what_is_not_in() {
    need!(Binary::all()).iter().for_each(Binary::assert_the_examples_of_its_manual_are_understood);
}

#[test]
fn a_job_alone_does_what_a_binary_with_every_job_does() {
    let own = Binary::own();
    for binary in need!(Binary::all()) {
        for (_, args) in DONE.into_iter().filter(|(job, _)| binary.has(job) && own.has(job)) {
            let [done, expected] = [&binary, &own].map(|binary| binary.run_in_the_workspace(args));
            assert_eq!(text(&done.stdout), text(&expected.stdout), "{args:?}");
            assert_eq!((text(&done.stderr), done.status), (text(&expected.stderr), expected.status));
            assert!(!done.stdout.is_empty(), "{args:?}: {}", text(&done.stderr));
        }
    }
}

#[test]
#[cfg(feature = "host")]
fn a_host_alone_shows_the_demo_that_a_binary_with_every_job_shows() {
    let demo = |binary: &Binary| {
        let output = binary.run(&["demo"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        crate::sandbox::timeless(text(&output.stdout))
    };
    let host = need!(Binary::alone("host"));
    assert_eq!(demo(&host), demo(&Binary::own()));
    let absent = host.run(&["demo", "haproxy"]);
    let message = text(&absent.stderr);
    assert!(
        message.starts_with("error: this binary was built without the feature `dataplane`\n"),
        "{message}"
    );
    assert_eq!(absent.status.code(), Some(64));
    let help = host.run(&["--help"]);
    assert!(
        text(&help.stdout).contains("with the commands haproxy serve, demo haproxy\n"),
        "{}",
        text(&help.stdout)
    );
}

/// A static program can't load the modules that answer it.
#[test]
fn a_host_alone_has_nothing_that_asks_the_c_library_for_names() {
    let program = std::fs::read(need!(Binary::alone("host")).path).unwrap();
    let has = |name: &str| {
        let name = format!("\0{name}\0");
        program.windows(name.len()).any(|bytes| bytes == name.as_bytes())
    };
    assert!(has("socket"), "the names of what it calls are not found");
    let asking = ["getaddrinfo", "gethostbyname_r", "getpwnam_r", "getgrnam_r"];
    assert_eq!(asking.into_iter().filter(|name| has(name)).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn the_index_of_the_documentation_shows_what_a_binary_without_a_job_says() {
    let index = include_str!("../../../../docs/README.md");
    let output = need!(Binary::alone("haproxy")).run(&["composite"]);
    let message = text(&output.stderr);
    assert!(
        index.contains(&format!("```text\n{message}```\n")),
        "docs/README.md has another text than:\n{message}"
    );
}

#[test]
#[cfg(all(feature = "host", feature = "haproxy", feature = "composite"))]
fn help_is_there() {
    insta::assert_snapshot!("help", text(&run(&["--help"]).stdout));
}

/// The crates that a binary with some jobs is made of, without build scripts and tests.
pub(crate) fn crates(features: &str) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--frozen", "--package", "setpoint", "--edges", "normal", "--prefix", "none"])
        .args(["--format", "{p}", "--no-default-features", "--features", features])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let first_word = |line: &str| line.split(' ').next().unwrap().to_owned();
    let mut crates: Vec<String> = text(&output.stdout).lines().map(first_word).collect();
    crates.sort();
    crates.dedup();
    crates
}

#[test]
fn only_what_uses_a_network_brings_its_crates_and_who_serves_brings_no_client() {
    let heavy = |name: &String| {
        ["kube", "k8s-openapi", "reqwest", "rustls", "aws-lc", "hyper", "axum", "tower", "hickory"]
            .iter()
            .any(|heavy| name.starts_with(heavy))
    };
    for features in ["host", "haproxy", "host,haproxy"] {
        let heavy: Vec<String> = crates(features).into_iter().filter(heavy).collect();
        assert_eq!(heavy, [""; 0], "with {features} alone");
    }
    assert!(crates("composite").iter().any(heavy));
    let served: Vec<String> = crates("dataplane").into_iter().filter(heavy).collect();
    assert!(served.contains(&"axum".to_owned()), "{served:?}");
    let foreign = |name: &&String| ["kube", "k8s-openapi", "reqwest"].iter().any(|it| name.starts_with(it));
    assert_eq!(served.iter().filter(foreign).count(), 0, "an API needs no client: {served:?}");
}

#[test]
fn a_job_brings_only_the_crates_that_it_needs() {
    let own = |features: &str| -> Vec<String> {
        crates(features)
            .into_iter()
            .filter_map(|name| Some(name.strip_prefix("setpoint-")?.to_owned()))
            .collect()
    };
    assert_eq!(own("host"), ["engine", "graph", "host", "names", "observe", "plan", "state"]);
    assert_eq!(own("haproxy"), ["files", "haproxy", "plan"]);
    assert_eq!(own("dataplane"), ["dataplane-api", "files", "haproxy", "instance", "observe", "plan"]);
    assert_eq!(own("sync"), ["dataplane", "files", "haproxy", "names", "observe", "plan"]);
    assert_eq!(
        own("composite"),
        ["composite", "consul", "kube", "kv", "loop", "names", "observe", "plan", "structure"]
    );
    assert!(!crates("haproxy").contains(&"tokio".to_owned()), "reading files needs no runtime");
}

/// The crates of which several versions are linked into the command, each version as `NAME@VERSION`.
fn in_several_versions(features: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--frozen", "--package", "setpoint", "--edges", "normal,no-proc-macro"])
        .args(["--duplicates", "--depth", "0", "--prefix", "none"])
        .args(features)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    let lines = lines.lines().filter_map(|line| line.split_once(" v"));
    lines.map(|(name, version)| format!("{name}@{version}")).collect()
}

#[test]
fn a_host_alone_is_made_of_one_version_of_each_crate() {
    assert_eq!(in_several_versions(&["--no-default-features", "--features", "host"]), Vec::<String>::new());
}

#[test]
fn all_jobs_are_made_of_one_version_of_each_crate_but_where_a_dependency_needs_an_older_one() {
    let table = include_str!("../../../../deny.toml");
    let listed: Vec<&str> = table
        .lines()
        .filter_map(|line| line.trim().strip_prefix("{ crate = \"")?.split_once('"'))
        .filter_map(|(known, _)| known.contains('@').then_some(known))
        .collect();
    let several = in_several_versions(&[]);
    let older: Vec<&String> = several
        .iter()
        .zip(several.iter().skip(1))
        .filter(|(one, next)| one.split('@').next() == next.split('@').next() && one != next)
        .map(|(one, _)| one)
        .collect();
    assert_eq!(older.len(), listed.len(), "{older:?} are in the command, and deny.toml lists {listed:?}");
    for (older, listed) in older.iter().zip(listed) {
        assert!(
            older.starts_with(&format!("{listed}.")),
            "{older} is in the command, deny.toml lists {listed}"
        );
    }
}
