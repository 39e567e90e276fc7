//! `setpoint haproxy sync` on 5,000 backends with 4 servers each, through `setpoint haproxy serve` and on this machine alone.
//!
//! ```text
//! each case: from one configuration to another, by the cheapest way and by each single one
//!            ratio: the cheapest by the best of the single ones
//! ```

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value as Json;

use crate::dataplane::{Stage, original};

/// How many rounds are measured; the best counts.
const ROUNDS: usize = 3;

/// One thing that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SyncCase {
    /// The weight of one server.
    Weight,
    /// Fifty servers with other weights, 25 added with checks, 25 removed.
    #[value(name = "servers-100")]
    Servers100,
    /// A new backend with 200 servers.
    #[value(name = "backend-200")]
    Backend200,
    /// The same where its `defaults` say all that it needs, and a backend is chosen by a name: HAProxy 3.4 can be told.
    #[value(name = "backend-200-told")]
    Backend200Told,
    /// A thousand entries of a map.
    #[value(name = "map-1000")]
    Map1000,
    /// A rule on top of 500 others.
    RuleOnTop,
    /// The whole configuration, where there was nearly none.
    First,
}

impl SyncCase {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// How often HAProxy reloads for it. The original never adds a server with a check, or a backend, without.
    fn reloads(self, through: Through) -> u32 {
        match self {
            Self::Weight | Self::Map1000 => 0,
            Self::Servers100 | Self::Backend200Told => u32::from(through == Through::Original),
            Self::Backend200 | Self::RuleOnTop | Self::First => 1,
        }
    }
}

/// Through what it is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Through {
    /// No API at all.
    Local,
    /// Setpoint's own.
    Own,
    /// The newest original that is found.
    Original,
}

#[derive(Debug, Serialize)]
struct Figures {
    bench: &'static str,
    case: String,
    target: Through,
    calls: u64,
    reloads: u32,
    seconds: f64,
    /// How many times the best single way it took.
    ratio: f64,
    /// The best single way, and its seconds.
    best: String,
    best_seconds: f64,
}

/// Measures the cases and prints a line for each, and for each target.
pub(crate) fn run(cases: &[SyncCase], json: bool, scale: f64) -> Result<()> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "floats saturate")]
    let backends = ((5000.0 * scale).round() as u32).max(200);
    for case in cases {
        let original = original::newest().map(|_| Through::Original);
        for through in [Through::Own, Through::Local].into_iter().chain(original) {
            let figures = measure(*case, through, backends)?;
            if json {
                println!("{}", serde_json::to_string(&figures)?);
                continue;
            }
            let missed =
                if figures.ratio > 1.1 || figures.reloads != case.reloads(through) { "  missed" } else { "" };
            println!(
                "{:<16} {:<8} {:>9.1} ms  {:>4} calls  {} reloads  ratio {:.2} beside {} ({:.1} ms){missed}",
                figures.case,
                format!("{:?}", figures.target).to_lowercase(),
                figures.seconds * 1e3,
                figures.calls,
                figures.reloads,
                figures.ratio,
                figures.best,
                figures.best_seconds * 1e3
            );
        }
    }
    Ok(())
}

/// Two configurations, each with a map.
struct Pair {
    from: (String, String),
    to: (String, String),
}

fn pair(case: SyncCase, whole: &str) -> Result<Pair> {
    let map =
        |value: &str| (0..1000).fold(String::new(), |text, n| format!("{text}host{n}.test {value}{n}\n"));
    let (from, to) = match case {
        SyncCase::Weight => {
            (whole.to_owned(), whole.replacen("127.0.0.1:9 weight 10", "127.0.0.1:9 weight 50", 1))
        }
        SyncCase::Servers100 => {
            let (from, to) = servers();
            (whole.to_owned() + &from, whole.to_owned() + &to)
        }
        SyncCase::Backend200 => {
            (whole.to_owned(), format!("{whole}\nbackend more from d\n  balance roundrobin\n{}", many(200)))
        }
        SyncCase::Backend200Told => {
            let by_name = "  use_backend %[req.hdr(x-backend)] if { req.hdr(x-backend) -m found }\n";
            let whole = whole
                .replacen("defaults d\n  mode http\n", "defaults d\n  mode http\n  balance roundrobin\n", 1)
                .replacen("  default_backend b0\n", &format!("{by_name}  default_backend b0\n"), 1);
            (whole.clone(), format!("{whole}\nbackend more from d\n{}", many(200)))
        }
        SyncCase::Map1000 => (whole.to_owned(), whole.to_owned()),
        SyncCase::RuleOnTop => {
            let rules = (0..500)
                .fold(String::new(), |text, n| format!("{text}  http-request set-header x-{n} {n}\n"));
            let with = |rules: &str| {
                whole.replacen("  default_backend b0\n", &format!("{rules}  default_backend b0\n"), 1)
            };
            (with(&rules), with(&format!("  http-request set-header x-top 1\n{rules}")))
        }
        SyncCase::First => {
            let (head, _) = whole.split_once("backend b1 ").context("there are backends")?;
            (head.to_owned(), whole.to_owned())
        }
    };
    let other = if case == SyncCase::Map1000 { "b" } else { "a" };
    Ok(Pair { from: (from, map("a")), to: (to, map(other)) })
}

/// So many servers.
fn many(count: u32) -> String {
    (0..count).fold(String::new(), |text, n| format!("{text}  server s{n:03} 127.0.0.1:{}\n", 1000 + n))
}

