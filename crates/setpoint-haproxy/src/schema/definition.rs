//! What the objects of the API look like: the properties that the table knows, with what the schema asks of them.

use serde_json::{Map, Value as Json, json};

use super::{Rule, constraints};
use crate::model::{ObjectKind, Version};
use crate::table::grammar::Type;
use crate::table::{Shape, Slot, directives};

/// Describes the objects of a kind, without what stands in a section, as a JSON schema that both Swagger 2.0 and `OpenAPI` 3.0
/// understand.
///
/// ```
/// use setpoint_haproxy::model::{ObjectKind, Version};
/// use setpoint_haproxy::schema::definition;
///
/// let server = definition(ObjectKind::Server, Version::V3_4);
/// assert_eq!(server["required"], serde_json::json!(["address", "name"]));
/// let port = serde_json::json!({ "type": "integer", "minimum": 1, "maximum": 65535 });
/// assert_eq!(server["properties"]["port"], port);
/// ```
pub fn definition(kind: ObjectKind, api: Version) -> Json {
    let mut schema = directives().shape(kind).map_or_else(object, described);
    if !api.keeps_metadata(kind)
        && let Some(properties) = schema.get_mut("properties").and_then(Json::as_object_mut)
    {
        properties.remove("metadata");
    }
    for constraint in constraints().get(&kind).into_iter().flatten() {
        if constraint.versions.iter().any(|(first, last)| (*first..=*last).contains(&api.schema())) {
            constrain(&mut schema, &constraint.path, &constraint.rule);
        }
    }
    schema
}

/// Lists the kinds of objects that may stand in a section of a kind.
pub fn children(section: ObjectKind, api: Version) -> Vec<ObjectKind> {
    let mut kinds: Vec<ObjectKind> = directives().written(section, api).filter_map(|row| row.child).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

fn object() -> Json {
    json!({ "type": "object", "properties": {} })
}

fn described(shape: &Shape) -> Json {
    let mut schema = object();
    let mut slots: Vec<_> = shape.slots.iter().collect();
    slots.sort_unstable_by_key(|(path, _)| **path);
    for (path, slot) in slots {
        let property = match slot {
            Slot::Value(_, ty) => value(ty),
            Slot::Values(_, ty) => json!({ "type": "array", "items": value(ty) }),
            Slot::Objects(_, element) => json!({ "type": "array", "items": described(element) }),
            Slot::Json(_) => json!({ "type": "object" }),
        };
        insert(&mut schema, path, property);
    }
    schema
}

/// The type of a value, as JSON has it.
fn value(ty: &Type) -> Json {
    match ty {
        Type::Int
        | Type::Count
        | Type::Time(_)
        | Type::Seconds
        | Type::Size
        | Type::Bytes
        | Type::Kilobytes => json!({ "type": "integer" }),
        Type::Flag | Type::Set | Type::Unset | Type::Switch => json!({ "type": "boolean" }),
        _ => json!({ "type": "string" }),
    }
}

/// Puts a property at its path, into structures that are made on the way.
fn insert(schema: &mut Json, path: &str, property: Json) {
    let (outer, inner) = path.split_once('.').map_or((path, None), |(outer, inner)| (outer, Some(inner)));
    let Some(schema) = schema.as_object_mut() else { return };
    let properties = schema.entry("properties").or_insert_with(|| Json::Object(Map::new()));
    let Some(properties) = properties.as_object_mut() else { return };
    match inner {
        Some(inner) => insert(properties.entry(outer).or_insert_with(object), inner, property),
        None => {
            properties.insert(outer.to_owned(), property);
        }
    }
}

/// Finds a part of a schema.
fn at<'s>(schema: &'s mut Json, path: &[&'static str]) -> Option<&'s mut Json> {
    path.iter().try_fold(schema, |schema, name| match *name {
        "[]" => schema.get_mut("items"),
        name => schema.get_mut("properties")?.get_mut(name),
    })
}

/// Says what is asked of a property, if the table knows it.
fn constrain(schema: &mut Json, path: &[&'static str], rule: &Rule) {
    let Some((name, outer)) = path.split_last() else { return };
    let is_known = at(schema, path).is_some();
    let (Some(owner), true) = (at(schema, outer), is_known) else { return };
    if let Rule::Required { .. } = rule {
        let required =
            owner.as_object_mut().map(|owner| owner.entry("required").or_insert_with(|| json!([])));
        if let Some(required) = required.and_then(Json::as_array_mut) {
            required.push(Json::from(*name));
        }
        return;
    }
    let Some(property) = at(schema, path).and_then(Json::as_object_mut) else { return };
    let is_number = property.get("type").is_some_and(|ty| ty == "integer");
    let (word, asked) = match rule {
        Rule::Required { .. } => return,
        Rule::OneOf(values, _) => {
            let number = |value: &&str| value.parse::<i64>().ok().filter(|_| is_number).map(Json::from);
            ("enum", values.iter().map(|value| number(value).unwrap_or_else(|| Json::from(*value))).collect())
        }
        Rule::Pattern(source, _) => ("pattern", Json::from(*source)),
        Rule::Bound { bound, is_least: true, .. } => ("minimum", Json::from(*bound)),
        Rule::Bound { bound, is_least: false, .. } => ("maximum", Json::from(*bound)),
    };
    property.insert(word.to_owned(), asked);
}
