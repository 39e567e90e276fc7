//! Carries operations of a comparison to a running HAProxy.
//!
//! ```text
//!  operation ──▶ commands:  modified server: `set server` …, `set maxconn server`
//!                           other limit:     `set maxconn frontend`
//!                           new server:      `add server`, checks enabled, `state ready`;
//!                                            one that is left over under its name is removed first, or set ready again
//!                           removed server:  `state drain` for as long as is asked for, then `state maint`, `del server`;
//!                                            meanwhile a leftover that is removed later
//!                           new backend:     `add backend`, its servers, and `publish backend`: nobody gets to it before
//! ```
//!
//! HAProxy ignores `default-server` for a server that is added, so what the comparison merged is told. The first refusal ends
//! it: who called lets a reload make the rest true.

use std::time::Duration;

use setpoint_haproxy::compare::{Operation, Subject};
use setpoint_haproxy::model::spelling::{one_word, split};
use setpoint_haproxy::model::{Context, Object, ObjectKind, Value};
use setpoint_haproxy::table::directives;
use setpoint_plan::Action;
use tokio::time::Instant;

use super::{Reply, Worker};
use crate::cli::{Request, RequestError, SocketError};

/// Commands are sent together up to this size: HAProxy reads a line into one buffer, of 16 KiB unless it is told otherwise.
const TOGETHER: usize = 4 << 10;

/// A server that is gone from the configuration and not from HAProxy: it drains, or stays in maintenance until its connections
/// end.
#[derive(Clone, Debug)]
pub struct Leftover {
    /// Its backend.
    pub backend: String,
    /// Its name.
    pub server: String,
    /// Until when it drains; none if it is in maintenance.
    pub drains_until: Option<Instant>,
    /// What it was, with what `default-server` lines said, if that is known.
    pub was: Option<Object>,
}

/// Why HAProxy does not run what it should.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// HAProxy refused a command.
    #[error("HAProxy refused `{command}`: {why}")]
    Command {
        /// The command.
        command: String,
        /// What HAProxy said.
        why: String,
    },
    /// A name can't be said.
    #[error(transparent)]
    Name(#[from] RequestError),
    /// HAProxy does not answer.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// There is no command for it.
    #[error("{0} can't be changed at runtime")]
    Impossible(String),
}

/// Carries out all operations, in their order. Servers that can't be removed yet, because they drain first or still have
/// connections, are added to what is left over; one that comes back is taken out of it.
pub(crate) async fn apply(
    worker: &Worker,
    operations: &[Operation],
    cx: &Context,
    drain: Duration,
    leftovers: &mut Vec<Leftover>,
) -> Result<(), Refused> {
    let mut together: Option<Request> = None;
    let mut publish = Vec::new();
    for operation in operations {
        if let Some((name, backend)) = new_backend(operation) {
            flush(worker, &mut together).await?;
            tell(worker, &add_backend(name, backend)?).await?;
            publish.push(Request::new("publish backend").word(name)?);
            continue;
        }
        if let Some((frontend, most)) = limit(operation) {
            flush(worker, &mut together).await?;
            let request = Request::new("set maxconn frontend").word(frontend)?.word(&most.to_string())?;
            tell(worker, &request).await?;
            continue;
        }
        let Some((backend, change)) = server_change(operation) else {
            if operation.changes.iter().all(|change| change.attribute == "metadata")
                && operation.action == Action::Modify
            {
                continue;
            }
            return Err(Refused::Impossible(operation.to_string()));
        };
        match change {
            Change::Set(server) => {
                let touches = |attributes: &[&str]| {
                    operation.changes.iter().any(|change| attributes.contains(&change.attribute.as_str()))
                };
                for request in set(backend, server, touches)? {
                    together = Some(match together.take() {
                        Some(before) if before.len() + request.len() > TOGETHER => {
                            tell(worker, &before).await?;
                            request
                        }
                        Some(before) => before.and(request),
                        None => request,
                    });
                }
            }
            Change::Add(server) => {
                flush(worker, &mut together).await?;
                let is_it = |one: &Leftover| one.backend == backend && one.server == name(server);
                let place = leftovers.iter().position(is_it);
                let mut requests = add(backend, server, cx)?;
                if let Some(mut leftover) = place.map(|place| leftovers.remove(place))
                    && !leftover.remove_at_once(worker).await?
                    && leftover.was.as_ref().is_some_and(|was| is_same_but_settings(was, server))
                {
                    requests = set(backend, server, |attributes| {
                        attributes.iter().any(|attribute| SETTINGS.contains(attribute))
                    })?;
                }
                for request in requests {
                    tell(worker, &request).await?;
                }
            }
            Change::Remove(server) => {
                flush(worker, &mut together).await?;
                let drains_until = (!drain.is_zero()).then(|| Instant::now() + drain);
                let (backend, was) = (backend.to_owned(), Some(server.clone()));
                let server = name(server).to_owned();
                let word = if drains_until.is_some() { "drain" } else { "maint" };
                tell(worker, &state(&backend, &server, word)?).await?;
                let mut leftover = Leftover { backend, server, drains_until, was };
                if !leftover.remove(worker).await? {
                    leftovers.push(leftover);
                }
            }
        }
    }
    flush(worker, &mut together).await?;
    for request in publish {
        tell(worker, &request).await?;
    }
    Ok(())
}

