//! By which way a difference is carried over.
//!
//! ```text
//! operations ─┬─▶ one by one, each taking effect by itself ─┐
//!             ├─▶ in one transaction ───────────────────────┤
//!             ├─▶ the whole text, and runtime actions ──────┼─▶ the cheapest, or the one that the document names
//!             └─▶ the whole text ───────────────────────────┘
//! ```

use setpoint_haproxy::compare::{Operation, Subject};
use setpoint_haproxy::model::ObjectKind;
use setpoint_haproxy::text::{Document, SectionKind};
use setpoint_plan::Action;

use super::options::{Choice, Strategy, SyncMode};
use super::steps::{Step, cheapest, one_each, sent};
use crate::costs::{Calls, Costs, Estimate};
use crate::target::Target;

/// A way to carry over a difference, with what it is expected to take.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedWay {
    /// The way.
    pub mode: SyncMode,
    /// What it takes.
    pub estimate: Estimate,
}

/// How the operations of a difference are sent.
#[derive(Clone, Debug)]
pub(super) enum Route<'o> {
    /// In a transaction.
    Transaction(Vec<Step<'o>>),
    /// Each by itself.
    OneByOne,
    /// As a text, beside which a running HAProxy is told these actions, without a reload.
    Actions(String),
    /// As a text.
    Text,
}

/// A way that was chosen.
#[derive(Clone, Debug)]
pub(super) struct Way<'o> {
    pub(super) mode: SyncMode,
    pub(super) route: Route<'o>,
    /// What it costs beside the others, the chosen one first; nothing where costs did not decide.
    pub(super) planned: Vec<PlannedWay>,
}

/// The question: what is to be carried over, and where.
pub(super) struct Question<'q, T> {
    pub(super) target: &'q T,
    pub(super) version: u64,
    pub(super) operations: &'q [Operation],
    pub(super) desired: &'q Document,
    /// How long the text is.
    pub(super) held: usize,
    pub(super) threshold: usize,
    /// Whether files wait for a reload: then one comes, whatever the operations need.
    pub(super) files_wait: bool,
}

/// A strategy that can't carry over a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this difference can't be carried over {}", .0.words())]
pub struct Impossible(pub Strategy);

impl<'q, T: Target> Question<'q, T> {
    /// Chooses the way.
    pub(super) fn choose(&self, choice: &Choice) -> Result<Way<'q>, Impossible> {
        match choice {
            Choice::Document => Ok(self.as_documented()),
            Choice::Cheapest(weights) => Ok(self.cheapest(&weights.over(self.target.costs()))),
            Choice::Always(strategy) => self.always(*strategy),
        }
    }

    /// Decides as the document does that describes the sync: the whole text at first, above a threshold, and where no call
    /// carries an operation; one by one where only servers change; a transaction otherwise.
    fn as_documented(&self) -> Way<'q> {
        let raw = |mode| Way { mode, route: Route::Text, planned: Vec::new() };
        if self.version == 1 {
            raw(SyncMode::RawInitial)
        } else if self.threshold > 0 && self.operations.len() > self.threshold {
            raw(SyncMode::RawThreshold)
        } else if self.needs_text() {
            raw(SyncMode::RawText)
        } else if self.is_told_one_by_one() && !self.files_wait {
            Way { mode: SyncMode::Runtime, route: Route::OneByOne, planned: Vec::new() }
        } else {
            let route = Route::Transaction(one_each(self.operations));
            Way { mode: SyncMode::FineGrained, route, planned: Vec::new() }
        }
    }

    fn always(&self, strategy: Strategy) -> Result<Way<'q>, Impossible> {
        let is_possible = match strategy {
            Strategy::Text => true,
            Strategy::Transaction => !self.needs_text(),
            Strategy::OneByOne => !self.needs_text() && self.is_told_directly(),
        };
        if !is_possible {
            return Err(Impossible(strategy));
        }
        let (mode, route) = match strategy {
            Strategy::Text => (SyncMode::RawChosen, Route::Text),
            Strategy::Transaction => (SyncMode::FineGrained, Route::Transaction(one_each(self.operations))),
            Strategy::OneByOne => (SyncMode::Runtime, Route::OneByOne),
        };
        Ok(Way { mode, route, planned: Vec::new() })
    }

    /// The way that costs least.
    fn cheapest(&self, costs: &Costs) -> Way<'q> {
        let mut ways = self.ways(costs);
        // The first of equals: they are in the order of what people expect.
        ways.sort_by(|(.., one), (.., other)| one.cost.total_cmp(&other.cost));
        let planned = ways.iter().map(|(mode, _, estimate)| PlannedWay { mode: *mode, estimate: *estimate });
        let planned = planned.collect();
        match ways.into_iter().next() {
            Some((mode, route, _)) => Way { mode, route, planned },
            None => Way { mode: SyncMode::RawText, route: Route::Text, planned },
        }
    }

    /// All ways that carry over the difference, with their costs.
    fn ways(&self, costs: &Costs) -> Vec<(SyncMode, Route<'q>, Estimate)> {
        let is_above = self.threshold > 0 && self.operations.len() > self.threshold;
        let reloads =
            self.files_wait || self.operations.iter().any(|operation| !operation.runtime.is_possible());
        let always = self.target.always_reloads();
        let text = costs.estimate(&Calls::Push, self.held, reloads || always);
        if is_above || self.needs_text() {
            let mode = if is_above { SyncMode::RawThreshold } else { SyncMode::RawText };
            return vec![(mode, Route::Text, text)];
        }
        let mut ways = Vec::new();
        if self.is_told_directly() && !self.files_wait {
            let calls = Calls::OneByOne(self.operations.iter().map(sent).collect());
            ways.push((SyncMode::Runtime, Route::OneByOne, costs.estimate(&calls, self.held, false)));
        }
        let steps = cheapest(self.operations, self.desired, self.target, costs, self.held);
        let calls = Calls::Transaction(steps.iter().map(Step::sent).collect());
        let estimate = costs.estimate(&calls, self.held, reloads || always);
        ways.push((SyncMode::FineGrained, Route::Transaction(steps), estimate));
        if let Some(actions) =
            self.actions().filter(|_| self.target.takes_runtime_actions() && !self.files_wait)
        {
            // The text is checked, and nobody reloads.
            let checked = costs.estimate(&Calls::Push, self.held, true);
            let estimate = Estimate { reloads: 0, cost: checked.seconds, ..checked };
            ways.push((SyncMode::Runtime, Route::Actions(actions), estimate));
        }
        ways.push((SyncMode::RawChosen, Route::Text, text));
        ways
    }

    fn needs_text(&self) -> bool {
        self.operations.iter().any(|operation| self.target.needs_text(operation).is_some())
            || self.operations.iter().any(|operation| self.is_governed_by_place(operation))
    }

    /// Returns whether an operation makes a proxy that no call puts where it belongs: which `defaults` hold for it is said by its place
    /// alone, and there are several.
    fn is_governed_by_place(&self, operation: &Operation) -> bool {
        let Subject::Section { new: Some(new), .. } = &operation.subject else { return false };
        let is_new = operation.action == Action::Create && operation.section.kind.is_proxy();
        let sections = self.desired.sections().iter();
        is_new
            && new.get("from").is_none()
            && sections.filter(|section| section.kind() == SectionKind::Defaults).nth(1).is_some()
    }

    /// Returns whether only servers change that HAProxy can be told of.
    fn is_told_one_by_one(&self) -> bool {
        let is_told =
            |operation: &Operation| operation.is_server_modification() && operation.runtime.is_possible();
        self.operations.iter().all(is_told)
    }

    /// The same where a transaction would reload for what is new, too.
    fn is_told_directly(&self) -> bool {
        let is_told = |operation: &Operation| {
            let is_server = matches!(operation.subject, Subject::Child { kind: ObjectKind::Server, .. });
            is_server && operation.action != Action::Delete && operation.runtime.is_possible()
        };
        self.is_told_one_by_one() || self.target.always_reloads() && self.operations.iter().all(is_told)
    }

    /// The operations as `X-Runtime-Actions`, if all of them can be told that way.
    fn actions(&self) -> Option<String> {
        let mut actions = Vec::new();
        for operation in self.operations {
            actions.extend(actions_of(operation)?);
        }
        Some(actions.join(";"))
    }
}

