//! The arguments of the commands of a host.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use setpoint_graph::ItemRef;
use setpoint_host::bad_name;

/// Which manifests, and which state.
#[derive(Clone, Debug, Args)]
pub(crate) struct SetArgs {
    #[command(flatten)]
    pub(crate) at: PathArgs,
    /// Sets one of the `values` that the manifests declare. May be given several times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_variable)]
    pub(crate) var: Vec<(String, String)>,
}

/// Where the manifests and the state are.
#[derive(Clone, Debug, Args)]
pub(crate) struct PathArgs {
    /// The manifest, or a directory of them.
    #[arg(short, long, value_name = "FILE_OR_DIR", default_value = ".")]
    pub(crate) file: PathBuf,
    /// Where Setpoint remembers what it made; by default `.setpoint` beside the manifests.
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

impl PathArgs {
    /// The options that name the same manifests and the same state to a shell, each with a space before it.
    pub(crate) fn options(&self) -> String {
        let mut options = String::new();
        if self.file != Path::new(".") {
            options = format!(" -f {}", shell_word(&self.file));
        }
        if let Some(state) = &self.state {
            options = format!("{options} --state {}", shell_word(state));
        }
        options
    }
}

/// A path as a shell reads it.
pub(crate) fn shell_word(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=:@%,".contains(c);
    if !path.is_empty() && path.chars().all(is_plain) {
        return path;
    }
    format!("'{}'", path.replace('\'', "'\\''"))
}

/// What a plan is about, and how it is carried out.
#[derive(Clone, Debug, Args)]
pub(crate) struct ChangeArgs {
    /// Only these items, written `kind.name`, with what they need; of those that go, with what can't be there without them.
    #[arg(long, value_name = "ITEM", value_parser = parse_item)]
    pub(crate) target: Vec<ItemRef>,
    /// Whether the host is read first; without it, Setpoint trusts what it remembers.
    #[arg(long, value_name = "BOOL", default_value_t = true, num_args = 0..=1, require_equals = true,
          default_missing_value = "true", action = clap::ArgAction::Set)]
    pub(crate) refresh: bool,
    /// How many operations may run at a time.
    #[arg(long, value_name = "N", default_value = "8", value_parser = parse_count)]
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
    /// Keeps the plan in a file, for `setpoint apply FILE`.
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
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_interval)]
    pub(crate) interval: Duration,
    /// Deletes everything where the manifests declare nothing any more; without this, that is taken for a mistake.
    #[arg(long)]
    pub(crate) allow_empty: bool,
    /// How many operations may run at a time.
    #[arg(long, value_name = "N", default_value = "8", value_parser = parse_count)]
    pub(crate) parallelism: NonZeroUsize,
    /// Serves `/healthz`, `/readyz`, `/metrics` and `/debug/state` on this address.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) observe: Option<SocketAddr>,
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
    /// Sets one of the `values` that the manifests declare. May be given several times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_variable)]
    pub(crate) var: Vec<(String, String)>,
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
        set: PathArgs,
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
        set: PathArgs,
        /// Prints it as JSON.
        #[arg(long)]
        json: bool,
        /// Shows secrets too: contents and variables of items that are sensitive.
        #[arg(long)]
        show_secrets: bool,
    },
    /// Lists what is kept of files that Setpoint took over: what was there before, and what somebody wrote there since.
    Kept {
        /// Prints what is kept under this name, as it was: `setpoint state kept NAME > FILE`.
        name: Option<String>,
        #[command(flatten)]
        set: PathArgs,
        /// Prints one JSON object a line.
        #[arg(long, conflicts_with = "name")]
        json: bool,
    },
    /// Forgets items; they stay on the host as they are.
    Rm {
        /// The items, written `kind.name`.
        #[arg(required = true, value_parser = parse_item)]
        items: Vec<ItemRef>,
        /// Forgets items also where something of them is set aside, which only the state knows.
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        set: PathArgs,
        #[command(flatten)]
        lock: LockArgs,
    },
    /// Gives an item another name, as the manifest now calls it.
    Mv {
        /// The item, written `kind.name`.
        #[arg(value_parser = parse_item)]
        from: ItemRef,
        /// Its new name, written `kind.name`.
        #[arg(value_parser = parse_new_item)]
        to: ItemRef,
        #[command(flatten)]
        set: PathArgs,
        #[command(flatten)]
        lock: LockArgs,
    },
    /// Lets items be deleted that `prevent_destroy` protected, and that are not declared any more.
    Unprotect {
        /// The items, written `kind.name`.
        #[arg(required = true, value_parser = parse_item)]
        items: Vec<ItemRef>,
        #[command(flatten)]
        set: PathArgs,
        #[command(flatten)]
        lock: LockArgs,
    },
    /// Looks after what is in the places of items now, where their directories were replaced: by a copy, from a backup, or by
    /// hand. What is not as it was is kept, and put back in the end.
    Accept {
        /// The items, written `kind.name`, each with all that is inside; without any, all of them.
        #[arg(value_parser = parse_item)]
        items: Vec<ItemRef>,
        #[command(flatten)]
        set: SetArgs,
        #[command(flatten)]
        lock: LockArgs,
    },
    /// Remembers that everything was moved by hand to the root that the manifests say now.
    Relocate {
        /// Also where some of it is not there, or not as it was: that is put right by the next run.
        #[arg(long)]
        partly: bool,
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
    pub(crate) set: PathArgs,
    /// How many runs at most.
    #[arg(short = 'n', long, value_name = "N", default_value = "20", value_parser = parse_count)]
    pub(crate) limit: NonZeroUsize,
    /// Prints one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `setpoint show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The number of the run; the latest if none is given.
    #[arg(value_parser = parse_run)]
    pub(crate) run: Option<u64>,
    #[command(flatten)]
    pub(crate) set: PathArgs,
    /// Prints it as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `setpoint schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Prints the reference as Markdown instead of the JSON Schema.
    #[arg(long)]
    pub(crate) markdown: bool,
}

