//! What operators set at runtime, and what HAProxy ran before this program looked.

use std::collections::BTreeMap;

use setpoint_haproxy::edit::{ChildKey, Editor, SectionKey};
use setpoint_haproxy::model::{Object, ObjectKind, Value};
use setpoint_haproxy::text::{Document, SectionKind};
use tokio::time::Instant;

use super::{Event, Instance, record};
use crate::cli::Request;
use crate::reload;
use crate::runtime::{AdminState, Leftover, ServerState, Told, apply};

/// The sections that have servers which HAProxy shows.
const WITH_SERVERS: [SectionKind; 2] = [SectionKind::Backend, SectionKind::Listen];

/// The server of a text, if it has it.
fn server(editor: &mut Editor<'_>, state: &ServerState) -> Option<Object> {
    let name = ChildKey::Name(state.name.as_str().into());
    WITH_SERVERS.into_iter().find_map(|kind| {
        let section = SectionKey::named(kind, state.backend.as_str());
        editor.get(&section, ObjectKind::Server, &name).ok()
    })
}

fn is_in_maintenance(server: &Object) -> bool {
    server.get("maintenance").and_then(Value::as_str) == Some("enabled")
}

fn weight(server: &Object) -> Option<i64> {
    server.get("weight").and_then(Value::as_int)
}

/// What brings back what somebody set at runtime, as far as neither text says something else about it.
fn overrides(before: &[ServerState], applied: &mut Editor<'_>, current: &mut Editor<'_>) -> Vec<Request> {
    let mut requests = Vec::new();
    let touched = |state: &&ServerState| {
        state.forced_state().is_some() || state.weight() != state.number("srv_iweight")
    };
    for state in before.iter().filter(touched) {
        let (Some(old), Some(new)) = (server(applied, state), server(current, state)) else { continue };
        let decided = state
            .forced_state()
            .filter(|decided| *decided != AdminState::Maintenance || !is_in_maintenance(&old));
        if let Some(decided) = decided
            && is_in_maintenance(&old) == is_in_maintenance(&new)
        {
            requests.extend(apply::state(&state.backend, &state.name, decided.word()));
        }
        let expected = weight(&old).unwrap_or(state.number("srv_iweight"));
        if state.weight() != expected && weight(&old) == weight(&new) {
            requests.extend(apply::weight(&state.backend, &state.name, state.weight()));
        }
    }
    requests
}

impl Instance {
    /// Sets again, after a reload, what somebody had set at runtime.
    pub(super) async fn keep_what_operators_set(
        &self,
        before: &[ServerState],
        applied: Document,
        current: &Document,
    ) {
        let cx = self.inner.cx;
        let (mut applied, mut current) = (Editor::new(applied, cx), Editor::new(current.clone(), cx));
        let worker = self.worker();
        for request in overrides(before, &mut applied, &mut current) {
            match worker.tell(&request).await {
                Ok(Told::Done(_)) => {}
                Ok(Told::Refused(why)) => {
                    self.say(Event::Drift {
                        difference: format!("`{request}` was refused after a reload: {why}"),
                    });
                }
                Err(error) => {
                    self.say(Event::Drift {
                        difference: format!("`{request}` is lost after a reload: {error}"),
                    });
                }
            }
        }
    }

    /// Finds out whether the running HAProxy has read the files as they are. What it has not read is loaded, if it was this
    /// program that wrote it.
    pub(super) async fn begin_with_what_runs(&self) {
        let Ok(processes) = reload::processes(&self.inner.master).await else { return };
        let Some(serving) = processes.serving() else { return };
        let text = record::hash(&self.state().current.print());
        let mut writer = self.inner.writer.lock().await;
        let is_noted = writer.record.is_of(serving.pid);
        if is_noted && writer.record.loaded.as_ref().is_some_and(|loaded| *loaded != text) {
            self.say(Event::Drift {
                difference: "HAProxy has not read the configuration as it is".to_owned(),
            });
            self.order_reload();
        }
        if !is_noted {
            writer.record.set_worker(serving.pid);
            self.note(&mut writer);
        }
        // Nobody changes anything until it is compared.
        let Ok(Some(states)) = self.worker().servers(None).await else { return };
        let Differences { found, missing, mut surplus } = self.compare_servers(&states);
        drop(writer);
        for difference in found {
            self.say(Event::Drift { difference });
        }
        if missing {
            self.order_reload();
        }
        // They were to be removed when this program ended.
        let mut state = self.state();
        let is_known = |one: &Leftover| {
            state.leftovers.iter().any(|held| held.backend == one.backend && held.server == one.server)
        };
        surplus.retain(|one| !is_known(one));
        state.leftovers.extend(surplus);
    }

