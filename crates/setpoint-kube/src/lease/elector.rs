//! Takes the Lease, renews it, and gives it back.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use tokio::time::{sleep, timeout};

use super::clock::boot_time;
use super::decide::{Observed, Step, Timing, decide};
use super::fence::{Fence, Held};
use crate::client::Clients;

/// Why the Lease could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The API server refused it, or could not be reached.
    #[error("the lease can't be used: {0}")]
    Api(#[source] kube::Error),
    /// There was no answer in time.
    #[error("the API server did not answer about the lease in time")]
    Timeout,
    /// Somebody else changed it first.
    #[error("another instance changed the lease first")]
    Overtaken,
}

impl From<kube::Error> for LeaseError {
    fn from(error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) if status.code == 409 => Self::Overtaken,
            _ => Self::Api(error),
        }
    }
}

/// The pause before a renewal that failed is tried again.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// A candidate for the leadership.
///
/// One attempt may use a third of the deadline. After one that failed, the next makes a connection of its own: those that
/// are kept may be broken without anybody knowing it.
#[derive(Clone, Debug)]
pub struct Elector {
    held: Held,
    /// The same Leases, on a new connection for each request.
    fresh: Api<Lease>,
    timing: Timing,
}

/// One leadership, from the election to its end, and the right to write that comes with it.
#[derive(Debug)]
pub struct Leadership {
    lease: Lease,
    /// The right to write, for as long as the leadership lasts.
    pub fence: Fence,
}

impl Elector {
    /// Makes a candidate. Its identity must be like no other's, not even that of the same pod before it was restarted.
    pub fn new(
        clients: impl Into<Clients>,
        namespace: &str,
        name: &str,
        identity: &str,
        timing: Timing,
    ) -> Self {
        let Clients { shared, fresh } = clients.into();
        let held = Held {
            leases: Api::namespaced(shared, namespace),
            name: name.to_owned(),
            holder: identity.to_owned(),
        };
        Self { held, fresh: Api::namespaced(fresh, namespace), timing }
    }

    /// Waits until the Lease is free, and takes it. `report` is called with the outcome of each look.
    pub async fn campaign(&self, mut report: impl FnMut(Result<Option<&str>, &LeaseError>)) -> Leadership {
        let mut observed: Option<Observed> = None;
        let mut failed = false;
        loop {
            let leases = if failed { &self.fresh } else { &self.held.leases };
            let looked = self.look(leases, observed.take()).await;
            failed = looked.is_err();
            match looked {
                Ok(seen) => {
                    report(Ok(seen.as_ref().and_then(Observed::holder)));
                    match self.attempt(leases, seen.as_ref()).await {
                        Ok(Some(leadership)) => return leadership,
                        Ok(None) | Err(LeaseError::Overtaken) => {}
                        Err(error) => report(Err(&error)),
                    }
                    observed = seen;
                }
                Err(error) => report(Err(&error)),
            }
            sleep(self.timing.retry.mul_f64(0.75 + 0.5 * fastrand::f64())).await;
        }
    }

    /// Renews the Lease until it is lost, and closes the fence then.
    pub async fn hold(&self, leadership: &mut Leadership) {
        let mut failed = false;
        loop {
            let left = leadership.fence.deadline().saturating_sub(boot_time());
            if left.is_zero() {
                leadership.fence.close();
                return;
            }
            // What failed is tried again at once, on a new connection.
            let pause = if failed { AFTER_FAILURE } else { self.timing.retry };
            sleep(pause.min(left)).await;
            // Stopped past its deadline, a leader does not even try: it starts over as any other candidate.
            let left = leadership.fence.deadline().saturating_sub(boot_time());
            let leases = if failed { &self.fresh } else { &self.held.leases };
            let renewed =
                timeout(left, self.renew(leases, leadership)).await.unwrap_or(Err(LeaseError::Timeout));
            failed = renewed.is_err();
            if let Err(LeaseError::Overtaken) = renewed
                && !self.still_holds(leadership).await
            {
                leadership.fence.close();
                return;
            }
        }
    }

