//! One HAProxy of this machine as something that a sync works on, without any API: what an instance has in hand is edited, committed
//! and told in this process.
//!
//! ```text
//! operation ──▶ edit of a transaction's configuration ──▶ commit: checked, written, told or reloaded
//! file ───────▶ folder of the instance ──▶ HAProxy is told of it, or its reload is ordered
//! ```

use std::collections::BTreeMap;

use setpoint_haproxy::api::SECTIONS;
use setpoint_haproxy::compare::{ChildKey, Operation, Subject};
use setpoint_haproxy::edit::EditError;
use setpoint_haproxy::model::{Context, Object, ObjectKind, SectionModel};
use setpoint_haproxy::text::{Document, SectionKind};
use setpoint_instance::cli::{Request, RequestError, Table};
use setpoint_instance::configuration::Configuration;
use setpoint_instance::instance::{
    Applied, CommitError, Committed, FileError, Instance, Reload as OwnReload, ReloadChoice,
    ReloadStatus as OwnStatus,
};
use setpoint_instance::runtime::{ListKind, Reply, ServerState};
use setpoint_instance::storage::{Folder, StorageError, is_crt_list};
use setpoint_plan::Action;

use crate::client::{
    ApiError, Bundle, BundleEffect, Changed, FileKind, For, Health, OperateError, Process, Reload,
    ReloadStatus, RunningServer,
};
use crate::costs::Costs;
use crate::files::{NOTES, Usage};
use crate::target::{Effect, Target};

/// Where an instance keeps files that a configuration names.
#[derive(Clone, Debug)]
pub struct Folders {
    /// Maps.
    pub maps: Folder,
    /// Certificates, and lists of them.
    pub certificates: Folder,
    /// All others.
    pub general: Folder,
}

/// An instance, which somebody runs for as long as it is used.
#[derive(Clone, Debug)]
pub struct LocalTarget {
    instance: Instance,
    name: String,
    folders: Folders,
}

impl LocalTarget {
    /// An instance by what it is called in messages, with its folders.
    pub fn new(instance: Instance, name: impl Into<String>, folders: Folders) -> Self {
        Self { instance, name: name.into(), folders }
    }

    /// The instance.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    fn folder(&self, kind: FileKind) -> &Folder {
        match kind {
            FileKind::Map => &self.folders.maps,
            FileKind::General => &self.folders.general,
            FileKind::Certificate => &self.folders.certificates,
        }
    }

    /// Edits a configuration: that of a transaction, or the current one, which is committed then.
    async fn edit(
        &self,
        call: &str,
        made_for: For<'_>,
        work: impl FnOnce(&mut Configuration) -> Result<(), EditError>,
    ) -> Result<Changed, OperateError> {
        let refused = |error: EditError| failed(call, &error);
        match made_for {
            For::Transaction(id) => {
                let edited = self.instance.in_transaction(id, work);
                let edited = edited.ok_or_else(|| failed(call, &"the transaction is over"))?;
                edited.map_err(refused)?;
                Ok(Changed { version: None, reload_id: None, is_delayed: true })
            }
            For::Version(version) => {
                let committed = self.instance.change(version, ReloadChoice::Delayed, work).await;
                let committed = committed.map_err(|error| not_committed(call, &error))?;
                Ok(changed(committed.map_err(refused)?.1))
            }
        }
    }

    /// Asks the worker something, or tells it something.
    async fn ask(&self, request: Result<Request, RequestError>) -> Result<String, ApiError> {
        let request = request.map_err(|error| failed("a command", &error))?;
        let call = request.to_string();
        match self.instance.worker().tell(&request).await {
            Ok(Reply::Done(answer)) => Ok(answer),
            Ok(Reply::Refused(why)) => Err(failed(&call, &why)),
            Err(error) => Err(failed(&call, &error)),
        }
    }

    /// Tells HAProxy what a file holds. Returns whether it uses it now.
    async fn tell(&self, kind: FileKind, path: &std::path::Path, bytes: &[u8]) -> bool {
        match kind {
            FileKind::Certificate => self.instance.tell_ssl_file("cert", path, bytes).await,
            FileKind::Map => self.instance.tell_entries(ListKind::Map, path, bytes).await,
            FileKind::General => self.instance.tell_general(path, bytes).await,
        }
    }
}

fn failed(call: &str, why: &dyn std::fmt::Display) -> ApiError {
    ApiError::Failed { call: call.to_owned(), message: why.to_string() }
}

fn not_committed(call: &str, error: &CommitError) -> ApiError {
    let (call, message) = (call.to_owned(), error.to_string());
    match error {
        CommitError::Stale { current, .. } => ApiError::Conflict { call, version: Some(*current), message },
        CommitError::Ended { .. } => ApiError::Conflict { call, version: None, message },
        CommitError::TooMany(_) => ApiError::Overloaded { call, retry_after: None, message },
        CommitError::NoTransaction(_) => ApiError::NotFound { call, message },
        _ => ApiError::Failed { call, message },
    }
}

