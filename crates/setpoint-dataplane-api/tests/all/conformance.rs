//! The exchanges that were recorded with the original, replayed against our server before a real HAProxy.
//!
//! `cargo xtask conformance dataplane` runs the first test with `SETPOINT_CONFORMANCE` set, which shows what differs.

use std::collections::BTreeMap;

use setpoint_dataplane_api::Dialect;
use setpoint_testutils::{Missing, need};

use crate::compare::differences;
use crate::reasons::reason;
use crate::recording::exchanges;
use crate::replay::Replay;

/// Counts of one section.
#[derive(Clone, Copy, Default)]
struct Count {
    cases: usize,
    agree: usize,
    reasoned: usize,
    /// Those whose status is the recorded one.
    status: usize,
}

/// What is shown: nothing, a table, or JSON.
fn shown() -> Option<String> {
    std::env::var("SETPOINT_CONFORMANCE").ok()
}

/// What came of one dialect.
struct Replayed {
    dialect: Dialect,
    counts: BTreeMap<String, Count>,
    unexplained: Vec<String>,
}

async fn replay(dialect: Dialect) -> Result<Replayed, Missing> {
    let recorded = exchanges(dialect);
    let mut replay = Replay::start(dialect, &recorded).await?;
    let mut replayed = Replayed { dialect, counts: BTreeMap::new(), unexplained: Vec::new() };
    for exchange in &recorded {
        let ours = replay.exchange(exchange).await;
        let found = differences(&replay.speaker, exchange, &ours);
        let section = exchange.case.split(['.', '[']).next().unwrap_or_default().to_owned();
        let count = replayed.counts.entry(section).or_default();
        count.cases += 1;
        count.status += usize::from(exchange.answer.status == ours.status);
        if found.is_empty() {
            count.agree += 1;
        } else if let Some(reason) = reason(exchange, &ours, &found) {
            count.reasoned += 1;
            if shown().as_deref() == Some("show") {
                println!("{} {}: {reason}", dialect.version(), exchange.case);
            }
        } else {
            let body: String = ours.body.chars().take(1000).collect();
            let recorded =
                exchange.answer.json.as_ref().map(ToString::to_string).or(exchange.answer.body.clone());
            let recorded: String = recorded.unwrap_or_default().chars().take(1000).collect();
            replayed.unexplained.push(format!(
                "{} {}: {} {}\n  {found:?}\n  recorded: {recorded}\n  ours:     {body}",
                dialect.version(),
                exchange.case,
                exchange.method,
                exchange.path
            ));
        }
    }
    replay.world.end().await;
    Ok(replayed)
}

#[test]
fn recorded_exchanges_are_answered_as_the_original_did_or_differ_for_a_reason() {
    let replay = |dialect| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(replay(dialect))
    };
    let replays: Vec<_> =
        Dialect::ALL.into_iter().map(|dialect| std::thread::spawn(move || replay(dialect))).collect();
    let mut unexplained = Vec::new();
    for replay in replays {
        let replayed = need!(replay.join().unwrap());
        for (section, count) in &replayed.counts {
            show(replayed.dialect.version().as_str(), section, *count);
        }
        unexplained.extend(replayed.unexplained);
    }
    let count = unexplained.len();
    assert!(unexplained.is_empty(), "{count} exchanges differ without a reason:\n{}", unexplained.join("\n"));
}

fn show(version: &str, section: &str, count: Count) {
    let Count { cases, agree, reasoned, status } = count;
    show_line("http", version, section, (cases, agree, reasoned), Some(status));
}

/// Shows the counts of one section: how many cases, how many agree, how many differ for a reason, and how many have the recorded
/// status.
pub(crate) fn show_line(
    kind: &str,
    version: &str,
    section: &str,
    (cases, agree, reasoned): (usize, usize, usize),
    status: Option<usize>,
) {
    let Some(form) = shown() else { return };
    if form == "json" {
        let mut line = serde_json::json!({
            "conformance": "dataplane", "version": version, "kind": kind, "section": section,
            "cases": cases, "agree": agree, "reasoned": reasoned,
        });
        if let Some(status) = status {
            line["status"] = status.into();
        }
        println!("{line}");
    } else {
        let status = status.map(|status| format!(" {status:>6} same status")).unwrap_or_default();
        println!(
            "{kind:<13} {version:<4} {section:<24} {cases:>6} cases {agree:>6} agree {reasoned:>5} reasoned{status}"
        );
    }
}
