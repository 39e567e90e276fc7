//! The command line: one subcommand for each job.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use setpoint_graph::ItemRef;
use setpoint_haproxy::model::Version;

use crate::commands;
use crate::demo;
use crate::error::CliError;
use crate::report::{LogFormat, Report};

/// Keeps systems in the state that was declared for them.
///
/// Setpoint compares what is with what should be, plans the operations that lead from one to the other in an
/// order that no dependency forbids, carries them out, and says what it did and why.
#[derive(Debug, Parser)]
#[command(name = "setpoint", version, max_term_width = 100)]
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
    /// Shows what `apply` would do, and changes nothing.
    Plan(PlanArgs),
    /// Brings the host to the declared state: shows the plan, asks, and carries it out.
    Apply(ApplyArgs),
    /// Keeps the host in the declared state: follows the manifests and the host, and repairs drift.
    Watch(WatchArgs),
    /// Removes all that Setpoint made, and leaves alone what it did not.
    Destroy(WriteArgs),
    /// Checks the manifests, all errors at once.
    Validate(ValidateArgs),
    /// Says why an item is as it is.
    Explain(ExplainArgs),
    /// Draws the declared items and what they depend on.
    Graph(GraphArgs),
    /// Shows and mends what Setpoint remembers.
    State(StateArgs),
    /// Lists the runs so far, latest first.
    History(HistoryArgs),
    /// Shows one run, or the latest.
    Show(ShowArgs),
    /// Reads, checks and compares configurations of HAProxy.
    Haproxy(HaproxyArgs),
    /// Keeps the structure of composites in Consul and in ConfigMaps.
    Composite(commands::composite::CompositeArgs),
    /// Prints the JSON Schema of manifests, for editors.
    Schema,
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
    /// Shows Setpoint at work on a real directory: create, change, repair, remove.
    ///
    /// Makes a temporary directory with a manifest in it, applies it, changes it, lets something else break
    /// the files and repairs them, removes everything, and cleans up. Needs no set-up and touches nothing
    /// outside of its directory.
    Demo(DemoArgs),
}

/// Which manifests, and which state.
#[derive(Clone, Debug, Args)]
pub(crate) struct SetArgs {
    /// The manifest, or a directory of them.
    #[arg(short, long, value_name = "FILE_OR_DIR", default_value = ".")]
    pub(crate) file: PathBuf,
    /// Where Setpoint remembers what it made; by default `.setpoint` beside the manifests.
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

/// What a plan is about, and how it is carried out.
#[derive(Clone, Debug, Args)]
pub(crate) struct ChangeArgs {
    /// Only these items, written `kind.name`, with what they need; of those that go, with what needs them.
    #[arg(long, value_name = "ITEM", value_parser = parse_item)]
    pub(crate) target: Vec<ItemRef>,
    /// Whether the host is read first; without it, Setpoint trusts what it remembers.
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) refresh: bool,
    /// How many operations may run at a time.
    #[arg(long, value_name = "N", default_value = "8")]
    pub(crate) parallelism: NonZeroUsize,
}

/// How long to wait for another command that writes.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct LockArgs {
    /// Waits for another command that uses the state, for at most that long, such as `30s` or `2m`.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_duration)]
    pub(crate) lock_timeout: Duration,
}

