//! Random sequences of changes against a simple model: after each, the file, what the instance says and what HAProxy runs agree.

use std::collections::BTreeMap;
use std::fs;

use serde_json::json;
use setpoint_haproxy::edit::{ChildKey, EditError, SectionKey};
use setpoint_haproxy::model::{Object, ObjectKind, SectionModel, Value};
use setpoint_haproxy::text::{Document, SectionKind};
use setpoint_instance::configuration::Configuration;
use setpoint_instance::instance::{Applied, ReloadChoice};
use setpoint_testutils::{Version, need};

use crate::instance::Running;

/// What a server should be.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Server {
    port: u64,
    weight: u64,
    maintenance: bool,
}

/// Backends, each with its servers.
type Model = BTreeMap<String, BTreeMap<String, Server>>;

fn key(backend: &str) -> SectionKey {
    SectionKey::named(SectionKind::Backend, backend)
}

/// One random change of the model, and of the configuration.
fn change(
    random: &mut fastrand::Rng,
    model: &mut Model,
    configuration: &mut Configuration,
) -> Result<(), EditError> {
    let cx = configuration.context();
    let backend = format!("b{}", random.u32(0..3));
    let Some(servers) = model.get_mut(&backend) else {
        let (section, _) = SectionModel::from_json(ObjectKind::Backend, &json!({ "name": backend }), cx)?;
        configuration.create_section(&section)?;
        model.insert(backend, BTreeMap::new());
        return Ok(());
    };
    if random.u32(0..12) == 0 {
        configuration.editor(&key(&backend)).delete_section(&key(&backend))?;
        model.remove(&backend);
        return Ok(());
    }
    let name = format!("s{}", random.u32(0..4));
    let child = ChildKey::Name(name.as_str().into());
    let held = servers.get(&name).cloned();
    if held.is_some() && random.u32(0..4) == 0 {
        servers.remove(&name);
        return configuration.editor(&key(&backend)).delete(&key(&backend), ObjectKind::Server, &child);
    }
    let mut server = held.clone().unwrap_or(Server { port: 9, weight: 1, maintenance: false });
    match random.u32(0..3) {
        0 => server.port = random.u64(1..2000),
        1 => server.weight = random.u64(1..200),
        _ => server.maintenance = !server.maintenance,
    }
    let mut json =
        json!({ "name": name, "address": "127.0.0.1", "port": server.port, "weight": server.weight });
    if server.maintenance {
        json["maintenance"] = json!("enabled");
    }
    let (object, _) = Object::from_json(ObjectKind::Server, &json, cx)?;
    servers.insert(name, server);
    let editor = configuration.editor(&key(&backend));
    match held {
        Some(_) => editor.replace(&key(&backend), &child, &object),
        None => editor.create(&key(&backend), &object, None),
    }
}

/// What a configuration says, as the model has it.
fn read(configuration: &mut Configuration) -> Model {
    let mut model = Model::new();
    for section in configuration.sections(SectionKind::Backend) {
        let name = section.name.clone().unwrap().to_string();
        if !name.starts_with('b') {
            continue;
        }
        let servers = configuration.editor(&section).list(&section, ObjectKind::Server).unwrap();
        let number = |server: &Object, path: &str| {
            server.get(path).and_then(Value::as_int).and_then(|number| u64::try_from(number).ok()).unwrap()
        };
        let servers = servers.iter().map(|server| {
            let maintenance = server.get("maintenance").and_then(Value::as_str) == Some("enabled");
            let (port, weight) = (number(server, "port"), number(server, "weight"));
            (server.name().unwrap().to_owned(), Server { port, weight, maintenance })
        });
        model.insert(name, servers.collect());
    }
    model
}

#[tokio::test]
async fn after_random_changes_file_instance_and_haproxy_agree() {
    let seed = std::env::var("SETPOINT_SEED").map_or(1, |seed| seed.parse().unwrap());
    println!("SETPOINT_SEED={seed}");
    for version in Version::ALL {
        let running = need!(Running::start(version).await);
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut model, mut told) = (Model::new(), 0);
        for step in 0..40 {
            let what = format!("{version:?}, step {step}, seed {seed}");
            let instance = &running.instance;
            let before = model.clone();
            let committed = if random.bool() {
                let changed = instance.change(instance.version(), ReloadChoice::Delayed, |configuration| {
                    change(&mut random, &mut model, configuration)
                });
                changed.await.unwrap_or_else(|error| panic!("{what}: {error}")).unwrap().1
            } else {
                let transaction = instance.begin(instance.version()).unwrap();
                for _ in 0..random.u32(1..4) {
                    let changed = instance.in_transaction(&transaction.id, |configuration| {
                        change(&mut random, &mut model, configuration)
                    });
                    changed.unwrap().unwrap();
                }
                if random.u32(0..4) == 0 {
                    assert!(instance.discard(&transaction.id));
                    model = before;
                    continue;
                }
                let committed = instance.commit(&transaction.id, ReloadChoice::Delayed).await;
                committed.unwrap_or_else(|error| panic!("{what}: {error}"))
            };
            told += usize::from(committed.applied == Applied::Runtime);
            running.settled().await;
            assert_eq!(instance.read(read), model, "{what}");
            let text = fs::read(&instance.settings().files[0]).unwrap();
            let file = Configuration::of(vec![("f".into(), text.clone())], instance.context());
            assert_eq!(read(&mut file.unwrap()), model, "{what}: {}", String::from_utf8_lossy(&text));
            assert!(Document::parse(&text).diagnostics().is_empty(), "{what}");
            let differences = instance.differences().await.unwrap();
            assert!(differences.is_empty(), "{what}: {differences:?}\n{model:#?}");
        }
        assert!(told > 0, "{version:?}, seed {seed}: nothing was told at runtime");
        running.stop().await;
    }
}
