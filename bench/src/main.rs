//! Measurements of Setpoint: `cargo xtask bench --help`.
//!
//! ```text
//!  cases ──▶ one process per measurement ──▶ seconds, floor, peak ──▶ ratio, growth ──▶ table or JSON
//!            (this program again, --case)     best of three
//! ```
//!
//! A case never shares a process with another one: neither memory that was freed nor a warm cache of one
//! shows up in the figures of the next.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line talks to the terminal")]

mod case;
#[cfg(feature = "composite")]
mod composite;
mod dataplane;
mod engine;
mod floor;
mod haproxy;
mod host;
mod measure;
mod part;
mod report;
mod sync;

use std::process::ExitCode;

use anyhow::{Result, ensure};
use clap::{CommandFactory, Parser, ValueEnum};

use case::Case;

/// Measures Setpoint, each case in a process of its own.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    /// What is measured.
    #[arg(required_unless_present_any = ["case", "haproxy_case"])]
    bench: Option<Bench>,
    /// The cases to run; all if none is named.
    #[arg(value_name = "CASE")]
    cases: Vec<String>,
    /// Prints one JSON object a line.
    #[arg(long)]
    json: bool,
    /// Multiplies the number of items of each case.
    #[arg(long, default_value_t = 1.0, value_name = "FACTOR")]
    scale: f64,
    /// Measures one case in this very process and prints the sample.
    #[arg(long, hide = true, value_enum, requires = "n", conflicts_with = "bench")]
    case: Option<Case>,
    /// Measures one case of HAProxy configurations in this very process and prints the sample.
    #[arg(long, hide = true, value_enum, requires = "n", conflicts_with_all = ["bench", "case"])]
    haproxy_case: Option<haproxy::HaproxyCase>,
    /// The number of items of that case.
    #[arg(long, hide = true)]
    n: Option<u32>,
}

/// A set of cases.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Bench {
    /// Graphs, planning and reconciliation.
    Engine,
    /// The command on real files.
    Host,
    /// HAProxy configurations: parsing, modelling, comparing.
    Haproxy,
    /// `setpoint haproxy serve` before a real HAProxy.
    Dataplane,
    /// `setpoint haproxy sync` on a real HAProxy, with and without an API.
    Sync,
    /// Consul to a ConfigMap.
    Composite,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    if let (Some(case), Some(n)) = (cli.case, cli.n) {
        println!("{}", serde_json::to_string(&measure::sample(case, n)?)?);
        return Ok(());
    }
    if let (Some(case), Some(n)) = (cli.haproxy_case, cli.n) {
        println!("{}", serde_json::to_string(&haproxy::sample(case, n)?)?);
        return Ok(());
    }
    ensure!(cli.scale.is_finite() && cli.scale > 0.0, "--scale must be a number above 0");
    if let Some(Bench::Host) = cli.bench {
        return host::run(&chosen::<host::HostCase>(&cli.cases), cli.json, cli.scale);
    }
    if let Some(Bench::Haproxy) = cli.bench {
        return haproxy::run(&chosen::<haproxy::HaproxyCase>(&cli.cases), cli.json, cli.scale);
    }
    if let Some(Bench::Sync) = cli.bench {
        return sync::run(&chosen::<sync::SyncCase>(&cli.cases), cli.json, cli.scale);
    }
    if let Some(Bench::Dataplane) = cli.bench {
        return dataplane::run(&chosen::<dataplane::DataplaneCase>(&cli.cases), cli.json, cli.scale);
    }
    if let Some(Bench::Composite) = cli.bench {
        return composite(cli);
    }
    let cases = chosen::<Case>(&cli.cases);
    let mut report = report::Report::new(cli.json);
    for case in cases {
        for size in case.sizes() {
            report.add(&measure::figures(case, size, cli.scale)?)?;
        }
    }
    Ok(())
}

#[cfg(feature = "composite")]
fn composite(cli: &Cli) -> Result<()> {
    composite::run(&chosen::<composite::CompositeCase>(&cli.cases), cli.json, cli.scale)
}

#[cfg(not(feature = "composite"))]
fn composite(_: &Cli) -> Result<()> {
    anyhow::bail!("this program was built without it; run `cargo xtask bench composite`")
}

/// The named cases, or all of them. An unknown one is a usage error, as clap tells it.
fn chosen<C: ValueEnum + Clone>(names: &[String]) -> Vec<C> {
    if names.is_empty() {
        return C::value_variants().to_vec();
    }
    let parse = |name: &String| {
        C::from_str(name, false).unwrap_or_else(|_| {
            let known = C::value_variants().iter().filter_map(ValueEnum::to_possible_value);
            let known: Vec<String> = known.map(|value| value.get_name().to_owned()).collect();
            let message = format!("there is no case {name}; there are {}", known.join(", "));
            Cli::command().error(clap::error::ErrorKind::InvalidValue, message).exit()
        })
    };
    names.iter().map(parse).collect()
}
