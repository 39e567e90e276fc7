//! A target that notes what it is asked, and fails where it is told to.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use setpoint_dataplane::client::{
    ApiError, Bundle, Changed, FileKind, For, Health, OperateError, Process, Reload, ReloadStatus,
    RunningServer,
};
use setpoint_dataplane::costs::Costs;
use setpoint_dataplane::error::ConnectionError;
use setpoint_dataplane::files::Usage;
use setpoint_dataplane::target::{Effect, Target};
use setpoint_haproxy::compare::Operation;
use setpoint_haproxy::model::Context;
use setpoint_haproxy::text::Document;
use setpoint_testutils::wait;
use tokio::sync::Semaphore;

/// What a call answers instead of what it would.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    Refused,
    Conflict(u64),
    Broken,
    /// None: this one call passes.
    Pass,
}

impl Fault {
    fn error(self, call: &str) -> Option<ApiError> {
        let call = call.to_owned();
        Some(match self {
            Self::Pass => return None,
            Self::Refused => ApiError::Connection(ConnectionError::new(
                "http://nobody",
                std::io::Error::from(std::io::ErrorKind::ConnectionRefused),
            )),
            Self::Conflict(version) => {
                ApiError::Conflict { call, version: Some(version), message: "version mismatch".to_owned() }
            }
            Self::Broken => ApiError::Refused { call, status: 500, message: "it broke".to_owned() },
        })
    }
}

/// A target in front of another.
#[expect(clippy::struct_excessive_bools, reason = "each is a fault of its own")]
pub(crate) struct Counting<T> {
    pub(crate) inner: T,
    calls: Mutex<Vec<String>>,
    faults: Mutex<BTreeMap<&'static str, VecDeque<Fault>>>,
    /// How many operations are under way, and how many were at most.
    under_way: AtomicUsize,
    pub(crate) most: AtomicUsize,
    /// How long each call takes longer than it would.
    pub(crate) delay: Duration,
    /// A kind of call that waits until this is closed.
    pub(crate) held: Option<(&'static str, Semaphore)>,
    /// Whether it says of itself what the original API would.
    pub(crate) is_original: bool,
    /// Whether its servers run with other weights than they were told.
    pub(crate) lies: bool,
    /// A server that goes on running, whatever HAProxy is told.
    pub(crate) stays: Option<&'static str>,
    /// Whether somebody drains all its servers.
    pub(crate) drains: AtomicBool,
    /// Whether it calls every reload a success of which it knows nothing.
    pub(crate) forgets: bool,
    /// Whether it reloads for each change that takes effect by itself, and does not say what the reload is called.
    pub(crate) reloads_silently: bool,
    /// What it drops of a text that is pushed.
    pub(crate) drops: Option<&'static str>,
    /// Whether it does not tell which version a push has made.
    pub(crate) is_silent: bool,
    /// The version that the next push is said to have made.
    pub(crate) skips_to: Option<u64>,
    /// Whether it says that HAProxy can be told of every file, which turns out otherwise.
    pub(crate) boasts: bool,
}

impl<T> Counting<T> {
    pub(crate) fn new(inner: T) -> Self {
        let delay = Duration::ZERO;
        Self {
            inner,
            calls: Mutex::default(),
            faults: Mutex::default(),
            under_way: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            delay,
            held: None,
            is_original: false,
            lies: false,
            stays: None,
            drains: AtomicBool::new(false),
            forgets: false,
            reloads_silently: false,
            drops: None,
            is_silent: false,
            skips_to: None,
            boasts: false,
        }
    }

    /// Lets a kind of call fail, as often as there are faults.
    pub(crate) fn fail(&self, call: &'static str, faults: impl IntoIterator<Item = Fault>) {
        self.faults.lock().unwrap().entry(call).or_default().extend(faults);
    }

    /// Lets everything succeed again.
    pub(crate) fn calm(&self) {
        self.faults.lock().unwrap().clear();
    }

    /// Waits until a kind of call is held, does something, and lets it go on.
    pub(crate) async fn while_held(&self, something: impl Future<Output = ()>) {
        let Some((call, gate)) = &self.held else { panic!("nothing is held") };
        let is_held = async || (self.count(call) > 0).then_some(());
        wait::until("a call to be held", wait::LIMIT, is_held).await;
        something.await;
        gate.close();
    }

