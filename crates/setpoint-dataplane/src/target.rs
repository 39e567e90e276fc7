//! What a sync works on: a Dataplane API, ours or the original, or an instance of this machine.

use std::collections::BTreeMap;

use setpoint_haproxy::compare::{Operation, Subject};
use setpoint_haproxy::model::{Context, ObjectKind, Version};
use setpoint_haproxy::text::{Document, SectionKind};
use setpoint_plan::Action;

use crate::client::entries;
use crate::client::{
    ApiError, Bundle, Capability, Changed, Client, FileKind, For, Health, OperateError, Process, PushReload,
    Reload, RunningServer,
};
use crate::costs::Costs;
use crate::files::{NOTES, Usage};

/// How a file that was written takes effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It has, or nothing uses it.
    Now,
    /// With a reload that was ordered, under this name.
    Ordered(String),
    /// With the next reload, which nobody has ordered.
    NextReload,
}

/// Something that has a configuration, files, and a HAProxy that runs with them.
pub trait Target: Sync {
    /// Where it is, in words.
    fn endpoint(&self) -> &str;

    /// What configurations are read for.
    fn context(&self) -> &Context;

    /// Returns why only a push of the whole text carries out an operation, if that is so.
    fn needs_text(&self, operation: &Operation) -> Option<String>;

    /// Returns why an operation that HAProxy could be told while it runs takes a reload here, if that is so.
    fn needs_reload(&self, operation: &Operation) -> Option<String>;

    /// Returns whether a commit and the push of a text always take a reload, whatever they change.
    fn always_reloads(&self) -> bool;

    /// Returns whether a text is written in other words than it was pushed.
    fn rewrites(&self) -> bool;

    /// Returns whether a text can be pushed without a reload, and a running HAProxy be told some actions beside it.
    fn takes_runtime_actions(&self) -> bool;

    /// What calls cost.
    fn costs(&self) -> Costs;

    /// Returns why a text would mean something else after it was written here, if it would.
    fn loses(&self, text: &Document) -> Option<String>;

    /// Returns whether there is a call for several operations at once.
    fn carries(&self, bundle: &Bundle) -> bool;

    /// Returns whether a running HAProxy can be told what a file holds that is replaced, where its configuration uses it so.
    fn tells(&self, kind: FileKind, usage: &Usage, bytes: &[u8]) -> bool;

    /// Reads the version of the configuration.
    fn version(&self) -> impl Future<Output = Result<u64, ApiError>>;

    /// Reads the text of the configuration, and its version.
    fn read(&self) -> impl Future<Output = Result<(Vec<u8>, u64), ApiError>>;

    /// Begins a transaction for a version. Returns its name.
    fn begin(&self, version: u64) -> impl Future<Output = Result<String, ApiError>>;

    /// Carries out an operation.
    fn operate(
        &self,
        operation: &Operation,
        made_for: For<'_>,
    ) -> impl Future<Output = Result<Changed, OperateError>>;

    /// Carries out several operations by one call.
    fn operate_bundle(
        &self,
        bundle: &Bundle,
        made_for: For<'_>,
    ) -> impl Future<Output = Result<Changed, OperateError>>;

    /// Commits a transaction. With `reloads`, a reload follows whatever was changed.
    fn commit(&self, id: &str, reloads: bool) -> impl Future<Output = Result<Changed, ApiError>>;

    /// Drops a transaction.
    fn abort(&self, id: &str) -> impl Future<Output = Result<(), ApiError>>;

    /// Puts a whole text in the place of the present one, which must have the given version.
    fn push(&self, text: &[u8], version: u64) -> impl Future<Output = Result<Changed, ApiError>>;

    /// Does the same without a reload, and tells a running HAProxy some actions.
    fn push_with_actions(
        &self,
        text: &[u8],
        version: u64,
        actions: &str,
    ) -> impl Future<Output = Result<Changed, ApiError>>;

    /// Lists the servers of a backend as they run.
    fn running_servers(&self, backend: &str) -> impl Future<Output = Result<Vec<RunningServer>, ApiError>>;

    /// Asks for the weights of all servers that run, by backend and name: for an API whose list of servers does not tell them.
    fn server_weights(&self) -> impl Future<Output = Result<BTreeMap<(String, String), i64>, ApiError>>;

    /// Asks how many entries a map has as it runs; none if HAProxy has not loaded it.
    fn map_length(&self, name: &str) -> impl Future<Output = Result<Option<usize>, ApiError>>;

    /// Sets what somebody has decided of a server that runs: `ready`, `maint` or `drain`.
    fn set_admin_state(
        &self,
        backend: &str,
        server: &str,
        state: &str,
    ) -> impl Future<Output = Result<(), ApiError>>;

