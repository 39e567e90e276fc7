//! Files that the configuration refers to: maps, certificates, lists of certificates, and others.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};
use setpoint_instance::blocking::run_blocking;
use setpoint_instance::instance::{FileError, Replaced};
use setpoint_instance::runtime::ListKind;
use setpoint_instance::storage::{Folder, StorageError, is_crt_list};

use crate::Api;
use crate::answer::{Answer, Problem, quoted};
use crate::certificate::described;
use crate::multipart::{Upload, upload};
use crate::request::Request;
use crate::table::{Stored, Verb};

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

    /// Removes what a process that was killed was about to write.
    pub fn remove_drafts(&self) {
        for folder in [&self.maps, &self.certificates, &self.general] {
            if let Err(error) = folder.remove_drafts() {
                tracing::warn!(%error, folder = %folder.path().display(), "a draft that was left behind could not be removed");
            }
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
fn described_file(kind: Stored, path: &Path, bytes: &[u8]) -> Result<Map<String, Json>, Problem> {
    let mut json = shown(kind, path, Some(bytes.len()));
    if kind == Stored::Certificate {
        json.extend(described(bytes).map_err(|why| Problem::new(500, why))?);
    }
    Ok(json)
}

/// How a change of a file takes effect.
pub(crate) enum Effect {
    /// It has, or nothing follows.
    Done,
    /// HAProxy has reloaded for it.
    Reloaded(&'static str),
    /// With a reload of this name, for this reason.
    Ordered(String, &'static str),
}

/// Why a change of a file that was made with `force_reload` reloads.
const FORCED: &str = "force_reload";

impl Effect {
    /// The answer, for its status with and without a reload to come.
    pub(crate) fn answer(self, ordered: u16, done: u16, answer: impl FnOnce(u16) -> Answer) -> Answer {
        match self {
            Self::Ordered(id, reason) => answer(ordered).with("reload-id", id).because(reason),
            Self::Reloaded(reason) => answer(done).because(reason),
            Self::Done => answer(done),
        }
    }
}

impl From<FileError> for Problem {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Refused(why) => {
                Self::new(400, format!("validation error: exit status 1: err {}", quoted(&why)))
            }
            FileError::Check(error) => error.into(),
            FileError::Storage(error) => error.into(),
        }
    }
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
                    Stored::Certificate => !is_crt_list(name),
                    Stored::CrtList => is_crt_list(name),
                    Stored::Map => name.rsplit_once('.').is_some_and(|(_, ending)| ending == "map"),
                    Stored::General => true,
                });
                let files = names.map(|name| Json::Object(shown(kind, &folder.path().join(name), None)));
                Ok(Answer::json(200, files.collect()))
            }
            Verb::Get if kind == Stored::Certificate => {
                let (bytes, path) = (folder.read(name)?, folder.find(name)?);
                Ok(Answer::json(200, Json::Object(described_file(kind, &path, &bytes)?)))
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
                self.instance.delete_file(folder, name).await?;
                let reloads = matches!(kind, Stored::Certificate | Stored::CrtList);
                let effect = self.effect(request, reloads.then_some("a file is deleted")).await?;
                Ok(effect.answer(202, 204, Answer::empty))
            }
            Verb::Create => self.create_file(kind, folder, request).await,
            _ => self.replace_file(kind, folder, name, request).await,
        }
    }

    async fn create_file(&self, kind: Stored, folder: &Folder, request: &Request) -> Result<Answer, Problem> {
        let Upload { name, bytes } = run_blocking(|| upload(request))?;
        if kind == Stored::Certificate {
            described(&bytes).map_err(|why| Problem::new(500, why))?;
        }
        let path = self.instance.create_file(folder, &name, &bytes).await?;
        let json = Json::Object(described_file(kind, &path, &bytes)?);
        // Nothing uses a new certificate yet; up to 3.1 the original reloads all the same.
        let reloads =
            kind == Stored::CrtList || kind == Stored::Certificate && !self.dialect.tells_runtime_errors();
        let effect = self.effect(request, reloads.then_some("a file is created")).await?;
        Ok(effect.answer(202, 201, |status| Answer::json(status, json)))
    }

    async fn replace_file(
        &self,
        kind: Stored,
        folder: &Folder,
        name: &str,
        request: &Request,
    ) -> Result<Answer, Problem> {
        let bytes = if kind == Stored::General {
            run_blocking(|| upload(request))?.bytes
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
        let json = Json::Object(described_file(kind, &folder.find(name)?, &bytes)?);
        let is_asked = !request.flag("skip_reload")? && !request.flag("force_reload")?;
        let replaced = self.instance.replace_file(folder, name, &bytes).await?;
        let (path, before) = (replaced.path.clone(), replaced.before.clone());
        let is_applied = is_asked
            && match kind {
                Stored::Certificate => {
                    self.dialect.tells_runtime_errors()
                        && self.instance.tell_ssl_file("cert", &path, &bytes).await
                }
                Stored::Map => self.instance.tell_entries(ListKind::Map, &path, &bytes).await,
                Stored::General => self.instance.tell_general(&path, &bytes).await,
                Stored::CrtList => self.set_crt_list(&path, &before, &bytes).await,
            };
        let effect = settle(replaced, request, is_applied).await?;
        let with_body = matches!(kind, Stored::Certificate | Stored::CrtList);
        Ok(if with_body {
            effect.answer(202, 200, |status| Answer::json(status, json))
        } else {
            effect.answer(202, 204, Answer::empty)
        })
    }

    /// What follows a change of files that HAProxy can't be told of, as the request says.
    async fn effect(&self, request: &Request, reason: Option<&'static str>) -> Result<Effect, Problem> {
        if request.flag("skip_reload")? {
            return Ok(Effect::Done);
        }
        if request.flag("force_reload")? {
            let reloaded = self.instance.reload().await;
            return reloaded.map(|_| Effect::Reloaded(FORCED)).map_err(|why| failed_reload(&why));
        }
        Ok(reason.map_or(Effect::Done, |reason| Effect::Ordered(self.instance.order_reload(), reason)))
    }
}

fn failed_reload(why: &str) -> Problem {
    Problem::new(400, format!("Reload failed: {why}"))
}

/// What follows the replacement of a file, as the request says, and whether HAProxy was told of it.
pub(crate) async fn settle(
    replaced: Replaced<'_>,
    request: &Request,
    is_applied: bool,
) -> Result<Effect, Problem> {
    if request.flag("force_reload")? && !request.flag("skip_reload")? {
        return replaced.reload().await.map(|_| Effect::Reloaded(FORCED)).map_err(|why| failed_reload(&why));
    }
    if is_applied || request.flag("skip_reload")? {
        replaced.done();
        return Ok(Effect::Done);
    }
    Ok(Effect::Ordered(replaced.order_reload(), "HAProxy can't be told what the file holds"))
}
