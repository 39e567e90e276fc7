//! Follows the objects of a kind: lists them, watches what changes, and starts over where it was cut off.
//!
//! ```text
//!  list, in pages ──▶ watch, up to a deadline ──ended──▶ watch again from the last version
//!     ▲                     │ the version is too old, or nothing was listed yet
//!     └──── backoff ◀───────┘
//! ```
//!
//! An object that can't be read holds up no other. Every request has a limit and every watch a deadline, whatever client is
//! used: an answer that is lost on its way costs no more than that.

use std::fmt;
use std::time::Duration;

use futures::StreamExt;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::core::DeserializeGuard;
use kube::core::error_boundary::InvalidObject;
use kube::runtime::watcher::Event;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use setpoint_loop::Backoff;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::message_of;

/// How many objects a page of a list has.
const PAGE: u32 = 250;
/// The status of a version that the API server does not remember.
const GONE: u16 = 410;

/// How objects are followed.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which objects are followed, as a field selector; all if there is none.
    pub fields: Option<String>,
    /// How long an answer may take: the whole of a page, or the beginning of a watch.
    pub request: Duration,
    /// How long a watch lasts. It ends by itself then, or is given up a little later.
    pub watch: Duration,
    /// The first pause after a failure, and the longest.
    pub pauses: (Duration, Duration),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            fields: None,
            request: Duration::from_secs(15),
            watch: Duration::from_secs(30),
            pauses: (Duration::from_millis(800), Duration::from_secs(30)),
        }
    }
}

impl Options {
    /// Returns the longest time without a sign of life of a follower that is well.
    pub fn patience(&self) -> Duration {
        self.request * 2 + self.watch + self.pauses.1
    }
}

/// Why objects could not be listed or watched.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The API server refused it, or could not be reached.
    #[error("{}", message_of(.0))]
    Api(#[from] kube::Error),
    /// There was no answer in time.
    #[error("the API server did not answer within {0:?}")]
    Timeout(Duration),
    /// A watch ended as soon as it had begun, and showed nothing.
    #[error("the API server ended the watch as soon as it had begun")]
    Cut,
    /// Nobody takes what is seen any more.
    #[error("there is no receiver any more")]
    Closed,
}

/// What is seen of the objects.
#[derive(Debug)]
pub enum Seen<K> {
    /// An event: a list begins, an object of it, the list is complete; an object is changed, or gone.
    Event(Event<K>),
    /// An object that can't be read.
    Unreadable(Box<InvalidObject>),
    /// It failed, and is tried again.
    Failed {
        /// Why.
        error: FollowError,
        /// How long until the next attempt.
        pause: Duration,
    },
}

/// Where a list or a watch ended.
enum Ended {
    /// All is listed: it is watched from here.
    Listed(String),
    /// At the deadline of a watch or by the server: it goes on from here.
    At(String),
    /// The server does not remember the version: all is listed anew.
    Gone,
}

/// Follows objects until nobody takes what is seen any more. `beat` is called whenever there was an answer, or the want of
/// one was noticed.
pub async fn follow<K>(
    api: Api<DeserializeGuard<K>>,
    options: Options,
    sink: mpsc::Sender<Seen<K>>,
    beat: impl Fn(),
) where
    K: Resource<DynamicType: Default> + Clone + DeserializeOwned + fmt::Debug,
    DeserializeGuard<K>: Resource + Clone + fmt::Debug,
{
    let (first, longest) = options.pauses;
    let mut backoff = Backoff::new(first, longest, fastrand::Rng::new());
    let follower = Follower { api, options, sink, beat };
    let mut version: Option<String> = None;
    loop {
        let (began, before) = (Instant::now(), version.clone());
        let step = match version.take() {
            None => follower.list().await.map(Ended::Listed),
            Some(at) => follower.watch(&at).await.inspect_err(|_| version = Some(at)),
        };
        (follower.beat)();
        // A server that ends each watch at once would be asked again and again.
        let was_short = began.elapsed() < first;
        let failed = match step {
            Ok(Ended::Listed(at)) => {
                version = Some(at);
                continue;
            }
            Ok(Ended::At(at)) => {
                let showed_nothing = before.as_ref() == Some(&at);
                version = Some(at);
                if !(was_short && showed_nothing) {
                    backoff.reset();
                    continue;
                }
                FollowError::Cut
            }
            Ok(Ended::Gone) if !was_short => continue,
            Ok(Ended::Gone) => FollowError::Cut,
            Err(FollowError::Closed) => return,
            Err(error) => error,
        };
        let pause = backoff.pause();
        if follower.sink.send(Seen::Failed { error: failed, pause }).await.is_err() {
            return;
        }
        sleep(pause).await;
    }
}

struct Follower<K: Resource, B> {
    api: Api<DeserializeGuard<K>>,
    options: Options,
    sink: mpsc::Sender<Seen<K>>,
    beat: B,
}

