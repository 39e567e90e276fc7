//! Certificates, authorities, revocation lists and lists of certificates, as HAProxy holds them.

use serde_json::{Map, Value as Json, json};
use setpoint_instance::cli::Request as CliRequest;
use setpoint_instance::instance::without_empty_lines;
use setpoint_instance::runtime::{Reply, Worker};

use super::{asked, lines, run_command};
use crate::Api;
use crate::answer::{Answer, Problem};
use crate::crt_list::{entry, line_of};
use crate::multipart::upload;
use crate::request::Request;
use crate::table::{Running, Verb};

/// What HAProxy calls a kind of file in its commands: to show, to make, to set, to commit, to abort, to delete.
fn commands(kind: Running) -> [CliRequest; 6] {
    match kind {
        Running::CaFile | Running::CaFileEntry => [
            CliRequest::new("show ssl ca-file"),
            CliRequest::new("new ssl ca-file"),
            CliRequest::new("set ssl ca-file"),
            CliRequest::new("commit ssl ca-file"),
            CliRequest::new("abort ssl ca-file"),
            CliRequest::new("del ssl ca-file"),
        ],
        Running::CrlFile => [
            CliRequest::new("show ssl crl-file"),
            CliRequest::new("new ssl crl-file"),
            CliRequest::new("set ssl crl-file"),
            CliRequest::new("commit ssl crl-file"),
            CliRequest::new("abort ssl crl-file"),
            CliRequest::new("del ssl crl-file"),
        ],
        _ => [
            CliRequest::new("show ssl cert"),
            CliRequest::new("new ssl cert"),
            CliRequest::new("set ssl cert"),
            CliRequest::new("commit ssl cert"),
            CliRequest::new("abort ssl cert"),
            CliRequest::new("del ssl cert"),
        ],
    }
}

/// Names of properties, and how HAProxy begins the lines that say them.
const PROPERTIES: [(&str, &str); 10] = [
    ("algorithm", "Algorithm"),
    ("chain_issuer", "Chain Issuer"),
    ("chain_subject", "Chain Subject"),
    ("issuers", "Issuer"),
    ("not_after", "notAfter"),
    ("not_before", "notBefore"),
    ("serial", "Serial"),
    ("sha1_finger_print", "SHA1 FingerPrint"),
    ("status", "Status"),
    ("subject", "Subject"),
];

/// A time such as `Nov 15 20:34:42 2026 GMT` as the API writes it; as it is, if it is none.
fn written(text: &str) -> String {
    let text = text.trim();
    let parsed = jiff::civil::DateTime::strptime("%b %d %H:%M:%S %Y GMT", text);
    parsed.map_or_else(|_| text.to_owned(), |time| format!("{time}.000Z"))
}

/// What HAProxy tells of a certificate.
fn described(answer: &str) -> Map<String, Json> {
    let mut json = Map::new();
    for line in answer.lines() {
        let Some((name, value)) = line.split_once(": ") else { continue };
        let value = match name {
            "notAfter" | "notBefore" => written(value),
            _ => value.to_owned(),
        };
        if name == "Filename" {
            json.insert("storage_name".to_owned(), Json::from(value));
        } else if name == "Subject Alternative Name" {
            json.insert("subject_alternative_names".to_owned(), Json::from(value));
        } else if let Some((property, _)) = PROPERTIES.iter().find(|(_, held)| *held == name)
            && !value.trim().is_empty()
        {
            json.entry((*property).to_owned()).or_insert_with(|| Json::from(value));
        }
    }
    json
}

impl Api {
    pub(super) async fn ssl_file(
        &self,
        kind: Running,
        verb: Verb,
        name: &str,
        request: &Request,
    ) -> Result<Answer, Problem> {
        let worker = self.instance.worker();
        let [show, new, .., delete] = commands(kind);
        let missing =
            |why: &str| if why.contains("ot found") || why.contains("doesn't exist") { 404 } else { 400 };
        match verb {
            Verb::List => {
                let answer = asked(&worker, &show, |_| 500).await?;
                let shown = lines(&answer).map(|line| {
                    let (file, count) =
                        line.split_once(" - ").map_or((line, None), |(file, count)| (file, Some(count)));
                    let short = file.rsplit('/').next().unwrap_or_default();
                    match (kind, count) {
                        (Running::CaFile, count) => {
                            json!({ "storage_name": file, "count": count.unwrap_or_default() })
                        }
                        _ => json!({ "storage_name": file, "description": short }),
                    }
                });
                Ok(Answer::json(200, shown.collect()))
            }
            Verb::Get => {
                let answer = asked(&worker, &show.word(name)?, |_| 404).await?;
                if kind == Running::CrlFile {
                    return Ok(Answer::json(200, json!([described(&answer)])));
                }
                let mut json = described(&answer);
                if kind == Running::CaFile {
                    let count = answer.lines().filter(|line| line.starts_with("Certificate #")).count();
                    json = Map::new();
                    json.insert("storage_name".to_owned(), Json::from(name));
                    json.insert("count".to_owned(), Json::from(format!("{count} certificate(s)")));
                }
                Ok(Answer::json(200, Json::Object(json)))
            }
            Verb::Create => {
                let file = upload(request)?;
                let status = |why: &str| if why.contains("already exist") { 409 } else { 400 };
                run_command(&worker, &new.word(&file.name)?, status).await?;
                self.fill(&worker, kind, &file.name, &file.bytes).await?;
                Ok(Answer::empty(201))
            }
            Verb::Delete => {
                run_command(&worker, &delete.word(name)?, |_| 500).await?;
                Ok(Answer::empty(204))
            }
            _ => {
                let file = upload(request)?;
                let shown = asked(&worker, &show.word(name)?, missing).await;
                shown?;
                self.fill(&worker, kind, name, &file.bytes).await?;
                Ok(Answer::empty(200))
            }
        }
    }

