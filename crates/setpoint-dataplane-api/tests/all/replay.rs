//! Replays recorded exchanges, in order, against one server.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Method};
use serde_json::Value as Json;
use setpoint_dataplane_api::Dialect;
use setpoint_instance::cli::Request as CliRequest;
use setpoint_instance::runtime::{ListEntry, ListKind, Reply};
use setpoint_testutils::Missing;

use crate::recording::Exchange;
use crate::world::{Plan, WITHIN, World, certificate};

/// What our server answered.
#[derive(Clone, Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
    /// Whether HAProxy holds what is in the file that the request was about, if it was about one of a list.
    pub(crate) is_held: bool,
}

impl Answered {
    pub(crate) fn json(&self) -> Option<Json> {
        serde_json::from_str(&self.body).ok()
    }
}

/// Our server, and who speaks with it.
pub(crate) struct Replay {
    pub(crate) world: World,
    pub(crate) speaker: Speaker,
}

/// Who speaks with a server, and what recorded names stand for there.
pub(crate) struct Speaker {
    url: String,
    client: Client,
    pub(crate) names: BTreeMap<String, String>,
    /// The version that was recorded last, and ours.
    versions: (i64, i64),
    certificates: [String; 2],
    /// The entry of an ACL that is asked for by its id.
    entry: String,
    reload: String,
}

/// What a server answered: the status, the headers and the body.
type Answer = (u16, BTreeMap<String, String>, String);

impl Replay {
    pub(crate) async fn start(dialect: Dialect, exchanges: &[Exchange]) -> Result<Self, Missing> {
        let raw = exchanges.iter().find(|exchange| exchange.case == "raw.get").unwrap();
        Self::start_on(dialect, raw.answer.body.as_deref().unwrap()).await
    }

    /// Starts on a text in which `$D` and `$PORT0` to `$PORT5` stand for the folder and the ports.
    pub(crate) async fn start_on(dialect: Dialect, text: &str) -> Result<Self, Missing> {
        let plan = Plan { dialect, delay: Duration::from_millis(100), ..Plan::default() };
        let world = World::start(&plan, |folder, ports| {
            let text = text.replace("$D", &folder.display().to_string());
            ports.iter().enumerate().fold(text, |text, (number, port)| {
                text.replace(&format!("$PORT{number}"), &port.number().to_string())
            })
        })
        .await?;
        let ports: Vec<u16> = world.ports.iter().map(setpoint_testutils::Port::number).collect();
        let speaker = Speaker::new(world.url.clone(), world.folder.path(), &ports);
        Ok(Self { world, speaker })
    }

    /// What was done between exchanges, and is not recorded.
    async fn prepare(&mut self, exchange: &Exchange) {
        let case = exchange.case.as_str();
        if case.starts_with("reloads.")
            || case.contains("runtime")
            || case.starts_with("stats")
            || case.starts_with("storage")
        {
            self.world.settled().await;
        }
        if case == "runtime.servers.after-create" {
            // Its first check fails.
            let worker = self.world.api.instance().worker();
            setpoint_testutils::wait::until("the check of s4", WITHIN, async || {
                let servers = worker.servers(Some("be")).await.ok()??;
                servers
                    .iter()
                    .find(|server| server.name == "s4" && server.number("srv_op_state") == 0)
                    .map(|_| ())
            })
            .await;
        }
        if case == "tx.too-many" {
            while self.world.api.instance().begin(self.world.api.instance().version()).is_ok() {}
        }
        if case == "raw.push.no-version" {
            for transaction in self.world.api.instance().transactions() {
                self.world.api.instance().discard(&transaction.id);
            }
        }
        if case == "file-changed.version" {
            self.world.settled().await;
            let text = fs::read_to_string(self.world.file()).unwrap();
            fs::write(self.world.file(), format!("{text}\nbackend behind from d\n")).unwrap();
        }
        if case == "runtime.acl.entry.get" {
            // Ours were replaced meanwhile.
            let url = format!("{}/v3/services/haproxy/runtime/acls/0/entries", self.world.url);
            let entries =
                self.speaker.client.get(url).basic_auth("admin", Some("adminpwd")).send().await.unwrap();
            let entries: Json = serde_json::from_str(&entries.text().await.unwrap()).unwrap();
            entries[0]["id"].as_str().unwrap_or_default().clone_into(&mut self.speaker.entry);
        }
        if case == "haproxy-down.health" {
            self.world.settled().await;
            self.world.stop_haproxy().await;
        }
    }

    /// Sends a request, and returns what our server answered.
    pub(crate) async fn exchange(&mut self, exchange: &Exchange) -> Answered {
        self.prepare(exchange).await;
        let (status, headers, body) = self.speaker.send(exchange).await;
        Answered { status, headers, body, is_held: self.is_held(exchange).await }
    }

