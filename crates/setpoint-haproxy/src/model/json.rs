//! Between objects and the API's JSON.

use serde_json::{Map, Value as Json};
use smol_str::SmolStr;

use super::{Context, Fields, Object, ObjectKind, SectionModel, Value, Version};
use crate::table::grammar::Type;
use crate::table::limits::Complaint;
use crate::table::write::{WriteContext, write_row};
use crate::table::{Shape, Slot, Zero, directives};

/// Why an object can't be made of JSON, or its text not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// What should be an object is something else.
    #[error("{kind}: an object is needed, not {found}")]
    NotAnObject {
        /// The kind of object.
        kind: ObjectKind,
        /// What there is.
        found: String,
    },
    /// A property has a value of the wrong type.
    #[error("{kind}: {path} can't be {found}: {needed} is needed")]
    WrongType {
        /// The kind of object.
        kind: ObjectKind,
        /// The property.
        path: String,
        /// What it needs.
        needed: &'static str,
        /// What there is.
        found: String,
    },
    /// HAProxy would refuse it.
    #[error("{kind}: {why}{}", hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default())]
    Refused {
        /// The kind of object.
        kind: ObjectKind,
        /// Why.
        why: String,
        /// The word it is about, if it is about one.
        word: Option<String>,
        /// What could be meant.
        hint: Option<String>,
    },
    /// A field of it is known, and HAProxy has no word for its value, or none beside what else is said.
    #[error("{kind}: HAProxy {version} has no line for {}", fields.iter().map(|(field, value)| format!("{field} `{value}`")).collect::<Vec<_>>().join(", "))]
    Unwritten {
        /// The kind of object.
        kind: ObjectKind,
        /// The version it was written for.
        version: Version,
        /// The fields, each with its value.
        fields: Vec<(String, String)>,
    },
    /// No row of the table can write the object: something is missing, or a value is none that HAProxy knows.
    #[error("{kind}: HAProxy {version} has no line for {object}")]
    Incomplete {
        /// The kind of object.
        kind: ObjectKind,
        /// The version it was written for.
        version: Version,
        /// The fields of the object, without secrets.
        object: String,
    },
}

impl ModelError {
    pub(crate) fn unwritten(kind: ObjectKind, version: Version, fields: Vec<(String, String)>) -> Self {
        Self::Unwritten { kind, version, fields }
    }

    /// Makes an error of what HAProxy would refuse of an object, without the secrets of the object.
    pub(crate) fn refused(kind: ObjectKind, fields: &Fields, complaint: Complaint) -> Self {
        let Complaint { why, word, hint, .. } = complaint;
        let shown = |text: &str| directives().secrets().message(text, fields);
        let is_shown = |word: &String| {
            let quoted = format!("`{word}`");
            shown(&quoted) == quoted
        };
        let (why, hint) = (shown(&why), hint.map(|hint| shown(&hint)));
        Self::Refused { kind, why, word: word.filter(is_shown), hint }
    }
}

impl Object {
    /// Makes an object of the API's JSON. The paths of properties that the model does not know are returned beside it: whether
    /// they are ignored, as the API does, is for the caller to decide.
    ///
    /// ```
    /// use setpoint_haproxy::model::{Context, Object, ObjectKind};
    ///
    /// let json = serde_json::json!({ "name": "s1", "address": "192.0.2.1", "port": 80, "check": "enabled" });
    /// let (server, unknown) = Object::from_json(ObjectKind::Server, &json, &Context::default())?;
    /// assert_eq!(server.to_json(), json);
    /// assert!(unknown.is_empty());
    ///
    /// let mut text = Vec::new();
    /// server.write(&Context::default(), &mut text)?;
    /// assert_eq!(text, b"server s1 192.0.2.1:80 check\n");
    /// # Ok::<(), setpoint_haproxy::model::ModelError>(())
    /// ```
    pub fn from_json(kind: ObjectKind, json: &Json, cx: &Context) -> Result<(Self, Vec<String>), ModelError> {
        let Some(properties) = json.as_object() else {
            return Err(ModelError::NotAnObject { kind, found: described(json) });
        };
        let (mut object, mut unknown) = (Self::new(kind), Vec::new());
        if let Some(shape) = directives().shape(kind) {
            let mut reader = Properties { kind, version: cx.api, unknown: &mut unknown };
            reader.read(shape, properties, ("", ""), &mut object.fields)?;
        }
        if !cx.api.keeps_metadata(kind)
            && let Some(field) = directives().metadata_field()
            && object.fields.remove(field).is_some()
        {
            unknown.push(field.path().to_owned());
        }
        object.imply(cx);
        Ok((object, unknown))
    }

