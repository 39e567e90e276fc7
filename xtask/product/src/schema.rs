//! `cargo xtask schema DIR`: writes what the API's specifications ask of properties anew.
//!
//! The folder holds `3.0.swagger2.json` and so on. What is required, enumerated, patterned or bounded becomes a line of
//! `schema/constraints.txt` of `setpoint-haproxy`, with the versions that ask for it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use serde_json::Value as Json;
use setpoint_haproxy::model::{ObjectKind, Version};
use xtask::workspace;

/// Arguments of `cargo xtask schema`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder of the specifications.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// What is asked of a property: the kind of object, its path, and the constraint.
type Asked = (&'static str, String, String);

/// Reads the specifications and writes the constraints.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut asked: BTreeMap<Asked, BTreeSet<Version>> = BTreeMap::new();
    let mut count = 0;
    for version in Version::ALL {
        let file = args.folder.join(format!("{version}.swagger2.json"));
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let specification: Json =
            serde_json::from_str(&text).with_context(|| format!("{} is not JSON", file.display()))?;
        count += 1;
        for kind in ObjectKind::ALL {
            let mut found = Collector { definitions: &specification["definitions"], out: BTreeSet::new() };
            // The first specifications spell one of them otherwise.
            let names = [kind.model(), if *kind == ObjectKind::FcgiApp { "fcgiApp" } else { kind.model() }];
            let definition = names.iter().find_map(|name| specification["definitions"].get(name));
            found.schema(definition.unwrap_or(&Json::Null), "", 0);
            for (path, constraint) in found.out {
                asked.entry((kind.model(), path, constraint)).or_default().insert(version);
            }
        }
    }
    ensure!(count > 0, "{} holds no specification such as 3.4.swagger2.json", args.folder.display());
    let mut text = String::from(
        "# What the API asks of properties. Written by `cargo xtask schema`: versions, kind, path, constraint.\n",
    );
    for ((kind, path, constraint), versions) in &asked {
        writeln!(text, "{} {kind} {path} {constraint}", ranges(versions))?;
    }
    let target = workspace::root().join("crates/setpoint-haproxy/src/schema/constraints.txt");
    std::fs::write(&target, &text).with_context(|| format!("can't write {}", target.display()))?;
    println!("{}: {} constraints of {count} versions", target.display(), asked.len());
    Ok(ExitCode::SUCCESS)
}

/// Writes versions as ranges: `3.0-3.2,3.4`.
fn ranges(versions: &BTreeSet<Version>) -> String {
    let mut ranges: Vec<(Version, Version)> = Vec::new();
    let follows = |a: Version, b: Version| {
        let position = |version| Version::ALL.iter().position(|held| *held == version);
        position(a).map(|a| a + 1) == position(b)
    };
    for version in versions {
        match ranges.last_mut() {
            Some((_, last)) if follows(*last, *version) => *last = *version,
            _ => ranges.push((*version, *version)),
        }
    }
    let show = |(first, last): &(Version, Version)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(show).collect::<Vec<_>>().join(",")
}

struct Collector<'d> {
    definitions: &'d Json,
    out: BTreeSet<(String, String)>,
}

impl<'d> Collector<'d> {
    /// Collects what a schema of an object asks, its properties below a path.
    fn schema(&mut self, schema: &'d Json, prefix: &str, depth: usize) {
        let schema = self.resolved(schema);
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.schema(part, prefix, depth);
        }
        for name in schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str) {
            // What can't be null can't be empty either.
            let is_nullable = schema["properties"][name]["x-nullable"] != Json::Bool(false);
            let word = if is_nullable { "required" } else { "required!" };
            self.out.insert((format!("{prefix}{name}"), word.to_owned()));
        }
        let required = |name: &str| {
            schema["required"].as_array().is_some_and(|names| names.iter().any(|held| held == name))
        };
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            // What stands in a section is validated for itself.
            let is_child = ObjectKind::ALL.iter().any(|kind| !kind.is_section() && kind.collection() == name)
                || matches!(name.as_str(), "loads" | "tcp_check_list");
            if !is_child && depth < 6 {
                self.property(property, &format!("{prefix}{name}"), depth, required(name));
            }
        }
    }

    fn property(&mut self, property: &'d Json, path: &str, depth: usize, is_required: bool) {
        let property = self.resolved(property);
        if property["type"] == "array" {
            return self.property(&property["items"], &format!("{path}[]"), depth + 1, false);
        }
        if property["properties"].is_object() || property["allOf"].is_array() {
            return self.schema(property, &format!("{path}."), depth + 1);
        }
        let mut add = |constraint: String| self.out.insert((path.to_owned(), constraint));
        // A zero that can't be told from what is not there is not looked at.
        let nullable = &property["x-nullable"];
        let is_told = *nullable == Json::Bool(true) || (is_required && *nullable != Json::Bool(false));
        let zero = if is_told { "!" } else { "" };
        if let Some(values) = property["enum"].as_array() {
            let spelled = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            add(format!("enum{zero} {}", values.iter().map(spelled).collect::<Vec<_>>().join("|")));
        }
        if let Some(pattern) = property["pattern"].as_str() {
            add(format!("pattern {pattern}"));
        }
        for (name, word) in [("minimum", "min"), ("maximum", "max")] {
            if let Some(bound) = property[name].as_i64() {
                add(format!("{word}{zero} {bound}"));
            }
        }
    }

    fn resolved(&self, schema: &'d Json) -> &'d Json {
        let name = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
        name.map_or(schema, |name| &self.definitions[name])
    }
}
