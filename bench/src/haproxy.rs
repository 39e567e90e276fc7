//! HAProxy configurations: parsing, modelling and comparing, beside a floor and beside HAProxy itself.
//!
//! ```text
//!  lossless-…   bytes to a document            ┐
//!  typed-…      bytes to the typed model       ├─ beside the same bytes split into lines and words, and `haproxy -c`
//!  compare-…    two texts to operations        │
//!  check-…      bytes to all that is wrong     ┘
//!  edit-…       one change of a document of 1 MB, whatever its shape
//!  edits-50k    a change in each of 50,000 backends
//! ```

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use setpoint_haproxy::check::{Checks, check};
use setpoint_haproxy::compare::compare;
use setpoint_haproxy::edit::{ChildKey, Editor, SectionKey};
use setpoint_haproxy::model::{Context, Object, ObjectKind, SectionModel, Version, model};
use setpoint_haproxy::text::{Document, SectionKind};
use setpoint_testutils::manifest::{MANIFEST_FILE, MANIFEST_VARIABLE, Manifest, PartState};

use crate::measure::peak_rss_bytes;

/// How many samples are taken; the best counts.
const SAMPLES: usize = 3;
/// How often a process repeats what it measures, at least; the best counts.
const REPEATS: usize = 5;
/// For how long it repeats what is short: whatever else the machine does takes turns that are longer than that.
const REPEATED_FOR: Duration = Duration::from_millis(400);

/// One thing that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HaproxyCase {
    /// 5,000 backends with 4 servers each, to a document.
    #[value(name = "lossless-5k")]
    Lossless5k,
    /// 50,000 backends, to a document.
    #[value(name = "lossless-50k")]
    Lossless50k,
    /// A mixed configuration, to a document.
    LosslessMixed,
    /// 5,000 backends, to the typed model.
    #[value(name = "typed-5k")]
    Typed5k,
    /// 20,000 backends, 4.2 MB, to the typed model: what memory is counted for.
    #[value(name = "typed-20k")]
    Typed20k,
    /// 50,000 backends, to the typed model.
    #[value(name = "typed-50k")]
    Typed50k,
    /// A mixed configuration, to the typed model.
    TypedMixed,
    /// Two texts of 5,000 backends with one change, to operations.
    #[value(name = "compare-5k")]
    Compare5k,
    /// A document of 5,000 backends and an edit of it, to operations.
    #[value(name = "compare-edit-5k")]
    CompareEdit5k,
    /// Two texts of 50,000 backends with one change, to operations.
    #[value(name = "compare-50k")]
    Compare50k,
    /// Two mixed texts with one change, to operations.
    CompareMixed,
    /// 5,000 backends, to all that is wrong with them.
    #[value(name = "check-5k")]
    Check5k,
    /// 50,000 backends, to all that is wrong with them.
    #[value(name = "check-50k")]
    Check50k,
    /// A mixed configuration, to all that is wrong with it.
    CheckMixed,
    /// A rule put into the middle of 20,000 rules of one frontend.
    EditRules,
    /// A server changed among 20,000 servers of one backend.
    EditServers,
    /// A server put into one of 5,000 backends.
    EditBackends,
    /// A setting of a frontend of 20,000 rules.
    EditSettings,
    /// A backend put among 5,000.
    EditSections,
    /// A server changed in each of 50,000 backends.
    #[value(name = "edits-50k")]
    Edits50k,
}

/// What must be reached.
#[derive(Clone, Copy, Debug)]
enum Limit {
    /// So many bytes a second, at least.
    Speed(f64),
    /// So many seconds, at most.
    Seconds(f64),
    /// Not longer than `haproxy -c` takes.
    Haproxy,
    /// Nothing was set.
    None,
}

impl HaproxyCase {
    /// How many backends there are, and whether they are mixed with all else.
    fn shape(self) -> (u32, bool) {
        match self {
            Self::Lossless5k
            | Self::Typed5k
            | Self::Compare5k
            | Self::CompareEdit5k
            | Self::Check5k
            | Self::EditBackends
            | Self::EditSections => (5_000, false),
            Self::Typed20k | Self::EditRules | Self::EditServers | Self::EditSettings => (20_000, false),
            Self::Lossless50k | Self::Typed50k | Self::Compare50k | Self::Check50k | Self::Edits50k => {
                (50_000, false)
            }
            Self::LosslessMixed | Self::TypedMixed | Self::CompareMixed | Self::CheckMixed => (1_000, true),
        }
    }