/// How a command that changes the host goes about it.
#[derive(Clone, Debug, Args)]
pub(crate) struct WriteArgs {
    #[command(flatten)]
    pub(crate) set: SetArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    #[command(flatten)]
    pub(crate) lock: LockArgs,
    /// Does not ask.
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Prints what was planned and done as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `setpoint plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) set: SetArgs,
    #[command(flatten)]
    pub(crate) change: ChangeArgs,
    /// Makes these items anew although nothing demands it.
    #[arg(long, value_name = "ITEM", value_parser = parse_item)]
    pub(crate) replace: Vec<ItemRef>,
    /// Prints the plan as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Exits with 2 if there is something to do, with 0 if not, and with 1 on an error.
    #[arg(long)]
    pub(crate) detailed_exitcode: bool,
    /// Keeps the plan in a file, for `setpoint apply FILE`. It holds the items whole, secrets included.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// Arguments of `setpoint apply`.
#[derive(Debug, Args)]
pub(crate) struct ApplyArgs {
    /// A plan that `setpoint plan --out` kept; refused if anything has changed since.
    #[arg(value_name = "PLAN", conflicts_with_all = ["target", "replace", "refresh", "refresh_only"])]
    pub(crate) plan: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) write: WriteArgs,
    /// Makes these items anew although nothing demands it.
    #[arg(long, value_name = "ITEM", value_parser = parse_item)]
    pub(crate) replace: Vec<ItemRef>,
    /// Only takes over what is found on the host into the state; changes nothing on the host.
    #[arg(long, conflicts_with_all = ["replace"])]
    pub(crate) refresh_only: bool,
}

/// Arguments of `setpoint watch`.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    #[command(flatten)]
    pub(crate) set: SetArgs,
    #[command(flatten)]
    pub(crate) lock: LockArgs,
    /// Says what differs, and changes nothing.
    #[arg(long)]
    pub(crate) report_only: bool,
    /// How often everything is read again, whatever events there were.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_duration)]
    pub(crate) interval: Duration,
    /// How many operations may run at a time.
    #[arg(long, value_name = "N", default_value = "8")]
    pub(crate) parallelism: NonZeroUsize,
    /// Prints one JSON object a line for each thing it did.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `setpoint validate`.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// The manifest, or a directory of them.
    #[arg(short, long, value_name = "FILE_OR_DIR", default_value = ".")]
    pub(crate) file: PathBuf,
    /// Prints the errors as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `setpoint explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The item, written `kind.name`.
    #[arg(value_parser = parse_item)]
    pub(crate) item: ItemRef,
    #[command(flatten)]
    pub(crate) set: SetArgs,
    /// Prints it as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `setpoint graph`.
#[derive(Debug, Args)]
pub(crate) struct GraphArgs {
    #[command(flatten)]
    pub(crate) set: SetArgs,
    /// In which form.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: GraphFormat,
    /// Draws what a plan would change instead.
    #[arg(long)]
    pub(crate) plan: bool,
}

/// The forms of a drawing.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum GraphFormat {
    /// For Graphviz.
    #[default]
    Dot,
    /// For programs.
    Json,
    /// For people.
    Svg,
}

/// Arguments of `setpoint state`.
#[derive(Debug, Args)]
pub(crate) struct StateArgs {
    #[command(subcommand)]
    pub(crate) command: StateCommand,
}

