//! `setpoint haproxy serve` as a person runs it: one command, a HAProxy that outlives it, and kills at random instants.
#![cfg_attr(test, expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test"))]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value as Json, json};
use setpoint_testutils::{Missing, Port, Version, Workdir, http, need, wait};

const LIMIT: Duration = Duration::from_mins(1);

/// A folder with a configuration, and what serves it.
struct World {
    folder: Workdir,
    port: Port,
    program: PathBuf,
}

/// One that serves. What it started outlives it.
struct Serving {
    child: Child,
    url: String,
    password: String,
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl World {
    fn new(version: Version) -> Result<Self, Missing> {
        let program = version.program()?;
        let world = Self { folder: Workdir::new("serve"), port: Port::lease(), program };
        let text = format!(
            "# mine\nglobal\n  hard-stop-after 5s\n  stats socket {} level admin\n\ndefaults d\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n\n\
             frontend main from d\n  bind {}\n  http-request return status 200 content-type text/plain string served\n\n\
             backend web from d\n  server s1 127.0.0.1:9 weight 1\n",
            world.folder.path().join("run.sock").display(),
            world.port.address()
        );
        fs::write(world.file(), text).unwrap();
        Ok(world)
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("haproxy.cfg")
    }

    fn own(&self, name: &str) -> PathBuf {
        self.folder.path().join(".haproxy.cfg.setpoint").join(name)
    }

    /// Starts the command, and waits until it says where it serves.
    fn serve(&self) -> Serving {
        let mut child = Command::new(env!("CARGO_BIN_EXE_setpoint"))
            .args(["haproxy", "serve", "--listen", "127.0.0.1:0", "--reload-delay", "0.02"])
            .arg("--haproxy")
            .arg(&self.program)
            .arg("--config")
            .arg(self.file())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let url = loop {
            let Some(Ok(line)) = lines.next() else { panic!("it ended:\n{}", said.join("\n")) };
            if let Some((_, url)) = line.split_once("is served on ") {
                break url.to_owned();
            }
            said.push(line);
        };
        // Somebody has to read what it says, so that it is never held up.
        std::thread::spawn(move || lines.for_each(drop));
        let password = fs::read_to_string(self.own("password")).unwrap().trim().to_owned();
        Serving { child, url, password }
    }

    /// Ends the HAProxy that was started.
    async fn end(&self) {
        if let Some(identity) = setpoint_instance::process::Identity::of(self.master().await) {
            let _ = identity.signal(rustix::process::Signal::TERM);
            wait::until("the end of HAProxy", LIMIT, async || (!identity.is_running()).then_some(())).await;
        }
    }

    /// The process id of the master. One that is just reloading resets connections.
    async fn master(&self) -> u32 {
        let master = setpoint_instance::cli::Socket::new(self.own("master.sock"));
        let pid = async || Some(setpoint_instance::reload::processes(&master).await.ok()?.master.pid);
        wait::until("the master to answer", LIMIT, pid).await
    }
}

impl Serving {
    async fn ask(&self, method: &str, path: &str, body: Option<&Json>) -> Option<(u16, Json)> {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let request = http::client().request(method, format!("{}/services/haproxy/{path}", self.url));
        let request = request.basic_auth("admin", Some(&self.password));
        let request = match body {
            Some(body) => request.header("content-type", "application/json").body(body.to_string()),
            None => request,
        };
        let response = request.send().await.ok()?;
        let status = response.status().as_u16();
        let text = response.text().await.ok()?;
        Some((status, serde_json::from_str(&text).unwrap_or(Json::Null)))
    }

    async fn version(&self) -> u64 {
        self.ask("GET", "configuration/version", None).await.unwrap().1.as_u64().unwrap()
    }