    /// Sets what a file holds, and commits it.
    async fn fill(&self, worker: &Worker, kind: Running, name: &str, bytes: &[u8]) -> Result<(), Problem> {
        let [_, _, set, commit, abort, _] = commands(kind);
        let text = String::from_utf8_lossy(bytes);
        let text = without_empty_lines(&text);
        run_command(worker, &set.word(name)?.payload(&text)?, |_| 400).await?;
        let committed = run_command(worker, &commit.word(name)?, |_| 400).await;
        if committed.is_err() {
            let _ = worker.tell(&abort.word(name)?).await;
        }
        committed.map(|_| ())
    }

    pub(super) async fn ca_entry(
        &self,
        verb: Verb,
        name: &str,
        index: &str,
        request: &Request,
    ) -> Result<Answer, Problem> {
        let worker = self.instance.worker();
        if verb == Verb::Create {
            let file = upload(request)?;
            let text = String::from_utf8_lossy(&file.bytes);
            let text = without_empty_lines(&text);
            let add = CliRequest::new("add ssl ca-file").word(name)?.payload(&text)?;
            run_command(&worker, &add, |why| if why.contains("ot found") { 404 } else { 400 }).await?;
            let committed =
                run_command(&worker, &CliRequest::new("commit ssl ca-file").word(name)?, |_| 400).await;
            if committed.is_err() {
                // What was begun and not ended would be in the way of all others.
                let _ = worker.tell(&CliRequest::new("abort ssl ca-file").word(name)?).await;
            }
            committed?;
            return Ok(Answer::json(201, json!({ "storage_name": name })));
        }
        let show = CliRequest::new("show ssl ca-file").word(&format!("{name}:{index}"))?;
        let answer = asked(&worker, &show, |_| 404).await?;
        Ok(Answer::json(200, Json::Object(described(&answer))))
    }

    pub(super) async fn crt_lists(&self) -> Result<Answer, Problem> {
        let answer = asked(&self.instance.worker(), &CliRequest::new("show ssl crt-list"), |_| 500).await?;
        Ok(Answer::json(200, lines(&answer).map(|file| json!({ "file": file })).collect()))
    }

    pub(super) async fn crt_list_entry(&self, verb: Verb, request: &Request) -> Result<Answer, Problem> {
        let (worker, name) = (self.instance.worker(), request.required("name")?);
        match verb {
            Verb::List => {
                let answer =
                    asked(&worker, &CliRequest::new("show ssl crt-list -n").word(name)?, |_| 404).await?;
                // Each line says where it stands: `file:line [options] names`.
                let entries = lines(&answer).filter_map(|line| {
                    let mut json = entry(line)?;
                    let file = json.get("file")?.as_str()?.to_owned();
                    if let (Some((file, number)), Some(properties)) =
                        (file.rsplit_once(':'), json.as_object_mut())
                    {
                        properties.insert("file".to_owned(), Json::from(file));
                        properties.insert("line_number".to_owned(), Json::from(number.parse::<i64>().ok()?));
                    }
                    Some(json)
                });
                Ok(Answer::json(200, entries.collect()))
            }
            Verb::Create => {
                let body = request.json()?;
                let Some(line) = line_of(&body) else {
                    return Err(Problem::new(422, "file in body is required"));
                };
                let command = CliRequest::new("add ssl crt-list").word(name)?.payload(&line)?;
                run_command(&worker, &command, |why| if why.contains("already") { 409 } else { 400 }).await?;
                Ok(Answer::empty(201))
            }
            _ => {
                let certificate = request.required("cert_file")?;
                let which = match request.number("line_number")? {
                    Some(number) => format!("{certificate}:{number}"),
                    None => certificate.to_owned(),
                };
                let command = CliRequest::new("del ssl crt-list").word(name)?.word(&which)?;
                run_command(&worker, &command, |why| if why.contains("not found") { 404 } else { 400 })
                    .await?;
                Ok(Answer::empty(204))
            }
        }
    }

    pub(super) async fn acme(&self, verb: Verb, request: &Request) -> Result<Answer, Problem> {
        let worker = self.instance.worker();
        if verb == Verb::Replace {
            let certificate = request.required("certificate")?;
            run_command(&worker, &CliRequest::new("acme renew").word(certificate)?, |_| 404).await?;
            return Ok(Answer::empty(200));
        }
        let rows = match worker.ask(&CliRequest::new("acme status")).await? {
            Reply::Done(answer) => answer,
            // A HAProxy without it manages no certificates.
            Reply::Refused(_) => return Ok(Answer::json(200, json!([]))),
        };
        let heading: Vec<String> = rows
            .lines()
            .find_map(|line| line.strip_prefix("# "))
            .map(|line| line.split('\t').map(|name| name.trim().to_lowercase().replace(' ', "_")).collect())
            .unwrap_or_default();
        let shown = lines(&rows).filter(|line| line.contains('\t')).map(|line| {
            let pairs = heading.iter().cloned().zip(line.split('\t').map(|value| Json::from(value.trim())));
            Json::Object(pairs.collect())
        });
        Ok(Answer::json(200, shown.collect()))
    }
}
