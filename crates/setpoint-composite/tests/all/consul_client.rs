//! The client, against a real Consul: transactions, tokens, logins, TLS.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{Api, PostParams};
use reqwest::Method;
use serde_json::{Value, json};
use setpoint_composite::operator::apply;
use setpoint_consul::{Auth, Client, ClientCertificate, Error, Login, Read, Secret, Settings, Tls};
use setpoint_structure::declare::{Changes, changes, owned_after, removal};
use setpoint_testutils::certificates::Authority;
use setpoint_testutils::{Acl, Consul, Kubernetes, Port, Workdir, need};

use crate::watching::client;

fn keys(name: &str) -> BTreeMap<String, String> {
    (0..3).map(|number| (format!("{name}/{number}"), format!("value {number}"))).collect()
}

async fn compare(client: &Client, declared: &BTreeMap<String, String>, owned: &BTreeSet<String>) -> Changes {
    let present =
        client.read(declared.keys().chain(owned).map(String::as_str)).await.expect("they can be read");
    changes(declared, owned, &present)
}

#[tokio::test]
async fn a_rewrite_changes_only_what_differs() {
    let consul = need!(Consul::shared().await);
    let client = client(&consul.url());
    let declared = keys("rewrite");
    apply(&client, &compare(&client, &declared, &BTreeSet::new()).await).await.unwrap();
    consul.put("rewrite/another", "not ours").await.unwrap();
    let before = client.list("rewrite/", Read::Default).await.unwrap();
    assert_eq!(before.entries.len(), 4);
    assert!(compare(&client, &declared, &owned_after(&declared)).await.is_empty());

    consul.put("rewrite/1", "").await.unwrap();
    consul.delete("rewrite/2").await.unwrap();
    let again = compare(&client, &declared, &owned_after(&declared)).await;
    assert_eq!((again.sets.len(), again.deletes.len()), (2, 0));
    apply(&client, &again).await.unwrap();
    let after = client.list("rewrite/", Read::Consistent).await.unwrap();
    let texts: Vec<_> = after.entries.iter().map(|entry| (entry.key.as_str(), entry.text())).collect();
    assert_eq!(
        texts[..3],
        before.entries[..3].iter().map(|e| (e.key.as_str(), e.text())).collect::<Vec<_>>()
    );
    assert_eq!(
        after.entries[0].modify_index, before.entries[0].modify_index,
        "what was right is not touched"
    );

    let present = client.read(declared.keys().map(String::as_str)).await.unwrap();
    apply(&client, &removal(&owned_after(&declared), &present)).await.unwrap();
    let left = client.list("rewrite/", Read::Default).await.unwrap();
    assert_eq!(left.entries.len(), 1, "no tree is deleted: {:?}", left.entries);
}

#[tokio::test]
async fn a_transaction_is_refused_as_a_whole_when_one_key_has_changed() {
    let consul = need!(Consul::shared().await);
    let client = client(&consul.url());
    let declared = keys("conflict");
    let stale = compare(&client, &declared, &BTreeSet::new()).await;
    consul.put("conflict/1", "somebody was faster").await.unwrap();
    let refused = apply(&client, &stale).await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    let now = client.list("conflict/", Read::Default).await.unwrap();
    assert_eq!(now.entries.len(), 1, "nothing of it was done: {:?}", now.entries);

    let fresh = compare(&client, &declared, &BTreeSet::new()).await;
    apply(&client, &fresh).await.unwrap();
    let stale = removal(&owned_after(&declared), &client.read(["conflict/0", "conflict/1"]).await.unwrap());
    consul.put("conflict/0", "still wanted").await.unwrap();
    assert!(matches!(apply(&client, &stale).await, Err(Error::Conflict(_))));
    assert_eq!(client.list("conflict/", Read::Default).await.unwrap().entries.len(), 3);
}