fn not_stored(call: &str, error: &StorageError) -> ApiError {
    let (call, message) = (call.to_owned(), error.to_string());
    match error {
        StorageError::Missing { .. } => ApiError::NotFound { call, message },
        StorageError::Exists(_) => ApiError::Conflict { call, version: None, message },
        _ => ApiError::Failed { call, message },
    }
}

fn changed(committed: Committed) -> Changed {
    let reload_id = match committed.applied {
        Applied::Ordered(id) => Some(id),
        Applied::Runtime | Applied::Reloaded | Applied::Skipped => None,
    };
    Changed { version: Some(committed.version), is_delayed: reload_id.is_some(), reload_id }
}

/// The kind of the objects that are sections of a kind.
fn kind_of(section: SectionKind) -> Option<ObjectKind> {
    SECTIONS.iter().find(|held| held.keyword == section).map(|held| held.kind)
}

/// Carries out an operation on a configuration.
fn apply(configuration: &mut Configuration, operation: &Operation) -> Result<(), EditError> {
    let key = &operation.section;
    match (&operation.subject, operation.action) {
        (Subject::Section { new: Some(new), .. }, Action::Create) => {
            let missing = || EditError::NotFound { what: key.to_string() };
            let kind = kind_of(key.kind).ok_or_else(missing)?;
            let (section, _) = SectionModel::from_json(kind, &new.to_json(), configuration.context())?;
            configuration.create_section(&section).map(drop)
        }
        (Subject::Section { new: Some(new), .. }, _) => configuration.editor(key).replace_settings(key, new),
        (Subject::Section { new: None, .. }, _) => configuration.editor(key).delete_section(key),
        (Subject::Child { key: child, new: Some(new), .. }, Action::Create) => {
            let place = match child {
                ChildKey::Index(index) => Some(*index),
                ChildKey::Name(_) => None,
            };
            configuration.editor(key).create(key, new, place)
        }
        (Subject::Child { key: child, new: Some(new), .. }, Action::Modify | Action::Recreate) => {
            configuration.editor(key).replace(key, child, new)
        }
        (Subject::Child { kind, key: child, .. }, _) => configuration.editor(key).delete(key, *kind, child),
        // It goes as the whole text.
        (Subject::Text { .. } | Subject::Configuration { .. }, _) => {
            Err(EditError::NotFound { what: key.to_string() })
        }
    }
}

/// What a bundle makes of a configuration.
enum Whole {
    Section(SectionModel),
    List(ObjectKind, Vec<Object>),
}

/// Reads what a bundle says; none if it says something that is not understood.
fn whole(bundle: &Bundle, cx: &Context) -> Option<Whole> {
    match bundle.effect {
        BundleEffect::CreateSection => {
            let (section, unknown) =
                SectionModel::from_json(kind_of(bundle.section.kind)?, &bundle.body, cx).ok()?;
            unknown.is_empty().then_some(Whole::Section(section))
        }
        BundleEffect::ReplaceList(kind) => {
            let objects = bundle.body.as_array()?.iter().map(|json| {
                let (object, unknown) = Object::from_json(kind, json, cx).ok()?;
                unknown.is_empty().then_some(object)
            });
            Some(Whole::List(kind, objects.collect::<Option<_>>()?))
        }
    }
}

fn running(server: &ServerState) -> RunningServer {
    let operational = match server.number("srv_op_state") {
        0 => "down",
        3 => "stopping",
        _ => "up",
    };
    RunningServer {
        name: server.name.clone(),
        address: server.column("srv_addr").to_owned(),
        port: Some(server.number("srv_port")),
        admin_state: server.admin_state().word().to_owned(),
        operational_state: operational.to_owned(),
        weight: Some(server.weight()),
    }
}

impl Target for LocalTarget {
    fn endpoint(&self) -> &str {
        &self.name
    }

    fn context(&self) -> &Context {
        self.instance.context()
    }

    fn needs_text(&self, operation: &Operation) -> Option<String> {
        operation.is_text().then(|| operation.reason.clone())
    }

    fn needs_reload(&self, _: &Operation) -> Option<String> {
        None
    }

    fn always_reloads(&self) -> bool {
        false
    }

    fn rewrites(&self) -> bool {
        false
    }

    fn takes_runtime_actions(&self) -> bool {
        // The instance finds out by itself what it can tell.
        false
    }

    fn costs(&self) -> Costs {
        Costs::SETPOINT
    }

    fn loses(&self, _: &Document) -> Option<String> {
        None
    }

