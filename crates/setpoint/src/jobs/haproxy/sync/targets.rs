//! Which HAProxy is meant: one or several behind an API, or the one of this machine.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use futures::future::join_all;
use setpoint_dataplane::client::{Client, Settings};
use setpoint_dataplane::error::{Cause, Stage, SyncError};
use setpoint_dataplane::sync::{FailedSync, SyncResult};
use setpoint_dataplane::target::{ApiTarget, Target};
use tokio_util::sync::CancellationToken;

use super::args::TargetArgs;
#[cfg(feature = "dataplane")]
use super::local::{Hand, Local, Purpose};
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

/// What is done with a HAProxy, wherever that is.
pub(super) trait Job {
    /// What comes of it.
    type Done;

    /// Does it.
    async fn run<T: Target>(&self, target: &T) -> Result<Self::Done, Box<FailedSync>>;
}

/// A job, and what is done about what comes of it.
pub(super) struct Work<'w, J: Job> {
    pub(super) job: &'w J,
    /// Why what seemed to succeed did not, by the version that stands in the end.
    pub(super) undone: &'w dyn Fn(&J::Done, u64) -> Option<SyncError>,
    /// Is told what came of each as soon as that is known.
    pub(super) ended: &'w Ended<'w, J::Done>,
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

/// One HAProxy that was named.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'a> {
    /// Behind an API at this address.
    Api(&'a str),
    /// The one of this machine.
    #[cfg(feature = "dataplane")]
    Local,
}

/// Each HAProxy that was named.
pub(super) fn places(args: &TargetArgs) -> Result<Vec<Place<'_>>, CliError> {
    #[cfg(feature = "dataplane")]
    if args.local.local {
        return Ok(vec![Place::Local]);
    }
    if args.urls.is_empty() {
        return Err(Error::NoTarget.into());
    }
    Ok(args.urls.iter().map(|url| Place::Api(url)).collect())
}

/// What work with a HAProxy is done with.
#[derive(Clone, Copy)]
pub(super) struct Tools<'a> {
    pub(super) args: &'a TargetArgs,
    pub(super) connections: &'a Connections,
    pub(super) report: Report,
    pub(super) cancel: &'a CancellationToken,
}

/// Does something with each HAProxy that was named, all at once: one that fails holds up no other. With a text, they may be changed,
/// and it is the first configuration of one that has none.
pub(super) async fn each<J: Job>(
    tools: Tools<'_>,
    first: Option<&[u8]>,
    work: &Work<'_, J>,
) -> Result<Vec<Outcome<J::Done>>, CliError> {
    let each = places(tools.args)?.into_iter().map(|place| one(tools, place, first, work));
    join_all(each).await.into_iter().collect()
}

/// Does something with one of them.
pub(super) async fn one<J: Job>(
    tools: Tools<'_>,
    place: Place<'_>,
    first: Option<&[u8]>,
    work: &Work<'_, J>,
) -> Result<Outcome<J::Done>, CliError> {
    let (endpoint, outcome) = match place {
        Place::Api(url) => {
            let settings = tools.args.settings(url)?;
            let connecting = tools.connections.get(url, settings);
            let (endpoint, outcome) = match tools.cancel.run_until_cancelled(connecting).await {
                Some(Ok(target)) => (target.endpoint().to_owned(), work.job.run(&target).await),
                Some(Err(error)) => (shown(url), Err(failed(error))),
                None => (shown(url), Err(failed(cancelled()))),
            };
            if outcome.is_err() {
                tools.connections.forget(url);
            }
            (endpoint, outcome)
        }
        #[cfg(feature = "dataplane")]
        Place::Local => {
            let purpose = first.map_or(Purpose::Look, Purpose::Change);
            locally(tools, purpose, work).await?
        }
    };
    #[cfg(not(feature = "dataplane"))]
    let _ = (first, tools.report, work.undone);
    (work.ended)(&endpoint, &outcome)?;
    Ok((endpoint, outcome))
}

/// Connects to each API that was named.
pub(super) async fn connect_all(args: &TargetArgs) -> Result<Vec<Outcome<ApiTarget>>, CliError> {
    if args.urls.is_empty() {
        return Err(Error::NoTarget.into());
    }
    let settings = args.urls.iter().map(|url| Ok((url.as_str(), args.settings(url)?)));
    let settings: Vec<_> = settings.collect::<Result<_, Error>>()?;
    let each = settings.into_iter().map(async |(url, settings)| match connect(settings).await {
        Ok(target) => (target.endpoint().to_owned(), Ok(target)),
        Err(error) => (shown(url), Err(failed(error))),
    });
    Ok(join_all(each).await)
}

/// Does something with the HAProxy of this machine.
#[cfg(feature = "dataplane")]
async fn locally<J: Job>(
    tools: Tools<'_>,
    purpose: Purpose<'_>,
    work: &Work<'_, J>,
) -> Result<Outcome<J::Done>, CliError> {
    let opening = Local::open(&tools.args.local, purpose, tools.report);
    let Some(opened) = tools.cancel.run_until_cancelled(opening).await else {
        return Ok(("this machine".to_owned(), Err(failed(cancelled()))));
    };
    let local = opened?;
    let name = local.name.clone();
    let mut outcome = match &local.hand {
        Hand::Theirs(target) => work.job.run(target).await,
        Hand::Own(target) => work.job.run(target).await,
    };
    if let (Some(version), Ok(done)) = (local.close().await, &outcome)
        && let Some(error) = (work.undone)(done, version)
    {
        outcome = Err(failed(error));
    }
    Ok((name, outcome))
}

fn cancelled() -> SyncError {
    SyncError::new(Stage::Connect, "it was cancelled")
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
