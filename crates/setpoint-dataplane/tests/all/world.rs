//! A HAProxy, and the API in front of it: ours in one of its dialects, or an original that was found.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, fs};

use setpoint_dataplane::client::{Client, Settings as ClientSettings};
use setpoint_dataplane::local::{Folders, LocalTarget};
use setpoint_dataplane::target::ApiTarget;
use setpoint_dataplane_api::{Address, Api, Dialect, Listener, Options, Storage, Users};
use setpoint_haproxy::model::Context;
use setpoint_haproxy::text::Document;
use setpoint_instance::instance::{Instance, OpenError, Settings};
use setpoint_instance::process::{Launch, Launched};
use setpoint_instance::storage::Folder;
use setpoint_testutils::disk::{self, SmallDisk};
use setpoint_testutils::guard::OwnedGroup;
use setpoint_testutils::wait::{self, LIMIT};
use setpoint_testutils::{Dataplane, DataplaneProgram, Missing, Port, Version, Workdir, dataplane, part};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::any::Any;

/// Who may ask.
pub(crate) const CREDENTIALS: (&str, &str) = ("admin", "adminpwd");

/// Where something is tried.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// A HAProxy behind our own API in a dialect.
    Own(Version, Dialect),
    /// A HAProxy of this machine, without any API.
    Local(Version),
    /// An original, with the HAProxy that fits it.
    Original(DataplaneProgram),
}

impl Place {
    /// The HAProxy that is nearest to a dialect, behind our own API.
    pub(crate) fn nearest(dialect: Dialect) -> Self {
        Self::Own(nearest(dialect), dialect)
    }

    /// Each original that was found, if one was.
    pub(crate) fn each_original() -> Result<Vec<Self>, Missing> {
        Ok(dataplane::programs()?.into_iter().map(Self::Original).collect())
    }

    /// Each original that was found.
    pub(crate) fn originals() -> Vec<Self> {
        Self::each_original().unwrap_or_default()
    }

    /// Each HAProxy behind our own API in its nearest dialect, 3.4 in each dialect, and each original that was found.
    pub(crate) fn all() -> Vec<Self> {
        let old = [(Version::V2_6, 0), (Version::V3_0, 0), (Version::V3_2, 2)];
        let old = old.map(|(version, dialect)| Self::Own(version, Dialect::ALL[dialect]));
        let new = Dialect::ALL.map(|dialect| Self::Own(Version::V3_4, dialect));
        let local = Version::ALL.map(Self::Local);
        old.into_iter().chain(new).chain(local).chain(Self::originals()).collect()
    }

    /// The HAProxy.
    pub(crate) fn haproxy(&self) -> Version {
        match self {
            Self::Own(haproxy, _) | Self::Local(haproxy) => *haproxy,
            Self::Original(program) => program.haproxy(),
        }
    }

    pub(crate) fn is_original(&self) -> bool {
        matches!(self, Self::Original(_))
    }

    pub(crate) fn has_api(&self) -> bool {
        !matches!(self, Self::Local(_))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(haproxy, dialect) => write!(f, "{}, API {}", haproxy.part(), dialect.version()),
            Self::Local(haproxy) => write!(f, "{}, no API", haproxy.part()),
            Self::Original(program) => write!(f, "the original {}", program.version),
        }
    }
}

/// A HAProxy and its API.
pub(crate) struct World {
    /// The folder that `DIR` stands for: the API keeps files below it.
    root: PathBuf,
    /// What every text here begins with.
    head: String,
    /// Where its frontend listens.
    pub(crate) address: SocketAddr,
    pub(crate) url: String,
    running: Running,
}

/// What runs for it.
enum Running {
    Own(Box<Own>),
    Original(Box<Dataplane>),
}

struct Own {
    disk: Option<SmallDisk>,
    folder: Workdir,
    _port: Port,
    settings: Settings,
    /// None where there is no API.
    dialect: Option<Dialect>,
    serving: Option<Serving>,
    haproxy: Option<Launched>,
    /// It ends whatever happens.
    _group: OwnedGroup,
}

/// An instance, with our own API in front of it or none, and what they do by themselves.
struct Serving {
    instance: Instance,
    api: Option<Arc<Api>>,
    url: String,
    stop: oneshot::Sender<()>,
    server: JoinHandle<()>,
    running: JoinHandle<()>,
}

