//! `setpoint composite show`, `plan` and `render`.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};
use setpoint_testutils::kubernetes::TestNamespace;
use setpoint_testutils::{Consul, Kubernetes, need};
use tokio::sync::OnceCell;

use crate::sandbox::{Ran, Sandbox};

/// The document's example, as `consul kv export` writes it.
fn export(lines: &[(&str, &str)]) -> String {
    use base64::Engine as _;
    let pair = |(key, value): &(&str, &str)| json!({ "key": key, "flags": 0, "value": base64::engine::general_purpose::STANDARD.encode(value) });
    Value::Array(lines.iter().map(pair).collect()).to_string()
}

const EXAMPLE: [(&str, &str); 16] = [
    ("composite/baseline-origin/structure/baseline-controller/bluegreenRole", "controller"),
    ("composite/baseline-origin/structure/baseline-controller/compositeRole", "baseline"),
    ("composite/baseline-origin/structure/baseline-origin/bluegreenRole", "origin"),
    ("composite/baseline-origin/structure/baseline-origin/compositeRole", "baseline"),
    ("composite/baseline-origin/structure/baseline-origin/controllerNamespace", "baseline-controller"),
    ("composite/baseline-origin/structure/baseline-peer/bluegreenRole", "peer"),
    ("composite/baseline-origin/structure/baseline-peer/compositeRole", "baseline"),
    ("composite/baseline-origin/structure/baseline-peer/controllerNamespace", "baseline-controller"),
    ("composite/baseline-origin/structure/satellite-controller/bluegreenRole", "controller"),
    ("composite/baseline-origin/structure/satellite-controller/compositeRole", "satellite"),
    ("composite/baseline-origin/structure/satellite-origin/bluegreenRole", "origin"),
    ("composite/baseline-origin/structure/satellite-origin/compositeRole", "satellite"),
    ("composite/baseline-origin/structure/satellite-origin/controllerNamespace", "satellite-controller"),
    ("composite/baseline-origin/structure/satellite-peer/bluegreenRole", "peer"),
    ("composite/baseline-origin/structure/satellite-peer/compositeRole", "satellite"),
    ("composite/baseline-origin/structure/satellite-peer/controllerNamespace", "satellite-controller"),
];

