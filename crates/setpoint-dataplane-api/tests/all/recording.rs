//! Recordings of the original: what was asked, and what it answered.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value as Json;
use setpoint_conformance::recordings;
use setpoint_dataplane_api::Dialect;

/// One exchange.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) case: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) auth: Option<String>,
    /// None if the header was not sent.
    pub(crate) content_type: Option<String>,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) json: Option<Json>,
    pub(crate) body: Option<String>,
    pub(crate) answer: Recorded,
}

/// What the original answered.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) json: Option<Json>,
    pub(crate) body: Option<String>,
    pub(crate) order_varies: bool,
}

fn strings(json: Option<&Json>) -> BTreeMap<String, String> {
    let pairs = json.and_then(Json::as_object).into_iter().flatten();
    pairs.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}

fn text(json: &Json, name: &str) -> Option<String> {
    json.get(name).and_then(Json::as_str).map(str::to_owned)
}

impl Exchange {
    fn read(line: &str) -> Self {
        let json: Json = serde_json::from_str(line).unwrap();
        let request = &json["request"];
        Self {
            case: text(&json, "case").unwrap(),
            method: text(request, "method").unwrap(),
            path: text(request, "path").unwrap(),
            auth: text(request, "auth"),
            content_type: text(request, "content_type"),
            headers: strings(request.get("headers")),
            json: request.get("json").cloned(),
            body: text(request, "body"),
            answer: Recorded {
                status: json["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap(),
                headers: strings(json.get("headers")),
                json: json.get("json").cloned(),
                body: text(&json, "body"),
                order_varies: json.get("list_order_varies") == Some(&Json::Bool(true)),
            },
        }
    }
}

/// Reads a recording of a dialect; `None` if there is none. It is in another folder if the environment says so.
pub(crate) fn read(dialect: Dialect, kind: &str) -> Option<String> {
    let folder = std::env::var_os("SETPOINT_RECORDINGS").map_or_else(recordings::committed, PathBuf::from);
    recordings::read(&folder, &format!("{}.{kind}", dialect.version())).unwrap()
}

/// The exchanges of a dialect.
pub(crate) fn exchanges(dialect: Dialect) -> Vec<Exchange> {
    let text = read(dialect, "http").unwrap();
    text.lines().map(Exchange::read).collect()
}
