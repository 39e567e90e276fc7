//! A target of any kind, so that the same tests run through an API and on an instance of this machine.

use std::collections::BTreeMap;

use setpoint_dataplane::client::{
    ApiError, Bundle, Changed, Client, FileKind, For, Health, OperateError, Process, Reload, RunningServer,
};
use setpoint_dataplane::costs::Costs;
use setpoint_dataplane::files::Usage;
use setpoint_dataplane::local::LocalTarget;
use setpoint_dataplane::target::{ApiTarget, Effect, Target};
use setpoint_haproxy::compare::Operation;
use setpoint_haproxy::model::Context;
use setpoint_haproxy::text::Document;

#[derive(Clone, Debug)]
pub(crate) enum Any {
    Api(ApiTarget),
    Local(LocalTarget),
}

impl Any {
    /// The client, where there is one.
    pub(crate) fn client(&self) -> &Client {
        match self {
            Self::Api(target) => target.client(),
            Self::Local(_) => panic!("nobody is asked by HTTP"),
        }
    }

    /// The same as if it were an original.
    pub(crate) fn as_original(&self) -> ApiTarget {
        match self {
            Self::Api(target) => target.clone().as_original(),
            Self::Local(_) => panic!("it is no API"),
        }
    }
}

/// Passes a call on.
macro_rules! on {
    ($any:expr, $target:ident => $call:expr) => {
        match $any {
            Any::Api($target) => $call,
            Any::Local($target) => $call,
        }
    };
}

impl Target for Any {
    fn endpoint(&self) -> &str {
        on!(self, target => target.endpoint())
    }

    fn context(&self) -> &Context {
        on!(self, target => target.context())
    }

    fn needs_text(&self, operation: &Operation) -> Option<String> {
        on!(self, target => target.needs_text(operation))
    }

    fn needs_reload(&self, operation: &Operation) -> Option<String> {
        on!(self, target => target.needs_reload(operation))
    }

    fn always_reloads(&self) -> bool {
        on!(self, target => target.always_reloads())
    }

    fn rewrites(&self) -> bool {
        on!(self, target => target.rewrites())
    }

    fn takes_runtime_actions(&self) -> bool {
        on!(self, target => target.takes_runtime_actions())
    }

    fn costs(&self) -> Costs {
        on!(self, target => target.costs())
    }

    fn loses(&self, text: &Document) -> Option<String> {
        on!(self, target => target.loses(text))
    }

    fn carries(&self, bundle: &Bundle) -> bool {
        on!(self, target => target.carries(bundle))
    }

    fn tells(&self, kind: FileKind, usage: &Usage, bytes: &[u8]) -> bool {
        on!(self, target => target.tells(kind, usage, bytes))
    }

    async fn version(&self) -> Result<u64, ApiError> {
        on!(self, target => target.version().await)
    }

    async fn read(&self) -> Result<(Vec<u8>, u64), ApiError> {
        on!(self, target => target.read().await)
    }

    async fn begin(&self, version: u64) -> Result<String, ApiError> {
        on!(self, target => target.begin(version).await)
    }

    async fn operate(&self, operation: &Operation, made_for: For<'_>) -> Result<Changed, OperateError> {
        on!(self, target => target.operate(operation, made_for).await)
    }

    async fn operate_bundle(&self, bundle: &Bundle, made_for: For<'_>) -> Result<Changed, OperateError> {
        on!(self, target => target.operate_bundle(bundle, made_for).await)
    }

    async fn commit(&self, id: &str, reloads: bool) -> Result<Changed, ApiError> {
        on!(self, target => target.commit(id, reloads).await)
    }

    async fn abort(&self, id: &str) -> Result<(), ApiError> {
        on!(self, target => target.abort(id).await)
    }

    async fn push(&self, text: &[u8], version: u64) -> Result<Changed, ApiError> {
        on!(self, target => target.push(text, version).await)
    }

    async fn push_with_actions(&self, text: &[u8], version: u64, actions: &str) -> Result<Changed, ApiError> {
        on!(self, target => target.push_with_actions(text, version, actions).await)
    }

    async fn running_servers(&self, backend: &str) -> Result<Vec<RunningServer>, ApiError> {
        on!(self, target => target.running_servers(backend).await)
    }

    async fn server_weights(&self) -> Result<BTreeMap<(String, String), i64>, ApiError> {
        on!(self, target => target.server_weights().await)
    }

    async fn map_length(&self, name: &str) -> Result<Option<usize>, ApiError> {
        on!(self, target => target.map_length(name).await)
    }

    async fn set_admin_state(&self, backend: &str, server: &str, state: &str) -> Result<(), ApiError> {
        on!(self, target => target.set_admin_state(backend, server, state).await)
    }

    async fn health(&self) -> Result<Health, ApiError> {
        on!(self, target => target.health().await)
    }

    async fn pending_reload(&self) -> Result<Option<String>, ApiError> {
        on!(self, target => target.pending_reload().await)
    }

    async fn reload(&self, id: &str) -> Result<Reload, ApiError> {
        on!(self, target => target.reload(id).await)
    }

    async fn process(&self) -> Result<Process, ApiError> {
        on!(self, target => target.process().await)
    }

    async fn files(&self, kind: FileKind) -> Result<Vec<String>, ApiError> {
        on!(self, target => target.files(kind).await)
    }

    async fn file(&self, kind: FileKind, name: &str) -> Result<Option<Vec<u8>>, ApiError> {
        on!(self, target => target.file(kind, name).await)
    }

    async fn create_file(&self, kind: FileKind, name: &str, bytes: &[u8]) -> Result<Effect, ApiError> {
        on!(self, target => target.create_file(kind, name, bytes).await)
    }

    async fn replace_file(
        &self,
        kind: FileKind,
        name: &str,
        bytes: &[u8],
        told: Option<&Usage>,
    ) -> Result<Effect, ApiError> {
        on!(self, target => target.replace_file(kind, name, bytes, told).await)
    }

    async fn write_notes(&self, bytes: &[u8], is_there: bool) -> Result<(), ApiError> {
        on!(self, target => target.write_notes(bytes, is_there).await)
    }

    async fn delete_file(&self, kind: FileKind, name: &str) -> Result<(), ApiError> {
        on!(self, target => target.delete_file(kind, name).await)
    }
}
