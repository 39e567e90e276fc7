//! Changes of the configuration: in a transaction, or by themselves for a version.

use serde_json::Value as Json;
use setpoint_instance::blocking::run_blocking;
use setpoint_instance::configuration::Configuration;
use setpoint_instance::instance::{Applied, Committed, ReloadChoice};

use crate::Api;
use crate::answer::{Answer, Problem, stale};
use crate::request::Request;

/// What a change goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Transaction(String),
    Version(i64, ReloadChoice),
}

/// What came of a change.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// It is in its transaction.
    Collected,
    /// It is committed.
    Committed(Committed),
}

/// What a change did, for the status that is answered where no reload follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Did {
    Create,
    Replace,
    Delete,
}

/// Where a request says that its change goes to.
pub(crate) fn target(request: &Request) -> Result<Target, Problem> {
    let version = request.number("version")?;
    let force = request.flag("force_reload")?;
    match (request.query("transaction_id").filter(|id| !id.is_empty()), version) {
        (Some(_), Some(_)) => {
            Err(Problem::new(400, "both version and transaction specified, specify only one"))
        }
        (Some(_), None) if force => {
            Err(Problem::new(400, "Both force_reload and transaction specified, specify only one"))
        }
        (Some(id), None) => Ok(Target::Transaction(id.to_owned())),
        (None, Some(version)) => {
            let choice = if force { ReloadChoice::Now } else { ReloadChoice::Delayed };
            Ok(Target::Version(version, choice))
        }
        (None, None) => Err(Problem::new(
            400,
            "version or transaction not specified: version or transaction not specified, specify only one",
        )),
    }
}

impl Api {
    /// Changes the configuration.
    pub(crate) async fn change<T>(
        &self,
        target: &Target,
        work: impl FnOnce(&mut Configuration) -> Result<T, Problem>,
    ) -> Result<(T, Outcome), Problem> {
        match target {
            Target::Transaction(id) => {
                let done = self.instance.in_transaction(id, work);
                let done =
                    done.ok_or_else(|| Problem::new(400, format!("transaction does not exist: {id}")))?;
                Ok((done?, Outcome::Collected))
            }
            Target::Version(given, choice) => {
                let Ok(version) = u64::try_from(*given) else {
                    return Err(stale(self.instance.version(), &given.to_string()));
                };
                let (done, committed) = self.instance.change(version, *choice, work).await??;
                Ok((done, Outcome::Committed(committed)))
            }
        }
    }

    /// Looks at the configuration of a transaction, or at the current one, for a moment: all others wait.
    pub(crate) fn look<T>(
        &self,
        request: &Request,
        work: impl FnOnce(&mut Configuration) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        match request.query("transaction_id").filter(|id| !id.is_empty()) {
            Some(id) => self
                .instance
                .in_transaction(id, work)
                .ok_or_else(|| Problem::new(400, format!("transaction does not exist: {id}")))?,
            None => self.instance.read(|configuration| {
                request.version.get_or_init(|| configuration.version());
                work(configuration)
            }),
        }
    }

    /// The same for whoever looks at much of it: all others are served meanwhile.
    pub(crate) fn look_long<T>(
        &self,
        request: &Request,
        work: impl FnOnce(&mut Configuration) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let mut copy = self.look(request, |configuration| Ok(configuration.fork()))?;
        run_blocking(|| work(&mut copy))
    }
}

/// The answer to a change.
pub(crate) fn answer(did: Did, outcome: &Outcome, body: Json) -> Answer {
    let status = match outcome {
        Outcome::Collected | Outcome::Committed(Committed { applied: Applied::Ordered(_), .. }) => 202,
        Outcome::Committed(_) => match did {
            Did::Create => 201,
            Did::Replace => 200,
            Did::Delete => 204,
        },
    };
    let answer = match did {
        Did::Delete => Answer::empty(status),
        Did::Create | Did::Replace => Answer::json(status, body),
    };
    match outcome {
        Outcome::Collected => answer,
        Outcome::Committed(committed) => answer.committed(committed),
    }
}
