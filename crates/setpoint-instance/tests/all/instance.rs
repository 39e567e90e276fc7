//! A configuration in the hands of one process: commits, reloads, and what others do meanwhile.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use setpoint_haproxy::edit::{ChildKey, EditError, SectionKey};
use setpoint_haproxy::model::{Object, ObjectKind, SectionModel};
use setpoint_haproxy::text::SectionKind;
use setpoint_instance::cli::Request;
use setpoint_instance::configuration::Configuration;
use setpoint_instance::instance::{
    Applied, CommitError, Committed, Instance, OpenError, ReloadChoice, ReloadStatus, Settings,
    TransactionStatus,
};
use setpoint_instance::process::Launched;
use setpoint_instance::reload::processes;
use setpoint_instance::runtime::Reply;
use setpoint_testutils::{Version, http, need, wait};

use crate::world::{WITHIN, World};

fn model(version: Version) -> setpoint_haproxy::model::Version {
    version.part().trim_start_matches("haproxy-").parse().unwrap()
}

impl World {
    /// A configuration with a backend of one server, and a comment that has to stay.
    pub(crate) fn write_backend(&self) {
        let text = format!(
            "# mine\n{}\nbackend web # the shop\n  balance roundrobin\n  server s1 127.0.0.1:9 weight 10 # old\n",
            self.text("one")
        );
        fs::write(self.file(), text).unwrap();
    }

    pub(crate) fn settings(&self, version: Version) -> Settings {
        Settings {
            master_socket: self.folder.path().join("master.sock"),
            reload_delay: Duration::from_millis(50),
            reload_within: WITHIN,
            check_within: WITHIN,
            ..Settings::new(&self.program, self.file(), model(version))
        }
    }

    fn read(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }
}

/// A HAProxy and an instance around it, which does what is due.
pub(crate) struct Running {
    pub(crate) world: World,
    haproxy: Launched,
    pub(crate) instance: Instance,
    task: tokio::task::JoinHandle<()>,
}

impl Running {
    pub(crate) async fn start(version: Version) -> Result<Self, setpoint_testutils::Missing> {
        let world = World::new(version)?;
        world.write_backend();
        let settings = world.settings(version);
        Ok(Self::start_on(world, settings).await)
    }

    /// Starts HAProxy on what is written, and an instance with settings.
    pub(crate) async fn start_on(world: World, settings: Settings) -> Self {
        let haproxy = world.launch().start().await.unwrap();
        Self::around(world, settings, haproxy)
    }

    /// An instance around a HAProxy that runs.
    fn around(world: World, settings: Settings, haproxy: Launched) -> Self {
        let instance = Instance::open(settings).unwrap();
        let task = tokio::spawn({
            let instance = instance.clone();
            async move { instance.run().await }
        });
        Self { world, haproxy, instance, task }
    }

    /// Ends the instance as a kill would, and starts another one around the same HAProxy.
    pub(crate) async fn again(self, settings: Settings) -> Self {
        let Self { world, haproxy, instance, task } = self;
        task.abort();
        let _ = task.await;
        drop(instance);
        Self::around(world, settings, haproxy)
    }

    /// Ends what does what is due, and leaves the instance.
    pub(crate) async fn without_tasks(mut self) -> Self {
        self.task.abort();
        let _ = std::mem::replace(&mut self.task, tokio::spawn(async {})).await;
        self
    }

    pub(crate) async fn worker(&self) -> u32 {
        processes(&self.world.master()).await.unwrap().serving().unwrap().pid
    }

    pub(crate) async fn settled(&self) {
        assert!(self.instance.settled(WITHIN).await);
    }

    pub(crate) async fn stop(self) {
        self.task.abort();
        self.haproxy.stop(Duration::ZERO).await.unwrap();
    }
}

pub(crate) fn web() -> SectionKey {
    SectionKey::named(SectionKind::Backend, "web")
}

fn server(configuration: &Configuration, json: &Json) -> Object {
    Object::from_json(ObjectKind::Server, json, configuration.context()).unwrap().0
}

