//! The settings of `setpoint haproxy serve`: from the command line, from a file, or as they are if nobody says anything.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use setpoint_dataplane_api::{Address, Options, TlsFiles};
use setpoint_haproxy::model::Version;

use super::original;
use crate::jobs::haproxy::error::Error;
use crate::report::Report;
use crate::service::parameters::overlay;

/// Arguments of `setpoint haproxy serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// A file with settings, in YAML: the names are those of the options here, without dashes in front. A `dataplaneapi.yml` of
    /// the original Dataplane API is read as it is. What is given on the command line goes before it.
    #[arg(short = 'f', long, value_name = "FILE")]
    settings: Option<PathBuf>,
    #[command(flatten)]
    given: Settings,
}

/// All settings. Those of the command line and those of a file have the same names.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct Settings {
    /// The program of HAProxy [default: /usr/sbin/haproxy].
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) haproxy: Option<PathBuf>,
    /// A file of the configuration; may be given several times, in the order in which HAProxy reads them.
    #[arg(long, value_name = "FILE")]
    #[serde(deserialize_with = "one_or_several")]
    pub(crate) config: Vec<PathBuf>,
    /// Where the API is served without TLS [default: 127.0.0.1:5555, unless another address is given].
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// Where the API is served with TLS.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) tls_listen: Option<SocketAddr>,
    /// The certificate of the API, in PEM, with the chain above it. It is read anew when it is renewed.
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// The private key of the certificate [default: the file of the certificate].
    #[arg(long, value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// The authorities whose clients may connect with TLS, in PEM: all others are refused.
    #[arg(long, value_name = "FILE")]
    pub(crate) client_ca: Option<PathBuf>,
    /// A Unix socket on which the API is served; its owner and its group may use it.
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// The version of the Dataplane API that is spoken [default: 3.4].
    #[arg(long, value_name = "VERSION", value_parser = known_version)]
    pub(crate) dialect: Option<String>,
    /// The socket of the master of a HAProxy that runs already. Without it, one is started that goes on when this ends.
    #[arg(long, value_name = "SOCKET")]
    pub(crate) master_socket: Option<PathBuf>,
    /// A command that reloads HAProxy, in the place of its master's socket; words are separated by blanks. A HAProxy whose master has
    /// no socket is found by its configuration then, and none is started here.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) reload_command: Option<String>,
    /// Reloads HAProxy by SIGUSR2, in the place of its master's socket. A HAProxy that runs already, and whose master has no socket,
    /// is found by its configuration then.
    #[arg(long, conflicts_with = "reload_command")]
    #[serde(skip_serializing_if = "is_not_given")]
    pub(crate) reload_signal: bool,
    /// How long a reload waits for further commits, in seconds [default: 5].
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) reload_delay: Option<f64>,
    /// How long a server that is removed goes on serving those who are bound to it, in seconds [default: 0].
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) drain: Option<f64>,
    /// The userlist whose users may use the API; of `--users`, or of the configuration.
    #[arg(long, value_name = "NAME")]
    pub(crate) userlist: Option<String>,
    /// A file with userlists. Without it and without `--userlist`, a password is made and kept beside the configuration.
    #[arg(long, value_name = "FILE")]
    pub(crate) users: Option<PathBuf>,
    /// Users that are named in a file of settings.
    #[arg(skip)]
    pub(crate) user: Vec<User>,
    /// The folder of maps [default: `maps` beside the configuration].
    #[arg(long, value_name = "DIR")]
    pub(crate) maps: Option<PathBuf>,
    /// The folder of certificates and their lists [default: `ssl` beside the configuration].
    #[arg(long, value_name = "DIR")]
    pub(crate) certificates: Option<PathBuf>,
    /// The folder of all other files [default: `general` beside the configuration].
    #[arg(long, value_name = "DIR")]
    pub(crate) general: Option<PathBuf>,
    /// How many former versions of the configuration are kept [default: 0].
    #[arg(long, value_name = "NUMBER")]
    pub(crate) backups: Option<usize>,
    /// Where they are kept [default: a folder beside the configuration].
    #[arg(long, value_name = "DIR")]
    pub(crate) backups_dir: Option<PathBuf>,
    /// How many transactions may be open at once [default: 20].
    #[arg(long, value_name = "NUMBER")]
    pub(crate) open_transactions: Option<usize>,
    /// The longest body of a request, in MiB [default: 256].
    #[arg(long, value_name = "MIB")]
    pub(crate) longest_body: Option<usize>,
    /// How many connections may be open at once [default: 4000].
    #[arg(long, value_name = "NUMBER")]
    pub(crate) connections: Option<usize>,
    /// How many requests a second one address may make [default: as many as it likes].
    #[arg(long, value_name = "NUMBER")]
    pub(crate) rate_limit: Option<u32>,
    /// Serves `/healthz`, `/readyz`, `/metrics` and `/debug/state` on this address.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) observe: Option<SocketAddr>,
    /// Refuses properties that nobody knows; without it they are ignored, with a warning.
    #[arg(long)]
    #[serde(skip_serializing_if = "is_not_given")]
    pub(crate) strict: bool,
    /// Changes nothing.
    #[arg(long)]
    #[serde(skip_serializing_if = "is_not_given")]
    pub(crate) read_only: bool,
}