#[test]
fn render_makes_the_payload_of_an_exported_list() {
    let sandbox = Sandbox::new("");
    sandbox.write("kv.json", &export(&EXAMPLE));
    let expected = concat!(
        r#"{"cloudProvider":"GKE","composite":{"#,
        r#""baseline":{"controller":"baseline-controller","origin":"baseline-origin","peer":"baseline-peer"},"#,
        r#""satellites":[{"controller":"satellite-controller","origin":"satellite-origin","peer":"satellite-peer"}]}}"#,
    );
    assert_eq!(
        sandbox.ok(&["composite", "render", "--cloud-provider", "gke", "kv.json"]).trim_end(),
        expected
    );
    let mut piped = sandbox.command(&["composite", "render", "-"]);
    let mut child = piped.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(export(&EXAMPLE).as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap().stdout;
    assert_eq!(String::from_utf8(out).unwrap().trim_end(), expected.replace("GKE", "OnPrem"));
}

#[test]
fn render_says_what_it_left_out() {
    let sandbox = Sandbox::new("");
    let lines = [
        ("composite/x/structure/bs/compositeRole", "baseline"),
        ("composite/x/structure/st/compositeRole", "sattelite"),
        ("composite/x/structure/a/compositeRole", "satellite"),
        ("composite/x/structure/a/controllerNamespace", "c"),
        ("composite/x/structure/b/compositeRole", "satellite"),
        ("composite/x/structure/b/controllerNamespace", "c"),
    ];
    sandbox.write("kv.json", &export(&lines));
    let previous = r#"{"cloudProvider":"OnPrem","composite":{"satellites":[{"origin":"a"}]}}"#;
    sandbox.write("previous.json", previous);
    let ran = sandbox.run(&["composite", "render", "--previous", "previous.json", "kv.json"]);
    assert_eq!(ran.code(), 0);
    insta::assert_snapshot!("render", format!("{}{}", ran.out(), ran.err()));
    let json = sandbox.run(&["composite", "render", "--json", "--detailed-exitcode", "kv.json"]);
    assert_eq!((json.code(), json.err()), (2, String::new()));
    let printed: Value = serde_json::from_str(&json.out()).unwrap();
    assert_eq!(printed["payload"]["composite"], json!({ "baseline": { "origin": "bs" } }));
    let kinds: Vec<_> = printed["issues"].as_array().unwrap().iter().map(|issue| &issue["kind"]).collect();
    assert_eq!(kinds, ["UnknownCompositeRole", "SeveralWithoutRole"]);
}

#[test]
fn render_wants_to_know_which_of_several_composites() {
    let sandbox = Sandbox::new("");
    let lines = [
        ("composite/x/structure/x/compositeRole", "baseline"),
        ("composite/y/structure/y/compositeRole", "baseline"),
    ];
    sandbox.write("kv.json", &export(&lines));
    let ran = sandbox.run(&["composite", "render", "kv.json"]);
    assert_eq!(
        (ran.code(), ran.err().as_str()),
        (1, "error: can't use kv.json: it holds several composites: name one of x, y with `--id`\n")
    );
    let one = sandbox.ok(&["composite", "render", "--id", "y", "kv.json"]);
    assert_eq!(one, "{\"cloudProvider\":\"OnPrem\",\"composite\":{\"baseline\":{\"origin\":\"y\"}}}\n");
    sandbox.write("other.json", "{}");
    let ran = sandbox.run(&["composite", "render", "other.json"]);
    assert!(ran.err().starts_with("error: can't use other.json: no list of keys"), "{}", ran.err());
    assert_eq!(sandbox.run(&["composite", "render", "missing.json"]).code(), 1);
    assert_eq!(sandbox.run(&["composite", "render", "--cloud-provider", "Mars", "kv.json"]).code(), 64);
}

/// A namespace whose API server knows Composites.
async fn namespace() -> Result<TestNamespace, setpoint_testutils::Missing> {
    static KNOWN: OnceCell<()> = OnceCell::const_new();
    let namespace = Kubernetes::namespace().await?;
    KNOWN
        .get_or_init(async || {
            let definition = Sandbox::new("").ok(&["composite", "crd"]);
            kubectl(&namespace, &["apply", "-f", "-"], &definition);
            kubectl(
                &namespace,
                &["wait", "--for=condition=Established", "crd/composites.core.netcracker.com"],
                "",
            );
        })
        .await;
    Ok(namespace)
}

fn kubectl(namespace: &TestNamespace, args: &[&str], input: &str) {
    let mut command = namespace.kubernetes().kubectl();
    command.arg("--namespace").arg(namespace.name()).args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn config_map(namespace: &TestNamespace, labels: &Value, data: &str) {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "composite-structure", "labels": labels },
        "data": { "data": data },
    });
    kubectl(namespace, &["apply", "-f", "-"], &object.to_string());
}

fn manifest(name: &str, spec: &Value) -> String {
    let object = json!({
        "apiVersion": "core.netcracker.com/v1", "kind": "Composite", "subKind": "CompositeStructure",
        "metadata": { "name": name }, "spec": spec,
    });
    object.to_string()
}

/// The command beside a Consul and in a namespace.
struct Beside {
    sandbox: Sandbox,
    consul: &'static Consul,
    namespace: TestNamespace,
}

impl Beside {
    async fn start() -> Result<Self, setpoint_testutils::Missing> {
        Ok(Self { sandbox: Sandbox::new(""), consul: Consul::shared().await?, namespace: namespace().await? })
    }

    /// The namespace is the composite's id as well: it is no other test's.
    fn id(&self) -> &str {
        self.namespace.name()
    }

    fn run(&self, args: &[&str]) -> Ran {
        let kubeconfig = self.namespace.kubernetes().kubeconfig_file();
        let (url, kubeconfig) = (self.consul.url(), kubeconfig.to_str().unwrap());
        let places = ["--consul-url", &url, "--kubeconfig", kubeconfig, "--namespace", self.id()];
        self.sandbox.run(&[&["composite"], args, &places].concat())
    }