    /// What was asked since this was asked last.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    /// How often something was asked.
    pub(crate) fn count(&self, call: &str) -> usize {
        self.calls.lock().unwrap().iter().filter(|noted| noted.starts_with(call)).count()
    }

    async fn note(&self, call: &'static str, what: &str) -> Result<(), ApiError> {
        self.calls.lock().unwrap().push(format!("{call} {what}").trim_end().to_owned());
        tokio::time::sleep(self.delay).await;
        if let Some((held, gate)) = &self.held
            && *held == call
        {
            // There is nothing to be had: it ends when this is closed.
            let _ = gate.acquire().await;
        }
        let fault = self.faults.lock().unwrap().get_mut(call).and_then(VecDeque::pop_front);
        fault.and_then(|fault| fault.error(call)).map_or(Ok(()), Err)
    }
}

impl<T: Target> Target for Counting<T> {
    fn endpoint(&self) -> &str {
        self.inner.endpoint()
    }

    fn context(&self) -> &Context {
        self.inner.context()
    }

    fn needs_text(&self, operation: &Operation) -> Option<String> {
        self.inner.needs_text(operation)
    }

    fn needs_reload(&self, operation: &Operation) -> Option<String> {
        self.inner.needs_reload(operation)
    }

    fn always_reloads(&self) -> bool {
        self.is_original || self.inner.always_reloads()
    }

    fn rewrites(&self) -> bool {
        self.inner.rewrites()
    }

    fn takes_runtime_actions(&self) -> bool {
        self.is_original || self.inner.takes_runtime_actions()
    }

    fn costs(&self) -> Costs {
        if self.is_original { Costs::ORIGINAL } else { self.inner.costs() }
    }

    fn loses(&self, text: &Document) -> Option<String> {
        self.inner.loses(text)
    }

    fn carries(&self, bundle: &Bundle) -> bool {
        self.inner.carries(bundle)
    }

    fn tells(&self, kind: FileKind, usage: &Usage, bytes: &[u8]) -> bool {
        self.boasts || !(self.is_original && kind == FileKind::Map) && self.inner.tells(kind, usage, bytes)
    }

    async fn version(&self) -> Result<u64, ApiError> {
        self.note("version", "").await?;
        self.inner.version().await
    }

    async fn read(&self) -> Result<(Vec<u8>, u64), ApiError> {
        self.note("read", "").await?;
        self.inner.read().await
    }

    async fn begin(&self, version: u64) -> Result<String, ApiError> {
        self.note("begin", "").await?;
        self.inner.begin(version).await
    }

    async fn operate(&self, operation: &Operation, made_for: For<'_>) -> Result<Changed, OperateError> {
        let under_way = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(under_way, Ordering::Relaxed);
        let noted = self.note("operate", &operation.to_string()).await;
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        noted?;
        let changed = self.inner.operate(operation, made_for).await?;
        if self.reloads_silently && matches!(made_for, For::Version(_)) {
            let version = changed.version.unwrap();
            let id = self.inner.begin(version).await?;
            let reloaded = self.inner.commit(&id, true).await?;
            return Ok(Changed { reload_id: None, is_delayed: true, ..reloaded });
        }
        Ok(changed)
    }

    async fn operate_bundle(&self, bundle: &Bundle, made_for: For<'_>) -> Result<Changed, OperateError> {
        self.note("operate", &bundle.to_string()).await?;
        self.inner.operate_bundle(bundle, made_for).await
    }

    async fn commit(&self, id: &str, reloads: bool) -> Result<Changed, ApiError> {
        self.note("commit", "").await?;
        self.inner.commit(id, reloads).await
    }

    async fn abort(&self, id: &str) -> Result<(), ApiError> {
        self.note("abort", "").await?;
        self.inner.abort(id).await
    }

    async fn push(&self, text: &[u8], version: u64) -> Result<Changed, ApiError> {
        self.note("push", "").await?;
        let text = match self.drops {
            Some(line) => String::from_utf8_lossy(text).replace(line, "").into_bytes(),
            None => text.to_vec(),
        };
        let mut pushed = self.inner.push(&text, version).await?;
        if self.is_silent {
            pushed.version = None;
        }
        let pushes = self.count("push");
        pushed.version = self.skips_to.filter(|_| pushes == 2).or(pushed.version);
        Ok(pushed)
    }

