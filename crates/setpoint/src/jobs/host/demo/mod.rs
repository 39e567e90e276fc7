//! `setpoint demo`: the commands at work on a real directory, from nothing to nothing.
//!
//! ```text
//!  manifest ─▶ the same code that `setpoint apply` and `setpoint destroy` run ─▶ the directory as it really is
//! ```

mod manifest;
mod tree;

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anstyle::Style;
use serde::Serialize;
use setpoint_state::RunEntry;

use crate::error::CliError;
use crate::jobs::host::apply::{Made, apply};
use crate::jobs::host::args::{ApplyArgs, ChangeArgs, DemoArgs, LockArgs, PathArgs, SetArgs, WriteArgs};
use crate::jobs::host::destroy::destroy;
use crate::jobs::host::error::Error;
use crate::jobs::host::preview::Preview;
use crate::report::{Report, print};
use tree::Tree;

const HEADING: Style = Style::new().bold();
const PART: Style = Style::new().underline();
const COMMAND: Style = anstyle::AnsiColor::Cyan.on_default();

/// Runs the demo.
pub(crate) fn run(args: &DemoArgs, report: Report) -> Result<(), CliError> {
    #[cfg(feature = "dataplane")]
    if let Some(crate::jobs::host::args::DemoJob::Haproxy(args)) = &args.job {
        return crate::jobs::haproxy::demo::run(args);
    }
    let Some(dir) = &args.keep else {
        let temporary =
            tempfile::Builder::new().prefix("setpoint-demo-").tempdir().map_err(Error::Temporary)?;
        let mut demo = Demo { dir: temporary.path().to_path_buf(), json: args.json, report, steps: 0 };
        demo.remark("A demonstration on real files, in a temporary directory.\n")?;
        demo.create_change_repair_remove()?;
        temporary.close().map_err(Error::Cleanup)?;
        return demo.remark("\nThe temporary directory is removed.\n");
    };
    make_empty(dir)?;
    let mut demo = Demo { dir: dir.clone(), json: args.json, report, steps: 0 };
    demo.remark(&format!("A demonstration on real files, in {}.\n", dir.display()))?;
    demo.create_change_repair_remove()?;
    demo.bring_back()?;
    demo.remark(&format!("\nThe files are kept in {0}; `cd {0}` and go on from there.\n", dir.display()))
}

/// Makes a directory, or makes sure that the one there is empty.
fn make_empty(dir: &Path) -> Result<(), CliError> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(dir).and_then(|()| fs::read_dir(dir))
        }
        entries => entries,
    };
    match entries.map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::NotEmpty(dir.to_path_buf()).into()),
        Err(source) => Err(Error::Directory { dir: dir.to_path_buf(), source }.into()),
    }
}

/// The demo between two steps.
struct Demo {
    dir: PathBuf,
    json: bool,
    report: Report,
    steps: usize,
}

/// One step and what came of it, as data.
#[derive(Debug, Serialize)]
struct Step<'a> {
    #[serde(rename = "step")]
    number: usize,
    title: &'a str,
    /// The commands that do the same by hand.
    commands: &'a [String],
    #[serde(flatten)]
    preview: &'a Preview,
    /// What was done.
    log: &'a [RunEntry],
    /// What is on disk now.
    disk: &'a Tree,
}

impl Demo {
    fn create_change_repair_remove(&mut self) -> Result<(), CliError> {
        self.write("site.yaml", manifest::FIRST)?;
        self.apply(
            "Create",
            "Nothing is there, and `site.yaml` declares a small site.",
            &shown("site.yaml", manifest::FIRST),
        )?;

        self.write("site.yaml", manifest::SECOND)?;
        self.apply(
            "Change",
            "The manifest has changed: the directory of `site` is called `public` now, so it moves with all\n\
             that is in it; the front page reads differently, and there is a page more.",
            &shown("site.yaml", manifest::SECOND),
        )?;

        let (gone, changed, line) = ("public/main.css", "notes/todo.txt", "call the plumber");
        let failed = |what: &'static str| move |source| Error::DemoChange { what: what.to_owned(), source };
        fs::remove_file(self.dir.join(gone)).map_err(failed(gone))?;
        fs::write(self.dir.join(changed), format!("{line}\n")).map_err(failed(changed))?;
        self.apply(
            "Repair",
            "Something else has changed the files. Reading them shows it.",
            &[format!("rm {gone}"), format!("echo '{line}' > {changed}")],
        )?;

        self.step(
            "Remove",
            "All that was made goes, files before the directories that hold them.",
            &["setpoint destroy --yes".to_owned()],
            |demo| destroy(&demo.write_args(), demo.report),
        )
    }

    fn bring_back(&mut self) -> Result<(), CliError> {
        self.apply("Return", "The manifest is still there: it is applied once more.", &[])
    }

    fn apply(&mut self, title: &str, about: &str, before: &[String]) -> Result<(), CliError> {
        let mut commands = before.to_vec();
        commands.push("setpoint apply --yes".to_owned());
        self.step(title, about, &commands, |demo| {
            let args =
                ApplyArgs { plan: None, write: demo.write_args(), replace: Vec::new(), refresh_only: false };
            apply(&args, demo.report)
        })
    }

    /// Shows what is going to be done, does it, and shows what is on disk then.
    fn step(
        &mut self,
        title: &str,
        about: &str,
        commands: &[String],
        act: impl FnOnce(&Self) -> Result<Made, CliError>,
    ) -> Result<(), CliError> {
        self.steps += 1;
        let step = self.steps;
        self.remark(&format!("\n{HEADING}== {step}. {title}{HEADING:#}\n{about}\n\n"))?;
        for command in commands {
            self.remark(&format!("{COMMAND}$ {command}{COMMAND:#}\n"))?;
        }
        let made = act(self)?;
        let disk = Tree::read(&self.dir)
            .map_err(|error| Error::Read { what: "the directory".to_owned(), why: error.to_string() })?;
        if self.json {
            let log = made.done.as_ref().map_or(&[][..], |done| &done.run.entries);
            let step = Step { number: step, title, commands, preview: &made.preview, log, disk: &disk };
            let line = serde_json::to_string(&step).map_err(|error| CliError::Output(error.into()))?;
            print(&(line + "\n"))?;
        } else {
            print(&format!("\n{PART}On disk{PART:#}\n{disk}"))?;
        }
        made.result()
    }

    fn write_args(&self) -> WriteArgs {
        let parallelism = NonZeroUsize::MIN.saturating_add(7);
        WriteArgs {
            set: SetArgs { at: PathArgs { file: self.dir.clone(), state: None }, var: Vec::new() },
            change: ChangeArgs { target: Vec::new(), refresh: true, parallelism },
            lock: LockArgs { lock_timeout: Duration::ZERO },
            yes: true,
            json: self.json,
        }
    }

    fn write(&self, name: &str, text: &str) -> Result<(), CliError> {
        let path = self.dir.join(name);
        fs::write(&path, text).map_err(|source| Error::Directory { dir: path, source }.into())
    }

    fn remark(&self, text: &str) -> Result<(), CliError> {
        if self.json { Ok(()) } else { print(text) }
    }
}

/// How a person writes a file by hand.
fn shown(name: &str, text: &str) -> Vec<String> {
    vec![format!("cat > {name} <<'END'\n{text}END")]
}
