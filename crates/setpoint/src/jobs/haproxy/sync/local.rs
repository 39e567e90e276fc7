//! The HAProxy of this machine, without any API: `--local`.
//!
//! ```text
//! serve has it in hand ───▶ its socket in the folder of the instance
//! nobody has ─────────────▶ the instance is opened here
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use setpoint_dataplane::client::{Client, Settings as ClientSettings};
use setpoint_dataplane::local::{Folders, LocalTarget};
use setpoint_dataplane::target::ApiTarget;
use setpoint_haproxy::model::Version;
use setpoint_instance::instance::Instance;
use setpoint_instance::storage::Folder;
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::targets::{reported, unanswered};
use crate::error::CliError;
use crate::jobs::haproxy::error::Error;
use crate::jobs::haproxy::serve::{self, OWNER_SOCKET, Settings};
use crate::report::Report;

/// The configuration of a HAProxy that was installed and nothing else.
const CONFIGURATION: &str = "/etc/haproxy/haproxy.cfg";

/// Which HAProxy of this machine.
#[derive(Debug, Default, Args)]
pub(crate) struct LocalArgs {
    /// The HAProxy of this machine, without any Dataplane API. It is started if it does not run, and goes on afterwards. Where
    /// `setpoint haproxy serve` has it in hand, it is reached through that.
    #[arg(long, conflicts_with = "urls")]
    pub(super) local: bool,
    /// A file with settings as `setpoint haproxy serve` takes it.
    #[arg(long, value_name = "FILE", requires = "local", conflicts_with = "urls")]
    settings: Option<PathBuf>,
    /// The program of HAProxy [default: /usr/sbin/haproxy].
    #[arg(long, value_name = "PROGRAM", requires = "local", conflicts_with = "urls")]
    haproxy: Option<PathBuf>,
    /// A file of the configuration that HAProxy runs with; may be given several times [default: /etc/haproxy/haproxy.cfg].
    #[arg(long, value_name = "FILE", requires = "local", conflicts_with = "urls")]
    config: Vec<PathBuf>,
    /// The socket of the master of a HAProxy that runs already.
    #[arg(long, value_name = "SOCKET", requires = "local", conflicts_with = "urls")]
    master_socket: Option<PathBuf>,
    /// A command that reloads HAProxy, in the place of its master's socket.
    #[arg(long, value_name = "COMMAND", requires = "local", conflicts_with = "urls")]
    reload_command: Option<String>,
    /// Reloads HAProxy by SIGUSR2, in the place of its master's socket.
    #[arg(long, requires = "local", conflicts_with_all = ["urls", "reload_command"])]
    reload_signal: bool,
}

impl LocalArgs {
    fn resolve(&self, report: Report) -> Result<Settings, Error> {
        let given = Settings {
            haproxy: self.haproxy.clone(),
            config: self.config.clone(),
            master_socket: self.master_socket.clone(),
            reload_command: self.reload_command.clone(),
            reload_signal: self.reload_signal,
            // Nobody else will commit anything that could share the reload.
            reload_delay: Some(0.0),
            ..Settings::default()
        };
        let mut settings = given.or_of(self.settings.as_deref(), report)?;
        if settings.config.is_empty() {
            settings.config.push(CONFIGURATION.into());
        }
        Ok(settings)
    }
}

/// What is done with it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose<'a> {
    /// It is only looked at.
    Look,
    /// It is changed; where there is no configuration yet, this is the first.
    Change(&'a [u8]),
}

/// The HAProxy of this machine, as something that a sync works on.
pub(super) struct Local {
    /// The first file of its configuration, as it is called.
    pub(super) name: String,
    pub(super) hand: Hand,
    /// What does what is due; only where this process has it in hand, and something may be changed.
    kept: Option<Kept>,
}

/// Who has it in hand.
pub(super) enum Hand {
    /// `setpoint haproxy serve`, which is asked.
    Theirs(ApiTarget),
    /// This process.
    Own(LocalTarget),
}

struct Kept {
    ended: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Local {
    pub(super) async fn open(
        args: &LocalArgs,
        purpose: Purpose<'_>,
        report: Report,
    ) -> Result<Self, CliError> {
        let given = args.resolve(report)?;
        let begun = match purpose {
            Purpose::Change(text) => Begun::where_there_is_none(&given, text)?,
            Purpose::Look => None,
        };
        let settings = serve::instance_settings(&given, Version::LATEST)?;
        let (haproxy, first) =
            (settings.context.haproxy, settings.files.first().cloned().unwrap_or_default());
        let name = first.display().to_string();
        let theirs = settings.folder.join(OWNER_SOCKET);
        if UnixStream::connect(&theirs).await.is_ok() {
            report.detail(|| format!("{name}: `setpoint haproxy serve` has it in hand, and is asked"));
            let target = connect(&theirs, &name, haproxy).await?;
            return Ok(Self { name, hand: Hand::Theirs(target), kept: None });
        }
        let (settings, found) = serve::adopt(&given, settings, report).await?;
        let instance = Instance::open(settings).map_err(Error::from)?;
        let kept = match purpose {
            Purpose::Change(_) => {
                serve::can_ask(&instance)?;
                serve::start_if_needed(&instance, found, report).await?;
                let ended = Arc::new(Notify::new());
                let until = Arc::clone(&ended).notified_owned();
                let running = instance.clone();
                let task = tokio::spawn(async move { running.run_until(until).await });
                Some(Kept { ended, task })
            }
            Purpose::Look => None,
        };
        if let Some(begun) = begun {
            begun.stays();
        }
        let [maps, certificates, general] = given.folders(first.parent().unwrap_or(Path::new("/")))?;
        let folders = Folders {
            maps: Folder::new(maps).ending("map"),
            certificates: Folder::new(certificates),
            general: Folder::new(general),
        };
        let hand = Hand::Own(LocalTarget::new(instance, name.clone(), folders));
        Ok(Self { name, hand, kept })
    }

    /// Completes what still waits. Returns the version of the configuration that stands then, where that is known.
    pub(super) async fn close(self) -> Option<u64> {
        let Hand::Own(target) = self.hand else { return None };
        if let Some(Kept { ended, task }) = self.kept {
            // It ends by itself, or has panicked.
            ended.notify_one();
            let _ = task.await;
            target.instance().finish().await;
        }
        Some(target.instance().version())
    }
}

async fn connect(socket: &Path, name: &str, haproxy: Version) -> Result<ApiTarget, CliError> {
    let settings = ClientSettings {
        socket: Some(socket.to_owned()),
        name: Some(name.to_owned()),
        ..ClientSettings::new("http://localhost")
    };
    let client =
        Client::connect(settings).await.map_err(|error| reported(name, &unanswered(Box::new(error))))?;
    Ok(ApiTarget::with_haproxy(client, haproxy))
}

/// The first configuration of a HAProxy that had none: removed again unless HAProxy runs with it.
struct Begun {
    file: PathBuf,
    stays: bool,
}

impl Begun {
    /// Writes the first configuration, if there is none.
    fn where_there_is_none(given: &Settings, text: &[u8]) -> Result<Option<Self>, Error> {
        let [file] = given.config.as_slice() else { return Ok(None) };
        if file.exists() {
            return Ok(None);
        }
        setpoint_files::replace(file, text).map_err(Error::Write)?;
        Ok(Some(Self { file: file.clone(), stays: false }))
    }

    fn stays(mut self) {
        self.stays = true;
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if !self.stays {
            // It was not there before, and is refused: whoever looks finds it as it was.
            let _ = std::fs::remove_file(&self.file);
        }
    }
}