/// Arguments of `setpoint demo`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct DemoArgs {
    #[cfg(feature = "dataplane")]
    #[command(subcommand)]
    pub(crate) job: Option<DemoJob>,
    /// Works in this directory, which must be new or empty, and leaves the files there at the end.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Prints one JSON object for each step instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What else can be shown.
#[cfg(feature = "dataplane")]
#[derive(Debug, clap::Subcommand)]
pub(crate) enum DemoJob {
    /// Shows the Dataplane API at work on a HAProxy: servers change under traffic, and reloads are counted
    Haproxy(crate::jobs::haproxy::demo::DemoArgs),
}

/// Reads `kind.name`, or `kind/name` as plans print it.
fn parse_item(text: &str) -> Result<ItemRef, String> {
    match text.split_once(['.', '/']) {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() => Ok(ItemRef::new(kind, name)),
        _ => Err("an item is written kind.name, for instance file.motd".to_owned()),
    }
}

/// Reads an item as a manifest may call it.
fn parse_new_item(text: &str) -> Result<ItemRef, String> {
    let item = parse_item(text)?;
    match bad_name(item.name().as_str()) {
        None => Ok(item),
        Some(why) => Err(format!("no manifest can call it so: {why}")),
    }
}

/// Reads `NAME=VALUE`.
fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("a value is set as NAME=VALUE, for instance port=8080".to_owned()),
    }
}

/// Reads how many of something there may be.
fn parse_count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "write a whole number that is at least 1".to_owned())
}

/// Reads the number of a run.
fn parse_run(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "write the number of a run, as `setpoint history` lists them".to_owned())
}

/// A pause between two looks: without one there would be nothing but looking.
fn parse_interval(text: &str) -> Result<Duration, String> {
    match parse_duration(text)? {
        pause if pause < Duration::from_millis(100) => Err("it must be 100ms or more".to_owned()),
        pause => Ok(pause),
    }
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    let parsed: jiff::SignedDuration =
        text.parse().map_err(|_| "write a time such as 30s or 2m".to_owned())?;
    Duration::try_from(parsed).map_err(|_| "a time must not be negative".to_owned())
}
