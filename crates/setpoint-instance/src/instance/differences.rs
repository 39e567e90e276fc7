//! In what the servers of a running HAProxy differ from a configuration.

use std::collections::BTreeMap;

use setpoint_haproxy::edit::{Editor, SectionKey};
use setpoint_haproxy::model::{Object, ObjectKind, Value};
use setpoint_haproxy::text::{Document, SectionKind};
use tokio::time::Instant;

use super::Instance;
use super::inherited::Inherited;
use crate::blocking::run_blocking;
use crate::runtime::{AdminState, Leftover, ServerState, ServersError};

/// The sections that have servers which HAProxy shows.
pub(super) const WITH_SERVERS: [SectionKind; 2] = [SectionKind::Backend, SectionKind::Listen];

pub(super) fn is_in_maintenance(server: &Object) -> bool {
    server.get("maintenance").and_then(Value::as_str) == Some("enabled")
}

/// The weight of a server as it runs: HAProxy takes 1 for one that nobody says.
pub(super) fn weight(server: &Object) -> i64 {
    server.get("weight").and_then(Value::as_int).unwrap_or(1)
}

/// Returns whether an agent is asked about a server, which may set its weight and its state at any time.
pub(super) fn has_agent(server: &Object) -> bool {
    server.get("agent-check").and_then(Value::as_str) == Some("enabled")
}

/// In what the servers of a running HAProxy differ from a configuration.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// In words.
    pub(super) found: Vec<String>,
    /// Whether a server does not run.
    pub(super) missing: bool,
    /// Servers that the configuration does not have, and that serve nobody new.
    pub(super) surplus: Vec<Leftover>,
}

impl Instance {
    /// In what the servers of the running HAProxy differ from the configuration. An error says that they are not known.
    pub async fn differences(&self) -> Result<Vec<String>, ServersError> {
        let states = self.worker().servers(None).await?.unwrap_or_default();
        let current = self.state().current.whole().into_owned();
        Ok(run_blocking(|| self.compare_servers(&states, current)).found)
    }

    pub(super) fn compare_servers(&self, states: &[ServerState], text: Document) -> Differences {
        let mut running: BTreeMap<&str, BTreeMap<&str, &ServerState>> = BTreeMap::new();
        for state in states {
            running.entry(&state.backend).or_default().insert(&state.name, state);
        }
        // What HAProxy has for itself.
        running.retain(|backend, _| !backend.starts_with('<'));
        let inherited = Inherited::of(&text, self.inner.cx);
        let mut editor = Editor::new(text, self.inner.cx);
        let mut differences = Differences::default();
        let found = &mut differences.found;
        let sections: Vec<SectionKey> =
            WITH_SERVERS.into_iter().flat_map(|kind| editor.sections(kind)).collect();
        for section in sections {
            let Some(backend) = section.name.clone() else { continue };
            let mut running = running.remove(backend.as_str()).unwrap_or_default();
            // What can be read only as text can't be compared.
            let (Ok(servers), Ok(templates)) = (
                editor.list(&section, ObjectKind::Server),
                editor.list(&section, ObjectKind::ServerTemplate),
            ) else {
                continue;
            };
            for server in &servers {
                let name = server.name().unwrap_or_default();
                let Some(state) = running.remove(name) else {
                    found.push(format!("server {backend}/{name} is in the configuration and does not run"));
                    differences.missing = true;
                    continue;
                };
                let server = inherited.whole(section.kind, &backend, server);
                found
                    .extend(difference(&server, state).map(|what| format!("server {backend}/{name} {what}")));
            }
            for (name, state) in running {
                if templates.iter().any(|template| is_of(template, name)) {
                    continue;
                }
                found.push(format!("server {backend}/{name} runs and is not in the configuration"));
                // One that serves is somebody's; one that was taken out of service is not.
                if state.forced_state().is_some() {
                    let drains_until = (state.forced_state() == Some(AdminState::Drain)).then(Instant::now);
                    let (backend, server) = (backend.to_string(), name.to_owned());
                    differences.surplus.push(Leftover { backend, server, drains_until, was: None });
                }
            }
        }
        found.extend(
            running.keys().map(|backend| format!("backend {backend} runs and is not in the configuration")),
        );
        differences
    }
}

/// Returns whether a server of this name is one of a template: its prefix, and a number.
fn is_of(template: &Object, name: &str) -> bool {
    let number = template.name().and_then(|prefix| name.strip_prefix(prefix));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// In what a server that runs differs from what the configuration says of it.
fn difference(server: &Object, state: &ServerState) -> Option<String> {
    let expected = weight(server);
    if expected != state.weight() && !has_agent(server) {
        return Some(format!("has weight {} and not {expected}", state.weight()));
    }
    let address = server.get("address").and_then(Value::as_str).unwrap_or_default();
    let ip = |text: &str| text.parse::<std::net::IpAddr>().ok();
    if ip(address).is_some() && ip(address) != ip(state.column("srv_addr")) {
        return Some(format!("has address {} and not {address}", state.column("srv_addr")));
    }
    let port = server.get("port").and_then(Value::as_int).filter(|port| *port != state.number("srv_port"));
    if let Some(port) = port {
        return Some(format!("has port {} and not {port}", state.column("srv_port")));
    }
    if has_agent(server) {
        return None;
    }
    let wanted = if is_in_maintenance(server) { AdminState::Maintenance } else { AdminState::Ready };
    // What a resolver or a tracked server decides is nobody's decision about this one.
    let is = state.forced_state().unwrap_or(AdminState::Ready);
    (wanted != is).then(|| format!("is `{}` and not `{}`", is.word(), wanted.word()))
}
