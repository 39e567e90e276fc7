//! `setpoint haproxy serve`: the Dataplane API of a HAProxy on this machine.

use std::fs;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use setpoint_dataplane_api::{Api, Dialect, Options, Storage, Users};
use setpoint_haproxy::model::{Context, Version};
use setpoint_haproxy::text::Document;
use setpoint_instance::cli::Socket;
use setpoint_instance::instance::{Instance, Settings};
use setpoint_instance::process::{CommandLine, Identity, Launch};
use setpoint_instance::reload::{Method, processes};
use tokio::net::TcpListener;

use super::error::Error;
use crate::error::CliError;
use crate::report::{LogFormat, Report};
use crate::service::{Signals, runtime};

/// How long HAProxy may take to start.
const START_WITHIN: Duration = Duration::from_mins(1);

/// Arguments of `setpoint haproxy serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The program of HAProxy.
    #[arg(long, value_name = "PROGRAM", default_value = "/usr/sbin/haproxy")]
    haproxy: PathBuf,
    /// A file of the configuration; may be given several times, in the order in which HAProxy reads them.
    #[arg(long, value_name = "FILE", required = true)]
    config: Vec<PathBuf>,
    /// Where the API is served.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5555")]
    listen: SocketAddr,
    /// The version of the Dataplane API that is spoken.
    #[arg(long, value_name = "VERSION", default_value = Version::LATEST.as_str(), value_parser = super::parse_version)]
    dialect: Version,
    /// The socket of the master of a HAProxy that runs already. Without it, one is started that goes on when this ends.
    #[arg(long, value_name = "SOCKET")]
    master_socket: Option<PathBuf>,
    /// A command that reloads HAProxy, in the place of its master's socket; words are separated by blanks.
    #[arg(long, value_name = "COMMAND")]
    reload_command: Option<String>,
    /// How long a reload waits for further commits, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    reload_delay: Duration,
    /// The userlist whose users may use the API; of `--users`, or of the configuration.
    #[arg(long, value_name = "NAME")]
    userlist: Option<String>,
    /// A file with userlists. Without it and without `--userlist`, a password is made and kept beside the configuration.
    #[arg(long, value_name = "FILE")]
    users: Option<PathBuf>,
    /// The folder of maps [default: `maps` beside the configuration].
    #[arg(long, value_name = "DIR")]
    maps: Option<PathBuf>,
    /// The folder of certificates and their lists [default: `ssl` beside the configuration].
    #[arg(long, value_name = "DIR")]
    certificates: Option<PathBuf>,
    /// The folder of all other files [default: `general` beside the configuration].
    #[arg(long, value_name = "DIR")]
    general: Option<PathBuf>,
    /// Refuses properties that nobody knows; without it they are ignored, with a warning.
    #[arg(long)]
    strict: bool,
    /// Changes nothing.
    #[arg(long)]
    read_only: bool,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.parse().map_err(|_| "write a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(number).map_err(|error| error.to_string())
}

pub(crate) fn run(args: &ServeArgs, report: Report) -> Result<u8, CliError> {
    log_to_stderr(report);
    runtime()?.block_on(serve(args, report))
}

async fn serve(args: &ServeArgs, report: Report) -> Result<u8, CliError> {
    let dialect = Dialect::new(args.dialect).map_err(Error::from)?;
    let version = version_of(&args.haproxy)?;
    let files: Vec<PathBuf> =
        args.config.iter().map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone())).collect();
    let first = files.first().cloned().unwrap_or_default();
    let beside = first.parent().unwrap_or(Path::new("/")).to_owned();
    let mut settings = Settings {
        files: files.clone(),
        reload_delay: args.reload_delay,
        context: Context::new(args.dialect).with_haproxy(version),
        ..Settings::new(&args.haproxy, &first, version)
    };
    if let Some(command) = &args.reload_command {
        settings.reload = Method::Command(command.split_ascii_whitespace().map(Into::into).collect());
    }
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&settings.folder);
    made.map_err(|source| Error::Write { path: settings.folder.clone(), source })?;
    if let Some(socket) = &args.master_socket {
        settings.master_socket = std::path::absolute(socket).unwrap_or_else(|_| socket.clone());
    }
    adopt_or_start(args, &mut settings, report).await?;
    let users = users(args, &files, &settings.folder, report)?;
    let folder = |given: &Option<PathBuf>, name: &str| given.clone().unwrap_or_else(|| beside.join(name));
    let storage = Storage::new(
        folder(&args.maps, "maps"),
        folder(&args.certificates, "ssl"),
        folder(&args.general, "general"),
    );
    let options = Options { strict: args.strict, read_only: args.read_only };
    let instance = Instance::open(settings).map_err(Error::from)?;
    for file in instance.in_place() {
        report.warn(&format!(
            "{} is a mount of its own: it is written in place, from a journal",
            file.display()
        ));
    }
    let failed = |source| Error::Serve { address: args.listen, source };
    let listener = TcpListener::bind(args.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    report.info(&format!(
        "the Dataplane API {} of {} is served on http://{address}/v3",
        args.dialect,
        first.display()
    ));
    let api = Arc::new(Api::new(instance.clone(), dialect, users, storage, options));
    let mut signals = Signals::new()?;
    let stop = async move { signals.next().await };
    tokio::select! {
        served = setpoint_dataplane_api::serve(listener, api, stop) => served.map_err(failed)?,
        () = instance.run() => {}
    }
    Ok(0)
}

