//! Where our server answers something else than the original on purpose. `docs/dataplane-api.md` lists the same.

use crate::compare::Difference;
use crate::recording::Exchange;
use crate::replay::Answered;

/// A reason, and which differences it explains.
pub(crate) struct Reason {
    pub(crate) name: &'static str,
    explains: fn(&Exchange, &Answered, &[Difference]) -> bool,
}

fn only_body(differences: &[Difference]) -> bool {
    differences == [Difference::Body]
}

/// The status of a change that needs no reload, for the method.
fn without_reload(exchange: &Exchange) -> u16 {
    match exchange.method.as_str() {
        "POST" => 201,
        "DELETE" => 204,
        _ => 200,
    }
}

/// All reasons.
pub(crate) const REASONS: &[Reason] = &[
    Reason {
        name: "no reload where HAProxy was told, or nothing changed",
        explains: |exchange, ours, differences| {
            let cases = [
                "backend.replace.same-again",
                "backend.replace.other-name-in-body",
                "server.delete",
                "server.replace.rename",
                "rule.replace-all.empty",
                "tx.empty.commit",
                "tx.server-only.commit",
                "raw.push.same-text",
                // It adds a backend, of which HAProxy 3.4 is told.
                "raw.push.version",
            ];
            let status = if exchange.case.starts_with("raw.push") { 201 } else { without_reload(exchange) };
            let is_stored = exchange.case.starts_with("raw.push") && is_stored(exchange, ours);
            cases.contains(&exchange.case.as_str()) && is_without_reload(differences, 202, status, is_stored)
        },
    },
    Reason {
        name: "entries of a map or an ACL that is loaded are told, without a reload",
        explains: |exchange, ours, differences| {
            let is_file =
                exchange.path.contains("/storage/maps/") || exchange.path.contains("/storage/general/");
            is_file
                && exchange.method == "PUT"
                && ours.is_held
                && ours.body.is_empty()
                && is_without_reload(differences, 202, 204, false)
        },
    },
    Reason {
        name: "a pushed text is stored as it was sent",
        explains: |exchange, ours, differences| {
            exchange.case.starts_with("raw.push.") && only_body(differences) && is_stored(exchange, ours)
        },
    },
    Reason {
        name: "a file that was edited by hand is seen, and never overwritten in silence",
        explains: |exchange, ours, differences| match exchange.case.as_str() {
            "file-changed.version" => {
                let number =
                    |json: Option<serde_json::Value>| json.as_ref().and_then(serde_json::Value::as_u64);
                only_body(differences) && number(ours.json()) > number(exchange.answer.json.clone())
            }
            "file-changed.backend" | "file-changed.backend.after-write" => {
                differences == [Difference::Status(404, 200)] && ours.body.contains("behind")
            }
            _ => false,
        },
    },
    Reason {
        name: "the list of endpoints is there, as the specification says",
        explains: |exchange, ours, differences| {
            exchange.case == "root"
                && differences == [Difference::Status(404, 200)]
                && ours.body.contains("/services")
        },
    },
    Reason {
        name: "a map that the configuration names is not deleted",
        explains: |exchange, ours, differences| match exchange.case.as_str() {
            "runtime.map.clear.force-delete" => {
                differences == [Difference::Status(204, 409)]
                    && ours.body.contains("referenced in haproxy conf")
            }
            "runtime.map.storage.after-force-delete" => differences == [Difference::Status(404, 200)],
            "storage.maps.put-back" => {
                differences == [Difference::Status(201, 409)] && ours.body.contains("already exists")
            }
            _ => false,
        },
    },
    Reason {
        name: "a table that is not there, or a value that it does not store, is the client's mistake",
        explains: |exchange, _, differences| match exchange.case.as_str() {
            "runtime.stick_table.entries.missing" => differences == [Difference::Status(500, 404)],
            "runtime.stick_table.entry.set.bad-type" => differences == [Difference::Status(500, 400)],
            _ => false,
        },
    },
    Reason {
        name: "health is known",
        explains: |exchange, ours, differences| {
            let state = if exchange.case.starts_with("haproxy-down") { "down" } else { "up" };
            exchange.case.ends_with("health")
                && only_body(differences)
                && ours.json() == Some(serde_json::json!({ "haproxy": state }))
        },
    },
    Reason {
        name: "the version is this program's",
        explains: |exchange, ours, differences| {
            let version = concat!(" setpoint-", env!("CARGO_PKG_VERSION"));
            exchange.case == "info"
                && only_body(differences)
                && ours.json().is_some_and(|ours| {
                    ours["system"].is_object()
                        && ours["api"]["version"].as_str().is_some_and(|held| held.ends_with(version))
                })
        },
    },
    Reason {
        name: "endpoints are described in our own words",
        explains: |exchange, ours, differences| {
            only_body(differences)
                && (exchange.case.ends_with(".endpoints")
                    || matches!(exchange.case.as_str(), "root" | "services" | "services.haproxy"))
                && same_urls(exchange, ours)
        },
    },
    Reason {
        name: "a value of a map keeps its blanks",
        explains: |exchange, ours, differences| {
            only_body(differences)
                && (exchange.case.starts_with("storage.map.after-sync")
                    || exchange.case.starts_with("runtime.map.entries.after"))
                && ours.body.contains("two words")
        },
    },
    Reason {
        name: "the entries of an ACL can be replaced by its number",
        explains: |exchange, ours, differences| match exchange.case.as_str() {
            "runtime.acl.payload" => differences == [Difference::Status(400, 201)],
            "runtime.acl.entry.get" => only_body(differences) && ours.body.contains("192.0.2.8"),
            "runtime.acl.entries.after-delete" => only_body(differences) && ours.body.contains("192.0.2.9"),
            _ => false,
        },
    },
    Reason {
        name: "all lists of certificates are listed, and an empty list is a list",
        explains: |exchange, ours, differences| {
            only_body(differences)
                && match exchange.case.as_str() {
                    "storage.ssl_crt_lists.list" => ours.body.contains("list1.crtlist"),
                    "runtime.ssl_crt_lists" => ours.body.trim() == "[]",
                    _ => false,
                }
        },
    },
    Reason {
        name: "sections keep their places, and what was set at runtime survives reloads",
        explains: |exchange, ours, differences| {
            let is_it = exchange.case.starts_with("runtime.server") || exchange.case == "stats.native.server";
            is_it
                && only_body(differences)
                && same_but(exchange, ours, |name, recorded, ours| match name {
                    // The original puts the backends of a file into an order of its own.
                    "backend_id" | "iid" => recorded == 5 && ours == 3,
                    // A runtime action has set it.
                    "uweight" | "weight" => recorded == 6 && ours == 7,
                    _ => false,
                })
        },
    },
    Reason {
        name: "no comma stands behind the last name of a certificate",
        explains: |exchange, ours, differences| {
            let ignored =
                ["not_after", "not_before", "algorithm", "sha1_finger_print", "subject_alternative_names"];
            exchange.case == "runtime.ssl_cert"
                && only_body(differences)
                && same_but(exchange, ours, |name, _, _| ignored.contains(&name))
                && ours.body.contains("DNS:b.example.test, DNS:www.b.example.test\"")
        },
    },
    Reason {
        name: "a failed reload says why",
        explains: |exchange, ours, differences| {
            exchange.case == "haproxy-down.reloads"
                && only_body(differences)
                && ours.body.contains("HAProxy does not run")
        },
    },
    Reason {
        name: "not served: SPOE, sites, service discovery",
        explains: |exchange, ours, _| {
            ours.status == 501
                && ["/spoe", "/sites", "/service_discovery"].iter().any(|part| exchange.path.contains(part))
        },
    },
];

