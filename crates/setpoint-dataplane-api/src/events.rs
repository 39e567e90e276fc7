//! What happens, as a stream of server-sent events.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures::{StreamExt, stream};
use serde_json::{Value as Json, json};
use setpoint_instance::instance::Event;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;

use crate::Api;

/// How often something is said where nothing happens.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

impl Api {
    /// A stream of what happens from now on, until the API ends. Who reads too slowly is told how much was missed.
    pub(crate) fn events(&self) -> Response {
        let receiver = self.instance.events();
        let first = stream::once(async { Ok::<_, std::io::Error>(": connected\n\n".to_owned()) });
        let events = stream::unfold(receiver, |mut receiver| async {
            let (name, data) = match timeout(ALIVE_EVERY, receiver.recv()).await {
                // A comment: whoever stands in between closes a connection on which nothing is said.
                Err(_) => return Some((Ok(": alive\n\n".to_owned()), receiver)),
                Ok(Ok(event)) => shown(&event),
                Ok(Err(RecvError::Lagged(missed))) => ("missed", json!({ "events": missed })),
                Ok(Err(RecvError::Closed)) => return None,
            };
            Some((Ok(format!("event: {name}\ndata: {data}\n\n")), receiver))
        });
        let events = first.chain(events).take_until(self.stopping.clone().cancelled_owned());
        let mut response = Response::new(Body::from_stream(events));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

fn shown(event: &Event) -> (&'static str, Json) {
    match event {
        Event::Committed { version, applied, reason } => {
            ("commit", json!({ "version": version, "applied": applied, "reason": reason }))
        }
        Event::Reloaded { id, succeeded, response } => {
            ("reload", json!({ "id": id, "succeeded": succeeded, "response": response }))
        }
        Event::FileChanged { version, changes } => {
            ("file-changed", json!({ "version": version, "changes": changes }))
        }
        Event::Restored { version, reason } => ("restored", json!({ "version": version, "reason": reason })),
        Event::Drift { difference } => ("drift", json!({ "difference": difference })),
    }
}