#[tokio::test]
async fn what_a_former_leader_still_has_on_its_way_is_refused() {
    let consul = need!(Consul::shared().await);
    let client = client(&consul.url());
    let (reference, role, other) = ("term/reference", "term/role", "term/other");
    let fenced = async |term: u64, keys: &[&str]| {
        let declared: BTreeMap<_, _> =
            keys.iter().map(|key| ((*key).to_owned(), "value".to_owned())).collect();
        let present = client.read(keys.iter().copied()).await.expect("they can be read");
        changes(&declared, &owned_after(&declared), &present).fenced(term, reference, &present)
    };
    for _ in 0..2 {
        apply(&client, &fenced(1, &[reference, role]).await).await.unwrap();
    }
    // The leader of the first term is stopped when it is about to create one more key.
    let late = fenced(1, &[reference, role, other]).await;
    assert_eq!(late.sets.len(), 1);
    // That of the second finds all as it should be, and only says so.
    apply(&client, &fenced(2, &[reference, role]).await).await.unwrap();
    let refused = apply(&client, &late).await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    let entries = client.list("term/", Read::Consistent).await.unwrap().entries;
    let found: Vec<_> = entries.iter().map(|entry| (entry.key.as_str(), entry.flags)).collect();
    assert_eq!(found, [(reference, 2), (role, 0)]);
}

#[tokio::test]
async fn what_a_former_leader_was_about_to_create_does_not_come_after_it_was_removed() {
    let consul = need!(Consul::shared().await);
    let client = client(&consul.url());
    let (reference, role) = ("created/reference", "created/role");
    let declared = BTreeMap::from([reference, role].map(|key| (key.to_owned(), "value".to_owned())));
    let fenced = async |transitions: u64| {
        let present = client.read([reference, role]).await.expect("they can be read");
        changes(&declared, &owned_after(&declared), &present).fenced(transitions, reference, &present)
    };
    // One leader is stopped with each of the transactions on its way by which it creates everything.
    let mut late = vec![fenced(1).await];
    apply(&client, &late[0]).await.unwrap();
    late.push(fenced(1).await);
    // Its successor completes them, and removes everything with the Composite.
    while !fenced(2).await.is_empty() {
        apply(&client, &fenced(2).await).await.unwrap();
    }
    let present = client.read([reference, role]).await.unwrap();
    assert_eq!(present.len(), 2);
    apply(&client, &removal(&owned_after(&declared), &present)).await.unwrap();

    for changes in &late {
        // That a key must not be there holds again.
        let _ = apply(&client, changes).await;
    }
    let entries = client.list("created/", Read::Consistent).await.unwrap().entries;
    let found: Vec<_> = entries.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(found, [reference], "nothing but the reference can come back, which names no namespace");
}

#[tokio::test]
async fn as_many_operations_as_there_are_fit_into_transactions() {
    let consul = need!(Consul::shared().await);
    let client = client(&consul.url());
    let declared: BTreeMap<_, _> =
        (0..150).map(|number| (format!("many/{number:03}"), number.to_string())).collect();
    apply(&client, &compare(&client, &declared, &BTreeSet::new()).await).await.unwrap();
    assert_eq!(client.list("many/", Read::Default).await.unwrap().entries.len(), 150);
}

#[tokio::test]
async fn a_key_that_is_not_there_is_none_and_one_that_is_denied_is_an_error() {
    let consul = need!(Consul::start(Acl::On).await);
    let rules = r#"key_prefix "open/" { policy = "write" }"#;
    let token = consul.token_with("some", rules).await.unwrap();
    let auth = Auth::Token(Secret::new(&token));
    let client = Client::new(Settings { auth, ..Settings::new(consul.url()) }).unwrap();
    assert_eq!(client.get("open/a", Read::Default).await.unwrap(), None);
    assert!(matches!(client.get("closed/a", Read::Default).await, Err(Error::Denied(_))));

    let declared =
        BTreeMap::from([("open/a".to_owned(), "1".to_owned()), ("closed/a".to_owned(), "1".to_owned())]);
    let denied = apply(&client, &changes(&declared, &BTreeSet::new(), &[])).await;
    assert!(matches!(denied, Err(Error::Denied(_))), "{denied:?}");
    assert_eq!(client.get("open/a", Read::Default).await.unwrap(), None, "nothing of it was done");

    let unknown = Auth::Token(Secret::new("5e790147-0000-4000-8000-00000000dead"));
    let client = Client::new(Settings { auth: unknown, ..Settings::new(consul.url()) }).unwrap();
    let denied = client.list("open/", Read::Default).await;
    assert!(matches!(denied, Err(Error::Denied(_))), "{denied:?}");

    // Those who come without a token are not told that something was filtered.
    let anonymous = Client::new(Settings::new(consul.url())).unwrap();
    consul.put("open/a", "1").await.unwrap();
    let seen = anonymous.list("open/", Read::Default).await.unwrap();
    assert_eq!((seen.entries.len(), seen.filtered_by_acls), (0, false));
    assert!(!anonymous.sees_what_is_filtered().await.unwrap());
    assert!(client.sees_what_is_filtered().await.unwrap());
}

