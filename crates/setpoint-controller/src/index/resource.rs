//! A resource as it is kept: read once, for templates.

use std::fmt;

use minijinja::value::Serde;
use serde_json::Value;
use smol_str::SmolStr;

/// What tells a resource from the others of its kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId {
    /// Its namespace; empty where it is in none.
    pub namespace: SmolStr,
    /// Its name.
    pub name: SmolStr,
}

impl ResourceId {
    /// Names a resource.
    pub fn new(namespace: impl Into<SmolStr>, name: impl Into<SmolStr>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}

/// A resource.
#[derive(Clone, Debug)]
pub struct Resource {
    id: ResourceId,
    version: SmolStr,
    value: minijinja::Value,
}

/// Something that is no resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotAResource {
    /// It is no object.
    #[error("it is no object")]
    NoObject,
    /// It has no name.
    #[error("it has no metadata.name")]
    NoName,
}

impl Resource {
    /// Takes a resource as Kubernetes writes it.
    pub fn new(object: &Value) -> Result<Self, NotAResource> {
        let object = object.as_object().ok_or(NotAResource::NoObject)?;
        let text = |name: &str| {
            object
                .get("metadata")
                .and_then(|metadata| metadata.get(name))
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let name = Some(text("name")).filter(|name| !name.is_empty()).ok_or(NotAResource::NoName)?;
        Ok(Self {
            id: ResourceId::new(text("namespace"), name),
            version: text("resourceVersion").into(),
            value: minijinja::Value::from(Serde(object)),
        })
    }

    /// Which one it is.
    pub fn id(&self) -> &ResourceId {
        &self.id
    }

    /// Its version in the words of who keeps it; empty where there are none.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// All of it, as templates see it.
    pub fn value(&self) -> &minijinja::Value {
        &self.value
    }
}
