//! The arguments of `setpoint haproxy plan`, `sync` and `watch`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use setpoint_dataplane::client::{Settings, Tls};
use setpoint_dataplane::costs::Weights;
use setpoint_dataplane::files::{AuxiliaryFiles, Files};
use setpoint_dataplane::rolling::Rolling;
use setpoint_dataplane::sync::{Choice, Desired, Strategy, SyncOptions};

use crate::jobs::haproxy::error::Error;

/// What is desired, and where.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// The configuration that is desired; `-` is the standard input.
    #[arg(value_name = "DESIRED")]
    pub(super) desired: PathBuf,
    /// The address of a Dataplane API, of which `/v3` is no part; several are brought there at once, each for itself.
    #[arg(long = "url", value_name = "URL")]
    pub(super) urls: Vec<String>,
    #[cfg(feature = "dataplane")]
    #[command(flatten)]
    pub(super) local: super::local::LocalArgs,
    /// The user that the API knows; one in a URL goes before it.
    #[arg(long, value_name = "NAME", requires = "password_file")]
    user: Option<String>,
    /// A file that holds the user's password.
    #[arg(long, value_name = "FILE", requires = "user")]
    password_file: Option<PathBuf>,
    /// A file with the authorities that are trusted (PEM), instead of those of the system.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// A file with the certificate and the key (PEM) that an API is shown that asks for it.
    #[arg(long, value_name = "FILE")]
    client_certificate: Option<PathBuf>,
    /// A folder with the maps that are desired. Others that are there are deleted; without this, maps are left alone.
    #[arg(long, value_name = "DIR")]
    maps: Option<PathBuf>,
    /// A folder with the certificates and keys that are desired, in the same manner.
    #[arg(long, value_name = "DIR")]
    certs: Option<PathBuf>,
    /// A folder with all other files that are desired, in the same manner.
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,
    /// By which way a difference is carried over.
    #[arg(long, value_enum, value_name = "WAY", default_value_t = WayArg::Cheapest)]
    way: WayArg,
    /// What a reload weighs when the cheapest way is looked for, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    reload_cost: Option<f64>,
    /// A file that says what calls cost (JSON), as `plan --json` prints it.
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
    /// The whole text is pushed where there are more operations than this; 0 is never.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threshold: usize,
    /// Takes it for a difference, too, that somebody drained a server, or gave it another weight or address, while HAProxy runs.
    #[arg(long)]
    runtime_drift: bool,
    /// How long a call may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
    /// Prints one JSON object a line for each URL.
    #[arg(long)]
    pub(super) json: bool,
}

/// Arguments of `setpoint haproxy plan`.
#[derive(Debug, Args)]
pub(crate) struct HaproxyPlanArgs {
    #[command(flatten)]
    pub(super) target: TargetArgs,
    /// Exits with 2 if there is something to do, with 0 if not, and with 1 on an error.
    #[arg(long)]
    pub(super) detailed_exitcode: bool,
    /// Keeps the plan in a file, for `setpoint haproxy sync --plan FILE`.
    #[arg(long, value_name = "FILE")]
    pub(super) out: Option<PathBuf>,
}

/// Arguments of `setpoint haproxy sync`.
#[derive(Debug, Args)]
pub(crate) struct HaproxySyncArgs {
    #[command(flatten)]
    pub(super) target: TargetArgs,
    /// Carries out a plan that `setpoint haproxy plan --out FILE` made, and nothing if the configuration was changed since.
    #[arg(long, value_name = "FILE")]
    pub(super) plan: Option<PathBuf>,
    #[command(flatten)]
    pub(super) change: ChangeArgs,
    #[command(flatten)]
    pub(super) rolling: RollingArgs,
}

/// How several targets follow each other.
#[derive(Debug, Args)]
pub(crate) struct RollingArgs {
    /// Changes so many at a time, and the next ones only when these are well; one that is not gets its former text back, and no
    /// other is changed.
    #[arg(long, value_name = "N", requires = "urls", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) rolling: Option<u16>,
    /// How long one is watched before the next ones are changed, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 5, requires = "rolling", value_parser = clap::value_parser!(u64).range(0..=3600))]
    settle: u64,
    /// How long servers may take to be up again, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, requires = "rolling", value_parser = clap::value_parser!(u64).range(0..=3600))]
    up_within: u64,
    /// How many of a hundred requests may fail while one is watched.
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, requires = "rolling", value_parser = percent)]
    error_rate: f64,
}

impl RollingArgs {
    /// How they follow each other; none if all are changed at once.
    pub(super) fn rolling(&self) -> Option<Rolling> {
        Some(Rolling {
            at_a_time: usize::from(self.rolling?),
            settle: Duration::from_secs(self.settle),
            up_within: Duration::from_secs(self.up_within),
            error_rate: self.error_rate / 100.0,
        })
    }
}

/// By which way a difference is carried over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum WayArg {
    /// The one that costs least: time, and reloads.
    Cheapest,
    /// The whole text at first and above --threshold; one by one where only servers change; else a transaction.
    Rules,
    /// Always a transaction.
    Transaction,
    /// Always one by one, each without a reload.
    OneByOne,
    /// Always the whole text.
    Text,
}

