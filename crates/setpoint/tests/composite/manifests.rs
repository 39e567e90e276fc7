//! What installs the operator.

use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::api::rbac::v1::PolicyRule;
use setpoint_composite::install::{lease_rules, rules};
use setpoint_testutils::need;

use crate::world::{World, setpoint};

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn printed(args: &[&str]) -> String {
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

/// The rules in a template, from a line on to a line, with what Helm fills in.
fn template_rules(file: &str, from: impl Fn(&str) -> bool, to: &str) -> Vec<PolicyRule> {
    let text = fs::read_to_string(deploy().join("charts/setpoint-composite/templates").join(file)).unwrap();
    let lines = text.lines().skip_while(|line| !from(line)).skip(1).take_while(|line| *line != to);
    let text: String = lines.flat_map(|line| [line, "\n"]).collect();
    let text = text
        .replace("{{ .Values.configMap | quote }}", "the-map")
        .replace("{{ .Release.Name | quote }}", "the-lease");
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn the_chart_gives_the_same_rights() {
    assert_eq!(
        template_rules("_helpers.tpl", |line| line.contains("setpoint-composite.rules"), "{{- end }}"),
        rules("the-map")
    );
    let text = fs::read_to_string(deploy().join("charts/setpoint-composite/templates/rbac.yaml")).unwrap();
    assert_eq!(text.matches("verbs:").count(), 2, "all other rights come from the helper");
    assert_eq!(template_rules("rbac.yaml", |line| line == "rules:", "---"), lease_rules("the-lease"));
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

#[tokio::test]
async fn the_api_server_takes_all_manifests() {
    let world = need!(World::new().await);
    for more in [&[][..], &["--all-namespaces"]] {
        let args = [&["manifests", "--namespace", world.name()][..], more].concat();
        let file = world.folder.write("all.yaml", printed(&args));
        let mut kubectl = world.namespace.kubernetes().kubectl();
        let output = kubectl
            .args([
                "apply",
                "--server-side",
                "--force-conflicts",
                "--dry-run=server",
                "--validate=strict",
                "-f",
            ])
            .arg(file)
            .output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "no warnings either");
    }
}
