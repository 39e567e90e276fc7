//! Why a command about configurations of HAProxy failed.

use std::io;
use std::path::PathBuf;

use crate::error::{Reportable, reported_as};

/// Why a command about configurations of HAProxy failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// A configuration can't be read.
    #[error("can't read {}: {source}", .path.display())]
    Configuration {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of costs can't be read.
    #[cfg(feature = "sync")]
    #[error("{} does not say what calls cost: {why}", .path.display())]
    Costs {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Several files are the standard input.
    #[error("the standard input can be read once, and is named more than once")]
    InputTwice,
    /// A configuration has no section, because of an error.
    #[error("{file}:{first}")]
    NoSection {
        /// The file.
        file: String,
        /// The first error.
        first: String,
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
    /// The program of HAProxy can't be started.
    #[cfg(feature = "dataplane")]
    #[error("can't start {}: {source}", .program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// HAProxy refuses the configuration that it should run.
    #[cfg(feature = "dataplane")]
    #[error("HAProxy refuses the configuration {files}:\n{alerts}")]
    Refused {
        /// The files.
        files: String,
        /// What it has against them.
        alerts: String,
    },
    /// What is named as the socket of a master is another one.
    #[cfg(feature = "dataplane")]
    #[error("master-socket: {0}")]
    Master(setpoint_instance::reload::ReloadError),
    /// The program of HAProxy does not say which version it is.
    #[cfg(feature = "dataplane")]
    #[error("{} does not say which version of HAProxy it is: {why}", .program.display())]
    Version {
        /// The program.
        program: PathBuf,
        /// Why.
        why: String,
    },
    /// The configuration can't be taken in hand.
    #[cfg(feature = "dataplane")]
    #[error(transparent)]
    Open(#[from] setpoint_instance::instance::OpenError),
    /// HAProxy does not start.
    #[cfg(feature = "dataplane")]
    #[error(transparent)]
    Launch(#[from] setpoint_instance::process::LaunchError),
    /// Nobody could use the API.
    #[cfg(feature = "dataplane")]
    #[error(transparent)]
    Users(#[from] setpoint_dataplane_api::UsersError),
    /// The version of the API is none.
    #[cfg(feature = "dataplane")]
    #[error(transparent)]
    Dialect(#[from] setpoint_dataplane_api::UnknownDialect),
    /// An address can't be served on.
    #[cfg(feature = "dataplane")]
    #[error(transparent)]
    Listen(#[from] setpoint_dataplane_api::ListenError),
    /// Nobody said which configuration.
    #[cfg(feature = "dataplane")]
    #[error("no configuration is named")]
    NoConfiguration,
    /// A file of settings can't be used.
    #[cfg(feature = "dataplane")]
    #[error("can't use the settings of {}: {why}", .path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// A setting can't be used.
    #[cfg(feature = "dataplane")]
    #[error("{name}: {why}")]
    Setting {
        /// Its name.
        name: &'static str,
        /// Why not.
        why: String,
    },
    /// A HAProxy runs that somebody else started.
    #[cfg(feature = "dataplane")]
    #[error(
        "process {pid} is a HAProxy that runs with this configuration, and no socket of its master is named"
    )]
    Runs {
        /// Its process id.
        pid: u32,
    },
    /// A version is none.
    #[cfg(feature = "dataplane")]
    #[error(transparent)]
    UnknownVersion(setpoint_haproxy::model::UnknownVersion),
    /// The demo can't go on.
    #[cfg(all(feature = "dataplane", feature = "host"))]
    #[error("the demo can't go on: {0}")]
    Demo(#[source] io::Error),
    /// A file or a folder that goes with a configuration can't be made.
    #[cfg(feature = "dataplane")]
    #[error("can't write {}: {source}", .path.display())]
    Make {
        /// What.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A plan can't be kept in a file.
    #[cfg(feature = "sync")]
    #[error("can't write the plan to {}: {source}", .path.display())]
    PlanNotKept {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A plan in a file is not the one that would be made now.
    #[cfg(feature = "sync")]
    #[error("{} is not carried out: {why}", .path.display())]
    Plan {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// What is watched can't be read again and again.
    #[cfg(feature = "sync")]
    #[error("the standard input can be read once, and is to be watched")]
    InputOnce,
    /// The desired configuration has no section.
    #[cfg(feature = "sync")]
    #[error("{} has no section", .0.display())]
    Empty(PathBuf),
    /// Nobody said which HAProxy.
    #[cfg(feature = "sync")]
    #[error("no HAProxy is named")]
    NoTarget,
    /// A target is not as desired.
    #[cfg(feature = "sync")]
    #[error("{message}")]
    Sync {
        /// Where, and why.
        message: String,
        /// What can be done.
        hints: String,
    },
    /// A configuration can't be written.
    #[error(transparent)]
    Write(setpoint_files::WriteError),
}

#[cfg(all(feature = "sync", feature = "dataplane"))]
const NO_TARGET: &str =
    "name a Dataplane API with --url URL, or take the HAProxy of this machine with --local";
#[cfg(all(feature = "sync", not(feature = "dataplane")))]
const NO_TARGET: &str = "name a Dataplane API with --url URL";

reported_as!(Error: setpoint_haproxy::compare::CompareError);
#[cfg(feature = "dataplane")]
reported_as!(
    Error:
    setpoint_instance::instance::OpenError,
    setpoint_instance::process::LaunchError,
    setpoint_dataplane_api::ListenError,
    setpoint_dataplane_api::UsersError,
    setpoint_dataplane_api::UnknownDialect
);

impl Reportable for Error {
    fn kind(&self) -> &'static str {
        match self {
            Self::Configuration { .. }
            | Self::InputTwice
            | Self::NoSection { .. }
            | Self::Broken { .. }
            | Self::Compare(_) => "configuration",
            Self::Write(_) => "failed",
            #[cfg(feature = "sync")]
            Self::Costs { .. } => "configuration",
            #[cfg(feature = "sync")]
            Self::Sync { .. } => "failed",
            #[cfg(feature = "sync")]
            Self::NoTarget | Self::InputOnce => "usage",
            #[cfg(feature = "sync")]
            Self::Empty(_) => "configuration",
            #[cfg(feature = "sync")]
            Self::PlanNotKept { .. } | Self::Plan { .. } => "failed",
            #[cfg(feature = "dataplane")]
            Self::Program { .. }
            | Self::Version { .. }
            | Self::Open(_)
            | Self::Launch(_)
            | Self::Listen(_)
            | Self::Make { .. } => "failed",
            #[cfg(all(feature = "dataplane", feature = "host"))]
            Self::Demo(_) => "failed",
            #[cfg(feature = "dataplane")]
            Self::Users(_)
            | Self::Refused { .. }
            | Self::Master(_)
            | Self::Dialect(_)
            | Self::NoConfiguration
            | Self::Runs { .. }
            | Self::Settings { .. }
            | Self::Setting { .. }
            | Self::UnknownVersion(_) => "configuration",
        }
    }

    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoSection { .. } | Self::Broken { .. } => Some("`setpoint haproxy check` shows all errors"),
            Self::Compare(_) => {
                Some("name the current file first, then the desired one; neither may be empty")
            }
            Self::Configuration { source, .. } if source.kind() == io::ErrorKind::IsADirectory => {
                Some("name the files in it, in the order in which HAProxy reads them: `DIRECTORY/*.cfg`")
            }
            Self::InputTwice => Some("write the other one to a file"),
            Self::Configuration { .. } | Self::Write(_) => None,
            #[cfg(feature = "sync")]
            Self::Costs { .. } => Some("`setpoint haproxy plan --json` prints such an object as `costs`"),
            #[cfg(feature = "sync")]
            Self::Sync { .. } => None,
            #[cfg(feature = "sync")]
            Self::NoTarget => Some(NO_TARGET),
            #[cfg(feature = "sync")]
            Self::InputOnce => Some("name a file"),
            #[cfg(feature = "sync")]
            Self::Empty(_) => None,
            #[cfg(feature = "sync")]
            Self::Plan { .. } => Some("make a new plan with `setpoint haproxy plan --out`, and look at it"),
            #[cfg(feature = "sync")]
            Self::PlanNotKept { .. } => None,
            #[cfg(feature = "dataplane")]
            Self::Open(setpoint_instance::instance::OpenError::Lock(_)) => {
                Some("only one process may have a configuration in hand: end the other one first")
            }
            #[cfg(all(feature = "dataplane", feature = "host"))]
            Self::Demo(_) => None,
            #[cfg(feature = "dataplane")]
            Self::Program { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("install HAProxy (`apt install haproxy`), or name its program with --haproxy")
            }
            #[cfg(feature = "dataplane")]
            Self::Program { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some("let this user run it (`chmod +x`), or name another program with --haproxy")
            }
            #[cfg(feature = "dataplane")]
            Self::Program { .. } | Self::Version { .. } => Some("name the program of HAProxy with --haproxy"),
            #[cfg(feature = "dataplane")]
            Self::Refused { .. } => Some(
                "mend that and start again; `setpoint haproxy check FILE` shows all that is wrong with a file",
            ),
            #[cfg(feature = "dataplane")]
            Self::Master(_) => Some(
                "name the socket that HAProxy was started with (`haproxy -W -S SOCKET`), not a `stats socket`",
            ),
            #[cfg(feature = "dataplane")]
            Self::Runs { .. } => Some(
                "start it in master-worker mode with a socket (`haproxy -W -S SOCKET`) and name that with --master-socket, have it reloaded by SIGUSR2 with --reload-signal, or end it",
            ),
            #[cfg(feature = "dataplane")]
            Self::NoConfiguration => Some("name its files with --config, or in a file of --settings"),
            #[cfg(feature = "dataplane")]
            Self::Open(_)
            | Self::Launch(_)
            | Self::Users(_)
            | Self::Dialect(_)
            | Self::Listen(_)
            | Self::Make { .. }
            | Self::Settings { .. }
            | Self::Setting { .. }
            | Self::UnknownVersion(_) => None,
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            #[cfg(feature = "sync")]
            Self::NoTarget | Self::InputOnce => crate::error::USAGE,
            _ => 1,
        }
    }

    fn named_hint(&self) -> Option<String> {
        match self {
            #[cfg(feature = "sync")]
            Self::Sync { hints, .. } if !hints.is_empty() => Some(hints.clone()),
            _ => None,
        }
    }
}
