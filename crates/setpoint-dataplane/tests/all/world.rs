//! A HAProxy, and the API in front of it in one of its dialects.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use setpoint_dataplane::client::{Client, Settings as ClientSettings};
use setpoint_dataplane_api::{Address, Api, Dialect, Listener, Options, Storage, Users};
use setpoint_haproxy::model::Context;
use setpoint_haproxy::text::Document;
use setpoint_instance::instance::{Instance, Settings};
use setpoint_instance::process::{Launch, Launched};
use setpoint_testutils::wait::LIMIT;
use setpoint_testutils::{Missing, Port, Version, Workdir};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Who may ask.
pub(crate) const CREDENTIALS: (&str, &str) = ("admin", "adminpwd");

/// A HAProxy and its API.
pub(crate) struct World {
    pub(crate) folder: Workdir,
    pub(crate) port: Port,
    pub(crate) api: Arc<Api>,
    pub(crate) url: String,
    haproxy: Option<Launched>,
    stop: Option<oneshot::Sender<()>>,
    tasks: Vec<JoinHandle<()>>,
}

/// The HAProxy that is nearest to a dialect.
fn nearest(dialect: Dialect) -> Version {
    match dialect.version().as_str() {
        "3.0" => Version::V3_0,
        "3.4" => Version::V3_4,
        _ => Version::V3_2,
    }
}

impl World {
    /// Starts the HAProxy that is nearest to a dialect, with what is given below a `global` and a `defaults` section. `PORT` in it
    /// is a free port, `DIR` the folder.
    pub(crate) async fn start(dialect: Dialect, text: &str) -> Result<Self, Missing> {
        Self::start_on(nearest(dialect), dialect, text).await
    }

    /// The same on another HAProxy.
    pub(crate) async fn start_on(version: Version, dialect: Dialect, text: &str) -> Result<Self, Missing> {
        let program = version.program()?;
        let folder = Workdir::new("dataplane");
        let path = folder.path().to_owned();
        for name in ["maps", "ssl", "general"] {
            fs::create_dir(path.join(name)).unwrap();
        }
        let port = Port::lease();
        let file = path.join("haproxy.cfg");
        fs::write(&file, expanded(text, &port, &folder)).unwrap();
        let launch = Launch {
            program: program.clone(),
            configuration: vec![file.clone()],
            working_directory: path.clone(),
            environment: Vec::new(),
            master_socket: path.join("master.sock"),
            log: path.join("haproxy.log"),
            within: LIMIT,
        };
        let haproxy = launch.start().await.unwrap();
        let model = version.part().trim_start_matches("haproxy-").parse().unwrap();
        let settings = Settings {
            master_socket: path.join("master.sock"),
            reload_delay: Duration::from_millis(10),
            reload_within: LIMIT,
            check_within: LIMIT,
            context: Context::new(dialect.version()).with_haproxy(model),
            ..Settings::new(program, &file, model)
        };
        let instance = Instance::open(settings).unwrap();
        let users =
            format!("userlist controller\n  user {} insecure-password {}\n", CREDENTIALS.0, CREDENTIALS.1);
        let users = Users::of(&Document::parse(users.as_bytes()), Some("controller")).unwrap();
        let storage = Storage::new(path.join("maps"), path.join("ssl"), path.join("general"));
        let api = Arc::new(Api::new(instance, dialect, users, storage, Options::default()));
        let listener = Listener::bind(Address::Tcp("127.0.0.1:0".parse().unwrap())).await.unwrap();
        let url = listener.url().trim_end_matches("/v3").to_owned();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn({
            let api = Arc::clone(&api);
            async move {
                let stopped = async move {
                    let _ = stopped.await;
                };
                setpoint_dataplane_api::serve(vec![listener], api, stopped).await;
            }
        });
        let running = tokio::spawn({
            let instance = api.instance().clone();
            async move { instance.run().await }
        });
        let tasks = vec![serving, running];
        Ok(Self { folder, port, api, url, haproxy: Some(haproxy), stop: Some(stop), tasks })
    }

    /// A text with the port and the folder of this world, below what every text here begins with.
    pub(crate) fn text(&self, text: &str) -> String {
        expanded(text, &self.port, &self.folder)
    }

    /// A part of a text with the port and the folder of this world.
    pub(crate) fn expanded(&self, part: &str) -> String {
        let folder = self.folder.path().display().to_string();
        part.replace("PORT", &self.port.address().port().to_string()).replace("DIR", &folder)
    }

    /// What the configuration file holds.
    pub(crate) fn file(&self) -> String {
        fs::read_to_string(self.path("haproxy.cfg")).unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn settings(&self) -> ClientSettings {
        ClientSettings::new(&self.url).with_credentials(CREDENTIALS.0, CREDENTIALS.1)
    }

    pub(crate) async fn client(&self) -> Client {
        Client::connect(self.settings()).await.unwrap()
    }

    /// How often HAProxy has reloaded, as its master counts it.
    pub(crate) fn reloads(&self) -> u64 {
        let mut stream = UnixStream::connect(self.path("master.sock")).unwrap();
        stream.write_all(b"show proc\n").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let master = answer.lines().find(|line| line.split_whitespace().nth(1) == Some("master"));
        master.and_then(|line| line.split_whitespace().nth(2)?.parse().ok()).unwrap()
    }

    /// Waits until no reload is due.
    pub(crate) async fn settled(&self) {
        assert!(self.api.instance().settled(LIMIT).await);
    }

    pub(crate) async fn end(mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
        self.tasks.iter().for_each(JoinHandle::abort);
        if let Some(haproxy) = self.haproxy.take() {
            haproxy.stop(Duration::ZERO).await.unwrap();
        }
    }
}

fn expanded(text: &str, port: &Port, folder: &Workdir) -> String {
    let folder = folder.path().display().to_string();
    let text = text.replace("PORT", &port.address().port().to_string()).replace("DIR", &folder);
    format!(
        "global\n  stats socket {folder}/haproxy.sock level admin\n\ndefaults main\n  mode http\n  \
         timeout client 5s\n  timeout server 5s\n  timeout connect 1s\n\n{text}"
    )
}