/// The backend that an operation adds, if it adds one.
fn new_backend(operation: &Operation) -> Option<(&str, &Object)> {
    let name = operation.section.name.as_deref()?;
    match &operation.subject {
        Subject::Section { old: None, new: Some(new) } if new.kind == ObjectKind::Backend => {
            Some((name, new))
        }
        _ => None,
    }
}

/// The command that adds a backend. What it has beside this comes from its `defaults`; the comparison allows nothing else.
fn add_backend(name: &str, backend: &Object) -> Result<Request, RequestError> {
    let mut request = Request::new("add backend").word(name)?;
    for setting in ["from", "mode", "guid"] {
        if let Some(value) = text(backend, setting) {
            request = request.word(setting)?.word(value)?;
        }
    }
    Ok(request)
}

/// The frontend of which an operation changes nothing but how many connections it accepts at most, and that number.
fn limit(operation: &Operation) -> Option<(&str, i64)> {
    let is_limit = |attribute: &str| matches!(attribute, "maxconn" | "metadata");
    let Subject::Section { old: Some(_), new: Some(new) } = &operation.subject else { return None };
    let is_listening = matches!(new.kind, ObjectKind::Frontend | ObjectKind::Listen);
    if !is_listening || !operation.changes.iter().all(|change| is_limit(&change.attribute)) {
        return None;
    }
    let has_changed = operation.changes.iter().any(|change| change.attribute == "maxconn");
    let most = new.get("maxconn").and_then(Value::as_int).filter(|_| has_changed)?;
    Some((operation.section.name.as_deref()?, most))
}

/// Returns whether an operation is one for which there are commands, on a version that knows them.
pub(crate) fn has_commands(operation: &Operation) -> bool {
    let only_comments = || operation.changes.iter().all(|change| change.attribute == "metadata");
    match &operation.subject {
        Subject::Child { kind, .. } => *kind == ObjectKind::Server || only_comments(),
        _ => operation.action == Action::Modify || new_backend(operation).is_some(),
    }
}

/// The backend and the name of the server that an operation is about, if it is about one.
pub(crate) fn server_of(operation: &Operation) -> Option<(&str, &str)> {
    let (backend, change) = server_change(operation)?;
    let (Change::Set(server) | Change::Add(server) | Change::Remove(server)) = change;
    Some((backend, name(server)))
}

/// What a server that comes back under the name of a leftover is told anew.
const SETTINGS: [&str; 5] = ["weight", "address", "port", "maintenance", "metadata"];

