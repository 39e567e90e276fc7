//! Maps, as HAProxy holds them.

use std::path::Path;

use serde_json::{Value as Json, json};
use setpoint_instance::cli::Request as CliRequest;
use setpoint_instance::runtime::{ListKind, LoadedList, Worker};

use super::{asked, lines, run_command, text};
use crate::Api;
use crate::answer::{Answer, Problem};
use crate::request::Request;
use crate::table::{Stored, Verb};

/// One entry.
struct Entry {
    id: String,
    key: String,
    value: String,
}

impl Api {
    /// The file of a map, which is what HAProxy calls it.
    fn map_file(&self, name: &str) -> String {
        let folder = self.storage.folder(Stored::Map);
        folder.path().join(name.rsplit('/').next().unwrap_or_default()).display().to_string()
    }

    pub(super) async fn runtime_map(
        &self,
        verb: Verb,
        name: &str,
        request: &Request,
    ) -> Result<Answer, Problem> {
        let worker = self.instance.worker();
        let file = self.map_file(name);
        match verb {
            Verb::List => {
                let all = request.flag("include_unmanaged")?;
                let folder = self.storage.folder(Stored::Map).path();
                let maps =
                    worker.lists(ListKind::Map).await.map_err(|why| Problem::new(404, why.to_string()))?;
                let shown = maps.iter().filter(|LoadedList { file, .. }| {
                    all && !file.is_empty() || Path::new(file).parent() == Some(folder)
                });
                let shown = shown.map(|LoadedList { id, file, description }| {
                    let name = file.rsplit('/').next().unwrap_or_default();
                    json!({ "id": id, "file": file, "description": description, "storage_name": name })
                });
                Ok(Answer::json(200, shown.collect()))
            }
            Verb::Get => {
                let maps =
                    worker.lists(ListKind::Map).await.map_err(|why| Problem::new(404, why.to_string()))?;
                let found = maps.iter().find(|list| list.file == file);
                let LoadedList { id, file, description } =
                    found.ok_or_else(|| Problem::new(404, format!("{file} not found")))?;
                Ok(Answer::json(200, json!({ "id": id, "file": file, "description": description })))
            }
            Verb::Delete => {
                let clear = CliRequest::new("clear map").word(&file)?;
                let cleared = async { run_command(&worker, &clear, |_| 404).await.map(drop) };
                if request.flag("forceDelete")? {
                    self.delete_map(name, cleared).await?;
                } else {
                    cleared.await?;
                    if request.flag("force_sync")? {
                        self.sync(&worker, name).await?;
                    }
                }
                Ok(Answer::empty(204))
            }
            _ => {
                let body = request.json()?;
                let Some(entries) = body.as_array() else {
                    return Err(Problem::new(422, "value must be an array"));
                };
                for entry in entries {
                    let (key, value) = (text(entry, "key"), text(entry, "value"));
                    let (Some(key), Some(value)) = (key, value) else {
                        return Err(Problem::new(400, "an entry needs a key and a value"));
                    };
                    is_a_key(key)?;
                    let command = CliRequest::new("add map").word(&file)?.word(key)?.word(value)?;
                    run_command(&worker, &command, |_| 400).await?;
                }
                if request.flag("force_sync")? {
                    self.sync(&worker, name).await?;
                }
                Ok(Answer::json(201, body))
            }
        }
    }

