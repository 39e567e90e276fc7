//! `setpoint haproxy serve` as a person runs it: one command, a HAProxy that outlives it, and kills at random instants.
#![cfg_attr(test, expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail the test"))]

mod alone;
mod contained;
mod local;
mod pages;
mod settings;
#[path = "../shared/pages.rs"]
mod shared;
mod sync;
mod watching;
mod ways;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use setpoint_testutils::{Missing, Port, Version, Workdir, http, need, wait};

use setpoint_testutils::wait::LIMIT;

/// A folder with a configuration, and what serves it.
struct World {
    folder: Workdir,
    port: Port,
    program: PathBuf,
}

/// One that serves. What it started outlives it.
struct Serving {
    child: Option<Child>,
    url: String,
    password: String,
    /// What it says.
    log: Arc<Mutex<Vec<String>>>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.kill();
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

    /// Starts the command as most do, and waits until it says where it serves.
    fn serve(&self) -> Serving {
        self.serve_with(|command| command.args(["--reload-delay", "0.02"]))
    }

    /// Starts the command with more arguments.
    fn serve_with(&self, more: impl FnOnce(&mut Command) -> &mut Command) -> Serving {
        self.serve_by(&mut Command::new(env!("CARGO_BIN_EXE_setpoint")), more)
    }

    /// Starts some program as the command, with more arguments.
    fn serve_by(&self, command: &mut Command, more: impl FnOnce(&mut Command) -> &mut Command) -> Serving {
        command.args(["haproxy", "serve", "--listen", "127.0.0.1:0", "--haproxy"]);
        command.arg(&self.program).arg("--config").arg(self.file());
        let mut serving = Serving::start(more(command));
        fs::read_to_string(self.own("password")).unwrap().trim().clone_into(&mut serving.password);
        serving
    }

    /// The weight of the first server in the running HAProxy.
    async fn weight(&self) -> Option<u64> {
        let worker = setpoint_instance::runtime::Worker::at(self.folder.path().join("run.sock"));
        let servers = worker.servers(Some("web")).await.ok()??;
        let s1 = servers.iter().find(|server| server.name == "s1" && server.forced_state().is_none())?;
        u64::try_from(s1.weight()).ok()
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
    /// Starts a command, and waits until it says where it serves.
    fn start(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
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
        let log = Arc::new(Mutex::new(said));
        let written = Arc::clone(&log);
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| written.lock().unwrap().push(line));
        });
        Self { child: Some(child), url, password: String::new(), log }
    }

    fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// Ends it as systemd does, and waits until it has ended by itself.
    fn terminate(mut self) -> Option<i32> {
        let mut child = self.child.take().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGTERM).unwrap();
        child.wait().unwrap().code()
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

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

/// Runs the command where it ends at once, and returns what it says.
fn refused(arguments: &[&std::ffi::OsStr]) -> String {
    let ran = Command::new(env!("CARGO_BIN_EXE_setpoint"))
        .args(["haproxy", "serve", "--listen", "127.0.0.1:0"])
        .args(arguments)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(1), "{said}");
    said
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
    // It outlives an end that was ordered as well.
    assert_eq!(serving.terminate(), Some(0));
    assert_eq!(http::get(&world.port.http()).await.as_deref(), Some("served"));
    assert_eq!(world.master().await, master);
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
    assert!(said.contains(&format!("process {} (setpoint)", serving.pid())), "{said}");
    drop(serving);
    world.end().await;
}

#[tokio::test]
async fn it_runs_on_as_many_threads_as_there_are_processors() {
    let world = need!(World::new(Version::V3_4));
    let serving = world.serve();
    // Nobody has asked for anything yet that is done aside.
    let threads = fs::read_dir(format!("/proc/{}/task", serving.pid())).unwrap().flatten();
    let names = threads.map(|thread| fs::read_to_string(thread.path().join("comm")).unwrap_or_default());
    let workers = names.filter(|name| name.trim() == "tokio-rt-worker").count();
    assert!(workers >= std::thread::available_parallelism().unwrap().get(), "{workers}");
    drop(serving);
    world.end().await;
}