    /// Returns whether HAProxy holds the entries of the file in the storage that a request names.
    async fn is_held(&self, exchange: &Exchange) -> bool {
        let path = exchange.path.split('?').next().unwrap_or_default();
        let Some((_, name)) = path.split_once("/storage/") else { return false };
        let kind = if name.starts_with("maps/") { ListKind::Map } else { ListKind::Acl };
        let (folder, worker) = (self.world.folder.path(), self.world.api.instance().worker());
        let Ok(bytes) = fs::read(folder.join(name)) else { return false };
        let Some(wanted) = ListEntry::read(kind, &bytes) else { return false };
        let Ok(lists) = worker.lists_of(kind, &folder.join(name), folder).await else { return false };
        let [list] = lists.as_slice() else { return false };
        let show = CliRequest::new(if kind == ListKind::Map { "show map" } else { "show acl" });
        let Ok(Reply::Done(shown)) = worker.ask(&show.word(list).unwrap()).await else { return false };
        let held = shown.lines().filter(|line| !line.trim().is_empty());
        // Each line begins with what HAProxy calls the entry.
        let held: Vec<&str> = held.filter_map(|line| Some(line.split_once(' ')?.1)).collect();
        let line = |entry: &ListEntry| {
            entry.value.as_ref().map_or_else(|| entry.key.clone(), |value| format!("{} {value}", entry.key))
        };
        held == wanted.iter().map(line).collect::<Vec<_>>()
    }
}

impl Speaker {
    /// Speaks with a server whose files are in a folder, and whose HAProxy may listen on ports.
    pub(crate) fn new(url: String, folder: &Path, ports: &[u16]) -> Self {
        let client = Client::builder().no_proxy().timeout(Duration::from_mins(1)).build().unwrap();
        let mut names = BTreeMap::new();
        names.insert("$D".to_owned(), folder.display().to_string());
        for (number, port) in ports.iter().enumerate() {
            names.insert(format!("$PORT{number}"), port.to_string());
        }
        names.insert("$B".to_owned(), "xBOUNDx".to_owned());
        let certificates = [certificate('a'), certificate('b')];
        let (entry, reload) = (String::new(), String::new());
        Self { url, client, names, versions: (1, 1), certificates, entry, reload }
    }

    /// Puts what recorded names stand for into a text.
    pub(crate) fn named(&self, text: &str) -> String {
        // Longer names first: `$TX10` is not `$TX1`.
        let mut names: Vec<_> = self.names.iter().collect();
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        // `$DATE` is not `$D`.
        let text = text.replace("$DATE", "$_ATE");
        names.iter().fold(text, |text, (name, value)| text.replace(*name, value)).replace("$_ATE", "$DATE")
    }

