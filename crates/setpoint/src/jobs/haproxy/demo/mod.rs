//! `setpoint demo haproxy`: the Dataplane API at work on a real HAProxy, under traffic.
//!
//! ```text
//!  clients ──▶ HAProxy ──▶ servers that say their name
//!                 ▲
//!  calls ──▶ the API: told at runtime, or one reload
//! ```

mod client;
mod traffic;

use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anstyle::Style;
use clap::Args;
use serde_json::{Value as Json, json};
use setpoint_dataplane_api::{Address, Api, Dialect, Listener, Options, Storage, Users};
use setpoint_instance::instance::{Instance, Settings};
use setpoint_instance::process::{Launch, Launched};
use setpoint_instance::reload::processes;
use tokio::net::TcpSocket;

use self::client::{Call, Client};
use self::traffic::{Seen, Traffic, serve};
use super::error::Error;
use super::serve::version_of;
use crate::error::CliError;
use crate::report::print;
use crate::service::{Signals, runtime};

const HEADING: Style = Style::new().bold();
const COMMAND: Style = anstyle::AnsiColor::Cyan.on_default();

/// How long traffic flows after each step, at least.
const FLOW: Duration = Duration::from_secs(1);
/// How many requests show what a step came to, on a machine that is busy with other things as well.
const ENOUGH: u64 = 100;
/// How long HAProxy may take to start, to reload, and to end, and traffic to be enough.
const WITHIN: Duration = Duration::from_mins(1);

/// Arguments of `setpoint demo haproxy`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The program of HAProxy [default: /usr/sbin/haproxy, or the one on the PATH].
    #[arg(long, value_name = "PROGRAM")]
    haproxy: Option<PathBuf>,
    /// Prints one JSON object for each step instead of text.
    #[arg(long)]
    json: bool,
}

/// Runs the demo.
pub(crate) fn run(args: &DemoArgs) -> Result<(), CliError> {
    let usual = Path::new("/usr/sbin/haproxy");
    let program = args
        .haproxy
        .clone()
        .unwrap_or_else(|| if usual.exists() { usual.to_owned() } else { PathBuf::from("haproxy") });
    let folder = tempfile::Builder::new().prefix("setpoint-demo-").tempdir().map_err(Error::Demo)?;
    runtime()?.block_on(async {
        let mut signals = Signals::new()?;
        let (demo, haproxy) = Demo::start(&program, folder.path(), args.json).await?;
        // Whatever happens, nothing that was started goes on.
        let ran = tokio::select! {
            ran = demo.run() => ran,
            () = signals.next() => Ok(()),
        };
        haproxy.stop(Duration::ZERO).await.map_err(Error::Demo)?;
        ran
    })
}

struct Demo {
    json: bool,
    instance: Instance,
    client: Client,
    traffic: Traffic,
    /// Where the third server is, which comes in the course of it.
    third: SocketAddr,
    /// Keeps the port of the frontend from others.
    _reserved: TcpSocket,
}

/// What the whole of it came to.
#[derive(Debug, Default)]
struct Total {
    steps: usize,
    calls: usize,
    requests: u64,
    failed: u64,
}

