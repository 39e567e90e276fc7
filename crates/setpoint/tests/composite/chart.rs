//! The Helm chart: as Helm makes manifests of it, installed, upgraded and uninstalled.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use setpoint_composite::install::NAME;
use setpoint_testutils::helm::{self, Helm};
use setpoint_testutils::{Missing, Port, Process, need, wait};
use tokio::task::spawn_blocking;

use crate::manifests::{deploy, is_taken, printed};
use crate::world::{LIMIT, World, setpoint};

/// What only Helm's objects have: who installed them, and when an image is pulled.
const OF_HELM: [&str; 4] =
    ["app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "helm.sh/chart", "imagePullPolicy"];

fn rendered(release: &str, namespace: &str, values: &Value) -> Result<Result<String, String>, Missing> {
    helm::render(&chart(), release, namespace, values)
}

fn chart() -> PathBuf {
    deploy().join("charts/setpoint-composite")
}

fn objects(yaml: &str) -> Vec<Value> {
    let documents: Vec<Option<Value>> = serde_saphyr::from_multiple(yaml).unwrap();
    documents.into_iter().flatten().collect()
}

fn without(value: &mut Value, names: &[&str]) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !names.contains(&name.as_str()));
            fields.values_mut().for_each(|inner| without(inner, names));
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| without(inner, names)),
        _ => {}
    }
}

/// Whether an object is none of the installation, but made when the chart is uninstalled.
fn is_hook(object: &Value) -> bool {
    object["metadata"]["annotations"].get("helm.sh/hook").is_some()
}

/// Objects by kind and name.
fn by_name(objects: Vec<Value>) -> BTreeMap<String, Value> {
    let name = |object: &Value| format!("{} {}", object["kind"], object["metadata"]["name"]);
    objects.into_iter().map(|object| (name(&object), object)).collect()
}

#[tokio::test]
async fn the_chart_becomes_what_the_command_prints() {
    let world = need!(World::new().await);
    let ns = world.name();
    let other = json!({
        "replicas": 3, "allNamespaces": true, "configMap": "other-map",
        "image": { "repository": "registry.example/x", "tag": "9" }, "consul": { "url": "http://consul:1" },
    });
    let others = [
        "--all-namespaces",
        "--replicas=3",
        "--config-map=other-map",
        "--image=registry.example/x:9",
        "--consul-url=http://consul:1",
    ];
    for (release, values, args) in [(NAME, json!({}), &[][..]), ("another", other, &others)] {
        let text = need!(rendered(release, ns, &values)).unwrap();
        is_taken(&world, &world.folder.write("chart.yaml", &text));
        // Its names begin with that of the release, and those of the whole cluster with the namespace too.
        let mut found = objects(&text.replace(&format!("{ns}-{release}"), NAME).replace(release, NAME));
        for object in &mut found {
            without(object, &OF_HELM);
        }
        let printed = printed(&[&["manifests", "--json", "--namespace", ns], args].concat());
        let expected = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        found.retain(|object| !is_hook(object));
        let (found, expected) = (by_name(found), by_name(expected));
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (name, expected) in expected {
            assert_eq!(found[&name], expected, "{name}");
        }
    }
}

#[tokio::test]
async fn monitoring_and_the_way_to_consul_are_the_same_in_the_chart_and_in_what_the_command_prints() {
    let world = need!(World::new().await);
    let ns = world.name();
    let consul =
        json!({ "url": "https://consul:1", "tokenSecret": "t", "caSecret": "a", "clientSecret": "c" });
    let login = json!({ "url": "https://consul:1", "authMethod": "cluster" });
    let ways = [
        (consul, &["--consul-token-secret=t", "--consul-ca-secret=a", "--consul-client-secret=c"][..]),
        (login, &["--consul-auth-method=cluster"]),
    ];
    for (consul, way) in ways {
        let values = json!({ "monitoring": { "enabled": true }, "consul": consul });
        let mut found = objects(&need!(rendered(NAME, ns, &values)).unwrap());
        found.retain(|object| !is_hook(object));
        for object in &mut found {
            without(object, &OF_HELM);
        }
        let of_command = ["manifests", "--json", "--namespace", ns, "--consul-url=https://consul:1"];
        let parts = ["crd", "rbac", "deployment", "service", "disruption-budget", "monitoring"];
        let printed = printed(&[&of_command[..], &parts, way].concat());
        let expected: Vec<Value> = printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let (found, expected) = (by_name(found), by_name(expected));
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (name, expected) in expected {
            assert_eq!(found[&name], expected, "{name}");
        }
    }
}