    fn limit(self) -> Limit {
        match self {
            Self::Lossless5k | Self::Lossless50k | Self::LosslessMixed => Limit::Speed(200e6),
            Self::Typed5k | Self::Typed20k | Self::Typed50k | Self::TypedMixed => Limit::Speed(60e6),
            Self::Compare5k => Limit::Seconds(0.015),
            Self::CompareEdit5k => Limit::Seconds(0.001),
            Self::Check5k | Self::Check50k | Self::CheckMixed => Limit::Haproxy,
            Self::EditRules
            | Self::EditServers
            | Self::EditBackends
            | Self::EditSettings
            | Self::EditSections => Limit::Seconds(0.0001),
            Self::Compare50k | Self::CompareMixed | Self::Edits50k => Limit::None,
        }
    }

    /// The configuration that is measured.
    fn text(self, n: u32) -> String {
        match self {
            Self::EditRules | Self::EditSettings => {
                let rules =
                    (0..n).map(|rule| format!("    http-request set-header X-{rule:05} yes if TRUE\n"));
                format!(
                    "frontend f\n    bind 127.0.0.1:80 name main\n    maxconn 100\n{}",
                    rules.collect::<String>()
                )
            }
            Self::EditServers => {
                let server = |n: u32| {
                    format!("    server s{n:05} 10.0.{}.{}:8080 check weight 1\n", n >> 8 & 255, n & 255)
                };
                format!("backend b\n    balance roundrobin\n{}", (0..n).map(server).collect::<String>())
            }
            _ => configuration(n, self.shape().1),
        }
    }

    /// The most memory that may be in use, where that was set.
    fn memory(self) -> Option<u64> {
        (self == Self::Typed20k).then_some(60_000_000)
    }

    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// What one process measured.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    bytes: u64,
    seconds: f64,
    floor_seconds: f64,
    peak_rss_bytes: u64,
}

/// What is reported of a case.
#[derive(Debug, Serialize)]
struct Figures {
    bench: &'static str,
    case: String,
    n: u32,
    bytes: u64,
    seconds: f64,
    floor_seconds: f64,
    ratio: f64,
    growth: f64,
    peak_rss_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    haproxy_seconds: Option<f64>,
    #[serde(skip)]
    missed: bool,
}

/// Measures the cases and prints a line for each.
pub(crate) fn run(cases: &[HaproxyCase], json: bool, scale: f64) -> Result<()> {
    let mut begun = false;
    for &case in cases {
        let figures = figures(case, scale)?;
        if json {
            println!("{}", serde_json::to_string(&figures)?);
            continue;
        }
        if !std::mem::replace(&mut begun, true) {
            println!(
                "{}",
                row(["case", "n", "bytes", "time", "MB/s", "floor", "ratio", "growth", "peak", "haproxy -c"])
            );
        }
        println!("{}", line(&figures));
    }
    Ok(())
}

fn figures(case: HaproxyCase, scale: f64) -> Result<Figures> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "floats saturate")]
    let n = ((f64::from(case.shape().0) * scale).round() as u32).max(8);
    let (whole, quarter) = (best(case, n)?, best(case, n / 4)?);
    #[expect(clippy::cast_precision_loss, reason = "sizes of files are exact")]
    let speed = whole.bytes as f64 / whole.seconds;
    let haproxy_seconds = haproxy_seconds(&case.text(n))?;
    let reached = match case.limit() {
        Limit::Haproxy => haproxy_seconds.is_none_or(|most| whole.seconds <= most),
        Limit::Speed(least) => speed >= least,
        Limit::Seconds(most) => whole.seconds <= most,
        Limit::None => true,
    };
    let small = case.memory().is_none_or(|most| whole.peak_rss_bytes <= most);
    Ok(Figures {
        bench: "haproxy",
        case: case.name(),
        n,
        bytes: whole.bytes,
        seconds: whole.seconds,
        floor_seconds: whole.floor_seconds,
        ratio: whole.seconds / whole.floor_seconds,
        growth: whole.seconds / (4.0 * quarter.seconds),
        peak_rss_bytes: whole.peak_rss_bytes,
        haproxy_seconds,
        missed: !(reached && small),
    })
}

