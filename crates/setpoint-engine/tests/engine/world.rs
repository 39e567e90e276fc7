//! A simulated system to be managed: it keeps things, fails on demand, and notices every violated rule.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

pub(crate) use crate::bench::{Bench, log, path};
use setpoint_engine::{
    Completion, Configurator, Damage, DefaultRegistry, Engine, Observed, OpCx, OpError, Operation, Ownership,
    SimulatedClock,
};
use setpoint_graph::{Deps, Item, ItemRef, Kind, Name};

/// What a thing needs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent choices of a simulated need")]
pub(crate) struct Need {
    pub any_of: Vec<String>,
    pub at_least: Option<u32>,
    pub exactly: Option<u32>,
    pub recreate: bool,
    pub auto: bool,
    /// It only comes after it.
    pub order: bool,
    /// It is applied again when that was changed.
    pub repeat: bool,
}

impl Need {
    fn accepts(&self, thing: &Thing) -> bool {
        self.at_least.is_none_or(|least| thing.value >= least)
            && self.exactly.is_none_or(|value| thing.value == value)
    }
}

/// An item of the simulated system. A changed `value` is modified in place, a changed `fixed` is not.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Thing {
    pub name: String,
    pub value: u32,
    pub fixed: u32,
    pub needs: Vec<Need>,
    pub claims: Vec<String>,
    pub external: bool,
    /// It is made anew to be applied again.
    pub restarts: bool,
}

pub(crate) fn thing(name: &str) -> Thing {
    Thing { name: name.into(), ..Thing::default() }
}

pub(crate) fn external(name: &str) -> Thing {
    Thing { external: true, ..thing(name) }
}

pub(crate) fn r(name: &str) -> ItemRef {
    ItemRef::new("thing", name)
}

impl Thing {
    pub(crate) fn value(mut self, value: u32) -> Self {
        self.value = value;
        self
    }

    pub(crate) fn fixed(mut self, fixed: u32) -> Self {
        self.fixed = fixed;
        self
    }

    fn need(mut self, any_of: &[&str], change: impl FnOnce(&mut Need)) -> Self {
        let any_of = any_of.iter().map(ToString::to_string).collect();
        let mut need = Need {
            any_of,
            at_least: None,
            exactly: None,
            recreate: false,
            auto: false,
            order: false,
            repeat: false,
        };
        change(&mut need);
        self.needs.push(need);
        self
    }

    pub(crate) fn on(self, name: &str) -> Self {
        self.need(&[name], |_| {})
    }

    pub(crate) fn on_any(self, names: &[&str]) -> Self {
        self.need(names, |_| {})
    }

    pub(crate) fn on_exactly(self, name: &str, value: u32) -> Self {
        self.need(&[name], |need| need.exactly = Some(value))
    }

    pub(crate) fn on_at_least(self, name: &str, value: u32) -> Self {
        self.need(&[name], |need| need.at_least = Some(value))
    }

    pub(crate) fn recreated_with(self, name: &str) -> Self {
        self.need(&[name], |need| need.recreate = true)
    }

    pub(crate) fn vanishing_with(self, name: &str) -> Self {
        self.need(&[name], |need| need.auto = true)
    }

    pub(crate) fn after(self, name: &str) -> Self {
        self.need(&[name], |need| need.order = true)
    }

    pub(crate) fn repeated_with(self, name: &str) -> Self {
        self.need(&[name], |need| (need.order, need.repeat) = (true, true))
    }

    pub(crate) fn restarting(mut self) -> Self {
        self.restarts = true;
        self
    }

    pub(crate) fn claiming(mut self, key: &str) -> Self {
        self.claims.push(key.into());
        self
    }
}

/// A value that no predicate can be asked for.
pub(crate) const PANICS: u32 = u32::MAX;

impl Item for Thing {
    const KIND: Kind = Kind::from_static("thing");

    fn name(&self) -> Name {
        Name::new(&self.name)
    }

    fn external(&self) -> bool {
        self.external
    }

