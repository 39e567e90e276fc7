//! What a running HAProxy holds: asked and told on its socket.

mod acls;
mod info;
mod maps;
mod servers;
mod ssl;
mod tables;

use serde_json::Value as Json;
use setpoint_instance::cli::{Request as CliRequest, RequestError, SocketError};
use setpoint_instance::runtime::{Reply, ServersError, Worker};

use crate::Api;
use crate::answer::{Answer, Problem};
use crate::request::Request;
use crate::table::{Running, Verb};

impl From<SocketError> for Problem {
    fn from(error: SocketError) -> Self {
        Self::new(500, error.to_string())
    }
}

impl From<RequestError> for Problem {
    fn from(error: RequestError) -> Self {
        Self::new(400, error.to_string())
    }
}

impl From<ServersError> for Problem {
    fn from(error: ServersError) -> Self {
        match error {
            ServersError::Name(error) => error.into(),
            error => Self::new(500, error.to_string()),
        }
    }
}

/// Tells HAProxy something, and returns what it printed. The status of a refusal depends on what it says.
async fn run_command(
    worker: &Worker,
    request: &CliRequest,
    refusal: impl Fn(&str) -> u16,
) -> Result<String, Problem> {
    match worker.tell(request).await? {
        Reply::Done(answer) => Ok(answer),
        Reply::Refused(why) => Err(refused(request, &why, refusal(&why))),
    }
}

/// Asks HAProxy for something.
async fn asked(
    worker: &Worker,
    request: &CliRequest,
    refusal: impl Fn(&str) -> u16,
) -> Result<String, Problem> {
    match worker.ask(request).await? {
        Reply::Done(answer) => Ok(answer),
        Reply::Refused(why) => Err(refused(request, &why, refusal(&why))),
    }
}

fn refused(request: &CliRequest, why: &str, status: u16) -> Problem {
    Problem::new(status, format!("HAProxy refused `{request}`: {why}"))
}

/// Something that is not there; up to 3.1 the original takes that for an error of its own.
fn missing(api: &Api, what: &str) -> Problem {
    Problem::new(if api.dialect.tells_runtime_errors() { 404 } else { 500 }, format!("{what}: not found"))
}

/// Lines of an answer that are neither empty nor comments.
fn lines(answer: &str) -> impl Iterator<Item = &str> {
    answer.lines().map(str::trim_end).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn text<'j>(json: &'j Json, name: &str) -> Option<&'j str> {
    json.get(name).and_then(Json::as_str).filter(|text| !text.is_empty())
}

impl Api {
    pub(crate) async fn runtime(
        &self,
        kind: Running,
        verb: Verb,
        names: &[String],
        request: &Request,
    ) -> Result<Answer, Problem> {
        let name = |at: usize| names.get(at).map(String::as_str).unwrap_or_default();
        match kind {
            Running::Info => self.process_info().await,
            Running::Server => self.runtime_server(verb, name(0), name(1), request).await,
            Running::Map => self.runtime_map(verb, name(0), request).await,
            Running::MapEntry => self.map_entry(verb, name(0), name(1), request).await,
            Running::Acl => self.runtime_acl(verb, name(0)).await,
            Running::AclEntry => self.acl_entry(verb, name(0), name(1), request).await,
            Running::StickTable => self.stick_table(verb, name(0)).await,
            Running::StickTableEntry => self.stick_table_entry(verb, name(0), request).await,
            Running::Certificate | Running::CaFile | Running::CrlFile => {
                self.ssl_file(kind, verb, name(0), request).await
            }
            Running::CaFileEntry => self.ca_entry(verb, name(0), name(1), request).await,
            Running::CrtList => self.crt_lists().await,
            Running::CrtListEntry => self.crt_list_entry(verb, request).await,
            Running::Acme => self.acme(verb, request).await,
        }
    }
}
