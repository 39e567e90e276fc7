//! Requests come in, answers go out: limits, who asks, which operation.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, to_bytes};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use setpoint_instance::blocking::run_blocking;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use crate::Api;
use crate::answer::{Answer, Content, Problem};
use crate::listen::{Connection, Listener, Peer};
use crate::metrics;
use crate::request::Request;
use crate::route::{Found, Operation};
use crate::specification::Format;
use crate::table::{Other, Verb};

/// How long a connection may be open without a request.
const IDLE_WITHIN: Duration = Duration::from_mins(2);
/// How long what is under way may take when the API ends.
const END_WITHIN: Duration = Duration::from_secs(15);
/// How long nothing is accepted after the system refused to.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Serves the API until `stop` is done; what is under way then is completed.
pub async fn serve(listeners: Vec<Listener>, api: Arc<Api>, stop: impl Future<Output = ()>) {
    let tracker = TaskTracker::new();
    let connections = Arc::new(Semaphore::new(api.options.connections));
    for listener in listeners {
        tracker.spawn(accept(listener, Arc::clone(&api), tracker.clone(), Arc::clone(&connections)));
    }
    tracker.spawn(count_events(Arc::clone(&api)));
    stop.await;
    api.stopping.cancel();
    tracker.close();
    // Who does not end is cut off. A change that goes on holds the instance, and whoever ends that waits for it.
    let _ = timeout(END_WITHIN, tracker.wait()).await;
}

