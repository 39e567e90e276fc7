//! 1,000 namespaces in 250 composites, served by one process: its memory, its sockets, and what one change costs.
//!
//! ```text
//!  operator ──▶ proxy that notes each request ──▶ Consul
//! ```

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::ResourceExt;
use kube::api::{Api, ListParams, PostParams};
use serde::Serialize;
use serde_json::{Value, json};
use setpoint_testutils::Proxy;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{CONFIG_MAP, Operator, Stage};

/// How many composites there are, and how many namespaces each has.
const COMPOSITES: usize = 250;
const MEMBERS: usize = 4;
/// How many objects are made at a time.
const AT_ONCE: usize = 16;
/// How long it takes until all is quiet after the last namespace was published: keys that were written are looked at once more.
const SETTLE: Duration = Duration::from_secs(20);
/// How long requests are counted, at rest and after a change.
const WINDOW: Duration = Duration::from_secs(12);
/// How long everything may take to be published, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_mins(10);
/// What must be reached.
const AT_MOST_BYTES: u64 = 64_000_000;
const AT_MOST_SOCKETS: usize = 64;
const AT_MOST_READS: usize = 8;

/// What is reported.
#[derive(Debug, Serialize)]
struct Figures {
    bench: &'static str,
    case: &'static str,
    namespaces: usize,
    composites: usize,
    /// How long it took until all were published.
    seconds: f64,
    peak_rss_bytes: u64,
    /// The most that there were at any time.
    sockets: usize,
    /// Requests to Consul in a second while nothing happens.
    requests_at_rest: f64,
    /// What is read in Consul for one change of a structure, beside what is read at rest.
    reads_for_one_change: usize,
    /// How long it took until all namespaces of a composite showed that change.
    change_ms: f64,
}

pub(super) async fn run(stage: &Stage, scale: f64) -> Result<(String, String)> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "floats saturate")]
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let composites = ((COMPOSITES as f64 * scale).round() as usize).clamp(1, COMPOSITES);
    let id = |composite: usize| format!("n{composite:03}");
    let name = |composite: usize, member: usize| match member {
        0 => id(composite),
        _ => format!("{}-{member}", id(composite)),
    };
    let members = |composite: usize| (0..MEMBERS).map(move |member| (composite, name(composite, member)));
    let all: Vec<(usize, String)> = (0..composites).flat_map(members).collect();
    let declare = stream::iter(&all).map(|(composite, name)| declare(stage, id(*composite), name));
    declare.buffer_unordered(AT_ONCE).try_collect::<()>().await?;

    let upstream = stage.consul.url().trim_start_matches("http://").parse()?;
    let proxy = Proxy::start(upstream).await;
    let began = Instant::now();
    let consul = format!("http://{}", proxy.address());
    let operator = stage.run(&["--all-namespaces", "--lease-namespace", "default"], &consul)?;
    let sockets = Sockets::watch(operator.process.id());
    let names: Vec<_> = all.iter().map(|(_, name)| name.clone()).collect();
    let wanted = |more: usize| MEMBERS - 1 + more;
    published(stage, &names, wanted(0), &operator).await?;
    let seconds = began.elapsed().as_secs_f64();
    sleep(SETTLE).await;

    let before = proxy.requests().len();
    sleep(WINDOW).await;
    let at_rest: Vec<_> = proxy.requests().split_off(before);
    // One whose watch has no query of its own, where there is one.
    let changed = composites - 1;
    let before = proxy.requests().len();
    let start = Instant::now();
    stage.put(&id(changed), "toggled").await?;
    let group: Vec<_> = (0..MEMBERS).map(|member| name(changed, member)).collect();
    published(stage, &group, wanted(1), &operator).await?;
    let change_ms = super::ms(start.elapsed());
    sleep(WINDOW.saturating_sub(start.elapsed())).await;
    let after: Vec<_> = proxy.requests().split_off(before);
    let reads_for_one_change = more(&id(changed), &at_rest, &after);
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let requests_at_rest = at_rest.len() as f64 / WINDOW.as_secs_f64();
    let figures = Figures {
        bench: "composite",
        case: "namespaces-1000",
        namespaces: all.len(),
        composites,
        seconds,
        peak_rss_bytes: peak_rss_bytes(operator.process.id())?,
        sockets: sockets.most(),
        requests_at_rest,
        reads_for_one_change,
        change_ms,
    };
    let held = figures.peak_rss_bytes <= AT_MOST_BYTES
        && figures.sockets <= AT_MOST_SOCKETS
        && figures.reads_for_one_change <= AT_MOST_READS;
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let (megabytes, most) = (figures.peak_rss_bytes as f64 / 1e6, AT_MOST_BYTES as f64 / 1e6);
    let line = format!(
        "namespaces-1000  {} namespaces in {seconds:.1} s  {megabytes:.1} MB  at most {most:.0}  {} sockets  at most {AT_MOST_SOCKETS}  {reads_for_one_change} reads for a change  at most {AT_MOST_READS}  {change_ms:.0} ms  {requests_at_rest:.1} requests/s at rest{}",
        figures.namespaces,
        figures.sockets,
        if held { "" } else { "  missed" },
    );
    Ok((serde_json::to_string(&figures)?, line))
}

