//! What operators set at runtime, which a reload would lose.

use std::collections::BTreeSet;

use setpoint_haproxy::edit::{ChildKey, Editor, SectionKey};
use setpoint_haproxy::model::{Context, Object, ObjectKind};
use setpoint_haproxy::text::Document;

use super::differences::{WITH_SERVERS, is_in_maintenance, weight};
use super::inherited::Inherited;
use super::standing::Running;
use super::{Event, Instance};
use crate::cli::Request;
use crate::runtime::{AdminState, Reply, ServerState, apply};

/// Servers, each with its backend.
type Servers = BTreeSet<(String, String)>;

/// A text whose servers are looked up.
struct Text<'c> {
    editor: Editor<'c>,
    inherited: Inherited,
}

impl<'c> Text<'c> {
    fn new(text: &Document, cx: &'c Context) -> Self {
        Self { inherited: Inherited::of(text, cx), editor: Editor::new(text.clone(), cx) }
    }

    /// A server as HAProxy runs it by this text, if it has it.
    fn server(&mut self, state: &ServerState) -> Option<Object> {
        let name = ChildKey::Name(state.name.as_str().into());
        WITH_SERVERS.into_iter().find_map(|kind| {
            let section = SectionKey::named(kind, state.backend.as_str());
            let server = self.editor.get(&section, ObjectKind::Server, &name).ok()?;
            Some(self.inherited.whole(kind, &state.backend, &server).into_owned())
        })
    }
}

/// Returns whether a server may be something else than what its configuration says, without a look at that.
pub(super) fn is_touched(state: &ServerState, changed: &Servers) -> bool {
    state.forced_state().is_some()
        || state.was_disabled()
        || state.weight() != state.number("srv_iweight")
        || changed.contains(&(state.backend.clone(), state.name.clone()))
}

/// What brings back what somebody set at runtime, as far as neither text says something else about it.
fn overrides(before: &[&ServerState], was: &mut Text<'_>, current: &mut Text<'_>) -> Vec<Request> {
    let mut requests = Vec::new();
    for state in before {
        let (Some(old), Some(new)) = (was.server(state), current.server(state)) else { continue };
        let configured = if is_in_maintenance(&old) { AdminState::Maintenance } else { AdminState::Ready };
        let decided = state.forced_state().unwrap_or(AdminState::Ready);
        if decided != configured && is_in_maintenance(&old) == is_in_maintenance(&new) {
            requests.extend(apply::state(&state.backend, &state.name, decided.word()));
        }
        if state.weight() != weight(&old) && weight(&old) == weight(&new) {
            requests.extend(apply::weight(&state.backend, &state.name, state.weight()));
        }
    }
    requests
}

impl Instance {
    /// Sets again, after a reload, what somebody had set at runtime: what the former worker had that it neither read nor was told
    /// here.
    pub(super) async fn keep_what_operators_set(
        &self,
        before: &[ServerState],
        ran: &Running,
        changed: &Servers,
        current: &Document,
    ) {
        let is_changed = |state: &ServerState| changed.contains(&(state.backend.clone(), state.name.clone()));
        let mut touched: Vec<&ServerState> =
            before.iter().filter(|state| is_touched(state, changed)).collect();
        if matches!(ran, Running::Since(_)) {
            // Of these it is not known how much they were told here.
            touched.retain(|state| !is_changed(state));
        }
        if touched.is_empty() {
            return;
        }
        let Some(was) = ran.last() else {
            let difference =
                "what was set at runtime is lost with a reload: it is not known what HAProxy ran";
            return self.emit(Event::Drift { difference: difference.to_owned() });
        };
        let cx = self.inner.cx;
        let (mut was, mut current) = (Text::new(was, cx), Text::new(current, cx));
        let worker = self.worker();
        let mut requests = overrides(&touched, &mut was, &mut current).into_iter();
        while let Some(request) = requests.next() {
            match worker.tell(&request).await {
                Ok(Reply::Done(_)) => {}
                Ok(Reply::Refused(why)) => {
                    self.emit(Event::Drift {
                        difference: format!("`{request}` was refused after a reload: {why}"),
                    });
                }
                // It does not answer the others either, and nobody can commit meanwhile.
                Err(error) => {
                    let lost: Vec<String> = std::iter::once(request)
                        .chain(requests)
                        .map(|request| format!("`{request}`"))
                        .collect();
                    let lost = lost.join(", ");
                    return self
                        .emit(Event::Drift { difference: format!("lost after a reload: {lost}: {error}") });
                }
            }
        }
    }
}