/// Accepts connections on one address, as many at once as are allowed.
async fn accept(listener: Listener, api: Arc<Api>, tracker: TaskTracker, connections: Arc<Semaphore>) {
    let next = async || {
        // It is closed by nobody.
        let permit = Arc::clone(&connections).acquire_owned().await.ok()?;
        Some((listener.accept().await, permit))
    };
    while let Some(Some((accepted, permit))) = api.stopping.run_until_cancelled(next()).await {
        match accepted {
            Ok(connection) => {
                tracker.spawn(serve_connection(connection, Arc::clone(&api), tracker.clone(), permit));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

/// Answers the requests of one connection.
async fn serve_connection(
    connection: Connection,
    api: Arc<Api>,
    tracker: TaskTracker,
    _permit: OwnedSemaphorePermit,
) {
    let (peer, _connected) = (connection.peer, api.metrics.connected());
    let stream = match connection.handshake().await {
        Ok(stream) => stream,
        Err(error) => return tracing::info!(%error, %peer, "no TLS was agreed on"),
    };
    let service = service_fn(|request| {
        let (api, tracker) = (Arc::clone(&api), tracker.clone());
        async move {
            if is_reading(request.method()) {
                return Ok(handle(&api, peer, request).await);
            }
            // Who hangs up ends the conversation, and not the change that is under way.
            let runtime = api.changes.clone().unwrap_or_else(Handle::current);
            let handled = async move { handle(&api, peer, request).await };
            tracker.spawn_on(handled, &runtime).await
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(IDLE_WITHIN);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = api.stopping.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, %peer, "a connection broke off");
    }
}

fn is_reading(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Counts what happens to the instance.
async fn count_events(api: Arc<Api>) {
    use tokio::sync::broadcast::error::RecvError;
    let mut events = api.instance.events();
    while let Some(event) = api.stopping.run_until_cancelled(events.recv()).await {
        match event {
            Ok(event) => api.metrics.happened(&event),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

/// The name of a request in logs: the client's own, or a new one.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let given = headers.get(&REQUEST_ID).filter(|given| {
        let bytes = given.as_bytes();
        (1..=128).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
    });
    given.cloned().unwrap_or_else(|| {
        HeaderValue::from_str(&setpoint_instance::instance::new_id())
            .unwrap_or_else(|_| HeaderValue::from_static("unnamed"))
    })
}

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

async fn handle(api: &Api, peer: Peer, request: hyper::Request<Incoming>) -> Response {
    let begun = Instant::now();
    let (parts, body) = request.into_parts();
    let (method, id) = (parts.method.clone(), request_id(&parts.headers));
    let mut response = api.respond(peer, &id, parts, Body::new(body)).await;
    response.headers_mut().insert(REQUEST_ID.clone(), id);
    if method == Method::HEAD {
        *response.body_mut() = Body::empty();
    }
    api.metrics.answered(&method, response.status().as_u16(), begun.elapsed());
    response
}

impl Api {
    async fn respond(&self, peer: Peer, id: &HeaderValue, parts: Parts, body: Body) -> Response {
        let requests = self.requests.as_ref().filter(|_| peer != Peer::Owner);
        if let Some(Err(wait)) = requests.map(|requests| requests.take(peer, Instant::now())) {
            return Answer::from(Problem::too_often(wait)).into_response();
        }
        let user = self.users.identify(&parts.headers, self.dialect, peer).await;
        if user.is_ok() && parts.uri.path() == "/metrics" && parts.method == Method::GET {
            let text = self.metrics.text(&self.instance).into_bytes();
            return Answer::bytes(200, metrics::CONTENT_TYPE, text).into_response();
        }
        // The body of a client that has not authenticated is not read.
        let body = match &user {
            Ok(_) => timeout(self.options.body_within, to_bytes(body, self.options.longest_body)).await,
            Err(_) => Ok(Ok(Bytes::default())),
        };
        let answer = match body {
            Ok(Ok(body)) => {
                let request = Request::new(parts, body.into(), self.dialect, user, id);
                if self.streams(&request) {
                    return self.events();
                }
                self.answer(&request).await
            }
            Ok(Err(error)) => {
                let longest = self.options.longest_body;
                let message = format!("the body can't be read, or is longer than {longest} bytes: {error}");
                Problem::new(413, message).into()
            }
            Err(_) => Problem::new(408, "the body did not come in time").into(),
        };
        answer.into_response()
    }

    /// Returns whether somebody who may asks for the stream of events.
    fn streams(&self, request: &Request) -> bool {
        let is_it = |found: Found| matches!(found.operation, Operation::Other(Other::Events));
        request.path.ends_with("/events")
            && request.user.is_ok()
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
        let version = if let Some(id) = request.query("transaction_id").filter(|id| !id.is_empty()) {
            self.instance.transaction(id).and_then(|transaction| transaction.version).unwrap_or(0)
        } else {
            // Somebody else may have committed since: who took that version for this one would overwrite what it brought.
            let spoken_of = answer.version.or_else(|| request.version.get().copied());
            spoken_of.unwrap_or_else(|| self.instance.version())
        };
        answer.with("configuration-version", version.to_string())
    }

    async fn routed(&self, request: &Request) -> Result<Answer, Problem> {
        // The new dialects say nothing to strangers, the old ones what is not there.
        let (found, user) = if self.dialect.is_new() {
            let user = request.user.clone()?;
            (self.routes.find(request)?, user)
        } else {
            (self.routes.find(request)?, request.user.clone()?)
        };
        accepts(request, found.operation)?;
        let changes = !is_reading(&request.method);
        if changes && self.options.read_only {
            return Err(Problem::new(403, "this API is read-only"));
        }
        let answered = self.operate(&found, request).await;
        if changes {
            audit(request, &user, &answered);
        }
        answered
    }

    async fn operate(&self, found: &Found, request: &Request) -> Result<Answer, Problem> {
        let name = || found.names.first().map(String::as_str).unwrap_or_default();
        match found.operation {
            Operation::Section(section, verb) => self.section(section, verb, &found.names, request).await,
            Operation::Child(child, verb) => self.child(child, verb, &found.names, request).await,
            Operation::Other(other) => match other {
                Other::Endpoints => Ok(self.endpoints(&request.path)),
                Other::Info => Ok(self.info()),
                Other::Health => Ok(self.health().await),
                Other::Specification => Ok(run_blocking(|| self.specification(Format::Swagger2))),
                Other::SpecificationV3 => Ok(run_blocking(|| self.specification(Format::OpenApi3))),
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
                Other::CrtListEntries(verb) => self.crt_list_entries(verb, name(), request).await,
                Other::Stats => self.stats(request).await,
                Other::Runtime(kind, verb) => self.runtime(kind, verb, &found.names, request).await,
            },
        }
    }
}

/// Writes down who changed what, and why HAProxy reloads for it.
fn audit(request: &Request, user: &str, answered: &Result<Answer, Problem>) {
    let (status, reload, reason, error) = match answered {
        Ok(answer) => {
            let reload =
                answer.headers.iter().find(|(name, _)| *name == "reload-id").map(|(_, id)| id.as_str());
            (answer.status, reload, answer.reason.as_deref(), None)
        }
        Err(problem) => (problem.status, None, None, Some(problem.message.as_str())),
    };
    let (method, path, query, id) = (&request.method, &request.path, &request.query_text, &request.id);
    tracing::info!(target: "audit", user, %method, path, query, status, reload, reason, error, id, "change");
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
