//! What installs the operator.

use std::fs;
use std::path::{Path, PathBuf};

use setpoint_testutils::need;

use crate::world::{World, setpoint};

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
            "Deployment"
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
