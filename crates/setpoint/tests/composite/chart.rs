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
