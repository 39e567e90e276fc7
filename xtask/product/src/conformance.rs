//! `cargo xtask conformance`: holds the model and the API to recordings of the original Dataplane API, and `check` to HAProxy.

mod check;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use setpoint_conformance::{Count, Difference, Kind, ONLY_HAPROXY, REASONS, Refused, Report, recordings};
use setpoint_haproxy::model::Version;
use xtask::workspace;

/// Arguments of `cargo xtask conformance`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What is held to its recordings.
    #[arg(value_enum)]
    subject: Subject,
    /// The folder of the recordings; those committed with the tests if it is not given.
    #[arg(long, value_name = "DIR")]
    recordings: Option<PathBuf>,
    /// One object a line, for other programs.
    #[arg(long)]
    json: bool,
    /// The folder of configurations and single lines that `check` is held to HAProxy with.
    #[arg(long, value_name = "DIR", required_if_eq("subject", "check"))]
    corpus: Option<PathBuf>,
    /// Shows each disagreement.
    #[arg(long)]
    show: bool,
    /// Shows each difference that is there for a reason, by the reason's name.
    #[arg(long, value_name = "NAME")]
    reason: Option<String>,
}

/// What there are recordings of.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Subject {
    /// HAProxy configuration, against the Dataplane API 3.0 to 3.4.
    Haproxy,
    /// `setpoint haproxy check`, against `haproxy -c` of each version, over a corpus.
    Check,
    /// `setpoint haproxy serve` before a real HAProxy, against the Dataplane API 3.0 to 3.4.
    Dataplane,
}

/// Replays the recordings; a disagreement without a reason is a failure.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if let (Subject::Check, Some(corpus)) = (args.subject, &args.corpus) {
        return check::run(corpus, args.json, args.show);
    }
    if matches!(args.subject, Subject::Dataplane) {
        return dataplane(args);
    }
    let folder = args.recordings.clone().unwrap_or_else(recordings::committed);
    let mut report = Report::default();
    let mut found = 0;
    for version in Version::ALL {
        let model = recordings::read(&folder, &format!("{version}.model"))?;
        let text = recordings::read(&folder, &format!("{version}.text"))?;
        found += usize::from(model.is_some()) + usize::from(text.is_some());
        let replayed = report.replay(version, &model.unwrap_or_default(), &text.unwrap_or_default());
        replayed.with_context(|| format!("the recordings of {version} in {}", folder.display()))?;
    }
    if found == 0 {
        bail!("no recordings in {}", folder.display());
    }
    let unexplained = || report.refused.values().flat_map(|refused| &refused.unexplained);
    if args.show {
        for difference in &report.differences {
            show(difference);
        }
        for case in unexplained() {
            println!("written, and refused by HAProxy: {case}\n");
        }
    }
    if let Some(reason) = &args.reason {
        report.reasoned.get(reason.as_str()).into_iter().flatten().for_each(show);
    }
    if args.json {
        print_json(&report);
    } else {
        print_table(&report);
    }
    let is_fine = report.differences.is_empty() && unexplained().next().is_none();
    Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Replays the exchanges: they are a test of the API, which is told where the recordings are, and what to show.
fn dataplane(args: &Args) -> Result<ExitCode> {
    const PACKAGE: &str = "setpoint-dataplane-api";
    const TESTS: [&str; 4] = [
        "specification::every_operation_of_the_specifications_is_routed_and_none_beyond_but_our_own",
        "conformance::recorded_exchanges_are_answered_as_the_original_did_or_differ_for_a_reason",
        "objects::recorded_objects_become_the_lines_that_the_model_writes",
        "objects::recorded_texts_are_read_as_the_model_reads_them",
    ];
    let form = match (args.json, args.show) {
        (true, _) => "json",
        (false, true) => "show",
        (false, false) => "table",
    };
    let (mut total, mut worst) = ([0_u64; 3], ExitCode::SUCCESS);
    for test in TESTS {
        let mut command = workspace::cargo();
        command
            .args(["test", "--quiet", "--package", PACKAGE, "--test", "all"])
            .args(["--", "--exact", test, "--nocapture"])
            .env("SETPOINT_CONFORMANCE", form);
        if let Some(folder) = &args.recordings {
            let folder = std::path::absolute(folder).with_context(|| folder.display().to_string())?;
            command.env("SETPOINT_RECORDINGS", folder);
        }
        let code = xtask::one_test::run_with(command, PACKAGE, test, |line| {
            let Ok(counts) = serde_json::from_str::<serde_json::Value>(line) else {
                // What the test runner says is no line of JSON.
                return !args.json;
            };
            // What is routed has not been answered yet.
            let is_recorded = counts["kind"] != "specification";
            for (sum, name) in total.iter_mut().zip(["cases", "agree", "reasoned"]).filter(|_| is_recorded) {
                *sum += counts[name].as_u64().unwrap_or(0);
            }
            true
        })?;
        // One that fails says so, and the others are counted all the same.
        if code != ExitCode::SUCCESS {
            worst = code;
        }
    }
    if args.json {
        let [cases, agree, reasoned] = total;
        println!(
            "{}",
            serde_json::json!({
                "conformance": "dataplane", "version": "all", "kind": "all", "section": "total",
                "cases": cases, "agree": agree, "reasoned": reasoned,
            })
        );
    }
    Ok(worst)
}