/// What tells a running HAProxy what an operation changes: the weight or the address of a server, and nothing else.
fn actions_of(operation: &Operation) -> Option<Vec<String>> {
    if !operation.is_server_modification() || !operation.runtime.is_possible() {
        return None;
    }
    let Subject::Child { key, old: Some(old), new: Some(new), .. } = &operation.subject else { return None };
    let backend = operation.section.name.as_deref()?;
    let (server, old, new) = (key.to_string(), old.to_json(), new.to_json());
    let is_plain = |name: &str| !name.contains([' ', ';', '"', '\\']);
    if !is_plain(backend) || !is_plain(&server) {
        return None;
    }
    let (old, new) = (old.as_object()?, new.as_object()?);
    let names = old.keys().chain(new.keys());
    let changed: Vec<&str> =
        names.map(String::as_str).filter(|name| old.get(*name) != new.get(*name)).collect();
    let mut actions = Vec::new();
    if changed.contains(&"weight") {
        actions.push(format!("SetServerWeight {backend} {server} {}", new.get("weight")?.as_i64()?));
    }
    if changed.iter().any(|name| ["address", "port"].contains(name)) {
        let address = new.get("address")?.as_str().filter(|address| is_plain(address))?;
        let port = new.get("port")?.as_i64()?;
        actions.push(format!("SetServerAddr {backend} {server} {address} {port}"));
    }
    changed.iter().all(|name| ["weight", "address", "port"].contains(name)).then_some(actions)
}

#[cfg(test)]
mod tests {
    use setpoint_haproxy::compare::compare;
    use setpoint_haproxy::model::Context;

    use super::*;

    fn actions(old: &str, new: &str) -> Option<String> {
        let text = |server: &str| Document::parse(format!("backend b\n  server s {server}\n").as_bytes());
        let diff = compare(&text(old), &text(new), &Context::default()).unwrap();
        let actions: Option<Vec<_>> = diff.operations().iter().map(actions_of).collect();
        actions.map(|actions| actions.concat().join(";"))
    }

    #[test]
    fn weights_and_addresses_of_servers_are_told_as_actions() {
        assert_eq!(actions("10.0.0.1:80 weight 1", "10.0.0.1:80 weight 2").unwrap(), "SetServerWeight b s 2");
        assert_eq!(
            actions("10.0.0.1:80 weight 1", "10.0.0.2:81 weight 2").unwrap(),
            "SetServerWeight b s 2;SetServerAddr b s 10.0.0.2 81"
        );
        assert_eq!(actions("10.0.0.1:80", "10.0.0.1:80 check"), None, "a check is no such thing");
        assert_eq!(
            actions("10.0.0.1:80 weight 5", "10.0.0.1:80"),
            None,
            "which weight it has then is not said"
        );
    }
}