    /// Sets what the API sets by itself where it is sent an object that says nothing of it.
    fn imply(&mut self, cx: &Context) {
        for row in directives().rows(self.kind, cx.api) {
            let Some((field, value)) = &row.attributes.implied else { continue };
            let applies = if self.kind.is_section() {
                // A value in a structure comes with the structure.
                field.path().rsplit_once('.').is_none_or(|(structure, _)| {
                    let within =
                        |path: &str| path.strip_prefix(structure).is_some_and(|rest| rest.starts_with('.'));
                    self.fields.iter().any(|(held, _)| within(held.path()))
                })
            } else {
                !matches!(write_row(row, &self.fields, WriteContext::new(cx, None)), Ok(None))
            };
            if applies && self.fields.get(*field).is_none() {
                self.fields.set(*field, value.clone());
            }
        }
    }

    /// Takes its name from the key that it is at in a map, if it has none. Returns whether the key is its name then.
    fn take_name(&mut self, key: &str) -> bool {
        if let (None, Some(field)) = (self.name(), directives().name_field(self.kind)) {
            self.fields.set(field, Value::Text(SmolStr::new(key)));
        }
        self.name() == Some(key)
    }

    /// Returns the object as the API shows it.
    pub fn to_json(&self) -> Json {
        Json::Object(write_properties(&self.fields))
    }
}

impl SectionModel {
    /// Returns the section with all that stands in it, as the API shows it with `full_section=true`.
    pub fn to_json(&self, cx: &Context) -> Json {
        let Some(object) = &self.object else { return Json::Object(Map::new()) };
        let mut properties = write_properties(&object.fields);
        for child in &self.children {
            let collection = child.kind.collection_in(object.kind, cx.api).to_owned();
            if let Some(name) = child.name().filter(|_| !child.kind.is_ordered() && collection != "loads") {
                let named = properties.entry(collection).or_insert_with(|| Json::Object(Map::new()));
                if let Some(named) = named.as_object_mut() {
                    named.insert(name.to_owned(), child.to_json());
                }
            } else {
                let listed = properties.entry(collection).or_insert_with(|| Json::Array(Vec::new()));
                if let Some(listed) = listed.as_array_mut() {
                    listed.push(child.to_json());
                }
            }
        }
        Json::Object(properties)
    }

    /// Makes a section of the API's JSON, with the children that stand in it, and beside it the paths of properties that the
    /// model does not know, and of keys that are not the names of what they hold: as in the API, the name counts.
    pub fn from_json(kind: ObjectKind, json: &Json, cx: &Context) -> Result<(Self, Vec<String>), ModelError> {
        let (object, mut unknown) = Object::from_json(kind, json, cx)?;
        let mut children = Vec::new();
        for child in directives().written(kind, cx.api).filter_map(|row| row.child) {
            let collection = child.collection_in(kind, cx.api);
            unknown.retain(|path| path != collection);
            let at = |key: &dyn std::fmt::Display| format!("{collection}.{key}");
            let elements: Vec<(String, Option<&str>, &Json)> = match json.get(collection) {
                None | Some(Json::Null) => Vec::new(),
                Some(Json::Array(elements)) => {
                    elements.iter().enumerate().map(|(index, json)| (at(&index), None, json)).collect()
                }
                Some(Json::Object(named)) if !child.is_ordered() => {
                    named.iter().map(|(name, json)| (at(name), Some(name.as_str()), json)).collect()
                }
                Some(other) => return Err(wrong(kind, collection, "a list", other)),
            };
            for (path, key, json) in elements {
                let (mut object, more) = Object::from_json(child, json, cx)?;
                if key.is_some_and(|key| !object.take_name(key)) {
                    unknown.push(path.clone());
                }
                children.push(object);
                unknown.extend(more.into_iter().map(|property| format!("{path}.{property}")));
            }
        }
        let name = object.name().map(SmolStr::new);
        let kind = directives().section_kind(kind);
        let section = Self { children, ..Self::of(kind, name, object) };
        Ok((section, unknown))
    }
}

/// Reads the properties of one object.
struct Properties<'u> {
    kind: ObjectKind,
    version: Version,
    /// The paths of those that the model does not know.
    unknown: &'u mut Vec<String>,
}