impl<K, B: Fn()> Follower<K, B>
where
    K: Resource + Clone + DeserializeOwned + fmt::Debug,
    DeserializeGuard<K>: Resource + Clone + fmt::Debug,
{
    /// Lists all objects; returns the version of the list.
    async fn list(&self) -> Result<String, FollowError> {
        self.send(Seen::Event(Event::Init)).await?;
        let mut parameters =
            ListParams { field_selector: self.options.fields.clone(), ..ListParams::default() };
        parameters.limit = Some(PAGE);
        loop {
            let page = timeout(self.options.request, self.api.list(&parameters)).await;
            let page = page.map_err(|_| FollowError::Timeout(self.options.request))??;
            (self.beat)();
            for object in page.items {
                match object.0 {
                    Ok(object) => self.send(Seen::Event(Event::InitApply(object))).await?,
                    Err(invalid) => self.send(Seen::Unreadable(Box::new(invalid))).await?,
                }
            }
            parameters.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if parameters.continue_token.is_none() {
                self.send(Seen::Event(Event::InitDone)).await?;
                return Ok(page.metadata.resource_version.unwrap_or_default());
            }
        }
    }

    /// Watches from a version on, up to the deadline.
    async fn watch(&self, version: &str) -> Result<Ended, FollowError> {
        let Options { fields, request, watch, .. } = &self.options;
        let seconds = u32::try_from(watch.as_secs()).unwrap_or(u32::MAX).max(1);
        let mut parameters = WatchParams::default().timeout(seconds);
        parameters.field_selector.clone_from(fields);
        let deadline = Instant::now() + *watch + *request;
        let silent = |_| FollowError::Timeout(*watch + *request);
        let opened = timeout(*request, self.api.watch(&parameters, version)).await;
        let opened = match opened.map_err(|_| FollowError::Timeout(*request))? {
            Err(error) if is_gone(&error) => return Ok(Ended::Gone),
            opened => opened?,
        };
        (self.beat)();
        let mut events = opened.boxed();
        let mut version = version.to_owned();
        while let Some(event) = timeout_at(deadline, events.next()).await.map_err(silent)? {
            (self.beat)();
            let (object, same): (_, fn(K) -> Event<K>) = match event {
                Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => (object, Event::Apply),
                Ok(WatchEvent::Deleted(object)) => (object, Event::Delete),
                Ok(WatchEvent::Bookmark(bookmark)) => {
                    version = bookmark.metadata.resource_version;
                    continue;
                }
                Ok(WatchEvent::Error(status)) if status.code == GONE => return Ok(Ended::Gone),
                Ok(WatchEvent::Error(status)) => return Err(kube::Error::Api(status).into()),
                Err(error) if is_gone(&error) => return Ok(Ended::Gone),
                Err(error) => return Err(error.into()),
            };
            version = object.resource_version().unwrap_or(version);
            match object.0 {
                Ok(object) => self.send(Seen::Event(same(object))).await?,
                Err(invalid) => self.send(Seen::Unreadable(Box::new(invalid))).await?,
            }
        }
        Ok(Ended::At(version))
    }

    async fn send(&self, seen: Seen<K>) -> Result<(), FollowError> {
        self.sink.send(seen).await.map_err(|_| FollowError::Closed)
    }
}

fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == GONE)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use axum::Router;
    use axum::http::Uri;
    use axum::response::IntoResponse;
    use axum::routing::get;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Config;
    use tokio::net::TcpListener;

    use super::*;
    use crate::client::client;
    use crate::limits::Limits;

    /// What is said of a server that ends every watch.
    const SAID: &str = "as soon as it had begun";

    /// Follows ConfigMaps of a server that answers every watch with a text, for some seconds and until that is said to be wrong;
    /// returns how often it was asked, and for how long.
    async fn asked(watch: &'static str) -> (usize, Duration) {
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        let answer = move |uri: Uri| async move {
            counted.fetch_add(1, Ordering::Relaxed);
            let list = r#"{"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "7"}, "items": []}"#;
            let text =
                if uri.query().is_some_and(|query| query.contains("watch=true")) { watch } else { list };
            ([("content-type", "application/json")], text).into_response()
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            axum::serve(listener, Router::new().route("/api/v1/configmaps", get(answer))).await
        });
        let client = client(&Config::new(url.parse().unwrap()), Limits::default()).unwrap();
        let pauses = (Duration::from_millis(200), Duration::from_secs(1));
        let options = Options { pauses, ..Options::default() };
        let (sender, mut seen) = mpsc::channel(64);
        let api: Api<DeserializeGuard<ConfigMap>> = Api::all(client);
        let began = Instant::now();
        let taking = async {
            // On a busy machine it takes a while until a watch ends as soon as it has begun.
            let mut is_said = false;
            while began.elapsed() < Duration::from_secs(3) || !is_said {
                if let Ok(seen) = timeout(Duration::from_millis(100), seen.recv()).await {
                    let seen = seen.expect("it goes on");
                    is_said |= matches!(seen, Seen::Failed { error, .. } if error.to_string().contains(SAID));
                }
            }
        };
        tokio::select! {
            () = follow(api, options, sender, || ()) => panic!("it goes on"),
            taken = timeout(Duration::from_mins(5), taking) => taken.expect("it is said"),
        }
        server.abort();
        (requests.load(Ordering::Relaxed), began.elapsed())
    }

    #[tokio::test]
    async fn a_server_that_ends_every_watch_at_once_is_asked_with_pauses_and_that_is_reported() {
        let gone = r#"{"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "too old", "reason": "Expired", "code": 410}}"#;
        for watch in ["", gone] {
            let (requests, time) = asked(watch).await;
            assert!(requests as u128 * 50 < time.as_millis(), "{requests} requests in {time:?}");
        }
    }
}
