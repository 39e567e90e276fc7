//! Which release it is: its version, its commit and its time.

use std::fmt;
use std::path::Path;
use std::process::Command;

use crate::date;
use crate::error::DistError;
use crate::program;

/// What every artefact says of where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// The version.
    pub version: Version,
    /// The commit that it is made of, where that is known.
    pub commit: Option<String>,
    /// The time that all files have, in seconds since 1970.
    pub epoch: u64,
}

/// The version of a release, or of what is between releases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    number: String,
    snapshot: Option<Snapshot>,
}

/// A commit that is no release.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Snapshot {
    /// Whether the number was released already, so that this comes after it.
    after: bool,
    /// The day and the commit.
    name: String,
}

impl Version {
    /// The version of a release.
    pub fn released(number: &str) -> Self {
        Self { number: number.to_owned(), snapshot: None }
    }

    /// How Debian writes and sorts it: `0.1.0~git20261116.f989f44` comes before `0.1.0`, and `0.1.0+git…` after.
    pub fn debian(&self) -> String {
        match &self.snapshot {
            None => self.number.clone(),
            Some(snapshot) => {
                let sign = if snapshot.after { '+' } else { '~' };
                format!("{}{sign}{}", self.number, snapshot.name)
            }
        }
    }
}

/// As it is in names of files and tags of images, which have neither `~` nor `+`.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.number)?;
        match &self.snapshot {
            None => Ok(()),
            Some(snapshot) => write!(f, "-{}", snapshot.name),
        }
    }
}

impl Release {
    /// Reads commit and time from the repository at `root`; `number` is the version in its manifest, and `epoch` the
    /// time that is asked for instead of the commit's. Without a repository, it is the version as it stands, of 1970.
    pub fn read(root: &Path, number: &str, epoch: Option<u64>) -> Result<Self, DistError> {
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            program::run(command.arg("-C").arg(root).args(arguments)).map(|text| text.trim().to_owned())
        };
        let Ok(commit) = git(&["rev-parse", "HEAD"]) else {
            let version = Version::released(number);
            return Ok(Self { version, commit: None, epoch: epoch.unwrap_or_default() });
        };
        let committed = git(&["log", "-1", "--format=%ct"])?;
        let committed: u64 =
            committed.parse().map_err(|error| DistError::input("the commit's time", &error))?;
        let tag = format!("v{number}");
        let here = git(&["tag", "--points-at", "HEAD"])?.lines().any(|line| line == tag);
        let after = !git(&["tag", "--list", &tag])?.is_empty();
        let clean = git(&["status", "--porcelain"])?.is_empty();
        let snapshot = (!here || !clean).then(|| {
            let short: String = commit.chars().take(7).collect();
            let name = format!("git{}.{short}", date::compact(committed));
            Snapshot { after, name: if clean { name } else { format!("{name}.dirty") } }
        });
        let version = Version { number: number.to_owned(), snapshot };
        Ok(Self { version, commit: Some(commit), epoch: epoch.unwrap_or(committed) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(folder: &Path, arguments: &[&str]) {
        let mut command = Command::new("git");
        command
            .arg("-C")
            .arg(folder)
            .args(["-c", "user.name=a", "-c", "user.email=a@b.test"])
            .args(arguments);
        command.env("GIT_COMMITTER_DATE", "@1794863491 +0000");
        program::run(&mut command).unwrap();
    }

    #[test]
    fn a_release_is_a_clean_commit_with_its_tag_and_anything_else_is_named_by_its_commit() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let version = || Release::read(root, "0.1.0", None).unwrap().version;
        let outside = Release::read(root, "0.1.0", Some(5)).unwrap();
        assert_eq!(outside, Release { version: Version::released("0.1.0"), commit: None, epoch: 5 });

        git(root, &["init", "--quiet"]);
        git(root, &["commit", "--quiet", "--allow-empty", "-m", "one"]);
        let before = Release::read(root, "0.1.0", None).unwrap();
        let short = &before.commit.as_ref().unwrap()[..7];
        assert_eq!(before.epoch, 1_794_863_491);
        assert_eq!(before.version.debian(), format!("0.1.0~git20261116.{short}"));
        assert_eq!(before.version.to_string(), format!("0.1.0-git20261116.{short}"));

        git(root, &["tag", "v0.1.0"]);
        assert_eq!(version(), Version::released("0.1.0"));
        std::fs::write(root.join("new"), "").unwrap();
        assert!(version().debian().starts_with("0.1.0+git20261116."), "{}", version().debian());
        assert!(version().debian().contains(".dirty"));

        git(root, &["add", "new"]);
        git(root, &["commit", "--quiet", "-m", "two"]);
        assert!(version().debian().starts_with("0.1.0+git20261116."));
        assert_eq!(Release::read(root, "0.1.0", Some(9)).unwrap().epoch, 9);
    }
}
