//! A namespace with an operator at work in it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use setpoint_composite::api::{Composite, ConditionType, condition, crd};
use setpoint_composite::operator::Metrics;
use setpoint_composite::operator::Operator;
use setpoint_composite::publish::{INDEX_ANNOTATION, TRANSITIONS_ANNOTATION, Target, payload_of};
use setpoint_composite::settings::{Namespaces, Settings};
use setpoint_consul as consul;
use setpoint_kube::client::Clients;
use setpoint_testutils::kubernetes::{History, TestNamespace};
use setpoint_testutils::{Consul, Kubernetes, Missing, Proxy, wait};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) use setpoint_testutils::wait::LIMIT;
/// The name of the ConfigMap.
pub(crate) const NAME: &str = "composite-structure";
/// What must never go back in it: an earlier state of Consul, or an earlier leader, would be a stale write.
pub(crate) const ORDERED: [&str; 2] = [INDEX_ANNOTATION, TRANSITIONS_ANNOTATION];

/// A namespace of one test's own, with a Consul that it shares.
pub(crate) struct World {
    pub(crate) namespace: TestNamespace,
    pub(crate) client: Client,
    pub(crate) consul: &'static Consul,
    pub(crate) history: History,
}

/// An operator at work. It ends when it is dropped.
pub(crate) struct Running {
    cancel: CancellationToken,
    task: JoinHandle<()>,
    pub(crate) metrics: Arc<Metrics>,
}

impl Running {
    pub(crate) fn start(clients: impl Into<Clients>, consul: consul::Client, settings: Settings) -> Self {
        let operator = Operator::new(clients, consul, settings).unwrap();
        let (cancel, metrics) = (CancellationToken::new(), operator.metrics());
        let task = tokio::spawn(operator.run(cancel.clone()));
        Self { cancel, task, metrics }
    }

    /// Lets it end by itself.
    pub(crate) async fn stop(mut self) {
        self.cancel.cancel();
        tokio::time::timeout(LIMIT, &mut self.task).await.expect("it ends when it is asked to").unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Settings with which nothing is waited for, except what only an event can bring about.
pub(crate) fn fast(namespaces: &[&str]) -> Settings {
    Settings {
        namespaces: Namespaces::Only(
            namespaces.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(),
        ),
        check_interval: Duration::from_mins(10),
        retry_time: Duration::from_millis(300),
        on_success_delay_time: Duration::from_millis(20),
        wait_time: Duration::from_secs(30),
        removal_grace: Duration::from_millis(200),
        apply_retry_time: Duration::from_millis(20),
        apply_retry_max_time: Duration::from_millis(200),
        ..Settings::default()
    }
}

/// How often the operator has looked at its own keys, through a proxy before Consul.
pub(crate) fn looks(consul: &Proxy) -> usize {
    consul.requests().iter().filter(|request| request.contains("/v1/txn?consistent")).count()
}

/// Waits until the operator has looked at its own keys again, and then not for so long: what was just written is looked at once more
/// without being asked for.
pub(crate) async fn rests(consul: &Proxy, quiet: Duration) {
    let (mut seen, mut since) = (0, Instant::now());
    let rests = async || {
        if looks(consul) != seen {
            (seen, since) = (looks(consul), Instant::now());
        }
        (seen >= 2 && since.elapsed() >= quiet).then_some(())
    };
    wait::until("it to rest", LIMIT, rests).await;
}

/// A proxy before a Consul, and where it is.
pub(crate) async fn before_consul(consul: &Consul) -> (Proxy, String) {
    let proxy = Proxy::start(consul.url().trim_start_matches("http://").parse().unwrap()).await;
    let url = format!("http://{}", proxy.address());
    (proxy, url)
}

/// Waits until Consul has been asked so many times more, through a proxy, for what is below a prefix. Whoever asks once more has
/// taken in the answer before.
pub(crate) async fn asked_again(consul: &Proxy, prefix: &str, times: usize) {
    let start = format!("/v1/kv/{prefix}");
    let count = || consul.requests().iter().filter(|request| request.contains(&start)).count();
    let before = count();
    let asked = async || (count() >= before + times).then_some(());
    wait::until(&format!("{prefix} to be asked for {times} times"), LIMIT, asked).await;
}

/// What is logged on this thread: tests run all their tasks on one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Collects what is logged until the guard is dropped.
    pub(crate) fn collect(&self) -> tracing::subscriber::DefaultGuard {
        let log = self.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || log.clone()).finish();
        tracing::subscriber::set_default(subscriber)
    }

