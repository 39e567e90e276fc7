//! Limits on how long the API server may be silent, for every request of a client.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tower::{BoxError, Layer, Service};

/// How long the API server may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long an answer may take to begin, and how long it may stop on its way.
    pub silence: Duration,
    /// How long the answer to a watch may stop on its way: the server ends watches by itself, or sends bookmarks.
    pub watch: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { silence: Duration::from_secs(20), watch: Duration::from_mins(5) }
    }
}

/// The API server was silent for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the API server was silent for {0:?}")]
pub struct Silent(pub Duration);

impl<S> Layer<S> for Limits {
    type Service = Limited<S>;

    fn layer(&self, inner: S) -> Limited<S> {
        Limited { inner, limits: *self }
    }
}

/// A service whose answers are limited.
#[derive(Clone, Debug)]
pub struct Limited<S> {
    inner: S,
    limits: Limits,
}

impl<S, R, B> Service<Request<R>> for Limited<S>
where
    S: Service<Request<R>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
{
    type Response = Response<LimitedBody<B>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        let Limits { silence, watch } = self.limits;
        let pause = if is_watch(request.uri()) { watch } else { silence };
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = timeout(silence, answer).await.map_err(|_| Silent(silence))?;
            Ok(answer.map_err(Into::<BoxError>::into)?.map(|body| LimitedBody::new(body, pause)))
        })
    }
}

fn is_watch(uri: &Uri) -> bool {
    uri.query().is_some_and(|query| query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1")))
}

/// A body that fails when it stops for too long on its way.
#[derive(Debug)]
pub struct LimitedBody<B> {
    inner: B,
    limit: Duration,
    silent: Pin<Box<Sleep>>,
}

impl<B> LimitedBody<B> {
    fn new(inner: B, limit: Duration) -> Self {
        Self { inner, limit, silent: Box::pin(sleep(limit)) }
    }
}

impl<B: Body<Error: Into<BoxError>> + Unpin> Body for LimitedBody<B> {
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        let this = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(context) {
            this.silent.as_mut().reset(Instant::now() + this.limit);
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        ready!(this.silent.as_mut().poll(context));
        Poll::Ready(Some(Err(Silent(this.limit).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_is_known_by_its_query() {
        for (uri, watch) in [
            ("/api/v1/pods?watch=true&timeoutSeconds=30", true),
            ("/api/v1/pods?limit=5&watch=1", true),
            ("/api/v1/pods?limit=5", false),
            ("/api/v1/watch", false),
        ] {
            assert_eq!(is_watch(&uri.parse().unwrap()), watch, "{uri}");
        }
    }
}
