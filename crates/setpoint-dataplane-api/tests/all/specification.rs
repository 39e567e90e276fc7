//! Every operation of the specifications is routed, and what is served describes itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value as Json;
use setpoint_dataplane_api::Dialect;
use setpoint_haproxy::model::{Object, ObjectKind, SectionModel, Version};
use setpoint_testutils::{Missing, need};

use crate::found::{answer, request};
use crate::objects::{child_kind, recording, section_kind};
use crate::world::{Plan, World};

async fn world(dialect: Dialect) -> Result<World, Missing> {
    let plan = Plan { dialect, delay: Duration::from_millis(100), ..Plan::default() };
    World::start(&plan, |_, ports| {
        format!(
            "defaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\nfrontend f\n  bind {}\n",
            ports[0].address()
        )
    })
    .await
}

/// The operations of a dialect, as its specification has them.
fn specified(dialect: Dialect) -> BTreeSet<(String, String)> {
    let rows = include_str!("../data/operations.txt").lines().filter(|line| !line.starts_with('#'));
    let rows = rows.filter_map(|line| {
        let [first, last, method, path] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let versions: [Version; 2] = [first.parse().unwrap(), last.parse().unwrap()];
        (versions[0]..=versions[1]).contains(&dialect.version()).then(|| (path.to_owned(), method.to_owned()))
    });
    rows.collect()
}

/// Shows how many operations of each part of the specification are routed.
fn report(dialect: Dialect, specified: &BTreeSet<(String, String)>, routed: &BTreeSet<(String, String)>) {
    let mut parts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for operation in specified {
        let below = operation.0.trim_start_matches("/services/haproxy").trim_start_matches('/');
        let count = parts.entry(below.split('/').next().unwrap_or_default()).or_default();
        count.0 += 1;
        count.1 += usize::from(routed.contains(operation));
    }
    for (part, (operations, routed)) in parts {
        let part = if part.is_empty() { "/" } else { part };
        crate::conformance::show_line(
            "specification",
            dialect.version().as_str(),
            part,
            (operations, routed, 0),
            None,
        );
    }
}

#[tokio::test]
async fn every_operation_of_the_specifications_is_routed_and_none_beyond_but_our_own() {
    for dialect in Dialect::ALL {
        let world = need!(world(dialect).await);
        let routed: BTreeSet<(String, String)> =
            world.api.operations().into_iter().map(|(path, method)| (path, method.to_owned())).collect();
        let specified = specified(dialect);
        report(dialect, &specified, &routed);
        let missing: Vec<_> = specified.difference(&routed).collect();
        assert!(missing.is_empty(), "{}: {missing:?}", dialect.version());
        let own = routed.difference(&specified);
        // A `listen` has what a frontend and a backend have.
        let (listens, own): (Vec<_>, Vec<_>) = own.partition(|(path, _)| path.contains("/listens"));
        for (path, method) in &listens {
            let is_there = |section: &str| {
                let path = path.replace("/listens", section);
                specified.contains(&(path, method.clone()))
            };
            let is_known = is_there("/frontends") || is_there("/backends");
            assert!(is_known, "{}: {method} {path}", dialect.version());
        }
        assert!(listens.len() > 50, "{}: {}", dialect.version(), listens.len());
        let own: Vec<String> = own.iter().map(|(path, method)| format!("{method} {path}")).collect();
        assert_eq!(
            own,
            [
                "GET /services/haproxy/events",
                "POST /services/haproxy/reloads",
                "GET /services/haproxy/transactions/{id}/diff"
            ],
            "{}",
            dialect.version()
        );
        world.end().await;
    }
}

/// A specification, and where its models are.
struct Specification {
    whole: Json,
    models: &'static str,
}

impl Specification {
    async fn get(world: &World, path: &str, models: &'static str) -> Self {
        let (status, _, body) = answer(request(world, "GET", path)).await;
        assert_eq!(status, 200, "{path}: {body}");
        Self { whole: serde_json::from_str(&body).unwrap(), models }
    }

    /// The model that a reference names.
    fn model(&self, name: &str) -> Option<&Json> {
        self.whole.pointer(self.models)?.get(name)
    }

    /// The schema itself, or the one that it refers to.
    fn resolved<'s>(&'s self, schema: &'s Json) -> Option<&'s Json> {
        let Some(reference) = schema.get("$ref") else { return Some(schema) };
        self.model(reference.as_str()?.strip_prefix('#')?.strip_prefix(self.models)?.strip_prefix('/')?)
    }

