//! The API server goes away and comes back.

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use setpoint_composite::install::{NAME as LEASE, Options, rbac};
use setpoint_composite::publish::payload_of;
use setpoint_composite::settings::{Election, Namespaces, Settings};
use setpoint_consul as consul;
use setpoint_kube::lease::Timing;
use setpoint_testutils::kubernetes::History;
use setpoint_testutils::{Consul, Kubernetes, Workdir, need, wait};

use super::world::{LIMIT, NAME, ORDERED, Running, fast, from, install, install_definition, make_namespace};

/// A client with the rights that the manifests give to an operator of all namespaces that is in one of them.
async fn operator_of_all(kubernetes: &Kubernetes, namespace: &str) -> Client {
    let options = Options { namespace: namespace.to_owned(), all_namespaces: true, ..Options::default() };
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": rbac(&options) });
    let folder = Workdir::new("rights");
    let file = folder.write("rbac.json", list.to_string());
    let applied = kubernetes.kubectl().args(["apply", "-f"]).arg(file).output().unwrap();
    assert!(applied.status.success(), "{}", String::from_utf8_lossy(&applied.stderr));
    let mut file = Kubeconfig::read_from(kubernetes.kubeconfig_file()).unwrap();
    let user = file.auth_infos[0].auth_info.as_mut().unwrap();
    user.impersonate = Some(format!("system:serviceaccount:{namespace}:{LEASE}"));
    let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    config.proxy_url = None;
    Client::try_from(config).unwrap()
}

#[tokio::test]
async fn a_killed_api_server_is_survived_and_what_happened_meanwhile_is_published() {
    let mut kubernetes = need!(Kubernetes::start_with_history().await);
    let consul = need!(Consul::shared().await);
    let client = kubernetes.client().await;
    let ns = "killed-api-server";
    install(&client).await;
    make_namespace(&client, ns).await;
    let history = History::begin(&client, ns).await;
    let consul_client = consul::Client::new(consul::Settings::new(consul.url())).unwrap();
    // Of all namespaces: there is nobody else's in this API server. And with the rights of the manifests for that.
    let election = Election { namespace: ns.to_owned(), name: LEASE.to_owned(), timing: Timing::default() };
    let settings = Settings { namespaces: Namespaces::All, election: Some(election), ..fast(&[]) };
    let _running = Running::start(operator_of_all(&kubernetes, ns).await, consul_client, settings);
    let composites: kube::Api<setpoint_composite::api::Composite> = kube::Api::namespaced(client.clone(), ns);
    let composite = from(json!({
        "apiVersion": "core.netcracker.com/v1", "kind": "Composite", "subKind": "CompositeStructure",
        "metadata": { "name": "composite" }, "spec": { "originNamespace": ns },
    }));
    composites.create(&kube::api::PostParams::default(), &composite).await.unwrap();
    let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> = kube::Api::namespaced(client.clone(), ns);
    let publishes = async |expected: Value| {
        let found = async || {
            let map = maps.get_opt(NAME).await.ok()??;
            let payload: Value = serde_json::from_str(payload_of(&map)?).ok()?;
            (payload["composite"] == expected).then_some(())
        };
        wait::until(&format!("{expected}"), LIMIT, found).await;
    };
    publishes(json!({ "baseline": { "origin": ns } })).await;
    let before = history.versions_that_never_go_back(NAME, &ORDERED).await;
    assert!(!before.is_empty());

    kubernetes.server().kill();
    let satellite = |name: &str| format!("composite/{ns}/structure/{name}/compositeRole");
    consul.put(&satellite("one"), "satellite").await.unwrap();
    consul.put(&satellite("two"), "satellite").await.unwrap();
    kubernetes.restart().await;
    publishes(
        json!({ "baseline": { "origin": ns }, "satellites": [{ "origin": "one" }, { "origin": "two" }] }),
    )
    .await;

    // And once more, under way. The history reaches back over the restart.
    consul.delete(&satellite("one")).await.unwrap();
    publishes(json!({ "baseline": { "origin": ns }, "satellites": [{ "origin": "two" }] })).await;
    let all = history.versions_that_never_go_back(NAME, &ORDERED).await;
    assert!(all.len() > before.len(), "{} after {}", all.len(), before.len());
}

#[tokio::test]
async fn a_composite_that_can_not_be_read_holds_up_no_other() {
    let kubernetes = need!(Kubernetes::start().await);
    let consul = need!(Consul::shared().await);
    let client = kubernetes.client().await;
    // A definition that lets anything pass, as older ones did.
    let mut definition = serde_json::to_value(setpoint_composite::api::crd()).unwrap();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    install_definition(&client, definition).await;
    let ns = "unreadable";
    make_namespace(&client, ns).await;
    let composites: kube::Api<kube::core::DynamicObject> = kube::Api::namespaced_with(
        client.clone(),
        ns,
        &kube::core::ApiResource::erase::<setpoint_composite::api::Composite>(&()),
    );
    for (name, spec) in
        [("broken", json!({ "orignNamespace": 5 })), ("whole", json!({ "originNamespace": ns }))]
    {
        let composite = from(json!({
            "apiVersion": "core.netcracker.com/v1", "kind": "Composite", "subKind": "CompositeStructure",
            "metadata": { "name": name }, "spec": spec,
        }));
        composites.create(&kube::api::PostParams::default(), &composite).await.unwrap();
    }
    let consul_client = consul::Client::new(consul::Settings::new(consul.url())).unwrap();
    let _running = Running::start(client.clone(), consul_client, fast(&[ns]));
    let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> = kube::Api::namespaced(client.clone(), ns);
    let published = async || maps.get_opt(NAME).await.ok()?.map(drop);
    wait::until("the ConfigMap", LIMIT, published).await;
    let events: kube::Api<k8s_openapi::api::events::v1::Event> = kube::Api::namespaced(client.clone(), ns);
    let reported = async || {
        let all = events.list(&kube::api::ListParams::default()).await.ok()?;
        let found = all.items.into_iter().find(|event| event.reason.as_deref() == Some("Unreadable"))?;
        found.regarding?.name
    };
    assert_eq!(wait::until("the Event", LIMIT, reported).await, "broken");
}

