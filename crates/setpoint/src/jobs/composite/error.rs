//! Why a command about composites failed.

use std::io;
use std::path::PathBuf;

use setpoint_consul as consul;

use crate::error::{Reportable, reported_as};

/// Why a command about composites failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
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
    /// Not every Composite became ready in time: which, with the reason, if it is known which there are.
    #[error("{}", not_ready(.0.as_deref()))]
    NotReady(Option<Vec<String>>),
    /// Composites could not be released.
    #[error("{0}")]
    Release(String),
    /// Kubernetes can't be used.
    #[error("can't use Kubernetes: {0}")]
    Kubernetes(String),
    /// Consul can't be used.
    #[error("{}", with_sources(.0))]
    Consul(#[from] consul::Error),
    /// A file can't be read.
    #[error("can't read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

reported_as!(Error: consul::Error);

impl Reportable for Error {
    fn kind(&self) -> &'static str {
        match self {
            Self::Setting(_) | Self::SettingsFile { .. } => "settings",
            Self::Export { .. } => "file",
            Self::Composite { .. } | Self::Release(_) | Self::NotReady(_) => "composite",
            Self::Kubernetes(_) => "kubernetes",
            Self::Consul(_) => "consul",
            Self::Read { .. } => "configuration",
        }
    }

    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Setting(_) | Self::SettingsFile { .. } => {
                Some("`--help` lists all parameters, with their variables and defaults")
            }
            Self::Release(_) => {
                Some("`--leave-keys` releases them without Consul, and leaves their keys there")
            }
            Self::NotReady(_) => Some(
                "`--once=TIME` waits longer; `kubectl describe composite` shows the conditions and Events",
            ),
            Self::Kubernetes(_) => {
                Some("name a configuration with `--kubeconfig FILE` or KUBECONFIG, or run it in a pod")
            }
            Self::Consul(consul::Error::Denied(_)) => Some(
                "name a file with a token with `--consul-token-file`, or an auth method with `--consul-auth-method`",
            ),
            Self::Consul(
                consul::Error::Transport(_) | consul::Error::Timeout | consul::Error::Malformed(_),
            ) => Some("say where Consul is with `--consul-url` or CONSUL_URL"),
            _ => None,
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Setting(_) | Self::SettingsFile { .. } => crate::error::USAGE,
            _ => 1,
        }
    }
}

/// The message about Composites that are not ready.
fn not_ready(open: Option<&[String]>) -> String {
    match open {
        None => "this instance did not get as far as knowing which Composites there are: does another lead?"
            .to_owned(),
        Some(open) => format!("not every Composite is ready:\n  {}", open.join("\n  ")),
    }
}

/// An error with all that led to it.
fn with_sources(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