/// Finds out which version a program of HAProxy is.
fn version_of(program: &Path) -> Result<Version, Error> {
    let failed = |why: String| Error::Version { program: program.to_owned(), why };
    let output =
        std::process::Command::new(program).arg("-v").output().map_err(|error| failed(error.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let word = text.split_ascii_whitespace().skip_while(|word| *word != "version").nth(1);
    let word = word.ok_or_else(|| failed(format!("it printed {text:?}")))?;
    word.parse().map_err(|error: setpoint_haproxy::model::UnknownVersion| failed(error.to_string()))
}

/// Uses the HAProxy that runs, or starts one.
async fn adopt_or_start(args: &ServeArgs, settings: &mut Settings, report: Report) -> Result<(), CliError> {
    let master = Socket::new(&settings.master_socket);
    match processes(&master).await {
        Ok(found) => {
            report.info(&format!("HAProxy runs as process {} and is used as it is", found.master.pid));
            let line = Identity::of(found.master.pid).and_then(Identity::command_line);
            if let Some(CommandLine { working_directory, environment, .. }) = line {
                settings.working_directory = working_directory;
                settings.environment = Some(environment);
            }
        }
        Err(_) if args.master_socket.is_some() => {
            report.warn(&format!(
                "no HAProxy answers on {}: changes are written, and take effect when it does",
                settings.master_socket.display()
            ));
        }
        Err(_) => {
            let launch = Launch {
                program: args.haproxy.clone(),
                configuration: settings.files.clone(),
                working_directory: settings.working_directory.clone(),
                environment: Vec::new(),
                master_socket: settings.master_socket.clone(),
                log: settings.folder.join("haproxy.log"),
                within: START_WITHIN,
            };
            let launched = launch.start().await.map_err(Error::from)?;
            report.info(&format!(
                "HAProxy is started as process {}; it goes on when this ends",
                launched.identity().pid()
            ));
        }
    }
    Ok(())
}

/// Who may use the API: the users that are named, or one whose password is made here.
fn users(args: &ServeArgs, files: &[PathBuf], folder: &Path, report: Report) -> Result<Users, CliError> {
    let list = args.userlist.as_deref();
    if let Some(file) = &args.users {
        return Ok(Users::of(&super::read(file, report)?, list).map_err(Error::from)?);
    }
    if list.is_some() {
        let texts = files.iter().map(|file| super::read(file, report)).collect::<Result<Vec<_>, _>>()?;
        let sections = texts.iter().flat_map(|text| text.sections().iter().cloned()).collect();
        return Ok(Users::of(&Document::from_sections(sections), list).map_err(Error::from)?);
    }
    let path = folder.join("password");
    let password = match fs::read_to_string(&path) {
        Ok(password) if !password.trim().is_empty() => password.trim().to_owned(),
        _ => {
            let password: String = (0..32).map(|_| fastrand::alphanumeric()).collect();
            let written = fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&path);
            let written = written.and_then(|mut file| writeln!(file, "{password}"));
            written.map_err(|source| Error::Write { path: path.clone(), source })?;
            password
        }
    };
    report.info(&format!("user admin may use the API; the password is in {}", path.display()));
    let text = format!("userlist own\n  user admin insecure-password {password}\n");
    Ok(Users::of(&Document::parse(text.as_bytes()), None).map_err(Error::from)?)
}

fn log_to_stderr(report: Report) {
    use tracing_subscriber::Layer;
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::util::SubscriberInitExt;
    let level = if report.verbosity == 0 { LevelFilter::INFO } else { LevelFilter::DEBUG };
    let targets = Targets::new().with_default(LevelFilter::WARN).with_targets([
        ("setpoint", level),
        ("setpoint_instance", level),
        ("setpoint_dataplane_api", level),
        ("audit", level),
    ]);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let layer = match report.format {
        LogFormat::Text => lines.with_ansi(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    // Another that was set before is as good.
    let _ = tracing_subscriber::registry().with(layer.with_filter(targets)).try_init();
}