    /// Asks how its servers are, and how many requests it could not answer.
    fn health(&self) -> impl Future<Output = Result<Health, ApiError>>;

    /// Asks for the name of a reload that waits or is under way; none if there is none.
    fn pending_reload(&self) -> impl Future<Output = Result<Option<String>, ApiError>>;

    /// Asks what became of a reload.
    fn reload(&self, id: &str) -> impl Future<Output = Result<Reload, ApiError>>;

    /// Asks which process serves.
    fn process(&self) -> impl Future<Output = Result<Process, ApiError>>;

    /// Lists the names of the files of a kind.
    fn files(&self, kind: FileKind) -> impl Future<Output = Result<Vec<String>, ApiError>>;

    /// Reads what a file holds; none if it is not there.
    fn file(&self, kind: FileKind, name: &str) -> impl Future<Output = Result<Option<Vec<u8>>, ApiError>>;

    /// Makes a file that nothing uses yet, or replaces it if somebody else has made it.
    fn create_file(
        &self,
        kind: FileKind,
        name: &str,
        bytes: &[u8],
    ) -> impl Future<Output = Result<Effect, ApiError>>;

    /// Replaces what a file holds. A running HAProxy is told of it where it is said how its configuration uses the file; else nothing
    /// but the file is changed.
    fn replace_file(
        &self,
        kind: FileKind,
        name: &str,
        bytes: &[u8],
        told: Option<&Usage>,
    ) -> impl Future<Output = Result<Effect, ApiError>>;

    /// Writes the notes that are kept beside the general files, and that no HAProxy reads. `is_there` says whether there are some.
    fn write_notes(&self, bytes: &[u8], is_there: bool) -> impl Future<Output = Result<(), ApiError>>;

    /// Deletes a file.
    fn delete_file(&self, kind: FileKind, name: &str) -> impl Future<Output = Result<(), ApiError>>;
}

/// A Dataplane API, and the HAProxy behind it.
#[derive(Clone, Debug)]
pub struct ApiTarget {
    client: Client,
    cx: Context,
    /// Whether Setpoint serves it.
    is_setpoint: bool,
}

impl ApiTarget {
    /// Asks which HAProxy is behind an API.
    pub async fn new(client: Client) -> Result<Self, ApiError> {
        let process = client.process().await?;
        // One that is not known is taken for the one that goes with the API.
        let haproxy: Version = process.version.parse().unwrap_or_else(|_| client.version().schema());
        Ok(Self::with_haproxy(client, haproxy))
    }

    /// An API of which is known which HAProxy is behind it, whether that runs or not.
    pub fn with_haproxy(client: Client, haproxy: Version) -> Self {
        let (cx, is_setpoint) = (client.context(haproxy), client.is_setpoint());
        Self { client, cx, is_setpoint }
    }

    /// Takes it for the original, whoever serves it: nothing is expected of it that only Setpoint's can do.
    #[must_use]
    pub fn as_original(self) -> Self {
        Self { is_setpoint: false, ..self }
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }
}