fn line(figures: &Figures) -> String {
    #[expect(clippy::cast_precision_loss, reason = "sizes of files are exact")]
    let speed = figures.bytes as f64 / figures.seconds / 1e6;
    let ms = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
    let row = row([
        &figures.case,
        &figures.n.to_string(),
        &figures.bytes.to_string(),
        &ms(figures.seconds),
        &format!("{speed:.0}"),
        &ms(figures.floor_seconds),
        &format!("{:.2}", figures.ratio),
        &format!("{:.2}", figures.growth),
        &format!("{:.1} MB", bytes_as_megabytes(figures.peak_rss_bytes)),
        &figures.haproxy_seconds.map_or_else(|| "–".to_owned(), ms),
    ]);
    if figures.missed { format!("{row}  missed") } else { row }
}

#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
fn bytes_as_megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn row(cells: [&str; 10]) -> String {
    let [case, n, bytes, time, speed, floor, ratio, growth, peak, haproxy] = cells;
    format!(
        "{case:<16}{n:>7}  {bytes:>9}  {time:>10}  {speed:>6}  {floor:>10}  {ratio:>6}  {growth:>6}  {peak:>9}  {haproxy:>12}"
    )
}

/// The best of a few samples, each of a process of its own.
fn best(case: HaproxyCase, n: u32) -> Result<Sample> {
    let this = std::env::current_exe().context("can't find this program to run it again")?;
    let (name, n) = (case.name(), n.to_string());
    let mut best: Option<Sample> = None;
    for _ in 0..SAMPLES {
        let output = Command::new(&this)
            .args(["--haproxy-case", &name, "--n", &n])
            .output()
            .context("can't run this program again")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{name} with {n} backends failed: {}", said.trim());
        let sample: Sample =
            serde_json::from_slice(&output.stdout).with_context(|| format!("{name} printed no sample"))?;
        best = Some(best.map_or(sample, |best| Sample {
            bytes: sample.bytes,
            seconds: best.seconds.min(sample.seconds),
            floor_seconds: best.floor_seconds.min(sample.floor_seconds),
            peak_rss_bytes: best.peak_rss_bytes.min(sample.peak_rss_bytes),
        }));
    }
    best.context("no sample was taken")
}

/// Measures a case in this process.
pub(crate) fn sample(case: HaproxyCase, n: u32) -> Result<Sample> {
    let text = case.text(n).into_bytes();
    let cx = Context::default();
    // The table of directives is read once, whoever comes first.
    black_box(model(&Document::parse(b"global\n"), &cx));
    let (seconds, bytes, copies) = match case {
        HaproxyCase::Lossless5k | HaproxyCase::Lossless50k | HaproxyCase::LosslessMixed => {
            (repeated(|| Document::parse(black_box(&text))), text.len(), 1)
        }
        HaproxyCase::Typed5k | HaproxyCase::Typed20k | HaproxyCase::Typed50k | HaproxyCase::TypedMixed => {
            (repeated(|| model(&Document::parse(black_box(&text)), &cx)), text.len(), 1)
        }
        HaproxyCase::Compare5k | HaproxyCase::Compare50k | HaproxyCase::CompareMixed => {
            let other = changed(&text)?;
            let both =
                || compare(&Document::parse(black_box(&text)), &Document::parse(black_box(&other)), &cx);
            ensure!(both()?.operations().len() == 1, "one change is one operation");
            (repeated(both), text.len() + other.len(), 2)
        }
        HaproxyCase::CompareEdit5k => {
            let document = Document::parse(&text);
            let index = document.sections().len() / 2;
            let section = document.sections().get(index).context("there are sections")?;
            let bytes = changed(&section.bytes())?;
            let edit = || compare(&document, &document.with_section(index, black_box(&bytes)), &cx);
            ensure!(edit()?.operations().len() == 1, "one change is one operation");
            (repeated(edit), text.len(), 1)
        }
        HaproxyCase::Check5k | HaproxyCase::Check50k | HaproxyCase::CheckMixed => {
            let checks = Checks { version: Some(Version::LATEST), ..Checks::default() };
            let whole = || check(&Document::parse(black_box(&text)), &checks);
            let found = whole();
            ensure!(found.is_empty(), "what is measured is fine: {found:?}");
            (repeated(whole), text.len(), 1)
        }
        HaproxyCase::EditRules
        | HaproxyCase::EditServers
        | HaproxyCase::EditBackends
        | HaproxyCase::EditSettings
        | HaproxyCase::EditSections => (one_change(case, &text, n, &cx)?, text.len(), 1),
        HaproxyCase::Edits50k => {
            let document = Document::parse(&text);
            let mut failed = None;
            let seconds = repeated(|| {
                let mut editor = Editor::new(document.clone(), &cx);
                for backend in 0..n {
                    let key = SectionKey::named(SectionKind::Backend, format!("backend_{backend:05}"));
                    failed = weighted(&mut editor, &key, "s1", 7, &cx).err().or(failed.take());
                }
                editor.finish()
            });
            ensure!(failed.is_none(), "a change failed: {failed:?}");
            (seconds, text.len(), 1)
        }
    };
    let peak_rss_bytes = peak_rss_bytes()?;
    let floor_seconds = repeated(|| (0..copies).map(|_| words(black_box(&text))).sum::<usize>());
    Ok(Sample { bytes: u64::try_from(bytes)?, seconds, floor_seconds, peak_rss_bytes })
}

