//! Random sequences of calls against a simple model: after each, the file, what the API says and what HAProxy runs agree.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value as Json, json};
use setpoint_dataplane_api::Dialect;
use setpoint_haproxy::edit::{Editor, SectionKey};
use setpoint_haproxy::model::{Object, ObjectKind, Value};
use setpoint_haproxy::text::{Document, SectionKind};
use setpoint_instance::cli::Request as CliRequest;
use setpoint_instance::runtime::{AdminState, Reply};
use setpoint_testutils::need;

use crate::found::{answer, ask, request};
use crate::world::{Plan, World};

/// What the configuration says of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Server {
    port: u64,
    weight: u64,
    maintenance: bool,
}

/// Backends, each with its servers.
type Backends = BTreeMap<String, BTreeMap<String, Server>>;

/// What should be there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    backends: Backends,
    map: BTreeMap<String, String>,
    /// Servers that are in maintenance in HAProxy, whoever decided so.
    down: Vec<(String, String)>,
}

impl Model {
    /// After a commit: who changed what the configuration says of a server has decided about it; whoever else has decided is right.
    fn commit(&mut self, backends: Backends) {
        let mut down = Vec::new();
        for (backend, servers) in &backends {
            for (name, server) in servers {
                let place = (backend.clone(), name.clone());
                let before = self.backends.get(backend).and_then(|servers| servers.get(name));
                let is_down = match before {
                    Some(before) if before.maintenance == server.maintenance => self.down.contains(&place),
                    _ => server.maintenance,
                };
                down.extend(is_down.then_some(place));
            }
        }
        (self.backends, self.down) = (backends, down);
    }

    fn random_server(&self, random: &mut fastrand::Rng) -> Option<(String, String)> {
        let all = self.backends.iter().flat_map(|(backend, servers)| {
            servers.keys().map(move |server| (backend.clone(), server.clone()))
        });
        random.choice(all.collect::<Vec<_>>())
    }
}

/// A call that changes backends, and what it makes of them.
struct Call {
    method: &'static str,
    path: String,
    body: Option<Json>,
}

/// One random call, which is made of the backends.
fn call(random: &mut fastrand::Rng, backends: &mut Backends) -> Call {
    let backend = format!("b{}", random.u32(0..3));
    let path = format!("configuration/backends/{backend}");
    let Some(servers) = backends.get_mut(&backend) else {
        let body = Some(json!({ "name": backend, "from": "d" }));
        backends.insert(backend, BTreeMap::new());
        return Call { method: "POST", path: "configuration/backends".to_owned(), body };
    };
    if random.u32(0..12) == 0 {
        backends.remove(&backend);
        return Call { method: "DELETE", path, body: None };
    }
    let name = format!("s{}", random.u32(0..4));
    let held = servers.get(&name).cloned();
    if held.is_some() && random.u32(0..4) == 0 {
        servers.remove(&name);
        return Call { method: "DELETE", path: format!("{path}/servers/{name}"), body: None };
    }
    let mut server = held.clone().unwrap_or(Server { port: 9, weight: 1, maintenance: false });
    match random.u32(0..3) {
        0 => server.port = random.u64(1..2000),
        1 => server.weight = random.u64(1..200),
        _ => server.maintenance = !server.maintenance,
    }
    let mut body =
        json!({ "name": name, "address": "127.0.0.1", "port": server.port, "weight": server.weight });
    if server.maintenance {
        body["maintenance"] = json!("enabled");
    }
    servers.insert(name.clone(), server);
    match held {
        Some(_) => Call { method: "PUT", path: format!("{path}/servers/{name}"), body: Some(body) },
        None => Call { method: "POST", path: format!("{path}/servers"), body: Some(body) },
    }
}

/// A text in which a random server has another weight, or a backend comes; and what it says then.
fn edited(random: &mut fastrand::Rng, text: &str, backends: &mut Backends) -> String {
    let missing = (0..3).map(|number| format!("b{number}")).find(|name| !backends.contains_key(name));
    let weighed = backends.iter_mut().find_map(|(backend, servers)| {
        let (name, server) = servers.iter_mut().next()?;
        Some((backend.clone(), name.clone(), server))
    });
    match (missing, weighed) {
        (Some(backend), _) if random.bool() => {
            let server = Server { port: 9, weight: random.u64(1..200), maintenance: false };
            let lines =
                format!("backend {backend} from d\n  server s0 127.0.0.1:9 weight {}\n", server.weight);
            backends.insert(backend, BTreeMap::from([("s0".to_owned(), server)]));
            format!("{text}# by hand\n{lines}")
        }
        (_, Some((backend, name, server))) => {
            let (before, weight) = (server.weight, random.u64(1..200));
            server.weight = weight;
            let at = text.find(&format!("backend {backend} ")).unwrap();
            let at = at + text[at..].find(&format!("server {name} ")).unwrap();
            let (head, tail) = text.split_at(at);
            let changed = tail.replacen(&format!("weight {before}"), &format!("weight {weight}"), 1);
            format!("{head}{changed}")
        }
        _ => format!("{text}# by hand\n"),
    }
}

