//! A simulated system of valves, and a controller of it whose passes a test looks at one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use setpoint_core::engine::{Completion, SimulatedClock};
use setpoint_core::pacing::Backoff;
use setpoint_core::{
    CancellationToken, Configurator, Controller, CurrentGraph, DefaultRegistry, Engine, Graph, Item, Kind,
    Name, Observed, OpCx, OpError, Pass, Reason, RetryPolicy, Source,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub(crate) const SECOND: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Valve {
    pub(crate) name: &'static str,
    pub(crate) opening: u8,
}

impl Item for Valve {
    const KIND: Kind = Kind::from_static("valve");
    fn name(&self) -> Name {
        Name::from_static(self.name)
    }
}

/// The valves that there are, and those that don't work.
#[derive(Debug, Default)]
pub(crate) struct System {
    pub(crate) openings: BTreeMap<&'static str, u8>,
    pub(crate) broken: BTreeSet<&'static str>,
    /// These are made in the background, until somebody finishes it.
    pub(crate) slow: BTreeSet<&'static str>,
    pub(crate) making: Vec<Completion>,
    /// These are never made, and don't end before they are cancelled.
    pub(crate) hanging: BTreeSet<&'static str>,
    /// How often a valve was tried to be made.
    pub(crate) attempts: usize,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct World(Arc<Mutex<System>>);

impl World {
    pub(crate) fn lock(&self) -> MutexGuard<'_, System> {
        self.0.lock().unwrap()
    }
}

impl Configurator<Valve> for World {
    async fn create(&self, cx: &OpCx, new: &Valve) -> Result<(), OpError> {
        self.lock().attempts += 1;
        if self.lock().hanging.contains(new.name) {
            cx.cancelled().await;
            return Err(OpError::untouched("it was cancelled"));
        }
        let mut system = self.lock();
        if system.broken.contains(new.name) {
            return Err(OpError::untouched("the valve is stuck"));
        }
        if system.slow.contains(new.name) {
            system.making.extend(cx.continue_in_background());
        }
        system.openings.insert(new.name, new.opening);
        Ok(())
    }

    async fn modify(&self, cx: &OpCx, _: &Valve, new: &Valve) -> Result<(), OpError> {
        self.create(cx, new).await
    }

    async fn delete(&self, _: &OpCx, old: &Valve) -> Result<(), OpError> {
        self.lock().openings.remove(old.name);
        Ok(())
    }

    async fn read(&self, _: &OpCx, item: &Valve) -> Result<Observed<Valve>, OpError> {
        let opening = self.lock().openings.get(item.name).copied();
        Ok(opening.map_or(Observed::Absent, |opening| Observed::Present(Valve { opening, ..item.clone() })))
    }
}

pub(crate) fn valves<const N: usize>(valves: [(&'static str, u8); N]) -> Graph {
    let mut graph = Graph::new("plant");
    for (name, opening) in valves {
        graph.put_item(Valve { name, opening }).unwrap();
    }
    graph
}

/// What a test sees of a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) reason: Reason,
    pub(crate) log: Vec<String>,
    pub(crate) drifted: usize,
    pub(crate) source_error: Option<String>,
    pub(crate) converged: bool,
    /// When it ended, from the start.
    pub(crate) after: Duration,
}

/// A controller that runs in a task of its own.
pub(crate) struct Running {
    passes: mpsc::UnboundedReceiver<Seen>,
    pub(crate) stop: CancellationToken,
    pub(crate) task: JoinHandle<Option<CurrentGraph>>,
}

/// Looks for drift every minute, and retries operations after 10, 20, 40 seconds.
pub(crate) fn start(world: &World, source: impl Source) -> Running {
    let engine = Engine::new(DefaultRegistry::new().with(world.clone()))
        .with_clock(SimulatedClock::start())
        .with_grace(5 * SECOND)
        .with_retry(RetryPolicy::exponential(10 * SECOND, 40 * SECOND));
    let (sender, passes) = mpsc::unbounded_channel();
    let start = Instant::now();
    let observer = move |pass: &Pass, _: Option<&CurrentGraph>| {
        let log = pass.status().map(|status| status.log().iter().map(ToString::to_string).collect());
        let seen = Seen {
            reason: pass.reason,
            log: log.unwrap_or_default(),
            drifted: pass.refreshed.drifted.len(),
            source_error: pass.source_error.clone(),
            converged: pass.is_converged(),
            after: start.elapsed(),
        };
        // A test that has seen enough does not look any more.
        let _ = sender.send(seen);
    };
    let stop = CancellationToken::new();
    let controller = Controller::new(engine, source)
        .with_drift_interval(Some(60 * SECOND))
        .with_backoff(Backoff::new(8 * SECOND, 64 * SECOND, fastrand::Rng::with_seed(7)))
        .observed_by(observer);
    let task = tokio::spawn(controller.run(stop.clone()));
    Running { passes, stop, task }
}

impl Running {
    /// The next pass.
    pub(crate) async fn pass(&mut self) -> Seen {
        self.passes.recv().await.expect("the controller runs")
    }

    /// The passes that end within some time from now.
    pub(crate) async fn passes_within(&mut self, time: Duration) -> Vec<Seen> {
        let mut seen = Vec::new();
        let end = Instant::now() + time;
        while let Ok(Some(pass)) = tokio::time::timeout_at(end, self.passes.recv()).await {
            seen.push(pass);
        }
        seen
    }

    /// Stops the controller; gives what it left, and how long that took.
    pub(crate) async fn stopped(self) -> (Option<CurrentGraph>, Duration) {
        let asked = Instant::now();
        self.stop.cancel();
        (self.task.await.unwrap(), asked.elapsed())
    }
}
