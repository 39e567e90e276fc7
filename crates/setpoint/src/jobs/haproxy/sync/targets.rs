//! Which HAProxy is meant: one or several behind an API, or the one of this machine.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use futures::future::join_all;
use setpoint_dataplane::client::{Client, Settings};
use setpoint_dataplane::error::{Cause, Stage, SyncError};
use setpoint_dataplane::sync::{FailedSync, SyncResult};
use setpoint_dataplane::target::{ApiTarget, Target as _};
use tokio_util::sync::CancellationToken;

use super::args::TargetArgs;
#[cfg(feature = "dataplane")]
use super::local::{Local, Purpose};
use crate::error::CliError;
use crate::jobs::haproxy::error::Error;
use crate::report::Report;
use crate::service::{Signals, runtime};

/// What was found out, or done, at one HAProxy, by what it is called.
pub(super) type Outcome<T> = (String, Result<T, Box<FailedSync>>);

/// The APIs that were connected to, by URL: who looks again and again keeps its connections.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<BTreeMap<String, ApiTarget>>);

impl Connections {
    async fn get(&self, url: &str, settings: Settings) -> Result<ApiTarget, SyncError> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(url).cloned();
        if let Some(target) = kept {
            return Ok(target);
        }
        let target = connect(settings).await?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(url.to_owned(), target.clone());
        Ok(target)
    }

    /// Asks anew what is at the other end, the next time: after a failure it may be another one.
    fn forget(&self, url: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(url);
    }
}

/// Is told what came of one HAProxy, by what that is called.
pub(super) type Ended<'w, T> = dyn Fn(&str, &Result<T, Box<FailedSync>>) -> Result<(), CliError> + 'w;

/// What is done with each HAProxy.
pub(super) struct Work<'w, T, W> {
    pub(super) run: &'w W,
    /// Why what seemed to succeed did not, by the version that stands in the end.
    pub(super) undone: &'w dyn Fn(&T, u64) -> Option<SyncError>,
    /// Is told what came of each as soon as that is known.
    pub(super) ended: &'w Ended<'w, T>,
}

/// Does something until it is done. A signal cancels it, and it is waited for its end.
pub(super) fn until_signal<T>(
    work: impl AsyncFnOnce(&CancellationToken) -> Result<T, CliError>,
) -> Result<T, CliError> {
    runtime()?.block_on(async {
        let (cancel, mut signals) = (CancellationToken::new(), Signals::new()?);
        let mut work = std::pin::pin!(work(&cancel));
        loop {
            tokio::select! {
                done = &mut work => return done,
                // What is cancelled ends by itself.
                () = signals.next() => cancel.cancel(),
            }
        }
    })
}

/// Does something with each HAProxy that was named, all at once: one that fails holds up no other. With a text, they may be changed,
/// and it is the first configuration of one that has none.
pub(super) async fn each<T, W: AsyncFn(ApiTarget) -> Result<T, Box<FailedSync>>>(
    args: &TargetArgs,
    connections: &Connections,
    first: Option<&[u8]>,
    report: Report,
    cancel: &CancellationToken,
    work: &Work<'_, T, W>,
) -> Result<Vec<Outcome<T>>, CliError> {
    #[cfg(feature = "dataplane")]
    if args.local.local {
        let purpose = first.map_or(Purpose::Look, Purpose::Change);
        let (endpoint, outcome) = locally(args, purpose, report, cancel, work).await?;
        (work.ended)(&endpoint, &outcome)?;
        return Ok(vec![(endpoint, outcome)]);
    }
    #[cfg(not(feature = "dataplane"))]
    let _ = (first, report, cancel, work.undone);
    let each = settings(args)?.into_iter().map(async |(url, settings)| {
        let (endpoint, outcome) = match connections.get(url, settings).await {
            Ok(target) => (target.endpoint().to_owned(), (work.run)(target).await),
            Err(error) => (shown(url), Err(failed(error))),
        };
        if outcome.is_err() {
            connections.forget(url);
        }
        let told = (work.ended)(&endpoint, &outcome);
        told.map(|()| (endpoint, outcome))
    });
    join_all(each).await.into_iter().collect()
}

/// How each API that was named is reached.
fn settings(args: &TargetArgs) -> Result<Vec<(&str, Settings)>, CliError> {
    if args.urls.is_empty() {
        return Err(Error::NoTarget.into());
    }
    let each = args.urls.iter().map(|url| Ok((url.as_str(), args.settings(url)?)));
    each.collect::<Result<_, Error>>().map_err(Into::into)
}

/// Connects to each API that was named.
pub(super) async fn connect_all(args: &TargetArgs) -> Result<Vec<Outcome<ApiTarget>>, CliError> {
    let each = settings(args)?.into_iter().map(async |(url, settings)| match connect(settings).await {
        Ok(target) => (target.endpoint().to_owned(), Ok(target)),
        Err(error) => (shown(url), Err(failed(error))),
    });
    Ok(join_all(each).await)
}

/// Does something with the HAProxy of this machine.
#[cfg(feature = "dataplane")]
async fn locally<T, W: AsyncFn(ApiTarget) -> Result<T, Box<FailedSync>>>(
    args: &TargetArgs,
    purpose: Purpose<'_>,
    report: Report,
    cancel: &CancellationToken,
    work: &Work<'_, T, W>,
) -> Result<Outcome<T>, CliError> {
    let opened = cancel.run_until_cancelled(Local::open(&args.local, purpose, report)).await;
    let Some(opened) = opened else {
        let error = SyncError::new(Stage::Connect, "it was cancelled");
        return Ok(("this machine".to_owned(), Err(failed(error))));
    };
    let local = opened?;
    let name = local.name.clone();
    let mut outcome = (work.run)(local.target.clone()).await;
    if let (Some(version), Ok(done)) = (local.close().await, &outcome)
        && let Some(error) = (work.undone)(done, version)
    {
        outcome = Err(failed(error));
    }
    Ok((name, outcome))
}

/// A sync that did nothing, and why.
pub(super) fn failed(error: SyncError) -> Box<FailedSync> {
    Box::new(FailedSync { error, result: SyncResult::default() })
}

/// A URL without a password.
fn shown(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        _ => url.to_owned(),
    }
}

async fn connect(settings: Settings) -> Result<ApiTarget, SyncError> {
    let client = Client::connect(settings).await.map_err(|error| unanswered(Box::new(error)))?;
    ApiTarget::new(client).await.map_err(|error| unanswered(Box::new(error)))
}

pub(super) fn unanswered(error: Cause) -> SyncError {
    SyncError::new(Stage::Connect, "no Dataplane API answers as it should")
        .caused_by(error)
        .hint("check the address, the user and the password, and that the API runs there")
}

/// An error of a HAProxy as one of the command.
#[cfg(feature = "dataplane")]
pub(super) fn reported(endpoint: &str, error: &SyncError) -> CliError {
    let message = format!("{endpoint}: {}", error.chain());
    Error::Sync { message, hints: error.hints.join("; ") }.into()
}