impl ApiTarget {
    /// Tells HAProxy authorities, where the API does not do so by itself. Returns whether it uses them now.
    async fn tell_authorities(&self, path: &str, bytes: &[u8]) -> Result<bool, ApiError> {
        match self.client.replace_ca_file(path, bytes).await {
            Ok(()) => Ok(true),
            Err(error @ (ApiError::NotFound { .. } | ApiError::Refused { .. })) => {
                tracing::warn!(endpoint = self.endpoint(), path, %error, "HAProxy can't be told authorities: they come with a reload");
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

/// What a server may have that the original adds to a running HAProxy.
const PLAIN: [&str; 4] = ["name", "address", "port", "weight"];

fn is_new_server(operation: &Operation) -> bool {
    operation.action == Action::Create
        && matches!(operation.subject, Subject::Child { kind: ObjectKind::Server, .. })
}

/// Returns whether a server has an address and a weight, and nothing else, not by `default-server` either.
fn is_plain(operation: &Operation) -> bool {
    let Subject::Child { new: Some(new), .. } = &operation.subject else { return false };
    let whole = operation.effective.as_ref().unwrap_or(new).to_json();
    whole.as_object().is_some_and(|whole| whole.keys().all(|name| PLAIN.contains(&name.as_str())))
}

/// Why the original does something else than its call says, if that is so: seen at 3.0, 3.2 and 3.4.
fn misdone(operation: &Operation, cx: &Context) -> Option<&'static str> {
    let goes = |attribute: &str| {
        operation.changes.iter().any(|change| change.attribute == attribute && change.new.is_none())
    };
    match (operation.kind(), operation.action) {
        ("mailers", Action::Modify) if goes("timeout") => Some("the Dataplane API keeps a timeout that goes"),
        ("group", Action::Modify) => Some("the Dataplane API loses the users of a group"),
        ("tcp_response_rule", Action::Delete)
            if operation.section.kind == SectionKind::Defaults && cx.api < Version::V3_4 =>
        {
            Some("the Dataplane API before 3.4 deletes no tcp-response rule of defaults")
        }
        ("ring", Action::Create | Action::Modify) if cx.haproxy < Version::V3_1 => {
            Some("the Dataplane API gives a size a unit, and HAProxy before 3.1 knows none")
        }
        _ => None,
    }
}

/// A line this long ends what the original reads of a text, whatever follows: seen at 3.0, 3.2 and 3.4.
const TOO_LONG: usize = 64 * 1024;

/// What the original loses of a text that it writes, if it does.
fn lost(text: &Document) -> Option<String> {
    text.sections().iter().find_map(|section| {
        let name = section.name().map(|name| format!(" {}", String::from_utf8_lossy(&name)));
        let place = format!("{}{}", section.kind(), name.unwrap_or_default());
        if section.is_conditional() {
            Some(format!("it puts `.if` and `.endif` elsewhere, and they stand around {place}"))
        } else if section.bytes().split(|byte| *byte == b'\n').any(|line| line.len() >= TOO_LONG) {
            Some(format!(
                "it reads no line of {TOO_LONG} bytes or more, as in {place}, and nothing behind one"
            ))
        } else {
            None
        }
    })
}

/// What the original tells a running HAProxy of a server that changes. For all else it reloads.
const TOLD: [&str; 5] = ["weight", "address", "port", "maintenance", "metadata"];

impl Target for ApiTarget {
    fn endpoint(&self) -> &str {
        self.client.endpoint()
    }

    fn context(&self) -> &Context {
        &self.cx
    }

    fn needs_text(&self, operation: &Operation) -> Option<String> {
        let refused = self.client.refuses(operation).map(|why| why.to_string());
        refused.or_else(|| {
            let misdone = misdone(operation, &self.cx).filter(|_| !self.is_setpoint);
            misdone.map(str::to_owned)
        })
    }

    fn needs_reload(&self, operation: &Operation) -> Option<String> {
        let is_told = || operation.changes.iter().all(|change| TOLD.contains(&change.attribute.as_str()));
        if self.is_setpoint || operation.is_server_modification() && is_told() {
            return None;
        }
        if !is_new_server(operation) {
            return Some("the Dataplane API reloads for it".to_owned());
        }
        // The original ignores what `default-server` says, and never checks it.
        (!is_plain(operation)).then(|| "the Dataplane API adds only servers without any settings".to_owned())
    }

    fn always_reloads(&self) -> bool {
        !self.is_setpoint
    }

    fn rewrites(&self) -> bool {
        !self.is_setpoint
    }

    fn takes_runtime_actions(&self) -> bool {
        // Setpoint finds out by itself what it can tell.
        !self.is_setpoint
    }

    fn costs(&self) -> Costs {
        if self.is_setpoint { Costs::SETPOINT } else { Costs::ORIGINAL }
    }

    fn loses(&self, text: &Document) -> Option<String> {
        (!self.is_setpoint).then(|| lost(text)).flatten()
    }

    fn carries(&self, bundle: &Bundle) -> bool {
        self.client.refuses_bundle(bundle).is_none()
    }

    fn tells(&self, kind: FileKind, usage: &Usage, bytes: &[u8]) -> bool {
        let has = |capability| self.client.capabilities().has(capability);
        match (kind, usage) {
            // HAProxy knows it by its path, whether that, a folder or a list has named it.
            (FileKind::Certificate, Usage::Certificate) => has(Capability::RuntimeCertificates),
            (FileKind::Map, Usage::Map) => self.is_setpoint || entries::of_map(bytes).is_some(),
            (FileKind::General, Usage::Authorities(_)) => self.is_setpoint || has(Capability::SslCaFiles),
            // The original is told entries of maps one by one, and puts new ones behind all others; of patterns it tells nothing.
            (FileKind::Map, Usage::OrderedMap) | (FileKind::General, Usage::Patterns) => self.is_setpoint,
            _ => false,
        }
    }

    async fn version(&self) -> Result<u64, ApiError> {
        self.client.configuration_version().await
    }

    async fn read(&self) -> Result<(Vec<u8>, u64), ApiError> {
        self.client.raw_configuration().await
    }

    async fn begin(&self, version: u64) -> Result<String, ApiError> {
        Ok(self.client.begin(version).await?.id)
    }

    async fn operate(&self, operation: &Operation, made_for: For<'_>) -> Result<Changed, OperateError> {
        let changed = self.client.operate(operation, made_for).await?;
        let is_told = matches!(made_for, For::Version(_)) && !changed.is_delayed;
        if let (Subject::Child { key, .. }, Some(backend)) = (&operation.subject, &operation.section.name)
            && !self.is_setpoint
            && is_told
            && is_new_server(operation)
        {
            // The original leaves it in maintenance.
            self.client.set_admin_state(backend, &key.to_string(), "ready").await?;
        }
        Ok(changed)
    }

    async fn operate_bundle(&self, bundle: &Bundle, made_for: For<'_>) -> Result<Changed, OperateError> {
        self.client.operate_bundle(bundle, made_for).await
    }

    async fn commit(&self, id: &str, reloads: bool) -> Result<Changed, ApiError> {
        self.client.commit(id, reloads).await
    }

    async fn abort(&self, id: &str) -> Result<(), ApiError> {
        self.client.abort(id).await
    }

    async fn push(&self, text: &[u8], version: u64) -> Result<Changed, ApiError> {
        self.client.push_raw_configuration(text, version, &PushReload::Delayed).await
    }

    async fn push_with_actions(&self, text: &[u8], version: u64, actions: &str) -> Result<Changed, ApiError> {
        let actions = PushReload::RuntimeActions(actions.to_owned());
        self.client.push_raw_configuration(text, version, &actions).await
    }

    async fn running_servers(&self, backend: &str) -> Result<Vec<RunningServer>, ApiError> {
        self.client.running_servers(backend).await
    }

    async fn server_weights(&self) -> Result<BTreeMap<(String, String), i64>, ApiError> {
        self.client.server_weights().await
    }

    async fn map_length(&self, name: &str) -> Result<Option<usize>, ApiError> {
        Ok(self.client.map_entries(name).await?.map(|entries| entries.len()))
    }

    async fn set_admin_state(&self, backend: &str, server: &str, state: &str) -> Result<(), ApiError> {
        self.client.set_admin_state(backend, server, state).await
    }

    async fn health(&self) -> Result<Health, ApiError> {
        self.client.health().await
    }

    async fn pending_reload(&self) -> Result<Option<String>, ApiError> {
        self.client.pending_reload().await
    }

    async fn reload(&self, id: &str) -> Result<Reload, ApiError> {
        self.client.reload(id).await
    }

    async fn process(&self) -> Result<Process, ApiError> {
        self.client.process().await
    }

    async fn files(&self, kind: FileKind) -> Result<Vec<String>, ApiError> {
        Ok(self.client.files(kind).await?.into_iter().map(|file| file.storage_name).collect())
    }

    async fn file(&self, kind: FileKind, name: &str) -> Result<Option<Vec<u8>>, ApiError> {
        self.client.file(kind, name).await
    }

    async fn create_file(&self, kind: FileKind, name: &str, bytes: &[u8]) -> Result<Effect, ApiError> {
        match self.client.create_file(kind, name, bytes).await {
            Ok((_, changed)) => Ok(effect(changed)),
            // Somebody else made it since it was looked for.
            Err(error) if error.is_conflict() => self.replace_file(kind, name, bytes, None).await,
            Err(error) => Err(error),
        }
    }

    async fn replace_file(
        &self,
        kind: FileKind,
        name: &str,
        bytes: &[u8],
        told: Option<&Usage>,
    ) -> Result<Effect, ApiError> {
        // Without that, both would reload for a file that nothing uses, and the original for most others.
        let skips = told.is_none() || !self.is_setpoint && kind != FileKind::Certificate;
        let is_told = match (kind, told) {
            (FileKind::Map, Some(_)) if skips => self.client.tell_entries(name, bytes).await?,
            _ => true,
        };
        let changed = self.client.replace_file(kind, name, bytes, skips).await?;
        let is_told = is_told
            && match told {
                Some(Usage::Authorities(path)) if skips => self.tell_authorities(path, bytes).await?,
                _ => true,
            };
        Ok(if is_told { effect(changed) } else { Effect::NextReload })
    }

    async fn write_notes(&self, bytes: &[u8], is_there: bool) -> Result<(), ApiError> {
        if !is_there {
            match self.client.create_file(FileKind::General, NOTES, bytes).await {
                // Somebody else made them meanwhile.
                Err(error) if error.is_conflict() => {}
                created => return created.map(|_| ()),
            }
        }
        self.client.replace_file(FileKind::General, NOTES, bytes, true).await.map(|_| ())
    }

    async fn delete_file(&self, kind: FileKind, name: &str) -> Result<(), ApiError> {
        self.client.delete_file(kind, name).await.map(|_| ())
    }
}

fn effect(changed: Changed) -> Effect {
    changed.reload_id.map_or(Effect::Now, Effect::Ordered)
}
