//! What is published: the payload of the ConfigMap.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The payload, in the order in which it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Payload {
    /// Which cloud this is.
    pub cloud_provider: String,
    /// The structure; empty if nothing is known of it.
    #[serde(default)]
    pub composite: Structure,
}

/// The baseline and its satellites.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Structure {
    /// The baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Roles>,
    /// The satellites, in the order of the names of their groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub satellites: Vec<Roles>,
}

/// The namespaces of a baseline or a satellite, by their role.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Roles {
    /// The namespace that switches between the two others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
    /// The first of the two, or the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// The second of the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
}

impl Roles {
    /// All namespaces that have a role.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        [&self.controller, &self.origin, &self.peer].into_iter().filter_map(|name| name.as_deref())
    }

    /// Each role with its namespace.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, &str)> {
        [("controller", &self.controller), ("origin", &self.origin), ("peer", &self.peer)]
            .into_iter()
            .filter_map(|(role, name)| Some((role, name.as_deref()?)))
    }
}

impl Payload {
    /// The payload as compact JSON: equal payloads give equal bytes.
    ///
    /// ```
    /// let payload = setpoint_structure::Payload { cloud_provider: "OnPrem".into(), ..Default::default() };
    /// assert_eq!(payload.to_json(), r#"{"cloudProvider":"OnPrem","composite":{}}"#);
    /// ```
    pub fn to_json(&self) -> String {
        // Strings and lists of strings: there is nothing in it that could fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// All its facts, one by one: `baseline.origin`, or `satellite NAME.peer` where NAME is the first
    /// namespace of the satellite. For comparing two payloads as people would.
    ///
    /// ```
    /// let json = r#"{"cloudProvider":"OnPrem","composite":{"satellites":[{"origin":"cart"}]}}"#;
    /// let payload = setpoint_structure::Payload::from_json(json)?;
    /// let facts: Vec<_> = payload.facts().into_iter().collect();
    /// assert_eq!(facts[0], ("cloudProvider".into(), "OnPrem".into()));
    /// assert_eq!(facts[1], ("satellite cart.origin".into(), "cart".into()));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn facts(&self) -> BTreeMap<String, String> {
        let of = |group: String, roles: &Roles| -> Vec<_> {
            roles.named().map(|(role, name)| (format!("{group}.{role}"), name.to_owned())).collect()
        };
        let satellite =
            |roles: &Roles| of(format!("satellite {}", roles.namespaces().next().unwrap_or("?")), roles);
        let mut facts = BTreeMap::from([("cloudProvider".to_owned(), self.cloud_provider.clone())]);
        facts.extend(self.composite.baseline.iter().flat_map(|roles| of("baseline".to_owned(), roles)));
        facts.extend(self.composite.satellites.iter().flat_map(satellite));
        facts
    }

    /// All namespaces that it names.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.composite.baseline.iter().chain(&self.composite.satellites).flat_map(Roles::namespaces)
    }

    /// Reads a payload, as it was written by us or by anyone in the same terms; what else is in it is passed over.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
}