impl Properties<'_> {
    /// Sets the fields that some properties stand for; `outer` is the path of the element of a list that they belong to.
    fn read(
        &mut self,
        shape: &Shape,
        properties: &Map<String, Json>,
        (outer, prefix): (&str, &str),
        into: &mut Fields,
    ) -> Result<(), ModelError> {
        let (kind, version) = (self.kind, self.version);
        for (name, json) in properties {
            let path = format!("{prefix}{name}");
            match (shape.slots.get(path.as_str()), json) {
                (_, Json::Null) => {}
                (Some(Slot::Json(field)), Json::Object(object)) => {
                    if !object.is_empty() {
                        into.set(*field, Value::Json(Box::new(json.clone())));
                    }
                }
                (Some(Slot::Value(field, ty)), json) => {
                    let value = read_value(kind, &path, ty, json)?;
                    let dropped = match &value {
                        Value::Int(0) | Value::Bool(false) => !directives().zero(*field).is_kept(version),
                        Value::Text(text) => text.is_empty(),
                        _ => false,
                    };
                    if !dropped {
                        into.set(*field, value);
                    }
                }
                (Some(Slot::Values(field, ty)), Json::Array(values)) => {
                    let values: Result<Vec<Value>, ModelError> =
                        values.iter().map(|json| read_value(kind, &path, ty, json)).collect();
                    let values = values?;
                    if !values.is_empty() {
                        into.set(*field, Value::List(values.into_boxed_slice()));
                    }
                }
                (Some(Slot::Objects(field, element)), Json::Array(values)) => {
                    let mut elements = Vec::with_capacity(values.len());
                    for (index, json) in values.iter().enumerate() {
                        let Some(properties) = json.as_object() else {
                            return Err(wrong(kind, &path, "a list of objects", json));
                        };
                        let mut fields = Fields::new();
                        let here = format!("{outer}{path}.{index}.");
                        self.read(element, properties, (&here, ""), &mut fields)?;
                        elements.push(Value::Object(Box::new(fields)));
                    }
                    if !elements.is_empty() {
                        into.set(*field, Value::List(elements.into_boxed_slice()));
                    }
                }
                (Some(Slot::Values(..) | Slot::Objects(..)), json) => {
                    return Err(wrong(kind, &path, "a list", json));
                }
                (None, _) if !shape.has_structure(&path) => self.unknown.push(format!("{outer}{path}")),
                (None, Json::Object(nested)) => {
                    self.read(shape, nested, (outer, &format!("{path}.")), into)?;
                }
                (Some(Slot::Json(_)) | None, json) => return Err(wrong(kind, &path, "an object", json)),
            }
        }
        Ok(())
    }
}

/// Tells what some JSON is. What a text, a list or an object holds may be a secret.
fn described(json: &Json) -> String {
    match json {
        Json::String(_) => "a text".to_owned(),
        Json::Array(_) => "a list".to_owned(),
        Json::Object(_) => "an object".to_owned(),
        json => json.to_string(),
    }
}

fn wrong(kind: ObjectKind, path: &str, needed: &'static str, found: &Json) -> ModelError {
    ModelError::WrongType { kind, path: path.to_owned(), needed, found: described(found) }
}

/// Reads a value that the schema says is of a type.
fn read_value(kind: ObjectKind, path: &str, ty: &Type, json: &Json) -> Result<Value, ModelError> {
    let needed = match (ty, json) {
        (
            Type::Int
            | Type::Count
            | Type::Time(_)
            | Type::Seconds
            | Type::Size
            | Type::Bytes
            | Type::Kilobytes,
            Json::Number(number),
        ) => match number.as_i64() {
            Some(number) => return Ok(Value::Int(number)),
            None => "a whole number",
        },
        (
            Type::Int
            | Type::Count
            | Type::Time(_)
            | Type::Seconds
            | Type::Size
            | Type::Bytes
            | Type::Kilobytes,
            _,
        ) => "a number",
        (Type::Flag | Type::Set | Type::Unset | Type::Switch, Json::Bool(flag)) => {
            return Ok(Value::Bool(*flag));
        }
        (Type::Flag | Type::Set | Type::Unset | Type::Switch, _) => "true or false",
        (_, Json::String(text)) => return Ok(Value::Text(SmolStr::new(text))),
        _ => "a text",
    };
    Err(wrong(kind, path, needed, json))
}

/// Turns fields into properties, nested as their paths say.
fn write_properties(fields: &Fields) -> Map<String, Json> {
    let mut properties = Map::new();
    for (field, value) in fields {
        let Some(json) = write_value(value, directives().zero(*field) != Zero::Dropped) else { continue };
        insert(&mut properties, field.path(), json);
    }
    properties
}

/// Puts a property at its path, into structures that are made on the way.
fn insert(properties: &mut Map<String, Json>, path: &str, json: Json) {
    let Some((outer, inner)) = path.split_once('.') else {
        properties.insert(path.to_owned(), json);
        return;
    };
    let nested = properties.entry(outer.to_owned()).or_insert_with(|| Json::Object(Map::new()));
    if let Json::Object(nested) = nested {
        insert(nested, inner, json);
    }
}

/// Turns a value into JSON; what means «not there» is left out.
fn write_value(value: &Value, keeps_zero: bool) -> Option<Json> {
    Some(match value {
        Value::Int(0) | Value::Bool(false) if !keeps_zero => return None,
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Int(number) => Json::from(*number),
        Value::Text(text) => Json::from(text.as_str()),
        Value::List(values) => {
            Json::Array(values.iter().filter_map(|value| write_value(value, true)).collect())
        }
        Value::Object(fields) => Json::Object(write_properties(fields)),
        Value::Json(json) => (**json).clone(),
    })
}
