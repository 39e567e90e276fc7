//! From a write to Consul to the ConfigMap that shows it, with a real Consul, a real API server and the real command,
//! beside the bare requests that are needed for it.
//!
//! ```text
//!  quiet-N   one write at a time to a structure of N namespaces   beside: a write, a blocking read, an apply
//!  churn     1,000 writes a second                                 how many applies, and is the last state reached?
//!  namespaces-1000   250 composites of four                        how much memory, sockets, and reads for one change?
//! ```

mod namespaces;

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use clap::ValueEnum;
use futures::TryStreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use serde::Serialize;
use serde_json::json;
use setpoint_consul::{Client as ConsulClient, Read, Settings};
use setpoint_structure::{prefix, transform};
use setpoint_testutils::{Acl, Consul, Kubernetes, Port, Process, Workdir};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// How many writes are measured in a quiet case.
const SAMPLES: u32 = 30;
/// How long it is quiet between two writes: a little more than the operator's default between two answers.
const QUIET: Duration = Duration::from_millis(3_200);
/// How long anything may take before it counts as never.
const PATIENCE: Duration = Duration::from_mins(1);
/// How many writers make churn, and how long each pauses between two writes: 1,000 a second.
const WRITERS: u32 = 16;
const PAUSE: Duration = Duration::from_millis(16);
/// How long there is churn.
const CHURN: Duration = Duration::from_secs(12);
/// What must be reached when it is quiet, and under churn.
const AT_MOST_MS: f64 = 200.0;
const AT_MOST_APPLIES: f64 = 1.0;
/// The name of the ConfigMap.
const CONFIG_MAP: &str = "composite-structure";

/// One thing that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompositeCase {
    /// A write now and then to a structure of 10 namespaces.
    #[value(name = "quiet-10")]
    Quiet10,
    /// A write now and then to a structure of 1,000 namespaces.
    #[value(name = "quiet-1000")]
    Quiet1000,
    /// 1,000 writes a second.
    Churn,
    /// One process for 1,000 namespaces.
    #[value(name = "namespaces-1000")]
    Namespaces1000,
}

/// What is reported of a quiet case.
#[derive(Debug, Serialize)]
struct Quiet {
    bench: &'static str,
    case: String,
    namespaces: u32,
    samples: usize,
    p50_ms: f64,
    p99_ms: f64,
    floor_p50_ms: f64,
    floor_p99_ms: f64,
    ratio: f64,
}

/// What is reported of churn.
#[derive(Debug, Serialize)]
struct Churn {
    bench: &'static str,
    case: &'static str,
    seconds: f64,
    writes: u64,
    writes_per_second: f64,
    applies: usize,
    applies_per_second: f64,
    /// How long after the last write the ConfigMap showed it.
    settled_ms: f64,
}

/// Measures the cases and prints a line for each.
pub(crate) fn run(cases: &[CompositeCase], json: bool, scale: f64) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let stage = Stage::start().await?;
        for case in cases {
            let (figures, line) = match case {
                CompositeCase::Quiet10 => quiet(&stage, 10, scale).await?,
                CompositeCase::Quiet1000 => quiet(&stage, 1_000, scale).await?,
                CompositeCase::Churn => churn(&stage, scale).await?,
                CompositeCase::Namespaces1000 => namespaces::run(&stage, scale).await?,
            };
            println!("{}", if json { figures } else { line });
        }
        Ok(())
    })
}

/// The real parts.
struct Stage {
    consul: Consul,
    kubernetes: Kubernetes,
    client: kube::Client,
    http: reqwest::Client,
}

