//! The plan as people read it: operations with their reasons, and what is left as it is with its causes.

use std::collections::BTreeSet;

use setpoint_graph::{Attribute, Dependency, Edge, ItemHandle, ItemRef, SubgraphPath, differing};
use setpoint_plan::{Action, AttributeChange, Left, Plan, PlannedOperation, ReasonCode, Standing};

use super::edges::Side;
use super::{NONE, Outcome, Planner, StepKind, Why, slot};

impl Planner<'_> {
    /// Writes the plan into the common envelope.
    pub(crate) fn envelope(&mut self) -> Plan {
        let mut plan = Plan::new(self.cur.name().to_string());
        let order = std::mem::take(&mut self.schedule.order);
        let mut number_of = vec![None; self.schedule.steps.len()];
        let mut needs: Vec<Vec<usize>> = vec![Vec::new(); self.schedule.steps.len()];
        let mut held: Vec<bool> = vec![false; self.schedule.steps.len()];
        for &step in &order {
            let this = self.schedule.steps[step as usize];
            let item = self.reference(this.subject);
            let blocked = held[step as usize]
                || this.kind != StepKind::Gate
                    && (self.subject(this.subject).is_held() || self.related.to(item).is_some());
            if !blocked && let Some(action) = action(this.kind) {
                let number = plan.operations.len();
                number_of[step as usize] = Some(number);
                let mut operation = self.operation(this.subject, action);
                operation.after.clone_from(&needs[step as usize]);
                operation.after.sort_unstable();
                operation.after.dedup();
                plan.push(operation);
            }
            for (next, hard) in self.schedule.successors(step) {
                held[next as usize] |= hard && blocked;
                if !hard {
                    continue;
                }
                // What passes through a step that does nothing waits for what that waits for.
                if let Some(number) = number_of[step as usize] {
                    needs[next as usize].push(number);
                } else {
                    let through = needs[step as usize].clone();
                    needs[next as usize].extend(through);
                }
            }
        }
        let blocked = order.iter().filter(|&&step| number_of[step as usize].is_none());
        let blocked = blocked.map(|&step| self.schedule.steps[step as usize]);
        let blocked: BTreeSet<&ItemRef> = blocked
            .filter(|step| action(step.kind).is_some())
            .map(|step| self.reference(step.subject))
            .collect();
        self.schedule.order = order;
        let names: Vec<String> = plan
            .operations
            .iter()
            .map(|operation| format!("{}/{}", operation.kind, operation.name))
            .collect();
        for operation in &mut plan.operations {
            let named: BTreeSet<&String> =
                operation.after.iter().filter_map(|&number| names.get(number)).collect();
            operation.waits_for = named.into_iter().cloned().collect();
        }
        for left in self.left(&blocked) {
            plan.leave(left);
        }
        plan
    }

    fn operation(&self, id: u32, action: Action) -> PlannedOperation {
        let item = self.reference(id);
        let (old, new) = (self.cur_item(id), self.int_item(id));
        let detail = match action {
            Action::Modify => changes(old, new),
            Action::Create => changes(None, new),
            _ => Vec::new(),
        };
        PlannedOperation {
            path: names(&self.path(id)),
            code: Some(self.reason_code(id)),
            detail,
            temporary: self.subject(id).outcome == Outcome::Recreate && self.subject(id).remains(),
            ..PlannedOperation::new(action, item.kind().to_string(), item.name().to_string())
                .because(self.reason(id))
        }
    }

    fn path(&self, id: u32) -> SubgraphPath {
        let this = self.subject(id);
        match (this.int(), this.cur()) {
            (Some(slot), _) => self.int.path_at(slot),
            (None, Some(slot)) => self.cur.path_at(slot),
            (None, None) => SubgraphPath::root(),
        }
    }

    /// Why the item is operated on.
    pub(crate) fn reason(&self, id: u32) -> String {
        match self.subject(id).why {
            Why::Intended => "it is intended and not there".to_owned(),
            Why::Changed => self
                .changed_dependencies(id)
                .unwrap_or_else(|| "its state differs from the intended one".to_owned()),
            Why::Tainted => "a failed change may have left it half done".to_owned(),
            Why::AnotherItemChanged => {
                let changed = self.changed_since(id);
                let changed: Vec<String> = changed.iter().map(ToString::to_string).collect();
                let names =
                    if changed.is_empty() { String::new() } else { format!(": {}", changed.join(", ")) };
                format!("an item with which it is {} changed{names}", self.applied_again(id))
            }
            Why::AppliedWith(of) => {
                format!("it is {} when {} is changed", self.applied_again(id), self.reference(of))
            }
            Why::RecreationInterrupted => "an interrupted re-creation is completed".to_owned(),
            Why::Removed => "it is not intended any more".to_owned(),
            Why::Lost => format!("it lost what it needs: {}", self.unmet(id).join("; ")),
            Why::Cleanup => "a failed operation may have left parts of it".to_owned(),
            Why::NeedsRecreate => "it can't be changed in place".to_owned(),
            Why::Cascade(of) => format!("it depends on {}, which is made anew", self.reference(of)),
            Why::RequiredModified(of) => {
                format!("it depends on {}, and must be made anew when that is modified", self.reference(of))
            }
            Why::BreaksCycle => "no order of operations keeps it in place".to_owned(),
            Why::Unknown => "nobody knows how the last operation on it ended".to_owned(),
            Why::Requested => "it was asked for".to_owned(),
        }
    }

    /// The items with which an item is applied again, and that changed since it was changed itself.
    fn changed_since(&self, id: u32) -> Vec<ItemRef> {
        let since = |slot| self.cur.state_at(slot).map(|state| state.since);
        let own = self.subject(id).cur().and_then(since);
        let repeating =
            self.groups(id, Side::Cur).filter(|(dependency, _)| dependency.repeats_when_changed());
        let changed = repeating.flat_map(|(_, edges)| edges).filter(|edge| since(edge.slot) >= own);
        let changed: BTreeSet<ItemRef> =
            changed.filter_map(|edge| self.cur.reference_at(edge.slot).cloned()).collect();
        changed.into_iter().collect()
    }

    /// What an item does not depend on any more, and does from now on, where nothing else of it differs.
    fn changed_dependencies(&self, id: u32) -> Option<String> {
        let (old, new) = (self.cur_item(id)?, self.int_item(id)?);
        if !changes(Some(old), Some(new)).is_empty() {
            return None;
        }
        let targets = |item: &ItemHandle| -> BTreeSet<ItemRef> {
            item.dependencies().iter().flat_map(|dependency| dependency.targets().iter().cloned()).collect()
        };
        let (before, after) = (targets(old), targets(new));
        let names =
            |items: Vec<&ItemRef>| items.iter().map(ToString::to_string).collect::<Vec<String>>().join(", ");
        let (lost, gained) = (before.difference(&after).collect(), after.difference(&before).collect());
        let (lost, gained): (Vec<&ItemRef>, Vec<&ItemRef>) = (lost, gained);
        match (lost.is_empty(), gained.is_empty()) {
            (true, true) => None,
            (false, true) => Some(format!("it does not depend on {} any more", names(lost))),
            (true, false) => Some(format!("it depends on {} from now on", names(gained))),
            (false, false) => {
                Some(format!("it depends on {} from now on, and no more on {}", names(gained), names(lost)))
            }
        }
    }

    /// The same for programs.
    pub(crate) fn reason_code(&self, id: u32) -> ReasonCode {
        match self.subject(id).why {
            Why::Intended => ReasonCode::Missing,
            Why::Changed => ReasonCode::Changed,
            Why::Tainted => ReasonCode::HalfDone,
            Why::AnotherItemChanged | Why::AppliedWith(_)
                if self.subject(id).outcome == Outcome::Recreate =>
            {
                ReasonCode::DependencyModified
            }
            Why::AnotherItemChanged | Why::AppliedWith(_) => ReasonCode::Repeated,
            Why::RecreationInterrupted => ReasonCode::RecreationInterrupted,
            Why::Removed => ReasonCode::Removed,
            Why::Lost => ReasonCode::DependencyLost,
            Why::Cleanup => ReasonCode::Leftover,
            Why::NeedsRecreate => ReasonCode::NotInPlace,
            Why::Cascade(_) => ReasonCode::DependencyRecreated,
            Why::RequiredModified(_) => ReasonCode::DependencyModified,
            Why::BreaksCycle => ReasonCode::Cycle,
            Why::Unknown => ReasonCode::Unknown,
            Why::Requested => ReasonCode::Requested,
        }
    }

    /// How an item is applied again.
    fn applied_again(&self, id: u32) -> &'static str {
        if self.subject(id).outcome == Outcome::Recreate { "made anew" } else { "applied again" }
    }

    /// The items that are the reason why the item is operated on.
    pub(crate) fn reason_items(&self, id: u32) -> Vec<ItemRef> {
        match self.subject(id).why {
            Why::AppliedWith(of) | Why::Cascade(of) | Why::RequiredModified(of) => {
                vec![self.reference(of).clone()]
            }
            Why::AnotherItemChanged => self.changed_since(id),
            Why::Lost => self.unmet_items(id),
            _ => Vec::new(),
        }
    }

    /// The dependencies that are not satisfied in the end, in words.
    pub(crate) fn unmet(&self, id: u32) -> Vec<String> {
        let this = self.subject(id);
        let side = if this.is_intended() { Side::Int } else { Side::Cur };
        let mut causes = Vec::new();
        for (dependency, alternatives) in self.groups(id, side) {
            if let Some(cause) = self.unmet_cause(side, dependency, alternatives) {
                causes.push(cause);
            }
        }
        causes
    }

    /// The items that the item's unsatisfied dependencies name, and whoever holds what it claims.
    pub(crate) fn unmet_items(&self, id: u32) -> Vec<ItemRef> {
        let this = self.subject(id);
        if this.claimed_by != NONE {
            return vec![self.reference(this.claimed_by).clone()];
        }
        let side = if this.is_intended() { Side::Int } else { Side::Cur };
        let unmet = self
            .groups(id, side)
            .filter(|(d, alternatives)| self.unmet_cause(side, d, alternatives).is_some());
        unmet.flat_map(|(dependency, _)| dependency.targets().iter().cloned()).collect()
    }

    fn unmet_cause(&self, side: Side, dependency: &Dependency, alternatives: &[Edge]) -> Option<String> {
        let mut whys = Vec::new();
        for (edge, target) in alternatives.iter().zip(dependency.targets()) {
            let known = match side {
                Side::Cur => self.by_cur.get(edge.slot.to_index()),
                Side::Int => self.by_int.get(edge.slot.to_index()),
            };
            let value = match known {
                Some(id) => self.end_value(id),
                None => self.cur.item(target),
            };
            let failed = known.is_some_and(|id| dependency.is_order() && self.subject(id).not_due);
            match value.map(|value| dependency.check(value)) {
                Some(Ok(())) if failed => {
                    whys.push(format!("{target} {}", self.why_not_there(known, target)));
                }
                Some(Ok(())) => return None,
                Some(Err(why)) => whys.push(format!("{target} does not satisfy it: {why}")),
                None => whys.push(format!("{target} {}", self.why_not_there(known, target))),
            }
        }
        let mut cause = format!("waits for {dependency}");
        if !dependency.description().is_empty() {
            cause = format!("{cause} ({})", dependency.description());
        }
        Some(if whys.is_empty() { cause } else { format!("{cause}: {}", whys.join(", ")) })
    }

    fn why_not_there(&self, known: Option<u32>, target: &ItemRef) -> String {
        let Some(id) = known else {
            return if self.int.contains(target) {
                "is not there yet".into()
            } else {
                "is not intended".into()
            };
        };
        let this = self.subject(id);
        let state = this.cur().and_then(|slot| self.cur.state_at(slot));
        if this.is_busy() {
            let operation =
                state.and_then(|state| state.unfinished.as_ref()).map(|unfinished| unfinished.operation);
            return operation
                .map_or_else(|| "is busy".into(), |operation| format!("is in progress ({operation})"));
        }
        if let Some(failure) = state.and_then(|state| state.last_failure.as_ref()) {
            return format!("failed to {}: {}", failure.operation, failure.error);
        }
        if this.is_external() {
            "is external and not there".into()
        } else if this.invalid {
            "is invalid".into()
        } else if this.is_intended() {
            "is pending itself".into()
        } else {
            "is not intended".into()
        }
    }

    /// Everything that stays as it is against the intent, with causes, in order.
    fn left(&mut self, blocked: &BTreeSet<&ItemRef>) -> Vec<Left> {
        let mut items: BTreeSet<ItemRef> = self.cur.shared().waiting.keys().cloned().collect();
        items.extend(self.active.iter().map(|&id| self.reference(id).clone()));
        let mut left = Vec::new();
        for item in items {
            let Some(id) = self.at(&item) else { continue };
            let Some((standing, causes)) = self.standing(id, blocked.contains(&item)) else { continue };
            let waits_for = match standing {
                Standing::Pending | Standing::Busy => {
                    self.unmet_items(id).iter().map(ToString::to_string).collect()
                }
                _ => Vec::new(),
            };
            left.push(Left {
                waits_for,
                kind: item.kind().to_string(),
                name: item.name().to_string(),
                path: names(&self.path(id)),
                standing,
                causes,
            });
        }
        left
    }

    /// Why the item is left as it is; none if it is not, or is as intended.
    pub(crate) fn standing(&mut self, id: u32, blocked: bool) -> Option<(Standing, Vec<String>)> {
        let item = self.reference(id);
        let this = self.subject(id);
        let state = this.cur().and_then(|slot| self.cur.state_at(slot));
        if let Some(cycle) = self.cycle_of(id) {
            return Some((Standing::Invalid, vec![format!("it depends on itself: {cycle}")]));
        }
        if this.invalid {
            return Some((Standing::Invalid, vec![self.why_invalid(id)]));
        }
        if this.is_external() {
            let missing = this.is_intended() && !this.is_present();
            return missing
                .then(|| (Standing::External, vec!["nothing has brought it into being".to_owned()]));
        }
        if this.is_busy() {
            let operation =
                state.and_then(|state| state.unfinished.as_ref()).map(|unfinished| unfinished.operation);
            let cause =
                operation.map_or_else(String::new, |operation| format!("its {operation} is in progress"));
            return Some((Standing::Busy, vec![cause]));
        }
        if blocked && let Some(other) = self.related.to(item) {
            return Some((Standing::Busy, vec![format!("waits for the operation on {other} to end")]));
        }
        if let Some(failure) = state.and_then(|state| state.last_failure.as_ref())
            && (this.not_due || this.is_held())
        {
            let next = match failure.due {
                Some(due) => format!("the next attempt is due at {due:.0}"),
                None => "it is not tried again until the intent changes".to_owned(),
            };
            let times =
                if failure.attempts == 1 { "once".to_owned() } else { format!("{} times", failure.attempts) };
            let failed = format!("{} failed {times}: {}", failure.operation, failure.error);
            return Some((Standing::Failed, vec![failed, next]));
        }
        if this.claimed_by != NONE {
            let (holder, claims) = (this.claimed_by, self.int_item(id).map_or(&[][..], ItemHandle::claims));
            let held = self.end_value(holder).or(self.cur_item(holder)).map_or(&[][..], ItemHandle::claims);
            let key = claims.iter().find(|key| held.contains(key)).or(claims.first());
            let key = key.map_or_else(String::new, ToString::to_string);
            return Some((Standing::Pending, vec![format!("{key} is held by {}", self.reference(holder))]));
        }
        if this.is_left_for_failed() && !this.is_intended() {
            return Some((
                Standing::Pending,
                vec!["waits for what needs it, and can't change yet".to_owned()],
            ));
        }
        if this.is_stuck() || this.is_left_for_failed() {
            return Some((Standing::Pending, self.unmet(id)));
        }
        blocked.then(|| {
            let unmet = self.unmet(id);
            let unknown = || vec!["waits for an operation that can't be run now".to_owned()];
            (Standing::Pending, if unmet.is_empty() { unknown() } else { unmet })
        })
    }

    fn why_invalid(&mut self, id: u32) -> String {
        let Some(item) = self.int_item(id).or(self.cur_item(id)) else { return String::new() };
        if self.tangled.contains(&id) {
            return "it would need something that this plan leaves alone and that needs its present value"
                .to_owned();
        }
        match self.configurators.get(item.kind()) {
            None => format!("no configurator is registered for the kind {}", item.kind()),
            Some(configurator) if !configurator.accepts(item) => {
                format!("the configurator of the kind {} handles {}", item.kind(), configurator.item_type())
            }
            Some(_) => "its configurator failed to say how to change it".to_owned(),
        }
    }

    /// The path an item has in the intended graph, if it differs from where it lives.
    pub(crate) fn moves_to(&self, id: u32) -> Option<SubgraphPath> {
        let this = self.subject(id);
        let (cur, int) = (this.cur()?, this.int()?);
        (this.in_scope && !self.cur.same_place(cur, self.int, int))
            .then(|| self.int.path_at(slot(int.to_index())))
    }

    pub(crate) fn active(&self) -> &[u32] {
        &self.active
    }
}

fn action(kind: StepKind) -> Option<Action> {
    match kind {
        StepKind::Delete => Some(Action::Delete),
        StepKind::Modify => Some(Action::Modify),
        StepKind::Create => Some(Action::Create),
        StepKind::Switch | StepKind::Gate => None,
    }
}

fn names(path: &SubgraphPath) -> Vec<String> {
    path.names().iter().map(ToString::to_string).collect()
}

/// The attributes that differ between two values of an item.
fn changes(old: Option<&ItemHandle>, new: Option<&ItemHandle>) -> Vec<AttributeChange> {
    let all = |item: Option<&ItemHandle>| -> Vec<Attribute> {
        item.map(ItemHandle::attributes).unwrap_or_default().iter().cloned().collect()
    };
    let change = |(old, new): (Option<Attribute>, Option<Attribute>)| {
        let name = new.as_ref().or(old.as_ref()).map_or("", |attribute| attribute.name);
        AttributeChange { attribute: name.to_owned(), old: old.map(shown), new: new.map(shown) }
    };
    differing(&all(old), &all(new)).into_iter().map(change).collect()
}

fn shown(attribute: Attribute) -> String {
    if attribute.sensitive { "(sensitive)".to_owned() } else { attribute.value }
}
