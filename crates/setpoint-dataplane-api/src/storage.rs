//! Files that the configuration refers to: maps, certificates, lists of certificates, and others.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};
use setpoint_instance::cli::Request as CliRequest;
use setpoint_instance::runtime::Told;
use setpoint_instance::storage::{Folder, StorageError};

use crate::Api;
use crate::answer::{Answer, Problem};
use crate::certificate::described;
use crate::multipart::{Upload, upload};
use crate::request::Request;
use crate::table::{Stored, Verb};

/// The endings of lists of certificates, which share a folder with certificates.
const LISTS: [&str; 3] = ["txt", "crtlist", "list"];

/// Where files are kept.
#[derive(Clone, Debug)]
pub struct Storage {
    maps: Folder,
    certificates: Folder,
    general: Folder,
}

impl Storage {
    /// Folders for maps, for certificates and their lists, and for all else.
    pub fn new(
        maps: impl Into<PathBuf>,
        certificates: impl Into<PathBuf>,
        general: impl Into<PathBuf>,
    ) -> Self {
        Self {
            maps: Folder::new(maps).ending("map"),
            certificates: Folder::new(certificates),
            general: Folder::new(general),
        }
    }

    pub(crate) fn folder(&self, kind: Stored) -> &Folder {
        match kind {
            Stored::Map => &self.maps,
            Stored::General => &self.general,
            Stored::Certificate | Stored::CrtList => &self.certificates,
        }
    }
}

impl From<StorageError> for Problem {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Missing { .. } => Self::new(404, format!("missing object: {error}")),
            StorageError::Exists(_) => Self::new(409, format!("object already exists: {error}")),
            StorageError::InUse { .. } => Self::new(409, error.to_string()),
            StorageError::Name(_) => Self::new(400, error.to_string()),
            StorageError::Step { .. } | StorageError::Write(_) => Self::new(500, error.to_string()),
        }
    }
}

fn is_list(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| LISTS.contains(&ending))
}

