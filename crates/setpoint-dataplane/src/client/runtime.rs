//! What a running HAProxy is told and asked.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::try_join;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::Client;
use super::answer::ApiError;
use super::transport::Call;

const RUNTIME: &str = "services/haproxy/runtime";
const STATISTICS: &str = "services/haproxy/stats";

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
    /// Its weight; the API tells it from 3.3 on.
    #[serde(default)]
    pub weight: Option<i64>,
}

/// How the servers of a HAProxy are, and how many requests it could not answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The servers that are up, or that nobody checks, by backend and name.
    pub up: BTreeSet<(String, String)>,
    /// How many requests, or connections where there are no requests, its frontends have had since it was started.
    pub requests: u64,
    /// How many of them were answered with a status of 500 or above.
    pub errors: u64,
}

/// Statistics as the API tells them.
#[derive(Debug, Deserialize)]
struct Statistics {
    #[serde(default)]
    stats: Option<Vec<Statistic>>,
}

#[derive(Debug, Deserialize)]
struct Statistic {
    #[serde(default)]
    name: String,
    #[serde(default)]
    backend_name: Option<String>,
    #[serde(default)]
    stats: Json,
}

impl Statistic {
    fn number(&self, name: &str) -> u64 {
        self.stats.get(name).and_then(Json::as_u64).unwrap_or(0)
    }

    fn is_up(&self) -> bool {
        let status = self.stats.get("status").and_then(Json::as_str).unwrap_or_default();
        status.starts_with("UP") || status == "no check"
    }
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

    /// The weights of all servers, by backend and name, as statistics tell them. One that is still being warmed up has none.
    pub async fn server_weights(&self) -> Result<BTreeMap<(String, String), i64>, ApiError> {
        let servers = self.statistics("server").await?;
        let told = servers.into_iter().filter_map(|server| {
            let weight = server.stats.get("weight").and_then(Json::as_i64);
            let weight = weight.filter(|_| server.number("throttle") == 0)?;
            Some(((server.backend_name.unwrap_or_default(), server.name), weight))
        });
        Ok(told.collect())
    }

    /// How its servers are, and how many requests it could not answer.
    pub async fn health(&self) -> Result<Health, ApiError> {
        let (servers, frontends) = try_join(self.statistics("server"), self.statistics("frontend")).await?;
        let up = servers.iter().filter(|server| server.is_up());
        let name =
            |server: &Statistic| (server.backend_name.clone().unwrap_or_default(), server.name.clone());
        let sum = |of: fn(&Statistic) -> u64| frontends.iter().map(of).sum();
        let requests = |frontend: &Statistic| match frontend.number("req_tot") {
            0 => frontend.number("stot"),
            requests => requests,
        };
        let errors = |frontend: &Statistic| frontend.number("hrsp_5xx");
        Ok(Health { up: up.map(name).collect(), requests: sum(requests), errors: sum(errors) })
    }

    async fn statistics(&self, of: &str) -> Result<Vec<Statistic>, ApiError> {
        let call = Call::get(STATISTICS).part("native").query("type", of);
        let (answer, _) = self.transport().json::<Json>(call, &[200]).await?;
        // Some versions give a list with one element for each process.
        let answers = match answer {
            Json::Array(answers) => answers,
            answer => vec![answer],
        };
        let read = |answer| serde_json::from_value::<Statistics>(answer).ok().and_then(|read| read.stats);
        Ok(answers.into_iter().filter_map(read).flatten().collect())
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

    /// Gives an entry of a map that runs another value.
    pub async fn set_map_entry(&self, name: &str, key: &str, value: &str) -> Result<(), ApiError> {
        let call = Call::put(RUNTIME).part("maps").part(name).part("entries").part(key);
        self.transport().call(call.json(json!({ "value": value })), &[200]).await?;
        Ok(())
    }

    /// Removes an entry from a map that runs.
    pub async fn delete_map_entry(&self, name: &str, key: &str) -> Result<(), ApiError> {
        let call = Call::delete(RUNTIME).part("maps").part(name).part("entries").part(key);
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
