//! Parts that are built with Go, from small modules in `parts/` that pin all they need.
//!
//! ```text
//! parts of one module ──▶ those not in the cache ──one go build──▶ programs ──▶ an entry each
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::cache::{Cache, Entry, Lock, Scratch, recipe_hash};
use super::diagnosis::Problem;
use super::table::{GoModule, GoRecipe, Part};
use super::{Effort, command, modules, report};
use crate::console;

/// Changes when this file makes something else of the same recipe.
const EDITION: &[u8] = b"go 2";
/// How long one build may take.
const LIMIT: Duration = Duration::from_mins(40);

/// A part, how it is made, and how much is done for it.
pub(crate) type Wanted<'a> = (&'a Part, &'a GoRecipe, Effort);

/// Finds or builds parts of one module: what is not in the cache is built by one command. One outcome for each, in order.
pub(crate) fn obtain(
    wanted: &[Wanted<'_>],
    shared: Option<&GoModule>,
    cache: &Cache,
) -> Vec<Result<Entry, Problem>> {
    let Some((_, first, _)) = wanted.first() else { return Vec::new() };
    let module = match Module::read(&first.module, shared) {
        Ok(module) => module,
        Err(problem) => return wanted.iter().map(|_| Err(problem.clone())).collect(),
    };
    let mut outcomes = BTreeMap::new();
    let mut missing = Vec::new();
    // Every run takes the locks in the order of the table.
    for (index, (part, recipe, effort)) in wanted.iter().enumerate() {
        match look(&module, part, recipe, *effort, cache) {
            Ok(Found::Entry(entry)) => drop(outcomes.insert(index, Ok(entry))),
            Ok(Found::Nothing(order)) => missing.push((index, order)),
            Err(problem) => drop(outcomes.insert(index, Err(problem))),
        }
    }
    if !missing.is_empty() {
        let built = build(&module, missing.iter().map(|(_, order)| order), cache);
        for (index, order) in &missing {
            let entry = match &built {
                Ok(programs) => order.fill(cache, programs.path()),
                Err(problem) => Err(problem.clone()),
            };
            outcomes.insert(*index, entry);
        }
    }
    outcomes.into_values().collect()
}

/// One folder in `parts/`.
#[derive(Debug)]
struct Module {
    folder: PathBuf,
    go_mod: String,
    /// What the linker is told, beside what it is always told.
    flags: String,
    /// All that programs of the module are made of, apart from the modules that it pins.
    made_of: Vec<Vec<u8>>,
}

/// What the cache has of a part.
#[derive(Debug)]
enum Found<'a> {
    Entry(Entry),
    Nothing(Order<'a>),
}

/// A part that has to be built.
#[derive(Debug)]
struct Order<'a> {
    part: &'a Part,
    recipe: &'a GoRecipe,
    version: String,
    hash: String,
    lock: Lock,
}

impl Module {
    fn read(name: &str, shared: Option<&GoModule>) -> Result<Self, Problem> {
        let folder = modules().join(name);
        let path = folder.join("go.mod");
        let go_mod =
            fs::read_to_string(&path).map_err(|error| Problem::from_io("can't read", &path, &error))?;
        let mut flags = "-s -w".to_owned();
        if let Some(shared) = shared {
            let version = version(name, &go_mod, &shared.version)?;
            let mut numbers = version.split('.');
            let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
            for stamp in &shared.stamp {
                let stamp = stamp.replace("{version}", &version);
                let stamp = stamp.replace("{major}", major).replace("{minor}", minor);
                flags.push_str(" -X ");
                flags.push_str(&stamp);
            }
        }
        Ok(Self { made_of: sources(&folder)?, folder, go_mod, flags })
    }
}