    fn dependencies(&self, deps: &mut Deps) {
        for need in &self.needs {
            let dependency = match need.any_of.as_slice() {
                [one] if need.order => deps.after(("thing", one.as_str())),
                [one] => deps.requires(("thing", one.as_str())),
                many => deps.any_of(many.iter().map(|name| r(name))),
            };
            if let Some(value) = need.exactly {
                dependency.satisfying(format!("has the value {value}"), move |t: &Thing| {
                    assert_ne!(value, PANICS, "boom");
                    t.value == value
                });
            }
            if let Some(value) = need.at_least {
                dependency
                    .satisfying(format!("has at least the value {value}"), move |t: &Thing| t.value >= value);
            }
            if need.repeat {
                dependency.repeat_when_changed();
            }
            if need.recreate {
                dependency.recreate_when_modified();
            }
            if need.auto {
                dependency.auto_deleted_by_external();
            }
            dependency.because(format!("{} rests on it", self.name));
        }
        for key in &self.claims {
            deps.claims(key.as_str());
        }
    }

    fn attributes(&self, attributes: &mut setpoint_graph::Attributes) {
        attributes.add("value", self.value);
        attributes.add("fixed", self.fixed);
    }
}

/// How an operation behaves that was told to.
#[derive(Clone, Debug)]
pub(crate) enum Behaviour {
    Fail(OpError),
    Panic,
    /// Never ends by itself.
    Hang,
    /// Never ends, and does not listen either.
    Stubborn,
    Background,
    /// Takes that long.
    Slow(Duration),
}

#[derive(Debug, Default)]
pub(crate) struct System {
    pub exists: BTreeMap<String, Thing>,
    pub partial: BTreeSet<String>,
    /// Every rule that was broken.
    pub violations: Vec<String>,
    /// Operations in the order they took effect.
    pub log: Vec<String>,
    pub behaviours: BTreeMap<(String, Operation), VecDeque<Behaviour>>,
    /// Background operations that have not ended.
    pub background: BTreeMap<String, (Operation, Thing, Option<Completion>)>,
    /// Operations under way.
    pub running: BTreeSet<String>,
    pub most_running: usize,
    /// What is intended, and what is worked on: with what exists, the two graphs that relate things.
    pub intended: BTreeMap<String, Thing>,
    pub in_work: BTreeMap<String, Thing>,
    pub can_read: bool,
    /// Things that lost what they stand on by someone else's doing, until they are gone.
    pub excused: BTreeSet<String>,
    pub reads: usize,
    /// What this run has deleted.
    pub deleted: BTreeSet<String>,
    /// What must be applied again because something it comes after was changed, and has not been.
    pub to_repeat: BTreeSet<String>,
    /// External things with which something vanished at the end of an operation, while no run looked.
    pub unseen: BTreeSet<String>,
    /// The next change of this thing is undone at once by someone else.
    pub sabotage: Option<String>,
    /// The next read of a thing fails, and changes nothing.
    pub unreadable: Option<OpError>,
    /// The next read of a thing panics.
    pub read_panics: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct World(Arc<Mutex<System>>);

impl World {
    pub(crate) fn lock(&self) -> MutexGuard<'_, System> {
        self.0.lock().unwrap()
    }

    pub(crate) fn next(&self, name: &str, operation: Operation, behaviour: Behaviour) {
        self.lock().behaviours.entry((name.into(), operation)).or_default().push_back(behaviour);
    }