#[tokio::test]
async fn where_acls_are_off_nobody_needs_a_token() {
    let consul = need!(Consul::shared().await);
    assert!(client(&consul.url()).sees_what_is_filtered().await.unwrap());
}

#[test]
fn an_address_with_a_password_is_refused_and_not_shown() {
    for url in ["http://user:hidden@localhost:8500", "user:hidden@localhost"] {
        let refused = Client::new(Settings::new(url)).unwrap_err();
        assert!(matches!(refused, Error::Settings(_)));
        assert!(!format!("{refused} {refused:?} {}", refused.message()).contains("hidden"));
    }
}

#[tokio::test]
async fn many_keys_are_read_in_few_requests_and_only_those() {
    let consul = need!(Consul::shared().await);
    let client = client(&consul.url());
    let keys: Vec<_> = (0..100).map(|number| format!("together/{number:03}")).collect();
    for key in keys.iter().skip(1) {
        consul.put(key, "1").await.unwrap();
        consul.put(&format!("{key}-not-asked-for"), "1").await.unwrap();
    }
    let read = client.read_together(&keys).await.unwrap();
    assert_eq!(
        read.iter().map(|entry| &entry.key).collect::<Vec<_>>(),
        keys.iter().skip(1).collect::<Vec<_>>()
    );
    assert_eq!(client.read_together(&[]).await.unwrap(), []);
}

#[tokio::test]
async fn tls_wants_the_right_authority_and_a_client_certificate() {
    let folder = Workdir::new("consul-tls");
    let authority = Authority::new();
    let (server, ours) = (authority.server(), authority.server());
    let write = |name: &str, text: String| {
        folder.write(name, text);
        folder.path().join(name)
    };
    let ca_file = write("ca.crt", authority.certificate());
    let other_ca = write("other.crt", Authority::new().certificate());
    let (cert_file, key_file) = (write("server.crt", server.certificate), write("server.key", server.key));
    let certificate = ClientCertificate {
        certificate: write("our.crt", ours.certificate),
        key: write("our.key", ours.key),
    };
    let port = Port::lease();
    let https = json!({
        "ports": { "https": port.number() },
        "tls": { "https": {
            "ca_file": ca_file, "cert_file": cert_file, "key_file": key_file, "verify_incoming": true,
        } },
    });
    let consul = need!(Consul::start_with(Acl::Off, &https).await);
    consul.put("tls/a", "1").await.unwrap();
    let read = async |tls: Tls| {
        let settings = Settings { tls, ..Settings::new(format!("https://localhost:{}", port.number())) };
        Client::new(settings)?.list("tls/", Read::Default).await
    };
    let right = Tls { ca_file: Some(ca_file.clone()), client: Some(certificate.clone()) };
    assert_eq!(read(right.clone()).await.unwrap().entries.len(), 1);
    let unknown = read(Tls { ca_file: Some(other_ca), ..right.clone() }).await;
    assert!(matches!(unknown, Err(Error::Transport(_))), "{unknown:?}");
    let nobody = read(Tls { client: None, ..right.clone() }).await;
    assert!(matches!(nobody, Err(Error::Transport(_))), "{nobody:?}");
    let missing = read(Tls { ca_file: Some(folder.path().join("missing")), ..right.clone() }).await;
    assert!(matches!(missing, Err(Error::File { .. })), "{missing:?}");
    let swapped = ClientCertificate { key: ca_file, ..certificate };
    let swapped = read(Tls { client: Some(swapped), ..right }).await;
    assert!(matches!(swapped, Err(Error::Settings(_))), "{swapped:?}");
}