    fn carries(&self, bundle: &Bundle) -> bool {
        whole(bundle, self.context()).is_some()
    }

    fn tells(&self, kind: FileKind, usage: &Usage, _: &[u8]) -> bool {
        match kind {
            FileKind::Certificate => *usage == Usage::Certificate,
            FileKind::Map => matches!(usage, Usage::Map | Usage::OrderedMap),
            FileKind::General => matches!(usage, Usage::Authorities(_) | Usage::Patterns),
        }
    }

    async fn version(&self) -> Result<u64, ApiError> {
        Ok(self.instance.version())
    }

    async fn read(&self) -> Result<(Vec<u8>, u64), ApiError> {
        let held = self.instance.snapshot();
        Ok((held.print(), held.version()))
    }

    async fn begin(&self, version: u64) -> Result<String, ApiError> {
        let begun = self.instance.begin(version);
        Ok(begun.map_err(|error| not_committed("begin a transaction", &error))?.id)
    }

    async fn operate(&self, operation: &Operation, made_for: For<'_>) -> Result<Changed, OperateError> {
        self.edit(&operation.to_string(), made_for, |configuration| apply(configuration, operation)).await
    }

    async fn operate_bundle(&self, bundle: &Bundle, made_for: For<'_>) -> Result<Changed, OperateError> {
        let call = bundle.to_string();
        let what = whole(bundle, self.context()).ok_or_else(|| failed(&call, &"it is not understood"))?;
        let work = |configuration: &mut Configuration| match what {
            Whole::Section(section) => configuration.create_section(&section).map(drop),
            Whole::List(kind, objects) => {
                configuration.editor(&bundle.section).replace_list(&bundle.section, kind, &objects)
            }
        };
        self.edit(&call, made_for, work).await
    }

    async fn commit(&self, id: &str, reloads: bool) -> Result<Changed, ApiError> {
        let choice = if reloads { ReloadChoice::Now } else { ReloadChoice::Delayed };
        let committed = self.instance.commit(id, choice).await;
        Ok(changed(committed.map_err(|error| not_committed("commit the transaction", &error))?))
    }

    async fn abort(&self, id: &str) -> Result<(), ApiError> {
        self.instance.discard(id);
        Ok(())
    }

    async fn push(&self, text: &[u8], version: u64) -> Result<Changed, ApiError> {
        let committed = self.instance.push(text, Some(version), ReloadChoice::Delayed).await;
        Ok(changed(committed.map_err(|error| not_committed("write the text", &error))?))
    }

    async fn push_with_actions(&self, text: &[u8], version: u64, actions: &str) -> Result<Changed, ApiError> {
        let committed = self.instance.push(text, Some(version), ReloadChoice::Skip).await;
        let written = changed(committed.map_err(|error| not_committed("write the text", &error))?);
        if self.instance.tell_actions(actions).await.is_err() {
            // What HAProxy runs would differ from the text, and nobody would know.
            let reload_id = Some(self.instance.order_reload());
            return Ok(Changed { reload_id, is_delayed: true, ..written });
        }
        Ok(written)
    }

    async fn running_servers(&self, backend: &str) -> Result<Vec<RunningServer>, ApiError> {
        let call = format!("show the servers of {backend}");
        match self.instance.worker().servers(Some(backend)).await {
            Ok(Some(servers)) => Ok(servers.iter().map(running).collect()),
            Ok(None) => Err(ApiError::NotFound { call, message: "there is no such backend".to_owned() }),
            Err(error) => Err(failed(&call, &error)),
        }
    }

    async fn server_weights(&self) -> Result<BTreeMap<(String, String), i64>, ApiError> {
        // They stand beside the servers.
        Ok(BTreeMap::new())
    }

