//! `cargo xtask parts [NAME…]`: obtains the real parts that tests run against.
//!
//! ```text
//! parts.toml ──table──▶ part ──┬─ debian ─┐
//!                              ├─ golang ─┼──▶ cache entry ──▶ status ──▶ manifest (parts.json)
//!                              └─ found ──┘
//! ```
//!
//! Debian and Go parts are made side by side, each kind one after the other, the programs of one Go module together. A part that can't be had does not
//! stop the others: its status says why, in words that name the part and what to do.

mod cache;
mod command;
mod debian;
mod diagnosis;
mod found;
mod golang;
mod table;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use setpoint_testutils::manifest::{MANIFEST_FILE, Manifest, PartState, PartStatus};

use crate::{console, workspace};
use cache::Cache;
pub(crate) use command::cancel;
pub(crate) use debian::Apt;
use debian::Debian;
pub(crate) use diagnosis::Problem;
pub(crate) use found::summary as found_summary;
use table::{Part, Source};
pub(crate) use table::{Suite, Table};

/// Arguments of `cargo xtask parts`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Parts or groups of parts to obtain; all if none is named.
    names: Vec<String>,
    /// Prints one JSON object a part.
    #[arg(long)]
    json: bool,
    /// Makes nothing: only says what is there.
    #[arg(long)]
    dry_run: bool,
    /// Looks for newer versions of Debian packages even where one is in the cache.
    #[arg(long, conflicts_with = "dry_run")]
    update: bool,
    #[command(flatten)]
    folder: Folder,
}

/// Where the cache is.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Folder {
    /// The cache folder of the parts; `setpoint/parts` in the user's cache directory unless given.
    #[arg(long, env = "SETPOINT_PARTS_DIR", value_name = "FOLDER")]
    parts_dir: Option<PathBuf>,
}

/// How much is done for the parts that were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Only look at the cache.
    Look,
    /// Make what is not there.
    Make,
    /// Make what is not there or not the newest.
    Update,
}

