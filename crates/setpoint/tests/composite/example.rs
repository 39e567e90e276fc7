//! The document's example, end to end.

use std::fmt::Write;

use kube::ResourceExt;
use serde_json::{Value, json};
use setpoint_composite::publish::payload_of;
use setpoint_testutils::{need, wait};

use crate::world::{LIMIT, World};

const STRUCTURE: &str = "\
baseline-controller/bluegreenRole = controller
baseline-controller/compositeRole = baseline
baseline-origin/bluegreenRole = origin
baseline-origin/compositeRole = baseline
baseline-origin/controllerNamespace = baseline-controller
baseline-peer/bluegreenRole = peer
baseline-peer/compositeRole = baseline
baseline-peer/controllerNamespace = baseline-controller
satellite-controller/bluegreenRole = controller
satellite-controller/compositeRole = satellite
satellite-origin/bluegreenRole = origin
satellite-origin/compositeRole = satellite
satellite-origin/controllerNamespace = satellite-controller
satellite-peer/bluegreenRole = peer
satellite-peer/compositeRole = satellite
satellite-peer/controllerNamespace = satellite-controller
";

#[tokio::test]
async fn the_documents_example() {
    let world = need!(World::new().await);
    let groups = ["baseline", "satellite"];
    let roles = ["controller", "origin", "peer"];
    let namespaces: Vec<String> =
        groups.iter().flat_map(|group| roles.iter().map(move |role| format!("{group}-{role}"))).collect();
    // By the document's own names of the parameters.
    let file = world.folder.write(
        "operator.toml",
        format!(
            "namespace = {namespaces:?}\n\
             cloud.composite.structure.sync.enabled = true\n\
             cloud.composite.structure.sync.check-interval = 300000\n\
             [cloud.consul-long-poll]\n\
             retry-time = 20000\n\
             on-success-delay-time = 3000\n"
        ),
    );
    let operator = world.operate("one", &["--config", file.to_str().unwrap()]);
    let baseline = json!({
        "originNamespace": "baseline-origin",
        "controllerNamespace": "baseline-controller",
        "peerNamespace": "baseline-peer",
    });
    let satellite = json!({
        "originNamespace": "satellite-origin",
        "controllerNamespace": "satellite-controller",
        "peerNamespace": "satellite-peer",
        "baseline": baseline,
    });
    for namespace in &namespaces {
        world.make_namespace(namespace).await;
        let spec = if namespace.starts_with("baseline") { &baseline } else { &satellite };
        world.declare(namespace, "composite", spec.clone()).await;
    }
    let expected = json!({
        "cloudProvider": "OnPrem",
        "composite": {
            "baseline": { "controller": "baseline-controller", "origin": "baseline-origin", "peer": "baseline-peer" },
            "satellites": [
                { "controller": "satellite-controller", "origin": "satellite-origin", "peer": "satellite-peer" },
            ],
        },
    });
    for namespace in &namespaces {
        let published = async || {
            let map = world.config_map(namespace).await?;
            let payload: Value = serde_json::from_str(payload_of(&map)?).ok()?;
            (payload == expected).then_some(map)
        };
        let map = wait::within(LIMIT, published).await;
        let map =
            map.unwrap_or_else(|| operator.process.fail(&format!("nothing was published in {namespace}")));
        assert_eq!(map.labels()["app.kubernetes.io/managed-by"], "core-operator");
        assert_eq!(map.labels()["app.kubernetes.io/part-of"], "Cloud-Core");
        assert_eq!(payload_of(&map).unwrap(), expected.to_string(), "compact, in the document's order");
        let [owner] = map.owner_references() else { panic!("{:?}", map.owner_references()) };
        assert_eq!(
            (owner.api_version.as_str(), owner.kind.as_str()),
            ("core.netcracker.com/v1", "Composite")
        );
        assert_eq!((owner.name.as_str(), owner.controller), ("composite", Some(true)));
        assert_eq!(owner.block_owner_deletion, Some(false));
        // The structure is published as soon as others have declared it; a namespace's own keys may come after that.
        let key = format!("config/{namespace}/application/composite/structureRef");
        let reference = async || world.consul.get(&key).await.ok()?.value;
        let reference = wait::until(&key, LIMIT, reference).await;
        assert_eq!(reference, "composite/baseline-origin/structure");
    }
    let mut structure = String::new();
    let complete = async || {
        structure.clear();
        for (key, value) in world.structure("baseline-origin").await {
            let key = key.strip_prefix("composite/baseline-origin/structure/").unwrap();
            writeln!(structure, "{key} = {value}").unwrap();
        }
        (structure == STRUCTURE).then_some(())
    };
    let complete = wait::within(LIMIT, complete).await;
    assert_eq!(structure, STRUCTURE, "{complete:?}");
}
