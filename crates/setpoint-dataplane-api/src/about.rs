//! The API about itself: information, health, endpoints.

use serde_json::{Value as Json, json};
use setpoint_haproxy::model::ObjectKind;
use setpoint_instance::reload::processes;

use crate::Api;
use crate::answer::Answer;
use crate::route::{Operation, Path};
use crate::table::Other;

impl Api {
    pub(crate) fn info(&self) -> Answer {
        // Clients go by the patch level where a path has changed with it.
        let version = format!("v{} setpoint-{}", self.dialect.release(), env!("CARGO_PKG_VERSION"));
        let api = json!({ "build_date": "0001-01-01T00:00:00.000Z", "version": version });
        Answer::json(200, json!({ "api": api, "system": {} }))
    }

    pub(crate) async fn health(&self) -> Answer {
        let is_up = match processes(self.instance.master()).await {
            Ok(processes) => processes.serving().is_some(),
            Err(_) => false,
        };
        Answer::json(200, json!({ "haproxy": if is_up { "up" } else { "down" } }))
    }

    /// The endpoints just below a path.
    pub(crate) fn endpoints(&self, path: &str) -> Answer {
        let prefix = path.trim_matches('/').strip_prefix("v3").unwrap_or_default().trim_matches('/');
        let below = |path: &&Path| {
            let rest = match prefix {
                "" => Some(path.template.as_str()),
                prefix => path.template.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/')),
            };
            // What the original does not have, its clients don't know.
            let is_own = |operation: &Operation| match operation {
                Operation::Other(other) => *other == Other::Events,
                Operation::Section(section, _) => section.kind == ObjectKind::Listen,
                Operation::Child(..) => false,
            };
            let mut operations = path.operations.iter();
            let reads = operations.any(|(method, operation)| *method == "GET" && !is_own(operation));
            reads && rest.is_some_and(|rest| !rest.contains('/') && (!rest.is_empty() || prefix.is_empty()))
        };
        let shown = self.routes.paths.iter().filter(below).map(|path| {
            let name = path.template.rsplit('/').next().unwrap_or_default().replace('_', " ");
            json!({ "url": format!("/{}", path.template), "title": format!("Return {name}"), "description": format!("Returns {name}.") })
        });
        Answer::json(200, Json::Array(shown.collect()))
    }
}