impl Stage {
    async fn start() -> Result<Self> {
        let missing = |missing| anyhow!("{missing}: run `cargo xtask parts`");
        let kubernetes = Kubernetes::start().await.map_err(missing)?;
        let consul = Consul::start(Acl::Off).await.map_err(missing)?;
        let definition = setpoint()?.args(["composite", "crd"]).output().context("can't run setpoint")?;
        let mut apply = kubernetes.kubectl();
        apply.args(["apply", "-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut apply = apply.spawn().context("can't run kubectl")?;
        apply.stdin.take().context("kubectl takes no input")?.write_all(&definition.stdout)?;
        ensure!(apply.wait()?.success(), "the definition of Composites was refused");
        let client = kubernetes.client().await;
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?;
        Ok(Self { consul, kubernetes, client, http })
    }

    fn key(&self, id: &str, namespace: &str) -> String {
        format!("{}/v1/kv/{}{namespace}/compositeRole", self.consul.url(), prefix(id))
    }

    async fn put(&self, id: &str, namespace: &str) -> Result<()> {
        let request = self.http.put(self.key(id, namespace)).body("satellite");
        request.send().await?.error_for_status()?;
        Ok(())
    }

    /// Adds a namespace, or takes it away again.
    async fn toggle(&self, id: &str, there: bool) -> Result<()> {
        if there {
            return self.put(id, "toggled").await;
        }
        self.http.delete(self.key(id, "toggled")).send().await?.error_for_status()?;
        Ok(())
    }

    /// Makes a namespace, and a composite of its name with so many namespaces.
    async fn populate(&self, id: &str, namespaces: u32) -> Result<()> {
        let namespace: Namespace = serde_json::from_value(json!({ "metadata": { "name": id } }))?;
        Api::all(self.client.clone()).create(&PostParams::default(), &namespace).await?;
        // The baseline is one of them.
        for number in 1..namespaces {
            self.put(id, &format!("satellite-{number:04}")).await?;
        }
        Ok(())
    }

    /// Starts the operator with a baseline in a namespace.
    async fn operate(&self, id: &str) -> Result<Operator> {
        let composite = json!({
            "apiVersion": "core.netcracker.com/v1", "kind": "Composite", "subKind": "CompositeStructure",
            "metadata": { "name": "composite", "namespace": id }, "spec": { "originNamespace": id },
        });
        let composite = serde_json::from_value(composite)?;
        let composites: Api<setpoint_composite::api::Composite> = Api::namespaced(self.client.clone(), id);
        composites.create(&PostParams::default(), &composite).await?;
        self.run(&["--namespace", id, "--lease-namespace", id], &self.consul.url())
    }

    /// Starts the operator.
    fn run(&self, arguments: &[&str], consul: &str) -> Result<Operator> {
        let (folder, port) = (Workdir::new("bench-composite"), Port::lease());
        let mut command = setpoint()?;
        command
            .args(["composite", "run"])
            .args(arguments)
            .args(["--consul-url", consul, "--listen", &port.address().to_string()])
            .arg("--kubeconfig")
            .arg(self.kubernetes.kubeconfig_file());
        let process = Process::start("setpoint", &mut command, &folder.path().join("setpoint.log"));
        Ok(Operator { process, _folder: folder, _port: port })
    }
}

/// A running operator; ended with the measurement.
struct Operator {
    process: Process,
    _folder: Workdir,
    _port: Port,
}

/// The command that was built beside this program.
fn setpoint() -> Result<Command> {
    let this = std::env::current_exe().context("can't find this program")?;
    let setpoint = this.with_file_name("setpoint");
    ensure!(setpoint.exists(), "{} is not built; run `cargo xtask bench composite`", setpoint.display());
    Ok(Command::new(setpoint))
}

/// What a ConfigMap holds, whenever it is written.
struct Shown {
    events: UnboundedReceiver<(Instant, String)>,
    _task: JoinSet<()>,
}

impl Shown {
    fn watch(stage: &Stage, namespace: &str) -> Self {
        let config_maps: Api<ConfigMap> = Api::namespaced(stage.client.clone(), namespace);
        let only = watcher::Config::default().fields(&format!("metadata.name={CONFIG_MAP}"));
        let (sender, events) = unbounded_channel();
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut stream = std::pin::pin!(watcher(config_maps, only).default_backoff().applied_objects());
            while let Ok(next) = stream.try_next().await {
                let Some(config_map) = next else { return };
                let data = config_map.data.and_then(|mut data| data.remove("data")).unwrap_or_default();
                if sender.send((Instant::now(), data)).is_err() {
                    return;
                }
            }
        });
        Self { events, _task: task }
    }

    /// Waits until it is as it should be; gives when that was.
    async fn until(&mut self, wanted: impl Fn(&str) -> bool) -> Result<Instant> {
        let seen = async {
            while let Some((at, data)) = self.events.recv().await {
                if wanted(&data) {
                    return Ok(at);
                }
            }
            Err(anyhow!("the watch of the ConfigMap ended"))
        };
        timeout(PATIENCE, seen).await.context("the ConfigMap never got there")?
    }
}

async fn quiet(stage: &Stage, namespaces: u32, scale: f64) -> Result<(String, String)> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "floats saturate")]
    let samples = ((f64::from(SAMPLES) * scale).round() as u32).max(5);
    let id = format!("quiet-{namespaces}");
    stage.populate(&id, namespaces).await?;
    let mut shown = Shown::watch(stage, &id);
    let mut took = Vec::new();
    {
        let _operator = stage.operate(&id).await?;
        let last = format!("satellite-{:04}\"", namespaces - 1);
        shown.until(|data| data.contains(&last) && data.contains("baseline")).await?;
        for sample in 0..samples {
            sleep(QUIET).await;
            let start = Instant::now();
            let there = sample % 2 == 0;
            stage.toggle(&id, there).await?;
            let end = shown.until(|data| data.contains("\"toggled\"") == there).await?;
            took.push(end - start);
        }
    }
    let floor = bare(stage, namespaces, samples).await?;
    let ([p50_ms, p99_ms], [floor_p50_ms, floor_p99_ms]) = (percentiles(took), percentiles(floor));
    let ratio = p50_ms / floor_p50_ms;
    let samples = samples as usize;
    let figures = Quiet {
        bench: "composite",
        case: id,
        namespaces,
        samples,
        p50_ms,
        p99_ms,
        floor_p50_ms,
        floor_p99_ms,
        ratio,
    };
    let missed = if p99_ms <= AT_MOST_MS { "" } else { "  missed" };
    let line = format!(
        "{:<12}p50 {p50_ms:>7.1} ms  p99 {p99_ms:>7.1} ms  at most {AT_MOST_MS} ms  bare {floor_p50_ms:>7.1} ms  ratio {ratio:>5.2}{missed}",
        figures.case
    );
    Ok((serde_json::to_string(&figures)?, line))
}

