//! What is timed: the puts into a graph, or reconciliation alone.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use setpoint_engine::{CurrentGraph, DefaultRegistry, Engine, Selection, Status};
use setpoint_graph::{Graph, SubgraphPath};
use tokio::runtime::Runtime;

use crate::case::Case;
use crate::part::{Nothing, Part};

/// How often a run that is over at once is repeated.
const QUICK_REPEATS: usize = 101;
/// How often a run that compares everything is repeated.
const SLOW_REPEATS: usize = 7;

/// Runs a case once, or a quick one often, and returns how long it took: the median of the repeats.
pub(crate) fn time(case: Case, parts: &[Part]) -> Result<Duration> {
    if case.times_puts() {
        let parts = parts.to_vec();
        let mut graph: Graph = Graph::new("bench");
        let start = Instant::now();
        for part in parts {
            graph.put_item(part)?;
        }
        return Ok(start.elapsed());
    }

    let mut intended = build(case, parts)?;
    let mut bench = Bench::new()?;
    let created = bench.run(Some(&intended), parts.len())?;
    match case {
        Case::DeleteAll | Case::HubDelete => bench.run(None, parts.len()),
        Case::NoOp => median((0..QUICK_REPEATS).map(|_| bench.run(Some(&intended), 0))),
        Case::OneChange => median((0..QUICK_REPEATS).map(|repeat| {
            let mut part = parts[repeat * parts.len() / QUICK_REPEATS].clone();
            part.value = 1;
            intended.put_item(part)?;
            bench.run(Some(&intended), 1)
        })),
        Case::NoOpRebuilt => median((0..SLOW_REPEATS).map(|_| {
            intended = build(case, parts)?;
            bench.run(Some(&intended), 0)
        })),
        _ => Ok(created),
    }
}

fn build(case: Case, parts: &[Part]) -> Result<Graph> {
    let mut graph = Graph::new("bench");
    for part in parts {
        if case == Case::Subgraphs {
            graph.put_item_into(&SubgraphPath::from([part.name.clone()]), part.clone())?;
        } else {
            graph.put_item(part.clone())?;
        }
    }
    Ok(graph)
}

/// An engine with its default settings, and the current graph.
struct Bench {
    runtime: Runtime,
    engine: Engine,
    current: Option<CurrentGraph>,
}

impl Bench {
    fn new() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .context("can't start the runtime")?;
        Ok(Self { runtime, engine: Engine::new(DefaultRegistry::new().with(Nothing)), current: None })
    }

    /// Reconciles, and checks that it did as many operations as it should have.
    fn run(&mut self, intended: Option<&Graph>, operations: usize) -> Result<Duration> {
        let Self { runtime, engine, current } = self;
        let start = Instant::now();
        let status: Status = runtime.block_on(engine.reconcile(current, intended, &Selection::all()))?;
        let took = start.elapsed();
        status.result()?;
        ensure!(
            status.log().len() == operations,
            "{} operations were run instead of {operations}",
            status.log().len()
        );
        Ok(took)
    }
}

fn median(times: impl Iterator<Item = Result<Duration>>) -> Result<Duration> {
    let mut times = times.collect::<Result<Vec<_>>>()?;
    times.sort_unstable();
    times.get(times.len() / 2).copied().context("nothing was timed")
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::part::parts;

    #[test]
    fn every_case_does_what_it_says() {
        for &case in Case::value_variants() {
            time(case, &parts(case, 200)).unwrap_or_else(|error| panic!("{case:?}: {error:#}"));
        }
    }
}