/// What can be done with the state.
#[derive(Debug, Subcommand)]
pub(crate) enum StateCommand {
    /// Lists the items that Setpoint remembers.
    List {
        #[command(flatten)]
        set: SetArgs,
        /// Prints one JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Shows all that is remembered of an item.
    Show {
        /// The item, written `kind.name`.
        #[arg(value_parser = parse_item)]
        item: ItemRef,
        #[command(flatten)]
        set: SetArgs,
        /// Prints it as JSON, secrets included.
        #[arg(long)]
        json: bool,
    },
    /// Forgets items; they stay on the host as they are.
    Rm {
        /// The items, written `kind.name`.
        #[arg(required = true, value_parser = parse_item)]
        items: Vec<ItemRef>,
        #[command(flatten)]
        set: SetArgs,
        #[command(flatten)]
        lock: LockArgs,
    },
    /// Gives an item another name, as the manifest now calls it.
    Mv {
        /// The item, written `kind.name`.
        #[arg(value_parser = parse_item)]
        from: ItemRef,
        /// Its new name, written `kind.name`.
        #[arg(value_parser = parse_item)]
        to: ItemRef,
        #[command(flatten)]
        set: SetArgs,
        #[command(flatten)]
        lock: LockArgs,
    },
    /// Takes over items that are declared and already on the host, as `adopt: true` would.
    Import {
        /// The items, written `kind.name`.
        #[arg(required = true, value_parser = parse_item)]
        items: Vec<ItemRef>,
        #[command(flatten)]
        set: SetArgs,
        #[command(flatten)]
        lock: LockArgs,
    },
}

/// Arguments of `setpoint history`.
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    pub(crate) set: SetArgs,
    /// How many runs at most.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Prints one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `setpoint show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The number of the run; the latest if none is given.
    pub(crate) run: Option<u64>,
    #[command(flatten)]
    pub(crate) set: SetArgs,
    /// Prints it as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `setpoint haproxy`.
#[derive(Debug, Args)]
pub(crate) struct HaproxyArgs {
    #[command(subcommand)]
    pub(crate) command: HaproxyCommand,
}

/// What can be done with configurations of HAProxy. A file called `-` is the standard input.
#[derive(Debug, Subcommand)]
pub(crate) enum HaproxyCommand {
    /// Writes configurations in one style, and never changes what they mean.
    Fmt(HaproxyFmtArgs),
    /// Says all that is wrong with configurations: text, names that nothing bears, what a version does not know.
    Check(HaproxyCheckArgs),
    /// Shows the operations that lead from one configuration to another, and which need a reload.
    Diff(HaproxyDiffArgs),
    /// Says how much of HAProxy's language the model covers, by section and version, or how much of some files.
    Coverage(HaproxyCoverageArgs),
}

/// Arguments of `setpoint haproxy fmt`.
#[derive(Debug, Args)]
pub(crate) struct HaproxyFmtArgs {
    /// The files.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Writes nothing, and exits with 1 if a file is not in the style.
    #[arg(long)]
    pub(crate) check: bool,
    /// Prints one JSON object a line for each file.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `setpoint haproxy check`.
#[derive(Debug, Args)]
pub(crate) struct HaproxyCheckArgs {
    /// The files.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The version of HAProxy that they are for, such as 3.4: what it removed, deprecates or does not know yet is named.
    #[arg(long = "for", value_name = "VERSION", value_parser = commands::haproxy::parse_version)]
    pub(crate) version: Option<Version>,
    /// Prints one JSON object a line for each file.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `setpoint haproxy diff`.
#[derive(Debug, Args)]
pub(crate) struct HaproxyDiffArgs {
    /// What is there.
    pub(crate) current: PathBuf,
    /// What should be there.
    pub(crate) desired: PathBuf,
    /// The version of HAProxy that they are for.
    #[arg(long = "for", value_name = "VERSION", default_value = Version::LATEST.as_str(), value_parser = commands::haproxy::parse_version)]
    pub(crate) version: Version,
    /// Prints the plan as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Exits with 2 if there is something to do, with 0 if not, and with 1 on an error.
    #[arg(long)]
    pub(crate) detailed_exitcode: bool,
}

/// Arguments of `setpoint haproxy coverage`.
#[derive(Debug, Args)]
pub(crate) struct HaproxyCoverageArgs {
    /// Files whose lines are counted; without any, the keywords of HAProxy are.
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Only this version of HAProxy.
    #[arg(long = "for", value_name = "VERSION", value_parser = commands::haproxy::parse_version)]
    pub(crate) version: Option<Version>,
    /// Prints one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `setpoint demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Works in this directory, which must be new or empty, and leaves the files there at the end.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Prints one JSON object for each step instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads `kind.name`, or `kind/name` as plans print it.
fn parse_item(text: &str) -> Result<ItemRef, String> {
    match text.split_once(['.', '/']) {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() => Ok(ItemRef::new(kind, name)),
        _ => Err("an item is written kind.name, for instance file.motd".to_owned()),
    }
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let parsed: jiff::SignedDuration = text.parse().map_err(|error| format!("{error}; write 30s or 2m"))?;
    Duration::try_from(parsed).map_err(|_| "a time must not be negative".to_owned())
}

/// Does what was asked for, and says with what to exit.
pub(crate) fn run(cli: &Cli) -> Result<u8, CliError> {
    let report = Report::new(cli.log_format, cli.verbose);
    match &cli.command {
        Command::Plan(args) => commands::plan::run(args, report),
        Command::Apply(args) => commands::apply::run(args, report),
        Command::Watch(args) => commands::watch::run(args, report),
        Command::Destroy(args) => commands::destroy::run(args, report),
        Command::Validate(args) => commands::validate::run(args),
        Command::Explain(args) => commands::explain::run(args),
        Command::Graph(args) => commands::graph::run(args, report),
        Command::State(args) => commands::state::run(&args.command, report),
        Command::History(args) => commands::history::list(args),
        Command::Show(args) => commands::history::show(args),
        Command::Haproxy(args) => commands::haproxy::run(&args.command),
        Command::Composite(args) => commands::composite::run(&args.command, report),
        Command::Schema => commands::help::schema(),
        Command::Completions { shell } => commands::help::completions(*shell),
        Command::Man { dir } => commands::help::write_manual(dir),
        Command::Demo(args) => demo::run(args, report).map(|()| 0),
    }
}
