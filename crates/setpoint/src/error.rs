//! Errors as the command line reports them: words, a hint, and an exit code.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use setpoint_composite::consul;
use setpoint_engine::{EngineError, ReconcileError};
use setpoint_graph::{GraphError, ItemRef};
use setpoint_host::{Diagnostic, HostError};
use setpoint_state::StateError;

use crate::report::LogFormat;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// The manifests are wrong.
    #[error("{}", diagnostics(.0))]
    Manifest(Vec<Diagnostic>),
    /// The state could not be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The host could not be opened.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The host could not be read or cleaned.
    #[error("can't clean up after a run that was cut off: {0}")]
    Sweep(String),
    /// An item was named that nobody knows.
    #[error("{0} is neither declared nor remembered")]
    NoSuchItem(ItemRef),
    /// An item is not remembered.
    #[error("{0} is not in the state")]
    NotRemembered(ItemRef),
    /// An item is not declared.
    #[error("{0} is not declared")]
    NotDeclared(ItemRef),
    /// An item is remembered already.
    #[error("{0} is in the state already")]
    Remembered(ItemRef),
    /// An item is not on the host.
    #[error("{0} is not on the host")]
    NotThere(ItemRef),
    /// An item can't become one of another kind.
    #[error("{from} can't become {to}: that is another kind of thing")]
    OtherKind {
        /// What it is.
        from: ItemRef,
        /// What it was to become.
        to: ItemRef,
    },
    /// Some items could not be read.
    #[error("some items can't be read:\n  {}", .0.join("\n  "))]
    Unreadable(Vec<String>),
    /// The plan deletes what must not be.
    #[error("the plan deletes what is protected by `prevent_destroy`: {}", .0.join(", "))]
    Protected(Vec<String>),
    /// Nobody can be asked.
    #[error("there is no terminal to ask on, and nothing was changed")]
    NobodyToAsk,
    /// A person did not agree.
    #[error("nothing was changed")]
    Declined,
    /// A plan in a file can't be used.
    #[error("can't use the plan {}: {why}", .path.display())]
    PlanFile {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A plan in a file is not what would be done now.
    #[error("the plan has gone stale: {0}")]
    Stale(String),
    /// A run that is not in the history.
    #[error("there is no run {0} in the history")]
    NoSuchRun(u64),
    /// Nothing was ever done.
    #[error("there was no run yet")]
    NoRun,
    /// A run did not do all that was planned; what went wrong was said already.
    #[error("not all was done: {0}")]
    Incomplete(String),
    /// Files can't be followed.
    #[error("can't follow the files: {0}")]
    Watch(#[from] notify::Error),
    /// A manual page could not be written.
    #[error("can't write {}: {source}", .path.display())]
    Manual {
        /// The page.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A configuration can't be read.
    #[error("can't read {}: {source}", .path.display())]
    Configuration {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A configuration has errors, and is left alone.
    #[error("{file}:{first}; it is left as it is")]
    Broken {
        /// The file.
        file: String,
        /// The first error.
        first: String,
    },
    /// Two configurations can't be compared.
    #[error(transparent)]
    Compare(#[from] setpoint_haproxy::compare::CompareError),
    /// A parameter can't be used.
    #[error("{0}")]
    Setting(String),
    /// A file with parameters can't be used.
    #[error("can't use {}: {why}", .path.display())]
    SettingsFile {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A file is not what it should be.
    #[error("can't use {}: {why}", .path.display())]
    Export {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A Composite can't be used.
    #[error("can't use {name}: {why}")]
    Composite {
        /// Which one, or of which namespace.
        name: String,
        /// Why.
        why: String,
    },
    /// Kubernetes can't be used.
    #[error("can't use Kubernetes: {0}")]
    Kubernetes(String),
    /// Consul can't be used.
    #[error("{}", with_sources(.0))]
    Consul(#[from] consul::Error),
    /// The endpoints can't be served.
    #[error(transparent)]
    Serve(#[from] setpoint_composite::observe::ServeError),
    /// The directory to keep already holds something.
    #[error("{} is not empty", .0.display())]
    NotEmpty(PathBuf),
    /// The directory to keep can't be made or read.
    #[error("can't use {} as a directory: {source}", .dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The temporary directory could not be made.
    #[error("can't make a temporary directory: {0}")]
    Temporary(#[source] io::Error),
    /// The temporary directory could not be removed.
    #[error("can't remove the temporary directory: {0}")]
    Cleanup(#[source] io::Error),
    /// The real state could not be read.
    #[error("can't read {what}: {why}")]
    Read {
        /// Of what.
        what: String,
        /// Why.
        why: String,
    },
    /// The part that is there to break something did not manage to.
    #[error("can't change {what} behind the engine's back: {source}")]
    Sabotage {
        /// What was to be changed.
        what: String,
        /// Why not.
        source: io::Error,
    },
    /// An intended graph was refused.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A run was refused.
    #[error(transparent)]
    Refused(#[from] EngineError),
    /// A run did not reach the intended state.
    #[error("the intended state was not reached: {0}")]
    Reconcile(#[from] ReconcileError),
    /// The runtime could not be started.
    #[error("can't start the runtime: {0}")]
    Runtime(#[source] io::Error),
    /// The output could not be written.
    #[error("can't write the output: {0}")]
    Output(#[source] io::Error),
}

impl CliError {
    /// What kind of error it is, for programs.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Manifest(_) => "manifest",
            Self::State(StateError::Locked { .. } | StateError::Busy { .. }) => "locked",
            Self::State(StateError::OtherSet { .. }) => "other-set",
            Self::State(_) => "state",
            Self::Unreadable(_) | Self::Host(_) | Self::Sweep(_) | Self::NotThere(_) => "host",
            Self::NoSuchItem(_)
            | Self::NotRemembered(_)
            | Self::NotDeclared(_)
            | Self::Remembered(_)
            | Self::OtherKind { .. } => "item",
            Self::Protected(_) => "protected",
            Self::NobodyToAsk | Self::Declined => "declined",
            Self::PlanFile { .. } => "plan-file",
            Self::Stale(_) => "stale",
            Self::NoSuchRun(_) | Self::NoRun => "history",
            Self::Incomplete(_) | Self::Reconcile(_) => "incomplete",
            Self::Configuration { .. } | Self::Broken { .. } | Self::Compare(_) => "configuration",
            Self::Setting(_) | Self::SettingsFile { .. } => "settings",
            Self::Export { .. } => "file",
            Self::Composite { .. } => "composite",
            Self::Kubernetes(_) => "kubernetes",
            Self::Consul(_) => "consul",
            _ => "failed",
        }
    }

    /// What a person can do about it.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::State(StateError::Locked { .. }) => {
                Some("wait for it to end, or let this command wait with `--lock-timeout 1m`")
            }
            Self::State(StateError::OtherSet { .. }) => {
                Some("name another directory with `--state`, or give the manifests their old `name` back")
            }
            Self::State(StateError::Broken { .. } | StateError::Database { .. }) => Some(
                "move the state directory away to start anew; what is on the host can be taken over with `adopt: true`",
            ),
            Self::NoSuchItem(_) | Self::NotDeclared(_) => Some(
                "items are written kind.name, for instance file.motd; `setpoint graph` shows all of them",
            ),
            Self::NotRemembered(_) => Some("`setpoint state list` shows what is"),
            Self::Remembered(_) => Some("`setpoint state rm` forgets it first"),
            Self::Unreadable(_) => Some(
                "mend what keeps them from being read, or trust what is remembered with `--refresh=false`",
            ),
            Self::Protected(_) => Some("take `prevent_destroy` out of the manifest if they may go"),
            Self::NobodyToAsk => Some("say `--yes` to go on without being asked"),
            Self::Stale(_) => Some("make a new one with `setpoint plan --out FILE`"),
            Self::NoSuchRun(_) => Some("`setpoint history` lists the runs"),
            Self::Incomplete(_) => Some(
                "`setpoint explain ITEM` says why an item is as it is; the next `setpoint apply` goes on",
            ),
            Self::Broken { .. } => Some("`setpoint haproxy check` shows all errors"),
            Self::Compare(_) => {
                Some("name the current file first, then the desired one; neither may be empty")
            }
            Self::Setting(_) | Self::SettingsFile { .. } => {
                Some("`--help` lists all parameters, with their variables and defaults")
            }
            Self::Kubernetes(_) => {
                Some("name a configuration with `--kubeconfig FILE` or KUBECONFIG, or run it in a pod")
            }
            Self::Consul(consul::Error::Denied(_)) => Some(
                "name a file with a token with `--consul-token-file`, or an auth method with `--consul-auth-method`",
            ),
            Self::Consul(
                consul::Error::Transport(_) | consul::Error::Timeout | consul::Error::Malformed(_),
            ) => Some("say where Consul is with `--consul-url` or CONSUL_URL"),
            Self::NotEmpty(_) => Some("name a directory that does not exist yet, or an empty one"),
            Self::Directory { .. } => Some("name a directory that you may write to"),
            Self::Temporary(_) => {
                Some("set TMPDIR to a directory that you may write to, or use `--keep DIR`")
            }
            Self::Cleanup(_) => Some("something else uses it; remove it by hand"),
            Self::Read { .. } | Self::Sabotage { .. } | Self::Reconcile(_) => {
                Some("something else may be at work in the same directory; run it again")
            }
            _ => None,
        }
    }

    /// What the process exits with: 2 for what was asked for wrongly, as for any usage error, else 1.
    fn exit_code(&self) -> u8 {
        match self {
            Self::NotEmpty(_) | Self::Directory { .. } | Self::Setting(_) | Self::SettingsFile { .. } => 2,
            _ => 1,
        }
    }

    /// Tells the person or the program, and gives the exit code. Nobody reading the output any more is no
    /// failure.
    pub(crate) fn report(&self, format: LogFormat) -> ExitCode {
        if matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe) {
            return ExitCode::SUCCESS;
        }
        let text = match format {
            LogFormat::Text => self.text(),
            LogFormat::Json => {
                let (kind, message, hint, exit_code) =
                    (self.kind(), self.to_string(), self.hint(), self.exit_code());
                let told = Told { level: "error", kind, message, hint, exit_code };
                serde_json::to_string(&told).unwrap_or_default() + "\n"
            }
        };
        // There is nobody left to tell if this fails too.
        let _ = io::stderr().write_all(text.as_bytes());
        ExitCode::from(self.exit_code())
    }

    fn text(&self) -> String {
        // Diagnostics say themselves that they are errors.
        let mut text = match self {
            Self::Manifest(_) => format!("{self}\n"),
            _ => format!("error: {self}\n"),
        };
        if let Some(hint) = self.hint() {
            text = format!("{text}hint: {hint}\n");
        }
        text
    }
}

/// An error with all that led to it.
fn with_sources(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// An error as data.
#[derive(Serialize)]
struct Told {
    level: &'static str,
    kind: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
    exit_code: u8,
}

/// Diagnostics one after the other, and how many there are.
pub(crate) fn diagnostics(diagnostics: &[Diagnostic]) -> String {
    let mut text: Vec<String> = diagnostics.iter().map(|diagnostic| format!("{diagnostic}\n")).collect();
    text.push(match diagnostics.len() {
        1 => "error: the manifest has 1 error, and nothing was changed".to_owned(),
        count => format!("error: the manifests have {count} errors, and nothing was changed"),
    });
    text.join("\n")
}
