//! A root that is moved by hand, and runs that are killed in between.

use std::fs;
use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

use super::{APPLY, AT_WORK, Random, killed};
use crate::sandbox::Sandbox;

/// Declares what is in the root at this place, with contents of this round.
fn declare(sandbox: &Sandbox, place: u64, round: u64) {
    let name = if round.is_multiple_of(2) { "even" } else { "odd" };
    sandbox.declare(&format!(
        "root: at{place}
directories: {{d: {{path: {name}}}}}
files:
  f: {{path: {name}/f, content: '{round}'}}
  theirs: {{content: 'ours {round}', adopt: true}}
symlinks: {{l: {{target: {name}}}}}
"
    ));
}

/// Runs are killed, and the root is moved to another place now and then, which is said. What was cut off is finished where it was.
pub(super) fn kill_and_move_the_root(seed: u64, kills: u64) {
    let mut random = Random(seed);
    let sandbox = Sandbox::new("");
    fs::create_dir(sandbox.path("at0")).unwrap();
    sandbox.write("at0/theirs", "theirs");
    let (mut at_work, mut rounds, mut place, mut moves) = (0, 0, 0, 0);
    while at_work < kills || moves < 2 {
        rounds += 1;
        assert!(rounds < 100 + 20 * kills, "only {at_work} of {rounds} runs were killed in time");
        let when = format!("seed {seed}, round {rounds}");
        declare(&sandbox, place, rounds);
        let most = *random.pick(&AT_WORK);
        let after = Duration::from_micros(random.below(most));
        at_work += u64::from(killed(&sandbox, &["apply", "--yes"], after));
        if random.one_in(2) {
            let path = |place: u64| sandbox.path(&format!("at{place}"));
            let (here, there, away) = (path(place), path(1 - place), sandbox.path("away"));
            fs::rename(&here, &away).unwrap();
            // A copy is another directory, with others inside.
            let copied = Command::new("cp").arg("-a").arg(&away).arg(&there).status().unwrap();
            assert!(copied.success());
            declare(&sandbox, 1 - place, rounds);
            let ran = sandbox.run(&["state", "relocate", "--lock-timeout", "30s"]);
            if ran.code() == 0 {
                fs::remove_dir_all(&away).unwrap();
                (place, moves) = (1 - place, moves + 1);
            } else {
                assert!(ran.err().contains("a run was cut off"), "{when}: {}", ran.err());
                fs::remove_dir_all(&there).unwrap();
                fs::rename(&away, &here).unwrap();
                declare(&sandbox, place, rounds);
            }
        }
        if random.one_in(2) {
            let ran = sandbox.run(&APPLY);
            assert_eq!(ran.code(), 0, "{when}: {}{}", ran.out(), ran.err());
            assert_eq!(sandbox.ok(&["plan"]), "site: nothing to do.\n", "{when}");
            let name = if rounds.is_multiple_of(2) { "even" } else { "odd" };
            let paths = ["", "/l", "/theirs", &format!("/{name}"), &format!("/{name}/f")];
            let mut wanted = paths.map(|path| format!("at{place}{path}"));
            wanted.sort();
            assert_eq!(sandbox.tree(), wanted, "{when}: {}", ran.out());
        }
    }
    assert_eq!(sandbox.run(&APPLY).code(), 0, "seed {seed}");
    sandbox.ok(&["destroy", "--yes"]);
    assert_eq!(sandbox.tree(), [format!("at{place}"), format!("at{place}/theirs")], "seed {seed}");
    assert_eq!(sandbox.read(&format!("at{place}/theirs")), "theirs", "seed {seed}");
    let done = format!(
        "soak host: {at_work} runs killed whose root was moved {moves} times, seed {seed}: nothing lost\n"
    );
    std::io::stdout().write_all(done.as_bytes()).unwrap();
}