    /// What is printed, without what differs from run to run.
    fn text(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code(), 0, "{}{}", ran.out(), ran.err());
        let text = format!("{}{}", ran.out(), ran.err()).replace(self.id(), "NS");
        let lines = text.lines().map(|line| match line.split_once(" at index ") {
            Some((before, _)) => format!("{before} at index N\n"),
            None => format!("{line}\n"),
        });
        lines.collect()
    }

    async fn say(&self, key: &str, value: &str) {
        self.consul.put(&format!("composite/{}/structure/{key}", self.id()), value).await.unwrap();
    }
}

#[tokio::test]
async fn show_prints_the_tree_and_how_the_config_map_differs() {
    let beside = need!(Beside::start().await);
    let show = ["show", beside.id()];
    insta::assert_snapshot!("show-nothing", beside.text(&show));
    for (role, name) in [("controller", "shop-c"), ("origin", "shop-o"), ("peer", "shop-p")] {
        beside.say(&format!("{name}/compositeRole"), "baseline").await;
        beside.say(&format!("{name}/bluegreenRole"), role).await;
    }
    beside.say("cart/compositeRole", "satellite").await;
    beside.say("blog/compositeRole", "moon").await;
    insta::assert_snapshot!("show-absent", beside.text(&show));
    let old = r#"{"cloudProvider":"OnPrem","composite":{"baseline":{"origin":"shop-old"},"satellites":[{"origin":"gone"}]}}"#;
    config_map(&beside.namespace, &json!({}), old);
    let differs = beside.text(&show);
    insta::assert_snapshot!("show-differs", differs);
    let shown = differs.replace("NS", "shop").replace("index N", "index 42");
    let block = format!("```tree\n$ setpoint composite show shop\n{shown}```\n");
    assert!(
        include_str!("../../../../docs/composite.md").contains(&block),
        "docs/composite.md shows something else than\n{block}"
    );
    assert_eq!(beside.run(&[&show[..], &["--detailed-exitcode"]].concat()).code(), 2);

    let json: Value = serde_json::from_str(&beside.run(&[&show[..], &["--json"]].concat()).out()).unwrap();
    assert_eq!(
        (&json["id"], &json["keys"], &json["configMap"]["state"]),
        (&beside.id().into(), &8.into(), &"differs".into())
    );
    assert_eq!(json["issues"][0]["kind"], "UnknownCompositeRole");
    config_map(
        &beside.namespace,
        &json!({ "app.kubernetes.io/managed-by": "another" }),
        &json["payload"].to_string(),
    );
    insta::assert_snapshot!("show-same", beside.text(&show));
    assert_eq!(beside.run(&[&show[..], &["--detailed-exitcode"]].concat()).code(), 0);
    let alone = beside.text(&[&show[..], &["--consul-only"]].concat());
    assert!(!alone.contains("ConfigMap"), "{alone}");
}

#[tokio::test]
async fn plan_says_what_would_be_written_for_a_manifest() {
    let beside = need!(Beside::start().await);
    let spec = json!({ "originNamespace": beside.id() });
    beside.sandbox.write("composite.yaml", &manifest("composite", &spec));
    beside.say("cart/compositeRole", "satellite").await;
    let plan = ["plan", "composite.yaml"];
    insta::assert_snapshot!("plan-create", beside.text(&plan));
    assert_eq!(beside.run(&[&plan[..], &["--detailed-exitcode"]].concat()).code(), 2);
    let printed = beside.run(&[&plan[..], &["--json"]].concat()).out();
    let envelope: setpoint_plan::Plan = serde_json::from_str(&printed).unwrap();
    let kinds: Vec<_> = envelope.operations.iter().map(|operation| operation.kind.as_str()).collect();
    assert_eq!(kinds, ["claim", "key", "key", "configmap"]);
    assert_eq!(envelope.operations[3].after, [0, 1, 2], "it is published when the keys are there");

    for operation in &envelope.operations[..3] {
        beside.consul.put(&operation.name, operation.detail[0].new.as_ref().unwrap()).await.unwrap();
    }
    let now: Value = serde_json::from_str(&beside.run(&["show", beside.id(), "--json"]).out()).unwrap();
    config_map(&beside.namespace, &json!({}), &now["payload"].to_string());
    insta::assert_snapshot!("plan-nothing", beside.text(&plan));
    assert_eq!(beside.run(&[&plan[..], &["--detailed-exitcode"]].concat()).code(), 0);

    config_map(&beside.namespace, &json!({ "app.kubernetes.io/managed-by": "another" }), "{}");
    insta::assert_snapshot!("plan-handed-over", beside.text(&plan));

    // An older one of the namespace counts, whatever the file says.
    let older =
        manifest("older", &json!({ "originNamespace": beside.id(), "baseline": { "originNamespace": "x" } }));
    kubectl(&beside.namespace, &["apply", "-f", "-"], &older);
    let text = beside.text(&plan);
    assert!(text.contains("older is older, and the oldest of a namespace counts"), "{text}");
    assert!(text.contains("composite/x/structure"), "what the older one declares is planned: {text}");
}