    async fn push_with_actions(&self, text: &[u8], version: u64, actions: &str) -> Result<Changed, ApiError> {
        self.note("push", actions).await?;
        self.inner.push_with_actions(text, version, actions).await
    }

    async fn running_servers(&self, backend: &str) -> Result<Vec<RunningServer>, ApiError> {
        self.note("running_servers", backend).await?;
        let mut servers = self.inner.running_servers(backend).await?;
        if self.drains.load(Ordering::Relaxed) {
            for server in &mut servers {
                "drain".clone_into(&mut server.admin_state);
            }
        }
        servers.extend(self.stays.map(|name| RunningServer {
            name: name.to_owned(),
            address: "127.0.0.1".to_owned(),
            port: Some(2),
            admin_state: "ready".to_owned(),
            operational_state: "up".to_owned(),
            weight: None,
        }));
        if self.lies {
            for server in &mut servers {
                server.weight = server.weight.map(|_| 1);
            }
        }
        Ok(servers)
    }

    async fn server_weights(&self) -> Result<BTreeMap<(String, String), i64>, ApiError> {
        self.note("server_weights", "").await?;
        let mut weights = self.inner.server_weights().await?;
        if self.lies {
            for weight in weights.values_mut() {
                *weight = 1;
            }
        }
        Ok(weights)
    }

    async fn map_length(&self, name: &str) -> Result<Option<usize>, ApiError> {
        self.note("map_length", name).await?;
        let length = self.inner.map_length(name).await?;
        Ok(length.map(|length| length - usize::from(self.lies)))
    }

    async fn set_admin_state(&self, backend: &str, server: &str, state: &str) -> Result<(), ApiError> {
        self.note("set_admin_state", &format!("{backend} {server} {state}")).await?;
        self.inner.set_admin_state(backend, server, state).await
    }

    async fn health(&self) -> Result<Health, ApiError> {
        self.note("health", "").await?;
        self.inner.health().await
    }

    async fn pending_reload(&self) -> Result<Option<String>, ApiError> {
        self.note("pending_reload", "").await?;
        self.inner.pending_reload().await
    }

    async fn reload(&self, id: &str) -> Result<Reload, ApiError> {
        self.note("reload", "").await?;
        if self.forgets {
            return Ok(Reload { status: ReloadStatus::Succeeded, response: String::new() });
        }
        self.inner.reload(id).await
    }

    async fn process(&self) -> Result<Process, ApiError> {
        self.note("process", "").await?;
        if self.forgets {
            return Ok(Process { pid: Some(7), uptime: Some(9), version: "3.4".to_owned() });
        }
        self.inner.process().await
    }

    async fn files(&self, kind: FileKind) -> Result<Vec<String>, ApiError> {
        self.note("files", &kind.to_string()).await?;
        let files = self.inner.files(kind).await;
        self.calls.lock().unwrap().push(format!("listed {kind}"));
        files
    }

    async fn file(&self, kind: FileKind, name: &str) -> Result<Option<Vec<u8>>, ApiError> {
        self.note("file ", name).await?;
        self.inner.file(kind, name).await
    }

    async fn create_file(&self, kind: FileKind, name: &str, bytes: &[u8]) -> Result<Effect, ApiError> {
        self.note("create_file", &format!("{kind} {name}")).await?;
        let effect = self.inner.create_file(kind, name, bytes).await;
        self.calls.lock().unwrap().push(format!("created {kind} {name}"));
        effect
    }

    async fn replace_file(
        &self,
        kind: FileKind,
        name: &str,
        bytes: &[u8],
        told: Option<&Usage>,
    ) -> Result<Effect, ApiError> {
        self.note("replace_file", &format!("{kind} {name}")).await?;
        self.inner.replace_file(kind, name, bytes, told).await
    }

    async fn write_notes(&self, bytes: &[u8], is_there: bool) -> Result<(), ApiError> {
        self.note("write_notes", "").await?;
        self.inner.write_notes(bytes, is_there).await
    }

    async fn delete_file(&self, kind: FileKind, name: &str) -> Result<(), ApiError> {
        self.note("delete_file", &format!("{kind} {name}")).await?;
        self.inner.delete_file(kind, name).await
    }
}
