//! Servers, as HAProxy runs them.

use serde_json::{Value as Json, json};
use setpoint_haproxy::model::{Object, ObjectKind};
use setpoint_haproxy::text::Document;
use setpoint_instance::cli::Request as CliRequest;
use setpoint_instance::runtime::{ServerState, Worker};

use super::{missing, run_command, text};
use crate::Api;
use crate::answer::{Answer, Problem};
use crate::request::Request;
use crate::table::Verb;

/// Columns that are numbers, by what the API calls them.
const NUMBERS: [(&str, &str); 15] = [
    ("agent_port", "srv_agent_port"),
    ("agent_state", "srv_agent_state"),
    ("backend_forced_id", "bk_f_forced_id"),
    ("backend_id", "be_id"),
    ("check_health", "srv_check_health"),
    ("check_port", "srv_check_port"),
    ("check_result", "srv_check_result"),
    ("check_state", "srv_check_state"),
    ("check_status", "srv_check_status"),
    ("forced_id", "srv_f_forced_id"),
    ("iweight", "srv_iweight"),
    ("last_time_change", "srv_time_since_last_change"),
    ("uweight", "srv_uweight"),
    ("weight", "srv_uweight"),
    ("port", "srv_port"),
];
/// Columns that are texts.
const TEXTS: [(&str, &str); 4] = [
    ("agent_addr", "srv_agent_addr"),
    ("check_addr", "srv_check_addr"),
    ("fqdn", "srv_fqdn"),
    ("srvrecord", "srvrecord"),
];

impl Api {
    fn shown(&self, server: &ServerState) -> Json {
        let operational = match server.number("srv_op_state") {
            0 => "down",
            3 => "stopping",
            _ => "up",
        };
        let mut json = json!({
            "address": server.column("srv_addr"),
            "admin_state": server.admin_state().word(),
            "id": server.column("srv_id"),
            "name": server.name,
            "operational_state": operational,
            "port": server.number("srv_port"),
        });
        if let (true, Some(properties)) = (self.dialect.is_new(), json.as_object_mut()) {
            properties.insert("backend_name".to_owned(), Json::from(server.backend.as_str()));
            properties.insert("use_ssl".to_owned(), Json::from(server.number("srv_use_ssl") == 1));
            for (name, column) in NUMBERS {
                properties.insert(name.to_owned(), Json::from(server.number(column)));
            }
            for (name, column) in TEXTS {
                properties.insert(name.to_owned(), Json::from(server.column(column)));
            }
        }
        json
    }

    pub(super) async fn runtime_server(
        &self,
        verb: Verb,
        backend: &str,
        name: &str,
        request: &Request,
    ) -> Result<Answer, Problem> {
        let worker = self.instance.worker();
        match verb {
            Verb::List => {
                let servers = worker.servers(Some(backend)).await.ok().flatten();
                let servers = servers.ok_or_else(|| missing(self, &format!("no data for {backend}")))?;
                Ok(Answer::json(200, servers.iter().map(|server| self.shown(server)).collect()))
            }
            Verb::Create => add(self, &worker, backend, request).await,
            Verb::Get => {
                let server = find(&worker, backend, name).await?;
                let server = server
                    .ok_or_else(|| Problem::new(404, format!("no data for {backend}/{name}: not found")))?;
                Ok(Answer::json(200, self.shown(&server)))
            }
            Verb::Delete => {
                if find(&worker, backend, name).await?.is_none() {
                    return Err(Problem::new(404, format!("no data for {backend}/{name}: not found")));
                }
                let path = format!("{backend}/{name}");
                let state = CliRequest::new("set server").word(&path)?.word("state")?.word("maint")?;
                run_command(&worker, &state, |_| 400).await?;
                run_command(&worker, &CliRequest::new("del server").word(&path)?, |_| 400).await?;
                Ok(Answer::empty(204))
            }
            _ => self.set(&worker, backend, name, request).await,
        }
    }

    async fn set(
        &self,
        worker: &Worker,
        backend: &str,
        name: &str,
        request: &Request,
    ) -> Result<Answer, Problem> {
        let body = request.json()?;
        let states = [
            ("admin_state", "state", ["ready", "maint", "drain"]),
            ("operational_state", "health", ["up", "down", "stopping"]),
        ];
        for (property, _, known) in states {
            if let Some(word) = text(&body, property).filter(|word| !known.contains(word)) {
                tracing::debug!(word, "no state of a server");
                let message = format!("{property} in body should be one of [{}]", known.join(" "));
                let problem = Problem::new(422, message);
                return Err(if self.dialect.is_new() { problem } else { problem.coded(606) });
            }
        }
        if find(worker, backend, name).await?.is_none() {
            return Err(missing(self, &format!("no data for {backend}/{name}")));
        }
        for (property, command, _) in states {
            if let Some(word) = text(&body, property) {
                let path = format!("{backend}/{name}");
                let request = CliRequest::new("set server").word(&path)?.word(command)?.word(word)?;
                run_command(worker, &request, |_| 400).await?;
            }
        }
        match find(worker, backend, name).await? {
            Some(server) => Ok(Answer::json(200, self.shown(&server))),
            None => Err(missing(self, &format!("no data for {backend}/{name}"))),
        }
    }
}

async fn find(worker: &Worker, backend: &str, name: &str) -> Result<Option<ServerState>, Problem> {
    let servers = worker.servers(Some(backend)).await?.unwrap_or_default();
    Ok(servers.into_iter().find(|server| server.name == name))
}

async fn add(api: &Api, worker: &Worker, backend: &str, request: &Request) -> Result<Answer, Problem> {
    let body = request.json()?;
    let Some(name) = text(&body, "name") else {
        return Err(Problem::new(400, "the new server must have a name"));
    };
    let cx = api.instance.context();
    let (object, _) = Object::from_json(ObjectKind::Server, &body, cx)?;
    let mut line = Vec::new();
    object.write(cx, &mut line)?;
    let document = Document::parse(&[b"backend b\n  ", line.as_slice()].concat());
    let mut command = CliRequest::new("add server").word(&format!("{backend}/{name}"))?;
    let lines = document.sections().iter().flat_map(|section| section.lines());
    let words =
        lines.flat_map(|line| line.words().map(|word| word.to_str_lossy().into_owned()).collect::<Vec<_>>());
    for word in words.skip(2) {
        command = command.word(&word)?;
    }
    let status = |why: &str| match why {
        why if why.contains("Already exists") => 409,
        why if why.contains("No such backend") => 404,
        _ => 400,
    };
    run_command(worker, &command, status).await?;
    Ok(Answer::json(201, body))
}