impl Demo {
    async fn start(program: &Path, folder: &Path, json: bool) -> Result<(Self, Launched), CliError> {
        let version = version_of(program)?;
        let (first, second, third) =
            (serve("s1").await, serve("s2").await, serve("s3").await.map_err(Error::Demo)?);
        let (reserved, front) = reserved_address().map_err(Error::Demo)?;
        let file = folder.join("haproxy.cfg");
        let text = format!(
            "global\n  stats socket {}/run.sock level admin\n\n\
             defaults\n  mode http\n  option idle-close-on-response\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n\n\
             # All traffic comes in here.\nfrontend main\n  bind {front}\n  default_backend web\n\n\
             backend web\n  balance roundrobin\n  server s1 {}\n  server s2 {}\n",
            folder.display(),
            first.map_err(Error::Demo)?,
            second.map_err(Error::Demo)?
        );
        fs::write(&file, &text).map_err(|source| Error::Make { path: file.clone(), source })?;
        let settings =
            Settings { reload_delay: Duration::from_millis(100), ..Settings::new(program, &file, version) };
        fs::create_dir(&settings.folder).map_err(Error::Demo)?;
        let launch = Launch {
            program: program.to_owned(),
            configuration: settings.files.clone(),
            working_directory: folder.to_owned(),
            environment: Vec::new(),
            master_socket: settings.master_socket.clone(),
            log: settings.folder.join("haproxy.log"),
            within: WITHIN,
        };
        let haproxy = launch.start().await.map_err(Error::from)?;
        let instance = Instance::open(settings).map_err(Error::from)?;
        let storage = Storage::new(folder.join("maps"), folder.join("ssl"), folder.join("general"));
        let dialect = Dialect::default();
        let api = Api::new(instance.clone(), dialect, Users::everybody(), storage, Options::default());
        let any = Address::Tcp((Ipv4Addr::LOCALHOST, 0).into());
        let listener = Listener::bind(any).await.map_err(Error::from)?;
        let unknown = || Error::Demo(std::io::Error::other("the address of the API is not known"));
        let address = listener.tcp_address().ok_or_else(unknown)?;
        tokio::spawn(setpoint_dataplane_api::serve(vec![listener], Arc::new(api), std::future::pending()));
        let running = instance.clone();
        tokio::spawn(async move { running.run().await });
        let (client, traffic) = (Client { address }, Traffic::start(front));
        let demo = Self { json, instance, client, traffic, third, _reserved: reserved };
        demo.remark(&format!(
            "The Dataplane API before HAProxy {version}, which serves clients all the while. It begins with:\n\n{text}"
        ))?;
        Ok((demo, haproxy))
    }

    async fn run(&self) -> Result<(), CliError> {
        let mut total = Total::default();
        self.step(&mut total, "Begin", "Two servers take turns.", async || Ok(Vec::new())).await?;
        let server = |name: &str, address: SocketAddr, weight: u32| json!({ "name": name, "address": address.ip().to_string(), "port": address.port(), "weight": weight });
        let third = server("s3", self.third, 1);
        self.step(
            &mut total,
            "Add a server",
            "HAProxy is told: it serves at once, without a reload.",
            async || self.one("POST", "configuration/backends/web/servers", Some(third.clone())).await,
        )
        .await?;
        let third = server("s3", self.third, 8);
        self.step(&mut total, "Give it more weight", "Told as well.", async || {
            self.one("PUT", "configuration/backends/web/servers/s3", Some(third.clone())).await
        })
        .await?;
        self.step(&mut total, "Remove another one", "It ends what it has begun, and goes.", async || {
            self.one("DELETE", "configuration/backends/web/servers/s2", None).await
        })
        .await?;
        self.step(
            &mut total,
            "Change what can't be told",
            "A rule and a backend need a reload: both are in one transaction, and share it.",
            async || self.transaction().await,
        )
        .await?;
        self.step(
            &mut total,
            "Make a mistake",
            "HAProxy is asked about exactly the bytes that would be written: nothing is.",
            async || {
                let bad = Json::from("frontend main\n  bind nowhere\n");
                let call = self.versioned("POST", "configuration/raw", Some(bad)).await?;
                Ok(vec![call])
            },
        )
        .await?;
        let text = fs::read_to_string(self.instance.settings().files.first().cloned().unwrap_or_default());
        let reloads = self.reloads().await;
        if self.json {
            let Total { calls, requests, failed, .. } = total;
            return print_line(
                &json!({ "calls": calls, "requests": requests, "failed": failed, "reloads": reloads }),
            );
        }
        print(&format!(
            "\n{HEADING}The configuration now{HEADING:#}: what was not changed is as it was, byte for byte.\n\n{}\n\
             {} calls, {} requests, {} failed, {reloads} {}.\n\nAll of it is removed.\n",
            text.unwrap_or_default(),
            total.calls,
            total.requests,
            total.failed,
            if reloads == 1 { "reload" } else { "reloads" }
        ))
    }

    /// A rule and a backend in one transaction, and the reload that follows.
    async fn transaction(&self) -> Result<Vec<Call>, Error> {
        let begun = self.versioned("POST", "transactions", None).await?;
        let id = begun.body.get("id").and_then(Json::as_str).unwrap_or_default().to_owned();
        let rule = json!({ "type": "set-header", "hdr_name": "X-Demo", "hdr_format": "yes" });
        let path = format!("configuration/frontends/main/http_request_rules/0?transaction_id={id}");
        let rule = self.client.call("POST", &path, Some(rule)).await.map_err(Error::Demo)?;
        let path = format!("configuration/backends?transaction_id={id}");
        let backend = self.client.call("POST", &path, Some(json!({ "name": "other" }))).await;
        let commit =
            self.client.call("PUT", &format!("transactions/{id}"), None).await.map_err(Error::Demo)?;
        self.instance.settled(WITHIN).await;
        Ok(vec![begun, rule, backend.map_err(Error::Demo)?, commit])
    }

