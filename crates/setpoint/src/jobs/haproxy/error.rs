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
    /// The API can't be served.
    #[cfg(feature = "dataplane")]
    #[error("can't serve the API on {address}: {source}")]
    Serve {
        /// Where.
        address: std::net::SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// A configuration can't be written.
    #[error("can't write {}: {source}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

reported_as!(Error: setpoint_haproxy::compare::CompareError);
#[cfg(feature = "dataplane")]
reported_as!(
    Error:
    setpoint_instance::instance::OpenError,
    setpoint_instance::process::LaunchError,
    setpoint_dataplane_api::UsersError,
    setpoint_dataplane_api::UnknownDialect
);

impl Reportable for Error {
    fn kind(&self) -> &'static str {
        match self {
            Self::Configuration { .. } | Self::Broken { .. } | Self::Compare(_) => "configuration",
            Self::Write { .. } => "failed",
            #[cfg(feature = "dataplane")]
            Self::Version { .. } | Self::Open(_) | Self::Launch(_) | Self::Serve { .. } => "failed",
            #[cfg(feature = "dataplane")]
            Self::Users(_) | Self::Dialect(_) => "configuration",
        }
    }

    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Broken { .. } => Some("`setpoint haproxy check` shows all errors"),
            Self::Compare(_) => {
                Some("name the current file first, then the desired one; neither may be empty")
            }
            Self::Configuration { .. } | Self::Write { .. } => None,
            #[cfg(feature = "dataplane")]
            Self::Open(setpoint_instance::instance::OpenError::Lock(_)) => {
                Some("only one process may have a configuration in hand: end the other one first")
            }
            #[cfg(feature = "dataplane")]
            Self::Version { .. } => Some("name the program of HAProxy with --haproxy"),
            #[cfg(feature = "dataplane")]
            Self::Open(_) | Self::Launch(_) | Self::Users(_) | Self::Dialect(_) | Self::Serve { .. } => None,
        }
    }
}
