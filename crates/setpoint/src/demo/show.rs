//! What a person, or a program, sees of each step.

use std::io::{self, Write};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use serde::Serialize;
use setpoint_engine::LogEntry;
use setpoint_plan::Plan;

use super::drift::Drift;
use super::tree::Tree;
use crate::error::CliError;

const HEADING: Style = Style::new().bold();
const PART: Style = Style::new().underline();
const GREEN: Style = AnsiColor::Green.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();
const RED: Style = AnsiColor::Red.on_default();
const CYAN: Style = AnsiColor::Cyan.on_default();

/// One step of the demo and what came of it.
#[derive(Debug, Serialize)]
pub(crate) struct Step {
    /// Its number.
    #[serde(rename = "step")]
    pub(crate) number: usize,
    /// What it is about, in a few words.
    pub(crate) title: &'static str,
    /// What it is about, in a sentence.
    #[serde(skip)]
    pub(crate) about: &'static str,
    /// What something else did, as commands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) by_hand: Vec<String>,
    /// What was found changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) drift: Vec<Drift>,
    /// What the engine was going to do.
    pub(crate) plan: Plan,
    /// What it did.
    pub(crate) log: Vec<Done>,
    /// What is on disk now.
    pub(crate) disk: Tree,
}

/// One operation that was carried out.
#[derive(Debug, Serialize)]
pub(crate) struct Done {
    operation: String,
    kind: String,
    name: String,
    start: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip)]
    line: String,
}

impl From<&LogEntry> for Done {
    fn from(entry: &LogEntry) -> Self {
        Self {
            operation: entry.operation().to_string(),
            kind: entry.item().kind().to_string(),
            name: entry.item().name().to_string(),
            start: entry.start().to_string(),
            end: entry.end().map(|end| end.to_string()),
            error: entry.error().map(ToString::to_string),
            line: entry.to_string(),
        }
    }
}

/// Where steps are written to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Show {
    json: bool,
}

impl Show {
    /// Writes text for people, or JSON.
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Writes a line around the steps; programs don't see it.
    pub(crate) fn remark(self, text: &str) -> Result<(), CliError> {
        if self.json {
            return Ok(());
        }
        let mut out = AutoStream::auto(io::stdout().lock());
        writeln!(out, "{text}").and_then(|()| out.flush()).map_err(CliError::Output)
    }

    /// Writes a step.
    pub(crate) fn step(self, step: &Step) -> Result<(), CliError> {
        let written = if self.json {
            json(&mut io::stdout().lock(), step)
        } else {
            text(&mut AutoStream::auto(io::stdout().lock()), step)
        };
        written.map_err(CliError::Output)
    }
}

fn json(out: &mut impl Write, step: &Step) -> io::Result<()> {
    serde_json::to_writer(&mut *out, step)?;
    writeln!(out)?;
    out.flush()
}

fn text(out: &mut impl Write, step: &Step) -> io::Result<()> {
    writeln!(out, "\n{HEADING}== {}. {}{HEADING:#}\n\n{}", step.number, step.title, step.about)?;
    part(out, "By hand", step.by_hand.iter().map(|command| format!("$ {command}")))?;
    part(out, "Drift", step.drift.iter().map(ToString::to_string))?;
    part(out, "Plan", step.plan.to_string().lines())?;
    part(out, "Log", step.log.iter().map(|done| &done.line))?;
    part(out, "On disk", step.disk.to_string().lines())?;
    out.flush()
}

/// Writes lines under a title; nothing if there are none.
fn part<L: AsRef<str>>(
    out: &mut impl Write,
    title: &str,
    lines: impl IntoIterator<Item = L>,
) -> io::Result<()> {
    let mut lines = lines.into_iter().peekable();
    if lines.peek().is_some() {
        writeln!(out, "\n{PART}{title}{PART:#}")?;
    }
    for line in lines {
        let line = line.as_ref();
        let style = style(line);
        writeln!(out, "  {style}{line}{style:#}")?;
    }
    Ok(())
}

/// The colour of a line, by the sign it begins with.
fn style(line: &str) -> Style {
    match line.trim_start().get(..2) {
        Some("+ ") => GREEN,
        Some("~ ") => YELLOW,
        Some("- ") => RED,
        Some("? ") => CYAN,
        _ => Style::new(),
    }
}