/// Servers of ten backends with checks, before and after: 50 get another weight, 25 come and 25 go.
fn servers() -> (String, String) {
    let (mut from, mut to) = (String::new(), String::new());
    for backend in 0..10 {
        let head = format!("\nbackend c{backend} from d\n  balance roundrobin\n");
        from += &head;
        to += &head;
        for server in 0..10 {
            let line = |weight: u32| {
                format!("  server s{server} 127.0.0.1:{} check weight {weight}\n", 2000 + server)
            };
            let number = backend * 10 + server;
            // Writing to a string can't fail.
            let _ = match number {
                0..50 => write!(from, "{}", line(10)).and_then(|()| write!(to, "{}", line(20))),
                50..75 => write!(to, "{}", line(10)),
                _ => write!(from, "{}", line(10)),
            };
        }
    }
    (from, to)
}

/// A configuration in a file, with its maps in a folder.
struct Desired {
    file: PathBuf,
    maps: PathBuf,
}

struct Rig {
    stage: Stage,
    through: Through,
    from: Desired,
    to: Desired,
}

fn measure(case: SyncCase, through: Through, backends: u32) -> Result<Figures> {
    let mut stage = match (through, original::newest()) {
        (Through::Original, Some((_, program))) => Stage::start_original(&program, backends)?,
        _ => Stage::start(backends)?,
    };
    let maps = stage.folder().join("maps");
    let whole = stage.text.replacen(
        "  default_backend b0\n",
        &format!(
            "  http-request set-var(txn.m) hdr(host),map({}/m.map)\n  default_backend b0\n",
            maps.display()
        ),
        1,
    );
    let pair = pair(case, &whole)?;
    let write = |name: &str, (text, map): &(String, String)| -> Result<Desired> {
        let folder = stage.folder().join(name);
        let desired = Desired { file: folder.join("desired.cfg"), maps: folder.join("maps") };
        std::fs::create_dir_all(&desired.maps)?;
        std::fs::write(&desired.file, text)?;
        std::fs::write(desired.maps.join("m.map"), map)?;
        Ok(desired)
    };
    let (from, to) = (write("from", &pair.from)?, write("to", &pair.to)?);
    if through == Through::Local {
        stage.end_api();
    }
    let rig = Rig { stage, through, from, to };
    let mut figures = Vec::new();
    for way in ["cheapest", "transaction", "one-by-one", "text"] {
        figures.push((way, rig.best(way)?));
    }
    let mut singles = figures.split_off(1);
    let Some((_, Some((seconds, calls, reloads)))) = figures.pop() else {
        anyhow::bail!("{}: the cheapest way failed", case.name());
    };
    singles.retain(|(_, measured)| measured.is_some());
    singles.sort_by(|one, other| {
        let seconds = |measured: &Option<(f64, u64, u32)>| measured.map_or(f64::MAX, |(seconds, ..)| seconds);
        seconds(&one.1).total_cmp(&seconds(&other.1))
    });
    let best = singles.iter().find_map(|(way, measured)| measured.map(|(seconds, ..)| (*way, seconds)));
    let (best, best_seconds) = best.context("no single way leads there")?;
    Ok(Figures {
        bench: "sync",
        case: case.name(),
        target: through,
        calls,
        reloads,
        seconds,
        ratio: seconds / best_seconds,
        best: best.to_owned(),
        best_seconds,
    })
}

impl Rig {
    /// The best of a few rounds by one way: seconds, calls and reloads; none where that way does not lead there.
    fn best(&self, way: &str) -> Result<Option<(f64, u64, u32)>> {
        let mut best: Option<(f64, u64, u32)> = None;
        for _ in 0..ROUNDS {
            ensure!(self.sync(&self.from, "cheapest")?, "the configuration to begin with can't be reached");
            // What was ordered, or is looked at in the background, is over.
            std::thread::sleep(Duration::from_secs(2));
            let calls = self.calls(&self.to, way)?;
            let before = self.stage.reloads()?;
            let start = Instant::now();
            if !self.sync(&self.to, way)? {
                return Ok(None);
            }
            let seconds = start.elapsed().as_secs_f64();
            std::thread::sleep(Duration::from_millis(500));
            let reloads = self.stage.reloads()?.saturating_sub(before);
            if best.is_none_or(|(best, ..)| seconds < best) {
                best = Some((seconds, calls, reloads));
            }
        }
        Ok(best)
    }

    fn command(&self, verb: &str, desired: &Desired, way: &str) -> Command {
        let mut command = Command::new(self.stage.setpoint());
        command.args(["haproxy", verb]).arg(&desired.file).arg("--maps").arg(&desired.maps);
        command.args(["--way", way, "--json", "--timeout", "600"]);
        match self.through {
            Through::Own | Through::Original => {
                let (url, password) = self.stage.address();
                command.args(["--url", &url, "--user", "admin", "--password-file"]).arg(password);
            }
            Through::Local => {
                command.arg("--local").arg("--haproxy").arg(self.stage.program());
                command.arg("--config").arg(self.stage.file());
            }
        }
        command
    }

    fn sync(&self, desired: &Desired, way: &str) -> Result<bool> {
        let mut command = self.command("sync", desired, way);
        command.args(["--no-fallback", "--reload-timeout", "120"]);
        let output = command.output().context("can't run setpoint")?;
        let told = String::from_utf8_lossy(&output.stdout);
        // One that takes longer than a sync may is none either.
        let is_impossible = told.contains("can't be carried over") || told.contains("it took longer than");
        ensure!(
            output.status.success() || is_impossible,
            "a sync failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(output.status.success())
    }

    /// How many calls a plan has.
    fn calls(&self, desired: &Desired, way: &str) -> Result<u64> {
        let output = self.command("plan", desired, way).output().context("can't run setpoint")?;
        let plan: Json = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let files = plan["files"].as_array().map_or(0, Vec::len) as u64;
        Ok(plan["ways"][0]["estimate"]["calls"].as_u64().unwrap_or(0) + files)
    }
}
