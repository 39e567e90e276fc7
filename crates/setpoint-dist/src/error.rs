//! Why something could not be packed or tried.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The step that failed.
#[derive(Debug, thiserror::Error)]
pub enum DistError {
    /// A file could not be read or written.
    #[error("can't {doing} {}: {source}", .path.display())]
    File {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A program could not be started.
    #[error("can't run `{program}`: {source}")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// A program failed.
    #[error("`{command}` failed: {output}")]
    Program {
        /// The command line.
        command: String,
        /// What it printed.
        output: String,
    },
    /// A file is no program that can be packed.
    #[error("can't pack {}: {why}", .path.display())]
    Binary {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// What another program or file says can't be understood.
    #[error("can't use {what}: {why}")]
    Input {
        /// Which program or file.
        what: String,
        /// Why.
        why: String,
    },
    /// What was packed is not as it should be.
    #[error("{0}")]
    Wrong(String),
}

impl DistError {
    /// Makes the error of a file from that of the system.
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::File { doing, path, source }
    }

    /// Makes the error of what can't be understood.
    pub(crate) fn input(what: impl Into<String>, why: &dyn fmt::Display) -> Self {
        Self::Input { what: what.into(), why: why.to_string() }
    }
}