/// A user that is named in a file of settings.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) password: String,
    /// Whether the password is written as it is, and not hashed.
    #[serde(default)]
    pub(crate) insecure: bool,
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("User").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Reads one path, or a list of them.
fn one_or_several<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a path or a list of paths is needed")]
    enum Paths {
        One(PathBuf),
        Several(Vec<PathBuf>),
    }
    Ok(match Paths::deserialize(deserializer)? {
        Paths::One(path) => vec![path],
        Paths::Several(paths) => paths,
    })
}

/// Returns whether a flag is not given. A flag can't be taken back on the command line, so only what is on counts.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "that is how serde asks")]
fn is_not_given(flag: &bool) -> bool {
    !flag
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse().map_err(|_| "write a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(number).map_err(|error| error.to_string())?;
    Ok(number)
}

fn duration(name: &'static str, seconds: f64) -> Result<Duration, Error> {
    Duration::try_from_secs_f64(seconds).map_err(|error| Error::Setting { name, why: error.to_string() })
}

fn known_version(text: &str) -> Result<String, String> {
    crate::jobs::haproxy::parse_version(text).map(|version| version.to_string())
}

impl ServeArgs {
    /// What holds: the command line, and what it leaves open from the file.
    pub(super) fn resolve(&self, report: Report) -> Result<Settings, Error> {
        let settings = self.given.clone().or_of(self.settings.as_deref(), report)?;
        if settings.config.is_empty() {
            return Err(Error::NoConfiguration);
        }
        Ok(settings)
    }
}

/// Reads a file of settings: ours, or one of the original.
fn read(path: &Path, report: Report) -> Result<Settings, Error> {
    let text =
        fs::read_to_string(path).map_err(|source| Error::Configuration { path: path.to_owned(), source })?;
    let wrong = |why: String| Error::Settings { path: path.to_owned(), why };
    // The reader of YAML does not know where a text comes from.
    let unread =
        |error: serde_saphyr::Error| wrong(error.to_string().replace("<input>", &path.display().to_string()));
    let json: Json = serde_saphyr::from_str(&text).map_err(unread)?;
    if original::is_one(&json) {
        let (settings, meaningless) = original::read(&json).map_err(wrong)?;
        for name in meaningless {
            report.warn(&format!("{}: {name} has no meaning here, and is passed over", path.display()));
        }
        return Ok(settings);
    }
    // Read once more as what it is, for errors that say where.
    let settings: Settings = serde_saphyr::from_str(&text).map_err(unread)?;
    Ok(settings.relative_to(path))
}

impl Settings {
    /// These settings as a file says them: its paths are relative to its own folder.
    fn relative_to(mut self, file: &Path) -> Self {
        let folder = file.parent().unwrap_or(Path::new("")).to_owned();
        let paths = [
            &mut self.haproxy,
            &mut self.tls_certificate,
            &mut self.tls_key,
            &mut self.client_ca,
            &mut self.socket,
            &mut self.master_socket,
            &mut self.users,
            &mut self.maps,
            &mut self.certificates,
            &mut self.general,
            &mut self.backups_dir,
        ];
        for path in paths.into_iter().flatten().chain(&mut self.config) {
            *path = folder.join(&*path);
        }
        self
    }

    /// These, and what they leave open from a file, if there is one.
    pub(in crate::jobs::haproxy) fn or_of(self, file: Option<&Path>, report: Report) -> Result<Self, Error> {
        Ok(match file {
            Some(path) => {
                let file = read(path, report)?;
                let wrong = |error: serde_json::Error| Error::Settings {
                    path: path.to_owned(),
                    why: error.to_string(),
                };
                overlay(&self, &file).map_err(wrong)?
            }
            None => self,
        })
    }

    pub(super) fn dialect(&self) -> Result<Version, Error> {
        let Some(text) = &self.dialect else { return Ok(Version::LATEST) };
        text.parse().map_err(Error::UnknownVersion)
    }

    pub(super) fn reload_delay(&self) -> Result<Duration, Error> {
        duration("reload-delay", self.reload_delay.unwrap_or(5.0))
    }

    pub(super) fn drain(&self) -> Result<Duration, Error> {
        duration("drain", self.drain.unwrap_or(0.0))
    }

    pub(super) fn options(&self) -> Options {
        let default = Options::default();
        Options {
            strict: self.strict,
            read_only: self.read_only,
            longest_body: self.longest_body.map_or(default.longest_body, |mib| mib.saturating_mul(1 << 20)),
            body_within: default.body_within,
            connections: self.connections.unwrap_or(default.connections).clamp(1, 1_000_000),
            requests_per_second: self.rate_limit.filter(|limit| *limit > 0),
        }
    }

    /// The folders of maps, of certificates and of all other files, in this order; beside a configuration if nobody says where.
    pub(in crate::jobs::haproxy) fn folders(&self, beside: &Path) -> Result<[PathBuf; 3], Error> {
        let folder = |name: &'static str, given: &Option<PathBuf>, default: &str| match given {
            Some(path) if path.exists() && !path.is_dir() => {
                let why =
                    format!("{} is no folder: name the folder that its files are kept in", path.display());
                Err(Error::Setting { name, why })
            }
            Some(path) => Ok(path.clone()),
            None => Ok(beside.join(default)),
        };
        Ok([
            folder("maps", &self.maps, "maps")?,
            folder("certificates", &self.certificates, "ssl")?,
            folder("general", &self.general, "general")?,
        ])
    }

    /// Where the API is served.
    pub(super) fn addresses(&self) -> Result<Vec<Address>, Error> {
        let missing = |name, why: &str| Error::Setting { name, why: why.to_owned() };
        let mut addresses = Vec::new();
        if let Some(address) = self.tls_listen {
            let certificate = self.tls_certificate.clone();
            let certificate = certificate
                .ok_or_else(|| missing("tls-listen", "TLS needs a certificate: add tls-certificate"))?;
            let key = self.tls_key.clone().unwrap_or_else(|| certificate.clone());
            let files = TlsFiles { certificate, key, client_authorities: self.client_ca.clone() };
            addresses.push(Address::Tls(address, files));
        } else {
            let given = [
                ("tls-certificate", &self.tls_certificate, "a certificate"),
                ("tls-key", &self.tls_key, "a key"),
                ("client-ca", &self.client_ca, "an authority of clients"),
            ];
            if let Some((name, _, what)) = given.into_iter().find(|(_, given, _)| given.is_some()) {
                let why = format!("{what} is given, and no address that is served with TLS: add tls-listen");
                return Err(missing(name, &why));
            }
        }
        if let Some(path) = &self.socket {
            addresses.push(Address::Unix(std::path::absolute(path).unwrap_or_else(|_| path.clone())));
        }
        match self.listen {
            Some(address) => addresses.push(Address::Tcp(address)),
            None if addresses.is_empty() => addresses.push(Address::Tcp(DEFAULT_ADDRESS)),
            None => {}
        }
        Ok(addresses)
    }
}