    pub(crate) fn fail(&self, name: &str, operation: Operation, message: &str) {
        self.next(name, operation, Behaviour::Fail(OpError::untouched(message)));
    }

    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().log)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.lock().exists.keys().cloned().collect()
    }

    /// Ends a background operation.
    pub(crate) fn finish(&self, name: &str, outcome: Result<(), OpError>) {
        let (operation, thing, completion) = self.lock().background.remove(name).expect("in the background");
        let mut system = self.lock();
        if let Ok(()) = &outcome {
            system.take_effect(operation, &thing);
        } else {
            system.running.remove(name);
            system.in_work.remove(name);
            // It should have vanished meanwhile.
            let doomed = |thing: &Thing| thing.needs.iter().any(|need| need.auto && !system.is_met(need));
            if system.exists.get(name).is_some_and(doomed) {
                system.exists.remove(name);
            }
        }
        drop(system);
        completion.expect("not finished yet").finish(outcome);
    }

    pub(crate) fn engine(&self) -> Engine {
        Engine::new(self.registry()).with_clock(SimulatedClock::start()).with_concurrency(1)
    }

    pub(crate) fn registry(&self) -> DefaultRegistry {
        DefaultRegistry::new().with::<Thing>(self.clone())
    }

    pub(crate) fn assert_no_violation(&self) {
        let violations = &self.lock().violations;
        assert!(violations.is_empty(), "{violations:#?}");
    }
}

