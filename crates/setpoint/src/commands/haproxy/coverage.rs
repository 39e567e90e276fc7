//! `setpoint haproxy coverage`: how much of HAProxy's language the model covers.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;
use setpoint_haproxy::model::{Context, Version, section_model};
use setpoint_haproxy::text::Document;

use super::{name, read};
use crate::cli::HaproxyCoverageArgs;
use crate::error::CliError;
use crate::report::{print, print_json};

/// How many lines of a kind of section of one file are modelled.
#[derive(Debug, Serialize)]
struct Lines {
    file: String,
    version: String,
    section: String,
    lines: usize,
    modelled: usize,
}

pub(crate) fn run(args: &HaproxyCoverageArgs) -> Result<u8, CliError> {
    let version = args.version.unwrap_or(Version::LATEST);
    for path in &args.files {
        let counted = count(&name(path), &read(path)?, version);
        if args.json {
            counted.iter().try_for_each(print_json)?;
        } else {
            print(&table(&name(path), version, &counted))?;
        }
    }
    Ok(0)
}

fn count(file: &str, document: &Document, version: Version) -> Vec<Lines> {
    let cx = Context::new(version);
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for section in document.sections().iter().filter(|section| section.header().is_some()) {
        let lines = section.lines().filter(|line| !line.is_blank()).count();
        let model = section_model(section, &cx);
        let header = section.header().map(|line| line.number());
        let unmodelled = model.unmodelled.iter().filter(|line| Some(**line) != header).count();
        let modelled = if model.text_only.is_some() { 0 } else { lines.saturating_sub(unmodelled) };
        let entry = counts.entry(section.kind().to_string()).or_default();
        *entry = (entry.0 + lines, entry.1 + modelled);
    }
    let line = |(section, (lines, modelled))| Lines {
        file: file.to_owned(),
        version: version.to_string(),
        section,
        lines,
        modelled,
    };
    counts.into_iter().map(line).collect()
}

fn table(file: &str, version: Version, counted: &[Lines]) -> String {
    let mut out = format!("{:<18}{:>8}{:>10}\n", "section", "lines", "modelled");
    for Lines { section, lines, modelled, .. } in counted {
        // Writing to a string can't fail.
        let _ = writeln!(out, "{section:<18}{lines:>8}{modelled:>10}  {}", percent(*modelled, *lines));
    }
    let (lines, modelled) = counted.iter().fold((0, 0), |sum, row| (sum.0 + row.lines, sum.1 + row.modelled));
    let _ = writeln!(out, "{file}: {modelled} of {lines} lines modelled for HAProxy {version}.");
    out
}

fn percent(part: usize, whole: usize) -> String {
    if whole == 0 { "–".to_owned() } else { format!("{:>3}%", part * 100 / whole) }
}