/// A number that the environment gives.
fn given(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// How often the command is killed: a sample, or as often and for as long as asked, whichever ends first.
fn kills() -> impl Iterator<Item = u64> {
    let until = given("SETPOINT_SOAK_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let kills = 0..given("SETPOINT_KILLS").unwrap_or(8);
    kills.take_while(move |_| until.is_none_or(|until| Instant::now() < until))
}

#[tokio::test]
async fn killed_at_random_instants_the_old_or_the_new_configuration_is_there_and_haproxy_serves() {
    // The same instants in every run of all tests, and others in each soak.
    let other = given("SETPOINT_KILLS").map_or(1, |_| std::process::id());
    let seed = given("SETPOINT_SEED").unwrap_or_else(|| u64::from(other));
    println!("SETPOINT_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let world = need!(World::new(Version::V3_4));
    let (mut version, mut weight) = (1, 1);
    for kill in kills() {
        let mut serving = world.serve();
        let found = serving.version().await;
        assert!(found == version || found == version + 1, "kill {kill}: version {found} after {version}");
        version = found;
        let text = fs::read_to_string(world.file()).unwrap();
        assert!(text.contains("# mine\n"), "kill {kill}: {text}");
        let in_file = text.split_once("weight ").unwrap().1.lines().next().unwrap().parse::<u64>().unwrap();
        assert!(in_file == weight || in_file == weight + 1, "kill {kill}: weight {in_file} after {weight}");
        weight = in_file;
        // What HAProxy runs is what the file says, or becomes so.
        let runs = async || (world.weight().await? == weight).then_some(());
        wait::until("HAProxy to run what the file says", LIMIT, runs).await;
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
        serving.kill();
    }
    let serving = world.serve();
    assert!(serving.version().await >= version);
    let check = Command::new(&world.program).arg("-c").arg("-f").arg(world.file()).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));
    drop(serving);
    world.end().await;
}

#[tokio::test]
async fn names_of_reloads_are_not_given_twice_over_restarts() {
    let world = need!(World::new(Version::V3_4));
    let mut names: Vec<String> = Vec::new();
    for number in 1..4_u64 {
        let mut serving = world.serve_with(|command| command.args(["--reload-delay", "3600"]));
        let status = async |id: &str| {
            let (status, reload) = serving.ask("GET", &format!("reloads/{id}"), None).await.unwrap();
            (status, reload["status"].as_str().unwrap_or_default().to_owned())
        };
        // What waited when the one before was killed is made; until then, others share it.
        for before in &names {
            let ended = async || (status(before).await == (200, "succeeded".to_owned())).then_some(());
            wait::until("the earlier reload", LIMIT, ended).await;
        }
        let url = format!("{}/services/haproxy/configuration/backends?version={number}", serving.url);
        let answer = http::client()
            .post(url)
            .basic_auth("admin", Some(&serving.password))
            .header("content-type", "application/json")
            .body(json!({ "name": format!("b{number}") }).to_string())
            .send()
            .await
            .unwrap();
        let id = answer.headers()["reload-id"].to_str().unwrap().to_owned();
        assert!(!names.contains(&id), "{id} was given before: {names:?}");
        names.push(id);
        serving.kill();
    }
    world.end().await;
}

#[tokio::test]
async fn what_waits_for_a_reload_is_reloaded_before_the_end_and_systemd_is_told() {
    let world = need!(World::new(Version::V3_4));
    let notified = world.folder.path().join("notify");
    let socket = std::os::unix::net::UnixDatagram::bind(&notified).unwrap();
    let serving =
        world.serve_with(|command| command.args(["--reload-delay", "3600"]).env("NOTIFY_SOCKET", &notified));
    let mut buffer = [0; 500];
    let length = socket.recv(&mut buffer).unwrap();
    assert!(String::from_utf8_lossy(&buffer[..length]).starts_with("READY=1\nSTATUS=serving "));
    let new = json!({ "name": "b" });
    assert_eq!(serving.ask("POST", "configuration/backends?version=1", Some(&new)).await.unwrap().0, 202);
    let reloads = async || {
        let master = setpoint_instance::cli::Socket::new(world.own("master.sock"));
        setpoint_instance::reload::processes(&master).await.unwrap().master.reloads
    };
    assert_eq!(reloads().await, 0);
    let log = Arc::clone(&serving.log);
    assert_eq!(serving.terminate(), Some(0));
    let log = log.lock().unwrap().join("\n");
    let audit = log.lines().find(|line| line.contains("audit")).unwrap();
    for word in ["admin", "POST", "configuration/backends", "version=1", "202", "+ backend b"] {
        assert!(audit.contains(word), "{word} in {audit}");
    }
    assert!(log.contains("HAProxy has reloaded"), "{log}");
    let serving = world.serve();
    assert_eq!(serving.version().await, 2);
    drop(serving);
    world.end().await;
}

#[tokio::test]
async fn the_log_says_of_each_change_why_haproxy_reloads() {
    let world = need!(World::new(Version::V3_4));
    let serving = world.serve();
    let new = json!({ "name": "b" });
    let path = "configuration/backends?version=1&force_reload=true";
    assert_eq!(serving.ask("POST", path, Some(&new)).await.unwrap().0, 201);
    assert_eq!(serving.ask("POST", "reloads", None).await.unwrap().0, 202);
    let send = async |method: reqwest::Method, path: &str| {
        let form = reqwest::multipart::Form::new();
        let form = form.part("file_upload", reqwest::multipart::Part::text("x\n").file_name("x.txt"));
        let url = format!("{}/services/haproxy/storage/general{path}", serving.url);
        let request = http::client().request(method, url).basic_auth("admin", Some(&serving.password));
        request.multipart(form).send().await.unwrap().status().as_u16()
    };
    assert_eq!(send(reqwest::Method::POST, "").await, 201);
    assert_eq!(send(reqwest::Method::PUT, "/x.txt?force_reload=true").await, 204);
    assert_eq!(send(reqwest::Method::PUT, "/x.txt").await, 202);
    for (method, path, reason) in [
        ("POST", "configuration/backends", "force_reload"),
        ("POST", "haproxy/reloads", "it was asked for"),
        ("PUT", "general/x.txt", "force_reload"),
        ("PUT", "general/x.txt", "HAProxy can't be told what the file holds"),
    ] {
        let is_audited = async || {
            let log = serving.log.lock().unwrap();
            let words = ["audit", method, path, &format!("reason=\"{reason}\"")];
            log.iter().any(|line| words.iter().all(|word| line.contains(word))).then_some(())
        };
        wait::until(&format!("the audit of {method} {path}: {reason}"), LIMIT, is_audited).await;
    }
    drop(serving);
    world.end().await;
}

#[tokio::test]
async fn a_haproxy_that_somebody_else_runs_is_not_doubled() {
    let world = need!(World::new(Version::V3_4));
    let (program, file) = (world.program.as_os_str(), world.file());
    let own = ["--haproxy".as_ref(), program, "--config".as_ref(), file.as_os_str()];
    let with = |more: &[&str]| {
        refused(&own.into_iter().chain(more.iter().map(std::ffi::OsStr::new)).collect::<Vec<_>>())
    };
    let mut other = Command::new(&world.program).arg("-W").arg("-f").arg(&file).spawn().unwrap();
    wait::until("it to serve", LIMIT, async || http::get(&world.port.http()).await).await;
    let said = with(&[]);
    assert!(said.contains("runs with this configuration") && said.contains("--master-socket"), "{said}");
    assert!(said.contains("--reload-signal"), "{said}");
    other.kill().unwrap();
    other.wait().unwrap();
}

#[tokio::test]
async fn a_haproxy_whose_master_has_no_socket_is_reloaded_by_a_signal() {
    for version in [Version::V2_6, Version::V3_4] {
        let world = need!(World::new(version));
        let mut haproxy = Command::new(&world.program).arg("-W").arg("-f").arg(world.file()).spawn().unwrap();
        wait::until("it to serve", LIMIT, async || http::get(&world.port.http()).await).await;
        let serving = world.serve_with(|command| command.args(["--reload-signal", "--reload-delay", "0.02"]));
        let said = serving.log.lock().unwrap().join("\n");
        assert!(said.contains(&format!("HAProxy runs as process {}", haproxy.id())), "{said}");
        // A change that is told, and one that is loaded.
        assert_eq!(serving.weigh(1, 7).await.unwrap().0, 200, "{version:?}");
        let new = json!({ "name": "b", "from": "d", "balance": { "algorithm": "leastconn" } });
        let made =
            serving.ask("POST", "configuration/backends?version=2&force_reload=true", Some(&new)).await;
        assert_eq!(made.unwrap().0, 201, "{version:?}");
        let worker = setpoint_instance::runtime::Worker::at(world.folder.path().join("run.sock"));
        assert!(worker.servers(Some("b")).await.unwrap().is_some(), "{version:?}");
        assert_eq!(world.weight().await, Some(7), "{version:?}");
        // What HAProxy can't load is taken back: it has no right to that address.
        let path = "configuration/frontends/main/binds?version=3&force_reload=true";
        let bind = json!({ "name": "x", "address": "192.0.2.1", "port": 9 });
        let (status, answer) = serving.ask("POST", path, Some(&bind)).await.unwrap();
        assert_eq!(status, 400, "{version:?}: {answer}");
        assert!(!fs::read_to_string(world.file()).unwrap().contains("192.0.2.1"), "{version:?}");
        // It is somebody else's, and goes on.
        assert_eq!(serving.terminate(), Some(0), "{version:?}");
        assert_eq!(haproxy.try_wait().unwrap(), None, "{version:?}");
        assert_eq!(http::get(&world.port.http()).await.as_deref(), Some("served"), "{version:?}");
        haproxy.kill().unwrap();
        haproxy.wait().unwrap();
    }
}

#[tokio::test]
async fn a_haproxy_with_other_files_is_not_taken_for_ours_and_more_files_are_served() {
    let world = need!(World::new(Version::V3_4));
    let (folder, socket) = (world.folder.path().join("conf.d"), world.folder.path().join("m.sock"));
    fs::create_dir(&folder).unwrap();
    fs::rename(world.file(), folder.join("10.cfg")).unwrap();
    fs::write(folder.join("20.cfg"), "backend more\n  server m 127.0.0.1:9\n").unwrap();
    fs::write(world.file(), "global\n").unwrap();
    let mut haproxy = Command::new(&world.program);
    let haproxy = haproxy.arg("-W").arg("-S").arg(&socket).arg("-f").arg(&folder).spawn();
    let mut haproxy = haproxy.unwrap();
    wait::until("it to serve", LIMIT, async || http::get(&world.port.http()).await).await;
    let arguments = |config: &std::path::Path| {
        let words =
            ["--haproxy".as_ref(), world.program.as_os_str(), "--master-socket".as_ref(), socket.as_os_str()];
        let mut words: Vec<std::ffi::OsString> = words.into_iter().map(Into::into).collect();
        words.extend(["--config".into(), config.as_os_str().to_owned()]);
        words
    };
    let other = arguments(&world.file());
    let said = refused(&other.iter().map(AsRef::as_ref).collect::<Vec<_>>());
    assert!(said.contains("config: HAProxy runs with") && said.contains("20.cfg"), "{said}");
    // One of its files is enough to know the others, and so is the folder.
    for config in [folder.join("10.cfg"), folder.clone()] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_setpoint"));
        command.args(["haproxy", "serve", "--listen", "127.0.0.1:0"]).args(arguments(&config));
        let mut serving = Serving::start(&mut command);
        let password = folder.join(".10.cfg.setpoint/password");
        fs::read_to_string(password).unwrap().trim().clone_into(&mut serving.password);
        let (status, backends) = serving.ask("GET", "configuration/backends", None).await.unwrap();
        let names: Vec<&str> =
            backends.as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
        assert_eq!((status, names), (200, vec!["web", "more"]), "{}", config.display());
    }
    haproxy.kill().unwrap();
    haproxy.wait().unwrap();
}

