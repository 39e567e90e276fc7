//! The Helm chart, as Helm makes manifests of it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use setpoint_composite::install::NAME;
use setpoint_testutils::{Missing, helm, need};

use crate::manifests::{deploy, is_taken, printed};
use crate::world::{World, setpoint};

/// What only Helm's objects have: who installed them, and when an image is pulled.
const OF_HELM: [&str; 4] =
    ["app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "helm.sh/chart", "imagePullPolicy"];

fn rendered(release: &str, namespace: &str, values: &Value) -> Result<Result<String, String>, Missing> {
    helm::render(&deploy().join("charts/setpoint-composite"), release, namespace, values)
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
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1) && told.contains("/nonexistent"),
        "only the cluster is missing: {told}"
    );

    let both = json!({ "consul": { "tokenSecret": "token", "authMethod": "cluster" } });
    let refused = need!(rendered("7", world.name(), &both)).unwrap_err();
    assert!(refused.contains("can't be used together"), "{refused}");
}

/// Objects as kubectl reads them.
fn list(objects: &[Value]) -> String {
    json!({ "apiVersion": "v1", "kind": "List", "items": objects }).to_string()
}

#[tokio::test]
async fn installed_upgraded_and_uninstalled_the_chart_leaves_no_composite_behind() {
    let world = need!(World::new().await);
    let ns = world.name();
    let values = |replicas: u32| {
        json!({
            "replicas": replicas, "consul": { "url": world.consul.url() },
            "composite": { "name": "mine", "spec": { "originNamespace": ns } },
        })
    };
    let kubectl = |verb: &[&str], objects: &[Value]| {
        let file = world.folder.write("objects.json", list(objects));
        let output = world.namespace.kubernetes().kubectl().args(verb).arg("-f").arg(file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let chart = |replicas| -> Result<(Vec<Value>, Vec<Value>), Missing> {
        let all = objects(&rendered("mine", ns, &values(replicas))?.unwrap());
        let (hooks, mut installed): (Vec<_>, Vec<_>) = all.into_iter().partition(is_hook);
        installed.retain(|object| object["kind"] != "CustomResourceDefinition");
        Ok((hooks, installed))
    };
    let (_, installed) = need!(chart(1));
    kubectl(&["apply"], &installed);
    // There is no kubelet: this is what the Deployment would run.
    let mut operator = world.operate("one", &["--namespace", ns, "--lease-name", "mine"]);
    world.agrees(ns).await;
    let uid = world.composites().get("mine").await.unwrap().metadata.uid;
    let (hooks, installed) = need!(chart(2));
    kubectl(&["apply"], &installed);
    assert_eq!(world.composites().get("mine").await.unwrap().metadata.uid, uid);
    world.agrees(ns).await;

    // All of it is deleted at once, and the operator is gone before the Composite is.
    operator.process.kill();
    kubectl(&["delete", "--wait=false"], &installed);
    let left = world.composites().get("mine").await.unwrap();
    assert!(left.metadata.deletion_timestamp.is_some(), "its finalizer holds it");
    assert!(!world.structure(ns).await.is_empty());

    kubectl(&["apply"], &hooks);
    let job = hooks.iter().find(|object| object["kind"] == "Job").unwrap();
    let pod = &job["spec"]["template"]["spec"];
    // With the rights that the hook has, and none other.
    let config = std::fs::read_to_string(world.namespace.kubernetes().kubeconfig_file()).unwrap();
    let mut config: Value = serde_json::from_str(&config).unwrap();
    let account = format!("system:serviceaccount:{ns}:{}", pod["serviceAccountName"].as_str().unwrap());
    config["users"][0]["user"]["as"] = json!(account);
    let config = world.folder.write("hook.json", config.to_string());
    let args: Vec<_> =
        pod["containers"][0]["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap()).collect();
    let mut command = setpoint();
    command.args(&args[1..]).arg("--kubeconfig").arg(config);
    for variable in pod["containers"][0]["env"].as_array().unwrap() {
        command.env(variable["name"].as_str().unwrap(), variable["value"].as_str().unwrap());
    }
    let output = command.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.contains("its keys are removed from Consul"), "{told}");
    assert!(world.composites().get_opt("mine").await.unwrap().is_none());
    assert!(world.structure(ns).await.is_empty());
}
