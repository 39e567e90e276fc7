//! A `dataplaneapi.yml` of the original Dataplane API, read as the settings that it comes to here.

use std::net::{IpAddr, SocketAddr};

use serde_json::Value as Json;

use super::settings::{DEFAULT_ADDRESS, Settings, User};

/// Returns whether a file is one of the original.
pub(super) fn is_one(file: &Json) -> bool {
    ["config_version", "dataplaneapi"].iter().any(|name| file.get(name).is_some())
        || file.get("haproxy").is_some_and(Json::is_object)
}

/// What a file says, and the names of what it says that has no meaning here.
pub(super) fn read(file: &Json) -> Result<(Settings, Vec<String>), String> {
    let mut read = Original::default();
    read.walk("", file)?;
    read.finish()
}

/// How the original is told to reload: by a command, of a service, in some way.
const COMMAND: &str = "haproxy.reload.reload_cmd";
const SERVICE: &str = "haproxy.reload.service_name";
const RELOAD: [&str; 3] = [COMMAND, SERVICE, "haproxy.reload.reload_strategy"];

#[derive(Default)]
struct Original {
    settings: Settings,
    meaningless: Vec<String>,
    /// The names of what was taken, some of which others leave without a meaning.
    taken: Vec<String>,
    schemes: Vec<String>,
    host: Option<IpAddr>,
    port: Option<u16>,
    tls_host: Option<IpAddr>,
    tls_port: Option<u16>,
    reload_strategy: Option<String>,
    reload_command: Option<String>,
    service: Option<String>,
}

impl Original {
    fn walk(&mut self, path: &str, value: &Json) -> Result<(), String> {
        match value {
            // Somebody named it, and said nothing.
            Json::Null => Ok(()),
            Json::String(text) if text.is_empty() => Ok(()),
            Json::Object(properties) => properties.iter().try_for_each(|(name, value)| {
                // Both ways of writing are in use.
                let name = name.replace('-', "_");
                let path = if path.is_empty() { name } else { format!("{path}.{name}") };
                self.walk(&path, value)
            }),
            value => self.set(path, value),
        }
    }

    /// Takes one setting. This is the table of what has a meaning here.
    fn set(&mut self, path: &str, value: &Json) -> Result<(), String> {
        let wrong = |needed: &str| format!("{path}: {needed} is needed, and not {value}");
        let text = || value.as_str().map(str::to_owned).ok_or_else(|| wrong("a text"));
        let file = || text().map(|text| Some(text.into()));
        let number = || value.as_u64().ok_or_else(|| wrong("a number"));
        let count = || number().map(|number| usize::try_from(number).ok());
        let port = || number().and_then(|port| port.try_into().map(Some).map_err(|_| wrong("a port")));
        let host = || match text()?.as_str() {
            "localhost" => Ok(Some(DEFAULT_ADDRESS.ip())),
            other => other.parse().map(Some).map_err(|_| wrong("an address")),
        };
        let settings = &mut self.settings;
        match path {
            // It says how the file is written.
            "config_version" => {}
            "mode" if value == "single" => {}
            "dataplaneapi.scheme" => {
                self.schemes = match value {
                    Json::Array(schemes) => {
                        schemes.iter().filter_map(Json::as_str).map(str::to_owned).collect()
                    }
                    _ => vec![text()?],
                }
            }
            "dataplaneapi.host" => self.host = host()?,
            "dataplaneapi.port" => self.port = port()?,
            "dataplaneapi.socket_path" => settings.socket = file()?,
            "dataplaneapi.listen_limit" => settings.connections = count()?,
            "dataplaneapi.tls.tls_host" => self.tls_host = host()?,
            "dataplaneapi.tls.tls_port" => self.tls_port = port()?,
            "dataplaneapi.tls.tls_certificate" => settings.tls_certificate = file()?,
            "dataplaneapi.tls.tls_key" => settings.tls_key = file()?,
            "dataplaneapi.tls.tls_ca" => settings.client_ca = file()?,
            "dataplaneapi.user" | "dataplaneapi.users" => {
                settings.user = serde_json::from_value::<Vec<User>>(value.clone())
                    .map_err(|error| format!("{path}: {error}"))?;
            }
            "dataplaneapi.userlist.userlist" => settings.userlist = Some(text()?),
            "dataplaneapi.userlist.userlist_file" => settings.users = file()?,
            "dataplaneapi.transaction.backups_number" => settings.backups = count()?,
            "dataplaneapi.transaction.backups_dir" => settings.backups_dir = file()?,
            "dataplaneapi.transaction.max_open_transactions" => settings.open_transactions = count()?,
            "dataplaneapi.resources.maps_dir" => settings.maps = file()?,
            "dataplaneapi.resources.ssl_certs_dir" => settings.certificates = file()?,
            "dataplaneapi.resources.general_storage_dir" => settings.general = file()?,
            "haproxy.config_file" => settings.config = vec![text()?.into()],
            "haproxy.haproxy_bin" => settings.haproxy = file()?,
            "haproxy.master_runtime" => settings.master_socket = file()?,
            // It is the only mode here.
            "haproxy.master_worker_mode" if value == true => {}
            "haproxy.reload.reload_delay" => {
                settings.reload_delay = Some(value.as_f64().ok_or_else(|| wrong("a number"))?);
            }
            "haproxy.reload.reload_strategy" => self.reload_strategy = Some(text()?),
            "haproxy.reload.reload_cmd" => self.reload_command = Some(text()?),
            "haproxy.reload.service_name" => self.service = Some(text()?),
            other => {
                self.meaningless.push(other.to_owned());
                return Ok(());
            }
        }
        self.taken.push(path.to_owned());
        Ok(())
    }

