//! `cargo xtask conformance check`: holds `setpoint haproxy check` to `haproxy -c`, file by file and line by line.
//!
//! ```text
//!  DIR/**/*.cfg     whole files ────────────┐
//!  DIR/**/*.jsonl   single lines, each in a ├──▶ haproxy -c of each version ──▶ verdicts, kept in the target folder
//!                   section of its own ─────┘    check for that version    ──▶ found, missed, false errors
//! ```
//!
//! The rate is given twice: of what HAProxy refuses for its text alone, and of what it refuses *here*, where variables that are
//! not set and features that its build lacks count as well. `check` knows neither.
//!
//! A line of a `.jsonl` file is `{"section": "backend", "line": "balance uri depth x"}`. A corpus is other people's work
//! and is not committed.

mod verdicts;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use setpoint_haproxy::check::{Checks, check, covered, undescribed};
use setpoint_haproxy::keywords::ASKED;
use setpoint_haproxy::model::{Context as ModelContext, Version};
use setpoint_haproxy::text::{Document, Severity};

use verdicts::{Verdict, Verdicts, quoted};

/// What is held to HAProxy: a whole file, or a single line with what has to stand around it.
struct Subject {
    name: String,
    text: Vec<u8>,
    is_line: bool,
}

/// A single line, as a corpus holds it.
#[derive(Deserialize)]
struct SingleLine {
    section: String,
    line: String,
}

/// What came of the subjects of one kind.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Count {
    /// HAProxy accepts them.
    accepted: usize,
    /// HAProxy refuses them for what is written in them.
    refused: usize,
    /// `check` finds an error in these, too.
    found: usize,
    /// HAProxy refuses them for what is written in them, or for a variable that is not set or a feature that it is built without.
    refused_here: usize,
    /// `check` finds an error in these, too.
    found_here: usize,
    /// HAProxy accepts them, and `check` finds an error.
    false_errors: usize,
    /// HAProxy refuses them only for what this machine lacks: files, users, names of hosts, variables, features of its build.
    machine: usize,
}

/// What is counted of one version.
#[derive(Default)]
struct Report {
    files: Count,
    lines: Count,
    /// The alerts of whole files that name a line.
    alerts: Count,
    /// Of the lines of files that HAProxy accepts, how many there are and how many the table describes.
    covered: Covered,
    /// How often each kind of message was found and missed.
    kinds: BTreeMap<String, (usize, usize)>,
}

/// What has to be reached, in percent: of the whole files and of the single lines that HAProxy refuses, how many `check` finds; of
/// the lines of files that HAProxy accepts, how many the table describes.
const GOALS: [(&str, usize); 3] = [("files", 95), ("single lines", 90), ("lines of accepted files", 98)];