    /// Waits for a line that contains a text.
    pub(crate) async fn line_with(&self, text: &str) -> String {
        let logged = async || {
            let all = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
            all.lines().find(|line| line.contains(text)).map(str::to_owned)
        };
        wait::until(&format!("{text:?} to be logged"), LIMIT, logged).await
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes the resource known to an API server.
pub(crate) async fn install(client: &Client) {
    install_definition(client, serde_json::to_value(crd()).unwrap()).await;
}

pub(crate) async fn install_definition(client: &Client, definition: Value) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = crd().metadata.name.unwrap();
    definitions.patch(&name, &PatchParams::apply("test"), &Patch::Apply(definition)).await.unwrap();
    let composites: Api<Composite> = Api::namespaced(client.clone(), "default");
    let served = async || composites.list(&kube::api::ListParams::default()).await.ok().map(drop);
    wait::until("Composites to be served", LIMIT, served).await;
}

/// A new namespace, by name.
pub(crate) async fn make_namespace(client: &Client, name: &str) {
    let namespace: Namespace = from(json!({ "metadata": { "name": name } }));
    Api::<Namespace>::all(client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
}

pub(crate) fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the object is valid")
}

impl World {
    pub(crate) async fn new() -> Result<Self, Missing> {
        static INSTALLED: OnceCell<()> = OnceCell::const_new();
        let namespace = Kubernetes::namespace().await?;
        let consul = Consul::shared().await?;
        let client = namespace.client().await;
        INSTALLED.get_or_init(async || install(&client).await).await;
        let history = History::begin(&client, namespace.name()).await;
        Ok(Self { namespace, client, consul, history })
    }

    pub(crate) fn name(&self) -> &str {
        self.namespace.name()
    }

    pub(crate) fn settings(&self) -> Settings {
        fast(&[self.name()])
    }

    pub(crate) fn consul_client(&self) -> consul::Client {
        consul::Client::new(consul::Settings::new(self.consul.url())).unwrap()
    }

    /// Starts an operator for the namespace.
    pub(crate) fn operate(&self) -> Running {
        self.operate_with(self.settings())
    }

    pub(crate) fn operate_with(&self, settings: Settings) -> Running {
        Running::start(self.client.clone(), self.consul_client(), settings)
    }

    pub(crate) fn composites(&self) -> Api<Composite> {
        Api::namespaced(self.client.clone(), self.name())
    }