    /// What several settings come to together.
    fn finish(mut self) -> Result<(Settings, Vec<String>), String> {
        let serves = |scheme: &str| self.schemes.iter().any(|known| known == scheme);
        let settings = &mut self.settings;
        // What others leave without a meaning: names, or the beginnings of names.
        let mut without_meaning = Vec::new();
        let address = |host: Option<IpAddr>, port: Option<u16>| {
            SocketAddr::new(host.unwrap_or(DEFAULT_ADDRESS.ip()), port.unwrap_or(DEFAULT_ADDRESS.port()))
        };
        if serves("https") {
            settings.tls_listen = Some(address(self.tls_host.or(self.host), self.tls_port));
        } else {
            (settings.tls_certificate, settings.tls_key, settings.client_ca) = (None, None, None);
            without_meaning.push("dataplaneapi.tls.");
        }
        if serves("http") || (self.schemes.is_empty() && (self.host.is_some() || self.port.is_some())) {
            settings.listen = Some(address(self.host, self.port));
        }
        if !serves("unix") {
            settings.socket = None;
            without_meaning.push("dataplaneapi.socket_path");
        }
        // The original asks the socket where there is one.
        if settings.master_socket.is_some() {
            without_meaning.extend(RELOAD);
        } else {
            match self.reload_strategy.as_deref() {
                Some("systemd" | "s6") => without_meaning.push(COMMAND),
                Some("native") => without_meaning.extend([COMMAND, SERVICE]),
                _ => without_meaning.push(SERVICE),
            }
            settings.reload_command = match self.reload_strategy.as_deref() {
                Some("systemd") => {
                    Some(format!("systemctl reload {}", self.service.as_deref().unwrap_or("haproxy.service")))
                }
                Some("s6") => Some(format!(
                    "s6-svc -2 {}",
                    self.service.as_deref().unwrap_or("/var/run/s6/services/haproxy")
                )),
                Some("native") => None,
                None | Some("custom") => self.reload_command,
                Some(other) => return Err(format!("haproxy.reload.reload_strategy: `{other}` is not known")),
            };
        }
        let is_lost = |name: &String| {
            without_meaning.iter().any(|lost| name == lost || lost.ends_with('.') && name.starts_with(lost))
        };
        self.meaningless.extend(self.taken.into_iter().filter(is_lost));
        self.meaningless.sort();
        Ok((self.settings, self.meaningless))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Settings, Vec<String>) {
        let json: Json = serde_saphyr::from_str(text).unwrap();
        assert!(is_one(&json));
        super::read(&json).unwrap()
    }

