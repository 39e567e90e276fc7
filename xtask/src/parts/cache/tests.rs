//! Entries are whole or not there.

use super::*;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicUsize, Ordering};

fn cache() -> (tempfile::TempDir, Cache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path().join("parts")).unwrap();
    (folder, cache)
}

fn fill(cache: &Cache, version: &str, content: &str) -> Result<Entry, Problem> {
    let lock = cache.lock("tool")?;
    cache.fill(&lock, ("tool", version, "recipe"), &["scratch".into()], |folder, _| {
        fs::create_dir(folder.join("bin")).unwrap();
        fs::write(folder.join("bin/tool"), content).unwrap();
        std::os::unix::fs::symlink("tool", folder.join("bin/alias")).unwrap();
        Ok(())
    })
}

#[test]
fn an_entry_that_was_made_is_found() {
    let (_folder, cache) = cache();
    assert!(cache.find("tool", "recipe", None).unwrap().is_none());
    let made = fill(&cache, "1:2.3~x", "one").unwrap();
    assert!(made.made && !made.path.to_string_lossy().contains(':'));
    let found = cache.find("tool", "recipe", None).unwrap().unwrap();
    assert_eq!((found.version.as_str(), found.made, &found.path), ("1:2.3~x", false, &made.path));
    assert!(cache.find("tool", "other", None).unwrap().is_none());
}

#[test]
fn what_programs_write_to_a_folder_of_their_own_is_no_damage() {
    let (_folder, cache) = cache();
    let made = fill(&cache, "1", "one").unwrap();
    fs::create_dir(made.path.join("scratch")).unwrap();
    fs::write(made.path.join("scratch/fonts.cache"), "seen").unwrap();
    assert!(cache.find("tool", "recipe", None).unwrap().is_some());
    fs::write(made.path.join("bin/other"), "put there").unwrap();
    assert!(cache.find("tool", "recipe", None).is_err(), "anywhere else it is");
}

#[test]
fn the_entry_that_was_made_last_is_found() {
    let (_folder, cache) = cache();
    let earlier = fill(&cache, "2", "two").unwrap();
    let later = fill(&cache, "1", "one").unwrap();
    // The clock of a file system may stand still in between.
    for (entry, seconds) in [(earlier, 1), (later, 2)] {
        let receipt = fs::File::open(entry.path.join(RECEIPT)).unwrap();
        receipt.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
    }
    assert_eq!(cache.find("tool", "recipe", None).unwrap().unwrap().version, "1");
}

#[test]
fn a_making_that_fails_leaves_no_entry_and_no_rest() {
    let (_folder, cache) = cache();
    let lock = cache.lock("tool").unwrap();
    let outcome = cache.fill(&lock, ("tool", "1", "recipe"), &[], |folder, _| {
        fs::write(folder.join("half"), "half").unwrap();
        Err(Problem::missing("cut off"))
    });
    assert!(outcome.is_err());
    assert!(cache.find("tool", "recipe", None).unwrap().is_none());
    let rest: Vec<_> =
        fs::read_dir(cache.root().join("tool")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(rest, [".lock"]);
}

#[test]
fn what_a_run_that_was_killed_left_is_removed() {
    let (_folder, cache) = cache();
    fs::create_dir_all(cache.root().join("tool/.making-1/bin")).unwrap();
    fill(&cache, "1", "one").unwrap();
    assert!(!cache.root().join("tool/.making-1").exists());
}

#[test]
fn what_entries_are_made_of_is_gone_afterwards_and_after_a_run_that_was_killed() {
    let (_folder, cache) = cache();
    let _lock = cache.lock("tool").unwrap();
    let scratch = cache.scratch("tool").unwrap();
    fs::write(scratch.path().join("program"), "whole").unwrap();
    // A run that is killed drops nothing.
    std::mem::forget(scratch);
    let scratch = cache.scratch("tool").unwrap();
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
    let path = scratch.path().to_owned();
    drop(scratch);
    assert!(!path.exists());
}

#[test]
fn a_damaged_entry_is_named_and_made_anew() {
    let damages: [fn(&Path); 6] = [
        |entry| fs::write(entry.join("bin/tool"), "bad").unwrap(),
        |entry| fs::remove_file(entry.join("bin/alias")).unwrap(),
        |entry| fs::write(entry.join(RECEIPT), "{").unwrap(),
        |entry| fs::remove_file(entry.join(RECEIPT)).unwrap(),
        |entry| fs::set_permissions(entry.join("bin/tool"), fs::Permissions::from_mode(0o600)).unwrap(),
        |entry| fs::write(entry.join("bin/planted"), "").unwrap(),
    ];
    for damage in damages {
        let (_folder, cache) = cache();
        let entry = fill(&cache, "1", "one").unwrap();
        damage(&entry.path);

        let problem = cache.find("tool", "recipe", None).unwrap_err();
        assert!(problem.why.contains("damaged"), "{}", problem.why);
        assert!(problem.why.contains("`cargo xtask parts tool`"), "{}", problem.why);

        let lock = cache.lock("tool").unwrap();
        assert!(cache.find("tool", "recipe", Some(&lock)).unwrap().is_none());
        assert!(!entry.path.exists());
    }
}

#[test]
fn an_entry_that_was_moved_is_not_used() {
    let (folder, cache) = cache();
    fill(&cache, "1", "one").unwrap();
    let moved = folder.path().join("moved");
    fs::rename(cache.root(), &moved).unwrap();
    let problem = Cache::open(moved).unwrap().find("tool", "recipe", None).unwrap_err();
    assert!(problem.why.contains("moved"), "{}", problem.why);
}

#[test]
fn two_runs_at_once_make_an_entry_once() {
    let (_folder, cache) = cache();
    let made = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let lock = cache.lock("tool").unwrap();
                if cache.find("tool", "recipe", Some(&lock)).unwrap().is_some() {
                    return;
                }
                cache
                    .fill(&lock, ("tool", "1", "recipe"), &[], |folder, _| {
                        made.fetch_add(1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(50));
                        fs::write(folder.join("tool"), "one").unwrap();
                        Ok(())
                    })
                    .unwrap();
            });
        }
    });
    assert_eq!(made.load(Ordering::SeqCst), 1);
}

#[test]
fn a_recipe_hash_tells_ingredients_apart() {
    assert_eq!(recipe_hash(&[b"a", b"b"]), recipe_hash(&[b"a", b"b"]));
    assert_ne!(recipe_hash(&[b"a", b"b"]), recipe_hash(&[b"ab"]));
    assert_eq!(recipe_hash(&[b"a"]).len(), 12);
}