/// The bare requests: a write, the blocking read that it ends, and an apply of as much data.
async fn bare(stage: &Stage, namespaces: u32, samples: u32) -> Result<Vec<Duration>> {
    let id = format!("bare-{namespaces}");
    stage.populate(&id, namespaces).await?;
    let consul = ConsulClient::new(Settings::new(stage.consul.url()))?;
    let config_maps: Api<ConfigMap> = Api::namespaced(stage.client.clone(), &id);
    let mut shown = Shown::watch(stage, &id);
    let mut index = consul.list(&prefix(&id), Read::Default).await?.index;
    let (prefix, mut took) = (prefix(&id), Vec::new());
    for sample in 0..samples {
        let read = consul.list(&prefix, Read::Blocking { index, wait: PATIENCE });
        let write = async {
            // The read has to be there first.
            sleep(Duration::from_millis(50)).await;
            let start = Instant::now();
            stage.toggle(&id, sample % 2 == 0).await?;
            anyhow::Ok(start)
        };
        let (response, start) = tokio::join!(read, write);
        let (response, start) = (response?, start?);
        index = response.index;
        let (payload, _) = transform(&response.entries, "OnPrem", None);
        let data = payload.to_json();
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": CONFIG_MAP }, "data": { "data": data } });
        config_maps.patch(CONFIG_MAP, &PatchParams::apply("bare"), &Patch::Apply(&object)).await?;
        took.push(shown.until(|shown| shown == data).await? - start);
    }
    Ok(took)
}

async fn churn(stage: &Stage, scale: f64) -> Result<(String, String)> {
    let id = "churn";
    stage.populate(id, 10).await?;
    let mut shown = Shown::watch(stage, id);
    let _operator = stage.operate(id).await?;
    shown.until(|data| data.contains("satellite-0009") && data.contains("baseline")).await?;
    sleep(QUIET).await;
    let (start, writes) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let end = start + CHURN.mul_f64(scale.max(0.25));
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        let (http, writes) = (stage.http.clone(), Arc::clone(&writes));
        let url = stage.key(id, &format!("churned-{writer:02}"));
        writers.spawn(async move {
            let (mut there, mut next) = (false, Instant::now());
            while Instant::now() < end {
                // On a schedule: what a slow write costs is made up for.
                next += PAUSE;
                there = !there;
                let request = if there { http.put(&url).body("satellite") } else { http.delete(&url) };
                request.send().await?.error_for_status()?;
                writes.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep_until(next.into()).await;
            }
            anyhow::Ok(())
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer??;
    }
    stage.put(id, "the-last-one").await?;
    let last_write = Instant::now();
    let seconds = (last_write - start).as_secs_f64();
    let consul = ConsulClient::new(Settings::new(stage.consul.url()))?;
    let listed = consul.list(&prefix(id), Read::Consistent).await?;
    let (payload, _) = transform(&listed.entries, "OnPrem", None);
    let wanted = payload.to_json();
    let mut during = 0;
    let settled = loop {
        let (at, data) = timeout(PATIENCE, shown.events.recv())
            .await
            .context("the ConfigMap never got to the last state")?
            .context("the watch of the ConfigMap ended")?;
        during += usize::from(at <= last_write);
        if data == wanted {
            break at;
        }
    };
    let writes = writes.load(Ordering::Relaxed);
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let (writes_per_second, applies_per_second) = (writes as f64 / seconds, during as f64 / seconds);
    let settled_ms = ms(settled.saturating_duration_since(last_write));
    let figures = Churn {
        bench: "composite",
        case: "churn",
        seconds,
        writes,
        writes_per_second,
        applies: during,
        applies_per_second,
        settled_ms,
    };
    let missed = if applies_per_second <= AT_MOST_APPLIES { "" } else { "  missed" };
    let line = format!(
        "churn       {writes_per_second:>7.0} writes/s  {applies_per_second:.2} applies/s  at most {AT_MOST_APPLIES}  settled {settled_ms:.0} ms after the last{missed}"
    );
    Ok((serde_json::to_string(&figures)?, line))
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// The median, and what 99 of 100 stay below: with few samples, the most. In milliseconds.
fn percentiles(mut samples: Vec<Duration>) -> [f64; 2] {
    samples.sort();
    [50, 99].map(|percent| ms(samples.get(rank(samples.len(), percent)).copied().unwrap_or_default()))
}

/// Which of so many sorted samples a percentile is.
fn rank(samples: usize, percent: usize) -> usize {
    (samples * percent).div_ceil(100).max(1) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_ranks() {
        assert_eq!([rank(100, 50), rank(100, 99)], [49, 98]);
        assert_eq!([rank(3, 50), rank(3, 99)], [1, 2]);
        assert_eq!([rank(1, 50), rank(1, 99)], [0, 0]);
    }
}
