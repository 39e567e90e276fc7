//! Which release it is: its version, its commit and its time.

use std::fmt;
use std::fs;
use std::io;
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

    /// The number in the manifest, which the program itself prints.
    pub(crate) fn number(&self) -> &str {
        &self.number
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

/// The last second that a tar archive of the plain kind can write: eleven octal digits, in the year 2242.
pub(crate) const LATEST: u64 = 0o77_777_777_777;

impl Release {
    /// Reads commit and time from the repository at `root`; `number` is the version in its manifest, and `epoch` the
    /// time that is asked for instead of the commit's. Without a repository, it is the version as it stands, of 1970.
    pub fn read(root: &Path, number: &str, epoch: Option<u64>) -> Result<Self, DistError> {
        let release = if has_repository(root)? {
            Self::of_commit(root, number, epoch)?
        } else {
            let version = Version::released(number);
            Self { version, commit: None, epoch: epoch.unwrap_or_default() }
        };
        release.check_time()?;
        Ok(release)
    }

    fn of_commit(root: &Path, number: &str, epoch: Option<u64>) -> Result<Self, DistError> {
        let failed = |why: String| DistError::Repository { root: root.to_path_buf(), why };
        let git = |arguments: &[&str]| match program::run(git(root).args(arguments)) {
            Ok(text) => Ok(text.trim().to_owned()),
            Err(error) => Err(failed(error.with_causes())),
        };
        // A broken `.git` is passed over in favour of a repository further up, whose commit is not ours.
        let top = git(&["rev-parse", "--show-toplevel"])?;
        let same = fs::canonicalize(root).and_then(|root| Ok(root == fs::canonicalize(&top)?));
        if !same.map_err(DistError::file("find", root))? {
            return Err(failed(format!("`git` takes it for a part of {top}")));
        }
        let commit = git(&["rev-parse", "--verify", "HEAD"])?;
        let committed = git(&["log", "-1", "--no-show-signature", "--format=%ct"])?;
        let committed: u64 =
            committed.parse().map_err(|error| DistError::input("the commit's time", &error))?;
        let tag = format!("v{number}");
        let here = git(&["tag", "--points-at", "HEAD"])?.lines().any(|line| line == tag);
        let after = !git(&["tag", "--list", &tag])?.is_empty();
        // Whatever the configuration says of files that are not tracked.
        let clean = git(&["status", "--porcelain", "--untracked-files=normal"])?.is_empty();
        let snapshot = (!here || !clean).then(|| {
            let short: String = commit.chars().take(7).collect();
            let name = format!("git{}.{short}", date::compact(committed));
            Snapshot { after, name: if clean { name } else { format!("{name}.dirty") } }
        });
        let version = Version { number: number.to_owned(), snapshot };
        Ok(Self { version, commit: Some(commit), epoch: epoch.unwrap_or(committed) })
    }

    /// Fails if the formats of a release can't write its time.
    pub(crate) fn check_time(&self) -> Result<(), DistError> {
        if self.epoch > LATEST { Err(DistError::Time(self.epoch)) } else { Ok(()) }
    }
}

/// Returns whether a folder is the top of a repository: only a missing `.git` says that it is none.
fn has_repository(root: &Path) -> Result<bool, DistError> {
    let path = root.join(".git");
    match fs::symlink_metadata(&path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(DistError::file("read", &path)(error)),
    }
}

/// A `git` command on a repository, whoever owns it, whatever repository the caller works with.
fn git(root: &Path) -> Command {
    let mut command = Command::new("git");
    // Only the names are read, to keep them from the child: `GIT_DIR` and others point to another repository.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_")) {
        command.env_remove(name);
    }
    command.args(["-c", "safe.directory=*"]).arg("-C").arg(root);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(folder: &Path, arguments: &[&str]) {
        let mut command = super::git(folder);
        command.args(["-c", "user.name=a", "-c", "user.email=a@b.test"]).args(arguments);
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

    #[test]
    fn a_repository_that_git_can_not_read_is_an_error_and_no_release() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::write(root.join(".git"), "gitdir: gone\n").unwrap();
        let error = Release::read(root, "0.1.0", None).unwrap_err().to_string();
        assert!(error.contains("can't tell which commit") && error.contains("hint: "), "{error}");
        std::fs::remove_file(root.join(".git")).unwrap();
        git(root, &["init", "--quiet"]);
        assert!(Release::read(root, "0.1.0", None).is_err(), "it has no commit");
    }

    #[test]
    fn the_commit_of_a_repository_further_up_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let (outer, root) = (folder.path(), folder.path().join("inner"));
        git(outer, &["init", "--quiet"]);
        git(outer, &["commit", "--quiet", "--allow-empty", "-m", "one"]);
        std::fs::create_dir(&root).unwrap();
        assert_eq!(Release::read(&root, "0.1.0", None).unwrap().commit, None, "it has no `.git` of its own");
        std::fs::create_dir(root.join(".git")).unwrap();
        let error = Release::read(&root, "0.1.0", None).unwrap_err().to_string();
        assert!(error.contains("takes it for a part of"), "{error}");
    }

    #[test]
    fn variables_of_git_do_not_lead_to_another_repository() {
        // In a process of its own, as variables belong to all tests of one.
        let mut command = Command::new(std::env::current_exe().unwrap());
        let name = "a_release_is_a_clean_commit_with_its_tag_and_anything_else_is_named_by_its_commit";
        command.args(["--exact", &format!("release::tests::{name}")]);
        let elsewhere = tempfile::tempdir().unwrap();
        for (name, path) in [("GIT_DIR", "git"), ("GIT_WORK_TREE", "tree"), ("GIT_INDEX_FILE", "index")] {
            command.env(name, elsewhere.path().join(path));
        }
        let printed = program::run(&mut command).unwrap();
        assert!(printed.contains("1 passed"), "{printed}");
        assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_owner_of_a_repository_does_not_hide_its_commit() {
        setpoint_testutils::need!(setpoint_testutils::part::root("a folder that is given away"));
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "--quiet"]);
        git(folder.path(), &["commit", "--quiet", "--allow-empty", "-m", "one"]);
        for path in [folder.path(), &folder.path().join(".git")] {
            std::os::unix::fs::chown(path, Some(4711), None).unwrap();
        }
        assert!(Release::read(folder.path(), "0.1.0", None).unwrap().commit.is_some());
    }

    #[test]
    fn a_time_that_archives_can_not_hold_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Release::read(folder.path(), "0.1.0", Some(LATEST)).unwrap().epoch, LATEST);
        let error = Release::read(folder.path(), "0.1.0", Some(99_999_999_999_999)).unwrap_err().to_string();
        assert!(error.contains("99999999999999") && error.contains("8589934591"), "{error}");
    }
}