/// Judges a corpus. False errors are a failure, and so is a rate below its goal.
pub(super) fn run(corpus: &Path, json: bool, show: bool) -> Result<ExitCode> {
    let mut subjects = Vec::new();
    collect(corpus, &mut subjects)?;
    if subjects.is_empty() {
        bail!("no .cfg and no .jsonl file in {}", corpus.display());
    }
    let mut false_errors = 0;
    let mut shortfalls = Vec::new();
    for version in ASKED {
        let texts: Vec<&[u8]> = subjects.iter().map(|subject| subject.text.as_slice()).collect();
        let verdicts = Verdicts::of(version, &texts)?;
        let mut report = Report::default();
        for (subject, verdict) in subjects.iter().zip(verdicts.iter()) {
            report.add(subject, verdict, version, show);
        }
        false_errors += report.files.false_errors + report.lines.false_errors;
        shortfalls.extend(report.shortfalls().into_iter().map(|shortfall| format!("{version}: {shortfall}")));
        if json {
            report.print_json(version);
        } else {
            report.print(version);
        }
    }
    for shortfall in &shortfalls {
        eprintln!("{shortfall}");
    }
    Ok(if false_errors == 0 && shortfalls.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Collects the files of a folder and of those in it.
fn collect(folder: &Path, subjects: &mut Vec<Subject>) -> Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("can't read {}", folder.display()))?;
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<_>>()?;
    paths.sort_unstable();
    for path in paths {
        let read = || std::fs::read(&path).with_context(|| format!("can't read {}", path.display()));
        let name = path.display().to_string();
        match path.extension().and_then(|extension| extension.to_str()) {
            _ if path.is_dir() => collect(&path, subjects)?,
            Some("cfg") => subjects.push(Subject { name, text: read()?, is_line: false }),
            Some("jsonl") => {
                for (number, line) in String::from_utf8_lossy(&read()?).lines().enumerate() {
                    let single: SingleLine = serde_json::from_str(line)
                        .with_context(|| format!("{name}:{} is not a section and a line", number + 1))?;
                    let text = surrounded(&single).into_bytes();
                    let name = format!("{}: {}", single.section, single.line);
                    subjects.push(Subject { name, text, is_line: true });
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// A configuration that is fine but for one line.
fn surrounded(single: &SingleLine) -> String {
    let SingleLine { section, line } = single;
    if section == "global" {
        return format!("global\n  {line}\n");
    }
    let name = if section == "traces" { "" } else { " x" };
    // What HAProxy wants in such a section whatever else stands there.
    let needed = match section.as_str() {
        "frontend" | "listen" | "log-forward" => "  bind 127.0.0.1:8080\n",
        "fcgi-app" => "  docroot /x\n",
        "cache" => "  total-max-size 4\n",
        "program" => "  command /bin/true\n",
        _ => "",
    };
    format!(
        "defaults\n  mode http\n  timeout client 1s\n  timeout connect 1s\n  timeout server 1s\n{section}{name}\n{needed}  {line}\n"
    )
}

/// The lines in which HAProxy expands a variable, counted from 1.
fn lines_with_variables(document: &Document) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut first = 1;
    for section in document.sections() {
        let lines = section.all_lines().filter(|line| line.words().any(|word| word.variable));
        found.extend(lines.map(|line| first + line.number()));
        first += section.line_count();
    }
    found
}

/// The ACLs of some lines, counted from 1.
fn acls_of(document: &Document, lines: &BTreeSet<u32>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut first = 1;
    for section in document.sections() {
        for line in section.all_lines().filter(|line| lines.contains(&(first + line.number()))) {
            let mut words = line.words();
            if words.next().is_some_and(|word| word.is("acl")) {
                found.extend(words.next().map(|name| name.to_str_lossy().into_owned()));
            }
        }
        first += section.line_count();
    }
    found
}

/// How many lines the table describes.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Covered {
    lines: usize,
    described: usize,
}

impl Covered {
    fn add(&mut self, document: &Document, version: Version, name: &str, show: bool) {
        let cx = ModelContext::new(version);
        for section in covered(document, &cx).values() {
            self.lines += section.lines;
            self.described += section.described;
        }
        if show {
            let text = document.print();
            let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
            for number in undescribed(document, &cx) {
                let line = lines.get(number as usize - 1).copied().unwrap_or_default();
                println!(
                    "not described, {version}: {name}:{number}: {}",
                    String::from_utf8_lossy(line).trim()
                );
            }
        }
    }
}

impl Report {
    fn add(&mut self, subject: &Subject, verdict: &Verdict, version: Version, show: bool) {
        let document = Document::parse(&subject.text);
        let checks = Checks { version: Some(version), ..Checks::default() };
        let mut errors = check(&document, &checks);
        errors.retain(|found| found.severity == Severity::Error);
        let count = if subject.is_line { &mut self.lines } else { &mut self.files };
        if verdict.of_text_and_build().next().is_some() && !verdict.accepted {
            count.refused_here += 1;
            count.found_here += usize::from(!errors.is_empty());
        }
        // What a variable stands for is the machine's to say.
        let variable_lines = lines_with_variables(&document);
        let lost_acls = acls_of(&document, &variable_lines);
        let mut alerts = verdict.of_text(version);
        alerts.retain(|alert| {
            let acl = quoted(&alert.message, "no such ACL : '");
            !alert.line().is_some_and(|line| variable_lines.contains(&line))
                && !acl.is_some_and(|acl| lost_acls.contains(acl))
        });
        if verdict.accepted && !subject.is_line {
            self.covered.add(&document, version, &subject.name, show);
        }
        match (verdict.accepted, errors.first()) {
            (true, None) => count.accepted += 1,
            (true, Some(error)) => {
                count.accepted += 1;
                count.false_errors += 1;
                if show {
                    println!("false error, {version}: {}: {error}", subject.name);
                }
            }
            (false, _) if alerts.is_empty() => count.machine += 1,
            (false, first) => {
                count.refused += 1;
                count.found += usize::from(first.is_some());
                if show && first.is_none() {
                    let message = alerts.first().map(|alert| alert.message.as_str()).unwrap_or_default();
                    println!("missed, {version}: {}: {message}", subject.name);
                }
            }
        }
        for alert in alerts.iter().filter(|_| !verdict.accepted) {
            let found = match alert.line() {
                Some(line) if !subject.is_line => errors.iter().any(|error| error.line == line),
                _ => !errors.is_empty(),
            };
            let kind = self.kinds.entry(alert.kind()).or_default();
            *(if found { &mut kind.0 } else { &mut kind.1 }) += 1;
            if !subject.is_line && alert.line().is_some() {
                self.alerts.refused += 1;
                self.alerts.found += usize::from(found);
                if show && !found {
                    let line = alert.line().unwrap_or_default();
                    println!("missed line, {version}: {}:{line}: {}", subject.name, alert.message);
                }
            }
        }
    }

    /// What is below its goal; of what there is nothing, nothing is.
    fn shortfalls(&self) -> Vec<String> {
        let reached = [
            (self.files.found, self.files.refused),
            (self.lines.found, self.lines.refused),
            (self.covered.described, self.covered.lines),
        ];
        let below = |((what, goal), (part, whole)): ((&str, usize), (usize, usize))| {
            (part * 100 < whole * goal)
                .then(|| format!("{what}: {} is less than {goal} %", rate(part, whole)))
        };
        GOALS.into_iter().zip(reached).filter_map(below).collect()
    }

    fn counts(&self) -> [(&'static str, Count); 3] {
        [("files", self.files), ("lines of files", self.alerts), ("single lines", self.lines)]
    }

    fn print_json(&self, version: Version) {
        for (what, count) in self.counts() {
            let mut line = serde_json::json!({
                "conformance": "check",
                "version": version.as_str(),
                "what": what,
                "missed": count.refused - count.found,
            });
            if let (Some(line), Ok(serde_json::Value::Object(counted))) =
                (line.as_object_mut(), serde_json::to_value(count))
            {
                line.extend(counted);
            }
            println!("{line}");
        }
        let Covered { lines, described } = self.covered;
        let covered = serde_json::json!({
            "conformance": "check", "version": version.as_str(), "what": "lines of accepted files",
            "lines": lines, "described": described,
        });
        println!("{covered}");
        for (kind, (found, missed)) in &self.kinds {
            let line = serde_json::json!({
                "conformance": "check",
                "version": version.as_str(),
                "message": kind,
                "found": found,
                "missed": missed,
            });
            println!("{line}");
        }
    }

    fn print(&self, version: Version) {
        println!(
            "{:<8} {:<16} {:>9} {:>8} {:>7} {:>7} {:>8} {:>8} {:>13} {:>8}",
            "version",
            "what",
            "accepted",
            "refused",
            "found",
            "missed",
            "rate",
            "here",
            "false errors",
            "machine"
        );
        for (what, count) in self.counts() {
            let Count { accepted, refused, found, refused_here, found_here, false_errors, machine } = count;
            let missed = refused - found;
            let (rate, here) = (rate(found, refused), rate(found_here, refused_here));
            println!(
                "{:<8} {what:<16} {accepted:>9} {refused:>8} {found:>7} {missed:>7} {rate:>8} {here:>8} {false_errors:>13} {machine:>8}",
                version.as_str()
            );
        }
        let Covered { lines, described } = self.covered;
        println!(
            "{:<8} {described} of {lines} lines of accepted files are described by the table",
            version.as_str()
        );
        let mut kinds: Vec<_> = self.kinds.iter().filter(|(_, (_, missed))| *missed > 0).collect();
        kinds.sort_by_key(|(_, (_, missed))| std::cmp::Reverse(*missed));
        println!("\n{:>7} {:>7}  what HAProxy says", "found", "missed");
        for (kind, (found, missed)) in kinds.into_iter().take(40) {
            println!("{found:>7} {missed:>7}  {kind}");
        }
        println!();
    }
}

/// A part of some, in percent.
fn rate(part: usize, whole: usize) -> String {
    let rate = (part * 1000).checked_div(whole);
    rate.map_or_else(|| "–".to_owned(), |rate| format!("{}.{} %", rate / 10, rate % 10))
}

#[cfg(test)]
mod tests {
    use super::verdicts::Alert;
    use super::*;

    fn subject(text: &str) -> Subject {
        Subject { name: "x.cfg".to_owned(), text: text.as_bytes().to_vec(), is_line: false }
    }

    fn refused(line: u32, message: &str) -> Verdict {
        Verdict { accepted: false, alerts: vec![Alert::new(line, message)] }
    }

    #[test]
    fn what_is_found_missed_and_falsely_called_wrong_is_counted() {
        let accepted = Verdict { accepted: true, alerts: Vec::new() };
        let mut report = Report::default();
        report.add(
            &subject("backend b\n  balanec x\n"),
            &refused(2, "unknown keyword 'balanec'"),
            Version::V3_4,
            false,
        );
        report.add(
            &subject("backend b\n  mode http\n"),
            &refused(2, "no 'such' thing"),
            Version::V3_4,
            false,
        );
        report.add(&subject("backend b\n  balanec x\n"), &accepted, Version::V3_4, false);
        report.add(&subject("backend b\n"), &refused(1, "unable to load 'x'"), Version::V3_4, false);
        report.add(
            &subject("backend b\n  log \"$A\"\n"),
            &refused(2, "argument 2 is empty"),
            Version::V3_4,
            false,
        );
        let Count { accepted, refused, found, refused_here, found_here, false_errors, machine } =
            report.files;
        assert_eq!((accepted, refused, found, false_errors, machine), (1, 2, 1, 1, 2));
        // The variable that is not set counts here.
        assert_eq!((refused_here, found_here), (3, 1));
        assert_eq!((report.covered.lines, report.covered.described), (1, 0));
        assert_eq!((report.alerts.refused, report.alerts.found), (2, 1));
        assert_eq!(report.kinds.get("no '…' thing"), Some(&(0, 1)));
    }

    #[test]
    fn a_rate_below_its_goal_is_a_shortfall() {
        let count = |found: usize, refused: usize| Count { refused, found, ..Count::default() };
        let covered = |described: usize| Covered { lines: 100, described };
        let report = |files, lines, covered| Report { files, lines, covered, ..Report::default() };
        assert_eq!(Report::default().shortfalls(), [""; 0]);
        assert_eq!(report(count(95, 100), count(9, 10), covered(98)).shortfalls(), [""; 0]);
        assert_eq!(
            report(count(94, 100), count(8, 10), covered(97)).shortfalls(),
            [
                "files: 94.0 % is less than 95 %",
                "single lines: 80.0 % is less than 90 %",
                "lines of accepted files: 97.0 % is less than 98 %",
            ]
        );
    }

    #[test]
    fn a_single_line_is_judged_among_what_its_section_needs() {
        let single = SingleLine { section: "frontend".to_owned(), line: "maxconn x".to_owned() };
        assert!(surrounded(&single).ends_with("frontend x\n  bind 127.0.0.1:8080\n  maxconn x\n"));
    }
}
