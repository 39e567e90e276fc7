//! Large files: nobody else waits for them.

use std::fs;

use setpoint_engine::Status;
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

fn cancelled(world: &mut World, yaml: &str) -> Status {
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
    let status = cancelled(&mut world, &larger);
    assert!(status.log()[0].to_string().contains("was cancelled"), "{:?}", status.log());
    assert_eq!(world.tree(), Vec::<String>::new(), "nothing is left of it");

    let small = copy_of(&world, 1);
    world.apply(&small);
    let status = cancelled(&mut world, &larger);
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