    /// The references that lead nowhere.
    fn dangling(&self, json: &Json) -> Vec<String> {
        match json {
            Json::Object(properties) if properties.contains_key("$ref") => {
                let found = self.resolved(json).is_some();
                if found { Vec::new() } else { vec![json.to_string()] }
            }
            Json::Object(properties) => properties.values().flat_map(|json| self.dangling(json)).collect(),
            Json::Array(values) => values.iter().flat_map(|json| self.dangling(json)).collect(),
            _ => Vec::new(),
        }
    }

    /// In what some JSON is not as a schema says.
    fn misfits(&self, schema: &Json, json: &Json, path: &str) -> Vec<String> {
        let schema = self.resolved(schema).unwrap();
        let wrong = || vec![format!("{path}: {json} is not {schema}")];
        match (schema["type"].as_str().unwrap(), json) {
            ("object", Json::Object(properties)) => {
                let required = schema["required"].as_array().into_iter().flatten();
                let missing = required.filter(|name| !properties.contains_key(name.as_str().unwrap()));
                let mut found: Vec<String> =
                    missing.map(|name| format!("{path}.{name} is required")).collect();
                // What is free may hold anything.
                let is_free =
                    schema.get("properties").is_none() && schema.get("additionalProperties").is_none();
                for (name, json) in properties.iter().filter(|_| !is_free) {
                    let below = format!("{path}.{name}");
                    match schema["properties"].get(name).or(schema.get("additionalProperties")) {
                        Some(schema) => found.extend(self.misfits(schema, json, &below)),
                        None => found.push(format!("{below} is not described")),
                    }
                }
                found
            }
            ("array", Json::Array(values)) => {
                values.iter().flat_map(|json| self.misfits(&schema["items"], json, path)).collect()
            }
            ("integer", Json::Number(_)) | ("boolean", Json::Bool(_)) | ("string", Json::String(_)) => {
                let values = schema.get("enum").and_then(Json::as_array);
                // What is empty or zero is as good as not there.
                let is_none = *json == "" || *json == 0;
                if is_none || values.is_none_or(|values| values.contains(json)) {
                    Vec::new()
                } else {
                    wrong()
                }
            }
            _ => wrong(),
        }
    }
}

/// What a recorded object is.
fn kind_of(case: &Json) -> ObjectKind {
    let section = || section_kind(case["section"].as_str().unwrap());
    case["child"].as_str().map_or_else(section, child_kind)
}

#[tokio::test]
async fn the_models_of_all_objects_are_described_as_they_are_read() {
    for dialect in Dialect::ALL {
        let world = need!(world(dialect).await);
        let old = Specification::get(&world, "/specification", "/definitions").await;
        let new = Specification::get(&world, "/specification_openapiv3", "/components/schemas").await;
        for one in [&old, &new] {
            assert_eq!(one.dangling(&one.whole), [""; 0], "{}", dialect.version());
        }
        let put = &old.whole["paths"]["/services/haproxy/configuration/backends/{parent_name}/servers/{name}"]
            ["put"];
        let body = put["parameters"].as_array().unwrap().iter().find(|it| it["in"] == "body").unwrap();
        assert_eq!(body["schema"]["$ref"], "#/definitions/server", "{put}");
        let get = &new.whole["paths"]["/services/haproxy/configuration/backends"]["get"];
        let shown = &get["responses"]["default"]["content"]["application/json"]["schema"];
        assert_eq!(shown["items"]["$ref"], "#/components/schemas/backend", "{get}");
        let (mut count, mut misfits) = (0, Vec::new());
        for case in recording(dialect, "model").into_iter().flatten() {
            if case["status"].as_u64().is_none_or(|status| status >= 300) || case["child"] == "entries" {
                continue;
            }
            let (kind, sent, cx) = (kind_of(&case), &case["sent"], world.api.instance().context());
            let read = if kind.is_section() {
                SectionModel::from_json(kind, sent, cx).map(|(_, unknown)| unknown)
            } else {
                Object::from_json(kind, sent, cx).map(|(_, unknown)| unknown)
            };
            // What is not understood is not described either.
            if read.is_ok_and(|unknown| unknown.is_empty()) {
                let model = old.model(kind.model()).unwrap_or_else(|| panic!("{kind} is not described"));
                misfits.extend(old.misfits(model, sent, kind.model()));
                count += 1;
            }
        }
        misfits.sort();
        misfits.dedup();
        assert_eq!(misfits, [""; 0], "{}: {} of {count}", dialect.version(), misfits.len());
        assert!(count > 1000 || recording(dialect, "model").is_none(), "{}: {count}", dialect.version());
        world.end().await;
    }
}