/// Whether the text that was sent is there as it was, with our version line, and nothing else. Lines with names that are made for
/// the test are not looked at.
fn is_stored(exchange: &Exchange, ours: &Answered) -> bool {
    let own = |line: &&str| !line.starts_with("# _version=") && !line.starts_with("# _md5hash=");
    let Some(sent) = exchange.body.as_deref() else { return false };
    let (sent, held): (Vec<&str>, Vec<&str>) =
        (sent.lines().filter(own).collect(), ours.body.lines().filter(own).collect());
    sent.len() == held.len() && sent.iter().zip(&held).all(|(sent, held)| sent.contains('$') || sent == held)
}

/// Whether the same endpoints are listed, but for our own.
fn same_urls(exchange: &Exchange, ours: &Answered) -> bool {
    let urls = |json: &serde_json::Value| {
        let mut urls: Vec<String> = json
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|it| Some(it.get("url")?.as_str()?.to_owned()))
            .collect();
        urls.sort();
        urls
    };
    let (theirs, ours) = (exchange.answer.json.as_ref().map(urls), ours.json().as_ref().map(urls));
    theirs.is_some() && theirs == ours
}

/// Whether the bodies are the same but for some properties, of which is said what they may be.
fn same_but(
    exchange: &Exchange,
    ours: &Answered,
    may_differ: impl Fn(&str, &serde_json::Value, &serde_json::Value) -> bool,
) -> bool {
    fn same(
        recorded: &serde_json::Value,
        ours: &serde_json::Value,
        may_differ: &dyn Fn(&str, &serde_json::Value, &serde_json::Value) -> bool,
    ) -> bool {
        use serde_json::Value as Json;
        match (recorded, ours) {
            (Json::String(text), _) if text.contains('$') => true,
            (Json::Array(a), Json::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b, may_differ))
            }
            (Json::Object(a), Json::Object(b)) => {
                let is_same = |(name, a): (&String, &Json)| {
                    same(a, &b[name], may_differ) || may_differ(name, a, &b[name])
                };
                a.keys().eq(b.keys()) && a.iter().all(is_same)
            }
            (a, b) => a == b,
        }
    }
    match (&exchange.answer.json, ours.json()) {
        (Some(recorded), Some(ours)) => same(recorded, &ours, &may_differ),
        _ => false,
    }
}

/// Whether nothing differs but the status and the reload that is not there, and the body if that may be another.
fn is_without_reload(differences: &[Difference], recorded: u16, ours: u16, other_body: bool) -> bool {
    let is_reload =
        |difference: &Difference| matches!(difference, Difference::Header("reload-id", Some(_), None));
    match differences {
        [Difference::Status(a, b), reload, rest @ ..] => {
            (*a, *b) == (recorded, ours)
                && is_reload(reload)
                && (rest.is_empty() || other_body && rest == [Difference::Body])
        }
        _ => false,
    }
}

/// The reason for the differences of an exchange, if there is one.
pub(crate) fn reason(
    exchange: &Exchange,
    ours: &Answered,
    differences: &[Difference],
) -> Option<&'static str> {
    REASONS.iter().find(|reason| (reason.explains)(exchange, ours, differences)).map(|reason| reason.name)
}