/// The token of a new service account; with all rights, or with none.
async fn account(kubernetes: &Kubernetes, name: &str, all: bool) -> String {
    let client = kubernetes.client().await;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    let create = PostParams::default();
    let account: ServiceAccount = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    accounts.create(&create, &account).await.unwrap();
    if all {
        let binding: ClusterRoleBinding = serde_json::from_value(json!({
            "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": "default" }],
        }))
        .unwrap();
        Api::all(client).create(&create, &binding).await.unwrap();
    }
    let answer = accounts.create_token_request(name, &create, &TokenRequest::default()).await.unwrap();
    answer.status.unwrap().token
}

#[tokio::test]
async fn a_service_account_logs_in_and_out() {
    let kubernetes = need!(Kubernetes::shared().await);
    let consul = need!(Consul::start(Acl::On).await);
    let reviewer = account(kubernetes, "consul-reviewer", true).await;
    let ours = account(kubernetes, "composite-operator", false).await;
    let manage = async |path: &str, body: Value| {
        let answer = consul.request(Method::PUT, path).json(&body).send().await.unwrap();
        assert!(answer.status().is_success(), "{path}: {}", answer.text().await.unwrap_or_default());
    };
    manage(
        "/v1/acl/auth-method",
        json!({ "Name": "cluster", "Type": "kubernetes", "Config": {
            "Host": kubernetes.url(), "CACert": kubernetes.authority().certificate(), "ServiceAccountJWT": reviewer,
        } }),
    )
    .await;
    consul.set_policy("open", r#"key_prefix "open/" { policy = "write" }"#).await.unwrap();
    manage("/v1/acl/role", json!({ "Name": "operator", "Policies": [{ "Name": "open" }] })).await;
    let rule = json!({
        "AuthMethod": "cluster", "BindType": "role", "BindName": "operator",
        "Selector": r#"serviceaccount.name=="composite-operator""#,
    });
    manage("/v1/acl/binding-rule", rule).await;

    let folder = Workdir::new("login");
    folder.write("token", &ours);
    let login = Login { method: "cluster".to_owned(), bearer_file: folder.path().join("token") };
    let auth = Auth::Login(login);
    let client = Client::new(Settings { auth, ..Settings::new(consul.url()) }).unwrap();
    let declared = BTreeMap::from([("open/a".to_owned(), "1".to_owned())]);
    apply(&client, &changes(&declared, &BTreeSet::new(), &[])).await.unwrap();
    let logins = async || -> Vec<String> {
        let answer = consul.request(Method::GET, "/v1/acl/tokens?authmethod=cluster").send().await.unwrap();
        let tokens: Vec<Value> = answer.json().await.unwrap();
        tokens.iter().map(|token| token["AccessorID"].as_str().unwrap().to_owned()).collect()
    };
    client.list("open/", Read::Default).await.unwrap();
    let first = logins().await;
    assert_eq!(first.len(), 1, "one login serves all requests");

    // Somebody deletes it: it is made anew.
    let answer = consul.request(Method::DELETE, &format!("/v1/acl/token/{}", first[0])).send().await.unwrap();
    assert!(answer.status().is_success());
    assert_eq!(client.list("open/", Read::Default).await.unwrap().entries.len(), 1);
    let second = logins().await;
    assert_eq!(second.len(), 1);
    assert_ne!(first, second);

    client.logout().await.unwrap();
    assert_eq!(logins().await, Vec::<String>::new(), "nothing is left behind");

    folder.write("token", &reviewer);
    let denied = client.list("open/", Read::Default).await;
    assert!(matches!(denied, Err(Error::Denied(_))), "no rule binds this account: {denied:?}");
}