/// What is told of a file.
fn shown(kind: Stored, path: &Path, size: Option<usize>) -> Map<String, Json> {
    let description = match (kind, size) {
        (Stored::Map, Some(_)) => "managed but not loaded map file (no runtime ID)",
        (Stored::Map, None) => "managed map file",
        (Stored::General, _) => "managed general use file",
        (Stored::Certificate, _) => "managed SSL file",
        (Stored::CrtList, _) => "managed certificate list",
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut json = Map::new();
    json.insert("description".to_owned(), Json::from(description));
    json.insert("file".to_owned(), Json::from(path.display().to_string()));
    json.insert("storage_name".to_owned(), Json::from(name.as_ref()));
    if let Some(size) = size {
        json.insert("size".to_owned(), Json::from(size));
    }
    json
}

/// What is told of a file with what it holds.
fn told(kind: Stored, path: &Path, bytes: &[u8]) -> Result<Map<String, Json>, Problem> {
    let mut json = shown(kind, path, Some(bytes.len()));
    if kind == Stored::Certificate {
        json.extend(described(bytes).map_err(|why| Problem::new(500, why))?);
    }
    Ok(json)
}

/// How a change of a file takes effect.
enum Effect {
    /// It has, or nothing follows.
    Done,
    /// With a reload of this name.
    Ordered(String),
}

impl Api {
    pub(crate) async fn storage(
        &self,
        kind: Stored,
        verb: Verb,
        name: &str,
        request: &Request,
    ) -> Result<Answer, Problem> {
        let folder = self.storage.folder(kind);
        match verb {
            Verb::List => {
                let names = folder.list()?;
                let names = names.iter().filter(|name| match kind {
                    Stored::Certificate => !is_list(name),
                    Stored::CrtList => is_list(name),
                    Stored::Map => name.rsplit_once('.').is_some_and(|(_, ending)| ending == "map"),
                    Stored::General => true,
                });
                let files = names.map(|name| Json::Object(shown(kind, &folder.path().join(name), None)));
                Ok(Answer::json(200, files.collect()))
            }
            Verb::Get if kind == Stored::Certificate => {
                let (bytes, path) = (folder.read(name)?, folder.find(name)?);
                Ok(Answer::json(200, Json::Object(told(kind, &path, &bytes)?)))
            }
            Verb::Get => {
                let bytes = folder.read(name).map_err(|error| {
                    let problem = Problem::from(error);
                    if self.dialect.is_new() {
                        problem
                    } else {
                        problem.with("content-type", "application/octet-stream")
                    }
                })?;
                Ok(Answer::bytes(200, "application/octet-stream", bytes))
            }
            Verb::Delete => {
                let text = self.instance.read(|configuration| configuration.print());
                folder.delete(name, &text)?;
                let reloads = matches!(kind, Stored::Certificate | Stored::CrtList);
                Ok(match self.effect(request, reloads).await? {
                    Effect::Ordered(id) => Answer::empty(202).with("reload-id", id),
                    Effect::Done => Answer::empty(204),
                })
            }
            Verb::Create => self.create_file(kind, folder, request).await,
            _ => self.replace_file(kind, folder, name, request).await,
        }
    }

    async fn create_file(&self, kind: Stored, folder: &Folder, request: &Request) -> Result<Answer, Problem> {
        let Upload { name, bytes } = upload(request)?;
        if kind == Stored::Certificate {
            described(&bytes).map_err(|why| Problem::new(500, why))?;
        }
        let path = folder.create(&name, &bytes)?;
        let json = Json::Object(told(kind, &path, &bytes)?);
        // Nothing uses a new certificate yet; up to 3.1 the original reloads all the same.
        let reloads =
            kind == Stored::CrtList || kind == Stored::Certificate && !self.dialect.tells_runtime_errors();
        Ok(match self.effect(request, reloads).await? {
            Effect::Ordered(id) => Answer::json(202, json).with("reload-id", id),
            Effect::Done => Answer::json(201, json),
        })
    }

    async fn replace_file(
        &self,
        kind: Stored,
        folder: &Folder,
        name: &str,
        request: &Request,
    ) -> Result<Answer, Problem> {
        let bytes = if kind == Stored::General {
            upload(request)?.bytes
        } else {
            if self.dialect.is_new() {
                request.expects(&["text/plain"])?;
            } else {
                request.expects(&["text/plain", "application/json"])?;
            }
            request.has_body()?;
            request.body.clone()
        };
        folder.find(name)?;
        if kind == Stored::Certificate {
            described(&bytes).map_err(|why| Problem::new(500, why))?;
        }
        let path = folder.replace(name, &bytes)?;
        let is_set = kind == Stored::Certificate
            && self.dialect.tells_runtime_errors()
            && !request.flag("skip_reload")?
            && !request.flag("force_reload")?
            && self.set_certificate(&path, &bytes).await;
        let effect = if is_set { Effect::Done } else { self.effect(request, true).await? };
        let json = Json::Object(told(kind, &path, &bytes)?);
        let with_body = matches!(kind, Stored::Certificate | Stored::CrtList);
        Ok(match effect {
            Effect::Ordered(id) if with_body => Answer::json(202, json).with("reload-id", id),
            Effect::Ordered(id) => Answer::empty(202).with("reload-id", id),
            Effect::Done if with_body => Answer::json(200, json),
            Effect::Done => Answer::empty(204),
        })
    }

    /// What follows a change of a file, as the request says.
    async fn effect(&self, request: &Request, reloads: bool) -> Result<Effect, Problem> {
        if request.flag("skip_reload")? {
            return Ok(Effect::Done);
        }
        if request.flag("force_reload")? {
            let reloaded = self.instance.reload().await;
            return reloaded
                .map(|_| Effect::Done)
                .map_err(|why| Problem::new(400, format!("Reload failed: {why}")));
        }
        Ok(if reloads { Effect::Ordered(self.instance.order_reload()) } else { Effect::Done })
    }

    /// Tells the running HAProxy another certificate. Returns whether it uses it now; it does not if it never loaded the file,
    /// or if the text does not fit into its buffer.
    async fn set_certificate(&self, path: &Path, bytes: &[u8]) -> bool {
        let worker = self.instance.worker();
        let Ok(text) = std::str::from_utf8(bytes) else { return false };
        if !worker.takes_payloads() {
            return false;
        }
        let name = path.display().to_string();
        let text = without_empty_lines(text);
        let set = CliRequest::new("set ssl cert").word(&name).and_then(|set| set.payload(&text));
        let (Ok(set), Ok(commit), Ok(abort)) = (
            set,
            CliRequest::new("commit ssl cert").word(&name),
            CliRequest::new("abort ssl cert").word(&name),
        ) else {
            return false;
        };
        match worker.tell(&set).await {
            Ok(Told::Done(answer)) if answer.contains("Transaction") => {}
            _ => return false,
        }
        match worker.tell(&commit).await {
            Ok(Told::Done(answer)) if answer.contains("Success") => true,
            _ => {
                let _ = worker.tell(&abort).await;
                false
            }
        }
    }

    /// The lines of a list of certificates.
    pub(crate) fn crt_list_entries(
        &self,
        verb: Verb,
        name: &str,
        request: &Request,
    ) -> Result<Answer, Problem> {
        let folder = self.storage.folder(Stored::CrtList);
        let text = String::from_utf8_lossy(&folder.read(name)?).into_owned();
        match verb {
            Verb::List => Ok(Answer::json(200, text.lines().filter_map(entry).collect())),
            Verb::Create => {
                let body = request.json()?;
                let Some(line) = line_of(&body) else {
                    return Err(Problem::new(422, "file in body is required"));
                };
                let joint = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
                folder.replace(name, format!("{text}{joint}{line}\n").as_bytes())?;
                Ok(Answer::json(201, body))
            }
            _ => {
                let certificate = request.required("certificate")?;
                let number = request.number("line_number")?.and_then(|number| usize::try_from(number).ok());
                let is_it = |(at, line): &(usize, &str)| {
                    number.is_none_or(|number| number == at + 1)
                        && line.split_ascii_whitespace().next() == Some(certificate)
                };
                let Some((at, _)) = text.lines().enumerate().find(is_it) else {
                    return Err(Problem::new(
                        404,
                        format!("missing object: entry {certificate} does not exist"),
                    ));
                };
                let kept = text.lines().enumerate().filter(|(line, _)| *line != at);
                let kept: Vec<&str> = kept.map(|(_, line)| line).collect();
                let end = if kept.is_empty() { "" } else { "\n" };
                folder.replace(name, format!("{}{end}", kept.join("\n")).as_bytes())?;
                Ok(Answer::empty(204))
            }
        }
    }
}

/// A line of a list: a file, options in brackets, and names.
pub(crate) fn entry(line: &str) -> Option<Json> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let (file, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let (options, names) = match rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((options, names)) => (options.trim(), names),
        None => ("", rest),
    };
    let names: Vec<&str> = names.split_ascii_whitespace().collect();
    let mut json = json!({ "file": file });
    if let Some(properties) = json.as_object_mut() {
        if !options.is_empty() {
            properties.insert("ssl_bind_config".to_owned(), Json::from(options));
        }
        if !names.is_empty() {
            properties.insert("sni_filter".to_owned(), Json::from(names));
        }
    }
    Some(json)
}

/// The line of an entry.
pub(crate) fn line_of(json: &Json) -> Option<String> {
    let mut line = json.get("file")?.as_str().filter(|file| !file.is_empty())?.to_owned();
    if let Some(options) =
        json.get("ssl_bind_config").and_then(Json::as_str).filter(|options| !options.is_empty())
    {
        line = format!("{line} [{options}]");
    }
    for name in json.get("sni_filter").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str)
    {
        line = format!("{line} {name}");
    }
    (!line.contains(['\n', '\r'])).then_some(line)
}

/// A payload has no empty lines.
pub(crate) fn without_empty_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    format!("{}\n", lines.join("\n"))
}
