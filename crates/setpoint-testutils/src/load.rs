//! A load generator that counts failed requests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::http;
use crate::wait::LIMIT;

/// Requests that go on until they are stopped, each on a connection of its own.
#[derive(Debug)]
pub struct Load {
    stop: Arc<AtomicBool>,
    workers: JoinSet<LoadReport>,
}

/// What a load saw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadReport {
    /// Requests that were answered with success, by what the answer said.
    pub answered: BTreeMap<String, usize>,
    /// Requests that were not, by why.
    pub failed: BTreeMap<String, usize>,
}

impl Load {
    /// Starts requests for a URL on this machine, so many at a time.
    pub fn start(url: &str, workers: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut set = JoinSet::new();
        for _ in 0..workers {
            set.spawn(work(url.to_owned(), Arc::clone(&stop)));
        }
        Self { stop, workers: set }
    }

    /// Stops, and tells what happened. Requests under way are waited for.
    pub async fn stop(mut self) -> LoadReport {
        self.stop.store(true, Ordering::Relaxed);
        let mut report = LoadReport::default();
        while let Some(part) = self.workers.join_next().await {
            report.add(part.expect("a worker of the load ends by itself"));
        }
        report
    }
}

impl LoadReport {
    /// How many requests were answered with success.
    pub fn total_answered(&self) -> usize {
        self.answered.values().sum()
    }

    /// How many were not.
    pub fn total_failed(&self) -> usize {
        self.failed.values().sum()
    }

    fn add(&mut self, other: Self) {
        for (all, more) in [(&mut self.answered, other.answered), (&mut self.failed, other.failed)] {
            for (what, count) in more {
                *all.entry(what).or_default() += count;
            }
        }
    }
}

async fn work(url: String, stop: Arc<AtomicBool>) -> LoadReport {
    let mut report = LoadReport::default();
    let started = Instant::now();
    let client = http::client();
    while !stop.load(Ordering::Relaxed) && started.elapsed() < LIMIT {
        let request = client.get(&url).header("connection", "close").send();
        let answer = async { request.await?.error_for_status()?.text().await };
        match answer.await {
            Ok(body) => *report.answered.entry(body).or_default() += 1,
            Err(error) => *report.failed.entry(reason(&error)).or_default() += 1,
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    report
}

/// The innermost cause, which is what tells failures apart.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
