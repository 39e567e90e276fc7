//! The command line: one subcommand for each job, or several, and those that every binary has.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::commands;
use crate::error::{CliError, USAGE};
use crate::jobs;
use crate::manual;
use crate::report::{LogFormat, Report};

/// What `--version` prints.
static VERSION: LazyLock<String> = LazyLock::new(|| jobs::version(jobs::ALL));

/// Keeps systems in the state that was declared for them.
///
/// Setpoint compares what is with what should be, plans the operations that lead from one to the other in an
/// order that no dependency forbids, carries them out, and says what it did and why.
#[derive(Debug, Parser)]
#[command(name = "setpoint", version, long_version = VERSION.as_str(), max_term_width = 100)]
#[command(after_help = jobs::absent_help(jobs::ALL))]
pub(crate) struct Cli {
    /// Says more of what is going on, on the standard error output.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// How messages on the standard error output are written.
    #[arg(long, global = true, value_enum, default_value_t, value_name = "FORMAT")]
    pub(crate) log_format: LogFormat,
    #[command(subcommand)]
    command: Command,
}

/// What can be asked for.
#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "host")]
    #[command(flatten)]
    Host(jobs::host::HostCommand),
    #[cfg(feature = "haproxy")]
    #[cfg_attr(
        all(feature = "dataplane", feature = "sync"),
        doc = "Checks and compares configurations of HAProxy, brings a HAProxy to one, and serves the Dataplane API."
    )]
    #[cfg_attr(
        not(all(feature = "dataplane", feature = "sync")),
        doc = "Reads, checks and compares configurations of HAProxy."
    )]
    Haproxy(jobs::haproxy::HaproxyArgs),
    /// Keeps the structure of composites in Consul and in ConfigMaps.
    #[cfg(feature = "composite")]
    Composite(jobs::composite::CompositeArgs),
    /// Prints completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Writes the manual pages of all commands into a directory.
    Man {
        /// The directory; it is made if it is not there.
        dir: PathBuf,
    },
}

/// Reads the arguments of the process; or tells what is wrong with them, and returns the code to exit with.
pub(crate) fn parse() -> Result<Cli, ExitCode> {
    let command = manual::with_examples(Cli::command());
    let parsed = command.try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.map_err(|mut error| {
        let words = std::env::args().skip(1);
        if let Some(job) = absent_job(jobs::ALL, &Cli::command(), &error, words) {
            return CliError::AbsentJob(job).report(LogFormat::Text);
        }
        if let Some(tip) = manifest_tip(&error) {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        }
        match error.print() {
            Ok(()) => ExitCode::from(if error.use_stderr() { USAGE } else { 0 }),
            Err(error) => CliError::Output(error).report(LogFormat::Text),
        }
    })
}

/// The job that has the command which was asked for by these words, if the command is unknown because that job is not in.
fn absent_job<'a>(
    jobs: &'a [jobs::Job],
    root: &clap::Command,
    error: &clap::Error,
    words: impl IntoIterator<Item = String>,
) -> Option<&'a jobs::Job> {
    let unknown = match error.kind() {
        ErrorKind::InvalidSubcommand => error.get(ContextKind::InvalidSubcommand),
        // Where a command has no other below it, a word that follows it is an argument.
        ErrorKind::UnknownArgument => error.get(ContextKind::InvalidArg),
        _ => None,
    };
    let Some(ContextValue::String(unknown)) = unknown else { return None };
    // The same word may be a command below several.
    let (mut at, mut path) = (root, Vec::new());
    for word in words {
        if word == *unknown {
            path.push(word);
            break;
        }
        if let Some(below) = at.find_subcommand(&word) {
            at = below;
            path.push(word);
        }
    }
    jobs::absent(jobs, &path.join(" "))
}

/// What to write instead of the name of a manifest without its option, with the commands that read manifests.
fn manifest_tip(error: &clap::Error) -> Option<String> {
    let (ErrorKind::UnknownArgument, Some(ContextValue::String(found))) =
        (error.kind(), error.get(ContextKind::InvalidArg))
    else {
        return None;
    };
    let is_manifest = [".yaml", ".yml"].iter().any(|ending| found.ends_with(ending));
    let host = jobs::ALL.iter().find(|job| job.name == "host")?;
    let reads_manifests = std::env::args().skip(1).any(|word| host.commands.contains(&word.as_str()));
    (is_manifest && reads_manifests && !found.starts_with('-'))
        .then(|| format!("manifests are named with '-f {found}'"))
}

/// Does what was asked for, and says with what to exit.
pub(crate) fn run(cli: &Cli) -> Result<u8, CliError> {
    let report = Report::new(cli.log_format, cli.verbose);
    match &cli.command {
        #[cfg(feature = "host")]
        Command::Host(command) => jobs::host::dispatch(command, report),
        #[cfg(feature = "haproxy")]
        Command::Haproxy(args) => jobs::haproxy::dispatch(&args.command, report),
        #[cfg(feature = "composite")]
        Command::Composite(args) => jobs::composite::dispatch(&args.command, report),
        Command::Completions { shell } => commands::help::completions(*shell),
        Command::Man { dir } => commands::help::write_manual(dir),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_jobs_names_the_commands_that_there_are() {
        let mut named: Vec<&str> = vec!["completions", "man"];
        let present = jobs::ALL.iter().filter(|job| job.present).flat_map(|job| job.commands);
        let (below, top): (Vec<&str>, Vec<&str>) = present.copied().partition(|name| name.contains(' '));
        named.extend(top);
        named.sort_unstable();
        let root = Cli::command();
        let mut there: Vec<&str> = root.get_subcommands().map(clap::Command::get_name).collect();
        there.sort_unstable();
        assert_eq!(there, named);
        for name in below {
            let found = name.split(' ').try_fold(&root, |command, word| command.find_subcommand(word));
            assert!(found.is_some(), "{name}");
        }
    }

    #[test]
    fn a_command_of_an_absent_job_is_known_by_all_words_that_lead_to_it() {
        const SOME: &[jobs::Job] = &[
            jobs::Job { name: "host", about: "", commands: &["plan"], present: false },
            jobs::Job { name: "haproxy", about: "", commands: &["haproxy"], present: true },
            jobs::Job { name: "sync", about: "", commands: &["haproxy plan"], present: false },
            jobs::Job { name: "dataplane", about: "", commands: &["demo haproxy"], present: false },
        ];
        let named = |name: &'static str| clap::Command::new(name);
        let level = clap::Arg::new("level").long("level").global(true);
        let root = named("setpoint").subcommand(named("haproxy").subcommand(named("fmt"))).arg(level);
        let root = root.subcommand(named("demo").arg(clap::Arg::new("keep").long("keep")));
        let job = |words: &str| {
            let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
            let error =
                root.clone().try_get_matches_from(["setpoint".to_owned()].iter().chain(&words)).unwrap_err();
            absent_job(SOME, &root, &error, words).map(|job| job.name)
        };
        assert_eq!(job("plan"), Some("host"));
        assert_eq!(job("--level 3 plan x"), Some("host"));
        assert_eq!(job("haproxy plan x"), Some("sync"));
        assert_eq!(job("haproxy --level 3 plan"), Some("sync"));
        assert_eq!(job("help haproxy plan"), Some("sync"));
        assert_eq!(job("demo haproxy"), Some("dataplane"));
        assert_eq!(job("demo --keep x haproxy --all"), Some("dataplane"));
        assert_eq!((job("demo more"), job("demo --haproxy")), (None, None));
        assert_eq!((job("haproxy apply"), job("sync"), job("haproxy fmt --wrong")), (None, None, None));
    }
}
