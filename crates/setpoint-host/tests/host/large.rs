//! Large files: nobody else waits for them.

use std::fs;

use setpoint_engine::Status;
use setpoint_host::{Kept, KeptThing};
use tokio_util::sync::CancellationToken;

use crate::world::{ALL, World};

/// More than is read and written at once.
const LARGE: u64 = 16 << 20;

/// A manifest with a copy of a file of so many bytes; the sizes tell the contents apart.
fn copy_of(world: &World, size: u64) -> String {
    let source = fs::File::create(world.directory.path().join(format!("source-{size}"))).unwrap();
    source.set_len(size).unwrap();
    format!("files:\n  copy: {{source: source-{size}}}\n")
}

/// Reconciles, and counts how often something else could go on meanwhile.
fn beats(world: &mut World, yaml: Option<&str>) -> usize {
    let manifest = yaml.map(|yaml| world.load(yaml));
    let mut current = world.current.take();
    let mut beats = 0;
    let beat = async {
        loop {
            beats += 1;
            tokio::task::yield_now().await;
        }
    };
    let graph = manifest.as_ref().map(setpoint_host::Manifest::graph);
    let run = world.engine.reconcile(&mut current, graph, &ALL);
    let status = world.block_on(async {
        tokio::select! {
            biased;
            status = run => status.unwrap(),
            () = beat => unreachable!("it goes on for ever"),
        }
    });
    assert_eq!(status.failures().len(), 0, "{:?}", status.log());
    world.current = current;
    beats
}

#[test]
fn something_else_goes_on_while_a_large_file_is_written_replaced_and_read() {
    let mut world = World::new();
    let (small, large, larger) = (copy_of(&world, 1), copy_of(&world, LARGE), copy_of(&world, LARGE + 1));
    assert_eq!(beats(&mut world, Some(&small)), 0, "a small one is written at once");
    assert_ne!(beats(&mut world, Some(&large)), 0);
    assert_eq!(fs::metadata(world.path("copy")).unwrap().len(), LARGE);
    assert_ne!(beats(&mut world, Some(&larger)), 0);
    assert_eq!(fs::metadata(world.path("copy")).unwrap().len(), LARGE + 1);
    assert_eq!(world.drifted(), []);
    beats(&mut world, None);
    assert_eq!(world.tree(), Vec::<String>::new());
}

/// Cancels a manifest while its file is being written. On a busy machine it may be written by then: what was there before is put
/// back, and it is tried again.
fn cancelled(world: &mut World, yaml: &str, before: Option<&str>) -> Status {
    for _ in 0..100 {
        let status = cancelled_soon(world, yaml);
        if status.log()[0].to_string().contains("was cancelled") {
            return status;
        }
        match before {
            Some(yaml) => world.apply(yaml),
            None => world.destroy(),
        };
    }
    panic!("it was never cancelled in time");
}

fn cancelled_soon(world: &mut World, yaml: &str) -> Status {
    let manifest = world.load(yaml);
    let cancel = CancellationToken::new();
    let mut current = world.current.take();
    let run = world.engine.reconcile_until(&mut current, Some(manifest.graph()), &ALL, &cancel);
    let other = async {
        // Not before it has begun.
        tokio::task::yield_now().await;
        cancel.cancel();
        std::future::pending::<()>().await;
    };
    let status = world.block_on(async {
        tokio::select! {
            biased;
            status = run => status.unwrap(),
            () = other => unreachable!("it waits for ever"),
        }
    });
    world.current = current;
    status
}

#[test]
fn a_large_file_that_is_cancelled_while_it_is_written_is_as_it_was() {
    let mut world = World::new();
    let larger = copy_of(&world, LARGE + 1);
    cancelled(&mut world, &larger, None);
    assert_eq!(world.tree(), Vec::<String>::new(), "nothing is left of it");

    let small = copy_of(&world, 1);
    world.apply(&small);
    let status = cancelled(&mut world, &larger, Some(&small));
    assert!(
        status.log()[0].to_string().contains("writing copy was cancelled; it is as it was"),
        "{:?}",
        status.log()
    );
    assert_eq!(world.tree(), ["copy"]);
    assert_eq!(fs::metadata(world.path("copy")).unwrap().len(), 1);
    world.apply(&larger);
    assert_eq!(fs::metadata(world.path("copy")).unwrap().len(), LARGE + 1);
    assert_eq!(world.drifted(), []);
}

/// Takes over a file with a large one, while somebody writes there once the large one is being written. Returns whether that came
/// in time.
fn taken_over_while_somebody_writes(world: &mut World) -> bool {
    const LARGER: u64 = 8 * LARGE;
    fs::write(world.path("copy"), "theirs").unwrap();
    let yaml = copy_of(world, LARGER).replace('}', ", adopt: true}");
    let manifest = world.load(&yaml);
    let (root, mut in_time) = (world.root(), false);
    let half_written = || {
        let entries = fs::read_dir(&root).unwrap().flatten();
        let mut temporary =
            entries.filter(|entry| entry.file_name().to_str().unwrap().starts_with(".setpoint-"));
        temporary.any(|entry| entry.metadata().is_ok_and(|found| found.len() < LARGER))
    };
    let other = async {
        loop {
            if !in_time && half_written() {
                fs::write(root.join("copy"), "edited").unwrap();
                // It is still being written, so that it replaces this.
                in_time = half_written();
            }
            tokio::task::yield_now().await;
        }
    };
    let mut current = world.current.take();
    let run = world.engine.reconcile(&mut current, Some(manifest.graph()), &ALL);
    let status = world.block_on(async {
        tokio::select! {
            biased;
            status = run => status.unwrap(),
            () = other => unreachable!("it goes on for ever"),
        }
    });
    assert_eq!(status.failures().len(), 0, "{:?}", status.log());
    world.current = current;
    in_time
}

#[test]
fn what_somebody_writes_while_a_large_file_is_written_in_its_place_is_kept() {
    let worlds = (0..50).map(|_| World::new());
    let in_time = worlds.map(|mut world| (taken_over_while_somebody_writes(&mut world), world));
    let world = in_time.filter(|(in_time, _)| *in_time).map(|(_, world)| world).next();
    let mut world = world.expect("nobody wrote while a file was being written, in 50 rounds");
    let notices: Vec<String> = world.host.take_notices().iter().map(ToString::to_string).collect();
    assert!(notices.iter().any(|notice| notice.contains("what was there is kept")), "{notices:?}");
    let kept = Kept::new(&world.directory.path().join("run")).list().unwrap();
    let holds = |text: &str| {
        kept.iter()
            .any(|entry| matches!(&entry.what, KeptThing::File { content, .. } if content == text.as_bytes()))
    };
    assert!(holds("theirs") && holds("edited"), "{kept:?}");
    world.destroy();
    assert_eq!(world.text("copy"), "theirs");
}