    async fn weigh(&self, version: u64, weight: u64) -> Option<(u16, Json)> {
        let server = json!({ "name": "s1", "address": "127.0.0.1", "port": 9, "weight": weight });
        self.ask("PUT", &format!("configuration/backends/web/servers/s1?version={version}"), Some(&server))
            .await
    }
}

#[tokio::test]
async fn one_command_serves_and_what_it_started_outlives_it() {
    let world = need!(World::new(Version::V3_4));
    let serving = world.serve();
    let master = world.master().await;
    assert_eq!(serving.weigh(1, 7).await.unwrap().0, 200);
    let (status, created) =
        serving.ask("POST", "configuration/backends?version=2", Some(&json!({ "name": "b" }))).await.unwrap();
    assert_eq!((status, created), (202, json!({ "name": "b" })));
    drop(serving);
    assert_eq!(http::get(&world.port.http()).await.as_deref(), Some("served"));
    let serving = world.serve();
    assert_eq!((serving.version().await, world.master().await), (3, master));
    let text = fs::read_to_string(world.file()).unwrap();
    assert!(text.contains("# mine\n") && text.contains("weight 7") && text.contains("backend b\n"), "{text}");
    drop(serving);
    world.end().await;
}

#[tokio::test]
async fn a_second_one_is_told_who_has_the_configuration() {
    let world = need!(World::new(Version::V3_4));
    let serving = world.serve();
    let second = Command::new(env!("CARGO_BIN_EXE_setpoint"))
        .args(["haproxy", "serve", "--listen", "127.0.0.1:0", "--haproxy"])
        .arg(&world.program)
        .arg("--config")
        .arg(world.file())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains(&format!("process {} (setpoint)", serving.child.id())), "{said}");
    drop(serving);
    world.end().await;
}

/// How often the command is killed: a sample, or as often as asked.
fn kills() -> u64 {
    std::env::var("SETPOINT_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(8)
}

#[tokio::test]
async fn killed_at_random_instants_the_old_or_the_new_configuration_is_there_and_haproxy_serves() {
    let seed = std::env::var("SETPOINT_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
    println!("SETPOINT_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let world = need!(World::new(Version::V3_4));
    let (mut version, mut weight) = (1, 1);
    for kill in 0..kills() {
        let mut serving = world.serve();
        let found = serving.version().await;
        assert!(found == version || found == version + 1, "kill {kill}: version {found} after {version}");
        version = found;
        let text = fs::read_to_string(world.file()).unwrap();
        assert!(text.contains("# mine\n"), "kill {kill}: {text}");
        let in_file = text.split_once("weight ").unwrap().1.lines().next().unwrap().parse::<u64>().unwrap();
        assert!(in_file == weight || in_file == weight + 1, "kill {kill}: weight {in_file} after {weight}");
        weight = in_file;
        let mut backends = text.matches("\nbackend b").count();
        assert_eq!(http::get(&world.port.http()).await.as_deref(), Some("served"), "kill {kill}");
        // Two changes, one told at runtime and one by a reload, and a kill somewhere in between.
        let after = Duration::from_micros(random.u64(0..60_000));
        let changes = async {
            loop {
                let next = serving.weigh(version, weight + 1).await;
                match next {
                    Some((200 | 202, _)) => (version, weight) = (version + 1, weight + 1),
                    Some(other) => panic!("kill {kill}: {other:?}"),
                    None => return,
                }
                let name = json!({ "name": format!("b{}", backends + 1) });
                let path = format!("configuration/backends?version={version}");
                match serving.ask("POST", &path, Some(&name)).await {
                    Some((202, _)) => (version, backends) = (version + 1, backends + 1),
                    Some(other) => panic!("kill {kill}: {other:?}"),
                    None => return,
                }
            }
        };
        tokio::select! {
            () = changes => {}
            () = tokio::time::sleep(after) => {}
        }
        serving.child.kill().unwrap();
        serving.child.wait().unwrap();
    }
    let serving = world.serve();
    assert!(serving.version().await >= version);
    let check = Command::new(&world.program).arg("-c").arg("-f").arg(world.file()).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
    drop(serving);
    world.end().await;
}