/// What a text says.
fn read(text: &[u8], dialect: Dialect) -> Backends {
    let cx = setpoint_haproxy::model::Context::new(dialect.version());
    let mut editor = Editor::new(Document::parse(text), &cx);
    let mut backends = Backends::new();
    for section in editor.sections(SectionKind::Backend) {
        let servers = editor.list(&section, ObjectKind::Server).unwrap();
        let number = |server: &Object, path: &str| {
            server.get(path).and_then(Value::as_int).and_then(|number| u64::try_from(number).ok()).unwrap()
        };
        let servers = servers.iter().map(|server| {
            let maintenance = server.get("maintenance").and_then(Value::as_str) == Some("enabled");
            let (port, weight) = (number(server, "port"), number(server, "weight"));
            (server.name().unwrap().to_owned(), Server { port, weight, maintenance })
        });
        let SectionKey { name, .. } = &section;
        backends.insert(name.as_ref().unwrap().to_string(), servers.collect());
    }
    backends
}

/// What the API says.
async fn told(world: &World) -> Backends {
    let (status, _, body) = ask(world, "GET", "configuration/backends?full_section=true", None).await;
    assert_eq!(status, 200, "{body}");
    let backends: Json = serde_json::from_str(&body).unwrap();
    let one = |backend: &Json| {
        let servers = backend["servers"].as_object().into_iter().flatten().map(|(name, server)| {
            let (port, weight) = (server["port"].as_u64().unwrap(), server["weight"].as_u64().unwrap());
            (name.clone(), Server { port, weight, maintenance: server["maintenance"] == "enabled" })
        });
        (backend["name"].as_str().unwrap().to_owned(), servers.collect())
    };
    backends.as_array().into_iter().flatten().map(one).collect()
}

/// What HAProxy runs: its backends, and the servers that are in maintenance.
async fn running(world: &World) -> (BTreeMap<String, BTreeMap<String, (u64, u64)>>, Vec<(String, String)>) {
    let states = world.api.instance().worker().servers(None).await.unwrap().unwrap_or_default();
    let (mut backends, mut down) = (BTreeMap::<_, BTreeMap<_, _>>::new(), Vec::new());
    for state in states {
        let number = |name: &str| u64::try_from(state.number(name)).unwrap();
        let place = (state.backend.clone(), state.name.clone());
        down.extend((state.admin_state() == AdminState::Maintenance).then_some(place));
        let servers = backends.entry(state.backend.clone()).or_default();
        servers.insert(state.name.clone(), (number("srv_port"), number("srv_uweight")));
    }
    down.sort();
    (backends, down)
}