/// How long one change takes, of a document that stays in use: each begins with what the one before left.
fn one_change(case: HaproxyCase, text: &[u8], n: u32, cx: &Context) -> Result<f64> {
    let mut editor = Editor::new(Document::parse(text), cx);
    let frontend = SectionKey::named(SectionKind::Frontend, "f");
    let json = serde_json::json!({ "type": "set-header", "hdr_name": "X-New", "hdr_format": "yes" });
    let (rule, _) = Object::from_json(ObjectKind::HttpRequestRule, &json, cx)?;
    let mut round = 0_i64;
    let mut failed = None;
    let mut change = |editor: &mut Editor<'_>| -> Result<()> {
        round += 1;
        let middle = format!("backend_{:05}", n / 2);
        match case {
            HaproxyCase::EditRules => editor.create(&frontend, &rule, Some(n / 2))?,
            HaproxyCase::EditServers => {
                let backend = SectionKey::named(SectionKind::Backend, "b");
                weighted(editor, &backend, &format!("s{:05}", n / 2), 1 + round % 100, cx)?;
            }
            HaproxyCase::EditBackends => {
                let backend = SectionKey::named(SectionKind::Backend, middle);
                weighted(editor, &backend, "s1", 1 + round % 100, cx)?;
            }
            HaproxyCase::EditSettings => {
                let json = serde_json::json!({ "name": "f", "maxconn": 100 + round });
                editor.replace_settings(&frontend, &Object::from_json(ObjectKind::Frontend, &json, cx)?.0)?;
            }
            _ => {
                let json = serde_json::json!({ "name": format!("new_{round}") });
                editor.create_section(&SectionModel::from_json(ObjectKind::Backend, &json, cx)?.0)?;
            }
        }
        Ok(())
    };
    // What was never read is read once.
    change(&mut editor)?;
    let seconds = repeated(|| failed = change(&mut editor).err().or(failed.take()));
    ensure!(failed.is_none(), "a change failed: {failed:?}");
    Ok(seconds)
}

/// Gives a server another weight.
fn weighted(
    editor: &mut Editor<'_>,
    backend: &SectionKey,
    name: &str,
    weight: i64,
    cx: &Context,
) -> Result<()> {
    let json = serde_json::json!({ "name": name, "address": "10.0.0.1", "port": 8080, "weight": weight });
    let (server, _) = Object::from_json(ObjectKind::Server, &json, cx)?;
    editor.replace(backend, &ChildKey::Name(name.into()), &server)?;
    Ok(())
}

fn repeated<T>(mut what: impl FnMut() -> T) -> f64 {
    let (mut best, began) = (Duration::MAX, Instant::now());
    for round in 0.. {
        if round >= REPEATS && began.elapsed() >= REPEATED_FOR {
            break;
        }
        let start = Instant::now();
        let made = what();
        best = best.min(start.elapsed());
        drop(black_box(made));
    }
    best.as_secs_f64()
}

/// The floor: lines and words, and nothing else.
fn words(text: &[u8]) -> usize {
    let lines = text.split(|&byte| byte == b'\n');
    lines.map(|line| line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count()).sum()
}

/// The same text with another weight of one server in its middle.
fn changed(text: &[u8]) -> Result<Vec<u8>> {
    let middle = text.len() / 2;
    let at = |from: usize| {
        text.get(from..).and_then(|rest| rest.windows(8).position(|window| window == b"weight 1"))
    };
    let (from, place) = match at(middle) {
        Some(place) => (middle, place),
        None => (0, at(0).context("the text has a weight")?),
    };
    let mut other = text.to_vec();
    if let Some(byte) = other.get_mut(from + place + 7) {
        *byte = b'2';
    }
    Ok(other)
}