fn print_json(report: &Report) {
    for ((kind, version, section), count) in &report.counts {
        let mut line = serde_json::json!({
            "conformance": "haproxy",
            "kind": kind.to_string(),
            "version": version.as_str(),
            "section": section,
            "cases": count.cases,
            "agree": count.agree,
            "reasoned": count.reasoned,
        });
        let refused = report.refused.get(&(*version, section.clone())).filter(|_| *kind == Kind::Model);
        if let (Some(refused), Some(line)) = (refused, line.as_object_mut()) {
            // What HAProxy refuses of these cases, and what becomes of it.
            let refused = serde_json::json!({
                "cases": refused.cases,
                "refuses": refused.refuses,
                "otherwise": refused.otherwise,
                "only_haproxy": refused.only_haproxy,
                "unexplained": refused.unexplained.len(),
            });
            line.insert("refused".to_owned(), refused);
        }
        println!("{line}");
    }
    for reason in REASONS {
        let cases = report.reasoned.get(reason.name).map_or(0, Vec::len);
        println!(
            "{}",
            serde_json::json!({ "conformance": "haproxy", "reason": reason.name, "cases": cases })
        );
    }
}

fn print_table(report: &Report) {
    println!(
        "{:<6} {:<8} {:<22} {:>7} {:>7} {:>9} {:>8}",
        "kind", "version", "section", "cases", "agree", "reasoned", "differ"
    );
    let row = |kind: &str, version: &str, section: &str, count: &Count| {
        let differ = count.cases - count.agree - count.reasoned;
        println!(
            "{kind:<6} {version:<8} {section:<22} {:>7} {:>7} {:>9} {differ:>8}",
            count.cases, count.agree, count.reasoned
        );
    };
    for ((kind, version, section), count) in &report.counts {
        row(&kind.to_string(), version.as_str(), section, count);
    }
    row("all", "", "", &report.total());
    println!();
    for reason in REASONS {
        let count = report.reasoned.get(reason.name).map_or(0, Vec::len);
        println!("{count:>6}  {}: {}", reason.name, reason.why);
    }
    print_refused(report);
}

/// Prints what becomes of the objects that HAProxy refuses.
fn print_refused(report: &Report) {
    println!("\nobjects that HAProxy refuses\n");
    println!(
        "{:<8} {:>7} {:>12} {:>18} {:>13} {:>12}",
        "version", "cases", "ours refuses", "written otherwise", "only HAProxy", "unexplained"
    );
    let mut by_reason: BTreeMap<&str, usize> = BTreeMap::new();
    for version in Version::ALL {
        let (mut sum, mut judged) = (Refused::default(), 0);
        for (_, refused) in report.refused.iter().filter(|((of, _), _)| *of == version) {
            sum.cases += refused.cases;
            sum.refuses += refused.refuses;
            sum.otherwise += refused.otherwise;
            sum.unexplained.extend_from_slice(&refused.unexplained);
            for (reason, count) in &refused.only_haproxy {
                *by_reason.entry(reason).or_default() += count;
                judged += count;
            }
        }
        if sum.cases > 0 {
            println!(
                "{:<8} {:>7} {:>12} {:>18} {judged:>13} {:>12}",
                version.as_str(),
                sum.cases,
                sum.refuses,
                sum.otherwise,
                sum.unexplained.len()
            );
        }
    }
    println!("\nwhat only HAProxy can judge of them\n");
    for row in ONLY_HAPROXY {
        println!("{:>6}  {}: {}", by_reason.get(row.name).copied().unwrap_or_default(), row.name, row.why);
    }
}

/// Shows what differs in one case.
fn show(difference: &Difference) {
    println!("{} {} {}", difference.kind, difference.version, difference.case);
    if let Some((theirs, ours)) = &difference.text {
        println!("  sent        {}", difference.sent);
        println!("  text        {theirs:?}");
        match ours {
            Ok(ours) => println!("  ours        {ours:?}"),
            Err(error) => println!("  ours        refused: {error}"),
        }
    }
    if let Some((theirs, ours)) = &difference.read {
        println!("  from        {:?}", difference.recorded);
        println!("  read        {theirs}");
        println!("  ours        {ours}");
    }
    for line in difference.unmodelled.iter().filter(|line| !difference.blamed.contains(line)) {
        println!("  as text     {line}");
    }
    println!();
}
