//! The original Dataplane API before a HAProxy of its own, where one is found.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use setpoint_testutils::part;

use super::{PATIENCE, Stage, setpoint, text};
use crate::haproxy::haproxy;

/// The password of its user `admin`.
const PASSWORD: &str = "bench";

/// The newest that is found: its version and its program.
pub(crate) fn newest() -> Option<(String, PathBuf)> {
    let found = part::versions("dataplaneapi").into_iter();
    let mut found: Vec<(String, PathBuf)> =
        found.filter_map(|part| Some((part.version?, part.path?))).collect();
    let number =
        |version: &str| version.split('.').map(|part| part.parse::<u32>().unwrap_or(0)).collect::<Vec<_>>();
    found.sort_by_key(|(version, _)| number(version));
    found.pop()
}

/// A HAProxy that is ended when this is dropped.
#[derive(Debug)]
pub(super) struct Haproxy(Child);

impl Drop for Haproxy {
    fn drop(&mut self) {
        let pid = i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw);
        let _ = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::TERM));
        let _ = self.0.wait();
    }
}

impl Stage {
    /// Starts the original on the same text.
    pub(crate) fn start_original(program: &Path, backends: u32) -> Result<Self> {
        let haproxy = haproxy().context("no HAProxy: run `cargo xtask parts`")?;
        let folder = tempfile::tempdir().context("can't make a temporary directory")?;
        let free =
            || Ok::<_, std::io::Error>(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port());
        let (port, own) = (free()?, free()?);
        let at = |name: &str| folder.path().join(name);
        let text = text(folder.path(), port, backends)?;
        fs::write(at("haproxy.cfg"), &text)?;
        let users = format!("userlist controller\n  user admin insecure-password {PASSWORD}\n");
        fs::write(at("users.cfg"), users)?;
        fs::write(at("password"), PASSWORD)?;
        for name in
            ["maps", "ssl", "general", "transactions", "backups", "spoe", "spoe-transactions", "storage"]
        {
            fs::create_dir(at(name))?;
        }
        let settings = json!({
            "config_version": 2,
            "name": "bench",
            "mode": "single",
            "dataplaneapi": {
                "host": "127.0.0.1",
                "port": own,
                "scheme": ["http"],
                "disable_inotify": true,
                "userlist": { "userlist": "controller", "userlist_file": at("users.cfg") },
                "transaction": { "transaction_dir": at("transactions"), "backups_dir": at("backups") },
                "resources": {
                    "maps_dir": at("maps"), "ssl_certs_dir": at("ssl"), "general_storage_dir": at("general"),
                    "spoe_dir": at("spoe"), "spoe_transaction_dir": at("spoe-transactions"),
                    "dataplane_storage_dir": at("storage"),
                },
            },
            "haproxy": {
                "config_file": at("haproxy.cfg"),
                "haproxy_bin": haproxy,
                "master_runtime": at("master.sock"),
                "master_worker_mode": true,
                "reload": { "reload_delay": 1, "reload_strategy": "custom", "reload_cmd": "true", "restart_cmd": "true" },
            },
        });
        fs::write(at("dataplaneapi.yaml"), serde_json::to_vec(&settings)?)?;
        let quietly = |command: &mut Command| {
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
        };
        let mut command = Command::new(&haproxy);
        command.args(["-W", "-S"]).arg(at("master.sock")).arg("-f").arg(at("haproxy.cfg"));
        let running = Haproxy(quietly(&mut command).context("can't run HAProxy")?);
        until("HAProxy answers", || at("run.sock").exists() && at("master.sock").exists())?;
        let mut command = Command::new(program);
        command.arg("-f").arg(at("dataplaneapi.yaml"));
        let child = quietly(&mut command).with_context(|| format!("can't run {}", program.display()))?;
        let stage = Self {
            text,
            child,
            address: format!("127.0.0.1:{own}"),
            password: PASSWORD.to_owned(),
            program: haproxy,
            setpoint: setpoint()?,
            master: at("master.sock"),
            original: Some(running),
            folder,
        };
        until("the original answers", || {
            let answer =
                stage.client().and_then(|mut client| client.ask("GET", "configuration/version", None));
            answer.is_ok_and(|(status, _)| status == 200)
        })?;
        // What is looked at when it starts is over.
        std::thread::sleep(Duration::from_secs(1));
        Ok(stage)
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        ensure!(Instant::now() < end, "it took longer than {} s until {what}", PATIENCE.as_secs());
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
