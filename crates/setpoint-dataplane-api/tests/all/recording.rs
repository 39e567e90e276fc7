//! Recordings of the original: what was asked, and what it answered.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value as Json;
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

/// The folder of the recordings: another one if the environment says so.
fn folder() -> PathBuf {
    match std::env::var_os("SETPOINT_RECORDINGS") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recordings"),
    }
}

/// The exchanges of a dialect.
pub(crate) fn exchanges(dialect: Dialect) -> Vec<Exchange> {
    let plain = folder().join(format!("{}.http.jsonl", dialect.version()));
    let mut text = String::new();
    if plain.exists() {
        File::open(&plain).unwrap().read_to_string(&mut text).unwrap();
    } else {
        let packed = plain.with_extension("jsonl.gz");
        let file = File::open(&packed).unwrap_or_else(|error| panic!("{}: {error}", packed.display()));
        GzDecoder::new(file).read_to_string(&mut text).unwrap();
    }
    text.lines().map(Exchange::read).collect()
}
