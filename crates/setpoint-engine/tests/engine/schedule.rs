//! One random schedule: what it does to the engine, and what must hold in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use setpoint_engine::{
    Clock, CurrentGraph, Engine, MemoryJournal, OpError, Operation, RetryPolicy, Selection, SimulatedClock,
    Status, replay,
};
use setpoint_graph::{Graph, ItemRef};
use tokio_util::sync::CancellationToken;

use crate::dice::Dice;
use crate::world::*;

const NAMES: [&str; 9] = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
const EXTERNAL: [&str; 3] = ["x", "y", "z"];
const PATHS: [&str; 4] = ["", "one", "one/two", "three"];

/// What happened, kept outside of the schedule so that it survives a panic.
#[derive(Clone, Default)]
pub(crate) struct Trace(pub(crate) Arc<std::sync::Mutex<Vec<String>>>);

impl Trace {
    fn push(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }
}

pub(crate) struct Schedule {
    pub(crate) dice: Dice,
    pub(crate) world: World,
    pub(crate) current: Option<CurrentGraph>,
    pub(crate) intended: Graph,
    pub(crate) claims: bool,
    /// Things also come after others.
    pub(crate) orders: bool,
    journal: Arc<MemoryJournal>,
    clock: SimulatedClock,
    trace: Trace,
    /// Items were taken out of the current graph by hand, which the journal can't know.
    forgotten: bool,
}

impl Schedule {
    pub(crate) fn new(seed: u64, trace: Trace) -> Self {
        let mut dice = Dice(seed);
        let claims = dice.one_in(3);
        let world = World::default();
        world.lock().can_read = dice.one_in(2);
        Self {
            dice,
            world,
            current: None,
            intended: Graph::new("test"),
            claims,
            orders: false,
            journal: Arc::new(MemoryJournal::new()),
            clock: SimulatedClock::start(),
            trace,
            forgotten: false,
        }
    }

    fn random_thing(&mut self, name: &str) -> Thing {
        let dice = &mut self.dice;
        let mut made = thing(name).value(u32::try_from(dice.below(3)).unwrap());
        if dice.one_in(4) {
            made = made.fixed(1);
        }
        made.restarts = self.orders && dice.one_in(3);
        let others: Vec<&str> = NAMES.iter().chain(&EXTERNAL).copied().collect();
        for _ in 0..dice.below(3) {
            // Mostly on smaller names, so that cycles are possible but rare.
            let mut other = *dice.pick(&others);
            if !EXTERNAL.contains(&other) && other >= name && !dice.one_in(12) {
                other = EXTERNAL[dice.below(3)];
            }
            made = match dice.below(if self.orders { 9 } else { 6 }) {
                0 => made.on_at_least(other, u32::try_from(dice.below(3)).unwrap()),
                1 => made.recreated_with(other),
                2 => {
                    let second = *dice.pick(&others);
                    made.on_any(&[other, second])
                }
                3 if EXTERNAL.contains(&other) => made.vanishing_with(other),
                6 => made.after(other),
                7 | 8 if !EXTERNAL.contains(&other) => made.repeated_with(other),
                _ => made.on(other),
            };
        }
        if self.claims && dice.one_in(2) {
            made = made.claiming(["p", "q", "s"][dice.below(3)]);
        }
        made
    }

    pub(crate) fn change_intent(&mut self) {
        for _ in 0..=self.dice.below(4) {
            let name = *self.dice.pick(&NAMES);
            if self.dice.one_in(4) {
                let _ = self.intended.del_item(&r(name));
                self.trace.push(format!("intent: no {name}"));
            } else {
                let made = self.random_thing(name);
                self.trace.push(format!("intent: {made:?}"));
                let home = self.intended.path_of(&r(name));
                let home = home.unwrap_or_else(|| at(PATHS[self.dice.below(4)]));
                self.intended.put_item_into(&home, made).unwrap();
            }
            if self.dice.one_in(6) && self.intended.contains(&r(name)) {
                let to = at(PATHS[self.dice.below(4)]);
                self.intended.move_item(&r(name), &to).unwrap();
            }
        }
        if self.dice.one_in(8) {
            // The same intent as another graph: nothing of it was compared before.
            self.intended = self.intended.clone();
        }
    }

