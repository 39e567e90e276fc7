//! The jobs: each is one module and one cargo feature, and is in the binary or not.
//!
//! ```text
//!  feature host ────▶ host.rs ──────┐
//!  feature haproxy ─▶ haproxy.rs ───┼──▶ subcommands of `cli.rs`, and a row in [`ALL`]
//!  feature dataplane ▶ its `serve` ─┤
//!  feature sync ────▶ its `sync` ───┤
//!  feature composite ▶ composite.rs ┘
//! ```

#[cfg(feature = "composite")]
pub(crate) mod composite;
#[cfg(feature = "haproxy")]
pub(crate) mod haproxy;
#[cfg(feature = "host")]
pub(crate) mod host;

use std::fmt::Write as _;

#[cfg(not(any(feature = "host", feature = "haproxy", feature = "composite")))]
compile_error!("a binary needs at least one job: build with `--features host`, `haproxy` or `composite`");

/// One job, whether it is in the binary or not.
#[derive(Debug)]
pub(crate) struct Job {
    /// Its name, which is also the name of its cargo feature.
    pub(crate) name: &'static str,
    /// What it does.
    pub(crate) about: &'static str,
    /// Its commands, each with those that it is below.
    pub(crate) commands: &'static [&'static str],
    /// Whether it is in this binary.
    pub(crate) present: bool,
}

/// All jobs, in the order in which they are shown.
pub(crate) const ALL: &[Job] = &[
    Job {
        name: "host",
        about: "Keeps a host in the state that manifests declare",
        commands: &[
            "plan", "apply", "watch", "destroy", "validate", "explain", "graph", "state", "history", "show",
            "schema", "demo",
        ],
        present: cfg!(feature = "host"),
    },
    Job {
        name: "haproxy",
        about: "Reads, checks and compares configurations of HAProxy",
        commands: &["haproxy"],
        present: cfg!(feature = "haproxy"),
    },
    Job {
        name: "dataplane",
        about: "Serves the Dataplane API in front of a HAProxy",
        // Without a host there is no demo that it could be below.
        commands: if cfg!(feature = "host") {
            &["haproxy serve", "demo haproxy"]
        } else {
            &["haproxy serve"]
        },
        present: cfg!(feature = "dataplane"),
    },
    Job {
        name: "sync",
        about: "Brings configurations to HAProxies, on this machine or behind a Dataplane API",
        commands: &["haproxy plan", "haproxy sync", "haproxy watch"],
        present: cfg!(feature = "sync"),
    },
    Job {
        name: "composite",
        about: "Keeps the structure of composites in Consul and in ConfigMaps",
        commands: &["composite"],
        present: cfg!(feature = "composite"),
    },
];

/// Returns the job that is absent and would have a command, which is named with those that it is below.
pub(crate) fn absent<'a>(jobs: &'a [Job], command: &str) -> Option<&'a Job> {
    jobs.iter().find(|job| !job.present && job.commands.contains(&command))
}

/// Returns the version with the jobs that are in, and those that are not.
pub(crate) fn version(jobs: &[Job]) -> String {
    let mut text = format!("{}\nwith:    {}", env!("CARGO_PKG_VERSION"), names(jobs, true));
    if jobs.iter().any(|job| !job.present) {
        let _ = write!(text, "\nwithout: {}", names(jobs, false));
    }
    text
}

/// Returns what `--help` says of absent jobs: nothing if all are in.
pub(crate) fn absent_help(jobs: &[Job]) -> String {
    help_of(jobs.iter().filter(|job| !job.present))
}

/// Returns what the help of a command says of absent jobs that have commands below it.
#[cfg(any(feature = "haproxy", test))]
pub(crate) fn absent_help_below(jobs: &[Job], command: &str) -> String {
    let is_below = |name: &&str| name.strip_prefix(command).is_some_and(|rest| rest.starts_with(' '));
    help_of(jobs.iter().filter(|job| !job.present && job.commands.iter().any(is_below)))
}

fn help_of<'a>(absent: impl Iterator<Item = &'a Job>) -> String {
    let mut text = String::new();
    for Job { name, about, commands, .. } in absent {
        if text.is_empty() {
            text.push_str("Not in this binary, for want of a cargo feature:");
        }
        let _ = write!(text, "\n  {name:<12} {about} [feature: {name}]");
        if *commands != [*name] {
            let _ = write!(text, "\n  {:<12} with the commands {}", "", commands.join(", "));
        }
    }
    text
}

/// Returns how to build a binary with all jobs, and with one beside those that are in.
pub(crate) fn how_to_add(jobs: &[Job], added: &Job) -> String {
    let features: Vec<&str> =
        jobs.iter().filter(|job| job.present || job.name == added.name).map(|job| job.name).collect();
    format!(
        "`cargo build --release` puts every job in; `cargo build --release --no-default-features --features {}` \
         adds only this one",
        features.join(",")
    )
}

fn names(jobs: &[Job], present: bool) -> String {
    let named: Vec<&str> = jobs.iter().filter(|job| job.present == present).map(|job| job.name).collect();
    named.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: &[Job] = &[
        Job { name: "host", about: "Keeps a host", commands: &["plan", "apply"], present: false },
        Job { name: "haproxy", about: "Reads configurations", commands: &["haproxy"], present: true },
        Job {
            name: "sync",
            about: "Brings them",
            commands: &["haproxy plan", "haproxy sync"],
            present: false,
        },
        Job { name: "composite", about: "Keeps composites", commands: &["composite"], present: false },
    ];

    #[test]
    fn the_version_says_what_is_in_and_what_is_not() {
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            self::version(SOME),
            format!("{version}\nwith:    haproxy\nwithout: host, sync, composite")
        );
        assert_eq!(self::version(&SOME[1..2]), format!("{version}\nwith:    haproxy"));
    }

    #[test]
    fn the_help_lists_absent_jobs_with_their_feature() {
        assert_eq!(
            absent_help(SOME),
            "Not in this binary, for want of a cargo feature:
  host         Keeps a host [feature: host]
               with the commands plan, apply
  sync         Brings them [feature: sync]
               with the commands haproxy plan, haproxy sync
  composite    Keeps composites [feature: composite]"
        );
        assert_eq!(
            absent_help_below(SOME, "haproxy"),
            "Not in this binary, for want of a cargo feature:
  sync         Brings them [feature: sync]
               with the commands haproxy plan, haproxy sync"
        );
        assert_eq!(
            (absent_help_below(SOME, "composite"), absent_help_below(SOME, "hap")),
            Default::default()
        );
        assert_eq!(absent_help(&SOME[1..2]), "");
    }

    #[test]
    fn a_command_of_an_absent_job_is_told_from_one_that_nobody_knows() {
        let job = |command| absent(SOME, command).map(|job| job.name);
        assert_eq!((job("apply"), job("composite")), (Some("host"), Some("composite")));
        assert_eq!((job("haproxy"), job("aply")), (None, None));
        assert_eq!((job("plan"), job("haproxy plan")), (Some("host"), Some("sync")));
    }

    #[test]
    fn the_way_to_add_a_job_keeps_those_that_are_in() {
        let how = how_to_add(SOME, &SOME[3]);
        assert!(how.contains("--no-default-features --features haproxy,composite`"), "{how}");
    }
}