/// The entries of the map in HAProxy.
async fn running_map(world: &World) -> BTreeMap<String, String> {
    let file = world.folder.path().join("maps/routes.map");
    let show = CliRequest::new("show map").word(file.to_str().unwrap()).unwrap();
    let Reply::Done(shown) = world.api.instance().worker().ask(&show).await.unwrap() else { panic!() };
    let entries = shown.lines().filter_map(|line| line.split_once(' ')?.1.split_once(' '));
    entries.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

async fn version(world: &World) -> u64 {
    let (_, _, body) = ask(world, "GET", "configuration/version", None).await;
    body.trim().parse().unwrap()
}

/// Makes a call, which has to succeed.
async fn made(world: &World, call: &Call, query: &str) {
    let path = format!("{}?{query}", call.path);
    let (status, _, body) = ask(world, call.method, &path, call.body.clone()).await;
    assert!((200..300).contains(&status), "{} {path} {:?}: {status} {body}", call.method, call.body);
}

/// Makes one random step.
async fn step(world: &World, random: &mut fastrand::Rng, model: &mut Model) {
    let mut backends = model.backends.clone();
    match random.u32(0..16) {
        // A change by itself.
        0..6 => {
            let force = if random.u32(0..6) == 0 { "&force_reload=true" } else { "" };
            let call = call(random, &mut backends);
            made(world, &call, &format!("version={}{force}", version(world).await)).await;
            model.commit(backends);
        }
        // Some in a transaction, which may be given up.
        6..9 => {
            let (status, _, body) =
                ask(world, "POST", &format!("transactions?version={}", version(world).await), None).await;
            assert_eq!(status, 201, "{body}");
            let id = serde_json::from_str::<Json>(&body).unwrap()["id"].as_str().unwrap().to_owned();
            for _ in 0..random.u32(1..4) {
                let call = call(random, &mut backends);
                made(world, &call, &format!("transaction_id={id}")).await;
            }
            let ends = if random.u32(0..4) == 0 { "DELETE" } else { "PUT" };
            made(world, &Call { method: ends, path: format!("transactions/{id}"), body: None }, "").await;
            if ends == "PUT" {
                model.commit(backends);
            }
        }
        // One for a version that is gone.
        9 => {
            let call = call(random, &mut backends);
            let path = format!("{}?version={}", call.path, version(world).await + 1);
            assert_eq!(ask(world, call.method, &path, call.body).await.0, 409);
        }
        // The whole text.
        10 => {
            let text = fs::read_to_string(world.file()).unwrap();
            let text = edited(random, &text, &mut backends);
            let url = format!("/services/haproxy/configuration/raw?version={}", version(world).await);
            let push = request(world, "POST", &url).header("content-type", "text/plain").body(text);
            let (status, _, body) = answer(push).await;
            assert!(matches!(status, 201 | 202), "{status} {body}");
            model.commit(backends);
        }
        // An editor, who then has it loaded.
        11 => {
            let text = fs::read_to_string(world.file()).unwrap();
            fs::write(world.file(), edited(random, &text, &mut backends)).unwrap();
            made(world, &Call { method: "POST", path: "reloads".to_owned(), body: None }, "").await;
            model.commit(backends);
        }
        // An operator.
        12 | 13 => {
            let Some((backend, server)) = model.random_server(random) else { return };
            let is_down = random.bool();
            let body = Some(json!({ "admin_state": if is_down { "maint" } else { "ready" } }));
            let path = format!("runtime/backends/{backend}/servers/{server}");
            made(world, &Call { method: "PUT", path, body }, "").await;
            let place = (backend, server);
            model.down.retain(|held| *held != place);
            model.down.extend(is_down.then_some(place));
        }
        // Another map as a whole, or one more entry.
        14 => {
            model.map = (0..random.u32(1..5))
                .map(|key| (format!("/k{key}"), format!("v {}", random.u8(..))))
                .collect();
            let lines: Vec<String> =
                model.map.iter().map(|(key, value)| format!("{key} {value}\n")).collect();
            let text = lines.concat();
            let put = request(world, "PUT", "/services/haproxy/storage/maps/routes.map");
            let (status, _, body) = answer(put.header("content-type", "text/plain").body(text)).await;
            assert_eq!(status, 204, "{body}");
        }
        _ => {
            let (key, value) = (format!("/n{}", random.u32(0..1000)), format!("w{}", random.u8(..)));
            if model.map.contains_key(&key) {
                return;
            }
            let body = Some(json!({ "key": key, "value": value }));
            let path = "runtime/maps/routes.map/entries".to_owned();
            made(world, &Call { method: "POST", path, body }, "force_sync=true").await;
            model.map.insert(key, value);
        }
    }
}

#[tokio::test]
async fn after_random_calls_the_file_the_api_and_haproxy_agree() {
    let seed = std::env::var("SETPOINT_SEED").map_or(1, |seed| seed.parse().unwrap());
    println!("SETPOINT_SEED={seed}");
    for dialect in [Dialect::ALL[0], Dialect::ALL[2], Dialect::ALL[4]] {
        let plan = Plan { dialect, ..Plan::default() };
        let world = World::start(&plan, |folder, ports| {
            let folder = folder.display();
            format!(
                "# mine\nglobal\n  stats socket {folder}/run.sock level admin\ndefaults d\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n\
                 frontend f from d\n  bind {}\n  http-request set-header x %[path,map({folder}/maps/routes.map,-)]\n",
                ports[0].address()
            )
        });
        let world = need!(world.await);
        let mut random = fastrand::Rng::with_seed(seed);
        let map = [("/one", "be"), ("/two", "other")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let mut model = Model { map: BTreeMap::from(map), ..Model::default() };
        for number in 0..60 {
            let what = format!("{} step {number} seed {seed}", dialect.version());
            step(&world, &mut random, &mut model).await;
            world.settled().await;
            let text = fs::read(world.file()).unwrap();
            let shown = String::from_utf8_lossy(&text);
            assert!(shown.contains("# mine\n"), "{what}: {shown}");
            assert_eq!(read(&text, dialect), model.backends, "{what}: the file: {shown}");
            assert_eq!(told(&world).await, model.backends, "{what}: the API");
            let (backends, down) = running(&world).await;
            let wanted = model.backends.iter().filter(|(_, servers)| !servers.is_empty());
            let wanted = wanted.map(|(backend, servers)| {
                let servers =
                    servers.iter().map(|(name, server)| (name.clone(), (server.port, server.weight)));
                (backend.clone(), servers.collect())
            });
            assert_eq!(backends, wanted.collect(), "{what}: HAProxy");
            model.down.sort();
            assert_eq!(down, model.down, "{what}: states in HAProxy");
            let file = fs::read_to_string(world.folder.path().join("maps/routes.map")).unwrap();
            let entries = file.lines().filter_map(|line| line.split_once(' '));
            let file: BTreeMap<_, _> =
                entries.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
            assert_eq!(file, model.map, "{what}: the map");
            assert_eq!(running_map(&world).await, model.map, "{what}: the map in HAProxy");
        }
        world.end().await;
    }
}