#[tokio::test]
async fn what_core_operator_wrote_is_read_written_anew_and_taken_over() {
    let kubernetes = need!(Kubernetes::start().await);
    let consul = need!(Consul::shared().await);
    let client = kubernetes.client().await;
    // The definition of core-operator lets anything pass.
    let mut definition = serde_json::to_value(setpoint_composite::api::crd()).unwrap();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    install_definition(&client, definition).await;
    let ns = "migrated";
    make_namespace(&client, ns).await;
    let composites: kube::Api<kube::core::DynamicObject> = kube::Api::namespaced_with(
        client.clone(),
        ns,
        &kube::core::ApiResource::erase::<setpoint_composite::api::Composite>(&()),
    );
    let composite = from(json!({
        "apiVersion": "core.netcracker.com/v1", "kind": "Composite", "subKind": "CompositeStructure",
        "metadata": { "name": "composite" }, "spec": { "originNamespace": ns },
    }));
    let mut composite = composites.create(&kube::api::PostParams::default(), &composite).await.unwrap();
    let step = |kind: &str| {
        json!({
            "type": kind, "status": true, "state": "COMPLETED", "reason": "", "message": "",
            "lastTransitionTime": "Tue Nov 17 10:00:00 UTC 2026", "lastUpdateTime": "Tue Nov 17 10:00:00 UTC 2026",
        })
    };
    composite.data["status"] = json!({
        "phase": "Updated", "observedGeneration": 1, "requestId": "7", "processed-by-operator-ver": "unknown",
        "conditions": [step("Validated"), step("CompositeStructureUpdated")],
    });
    composites.replace_status("composite", &kube::api::PostParams::default(), &composite).await.unwrap();
    // What core-operator wrote to Consul for it.
    let role = format!("composite/{ns}/structure/{ns}/compositeRole");
    consul.put(&role, "baseline").await.unwrap();
    // And what it published, as one that wrote it by its own name.
    let maps: kube::Api<k8s_openapi::api::core::v1::ConfigMap> = kube::Api::namespaced(client.clone(), ns);
    let topology: k8s_openapi::api::core::v1::ConfigMap = from(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "topology",
            "labels": { "app.kubernetes.io/managed-by": "core-operator", "app.kubernetes.io/part-of": "Cloud-Core" },
            "ownerReferences": [{
                "apiVersion": "core.netcracker.com/v1", "kind": "Composite", "name": "composite",
                "uid": composite.metadata.uid, "controller": true, "blockOwnerDeletion": false,
            }],
        },
        "data": { "data": json!({ "cloudProvider": "OnPrem", "composite": {} }).to_string() },
    }));
    let by_core_operator = kube::api::PatchParams::apply("core-operator");
    let before = maps.patch("topology", &by_core_operator, &kube::api::Patch::Apply(topology)).await.unwrap();
    // As when the operator is exchanged: its own definition comes first.
    install(&client).await;

    let consul_client = consul::Client::new(consul::Settings::new(consul.url())).unwrap();
    let settings =
        Settings { namespaces: Namespaces::All, config_map: "topology".to_owned(), ..Settings::default() };
    let _running = Running::start(client.clone(), consul_client, settings);
    let typed: kube::Api<setpoint_composite::api::Composite> = kube::Api::namespaced(client.clone(), ns);
    let settled = async || {
        let conditions = typed.get("composite").await.ok()?.status?.conditions;
        let mut kinds: Vec<_> =
            conditions.iter().filter(|one| one.status == "True").map(|one| one.type_.clone()).collect();
        kinds.sort();
        (kinds == ["Accepted", "Published", "Ready", "Synced"]).then_some(())
    };
    wait::until("its own conditions, and no others", LIMIT, settled).await;
    let raw = composites.get("composite").await.unwrap().data["status"].clone();
    assert_eq!(raw["conditions"].as_array().unwrap().len(), 4, "{raw}");
    // Which is taken over as it is.
    let map = maps.get("topology").await.unwrap();
    assert_eq!(map.metadata.uid, before.metadata.uid);
    assert_eq!(map.metadata.owner_references, before.metadata.owner_references);
    let payload: serde_json::Value = serde_json::from_str(payload_of(&map).unwrap()).unwrap();
    assert_eq!(payload["composite"], json!({ "baseline": { "origin": ns } }));

    // What was taken over goes with the Composite.
    typed.delete("composite", &kube::api::DeleteParams::default()).await.unwrap();
    let gone = async || consul.get(&role).await.ok()?.value.is_none().then_some(());
    wait::until("the key to go", LIMIT, gone).await;
}