    #[test]
    fn what_an_original_says_is_understood_and_the_rest_is_named() {
        let (settings, meaningless) = read(
            "config_version: 2\nname: famous\nmode: single\nstatus: null\n\
             dataplaneapi:\n  scheme: [http, https]\n  host: 0.0.0.0\n  port: 5556\n  show_system_info: false\n  \
             tls: {tls_port: 6443, tls_certificate: /a.pem, tls_key: /a.key, tls_ca: /ca.pem}\n  \
             user:\n  - {name: admin, insecure: true, password: pw}\n  \
             transaction: {transaction_dir: /tmp/t, max_open_transactions: 7, backups_number: 3}\n  \
             resources: {maps_dir: /m, ssl_certs_dir: /s, general_storage_dir: /g, spoe_dir: /spoe}\n\
             haproxy:\n  config_file: /etc/haproxy/haproxy.cfg\n  haproxy_bin: /sbin/haproxy\n  master_worker_mode: true\n  \
             reload: {reload_delay: 2, reload_cmd: 'service haproxy reload', restart_cmd: x, reload_strategy: custom}\n",
        );
        assert_eq!(
            meaningless,
            [
                "dataplaneapi.resources.spoe_dir",
                "dataplaneapi.show_system_info",
                "dataplaneapi.transaction.transaction_dir",
                "haproxy.reload.restart_cmd",
                "name"
            ]
        );
        assert_eq!(settings.listen, Some("0.0.0.0:5556".parse().unwrap()));
        assert_eq!(settings.tls_listen, Some("0.0.0.0:6443".parse().unwrap()));
        assert_eq!(settings.client_ca, Some("/ca.pem".into()));
        assert_eq!((settings.user.len(), settings.user[0].password.as_str()), (1, "pw"));
        assert_eq!((settings.open_transactions, settings.backups), (Some(7), Some(3)));
        assert_eq!(settings.config, [std::path::PathBuf::from("/etc/haproxy/haproxy.cfg")]);
        assert_eq!(settings.reload_command.as_deref(), Some("service haproxy reload"));
        assert_eq!(settings.reload_delay, Some(2.0));
        assert!(settings.socket.is_none());
    }

    #[test]
    fn a_master_that_is_named_is_asked_and_no_command_is_run() {
        let (settings, meaningless) = read(
            "haproxy:\n  config-file: /h.cfg\n  master_runtime: /m.sock\n  reload: {reload_cmd: /bin/true, reload_strategy: custom}\n",
        );
        assert_eq!((settings.master_socket, settings.reload_command), (Some("/m.sock".into()), None));
        assert_eq!(meaningless, ["haproxy.reload.reload_cmd", "haproxy.reload.reload_strategy"]);
        let (settings, _) = read("haproxy: {reload: {reload_strategy: systemd}}\n");
        assert_eq!(settings.reload_command.as_deref(), Some("systemctl reload haproxy.service"));
    }

    #[test]
    fn what_others_leave_without_a_meaning_is_named() {
        let meaningless = |text: &str| read(text).1;
        let text =
            "dataplaneapi: {scheme: [http], socket_path: /s, tls: {tls_port: 1, tls_certificate: /a.pem}}\n";
        let tls = ["dataplaneapi.tls.tls_certificate", "dataplaneapi.tls.tls_port"];
        assert_eq!(meaningless(text), [&["dataplaneapi.socket_path"][..], &tls[..]].concat());
        let text = "haproxy: {reload: {reload_strategy: systemd, service_name: h, reload_cmd: x}}\n";
        assert_eq!(meaningless(text), ["haproxy.reload.reload_cmd"]);
        let text = "haproxy: {reload: {reload_strategy: native, service_name: h, reload_cmd: x}}\n";
        assert_eq!(meaningless(text), ["haproxy.reload.reload_cmd", "haproxy.reload.service_name"]);
        let text = "haproxy: {reload: {reload_cmd: x}}\ndataplaneapi: {scheme: unix, socket_path: /s}\n";
        assert_eq!(meaningless(text), [""; 0]);
    }

    #[test]
    fn a_value_of_a_wrong_kind_is_refused_with_its_name() {
        let wrong = |text: &str| super::read(&serde_saphyr::from_str(text).unwrap()).unwrap_err();
        assert_eq!(
            wrong("dataplaneapi: {port: many}"),
            "dataplaneapi.port: a number is needed, and not \"many\""
        );
        assert!(wrong("dataplaneapi: {port: 70000}").contains("a port"));
        assert!(wrong("haproxy: {reload: {reload_strategy: magic}}").contains("`magic`"));
    }
}