    /// Puts recorded names into a text in the place of what they stand for.
    pub(crate) fn unnamed(&self, text: &str) -> String {
        let mut names: Vec<_> = self.names.iter().filter(|(_, value)| !value.is_empty()).collect();
        names.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(*value, name))
    }

    pub(crate) fn named_json(&self, json: &Json) -> Json {
        match json {
            // A port is a number.
            Json::String(text) if text.starts_with("$PORT") => {
                self.names.get(text).and_then(|port| port.parse::<u16>().ok()).map_or(Json::Null, Json::from)
            }
            Json::String(text) => Json::String(self.named(text)),
            Json::Array(values) => values.iter().map(|value| self.named_json(value)).collect(),
            Json::Object(properties) => {
                properties.iter().map(|(name, value)| (name.clone(), self.named_json(value))).collect()
            }
            other => other.clone(),
        }
    }

    /// The path of a request: versions count from ours, and what varied is what our server said before.
    fn path(&self, exchange: &Exchange) -> String {
        let encode = |text: &str| text.replace('/', "%2F");
        let path = match exchange.case.as_str() {
            "reloads.get" => format!("/v3/services/haproxy/reloads/{}", self.reload),
            "runtime.acl.entry.get" | "runtime.acl.entry.delete" => {
                format!("/v3/services/haproxy/runtime/acls/0/entries/{}", self.entry)
            }
            "runtime.ssl_cert" | "runtime.ssl_cert.set" => {
                let name = encode(&self.named("$D/ssl/site.pem"));
                format!("/v3/services/haproxy/runtime/ssl_certs/{name}")
            }
            _ => self.named(&exchange.path.replace("$DATE", "2000-01-01")),
        };
        let Some((before, rest)) = path.split_once("version=") else { return path };
        if before.ends_with("skip_") {
            return path;
        }
        let (number, after) = rest
            .split_once('&')
            .map_or((rest, String::new()), |(number, after)| (number, format!("&{after}")));
        match number.parse::<i64>() {
            Ok(version) => format!("{before}version={}{after}", version + self.versions.1 - self.versions.0),
            Err(_) => path,
        }
    }

    fn body(&self, exchange: &Exchange) -> Option<Vec<u8>> {
        if let Some(json) = &exchange.json {
            return Some(self.named_json(json).to_string().into_bytes());
        }
        let body = exchange.body.as_deref()?;
        let which = usize::from(!matches!(
            exchange.case.as_str(),
            "storage.ssl_certificates.replace" | "storage.ssl_certificates.replace.force-reload"
        ));
        let content = if body.contains("not a certificate") {
            "not a certificate\n".to_owned()
        } else if body.contains("certificate only") {
            self.certificates[1].split_inclusive("-----END CERTIFICATE-----\n").next().unwrap().to_owned()
        } else {
            self.certificates[which].clone()
        };
        if body == "(self-signed certificate and key)" {
            return Some(content.into_bytes());
        }
        if let Some(rest) = body.strip_prefix("(multipart, field file_upload, filename \"") {
            let name = rest.split('"').next().unwrap();
            let text = format!(
                "--xBOUNDx\r\nContent-Disposition: form-data; name=\"file_upload\"; filename=\"{name}\"\r\nContent-Type: application/octet-stream\r\n\r\n{content}\r\n--xBOUNDx--\r\n"
            );
            return Some(text.into_bytes());
        }
        Some(self.named(body).into_bytes())
    }

    /// Sends a request, and returns what the server answered.
    pub(crate) async fn send(&mut self, exchange: &Exchange) -> Answer {
        let url = format!("{}{}", self.url, self.path(exchange));
        let mut request = self.client.request(Method::from_bytes(exchange.method.as_bytes()).unwrap(), url);
        request = match (exchange.auth.as_deref(), exchange.case.as_str()) {
            (None, _) => request.basic_auth("admin", Some("adminpwd")),
            (Some("none"), _) => request,
            (_, "auth.unknown-user") => request.basic_auth("nobody", Some("adminpwd")),
            (_, "auth.malformed") => request.header("authorization", "Basic !!!"),
            (_, "auth.bearer") => request.header("authorization", "Bearer x"),
            _ => request.basic_auth("admin", Some("nope")),
        };
        for (name, value) in &exchange.headers {
            request = request.header(name, value);
        }
        if let Some(body) = self.body(exchange) {
            request = request.body(body);
        }
        if let Some(kind) = &exchange.content_type {
            request = request.header(CONTENT_TYPE, self.named(kind));
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let headers = headers(response.headers());
        let body = response.bytes().await.unwrap();
        let body = String::from_utf8_lossy(&body).into_owned();
        self.learn(exchange, &headers, &body);
        (status, headers, body)
    }

    /// Waits until the server says that no reload is due.
    pub(crate) async fn settled(&self) {
        let url = format!("{}/v3/services/haproxy/reloads", self.url);
        setpoint_testutils::wait::until("no reload is due", WITHIN, async || {
            let asked = self.client.get(&url).basic_auth("admin", Some("adminpwd")).send().await.ok()?;
            let reloads = asked.text().await.ok()?;
            (!reloads.contains("in_progress")).then_some(())
        })
        .await;
    }

    /// Takes over what recorded names stand for, and where versions stand.
    fn learn(&mut self, exchange: &Exchange, headers: &BTreeMap<String, String>, body: &str) {
        let version = |headers: &BTreeMap<String, String>| {
            headers.get("configuration-version").and_then(|version| version.parse::<i64>().ok())
        };
        if let (Some(theirs), Some(ours)) = (version(&exchange.answer.headers), version(headers))
            && theirs > 0
            && ours > 0
        {
            self.versions = (theirs, ours);
        }
        let Ok(json) = serde_json::from_str::<Json>(body) else { return };
        if let Some(recorded) = &exchange.answer.json {
            self.learn_names(recorded, &json);
        }
        match exchange.case.as_str() {
            "runtime.acl.entries.after-add" => {
                json[0]["id"].as_str().unwrap_or_default().clone_into(&mut self.entry);
            }
            "reloads.list" => json[0]["id"].as_str().unwrap_or("2000-01-01-0").clone_into(&mut self.reload),
            _ => {}
        }
    }

    fn learn_names(&mut self, recorded: &Json, ours: &Json) {
        match (recorded, ours) {
            (Json::String(name), Json::String(value)) if name.starts_with("$TX") && !name.contains(' ') => {
                self.names.entry(name.clone()).or_insert_with(|| value.clone());
            }
            (Json::Array(recorded), Json::Array(ours)) => {
                recorded.iter().zip(ours).for_each(|(recorded, ours)| self.learn_names(recorded, ours));
            }
            (Json::Object(recorded), Json::Object(ours)) => {
                for (name, recorded) in recorded {
                    if let Some(ours) = ours.get(name) {
                        self.learn_names(recorded, ours);
                    }
                }
            }
            _ => {}
        }
    }
}

fn headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let pairs =
        headers.iter().filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
    pairs.collect()
}
