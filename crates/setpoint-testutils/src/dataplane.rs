//! The HAProxy Dataplane API, where this machine has it: it is in no registry, and never fetched or built.
//!
//! ```text
//! test ──HTTP, basic auth──▶ Dataplane API ──writes, checks──▶ haproxy.cfg
//!                                  └──────────reloads─────────▶ HAProxy (master socket; 2.6: SIGUSR2)
//! ```

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ::http::Method;
use serde_json::{Value, json};

use crate::haproxy::{Haproxy, Version};
use crate::http;
use crate::manifest::PartStatus;
use crate::part::{self, Missing};
use crate::ports::Port;
use crate::process::Process;
use crate::wait;
use crate::workdir::Workdir;

/// The one user that a started Dataplane API knows.
pub const USER: &str = "admin";
/// That user's password.
pub const PASSWORD: &str = "adminpwd";

/// The list that the user is in.
const USERLIST: &str = "controller";
/// Folders that the API keeps things in: the section of its configuration, the key, and the folder's name.
const FOLDERS: [(&str, &str, &str); 8] = [
    ("transaction", "transaction_dir", "transactions"),
    ("transaction", "backups_dir", "backups"),
    ("resources", "maps_dir", "maps"),
    ("resources", "ssl_certs_dir", "ssl"),
    ("resources", "general_storage_dir", "general"),
    ("resources", "dataplane_storage_dir", "dataplane"),
    ("resources", "spoe_dir", "spoe"),
    ("resources", "spoe_transaction_dir", "spoe-transactions"),
];

/// One Dataplane API that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataplaneProgram {
    /// The version it told.
    pub version: String,
    /// Where it is.
    pub path: PathBuf,
}

impl DataplaneProgram {
    /// The HAProxy that it is run with: of its own minor version, or of the nearest that knows what it writes.
    pub fn haproxy(&self) -> Version {
        let minor = self.version.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok());
        match minor {
            Some(0) => Version::V3_0,
            Some(1..=3) => Version::V3_2,
            _ => Version::V3_4,
        }
    }
}

/// All that were found, one for each minor version; a test runs on every one of them.
pub fn programs() -> Result<Vec<DataplaneProgram>, Missing> {
    let found = programs_of(part::versions("dataplaneapi"));
    if found.is_empty() { Err(part::missing("dataplaneapi")) } else { Ok(found) }
}

fn programs_of(parts: Vec<PartStatus>) -> Vec<DataplaneProgram> {
    parts
        .into_iter()
        .filter_map(|part| Some(DataplaneProgram { version: part.version?, path: part.path? }))
        .collect()
}

/// A running Dataplane API, and the HAProxy whose configuration it has in hand.
#[derive(Debug)]
pub struct Dataplane {
    program: DataplaneProgram,
    process: Process,
    folder: Workdir,
    port: Port,
    haproxy: Haproxy,
}

impl Dataplane {
    /// Starts a Dataplane API in front of the HAProxy that fits it, with one frontend, `main`, that answers by itself.
    pub async fn start(program: &DataplaneProgram) -> Result<Self, Missing> {
        Self::start_with(program, program.haproxy(), |port| {
            format!(
                "frontend main\n  bind {}\n  http-request return status 200 content-type text/plain string haproxy\n",
                port.address()
            )
        })
        .await
    }

    /// Starts a Dataplane API in front of a given HAProxy, with a configuration that is made for the port HAProxy may
    /// listen on.
    pub async fn start_with(
        program: &DataplaneProgram,
        version: Version,
        configuration: impl FnOnce(&Port) -> String,
    ) -> Result<Self, Missing> {
        Self::start_counted(program, version, configuration, None).await
    }

    /// The same, where the configuration has a version already, as the API counts it.
    pub async fn start_counted(
        program: &DataplaneProgram,
        version: Version,
        configuration: impl FnOnce(&Port) -> String,
        counted: Option<u64>,
    ) -> Result<Self, Missing> {
        let haproxy = Haproxy::start_with_one_file(version, configuration).await?;
        if let Some(counted) = counted {
            let file = haproxy.configuration_file();
            let text = std::fs::read_to_string(&file).expect("a file that was just written can be read");
            std::fs::write(&file, format!("# _version={counted}\n{text}")).expect("and written again");
        }
        let dataplane = Self::launched(program.clone(), haproxy, Workdir::new("dataplaneapi"));
        dataplane.ready(wait::LIMIT).await;
        Ok(dataplane)
    }

    /// The same in a folder that holds files already, such as maps, which the configuration may name.
    pub async fn start_in(
        folder: Workdir,
        program: &DataplaneProgram,
        version: Version,
        configuration: impl FnOnce(&Port) -> String,
    ) -> Result<Self, Missing> {
        let haproxy = Haproxy::start_with_one_file(version, configuration).await?;
        let dataplane = Self::launched(program.clone(), haproxy, folder);
        dataplane.ready(wait::LIMIT).await;
        Ok(dataplane)
    }

