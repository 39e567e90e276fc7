//! A namespace, and operators as processes.

use std::collections::BTreeMap;
use std::process::Command;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use setpoint_composite::api::{Composite, ConditionType, condition, crd};
use setpoint_composite::publish::{INDEX_ANNOTATION, TRANSITIONS_ANNOTATION, payload_of};
use setpoint_consul::{self as consul, Read};
use setpoint_structure::{prefix, transform};
use setpoint_testutils::kubernetes::{History, TestNamespace};
use setpoint_testutils::{Consul, Kubernetes, Missing, Port, Process, Workdir, wait};

pub(crate) use setpoint_testutils::wait::LIMIT;
/// The name of the ConfigMap.
pub(crate) const NAME: &str = "composite-structure";
/// What must never go back in it.
pub(crate) const ORDERED: [&str; 2] = [INDEX_ANNOTATION, TRANSITIONS_ANNOTATION];
/// The name of the Lease.
pub(crate) const LEASE: &str = "setpoint-composite";

pub(crate) struct World {
    pub(crate) namespace: TestNamespace,
    pub(crate) client: Client,
    pub(crate) consul: &'static Consul,
    pub(crate) history: History,
    pub(crate) folder: Workdir,
}

/// An operator as a process.
pub(crate) struct Operator {
    pub(crate) process: Process,
    pub(crate) port: Port,
}

/// The command, with nothing of the environment that could be a parameter.
pub(crate) fn setpoint() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_setpoint"));
    command.env_clear().arg("composite");
    command
}

pub(crate) fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the object is valid")
}

impl World {
    pub(crate) async fn new() -> Result<Self, Missing> {
        let namespace = Kubernetes::namespace().await?;
        let consul = Consul::shared().await?;
        let client = namespace.client().await;
        let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
        let parameters = PatchParams::apply("test").force();
        definitions.patch(&crd().name_any(), &parameters, &Patch::Apply(crd())).await.unwrap();
        let composites: Api<Composite> = Api::namespaced(client.clone(), namespace.name());
        let served = async || composites.list(&ListParams::default()).await.ok().map(drop);
        wait::until("Composites to be served", LIMIT, served).await;
        let history = History::begin(&client, namespace.name()).await;
        Ok(Self { namespace, client, consul, history, folder: Workdir::new("composite") })
    }

    pub(crate) fn name(&self) -> &str {
        self.namespace.name()
    }

    /// Starts an operator with more arguments than those that every test needs.
    pub(crate) fn operate(&self, instance: &str, more: &[&str]) -> Operator {
        self.operate_on(self.consul, instance, more)
    }

    /// Starts an operator that uses another Consul than most tests.
    pub(crate) fn operate_on(&self, consul: &Consul, instance: &str, more: &[&str]) -> Operator {
        self.operate_with(consul, instance, more, &[])
    }

    /// Starts an operator with variables in its environment.
    pub(crate) fn operate_with(
        &self,
        consul: &Consul,
        instance: &str,
        more: &[&str],
        variables: &[(&str, &str)],
    ) -> Operator {
        let port = Port::lease();
        let mut command = setpoint();
        command.envs(variables.iter().copied());
        command.arg("run").arg("--kubeconfig").arg(self.namespace.kubernetes().kubeconfig_file());
        command.args(["--consul-url", &consul.url(), "--listen", &port.address().to_string()]);
        command.args(["--instance", instance, "--lease-namespace", self.name()]);
        command.args([
            "--retry-time",
            "300ms",
            "--on-success-delay-time",
            "20ms",
            "--removal-grace",
            "200ms",
        ]);
        command.args(["--apply-retry-time", "20ms", "--apply-retry-max-time", "200ms"]);
        command.args([
            "--lease-duration",
            "2s",
            "--lease-renew-deadline",
            "1300ms",
            "--lease-retry-time",
            "200ms",
        ]);
        command.args(more);
        let log = self.folder.path().join(format!("{instance}.log"));
        Operator { process: Process::start(instance, &mut command, &log), port }
    }

    /// Starts an operator for the namespace alone.
    pub(crate) fn operate_here(&self, instance: &str) -> Operator {
        self.operate(instance, &["--namespace", self.name()])
    }

    pub(crate) fn composites(&self) -> Api<Composite> {
        Api::namespaced(self.client.clone(), self.name())
    }

    pub(crate) async fn declare(&self, namespace: &str, name: &str, spec: Value) -> Composite {
        let composites: Api<Composite> = Api::namespaced(self.client.clone(), namespace);
        let composite = from(json!({
            "apiVersion": "core.netcracker.com/v1", "kind": "Composite", "subKind": "CompositeStructure",
            "metadata": { "name": name }, "spec": spec,
        }));
        composites.create(&PostParams::default(), &composite).await.unwrap()
    }

    pub(crate) async fn make_namespace(&self, name: &str) {
        let namespace: Namespace = from(json!({ "metadata": { "name": name } }));
        Api::<Namespace>::all(self.client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    }

    pub(crate) async fn config_map(&self, namespace: &str) -> Option<ConfigMap> {
        Api::<ConfigMap>::namespaced(self.client.clone(), namespace).get_opt(NAME).await.unwrap()
    }

    /// All keys of a composite's structure in Consul.
    pub(crate) async fn structure(&self, id: &str) -> BTreeMap<String, String> {
        let client = consul::Client::new(consul::Settings::new(self.consul.url())).unwrap();
        let listed = client.list(&prefix(id), Read::Consistent).await.unwrap();
        listed.entries.into_iter().map(|entry| (entry.key.clone(), entry.text())).collect()
    }

    /// What Consul says, as it should be published.
    pub(crate) async fn expected(&self, id: &str) -> String {
        let client = consul::Client::new(consul::Settings::new(self.consul.url())).unwrap();
        let listed = client.list(&prefix(id), Read::Consistent).await.unwrap();
        let (payload, issues) = transform(&listed.entries, "OnPrem", None);
        assert_eq!(issues, []);
        payload.to_json()
    }

    /// Waits until the ConfigMap equals what Consul says.
    pub(crate) async fn agrees(&self, id: &str) -> ConfigMap {
        let mut last = (None, String::new());
        let found = wait::within(LIMIT, async || {
            let map = self.config_map(self.name()).await?;
            last = (payload_of(&map).map(str::to_owned), self.expected(id).await);
            (last.0.as_ref() == Some(&last.1)).then_some(map)
        });
        found.await.unwrap_or_else(|| panic!("the ConfigMap never was what Consul says: {last:?}"))
    }

    /// Waits until the Composite `composite` is ready.
    pub(crate) async fn ready(&self, operator: &Operator) {
        let ready = async || {
            let status = self.composites().get("composite").await.ok()?.status?;
            let ready = condition(&status.conditions, ConditionType::Ready)?;
            (ready.status == "True").then_some(())
        };
        operator.process.until("the Composite is ready", ready).await;
    }

    /// Waits until an instance leads; gives its transition count.
    pub(crate) async fn led_by(&self, instance: &str) -> i32 {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), self.name());
        let found = async || {
            let spec = leases.get(LEASE).await.ok()?.spec?;
            let holder = spec.holder_identity.as_deref()?.split('_').next()?;
            (holder == instance).then_some(spec.lease_transitions.unwrap_or_default())
        };
        wait::until(&format!("{instance} to lead"), LIMIT, found).await
    }
}