#[tokio::test]
async fn whatever_the_chart_is_given_is_taken_by_the_api_server_and_by_the_command() {
    let world = need!(World::new().await);
    let values = json!({
        "imagePullSecrets": [{ "name": "registry" }],
        "composite": { "name": "mine", "spec": { "originNamespace": "a", "baseline": { "originNamespace": "b" } } },
        "cloudProvider": "GKE", "managedBy": "me", "partOf": "mine",
        "sync": { "enabled": false, "checkInterval": 1_200_000 },
        "longPoll": { "retryTime": "1m", "onSuccessDelayTime": 2_000_000 },
        "consul": {
            "tokenSecret": "token", "caSecret": "ca", "clientSecret": "client",
            "datacenter": "dc2", "namespace": "team", "partition": "part",
        },
        "parameters": { "lease-duration": "30s", "consul-wait-time": 60_000, "removal-grace": 1_500_000, "leader-elect": true },
        "podAnnotations": { "note": "7" }, "nodeSelector": { "disk": "fast" },
        "tolerations": [{ "key": "spot", "operator": "Exists" }],
    });
    // A release may be called by a number.
    let text = need!(rendered("7", world.name(), &values)).unwrap();
    is_taken(&world, &world.folder.write("chart.yaml", &text));
    let objects = by_name(objects(&text));
    let deployment = objects.values().find(|object| object["kind"] == "Deployment").unwrap();
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let mut command = setpoint();
    let args: Vec<&str> =
        container["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    assert_eq!(args[0], "composite");
    command.args(&args[1..]).args(["--kubeconfig", "/nonexistent"]);
    for variable in container["env"].as_array().unwrap() {
        if let Some(value) = variable["value"].as_str() {
            command.env(variable["name"].as_str().unwrap(), value);
        }
    }
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1) && printed.contains("/nonexistent"),
        "only the cluster is missing: {printed}"
    );

    let both = json!({ "consul": { "tokenSecret": "token", "authMethod": "cluster" } });
    let refused = need!(rendered("7", world.name(), &both)).unwrap_err();
    assert!(refused.contains("can't be used together"), "{refused}");
}