    pub(super) async fn map_entry(
        &self,
        verb: Verb,
        map: &str,
        key: &str,
        request: &Request,
    ) -> Result<Answer, Problem> {
        let worker = self.instance.worker();
        let file = self.map_file(map);
        let status =
            |why: &str| if why.contains("not found") || why.contains("Unknown map") { 404 } else { 400 };
        let answer = match verb {
            Verb::List => {
                let shown = entries(&worker, &file)
                    .await?
                    .into_iter()
                    .map(|entry| json!({ "id": entry.id, "key": entry.key, "value": entry.value }));
                return Ok(Answer::json(200, shown.collect()));
            }
            Verb::Get => {
                let entry = entries(&worker, &file)
                    .await?
                    .into_iter()
                    .find(|entry| entry.key == key || entry.id == key);
                let entry = entry.ok_or_else(|| Problem::new(404, format!("{key} not found")))?;
                return Ok(Answer::json(200, json!({ "key": entry.key, "value": entry.value })));
            }
            Verb::Create => {
                let body = request.json()?;
                let Some(key) = text(&body, "key") else {
                    return Err(Problem::new(400, "an entry needs a key"));
                };
                let Some(value) = text(&body, "value") else {
                    return Err(Problem::new(400, "an entry needs a value"));
                };
                is_a_key(key)?;
                if entries(&worker, &file).await?.iter().any(|entry| entry.key == key) {
                    return Err(Problem::new(409, format!("{key} already exists")));
                }
                let command = CliRequest::new("add map").word(&file)?.word(key)?.word(value)?;
                run_command(&worker, &command, status).await?;
                Answer::json(201, json!({ "key": key, "value": value }))
            }
            Verb::Replace => {
                let body = request.json()?;
                let Some(value) = text(&body, "value") else {
                    return Err(Problem::new(400, "an entry needs a value"));
                };
                run_command(
                    &worker,
                    &CliRequest::new("set map").word(&file)?.word(key)?.word(value)?,
                    status,
                )
                .await?;
                Answer::json(200, json!({ "key": key, "value": value }))
            }
            _ => {
                run_command(&worker, &CliRequest::new("del map").word(&file)?.word(key)?, status).await?;
                Answer::empty(204)
            }
        };
        if request.flag("force_sync")? {
            self.sync(&worker, map).await?;
        }
        Ok(answer)
    }

    /// Deletes the file of a map that HAProxy has cleared. One that the configuration names stays, and so do its entries: HAProxy
    /// would not start without it.
    async fn delete_map(
        &self,
        map: &str,
        cleared: impl Future<Output = Result<(), Problem>>,
    ) -> Result<(), Problem> {
        let folder = self.storage.folder(Stored::Map);
        if folder.find(map).is_err() {
            // HAProxy keeps a map without its file until its next reload.
            return cleared.await;
        }
        self.instance.delete_file_after(folder, map, cleared).await
    }

    /// Writes what HAProxy holds into the file, sorted by key as the original does.
    async fn sync(&self, worker: &Worker, map: &str) -> Result<(), Problem> {
        let held = async {
            let mut held = entries(worker, &self.map_file(map)).await?;
            held.sort_by(|a, b| a.key.cmp(&b.key));
            let mut text = String::new();
            for entry in &held {
                text.extend([entry.key.as_str(), " ", entry.value.as_str(), "\n"]);
            }
            Ok::<_, Problem>(text.into_bytes())
        };
        self.instance.write_file(self.storage.folder(Stored::Map), map, held).await?;
        Ok(())
    }
}

/// Refuses what would be another key, or none, in the file of a map.
fn is_a_key(key: &str) -> Result<(), Problem> {
    if key.contains(char::is_whitespace) || key.starts_with('#') {
        return Err(Problem::new(400, "the key of a map has no blanks, and does not begin with `#`"));
    }
    Ok(())
}

async fn entries(worker: &Worker, file: &str) -> Result<Vec<Entry>, Problem> {
    let answer = asked(worker, &CliRequest::new("show map").word(file)?, |_| 404).await?;
    if answer.contains("Unknown map identifier") {
        return Err(Problem::new(404, answer.trim().to_owned()));
    }
    let entries = lines(&answer).filter_map(|line| {
        let (id, rest) = line.split_once(' ')?;
        let (key, value) = rest.split_once(' ').unwrap_or((rest, ""));
        Some(Entry { id: id.to_owned(), key: key.to_owned(), value: value.to_owned() })
    });
    Ok(entries.collect())
}

/// What an entry says of itself where only its value counts.
pub(super) fn value_of(entry: &Json) -> Option<&str> {
    text(entry, "value")
}
