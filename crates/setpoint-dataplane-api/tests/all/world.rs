//! A HAProxy on the configuration that the recordings begin with, and the API in front of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertificateParams, DnType, KeyPair, SerialNumber};
use setpoint_dataplane_api::{Address, Api, Dialect, Listener, Options, Storage, Users};
use setpoint_haproxy::model::Context;
use setpoint_haproxy::text::Document;
use setpoint_instance::instance::{Instance, Settings};
use setpoint_instance::process::{Launch, Launched};
use setpoint_testutils::guard::OwnedGroup;
use setpoint_testutils::{Missing, Port, Version, Workdir};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub(crate) use setpoint_testutils::wait::LIMIT as WITHIN;

/// A certificate and its key in one file, of a made-up owner.
pub(crate) fn certificate(letter: char) -> String {
    let host = format!("{letter}.example.test");
    let mut parameters = CertificateParams::new([host.clone(), format!("www.{host}")]).unwrap();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, host);
    parameters.distinguished_name.push(DnType::OrganizationName, "Made Up Ltd");
    let serial: u64 = if letter == 'a' { 0x0012_34AA } else { 0x0012_34BB };
    parameters.serial_number = Some(SerialNumber::from(serial));
    let key = KeyPair::generate().unwrap();
    format!("{}{}", parameters.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

/// Puts the files into a folder that the first text of the recordings names.
pub(crate) fn put_files(folder: &Path) {
    for name in ["maps", "ssl", "general"] {
        fs::create_dir(folder.join(name)).unwrap();
    }
    fs::write(folder.join("maps/routes.map"), "/one be\n/two other\n").unwrap();
    fs::write(folder.join("general/blocked.acl"), "192.0.2.1\n192.0.2.2\n").unwrap();
    fs::write(folder.join("ssl/site.pem"), certificate('a')).unwrap();
}

/// The HAProxy on which a dialect was recorded.
pub(crate) fn haproxy_of(dialect: Dialect) -> Version {
    match dialect.version().as_str() {
        "3.0" => Version::V3_0,
        "3.4" => Version::V3_4,
        _ => Version::V3_2,
    }
}

pub(crate) struct World {
    pub(crate) folder: Workdir,
    pub(crate) ports: Vec<Port>,
    pub(crate) haproxy: Option<Launched>,
    pub(crate) api: Arc<Api>,
    pub(crate) url: String,
    stop: Option<oneshot::Sender<()>>,
    tasks: Vec<JoinHandle<()>>,
    /// HAProxy ends whatever happens.
    _group: OwnedGroup,
}

/// What a world is made of.
pub(crate) struct Plan {
    pub(crate) dialect: Dialect,
    /// Whether HAProxy is asked before something is written.
    pub(crate) checks: bool,
    pub(crate) delay: Duration,
    pub(crate) options: Options,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            dialect: Dialect::default(),
            checks: true,
            delay: Duration::from_millis(10),
            options: Options::default(),
        }
    }
}

impl World {
    /// `text` is made for the folder and the ports.
    pub(crate) async fn start(
        plan: &Plan,
        text: impl FnOnce(&Path, &[Port]) -> String,
    ) -> Result<Self, Missing> {
        Self::start_in(plan, text, Workdir::new("dataplane")).await
    }

    /// The same in memory, where nothing waits for a disk.
    pub(crate) async fn start_in_memory(
        plan: &Plan,
        text: impl FnOnce(&Path, &[Port]) -> String,
    ) -> Result<Self, Missing> {
        Self::start_in(plan, text, Workdir::in_memory("dataplane")).await
    }

    async fn start_in(
        plan: &Plan,
        text: impl FnOnce(&Path, &[Port]) -> String,
        folder: Workdir,
    ) -> Result<Self, Missing> {
        let version = haproxy_of(plan.dialect);
        let program = version.program()?;
        let path = folder.path().to_owned();
        put_files(&path);
        let ports: Vec<Port> = (0..6).map(|_| Port::lease()).collect();
        let file = path.join("haproxy.cfg");
        fs::write(&file, text(&path, &ports)).unwrap();
        let launch = Launch {
            program: program.clone(),
            configuration: vec![file.clone()],
            working_directory: path.clone(),
            environment: Vec::new(),
            master_socket: path.join("master.sock"),
            log: path.join("haproxy.log"),
            within: WITHIN,
        };
        let haproxy = launch.start().await.unwrap();
        let group = OwnedGroup::new(haproxy.identity().pid());
        let api = Arc::new(open(plan, &program, &file, version));
        let address = Address::Tcp("127.0.0.1:0".parse().unwrap());
        let listener = Listener::bind(address).await.unwrap();
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
        Ok(Self { folder, ports, haproxy: Some(haproxy), api, url, stop: Some(stop), tasks, _group: group })
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("haproxy.cfg")
    }

    pub(crate) async fn settled(&self) {
        assert!(self.api.instance().settled(WITHIN).await);
    }

    pub(crate) async fn stop_haproxy(&mut self) {
        if let Some(haproxy) = self.haproxy.take() {
            haproxy.stop(Duration::ZERO).await.unwrap();
        }
    }

    pub(crate) async fn end(mut self) {
        let _ = self.stop.take().map(|stop| stop.send(()));
        self.tasks.iter().for_each(JoinHandle::abort);
        self.stop_haproxy().await;
    }
}

fn open(plan: &Plan, program: &Path, file: &Path, version: Version) -> Api {
    let model = version.part().trim_start_matches("haproxy-").parse().unwrap();
    let folder = file.parent().unwrap();
    let settings = Settings {
        master_socket: folder.join("master.sock"),
        reload_delay: plan.delay,
        reload_within: WITHIN,
        check_within: WITHIN,
        checks: plan.checks,
        context: Context::new(plan.dialect.version()).with_haproxy(model),
        ..Settings::new(program, file, model)
    };
    let instance = Instance::open(settings).unwrap();
    let users = Document::parse(b"userlist controller\n  user admin insecure-password adminpwd\n");
    let users = Users::of(&users, Some("controller")).unwrap();
    let storage = Storage::new(folder.join("maps"), folder.join("ssl"), folder.join("general"));
    Api::new(instance, plan.dialect, users, storage, plan.options)
}