    fn change_externals(&mut self) {
        let name = *self.dice.pick(&EXTERNAL);
        let current = self.current.get_or_insert_with(|| CurrentGraph::new("test"));
        let mut system = self.world.lock();
        if current.contains(&r(name)) && self.dice.one_in(2) {
            current.del_item(&r(name)).unwrap();
            system.exists.remove(name);
            self.trace.push(format!("external: no {name}"));
            // The system removes by itself what vanishes with it.
            let gone: Vec<String> = system
                .exists
                .values()
                .filter(|t| t.needs.iter().any(|need| need.auto && need.any_of == [name]))
                .map(|t| t.name.clone())
                .collect();
            for name in gone {
                if !system.running.contains(&name) {
                    system.exists.remove(&name);
                }
            }
        } else {
            let made = external(name).value(u32::try_from(self.dice.below(3)).unwrap());
            // Nobody can tell of something that vanished with it as it came into being: before it is back, a run
            // has to see that it was gone.
            if system.unseen.contains(name) {
                return;
            }
            if !system.exists.contains_key(name) {
                // It was gone and no run has seen that: who watches it knows what went with it.
                let gone = current.items().map(|node| node.item().get::<Thing>().unwrap().clone());
                let gone = gone.filter(|t| t.needs.iter().any(|need| need.auto && need.any_of == [name]));
                let gone: Vec<Thing> = gone.filter(|t| !system.exists.contains_key(&t.name)).collect();
                // Nobody can tell of something that vanished while it was worked on in the background: before
                // it is back, a run has to see that it was gone.
                let in_work = |t: &Thing| {
                    current.state(&r(&t.name)).is_some_and(|s| s.unfinished_operation().is_some())
                };
                if gone.iter().any(in_work) {
                    return;
                }
                for thing in gone.iter().filter(|t| !system.running.contains(&t.name)) {
                    let node = current.state(&r(&thing.name));
                    if node.is_some_and(|state| {
                        state.presence().exists() && state.unfinished_operation().is_none()
                    }) {
                        current.del_item(&r(&thing.name)).unwrap();
                        self.forgotten = true;
                    }
                }
            }
            self.trace.push(format!("external: {name} = {}", made.value));
            system.exists.insert(name.into(), made.clone());
            current.put_item(made).unwrap();
        }
        // What is being deleted in the background holds nothing up for long, nor does what becomes there
        // something that vanishes.
        let mut lasting = system.exists.clone();
        lasting.retain(|name, _| match system.background.get(name) {
            None => true,
            Some((Operation::Delete, _, _)) => false,
            Some((_, thing, _)) => !thing.needs.iter().any(|need| need.auto && !system.is_met(need)),
        });
        let founded = founded(&lasting, &lasting);
        let doomed: Vec<String> =
            system.exists.keys().filter(|name| !founded.contains(*name)).cloned().collect();
        let on_the_way: Vec<String> = system.background.keys().cloned().collect();
        system.excused.extend(doomed.into_iter().chain(on_the_way));
    }

    fn plan_faults(&mut self) {
        for _ in 0..self.dice.below(4) {
            let name = *self.dice.pick(&NAMES);
            let operation = [Operation::Create, Operation::Modify, Operation::Delete][self.dice.below(3)];
            let behaviour = match self.dice.below(7) {
                0 => Behaviour::Fail(OpError::untouched("refused")),
                1 => Behaviour::Fail(OpError::new("broke off")),
                2 => Behaviour::Panic,
                3 | 4 => Behaviour::Background,
                5 => Behaviour::Hang,
                _ => Behaviour::Slow(Duration::from_millis(1 + self.dice.below(50) as u64)),
            };
            self.trace.push(format!("fault: {operation} {name}: {behaviour:?}"));
            self.world.next(name, operation, behaviour);
        }
    }