    /// Gives the Lease back, so that another need not wait for its end. Nothing may be written after this.
    pub async fn release(&self, mut leadership: Leadership) -> Result<(), LeaseError> {
        if leadership.fence.check().is_err() {
            return Ok(());
        }
        leadership.fence.close();
        match self.put(&self.fresh, &given_back(&leadership.lease)).await {
            // A renewal that was given up may have been taken all the same.
            Err(LeaseError::Overtaken) if self.still_holds(&mut leadership).await => {
                self.put(&self.fresh, &given_back(&leadership.lease)).await.map(drop)
            }
            other => other.map(drop),
        }
    }

    async fn look(
        &self,
        leases: &Api<Lease>,
        before: Option<Observed>,
    ) -> Result<Option<Observed>, LeaseError> {
        let get = leases.get_opt(&self.held.name);
        let found = timeout(self.attempt_limit(), get).await.map_err(|_| LeaseError::Timeout)??;
        // Seen now at the latest: counted from here, it is left alone for longer rather than shorter.
        Ok(found.map(|lease| Observed::update(before, lease, boot_time())))
    }

    async fn attempt(
        &self,
        leases: &Api<Lease>,
        observed: Option<&Observed>,
    ) -> Result<Option<Leadership>, LeaseError> {
        // Before the request: the Lease may have been written right after it was sent.
        let began = boot_time();
        let (lease, transitions) = match decide(observed, &self.timing, began) {
            Step::Wait => return Ok(None),
            Step::Create => {
                let metadata = ObjectMeta { name: Some(self.held.name.clone()), ..ObjectMeta::default() };
                let lease = Lease { metadata, spec: Some(self.spec(0)) };
                let create = PostParams::default();
                let created = leases.create(&create, &lease);
                (timeout(self.attempt_limit(), created).await.map_err(|_| LeaseError::Timeout)??, 0)
            }
            Step::Take { transitions } => {
                let Some(observed) = observed else { return Ok(None) };
                let mut lease = observed.lease.clone();
                lease.spec = Some(self.spec(transitions));
                (self.put(leases, &lease).await?, transitions)
            }
        };
        let fence = Fence::until(began + self.timing.deadline, transitions, self.held.clone());
        Ok(Some(Leadership { lease, fence }))
    }

    async fn renew(&self, leases: &Api<Lease>, leadership: &mut Leadership) -> Result<(), LeaseError> {
        let began = boot_time();
        let mut lease = leadership.lease.clone();
        if let Some(spec) = &mut lease.spec {
            spec.renew_time = Some(MicroTime(Timestamp::now()));
        }
        leadership.lease = self.put(leases, &lease).await?;
        leadership.fence.extend(began + self.timing.deadline);
        Ok(())
    }

    /// Returns whether the Lease is still held in this leadership although it was changed: a renewal may have been taken without an
    /// answer.
    async fn still_holds(&self, leadership: &mut Leadership) -> bool {
        let Ok(Some(found)) = self.look(&self.fresh, None).await else { return true };
        let held = found.holder() == Some(&self.held.holder)
            && found.transitions() == leadership.fence.transitions();
        if held {
            leadership.lease = found.lease;
        }
        held
    }

    /// Writes the Lease, as the version that was read.
    async fn put(&self, leases: &Api<Lease>, lease: &Lease) -> Result<Lease, LeaseError> {
        let replace = PostParams::default();
        let put = leases.replace(&self.held.name, &replace, lease);
        timeout(self.attempt_limit(), put).await.map_err(|_| LeaseError::Timeout)?.map_err(LeaseError::from)
    }

    /// How long one attempt may take.
    fn attempt_limit(&self) -> Duration {
        self.timing.deadline / 3
    }

    fn spec(&self, transitions: i32) -> LeaseSpec {
        let now = MicroTime(Timestamp::now());
        LeaseSpec {
            holder_identity: Some(self.held.holder.clone()),
            lease_duration_seconds: i32::try_from(self.timing.duration.as_secs()).ok(),
            lease_transitions: Some(transitions),
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            ..LeaseSpec::default()
        }
    }

    /// The times of the election.
    pub fn timing(&self) -> Timing {
        self.timing
    }

    /// How long the Lease may be out of reach before something is wrong.
    pub fn patience(&self) -> Duration {
        self.timing.duration + self.timing.deadline
    }
}

/// A Lease that nobody holds.
fn given_back(lease: &Lease) -> Lease {
    let mut lease = lease.clone();
    if let Some(spec) = &mut lease.spec {
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(MicroTime(Timestamp::now()));
    }
    lease
}