/// Obtains the parts and prints what there is.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let effort = match (args.dry_run, args.update) {
        (true, _) => Effort::Look,
        (_, true) => Effort::Update,
        _ => Effort::Make,
    };
    let table = Table::load()?;
    let chosen = choose(&table, &args.names)?;
    let manifest = obtain(&table, &args.folder, &chosen, effort)?;
    if args.json {
        print!("{}", manifest.to_json_lines()?);
    } else {
        print_table(&manifest);
    }
    let wanting = manifest
        .parts
        .iter()
        .any(|part| chosen.contains(&part.name) && part.state != PartState::Ready && !part.optional);
    Ok(if wanting && effort != Effort::Look { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The names of the parts that `names` stand for: parts or groups; all if there is none.
pub(crate) fn choose(table: &Table, names: &[String]) -> Result<BTreeSet<String>> {
    if names.is_empty() {
        return Ok(table.parts.iter().map(|part| part.name.clone()).collect());
    }
    let mut chosen = BTreeSet::new();
    for name in names {
        let matching = table.parts.iter().filter(|part| part.name == *name || part.groups.contains(name));
        let before = chosen.len();
        chosen.extend(matching.map(|part| part.name.clone()));
        if chosen.len() == before && !table.has(name) {
            let parts: Vec<_> = table.parts.iter().map(|part| part.name.as_str()).collect();
            let groups: Vec<_> = table.groups().into_iter().collect();
            bail!(
                "no part or group is called `{name}`; parts: {}; groups: {}",
                parts.join(", "),
                groups.join(", ")
            );
        }
    }
    Ok(chosen)
}

/// Obtains the chosen parts, looks at the others, and leaves the manifest in the cache folder. Who only looks leaves
/// nothing.
pub(crate) fn obtain(
    table: &Table,
    folder: &Folder,
    chosen: &BTreeSet<String>,
    effort: Effort,
) -> Result<Manifest> {
    let cache = match effort {
        Effort::Look => Cache::at(folder.path()?),
        Effort::Make | Effort::Update => Cache::open(folder.path()?)?,
    };
    let debian = Debian::new(&cache, &table.debian);
    let effort_for = |part: &Part| if chosen.contains(&part.name) { effort } else { Effort::Look };
    let of_debian = || -> Vec<_> {
        let parts = table.parts.iter().filter_map(|part| match &part.source {
            Source::Debian(recipe) => Some((part, recipe)),
            _ => None,
        });
        let obtain = |(part, recipe): (&Part, _)| {
            let started = Instant::now();
            let outcome = debian.obtain(part, recipe, effort_for(part));
            if outcome.as_ref().is_ok_and(|entry| entry.made) {
                report(&part.name, format_args!("ready after {}", console::human(started.elapsed())));
            }
            status(part, effort_for(part), outcome)
        };
        parts.map(obtain).collect()
    };
    let statuses = std::thread::scope(|scope| {
        let debian = scope.spawn(of_debian);
        let built = of_go(table, &cache, effort_for);
        debian.join().map(|debian| [debian, built, found_parts(table)].concat())
    });
    let Ok(mut parts) = statuses else {
        bail!("a part could not be made: its maker panicked");
    };
    let position = |status: &PartStatus| {
        table.parts.iter().position(|part| status.name.starts_with(&part.name)).unwrap_or(usize::MAX)
    };
    parts.sort_by_key(position);
    let manifest = Manifest { parts };
    if effort == Effort::Look {
        return Ok(manifest);
    }
    let file = cache.root().join(MANIFEST_FILE);
    cache::write_whole(&file, manifest.to_json_lines()?.as_bytes())
        .map_err(|error| anyhow!(Problem::from_io("can't write", &file, &error).why))?;
    Ok(manifest)
}

/// Obtains what is built with Go, module by module.
fn of_go(table: &Table, cache: &Cache, effort_for: impl Fn(&Part) -> Effort) -> Vec<PartStatus> {
    let mut modules: Vec<(&str, Vec<golang::Wanted<'_>>)> = Vec::new();
    for part in &table.parts {
        let Source::Go(recipe) = &part.source else { continue };
        let wanted = (part, recipe, effort_for(part));
        match modules.iter_mut().find(|(module, _)| *module == recipe.module) {
            Some((_, parts)) => parts.push(wanted),
            None => modules.push((&recipe.module, vec![wanted])),
        }
    }
    let mut statuses = Vec::new();
    for (module, wanted) in modules {
        let outcomes = golang::obtain(&wanted, table.modules.get(module), cache);
        let parts = wanted.iter().zip(outcomes);
        statuses.extend(parts.map(|((part, _, effort), outcome)| status(part, *effort, outcome)));
    }
    statuses
}

/// Looks for what is never made. A part that is found on the machine may stand for several.
fn found_parts(table: &Table) -> Vec<PartStatus> {
    let found = |part: &Part| match &part.source {
        Source::Found(recipe) => found::statuses(part, recipe),
        _ => Vec::new(),
    };
    table.parts.iter().flat_map(found).collect()
}

/// What is known of a part after it was obtained, or was not.
fn status(part: &Part, effort: Effort, outcome: Result<cache::Entry, Problem>) -> PartStatus {
    let (name, optional) = (part.name.clone(), part.optional);
    match outcome {
        Ok(entry) => PartStatus {
            name,
            version: Some(entry.version),
            state: PartState::Ready,
            path: Some(entry.path),
            why: None,
            optional,
        },
        Err(Problem { state, why }) => {
            if effort != Effort::Look {
                report(&name, &why);
            }
            PartStatus { name, version: None, state, path: None, why: Some(why), optional }
        }
    }
}

/// Says on standard error how a part is coming along.
fn report(part: &str, news: impl std::fmt::Display) {
    eprintln!("parts: {part}: {news}");
}

fn print_table(manifest: &Manifest) {
    let width = manifest.parts.iter().map(|part| part.name.len()).max().unwrap_or(0);
    for part in &manifest.parts {
        let state = match part.state {
            PartState::Ready => "ready",
            PartState::Missing => "missing",
            PartState::Unavailable => "unavailable",
        };
        let version = part.version.as_deref().unwrap_or("-");
        println!("{:width$}  {state:11}  {version}", part.name);
        if let Some(why) = &part.why {
            println!("{:width$}  {}", "", why.replace('\n', "\n  "));
        }
    }
    println!("{}", found::summary(manifest));
}

impl Folder {
    /// The cache folder: as given, or in the user's cache directory.
    pub(crate) fn path(&self) -> Result<PathBuf> {
        if let Some(given) = &self.parts_dir {
            return std::path::absolute(given).context("can't make sense of --parts-dir");
        }
        let from_home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
        std::env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(from_home)
            .map(|cache| cache.join("setpoint").join("parts"))
            .context("there is no home directory to keep parts in: give a folder with --parts-dir")
    }
}

/// The architecture of this machine, as cache entries name it.
fn architecture() -> &'static str {
    std::env::consts::ARCH
}

/// The folder of the workspace that holds the Go modules.
fn modules() -> PathBuf {
    workspace::root().join("parts")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_chooses_a_part_or_a_group() {
        let table = Table::load().unwrap();
        let choose = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(ToString::to_string).collect();
            super::choose(&table, &names)
        };
        let of = |names: &[&str]| names.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        assert_eq!(choose(&["consul"]).unwrap(), of(&["consul"]));
        assert_eq!(
            choose(&["kubernetes"]).unwrap(),
            of(&["etcd", "helm", "kube-apiserver", "kube-controllers", "kubectl"])
        );
        assert_eq!(choose(&[]).unwrap().len(), table.parts.len());
        let message = choose(&["konsul"]).unwrap_err().to_string();
        assert!(message.contains("`konsul`") && message.contains("consul"), "{message}");
    }
}
