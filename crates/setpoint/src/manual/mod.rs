//! The manual: what the pages and `--help` say beyond the arguments that `clap` knows.
//!
//! ```text
//! clap's commands ─┬─▶ page ──▶ setpoint-plan.1: options, EXIT STATUS, FILES, EXAMPLES
//! PAGES ───────────┴─▶ with_examples ──▶ --help
//! ```

mod pages;

use std::fmt::Write as _;
use std::io;

use clap::Command;
use pages::PAGES;

use crate::jobs::{self, Job};

/// What the manual says of one command.
struct Page {
    /// The words after `setpoint`.
    command: &'static str,
    examples: &'static [Example],
    exit: &'static [Exit],
    files: &'static [File],
}

/// What a command line is for, and the line.
struct Example(&'static str, &'static str);

/// A code that the process exits with, and what it means.
#[derive(Clone, Copy)]
struct Exit(u8, &'static str);

/// What holds for every command.
const UNREAD: Exit = Exit(141, "Nobody reads its output any more.");

/// A path, and what is there.
#[derive(Clone, Copy)]
struct File(&'static str, &'static str);

/// Returns the commands with their examples at the end of `--help`.
pub(crate) fn with_examples(command: Command) -> Command {
    add_examples(command, "")
}

fn add_examples(mut command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    for name in names {
        let below = if path.is_empty() { name.clone() } else { format!("{path} {name}") };
        command = command.mut_subcommand(name, |sub| add_examples(sub, &below));
    }
    let Some(page) = page_of(path) else { return command };
    // What stands after the short help, such as absent jobs, stands after the long one too.
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let parts = [help(page, jobs::ALL), after];
    let parts: Vec<&str> = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty()).collect();
    command.after_long_help(parts.join("\n\n"))
}

fn page_of(path: &str) -> Option<&'static Page> {
    PAGES.iter().find(|page| page.command == path)
}

fn help(page: &Page, jobs: &[Job]) -> String {
    let mut text = String::new();
    for Example(about, line) in page.examples_of(jobs) {
        if text.is_empty() {
            text.push_str("Examples:");
        }
        // Writing to a string can't fail.
        let _ = write!(text, "\n  {about}\n    $ {line}");
    }
    text
}

impl Page {
    /// The examples, but for those with commands of absent jobs.
    fn examples_of(&self, jobs: &[Job]) -> impl Iterator<Item = &'static Example> {
        self.examples.iter().filter(|Example(_, line)| {
            let mut words = line.split(' ').skip(1);
            let command = words.next().unwrap_or_default();
            let below = format!("{command} {}", words.next().unwrap_or_default());
            jobs::absent(jobs, command).is_none() && jobs::absent(jobs, &below).is_none()
        })
    }
}

/// Writes the manual page of a command, whose words after `setpoint` are `path`.
pub(crate) fn page(command: &Command, path: &str) -> io::Result<Vec<u8>> {
    let source = concat!("setpoint ", env!("CARGO_PKG_VERSION"));
    // The long version has lines, which a page would join.
    let man = clap_mangen::Man::new(command.clone().long_version(None::<&'static str>));
    let man = man.manual("Setpoint").source(source);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    page.extend(environment(command).into_bytes());
    if let Some(known) = page_of(path) {
        page.extend(own_sections(known).into_bytes());
    }
    if !path.is_empty() {
        page.extend(b".SH \"SEE ALSO\"\n\\fBsetpoint\\fR(1)\n");
    }
    if command.get_version().is_some() {
        man.render_version_section(&mut page)?;
    }
    Ok(page)
}

/// Returns whether a file holds a page of the manual, of this version or another one.
pub(crate) fn is_page(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let title = text.lines().find(|line| line.starts_with(".TH "));
    title.is_some_and(|title| title.contains("setpoint") && title.contains("Setpoint"))
}

/// The variables that stand for options; nothing where there are none.
fn environment(command: &Command) -> String {
    let mut text = String::new();
    for argument in command.get_arguments().filter(|argument| !argument.is_hide_set()) {
        let (Some(variable), Some(option)) = (argument.get_env(), argument.get_long()) else { continue };
        let heading = if text.is_empty() { ".SH ENVIRONMENT\n" } else { "" };
        let variable = roff(&variable.to_string_lossy());
        let _ = write!(
            text,
            "{heading}.TP\n\\fB{variable}\\fR\n{}\n",
            roff(&format!("Stands for `--{option}`."))
        );
    }
    text
}

fn own_sections(page: &Page) -> String {
    let mut text = ".SH \"EXIT STATUS\"\n".to_owned();
    for Exit(code, meaning) in page.exit.iter().chain([&UNREAD]) {
        let _ = write!(text, ".TP\n\\fB{code}\\fR\n{}\n", roff(meaning));
    }
    text.push_str(".SH FILES\n");
    for File(path, what) in page.files {
        let _ = write!(text, ".TP\n\\fI{}\\fR\n{}\n", roff(path), roff(what));
    }
    text.push_str(".SH EXAMPLES\n");
    for Example(about, line) in page.examples_of(jobs::ALL) {
        let _ = write!(text, ".PP\n{}\n.PP\n.RS 4\n.nf\n\\fB{}\\fR\n.fi\n.RE\n", roff(about), roff(line));
    }
    text
}

/// Text as `roff` takes it: what it would read as its own is escaped, and words in backticks are set in bold.
fn roff(text: &str) -> String {
    let mut written = String::new();
    let mut bold = false;
    for character in text.chars() {
        match character {
            '\\' => written.push_str("\\e"),
            '-' => written.push_str("\\-"),
            '~' => written.push_str("\\(ti"),
            '`' => {
                bold = !bold;
                written.push_str(if bold { "\\fB" } else { "\\fR" });
            }
            // At the start of a line they would begin a request.
            '.' | '\'' if written.is_empty() => {
                written.push_str("\\&");
                written.push(character);
            }
            '\'' => written.push_str("\\(aq"),
            character => written.push(character),
        }
    }
    written
}

// The command itself, without a job, has examples of the host.
#[cfg(all(test, feature = "host"))]
mod tests;
