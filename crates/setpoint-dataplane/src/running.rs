//! In what the servers that run differ from a configuration.
//!
//! A running HAProxy may differ from its configuration because it did not take what it was told, or because somebody told it
//! something else: an operator who drains a server, above all.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;
use setpoint_haproxy::compare::{Operation, Subject};
use setpoint_haproxy::edit::{Editor, SectionKey};
use setpoint_haproxy::model::{Context, Object, ObjectKind, Value};
use setpoint_haproxy::text::{Document, SectionKind};
use setpoint_plan::Action;

use crate::client::{ApiError, RunningServer};
use crate::target::Target;

/// How many backends are asked about at the same time.
const AT_A_TIME: usize = 8;

/// In what a server that runs differs from a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunningDifference {
    /// The backend.
    pub backend: String,
    /// The server.
    pub server: String,
    /// In what.
    pub aspect: Aspect,
    /// What it is.
    pub runs: String,
    /// What the configuration says.
    pub wanted: String,
}

/// What of a server differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aspect {
    /// It does not run.
    Presence,
    /// It runs, and should be gone.
    Removal,
    /// Its address, with the port.
    Address,
    /// Its weight.
    Weight,
    /// What somebody has decided of it: `ready`, `maint` or `drain`.
    State,
}

impl fmt::Display for RunningDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { backend, server, aspect, runs, wanted } = self;
        write!(f, "backend {backend}: server {server} ")?;
        match aspect {
            Aspect::Presence => write!(f, "does not run"),
            Aspect::Removal => write!(f, "runs on, and is not in the configuration"),
            Aspect::Address => write!(f, "runs with address {runs} and not {wanted}"),
            Aspect::Weight => write!(f, "runs with weight {runs} and not {wanted}"),
            Aspect::State => write!(f, "is `{runs}` and not `{wanted}`"),
        }
    }
}

/// Which servers are compared.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Compared<'s> {
    /// All of them.
    All,
    /// Those that it was told.
    Told(&'s Told),
}

impl Compared<'_> {
    fn has(self, backend: &str, server: &str) -> bool {
        match self {
            Self::All => true,
            Self::Told(told) => told.servers.contains(&(backend.to_owned(), server.to_owned())),
        }
    }

    /// The servers of a backend that should be gone.
    fn gone(self) -> BTreeMap<String, Vec<String>> {
        let mut gone: BTreeMap<String, Vec<String>> = BTreeMap::new();
        if let Self::Told(told) = self {
            for (backend, server) in &told.gone {
                gone.entry(backend.clone()).or_default().push(server.clone());
            }
        }
        gone
    }

    /// Returns whether what somebody has decided of a server counts.
    fn has_state(self, backend: &str, server: &str) -> bool {
        match self {
            Self::All => true,
            Self::Told(told) => told.states.contains(&(backend.to_owned(), server.to_owned())),
        }
    }
}

/// What operations tell a running HAProxy of servers, by backend and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Those that are there then.
    pub(crate) servers: BTreeSet<(String, String)>,
    /// Those that are not.
    gone: BTreeSet<(String, String)>,
    /// Those whose state it is told, too. Of all others an operator decides.
    states: BTreeSet<(String, String)>,
}

impl Told {
    /// What operations tell.
    pub(crate) fn of<'o>(operations: impl Iterator<Item = &'o Operation>) -> Self {
        let mut told = Self::default();
        for operation in operations {
            let Subject::Child { kind: ObjectKind::Server, key, .. } = &operation.subject else { continue };
            let Some(backend) = &operation.section.name else { continue };
            let server = (backend.to_string(), key.to_string());
            if operation.action == Action::Delete {
                told.gone.insert(server);
                continue;
            }
            let is_state = operation.changes.iter().any(|change| change.attribute == "maintenance");
            if operation.action == Action::Create || is_state {
                told.states.insert(server.clone());
            }
            told.servers.insert(server);
        }
        // One that is made anew under its name is there.
        told.gone.retain(|server| !told.servers.contains(server));
        told
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.servers.is_empty() && self.gone.is_empty()
    }
}

