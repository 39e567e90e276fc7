//! The controller of the example, on a real directory.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use setpoint_core::prelude::*;
use tokio::sync::{mpsc, oneshot};

#[expect(dead_code, reason = "its `main` runs for ever")]
#[path = "../../examples/controller.rs"]
mod controller;

/// How often the source is asked, and how often drift is looked for.
const OFTEN: Duration = Duration::from_millis(50);

#[test]
fn the_controller_of_the_example_has_thirty_lines() {
    let text = include_str!("../../examples/controller.rs");
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    assert_eq!(text.lines().filter(is_code).count(), 30, "without comments and empty lines");
}

#[tokio::test]
async fn the_controller_of_the_example_keeps_links_as_they_are_declared() {
    let directory = tempfile::tempdir().unwrap();
    // It works in the directory that it is started in. No other test of this crate asks for that.
    std::env::set_current_dir(directory.path()).unwrap();
    let read = |name: &str| fs::read_link(name).ok();
    let points = |name: &str, target: &str| read(name).as_deref() == Some(Path::new(target));
    let declare = |text: &str| fs::write("links", text).unwrap();
    declare("world earth\nmoon ball\ntheirs ball\n");
    fs::write("theirs", "made by somebody else").unwrap();

    let (sender, mut operations) = mpsc::unbounded_channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let source = polled(controller::declared).every(OFTEN);
    let controller = Controller::new(Engine::for_items(controller::Links), source);
    let observed = controller.with_drift_interval(Some(OFTEN)).observed_by(move |pass, _| {
        for entry in pass.status().iter().flat_map(|status| status.log()) {
            let outcome = if entry.error().is_some() { " failed" } else { "" };
            let _ = sender.send(format!("{} {}{outcome}", entry.operation(), entry.item().name()));
        }
    });
    let running = tokio::spawn(observed.run_until(stopped));
    // Waits for an operation on something else than the link that can't be created, which is tried again and again.
    let mut next = async || loop {
        let operation = tokio::time::timeout(Duration::from_mins(5), operations.recv()).await;
        let operation = operation.expect("it does something").unwrap();
        if operation != "create theirs failed" {
            return operation;
        }
    };

    assert_eq!((next().await, next().await), ("create moon".into(), "create world".into()));
    assert!(points("world", "earth") && points("moon", "ball"));
    declare("world disc\n");
    let mut changed = [next().await, next().await, next().await];
    changed.sort();
    assert_eq!(changed, ["create world", "delete moon", "delete world"]);
    assert!(points("world", "disc") && read("moon").is_none());
    fs::remove_file("world").unwrap();
    assert_eq!(next().await, "create world", "drift is found and repaired");
    symlink("by hand", "another").unwrap();
    fs::rename("another", "world").unwrap();
    assert_eq!((next().await, next().await), ("delete world".into(), "create world".into()));
    assert!(points("world", "disc"));

    stop.send(()).unwrap();
    let current = running.await.unwrap().unwrap();
    assert_eq!(current.len(), 1, "what is known is returned");
    assert_eq!(fs::read_to_string("theirs").unwrap(), "made by somebody else");
}