/// What replaces a server.
fn replace(name: &str, json: Json) -> impl FnOnce(&mut Configuration) -> Result<(), EditError> {
    move |configuration| {
        let object = server(configuration, &json);
        configuration.editor(&web()).replace(&web(), &ChildKey::Name(name.into()), &object)
    }
}

pub(crate) fn weight(weight: u32) -> impl FnOnce(&mut Configuration) -> Result<(), EditError> {
    replace(
        "s1",
        json!({ "name": "s1", "address": "127.0.0.1", "port": 9, "weight": weight, "metadata": { "comment": "old" } }),
    )
}

/// What creates a backend.
pub(crate) fn backend(json: Json) -> impl FnOnce(&mut Configuration) -> Result<(), EditError> {
    move |configuration| {
        let (section, _) =
            SectionModel::from_json(ObjectKind::Backend, &json, configuration.context()).unwrap();
        configuration.create_section(&section).map(|_| ())
    }
}

pub(crate) fn backend_with(name: &str) -> impl FnOnce(&mut Configuration) -> Result<(), EditError> {
    backend(json!({ "name": name }))
}

pub(crate) async fn change(
    instance: &Instance,
    work: impl FnOnce(&mut Configuration) -> Result<(), EditError>,
) -> Result<Committed, CommitError> {
    let version = instance.version();
    instance.change(version, ReloadChoice::Delayed, work).await.map(|done| done.unwrap().1)
}

#[tokio::test]
async fn a_weight_is_told_at_runtime_and_the_rest_of_the_file_stays_byte_for_byte() {
    for version in Version::ALL {
        let running = need!(Running::start(version).await);
        let before = (running.worker().await, running.world.read());
        let done = change(&running.instance, weight(20)).await.unwrap();
        assert_eq!(done, Committed { version: 2, applied: Applied::Runtime, reason: None }, "{version:?}");
        let servers = running.instance.worker().servers(Some("web")).await.unwrap().unwrap();
        assert_eq!(servers[0].weight(), 20, "{version:?}");
        let expected = format!("# _version=2\n{}", before.1.replace("weight 10", "weight 20"));
        assert_eq!(running.world.read(), expected);
        running.settled().await;
        assert_eq!(running.worker().await, before.0, "{version:?}: no reload");
        running.stop().await;
    }
}

#[tokio::test]
async fn limits_and_ports_of_checks_and_agents_are_told_at_runtime() {
    for version in Version::ALL {
        let world = need!(World::new(version));
        let port = world.port.address();
        let text = world
            .text("one")
            .replace(&format!("bind {port}"), &format!("bind {port}\n  backlog 9\n  maxconn 5"));
        let server =
            "server s1 127.0.0.1:9 check port 81 agent-check agent-port 82 agent-addr 127.0.0.1 agent-send a";
        let limited = "server s2 127.0.0.1:9";
        fs::write(
            world.file(),
            format!("{text}\nbackend web\n  balance roundrobin\n  {server}\n  {limited}\n"),
        )
        .unwrap();
        let settings = world.settings(version);
        let running = Running::start_on(world, settings).await;
        let worker = running.worker().await;
        let server = json!({
            "name": "s1", "address": "127.0.0.1", "port": 9, "check": "enabled", "health_check_port": 91,
            "agent-check": "enabled", "agent-port": 92, "agent-addr": "127.0.0.2", "agent-send": "two words",
        });
        let limited = json!({"name": "s2", "address": "127.0.0.1", "port": 9, "maxconn": 7});
        for (name, server) in [("s1", server.clone()), ("s2", limited)] {
            let done = change(&running.instance, replace(name, server)).await.unwrap();
            assert_eq!((done.applied, done.reason), (Applied::Runtime, None), "{version:?}: {name}");
        }
        let limit = |configuration: &mut Configuration| {
            let main = SectionKey::named(SectionKind::Frontend, "main");
            let mut object = configuration.editor(&main).section(&main)?.object.clone().unwrap();
            let field = setpoint_haproxy::table::directives().field(object.kind, "maxconn").unwrap();
            object.fields.set(field, setpoint_haproxy::model::Value::Int(6));
            configuration.editor(&main).replace_settings(&main, &object)
        };
        let done = change(&running.instance, limit).await.unwrap();
        assert_eq!((done.applied, done.reason), (Applied::Runtime, None), "{version:?}");
        running.settled().await;
        assert_eq!(running.worker().await, worker, "{version:?}: no reload");
        let states = running.instance.worker().servers(Some("web")).await.unwrap().unwrap();
        let columns =
            ["srv_check_port", "srv_agent_addr", "srv_agent_port"].map(|column| states[0].column(column));
        assert_eq!(columns, ["91", "127.0.0.2", "92"], "{version:?}");
        let shown = running.instance.worker().ask(&Request::new("show stat")).await.unwrap();
        let Reply::Done(shown) = shown else { panic!("{shown:?}") };
        let most = |line: &str| {
            shown.lines().find(|shown| shown.starts_with(line)).and_then(|line| line.split(',').nth(6))
        };
        assert_eq!((most("web,s2,"), most("main,FRONTEND,")), (Some("7"), Some("6")), "{version:?}");
        // An agent would take a limit back, and what HAProxy refuses comes with a reload too.
        let refused = Request::new("disable health web/s1");
        assert!(matches!(running.instance.worker().tell(&refused).await.unwrap(), Reply::Done(_)));
        let mut server = server;
        for (changed, value, why) in
            [("health_check_port", 99, "not enabled"), ("maxconn", 7, "its agent sets `maxconn`")]
        {
            server[changed] = json!(value);
            let done = change(&running.instance, replace("s1", server.clone())).await.unwrap();
            assert!(matches!(done.applied, Applied::Ordered(_)), "{version:?}: {done:?}");
            assert!(done.reason.as_ref().is_some_and(|reason| reason.contains(why)), "{version:?}: {done:?}");
        }
        running.settled().await;
        assert_ne!(running.worker().await, worker, "{version:?}");
        running.stop().await;
    }
}

