//! Starts parts for a person to play with: `cargo xtask up haproxy|kubernetes|consul|etcd…`.
//!
//! Prints how to reach each, and stops them all on Ctrl-C.
#![expect(clippy::print_stdout, reason = "a command line talks to the terminal")]

use std::any::Any;
use std::io::Write;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use setpoint_testutils::{
    Acl, Browser, Consul, ConsulCluster, Dataplane, Durability, Etcd, EtcdCluster, Haproxy, Kubernetes,
    Missing, NetworkNamespace, Version, dataplane,
};
use tokio::signal::unix::{SignalKind, signal};

/// Starts parts for a person to play with.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask up", bin_name = "cargo xtask up")]
struct Cli {
    /// What to start.
    #[arg(required = true)]
    parts: Vec<Up>,
    /// Stops by itself after so many seconds.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
}

/// What can be started.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Up {
    /// The newest HAProxy there is.
    Haproxy,
    /// A Dataplane API that was found, in front of the HAProxy that fits it.
    Dataplaneapi,
    /// A Kubernetes API server with its etcd.
    Kubernetes,
    /// A Consul server.
    Consul,
    /// A Consul server that asks for tokens.
    ConsulAcl,
    /// Three Consul servers.
    ConsulCluster,
    /// One etcd member.
    Etcd,
    /// Three etcd members.
    EtcdCluster,
    /// Two hosts in network namespaces, joined by a cable.
    Network,
    /// Says where the browser is.
    Browser,
}

/// A part that runs as long as this is kept.
type Running = Box<dyn Any>;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let limit = Duration::from_secs(cli.seconds.unwrap_or(u64::from(u32::MAX)));
    let parts = async {
        let mut running = Vec::new();
        for part in cli.parts {
            running.push(start(part).await?);
        }
        println!("ready; Ctrl-C stops everything");
        tokio::time::sleep(limit).await;
        Ok::<_, Missing>(running)
    };
    tokio::select! {
        outcome = parts => drop(outcome?),
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    // Whoever read the output may be gone by now.
    let _ = writeln!(std::io::stdout(), "stopped");
    Ok(())
}

/// Starts a part and prints how to reach it.
async fn start(part: Up) -> Result<Running, Missing> {
    Ok(match part {
        Up::Haproxy => {
            let haproxy = newest_haproxy().await?;
            println!("haproxy ({}): {}", haproxy.version().part(), haproxy.url());
            println!("  configuration: {}", haproxy.configuration_file().display());
            println!("  master socket: {}", haproxy.master_socket().display());
            println!("  runtime socket: {}", haproxy.runtime_socket().display());
            Box::new(haproxy)
        }
        Up::Dataplaneapi => {
            let programs = dataplane::programs()?;
            let newest = programs.iter().max_by_key(|program| program.haproxy());
            let program = newest.ok_or_else(|| Missing::new("dataplaneapi", "none was found"))?;
            let mut api = Dataplane::start(program).await?;
            println!("dataplaneapi ({}): {}", program.version, api.url());
            println!("  curl -u {}:{} {}/info", dataplane::USER, dataplane::PASSWORD, api.url());
            println!("  haproxy: {}", api.haproxy().url());
            Box::new(api)
        }
        Up::Kubernetes => {
            let kubernetes = Kubernetes::start_with(Durability::Durable).await?;
            println!("kubernetes: {}", kubernetes.url());
            println!("  export KUBECONFIG={}", kubernetes.kubeconfig_file().display());
            println!("  kubectl: {}", kubernetes.kubectl().get_program().display());
            Box::new(kubernetes)
        }
        Up::Consul => show_consul(Consul::start(Acl::Off).await?),
        Up::ConsulAcl => show_consul(Consul::start(Acl::On).await?),
        Up::ConsulCluster => {
            let cluster = ConsulCluster::start(Acl::Off).await?;
            for server in &cluster.servers {
                println!("consul: {}", server.url());
            }
            Box::new(cluster)
        }
        Up::Etcd => {
            let etcd = Etcd::start_with(Durability::Durable).await?;
            println!("etcd: {}", etcd.endpoint());
            Box::new(etcd)
        }
        Up::EtcdCluster => {
            let cluster = EtcdCluster::start().await?;
            println!("etcd: {}", cluster.endpoints().join(","));
            Box::new(cluster)
        }
        Up::Network => {
            let (left, right) = (NetworkNamespace::new()?, NetworkNamespace::new()?);
            left.join("cable", "10.71.0.1/24", &right, "cable", "10.71.0.2/24");
            println!("network: ip netns exec {} ping 10.71.0.2", left.name());
            println!("network: ip netns exec {} ping 10.71.0.1", right.name());
            Box::new((left, right))
        }
        Up::Browser => {
            let browser = Browser::find()?;
            println!("browser: {}", browser.program().display());
            Box::new(browser)
        }
    })
}

fn show_consul(consul: Consul) -> Running {
    println!("consul: {}", consul.url());
    if let Some(token) = consul.token() {
        println!("  export CONSUL_HTTP_TOKEN={token}");
    }
    Box::new(consul)
}

async fn newest_haproxy() -> Result<Haproxy, Missing> {
    let mut versions = Version::ALL.into_iter().rev();
    let newest = versions.next().unwrap_or(Version::V3_4);
    let found = versions.find(|version| newest.program().is_err() && version.program().is_ok());
    Haproxy::start(found.unwrap_or(newest)).await
}