/// A file at whose place another one is mounted.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[tokio::test]
async fn a_configuration_that_is_a_mount_is_changed_and_found_again_after_a_kill() {
    need!(setpoint_testutils::part::root("a mount"));
    let world = need!(World::new(Version::V3_4));
    let source = world.folder.path().join("source");
    fs::copy(world.file(), &source).unwrap();
    let mounted = Command::new("mount").arg("--bind").arg(&source).arg(world.file()).status().unwrap();
    assert!(mounted.success());
    let mounted = Mounted(world.file());
    let mut serving = world.serve();
    let said = serving.log.lock().unwrap().join("\n");
    assert!(said.contains("haproxy.cfg is a mount of its own: it is written in place"), "{said}");
    assert_eq!(serving.weigh(1, 7).await.unwrap().0, 200);
    let new = json!({ "name": "b" });
    assert_eq!(serving.ask("POST", "configuration/backends?version=2", Some(&new)).await.unwrap().0, 202);
    serving.kill();
    let serving = world.serve();
    assert_eq!(serving.version().await, 3);
    let text = fs::read_to_string(&source).unwrap();
    assert!(text.contains("weight 7") && text.contains("backend b\n"), "{text}");
    drop(serving);
    world.end().await;
    drop(mounted);
}

#[test]
fn the_demo_changes_servers_under_traffic_and_counts_one_reload() {
    for version in [Version::V2_6, Version::V3_4] {
        let program = need!(version.program());
        let demo = |arguments: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_setpoint"));
            let ran = command
                .args(["demo", "haproxy", "--haproxy"])
                .arg(&program)
                .args(arguments)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert!(ran.status.success(), "{version:?}: {said}");
            String::from_utf8(ran.stdout).unwrap()
        };
        let said = demo(&["--json"]);
        let lines: Vec<Json> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let statuses: Vec<u64> = lines[..6]
            .iter()
            .flat_map(|step| step["calls"].as_array().unwrap())
            .map(|call| call["status"].as_u64().unwrap())
            .collect();
        assert_eq!(statuses, [201, 200, 204, 201, 202, 202, 202, 400], "{version:?}: {said}");
        assert!(
            lines[3]["served"]["s2"].is_null() || lines[4]["served"]["s2"].is_null(),
            "{version:?}: {said}"
        );
        assert!(lines[5]["served"]["s3"].as_u64() > lines[5]["served"]["s1"].as_u64(), "{version:?}: {said}");
        assert_eq!(lines[6]["failed"], 0, "{version:?}: {said}");
        assert_eq!(lines[6]["reloads"], 1, "{version:?}: {said}");
    }
    let said = demo_text(&need!(Version::V3_4.program()));
    assert!(said.contains("== 5. Change what can't be told") && said.contains("X-Demo yes"), "{said}");
}

fn demo_text(program: &std::path::Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_setpoint"));
    let ran = command.args(["demo", "haproxy", "--haproxy"]).arg(program).output().unwrap();
    String::from_utf8(ran.stdout).unwrap()
}