#[tokio::test]
async fn servers_come_and_go_at_runtime() {
    for version in Version::ALL {
        let running = need!(Running::start(version).await);
        let worker = running.worker().await;
        let add = |configuration: &mut Configuration| {
            let json =
                json!({ "name": "s2", "address": "127.0.0.1", "port": 10, "check": "enabled", "weight": 7 });
            let object = server(configuration, &json);
            configuration.editor(&web()).create(&web(), &object, None)
        };
        let done = change(&running.instance, add).await.unwrap();
        assert_eq!(done.applied, Applied::Runtime, "{version:?}");
        let states = running.instance.worker().servers(Some("web")).await.unwrap().unwrap();
        let s2 = states.iter().find(|state| state.name == "s2").unwrap();
        assert_eq!((s2.weight(), s2.forced_state()), (7, None), "{version:?}: it is ready");
        let remove = |configuration: &mut Configuration| {
            configuration.editor(&web()).delete(&web(), ObjectKind::Server, &ChildKey::Name("s1".into()))
        };
        let done = change(&running.instance, remove).await.unwrap();
        assert_eq!(done.applied, Applied::Runtime, "{version:?}");
        running.settled().await;
        let states = running.instance.worker().servers(Some("web")).await.unwrap().unwrap();
        assert_eq!(states.iter().map(|state| state.name.as_str()).collect::<Vec<_>>(), ["s2"], "{version:?}");
        assert_eq!(running.worker().await, worker, "{version:?}: no reload");
        assert!(running.instance.differences().await.unwrap().is_empty());
        running.stop().await;
    }
}

#[tokio::test]
async fn commits_that_need_a_reload_share_one() {
    const DELAY: Duration = Duration::from_millis(500);
    for version in Version::ALL {
        let world = need!(World::new(version));
        world.write_backend();
        let settings = Settings { reload_delay: DELAY, ..world.settings(version) };
        let running = Running::start_on(world, settings).await;
        let reloads = processes(&running.world.master()).await.unwrap().master.reloads;
        let (mut ids, begun) = (Vec::new(), Instant::now());
        for name in ["a", "b", "c"] {
            let done = change(&running.instance, backend(json!({ "name": name }))).await.unwrap();
            let Applied::Ordered(id) = done.applied else { panic!("{version:?}: {done:?}") };
            ids.push(id);
        }
        let took = begun.elapsed();
        running.settled().await;
        ids.dedup();
        let last = running.instance.reload_by_id(ids.last().unwrap()).unwrap();
        assert_eq!(last.status, ReloadStatus::Succeeded, "{version:?}: {last:?}");
        let now = processes(&running.world.master()).await.unwrap().master.reloads;
        assert_eq!(usize::try_from(now - reloads).unwrap(), ids.len(), "{version:?}: {ids:?}");
        // On a busy machine they may follow each other too slowly for that.
        assert!(ids.len() == 1 || took >= DELAY, "{version:?}: {ids:?} in {took:?}");
        running.stop().await;
    }
}

