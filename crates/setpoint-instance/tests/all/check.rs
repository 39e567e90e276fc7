//! What HAProxy would say of a draft, in the place of the file that it replaces.

use std::fs;

use setpoint_files::Draft;
use setpoint_instance::check::{Check, CheckError};
use setpoint_testutils::{Version, need};

use crate::world::{WITHIN, World};

fn check(world: &World, draft: Option<&Draft>) -> Check {
    Check {
        program: world.program.clone(),
        files: vec![(world.file(), draft.map(|draft| draft.path().to_owned()))],
        working_directory: world.folder.path().to_owned(),
        environment: None,
        within: WITHIN,
    }
}

#[tokio::test]
async fn a_draft_is_judged_by_its_own_bytes_under_the_name_it_will_have() {
    for version in Version::ALL {
        let world = need!(World::new(version));
        // A path that is relative to the folder of the configuration.
        fs::write(world.folder.path().join("e.http"), "HTTP/1.0 503 No\r\n\r\nno\n").unwrap();
        let good = world.text("two") + "  errorfile 503 e.http\n";
        let good = good.replacen("global\n", "global\n  default-path config\n", 1);
        let draft = Draft::prepare(&world.file(), good.as_bytes()).unwrap();
        let verdict = check(&world, Some(&draft)).run().await.unwrap();
        assert!(verdict.accepted, "{version:?}: {}", verdict.messages);

        let draft = Draft::prepare(&world.file(), b"backend b\n  balance bogus\n").unwrap();
        let verdict = check(&world, Some(&draft)).run().await.unwrap();
        assert!(!verdict.accepted, "{version:?}");
        let place = format!("[{}:2]", world.file().display());
        assert!(verdict.messages.contains(&place), "{version:?}: {}", verdict.messages);
        assert!(check(&world, None).run().await.unwrap().accepted, "the file itself is as it was");
    }
}

#[tokio::test]
async fn the_environment_is_the_instances() {
    let world = need!(World::new(Version::V3_4));
    let text = world.text("\"${WORD}\"").replacen("global\n", "global\n  pidfile \"${PLACE}\"\n", 1);
    fs::write(world.file(), text).unwrap();
    let mut check = check(&world, None);
    check.environment = Some(vec![("PLACE".into(), "/x".into()), ("WORD".into(), "w".into())]);
    assert!(check.run().await.unwrap().accepted);
}

#[tokio::test]
async fn what_takes_too_long_is_ended_and_what_is_killed_is_no_verdict() {
    let world = need!(World::new(Version::V3_4));
    let script = world.folder.path().join("haproxy");
    let program = |text: &str| {
        use std::os::unix::fs::PermissionsExt;
        fs::write(&script, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        Check { program: script.clone(), ..check(&world, None) }
    };
    let slow = Check { within: std::time::Duration::from_millis(200), ..program("exec sleep 1000") };
    assert!(matches!(slow.run().await, Err(CheckError::TimedOut(_))));
    assert!(matches!(program("kill -9 $$").run().await, Err(CheckError::Killed { .. })));
    let endless = program("head -c 50000000 /dev/zero; exit 1").run().await.unwrap();
    assert!(!endless.accepted && endless.messages.len() <= 2 << 20);
}

#[tokio::test]
async fn what_a_master_tells_itself_is_not_told_to_a_check() {
    for version in Version::ALL {
        let world = need!(World::new(version));
        let mut check = check(&world, None);
        let of_a_master = ["HAPROXY_MWORKER_WAIT_ONLY", "HAPROXY_MWORKER_REEXEC", "HAPROXY_STARTUPLOGS_FD"];
        check.environment = Some(of_a_master.map(|name| (name.into(), "1".into())).to_vec());
        let verdict = check.run().await.unwrap();
        assert!(verdict.accepted, "{version:?}: {}", verdict.messages);
    }
}