/// Makes a namespace with its Composite.
async fn declare(stage: &Stage, baseline: String, name: &str) -> Result<()> {
    let namespace: Namespace = serde_json::from_value(json!({ "metadata": { "name": name } }))?;
    Api::all(stage.client.clone()).create(&PostParams::default(), &namespace).await?;
    let spec = if baseline == name {
        json!({ "originNamespace": name })
    } else {
        json!({ "originNamespace": name, "baseline": { "originNamespace": baseline } })
    };
    let composite = serde_json::from_value(json!({
        "apiVersion": "core.netcracker.com/v1", "kind": "Composite", "subKind": "CompositeStructure",
        "metadata": { "name": "composite", "namespace": name }, "spec": spec,
    }))?;
    let composites: Api<setpoint_composite::api::Composite> = Api::namespaced(stage.client.clone(), name);
    composites.create(&PostParams::default(), &composite).await?;
    Ok(())
}

/// Waits until all these namespaces publish a baseline with so many satellites.
async fn published(stage: &Stage, names: &[String], satellites: usize, operator: &Operator) -> Result<()> {
    let config_maps: Api<ConfigMap> = Api::all(stage.client.clone());
    let only = ListParams::default().fields(&format!("metadata.name={CONFIG_MAP}"));
    let began = Instant::now();
    loop {
        let complete = |map: &ConfigMap| {
            let data = map.data.as_ref().and_then(|data| data.get("data"));
            let payload: Option<Value> = data.and_then(|data| serde_json::from_str(data).ok());
            let composite = payload.as_ref().map(|payload| &payload["composite"]);
            composite.is_some_and(|composite| {
                composite["baseline"].is_object()
                    && composite["satellites"].as_array().is_some_and(|all| all.len() == satellites)
            })
        };
        let list = config_maps.list(&only).await?;
        let done: BTreeSet<_> =
            list.iter().filter(|map| complete(map)).filter_map(ResourceExt::namespace).collect();
        let missing = names.iter().filter(|name| !done.contains(*name)).count();
        if missing == 0 {
            return Ok(());
        }
        ensure!(
            began.elapsed() < PATIENCE && operator.process.exit_status().is_none(),
            "{missing} of {} ConfigMaps were never published\n{}",
            names.len(),
            operator.process.log(),
        );
        // Few ask for little: that is what is timed.
        sleep(if names.len() > MEMBERS { Duration::from_millis(500) } else { Duration::from_millis(5) })
            .await;
    }
}

/// How many more requests there were than at rest, of those that a change of a composite may cause: what names it, looks at the
/// keys of Composites, or sees all composites.
fn more(composite: &str, at_rest: &[String], after: &[String]) -> usize {
    let (own, all) = (format!("/v1/kv/composite/{composite}/"), "/v1/kv/composite/?recurse");
    let kinds = [own.as_str(), all, "/v1/txn?consistent"];
    let count = |requests: &[String], kind: &str| requests.iter().filter(|one| one.contains(kind)).count();
    kinds.into_iter().map(|kind| count(after, kind).saturating_sub(count(at_rest, kind))).sum()
}

/// The most memory that a process has used.
fn peak_rss_bytes(process: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}

/// The sockets of a process, counted again and again.
struct Sockets {
    most: Arc<AtomicU64>,
    _task: JoinSet<()>,
}

impl Sockets {
    fn watch(process: u32) -> Self {
        let most = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&most);
        let mut task = JoinSet::new();
        task.spawn(async move {
            loop {
                seen.fetch_max(sockets(process), Ordering::Relaxed);
                sleep(Duration::from_millis(50)).await;
            }
        });
        Self { most, _task: task }
    }

    fn most(&self) -> usize {
        usize::try_from(self.most.load(Ordering::Relaxed)).unwrap_or(usize::MAX)
    }
}

fn sockets(process: u32) -> u64 {
    let Ok(open) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return 0 };
    let is_socket = |entry: std::io::Result<std::fs::DirEntry>| {
        let link = entry.ok().and_then(|entry| std::fs::read_link(entry.path()).ok());
        link.is_some_and(|link| link.to_string_lossy().starts_with("socket:"))
    };
    open.map(is_socket).map(u64::from).sum()
}
