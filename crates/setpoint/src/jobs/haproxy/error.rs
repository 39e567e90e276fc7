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

impl Reportable for Error {
    fn kind(&self) -> &'static str {
        match self {
            Self::Configuration { .. } | Self::Broken { .. } | Self::Compare(_) => "configuration",
            Self::Write { .. } => "failed",
        }
    }

    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Broken { .. } => Some("`setpoint haproxy check` shows all errors"),
            Self::Compare(_) => {
                Some("name the current file first, then the desired one; neither may be empty")
            }
            Self::Configuration { .. } | Self::Write { .. } => None,
        }
    }
}