    fn finish_some_background(&mut self) {
        let names: Vec<String> = self.world.lock().background.keys().cloned().collect();
        for name in names {
            if self.dice.one_in(2) {
                let outcome =
                    if self.dice.one_in(3) { Err(OpError::untouched("came to nothing")) } else { Ok(()) };
                self.trace.push(format!("background: {name} {outcome:?}"));
                self.world.finish(&name, outcome);
            }
        }
    }

    fn engine(&mut self) -> Engine {
        let retry = match self.dice.below(3) {
            0 => RetryPolicy::every_run(),
            _ => RetryPolicy::exponential(Duration::from_secs(1), Duration::from_secs(10)),
        };
        Engine::new(self.world.registry())
            .with_clock(self.clock)
            .with_concurrency(1 + self.dice.below(4))
            .with_retry(retry)
            .with_timeout(Some(Duration::from_secs(5)))
            .with_grace(Duration::from_secs(5))
            .with_journal(self.journal.clone())
    }

    fn selection(&mut self) -> Selection {
        match self.dice.below(6) {
            0 => Selection::subgraph(at(PATHS[1 + self.dice.below(3)])),
            1 => {
                let (one, two) = (NAMES[self.dice.below(9)], NAMES[self.dice.below(9)]);
                Selection::items([r(one), r(two)])
            }
            _ => Selection::all(),
        }
    }

    /// Tells the system what is intended: it notices operations that overlap and are related by it.
    fn note_intent(&mut self) {
        let things = self.intended.items().map(|node| node.item().get::<Thing>().unwrap().clone());
        let mut system = self.world.lock();
        system.intended = things.map(|thing| (thing.name.clone(), thing)).collect();
        system.deleted.clear();
    }

    async fn run(&mut self) {
        self.note_intent();
        let engine = self.engine();
        let selection = self.selection();
        let now = jiff::Timestamp::UNIX_EPOCH;
        let plan =
            |intended: &Graph| engine.plan(self.current.as_ref(), Some(intended), &selection, now).unwrap();
        let planned = plan(&self.intended);
        assert_eq!(planned, plan(&self.intended), "a plan is a pure function");
        self.trace.push(format!("run: {selection:?}, {planned}"));
        if std::env::var("SETPOINT_SEED").is_ok() {
            self.trace.push(format!("current: {:?}", self.current));
        }
        match self.dice.below(8) {
            0 => {
                // The caller loses interest half-way.
                let patience = Duration::from_millis(self.dice.below(30) as u64);
                let run = engine.reconcile(&mut self.current, Some(&self.intended), &selection);
                let _ = tokio::time::timeout(patience, run).await;
                self.trace.push("dropped".into());
            }
            1 => {
                let cancel = CancellationToken::new();
                let patience = Duration::from_millis(self.dice.below(30) as u64);
                let cancelling = async {
                    tokio::time::sleep(patience).await;
                    cancel.cancel();
                    std::future::pending::<()>().await;
                };
                let run =
                    engine.reconcile_until(&mut self.current, Some(&self.intended), &selection, &cancel);
                tokio::select! {
                    status = run => drop(status.unwrap()),
                    () = cancelling => unreachable!(),
                }
                self.trace.push("cancelled".into());
            }
            _ => {
                let status =
                    engine.reconcile(&mut self.current, Some(&self.intended), &selection).await.unwrap();
                self.trace.push(format!("log: {:?}", log(&status)));
                self.world.lock().unseen.clear();
                self.check_success(&engine, &selection, &status);
                if self.dice.one_in(6) {
                    status.cancel_background();
                }
            }
        }
    }

    /// A run of everything that reports success has left nothing undone.
    fn check_success(&self, engine: &Engine, selection: &Selection, status: &Status) {
        let is_success = *selection == Selection::All
            && status.failures().is_empty()
            && status.interruption().is_none()
            && !status.background_in_progress();
        // What comes after something that stands on it is applied again by the next run: in this one, that would go on and on.
        if !is_success || !self.world.lock().to_repeat.is_empty() {
            return;
        }
        let now = self.clock.now();
        let plan = engine.plan(self.current.as_ref(), Some(&self.intended), selection, now).unwrap();
        assert!(plan.is_empty(), "it reported success after {:?}, and left {plan}", log(status));
    }

