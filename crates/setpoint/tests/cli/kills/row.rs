//! Directories that move in a row, and runs that are killed meanwhile. Somebody mends the state before the next run.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::Duration;

use super::{APPLY, AT_WORK, Random, killed};
use crate::sandbox::Sandbox;

/// Three directories in a row from this place on, each with a file, whose name changes with the place. After the last place
/// comes the first one: with as many places as directories, they take each other's. The name of one more file changes too.
fn row(first: u64, places: u64, named: u64) -> String {
    let (mut directories, mut files) = (String::new(), String::new());
    for name in 0..3 {
        let place = (first + name) % places;
        writeln!(directories, "  d{name}: {{path: p{place}}}").unwrap();
        let file = if first.is_multiple_of(2) { "even" } else { "odd" };
        writeln!(files, "  f{name}: {{path: p{place}/{file}, content: ours {name}}}").unwrap();
    }
    format!("directories:\n{directories}files:\n{files}  n{named}: {{path: named, content: x}}\n")
}

/// Directories with files of somebody else move in a row, one to where the next one was, and runs are killed one after the
/// other.
pub(super) fn kill_a_row_again_and_again(seed: u64, places: u64, kills: u64) {
    let mut random = Random(seed);
    let mut named = 0;
    let sandbox = Sandbox::new(&row(0, places, named));
    sandbox.ok(&["apply", "--yes"]);
    for name in 0..3 {
        sandbox.write(&format!("p{name}/mine"), &name.to_string());
    }
    let (mut at_work, mut rounds) = (0, 0);
    while at_work < kills {
        rounds += 1;
        assert!(rounds < 100 + 20 * kills, "only {at_work} of {rounds} runs were killed in time");
        let first = random.below(places);
        sandbox.declare(&row(first, places, named));
        for _ in 0..=random.below(3) {
            let most = *random.pick(&AT_WORK);
            let after = Duration::from_micros(random.below(most));
            at_work += u64::from(killed(&sandbox, &["apply", "--yes"], after));
        }
        if random.one_in(2) {
            // The journal of the run that was killed is taken over, and what is in the place of something may be something else.
            let (from, to) = (format!("file.n{named}"), format!("file.n{}", named + 1));
            if sandbox.run(&["state", "mv", &from, &to, "--lock-timeout", "30s"]).code() == 0 {
                named += 1;
                sandbox.declare(&row(first, places, named));
            }
            sandbox.run(&["state", "accept", "--lock-timeout", "30s"]);
        }
        if random.one_in(2) {
            let when = format!("seed {seed}, round {rounds}");
            let ran = sandbox.run(&APPLY);
            assert_eq!(ran.code(), 0, "{when}: {}{}", ran.out(), ran.err());
            let mut wanted = vec!["named".to_owned()];
            for name in 0..3 {
                let place = (first + name) % places;
                let file = if first.is_multiple_of(2) { "even" } else { "odd" };
                wanted.extend([format!("p{place}"), format!("p{place}/{file}"), format!("p{place}/mine")]);
                assert_eq!(sandbox.read(&format!("p{place}/{file}")), format!("ours {name}"), "{when}");
                assert_eq!(sandbox.read(&format!("p{place}/mine")), name.to_string(), "{when}");
            }
            wanted.sort();
            assert_eq!(sandbox.tree(), wanted, "{when}: {}", ran.out());
            assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n", "{when}");
        }
    }
    let done = format!(
        "soak host: {at_work} runs killed that moved directories in a row of {places}, seed {seed}: nothing lost\n"
    );
    std::io::stdout().write_all(done.as_bytes()).unwrap();
}
