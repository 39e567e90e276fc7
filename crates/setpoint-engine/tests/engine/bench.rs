//! A simulated system, an engine, and the two graphs of one test.

use setpoint_engine::{CurrentGraph, Engine, ItemState, RetryPolicy, Selection, Status};
use setpoint_graph::{Graph, SubgraphPath};

use crate::world::{Thing, World, r};

/// A world, an engine, and the two graphs of one test.
pub(crate) struct Bench {
    pub world: World,
    pub engine: Engine,
    pub current: Option<CurrentGraph>,
    pub intended: Graph,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let world = World::default();
        let engine = world.engine().with_retry(RetryPolicy::every_run());
        Self { world, engine, current: None, intended: Graph::new("test") }
    }

    pub(crate) fn put(&mut self, thing: Thing) -> &mut Self {
        self.intended.put_item(thing).unwrap();
        self
    }

    pub(crate) fn del(&mut self, name: &str) -> &mut Self {
        self.intended.del_item(&r(name)).unwrap();
        self
    }

    /// Says that something else brought an external thing into being, or changed it.
    pub(crate) fn appear(&mut self, thing: Thing) {
        let current = self.current.get_or_insert_with(|| CurrentGraph::new("test"));
        self.world.lock().exists.insert(thing.name.clone(), thing.clone());
        current.put_item(thing).unwrap();
    }

    pub(crate) fn vanish(&mut self, name: &str) {
        self.world.lock().exists.remove(name);
        self.current.as_mut().unwrap().del_item(&r(name)).unwrap();
    }

    pub(crate) async fn run(&mut self) -> Status {
        self.select(&Selection::all()).await
    }

    pub(crate) async fn select(&mut self, selection: &Selection) -> Status {
        self.engine.reconcile(&mut self.current, Some(&self.intended), selection).await.unwrap()
    }

    pub(crate) async fn destroy(&mut self) -> Status {
        self.engine.reconcile(&mut self.current, None, &Selection::all()).await.unwrap()
    }

    pub(crate) fn graph(&self) -> &CurrentGraph {
        self.current.as_ref().unwrap()
    }

    pub(crate) fn state(&self, name: &str) -> Option<&ItemState> {
        self.graph().state(&r(name))
    }

    pub(crate) fn plan(&self) -> setpoint_plan::Plan {
        let now = jiff::Timestamp::UNIX_EPOCH;
        self.engine.plan(self.current.as_ref(), Some(&self.intended), &Selection::all(), now).unwrap()
    }
}

pub(crate) fn log(status: &Status) -> Vec<String> {
    let short = |entry: &setpoint_engine::LogEntry| {
        let mut text = format!("{} {}", entry.operation(), entry.item().name());
        if entry.in_progress() {
            text += "...";
        }
        if let Some(error) = entry.error() {
            text = format!("{text} ({error})");
        }
        text
    };
    status.log().iter().map(short).collect()
}

pub(crate) fn path(name: &str) -> SubgraphPath {
    name.split('/').collect()
}