/// Finds out in what servers that run differ from a configuration.
pub(crate) async fn compare_running<T: Target>(
    target: &T,
    desired: &Document,
    compared: Compared<'_>,
) -> Result<Vec<RunningDifference>, ApiError> {
    let mut gone = compared.gone();
    let mut backends = servers_of(desired, target.context(), compared);
    let named: BTreeSet<String> = backends.iter().map(|(backend, _)| backend.clone()).collect();
    backends.extend(
        gone.keys().filter(|backend| !named.contains(*backend)).map(|backend| (backend.clone(), vec![])),
    );
    let mut found = stream::iter(backends)
        .map(async |(backend, servers)| {
            let running = match target.running_servers(&backend).await {
                // The backend is gone with its servers.
                Err(ApiError::NotFound { .. }) if servers.is_empty() => Vec::new(),
                running => running?,
            };
            Ok::<_, ApiError>((backend, servers, running))
        })
        .buffered(AT_A_TIME)
        .try_collect::<Vec<_>>()
        .await?;
    let lacks = |server: &RunningServer| server.weight.is_none();
    let weighs = |servers: &[Object]| servers.iter().any(|server| server.get("weight").is_some());
    if found.iter().any(|(_, servers, running)| weighs(servers) && running.iter().any(lacks)) {
        let weights = target.server_weights().await?;
        for (backend, _, running) in &mut found {
            for server in running.iter_mut().filter(|server| lacks(server)) {
                server.weight = weights.get(&(backend.clone(), server.name.clone())).copied();
            }
        }
    }
    let found = found.into_iter().flat_map(|(backend, servers, running)| {
        let gone = gone.remove(&backend).unwrap_or_default();
        let mut found = differences(&backend, &servers, &running);
        found.retain(|difference| {
            difference.aspect != Aspect::State || compared.has_state(&difference.backend, &difference.server)
        });
        found.extend(left(&backend, &gone, &running));
        found
    });
    Ok(found.collect())
}

/// Servers that run and should be gone. One that only waits for its connections to end is as good as gone.
fn left(backend: &str, gone: &[String], running: &[RunningServer]) -> Vec<RunningDifference> {
    let runs = running.iter().filter(|server| gone.contains(&server.name) && server.admin_state == "ready");
    let left = runs.map(|server| RunningDifference {
        backend: backend.to_owned(),
        server: server.name.clone(),
        aspect: Aspect::Removal,
        runs: server.address.clone(),
        wanted: String::new(),
    });
    left.collect()
}

/// The servers of a configuration, by backend.
fn servers_of(desired: &Document, cx: &Context, compared: Compared<'_>) -> Vec<(String, Vec<Object>)> {
    let mut editor = Editor::new(desired.clone(), cx);
    let kinds = [SectionKind::Backend, SectionKind::Listen];
    let sections: Vec<SectionKey> = kinds.into_iter().flat_map(|kind| editor.sections(kind)).collect();
    let mut backends = Vec::new();
    for section in sections {
        // What can be read only as text can't be compared.
        let (Some(backend), Ok(mut servers)) =
            (section.name.clone(), editor.list(&section, ObjectKind::Server))
        else {
            continue;
        };
        servers.retain(|server| compared.has(&backend, server.name().unwrap_or_default()));
        if !servers.is_empty() {
            backends.push((backend.to_string(), servers));
        }
    }
    backends
}

/// The servers of a configuration, by backend and name.
pub(crate) fn names_of(text: &[u8], cx: &Context) -> BTreeSet<(String, String)> {
    let backends = servers_of(&Document::parse(text), cx, Compared::All);
    let names = backends.iter().flat_map(|(backend, servers)| {
        servers.iter().filter_map(|server| Some((backend.clone(), server.name()?.to_owned())))
    });
    names.collect()
}

