//! What a running HAProxy is told and asked.

use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::Client;
use super::answer::ApiError;
use super::transport::Call;

const RUNTIME: &str = "services/haproxy/runtime";

/// A server as it runs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct RunningServer {
    /// Its name.
    pub name: String,
    /// Its address.
    #[serde(default)]
    pub address: String,
    /// Its port.
    #[serde(default)]
    pub port: Option<i64>,
    /// `ready`, `maint` or `drain`.
    #[serde(default)]
    pub admin_state: String,
    /// `up`, `down` or `stopping`.
    #[serde(default)]
    pub operational_state: String,
}

/// An entry of a map as it runs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct MapEntry {
    /// By which HAProxy knows it.
    #[serde(default)]
    pub id: String,
    /// What is looked up.
    pub key: String,
    /// What is found.
    pub value: String,
}

impl Client {
    /// The process that serves: what tells whether HAProxy has reloaded.
    pub async fn process(&self) -> Result<Process, ApiError> {
        let call = Call::get(RUNTIME).part("info");
        let (info, _) = self.transport().json::<Json>(call, &[200]).await?;
        // Some versions give a list with one element.
        let info = info.get(0).unwrap_or(&info);
        let number = |name: &str| info.pointer(&format!("/info/{name}")).and_then(Json::as_u64);
        let version = info.pointer("/info/version").and_then(Json::as_str).unwrap_or_default();
        Ok(Process { pid: number("pid"), uptime: number("uptime"), version: version.to_owned() })
    }

    /// The servers of a backend as they run.
    pub async fn running_servers(&self, backend: &str) -> Result<Vec<RunningServer>, ApiError> {
        let call = Call::get(RUNTIME).part("backends").part(backend).part("servers");
        Ok(self.transport().json::<Option<Vec<_>>>(call, &[200]).await?.0.unwrap_or_default())
    }

    /// Sets what somebody has decided of a server: `ready`, `maint` or `drain`.
    pub async fn set_admin_state(&self, backend: &str, server: &str, state: &str) -> Result<(), ApiError> {
        let call = Call::put(RUNTIME).part("backends").part(backend).part("servers").part(server);
        self.transport().call(call.json(json!({ "admin_state": state })), &[200]).await?;
        Ok(())
    }

    /// The entries of a map as they run; none if no map of this name was loaded.
    pub async fn map_entries(&self, name: &str) -> Result<Option<Vec<MapEntry>>, ApiError> {
        let call = Call::get(RUNTIME).part("maps").part(name).part("entries");
        match self.transport().json::<Option<Vec<_>>>(call, &[200]).await {
            Ok((entries, _)) => Ok(Some(entries.unwrap_or_default())),
            Err(ApiError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Adds an entry to a map that runs.
    pub async fn add_map_entry(&self, name: &str, key: &str, value: &str) -> Result<(), ApiError> {
        let call = Call::post(RUNTIME).part("maps").part(name).part("entries");
        self.transport().call(call.json(json!({ "key": key, "value": value })), &[201]).await?;
        Ok(())
    }

    /// Removes an entry from a map that runs.
    pub async fn delete_map_entry(&self, name: &str, id: &str) -> Result<(), ApiError> {
        let call = Call::delete(RUNTIME).part("maps").part(name).part("entries").part(id);
        self.transport().call(call, &[204]).await?;
        Ok(())
    }
}

/// The process that serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: Option<u64>,
    /// For how many seconds it has run.
    pub uptime: Option<u64>,
    /// The version of HAProxy that it tells.
    pub version: String,
}
