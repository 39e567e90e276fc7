//! Versions, texts, transactions, operations and reloads.

use serde::Deserialize;
use setpoint_haproxy::compare::Operation;

use super::Client;
use super::answer::{Answer, ApiError};
use super::bundle::{Bundle, call_of_bundle};
use super::calls::{CONFIGURATION, NoCall, call_of};
use super::transport::Call;

const TRANSACTIONS: &str = "services/haproxy/transactions";
const RELOADS: &str = "services/haproxy/reloads";

/// What a change came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The version of the configuration afterwards; none where the API did not say.
    pub version: Option<u64>,
    /// The name of the reload that was ordered; none if there is none.
    pub reload_id: Option<String>,
    /// Whether the API says that it takes effect later, with a reload.
    pub is_delayed: bool,
}

impl Changed {
    pub(super) fn of(answer: Answer) -> Self {
        Self { version: answer.version, is_delayed: answer.status == 202, reload_id: answer.reload_id }
    }
}

/// A transaction that was begun.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Transaction {
    /// Its name.
    pub id: String,
    /// The version that it was begun for.
    #[serde(rename = "_version")]
    pub version: u64,
}

/// What became of a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReloadStatus {
    /// It waits, or is under way.
    InProgress,
    /// A new worker serves.
    Succeeded,
    /// The old one still does.
    Failed,
}

/// A reload.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Reload {
    /// What became of it.
    pub status: ReloadStatus,
    /// What HAProxy printed.
    #[serde(default)]
    pub response: String,
}

/// Why an operation was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum OperateError {
    /// No call does it.
    #[error(transparent)]
    NoCall(#[from] NoCall),
    /// The call failed.
    #[error(transparent)]
    Api(#[from] ApiError),
}

impl OperateError {
    /// Returns whether the configuration was changed by somebody else.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Api(error) if error.is_conflict())
    }
}

/// What an operation is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For<'t> {
    /// A transaction, of this name: it takes effect with its commit.
    Transaction(&'t str),
    /// A version: it takes effect by itself, at runtime where the API can.
    Version(u64),
}

/// When a text that is pushed takes effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PushReload {
    /// With a reload, after the API's delay.
    #[default]
    Delayed,
    /// With a reload at once, for which the answer waits.
    Forced,
    /// Not by itself: a running HAProxy is told these actions, as `X-Runtime-Actions` has them.
    RuntimeActions(String),
}

impl Client {
    /// The version of the configuration.
    pub async fn configuration_version(&self) -> Result<u64, ApiError> {
        let call = Call::get(CONFIGURATION).part("version");
        let (version, _) = self.transport().json::<u64>(call, &[200]).await?;
        Ok(version)
    }

    /// The text of the configuration, and its version.
    pub async fn raw_configuration(&self) -> Result<(Vec<u8>, u64), ApiError> {
        let answer = self.transport().call(Call::get(CONFIGURATION).part("raw"), &[200]).await?;
        match answer.version {
            Some(version) => Ok((answer.body, version)),
            None => Ok((answer.body, self.configuration_version().await?)),
        }
    }

    /// Puts a whole text in the place of the present one, which must have the given version.
    pub async fn push_raw_configuration(
        &self,
        text: &[u8],
        version: u64,
        reload: &PushReload,
    ) -> Result<Changed, ApiError> {
        let call = Call::post(CONFIGURATION).part("raw").query("version", version).text(text.to_vec());
        let call = match reload {
            PushReload::Delayed => call,
            PushReload::Forced => call.query("force_reload", true),
            PushReload::RuntimeActions(actions) if actions.is_empty() => call.query("skip_reload", true),
            PushReload::RuntimeActions(actions) => {
                call.query("skip_reload", true).header("X-Runtime-Actions", actions.clone())
            }
        };
        Ok(Changed::of(self.transport().call(call, &[200, 201, 202]).await?))
    }

    /// Begins a transaction for a version.
    pub async fn begin(&self, version: u64) -> Result<Transaction, ApiError> {
        let call = Call::post(TRANSACTIONS).query("version", version);
        Ok(self.transport().json(call, &[201]).await?.0)
    }

    /// Commits a transaction. With `force_reload`, HAProxy reloads whatever was changed, and the answer waits for it.
    pub async fn commit(&self, id: &str, force_reload: bool) -> Result<Changed, ApiError> {
        let call = Call::put(TRANSACTIONS).part(id);
        let call = if force_reload { call.query("force_reload", true) } else { call };
        Ok(Changed::of(self.transport().call(call, &[200, 202]).await?))
    }

    /// Drops a transaction. One that is gone already is dropped.
    pub async fn abort(&self, id: &str) -> Result<(), ApiError> {
        match self.transport().call(Call::delete(TRANSACTIONS).part(id), &[204]).await {
            Ok(_) | Err(ApiError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Carries out an operation.
    pub async fn operate(&self, operation: &Operation, made_for: For<'_>) -> Result<Changed, OperateError> {
        self.change(call_of(operation, self.version())?, made_for).await
    }

    /// Carries out several operations by one call.
    pub async fn operate_bundle(&self, bundle: &Bundle, made_for: For<'_>) -> Result<Changed, OperateError> {
        self.change(call_of_bundle(bundle, self.version())?, made_for).await
    }

    async fn change(&self, call: Call, made_for: For<'_>) -> Result<Changed, OperateError> {
        let call = match made_for {
            For::Transaction(id) => call.query("transaction_id", id),
            For::Version(version) => call.query("version", version),
        };
        Ok(Changed::of(self.transport().call(call, &[200, 201, 202, 204]).await?))
    }

    /// Returns why an operation needs a push of the whole text, if it does.
    pub fn refuses(&self, operation: &Operation) -> Option<NoCall> {
        call_of(operation, self.version()).err()
    }

    /// Returns why no call carries out several operations at once, if none does.
    pub fn refuses_bundle(&self, bundle: &Bundle) -> Option<NoCall> {
        call_of_bundle(bundle, self.version()).err()
    }

    /// The name of a reload that waits or is under way; none if there is none, or if the API does not tell its name.
    pub async fn pending_reload(&self) -> Result<Option<String>, ApiError> {
        #[derive(Deserialize)]
        struct Listed {
            #[serde(default)]
            id: String,
            status: ReloadStatus,
        }
        let (listed, _) = self.transport().json::<Option<Vec<Listed>>>(Call::get(RELOADS), &[200]).await?;
        let mut pending = listed.unwrap_or_default().into_iter();
        let pending =
            pending.find(|reload| reload.status == ReloadStatus::InProgress && !reload.id.is_empty());
        Ok(pending.map(|reload| reload.id))
    }

    /// What became of a reload.
    pub async fn reload(&self, id: &str) -> Result<Reload, ApiError> {
        Ok(self.transport().json(Call::get(RELOADS).part(id), &[200]).await?.0)
    }
}
