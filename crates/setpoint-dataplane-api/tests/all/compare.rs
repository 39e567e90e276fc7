//! Whether our server answered what the original did.
//!
//! The status, the headers that say what became of the configuration, and the body have to be the same; also where only the status
//! of a success is another. Of an error only its code is compared: the sentences are our own. What varied between two runs of the
//! original is not compared.

use serde_json::Value as Json;

use crate::recording::Exchange;
use crate::replay::{Answered, Speaker};

/// Properties of certificates: ours are others.
const OF_CERTIFICATES: [&str; 5] = ["not_after", "not_before", "size", "sha1_finger_print", "algorithm"];

/// The property of a certificate that names its hosts.
const HOSTS: &str = "domains";

/// In what an answer differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    Status(u16, u16),
    Header(&'static str, Option<String>, Option<String>),
    Body,
}

/// All differences between what was recorded and what was answered.
pub(crate) fn differences(speaker: &Speaker, exchange: &Exchange, ours: &Answered) -> Vec<Difference> {
    let theirs = &exchange.answer;
    let mut found = Vec::new();
    if theirs.status != ours.status {
        found.push(Difference::Status(theirs.status, ours.status));
        // A refusal says something else than a success.
        if theirs.status.max(ours.status) >= 400 {
            return found;
        }
    }
    for name in
        ["content-type", "www-authenticate", "access-control-allow-methods", "access-control-allow-origin"]
    {
        let (a, b) = (theirs.headers.get(name), ours.headers.get(name));
        if a != b {
            found.push(Difference::Header(name, a.cloned(), b.cloned()));
        }
    }
    let allowed = |headers: &std::collections::BTreeMap<String, String>| {
        headers.get("allow").map(|allow| {
            let mut methods: Vec<String> = allow.split(',').map(|method| method.trim().to_owned()).collect();
            methods.sort();
            methods
        })
    };
    if theirs.headers.get("allow").is_some_and(|allow| allow != "$VARIES")
        && allowed(&theirs.headers) != allowed(&ours.headers)
    {
        let (a, b) = (theirs.headers.get("allow"), ours.headers.get("allow"));
        found.push(Difference::Header("allow", a.cloned(), b.cloned()));
    }
    let has_reload = |headers: &std::collections::BTreeMap<String, String>| headers.contains_key("reload-id");
    if has_reload(&theirs.headers) != has_reload(&ours.headers) {
        let (a, b) = (theirs.headers.get("reload-id"), ours.headers.get("reload-id"));
        found.push(Difference::Header("reload-id", a.cloned(), b.cloned()));
    }
    let is_zero = |headers: &std::collections::BTreeMap<String, String>| {
        headers.get("configuration-version").map(|version| version == "0")
    };
    if is_zero(&theirs.headers) != is_zero(&ours.headers) {
        let (a, b) = (theirs.headers.get("configuration-version"), ours.headers.get("configuration-version"));
        found.push(Difference::Header("configuration-version", a.cloned(), b.cloned()));
    }
    let same = match (&theirs.json, &theirs.body) {
        (Some(json), _) if theirs.status >= 400 => ours
            .json()
            .is_some_and(|ours| ours.get("code") == json.get("code") && ours["message"].is_string()),
        (Some(json), _) => {
            let (mut a, mut b) = (speaker.named_json(json), ours.json().unwrap_or(Json::Null));
            if theirs.order_varies || is_list_of_sections(exchange) {
                sort(&mut a);
                sort(&mut b);
            }
            fits(&a, &b)
        }
        (None, Some(body)) => speaker.named(body) == ours.body,
        (None, None) => true,
    };
    if !same {
        found.push(Difference::Body);
    }
    found
}

/// The original keeps sections in an order of its own.
fn is_list_of_sections(exchange: &Exchange) -> bool {
    exchange.case.starts_with("backend.list") || exchange.case.starts_with("trailing-slash")
}

fn sort(json: &mut Json) {
    if let Json::Array(values) = json {
        values.sort_by_key(|value| {
            ["name", "url", "id"]
                .iter()
                .find_map(|key| value.get(*key))
                .map_or_else(|| value.to_string(), Json::to_string)
        });
    }
}

/// Properties whose values are counters, times and texts of the moment: that they are there is compared.
const OF_THE_MOMENT: [&str; 4] = ["info", "exp", "error", "lastchg"];

/// Whether a value is what was recorded.
fn fits(recorded: &Json, ours: &Json) -> bool {
    match (recorded, ours) {
        (Json::String(text), _) if text == "$VARIES" || text == "$N" => true,
        (Json::String(text), Json::String(ours)) => {
            let is_open =
                ["$VARIES", "$PID", "$DATE", "$N", "$HAPROXY"].iter().any(|name| text.contains(name));
            is_open || without_lines(text) == without_lines(ours)
        }
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| fits(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            let is_certificate = a.contains_key("serial");
            let same = |(name, a): (&String, &Json)| {
                let Some(b) = b.get(name) else { return false };
                is_certificate && OF_CERTIFICATES.contains(&name.as_str())
                    || name == "size" && exchange_is_about_paths(a)
                    || name == HOSTS && hosts(a).is_some_and(|hosts_of_a| Some(hosts_of_a) == hosts(b))
                    || OF_THE_MOMENT.contains(&name.as_str()) && same_shape(a, b)
                    || fits(a, b)
            };
            // Originals tell it, in an order that changes; the recordings do not have it.
            let is_unrecorded = |name: &String| is_certificate && name == HOSTS && !a.contains_key(name);
            let told = b.keys().filter(|name| !is_unrecorded(name)).count();
            a.len() == told && a.iter().all(same)
        }
        (a, b) => a == b,
    }
}

/// The hosts of a certificate, whatever their order.
fn hosts(json: &Json) -> Option<std::collections::BTreeSet<&str>> {
    Some(json.as_str()?.split(", ").collect())
}

/// Whether two values have the same properties.
fn same_shape(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Object(a), Json::Object(b)) => a.keys().eq(b.keys()),
        _ => true,
    }
}

/// A text without numbers of lines: our files have one line less at their beginning.
fn without_lines(text: &str) -> String {
    let mut parts = text.split("' line ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + "' line " + part.trim_start_matches(|letter: char| letter.is_ascii_digit())
    })
}

/// The size of a file that holds paths depends on where it is.
fn exchange_is_about_paths(size: &Json) -> bool {
    matches!(size.as_u64(), Some(35 | 76))
}
