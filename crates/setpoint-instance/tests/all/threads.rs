//! Readers beside a writer, on several threads.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use setpoint_haproxy::edit::{ChildKey, SectionKey};
use setpoint_haproxy::model::{Object, ObjectKind, Value};
use setpoint_haproxy::text::SectionKind;
use setpoint_instance::configuration::Configuration;
use setpoint_instance::instance::{Event, Instance, ReloadChoice, Settings};
use setpoint_testutils::{Version, need};

use crate::world::World;

/// How many commits are made: all events of them are kept for who reads them later.
const COMMITS: u64 = 100;

fn key() -> SectionKey {
    SectionKey::named(SectionKind::Backend, "b")
}

fn weight(configuration: &mut Configuration) -> u64 {
    let server = configuration.editor(&key()).get(&key(), ObjectKind::Server, &ChildKey::Name("s".into()));
    server
        .unwrap()
        .get("weight")
        .and_then(Value::as_int)
        .and_then(|weight| u64::try_from(weight).ok())
        .unwrap()
}

/// Looks at the configuration, and begins transactions, until the writer has ended.
fn read(instance: &Instance, ended: &AtomicBool) -> usize {
    let mut reads = 0;
    while !ended.load(Ordering::Relaxed) || reads == 0 {
        // Each commit says its version as the weight of the server, which stands in another file.
        let (version, weight_now) =
            instance.read(|configuration| (configuration.version(), weight(configuration)));
        assert_eq!(version, weight_now);
        if let Ok(transaction) = instance.begin(version) {
            let held = instance.in_transaction(&transaction.id, weight);
            assert!(held.is_none_or(|held| held == version), "{held:?} in a transaction for {version}");
            instance.discard(&transaction.id);
        }
        reads += 1;
    }
    reads
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_reads_while_several_files_are_written_sees_one_version_and_no_edit_of_somebody_else() {
    let world = need!(World::new(Version::V3_4));
    let second = world.folder.path().join("second.cfg");
    fs::write(&second, "backend b\n  server s 127.0.0.1:9 weight 1\n").unwrap();
    let settings = Settings {
        files: vec![world.file(), second],
        checks: false,
        open_transactions: 1000,
        ..world.settings(Version::V3_4)
    };
    let instance = Instance::open(settings).unwrap();
    let (mut events, ended) = (instance.events(), Arc::new(AtomicBool::new(false)));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (instance, ended) = (instance.clone(), Arc::clone(&ended));
            std::thread::spawn(move || read(&instance, &ended))
        })
        .collect();
    for version in 1..=COMMITS {
        let change = |configuration: &mut Configuration| {
            let json =
                serde_json::json!({ "name": "s", "address": "127.0.0.1", "port": 9, "weight": version + 1 });
            let (server, _) = Object::from_json(ObjectKind::Server, &json, configuration.context()).unwrap();
            configuration.editor(&key()).replace(&key(), &ChildKey::Name("s".into()), &server)
        };
        instance.change(version, ReloadChoice::Skip, change).await.unwrap().unwrap();
    }
    ended.store(true, Ordering::Relaxed);
    for reader in readers {
        assert!(reader.join().unwrap() > 0);
    }
    while let Ok(event) = events.try_recv() {
        assert!(matches!(event, Event::Committed { .. }), "{event:?}");
    }
}