    async fn one(&self, method: &str, path: &str, body: Option<Json>) -> Result<Vec<Call>, Error> {
        Ok(vec![self.versioned(method, path, body).await?])
    }

    /// A call for the version that is there.
    async fn versioned(&self, method: &str, path: &str, body: Option<Json>) -> Result<Call, Error> {
        let path = format!("{path}?version={}", self.instance.version());
        self.client.call(method, &path, body).await.map_err(Error::Demo)
    }

    async fn reloads(&self) -> u32 {
        processes(self.instance.master()).await.map_or(0, |processes| processes.master.reloads)
    }

    /// Does something, lets traffic flow, and shows what came of both.
    async fn step(
        &self,
        total: &mut Total,
        title: &str,
        about: &str,
        act: impl AsyncFnOnce() -> Result<Vec<Call>, Error>,
    ) -> Result<(), CliError> {
        total.steps += 1;
        self.remark(&format!("\n{HEADING}== {}. {title}{HEADING:#}\n{about}\n\n", total.steps))?;
        let calls = act().await?;
        tokio::time::sleep(FLOW).await;
        // What is too little after that is shown as it is.
        let _ = tokio::time::timeout(WITHIN, self.traffic.at_least(ENOUGH)).await;
        let Seen { served, failed } = self.traffic.take();
        let reloads = self.reloads().await;
        total.calls += calls.len();
        total.requests += served.values().sum::<u64>() + failed;
        total.failed += failed;
        if self.json {
            let calls: Vec<Json> = calls
                .iter()
                .map(|call| json!({ "command": call.command, "status": call.status, "seconds": call.took.as_secs_f64() }))
                .collect();
            return print_line(
                &json!({ "step": total.steps, "title": title, "calls": calls, "served": served, "failed": failed, "reloads": reloads }),
            );
        }
        let mut text = String::new();
        for call in &calls {
            let reload = call.reload.as_ref().map(|id| format!(", reload {id}")).unwrap_or_default();
            let message = call.body.get("message").and_then(Json::as_str).map(|text| format!("\n{text}"));
            // Writing to a string can't fail.
            let _ = writeln!(
                text,
                "{COMMAND}$ {}{COMMAND:#}\n{} in {:.1} ms{reload}{}",
                call.command,
                call.status,
                call.took.as_secs_f64() * 1e3,
                message.unwrap_or_default()
            );
        }
        let served: Vec<String> = served.iter().map(|(name, count)| format!("{name} {count}")).collect();
        print(&format!("{text}served: {}; failed: {failed}; reloads: {reloads}\n", served.join(", ")))
    }

    fn remark(&self, text: &str) -> Result<(), CliError> {
        if self.json { Ok(()) } else { print(text) }
    }
}

fn print_line(json: &Json) -> Result<(), CliError> {
    print(&format!("{json}\n"))
}

/// An address of this machine that only HAProxy can listen on for as long as the socket lives: the socket has the port, does
/// not listen, and shares it with sockets of the same user that share it as well, as those of HAProxy do.
fn reserved_address() -> std::io::Result<(TcpSocket, SocketAddr)> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseport(true)?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let address = socket.local_addr()?;
    Ok((socket, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_that_is_reserved_is_for_sockets_that_share_it() {
        let (reserved, address) = reserved_address().unwrap();
        assert!(std::net::TcpListener::bind(address).is_err(), "others can't have it");
        let shared = TcpSocket::new_v4().unwrap();
        // As HAProxy does.
        shared.set_reuseaddr(true).unwrap();
        shared.set_reuseport(true).unwrap();
        shared.bind(address).unwrap();
        let listener = shared.listen(8).unwrap();
        for _ in 0..20 {
            let (connected, accepted) =
                tokio::join!(tokio::net::TcpStream::connect(address), listener.accept());
            assert!(connected.is_ok() && accepted.is_ok(), "all connections are the listener's");
        }
        drop(reserved);
    }
}
