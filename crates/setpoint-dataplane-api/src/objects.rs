//! Between bodies and objects: what the schema asks, and what nobody knows.

use serde_json::{Map, Value as Json};
use setpoint_haproxy::model::{Context, ModelError, Object, ObjectKind, SectionModel};
use setpoint_haproxy::schema::{Violation, validate};

use crate::answer::Problem;
use crate::dialect::Dialect;

/// An object and the properties of its body that nobody knows.
pub(crate) type Read<T> = (T, Vec<String>);

/// Refuses a body that is no object.
fn properties(kind: ObjectKind, json: &Json, dialect: Dialect) -> Result<&Map<String, Json>, Problem> {
    static NONE: std::sync::LazyLock<Map<String, Json>> = std::sync::LazyLock::new(Map::new);
    match json {
        Json::Object(properties) => Ok(properties),
        Json::Null if dialect.is_new() => Err(Problem::new(422, "Value is not nullable")),
        // What is not there is empty.
        Json::Null => Ok(&NONE),
        _ if dialect.is_new() => Err(Problem::new(422, "value must be an object")),
        other => Err(Problem::new(400, format!("parsing data body failed: {kind} can't be {other}"))),
    }
}

/// Refuses what the schema does not allow: all of it at once, or the first, as the dialect does.
fn judged(violations: &[Violation], dialect: Dialect) -> Result<(), Problem> {
    let Some(first) = violations.first() else { return Ok(()) };
    Err(if dialect.is_new() {
        let all: Vec<String> = violations.iter().map(ToString::to_string).collect();
        Problem::new(422, all.join("\n"))
    } else {
        Problem::new(422, first.to_string()).coded(first.code())
    })
}

impl From<ModelError> for Problem {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::NotAnObject { .. } | ModelError::WrongType { .. } => {
                Self::new(400, error.to_string())
            }
            ModelError::Refused { .. } | ModelError::Unwritten { .. } | ModelError::Incomplete { .. } => {
                Self::new(400, format!("validation error: {error}"))
            }
        }
    }
}

/// Reads an object.
pub(crate) fn object(
    kind: ObjectKind,
    json: &Json,
    cx: &Context,
    dialect: Dialect,
) -> Result<Read<Object>, Problem> {
    let json = Json::Object(properties(kind, json, dialect)?.clone());
    // What is of the wrong type can't be judged.
    let (object, unknown) = Object::from_json(kind, &json, cx)?;
    judged(&validate(kind, &json, dialect.version()), dialect)?;
    Ok((object, unknown))
}

/// Reads all objects of a list.
pub(crate) fn list(
    kind: ObjectKind,
    json: &Json,
    cx: &Context,
    dialect: Dialect,
) -> Result<Read<Vec<Object>>, Problem> {
    let Json::Array(elements) = json else {
        let status = if dialect.is_new() { 422 } else { 400 };
        return Err(Problem::new(status, "value must be an array"));
    };
    let (mut objects, mut unknown) = (Vec::new(), Vec::new());
    for (index, json) in elements.iter().enumerate() {
        let (object, more) = object(kind, json, cx, dialect)?;
        objects.push(object);
        unknown.extend(more.into_iter().map(|path| format!("{index}.{path}")));
    }
    Ok((objects, unknown))
}

/// What the schema does not allow. A `listen` is a frontend and a backend in one: of it is asked what is asked of both.
fn violations(kind: ObjectKind, json: &Json, dialect: Dialect) -> Vec<Violation> {
    let kinds: &[ObjectKind] = match kind {
        ObjectKind::Listen => &[ObjectKind::Frontend, ObjectKind::Backend],
        _ => &[kind],
    };
    let mut found: Vec<Violation> = Vec::new();
    for violation in kinds.iter().flat_map(|kind| validate(*kind, json, dialect.version())) {
        if !found.contains(&violation) {
            found.push(violation);
        }
    }
    found
}

/// Reads a section; with what stands in it, if it is full.
pub(crate) fn section(
    kind: ObjectKind,
    json: &Json,
    full: bool,
    cx: &Context,
    dialect: Dialect,
) -> Result<Read<SectionModel>, Problem> {
    let json = Json::Object(properties(kind, json, dialect)?.clone());
    let (mut section, mut unknown) = SectionModel::from_json(kind, &json, cx)?;
    judged(&violations(kind, &json, dialect), dialect)?;
    if full {
        for child in &section.children {
            judged(&validate(child.kind, &child.to_json(), dialect.version()), dialect)?;
        }
    } else if !keeps_children(kind, dialect) {
        let mut ignored: Vec<String> =
            section.children.iter().map(|child| child.kind.collection_in(kind, cx.api).to_owned()).collect();
        ignored.dedup();
        unknown.extend(ignored);
        section.children.clear();
    }
    Ok((section, unknown))
}

/// Up to 3.1 a store holds what it loads, full or not.
pub(crate) fn keeps_children(kind: ObjectKind, dialect: Dialect) -> bool {
    kind == ObjectKind::CrtStore && dialect < Dialect::ALL[2]
}

/// Makes a body say a name.
pub(crate) fn named(kind: ObjectKind, json: &Json, name: &str) -> Json {
    let mut json = json.clone();
    if let (Some(path), Json::Object(properties)) = (kind.name_path(), &mut json) {
        properties.insert(path.to_owned(), Json::from(name));
    }
    json
}

/// What is echoed: the body without what nobody knows. What stands in a section is echoed, whether it was taken or not.
pub(crate) fn echoed(json: &Json, unknown: &[String]) -> Json {
    let mut json = json.clone();
    let is_child =
        |path: &str| ObjectKind::ALL.iter().any(|kind| !kind.is_section() && kind.collection() == path);
    for path in unknown {
        if let (Json::Object(properties), false) = (&mut json, path.contains('.') || is_child(path)) {
            properties.remove(path);
        }
    }
    json
}
