//! Transactions, raw texts and reloads.

use std::borrow::Cow;

use serde_json::{Value as Json, json};
use setpoint_instance::blocking::run_blocking;
use setpoint_instance::instance::{
    Applied, CommitError, Reload, ReloadChoice, ReloadStatus, Transaction, TransactionStatus,
};

use crate::Api;
use crate::answer::{Answer, Problem, quoted, stale};
use crate::request::Request;

fn shown(transaction: &Transaction, status: Option<&str>) -> Json {
    let word = status.unwrap_or(match transaction.status {
        TransactionStatus::InProgress => "in_progress",
        TransactionStatus::Failed => "failed",
        TransactionStatus::Outdated => "outdated",
    });
    let mut json = json!({ "id": transaction.id, "status": word });
    if let (Some(version), Some(properties)) = (transaction.version, json.as_object_mut()) {
        properties.insert("_version".to_owned(), Json::from(version));
    }
    json
}

fn shown_reload(reload: &Reload) -> Json {
    let status = match reload.status {
        ReloadStatus::InProgress => "in_progress",
        ReloadStatus::Succeeded => "succeeded",
        ReloadStatus::Failed => "failed",
    };
    let mut json = json!({ "id": reload.id, "status": status });
    if let Some(properties) = json.as_object_mut() {
        if let Some(timestamp) = reload.timestamp.filter(|_| reload.status != ReloadStatus::InProgress) {
            properties.insert("reload_timestamp".to_owned(), Json::from(timestamp));
        }
        if !reload.response.is_empty() {
            properties.insert("response".to_owned(), Json::from(reload.response.as_str()));
        }
    }
    json
}

impl Api {
    pub(crate) fn transactions(&self, request: &Request) -> Result<Answer, Problem> {
        let wanted = match request.query("status").filter(|status| !status.is_empty()) {
            None => None,
            Some("in_progress") => Some(TransactionStatus::InProgress),
            Some("failed") => Some(TransactionStatus::Failed),
            Some(_) if self.dialect.is_new() => {
                let message =
                    "status in query: value is not one of the allowed values [\"failed\",\"in_progress\"]";
                return Err(Problem::new(400, message));
            }
            Some(_) => {
                let message = "status in query should be one of [failed in_progress]";
                return Err(Problem::new(422, message).coded(606));
            }
        };
        let all = self.instance.transactions();
        let listed =
            all.iter().filter(|transaction| wanted.is_none_or(|wanted| transaction.status == wanted));
        Ok(Answer::json(200, listed.map(|transaction| shown(transaction, None)).collect()))
    }

    pub(crate) fn begin(&self, request: &Request) -> Result<Answer, Problem> {
        request.required("version")?;
        let given = request.number("version")?.unwrap_or_default();
        let Ok(version) = u64::try_from(given) else {
            return Err(stale(self.instance.version(), &given.to_string()));
        };
        Ok(Answer::json(201, shown(&self.instance.begin(version)?, None)))
    }

    pub(crate) fn transaction(&self, id: &str) -> Result<Answer, Problem> {
        let transaction = self.instance.transaction(id);
        let transaction = transaction.ok_or_else(|| CommitError::NoTransaction(id.to_owned()))?;
        Ok(Answer::json(200, shown(&transaction, None)))
    }

    pub(crate) async fn commit(&self, id: &str, request: &Request) -> Result<Answer, Problem> {
        let choice = if request.flag("force_reload")? { ReloadChoice::Now } else { ReloadChoice::Delayed };
        let before = self.instance.transaction(id);
        let committed = self.instance.commit(id, choice).await?;
        let body = before.map_or(Json::Null, |transaction| shown(&transaction, Some("success")));
        let status = if matches!(committed.applied, Applied::Ordered(_)) { 202 } else { 200 };
        Ok(Answer::json(status, body).committed(&committed))
    }

    pub(crate) fn discard(&self, id: &str) -> Result<Answer, Problem> {
        if self.instance.discard(id) {
            return Ok(Answer::empty(204));
        }
        Err(Problem::new(404, format!("transaction does not exist: transaction file {id} does not exist")))
    }

    /// What committing a transaction would do, with the verdict of each operation.
    pub(crate) fn diff(&self, id: &str) -> Result<Answer, Problem> {
        let plan = self.instance.plan(id).ok_or_else(|| CommitError::NoTransaction(id.to_owned()))?;
        let plan = plan.map_err(|error| Problem::new(400, error.to_string()))?.plan(id);
        Ok(Answer::json(200, serde_json::to_value(plan).unwrap_or_default()))
    }

    pub(crate) fn version_answer(&self, request: &Request) -> Result<Answer, Problem> {
        let version = self.look(request, |configuration| Ok(configuration.version()))?;
        Ok(Answer::json(200, Json::from(version)))
    }

