//! `setpoint haproxy coverage`: how much of HAProxy's language the model covers.

use std::fmt::Write;

use serde::Serialize;
use setpoint_haproxy::check::{Covered, covered};
use setpoint_haproxy::keywords::{ASKED, Coverage, coverage};
use setpoint_haproxy::model::{Context, Version};
use setpoint_haproxy::text::{Document, SectionKind};

use super::args::HaproxyCoverageArgs;
use super::{name, read};
use crate::error::CliError;
use crate::report::{Report, print, print_json};

/// How many lines of a kind of section of one file are modelled.
#[derive(Debug, Serialize)]
struct Counted {
    file: String,
    version: String,
    section: String,
    lines: usize,
    modelled: usize,
}

pub(crate) fn run(args: &HaproxyCoverageArgs, report: Report) -> Result<u8, CliError> {
    if args.files.is_empty() {
        return keywords(args);
    }
    let version = args.version.unwrap_or(Version::LATEST);
    let cx = Context { env: args.env.variables(), ..Context::new(version) };
    for path in &args.files {
        let counted = count(&name(path), &read(path, report)?, &cx);
        if args.json {
            counted.iter().try_for_each(print_json)?;
        } else {
            print(&table(&name(path), version, &counted))?;
        }
    }
    Ok(0)
}

/// The keywords of each section and version.
fn keywords(args: &HaproxyCoverageArgs) -> Result<u8, CliError> {
    let versions: Vec<Version> = args.version.map_or_else(|| ASKED.to_vec(), |version| vec![version]);
    let rows: Vec<Vec<Coverage>> = versions.iter().map(|version| coverage(*version)).collect();
    if args.json {
        rows.iter().flatten().try_for_each(print_json)?;
        return Ok(0);
    }
    let mut out = format!("{:<18}", "section");
    for version in &versions {
        // Writing to a string can't fail.
        let _ = write!(out, "{:>16}", version.as_str());
    }
    out.push('\n');
    let mut sections: Vec<SectionKind> = rows.iter().flatten().map(|row| row.section).collect();
    sections.sort_unstable();
    sections.dedup();
    for section in sections {
        let _ = write!(out, "{:<18}", section.to_string());
        for rows in &rows {
            let row = rows.iter().find(|row| row.section == section);
            let cell = row.map_or_else(|| "–".to_owned(), |row| cell(row.modelled, row.keywords));
            let _ = write!(out, "{cell:>16}");
        }
        out.push('\n');
    }
    let _ = write!(out, "{:<18}", "all");
    for rows in &rows {
        let (modelled, keywords) =
            rows.iter().fold((0, 0), |sum, row| (sum.0 + row.modelled, sum.1 + row.keywords));
        let _ = write!(out, "{:>16}", cell(modelled, keywords));
    }
    out.push('\n');
    if args.version.is_some() {
        for row in rows.iter().flatten().filter(|row| !row.missing.is_empty() && row.modelled > 0) {
            let _ = writeln!(out, "\nnot modelled in {}: {}", row.section, row.missing.join(" "));
        }
    }
    print(&out)?;
    Ok(0)
}

fn cell(part: usize, whole: usize) -> String {
    format!("{part}/{whole} {}", percent(part, whole))
}

fn count(file: &str, document: &Document, cx: &Context) -> Vec<Counted> {
    let line = |(section, Covered { lines, described }): (SectionKind, Covered)| Counted {
        file: file.to_owned(),
        version: cx.haproxy.to_string(),
        section: section.to_string(),
        lines,
        modelled: described,
    };
    covered(document, cx).into_iter().map(line).collect()
}

fn table(file: &str, version: Version, counted: &[Counted]) -> String {
    let mut out = format!("{:<18}{:>8}{:>10}\n", "section", "lines", "modelled");
    for Counted { section, lines, modelled, .. } in counted {
        // Writing to a string can't fail.
        let _ = writeln!(out, "{section:<18}{lines:>8}{modelled:>10}  {}", percent(*modelled, *lines));
    }
    let (lines, modelled) = counted.iter().fold((0, 0), |sum, row| (sum.0 + row.lines, sum.1 + row.modelled));
    let _ = writeln!(out, "{file}: {modelled} of {lines} lines modelled for HAProxy {version}.");
    out
}

fn percent(part: usize, whole: usize) -> String {
    (part * 100).checked_div(whole).map_or_else(|| "–".to_owned(), |percent| format!("{percent:>3}%"))
}