/// Returns whether two servers differ at most in what one of them is told that comes back.
fn is_same_but_settings(a: &Object, b: &Object) -> bool {
    let rest = |object: &Object| {
        let fields = object.fields.iter().map(|(field, value)| (field.path(), value.clone()));
        let mut fields: Vec<_> = fields.filter(|(path, _)| !SETTINGS.contains(path)).collect();
        fields.sort_by_key(|(path, _)| *path);
        fields
    };
    // A name is resolved at the start only.
    let is_ip = |object: &Object| {
        text(object, "address").is_some_and(|address| address.parse::<std::net::IpAddr>().is_ok())
    };
    is_ip(b) && b.get("port").is_some() && rest(a) == rest(b)
}

/// What becomes of a server.
enum Change<'o> {
    Set(&'o Object),
    Add(&'o Object),
    Remove(&'o Object),
}

/// The backend and the server that an operation is about, if it is about one.
fn server_change(operation: &Operation) -> Option<(&str, Change<'_>)> {
    let backend = operation.section.name.as_deref()?;
    let Subject::Child { kind: ObjectKind::Server, old, new, .. } = &operation.subject else { return None };
    let whole = operation.effective.as_ref();
    let change = match (old, new) {
        (Some(_), Some(new)) => Change::Set(whole.unwrap_or(new)),
        (None, Some(new)) => Change::Add(whole.unwrap_or(new)),
        (Some(old), None) => Change::Remove(whole.unwrap_or(old)),
        (None, None) => return None,
    };
    Some((backend, change))
}

async fn flush(worker: &Worker, together: &mut Option<Request>) -> Result<(), Refused> {
    match together.take() {
        Some(request) => tell(worker, &request).await,
        None => Ok(()),
    }
}

async fn tell(worker: &Worker, request: &Request) -> Result<(), Refused> {
    match worker.tell(request).await? {
        Reply::Done(_) => Ok(()),
        Reply::Refused(why) => Err(Refused::Command { command: request.to_string(), why }),
    }
}

fn name(server: &Object) -> &str {
    server.name().unwrap_or_default()
}

fn text<'o>(server: &'o Object, path: &str) -> Option<&'o str> {
    server.get(path).and_then(Value::as_str)
}

/// A value as HAProxy reads it, without the quotes that it is spelled with.
fn decoded(value: &Value) -> String {
    let spelled = value.to_string();
    match split(&one_word(&spelled)).as_deref() {
        Some([word]) => word.clone(),
        _ => spelled,
    }
}

/// `set server backend/server state …`.
pub(crate) fn state(backend: &str, server: &str, word: &str) -> Result<Request, RequestError> {
    Request::new("set server").word(&format!("{backend}/{server}"))?.word("state")?.word(word)
}

/// `set server backend/server weight …`.
pub(crate) fn weight(backend: &str, server: &str, weight: i64) -> Result<Request, RequestError> {
    Request::new("set server").word(&format!("{backend}/{server}"))?.word("weight")?.word(&weight.to_string())
}

/// The settings of a server that `set server` takes one value for: the attribute, and the word before the value.
const VALUES: [(&str, &str); 4] = [
    ("health_check_port", "check-port"),
    ("agent-addr", "agent-addr"),
    ("agent-port", "agent-port"),
    ("agent-send", "agent-send"),
];

/// The commands that set what is touched of a server, by the names of its attributes.
fn set(backend: &str, server: &Object, touches: impl Fn(&[&str]) -> bool) -> Result<Vec<Request>, Refused> {
    let mut requests = Vec::new();
    if touches(&["weight"]) {
        // What HAProxy takes for a weight that nobody says.
        let number = server.get("weight").and_then(Value::as_int).unwrap_or(1);
        requests.push(weight(backend, name(server), number)?);
    }
    if touches(&["address", "port"]) {
        let address = text(server, "address").unwrap_or_default();
        let mut request = Request::new("set server")
            .word(&format!("{backend}/{}", name(server)))?
            .word("addr")?
            .word(address)?;
        if let Some(port) = server.get("port").and_then(Value::as_int) {
            request = request.word("port")?.word(&port.to_string())?;
        }
        requests.push(request);
    }
    if touches(&["maxconn"]) {
        // None is as many as come.
        let most = server.get("maxconn").and_then(Value::as_int).unwrap_or(0);
        let path = format!("{backend}/{}", name(server));
        requests.push(Request::new("set maxconn server").word(&path)?.word(&most.to_string())?);
    }
    for (attribute, word) in VALUES {
        let Some(value) = server.get(attribute).filter(|_| touches(&[attribute])) else { continue };
        let request = Request::new("set server").word(&format!("{backend}/{}", name(server)))?.word(word)?;
        let value = decoded(value);
        requests.push(if directives().precedes_secret(word) {
            request.secret(&value)?
        } else {
            request.word(&value)?
        });
    }
    if touches(&["maintenance"]) {
        let word = if text(server, "maintenance") == Some("enabled") { "maint" } else { "ready" };
        requests.push(state(backend, name(server), word)?);
    }
    Ok(requests)
}

