//! A disk without room for a configuration.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use setpoint_instance::instance::{Applied, ReloadChoice, Settings};
use setpoint_testutils::{Version, need, part, wait};

use crate::instance::{Running, backend_with, change, weight};
use crate::world::{WITHIN, World};

/// A small file system.
struct Mounted(PathBuf);

impl Mounted {
    fn new(at: PathBuf) -> Self {
        fs::create_dir(&at).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=256k", "tmpfs"]).arg(&at).output();
        assert!(mounted.unwrap().status.success());
        Self(at)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Fills a file system, in smaller and smaller pieces.
fn fill(path: &Path) {
    let mut filler = fs::File::create(path).unwrap();
    for size in [4096, 1] {
        while filler.write_all(&vec![0; size]).is_ok() {}
    }
}

#[tokio::test]
async fn on_a_full_disk_nothing_changes_and_afterwards_changes_are_made_again() {
    need!(part::root("a file system of a given size"));
    let mut world = need!(World::new(Version::V3_4));
    let small = Mounted::new(world.folder.path().join("small"));
    world.place = small.0.clone();
    let text = format!("{}backend web\n  server s1 127.0.0.1:9 weight 10\n", world.text("one"));
    fs::write(world.file(), &text).unwrap();
    let settings: Settings = world.settings(Version::V3_4);
    let running = Running::start_on(world, settings).await;
    let held = async || {
        let servers = running.instance.worker().servers(Some("web")).await.unwrap().unwrap();
        let file = fs::read_to_string(running.world.file()).unwrap();
        (file, servers[0].weight(), running.instance.version())
    };
    change(&running.instance, weight(20)).await.unwrap();
    let before = held().await;
    assert_eq!((before.1, before.2), (20, 2));
    // Until it is checked, the text before it is kept, and leaves room when it goes.
    let checked = async || running.instance.is_checked().await.then_some(());
    wait::until("the check", WITHIN, checked).await;

    fill(&small.0.join("filler"));
    let error = change(&running.instance, weight(30)).await.unwrap_err().to_string();
    assert!(error.contains("No space left"), "{error}");
    assert_eq!(held().await, before);
    let error = change(&running.instance, backend_with("b")).await.unwrap_err().to_string();
    assert!(error.contains("No space left"), "{error}");
    assert_eq!(held().await, before);

    fs::remove_file(small.0.join("filler")).unwrap();
    let done = change(&running.instance, weight(30)).await.unwrap();
    assert_eq!((done.applied, done.version), (Applied::Runtime, 3));
    let after = held().await;
    assert_eq!((after.1, after.2), (30, 3));
    let drafts = fs::read_dir(&small.0).unwrap().map(|entry| entry.unwrap().file_name());
    let drafts: Vec<_> = drafts.filter(|name| name.to_string_lossy().starts_with(".haproxy.cfg.")).collect();
    assert_eq!(drafts, [".haproxy.cfg.setpoint"]);
    running.stop().await;
    drop(small);
}

#[tokio::test]
async fn a_mount_without_room_for_a_text_stays_as_it_is() {
    need!(part::root("a file system of a given size"));
    let world = need!(World::new(Version::V3_4));
    let small = Mounted::new(world.folder.path().join("small"));
    let text = format!("{}backend web\n  server s1 127.0.0.1:9 weight 10\n", world.text("one"));
    let source = small.0.join("source.cfg");
    fs::write(&source, &text).unwrap();
    let bound = Command::new("mount").arg("--bind").arg(&source).arg(world.file()).status().unwrap();
    assert!(bound.success());
    let bound = Mounted(world.file());
    let settings: Settings = world.settings(Version::V3_4);
    let running = Running::start_on(world, settings).await;
    fill(&small.0.join("filler"));
    let long = format!("{text}# {}\n", "more ".repeat(20_000));
    let error = running.instance.push(long.as_bytes(), Some(1), ReloadChoice::Skip).await.unwrap_err();
    assert!(error.to_string().contains("No space left"), "{error}");
    assert_eq!(fs::read_to_string(&source).unwrap(), text);
    assert_eq!(running.instance.version(), 1);
    // It is made when there is room, and by nobody before that.
    fs::remove_file(small.0.join("filler")).unwrap();
    running.instance.push(long.as_bytes(), Some(1), ReloadChoice::Skip).await.unwrap();
    assert_eq!(fs::read_to_string(&source).unwrap(), format!("# _version=2\n{long}"));
    running.stop().await;
    drop((bound, small));
}
