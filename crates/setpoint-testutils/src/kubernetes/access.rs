//! Clients: of the administrator, and of accounts that may do only what they are given.

use std::sync::Once;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding};
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};

use super::Kubernetes;
use crate::certificates::Authority;
use crate::ports::Port;

impl Kubernetes {
    /// Makes an account in a namespace that may do there what the rules say and nothing else, and a client of it.
    pub async fn client_with(&self, namespace: &str, account: &str, rules: Vec<PolicyRule>) -> Client {
        let token = self.account_token(namespace, account, rules).await.expect("an account can be made");
        client(&self.kubeconfig(&token)).await
    }

    async fn account_token(
        &self,
        namespace: &str,
        name: &str,
        rules: Vec<PolicyRule>,
    ) -> kube::Result<String> {
        let admin = self.client().await;
        let named = json!({ "metadata": { "name": name } });
        let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), namespace);
        let create = PostParams::default();
        accounts.create(&create, &from(named.clone())).await?;
        let mut role: Role = from(named.clone());
        role.rules = Some(rules);
        Api::namespaced(admin.clone(), namespace).create(&create, &role).await?;
        let binding: RoleBinding = from(json!({
            "metadata": { "name": name },
            "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name },
            "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": namespace }],
        }));
        Api::namespaced(admin.clone(), namespace).create(&create, &binding).await?;
        let request = TokenRequest { spec: TokenRequestSpec::default(), ..TokenRequest::default() };
        let answer = accounts.create_token_request(name, &create, &request).await?;
        Ok(answer.status.map(|status| status.token).unwrap_or_default())
    }
}

/// A configuration of clients that come with a token. It is YAML as well.
pub(super) fn kubeconfig(port: &Port, authority: &Authority, token: &str) -> Value {
    let authority = BASE64_STANDARD.encode(authority.certificate());
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{
            "name": "test",
            "cluster": { "server": format!("https://{}", port.address()), "certificate-authority-data": authority },
        }],
        "users": [{ "name": "test", "user": { "token": token } }],
        "contexts": [{ "name": "test", "context": { "cluster": "test", "user": "test", "namespace": "default" } }],
    })
}

/// A client for a configuration.
pub(super) async fn client(configuration: &Value) -> Client {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Somebody may have installed one already, which is as good.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    });
    let configuration: Kubeconfig = from(configuration.clone());
    let options = KubeConfigOptions::default();
    let mut configuration =
        Config::from_custom_kubeconfig(configuration, &options).await.expect("the configuration is complete");
    configuration.proxy_url = None;
    Client::try_from(configuration).expect("a client can be made")
}

/// A Kubernetes object from the JSON that one would write in a manifest.
fn from<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("the object is valid")
}
