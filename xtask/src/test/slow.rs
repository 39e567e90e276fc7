//! Tests that take too long: what takes more than a minute alone belongs into `cargo xtask soak`.
//!
//! ```text
//! slow beside others, in a run without a load ──▶ once more at its end, quite alone ──▶ too long, or not
//! ```

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::build::Binary;
use super::limited::Runner;
use super::summary::Summary;
use crate::console;

/// How long a test may take alone.
pub(super) const ALONE: Duration = Duration::from_mins(1);

/// Runs tests of one binary that were slow once more, each alone. One that takes longer than `limit` then, too, has failed.
pub(super) fn judge(
    runner: &Runner,
    binary: &Binary,
    slow: &BTreeSet<String>,
    limit: Duration,
    summary: &mut Summary,
) {
    for test in slow {
        match time(runner, binary, test) {
            Ok(took) if took > limit => summary.fail(format!(
                "{binary}: {test} takes {} alone: what takes more than {} belongs into `cargo xtask soak`",
                console::human(took),
                console::human(limit)
            )),
            Ok(took) => println!("{binary}: {test} takes {} alone", console::human(took)),
            Err(error) => summary.fail(format!("{binary}: {test} can't be run alone: {error:#}")),
        }
    }
}

/// How long a test takes alone.
fn time(runner: &Runner, binary: &Binary, test: &str) -> Result<Duration> {
    let arguments = ["--exact", "--test-threads=1", test].map(OsString::from);
    let started = Instant::now();
    runner.run(&binary.path, &binary.folder, &arguments, &mut |_| Ok(()))?;
    Ok(started.elapsed())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_test_that_takes_too_long_alone_has_failed_and_one_that_only_was_slow_beside_others_has_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tests");
        fs::write(&path, "#!/bin/sh\necho \"$@\" >> asked\nsleep 0.05\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let folder = folder.path().to_path_buf();
        let binary = Binary { package: "p".into(), folder: folder.clone(), target: "test all".into(), path };
        let runner = Runner { environment: None, limit: Duration::from_mins(1) };
        let mut summary = Summary::default();
        judge(&runner, &binary, &["a::b".to_owned()].into(), Duration::from_mins(1), &mut summary);
        assert_eq!(summary.tally.failed, 0, "{summary:?}");
        judge(&runner, &binary, &["a::c".to_owned()].into(), Duration::from_millis(10), &mut summary);
        assert_eq!(summary.tally.failed, 1, "{summary:?}");
        assert!(summary.tally.failures[0].starts_with("p: test all: a::c takes "), "{summary:?}");
        let asked = fs::read_to_string(folder.join("asked")).unwrap();
        assert_eq!(asked, "--exact --test-threads=1 a::b\n--exact --test-threads=1 a::c\n");
    }
}