/// The commands that add a server.
fn add(backend: &str, server: &Object, cx: &Context) -> Result<Vec<Request>, Refused> {
    let mut bare = server.clone();
    let fields = ["metadata", "maintenance"].map(|path| directives().field(ObjectKind::Server, path));
    for field in fields.into_iter().flatten() {
        bare.fields.remove(field);
    }
    let mut line = Vec::new();
    let impossible =
        |why: &dyn std::fmt::Display| Refused::Impossible(format!("server {}: {why}", name(server)));
    bare.write(cx, &mut line).map_err(|error| impossible(&error))?;
    let line = String::from_utf8(line).map_err(|error| impossible(&error))?;
    let path = format!("{backend}/{}", name(server));
    let mut request = Request::new("add server").word(&path)?;
    let words = setpoint_haproxy::text::Document::parse(format!("backend b\n  {line}").as_bytes());
    let lines = words.sections().iter().flat_map(|section| section.lines()).take(1);
    let words =
        lines.flat_map(|line| line.words().map(|word| word.to_str_lossy().into_owned()).collect::<Vec<_>>());
    let mut is_secret = false;
    for word in words.skip(2) {
        request = if is_secret { request.secret(&word)? } else { request.word(&word)? };
        is_secret = directives().precedes_secret(&word);
    }
    let mut requests = vec![request];
    if text(server, "check") == Some("enabled") {
        requests.push(Request::new("enable health").word(&path)?);
    }
    if text(server, "agent-check") == Some("enabled") {
        requests.push(Request::new("enable agent").word(&path)?);
    }
    if text(server, "maintenance") != Some("enabled") {
        requests.push(state(backend, name(server), "ready")?);
    }
    Ok(requests)
}

impl Leftover {
    /// Returns whether it is the one that another is about.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.backend == other.backend && self.server == other.server
    }

    /// Removes it from the running HAProxy, if nothing uses it, also if it should drain still. Returns whether it is gone.
    async fn remove_at_once(&mut self, worker: &Worker) -> Result<bool, Refused> {
        self.drains_until = self.drains_until.map(|_| Instant::now());
        self.remove(worker).await
    }

    /// Removes it from the running HAProxy, if it need not drain any more and nothing uses it. Returns whether it is gone.
    pub async fn remove(&mut self, worker: &Worker) -> Result<bool, Refused> {
        if let Some(until) = self.drains_until {
            if Instant::now() < until {
                return Ok(false);
            }
            match tell(worker, &state(&self.backend, &self.server, "maint")?).await {
                Err(Refused::Command { why, .. }) if why.contains("No such") => return Ok(true),
                done => done?,
            }
            self.drains_until = None;
        }
        let path = format!("{}/{}", self.backend, self.server);
        match worker.tell(&Request::new("del server").word(&path)?).await? {
            Reply::Done(_) => Ok(true),
            // Somebody else removed it.
            Reply::Refused(why) if why.contains("No such") => Ok(true),
            Reply::Refused(why) if why.contains("still has") || why.contains("connections") => Ok(false),
            Reply::Refused(why) => Err(Refused::Command { command: format!("del server {path}"), why }),
        }
    }
}