/// Looks for a part in the cache. For one that has to be built the lock is kept.
fn look<'a>(
    module: &Module,
    part: &'a Part,
    recipe: &'a GoRecipe,
    effort: Effort,
    cache: &Cache,
) -> Result<Found<'a>, Problem> {
    let version = version(&recipe.module, &module.go_mod, &recipe.version)?;
    let description = serde_json::to_vec(recipe).unwrap_or_default();
    let mut made_of = vec![EDITION, &description, module.flags.as_bytes()];
    made_of.extend(module.made_of.iter().map(Vec::as_slice));
    let hash = recipe_hash(&made_of);
    if effort == Effort::Look {
        let entry = cache.find(&part.name, &hash, None)?.ok_or_else(|| {
            Problem::missing(format!("it is not built yet: `cargo xtask parts {}` does it", part.name))
        })?;
        return Ok(Found::Entry(entry));
    }
    let lock = cache.lock(&part.name)?;
    Ok(match cache.find(&part.name, &hash, Some(&lock))? {
        Some(entry) => Found::Entry(entry),
        None => Found::Nothing(Order { part, recipe, version, hash, lock }),
    })
}

impl Order<'_> {
    /// Makes the entry of what was built.
    fn fill(&self, cache: &Cache, programs: &Path) -> Result<Entry, Problem> {
        let entry = (self.part.name.as_str(), self.version.as_str(), self.hash.as_str());
        cache.fill(&self.lock, entry, &[], |folder, _| {
            let (from, to) = (programs.join(built_name(&self.recipe.package)), folder.join("bin"));
            fs::create_dir(&to)
                .and_then(|()| fs::copy(&from, to.join(&self.recipe.program)))
                .map_err(|error| Problem::from_io("can't keep", &from, &error))?;
            Ok(())
        })
    }
}

/// Builds programs into a folder of the first part, whose lock is held.
fn build<'a>(
    module: &Module,
    orders: impl Iterator<Item = &'a Order<'a>> + Clone,
    cache: &Cache,
) -> Result<Scratch, Problem> {
    let names: Vec<_> = orders.clone().map(|order| order.part.name.as_str()).collect();
    let name = names.join(", ");
    for order in orders.clone() {
        report(&order.part.name, format_args!("building {} with Go", order.version));
    }
    let started = Instant::now();
    let folder = cache.scratch(names.first().copied().unwrap_or_default())?;
    let packages = orders.map(|order| order.recipe.package.as_str());
    command::run(
        &format!("building {name}"),
        &mut go_build(module, packages, folder.path()),
        LIMIT,
        |elapsed| report(&name, format_args!("still building after {}", console::human(elapsed))),
    )?;
    report(&name, format_args!("built in {}", console::human(started.elapsed())));
    Ok(folder)
}

fn go_build<'a>(module: &Module, packages: impl Iterator<Item = &'a str>, folder: &Path) -> Command {
    let mut command = Command::new("go");
    command
        .args(["build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", &module.flags])
        // The linker leaves debug information out (-s -w): making it for every package only takes time.
        .args(["-gcflags=all=-dwarf=false", "-o"])
        .arg(folder.join(""))
        .args(packages)
        .current_dir(&module.folder)
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .env_remove("GOFLAGS");
    command
}

/// What Go calls the program of a package: the last word of its path, a major version aside.
fn built_name(package: &str) -> &str {
    let major = |word: &str| {
        word.strip_prefix('v')
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    };
    package.rsplit('/').find(|word| !major(word)).unwrap_or(package)
}

/// The files of a module, nested ones included: its pins, and the source of programs of ours.
fn sources(module: &Path) -> Result<Vec<Vec<u8>>, Problem> {
    let wrong = |path: &Path, error: &std::io::Error| Problem::from_io("can't read", path, error);
    let (mut folders, mut paths) = (vec![module.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| wrong(&folder, &error))? {
            let path = entry.map_err(|error| wrong(&folder, &error))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|name| ["go", "mod", "sum"].iter().any(|known| name == *known))
            {
                paths.push(path);
            }
        }
    }
    paths.sort();
    paths.iter().map(|path| fs::read(path).map_err(|error| wrong(path, &error))).collect()
}