/// What can be there, of these things, starting from the external ones that are.
pub(crate) fn founded(things: &BTreeMap<String, Thing>, there: &BTreeMap<String, Thing>) -> BTreeSet<String> {
    let mut found: BTreeSet<String> = there.values().filter(|t| t.external).map(|t| t.name.clone()).collect();
    loop {
        let met = |need: &Need| {
            need.any_of.iter().any(|name| {
                let unconditional = need.at_least.is_none() && need.exactly.is_none();
                found.contains(name)
                    && (unconditional || things.get(name).is_some_and(|thing| need.accepts(thing)))
            })
        };
        let more: Vec<String> = things
            .values()
            .filter(|t| !t.external && !found.contains(&t.name) && t.needs.iter().all(met))
            .map(|t| t.name.clone())
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

impl System {
    pub(crate) fn is_met(&self, need: &Need) -> bool {
        need.any_of.iter().any(|name| self.exists.get(name).is_some_and(|thing| need.accepts(thing)))
    }

    /// Returns whether one thing depends on another, directly or not, in either graph.
    fn reaches(&self, from: &str, to: &str) -> bool {
        let current = |name: &str| [self.exists.get(name), self.in_work.get(name)];
        let intended = |name: &str| [self.intended.get(name), None];
        reaches(from, to, current) || reaches(from, to, intended)
    }

    /// Returns whether something else holds what a thing would claim.
    pub(crate) fn is_claimed(&self, wanted: &Thing) -> bool {
        let others = self.exists.values().filter(|other| other.name != wanted.name);
        others.flat_map(|other| &other.claims).any(|key| wanted.claims.contains(key))
    }

    fn check_all(&mut self, during: &str) {
        let mut broken = Vec::new();
        for thing in self.exists.values().filter(|thing| !self.excused.contains(&thing.name)) {
            for need in thing.needs.iter().filter(|need| !need.order && !self.is_met(need)) {
                broken.push(format!("{during}: {} is without {:?}", thing.name, need.any_of));
            }
        }
        let mut holders: BTreeMap<&str, &str> = BTreeMap::new();
        for thing in self.exists.values() {
            for key in &thing.claims {
                if let Some(other) = holders.insert(key, &thing.name) {
                    broken.push(format!("{during}: {key} is held by {other} and {}", thing.name));
                }
            }
        }
        self.violations.append(&mut broken);
    }

    fn begin(&mut self, operation: Operation, thing: &Thing) {
        let during = format!("{operation} {}", thing.name);
        self.in_work.insert(thing.name.clone(), thing.clone());
        for other in &self.running {
            if self.reaches(other, &thing.name) || self.reaches(&thing.name, other) {
                self.violations.push(format!("{during} overlaps with {other}"));
            }
        }
        if !self.running.insert(thing.name.clone()) {
            self.violations.push(format!("{during}: something is done to it already"));
        }
        self.most_running = self.most_running.max(self.running.len());
        match operation {
            Operation::Create => {
                if self.exists.contains_key(&thing.name) {
                    self.violations.push(format!("{during}: created twice"));
                }
                if self.partial.contains(&thing.name) {
                    self.violations.push(format!("{during}: created over parts of it"));
                }
                // What goes and comes back is as if it had stayed.
                let returns = self.deleted.contains(&thing.name);
                let unmet = thing.needs.iter().filter(|need| (!need.order || !returns) && !self.is_met(need));
                let unmet: Vec<&Need> = unmet.collect();
                for need in unmet {
                    self.violations.push(format!("{during}: without {:?}", need.any_of));
                }
            }
            Operation::Modify => {
                if !self.exists.contains_key(&thing.name) {
                    self.violations.push(format!("{during}: it does not exist"));
                }
                // What may wait for it is not waited for.
                let waits = |need: &Need| need.any_of.iter().any(|other| self.reaches(other, &thing.name));
                let unmet = thing.needs.iter().filter(|need| need.order && !self.is_met(need));
                let unmet: Vec<&Need> = unmet.filter(|need| !waits(need)).collect();
                for need in unmet {
                    self.violations.push(format!("{during}: changed without {:?}", need.any_of));
                }
            }
            // Deleting what is not there is no mistake: nobody may know how its creation ended.
            Operation::Delete => {}
        }
    }

    fn take_effect(&mut self, operation: Operation, thing: &Thing) {
        self.running.remove(&thing.name);
        self.in_work.remove(&thing.name);
        self.log.push(format!("{operation} {}", thing.name));
        match operation {
            Operation::Create | Operation::Modify => {
                self.exists.insert(thing.name.clone(), thing.clone());
                self.partial.remove(&thing.name);
                self.to_repeat.remove(&thing.name);
                let after = |t: &&Thing| t.needs.iter().any(|n| n.repeat && n.any_of.contains(&thing.name));
                let after: Vec<String> = self.exists.values().filter(after).map(|t| t.name.clone()).collect();
                self.to_repeat.extend(after);
            }
            Operation::Delete => {
                self.to_repeat.remove(&thing.name);
                self.deleted.insert(thing.name.clone());
                self.exists.remove(&thing.name);
                self.partial.remove(&thing.name);
                self.excused.remove(&thing.name);
            }
        }
        if self.sabotage.as_deref() == Some(&thing.name) && operation != Operation::Delete {
            self.sabotage = None;
            self.exists.insert(thing.name.clone(), Thing { value: 77, ..thing.clone() });
        }
        // What should vanish with an external thing does so also if that went while it was being made.
        let gone: Vec<&Need> = thing.needs.iter().filter(|need| need.auto && !self.is_met(need)).collect();
        if !gone.is_empty() {
            let names: Vec<String> = gone.into_iter().flat_map(|need| need.any_of.clone()).collect();
            self.unseen.extend(names);
            self.exists.remove(&thing.name);
        }
        self.check_all(&format!("{operation} {}", thing.name));
    }

    fn fail(&mut self, operation: Operation, thing: &Thing, error: &OpError) {
        self.running.remove(&thing.name);
        self.in_work.remove(&thing.name);
        self.log.push(format!("{operation} {} failed", thing.name));
        if error.damage() == Damage::Partial && operation != Operation::Modify {
            self.exists.remove(&thing.name);
            self.partial.insert(thing.name.clone());
            // What only holds itself up from now on can't be taken down without breaking it.
            let founded = founded(&self.exists, &self.exists);
            let doomed = self.exists.keys().filter(|name| !founded.contains(*name)).cloned();
            self.excused.extend(doomed.collect::<Vec<_>>());
        }
    }
}

/// Returns whether one thing depends on another, directly or not.
pub(crate) fn reaches<'a>(from: &str, to: &str, at: impl Fn(&str) -> [Option<&'a Thing>; 2]) -> bool {
    let mut seen = BTreeSet::new();
    let mut todo = vec![from.to_owned()];
    while let Some(name) = todo.pop() {
        for target in at(&name).into_iter().flatten().flat_map(|t| &t.needs).flat_map(|need| &need.any_of) {
            if target == to {
                return true;
            }
            if seen.insert(target.clone()) {
                todo.push(target.clone());
            }
        }
    }
    false
}