/// A configuration of so many backends with four servers each, alone or among all else that a real one has.
fn configuration(n: u32, mixed: bool) -> String {
    let mut text = String::from(
        "global\n    maxconn 100000\n    log stdout format raw local0\n\ndefaults\n    mode http\n    timeout connect 5s\n    timeout client 30s\n    timeout server 30s\n\n",
    );
    if mixed {
        text.push_str(
            "userlist people\n    user ann insecure-password secret\n\nresolvers dns\n    nameserver d1 127.0.0.1:53\n    hold valid 10s\n\ncache assets\n    total-max-size 4\n\n",
        );
    }
    for backend in 0..n {
        // Writing to a string can't fail.
        let _ = writeln!(text, "backend backend_{backend:05}\n    balance roundrobin");
        if mixed {
            text.push_str(
                "    # what the team asked for\n    option httpchk GET /health\n    acl is_api path_beg /api /v1 /v2\n    acl from_inside src 10.0.0.0/8 192.168.0.0/16\n    http-request set-header X-Forwarded-Proto https if { ssl_fc }\n    http-request deny deny_status 403 if is_api !from_inside\n    http-response set-header Strict-Transport-Security \"max-age=31536000; includeSubDomains\"\n    stick-table type ip size 100k expire 30m store http_req_rate(10s)\n    timeout server 1m\n    cookie SRV insert indirect nocache\n    default-server inter 2s fall 3 rise 2\n",
            );
        }
        for server in 0..4 {
            let (a, b) = (backend >> 8 & 255, backend & 255);
            let _ = writeln!(text, "    server s{server} 10.{a}.{b}.{server}:8080 check weight 1");
        }
        text.push('\n');
        if mixed && backend % 10 == 0 {
            let port = 10_000 + backend % 50_000;
            let _ = writeln!(
                text,
                "frontend front_{backend:05}\n    bind 127.0.0.1:{port} name main\n    option httplog\n    declare capture request len 64\n    acl static path_end .css .js .png\n    use_backend backend_{backend:05} if static\n    default_backend backend_{backend:05}\n"
            );
        }
    }
    text
}

/// How long `haproxy -c` takes on a text, where there is a HAProxy.
fn haproxy_seconds(text: &str) -> Result<Option<f64>> {
    let Some(program) = haproxy() else { return Ok(None) };
    let folder = tempfile::tempdir().context("can't make a temporary directory")?;
    let file = folder.path().join("haproxy.cfg");
    std::fs::write(&file, text)?;
    let mut best = Duration::MAX;
    for _ in 0..SAMPLES {
        let start = Instant::now();
        let output =
            Command::new(&program).arg("-c").arg("-f").arg(&file).output().context("can't run haproxy")?;
        best = best.min(start.elapsed());
        let said = String::from_utf8_lossy(&output.stderr);
        // Without a frontend it would not start, and says so.
        ensure!(
            output.status.success() || said.contains("no listener") || output.status.code() == Some(2),
            "{said}"
        );
    }
    Ok(Some(best.as_secs_f64()))
}

/// The newest HAProxy among the parts.
pub(crate) fn haproxy() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let file = variable(MANIFEST_VARIABLE)
        .or_else(|| variable("SETPOINT_PARTS_DIR").map(|folder| folder.join(MANIFEST_FILE)))
        .or_else(|| {
            let cache =
                variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")))?;
            Some(cache.join("setpoint").join("parts").join(MANIFEST_FILE))
        })?;
    let manifest = Manifest::read(&file).ok()?;
    let mut found: Vec<_> = manifest
        .parts
        .iter()
        .filter(|part| part.state == PartState::Ready && part.name.starts_with("haproxy-"))
        .collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let program = found.last()?.path.as_ref()?.join("bin/haproxy");
    program.exists().then_some(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_gives_a_sample() {
        for case in HaproxyCase::value_variants() {
            let sample = sample(*case, 8).unwrap();
            assert!(
                sample.bytes > 0 && sample.seconds > 0.0 && sample.floor_seconds > 0.0,
                "{case:?}: {sample:?}"
            );
        }
    }

    #[test]
    fn what_is_measured_is_modelled_whole() {
        for mixed in [false, true] {
            let document = Document::parse(configuration(20, mixed).as_bytes());
            assert_eq!(document.diagnostics(), []);
            let unmodelled: Vec<_> = model(&document, &Context::default())
                .sections
                .iter()
                .filter(|section| !section.unmodelled.is_empty() || section.text_only.is_some())
                .map(|section| (section.name.clone(), section.unmodelled.clone()))
                .collect();
            assert_eq!(unmodelled, []);
        }
    }
}