#[tokio::test]
async fn plan_says_what_would_be_written_for_the_composite_of_a_namespace() {
    let beside = need!(Beside::start().await);
    let ran = beside.run(&["plan"]);
    assert_eq!(ran.code(), 1);
    assert!(ran.err().contains("it has no Composite that stays, and no file is given"), "{}", ran.err());

    let apply = |name: &str, spec: &Value| {
        kubectl(&beside.namespace, &["apply", "-f", "-"], &manifest(name, spec));
    };
    let spec = json!({ "originNamespace": "o", "controllerNamespace": "c", "peerNamespace": "p",
        "baseline": { "originNamespace": beside.id() } });
    apply("first", &spec);
    let owned = format!("composite/elsewhere/structure/{}/compositeRole", beside.id());
    let status = json!({ "status": { "ownedKeys": [owned] } }).to_string();
    kubectl(
        &beside.namespace,
        &["patch", "composite/first", "--subresource=status", "--type=merge", "-p", &status],
        "",
    );
    beside.consul.put(&owned, "satellite").await.unwrap();
    let claim = format!("composite/elsewhere/claims/{0}/compositeRole/{0}/first", beside.id());
    beside.consul.put(&claim, "satellite").await.unwrap();
    beside.say("c/compositeRole", "baseline").await;
    insta::assert_snapshot!("plan-move", beside.text(&["plan"]));
}

#[test]
fn what_is_wrong_is_said_with_its_kind() {
    let sandbox = Sandbox::new("");
    let consul = ["--consul-url", "http://127.0.0.1:1", "--consul-only"];
    let ran = sandbox.run(&[&["composite", "show", "x"][..], &consul].concat());
    assert_eq!(ran.code(), 1);
    insta::assert_snapshot!("consul-away", ran.err());
    let ran = sandbox.run(&[&["--log-format", "json", "composite", "show", "x"][..], &consul].concat());
    let error: Value = serde_json::from_str(&ran.err()).unwrap();
    assert_eq!((&error["kind"], &error["level"]), (&"consul".into(), &"error".into()));

    sandbox.write("odd.yaml", &manifest("odd", &json!({ "originNamespace": "o", "peerNamespace": "p" })));
    let ran = sandbox.run(&[&["composite", "plan", "odd.yaml", "--namespace", "o"][..], &consul].concat());
    assert_eq!(
        (ran.code(), ran.err().as_str()),
        (
            1,
            "error: can't use the Composite odd: controllerNamespace and peerNamespace belong together: set both or neither\n"
        )
    );
    sandbox.write("none.yaml", "kind: ConfigMap\n---\nkind: Secret\n");
    let ran = sandbox.run(&[&["composite", "plan", "none.yaml", "--namespace", "o"][..], &consul].concat());
    assert_eq!((ran.code(), ran.err().as_str()), (1, "error: can't use none.yaml: it holds no Composite\n"));
    sandbox.write("typo.yaml", &manifest("typo", &json!({ "originNamespaces": "o" })));
    let ran = sandbox.run(&[&["composite", "plan", "typo.yaml", "--namespace", "o"][..], &consul].concat());
    assert!(
        ran.err().starts_with("error: can't use typo.yaml: no Composite: unknown field `originNamespaces`"),
        "{}",
        ran.err()
    );
}
