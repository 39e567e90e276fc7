//! `setpoint history` and `setpoint show`: what the runs did.

use std::collections::BTreeMap;
use std::fmt::Write;

use setpoint_engine::Operation;
use setpoint_state::{Recovered, Run, RunDrift, RunEntry, RunOutcome};

use super::args::{HistoryArgs, ShowArgs};
use super::error::Error;
use super::set::{report_damage, state_of};
use crate::error::CliError;
use crate::report::{Report, print, print_json};

pub(crate) fn list(args: &HistoryArgs, report: Report) -> Result<u8, CliError> {
    let state = state_of(&args.set);
    let Recovered { value: runs, damaged } = state.runs(args.limit.get())?;
    report_damage(damaged.as_deref(), report);
    if args.json {
        runs.iter().try_for_each(print_json)?;
        return Ok(0);
    }
    let mut text = String::new();
    // What is not readable is no reason to show nothing of the history.
    let is_unfinished = state.read().ok().flatten().is_some_and(|snapshot| snapshot.unfinished);
    if is_unfinished {
        let _ = match state.holder() {
            Some(holder) => writeln!(text, "A run is under way, by {}.", holder.0),
            None => writeln!(
                text,
                "A run was cut off; the next `setpoint apply` finds out what came of it, and it is listed then."
            ),
        };
    }
    for run in &runs {
        let _ = writeln!(text, "{}", headline(run));
    }
    if runs.is_empty() && !is_unfinished {
        text.push_str("There was no run yet.\n");
    }
    print(&text)?;
    Ok(0)
}

pub(crate) fn show(args: &ShowArgs, report: Report) -> Result<u8, CliError> {
    let state = state_of(&args.set);
    let (run, damaged) = if let Some(number) = args.run {
        let Recovered { value, damaged } = state.run(number)?;
        (value.ok_or(Error::NoSuchRun(number))?, damaged)
    } else {
        let Recovered { value, damaged } = state.runs(1)?;
        (value.into_iter().next().ok_or(Error::NoRun)?, damaged)
    };
    report_damage(damaged.as_deref(), report);
    if args.json {
        print_json(&run)?;
        return Ok(0);
    }
    let mut text = format!("{}\n", headline(&run));
    if !run.drift.is_empty() {
        text.push_str("  Something else had changed:\n");
    }
    for RunDrift { kind, name, gone, changes } in &run.drift {
        let _ = writeln!(text, "  ! {kind}/{name} {}", if *gone { "was gone" } else { "was changed" });
        for line in changes {
            let _ = writeln!(text, "      {line}");
        }
    }
    if !run.drift.is_empty() && !run.entries.is_empty() {
        text.push_str("  Operations:\n");
    }
    for entry in &run.entries {
        let _ = match (&entry.reason, &entry.error) {
            (None, _) => writeln!(text, "  {}", line(entry)),
            (Some(reason), None) => writeln!(text, "  {}  {reason}", line(entry)),
            // What went wrong is one sentence, why it was done at all is another.
            (Some(reason), Some(_)) => writeln!(text, "  {}\n      reason: {reason}", line(entry)),
        };
        for line in &entry.changes {
            let _ = writeln!(text, "      {line}");
        }
    }
    print(&text)?;
    Ok(0)
}

fn headline(run: &Run) -> String {
    // Nobody knows when the process of a lost one ended.
    let took = match run.outcome {
        RunOutcome::Lost => String::new(),
        _ => format!(" in {}", super::run::time(run.took())),
    };
    format!(
        "{:>4}  {:.0}  {:<8} {:<9} {}{took}",
        run.number,
        run.started,
        run.command,
        run.outcome.to_string(),
        outcomes(&run.entries),
    )
}

/// What became of the items of a run, counted, in the words in which the run itself said it.
fn outcomes(entries: &[RunEntry]) -> String {
    let mut by_item: BTreeMap<(&str, &str), Vec<&RunEntry>> = BTreeMap::new();
    for entry in entries {
        by_item.entry((&entry.kind, &entry.name)).or_default().push(entry);
    }
    let words = by_item.values().filter_map(|entries| {
        let (last, earlier) = entries.split_last()?;
        let was_deleted = earlier.iter().any(|entry| entry.operation == Operation::Delete);
        Some(match last.operation {
            _ if last.error.is_some() => "failed",
            _ if last.ended.is_none() => "cut off",
            Operation::Create if was_deleted => "made anew",
            Operation::Create if last.adopted => "adopted",
            Operation::Create => "created",
            Operation::Modify => "modified",
            Operation::Delete if last.adopted => "released",
            Operation::Delete => "deleted",
        })
    });
    let words: Vec<&str> = words.collect();
    let all = ["created", "adopted", "modified", "made anew", "deleted", "released", "failed", "cut off"]
        .into_iter();
    let counts = all.map(|word| (words.iter().filter(|other| **other == word).count(), word));
    let counts: Vec<String> =
        counts.filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    if counts.is_empty() { "nothing done".to_owned() } else { counts.join(", ") }
}

pub(crate) fn operations(count: usize) -> String {
    if count == 1 { "1 operation".to_owned() } else { format!("{count} operations") }
}

fn line(entry: &RunEntry) -> String {
    let RunEntry { operation, kind, name, adopted, ended, error, .. } = entry;
    let sign = match operation {
        _ if error.is_some() => '!',
        Operation::Create => '+',
        Operation::Modify => '~',
        Operation::Delete => '-',
    };
    match (error, ended) {
        (Some(error), _) => format!("{sign} {kind}/{name} failed to {operation}: {error}"),
        (None, Some(_)) if *adopted && *operation == Operation::Delete => {
            format!("{sign} {kind}/{name} released")
        }
        (None, Some(_)) if *adopted => format!("{sign} {kind}/{name} adopted"),
        (None, Some(_)) => format!("{sign} {kind}/{name}"),
        (None, None) => format!("{sign} {kind}/{name}, interrupted: its outcome is unknown"),
    }
}
