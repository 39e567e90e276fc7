//! The JSON Schema of manifests, for editors: made from the loader's own table.

use serde_json::{Map, Value, json};

use super::table::{Field, READY, READY_ONE_OF, Section, TOP, Type};
use crate::item::StopSignal;

/// The JSON Schema (2020-12) of a manifest.
///
/// ```
/// let schema = setpoint_host::schema();
/// assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
/// assert!(schema["properties"]["files"]["description"].is_string());
/// ```
pub fn schema() -> Value {
    let mut properties = Map::new();
    for field in TOP {
        properties.insert(field.name.to_owned(), field_schema(field));
    }
    for section in Section::all() {
        let items = json!({
            "description": section.about,
            "type": ["object", "null"],
            "propertyNames": { "pattern": r"^[\p{L}\p{N}_./@+:~-]{1,200}$" },
            "additionalProperties": item(section),
        });
        properties.insert(section.key.to_owned(), items);
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Setpoint manifest",
        "description": "Declares the files, directories, links, processes and commands of a host.",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

fn item(section: &Section) -> Value {
    let properties: Map<String, Value> =
        section.fields.iter().map(|field| (field.name.to_owned(), field_schema(field))).collect();
    // All attributes of an item without required ones may be left out together.
    let optional = section.required.is_empty() && section.one_of.is_empty();
    let mut schema = json!({
        "description": format!("One {}.", section.kind),
        "type": if optional { json!(["object", "null"]) } else { json!("object") },
        "properties": properties,
        "additionalProperties": false,
    });
    if !section.required.is_empty() {
        schema["required"] = json!(section.required);
    }
    if !section.one_of.is_empty() {
        schema["oneOf"] = exactly_one(section.one_of);
    }
    schema
}

fn exactly_one(names: &[&str]) -> Value {
    names.iter().map(|name| json!({ "required": [name] })).collect()
}

fn field_schema(field: &Field) -> Value {
    let mut schema = match field.kind {
        Type::Text | Type::Content => json!({ "type": "string" }),
        Type::Boolean => json!({ "type": "boolean" }),
        Type::Mode => {
            json!({ "type": ["string", "integer"], "pattern": "^(0o)?0?[0-7]{3,4}$", "minimum": 0 })
        }
        Type::Account => json!({ "type": ["string", "integer"], "minLength": 1, "minimum": 0 }),
        Type::Wait => {
            json!({ "type": ["string", "integer"], "pattern": "^0*[1-9][0-9]*(ms|s|m|h)?$", "minimum": 1 })
        }
        Type::Grace => {
            json!({ "type": ["string", "integer"], "pattern": "^[0-9]+(ms|s|m|h)?$", "minimum": 0 })
        }
        Type::Signal => {
            let names = StopSignal::ALL.iter().map(|(name, _)| (*name).to_owned());
            let names: Vec<String> = names.flat_map(|name| [name.clone(), format!("SIG{name}")]).collect();
            json!({ "enum": names })
        }
        Type::Run => json!({
            "oneOf": [
                { "type": "string", "pattern": r"\S" },
                {
                    "type": "array",
                    "minItems": 1,
                    "prefixItems": [{ "type": ["string", "number", "boolean"], "pattern": r"\S" }],
                    "items": { "type": ["string", "number", "boolean"] },
                },
            ],
        }),
        Type::References => {
            let kinds: Vec<&str> = Section::all().map(|section| section.kind).collect();
            let pattern = format!("^({})\\..+$", kinds.join("|"));
            json!({ "type": "array", "items": { "type": "string", "pattern": pattern } })
        }
        Type::Environment => json!({
            "type": "object",
            "propertyNames": { "pattern": "^[^=]+$" },
            "additionalProperties": { "type": ["string", "number", "boolean"] },
        }),
        Type::Values => json!({ "type": "object" }),
        // A reference may stand for a part of it.
        Type::Port => json!({
            "type": ["string", "integer"],
            "pattern": r"^([^\s:]+:|\[[^\s]+\]:)?[0-9]{1,5}$|\$\{",
            "minimum": 1,
            "maximum": 65535,
        }),
        Type::Ready => {
            let properties: Map<String, Value> =
                READY.iter().map(|field| (field.name.to_owned(), field_schema(field))).collect();
            let one_of = exactly_one(READY_ONE_OF);
            json!({ "type": "object", "properties": properties, "additionalProperties": false, "oneOf": one_of })
        }
    };
    schema["description"] = json!(field.about);
    schema
}