fn differences(backend: &str, servers: &[Object], running: &[RunningServer]) -> Vec<RunningDifference> {
    let mut found = Vec::new();
    for server in servers {
        let name = server.name().unwrap_or_default();
        let mut differs = |aspect, runs: String, wanted: String| {
            let (backend, server) = (backend.to_owned(), name.to_owned());
            found.push(RunningDifference { backend, server, aspect, runs, wanted });
        };
        let Some(state) = running.iter().find(|state| state.name == name) else {
            differs(Aspect::Presence, String::new(), String::new());
            continue;
        };
        let wanted = server.get("address").and_then(Value::as_str).unwrap_or_default();
        let port = server.get("port").and_then(Value::as_int);
        let ip = |text: &str| text.parse::<IpAddr>().ok();
        // What a name stands for is a resolver's to say.
        if let Some(address) = ip(wanted) {
            let is_other = ip(&state.address).is_some_and(|runs| runs != address);
            if is_other || port.is_some_and(|port| state.port.is_some_and(|runs| runs != port)) {
                let shown = |address: &str, port: Option<i64>| match port {
                    Some(port) if address.contains(':') => format!("[{address}]:{port}"),
                    Some(port) => format!("{address}:{port}"),
                    None => address.to_owned(),
                };
                differs(Aspect::Address, shown(&state.address, state.port), shown(wanted, port));
            }
        }
        let weight = server.get("weight").and_then(Value::as_int);
        if let (Some(weight), Some(runs)) = (weight, state.weight)
            && weight != runs
        {
            differs(Aspect::Weight, runs.to_string(), weight.to_string());
        }
        let is_disabled = server.get("maintenance").and_then(Value::as_str) == Some("enabled");
        let wanted = if is_disabled { "maint" } else { "ready" };
        if !state.admin_state.is_empty() && state.admin_state != wanted {
            differs(Aspect::State, state.admin_state.clone(), wanted.to_owned());
        }
    }
    found
}

/// What tells a running HAProxy to be as the configuration says, as `X-Runtime-Actions`; none where no action does.
pub(crate) fn action(difference: &RunningDifference) -> Option<String> {
    let RunningDifference { backend, server, aspect, wanted, .. } = difference;
    match aspect {
        Aspect::Weight => Some(format!("SetServerWeight {backend} {server} {wanted}")),
        Aspect::Address => {
            let wanted: SocketAddr = wanted.parse().ok()?;
            Some(format!("SetServerAddr {backend} {server} {} {}", wanted.ip(), wanted.port()))
        }
        Aspect::State => Some(format!("SetServerState {backend} {server} {wanted}")),
        Aspect::Presence | Aspect::Removal => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str, runs: RunningServer) -> Vec<String> {
        let text = Document::parse(format!("backend b\n  server s {line}\n").as_bytes());
        let servers = servers_of(&text, &Context::default(), Compared::All);
        let (backend, servers) = servers.into_iter().next().unwrap();
        differences(&backend, &servers, &[runs]).iter().map(ToString::to_string).collect()
    }

    fn running(address: &str, port: i64, weight: i64, state: &str) -> RunningServer {
        RunningServer {
            name: "s".to_owned(),
            address: address.to_owned(),
            port: Some(port),
            admin_state: state.to_owned(),
            operational_state: "up".to_owned(),
            weight: Some(weight),
        }
    }

    #[test]
    fn a_server_differs_in_its_address_its_weight_and_what_somebody_decided_of_it() {
        let as_is = running("10.0.0.1", 80, 5, "ready");
        assert_eq!(found("10.0.0.1:80 weight 5", as_is.clone()), Vec::<String>::new());
        assert_eq!(
            found("10.0.0.2:80 weight 6", as_is.clone()),
            [
                "backend b: server s runs with address 10.0.0.1:80 and not 10.0.0.2:80",
                "backend b: server s runs with weight 5 and not 6",
            ]
        );
        assert_eq!(
            found("10.0.0.1:80", running("10.0.0.1", 80, 5, "drain")),
            ["backend b: server s is `drain` and not `ready`"]
        );
        assert_eq!(found("10.0.0.1:80 disabled", running("10.0.0.1", 80, 1, "maint")), Vec::<String>::new());
        assert_eq!(found("10.0.0.1:80 disabled", as_is), ["backend b: server s is `ready` and not `maint`"]);
    }

    #[test]
    fn what_a_name_stands_for_is_no_difference() {
        assert_eq!(found("shop.test:80", running("10.0.0.9", 80, 1, "ready")), Vec::<String>::new());
    }

    #[test]
    fn a_server_that_does_not_run_is_one() {
        let other = RunningServer { name: "t".to_owned(), ..running("10.0.0.1", 80, 1, "ready") };
        assert_eq!(found("10.0.0.1:80", other), ["backend b: server s does not run"]);
    }
}