    /// In what the servers of the running HAProxy differ from the configuration.
    pub async fn differences(&self) -> Vec<String> {
        match self.worker().servers(None).await {
            Ok(Some(states)) => self.compare_servers(&states).found,
            _ => Vec::new(),
        }
    }

    fn compare_servers(&self, states: &[ServerState]) -> Differences {
        let mut running: BTreeMap<(String, String), &ServerState> =
            states.iter().map(|state| ((state.backend.clone(), state.name.clone()), state)).collect();
        let mut editor = Editor::new(self.state().current.whole(), self.inner.cx);
        let mut differences = Differences::default();
        let found = &mut differences.found;
        let sections: Vec<SectionKey> =
            WITH_SERVERS.into_iter().flat_map(|kind| editor.sections(kind)).collect();
        for section in sections {
            let Some(backend) = section.name.clone() else { continue };
            // What can be read only as text can't be compared.
            let Ok(servers) = editor.list(&section, ObjectKind::Server) else {
                running.retain(|(held, _), _| *held != *backend);
                continue;
            };
            for server in &servers {
                let name = server.name().unwrap_or_default();
                let Some(state) = running.remove(&(backend.to_string(), name.to_owned())) else {
                    found.push(format!("server {backend}/{name} is in the configuration and does not run"));
                    differences.missing = true;
                    continue;
                };
                found.extend(difference(server, state).map(|what| format!("server {backend}/{name} {what}")));
            }
            for ((_, name), state) in running.extract_if(.., |(held, _), _| *held == *backend) {
                found.push(format!("server {backend}/{name} runs and is not in the configuration"));
                // One that serves is somebody's; one that was taken out of service is not.
                if state.forced_state().is_some() {
                    let drains_until = (state.forced_state() == Some(AdminState::Drain)).then(Instant::now);
                    let leftover = Leftover { backend: backend.to_string(), server: name, drains_until };
                    differences.surplus.push(leftover);
                }
            }
        }
        differences
    }
}

/// In what the servers of a running HAProxy differ from a configuration.
#[derive(Debug, Default)]
struct Differences {
    /// In words.
    found: Vec<String>,
    /// Whether a server does not run.
    missing: bool,
    /// Servers that the configuration does not have, and that serve nobody new.
    surplus: Vec<Leftover>,
}

/// In what a server that runs differs from what the configuration says of it.
fn difference(server: &Object, state: &ServerState) -> Option<String> {
    if let Some(weight) = weight(server).filter(|weight| *weight != state.weight()) {
        return Some(format!("has weight {} and not {weight}", state.weight()));
    }
    let address = server.get("address").and_then(Value::as_str).unwrap_or_default();
    if address.parse::<std::net::IpAddr>().is_ok() && address != state.column("srv_addr") {
        return Some(format!("has address {} and not {address}", state.column("srv_addr")));
    }
    let port = server.get("port").and_then(Value::as_int).filter(|port| *port != state.number("srv_port"));
    if let Some(port) = port {
        return Some(format!("has port {} and not {port}", state.column("srv_port")));
    }
    let wanted = if is_in_maintenance(server) { AdminState::Maintenance } else { AdminState::Ready };
    let is = state.admin_state();
    (wanted != is).then(|| format!("is `{}` and not `{}`", is.word(), wanted.word()))
}
