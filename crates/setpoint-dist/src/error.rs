//! Why something could not be packed or tried.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The step that failed.
#[derive(Debug, thiserror::Error)]
pub enum DistError {
    /// A file could not be read or written.
    #[error("can't {doing} {}", .path.display())]
    File {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A program could not be started.
    #[error("can't run `{program}`")]
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
    /// A folder is no place for a release.
    #[error("can't put a release into {}: {why}; name another folder with `--out`", .path.display())]
    Place {
        /// The folder.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// The repository is there, and can't be asked which commit it has.
    #[error(
        "can't tell which commit {} has: {why}; hint: \
         releases are made with `git` from a clone, or from a folder without `.git`",
        .root.display()
    )]
    Repository {
        /// The workspace.
        root: PathBuf,
        /// Why.
        why: String,
    },
    /// A time is later than the formats of a release can write.
    #[error("can't write the time {0}, which `SOURCE_DATE_EPOCH` or the commit has: \
         archives hold at most {latest} seconds since 1970", latest = crate::release::LATEST)]
    Time(u64),
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
    /// Writes the error with all of its causes, each once.
    pub fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_file_names_its_cause_once() {
        let error = DistError::file("read", Path::new("a"))(io::ErrorKind::NotFound.into());
        assert_eq!(error.to_string(), "can't read a", "whoever prints the causes adds the rest");
        assert_eq!(error.with_causes(), "can't read a: entity not found");
    }
}
