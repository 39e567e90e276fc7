//! One API server for all tests of a binary, and a namespace for each.

use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use tokio::sync::OnceCell;

use super::Kubernetes;
use crate::part::Missing;
use crate::process::tail;

/// A namespace of one test's own in the shared API server.
///
/// When the test fails, the end of the API server's log is shown.
#[derive(Debug)]
pub struct TestNamespace {
    kubernetes: &'static Kubernetes,
    name: String,
}

impl Kubernetes {
    /// The API server that the tests of one binary share, started by the first that asks for it.
    pub async fn shared() -> Result<&'static Self, Missing> {
        static SHARED: OnceCell<Kubernetes> = OnceCell::const_new();
        SHARED.get_or_try_init(Self::start).await
    }

    /// A new namespace in the shared API server.
    pub async fn namespace() -> Result<TestNamespace, Missing> {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let kubernetes = Self::shared().await?;
        let name = format!("test-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let namespace = Namespace {
            metadata: ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        let namespaces: Api<Namespace> = Api::all(kubernetes.client().await);
        namespaces.create(&PostParams::default(), &namespace).await.expect("a namespace can be made");
        Ok(TestNamespace { kubernetes, name })
    }
}

impl TestNamespace {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The API server it is in.
    pub fn kubernetes(&self) -> &'static Kubernetes {
        self.kubernetes
    }

    /// A client of the administrator.
    pub async fn client(&self) -> Client {
        self.kubernetes.client().await
    }
}

impl Drop for TestNamespace {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.kubernetes.folder().join("kube-apiserver.log");
            eprintln!("--- kube-apiserver: the end of its log ---\n{}", tail(&log));
        }
    }
}