    async fn map_length(&self, name: &str) -> Result<Option<usize>, ApiError> {
        let (path, worker) = (self.folders.maps.path().join(name), self.instance.worker());
        let directory = &self.instance.settings().working_directory;
        let lists = worker.lists_of(ListKind::Map, &path, directory).await;
        let lists = lists.map_err(|error| failed("show the maps", &error))?;
        let Some(list) = lists.first() else { return Ok(None) };
        let shown = self.ask(Request::new("show map").word(list)).await?;
        Ok(Some(shown.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).count()))
    }

    async fn set_admin_state(&self, backend: &str, server: &str, state: &str) -> Result<(), ApiError> {
        let request = Request::new("set server").word(&format!("{backend}/{server}"));
        let request = request.and_then(|request| request.word("state")?.word(state));
        self.ask(request).await.map(drop)
    }

    async fn health(&self) -> Result<Health, ApiError> {
        let shown = self.ask(Ok(Request::new("show stat"))).await?;
        let table = Table::read_csv(&shown).map_err(|error| failed("show stat", &error))?;
        let mut health = Health::default();
        for row in table.rows() {
            let held = |name: &str| {
                row.iter().find(|(column, _)| *column == name).map_or("", |(_, value)| value.trim())
            };
            let number = |name: &str| held(name).parse::<u64>().unwrap_or(0);
            match held("type") {
                "0" => {
                    health.requests +=
                        if number("req_tot") == 0 { number("stot") } else { number("req_tot") };
                    health.errors += number("hrsp_5xx");
                }
                "2" if held("status").starts_with("UP") || held("status") == "no check" => {
                    health.up.insert((held("pxname").to_owned(), held("svname").to_owned()));
                }
                _ => {}
            }
        }
        Ok(health)
    }

    async fn pending_reload(&self) -> Result<Option<String>, ApiError> {
        let mut reloads = self.instance.reloads().into_iter();
        Ok(reloads.find(|reload| reload.status == OwnStatus::InProgress).map(|reload| reload.id))
    }

    async fn reload(&self, id: &str) -> Result<Reload, ApiError> {
        let Some(OwnReload { status, response, .. }) = self.instance.reload_by_id(id) else {
            let call = format!("look at reload {id}");
            return Err(ApiError::NotFound { call, message: "there never was one of this name".to_owned() });
        };
        let status = match status {
            OwnStatus::InProgress => ReloadStatus::InProgress,
            OwnStatus::Succeeded => ReloadStatus::Succeeded,
            OwnStatus::Failed => ReloadStatus::Failed,
        };
        Ok(Reload { status, response })
    }

    async fn process(&self) -> Result<Process, ApiError> {
        let shown = self.ask(Ok(Request::new("show info"))).await?;
        let held = |name: &str| {
            shown.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).unwrap_or_default()
        };
        let number = |name: &str| held(name).trim().parse().ok();
        let version = held("Version").trim().to_owned();
        Ok(Process { pid: number("Pid"), uptime: number("Uptime_sec"), version })
    }

    async fn files(&self, kind: FileKind) -> Result<Vec<String>, ApiError> {
        let listed = self.folder(kind).list().map_err(|error| not_stored("list files", &error))?;
        let is_of_kind = |name: &String| match kind {
            FileKind::Map => name.rsplit_once('.').is_some_and(|(_, ending)| ending == "map"),
            FileKind::Certificate => !is_crt_list(name),
            FileKind::General => true,
        };
        Ok(listed.into_iter().filter(is_of_kind).collect())
    }

    async fn file(&self, kind: FileKind, name: &str) -> Result<Option<Vec<u8>>, ApiError> {
        match self.folder(kind).read(name) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(StorageError::Missing { .. }) => Ok(None),
            Err(error) => Err(not_stored(&format!("read {kind} {name}"), &error)),
        }
    }

    async fn create_file(&self, kind: FileKind, name: &str, bytes: &[u8]) -> Result<Effect, ApiError> {
        match self.instance.create_file(self.folder(kind), name, bytes).await {
            Ok(_) => Ok(Effect::Now),
            // Somebody else made it since it was looked for.
            Err(StorageError::Exists(_)) => self.replace_file(kind, name, bytes, None).await,
            Err(error) => Err(not_stored(&format!("make {kind} {name}"), &error)),
        }
    }

    async fn replace_file(
        &self,
        kind: FileKind,
        name: &str,
        bytes: &[u8],
        told: Option<&Usage>,
    ) -> Result<Effect, ApiError> {
        let call = format!("replace {kind} {name}");
        let replaced = self.instance.replace_file(self.folder(kind), name, bytes).await;
        let replaced = replaced.map_err(|error| match error {
            FileError::Storage(error) => not_stored(&call, &error),
            FileError::Check(error) => not_committed(&call, &error),
            FileError::Refused(_) => failed(&call, &error),
        })?;
        let path = replaced.path.clone();
        if told.is_none() || self.tell(kind, &path, bytes).await {
            replaced.done();
            return Ok(Effect::Now);
        }
        Ok(Effect::Ordered(replaced.order_reload()))
    }

    async fn write_notes(&self, bytes: &[u8], is_there: bool) -> Result<(), ApiError> {
        if !is_there {
            return self.create_file(FileKind::General, NOTES, bytes).await.map(drop);
        }
        self.replace_file(FileKind::General, NOTES, bytes, None).await.map(drop)
    }

    async fn delete_file(&self, kind: FileKind, name: &str) -> Result<(), ApiError> {
        match self.instance.delete_file(self.folder(kind), name).await {
            Ok(()) | Err(StorageError::Missing { .. }) => Ok(()),
            Err(error) => Err(not_stored(&format!("delete {kind} {name}"), &error)),
        }
    }
}
