//! The specification of what is served, from the tables that drive it: paths, methods, parameters and models.

use serde_json::{Map, Value as Json, json};
use setpoint_haproxy::model::ObjectKind;
use setpoint_haproxy::schema::{children, definition};

use crate::Api;
use crate::answer::Answer;
use crate::dialect::Dialect;
use crate::route::{Operation, Path};
use crate::table::{Other, Parent, SECTIONS, Since, Verb};

/// How a specification is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Swagger2,
    OpenApi3,
}

impl Format {
    /// A reference to the model of a kind.
    fn reference(self, kind: ObjectKind) -> Json {
        let models = match self {
            Self::Swagger2 => "#/definitions",
            Self::OpenApi3 => "#/components/schemas",
        };
        json!({ "$ref": format!("{models}/{}", kind.model()) })
    }

    fn parameter(self, place: &str, name: &str, kind: &str) -> Json {
        let is_required = place == "path";
        match self {
            Self::Swagger2 => json!({ "name": name, "in": place, "required": is_required, "type": kind }),
            Self::OpenApi3 => {
                json!({ "name": name, "in": place, "required": is_required, "schema": { "type": kind } })
            }
        }
    }

    /// An operation with a body and an answer, if it has them.
    fn operation(self, summary: &str, mut parameters: Vec<Json>, body: Option<Json>, answer: &Json) -> Json {
        if self == Self::Swagger2 {
            let body = body
                .map(|schema| json!({ "name": "data", "in": "body", "required": true, "schema": schema }));
            parameters.extend(body);
            return json!({ "summary": summary, "parameters": parameters, "responses": answer });
        }
        let mut operation = json!({ "summary": summary, "parameters": parameters, "responses": answer });
        if let (Some(schema), Some(properties)) = (body, operation.as_object_mut()) {
            let content = json!({ "application/json": { "schema": schema } });
            properties.insert("requestBody".to_owned(), json!({ "required": true, "content": content }));
        }
        operation
    }

    fn answer(self, status: &str, schema: Option<Json>) -> Json {
        match (self, schema) {
            (_, None) => json!({ status: { "description": "" } }),
            (Self::Swagger2, Some(schema)) => json!({ status: { "description": "", "schema": schema } }),
            (Self::OpenApi3, Some(schema)) => {
                let content = json!({ "application/json": { "schema": schema } });
                json!({ status: { "description": "", "content": content } })
            }
        }
    }
}

fn has(dialect: Dialect, since: Since) -> bool {
    (since.0..=since.1).contains(&dialect.version())
}

/// The models of all sections and of what stands in them.
fn models(dialect: Dialect, format: Format) -> Map<String, Json> {
    let (mut models, version) = (Map::new(), dialect.version());
    for section in SECTIONS.iter().filter(|section| has(dialect, section.since)) {
        let mut model = definition(section.kind, version);
        for child in children(section.kind, version) {
            let (collection, reference) =
                (child.collection_in(section.kind, version), format.reference(child));
            let schema = if child.is_ordered() || collection == "loads" {
                json!({ "type": "array", "items": reference })
            } else {
                json!({ "type": "object", "additionalProperties": reference })
            };
            if let Some(properties) = model.get_mut("properties").and_then(Json::as_object_mut) {
                properties.insert(collection.to_owned(), schema);
            }
            models.entry(child.model()).or_insert_with(|| definition(child, version));
        }
        models.insert(section.kind.model().to_owned(), model);
    }
    models
}

/// What the configuration's operations take beside the names in their path.
fn parameters(operation: &Operation, format: Format) -> Vec<Json> {
    let (verb, mut own) = match operation {
        Operation::Section(_, Verb::Delete) => (Verb::Delete, Vec::new()),
        Operation::Section(_, verb) => (*verb, vec![format.parameter("query", "full_section", "boolean")]),
        Operation::Child(child, verb) => match child.parent {
            Parent::Query(name) => {
                let mut parent = format.parameter("query", name, "string");
                parent["required"] = Json::Bool(true);
                (*verb, vec![parent])
            }
            Parent::Path | Parent::Unnamed => (*verb, Vec::new()),
        },
        Operation::Other(_) => return Vec::new(),
    };
    own.push(format.parameter("query", "transaction_id", "string"));
    if !matches!(verb, Verb::List | Verb::Get) {
        own.push(format.parameter("query", "version", "integer"));
        own.push(format.parameter("query", "force_reload", "boolean"));
    }
    own
}

/// Describes one operation.
fn described(path: &Path, operation: &Operation, format: Format) -> Json {
    let names = path.template.split('/').filter_map(|word| word.strip_prefix('{')?.strip_suffix('}'));
    let mut given: Vec<Json> = names.map(|name| format.parameter("path", name, "string")).collect();
    given.extend(parameters(operation, format));
    let (kind, verb) = match operation {
        Operation::Section(section, verb) => (section.kind, *verb),
        Operation::Child(child, verb) => (child.kind, *verb),
        Operation::Other(Other::NotServed(what)) => {
            let answer = format.answer("501", None);
            return format.operation(&format!("{what}: not served"), given, None, &answer);
        }
        Operation::Other(_) => return format.operation("", given, None, &format.answer("default", None)),
    };
    let one = || format.reference(kind);
    let all = || json!({ "type": "array", "items": format.reference(kind) });
    let (body, answer) = match verb {
        Verb::List => (None, Some(all())),
        Verb::Get => (None, Some(one())),
        Verb::Create | Verb::CreateAt | Verb::Replace => (Some(one()), Some(one())),
        Verb::ReplaceAll => (Some(all()), Some(all())),
        Verb::Delete => (None, None),
    };
    format.operation(&kind.to_string(), given, body, &format.answer("default", answer))
}

impl Api {
    /// What is routed, as a specification. What the API refuses to serve is named.
    pub(crate) fn specification(&self, format: Format) -> Answer {
        let mut paths = Map::new();
        for path in &self.routes.paths {
            let operations = path.operations.iter();
            let methods: Map<String, Json> = operations
                .map(|(method, operation)| (method.to_ascii_lowercase(), described(path, operation, format)))
                .collect();
            paths.insert(format!("/{}", path.template), Json::Object(methods));
        }
        let models = models(self.dialect, format);
        let info = json!({
            "title": "HAProxy Data Plane API",
            "description": "The Dataplane API as Setpoint serves it.",
            "version": self.dialect.version().as_str(),
        });
        Answer::json(
            200,
            match format {
                Format::OpenApi3 => json!({
                    "openapi": "3.0.1",
                    "info": info,
                    "servers": [{ "url": "/v3" }],
                    "paths": paths,
                    "components": { "schemas": models },
                }),
                Format::Swagger2 => json!({
                    "swagger": "2.0",
                    "info": info,
                    "basePath": "/v3",
                    "consumes": ["application/json"],
                    "produces": ["application/json"],
                    "paths": paths,
                    "definitions": models,
                }),
            },
        )
    }
}