    /// Starts the process and does not wait.
    fn launched(program: DataplaneProgram, haproxy: Haproxy, folder: Workdir) -> Self {
        let port = Port::lease();
        prepare(&folder, &port, &haproxy);
        let process = launch(&program, &folder);
        Self { program, process, folder, port, haproxy }
    }

    /// The program and its version.
    pub fn program(&self) -> &DataplaneProgram {
        &self.program
    }

    /// The base URL of the API: `http://127.0.0.1:…/v3`.
    pub fn url(&self) -> String {
        format!("{}/v3", self.port.http())
    }

    /// The HAProxy that it is in front of.
    pub fn haproxy(&mut self) -> &mut Haproxy {
        &mut self.haproxy
    }

    /// Its process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// The folder of the HAProxy that it is in front of.
    pub fn haproxy_folder(&self) -> &Path {
        self.haproxy.folder()
    }

    /// The folder with its configuration, its storage and its log.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A request to a path below [`Dataplane::url`], with the user's name and password.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        http::client().request(method, format!("{}{path}", self.url())).basic_auth(USER, Some(PASSWORD))
    }

    /// What it tells of itself: `GET /v3/info`.
    pub async fn info(&self) -> Result<Value, reqwest::Error> {
        self.request(Method::GET, "/info").send().await?.error_for_status()?.json().await
    }

    /// Kills it with SIGKILL and starts it again on the same files and port; HAProxy goes on meanwhile.
    pub async fn restart(&mut self) {
        self.process.kill();
        self.process = launch(&self.program, &self.folder);
        self.ready(wait::LIMIT).await;
    }

    async fn ready(&self, limit: Duration) {
        self.process.until_within(limit, "it answers GET /v3/info", async || self.info().await.ok()).await;
    }
}

/// Writes what it reads at its start, and makes the folders it keeps things in.
fn prepare(folder: &Workdir, port: &Port, haproxy: &Haproxy) {
    for (_, _, name) in FOLDERS {
        std::fs::create_dir_all(folder.path().join(name))
            .expect("a folder in the temporary folder can be made");
    }
    folder.write("users.cfg", format!("userlist {USERLIST}\n  user {USER} insecure-password {PASSWORD}\n"));
    // A command of the API is split at blanks and run without a shell; a file has room for both. The master's number
    // is read when it is wanted, because HAProxy may have been restarted.
    let pid_file = haproxy.pid_file().display().to_string().replace('\'', r"'\''");
    folder.write("reload.sh", format!("kill -USR2 \"$(cat '{pid_file}')\"\n"));
    let text = serde_json::to_string_pretty(&configuration(folder.path(), port, haproxy));
    folder.write("dataplaneapi.yaml", text.expect("a value without odd keys can be written"));
}

/// Its configuration. It is written as JSON, which is YAML too and leaves no doubt about quotes.
fn configuration(folder: &Path, port: &Port, haproxy: &Haproxy) -> Value {
    let at = |name: &str| folder.join(name);
    let mut configuration = json!({
        "config_version": 2,
        "name": "setpoint",
        "mode": "single",
        "dataplaneapi": {
            "host": port.address().ip().to_string(),
            "port": port.number(),
            "scheme": ["http"],
            // A test that changes the file by itself wants to see what the API makes of that, not race with it.
            "disable_inotify": true,
            "userlist": { "userlist": USERLIST, "userlist_file": at("users.cfg") },
            "transaction": { "backups_number": 5 },
            "resources": {},
        },
        "haproxy": {
            "config_file": haproxy.configuration_file(),
            "haproxy_bin": haproxy.program(),
            "master_runtime": haproxy.master_socket(),
            "master_worker_mode": true,
            "reload": {
                "reload_delay": 1,
                // Both commands have to be there. From HAProxy 2.7 on the master socket is used instead.
                "reload_strategy": "custom",
                "reload_cmd": "/bin/sh reload.sh",
                "restart_cmd": "/bin/sh reload.sh",
            },
        },
        "log_targets": [{ "log_to": "stdout", "log_level": "info", "log_types": ["app", "access"] }],
    });
    for (section, key, name) in FOLDERS {
        configuration["dataplaneapi"][section][key] = json!(at(name));
    }
    configuration
}

fn launch(program: &DataplaneProgram, folder: &Workdir) -> Process {
    let mut command = Command::new(&program.path);
    // The commands that it is told to reload with are relative to its folder.
    command.arg("-f").arg(folder.path().join("dataplaneapi.yaml")).current_dir(folder.path());
    // In milliseconds: what its configuration says counts in seconds.
    command.env("CI_DATAPLANE_RELOAD_DELAY_OVERRIDE", "50");
    Process::start("dataplaneapi", &mut command, &folder.path().join("dataplaneapi.log"))
}

#[cfg(test)]
mod tests;
