//! Requests come in, answers go out: limits, who asks, which operation.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::State;
use axum::http::{Method, header};
use axum::response::Response;
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::Api;
use crate::answer::{Answer, Content, Problem};
use crate::request::Request;
use crate::route::{Found, Operation};
use crate::table::{Other, Verb};

/// No body is longer: the original takes as much.
const LONGEST_BODY: usize = 1 << 30;
/// How long a client may take to send a body.
const BODY_WITHIN: Duration = Duration::from_mins(1);

/// Serves the API until `stop` is done; what is under way then is completed.
pub async fn serve(
    listener: TcpListener,
    api: Arc<Api>,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let router = Router::new().fallback(handle).with_state(api);
    axum::serve(listener, router).with_graceful_shutdown(stop).await
}

async fn handle(State(api): State<Arc<Api>>, request: axum::extract::Request) -> Response {
    let (parts, body) = request.into_parts();
    let is_head = parts.method == Method::HEAD;
    let body = timeout(BODY_WITHIN, to_bytes(body, LONGEST_BODY)).await;
    let request = |body: Vec<u8>| Request::new(parts.method, &parts.uri, parts.headers, body, api.dialect);
    let answer = match body {
        Ok(Ok(body)) => {
            let request = request(body.into());
            if api.streams(&request) {
                return api.events();
            }
            api.answer(&request).await
        }
        Ok(Err(error)) => Problem::new(413, format!("the body can't be read: {error}")).into(),
        Err(_) => Problem::new(408, "the body did not come in time").into(),
    };
    let mut response = answer.into_response();
    if is_head {
        *response.body_mut() = axum::body::Body::empty();
    }
    response
}

impl Api {
    /// Returns whether somebody who may asks for the stream of events.
    fn streams(&self, request: &Request) -> bool {
        let is_it = |found: Found| matches!(found.operation, Operation::Other(Other::Events));
        request.path.ends_with("/events")
            && self.users.who(request).is_ok()
            && self.routes.find(request).is_ok_and(is_it)
    }

    /// Answers a request.
    async fn answer(&self, request: &Request) -> Answer {
        if let Some(answer) = preflight(request) {
            return self.versioned(request, answer);
        }
        let answered = self.routed(request).await;
        let mut answer = answered.unwrap_or_else(Answer::from);
        // The old dialects answer some errors with the type that was asked for.
        if let Some(place) = answer.headers.iter().position(|(name, _)| *name == "content-type")
            && let Content::Json(json) = &answer.content
        {
            let bytes = serde_json::to_vec(json).unwrap_or_default();
            let (_, kind) = answer.headers.remove(place);
            let kind = if kind == "text/plain" { "text/plain" } else { "application/octet-stream" };
            answer.content = Content::Bytes(kind, bytes);
        }
        self.versioned(request, answer)
    }

    /// Each answer says the version: of the transaction that it is about, or of the configuration.
    fn versioned(&self, request: &Request, answer: Answer) -> Answer {
        let version = match request.query("transaction_id").filter(|id| !id.is_empty()) {
            Some(id) => {
                self.instance.transaction(id).and_then(|transaction| transaction.version).unwrap_or(0)
            }
            None => self.instance.version(),
        };
        answer.with("configuration-version", version.to_string())
    }

    async fn routed(&self, request: &Request) -> Result<Answer, Problem> {
        // The new dialects say nothing to strangers, the old ones what is not there.
        let (found, user) = if self.dialect.is_new() {
            let user = self.users.who(request)?;
            (self.routes.find(request)?, user)
        } else {
            (self.routes.find(request)?, self.users.who(request)?)
        };
        accepts(request, found.operation)?;
        let changes = !matches!(request.method, Method::GET | Method::HEAD | Method::OPTIONS);
        if changes && self.options.read_only {
            return Err(Problem::new(403, "this API is read-only"));
        }
        let answered = self.operate(&found, request).await;
        if changes {
            let status = answered.as_ref().map_or_else(|problem| problem.status, |answer| answer.status);
            tracing::info!(target: "audit", user, method = %request.method, path = request.path, status, "change");
        }
        answered
    }

    async fn operate(&self, found: &Found, request: &Request) -> Result<Answer, Problem> {
        let name = || found.names.first().map(String::as_str).unwrap_or_default();
        match found.operation {
            Operation::Section(section, verb) => self.section(section, verb, &found.names, request).await,
            Operation::Child(child, verb) => self.child(child, verb, &found.names, request).await,
            Operation::Other(other) => match other {
                Other::Root => self.root(),
                Other::Endpoints => Ok(self.endpoints(&request.path)),
                Other::Info => Ok(self.info()),
                Other::Health => Ok(self.health().await),
                Other::Specification => Ok(self.specification(false)),
                Other::SpecificationV3 => Ok(self.specification(true)),
                Other::ConfigurationVersion => self.version_answer(request),
                Other::RawGet => self.raw(request),
                Other::RawPush => self.push(request).await,
                Other::DefaultsReplace => self.replace_defaults(request).await,
                Other::TraceEntryAdd => self.trace_entry(true, request).await,
                Other::TraceEntryDelete => self.trace_entry(false, request).await,
                Other::TransactionList => self.transactions(request),
                Other::TransactionBegin => self.begin(request),
                Other::TransactionGet => self.transaction(name()),
                Other::TransactionCommit => self.commit(name(), request).await,
                Other::TransactionDiscard => self.discard(name()),
                Other::TransactionDiff => self.diff(name()),
                Other::ReloadList => Ok(self.reloads()),
                Other::ReloadGet => self.reload(name()),
                Other::ReloadOrder => Ok(self.order_reload()),
                Other::Cluster => Ok(Answer::json(200, serde_json::json!({ "mode": "single" }))),
                // A stream is no answer: whoever may have it has it by now.
                Other::Events => Err(Problem::not_served("a stream of events in this way")),
                Other::NotServed(what) => Err(Problem::not_served(what)),
                Other::Storage(kind, verb) => self.storage(kind, verb, name(), request).await,
                Other::CrtListEntries(verb) => self.crt_list_entries(verb, name(), request),
                Other::Stats => self.stats(request).await,
                Other::Runtime(kind, verb) => self.runtime(kind, verb, &found.names, request).await,
            },
        }
    }
}

/// Answers what a browser asks before it lets a page use the API.
fn preflight(request: &Request) -> Option<Answer> {
    if request.method != Method::OPTIONS {
        return None;
    }
    request.header("origin")?;
    let method = request.header("access-control-request-method")?;
    let answer = Answer::empty(204).with("access-control-allow-origin", "*");
    Some(answer.with("access-control-allow-methods", method))
}

/// Refuses to answer in a type that nobody asked for.
fn accepts(request: &Request, operation: Operation) -> Result<(), Problem> {
    let Some(accept) = request.header(header::ACCEPT.as_str()) else { return Ok(()) };
    let kind = match operation {
        Operation::Other(Other::RawGet | Other::RawPush) => "text/plain",
        Operation::Other(Other::Storage(_, Verb::Get)) => "application/octet-stream",
        _ => "application/json",
    };
    let fits = accept.split(',').any(|range| {
        let range = range.split(';').next().unwrap_or_default().trim();
        let whole = kind.split('/').next().unwrap_or_default();
        range == "*/*" || range == kind || range == format!("{whole}/*") || range == "application/json"
    });
    if fits {
        return Ok(());
    }
    Err(Problem::new(406, format!("unsupported media type requested, only [{kind}] are available")))
}