    pub(crate) fn raw(&self, request: &Request) -> Result<Answer, Problem> {
        if let Some(version) = request.number("version")? {
            let asked = u64::try_from(version).ok();
            if asked != Some(self.instance.version()) {
                if let Some(text) = asked.and_then(|version| self.instance.backup(version)) {
                    return Ok(Answer::bytes(200, "text/plain", text));
                }
                let message = format!("missing object: backup file for version {version} does not exist");
                return Err(self.raw_problem(Problem::new(404, message)));
            }
        }
        let text = self.look_long(request, |configuration| Ok(configuration.print()));
        let text = text.map_err(|problem| {
            let id = request.query("transaction_id").unwrap_or_default();
            let message = format!("transaction does not exist: transaction file {id} does not exist");
            self.raw_problem(Problem { message, ..problem })
        })?;
        Ok(Answer::bytes(200, "text/plain", text))
    }

    /// The old dialects answer errors about raw texts as text.
    fn raw_problem(&self, problem: Problem) -> Problem {
        if self.dialect.is_new() { problem } else { problem.with("content-type", "text/plain") }
    }

    pub(crate) async fn push(&self, request: &Request) -> Result<Answer, Problem> {
        if self.dialect.is_new() {
            request.expects(&["text/plain"])?;
        } else {
            request.expects(&["text/plain", "application/json"])?;
        }
        request.has_body()?;
        let text = if request.header("content-type").is_some_and(|kind| kind.starts_with("application/json"))
        {
            let json: Json = request.json()?;
            let text = json.as_str().map(|text| text.as_bytes().to_vec());
            Cow::Owned(text.ok_or_else(|| Problem::new(400, "a text is needed"))?)
        } else {
            Cow::Borrowed(request.body.as_slice())
        };
        let (version, skip_version) = (request.number("version")?, request.flag("skip_version")?);
        let (skip, force) = (request.flag("skip_reload")?, request.flag("force_reload")?);
        let validates = request.flag("only_validate")?;
        self.push_text(request, &text, (version, skip_version), (skip, force), validates)
            .await
            .map_err(|problem| self.raw_problem(problem))
    }

    async fn push_text(
        &self,
        request: &Request,
        text: &[u8],
        (version, skip_version): (Option<i64>, bool),
        (skip, force): (bool, bool),
        validates: bool,
    ) -> Result<Answer, Problem> {
        if validates {
            return match self.instance.validate(text).await {
                Ok(()) => {
                    let held = self.instance.snapshot();
                    Ok(Answer::bytes(202, "text/plain", run_blocking(|| held.print())))
                }
                Err(CommitError::Refused { messages, .. }) => Err(Problem::new(
                    400,
                    format!("validation error: exit status 1: err {}", quoted(&messages)),
                )),
                Err(error) => Err(error.into()),
            };
        }
        let given = match version {
            _ if skip_version => None,
            None => {
                let message = "version or transaction not specified: version or transaction not specified, specify only one";
                return Err(Problem::new(400, message));
            }
            Some(version) => match u64::try_from(version) {
                Ok(version) => Some(version),
                Err(_) => return Err(stale(self.instance.version(), &version.to_string())),
            },
        };
        if !text.contains(&b'\n') {
            return Err(Problem::new(400, "invalid configuration: no newline character found"));
        }
        let choice = match (skip, force) {
            (true, _) => ReloadChoice::Skip,
            (false, true) => ReloadChoice::Now,
            (false, false) => ReloadChoice::Delayed,
        };
        let mut committed = self.instance.push(text, given, choice).await?;
        if let Some(actions) = request.header("x-runtime-actions").filter(|_| skip)
            && let Err(why) = self.instance.tell_actions(actions).await
        {
            // What HAProxy runs would differ from the text, and nobody would know.
            committed.applied = Applied::Ordered(self.instance.order_reload());
            committed.reason = Some(why);
        }
        let held = self.instance.snapshot();
        let text = run_blocking(|| held.print());
        let status = if matches!(committed.applied, Applied::Ordered(_)) { 202 } else { 201 };
        let mut answer = Answer::bytes(status, "text/plain", text).committed(&committed);
        // Somebody else may have committed since.
        answer.version = Some(held.version());
        Ok(answer)
    }

    pub(crate) fn reloads(&self) -> Answer {
        Answer::json(200, self.instance.reloads().iter().map(shown_reload).collect())
    }

    pub(crate) fn reload(&self, id: &str) -> Result<Answer, Problem> {
        let mut parts = id.split('-');
        let lengths =
            [4, 2, 2].map(|length| parts.next().is_some_and(|part| is_number(part) && part.len() == length));
        if lengths.contains(&false) || !parts.next().is_some_and(is_number) || parts.next().is_some() {
            const PATTERN: &str = r"^\d{4}-\d{2}-\d{2}-\d+$";
            return Err(if self.dialect.is_new() {
                let message =
                    format!("id in path: string doesn't match the regular expression \"{PATTERN}\"");
                Problem::new(400, message)
            } else {
                Problem::new(422, format!("id in path should match '{PATTERN}'")).coded(605)
            });
        }
        let reload = self.instance.reload_by_id(id);
        let reload =
            reload.ok_or_else(|| Problem::new(404, format!("Reload with ID {id} does not exist")))?;
        Ok(Answer::json(200, shown_reload(&reload)))
    }

    pub(crate) fn order_reload(&self) -> Answer {
        let id = self.instance.order_reload();
        let answer = Answer::json(202, json!({ "id": id, "status": "in_progress" }));
        answer.with("reload-id", id).because("it was asked for")
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
