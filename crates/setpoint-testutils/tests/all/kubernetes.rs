//! The API server keeps objects, collects owned ones, and refuses what RBAC forbids.

use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::PolicyRule;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams};
use kube::{Client, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use setpoint_testutils::certificates::Certificate;
use setpoint_testutils::{Durability, Kubernetes, Port, need, wait};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::process_is_gone;

fn object<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn config_map(name: &str) -> ConfigMap {
    object(json!({ "metadata": { "name": name }, "data": { "colour": "blue" } }))
}

async fn define_widgets(client: &Client) -> ApiResource {
    let definition: CustomResourceDefinition = object(json!({
        "metadata": { "name": "widgets.test.setpoint.dev" },
        "spec": {
            "group": "test.setpoint.dev",
            "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": { "spec": {
                        "type": "object",
                        "properties": { "size": { "type": "integer", "minimum": 1 } },
                    } },
                } },
            }],
        },
    }));
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    ApiResource::from_gvk(&GroupVersionKind::gvk("test.setpoint.dev", "v1", "Widget"))
}

fn widget(name: &str, size: i64) -> DynamicObject {
    object(json!({
        "apiVersion": "test.setpoint.dev/v1", "kind": "Widget",
        "metadata": { "name": name }, "spec": { "size": size },
    }))
}

#[tokio::test]
async fn keeps_a_custom_resource_over_a_restart_and_is_gone_afterwards() {
    let mut kubernetes = need!(Kubernetes::start_with(Durability::Durable).await);
    let client = kubernetes.client().await;
    let resource = define_widgets(&client).await;
    let widgets: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
    let create = PostParams::default();
    wait::until("widgets to be served", wait::LIMIT, async || {
        widgets.create(&create, &widget("one", 3)).await.ok()
    })
    .await;
    let refused = widgets.create(&create, &widget("none", 0)).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 422), "{refused}");

    kubernetes.restart().await;
    let client = kubernetes.client().await;
    let widgets: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
    let found =
        wait::until("widgets to be served", wait::LIMIT, async || widgets.get("one").await.ok()).await;
    assert_eq!(found.data["spec"]["size"], 3);

    let version = kubernetes.kubectl().args(["version", "--output=json"]).output().unwrap();
    let version: Value = serde_json::from_slice(&version.stdout).unwrap();
    assert_eq!(version["serverVersion"]["minor"], "34", "{version}");
    assert_eq!(version["clientVersion"]["minor"], "34", "{version}");

    let ids = [kubernetes.server().id(), kubernetes.controllers().id(), kubernetes.etcd().process().id()];
    let folders = [kubernetes.folder().to_path_buf(), kubernetes.etcd().folder().to_path_buf()];
    drop(kubernetes);
    for folder in folders {
        assert!(!folder.exists(), "{}", folder.display());
    }
    for id in ids {
        process_is_gone(id).await;
    }
}

#[tokio::test]
async fn collects_an_owned_object_and_a_deleted_namespace() {
    let namespace = need!(Kubernetes::namespace().await);
    let client = namespace.client().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace.name());
    let create = PostParams::default();
    let owner = maps.create(&create, &config_map("owner")).await.unwrap();
    let mut owned = config_map("owned");
    owned.metadata.owner_references = Some(vec![object(json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid().unwrap(),
    }))]);
    maps.create(&create, &owned).await.unwrap();
    maps.create(&create, &config_map("other")).await.unwrap();

    maps.delete("owner", &DeleteParams::default()).await.unwrap();
    wait::until("the owned object to be collected", wait::LIMIT, async || {
        maps.get_opt("owned").await.unwrap().is_none().then_some(())
    })
    .await;
    assert!(maps.get_opt("other").await.unwrap().is_some());

    let namespaces: Api<Namespace> = Api::all(client);
    namespaces.delete(namespace.name(), &DeleteParams::default()).await.unwrap();
    wait::until("the namespace to be collected", wait::LIMIT, async || {
        namespaces.get_opt(namespace.name()).await.unwrap().is_none().then_some(())
    })
    .await;
}

#[tokio::test]
async fn refuses_what_rbac_forbids() {
    let namespace = need!(Kubernetes::namespace().await);
    let rules: Vec<PolicyRule> =
        object(json!([{ "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create"] }]));
    let client = namespace.kubernetes().client_with(namespace.name(), "reader", rules).await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace.name());
    maps.create(&PostParams::default(), &config_map("mine")).await.unwrap();
    assert_eq!(maps.get("mine").await.unwrap().data.unwrap()["colour"], "blue");

    let elsewhere: Api<ConfigMap> = Api::namespaced(client, "default");
    for refused in [
        maps.delete("mine", &DeleteParams::default()).await.map(|_| ()).unwrap_err(),
        elsewhere.get("mine").await.map(|_| ()).unwrap_err(),
    ] {
        assert!(matches!(&refused, kube::Error::Api(status) if status.code == 403), "{refused}");
    }
}

/// Answers one admission review after the other with a refusal.
async fn refuse_all(port: &Port, certificate: &Certificate) -> tokio::task::JoinSet<()> {
    let chain = vec![CertificateDer::from_pem_slice(certificate.certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(certificate.key.as_bytes()).unwrap();
    let configuration = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(configuration));
    let listener = TcpListener::bind(port.address()).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut request = Vec::new();
            let review: Value = loop {
                let mut buffer = [0; 8192];
                let length = stream.read(&mut buffer).await.unwrap_or(0);
                request.extend_from_slice(&buffer[..length]);
                let body = request
                    .windows(4)
                    .position(|bytes| bytes == b"\r\n\r\n")
                    .map_or(request.len(), |at| at + 4);
                match serde_json::from_slice(&request[body..]) {
                    Ok(review) => break review,
                    Err(_) if length > 0 => {}
                    Err(_) => break Value::Null,
                }
            };
            let body = json!({
                "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                "response": {
                    "uid": review["request"]["uid"], "allowed": false, "status": { "message": "not today" },
                },
            })
            .to_string();
            let head =
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length:";
            let _ = stream.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    tasks
}

#[tokio::test]
async fn asks_a_webhook_before_it_admits_an_object() {
    let namespace = need!(Kubernetes::namespace().await);
    let client = namespace.client().await;
    let port = Port::lease();
    let authority = namespace.kubernetes().authority();
    let _webhook = refuse_all(&port, &authority.server()).await;
    let bundle = k8s_openapi::ByteString(authority.certificate().into_bytes());
    let configuration: ValidatingWebhookConfiguration = object(json!({
        "metadata": { "name": "refuse-all" },
        "webhooks": [{
            "name": "refuse-all.test.setpoint.dev",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": { "url": format!("https://{}/", port.address()), "caBundle": bundle },
            "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": namespace.name() } },
            "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"] }],
        }],
    }));
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    configurations.create(&PostParams::default(), &configuration).await.unwrap();

    let maps: Api<ConfigMap> = Api::namespaced(client, namespace.name());
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let refused = wait::until("the webhook to be asked", wait::LIMIT, async || {
        maps.create(&dry_run, &config_map("refused")).await.err()
    })
    .await;
    assert!(refused.to_string().contains("not today"), "{refused}");
}
