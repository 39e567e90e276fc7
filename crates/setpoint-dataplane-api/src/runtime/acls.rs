//! Lists of ACLs, as HAProxy holds them.

use serde_json::{Value as Json, json};
use setpoint_instance::cli::Request as CliRequest;
use setpoint_instance::runtime::{ListEntry, ListKind, LoadedList, Worker};

use super::maps::value_of;
use super::{asked, lines, missing, run_command};
use crate::Api;
use crate::answer::{Answer, Problem};
use crate::request::Request;
use crate::table::Verb;

impl Api {
    pub(super) async fn runtime_acl(&self, verb: Verb, id: &str) -> Result<Answer, Problem> {
        let lists = self.instance.worker().lists(ListKind::Acl).await;
        let lists = lists.map_err(|why| Problem::new(500, why.to_string()))?.into_iter();
        let shown = lists.map(|LoadedList { id, file, description }| {
            // One that has no file is called after what it matches: `acl 'src' file …`.
            let word = description.split('\'').nth(1).unwrap_or_default().to_owned();
            let name = if file.is_empty() { word } else { file };
            json!({ "id": id, "storage_name": name, "description": description })
        });
        let all: Vec<Json> = shown.collect();
        if verb == Verb::List {
            return Ok(Answer::json(200, Json::Array(all)));
        }
        let found = all.into_iter().find(|acl| acl["id"] == id || acl["storage_name"] == id);
        found.map(|acl| Answer::json(200, acl)).ok_or_else(|| missing(self, &format!("ACL file {id}")))
    }

    pub(super) async fn acl_entry(
        &self,
        verb: Verb,
        acl: &str,
        id: &str,
        request: &Request,
    ) -> Result<Answer, Problem> {
        let worker = self.instance.worker();
        let identifier =
            if acl.bytes().all(|byte| byte.is_ascii_digit()) { format!("#{acl}") } else { acl.to_owned() };
        match verb {
            Verb::List => {
                let entries = self.entries(&worker, &identifier).await?;
                Ok(Answer::json(
                    200,
                    entries.iter().map(|(id, value)| json!({ "id": id, "value": value })).collect(),
                ))
            }
            Verb::Get => {
                let entries = self.entries(&worker, &identifier).await?;
                let found = entries.into_iter().find(|(held, _)| held == id);
                let (_, value) = found.ok_or_else(|| missing(self, &format!("entry {id} of ACL {acl}")))?;
                Ok(Answer::json(200, json!({ "value": value })))
            }
            Verb::Create => {
                let body = request.json()?;
                let Some(value) = value_of(&body) else {
                    return Err(Problem::new(400, "an entry needs a value"));
                };
                if self.entries(&worker, &identifier).await?.iter().any(|(_, held)| held == value) {
                    let status = if self.dialect.tells_runtime_errors() { 409 } else { 500 };
                    return Err(Problem::new(
                        status,
                        format!("cannot add ACL files entry for {acl}: already exists"),
                    ));
                }
                run_command(&worker, &CliRequest::new("add acl").word(&identifier)?.word(value)?, |_| 500)
                    .await?;
                Ok(Answer::json(201, json!({ "value": value })))
            }
            Verb::Delete => {
                let command = CliRequest::new("del acl").word(&identifier)?.word(&format!("#{id}"))?;
                let status = if self.dialect.tells_runtime_errors() { 404 } else { 500 };
                run_command(&worker, &command, |_| status).await?;
                Ok(Answer::empty(204))
            }
            _ => self.replace_entries(&worker, &identifier, request).await,
        }
    }

    /// Puts all entries in the place of what is there, at once.
    async fn replace_entries(
        &self,
        worker: &Worker,
        identifier: &str,
        request: &Request,
    ) -> Result<Answer, Problem> {
        let body = request.json()?;
        let Some(entries) = body.as_array() else { return Err(Problem::new(422, "value must be an array")) };
        let values = entries
            .iter()
            .map(|entry| value_of(entry).ok_or_else(|| Problem::new(400, "an entry needs a value")));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let values = values.into_iter().map(|value| ListEntry { key: value.to_owned(), value: None });
        let values: Vec<ListEntry> = values.collect();
        let replaced = worker.replace_entries(ListKind::Acl, identifier, &values).await;
        replaced.map_err(|why| Problem::new(400, why.to_string()))?;
        Ok(Answer::json(201, body))
    }

    async fn entries(&self, worker: &Worker, identifier: &str) -> Result<Vec<(String, String)>, Problem> {
        let status = if self.dialect.tells_runtime_errors() { 404 } else { 500 };
        let answer = asked(worker, &CliRequest::new("show acl").word(identifier)?, |_| status).await?;
        let entries = lines(&answer).filter_map(|line| line.split_once(' '));
        Ok(entries.map(|(id, value)| (id.to_owned(), value.to_owned())).collect())
    }
}
