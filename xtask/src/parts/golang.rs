//! Parts that are built with Go, each from a small module in `parts/` that pins all it needs.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::cache::{Cache, Entry, recipe_hash};
use super::diagnosis::Problem;
use super::table::{GoRecipe, Part};
use super::{Effort, command, modules, report};
use crate::console;

/// Changes when this file makes something else of the same recipe.
const EDITION: &[u8] = b"go 1";
/// How long one build may take.
const LIMIT: Duration = Duration::from_mins(40);

/// Finds or builds a part.
pub(crate) fn obtain(
    part: &Part,
    recipe: &GoRecipe,
    cache: &Cache,
    effort: Effort,
) -> Result<Entry, Problem> {
    let module = modules().join(&recipe.module);
    let read = |name: &str| {
        let path = module.join(name);
        std::fs::read_to_string(&path).map_err(|error| Problem::from_io("can't read", &path, &error))
    };
    let (go_mod, go_sum) = (read("go.mod")?, read("go.sum")?);
    let version = required(&go_mod, &recipe.version).ok_or_else(|| {
        Problem::unavailable(format!("parts/{}/go.mod does not require {}", recipe.module, recipe.version))
    })?;
    let description = serde_json::to_vec(recipe).unwrap_or_default();
    let sources = sources(&module)?;
    let mut made_of = vec![EDITION, &description, go_mod.as_bytes(), go_sum.as_bytes()];
    made_of.extend(sources.iter().map(Vec::as_slice));
    let hash = recipe_hash(&made_of);

    if effort == Effort::Look {
        return cache.find(&part.name, &hash, None)?.ok_or_else(|| {
            Problem::missing(format!("it is not built yet: `cargo xtask parts {}` does it", part.name))
        });
    }
    let lock = cache.lock(&part.name)?;
    if let Some(entry) = cache.find(&part.name, &hash, Some(&lock))? {
        return Ok(entry);
    }
    report(&part.name, format_args!("building {version} with Go"));
    cache.fill(&lock, &part.name, &version, &hash, |folder, _| {
        let program = folder.join("bin").join(&recipe.program);
        command::run(
            &format!("building {}", part.name),
            &mut build(recipe, &version, &module, &program),
            LIMIT,
            |elapsed| report(&part.name, format_args!("still building after {}", console::human(elapsed))),
        )?;
        Ok(())
    })
}

fn build(recipe: &GoRecipe, version: &str, module: &Path, program: &Path) -> Command {
    let mut numbers = version.split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let mut flags = "-s -w".to_owned();
    for stamp in &recipe.stamp {
        let stamp = stamp.replace("{version}", version).replace("{major}", major).replace("{minor}", minor);
        flags.push_str(" -X ");
        flags.push_str(&stamp);
    }
    let mut command = Command::new("go");
    command
        .args(["build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", &flags])
        // The linker leaves debug information out (-s -w): making it for every package only takes time.
        .args(["-gcflags=all=-dwarf=false", "-o"])
        .arg(program)
        .arg(&recipe.package)
        .current_dir(module)
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .env_remove("GOFLAGS");
    command
}

/// The program's own source, where it is one of ours.
fn sources(module: &Path) -> Result<Vec<Vec<u8>>, Problem> {
    let wrong = |path: &Path, error: &std::io::Error| Problem::from_io("can't read", path, error);
    let listed = std::fs::read_dir(module).map_err(|error| wrong(module, &error))?;
    let mut paths: Vec<_> = listed.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "go"));
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).map_err(|error| wrong(path, &error))).collect()
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
            assert!(go_mod.contains(&format!("tool {}", recipe.package)) || go_mod.contains(&recipe.package));
            assert!(module.join("go.sum").exists(), "{}", part.name);
        }
    }

    #[test]
    fn a_program_of_ours_is_made_of_its_source_too() {
        let count = |module: &str| sources(&modules().join(module)).map(|sources| sources.len()).ok();
        assert_eq!((count("helm"), count("etcd"), count("nothing")), (Some(1), Some(0), None));
    }

    #[test]
    fn the_linker_is_told_the_version() {
        let recipe = GoRecipe {
            module: "m".into(),
            package: "a.b/c".into(),
            version: "a.b/c".into(),
            program: "c".into(),
            stamp: vec!["p.version=v{version}".into(), "p.minor={minor}".into()],
        };
        let command = build(&recipe, "1.34.4", Path::new("m"), Path::new("c"));
        let arguments: Vec<_> = command.get_args().map(|a| a.to_str().unwrap()).collect();
        assert!(arguments.contains(&"-s -w -X p.version=v1.34.4 -X p.minor=34"), "{arguments:?}");
        assert!(arguments.contains(&"-gcflags=all=-dwarf=false"), "{arguments:?}");
        assert_eq!(arguments[arguments.len() - 3..], ["-o", "c", "a.b/c"]);
    }
}
