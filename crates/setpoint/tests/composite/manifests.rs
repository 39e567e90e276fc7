//! What installs the operator.

use std::fs;
use std::path::{Path, PathBuf};

use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use setpoint_composite::api::{Composite, CompositeStatus, ConditionType, Phase, condition};
use setpoint_testutils::{Acl, Consul, Kubernetes, Port, Process, Workdir, need, wait};

use crate::world::{LIMIT, World, from, setpoint};

pub(crate) fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

pub(crate) fn printed(args: &[&str]) -> String {
    let output = setpoint().args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_manifests_in_the_repository_are_those_that_the_command_prints() {
    let same = |file: &str, args: &[&str]| {
        let found = fs::read_to_string(deploy().join(file)).unwrap();
        assert!(
            found == printed(args),
            "deploy/{file} is out of date: `setpoint composite {}` makes it",
            args.join(" ")
        );
    };
    same("composite/crd.yaml", &["manifests", "crd"]);
    same("composite/rbac.yaml", &["manifests", "rbac"]);
    same("composite/deployment.yaml", &["manifests", "deployment"]);
    same("composite/service.yaml", &["manifests", "service", "disruption-budget"]);
    same("composite/monitoring.yaml", &["manifests", "monitoring"]);
    same("composite/alerts.yaml", &["manifests", "alerts"]);
    same("charts/setpoint-composite/files/alerts.yaml", &["manifests", "alerts"]);
    same("charts/setpoint-composite/crds/composite.yaml", &["crd"]);
}

#[test]
fn each_object_is_a_line_for_programs() {
    let text = printed(&["manifests", "--json", "--all-namespaces"]);
    let kinds: Vec<String> = text
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["kind"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(
        kinds,
        [
            "CustomResourceDefinition",
            "ServiceAccount",
            "ClusterRole",
            "ClusterRoleBinding",
            "Role",
            "RoleBinding",
            "Deployment",
            "Service",
            "PodDisruptionBudget"
        ]
    );
}

/// Checks that the API server would take what is in a file, without a warning.
pub(crate) fn is_taken(world: &World, file: &Path) {
    let mut kubectl = world.namespace.kubernetes().kubectl();
    let how = ["apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f"];
    let output = kubectl.args(how).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "no warnings either");
}

#[tokio::test]
async fn the_api_server_takes_all_manifests() {
    let world = need!(World::new().await);
    for more in [&[][..], &["--all-namespaces"]] {
        let args = [&["manifests", "--namespace", world.name()][..], more].concat();
        let file = world.folder.write("all.yaml", printed(&args));
        is_taken(&world, &file);
    }
}

#[tokio::test]
async fn with_the_printed_policy_of_consul_everything_works() {
    let world = need!(World::new().await);
    let consul = need!(Consul::start(Acl::On).await);
    let ns = world.name();
    let policy = printed(&["manifests", "consul-policy", "--namespace", ns]);
    let token = consul.token_with("setpoint", &policy).await.unwrap();
    let file = world.folder.write("token", &token);
    let arguments = ["--namespace", ns, "--consul-token-file", file.to_str().unwrap()];
    let operator = world.operate_on(&consul, "one", &arguments);
    world.declare(ns, "composite", json!({ "originNamespace": ns })).await;
    world.ready(&operator).await;
    // What somebody removes is found out, and put back.
    for key in [
        format!("composite/{ns}/structure/{ns}/compositeRole"),
        format!("config/{ns}/application/composite/structureRef"),
    ] {
        consul.delete(&key).await.unwrap();
        let back = async || consul.get(&key).await.ok()?.value.map(drop);
        operator.process.until(&format!("{key} is put back"), back).await;
    }
    world.composites().delete("composite", &DeleteParams::default()).await.unwrap();
    let gone = async || world.composites().get_opt("composite").await.ok()?.is_none().then_some(());
    operator.process.until("the Composite is gone", gone).await;
}

#[test]
fn the_policy_of_consul_is_printed_alone() {
    let output = setpoint().args(["manifests", "rbac", "consul-policy"]).output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&output.stderr).contains("print it alone"));
    assert!(printed(&["manifests", "consul-policy", "--all-namespaces"]).contains(r#"key_prefix "config/""#));
}

#[tokio::test]
async fn a_definition_from_before_is_upgraded_with_kubectl_and_its_composites_go_on() {
    let kubernetes = need!(Kubernetes::start().await);
    let consul = need!(Consul::shared().await);
    let (client, folder) = (kubernetes.client().await, Workdir::new("upgrade"));
    let apply = |file: &Path| {
        let output = kubernetes.kubectl().args(["apply", "--server-side", "-f"]).arg(file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    // The definition as it was before it had a phase.
    let mut before: serde_json::Value =
        serde_json::from_str(printed(&["crd", "--json"]).trim()).expect("a definition");
    let version = &mut before["spec"]["versions"][0];
    let status = &mut version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
    assert!(status.as_object_mut().unwrap().remove("phase").is_some());
    version["additionalPrinterColumns"].as_array_mut().unwrap().retain(|column| column["name"] != "Phase");
    apply(&folder.write("before.json", before.to_string()));
    let composites: Api<Composite> = Api::namespaced(client.clone(), "default");
    let served = async || composites.list(&ListParams::default()).await.ok().map(drop);
    wait::until("Composites to be served", LIMIT, served).await;
    let name = format!("upgraded-{}", std::process::id());
    let composite = from(json!({
        "apiVersion": "core.netcracker.com/v1", "kind": "Composite", "subKind": "CompositeStructure",
        "metadata": { "name": "composite" }, "spec": { "originNamespace": name },
    }));
    let made = composites.create(&PostParams::default(), &composite).await.unwrap();

    let mut command = setpoint();
    let port = Port::lease();
    command.args(["run", "--namespace=default", "--consul-url", &consul.url()]);
    command.args(["--listen", &port.address().to_string(), "--kubeconfig"]).arg(kubernetes.kubeconfig_file());
    let operator = Process::start("setpoint", &mut command, &folder.path().join("setpoint.log"));
    let status = async || composites.get("composite").await.ok()?.status;
    let condition =
        |status: &CompositeStatus, kind| condition(&status.conditions, kind).map(|one| one.status.clone());
    let ready = async || {
        let found = status()
            .await
            .filter(|status| condition(status, ConditionType::Ready).as_deref() == Some("True"))?;
        Some(found)
    };
    // With the new program and the old definition all is done, and what the definition does not know is not kept.
    let before = operator.until("the Composite is ready", ready).await;
    assert_eq!(before.phase, None);
    apply(&deploy().join("composite/crd.yaml"));
    let annotation = Patch::Merge(json!({ "metadata": { "annotations": { "look": "again" } } }));
    let updated = async || {
        // A change that needs a look: the status is written anew then.
        composites.patch("composite", &PatchParams::default(), &annotation).await.ok()?;
        status().await.filter(|status| status.phase == Some(Phase::Updated))
    };
    operator.until("the phase is kept", updated).await;
    let after = composites.get("composite").await.unwrap();
    assert_eq!(
        (after.metadata.uid, after.metadata.generation),
        (made.metadata.uid, made.metadata.generation)
    );
}