/// The version of a module that the `go.mod` of a folder has to require.
fn version(folder: &str, go_mod: &str, module: &str) -> Result<String, Problem> {
    required(go_mod, module)
        .ok_or_else(|| Problem::unavailable(format!("parts/{folder}/go.mod does not require {module}")))
}

/// The version of a module that a `go.mod` requires, without its `v`.
fn required(go_mod: &str, module: &str) -> Option<String> {
    go_mod.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip_while(|word| *word == "require");
        (words.next() == Some(module))
            .then(|| words.next())
            .flatten()
            .map(|v| v.trim_start_matches('v').to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::super::table::{Source, Table};
    use super::*;

    #[test]
    fn the_version_is_the_required_one() {
        let go_mod = "module x\n\nreplace k8s.io/api => k8s.io/api v0.34.4\n\nrequire a.b/c v1.2.3\n\nrequire (\n\t\
                      a.b/d v0.4.0 // indirect\n\ta.b/d/e v0.5.0\n)\n";
        assert_eq!(required(go_mod, "a.b/c").as_deref(), Some("1.2.3"));
        assert_eq!(required(go_mod, "a.b/d").as_deref(), Some("0.4.0"));
        assert_eq!(required(go_mod, "k8s.io/api"), None);
    }

    #[test]
    fn every_go_part_of_the_table_has_a_module_that_requires_it() {
        for part in Table::load().unwrap().parts {
            let Source::Go(recipe) = &part.source else { continue };
            let module = modules().join(&recipe.module);
            let go_mod = std::fs::read_to_string(module.join("go.mod")).unwrap();
            assert!(required(&go_mod, &recipe.version).is_some(), "{}", part.name);
            let own = recipe.package.strip_prefix("setpoint/parts/");
            let ours = own.is_some_and(|folder| modules().join(folder).join("main.go").exists());
            assert!(ours || go_mod.contains(&recipe.package), "{}", part.name);
            assert!(module.join("go.sum").exists(), "{}", part.name);
        }
    }

    #[test]
    fn a_program_of_ours_is_made_of_its_source_too() {
        let count = |module: &str| sources(&modules().join(module)).map(|sources| sources.len()).ok();
        assert_eq!((count("helm"), count("wireguard-go"), count("nothing")), (Some(3), Some(2), None));
        assert_eq!(count("kubernetes"), Some(3), "programs in folders below count as well");
    }

    #[test]
    fn a_program_is_called_by_the_last_word_of_its_package() {
        assert_eq!(built_name("k8s.io/kubernetes/cmd/kubectl"), "kubectl");
        assert_eq!(built_name("go.etcd.io/etcd/server/v3"), "server");
        assert_eq!(built_name("a.b/c/view"), "view");
    }

    #[test]
    fn one_command_builds_the_programs_of_a_module_and_the_linker_is_told_the_version() {
        let table = Table::load().unwrap();
        let module = Module::read("kubernetes", table.modules.get("kubernetes")).unwrap();
        let packages = ["k8s.io/kubernetes/cmd/kubectl", "setpoint/parts/kubernetes/controllers"];
        let command = go_build(&module, packages.into_iter(), Path::new("/out"));
        let arguments: Vec<_> = command.get_args().map(|a| a.to_str().unwrap()).collect();
        let flags = arguments.iter().find(|argument| argument.starts_with("-s -w")).unwrap();
        let version = required(&module.go_mod, "k8s.io/kubernetes").unwrap();
        assert!(
            flags.contains(&format!("-X k8s.io/component-base/version.gitVersion=v{version}")),
            "{flags}"
        );
        assert!(arguments.contains(&"-gcflags=all=-dwarf=false"), "{arguments:?}");
        assert_eq!(arguments[arguments.len() - 4..], ["-o", "/out/", packages[0], packages[1]]);
    }

    #[test]
    fn a_version_that_a_module_does_not_require_is_said() {
        let shared = GoModule { version: "no.such/module".into(), stamp: vec![] };
        let problem = Module::read("helm", Some(&shared)).unwrap_err();
        assert_eq!(problem.why, "parts/helm/go.mod does not require no.such/module");
    }
}