/// The program of a pod, with its arguments, its variables and the rights of its account: there is no kubelet.
fn program_of(world: &World, pod: &Value, file: &str) -> Command {
    let config = std::fs::read_to_string(world.namespace.kubernetes().kubeconfig_file()).unwrap();
    let mut config: Value = serde_json::from_str(&config).unwrap();
    let account =
        format!("system:serviceaccount:{}:{}", world.name(), pod["serviceAccountName"].as_str().unwrap());
    config["users"][0]["user"]["as"] = json!(account);
    // A pod is in its namespace.
    config["contexts"][0]["context"]["namespace"] = json!(world.name());
    let config = world.folder.write(file, config.to_string());
    let container = &pod["containers"][0];
    let args: Vec<_> =
        container["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    assert_eq!(args[0], "composite");
    let mut command = setpoint();
    command.args(&args[1..]).arg("--kubeconfig").arg(config);
    for variable in container["env"].as_array().unwrap() {
        if let Some(value) = variable["value"].as_str() {
            command.env(variable["name"].as_str().unwrap(), value);
        }
    }
    command
}

/// Says of a Job what the controller of Jobs says when its pod has ended.
async fn end_job(jobs: &Api<Job>, name: &str, succeeded: bool) {
    let now = now();
    let conditions: &[&str] =
        if succeeded { &["SuccessCriteriaMet", "Complete"] } else { &["FailureTarget", "Failed"] };
    let condition = |kind: &&str| json!({ "type": kind, "status": "True", "reason": "Test", "message": "", "lastProbeTime": now, "lastTransitionTime": now });
    let conditions: Vec<_> = conditions.iter().map(condition).collect();
    let mut status = json!({ "startTime": now, "conditions": conditions, "uncountedTerminatedPods": {} });
    if succeeded {
        status["completionTime"] = json!(now);
        status["succeeded"] = json!(1);
    } else {
        status["failed"] = json!(1);
    }
    let patch = Patch::Merge(json!({ "status": status }));
    jobs.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
}

/// The time, as objects of Kubernetes have it.
fn now() -> Value {
    serde_json::to_value(Time(Timestamp::now())).unwrap()
}

/// A release in a namespace, whose operator is at work.
struct Installed {
    world: World,
    helm: Helm,
    operator: Process,
    _port: Port,
}

const RELEASE: &str = "mine";

impl Installed {
    async fn new() -> Result<Self, Missing> {
        let world = World::new().await?;
        let helm = Helm::of(&world.namespace.kubernetes().kubeconfig_file())?;
        let ns = world.name();
        let values = json!({
            "replicas": 1, "consul": { "url": world.consul.url() },
            "composite": { "name": "mine", "spec": { "originNamespace": ns } },
        });
        helm.install(&chart(), RELEASE, ns, &values).unwrap();
        let deployment = Api::<Deployment>::namespaced(world.client.clone(), ns).get(RELEASE).await.unwrap();
        let pod = serde_json::to_value(deployment.spec.unwrap().template.spec.unwrap()).unwrap();
        let port = Port::lease();
        let mut command = program_of(&world, &pod, "operator.json");
        command
            .args(["--listen", &port.address().to_string(), "--lease-namespace", ns])
            .env("HOSTNAME", "one");
        let log = world.folder.path().join("one.log");
        let operator = Process::start("one", &mut command, &log);
        world.agrees(ns).await;
        Ok(Self { world, helm, operator, _port: port })
    }

    /// Uninstalls the release. The command of its hook is run, and what came of it is written to the Job; gives what both said.
    async fn uninstall(&mut self) -> (Result<(), String>, String) {
        let ns = self.world.name().to_owned();
        // All of it is deleted at once, and the operator is gone before the Composite is.
        self.operator.kill();
        let helm = self.helm.clone();
        let namespace = ns.clone();
        let uninstalling = spawn_blocking(move || helm.uninstall(RELEASE, &namespace));
        let jobs: Api<Job> = Api::namespaced(self.world.client.clone(), &ns);
        let name = format!("{RELEASE}-release");
        let job = wait::until("the hook", LIMIT, async || jobs.get_opt(&name).await.ok()?).await;
        let left = self.world.composites().get("mine").await.unwrap();
        assert!(left.metadata.deletion_timestamp.is_some(), "its finalizer holds it");
        assert!(!self.world.structure(&ns).await.is_empty());
        let pod = serde_json::to_value(job.spec.unwrap().template.spec.unwrap()).unwrap();
        let mut command = program_of(&self.world, &pod, "hook.json");
        let output = spawn_blocking(move || command.output().unwrap()).await.unwrap();
        end_job(&jobs, &name, output.status.success()).await;
        let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (uninstalling.await.unwrap(), printed)
    }
}

#[tokio::test]
async fn installed_upgraded_and_uninstalled_the_chart_leaves_nothing_behind() {
    let mut installed = need!(Installed::new().await);
    let (world, ns) = (&installed.world, installed.world.name().to_owned());
    let uid = world.composites().get("mine").await.unwrap().metadata.uid;
    // With the values of before, as the documentation says.
    installed.helm.upgrade(&chart(), RELEASE, &ns, &json!({ "replicas": 2 })).unwrap();
    let deployments: Api<Deployment> = Api::namespaced(world.client.clone(), &ns);
    assert_eq!(deployments.get(RELEASE).await.unwrap().spec.unwrap().replicas, Some(2));
    assert_eq!(world.composites().get("mine").await.unwrap().metadata.uid, uid);
    world.agrees(&ns).await;

    let (uninstalled, printed) = installed.uninstall().await;
    assert_eq!(uninstalled, Ok(()), "{printed}");
    assert!(printed.contains("its keys are removed from Consul"), "{printed}");
    let world = &installed.world;
    assert!(world.composites().get_opt("mine").await.unwrap().is_none());
    assert!(world.structure(&ns).await.is_empty());
    let mut kubectl = world.namespace.kubernetes().kubectl();
    kubectl.args(["get", "--namespace", &ns, "--selector", &format!("app.kubernetes.io/instance={RELEASE}")]);
    kubectl.args([
        "--output",
        "name",
        "deployments,jobs,roles,rolebindings,serviceaccounts,services,pdb,composites",
    ]);
    let gone = async || kubectl.output().unwrap().stdout.is_empty().then_some(());
    wait::until("everything to be gone", LIMIT, gone).await;
}

#[tokio::test]
async fn an_uninstall_whose_hook_can_not_reach_consul_fails_and_the_composite_can_be_released_by_hand() {
    let mut installed = need!(Installed::new().await);
    let ns = installed.world.name().to_owned();
    // From here on Consul is away, as far as this release knows.
    installed
        .helm
        .upgrade(&chart(), RELEASE, &ns, &json!({ "consul": { "url": "http://127.0.0.1:1" } }))
        .unwrap();
    let (uninstalled, printed) = installed.uninstall().await;
    assert!(
        uninstalled.is_err() && printed.contains("can't be removed from Consul"),
        "{uninstalled:?} {printed}"
    );
    let world = &installed.world;
    assert!(world.composites().get_opt("mine").await.unwrap().is_some());
    let mut command = setpoint();
    command.args(["release", "--namespace", &ns, "--consul-url", &world.consul.url()]);
    command.arg("--kubeconfig").arg(world.namespace.kubernetes().kubeconfig_file());
    assert!(command.output().unwrap().status.success());
    assert!(world.composites().get_opt("mine").await.unwrap().is_none());
    assert!(world.structure(&ns).await.is_empty());
}