impl Serving {
    async fn start(
        settings: Settings,
        dialect: Option<Dialect>,
        address: Address,
    ) -> Result<Self, OpenError> {
        let path = settings.working_directory.clone();
        let instance = Instance::open(settings)?;
        let running = tokio::spawn({
            let instance = instance.clone();
            async move { instance.run().await }
        });
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async move {
            let _ = stopped.await;
        };
        let Some(dialect) = dialect else {
            let server = tokio::spawn(stopped);
            return Ok(Self { instance, api: None, url: String::new(), stop, server, running });
        };
        let users =
            format!("userlist controller\n  user {} insecure-password {}\n", CREDENTIALS.0, CREDENTIALS.1);
        let users = Users::of(&Document::parse(users.as_bytes()), Some("controller")).unwrap();
        let storage = Storage::new(path.join("maps"), path.join("ssl"), path.join("general"));
        let api = Arc::new(Api::new(instance.clone(), dialect, users, storage, Options::default()));
        let listener = Listener::bind(address).await.unwrap();
        let url = listener.url().trim_end_matches("/v3").to_owned();
        let server = tokio::spawn(setpoint_dataplane_api::serve(vec![listener], Arc::clone(&api), stopped));
        Ok(Self { instance, api: Some(api), url, stop, server, running })
    }