/// Where the API is served if nobody says where.
pub(super) const DEFAULT_ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 5555);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_goes_before_a_file_and_flags_add_up() {
        let file = Settings {
            config: vec!["a".into()],
            reload_delay: Some(9.0),
            strict: true,
            maps: Some("m".into()),
            ..Settings::default()
        };
        let given = Settings { config: vec!["b".into()], reload_delay: Some(0.0), ..Settings::default() };
        let merged = overlay(&given, &file).unwrap();
        assert_eq!(merged.config, [PathBuf::from("b")]);
        assert_eq!((merged.reload_delay, merged.strict, merged.maps), (Some(0.0), true, Some("m".into())));
    }

    #[test]
    fn without_an_address_it_is_served_on_this_machine_alone() {
        let address = |settings: &Settings| settings.addresses().unwrap();
        assert_eq!(address(&Settings::default()), [Address::Tcp(DEFAULT_ADDRESS)]);
        let socket = Settings { socket: Some("/run/api.sock".into()), ..Settings::default() };
        assert_eq!(address(&socket), [Address::Unix("/run/api.sock".into())]);
        for (settings, name) in [
            (Settings { tls_certificate: Some("a.pem".into()), ..Settings::default() }, "tls-certificate: "),
            (Settings { tls_key: Some("a.pem".into()), ..Settings::default() }, "tls-key: a key is given"),
            (Settings { client_ca: Some("a.pem".into()), ..Settings::default() }, "client-ca: an authority"),
        ] {
            let error = settings.addresses().unwrap_err().to_string();
            assert!(error.contains("tls-listen") && error.starts_with(name), "{error}");
        }
        let tls = Settings { tls_listen: Some(DEFAULT_ADDRESS), ..Settings::default() };
        assert!(tls.addresses().unwrap_err().to_string().contains("tls-certificate"));
    }

    #[test]
    fn one_configuration_needs_no_list_and_paths_of_a_file_are_relative_to_its_folder() {
        let text = "config: a.cfg\nmaps: maps\nusers: /etc/users.cfg\n";
        let settings: Settings = serde_saphyr::from_str(text).unwrap();
        let settings = settings.relative_to(Path::new("/etc/setpoint/haproxy.yaml"));
        assert_eq!(settings.config, [PathBuf::from("/etc/setpoint/a.cfg")]);
        assert_eq!(
            (settings.maps, settings.users),
            (Some("/etc/setpoint/maps".into()), Some("/etc/users.cfg".into()))
        );
        let settings: Settings = serde_saphyr::from_str("config: [a.cfg, b.cfg]\n").unwrap();
        assert_eq!(
            settings.relative_to(Path::new("here.yaml")).config,
            [PathBuf::from("a.cfg"), "b.cfg".into()]
        );
    }

    #[test]
    fn a_setting_that_there_is_not_is_refused_where_it_stands() {
        let error =
            serde_saphyr::from_str::<Settings>("config: [a]\nreload-dely: 3\n").unwrap_err().to_string();
        assert!(error.contains("reload-dely") && error.contains('2'), "{error}");
    }
}