impl World {
    async fn operate(&self, cx: &OpCx, operation: Operation, thing: &Thing) -> Result<(), OpError> {
        let behaviour = {
            let mut system = self.lock();
            system.begin(operation, thing);
            let queue = system.behaviours.get_mut(&(thing.name.clone(), operation));
            queue.and_then(VecDeque::pop_front)
        };
        match behaviour {
            None => {}
            // It was done, and nobody could see that.
            Some(Behaviour::Fail(error)) if error.damage() == Damage::Unknown => {
                self.lock().take_effect(operation, thing);
                return Err(error);
            }
            Some(Behaviour::Fail(error)) => {
                self.lock().fail(operation, thing, &error);
                return Err(error);
            }
            Some(Behaviour::Panic) => {
                self.lock().fail(operation, thing, &OpError::new("panic"));
                panic!("boom");
            }
            Some(Behaviour::Hang) => {
                let guard = DropGuard::new(self, operation, thing);
                cx.cancelled().await;
                guard.disarm();
                let error = OpError::untouched("stopped");
                self.lock().fail(operation, thing, &error);
                return Err(error);
            }
            Some(Behaviour::Stubborn) => {
                let _guard = DropGuard::new(self, operation, thing);
                std::future::pending::<()>().await;
            }
            Some(Behaviour::Background) => {
                let completion = cx.continue_in_background();
                assert!(cx.continue_in_background().is_none(), "only one completion is handed out");
                self.lock().background.insert(thing.name.clone(), (operation, thing.clone(), completion));
                return Ok(());
            }
            Some(Behaviour::Slow(duration)) => {
                let guard = DropGuard::new(self, operation, thing);
                tokio::time::sleep(duration).await;
                guard.disarm();
            }
        }
        self.lock().take_effect(operation, thing);
        Ok(())
    }
}

/// Leaves behind what an operation does whose future is dropped.
struct DropGuard(Option<(World, Operation, Thing)>);

impl DropGuard {
    fn new(world: &World, operation: Operation, thing: &Thing) -> Self {
        Self(Some((world.clone(), operation, thing.clone())))
    }

    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for DropGuard {
    fn drop(&mut self) {
        if let Some((world, operation, thing)) = self.0.take() {
            world.lock().fail(operation, &thing, &OpError::new("dropped"));
        }
    }
}

impl Configurator<Thing> for World {
    async fn create(&self, cx: &OpCx, new: &Thing) -> Result<(), OpError> {
        self.operate(cx, Operation::Create, new).await
    }

    async fn modify(&self, cx: &OpCx, _: &Thing, new: &Thing) -> Result<(), OpError> {
        self.operate(cx, Operation::Modify, new).await
    }

    async fn delete(&self, cx: &OpCx, old: &Thing) -> Result<(), OpError> {
        self.operate(cx, Operation::Delete, old).await
    }

    fn needs_recreate(&self, _: Ownership, old: &Thing, new: &Thing) -> bool {
        old.fixed != new.fixed
    }

    fn recreates_to_reapply(&self, item: &Thing) -> bool {
        item.restarts
    }

    async fn read(&self, _: &OpCx, item: &Thing) -> Result<Observed<Thing>, OpError> {
        let mut system = self.lock();
        system.reads += 1;
        if std::mem::take(&mut system.read_panics) {
            drop(system);
            panic!("no reading today");
        }
        if let Some(error) = system.unreadable.take() {
            return Err(error);
        }
        if !system.can_read || system.partial.contains(&item.name) {
            return Ok(Observed::Unsupported);
        }
        Ok(system.exists.get(&item.name).cloned().map_or(Observed::Absent, Observed::Present))
    }

    async fn list(&self, _: &OpCx) -> Result<Option<Vec<Thing>>, OpError> {
        let system = self.lock();
        Ok(system.can_read.then(|| system.exists.values().cloned().collect()))
    }
}