#[tokio::test]
async fn what_haproxy_refuses_is_not_written() {
    let running = need!(Running::start(Version::V3_4).await);
    let before = running.world.read();
    let bad = backend(json!({ "name": "b", "external_check": "enabled" }));
    let error = change(&running.instance, bad).await.unwrap_err();
    let CommitError::Refused { messages, id } = error else { panic!("{error}") };
    assert!(messages.contains("external-check"), "{messages}");
    assert_eq!(running.world.read(), before);
    assert_eq!(running.instance.version(), 1);
    assert_eq!(running.instance.transaction(&id).unwrap().status, TransactionStatus::Failed);
    running.stop().await;
}

#[tokio::test]
async fn a_failed_reload_restores_the_last_good_text_and_says_so() {
    for version in Version::ALL {
        let running = need!(Running::start(version).await);
        let good = running.world.read();
        // A check does not bind: only a reload finds that the address is none of this machine.
        let text = format!("{good}frontend bad\n  bind 192.0.2.1:80\n");
        let error = running.instance.push(text.as_bytes(), Some(1), ReloadChoice::Now).await.unwrap_err();
        assert!(matches!(error, CommitError::Reload(_)), "{version:?}: {error}");
        assert_eq!(running.world.read(), format!("# _version=3\n{good}"), "{version:?}");
        assert_eq!(running.instance.version(), 3, "{version:?}");
        // What was refused may be somebody's work of a day.
        let refused = running.instance.settings().folder.join("refused/2.cfg");
        assert_eq!(fs::read_to_string(refused).unwrap(), format!("# _version=2\n{text}"), "{version:?}");
        // A worker that fails may have taken a connection before it ended.
        let url = running.world.port.http();
        let answer = wait::until("an answer", WITHIN, async || http::get(&url).await).await;
        assert_eq!(answer, "one", "{version:?}");
        running.stop().await;
    }
}

#[tokio::test]
async fn a_file_that_was_edited_by_hand_is_seen_and_not_overwritten() {
    let running = need!(Running::start(Version::V3_4).await);
    let transaction = running.instance.begin(1).unwrap();
    let edited = format!("{}\nbackend byhand\n", running.world.read());
    fs::write(running.world.file(), &edited).unwrap();
    let error = running.instance.commit(&transaction.id, ReloadChoice::Delayed).await.unwrap_err();
    assert!(matches!(error, CommitError::Stale { current: 2, given: 1 }), "{error}");
    assert_eq!(running.world.read(), edited);
    assert_eq!(running.instance.version(), 2);
    change(&running.instance, weight(30)).await.unwrap();
    let now = running.world.read();
    assert!(
        now.contains("backend byhand") && now.contains("weight 30") && now.contains("_version=3"),
        "{now}"
    );
    running.stop().await;
}

#[tokio::test]
async fn what_an_operator_set_at_runtime_survives_a_reload() {
    for version in Version::ALL {
        let running = need!(Running::start(version).await);
        let worker = running.instance.worker();
        for (command, word) in [("weight", "3"), ("state", "drain")] {
            let request = setpoint_instance::cli::Request::new("set server web/s1");
            worker.tell(&request.word(command).unwrap().word(word).unwrap()).await.unwrap();
        }
        running.instance.reload().await.unwrap();
        let states = worker.servers(Some("web")).await.unwrap().unwrap();
        let state = (states[0].weight(), states[0].admin_state().word());
        assert_eq!(state, (3, "drain"), "{version:?}");
        running.stop().await;
    }
}