    /// Background operations obey: what was asked to stop does so before long.
    fn stop_cancelled(&mut self) {
        let stopped: Vec<String> = self
            .world
            .lock()
            .background
            .iter()
            .filter(|(_, (_, _, completion))| completion.as_ref().unwrap().cancellation().is_cancelled())
            .map(|(name, _)| name.clone())
            .collect();
        for name in stopped {
            self.trace.push(format!("background: {name} stopped"));
            self.world.finish(&name, Err(OpError::untouched("stopped")));
        }
    }

    pub(crate) async fn step(&mut self) {
        self.stop_cancelled();
        match self.dice.below(10) {
            0..=2 => self.change_intent(),
            3 => self.change_externals(),
            4 => self.plan_faults(),
            5 => self.finish_some_background(),
            6 => {
                let pause = Duration::from_millis(self.dice.below(3000) as u64);
                tokio::time::sleep(pause).await;
            }
            _ => self.run().await,
        }
    }

    /// Faults stop; the system must reach the intent.
    pub(crate) async fn settle(&mut self) {
        self.trace.push("faults stop".into());
        if self.orders {
            self.drop_vain_orders();
        }
        let engine =
            Engine::new(self.world.registry()).with_clock(self.clock).with_journal(self.journal.clone());
        for _ in 0..30 {
            self.world.lock().behaviours.clear();
            let names: Vec<String> = self.world.lock().background.keys().cloned().collect();
            for name in names {
                self.world.finish(&name, Ok(()));
            }
            self.note_intent();
            let now = self.clock.now();
            let plan =
                engine.plan(self.current.as_ref(), Some(&self.intended), &Selection::all(), now).unwrap();
            self.trace.push(format!("settling by {plan}"));
            let status =
                engine.reconcile(&mut self.current, Some(&self.intended), &Selection::all()).await.unwrap();
            self.trace.push(format!("settling: {:?}", log(&status)));
            tokio::time::sleep(Duration::from_mins(10)).await;
        }
        let status =
            engine.reconcile(&mut self.current, Some(&self.intended), &Selection::all()).await.unwrap();
        assert!(status.log().is_empty(), "it never comes to rest: {:?}", log(&status));
        for failure in status.failures() {
            // What can't be brought to its intent for another reason keeps what went wrong before.
            let invalid = self.intended.cycles().iter().any(|cycle| cycle.members().contains(&failure.item));
            let wanted = self.intended.item(&failure.item).and_then(|item| item.get::<Thing>());
            let claimed = wanted.is_some_and(|wanted| self.world.lock().is_claimed(wanted));
            assert!(invalid || claimed, "{failure:?}");
        }
        let rebuilt = self.intended.clone();
        // As late as the last run: what failed is due.
        let now = self.clock.now();
        let plan = engine.plan(self.current.as_ref(), Some(&rebuilt), &Selection::all(), now).unwrap();
        assert!(plan.is_empty(), "comparing all finds more: {plan}");
    }

    /// What came after something that can't be there may be there or not, depending on what was first: that is
    /// left out of the end.
    fn drop_vain_orders(&mut self) {
        loop {
            let system = self.world.lock();
            let things: Vec<Thing> =
                self.intended.items().map(|node| node.item().get::<Thing>().unwrap().clone()).collect();
            let externals = system.exists.values().filter(|t| t.external);
            let externals: BTreeMap<String, Thing> = externals.map(|t| (t.name.clone(), t.clone())).collect();
            drop(system);
            let mut all = externals.clone();
            all.extend(things.iter().map(|t| (t.name.clone(), t.clone())));
            let reachable = founded(&all, &externals);
            let vain = |need: &Need| need.order && !need.any_of.iter().any(|name| reachable.contains(name));
            let claims = self.claims;
            let Some(mut changed) =
                things.into_iter().find(|t| t.needs.iter().any(|need| vain(need) || claims && need.order))
            else {
                return;
            };
            changed.needs.retain(|need| !vain(need) && (!claims || !need.order));
            self.trace.push(format!("intent: {changed:?}"));
            let home = self.intended.path_of(&r(&changed.name)).unwrap();
            self.intended.put_item_into(&home, changed).unwrap();
        }
    }