    pub(crate) fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), self.name())
    }

    /// Makes a Composite.
    pub(crate) async fn declare(&self, name: &str, spec: Value) -> Composite {
        self.try_declare(name, spec).await.unwrap()
    }

    pub(crate) async fn try_declare(&self, name: &str, spec: Value) -> kube::Result<Composite> {
        let composite = json!({
            "apiVersion": "core.netcracker.com/v1",
            "kind": "Composite",
            "subKind": "CompositeStructure",
            "metadata": { "name": name },
            "spec": spec,
        });
        let raw = serde_json::to_vec(&composite).unwrap();
        let url = format!("/apis/core.netcracker.com/v1/namespaces/{}/composites", self.name());
        self.client.request(http::Request::post(url).body(raw).unwrap()).await
    }

    /// Changes what a Composite says.
    pub(crate) async fn change(&self, name: &str, spec: Value) {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.composites().patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    pub(crate) async fn delete(&self, name: &str) {
        self.composites().delete(name, &DeleteParams::default()).await.unwrap();
    }

    /// Waits until a Composite is gone.
    pub(crate) async fn gone(&self, name: &str) {
        let gone = async || self.composites().get_opt(name).await.ok()?.is_none().then_some(());
        wait::until("the Composite to go", LIMIT, gone).await;
    }

    /// The ConfigMap that is published here.
    pub(crate) fn target(&self) -> Target {
        Target {
            namespace: self.name().to_owned(),
            name: NAME.to_owned(),
            managed_by: "core-operator".to_owned(),
            part_of: "Cloud-Core".to_owned(),
        }
    }

    /// Waits until a condition of a Composite has a status and a reason.
    pub(crate) async fn condition(
        &self,
        name: &str,
        kind: ConditionType,
        status: &str,
        reason: &str,
    ) -> Condition {
        let mut last = None;
        let found = wait::within(LIMIT, async || {
            let composite = self.composites().get(name).await.ok()?;
            let conditions = composite.status.unwrap_or_default().conditions;
            last = condition(&conditions, kind).cloned();
            last.clone().filter(|found| found.status == status && found.reason == reason)
        });
        found.await.unwrap_or_else(|| panic!("{kind:?} never was {status} for {reason}, but {last:?}"))
    }

    /// Waits until a Composite is accepted, written and published.
    pub(crate) async fn settled(&self, name: &str) -> Composite {
        for (kind, reason) in [
            (ConditionType::Accepted, "Valid"),
            (ConditionType::Synced, "Written"),
            (ConditionType::Published, "Applied"),
        ] {
            self.condition(name, kind, "True", reason).await;
        }
        self.composites().get(name).await.unwrap()
    }

    /// The ConfigMap.
    pub(crate) async fn config_map(&self) -> Option<ConfigMap> {
        self.config_maps().get_opt(NAME).await.unwrap()
    }

    /// Waits until the ConfigMap holds this structure.
    pub(crate) async fn publishes(&self, composite: Value) -> ConfigMap {
        let expected = json!({ "cloudProvider": "OnPrem", "composite": composite });
        let mut last = None;
        let found = wait::within(LIMIT, async || {
            let map = self.config_map().await?;
            last = payload_of(&map).map(str::to_owned);
            let payload: Value = serde_json::from_str(last.as_deref()?).ok()?;
            (payload == expected).then_some(map)
        });
        found.await.unwrap_or_else(|| panic!("{expected} was never published, but {last:?}"))
    }

    /// Checks that every version of the ConfigMap is a state that Consul was in, in the order in which it was in them.
    pub(crate) async fn went_through(&self, states: &[Value]) {
        let versions = self.history.versions(NAME).await;
        let mut left = states.iter();
        let mut now = None;
        for map in &versions {
            let payload: Value = serde_json::from_str(payload_of(map).unwrap()).unwrap();
            let published = &payload["composite"];
            if now != Some(published) {
                now = left.find(|state| *state == published);
            }
            assert!(now == Some(published), "{published} is none of the states that were left: {states:?}");
        }
    }

    /// Waits until the ConfigMap satisfies something.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&ConfigMap) -> bool) -> ConfigMap {
        wait::until(what, LIMIT, async || self.config_map().await.filter(&holds)).await
    }

    pub(crate) async fn patch_map(&self, patch: Value) -> ConfigMap {
        let parameters = PatchParams { field_manager: Some("somebody".to_owned()), ..PatchParams::default() };
        self.config_maps().patch(NAME, &parameters, &Patch::Merge(patch)).await.unwrap()
    }

    /// All keys in Consul below a prefix, with their values.
    pub(crate) async fn keys(&self, prefix: &str) -> BTreeMap<String, String> {
        let listed = self.consul_client().list(prefix, consul::Read::Consistent).await.unwrap();
        listed.entries.into_iter().map(|entry| (entry.key.clone(), entry.text())).collect()
    }

    /// The structure in Consul, with keys from the namespace on.
    pub(crate) async fn structure(&self, id: &str) -> BTreeMap<String, String> {
        let prefix = setpoint_structure::prefix(id);
        let all = self.keys(&prefix).await;
        all.into_iter().map(|(key, value)| (key.strip_prefix(&prefix).unwrap().to_owned(), value)).collect()
    }

    pub(crate) async fn structure_is(&self, id: &str, expected: &[(&str, &str)]) {
        let expected: BTreeMap<_, _> =
            expected.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let mut last = BTreeMap::new();
        let found = wait::within(LIMIT, async || {
            last = self.structure(id).await;
            (last == expected).then_some(())
        });
        found.await.unwrap_or_else(|| panic!("the structure never was {expected:?}, but {last:?}"));
    }

    /// Waits for an Event with a reason; returns its note.
    pub(crate) async fn event(&self, reason: &str) -> String {
        let events: Api<k8s_openapi::api::events::v1::Event> =
            Api::namespaced(self.client.clone(), self.name());
        wait::until(&format!("an Event {reason}"), LIMIT, async || {
            let all = events.list(&kube::api::ListParams::default()).await.ok()?;
            let found = all.items.into_iter().find(|event| event.reason.as_deref() == Some(reason))?;
            Some(found.note.unwrap_or_default())
        })
        .await
    }
}