#[tokio::test]
async fn what_an_operator_set_in_a_listen_section_survives_a_reload() {
    for version in Version::ALL {
        let world = need!(World::new(version));
        let port = setpoint_testutils::Port::lease();
        let listen = format!("listen shop\n  bind {}\n  server s1 127.0.0.1:9 weight 10\n", port.address());
        fs::write(world.file(), format!("{}{listen}", world.text("one"))).unwrap();
        let settings = world.settings(version);
        let running = Running::start_on(world, settings).await;
        let worker = running.instance.worker();
        for (command, word) in [("weight", "3"), ("state", "drain")] {
            let request = setpoint_instance::cli::Request::new("set server shop/s1");
            worker.tell(&request.word(command).unwrap().word(word).unwrap()).await.unwrap();
        }
        let differences = running.instance.differences().await.unwrap();
        assert_eq!(differences, ["server shop/s1 has weight 3 and not 10"], "{version:?}");
        running.instance.reload().await.unwrap();
        let states = worker.servers(Some("shop")).await.unwrap().unwrap();
        let state = (states[0].weight(), states[0].admin_state().word());
        assert_eq!(state, (3, "drain"), "{version:?}");
        running.stop().await;
    }
}

#[tokio::test]
async fn a_reload_that_waited_when_the_program_ended_is_made_by_the_next_one_under_its_name() {
    let running = need!(Running::start(Version::V3_4).await);
    let settings =
        Settings { reload_delay: Duration::from_hours(1), ..running.world.settings(Version::V3_4) };
    let running = running.again(settings.clone()).await;
    let done = change(&running.instance, backend(json!({ "name": "b" }))).await.unwrap();
    let Applied::Ordered(id) = done.applied else { panic!("{done:?}") };
    let running = running.again(settings).await;
    running.settled().await;
    assert_eq!(running.instance.reload_by_id(&id).map(|reload| reload.status), Some(ReloadStatus::Succeeded));
    let done = change(&running.instance, backend(json!({ "name": "c" }))).await.unwrap();
    assert!(matches!(&done.applied, Applied::Ordered(next) if *next != id), "{done:?}");
    running.stop().await;
}

#[tokio::test]
async fn a_second_process_is_told_who_has_the_configuration() {
    let world = need!(World::new(Version::V3_4));
    let first = Instance::open(world.settings(Version::V3_4)).unwrap();
    let error = Instance::open(world.settings(Version::V3_4)).unwrap_err();
    assert!(matches!(error, OpenError::Lock(_)) && error.to_string().contains("process"), "{error}");
    drop(first);
    Instance::open(world.settings(Version::V3_4)).unwrap();
}

#[tokio::test]
async fn a_change_while_nobody_looked_is_another_version() {
    let running = need!(Running::start(Version::V3_4).await);
    change(&running.instance, weight(20)).await.unwrap();
    running.settled().await;
    let settings = running.world.settings(Version::V3_4);
    let running = running.again(settings.clone()).await;
    assert_eq!(running.instance.version(), 2);
    let Running { world, haproxy, instance, task } = running;
    task.abort();
    let _ = task.await;
    drop(instance);
    fs::write(world.file(), format!("{}# by hand\n", world.read())).unwrap();
    assert_eq!(Instance::open(settings).unwrap().version(), 3);
    haproxy.stop(Duration::ZERO).await.unwrap();
}

#[tokio::test]
async fn a_transaction_from_before_versions_are_counted_anew_is_outdated() {
    let running = need!(Running::start(Version::V3_4).await);
    for weight_of in [20, 30] {
        change(&running.instance, weight(weight_of)).await.unwrap();
    }
    let old = running.instance.begin(3).unwrap();
    let text = running.world.read();
    running.instance.push(text.as_bytes(), None, ReloadChoice::Delayed).await.unwrap();
    for weight_of in [40, 50] {
        change(&running.instance, weight(weight_of)).await.unwrap();
    }
    assert_eq!(running.instance.version(), 3);
    let error = running.instance.commit(&old.id, ReloadChoice::Delayed).await.unwrap_err();
    assert!(matches!(error, CommitError::Ended { .. }), "{error}");
    assert!(running.world.read().contains("weight 50"));
    running.stop().await;
}