fn number(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "it is no number".to_owned())?;
    if number.is_finite() && number >= 0.0 { Ok(number) } else { Err("it has to be 0 or more".to_owned()) }
}

fn seconds(text: &str) -> Result<f64, String> {
    number(text)
}

fn percent(text: &str) -> Result<f64, String> {
    number(text)
        .and_then(|number| if number <= 100.0 { Ok(number) } else { Err("it is above 100".to_owned()) })
}

/// Arguments of `setpoint haproxy watch`.
#[derive(Debug, Args)]
pub(crate) struct HaproxyWatchArgs {
    #[command(flatten)]
    pub(super) target: TargetArgs,
    #[command(flatten)]
    pub(super) change: ChangeArgs,
    /// Says what differs, and changes nothing.
    #[arg(long)]
    pub(super) report_only: bool,
    /// Serves `/healthz`, `/readyz`, `/metrics` and `/debug/state` on this address.
    #[arg(long, value_name = "ADDRESS")]
    pub(super) observe: Option<SocketAddr>,
    /// How often HAProxy is looked at, whether the desired configuration has changed or not, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub(super) interval: u64,
}

/// How changes are made.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct ChangeArgs {
    /// Does not push the whole text where operations failed.
    #[arg(long)]
    pub(super) no_fallback: bool,
    /// Goes on with other operations where one has failed.
    #[arg(long)]
    pub(super) continue_on_error: bool,
    /// How many operations run at a time; 0 is no limit.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) max_parallel: usize,
    /// Does not wait for the reload.
    #[arg(long)]
    pub(super) no_verify: bool,
    /// How long a reload may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(super) reload_timeout: u64,
    /// Tells a running HAProxy what it can be told before the transaction that reloads, instead of with it.
    #[arg(long)]
    pub(super) runtime_first: bool,
}

impl TargetArgs {
    /// How an API is reached.
    pub(super) fn settings(&self, url: &str) -> Result<Settings, Error> {
        let mut settings = Settings { timeout: Duration::from_secs(self.timeout), ..Settings::new(url) };
        if let (Some(user), Some(file)) = (&self.user, &self.password_file) {
            let password = read(file)?;
            let password = String::from_utf8_lossy(&password);
            settings = settings.with_credentials(user, password.trim_end_matches(['\r', '\n']));
        }
        let pem = |path: &Option<PathBuf>| path.as_deref().map(read).transpose();
        settings.tls = Tls { authorities: pem(&self.ca_file)?, identity: pem(&self.client_certificate)? };
        Ok(settings)
    }

    /// What is desired.
    pub(super) fn desired(&self, text: Vec<u8>) -> Result<Desired, Error> {
        let all = |folder: &Option<PathBuf>| folder.as_deref().map(files_in).transpose();
        let files = AuxiliaryFiles {
            maps: all(&self.maps)?,
            certificates: all(&self.certs)?,
            general: all(&self.files)?,
            ..AuxiliaryFiles::default()
        };
        Ok(Desired { text, files })
    }

    /// The files and folders that say what is desired.
    pub(super) fn sources(&self) -> impl Iterator<Item = &Path> {
        let folders = [&self.maps, &self.certs, &self.files].into_iter().flatten();
        folders.chain([&self.desired]).map(PathBuf::as_path)
    }

    /// How it is gone about, at a target with these costs.
    pub(super) fn options(&self) -> Result<SyncOptions, Error> {
        let choice = match self.way {
            WayArg::Cheapest => Choice::Cheapest(self.weights()?),
            WayArg::Rules => Choice::Document,
            WayArg::Transaction => Choice::Always(Strategy::Transaction),
            WayArg::OneByOne => Choice::Always(Strategy::OneByOne),
            WayArg::Text => Choice::Always(Strategy::Text),
        };
        Ok(SyncOptions {
            choice,
            raw_push_threshold: self.threshold,
            runtime_drift: self.runtime_drift,
            ..SyncOptions::default()
        })
    }

    /// What calls cost, and what a reload weighs, where it is not for the target to say.
    fn weights(&self) -> Result<Weights, Error> {
        let Some(path) = &self.costs else { return Ok(Weights { costs: None, reload: self.reload_cost }) };
        let costs = serde_json::from_slice(&read(path)?);
        let costs = costs.map_err(|error| Error::Costs { path: path.clone(), why: error.to_string() })?;
        Ok(Weights { costs: Some(costs), reload: self.reload_cost })
    }
}

impl ChangeArgs {
    pub(super) fn options(&self, target: &TargetArgs) -> Result<SyncOptions, Error> {
        Ok(SyncOptions {
            runtime_first: self.runtime_first,
            fallback_to_raw: !self.no_fallback,
            continue_on_error: self.continue_on_error,
            max_parallel: self.max_parallel,
            verify_reload: !self.no_verify,
            reload_verification_timeout: Duration::from_secs(self.reload_timeout),
            ..target.options()?
        })
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|source| Error::Configuration { path: path.to_owned(), source })
}

/// The files of a folder. What begins with a dot, and what is no file, is none of them.
fn files_in(folder: &Path) -> Result<Files, Error> {
    let failed = |source| Error::Configuration { path: folder.to_owned(), source };
    let mut files = Files::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with('.') && path.is_file() {
            files.insert(name, read(&path)?);
        }
    }
    Ok(files)
}