    /// Ends it at once, or lets it end its connections first, so that nobody holds the configuration any more. What it had not committed
    /// is gone.
    async fn end(self, lets_it_end: bool) {
        drop((self.api, self.instance));
        let _ = self.stop.send(());
        if lets_it_end {
            self.server.await.unwrap();
        } else {
            self.server.abort();
        }
        self.running.abort();
        let _ = self.running.await;
    }
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
        Self::start_at(&Place::nearest(dialect), text, None).await
    }

    /// The same in some place, where the configuration has a version already or none.
    pub(crate) async fn start_at(place: &Place, text: &str, version: Option<u64>) -> Result<Self, Missing> {
        match place {
            Place::Own(haproxy, dialect) => Self::own(*haproxy, Some(*dialect), text, version, None).await,
            Place::Local(haproxy) => Self::own(*haproxy, None, text, version, None).await,
            Place::Original(program) => Self::original(program, text, version).await,
        }
    }

    /// The HAProxy that is nearest to a dialect, with all its files on a disk that has so much room.
    pub(crate) async fn start_on_small_disk(
        dialect: Dialect,
        text: &str,
        size: &str,
    ) -> Result<Self, Missing> {
        part::root("a file system of a given size")?;
        Self::own(nearest(dialect), Some(dialect), text, Some(7), Some(size)).await
    }

    /// Fills the small disk, or makes room again.
    pub(crate) fn fill_disk(&self, full: bool) {
        let filler = self.path("filler");
        if !full {
            return fs::remove_file(filler).unwrap();
        }
        disk::fill(&filler);
    }

    /// A text that an original begins with may not name `DIR`.
    async fn original(program: &DataplaneProgram, text: &str, version: Option<u64>) -> Result<Self, Missing> {
        let configuration = |port: &Port| with_port(text, port.address());
        let mut api = Dataplane::start_counted(program, program.haproxy(), configuration, version).await?;
        let (root, url) = (api.folder().to_owned(), api.url().trim_end_matches("/v3").to_owned());
        let (address, file) = (api.haproxy().address(), api.haproxy().configuration_file());
        let written = fs::read_to_string(file).unwrap();
        let written = version.map_or(written.as_str(), |_| written.split_once('\n').unwrap().1);
        let head = written.replace(&with_port(text, address), "");
        Ok(Self { root, head, address, url, running: Running::Original(Box::new(api)) })
    }

    async fn own(
        version: Version,
        dialect: Option<Dialect>,
        text: &str,
        counted: Option<u64>,
        room: Option<&str>,
    ) -> Result<Self, Missing> {
        let first = counted.map_or_else(String::new, |counted| format!("# _version={counted}\n"));
        let program = version.program()?;
        let folder = Workdir::new("dataplane");
        let path = folder.path().to_owned();
        let disk = room.map(|room| SmallDisk::mount(&path, room));
        for name in ["maps", "ssl", "general"] {
            fs::create_dir(path.join(name)).unwrap();
        }
        let port = Port::lease();
        let file = path.join("haproxy.cfg");
        let head = format!(
            "global\n  stats socket {}/haproxy.sock level admin\n\ndefaults main\n  mode http\n  \
             timeout client 5s\n  timeout server 5s\n  timeout connect 1s\n\n",
            path.display()
        );
        let rest = with_port(text, port.address()).replace("DIR", &path.display().to_string());
        fs::write(&file, format!("{first}{head}{rest}")).unwrap();
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
        let group = OwnedGroup::new(haproxy.identity().pid());
        let model = version.part().trim_start_matches("haproxy-").parse().unwrap();
        let settings = Settings {
            master_socket: path.join("master.sock"),
            reload_delay: Duration::from_millis(10),
            reload_within: LIMIT,
            check_within: LIMIT,
            context: Context::new(dialect.unwrap_or_default().version()).with_haproxy(model),
            ..Settings::new(program, &file, model)
        };
        let address = Address::Tcp("127.0.0.1:0".parse().unwrap());
        let serving = Serving::start(settings.clone(), dialect, address).await.unwrap();
        let url = serving.url.clone();
        let address = port.address();
        let serving = Some(serving);
        let own = Own {
            disk,
            folder,
            _port: port,
            settings,
            dialect,
            serving,
            haproxy: Some(haproxy),
            _group: group,
        };
        Ok(Self { root: path, head, address, url, running: Running::Own(Box::new(own)) })
    }

    /// A text with the port and the folder of this world, below what every text here begins with.
    pub(crate) fn text(&self, text: &str) -> String {
        format!("{}{}", self.head, self.expanded(text))
    }

    /// A part of a text with the port and the folder of this world.
    pub(crate) fn expanded(&self, part: &str) -> String {
        with_port(part, self.address).replace("DIR", &self.root.display().to_string())
    }

    /// What the configuration file holds.
    pub(crate) fn file(&self) -> String {
        fs::read_to_string(self.path("haproxy.cfg")).unwrap()
    }

    /// The folder that `DIR` stands for.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        match &self.running {
            Running::Original(api) if ["haproxy.cfg", "master.sock"].contains(&name) => {
                api.haproxy_folder().join(name)
            }
            Running::Original(api) if name == "haproxy.sock" => api.haproxy_folder().join("runtime.sock"),
            _ => self.root.join(name),
        }
    }

    /// Our own API, to be served elsewhere too.
    pub(crate) fn api(&self) -> Arc<Api> {
        match &self.running {
            Running::Own(own) => Arc::clone(own.serving.as_ref().unwrap().api.as_ref().unwrap()),
            Running::Original(_) => panic!("it is an original"),
        }
    }

    pub(crate) fn settings(&self) -> ClientSettings {
        ClientSettings::new(&self.url).with_credentials(CREDENTIALS.0, CREDENTIALS.1)
    }

    /// What is to be brought somewhere: the API, or the instance where there is none.
    pub(crate) async fn target(&self) -> Any {
        let local = match &self.running {
            Running::Own(own) if own.dialect.is_none() => own.instance().clone(),
            _ => return Any::Api(ApiTarget::new(self.client().await).await.unwrap()),
        };
        let folder = |name: &str| Folder::new(self.path(name));
        let folders = Folders {
            maps: folder("maps").ending("map"),
            certificates: folder("ssl"),
            general: folder("general"),
        };
        Any::Local(LocalTarget::new(local, "this machine", folders))
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

    /// How many transactions are open.
    pub(crate) async fn open_transactions(&self) -> usize {
        match &self.running {
            Running::Own(own) => own.instance().open_transactions(),
            Running::Original(api) => {
                let path = "/services/haproxy/transactions?status=in_progress";
                let listed = api.request(reqwest::Method::GET, path).send().await.unwrap();
                listed.json::<Vec<serde_json::Value>>().await.unwrap().len()
            }
        }
    }

    /// Waits until no reload is due.
    pub(crate) async fn settled(&self) {
        match &self.running {
            Running::Own(own) => assert!(own.instance().settled(LIMIT).await),
            Running::Original(_) => {
                let client = self.client().await;
                let settled = async || client.pending_reload().await.unwrap().is_none().then_some(());
                wait::until("no reload is due", LIMIT, settled).await;
            }
        }
    }

    /// Ends the API and starts it again, at the same address; HAProxy goes on.
    pub(crate) async fn restart_api(&mut self) {
        match &mut self.running {
            Running::Original(api) => api.restart().await,
            Running::Own(own) => {
                own.serving.take().unwrap().end(true).await;
                let address: SocketAddr = self.url.trim_start_matches("http://").parse().unwrap();
                let serving = wait::until("nobody has the configuration in hand", LIMIT, async || {
                    Serving::start(own.settings.clone(), own.dialect, Address::Tcp(address)).await.ok()
                });
                own.serving = Some(serving.await);
            }
        }
    }

    pub(crate) async fn end(self) {
        let Running::Own(mut own) = self.running else { return };
        if let Some(serving) = own.serving.take() {
            serving.end(false).await;
        }
        if let Some(haproxy) = own.haproxy.take() {
            haproxy.stop(Duration::ZERO).await.unwrap();
        }
        drop(own.disk);
        drop(own.folder);
    }
}

impl Own {
    fn instance(&self) -> &Instance {
        &self.serving.as_ref().unwrap().instance
    }
}

fn with_port(text: &str, address: SocketAddr) -> String {
    text.replace("PORT", &address.port().to_string())
}