    pub(crate) fn check_end(&self) {
        let system = self.world.lock();
        let current = self.current.as_ref().unwrap();
        let intended: BTreeMap<String, Thing> = self
            .intended
            .items()
            .map(|node| node.item().get::<Thing>().unwrap().clone())
            .map(|t| (t.name.clone(), t))
            .collect();
        let externals: BTreeMap<String, Thing> =
            system.exists.iter().filter(|(_, t)| t.external).map(|(n, t)| (n.clone(), t.clone())).collect();
        assert!(system.partial.is_empty(), "rubbish is left: {:?}", system.partial);
        let cycles = self.intended.cycles();
        for (name, found) in system.exists.iter().filter(|(_, t)| !t.external) {
            // What can't be handled as declared is left alone, with all that would depend on it.
            let mut members = cycles.iter().flat_map(setpoint_graph::Cycle::members);
            let invalid = members.any(|member| {
                member == &r(name) || reaches(name, member.name().as_str(), |name| [intended.get(name), None])
            });
            // So is what would need something that another one holds.
            let claimed = intended.get(name).is_some_and(|wanted| system.is_claimed(wanted));
            assert!(
                invalid || claimed || intended.get(name) == Some(found),
                "{name} is not as intended: {found:?}"
            );
            assert_eq!(
                current.item(&r(name)).and_then(|item| item.get::<Thing>()),
                Some(found),
                "the graph lies"
            );
        }
        let recorded = current.items().filter(|node| {
            node.state()
                .is_none_or(|state| state.presence().exists() && state.unfinished_operation().is_none())
        });
        for node in recorded {
            assert!(
                system.exists.contains_key(node.item().name().as_str()),
                "{node:?} is recorded and not there"
            );
        }
        for name in system.exists.keys() {
            assert!(
                self.intended.path_of(&r(name)).is_none_or(|path| current.path_of(&r(name)) == Some(path))
            );
        }
        let mut all = externals.clone();
        all.extend(intended.clone());
        let reachable = founded(&all, &externals);
        if self.claims {
            for name in intended.keys().filter(|name| !system.exists.contains_key(*name)) {
                let wanted = &intended[name];
                let unmet = wanted.needs.iter().any(|need| !system.is_met(need));
                assert!(
                    unmet || system.is_claimed(wanted) || !reachable.contains(name),
                    "{name} is missing without a cause"
                );
            }
        } else if self.intended.cycles().is_empty() {
            let there: BTreeSet<String> = system.exists.keys().cloned().collect();
            assert_eq!(there, reachable, "what is there is not what can be");
        }
        assert!(system.violations.is_empty(), "{:?}", system.violations);
        if self.intended.cycles().is_empty() && !self.claims {
            assert!(system.to_repeat.is_empty(), "not applied again: {:?}", system.to_repeat);
        }
    }

    pub(crate) fn check_replay(&self) {
        // The journal knows nothing of externals, which others put, nor of what was read back.
        if self.world.lock().can_read || self.forgotten {
            return;
        }
        let replayed = replay("test", None, &self.journal.records());
        let kept = |graph: &CurrentGraph| -> BTreeSet<(ItemRef, setpoint_graph::SubgraphPath)> {
            let present = graph.items().filter(|node| !node.item().external());
            present.map(|node| (node.reference().clone(), node.path())).collect()
        };
        assert_eq!(kept(&replayed), kept(self.current.as_ref().unwrap()), "the journal tells another story");
    }
}

fn at(path_text: &str) -> setpoint_graph::SubgraphPath {
    if path_text.is_empty() { setpoint_graph::SubgraphPath::root() } else { path(path_text) }
}
