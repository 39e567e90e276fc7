//! The controller of the example, on a real directory.

use std::fs;
use std::path::Path;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

#[expect(dead_code, reason = "its `main` runs for ever")]
#[path = "../../examples/controller.rs"]
mod controller;

#[tokio::test]
async fn the_controller_of_the_example_keeps_greetings_as_they_are_declared() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let read = |name: &str| fs::read_to_string(path(name)).ok();
    let declare = |text: &str| fs::write(path("greetings"), text).unwrap();
    declare("world Hello, world!\nmoon Good night!\ntheirs Hello!\n");
    fs::write(path("theirs"), "made by somebody else").unwrap();

    let (sender, mut operations) = mpsc::unbounded_channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let controller = controller::controller(directory.path().into());
    let drift_interval = Some(Duration::from_millis(50));
    let observed = controller.with_drift_interval(drift_interval).observed_by(move |pass, _| {
        for entry in pass.status().iter().flat_map(|status| status.log()) {
            let name = Path::new(entry.item().name().as_str()).file_name().unwrap().to_owned();
            let outcome = if entry.error().is_some() { " failed" } else { "" };
            let _ = sender.send(format!("{} {}{outcome}", entry.operation(), name.display()));
        }
    });
    let running = tokio::spawn(observed.run_until(stopped));
    // Waits for an operation on something else than the file that can't be created, which is tried again and again.
    let mut next = async || loop {
        let operation = tokio::time::timeout(Duration::from_secs(30), operations.recv()).await;
        let operation = operation.expect("it does something").unwrap();
        if operation != "create theirs failed" {
            return operation;
        }
    };

    assert_eq!((next().await, next().await), ("create moon".into(), "create world".into()));
    assert_eq!((read("world"), read("moon")), (Some("Hello, world!".into()), Some("Good night!".into())));
    declare("world Good morning!\n");
    assert_eq!((next().await, next().await), ("modify world".into(), "delete moon".into()));
    assert_eq!((read("world"), read("moon")), (Some("Good morning!".into()), None));
    fs::remove_file(path("world")).unwrap();
    assert_eq!(next().await, "create world", "drift is found and repaired");
    fs::write(path("world"), "edited by hand").unwrap();
    assert_eq!(next().await, "modify world");
    assert_eq!(read("world").unwrap(), "Good morning!");

    stop.send(()).unwrap();
    let current = running.await.unwrap().unwrap();
    assert_eq!(current.len(), 1, "what is known is returned");
    assert_eq!(read("theirs").unwrap(), "made by somebody else");
}
